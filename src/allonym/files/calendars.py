"""Calendars (ICS) and address cards (VCF): names, addresses and notes form one document; the properties stay valid.

Addresses that are covered become ones at ``redacted.invalid``, and times 1 January 1970, with what stands for them in a
parameter ``X-ALLONYM``, for restoring. Pictures, sounds, keys and attached files are left out.
"""

from __future__ import annotations

import quopri
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial

from allonym.document import PROSE, TECHNICAL
from allonym.files.encoding import count_encoding, decode_file, decode_text
from allonym.files.mailheaders import WORDS, find_name_role, read_substitute, write_substitute
from allonym.files.record import Chunk, Draft, Format, Job, ParsedChunk
from allonym.files.segments import Segment, splice_segments, to_document

_LINE = re.compile(
    r"^(?:[\w-]++\.)?(?P<name>[A-Za-z0-9-]++)(?P<parameters>(?:\r?\n[ \t]|[^:\"\r\n]|\"[^\"]*\")*):"
    r"(?P<value>(?:\r?\n[ \t]|[^\r\n])*)",
    re.MULTILINE,
)
_PARAMETER = re.compile(r';\s*([A-Za-z0-9-]+)=((?:"[^"]*"|[^;:"])*)')
_PARAMETER_VALUE = re.compile(r'(?<=")[^"]+(?=")|[^",]+')
_EMBEDDED = re.compile(
    r"(?im)^(?:[\w-]+\.)?(?:(?:PHOTO|LOGO|SOUND|KEY|ATTACH|IMAGE)\b"
    r"|[\w-]+;(?:[^:\r\n]*;)?(?:ENCODING=B|(?:ENCODING=)?BASE64)(?:;[^:\r\n]*)?:)"
    r"(?:\r?\n[ \t]|[^\r\n])*(?:\r?\n|\Z)(?:[A-Za-z0-9+/=]+[ \t]*(?:\r?\n|\Z))*",
)
_QUOTED = re.compile(
    r"(?im)^(?P<name>(?:[\w-]+\.)?[\w-]+)(?P<parameters>;(?:[^:\r\n]*;)?(?:ENCODING=)?QUOTED-PRINTABLE[^:\r\n]*):"
    r"(?P<value>(?:=[ \t]*\r?\n|\r?\n[ \t]|[^\r\n])*)"
)
_CODING = re.compile(r"(?i);(?:ENCODING=)?QUOTED-PRINTABLE(?=;|\Z)|;CHARSET=[^;]*")
_FOLD = re.compile(r"\r?\n[ \t]")
_STRUCTURAL = frozenset(
    "BEGIN END VERSION METHOD PRODID CALSCALE STATUS CLASS SEQUENCE PRIORITY TRANSP ACTION TRIGGER TZID TZNAME "
    "TZOFFSETFROM TZOFFSETTO PERCENT-COMPLETE REPEAT DURATION KIND GENDER TZ".split()
)
_STRUCTURAL_PARAMETERS = frozenset(
    "TYPE VALUE ENCODING CHARSET LANGUAGE PREF ROLE PARTSTAT RSVP CUTYPE RELATED RELTYPE FMTTYPE FBTYPE RANGE "
    "X-ALLONYM MEDIATYPE CALSCALE ALTID PID INDEX LEVEL TZID SCHEDULE-AGENT SCHEDULE-STATUS FEATURE DISPLAY".split()
)
_PLAIN = re.compile(r'[\w.,+/:#"-]*')
_WORDED = frozenset(("PRODID", "TZID", "TZNAME", "TZ", "X-ALLONYM"))
"""Structural properties and parameters that may hold several words."""
_FLAG = re.compile(r"[^;\s]+")
_NAME_PARAMETERS = frozenset(("CN", "SORT-AS"))
_PROSE = frozenset("SUMMARY DESCRIPTION LOCATION COMMENT CONTACT CATEGORIES NOTE TITLE ORG X-ALT-DESC".split())
_NAMES = frozenset("FN N NICKNAME".split())
_STRUCTURED = frozenset("N ADR ORG".split())
"""Properties with components between semicolons (RFC 6350, sections 6.2.2, 6.3.1 and 6.6.4)."""
_ADDRESS = ("STREET_ADDRESS",) * 3 + ("CITY", "REGION", "POSTAL_CODE", "COUNTRY")
_SEMICOLON = re.compile(r"(?s)\\.|;")
_IDENTIFIERS = {
    "UID": "GENERIC_ID",
    "EMAIL": "EMAIL_ADDRESS",
    "TEL": "PHONE_NUMBER",
    "ADR": "STREET_ADDRESS",
    "BDAY": "DATE_OF_BIRTH",
}
_FORM = r"\b\d{8}(T\d{6}Z?)?\b|\b\d{4}-\d\d-\d\d\b"
_TIME = re.compile(_FORM)
_NO_TIMES = ("19700101T000000Z", "19700101")
_COVER = "\0([^\0]*)\0([^\0]*)\0"
_COVERED = re.compile(_COVER)
"""What stands for a time, and the time that is written, until the line is written."""

