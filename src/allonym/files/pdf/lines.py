"""Set lines anew: a replacement gets its full width, and what follows it on its line moves.

A gap of the width of the removed text would tell it: few names are exactly as wide. So lines close up, and lines of
justified text are justified again. A replacement that its line has no room for becomes a short form, such as ``[P6]``,
which the legend explains.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from allonym.files.pdf.content import Edge, Glyph, GlyphPlace
from allonym.files.pdf.fonts import measure_text_width
from allonym.files.pdf.layout import TextUnit

NARROW = 0.85
"""Least share of its usual width to which a replacement is compressed."""

STRETCH, SHRINK = 0.5, 0.11
"""Greatest change of the spaces of a line, in font heights."""

JUSTIFIED = 3
"""Least number of spaces of a justified line; a cell of a table has fewer."""

BOX_WIDTH = 3.0
"""Width of the box in place of a replacement that no standard font has, in font heights."""

PADDING = 0.4
"""Least distance to the next text on a row, in font heights."""

_TAG = re.compile(r"(\W*)([A-Z]+(?:_[A-Z]+)*)_(\d+)(\W*)")


def make_short_forms(texts: Iterable[str]) -> dict[str, str]:
    """Return a short form for each replacement: ``[P6]`` for ``[PERSON_6]``, a number for one without a label."""
    tags = {text: _TAG.fullmatch(text) for text in dict.fromkeys(texts)}
    initials: dict[str, str] = {}
    for label in sorted({tag[2] for tag in tags.values() if tag}):
        *words, last = label.split("_")
        head = "".join(word[0] for word in words)
        names = [head + last[:n] for n in range(1, len(last) + 1)]
        initials[label] = next((name for name in names if name not in initials.values()), label)
    numbers = iter(range(1, len(tags) + 1))
    return {
        text: f"{tag[1]}{initials[tag[2]]}{tag[3]}{tag[4]}" if tag else f"[{next(numbers)}]"
        for text, tag in tags.items()
    }


@dataclass(slots=True, eq=False)
class Line:
    """Units side by side, and their positions along their direction from the first one.

    Attributes:
        units: in order.
        starts, ends: of each unit, in the page's units.
        x, y: where the first unit begins; ``ex``, ``ey``: the direction, as a vector of length 1.
        size: greatest font height.
        range, height: its first and last point, and its baseline, in the frame of its direction, comparable between
            parallel lines.
    """

    units: list[TextUnit] = field(repr=False)
    starts: list[float] = field(init=False)
    ends: list[float] = field(init=False)
    x: float = field(init=False)
    y: float = field(init=False)
    ex: float = field(init=False)
    ey: float = field(init=False)
    size: float = field(init=False)
    range: tuple[float, float] = field(init=False)
    height: float = field(init=False)

    def __post_init__(self) -> None:
        first = self.units[0].first
        self.x, self.y = first.x, first.y
        self.ex, self.ey = math.cos(first.angle), math.sin(first.angle)
        self.size = max(unit.first.size for unit in self.units)
        self.starts = [(u.first.x - self.x) * self.ex + (u.first.y - self.y) * self.ey for u in self.units]
        self.ends = [start + unit.first.width for start, unit in zip(self.starts, self.units, strict=True)]
        along = self.x * self.ex + self.y * self.ey
        self.range = along, along + max(self.ends)
        self.height = self.y * self.ex - self.x * self.ey


@dataclass(frozen=True, slots=True)
class _Room:
    """How far a line may reach, from its first unit; the share of its change that moves its beginning (0 left, 0.5
    centred, 1 right); and whether it is justified."""

    lower: float
    upper: float
    align: float
    is_justified: bool


PlacedText = tuple[TextUnit, str, float, float]
"""The unit in whose place a text is set, the text, its width, and how far it moves along the line."""


@dataclass(frozen=True, slots=True)
class _Setting:
    """How a line is set: the move of each kept unit, and the replacements."""

    moves: list[tuple[TextUnit, float]]
    texts: list[PlacedText] = field(repr=False)


class LineSetter:
    """Sets the lines of a file anew.

    Attributes:
        moves: how far characters move along their lines, as a number of a TJ array.
        shortened: the replacements of which the short form was used.

    Args:
        boxes: left, bottom, right and top of each page.
        edges: the vertical edges of frames on each page.
        is_fixed: returns whether a character cannot move.
        short_forms: short form by replacement.
    """

    def __init__(
        self,
        boxes: Sequence[tuple[float, float, float, float]],
        edges: Mapping[int, Sequence[Edge]],
        is_fixed: Callable[[Glyph], bool],
        short_forms: Mapping[str, str],
    ) -> None:
        self._units: dict[int, dict[int, list[TextUnit]]] = {}
        self._page = -1  # whose lines are measured
        self._lines: dict[int, Line] = {}
        self._at_angle: dict[int, list[Line]] = {}
        self._boxes, self._edges, self._is_fixed, self._short_forms = boxes, edges, is_fixed, short_forms
        self.moves: dict[GlyphPlace, float] = {}
        self.shortened: set[str] = set()

    def open_pages(self, units: Iterable[TextUnit]) -> None:
        """Take the units of the pages whose lines are set next, in place of those before."""
        self._page = -1
        self._units = defaultdict(lambda: defaultdict(list))
        for unit in units:
            self._units[unit.first.page][unit.line].append(unit)

    def _measure_lines(self, page: int) -> dict[int, Line]:
        """Measure the lines of a page; only those of one page are kept."""
        if page != self._page:
            self._page = page
            self._lines = {number: Line(units) for number, units in self._units[page].items()}
            self._at_angle = defaultdict(list)
            for line in self._lines.values():
                if not line.units[0].first.plane:
                    self._at_angle[_round_angle(line)].append(line)
        return self._lines

    def can_set_line(self, page: int, number: int) -> bool:
        """Return whether all characters of a line can move."""
        line = self._measure_lines(page)[number]
        return line.size > 0.1 and not any(self._is_fixed(g) for unit in line.units for g in unit.glyphs)

    def set_line(self, page: int, number: int, texts: Mapping[int, str], gone: frozenset[int]) -> list[PlacedText]:
        """Set a line anew, and return its replacements.

        Args:
            page, number: the line.
            texts: replacements by the ``id`` of the unit in whose place they are set.
            gone: the ``id`` of all units that are removed.
        """
        line = self._measure_lines(page)[number]
        neighbours = self._at_angle[_round_angle(line)] if not line.units[0].first.plane else []
        room = _Room(*self._find_limits(line, page, neighbours), *_find_alignment(line, neighbours))
        setting = self._choose_setting(line, texts, gone, room)
        ratio = 0.0
        for unit, move in setting.moves:
            for glyph in unit.glyphs:
                ratio = glyph.back / glyph.width if glyph.width > 1e-6 else ratio
                self.moves.setdefault(glyph.place, ratio * move)
        for unit, _, _, move in setting.texts:
            self.moves.setdefault(unit.first.place, unit.first.back / unit.first.width * move)
        return setting.texts

    def _choose_setting(self, line: Line, texts: Mapping[int, str], gone: frozenset[int], room: _Room) -> _Setting:
        """Return the first setting that has room: full texts, narrower ones, short forms from the longest on."""
        chosen = dict(texts)
        longest_first = sorted(texts, key=lambda key: -len(texts[key]))
        for shortened in (None, *longest_first):
            if shortened is not None and texts[shortened]:
                chosen[shortened] = self._short_forms[texts[shortened]]
            for scale in (1.0, NARROW):
                setting = _try_setting(line, chosen, gone, room, scale)
                if setting is not None:
                    self.shortened.update(texts[k] for k in texts if chosen[k] != texts[k])
                    return setting
        self.shortened.update(text for text in texts.values() if text)
        # Without any room, it reaches into the margin.
        setting = _try_setting(line, chosen, gone, _Room(-math.inf, math.inf, 0.0, False), NARROW)
        assert setting is not None
        return setting

    def _find_limits(self, line: Line, page: int, neighbours: Sequence[Line]) -> tuple[float, float]:
        """Return how far a line may reach, from its first unit: to the next text, frame, or margin."""
        start, end = line.range
        height = line.height
        others = [other for other in neighbours if other is not line]
        ranges = [other.range for other in others]
        left, right = (min((a for a, _ in ranges), default=start), max((b for _, b in ranges), default=end))
        margin = start + line.units[0].right
        has_margin = line.units[0].right > 0 and sum(abs(b - margin) < 0.7 for _, b in ranges) >= 2
        right = margin if has_margin else right
        x0, _, x1, _ = self._boxes[page]
        if abs(line.ey) < 0.01 and line.ex > 0:
            # Without lines that end at a margin, it is as wide as the left one.
            right = max(right, x1 - (min(start, left) - x0)) if not has_margin else right
            for edge in self._edges.get(page, ()):
                if edge.low - 1 <= line.y <= edge.high + 1:
                    if edge.x >= end - 0.5:
                        right = min(right, edge.x - 1.5)
                    elif edge.x <= start + 0.5:
                        left = max(left, edge.x + 1.5)
        for other, (a, b) in zip(others, ranges, strict=True):
            if -0.9 * other.size < other.height - height < 0.9 * line.size:
                if a >= end - 0.3 * line.size:
                    right = min(right, a - PADDING * line.size)
                elif b <= start + 0.3 * line.size:
                    left = max(left, b + PADDING * line.size)
        return min(left, start) - start, max(right, end) - start


def _round_angle(line: Line) -> int:
    return round(math.degrees(math.atan2(line.ey, line.ex))) % 360


def _find_alignment(line: Line, neighbours: Sequence[Line]) -> tuple[float, bool]:
    """Return the share of a line's change that moves its beginning (0 left, 0.5 centred, 1 right), and whether the line
    is justified, from the lines that begin or end where it does."""
    start, end = line.range
    count: Counter[float] = Counter()
    for other in neighbours:
        if other is line:
            continue
        a, b = other.range
        near = abs(a - start) < 0.7, abs(a + b - start - end) < 1.4, abs(b - end) < 0.7
        for place, is_near in zip((0.0, 0.5, 1.0), near, strict=True):
            count[place] += is_near
    spaces = sum(unit.text.isspace() or bool(unit.before) for unit in line.units)
    is_justified = count[1.0] >= max(2, count[0.0] // 3) and count[0.0] >= 2 and spaces >= JUSTIFIED
    best = max((0.0, 0.5, 1.0), key=lambda place: (count[place], -place))
    return (0.0 if is_justified else best), is_justified


def _list_pieces(line: Line, texts: Mapping[int, str], gone: frozenset[int]) -> Iterator[tuple[int, int, bool]]:
    """Yield the pieces of a line: first and last index, and whether they are removed; one for each replacement."""
    first = 0
    for index, unit in enumerate(line.units):
        is_gone = id(unit) in gone
        following = line.units[index + 1] if index + 1 < len(line.units) else None
        goes_on = is_gone and following is not None and id(following) in gone and id(following) not in texts
        if not goes_on:
            yield first, index, is_gone
            first = index + 1


def _try_setting(
    line: Line, texts: Mapping[int, str], gone: frozenset[int], room: _Room, scale: float
) -> _Setting | None:
    """Return a line with these texts, or None if it has no room for them."""
    moves: list[tuple[TextUnit, float, int]] = []
    placed: list[tuple[PlacedText, int]] = []
    move = new_end = 0.0
    closing: float | None = None
    spaces = 0
    for first, last, is_gone in _list_pieces(line, texts, gone):
        unit, start, end = line.units[first], line.starts[first], max(line.ends[first : last + 1])
        spaces += new_end > 0 and (unit.text.isspace() or bool(unit.before))
        if not is_gone:
            if closing is not None and not unit.text.isspace():
                move, closing = closing - start, None
            moves.append((unit, move, spaces))
            if not unit.text.isspace():
                new_end = end + move
            continue
        text = texts.get(id(unit), "")
        if not text:
            closing = start + move if closing is None else closing
            continue
        if closing is not None:
            move, closing = closing - start, None
        wide = (measure_text_width(text, unit.first.style) * scale or BOX_WIDTH) * unit.first.size
        placed.append(((unit, text, wide, move), spaces))
        new_end = start + move + wide
        move += wide - (end - start)
    extra = 0.0
    if spaces and new_end > room.upper:
        extra = max((room.upper - new_end) / spaces, -SHRINK * line.size)
    elif spaces and room.is_justified:
        change = (max(line.ends) - new_end) / spaces
        extra = change if 0 < change <= STRETCH * line.size else 0.0
    new_end += extra * spaces
    shift = -room.align * (new_end - max(line.ends))
    if room.align:
        shift = min(shift, room.upper - new_end)
    if new_end + shift > room.upper + 0.05 or shift < min(0.0, room.lower) - 0.05:
        return None
    return _Setting(
        [(unit, m + extra * n + shift) for unit, m, n in moves],
        [(unit, text, wide, m + extra * n + shift) for (unit, text, wide, m), n in placed],
    )
