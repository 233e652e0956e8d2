"""Passages and alignment: nothing is lost, and a change counts only for the place that it lies in."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym.replace.rewriter import align_output, split_passages

CASES = [  # source with places in braces, output, what is found at each place, rejected
    ("{Sarah Connor} lives here.", "Mary Hill lives here.", ["Mary Hill"], 0),
    ("{Sarah Connor} lives here.", "Mary Ann Hill lives here.", ["Mary Ann Hill"], 0),
    ("{Sarah Connor} lives here.", "Sarah Connor lives here.", ["Sarah Connor"], 0),
    ("Ask {Ada}, not {Bob}.", "Ask Eve, not Tom.", ["Eve", "Tom"], 0),
    ("Ask {Ada}, not {Bob}.", "Ask Ada, not Tom.", ["Ada", "Tom"], 0),
    ("Ask {Ada}, not {Bob}.", "Tell Ada, not Tom.", ["Ada", "Tom"], 1),
    ("Ask {Ada}, not {Bob}.", "Tell Eve, not Tom.", ["Eve", "Tom"], 1),
    ("Ask {Ada}, not {Bob}.", "Do ask Eve, not Tom.", [None, "Tom"], 1),
    ("Ask {Ada} now.", "Ask Eve right now.", ["Eve right"], 0),
    ("Ask {Ada} now.", "Ask Ada right now.", [None], 1),
    ("Ask {Ada} now.", "Ask now.", [None], 0),
    ("Ask {Ada} now.", "", [None], 1),
    ("{Ada} {Bob} came.", "Eve Tom came.", ["Eve", "Tom"], 0),
    ("{Ada} {Bob} came.", "Eve Ann Tom came.", [None, None], 1),
    ("{St. John's} is cold.", "St. Mary's is cold.", ["St. Mary's"], 0),
    ("He saw {Rome}.", "He saw Paris.", ["Paris"], 0),
    ("He saw {Rome}. It rained.", "He saw Paris. It rained.", ["Paris"], 0),
    ("{...} is a sign.", "x is a sign.", ["x"], 0),
]


@check_each_row("marked, output, found, rejected", CASES)
def test_changes_belong_to_their_places(marked, output, found, rejected):
    places, source = [], ""
    for part in marked.replace("}", "{").split("{"):
        if len(places) < (marked.count("{")) and source + part and marked.find("{" + part + "}") >= 0 and part:
            places.append((len(source), len(source) + len(part)))
        source += part
    got = align_output(source, output, places)
    assert list(got.values) == found
    assert got.rejected == rejected


def test_what_is_kept_is_counted():
    assert align_output("Ask Ada, not Bob.", "Ask Eve, not Bob!", [(4, 7)]).unchanged == (4, 5)
    assert align_output("Ask Ada", "Ask Ada", []).unchanged == (2, 2)


def test_sentences_are_put_together_and_long_ones_cut():
    text = "One. Two.\nThree words here. " + "word " * 30 + "end."
    cut = [text[a:b] for a, b in split_passages(text, [], 40)]
    assert cut[0] == "One. Two.\nThree words here."
    assert all(len(c) <= 40 for c in cut)
    assert " ".join(cut).split() == text.split()


def test_no_cut_goes_through_a_place():
    text = "He met Dr. No. Then J. R. R. Tolkien came to town."
    places = [(7, 13), (20, 36)]
    for length in (1, 10, 20, 40):
        cut = split_passages(text, places, length)
        assert all(any(a <= start and end <= b for a, b in cut) for start, end in places)


@given(st.text("ab. \n!", max_size=80), st.integers(1, 30), st.data())
def test_passages_hold_the_whole_text(text, length, data):
    bounds = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=6)))
    places = [
        p for p in zip(bounds[::2], bounds[1::2], strict=False) if text[slice(*p)].strip() == text[slice(*p)] != ""
    ]
    cut = split_passages(text, places, length)
    assert "".join(text[a:b] for a, b in cut).split() == text.split() or "".join(
        "".join(text[a:b].split()) for a, b in cut
    ) == "".join(text.split())
    assert all(a < b for a, b in cut) and all(x[1] <= y[0] for x, y in pairwise(cut))
    assert all(any(a <= start and end <= b for a, b in cut) for start, end in places)


@given(st.text("ab c", max_size=30), st.text("ab c", max_size=30), st.data())
def test_any_output_can_be_aligned(source, output, data):
    bounds = sorted(data.draw(st.sets(st.integers(0, len(source)), max_size=6)))
    places = list(zip(bounds[::2], bounds[1::2], strict=False))
    got = align_output(source, output, places)
    assert len(got.values) == len(places)
    assert all(value is None or value in output for value in got.values)
