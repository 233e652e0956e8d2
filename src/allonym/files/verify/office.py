"""What can be read in a DOCX or XLSX package by plain means: all parts, hidden ones too, packages in packages.

Three readings: with tracked changes accepted, rejected, and everything as it stands. It knows of XML and zip, and
nothing of how the files are treated.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from typing import Any, cast

from allonym.errors import DataError

_OUT = {"accepted": ("del", "moveFrom"), "rejected": ("ins", "moveTo"), "raw": ()}
_BREAKS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_FORMULAS = frozenset(("f", "formula", "formula1", "formula2"))
_PROGRAM = re.compile(r"(Microsoft|LibreOffice|Apache|Google|Apple|WPS)[\w ./$\-]*")
_SMALL = re.compile(r"\s*[-+]?\d{0,6}(\.\d+)?([eE][-+]?\d+)?\s*")
_SAYS = re.compile(r"\s|[@:\\/]|[^\x00-\x7f]|\d{7}")
_LOOKS = frozenset(
    "Ignorable Requires schemaLocation style eqn path uri ascii hAnsi cs eastAsia typeface formatCode Type PartName "
    "ContentType textboxrect connectlocs wrapcoords sqref ref spans".split()
)
_NAMES = frozenset(
    "name descr title alt author initials tooltip anchor string instr display displayText prompt promptTitle error "
    "errorTitle userId userName comment text location caption user".split()
)
_VALUED = frozenset(
    "alias tag listItem listEntry default statusText helpText tblCaption tblDescription attr lvlText docVar "
    "filter".split()
)
_UNSAID = frozenset(("lsdException", "font", "altName", "compatSetting"))
_USUAL = frozenset(
    "[Content_Types] document header footer footnotes endnotes comments commentsExtended settings webSettings styles "
    "stylesWithEffects numbering fontTable theme core app chart chartEx style colors data drawing layout quickStyle "
    "workbook sheet table sharedStrings calcChain metadata vmlDrawing commentsDrawing comment image picture font item "
    "Microsoft_Excel_Sheet Microsoft_Excel_Worksheet Microsoft_Word_Document oleObject".split()
)
_DEEPEST = 4


def office_texts(data: bytes) -> Iterator[tuple[str, str]]:
    """(part, text) of all that can be read, tracked changes accepted.

    Raises:
        DataError: it is no package, or a part of it is not valid XML.
    """
    return _package(data, "accepted", "", 0)


def rejected_texts(data: bytes) -> Iterator[tuple[str, str]]:
    """As :func:`office_texts`, tracked changes rejected."""
    return _package(data, "rejected", "", 0)


def raw_texts(data: bytes) -> Iterator[tuple[str, str]]:
    """As :func:`office_texts`, inserted and deleted text side by side."""
    return _package(data, "raw", "", 0)


def _package(data: bytes, reading: str, where: str, depth: int) -> Iterator[tuple[str, str]]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            yield f"{where}zip", archive.comment.decode("latin-1")
            for info in archive.infolist():
                place = where + info.filename
                yield place, " ".join([_unusual(info.filename), *_strings(info.comment + info.extra)])
                yield from _part(info.filename, archive.read(info), reading, place, depth)
    except (zipfile.BadZipFile, EOFError, NotImplementedError) as error:
        raise DataError(f"the result is no office file ({type(error).__name__})") from None


def _unusual(name: str) -> str:
    """The words of a part's name that are not those that every office file has."""
    stem = name.rpartition("/")[2].rpartition(".")[0]
    plain = re.sub(r"\d+$", "", re.sub(r"\.xml$", "", stem))
    return "" if plain in _USUAL or not plain else plain


def _part(name: str, data: bytes, reading: str, place: str, depth: int) -> Iterator[tuple[str, str]]:
    suffix = name.rpartition(".")[2].lower()
    if data.startswith(b"PK\x03\x04") and depth < _DEEPEST:
        yield from _package(data, reading, f"{place}/", depth + 1)
    elif suffix in ("xml", "rels", "vml"):
        yield place, "\n".join(_xml(data, reading, place))
    elif "/fonts/" not in name and "/theme/" not in name:
        yield place, "\n".join(_strings(_told(data)))


