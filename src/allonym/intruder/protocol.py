"""What intruders get, and what they answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

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
