"""MITIE: it learns a tiny corpus from a feature file of our own making, and says what is missing where it is missing."""

from __future__ import annotations

import os
import stat

import pytest

from allonym.errors import DataError, MissingExtra, UsageError
from allonym.models.words import split_words
from allonym.train import mitie_backend
from allonym.train.mitie_backend import FEATURES, MODEL, Options, build_features, fit, load
from allonym.train.records import make_record

RECORDS = [
    make_record("", str(n), text, [(a, a + len(name), "PERSON")])
    for n, (name, a, text) in enumerate(
        (name, 6, f"Today {name} went home by train .")
        for name in ("Ada Brook", "Cyd Dale", "Eve Farrow", "Pam Quill", "Jim Stone", "Ina Marsh")
    )
]


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    pytest.importorskip("numpy")
    from tests.train.mitie_features import write_features

    path = tmp_path_factory.mktemp("mitie") / FEATURES
    return write_features(path, [r["text"] for r in RECORDS], dimensions=4)


@pytest.mark.slow
def test_it_learns_and_its_model_is_read_again(tmp_path, features, capfd):
    pytest.importorskip("mitie")
    rows = []
    made = fit(RECORDS, RECORDS[:2], tmp_path, options=Options(features=str(features), threads=1), report=rows.append)
    assert made["labels"] == ["PERSON"]
    assert made["words"] == sum(len(split_words(r["text"])) for r in RECORDS)
    assert (rows[0]["epoch"], rows[0]["f1"]) == (1, made["f1"])
    assert made["f1"] == 1
    assert capfd.readouterr().out == ""  # what the library prints stays unseen
    for path in (tmp_path, tmp_path / MODEL):
        spans, none = load(path)(["Today Ada Brook went home by train .", " "])
        assert [(s.start, s.end, s.label) for s in spans] == [(6, 15, "PERSON")]
        assert none == []


def test_spans_are_told_in_words():
    record = make_record("", "1", "Ada-Cyd Brook ran.", [(0, 5, "A"), (4, 13, "B"), (14, 17, "C"), (17, 18, "D")])
    borders = split_words(record["text"])
    assert list(mitie_backend._align_spans_to_words(record, borders)) == [(2, 4, "B"), (4, 5, "C"), (5, 6, "D")]


def test_without_features_it_says_what_is_needed(tmp_path, monkeypatch):
    pytest.importorskip("mitie")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match=r"--set features=PATH.*no program wordrep is on the PATH"):
        fit(RECORDS, [], tmp_path, options=Options())
    with pytest.raises(UsageError, match="nowhere is not a program"):
        fit(RECORDS, [], tmp_path, options=Options(wordrep="nowhere"))
    with pytest.raises(DataError, match="does not exist"):
        fit(RECORDS, [], tmp_path, options=Options(features=str(tmp_path / "none.dat")))
    (tmp_path / "bad.dat").write_bytes(b"no features")
    with pytest.raises(DataError, match="not a MITIE word feature file"):
        fit(RECORDS, [], tmp_path, options=Options(features=str(tmp_path / "bad.dat")))
    with pytest.raises(DataError, match="not a MITIE named entity model"):
        load(tmp_path / "bad.dat")


def program(path, lines):
    path.write_text("#!/bin/sh\n" + lines, encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_wordrep_gets_the_training_text_or_the_folder(tmp_path):
    wordrep = program(tmp_path / "wordrep", f'[ "$1" = -e ] || exit 3\ncat "$2"/* > {FEATURES}\n')
    target = build_features(wordrep, tmp_path / "out" / FEATURES, None, RECORDS[:2])
    assert target.read_text(encoding="utf-8") == "\n\n".join(r["text"] for r in RECORDS[:2])
    texts = tmp_path / "texts"
    texts.mkdir()
    (texts / "a.txt").write_text("plain text", encoding="utf-8")
    assert build_features(wordrep, target, texts, RECORDS).read_text(encoding="utf-8") == "plain text"
    options = Options(wordrep=wordrep)
    assert (
        mitie_backend._find_or_build_features(RECORDS[:1], tmp_path / "new", options, resume=False).read_text()
        == RECORDS[0]["text"]
    )
    assert (
        mitie_backend._find_or_build_features(RECORDS, tmp_path / "new", options, resume=True).read_text()
        == RECORDS[0]["text"]
    )


@pytest.mark.parametrize("lines", ["echo Ada >&2; exit 4\n", "exit 0\n"])
def test_wordrep_that_fails_is_told_without_what_it_says(tmp_path, lines):
    wordrep = program(tmp_path / "wordrep", lines)
    with pytest.raises(DataError, match=rf"made no {FEATURES} \(exit code [04]\)") as caught:
        build_features(wordrep, tmp_path / FEATURES, None, RECORDS)
    assert "Ada" not in str(caught.value)
    assert not (tmp_path / FEATURES).exists()


def test_without_mitie(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "mitie", None)
    with pytest.raises(MissingExtra, match=r"\[mitie\]"):
        fit(RECORDS, [], tmp_path, options=Options())


def test_nothing_to_learn(tmp_path, features):
    pytest.importorskip("mitie")
    with pytest.raises(DataError, match="no training data"):
        fit([make_record("", "1", "no names", [])], [], tmp_path, options=Options(features=str(features)))


def test_standard_output_comes_back_after_a_failure(capfd):
    def train():
        with mitie_backend._suppress_library_output():
            os.write(1, b"hidden")
            raise KeyError

    with pytest.raises(KeyError):
        train()
    os.write(1, b"shown")
    assert capfd.readouterr().out == "shown"
