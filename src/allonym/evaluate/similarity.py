"""How much of the meaning is left: cosine similarity of a text's vectors before and after."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from allonym.evaluate.pairs import checked
from allonym.serial import Serialisable
from allonym.stats import Estimate, none
from allonym.stats.samples import average

__all__ = ["Similarity", "similarities", "similarity"]

Encode = Callable[[Sequence[str]], Any]
_PIECE = 16  # texts between two reports of progress


@dataclass(frozen=True, slots=True)
class Similarity(Serialisable):
    """What :func:`similarity` measures.

    Attributes:
        mean: of the cosine of each text with its anonymised version, -1 to 1; 1: no change in meaning.
        chance: mean cosine of each original with the anonymised version of another text: what unrelated texts of this
            corpus reach.
    """

    mean: Estimate
    chance: Estimate


def similarities(
    original: Sequence[str],
    anonymised: Sequence[str],
    *,
    encode: Encode | None = None,
    threads: int = 1,
    advance: Callable[[int, int], None] | None = None,
) -> tuple[list[float], list[float]]:
    """Per text the cosine with its own anonymised version, and with that of the next text; NaN without words.

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

    n = checked(original, anonymised)
    if encode is None:
        from allonym.models.encoder import load_encoder

        encode = load_encoder(threads=threads).encode
    rows: list[Any] = []
    for texts in (original, anonymised):
        parts = []
        for at in range(0, n, _PIECE):
            parts.append(np.asarray(encode(texts[at : at + _PIECE]), np.float64))
            if advance is not None:
                advance(len(rows) * n + min(n, at + _PIECE), 2 * n)
        rows.append(np.concatenate(parts))
    before, after = rows
    said = [bool(b.any()) and bool(a.any()) for b, a in zip(before, after, strict=True)]
    own = [_cosine(b, a) if ok else math.nan for b, a, ok in zip(before, after, said, strict=True)]
    other = [_cosine(before[i], after[(i + 1) % n]) if n > 1 and said[i] and after[(i + 1) % n].any() else math.nan
             for i in range(n)]  # fmt: skip
    return own, other


def similarity(
    original: Sequence[str],
    anonymised: Sequence[str],
    *,
    encode: Encode | None = None,
    threads: int = 1,
    advance: Callable[[int, int], None] | None = None,
) -> Similarity:
    """Semantic similarity of texts and their anonymised versions; arguments as of :func:`similarities`."""
    return summary(*similarities(original, anonymised, encode=encode, threads=threads, advance=advance))


def summary(own: Sequence[float], other: Sequence[float]) -> Similarity:
    """The means of :func:`similarities`."""
    return Similarity(*(average(known) if (known := [v for v in values if v == v]) else
                        none("no text has words" if values is own else "no other text", len(values))
                        for values in (own, other)))  # fmt: skip


def _cosine(a: Any, b: Any) -> float:
    return max(-1.0, min(1.0, float(a @ b) / float((a @ a) ** 0.5 * (b @ b) ** 0.5)))
