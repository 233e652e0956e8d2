"""One replacement for several entity keys: when they are one person."""

from __future__ import annotations

import pytest

from allonym.restoration import Restorer
from allonym.vault.records import Known


def restorer(*originals, replacement="Darryn Henderson", label="PERSON", operator="pseudonym@1"):
    return Restorer([Known(replacement, o, label, operator, f"e{i}") for i, o in enumerate(originals)])


@pytest.mark.parametrize(
    ("originals", "fullest"),
    [
        (["Tom Ellery", "Thomas Ellery"], "Thomas Ellery"),
        (["Thomas Ellery", "Tom Ellery", "Thomas J. Ellery"], "Thomas J. Ellery"),
        (["Tom", "Thomas Ellery", "Ellery"], "Thomas Ellery"),
        (["Mr Ellery", "Thomas Ellery"], "Thomas Ellery"),
    ],
)
def test_names_that_can_be_one_persons_are_one_referent(originals, fullest):
    known = restorer(*originals)
    done = known.restore("Yes, Darryn Henderson came.")
    assert (done.text, done.unknown) == (f"Yes, {fullest} came.", 0)
    assert known.shared == 0


@pytest.mark.parametrize(
    "originals",
    [
        ["Tom Ellery", "Timothy Ellery"],
        ["Tom Ellery", "Tom Baker"],
        ["Mr Ellery", "Mrs Ellery"],
        ["Tom Ellery", "Thomas Ellery", "Baker"],
        ["Tom A. Ellery", "Tom B. Ellery"],
    ],
)
def test_others_are_several(originals):
    known = restorer(*originals)
    done = known.restore("Yes, Darryn Henderson came.")
    assert (done.text, done.unknown) == ("Yes, Darryn Henderson came.", 1)
    assert known.shared == 1


def test_only_people_by_name():
    done = restorer("Jane", "Jane Doe", replacement="[PERSON]", operator="tag@1").restore("a [PERSON]")
    assert done.unknown == 1
    places = restorer("Tom Ellery", "Thomas Ellery", replacement="Elm Road", label="STREET").restore("Elm Road")
    assert places.unknown == 1


def test_keys_of_earlier_versions_are_the_same_referent():
    known = Restorer(
        Known("[PERSON_1]", original, "PERSON", "tag@1", entity)
        for original, entity in [
            ("Łukasz Nowak", "PERSON:łukasz nowak"),
            ("Mr Nowak", "PERSON:łukasz nowak"),
            ("Łukasz Nowak", "PERSON:lukasz nowak"),
        ]
    )
    result = known.restore("[PERSON_1] came.")
    assert (result.text, result.unknown) == ("Łukasz Nowak came.", 0)


def test_other_keys_with_other_originals_are_several_referents():
    known = Restorer(
        Known("[PERSON_1]", original, "PERSON", "tag@1", entity)
        for original, entity in [("Łukasz Nowak", "PERSON:łukasz nowak"), ("Anna Berg", "PERSON:anna berg")]
    )
    assert known.restore("[PERSON_1] came.").unknown == 1
