"""Everything a search found as plain values, for JSON and for the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from allonym import __version__
from allonym.stats import Estimate
from allonym.swap.grid import Setting
from allonym.swap.results import Attack, Cluster, Outcome, Release, TableFit
from allonym.swap.task import Task

if TYPE_CHECKING:
    from allonym.swap.making import Made
    from allonym.swap.releases import Releases

FORMAT = 1


def plain(value: Any) -> Any:
    """A value as JSON holds it: estimates as dictionaries, numbers that are none as None, keys as text."""
    if isinstance(value, Estimate):
        return value.to_dict()
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, Mapping):
        return {_name(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, (Attack, Cluster, Outcome, Release, TableFit)):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    return value


def _name(key: object) -> str:
    return f"{key:g}" if isinstance(key, float) else str(key)


def to_dict(
    releases: Releases,
    made: Made | None = None,
    *,
    chosen: Release | None = None,
    why: str = "",
    attacks: Iterable[Attack] = (),
    guessed: Mapping[int, Mapping[str, tuple[bool, bool]]] | None = None,
    task: Task | None = None,
    grid: Iterable[Setting] = (),
    title: str = "",
    texts: bool = True,
) -> dict[str, Any]:
    """See :meth:`allonym.swap.releases.Releases.to_dict`."""
    corpus, settings = releases.corpus, releases.settings
    best = chosen or (made.release if made else releases.best())
    rows = {r.index: {**plain(r), "moves": releases.places[r.index].moves} for r in releases.releases}
    states = Counter(corpus.categories.values())
    out: dict[str, Any] = {
        "format": FORMAT,
        "version": __version__,
        "title": title or f"Named entity swapping: {corpus.protect} protected",
        "corpus": {
            "protect": corpus.protect,
            "documents": len(corpus.documents),
            "chunks": len(corpus.chunks),
            "classes": len(set(corpus.classes)),
            "categories": dict(corpus.categories),
            "swapped": states.get("swap", 0),
            "characters": sum(len(chunk.text) for chunk in corpus.chunks),
            "changed_words": plain(made.numbers["words"]) if made else None,
        },
        "settings": {**settings.to_dict(), "corpus": plain(corpus.settings), "seed": releases.seed},
        "warnings": list(releases.warnings),
        "populations": list(settings.search.population),
        "tables": plain(releases.tables),
        "stability": _stability(releases),
        "mixture": {
            "family": releases.chosen_fit.family,
            "clusters": plain(releases.clusters),
            "log_likelihood": plain(releases.chosen_fit.log_likelihood),
            "selection": [plain(f.to_dict()) for f in releases.fits],
            "chosen": next(i for i, f in enumerate(releases.fits) if f is releases.chosen_fit),
        },
        "releases": [rows[r.index] for r in releases.releases],
        "dropped": [{"categories": list(c), "reason": why} for c, why in releases.dropped.items()],
        "frontier": {_name(n): [r.index for r in releases.frontier_at(n)] for n in settings.search.population},
        "chosen": best.index,
        "population": releases.population,
        "why": why or releases.explain(best),
        "attacks": plain(list(attacks)),
        "task": task.to_dict() if task else None,
        "fallback": dict(made.numbers["fallen"]) if made else {},
        "leftover": dict(made.numbers["left"]) if made else {},
        "released": {k: plain(v) for k, v in made.numbers.items() if k not in ("fallen", "left")} if made else None,
        "outcomes": [],
        "grid": [plain(s.to_dict()) for s in grid],
        "timings": dict(releases.timings),
    }
    if made:
        marks = guessed or {}
        out["outcomes"] = [
            {**_outcome(one, texts), "guessed": plain(marks.get(one.chunk, {}))} for one in made.outcomes
        ]
    if not texts:
        for one in out["attacks"]:
            one["terms"] = []
        for one in out["mixture"]["clusters"]:
            one["words"] = []
    return out


def _outcome(one: Outcome, texts: bool) -> dict[str, Any]:
    shown: dict[str, Any] = plain(one)
    if not texts:
        for name in ("before", "after", "marks", "marks_before"):
            del shown[name]
    return shown


def _stability(releases: Releases) -> dict[str, Any] | None:
    found = releases.stability
    if found is None:
        return None
    return {
        "populations": list(found.populations),
        "orders": plain(found.orders),
        "settled": list(found.settled),
        "tau": list(found.tau),
        "agree": found.agree,
        "sentences": list(found.sentences),
    }
