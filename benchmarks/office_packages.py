"""Office packages taken apart and put together by hand, and the XML of paragraphs, changes and pictures."""

# ruff: noqa: E501
from __future__ import annotations

import base64
import html
import io
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
A = "http://schemas.openxmlformats.org/drawingml/2006/main"
REL = "http://schemas.openxmlformats.org/package/2006/relationships"
OFFICE = "application/vnd.openxmlformats-officedocument"
HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
WHO = 'w:author="Ada Brook" w:date="2021-03-04T05:06:00Z" w:id='


class Parts:
    """A package whose parts are text or bytes, and can be changed."""

    def __init__(self, data: bytes) -> None:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            self.parts = {i.filename: archive.read(i) for i in archive.infolist()}

    def swap(self, part: str, old: str, new: str) -> None:
        data = self.parts[part].decode()
        assert old in data, (part, old)
        self.parts[part] = data.replace(old, new, 1).encode()

    def add(self, part: str, data: str | bytes, kind: str = "", *, of: str = "", rel: str = "", id: str = "") -> None:
        """A new part, its content type, and the relationship that leads to it."""
        raw = data.encode() if isinstance(data, str) else data
        self.parts[part] = (HEAD.encode() if raw.startswith(b"<") and not raw.startswith(b"<?") else b"") + raw
        if kind:
            self.swap("[Content_Types].xml", "</Types>", f'<Override PartName="/{part}" ContentType="{kind}"/></Types>')
        if rel:
            self.link(of, rel, f"/{part}", id or f"rIdX{len(self.parts)}")

    def link(self, of: str, rel: str, target: str, id: str, outside: bool = False) -> None:
        folder, _, name = of.rpartition("/")
        rels = f"{folder}/_rels/{name}.rels".lstrip("/")
        self.parts.setdefault(rels, f'{HEAD}<Relationships xmlns="{REL}"></Relationships>'.encode())
        kind = rel if ":" in rel else f"{R}/{rel}"
        mode = ' TargetMode="External"' if outside else ""
        row = f'<Relationship Id="{id}" Type="{kind}" Target="{html.escape(target)}"{mode}/>'
        self.swap(rels, "</Relationships>", f"{row}</Relationships>")

    def default(self, suffix: str, kind: str) -> None:
        self.swap("[Content_Types].xml", "<Default", f'<Default Extension="{suffix}" ContentType="{kind}"/><Default')

    def data(self) -> bytes:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in self.parts.items():
                archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
        return out.getvalue()


def word(change: Callable[[Any], object] = lambda document: None) -> Parts:
    import docx

    document = docx.Document()
    document.add_heading("Report of a visit", 1)
    change(document)
    out = io.BytesIO()
    document.save(out)
    parts = Parts(out.getvalue())
    del parts.parts["word/stylesWithEffects.xml"]  # half of the package, and the same again
    for part, row in (("word/_rels/document.xml.rels", "Relationship"), ("[Content_Types].xml", "Override")):
        parts.parts[part] = re.sub(rf"<{row} [^>]*stylesWithEffects\.xml[^>]*>".encode(), b"", parts.parts[part])
    names = "mc wp wps a pic wpg v o w14 w15 m"
    spaces = {
        "mc": "http://schemas.openxmlformats.org/markup-compatibility/2006",
        "wp": "http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing",
        "wps": "http://schemas.microsoft.com/office/word/2010/wordprocessingShape",
        "wpg": "http://schemas.microsoft.com/office/word/2010/wordprocessingGroup",
        "a": A,
        "pic": "http://schemas.openxmlformats.org/drawingml/2006/picture",
        "v": "urn:schemas-microsoft-com:vml",
        "o": "urn:schemas-microsoft-com:office:office",
        "w14": "http://schemas.microsoft.com/office/word/2010/wordml",
        "w15": "http://schemas.microsoft.com/office/word/2012/wordml",
        "m": "http://schemas.openxmlformats.org/officeDocument/2006/math",
    }
    root = parts.parts["word/document.xml"].decode()
    lacking = [n for n in names.split() if f"xmlns:{n}=" not in root]
    parts.swap(
        "word/document.xml", "<w:document ", "<w:document " + "".join(f'xmlns:{n}="{spaces[n]}" ' for n in lacking)
    )
    return parts


