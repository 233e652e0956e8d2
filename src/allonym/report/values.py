"""Reading the plain values of a result: parts, rows and estimates by path. Any part may be missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from string import Formatter
from typing import Any

from allonym.report.numbers import format_number, format_power
from allonym.report.page import Cell, Facts
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


def read_path(result: Any, source: Source) -> Any:
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


def read_rows(result: Any, source: Source) -> list[Any]:
    """Return a list of rows. For a mapping, each item is a row: its key as ``name``, with the members of its value,
    or with a value that has none as ``value``."""
    value = read_path(result, source)
    if isinstance(value, Mapping):
        return [{"name": key, **(item if _has_members(item) else {"value": item})} for key, item in value.items()]
    return list(value or ())


def read_cell(result: Any, source: Source) -> Cell:
    """Return a value as a table or key figure shows it; a mapping is an estimate."""
    value = read_path(result, source)
    if isinstance(value, Mapping):
        return read_estimate(value)
    if isinstance(value, (list, tuple)):
        return ", ".join(str(item) for item in value)
    return value  # type: ignore[no-any-return]


def has_value(result: Any, source: Source) -> bool:
    """Whether there is a value: an estimate that is a number, a mapping or sequence with members, text, not 0."""
    value = read_path(result, source)
    return has_estimate(value) if isinstance(value, Mapping) and not _has_members(value) else bool(value)


def list_rows(result: Plain, name: str) -> list[Plain]:
    """Return a list of mappings; empty where it is missing."""
    return [row for row in result.get(name) or () if isinstance(row, Mapping)]


def read_part(result: Plain, path: str) -> Plain:
    """Return a mapping; empty where it is missing."""
    value = read_path(result, path)
    return value if isinstance(value, Mapping) else {}


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


def missing_reason(value: object) -> str:
    """Return why an estimate has no value, as its method says."""
    return read_estimate(value).method.removeprefix("none: ")


def fill_template(template: Template, result: Any) -> str:
    """Put values into a template: ``{total.mean:share.1}`` is the share under that path with one decimal.

    A format is a kind of number with decimals where they are fixed, one of Python's own, or ``s`` or ``was``: the
    singular or plural ending or verb. Missing values are empty, or 0 where Python formats them.
    """
    return _Filler().vformat(template, (), {"": result}) if isinstance(template, str) else template(result)


class _Filler(Formatter):
    def get_field(self, field_name: str, args: Any, kwargs: Any) -> tuple[Any, str]:
        return read_path(kwargs[""], field_name), field_name

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
    if isinstance(value, Mapping) and not _has_members(value):
        return [(stem, read_estimate(value))]
    if isinstance(value, Mapping) and value:
        return [pair for k, v in value.items() for pair in _flatten_values(f"{stem}.{k}" if stem else str(k), v)]
    return [(stem, format_setting(value))] if stem else []


def _has_members(value: object) -> bool:
    return isinstance(value, Mapping) and not {"value", "low", "high"} <= set(value)


def _read_number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else NAN
