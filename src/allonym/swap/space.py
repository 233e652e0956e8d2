"""The space in which exchanges are drawn and measured: vectors, covariates, mixture; and one drawn sequence, measured.

The sequence's prefixes are nested releases (P1 2.3), so one sequence serves all rates. A text that occurs in several
prefixes is embedded once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from allonym.errors import DataError, UsageError
from allonym.swap.corpus import Advance, Corpus, Slot, ignore_progress
from allonym.swap.covariates import Residual, build_design_matrix, fit_residual, list_donor_group_by_chunk
from allonym.swap.density import FAMILIES
from allonym.swap.embedding import Embedder, open_embedder
from allonym.swap.exchange import Sequence as Swaps
from allonym.swap.exchange import exchange
from allonym.swap.mixture import SphericalMixture
from allonym.swap.risk import Utility, compute_utility
from allonym.swap.rows import Spread, limit_blas_to_one_thread
from allonym.swap.selection import Fit, fit_all
from allonym.swap.settings import AUTO, Mixture, Settings
from allonym.swap.validity import Ground, Rules
from allonym.swap.writing import make_swapped_text


@dataclass(frozen=True, slots=True)
class Space:
    """The space in which every sequence is drawn and measured.

    Attributes:
        raw: (n, d) pre-swap vectors, unit rows; vectors: the same without covariates, to which the mixture was fitted.
        embed: computes the vectors of further texts of chunks (texts, chunks): two float arrays (len(texts), d) of unit
            rows, as the embedder gives them, and as the mixture takes them.
        labels: (n,) components; before: (n,) log f(x_i; theta_{l_i}); total: their sum, l(x|l).
        settings: of the search; ground: facts about the corpus.
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
    settings: Settings
    ground: Ground = field(repr=False)
    groups: Sequence[str] | None = field(default=None, repr=False)
    allowed: Collection[int] | None = None


