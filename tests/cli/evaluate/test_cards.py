"""Cards of persons on the command line, and hardening for all of them."""

from __future__ import annotations

import json

import pytest

from allonym.cli import main

TEXT = "Anna Price is a nurse from Leeds and has epilepsy. Her brother is a twin."
SAFE = "[PERSON_1] is a nurse from Leeds and has epilepsy. Her brother is a twin."


@pytest.fixture
def pair(tmp_path):
    """Paths of a text before and after."""
    for name, text in (("raw", TEXT), ("safe", SAFE)):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"id": "a", "text": text}) + "\n", encoding="utf-8")
    return str(tmp_path / "raw.jsonl"), str(tmp_path / "safe.jsonl")


@pytest.fixture
def call(capsys):
    """Run a command; returns its exit code and what it printed."""

    def run(*args):
        with pytest.raises(SystemExit) as ended:
            main([str(arg) for arg in args])
        shown = capsys.readouterr()
        return int(ended.value.code or 0), shown.out + shown.err

    return run


def test_cards_are_printed_and_reported(call, pair, tmp_path):
    report, numbers = tmp_path / "cards.html", tmp_path / "cards.json"
    code, output = call("evaluate", "cards", *pair, "--report", report, "--json", numbers)
    assert code == 0, output
    assert "Persons: 2; documents: 1." in output
    assert "epilepsy" not in output + report.read_text("utf-8") + numbers.read_text("utf-8")
    assert "What would help most" in report.read_text("utf-8")
    code, output = call("evaluate", "cards", *pair, "--report", report, "--with-text", "--overwrite")
    assert "epilepsy" in report.read_text("utf-8")


def test_all_persons_are_hardened(call, pair, tmp_path):
    target, report = tmp_path / "hard.jsonl", tmp_path / "hard.html"
    code, output = call("harden", *pair, "--people", 5, "-o", target, "--report", report)
    assert code == 0, output
    text = json.loads(target.read_text("utf-8"))["text"]
    assert "epilepsy" not in text and "twin" not in text
    assert "stretches became more general" in report.read_text("utf-8")


@pytest.mark.parametrize("options", [[], ["--people", "5", "--subject", "who"], ["--people", "5", "--group", "g"]])
def test_subjects_or_people(call, pair, tmp_path, options):
    assert call("harden", *pair, *options, "-o", tmp_path / "out.jsonl")[0] == 2
