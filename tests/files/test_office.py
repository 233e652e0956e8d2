"""DOCX and XLSX: formatting stays, everything readable is treated, the rest is refused."""

import datetime
import io
import re
import zipfile

import pytest
from tests.rows import check_each_row

from allonym.document import PROSE
from allonym.errors import DataError, RefusedContent
from allonym.files.sheets import find_literal_roles
from allonym.files.verify import find_leftovers_in_file
from allonym.policy import Policy, TermList

MAIL = "[EMAIL_ADDRESS_1]"


def docx_bytes(change=lambda document: None) -> bytes:
    import docx

    document = docx.Document()
    change(document)
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def xlsx_bytes(change) -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    change(book)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def changed(data: bytes, name: str, new: bytes | None = None, old: bytes = b"", by: bytes = b"") -> bytes:
    """The package with one part replaced, added or edited."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(out, "w") as target:
        for info in source.infolist():
            content = source.read(info)
            if info.filename == name:
                content = new if new is not None else content.replace(old, by)
            target.writestr(info, content)
        if name not in source.namelist():
            target.writestr(name, new or b"")
    return out.getvalue()


def everything(data: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        return b"".join(package.read(n) for n in package.namelist())


def full_document(document) -> None:
    paragraph = document.add_paragraph("Mail ")
    paragraph.add_run("a").bold = True
    paragraph.add_run("@example.com").italic = True
    paragraph.add_run(" \tand b@example.com")
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "a@example.com", "plain"
    document.sections[0].header.paragraphs[0].text = "b@example.com"
    document.sections[0].footer.paragraphs[0].text = "page a@example.com"
    properties = document.core_properties
    properties.author, properties.last_modified_by = "Pam Beesly", "Jim Halpert"
    properties.title, properties.comments, properties.keywords = "a@example.com", "b@example.com", "k"
    document.part.relate_to("mailto:a@example.com", "http://x/hyperlink", is_external=True)


def test_docx(run):
    import docx

    data = docx_bytes(full_document)  # its archive holds the time
    out, report = run("a.docx", data)
    for secret in (b"example.com", b"Beesly", b"Halpert"):
        assert secret not in everything(out)
    document = docx.Document(io.BytesIO(out))
    runs = [(r.text, r.bold, r.italic) for r in document.paragraphs[0].runs]
    assert runs == [
        ("Mail ", None, None),
        (MAIL, True, None),
        ("", None, True),
        (" \tand [EMAIL_ADDRESS_2]", None, None),
    ]
    assert [c.text for c in document.tables[0].row_cells(0)] == [MAIL, "plain"]
    assert document.sections[0].header.paragraphs[0].text == "[EMAIL_ADDRESS_2]"
    assert document.core_properties.title == MAIL and document.core_properties.author == ""
    assert "docProps/thumbnail.jpeg" not in zipfile.ZipFile(io.BytesIO(out)).namelist()
    # Authors' names are written nowhere, but looked for, as they may stand in the text.
    assert report.labels == {"EMAIL_ADDRESS": 8, "PERSON": 2}
    assert run("b.docx", data)[0] == out


def test_docx_untouched_parts_keep_their_bytes(run):
    data = docx_bytes(full_document)
    out = run("a.docx", data)[0]
    before, after = zipfile.ZipFile(io.BytesIO(data)), zipfile.ZipFile(io.BytesIO(out))
    for name in ("word/styles.xml", "word/theme/theme1.xml", "word/numbering.xml"):
        assert before.read(name) == after.read(name)
    gone = [n for n in before.namelist() if n not in after.namelist()]
    assert all(n.startswith("customXml/") or n == "docProps/thumbnail.jpeg" for n in gone) and len(gone) == 4


BODY = b"<w:body>"
RELATIONSHIPS = b"http://schemas.openxmlformats.org/officeDocument/2006/relationships"


@pytest.mark.parametrize(
    ("part", "options", "words"),
    [
        ("word/document.xml", {"new": b"<!DOCTYPE x [<!ENTITY e 'a'>]><x>&e;</x>"}, "document type"),
        ("word/document.xml", {"new": b"<x>"}, "not valid XML"),
    ],
)
def test_docx_with_what_cannot_be_treated_is_refused(run, tmp_path, part, options, words):
    with pytest.raises(DataError, match=words):
        run("a.docx", changed(docx_bytes(), part, **options))
    assert not (tmp_path / "out-a.docx").exists()


@pytest.mark.parametrize("data", [b"", b"x", b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"])
def test_what_is_no_office_file_is_refused(run, data):
    for name in ("a.docx", "a.xlsx"):
        with pytest.raises(DataError, match="office file"):
            run(name, data)


def test_text_boxes_fields_and_attributes_are_treated(run):
    extra = (
        b'<w:p><w:bookmarkStart w:id="0" w:name="a@example.com"/><w:fldSimple w:instr=\'HYPERLINK "mailto:a@example.com"\'>'
        b'<w:r><w:t>link</w:t></w:r></w:fldSimple><w:r><w:instrText>x "a@exam</w:instrText></w:r>'
        b'<w:r><w:instrText>ple.com"</w:instrText></w:r>'
        b"<w:r><w:t> Write to a@</w:t></w:r><w:hyperlink><w:r><w:t>example.com </w:t></w:r></w:hyperlink>"
        b"<w:sdt><w:sdtPr><w:alias w:val='a@example.com'/></w:sdtPr><w:sdtContent><w:r><w:t>x</w:t></w:r></w:sdtContent></w:sdt></w:p>"
    )
    data = changed(docx_bytes(), "word/document.xml", old=BODY, by=BODY + extra)
    out = everything(run("a.docx", data)[0])
    assert b"@exam" not in out and b"ple.com" not in out and out.count(MAIL.encode()) == 5


def full_book(book) -> None:
    sheet = book.active
    sheet.append(["id", "mail", "phone", "born", "ssn", "stars"])
    sheet.append(["r1", "a@example.com", 4155550132, datetime.date(1980, 5, 12), "078051121", 5])
    sheet.append(["r2", "x", 12, datetime.datetime(2020, 1, 2, 3, 4), "none", 4.5])
    sheet["G2"] = '=HYPERLINK("mailto:a@example.com", "x")'
    sheet["G3"] = "=SUM(F2:F3)"
    sheet.oddHeader.center.text = "for a@example.com"
    sheet["B3"].hyperlink = "mailto:b@example.com"
    book.properties.creator, book.properties.title = "Pam Beesly", "a@example.com"


def test_xlsx(run):
    import openpyxl

    out = run("a.xlsx", xlsx_bytes(full_book))[0]
    for secret in (b"example.com", b"Beesly", b"4155550132", b"078051121"):
        assert secret not in everything(out)
    sheet = openpyxl.load_workbook(io.BytesIO(out)).active
    rows = [[c.value for c in row] for row in sheet.rows]
    assert rows[0][:6] == ["id", "mail", "phone", "born", "ssn", "stars"]
    assert rows[1][:3] == ["r1", MAIL, "[PHONE_NUMBER_1]"] and rows[1][4:6] == ["[US_SSN_1]", 5]
    assert str(rows[1][3]).startswith("[DATE_OF_BIRTH")
    assert rows[2][2] == "[PHONE_NUMBER_2]" and rows[2][5] == 4.5 and rows[2][6] == "=SUM(F2:F3)"
    assert rows[1][6] == f'=HYPERLINK("mailto:{MAIL}", "x")'
    assert sheet.oddHeader.center.text == f"for {MAIL}"


def test_xlsx_nothing_found_keeps_the_cells(run, nothing):
    import openpyxl

    data = xlsx_bytes(full_book)
    before, after = (openpyxl.load_workbook(io.BytesIO(b)).active for b in (data, run("a.xlsx", data, nothing)[0]))
    assert [[c.value for c in r] for r in before.rows] == [[c.value for c in r] for r in after.rows]


def test_xlsx_the_result_of_a_formula_goes_with_what_it_repeats(run):
    def repeated(book):
        book.active.append(["Social security number", "Copy"])
        book.active.append([78051120, "=A2"])

    data = xlsx_bytes(repeated)
    sheet = "xl/worksheets/sheet1.xml"
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        old = re.search(rb"<f>A2</f><v\s*(/>|></v>)", archive.read(sheet))[0]
    data = changed(data, sheet, old=old, by=b"<f>A2</f><v>78051120</v>")
    policy = Policy.load("default").with_(detectors=("lexicon",), dictionary=(TermList("US_SSN", ("78051120",)),))
    safe = run("a.xlsx", data, policy)[0]
    assert b"78051120" not in everything(safe) and b"<f>A2</f>" in everything(safe)


def test_xlsx_a_sheet_whose_name_identifies_is_renamed_with_all_references(run):
    import openpyxl
    from openpyxl.workbook.defined_name import DefinedName

    def named(book):
        book.active.title = "a@example.com"
        book.active.append(["Total", 3])
        for name in ("January", "Index", "Лист1", "Munka1"):
            book.create_sheet(name)["A1"] = "='a@example.com'!B1"
        book.defined_names["Sum"] = DefinedName("Sum", attr_text="'a@example.com'!$B$1")
        book.active["A3"].hyperlink = "#'a@example.com'!B1"

    out = run("a.xlsx", xlsx_bytes(named))[0]
    assert b"a@example.com" not in everything(out)
    book = openpyxl.load_workbook(io.BytesIO(out))
    assert book.sheetnames == ["EMAIL_ADDRESS_1", "January", "Index", "Лист1", "Munka1"]
    assert book["Index"]["A1"].value == "='EMAIL_ADDRESS_1'!B1"
    assert book.defined_names["Sum"].attr_text == "'EMAIL_ADDRESS_1'!$B$1"


def test_xlsx_cells_that_tell_no_place_are_columns_too(run):
    import openpyxl

    def filled(book):
        book.active.append(["Full name", "Prime Rate", "Paid"])
        for name in ("Jane Okafor", "Anna Winter", "Ole Hansen", "Mia Lang"):
            book.active.append([name, "0.0136", "0.0119"])

    data = xlsx_bytes(filled)
    sheet = "xl/worksheets/sheet1.xml"
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        bare = re.sub(rb' (r|spans)="[^"]*"', b"", archive.read(sheet))
    out = run("a.xlsx", changed(data, sheet, bare), Policy.load("default"))[0]
    rows = list(openpyxl.load_workbook(io.BytesIO(out)).active.iter_rows(values_only=True))
    assert rows[0] == ("Full name", "Prime Rate", "Paid")
    assert rows[1:] == [(f"[PERSON_{n}]", "0.0136", "0.0119") for n in range(1, 5)]


def test_xlsx_tables_keep_their_headers_and_are_renamed_with_all_references(run):
    import openpyxl
    from openpyxl.worksheet.table import Table

    def filled(book):
        sheet = book.active
        sheet.append(["Flag name", "Alice Okafor met Jane Brook in Leeds."])
        sheet.append(["Categories", "Jane Brook wrote to Okafor."])
        sheet.append([])
        sheet.append(["Categories", "# Athletes", "Big Cities", "Share"])
        for row in (["Gold", 12, "Leeds", 0.5], ["Silver", 13, "York", 0.25], ["Bronze", 14, "Hull", 0.25]):
            sheet.append(row)
        sheet["E5"] = "=SUM(OkaforTable['# Athletes])+COUNTA(OkaforTable[[#All],[Big Cities]])"
        table = Table(displayName="OkaforTable", ref="A4:D7")
        sheet.add_table(table)

    out = run("a.xlsx", xlsx_bytes(filled), Policy.load("default"))[0]
    assert b"Okafor" not in everything(out)
    sheet = openpyxl.load_workbook(io.BytesIO(out)).active
    assert [cell.value for cell in sheet[4]][:4] == ["Categories", "# Athletes", "Big Cities", "Share"]
    (table,) = sheet.tables.values()
    assert table.name == table.displayName and " " not in table.name
    assert [column.name for column in table.tableColumns] == ["Categories", "# Athletes", "Big Cities", "Share"]
    assert sheet["E5"].value == f"=SUM({table.name}['# Athletes])+COUNTA({table.name}[[#All],[Big Cities]])"
    assert [sheet.cell(row, 2).value for row in (5, 6, 7)] == [12, 13, 14]


def test_xlsx_a_word_of_several_cells_stays_where_it_is_a_header(run):
    import openpyxl

    policy = Policy.load("default").with_(columns={"Full name": "PERSON"})

    def filled(book):
        book.active.append(["Full name", "Reading"])
        book.active.append(["Status", 1])
        sheet = book.create_sheet("Second")
        sheet.append(["Status", "Amount"])
        sheet.append(["open", 2])

    book = openpyxl.load_workbook(io.BytesIO(run("a.xlsx", xlsx_bytes(filled), policy)[0]))
    assert book.worksheets[0]["A2"].value == "[PERSON_1]" and book.worksheets[1]["A1"].value == "Status"


def test_xlsx_numbers_that_are_counts_measures_or_round_stay(run):
    import openpyxl

    rows = [(n % 3 + 1, 259103.248642121 + n, 10_000_000 * (n + 1)) for n in range(8)]

    def filled(book):
        book.active.append(["Charge", "Area", "Budget"])
        for row in rows:
            book.active.append(row)
        book.active["D2"] = 4.094711806131958e231

    out = run("a.xlsx", xlsx_bytes(filled), Policy.load("default"))[0]
    sheet = openpyxl.load_workbook(io.BytesIO(out)).active
    assert [row[:3] for row in sheet.iter_rows(min_row=2, values_only=True)] == rows
    assert sheet["D2"].value == 4.094711806131958e231


def test_xlsx_formulas_formats_and_kept_columns_stay(run):
    import openpyxl

    formulas = ['=TEXT(B2,"MMMM YYYY")', '=IF(C2>1000,"Large","Small May")', '=COUNTIF(A:A,"Ada Brook")', "=C2*2"]

    def filled(book):
        sheet = book.active
        sheet.append(["Customer", "Joined", "Amount", "Status", *"WXYZ"])
        for name in ("Ada Brook", "Cyd Dale", "Ada Brook"):
            sheet.append([name, datetime.date(2020, 1, 2), 1999.99, "open", *formulas])
        sheet["C2"].number_format = '#,##0.00 "May"'

    sheet = openpyxl.load_workbook(io.BytesIO(run("a.xlsx", xlsx_bytes(filled))[0])).active
    rows = [[cell.value for cell in row] for row in sheet.rows]
    assert rows[0] == ["Customer", "Joined", "Amount", "Status", *"WXYZ"] and sheet["C2"].number_format.endswith(
        '"May"'
    )
    assert [row[0] for row in rows[1:]] == ["[PERSON_1]", "[PERSON_2]", "[PERSON_1]"]
    assert all(row[1] == "[DATE_1]" and row[2:4] == [1999.99, "open"] for row in rows[1:])
    # A text in a formula that is a value of a cell is replaced like the cell; nothing else changes.
    formulas[2] = '=COUNTIF(A:A,"[PERSON_1]")'
    assert all(row[4:] == formulas for row in rows[1:])


def test_xlsx_names_in_texts_of_formulas_and_in_lists_to_choose_from_are_covered(run):
    import openpyxl
    from openpyxl.worksheet.datavalidation import DataValidation

    tag = "[PERSON_1]"
    formulas = {
        '="Paid to "&B2&" and Priya Raman"': f'="Paid to "&B2&" and {tag}"',
        '=CONCATENATE("Tel. ","Priya Raman")': f'=CONCATENATE("Tel. ","{tag}")',
        '=TEXT(A2,"DDDD, MMMM ""Uhr""")&"see ""Priya Raman"" again"': (
            f'=TEXT(A2,"DDDD, MMMM ""Uhr""")&"see ""{tag}"" again"'
        ),
        **{
            formula: formula
            for formula in (
                '=TEXT(A2,"MMMM YYYY")',
                '=COUNTIF(B:B,">5")+COUNTIF(B:B,"Not Started")',
                '=IF(B2>5,"Large Order","In Progress")',
                '=INDIRECT("Sheet!A1")',
            )
        },
    }
    lists = {
        '"Gareth Price,Priya Raman,Nkechi Bright"': 3,
        '"Gareth,Priya,Nkechi"': 3,
        '"Open,Closed,In Progress"': 0,
        '"Yes,No,Not Applicable"': 0,
    }

    def fill(book):
        for row, formula in enumerate(formulas, 1):
            book.active[f"E{row}"] = formula
        for row, items in enumerate(lists, 1):
            validation = DataValidation(type="list", formula1=items)
            book.active.add_data_validation(validation)
            validation.add(f"F{row}")

    data = xlsx_bytes(fill)
    out = run("a.xlsx", data, Policy.load("default"))[0]
    sheet = openpyxl.load_workbook(io.BytesIO(out)).active
    assert [cell.value for cell in sheet["E"]] == [*formulas.values()]
    written = [validation.formula1 for validation in sheet.data_validations.dataValidation]
    assert [text.count("[PERSON_") for text in written] == [*lists.values()]
    assert all(new.count(",") == 2 and (n or new == old) for (old, n), new in zip(lists.items(), written, strict=True))
    leftovers = find_leftovers_in_file(data, "xlsx", ['see "Priya Raman" again', "Nkechi Bright"], "")
    assert [leftover.index for leftover in leftovers] == [0, 1]


