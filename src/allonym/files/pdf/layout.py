"""Characters in reading order: words, lines, columns and tables, from their positions on the page.

Lines of a paragraph are joined by a space, so that a name broken over two lines is one name; a word broken at a hyphen
is one word. Cells of a table are separated by tabs. Columns are read one after the other.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise, product
from statistics import median_high

from allonym.files.pdf.content import Glyph

GAP = 0.2
"""Gap between two characters that separates words, in font heights, beyond the usual gap of their line."""

CELL = 1.2
"""Gap that separates cells, in font heights."""

GUTTER = 0.7
"""Gap that may separate columns, in font heights; a justified line may have similar gaps between words."""

LONG = 40
"""Least number of characters of a line that continues in the next, if there are few lines for comparison."""

MIN_LINE_NUMBERS = 8
"""Least number of lines that are numbered at the margin."""

_LEAST_CELLS = 3
"""Least number of cells that begin below one another in a column."""

_HYPHENS = "-\u2010\u00ad"


@dataclass(slots=True, eq=False)
class TextUnit:
    """One part of the document: a character, or several with one text.

    Attributes:
        text: its text; never empty.
        glyphs: the characters that are removed with it; the first has its position.
        before: the separator from the previous unit, as a reader sees it.
        line: number of its line on the page.
        right: distance to the end of the lines of its paragraph or column; 0 if unknown.
    """

    text: str = field(repr=False)
    glyphs: list[Glyph]
    before: str = ""
    line: int = -1
    right: float = 0.0

    @property
    def first(self) -> Glyph:
        """The character with its position."""
        return self.glyphs[0]


@dataclass(slots=True, eq=False)
class _Run:
    """Units side by side on one line: left and right end, baseline and height, in the frame of their direction."""

    units: list[TextUnit]
    x0: float
    x1: float
    y: float
    size: float


def order_glyphs_for_reading(
    glyphs: Sequence[Glyph], actual_texts: Sequence[str] = ()
) -> tuple[list[TextUnit], list[TextUnit]]:
    """Return all characters of a page as units, in reading order.

    Args:
        glyphs: the characters as drawn.
        actual_texts: the replacement texts of the file's marked content.

    Returns:
        The units, and the replacement texts that differ from their characters, each with these characters.
    """
    planes: dict[tuple[bool, str, int], list[Glyph]] = defaultdict(list)
    duplicates: dict[int, list[Glyph]] = {}
    glyphs, others = _apply_actual_texts(glyphs, actual_texts, duplicates)
    for glyph in _drop_duplicate_glyphs(glyphs, duplicates):
        plane, angle = f"{glyph.plane} {glyph.size < 2}", round(math.degrees(glyph.angle)) % 360
        planes[glyph.plane != "", plane, angle].append(glyph)
    weight = {key: sum(not (g.text or "").isspace() for g in some) for key, some in planes.items()}
    out: list[TextUnit] = []
    line = 0
    for key in sorted(planes, key=lambda k: (k[0], k[1], -weight[k], k[2])):
        direction = median_high(g.angle for g in planes[key])
        units, line = _order_glyphs_at_angle(planes[key], duplicates, direction, line)
        if units and out:
            units[0].before = "\n\n"
        out += units
    return out, others


def _apply_actual_texts(
    glyphs: Sequence[Glyph], actual_texts: Sequence[str], duplicates: dict[int, list[Glyph]]
) -> tuple[Sequence[Glyph], list[TextUnit]]:
    """Read replacement texts of marked content: in place of characters without text, else in addition to them."""
    marked: dict[int, list[Glyph]] = defaultdict(list)
    for glyph in glyphs:
        if glyph.span >= 0:
            marked[glyph.span].append(glyph)
    others: list[TextUnit] = []
    gone: set[int] = set()
    for span, some in marked.items():
        actual_text, drawn_text = actual_texts[span], "".join(g.text or "\ufffd" for g in some)
        if _extract_alphanumerics(actual_text) == _extract_alphanumerics(drawn_text) and not any(
            _is_unreadable(c) for c in drawn_text
        ):
            continue
        if any(_is_unreadable(c) for c in drawn_text) and actual_text.strip():
            first, last = some[0], some[-1]
            first.text = actual_text
            first.dx, first.dy = last.x + last.dx - first.x, last.y + last.dy - first.y
            duplicates[id(first)] = some[1:]
            gone.update(map(id, some[1:]))
        elif _extract_alphanumerics(actual_text):
            others.append(TextUnit(actual_text, list(some), "\n"))
    return [g for g in glyphs if id(g) not in gone] if gone else glyphs, others


def _extract_alphanumerics(text: str) -> str:
    # Small capitals are often drawn with the letters of the other case.
    return "".join(c for c in unicodedata.normalize("NFKC", text).casefold() if c.isalnum())


def _drop_duplicate_glyphs(glyphs: Sequence[Glyph], duplicates: dict[int, list[Glyph]]) -> Iterator[Glyph]:
    """Drop characters drawn twice at one position (bold, shadows); they are removed together with the first."""
    glyphs_by_place: dict[tuple[int, str, int, int], list[Glyph]] = {}
    for _, some in groupby(glyphs, key=lambda g: (g.page, g.stream, g.op)):
        shown = list(some)
        pairs = [(g, _find_duplicate_glyph(g, glyphs_by_place)) for g in shown if g.text and not g.text.isspace()]
        # Another text may have the same letter at the same position.
        if pairs and all(twin is not None for _, twin in pairs):
            for glyph, twin in pairs:
                duplicates.setdefault(id(twin), []).append(glyph)
            yield from (g for g in shown if not g.text)
            continue
        for glyph, _ in pairs:
            step = max(glyph.size, 0.5)
            place = (glyph.page, glyph.text or "", math.floor(glyph.x / step), math.floor(glyph.y / step))
            glyphs_by_place.setdefault(place, []).append(glyph)
        yield from shown


def _find_duplicate_glyph(glyph: Glyph, glyphs_by_place: dict[tuple[int, str, int, int], list[Glyph]]) -> Glyph | None:
    """Return the same character drawn before at the same position."""
    step = max(glyph.size, 0.5)
    cx, cy = math.floor(glyph.x / step), math.floor(glyph.y / step)
    for i, j in product((cx - 1, cx, cx + 1), (cy - 1, cy, cy + 1)):
        for other in glyphs_by_place.get((glyph.page, glyph.text or "", i, j), ()):
            near = math.hypot(other.x - glyph.x, other.y - glyph.y) < 0.15 * step
            if near and abs(other.size - glyph.size) < 0.2 * step:
                return other
    return None


def _order_glyphs_at_angle(
    glyphs: list[Glyph], duplicates: dict[int, list[Glyph]], angle: float, line: int
) -> tuple[list[TextUnit], int]:
    cos, sin = math.cos(-angle), math.sin(-angle)

    def rotate_point(glyph: Glyph) -> tuple[float, float]:
        return glyph.x * cos - glyph.y * sin, glyph.x * sin + glyph.y * cos

    runs = _group_glyphs_into_runs(glyphs, duplicates, rotate_point)
    rows = _group_runs_into_rows(runs)
    segments = [segment for row in rows for segment in _join_runs_of_row(row)]
    numbers = _find_line_numbers(segments)
    segments = [segment for segment in segments if segment not in numbers]
    out: list[TextUnit] = []
    for region in _split_regions(segments, 0):
        units, line = _list_region_units(region, line)
        if units and out:
            units[0].before = "\n"
        out += units
    for number in numbers:
        number.units[0].before = "\n" if out else ""
        for unit in number.units:
            unit.line = line
        out += number.units
        line += 1
    return out, line


def _find_line_numbers(segments: Sequence[_Run]) -> list[_Run]:
    """Return the numbers of lines at the left margin, as pleadings and transcripts have them: ascending by one."""
    margin = min((s.x0 for s in segments if len(s.units) > 3), default=0.0)
    columns: dict[int, list[_Run]] = defaultdict(list)
    for segment in segments:
        text = "".join(unit.text for unit in segment.units).strip()
        if text.isascii() and text.isdigit() and len(text) < 4 and segment.x1 <= margin:
            columns[round(segment.x1 / 3)].append(segment)
    for column in columns.values():
        numbers = [int("".join(unit.text for unit in s.units)) for s in column]
        if len(column) >= MIN_LINE_NUMBERS and all(b - a == 1 for a, b in pairwise(numbers)):
            return column
    return []


def _group_glyphs_into_runs(
    glyphs: list[Glyph], duplicates: dict[int, list[Glyph]], rotate_point: Callable[[Glyph], tuple[float, float]]
) -> list[_Run]:
    """Group characters that are drawn one after the other, side by side."""
    runs: list[_Run] = []
    for glyph in glyphs:
        x, y = rotate_point(glyph)
        unit = TextUnit(glyph.text or "\ufffd", [glyph, *duplicates.get(id(glyph), ())])
        run = runs[-1] if runs else None
        size = max(glyph.size, 0.1)
        if run and abs(y - run.y) < 0.15 * size and -0.5 * size < x - run.x1 < GUTTER * size and run.size < 2 * size:
            run.units.append(unit)
            run.x1 = max(run.x1, x + glyph.width)
        elif not (glyph.text or "").isspace():
            runs.append(_Run([unit], x, x + glyph.width, y, size))
        elif run:
            # A space somewhere else belongs to nothing that can be seen; it goes with what was drawn before it.
            run.units[-1].glyphs.append(glyph)
    return runs


def _group_runs_into_rows(runs: list[_Run]) -> list[list[_Run]]:
    """Group runs on one baseline, from top to bottom."""
    rows: list[list[_Run]] = []
    for run in sorted(runs, key=lambda r: (-r.y, r.x0)):
        for row in rows[-3:]:
            head = row[0]
            overlap = min(head.y + head.size, run.y + run.size) - max(head.y, run.y)
            if overlap > 0.6 * min(head.size, run.size) and abs(head.y - run.y) < 0.5 * max(head.size, run.size):
                row.append(run)
                break
        else:
            rows.append([run])
    return rows


def _join_runs_of_row(row: list[_Run], max_gap: float = GUTTER, columns: Collection[int] = ()) -> list[_Run]:
    """Join the runs of a row unless a gap of ``max_gap`` font heights separates them, or one begins at a column."""
    out: list[_Run] = []
    for run in sorted(row, key=lambda r: (r.x0, r.x1)):
        last = next((s for s in reversed(out) if s.x1 <= run.x0 + 0.6 * run.size), None)
        is_near = last is not None and run.x0 - last.x1 < max_gap * min(run.size, last.size)
        if last is not None and is_near and round(run.x0) not in columns:
            last.units += run.units
            last.x1, last.size = max(last.x1, run.x1), max(last.size, run.size)
        else:
            out.append(_Run(list(run.units), run.x0, run.x1, run.y, run.size))
    return out


def _split_regions(segments: list[_Run], depth: int) -> Iterator[list[_Run]]:
    """Split a page into regions in reading order: above the columns, each column, below."""
    columns = _split_at_column_gap(segments) if depth < 8 else None
    if columns is None:
        yield segments
        return
    for part in columns:
        if part:
            yield from _split_regions(part, depth + 1)


def _split_at_column_gap(segments: list[_Run]) -> tuple[list[_Run], list[_Run], list[_Run], list[_Run]] | None:
    """Split at the longest white gap in running text: return the parts above, left, right and below."""
    if len(segments) < 6:
        return None
    edges = sorted({round(s.x1 / 4) for s in segments})
    ordered = sorted(segments, key=lambda s: -s.y)
    best: tuple[int, float, list[_Run]] | None = None
    for edge in edges[:-1]:
        x = 4 * edge + 3.0
        start = 0
        for end in range(len(ordered) + 1):
            if end < len(ordered) and not ordered[end].x0 < x < ordered[end].x1:
                continue
            band = ordered[start:end]
            start = end + 1
            if len(band) >= 6 and (best is None or len(band) > best[0]) and _is_gap_in_running_text(band, x):
                best = (len(band), x, band)
    if best is None:
        return None
    _, x, band = best
    band = _trim_column_band(band, x)
    top, bottom = band[0].y, band[-1].y
    inside = [s for s in ordered if bottom <= s.y <= top]
    return (
        [s for s in ordered if s.y > top],
        [s for s in inside if s.x0 < x],
        [s for s in inside if s.x0 >= x],
        [s for s in ordered if s.y < bottom],
    )


def _is_gap_in_running_text(band: list[_Run], x: float) -> bool:
    """Tell whether both sides of ``x`` are lines of running text, and not cells of a table."""
    for side in ([s for s in band if s.x1 <= x], [s for s in band if s.x0 >= x]):
        rows: dict[int, list[_Run]] = defaultdict(list)
        for segment in side:
            rows[round(segment.y)].append(segment)
        if len(rows) < 3 or _find_median([sum(len(s.units) for s in row) for row in rows.values()]) < 18:
            return False
        neighbours = [pairwise(sorted(row, key=lambda s: s.x0)) for row in rows.values()]
        parted = sum(any(b.x0 - a.x1 >= CELL * min(a.size, b.size) for a, b in pairs) for pairs in neighbours)
        if parted > 0.3 * len(rows):
            return False
    return True


def _trim_column_band(band: list[_Run], x: float) -> list[_Run]:
    """Trim a band at its ends, where a gap separates for example a page's head or a small table."""
    pieces: list[list[_Run]] = [[]]
    for segment in band:
        if pieces[-1] and pieces[-1][-1].y - segment.y > 1.8 * min(segment.size, pieces[-1][-1].size):
            pieces.append([])
        pieces[-1].append(segment)
    widths = [_find_median([s.x1 - s.x0 for s in band if (s.x0 >= x) == right]) for right in (False, True)]

    def fits_side(piece: list[_Run]) -> bool:
        return _is_gap_in_running_text(piece, x) or all(
            s.x1 - s.x0 > 0.7 * widths[s.x0 >= x] for s in piece[:-1] or piece
        )

    while len(pieces) > 1 and not fits_side(pieces[-1]):
        pieces.pop()
    while len(pieces) > 1 and not fits_side(pieces[0]):
        pieces.pop(0)
    return [segment for piece in pieces for segment in piece]


