"""The taxonomy table: its facts (cases/labels.jsonl), its shape, and the two directions of mapping."""

from __future__ import annotations

import csv
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from tests.rows import check_each_row

from allonym.errors import PolicyError, UnknownNameError
from allonym.labels import SCHEMES, TAXONOMY, Label, Taxonomy, from_scheme, to_scheme

ROWS = [json.loads(line) for line in (Path(__file__).parent / "cases/labels.jsonl").read_text("utf-8").splitlines()]


def cases(case: str) -> list[Any]:
    return [row for row in ROWS if row["case"] == case]


def test_table_6_of_p2_is_complete() -> None:
    assert len(cases("p2")) == 40


@check_each_row("row", cases("p2"))
def test_p2_tag_score_and_google_name(row: dict[str, Any]) -> None:
    label = TAXONOMY.get(row["label"])
    assert label.risk == row["score"]
    assert row["google"] in label.names["dlp"]
    assert to_scheme(label.name, "p2") == row["tag"]
    assert from_scheme(row["tag"], "p2") == (label.name,)


@check_each_row("row", cases("from"))
def test_foreign_name_is_read(row: dict[str, Any]) -> None:
    assert from_scheme(row["name"], row["scheme"]) == tuple(row["labels"])


@check_each_row("row", cases("to"))
def test_foreign_name_is_written(row: dict[str, Any]) -> None:
    assert to_scheme(row["label"], row["scheme"]) == row["name"]


@check_each_row("row", cases("tree"))
def test_place_in_the_tree(row: dict[str, Any]) -> None:
    assert {name: TAXONOMY.get(name).parent or "" for name in row["children"]} == dict.fromkeys(
        row["children"], row["parent"]
    )


def test_file_has_the_header_and_each_name_once() -> None:
    text = files("allonym").joinpath("labels.tsv").read_text(encoding="utf-8")
    header, *rows = csv.reader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
    assert header == ["name", "parent", "kind", "risk", "description", *SCHEMES]
    assert {len(row) for row in rows} == {len(header)}
    assert [row[0] for row in rows] == [label.name for label in TAXONOMY]


def test_every_label_is_well_formed() -> None:
    seen: set[str] = set()
    for label in TAXONOMY:
        assert label.name.isidentifier() and label.name.isupper() and label.name.isascii(), label
        assert label.kind in ("direct", "quasi", "none") and 0 <= label.risk <= 5, label
        assert label.kind != "none" or label.risk == 0, label
        assert label.kind != "direct" or label.risk >= 2, label
        assert label.description == label.description.strip() and 3 <= len(label.description) <= 90, label
        assert label.parent is None or label.parent in seen, f"{label.name} stands before its parent"
        for names in label.names.values():
            assert all(n and n == n.strip() for n in names) and len(set(names)) == len(names), label
        seen.add(label.name)


def test_what_is_written_can_be_read_back() -> None:
    for label in TAXONOMY:
        for scheme in SCHEMES:
            foreign = to_scheme(label.name, scheme)
            if foreign is not None:
                assert set(from_scheme(foreign, scheme)) & set(TAXONOMY.lineage(label.name)), (label.name, scheme)


def test_families() -> None:
    assert TAXONOMY.lineage("DE_VAT_ID") == ("DE_VAT_ID", "VAT_NUMBER", "TAX_ID", "GOVERNMENT_ID")
    assert TAXONOMY.are_related("US_SSN", "DE_PASSPORT")
    assert TAXONOMY.within("DE_PASSPORT", "PASSPORT") and not TAXONOMY.within("PASSPORT", "DE_PASSPORT")
    assert not TAXONOMY.are_related("EMAIL_ADDRESS", "URL")
    assert not TAXONOMY.are_related("CREDIT_CARD", "PHONE_NUMBER")
    assert TAXONOMY.descendants("ORIGIN") == ("ORIGIN", "ETHNIC_GROUP", "NATIONALITY", "RELIGION", "POLITICAL_GROUP")
    assert TAXONOMY.lineage("NO_SUCH_LABEL") == ("NO_SUCH_LABEL",)


def test_national_variants_are_like_their_parent() -> None:
    parents = {"NATIONAL_ID", "PASSPORT", "DRIVER_LICENSE", "HEALTH_ID", "COMPANY_ID", "LICENSE_PLATE", "PHONE_NUMBER"}
    for label in TAXONOMY:
        assert label.parent or label.name[2] != "_", f"{label.name} belongs to a country and has no parent"
        if label.parent in parents:
            parent = TAXONOMY.get(label.parent)
            assert (label.kind, label.risk) == (parent.kind, parent.risk), label.name


def test_kinds_that_the_papers_state() -> None:
    kinds = {
        "direct": "PERSON PHONE_NUMBER STREET_ADDRESS BANK_ACCOUNT CREDIT_CARD PASSPORT US_SSN COMPANY EXECUTIVE URL",
        "quasi": "GENDER NATIONALITY CITY ORGANIZATION LOCATION PRODUCT EVENT DATE",
        "none": "PRONOUN ORDINAL CARDINAL",
    }
    for kind, names in kinds.items():
        assert {name: TAXONOMY.get(name).kind for name in names.split()} == dict.fromkeys(names.split(), kind)


def test_a_circle_is_refused() -> None:
    with pytest.raises(PolicyError, match="own ancestor"):
        Taxonomy([Label("A", "B", "quasi", 1), Label("B", "A", "quasi", 1)])


def test_unknown_names_say_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean: EMAIL_ADDRESS"):
        TAXONOMY.get("EMAIL_ADRESS")
    with pytest.raises(UnknownNameError, match="US_SSN"):
        to_scheme("US_SNN", "presidio")
    with pytest.raises(UnknownNameError, match="presidio"):
        to_scheme("PERSON", "presidoi")
    with pytest.raises(UnknownNameError, match="spacy"):
        from_scheme("PERSON", "spaCy")
    with pytest.raises(UnknownNameError):
        TAXONOMY.descendants("NO_SUCH_LABEL")


def test_extended() -> None:
    own = Label("STORE_CARD", "MEMBER_ID", "direct", 4, "Card of our store", {"presidio": ("ACME_CARD",)})
    more = TAXONOMY.extend([own])
    assert len(more) == len(TAXONOMY) + 1 and "STORE_CARD" not in TAXONOMY
    assert more.are_related("STORE_CARD", "ORDER_NUMBER")
    assert more.from_scheme("ACME_CARD", "presidio") == ("STORE_CARD",)
    assert more.to_scheme("STORE_CARD", "dlp") == "GENERIC_ID"
    assert from_scheme("ACME_CARD", "presidio") == ()
    with pytest.raises(PolicyError, match="PERSON exists"):
        TAXONOMY.extend([Label("PERSON", None, "direct", 5)])
    with pytest.raises(UnknownNameError, match="MEMBER_ID"):
        TAXONOMY.extend([Label("STORE_CARD", "MEMBER_IDS", "direct", 4)])
