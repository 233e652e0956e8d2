"""XLSX: all texts of a workbook form one document; formulas, formats and layout are kept.

Long numbers and dates are read as text too: a finding turns the cell into a text cell. Comments, charts and drawings
are anonymised. Pictures become grey unless the policy keeps them. A file with pivot tables, embedded objects or links
to other files is refused.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any

from allonym.batch import format_lead_in
from allonym.errors import DataError, RefusedContent
from allonym.files.office import (
    Package,
    Slot,
    check_parts,
    check_printable,
    is_usual_text,
    local_name,
    make_text_slot,
    parse_slots,
    slot_of_attribute,
)
from allonym.files.officeparts import COMMON, REFUSED, all_slots, text_parts, treat_textless_parts
from allonym.files.officetext import list_part_slots
from allonym.files.record import Chunk, Format, Job, Parsed

_ALLOWED = {
    r"xl/workbook\.xml": "workbook",
    r"xl/sharedStrings\.xml": "strings",
    r"xl/worksheets/sheet\d+\.xml": "sheet",
    r"xl/tables/table\d+\.xml": "table",
    r"xl/(styles|calcChain|metadata)\.xml": "keep",
    r"xl/comments/?(comment)?\d*\.xml": "comments",
    r"xl/drawings/\w+\.vml": "text",
    r"xl/printerSettings/.*": "drop",
    r"xl/(threadedComments|persons)/[^/]*\.xml": "drop",
    **COMMON,
}
_REFUSED = (
    *REFUSED,
    (r"xl/embeddings/.*|xl/activeX/.*|xl/ctrlProps/.*", "an embedded object or form control"),
    (r"xl/externalLinks/.*", "a link to another file"),
    (r"xl/chartsheets/.*", "a chart sheet"),
    (r"xl/pivot.*", "a pivot table"),
    (r"xl/(queryTables/.*|connections\.xml)", "a data connection"),
    (r"xl/(revisions|users).*", "a change history"),
    (r"xl/(slicers|slicerCaches|timelines|richData)/.*", "a linked data type"),
)
TITLE_ROWS = 20
"""Number of rows at the top of a sheet that may have the column names."""

_CODE = re.compile(r'((?<!&)&(?:"[^"]*"|K[\dA-Fa-f]{6}|K\d\d[-+]\d{3}|\d+|[A-Za-z]))')
_NUMBER = re.compile(r"-?\d{7,}(?:\.0+)?")
_DATE_FORMATS = frozenset((*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)))
_TEXTS = frozenset(("oddHeader", "oddFooter", "evenHeader", "evenFooter", "firstHeader", "firstFooter"))
_FORMULAS = frozenset(("f", "formula", "formula1", "formula2"))
_ATTRIBUTES = {
    "hyperlink": ("display", "tooltip", "location"),
    "dataValidation": ("errorTitle", "error", "promptTitle", "prompt"),
    "cfRule": ("text",),
    "tableColumn": ("name", "totalsRowLabel"),
    "table": ("comment",),
    "filter": ("val",),
    "customFilter": ("val",),
    "scenario": ("name", "comment", "user"),
    "inputCells": ("val",),
}
_BLANKED = {"fileSharing": "userName", "absPath": "url"}


def _read_rich_text(package: Package, name: str, parent: Any, column: str) -> Iterator[Slot]:
    """Return the runs of a rich text, read as one text, after its column's name."""
    gap = "\n" + format_lead_in(column, "".join(parent.itertext()))
    for element in parent.iter("{*}t"):
        yield make_text_slot(package, name, element, gap)
        gap = ""


def _list_headed_cells(package: Package, name: str, shared: list[str]) -> Iterator[tuple[Any, str]]:
    """Return the cells of a sheet, each with its column name."""
    rows: dict[str, list[tuple[str, Any, str]]] = {}
    for cell in package.read_tree(name).iter("{*}c"):
        column, row = re.sub(r"\d", "", cell.get("r", "")), re.sub(r"\D", "", cell.get("r", ""))
        rows.setdefault(row, []).append(
            (column, cell, _read_cell_text(cell, shared) if len(rows) <= TITLE_ROWS else "")
        )
    filled = {row: sum(bool(text) for _, _, text in cells) for row, cells in islice(rows.items(), TITLE_ROWS)}
    # There may be a title above the column names, in a cell or two.
    top = next((row for row, n in filled.items() if n and 2 * n >= max(filled.values())), None)
    names: dict[str, str] = {}
    for row, cells in rows.items():
        if row == top:
            names = {column: text for column, _, text in cells}
        for column, cell, _ in cells:
            yield cell, "" if row == top else names.get(column, "")


