"""Whether the choice of categories hangs on hyperparameters: the same search over a grid of them (P1 3.2.1).

Population sizes change the risk only, so each mixture serves all of them, as each reading serves all mixtures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

from allonym.errors import AllonymError
from allonym.files.state import State
from allonym.swap import frontier as plane
from allonym.swap.corpus import Corpus
from allonym.swap.fitting import Advance, embed, fit_mixtures, make_space
from allonym.swap.results import Release
from allonym.swap.search import collect, one_scale, recoding_of, sequences, subsets, tables
from allonym.swap.settings import Settings
from allonym.swap.shards import Spread
from allonym.swap.state import corpus_digest


@dataclass(frozen=True, slots=True)
class Setting:
    """One point of the grid, and what would be chosen there.

    Attributes:
        threshold, family, clusters, min_weight, population: the hyperparameters.
        chunks: how many the threshold makes; left: components that are left.
        converged: whether the mixture converged to a regular maximum; else ``reason`` says what happened.
        categories: those of the release with the lowest risk on the frontier; empty where nothing was found.
        shares: set of categories to its share of the frontier's releases.
        releases: per release its (categories, swaps, utility, risk), for plots like P1's Figures 3 to 5.
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
    shares: dict[tuple[str, ...], float] = field(default_factory=dict)
    releases: tuple[tuple[tuple[str, ...], int, float, float], ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {
            "threshold": self.threshold,
            "family": self.family,
            "clusters": self.clusters,
            "min_weight": self.min_weight,
            "population": self.population,
            "chunks": self.chunks,
            "left": self.left,
            "converged": self.converged,
            "reason": self.reason,
            "categories": list(self.categories),
            "shares": [{"categories": list(c), "share": s} for c, s in self.shares.items()],
            "releases": [{"categories": list(c), "swaps": r, "utility": u, "risk": x} for c, r, u, x in self.releases],
        }


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
    """The choice at every point of ``settings.grid`` and every population size of ``settings.search``.

    Args:
        read: the corpus as chunked with a threshold, e.g.
            ``lambda t: allonym.swap.load(path, protect="company", settings=settings.with_({"read.threshold": t}))``.
        settings: a preset's name, a TOML file's path, or :class:`Settings`.
        seed, progress, state, workers, spread: as for :func:`allonym.swap.search`.

    Returns:
        One :class:`Setting` per point, in the order of the axes.
    """
    settings = Settings.load(settings)
    axes = settings.grid
    kept = None if state is None else State(state)
    rest = list(product(axes.family, axes.clusters, axes.min_weight))
    of = len(axes.threshold) * len(rest)
    out: list[Setting] = []
    for i, threshold in enumerate(axes.threshold):
        corpus = read(threshold)
        cache = None if kept is None else kept.folder / "vectors"
        embedded = embed(corpus, settings, cache=cache, workers=workers, spread=spread)
        measured, _ = tables(corpus, settings, recoding_of(settings))
        for j, (family, clusters, least) in enumerate(rest):
            if progress is not None:
                progress("grid", i * len(rest) + j, of)
            how = replace(settings.mixture, family=family, clusters=clusters, min_weight=least)
            here = replace(settings, mixture=how)
            point = Setting(threshold, family, clusters, least, 0.0, len(corpus.chunks), 0, False)
            try:
                fit = fit_mixtures(embedded.vectors, how, seed=seed, spread=spread)[0]
            except AllonymError as error:
                out += [replace(point, population=n, reason=str(error)) for n in settings.search.population]
                continue
            point = replace(point, left=fit.left, converged=fit.usable, reason=_reason(fit.converged, fit.degenerate))
            if not fit.usable:
                out += [replace(point, population=n) for n in settings.search.population]
                continue
            space = make_space(corpus, embedded, fit.mixture, here)
            name = f"{corpus_digest(corpus)}{here.fingerprint('embed', 'mixture', 'exchange')}"
            draws, _ = sequences(space, here, measured, seed=seed, state=kept, name=name, spread=spread)
            kinds = [c for c in subsets(corpus, here) if c in draws]
            alike = one_scale({c: draws[c] for c in kinds}, *space.vectors.shape)
            releases, _ = collect(kinds, alike, {c: measured[c][1] for c in kinds}, len(corpus.chunks))
            out += [
                _at(point, releases, n, bounded=settings.search.risk == "bounded") for n in settings.search.population
            ]
    if progress is not None:
        progress("grid", of, of)
    return tuple(out)


def _reason(converged: bool, degenerate: int) -> str:
    if not converged:
        return "EM did not converge"
    return f"{degenerate} components at the cap of concentration" if degenerate else ""


def _at(point: Setting, releases: Sequence[Release], population: float, *, bounded: bool) -> Setting:
    if not releases:
        return replace(point, population=population, reason="no two chunks are a valid pair")
    risks = [(r.bounded if bounded else r.risk)[population].value for r in releases]
    points = [(min(r.utility.value, 1.0), risk) for r, risk in zip(releases, risks, strict=True)]
    front = plane.frontier(points)
    names = [releases[k].categories for k in front]
    lowest = min(front, key=lambda k: (risks[k], -points[k][0], k))
    return replace(
        point,
        population=population,
        categories=releases[lowest].categories,
        shares={c: names.count(c) / len(names) for c in dict.fromkeys(names)},
        releases=tuple((r.categories, r.swaps, r.utility.value, risk) for r, risk in zip(releases, risks, strict=True)),
    )
