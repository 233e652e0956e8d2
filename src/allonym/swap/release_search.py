"""The search for a release: candidates drawn, measured, and put on a risk-utility plane (P1 2.3, 3.2.1).

Candidates are all subsets of the swapped categories of one size (and all of them together), each at several rates; the
rates are nested prefixes of the same drawn sequences.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path

from allonym.errors import DataError, UsageError
from allonym.files.state import State, digest_values
from allonym.stats import Estimate, mean
from allonym.stats.partition import Partition, fit_partition
from allonym.swap.corpus import Advance, Corpus, digest_corpus, ignore_progress
from allonym.swap.releases import Candidate, Releases
from allonym.swap.results import Release, TableFit
from allonym.swap.risk import STAND_IN, Risk, assess_risk, compute_distance_utility
from allonym.swap.rows import Spread
from allonym.swap.selection import Fit, choose_fit, summarise_clusters
from allonym.swap.settings import Settings
from allonym.swap.space import (
    NO_CHUNKS,
    Point,
    Space,
    derive_seed,
    draw_sequence,
    embed_corpus,
    fit_mixtures,
    make_space,
    measure_prefixes,
)
from allonym.swap.table import Recoding, Table, recoding, tabulate

Categories = tuple[str, ...]
Draws = Mapping[Categories, Sequence[tuple[Point, ...]]]
"""Per set of categories, the recorded prefixes of each draw."""


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
        progress: called with (stage, done, total).
        state: folder in which finished parts are stored, so that an interrupted search goes on; it is as sensitive as
            the corpus. None: nothing is written.
        workers: threads of the embedder; results do not depend on it.
        recode: merges values before they are counted; None: as in the settings.
        spread: the workers that embed, fit and draw, see :func:`allonym.scale.swap_workers`; None: this process.
            Numbers do not depend on it.

    Returns:
        :class:`Releases`.

    Raises:
        DataError: nothing can be exchanged; the message gives the reason for each set of categories.
        UsageError: the settings do not fit the corpus, e.g. more components than chunks.
    """
    settings = Settings.load(settings)
    advance = progress or ignore_progress
    warnings = [*corpus.warnings, *_list_search_remarks(corpus, settings)]
    timings: dict[str, float] = {}
    store = None if state is None else State(state)
    with _record_time(timings, "embed"):
        cache = None if store is None else store.folder / "vectors"
        embedded = embed_corpus(corpus, settings, cache=cache, workers=workers, advance=advance, spread=spread)
    with _record_time(timings, "mixture"):
        fits = fit_mixtures(embedded.vectors, settings.mixture, seed=seed, advance=advance, spread=spread)
        best = choose_fit(fits, settings.mixture.criterion)
        space = make_space(corpus, embedded, best.mixture, settings)
    warnings += _list_mixture_warnings(best, fits)
    with _record_time(timings, "tables"):
        candidates, dropped = list_candidates_and_rejections(corpus, settings, recode, advance)
    with _record_time(timings, "sequences"):
        draws, without_swaps = measure_candidates(
            space, settings, candidates, seed=seed, state=store, advance=advance, spread=spread
        )
    dropped |= without_swaps
    candidates = [c for c in candidates if c.categories in draws]
    if not candidates:
        reasons = "; ".join(f"{' + '.join(c)}: {reason}" for c, reason in dropped.items())
        raise DataError(f"nothing can be exchanged in this corpus: {reasons}")
    most = max(p.changed for rows in draws.values() for row in rows for p in row)
    if 0 < settings.search.sample < most:
        warnings.append(
            f"utility and cosine of releases are estimated from {settings.search.sample} of their changed chunks; "
            "those of the released corpus are exact"
        )
    releases = collect_releases(candidates, draws, *space.vectors.shape)
    for reason in dict.fromkeys(dropped.values()):
        sets = [" + ".join(c) for c, other in dropped.items() if other == reason]
        warnings.append(f"{', '.join(sets)}: no candidate{'s' * (len(sets) > 1)}, since {reason}")
    return Releases(
        corpus=corpus,
        settings=settings,
        seed=seed,
        releases=releases,
        candidates={c.categories: c for c in candidates},
        clusters=summarise_clusters(corpus, best.mixture, space.labels),
        fits=tuple(fits),
        chosen_fit=best,
        dropped=dropped,
        warnings=tuple(dict.fromkeys(warnings)),
        timings=timings,
        space=space,
    )


