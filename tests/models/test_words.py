"""Word borders and shapes: a table of cases, and what holds for any text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym.models.words import SHAPES, Unigram, classify_shape, split_words

ANY = st.text(st.characters(), max_size=80)


@check_each_row(
    "text, wanted",
    [
        ("", ""),
        (" \n\t\xa0 ", ""),
        ("Ann Lee", "Ann|Lee"),
        ("O'Brien's", "O|'|Brien|'|s"),
        ("Wait... what?!", "Wait|...|what|?|!"),
        ("a--b", "a|--|b"),
        ("(555) 123-4567", "(|555|)|123|-|4567"),
        ("ann_lee@x.org", "ann|_|lee|@|x|.|org"),
        ("__init__", "__|init|__"),
        ("€5m", "€|5m"),
        ("Zoe\u0308 Mu\u0308ller", "Zoe\u0308|Mu\u0308ller"),
        ("\u0308x", "\u0308|x"),
        ("日本 Ann", "日本|Ann"),
        ("x\u200by", "x|\u200b|y"),
        ("½ cup, 5² m", "½|cup|,|5²|m"),
    ],
)
def test_words(text: str, wanted: str) -> None:
    assert "|".join(text[a:b] for a, b in split_words(text)) == wanted


@given(ANY)
def test_words_hold_everything_but_space(text: str) -> None:
    at = 0
    for start, end in split_words(text):
        assert at <= start < end
        assert not text[at:start].strip()
        assert not any(c.isspace() for c in text[start:end])
        at = end
    assert not text[at:].strip()


@given(ANY, st.sampled_from([" ", "\n", "\u2003"]), ANY)
def test_words_do_not_depend_on_what_stands_beyond_a_space(before: str, space: str, after: str) -> None:
    shift = len(before) + 1
    assert split_words(before + space + after) == split_words(before) + [
        (a + shift, b + shift) for a, b in split_words(after)
    ]


@given(ANY)
def test_a_word_is_letters_or_one_mark(text: str) -> None:
    for start, end in split_words(text):
        word = text[start:end]
        if word[0].isalnum():
            assert all(c.isalnum() or "\u0300" <= c <= "\u036f" for c in word)
        else:
            assert set(word) == {word[0]}


def test_shapes_tell_casing_digits_and_marks_apart() -> None:
    kinds = [
        ("name", "été"),
        ("Name", "Éva"),
        ("NAME", "ÉVA"),
        ("I", "A"),
        ("iPhone", "McDonald"),
        ("1999", "2024"),
        ("7", "12345"),
        ("3rd", "B2B"),
        (".", "?"),
        ('"', ")"),
        ("@", "/"),
        ("-", ","),
    ]
    numbers = [{classify_shape(word, False) for word in kind} for kind in kinds]
    assert all(len(some) == 1 for some in numbers)
    assert len(set().union(*numbers)) == len(kinds)


@given(ANY)
def test_every_word_has_a_shape_and_another_one_where_it_is_joined(text: str) -> None:
    for start, end in split_words(text):
        alone, joined = (classify_shape(text[start:end], j) for j in (False, True))
        assert 0 <= alone < SHAPES // 2 <= joined < SHAPES
        assert joined - alone == SHAPES // 2


def test_the_likeliest_pieces_make_up_a_word():
    chances = {"▁Klin": -8, "▁Kl": -6, "in": -4, "g": -3, "ingbeil": -5, "ing": -4, "beil": -7}
    vocabulary = ["[CLS]", "[SEP]", "[UNK]", *chances]
    pieces = Unigram(vocabulary, [0, 0, 0, *chances.values()])
    assert [vocabulary[n] for n in pieces.pieces("Klingbeil", True)] == ["▁Kl", "ingbeil"]
    assert [vocabulary[n] for n in pieces.pieces("ing", False)] == ["ing"]
    assert [vocabulary[n] for n in pieces.pieces("ing", True)] == ["[UNK]", "ing"]  # no piece holds a gap alone
    assert [vocabulary[n] for n in pieces.pieces("gß", False)] == ["g", "[UNK]"]


def test_words_in_capitals_are_taken_as_they_are_likelier_written():
    chances = {"▁": -5, "▁umowa": -7, "▁Jan": -8, "jan": -12, "▁U": -9, "mowa": -9}
    pieces = Unigram(["[CLS]", "[SEP]", "[UNK]", *chances], [0, 0, 0, *chances.values()])
    assert pieces.choose_case("UMOWA") == "umowa" and pieces.choose_case("JAN") == "Jan"
