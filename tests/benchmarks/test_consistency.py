"""benchmarks/consistency.py: who counts as whose pseudonym, counted by hand."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest
from benchmarks.consistency import (
    Marked,
    Outcome,
    Text,
    count_outcomes,
    find_bearer,
    name_personas,
    names_somebody,
    pair_kind,
    read_descriptions,
    read_emails,
)


def marked(text: str, *mentions: tuple[str, str]) -> Text:
    found, at = [], 0
    for name, chain in mentions:
        start = text.index(name, at)
        at = start + len(name)
        found.append(Marked(start, at, chain))
    return Text("t", text, tuple(found))


def test_pairs_of_one_person_and_of_two() -> None:
    text = marked(
        "Ada Brook met Bo Day. Brook left, then Ada Moor.",
        *zip(("Ada Brook", "Bo Day", "Brook", "Ada Moor"), ("a", "b", "a", "c"), strict=True),
    )
    figures, kinds, wrong = count_outcomes([text], None)
    assert (figures["one_person_pairs"], figures["two_persons_pairs"]) == (1, 5)
    assert (figures["one_person"], figures["two_persons"]) == (1, 1)
    assert not kinds and not wrong


def test_a_wrong_split_and_a_wrong_merge_are_told_apart() -> None:
    text = marked("Ada Brook met Brook and Zed.", ("Ada Brook", "a"), ("Brook", "b"), ("Zed", "a"))
    figures, kinds, wrong = count_outcomes([text], None)
    assert figures["one_person"] == 0
    assert figures["two_persons"] == 0.5
    assert kinds == {"split: short or other given name": 1, "merged: part of a name": 1}
    assert [w["originals"] for w in wrong] == [["Ada Brook", "Brook"], ["Ada Brook", "Zed"]]


@pytest.mark.parametrize(
    ("address", "who"),
    [
        ("emma.tyler@example.com", 1),
        ("etyler@example.com", 1),
        ("e..tyler@example.com", 1),
        ("finn.tyler@example.com", 2),
        ("moor@example.com", 3),
        ("tyler@example.com", ("address", "tyler")),
        ("sales@example.com", ("address", "sales")),
    ],
)
def test_an_address_belongs_to_the_new_person_it_is_made_of(address: str, who: object) -> None:
    assert find_bearer(address, {1: "Emma Tyler", 2: "Finn Tyler", 3: "Moor, Cy"}) == who


def test_entities_with_one_full_name_are_one_person() -> None:
    kinds = ["PERSON", "PERSON", "PERSON", "EMAIL_ADDRESS"]
    found = [Outcome(1, "Emma Tyler"), Outcome(2, "Tyler, Emma"), Outcome(3, "Emma"), Outcome(4, "e.tyler@example.com")]
    a, b, c, d = name_personas(found, kinds)
    assert a == b == d != c


@pytest.mark.parametrize("surface", ["Ada Brook", "ada.brook@example.com", "TK", "Brook, Ada", "Aunt May"])
def test_names(surface: str) -> None:
    assert names_somebody(surface)


@pytest.mark.parametrize("surface", ["the team", "A contact", "everyone", "Oakdale cheerleaders", "other SME"])
def test_common_nouns(surface: str) -> None:
    assert not names_somebody(surface)


def test_kinds_of_pairs() -> None:
    assert pair_kind("Ada Brook", "a.brook@example.com") == "address and name"
    assert pair_kind("Ada Brook", "Brook, Ada") == "same words"
    assert pair_kind("Ada Brook", "AB") == "initials"
    assert pair_kind("Steven Brook", "Steve") == "short or other given name"
    assert pair_kind("Steven Brook", "Steve Brook") == "one name word shared"


def test_gold_is_read_without_pronouns_groups_and_nested_mentions(tmp_path: Path) -> None:
    text = "Ada Brook and I met the team and Bo Day's friends."
    row = {"id": "1", "text": text, "spans": []}

    def mark(name: str, chains: list[str], pronoun: bool = False, label: str = "PER") -> None:
        start = text.index(name)
        row["spans"].append(  # type: ignore[attr-defined]
            {"start": start, "end": start + len(name), "label": label, "entity_ids": chains, "pronoun": pronoun}
        )

    mark("Ada Brook", ["a"])
    mark("I", ["a"], pronoun=True)
    mark("the team", ["a", "b"])
    mark("Bo Day's friends", ["c", "d"])
    mark("Bo Day", ["b"])
    path = tmp_path / "threads.jsonl"
    path.write_text(json.dumps(row) + "\n", "utf-8")
    (found,) = read_emails(path)
    assert [text[m.start : m.end] for m in found.mentions] == ["Ada Brook", "Bo Day"]


def test_another_text_is_refused(tmp_path: Path) -> None:
    chains, texts = tmp_path / "chains.jsonl", tmp_path / "texts.jsonl"
    digest = sha256(b"Ada met Bo.").hexdigest()
    chains.write_text(json.dumps({"id": "1", "sha256": digest, "mentions": [[0, 3, "p1"]]}) + "\n", "utf-8")
    texts.write_text(json.dumps({"id": "1", "text": "Ada met Bo."}) + "\n", "utf-8")
    (found,) = read_descriptions(chains, texts)
    assert found.mentions == (Marked(0, 3, "p1"),)
    texts.write_text(json.dumps({"id": "1", "text": "Ada met Cy."}) + "\n", "utf-8")
    with pytest.raises(SystemExit, match="is not the one that was marked"):
        list(read_descriptions(chains, texts))
