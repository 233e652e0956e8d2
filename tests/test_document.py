import itertools
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allonym.document import Document, Reach, Span, Turn, clip_intervals, merge_intervals, subtract_intervals

intervals = st.tuples(st.integers(0, 40), st.integers(1, 12)).map(lambda p: (p[0], p[0] + p[1]))


def cover(pairs):
    return {i for a, b in pairs for i in range(a, b)}


def test_span_refuses_empty_and_backward():
    for start, end in ((3, 3), (4, 3), (-1, 2)):
        with pytest.raises(ValueError, match="0 <= start < end"):
            Span(start, end, "PERSON")


def test_document_hides_its_text():
    document = Document("id", "Canary Jones", {"who": "Canary"}, turns=(Turn(0, 12),))
    assert "Canary" not in repr(document)
    assert repr(document) == "Document(12 characters, 1 turns)"


def test_meta_is_copied_and_read_only():
    meta = {"a": 1}
    document = Document("id", "text", meta)
    meta["a"] = 2
    assert document.meta["a"] == 1
    with pytest.raises(TypeError):
        document.meta["a"] = 3  # type: ignore[index]


def test_text_must_be_str():
    with pytest.raises(TypeError, match="got bytes"):
        Document("id", b"text")  # type: ignore[arg-type]


def test_document_pickles():
    document = Document.conversation("id", [("Pam", "Hi"), (None, "Hello")], {"a": 1})
    again = pickle.loads(pickle.dumps(document))
    assert (again.text, again.parts, again.turns, dict(again.meta)) == (
        document.text,
        document.parts,
        document.turns,
        {"a": 1},
    )


@given(st.lists(st.text(max_size=8)), st.sampled_from(["", "\n", " | "]))
def test_from_parts_gives_the_parts_back(parts, separator):
    document = Document.from_parts("id", parts, separators=separator)
    assert document.text == separator.join(parts)
    if parts:
        assert document.part_texts() == tuple(parts)


def test_from_parts_with_a_separator_each():
    document = Document.from_parts("id", ["ab", "c", "d"], separators=["", "\n", "!"])
    assert document.text == "abc\nd!"
    with pytest.raises(ValueError, match="as many separators"):
        Document.from_parts("id", ["a"], separators=[])


def test_conversation_has_speakers_and_turns():
    document = Document.conversation("c", [("Pam", "Is Jim there?"), (None, "No.")])
    assert document.text == "Pam: Is Jim there?\nNo."
    assert [document.text[t.start : t.end] for t in document.turns] == ["Is Jim there?", "No."]
    assert document.turns[0].speaker == (0, 3)
    assert document.turns[1].speaker is None
    assert document.part_texts() == ("Pam", "Is Jim there?", "No.")


@given(st.lists(intervals))
def test_merge_keeps_the_cover_and_separates(pairs):
    merged = merge_intervals(pairs)
    assert cover(merged) == cover(pairs)
    assert all(a[1] < b[0] for a, b in itertools.pairwise(merged))


@given(intervals, st.lists(intervals))
def test_subtract_is_set_difference(interval, taken):
    left = list(subtract_intervals(interval, merge_intervals(taken)))
    assert cover(left) == cover([interval]) - cover(taken)


@given(st.lists(intervals), intervals)
def test_clip_keeps_what_is_inside_and_nothing_empty(pairs, window):
    clipped = clip_intervals(merge_intervals(pairs), *window)
    assert cover(clipped) == cover(pairs) & cover([window])
    assert all(a < b for a, b in clipped)


@given(st.lists(intervals), intervals)
def test_reach_agrees_with_each_interval_alone(pairs, asked):
    reach, (start, end) = Reach(pairs), asked
    assert reach.contains(start, end) == any(a <= start and end <= b for a, b in pairs)
    assert reach.touches(start, end) == any(a < end and start < b for a, b in pairs)
    assert reach.find_furthest_end(start) == max((b for a, b in pairs if a <= start), default=0)


def test_intervals_that_only_meet_do_not_touch():
    reach = Reach([(3, 5), (8, 9)])
    assert [reach.touches(5, end) for end in (6, 8, 9)] == [False, False, True]
    assert [reach.touches(start, 3) for start in (0, 2)] == [False, False]


def test_names_of_fields_are_dropped_and_runs_stay_together():
    document = Document("a", "name: Ada\ntext: Brook met\nCyd.", {}, ((6, 9), (16, 21), (21, 25), (26, 30)))
    plain = document.drop_field_names()
    assert plain.text == "Ada\nBrook met\nCyd."
    assert plain.part_texts() == document.part_texts()
    assert Document("a", "Ada").drop_field_names().text == "Ada"


def test_intervals_are_a_sequence_equal_to_a_tuple():
    document = Document.from_parts("", ["ab", "", "cde"], separators=["-", "", ""])
    parts, plain = document.parts, ((0, 2), (3, 3), (3, 6))
    assert (parts, hash(parts), list(parts), len(parts)) == (plain, hash(plain), list(plain), 3)
    assert (parts[0], parts[-1], parts[1:]) == ((0, 2), (3, 6), plain[1:])
    assert pickle.loads(pickle.dumps(document)) == document and parts != (*plain, (6, 6))
