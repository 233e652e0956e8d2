"""A page as one HTML file that loads nothing: styles, script and pictures are inside.

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
from typing import TYPE_CHECKING, Any

from allonym.errors import MissingExtra
from allonym.report.charts import LEVELS, draw_bars, draw_bubbles, draw_chart, find_darkness_step
from allonym.report.page import Bars, Block, Bubbles, Chart, Key, Mark, Page, Reader, Section
from allonym.report.svg import draw_element, draw_mark_outline, get_colour_class
from allonym.report.values import format_cell, format_number, list_column_decimals, list_column_methods
from allonym.text.controls import escape_controls

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
    macros |= {name.removeprefix("draw_"): macro for name, macro in vars(module).items()}
    return environment.get_template("page.html").render(
        **context,
        page=page,
        footer=page.footer or _write_footer(),
        **make_style_and_script_values(read_resource("templates/style.css"), read_resource("templates/page.js")),
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


def list_series_keys(charts: Sequence[Chart]) -> list[Key]:
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


def list_sort_keys(reader: Reader) -> list[str]:
    """List what the reader's passages can be sorted by."""
    return list(dict.fromkeys(name for p in reader.passages for name in p.orders))


@cache
def _load_environment() -> Environment:
    environment = load_template_environment("allonym.report", "the HTML report", "swap")
    from markupsafe import Markup

    pictures: dict[type[Block], Callable[[Any, str], str]] = {Chart: draw_chart, Bars: draw_bars, Bubbles: draw_bubbles}

    def draw_picture(block: Block, ident: str) -> Markup:
        return Markup(pictures[type(block)](block, ident))

    def draw_swatch(slot: int) -> Markup:
        drawing = draw_element("path", d=draw_mark_outline(slot, 7, 7, 4.6), class_=f"mark {get_colour_class(slot)}")
        return Markup(draw_element("svg", drawing, class_="swatch", viewBox="0 0 14 14", aria_hidden="true"))

    environment.globals |= {
        "picture": draw_picture,
        "swatch": draw_swatch,
        "show": format_cell,
        "write": format_number,
        "step": find_darkness_step,
        "steps": range(1, LEVELS + 1),
        "legend": list_series_keys,
        "digits": list_column_decimals,
        "methods": list_column_methods,
        "exactly": lambda value: f"{value:.12g}",
        "pieces": split_passage,
        "choices": list_filters,
        "orders": list_sort_keys,
        "compact": lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")),
        "is_key": lambda v: isinstance(v, Key),
        "is_tag": lambda v: hasattr(v, "tone"),
    }
    return environment


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


def load_template_environment(package: str, needed_for: str, extra: str) -> Environment:
    """The Jinja2 environment of the folder ``templates`` of a package; it escapes whatever templates are given.

    Raises:
        MissingExtra: Jinja2 is not installed.
    """
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
        from markupsafe import Markup
    except ImportError as error:
        raise MissingExtra(needed_for, extra) from error
    environment = Environment(
        loader=PackageLoader(package, "templates"),
        autoescape=True,
        finalize=lambda value: escape_controls(value, lines=True) if type(value) is str else value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals["safe"] = Markup
    return environment


@cache
def read_resource(path: str) -> str:
    """A file of the package ``allonym.report``."""
    return files("allonym").joinpath("report", *path.split("/")).read_text(encoding="utf-8")


def make_style_and_script_values(style: str, script: str) -> dict[str, str]:
    """What a template needs to hold a style and a script: both as they are, and the policy that allows them."""
    from markupsafe import Markup

    return {"style": Markup(style), "script": Markup(script), "policy": write_content_security_policy(style, script)}


def write_content_security_policy(style: str, script: str = "") -> str:
    """A content security policy that allows a style and a script by their digests, and nothing else."""
    allowed = f"script-src {_format_csp_hash(script)}; " if script else ""
    return f"default-src 'none'; style-src {_format_csp_hash(style)}; {allowed}base-uri 'none'; form-action 'none'"


def _format_csp_hash(content: str) -> str:
    return f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'"
