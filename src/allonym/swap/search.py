"""The search for a release: candidates drawn, measured, and put on a risk-utility plane (P1 2.3, 3.2.1).

Candidates are all subsets of the swapped categories of one size (and all of them together), each at several rates; the
rates are nested prefixes of the same drawn sequences.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import combinations
from pathlib import Path

from allonym.errors import DataError, UsageError
from allonym.files.state import State, digest
from allonym.stats import Estimate, mean
from allonym.stats.partition import fit_partition
from allonym.swap.clusters import summaries
from allonym.swap.corpus import Corpus
from allonym.swap.fitting import Advance, embed, fit_mixtures, make_space
from allonym.swap.recoding import Recoding, recoding
from allonym.swap.releases import Place, Releases
from allonym.swap.results import Release, TableFit
from allonym.swap.risk import Risk, assess
from allonym.swap.sampling import Grid, Point, Space, draw, evaluate
from allonym.swap.selection import Fit, chosen
from allonym.swap.settings import Settings
from allonym.swap.shards import Spread
from allonym.swap.state import corpus_digest
from allonym.swap.table import Table, tabulate
from allonym.swap.utility import STAND_IN


def search(
    corpus: Corpus,
    settings: str | Path | Settings = "default",
    *,
    seed: int = 0,
    progress: Advance | None = None,
    state: str | Path | None = None,
    workers: int = 1,
    recode: Recoding | None = None,
    spread: Spread | None = None,
) -> Releases:
    """Draw and measure every candidate release of a corpus.

    Args:
        corpus: from :func:`allonym.swap.load`.
        settings: a preset's name, a TOML file's path, or :class:`Settings`.
        seed: of starts and draws; the same corpus, settings and seed give the same numbers.
        progress: called with (stage, done, of how many).
        state: folder in which finished parts are kept, so that a search that was interrupted goes on; it is as
            sensitive as the corpus. None: nothing is written.
        workers: threads of the embedder; results do not depend on it.
        recode: merges values before they are counted; None: as the settings say.
        spread: who embeds, fits and draws, see :func:`allonym.scale.swap_workers`; None: this process. Numbers do
            not depend on it.

    Returns:
        :class:`Releases`.

    Raises:
        DataError: nothing can be exchanged; the message says why for each set of categories.
        UsageError: the settings do not fit the corpus, e.g. more components than chunks.
    """
    settings = Settings.load(settings)
    advance = progress or _quiet
    warnings = [*corpus.warnings, *_checked(corpus, settings)]
    timings: dict[str, float] = {}
    kept = None if state is None else State(state)
    with _timed(timings, "embed"):
        cache = None if kept is None else kept.folder / "vectors"
        embedded = embed(corpus, settings, cache=cache, workers=workers, advance=advance, spread=spread)
    with _timed(timings, "mixture"):
        fits = fit_mixtures(embedded.vectors, settings.mixture, seed=seed, advance=advance, spread=spread)
        best = chosen(fits, settings.mixture.criterion)
        space = make_space(corpus, embedded, best.mixture, settings)
    warnings += _about_mixture(best, fits, settings)
    with _timed(timings, "tables"):
        measured, dropped = tables(corpus, settings, recode or recoding_of(settings), advance)
    with _timed(timings, "sequences"):
        name = f"{corpus_digest(corpus)}{settings.fingerprint('embed', 'mixture', 'exchange')}"
        draws, short = sequences(
            space, settings, measured, seed=seed, state=kept, name=name, advance=advance, spread=spread
        )
    dropped = {**dropped, **short}
    kinds = [c for c in subsets(corpus, settings) if c in draws]
    if not kinds:
        told = "; ".join(f"{' + '.join(c)}: {why}" for c, why in dropped.items())
        raise DataError(f"nothing can be exchanged in this corpus: {told}")
    most = max(p.changed for rows in draws.values() for row in rows for p in row)
    if 0 < settings.search.sample < most:
        warnings.append(
            f"utility and cosine of releases are estimated from {settings.search.sample} of their changed chunks; "
            "those of the released corpus are exact"
        )
    draws = one_scale({c: draws[c] for c in kinds}, *space.vectors.shape)
    releases, places = collect(kinds, draws, {c: measured[c][1] for c in kinds}, len(corpus.chunks))
    for reason in dict.fromkeys(dropped.values()):
        sets = [" + ".join(c) for c, why in dropped.items() if why == reason]
        warnings.append(f"{', '.join(sets)}: no candidate{'s' * (len(sets) > 1)}, since {reason}")
    return Releases(
        corpus=corpus,
        settings=settings,
        seed=seed,
        releases=releases,
        places=places,
        tables=tuple(table_fit(corpus, c, *measured[c]) for c in kinds),
        clusters=summaries(corpus, best.mixture, space.labels),
        fits=tuple(fits),
        chosen_fit=best,
        dropped=dropped,
        warnings=tuple(dict.fromkeys(warnings)),
        timings=timings,
        space=space,
        risks={c: measured[c][1] for c in kinds},
        uniques={c: frozenset(measured[c][0].uniques()) for c in kinds},
    )


def subsets(corpus: Corpus, settings: Settings) -> list[tuple[str, ...]]:
    """The sets of categories that are candidates, in the order of the categories; last, if wanted, all that occur."""
    swapped = corpus.swapped
    size = min(settings.search.size, len(swapped))
    found = list(combinations(swapped, size))
    held = {v.category for chunk in corpus.chunks for v in chunk.values}
    whole = tuple(c for c in swapped if c in held)
    if settings.search.full and len(whole) > size:
        found.append(whole)
    return found


def recoding_of(settings: Settings) -> Recoding | None:
    """The recoding that the settings name; None where they name none."""
    if not settings.read.recode:
        return None
    if settings.read.recode == "kb":
        from allonym.kb.base import KnowledgeBase

        return recoding(knowledge=KnowledgeBase.open())
    return recoding(settings.read.recode)


def tables(
    corpus: Corpus, settings: Settings, recode: Recoding | None = None, advance: Advance | None = None
) -> tuple[dict[tuple[str, ...], tuple[Table, dict[float, Risk]]], dict[tuple[str, ...], str]]:
    """Per set of categories its marginal table and its risk for each population size; and the sets that have none."""
    asked = subsets(corpus, settings)
    found: dict[tuple[str, ...], tuple[Table, dict[float, Risk]]] = {}
    dropped: dict[tuple[str, ...], str] = {}
    holding = {c: sum(any(v.category == c for v in chunk.values) for chunk in corpus.chunks) for c in corpus.swapped}
    for i, categories in enumerate(asked):
        if advance is not None:
            advance("tables", i, len(asked))
        if missing := [c for c in categories if not holding[c]]:
            dropped[categories] = f"no chunk has an entity of {' or '.join(missing)}"
            continue
        table = tabulate(corpus, categories, empty_cells=settings.read.empty_cells, recode=recode)
        fit = fit_partition(table.frequencies())
        if fit.n < 2:
            dropped[categories] = f"only {fit.n} chunk has an entity of them"
            continue
        found[categories] = (
            table,
            {n: assess(fit, n, asymptotic=settings.search.risk == "paper") for n in settings.search.population},
        )
    if advance is not None:
        advance("tables", len(asked), len(asked))
    return found, dropped


def seed_of(seed: int, categories: Sequence[str], number: int) -> int:
    """The seed of one draw: its own for each set of categories and number, the same whatever else is drawn."""
    told = "\0".join((str(seed), str(number), *categories)).encode()
    return int.from_bytes(blake2b(told, digest_size=8).digest()) >> 1


def sequences(
    space: Space,
    settings: Settings,
    measured: Mapping[tuple[str, ...], tuple[Table, Mapping[float, Risk]]],
    *,
    seed: int,
    state: State | None = None,
    name: str = "",
    advance: Advance | None = None,
    spread: Spread | None = None,
) -> tuple[dict[tuple[str, ...], list[tuple[Point, ...]]], dict[tuple[str, ...], str]]:
    """Draw and measure ``settings.search.draws`` sequences per set of categories.

    Returns:
        Per set the recorded prefixes of each draw; and the sets without any swap, with the reason.
    """
    grid, sample = Grid(settings.exchange.swaps, settings.search.points), settings.search.sample
    asked = [
        _Drawn(categories, number, seed_of(seed, categories, number), tuple(sorted(table.uniques())), grid, sample)
        for categories, (table, _) in measured.items()
        for number in range(settings.search.draws)
    ]
    how = (grid.swaps, grid.points, sample)
    names = [digest(name, seed, list(d.categories), d.number, *how, list(d.uniques)) for d in asked]
    known = [None if state is None else state.find(f"sequence-{key}") for key in names]
    missing = [one for one, found in zip(asked, known, strict=True) if found is None]
    made: Iterator[list[list[object]]] = (
        (_draw(space, one, spread) for one in missing)
        if spread is None or len(missing) == 1  # a single one is shared by its clusters
        else spread.each(_draw, space, missing)
    )
    rows: dict[tuple[str, ...], list[tuple[Point, ...]]] = {categories: [] for categories in measured}
    for i, (one, key, found) in enumerate(zip(asked, names, known, strict=True)):
        if advance is not None:
            advance("sequences", i, len(asked))
        if found is None:
            found = next(made)
            if state is not None:
                found = state.keep(f"sequence-{key}", found)
        rows[one.categories].append(tuple(Point.from_row(row) for row in found))
    if advance is not None:
        advance("sequences", len(asked), len(asked))
    dropped = {c: "no two chunks are a valid pair" for c, points in rows.items() if not any(points)}
    return {c: points for c, points in rows.items() if c not in dropped}, dropped


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A sequence to be drawn and measured."""

    categories: tuple[str, ...]
    number: int
    seed: int
    uniques: tuple[int, ...]
    grid: Grid
    sample: int