def list_prefix_lengths(sequence_length: int, settings: Settings) -> tuple[int, ...]:
    """Return the numbers of swaps at which a sequence is recorded: ``search.points`` of them, evenly.

    Up to ``exchange.swaps`` swaps: those that the sequence reaches. To its end, if that is 0: always as many, from its
    first part to all of it; two may be equal in a short sequence.
    """
    swaps, points = settings.exchange.swaps, settings.search.points
    if sequence_length <= 0:
        return ()
    if swaps:
        many = min(points, swaps)
        return tuple(r for k in range(many) if (r := -(-(k + 1) * swaps // many)) <= sequence_length)
    return tuple(-(-(k + 1) * sequence_length // points) for k in range(points))


class Point(NamedTuple):
    """A recorded prefix. Attributes as in :class:`allonym.swap.results.Release`, of one draw; ``moves`` counts entities
    at another place; ``misleading`` as in :class:`allonym.swap.risk.Utility`."""

    swaps: int
    moves: int
    changed: int
    uniques: int
    utility: float
    distance: float
    cosine: float
    misleading: bool = False
    flags: Sequence[str] = ()


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
    with limit_blas_to_one_thread():  # the order of scores must not depend on the last bits of cosines
        return exchange(
            space.corpus,
            space.labels,
            Rules(**vars(space.settings.exchange), categories=tuple(categories)),
            seed,
            vectors=space.vectors,
            groups=space.groups,
            allowed=space.allowed,
            ground=space.ground,
            spread=spread,
        )


def measure_utility(space: Space, moved: Moved) -> Utility:
    """Return U and D of (2.17)-(2.19) for these chunks in place of the original ones."""
    n, d = space.vectors.shape
    return compute_utility(space.before[moved.chunks], moved.after, space.total, n=n, d=d)


def measure_prefixes(space: Space, sequence: Swaps, uniques: Collection[int]) -> tuple[Point, ...]:
    """Measure the recorded prefixes of a sequence.

    Of more changed chunks than ``search.sample``, this many are drawn from the chunks that each recorded prefix adds,
    and represent them: D and cosine are stratified estimates then, counts exact.

    Args:
        uniques: chunks that are sample uniques of the pre-swap marginal table.

    Returns:
        As many as :func:`list_prefix_lengths` returns, in order.
    """
    prefixes = list_prefix_lengths(len(sequence.swaps), space.settings)
    if not prefixes:
        return ()
    added = _list_added_chunks(sequence, prefixes)
    weights = _draw_weighted_chunks(added, space.settings.search.sample, sequence.seed)
    stages: list[tuple[int, dict[int, str]]] = []
    versions: dict[tuple[int, str], int] = {}
    texts: dict[int, str] = {}
    placed: dict[Slot, Slot] = {}
    for start, end in pairwise((0, *prefixes)):
        swaps = sequence.swaps[start:end]
        placed.update(move for swap in swaps for move in swap.moves)
        for chunk in sorted({c for swap in swaps for c in swap.chunks} & weights.keys()):
            texts[chunk] = make_swapped_text(space.corpus, chunk, placed)
            versions.setdefault((chunk, texts[chunk]), len(versions))
        stages.append((len(placed), dict(texts)))
    embedded = embed_chunk_versions(space, list(versions))
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


def _draw_weighted_chunks(added: Sequence[Sequence[int]], sample: int, seed: int) -> dict[int, float]:
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


def embed_chunk_versions(space: Space, versions: Sequence[tuple[int, str]]) -> Moved:
    """Embed (chunk, text) pairs: log densities in the chunks' components, cosines with the chunks' vectors."""
    chunks = np.fromiter((c for c, _ in versions), dtype=np.intp, count=len(versions))
    if not len(chunks):
        return Moved(chunks, np.zeros((0, space.raw.shape[1])), np.zeros(0), np.zeros(0))
    raw, vectors = space.embed([text for _, text in versions], chunks.tolist())
    after = np.asarray(space.mixture.component_log_density(vectors, space.labels[chunks]), np.float64)
    cosines = np.einsum("ij,ij->i", np.asarray(raw, np.float64), np.asarray(space.raw[chunks], np.float64))
    return Moved(chunks, raw, after, np.clip(cosines, -1.0, 1.0))


# From a corpus to its space

NO_CHUNKS = "the corpus has no chunks; is the section that is read in these documents?"


@dataclass(frozen=True, slots=True)
class Embedded:
    """The corpus as vectors.

    Attributes:
        embedder: fitted; vectors: (n, d) unit rows without the covariates' effect.
        raw: as the embedder gave them; residual: removes the covariates' effect, None where there are none.
    """

    embedder: Embedder
    raw: Any = field(repr=False)
    vectors: Any = field(repr=False)
    residual: Residual | None = field(repr=False, default=None)

    def __call__(self, texts: Sequence[str], chunks: Sequence[int]) -> tuple[Any, Any]:
        """Return vectors of other texts of these chunks, as the embedder gives them and without the covariates."""
        raw = self.embedder.encode(list(texts))
        return raw, raw if self.residual is None else self.residual(raw, chunks)


def embed_corpus(
    corpus: Corpus,
    settings: Settings,
    *,
    cache: Path | None = None,
    workers: int = 1,
    advance: Advance = ignore_progress,
    spread: Spread | None = None,
) -> Embedded:
    """Compute the vectors of the corpus's chunks.

    Args:
        cache: folder of vectors.
        workers: threads of the embedder.
        spread: the workers that embed these texts and all further ones; None: this process.

    Raises:
        DataError: there are no chunks.
    """
    if not corpus.chunks:
        raise DataError(NO_CHUNKS)
    embed = settings.embed
    options: dict[str, object] = {name: getattr(embed, name) or None for name in ("model", "url", "key_env")}
    options["threads"] = workers if embed.name == "encoder" and spread is None else None
    embedder = open_embedder(embed.name, cache=cache, **options).over(spread)
    texts = [chunk.text for chunk in corpus.chunks]
    advance("embed", 0, len(texts))
    embedder = embedder.fit(texts)
    raw = embedder.encode(texts, progress=lambda count: advance("embed", count, len(set(texts))))
    if not embed.covariates or embed.use != "residual":
        return Embedded(embedder, raw, raw)
    residual = fit_residual(raw, build_design_matrix(corpus, embed.covariates))
    return Embedded(embedder, raw, residual(raw), residual)


def fit_mixtures(
    vectors: Any,
    settings: Mixture,
    *,
    seed: int,
    advance: Advance = ignore_progress,
    spread: Spread | None = None,
) -> tuple[Fit, ...]:
    """Fit every mixture that the settings ask for; ``spread``: the workers, None: threads of this process.

    Raises:
        UsageError: more components than chunks are asked for.
    """
    numbers = (settings.clusters,) if settings.clusters else settings.candidates
    if numbers and max(numbers) > len(vectors):
        need = f"{max(numbers)} components need as many chunks at least"
        raise UsageError(f"mixture.clusters: {need}; there are {len(vectors)}")
    families = FAMILIES if settings.family == AUTO else (settings.family,)
    names = ("min_weight", "start", "restarts", "max_iter", "tol", "shard_size")
    options = {name: getattr(settings, name) for name in names} | {"batch_size": settings.batch_size or None}
    return fit_all(vectors, numbers, families, advance=partial(advance, "mixture"), spread=spread, seed=seed, **options)


def make_space(corpus: Corpus, embedded: Embedded, mixture: SphericalMixture, settings: Settings) -> Space:
    """Return the space in which exchanges are drawn and measured."""
    vectors, least, groups = embedded.vectors, settings.exchange.min_concentration, None
    if settings.embed.covariates and settings.embed.use == "donors":
        keys = [list_donor_group_by_chunk(corpus, key) for key in settings.embed.covariates]
        groups = tuple("\x1f".join(parts) for parts in zip(*keys, strict=True))
    labels = np.asarray(mixture.predict(vectors))
    before = np.asarray(mixture.component_log_density(vectors, labels), np.float64)
    return Space(
        corpus=corpus,
        raw=embedded.raw,
        vectors=vectors,
        embed=embedded,
        mixture=mixture,
        labels=labels,
        before=before,
        total=float(before.sum()),
        settings=settings,
        ground=Ground.of(corpus),
        groups=groups,
        allowed=None if least <= 0 else frozenset(int(k) for k in np.flatnonzero(mixture.cosines_ >= least)),
    )
