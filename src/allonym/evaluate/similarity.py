"""Semantic similarity: cosine similarity of a text's vectors before and after."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from allonym.evaluate.pairs import check_lengths
from allonym.serial import Serialisable
from allonym.stats import Estimate, none
from allonym.stats.samples import average

Encode = Callable[[Sequence[str]], Any]
_PIECE = 16  # texts between two reports of progress


class Similarity(Serialisable):
    """What :func:`similarity` measures.

    Attributes:
        mean: of the cosine of each text with its anonymised version, -1 to 1; 1: no change in meaning.
        chance: mean cosine of each original with the anonymised version of another text: what unrelated texts of this
            corpus reach.
    """

    mean: Estimate
    chance: Estimate


def measure_similarities(
    original: Sequence[str],
    anonymised: Sequence[str],
    *,
    encode: Encode | None = None,
    threads: int = 1,
    advance: Callable[[int, int], None] | None = None,
) -> tuple[list[float], list[float]]:
    """Return for each text the cosine with its own anonymised version and with that of the next text; NaN without
    words.

    Args:
        original, anonymised: the same texts in the same order.
        encode: texts to an array of unit rows, zeros for a text that says nothing; None: the embedded sentence encoder,
            which reads long texts in parts of about 200 words.
        threads: of the embedded encoder.
        advance: called with texts done and texts in all.

    Raises:
        DataError: unequal lengths, or no texts.
    """
    import numpy as np

    n = check_lengths(original, anonymised)
    if encode is None:
        from allonym.models.encoder import load_encoder

        encode = load_encoder(threads=threads).encode
    rows: list[Any] = []
    for texts in (original, anonymised):
        parts = []
        for start in range(0, n, _PIECE):
            parts.append(np.asarray(encode(texts[start : start + _PIECE]), np.float64))
            if advance is not None:
                advance(len(rows) * n + min(n, start + _PIECE), 2 * n)
        rows.append(np.concatenate(parts))
    before, after = rows
    have_words = [bool(b.any()) and bool(a.any()) for b, a in zip(before, after, strict=True)]
    similar = [_compute_cosine(b, a) if ok else math.nan for b, a, ok in zip(before, after, have_words, strict=True)]
    following = [after[(i + 1) % n] for i in range(n)]
    both = [n > 1 and ok and other.any() for ok, other in zip(have_words, following, strict=True)]
    unrelated = [_compute_cosine(b, a) if ok else math.nan for b, a, ok in zip(before, following, both, strict=True)]
    return similar, unrelated


def similarity(
    original: Sequence[str],
    anonymised: Sequence[str],
    *,
    encode: Encode | None = None,
    threads: int = 1,
    advance: Callable[[int, int], None] | None = None,
) -> Similarity:
    """Measure the semantic similarity of texts and their anonymised versions; arguments as of
    :func:`measure_similarities`."""
    return summarise_similarities(
        *measure_similarities(original, anonymised, encode=encode, threads=threads, advance=advance)
    )


def summarise_similarities(similar: Sequence[float], unrelated: Sequence[float]) -> Similarity:
    """Return the means of :func:`measure_similarities`."""
    return Similarity(*(average(numbers) if (numbers := [v for v in values if v == v]) else
                        none("no text has words" if values is similar else "no other text", len(values))
                        for values in (similar, unrelated)))  # fmt: skip


def _compute_cosine(a: Any, b: Any) -> float:
    return max(-1.0, min(1.0, float(a @ b) / float((a @ a) ** 0.5 * (b @ b) ** 0.5)))
