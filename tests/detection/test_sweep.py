"""The sweeps over sorted spans give what comparing each span with all others gives."""

import re
from dataclasses import replace
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from allonym.detection import TAGGER, mentions
from allonym.detection.ensemble import pair_overlaps
from allonym.detection.selection import MONTHS_AS_NAMES, _drop_superseded_findings
from allonym.detection.words import read_word_list
from allonym.document import Reach, Span, clip_intervals, merge_intervals, subtract_intervals
from allonym.labels import TAXONOMY
from allonym.policy import Policy
from allonym.resolve import decide, resolve

POLICY = Policy(name="x")
FUNCTION_WORDS = read_word_list("function_words")
TEXT = "April Stone May 4111 June Hart-Ng 12 a.b@c.de 5 August x, . ; Berg 77"
LABELS = (
    "PERSON",
    "PERSON_LASTNAME",
    "DATE",
    "ORGANIZATION",
    "PHONE_NUMBER",
    "EMAIL_ADDRESS",
    "FINANCIAL_ID",
    "US_SSN",
)
MONTHS = [(TEXT.index(month), TEXT.index(month) + len(month)) for month in sorted(MONTHS_AS_NAMES) if month in TEXT]

borders = st.one_of(
    st.tuples(st.integers(0, len(TEXT) - 1), st.integers(1, 30)).map(lambda b: (b[0], min(sum(b), len(TEXT)))),
    st.sampled_from(MONTHS),
)
scores = st.sampled_from([0.3, 0.5, 0.6, 0.8, 0.95, 1.0])
spans = st.builds(
    lambda interval, label, score, source: Span(*interval, label, score, source),
    borders,
    st.sampled_from(LABELS),
    scores,
    st.sampled_from([TAGGER, TAGGER, "rules:x", "lexicon:y"]),
)


def drop_superseded_pair_by_pair(text, findings):
    """What :func:`_drop_superseded_findings` does, by comparing each finding of the tagger with all others."""
    others = [s for s in findings if s.source != TAGGER]
    tagged = [s for s in findings if s.source == TAGGER]
    if not others or not tagged:
        return findings
    people = [s for s in tagged if s.label.startswith("PERSON")]
    months = [s for s in others if text[s.start : s.end] in MONTHS_AS_NAMES]
    given_names = {m for m in months if any(p.start <= m.start and m.end < p.end for p in people)}
    others = [s for s in others if s not in given_names]
    selected = list(others)
    for span in tagged:
        kin = [o for o in others if TAXONOMY.are_related(o.label, span.label)]
        if any(o.start <= span.start and span.end <= o.end for o in kin):
            continue
        if any(o.overlaps(span) for o in kin) or not any(o.overlaps(span) for o in others):
            selected.append(span)
            continue
        free = sorted(set(range(span.start, span.end)) - {i for o in others for i in range(o.start, o.end)})
        rests = merge_intervals((i, i + 1) for i in free)
        for a, b in rests:
            words = re.findall(r"[^\W_]+", text[a:b].lower())
            if sum(map(len, words)) > 1 and not all(word in FUNCTION_WORDS for word in words):
                a += len(text[a:b]) - len(text[a:b].lstrip())
                a += len(text[a:b]) - len(text[a:b].lstrip(".,;: "))
                selected.append(replace(span, start=a, end=a + len(text[a:b].rstrip())))
    return selected


@settings(max_examples=300)
@given(st.lists(spans, max_size=14))
def test_superseded_findings_are_those_of_a_comparison_of_all_pairs(findings):
    swept = _drop_superseded_findings(TEXT, list(findings), POLICY)
    assert sorted(swept) == sorted(drop_superseded_pair_by_pair(TEXT, findings))


def test_overlapping_findings_of_the_tagger_are_not_compared_with_each_other():
    wide, narrow = Span(0, 11, "PERSON", 0.9, TAGGER), Span(6, 15, "PERSON", 0.9, TAGGER)
    date = Span(12, 15, "DATE", 0.9, "rules:x")
    rest = replace(narrow, end=11)
    assert sorted(_drop_superseded_findings(TEXT, [wide, narrow, date], POLICY)) == sorted([wide, rest, date])


@given(st.lists(spans, max_size=10), borders)
def test_a_reach_answers_for_all_its_spans(many, interval):
    start, end = interval
    reach = Reach((s.start, s.end) for s in many)
    assert reach.contains(start, end) == any(s.start <= start and end <= s.end for s in many)
    assert reach.touches(start, end) == any(s.start < end and start < s.end for s in many)


@given(st.lists(spans, max_size=10), st.lists(spans, max_size=10))
def test_overlapping_pairs_are_all_found(some, others):
    pairs = [(span, other) for span, near in pair_overlaps(some, others) for other in near]
    assert sorted(pairs) == sorted((span, other) for span in some for other in others if span.overlaps(other))


@given(st.lists(borders, max_size=8), borders)
def test_clipping_and_subtracting_part_an_interval(intervals, interval):
    merged = merge_intervals(intervals)
    inside, outside = clip_intervals(merged, *interval), list(subtract_intervals(interval, merged))
    covered = {i for start, end in intervals for i in range(start, end)}
    characters = set(range(*interval))
    assert {i for start, end in inside for i in range(start, end)} == characters & covered
    assert {i for start, end in outside for i in range(start, end)} == characters - covered
    assert all(start < end for start, end in (*inside, *outside))


@given(st.lists(st.text("ab", min_size=3, max_size=5), max_size=6), st.text("ab ", max_size=40), st.booleans())
def test_names_are_counted_as_one_by_one(names, text, many):
    with patch.object(mentions, "_FEW", 0 if many else 1000):
        assert mentions.count_substrings(names, text) == {name: text.count(name) for name in names}


def decide_pair_by_pair(many):
    """What :func:`decide` does, by comparing each span with all that stand already."""

    def priority(span):
        tier = 0 if span.score >= 0.8 else 1 if span.score >= 0.5 else 2
        return tier, span.start - span.end, -span.score, span.start, span.label, span.source

    placed, outcomes = [], {}
    for span in sorted(set(many), key=priority):
        rivals = sorted(p for p in placed if p.overlaps(span))
        outcomes[span] = "absorbed" if rivals else "kept"
        if not rivals:
            placed.append(span)
        kin = [p for p in rivals if TAXONOMY.are_related(p.label, span.label)]
        for start, end in (
            list(subtract_intervals((span.start, span.end), [(p.start, p.end) for p in rivals])) if rivals else ()
        ):
            near = next((i for i, p in enumerate(kin) if p.end == start or p.start == end), None)
            if near is None:
                outcomes[span] = "clipped"
                placed.append(replace(span, start=start, end=end))
            else:
                placed.remove(kin[near])
                kin[near] = replace(kin[near], start=min(start, kin[near].start), end=max(end, kin[near].end))
                placed.append(kin[near])
    return tuple(sorted(placed)), outcomes


@settings(max_examples=300)
@given(st.lists(spans, max_size=14))
def test_overlaps_are_resolved_as_pair_by_pair(many):
    placed, outcomes = decide_pair_by_pair(many)
    resolved, decisions = decide(many)
    assert resolved == resolve(many) == placed
    assert {decision.span: decision.outcome for decision in decisions} == outcomes