def test_xlsx_round_amounts_stay(run):
    import openpyxl

    def amounts(book):
        for number in (10_000_000, 20_000_000, 30_000_000, 7_000_000_000):
            book.active.append([number])

    out = run("a.xlsx", xlsx_bytes(amounts), Policy.load("default"))[0]
    column = next(openpyxl.load_workbook(io.BytesIO(out)).active.columns)
    assert [cell.value for cell in column] == [10_000_000, 20_000_000, 30_000_000, 7_000_000_000]


def test_xlsx_results_of_formulas_do_not_repeat_short_numbers(run):
    def repeated(book):
        book.active.append(["Customer number", "Copy"])
        for number in (20417, 20418, 20419):
            book.active.append([number, "=A2"])

    data = xlsx_bytes(repeated)
    sheet = "xl/worksheets/sheet1.xml"
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        old = re.search(rb"<f>A2</f><v\s*(/>|></v>)", archive.read(sheet))[0]
    safe = everything(run("a.xlsx", changed(data, sheet, old=old, by=b"<f>A2</f><v>20417</v>"))[0])
    assert b"20417" not in safe and b"<f>A2</f>" in safe


def test_xlsx_with_what_cannot_be_treated_is_refused(run):
    plain = xlsx_bytes(lambda book: None)
    with pytest.raises(RefusedContent, match="macros"):
        run("a.xlsx", changed(plain, "xl/macrosheets/sheet1.xml", new=b"<x/>"))


