"""Mail: headers, bodies and attachments."""

import base64
import email
import email.policy
import mailbox
import re
from contextlib import closing
from email.message import EmailMessage
from itertools import pairwise

import pytest
from tests.mails import ORIGINALS, list_mails

from allonym.errors import DataError, RefusedContent
from allonym.files import read_documents, rewrite_path
from allonym.files.verify import VIEWS, read_texts_by_reader
from allonym.policy import Policy

RAW = b"""Received: from relay (192.0.2.17) by x; Mon, 1 Jan 2024 10:00:00 +0000\r
From: Pam Beesly <pam@example.com>\r
To: =?utf-8?q?Jos=C3=A9_Ruiz?= <jose@example.com>,\r
 jim@example.com\r
Subject: For Pam\r
X-Empty:\r
MIME-Version: 1.0\r
Content-Type: multipart/mixed; boundary="b=1"\r
\r
preamble pam@example.com\r
--b=1\r
Content-Type: text/plain; charset=iso-8859-1\r
Content-Transfer-Encoding: quoted-printable\r
\r
Caf=E9 with Pam, pam@exam=\r
ple.com.\r
\r
--b=1\r
Content-Type: text/html; charset=utf-8\r
Content-Transfer-Encoding: base64\r
\r
PHA+amltPGI+QGV4YW1wbGUuY29tPC9iPg==\r
--b=1\r
Content-Type: text/csv; name="x.csv"\r
Content-Disposition: attachment; filename="jim@example.com"\r
\r
a,jim@example.com\r
--b=1\r
Content-Type: message/rfc822\r
\r
From: jim@example.com\r
\r
inner pam@example.com\r
--b=1--\r
"""


def test_everything_is_treated_and_the_structure_stays(run):
    out, report = run("a.eml", RAW)
    assert b"example" not in out and b"192.0.2.17" not in out and b"Beesly" not in out
    before, after = (email.message_from_bytes(m, policy=email.policy.default) for m in (RAW, out))
    assert [p.get_content_type() for p in after.walk()] == [p.get_content_type() for p in before.walk()]
    assert b"preamble [EMAIL_ADDRESS_" in out and b"X-Empty:\r\n" in out
    plain, page = (next(p for p in after.walk() if p.get_content_type() == t) for t in ("text/plain", "text/html"))
    assert (
        plain.get_content().startswith("Café with [PERSON_")
        and plain["Content-Transfer-Encoding"] == "quoted-printable"
    )
    assert page.get_content() == "<p>[EMAIL_ADDRESS_3]<b></b>"
    assert b'boundary="b=1"' in out and report.documents == 1
    assert out.count(b"[EMAIL_ADDRESS_1]") == 3  # preamble, body, inner mail
    assert after["From"].addresses[0].addr_spec == "EMAIL_ADDRESS_1@redacted.invalid"


def test_nothing_found_means_the_same_bytes(run, nothing):
    for data in (RAW, RAW.replace(b"\r\n", b"\n"), b"Subject: x\n", b"Subject: x\n\n", b"Subject: x\n\nbody"):
        assert run("a.eml", data, nothing)[0] == data


def test_line_of_a_mail_box_is_treated(run):
    out = run("a.eml", b"From pam@example.com Mon Jan  1 10:00:00 2024\n" + RAW)[0]
    assert out.startswith(b"From EMAIL_ADDRESS_1@redacted.invalid ") and b"example" not in out


