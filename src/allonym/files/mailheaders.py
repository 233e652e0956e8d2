"""Headers of mails: the texts in them, and substitutes that keep them valid.

Names and addresses in address headers, and message ids, are identifiers as a whole. Headers that people write are
prose. All others are technical. What replaces an address or an id becomes one at the domain ``redacted.invalid``; what
replaces a date follows a valid date as a comment. Such substitutes are read back as the texts that they stand for.
"""

from __future__ import annotations

import binascii
import email.header
import email.message
import email.utils
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from email.errors import HeaderParseError

from allonym.detection.speakers import locate_speaker_name
from allonym.document import PROSE, TECHNICAL
from allonym.files.record import Draft
from allonym.files.segments import Segment, splice_segments, to_document

DOMAIN = "redacted.invalid"
"""Domain of the addresses and ids that stand for others; RFC 2606 reserves ``.invalid``."""

_ADDRESSES = frozenset(
    "from to cc bcc reply-to sender return-path delivered-to envelope-to errors-to apparently-to mail-followup-to "
    "resent-from resent-sender resent-to resent-cc resent-bcc resent-reply-to disposition-notification-to "
    "x-original-to x-envelope-from x-envelope-to x-forwarded-to x-sender x-apparently-to".split()
)
_IDS = frozenset("message-id in-reply-to references resent-message-id original-message-id content-id".split())
_DATES = frozenset("date resent-date delivery-date expires reply-by deferred-delivery".split())
_ROUTES = frozenset("received x-received received-spf authentication-results list-id".split())
_PROSE = frozenset(
    "subject comments keywords organization organisation thread-topic content-description x-comment".split()
)
_STRUCTURAL = frozenset(("mime-version", "content-transfer-encoding"))
SEALS = re.compile(
    r"dkim-signature|domainkey-.*|.*-dkim-signature|arc-.*|x-gm-message-state|x-google-smtp-source|x-face|face"
    r"|x-microsoft-antispam.*|x-ms-exchange-antispam.*|x-forefront-.*|autocrypt.*|content-md5|thread-index"
)
"""Headers with signatures, digests or sealed data about the mail, which its changes would contradict."""

_PARAMETERS = frozenset(
    "boundary charset format delsp type start-info method report-type protocol micalg smime-type size "
    "reply-type delivery-method x-unix-mode".split()
)
WORDS = re.compile(r"[^\W\d_][^\W\d_.'’]*(?:[ ,]+[^\W\d_][^\W\d_.'’-]*)+")
"""What reads as several words, and not as technical text."""

_TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"|\((?:[^()\\]|\\.|\([^()]*\))*\)|<(?:[^<>"]|"(?:[^"\\]|\\.)*")*>|<[^<>]*>'
    r'|[,;:]|[^\s,;:<>()"]+|[()"<>]'
)
_ID = re.compile(r'<\s*+("(?:[^"\\]|\\.)*"@[^<>"]++|[^<>]++)')
_HOST = r"(?<![\w.@-])(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}(?!\.?[\w@-])"
_ROUTE = re.compile(rf"(?<=<)[^\s<>@]+@[^\s<>@]+(?=>)|{_HOST}")
_TELLING = re.compile(rf"@|{_HOST}")
_BOUNDARY = re.compile(rb'(?i)\bboundary\s*=\s*(?:"([^"\r\n]+)"|([^\s;"]+))')
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_PLAIN_ADDRESS = re.compile(rf"{_ATOM}(?:\.{_ATOM})*@(?:[A-Za-z0-9-]+\.)*[A-Za-z0-9-]+")
_TAG = re.compile(rf"\[({_ATOM}(?:\.{_ATOM})*)\]")
_SUBSTITUTE = re.compile(rf'(?:({_ATOM}(?:\.{_ATOM})*)|"((?:[^"\\]|\\.)*)")@{re.escape(DOMAIN)}')
_PLAIN_PHRASE = re.compile(rf"(?:{_ATOM[:-1]}|\s)*")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_DATED = re.compile(r"[A-Z][a-z]{2}, 01 Jan \d{4} 00:00:00 \+0000 \((.*)\)", re.DOTALL)
_LONGEST_LINE = 78


