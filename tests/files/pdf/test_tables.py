"""Tables of pages: columns decide about their cells, and long cells do not run into the next column."""

from __future__ import annotations

import io

import pytest

pytest.importorskip("pikepdf")
pdfium = pytest.importorskip("pypdfium2")
platypus = pytest.importorskip("reportlab.platypus")
styles = pytest.importorskip("reportlab.lib.styles")

from allonym.files import anonymize_path  # noqa: E402

HEADER = ["Customer", "Email", "Phone", "Amount", "Quantity"]
ROWS = [
    ["Harriet Okonjo", "ho@example.com", "212-555-0142", "1999.99", "1"],
    ["Desmond Farrow", "desmond.farrow.the.younger@example.com", "212-555-0143", "2037.49", "2"],
    ["Priscilla Vane", "pv@example.com", "closed", "2074.99", "3"],
    ["Winifred Castle", "", "212-555-0145", "2112.49", "4"],
    ["Harriet Okonjo", "ho@example.com", "212-555-0142", "2149.99", "5"],
]


@pytest.fixture
def lines(tmp_path):
    """The lines of the anonymised page, as PDFium reads them."""
    return write_and_read_lines(tmp_path, [HEADER, *ROWS])


def write_and_read_lines(tmp_path, rows):
    out = io.BytesIO()
    story = [platypus.Paragraph("The bill is due."), platypus.Table(rows)]
    platypus.SimpleDocTemplate(out).build(story)
    source, target = tmp_path / "bill.pdf", tmp_path / "safe.pdf"
    source.write_bytes(out.getvalue())
    anonymize_path(source, target, "default")
    pages = pdfium.PdfDocument(target.read_bytes())
    return [line.strip() for line in pages[0].get_textpage().get_text_range().splitlines()]


def test_headers_numbers_and_remarks_stay(lines):
    text = " ".join(lines)
    assert "The bill is due." in text and "closed" in text
    for word in (*HEADER, *(row[3] for row in ROWS)):
        assert word in text.split()


def test_each_name_of_a_column_is_covered_and_equal_ones_are_one_person(lines):
    text = " ".join(lines)
    assert not [word for row in ROWS for word in (*row[0].split(), row[1]) if word and word in text]
    assert [text.count(f"[PERSON_{n}]") for n in (1, 2, 3, 4, 5)] == [2, 1, 1, 1, 0]


def test_a_long_cell_and_its_neighbour_are_two(lines):
    text = " ".join(lines)
    assert text.count("[PN1]") + text.count("[PHONE_NUMBER_1]") == 2
    assert "[EMAIL_ADDRESS_2]" in text or "[EA2]" in text


def test_a_small_table_with_known_names_of_columns_is_one(tmp_path):
    rows = [["Kunde", "Rechnung", "Betrag", "Status"], ["Ada Brook", "7", "20,00", "offen"]]
    text = " ".join(write_and_read_lines(tmp_path, rows))
    assert all(word in text.split() for word in (*rows[0], "7", "20,00", "offen", "[PERSON_1]"))


def test_amounts_beside_texts_stay(tmp_path):
    rows = [
        ["Carbon monoxide", "500 000", "-"],
        ["Halons of 2009", "(31,874)", "¥ 64,457"],
        ["Ada Brook", "1.250,00 €", "x"],
    ]
    text = " ".join(write_and_read_lines(tmp_path, rows))
    assert all(amount in text for row in rows for amount in row[1:]) and "Brook" not in text


def test_telephones_and_addresses_of_computers_are_no_amounts(tmp_path):
    rows = [["Host", "10.120.130.145"], ["Telephone", "612 345 678"], ["Register", "SIREN 732 829 320"]]
    text = " ".join(write_and_read_lines(tmp_path, rows))
    assert not [number for number in ("10.120.130", "612 345", "732 829") if number in text]


def test_an_address_ends_where_a_heading_follows(tmp_path):
    story = [
        platypus.Paragraph(
            "Good karma by online volunteers, as we have always shown there: https://example.org/about/"
        ),
        platypus.Paragraph("Notable projects", styles.getSampleStyleSheet()["Heading2"]),
        platypus.Paragraph(
            "We have built a large number of systems for people with few means, and keep them all running."
        ),
    ]
    out = io.BytesIO()
    platypus.SimpleDocTemplate(out).build(story)
    (tmp_path / "a.pdf").write_bytes(out.getvalue())
    anonymize_path(tmp_path / "a.pdf", tmp_path / "b.pdf", "default")
    text = pdfium.PdfDocument((tmp_path / "b.pdf").read_bytes())[0].get_textpage().get_text_range()
    assert "Notable projects" in text and "example.org" not in text
