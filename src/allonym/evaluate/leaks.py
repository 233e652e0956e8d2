"""Leaks by type: the false negative rate of P4 (4.2, Table 4), by position and by what is left in the text.

By places, a gold mention leaks where some letter or digit of it is in no finding, of whatever type. By text, the
surface of a mention leaks where it still stands in the anonymised text as a whole word, in any case; each surface
counts once a document. A pseudonym that happens to be the same word counts as a leak, too.

P4 does not say what its column "Mean" averages: it is neither the mean of its three rates nor that of all entities.
Here both are told.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from allonym.document import merge_intervals
from allonym.evaluate.matching import Found, Mention, has_uncovered, select_touching
from allonym.serial import Serialisable
from allonym.stats import Estimate
from allonym.stats.resampling import Draws
from allonym.text.fold import fold_spellings
from allonym.text.words import compile_whole_words

__all__ = ["Leak", "Leaks"]

_WIDTH = 5


@dataclass(frozen=True, slots=True)
class Leak(Serialisable):
    """The rates of one type, 0 to 1; lower is better.

    Attributes:
        mentions: share of the gold mentions that are not covered wholly.
        untouched: share of those of which nothing is covered.
        surfaces: share of the surfaces that still stand in the anonymised text; none without such a text.
    """

    mentions: Estimate
    untouched: Estimate
    surfaces: Estimate


@dataclass(frozen=True, slots=True)
class Leaks(Serialisable):
    """Leak rates: per type, the mean over the types (each weighs the same), and over all mentions together."""

    types: Mapping[str, Leak]
    mean: Leak
    all: Leak


def count_leaks(
    text: str, gold: Sequence[Mention], findings: Sequence[Found], number: Mapping[str, int], after: str | None
) -> Any:
    """Count one text, ``(classes, 5)``: mentions, those that leak, those untouched, surfaces, those that are left."""
    table = np.zeros((len(number), _WIDTH), np.int64)
    cover = merge_intervals((f.start, f.end) for f in findings)
    surfaces: dict[tuple[str, str], tuple[str, ...]] = {}
    for mention in gold:
        row, place = number[mention.name], (mention.start, mention.end)
        leaks = has_uncovered(text, [place], cover)
        nothing = leaks and not select_touching(place, cover)
        table[row, :3] += (1, leaks, nothing)
        if any(c.isalnum() for c in text[slice(*place)]):
            spellings = _spell_surface(text[slice(*place)])
            surfaces[mention.name, spellings[0]] = spellings
    if after is not None:
        texts = _spell_surface(after)
        for (name, _), spellings in surfaces.items():
            folded_text = any(contains_surface(surface, rest) for surface in spellings for rest in texts)
            table[number[name], 3:] += (1, folded_text)
    return table


def _spell_surface(text: str) -> tuple[str, ...]:
    return tuple(" ".join(spelling.split()) for spelling in fold_spellings(text))


def contains_surface(surface: str, text: str) -> bool:
    """Whether a surface occurs in a text as whole words; both are folded.

    >>> stands("ann", "anna met ann."), stands("ann", "anna")
    (True, False)
    """
    if surface not in text:
        return False
    return compile_whole_words(re.escape(surface)).search(text) is not None


def estimate_leaks(table: Any, draws: Draws, names: Sequence[str], *, after: bool) -> Leaks:
    """Estimate leak rates from :func:`count_leaks` of all texts, ``(n, classes, 5)``."""
    sums = draws.sums(table)[:, : len(names)]

    def estimate_leak(part: Any) -> Leak:
        return Leak(
            _estimate_rate(draws, part, 1, 0, "no mention"),
            _estimate_rate(draws, part, 2, 0, "no mention"),
            _estimate_rate(draws, part, 4, 3, "no mention" if after else "no anonymised text"),
        )

    types = {name: estimate_leak(sums[:, i : i + 1]) for i, name in enumerate(names)}
    return Leaks(types, estimate_leak(sums), estimate_leak(sums.sum(axis=1, keepdims=True)))


def _estimate_rate(draws: Draws, part: Any, hits: int, total: int, reason: str) -> Estimate:
    """Estimate the mean of the rates of the types that have any."""
    n = int(part[0, :, total].sum())
    with np.errstate(invalid="ignore", divide="ignore"):
        each = part[:, :, hits] / part[:, :, total]
        there = ~np.isnan(each)
        values = np.where(there, each, 0).sum(axis=1) / there.sum(axis=1)
    return draws.estimate(values, n, reason, share=part.shape[1] == 1)