def _find_median(numbers: Sequence[float]) -> float:
    """Return the middle number, of two the greater one; 0 of none."""
    return median_high(numbers) if numbers else 0.0


def _list_region_units(region: list[_Run], line: int) -> tuple[list[TextUnit], int]:
    """Return the units of a region, row by row, each with its separator."""
    out: list[TextUnit] = []
    runs = _group_runs_into_rows(region)
    rows = [_join_runs_of_row(row, CELL) for row in runs]
    starts = Counter(round(cell.x0) for row in rows for cell in row[1:])
    if columns := {x for x, count in starts.items() if count >= _LEAST_CELLS}:
        rows = [_join_runs_of_row(row, CELL, columns) for row in runs]  # a long cell may touch the next column
    right = max((s.x1 for row in rows for s in row), default=0.0)
    before: list[_Run] = []
    for row in rows:
        for index, segment in enumerate(row):
            units = _separate_words(segment)
            for unit in units:
                unit.line = line
                if len(rows) > 2:
                    # In the direction of the line, which may be turned.
                    start = segment.units[0].first
                    unit.right = right - segment.x0 - math.hypot(unit.first.x - start.x, unit.first.y - start.y)
            line += 1
            if out:
                margin = right if len(rows) > 2 else 0.0
                units[0].before = "\t" if index else _choose_line_separator(before, row, margin, out, units)
            out += units
        before = row
    return out, line


