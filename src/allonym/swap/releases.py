"""The releases that a search measured, on a risk-utility plane: the choice of one, and why (P1 2.3, 3.2.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allonym import __version__
from allonym.errors import UnknownNameError, UsageError
from allonym.intruder import Item, Panel, PanelRow
from allonym.policy import Policy
from allonym.serial import to_plain
from allonym.stats import Estimate
from allonym.swap import checks, making
from allonym.swap import frontier as plane
from allonym.swap.checks import Checks
from allonym.swap.corpus import Advance, Corpus
from allonym.swap.making import Made
from allonym.swap.results import Attack, Cluster, Release, TableFit
from allonym.swap.risk import RankStability, Risk, Task, compute_rank_stability
from allonym.swap.rows import Spread, ThisProcess
from allonym.swap.selection import Fit
from allonym.swap.settings import Settings
from allonym.swap.space import Space

if TYPE_CHECKING:
    from allonym.swap.hyperparameters import Setting

FORMAT = 1
"""Version of the plain values."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A set of categories to exchange.

    Attributes:
        uniques: chunks that are unique, sorted: in its own marginal table, or in that of all swapped categories.
        table: the fit of its own table.
        risks: population size to the risk of the table that the uniques are from.
    """

    categories: tuple[str, ...]
    uniques: tuple[int, ...]
    table: TableFit
    risks: Mapping[float, Risk]


@dataclass(frozen=True, slots=True, repr=False)
class Releases:
    """Every candidate release of a corpus, measured.

    Attributes:
        releases: by set of categories, then by rate.
        candidates: the sets of categories, with the basis of their releases' measures.
        clusters: the components of the mixture that was chosen; fits: all that were tried; chosen_fit: that one.
        dropped: sets of categories that are no candidates, and the reason.
        warnings, timings: for reports; seconds per stage.
    """

    corpus: Corpus
    settings: Settings
    seed: int
    releases: tuple[Release, ...]
    candidates: Mapping[tuple[str, ...], Candidate] = field(repr=False)
    clusters: tuple[Cluster, ...]
    fits: tuple[Fit, ...]
    chosen_fit: Fit
    dropped: Mapping[tuple[str, ...], str]
    warnings: tuple[str, ...]
    timings: Mapping[str, float]
    space: Space = field(repr=False)

    def __repr__(self) -> str:
        return f"Releases({len(self.releases)} releases of {len(self.tables)} sets of categories)"

    @property
    def tables(self) -> tuple[TableFit, ...]:
        """The marginal table of each set of categories, with its Ewens-Pitman fit (P1 Table 1)."""
        return tuple(candidate.table for candidate in self.candidates.values())

    @property
    def population(self) -> float:
        """The population size at which a release is chosen."""
        sizes = sorted(self.settings.search.population)
        return self.settings.search.choose_at or sizes[len(sizes) // 2]

    @property
    def is_bounded(self) -> bool:
        """Whether the risk is p*, not p."""
        return self.settings.search.risk == "bounded"

    def risk(self, release: Release, population: float | None = None) -> Estimate:
        """Return R of (2.16), with p or p* as the settings say.

        Raises:
            UsageError: it was not computed for this population size.
        """
        size = self.population if population is None else population
        values = release.bounded if self.is_bounded else release.risk
        if size not in values:
            raise UsageError(f"population {size:g} is none of the search: {', '.join(f'{n:g}' for n in values)}")
        return values[size]

    def points(self, population: float | None = None) -> list[tuple[float, float]]:
        """Return (utility, risk) of each release; utility at most 1."""
        return [(min(r.utility.value, 1.0), self.risk(r, population).value) for r in self.releases]

    @property
    def frontier(self) -> tuple[Release, ...]:
        """The releases that none beats in both risk and utility, at :attr:`population`."""
        return self.frontier_at(self.population)

    def frontier_at(self, population: float) -> tuple[Release, ...]:
        """Return the frontier for another population size of the search."""
        return tuple(self.releases[i] for i in plane.find_frontier(self.points(population)))

    def best(self, **rule: float | None) -> Release:
        """Return the release that a rule chooses: see :class:`allonym.swap.frontier.Rule`.

        Without a rule, ``settings.search.choose`` decides among those of the frontier, so that no release is better in
        both risk and utility, whose utility is ``settings.search.min_utility`` and whose changed chunks keep a mean
        cosine of ``settings.search.min_cosine``: the release that moves the most entities, or the one of lowest risk.
        Where none of the frontier keeps as much, the one that comes nearest is chosen, in utility first.

        Raises:
            DataError: no release meets the constraints.
            UsageError: constraints that do not go together.
        """
        if not plane.Rule(**rule).is_given:
            return self._choose_default_release()
        return self.releases[plane.best(self.points(), **rule)]

    def _choose_default_release(self) -> Release:
        points, least = self.points(), self.settings.search.min_utility
        if not (similar := [r for r in self.frontier if self._keeps_enough(r)]):
            return max(self.frontier, key=lambda r: (min(r.utility.value, least), r.cosine.value, -r.index))
        if self.settings.search.choose == "moved":
            return max(similar, key=lambda r: (r.moves, -points[r.index][1], -r.index))
        return min(similar, key=lambda r: (points[r.index][1], -points[r.index][0], r.index))

    def _keeps_enough(self, release: Release) -> bool:
        search = self.settings.search
        return release.utility.value >= search.min_utility and release.cosine.value >= search.min_cosine

    def why(self, release: Release | int, **rule: float | None) -> str:
        """Return why :meth:`best` chose a release by this rule; without one, the text of :meth:`explain`."""
        chosen = self.release(release)
        if not plane.Rule(**rule).is_given:
            return self.explain(chosen)
        several = self.settings.search.draws > 1  # else there is no spread
        spreads = [(_get_half_width(r.utility), self._get_risk_sd(r)) for r in self.releases]
        sentences = plane.explain(
            self.points(),
            names=[f"{' + '.join(r.categories)} with {r.swaps:,} swaps" for r in self.releases],
            spreads=spreads if several else None,
            **rule,
        )
        return " ".join((self._describe_effect(chosen), *sentences))

    def explain(self, release: Release | int) -> str:
        """Return reasons to choose a release, or not: its effect, its place on the plane, and its neighbours."""
        chosen = self.release(release)
        points, front = self.points(), self.frontier
        utility, risk = points[chosen.index]
        out = [
            self._describe_effect(chosen),
            f"At N = {self.population:g} its risk is {risk:.4f}, with {chosen.remaining[self.population].value:,.1f} "
            f"expected population uniques left, and its utility {utility:.4f}.",
        ]
        if chosen in front:
            out.append(
                f"It is on the frontier: none of the {len(points)} releases is less risky and no less useful, or the "
                "other way round."
            )
            useful = [r for r in front if points[r.index][0] > utility]  # both by falling utility and risk
            safe = [r for r in front if points[r.index][1] < risk]
            for other, word in ((useful[-1:], "More useful is"), (safe[:1], "Less risky is")):
                out += [f"{word} {self._describe_risk_and_utility(r, points)}." for r in other]
        elif better := [r for r in front if points[r.index][0] >= utility and points[r.index][1] <= risk]:
            out.append(f"It is not on the frontier, for there is {self._describe_risk_and_utility(better[0], points)}.")
        if chosen == self._choose_default_release():
            out.append(self._describe_default_rule(chosen))
        return " ".join(out)

    def _get_risk_sd(self, release: Release) -> float:
        """Return the standard deviation over the draws alone: R is linear in m."""
        risk = self.candidates[release.categories].risks[self.population]
        p = risk.bounded if self.is_bounded else risk.p
        return _get_half_width(release.uniques) * p.value / risk.fit.singles if risk.fit.singles else 0.0

    def _describe_effect(self, release: Release) -> str:
        total, nats = len(self.candidates[release.categories].uniques), release.distance_per_chunk.value
        return (
            f"Exchanging {' + '.join(release.categories)} in {release.swaps:,} swaps changes "
            f"{release.changed.value:,.0f} chunks ({100 * release.share.value:.0f} %), among them "
            f"{release.uniques.value:,.0f} of {total:,} sample uniques; a changed chunk keeps a cosine of "
            f"{release.cosine.value:.3f} and {'loses' if nats <= 0 else 'gains'} {abs(nats):.2f} nats."
        )

    def _describe_risk_and_utility(self, release: Release, points: Sequence[tuple[float, float]]) -> str:
        utility, risk = points[release.index]
        name = " + ".join(release.categories)
        return f"{name} in {release.swaps:,} swaps, with risk {risk:.4f} and utility {utility:.4f}"

    def _describe_default_rule(self, chosen: Release) -> str:
        search = self.settings.search
        limits = [f"a utility of {search.min_utility:g}"] if search.min_utility > 0 else []
        limits += [f"a mean cosine of {search.min_cosine:g}"] if search.min_cosine > -1 else []
        bounds = " and ".join(limits)
        if not self._keeps_enough(chosen):
            return f"It is chosen because none of the frontier keeps {bounds}, and it comes nearest."
        moved = search.choose == "moved"
        best = f"moves the most entities, {chosen.moves:,.0f}," if moved else "has the lowest risk"
        among = f"the frontier that keep {bounds}" if limits else "the frontier"
        return f"It is chosen because it {best} of those on {among}; no other constraint was given."

    def release(self, which: Release | int) -> Release:
        """Return a release by its number, or itself.

        Raises:
            UnknownNameError: there is no release of this number.
        """
        if isinstance(which, Release):
            return which
        if not 0 <= which < len(self.releases):
            raise UnknownNameError("release", which, [str(r.index) for r in self.releases])
        return self.releases[which]

    @property
    def stability(self) -> RankStability | None:
        """Whether the order of the sets of categories by p holds over the population sizes; None without uniques."""
        values = {t.categories: t.bounded if self.is_bounded else t.p for t in self.tables if t.singles}
        return compute_rank_stability(values) if values else None

    def make(self, release: Release | int | None = None, *, draw: int = 0, **options: Any) -> Made:
        """Write the corpus as released: the texts and plans of one draw; see :func:`allonym.swap.making.make`."""
        return making.make(self, self.best() if release is None else self.release(release), draw=draw, **options)

    def check(
        self,
        release: Release | int | None = None,
        *,
        made: Made | None = None,
        background: Sequence[tuple[Item, str]] = (),
        options: Mapping[str, Mapping[str, object]] | None = None,
        progress: Advance | None = None,
        policy: str | Path | Policy | None = None,
        key: bytes | str | None = None,
        spread: Spread | None = None,
        **how: Any,
    ) -> Checks:
        """Let intruders guess, in several draws of a release (P1 3.2.2); see :func:`allonym.swap.checks.check_runs`.

        Args:
            release: by default the one of :meth:`best`.
            made: the first draw, if it exists already.
            background: outside texts to learn from, with the protected value of each.
            options: intruder to its options.
            progress: called with (stage, done, total).
            policy, key, spread, how: of :meth:`make`.
        """
        chosen = self.best() if release is None else self.release(release)
        corpus, settings = self.corpus, self.settings.check
        secret = key or making.derive_fallback_key(corpus, self.seed)
        ready = {} if made is None else {made.draw: checks.collect_changed_chunks(corpus, made)}
        numbers = [number for number in range(settings.runs) if number not in ready]
        common = (self, chosen, policy, secret, how)
        drawn = (spread or ThisProcess()).map_items(checks.draw_changed_chunks, common, numbers)
        runs = []
        for number in range(settings.runs):
            runs.append(ready[number] if number in ready else next(drawn))
            if progress is not None:
                progress("drawn", number + 1, settings.runs)
        of_intruders, most = dict(options or {}), {}
        if (model := checks.LANGUAGE_MODEL) in settings.intruders:
            defaults = checks.collect_llm_options(corpus, settings, secret)
            of_intruders[model] = {**defaults, **of_intruders.get(model, {})}
            most = {model: settings.llm_runs} if settings.llm_runs else {}
        return checks.check_runs(
            corpus,
            runs,
            settings.intruders,
            background=background,
            options=of_intruders,
            most=most,
            folds=settings.folds,
            seed=self.seed,
            progress=progress,
        )

    def find_documents(
        self,
        release: Release | int | None = None,
        *,
        made: Made | None = None,
        policy: str | Path | Policy | None = None,
        key: bytes | str | None = None,
    ) -> PanelRow:
        """Let intruders look for whole documents in a draw of a release, in the form that the settings say.

        Args:
            release: by default the one of :meth:`best`.
            made: its first draw, if it exists already.
            policy, key: of :meth:`make`.

        Returns:
            The panel's row ``document``: the worst intruder.
        """
        chosen = self.best() if release is None else self.release(release)
        secret = key or making.derive_fallback_key(self.corpus, self.seed)
        drawn = made or making.draw_and_write_release(self, chosen, 0, policy, secret)
        run = checks.collect_changed_chunks(self.corpus, drawn)
        panel = checks.ask_panel(self.corpus, run, folds=2, seed=self.seed)
        return next(row for row in panel.rows if row.name == "document")

    def select_frontier(self, count: int, but: Release) -> tuple[Release, ...]:
        """Return so many releases of the frontier at most, evenly by utility, without one of them."""
        others = [release for release in self.frontier if release != but]
        if count >= len(others):
            return tuple(others)
        return tuple(others[k * len(others) // count] for k in range(count))

    def to_dict(
        self,
        made: Made | None = None,
        *,
        chosen: Release | None = None,
        why: str = "",
        attacks: Iterable[Attack] = (),
        panel: Panel | None = None,
        guessed: Mapping[int, Mapping[str, tuple[bool, bool]]] | None = None,
        documents: Mapping[int, PanelRow] | None = None,
        task: Task | None = None,
        grid: Iterable[Setting] = (),
        title: str = "",
        texts: bool = True,
    ) -> dict[str, Any]:
        """Return everything as plain values, for JSON and for :func:`allonym.report.swap_page`.

        Args:
            made: the release that was written; adds the numbers of the fall-backs, and texts side by side.
            chosen, why: the choice, and its reasons.
            attacks, panel, guessed: of :meth:`check`.
            documents: index of a release to the result of :meth:`find_documents`.
            task: of :func:`allonym.swap.task_utility`; grid: of :func:`allonym.swap.grid`.
            title: of the report.
            texts: whether words of the corpus are included.
        """
        corpus, settings, fit = self.corpus, self.settings, self.chosen_fit
        best = chosen or (made.release if made else self.best())
        numbers = dict(made.numbers) if made else {}
        values = {
            "format": FORMAT,
            "version": __version__,
            "title": title or f"Named entity swapping: {corpus.protect} protected",
            "corpus": {
                "protect": corpus.protect,
                "documents": len(corpus.documents),
                "chunks": len(corpus.chunks),
                "classes": len(set(corpus.classes)),
                "categories": corpus.categories,
                "swapped": Counter(corpus.categories.values())["swap"],
                "characters": sum(len(chunk.text) for chunk in corpus.chunks),
                "changed_words": numbers.get("words"),
            },
            "settings": {**settings.to_dict(), "corpus": corpus.settings, "seed": self.seed},
            "warnings": self.warnings,
            "populations": settings.search.population,
            "tables": self.tables,
            "stability": self.stability,
            "mixture": {
                "family": fit.family,
                "clusters": self.clusters,
                "log_likelihood": fit.log_likelihood,
                "selection": self.fits,
                "chosen": next(i for i, f in enumerate(self.fits) if f is fit),
            },
            "releases": self.releases,
            "dropped": [{"categories": c, "reason": reason} for c, reason in self.dropped.items()],
            "frontier": {n: [r.index for r in self.frontier_at(n)] for n in settings.search.population},
            "chosen": best.index,
            "population": self.population,
            "why": why or self.explain(best),
            "panel": panel,
            "documents": documents or {},
            "attacks": list(attacks),
            "task": task,
            "fallback": numbers.pop("fallen", {}),
            "leftover": numbers.pop("left", {}),
            "released": numbers or None,
            "outcomes": [
                {**to_plain(outcome), "guessed": (guessed or {}).get(outcome.chunk, {})}
                for outcome in (made.outcomes if made else ())
            ],
            "grid": list(grid),
            "timings": self.timings,
        }
        out: dict[str, Any] = to_plain(values)
        if not texts:
            for attack in out["attacks"]:
                attack["terms"] = []
            for cluster in out["mixture"]["clusters"]:
                cluster["words"] = []
            for outcome in out["outcomes"]:
                for name in ("before", "after", "marks", "marks_before"):
                    del outcome[name]
        return out


def _get_half_width(value: Estimate) -> float:
    return (value.high - value.low) / 2