def read_header(name: str, raw: bytes, newline: str) -> Draft | None:
    """Return the texts of a header's value as a draft that writes the value; None where there are none.

    Args:
        name: its name, in any case.
        raw: its value, which may be folded.
        newline: the line end for folding.
    """
    lower = name.lower()
    value = re.sub(r"\r?\n(?=[ \t])", "", _decode_bytes(raw)).replace("\r", " ").replace("\n", " ")
    if (lower in _STRUCTURAL and "(" not in value) or not value.strip():
        return None
    if lower in ("content-type", "content-disposition"):
        return _read_parameters(lower, value)
    if lower in _ADDRESSES:
        value = value if "@" in value else _decode_words(value)
        segments = list(_find_addresses(value))
    elif lower in _IDS:
        segments = list(_find_ids(value, "" if lower == "content-id" else "GENERIC_ID"))
    elif lower in _DATES:
        segments = [_read_date(value)]
    elif lower in _ROUTES:
        segments = list(_find_hosts(value))
    else:
        text = _decode_words(value)
        role = PROSE if lower in _PROSE or WORDS.fullmatch(text.strip()) else TECHNICAL
        segments = [Segment(0, len(value), text, _encode_words, role=role)]

    def write_value(parts: tuple[str, ...]) -> bytes:
        return _fold(splice_segments(value, segments, parts), newline).encode("utf-8", "surrogateescape")

    return Draft(to_document(segments), write_value) if segments else None


def _decode_bytes(raw: bytes) -> str:
    """Decode a header's bytes: ASCII by the rules, but often UTF-8 or a Western encoding."""
    for codec in ("utf-8", "cp1252"):
        try:
            return raw.decode(codec)
        except UnicodeDecodeError:
            continue
    return raw.decode("latin-1")


def _decode_words(text: str) -> str:
    """Return a text with its encoded words (RFC 2047) decoded; those that cannot be decoded stay."""
    if "=?" not in text:
        return text
    try:
        return str(email.header.make_header(email.header.decode_header(text)))
    except (UnicodeDecodeError, LookupError, HeaderParseError, binascii.Error, ValueError):
        return text


def _encode_words(text: str) -> str:
    """Return a text for a header: in encoded words where it has other than printable ASCII characters."""
    text = re.sub(r"[\r\n\t\0]+", " ", text)
    if text.isascii() and text.isprintable() and "=?" not in text:
        return text
    return email.header.Header(text, "utf-8").encode(linesep="").replace("\n", "")


def _fold(value: str, newline: str) -> str:
    """Fold a value at its spaces into lines of about ``_LONGEST_LINE`` characters."""
    lines, line = [], ""
    for word in re.split(r"(?<=\S)(?= +\S)", value):
        if line.strip() and len(line) + len(word) > _LONGEST_LINE:
            lines.append(line)
            line = word
        else:
            line += word
    return newline.join([*lines, line])


def _find_addresses(value: str) -> Iterator[Segment]:
    """Yield the names, addresses and comments of an address header."""
    phrase: list[re.Match[str]] = []
    for token in (*_TOKEN.finditer(value), None):
        text = token[0] if token else ","
        if text[0] == "<" and len(text) > 1 and token:
            yield from _read_phrase(value, phrase)
            if text[1:-1].strip():
                yield _make_address(value, token.start() + 1, token.end() - 1, " <")
            phrase = []
        elif text[0] == "(" and len(text) > 1 and token:
            if text[1:-1].strip():
                comment = _decode_words(text[1:-1])
                role = find_name_role(comment)
                yield Segment(token.start() + 1, token.end() - 1, comment, _encode_comment, " (", role=role)
        elif text in (",", ";", ":"):
            yield from _read_phrase(value, phrase)
            phrase = []
        elif token and text not in '()<>"':
            phrase.append(token)


