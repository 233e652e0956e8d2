"""Scores: counted by hand on small cases, and what must hold on any."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allonym.document import Span
from allonym.models.words import split_words
from allonym.train.score import Counts, Score, score_spans, score_texts, tabulate_scores, tag_words

TEXT = "Ada Brook met Cyd Dale in Elmford"
GOLD = [Span(0, 9, "PER"), Span(14, 22, "PER"), Span(26, 33, "LOC")]
SPANS = st.lists(
    st.builds(
        lambda a, n, x: Span(a, a + n, x), st.integers(0, 30), st.integers(1, 8), st.sampled_from(["PER", "LOC"])
    ),
    max_size=6,
)


def test_tags_of_words():
    assert tag_words(split_words(TEXT), GOLD) == ["B-PER", "I-PER", "O", "B-PER", "I-PER", "O", "B-LOC"]
    assert tag_words(split_words(TEXT), [Span(2, 6, "PER")])[:3] == ["B-PER", "I-PER", "O"]  # a word touched is in it
    assert tag_words(split_words(TEXT), [Span(0, 3, "A"), Span(4, 9, "A")])[:2] == ["B-A", "B-A"]
    assert tag_words(split_words(TEXT), [Span(0, 3, "A"), Span(0, 9, "B")])[:2] == ["B-B", "I-B"]
    assert tag_words([], GOLD) == []


def test_counts_by_hand():
    found = score_spans(GOLD, [Span(0, 9, "PER"), Span(14, 17, "PER"), Span(26, 33, "ORG")], split_words(TEXT))
    assert (found.words, found.right) == (7, 5)
    assert found.tags == {
        "B-LOC": Counts(0, 0, 1),
        "B-ORG": Counts(0, 1, 0),
        "B-PER": Counts(2, 0, 0),
        "I-PER": Counts(1, 0, 1),
    }
    assert (found.span_cover, found.needless) == (4 / 5, 0)  # a wrong label covers too
    assert score_spans(GOLD[:1], [Span(4, 17, "LOC")], split_words(TEXT)).needless == 2 / 5
    assert found.spans == {"LOC": Counts(0, 0, 1), "ORG": Counts(0, 1, 0), "PER": Counts(1, 1, 1)}
    assert found.strict == Counts(1, 2, 2)
    assert found.micro == Counts(3, 1, 2)
    assert found.macro("recall") == pytest.approx((0 + 1 + 0.5) / 3)  # only tags that the gold has
    assert found.macro("precision") == pytest.approx((0 + 1 + 1) / 3)


def test_measures_of_counts():
    assert (Counts(3, 1, 3).precision, Counts(3, 1, 3).recall) == (0.75, 0.5)
    assert Counts(3, 1, 3).f1 == pytest.approx(0.6)
    assert (Counts().precision, Counts().recall, Counts().f1, Counts(0, 2, 2).f1) == (0, 0, 0, 0)
    assert (Score().accuracy, Score().macro("f1"), Score().span_cover, Score().needless) == (0, 0, 0, 0)


@given(SPANS, SPANS)
def test_bounds_and_symmetry(gold, predicted):
    borders = split_words(TEXT)
    there, back = score_spans(gold, predicted, borders), score_spans(predicted, gold, borders)
    assert min(there.accuracy, there.span_cover, there.needless) >= 0
    assert max(there.accuracy, there.span_cover, there.needless) <= 1
    assert there.right == back.right
    assert there.strict.hit == back.strict.hit
    assert (there.strict.extra, there.strict.missed) == (back.strict.missed, back.strict.extra)
    assert sum(c.hit + c.missed for c in there.tags.values()) == sum(t != "O" for t in tag_words(borders, gold))


@given(SPANS)
def test_what_is_right_scores_one(gold):
    found = score_spans(gold, gold, split_words(TEXT))
    assert found.accuracy == 1
    assert all(c.f1 == 1 for c in (*found.tags.values(), *found.spans.values()))


@given(st.lists(st.tuples(SPANS, SPANS), max_size=4))
def test_parts_add_up(pairs):
    rows = [(TEXT, gold, predicted) for gold, predicted in pairs]
    total = score_texts(rows)
    assert total == score_texts(rows[:2]) + score_texts(rows[2:])
    assert total == score_texts(reversed(rows))


def test_the_table_has_a_row_for_each_b_and_i():
    one, two = score_spans(GOLD, GOLD, split_words(TEXT)), score_spans(GOLD, [Span(0, 3, "ORG")], split_words(TEXT))
    head, rows = tabulate_scores({"one": one, "two": two})
    assert head == ["measure", "one", "two"]
    assert [row[0] for row in rows] == [
        "accuracy",
        "recall",
        "precision",
        "F1",
        "F1, all words together",
        "F1, whole spans",
        "words of spans covered",
        "other words covered",
        "F1 B-LOC",
        "F1 B-ORG",
        "F1 B-PER",
        "F1 I-PER",
        "F1 whole LOC",
        "F1 whole ORG",
        "F1 whole PER",
    ]
    table = {row[0]: row[1:] for row in rows}
    assert table["accuracy"] == ["1.0000", f"{2 / 7:.4f}"]
    assert table["F1 B-ORG"] == ["-", "0.0000"]
    assert table["F1 I-PER"] == ["1.0000", "0.0000"]
    told = one.to_dict()
    assert told["tags"]["B-PER"] == {"precision": 1, "recall": 1, "f1": 1, "gold": 2, "found": 2}
    assert list(told["tags"]) == ["B-LOC", "B-PER", "I-PER"]
