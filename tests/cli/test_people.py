"""``allonym people``."""

from __future__ import annotations

import json

import pytest

import allonym
from allonym.vault import Vault, secret_from_file

TEXTS = ("Zaphranda Quennell met Tom Baker.", "Zaphranda left.", "Blackie sat with Cyd Dale.")


@pytest.fixture
def opened(run, tmp_path, monkeypatch):
    monkeypatch.delenv("ALLONYM_VAULT_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    assert run("vault", "init", "v", "--new-secret-file", "k").code == 0
    with Vault.open("v", secret_from_file("k")) as vault:
        for text in TEXTS:
            allonym.anonymize(text, "reversible", vault=vault, scope="s")
        yield vault


def list_numbers(run):
    out = run("people", "list", "v", "--scope", "s", "--secret-file", "k", "--json").out
    return {
        row["names"][0]: (row["number"], len(row["names"]), row["documents"])
        for row in map(json.loads, out.splitlines())
    }


def test_list_join_part_and_import(run, opened, tmp_path):
    options = ("--scope", "s", "--secret-file", "k")
    assert "Zaphranda Quennell" in run("people", "list", "v", *options).out
    numbers = list_numbers(run)
    blackie = next(number for name, (number, *_) in numbers.items() if name.startswith("Blackie"))
    done = run("people", "join", "v", "1", str(blackie), *options)
    assert (done.code, done.out) == (0, "") and "person 1 has 2 names" in done.err
    assert list_numbers(run)["Zaphranda Quennell"] == (1, 2, 3)
    name = next(name for name in numbers if name.startswith("Blackie"))
    assert run("people", "part", "v", "1", name, *options).code == 0
    (tmp_path / "people.csv").write_text("Name,Alias\nZaphranda Quennell,Zaff\nIvy Marsh\n")
    done = run("people", "import", "v", "people.csv", *options)
    assert "1 people are new, 1 have more names, 0 did not change" in done.err
    (tmp_path / "people.csv").write_bytes(b"\xff\xfe\0")
    assert run("people", "import", "v", "people.csv", *options).code == 1


def test_unknown_people_exit_with_1_and_are_not_quoted(run, opened):
    options = ("--scope", "s", "--secret-file", "k")
    done = run("people", "join", "v", "1", "Ignatia Pell", *options)
    assert done.code == 1 and "allonym people list" in done.err and "Ignatia" not in done.err
    done = run("people", "erase", "v", "Ignatia Pell", "--secret-file", "k", "--yes")
    assert done.code == 1 and "nothing of this person" in done.err and "Ignatia" not in done.err
    assert run("people", "erase", "v", "1", "--secret-file", "k", "--yes").code == 2
    assert run("people", "list", "v", "--scope", "t", "--secret-file", "k").code == 1


def test_erase_covers_files_and_tells_how_many(run, opened, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "a.txt").write_text(TEXTS[0])
    (source / "b.txt").write_text(TEXTS[1])
    done = run("people", "erase", "v", "1", "--scope", "s", "--in", "source", "--secret-file", "k")
    assert done.code == 2 and "--yes confirms beforehand" in done.err and (source / "b.txt").read_text() == TEXTS[1]
    done = run("people", "erase", "v", "1", "--scope", "s", "--in", "source", "--secret-file", "k", "--yes")
    assert (done.code, done.out) == (0, "")
    assert "no trace left in its files" in done.err and "2 places in 2 of 2 files" in done.err
    assert (source / "b.txt").read_text() == "[ERASED] left."
    assert "Zaphranda Quennell" not in list_numbers(run)
    (source / "Tom Baker.txt").write_text("x")
    done = run("people", "erase", "v", "Tom Baker", "--in", "source", "--secret-file", "k", "--yes")
    assert done.code == 1 and "rename them" in done.err
