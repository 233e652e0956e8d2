"""Originals in outputs, by digests alone: planted variants are found, what is common or chance is counted apart."""

from __future__ import annotations

import json
import math

import pytest
from tests.rows import check_each_row

from allonym.errors import DataError, UnknownNameError, UsageError
from allonym.evaluate import generations
from allonym.report import render
from allonym.report.evaluate.detection import generations_section
from allonym.report.page import Page
from allonym.vault import digests as checking

pytest.importorskip("wordfreq")
KEY = bytes(range(32))
PEOPLE = (
    ("Zaphra Quorby", "PERSON"),
    ("Mark Stone", "PERSON"),
    ("Elva Quorby", "PERSON"),
    ("(206) 555-0147", "PHONE_NUMBER"),
    ("zaphra.quorby@example.com", "EMAIL_ADDRESS"),
    ("Tillingford", "CITY"),
)


def digests(*pairs: tuple[str, str]) -> checking.Digests:
    computed = [(label, *checking.compute_digests(KEY, original, label)) for original, label in pairs or PEOPLE]
    return checking.Digests.of(KEY, [(label, kinds) for label, _, kinds in computed], max(n for _, n, _ in computed))


def places(*texts: str, **more):
    return [(p.output, p.start, p.end, p.kind, p.common) for p in look(*texts, **more).places]


def look(*texts: str, **more):
    return generations([("", text) for text in texts], digests(), **more)


@check_each_row(
    "text, found, kind",
    [
        ("I am ZAPHRA quorby.", "ZAPHRA quorby", "whole"),
        ("Ask for Quorby, Zaphra!", "Quorby, Zaphra", "whole"),
        ("Dear Z. Quorby", "Z. Quorby", "shortened"),
        ("Dear Ms Quorby", "Quorby", "part"),
        ("this is Quorbi speaking", "Quorbi", "edited"),
        ("Zaphraa Quorby here", "Zaphraa Quorby", "edited"),
        ("call 1-206-555-0147 now", "1-206-555-0147", "part"),
        ("call two zero six five five five zero one four seven", None, "whole"),
        ("on 206 555 0148", "206 555 0148", "edited"),
        ("it is Qorby", "Qorby", "edited"),
        ("zaphra.quorby at example dot com", "zaphra.quorby", "whole"),
        ("a Quorby", "Quorby", "part"),
        ("Zaphra Quorby's", "Zaphra Quorby", "whole"),
        ("in tillingford", "tillingford", "whole"),
    ],
)
def test_a_planted_variant_is_found_in_its_place(text, found, kind):
    result = look(text)
    (place,) = result.places
    assert place.kind == kind and not place.common
    assert found is None or text[place.start : place.end] == found
    assert result.all.occurrences == 1 and result.all.outputs.value == 1


@pytest.mark.parametrize("text", ["", "Nothing here.", "quarry", "206 555", "the city of Tilling", "ford, phra"])
def test_nothing_is_found_where_nothing_is(text):
    assert look(text).places == ()


def test_one_letter_too_few_is_found_in_the_shortest_names_too():
    found = generations([("", "this is Vrok")], digests(("Vrook", "PERSON")))
    assert [(p.start, p.end, p.kind) for p in found.places] == [(8, 12, "edited")]


def test_labels_of_a_policys_own_can_be_chosen():
    given = digests(("Zaphra Quorby", "PERSON"), ("Project Tillingwurm", "PROJECT"))
    found = generations([("", "Zaphra Quorby of Project Tillingwurm")], given, labels=["PROJECT"])
    assert [p.label for p in found.places] == ["PROJECT"]


def test_a_common_word_is_counted_apart():
    result = look("Mark my words, leave no stone unturned.")
    assert (result.all.occurrences, result.all.common, result.all.outputs.value) == (0, 2, 0)
    assert all(place.common for place in result.places)
    assert look("Mark Stone").all.occurrences == 1  # both words together are rare


def test_initials_alone_are_counted_apart_and_only_in_capitals():
    result = look("signed Z.Q. or ZQ", "zq")
    assert (result.all.occurrences, result.all.initials) == (0, 2)


