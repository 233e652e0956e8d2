"""Reading the plain values of a search: estimates, population sizes, sets of categories. Parts may be missing."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from allonym.report.numbers import power
from allonym.report.page import Facts, Key
from allonym.stats import Estimate

Plain = Mapping[str, Any]
NAN = float("nan")


def estimate(value: object) -> Estimate:
    """An estimate from its dictionary; a bare number is exact; anything else is none."""
    if isinstance(value, Estimate):
        return value
    if isinstance(value, Mapping):
        middle = _number(value.get("value"))
        low, high = _number(value.get("low", middle)), _number(value.get("high", middle))
        return Estimate(middle, low, high, int(value.get("n") or 0), str(value.get("method", "")))
    number = _number(value)
    return Estimate.exact(number) if number == number else Estimate(NAN, NAN, NAN, 0, "not computed")


def known(value: object) -> bool:
    """Whether there is an estimate."""
    found = estimate(value).value
    return found == found


def by_population(value: object) -> dict[float, Estimate]:
    """Population size to estimate, sizes ascending; JSON has the sizes as strings."""
    if not isinstance(value, Mapping):
        return {}
    return {size: estimate(found) for size, found in sorted((float(k), v) for k, v in value.items())}


def populations(result: Plain) -> list[float]:
    """The population sizes of a search, ascending."""
    sizes = {float(n) for n in result.get("populations") or ()}
    for release in rows(result, "releases"):
        sizes |= set(by_population(release.get("risk")))
    return sorted(sizes)


def rows(result: Plain, name: str) -> list[Plain]:
    """A list of mappings; empty where it is missing."""
    return [row for row in result.get(name) or () if isinstance(row, Mapping)]


def part(result: Plain, name: str) -> Plain:
    """A mapping; empty where it is missing."""
    found = result.get(name)
    return found if isinstance(found, Mapping) else {}


def categories_of(row: Plain, name: str = "categories") -> tuple[str, ...]:
    """The categories of a release, a table or a setting."""
    return tuple(str(c) for c in row.get(name) or ())


def called(categories: Sequence[str]) -> str:
    """A set of categories as text."""
    return " + ".join(categories) or "none"


def slots(result: Plain) -> dict[tuple[str, ...], int]:
    """Which colour and mark each set of categories has, the same in every chart and table of the page."""
    found: dict[tuple[str, ...], int] = {}
    for row in (*rows(result, "releases"), *rows(result, "tables"), *rows(result, "grid")):
        if own := categories_of(row):
            found.setdefault(own, len(found))
        for release in rows(row, "releases"):
            found.setdefault(categories_of(release), len(found))
    return found


def key(categories: Sequence[str], of: Mapping[tuple[str, ...], int]) -> Key | str:
    """A set of categories with its mark, where it has one."""
    own = tuple(categories)
    return Key(called(own), of[own]) if own in of else called(own)


def judged(result: Plain) -> str:
    """Which risk the releases are judged by: ``risk`` with p of (2.15), or ``bounded`` with p*."""
    search = part(part(result, "settings"), "search")
    return "bounded" if search.get("risk") == "bounded" else "risk"


def asymptotic(result: Plain) -> bool:
    """Whether population uniques were estimated by (2.14), as in the paper."""
    return part(part(result, "settings"), "search").get("risk") == "paper"


def risks(release: Plain, result: Plain) -> dict[float, Estimate]:
    """Population size to the risk that a release is judged by."""
    return by_population(release.get(judged(result))) or by_population(release.get("risk"))


def chosen(result: Plain) -> Plain | None:
    """The chosen release."""
    at = result.get("chosen")
    return next((r for r in rows(result, "releases") if r.get("index") == at), None) if at is not None else None


def chosen_population(result: Plain) -> float | None:
    """The population size of the choice; else the middle one."""
    sizes = populations(result)
    wanted = result.get("population")
    if isinstance(wanted, (int, float)):
        return float(wanted)
    return sizes[len(sizes) // 2] if sizes else None


def frontier(result: Plain, size: float) -> set[int]:
    """The numbers of the releases on the frontier at a population size."""
    found = result.get("frontier")
    if not isinstance(found, Mapping):
        return set()
    return {int(i) for k, v in found.items() if math.isclose(float(k), size, rel_tol=1e-9) for i in v}


def flat(value: object) -> Facts:
    """Nested plain values as names with dots and texts."""
    return tuple(_flat("", value))


def say(value: object) -> str:
    """A plain value as a setting is written."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or value in ("", [], (), {}):
        return "–"
    if isinstance(value, float):
        return power(value) if value >= 1e6 else f"{value:g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(say(v) for v in value)
    return str(value)


def readable(sentence: object) -> str:
    """A sentence with its round population sizes as powers of ten: 1e+06 becomes 10⁶."""
    return re.sub(r"\b\d(?:\.\d+)?e\+\d+\b", lambda m: power(float(m[0])), str(sentence))


def _flat(stem: str, value: object) -> list[tuple[str, Estimate | str]]:
    if isinstance(value, Mapping) and {"value", "low", "high"} <= set(value):
        return [(stem, estimate(value))]
    if isinstance(value, Mapping) and value:
        return [pair for k, v in value.items() for pair in _flat(f"{stem}.{k}" if stem else str(k), v)]
    return [(stem, say(value))] if stem else []


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else NAN
