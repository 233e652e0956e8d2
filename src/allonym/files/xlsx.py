"""XLSX: all texts of a workbook form one document; formulas, formats and layout are kept.

Long numbers and dates are read as text too: a finding turns the cell into a text cell. Comments, charts and drawings
are anonymised. Pictures become grey unless the policy keeps them. A file with pivot tables, embedded objects or links
to other files is refused.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any

from allonym.batch import format_lead_in
from allonym.errors import DataError, RefusedContent
from allonym.files.office import Package, Part, TextSlot, get_local_name, is_common_office_text, parse_office_file
from allonym.files.officeparts import clean_package_and_list_tasks, list_all_slots, list_text_parts
from allonym.files.officetext import list_part_slots
from allonym.files.record import Format

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
}
_REFUSED = (
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


def _list_rich_text_slots(part: Part, parent: Any, column: str) -> Iterator[TextSlot]:
    """Return the runs of a rich text, read as one text, after its column's name."""
    gap = "\n" + format_lead_in(column, "".join(parent.itertext()))
    for element in parent.iter("{*}t"):
        yield part.make_text_slot(element, gap)
        gap = ""


def _list_cells_with_column_names(part: Part, shared: list[str]) -> Iterator[tuple[Any, str]]:
    """Return the cells of a sheet, each with its column name."""
    rows: dict[str, list[tuple[str, Any, str]]] = {}
    for cell in part.root.iter("{*}c"):
        column, row = re.sub(r"\d", "", cell.get("r", "")), re.sub(r"\D", "", cell.get("r", ""))
        cells = rows.setdefault(row, [])
        cells.append((column, cell, _read_cell_text(cell, shared) if len(rows) <= TITLE_ROWS else ""))
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


def _make_date_finder(package: Package) -> Callable[[Any, str], str | None]:
    """Return a function from a cell and its number to the date that the cell shows, or None."""
    old = package.read_tree("xl/workbook.xml").find("{*}workbookPr")
    epoch = datetime.datetime(1899, 12, 30)
    if old is not None and old.get("date1904") in ("1", "true"):
        epoch = datetime.datetime(1904, 1, 1)
    styles = _find_date_styles(package)

    def find_date(cell: Any, number: str) -> str | None:
        if int(cell.get("s", 0)) not in styles:
            return None
        try:
            moment = epoch + datetime.timedelta(days=float(number))
        except (ValueError, OverflowError):
            return None
        return moment.date().isoformat() if float(number).is_integer() else moment.isoformat(" ", "seconds")

    return find_date


def _find_date_styles(package: Package) -> frozenset[int]:
    """Return the cell styles that show a number as a date."""
    if "xl/styles.xml" not in package.list_parts():
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


def _make_number_slot(part: Part, cell: Any, text: str, column: str) -> TextSlot:
    """Return the slot of a number. An edit makes its cell a text cell.

    The result of a formula is removed instead; the program that opens the file computes it again.
    """

    def put_number(new: str) -> None:
        from lxml import etree

        for child in list(cell):
            if get_local_name(child) in ("v", "is"):
                cell.remove(child)
        if cell.find("{*}f") is None:
            space = cell.tag[: cell.tag.index("}") + 1]
            cell.set("t", "inlineStr")
            etree.SubElement(etree.SubElement(cell, f"{space}is"), f"{space}t").text = new

    return part.make_slot(text, put_number, "\n" + format_lead_in(column, text))


def _list_header_or_footer_slots(part: Part, element: Any) -> Iterator[TextSlot]:
    """Return the texts of a sheet's header or footer, between the codes for position, font, page and so on."""
    pieces = _CODE.split(element.text)

    def put_piece(index: int, text: str) -> None:
        pieces[index] = text.replace("&", "&&")
        element.text = "".join(pieces)

    gap = "\n"
    for index in range(0, len(pieces), 2):
        if pieces[index].strip():
            yield part.make_slot(pieces[index].replace("&&", "&"), partial(put_piece, index), gap)
            gap = ""
        if index + 1 < len(pieces) and pieces[index + 1] in ("&L", "&C", "&R"):
            gap = "\n"


def _clean_and_list_sheet(
    part: Part, columns: dict[Any, str], find_date: Callable[[Any, str], str | None]
) -> Iterator[TextSlot]:
    for element in part.root.iter("{*}*"):
        local = get_local_name(element)
        if local == "pageSetup":
            # It refers to the printer's settings, which name the printer and are removed.
            for attribute in [a for a in element.attrib if str(a).endswith("}id")]:
                del element.attrib[attribute]
                part.mark_changed()
        elif local == "c":
            yield from _list_cell_slots(part, element, columns.get(element, ""), find_date)
        elif element.text and local in _TEXTS:
            yield from _list_header_or_footer_slots(part, element)
        elif element.text and local in _FORMULAS and '"' in element.text:
            yield part.make_text_slot(element)
        yield from _list_attribute_slots(part, element)


