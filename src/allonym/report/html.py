"""A page as one HTML file that asks nobody for anything: styles, script and pictures are inside.

Everything that comes from data is escaped by the templates. A content security policy allows the page's own style and
script by their digests and nothing else, so that not even a slip could run or load what somebody put into a text.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from itertools import count
from typing import TYPE_CHECKING

from allonym.errors import MissingExtra
from allonym.report.bars import bars_svg
from allonym.report.bubbles import LEVELS, bubbles_svg, step
from allonym.report.charts import chart_svg
from allonym.report.numbers import column_digits, methods, show, write
from allonym.report.page import Block, Key, Mark, Page, Reader, Section
from allonym.report.plots import Bars, Bubbles, Chart
from allonym.report.svg import colour, shape, tag

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


def html(page: Page) -> str:
    """The page as HTML. The same page gives the same bytes.

    Raises:
        MissingExtra: Jinja2 is not installed.
    """
    environment = _environment()
    anchors = _anchors(page)
    numbers = count(1)
    macros: dict[str, Callable[[Block, int], Markup]] = {}

    def draw(block: Block, level: int = 2) -> Markup:
        return macros[block.kind](block, level)

    own = {"draw": draw, "ident": lambda: f"b{next(numbers)}", "anchor": lambda section: anchors[id(section)]}
    module = environment.get_template("blocks.html").make_module(own)
    macros |= {name: getattr(module, f"draw_{name}") for name in _kinds()}
    style, script = _resource("style.css"), _resource("page.js")
    safe = environment.globals["safe"]
    return environment.get_template("page.html").render(
        **own,
        page=page,
        footer=page.footer or _footer(),
        style=safe(style),  # type: ignore[operator]
        script=safe(script),  # type: ignore[operator]
        policy=f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; "
        "base-uri 'none'; form-action 'none'",
    )


def pieces(text: str, marks: Sequence[Mark]) -> Iterator[tuple[str, Mark | None]]:
    """A passage cut at its marks; marks that reach beyond the text or into one another are cut short."""
    at = 0
    for mark in sorted(marks, key=lambda m: (m.start, m.end)):
        start, end = max(at, min(mark.start, len(text))), min(mark.end, len(text))
        if end <= start:
            continue
        if start > at:
            yield text[at:start], None
        yield text[start:end], mark
        at = end
    if at < len(text):
        yield text[at:], None


def legend(charts: Sequence[Chart]) -> list[Key]:
    """The series of charts, each once, in the order of their slots."""
    seen = {(s.slot, s.name): Key(s.name, s.slot) for c in charts for s in c.series if s.name}
    return [seen[k] for k in sorted(seen)]


def choices(reader: Reader) -> list[tuple[str, list[str]]]:
    """The reader's filters: trait to its values, numbers by size, values that do not choose left out."""
    out: dict[str, dict[str, None]] = {}
    for passage in reader.passages:
        for name, value in passage.traits.items():
            out.setdefault(name, {})[value] = None
    return [(name, sorted(values, key=_natural)) for name, values in out.items() if len(values) > 1]


def orders(reader: Reader) -> list[str]:
    """What the reader's passages can be sorted by."""
    return list(dict.fromkeys(name for p in reader.passages for name in p.orders))


@cache
def _environment() -> Environment:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
        from markupsafe import Markup
    except ImportError as error:
        raise MissingExtra("the HTML report", "swap") from error
    environment = Environment(
        loader=PackageLoader("allonym.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )

    def picture(block: Block, ident: str) -> Markup:
        if isinstance(block, Chart):
            return Markup(chart_svg(block, ident))
        if isinstance(block, Bars):
            return Markup(bars_svg(block, ident))
        assert isinstance(block, Bubbles)
        return Markup(bubbles_svg(block, ident))

    def swatch(slot: int) -> Markup:
        drawing = tag("path", d=shape(slot, 7, 7, 4.6), class_=f"mark {colour(slot)}")
        return Markup(tag("svg", drawing, class_="swatch", viewBox="0 0 14 14", aria_hidden="true"))

    environment.globals |= {
        "safe": Markup,
        "picture": picture,
        "swatch": swatch,
        "show": show,
        "write": write,
        "step": step,
        "steps": range(1, LEVELS + 1),
        "legend": legend,
        "digits": column_digits,
        "methods": methods,
        "exactly": lambda value: f"{value:.12g}",
        "pieces": pieces,
        "choices": choices,
        "orders": orders,
        "compact": lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")),
        "is_key": lambda v: isinstance(v, Key),
        "is_tag": lambda v: hasattr(v, "tone"),
    }
    return environment


def _kinds() -> list[str]:
    found, waiting = [], [Block]
    while waiting:
        kind = waiting.pop(0)
        waiting += kind.__subclasses__()
        found += [kind.kind] if kind.kind else []
    return found


def _anchors(page: Page) -> dict[int, str]:
    taken: set[str] = set()
    out = {}
    for block in page.blocks():
        if isinstance(block, Section):
            letters = "".join(c if c.isascii() and c.isalnum() else "-" for c in (block.anchor or block.title).lower())
            name = stem = "-".join(filter(None, letters.split("-"))) or "section"
            tries = count(2)
            while name in taken:
                name = f"{stem}-{next(tries)}"
            taken.add(name)
            out[id(block)] = name
    return out


@cache
def _resource(name: str) -> str:
    return files("allonym").joinpath("report", "templates", name).read_text(encoding="utf-8")


def _digest(content: str) -> str:
    return f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'"


def _footer() -> str:
    from allonym import __version__

    return (
        f"Made by allonym {__version__}. This file holds everything it shows and asks no other computer for anything."
    )


def _natural(value: str) -> tuple[int, float, str]:
    digits = value.replace(".", "", 1)
    return (0, float(value), "") if digits.isascii() and digits.isdigit() else (1, 0.0, value)
