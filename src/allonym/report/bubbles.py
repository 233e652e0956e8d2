"""A map of bubbles as SVG: sizes are areas, a value is darkness, words stand beside the bubbles where there is room."""

from __future__ import annotations

import math

from allonym.report.charts import Frame, escape_text, wrap_picture
from allonym.report.plots import Bubble, Bubbles
from allonym.report.svg import draw_tag, draw_text, draw_title

LEVELS = 7
"""Steps of darkness: classes ``h1`` to ``h7`` of the style sheet."""

_FRAME = Frame(720, 440, 64, 656, 56, 384)
_LARGEST = 40.0
Box = tuple[float, float, float, float]


def find_darkness_step(level: float) -> int:
    """Return the step of darkness, 1 to 7, of a level between 0 and 1."""
    return 1 + min(LEVELS - 1, max(0, int(level * LEVELS))) if level == level else 1


def draw_bubbles(bubbles: Bubbles, ident: str) -> str:
    """Draw a map. One scale serves both directions, so that distances compare."""
    shown = [b for b in bubbles.bubbles if math.isfinite(b.x) and math.isfinite(b.y)]
    placed = _place_bubbles(shown)
    body = [
        draw_tag("title", escape_text(bubbles.title), id=f"{ident}-t"),
        draw_tag("desc", escape_text(f"{bubbles.description} {len(shown)} bubbles.".strip()), id=f"{ident}-d"),
    ]
    for bubble, x, y, r in sorted(placed, key=lambda p: -p[3]):
        kind = f"bubble h{find_darkness_step(bubble.level)}" + (" dashed" if bubble.dashed else "")
        body.append(
            draw_tag("circle", draw_title(bubble.label, bubble.facts), class_=kind, cx=x, cy=y, r=r, data_series=0)
        )
        if r >= 9:
            dark = " light" if find_darkness_step(bubble.level) > 4 else ""
            body.append(draw_text(bubble.label.split()[-1], x, y + 4, f"inside{dark}", "middle"))
    body += _draw_words(placed)
    return wrap_picture(_FRAME, ident, "".join(body))


def _place_bubbles(bubbles: list[Bubble]) -> list[tuple[Bubble, float, float, float]]:
    if not bubbles:
        return []
    xs, ys = [b.x for b in bubbles], [b.y for b in bubbles]
    width, height = max(xs) - min(xs), max(ys) - min(ys)
    unit = min((_FRAME.right - _FRAME.left) / (width or 1e-9), (_FRAME.bottom - _FRAME.top) / (height or 1e-9), 1e6)
    if not width and not height:
        unit = 0.0
    middle_x, middle_y = (max(xs) + min(xs)) / 2, (max(ys) + min(ys)) / 2
    biggest = max(max(b.size for b in bubbles), 1e-9)
    cx, cy = (_FRAME.left + _FRAME.right) / 2, (_FRAME.top + _FRAME.bottom) / 2
    return [
        (
            b,
            cx + (b.x - middle_x) * unit,
            cy - (b.y - middle_y) * unit,
            max(5.0, _LARGEST * math.sqrt(max(b.size, 0) / biggest)),
        )
        for b in bubbles
    ]


def _draw_words(placed: list[tuple[Bubble, float, float, float]]) -> list[str]:
    # Big bubbles first; words go where they hide no bubble and no other words, else they are left to the tooltip.
    boxes: list[Box] = [(x - r * 0.8, y - r * 0.8, x + r * 0.8, y + r * 0.8) for _, x, y, r in placed]
    out = []
    for index, (bubble, x, y, r) in sorted(enumerate(placed), key=lambda p: -p[1][3]):
        if not bubble.words:
            continue
        wide = 5.6 * len(bubble.words)
        for start, base, anchor in (
            (x - wide / 2, y + r + 15, "middle"),
            (x - wide / 2, y - r - 7, "middle"),
            (x + r + 6, y + 4, "start"),
            (x - r - 6 - wide, y + 4, "end"),
        ):
            box = (start, base - 12, start + wide, base + 4)
            if box[0] < 4 or box[2] > _FRAME.width - 4 or box[1] < 2 or box[3] > _FRAME.height - 2:
                continue
            if any(_boxes_meet(box, other) for i, other in enumerate(boxes) if i != index):
                continue
            anchor_x = {"middle": x, "start": start, "end": start + wide}[anchor]
            out.append(draw_text(bubble.words, anchor_x, base, "words", anchor))
            boxes.append(box)
            break
    return out


def _boxes_meet(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
