"""What the command line says of text in languages that no detector reads, and how a run then ends."""

from __future__ import annotations

import json

import pytest
from tests.conftest import CASES

ROWS = [json.loads(line) for line in (CASES / "languages.jsonl").read_text("utf-8").splitlines()]
TEXTS = {row["id"]: row["text"] for row in ROWS}
POLISH, GERMAN, ENGLISH = (TEXTS[name] for name in ("letter-pl", "letter-de", "english-letter"))
WARNING = "warning: names were not looked for in"


@pytest.fixture
def policy(tmp_path):
    """Writes a policy with another treatment of such text, and says its path."""

    def write(mode: str) -> str:
        path = tmp_path / f"{mode}.toml"
        path.write_text(f'extends = "default"\nunknown_language = "{mode}"\n', encoding="utf-8")
        return str(path)

    return write


def test_a_pipe_is_warned_of_once(run):
    result = run("anonymize", "-", "-p", "default", stdin=POLISH.encode())
    assert result.code == 0
    assert result.err.count("\n") == 1 and f"{WARNING} 100 % of the text: Polish" in result.err
    assert "spotkanie" in result.out


def test_english_text_gives_no_warning(run):
    result = run("anonymize", "-", "-p", "default", stdin=ENGLISH.encode())
    assert (result.code, result.err) == (0, "")


def test_detect_and_dry_run_warn_too(run, tmp_path):
    assert f"{WARNING} 100 % of the text: German" in run("detect", "-p", "default", stdin=GERMAN.encode()).err
    (tmp_path / "a.txt").write_text(GERMAN + "\n" + ENGLISH, encoding="utf-8")
    told = run("anonymize", str(tmp_path / "a.txt"), "--dry-run", "-p", "default").err
    assert WARNING in told and "German" in told


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_folder_is_summed_up_in_one_line_and_in_the_report(run, tmp_path, workers):
    source = tmp_path / "in"
    source.mkdir()
    for name, text in (("a.txt", GERMAN), ("b.txt", POLISH), ("c.txt", ENGLISH)):
        (source / name).write_text(text, encoding="utf-8")
    rows = [{"id": i, "text": GERMAN} for i in range(3)]
    (source / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    report = tmp_path / "r.json"
    result = run(
        "anonymize", str(source), str(tmp_path / "out"), "-p", "default", "--report", str(report), "--workers", workers
    )
    assert result.code == 0
    assert result.err.count(WARNING) == 1 and "of the text: German, Polish" in result.err
    told = json.loads(report.read_text())
    assert told["unread"] == told["languages"] == {"de": 4 * len(GERMAN.strip()), "pl": len(POLISH.strip())}


def test_a_policy_that_refuses_ends_with_1_and_writes_nothing(run, tmp_path, policy):
    (tmp_path / "a.txt").write_text(GERMAN, encoding="utf-8")
    result = run("anonymize", str(tmp_path / "a.txt"), str(tmp_path / "b.txt"), "-p", policy("refuse"))
    assert result.code == 1 and "German" in result.err and "Heizung" not in result.err
    assert not (tmp_path / "b.txt").exists()


def test_records_that_are_refused_go_to_quarantine(run, tmp_path, policy):
    rows = [{"id": "one", "text": ENGLISH}, {"id": "two", "text": GERMAN}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    result = run("anonymize", str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl"), "-p", policy("refuse"))
    assert result.code == 1
    assert [json.loads(line)["id"] for line in (tmp_path / "b.jsonl").read_text().splitlines()] == ["one"]
    (left,) = map(json.loads, (tmp_path / "b.jsonl.quarantine.jsonl").read_text().splitlines())
    assert left["id"] == "two" and "German" in left["reason"]


def test_a_policy_that_covers_says_so(run, tmp_path, policy):
    (tmp_path / "a.txt").write_text(GERMAN + "\n" + ENGLISH, encoding="utf-8")
    result = run("anonymize", str(tmp_path / "a.txt"), str(tmp_path / "b.txt"), "-p", policy("cover"))
    assert result.code == 0 and "of the text: German; it is covered whole" in result.err
    out = (tmp_path / "b.txt").read_text()
    assert "Heizung" not in out and "find the minutes of our last meeting" in out


def test_the_page_of_findings_warns(run, tmp_path):
    (tmp_path / "a.txt").write_text(GERMAN, encoding="utf-8")
    assert run("detect", str(tmp_path / "a.txt"), "-p", "default", "--html", str(tmp_path / "a.html")).code == 0
    assert "names were not looked for in 100 % of the text: German" in (tmp_path / "a.html").read_text()


def test_a_run_names_the_package_that_reads_a_language(run):
    german = run("anonymize", "-", "-p", "default", stdin=GERMAN.encode()).err
    assert german.endswith("; 'pip install ./packages/languages' in a copy of the repository reads German\n")
    polish = run("anonymize", "-", "-p", "default", stdin=POLISH.encode()).err
    assert polish.endswith("; 'pip install ./packages/polish' in a copy of the repository reads Polish\n")
