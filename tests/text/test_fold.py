"""Folding: each level folds more than the one before, and folding again changes nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from allonym.text.fold import (
    LETTERS,
    SPELLED_OUT,
    Level,
    expand_special_letters,
    fold,
    fold_spellings,
    spell_out_umlauts,
)

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
NAMES = st.text(
    [
        *LETTERS,
        *SPELLED_OUT,
        *(c.upper() for c in LETTERS if c != "ß"),
        "ẞ",
        "é",
        "\u0301",
        "\u00ad",
        "İ",
        "٣",
        "a",
        "B",
        " ",
    ]
)


def test_levels() -> None:
    surface = "Łódź\u00ad ＺOË ٤"
    assert [fold(surface, level) for level in Level] == [
        "łódź\u00ad zoë ٤",
        "łodz zoe ٤",
        "lodz zoe ٤",
        "lodz zoe 4",
    ]
    assert fold("Ħal Łoś", unfolded="ħ") == "ħal los"


@given(st.one_of(TEXTS, NAMES), st.sampled_from(Level))
def test_folding_again_changes_nothing(text: str, level: Level) -> None:
    folded = fold(text, level)
    assert fold(folded, level) == folded


@given(st.one_of(TEXTS, NAMES), st.sampled_from(Level), st.sampled_from(Level))
def test_levels_build_on_each_other(text: str, a: Level, b: Level) -> None:
    low, high = sorted((a, b))
    assert fold(fold(text, low), high) == fold(text, high)


@given(NAMES)
def test_letters_are_ascii_in_both_spellings(name: str) -> None:
    assert all(c.isascii() or c == "٣" for spelling in fold_spellings(name) for c in spelling)
    assert fold(expand_special_letters(name)) == fold(name)
    assert (len(fold_spellings(name)) == 2) == (fold(spell_out_umlauts(name)) != fold(name))