def _read_cell_text(cell: Any, shared: list[str]) -> str:
    value = cell.findtext("{*}v") or ""
    if cell.get("t") == "s":
        return shared[int(value)] if value.isdigit() and int(value) < len(shared) else ""
    return "".join(cell.itertext()) if cell.get("t") == "inlineStr" else value


def _find_date_styles(package: Package) -> frozenset[int]:
    """Return the cell styles that show a number as a date."""
    if "xl/styles.xml" not in package.names():
        return frozenset()
    root = package.read_tree("xl/styles.xml")
    dates = set(_DATE_FORMATS)
    for element in root.iter("{*}numFmt"):
        shown = re.sub(r'"[^"]*"|\[[^\]]*\]|\\.', "", str(element.get("formatCode", "")))
        if re.search(r"[dmy]", shown, re.IGNORECASE) and not re.search(r"[#?]", shown):
            dates.add(int(element.get("numFmtId", -1)))
    cells = root.find("{*}cellXfs")
    cell_formats = enumerate(cells if cells is not None else ())
    return frozenset(i for i, xf in cell_formats if int(xf.get("numFmtId", 0)) in dates)


def _as_date(value: str, epoch: datetime.datetime) -> str | None:
    try:
        moment = epoch + datetime.timedelta(days=float(value))
    except (ValueError, OverflowError):
        return None
    return moment.date().isoformat() if float(value).is_integer() else moment.isoformat(" ", "seconds")


def _number_slot(package: Package, name: str, cell: Any, text: str, column: str) -> Slot:
    def put_number(new: str) -> None:
        from lxml import etree

        space = cell.tag[: cell.tag.index("}") + 1]
        for child in list(cell):
            if local_name(child) in ("v", "is"):
                cell.remove(child)
        cell.set("t", "inlineStr")
        inline = etree.SubElement(cell, f"{space}is")
        etree.SubElement(inline, f"{space}t").text = check_printable(new)
        package.touched.add(name)

    return Slot(text, put_number, "\n" + format_lead_in(column, text))


def _make_formula_result_slot(package: Package, name: str, cell: Any, text: str, column: str) -> Slot:
    """Return the slot of a formula's number. An edit removes it; the program that opens the file computes it again."""

    def put_result(_: str) -> None:
        for value in cell.findall("{*}v"):
            cell.remove(value)
        package.touched.add(name)

    return Slot(text, put_result, "\n" + format_lead_in(column, text))


def _read_heading(package: Package, name: str, element: Any) -> Iterator[Slot]:
    """Return the texts of a sheet's header or footer, between the codes for position, font, page and so on."""
    pieces = _CODE.split(element.text)

    def put_piece(index: int, text: str) -> None:
        pieces[index] = check_printable(text).replace("&", "&&")
        element.text = "".join(pieces)
        package.touched.add(name)

    gap = "\n"
    for index in range(0, len(pieces), 2):
        if pieces[index].strip():
            yield Slot(pieces[index].replace("&&", "&"), partial(put_piece, index), gap)
            gap = ""
        if index + 1 < len(pieces) and pieces[index + 1] in ("&L", "&C", "&R"):
            gap = "\n"


def _read_sheet(
    package: Package, name: str, columns: dict[Any, str], dates: frozenset[int], epoch: datetime.datetime
) -> Iterator[Slot]:
    for element in package.read_tree(name).iter("{*}*"):
        local = local_name(element)
        if local == "pageSetup":
            # It refers to the printer's settings, which name the printer and are removed.
            for attribute in [a for a in element.attrib if str(a).endswith("}id")]:
                del element.attrib[attribute]
                package.touched.add(name)
        elif local == "c":
            yield from _read_cell(package, name, element, columns.get(element, ""), dates, epoch)
        elif element.text and local in _TEXTS:
            yield from _read_heading(package, name, element)
        elif element.text and local in _FORMULAS and '"' in element.text:
            yield make_text_slot(package, name, element)
        for attribute in _ATTRIBUTES.get(local, ()):
            if element.get(attribute):
                yield slot_of_attribute(package, name, element, attribute)