def test_made_by_the_standard_library(run):
    message = EmailMessage()
    message["From"], message["Subject"] = "Pam <pam@example.com>", "ü" * 80 + " pam@example.com"
    message.set_content("Grüße, pam@example.com\n" * 3)
    message.add_alternative("<p>pam@example.com</p>", subtype="html")
    out = email.message_from_bytes(run("a.eml", message.as_bytes())[0], policy=email.policy.default)
    assert "example" not in out.as_string()
    assert out["Subject"] == "ü" * 80 + " [EMAIL_ADDRESS_1]"
    body = out.get_body(("plain",))
    assert body is not None and body.get_content() == "Grüße, [EMAIL_ADDRESS_1]\n" * 3


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"iso-8859-1", b"klingon"),
        (b"charset=utf-8", b"charset=utf-16"),
        (b"; boundary", b"; bound"),
        (b"X-Empty:", b"no header"),
        (b"quoted-printable", b"8-bit"),
        (b"base64", b"base 64"),
    ],
)
def test_mails_with_mistakes_are_treated(run, old, new):
    out, report = run("a.eml", RAW.replace(old, new))
    assert b"pam@example" not in out and b"Beesly" not in out and not report.refused
    assert_headers_parse(email.message_from_bytes(out, policy=email.policy.default))


def test_a_line_among_the_headers_hides_no_encoded_part(run):
    out = run("a.eml", RAW.replace(b"X-Empty:", b"pam@example.com wrote"))[0]
    assert b"[EMAIL_ADDRESS_1] wrote\r\nMIME-Version" in out and b"PHA+amlt" not in out and b"example" not in out


def test_what_is_no_mail_or_encrypted_is_refused(run, tmp_path):
    sealed = b"From: pam@example.com\nContent-Type: application/pkcs7-mime; name=smime.p7m\n\nAAAA\n"
    for data, words in ((b"Dear Pam,\n", "not a mail"), (sealed, "encrypted")):
        with pytest.raises(DataError, match=words) as caught:
            run("a.eml", data)
        assert "example" not in str(caught.value)
        assert not (tmp_path / "out-a.eml").exists()


def assert_headers_parse(message):
    """Read every header of a mail, as programs do."""
    for part in message.walk():
        for name, value in part.items():
            assert "\n" not in str(value), name
            if name.lower() in ("from", "to", "cc"):
                assert value.addresses and not value.defects
            if name.lower() == "date":
                assert value.datetime is not None and not value.defects
            if name.lower() == "message-id":
                assert not value.defects


def list_decoded_texts(data):
    """Yield the decoded headers and bodies of a mail and of the files in it."""
    message = email.message_from_bytes(data, policy=email.policy.default)
    assert_headers_parse(message)
    for part in message.walk():
        yield from (f"{name}: {value}" for name, value in part.items())
        if part.is_multipart():
            continue
        content = part.get_payload(decode=True) or b""
        suffix = (part.get_filename() or "").rpartition(".")[2]
        if suffix == "eml":
            yield from list_decoded_texts(content)
        elif suffix in VIEWS:
            yield from (text for texts in read_texts_by_reader(content, suffix) for _, text in texts)
        else:
            yield content.decode("latin-1")
            yield content.decode("utf-16", "ignore")
            yield content.decode("koi8-r")


def test_nothing_of_the_people_is_left_in_mails_of_all_kinds(run):
    policy = Policy.load("default")
    failing = []
    for name, data in list_mails():
        out, report = run("a.eml", data, policy)
        text = "\n".join(list_decoded_texts(out))
        failing += [(name, original) for original in ORIGINALS if original in text]
        if "PERSON_1]" not in text:
            failing.append((name, "no tag"))
        left_out = name in ("related", "attached png", "attached bin", "attached damaged.docx")
        if bool(report.treated.get("attachments left out")) != left_out:
            failing.append((name, "attachments"))
    assert not failing


def test_pictures_are_kept_where_the_policy_says_so(run, policy):
    mails = dict(list_mails())
    out, report = run("a.eml", mails["related"], policy.with_(images="keep"))
    picture = next(p for p in email.message_from_bytes(out).walk() if p.get_content_type() == "image/png")
    assert picture.get_payload(decode=True).startswith(b"\x89PNG") and report.treated["pictures kept"] == 1
    assert "okafor" not in str(picture.get_filename()).lower()


