"""ODT, ODS and ODP (and their templates): all texts form one document; formatting, formulas and layout are kept.

The columns of the sheets of a spreadsheet are looked at first, see :mod:`allonym.files.columns`. A number or a date
that is covered becomes a text cell, and a sheet whose name identifies is renamed with all references. Pictures become
grey unless the policy keeps them. Macros, settings of the program, previews, signatures, embedded objects other than
charts and documents of these formats, and parts of an unknown kind are removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from allonym.batch import format_lead_in
from allonym.document import CAPTION, KEPT, PROSE, TECHNICAL
from allonym.errors import DataError, RefusedContent
from allonym.files.office import (
    Package,
    Part,
    TextSlot,
    assign_tasks,
    get_local_name,
    is_common_office_text,
    looks_worded,
    parse_office_file,
    strip_namespace,
)
from allonym.files.officeparts import list_author_slots, strip_or_grey_image
from allonym.files.record import Format
from allonym.files.sheets import (
    NOWHERE,
    CellPlace,
    decide_grid,
    find_literal_roles,
    find_table_places,
    list_literal_slots,
    make_sheet_name,
)

MANIFEST = "META-INF/manifest.xml"
_TASKS = {
    r"mimetype|META-INF/manifest\.xml|(.*/)?Fonts/.*": "keep",
    r"(.*/)?(content|styles)\.xml": "text",
    r"(.*/)?meta\.xml": "meta",
    r"META-INF/.*signatures.*": "drop signatures",
    r"(Basic|Scripts|Dialogs)/.*": "drop macros",
    r"(.*/)?(settings\.xml|Thumbnails/.*|Configurations2/.*|ObjectReplacements/.*|layout-cache|manifest\.rdf)": "drop",
    r"(.*/)?(Pictures|media)/.*\.(?i:mp[34g]|mpe?g|m4[av]|wav|avi|mov|wm[av]|ogg)": "drop recordings",
    r"(.*/)?Pictures/.*": "image",
    r"(.*/)?Object[^/]*(/mimetype)?": "drop embedded objects",
    r"Versions/.*|VersionList\.xml": "drop earlier versions",
}
_PARAGRAPHS = ("{*}p", "{*}h")
_GAPS = {"s": " ", "tab": "\t", "line-break": "\n"}
_GONE = frozenset("scripts event-listeners user-defined template auto-reload print-date creation-date".split())
_INITIALS = frozenset(("creator-initials", "sender-initials"))
_CREATORS = frozenset(("creator", "initial-creator", "printed-by"))
_PLAIN_PROPERTIES = frozenset("generator editing-cycles editing-duration date language".split())
_READ_ATTRIBUTES = frozenset(
    "string-value string-value-if-true string-value-if-false current-value description label footer header title "
    "help-text author comment key1 key2".split()
)
_READ = {
    ("name", local) for local in "frame custom-shape page section bookmark bookmark-start bookmark-end".split()
} | {("value", local) for local in "list-item option text user-field-decl variable-set".split()}
_STYLING = re.compile(
    r"\{[^}]*(?:style|xsl-fo|svg|datastyle|smil)[^}]*\}|.*(?:path|points|viewBox|transform|type|class)\Z"
)
_LONG_NUMBER = re.compile(r"-?\d{7,}(?:\.0+)?")
_NAME = re.compile(r"[^\W\d_]{4}")
_VALUES = ("value", "date-value", "time-value", "boolean-value", "string-value")
_NO_TIME = "1970-01-01T00:00:00"


def clean_and_list_slots(package: Package, images: str, depth: int) -> list[TextSlot]:
    """Remove hidden content, and return the slots of an ODF file; see :data:`allonym.files.office.SlotLister`."""
    if MANIFEST not in package.entries or "content.xml" not in package.entries:
        raise DataError("not an ODF file: it has no content.xml or no manifest")
    if any(True for _ in package.read_tree(MANIFEST).iter("{*}encryption-data")):
        raise RefusedContent("an encrypted file cannot be treated; save it without a password")
    tasks = assign_tasks(package, _TASKS)
    for name, task in tasks.items():
        if task.startswith("drop"):
            package.dropped.add(name)
            package.count_dropped_part(task)
        elif task == "image":
            package.entries[name] = strip_or_grey_image(package, name, images)
    _remove_dropped_from_manifest(package)
    sheets: dict[str, str] = {}
    slots: list[TextSlot] = []
    for name in sorted(tasks, key=lambda n: (n != "content.xml", n)):
        part = Part(package, name)
        if tasks[name] == "text":
            _clean_part(part)
            slots += _list_slots(part, sheets)
        elif tasks[name] == "meta":
            _clean_part(part)
            listed = (e for e in part.root.iter("{*}*") if get_local_name(e) not in _PLAIN_PROPERTIES)
            slots += [part.make_text_slot(e) for e in listed if _is_text(e)]
            slots += part.list_stray_slots()
    package.last.append(partial(_rename_sheets, package, [n for n in tasks if tasks[n] == "text"], sheets))
    return [*slots, *list_author_slots(package)]


def _is_text(element: Any) -> bool:
    return bool(element.text and element.text.strip())


def _remove_dropped_from_manifest(package: Package) -> None:
    part, names = Part(package, MANIFEST), package.list_parts()
    for entry in list(part.root.iter("{*}file-entry")):
        path = _read_attribute(entry, "full-path")
        if path != "/" and not any(name == path or (path.endswith("/") and name.startswith(path)) for name in names):
            part.remove_element(entry)


def _read_attribute(element: Any, *names: str) -> str:
    """Return the value of an element's first attribute of one of these names, in any namespace; empty: it has none."""
    return next((str(v) for a, v in element.attrib.items() if strip_namespace(a) in names), "")


