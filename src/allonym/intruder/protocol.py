"""What intruders get, what they answer, and the one result table of all of them, whether programs, language models or
people (P3 Tables 3, 4 and 7)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from allonym.errors import DataError
from allonym.serial import Serialisable
from allonym.stats import Estimate, none
from allonym.stats.samples import average, share

TOLD = ("altered", "interchanged")
"""What an intruder may be told before a further guess (P1 3.2.3): that terms of the text were altered; then that they
were interchanged with those of certain other texts, which it sees."""


@dataclass(frozen=True, slots=True)
class Item:
    """A text as an intruder sees it. All hidden from ``repr``.

    Attributes:
        text: the complete text.
        entities: keys of the entities in it, the same for the same entity in every text.
        forms: surfaces of these entities in the text.
    """

    text: str = field(repr=False)
    entities: tuple[str, ...] = field(default=(), repr=False)
    forms: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Target:
    """A text to be judged.

    Attributes:
        item: the text.
        told: empty, or one of :data:`TOLD`.
        others: where ``told`` is ``interchanged``: the texts that terms were interchanged with; may be none.
    """

    item: Item
    told: str = ""
    others: tuple[Item, ...] = ()


@dataclass(frozen=True, slots=True)
class Ranking:
    """Guesses for ``n`` targets.

    Attributes:
        order: int ``(n, g)``: indices of classes, the best guess first; -1: no guess, or none of the classes.
        scores: float ``(n, g)``: higher is surer, comparable within a row.
    """

    order: NDArray[np.int64]
    scores: NDArray[np.float64]


class Judge(Protocol):
    """An intruder that has learnt."""

    def rank(self, targets: Sequence[Target]) -> Ranking:
        """Rank the classes for each target."""
        ...

    def terms(self, targets: Sequence[Target], labels: Sequence[int]) -> Mapping[str, float]:
        """Return what speaks for the classes ``labels`` in the targets: term to its weight, summed over the targets.

        Empty where the intruder cannot tell.
        """
        ...


class Intruder(Protocol):
    """Somebody who guesses the classes of texts.

    Attributes:
        name: shown in tables.
        learns: whether it uses what it can learn from; one that does not is asked once for everything.
        told: the values of :data:`TOLD` that it can use.
    """

    name: str
    learns: bool
    told: tuple[str, ...]

    def learn(self, items: Sequence[Item], labels: Sequence[int], classes: Sequence[str], /) -> Judge:
        """Learn from texts whose classes are known.

        Args:
            items: the texts.
            labels: index of the class of each.
            classes: names of all classes.
        """
        ...


class Row(Serialisable):
    """The answer of an intruder about one text.

    Attributes:
        text: its id.
        subject: the true subject. Hidden from ``repr``.
        group: fame class or any other grouping; empty: none.
        guesses: best first, empty where there is no guess; of people one per judgement. Hidden from ``repr``.
        similarity: of the guess with the true subject, 0 to 1; the mean of several judgements; NaN: not measured.
        identified: whether the subject counts as identified.
        rank: place of the true subject among the guesses or candidates, from 1; 0: not among them, or not known.
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


class Rate(Serialisable):
    """A line of the table.

    Attributes:
        name: of the subject or the group; empty: all texts.
        group: of the subject; empty for others.
        texts: how many; judgements: of all of them together.
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


class Results(Serialisable):
    """The table of one intruder.

    Attributes:
        intruder: its name.
        rows: one per text. Hidden from ``repr``.
        all: over all texts.
        groups: sorted by name; empty where no text has a group.
        subjects: sorted by group and name. Hidden from ``repr``.
        ranks: k to the share of texts whose subject is among the first k guesses; empty where ranks are not known.
    """

    KEYS = ("intruder", "all", "groups", "subjects", "ranks")
    TEXT_KEYS = ("rows",)

    intruder: str
    rows: tuple[Row, ...] = field(repr=False)
    all: Rate
    groups: tuple[Rate, ...]
    subjects: tuple[Rate, ...] = field(repr=False)
    ranks: Mapping[int, Estimate]

    def to_dict(self, texts: bool = False) -> dict[str, Any]:
        """Return plain values for JSON.

        Args:
            texts: whether subjects are named, and rows included, with true subjects and guesses; without, subjects are
                numbered.
        """
        numbered = tuple(replace(subject, name=f"subject {i}") for i, subject in enumerate(self.subjects, 1))
        return Serialisable.to_dict(self if texts else replace(self, subjects=numbered), texts)


def tabulate_rows(intruder_name: str, rows: Iterable[Row], *, top: Sequence[int] = (1, 5, 10)) -> Results:
    """Compute rates over all texts, per group and per subject.

    Args:
        intruder_name: its name.
        rows: one per text, in any order.
        top: the k of :attr:`Results.ranks`; those beyond the longest list of guesses are left out.

    Raises:
        DataError: two rows for one text.
    """
    rows = tuple(rows)
    if len({row.text for row in rows}) < len(rows):
        raise DataError("intruder: one row for each text is required; a text has two")
    groups: dict[str, list[Row]] = {}
    subjects: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
        subjects.setdefault((row.group, row.subject), []).append(row)
    longest = max((max(len(row.guesses), row.rank) for row in rows), default=0)
    has_ranks = any(row.rank for row in rows)
    return Results(
        intruder_name,
        rows,
        _summarise_identification("", "", rows),
        tuple(_summarise_identification(g, "", groups[g]) for g in sorted(groups)) if set(groups) != {""} else (),
        tuple(_summarise_identification(name, group, subjects[group, name]) for group, name in sorted(subjects)),
        {k: share(sum(0 < r.rank <= k for r in rows), len(rows)) for k in top if k <= longest} if has_ranks else {},
    )


def _summarise_identification(name: str, group: str, rows: Sequence[Row]) -> Rate:
    n, hits = len(rows), sum(row.identified for row in rows)
    similarities = [row.similarity for row in rows if not math.isnan(row.similarity)]
    similarity = average(similarities) if similarities else none("no similarity was measured", n)
    spread = math.nan
    if len(similarities) > 1:
        mean = sum(similarities) / len(similarities)
        spread = math.sqrt(sum((s - mean) ** 2 for s in similarities) / (len(similarities) - 1))
    p = hits / n if n else math.nan
    error = math.sqrt(p * (1 - p) / (n - 1)) if n > 1 else math.nan
    return Rate(name, group, n, sum(row.judgements for row in rows), similarity, spread, share(hits, n), error)
