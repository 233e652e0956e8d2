"""One drawn sequence of swaps, measured: how far each recorded prefix of it moves texts, vectors and tables.

The sequence's prefixes are nested releases (P1 2.3), so one sequence serves all rates. A text that stands in several
prefixes is embedded once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from allonym.swap.corpus import Corpus, Slot
from allonym.swap.exchange import Ground, Rules, exchange
from allonym.swap.exchange import Sequence as Swaps
from allonym.swap.shards import Spread, one_thread
from allonym.swap.utility import Utility, utility
from allonym.swap.writing import chunk_text


class Vectors(Protocol):
    """Texts of chunks to vectors."""

    def __call__(self, texts: Sequence[str], chunks: Sequence[int]) -> tuple[Any, Any]:
        """Two float arrays (len(texts), d) of unit rows: as the embedder gives them, and as the mixture takes them;
        ``chunks`` says which chunk each text is of."""
        ...


class Densities(Protocol):
    """What is asked of a fitted mixture."""

    def component_log_density(self, X: Any, labels: Any) -> Any:
        """(n,) log f(x_i; theta_{l_i}), nats, with respect to the uniform measure."""
        ...


@dataclass(frozen=True, slots=True)
class Space:
    """What every sequence is measured against.

    Attributes:
        raw: (n, d) pre-swap vectors, unit rows; vectors: the same without covariates, to which the mixture was fitted.
        embed: how further texts are embedded.
        labels: (n,) components; before: (n,) log f(x_i; theta_{l_i}); total: their sum, l(x|l).
        rules: of the exchange; its categories are replaced by those of each sequence. ground: what it needs to know of
            the corpus.
        groups: per chunk what restricts donors; None: nothing does.
        allowed: clusters that take part; None: all.
    """

    corpus: Corpus
    raw: Any = field(repr=False)
    vectors: Any = field(repr=False)
    embed: Vectors = field(repr=False)
    mixture: Densities = field(repr=False)
    labels: Any = field(repr=False)
    before: Any = field(repr=False)
    total: float
    rules: Rules
    ground: Ground = field(repr=False)
    groups: Sequence[str] | None = field(default=None, repr=False)
    allowed: Collection[int] | None = None


@dataclass(frozen=True, slots=True)
class Grid:
    """Which prefixes are recorded: ``points`` of them, evenly, up to ``swaps`` swaps; 0: up to the sequence's end."""

    swaps: int
    points: int

    def prefixes(self, length: int) -> tuple[int, ...]:
        """Numbers of swaps. Up to ``swaps``: those of the grid that the sequence reaches. To its end: always
        ``points`` of them, from its first part to the whole; two may be equal in a short sequence."""
        if length <= 0:
            return ()
        if self.swaps:
            many = min(self.points, self.swaps)
            return tuple(r for k in range(many) if (r := -(-(k + 1) * self.swaps // many)) <= length)
        return tuple(-(-(k + 1) * length // self.points) for k in range(self.points))


@dataclass(frozen=True, slots=True)
class Point:
    """A recorded prefix. Attributes as in :class:`allonym.swap.results.Release`, of one draw; ``moves`` counts entities
    that stand somewhere else; ``misleading`` as in :class:`allonym.swap.utility.Utility`."""

    swaps: int
    moves: int
    changed: int
    uniques: int
    utility: float
    distance: float
    cosine: float
    misleading: bool = False
    flags: tuple[str, ...] = ()

    def to_row(self) -> list[object]:
        """Plain values, for the state."""
        return [
            self.swaps,
            self.moves,
            self.changed,
            self.uniques,
            self.utility,
            self.distance,
            self.cosine,
            self.misleading,
            list(self.flags),
        ]

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> Point:
        """What :meth:`to_row` wrote."""
        return cls(*(*row[:-1], tuple(row[-1])))


@dataclass(frozen=True, slots=True)
class Moved:
    """Changed chunks against what they were.

    Attributes:
        chunks: (m,) their indices; raw: (m, d) their vectors; after: (m,) their log densities; cosines: (m,) of raw
            vectors before and after.
    """

    chunks: Any
    raw: Any = field(repr=False)
    after: Any = field(repr=False)
    cosines: Any = field(repr=False)


def draw(space: Space, categories: Sequence[str], seed: int, spread: Spread | None = None) -> Swaps:
    """One sequence of swaps of these categories; ``spread``: who draws its clusters, None: this process."""
    with one_thread():  # the order of scores must not hang on the last bits of cosines
        return exchange(
            space.corpus,
            space.labels,
            replace(space.rules, categories=tuple(categories)),
            seed,
            vectors=space.vectors,
            groups=space.groups,
            allowed=space.allowed,
            ground=space.ground,
            spread=spread,
        )


def moved(space: Space, texts: Mapping[int, str]) -> Moved:
    """Embed what chunks say now, and hold it against what they said.

    Args:
        texts: chunk to its text.
    """
    chunks = np.fromiter(sorted(texts), dtype=np.intp, count=len(texts))
    return Moved(chunks, *_embedded(space, [texts[int(i)] for i in chunks], chunks))


def measured(space: Space, now: Moved) -> Utility:
    """U and D of (2.17)-(2.19) where these chunks stand for the former ones."""
    n, d = space.vectors.shape
    return utility(space.before[now.chunks], now.after, space.total, n=n, d=d)


def evaluate(
    space: Space, sequence: Swaps, uniques: Collection[int], grid: Grid, *, sample: int = 0
) -> tuple[Point, ...]:
    """The recorded prefixes of a sequence.

    Args:
        uniques: chunks that are sample uniques of the pre-swap marginal table.
        sample: changed chunks that are embedded, at most; 0: all. Out of more, as many are drawn from the chunks that
            each recorded prefix adds, and stand for these: D and cosine are stratified estimates then, counts exact.

    Returns:
        As many as ``grid.prefixes`` names, in order.
    """
    prefixes = grid.prefixes(len(sequence.swaps))
    if not prefixes:
        return ()
    added = _added(sequence, prefixes)
    drawn, weights = _drawn(added, sample, sequence.seed)
    stages: list[tuple[int, dict[int, str]]] = []
    versions: dict[tuple[int, str], int] = {}
    now: dict[int, str] = {}
    placed: dict[Slot, Slot] = {}
    made = 0
    for r in prefixes:
        some = sequence.swaps[made:r]
        placed.update(move for swap in some for move in swap.moves)
        for chunk in sorted({c for swap in some for c in swap.chunks} & drawn):
            now[chunk] = chunk_text(space.corpus, chunk, placed)
            versions.setdefault((chunk, now[chunk]), len(versions))
        stages.append((len(placed), dict(now)))
        made = r
    after, cosines = _versions(space, list(versions))
    alone = frozenset(uniques)
    n, d = space.vectors.shape
    points = []
    changed = m = 0
    for r, fresh, (moves, stage) in zip(prefixes, added, stages, strict=True):
        changed += len(fresh)
        m += len(alone.intersection(fresh))
        chunks = np.fromiter(sorted(stage), dtype=np.intp, count=len(stage))
        rows = np.fromiter((versions[int(c), stage[int(c)]] for c in chunks), dtype=np.intp, count=len(stage))
        weight = np.fromiter((weights[int(c)] for c in chunks), dtype=np.float64, count=len(stage))
        gain = float((weight * (after[rows] - space.before[chunks])).sum())
        each = np.full(changed, gain / max(changed, 1))
        u = utility(np.zeros(changed), each, space.total, n=n, d=d)
        cosine = float((weight * cosines[rows]).sum() / weight.sum())
        points.append(Point(r, moves, changed, m, float(u.value), gain, cosine, u.misleading, tuple(u.flags)))
    return tuple(points)


def _added(sequence: Swaps, prefixes: Sequence[int]) -> list[list[int]]:
    """Per recorded prefix the chunks that it changes and the one before does not, sorted."""
    out = []
    seen: set[int] = set()
    made = 0
    for r in prefixes:
        fresh = {c for swap in sequence.swaps[made:r] for c in swap.chunks} - seen
        out.append(sorted(fresh))
        seen |= fresh
        made = r
    return out


def _drawn(added: Sequence[Sequence[int]], sample: int, seed: int) -> tuple[set[int], dict[int, float]]:
    """The chunks that are embedded, and how many chunks each stands for."""
    if not sample or sum(map(len, added)) <= sample:
        everything = [c for fresh in added for c in fresh]
        return set(everything), dict.fromkeys(everything, 1.0)
    rng = np.random.default_rng([seed, len(added)])
    each = max(1, sample // max(1, sum(map(bool, added))))
    weights: dict[int, float] = {}
    for fresh in added:
        some: list[int] = rng.choice(len(fresh), min(each, len(fresh)), replace=False).tolist() if fresh else []
        weights |= {fresh[i]: len(fresh) / len(some) for i in some}
    return set(weights), weights


def _versions(space: Space, versions: list[tuple[int, str]]) -> tuple[Any, Any]:
    """Per (chunk, text): its log density in the chunk's component, and its cosine with the chunk's vector."""
    chunks = np.fromiter((c for c, _ in versions), dtype=np.intp, count=len(versions))
    _, after, cosines = _embedded(space, [text for _, text in versions], chunks)
    return after, cosines


def _embedded(space: Space, texts: Sequence[str], chunks: Any) -> tuple[Any, Any, Any]:
    if not len(chunks):
        return np.zeros((0, space.raw.shape[1])), np.zeros(0), np.zeros(0)
    raw, vectors = space.embed(texts, chunks.tolist())
    after = np.asarray(space.mixture.component_log_density(vectors, space.labels[chunks]), np.float64)
    cosines = np.einsum("ij,ij->i", np.asarray(raw, np.float64), np.asarray(space.raw[chunks], np.float64))
    return raw, after, np.clip(cosines, -1.0, 1.0)
