"""The tagger's network: from texts to probabilities of tags, word by word.

Each window is computed alone and depends on its text alone, so neither batch nor order nor the number of threads can
change a result.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from allonym.errors import DataError
from allonym.models.runtime import HERE, Embeddings, map_in_threads, open_session
from allonym.models.windows import Window, cut_windows, tokenise_text

ENGLISH = HERE / "english"
_CACHED = 2048  # windows whose results are remembered
_FORMAT = 1
_GATE = "gate.least"  # input of a network with a gate: the score that a word needs to pass


@dataclass(frozen=True, slots=True, repr=False)
class Tagged:
    """The output of the network for a text.

    Attributes:
        borders: offsets of each word.
        tags: float32 array ``(words, 1 + 2 * labels)``, log probabilities.
        parts: float32 array ``(words, 17)``, logits of the parts of speech; those of words that a gate stopped mean
            nothing.
    """

    borders: Sequence[tuple[int, int]]
    tags: Any
    parts: Any


class TaggerModel:
    """A loaded model folder. It may be used from several threads at once.

    Args:
        folder: with ``tagger.onnx``, ``tagger.json``, ``words.npy``, ``word_scales.npy`` and ``vocab.txt``.
        threads: windows of a text that are computed at the same time.
        gpu: whether to use a GPU where there is one.

    Raises:
        DataError: the folder is not a tagger, or one of another version.
    """

    def __init__(self, folder: Path, *, threads: int = 1, gpu: bool = False) -> None:
        self.about = read_description(folder)
        self.labels = tuple(self.about["labels"])
        self.parts = tuple(self.about["parts"])
        self.temperature = float(self.about.get("temperature", 1.0))
        self._embed = Embeddings(folder)
        self.pieces = self._embed.pieces
        self._session = open_session(folder / "tagger.onnx", gpu=gpu)
        self._has_gate = any(entry.name == _GATE for entry in self._session.get_overridable_initializers())
        self._threads = threads
        self._remember_window_outputs = lru_cache(_CACHED)(self._compute_window_outputs)

    def __call__(self, text: str, *, every_word: bool = False) -> Tagged:
        """Compute the probabilities of each word's tags.

        Args:
            text: any text.
            every_word: whether a gate stops no word, so that all parts of speech are known.
        """
        words = tokenise_text(text, self._embed.pieces)
        cut = cut_windows(words, self._embed.pieces)
        longest_first = sorted(cut, key=lambda window: -len(window.pieces))  # so that none is waited for alone
        unplaced = [replace(window, first=0, last=0, keep_from=0, keep_to=0) for window in longest_first]
        compute = partial(self._remember_window_outputs, every_word=every_word and self._has_gate)
        results = map_in_threads(compute, unplaced, self._threads)
        tags = np.empty((len(words.pieces), 1 + 2 * len(self.labels)), np.float32)
        parts = np.empty((len(words.pieces), len(self.parts)), np.float32)
        for window, (window_tags, window_parts) in zip(longest_first, results, strict=True):
            inner = slice(window.keep_from - window.first, window.keep_to - window.first)
            tags[window.keep_from : window.keep_to] = window_tags[inner]
            parts[window.keep_from : window.keep_to] = window_parts[inner]
        return Tagged(words.borders, tags, parts)

    def _compute_window_outputs(self, window: Window, *, every_word: bool) -> Any:
        """The log probabilities of tags and logits of parts of speech of a window."""
        tags, parts = self.logits(window, every_word=every_word)
        tags = tags / self.temperature
        tags -= tags.max(axis=1, keepdims=True)
        tags -= np.log(np.exp(tags).sum(axis=1, keepdims=True))
        return tags, parts

    def logits(self, window: Window, *, every_word: bool = False) -> Any:
        """Run the network on one window: logits of tags and of parts of speech, ``(words, ·)`` each."""
        feed = {
            "x": self._embed(window.pieces),
            "shapes": np.asarray(window.shapes, np.int64)[None],
            "heads": np.asarray(window.heads, np.int64),
        }
        if every_word and self._has_gate:
            feed[_GATE] = np.array(-np.inf, np.float32)
        return self._session.run(None, feed)


def read_description(folder: Path = ENGLISH) -> dict[str, Any]:
    """Return the contents of a tagger's ``tagger.json``: labels, temperature, operating points and what they cover.

    Raises:
        DataError: the folder is not a tagger, or one of another version.
    """
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder; a tagger is a folder that 'allonym train ner' wrote")
    try:
        about: dict[str, Any] = json.loads((folder / "tagger.json").read_text("utf-8"))
        tuple(about["labels"]), tuple(about["parts"]), float(about.get("temperature", 1.0))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{folder}: no tagger: {type(error).__name__} in tagger.json") from None
    if about.get("format") != _FORMAT:
        raise DataError(f"{folder}: tagger.json has format {about.get('format')!r}, this version reads {_FORMAT}")
    return about


def load_tagger(folder: Path = ENGLISH, threads: int = 1, gpu: bool = False) -> TaggerModel:
    """Load a tagger, once per process; by default the English one that ships with allonym."""
    return _load_tagger(folder, threads, gpu)


@cache
def _load_tagger(folder: Path, threads: int, gpu: bool) -> TaggerModel:
    return TaggerModel(folder, threads=threads, gpu=gpu)
