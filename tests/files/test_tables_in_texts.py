"""Tables within texts are treated by column, as sheets are; small ones are read as forms."""

from __future__ import annotations

from pathlib import Path

import pytest
from docx import Document as Word

from allonym.files import anonymize_path, read_documents
from allonym.policy import Policy

NAMES = ("Ada Brook", "Tom Ellery", "Jan Kos", "May Lindt", "Ben Hart")
ROWS = [
    ("Name", "Department", "Start", "Amount"),
    *zip(
        NAMES,
        ("Sales", "Legal", "Sales", "Sales", "Legal"),
        ("2019-03-04", "2020-01-02", "2018-05-06", "2021-07-08", "2017-02-03"),
        ("1999.99", "20.00", "300.50", "44.00", "2005.10"),
        strict=True,
    ),
]
FORM = [("Name", "Ada Brook"), ("Ordered", "2019 bolts")]


def write_docx(path: Path, rows: list[tuple[str, ...]]) -> None:
    word = Word()
    word.add_paragraph("A list of May Lindt.")
    table = word.add_table(rows=0, cols=len(rows[0]))
    for row in rows:
        for cell, text in zip(table.add_row().cells, row, strict=True):
            cell.text = text
    word.save(str(path))


def write_html(path: Path, rows: list[tuple[str, ...]]) -> None:
    lines = ("".join(f"<td><b>{text[:1]}</b>{text[1:]}</td>" for text in row) for row in rows)
    layout = "<table><tr><td>A list of May Lindt.</td></tr><tr><td>{}</td></tr></table>"
    path.write_text(layout.format("<table>" + "".join(f"<tr>{line}</tr>\n" for line in lines) + "</table>"))


def write_mail(path: Path, rows: list[tuple[str, ...]]) -> None:
    write_html(path, rows)
    path.write_text(f"Subject: list\nContent-Type: text/html\n\n{path.read_text()}")


WRITERS = {"docx": write_docx, "html": write_html, "eml": write_mail}


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_table_in_a_text_is_treated_by_column(suffix: str, tmp_path: Path) -> None:
    source, target = tmp_path / f"a.{suffix}", tmp_path / f"b.{suffix}"
    WRITERS[suffix](source, ROWS)
    anonymize_path(source, target, "default")
    (document,) = read_documents(target)
    assert not [word for name in NAMES for word in name.split() if word in document.text]
    kept = [text for row in ROWS for text in (row[1], row[3])]
    assert [text for text in kept if text not in document.text] == []
    assert document.text.count("[PERSON_") == 6 and "[PERSON_5]" in document.text and "[PERSON_6]" not in document.text
    assert document.text.count("[DATE_") == 5


def test_a_long_text_names_no_column(tmp_path: Path) -> None:
    story = "It rained on Harwell for days. " * 40
    source = tmp_path / "a.html"
    source.write_text(f"<table><tr><td>{story}</td></tr>" + "<tr><td>dry</td></tr>" * 9 + "</table>")
    (document,) = read_documents(source)
    assert document.text.lower().count("harwell") == 40


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_small_table_is_read_as_a_form(suffix: str, tmp_path: Path) -> None:
    source, target = tmp_path / f"a.{suffix}", tmp_path / f"b.{suffix}"
    WRITERS[suffix](source, FORM)
    anonymize_path(source, target, "default")
    (document,) = read_documents(target)
    assert "Brook" not in document.text and "Name" in document.text and "bolts" in document.text


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_person_beside_a_cell_is_no_name_of_a_field(suffix: str, tmp_path: Path) -> None:
    source = tmp_path / f"a.{suffix}"
    WRITERS[suffix](source, [("Participant", "Consent"), ("Tom Ellery", "given on paper")])
    (document,) = read_documents(source)
    assert document.text.casefold().count("tom ellery") == 1


def test_paragraphs_that_begin_with_a_speaker_are_turns_and_the_cells_beside_them_are_none(tmp_path: Path) -> None:
    word = Word()
    word.add_paragraph("Third interview")
    for speaker, said in [
        ("Interviewer", "Well, Blessing?"),
        ("Blessing Okonkwo", "Fine."),
        ("Interviewer", "Good."),
    ] * 2:
        paragraph = word.add_paragraph()
        paragraph.add_run(f"{speaker}: ").bold = True
        paragraph.add_run(said)
    table = word.add_table(rows=1, cols=2)
    table.rows[0].cells[0].text, table.rows[0].cells[1].text = "Participant", "yes"
    word.save(str(tmp_path / "a.docx"))
    (document,) = read_documents(tmp_path / "a.docx")
    speakers = [document.text[slice(*turn.speaker)] for turn in document.turns if turn.speaker]
    assert speakers == ["Interviewer", "Blessing Okonkwo", "Interviewer"] * 2
    assert document.text[document.turns[1].start : document.turns[1].end] == "Fine."
    anonymize_path(tmp_path / "a.docx", tmp_path / "b.docx", "transcripts")
    (safe,) = read_documents(tmp_path / "b.docx")
    assert "Blessing" not in safe.text and "Okonkwo" not in safe.text and "Third interview" in safe.text


def test_a_small_table_with_known_names_of_columns_is_one(run):
    rows = [["Client", "Facture", "Statut"], ["Ada Brook", "7", "Payée"], ["Bo Reed", "8", "En attente"]]
    html = "<table>" + "".join("<tr>" + "".join(f"<td>{c}</td>" for c in row) + "</tr>" for row in rows) + "</table>"
    out = run("a.html", html.encode(), Policy.load("default"))[0].decode()
    assert out == html.replace("Ada Brook", "[PERSON_1]").replace("Bo Reed", "[PERSON_2]")
