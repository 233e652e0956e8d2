"""``allonym evaluate detection``: from annotated files to tables, numbers and a page; and what is wrong."""

from __future__ import annotations

import json

import pytest

COMMAND = ("evaluate", "detection")
MARKER = "Zaphrandel"
TEXT = f"{MARKER} Quist wrote to {MARKER.lower()}@example.org from Elmford."


@pytest.fixture
def files(tmp_path):
    """A gold of five texts, findings that miss the place, and the anonymised texts."""
    at = TEXT.index("@") - len(MARKER)
    mail, place = (at, TEXT.index(" from")), (TEXT.index("Elm"), len(TEXT) - 1)
    marks = [(0, len(MARKER) + 6, "PER"), (*mail, "EMAIL"), (*place, "LOC")]
    gold, found, after = [], [], []
    for i in range(5):
        spans = [{"start": a, "end": b, "label": label} for a, b, label in marks]
        gold.append({"id": str(i), "text": TEXT, "spans": spans})
        found.append({"id": str(i), "text": TEXT, "spans": spans[:2]})
        after.append({"id": str(i), "text": "[PERSON_1] wrote to [EMAIL_ADDRESS_1] from Elmford."})
    out = {}
    for name, rows in (("gold", gold), ("found", found), ("after", after)):
        out[name] = str(tmp_path / f"{name}.jsonl")
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    return out


def test_tables_numbers_and_a_page(run, files, tmp_path):
    numbers, page = tmp_path / "out.json", tmp_path / "out.html"
    made = run(*COMMAND, files["gold"], files["found"], "--json", str(numbers), "--report", str(page), "--with-text")
    assert made.code == 0, made.err
    lines = {line.split()[0]: line.split() for line in made.out.splitlines() if line}
    assert lines["PER"][1:4] == ["0.00", "%", "[0.00,"]  # the last table that names it: leaks
    assert "LOC" in made.out and "(micro)" in made.out and "whatever the type" in made.out
    told = json.loads(numbers.read_text(encoding="utf-8"))["detection"]
    assert told["levels"]["strict"]["micro"]["recall"]["value"] == pytest.approx(2 / 3)
    assert told["levels"]["strict"]["labels"]["LOC"]["precision"]["value"] is None
    assert told["leaks"]["types"]["LOC"]["mentions"]["value"] == 1
    assert told["leaks"]["mean"]["mentions"]["value"] == pytest.approx(1 / 3)
    html = page.read_text(encoding="utf-8")
    assert "What was taken for what" in html and "Text Anonymization Benchmark" in html
    for shown in (made.out, made.err, html, numbers.read_text(encoding="utf-8")):
        assert MARKER not in shown and "Elmford" not in shown


def test_a_policy_finds(run, files, untagged_file):
    made = run(*COMMAND, files["gold"], "--policy", str(untagged_file), "--level", "overlap", "--draws", "50")
    assert made.code == 0, made.err
    mail = next(line for line in made.out.splitlines() if line.startswith("EMAIL "))
    assert mail.split()[1] == "1.000"


def test_an_anonymised_text_alone_tells_what_was_found_and_what_leaks(run, files, tmp_path):
    numbers = tmp_path / "out.json"
    made = run(*COMMAND, files["gold"], "--anonymised", files["after"], "--json", str(numbers), "-q")
    assert made.code == 0, made.err
    told = json.loads(numbers.read_text(encoding="utf-8"))["detection"]
    assert told["typed"] is True
    assert told["levels"]["strict"]["labels"]["EMAIL"]["f1"]["value"] == 1
    assert told["leaks"]["types"]["LOC"]["surfaces"]["value"] == 1
    assert told["leaks"]["types"]["PER"]["surfaces"]["value"] == 0
    assert "Still in the text" in made.out


def test_plans_of_a_run(run, files, tmp_path, untagged_file):
    plans = tmp_path / "plans.jsonl"
    texts = tmp_path / "texts.jsonl"
    texts.write_text(json.dumps({"id": "0", "text": TEXT}) + "\n", encoding="utf-8")
    out = tmp_path / "safe.jsonl"
    args = ("--policy", str(untagged_file), "--field", "text")
    assert run("anonymize", str(texts), "-o", str(out), "--plans", str(plans), *args).code == 0
    made = run(*COMMAND, files["gold"], "--plans", str(plans), "--draws", "0")
    assert made.code == 0, made.err
    mail = next(line for line in made.out.splitlines() if line.startswith("EMAIL "))
    assert mail.split()[1:4] == ["1.000", "1.000", "1.000"]


def test_a_label_map(run, files, tmp_path):
    names = tmp_path / "map.toml"
    names.write_text("LOC = []\n", encoding="utf-8")
    made = run(*COMMAND, files["gold"], files["found"], "--label-map", str(names))
    assert made.code == 0
    assert "Gold spans that do not count" in made.err and "LOC: 5" in made.err
    names.write_text('LOC = ["LOCATON"]\n', encoding="utf-8")
    wrong = run(*COMMAND, files["gold"], files["found"], "--label-map", str(names))
    assert wrong.code == 2 and "LOCATION" in wrong.err
    names.write_text("LOC = 1\n", encoding="utf-8")
    assert "a list of labels is required, got int" in run(*COMMAND, files["gold"], "--label-map", str(names)).err
    names.write_text("LOC", encoding="utf-8")
    assert "cannot be read as TOML" in run(*COMMAND, files["gold"], "--label-map", str(names)).err


def test_what_is_wrong_is_told(run, files, tmp_path):
    both = run(*COMMAND, files["gold"], files["found"], "--policy", "default")
    assert both.code == 2 and "PREDICTED and --policy" in both.err
    other = run(*COMMAND, files["gold"], files["after"])
    assert other.code == 1 and "--anonymised" in other.err
    assert run(*COMMAND, str(tmp_path / "none.jsonl")).code == 2
    ending = run(*COMMAND, files["gold"], files["found"], "--report", "x.pdf")
    assert ending.code == 2 and ".pdf" in ending.err
    over = run(*COMMAND, files["gold"], files["found"], "--json", files["gold"])
    assert over.code == 2
    (tmp_path / "empty.jsonl").write_text("", encoding="utf-8")
    empty = run(*COMMAND, str(tmp_path / "empty.jsonl"), str(tmp_path / "empty.jsonl"))
    assert empty.code == 1 and "1 text at least" in empty.err


def test_the_same_bytes_with_any_hash_seed(shell, files, tmp_path):
    outs = []
    for seed in ("1", "2"):
        out = tmp_path / f"{seed}.json"
        made = shell(*COMMAND, files["gold"], files["found"], "--json", str(out), env={"PYTHONHASHSEED": seed})
        assert made.returncode == 0, made.stderr
        outs.append(out.read_bytes())
    assert outs[0] == outs[1]