@check_each_row(
    "name, part, what",
    [
        ("a.docm", "word/vbaProject.bin", "macros"),
        ("a.docx", "word/media/media1.mp4", "recordings"),
        ("a.docx", "word/ink/ink1.xml", "handwriting"),
        ("a.docx", "word/afchunk.mht", "inserted files"),
        ("a.docx", "word/media/strange.bin", "unknown parts"),
        ("a.docx", "word/intelligence2.xml", ""),
        ("a.xlsx", "xl/pivotTables/pivotTable1.xml", "pivot tables"),
        ("a.xlsx", "xl/externalLinks/externalLink1.xml", "links to other files"),
        ("a.xlsx", "xl/embeddings/oleObject1.bin", "embedded objects"),
        ("a.xlsm", "xl/vbaProject.bin", "macros"),
    ],
)
def test_what_cannot_be_treated_is_left_out_with_what_shows_it(run, name, part, what):
    plain = docx_bytes() if "doc" in name else xlsx_bytes(lambda book: None)
    main, start = ("word/document.xml", BODY) if "doc" in name else ("xl/workbook.xml", b"<sheets>")
    folder, _, file = main.partition("/")
    rels = f"{folder}/_rels/{file}.rels"
    link = f'<Relationship Id="rIdX" Type="http://x/x" Target="/{part}"/></Relationships>'.encode()
    shown = b'<q:oleObjects xmlns:q="q"><q:x xmlns:r="%s" r:id="rIdX"/></q:oleObjects>' % RELATIONSHIPS
    data = changed(changed(plain, rels, old=b"</Relationships>", by=link), part, new=b"<x/>")
    data = changed(data, main, old=start, by=(start + shown) if "doc" in name else shown + start)
    out, report = run(name, data)
    assert b"rIdX" not in everything(out) and b"oleObjects" not in everything(out)
    assert part not in zipfile.ZipFile(io.BytesIO(out)).namelist()
    assert {k: n for k, n in report.treated.items() if "pictures" not in k and "custom" not in k} == (
        {f"{what} left out": 1} if what else {}
    )


