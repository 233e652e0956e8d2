"""``allonym evaluate intruder`` and ``evaluate risk``: from two files to numbers, a report and a queue."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

PEOPLE = {
    "Orla": "goats windy hill carves spoons birch wood cheese".split(),
    "Ivo": "repairs church organs swam lake night bellows pipes".split(),
    "Wen": "algebra prison collects antique thermometers mercury glass chalk".split(),
    "Ada": "ferries lighthouse knots sails herring storm harbour ropes".split(),
}
TALK = "somebody said this person is friendly and well known in the town where they live".split()


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    told = [
        (name, [str(w) for w in rng.choice(own, 4, replace=False)]) for name, own in PEOPLE.items() for _ in range(20)
    ]
    for name in ("before", "after"):
        rows = []
        for i, (person, words) in enumerate(told):
            talk = [str(w) for w in rng.permutation(TALK)]
            kept = [*words[: i % 5], *["[TERM_1]"] * (4 - i % 5)]
            text = " ".join([person, *talk, *words] if name == "before" else ["[PERSON_1]", *talk, *kept])
            rows.append({"id": f"t{i}", "text": text, "person": person, "fame": "grand" if i < 40 else "plain"})
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return tmp_path


@pytest.fixture
def call(run):
    return lambda *args: run(*map(str, args))


def test_the_command_intruder(call, files):
    base = ["evaluate", "intruder", files / "before.jsonl", files / "after.jsonl", "--subject", "person"]
    done = call(*base, "--group", "fame", "--json", files / "out.json", "--report", files / "out.html")
    assert done.code == 0, done.out
    assert "grand" in done.out and "all texts" in done.out
    worst = json.loads((files / "out.json").read_text())["linkage"]["panel"]["worst"]
    assert done.out.index("Identified at worst") < done.out.index("all texts") and worst["name"] in done.out
    told = json.loads((files / "out.json").read_text())["linkage"]
    assert told["all"]["texts"] == 80 and "terms" not in told
    page = (files / "out.html").read_text()
    assert "Intruders: who is identified" in page and "goats" not in page
    assert call(*base, "--background", files / "before.jsonl", "--quiet").code == 0
    for name, words in PEOPLE.items():
        (files / "public").mkdir(exist_ok=True)
        (files / "public" / f"{name}.txt").write_text(f"It is known for {' '.join(words)}.")
    public = ["--field", "text", "--background", files / "public", "--json", files / "public.json"]
    assert call(*base, *public, "--quiet").code == 0
    rows = {row["name"]: row for row in json.loads((files / "public.json").read_text())["linkage"]["panel"]["rows"]}
    assert rows["background words"]["identified"]["n"] == 80 and rows["background words"]["before"]["value"] == 1
    wrong = call("evaluate", "intruder", files / "before.jsonl", files / "after.jsonl", "--subject", "persons")
    assert wrong.code == 2 and "person" in wrong.err


def test_the_command_risk(call, files):
    base = ["evaluate", "risk", files / "before.jsonl", files / "after.jsonl"]
    done = call(
        *base, "--subject", "person", "--review-above", "0.7", "--queue", files / "q.csv", "--report", files / "r.md"
    )
    assert done.code == 0, done.out
    rows = list(csv.DictReader((files / "q.csv").read_text().splitlines()))
    risks = [float(row["risk"]) for row in rows]
    assert rows and risks == sorted(risks, reverse=True) and min(risks) > 0.7 and rows[0]["id"].startswith("t")
    assert "Document risk" in (files / "r.md").read_text() and "Brier" in done.out
    ranked = call(*base, "--review-above", "0.5", "--queue", files / "q.jsonl")
    assert ranked.code == 0 and "no probabilities" in ranked.err
    assert len((files / "q.jsonl").read_text().splitlines()) == pytest.approx(40, abs=4)
    assert call(*base, "--queue", files / "x.csv").code == 2
    assert call(*base, "--confidence").code == 2
    assert call(*base, "--review-above", "0.5", "--queue", files / "x.txt").code == 2
