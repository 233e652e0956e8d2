"""Mails as programs write them, some with mistakes, each about the same people. Names and numbers are invented."""

from __future__ import annotations

import base64
import binascii
import csv
import io
import quopri
from collections.abc import Iterator
from email import policy as policies
from email.message import EmailMessage, Message
from email.mime.application import MIMEApplication
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText

ORIGINALS = ("Adaeze", "Okafor", "okafor", "Lindqvist", "lindqvist", "2024", "7946 0958", "fennside")
"""What no decoded part of an anonymised mail may hold."""

BODY = """Dear Adaeze Okafor,

please call Tomas Lindqvist on +44 20 7946 0958, or write to t.lindqvist@fennside.example.
Adaeze Okafor was born on 12 March 2024.
"""
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


def make_mail(body: str = BODY, **headers: str) -> EmailMessage:
    """Return a plain mail between the two people."""
    mail = EmailMessage()
    mail["From"] = "Tomas Lindqvist <t.lindqvist@fennside.example>"
    mail["To"] = "Adaeze Okafor <adaeze.okafor@fennside.example>"
    mail["Subject"] = "Adaeze Okafor and the keys"
    mail["Date"] = "Tue, 12 Mar 2024 09:30:00 +0100"
    mail["Message-ID"] = "<20240312.1@fennside.example>"
    for name, value in headers.items():
        mail[name.replace("_", "-")] = value
    if body:
        mail.set_content(body)
    return mail


def write_mail(mail: Message) -> bytes:
    """Return a mail as bytes, with boundaries that are always the same."""
    for number, part in enumerate(mail.walk()):
        if part.is_multipart() and part.get_content_maintype() == "multipart":
            part.set_boundary(f"==part={number}==")
    return mail.as_bytes()


def make_docx() -> bytes:
    """Return a Word document with the body as a paragraph."""
    from docx import Document

    document, out = Document(), io.BytesIO()
    document.add_paragraph(BODY)
    document.save(out)
    return out.getvalue()


def make_xlsx() -> bytes:
    """Return a workbook with a table of the people."""
    from openpyxl import Workbook

    book, out = Workbook(), io.BytesIO()
    sheet = book.active
    assert sheet is not None
    for row in _ROWS:
        sheet.append(row)
    book.save(out)
    return out.getvalue()


def make_pdf() -> bytes:
    """Return a page with the first line of the body."""
    from reportlab.pdfgen.canvas import Canvas

    out = io.BytesIO()
    canvas = Canvas(out)
    canvas.drawString(72, 700, "Dear Adaeze Okafor, please call Tomas Lindqvist.")
    canvas.save()
    return out.getvalue()


_ROWS = [
    ["name", "email", "visits"],
    ["Adaeze Okafor", "adaeze.okafor@fennside.example", 3],
    ["Tomas Lindqvist", "t.lindqvist@fennside.example", 5],
]
_CALENDAR = """BEGIN:VCALENDAR\r\nVERSION:2.0\r\nMETHOD:REQUEST\r\nBEGIN:VEVENT\r\nDTSTART:20240312T093000Z\r
SUMMARY:Keys for Adaeze Okafor\r\nATTENDEE;CN=Tomas Lindqvist:mailto:t.lindqvist@fennside.example\r
END:VEVENT\r\nEND:VCALENDAR\r\n"""


def make_csv() -> str:
    """Return the table of the people."""
    out = io.StringIO()
    csv.writer(out).writerows(_ROWS)
    return out.getvalue()


