"""DOCX: paragraphs of body, headers, footers and notes are one document; formatting stays.

The runs of a paragraph are read as one text, so that a name in two formats is one name. Comments, tracked changes,
images and embedded objects make the file refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from allonym.batch import lead_in
from allonym.errors import RefusedContent
from allonym.files.office import (
    COMMON,
    REFUSED,
    Package,
    Slot,
    check_parts,
    common_slots,
    local_name,
    parsed,
    slot_of_attribute,
    slot_of_text,
)
from allonym.files.record import Chunk, Format, Job, Parsed

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"

_ALLOWED = {
    r"word/(document|header\d*|footer\d*|footnotes|endnotes)\.xml": "text",
    r"word/settings\.xml": "settings",
    r"word/(styles|stylesWithEffects|fontTable|webSettings|numbering)\.xml": "keep",
    r"word/theme/.*\.xml": "keep",
    r"word/fonts/.*": "keep",
    **COMMON,
}
_REFUSED = (*REFUSED, (r"word/glossary/.*", "a glossary"), (r"word/afchunk.*", "an inserted file"))

_CHANGES = frozenset(("ins", "del", "moveFrom", "moveTo", "delText", "cellIns", "cellDel", "cellMerge"))
_UNTREATED = {"altChunk": "an inserted file", "object": "an embedded object", "dataBinding": "a bound field"}
_BREAKS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-", "softHyphen": "", "sym": "", "ptab": "\t"}
_TEXTS = frozenset(("t", "instrText"))
_ATTRIBUTES = {
    "docPr": ("name", "descr", "title"),
    "cNvPr": ("name", "descr", "title"),
    "fldSimple": (f"{W}instr",),
    "alias": (f"{W}val",),
    "tag": (f"{W}val",),
    "bookmarkStart": (f"{W}name",),
    "hyperlink": (f"{W}tooltip", f"{W}anchor"),
    "placeholder": (),
    "listItem": (f"{W}displayText", f"{W}value"),
    "default": (f"{W}val",),
    "statusText": (f"{W}val",),
    "helpText": (f"{W}val",),
    "tblCaption": (f"{W}val",),
    "tblDescription": (f"{W}val",),
    "shape": ("alt", "title", "href"),
    "textpath": ("string",),
}


def _column_names(root: Any) -> dict[Any, str]:
    """The paragraphs of table cells, each with the name of its column; in a table of two columns: what stands left."""
    names: dict[Any, str] = {}
    for table in root.iter("{*}tbl"):
        rows = [[cell for cell in row if local_name(cell) == "tc"] for row in table if local_name(row) == "tr"]
        for nth, row in enumerate(rows):
            for at, cell in enumerate(row):
                if len(row) == 2:
                    naming = row[0] if at else None
                else:
                    naming = rows[0][at] if nth and len(rows[0]) == len(row) else None
                if naming is not None:
                    name = "".join(naming.itertext(f"{W}t")).strip().rstrip(":")
                    names |= dict.fromkeys((p for p in cell if local_name(p) == "p"), name)
    return names


def _slots(package: Package, name: str) -> Iterator[Slot]:
    """The slots of a part, paragraph by paragraph; then those of attributes."""
    root = package.tree(name)
    attributes: list[Slot] = []
    texts: dict[Any, list[Slot]] = {}
    codes: dict[Any, list[Slot]] = {}
    gap: dict[Any, str] = {}
    order: list[Any] = []
    columns = _column_names(root)
    for element in root.iter("{*}*"):
        local = local_name(element)
        if local in _CHANGES or local.endswith("PrChange"):
            raise RefusedContent(f"tracked changes cannot be treated yet (part {name}); accept or reject them first")
        if local in _UNTREATED:
            raise RefusedContent(f"{_UNTREATED[local]} cannot be treated yet (part {name})")
        for attribute in _ATTRIBUTES.get(local, ()):
            if element.get(attribute):
                attributes.append(slot_of_attribute(package, name, element, attribute))
        if local == "p":
            order.append(element)
            texts[element], codes[element] = [], []
            column = columns.get(element, "")
            gap[element] = "\n" + (lead_in(column, "".join(element.itertext(f"{W}t"))) if column else "")
        elif local in _TEXTS or local in _BREAKS:
            paragraph = next((a for a in element.iterancestors() if local_name(a) == "p"), None)
            if paragraph is None:
                continue
            if local in _BREAKS:
                if local != "tab" or local_name(element.getparent()) == "r":
                    gap[paragraph] += _BREAKS[local]
                continue
            if local == "instrText":
                # The code of a field, which may be cut into runs, is not read where its result stands.
                codes[paragraph].append(slot_of_text(package, name, element, "" if codes[paragraph] else "\n"))
                continue
            texts[paragraph].append(slot_of_text(package, name, element, gap[paragraph]))
            gap[paragraph] = ""
        elif element.text and element.text.strip() and local not in ("posOffset", "align", "pctWidth", "pctHeight"):
            attributes.append(slot_of_text(package, name, element))
    for paragraph in order:
        yield from texts[paragraph]
    for paragraph in order:
        yield from codes[paragraph]
    yield from attributes


def _parse(chunk: Chunk, job: Job) -> Parsed:
    package = Package.open(chunk.data)
    if "word/document.xml" not in package.names():
        raise RefusedContent("not a Word document: it has no part word/document.xml")
    tasks = check_parts(package, _ALLOWED, _REFUSED)
    slots: list[Slot] = []
    texts = [name for name, task in tasks.items() if task == "text"]
    for name in sorted(texts, key=lambda n: (n != "word/document.xml", [int(d) for d in re.findall(r"\d+", n)], n)):
        slots += _slots(package, name)
    for name, task in tasks.items():
        if task == "settings":
            for element in package.tree(name).iter("{*}*"):
                if local_name(element) in ("docVar", "mailMerge"):
                    raise RefusedContent(f"document variables and mail merge cannot be treated yet (part {name})")
    return parsed(package, [*slots, *common_slots(package, tasks)])


DOCX = Format("docx", _parse)
