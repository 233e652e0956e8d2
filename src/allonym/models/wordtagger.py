"""Small taggers for languages other than English: a network over words, from hashed features of each word.

The features of a word (its letters, beginnings, ends and shape, the gap before it, how frequent it is in the language,
what lists and a dictionary know of it) and the language each have a row of one table. Their sum goes through residual
convolutions over words that are more and more apart, and a chain over neighbouring tags (a linear-chain conditional
random field, Lafferty et al. 2001) turns the scores into chances. The table is int8 with a scale for each row.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

KINDS = ("PERSON", "LOCATION", "ORGANIZATION")
_WORD = re.compile(r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,4}|\d+(?:[.,:/-]\d+)*|[^\W\d_]+|[^\w\s]|_")
_DIGIT = re.compile(r"\d")
_RUN = re.compile(r"(.)\1+")
_LAYERS = ("first", "layers", "last")
_INFLECTED = frozenset("cs et fi hr hu pl ro ru sk sl sr".split())  # languages in which names have endings
_LEAST_STEM = 4  # letters
_OF_LETTERS = 12  # features that a word has by its letters alone
_COMPOUNDING = frozenset("da de et fi hu nl no sv".split())  # languages that write compounds as one word
_LEAST_HEAD, _LEAST_TAIL = 3, 4  # letters of such a compound
_FREQUENT = 4  # class of frequency from which on a word may be the tail of a compound
_LONGEST = 256  # words that are read at once
_MARGIN = 24  # words of context on either side of them


def split_words(text: str) -> list[tuple[int, int]]:
    """The half-open places of words, mail addresses, numbers (dates in figures are one) and marks."""
    return [match.span() for match in _WORD.finditer(text)]


@lru_cache(maxsize=200_000)
def _hash_letters(word: str, size: int) -> tuple[int, ...]:
    low = word.lower()
    bare = _drop_marks(low)
    form = _DIGIT.sub("9", low)  # numbers are told by their form
    shape = "".join("X" if c.isupper() else "x" if c.isalpha() else "9" if c.isdigit() else c for c in word)
    names = (
        f"w{form}",
        f"b{_drop_marks(form)}",
        f"p2{bare[:2]}",
        f"p3{bare[:3]}",
        f"p4{bare[:4]}",
        f"p5{bare[:5]}",
        f"s1{bare[-1:]}",
        f"s2{bare[-2:]}",
        f"s3{bare[-3:]}",
        f"s4{bare[-4:]}",
        "t" + _RUN.sub(r"\1+", shape),
        f"l{shape[:1]}{min(len(word), 9)}",
    )
    return tuple(_hash(name, size) for name in names)


def _drop_marks(word: str) -> str:
    """A word in plain letters."""
    return "".join(c for c in unicodedata.normalize("NFD", word) if not unicodedata.combining(c))


def _hash(name: str, size: int) -> int:
    return crc32(name.encode("utf-8", "surrogatepass")) % size


def hash_language(code: str, size: int) -> int:
    """The row of a language in a table of some size."""
    return _hash(f"@{code}", size)


class WordLists:
    """How frequent words are in languages, and which are known as names; of each only a hash is kept.

    Args:
        keys: uint32, sorted: hashes of a language's code and a word, or of a plain word alone.
        values: uint8, the same number: a class of frequency above 0, or for plain words and those of a dictionary
            (:meth:`in_dictionary`) the sum of 1 (given name), 2 (family name), 4 (place), 8 (other name), 16 (no name).
        has_dictionaries: whether a word also has features of a dictionary of its language.
    """

    ORDINARY = 16
    """The value of a word that a dictionary knows, and not as a name."""

    def __init__(self, keys: Any, values: Any, has_dictionaries: bool = False) -> None:
        self.keys, self.values, self.has_dictionaries = keys, values, has_dictionaries
        self.find = lru_cache(maxsize=200_000)(self._find)
        self.hash_rows = lru_cache(maxsize=200_000)(self._hash_rows)

    @staticmethod
    def hash(word: str, language: str = "") -> int:
        """The key of a word in a language, or of one that lists know as a name."""
        low = word.lower()
        return _hash(f"{language} {low if language else _drop_marks(low).replace('ł', 'l')}", 1 << 32)

    def _find(self, word: str, language: str = "") -> int:
        """The value of a word in a language, or of a plain word; 0 where it is not listed."""
        key = self.hash(word, language)
        place = int(np.searchsorted(self.keys, np.uint32(key)))
        return int(self.values[place]) if place < len(self.keys) and self.keys[place] == key else 0

    @staticmethod
    def in_dictionary(language: str) -> str:
        """The code under which the words of a language's dictionary are listed."""
        return f"{language}!"

    def _find_inflected(self, word: str) -> int:
        """The lists that know a word without its ending ("Kowalskiego", "Anny"), plus 8; 0 where none does."""
        bare = _drop_marks(word.lower())
        stems = (bare[:-cut] for cut in range(1, 4) if len(bare) - cut >= _LEAST_STEM)
        forms = (form for stem in stems for form in (stem, f"{stem}a"))
        return next((lists + 8 for form in forms if (lists := self.find(form))), 0)

    def _find_tail(self, word: str, language: str) -> tuple[str, int, int]:
        """The longest known word that a compound ends in ("nummer" of "Kundennummer"), its dictionary and frequency."""
        low = word.lower()
        for cut in range(_LEAST_HEAD, len(low) - _LEAST_TAIL + 1):
            value, frequency = self.find(low[cut:], self.in_dictionary(language)), self.find(low[cut:], language)
            if value & self.ORDINARY or frequency >= _FREQUENT:
                return low[cut:], value, frequency
        return "", 0, 0

    def _hash_rows(self, word: str, language: str, size: int) -> tuple[int, ...]:
        """The rows of a word's frequency, of the lists that know it, and of both with its capitals.

        With dictionaries, further rows are of what they know of the word, and of the word that it ends in.
        """
        frequency = self.find(word, language) if language else "?"
        lists = self.find(word) or (self._find_inflected(word) if language in _INFLECTED else 0)
        capitals = f"{word[:1].isupper():d}{word[1:2].isupper():d}"
        names = [f"f{frequency}", f"n{lists}", f"c{capitals} {frequency} {lists}"]
        if self.has_dictionaries:
            value = self.find(word, self.in_dictionary(language))
            tail, *of_tail = self._find_tail(word, language) if language in _COMPOUNDING else ("", 0, 0)
            names += [f"d{capitals} {value}", f"k{capitals} {of_tail} {bool(frequency)}", f"e{tail}"]
        return tuple(_hash(name, size) for name in names)


