"""Word and Excel files with names in every corner, made by code: what ``--check`` and the tests treat.

usage: python benchmarks/redaction_docx.py FOLDER        writes them there, to be looked at
       python benchmarks/redaction_docx.py --check       anonymises each, and reads the results back

Every file holds names of SECRETS, some of them split, hidden or deleted. ``--check`` runs the real command line and then
looks for them in all that is in the package, by means of its own.
"""

# ruff: noqa: E501
from __future__ import annotations

import argparse
import base64
import html
import io
import json
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.office_packages import (
    OFFICE,
    A,
    R,
    W,
    body,
    p,
    png,
    run,
    word,
    workbook,
)
from benchmarks.word_documents import DOCUMENTS, calls, case, inserted_and_deleted

SECRETS = (
    "Ada Brook",
    "Cyd Dale",
    "Eve Farrow",
    "Smithson",
    "ada.brook@example.com",
    "212-555-0142",
    "536-22-1234",
)
"""None of them may be read in a result; a name's parts may not either."""

NAMES = ("Ada Brook", "Cyd Dale", "Eve Farrow", "Gil Smithson", "Gil Smith")
"""The names among them, for a policy that is told them."""


# Fields, controls, what is hidden


@case
def fields() -> bytes:
    def field(*codes: str, data: str = "") -> str:
        code = "".join(f'<w:r><w:instrText xml:space="preserve">{c}</w:instrText></w:r>' for c in codes)
        begin = f'<w:r><w:fldChar w:fldCharType="begin">{f"<w:fldData>{data}</w:fldData>" if data else ""}</w:fldChar></w:r>'
        return f'{begin}{code}<w:r><w:fldChar w:fldCharType="separate"/></w:r>{run("shown")}<w:r><w:fldChar w:fldCharType="end"/></w:r>'

    hidden = base64.b64encode(b"<EndNote><author>Ada Brook</author></EndNote>").decode()
    parts = body(
        p(
            "Write ",
            field(' HYPERLINK "mailto:ada.brook', '@example.com" '),
            ", see ",
            field("ADDIN EN.CITE ", data=hidden),
            ".",
        ),
        p('<w:fldSimple w:instr=" DOCVARIABLE who "><w:r><w:t>Dear Ms Cyd Dale</w:t></w:r></w:fldSimple>'),
        p(
            '<w:bookmarkStart w:id="3" w:name="ada.brook@example.com"/><w:bookmarkEnd w:id="3"/><w:hyperlink r:id="rIdH1" w:tooltip="ada.brook@example.com"><w:r><w:t>My name is Ada Brook</w:t></w:r></w:hyperlink>'
        ),
        p('<w:permStart w:id="4" w:ed="ada.brook@example.com"/><w:r><w:t>x</w:t></w:r><w:permEnd w:id="4"/>'),
    )
    parts.link("word/document.xml", "hyperlink", "mailto:ada.brook@example.com", "rIdH1", outside=True)
    return parts.data()


@case
def content_controls() -> bytes:
    store = "{11111111-2222-3333-4444-555555555555}"
    bound = f'<w:alias w:val="Dear Ms Cyd Dale"/><w:tag w:val="who"/><w:dataBinding w:xpath="/who[1]/name[1]" w:storeItemID="{store}"/><w:text/>'
    date = '<w:date w:fullDate="1980-05-12T00:00:00Z"><w:dateFormat w:val="d MMMM yyyy"/></w:date>'
    items = '<w:dropDownList><w:listItem w:displayText="ada.brook@example.com" w:value="ada.brook@example.com"/></w:dropDownList>'
    parts = body(
        p("My name is ", f"<w:sdt><w:sdtPr>{bound}</w:sdtPr><w:sdtContent>{run('Ada Brook')}</w:sdtContent></w:sdt>"),
        p("Born on ", f"<w:sdt><w:sdtPr>{date}</w:sdtPr><w:sdtContent>{run('12 May 1980')}</w:sdtContent></w:sdt>"),
        p("Mail ", f"<w:sdt><w:sdtPr>{items}</w:sdtPr><w:sdtContent>{run('none')}</w:sdtContent></w:sdt>"),
    )
    parts.add("customXml/item9.xml", "<who><name>Ada Brook</name></who>", of="word/document.xml", rel="customXml")
    props = f'<ds:datastoreItem ds:itemID="{store}" xmlns:ds="http://schemas.openxmlformats.org/officeDocument/2006/customXml"/>'
    parts.add(
        "customXml/itemProps9.xml",
        props,
        f"{OFFICE}.customXmlProperties+xml",
        of="customXml/item9.xml",
        rel="customXmlProps",
    )
    return parts.data()


