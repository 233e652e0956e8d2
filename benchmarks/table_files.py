"""The files of ``tables.py``: made from the rows of ``tables.toml``, written, and read again as their users would."""

from __future__ import annotations

import csv
import datetime
import io
import json
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

_SPECS = tomllib.loads(Path(__file__).with_name("tables.toml").read_text(encoding="utf-8"))
WORDS: Mapping[str, Sequence[str]] = {name: text.split("|") for name, text in _SPECS["words"].items()}
ROLES = ("who", "number", "plain", "told", "free")


@dataclass(frozen=True)
class Column:
    """A column: its name, its values, and its role.

    Roles: ``who`` identifies and must be covered in each row; ``number`` and ``plain`` must stay; ``told`` is free text
    with the names in ``names``; ``free`` may become what it likes.
    """

    name: str
    role: str
    values: Sequence[Any]
    names: Sequence[str] = ()


@dataclass(frozen=True)
class Case:
    """A file: its name, its columns, and how it is written."""

    name: str
    columns: Sequence[Column]
    options: Mapping[str, Any]

    @property
    def rows(self) -> list[list[Any]]:
        return [list(row) for row in zip(*(c.values for c in self.columns), strict=True)]


@dataclass(frozen=True)
class Grid:
    """A file as its reader sees it: the header, the rows, and the formulas."""

    header: list[str]
    rows: list[list[Any]]
    formulas: Mapping[str, str] = field(default_factory=dict)