def test_formulas_that_refer_to_other_files_keep_their_results(run):
    import openpyxl

    def linked(book):
        book.active.append(["=[1]Other!A1", "=SUM(B2:B3)"])

    data = changed(xlsx_bytes(linked), "xl/externalLinks/externalLink1.xml", new=b"<x/>")
    out = run("a.xlsx", data)[0]
    sheet = openpyxl.load_workbook(io.BytesIO(out)).active
    assert [cell.value for cell in sheet[1]] == [None, "=SUM(B2:B3)"]


def test_a_defined_name_that_identifies_is_renamed_with_its_references(run):
    import openpyxl
    from openpyxl.workbook.defined_name import DefinedName

    def named(book):
        book.active.append(["Write to ada.brook@example.com", '=Sales_ada.brook_x+1&"Sales_ada.brook_x"'])
        book.create_sheet("ada.brook@example.com")
        book.defined_names["Sales_x"] = DefinedName("Sales_x", attr_text="Sheet!$A$1")
        book.defined_names["Call_212_555_0142"] = DefinedName("Call_212_555_0142", attr_text="Sheet!$A$1")
        book.active.append(["=Call_212_555_0142+Sales_x"])

    out = run("a.xlsx", xlsx_bytes(named))[0]
    book = openpyxl.load_workbook(io.BytesIO(out))
    (new,) = set(book.defined_names) - {"Sales_x"}
    assert "212" not in new and book.worksheets[0]["A2"].value == f"={new}+Sales_x"