def _clean_part(part: Part) -> None:
    """Remove macros, times, and elements whose part was removed; authors become "Author 1" and so on."""
    for element in list(part.root.iter("{*}*")):
        local = get_local_name(element)
        target = next((str(v) for a, v in element.attrib.items() if str(a).endswith("xlink}href")), "")
        target = target.removeprefix("./")
        if local in _GONE or local in _INITIALS or (target and _is_dropped(part.package, target)):
            if element.getparent() is not None:
                part.remove_element(element)
        elif local in _CREATORS and _is_text(element):
            name = part.package.find_author_replacement(element.text)
            element.text = "" if part.name.endswith("meta.xml") else name
            part.mark_changed()
        elif local == "date" and "purl.org" in element.tag:
            element.text = _NO_TIME
            part.mark_changed()


def _is_dropped(package: Package, target: str) -> bool:
    return target in package.dropped or (
        not target.startswith("#")
        and ":" not in target
        and target.partition("/")[0].startswith(("Object", "Pictures", "Media"))
        and not any(name == target or name.startswith(f"{target}/") for name in package.list_parts())
    )


def _list_slots(part: Part, sheets: dict[str, str]) -> Iterator[TextSlot]:
    """Return the slots of a part with text: paragraphs in order, then other texts and attributes."""
    places: dict[Any, CellPlace] = {}
    tables = list(part.root.iter("{*}table"))
    for table in tables:
        places |= _find_places(part, table)
    read_nodes: set[Any] = set()
    for paragraph in part.root.iter(*_PARAGRAPHS):
        cell = next(paragraph.iterancestors("{*}table-cell", "{*}covered-table-cell"), None)
        read_nodes.update(paragraph.iter())
        yield from _list_paragraph_slots(part, paragraph, cell, places.get(cell, NOWHERE))
    for node in (*part.root.itersiblings(preceding=True), *part.root.iter(), *part.root.itersiblings()):
        if not isinstance(node.tag, str):
            if node.text and node.text.strip():
                yield part.make_text_slot(node)
            continue
        local = get_local_name(node)
        is_described = local in ("title", "desc")
        is_loose = _is_text(node) and local not in _CREATORS and (node not in read_nodes or is_described)
        if is_loose and not is_common_office_text(node.text):
            is_styling = _STYLING.match(node.tag) and not is_described
            yield part.make_text_slot(node, role=TECHNICAL if is_styling else PROSE)
        yield from _list_attribute_slots(part, node, tables, sheets, places)


def _list_paragraph_slots(part: Part, paragraph: Any, cell: Any, place: CellPlace) -> Iterator[TextSlot]:
    """Return the texts of a paragraph, read as one; notes and frames in it have paragraphs of their own."""
    shown = "".join(paragraph.itertext())
    if cell is not None and _is_number(cell) and not _is_number_searched(cell, place, shown):
        return
    gap = "\n" + format_lead_in(place.name, shown)

    def put_text(node: Any, side: str, text: str) -> None:
        setattr(node, side, text)
        if cell is not None and _is_number(cell):
            _make_text_cell(cell)

    def walk(node: Any) -> Iterator[TextSlot]:
        nonlocal gap
        if node.text:
            yield part.make_slot(node.text, partial(put_text, node, "text"), gap, place.role)
            gap = ""
        for child in node:
            local = get_local_name(child) if isinstance(child.tag, str) else ""
            if local in _GAPS:
                gap += _GAPS[local]
            elif local and local not in ("title", "desc") and next(child.iter(*_PARAGRAPHS), None) is None:
                yield from walk(child)
            if child.tail:
                yield part.make_slot(child.tail, partial(put_text, child, "tail"), gap, place.role)
                gap = ""

    yield from walk(paragraph)


