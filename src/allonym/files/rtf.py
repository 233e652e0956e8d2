"""RTF: body, headers, notes, comments and fields form one document; all other characters are kept.

Pictures become grey. Properties, embedded objects, the list of authors of changes, and destinations of an unknown kind
are removed. Names of fonts and styles are kept.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from allonym.document import PROSE, TECHNICAL
from allonym.errors import DataError
from allonym.files.encoding import Encoding
from allonym.files.pictures import make_grey_png
from allonym.files.record import Format
from allonym.files.segments import Segment, parse_segments

_TOKEN = re.compile(
    r"\\(?P<word>[a-zA-Z]{1,32})(?P<number>-?\d{1,10})?(?P<space> ?)|\\'(?P<hex>[0-9a-fA-F]{2})|\\(?P<sign>[^a-zA-Z])"
    r"|(?P<open>\{)|(?P<close>\})|(?P<text>[^\\{}\r\n]+)",
    re.DOTALL,
)
_DESTINATION = re.compile(r"\{\s*(?P<star>\\\*\s*)?\\(?P<word>[a-zA-Z]+)")
_TEXTS = {"~": "\u00a0", "_": "\u2011", "\\": "\\", "{": "{", "}": "}"}
_SYMBOLS = {
    "emdash": "\u2014", "endash": "\u2013", "lquote": "\u2018", "rquote": "\u2019", "ldblquote": "\u201c",
    "rdblquote": "\u201d", "bullet": "\u2022", "enspace": " ", "emspace": " ",
}  # fmt: skip
_BREAKS = {**dict.fromkeys("par line cell nestcell row nestrow sect page column".split(), "\n"), "tab": "\t"}
_REMOVED = frozenset("info pict nonshppict object".split())
_TABLES = frozenset(("fonttbl", "colortbl", "stylesheet"))
_READ = frozenset(
    "annotation fldinst bkmkstart bkmkend shpinst shptxt shppict pn footnote ftnsep ftnsepc aftnsep aftnsepc atrfstart "
    "atrfend atnref cs ds ts tableprops listtable listoverridetable listname ud upr background nesttableprops".split()
)
"""Destinations marked as ignorable that are kept; all others are removed."""

_TECHNICAL = frozenset("fldinst bkmkstart bkmkend listname atrfstart atrfend atnref".split())
_ASIDES = _TECHNICAL | frozenset(
    "annotation footnote shptxt header headerl headerr headerf footer footerl footerr footerf".split()
)
"""Destinations whose texts are read after the text around them."""

_CHARSETS = {
    "77": "10000", "128": "932", "129": "949", "130": "1361", "134": "936", "136": "950", "161": "1253", "162": "1254",
    "163": "1258", "177": "1255", "178": "1256", "186": "1257", "204": "1251", "222": "874", "238": "1250",
}  # fmt: skip
"""Code pages of the character sets of fonts, after the RTF specification 1.9.1."""

_GOAL = re.compile(r"\\(?:picw|pich|picwgoal|pichgoal|picscalex|picscaley)-?\d+")
MAX_DEPTH = 1000
MAX_FALLBACK = 8
"""Greatest number of characters that stand for one of Unicode; more of them are read as text."""


@dataclass(frozen=True, slots=True)
class _Group:
    """What holds in a group: the codec of its font, how many characters stand for one of Unicode, the role of its
    texts, and whether these stand beside the text, as notes do."""

    codec: str
    fallback: int = 1
    role: str = PROSE
    is_aside: bool = False


@dataclass(slots=True)
class _Run:
    """A run of text without formatting in between."""

    start: int
    end: int
    after_word: bool
    group: _Group
    text: list[str] = field(default_factory=list, repr=False)
    raw: bytearray = field(default_factory=bytearray, repr=False)

    def add_text(self, text: str, end: int) -> None:
        self.flush()
        self.text.append(text)
        self.end = end

    def flush(self) -> None:
        """Decode the bytes read so far; several of them may be one character."""
        if self.raw:
            self.text.append(bytes(self.raw).decode(self.group.codec, "replace"))
            self.raw.clear()


def _find_rtf_segments(source: str) -> Iterator[Segment]:
    """Yield the texts of an RTF source, decoded as Latin-1, and what is removed from it.

    Raises:
        DataError: it is no RTF.
    """
    if not source.lstrip("\ufeff \r\n").startswith("{\\rtf"):
        raise DataError("not an RTF file: it does not begin with {\\rtf")
    page = re.search(r"\\ansicpg(\d+)", source[:2000])
    codec = _find_codec(page[1] if page else "1252")
    fonts = _read_font_codecs(source)
    default = re.search(r"\\deff(\d+)", source[:2000])
    plain = fonts.get(default[1] if default else "", codec)
    stack = [_Group(plain)]
    run: _Run | None = None
    asides: list[Segment] = []
    gaps = {False: "\n", True: "\n"}
    position = skipped = 0
    while match := _TOKEN.search(source, position):
        start, position = match.span()
        word = match["word"]
        if match["hex"] or match["text"] or match["sign"] in _TEXTS or word == "u" or word in _SYMBOLS:
            if run is None:
                before = source[start - 1 : start]
                run = _Run(start, start, before.isalnum() or before == "-", stack[-1])
            skipped = _add_to_run(run, match, skipped)
            continue
        if match["sign"] == "\n" or match["sign"] == "\r":
            word = "par"
        if run is not None:
            is_aside = run.group.is_aside
            segment = _make_segment(run, gaps[is_aside])
            gaps[is_aside] = ""
            if is_aside:
                asides.append(segment)
            else:
                yield segment
            run = None
        skipped = 0
        if match["open"]:
            if (end := _find_removed_end(source, start)) is not None:
                position = end
                asides.append(Segment(start, end, "", fixed=_make_instead(source[start:end])))
                continue
            if len(stack) > MAX_DEPTH:
                raise DataError(f"groups are nested more than {MAX_DEPTH} deep")
            destination = _DESTINATION.match(source, start)
            word = destination["word"] if destination else ""
            group = replace(stack[-1], role=TECHNICAL) if word in _TECHNICAL else stack[-1]
            if word in _ASIDES:
                group = replace(group, is_aside=True)
                gaps[True] = "\n"
            stack.append(group)
        elif match["close"]:
            if len(stack) > 1:
                stack.pop()
        elif word in ("plain", "f"):
            stack[-1] = replace(stack[-1], codec=fonts.get(match["number"], codec) if match["number"] else plain)
        elif word == "uc":
            stack[-1] = replace(stack[-1], fallback=min(max(0, int(match["number"] or 1)), MAX_FALLBACK))
        elif word == "bin":
            position = _find_binary_end(source, match)
            asides.append(Segment(start, position, "", fixed="{}"))
        elif word in _BREAKS:
            gaps[stack[-1].is_aside] += _BREAKS[word]
        elif word in _REMOVED:  # behind other words of its group
            position = _find_group_end(source, position) - 1
            asides.append(Segment(start, position, "", fixed=""))
        elif word in _TABLES:
            position = _find_group_end(source, start) - 1
    if run is not None:
        yield _make_segment(run, gaps[run.group.is_aside])
    yield from asides


def _find_codec(page: str) -> str:
    try:
        return codecs.lookup({"10000": "mac_roman", "65001": "utf-8"}.get(page, f"cp{page}")).name
    except LookupError:
        return "cp1252"


def _read_font_codecs(source: str) -> dict[str, str]:
    """Return the codecs of the fonts whose characters are others than those of the file, by the fonts' numbers."""
    table = source.find("{\\fonttbl")
    fonts = source[table : _find_group_end(source, table + 1)] if table >= 0 else ""
    listed = re.finditer(r"\\f(\d+)(?![^{}]*\\f\d)[^{}]*?\\fcharset(\d+)", fonts)
    return {font[1]: _find_codec(_CHARSETS[font[2]]) for font in listed if font[2] in _CHARSETS}


