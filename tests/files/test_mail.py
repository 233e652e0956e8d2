"""Mail: headers, bodies and attachments."""

import email
import email.policy
from email.message import EmailMessage

import pytest

from allonym.errors import DataError, RefusedContent

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
    numbers = {n: out.count(b"[EMAIL_ADDRESS_%d]" % n) for n in (1, 2, 3)}
    assert numbers[1] >= 4  # From, preamble, body, inner mail


def test_nothing_found_means_the_same_bytes(run, nothing):
    for data in (RAW, RAW.replace(b"\r\n", b"\n"), b"Subject: x\n", b"Subject: x\n\n", b"Subject: x\n\nbody"):
        assert run("a.eml", data, nothing)[0] == data


def test_line_of_a_mail_box_is_treated(run):
    out = run("a.eml", b"From pam@example.com Mon Jan  1 10:00:00 2024\n" + RAW)[0]
    assert out.startswith(b"From [EMAIL_ADDRESS_1] ") and b"example" not in out


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
    ("old", "new", "error", "words"),
    [
        (b"text/csv", b"application/pdf", RefusedContent, "application/pdf"),
        (b"text/csv", b"image/png", RefusedContent, "image/png"),
        (b"iso-8859-1", b"klingon", DataError, "klingon"),
        (b"charset=utf-8", b"charset=utf-16", DataError, "utf-16"),
        (b"; boundary", b"; bound", DataError, "boundary"),
        (b"X-Empty:", b"no header", DataError, "not a header"),
    ],
)
def test_what_cannot_be_treated_is_refused(run, tmp_path, old, new, error, words):
    with pytest.raises(error, match=words) as caught:
        run("a.eml", RAW.replace(old, new))
    assert "example" not in str(caught.value)
    assert not (tmp_path / "out-a.eml").exists()


def test_names_with_commas_and_dates_of_headers(run):
    data = b'From: "Quill, Una" <una@example.com>\nDate: Mon, 14 May 2001 16:39:00 -0700\n\nQuill, Una came.\n'
    out = run("a.eml", data)[0]
    assert out.startswith(b'From: "[PERSON_1]" <[EMAIL_ADDRESS_1]>\nDate: [DATE')
    assert b"Una" not in out and b"2001" not in out
