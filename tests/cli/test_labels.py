"""``allonym labels``."""

from __future__ import annotations

import json

import pytest

from allonym.labels import SCHEMES, TAXONOMY, from_scheme, to_scheme


def test_lists_every_label_once_below_its_parent(run):
    lines = run("labels").out.splitlines()[1:]
    names = [line.split()[0] for line in lines]
    assert sorted(names) == sorted(lab.name for lab in TAXONOMY)
    depth = {name: (len(line) - len(line.lstrip())) // 2 for name, line in zip(names, lines, strict=True)}
    assert depth == {lab.name: len(TAXONOMY.lineage(lab.name)) - 1 for lab in TAXONOMY}
    for lab in TAXONOMY:
        assert lab.parent is None or names.index(lab.parent) < names.index(lab.name)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_json_tells_what_the_library_tells(run, scheme):
    rows = [json.loads(line) for line in run("labels", "--scheme", scheme, "--json").out.splitlines()]
    assert [r["name"] for r in rows] == [lab.name for lab in TAXONOMY]
    for row in rows:
        label = TAXONOMY.get(row["name"])
        assert row["to_scheme"] == to_scheme(label.name, scheme)
        assert (row["parent"], row["kind"], row["risk"]) == (label.parent, label.kind, label.risk)


def test_one_label_shows_its_family_and_foreign_names(run):
    out = run("labels", "us_ssn").out
    assert out.startswith("US_SSN\n")
    for part in (TAXONOMY.get("US_SSN").description, "5 of 5", to_scheme("US_SSN", "presidio")):
        assert part is not None and part in out


def test_a_foreign_name_shows_all_that_it_stands_for(run):
    out = run("labels", "GPE", "--scheme", "spacy").out
    assert {line.split()[0] for line in out.splitlines()[1:]} == set(from_scheme("GPE", "spacy"))


def test_a_pipe_gets_no_escape_codes(shell):
    result = shell("labels", "--scheme", "presidio")
    assert result.returncode == 0
    assert b"\x1b" not in result.stdout + result.stderr