def _draw(space: Space, one: _Drawn, spread: Spread | None = None) -> list[list[object]]:
    """Plain values of the recorded prefixes."""
    sequence = draw(space, one.categories, one.seed, spread)
    return [point.to_row() for point in evaluate(space, sequence, one.uniques, one.grid, sample=one.sample)]


def one_scale(
    draws: Mapping[tuple[str, ...], Sequence[tuple[Point, ...]]], n: int, d: int
) -> dict[tuple[str, ...], list[tuple[Point, ...]]]:
    """The draws with all utilities as exp(D / (n d)) where the ratio of (2.18) misleads for one of them; else as they
    are. Two scales do not compare."""
    if not any(p.misleading for rows in draws.values() for row in rows for p in row):
        return {c: list(rows) for c, rows in draws.items()}
    remark = f"the ratio misleads for another release: {STAND_IN}"

    def scaled(p: Point) -> Point:
        if p.misleading:
            return p
        return replace(p, utility=math.exp(min(p.distance / (n * d), 700.0)), flags=(*p.flags, remark))

    return {c: [tuple(scaled(p) for p in row) for row in rows] for c, rows in draws.items()}


def collect(
    kinds: Sequence[tuple[str, ...]],
    draws: Mapping[tuple[str, ...], Sequence[tuple[Point, ...]]],
    risks: Mapping[tuple[str, ...], Mapping[float, Risk]],
    n: int,
) -> tuple[tuple[Release, ...], tuple[Place, ...]]:
    """Releases: the recorded prefixes of each set of categories, averaged over the draws that reach them.

    Args:
        n: chunks of the corpus.

    Returns:
        The releases, and for each where it comes from.
    """
    out: list[Release] = []
    places: list[Place] = []
    for categories in kinds:
        rows = draws[categories]
        last: list[int] = []
        for step in range(max(len(row) for row in rows)):
            points = [row[step] for row in rows if len(row) > step]
            if last == [p.swaps for p in points]:
                continue  # a sequence shorter than the grid
            last = [p.swaps for p in points]
            out.append(_release(len(out), categories, points, risks[categories], n))
            places.append(Place(step, sum(p.moves for p in points) / len(points)))
    return tuple(out), tuple(places)


