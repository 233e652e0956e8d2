"""Word files with names in formats, tables, headers, notes, tracked changes, comments, drawings and charts."""

# ruff: noqa: E501
from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