def _choose_line_separator(
    above: list[_Run], row: list[_Run], right: float, out: list[TextUnit], units: list[TextUnit]
) -> str:
    """Return the separator of a line from the one above: a space in a paragraph, nothing in a broken word.

    The hyphen of a broken word is removed from ``out``.
    """
    if len(above) != 1 or len(row) != 1:
        return "\n"
    upper, two = above[0], row[0]
    near = upper.y - two.y < 2.2 * max(upper.size, two.size) and abs(upper.size - two.size) < 0.3 * upper.size
    if not near:
        return "\n"
    last, first = out[-1], units[0]
    # A line with room for the next word ends on purpose.
    word = next((i for i, u in enumerate(units) if i and (u.before or u.text.isspace())), len(units))
    needed = sum(u.first.width for u in units[:word]) + 0.25 * two.size
    has_room = bool(right) and upper.x1 + needed <= right - 0.5 * two.size
    is_apart = upper.y - two.y > 1.5 * two.size or abs(upper.size - two.size) > 0.1 * upper.size
    is_new = (has_room or is_apart) and first.text[0].isupper() and last.text[-1] != "@"
    if not is_new and (last.text[-1] in "@/_" or first.text[0] in "@/_"):
        return ""
    if last.text[-1] in _HYPHENS and len(out) > 1 and out[-2].text[-1].isalnum() and first.text[0].isalnum():
        if (out[-2].text[-1].isalpha() and first.text[0].islower()) or last.text == "\u00ad":
            out.pop()
            out[-1].glyphs += last.glyphs
        return ""
    if not right and len(upper.units) < LONG and not first.text[0].islower():
        return "\n"
    return "\n" if has_room else " "