@case
def settings() -> bytes:
    parts = body(p("Ada and Cyd were here."), p("My name is Ada Brook."))
    extra = (
        '<w:attachedTemplate r:id="rIdT1"/><w:mailMerge><w:mainDocumentType w:val="formLetters"/><w:dataType w:val="textFile"/>'
        '<w:connectString w:val="DSN=ada.brook@example.com"/><w:dataSource r:id="rIdT2"/></w:mailMerge>'
        '<w:docVars><w:docVar w:name="who" w:val="Ada Brook"/></w:docVars><w:rsids><w:rsidRoot w:val="00A77B3E"/></w:rsids>'
    )
    xml = parts.parts["word/settings.xml"].decode()
    xml = re.sub(r"<w:rsids>.*?</w:rsids>", "", xml, flags=re.DOTALL)
    parts.parts["word/settings.xml"] = xml.replace("</w:settings>", f"{extra}</w:settings>").encode()
    if "xmlns:r=" not in xml:
        parts.swap("word/settings.xml", "<w:settings ", f'<w:settings xmlns:r="{R}" ')
    parts.link(
        "word/settings.xml", "attachedTemplate", "file:///C:/Users/Ada%20Brook/letter.dotx", "rIdT1", outside=True
    )
    parts.link("word/settings.xml", "mailMergeSource", "file:///C:/Users/Ada%20Brook/people.csv", "rIdT2", outside=True)
    return parts.data()


@case
def properties() -> bytes:
    def change(document: Any) -> None:
        core = document.core_properties
        core.author, core.last_modified_by, core.title = "Ada Brook", "Cyd Dale", "Dear Ms Eve Farrow"
        core.comments, core.keywords, core.subject = "ada.brook@example.com", "212-555-0142", "Dear Mr Smithson"
        document.add_paragraph("Ada Brook and Cyd Dale wrote this.")

    parts = word(change)
    vt = "http://schemas.openxmlformats.org/officeDocument/2006/docPropsVTypes"
    one = '<property fmtid="{D5CDD505-2E9C-101B-9397-08002B2CF9AE}" pid="2" name="who"><vt:lpwstr>Ada Brook</vt:lpwstr></property>'
    custom = f'<Properties xmlns="http://schemas.openxmlformats.org/officeDocument/2006/custom-properties" xmlns:vt="{vt}">{one}</Properties>'
    parts.add("docProps/custom.xml", custom, f"{OFFICE}.custom-properties+xml", rel="custom-properties")
    parts.swap(
        "docProps/app.xml",
        "</Properties>",
        "<Manager>Eve Farrow</Manager><HyperlinkBase>ada.brook@example.com</HyperlinkBase></Properties>",
    )
    label = '<clbl:labelList xmlns:clbl="http://schemas.microsoft.com/office/2020/mipLabelMetadata"><clbl:label id="{1}" siteId="{2}"/></clbl:labelList>'
    parts.add(
        "docMetadata/LabelInfo.xml",
        label,
        "application/vnd.ms-office.classificationlabels+xml",
        rel="http://schemas.microsoft.com/office/2020/02/relationships/classificationlabels",
    )
    return parts.data()


