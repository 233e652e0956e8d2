"""Does the width of a gap tell who was removed? Names are put into lines of a PDF, removed, and guessed by their width.

    python benchmarks/gaps.py [--names N]

The intruder knows the fonts and a list of names (those of the knowledge base), and measures in the result how much
room there is between the words before and behind each replacement. Names that need this room, within 0.05 points, are
the candidates. Prints, for each kind of line, the share of names that are among their candidates ("told"), the median
number of candidates then, and the share of names told with fewer than 100; last, a line of JSON.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import sqlite3
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import pypdfium2
from reportlab.pdfbase.pdfmetrics import stringWidth

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.pdf_pages import canvas

FONT, SIZE = "Times-Roman", 11.0
TOLERANCE = 0.05
"""Points by which a candidate's width may differ."""


def list_names() -> list[str]:
    """Return the names of the knowledge base that the font has."""
    from allonym.kb import store

    path = Path(store.__file__).parent / "default.sqlite"
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as base:
        texts = [name or folded.title() for folded, name in base.execute("SELECT folded, name FROM name")]
    return sorted({text for text in texts if text.isascii() and len(text) > 2})


def draw_ragged(name: str) -> bytes:
    def drawn(c: Any) -> None:
        c.setFont(FONT, SIZE)
        c.drawString(72, 700, f"The letter that {name} wrote was lost.")

    return canvas(drawn)


def draw_justified(name: str) -> bytes:
    """A justified paragraph of three lines: the name is in the second, whose spaces fill the line."""

    def drawn(c: Any) -> None:
        c.setFont(FONT, SIZE)
        for i, line in enumerate(
            (
                "It was in the spring of a cold year and",
                f"then {name} came to see us and",
                "all of us were glad about the visit and",
            )
        ):
            room = 300 - stringWidth(line, FONT, SIZE)
            text = c.beginText(72, 700 - 14 * i)
            text.setWordSpace(room / line.count(" "))
            text.textOut(line)
            c.drawText(text)

    return canvas(drawn)


def draw_in_cell(name: str) -> bytes:
    def drawn(c: Any) -> None:
        c.setFont(FONT, SIZE)
        for i, line in enumerate(("Name", name, "Nobody")):
            c.drawString(72, 700 - 16 * i, line)
            c.drawString(320, 700 - 16 * i, "12")

    return canvas(drawn)


KINDS: dict[str, tuple[Callable[[str], bytes], str, str]] = {
    "ragged line": (draw_ragged, "that", "wrote"),
    "justified line": (draw_justified, "then", "came"),
    "cell": (draw_in_cell, "", ""),
}


def measure_gap(data: bytes, before: str, behind: str) -> float:
    """Return the room between two words on a page, less two spaces as wide as the others on the line; 0 if unknown."""
    page = pypdfium2.PdfDocument(data)[0].get_textpage()
    text = page.get_text_range()
    if not before or before not in text or behind not in text:
        return 0.0
    start, end = text.index(before) + len(before) - 1, text.index(behind, text.index(before))
    room = page.get_charbox(end, loose=True)[0] - page.get_charbox(start, loose=True)[2]
    after = text.index(" ", end)
    space = page.get_charbox(after + 1, loose=True)[0] - page.get_charbox(after - 1, loose=True)[2]
    return float(room - 2 * space)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--names", type=int, default=60, help="number of names to remove from each kind of line")
    options = parser.parse_args(argv)
    from allonym.files import get_format
    from allonym.files.record import Chunk, Job, anonymize_chunk
    from allonym.policy import Policy, TermList

    names = list_names()
    widths = sorted(stringWidth(name, FONT, SIZE) for name in names)
    chosen = random.Random(7).sample([n for n in names if 5 <= len(n) <= 24], options.names)
    policy = Policy.load("default").with_(detectors=("lexicon",), dictionary=(TermList("PERSON", tuple(chosen)),))
    rows: dict[str, dict[str, float]] = {}
    print(f"{len(names)} names\n{'line':16} {'told':>7} {'candidates':>11} {'fewer than 100':>15}")
    for kind, (draw, before, behind) in KINDS.items():
        counts: list[int] = []
        for name in chosen:
            done = anonymize_chunk(get_format("pdf").parse(Chunk(draw(name)), Job(policy)), Job(policy))
            gap = measure_gap(io.BytesIO(done.data).getvalue(), before, behind)
            if abs(gap - stringWidth(name, FONT, SIZE)) <= TOLERANCE:
                counts.append(bisect_right(widths, gap + TOLERANCE) - bisect_left(widths, gap - TOLERANCE))
        rows[kind] = {
            "told": len(counts) / len(chosen),
            "candidates": median(counts) if counts else len(names),
            "few": sum(count < 100 for count in counts) / len(chosen),
        }
        r = rows[kind]
        print(f"{kind:16} {r['told']:7.1%} {r['candidates']:11.0f} {r['few']:15.1%}", flush=True)
    print(json.dumps(rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
