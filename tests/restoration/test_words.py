"""Words as they are compared, slips, and endings."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym.restoration.words import find_base_forms, inflect_word, is_one_slip
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


@check_each_row(
    "form, base, other, made",
    [
        ("nowakiem", "nowak", "Kowalski", "Kowalskim"),
        ("nowaka", "nowak", "Wójcik", "Wójcika"),
        ("emmy", "emma", "Zofia", "Zofii"),
        ("emmie", "emma", "Marta", "Marcie"),
        ("emmę", "emma", "Kinga", "Kingę"),
        ("krakowie", "kraków", "Berlin", "Berlinie"),
        ("warszawą", "warszawa", "Łódź", "Łódź"),
        ("kowalskiego", "kowalski", "Nowak", "Nowaka"),
        ("tylers", "tyler", "Connor", "Connors"),
        ("tylers", "tyler", "Hans", "Hans"),
        ("emmie", "emma", "Ines", "Ines"),
    ],
)
def test_another_name_gets_the_same_ending(form, base, other, made):
    endings = [ending for found, ending in find_base_forms(form) if found == base]
    assert endings
    assert inflect_word(other, endings[0]) == made
