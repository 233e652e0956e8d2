"""Splitting by document, choosing documents as P3 did, and the density of labels."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allonym.errors import UsageError
from allonym.train.records import make_record
from allonym.train.select import (
    choose_records,
    count_words_and_entities,
    group_documents,
    measure_label_density,
    split_records,
    truncate_records,
)


def record(id, text="Ada ran home .", spans=((0, 3, "PER"),), doc_id=""):
    return make_record("", id, text, spans, doc_id=doc_id)


def corpus(*sizes):
    """Documents of so many records each, all texts distinct."""
    return [record(f"{d}-{r}", f"word {d} {r}", (), f"doc{d}") for d, n in enumerate(sizes) for r in range(n)]


RECORDS = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 20)).map(lambda p: record(f"{p}", f"text {p[1]}", (), f"d{p[0]}")),
    min_size=40,
    max_size=80,
)


@given(RECORDS, st.integers(0, 3))
def test_no_document_and_no_text_is_in_two_parts(records, seed):
    try:
        parts = split_records(records, (0.6, 0.2, 0.2), seed)
    except UsageError:
        return  # shared texts hold everything together
    assert sorted(map(id, records)) == sorted(id(r) for part in parts for r in part)
    for what in ("doc_id", "text"):
        held = [{r[what] for r in part} for part in parts]
        assert not (held[0] & held[1] or held[0] & held[2] or held[1] & held[2])


@given(st.permutations(corpus(1, 3, 1, 2, 1, 1, 4, 1, 1, 1, 2, 1)))
def test_the_order_of_the_records_does_not_matter(records):
    ids = [sorted(r["id"] for r in part) for part in split_records(records)]
    assert ids == [sorted(r["id"] for r in part) for part in split_records(corpus(1, 3, 1, 2, 1, 1, 4, 1, 1, 1, 2, 1))]


def test_the_shares_are_those_asked_for():
    records = corpus(*[1] * 200)
    assert [len(part) for part in split_records(records)] == [160, 20, 20]
    assert [len(part) for part in split_records(records, (1, 1))] == [100, 100]
    assert [len(part) for part in split_records(records, (0.9, 0, 0.1))] == [180, 0, 20]
    assert split_records(records, seed=1) != split_records(records, seed=2)
    assert split_records(records, seed=1) == split_records(records, seed=1)


def test_a_small_corpus_leaves_no_part_empty():
    assert [len(part) for part in split_records(corpus(1, 1, 1, 1, 1))] == [3, 1, 1]
    assert split_records([]) == ([], [], [])
    with pytest.raises(UsageError, match="3 parts need as many documents that share no text; got 2"):
        split_records(corpus(4, 4))


@pytest.mark.parametrize("parts", [(), (0, 0), (1, -1)])
def test_shares_must_make_sense(parts):
    with pytest.raises(UsageError, match="shares of 0 or more"):
        split_records(corpus(1, 1), parts)


def test_the_ratio_counts_outermost_entities_per_word():
    nested = record("1", "Ada Brook ran home", [(0, 9, "PER"), (0, 3, "FIRST"), (14, 18, "LOC")])
    size = count_words_and_entities([nested])
    assert (size.words, size.entities, size.ratio) == (4, 2, 0.5)
    assert count_words_and_entities([record("2", "", ())]).ratio == 0


def test_choosing_as_p3_did():
    lists = record("list", "Ada , Cyd", [(0, 3, "PER"), (6, 9, "PER")])
    prose = record("prose", "Ada ran home all by herself", [(0, 3, "PER")])
    short = record("short", "Ada", [(0, 3, "PER")])
    empty = record("empty", "nobody ran home all by herself", ())
    held = [lists, prose, short, empty]

    def names(**bounds):
        return [r["id"] for r in choose_records(held, **bounds)]

    assert names() == ["list", "prose", "short", "empty"]
    assert names(min_words=3, max_ratio=0.5) == ["prose", "empty"]
    assert names(min_ratio=0.1, max_ratio=0.2) == ["prose"]
    assert names(max_words=3) == ["list", "short"]
    assert names(richest=2) == ["list", "short"]
    assert names(max_ratio=1 / 6) == ["empty"]
    with pytest.raises(UsageError, match="bounds cross"):
        names(min_words=5, max_words=4)


def test_documents_are_chosen_whole():
    records = [record("a", "Ada", [(0, 3, "PER")], "d"), record("b", "ran home all alone again today", (), "d")]
    assert choose_records(records, min_words=7) == records
    assert choose_records(records, min_words=8) == []
    assert list(group_documents(records)) == ["d"]


def test_cutting_drops_what_is_cut_apart():
    records = [
        record("a", "Ada ran .", [(0, 3, "PER")], "d"),
        record("b", "Cyd Dale ran .", [(0, 3, "FIRST"), (0, 8, "PER")], "d"),
        record("c", "Eve", [(0, 3, "PER")], "d"),
    ]
    first, second = truncate_records(records, 4)
    assert first == records[0]
    assert (second["text"], [s["label"] for s in second["spans"]]) == ("Cyd", ["FIRST"])
    assert records[1]["text"] == "Cyd Dale ran ."
    assert [r["text"] for r in choose_records(records, first_words=4)] == ["Ada ran .", "Cyd"]


def test_density():
    one = [record("a", "Ada ran home .", [(0, 3, "PER")]), record("b", "Cyd sat", [(0, 3, "PER")], "a")]
    two = [record("x", "Elmford is old now", [(0, 7, "LOC")])]
    first, second, total = measure_label_density({"one": one, "two": two})
    assert (first.corpus, first.documents, first.words, first.spans) == ("one", 1, 6, {"PER": 2})
    assert first.per_thousand("PER") == pytest.approx(1000 * 2 / 6)
    assert first.per_thousand("LOC") == 0
    assert second.per_thousand("LOC") == 250
    assert (total.corpus, total.documents, total.words, total.spans) == ("all", 2, 10, {"PER": 2, "LOC": 1})
    assert [d.corpus for d in measure_label_density({"one": one})] == ["one"]
    assert measure_label_density({"none": []})[0].per_thousand("PER") == 0
