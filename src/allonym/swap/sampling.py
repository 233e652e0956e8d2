"""One drawn sequence of swaps, measured: how far each recorded prefix of it moves texts, vectors and tables.

The sequence's prefixes are nested releases (P1 2.3), so one sequence serves all rates. A text that occurs in several
prefixes is embedded once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np

from allonym.swap.corpus import Corpus, Slot
from allonym.swap.exchange import Sequence as Swaps
from allonym.swap.exchange import exchange
from allonym.swap.mixture import SphericalMixture
from allonym.swap.rows import Spread, limit_to_one_thread
from allonym.swap.utility import Utility, compute_utility
from allonym.swap.validity import Ground, Rules
from allonym.swap.writing import write_chunk

Texts = Mapping[int, str]
"""Chunk to its text."""


@dataclass(frozen=True, slots=True)
class Space:
    """The space in which every sequence is drawn and measured.

    Attributes:
        raw: (n, d) pre-swap vectors, unit rows; vectors: the same without covariates, to which the mixture was fitted.
        embed: computes the vectors of further texts of chunks (texts, chunks): two float arrays (len(texts), d) of unit
            rows, as the embedder gives them, and as the mixture takes them.
        labels: (n,) components; before: (n,) log f(x_i; theta_{l_i}); total: their sum, l(x|l).
        rules: of the exchange; its categories are replaced by those of each sequence. ground: facts about the corpus.
        groups: per chunk the group of its donors; None: no restriction.
        allowed: clusters that take part; None: all.
    """

    corpus: Corpus
    raw: Any = field(repr=False)
    vectors: Any = field(repr=False)
    embed: Callable[[Sequence[str], Sequence[int]], tuple[Any, Any]] = field(repr=False)
    mixture: SphericalMixture = field(repr=False)
    labels: Any = field(repr=False)
    before: Any = field(repr=False)
    total: float
    rules: Rules
    ground: Ground = field(repr=False)
    groups: Sequence[str] | None = field(default=None, repr=False)
    allowed: Collection[int] | None = None


@dataclass(frozen=True, slots=True)
class Grid:
    """The prefixes to record: ``points`` of them, evenly, up to ``swaps`` swaps; 0: up to the sequence's end."""

    swaps: int
    points: int

    def list_prefixes(self, length: int) -> tuple[int, ...]:
        """Return numbers of swaps. Up to ``swaps``: those of the grid that the sequence reaches. To its end: always
        ``points`` of them, from its first part to all of it; two may be equal in a short sequence."""
        if length <= 0:
            return ()
        if self.swaps:
            many = min(self.points, self.swaps)
            return tuple(r for k in range(many) if (r := -(-(k + 1) * self.swaps // many)) <= length)
        return tuple(-(-(k + 1) * length // self.points) for k in range(self.points))


@dataclass(frozen=True, slots=True)
class Point:
    """A recorded prefix. Attributes as in :class:`allonym.swap.results.Release`, of one draw; ``moves`` counts entities
    at another place; ``misleading`` as in :class:`allonym.swap.utility.Utility`."""

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
        """Return plain values, for the state."""
        return [*astuple(self)[:-1], list(self.flags)]

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> Point:
        """Return the point that :meth:`to_row` wrote."""
        return cls(*(*row[:-1], tuple(row[-1])))


@dataclass(frozen=True, slots=True)
class Moved:
    """Changed chunks compared with their originals.

    Attributes:
        chunks: (m,) their indices; raw: (m, d) their vectors; after: (m,) their log densities; cosines: (m,) of raw
            vectors before and after.
    """

    chunks: Any
    raw: Any = field(repr=False)
    after: Any = field(repr=False)
    cosines: Any = field(repr=False)


def derive_seed(seed: int, categories: Sequence[str], number: int) -> int:
    """Return the seed of one draw, which depends only on the set of categories and the number."""
    name = "\0".join((str(seed), str(number), *categories)).encode()
    return int.from_bytes(blake2b(name, digest_size=8).digest()) >> 1


def draw_sequence(space: Space, categories: Sequence[str], seed: int, spread: Spread | None = None) -> Swaps:
    """Draw one sequence of swaps of these categories; ``spread``: the workers, None: this process."""
    with limit_to_one_thread():  # the order of scores must not depend on the last bits of cosines
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


def embed_changes(space: Space, texts: Texts) -> Moved:
    """Embed the new texts of chunks, and compare them with the original ones."""
    return _embed_versions(space, [(chunk, texts[chunk]) for chunk in sorted(texts)])


def measure_utility(space: Space, moved: Moved) -> Utility:
    """Return U and D of (2.17)-(2.19) for these chunks in place of the original ones."""
    n, d = space.vectors.shape
    return compute_utility(space.before[moved.chunks], moved.after, space.total, n=n, d=d)


def measure_prefixes(
    space: Space, sequence: Swaps, uniques: Collection[int], grid: Grid, *, sample: int = 0
) -> tuple[Point, ...]:
    """Measure the recorded prefixes of a sequence.

    Args:
        uniques: chunks that are sample uniques of the pre-swap marginal table.
        sample: most changed chunks that are embedded; 0: all. Of more, this many are drawn from the chunks that each
            recorded prefix adds, and represent them: D and cosine are stratified estimates then, counts exact.

    Returns:
        As many as ``grid.list_prefixes`` returns, in order.
    """
    prefixes = grid.list_prefixes(len(sequence.swaps))
    if not prefixes:
        return ()
    added = _list_added_chunks(sequence, prefixes)
    weights = _draw_sample(added, sample, sequence.seed)
    stages: list[tuple[int, dict[int, str]]] = []
    versions: dict[tuple[int, str], int] = {}
    texts: dict[int, str] = {}
    placed: dict[Slot, Slot] = {}
    for start, end in pairwise((0, *prefixes)):
        swaps = sequence.swaps[start:end]
        placed.update(move for swap in swaps for move in swap.moves)
        for chunk in sorted({c for swap in swaps for c in swap.chunks} & weights.keys()):
            texts[chunk] = write_chunk(space.corpus, chunk, placed)
            versions.setdefault((chunk, texts[chunk]), len(versions))
        stages.append((len(placed), dict(texts)))
    embedded = _embed_versions(space, list(versions))
    unique_chunks = frozenset(uniques)
    n, d = space.vectors.shape
    points = []
    changed = m = 0
    for r, new_chunks, (moves, stage) in zip(prefixes, added, stages, strict=True):
        changed += len(new_chunks)
        m += len(unique_chunks.intersection(new_chunks))
        chunks = np.fromiter(sorted(stage), dtype=np.intp, count=len(stage))
        rows = np.fromiter((versions[int(c), stage[int(c)]] for c in chunks), dtype=np.intp, count=len(stage))
        weight = np.fromiter((weights[int(c)] for c in chunks), dtype=np.float64, count=len(stage))
        gain = float((weight * (embedded.after[rows] - space.before[chunks])).sum())
        gains = np.full(changed, gain / max(changed, 1))
        u = compute_utility(np.zeros(changed), gains, space.total, n=n, d=d)
        cosine = float((weight * embedded.cosines[rows]).sum() / weight.sum())
        points.append(Point(r, moves, changed, m, float(u.value), gain, cosine, u.misleading, tuple(u.flags)))
    return tuple(points)


def _list_added_chunks(sequence: Swaps, prefixes: Sequence[int]) -> list[list[int]]:
    """Return per recorded prefix the chunks that it changes and the one before does not, sorted."""
    out = []
    changed: set[int] = set()
    for start, end in pairwise((0, *prefixes)):
        new_chunks = {c for swap in sequence.swaps[start:end] for c in swap.chunks} - changed
        out.append(sorted(new_chunks))
        changed |= new_chunks
    return out


def _draw_sample(added: Sequence[Sequence[int]], sample: int, seed: int) -> dict[int, float]:
    """Return the chunks to embed, and how many chunks each of them represents."""
    if not sample or sum(map(len, added)) <= sample:
        return {c: 1.0 for chunks in added for c in chunks}
    rng = np.random.default_rng([seed, len(added)])
    size = max(1, sample // max(1, sum(map(bool, added))))
    weights: dict[int, float] = {}
    for chunks in added:
        if chunks:
            drawn = rng.choice(len(chunks), min(size, len(chunks)), replace=False).tolist()
            weights |= {chunks[i]: len(chunks) / len(drawn) for i in drawn}
    return weights


def _embed_versions(space: Space, versions: Sequence[tuple[int, str]]) -> Moved:
    """Embed (chunk, text) pairs: log densities in the chunks' components, cosines with the chunks' vectors."""
    chunks = np.fromiter((c for c, _ in versions), dtype=np.intp, count=len(versions))
    if not len(chunks):
        return Moved(chunks, np.zeros((0, space.raw.shape[1])), np.zeros(0), np.zeros(0))
    raw, vectors = space.embed([text for _, text in versions], chunks.tolist())
    after = np.asarray(space.mixture.component_log_density(vectors, space.labels[chunks]), np.float64)
    cosines = np.einsum("ij,ij->i", np.asarray(raw, np.float64), np.asarray(space.raw[chunks], np.float64))
    return Moved(chunks, raw, after, np.clip(cosines, -1.0, 1.0))