def _is_number(cell: Any) -> bool:
    return _read_attribute(cell, "value-type") not in ("", "string")


def _is_number_searched(cell: Any, place: CellPlace, shown: str) -> bool:
    value = _read_value(cell) or shown
    is_date = any(strip_namespace(a) == "date-value" for a in cell.attrib)
    is_worded = place.role == PROSE and _NAME.search(shown) is not None
    return is_worded or is_date or place.role not in (PROSE, KEPT) or _LONG_NUMBER.fullmatch(value) is not None


def _make_text_cell(cell: Any) -> None:
    for attribute in list(cell.attrib):
        local = strip_namespace(attribute)
        if local == "value-type":
            cell.set(attribute, "string")
        elif local in _VALUES or local == "currency":
            del cell.attrib[attribute]


def _read_value(cell: Any) -> str:
    return _read_attribute(cell, *_VALUES[:2])


def _find_places(part: Part, table: Any) -> dict[Any, CellPlace]:
    """Return the place of each cell of a table; by what is decided about its column."""
    rows: dict[str, dict[str, tuple[Any, str]]] = {}
    direct_rows = (row for row in table.iter("{*}table-row") if next(row.iterancestors("{*}table")) is table)
    for number, row in enumerate(direct_rows):
        column = 0
        for cell in row:
            if get_local_name(cell) not in ("table-cell", "covered-table-cell"):
                continue
            text = _read_value(cell) or "\n".join("".join(p.itertext()) for p in cell.iter(*_PARAGRAPHS))
            if text:
                rows.setdefault(str(number), {})[str(column)] = cell, text.removesuffix(".0")
            column += int(_read_attribute(cell, "number-columns-repeated") or 1)
    if get_local_name(table.getparent()) == "spreadsheet":
        return decide_grid(rows, part.package.policy).places
    return find_table_places(rows, part.package.policy)


def _list_attribute_slots(
    part: Part, node: Any, tables: list[Any], sheets: dict[str, str], places: Mapping[Any, CellPlace]
) -> Iterator[TextSlot]:
    local = get_local_name(node)
    for attribute, value in node.attrib.items():
        plain = strip_namespace(attribute)
        if not value or is_common_office_text(value):
            continue
        if plain == "name" and local == "table":
            yield part.make_slot(value, partial(_rename_sheet, node, attribute, tables, sheets), role=CAPTION)
        elif plain in ("formula", "condition", "content-validation-name"):
            yield from list_literal_slots(part, value, find_literal_roles(value), partial(node.set, attribute))
        elif plain == "string-value" and node in places:
            yield part.make_attribute_slot(node, str(attribute), places[node].role)
        elif plain in _READ_ATTRIBUTES or (plain, local) in _READ:
            yield part.make_attribute_slot(node, str(attribute))
        elif (
            plain == "href"
            and not value.startswith("#")
            and not any(name.startswith(value.removeprefix("./")) for name in part.package.list_parts())
        ) or (looks_worded(value) and not _is_styling(node, str(attribute))):
            yield part.make_attribute_slot(node, str(attribute), TECHNICAL)


def _is_styling(node: Any, attribute: str) -> bool:
    plain = strip_namespace(attribute)
    if plain in ("href", "value", "display-name"):
        return False
    return plain == "transformation" or bool(_STYLING.match(attribute) or _STYLING.match(node.tag))


def _rename_sheet(table: Any, attribute: str, tables: list[Any], sheets: dict[str, str], new: str) -> None:
    old = str(table.get(attribute))
    sheets[old] = make_sheet_name(new, [str(other.get(attribute)) for other in tables if other is not table])
    table.set(attribute, sheets[old])


def _rename_sheets(package: Package, names: list[str], sheets: Mapping[str, str]) -> None:
    """Rename sheets in formulas, ranges and links."""
    if not sheets:
        return
    forms = {f"'{old.replace(chr(39), chr(39) * 2)}'.": f"'{new}'." for old, new in sheets.items()}
    forms |= {f"{old}.": f"'{new}'." for old, new in sheets.items() if re.fullmatch(r"\w+", old)}
    listed = "|".join(map(re.escape, sorted(forms, key=len, reverse=True)))
    pattern = re.compile(rf"(?<![\w'.])(?:{listed})(?=\$?[A-Z#:.$])")
    for part in (Part(package, name) for name in names):
        for node in part.root.iter("{*}*"):
            for attribute, value in node.attrib.items():
                if "." in value and (new := pattern.sub(lambda m: forms[m[0]], value)) != value:
                    node.set(attribute, new)
                    part.mark_changed()


def _make_format(name: str) -> Format:
    return Format(name, partial(parse_office_file, list_slots=clean_and_list_slots, format=name))


ODT, ODS, ODP = map(_make_format, ("odt", "ods", "odp"))