def body(*paragraphs: str, parts: Parts | None = None) -> Parts:
    made = parts or word()
    made.swap("word/document.xml", "<w:sectPr", "".join(paragraphs) + "<w:sectPr")
    return made


def run(text: str, properties: str = "") -> str:
    return f'<w:r>{f"<w:rPr>{properties}</w:rPr>" if properties else ""}<w:t xml:space="preserve">{text}</w:t></w:r>'


def p(*runs: str, properties: str = "") -> str:
    inside = "".join(r if r.startswith("<") else run(r) for r in runs)
    return f"<w:p>{f'<w:pPr>{properties}</w:pPr>' if properties else ''}{inside}</w:p>"


_serial = iter(range(100, 10_000))


def ins(text: str, tag: str = "ins") -> str:
    return f'<w:{tag} {WHO}"{next(_serial)}">{text if text.startswith("<") else run(text)}</w:{tag}>'


def dele(text: str) -> str:
    inner = f'<w:r><w:delText xml:space="preserve">{text}</w:delText></w:r>'
    return f'<w:del {WHO}"{next(_serial)}">{inner}</w:del>'


def anchor(
    inner: str, uri: str, name: str = "Picture 1", descr: str = "", size: tuple[int, int] = (1800000, 900000)
) -> str:
    return (
        f'<w:r><w:drawing><wp:inline distT="0" distB="0" distL="0" distR="0"><wp:extent cx="{size[0]}" cy="{size[1]}"/>'
        f'<wp:docPr id="{next(_serial)}" name="{name}" descr="{descr}"/><a:graphic><a:graphicData uri="{uri}">{inner}'
        "</a:graphicData></a:graphic></wp:inline></w:drawing></w:r>"
    )


def png(text: str = "") -> bytes:
    """A picture with a pattern, and a text chunk that says who took it."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + bytes((x * 16 ^ y * 16) & 255 for x in range(32) for _ in range(3)) for y in range(16))
    told = chunk(b"tEXt", f"Author\0{text}".encode()) if text else b""
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">2I5B", 32, 16, 8, 2, 0, 0, 0))
        + told
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


PHOTO = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDACgcHiMeGSgjISMtKygwPGRBPDc3PHtYXUlkkYCZlo+AjIqgtObDoKrarYqMyP/L2u71"
    "////m8H////6/+b9//j/wAALCAAIAAgBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAABP/EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAI"
    "AQEAAD8AO//Z"
)


def jpeg(text: str) -> bytes:
    """A grey picture with an EXIF segment and a comment that hold the text."""
    exif = b"Exif\0\0II*\0" + text.encode()
    out = PHOTO[:2]
    for kind, data in ((0xE1, exif), (0xFE, text.encode())):
        out += bytes((0xFF, kind)) + struct.pack(">H", len(data) + 2) + data
    return out + PHOTO[2:]


def picture(id: str, descr: str = "", name: str = "Picture 1") -> str:
    return anchor(
        f'<pic:pic><pic:nvPicPr><pic:cNvPr id="0" name="{name}"/><pic:cNvPicPr/></pic:nvPicPr><pic:blipFill><a:blip r:embed="{id}"/>'
        '<a:stretch><a:fillRect/></a:stretch></pic:blipFill><pic:spPr><a:xfrm><a:off x="0" y="0"/><a:ext cx="1800000" cy="900000"/>'
        '</a:xfrm><a:prstGeom prst="rect"><a:avLst/></a:prstGeom></pic:spPr></pic:pic>',
        "http://schemas.openxmlformats.org/drawingml/2006/picture",
        name,
        descr,
    )


def workbook(change: Callable[[Any], object]) -> Parts:
    import openpyxl

    book = openpyxl.Workbook()
    book.active.title = "Sheet1"
    change(book)
    out = io.BytesIO()
    book.save(out)
    return Parts(out.getvalue())
