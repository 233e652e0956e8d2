"""A page as one HTML file that loads nothing: styles, script and pictures are inside.

Everything that comes from data is escaped by the templates. A content security policy allows the page's own style and
script by their digests and nothing else, so that not even a slip could run or load what somebody put into a text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import count
from typing import TYPE_CHECKING

from allonym.report.bars import draw_bars
from allonym.report.bubbles import LEVELS, draw_bubbles, find_darkness_step
from allonym.report.charts import draw_chart
from allonym.report.numbers import format_cell, format_number, list_digits, list_methods
from allonym.report.page import Block, Key, Mark, Page, Reader, Section
from allonym.report.pages import embed_resources, load_templates, read_resource
from allonym.report.plots import Bars, Bubbles, Chart
from allonym.report.svg import draw_shape, draw_tag, name_colour

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


def html(page: Page) -> str:
    """Draw the page as HTML. The same page gives the same bytes.

    Raises:
        MissingExtra: Jinja2 is not installed.
    """
    environment = _load_environment()
    anchors = _assign_anchors(page)
    numbers = count(1)
    macros: dict[str, Callable[[Block, int], Markup]] = {}

    def draw_block(block: Block, level: int = 2) -> Markup:
        return macros[block.kind](block, level)

    context = {"draw": draw_block, "ident": lambda: f"b{next(numbers)}", "anchor": lambda section: anchors[id(section)]}
    module = environment.get_template("blocks.html").make_module(context)
    macros |= {name: getattr(module, f"draw_{name}") for name in _list_block_kinds()}
    return environment.get_template("page.html").render(
        **context,
        page=page,
        footer=page.footer or _write_footer(),
        **embed_resources(read_resource("templates/style.css"), read_resource("templates/page.js")),
    )


def split_passage(text: str, marks: Sequence[Mark]) -> Iterator[tuple[str, Mark | None]]:
    """Yield a passage split at its marks; marks that reach beyond the text or into one another are cut short."""
    position = 0
    for mark in sorted(marks, key=lambda m: (m.start, m.end)):
        start, end = max(position, min(mark.start, len(text))), min(mark.end, len(text))
        if end <= start:
            continue
        if start > position:
            yield text[position:start], None
        yield text[start:end], mark
        position = end
    if position < len(text):
        yield text[position:], None


def list_series(charts: Sequence[Chart]) -> list[Key]:
    """List the series of charts, each once, in the order of their slots."""
    keys = {(s.slot, s.name): Key(s.name, s.slot) for c in charts for s in c.series if s.name}
    return [keys[k] for k in sorted(keys)]


def list_filters(reader: Reader) -> list[tuple[str, list[str]]]:
    """List the reader's filters: trait to its values, numbers by size; traits with one value are left out."""
    out: dict[str, dict[str, None]] = {}
    for passage in reader.passages:
        for name, value in passage.traits.items():
            out.setdefault(name, {})[value] = None
    return [(name, sorted(values, key=_make_natural_sort_key)) for name, values in out.items() if len(values) > 1]


def list_orders(reader: Reader) -> list[str]:
    """List what the reader's passages can be sorted by."""
    return list(dict.fromkeys(name for p in reader.passages for name in p.orders))


@cache
def _load_environment() -> Environment:
    environment = load_templates("allonym.report", "the HTML report", "swap")
    from markupsafe import Markup

    def draw_picture(block: Block, ident: str) -> Markup:
        if isinstance(block, Chart):
            return Markup(draw_chart(block, ident))
        if isinstance(block, Bars):
            return Markup(draw_bars(block, ident))
        assert isinstance(block, Bubbles)
        return Markup(draw_bubbles(block, ident))

    def draw_swatch(slot: int) -> Markup:
        drawing = draw_tag("path", d=draw_shape(slot, 7, 7, 4.6), class_=f"mark {name_colour(slot)}")
        return Markup(draw_tag("svg", drawing, class_="swatch", viewBox="0 0 14 14", aria_hidden="true"))

    environment.globals |= {
        "picture": draw_picture,
        "swatch": draw_swatch,
        "show": format_cell,
        "write": format_number,
        "step": find_darkness_step,
        "steps": range(1, LEVELS + 1),
        "legend": list_series,
        "digits": list_digits,
        "methods": list_methods,
        "exactly": lambda value: f"{value:.12g}",
        "pieces": split_passage,
        "choices": list_filters,
        "orders": list_orders,
        "compact": lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")),
        "is_key": lambda v: isinstance(v, Key),
        "is_tag": lambda v: hasattr(v, "tone"),
    }
    return environment


def _list_block_kinds() -> list[str]:
    kinds, waiting = [], [Block]
    while waiting:
        kind = waiting.pop(0)
        waiting += kind.__subclasses__()
        kinds += [kind.kind] if kind.kind else []
    return kinds


def _assign_anchors(page: Page) -> dict[int, str]:
    names: set[str] = set()
    out = {}
    for block in page.blocks():
        if isinstance(block, Section):
            letters = "".join(c if c.isascii() and c.isalnum() else "-" for c in (block.anchor or block.title).lower())
            name = stem = "-".join(filter(None, letters.split("-"))) or "section"
            tries = count(2)
            while name in names:
                name = f"{stem}-{next(tries)}"
            names.add(name)
            out[id(block)] = name
    return out


def _write_footer() -> str:
    from allonym import __version__

    return (
        f"Made by allonym {__version__}. This file holds everything it shows and asks no other computer for anything."
    )


def _make_natural_sort_key(value: str) -> tuple[int, float, str]:
    digits = value.replace(".", "", 1)
    return (0, float(value), "") if digits.isascii() and digits.isdigit() else (1, 0.0, value)
