"""Tables as people have them, made by code: what is covered, what is spoiled, and whether counts and joins survive.

usage: python benchmarks/tables.py [--show] [--held-out] [--only WORD] [--keep FOLDER] [--policy NAME]

Writes 47 files (CSV, TSV, XLSX, Parquet, JSON), anonymises each on the command line's path, reads the results with csv,
openpyxl, pyarrow and json, and compares them cell by cell. ``--show`` lists what went wrong, by file and column.
"""

# ruff: noqa: E501
from __future__ import annotations

import argparse
import csv
import datetime
import io
import json
import random
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FIRST = (
    "Ada Boris Carla Dmitri Elif Farid Greta Hanna Igor Jolene Katya Liam Mona Nadia Omar Petra Quentin Rosa Stefan Tariq "
    "Ulrike Vikram Wanda Xenia Yusuf Zoe Anneke Bjorn Chiara Dara Emeka Fumiko Goran Hugo Ines Jana Kofi Lucia Marek Ngozi"
).split()
LAST = (
    "Brook Almeida Castellano Dahl Eriksen Fontaine Grabowski Hartmann Ivanova Jankowski Kowalczyk Lindqvist Moreau "
    "Nakamura Okafor Petrov Quirke Rasmussen Schreiber Tanaka Ueda Vasquez Whitfield Yilmaz Zimmermann Abernathy Beaumont "
    "Cheng Donnelly Esposito Fairweather Gallagher Holloway Iqbal Jovanovic"
).split()
STREETS = "Mill Lane|Station Road|Harbour Street|Birch Avenue|Lindenweg|Rue des Lilas|Calle Mayor|Church Hill".split(
    "|"
)
CITIES = "Leeds Bristol Hamburg Lyon Porto Gdansk Uppsala Ghent Turin Graz".split()
COMPANIES = (
    "Norwick Logistics Ltd|Harlan & Voss|Tessera Foods GmbH|Bluecombe Systems Inc|Pellworth Partners|Ostrava Steel a.s."
).split("|")
PRODUCTS = "Desk lamp|Office chair|Standing desk|Whiteboard|Filing cabinet|Monitor arm|Paper tray".split("|")
DEPARTMENTS = "Sales Marketing Finance Engineering Operations Support".split()
STATUSES = "open closed pending cancelled".split()
PLAIN = (
    "Delivery was late but the parcel was fine.|Please call back in the afternoon.|No complaints.|"
    "The lamp flickers after ten minutes.|Very happy with the service!|Asked for an invoice.|n/a"
).split("|")
TOLD = (
    "{name} called about the invoice.|Spoke with {name} on the phone.|Please forward this to {name}.|"
    "{name} was not at home."
).split("|")


@dataclass
class Column:
    """A column: its name, its values, and its role.

    Roles: ``who`` identifies and must be covered in each row; ``number`` and ``plain`` must stay; ``told`` is free text
    with the names in ``names``; ``date`` and ``free`` may become what they like.
    """

    name: str
    role: str
    values: list[Any]
    names: list[str] = field(default_factory=list)


@dataclass
class Case:
    """A file: its name, its columns, how it is written, and what its reader has to skip."""

    name: str
    columns: list[Column]
    write: Callable[[Path, Case], None]
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def rows(self) -> list[list[Any]]:
        return [list(row) for row in zip(*(c.values for c in self.columns), strict=True)]


