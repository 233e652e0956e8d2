"""What a word is."""

from __future__ import annotations

import pytest

from allonym.text.words import (
    COMPOUND,
    IDENTIFIER,
    LETTERS,
    TOKEN,
    WORD,
    compile_whole_words,
    compile_word_pattern,
    find_words,
)

TEXT = "Zoë's 2nd co-op_7, наш дом!"


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (WORD, ["Zoë", "s", "2nd", "co", "op", "7", "наш", "дом"]),
        (LETTERS, ["Zoë", "s", "nd", "co", "op", "наш", "дом"]),
        (COMPOUND, ["Zoë's", "2nd", "co-op", "7", "наш", "дом"]),
        (IDENTIFIER, ["Zoë", "s", "2nd", "co", "op_7", "наш", "дом"]),
        (TOKEN, ["Zoë", "'", "s", "2nd", "co", "-", "op", "_", "7", ",", "наш", "дом", "!"]),
        (compile_word_pattern("-", least=2), ["Zoë", "2nd", "co-op", "наш", "дом"]),
        (compile_word_pattern(digits=False, least=3), ["Zoë", "наш", "дом"]),
    ],
)
def test_words(pattern, words):
    assert pattern.findall(TEXT) == words


def test_words_of_a_text_are_runs_of_letters_and_digits():
    assert find_words(TEXT) == WORD.findall(TEXT)


def test_whole_words():
    pattern = compile_whole_words("co|дом")
    assert [m.span() for m in pattern.finditer("co co-op cool дома дом")] == [(0, 2), (3, 5), (19, 22)]
