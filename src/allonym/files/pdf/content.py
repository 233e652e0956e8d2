"""Interpret content streams: every character with its text, its position on the page and its bytes in the stream."""

from __future__ import annotations

import math
import pickle
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

import pikepdf

from allonym.errors import AllonymError, RefusedContent, hide_foreign_errors
from allonym.files.pdf.fonts import Font, read_font
from allonym.files.pdf.objects import MAX_DEPTH, get_object_key

MAX_STEPS = 5_000_000
"""Greatest number of operators and characters of a file, since forms that call forms may grow without end."""

MIN_EDGE = 6.0
"""Least length of a vertical line that may be the edge of a frame, in the page's units."""

SHOWING = frozenset(("Tj", "TJ", "'", '"'))
_PAINTING = frozenset(("f", "F", "f*", "B", "B*", "b", "b*", "S", "s"))
_PATH = {"m": 2, "l": 2, "re": 4}
"""Operators that draw lines and boxes, and their numbers of operands."""

_COLOURING = frozenset("g rg k cs sc scn".split())
"""Operators that may be wrong without any harm to the text."""

_FOREIGN_ERRORS = (pikepdf.PdfError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError)
_UNREADABLE = "has unreadable content or an unreadable font"
_TEXT_STATE = {"Tc": "char", "Tw": "word", "TL": "leading", "Ts": "rise"}
"""Operators that set one number of the text state."""

_COLOURS = (1, 3, 4)


@dataclass(frozen=True, slots=True)
class Setting:
    """The text state: the font's name in the resources, its size, the spacings, and the horizontal scale."""

    font: str
    size: float
    char: float
    word: float
    scale: float


GlyphPlace = tuple[Any, int, int, int]
"""Where the bytes of a character begin: stream, operator, string and offset."""


@dataclass(slots=True, eq=False)
class Glyph:
    """A character as it is drawn.

    Attributes:
        text: its text; None if unknown.
        stream, op, item, start, end: its bytes: the stream's key, the operator, the string, the offsets in it.
        back: the number that replaces it in a TJ array, so that later text keeps its position.
        x, y: its origin, in the page's units; ``dx``, ``dy``: from there to the origin of the next one.
        ux, uy: the upward vector, as long as the font's height.
        page: from 0.
        plane: ``""`` for visible text, else the layer's key or ``invisible``.
        style: the most similar standard font.
        colour: operands and operator of its colour; None if it is not a simple one.
        span: number of its /ActualText; -1: none.
        setting: its text state; None if it has no names, or lines are vertical.
    """

    text: str | None = field(repr=False)
    stream: Any
    op: int
    item: int
    start: int
    end: int
    back: float
    x: float
    y: float
    dx: float
    dy: float
    ux: float
    uy: float
    page: int
    plane: str
    style: str
    colour: tuple[float, ...] | None
    span: int
    setting: Setting | None = None

    @property
    def place(self) -> GlyphPlace:
        """Where its bytes begin."""
        return self.stream, self.op, self.item, self.start

    @property
    def size(self) -> float:
        """The font's height in the page's units."""
        return math.hypot(self.ux, self.uy)

    @property
    def width(self) -> float:
        """Its advance in the page's units."""
        return math.hypot(self.dx, self.dy)

    @property
    def angle(self) -> float:
        """The direction of its line, in radians; without a width, as of some spaces, by the upward vector."""
        return math.atan2(self.dy, self.dx) if self.width > 1e-6 else math.atan2(self.uy, self.ux) - math.pi / 2


@dataclass(frozen=True, slots=True)
class Picture:
    """An image: it is drawn on the unit square under ``matrix``; what lies below it may be seen through it."""

    page: int
    matrix: pikepdf.Matrix
    stream: Any
    op: int
    is_transparent: bool = False

    def box(self) -> tuple[float, float, float, float]:
        """Left, bottom, right and top."""
        a, b, c, d, e, f = self.matrix.shorthand
        xs, ys = (e, e + a, e + c, e + a + c), (f, f + b, f + d, f + b + d)
        return min(xs), min(ys), max(xs), max(ys)


@dataclass(frozen=True, slots=True)
class Edge:
    """A vertical line or side of a box on a page: its place, and its lower and upper end."""

    x: float
    low: float
    high: float


