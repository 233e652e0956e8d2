"""``allonym verify``: results, and results that are none."""

from __future__ import annotations

import pytest

pytest.importorskip("pikepdf")
pytest.importorskip("pypdfium2")
pytest.importorskip("reportlab")

from benchmarks import redaction_pdf as made

POLICY = 'extends = "default"\n[detect]\ndetectors = ["rules", "lexicon"]\n[dictionary]\nPERSON = ["Ada Brook", "Cyd Dale"]\n'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.toml").write_text(POLICY, encoding="utf-8")
    (tmp_path / "a.pdf").write_bytes(made.letter_page())
    return tmp_path


def test_a_result_is_verified_in_three_ways(run, folder):
    made_ = run("anonymize", "a.pdf", "b.pdf", "--policy", "policy.toml", "--plans", "p.jsonl", "--originals")
    assert made_.code == 0, made_.err
    for ways in (
        ("--original", "a.pdf", "--policy", "policy.toml"),
        ("--original", "a.pdf", "--plans", "p.jsonl"),
        ("--plans", "p.jsonl"),
    ):
        result = run("verify", "b.pdf", *ways)
        assert result.code == 0, result.err
        assert "b.pdf contains none of 5 covered texts" in result.err


def test_what_is_left_is_counted_and_not_shown(run, folder):
    run("anonymize", "a.pdf", "b.pdf", "--policy", "policy.toml", "--plans", "p.jsonl")
    result = run("verify", "a.pdf", "--original", "a.pdf", "--plans", "p.jsonl")
    assert result.code == 1
    assert "a.pdf still contains 5 of 5 covered texts" in result.err
    assert "EMAIL_ADDRESS" in result.out and "page 1" in result.out and "metadata" in result.out
    for secret in ("Ada", "Brook", "Dale", "536", "example.com"):
        assert secret not in result.out + result.err


def test_what_is_missing_is_told(run, folder):
    run("anonymize", "a.pdf", "b.pdf", "--policy", "policy.toml", "--plans", "p.jsonl")
    assert "--original or --plans is required" in run("verify", "b.pdf").err
    bare = run("verify", "b.pdf", "--plans", "p.jsonl")
    assert bare.code == 1 and "the plan holds no originals" in bare.err
    (folder / "c.txt").write_text("x", encoding="utf-8")
    text = run("verify", "c.txt", "--plans", "p.jsonl")
    assert text.code == 2 and "verify reads pdf, docx, xlsx" in text.err
    (folder / "q.jsonl").write_text("Ada Brook\n", encoding="utf-8")
    broken = run("verify", "b.pdf", "--plans", "q.jsonl")
    assert broken.code == 1 and "q.jsonl:1: not a plan" in broken.err and "Ada" not in broken.err


def test_a_replacement_that_keeps_a_word_of_a_name_is_told(run, folder):
    run("anonymize", "a.pdf", "b.pdf", "--policy", "policy.toml", "--plans", "p.jsonl", "--originals")
    plans = (folder / "p.jsonl").read_text(encoding="utf-8")
    assert plans.count('"[PERSON_1]"')
    (folder / "q.jsonl").write_text(plans.replace('"[PERSON_1]"', '"Ada Klein Brook"'), encoding="utf-8")
    result = run("verify", "b.pdf", "--plans", "q.jsonl")
    assert result.code == 1 and "keep a word of the name" in result.err and "replacement" in result.out
    assert "Brook" not in result.out + result.err


def test_pictures_are_read_by_the_ocr_of_the_policy(run, folder, monkeypatch):
    from allonym.files.ocr import Word
    from allonym.registry import ocr

    picture, words = made._scan()
    picture.save(folder / "a.png")
    (folder / "ocr.toml").write_text('ocr = "known"\n' + POLICY, encoding="utf-8")
    monkeypatch.setattr(ocr, "_table", {**ocr._table, "known": lambda image: [Word(*word) for word in words]})
    left = run("verify", "a.png", "--original", "a.png", "--policy", "ocr.toml")
    assert left.code == 1 and "a.png still contains 3 of 3 covered texts" in left.err
