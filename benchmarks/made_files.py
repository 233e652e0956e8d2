"""The files of ``files.py``: letters, forms, invoices, tables, slides and exports in five languages, made by code.

Text and office files are written by python-docx, openpyxl, python-pptx and odfpy; LibreOffice, where it is installed,
turns some of them into DOC, XLS, PPT, ODP, RTF and ODS.
"""

# ruff: noqa: E501
from __future__ import annotations

import base64
import datetime
import io
import json
import subprocess
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import Any

from allonym.files.pictures import make_grey_png

_SPECS = tomllib.loads(Path(__file__).with_name("files.toml").read_text(encoding="utf-8"))
_PHONES = ("212-555-0142", "212-555-0143", "212-555-0144", "212-555-0145", "212-555-0146")


@dataclass(frozen=True)
class Words:
    """The people, texts and rows of a language."""

    language: str
    people: list[str]
    spec: Mapping[str, str]

    @property
    def mails(self) -> list[str]:
        plain = "".join(c for c in " ".join(self.people).lower() if c.isascii() or c == " ")
        names = plain.split()
        return [f"{names[2 * i]}.{names[2 * i + 1]}@example.com" for i in range(len(self.people))]

    @property
    def secrets(self) -> list[str]:
        return [*self.people, *self.mails, *_PHONES, self.spec["street"]]

    def fill(self, key: str) -> str:
        a, b, c = self.people[:3]
        values = {"mail": self.mails[2], "phone": _PHONES[2], "date": "2026-03-14"}
        return self.spec[key].format(a=a, b=b, c=c, street=self.spec["street"], city=self.spec["city"], **values)

    def list_of(self, key: str) -> list[str]:
        return self.spec[key].split("|")

    @property
    def rows(self) -> list[list[Any]]:
        status = self.list_of("status")
        return [
            [
                self.people[i % 5],
                self.mails[i % 5],
                _PHONES[i % 5],
                1999.99 + 37.5 * i,
                i + 1,
                f"=D{i + 2}*E{i + 2}",
                datetime.date(2026, 3, 1 + i),
                status[i % 3],
            ]
            for i in range(15)
        ]

    @property
    def form(self) -> list[tuple[str, str]]:
        values = (self.people[0], "1984-07-21", f"{self.spec['street']}, {self.spec['city']}", _PHONES[0], "A-20417")
        return list(zip(self.list_of("form"), values, strict=True))


def read_words() -> list[Words]:
    return [Words(name, spec["people"].split("|"), spec) for name, spec in _SPECS.items()]


