"""Calendars (ICS) and address cards (VCF): names, addresses and notes form one document; the properties stay valid.

Addresses that are covered become ones at ``redacted.invalid``, and times 1 January 1970. Pictures, sounds, keys and
attached files are left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

from allonym.document import PROSE, TECHNICAL
from allonym.files.encoding import count_encoding, decode_file
from allonym.files.mailheaders import find_name_role, read_substitute, write_substitute
from allonym.files.record import Chunk, Draft, Format, Job, ParsedChunk
from allonym.files.segments import Segment, splice_segments, to_document

_LINE = re.compile(
    r"^(?:[\w-]+\.)?(?P<name>[A-Za-z-]+)(?P<parameters>(?:\r?\n[ \t]|[^:\"\r\n]|\"[^\"]*\")*):"
    r"(?P<value>(?:\r?\n[ \t]|[^\r\n])*)",
    re.MULTILINE,
)
_PARAMETER = re.compile(r'(?i)\b(CN|EMAIL|SENT-BY|DELEGATED-TO|DELEGATED-FROM|MEMBER|DIR)=("[^"]*"|[^;:"]*)')
_EMBEDDED = re.compile(
    r"(?im)^(?:[\w-]+\.)?(?:PHOTO|LOGO|SOUND|KEY|ATTACH)\b(?:\r?\n[ \t]|[^\r\n])*(?:\r?\n|\Z)",
)
_FOLD = re.compile(r"\r?\n[ \t]")
_STRUCTURAL = frozenset(
    "BEGIN END VERSION METHOD PRODID CALSCALE STATUS CLASS SEQUENCE PRIORITY TRANSP ACTION TRIGGER TZID TZNAME "
    "TZOFFSETFROM TZOFFSETTO PERCENT-COMPLETE REPEAT DURATION KIND GENDER TZ".split()
)
_PROSE = frozenset("SUMMARY DESCRIPTION LOCATION COMMENT CONTACT CATEGORIES NOTE TITLE ORG X-ALT-DESC".split())
_NAMES = frozenset("FN N NICKNAME".split())
_IDENTIFIERS = {
    "UID": "GENERIC_ID",
    "EMAIL": "EMAIL_ADDRESS",
    "TEL": "PHONE_NUMBER",
    "ADR": "STREET_ADDRESS",
    "BDAY": "DATE_OF_BIRTH",
}
_TIME = re.compile(r"\b\d{8}(T\d{6}Z?)?\b|\b\d{4}-\d\d-\d\d\b")


def find_calendar_segments(text: str) -> Iterator[Segment]:
    """Yield the texts of a calendar or of address cards, in order."""
    for line in _LINE.finditer(text):
        name = line["name"].upper()
        lead = f"\n{name.replace('-', ' ').lower()}: "
        for parameter in _PARAMETER.finditer(text, *line.span("parameters")):
            start, end = parameter.span(2)
            if text[start] == '"':
                start, end = start + 1, end - 1
            yield from _read_value(text, start, end, "CN" if parameter[1].upper() == "CN" else "MEMBER", lead)
        if name not in _STRUCTURAL:
            yield from _read_value(text, *line.span("value"), name, lead)


def _read_value(text: str, start: int, end: int, name: str, lead: str) -> Iterator[Segment]:
    if text[start : start + 7].lower() == "mailto:":
        start, name = start + 7, "EMAIL"
    raw = _FOLD.sub("", text[start:end])
    value = re.sub(r"\\([nN,;\\])", lambda m: "\n" if m[1] in "nN" else m[1], raw)
    if not value.strip():
        return
    write: Callable[[str], str] = partial(_write_text, newline="\r\n" if "\r\n" in text else "\n")
    role = PROSE if name in _PROSE else _IDENTIFIERS.get(name, TECHNICAL)
    if name == "EMAIL":
        value, write = read_substitute(value), write_substitute
    elif name == "CN":
        role, write = find_name_role(value), _write_parameter
    elif name in _NAMES:
        role = find_name_role(value.replace(";", " ").strip())
    elif role == TECHNICAL and (times := list(_TIME.finditer(text, start, end))):
        for time in times:
            form = "19700101T000000Z" if time[1] else "19700101"
            yield Segment(*time.span(), time[0], partial(_write_time, form=form), lead, role="DATE_TIME")
        return
    yield Segment(start, end, value, write, lead, role=role)


def _write_text(new: str, newline: str) -> str:
    escaped = re.sub(r"([,;\\])", r"\\\1", new).replace("\r", "").replace("\n", "\\n")
    return f"{newline} ".join(re.findall(r"(?s).{1,60}", escaped))


def _write_parameter(new: str) -> str:
    return re.sub(r'[";:,\r\n]', " ", new)


def _write_time(new: str, form: str) -> str:
    return new if _TIME.fullmatch(new) else form


def _parse_calendar(chunk: Chunk, job: Job) -> ParsedChunk:
    text, encoding = decode_file(chunk.data)
    text, count = _EMBEDDED.subn("", text)
    segments = list(find_calendar_segments(text))
    tally = count_encoding(encoding)
    tally.treated += Counter({"attachments left out": count}) if count else Counter()
    draft = Draft(
        to_document(segments),
        lambda parts: encoding.encode_file(splice_segments(text, segments, parts if segments else ())),
    )
    return ParsedChunk([draft], tally=tally)


ICS = Format("ics", _parse_calendar)
VCF = Format("vcf", _parse_calendar)