def test_originals_count_once_and_a_part_that_two_share_tells_of_neither():
    shared = look("Quorby said so", "and Quorby again")
    assert (shared.all.occurrences, shared.all.leaked.value, shared.all.outputs.value) == (2, 0, 1)
    alone = look("Zaphra said so", "and Zaphra again", "hello")
    assert alone.all.leaked.value == pytest.approx(1 / len(PEOPLE))
    assert alone.all.outputs.value == pytest.approx(2 / 3)
    assert alone.all.outputs.low < 2 / 3 < alone.all.outputs.high


def test_direct_identifiers_have_a_row_of_their_own():
    result = look("from Tillingford", "Zaphra Quorby")
    rows = {row.label: row for row in result.labels}
    assert (result.direct.occurrences, result.all.occurrences) == (1, 2)
    assert rows["CITY"].occurrences == rows["PERSON"].occurrences == 1
    assert result.direct.originals == len(PEOPLE) - 1


def test_labels_can_be_chosen_with_those_below():
    assert [p.label for p in look("Zaphra Quorby, Tillingford", labels=["LOCATION"]).places] == ["CITY"]
    with pytest.raises(UnknownNameError):
        look("x", labels=["NOSUCH"])
    with pytest.raises(DataError, match="no original"):
        look("x", labels=["IBAN_CODE"])


def test_chance_is_what_word_frequencies_lead_one_to_expect():
    rare, common = look("Zaphra Quorby " + "so " * 1000), look("Mark Stone " + "so " * 1000)
    assert 0 < rare.all.chance < common.all.chance < 1
    assert look("Mark Stone " + "so " * 9000).all.chance > 5 * common.all.chance


def test_the_baseline_is_compared():
    own = ["Zaphra Quorby"] * 30 + ["nobody"] * 10
    result = look(*own, baseline=["Quorby"] * 2 + ["nobody"] * 38)
    assert (result.all.outputs.value, result.all.baseline.value) == (0.75, 0.05)
    assert result.all.excess.value == pytest.approx(0.7)
    assert 0.4 < result.all.excess.low < 0.7 < result.all.excess.high < 0.9
    assert math.isnan(look("x").all.excess.value)


def test_newcombes_interval_is_that_of_the_literature():
    """Newcombe 1998, Table II, case (a): 56/70 and 48/80, method 10: 0.0524 to 0.3339."""
    texts = ["Zaphra"] * 56 + ["x"] * 14
    result = look(*texts, baseline=["Zaphra"] * 48 + ["x"] * 32)
    assert (round(result.all.excess.low, 4), round(result.all.excess.high, 4)) == (0.0524, 0.3339)


def test_what_was_found_in_the_open_is_found_by_digests_as_well():
    """Against a search of the plain text for whole words."""
    import re

    texts = [f"It was {name} {i}, {other}." for i, (name, _) in enumerate(PEOPLE) for other, _ in PEOPLE]
    result = generations([(str(i), t) for i, t in enumerate(texts)], digests())
    for i, text in enumerate(texts):
        wanted = {m.span() for name, _ in PEOPLE for m in re.finditer(rf"(?<!\w){re.escape(name)}", text)}
        own = [(p.start, p.end) for p in result.places if p.output == str(i)]
        for start, end in wanted:
            assert any(a < end and start < b for a, b in own), (i, start)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: generations([], digests()), DataError),
        (lambda: look("x", baseline=[]), DataError),
        (lambda: look("x", language="xx"), DataError),
        (lambda: look("x", common=2), UsageError),
    ],
)
def test_what_cannot_be_is_told(call, error):
    with pytest.raises(error):
        call()


def test_no_text_is_in_what_comes_out():
    result = look("Zaphra Quorby on (206) 555-0147", "Tillingford", baseline=["x"])
    told = result.to_dict()
    section = generations_section(told)
    assert section is not None
    page = Page("Originals", (section,))
    said = json.dumps(told, allow_nan=False) + repr(result) + "".join(render(page, f) for f in ("html", "markdown"))
    for word in ("zaphra", "quorby", "555-0147", "tillingford"):
        assert word not in said.lower()
    assert "100" in render(page, "markdown") and "PHONE_NUMBER" in said


def test_a_clean_result_says_what_it_cannot_rule_out():
    section = generations_section(look(*["nothing"] * 400).to_dict())
    assert section is not None
    assert "Up to 0.95" in render(Page("x", (section,)), "markdown").replace("\u00a0", " ")