def _read_phrase(value: str, phrase: list[re.Match[str]]) -> Iterator[Segment]:
    """Yield the name that a phrase is, or the address without brackets."""
    if not phrase:
        return
    start, end = phrase[0].start(), phrase[-1].end()
    raw = value[start:end]
    if "@" in raw and '"' not in raw and " " not in raw.strip():
        yield _make_address(value, start, end, ", ")
        return
    text = _decode_words(re.sub(r'"((?:[^"\\]|\\.)*)"', lambda m: re.sub(r"\\(.)", r"\1", m[1]), raw))
    if text.strip():
        yield Segment(start, end, text, _encode_phrase, ", ", role=find_name_role(text))


def find_name_role(text: str) -> str:
    """Return the role of what names a person or a mailbox: that of a person's name, unless it is something else."""
    if "@" in text:
        return PROSE
    return "PERSON" if locate_speaker_name(text) == (0, len(text)) else PROSE


def _make_address(value: str, start: int, end: int, before: str) -> Segment:
    text = read_substitute(value[start:end])
    return Segment(start, end, text, write_substitute, before, role="EMAIL_ADDRESS")


def read_substitute(address: str) -> str:
    """Return the text that an address or id of :func:`write_substitute` stands for; other ones stay."""
    match = _SUBSTITUTE.fullmatch(address)
    if match is None:
        return address
    return f"[{match[1]}]" if match[1] else re.sub(r"\\(.)", r"\1", match[2])


def write_substitute(text: str) -> str:
    """Return a text as a valid address or id: as it is, or at the domain ``DOMAIN``."""
    if _PLAIN_ADDRESS.fullmatch(text):
        return text
    if match := _TAG.fullmatch(text):
        return f"{match[1]}@{DOMAIN}"
    plain = re.sub(r"[^\x20-\x7e]", "?", text)
    return f'"{email.utils.quote(plain)}"@{DOMAIN}'


def _encode_phrase(text: str) -> str:
    if not (text.isascii() and text.isprintable()) or "=?" in text:
        return _encode_words(text)
    return text if text.strip() and _PLAIN_PHRASE.fullmatch(text) else f'"{email.utils.quote(text)}"'


def _encode_comment(text: str) -> str:
    return re.sub(r"([()\\])", r"\\\1", _encode_words(text))


def _find_ids(value: str, role: str) -> Iterator[Segment]:
    position = 0
    for match in (*_ID.finditer(value), None):
        end = match.start() if match else len(value)
        if (beside := value[position:end]).strip() and any(map(str.isalpha, beside)):
            yield Segment(position, end, _decode_words(beside), _encode_words, role=TECHNICAL)
        if match:
            start, id = match.start(1), match[1].rstrip()
            yield Segment(start, start + len(id), read_substitute(id), write_substitute, role=role or TECHNICAL)
            position = match.end()


def _find_hosts(value: str) -> Iterator[Segment]:
    """Yield the names of hosts, addresses in angle brackets, and the technical text between them."""
    position = 0
    for match in (*_ROUTE.finditer(value), None):
        end = match.start() if match else len(value)
        if position < end:
            yield Segment(position, end, _decode_words(value[position:end]), _encode_words, "", role=TECHNICAL)
        if match:
            role = "EMAIL_ADDRESS" if "@" in match[0] else "DOMAIN_NAME"
            yield Segment(*match.span(), match[0], _encode_words, "", role=role)
            position = match.end()


def mask_boundaries(mail: bytes) -> bytes:
    """Give other names to the boundaries of a mail's parts that tell an address or a host."""
    names = {match[match.lastindex or 1] for match in _BOUNDARY.finditer(mail)}
    telling = sorted(name for name in names if _TELLING.search(name.decode("latin-1")))
    for number, name in enumerate(telling, 1):
        place = rb'(?im)(^--|\bboundary\s*=\s*"?)' + re.escape(name)
        mail = re.sub(place, rb"\g<1>=_part_%d" % number, mail)
    return mail


