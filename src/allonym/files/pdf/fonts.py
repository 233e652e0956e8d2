"""Fonts of a PDF: decode a string's bytes to characters, each with its Unicode text and its advance.

A character with an unknown text (no /ToUnicode, a private encoding of the font) has the text None. The tables of
encodings, glyph names, standard widths and CMaps are those of pdfminer.six.
"""

from __future__ import annotations

import io
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, cast

import pikepdf
from pdfminer.cmapdb import CMapParser, FileUnicodeMap, IdentityCMap
from pdfminer.encodingdb import EncodingDB, name2unicode
from pdfminer.fontmetrics import FONT_METRICS
from pdfminer.pdffont import CFFFont, PDFCIDFont, Type1FontHeaderParser
from pdfminer.psparser import PSException

from allonym.files.pdf.objects import convert_to_pdfminer

_SERIF = re.compile(
    r".*(times|serif|roman|garamond|georgia|cambria|palatino|bookman|century|schoolbk|minion|caslon|baskerville|didot)"
    r"|(cm|sf)(r|b|bx|ti|sl|rm|bi)\d*$|lmr"
)
"""Families with serifs, by their lower-case names; those of TeX do not say so in their flags."""

_LIGATURES = {c: unicodedata.normalize("NFKC", c) for c in map(chr, range(0xFB00, 0xFB07))}


@dataclass(frozen=True, slots=True)
class Character:
    """One character of a string.

    Attributes:
        start, end: half-open bytes of the string.
        text: its text; None if unknown.
        width: its advance for a font of size 1, along the line.
        space: whether word spacing is added to it.
    """

    start: int
    end: int
    text: str | None = field(repr=False)
    width: float
    space: bool = False


class Font(ABC):
    """A font of a page.

    Attributes:
        decode_string: returns the characters of a string.
        vertical: whether lines are vertical.
        style: the most similar standard font: its family and whether it is bold.
    """

    def __init__(self, spec: Any) -> None:
        self.vertical = False
        self.style = _choose_upright_standard_font(spec)
        self._map = _read_unicode_map(spec)
        self.decode_string = lru_cache(10_000)(self._decode_characters)

    @abstractmethod
    def _decode_characters(self, data: bytes) -> list[Character]: ...

    def _find_code_text(self, code: int, default: str | None) -> str | None:
        mapped = self._map.get(code)
        if mapped is None or not mapped.strip("\x00"):
            mapped = default
        return "".join(_LIGATURES.get(c, c) for c in mapped) if mapped else None


class SimpleFont(Font):
    """A font with one byte per character."""

    def __init__(self, spec: Any) -> None:
        super().__init__(spec)
        self._names = _read_code_texts(spec)
        self._widths, self._missing = _read_advances(spec, self._names)

    def _decode_characters(self, data: bytes) -> list[Character]:
        out: list[Character] = []
        for i, code in enumerate(data):
            text, width = self._find_code_text(code, self._names.get(code)), self._widths.get(code, self._missing)
            out.append(Character(i, i + 1, text, width, code == 32))
        return out


