"""XLSX: all texts of a workbook form one document; formulas, formats and layout are kept.

Each column of a sheet is looked at first, see :mod:`allonym.files.columns`. A number or a date that is covered
becomes a text cell of one run, in which restoring puts a number again. In formulas only the texts in quotation marks
are searched: several words as prose, the rest by rules and for what was found elsewhere. Lists to choose from are
looked at as columns are. A sheet or a defined name that identifies is renamed, with all references. Comments, charts
and drawings are anonymised. Pictures become grey unless the policy keeps them. Pivot tables (their cells stay), links
to other files (the results of their formulas stay), embedded objects other than DOCX, XLSX and PPTX, form controls,
data connections, slicers, histories of changes, macros and parts of an unknown kind are removed, and counted in the
report.
"""

from __future__ import annotations

import copy
import datetime
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, BinaryIO

from allonym.batch import format_lead_in
from allonym.document import CAPTION, KEPT, PROSE, TECHNICAL
from allonym.files.columns import Column, is_common_title, is_known_name
from allonym.files.office import Package, Part, TextSlot, get_local_name, is_common_office_text, parse_office_file
from allonym.files.officeparts import clean_package_and_list_tasks, list_all_slots, list_text_parts
from allonym.files.officetext import ROUND, list_part_slots
from allonym.files.record import Format, Job, read_within_limit
from allonym.files.sheets import (
    FORMULAS,
    HEADER,
    NOWHERE,
    CellPlace,
    choose_shared_place,
    find_item_roles,
    find_literal_roles,
    list_cells,
    list_literal_slots,
    make_defined_name,
    make_sheet_name,
    read_sheet,
    read_shown_text,
    rename_references,
)
from allonym.files.widths import widen_columns

_ALLOWED = {
    r"xl/workbook\d*\.xml": "workbook",
    r"(?i:xl/sharedStrings\d*\.xml)": "strings",
    r"xl/worksheets/[^/]*\.xml": "sheet",
    r"xl/chartsheets/[^/]*\.xml": "chartsheet",
    r"xl/tables/table\d+\.xml": "table",
    r"xl/(styles\d*|calcChain|metadata)\.xml": "keep",
    r"xl/comments/?(comment)?\d*\.xml": "comments",
    r"xl/drawings/\w+\.vml": "text",
    r"xl/printerSettings/.*": "drop",
    r"xl/(threadedComments|persons)/[^/]*\.xml": "drop",
    r"xl/pivotTables/[^/]*\.xml": "drop pivot tables",
    r"xl/pivotCache/.*": "drop",
    r"xl/externalLinks/[^/]*\.xml": "drop links to other files",
    r"xl/embeddings/[^/]*\.(docx|xlsx|pptx)": "embedded",
    r"xl/embeddings/.*": "drop embedded objects",
    r"xl/ctrlProps/.*": "drop form controls",
    r"xl/(activeX|customProperty)[^/]*(/.*)?": "drop",
    r"xl/(queryTables/.*|connections\.xml)": "drop data connections",
    r"xl/(revisions|users).*": "drop the history of changes",
    r"xl/(slicers|timelines)/.*": "drop slicers",
    r"xl/(slicerCaches|timelineCaches)/.*": "drop",
    r"xl/richData/.*": "drop linked data",
}
_REFUSED = ((r"xl/(macrosheets|dialogsheets)/.*", "a sheet of macros or dialogs"),)
_ALLOWED_SHEET = re.compile(r"xl/worksheets/[^/]*\.xml")
_LINK = re.compile(r"\[\d+\][^\[\]\"]*!")
_CODE = re.compile(r'((?<!&)&(?:"[^"]*"|K[\dA-Fa-f]{6}|K\d\d[-+]\d{3}|\d+|[A-Za-z]))')
_NUMBER = re.compile(r"-?\d{7,}(?:\.0+)?")
_PLAIN_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?")
_DATE_FORMATS = frozenset((*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)))
_TEXTS = frozenset(("oddHeader", "oddFooter", "evenHeader", "evenFooter", "firstHeader", "firstFooter"))
_ATTRIBUTES = {
    "hyperlink": {"display": PROSE, "tooltip": PROSE, "location": TECHNICAL},
    "dataValidation": dict.fromkeys(("errorTitle", "error", "promptTitle", "prompt"), PROSE),
    "cfRule": {"text": TECHNICAL},
    "tableColumn": {"totalsRowLabel": PROSE},
    "table": {"comment": PROSE},
    "filter": {"val": TECHNICAL},
    "customFilter": {"val": TECHNICAL},
    "scenario": {"name": PROSE, "comment": PROSE, "user": PROSE},
    "inputCells": {"val": TECHNICAL},
}
_BLANKED = {"fileSharing": "userName", "absPath": "url"}


