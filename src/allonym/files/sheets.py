"""The cells of a workbook's sheets by column: the names of columns, what was decided about them, and sheets' names."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import islice
from typing import Any

from allonym.batch import MAX_NAMED
from allonym.document import KEPT, PROSE, TECHNICAL, splice_text
from allonym.files.columns import (
    SAMPLE_ROWS,
    UNKNOWN,
    Column,
    decide_columns,
    find_label_of_name,
    is_header,
    is_known_name,
    is_state,
    is_unusual_name,
)
from allonym.files.office import Package, Part, TextSlot, get_local_name
from allonym.policy import Policy

TITLE_ROWS = 20
"""Number of rows at the top of a sheet that may have the column names."""

LEAST_IDENTIFIER = 4
"""Least number of characters of an identifier that is looked for in the results of formulas."""

LEAST_COLUMNS, LEAST_ROWS = 3, 4
"""A smaller table in a text, its row of names included, is a form or layout, unless all names in that row are known."""

LONGEST_SHEET_NAME = 31
FORMULAS = frozenset("f formula formula1 formula2 definedName calculatedColumnFormula totalsRowFormula".split())
_LITERAL = re.compile(r"""'(?:[^']|'')*+'(?=[!.])|"((?:[^"]|"")*)\"""")
_CALL = re.compile(r"""([\w.]*)\(|\)|'(?:[^']|'')*+'(?=[!.])|"(?:[^"]|"")*\"""")
_FORMATTING = frozenset("TEXT CELL DATEDIF INDIRECT ADDRESS GETPIVOTDATA".split())
"""Functions whose texts are formats, codes and references."""

ShowDate = Callable[[Any, str], "str | None"]
"""From a cell and its number to the date that the cell shows, or None."""


@dataclass(frozen=True, slots=True)
class CellPlace:
    """Where a cell stands: the name of its column, and what it is there.

    Attributes:
        name: of the column, to be read before prose; empty for the names of columns themselves.
        role: of the cell.
    """

    name: str = field(repr=False)
    role: str


NOWHERE = CellPlace("", PROSE)
HEADER = CellPlace("", KEPT)
"""The place of the cells that have the names of columns."""


@dataclass(slots=True)
class Sheet:
    """A sheet: the place of each cell, what was decided about its columns, and identifiers with their labels."""

    places: dict[Any, CellPlace] = field(repr=False)
    columns: tuple[Column, ...]
    identifiers: dict[str, str] = field(default_factory=dict, repr=False)


def read_sheet(part: Part, shared: Sequence[str], show_date: ShowDate, policy: Policy) -> Sheet:
    """Read the columns of a sheet, and decide how its cells are treated.

    Args:
        part: the sheet.
        shared: the texts of the workbook's table of strings.
        show_date: tells which numbers are dates.
        policy: its detectors read a sample of each column.
    """
    rows: dict[str, dict[str, tuple[Any, str]]] = {}
    for cell, column, row in list_cells(part.root):
        rows.setdefault(row, {})[column] = cell, read_shown_text(cell, shared, show_date)
    sheet = decide_grid(rows, policy)
    for row, columns in _list_header_rows(part):
        for column, (cell, _) in rows.get(row, {}).items():
            if number_column(column) in columns:
                sheet.places[cell] = HEADER
    return sheet


def _list_header_rows(part: Part) -> Iterator[tuple[str, range]]:
    """Yield the header rows of a sheet's tables: the number of the row, and the numbers of its columns."""
    for _, target in part.package.list_relationships(part.name):
        if target is not None and re.fullmatch(r"xl/tables/table\d+\.xml", target):
            root = part.package.read_tree(target)
            reference = re.fullmatch(r"([A-Z]+)(\d+):([A-Z]+)\d+", root.get("ref", ""))
            if reference and root.get("headerRowCount", "1") != "0":
                first, row, last = reference.groups()
                yield row, range(number_column(first), number_column(last) + 1)