def test_substitutes_in_headers_are_read_as_what_they_stand_for(run, tmp_path, policy):
    out = run("a.eml", dict(list_mails())["plain"], policy)[0]
    (tmp_path / "b.eml").write_bytes(out)
    (document,) = read_documents(tmp_path / "b.eml")
    texts = document.part_texts()
    assert "[EMAIL_ADDRESS_1]" in texts and "[GENERIC_ID_1]" in texts and "[PERSON_1]" in texts
    back = {
        "[EMAIL_ADDRESS_1]": "a@b.example",
        "[PERSON_1]": "Doe, Jane",
        "[DATE_TIME_1]": "Tue, 12 Mar 2024 09:30:00 +0100",
    }
    rewrite_path(tmp_path / "b.eml", tmp_path / "c.eml", lambda _, d: tuple(back.get(t, t) for t in d.part_texts()))
    message = email.message_from_bytes((tmp_path / "c.eml").read_bytes(), policy=email.policy.default)
    assert message["From"].addresses[0].addr_spec == "a@b.example"
    assert message["From"].addresses[0].display_name == "Doe, Jane"
    assert message["Date"].datetime.year == 2024


def test_signatures_and_digests_are_left_out(run):
    mails = dict(list_mails())
    out, report = run("a.eml", mails["traces"])
    assert b"DKIM" not in out and report.treated["signatures left out"] == 1
    out, report = run("a.eml", mails["signed"])
    message = email.message_from_bytes(out)
    assert message.get_content_type() == "multipart/mixed" and message.get_param("micalg") is None
    assert b"pkcs7-signature]" in out and report.treated["signatures left out"] == 1


def test_a_mail_that_is_one_attachment_keeps_its_headers(run):
    plain = dict(list_mails())["plain"]
    head = plain.partition(b"\n\n")[0].replace(b"text/plain", b"image/gif").replace(b"quoted-printable", b"base64")
    out, report = run("a.eml", head + b'\nContent-Disposition: inline; filename="okafor.gif"\n\nR0lGODdh\n')
    message = email.message_from_bytes(out, policy=email.policy.default)
    assert_headers_parse(message)
    assert message.get_content() == "[Left out: an attachment of type image/gif]\n" and b"okafor" not in out
    assert message["To"].addresses[0].domain == "redacted.invalid" and report.treated["attachments left out"] == 1
    whole = dict(list_mails())["coding uuencode"]
    damaged = whole.replace(b"body.txt\nM", b"body.txt\nM\xff\xff")
    out, report = run("a.eml", damaged)
    assert b"Left out" in out and report.treated["attachments left out"] == 1


def test_mails_of_a_mailbox_are_treated_one_by_one(run, tmp_path, policy):
    envelope = b"From okafor@fennside.example Tue Mar 12 09:30:00 2024\n"
    mails = [data.removeprefix(envelope) for name, data in list_mails() if name != "crlf"]
    data = b"".join(envelope + mail.replace(b"\nFrom ", b"\n>From ").rstrip(b"\n") + b"\n\n" for mail in mails)
    whole, report = run("a.mbox", data, policy)
    assert report.documents == len(mails)
    assert run("a.mbox", data, policy, batch_size=1)[0] == whole
    with closing(mailbox.mbox(tmp_path / "out-a.mbox")) as box:
        assert len(box) == len(mails)
        for message in box:
            assert "okafor" not in str(message["To"]) and re.fullmatch(
                r"\S+ [A-Z][a-z]{2} .* \d{4}", message.get_from()
            )


@pytest.mark.parametrize(
    "date", ["Mon Jan  1 10:00:00 2024", "Tue Mar 12 09:30:00 2024 +0100", "Tue Mar 12 09:30 2024"]
)
def test_the_date_before_a_mail_of_a_mailbox_goes_as_that_of_its_header(run, date):
    mail = f"From a@example.com {date}\nFrom: a@example.com\nDate: Mon, 1 Jan 2024 10:00:00 +0000\n\nHi.\n\n".encode()
    assert run("a.mbox", mail, Policy.load("default"))[0].split(b" ", 2)[2].startswith(b"Thu Jan  1 00:00:00 1970\n")
    assert date.encode() in run("a.mbox", mail, Policy.load("default").only(["EMAIL_ADDRESS"]))[0]