@dataclass(slots=True)
class ContentStream:
    """A content stream: its object (None for a page), its operators, and its resources."""

    thing: Any
    ops: list[Any]
    resources: Any


@dataclass(slots=True)
class _State:
    ctm: pikepdf.Matrix = field(default_factory=pikepdf.Matrix)
    font: Font | None = None
    name: str = ""
    size: float = 0.0
    char: float = 0.0
    word: float = 0.0
    scale: float = 1.0
    leading: float = 0.0
    rise: float = 0.0
    mode: int = 0
    colour: tuple[float, ...] | None = (0.0,)
    space: str = "/DeviceGray"


_get_row = attrgetter(*Glyph.__slots__)


def pack_glyphs(glyphs: Sequence[Glyph]) -> bytes:
    """Return characters as few bytes: a file has one for each letter of its text."""
    return zlib.compress(pickle.dumps(list(zip(*map(_get_row, glyphs), strict=True)), pickle.HIGHEST_PROTOCOL), 1)


def unpack_glyphs(data: bytes) -> list[Glyph]:
    """Return the characters that :func:`pack_glyphs` packed."""
    return [Glyph(*row) for row in zip(*pickle.loads(zlib.decompress(data)), strict=True)]


class Content:
    """The content of the pages of a file.

    Attributes:
        forms: the content streams that are not those of pages, by key.
        pictures: the images.
        spans: the /ActualText of marked content, by number.
        shapes: number of lines and areas on each page.
        edges: the vertical edges on each page: of frames, columns of tables, areas.
        shown, unseen: number of letters and digits, or signs of an unknown text, on each page.
        unread: the pages with text that cannot be read as such, each with the reason.
    """

    def __init__(self, pdf: Any, hidden: frozenset[tuple[int, int]]) -> None:
        self.pdf = pdf
        self.forms: dict[Any, ContentStream] = {}
        self.pictures: list[Picture] = []
        self.spans: list[str] = []
        self.shapes: Counter[int] = Counter()
        self.edges: dict[int, list[Edge]] = defaultdict(list)
        self.shown: Counter[int] = Counter()
        self.unseen: Counter[int] = Counter()
        self.unread: dict[int, str] = {}
        self._hidden = hidden
        self._fonts: dict[tuple[int, int], tuple[Font, bool]] = {}
        self._steps = 0
        self._page = 0
        self._glyphs: list[Glyph] = []
        self._drawn: set[Any] = set()
        self._beside: list[tuple[int, Any]] = []

    def read_pages(self) -> Iterator[tuple[int, list[Glyph]]]:
        """Yield the number of each page, once, and its characters in the order in which they are drawn.

        Pages with streams that may be drawn on a later page come last.
        """
        parts: dict[int, list[bytes]] = {}
        for number, page in enumerate(self.pdf.pages):
            before = len(self._beside)
            glyphs = self._call_or_refuse_page(number, self._read_page, page)
            if len(self._beside) > before:
                parts[number] = [pack_glyphs(glyphs)]
            else:
                yield number, glyphs
        while self._beside:
            number, resources = self._beside.pop()
            parts[number].append(pack_glyphs(self._call_or_refuse_page(number, self._read_undrawn_streams, resources)))
        for number in parts:
            yield number, [glyph for data in parts[number] for glyph in unpack_glyphs(data)]

    def read_page_stream(self, number: int) -> ContentStream:
        """Return the content stream of a page."""
        page = self.pdf.pages[number]
        resources = page.obj.get("/Resources")
        if resources is None:
            resources = page.resources
        return ContentStream(None, list(pikepdf.parse_content_stream(page)), resources)

    def _read_page(self, page: Any) -> None:
        source, before = self.read_page_stream(self._page), len(self._beside)
        self._interpret_stream(("page", self._page), source, _State(), "", ())
        beside = [*self._beside[before:], (self._page, source.resources)]
        self._beside[before:] = (b for b in beside if next(self._list_undrawn_streams(b[1]), None) is not None)

    def _list_undrawn_streams(self, resources: Any) -> Iterator[Any]:
        return (thing for thing in _list_resource_streams(resources) if get_object_key(thing) not in self._drawn)

    def _read_undrawn_streams(self, resources: Any) -> None:
        """Read patterns, masks and forms that no operator names, since they may contain text."""
        for thing in self._list_undrawn_streams(resources):
            self._interpret_form(thing, resources, _State(), "invisible", ())

    def _call_or_refuse_page(self, page: int, read: Any, argument: Any) -> list[Glyph]:
        """Call a function that reads something on a page, and return the characters that it adds."""
        self._page, self._glyphs = page, []
        message = f"page {page + 1} {_UNREADABLE}"
        with hide_foreign_errors(message, *_FOREIGN_ERRORS, error=RefusedContent):
            read(argument)
        letters = [glyph for glyph in self._glyphs if glyph.text is None or glyph.text.isalnum()]
        self.unseen[page] += (unseen := sum(bool(glyph.plane) for glyph in letters))
        self.shown[page] += len(letters) - unseen
        return self._glyphs

    # Running

    def _interpret_stream(
        self, key: Any, source: ContentStream, state: _State, plane: str, outer_keys: tuple[Any, ...]
    ) -> None:
        resources = source.resources
        stack: list[_State] = []
        marks: list[tuple[str, int]] = []
        tm = line = pikepdf.Matrix()
        point = (0.0, 0.0)
        span = -1
        for index, instruction in enumerate(source.ops):
            self._count_and_limit_steps(1)
            if isinstance(instruction, pikepdf.ContentStreamInlineImage):
                self.pictures.append(Picture(self._page, state.ctm, key, index))
                continue
            args, op = instruction.operands, str(instruction.operator)
            try:
                if op == "q":
                    stack.append(replace(state))
                elif op == "Q":
                    if stack:
                        state = stack.pop()
                elif op == "cm":
                    state.ctm = _read_matrix(args) @ state.ctm
                elif op == "BT":
                    tm = line = pikepdf.Matrix()
                elif op == "Tf":
                    state.name, state.size = str(args[0]), float(args[1])
                    state.font = self._load_font_or_none(resources, state.name)
                elif op in _TEXT_STATE:
                    setattr(state, _TEXT_STATE[op], float(args[0]))
                elif op == "Tz":
                    state.scale = float(args[0]) / 100
                elif op == "Tr":
                    state.mode = int(args[0])
                elif op == "Tm":
                    tm = line = _read_matrix(args)
                elif op in ("Td", "TD"):
                    if op == "TD":
                        state.leading = -float(args[1])
                    tm = line = line.translated(float(args[0]), float(args[1]))
                elif op == "T*":
                    tm = line = line.translated(0, -state.leading)
                elif op in SHOWING:
                    if op in ("'", '"'):
                        tm = line = line.translated(0, -state.leading)
                        if op == '"':
                            state.word, state.char = float(args[0]), float(args[1])
                    tm = self._add_shown_glyphs(args[-1], (key, index), state, tm, plane, span)
                elif op == "gs":
                    self._apply_graphics_state_font(args[0], resources, state)
                elif op in ("g", "rg", "k"):
                    state.colour = tuple(float(a) for a in args)
                elif op in ("cs", "sc", "scn"):
                    _set_colour(op, args, resources, state)
                elif op == "Do":
                    self._interpret_xobject(args[0], resources, state, plane, (key, index), outer_keys)
                elif op in ("BDC", "BMC"):
                    marks.append((plane, span))
                    if op == "BDC":
                        plane, span = self._begin_marked_content(args, resources, plane, span)
                elif op == "EMC" and marks:
                    plane, span = marks.pop()
                elif op in _PAINTING:
                    self.shapes[self._page] += 1
                elif op in _PATH and len(args) == _PATH[op]:
                    with suppress(TypeError, ValueError):
                        point = self._add_edges(op, [float(a) for a in args], state.ctm, point)
            except AllonymError:
                raise
            except _FOREIGN_ERRORS:
                if op not in _COLOURING:
                    self._note_unreadable_content()

    def _add_edges(
        self, op: str, numbers: Sequence[float], ctm: pikepdf.Matrix, point: tuple[float, float]
    ) -> tuple[float, float]:
        """Note the vertical edges of a box, or of a line from a point; return the end of the line."""
        sides = [(point, (numbers[0], numbers[1]))] if op == "l" else []
        if op == "re":
            x, y, wide, high = numbers
            sides = [((x, y), (x, y + high)), ((x + wide, y), (x + wide, y + high))]
        for start, end in sides:
            (ax, ay), (bx, by) = ctm.transform(start), ctm.transform(end)
            if abs(ax - bx) < 0.5 and abs(ay - by) > MIN_EDGE:
                self.edges[self._page].append(Edge((ax + bx) / 2, min(ay, by), max(ay, by)))
        return numbers[0], numbers[1]

    def _count_and_limit_steps(self, steps: int) -> None:
        self._steps += steps
        if self._steps > MAX_STEPS:
            raise RefusedContent(f"the PDF runs more than {MAX_STEPS} operators and characters")

    def _load_font_or_none(self, resources: Any, name: str) -> Font | None:
        """Return a font by its name; without it, its page is one whose text cannot be read."""
        try:
            return self._load_font(resources.Font[name])
        except _FOREIGN_ERRORS:
            self._note_unreadable_content()
            return None

    def _note_unreadable_content(self) -> None:
        self.unread.setdefault(self._page, _UNREADABLE)

    def _load_font(self, spec: Any) -> Font:
        key = get_object_key(spec)
        if key not in self._fonts or key == (0, 0):
            is_composed = spec.get("/Subtype") == "/Type3" and _shows_texts_or_pictures(spec)
            self._fonts[key] = read_font(spec), is_composed
        font, is_composed = self._fonts[key]
        if is_composed:
            self.unread.setdefault(self._page, "uses a font whose characters are texts or pictures themselves")
        return font

    def _apply_graphics_state_font(self, name: Any, resources: Any, state: _State) -> None:
        graphics_state = resources.ExtGState[str(name)]
        if "/Font" in graphics_state:
            font, size = graphics_state.Font
            state.font, state.size, state.name = self._load_font(font), float(size), ""

    def _interpret_xobject(
        self, name: Any, resources: Any, state: _State, plane: str, source: tuple[Any, int], outer_keys: tuple[Any, ...]
    ) -> None:
        thing = resources.get("/XObject", {}).get(str(name))
        if thing is None:
            return
        oc = thing.get("/OC")
        if oc is not None:
            plane = self._find_hidden_layer(oc, plane)
        if thing.get("/Subtype") == "/Image":
            is_transparent = any(name in thing for name in ("/SMask", "/Mask", "/ImageMask"))
            self.pictures.append(Picture(self._page, state.ctm, *source, is_transparent))
        elif thing.get("/Subtype") == "/Form":
            self._interpret_form(thing, resources, state, plane, (*outer_keys, source[0]))

    def _interpret_form(
        self, thing: Any, resources: Any, state: _State, plane: str, outer_keys: tuple[Any, ...]
    ) -> None:
        key = get_object_key(thing)
        if key in outer_keys or len(outer_keys) > MAX_DEPTH:
            raise RefusedContent(f"page {self._page + 1} has forms that lie in one another without end")
        self._drawn.add(key)
        if key not in self.forms:
            ops = list(pikepdf.parse_content_stream(thing))
            self.forms[key] = ContentStream(thing, ops, thing.get("/Resources", resources))
        inner = replace(state, name="")
        if "/Matrix" in thing:
            inner.ctm = _read_matrix(thing.Matrix) @ state.ctm
        drawn = replace(self.forms[key], resources=thing.get("/Resources", resources))
        self._interpret_stream(key, drawn, inner, plane, outer_keys)
        if "/Resources" in thing:
            self._beside.append((self._page, thing.Resources))

    # Marked content and layers

    def _begin_marked_content(self, args: Sequence[Any], resources: Any, plane: str, span: int) -> tuple[str, int]:
        properties = args[1]
        if isinstance(properties, pikepdf.Name):
            properties = resources.get("/Properties", {}).get(str(properties))
        if not isinstance(properties, pikepdf.Dictionary):
            return plane, span
        if str(args[0]) == "/OC":
            return self._find_hidden_layer(properties, plane), span
        for name in ("/ActualText", "/Alt", "/E"):
            if name in properties:
                self.spans.append(str(properties[name]))
                # An inner text stands for less than the outer one; both are read.
                return plane, len(self.spans) - 1
        return plane, span

    def _find_hidden_layer(self, group: Any, plane: str) -> str:
        groups = [group]
        if group.get("/Type") == "/OCMD":
            inside = group.get("/OCGs", [])
            groups = list(inside) if isinstance(inside, pikepdf.Array) else [inside]
        off = [get_object_key(g) for g in groups if get_object_key(g) in self._hidden]
        return f"layer {off[0][0]}" if off else plane

    # Text

    def _add_shown_glyphs(
        self, shown: Any, source: tuple[Any, int], state: _State, tm: pikepdf.Matrix, plane: str, span: int
    ) -> pikepdf.Matrix:
        font = state.font
        if font is None:
            self.unread.setdefault(self._page, "shows text without a font")
            return tm
        size, scale = state.size, state.scale
        items = list(shown) if isinstance(shown, pikepdf.Array) else [shown]
        setting = None
        if state.name and size > 0 and scale > 0 and not font.vertical:
            setting = Setting(state.name, size, state.char, state.word, scale)
        visible_plane = "invisible" if state.mode in (3, 7) and not plane else plane
        for item, piece in enumerate(items):
            if not isinstance(piece, pikepdf.String):
                tm = _advance_matrix(tm, -float(piece) / 1000 * size, scale, font.vertical)
                continue
            signs = font.decode_string(bytes(piece))
            self._count_and_limit_steps(len(signs))
            start = tm @ state.ctm
            ux, uy = start.c * size, start.d * size  # moving along the line does not change them
            for sign in signs:
                advance = sign.width * size + state.char + (state.word if sign.space else 0.0)
                after = _advance_matrix(tm, advance, scale, font.vertical)
                here = (tm @ state.ctm).translated(0, state.rise)
                end = (after @ state.ctm).translated(0, state.rise)
                self._glyphs.append(
                    Glyph(
                        sign.text, source[0], source[1], item, sign.start, sign.end,
                        -1000 * advance / size or 0.0 if size else 0.0,
                        here.e, here.f or 0.0, end.e - here.e, end.f - here.f or 0.0, ux, uy,
                        self._page, visible_plane, font.style, state.colour, span, setting,
                    )
                )  # fmt: skip
                tm = after
        return tm


