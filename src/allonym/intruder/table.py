"""The one result table of all intruders, be they programs, language models or people (P3 Tables 3, 4 and 7)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from allonym.errors import DataError
from allonym.stats import Estimate, none
from allonym.stats.samples import average, share


@dataclass(frozen=True, slots=True)
class Row:
    """What an intruder made of one text.

    Attributes:
        text: its id.
        subject: the truth. Hidden from ``repr``.
        group: fame class or any other grouping; empty: none.
        guesses: best first, empty where there is no guess; of people one per judgement. Hidden from ``repr``.
        similarity: of the guess with the truth, 0 to 1; of several judgements their mean; NaN: not measured.
        identified: whether the subject counts as found.
        rank: place of the truth among the guesses or candidates, from 1; 0: not among them, or not known.
        judgements: how many judges read the text.
    """

    text: str
    subject: str = field(repr=False)
    group: str = ""
    guesses: tuple[str, ...] = field(default=(), repr=False)
    similarity: float = math.nan
    identified: bool = False
    rank: int = 0
    judgements: int = 1

    def to_dict(self) -> dict[str, object]:
        """Plain values; they hold the truth and the guesses."""
        return {
            "text": self.text,
            "subject": self.subject,
            "group": self.group,
            "guesses": list(self.guesses),
            "similarity": None if math.isnan(self.similarity) else self.similarity,
            "identified": self.identified,
            "rank": self.rank,
            "judgements": self.judgements,
        }


@dataclass(frozen=True, slots=True)
class Rate:
    """A line of the table.

    Attributes:
        name: of the subject or the group; empty: all texts.
        group: of the subject; empty for others.
        texts: how many; judgements: of them in all.
        similarity: mean over the texts with Student's t interval.
        spread: standard deviation (n - 1) of the similarities; NaN of fewer than two.
        identified: share of texts, 0 to 1, with Wilson's interval.
        error: standard error of that share as P3 has it, SD (n - 1) / sqrt(n), 0 to 1; NaN of fewer than two.
    """

    name: str = field(repr=False)
    group: str
    texts: int
    judgements: int
    similarity: Estimate
    spread: float
    identified: Estimate
    error: float

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON; NaN as None."""
        return {
            "name": self.name,
            "group": self.group,
            "texts": self.texts,
            "judgements": self.judgements,
            "similarity": self.similarity.to_dict(),
            "spread": None if math.isnan(self.spread) else self.spread,
            "identified": self.identified.to_dict(),
            "error": None if math.isnan(self.error) else self.error,
        }


@dataclass(frozen=True, slots=True)
class Results:
    """The table of one intruder.

    Attributes:
        intruder: who it was.
        rows: one per text. Hidden from ``repr``.
        all: over all texts.
        groups: sorted by name; empty where no text has a group.
        subjects: sorted by group and name. Hidden from ``repr``.
        ranks: k to the share of texts whose subject is among the first k guesses; empty where ranks are not known.
    """

    intruder: str
    rows: tuple[Row, ...] = field(repr=False)
    all: Rate
    groups: tuple[Rate, ...]
    subjects: tuple[Rate, ...] = field(repr=False)
    ranks: Mapping[int, Estimate]

    def to_dict(self, texts: bool = False) -> dict[str, object]:
        """Plain values for JSON.

        Args:
            texts: whether subjects are named, and rows with truths and guesses given; without, subjects are numbered.
        """
        named = [s if texts else replace(s, name=f"subject {i}") for i, s in enumerate(self.subjects, 1)]
        out: dict[str, object] = {
            "intruder": self.intruder,
            "all": self.all.to_dict(),
            "groups": [g.to_dict() for g in self.groups],
            "subjects": [s.to_dict() for s in named],
            "ranks": {str(k): e.to_dict() for k, e in self.ranks.items()},
        }
        return {**out, "rows": [r.to_dict() for r in self.rows]} if texts else out


def tabulate(intruder: str, rows: Iterable[Row], *, top: Sequence[int] = (1, 5, 10)) -> Results:
    """Rates over all texts, per group and per subject.

    Args:
        intruder: who it was.
        rows: one per text, in any order.
        top: the k of :attr:`Results.ranks`; those beyond the longest list of guesses are left out.

    Raises:
        DataError: two rows for one text.
    """
    kept = tuple(rows)
    seen: set[str] = set()
    for row in kept:
        if row.text in seen:
            raise DataError("intruder: one row for each text is required; a text has two")
        seen.add(row.text)
    groups: dict[str, list[Row]] = {}
    subjects: dict[tuple[str, str], list[Row]] = {}
    for row in kept:
        groups.setdefault(row.group, []).append(row)
        subjects.setdefault((row.group, row.subject), []).append(row)
    longest = max((max(len(r.guesses), r.rank) for r in kept), default=0)
    ranked = any(r.rank for r in kept)
    return Results(
        intruder,
        kept,
        _rate("", "", kept),
        tuple(_rate(g, "", groups[g]) for g in sorted(groups)) if set(groups) != {""} else (),
        tuple(_rate(name, group, subjects[group, name]) for group, name in sorted(subjects)),
        {k: share(sum(0 < r.rank <= k for r in kept), len(kept)) for k in top if k <= longest} if ranked else {},
    )


def _rate(name: str, group: str, rows: Sequence[Row]) -> Rate:
    n, hits = len(rows), sum(r.identified for r in rows)
    told = [r.similarity for r in rows if not math.isnan(r.similarity)]
    similarity = average(told) if told else none("no similarity was measured", n)
    spread = math.nan
    if len(told) > 1:
        middle = sum(told) / len(told)
        spread = math.sqrt(sum((s - middle) ** 2 for s in told) / (len(told) - 1))
    p = hits / n if n else math.nan
    error = math.sqrt(p * (1 - p) / (n - 1)) if n > 1 else math.nan
    return Rate(name, group, n, sum(r.judgements for r in rows), similarity, spread, share(hits, n), error)