def test_xlsx_printer_settings_are_left_out(run):
    import openpyxl

    rels = (
        b'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" '
        b'Type="http://x/printerSettings" Target="../printerSettings/printerSettings1.bin"/></Relationships>'
    )
    setup = b'<pageSetup xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" r:id="rId1"/></worksheet>'
    data = changed(xlsx_bytes(lambda book: None), "xl/printerSettings/printerSettings1.bin", new=b"jane's printer")
    data = changed(data, "xl/worksheets/_rels/sheet1.xml.rels", new=rels)
    data = changed(data, "xl/worksheets/sheet1.xml", old=b"</worksheet>", by=setup)
    out = everything(run("a.xlsx", data)[0])
    assert b"printer" not in out and b"rId1" in out
    openpyxl.load_workbook(io.BytesIO(run("a.xlsx", data)[0]))


def test_properties_that_list_titles_and_links_are_treated(run):
    app = (
        b'<Properties xmlns="http://x" xmlns:vt="http://y"><Company>Dunder</Company><Manager>Pam</Manager><Pages>3</Pages>'
        b"<TitlesOfParts><vt:vector><vt:lpstr>a@example.com</vt:lpstr></vt:vector></TitlesOfParts></Properties>"
    )
    out = everything(run("a.docx", changed(docx_bytes(), "docProps/app.xml", new=app))[0])
    assert b"Dunder" not in out and b"Pam" not in out and b"a@example.com" not in out and b"<Pages>3" in out