def _separate_words(segment: _Run) -> list[TextUnit]:
    """Return the units of a line; a gap that is wider than the others separates words."""
    units = segment.units
    if _separate_grid_words(units):
        return units
    gaps: list[float] = []
    for a, b in pairwise(units):
        here, after = a.first, b.first
        along = (after.x - here.x) * here.dx + (after.y - here.y) * here.dy
        gaps.append((along / here.width - here.width) / max(here.size, 0.1) if here.width > 1e-6 else 0.0)
    usual = max(0.0, _find_median(gaps))
    for gap, (a, b) in zip(gaps, pairwise(units), strict=True):
        if gap > usual + GAP and not a.text.isspace() and not b.text.isspace():
            b.before = " "
    return units


def _separate_grid_words(units: list[TextUnit]) -> bool:
    """Separate words at empty cells if letters of different widths are equally spaced; return whether they are."""
    pairs = [(a, b) for a, b in pairwise(units) if a.text[-1] != b.text[0]]  # a leader of dots is no grid
    steps = [math.hypot(b.first.x - a.first.x, b.first.y - a.first.y) for a, b in pairs]
    usual = _find_median(steps)
    equal = sum(abs(step - usual) < 0.02 * usual for step in steps)
    widths = [u.first.width for u in units]
    if len(pairs) < 5 or equal < 0.7 * len(steps) or max(widths) <= 1.2 * min(widths):
        return False
    for step, (a, b) in zip(steps, pairs, strict=True):
        if step > 1.5 * usual and not a.text.isspace() and not b.text.isspace():
            b.before = " "
    return True


def has_unreadable_words(units: Sequence[TextUnit]) -> bool:
    """Return whether signs of an unknown text stand inside words; a sign alone is a bullet or an ornament."""
    return any(
        not (b.before or b.text.isspace() or a.text.isspace())
        and (_is_unreadable(a.text) or _is_unreadable(b.text))
        and _may_belong_to_word(a.text)
        and _may_belong_to_word(b.text)
        for a, b in pairwise(units)
    )


def _is_unreadable(text: str) -> bool:
    return all(c == "\ufffd" or "\ue000" <= c <= "\uf8ff" or c < " " for c in text)


def _may_belong_to_word(text: str) -> bool:
    return _is_unreadable(text) or text[-1].isalnum()
