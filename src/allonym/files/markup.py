"""HTML: text, comments, scripts and attributes are one document; all other characters stay as they are.

Inline elements do not part words (``<b>Jane</b> Doe`` is read as one name), other elements do.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from urllib.parse import quote, unquote

from allonym.errors import DataError, RefusedContent
from allonym.files.encoding import decode
from allonym.files.fields import safe
from allonym.files.record import Chunk, Draft, Format, Job, Parsed
from allonym.files.segments import Segment, same, splice, to_document

_INLINE = (
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr q s samp small span "
    "strike strong sub sup time tt u var wbr"
)
_STRUCTURAL = (
    "class type rel lang xml:lang charset width height colspan rowspan role method enctype target media dir align "
    "valign tabindex http-equiv border cellpadding cellspacing bgcolor color"
)
INLINE = frozenset(_INLINE.split())
STRUCTURAL = frozenset(_STRUCTURAL.split())
"""Attributes that say how a page looks or works and nothing about anybody. All others are treated."""

_TOKEN = re.compile(
    r"""<!--(?P<comment>.*?)(?:-->|\Z)
    |<!\[CDATA\[(?P<cdata>.*?)(?:\]\]>|\Z)
    |<!DOCTYPE[^>]*>
    |<\?(?P<pi>.*?)(?:\?>|>|\Z)
    |<(?P<tag>/?[a-zA-Z][^\s/>]*)(?P<attributes>(?:"[^"]*"|'[^']*'|[^'">])*)>""",
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)
_ATTRIBUTE = re.compile(r"""([^\s=/"'<>]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_RAW = frozenset(("script", "style"))
MAX_UNCLOSED = 200


def _text(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _value(text: str) -> str:
    return _text(text).replace('"', "&quot;").replace("'", "&#x27;")


def _bare_value(text: str) -> str:
    return re.sub(r"[\s`=]", lambda m: f"&#{ord(m.group())};", _value(text))


def _link(text: str) -> str:
    return _value(quote(text, safe="@:/?&=+[]_,.;!$()*~-"))


def segments(source: str) -> list[Segment]:
    """The texts of an HTML source: what is read first, then attributes.

    Raises:
        RefusedContent: it embeds data, such as an image.
        DataError: more than ``MAX_UNCLOSED`` tags never close.
    """
    attributes: list[Segment] = []
    return [*_walk(source, attributes), *attributes]


def _tokens(source: str) -> Callable[[int], re.Match[str] | None]:
    """A function that finds the next piece of markup. Each tag that never closes costs a look at all that follows."""
    unclosed = 0

    def following(at: int) -> re.Match[str] | None:
        nonlocal unclosed
        while (at := source.find("<", at)) >= 0:
            if match := _TOKEN.match(source, at):
                return match
            unclosed += source[at + 1 : at + 2].isalpha() or source[at + 1 : at + 2] == "/"
            if unclosed > MAX_UNCLOSED:
                raise DataError(f"more than {MAX_UNCLOSED} tags never close; is a quote left open?")
            at += 1
        return None

    return following


def _walk(source: str, attributes: list[Segment]) -> Iterator[Segment]:
    gap = "\n"
    at = 0
    following = _tokens(source)
    while at <= len(source):
        match = following(at)
        stop = match.start() if match else len(source)
        if stop > at:
            yield Segment(at, stop, html.unescape(source[at:stop]), _text, gap)
            gap = ""
        if match is None:
            return
        at = match.end()
        for name in ("comment", "cdata", "pi"):
            if match[name]:
                yield Segment(*match.span(name), match[name], same, "\n")
                gap = "\n"
        tag = (match["tag"] or "").lower()
        if tag.removeprefix("/") not in INLINE:
            gap = "\n"
        if match["attributes"]:
            attributes.extend(_attributes(source, *match.span("attributes")))
        if tag in _RAW:
            closing = re.compile(f"</{tag}", re.IGNORECASE).search(source, at)
            stop = closing.start() if closing else len(source)
            if stop > at:
                yield Segment(at, stop, source[at:stop], same, "\n")
            at = stop


def _attributes(source: str, start: int, end: int) -> Iterator[Segment]:
    for match in _ATTRIBUTE.finditer(source, start, end):
        name = match[1].lower()
        which = 2 if match[2] is not None else 3 if match[3] is not None else 4
        a, b = match.span(which)
        if a == b or name in STRUCTURAL or name.startswith("xmlns"):
            continue
        value = html.unescape(source[a:b])
        if value[:5].lower() == "data:" and "," in value:
            raise RefusedContent(f"embedded data in the attribute {safe(name)} of an element cannot be treated yet")
        if value[:7].lower() == "mailto:":
            yield Segment(a, b, unquote(value), _link)
        else:
            yield Segment(a, b, value, _value if which < 4 else _bare_value)


def _parse(chunk: Chunk, job: Job) -> Parsed:
    text, encoding = decode(chunk.data)
    found = segments(text)

    def render(parts: tuple[str, ...]) -> bytes:
        return encoding.mark + encoding.encode(splice(text, found, parts if found else ()))

    return Parsed([Draft(to_document(found), render)])


HTML = Format("html", _parse)