def _shows_texts_or_pictures(spec: Any) -> bool:
    """Return whether characters of a Type 3 font are drawn with other characters, or with pictures by name."""
    for glyph in spec.CharProcs.values():
        data = glyph.read_bytes()
        operators = pikepdf.parse_content_stream(glyph) if b"T" in data or b"Do" in data else ()
        if any(str(o.operator) in (*SHOWING, "Do") for o in operators):
            return True
    return False


def _advance_matrix(tm: pikepdf.Matrix, by: float, scale: float, vertical: bool) -> pikepdf.Matrix:
    return tm.translated(0, by) if vertical else tm.translated(by * scale, 0)


def _read_matrix(args: Sequence[Any]) -> pikepdf.Matrix:
    a, b, c, d, e, f = (float(v) for v in args)
    return pikepdf.Matrix(a, b, c, d, e, f)


def _set_colour(op: str, args: Sequence[Any], resources: Any, state: _State) -> None:
    """Set a simple colour: grey, RGB or CMYK, also with a profile."""
    if op == "cs":
        state.space, state.colour = str(args[0]), (0.0,)
        return
    numbers = tuple(float(a) for a in args if not str(a).startswith("/"))
    plain = state.space in ("/DeviceGray", "/DeviceRGB", "/DeviceCMYK")
    if not plain:
        colour_space = resources.get("/ColorSpace", {}).get(state.space)
        try:
            plain = str(colour_space[0]) in ("/ICCBased", "/CalRGB", "/CalGray")
        except (TypeError, ValueError, LookupError):
            plain = False
    state.colour = numbers if plain and len(numbers) in _COLOURS and len(numbers) == len(args) else None


def _list_resource_streams(resources: Any) -> Iterator[Any]:
    """Yield the content streams in resources: forms, tiling patterns, masks."""
    if not isinstance(resources, pikepdf.Dictionary):
        return
    forms, patterns, states = ((resources.get(k) or {}).values() for k in ("/XObject", "/Pattern", "/ExtGState"))
    yield from (t for t in forms if isinstance(t, pikepdf.Stream) and t.get("/Subtype") == "/Form")
    yield from (t for t in patterns if isinstance(t, pikepdf.Stream))
    masks = (state.get("/SMask") for state in states)
    yield from (m.G for m in masks if isinstance(m, pikepdf.Dictionary) and isinstance(m.get("/G"), pikepdf.Stream))