def test_what_stands_beside_elements_is_treated(run):
    data = changed(
        docx_bytes(), "word/document.xml", old=b"<w:body>", by=b"<w:body><!-- a@example.com --><?x b@example.com?>"
    )
    data = changed(data, "word/document.xml", old=b"<w:sectPr", by=b"stray c@example.com<w:sectPr")
    item = b"<?xml version='1.0'?><?mso d@example.com?><a><b/>e@example.com</a><!--f@example.com-->"
    data = changed(data, "word/theme/theme2.xml", new=item)
    data = changed(data, "customXml/item2.xml", new=item.replace(b"e@", b"g@"))
    out = everything(run("a.docx", data)[0])
    assert b"@example.com" not in out and out.count(b"[EMAIL_ADDRESS_") == 6


def test_a_name_in_two_runs_is_one_beside_technical_text():
    from allonym.document import PROSE, TECHNICAL, Document
    from allonym.pipeline import detect

    texts, roles = ("We met Ada", " Brook in the garden.", "Style of Ada Brook"), (PROSE, PROSE, TECHNICAL)
    document = Document.from_parts("", texts, separators=("", "\n", ""), roles=roles)
    assert [document.text[s.start : s.end] for s in detect(document)] == ["Ada Brook", "Ada Brook"]


def test_columns_of_tables_are_named(run, tmp_path):
    import docx
    import openpyxl

    def tables(document):
        for rows in (
            [["Name", "Town", "Phone"], ["Tom Vale", "x", "4155550132"]],
            [["Patient name:", "Una Quill"], ["Notes", "none"]],
        ):
            table = document.add_table(len(rows), len(rows[0]))
            for r, row in enumerate(rows):
                for c, text in enumerate(row):
                    table.cell(r, c).text = text

    run("a.docx", docx_bytes(tables))
    first, second = docx.Document(tmp_path / "out-a.docx").tables
    assert [c.text for c in first.rows[0].cells] == ["Name", "Town", "Phone"]
    assert [c.text for c in first.rows[1].cells] == ["[PERSON_1]", "x", "[PHONE_NUMBER_1]"]
    assert [c.text for r in second.rows for c in r.cells] == ["Patient name:", "[PERSON_2]", "Notes", "none"]

    def sheet(book):
        for row in (["List of 2024"], [], ["name", "phone", "town"], ["Tom Vale", 4155550132, "x"]):
            book.active.append(row)

    run("a.xlsx", xlsx_bytes(sheet))
    rows = list(openpyxl.load_workbook(tmp_path / "out-a.xlsx").active.iter_rows(values_only=True))
    assert rows[2:] == [("name", "phone", "town"), ("[PERSON_1]", "[PHONE_NUMBER_1]", "x")]


