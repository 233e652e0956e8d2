from hypothesis import given
from hypothesis import strategies as st

from allonym.detection.adapters import cut_windows, split_words


def test_a_short_text_is_one_window_and_a_blank_one_none():
    assert list(cut_windows(" one two ", 5, 2)) == [(1, 8)]
    assert list(cut_windows(" \n ", 5, 2)) == []


def test_neighbours_share_words():
    text = "a b c d e f g"
    assert [text[a:b] for a, b in cut_windows(text, 4, 2)] == ["a b c d", "c d e f", "e f g"]
    assert [text[a:b] for a, b in cut_windows(text, 3, 0)] == ["a b c", "d e f", "g"]


def test_cost_counts_and_a_word_that_costs_too_much_stands_alone():
    cut = [(0, 2), (2, 7), (9, 11), (11, 13)]
    text = "aabbbbb  ccdd"
    assert list(cut_windows(text, 4, 0, cut, len)) == [(0, 2), (2, 7), (9, 13)]


def test_long_runs_are_cut():
    assert split_words("x" * 250) == [(0, 100), (100, 200), (200, 250)]


@given(
    text=st.text(alphabet="ab \n", max_size=300),
    limit=st.floats(0.5, 30),
    overlap=st.floats(0, 40),
)
def test_every_word_stands_in_a_window_and_every_window_reaches_further(text, limit, overlap):
    found = list(cut_windows(text, limit, overlap, cost=len))
    for a, b in split_words(text):
        assert any(start <= a and b <= end for start, end in found)
    assert [end for _, end in found] == sorted({end for _, end in found})
    assert [start for start, _ in found] == sorted({start for start, _ in found})
    for start, end in found:
        inside = [b - a for a, b in split_words(text) if start <= a and b <= end]
        assert sum(inside) <= limit or len(inside) == 1