def test_dates_of_a_mailbox_move_alike(tmp_path):
    from datetime import datetime, timedelta

    from allonym.files import anonymize_path
    from allonym.vault import Vault

    dates = ("Thu, 14 Mar 2024 10:00:00 +0000", "Fri, 15 Mar 2024 10:00:00 +0000", "Fri, 12 Apr 2024 10:00:00 +0000")
    mails = (f"From a@example.com {d[5:]}\nFrom: a@example.com\nDate: {d}\n\nHi {i}.\n\n" for i, d in enumerate(dates))
    (tmp_path / "in.mbox").write_text("".join(mails))
    out = []
    with Vault.create(tmp_path / "v", b"a secret of the tests, long enough") as vault:
        for size in (1, 1 << 20):
            anonymize_path(tmp_path / "in.mbox", tmp_path / f"{size}.mbox", "pseudonyms", vault=vault, batch_size=size)
            out.append((tmp_path / f"{size}.mbox").read_text())
    moved = [datetime.strptime(d, "%a, %d %b %Y %H:%M:%S %z") for d in re.findall(r"(?m)^Date: (.*)", out[0])]
    assert [b - a for a, b in pairwise(moved)] == [timedelta(1), timedelta(28)]
    assert moved[0].date().isoformat() != "2024-03-14"
    assert re.findall(r"(?m)^From \S+ (.*)", out[0]) == [d.ctime() for d in moved]
    assert out[0] == out[1]


def test_names_with_commas_and_dates_of_headers(run):
    data = b'From: "Quill, Una" <una@example.com>\nDate: Mon, 14 May 2001 16:39:00 -0700\n\nQuill, Una came.\n'
    out = run("a.eml", data)[0]
    assert out.startswith(
        b'From: "[PERSON_1]" <EMAIL_ADDRESS_1@redacted.invalid>\nDate: Thu, 01 Jan 1970 00:00:00 +0000 ([DATE'
    )
    assert b"Una" not in out and b"2001" not in out


def test_no_part_of_a_mail_is_passed_through_unread(run):
    mail = (
        b"From: Pam Beesly <pam@example.com>\nMIME-Version: 1.0 (by Pam Beesly)\n"
        b'Content-Type: multipart/related; boundary=b; start="<1.pam@example.com>"\n\n'
        b"--b\nContent-Type: text/plain\nContent-ID: <1.pam@example.com>\n\nFor Pam Beesly\n"
        b"begin 644 pam.txt\n+4&%M($)E97-L>0``\n`\nend\nas above\n"
        b"--b\nContent-Type: text/rtf\n\n{\\rtf1 x{\\pict 4142}}\n--b--\n"
    )
    out, report = run("a.eml", mail)
    for original in (b"Pam", b"pam", b"Beesly", b"begin", b"4142", b"example.com"):
        assert original not in out
    ids = re.findall(rb"<(\S*@redacted\.invalid)>", out)
    assert len(ids) == 3 and ids[1] == ids[2]  # the sender; the part that comes first, and its id
    assert b"[Left out: an attachment]\nas above\n" in out
    assert b"\\pngblip" in out  # a picture in an attachment without any other change
    assert report.treated["attachments left out"] == 1


def test_an_id_that_never_ends_does_not_hang(run):
    mail = b"Message-ID: <" + b" " * 50_000 + b"\nReferences: < 1.pam@example.com  >\nSubject: x\n\nhi\n"
    assert b"example.com" not in run("a.eml", mail)[0]


def test_a_long_word_in_a_changed_name_does_not_hang(run):
    word = b"x" * 60
    out = run("a.eml", b"To: " + word + b" a@example.com <b@example.com>\nSubject: x\n\nhi\n")[0]
    assert word in out and b"example.com" not in out