def list_cells(root: Any) -> Iterator[tuple[Any, str, str]]:
    """Yield each cell of a sheet with the letters of its column and the number of its row.

    One that does not tell its place stands behind the one before it.
    """
    number = 0
    for row in root.iter("{*}row"):
        number = int(row.get("r") or number + 1)
        column = 0
        for cell in row.iterfind("{*}c"):
            letters, digits = _split_reference(cell.get("r") or "")
            letters = letters or _name_column(column + 1)
            column = number_column(letters)
            number = int(digits or number)
            yield cell, letters, str(number)


def _split_reference(reference: str) -> tuple[str, str]:
    """Return the letters of the column and the number of the row of a reference to a cell, such as ``C2``."""
    return re.sub(r"[^A-Z]", "", reference.upper()), re.sub(r"\D", "", reference)


def _name_column(number: int) -> str:
    """Return the letters of a column by its number: A is 1, AA is 27."""
    letters = ""
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def number_column(letters: str) -> int:
    return reduce(lambda number, letter: 26 * number + ord(letter) - ord("A") + 1, letters, 0)


def decide_grid(rows: Mapping[str, Mapping[str, tuple[Any, str]]], policy: Policy) -> Sheet:
    """Decide how the cells of a sheet are treated.

    Args:
        rows: number of each row to its cells: letters of the column to the cell and its text.
        policy: its detectors read a sample of each column.
    """
    filled = {row: sum(bool(t) for _, t in cells.values()) for row, cells in islice(rows.items(), TITLE_ROWS)}
    # There may be a title above the column names, in a cell or two.
    top = next((row for row, n in filled.items() if n and 2 * n >= max(filled.values())), None)
    if top is None:
        return Sheet({cell: CellPlace("", PROSE) for cells in rows.values() for cell, _ in cells.values()}, ())
    header = {column: text for column, (_, text) in rows[top].items()}
    order = list(rows)
    below = [rows[row] for row in order[order.index(top) + 1 :]]
    letters = list(dict.fromkeys(letter for cells in (rows[top], *below) for letter in cells))
    sample = [[cells[c][1] if c in cells else "" for c in letters] for cells in below[:SAMPLE_ROWS]]
    has_header = is_header([header.get(c, "") for c in letters if c in header], sample, policy)
    names = header if has_header else {}
    listed = [(n := names.get(c, ""), f"column {c}" if is_unusual_name(n, policy) else n) for c in letters]
    values = [[row[i] for row in sample] for i in range(len(letters))]
    columns = decide_columns([(n, s, v) for (n, s), v in zip(listed, values, strict=True)], policy)
    by_letter = dict(zip(letters, columns, strict=True))
    places: dict[Any, CellPlace] = {}
    identifiers: dict[str, str] = {}
    is_below = False
    for row, cells in rows.items():
        for letter, (cell, text) in cells.items():
            if row == top and has_header:
                places[cell] = HEADER
            elif is_below or row == top:
                role = by_letter.get(letter, UNKNOWN).get_cell_role(text)
                places[cell] = CellPlace(names.get(letter, header.get(letter, "")) if is_below else "", role)
                if role not in (PROSE, KEPT) and len(text) >= LEAST_IDENTIFIER:
                    identifiers[text] = role
            else:
                places[cell] = CellPlace("", PROSE)
        is_below = is_below or row == top
    return Sheet(places, columns, identifiers)


def has_enough_rows(names: Sequence[str], rows: int) -> bool:
    """Tell whether a table in a text is treated by column, by the texts of its first row and its number of rows."""
    return rows >= LEAST_ROWS or (rows > 1 and all(map(is_known_name, names)))