def _save(document: Any) -> bytes:
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def _add_part(data: bytes, name: str, content: bytes, swaps: Mapping[str, tuple[bytes, bytes]]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for info in old.infolist():
            body = old.read(info)
            if info.filename in swaps:
                body = body.replace(*swaps[info.filename], 1)
            new.writestr(info.filename, body)
        new.writestr(name, content)
    return out.getvalue()


def make_letter(words: Words) -> bytes:
    import docx

    document = docx.Document()
    document.add_heading(words.spec["title"], 1)
    paragraph = document.add_paragraph(words.fill("letter"))
    paragraph.add_run(f" ({words.people[3]})").bold = True
    document.add_picture(io.BytesIO(make_grey_png()))
    document.sections[0].footer.paragraphs[0].text = words.people[2]
    document.core_properties.author = words.people[2]
    return _save(document)


def make_form(words: Words) -> bytes:
    import docx

    document = docx.Document()
    table = document.add_table(0, 2)
    for name, value in words.form:
        cells = table.add_row().cells
        cells[0].text, cells[1].text = name, value
    document.add_paragraph(words.fill("note"))
    return _save(document)


def make_invoice(words: Words) -> bytes:
    import docx

    document = docx.Document()
    document.add_paragraph(f"{words.people[0]}\n{words.spec['street']}\n{words.spec['city']}")
    table = document.add_table(1, 8)
    for cell, text in zip(table.rows[0].cells, words.list_of("header"), strict=True):
        cell.text = text
    for row in words.rows[:5]:
        for cell, value in zip(table.add_row().cells, row, strict=True):
            cell.text = "39.00" if str(value).startswith("=") else str(value)
    return _save(document)


def make_macro_document(words: Words) -> bytes:
    main = b"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    types = (main, b"application/vnd.ms-word.document.macroEnabled.main+xml")
    return _add_part(make_letter(words), "word/vbaProject.bin", b"\xd0\xcf\x11\xe0", {"[Content_Types].xml": types})


def make_new_document(words: Words) -> bytes:
    """A document as newer versions of Word write it: other names of parts, and parts of unknown kinds."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(make_letter(words))) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name in ("[Content_Types].xml", "_rels/.rels"):
                data = data.replace(b"word/document.xml", b"word/document2.xml")
            new.writestr(
                name.replace("word/document.xml", "word/document2.xml").replace("/document.", "/document2."), data
            )
        new.writestr("word/intelligence2.xml", b"<x/>")
        new.writestr("word/unheard_of.xml", b"<x/>")
    return out.getvalue()


def make_workbook(words: Words) -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    january, index, summary = words.list_of("sheets")
    sheet.title = january
    sheet.append(words.list_of("header"))
    for row in words.rows:
        sheet.append(row)
    for cells in sheet.iter_rows(min_row=2, min_col=4, max_col=4):
        cells[0].number_format = '#,##0.00 "EUR"'
    other = book.create_sheet(index)
    other.append([words.list_of("header")[3], words.list_of("header")[5]])
    other.append([f"=SUM('{january}'!D2:D16)", f"='{january}'!F2"])
    other["A3"] = f"=TEXT('{january}'!G2,\"MMMM YYYY\")"
    book.create_sheet(summary).append([words.fill("note")])
    person = book.create_sheet(words.people[0])
    person.append([words.list_of("header")[3]])
    person.append([12.5])
    other["B3"] = f"='{words.people[0]}'!A2"
    return _save(book)


def make_rich_workbook(words: Words) -> bytes:
    """A workbook with a pivot table, a link to another file, and a chart sheet."""
    import openpyxl
    from openpyxl.chart import BarChart, Reference

    book = openpyxl.load_workbook(io.BytesIO(make_workbook(words)))
    sheet = book.worksheets[0]
    chart = BarChart()
    chart.add_data(Reference(sheet, min_col=4, min_row=1, max_row=16), titles_from_data=True)
    book.create_chartsheet("Chart1").add_chart(chart)
    rels = b'<Relationship Id="rIdP" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/{}" Target="{}"/></Relationships>'
    data = _save(book)
    pivot = b"<pivotCacheDefinition xmlns='http://schemas.openxmlformats.org/spreadsheetml/2006/main'><cacheFields><cacheField><sharedItems><s v='%s'/></sharedItems></cacheField></cacheFields></pivotCacheDefinition>"
    link = rels.replace(b"{}", b"pivotCacheDefinition", 1).replace(b"{}", b"/xl/pivotCache/pivotCacheDefinition1.xml")
    data = _add_part(
        data,
        "xl/pivotCache/pivotCacheDefinition1.xml",
        pivot % words.people[1].encode(),
        {"xl/_rels/workbook.xml.rels": (b"</Relationships>", link)},
    )
    link = link.replace(b"rIdP", b"rIdE").replace(b'pivotCacheDefinition"', b'externalLink"')
    link = link.replace(b"/xl/pivotCache/pivotCacheDefinition1.xml", b"/xl/externalLinks/externalLink1.xml")
    outside = b"<externalLink xmlns='http://schemas.openxmlformats.org/spreadsheetml/2006/main'/>"
    return _add_part(
        data,
        "xl/externalLinks/externalLink1.xml",
        outside,
        {"xl/_rels/workbook.xml.rels": (b"</Relationships>", link)},
    )


def make_macro_workbook(words: Words) -> bytes:
    main = b"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"
    types = (main, b"application/vnd.ms-excel.sheet.macroEnabled.main+xml")
    return _add_part(make_workbook(words), "xl/vbaProject.bin", b"\xd0\xcf\x11\xe0", {"[Content_Types].xml": types})


def make_slides(words: Words) -> bytes:
    import pptx
    from pptx.util import Inches

    show = pptx.Presentation()
    slide = show.slides.add_slide(show.slide_layouts[1])
    slide.shapes.title.text, slide.placeholders[1].text = words.spec["title"], words.fill("note")
    slide.notes_slide.notes_text_frame.text = words.fill("letter")
    slide = show.slides.add_slide(show.slide_layouts[5])
    table = slide.shapes.add_table(6, 3, Inches(1), Inches(2), Inches(6), Inches(3)).table
    for i, text in enumerate(words.list_of("header")[:3]):
        table.cell(0, i).text = text
    for j, row in enumerate(words.rows[:5], 1):
        for i in range(3):
            table.cell(j, i).text = row[i]
    slide.shapes.add_picture(io.BytesIO(make_grey_png()), Inches(1), Inches(1))
    show.core_properties.author = words.people[2]
    return _save(show)


def make_odf_letter(words: Words) -> bytes:
    from odf.opendocument import OpenDocumentText
    from odf.text import H, P, Span

    document = OpenDocumentText()
    document.text.addElement(H(outlinelevel=1, text=words.spec["title"]))
    paragraph = P(text=words.fill("letter"))
    paragraph.addElement(Span(text=f" ({words.people[3]})"))
    document.text.addElement(paragraph)
    for name, value in words.form:
        document.text.addElement(P(text=f"{name}: {value}"))
    return _save(document)


def make_xml(words: Words) -> bytes:
    names = ("name", "mail", "phone", "amount", "quantity", "total", "date", "status")
    rows = "".join(
        f'<customer id="{n}">' + "".join(f"<{k}>{v}</{k}>" for k, v in zip(names, row, strict=True)) + "</customer>"
        for n, row in enumerate(words.rows, 1)
    )
    note = f"<!-- {words.people[0]} --><note>{words.fill('note')}</note>"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<customers>{rows}{note}</customers>\n'.encode()


def make_yaml(words: Words) -> bytes:
    lines = [f"# {words.spec['title']}", "version: 1.5", "debug: true", "customers:"]
    for row in words.rows[:8]:
        lines += [f"  - name: {row[0]}", f"    mail: {row[1]}", f"    phone: '{row[2]}'", f"    amount: {row[3]}"]
    return "\n".join([*lines, "note: |", f"  {words.fill('note')}", ""]).encode()


def make_notebook(words: Words) -> bytes:
    picture = base64.b64encode(make_grey_png()).decode()
    code = [f"frame = frame[frame.name == {words.people[0]!r}]\n", "frame.amount.sum()"]
    output = {"data": {"image/png": picture, "text/plain": [words.people[0]]}, "metadata": {}}
    cells = [
        {"cell_type": "markdown", "id": "a", "metadata": {}, "source": [words.fill("letter")]},
        {
            "cell_type": "code",
            "execution_count": 1,
            "id": "b",
            "metadata": {},
            "source": code,
            "outputs": [{"output_type": "display_data", **output}],
        },
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, ensure_ascii=False).encode()


def make_log(words: Words) -> bytes:
    lines = [
        f"2026-03-14 08:0{i % 10}:11 INFO auth user={row[1]} ip=192.0.2.{i + 1} action=login ms={i * 7}"
        for i, row in enumerate(words.rows)
    ]
    return "\n".join([*lines, words.fill("note")]).encode()


def make_page(words: Words) -> bytes:
    picture = base64.b64encode(make_grey_png()).decode()
    rows = "".join("<tr>" + "".join(f"<td>{v}</td>" for v in row[:3]) + "</tr>" for row in words.rows[:5])
    return (
        f"<!DOCTYPE html><html><head><meta charset='utf-8'><title>{words.spec['title']}</title></head><body>"
        f"<img alt='{words.people[1]}' src='data:image/png;base64,{picture}'><p>{words.fill('letter')}</p>"
        f"<table>{rows}</table></body></html>"
    ).encode()


def make_book(words: Words) -> bytes:
    page = f"<html xmlns='http://www.w3.org/1999/xhtml'><head><title>x</title></head><body><p>{words.fill('letter')}</p></body></html>"
    package = f"<package xmlns='http://www.idpf.org/2007/opf' version='3.0'><metadata xmlns:dc='http://purl.org/dc/elements/1.1/'><dc:title>{words.spec['title']}</dc:title><dc:creator>{words.people[2]}</dc:creator></metadata><manifest><item id='a' href='a.xhtml' media-type='application/xhtml+xml'/></manifest><spine><itemref idref='a'/></spine></package>"
    container = "<container version='1.0' xmlns='urn:oasis:names:tc:opendocument:xmlns:container'><rootfiles><rootfile full-path='p.opf' media-type='application/oebps-package+xml'/></rootfiles></container>"
    return make_archive(
        {"mimetype": b"application/epub+zip", "META-INF/container.xml": container, "p.opf": package, "a.xhtml": page}
    )


def make_archive(files: Mapping[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def make_zip(words: Words) -> bytes:
    name = words.people[0].replace(" ", "_")
    return make_archive(
        {f"{name}.docx": make_letter(words), "in/log.log": make_log(words), "x.xlsx": make_workbook(words)}
    )


def make_pdf(words: Words) -> bytes:
    """A letter with a form and a table of rows, as an office program prints it."""
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import Paragraph, SimpleDocTemplate, Spacer, Table

    out = io.BytesIO()
    style = getSampleStyleSheet()["BodyText"]
    fields = Table([[name, value] for name, value in words.form])
    rows = Table([words.list_of("header")[:5], *([str(value) for value in row[:5]] for row in words.rows[:8])])
    story = [Paragraph(words.spec["title"], style), Paragraph(words.fill("letter"), style), Spacer(1, 12), fields]
    SimpleDocTemplate(out, title=words.spec["title"], author=words.people[2]).build([*story, Spacer(1, 12), rows])
    return out.getvalue()


def make_mail(words: Words) -> bytes:
    from email.message import EmailMessage

    mail = EmailMessage()
    mail["From"], mail["To"] = (f"{words.people[i]} <{words.mails[i]}>" for i in (2, 0))
    mail["Subject"] = f"{words.spec['title']}: {words.people[1]}"
    mail["Message-ID"] = "<20417.1@mail.example.com>"
    mail.set_content(words.fill("letter"))
    mail.add_alternative(make_page(words).decode(), subtype="html")
    kind = "vnd.openxmlformats-officedocument.wordprocessingml.document"
    mail.add_attachment(make_form(words), maintype="application", subtype=kind, filename="form.docx")
    mail.add_attachment(make_grey_png(), maintype="image", subtype="png", filename="logo.png")
    return mail.as_bytes()


def make_csv(words: Words) -> bytes:
    """An export with semicolons, as spreadsheets write it where numbers have commas."""
    lines = [words.list_of("header"), *([str(value).replace(".", ",", 1) for value in row] for row in words.rows)]
    for line, row in zip(lines[1:], words.rows, strict=True):
        line[1], line[5] = str(row[1]), "39,00"
    return "\r\n".join(";".join(line) for line in lines).encode("cp1252")


def make_json_lines(words: Words) -> bytes:
    rows = (
        {"id": n, "customer": r[0], "mail": r[1], "amount": r[3], "note": words.fill("note")}
        for n, r in enumerate(words.rows)
    )
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def make_parquet(words: Words) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = words.list_of("header")[:5]
    columns = [[row[i] for row in words.rows] for i in range(5)]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(dict(zip(names, columns, strict=True))), sink)
    return bytes(sink.getvalue())


def make_subtitles(words: Words) -> bytes:
    lines = words.fill("letter").split(". ")
    return "\n".join(
        f"{n}\n00:00:{n:02},000 --> 00:00:{n:02},900\n{line}\n" for n, line in enumerate(lines, 1)
    ).encode()


def make_cards(words: Words) -> bytes:
    return "".join(
        f"BEGIN:VCARD\r\nVERSION:4.0\r\nFN:{name}\r\nEMAIL:{mail}\r\nTEL:{phone}\r\nEND:VCARD\r\n"
        for name, mail, phone in zip(words.people, words.mails, _PHONES, strict=True)
    ).encode()


def make_calendar(words: Words) -> bytes:
    event = f"SUMMARY:{words.spec['title']}\r\nDESCRIPTION:{words.fill('note')}\r\nATTENDEE;CN={words.people[1]}:mailto:{words.mails[1]}"
    head = (
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//x//x//EN\r\nBEGIN:VEVENT\r\nUID:20417\r\nDTSTART:20260314T080000Z"
    )
    return f"{head}\r\n{event}\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n".encode()


def make_notes(words: Words) -> bytes:
    rows = "\n".join(f"| {name} | {value} |" for name, value in words.form)
    return f"# {words.spec['title']}\n\n{words.fill('letter')}\n\n| | |\n|---|---|\n{rows}\n".encode()


MAKERS: Mapping[str, Callable[[Words], bytes]] = {
    "letter.docx": make_letter,
    "form.docx": make_form,
    "invoice.docx": make_invoice,
    "new.docx": make_new_document,
    "macro.docm": make_macro_document,
    "table.xlsx": make_workbook,
    "rich.xlsx": make_rich_workbook,
    "macro.xlsm": make_macro_workbook,
    "slides.pptx": make_slides,
    "letter.odt": make_odf_letter,
    "rows.xml": make_xml,
    "rows.yaml": make_yaml,
    "study.ipynb": make_notebook,
    "server.log": make_log,
    "page.html": make_page,
    "book.epub": make_book,
    "all.zip": make_zip,
    "letter.pdf": make_pdf,
    "letter.eml": make_mail,
    "export.csv": make_csv,
    "rows.jsonl": make_json_lines,
    "rows.parquet": make_parquet,
    "talk.srt": make_subtitles,
    "people.vcf": make_cards,
    "meeting.ics": make_calendar,
    "notes.md": make_notes,
}
CONVERTED = {
    "letter.docx": ("doc", "rtf", "odt"),
    "invoice.docx": ("rtf",),
    "table.xlsx": ("xls", "ods"),
    "slides.pptx": ("ppt", "odp"),
}


def convert_files(files: list[Path], suffix: str, folder: Path) -> None:
    """Convert files by LibreOffice, all in one run."""
    if program := which("soffice"):
        with tempfile.TemporaryDirectory() as profile:
            command = [program, f"-env:UserInstallation=file://{profile}", "--headless", "--convert-to", suffix]
            subprocess.run([*command, "--outdir", str(folder), *map(str, files)], capture_output=True, timeout=900)


def write_files(folder: Path) -> None:
    """Write all files, named ``LANGUAGE-KIND.SUFFIX``."""
    folder.mkdir(parents=True, exist_ok=True)
    for words in read_words():
        for name, make in MAKERS.items():
            (folder / f"{words.language}-{name}").write_bytes(make(words))
    for name, suffixes in CONVERTED.items():
        for suffix in suffixes:
            with tempfile.TemporaryDirectory() as work:
                convert_files(sorted(folder.glob(f"*-{name}")), suffix, Path(work))
                for made in Path(work).iterdir():
                    made.rename(folder / f"{made.stem}-converted{made.suffix}")