class CidFont(Font):
    """A composite font, whose CMap defines the number of bytes per character."""

    def __init__(self, spec: Any) -> None:
        super().__init__(spec)
        below = convert_to_pdfminer(spec.DescendantFonts[0])
        encoding = convert_to_pdfminer(spec.get("/Encoding"))
        below["Encoding"] = encoding
        self._inner: Any = PDFCIDFont(cast(Any, None), below)
        self.vertical = bool(self._inner.is_vertical())
        self._own = hasattr(encoding, "get_data")  # a CMap in the file, which pdfminer does not read

    def _decode_characters(self, data: bytes) -> list[Character]:
        out: list[Character] = []
        if self._own:
            return [Character(0, len(data), None, 0.0)] if data else []
        if isinstance(self._inner.cmap, IdentityCMap):
            for i in range(0, len(data), 2):
                code = int.from_bytes(data[i : i + 2], "big")
                out.append(self._make_character(i, min(i + 2, len(data)), code, code))
            return out
        table = self._inner.cmap.code2cid
        start, node = 0, table
        for i, byte in enumerate(data):
            node = node.get(byte) if isinstance(node, dict) else None
            if isinstance(node, dict):
                continue
            code = int.from_bytes(data[start : i + 1], "big")
            out.append(self._make_character(start, i + 1, code, node))
            start, node = i + 1, table
        if start < len(data):
            out.append(Character(start, len(data), None, 0.0))
        return out

    def _make_character(self, start: int, end: int, code: int, cid: int | None) -> Character:
        if cid is None:
            return Character(start, end, None, 0.0)
        other: str | None = None
        if code not in self._map:
            text = self._inner.unicode_map.cid2unichr.get(cid) if self._inner.unicode_map else None
            other = text if isinstance(text, str) else None
        width = float(self._inner.char_width(cid))
        return Character(start, end, self._find_code_text(code, other), width, end - start == 1 and code == 32)


def read_font(spec: Any) -> Font:
    """Return the font of a dictionary. Raises ValueError, LookupError or TypeError if it is broken."""
    try:
        return CidFont(spec) if spec.get("/Subtype") == "/Type0" else SimpleFont(spec)
    except PSException:
        raise ValueError("a table of the font is broken") from None


def _read_unicode_map(spec: Any) -> dict[int, str]:
    stream = spec.get("/ToUnicode")
    if not isinstance(stream, pikepdf.Stream):
        return {}
    unicode_map = FileUnicodeMap()
    CMapParser(unicode_map, io.BytesIO(stream.read_bytes())).run()
    return {code: text for code, text in unicode_map.cid2unichr.items() if isinstance(text, str)}


def _read_code_texts(spec: Any) -> dict[int, str]:
    """Return the text of each code, from the encoding, the glyph names or, for a private encoding, the font program."""
    encoding = spec.get("/Encoding")
    descriptor = spec.get("/FontDescriptor") or {}
    named = encoding.get("/BaseEncoding") if isinstance(encoding, pikepdf.Dictionary) else encoding
    base = str(named)[1:] if isinstance(named, pikepdf.Name) else ""
    table = dict(EncodingDB.encodings.get(base) or _read_built_in_encoding(spec, descriptor))
    if isinstance(encoding, pikepdf.Dictionary) and "/Differences" in encoding:
        code = 0
        for item in encoding.Differences:
            if isinstance(item, pikepdf.Name):
                text = decode_glyph_name(str(item)[1:])
                # pdfminer keeps the base encoding's sign for unknown names, but that sign is not drawn.
                table.pop(code, None)
                if text is not None:
                    table[code] = text
                code += 1
            else:
                code = int(item)
    return table


def _read_built_in_encoding(spec: Any, descriptor: Any) -> dict[int, str]:
    name = str(spec.get("/BaseFont", "/")).rpartition("+")[2].lstrip("/")
    subtype = str(spec.get("/Subtype", ""))
    symbolic = bool(int(descriptor.get("/Flags", 0)) & 4)
    if subtype == "/Type3":
        return {}
    if "/FontFile" in descriptor:
        stream = descriptor.FontFile
        head = stream.read_bytes()[: int(stream.get("/Length1", 0)) or None]
        encoding = Type1FontHeaderParser(io.BytesIO(head)).get_encoding()
        # "/Encoding StandardEncoding def" lists no code.
        return dict(encoding) if encoding else dict(EncodingDB.encodings["StandardEncoding"])
    if "/FontFile3" in descriptor:
        program: Any = CFFFont(name, io.BytesIO(descriptor.FontFile3.read_bytes()))
        texts = {c: decode_glyph_name(_decode_name(program.gid2name.get(g))) for c, g in program.code2gid.items()}
        encoding = {code: text for code, text in texts.items() if text is not None}
        return encoding or dict(EncodingDB.encodings["StandardEncoding"])
    if name in ("Symbol", "ZapfDingbats"):
        return _STANDARD_SIGNS
    if symbolic and "/FontFile2" in descriptor:
        return {}
    return dict(EncodingDB.encodings["WinAnsiEncoding" if subtype == "/TrueType" else "StandardEncoding"])