@case
def signed() -> bytes:
    parts = body(p("My name is Ada Brook."))
    kind = "application/vnd.openxmlformats-package.digital-signature-"
    parts.default("sigs", f"{kind}origin")
    origin = "http://schemas.openxmlformats.org/package/2006/relationships/digital-signature/"
    parts.add("_xmlsignatures/origin.sigs", b"", rel=f"{origin}origin")
    signature = '<Signature xmlns="http://www.w3.org/2000/09/xmldsig#"><KeyInfo><X509SubjectName>CN=Ada Brook</X509SubjectName></KeyInfo></Signature>'
    parts.add(
        "_xmlsignatures/sig1.xml",
        signature,
        f"{kind}xmlsignature+xml",
        of="_xmlsignatures/origin.sigs",
        rel=f"{origin}signature",
    )
    return parts.data()


@case
def glossary() -> bytes:
    parts = body(p("My name is Ada Brook."))
    part = f'<w:docPart><w:docPartPr><w:name w:val="Dear Ms Cyd Dale"/></w:docPartPr><w:docPartBody>{p("My name is Ada Brook.")}</w:docPartBody></w:docPart>'
    parts.add(
        "word/glossary/document.xml",
        f'<w:glossaryDocument xmlns:w="{W}"><w:docParts>{part}</w:docParts></w:glossaryDocument>',
        f"{OFFICE}.wordprocessingml.document.glossary+xml",
        of="word/document.xml",
        rel="glossaryDocument",
    )
    return parts.data()


@case
def styles_named_after_people() -> bytes:
    parts = body(p("My name is Ada Brook.", properties='<w:pStyle w:val="AB1"/>'))
    parts.swap(
        "word/styles.xml",
        "</w:styles>",
        '<w:style w:type="paragraph" w:customStyle="1" w:styleId="AB1"><w:name w:val="Letter of Ada Brook"/></w:style></w:styles>',
    )
    parts.swap("word/theme/theme1.xml", 'name="Office Theme"', 'name="ada.brook@example.com"')
    return parts.data()


@case
def embedded() -> bytes:
    ole = '<w:r><w:object w:dxaOrig="1440" w:dyaOrig="720"><v:shape id="s{0}" style="width:72pt;height:36pt" o:ole=""><v:imagedata r:id="rIdE9" o:title=""/></v:shape><o:OLEObject Type="Embed" ProgID="{1}" ShapeID="s{0}" DrawAspect="Content" ObjectID="_1" r:id="{2}"/></w:object></w:r>'
    objects = (
        ("Word.Document.12", "rIdE1"),
        ("Excel.Sheet.12", "rIdE2"),
        ("Package", "rIdE3"),
        ("PowerPoint.Show.12", "rIdE4"),
    )
    parts = body(p(*(ole.format(i, prog, id) for i, (prog, id) in enumerate(objects))), p("My name is Ada Brook."))
    main = "word/document.xml"
    for suffix, kind in (
        ("docx", "wordprocessingml.document"),
        ("xlsx", "spreadsheetml.sheet"),
        ("pptx", "presentationml.presentation"),
        ("bin", "oleObject"),
    ):
        parts.default(suffix, f"{OFFICE}.{kind}")
    parts.default("png", "image/png")
    parts.add("word/media/image9.png", png("Ada Brook"), of=main, rel="image", id="rIdE9")
    parts.add(
        "word/embeddings/Microsoft_Word_Document1.docx", inserted_and_deleted(), of=main, rel="package", id="rIdE1"
    )
    parts.add("word/embeddings/Microsoft_Excel_Sheet2.xlsx", workbook(calls).data(), of=main, rel="package", id="rIdE2")
    parts.add(
        "word/embeddings/oleObject1.bin",
        b"\xd0\xcf\x11\xe0Ada Brook " + "Ada Brook".encode("utf-16-le"),
        of=main,
        rel="oleObject",
        id="rIdE3",
    )
    parts.add("word/embeddings/slides.pptx", b"PK\x03\x04Ada Brook", of=main, rel="package", id="rIdE4")
    return parts.data()


