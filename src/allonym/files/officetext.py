"""The texts of a part: paragraphs, with tracked changes accepted and rejected, then attributes and stray texts.

The runs of a paragraph are read as one text, so that a name in two formats is one name. A paragraph with tracked
changes is read twice: with all changes accepted, and with all rejected. A run in both readings is written once if its
new text is the same in both; otherwise it becomes a deletion and an insertion.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from allonym.batch import format_lead_in
from allonym.document import PROSE, TECHNICAL
from allonym.files.office import (
    Part,
    TextSlot,
    get_local_name,
    is_common_office_text,
    looks_worded,
    require_xml_characters,
    strip_namespace,
)
from allonym.files.record import count_common_prefix
from allonym.files.sheets import NOWHERE, CellPlace, find_table_places
from allonym.policy import Policy

Reading = Literal["", "new", "old"]
"""The reading of a run: both, with all changes accepted, with all rejected."""

_READINGS: dict[str, Reading] = {"ins": "new", "moveTo": "new", "del": "old", "moveFrom": "old"}
_TEXTS = frozenset(("t", "delText"))
_CODES = frozenset(("instrText", "delInstrText"))
_BREAKS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-", "softHyphen": "", "sym": "", "ptab": "\t"}
_PLACES = frozenset("posOffset align pctWidth pctHeight Anchor Row Column row rowOff col colOff x y".split())
_PLACE = re.compile(r"[-\d.,\s]+|[a-z]+")
_NUMBERS = frozenset(("numCache", "numLit", "numDim"))
_SHEET_NAME = re.compile(r"'((?:[^']|'')+)'!|([^'!,()]+)!")
_STYLE_ID = re.compile(r"\{[0-9A-Fa-f-]{36}\}")
ROUND = re.compile(r"-?\d{1,2}0+(?:\.0+)?")
"""An amount, which identifies nobody."""

_TECHNICAL_ROOTS = frozenset(
    "styles settings webSettings fonts numbering theme themeOverride chartStyle colorStyle "
    "tblStyleLst presentationPr viewPr".split()
)
"""Roots of the parts without text of people: names of styles, themes, formats and layouts."""

_TECHNICAL_ELEMENTS = frozenset("f formula formatCode instr".split())

_GONE = frozenset(
    "dataBinding fldData permStart permEnd svgBlip imgProps docVars mailMerge rsids docId signatureline "
    "attachedTemplate contentPart altChunk".split()
)
"""Elements to remove: hidden data, handwriting, inserted files, links to other files, and editing permissions."""

_TRACES = frozenset("date dateUtc fullDate initials userId providerId".split())
_LINKED = frozenset("OLEObject control objectEmbed objectLink externalData subDoc sourceFileName".split())
"""Elements to remove with the part that they name; the picture that shows it stays."""

_ATTRIBUTES = {
    **dict.fromkeys(
        "alias tag listEntry default statusText helpText tblCaption tblDescription attr lvlText title desc "
        "category".split(),
        ("val",),
    ),
    "docPr": ("name", "descr", "title"),
    "cNvPr": ("name", "descr", "title"),
    "fldSimple": ("instr",),
    "bookmarkStart": ("name",),
    "hyperlink": ("tooltip", "anchor", "docLocation"),
    "hlinkClick": ("tooltip",),
    "hlinkHover": ("tooltip",),
    "listItem": ("displayText", "value"),
    "section": ("name",),
    "custShow": ("name",),
    "shape": ("alt", "title", "href"),
    "imagedata": ("title", "href"),
    "textpath": ("string",),
}
_NAMED = {("name", "ffData"), ("name", "docPartPr"), ("name", "style")}
_STRUCTURE = frozenset(
    "Ignorable Requires schemaLocation style eqn path formatCode uri ascii hAnsi cs eastAsia typeface "
    "textboxrect connectlocs wrapcoords dashstyle".split()
)
_FONTS = frozenset(("lsdException", "font", "altName", "mathFont", "dateFormat"))


def remove_hidden_data(part: Part) -> None:
    """Remove hidden data, authors and times from a part; authors become "Author 1" and so on."""
    root = part.root
    ids = {link.get("Id") for link, _ in part.package.list_relationships(part.name)}
    for element in list(root.iter("{*}*")):
        local = get_local_name(element)
        if (
            local in _GONE
            or local.endswith("Change")
            or (local in _LINKED and not _list_relationship_ids(element) <= ids)
        ):
            if element is not root:
                part.remove_element(element)
            continue
        if local in _READINGS and _is_inserted_and_deleted(element):
            part.remove_element(element)
            continue
        for attribute, value in list(element.attrib.items()):
            plain = strip_namespace(attribute)
            if plain == "author" and attribute != plain:
                element.set(attribute, part.package.find_author_replacement(str(value)))
            elif (plain in _TRACES and attribute != plain) or plain.startswith("rsid"):
                del element.attrib[attribute]
            else:
                continue
            part.mark_changed()


def _list_relationship_ids(element: Any) -> set[str]:
    return {str(v) for a, v in element.attrib.items() if str(a).rpartition("}")[0].endswith("/relationships") and v}


def _is_inserted_and_deleted(element: Any) -> bool:
    """Tell whether a text was inserted and deleted again, so that neither reading contains it."""
    side = _READINGS[get_local_name(element)]
    return len(element) > 0 and any(_READINGS.get(get_local_name(a), side) != side for a in element.iterancestors())


def _find_reading(element: Any) -> Reading:
    return next((_READINGS[local] for a in element.iterancestors() if (local := get_local_name(a)) in _READINGS), "")


Piece = tuple[Reading, str, Any]
"""A reading, and the element of a text, or None with a literal text."""


@dataclass(slots=True)
class _Paragraph:
    element: Any
    lead: str
    mark: Reading
    role: str
    texts: list[Piece] = field(default_factory=list)
    codes: list[Piece] = field(default_factory=list)


def list_part_slots(part: Part) -> Iterator[TextSlot]:
    """Return the slots of a part: first its paragraphs, then field codes and attributes."""
    root = part.root
    others: list[TextSlot] = []
    paragraphs: dict[Any, _Paragraph] = {}
    places = _find_paragraph_places(root, part.package.policy)
    role = TECHNICAL if get_local_name(root) in _TECHNICAL_ROOTS else PROSE
    for element in root.iter("{*}*"):
        local = get_local_name(element)
        others += _list_attribute_slots(part, element, local, role)
        if local == "p":
            place = places.get(element, NOWHERE)
            lead = format_lead_in(place.name, _join_shown_text(element)) if place.name else ""
            paragraphs[element] = _Paragraph(element, lead, _find_reading_of_paragraph_end(element), place.role)
        elif local in _TEXTS or local in _CODES or local in _BREAKS:
            above = next(element.iterancestors("{*}p"), None)
            if above is None:
                others += [part.make_text_slot(element)] if element.text else []
            elif local in _BREAKS:
                if local != "tab" or get_local_name(element.getparent()) == "r":
                    paragraphs[above].texts.append((_find_reading(element), _BREAKS[local], None))
            else:
                pieces = paragraphs[above].codes if local in _CODES else paragraphs[above].texts
                pieces.append((_find_reading(element), "", element))
        elif (
            element.text
            and not is_common_office_text(element.text)
            and not (ROUND.fullmatch(element.text) and _is_drawn_number(element))
            and not (local in _PLACES and _PLACE.fullmatch(element.text))
            and not _is_reference(part, local, element.text)
        ):
            others.append(_make_element_slot(part, element, TECHNICAL if local in _TECHNICAL_ELEMENTS else role))
    groups = list(_group_joined_paragraphs(paragraphs))
    for group in groups:
        yield from _list_group_slots(part, group, "texts")
    for group in groups:
        yield from _list_group_slots(part, group, "codes")
    yield from others


def _is_reference(part: Part, local: str, text: str) -> bool:
    """Tell whether a text refers to a style of tables, or to cells of sheets, whose names it follows as they change."""
    if local == "tableStyleId":
        return _STYLE_ID.fullmatch(text) is not None
    if local != "f" or not part.name.startswith("xl/charts"):
        return False
    names = {(quoted or plain).replace("''", "'") for quoted, plain in _SHEET_NAME.findall(text)}
    workbook = part.package.read_tree(part.package.find_main_part())
    return "[" not in text and names <= {sheet.get("name") for sheet in workbook.iter("{*}sheet")}


def _list_attribute_slots(part: Part, element: Any, local: str, role: str) -> Iterator[TextSlot]:
    attribute_names = _ATTRIBUTES.get(local, ())
    parent = element.getparent()
    if parent is not None and (local, get_local_name(parent)) in _NAMED:
        custom = any(str(a).endswith("customStyle") and v in ("1", "true", "on") for a, v in parent.attrib.items())
        if custom or get_local_name(parent) != "style":
            attribute_names = ("val",)
        else:
            return  # the names of the built-in styles
    if local in _FONTS:
        return
    for attribute, value in element.attrib.items():
        plain = strip_namespace(attribute)
        if (
            value
            and not is_common_office_text(str(value))
            and (plain in attribute_names or (plain not in _STRUCTURE and looks_worded(str(value))))
        ):
            is_read = plain in attribute_names and plain not in _TECHNICAL_ELEMENTS
            yield part.make_attribute_slot(element, str(attribute), role if is_read else TECHNICAL)


def _make_element_slot(part: Part, element: Any, role: str) -> TextSlot:
    slot = part.make_text_slot(element, role=role)
    if _is_drawn_number(element):
        return TextSlot(slot.text, lambda _: slot.set("0"))  # what is drawn must be a number
    return slot


def _is_drawn_number(element: Any) -> bool:
    return any(get_local_name(above) in _NUMBERS for above in element.iterancestors())


def _join_shown_text(paragraph: Any) -> str:
    return "".join(t.text or "" for t in paragraph.iter("{*}t"))


def _find_paragraph_places(root: Any, policy: Policy) -> dict[Any, CellPlace]:
    """Return the place of each paragraph that stands in a cell of a table."""
    places: dict[Any, CellPlace] = {}
    for table in root.iter("{*}tbl"):
        grid: dict[str, dict[str, tuple[Any, str]]] = {}
        for number, row in enumerate(row for row in table if get_local_name(row) == "tr"):
            cells = [cell for cell in row if get_local_name(cell) == "tc"]
            grid[str(number)] = {str(i): (cell, _join_shown_text(cell)) for i, cell in enumerate(cells)}
        for cell, place in find_table_places(grid, policy).items():
            places |= dict.fromkeys((*cell.iterfind("{*}p"), *cell.iterfind("{*}txBody/{*}p")), place)
    return places


def _find_reading_of_paragraph_end(paragraph: Any) -> Reading:
    """Return the reading in which a paragraph ends at its mark; in the other it continues with the next."""
    marks = (get_local_name(element) for element in paragraph.iterfind("{*}pPr/{*}rPr/*"))
    return next((_READINGS[mark] for mark in marks if mark in _READINGS), "")


def _group_joined_paragraphs(paragraphs: dict[Any, _Paragraph]) -> Iterator[list[_Paragraph]]:
    """Group paragraphs that are joined in one of the readings, in order."""
    grouped: set[Any] = set()
    for element, paragraph in paragraphs.items():
        if element in grouped:
            continue
        group = [paragraph]
        while group[-1].mark:
            after = group[-1].element.getnext()
            while after is not None and after not in paragraphs and get_local_name(after) != "tbl":
                after = after.getnext()
            if after is None or after not in paragraphs:
                break
            group.append(paragraphs[after])
            grouped.add(after)
        yield group


def _list_group_slots(part: Part, group: list[_Paragraph], kind: Literal["texts", "codes"]) -> Iterator[TextSlot]:
    changed = any(p.mark for p in group) or any(side for p in group for side, _, _ in getattr(p, kind))
    role = TECHNICAL if kind == "codes" else group[0].role
    if not changed:
        for _, element, gap in _list_texts_of_reading(group, kind, "new"):
            yield part.make_text_slot(element, gap, role)
        return
    twice: dict[Any, _SharedRun] = {}
    for reading in ("new", "old"):
        for side, element, gap in _list_texts_of_reading(group, kind, reading):
            if side:
                yield part.make_text_slot(element, gap, role)
                continue
            if element not in twice:
                twice[element] = _SharedRun(part, element)
                part.package.last.append(twice[element].write)
            yield twice[element].make_slot(reading, gap, role)


def _list_texts_of_reading(
    group: list[_Paragraph], kind: Literal["texts", "codes"], reading: Literal["new", "old"]
) -> Iterator[tuple[Reading, Any, str]]:
    """Return the texts of a reading, each with its side and the text before it."""
    gap, ended = "", True
    for paragraph in group:
        if ended:
            gap += "\n" + (paragraph.lead if kind == "texts" else "")
        for side, text, element in getattr(paragraph, kind):
            if side not in ("", reading):
                continue
            if element is None:
                gap += text
            else:
                yield side, element, gap
                gap = ""
        ended = paragraph.mark in ("", reading)


@dataclass(slots=True)
class _SharedRun:
    """A run in both readings, which may get a different text in each."""

    part: Part
    element: Any = field(repr=False)
    new: str | None = field(default=None, repr=False)
    old: str | None = field(default=None, repr=False)

    def make_slot(self, reading: Literal["new", "old"], before: str, role: str) -> TextSlot:
        return TextSlot(self.element.text or "", partial(setattr, self, reading), before, role)

    def write(self) -> None:
        text = self.element.text or ""
        new, old = (text if t is None else require_xml_characters(t) for t in (self.new, self.old))
        slot = self.part.make_text_slot(self.element)
        if new == old:
            if new != text:
                slot.set(new)
            return
        run = self.element.getparent()
        if (
            get_local_name(self.element) != "t"
            or "wordprocessingml" not in self.element.tag
            or get_local_name(run) != "r"
        ):
            slot.set("")  # the text of one reading must not remain in the other
            return
        start, new, old, end = _split_difference(new, old)
        index = list(run).index(self.element)
        rest = list(run)[index + 1 :]
        slot.set(start)
        after = [self._make_tracked_change(run, "del", "delText", old), self._make_tracked_change(run, "ins", "t", new)]
        tail = self._copy_run_with_text(run, "t", end)
        tail.extend(rest)
        parent = run.getparent()
        place = parent.index(run) + 1
        parent[place:place] = [*(e for e in after if e is not None), *([tail] if end or rest else [])]

    def _copy_run_with_text(self, run: Any, tag: str, text: str) -> Any:
        space = run.tag[: run.tag.index("}") + 1]
        run_copy = run.makeelement(run.tag)
        properties = run.find(f"{space}rPr")
        if properties is not None:
            run_copy.append(deepcopy(properties))
        if text:
            child = run_copy.makeelement(space + tag)
            run_copy.append(child)
            self.part.make_text_slot(child).set(text)
        return run_copy

    def _make_tracked_change(self, run: Any, tag: str, text_tag: str, text: str) -> Any:
        if not text:
            return None
        space = run.tag[: run.tag.index("}") + 1]
        number = len(self.part.package.serials)
        self.part.package.serials.append(number)
        author = next(iter(self.part.package.authors.values()), "Author 1")
        change = run.makeelement(space + tag, {f"{space}id": str((1 << 30) + number), f"{space}author": author})
        change.append(self._copy_run_with_text(run, text_tag, text))
        return change


def _split_difference(new: str, old: str) -> tuple[str, str, str, str]:
    """Return the common beginning, both middles and the common end of two texts, split at spaces."""
    start = _find_common_first_words(new, old)
    new, old = new[len(start) :], old[len(start) :]
    end = _find_common_first_words(new[::-1], old[::-1])[::-1]
    return start, new[: len(new) - len(end)], old[: len(old) - len(end)], end


def _find_common_first_words(a: str, b: str) -> str:
    return a[: a.rfind(" ", 0, count_common_prefix(a, b)) + 1]