def find_table_places(rows: Mapping[str, Mapping[str, tuple[Any, str]]], policy: Policy) -> dict[Any, CellPlace]:
    """Return the places of the cells of a table within a text; ``rows`` as in :func:`decide_grid`.

    Columns decide where all rows have the same ones. Else each cell is prose, read after the name of its column; in a
    table of two columns, after the text to the left, unless something is found in that.
    """
    widths = {tuple(cells) for cells in rows.values()}
    width = len(next(iter(widths), ()))
    header = next(iter(rows.values()), {})
    names = [text for _, text in header.values()]
    if len(widths) == 1 and width >= LEAST_COLUMNS and has_enough_rows(names, len(rows)):
        return decide_grid(rows, policy).places
    places: dict[Any, CellPlace] = {}
    for cells in rows.values():
        for number, (column, (cell, text)) in enumerate(cells.items()):
            name = ""
            if len(cells) == 2:
                name = next(iter(cells.values()))[1] if number else ""
            elif len(cells) == len(header) and cells is not header:
                name = header[column][1] if column in header else ""
            name = name.strip().rstrip(":") if len(name) <= MAX_NAMED else ""  # a longer text is no name
            if name and len(cells) == 2 and is_unusual_name(name, policy):
                name = ""
            places[cell] = CellPlace(name, KEPT if is_state(text) and not find_label_of_name(name) else PROSE)
    return places


def read_shown_text(cell: Any, shared: Sequence[str], show_date: ShowDate) -> str:
    """Return the text of a cell; of a date as ISO 8601, of other numbers as they are stored."""
    value = cell.findtext("{*}v") or ""
    kind = cell.get("t", "n")
    if kind == "s":
        return shared[int(value)] if value.isdigit() and int(value) < len(shared) else ""
    if kind == "inlineStr":
        return "".join(cell.itertext())
    return (show_date(cell, value) or value) if kind == "n" and value else value


def choose_shared_place(places: Sequence[CellPlace]) -> CellPlace:
    """Return the place that decides about a text which several cells share: an identifier, else prose, else kept."""
    return min(places, key=lambda place: 1 if place.role == PROSE else 2 if place.role == KEPT else 0)


def _list_formula_literals(formula: str) -> Iterator[tuple[int, int]]:
    """Yield the half-open offsets of the texts in quotation marks of a formula."""
    for match in _LITERAL.finditer(formula):
        if match[1]:
            yield match.span(1)


def find_item_roles(formula: str, policy: Policy) -> list[tuple[int, int, str]]:
    """Return the offsets and the role of each item of a list to choose from, one text with commas; looked at as cells.

    Where that does not decide, an item of several words is read as a text of a formula is.
    """
    start = formula.index('"') + 1
    matches = re.finditer(r'[^,\s"](?:[^,"]*[^,\s"])?', formula[start:])
    items = [(start + match.start(), start + match.end()) for match in matches]
    (column,) = decide_columns([("", "", [formula[a:b] for a, b in items])], policy)
    if column.role not in (PROSE, KEPT):
        return [(a, b, column.role) for a, b in items]
    return [(a, b, PROSE if column.role == PROSE and _is_worded(formula[a:b]) else TECHNICAL) for a, b in items]


def find_literal_roles(formula: str) -> list[tuple[int, int, str]]:
    """Return the offsets and the role of each text in quotation marks of a formula.

    A text of several words is prose, if one has a capital and small letters, as names do. Formats, references, criteria
    and single words are technical.
    """
    functions: list[str] = []
    inside: dict[int, str] = {}
    for match in _CALL.finditer(formula):
        if match[1] is not None:
            functions.append(match[1].upper())
        elif match[0] == ")":
            functions = functions[:-1]
        else:
            inside[match.start() + 1] = functions[-1] if functions else ""
    return [
        (a, b, PROSE if inside.get(a) not in _FORMATTING and _is_worded(formula[a:b]) else TECHNICAL)
        for a, b in _list_formula_literals(formula)
    ]


