"""What corpora's entity names mean to the tagger: a case table, the table's own facts, and lines of the user's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym.errors import DataError, UnknownNameError
from allonym.labels import TAXONOMY
from allonym.models.tags import LABELS
from allonym.train.labelmap import find_targets, load_default_map, read_label_map

CASES = Path(__file__).parent.parent / "cases/labelmap.jsonl"
ROWS = [json.loads(line) for line in CASES.read_text("utf-8").splitlines()]


@check_each_row("row", ROWS)
def test_meaning(row: dict[str, Any]) -> None:
    wanted = None if row["targets"] is None else frozenset(row["targets"])
    assert find_targets(row["label"], row["source"]) == wanted


def test_table_names_only_labels_of_the_tagger() -> None:
    known = load_default_map()
    tables = (known.names, *known.sources.values())
    assert {label for table in tables for meant in table.values() for label in meant or ()} == set(LABELS)


def test_every_label_of_the_tagger_is_reached_by_its_own_name() -> None:
    wider = {"LOCATION", "TIME", "QUANTITY"}  # names that others use for more than we do
    assert {label: find_targets(label) for label in LABELS if label not in wider} == {
        label: frozenset({label}) for label in LABELS if label not in wider
    }
    assert all(label in (find_targets(label) or ()) for label in wider)


def test_own_labels_mean_what_their_family_means() -> None:
    for label in TAXONOMY:
        family = {TAXONOMY.lineage(t)[-1] for t in find_targets(label.name) or ()}
        top = TAXONOMY.lineage(label.name)[-1]
        assert family <= {top, "OTHER_IDENTIFYING_ATTRIBUTE"}, label.name


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_name_has_an_answer(label: str, source: str) -> None:
    meant = find_targets(label, source)
    assert meant is None or meant <= set(LABELS)


def test_an_ignored_name_differs_from_an_unknown_one() -> None:
    assert [find_targets(label) for label in ("protein", "EMAIL_ADDRESS", "case_number", "IBAN_CODE")] == [None] * 4
    assert [find_targets(label) for label in ("ward", "B-WIDGET", "")] == [frozenset()] * 3


@pytest.mark.parametrize("label", ["WORK_OF_ART", "politicalparty", "creative-work", "jobTitle", "Correo electrónico"])
def test_spelling_does_not_matter(label: str) -> None:
    for spelt in (label.upper(), label.lower(), label.replace("_", "-"), label.replace("-", " "), f"B-{label}"):
        assert find_targets(spelt) == find_targets(label)


def test_lines_of_the_user_come_first_everywhere(tmp_path: Path) -> None:
    path = tmp_path / "map.toml"
    path.write_text('misc = ["EVENT"]\nGadget = ["PRODUCT"]\nPER = []\n')
    known = read_label_map(path)
    assert known.find_targets("MISC") == known.find_targets("misc", "crossner") == {"EVENT"}
    assert known.find_targets("B-gadget") == {"PRODUCT"}
    assert known.find_targets("per") is None
    assert known.find_targets("ORG") == find_targets("ORG")
    assert find_targets("Gadget") == frozenset()


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ('A = ["PERSONN"]', UnknownNameError, "PERSONN"),
        ('A = "PERSON"', DataError, "A: a list of labels is required, got str"),
        ("A = [", DataError, "TOML"),
    ],
)
def test_broken_lines_are_told(tmp_path: Path, text: str, error: type[Exception], said: str) -> None:
    path = tmp_path / "map.toml"
    path.write_text(text)
    with pytest.raises(error, match=said):
        read_label_map(path)