def _xml(data: bytes, reading: str, place: str) -> Iterator[str]:
    from lxml import etree

    try:
        parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True)
        root = cast(Any, etree.fromstring(data, parser))
    except etree.XMLSyntaxError:
        raise DataError(f"the result's part {place} is not valid XML") from None
    paragraphs: dict[Any, list[str]] = {}
    loose: list[str] = []
    for node in (*root.itersiblings(preceding=True), *root.itersiblings()):
        loose.append(node.text or "")
    for node in root.iter():
        if node.tail and node.tail.strip():
            loose.append(node.tail)
        if not isinstance(node.tag, str):
            loose.append(node.text or "")
            continue
        local = _local(node)
        loose += _attributes(node, local)
        above = [_local(a) for a in node.iterancestors()]
        if local == "p":
            paragraphs[node] = []
        elif "p" in above and (local in ("t", "delText") or (local in _BREAKS and above[0] == "r")):
            if not any(a in _OUT[reading] for a in above):
                owner = next(a for a in node.iterancestors() if _local(a) == "p")
                paragraphs[owner].append(_BREAKS.get(local) or node.text or "")
        elif local in ("instrText", "delInstrText") and node.text:
            goes_on = loose and loose[-1].startswith("\0")
            loose.append("\0" + (loose.pop()[1:] if goes_on else "") + node.text)
        elif node.text and node.text.strip():
            loose += _element(node, local)
    out: list[str] = []
    goes_on = False
    for paragraph, texts in paragraphs.items():
        text = "".join(texts)
        if goes_on and out:
            out[-1] += text
        else:
            out.append(text)
        goes_on = any(_local(e) in _OUT[reading] for e in paragraph.iterfind("{*}pPr/{*}rPr/*"))
    yield from out
    yield from (text.lstrip("\0") for text in loose)


def _element(node: Any, local: str) -> Iterator[str]:
    if local in _FORMULAS and "spreadsheetml" in str(node.tag):
        yield from re.findall(r'"([^"]*)"', node.text)
    elif local == "Application" and _PROGRAM.fullmatch(node.text):
        return
    elif local == "t" or not _SMALL.fullmatch(node.text):
        yield node.text


def _attributes(node: Any, local: str) -> Iterator[str]:
    parent = node.getparent()
    if local in _UNSAID:
        return
    if local == "name" and parent is not None and _local(parent) == "style":
        if not any(str(a).endswith("customStyle") for a in parent.attrib):
            return
        yield from map(str, node.attrib.values())
        return
    inside = local == "Relationship" and node.get("TargetMode") != "External"
    for attribute, value in node.attrib.items():
        plain = str(attribute).rpartition("}")[2]
        if plain in _LOOKS or not value or (inside and plain == "Target"):
            continue
        if plain in _NAMES or local in _VALUED or plain == "Target" or _SAYS.search(value):
            yield str(value)


def _local(node: Any) -> str:
    return str(node.tag).rpartition("}")[2]


def _told(data: bytes) -> bytes:
    """Of a PNG or JPEG what is told beside its picture; other data whole."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        out, at = b"", 8
        while at + 8 <= len(data):
            length = int.from_bytes(data[at : at + 4], "big")
            if data[at + 4 : at + 8] not in (b"IDAT", b"IHDR", b"IEND", b"PLTE"):
                out += b" " + data[at + 8 : at + 8 + length]
            at += length + 12
        return out + b" " + data[at:]
    if data.startswith(b"\xff\xd8\xff"):
        out, at = b"", 2
        while at + 4 <= len(data) and data[at] == 0xFF and data[at + 1] != 0xDA:
            length = int.from_bytes(data[at + 2 : at + 4], "big")
            if data[at + 1] not in (0xDB, 0xC4):  # tables of numbers
                out += b" " + data[at + 4 : at + 2 + length]
            at += 2 + length
        return out
    return data


def _strings(data: bytes) -> list[str]:
    """Runs of four and more letters, digits and signs, in ASCII, Latin-1 and UTF-16."""
    found = [s.decode("latin-1") for s in re.findall(rb"[\x20-\x7e\xc0-\xff]{4,}", data)]
    wide = re.findall(rb"(?:[\x20-\x7e\xc0-\xff]\x00){4,}", data)
    return found + [s.decode("utf-16-le") for s in wide]