def _release(
    index: int,
    categories: tuple[str, ...],
    points: Sequence[Point],
    risks: Mapping[float, Risk],
    n: int,
) -> Release:
    m = [p.uniques for p in points]
    flags = dict.fromkeys(flag for p in points for flag in p.flags)
    flags |= dict.fromkeys(flag for risk in risks.values() for flag in risk.flags)
    return Release(
        index=index,
        categories=categories,
        swaps=round(sum(p.swaps for p in points) / len(points)),
        changed=mean([p.changed for p in points]),
        share=mean([p.changed / n for p in points]),
        uniques=mean(m),
        utility=mean([p.utility for p in points]),
        distance=mean([p.distance for p in points]),
        distance_per_chunk=mean([p.distance / max(p.changed, 1) for p in points]),
        cosine=mean([p.cosine for p in points]),
        risk={size: _judged(risk.after, m, 1.0) for size, risk in risks.items()},
        bounded={size: _judged(risk.bounded_after, m, 1.0) for size, risk in risks.items()},
        remaining={size: _judged(risk.remaining, m) for size, risk in risks.items()},
        flags=tuple(flags),
    )


def table_fit(corpus: Corpus, categories: tuple[str, ...], table: Table, risks: Mapping[float, Risk]) -> TableFit:
    """A column of P1's Table 1."""
    fit = next(iter(risks.values())).fit
    frequencies = table.frequencies()
    return TableFit(
        categories=categories,
        n=fit.n,
        k=fit.k,
        singles=fit.singles,
        doubles=frequencies.get(2, 0),
        alone=len(table.alone(corpus)),
        theta=fit.strength,
        alpha=fit.discount,
        log_likelihood=fit.log_likelihood,
        status=fit.status,
        share=fit.singles / len(corpus.chunks),
        p={size: risk.p for size, risk in risks.items()},
        bounded={size: risk.bounded for size, risk in risks.items()},
        population={size: risk.uniques for size, risk in risks.items()},
    )


