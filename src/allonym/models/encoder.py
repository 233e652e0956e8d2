"""Sentence vectors from the embedded encoder (Reimers and Gurevych 2019, doi:10.18653/v1/D19-1410; all-MiniLM-L6-v2).

Each text is computed alone, so that a vector depends on its text only.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from allonym.models.runtime import Embeddings, map_in_threads, open_session
from allonym.models.tagger import ENGLISH
from allonym.models.words import split_words

WIDTH = 384
LENGTH = 254  # pieces read at once, border marks not counted


class SentenceEncoder:
    """A model folder with ``encoder.onnx`` and the word embeddings that the tagger uses too.

    Args:
        folder: the model.
        threads: texts that are computed at the same time.
        gpu: whether to use a GPU where there is one.

    Raises:
        DataError: the folder holds no encoder.
    """

    def __init__(self, folder: Path = ENGLISH, *, threads: int = 1, gpu: bool = False) -> None:
        self._embed = Embeddings(folder)
        self._session = open_session(folder / "encoder.onnx", gpu=gpu)
        self._threads = threads
        self._opened = (folder, threads, gpu)

    def __reduce__(self) -> tuple[Any, ...]:
        return load_encoder, self._opened  # a session stays in its process; another opens the folder again

    def encode(self, texts: Sequence[str]) -> Any:
        """Return unit vectors, float32 ``(len(texts), 384)``; cosine similarity is their dot product.

        Texts longer than 254 pieces (about 200 words) are read in parts, whose means are weighted by length. A text
        without words has the zero vector.
        """
        vectors = map_in_threads(self._encode_text, texts, self._threads)
        return np.array(vectors, np.float32).reshape(-1, WIDTH)

    def _encode_text(self, text: str) -> Any:
        pieces = self._embed.pieces
        ids = [p for a, b in split_words(text) for p in pieces.pieces(text[a:b])]
        total = np.zeros(WIDTH, np.float64)
        parts = max(1, -(-len(ids) // LENGTH))
        size = -(-len(ids) // parts)
        for start in range(0, len(ids), size or 1):
            part = [pieces.start, *ids[start : start + size], pieces.end]
            mean = self._session.run(None, {"x": self._embed(part)})[0][0]
            total += mean.astype(np.float64) * len(part)
        length = float(np.sqrt(total @ total))
        return (total / length).astype(np.float32) if length else total.astype(np.float32)


@cache
def load_encoder(folder: Path = ENGLISH, threads: int = 1, gpu: bool = False) -> SentenceEncoder:
    """Load an encoder, once per process; by default the English one that ships with allonym."""
    return SentenceEncoder(folder, threads=threads, gpu=gpu)


def encode(texts: Sequence[str], *, threads: int = 1) -> Any:
    """Return unit vectors of texts by the embedded encoder: float32 ``(len(texts), 384)``."""
    return load_encoder(threads=threads).encode(texts)
