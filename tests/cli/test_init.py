"""``allonym init``."""

from __future__ import annotations

import pytest

from allonym.cli import init
from allonym.policy import Policy


@pytest.fixture
def letter(tmp_path):
    path = tmp_path / "letter.txt"
    path.write_text("Ada Brook wrote on 3 May 2024 from ada@example.com.\n", encoding="utf-8")
    return path


def test_without_a_terminal_the_defaults_are_taken_and_listed(run, letter, tmp_path):
    target = tmp_path / "mine.toml"
    result = run("init", str(letter), "-o", str(target), "--dates", "keep")
    assert result.code == 0
    assert result.err.count("default:") == 5 and "default: dates" not in result.err
    assert "- Ada Brook wrote" in result.out and "3 May 2024 from [EMAIL_ADDRESS_1]" in result.out
    assert f"next: allonym anonymize {letter} letter-safe.txt --policy {target}" in result.err
    policy = Policy.load(target)
    assert policy.name == "mine" and policy.rule("DATE").operator == "keep"


def test_a_policy_that_is_there_is_not_replaced(run, letter, tmp_path):
    target = tmp_path / "mine.toml"
    target.write_text("", encoding="utf-8")
    result = run("init", str(letter), "-o", str(target))
    assert result.code == 2 and "--overwrite" in result.err and target.read_text(encoding="utf-8") == ""


def test_a_key_is_asked_for_where_the_policy_needs_one(run, letter, tmp_path):
    target = tmp_path / "mine.toml"
    result = run("init", str(letter), "-o", str(target), "--come-back", "natural", "--yes")
    assert result.code == 0 and "--key-file secret.key" in result.err


def test_questions_are_asked_on_a_terminal(run, letter, tmp_path, monkeypatch):
    target = tmp_path / "mine.toml"
    monkeypatch.setattr(init, "_can_ask", lambda: True)
    lines = b"\nnobody\npat\n\nkeep\n\nyes\n"
    result = run("init", str(letter), "-o", str(target), "--public-figures", "keep", stdin=lines)
    assert result.code == 0, result.err
    assert "5 of 5" in result.out and "everyone, speakers, patients" in result.out + result.err
    policy = Policy.load(target)
    assert policy.rule("DATE").operator == "generalise" and policy.rule("ORGANIZATION").operator == "keep"


def test_an_unknown_language_names_the_nearest(run, letter, tmp_path):
    result = run("init", str(letter), "-o", str(tmp_path / "m.toml"), "--language", "Germann")
    assert result.code == 2 and "German" in result.err