def make_cases(part: str) -> Iterator[Case]:
    """Yield the files of a part of ``tables.toml``, ``files`` or ``held_out``, always the same ones."""
    for name, spec in _SPECS[part].items():
        draw = Random(spec["seed"])
        count = spec.get("rows", 40)
        pairs = [(a, b) for a in WORDS["given_names"] for b in WORDS["family_names"]]
        people = draw.sample(pairs, min(1000, max(4, count * 2 // 3)))
        who = [draw.choice(people) for _ in range(count)]
        yield Case(name, [make_column(draw, people, who, *column) for column in spec["columns"]], spec)


# Values


def _draw_iban(r: Random) -> str:
    body = "".join(r.choice("0123456789") for _ in range(18))
    return f"DE{98 - int(f'{body}131400') % 97:02d}{body}"


def _draw_code(r: Random, pattern: str) -> str:
    signs = {"#": "0123456789", "@": "ABCDEFGHKM"}
    return "".join(r.choice(signs[c]) if c in signs else c for c in pattern)


def _draw_amount(r: Random, form: str, low: float = 1, high: float = 3000) -> str:
    value = f"{r.uniform(low, high):,.2f}"
    swapped = value.translate(str.maketrans(",.", ".,"))
    return form.format(us=value, de=swapped, plain=swapped.replace(".", ""))


def _draw_date(r: Random, form: str = "") -> object:
    day = datetime.date(2019, 1, 1) + datetime.timedelta(days=r.randint(0, 1800))
    return day.strftime(form) if form else day


_NAMES = {
    "full": "{0} {1}",
    "turned": "{1}, {0}",
    "first": "{0}",
    "last": "{1}",
    "lower": "{2} {3}",
    "mail": "{2}.{3}@example.com",
}
"""From a given name and a family name, and both in small letters."""

_BY_PERSON: Mapping[str, Callable[..., Any]] = {
    "phone us": lambda r: f"({r.randint(201, 989)}) 555-{r.randint(1000, 9999)}",
    "phone de": lambda r: f"0{r.choice((30, 40, 89, 221))}/{r.randint(100000, 9999999)}",
    "phone number": lambda r: r.randint(2015550000, 9895559999),
    "phone uk": lambda r: f"+44 20 7946 {r.randint(0, 999):04d}",
    "phone mixed": lambda r: r.choice(
        (
            f"555-{r.randint(1000, 9999)}",
            f"+1 415 555 {r.randint(1000, 9999)}",
            f"0171 {r.randint(1000000, 9999999)}",
        )
    ),
    "address": lambda r: f"{r.randint(1, 180)} {r.choice(WORDS['streets'])}",
    "ssn": lambda r: f"{r.randint(100, 660)}-{r.randint(10, 99)}-{r.randint(1000, 9999)}",
    "iban": _draw_iban,
    "code": _draw_code,
}
"""Values that a person has in all rows."""

_BY_ROW: Mapping[str, tuple[str, Callable[..., Any]]] = {
    "integer": ("number", Random.randint),
    "decimal": ("number", lambda r, low, high, places=2: round(r.uniform(low, high), places)),
    "shown": ("number", _draw_amount),
    "choice": ("plain", lambda r, values: r.choice(WORDS[values] if isinstance(values, str) else values)),
    "date": ("free", _draw_date),
    "ip": ("who", lambda r: f"203.0.113.{r.randint(1, 254)}"),
}
"""Role, and values that each row has anew."""

_BY_NUMBER: Mapping[str, tuple[str, Callable[..., Any]]] = {
    "index": ("free", lambda i, first: first + i),
    "cycle": ("free", lambda i, values: values[i % len(values)]),
    "bytes": ("free", lambda i: bytes([i, 255, 0])),
}
"""Role, and values that the number of a row tells, from 0."""


def make_column(
    r: Random, people: Sequence[tuple[str, str]], who: Sequence[tuple[str, str]], name: str, kind: str, *args: Any
) -> Column:
    """Draw a column: of the people ``who``, one a row."""
    role = ""
    if args and args[-1] in ROLES:
        *args, role = args
    if kind in _NAMES:
        return Column(name, role or "who", [_NAMES[kind].format(a, b, a.lower(), b.lower()) for a, b in who])
    if kind == "serial":
        (first,) = args or (1001,)
        numbers = {person: first + i for i, person in enumerate(dict.fromkeys(who))}
        return Column(name, role or "who", [numbers[person] for person in who])
    if kind in _BY_PERSON:
        values = {person: _BY_PERSON[kind](r, *args) for person in dict.fromkeys(who)}
        return Column(name, role or "who", [values[person] for person in who])
    if kind in _BY_ROW:
        usual, draw = _BY_ROW[kind]
        return Column(name, role or usual, [draw(r, *args) for _ in who])
    if kind in _BY_NUMBER:
        usual, find = _BY_NUMBER[kind]
        return Column(name, role or usual, [find(i, *args) for i in range(len(who))])
    if kind == "late":  # numbers, and in one row far down a remark about Ada Brook
        row, remark = args
        return Column(
            name,
            "told",
            [remark if i == row else i for i in range(len(who))],
            ["Ada Brook" if i == row else "" for i in range(len(who))],
        )
    assert kind == "note", kind
    (share,) = args or (0.4,)
    texts, names = [], []
    for a, b in who:
        is_about_someone = r.random() < share
        someone = f"{a} {b}" if r.random() < 0.5 else "{} {}".format(*r.choice(people))
        names.append(someone if is_about_someone else "")
        forms = WORDS["remarks_about" if is_about_someone else "remarks"]
        texts.append(r.choice(forms).format(name=someone))
    return Column(name, "told", texts, names)


# Writing


def write_case(path: Path, case: Case) -> None:
    """Write a file in the format of its name."""
    {".xlsx": _write_xlsx, ".parquet": _write_parquet, ".json": _write_json}.get(path.suffix, _write_csv)(path, case)


def _write_csv(path: Path, case: Case) -> None:
    options = case.options
    out = io.StringIO(newline="")
    for line in options.get("before", ()):
        out.write(f"{line}\r\n")
    quoting = csv.QUOTE_ALL if options.get("quoted") else csv.QUOTE_MINIMAL
    writer = csv.writer(out, delimiter=options.get("delimiter", ","), quoting=quoting)
    if header := options.get("header", [c.name for c in case.columns]):
        writer.writerow(header)
    comments = options.get("comments", {})
    for i, row in enumerate(case.rows):
        is_ragged = options.get("ragged", False)
        writer.writerow(row[:3] if is_ragged and i % 7 == 3 else [*row, ""] if is_ragged and i % 7 == 5 else row)
        if str(i) in comments:
            out.write(f"{comments[str(i)]}\r\n")
    path.write_bytes(out.getvalue().encode(options.get("encoding", "utf-8")))


def _write_xlsx(path: Path, case: Case) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = case.options.get("sheet", "Sheet1")
    for line in case.options.get("before", ()):
        sheet.append([line])
    sheet.append([c.name for c in case.columns])
    for row in case.rows:
        sheet.append(row)
    if edit := case.options.get("edit"):
        _EDITS[edit](book, sheet, len(case.rows) + 1)
    book.save(path)


def _write_parquet(path: Path, case: Case) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = {c.name: pa.array(c.values) for c in case.columns}
    for name in case.options.get("dictionaries", ()):
        data[name] = data[name].dictionary_encode()
    pq.write_table(pa.table(data), path, row_group_size=25)


def _write_json(path: Path, case: Case) -> None:
    names = [c.name for c in case.columns]
    rows = [dict(zip(names, row, strict=True)) for row in case.rows]
    indent = None if case.options.get("compact") else 2
    path.write_text(json.dumps(rows, ensure_ascii=False, indent=indent), encoding="utf-8")


# What else a workbook has; ``last`` is the number of the last row


def _add_totals(book: Any, sheet: Any, last: int) -> None:
    sheet.cell(last + 1, 5, f"=SUM(E2:E{last})")
    sheet.cell(last + 2, 5, f'=COUNTIF(F2:F{last},"open")')


def _add_months(book: Any, sheet: Any, last: int) -> None:
    for month in ("February", "March", "Summary"):
        book.create_sheet(month).append(["Total", f"=SUM(January!D2:D{last})"])
    sheet["G1"] = "Month"
    for row in range(2, last + 1):
        sheet.cell(row, 7, f'=TEXT(E{row},"MMMM YYYY")')


def _add_formulas(book: Any, sheet: Any, last: int) -> None:
    sheet["E1"], sheet["F1"] = "Sum", "Class"
    for row in range(2, last + 1):
        sheet.cell(row, 5, f"=B{row}*C{row}")
        sheet.cell(row, 6, f'=IF(E{row}>1000,"Large","Small May")')
    sheet.cell(last + 2, 5, f'=SUMIFS(E2:E{last},A2:A{last},"Desk lamp")')


def _add_formats(book: Any, sheet: Any, last: int) -> None:
    for row in range(2, last + 1):
        sheet.cell(row, 2).number_format = "0.0%"
        sheet.cell(row, 4).number_format = '#,##0.00 "Euro";[Red]-#,##0.00 "Euro"'


def _add_second_sheet(book: Any, sheet: Any, last: int) -> None:
    second = book.create_sheet("April")
    second.append(["Member", "Fee"])
    for row in range(2, last + 1):
        second.append([sheet.cell(row, 1).value, 12.5])


def _add_reference(book: Any, sheet: Any, last: int) -> None:
    book.create_sheet("Total").append(["Sum", f"=SUM('Ada Brook'!B2:B{last})"])


def _add_reference_to_first(book: Any, sheet: Any, last: int) -> None:
    book.create_sheet("Resumen").append(["Suma", f"=SUM(Hoja1!D2:D{last})", '=COUNTIF(Hoja1!A:A,"x*")'])


_EDITS: Mapping[str, Callable[[Any, Any, int], None]] = {
    "totals": _add_totals,
    "months": _add_months,
    "formulas": _add_formulas,
    "formats": _add_formats,
    "second sheet": _add_second_sheet,
    "reference": _add_reference,
    "reference to first": _add_reference_to_first,
}


# Reading


def read_grid(path: Path, case: Case) -> Grid:
    """Read a file with csv, openpyxl, pyarrow or json."""
    if path.suffix == ".xlsx":
        return _read_xlsx(path, case)
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        table = pq.read_table(path)
        return Grid(table.column_names, [list(r.values()) for r in table.to_pylist()])
    if path.suffix == ".json":
        data = json.loads(path.read_text(encoding="utf-8"))
        return Grid(list(data[0]) if data else [], [list(r.values()) for r in data])
    text = path.read_bytes().decode(case.options.get("encoding", "utf-8"))
    lines = list(csv.reader(io.StringIO(text, newline=""), delimiter=case.options.get("delimiter", ",")))
    lines = [line for line in lines[len(case.options.get("before", ())) :] if not (line and line[0].startswith("#"))]
    return Grid(lines.pop(0) if lines and case.options.get("header", True) else [], lines)


def _read_xlsx(path: Path, case: Case) -> Grid:
    import openpyxl

    book = openpyxl.load_workbook(path)
    top = len(case.options.get("before", ())) + 1
    cells = book.worksheets[0].iter_rows(min_row=top, max_row=top + len(case.rows), values_only=True)
    header, *rows = [list(row)[: len(case.columns)] for row in cells]
    formulas = {
        f"{number}!{cell.coordinate}": cell.value
        for number, sheet in enumerate(book.worksheets)
        for row in sheet.iter_rows()
        for cell in row
        if isinstance(cell.value, str) and cell.value.startswith("=")
    }
    return Grid(
        [str(v if v is not None else "") for v in header],
        [row for row in rows if any(v is not None for v in row)],
        formulas,
    )
