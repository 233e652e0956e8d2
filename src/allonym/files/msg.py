"""Outlook mails (MSG): read as mails, and written as EML; see :mod:`allonym.files.mail`.

Headers, bodies (text or HTML) and attached files are taken over. Other properties of Outlook, items within items and
bodies that are RTF alone are left out.
"""

from __future__ import annotations

import email.utils
import re
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any

from allonym.errors import DataError, hide_foreign_errors, require_extra
from allonym.files.mail import read_mail
from allonym.files.record import Chunk, Format, Job, ParsedChunk, Tally

_RECIPIENT_KIND = 0x0C15  # PidTagRecipientType
_KINDS = {1: "To", 2: "Cc", 3: "Bcc"}
_OWN_HEADERS = re.compile(r"content-.*|mime-version", re.IGNORECASE)


def _parse_msg(chunk: Chunk, job: Job) -> ParsedChunk:
    with require_extra("MSG", "msg"):
        import oxmsg
    tally = Tally()
    with hide_foreign_errors("the file cannot be read; is it an Outlook mail?"):
        mail = _convert_to_mail(oxmsg.Message.load(chunk.data), tally)
    return ParsedChunk([read_mail(mail, job, tally)], tally=tally)


def _convert_to_mail(message: Any, tally: Tally) -> bytes:
    """Return an Outlook mail as the bytes of a mail; the boundaries between parts are always the same."""
    mail = EmailMessage()
    text, html = message.body, message.html_body
    mail.set_content(text or "", cte="base64") if text or not html else mail.set_content(html, "html", cte="base64")
    if text and html:
        mail.add_alternative(html, subtype="html", cte="base64")
    for attachment in message.attachments:
        data = attachment.file_bytes
        if data is None:
            tally.treated["attachments left out"] += 1
            continue
        kind, _, subtype = (attachment.mime_type or "").partition("/")
        is_type = re.fullmatch(r"[\w.+-]+/[\w.+-]+", f"{kind}/{subtype}") and kind not in ("multipart", "message")
        main, sub = (kind, subtype) if is_type else ("application", "octet-stream")
        mail.add_attachment(data, main, sub, filename=attachment.file_name or "attachment")
    for number, part in enumerate(mail.walk()):
        if part.is_multipart():
            part.set_boundary(f"==part={number}==")
    lines = [f"{name}: {value}" for name, value in _list_headers(message)]
    return "".join(f"{line}\r\n" for line in lines).encode("utf-8", "replace") + mail.as_bytes(policy=SMTP)


def _list_headers(message: Any) -> list[tuple[str, str]]:
    """Return the headers: those of the transport, or else those that the properties give."""
    sent = [(n, v) for n, v in message.message_headers.items() if not _OWN_HEADERS.fullmatch(n)]
    if not sent:
        by_kind: dict[str, list[str]] = {}
        for recipient in message.recipients:
            kind = _KINDS.get(recipient.properties.int_prop_value(_RECIPIENT_KIND) or 1, "To")
            name, address = recipient.name or "", recipient.email_address or ""
            by_kind.setdefault(kind, []).append(email.utils.formataddr((name if name != address else "", address)))
        sent = [("From", message.sender or ""), *((kind, ", ".join(row)) for kind, row in by_kind.items())]
        sent.append(("Subject", message.subject))
        if message.sent_date is not None:
            sent.append(("Date", email.utils.format_datetime(message.sent_date)))
    listed = [(name, re.sub(r"[\r\n]+[ \t]*", " ", value).strip()) for name, value in sent]
    if not any(value for _, value in listed):
        raise DataError("the file has no headers; is it an Outlook mail?")
    return listed


MSG = Format("msg", _parse_msg, written_as="eml")