_STANDARD_SIGNS = {32: " ", **dict.fromkeys((*range(33, 127), *range(160, 255)), "□")}
"""The two standard symbol fonts: Greek letters, arrows, bullets. Their text is a box, which is not a letter."""


def _decode_name(name: Any) -> str:
    return name.decode("latin-1") if isinstance(name, bytes) else str(name or "")


def decode_glyph_name(name: str) -> str | None:
    """Return the text of a glyph's name, or None for names without one (``g12``, ``C0_1``, ``.notdef``)."""
    if name == ".notdef":
        return None
    try:
        return name2unicode(name) or None
    except (LookupError, ValueError):
        # A long word of letters names a mathematical or decorative sign, such as "bracketleftbig".
        return "\u25a1" if len(name) > 5 and name.isalpha() else None


def _read_advances(spec: Any, code_texts: Mapping[int, str]) -> tuple[dict[int, float], float]:
    """Return the advance of each code for size 1, and that of all other codes."""
    scale = 0.001
    if spec.get("/Subtype") == "/Type3":
        scale = abs(float(spec.FontMatrix[0])) or 0.001
    descriptor = spec.get("/FontDescriptor") or {}
    missing = float(descriptor.get("/MissingWidth", 0)) * scale
    if "/Widths" in spec:
        first = int(spec.get("/FirstChar", 0))
        return {first + i: float(w) * scale for i, w in enumerate(spec.Widths)}, missing
    standard = find_standard_font_name(str(spec.get("/BaseFont", "")))
    metrics: Mapping[str, float] = FONT_METRICS[standard][1]
    return {code: metrics.get(text, 500) * scale for code, text in code_texts.items()}, 0.5


def find_standard_font_name(base: str) -> str:
    """Return the standard font for a name such as ``/Arial,Bold``, by default Helvetica."""
    name = base.lstrip("/").rpartition("+")[2]
    if name in FONT_METRICS:
        return name
    lower = name.lower()
    bold, italic = "bold" in lower or "black" in lower, "italic" in lower or "oblique" in lower
    if "courier" in lower or "mono" in lower:
        return "Courier" + ("-" if bold or italic else "") + "Bold" * bold + "Oblique" * italic
    if _SERIF.match(lower) and "sans" not in lower:
        return "Times-" + ("Bold" * bold + "Italic" * italic or "Roman")
    return "Helvetica" + ("-" if bold or italic else "") + "Bold" * bold + "Oblique" * italic


def _choose_upright_standard_font(spec: Any) -> str:
    """Return the upright standard font for painting a replacement."""
    below = spec.get("/DescendantFonts")
    inner = below[0] if isinstance(below, pikepdf.Array) and len(below) else spec
    descriptor = inner.get("/FontDescriptor") or {}
    flags = int(descriptor.get("/Flags", 0)) if descriptor else 0
    name = find_standard_font_name(str(spec.get("/BaseFont", "")))
    bold = "Bold" in name or bool(flags & (1 << 18))
    family = "Courier" if name.startswith("Courier") or flags & 1 else "Times" if name.startswith("Times") else ""
    family = family or ("Times" if flags & 2 else "Helvetica")
    if bold:
        return f"{family}-Bold"
    return "Times-Roman" if family == "Times" else family


def measure_text_width(text: str, font_name: str) -> float:
    """Return the width of a text in a standard font of height 1; 0 if the font lacks a sign."""
    try:
        text.encode("cp1252")
    except UnicodeEncodeError:
        return 0.0
    metrics = FONT_METRICS[font_name][1]
    return sum(metrics.get(c, 600) for c in text) / 1000