def list_literal_slots(
    part: Part, formula: str, literals: Sequence[tuple[int, int, str]], put: Callable[[str], object]
) -> Iterator[TextSlot]:
    """Yield the slots of the texts in quotation marks of a formula; ``put`` takes the new formula.

    ``literals`` are as :func:`find_literal_roles` returns them.
    """
    texts = [formula[a:b].replace('""', '"') for a, b, _ in literals]

    def put_text(index: int, text: str) -> None:
        texts[index] = text
        quoted = (text.replace('"', '""') for text in texts)
        put(splice_text(formula, ((a, b, new) for (a, b, _), new in zip(literals, quoted, strict=True))))

    for index, (*_, role) in enumerate(literals):
        yield part.make_slot(texts[index], partial(put_text, index), role=role)


def _is_worded(text: str) -> bool:
    words = re.findall(r"[^\W\d_]+", text)
    return len(words) > 1 and "!" not in text and any(word[0].isupper() and word[1:].islower() for word in words)


def rename_references(
    package: Package, sheets: Mapping[str, str], names: Mapping[str, str], columns: Mapping[str, str]
) -> None:
    """Rename sheets, defined names, tables and their columns in formulas, defined names, links and charts.

    Args:
        package: the workbook, whose lists of sheets and names are written already.
        sheets: old name of a sheet to its new one.
        names: old name of a table, or defined name, to its new one.
        columns: old name of a table's column to its new one.
    """
    forms = {f"'{old.replace(chr(39), chr(39) * 2)}'!": f"'{new}'!" for old, new in sheets.items()}
    forms |= {f"{old}!": f"'{new}'!" for old, new in sheets.items() if re.fullmatch(r"[^\W\d][\w.]*", old)}
    listed = [rf"(?<![\w.'])(?:{re.escape(form)})" for form in sorted(forms, key=len, reverse=True)]
    listed += [rf"(?<![\w.'])(?:{re.escape(name)})(?![\w.(!'])" for name in sorted(names, key=len, reverse=True)]
    forms |= names
    brackets = {f"[{_escape_column(old)}]": f"[{_escape_column(new)}]" for old, new in columns.items() if old != new}
    listed += map(re.escape, brackets)
    forms |= brackets
    if not forms:
        return
    pattern = re.compile(rf"{'|'.join(listed)}|\"(?:[^\"]|\"\")*\"")

    def rename(reference: str) -> str:
        return pattern.sub(lambda m: forms.get(m[0], m[0]), reference)

    for name in package.list_parts():
        if not name.endswith(".xml") or not name.startswith("xl/"):
            continue
        part = Part(package, name)
        for element in part.root.iter("{*}*"):
            if element.text and get_local_name(element) in FORMULAS and rename(element.text) != element.text:
                element.text = rename(element.text)
                part.mark_changed()
            location = element.get("location")
            if location and rename(location) != location:
                element.set("location", rename(location))
                part.mark_changed()


def _escape_column(name: str) -> str:
    """Return the name of a table's column as formulas write it."""
    return re.sub(r"(['\[\]#@])", r"'\1", name)


def make_defined_name(text: str, others: Collection[str]) -> str:
    """Return a text as a defined name, unlike all others: letters, digits and underscores, no reference to a cell."""
    plain = f"_{re.sub(r'[^A-Za-z0-9]+', '_', text).strip('_') or 'name'}"
    return _choose_unused_name(plain, others, "_")


def make_sheet_name(text: str, others: Sequence[str]) -> str:
    """Return a text as the name of a sheet, unlike all others: without signs that it may not have."""
    plain = re.sub(r"[\[\]:*?/\\']", "", text).strip()[: LONGEST_SHEET_NAME - 4] or "Sheet"
    return _choose_unused_name(plain, others, " ")


def _choose_unused_name(plain: str, others: Collection[str], joint: str) -> str:
    """Return a name, with a number behind the joint if others, in any case, have it."""
    used_names = {other.lower() for other in others}
    names = (f"{plain}{joint}{n}" if n else plain for n in range(len(used_names) + 1))
    return next(name for name in names if name.lower() not in used_names)
