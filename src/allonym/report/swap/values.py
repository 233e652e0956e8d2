"""Reading the plain values of a search: releases, population sizes, sets of categories. Parts may be missing."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from allonym.report.page import Key
from allonym.report.values import Plain, format_power, get_nested_value, read_estimate, read_rows
from allonym.stats import Estimate

Categories = tuple[str, ...]


def map_by_population(value: object) -> dict[float, Estimate]:
    """Map population sizes to estimates, sizes ascending; JSON has the sizes as strings."""
    if not isinstance(value, Mapping):
        return {}
    return {size: read_estimate(risk) for size, risk in sorted((float(k), v) for k, v in value.items())}


def list_populations(result: Plain) -> list[float]:
    """List the population sizes of a search, ascending."""
    sizes = {float(n) for n in result.get("populations") or ()}
    for release in read_rows(result, "releases"):
        sizes |= set(map_by_population(release.get("risk")))
    return sorted(sizes)


def read_categories(row: Plain, name: str = "categories") -> Categories:
    """Return the categories of a release, a table or a setting."""
    return tuple(str(c) for c in row.get(name) or ())


def name_categories(categories: Sequence[str]) -> str:
    """Return a set of categories as text."""
    return " + ".join(categories) or "none"


def assign_colours(result: Plain) -> dict[Categories, int]:
    """Assign a colour and mark to each set of categories, the same in every chart and table of the page."""
    slots: dict[Categories, int] = {}
    for row in (*read_rows(result, "releases"), *read_rows(result, "tables"), *read_rows(result, "grid")):
        if categories := read_categories(row):
            slots.setdefault(categories, len(slots))
        for release in read_rows(row, "releases"):
            slots.setdefault(read_categories(release), len(slots))
    return slots


def mark_categories(categories: Sequence[str], slots: Mapping[Categories, int]) -> Key | str:
    """Return a set of categories with its mark, if it has one."""
    slot = slots.get(tuple(categories))
    name = name_categories(categories)
    return name if slot is None else Key(name, slot)


def choose_risk_key(result: Plain) -> str:
    """Return the key of the risk that releases are judged by: ``risk`` with p of (2.15), or ``bounded`` with p*."""
    return "bounded" if get_nested_value(result, "settings.search.risk") == "bounded" else "risk"


def is_asymptotic(result: Plain) -> bool:
    """Whether population uniques were estimated by (2.14), as in the paper."""
    return bool(get_nested_value(result, "settings.search.risk") == "paper")


def read_risks(release: Plain, result: Plain) -> dict[float, Estimate]:
    """Map population sizes to the risk that a release is judged by."""
    return map_by_population(release.get(choose_risk_key(result))) or map_by_population(release.get("risk"))


def find_chosen_release(result: Plain) -> Plain | None:
    """Return the chosen release."""
    index = result.get("chosen")
    if index is None:
        return None
    return next((r for r in read_rows(result, "releases") if r.get("index") == index), None)


def find_population(result: Plain) -> float | None:
    """Return the population size of the choice; else the middle one."""
    size, sizes = result.get("population"), list_populations(result)
    if isinstance(size, (int, float)):
        return float(size)
    return sizes[len(sizes) // 2] if sizes else None


def find_frontier(result: Plain, size: float) -> set[int]:
    """Return the numbers of the releases on the frontier at a population size."""
    frontier = result.get("frontier")
    if not isinstance(frontier, Mapping):
        return set()
    return {int(i) for k, v in frontier.items() if math.isclose(float(k), size, rel_tol=1e-9) for i in v}


def shorten_powers(sentence: object) -> str:
    """Write round population sizes in a sentence as powers of ten: 1e+06 becomes 10⁶."""
    return re.sub(r"\b\d(?:\.\d+)?e\+\d+\b", lambda m: format_power(float(m[0])), str(sentence))
