"""HTML: text, comments, scripts and attributes form one document; all other characters are kept.

The cells of a table of at least three columns and four rows are treated by column, see :mod:`allonym.files.columns`.
Inline elements do not separate words (``<b>Jane</b> Doe`` is read as one name). All other elements do. Attributes that
nobody reads, scripts and styles are searched by rules, and for names found in the text. Embedded pictures and other
data (``data:`` URIs) become grey pictures.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise, permutations
from urllib.parse import quote, unquote

from allonym.batch import format_lead_in
from allonym.document import PROSE, TECHNICAL
from allonym.errors import DataError, RefusedContent
from allonym.files.pictures import make_grey_data_uri
from allonym.files.record import Chunk, Format, Job, ParsedChunk
from allonym.files.segments import Segment, parse_segments
from allonym.files.sheets import find_table_places
from allonym.policy import Policy
from allonym.text.fold import fold
from allonym.text.words import find_words

_INLINE = (
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr q s samp small span "
    "strike strong sub sup time tt u var wbr"
)
_STRUCTURAL = (
    "class type rel lang xml:lang charset width height colspan rowspan role method enctype target media dir align "
    "valign tabindex http-equiv border cellpadding cellspacing bgcolor color"
)
_OTHERS = (
    "address animate animatemotion animatetransform annotation applet area article aside audio base basefont "
    "bgsound blink blockquote body br button canvas caption center circle clippath col colgroup datalist dd defs "
    "desc details dialog dir discard div dl dt ellipse embed feblend fecolormatrix fecomponenttransfer fecomposite "
    "feconvolvematrix fediffuselighting fedisplacementmap fedistantlight fedropshadow feflood fefunca fefuncb "
    "fefuncg fefuncr fegaussianblur feimage femerge femergenode femorphology feoffset fepointlight "
    "fespecularlighting fespotlight fetile feturbulence fieldset figcaption figure filter footer foreignobject form "
    "frame frameset g h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe image img input keygen legend li line "
    "lineargradient link listing maction main map marker marquee mask math menclose menu menuitem merror meta "
    "metadata meter mfenced mfrac mi mmultiscripts mn mo mover mpadded mpath mphantom mprescripts mroot mrow ms "
    "mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder munderover nav noembed noframes noscript "
    "object ol optgroup option output p param path pattern picture plaintext polygon polyline pre progress "
    "radialgradient rb rect rp rt rtc ruby script search section select semantics set slot source spacer stop style "
    "summary svg switch symbol table tbody td template text textarea textpath tfoot th thead title tr track tspan "
    "ul use video view xml xmp"
)
INLINE = frozenset(_INLINE.split())
ELEMENTS = INLINE | frozenset(_OTHERS.split())
"""Elements of HTML, of today and of old, of SVG and of MathML."""
STRUCTURAL = frozenset(_STRUCTURAL.split())
"""Attributes for the layout or function of a page. All others are anonymised, and of these what is like an address."""

SPOKEN = frozenset(
    "alt title placeholder summary label value content abbr aria-label aria-description data-title".split()
)
"""Attributes that people read. All others are searched by rules, and for what was found in the text."""

REFERENCES = frozenset("href xlink:href data-target data-bs-target usemap".split())
"""Attributes that may refer to an id, after a ``#``."""

_IDS = frozenset(
    "id for class name headers list form itemref aria-labelledby aria-describedby aria-controls aria-owns".split()
)
"""Attributes with ids, or classes, which hold no space."""

