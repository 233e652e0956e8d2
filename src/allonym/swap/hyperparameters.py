"""Whether the choice of categories depends on hyperparameters: the same search over a grid of them (P1 3.2.1).

Population sizes change the risk only, so each mixture serves all of them, as each reading serves all mixtures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import NamedTuple

from allonym.errors import AllonymError
from allonym.files.state import State
from allonym.serial import Serialisable
from allonym.swap.corpus import Advance, Corpus, ignore_progress
from allonym.swap.frontier import find_frontier
from allonym.swap.release_search import collect_releases, list_candidates_and_rejections, measure_candidates
from allonym.swap.results import Release
from allonym.swap.rows import Spread
from allonym.swap.settings import Settings
from allonym.swap.space import embed_corpus, fit_mixtures, make_space


class PlacedRelease(NamedTuple):
    """A release at one point of the grid, for plots like P1's Figures 3 to 5."""

    categories: tuple[str, ...]
    swaps: int
    utility: float
    risk: float


class Share(NamedTuple):
    """The share of the frontier's releases that a set of categories has."""

    categories: tuple[str, ...]
    share: float


class Setting(Serialisable):
    """One point of the grid, and the choice there.

    Attributes:
        threshold, family, clusters, min_weight, population: the hyperparameters.
        chunks: how many the threshold makes; left: components that remain.
        converged: whether the mixture converged to a regular maximum; else ``reason`` says what happened.
        categories: those of the release with the lowest risk on the frontier; empty if there is no release.
        shares: the share of the frontier's releases that each set of categories has.
        releases: all releases with utility and risk.
    """

    threshold: float
    family: str
    clusters: int
    min_weight: float
    population: float
    chunks: int
    left: int
    converged: bool
    reason: str = ""
    categories: tuple[str, ...] = ()
    shares: tuple[Share, ...] = ()
    releases: tuple[PlacedRelease, ...] = ()


def grid(
    read: Callable[[float], Corpus],
    settings: str | Path | Settings = "default",
    *,
    seed: int = 0,
    progress: Advance | None = None,
    state: str | Path | None = None,
    workers: int = 1,
    spread: Spread | None = None,
) -> tuple[Setting, ...]:
    """Search at every point of ``settings.grid`` and every population size of ``settings.search``.

    Args:
        read: returns the corpus as chunked with a threshold, e.g.
            ``lambda t: allonym.swap.load(path, protect="company", settings=settings.with_({"read.threshold": t}))``.
        settings: a preset's name, a TOML file's path, or :class:`Settings`.
        seed, progress, state, workers, spread: as for :func:`allonym.swap.search`.

    Returns:
        One :class:`Setting` per point, in the order of the axes.
    """
    settings = Settings.load(settings)
    advance, sizes = progress or ignore_progress, settings.search.population
    axes = settings.grid
    store = None if state is None else State(state)
    cache = None if store is None else store.folder / "vectors"
    mixtures = list(product(axes.family, axes.clusters, axes.min_weight))
    total = len(axes.threshold) * len(mixtures)
    out: list[Setting] = []
    for i, threshold in enumerate(axes.threshold):
        corpus = read(threshold)
        embedded = embed_corpus(corpus, settings, cache=cache, workers=workers, spread=spread)
        candidates, _ = list_candidates_and_rejections(corpus, settings)
        for j, (family, clusters, min_weight) in enumerate(mixtures):
            advance("grid", i * len(mixtures) + j, total)
            mixture = replace(settings.mixture, family=family, clusters=clusters, min_weight=min_weight)
            here = replace(settings, mixture=mixture)
            point = Setting(threshold, family, clusters, min_weight, 0.0, len(corpus.chunks), 0, False)
            try:
                fit = fit_mixtures(embedded.vectors, mixture, seed=seed, spread=spread)[0]
            except AllonymError as error:
                out += [replace(point, population=n, reason=str(error)) for n in sizes]
                continue
            reason = "EM did not converge"
            if fit.converged:
                reason = f"{fit.degenerate} components at the cap of concentration" if fit.degenerate else ""
            point = replace(point, left=fit.left, converged=fit.usable, reason=reason)
            if not fit.usable:
                out += [replace(point, population=n) for n in sizes]
                continue
            space = make_space(corpus, embedded, fit.mixture, here)
            draws, _ = measure_candidates(space, here, candidates, seed=seed, state=store, spread=spread)
            releases = collect_releases(candidates, draws, *space.vectors.shape)
            out += [_add_chosen_release(point, releases, n, bounded=settings.search.risk == "bounded") for n in sizes]
    advance("grid", total, total)
    return tuple(out)


def _add_chosen_release(point: Setting, releases: Sequence[Release], population: float, *, bounded: bool) -> Setting:
    if not releases:
        return replace(point, population=population, reason="no two chunks are a valid pair")
    risks = [(r.bounded if bounded else r.risk)[population].value for r in releases]
    placed = [PlacedRelease(r.categories, r.swaps, r.utility.value, p) for r, p in zip(releases, risks, strict=True)]
    points = [(min(r.utility, 1.0), r.risk) for r in placed]
    front = find_frontier(points)
    names = [placed[k].categories for k in front]
    lowest = min(front, key=lambda k: (placed[k].risk, -points[k][0], k))
    return replace(
        point,
        population=population,
        categories=placed[lowest].categories,
        shares=tuple(Share(c, names.count(c) / len(names)) for c in dict.fromkeys(names)),
        releases=tuple(placed),
    )
