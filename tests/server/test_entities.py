"""Caller is who as a person says: merging and splitting entities."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("fastapi")

from allonym.document import Entity, Span
from allonym.link import Linked
from allonym.server.processing import regroup_entities

TEXT = "Ada Brook met Bea Stone. Ada Brook left; Bea stayed."


def linked(*groups: list[int]) -> Linked:
    """Entities whose mentions stand at ``place * 10``."""
    entities = [
        Entity(f"PERSON:{i}", "PERSON", tuple(Span(p * 10, p * 10 + 5, "PERSON") for p in g))
        for i, g in enumerate(groups)
    ]
    return Linked(tuple(entities))


def places(made: Linked) -> list[list[int]]:
    return [[s.start // 10 for s in e.spans] for e in made.entities]


def told(numbers: dict[int, int]) -> dict[tuple[int, int], int]:
    return {(p * 10, p * 10 + 5): n for p, n in numbers.items()}


def test_the_same_number_is_one_entity() -> None:
    assert places(regroup_entities(linked([0, 2], [1], [3]), told({0: 7, 2: 7, 1: 7}))) == [[0, 1, 2], [3]]


def test_different_numbers_are_two_entities_with_keys_of_their_own() -> None:
    made = regroup_entities(linked([0, 1, 2]), told({0: 1, 1: 2, 2: 1}))
    assert places(made) == [[0, 2], [1]]
    assert len({e.key for e in made.entities}) == 2


def test_without_a_number_a_mention_goes_with_most_of_those_it_was_linked_with() -> None:
    assert places(regroup_entities(linked([0, 1, 2, 3]), told({0: 5, 1: 6, 2: 6}))) == [[0], [1, 2, 3]]


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=12),
    st.dictionaries(st.integers(0, 11), st.integers(0, 3), max_size=12),
)
def test_every_mention_stays_in_exactly_one_entity(owners: list[int], numbers: dict[int, int]) -> None:
    groups = [[p for p, o in enumerate(owners) if o == owner] for owner in sorted(set(owners))]
    made = regroup_entities(linked(*groups), told(numbers))
    assert sorted(p for group in places(made) for p in group) == list(range(len(owners)))
    assert len({e.key for e in made.entities}) == len(made.entities)
    for one, n in numbers.items():
        for other, m in numbers.items():
            if one < len(owners) and other < len(owners):
                assert any(one in g and other in g for g in places(made)) == (n == m)


def test_merged_mentions_get_one_replacement_and_split_ones_two(admin: Any) -> None:
    marks = [(0, 9), (14, 23), (25, 34), (41, 44)]
    spans = [{"start": a, "end": b, "label": "PERSON"} for a, b in marks]
    plain = admin.post("/v1/plans", json={"text": TEXT, "spans": spans}).json()
    assert [e["replacement"] for e in plain["plan"]["edits"]] == [
        "[PERSON_1]",
        "[PERSON_2]",
        "[PERSON_1]",
        "[PERSON_2]",
    ]
    merged = [{**s, "entity": 1} for s in spans]
    made = admin.post("/v1/anonymize", json={"text": TEXT, "spans": merged, "scope": "merged"}).json()
    assert made["text"] == "[PERSON_1] met [PERSON_1]. [PERSON_1] left; [PERSON_1] stayed."
    assert {s["entity"] for s in made["spans"]} == {1}
    split = [{**s, "entity": n} for s, n in zip(spans, (1, 2, 3, 2), strict=True)]
    made = admin.post("/v1/anonymize", json={"text": TEXT, "spans": split, "policy": "pseudonyms"}).json()
    first, second, third, _ = (e["replacement"] for e in made["plan"]["edits"])
    assert len({first, second, third}) == 3