_TOKEN = re.compile(
    r"""<!--(?P<comment>.*?)(?:-->|\Z)
    |<!\[CDATA\[(?P<cdata>.*?)(?:\]\]>|\Z)
    |<!DOCTYPE(?P<type>[^>]*)>
    |<\?(?P<pi>.*?)(?:\?>|>|\Z)
    |<(?P<tag>/?[a-zA-Z][^\s/>]*+)(?P<attributes>(?:"[^"]*+"|'[^']*+'|[^'">]++)*+)>""",
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)
_OPENING = re.compile(r"<(?:/|[^\W\d_]|!DOCTYPE)", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""(?<![^\s=/"'<>])([^\s=/"'<>]++)\s*+=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_DATA = re.compile(r"(?i)data:[\w/+.-]+/[\w+.-]+(?:;[\w=.-]+)*,[^\"'\s)<>]*")
_ADDRESS = re.compile(r"(?:://|@|^www\.).")
_PLAIN_TAG = re.compile(r"/?[^\W\d][\w:.-]*")
_PLAIN_NAME = re.compile(r"[@#*:(\[]*[^\W\d][\w:.-]*[)\]]*")
_PLAIN_TYPE = re.compile(
    r"""(?i)<!DOCTYPE\s+[\w:.-]+(?:\s+PUBLIC\s+"-//[\w/ .,+:-]*")?(?:\s+"https?://[\w/.-]*")?\s*>"""
)
_WORD = re.compile(r"[^\s/=]+")
_CAPITALISED = re.compile(r"\b[^\W\d_a-z][a-z]")
_MARKUP = re.compile(r"<[^<>]*>")
_NEIGHBOURS = re.compile(r"([^\W_]+),?\s+(?=([^\W_]+))")
_LEAST_SLUG = 8  # letters of a slug without joints
_CODE = re.compile(r"(?!(?:[^\W\d_a-z][^\W\d_]*[._-]?)+\Z)(?=.*[./+#:=_])[\w./+#:=-]+")
"""A word with signs that names do not have: a file, a media type, a reference."""

_BARE_SELECTOR, _ESCAPED_SELECTOR = re.compile(r"(?<=[.#])([\[<])(\w+)([\]>])"), re.compile(r"\\([\[<])(\w+)\\([\]>])")
_SPACED_TAG, _JOINED_TAG = re.compile(r"<(\w+) (\w+)>"), re.compile(r"<([A-Z][A-Z_]*)_(\d+)>")
_RAW = frozenset(("script", "style"))
MAX_UNCLOSED, MAX_DEPTH = 200, 1000


def _escape_text(text: str) -> str:
    return html.escape(text, quote=False)


def _escape_unquoted_value(text: str) -> str:
    return re.sub(r"[\s`=]", lambda m: f"&#{ord(m.group())};", html.escape(text))


def _write_styles(text: str) -> str:
    """Escape the brackets of tags that became names of classes and ids in selectors."""
    return _BARE_SELECTOR.sub(r"\\\1\2\\\3", _join_tags(text))


def _read_styles(text: str) -> str:
    return _part_tags(_ESCAPED_SELECTOR.sub(r"\1\2\3", text))


def _join_tags(text: str) -> str:
    """Write tags such as ``<PERSON 1>`` without a space."""
    return _SPACED_TAG.sub(r"<\1_\2>", text)


def _escape_id(escape: Callable[[str], str], text: str) -> str:
    return escape(_join_tags(text))


def _part_tags(text: str) -> str:
    return _JOINED_TAG.sub(r"<\1 \2>", text)


def _escape_mailto_link(text: str) -> str:
    return html.escape(quote(text, safe="@:/?&=+[]_,.;!$()*~-"))


def find_html_segments(source: str, policy: Policy) -> list[Segment]:
    """Return the texts of an HTML source: element content first, then attributes.

    Raises:
        DataError: more than ``MAX_UNCLOSED`` tags are not closed.
    """
    attributes: list[Segment] = []
    tables = _Tables()
    content = list(_find_content_segments(source, attributes, tables))
    for grid in tables.list_grids(content):
        for start, place in find_table_places(grid, policy).items():
            is_first = True
            for i in tables.segments[start]:
                segment = content[i]
                lead = format_lead_in(place.name, segment.text) if is_first and segment.text.strip() else ""
                is_first = is_first and not segment.text.strip()
                role = place.role if segment.role == PROSE else segment.role
                content[i] = replace(segment, role=role, before=segment.before + lead)
    return [*content, *attributes]


class _Tables:
    """The tables of a page, as they are read: the cells of their rows, and the segments of each cell, by its place."""

    def __init__(self) -> None:
        self.segments: dict[int, list[int]] = {}
        self._tables: list[list[list[int]]] = []
        self._open: list[list[list[int]]] = []
        self._cells: list[int] = []

    def read_tag(self, tag: str, position: int) -> None:
        """Read a tag in small letters, which ends at this place."""
        if tag == "table":
            self._open.append([])
            self._tables.append(self._open[-1])
            self._cells.append(-1)
        elif tag == "/table" and self._open:
            self._open.pop()
            self._cells.pop()
        elif tag == "tr" and self._open:
            self._open[-1].append([])
            self._cells[-1] = -1
        elif tag in ("td", "th") and self._open and self._open[-1]:
            self._open[-1][-1].append(position)
            self.segments[position] = []
            self._cells[-1] = position
        elif tag in ("/td", "/th", "/tr") and self._open:
            self._cells[-1] = -1

    def add_segment(self, number: int) -> None:
        """Add a segment, by its number, to the cell that is open."""
        if self._cells and self._cells[-1] >= 0:
            self.segments[self._cells[-1]].append(number)

    def list_grids(self, content: Sequence[Segment]) -> Iterator[dict[str, dict[str, tuple[int, str]]]]:
        """Yield the cells of each table by row and column: their places and texts."""
        for table in self._tables:
            yield {
                str(number): {
                    str(column): (cell, "".join(content[i].text for i in self.segments[cell]))
                    for column, cell in enumerate(row)
                }
                for number, row in enumerate(table)
            }


def _make_tokenizer(source: str) -> Callable[[int], re.Match[str] | None]:
    """Return a function that finds the next piece of markup. Each unclosed tag costs a scan of the rest."""
    unclosed = 0

    def find_next_token(position: int) -> re.Match[str] | None:
        nonlocal unclosed
        while (position := source.find("<", position)) >= 0:
            if match := _TOKEN.match(source, position):
                return match
            unclosed += _OPENING.match(source, position) is not None
            if unclosed > MAX_UNCLOSED:
                raise DataError(f"more than {MAX_UNCLOSED} tags are not closed; is a quote left open?")
            position += 1
        return None

    return find_next_token


def _ends_with_address(text: str) -> bool:
    """Whether the last word of a text is an address of a page or a mailbox."""
    return text[-1:].isalnum() and _ADDRESS.search(text.rsplit(None, 1)[-1][:-1]) is not None


def _find_content_segments(source: str, attribute_segments: list[Segment], tables: _Tables) -> Iterator[Segment]:
    """Yield the texts outside tags, add those of attributes to ``attribute_segments``, and note the cells of tables."""
    gap, last_text = "\n", ""
    position = count = 0
    following = _make_tokenizer(source)
    list_joined_words = cache(partial(_join_neighbours, source))
    while position <= len(source):
        match = following(position)
        stop = match.start() if match else len(source)
        if stop > position:
            text = html.unescape(source[position:stop])
            tables.add_segment(count)
            yield Segment(position, stop, text, _escape_text, gap, has_references=True)
            gap, count, last_text = "", count + 1, text
        if match is None:
            return
        position = match.end()
        for name in ("comment", "cdata", "pi"):
            if match[name]:
                yield Segment(*match.span(name), match[name], str, "\n")
                gap, count = "\n", count + 1
        tag = (match["tag"] or "").lower()
        if tag == "/a":
            if _ends_with_address(last_text):
                gap = gap or " "  # what follows is no part of the address that the link shows
            last_text = ""
        if tag.removeprefix("/") not in INLINE:
            gap = "\n"
            tables.read_tag(tag, position)
        attribute_segments.extend(_find_unusual_words(match, is_html=True))
        if match["attributes"]:
            attribute_segments.extend(_find_attribute_segments(source, *match.span("attributes"), list_joined_words))
        if tag in _RAW:
            closing = re.compile(f"</{tag}", re.IGNORECASE).search(source, position)
            stop = closing.start() if closing else len(source)
            if stop > position:
                # A script may hold data; whatever else it is, is code.
                role = PROSE if "json" in (match["attributes"] or "").lower() else TECHNICAL
                read_and_write = (_read_styles, _write_styles) if tag == "style" else (str, str)
                raw = list(_find_raw_segments(source, position, stop, role, *read_and_write))
                yield from raw
                count += len(raw)
            position = stop


def _find_raw_segments(
    source: str,
    start: int,
    end: int,
    role: str,
    read: Callable[[str], str] = str,
    write: Callable[[str], str] = str,
) -> Iterator[Segment]:
    """Yield the source itself, apart from embedded data."""
    for match in _DATA.finditer(source, start, end):
        if match.start() > start:
            yield Segment(start, match.start(), read(source[start : match.start()]), write, "\n", role=role)
        yield Segment(*match.span(), "", fixed=make_grey_data_uri(), role=role)
        start = match.end()
    if start < end:
        yield Segment(start, end, read(source[start:end]), write, "\n", role=role)


def _find_unusual_words(token: re.Match[str], *, is_html: bool = False) -> Iterator[Segment]:
    """Yield what is no plain name in a tag or document type, such as the address in ``<ada@example.com>``.

    In HTML a tag without values that has an unknown name, or capitalised words, is text that somebody forgot to escape:
    ``<Ada Brook>``, ``<Mark Brook>``.
    """
    source = token.string
    if token["type"] and not _PLAIN_TYPE.fullmatch(token[0]):
        yield Segment(*token.span("type"), token["type"], str, "\n", role=TECHNICAL)
    if not token["tag"]:
        return
    (start, position), end = token.span("tag"), token.end("attributes")
    name = token["tag"].removeprefix("/").lower()
    is_known = name in ELEMENTS and not _CAPITALISED.search(token["attributes"])
    if is_html and not is_known and not set(name) & set(":-") and "=" not in token["attributes"]:
        yield Segment(start, end, source[start:end], str, "\n")
        return
    if not _PLAIN_TAG.fullmatch(token["tag"]):
        yield Segment(start, position, token["tag"], str, "\n", role=TECHNICAL)
    pieces = []
    for attribute in _ATTRIBUTE.finditer(source, position, end):
        pieces.append((position, attribute.end(1)))
        position = attribute.end()
    for a, b in (*pieces, (position, end)):
        for word in _WORD.finditer(source, a, b):
            if not _PLAIN_NAME.fullmatch(word[0]):
                yield Segment(*word.span(), word[0], str, " ", role=TECHNICAL)


def _find_attribute_segments(
    source: str, start: int, end: int, list_joined_words: Callable[[], Set[str]]
) -> Iterator[Segment]:
    for match in _ATTRIBUTE.finditer(source, start, end):
        name = match[1].lower()
        a, b, escape = _locate_attribute_value(match)
        is_structural = name in STRUCTURAL or name.startswith("xmlns")
        if a == b or (is_structural and not _may_identify(html.unescape(source[a:b]), list_joined_words)):
            continue
        if source.startswith("#", a, b - 1) and name in REFERENCES:
            a += 1  # what follows is an id, and is read like one
            name = "id"
        value = html.unescape(source[a:b])
        if name in _IDS:
            yield Segment(a, b, _part_tags(value), partial(_escape_id, escape), role=TECHNICAL)
        elif value.lstrip()[:5].lower() == "data:" and "," in value:
            yield Segment(a, b, "", fixed=make_grey_data_uri(), role=TECHNICAL)
        elif _DATA.search(source, a, b):
            yield from _find_raw_segments(source, a, b, TECHNICAL)
        elif value[:7].lower() == "mailto:":
            yield Segment(a, b, unquote(value), _escape_mailto_link, role=TECHNICAL)
        else:
            role = PROSE if name in SPOKEN else TECHNICAL
            yield Segment(a, b, value, escape, role=role, has_references=True)


def _may_identify(value: str, list_joined_words: Callable[[], Set[str]]) -> bool:
    """Tell whether the value of a structural attribute may hold an address, a tag, or a slug of a name.

    A slug has two words that are neighbours in the source: ``ada-brook``, ``brook_ada`` or ``adabrook``, Ada Brook.
    """
    if not set("@[<").isdisjoint(value):
        return True
    words = find_words(fold(value))
    slugs = {a + b for pair in pairwise(words) for a, b in permutations(pair)}
    slugs.update(word for word in words if len(word) >= _LEAST_SLUG)
    return bool(slugs) and not list_joined_words().isdisjoint(slugs)


def _join_neighbours(source: str) -> Set[str]:
    """List each two words that are neighbours in the source, or in its text without tags, folded and as one word."""
    texts = (source, _MARKUP.sub(" ", source))
    return {a + b for text in texts for a, b in _NEIGHBOURS.findall(fold(html.unescape(text)))}


def _locate_attribute_value(attribute: re.Match[str]) -> tuple[int, int, Callable[[str], str]]:
    """Return the half-open offsets of an attribute's value, and the function that escapes another in its place."""
    is_quoted = attribute[4] is None
    return *attribute.span(attribute.lastindex or 4), html.escape if is_quoted else _escape_unquoted_value


def find_xml_values(source: str) -> Iterator[tuple[tuple[str, ...], Segment]]:
    """Yield the texts of elements and attributes of an XML source, each with its path, and comments without one.

    Raises:
        DataError: more than ``MAX_UNCLOSED`` tags are not closed.
        RefusedContent: its document type declares entities, or more than ``MAX_DEPTH`` elements are open at once.
    """
    path: list[str] = []
    position = first_tag = 0
    following = _make_tokenizer(source)
    while position < len(source):
        match = following(position)
        stop = match.start() if match else len(source)
        text = source[position:stop]
        if text.strip():
            yield tuple(path), Segment(position, stop, html.unescape(text), _escape_text, has_references=True)
        if match is None:
            return
        position = match.end()
        if match[0].startswith("<!DOCTYPE") and position > first_tag:
            first_tag = _find_first_tag(source, position)
            if "<!ENTITY" in source[match.start() : first_tag]:
                raise RefusedContent("an XML file whose document type declares entities cannot be treated")
        for name in ("comment", "cdata", "pi"):
            inside = match[name] or ""
            is_declaration = name == "pi" and inside.startswith("xml ") and "@" not in inside
            if inside and not is_declaration:
                where = tuple(path) if name == "cdata" else ()
                yield where, Segment(*match.span(name), match[name], str, role=TECHNICAL if name == "pi" else PROSE)
        yield from (((), segment) for segment in _find_unusual_words(match))
        tag = match["tag"] or ""
        local = tag.rpartition(":")[2]
        if tag.startswith("/"):
            del path[-1:]
        elif tag:
            for attribute in _ATTRIBUTE.finditer(source, *match.span("attributes")):
                a, b, escape = _locate_attribute_value(attribute)
                name = attribute[1]
                new = html.unescape(source[a:b])
                is_structural = name in ("xmlns", "xml:lang", "xml:space") or name.startswith("xmlns:")
                if a < b and (not is_structural or "@" in new):
                    keys = (*path, local, name.rpartition(":")[2])
                    is_technical = is_structural or name.startswith(("xml:", "xsi:")) or _CODE.fullmatch(new)
                    role = TECHNICAL if is_technical else PROSE
                    yield keys, Segment(a, b, new, escape, role=role, has_references=True)
            if not match[0].endswith("/>"):
                path.append(local)
                if len(path) > MAX_DEPTH:
                    raise RefusedContent(f"more than {MAX_DEPTH} elements of XML are open at once")


def _find_first_tag(source: str, position: int) -> int:
    match = re.compile(r"<[^\W\d]").search(source, position)
    return match.start() if match else len(source)


def _parse_html(chunk: Chunk, job: Job) -> ParsedChunk:
    return parse_segments(chunk, job, partial(find_html_segments, policy=job.policy), is_markup=True)


HTML = Format("html", _parse_html)