def list_category_sets(corpus: Corpus, settings: Settings) -> list[Categories]:
    """Return the sets of categories to try, in the order of the categories; last, if wanted, all that occur."""
    swapped = corpus.swapped
    size = min(settings.search.size, len(swapped))
    out = list(combinations(swapped, size))
    occurring = {v.category for chunk in corpus.chunks for v in chunk.values}
    full = tuple(c for c in swapped if c in occurring)
    if settings.search.full and len(full) > size:
        out.append(full)
    return out


def open_recoding(settings: Settings) -> Recoding | None:
    """Return the recoding that the settings name; None if they name none."""
    if not settings.read.recode:
        return None
    if settings.read.recode == "kb":
        from allonym.kb.base import KnowledgeBase

        return recoding(knowledge=KnowledgeBase.open())
    return recoding(settings.read.recode)


def list_candidates_and_rejections(
    corpus: Corpus, settings: Settings, recode: Recoding | None = None, advance: Advance = ignore_progress
) -> tuple[list[Candidate], dict[Categories, str]]:
    """Return the sets of categories that can be exchanged; and the others, with the reason."""
    subsets, recode = list_category_sets(corpus, settings), recode or open_recoding(settings)
    candidates: list[Candidate] = []
    dropped: dict[Categories, str] = {}
    occurring = {v.category for chunk in corpus.chunks for v in chunk.values}
    asymptotic = settings.search.risk == "paper"

    def assess_risks(fit: Partition) -> dict[float, Risk]:
        return {n: assess_risk(fit, n, asymptotic=asymptotic) for n in settings.search.population}

    common: tuple[tuple[int, ...], dict[float, Risk]] | None = None
    if settings.search.uniques == "all" and (every := tuple(c for c in corpus.swapped if c in occurring)):
        table = tabulate(corpus, every, empty_cells=settings.read.empty_cells, recode=recode)
        if (fit := fit_partition(table.frequencies())).n > 1:
            common = tuple(sorted(table.uniques())), assess_risks(fit)
    for i, categories in enumerate(subsets):
        advance("tables", i, len(subsets))
        if missing := [c for c in categories if c not in occurring]:
            dropped[categories] = f"no chunk has an entity of {' or '.join(missing)}"
            continue
        table = tabulate(corpus, categories, empty_cells=settings.read.empty_cells, recode=recode)
        fit = fit_partition(table.frequencies())
        if fit.n < 2:
            dropped[categories] = f"only {fit.n} chunk has an entity of them"
            continue
        risks = assess_risks(fit)
        basis = common or (tuple(sorted(table.uniques())), risks)
        candidates.append(Candidate(categories, basis[0], _make_table_fit(corpus, table, risks), basis[1]))
    advance("tables", len(subsets), len(subsets))
    return candidates, dropped


