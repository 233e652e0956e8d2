"""What refers to sheets, cells and styles in office files: charts, tables of slides."""

import io
import zipfile

import openpyxl
from openpyxl.chart import BarChart, Reference

from allonym.policy import Policy


def test_a_chart_follows_the_name_of_its_sheet(run):
    book = openpyxl.Workbook()
    sheet, other = book.active, book.create_sheet("Übersicht")
    sheet.title, other["A1"] = "Ada Brook", "='Ada Brook'!B2"
    for row in (("Kunde", "Betrag"), ("Ada Brook", 20), ("Bo Reed", 30), ("Summe", 50)):
        sheet.append(row)
    chart = BarChart()
    chart.add_data(Reference(sheet, min_col=2, min_row=1, max_row=3), titles_from_data=True)
    sheet.add_chart(chart, "D2")
    stream = io.BytesIO()
    book.save(stream)
    out = run("a.xlsx", stream.getvalue(), Policy.load("default"))[0]
    read = openpyxl.load_workbook(io.BytesIO(out))
    assert read.sheetnames == ["PERSON_1", "Übersicht"] and read["Übersicht"]["A1"].value == "='PERSON_1'!B2"
    assert [cell.value for cell in read["PERSON_1"]["A"]] == ["Kunde", "[PERSON_1]", "[PERSON_2]", "Summe"]
    charts = zipfile.ZipFile(io.BytesIO(out)).read("xl/charts/chart1.xml").decode()
    assert "'PERSON_1'!$B$2:$B$3" in charts and "[PERSON_1]'!" not in charts and "Brook" not in charts


def test_a_table_of_a_presentation_keeps_its_style(run):
    from pptx import Presentation
    from pptx.util import Inches

    deck = Presentation()
    table = deck.slides.add_slide(deck.slide_layouts[6]).shapes.add_table(2, 2, *(Inches(1),) * 4).table
    table.cell(0, 0).text = "Ada Brook has moved."
    stream = io.BytesIO()
    deck.save(stream)
    out = run("a.pptx", stream.getvalue(), Policy.load("default"))[0]
    slide = zipfile.ZipFile(io.BytesIO(out)).read("ppt/slides/slide1.xml").decode()
    assert "{5C22544A-7EE6-4342-B048-85BDC9FD1C3A}" in slide and "[PERSON_1] has moved." in slide


def test_a_chart_that_names_no_sheet_of_the_workbook_is_read(run):
    book = openpyxl.Workbook()
    book.active["A1"], book.active["B1"] = "Ada Brook has moved.", 3
    chart = BarChart()
    chart.add_data(Reference(book.active, min_col=2, min_row=1, max_row=2))
    chart.series[0].val.numRef.f = "'Ada Brook 2019'!$A$2:$A$4"
    book.active.add_chart(chart, "D2")
    stream = io.BytesIO()
    book.save(stream)
    out = run("a.xlsx", stream.getvalue(), Policy.load("default"))[0]
    assert b"Brook" not in zipfile.ZipFile(io.BytesIO(out)).read("xl/charts/chart1.xml")
