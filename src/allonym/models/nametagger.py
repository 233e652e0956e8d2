"""Taggers for languages other than English that rest on a pretrained encoder.

A transformer over pieces of words gives scores of tags, and a chain over neighbouring tags turns them into chances, as
in :mod:`allonym.models.wordtagger`, whose words these taggers read. Each window is computed alone.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from allonym.models.runtime import Embeddings, open_session
from allonym.models.windows import Words, cut_windows, rate_word_borders
from allonym.models.words import Unigram, classify_shape
from allonym.models.wordtagger import WordTagger, chain_tags, list_gaps, split_words

_LEAST_CAPITALS = 5  # letters of the longest word of a heading in capitals; shorter ones may be abbreviations


def tokenise_words(text: str, pieces: Unigram) -> Words:
    """Read the words of a text as :func:`~allonym.models.wordtagger.split_words`, with pieces and shapes."""
    borders = split_words(text)
    gaps = list_gaps(text, borders)
    words = _soften_capitals([text[a:b] for a, b in borders], gaps, pieces)
    split = [pieces.pieces(word, gap != "") for word, gap in zip(words, gaps, strict=True)]
    shapes = [classify_shape(word, gap == "") for word, gap in zip(words, gaps, strict=True)]
    return Words(borders, split, shapes, rate_word_borders(text, borders))


def _soften_capitals(words: list[str], gaps: list[str], pieces: Unigram) -> list[str]:
    """Words as usually written, where a line is all in capitals: such headings look like names to the network."""
    starts = [n for n, gap in enumerate(gaps) if "\n" in gap]
    out = list(words)
    for start, end in pairwise([*starts, len(words)]):
        line = words[start:end]
        if max(map(len, line)) >= _LEAST_CAPITALS and not any(c.islower() for word in line for c in word):
            out[start:end] = [pieces.choose_case(word) if word.isalpha() else word for word in line]
    return out


class NameTagger:
    """A model that was read from a folder with ``tagger.onnx``, ``model.json`` and the pieces of words.

    Raises:
        DataError: its word embeddings are missing or damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.about: dict[str, Any] = json.loads((folder / "model.json").read_text("utf-8"))
        self.labels: tuple[str, ...] = tuple(self.about["labels"])
        self._chain = np.exp(np.array(self.about["chain"], np.float32))
        self._embed = Embeddings(folder)
        self._session = open_session(folder / "tagger.onnx")

    def __call__(self, text: str, language: str = "") -> tuple[list[tuple[int, int]], Any]:
        """Return the places of words and the chances ``(words, 1 + 2 * labels)`` of O, B and I of each label.

        The language is not needed; it is there so that these taggers are called as the others are.
        """
        pieces = self._embed.pieces
        words = tokenise_words(text, pieces)
        out = np.zeros((len(words.pieces), 1 + 2 * len(self.labels)), np.float32)
        for window in cut_windows(words, pieces):
            feed = {
                "x": self._embed(window.pieces),
                "shapes": np.asarray(window.shapes, np.int64)[None],
                "heads": np.asarray(window.heads, np.int64),
            }
            scores = self._session.run(None, feed)[0]
            chances = chain_tags(np.exp(scores - scores.max(1, keepdims=True)), self._chain)
            inner = slice(window.keep_from - window.first, window.keep_to - window.first)
            out[window.keep_from : window.keep_to] = chances[inner]
        return list(words.borders), out


def open_tagger(folder: Path) -> NameTagger | WordTagger:
    """Open the model of a folder: a network over pieces where there is one, else one over words."""
    return NameTagger(folder) if (folder / "tagger.onnx").exists() else WordTagger(folder)
