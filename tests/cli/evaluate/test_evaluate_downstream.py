"""``allonym evaluate downstream`` and ``syntheticity``: tables, JSON, pages, and what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

MARKER = "Zaphrandel"


@pytest.fixture
def versions(tmp_path: Path) -> tuple[Path, Path]:
    """24 calls with labels and summaries, and the same with another name."""
    old, new = tmp_path / "old.jsonl", tmp_path / "new.jsonl"
    rows: list[dict[str, Any]] = []
    for i in range(24):
        mood = ("pleased", "angry")[i % 2]
        text = f"{MARKER} Quorby called about order {i}. The customer was very {mood} with it. It was raining a lot."
        summary = f"The customer {MARKER} was {mood}."
        rows.append(
            {"id": f"c{i}", "text": text, "mood": mood, "summary": summary, "outputs": f"{MARKER} Quorby rang."}
        )
    old.write_text("".join(json.dumps(r) + "\n" for r in rows), "utf-8")
    for row in rows:
        row["text"] = row["text"].replace(MARKER, "Wilma")
        row["summary"] = row["summary"].replace(MARKER, "Wilma")
    new.write_text("".join(json.dumps(r) + "\n" for r in rows), "utf-8")
    return old, new


def test_downstream(run, versions, tmp_path):
    old, new = versions
    made = run(
        "evaluate", "downstream", str(old), str(new), "--task", "mood=classify", "--task", "summary=summarise",
        "--repeats", "2", "--json", str(tmp_path / "d.json"), "--report", str(tmp_path / "d.html"),
    )  # fmt: skip
    assert made.code == 0, made.err
    assert "ROUGE-L" in made.out
    assert "F1 (macro)" in made.out
    told = json.loads((tmp_path / "d.json").read_text("utf-8"))["downstream"]
    assert told["tasks"]["mood"]["scores"]["f1"]["original"]["value"] == 1
    assert told["tasks"]["summary"]["texts"] == 24
    page = (tmp_path / "d.html").read_text("utf-8")
    assert "Downstream use" in page
    assert MARKER not in page + made.out + (tmp_path / "d.json").read_text("utf-8")


def test_outputs(run, versions, tmp_path):
    old, new = versions
    policy = tmp_path / "names.toml"
    policy.write_text(f'schema = 1\nextends = "default"\n[dictionary]\nPERSON = ["{MARKER} Quorby"]\n', "utf-8")
    made = run(
        "evaluate", "downstream", str(old), str(new), "--outputs", str(old), "--outputs-field", "outputs",
        "--policy", str(policy), "--json", str(tmp_path / "d.json"),
    )  # fmt: skip
    assert made.code == 0, made.err
    told = json.loads((tmp_path / "d.json").read_text("utf-8"))["downstream"]["leaks"]
    assert told["outputs"]["value"] == 1
    assert MARKER not in made.out + json.dumps(told)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), "--task FIELD=KIND, --calls or --outputs is required"),
        (("--task", "mood"), "FIELD=classify or FIELD=summarise is required"),
        (("--task", "moot=classify"), "mood"),
    ],
)
def test_what_is_wrong(run, versions, options, says):
    made = run("evaluate", "downstream", *map(str, versions), *options)
    assert made.code == 2
    assert says in made.err


def test_syntheticity(run, versions, tmp_path):
    made = run("evaluate", "syntheticity", *map(str, versions), "--json", str(tmp_path / "s.json"))
    assert made.code == 0, made.err
    told = json.loads((tmp_path / "s.json").read_text("utf-8"))["syntheticity"]
    assert told["f1"]["value"] == 1
    assert told["pairs"] == 24
    assert "Accuracy" in made.out
    assert MARKER not in made.out + json.dumps(told)


def test_features_show_when_asked_for(run, versions, tmp_path):
    made = run("evaluate", "syntheticity", *map(str, versions), "--with-text", "--report", str(tmp_path / "s.html"))
    assert made.code == 0, made.err
    assert MARKER in made.out
    assert MARKER in (tmp_path / "s.html").read_text("utf-8")