def _list_rich_text_slots(part: Part, parent: Any, place: CellPlace) -> Iterator[TextSlot]:
    """Return the runs of a rich text, read as one text, after its column's name."""
    gap = _make_gap(place, "".join(parent.itertext()))
    for element in parent.iter("{*}t"):
        yield part.make_text_slot(element, gap, place.role)
        gap = ""


def _make_gap(place: CellPlace, text: str) -> str:
    """Return what stands before a cell's text: the name of its column."""
    return "\n" + format_lead_in(place.name, text)


@dataclass(frozen=True, slots=True)
class _Dates:
    """How a workbook shows dates.

    Attributes:
        epoch: the day whose number is 0.
        styles: the cell styles that show a number as a date.
    """

    epoch: datetime.datetime
    styles: frozenset[int]

    @classmethod
    def of(cls, package: Package) -> _Dates:
        """Read the workbook's settings and styles."""
        old = package.read_tree(package.find_main_part()).find("{*}workbookPr")
        is_old = old is not None and old.get("date1904") in ("1", "true")
        epoch = datetime.datetime(1904, 1, 1) if is_old else datetime.datetime(1899, 12, 30)
        return cls(epoch, _find_date_styles(package))

    def find_date(self, cell: Any, number: str) -> str | None:
        """Return the date that a cell shows for its number, in the form of ISO 8601; None: it shows none."""
        if int(cell.get("s", 0)) not in self.styles:
            return None
        try:
            moment = self.epoch + datetime.timedelta(days=float(number))
        except (ValueError, OverflowError):
            return None
        return moment.date().isoformat() if float(number).is_integer() else moment.isoformat(" ", "seconds")

    def find_number(self, cell: Any, text: str) -> str | None:
        """Return the number of a cell that shows a text; None where no number does."""
        if int(cell.get("s", 0)) not in self.styles:
            return text if _PLAIN_NUMBER.fullmatch(text) else None
        try:
            days = (datetime.datetime.fromisoformat(text) - self.epoch) / datetime.timedelta(days=1)
        except (ValueError, TypeError):
            return None
        return f"{days:.16g}"


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


def _make_number_slot(
    part: Part, cell: Any, text: str, place: CellPlace, find_number: Callable[[str], str | None] | None = None
) -> TextSlot:
    """Return the slot of a number. An edit makes its cell a text cell, unless ``find_number`` knows a number for it.

    The result of a formula is removed instead; the program that opens the file computes it again.
    """

    def put_number(new: str) -> None:
        from lxml import etree

        for child in list(cell):
            if get_local_name(child) in ("v", "is"):
                cell.remove(child)
        if cell.find("{*}f") is not None:
            return
        space = cell.tag[: cell.tag.index("}") + 1]
        number = find_number(new) if find_number else None
        if number is not None:
            cell.attrib.pop("t", None)
            etree.SubElement(cell, f"{space}v").text = number
            return
        cell.set("t", "inlineStr")
        run = etree.SubElement(etree.SubElement(cell, f"{space}is"), f"{space}r")
        etree.SubElement(run, f"{space}t").text = new

    return part.make_slot(text, put_number, _make_gap(place, text), place.role)


def _stands_for_number(inline: Any) -> bool:
    """Tell whether a text is one run without properties, as it stands for a number that was covered."""
    return [get_local_name(element) for element in inline.iter()] == ["is", "r", "t"]


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


