"""Leaks of outputs: whole surfaces and parts of names, by label, own and across; nothing shows unless asked for."""

from __future__ import annotations

import json
import math

import pytest

import allonym
from allonym.errors import AllonymError, DataError
from allonym.evaluate.generated_originals import output_leaks
from allonym.report.evaluate.utility import downstream_section

TEXTS = [
    "Sarah Connor wrote to s.connor@example.com about the rent.",
    "Tom Brook called, the will of Tom Brook is lost.",
]
NAMED = [[("PERSON", "Sarah Connor"), ("EMAIL_ADDRESS", "s.connor@example.com")], [("PERSON", "Tom Brook")]]


def test_surfaces_and_parts_of_names() -> None:
    found = output_leaks(["Connor wrote.", "He called."], TEXTS, entities=NAMED)
    assert found.outputs.value == 0.5
    assert found.identifiers.value == pytest.approx(1 / 3)
    assert found.types["PERSON"].value == 0.5
    assert found.types["EMAIL_ADDRESS"].value == 0
    assert [(s.output, s.label) for s in found.found] == [(0, "PERSON")]


def test_no_leak_at_all_still_has_an_interval() -> None:
    found = output_leaks(["Nobody wrote.", "Nobody called."], TEXTS, entities=NAMED).identifiers
    assert (found.value, found.low, found.n) == (0, 0, 3)
    assert found.high > 0.3


@pytest.mark.parametrize("output", ["Connors wrote.", "connor wrote.", "SarahConnor", "s.connor@example.community"])
def test_other_words_are_no_leak(output: str) -> None:
    assert output_leaks([output, ""], TEXTS, entities=NAMED).outputs.value == 0


def test_across_looks_for_everybody() -> None:
    outputs = ["Tom Brook called.", "Nobody called."]
    assert output_leaks(outputs, TEXTS, entities=NAMED).outputs.value == 0
    assert output_leaks(outputs, TEXTS, entities=NAMED, across=True).outputs.value == 0.5


def test_identifiers_of_plans_and_of_a_policy() -> None:
    plans = [allonym.anonymize(t).plan for t in TEXTS]
    for given in ({"plans": plans}, {}):
        found = output_leaks(["Mail s.connor@example.com", "-"], TEXTS, **given)  # type: ignore[arg-type]
        assert found.types["EMAIL_ADDRESS"].value == 1
        assert found.outputs.value == 0.5
    with pytest.raises(AllonymError, match="another text"):
        output_leaks(["a", "b"], TEXTS[::-1], plans=plans)


def test_quasi_identifiers_do_not_count() -> None:
    found = output_leaks(["May 2020"], ["In May 2020."], entities=[[("DATE", "May 2020")]])
    assert math.isnan(found.identifiers.value)
    assert found.outputs.value == 0
    assert found.types == {}


def test_unequal_lengths() -> None:
    with pytest.raises(DataError):
        output_leaks(["a"], TEXTS)
    with pytest.raises(DataError):
        output_leaks(["a", "b"], TEXTS, entities=NAMED[:1])


def test_nothing_shows_unless_asked_for() -> None:
    found = output_leaks(["Sarah Connor", "x"], TEXTS, entities=NAMED)
    assert "Connor" not in repr(found) + repr(found.found) + json.dumps(found.to_dict())
    told = found.to_dict(texts=True)
    assert "Connor" in json.dumps(told)
    assert "Connor" not in repr(downstream_section({"leaks": told}))
    assert "Connor" in repr(downstream_section({"leaks": told}, texts=True))