def _judged(risk: Callable[[int], Estimate], uniques: Sequence[int], most: float = math.inf) -> Estimate:
    """A mean over draws, with the interval of the model, wider by one standard deviation of the draws."""
    found = [risk(m) for m in uniques]
    centre = mean([e.value for e in found])
    spread = centre.high - centre.value
    low = max(0.0, min(e.low for e in found) - spread)
    high = min(most, max(e.high for e in found) + spread)
    method = found[0].method if not spread else f"{found[0].method}, wider by the draws' standard deviation"
    return Estimate(centre.value, min(low, centre.value), max(high, centre.value), len(found), method)


def _checked(corpus: Corpus, settings: Settings) -> list[str]:
    """Remarks about what the search can still do with this corpus; raises where it can do nothing."""
    if len(corpus.documents) < 2:
        raise DataError(f"swapping needs two documents at least, got {len(corpus.documents)}")
    if not corpus.chunks:
        raise DataError("the corpus has no chunks; is the section that is read in these documents?")
    if not corpus.swapped:
        raise UsageError("no category has the state swap; one at least is required")
    small = [size for size in settings.search.population if size < len(corpus.chunks)]
    if small:
        raise UsageError(
            f"search.population: a population of {min(small):g} is smaller than the corpus, {len(corpus.chunks)} chunks"
        )
    at, sizes = settings.search.choose_at, settings.search.population
    if not sizes:
        raise UsageError("search.population: one population size at least is required, got none")
    if at and at not in sizes:
        raise UsageError(
            f"search.choose_at must be one of search.population ({', '.join(f'{n:g}' for n in sizes)}), got {at:g}"
        )
    said = []
    if len(set(corpus.classes)) == 1:
        said.append(f"all documents have the same {corpus.protect}: there is nothing that an exchange could hide")
    if len(corpus.swapped) < settings.search.size:
        said.append(f"search.size is {settings.search.size}, but only {len(corpus.swapped)} categories are swapped")
    if len({chunk.text for chunk in corpus.chunks}) == 1:
        said.append("all chunks say the same: clusters and utility mean nothing")
    return said


def _about_mixture(best: Fit, fits: Sequence[Fit], settings: Settings) -> list[str]:
    said = [str(w) for w in best.mixture.warnings_]
    failed = sum(not f.usable for f in fits)
    if failed:
        said.append(f"{failed} of {len(fits)} mixtures did not converge to a regular maximum")
    if best.left < best.clusters:
        said.append(f"of {best.clusters} components {best.left} are left after pruning")
    return said


class _timed:
    def __init__(self, timings: dict[str, float], name: str) -> None:
        self._timings, self._name = timings, name

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._timings[self._name] = time.perf_counter() - self._began


def _quiet(stage: str, done: int, total: int) -> None:
    return None