def list_mails() -> Iterator[tuple[str, bytes]]:
    """Yield the mails, each with a name."""
    html = "<html><body><p>Dear <b>Adaeze</b> Okafor,</p><img src='cid:logo@fennside.example' alt='logo'></body></html>"
    yield "plain", make_mail().as_bytes()
    yield "crlf", make_mail().as_bytes(policy=policies.SMTP)
    alternative = make_mail()
    alternative.add_alternative(html, subtype="html")
    yield "alternative", write_mail(alternative)
    related = make_mail()
    related.add_alternative(html, subtype="html")
    pages = related.get_payload()[1]
    assert isinstance(pages, EmailMessage)
    pages.add_related(PIXEL, "image", "png", cid="<logo@fennside.example>", filename="okafor.png")
    yield "related", write_mail(related)
    for name, data, kind in (
        ("docx", make_docx(), ("application", "vnd.openxmlformats-officedocument.wordprocessingml.document")),
        ("xlsx", make_xlsx(), ("application", "vnd.openxmlformats-officedocument.spreadsheetml.sheet")),
        ("pdf", make_pdf(), ("application", "pdf")),
        ("json", b'[{"name": "Adaeze Okafor"}, {"name": "Tomas Lindqvist"}]', ("application", "json")),
        ("png", PIXEL, ("image", "png")),
        ("bin", b"\x00\x01 Adaeze Okafor", ("application", "octet-stream")),
        ("damaged.docx", b"PK\x03\x04 Adaeze Okafor", ("application", "octet-stream")),
    ):
        mixed = make_mail()
        mixed.add_attachment(data, *kind, filename=f"Adaeze_Okafor_2024.{name}")
        yield f"attached {name}", write_mail(mixed)
    for name, text, subtype in (("csv", make_csv(), "csv"), ("html", html, "html"), ("txt", BODY, "plain")):
        mixed = make_mail()
        mixed.add_attachment(text, subtype=subtype, filename=f"table.{name}")
        yield f"attached {name}", write_mail(mixed)
    forwarded = make_mail("See below.\n", References="<20240312.1@fennside.example> <2@fennside.example>")
    forwarded.add_attachment(alternative)
    yield "forwarded", write_mail(forwarded)
    octets = make_mail()
    octets.add_attachment(write_mail(alternative), "application", "octet-stream", filename="mail.eml")
    yield "mail in a file", write_mail(octets)
    quoted = make_mail(
        "Yes.\n\n-----Original Message-----\nFrom: Adaeze Okafor <adaeze.okafor@fennside.example>\n"
        "Sent: 12 March 2024 09:30\nTo: Tomas Lindqvist\n\n> Where is Adaeze Okafor?\n"
    )
    yield "forwarded inline", write_mail(quoted)
    yield (
        "encoded words",
        make_mail(
            Reply_To="=?utf-8?q?Ad=C3=A1eze_Okafor?= <o@fennside.example>",
            Cc="=?iso-8859-1?Q?J=F6rg_Lindqvist?= <j@x.example>",
        ).as_bytes(policy=policies.compat32),
    )
    yield (
        "long list",
        make_mail(
            Cc=", ".join(f'"Lindqvist, Tomas {n}" <t{n}.lindqvist@fennside.example>' for n in range(20))
        ).as_bytes(policy=policies.SMTP),
    )
    yield (
        "comments and groups",
        make_mail(
            Cc="Friends: okafor@fennside.example (Adaeze Okafor), t.lindqvist@fennside.example;",
            Bcc="undisclosed-recipients:;",
        ).as_bytes(),
    )
    yield (
        "list",
        make_mail(
            List_Id="Keys <keys.fennside.example>",
            List_Unsubscribe="<mailto:keys-leave@fennside.example>, <https://fennside.example/u?m=okafor>",
            Precedence="bulk",
            Return_Path="<okafor-bounces@fennside.example>",
        ).as_bytes(),
    )
    traced = make_mail(
        DKIM_Signature="v=1; a=rsa-sha256; d=fennside.example; bh=abc=; b=def=", X_Originating_User="Adaeze Okafor"
    )
    traced["Received"] = (
        "from mx.fennside.example (mx.fennside.example. [203.0.113.7]) by x; Tue, 12 Mar 2024 09:30:00 +0100"
    )
    yield "traces", write_mail(traced)
    signed = MIMEMultipart("signed", protocol="application/pkcs7-signature", micalg="sha-256")
    for name, value in make_mail("").items():
        signed[name] = value
    signed.attach(MIMEText(BODY))
    signed.attach(MIMEApplication(b"0\x82 Adaeze Okafor", "pkcs7-signature", name="smime.p7s"))
    yield "signed", write_mail(signed)
    invited = make_mail()
    invited.add_alternative(_CALENDAR, subtype="calendar", params={"method": "REQUEST"})
    yield "invitation", write_mail(invited)
    for charset, coding in (
        ("iso-8859-1", "8bit"),
        ("iso-8859-1", "quoted-printable"),
        ("windows-1252", "base64"),
        ("utf-8", "8bit"),
        ("utf-16", "base64"),
        ("koi8-r", "base64"),
    ):
        yield f"{charset} {coding}", _write_by_hand(charset, coding, BODY + ("Ж" if charset == "koi8-r" else "Grüße\n"))
    for coding in ("7-bit", "8-bit", '"7bit"', "x-unknown", "x-uuencode", "uuencode"):
        yield f"coding {coding}", _write_by_hand("us-ascii", coding, BODY)
    yield "unknown charset", _write_by_hand("x-klingon", "8bit", BODY + "Grüße\n", really="cp1252")
    yield "no charset", _write_by_hand("", "8bit", BODY + "Grüße\n", really="cp1252")
    flowed = make_mail()
    flowed.set_content(BODY.replace("please call", "please \ncall"), params={"format": "flowed", "delsp": "no"})
    yield "flowed", write_mail(flowed)
    plain = make_mail().as_bytes()
    yield "no boundary", plain.replace(b"Content-Type: text/plain", b"Content-Type: multipart/mixed; x=")
    yield "headers end early", plain.replace(b"MIME-Version: 1.0", b"Adaeze Okafor has a question")
    yield "latin-1 in headers", plain.replace(b"and the keys", "für Adaeze Okafor".encode("latin-1"))
    yield "date that is none", plain.replace(b"Tue, 12 Mar 2024", b"Yesterday 12 March 2024,")
    yield "envelope", b"From okafor@fennside.example Tue Mar 12 09:30:00 2024\n" + plain


def _write_by_hand(charset: str, coding: str, body: str, really: str = "") -> bytes:
    data = body.encode(really or charset)
    if coding == "quoted-printable":
        data = quopri.encodestring(data)
    elif coding == "base64":
        data = base64.encodebytes(data)
    elif coding.endswith("uuencode"):
        lines = [binascii.b2a_uu(data[i : i + 45]) for i in range(0, len(data), 45)]
        data = b"".join([b"begin 644 body.txt\n", *lines, b"`\nend\n"])
    head = make_mail("").as_bytes().rstrip() + b"\nMIME-Version: 1.0\nContent-Type: text/plain"
    head += f'; charset="{charset}"'.encode() if charset else b""
    return head + f"\nContent-Transfer-Encoding: {coding}\n\n".encode() + data
