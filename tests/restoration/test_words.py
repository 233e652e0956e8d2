"""Words as they are compared, and slips."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from allonym.restoration.words import is_one_slip
from allonym.text.prose import read_common_words


def test_common_words_are_folded():
    assert {"the", "und", "ktory"} <= read_common_words() and "tyler" not in read_common_words()


@given(st.text("abc", min_size=1, max_size=6), st.integers(0, 6), st.sampled_from("abcd"))
def test_one_slip_is_one_edit(word, place, letter):
    place = min(place, len(word))
    for other in (
        word[:place] + letter + word[place:],
        word[:place] + word[place + 1 :],
        word[:place] + letter + word[place + 1 :],
    ):
        assert is_one_slip(word, other) == is_one_slip(other, word) == (word != other)
    if place + 1 < len(word):
        swapped = word[:place] + word[place + 1] + word[place] + word[place + 2 :]
        assert is_one_slip(word, swapped) == (word != swapped)
    assert not is_one_slip(word, word + "xy") and not is_one_slip("x" + word, word + "y" + letter)