_COVERED_OR_TIME = re.compile(f"{_COVER}|{_FORM}")
_MARK = re.compile(r';X-ALLONYM=((?:"[^"]*",?)*)')
_ESCAPES = (("^", "^^"), ('"', "^'"), ("\n", "^n"))
"""Signs in the value of a parameter, and how they are written (RFC 6868)."""


def _decode_quoted_value(line: re.Match[str]) -> str:
    """Return a property of vCard 2.1 in quoted-printable as one of plain text."""
    charset = re.search(r"(?i)CHARSET=([\w-]+)", line["parameters"])
    data = quopri.decodestring(re.sub(r"(?<![=\r])\r?\n[ \t]", "", line["value"]).encode("utf-8"))
    value, _ = decode_text(data, charset[1] if charset else "")
    value = re.sub(r"\r?\n", r"\\n", value)
    return f"{line['name']}{_CODING.sub('', line['parameters'])};CHARSET=UTF-8:{value}"


def find_calendar_segments(text: str) -> Iterator[Segment]:
    """Yield the texts of a calendar or of address cards, in order."""
    position = 0
    for line in _LINE.finditer(text):
        yield from _read_stray_text(text, position, line.start())
        position = line.end()
        name = line["name"].upper()
        lead = f"\n{name.replace('-', ' ').lower()}: "
        position = line.start("parameters")
        for parameter in _PARAMETER.finditer(text, *line.span("parameters")):
            yield from _read_unusual_flags(text, position, parameter.start())
            position = parameter.end()
            if not _is_structural(parameter[1], parameter[2], _STRUCTURAL_PARAMETERS):
                yield from _read_parameter(text, parameter, lead)
        yield from _read_unusual_flags(text, position, line.end("parameters"))
        position = line.end()
        shown = _read_marks(line["parameters"])
        if not _is_structural(name, line["value"], _STRUCTURAL):
            for number, (start, end) in enumerate(_locate_components(text, *line.span("value"), name)):
                role = _ADDRESS[number] if name == "ADR" and number < len(_ADDRESS) else ""
                yield from _read_value(text, start, end, name, "\t" if number else lead, role, shown)
    yield from _read_stray_text(text, position, len(text))


def _is_structural(name: str, value: str, names: Collection[str]) -> bool:
    """Tell whether a property or parameter only says how to read the others; text in it does not."""
    upper = name.upper()
    return upper in names and (upper == "X-ALLONYM" or _PLAIN.fullmatch(_get_bare_value(upper, value)) is not None)


def _get_bare_value(name: str, value: str) -> str:
    return re.sub(r"[ ()]", "", value) if name in _WORDED else value.strip()


def _read_unusual_flags(text: str, start: int, end: int) -> Iterator[Segment]:
    """Yield what stands among parameters and is neither one nor a plain word, as old cards have them: ``TEL;HOME:``."""
    for flag in _FLAG.finditer(text, start, end):
        if not _PLAIN.fullmatch(flag[0]):
            yield Segment(*flag.span(), flag[0], _write_parameter, role=TECHNICAL)


def _locate_components(text: str, start: int, end: int, name: str) -> Iterator[tuple[int, int]]:
    """Yield the intervals of the components of a structured value, such as family and given name, or of the whole."""
    if name in _STRUCTURED:
        for semicolon in _SEMICOLON.finditer(text, start, end):
            if semicolon[0] == ";":
                yield start, semicolon.start()
                start = semicolon.end()
    yield start, end


def _read_stray_text(text: str, start: int, end: int) -> Iterator[Segment]:
    """Yield the text between properties, which no calendar should have."""
    if text[start:end].strip():
        yield Segment(start, end, text[start:end])


def _read_parameter(text: str, parameter: re.Match[str], lead: str) -> Iterator[Segment]:
    name, spans = parameter[1].upper(), [parameter.span(2)]
    if '"' in parameter[2]:
        spans = [value.span() for value in _PARAMETER_VALUE.finditer(text, *spans[0])]
    for start, end in spans:
        value = _FOLD.sub("", text[start:end])
        if value[:7].lower() == "mailto:" or name == "EMAIL":
            yield from _read_value(text, start, end, "EMAIL", lead)
        elif value.strip(", "):
            role = find_name_role(value) if name in _NAME_PARAMETERS else _get_role(name, value)
            yield Segment(start, end, value, _write_parameter, lead, role=role)