# Excel


@case
def xlsx_calls() -> bytes:
    def change(book: Any) -> None:
        from openpyxl.comments import Comment

        calls(book)
        sheet = book.active
        sheet["A2"].comment = Comment("Ada Brook:\nDear Ms Cyd Dale, 212-555-0142", "Ada Brook")
        sheet["C1"], sheet["C2"] = "Mail", "ada.brook@example.com"
        sheet["C2"].hyperlink = "mailto:ada.brook@example.com"
        sheet.oddHeader.center.text = "Name: Eve Farrow"

    return workbook(change).data()


@case
def xlsx_chart() -> bytes:
    def change(book: Any) -> None:
        from openpyxl.chart import BarChart, Reference

        calls(book)
        made = BarChart()
        made.title = "Calls of Ada Brook"
        made.add_data(Reference(book.active, min_col=2, min_row=1, max_row=3), titles_from_data=True)
        made.set_categories(Reference(book.active, min_col=1, min_row=2, max_row=3))
        book.active.add_chart(made, "E2")

    return workbook(change).data()


@case
def xlsx_threads() -> bytes:
    def change(book: Any) -> None:
        from openpyxl.comments import Comment

        calls(book)
        book.active["B2"].comment = Comment("[Threaded comment]\nComment:\n    Dear Ms Cyd Dale", "tc={0000-1}")

    parts = workbook(change)
    space = "http://schemas.microsoft.com/office/spreadsheetml/2018/threadedcomments"
    person = '<person displayName="Ada Brook" id="{1}" userId="ada.brook@example.com" providerId="AD"/>'
    parts.add(
        "xl/persons/person.xml",
        f'<personList xmlns="{space}">{person}</personList>',
        "application/vnd.ms-excel.person+xml",
        of="xl/workbook.xml",
        rel="http://schemas.microsoft.com/office/2017/10/relationships/person",
    )
    comment = '<threadedComment ref="B2" dT="2021-03-04T05:06:00.00" personId="{1}" id="{0000-1}"><text>Dear Ms Cyd Dale</text></threadedComment>'
    parts.add(
        "xl/threadedComments/threadedComment1.xml",
        f'<ThreadedComments xmlns="{space}">{comment}</ThreadedComments>',
        "application/vnd.ms-excel.threadedcomments+xml",
        of="xl/worksheets/sheet1.xml",
        rel="http://schemas.microsoft.com/office/2017/10/relationships/threadedComment",
    )
    return parts.data()


@case
def xlsx_picture() -> bytes:
    parts = workbook(calls)
    x = "http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing"
    places = "<xdr:from><xdr:col>3</xdr:col><xdr:colOff>0</xdr:colOff><xdr:row>1</xdr:row><xdr:rowOff>0</xdr:rowOff></xdr:from><xdr:to><xdr:col>6</xdr:col><xdr:colOff>0</xdr:colOff><xdr:row>6</xdr:row><xdr:rowOff>0</xdr:rowOff></xdr:to>"
    shape = '<xdr:spPr><a:xfrm><a:off x="0" y="0"/><a:ext cx="900000" cy="900000"/></a:xfrm><a:prstGeom prst="rect"><a:avLst/></a:prstGeom></xdr:spPr>'
    pic = f'<xdr:pic><xdr:nvPicPr><xdr:cNvPr id="2" name="Picture 1" descr="Dear Ms Cyd Dale"/><xdr:cNvPicPr/></xdr:nvPicPr><xdr:blipFill><a:blip r:embed="rId1"/><a:stretch><a:fillRect/></a:stretch></xdr:blipFill>{shape}</xdr:pic>'
    box = f'<xdr:sp><xdr:nvSpPr><xdr:cNvPr id="3" name="Box 1"/><xdr:cNvSpPr/></xdr:nvSpPr>{shape}<xdr:txBody><a:bodyPr/><a:p><a:r><a:t>My name is Ada </a:t></a:r><a:r><a:t>Brook</a:t></a:r></a:p></xdr:txBody></xdr:sp>'
    anchors = "".join(f"<xdr:twoCellAnchor>{places}{s}<xdr:clientData/></xdr:twoCellAnchor>" for s in (pic, box))
    parts.add(
        "xl/drawings/drawing1.xml",
        f'<xdr:wsDr xmlns:xdr="{x}" xmlns:a="{A}" xmlns:r="{R}">{anchors}</xdr:wsDr>',
        f"{OFFICE}.drawing+xml",
        of="xl/worksheets/sheet1.xml",
        rel="drawing",
        id="rIdD1",
    )
    parts.default("png", "image/png")
    parts.add("xl/media/image1.png", png("Ada Brook"), of="xl/drawings/drawing1.xml", rel="image", id="rId1")
    parts.swap("xl/worksheets/sheet1.xml", "</worksheet>", f'<drawing xmlns:r="{R}" r:id="rIdD1"/></worksheet>')
    return parts.data()


