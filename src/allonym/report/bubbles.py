"""A map of bubbles as SVG: sizes are areas, a value is darkness, words stand beside the bubbles where there is room."""

from __future__ import annotations

import math

from allonym.report.charts import Frame, picture, text_of
from allonym.report.plots import Bubble, Bubbles
from allonym.report.svg import said, tag, text

LEVELS = 7
"""Steps of darkness: classes ``h1`` to ``h7`` of the style sheet."""

_FRAME = Frame(720, 440, 64, 656, 56, 384)
_LARGEST = 40.0
Box = tuple[float, float, float, float]


def step(level: float) -> int:
    """The step of darkness, 1 to 7, of a level between 0 and 1."""
    return 1 + min(LEVELS - 1, max(0, int(level * LEVELS))) if level == level else 1


def bubbles_svg(bubbles: Bubbles, ident: str) -> str:
    """The picture of a map. One scale serves both directions, so that distances compare."""
    known = [b for b in bubbles.bubbles if math.isfinite(b.x) and math.isfinite(b.y)]
    placed = _place(known)
    body = [
        tag("title", text_of(bubbles.title), id=f"{ident}-t"),
        tag("desc", text_of(f"{bubbles.description} {len(known)} bubbles.".strip()), id=f"{ident}-d"),
    ]
    for bubble, x, y, r in sorted(placed, key=lambda p: -p[3]):
        kind = f"bubble h{step(bubble.level)}" + (" dashed" if bubble.dashed else "")
        body.append(tag("circle", said(bubble.label, bubble.facts), class_=kind, cx=x, cy=y, r=r, data_series=0))
        if r >= 9:
            dark = " light" if step(bubble.level) > 4 else ""
            body.append(text(bubble.label.split()[-1], x, y + 4, f"inside{dark}", "middle"))
    body += _words(placed)
    return picture(_FRAME, ident, "".join(body))


def _place(bubbles: list[Bubble]) -> list[tuple[Bubble, float, float, float]]:
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


def _words(placed: list[tuple[Bubble, float, float, float]]) -> list[str]:
    # Big bubbles first; words go where they hide no bubble and no other words, else they are left to the tooltip.
    taken: list[Box] = [(x - r * 0.8, y - r * 0.8, x + r * 0.8, y + r * 0.8) for _, x, y, r in placed]
    out = []
    for own, (bubble, x, y, r) in sorted(enumerate(placed), key=lambda p: -p[1][3]):
        if not bubble.words:
            continue
        wide = 5.6 * len(bubble.words)
        for left, base, anchor in (
            (x - wide / 2, y + r + 15, "middle"),
            (x - wide / 2, y - r - 7, "middle"),
            (x + r + 6, y + 4, "start"),
            (x - r - 6 - wide, y + 4, "end"),
        ):
            box = (left, base - 12, left + wide, base + 4)
            if box[0] < 4 or box[2] > _FRAME.width - 4 or box[1] < 2 or box[3] > _FRAME.height - 2:
                continue
            if any(_meet(box, other) for i, other in enumerate(taken) if i != own):
                continue
            at = {"middle": x, "start": left, "end": left + wide}[anchor]
            out.append(text(bubble.words, at, base, "words", anchor))
            taken.append(box)
            break
    return out


def _meet(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