def _add_to_run(run: _Run, match: re.Match[str], skipped: int) -> int:
    """Add a text to a run, and return how many of the next characters stand for one that was added."""
    end = match.end()
    if match["word"] == "u":
        code = int(match["number"] or 63) % 65536
        run.add_text(chr(code), end)
        return run.group.fallback
    if match["hex"]:
        run.end = end
        if not skipped:
            run.raw.append(int(match["hex"], 16))
        return max(0, skipped - 1)
    text = match["text"] or _TEXTS.get(match["sign"] or "") or _SYMBOLS[match["word"]]
    if match["text"]:
        text = text.encode("latin-1").decode(run.group.codec, "replace")
    run.add_text(text[skipped:], end)
    return max(0, skipped - len(text))


def _make_segment(run: _Run, gap: str) -> Segment:
    run.flush()
    text = "".join(run.text).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    lead = " " if run.after_word else ""
    encode = partial(_encode_text, lead=lead, fallback=run.group.fallback)
    return Segment(run.start, run.end, text, encode, gap, role=run.group.role)


def _encode_text(text: str, lead: str, fallback: int) -> str:
    pieces = [lead]
    for char in text:
        if char in "\\{}":
            pieces.append(f"\\{char}")
        elif char == "\n":
            pieces.append("\\line ")
        elif char == "\t":
            pieces.append("\\tab ")
        elif ord(char) < 128:
            pieces.append(char)
        else:
            units = char.encode("utf-16-le", "surrogatepass")
            codes = (int.from_bytes(units[i : i + 2], "little", signed=True) for i in range(0, len(units), 2))
            pieces += (f"\\u{code}{'?' * fallback or ' '}" for code in codes)
    return "".join(pieces)


def _find_removed_end(source: str, start: int) -> int | None:
    """Return the end of the group at ``start`` if it is removed, else None."""
    destination = _DESTINATION.match(source, start)
    if destination is None:
        return None
    word = destination["word"]
    is_removed = word not in _READ if destination["star"] else word in _REMOVED
    return _find_group_end(source, destination.end()) if is_removed else None


def _find_group_end(source: str, position: int) -> int:
    """Return the end of the group that ``position`` lies in."""
    depth = 1
    while match := _TOKEN.search(source, position):
        position = match.end()
        depth += bool(match["open"]) - bool(match["close"])
        if match["word"] == "bin":
            position = _find_binary_end(source, match)
        if not depth:
            return position
    raise DataError("a group of the RTF file has no end")


def _find_binary_end(source: str, match: re.Match[str]) -> int:
    end = match.end() + max(0, int(match["number"] or 0))
    if end > len(source):
        raise DataError("binary data of the RTF file have no end")
    return end


def _make_instead(group: str) -> str:
    """Return what stands instead of a removed group: a grey picture for a picture, nothing for another."""
    if not re.match(r"\{\s*\\pict\b", group):
        return ""
    return f"{{\\pict\\pngblip{''.join(_GOAL.findall(group))} {make_grey_png().hex()}}}"


RTF = Format("rtf", partial(parse_segments, find_segments=_find_rtf_segments, encoding=Encoding("latin-1")))
