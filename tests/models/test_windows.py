"""Windows: every word once, none too long, ends at sentences and lines, nothing that comes later changes them."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st
from tests.models.make_tiny import VOCABULARY
from tests.rows import check_each_row

from allonym.models.windows import (
    LENGTH,
    OVERLAP,
    Words,
    cut_window_ranges,
    cut_windows,
    rate_word_borders,
    tokenise_text,
)
from allonym.models.words import MOST_PIECES, SHAPES, WordPiece, split_words

PIECES = WordPiece(VOCABULARY)
TOKENS = st.sampled_from(
    [
        "Ann",
        "the",
        "lee",
        ".",
        "?",
        ",",
        " ",
        " ",
        " ",
        "\n",
        "\n\n",
        ". ",
        '"',
        "London",
        "1999",
        "abcdefghijklmn",
        "日本",
        "é",
    ]
)
TEXT = st.lists(TOKENS, max_size=400).map("".join)


def made(sizes: list[int], breaks: list[int]) -> Words:
    return Words([(i, i + 1) for i in range(len(sizes))], [(9,) * n for n in sizes], [0] * len(sizes), breaks)


SIZED = st.lists(st.tuples(st.integers(1, MOST_PIECES), st.sampled_from([0, 0, 0, 0, 0, 0, 1, 2])), max_size=60)


@given(SIZED, st.integers(24, 40), st.integers(0, 13))
def test_cut(words_: list[tuple[int, int]], length: int, overlap: int) -> None:
    sizes, breaks = [n for n, _ in words_], [b for _, b in words_]
    read = made(sizes, breaks)
    found = cut_window_ranges(read, length, overlap)
    kept = [i for _, _, a, b in found for i in range(a, b)]
    assert kept == list(range(len(sizes)))
    for first, last, keep_from, keep_to in found:
        assert first <= keep_from < keep_to <= last
        assert sum(sizes[first:last]) <= length
    for (first, last, _, keep_to), (after, _, keep_from, _) in pairwise(found):
        assert first < after <= last
        assert keep_to == keep_from
        if breaks[last]:
            assert (after, keep_from) == (last, last)  # at a border, nothing is shared
        else:
            assert not any(breaks[first + 1 : last])  # only a sentence too long for a window is cut
            assert sum(sizes[first : last + 1]) > length  # and as late as can be
            assert sum(sizes[after:last]) <= overlap
            assert after - 1 == first or sum(sizes[after - 1 : last]) > overlap
            assert after <= keep_from <= last
            assert abs((keep_from - after) - (last - keep_from)) <= 1  # in the middle of what is shared


@example([], [(1, 0)] * 31)
@given(SIZED, SIZED)
def test_what_follows_changes_only_the_last_window(before: list[tuple[int, int]], after: list[tuple[int, int]]) -> None:
    alone, whole = (
        cut_window_ranges(made([n for n, _ in some], [b for _, b in some]), 30, 12) for some in (before, before + after)
    )
    assert whole[: len(alone[:-1])] == alone[:-1]  # nothing has no windows, so none that stays


def test_a_line_end_in_the_second_half_goes_before_a_later_sentence_end() -> None:
    breaks = [0] * 40
    breaks[20], breaks[26] = 2, 1
    assert cut_window_ranges(made([1] * 40, breaks), 30, 5) == [(0, 20, 0, 20), (20, 40, 20, 40)]
    breaks[20], breaks[10] = 0, 2
    assert cut_window_ranges(made([1] * 40, breaks), 30, 5) == [(0, 26, 0, 26), (26, 40, 26, 40)]


def test_a_sentence_too_long_is_cut_with_an_overlap() -> None:
    assert cut_window_ranges(made([1] * 50, [0] * 50), 30, 10) == [(0, 30, 0, 25), (20, 50, 25, 50)]


@check_each_row(
    "text, wanted",
    [
        ("He left. Then he", "0|0|0|1|0"),
        ("He left. then he", "0|0|0|0|0"),
        ("at 3.50 now", "0|0|0|0|0"),
        ('He left." Then', "0|0|0|0|1"),
        ('He left. "Then he', "0|0|0|1|0|0"),
        ("one\ntwo \n three", "0|2|2"),
        ("\nfirst", "2"),
        ("Why?! (No.) Yes", "0|0|0|1|0|0|0|1"),
    ],
)
def test_breaks(text: str, wanted: str) -> None:
    assert "|".join(map(str, rate_word_borders(text, split_words(text)))) == wanted


@given(TEXT)
def test_windows_of_a_text(text: str) -> None:
    read = tokenise_text(text, PIECES)
    assert [*read.borders] == split_words(text)
    assert len(read.pieces) == len(read.shapes) == len(read.breaks) == len(read.borders)
    kept: list[int] = []
    for window in cut_windows(read, PIECES):
        assert 3 <= len(window.pieces) == len(window.shapes) <= LENGTH + 2
        assert (window.pieces[0], window.pieces[-1]) == (PIECES.start, PIECES.end)
        assert all(0 <= s < SHAPES for s in window.shapes)
        ends = (*window.heads[1:], len(window.pieces) - 1)
        for i, start, end in zip(range(window.first, window.last), window.heads, ends, strict=True):
            assert window.pieces[start:end] == read.pieces[i] == PIECES.pieces(text[slice(*read.borders[i])])
            assert set(window.shapes[start:end]) == {read.shapes[i]}
        kept += range(window.keep_from, window.keep_to)
    assert kept == list(range(len(read.borders)))


@example("", "Ann the " * 80)
@given(TEXT, TEXT)
def test_later_lines_change_only_the_last_window(before: str, after: str) -> None:
    alone, whole = (cut_windows(tokenise_text(text, PIECES), PIECES) for text in (before, before + "\n" + after))
    assert whole[: len(alone[:-1])] == alone[:-1]


def test_nothing_has_no_windows() -> None:
    assert cut_windows(tokenise_text("", PIECES), PIECES) == cut_windows(tokenise_text(" \n\t ", PIECES), PIECES) == []


def test_very_long_words_and_lines() -> None:
    (window,) = cut_windows(tokenise_text("x" * 100_000, PIECES), PIECES)
    assert len(window.pieces) == MOST_PIECES + 2
    many = cut_windows(tokenise_text("ann " * 5_000, PIECES), PIECES)
    assert len(many) == 1 + -(-(5_000 - LENGTH) // (LENGTH - OVERLAP))


def test_nothing_shows_the_text() -> None:
    read = tokenise_text("ann lee", PIECES)
    (window,) = cut_windows(read, PIECES)
    assert "pieces" not in repr(read) + repr(window)  # they could be read back