def measure_candidates(
    space: Space,
    settings: Settings,
    candidates: Sequence[Candidate],
    *,
    seed: int,
    state: State | None = None,
    advance: Advance = ignore_progress,
    spread: Spread | None = None,
) -> tuple[dict[Categories, list[tuple[Point, ...]]], dict[Categories, str]]:
    """Draw and measure ``settings.search.draws`` sequences per candidate.

    Returns:
        Per set of categories the recorded prefixes of each draw; and the sets without any swap, with the reason.
    """
    how = settings.search
    draws = [(c, n) for c in candidates for n in range(how.draws)]
    names = [""] * len(draws)
    if state is not None:
        name = f"{digest_corpus(space.corpus)}{settings.fingerprint('embed', 'mixture', 'exchange')}"
        for i, (c, n) in enumerate(draws):
            parts = (list(c.categories), n, settings.exchange.swaps, how.points, how.sample, list(c.uniques))
            names[i] = f"sequence-{digest_values(name, seed, *parts)}"
    stored = [None if state is None else state.load_value(name) for name in names]
    missing = [draw for draw, rows in zip(draws, stored, strict=True) if rows is None]
    drawn: Iterator[tuple[Point, ...]] = (
        (_draw_sequence_and_measure_prefixes((space, seed), draw, spread) for draw in missing)
        if spread is None or len(missing) == 1  # the clusters of a single one are shared among the workers
        else spread.map_items(_draw_sequence_and_measure_prefixes, (space, seed), missing)
    )
    out: dict[Categories, list[tuple[Point, ...]]] = {c.categories: [] for c in candidates}
    for i, ((candidate, _), name, rows) in enumerate(zip(draws, names, stored, strict=True)):
        advance("sequences", i, len(draws))
        if rows is None:
            rows = next(drawn)
            if state is not None:
                rows = state.store_value(name, rows)
        out[candidate.categories].append(tuple(Point(*row) for row in rows))
    advance("sequences", len(draws), len(draws))
    dropped = {c: "no two chunks are a valid pair" for c, points in out.items() if not any(points)}
    return {c: points for c, points in out.items() if c not in dropped}, dropped


def _draw_sequence_and_measure_prefixes(
    common: tuple[Space, int], draw: tuple[Candidate, int], spread: Spread | None = None
) -> tuple[Point, ...]:
    """Return the recorded prefixes of a numbered draw; ``common``: the space and the seed."""
    (space, seed), (candidate, number) = common, draw
    drawn = derive_seed(seed, candidate.categories, number)
    sequence = draw_sequence(space, candidate.categories, drawn, spread)
    return measure_prefixes(space, sequence, candidate.uniques)


def unify_utility_scale(draws: Draws, n: int, d: int) -> Draws:
    """Return the draws with all utilities as exp(D / (n d)) if the ratio of (2.18) misleads for one of them.

    Otherwise they stay as they are. Two scales do not compare.
    """
    if not any(p.misleading for rows in draws.values() for row in rows for p in row):
        return draws
    remark = f"the ratio misleads for another release: {STAND_IN}"

    def rescale(p: Point) -> Point:
        if p.misleading:
            return p
        return p._replace(utility=compute_distance_utility(p.distance, n, d), flags=(*p.flags, remark))

    return {c: [tuple(map(rescale, row)) for row in rows] for c, rows in draws.items()}


def collect_releases(candidates: Sequence[Candidate], draws: Draws, n: int, d: int) -> tuple[Release, ...]:
    """Return the releases: the recorded prefixes of each candidate, averaged over the draws that reach them, with all
    utilities on one scale.

    Args:
        n, d: chunks of the corpus, and dimensions of their vectors.
    """
    draws = unify_utility_scale(draws, n, d)
    out: list[Release] = []
    for candidate in candidates:
        rows = draws.get(candidate.categories, ())
        last: list[int] = []
        for step in range(max(map(len, rows), default=0)):
            points = [row[step] for row in rows if len(row) > step]
            if last == [p.swaps for p in points]:
                continue  # a sequence shorter than the grid
            last = [p.swaps for p in points]
            out.append(_make_release(len(out), step, candidate, points, n))
    return tuple(out)


def _make_release(index: int, step: int, candidate: Candidate, points: Sequence[Point], n: int) -> Release:
    risks, m = candidate.risks, [p.uniques for p in points]
    flags = dict.fromkeys(flag for p in points for flag in p.flags)
    flags |= dict.fromkeys(flag for risk in risks.values() for flag in risk.flags)
    return Release(
        index=index,
        categories=candidate.categories,
        swaps=round(sum(p.swaps for p in points) / len(points)),
        changed=mean([p.changed for p in points]),
        share=mean([p.changed / n for p in points]),
        uniques=mean(m),
        utility=mean([p.utility for p in points]),
        distance=mean([p.distance for p in points]),
        distance_per_chunk=mean([p.distance / max(p.changed, 1) for p in points]),
        cosine=mean([p.cosine for p in points]),
        risk={size: _average_risk_over_draws(risk.after, m, 1.0) for size, risk in risks.items()},
        bounded={size: _average_risk_over_draws(risk.bounded_after, m, 1.0) for size, risk in risks.items()},
        remaining={size: _average_risk_over_draws(risk.remaining, m) for size, risk in risks.items()},
        flags=tuple(flags),
        moves=sum(p.moves for p in points) / len(points),
        step=step,
    )