def _clean_and_list_sheet(part: Part, places: Mapping[Any, CellPlace], dates: _Dates) -> Iterator[TextSlot]:
    for element in part.root.iter("{*}*"):
        local = get_local_name(element)
        if local == "pageSetup":
            # It refers to the printer's settings, which name the printer and are removed.
            for attribute in [a for a in element.attrib if str(a).endswith("}id")]:
                del element.attrib[attribute]
                part.mark_changed()
        elif local == "c":
            yield from _list_cell_slots(part, element, places.get(element, NOWHERE), dates)
        elif element.text and local in _TEXTS:
            yield from _list_header_or_footer_slots(part, element)
        elif element.text and local in FORMULAS:
            yield from _list_literal_slots(part, element)
        yield from _list_attribute_slots(part, element)


def _list_attribute_slots(part: Part, element: Any) -> Iterator[TextSlot]:
    for attribute, role in _ATTRIBUTES.get(get_local_name(element), {}).items():
        if element.get(attribute):
            yield part.make_attribute_slot(element, attribute, role)


def _list_literal_slots(part: Part, element: Any) -> Iterator[TextSlot]:
    """Return the texts in quotation marks of a formula; nothing else in it is text."""
    source = element.text
    is_list = "formula1" in (get_local_name(element), get_local_name(element.getparent()))
    is_list = is_list and re.fullmatch(r'\s*"[^"]*"\s*', source) is not None
    literals = find_item_roles(source, part.package.policy) if is_list else find_literal_roles(source)
    return list_literal_slots(part, source, literals, partial(setattr, element, "text"))


def _is_plain_header(place: CellPlace, element: Any) -> bool:
    """Tell whether a cell, or its entry among the strings, is the name of a column, and of known words: it stays."""
    return place is HEADER and is_known_name("".join(element.itertext()))


def _list_cell_slots(part: Part, cell: Any, place: CellPlace, dates: _Dates) -> Iterator[TextSlot]:
    if _is_plain_header(place, cell):
        return
    kind = cell.get("t", "n")
    inline, value = cell.find("{*}is"), cell.find("{*}v")
    if inline is not None and _stands_for_number(inline):
        yield _make_number_slot(part, cell, "".join(inline.itertext()), place, partial(dates.find_number, cell))
    elif inline is not None:
        yield from _list_rich_text_slots(part, inline, place)
    if value is None or not value.text:
        return
    if kind in ("str", "d"):
        yield part.make_text_slot(value, _make_gap(place, value.text), place.role)
    elif kind == "n":
        text = dates.find_date(cell, value.text)
        number = _NUMBER.fullmatch(value.text) and not ROUND.fullmatch(value.text)
        if text is None and (number or re.fullmatch(r"\d\.\d+E\+?1?\d", value.text)):
            text = str(int(float(value.text))) if not value.text.isdigit() else value.text
        if text is None and place.role not in (PROSE, KEPT):
            text = value.text.removesuffix(".0")
        if text is not None:
            yield _make_number_slot(part, cell, text, place)