def _list_attribute_slots(part: Part, element: Any) -> Iterator[TextSlot]:
    for attribute in _ATTRIBUTES.get(get_local_name(element), ()):
        if element.get(attribute):
            yield part.make_attribute_slot(element, attribute)


def _list_cell_slots(
    part: Part, cell: Any, column: str, find_date: Callable[[Any, str], str | None]
) -> Iterator[TextSlot]:
    kind = cell.get("t", "n")
    inline, value = cell.find("{*}is"), cell.find("{*}v")
    if inline is not None:
        yield from _list_rich_text_slots(part, inline, column)
    if value is None or not value.text:
        return
    if kind in ("str", "d"):
        yield part.make_text_slot(value, "\n" + format_lead_in(column, value.text))
    elif kind == "n":
        text = find_date(cell, value.text)
        number = _NUMBER.fullmatch(value.text)
        if text is None and (number or re.fullmatch(r"\d\.\d+E\+?\d+", value.text)):
            text = str(int(float(value.text))) if not value.text.isdigit() else value.text
        if text is not None:
            yield _make_number_slot(part, cell, text, column)


def _clean_and_list_workbook(part: Part) -> Iterator[TextSlot]:
    def refuse_change(what: str, new: str) -> None:
        raise DataError(f"{what} identifies, and formulas may refer to it: rename it first")

    sheets = 0
    for element in part.root.iter("{*}*"):
        local = get_local_name(element)
        if local == "sheet":
            sheets += 1
            if not is_common_office_text(str(element.get("name"))):
                yield TextSlot(str(element.get("name")), partial(refuse_change, f"the name of sheet {sheets}"))
        elif local == "definedName":
            yield TextSlot(str(element.get("name")), partial(refuse_change, "a defined name"))
            if element.get("comment"):
                yield part.make_attribute_slot(element, "comment")
            if '"' in (element.text or ""):
                yield part.make_text_slot(element)
        elif local in _BLANKED and element.get(_BLANKED[local]):
            element.set(_BLANKED[local], "")
            part.mark_changed()


def _clean_and_list_comments(part: Part) -> Iterator[TextSlot]:
    for element in part.root.iter("{*}*"):
        if get_local_name(element) == "author" and element.text:
            element.text = part.package.find_author_replacement(element.text)
            part.mark_changed()
        elif get_local_name(element) == "text":
            yield from _list_rich_text_slots(part, element, "")


def clean_workbook_and_list_slots(package: Package, images: str, depth: int) -> list[TextSlot]:
    """Remove hidden content, and return the slots of a workbook; see :data:`allonym.files.office.SlotLister`."""
    if "xl/workbook.xml" not in package.entries:
        raise RefusedContent("not an Excel workbook: it has no part xl/workbook.xml")
    tasks = clean_package_and_list_tasks(package, _ALLOWED, _REFUSED, images, depth)
    shared = [item for name, task in tasks.items() if task == "strings" for item in package.read_tree(name)]
    texts = ["".join(item.itertext()) for item in shared]
    columns: dict[Any, str] = {}
    used_in: dict[int, str] = {}
    for name, task in tasks.items():
        if task == "sheet":
            for cell, column in _list_cells_with_column_names(Part(package, name), texts):
                columns[cell] = column
                if cell.get("t") == "s" and (index := cell.findtext("{*}v") or "").isdigit():
                    used_in.setdefault(int(index), column)
    readers: dict[str, Callable[[Part], Iterable[TextSlot]]] = {
        "sheet": partial(_clean_and_list_sheet, columns=columns, find_date=_make_date_finder(package)),
        "comments": _clean_and_list_comments,
        "workbook": _clean_and_list_workbook,
        "table": lambda part: (slot for e in part.root.iter("{*}*") for slot in _list_attribute_slots(part, e)),
        "strings": lambda part: (
            slot for i, item in enumerate(shared) for slot in _list_rich_text_slots(part, item, used_in.get(i, ""))
        ),
    }
    names = sorted(tasks, key=lambda n: (tasks[n] != "strings", [int(d) for d in re.findall(r"\d+", n)], n))
    slots = [slot for n in names if tasks[n] in readers for slot in readers[tasks[n]](Part(package, n))]
    slots += [slot for name in list_text_parts(tasks, "") for slot in list_part_slots(Part(package, name))]
    return list_all_slots(package, tasks, slots, depth)


XLSX = Format("xlsx", partial(parse_office_file, list_slots=clean_workbook_and_list_slots, format="xlsx"))
