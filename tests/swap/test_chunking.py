"""Sentences tile a text; chunks tile them, within their sizes, and cut nothing that was found."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym.document import Interval
from allonym.errors import UsageError
from allonym.swap.chunking import join_cut_tiles, split_chunks, split_sentences

texts = st.text(alphabet=st.sampled_from("aBc. ?!\n,12'”…Mr。\t"), max_size=300)


def said(text: str) -> list[str]:
    return [text[a:b].strip() for a, b in split_sentences(text)]


@check_each_row(
    "text, expected",
    [
        ("We grew. Sales rose 3.5% to $1.2 million.", ["We grew.", "Sales rose 3.5% to $1.2 million."]),
        ("Mr. Hale met Dr. Voss. They agreed.", ["Mr. Hale met Dr. Voss.", "They agreed."]),
        ("Brightwell Inc. grew. Orlo Corp. The rest fell.", ["Brightwell Inc. grew.", "Orlo Corp.", "The rest fell."]),
        ("J. P. Orlo spoke. Then we left.", ["J. P. Orlo spoke.", "Then we left."]),
        ("Is it so? Yes! Fine.", ["Is it so?", "Yes!", "Fine."]),
        ('He said "no." Then he left.', ['He said "no."', "Then he left."]),
        ("It was good… and fast. So we…went.", ["It was good… and fast.", "So we…went."]),
        ("See e.g. Figure 3, No. 5 and vol. 2. Done.", ["See e.g. Figure 3, No. 5 and vol. 2.", "Done."]),
        ("The answer is no. We stay.", ["The answer is no.", "We stay."]),
        ("First turn\nSecond turn", ["First turn", "Second turn"]),
        ("A line that was\nwrapped goes on.\nAnother.", ["A line that was\nwrapped goes on.", "Another."]),
        ("We end at 5 p.m. The call is over.", ["We end at 5 p.m.", "The call is over."]),
        ("1. First point\n2. Second point", ["1. First point", "2. Second point"]),
        ("The U.S. Navy sails. We do not.", ["The U.S. Navy sails.", "We do not."]),
        ("今日は。元気です。", ["今日は。", "元気です。"]),
        ("", []),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert said(text) == expected


@given(texts, st.integers(0, 40), st.integers(0, 40))
def test_sentences_tile_their_stretch(text: str, skip: int, drop: int) -> None:
    start, end = min(skip, len(text)), max(min(skip, len(text)), len(text) - drop)
    tiles = split_sentences(text, start, end)
    assert "".join(text[a:b] for a, b in tiles) == text[start:end]
    assert all(a < b for a, b in tiles)
    assert all(text[a:b].strip() for a, b in tiles[1:])


def _vectors(n: int, seed: int) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(n, 5))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@st.composite
def spans(draw: st.DrawFn, length: int) -> list[Interval]:
    out, at = [], 0
    while at < length and draw(st.booleans()):
        a = at + draw(st.integers(0, 30))
        b = a + draw(st.integers(1, 25))
        if b > length:
            break
        out.append((a, b))
        at = b
    return out


@given(st.data(), texts, st.integers(0, 9), st.sampled_from([0.0, 50.0, 75.0, 95.0, 100.0]))
@settings(max_examples=150, deadline=None)
def test_chunks_tile_and_cut_no_finding(data: st.DataObject, text: str, seed: int, breakpoint: float) -> None:
    taken = data.draw(spans(len(text)))
    tiles = join_cut_tiles(split_sentences(text), taken)
    low = data.draw(st.integers(1, 40))
    high = data.draw(st.integers(low, 90))
    made = split_chunks(
        text,
        tiles,
        _vectors(len(tiles), seed),
        breakpoint=breakpoint,
        min_chars=low,
        max_chars=high,
        spans=taken,
    )
    assert "".join(text[a:b] for a, b in made) == text
    assert [a for a, _ in made][1:] == [b for _, b in made][:-1]
    for a, _ in made[1:]:
        assert not any(x < a < y for x, y in taken)
    for a, b in made:
        blanks = [i for i in range(a + 1, b) if text[i - 1].isspace() and not text[i].isspace()]
        assert b - a <= high or all(any(x < i < y for x, y in taken) or i - a > high for i in blanks)


def test_borders_stand_above_the_percentile() -> None:
    text = "".join(f"Sentence number {i} is here. " for i in range(8))
    angles = np.array([0.0, 0.1, 0.2, 1.6, 1.7, 1.8, 1.9, 2.0])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    made = split_chunks(text, split_sentences(text), vectors, breakpoint=99, min_chars=1, max_chars=10_000)
    assert [text[a:b].count("Sentence") for a, b in made] == [3, 5]


def test_short_chunks_join_the_nearer_neighbour() -> None:
    text = "A long first sentence that goes on for a while. Hm. Another long sentence that goes on as well."
    vectors = np.array([[1.0, 0.0], [0.0, 1.0], [0.1, 0.99498744]])
    made = split_chunks(text, split_sentences(text), vectors, breakpoint=0, min_chars=10, max_chars=500)
    assert [text[a:b][:3] for a, b in made] == ["A l", "Hm."]


def test_long_chunks_are_cut_where_the_topic_changes_most() -> None:
    text = "".join(f"Sentence {i} has thirty signs now. " for i in range(6))
    angles = np.array([0.0, 0.1, 0.2, 1.0, 1.1, 1.2])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    made = split_chunks(text, split_sentences(text), vectors, breakpoint=100, min_chars=10, max_chars=150)
    assert [text[a:b].count("Sentence") for a, b in made] == [3, 3]


def test_a_sentence_too_long_is_cut_at_a_blank() -> None:
    text = "word " * 40
    made = split_chunks(text, split_sentences(text), np.ones((1, 1)), min_chars=5, max_chars=23)
    assert all(b - a <= 23 for a, b in made)
    assert all(text[a:b].startswith("word") for a, b in made)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"breakpoint": 101.0}, "percentile from 0 to 100"),
        ({"min_chars": 0}, "1 <= min_chars"),
        ({"min_chars": 50, "max_chars": 40}, "got 50 and 40"),
    ],
)
def test_wrong_sizes_are_told(options: dict[str, float], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        split_chunks("One. Two.", split_sentences("One. Two."), np.ones((2, 1)), **options)  # type: ignore[arg-type]


def test_each_sentence_needs_a_vector() -> None:
    with pytest.raises(UsageError, match="2 sentences need as many vectors, got 1"):
        split_chunks("One. Two.", split_sentences("One. Two."), np.ones((1, 1)))