def hash_words(
    words: Sequence[str], gaps: Sequence[str], language: str, size: int, lists: WordLists | None = None
) -> Any:
    """The rows of the features of each word in a table of some size (words, features).

    Args:
        gaps: what stands before each word.
        language: ISO 639 code; empty where it is not told.
    """
    kinds = {kind: _hash(f"g{kind}", size) for kind in ("", " ", "\n")}
    rows = [
        (*_hash_letters(word, size), kinds["\n" if "\n" in gap else gap[:1] and " "])
        + (lists.hash_rows(word, language, size) if lists else ())
        for word, gap in zip(words, gaps, strict=True)
    ]
    return np.array(rows, np.int64)


def list_gaps(text: str, borders: Sequence[tuple[int, int]]) -> list[str]:
    """What stands before each word; a text begins a line."""
    return [text[a:b] if b else "\n" for (_, a), (b, _) in pairwise([(0, 0), *borders])]


class WordTagger:
    """A model that was read from a folder with ``weights.npz`` and ``model.json``."""

    def __init__(self, folder: Path) -> None:
        self.about: dict[str, Any] = json.loads((folder / "model.json").read_text("utf-8"))
        self.labels: tuple[str, ...] = tuple(self.about["labels"])
        with np.load(folder / "weights.npz") as data:
            self._weights = {
                name: data[name].astype(np.float32)
                for name in data.files
                if "." not in name or name.split(".")[0] in _LAYERS
            }
            self._table, self._scale = data["table"], data["table.scale"].astype(np.float32)
            self._lists = (
                WordLists(data["lists.keys"], data["lists.values"], self.about.get("dictionaries", False))
                if "lists.keys" in data
                else None
            )

    def __call__(self, text: str, language: str) -> tuple[list[tuple[int, int]], Any]:
        """Return the places of words and the chances ``(words, 1 + 2 * labels)`` of O, B and I of each label."""
        borders, size = split_words(text), len(self._table)
        words = [text[a:b] for a, b in borders]
        rows = hash_words(words, list_gaps(text, borders), language, size, self._lists)
        if words and not self.about["gaps"]:
            rows = rows[:, :_OF_LETTERS]
        parts = []
        for start in range(0, len(rows), _LONGEST):
            first = max(0, start - _MARGIN)
            chances = self._run(rows[first : start + _LONGEST + _MARGIN], hash_language(language, size))
            parts.append(chances[start - first : start - first + _LONGEST])
        return borders, np.concatenate(parts) if parts else np.zeros((0, 1 + 2 * len(self.labels)), np.float32)

    def _run(self, rows: Any, language: int) -> Any:
        weights = self._weights
        x = (self._table[rows].astype(np.float32) * self._scale[rows]).sum(1)
        x = x + self._table[language].astype(np.float32) * self._scale[language]
        x = np.tanh(x @ weights["first.weight"].T + weights["first.bias"])
        for n, distance in enumerate(self.about["layers"]):
            kernel = weights[f"layers.{n}.weight"]  # (out, in, 3)
            pad = np.pad(x, ((distance, distance), (0, 0)))
            y = sum(pad[k * distance : k * distance + len(x)] @ kernel[:, :, k].T for k in range(3))
            x = x + np.maximum(y + weights[f"layers.{n}.bias"], 0)
        scores = x @ weights["last.weight"].T + weights["last.bias"]
        return chain_tags(np.exp(scores - scores.max(1, keepdims=True)), np.exp(weights["chain"]))


def chain_tags(scores: Any, chain: Any) -> Any:
    """The chance of each tag of each word (words, tags), by the forward-backward algorithm."""
    ahead, behind = scores.copy(), np.ones_like(scores)
    ahead[0] /= ahead[0].sum()
    for n in range(1, len(scores)):
        row = (ahead[n - 1] @ chain) * scores[n]
        ahead[n] = row / row.sum()
    for n in range(len(scores) - 2, -1, -1):
        row = chain @ (behind[n + 1] * scores[n + 1])
        behind[n] = row / row.sum()
    chances = ahead * behind
    return chances / chances.sum(1, keepdims=True)
