"""The reader of results sees what stands in any corner of a package."""

from __future__ import annotations

import io
import zipfile

import pytest
from tests.rows import check_each_row

pytest.importorskip("docx")


from benchmarks.office_packages import Parts, body, dele, ins, p
from benchmarks.redaction_docx import DOCUMENTS

from allonym.errors import DataError, RefusedContent
from allonym.files.repair import cover_texts_in_package
from allonym.files.verify import VIEWS, check_no_leftovers, read_texts_by_reader
from benchmarks import office_packages as packages

NAME = "Ada Brook"


def comment_of_zip() -> bytes:
    out = io.BytesIO(body(p("x")).data())
    with zipfile.ZipFile(out, "a") as archive:
        archive.comment = NAME.encode()
    return out.getvalue()


def with_part(name: str, data: str | bytes) -> bytes:
    parts = body(p("x"))
    parts.add(name, data)
    return parts.data()


PLACES = {
    "split into runs": lambda: body(p("Ada ", packages.run("Br", "<w:b/>"), "ook")).data(),
    "inserted": lambda: body(p("Ada ", ins("Brook"))).data(),
    "deleted": lambda: body(p("Ada ", dele("Brook"))).data(),
    "accepted": lambda: body(p("Ada Br", dele("i"), ins("o"), "ok")).data(),
    "rejected": lambda: body(p("Ada Br", dele("o"), ins("i"), "ok")).data(),
    "raw": lambda: body(p("Ada Br", dele("o"), ins("o"), "k")).data(),
    "comment": lambda: body("<!-- Ada Brook -->").data(),
    "instruction": lambda: body("<?x Ada Brook?>").data(),
    "tail": lambda: body(p("x") + "Ada Brook").data(),
    "attribute": lambda: body(p("x").replace("<w:p>", '<w:p w14:strange="Ada Brook">')).data(),
    "author": lambda: body(p(ins("x"))).data(),
    "field over runs": lambda: body(
        p("<w:r><w:instrText>Ada Br</w:instrText></w:r><w:r><w:instrText>ook</w:instrText></w:r>")
    ).data(),
    "relationship": lambda: DOCUMENTS["linked_picture.docx"](),
    "zip": comment_of_zip,
    "name of a part": lambda: with_part("word/media/Ada Brook.png", packages.png()),
    "picture's text": lambda: with_part("word/media/a.png", packages.png(NAME)),
    "photo's text": lambda: with_part("word/media/a.jpeg", packages.jpeg(NAME)),
    "wide text": lambda: with_part("word/media/a.bin", NAME.encode("utf-16-le")),
    "custom part": lambda: with_part("customXml/item5.xml", "<a><b>Ada Brook</b></a>"),
    "package in it": lambda: with_part("word/embeddings/a.docx", body(p("Ada ", dele("Brook"))).data()),
}


@check_each_row("place", PLACES)
def test_a_name_is_seen_wherever_it_stands(place):
    data = PLACES[place]()
    with pytest.raises(RefusedContent, match="still contains 1 of 1") as caught:
        check_no_leftovers(data, "docx", {NAME: ""}, "")
    assert "Ada" not in str(caught.value)


REPAIRED = (
    "comment",
    "instruction",
    "tail",
    "attribute",
    "author",
    "relationship",
    "custom part",
    "package in it",
    "zip",
)


@check_each_row("place", REPAIRED)
def test_a_name_that_no_plan_reached_is_covered_where_it_stands(place):
    data = PLACES[place]()
    repaired = check_no_leftovers(data, "docx", {NAME: "[PERSON_1]"}, "", cover_texts_in_package)
    assert repaired != data
    check_no_leftovers(repaired, "docx", {NAME: ""}, "")


def test_a_repair_of_a_workbook_renames_with_all_references():
    head = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    cell = "<c><f>BigCity[City]&amp;'Big City'!A1&amp;\"Big City\"</f><v>1</v></c><c><v>12345678</v></c>"
    parts = {
        "[Content_Types].xml": "<Types/>",
        "xl/tables/table1.xml": f'<table {head} name="BigCity" displayName="BigCity"/>',
        "xl/workbook.xml": f'<workbook {head}><sheets><sheet name="Big City"/></sheets></workbook>',
        "xl/worksheets/sheet1.xml": f"<worksheet {head}><row>{cell}</row></worksheet>",
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    data = cover_texts_in_package(out.getvalue(), {"Big City": "[CITY_1]", "12345678": "[GENERIC_ID_1]"})
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        table, book, sheet = (archive.read(name).decode() for name in list(parts)[1:])
    assert 'name="_CITY_1" displayName="_CITY_1"' in table and '<sheet name="CITY_1"/>' in book
    assert "<f>_CITY_1[City]&amp;'CITY_1'!A1&amp;\"[CITY_1]\"</f>" in sheet
    assert '<c t="str"><v>[GENERIC_ID_1]</v></c>' in sheet


@check_each_row("place", ["name of a part", "wide text"])
def test_a_name_that_cannot_be_covered_there_is_refused(place):
    with pytest.raises(RefusedContent, match="still contains 1 of 1"):
        check_no_leftovers(PLACES[place](), "docx", {NAME: "[PERSON_1]"}, "", cover_texts_in_package)


@pytest.mark.parametrize("name", ["Office", "Heading", "Roman", "Title", "Word", "Microsoft", "Normal", "Sheet"])
@pytest.mark.parametrize("file", ["formats.docx", "chart.docx", "calls.xlsx"])
def test_what_programs_write_is_no_leak(file, name):
    data = DOCUMENTS[file]()
    parts = Parts(data)
    for part in [n for n in parts.parts if n.startswith("docProps/core")]:
        parts.parts[part] = b"<a/>"
    check_no_leftovers(parts.data(), file[-4:], {name: ""}, "")


def test_digits_within_a_measure_are_no_leak():
    data = body(p("x") + '<w:pgMar left="0.78749999999999998"/>').data()
    check_no_leftovers(data, "docx", {"99999999999": ""}, "")


def test_every_reading_sees_each_text_once():
    data = body(p("Ada Brook was here.")).data()
    whole, *changed = read_texts_by_reader(data, "docx")
    assert sum("Ada Brook" in text for _, text in whole) == 1
    assert not any("Ada Brook" in text for texts in changed for _, text in texts), "without changes they add nothing"
    assert len(VIEWS["docx"]) == 3


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04"])
def test_a_result_that_is_no_package_is_refused(data):
    with pytest.raises(DataError, match="not an office file"):
        check_no_leftovers(data, "docx", {NAME: ""}, "")


def test_a_result_that_is_no_xml_is_refused():
    parts = body(p("x"))
    parts.parts["word/document.xml"] = b"<a>"
    with pytest.raises(DataError, match=r"word/document\.xml is not valid XML"):
        check_no_leftovers(parts.data(), "docx", {NAME: ""}, "")


def test_line_breaks_of_slides_part_words():
    run = "<a:r><a:t>{}</a:t></a:r>"
    space = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
    slide = f"<a:p {space}>{run.format('ab')}<a:br/>{run.format('c')}</a:p>"
    texts = next(iter(read_texts_by_reader(with_part("ppt/slides/slide1.xml", slide), "pptx")))
    assert "ab\nc" in [text for _, text in texts]
