"""Numbers in reports: digits, percent, powers of ten, and intervals beside their estimate."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from allonym.report.page import Cell, Key, Kind, Table, Tag
from allonym.stats import Estimate

NOTHING = "–"
PERCENT = "\u00a0%"
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Shown(NamedTuple):
    """A value as text, its interval as text (empty where it has none), their method, and a sort key."""

    text: str
    interval: str = ""
    hint: str = ""
    order: float | None = None

    @property
    def line(self) -> str:
        """Text and interval on one line."""
        return f"{self.text} {self.interval}" if self.interval else self.text


def format_cell(value: Cell, kind: Kind = "number", digits: int | None = None) -> Shown:
    """Format a value of a table, an axis or a key figure.

    Args:
        value: None and NaN become a dash.
        kind: how to write it.
        digits: decimals (of percent, for shares); None: as many as make four significant ones.
    """
    if isinstance(value, (Tag, Key)):
        return Shown(value.text)
    if isinstance(value, str):
        return Shown(value)
    if isinstance(value, bool):
        return Shown("yes" if value else "no", order=float(value))
    if isinstance(value, Estimate):
        return _format_estimate(value, kind, digits)
    if value is None or value != value:
        return Shown(NOTHING)
    return Shown(format_number(float(value), kind, digits), order=_make_sortable(float(value)))


def list_digits(table: Table) -> list[int | None]:
    """List the decimals of each column: its own, else those that its numbers need in common."""
    return [
        c.digits
        if c.digits is not None or c.number != "number"
        else _find_common_digits(r.cells[i] for r in table.rows)
        for i, c in enumerate(table.columns)
    ]


def list_methods(table: Table) -> list[str]:
    """List for each column the method that all its estimates share, else an empty text: each cell has its own then."""
    out = []
    for i, column in enumerate(table.columns):
        hints = {format_cell(r.cells[i], column.number).hint for r in table.rows if isinstance(r.cells[i], Estimate)}
        out.append(hints.pop() if len(hints) == 1 else "")
    return out


def format_number(value: float, kind: Kind = "number", digits: int | None = None) -> str:
    """Format a bare number."""
    if value != value:
        return NOTHING
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if kind == "share":
        return f"{_format_fixed(100 * value, 1 if digits is None else digits)}{PERCENT}"
    if kind == "power":
        return format_power(value)
    if kind == "p":
        return _format_p(value)
    if kind == "count" and digits is None:
        digits = 0 if value == round(value) else 1
    if digits is not None and abs(value) < 1e9:
        return _format_fixed(value, digits)
    return _format_significant(value)


def format_power(value: float) -> str:
    """10⁶ for 1e6, 2.5 × 10⁷ for 2.5e7; numbers from 0.001 to a million that are no power of ten in full."""
    if value <= 0 or value != value:
        return _format_significant(value)
    digits, exponent = _split_scientific(value)
    raised = str(exponent).translate(_RAISED)
    if abs(exponent) >= 3 and math.isclose(value, 10.0**exponent):
        return f"10{raised}"
    if 1e-3 <= value < 1e6:
        return f"{value:,.10g}"
    return f"{digits}\u00a0×\u00a010{raised}"


def _format_estimate(value: Estimate, kind: Kind, digits: int | None) -> Shown:
    if value.value != value.value:
        return Shown(NOTHING, hint=value.method)
    if digits is None and kind == "number":
        digits = _count_interval_decimals(value)
    text = format_number(value.value, kind, digits)
    order = _make_sortable(value.value)
    hint = value.method if value.n <= 1 else f"{value.method}; n = {value.n:,}"
    if value.low == value.high or value.low != value.low or value.high != value.high:
        return Shown(text, "", hint, order)
    if "SD" in value.method:
        spread = _format_spread((value.high - value.low) / 2, kind, digits)
        return Shown(text, f"±\u00a0{spread}", hint, order)
    low, high = (format_number(v, kind, digits).removesuffix(PERCENT) for v in (value.low, value.high))
    return Shown(text, f"[{low}, {high}]", hint, order)


def _find_common_digits(values: Iterable[Cell]) -> int | None:
    # Values of very different sizes would lose their digits to common decimals: each keeps its own then.
    needed = [d for v in values if (d := _count_decimals(v)) is not None]
    return max(needed) if needed and max(needed) - min(needed) <= 2 and max(needed) <= 6 else None


def _format_spread(size: float, kind: Kind, digits: int | None) -> str:
    if kind == "number" and digits and size < 0.5 * 10.0**-digits:
        return f"<\u00a0{10.0**-digits:.{digits}f}"
    return format_number(size, kind, digits).removesuffix(PERCENT)


def _count_decimals(value: Cell) -> int | None:
    if isinstance(value, Estimate):
        digits = _count_interval_decimals(value)
        value = value.value
        if digits is not None:
            return digits
    if isinstance(value, (bool, str, Tag, Key)) or value is None or not math.isfinite(value) or value == round(value):
        return None
    return max(0, 3 - math.floor(math.log10(abs(value))))


def _count_interval_decimals(value: Estimate) -> int | None:
    # As many decimals as leave two digits of the interval's width, for value and limits alike; not where that is many.
    width = (value.high - value.low) / 2
    if not (0 < width < math.inf) or abs(value.value) >= 1e6:
        return None
    digits = max(0, 1 - math.floor(math.log10(width)))
    # An interval over several powers of ten would round its estimate to nothing.
    return digits if digits <= 6 and (value.value == 0 or abs(value.value) >= 5 * 10.0**-digits) else None


def _format_fixed(value: float, digits: int) -> str:
    text = f"{value:,.{digits}f}"
    if text.startswith("-") and not text.strip("-0.,"):
        text = text[1:]
    return text.replace("-", "−")


def _format_significant(value: float) -> str:
    size = abs(value)
    if value == 0:
        return "0"
    if size >= 1e6 or size < 1e-4:
        digits, exponent = _split_scientific(value)
        return f"{digits}\u00a0×\u00a010{str(exponent).translate(_RAISED)}"
    if value == round(value):
        return _format_fixed(value, 0)
    return _format_fixed(value, max(0, min(6, 3 - math.floor(math.log10(size)))))


def _format_p(value: float) -> str:
    if value <= 0:
        return f"<\u00a010{'-300'.translate(_RAISED)}"
    if value >= 0.001:
        return _format_fixed(value, 3)
    digits, exponent = f"{value:.1e}".split("e")
    return f"{digits}\u00a0×\u00a010{str(int(exponent)).translate(_RAISED)}"


def _split_scientific(value: float) -> tuple[str, int]:
    """Return three significant digits, and the power of ten."""
    digits, exponent = f"{value:.2e}".split("e")
    return f"{float(digits):g}".replace("-", "−"), int(exponent)


def _make_sortable(value: float) -> float | None:
    return value if math.isfinite(value) else None
