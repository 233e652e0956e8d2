"""What one reviewer says of a document: what is sound, what comes out of it, when two say the same."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym.document import Span
from allonym.errors import DataError, UnknownNameError
from allonym.evaluate.residual import score_conversation
from allonym.labels import TAXONOMY
from allonym.resolve import resolve

pytest.importorskip("scipy")

from allonym.project.readings import (
    SOURCE,
    FindingDecision,
    LeakMark,
    Reading,
    apply_reading,
    get_label_with_speaker,
    is_same_reading,
    make_checked_reading,
    make_marked,
)

TEXT = "Ada Brook of Larkspur Ltd met Jim Quill in Elmford on Monday."
FOUND = (Span(0, 3, "PERSON"), Span(30, 39, "PERSON"), Span(43, 50, "CITY"), Span(54, 60, "DATE"))


def mark(words, kind="missed", label="PERSON"):
    start = TEXT.index(words)
    return {"start": start, "end": start + len(words), "kind": kind, "label": label}


def decision(span, verdict, **more):
    return {"start": span.start, "end": span.end, "label": span.label, "verdict": verdict, **more}


def read(marks, decisions, text, found):
    return make_checked_reading([LeakMark(**m) for m in marks], [FindingDecision(**d) for d in decisions], text, found)


def shown(reading):
    return [(TEXT[s.start : s.end], s.label) for s in apply_reading(reading, TEXT, FOUND)]


def test_what_a_reading_makes_of_the_findings():
    reading = read(
        [mark("Brook", "partial", "PERSON_LASTNAME"), mark("Larkspur Ltd", "speaker", "ORGANIZATION")],
        [
            decision(FOUND[1], "resize", new_start=34, new_end=39),
            decision(FOUND[2], "relabel", new_label="LOCATION"),
            decision(FOUND[3], "reject"),
        ],
        TEXT,
        FOUND,
    )
    assert shown(reading) == [
        ("Ada Brook", "PERSON"),
        ("Larkspur Ltd", "ORGANIZATION_SPEAKER"),
        ("Quill", "PERSON"),
        ("Elmford", "LOCATION"),
    ]
    stored = json.dumps(reading.to_dict())
    assert Reading.from_dict(json.loads(stored)) == reading
    assert "Brook" not in repr(reading) + stored


def test_a_missed_part_beside_nothing_stands_alone_and_what_has_no_decision_is_accepted():
    assert shown(read([mark("Ltd", "partial", "ORGANIZATION")], [], TEXT, FOUND)) == [
        ("Ada", "PERSON"),
        ("Ltd", "ORGANIZATION"),
        ("Jim Quill", "PERSON"),
        ("Elmford", "CITY"),
        ("Monday", "DATE"),
    ]


def test_marks_score_as_in_p2():
    reading = read([mark("Brook", "partial"), mark("Larkspur Ltd", "speaker", "ORGANIZATION")], [], TEXT, FOUND)
    scored = score_conversation(make_marked(reading, "one", TEXT))
    assert [item.tag for item in scored.items] == ["PERSON_NAME_PARTIAL", "ORGANIZATION_NAME_SPEAKER"]
    assert scored.score == 3 + 2


@check_each_row(
    "marks, decisions, error, told",
    [
        ([{**mark("Brook"), "end": 99}], [], DataError, r"marks\[0\]: 0 <= start < end <= 61 is required"),
        ([{"start": 3, "end": 4, "kind": "missed", "label": "PERSON"}], [], DataError, "holds blanks alone"),
        ([mark("Ada")], [], DataError, "is replaced already"),
        ([mark("Brook of"), mark("of Larkspur")], [], DataError, "marks must be disjoint"),
        ([mark("Brook", label="PERSN")], [], UnknownNameError, "did you mean: PERSON"),
        ([mark("Brook", "speaker")], [], UnknownNameError, "what tells a speaker 'PERSON'"),
        ([], [decision(Span(0, 4, "PERSON"), "accept")], DataError, "a finding of this document is required"),
        ([], [decision(FOUND[0], "accept"), decision(FOUND[0], "reject")], DataError, "two on 0..3"),
        ([], [decision(FOUND[0], "relabel")], DataError, "new_label is required"),
        ([], [decision(FOUND[0], "relabel", new_label="NOBODY")], UnknownNameError, "unknown label"),
        ([], [decision(FOUND[0], "resize", new_start=0)], DataError, "0 <= start < end"),
    ],
)
def test_what_is_not_sound_is_refused_without_a_word_of_the_text(marks, decisions, error, told):
    with pytest.raises(error, match=told) as caught:
        read(marks, decisions, TEXT, FOUND)
    assert not [word for word in ("Ada", "Brook", "Larkspur", "Quill") if word in str(caught.value)]


def test_a_mark_may_stand_on_what_was_rejected():
    reading = read([mark("Ada Brook")], [decision(FOUND[0], "reject")], TEXT, FOUND)
    assert shown(reading)[0] == ("Ada Brook", "PERSON")


SIZE = 16
LABELS = ("PERSON", "PERSON_LASTNAME", "PERSON_FIRSTNAME", "CITY", "LOCATION", "UNKNOWN")
PLACES = st.tuples(st.integers(0, SIZE - 1), st.integers(1, 6)).map(lambda p: (p[0], min(SIZE, sum(p))))


@given(
    st.text("ab-,. \n", min_size=SIZE, max_size=SIZE),
    st.lists(st.builds(lambda p, *more: Span(*p, *more), PLACES, st.sampled_from(LABELS), st.sampled_from((0.5, 1.0)))),
    st.lists(
        st.builds(
            lambda p, kind, label: LeakMark(start=p[0], end=p[1], kind=kind, label=label),
            PLACES,
            st.sampled_from(("missed", "partial", "partial")),
            st.sampled_from(LABELS),
        )
    ),
)
def test_a_part_joins_what_it_touches(text, found, marks):
    spans = list(found)
    for mark in marks:
        made = Span(mark.start, mark.end, get_label_with_speaker(mark), 1.0, SOURCE)
        if mark.kind == "partial":
            made, spans = joined(made, spans, text)
        spans.append(made)
    assert apply_reading(Reading(marks=marks), text, found) == resolve(spans)


def joined(part, spans, text):
    """What it means, one by one."""
    rest = []
    for span in sorted(spans):
        first, last = (part, span) if part.start < span.start else (span, part)
        between = text[first.end : last.start]
        beside = len(between) <= 2 and not any(map(str.isalnum, between)) and "\n" not in between
        if beside and TAXONOMY.are_related(span.label, part.label):
            label = next(name for name in TAXONOMY.lineage(span.label) if TAXONOMY.within(part.label, name))
            part = Span(min(part.start, span.start), max(part.end, span.end), label, 1.0, SOURCE)
        else:
            rest.append(span)
    return part, rest


def test_many_marks():
    text = "a-" * 30_000
    found = tuple(Span(i, i + 1, "CITY") for i in range(1, 40_000, 2))
    marks = [{"start": i, "end": i + 1, "kind": "partial", "label": "PERSON"} for i in range(0, 20_000, 2)]
    reading = read(marks, [], text, found)
    assert apply_reading(reading, text, found)[0] == Span(0, 19_999, "PERSON", 1.0, SOURCE)


def test_two_agree_where_the_same_stretches_and_marks_come_out():
    accepted = read([], [decision(s, "accept") for s in FOUND], TEXT, FOUND)
    assert is_same_reading(accepted, Reading(), TEXT, FOUND)
    assert not is_same_reading(read([mark("Brook")], [], TEXT, FOUND), Reading(), TEXT, FOUND)
    other = read([], [decision(FOUND[2], "relabel", new_label="LOCATION")], TEXT, FOUND)
    assert not is_same_reading(other, Reading(), TEXT, FOUND)