def _read_cell(
    package: Package, name: str, cell: Any, column: str, dates: frozenset[int], epoch: datetime.datetime
) -> Iterator[Slot]:
    kind = cell.get("t", "n")
    inline, value, formula = cell.find("{*}is"), cell.find("{*}v"), cell.find("{*}f")
    if inline is not None:
        yield from _read_rich_text(package, name, inline, column)
    if value is None or not value.text:
        return
    if kind in ("str", "d"):
        yield make_text_slot(package, name, value, "\n" + format_lead_in(column, value.text))
    elif kind == "n":
        text = _as_date(value.text, epoch) if int(cell.get("s", 0)) in dates else None
        number = _NUMBER.fullmatch(value.text)
        if text is None and (number or re.fullmatch(r"\d\.\d+E\+?\d+", value.text)):
            text = str(int(float(value.text))) if not value.text.isdigit() else value.text
        if text is not None and formula is None:
            yield _number_slot(package, name, cell, text, column)
        elif text is not None:
            yield _make_formula_result_slot(package, name, cell, text, column)


def _read_workbook(package: Package, name: str) -> Iterator[Slot]:
    def make_fixed_slot(what: str) -> Any:
        def put_fixed(_: str) -> None:
            raise DataError(f"{what} identifies, and formulas may refer to it: rename it first")

        return put_fixed

    sheets = 0
    for element in package.read_tree(name).iter("{*}*"):
        local = local_name(element)
        if local == "sheet":
            sheets += 1
            if not is_usual_text(str(element.get("name"))):
                yield Slot(str(element.get("name")), make_fixed_slot(f"the name of sheet {sheets}"))
        elif local == "definedName":
            yield Slot(str(element.get("name")), make_fixed_slot("a defined name"))
            if element.get("comment"):
                yield slot_of_attribute(package, name, element, "comment")
            if '"' in (element.text or ""):
                yield make_text_slot(package, name, element)
        elif local in _BLANKED and element.get(_BLANKED[local]):
            element.set(_BLANKED[local], "")
            package.touched.add(name)


def _read_comments(package: Package, name: str) -> Iterator[Slot]:
    for element in package.read_tree(name).iter("{*}*"):
        if local_name(element) == "author" and element.text:
            element.text = package.author(element.text)
            package.touched.add(name)
        elif local_name(element) == "text":
            yield from _read_rich_text(package, name, element, "")


def list_slots(package: Package, images: str, depth: int) -> list[Slot]:
    """Return the slots of a workbook; see :data:`allonym.files.officeparts.Reader`."""
    if "xl/workbook.xml" not in package.entries:
        raise RefusedContent("not an Excel workbook: it has no part xl/workbook.xml")
    tasks = treat_textless_parts(package, check_parts(package, _ALLOWED, _REFUSED), images, depth)
    old = package.read_tree("xl/workbook.xml").find("{*}workbookPr")
    epoch = datetime.datetime(1899, 12, 30)
    if old is not None and old.get("date1904") in ("1", "true"):
        epoch = datetime.datetime(1904, 1, 1)
    dates = _find_date_styles(package)
    shared = [item for name, task in tasks.items() if task == "strings" for item in package.read_tree(name)]
    texts = ["".join(item.itertext()) for item in shared]
    columns: dict[Any, str] = {}
    used_in: dict[int, str] = {}
    for name, task in tasks.items():
        if task == "sheet":
            for cell, column in _list_headed_cells(package, name, texts):
                columns[cell] = column
                if cell.get("t") == "s" and (index := cell.findtext("{*}v") or "").isdigit():
                    used_in.setdefault(int(index), column)
    workbook_slots: list[Slot] = []
    for name in sorted(tasks, key=lambda n: (tasks[n] != "strings", [int(d) for d in re.findall(r"\d+", n)], n)):
        if tasks[name] == "strings":
            for i, item in enumerate(shared):
                workbook_slots += _read_rich_text(package, name, item, used_in.get(i, ""))
        elif tasks[name] == "sheet":
            workbook_slots += _read_sheet(package, name, columns, dates, epoch)
        elif tasks[name] == "comments":
            workbook_slots += _read_comments(package, name)
        elif tasks[name] == "workbook":
            workbook_slots += _read_workbook(package, name)
        elif tasks[name] == "table":
            for element in package.read_tree(name).iter("{*}*"):
                for attribute in _ATTRIBUTES.get(local_name(element), ()):
                    if element.get(attribute):
                        workbook_slots.append(slot_of_attribute(package, name, element, attribute))
    for name in text_parts(tasks, ""):
        workbook_slots += list_part_slots(package, name)
    return all_slots(package, tasks, workbook_slots, depth)


def _parse_xlsx(chunk: Chunk, job: Job) -> Parsed:
    package = Package.open(chunk.data)
    return parse_slots(package, list_slots(package, job.policy.images, 0), "xlsx")


XLSX = Format("xlsx", _parse_xlsx)