def _get_role(name: str, value: str) -> str:
    is_wording = name in _PROSE or WORDS.fullmatch(value.strip())
    return PROSE if is_wording else _IDENTIFIERS.get(name, TECHNICAL)


def _read_value(
    text: str, start: int, end: int, name: str, lead: str, role: str = "", shown: Sequence[str] = ()
) -> Iterator[Segment]:
    if text[start : start + 7].lower() == "mailto:":
        start, name = start + 7, "EMAIL"
    value = _read_text(text[start:end])
    if not value.strip():
        return
    write: Callable[[str], str] = partial(_write_text, newline="\r\n" if "\r\n" in text else "\n")
    role = role or _get_role(name, value)
    if name == "EMAIL":
        role, value, write = _IDENTIFIERS[name], read_substitute(value), write_substitute
    elif name in _NAMES:
        role = find_name_role(value.strip())
    elif role == TECHNICAL:
        for number, time in enumerate(_TIME.finditer(text, start, end)):
            if beside := _read_text(text[start : time.start()]).strip():
                yield Segment(start, time.start(), beside, write, lead, role=role)
            form = _NO_TIMES[not time[1]]
            read = shown[number] if time[0] == form and number < len(shown) else ""
            write_time = partial(_write_time, form=form)
            # What another program put into the parameter may be anything.
            yield Segment(*time.span(), read or time[0], write_time, lead, role=PROSE if read else "DATE_TIME")
            start = time.end()
        value = _read_text(text[start:end])
    if value.strip():
        yield Segment(start, end, value, write, lead, role=role)


def _read_text(raw: str) -> str:
    return re.sub(r"\\([nN,;\\])", lambda m: "\n" if m[1] in "nN" else m[1], _FOLD.sub("", raw))


def _write_text(new: str, newline: str) -> str:
    escaped = re.sub(r"([,;\\])", r"\\\1", new).replace("\r", "").replace("\n", "\\n")
    return f"{newline} ".join(re.findall(r"(?s).{1,60}", escaped))


def _write_parameter(new: str) -> str:
    return re.sub(r'[";:,\r\n]', " ", new)


def _write_time(new: str, form: str) -> str:
    return new if _TIME.fullmatch(new) else f"\0{new}\0{form}\0"


def _read_marks(parameters: str) -> list[str]:
    """Return what stands for the times of a property, in order; empty for those that are not covered."""
    mark = _MARK.search(_FOLD.sub("", parameters))
    shown = re.findall(r'"([^"]*)"', mark[1]) if mark else []
    signs = {written: sign for sign, written in _ESCAPES}
    return [re.sub(r"\^[\^'n]", lambda m: signs[m[0]], text) for text in shown]


def _write_marks(text: str) -> str:
    """Return a calendar with times in the place of covered ones, and what stands for these in a parameter."""

    def write_line(line: re.Match[str]) -> str:
        name, parameters, value = line["name"].upper(), line["parameters"], line["value"]
        former = _read_marks(parameters)
        if "\0" not in value and not former:
            return line[0]
        is_read = name not in _STRUCTURAL and _get_role(name, value) == TECHNICAL
        shown: list[str] = []
        for time in _COVERED_OR_TIME.finditer(value):
            has_former = is_read and time[0] in _NO_TIMES and len(shown) < len(former)
            former_text = former[len(shown)] if has_former else ""
            shown.append(former_text if time[1] is None else time[1])
        for sign, written in _ESCAPES:
            shown = [item.replace(sign, written) for item in shown]
        mark = ";X-ALLONYM=" + ",".join(f'"{item}"' for item in shown) if any(shown) else ""
        head = line[0][: line.start("parameters") - line.start()]
        if former:
            parameters = _MARK.sub("", _FOLD.sub("", parameters))
        return f"{head}{parameters}{mark}:{_COVERED.sub(lambda m: m[2], value)}"

    return _LINE.sub(write_line, text) if "\0" in text or "X-ALLONYM" in text else text


def _parse_calendar(chunk: Chunk, job: Job) -> ParsedChunk:
    text, encoding = decode_file(chunk.data)
    text, count = _EMBEDDED.subn("", text)
    text = _QUOTED.sub(_decode_quoted_value, text)
    segments = list(find_calendar_segments(text))
    tally = count_encoding(encoding)
    if count:
        tally.treated["attachments left out"] += count
    draft = Draft(
        to_document(segments),
        lambda parts: encoding.encode_file(_write_marks(splice_segments(text, segments, parts))),
    )
    return ParsedChunk([draft], tally=tally)


ICS = Format("ics", _parse_calendar)
VCF = Format("vcf", _parse_calendar)