def read_everything(data: bytes) -> str:
    """All that is in a package, tags taken out, with and without what tags part; packages in it too."""
    out = []
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for info in archive.infolist():
            content = archive.read(info)
            out += [info.filename, info.comment.decode("latin-1")]
            if zipfile.is_zipfile(io.BytesIO(content)):
                out.append(read_everything(content))
                continue
            text = content.decode("utf-8", "replace")
            plain = re.sub(r"</w:p>|</a:p>|</w:tc>", "\n", text)
            for inside in (text, re.sub(r"<[^>]*>", "", plain), re.sub(r"<[^>]*>", " ", plain)):
                out.append(html.unescape(inside))
            out.append(content.decode("utf-16-le", "replace"))
    return "\n".join(out)


def left_in(data: bytes) -> list[str]:
    """Which secrets, or words of them, can be read in a package."""
    text = read_everything(data).casefold()
    words = {w for s in SECRETS for w in (s, *s.split()) if len(w) > 3}
    found = [w for w in words if w.casefold() in text]
    return sorted(w for w in found if re.search(rf"(?<!\w){re.escape(w.casefold())}(?!\w)", text))


def reopened(name: str, data: bytes) -> None:
    """Open a package as those do who make such files."""
    if name.endswith("docx"):
        import docx

        docx.Document(io.BytesIO(data))
    else:
        import openpyxl

        openpyxl.load_workbook(io.BytesIO(data))


def check(folder: Path, policy: str) -> list[dict[str, object]]:
    rows = []
    for name, make in DOCUMENTS.items():
        source, target = folder / name, folder / f"safe-{name}"
        source.write_bytes(make())
        began = time.monotonic()
        command = [
            sys.executable,
            "-m",
            "allonym",
            "anonymize",
            str(source),
            str(target),
            "--policy",
            policy,
            "--overwrite",
            "-q",
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        left: list[str] = []
        if done.returncode == 0:
            left = left_in(target.read_bytes())
            reopened(name, target.read_bytes())
        why = done.stderr.strip().splitlines()[-1:] if done.returncode else []
        rows.append(
            {
                "file": name,
                "code": done.returncode,
                "left": left,
                "why": why,
                "seconds": round(time.monotonic() - began, 2),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--policy", default="default")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        if not args.check:
            for name, make in DOCUMENTS.items():
                (folder / name).write_bytes(make())
            return
        rows = check(folder, args.policy)
    for row in rows:
        print(
            f"{row['file']:<34}{'written' if row['code'] == 0 else 'refused'}  {row['left'] or ''} {row['why'] or ''}"
        )
    good = sum(row["code"] == 0 and not row["left"] for row in rows)
    print(json.dumps({"files": len(rows), "written and clean": good, "rows": rows}))


if __name__ == "__main__":
    main()
