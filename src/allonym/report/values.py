"""Reading the plain values of a result by path, any part of which may be missing, and writing numbers.

Numbers have digits, percent, powers of ten, and intervals beside their estimate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from string import Formatter
from typing import Any, NamedTuple

from allonym.report.page import Cell, Facts, Key, Kind, Table, Tag
from allonym.stats import Estimate

Plain = Mapping[str, Any]
"""A result as its ``to_dict()`` returns it, or as read from JSON."""

Source = str | Callable[[Any], Any]
"""Where a value is: a path with dots such as ``total.mean``, or a function of the result."""

Template = str | Callable[[Any], str]
"""A text with paths in braces (:func:`fill_template`), or a function of the result that returns the text."""

NAN = float("nan")
_KINDS = {"number", "count", "share", "p", "power"}
_FORMS = {"s": ("", "s"), "was": ("was", "were")}


class Values(dict[str, Any]):
    """A result, or a part or a row of it, as plain values. Any part of a path may be missing."""

    def get_value(self, source: Source) -> Any:
        """Return the value at a source; None where any part of the path is missing."""
        return get_nested_value(self, source)

    def get_part(self, path: str) -> Values:
        """Return the mapping at a path; empty where it is missing."""
        value = get_nested_value(self, path)
        return Values(value if isinstance(value, Mapping) else {})

    def get_estimate(self, path: str) -> Estimate:
        """Return the estimate at a path: see :func:`read_estimate`."""
        return read_estimate(get_nested_value(self, path))

    def find_number(self, path: str) -> float | None:
        """Return the value of the estimate at a path; None where there is none."""
        return self.get_estimate(path).value if self.has_estimate(path) else None

    def has_estimate(self, path: str) -> bool:
        """Whether there is an estimate at a path."""
        return has_estimate(get_nested_value(self, path))

    def has_value(self, source: Source) -> bool:
        """Whether there is a value: an estimate that is a number, a mapping or sequence with members, text, not 0."""
        value = get_nested_value(self, source)
        return has_estimate(value) if isinstance(value, Mapping) and not _is_plain_mapping(value) else bool(value)

    def fill_template(self, template: Template) -> str:
        """Put values into a template: ``{total.mean:share.1}`` is the share under that path with one decimal.

        A format is a kind of number with decimals where they are fixed, one of Python's own, or ``s`` or ``was``: the
        singular or plural ending or verb. Missing values are empty, or 0 where Python formats them.
        """
        return _Filler().vformat(template, (), {"": self}) if isinstance(template, str) else template(self)

    def list_rows(self, source: Source | Mapping[str, str]) -> list[Any]:
        """List the rows at a source, mappings as values. For a mapping, each item is a row: its key as ``name``, with
        the members of its value, or with a value that has none as ``value``. Instead of a source, paths with names may
        be given: each is a row with ``name`` and ``value``."""
        if isinstance(source, Mapping):
            return [Values(name=name, value=self.get_value(path)) for path, name in source.items()]
        rows = get_nested_value(self, source) or ()
        if isinstance(rows, Mapping):
            rows = ({"name": key, **(row if _is_plain_mapping(row) else {"value": row})} for key, row in rows.items())
        return [Values(row) if isinstance(row, Mapping) else row for row in rows]


def get_nested_value(result: Any, source: Source) -> Any:
    """Return the value at a source; None where any part of the path is missing. Digits in a path index sequences."""
    if not isinstance(source, str):
        return source(result)
    for name in source.split("."):
        if isinstance(result, Mapping):
            result = result.get(name)
        elif name.isdigit() and isinstance(result, Sequence) and int(name) < len(result):
            result = result[int(name)]
        else:
            return None
    return result


def read_cell(result: Any, source: Source) -> Cell:
    """Return a value as a table or key figure shows it; a mapping is an estimate."""
    value = get_nested_value(result, source)
    if isinstance(value, Mapping):
        return read_estimate(value)
    if isinstance(value, (list, tuple)):
        return ", ".join(str(item) for item in value)
    return value  # type: ignore[no-any-return]


def read_estimate(value: object) -> Estimate:
    """Return an estimate from its dictionary; a bare number is exact; anything else has no value."""
    if isinstance(value, Estimate):
        return value
    if isinstance(value, Mapping):
        middle = _read_number(value.get("value"))
        low, high = _read_number(value.get("low", middle)), _read_number(value.get("high", middle))
        return Estimate(middle, low, high, int(value.get("n") or 0), str(value.get("method", "")))
    number = _read_number(value)
    return Estimate.exact(number) if number == number else Estimate(NAN, NAN, NAN, 0, "not computed")


def has_estimate(value: object) -> bool:
    """Whether there is an estimate."""
    middle = read_estimate(value).value
    return middle == middle


def get_missing_reason(value: object) -> str:
    """Return why an estimate has no value, as its method says."""
    return read_estimate(value).method.removeprefix("none: ")


class _Filler(Formatter):
    def get_field(self, field_name: str, args: Any, kwargs: Any) -> tuple[Any, str]:
        return get_nested_value(kwargs[""], field_name), field_name

    def format_field(self, value: Any, format_spec: str) -> str:
        kind, _, digits = format_spec.partition(".")
        if kind in _KINDS:
            return format_number(read_estimate(value).value, kind, int(digits) if digits else None)  # type: ignore[arg-type]
        if format_spec in _FORMS:
            return _FORMS[format_spec][value != 1]
        return format(value or 0, format_spec) if format_spec else str("" if value is None else value)


def flatten_settings(value: object) -> Facts:
    """Return nested plain values as names with dots and texts."""
    return tuple(_flatten_values("", value))


def list_seconds_facts(values: Plain) -> Facts:
    """Return names with seconds as texts."""
    return tuple((str(name), f"{float(seconds):,.1f}") for name, seconds in values.items())


def format_setting(value: object) -> str:
    """Format a plain value as settings are written."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or value in ("", [], (), {}):
        return "–"
    if isinstance(value, float):
        return format_power(value) if value >= 1e6 else f"{value:g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(format_setting(v) for v in value)
    return str(value)