def test_xlsx_comments_and_headers(run):
    import openpyxl
    from openpyxl.comments import Comment

    def change(book):
        book.active["A1"], book.active["B1"] = "x", "y"
        book.active["A1"].comment = Comment("Pam:\nwrite to a@example.com", "Pam Beesly")
        book.active["B1"].comment = Comment("[Threaded comment]", "tc={1}")
        book.active.oddHeader.left.text = "b@example.com && more"
        book.active.oddHeader.right.text = "page &P of a@example.com"

    out = run("a.xlsx", xlsx_bytes(change))[0]
    sheet = openpyxl.load_workbook(io.BytesIO(out)).active
    assert [sheet[c].comment.author for c in ("A1", "B1")] == ["Author 1", "Author 2"]
    assert sheet["A1"].comment.text.endswith("write to [EMAIL_ADDRESS_1]")
    with zipfile.ZipFile(io.BytesIO(out)) as package:
        header = re.search(rb"<oddHeader>(.*)</oddHeader>", package.read("xl/worksheets/sheet1.xml"))[1]
    assert header == b"&amp;L[EMAIL_ADDRESS_2] &amp;&amp; more&amp;Rpage &amp;P of [EMAIL_ADDRESS_1]"
    assert b"Beesly" not in everything(out)


def test_xlsx_drawings_of_the_old_kind_may_leave_breaks_open(run):
    from openpyxl.comments import Comment

    def change(book):
        book.active["A1"] = "x"
        book.active["A1"].comment = Comment("write to a@example.com", "Pam Beesly")

    data = xlsx_bytes(change)
    part = next(name for name in zipfile.ZipFile(io.BytesIO(data)).namelist() if name.endswith(".vml"))
    data = changed(
        data, part, old=b"</xml>", by=b"<v:shape xmlns:v='urn:v'><div>b@example.com<br>x</div></v:shape></xml>"
    )
    out = run("a.xlsx", data)[0]
    assert b"a@example.com" not in everything(out) and b"b@example.com" not in everything(out)


def test_xlsx_drawings_of_the_old_kind_without_any_element_are_refused(run):
    from openpyxl.comments import Comment

    data = xlsx_bytes(lambda book: setattr(book.active["A1"], "comment", Comment("x", "y")))
    part = next(name for name in zipfile.ZipFile(io.BytesIO(data)).namelist() if name.endswith(".vml"))
    with pytest.raises(DataError, match="not valid XML"):
        run("a.xlsx", changed(data, part, new=b"Pam Beesly"))


def test_a_text_that_begins_like_a_formula_stays_a_text(run):
    import openpyxl

    book = openpyxl.Workbook()
    book.active.append(["note", "more"])
    book.active.append(["=1+1 a@example.com", "@SUM(A1)"])
    for cell in book.active[2]:
        cell.data_type = "s"
    out = io.BytesIO()
    book.save(out)
    result, _ = run("a.xlsx", out.getvalue())
    cells = openpyxl.load_workbook(io.BytesIO(result)).active[2]
    assert [cell.data_type for cell in cells] == ["s", "s"] and cells[0].value == "=1+1 [EMAIL_ADDRESS_1]"


def test_xlsx_texts_between_escaped_names_of_columns_are_read():
    formula = "SUM(T['# A])&\"Ann Brook met\"&SUM(T['# B])&'It''s \"A b\"'!A1"
    assert [(formula[a:b], role) for a, b, role in find_literal_roles(formula)] == [("Ann Brook met", PROSE)]
