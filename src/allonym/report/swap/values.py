"""Reading the plain values of a search: releases, population sizes, sets of categories. Parts may be missing."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import cached_property

from allonym.report.page import Key
from allonym.report.values import NAN, Values, format_number, format_power, read_estimate
from allonym.stats import Estimate

Categories = tuple[str, ...]


class Search(Values):
    """The plain values of a search for a release."""

    @cached_property
    def population_sizes(self) -> list[float]:
        """The population sizes, ascending."""
        sizes = {float(n) for n in self.get("populations") or ()}
        for release in self.list_rows("releases"):
            sizes |= set(map_by_population(release.get("risk")))
        return sorted(sizes)

    @cached_property
    def shown_size(self) -> float | None:
        """The population size of the choice; else the middle one."""
        size, sizes = self.get("population"), self.population_sizes
        if isinstance(size, (int, float)):
            return float(size)
        return sizes[len(sizes) // 2] if sizes else None

    @cached_property
    def colour_slots(self) -> dict[Categories, int]:
        """The colour and mark of each set of categories, the same in every chart and table of the page."""
        slots: dict[Categories, int] = {}
        for row in (*self.list_rows("releases"), *self.list_rows("tables"), *self.list_rows("grid")):
            if categories := read_categories(row):
                slots.setdefault(categories, len(slots))
            for release in row.list_rows("releases"):
                slots.setdefault(read_categories(release), len(slots))
        return slots

    @property
    def risk_key(self) -> str:
        """The key of the risk that releases are judged by: ``risk`` with p of (2.15), or ``bounded`` with p*."""
        return "bounded" if self.get_value("settings.search.risk") == "bounded" else "risk"

    @property
    def chosen_release(self) -> Values:
        """The chosen release; empty where none is."""
        return next((release for release in self.list_rows("releases") if self.is_chosen(release)), Values())

    @property
    def shown_release(self) -> Values:
        """The chosen release with the values of the draw that was written, if one was: else means over draws."""
        chosen, written = self.chosen_release, self.get_part("released")
        if not chosen or not written:
            return chosen
        changed, chunks = written.get("changed") or 0, self.get_value("corpus.chunks")
        values = {name: written[name] for name in ("changed", "uniques", "utility", "distance", "cosine", "remaining")}
        values |= {self.risk_key: written["risk"], "distance_per_chunk": written["distance"] / max(1, changed)}
        return Values({**chosen, **values, "share": changed / chunks if chunks else None})

    @property
    def chosen_risk(self) -> Estimate | None:
        """The risk of the chosen release at the population size of the choice."""
        return self.read_judged_risks(self.shown_release).get(self.shown_size or NAN)

    @property
    def uniques_left(self) -> str:
        """The expected population uniques that the chosen release leaves, at that size, as a text; empty without."""
        left = map_by_population(self.shown_release.get("remaining")).get(self.shown_size or NAN)
        return "" if left is None else f"{format_number(left.value, 'number', 1)} expected population uniques left"

    def is_chosen(self, release: Values) -> bool:
        """Whether a release is the chosen one."""
        return self.get("chosen") is not None and bool(release.get("index") == self["chosen"])

    def make_categories_key(self, categories: Categories) -> Key | str:
        """Return a set of categories with its mark, if it has one."""
        slot, name = self.colour_slots.get(categories), name_categories(categories)
        return name if slot is None else Key(name, slot)

    def read_judged_risks(self, release: Values) -> dict[float, Estimate]:
        """Map population sizes to the risk that a release is judged by."""
        return map_by_population(release.get(self.risk_key)) or map_by_population(release.get("risk"))

    def find_frontier_indices(self, size: float) -> set[int]:
        """Return the numbers of the releases on the frontier at a population size."""
        frontier = self.get_part("frontier").items()
        return {int(i) for k, v in frontier if math.isclose(float(k), size, rel_tol=1e-9) for i in v}


def map_by_population(value: object) -> dict[float, Estimate]:
    """Map population sizes to estimates, sizes ascending; JSON has the sizes as strings."""
    if not isinstance(value, Mapping):
        return {}
    return {size: read_estimate(risk) for size, risk in sorted((float(k), v) for k, v in value.items())}


def read_categories(row: Values) -> Categories:
    """Return the categories of a release, a table or a setting."""
    return tuple(str(c) for c in row.get("categories") or ())


def name_categories(categories: Sequence[str]) -> str:
    """Return a set of categories as text."""
    return " + ".join(categories) or "none"


def shorten_powers(sentence: object) -> str:
    """Write round population sizes in a sentence as powers of ten: 1e+06 becomes 10⁶."""
    return re.sub(r"\b\d(?:\.\d+)?e\+\d+\b", lambda m: format_power(float(m[0])), str(sentence))
