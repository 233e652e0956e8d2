import itertools
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from allonym.document import Span
from allonym.resolve import decide, resolve

labels = st.sampled_from(["PERSON", "PERSON_FIRSTNAME", "LOCATION", "CITY", "US_SSN", "URL", "EMAIL_ADDRESS"])
spans = st.builds(
    lambda a, n, label, score: Span(a, a + n, label, score, "test"),
    st.integers(0, 30),
    st.integers(1, 15),
    labels,
    st.sampled_from([0.1, 0.5, 0.6, 0.8, 0.9, 1.0]),
)


def cover(found):
    return {i for s in found for i in range(s.start, s.end)}


@settings(max_examples=400)
@given(st.lists(spans, max_size=12), st.randoms())
def test_resolve_promises(found, rng: random.Random):
    out = resolve(found)
    assert cover(out) == cover(found)
    assert list(out) == sorted(out)
    assert all(a.end <= b.start for a, b in itertools.pairwise(out))
    assert resolve(out) == out
    shuffled = list(found)
    rng.shuffle(shuffled)
    assert resolve(shuffled + shuffled[:2]) == out


@given(st.lists(spans, max_size=12))
def test_every_candidate_is_accounted_for(found):
    out, decisions = decide(found)
    assert out == resolve(found)
    assert [d.span for d in decisions] == sorted(set(found))
    for decision in decisions:
        assert (decision.winner is None) == (decision.outcome == "kept")


def test_presidio_leaking_case():
    # Presidio REMOVE_INTERSECTIONS leaves "jklm" of these three in clear.
    text = "abcdefghijklmno"
    found = [Span(7, 13, "PERSON", 0.5), Span(0, 8, "LOCATION", 0.9), Span(5, 9, "US_SSN", 0.9)]
    out = resolve(found)
    assert cover(out) == set(range(13))
    assert "".join(c for i, c in enumerate(text) if i not in cover(out)) == "no"


def test_loser_of_the_family_is_absorbed_and_a_stranger_is_clipped():
    kin = resolve([Span(0, 14, "PERSON", 0.6), Span(10, 20, "PERSON_LASTNAME", 0.9)])
    assert [(s.start, s.end, s.label) for s in kin] == [(0, 20, "PERSON_LASTNAME")]
    strangers = resolve([Span(0, 14, "PERSON", 0.6), Span(10, 20, "US_SSN", 0.9)])
    assert [(s.start, s.end, s.label) for s in strangers] == [(0, 10, "PERSON"), (10, 20, "US_SSN")]


def test_a_short_winner_takes_the_label_of_what_is_around_it_and_no_general_one():
    [address] = resolve([Span(0, 39, "STREET_ADDRESS", 0.49), Span(31, 39, "UK_POSTCODE", 0.65)])
    assert (address.start, address.end, address.label) == (0, 39, "STREET_ADDRESS")
    [birth] = resolve([Span(0, 39, "DATE", 0.49), Span(31, 39, "DATE_OF_BIRTH", 0.95)])
    assert birth.label == "DATE_OF_BIRTH"


def test_a_score_of_eight_tenths_is_strong_and_one_of_a_half_is_middling():
    for lower, border in ((0.79, 0.8), (0.49, 0.5)):
        out = resolve([Span(0, 20, "URL", lower), Span(5, 9, "US_SSN", border)])
        assert Span(5, 9, "US_SSN", border) in out
        out = resolve([Span(0, 20, "URL", border), Span(5, 9, "US_SSN", border + 0.1)])
        assert out == (Span(0, 20, "URL", border),)


def test_longer_wins_among_the_strong_and_strong_beats_long():
    assert resolve([Span(0, 20, "EMAIL_ADDRESS", 0.9), Span(5, 20, "URL", 1.0)])[0].label == "EMAIL_ADDRESS"
    out = resolve([Span(0, 19, "US_SSN", 0.9), Span(0, 25, "URL", 0.3)])
    assert [(s.start, s.end, s.label) for s in out] == [(0, 19, "US_SSN"), (19, 25, "URL")]