def _read_date(value: str) -> Segment:
    match = _DATED.fullmatch(value.strip())
    text = re.sub(r"\\(.)", r"\1", match[1]) if match else value
    return Segment(0, len(value), text, _write_date, role=TECHNICAL)


def _write_date(text: str) -> str:
    if _parse_date(text):
        return text
    years = set(_YEAR.findall(text))
    date = datetime(int(years.pop()) if len(years) == 1 else 1970, 1, 1, tzinfo=UTC)
    return f"{email.utils.format_datetime(date)} ({_encode_comment(text)})"


def _parse_date(text: str) -> datetime | None:
    try:
        return email.utils.parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _read_parameters(name: str, value: str) -> Draft | None:
    """Return the names of files in a header with parameters, and further text in them."""
    message = email.message.Message()
    message[name] = value
    rows = message.get_params(header=name) or []
    listed = [(key, _decode_words(email.utils.collapse_rfc2231_value(text))) for key, text in rows[1:]]
    segments: list[Segment] = []
    places: list[int] = []
    for index, (key, text) in enumerate(listed):
        if key.lower() in _PARAMETERS or not text.strip():
            continue
        if key.lower() == "start":
            segments.append(Segment(0, 0, read_substitute(text.strip("<> ")), role=TECHNICAL))
        elif key.lower() in ("name", "filename"):
            # Names of files join words by signs, and often write them small.
            words = re.sub(r"[_+-]+", " ", text[: _find_suffix(text)])
            segments.append(Segment(0, 0, words.title() if words.islower() and "@" not in words else words))
        else:
            segments.append(Segment(0, 0, text, role=TECHNICAL))
        places.append(index)
    if not segments:
        return None
    main = value.partition(";")[0].strip()

    def write_value(parts: tuple[str, ...]) -> bytes:
        pairs = zip(places, segments, parts, strict=True)
        new = {index: part for index, segment, part in pairs if part != segment.text}
        out = [main]
        for index, (key, text) in enumerate(listed):
            if index in new:
                suffix = text[_find_suffix(text) :] if key.lower() in ("name", "filename") else ""
                text = f"<{write_substitute(new[index])}>" if key.lower() == "start" else new[index] + suffix
            out.append(format_parameter(key, text))
        return "; ".join(out).encode("utf-8", "surrogateescape")

    return Draft(to_document(segments), write_value)


def _find_suffix(name: str) -> int:
    """Return where the suffix of a file's name begins; an address has none."""
    dot = name.rfind(".")
    return dot if dot > 0 and "@" not in name else len(name)


def format_parameter(key: str, value: str) -> str:
    """Return a parameter of a header, after RFC 2231 where its value is not ASCII."""
    if value.isascii() and value.isprintable():
        return f'{key}="{email.utils.quote(value)}"'
    return f"{key}*={email.utils.encode_rfc2231(value, 'utf-8')}"


def read_envelope(line: bytes) -> Draft:
    """Return sender and date of the line before each mail of a mailbox; a date that is covered becomes 1970."""
    text = _decode_bytes(line)
    body = text.rstrip("\r\n")
    sender, _, date = body.removeprefix("From ").partition(" ")
    end = 5 + len(sender)
    segments = [Segment(5, end, read_substitute(sender), write_substitute, role="EMAIL_ADDRESS")]
    if date.strip():
        shown = _spell_envelope_date(date)
        segments.append(Segment(end + 1, len(body), shown, _write_envelope_date, " ", role=TECHNICAL))
    return Draft(to_document(segments), lambda parts: splice_segments(text, segments, parts).encode("utf-8"))


def _spell_envelope_date(text: str) -> str:
    """Return the date of an envelope as headers write it, since rules know that form."""
    date = _parse_date(text)
    return email.utils.format_datetime(date if date.tzinfo else date.replace(tzinfo=UTC)) if date else text


def _write_envelope_date(text: str) -> str:
    date = _parse_date(text)
    return date.ctime() if date else "Thu Jan  1 00:00:00 1970"
