"""ODF: texts, sheets and notes are treated, hidden data is removed, formulas and layout stay."""

from __future__ import annotations

import io
import zipfile
from xml.sax.saxutils import quoteattr

import pytest
from tests.rows import check_each_row

from allonym.errors import DataError, RefusedContent

_SPACES = " ".join(
    f'xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for prefix, name in (
        ("office", "office"),
        ("text", "text"),
        ("table", "table"),
        ("draw", "drawing"),
        ("meta", "meta"),
    )
)
SPACES = f'{_SPACES} xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xlink="http://www.w3.org/1999/xlink"'
MANIFEST = '<m:manifest xmlns:m="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">{}</m:manifest>'


def make_odf(kind: str, body: str, **more: str | bytes) -> bytes:
    content = f"<office:document-content {SPACES}><office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
    meta = f"<office:document-meta {SPACES}><office:meta><dc:creator>Pam Beesly</dc:creator><dc:title>For a@example.com</dc:title></office:meta></office:document-meta>"
    parts = {"mimetype": f"application/vnd.oasis.opendocument.{kind}", "content.xml": content, "meta.xml": meta}
    parts |= {name.replace("__", "/").replace("_xml", ".xml"): data for name, data in more.items()}
    entries = "".join(f'<m:file-entry m:full-path="{name}" m:media-type="text/xml"/>' for name in ("/", *parts))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in {
            **parts,
            "META-INF/manifest.xml": more.get("META-INF/manifest.xml", MANIFEST.format(entries)),
        }.items():
            archive.writestr(name, data)
    return out.getvalue()


def everything(data: bytes) -> str:
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        return "\n".join(package.read(name).decode("utf-8", "replace") for name in package.namelist())


def test_text_notes_links_and_authors_are_treated(run):
    body = (
        "<text:h>Mail</text:h><text:p>Write to a@<text:span>example</text:span>.com<text:s/>or "
        "<office:annotation><dc:creator>Jim Halpert</dc:creator><dc:date>2021-03-04T05:06:07</dc:date>"
        "<text:p>b@example.com</text:p></office:annotation>"
        '<text:a xlink:href="mailto:c@example.com">her</text:a>.</text:p><!-- d@example.com -->'
    )
    out = everything(run("a.odt", make_odf("text", body))[0])
    assert "example" not in out and "Pam" not in out and "Jim" not in out and "05:06" not in out
    assert "[EMAIL_ADDRESS_1]" in out and "<text:h>Mail</text:h>" in out and "or " in out


def make_cell(text: str, kind: str = "string", value: str = "", formula: str = "") -> str:
    value = f' office:{"date-" if kind == "date" else ""}value="{value}"' if value else ""
    formula = f" table:formula={quoteattr(formula)}" if formula else ""
    return f'<table:table-cell office:value-type="{kind}"{value}{formula}><text:p>{text}</text:p></table:table-cell>'


def test_sheets_keep_numbers_and_formulas_and_are_renamed_with_references(run):
    rows = [
        [make_cell("Mail"), make_cell("Amount"), make_cell("Phone"), make_cell("Twice")],
        *(
            [
                make_cell(f"{name}@example.com"),
                make_cell("12,50 €", "float", "12.5"),
                make_cell(f"21255501{n}", "float", f"21255501{n}"),
                make_cell("25", "float", "25", f'of:=[.B{n - 38}]*2+IF([.B2]>1;"yes";"a@example.com")'),
            ]
            for n, name in ((40, "a"), (41, "b"), (42, "c"))
        ),
    ]
    sheet = "".join(f"<table:table-row>{''.join(row)}</table:table-row>" for row in rows)
    other = make_cell("3", "float", "3", "of:=SUM([$'a@example.com'.B2:.B4])")
    body = (
        f'<table:table table:name="a@example.com">{sheet}</table:table>'
        f'<table:table table:name="January"><table:table-row>{other}</table:table-row></table:table>'
    )
    out = everything(run("a.ods", make_odf("spreadsheet", body))[0])
    assert "example.com" not in out and "21255501" not in out
    assert out.count('office:value="12.5"') == 3 and out.count("12,50 €") == 3 and "[.B2]*2+IF([.B2]&gt;1;" in out
    assert "<text:p>Amount</text:p>" in out and 'table:name="January"' in out and "$'EMAIL_ADDRESS_1'.B2" in out


def test_no_text_beside_the_paragraphs_is_passed_through_unread(run):
    content = (
        f"<!-- a@example.com --><d {SPACES}><text:p><text:a xlink:href='../a@example.com'>x</text:a>"
        "<text:conditional-text text:string-value-if-true='a@example.com'>x</text:conditional-text>"
        "<text:alphabetical-index-mark text:key1='a@example.com'/></text:p><table:table><table:table-row>"
        f"{make_cell('mail b@example.com', 'float', '5')}</table:table-row></table:table></d><!-- a@example.com -->"
    )
    out, _ = run("a.odt", make_odf("text", "", **{"content.xml": content}))
    assert "@" not in everything(out) and "mail [EMAIL_ADDRESS_" in everything(out)


def test_macros_previews_and_settings_are_left_out_and_counted(run):
    more = {"Basic__Standard__Module1_xml": "<x>a@example.com</x>", "settings_xml": "<x/>", "Pictures__a.png": b"x"}
    data = make_odf("presentation", '<draw:page draw:name="p"><text:p>x</text:p></draw:page>', **more)
    out, report = run("a.odp", data)
    names = zipfile.ZipFile(io.BytesIO(out)).namelist()
    assert names == ["mimetype", "content.xml", "meta.xml", "Pictures/a.png", "META-INF/manifest.xml"]
    assert "Basic" not in everything(out)
    assert report.treated == {"macros left out": 1, "pictures left out": 1}


def test_a_document_type_without_entities_is_no_reason_to_refuse(run):
    content = f'<!DOCTYPE x PUBLIC "-//x//y" "office.dtd"><x {SPACES}><text:p>a@example.com</text:p></x>'
    assert "[EMAIL_ADDRESS_1]" in everything(run("a.odt", make_odf("text", "", content_xml=content))[0])
    content = content.replace('"office.dtd"', '"office.dtd" [<!ENTITY e "a">]')
    with pytest.raises(RefusedContent, match="entities"):
        run("a.odt", make_odf("text", "", content_xml=content))


@check_each_row(
    "data, error",
    [
        (b"x", DataError),
        (make_odf("text", "<text:p>"), DataError),
        (make_odf("text", "", **{"META-INF/manifest.xml": MANIFEST.format("<m:encryption-data/>")}), RefusedContent),
    ],
)
def test_what_is_damaged_or_encrypted_is_refused(run, data, error):
    with pytest.raises(error):
        run("a.odt", data)
