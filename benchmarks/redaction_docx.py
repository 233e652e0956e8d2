"""Word and Excel files with names in every corner, made by code: what ``benchmarks/redaction.py`` and the tests treat.

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
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.office_packages import (
    OFFICE,
    WHO,
    A,
    R,
    W,
    anchor,
    body,
    dele,
    ins,
    jpeg,
    p,
    picture,
    png,
    run,
    word,
    workbook,
)

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


DOCUMENTS: dict[str, Callable[[], bytes]] = {}
"""Name of a file to the function that makes it."""


def case(function: Callable[[], bytes]) -> Callable[[], bytes]:
    DOCUMENTS[f"{function.__name__.removeprefix('xlsx_')}.{'xlsx' if 'xlsx_' in function.__name__ else 'docx'}"] = (
        function
    )
    return function


# Words in formats, tables, headers, notes


@case
def formats() -> bytes:
    def change(document: Any) -> None:
        paragraph = document.add_paragraph("My name is ")
        paragraph.add_run("Ada ").bold = True
        paragraph.add_run("Bro").italic = True
        paragraph.add_run("ok").underline = True
        paragraph.add_run(", write to ada.brook").font.size = None
        paragraph.add_run("@example.com or call 212-555").bold = True
        paragraph.add_run("-0142.")
        document.add_paragraph("Dear Ms Cyd Dale, thank you.", style="List Bullet")

    return word(change).data()


@case
def tables() -> bytes:
    def change(document: Any) -> None:
        rows = [["Name", "Phone", "SSN"], ["Ada Brook", "212-555-0142", "536-22-1234"], ["Cyd Dale", "none", "none"]]
        table = document.add_table(3, 3, style="Light Grid Accent 1")
        for r, row in enumerate(rows):
            for c, text in enumerate(row):
                table.cell(r, c).text = text
        inner = table.cell(2, 1).add_table(1, 2)
        inner.cell(0, 0).text, inner.cell(0, 1).text = "Name:", "Eve Farrow"

    return word(change).data()


@case
def headers() -> bytes:
    def change(document: Any) -> None:
        section = document.sections[0]
        section.different_first_page_header_footer = True
        document.settings.odd_and_even_pages_header_footer = True
        section.header.paragraphs[0].text = "Name: Ada Brook"
        section.footer.paragraphs[0].text = "ada.brook@example.com"
        section.first_page_header.paragraphs[0].text = "Dear Ms Cyd Dale"
        section.even_page_footer.paragraphs[0].text = "Mr Smithson, 212-555-0142"
        document.add_paragraph("Nothing here.")

    return word(change).data()


@case
def notes() -> bytes:
    parts = body(
        p(run("See below"), '<w:r><w:footnoteReference w:id="2"/></w:r><w:r><w:endnoteReference w:id="2"/></w:r>')
    )
    for kind, text in (("footnote", "My name is Ada Brook."), ("endnote", "Dear Mr Smithson, call 212-555-0142.")):
        special = "".join(
            f'<w:{kind} w:type="{t}" w:id="{i}"><w:p><w:r><w:{t}/></w:r></w:p></w:{kind}>'
            for i, t in enumerate(("separator", "continuationSeparator"))
        )
        xml = f'<w:{kind}s xmlns:w="{W}">{special}<w:{kind} w:id="2">{p(text)}</w:{kind}></w:{kind}s>'
        parts.add(
            f"word/{kind}s.xml", xml, f"{OFFICE}.wordprocessingml.{kind}s+xml", of="word/document.xml", rel=f"{kind}s"
        )
    return parts.data()


@case
def hidden_text() -> bytes:
    return body(
        p("The file ", run("of Ada Brook, SSN 536-22-1234,", "<w:vanish/>"), " is closed."),
        p(run("Dear Ms Cyd Dale in white", '<w:color w:val="FFFFFF"/><w:sz w:val="2"/>')),
    ).data()


# Tracked changes


@case
def inserted_and_deleted() -> bytes:
    return body(
        p("My name is ", dele("Ada Brook"), ins("Cyd Dale"), " and I live here."),
        p("Call ", ins("212-555-0142"), dele("Dear Ms Eve Farrow"), " today."),
    ).data()


@case
def name_over_changes() -> bytes:
    return body(
        p("My name is Gil Smith", ins("son"), ", and I was here."),
        p("My name is Ada ", dele("Bro"), ins("Gre"), run("ok, and I was here.", "<w:b/>")),
        p("Write to ada.", dele("brook@exam"), ins("gray@exam"), "ple.com at once."),
    ).data()


@case
def moved() -> bytes:
    start = f'<w:{{0}}RangeStart {WHO}"1" w:name="move1"/>'
    mark = '<w:{0}RangeEnd w:id="1"/>'
    return body(
        p(start.format("moveFrom"), ins("My name is Ada Brook.", "moveFrom"), mark.format("moveFrom")),
        p("Between."),
        p(start.format("moveTo"), ins("My name is Ada Brook.", "moveTo"), mark.format("moveTo")),
    ).data()


@case
def joined_paragraphs() -> bytes:
    gone = f'<w:rPr><w:del {WHO}"7"/></w:rPr>'
    new = f'<w:rPr><w:ins {WHO}"8"/></w:rPr>'
    return body(
        p("My name is Ada ", properties=gone),
        p("Brook and I was here."),
        p("My name is Cyd ", properties=new),
        p("Dale and I was there."),
    ).data()


@case
def inserted_then_deleted() -> bytes:
    return body(
        p("We met ", ins(dele("Ms Eve Farrow")), "nobody there."),
        p("We met ", ins(f"{dele('Dear Mr Smithson')}{run('nobody')}"), " else."),
    ).data()


@case
def changed_formats() -> bytes:
    change = f'<w:b/><w:rPrChange {WHO}"3"><w:rPr><w:i/></w:rPr></w:rPrChange>'
    style = f'<w:pStyle w:val="Heading1"/><w:pPrChange {WHO}"4"><w:pPr><w:pStyle w:val="Title"/></w:pPr></w:pPrChange>'
    return body(p("By ", run("Dear Ms Cyd Dale", change), properties=style), p("Ada knew.")).data()


@case
def changed_rows() -> bytes:
    def row(change: str, *texts: str) -> str:
        return f"<w:tr><w:trPr>{change}</w:trPr>" + "".join(f"<w:tc><w:tcPr/>{p(t)}</w:tc>" for t in texts) + "</w:tr>"

    rows = [
        row("", "Name", "Phone"),
        row(f'<w:ins {WHO}"5"/>', ins("Ada Brook"), ins("212-555-0142")),
        row(f'<w:del {WHO}"6"/>', dele("Cyd Dale"), dele("none")),
    ]
    grid = '<w:tblPr><w:tblW w:w="0" w:type="auto"/></w:tblPr><w:tblGrid><w:gridCol w:w="4000"/><w:gridCol w:w="4000"/></w:tblGrid>'
    return body(f"<w:tbl>{grid}{''.join(rows)}</w:tbl>", p()).data()


@case
def comments() -> bytes:
    mark = '<w:commentRangeStart w:id="0"/>{}<w:commentRangeEnd w:id="0"/><w:r><w:commentReference w:id="0"/></w:r>'
    parts = body(p("Ada went to ", mark.format(run("the bank")), "."))
    w15 = "http://schemas.microsoft.com/office/word/2012/wordml"
    w14 = "http://schemas.microsoft.com/office/word/2010/wordml"
    cex = "http://schemas.microsoft.com/office/word/2018/wordml/cex"
    cid = "http://schemas.microsoft.com/office/word/2016/wordml/cid"
    texts = (
        (0, "Ada Brook", "AB", "Dear Ms Cyd Dale, see ada.brook@example.com"),
        (1, "Eve Farrow", "EF", "Yes, Ada."),
    )
    xml = "".join(
        f'<w:comment w:id="{i}" w:author="{who}" w:initials="{short}" w:date="2021-03-04T05:06:00Z">'
        f'<w:p w14:paraId="0000000{i + 1}"><w:r><w:t>{text}</w:t></w:r></w:p></w:comment>'
        for i, who, short, text in texts
    )
    main = "word/document.xml"
    kind = f"{OFFICE}.wordprocessingml."
    parts.add(
        "word/comments.xml",
        f'<w:comments xmlns:w="{W}" xmlns:w14="{w14}">{xml}</w:comments>',
        f"{kind}comments+xml",
        of=main,
        rel="comments",
    )
    thread = '<w15:commentEx w15:paraId="00000001" w15:done="0"/><w15:commentEx w15:paraId="00000002" w15:paraIdParent="00000001" w15:done="0"/>'
    ms = "http://schemas.microsoft.com/office/2011/relationships/"
    parts.add(
        "word/commentsExtended.xml",
        f'<w15:commentsEx xmlns:w15="{w15}">{thread}</w15:commentsEx>',
        f"{kind}commentsExtended+xml",
        of=main,
        rel=f"{ms}commentsExtended",
    )
    person = '<w15:person w15:author="Ada Brook"><w15:presenceInfo w15:providerId="AD" w15:userId="ada.brook@example.com"/></w15:person>'
    parts.add(
        "word/people.xml",
        f'<w15:people xmlns:w15="{w15}">{person}</w15:people>',
        f"{kind}people+xml",
        of=main,
        rel=f"{ms}people",
    )
    ids = '<c:commentId c:paraId="00000001" c:durableId="2B5C0A11"/>'
    parts.add(
        "word/commentsIds.xml",
        f'<c:commentsIds xmlns:c="{cid}">{ids}</c:commentsIds>',
        f"{kind}commentsIds+xml",
        of=main,
        rel="http://schemas.microsoft.com/office/2016/09/relationships/commentsIds",
    )
    more = '<c:commentExtensible c:durableId="2B5C0A11" c:dateUtc="2021-03-04T04:06:00Z"/>'
    parts.add(
        "word/commentsExtensible.xml",
        f'<c:commentsExtensible xmlns:c="{cex}">{more}</c:commentsExtensible>',
        f"{kind}commentsExtensible+xml",
        of=main,
        rel="http://schemas.microsoft.com/office/2018/08/relationships/commentsExtensible",
    )
    return parts.data()


# Drawings, pictures, charts, diagrams


@case
def text_box() -> bytes:
    text = f"<w:txbxContent>{p('My name is Ada Brook, ', ins('Dear Ms Cyd Dale'))}</w:txbxContent>"
    wps = "http://schemas.microsoft.com/office/word/2010/wordprocessingShape"
    shape = (
        '<wps:wsp><wps:cNvSpPr txBox="1"/><wps:spPr><a:xfrm><a:off x="0" y="0"/><a:ext cx="2400000" cy="600000"/></a:xfrm>'
        '<a:prstGeom prst="rect"><a:avLst/></a:prstGeom><a:ln><a:solidFill><a:srgbClr val="000000"/></a:solidFill></a:ln>'
        f"</wps:spPr><wps:txbx>{text}</wps:txbx><wps:bodyPr/></wps:wsp>"
    )
    drawing = (
        anchor(shape, wps, "Text Box 2", "Box of Ada Brook", (2400000, 600000))
        .removeprefix("<w:r>")
        .removesuffix("</w:r>")
    )
    fallback = f'<w:pict><v:shape style="width:189pt;height:47pt" alt="Box of Ada Brook"><v:textbox>{text}</v:textbox></v:shape></w:pict>'
    return body(
        p(
            f'<w:r><mc:AlternateContent><mc:Choice Requires="wps">{drawing}</mc:Choice><mc:Fallback>{fallback}</mc:Fallback></mc:AlternateContent></w:r>'
        )
    ).data()


@case
def watermark() -> bytes:
    path = '<v:textpath style="font-family:Calibri" string="For Ada Brook, ada.brook@example.com"/>'
    return body(
        p(
            "Text.",
            f'<w:r><w:pict><v:shape id="x" style="width:200pt;height:40pt" o:title="Ada Brook">{path}</v:shape></w:pict></w:r>',
        ),
        p("My name is Ada Brook."),
    ).data()


@case
def pictures() -> bytes:
    parts = body(
        p(picture("rIdP1", "My name is Ada Brook", "ada.brook@example.com.png"), " ", picture("rIdP2")),
        p("My name is Ada Brook."),
    )
    if "jpeg" not in parts.parts["[Content_Types].xml"].decode():
        parts.default("jpeg", "image/jpeg")
    parts.default("png", "image/png")
    parts.add("word/media/ada_brook.png", png("Ada Brook"), of="word/document.xml", rel="image", id="rIdP1")
    parts.add(
        "word/media/image2.jpeg",
        jpeg("Ada Brook ada.brook@example.com"),
        of="word/document.xml",
        rel="image",
        id="rIdP2",
    )
    return parts.data()


@case
def linked_picture() -> bytes:
    parts = body(p(picture("rIdP1").replace("r:embed", "r:link")), p("My name is Ada Brook."))
    parts.link("word/document.xml", "image", "file:///C:/Users/Ada%20Brook/face.png", "rIdP1", outside=True)
    return parts.data()


def chart_xml(workbook: str = "") -> str:
    c = "http://schemas.openxmlformats.org/drawingml/2006/chart"
    names = "".join(f'<c:pt idx="{i}"><c:v>{n}</c:v></c:pt>' for i, n in enumerate(("Ada Brook", "Cyd Dale")))
    values = "".join(f'<c:pt idx="{i}"><c:v>{n}</c:v></c:pt>' for i, n in enumerate((4, 7)))
    title = '<c:title><c:tx><c:rich><a:bodyPr/><a:p><a:r><a:rPr b="1"/><a:t>Calls of Ada</a:t></a:r><a:r><a:t> Brook</a:t></a:r></a:p></c:rich></c:tx><c:overlay val="0"/></c:title>'
    axes = '<c:axId val="1"/><c:axId val="2"/>'
    sides = "".join(
        f'<c:{kind}><c:axId val="{a}"/><c:scaling/><c:delete val="0"/><c:axPos val="{pos}"/><c:crossAx val="{b}"/></c:{kind}>'
        for kind, a, b, pos in (("catAx", 1, 2, "b"), ("valAx", 2, 1, "l"))
    )
    return (
        f'<c:chartSpace xmlns:c="{c}" xmlns:a="{A}" xmlns:r="{R}"><c:chart>{title}<c:plotArea><c:layout/><c:barChart><c:barDir val="col"/>'
        '<c:grouping val="clustered"/><c:ser><c:idx val="0"/><c:order val="0"/><c:tx><c:strRef><c:f>Sheet1!$B$1</c:f><c:strCache><c:ptCount val="1"/>'
        '<c:pt idx="0"><c:v>Calls</c:v></c:pt></c:strCache></c:strRef></c:tx><c:cat><c:strRef><c:f>Sheet1!$A$2:$A$3</c:f><c:strCache>'
        f'<c:ptCount val="2"/>{names}</c:strCache></c:strRef></c:cat><c:val><c:numRef><c:f>Sheet1!$B$2:$B$3</c:f><c:numCache>'
        f'<c:formatCode>General</c:formatCode><c:ptCount val="2"/>{values}</c:numCache></c:numRef></c:val></c:ser>{axes}</c:barChart>{sides}'
        f"</c:plotArea></c:chart>{workbook}</c:chartSpace>"
    )


def calls(book: Any) -> None:
    for row in (["Name", "Calls"], ["Ada Brook", 4], ["Cyd Dale", 7]):
        book.active.append(row)
    book.properties.creator = "Eve Farrow"


@case
def chart() -> bytes:
    c = "http://schemas.openxmlformats.org/drawingml/2006/chart"
    parts = body(
        p(anchor(f'<c:chart xmlns:c="{c}" r:id="rIdC1"/>', c, "Chart 1", "Calls", (4000000, 2500000))),
        p("My name is Ada Brook."),
    )
    kind = f"{OFFICE}.drawingml.chart+xml"
    parts.add(
        "word/charts/chart1.xml",
        chart_xml('<c:externalData r:id="rId1"><c:autoUpdate val="0"/></c:externalData>'),
        kind,
        of="word/document.xml",
        rel="chart",
        id="rIdC1",
    )
    parts.default("xlsx", f"{OFFICE}.spreadsheetml.sheet")
    parts.add(
        "word/embeddings/Microsoft_Excel_Sheet1.xlsx",
        workbook(calls).data(),
        of="word/charts/chart1.xml",
        rel="package",
        id="rId1",
    )
    return parts.data()


@case
def diagram() -> bytes:
    d = "http://schemas.openxmlformats.org/drawingml/2006/diagram"
    ids = 'r:dm="rIdD1" r:lo="rIdD2" r:qs="rIdD3" r:cs="rIdD4"'
    parts = body(
        p(anchor(f'<dgm:relIds xmlns:dgm="{d}" {ids}/>', d, "Diagram 1", "", (4000000, 1500000))),
        p("My name is Ada Brook."),
    )
    text = '<a:bodyPr/><a:p><a:r><a:t>Ada</a:t></a:r><a:r><a:rPr b="1"/><a:t> Brook</a:t></a:r></a:p>'
    main = "word/document.xml"
    points = f'<dgm:pt modelId="0" type="doc"><dgm:prSet/><dgm:spPr/></dgm:pt><dgm:pt modelId="1"><dgm:prSet/><dgm:spPr/><dgm:t>{text}</dgm:t></dgm:pt>'
    parts.add(
        "word/diagrams/data1.xml",
        f'<dgm:dataModel xmlns:dgm="{d}" xmlns:a="{A}"><dgm:ptLst>{points}</dgm:ptLst><dgm:cxnLst><dgm:cxn modelId="2" srcId="0" destId="1" srcOrd="0" destOrd="0"/></dgm:cxnLst></dgm:dataModel>',
        f"{OFFICE}.drawingml.diagramData+xml",
        of=main,
        rel="diagramData",
        id="rIdD1",
    )
    parts.add(
        "word/diagrams/layout1.xml",
        f'<dgm:layoutDef xmlns:dgm="{d}" uniqueId="urn:x"><dgm:title val="Made by Ada Brook"/><dgm:desc val=""/><dgm:catLst/><dgm:layoutNode name="d"><dgm:alg type="lin"/></dgm:layoutNode></dgm:layoutDef>',
        f"{OFFICE}.drawingml.diagramLayout+xml",
        of=main,
        rel="diagramLayout",
        id="rIdD2",
    )
    parts.add(
        "word/diagrams/quickStyle1.xml",
        f'<dgm:styleDef xmlns:dgm="{d}" uniqueId="urn:y"><dgm:title val=""/></dgm:styleDef>',
        f"{OFFICE}.drawingml.diagramStyle+xml",
        of=main,
        rel="diagramQuickStyle",
        id="rIdD3",
    )
    parts.add(
        "word/diagrams/colors1.xml",
        f'<dgm:colorsDef xmlns:dgm="{d}" uniqueId="urn:z"><dgm:title val=""/></dgm:colorsDef>',
        f"{OFFICE}.drawingml.diagramColors+xml",
        of=main,
        rel="diagramColors",
        id="rIdD4",
    )
    dsp = "http://schemas.microsoft.com/office/drawing/2008/diagram"
    parts.add(
        "word/diagrams/drawing1.xml",
        f'<dsp:drawing xmlns:dsp="{dsp}" xmlns:a="{A}"><dsp:spTree><dsp:nvGrpSpPr><dsp:cNvPr id="0" name=""/><dsp:cNvGrpSpPr/></dsp:nvGrpSpPr><dsp:grpSpPr/><dsp:sp modelId="1"><dsp:nvSpPr><dsp:cNvPr id="0" name=""/><dsp:cNvSpPr/></dsp:nvSpPr><dsp:spPr><a:xfrm><a:off x="0" y="0"/><a:ext cx="2000000" cy="800000"/></a:xfrm><a:prstGeom prst="rect"><a:avLst/></a:prstGeom></dsp:spPr><dsp:txBody>{text}</dsp:txBody></dsp:sp></dsp:spTree></dsp:drawing>',
        "application/vnd.ms-office.drawingml.diagramDrawing+xml",
        of=main,
        rel="http://schemas.microsoft.com/office/2007/relationships/diagramDrawing",
        id="rIdD5",
    )
    return parts.data()


@case
def equation() -> bytes:
    parts_of = "".join(f"<m:r><m:t>{t}</m:t></m:r>" for t in ("My name is Ada ", "Brook", "=x"))
    return body(p("Thus ", f"<m:oMath>{parts_of}</m:oMath>", "."), p("My name is Ada Brook.")).data()


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
