"""A small tagger of names for many languages: a network over words, from hashed features of each word.

The features of a word (its letters, beginnings, ends and shape) and the language each have a row of one table; their
sum goes through residual convolutions over neighbouring words. The table is int8 with a scale for each row.
"""

from __future__ import annotations

import json
import re
import unicodedata
from functools import lru_cache
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

KINDS = ("PERSON", "LOCATION", "ORGANIZATION")
ROWS = 1 << 16
FEATURES = 12
_WORD = re.compile(r"[^\W\d_]+|\d+|[^\w\s]|_")
_RUN = re.compile(r"(.)\1+")
_LONGEST = 256  # words that are read at once
_MARGIN = 16  # words of context on either side of them


def split_words(text: str) -> list[tuple[int, int]]:
    """The half-open places of words, numbers and marks."""
    return [match.span() for match in _WORD.finditer(text)]


@lru_cache(maxsize=200_000)
def hash_features(word: str) -> tuple[int, ...]:
    """The table rows of the features of a word, ``FEATURES`` in number, each below ``ROWS``."""
    low = word.lower()
    bare = "".join(c for c in unicodedata.normalize("NFD", low) if not unicodedata.combining(c))
    shape = "".join("X" if c.isupper() else "x" if c.isalpha() else "9" if c.isdigit() else c for c in word)
    names = (
        f"w{low}",
        f"b{bare}",
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
    return tuple(crc32(name.encode("utf-8", "surrogatepass")) % ROWS for name in names)


def hash_language(code: str) -> int:
    """The table row of a language."""
    return crc32(f"@{code}".encode()) % ROWS


class WordTagger:
    """A model that was read from a folder with ``weights.npz`` and ``model.json``."""

    def __init__(self, folder: Path) -> None:
        self.about: dict[str, Any] = json.loads((folder / "model.json").read_text("utf-8"))
        with np.load(folder / "weights.npz") as data:
            self._weights = {name: data[name].astype(np.float32) for name in data.files if "table" not in name}
            self._table, self._scale = data["table"], data["table.scale"]

    def __call__(self, text: str, language: str) -> tuple[list[tuple[int, int]], Any]:
        """Return the places of words and the chances ``(words, 1 + 2 * kinds)`` of O, B and I of each kind."""
        borders = split_words(text)
        rows = np.array([hash_features(text[a:b]) for a, b in borders], dtype=np.int64).reshape(-1, FEATURES)
        parts = []
        for start in range(0, len(rows), _LONGEST):
            first = max(0, start - _MARGIN)
            chances = self._run(rows[first : start + _LONGEST + _MARGIN], hash_language(language))
            parts.append(chances[start - first : start - first + _LONGEST])
        return borders, np.concatenate(parts) if parts else np.zeros((0, 1 + 2 * len(KINDS)), np.float32)

    def _run(self, rows: Any, language: int) -> Any:
        weights = self._weights
        x = (self._table[rows].astype(np.float32) * self._scale[rows]).sum(1)
        x = x + self._table[language].astype(np.float32) * self._scale[language]
        x = np.tanh(x @ weights["first.weight"].T + weights["first.bias"])
        for n in range(self.about["layers"]):
            kernel = weights[f"layers.{n}.weight"]  # (out, in, 3)
            pad = np.pad(x, ((1, 1), (0, 0)))
            y = sum(pad[k : k + len(x)] @ kernel[:, :, k].T for k in range(3)) + weights[f"layers.{n}.bias"]
            x = x + np.maximum(y, 0)
        logits = x @ weights["last.weight"].T + weights["last.bias"]
        logits -= logits.max(1, keepdims=True)
        chances = np.exp(logits)
        return chances / chances.sum(1, keepdims=True)
