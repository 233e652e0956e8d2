"""Columns of workbooks that replacements make wider."""

import io
import zipfile

import openpyxl


def change_sheet(data, old, new):
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as before, zipfile.ZipFile(out, "w") as after:
        for name in before.namelist():
            content = before.read(name)
            assert "sheet1" not in name or old in content
            after.writestr(name, content.replace(old, new) if "sheet1" in name else content)
    return out.getvalue()


def read_sheet_and_strings(data):
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        return b"".join(package.read(name) for name in package.namelist() if name.startswith("xl/"))


def test_a_column_becomes_wider_where_it_would_cut_a_replacement(run):
    book = openpyxl.Workbook()
    sheet = book.active
    for number in range(4):
        sheet.append([f"p{number}@x.org", "kept", f"write to p{number}@x.org about the long list of things", 5])
    sheet.column_dimensions["A"].width = 11
    sheet.column_dimensions.group("A", "B", hidden=False)
    sheet.column_dimensions["C"].width = 12
    out = io.BytesIO()
    book.save(out)
    after = openpyxl.load_workbook(io.BytesIO(run("a.xlsx", out.getvalue())[0])).active
    widths = {name: column.width for name, column in after.column_dimensions.items()}
    assert after["A1"].value == "[EMAIL_ADDRESS_1]" and widths["A"] == 19
    assert widths["C"] == 12  # its texts were cut before
    assert widths.get("B", 11) == 11 and "D" not in widths


def test_a_sheet_without_widths_gets_them(run):
    book = openpyxl.Workbook()
    book.active.append(["a@x.org"])
    out = io.BytesIO()
    book.save(out)
    after = openpyxl.load_workbook(io.BytesIO(run("a.xlsx", out.getvalue())[0])).active
    assert after.column_dimensions["A"].width == 19


def test_odd_widths_are_no_obstacle(run):
    book = openpyxl.Workbook()
    book.active.append(["a@x.org"])
    book.active.column_dimensions["A"].width = 9
    out = io.BytesIO()
    book.save(out)
    for old, new in ((b'min="1"', b'min="first"'), (b'width="9"', b'width="wide"')):
        data, _ = run("a.xlsx", change_sheet(out.getvalue(), old, new))
        assert b"[EMAIL_ADDRESS_1]" in read_sheet_and_strings(data)