class Maker:
    """Draws values; each file has its own seed."""

    def __init__(self, seed: int, rows: int = 40) -> None:
        self.r = random.Random(seed)
        self.n = rows
        pairs = [(a, b) for a in FIRST for b in LAST]
        self.people = self.r.sample(pairs, min(1000, max(4, rows * 2 // 3)))
        self.who = [self.r.choice(self.people) for _ in range(rows)]

    def each(self, draw: Callable[[], Any]) -> list[Any]:
        return [draw() for _ in range(self.n)]

    def by_person(self, draw: Callable[[str, str], Any]) -> list[Any]:
        known: dict[tuple[str, str], Any] = {}
        out = []
        for who in self.who:
            if who not in known:
                known[who] = draw(*who)
            out.append(known[who])
        return out

    def full(self, name: str = "name") -> Column:
        return Column(name, "who", [f"{a} {b}" for a, b in self.who])

    def turned(self, name: str = "Name") -> Column:
        return Column(name, "who", [f"{b}, {a}" for a, b in self.who])

    def first(self, name: str = "first_name") -> Column:
        return Column(name, "who", [a for a, _ in self.who])

    def last(self, name: str = "last_name") -> Column:
        return Column(name, "who", [b for _, b in self.who])

    def mail(self, name: str = "email") -> Column:
        return Column(name, "who", [f"{a}.{b}@example.com".lower() for a, b in self.who])

    def phone(self, name: str = "phone", form: str = "us") -> Column:
        r = self.r
        forms = {
            "us": lambda *_: f"({r.randint(201, 989)}) 555-{r.randint(1000, 9999)}",
            "bare": lambda *_: f"{r.randint(201, 989)}555{r.randint(1000, 9999)}",
            "de": lambda *_: f"0{r.choice((30, 40, 89, 221))}/{r.randint(100000, 9999999)}",
            "number": lambda *_: r.randint(2015550000, 9895559999),
            "uk": lambda *_: f"+44 20 7946 {r.randint(0, 999):04d}",
            "mixed": lambda *_: r.choice(
                (
                    f"555-{r.randint(1000, 9999)}",
                    f"+1 415 555 {r.randint(1000, 9999)}",
                    f"0171 {r.randint(1000000, 9999999)}",
                )
            ),
        }
        return Column(name, "who", self.by_person(forms[form]))

    def code(self, name: str, pattern: str, role: str = "who") -> Column:
        r = self.r

        def draw(*_: str) -> str:
            return "".join(
                r.choice("0123456789") if c == "#" else r.choice("ABCDEFGHKM") if c == "@" else c for c in pattern
            )

        return Column(name, role, self.by_person(draw))

    def serial(self, name: str, start: int = 1001, role: str = "who") -> Column:
        numbers = {who: start + i for i, who in enumerate(dict.fromkeys(self.who))}
        return Column(name, role, [numbers[who] for who in self.who])

    def integer(self, name: str, low: int, high: int, role: str = "number") -> Column:
        return Column(name, role, self.each(lambda: self.r.randint(low, high)))

    def decimal(self, name: str, low: float, high: float, places: int = 2, role: str = "number") -> Column:
        return Column(name, role, self.each(lambda: round(self.r.uniform(low, high), places)))

    def shown(self, name: str, form: str, low: float = 1, high: float = 3000) -> Column:
        def draw() -> str:
            value = f"{self.r.uniform(low, high):,.2f}"
            swapped = value.translate(str.maketrans(",.", ".,"))
            return form.format(us=value, de=swapped, plain=swapped.replace(".", ""))

        return Column(name, "number", self.each(draw))

    def choice(self, name: str, values: Sequence[Any], role: str = "plain") -> Column:
        return Column(name, role, self.each(lambda: self.r.choice(values)))

    def date(self, name: str, form: str | None = "%Y-%m-%d", first: int = 2019, days: int = 1800) -> Column:
        def draw() -> Any:
            day = datetime.date(first, 1, 1) + datetime.timedelta(days=self.r.randint(0, days))
            return day if form is None else day.strftime(form)

        return Column(name, "date", self.each(draw))

    def address(self, name: str = "address") -> Column:
        return Column(name, "who", self.by_person(lambda *_: f"{self.r.randint(1, 180)} {self.r.choice(STREETS)}"))

    def iban(self, name: str = "IBAN") -> Column:
        def draw(*_: str) -> str:
            body = "".join(self.r.choice("0123456789") for _ in range(18))
            check = 98 - int(f"{body}131400") % 97
            return f"DE{check:02d}{body}"

        return Column(name, "who", self.by_person(draw))

    def ssn(self, name: str = "ssn", form: str = "{}-{}-{}") -> Column:
        def draw(*_: str) -> str:
            return form.format(self.r.randint(100, 660), self.r.randint(10, 99), self.r.randint(1000, 9999))

        return Column(name, "who", self.by_person(draw))

    def note(self, name: str = "notes", share: float = 0.4) -> Column:
        texts, names = [], []
        for a, b in self.who:
            told = self.r.random() < share
            someone = f"{a} {b}" if self.r.random() < 0.5 else "{} {}".format(*self.r.choice(self.people))
            names.append(someone if told else "")
            texts.append(self.r.choice(TOLD).format(name=someone) if told else self.r.choice(PLAIN))
        return Column(name, "told", texts, names)


# How files are written


def write_csv(path: Path, case: Case) -> None:
    options = case.options
    out = io.StringIO(newline="")
    for line in options.get("before", ()):
        out.write(f"{line}\r\n")
    writer = csv.writer(out, delimiter=options.get("delimiter", ","), quoting=options.get("quoting", csv.QUOTE_MINIMAL))
    header = options.get("header", [c.name for c in case.columns])
    if header:
        writer.writerow(header)
    for i, row in enumerate(case.rows):
        writer.writerow(options["ragged"](i, row) if "ragged" in options else row)
        if i in options.get("comments", {}):
            out.write(f"{options['comments'][i]}\r\n")
    path.write_bytes(out.getvalue().encode(options.get("encoding", "utf-8")))


def write_xlsx(path: Path, case: Case) -> None:
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
        edit(book, sheet, len(case.rows))
    book.save(path)


def write_parquet(path: Path, case: Case) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = {c.name: pa.array(c.values) for c in case.columns}
    for name, kind in case.options.get("types", {}).items():
        data[name] = data[name].cast(kind) if isinstance(kind, pa.DataType) else kind(data[name])
    pq.write_table(pa.table(data), path, row_group_size=case.options.get("group", 25))


def write_json(path: Path, case: Case) -> None:
    names = [c.name for c in case.columns]
    rows = [dict(zip(names, row, strict=True)) for row in case.rows]
    path.write_text(json.dumps(rows, ensure_ascii=False, indent=case.options.get("indent", 2)), encoding="utf-8")


# The files


def make_cases() -> Iterator[Case]:
    """Yield the files of the benchmark, always the same ones."""
    m = Maker(1)
    yield Case(
        "customers.csv",
        [
            m.serial("customer_id"),
            m.full(),
            m.mail(),
            m.phone(),
            m.choice("city", CITIES, "free"),
            m.decimal("total", 5, 2000),
        ],
        write_csv,
    )
    m = Maker(2, 10)
    yield Case(
        "ten-customers.csv",
        [m.full("Customer"), m.choice("Status", STATUSES), m.decimal("Amount", 900, 2100)],
        write_csv,
    )
    m = Maker(3)
    yield Case(
        "customers-de.csv",
        [
            m.serial("Kundennummer", 20001),
            m.last("Nachname"),
            m.first("Vorname"),
            m.phone("Telefon", "de"),
            m.shown("Umsatz", "{de}"),
            m.date("Datum", "%d.%m.%Y"),
        ],
        write_csv,
        {"delimiter": ";"},
    )
    m = Maker(4)
    yield Case(
        "betraege-de.csv",
        [
            m.code("Artikel", "A-####", "free"),
            m.shown("Betrag", "{plain}"),
            m.shown("Steuer", "{plain} €", 1, 90),
            m.integer("Menge", 1, 90),
        ],
        write_csv,
        {"delimiter": ";", "encoding": "utf-8-sig"},
    )
    m = Maker(5)
    yield Case(
        "hr.csv",
        [
            m.code("employee_no", "E#####"),
            m.first(),
            m.last(),
            m.choice("department", DEPARTMENTS),
            m.integer("salary", 28000, 120000),
            m.date("start_date"),
            m.integer("level", 1, 7),
        ],
        write_csv,
    )
    m = Maker(6)
    yield Case(
        "hr-upper.csv",
        [
            m.turned("EMPLOYEE NAME"),
            m.ssn("SSN"),
            m.choice("DEPT", [d.upper() for d in DEPARTMENTS]),
            m.shown("GROSS PAY", "${us}", 900, 9000),
        ],
        write_csv,
        {"quoting": csv.QUOTE_ALL},
    )
    m = Maker(7)
    yield Case(
        "sales.tsv",
        [
            m.code("order", "SO-#####", "free"),
            m.choice("product", PRODUCTS),
            m.integer("qty", 1, 50),
            m.decimal("unit_price", 1, 2000),
            m.choice("region", ["North", "South", "East", "West"]),
            m.full("sales_rep"),
        ],
        write_csv,
        {"delimiter": "\t"},
    )
    m = Maker(8)
    yield Case(
        "lab.csv",
        [
            m.code("patient_id", "P######"),
            m.choice("analyte", ["glucose", "sodium", "potassium", "creatinine"]),
            m.decimal("value", 0.1, 200, 1),
            m.choice("unit", ["mg/dL", "mmol/L"]),
            m.choice("flag", ["", "H", "L"]),
            m.date("collected", "%Y-%m-%d %H:%M"),
        ],
        write_csv,
    )
    m = Maker(9)
    yield Case(
        "lab-wide.csv",
        [
            m.code("MRN", "########"),
            m.decimal("hb", 9, 17, 1),
            m.decimal("wbc", 3, 12, 2),
            m.decimal("plt", 120, 400, 0),
            m.decimal("crp", 0, 90, 1),
            m.full("physician"),
        ],
        write_csv,
    )
    m = Maker(10)
    yield Case(
        "survey.csv",
        [
            m.integer("respondent", 1, 9999, "free"),
            m.integer("How satisfied are you? (1-5)", 1, 5),
            m.choice("Would you recommend us?", ["Yes", "No", "Maybe"]),
            m.note("What could we do better?"),
        ],
        write_csv,
    )
    m = Maker(11)
    yield Case(
        "survey-named.csv",
        [m.full("Participant"), m.integer("q1", 1, 7), m.integer("q2", 1, 7), m.integer("q3", 1, 7), m.note("comment")],
        write_csv,
    )
    m = Maker(12)
    yield Case(
        "access-log.csv",
        [
            m.date("timestamp", "%Y-%m-%dT%H:%M:%SZ"),
            Column("ip", "who", [f"203.0.113.{m.r.randint(1, 254)}" for _ in range(40)]),
            m.choice("method", ["GET", "POST", "PUT"]),
            m.choice("status", [200, 301, 404, 500], "number"),
            m.integer("bytes", 100, 99999),
            m.decimal("seconds", 0, 3, 3),
        ],
        write_csv,
    )
    m = Maker(13)
    yield Case(
        "comments.csv",
        [m.full(), m.mail(), m.integer("visits", 1, 90)],
        write_csv,
        {
            "before": ["# exported by reports 2.1", "# all branches"],
            "comments": {5: "# second page", 20: "# third page"},
        },
    )
    m = Maker(14)
    yield Case(
        "title-rows.csv",
        [m.full("Client"), m.phone("Phone"), m.decimal("Balance", 0, 9000)],
        write_csv,
        {"before": ["Quarterly balances", ""]},
    )
    m = Maker(15)
    yield Case(
        "ragged.csv",
        [m.full(), m.mail(), m.choice("status", STATUSES), m.note("remark")],
        write_csv,
        {"ragged": lambda i, row: row[:3] if i % 7 == 3 else [*row, ""] if i % 7 == 5 else row},
    )
    m = Maker(16)
    yield Case(
        "pandas-index.csv", [Column("", "number", list(range(40))), m.full(), m.decimal("score", 0, 1, 4)], write_csv
    )
    m = Maker(17)
    yield Case(
        "r-index.csv",
        [
            Column("", "free", [str(i + 1) for i in range(40)]),
            m.full("name"),
            m.decimal("score", 0, 1, 4),
            m.choice("group", ["control", "treatment"]),
        ],
        write_csv,
        {"header": ["name", "score", "group"]},
    )
    m = Maker(18)
    yield Case("no-header.csv", [m.full(), m.mail(), m.integer("n", 1, 99)], write_csv, {"header": []})
    m = Maker(19)
    yield Case(
        "years-as-columns.csv",
        [
            m.choice("Country", ["Norway", "Chile", "Japan"], "free"),
            *(m.decimal(str(y), 10, 90, 1) for y in range(2015, 2021)),
        ],
        write_csv,
    )
    m = Maker(20)
    yield Case(
        "contacts-fr.csv",
        [
            m.last("Nom"),
            m.first("Prénom"),
            m.mail("Courriel"),
            m.phone("Téléphone", "uk"),
            m.integer("Montant", 1, 900),
        ],
        write_csv,
        {"delimiter": ";"},
    )
    m = Maker(21)
    yield Case(
        "clientes-es.csv",
        [
            m.full("Nombre completo"),
            m.address("Dirección"),
            m.choice("Estado", ["activo", "inactivo"]),
            m.shown("Importe", "{de}"),
        ],
        write_csv,
        {"delimiter": ";"},
    )
    m = Maker(22)
    yield Case(
        "payments.csv",
        [
            m.full("account holder"),
            m.iban(),
            m.decimal("amount", 1, 5000),
            m.choice("currency", ["EUR", "USD", "GBP"]),
            m.date("booked", "%d/%m/%Y"),
        ],
        write_csv,
    )
    m = Maker(23)
    yield Case(
        "companies.csv",
        [
            m.choice("supplier", COMPANIES, "who"),
            m.full("contact person"),
            m.phone("tel", "mixed"),
            m.integer("orders", 0, 400),
        ],
        write_csv,
    )
    m = Maker(24)
    yield Case(
        "sensor.csv",
        [
            m.integer("sensor", 1, 12),
            m.decimal("temp_c", -20, 45, 2),
            m.decimal("humidity", 0, 100, 1),
            m.decimal("pressure", 950, 1050, 2),
        ],
        write_csv,
    )
    m = Maker(25)
    yield Case(
        "coded.csv", [m.integer("x1", 0, 2100), m.integer("x2", 1900, 2100), m.decimal("y", -3, 3, 6)], write_csv
    )
    m = Maker(26)
    yield Case(
        "people-lower.csv",
        [
            Column("fullname", "who", [f"{a} {b}".lower() for a, b in m.who]),
            m.integer("points", 0, 300),
            m.choice("team", ["red", "blue", "green"]),
        ],
        write_csv,
    )
    m = Maker(27, 4000)
    yield Case(
        "long.csv",
        [
            m.serial("customer_id"),
            m.full(),
            m.mail(),
            m.decimal("total", 5, 3000),
            m.choice("status", STATUSES),
            m.note("remark", 0.1),
        ],
        write_csv,
    )
    m = Maker(28)
    yield Case(
        "tickets.csv",
        [
            m.integer("ticket", 10000, 99999, "free"),
            m.full("assignee"),
            m.choice("priority", ["low", "medium", "high"]),
            m.note("summary"),
            m.integer("hours", 0, 40),
        ],
        write_csv,
    )
    m = Maker(29)
    yield Case(
        "late-surprise.csv",
        [
            m.integer("id", 1, 999, "number"),
            Column("code", "free", ["A1", "B2", "C3", "D4"] * 10),
            Column(
                "amount",
                "told",
                [*range(35), "see Ada Brook", 36, 37, 38, 39],
                ["Ada Brook" if i == 35 else "" for i in range(40)],
            ),
        ],
        write_csv,
    )

    m = Maker(40)
    yield Case(
        "customers.xlsx",
        [
            m.serial("Customer ID"),
            m.full("Name"),
            m.mail("E-mail"),
            m.phone("Phone"),
            m.decimal("Total", 5, 2000),
            m.choice("Status", STATUSES),
        ],
        write_xlsx,
        {"edit": add_totals},
    )
    m = Maker(41, 10)
    yield Case(
        "ten-customers.xlsx",
        [m.full("Customer"), m.integer("Visits", 1, 12), m.decimal("Amount", 900, 2100)],
        write_xlsx,
    )
    m = Maker(42)
    yield Case(
        "hr.xlsx",
        [
            m.full("Employee"),
            m.integer("Staff no.", 100, 9999, "free"),
            m.choice("Department", DEPARTMENTS),
            m.integer("Salary", 28000, 99000),
            m.date("Hired", None),
        ],
        write_xlsx,
        {"sheet": "January", "edit": add_months},
    )
    m = Maker(43)
    yield Case(
        "sales-formulas.xlsx",
        [m.choice("Product", PRODUCTS), m.integer("Qty", 1, 40), m.decimal("Price", 1, 900), m.full("Rep")],
        write_xlsx,
        {"sheet": "Index", "edit": add_formulas},
    )
    m = Maker(44)
    yield Case(
        "formats.xlsx",
        [m.full("Client"), m.decimal("Rate", 0, 1, 3), m.integer("Year", 1990, 2024), m.integer("Amount", 1000, 90000)],
        write_xlsx,
        {"sheet": "Лист1", "edit": add_formats},
    )
    m = Maker(45)
    yield Case(
        "phones.xlsx",
        [m.full("Name"), m.phone("Mobile", "number"), m.integer("Floor", 1, 30)],
        write_xlsx,
        {"sheet": "Übersicht"},
    )
    m = Maker(46)
    yield Case(
        "titled.xlsx",
        [m.full("Patient"), m.code("MRN", "#######"), m.decimal("Weight", 40, 120, 1), m.note("Remarks")],
        write_xlsx,
        {"before": ["Ward list", "printed weekly"], "sheet": "Data"},
    )
    m = Maker(47)
    yield Case(
        "lab.xlsx",
        [
            m.code("Sample", "S-####", "free"),
            m.decimal("pH", 4, 9, 2),
            m.decimal("Na", 120, 150, 1),
            m.decimal("K", 3, 6, 2),
        ],
        write_xlsx,
        {"sheet": "Results"},
    )
    m = Maker(48)
    yield Case(
        "two-sheets.xlsx",
        [m.full("Member"), m.mail("Mail"), m.integer("Points", 0, 500)],
        write_xlsx,
        {"sheet": "March", "edit": add_second_sheet},
    )
    m = Maker(49)
    yield Case(
        "sheet-of-a-person.xlsx",
        [m.choice("Item", PRODUCTS), m.integer("Hours", 1, 90)],
        write_xlsx,
        {"sheet": "Ada Brook", "edit": add_reference},
    )

    m = Maker(60)
    yield Case(
        "customers.parquet",
        [m.serial("customer_id"), m.full(), m.mail(), m.decimal("total", 5, 2000), m.choice("status", STATUSES)],
        write_parquet,
    )
    m = Maker(61)
    yield Case(
        "binary.parquet",
        [m.full(), Column("blob", "free", [bytes([i, 255, 0]) for i in range(40)]), m.integer("n", 1, 99)],
        write_parquet,
    )
    m = Maker(62)
    yield Case(
        "dictionary.parquet",
        [m.full("patient"), m.choice("ward", ["North", "South"]), m.decimal("dose", 0, 9, 1)],
        write_parquet,
        {"types": {"ward": lambda a: a.dictionary_encode()}},
    )
    m = Maker(63)
    yield Case(
        "events.parquet",
        [
            m.mail("user"),
            m.choice("event", ["login", "logout", "purchase"]),
            m.integer("ms", 1, 9000),
            m.note("detail"),
        ],
        write_parquet,
    )
    m = Maker(70)
    yield Case(
        "customers.json",
        [m.serial("customer_id"), m.full(), m.mail(), m.decimal("total", 5, 2000), m.choice("status", STATUSES)],
        write_json,
    )
    m = Maker(71)
    yield Case(
        "tickets.json",
        [
            m.integer("ticket", 1, 99999, "free"),
            m.full("reporter"),
            m.choice("state", STATUSES),
            m.choice("kind", ["bug", "feature", "question"]),
            m.note("body"),
        ],
        write_json,
    )
    m = Maker(72)
    yield Case(
        "hr.json",
        [
            m.code("employeeNumber", "E#####"),
            m.first("firstName"),
            m.last("lastName"),
            m.choice("department", DEPARTMENTS),
            m.integer("salary", 20000, 90000),
        ],
        write_json,
        {"indent": None},
    )
    m = Maker(73)
    yield Case(
        "orders.json",
        [
            m.choice("product", PRODUCTS),
            m.shown("price", "{us}"),
            m.integer("quantity", 1, 9),
            m.full("recipient"),
            m.address("shipTo"),
        ],
        write_json,
    )


def make_held_out_cases() -> Iterator[Case]:
    """Yield files that were made after the rules of columns; their first run led to five changes."""
    m = Maker(201)
    yield Case(
        "a.csv",
        [m.full("cust_nm"), m.phone("ph", "mixed"), m.date("dt", "%m/%d/%y"), m.decimal("amt", 1, 4000)],
        write_csv,
    )
    m = Maker(202)
    yield Case(
        "b.csv",
        [
            m.last("Nazwisko"),
            m.first("Imię"),
            m.shown("Kwota", "{plain} zł"),
            m.choice("Stan", ["nowy", "w toku", "zamknięty"]),
        ],
        write_csv,
        {"delimiter": ";"},
    )
    m = Maker(203)
    yield Case(
        "c.csv",
        [
            m.serial("acct", 55012),
            m.full("primary"),
            m.full("secondary"),
            m.choice("branch", CITIES, "free"),
            m.integer("txns", 0, 900),
        ],
        write_csv,
    )
    m = Maker(204)
    yield Case(
        "d.csv",
        [
            m.code("ref", "@@-####", "free"),
            m.choice("grp", ["A", "B", "C"]),
            m.decimal("t0", 30, 40, 1),
            m.decimal("t1", 30, 40, 1),
            m.choice("sig", ["*", "**", "n.s."]),
        ],
        write_csv,
    )
    m = Maker(205)
    yield Case(
        "e.csv",
        [
            m.full("Respondent"),
            m.choice("Q1", ["Strongly agree", "Agree", "Neutral", "Disagree"]),
            m.choice("Q2", ["Very good", "Good", "Fair", "Poor"]),
            m.note("Q3 other, please specify"),
        ],
        write_csv,
    )
    m = Maker(206)
    yield Case(
        "f.csv",
        [
            m.turned("VOTER"),
            m.address("RES ADDR"),
            m.integer("PCT", 1, 60),
            m.choice("PARTY", ["IND", "OTH", "UNA"], "free"),
        ],
        write_csv,
    )
    m = Maker(207)
    yield Case(
        "g.csv",
        [m.date("when", "%d %b %Y %H:%M"), m.mail("from"), m.mail("to"), m.integer("kb", 1, 900), m.note("subject")],
        write_csv,
    )
    m = Maker(208)
    yield Case(
        "h.csv",
        [
            m.choice("team", ["Falcons", "Otters", "Badgers"]),
            m.full("captain"),
            m.integer("pts", 0, 90),
            m.choice("pos", ["GK", "DF", "MF", "FW"]),
        ],
        write_csv,
    )
    m = Maker(209)
    yield Case(
        "i.xlsx",
        [
            m.full("Medewerker"),
            m.integer("Uren", 1, 40),
            m.shown("Bedrag", "€ {de}"),
            m.choice("Soort", ["vast", "tijdelijk", "oproep"]),
        ],
        write_xlsx,
        {"sheet": "Overzicht"},
    )
    m = Maker(210)
    yield Case(
        "j.xlsx",
        [
            m.last("Apellidos"),
            m.first("Nombre"),
            m.code("Expediente", "EX-#####", "free"),
            m.decimal("Cuota", 5, 300),
            m.note("Notas"),
        ],
        write_xlsx,
        {"sheet": "Hoja1", "edit": add_reference_to_first},
    )
    m = Maker(211)
    yield Case(
        "k.json",
        [
            m.mail("login"),
            m.choice("role", ["viewer", "editor", "owner"]),
            m.integer("quota", 1, 99),
            m.full("display"),
        ],
        write_json,
    )
    m = Maker(212)
    yield Case(
        "l.parquet",
        [
            m.phone("msisdn", "number"),
            m.integer("secs", 1, 4000),
            m.choice("cell_type", ["3G", "4G", "5G"]),
            m.full("subscriber"),
        ],
        write_parquet,
    )


def add_reference_to_first(book: Any, sheet: Any, rows: int) -> None:
    book.create_sheet("Resumen").append(["Suma", f"=SUM(Hoja1!D2:D{rows + 1})", '=COUNTIF(Hoja1!A:A,"x*")'])


def add_totals(book: Any, sheet: Any, rows: int) -> None:
    sheet.cell(rows + 2, 5, f"=SUM(E2:E{rows + 1})")
    sheet.cell(rows + 3, 5, f'=COUNTIF(F2:F{rows + 1},"open")')


def add_months(book: Any, sheet: Any, rows: int) -> None:
    for month in ("February", "March", "Summary"):
        book.create_sheet(month).append(["Total", f"=SUM(January!D2:D{rows + 1})"])
    sheet["G1"] = "Month"
    for row in range(2, rows + 2):
        sheet.cell(row, 7, f'=TEXT(E{row},"MMMM YYYY")')


def add_formulas(book: Any, sheet: Any, rows: int) -> None:
    sheet["E1"], sheet["F1"] = "Sum", "Class"
    for row in range(2, rows + 2):
        sheet.cell(row, 5, f"=B{row}*C{row}")
        sheet.cell(row, 6, f'=IF(E{row}>1000,"Large","Small May")')
    sheet.cell(rows + 3, 5, f'=SUMIFS(E2:E{rows + 1},A2:A{rows + 1},"Desk lamp")')


def add_formats(book: Any, sheet: Any, rows: int) -> None:
    for row in range(2, rows + 2):
        sheet.cell(row, 2).number_format = "0.0%"
        sheet.cell(row, 4).number_format = '#,##0.00 "Euro";[Red]-#,##0.00 "Euro"'


def add_second_sheet(book: Any, sheet: Any, rows: int) -> None:
    second = book.create_sheet("April")
    second.append(["Member", "Fee"])
    for row in range(2, rows + 2):
        second.append([sheet.cell(row, 1).value, 12.5])


def add_reference(book: Any, sheet: Any, rows: int) -> None:
    book.create_sheet("Total").append(["Sum", f"=SUM('Ada Brook'!B2:B{rows + 1})"])


# How results are read


@dataclass
class Grid:
    """A file as its reader sees it: lines before the header, the header, the rows, and the formulas."""

    header: list[str]
    rows: list[list[Any]]
    formulas: dict[str, str] = field(default_factory=dict)


def read_grid(path: Path, case: Case) -> Grid:
    if path.suffix in (".csv", ".tsv"):
        text = path.read_bytes().decode(case.options.get("encoding", "utf-8"))
        lines = list(csv.reader(io.StringIO(text, newline=""), delimiter=case.options.get("delimiter", ",")))
        lines = [line for i, line in enumerate(lines[len(case.options.get("before", ())) :]) if not _is_comment(line)]
        header = lines.pop(0) if lines and case.options.get("header", True) else []
        return Grid(header, lines)
    if path.suffix == ".xlsx":
        import openpyxl

        book = openpyxl.load_workbook(path)
        sheet = book.worksheets[0]
        skip, width, height = len(case.options.get("before", ())), len(case.columns), len(case.rows)
        rows = [
            list(row)[:width] for row in sheet.iter_rows(min_row=skip + 1, max_row=skip + 1 + height, values_only=True)
        ]
        formulas = {
            f"{number}!{cell.coordinate}": cell.value
            for number, sheet in enumerate(book.worksheets)
            for row in sheet.iter_rows()
            for cell in row
            if isinstance(cell.value, str) and cell.value.startswith("=")
        }
        return Grid(
            [str(v if v is not None else "") for v in rows[0]],
            [r for r in rows[1:] if any(v is not None for v in r)],
            formulas,
        )
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        table = pq.read_table(path)
        return Grid(table.column_names, [list(r.values()) for r in table.to_pylist()])
    data = json.loads(path.read_text(encoding="utf-8"))
    return Grid(list(data[0]) if data else [], [list(r.values()) for r in data])


def _is_comment(line: list[str]) -> bool:
    return bool(line) and line[0].startswith("#")


def is_same(old: Any, new: Any) -> bool:
    if isinstance(old, float) and isinstance(new, (int, float)):
        return abs(old - new) < 1e-9
    return str(old if old is not None else "") == str(new if new is not None else "")


# Figures


def compare(case: Case, old: Grid, new: Grid, figures: Counter[str], log: list[str]) -> None:
    """Add the figures of one file."""
    figures["files treated"] += 1
    figures["headers"] += bool(old.header)
    if old.header != new.header:
        figures["headers changed"] += 1
        log.append(f"{case.name}: header {new.header}")
    for place, formula in old.formulas.items():
        figures["formula cells"] += 1
        if new.formulas.get(place) != formula and case.name != "sheet-of-a-person.xlsx":
            figures["formula cells changed"] += 1
            log.append(f"{case.name}: {place} {formula} -> {new.formulas.get(place)}")
    figures["rows"] += len(old.rows)
    if lost := len(old.rows) - len(new.rows):
        figures["rows lost"] += lost
        log.append(f"{case.name}: {lost} rows lost")
        return
    for i, column in enumerate(case.columns):
        pairs = [(a[i], b[i]) for a, b in zip(old.rows, new.rows, strict=True) if i < len(a) and i < len(b)]
        compare_column(case, column, pairs, figures, log)


def compare_column(
    case: Case, column: Column, pairs: list[tuple[Any, Any]], figures: Counter[str], log: list[str]
) -> None:
    where = f"{case.name}: {column.name!r}"
    changed = [(a, b) for a, b in pairs if not is_same(a, b)]
    if column.role in ("number", "plain"):
        kind = "number cells" if column.role == "number" else "category cells"
        figures[kind] += len(pairs)
        figures[f"{kind} changed"] += len(changed)
        if changed:
            log.append(f"{where} {len(changed)} of {len(pairs)} {kind} changed, as {changed[0]}")
    elif column.role == "who":
        figures["identifying columns"] += 1
        left = [a for a, b in pairs if _is_left(a, b)]
        figures["identifying cells"] += len(pairs)
        figures["identifying cells left"] += len(left)
        figures["identifying columns covered"] += not left
        if left:
            log.append(f"{where} {len(left)} of {len(pairs)} left, as {left[0]!r}")
        new_of, old_of = defaultdict(set), defaultdict(set)
        for a, b in pairs:
            if not _is_left(a, b):
                new_of[str(a).casefold()].add(str(b))
                old_of[str(b)].add(str(a).casefold())
        figures["values"] += len(new_of)
        figures["values with one replacement"] += sum(len(v) == 1 for v in new_of.values())
        figures["replacements"] += len(old_of)
        figures["values with a replacement of their own"] += sum(
            all(len(old_of[b]) == 1 for b in v) for v in new_of.values()
        )
        if any(len(v) > 1 for v in new_of.values()) or any(len(v) > 1 for v in old_of.values()):
            log.append(f"{where} {len(new_of)} values, {len(old_of)} replacements")
    elif column.role == "told":
        for (_, b), name in zip(pairs, column.names, strict=False):
            figures["names told"] += bool(name)
            figures["names told and left"] += bool(name) and name in str(b)
        figures["text cells without a name"] += sum(not n for n in column.names)
        figures["text cells without a name changed"] += sum(
            not n and not is_same(a, b) for (a, b), n in zip(pairs, column.names, strict=False)
        )
        if left := [n for (_, b), n in zip(pairs, column.names, strict=False) if n and n in str(b)]:
            log.append(f"{where} {len(left)} names left, as {left[0]}")


def _is_left(old: Any, new: Any) -> bool:
    text = str(old if old is not None else "")
    return bool(text) and text.casefold() in str(new if new is not None else "").casefold()


def show(figures: Counter[str], seconds: float, size: int) -> dict[str, object]:
    rows = [
        ("headers changed", "headers"),
        ("number cells changed", "number cells"),
        ("category cells changed", "category cells"),
        ("formula cells changed", "formula cells"),
        ("identifying columns covered", "identifying columns"),
        ("identifying cells left", "identifying cells"),
        ("values with one replacement", "values"),
        ("values with a replacement of their own", "values"),
        ("names told and left", "names told"),
        ("text cells without a name changed", "text cells without a name"),
        ("rows lost", "rows"),
        ("refused", "files"),
    ]
    for name, of in rows:
        print(f"{name:<42}{figures[name]:>8,} of {figures[of]:>8,}")
    print(f"{'processor seconds per MB':<42}{seconds / size * 1e6:>8.1f}")
    return {**figures, "seconds": round(seconds, 1), "bytes": size}


def main() -> None:
    from allonym.errors import AllonymError
    from allonym.files import anonymize_path

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--held-out", action="store_true", help="other files, made after the rules of columns")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--policy", default="default")
    args = parser.parse_args()
    figures: Counter[str] = Counter()
    log: list[str] = []
    seconds, size = 0.0, 0
    from allonym import anonymize

    anonymize("Ada Brook", args.policy)  # load the models
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for case in make_held_out_cases() if args.held_out else make_cases():
            if args.only not in case.name:
                continue
            source, target = folder / case.name, folder / f"safe-{case.name}"
            case.write(source, case)
            figures["files"] += 1
            began = time.process_time()
            try:
                anonymize_path(source, target, args.policy, overwrite=True)
            except AllonymError as error:
                figures["refused"] += 1
                log.append(f"{case.name}: refused, {error}")
                continue
            seconds += time.process_time() - began
            size += source.stat().st_size
            compare(case, read_grid(source, case), read_grid(target, case), figures, log)
    if args.show:
        print("\n".join(log))
    print(json.dumps(show(figures, seconds, size)))


if __name__ == "__main__":
    main()
