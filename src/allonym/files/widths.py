"""Widths of the columns of a sheet: a column becomes wider where it would cut a replacement."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from allonym.files.office import Part
from allonym.files.sheets import list_cells, number_column

MOST_CHARACTERS = 40
"""Greatest width that a column gets, in characters."""

_USUAL = 8.43
"""Width of a column whose sheet tells none."""

_MARGIN = 2


def widen_columns(part: Part, before: Mapping[Any, str], after: Mapping[Any, str]) -> None:
    """Widen the columns of a sheet in which the text of a cell had room before, and has none now.

    Args:
        part: the sheet.
        before, after: the texts of its cells.
    """
    elements = list(part.root.iterfind("{*}cols/{*}col"))
    if not all(str(element.get(side)).isdecimal() for element in elements for side in ("min", "max")):
        return  # programs differ in how they read these
    usual = part.root.find("{*}sheetFormatPr")
    widths = dict(_read_widths(elements))
    default = _USUAL if usual is None else _read_width(usual.get("defaultColWidth"))
    needed: dict[int, int] = {}
    for cell, letters, _ in list_cells(part.root):
        old, new = before.get(cell, ""), after.get(cell, "")
        number = number_column(letters)
        width = widths.get(number, default)
        if old != new and len(old) <= width < len(new) + 1 and width:
            needed[number] = max(needed.get(number, 0), min(len(new) + _MARGIN, MOST_CHARACTERS))
    wider = {number: width for number, width in needed.items() if width > widths.get(number, default)}
    if wider:
        _set_widths(part, wider)


def _read_width(text: str | None) -> float:
    return float(text) if re.fullmatch(r"\d+(\.\d+)?", text or "") and text else _USUAL


def _read_widths(elements: Iterable[Any]) -> Iterator[tuple[int, float]]:
    """Yield columns by number with their widths; hidden ones have none."""
    for element in elements:
        first, last = int(element.get("min")), int(element.get("max"))
        is_hidden = element.get("hidden") in ("1", "true")
        for number in range(first, min(last, first + 16384) + 1):
            yield number, 0.0 if is_hidden else _read_width(element.get("width"))


def _set_widths(part: Part, wider: Mapping[int, int]) -> None:
    from lxml import etree

    data = part.root.find("{*}sheetData")
    space = data.tag[: data.tag.index("}") + 1]
    columns = part.root.find("{*}cols")
    if columns is None:
        columns = etree.Element(f"{space}cols")
        data.addprevious(columns)
    rest = dict(wider)
    for element in list(columns):
        first, last = int(element.get("min")), int(element.get("max"))
        numbers = sorted(number for number in rest if first <= number <= last)
        attributes = dict(element.attrib)
        start = first
        for number in numbers:
            if start < number:
                _add_column(columns, space, attributes, start, number - 1)
            _add_column(columns, space, attributes | _show_width(rest.pop(number)), number, number)
            start = number + 1
        if numbers:
            if start <= last:
                _add_column(columns, space, attributes, start, last)
            columns.remove(element)
    for number, width in rest.items():
        _add_column(columns, space, _show_width(width), number, number)
    columns[:] = sorted(columns, key=lambda element: int(element.get("min")))
    part.mark_changed()


def _show_width(width: int) -> dict[str, str]:
    return {"width": str(width), "customWidth": "1"}


def _add_column(columns: Any, space: str, attributes: Mapping[str, str], first: int, last: int) -> None:
    from lxml import etree

    etree.SubElement(columns, f"{space}col", {**attributes, "min": str(first), "max": str(last)})