def _flatten_values(stem: str, value: object) -> list[tuple[str, Estimate | str]]:
    if isinstance(value, Mapping) and not _is_plain_mapping(value):
        return [(stem, read_estimate(value))]
    if isinstance(value, Mapping) and value:
        return [pair for k, v in value.items() for pair in _flatten_values(f"{stem}.{k}" if stem else str(k), v)]
    return [(stem, format_setting(value))] if stem else []


def _is_plain_mapping(value: object) -> bool:
    """Whether it is a mapping that is no estimate."""
    return isinstance(value, Mapping) and not {"value", "low", "high"} <= set(value)


def _read_number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else NAN


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
    return Shown(format_number(float(value), kind, digits), order=_get_sort_value(float(value)))


def list_column_decimals(table: Table) -> list[int | None]:
    """List the decimals of each column: its own, else those that its numbers need in common."""
    return [
        c.digits
        if c.digits is not None or c.number != "number"
        else _find_common_decimals(r.cells[i] for r in table.rows)
        for i, c in enumerate(table.columns)
    ]


def list_column_methods(table: Table) -> list[str]:
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
        return _format_p_value(value)
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
    order = _get_sort_value(value.value)
    hint = value.method if value.n <= 1 else f"{value.method}; n = {value.n:,}"
    if value.low == value.high or value.low != value.low or value.high != value.high:
        return Shown(text, "", hint, order)
    if "SD" in value.method:
        spread = _format_spread((value.high - value.low) / 2, kind, digits)
        return Shown(text, f"±\u00a0{spread}", hint, order)
    low, high = (format_number(v, kind, digits).removesuffix(PERCENT) for v in (value.low, value.high))
    return Shown(text, f"[{low}, {high}]", hint, order)


def _find_common_decimals(values: Iterable[Cell]) -> int | None:
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


def _format_p_value(value: float) -> str:
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


def _get_sort_value(value: float) -> float | None:
    return value if math.isfinite(value) else None
