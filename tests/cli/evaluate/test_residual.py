"""The commands of residual risk, on the real command line: annotate, propose, confirm, score, red team."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from allonym.cli import main

MARKER = "Zaphrandel"
ROWS = [
    {"id": "c1", "context": "support", "text": "I am (Zaphrandel Quux)[MISSED_PERSON_NAME] at (x.io)(MISSED_URL)."},
    {"id": "c2", "context": "support", "text": "All fine here."},
    {"id": "c3", "context": "sales", "text": "It is (Quux)([MISSED_PERSON_NAME_PARTIAL]). (Quux)[MISSED_PERSON_NAME_PARTIAL]?"},
    {"id": "c4", "context": "sales", "text": "Nothing at all."},
]  # fmt: skip
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.chdir(tmp_path)

    def run(*args: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["evaluate", *args])
        shown = capsys.readouterr()
        return int(ended.value.code or 0), shown.out, shown.err

    return run


@pytest.fixture
def annotated(tmp_path: Path) -> Path:
    path = tmp_path / "annotated.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in ROWS), encoding="utf-8")
    return path


def test_scores_table_queue_json_and_report(call: Call, annotated: Path) -> None:
    code, out, err = call("residual", str(annotated), "--group", "context", "--queue", "queue.jsonl",
                          "--json", "risk.json", "--report", "risk.html")  # fmt: skip
    assert code == 0
    lines = {line.split()[0]: line.split() for line in out.splitlines() if line}
    assert lines["sales"][1:3] == ["2", "1.50"]
    assert lines["support"][1:3] == ["2", "3.50"]
    assert lines["Total"][1:3] == ["4", "2.50"]
    told = json.loads(Path("risk.json").read_text("utf-8"))["residual"]
    assert [s["score"] for s in told["scores"]] == [7, 0, 3, 0]
    queue = [json.loads(line) for line in Path("queue.jsonl").read_text("utf-8").splitlines()]
    assert queue == [{"id": "c1", "group": "support", "score": 7, "direct": 1, "missed": "PERSON_NAME (5), URL (2)"}]
    for shown in (out, err, *(Path(n).read_text("utf-8") for n in ("queue.jsonl", "risk.json", "risk.html"))):
        assert MARKER not in shown
    assert call("residual", str(annotated), "--queue", "queue.jsonl")[0] == 2  # it exists


def test_settings_change_the_scores(call: Call, annotated: Path) -> None:
    annotated.write_text('{"id": "m", "text": "(jo two)[MISSED_EMAIL_PARTIAL] (x.io)[MISSED_URL]"}\n' * 1, "utf-8")
    for options, score in (
        ((), 3), (("--email-partial", "table"), 4), (("--score", "URL=5"), 6), (("--score", "email_partial=0"), 2),
    ):  # fmt: skip
        assert call("residual", str(annotated), *options, "--json", "r.json", "--overwrite")[0] == 0
        assert json.loads(Path("r.json").read_text("utf-8"))["residual"]["scores"][0]["score"] == score


def test_what_is_missed_shows_on_demand_only(call: Call, annotated: Path) -> None:
    assert call("residual", str(annotated), "--report", "r.html", "--with-text", "-q")[0] == 0
    assert "Zaphrandel Quux" in Path("r.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("(Zaphrandel)[MISSED_URLS]", 1, "c1: character 12, line 1: unknown type of missed text 'URLS'"),
        ("Zaphrandel)[MISSED_URL]", 1, "c1: character 10, line 1: a bracket is closed"),
    ],
)
def test_what_cannot_be_read(call: Call, annotated: Path, text: str, code: int, said: str) -> None:
    annotated.write_text(json.dumps({"id": "c1", "text": text}) + "\n", "utf-8")
    ended, out, err = call("residual", str(annotated))
    assert ended == code
    assert said in err
    assert MARKER not in out + err


@pytest.mark.parametrize(
    "options", [("--group", "contxt"), ("--score", "URL"), ("--score", "NOPE=1"), ("--score", "URL=9"),
                ("--queue", "q.txt"), ("--limit", "-1"), ("--queue", "annotated.jsonl")]
)  # fmt: skip
def test_wrong_calls(call: Call, annotated: Path, options: tuple[str, ...]) -> None:
    before = annotated.read_bytes()
    assert call("residual", str(annotated), *options)[0] == 2
    assert annotated.read_bytes() == before


def test_from_a_second_reading_to_a_score(call: Call, tmp_path: Path) -> None:
    safe = tmp_path / "safe.jsonl"
    text = "This is [PERSON_NAME_1] Quux from [ORGANIZATION_1]. Write to zaphrandel@quux.io or call [PHONE_1]."
    safe.write_text(json.dumps({"id": "c1", "context": "sales", "text": text}) + "\n", "utf-8")
    code, out, err = call("second-reading", str(safe), "-o", "marked.jsonl")
    assert code == 0
    assert "EMAIL" in out and "pseudonym" in err and "zaphrandel" not in out + err
    row = json.loads(Path("marked.jsonl").read_text("utf-8"))
    assert row["text"] == text and row["meta"]["context"] == "sales"
    assert all(m["confirmed"] is None and text[m["start"] : m["end"]] == m["text"] for m in row["marks"])
    code, _, err = call("residual", "marked.jsonl")
    assert code == 1 and "that no person has confirmed" in err
    assert "upper bound" in call("residual", "marked.jsonl", "--proposals", "count")[2]
    for mark in row["marks"]:
        mark["confirmed"] = mark["tag"] == "EMAIL"
    Path("marked.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    assert call("residual", "marked.jsonl", "--group", "context", "--json", "r.json")[0] == 0
    told = json.loads(Path("r.json").read_text("utf-8"))["residual"]
    assert told["scores"] == [{"id": "c1", "group": "sales", "score": 4, "direct": 0}]
    assert told["rejected"] == len(row["marks"]) - 1


def test_the_notation_and_the_original(call: Call, tmp_path: Path) -> None:
    (tmp_path / "safe.jsonl").write_text(json.dumps({"id": "c1", "text": "Ask Odette at o@marlow.io or x@quux.io."}))
    (tmp_path / "real.jsonl").write_text(json.dumps({"id": "c1", "text": "Ask Bob at b@bobby.io or x@quux.io."}))
    assert call("second-reading", "safe.jsonl", "--original", "real.jsonl", "-o", "m.jsonl", "--notation", "-q")[0] == 0
    text = json.loads(Path("m.jsonl").read_text("utf-8"))["text"]
    assert text == "Ask Odette at o@marlow.io or (x@quux.io)[MISSED_EMAIL]."
    assert call("residual", "m.jsonl", "--json", "r.json")[0] == 0
    assert call("second-reading", "safe.jsonl", "-o", "m.jsonl")[0] == 2  # it exists
    assert call("second-reading", "safe.jsonl", "-o", "safe.jsonl", "--overwrite")[0] == 2


@pytest.mark.parametrize("ending", ["md", "jsonl", "csv"])
def test_the_red_team_from_sample_to_summary(call: Call, annotated: Path, ending: str) -> None:
    forms = f"forms.{ending}"
    code, out, err = call("red-team", "sample", str(annotated), "-o", forms, "-n", "3", "--group", "context")
    assert code == 0 and "written: " in err
    assert sum(int(line.split()[1]) for line in out.splitlines()[1:]) == 3
    text = Path(forms).read_text("utf-8")
    assert "MISSED_URL" not in text  # what annotators saw is no help for the team
    assert call("red-team", "summary", forms)[0] == 1  # nothing is filled in
    if ending == "md":
        text = text.replace("left? (yes/no)\n  > ", "left? (yes/no)\n  > no")
    elif ending == "jsonl":
        text = text.replace('"residual": ""', '"residual": "no"').replace('"identified": ""', '"identified": "no"', 1)
    else:
        rows = list(csv.DictReader(text.splitlines()))
        with Path(forms).open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, list(rows[0]))
            writer.writeheader()
            writer.writerows({**row, "residual": "no"} for row in rows)
        text = Path(forms).read_text("utf-8")
    Path(forms).write_text(text, "utf-8")
    assert call("red-team", "summary", forms, "--json", "r.json", "--report", "r.html")[0] == 0
    told = json.loads(Path("r.json").read_text("utf-8"))["red_team"]
    assert (told["total"]["conversations"], told["total"]["clean"]["value"], told["achieved"]) == (3, 1.0, True)
    assert "Fully anonymised" in Path("r.html").read_text("utf-8")
    assert MARKER not in Path("r.json").read_text("utf-8") + Path("r.html").read_text("utf-8")


def test_unknown_forms(call: Call, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    assert call("red-team", "summary", "a.txt")[0] == 2
    assert call("red-team", "sample", "a.txt", "-o", "f.txt")[0] == 2
