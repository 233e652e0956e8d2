"""``allonym evaluate statement``."""

from __future__ import annotations

import json

import pytest

from allonym.cli import main

pytest.importorskip("jinja2")
TEXT = "Anna Price is a nurse from Leeds."


def run(*args):
    with pytest.raises(SystemExit) as ended:
        main([str(arg) for arg in args])
    return int(ended.value.code or 0)


@pytest.fixture
def numbers(tmp_path):
    """The report of a run over one text, and the numbers of its cards."""
    source, target = tmp_path / "raw.jsonl", tmp_path / "safe.jsonl"
    source.write_text(json.dumps({"id": "a", "text": TEXT}) + "\n", encoding="utf-8")
    report, cards = tmp_path / "run.json", tmp_path / "cards.json"
    assert run("anonymize", source, "-o", target, "--report", report, "-q") == 0
    assert run("evaluate", "cards", source, target, "--json", cards) == 0
    return report, cards


@pytest.mark.parametrize("ending", ["html", "md", "pdf"])
def test_a_statement_is_written_in_each_format(numbers, tmp_path, ending, capsys):
    if ending == "pdf":
        pytest.importorskip("reportlab")
    report, cards = numbers
    target = tmp_path / f"statement.{ending}"
    assert run("evaluate", "statement", report, "--cards", cards, "-o", target) == 0
    data = target.read_bytes()
    assert b"Price" not in data and (ending == "pdf" or b"Statement on an anonymisation" in data)
    assert run("evaluate", "statement", report, "-o", target) == 2
    assert "--overwrite" in capsys.readouterr().err


def test_what_is_no_report_is_refused(numbers, tmp_path, capsys):
    report, cards = numbers
    assert run("evaluate", "statement", cards, "-o", tmp_path / "a.html") == 1
    assert "is no report of a run" in capsys.readouterr().err
    report.write_text("[]", encoding="utf-8")
    assert run("evaluate", "statement", report, "-o", tmp_path / "a.html") == 1
    assert not (tmp_path / "a.html").exists()


def test_numbers_of_another_command_are_not_taken_for_measures(numbers, tmp_path, capsys):
    report, cards = numbers
    for option in ("--evaluation", "--cards"):
        wrong = cards if option == "--evaluation" else report
        assert run("evaluate", "statement", report, option, wrong, "-o", tmp_path / "a.html") == 1
        assert "is none of the files" in capsys.readouterr().err and not (tmp_path / "a.html").exists()