@dataclass(frozen=True, slots=True)
class _Names:
    """The names in a workbook that are changed: old to new.

    Attributes:
        sheets: names of sheets.
        defined: defined names, and names of tables.
        columns: names of the columns of tables.
        names: all defined names and names of tables, as they are by now.
    """

    sheets: dict[str, str] = field(default_factory=dict, repr=False)
    defined: dict[str, str] = field(default_factory=dict, repr=False)
    columns: dict[str, str] = field(default_factory=dict, repr=False)
    names: set[str] = field(default_factory=set, repr=False)

    def make_slot(self, part: Part, elements: Sequence[Any], attributes: Sequence[str]) -> TextSlot:
        """Return the slot of a defined name, or of a table's name, in the attributes of elements."""
        old = str(elements[0].get(attributes[-1]))
        self.names.add(old)

        def rename(new: str) -> None:
            self.names.discard(old)
            self.defined[old] = make_defined_name(new, self.names)
            self.names.add(self.defined[old])
            for element in elements:
                for attribute in attributes:
                    element.set(attribute, self.defined[old])
            part.mark_changed()

        # Read as words, so that a name found elsewhere is found here.
        return TextSlot(re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", old), rename, role=TECHNICAL)


def _clean_and_list_workbook(part: Part, new_names: _Names) -> Iterator[TextSlot]:
    sheets = [element for element in part.root.iter("{*}sheet") if element.get("name")]
    named: dict[str, list[Any]] = {}  # one for each sheet
    for element in part.root.iter("{*}definedName"):
        named.setdefault(str(element.get("name")), []).append(element)
    part.package.last.append(
        partial(rename_references, part.package, new_names.sheets, new_names.defined, new_names.columns)
    )

    def rename_sheet(sheet: Any, new: str) -> None:
        old = sheet.get("name")
        new_names.sheets[old] = make_sheet_name(new, [other.get("name") for other in sheets if other is not sheet])
        sheet.set("name", new_names.sheets[old])

    for element in part.root.iter("{*}*"):
        local = get_local_name(element)
        if element in sheets:
            name = element.get("name")
            if is_common_office_text(name) or is_common_title(name):
                continue
            yield part.make_slot(name, partial(rename_sheet, element), role=CAPTION)
        elif local == "definedName":
            name = str(element.get("name"))
            if not name.startswith("_xlnm.") and element is named[name][0]:
                yield new_names.make_slot(part, named[name], ["name"])
            if element.get("comment"):
                yield part.make_attribute_slot(element, "comment")
            if element.text:
                yield from _list_literal_slots(part, element)
        elif local in _BLANKED and element.get(_BLANKED[local]):
            element.set(_BLANKED[local], "")
            part.mark_changed()


def _list_table_slots(part: Part, new_names: _Names) -> Iterator[TextSlot]:
    """Return the names of a table and its columns, and its comments."""

    def rename_column(column: Any, new: str) -> None:
        new_names.columns[column.get("name")] = new
        column.set("name", new)

    if part.root.get("displayName"):
        yield new_names.make_slot(part, [part.root], ["name", "displayName"])
    for element in part.root.iter("{*}*"):
        name = element.get("name")
        if get_local_name(element) == "tableColumn" and name and not is_known_name(name):
            yield part.make_slot(name, partial(rename_column, element), role=KEPT)
        if element.text and get_local_name(element) in FORMULAS:
            yield from _list_literal_slots(part, element)
        yield from _list_attribute_slots(part, element)


def _separate_headers(package: Package, strings: str, used_in: dict[int, dict[Any, CellPlace]]) -> None:
    """Give headers entries of their own in the table of strings, where other cells have the same text."""
    part = Part(package, strings)
    items = list(part.root.iterfind("{*}si"))
    for index, uses in list(used_in.items()):
        cells = [cell for cell, place in uses.items() if place is HEADER]
        if 0 < len(cells) < len(uses) and index < len(items):
            items[-1].addnext(copy.deepcopy(items[index]))
            items.append(items[-1].getnext())
            used_in[len(items) - 1] = {cell: uses.pop(cell) for cell in cells}
            for cell in cells:
                cell.find("{*}v").text = str(len(items) - 1)
            part.mark_changed()
    if part.root.get("uniqueCount"):
        part.root.set("uniqueCount", str(len(items)))


def _clean_and_list_comments(part: Part) -> Iterator[TextSlot]:
    for element in part.root.iter("{*}*"):
        if get_local_name(element) == "author" and element.text:
            element.text = part.package.find_author_replacement(element.text)
            part.mark_changed()
        elif get_local_name(element) == "text":
            yield from _list_rich_text_slots(part, element, NOWHERE)


def clean_workbook_and_list_slots(package: Package, images: str, depth: int) -> list[TextSlot]:
    """Remove hidden content, and return the slots of a workbook; see :data:`allonym.files.office.SlotLister`."""
    package.require_main_part("xl/workbook.xml", "an Excel workbook")
    tasks = clean_package_and_list_tasks(package, _ALLOWED, _REFUSED, images, depth)
    if any(name.startswith("xl/externalLinks/") for name in package.dropped):
        _remove_formulas_of_links(package, tasks)
    texts = _read_shared_texts(package)
    dates = _Dates.of(package)
    places: dict[Any, CellPlace] = {}
    used_in: dict[int, dict[Any, CellPlace]] = {}
    identifiers: dict[str, str] = {}
    for name, task in tasks.items():
        if task == "sheet":
            sheet = read_sheet(Part(package, name), texts, dates.find_date, package.policy)
            identifiers |= sheet.identifiers
            places |= sheet.places
            for cell, place in sheet.places.items():
                if cell.get("t") == "s" and (index := cell.findtext("{*}v") or "").isdigit():
                    used_in.setdefault(int(index), {})[cell] = place
    strings = [name for name, task in tasks.items() if task == "strings"]
    if len(strings) == 1:
        _separate_headers(package, strings[0], used_in)
    shared = [item for name in strings for item in package.read_tree(name)]
    new_names = _Names()
    for cell, place in places.items():
        # The stored result of a formula may repeat an identifier.
        value = (cell.findtext("{*}v") or "").removesuffix(".0")
        if place.role == KEPT and value in identifiers and cell.find("{*}f") is not None:
            places[cell] = CellPlace("", identifiers[value])
    readers: dict[str, Callable[[Part], Iterable[TextSlot]]] = {
        "sheet": partial(_clean_and_list_sheet, places=places, dates=dates),
        "chartsheet": partial(_clean_and_list_sheet, places={}, dates=dates),
        "comments": _clean_and_list_comments,
        "workbook": partial(_clean_and_list_workbook, new_names=new_names),
        "table": partial(_list_table_slots, new_names=new_names),
        "strings": lambda part: (
            slot
            for i, item in enumerate(shared)
            if not _is_plain_header(place := choose_shared_place([*used_in.get(i, {}).values()] or [NOWHERE]), item)
            for slot in _list_rich_text_slots(part, item, place)
        ),
    }
    before = _read_shown_texts(package, tasks, dates)
    package.last.append(partial(_widen_columns, package, tasks, dates, before))
    names = sorted(tasks, key=lambda n: (tasks[n] != "strings", [int(d) for d in re.findall(r"\d+", n)], n))
    slots = [slot for n in names if tasks[n] in readers for slot in readers[tasks[n]](Part(package, n))]
    slots += [slot for name in list_text_parts(tasks, "") for slot in list_part_slots(Part(package, name))]
    return list_all_slots(package, tasks, slots, depth)


def _read_shown_texts(package: Package, tasks: Mapping[str, str], dates: _Dates) -> dict[Any, str]:
    """Return the texts of the cells of all sheets."""
    texts = _read_shared_texts(package)
    sheets = (Part(package, name) for name, task in tasks.items() if task == "sheet")
    cells = (cell for part in sheets for cell, _, _ in list_cells(part.root))
    return {cell: read_shown_text(cell, texts, dates.find_date) for cell in cells}


def _widen_columns(package: Package, tasks: Mapping[str, str], dates: _Dates, before: Mapping[Any, str]) -> None:
    after = _read_shown_texts(package, tasks, dates)
    for name, task in tasks.items():
        if task == "sheet":
            widen_columns(Part(package, name), before, after)


def _remove_formulas_of_links(package: Package, tasks: Mapping[str, str]) -> None:
    """Remove the formulas and defined names that refer to other files; the results of the formulas stay."""
    for part in (Part(package, name) for name, task in tasks.items() if task in ("sheet", "workbook")):
        formulas = [e for local in ("f", "definedName") for e in part.root.iter(f"{{*}}{local}") if e.text]
        linked = [e for e in formulas if _LINK.search(e.text)]
        shared = {e.get("si") for e in linked if e.get("t") == "shared"}
        linked += [e for e in part.root.iter("{*}f") if e.get("si") in shared and e not in linked]
        for element in linked:
            part.remove_element(element)


def _list_columns(stream: BinaryIO, job: Job) -> list[Column]:
    """Return the columns of all sheets; a name that several sheets have is told once."""
    package = Package.open(read_within_limit(stream))
    texts = _read_shared_texts(package)
    find_date = _Dates.of(package).find_date
    listed: dict[str, Column] = {}
    for name in sorted(package.list_parts(), key=lambda n: [int(d) for d in re.findall(r"\d+", n)]):
        if _ALLOWED_SHEET.fullmatch(name):
            for column in read_sheet(Part(package, name), texts, find_date, job.policy).columns:
                listed.setdefault(column.name, column)
    return list(listed.values())


def _read_shared_texts(package: Package) -> list[str]:
    names = [name for name in package.list_parts() if re.fullmatch(r"(?i)xl/sharedStrings\d*\.xml", name)]
    return ["".join(item.itertext()) for name in names for item in package.read_tree(name)]


XLSX = Format(
    "xlsx",
    partial(parse_office_file, list_slots=clean_workbook_and_list_slots, format="xlsx"),
    columns=_list_columns,
)
