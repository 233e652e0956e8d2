"""Recognise the words of a picture: the readers of the table :data:`allonym.registry.ocr`."""

from __future__ import annotations

import csv
import io
import logging
import math
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from allonym import registry
from allonym.errors import DataError, RefusedContent, UsageError, require_extra

if TYPE_CHECKING:
    from PIL.Image import Image

DPI = 200
"""Resolution of a page as a picture, for OCR and for writing, in dots per inch."""


CERTAIN = 0.85
"""Least mean score, from 0 to 1, of the text of a page that lies upright; turned ones have about 0.7."""

LEAST_SCORE = 0.5
"""Least score of a line that is text."""

LEAST_TEXT = 20
"""Number of signs of a picture from which on its mean score is looked at."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word read by OCR: its text, its upright box in pixels from the top left corner, and the number of its line.

    ``angle`` is the direction of its line in radians, clockwise; the box is turned by it about its centre.
    """

    text: str = field(repr=False)
    left: float
    top: float
    right: float
    bottom: float
    line: int = 0
    angle: float = 0.0


OcrReader = Callable[["Image"], Iterable[Word]]
"""Returns the words of a page in reading order. By name in :data:`allonym.registry.ocr`, the hook for other engines."""


def find_ocr_reader(name: str) -> OcrReader | None:
    """Return the OCR that a policy names; None if it names none, or RapidOCR is not installed."""
    if not name or (name == "rapidocr" and find_spec("rapidocr") is None):
        return None
    return cast(OcrReader, registry.ocr.get(name))


def run_tesseract(image: Image) -> Iterator[Word]:
    """Return the words that the command ``tesseract`` reads in its default languages.

    Raises:
        UsageError: the command is not installed.
        DataError: it failed.
    """
    command = shutil.which("tesseract")
    if command is None:
        raise UsageError("the OCR tesseract needs the command tesseract, which is not installed")
    data = io.BytesIO()
    image.save(data, "PNG", dpi=(DPI, DPI))
    process = subprocess.run([command, "-", "-", "tsv"], input=data.getvalue(), capture_output=True, check=False)
    if process.returncode:
        raise DataError(f"tesseract failed with code {process.returncode}")
    lines: dict[tuple[str, ...], int] = {}
    table = io.StringIO(process.stdout.decode("utf-8", "replace"))
    for row in csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE):
        text = (row.get("text") or "").strip()
        if row.get("level") == "5" and text:
            line = lines.setdefault((row["block_num"], row["par_num"], row["line_num"]), len(lines))
            left, top = float(row["left"]), float(row["top"])
            yield Word(text, left, top, left + float(row["width"]), top + float(row["height"]), line)


@lru_cache(1)
def _load_rapidocr() -> Any:
    # It logs what it does, and may log what it reads.
    logging.getLogger("RapidOCR").disabled = True
    with require_extra("OCR", "ocr"):
        from rapidocr import RapidOCR
    # One thread: the workers of a run share the processor, and threads that wait for each other are slower.
    threads = {f"EngineConfig.onnxruntime.{kind}_op_num_threads": 1 for kind in ("intra", "inter")}
    return RapidOCR(params={"Global.log_level": "critical", **threads})


def run_rapidocr(image: Image) -> Iterator[Word]:
    """Return the words that RapidOCR reads with the models in its package, offline; a page may lie on any side.

    Raises:
        MissingExtra: the extra ``ocr`` is not installed.
        RefusedContent: most of what looks like text cannot be read.
    """
    engine = _load_rapidocr()
    import numpy as np

    for turn in (0, 180, 90, 270):
        pixels = np.asarray(image.convert("RGB").rotate(turn, expand=True))[:, :, ::-1]
        # Its classifier of upside-down lines turns some that are upright.
        read = engine(pixels, return_word_box=True, use_cls=False, text_score=0.0)
        if read.boxes is None or not read.txts:
            return
        lengths = [len(text) for text in read.txts]
        certainty = sum(n * float(score) for n, score in zip(lengths, read.scores, strict=True)) / max(1, sum(lengths))
        tall = sum(
            n for n, box in zip(lengths, read.boxes, strict=True) if box[3][1] - box[0][1] > box[1][0] - box[0][0]
        )
        if (certainty >= CERTAIN and tall < sum(lengths) / 2) or sum(lengths) < LEAST_TEXT:
            yield from _list_words(read, image.size, turn)
            return
    raise RefusedContent("the OCR cannot read most of a page that looks like text")


def _list_words(read: Any, size: tuple[int, int], turn: int) -> Iterator[Word]:
    """Yield the words that were read in a picture of this size after a turn, in degrees, against the clock."""
    angle = _find_page_angle(read.boxes)
    width, height = size
    for line, (text, pieces, score) in enumerate(zip(read.txts, read.word_results, read.scores, strict=True)):
        if float(score) < LEAST_SCORE:
            continue
        for word, box in _join_unspaced_pieces(text, pieces):
            (x0, y0), (x1, y1), (x2, y2), (x3, y3) = box
            x, y = (x0 + x1 + x2 + x3) / 4, (y0 + y1 + y2 + y3) / 4
            wide, high = math.hypot(x1 - x0, y1 - y0) / 2, math.hypot(x3 - x0, y3 - y0) / 2
            x, y = {0: (x, y), 90: (width - y, x), 180: (width - x, height - y), 270: (y, height - x)}[turn]
            yield Word(word, x - wide, y - high, x + wide, y + high, line, angle + math.radians(turn))


def _find_page_angle(boxes: Sequence[Any]) -> float:
    """Return the median direction of the lines, weighted by their lengths, in radians, clockwise."""
    directions = []
    for (x0, y0), (x1, y1), *_ in boxes:
        length = math.hypot(x1 - x0, y1 - y0)
        directions.append((math.atan2(y1 - y0, x1 - x0), length))
    half = sum(length for _, length in directions) / 2
    for angle, length in sorted(directions):
        half -= length
        if half <= 0:
            return float(angle) if abs(angle) > math.radians(0.15) else 0.0
    return 0.0


def _join_unspaced_pieces(text: str, pieces: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Return the words of a line; neighbouring pieces without a space between them are one."""
    position = 0
    word, box = "", None
    for piece, _, quad in pieces:
        start = text.find(piece, position)
        spaced = start < 0 or any(c.isspace() for c in text[position:start])
        position = start + len(piece) if start >= 0 else position
        if box is not None and not spaced:
            word, box = word + piece, [box[0], quad[1], quad[2], box[3]]
            continue
        if box is not None and word:
            yield word, box
        word, box = piece, quad
    if box is not None and word:
        yield word, box