def test_text_outside_of_parts_that_begins_like_utf16_is_read(run):
    part = b"--b\nContent-Type: text/plain\n\nWrite to pam@example.com now\n"
    head = b"Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n"
    assert b"pam@" not in run("a.eml", head + b"\xff\xfe" + part + part + b"--b--\n")[0]


def tlv(kind: int, *parts: bytes, has_end: bool = True) -> bytes:
    """An element of BER, with its length, or without one and with an end."""
    body = b"".join(parts)
    return (
        bytes((kind, 0x84)) + len(body).to_bytes(4, "big") + body if has_end else bytes((kind, 0x80)) + body + b"\0\0"
    )


@pytest.mark.parametrize("has_end", [True, False])
def test_a_mail_within_its_signature_is_treated_without_it(run, has_end):
    inner = b"Content-Type: text/plain; charset=utf-8\r\n\r\nWrite to okafor@fennside.example\r\n"
    octets = tlv(0x24, tlv(4, inner[:50]), tlv(4, inner[50:]), has_end=has_end)
    content = tlv(0x30, bytes.fromhex("06092a864886f70d010701"), tlv(0xA0, octets, has_end=has_end), has_end=has_end)
    signed = tlv(0x30, b"\x02\x01\x01", tlv(0x31), content, tlv(0x31, tlv(4, b"Adaeze Okafor")), has_end=has_end)
    data = tlv(0x30, bytes.fromhex("06092a864886f70d010702"), tlv(0xA0, signed, has_end=has_end), has_end=has_end)
    head = (
        b"From: okafor@fennside.example\nContent-Type: application/pkcs7-mime; smime-type=signed-data;\n"
        b' name="smime.p7m"\nContent-Transfer-Encoding: base64\nSubject: x\n\n'
    )
    out, report = run("a.eml", head + base64.encodebytes(data))
    assert out.endswith(b"Subject: x\nContent-Type: text/plain; charset=utf-8\n\nWrite to [EMAIL_ADDRESS_1]\n")
    assert b"pkcs7" not in out and report.treated["signatures left out"] == 1
    with pytest.raises(RefusedContent, match="encrypted"):
        run("a.eml", head + base64.encodebytes(data[:60]))


def test_boundaries_that_tell_a_host_get_other_names(run):
    mark = b"48/50/fennside.example.com"
    mail = b"From: pam@example.com\nContent-Type: multipart/report; boundary=" + b'"%b"\n\n' % mark
    mail += b"--%b\n\nHi from pam@example.com\n--%b\nContent-Type: text/html\n\n<b>x</b>\n--%b--\n" % ((mark,) * 3)
    out = run("a.eml", mail)[0]
    message = email.message_from_bytes(out)
    assert b"fennside" not in out and [part.get_content_type() for part in message.get_payload()] == [
        "text/plain",
        "text/html",
    ]
    assert b"Hi from [EMAIL_ADDRESS_1]" in out


def test_addresses_of_odd_hosts_are_covered_on_their_route(run):
    mail = (
        b"To: <pam@mail_server.example>\nReceived: from relay by relay with SMTP id 7\n\tfor <pam@mail_server.example>;\n"
        b"\tMon, 1 Jan 2024 10:00:00 +0000\nSubject: x\n\nhi\n"
    )
    route = email.message_from_bytes(run("a.eml", mail)[0])["Received"]
    assert " ".join(route.split()) == "from relay by relay with SMTP id 7 for <[EMAIL_ADDRESS_1]>; [DATE_TIME_1]"


def test_an_id_without_its_last_bracket_stays_readable(run):
    out = run("a.eml", b"Message-ID: <2a4e.pam@example.com\nSubject: x\n\nhi\n")[0]
    id = email.message_from_bytes(out, policy=email.policy.default)["Message-ID"]
    assert id == "<GENERIC_ID_1@redacted.invalid>"