def _average_risk_over_draws(
    compute_risk: Callable[[int], Estimate], unique_counts: Sequence[int], most: float = math.inf
) -> Estimate:
    """Return a mean over draws, with the interval of the model, wider by one standard deviation of the draws."""
    estimates = [compute_risk(m) for m in unique_counts]
    centre = mean([e.value for e in estimates])
    sd = centre.high - centre.value
    low = max(0.0, min(e.low for e in estimates) - sd)
    high = min(most, max(e.high for e in estimates) + sd)
    method = f"{estimates[0].method}, wider by the draws' standard deviation" if sd else estimates[0].method
    return Estimate(centre.value, min(low, centre.value), max(high, centre.value), len(estimates), method)


def _make_table_fit(corpus: Corpus, table: Table, risks: Mapping[float, Risk]) -> TableFit:
    """Return a column of P1's Table 1."""
    fit = next(iter(risks.values())).fit
    return TableFit(
        categories=table.categories,
        n=fit.n,
        k=fit.k,
        singles=fit.singles,
        doubles=table.frequencies().get(2, 0),
        alone=len(table.list_single_class_cells(corpus)),
        theta=fit.strength,
        alpha=fit.discount,
        log_likelihood=fit.log_likelihood,
        status=fit.status,
        share=fit.singles / len(corpus.chunks),
        p={size: risk.p for size, risk in risks.items()},
        bounded={size: risk.bounded for size, risk in risks.items()},
        population={size: risk.uniques for size, risk in risks.items()},
    )


def _list_search_remarks(corpus: Corpus, settings: Settings) -> Iterator[str]:
    """Yield remarks about what the search can still do with this corpus; raise where it can do nothing."""
    if len(corpus.documents) < 2:
        raise DataError(f"swapping needs two documents at least, got {len(corpus.documents)}")
    if not corpus.chunks:
        raise DataError(NO_CHUNKS)
    if not corpus.swapped:
        raise UsageError("no category has the state swap; one at least is required")
    sizes, choose_at = settings.search.population, settings.search.choose_at
    if not sizes:
        raise UsageError("search.population: one population size at least is required, got none")
    if min(sizes) < (n := len(corpus.chunks)):
        small = f"a population of {min(sizes):g} is smaller than the corpus"
        raise UsageError(f"search.population: {small}, {n} chunks")
    if choose_at and choose_at not in sizes:
        allowed = ", ".join(f"{n:g}" for n in sizes)
        raise UsageError(f"search.choose_at must be one of search.population ({allowed}), got {choose_at:g}")
    if len(set(corpus.classes)) == 1:
        yield f"all documents have the same {corpus.protect}: there is nothing that an exchange could hide"
    if len(corpus.swapped) < settings.search.size:
        yield f"search.size is {settings.search.size}, but only {len(corpus.swapped)} categories are swapped"
    if len({chunk.text for chunk in corpus.chunks}) == 1:
        yield "all chunks say the same: clusters and utility mean nothing"


def _list_mixture_warnings(best: Fit, fits: Sequence[Fit]) -> list[str]:
    out = [str(w) for w in best.mixture.warnings_]
    failed = sum(not f.usable for f in fits)
    if failed:
        out.append(f"{failed} of {len(fits)} mixtures did not converge to a regular maximum")
    if best.left < best.clusters:
        out.append(f"of {best.clusters} components {best.left} are left after pruning")
    return out


@contextmanager
def _record_time(timings: dict[str, float], name: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    timings[name] = time.perf_counter() - start
