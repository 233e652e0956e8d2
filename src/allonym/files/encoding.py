"""Text encodings: the output keeps the encoding of its file.

UTF-8 is the default. UTF-16 is told by its byte order mark or its zero bytes, other encodings by what the text declares
or by its letters: of the European ones the most plausible is chosen, for other scripts charset-normalizer decides. A
letter of a replacement that the encoding lacks is written as the nearest one.
"""

from __future__ import annotations

import codecs
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from allonym.errors import DataError
from allonym.files.record import Chunk, Tally

_MARKS = (
    (codecs.BOM_UTF32_LE, ""),
    (codecs.BOM_UTF32_BE, ""),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
MAX_RECORD = 1 << 26
"""Greatest size of a line or row in bytes; an unclosed quote would otherwise read the whole file."""

SAMPLE = 1 << 18
"""Bytes from the beginning of a file by which its encoding is told."""

_EUROPEAN = ("cp1252", "cp1250", "cp1254", "cp1257", "iso8859-2", "iso8859-15", "mac_roman", "cp850", "cp852")
"""Encodings of the Latin alphabet, in the order of preference."""

_ALPHABETS = (
    "àáâãäåæçèéêëìíîïñòóôõöøùúûüßœ",  # Western Europe
    "ąćęłńóśźż",
    "áčďéěíňóřšťúůýžäľĺŕôć",
    "áéíóöőúüű",
    "ăâîşţșț",
    "çğıöşüâîûi̇",
    "āčēģīķļņšūžąęėįųõäöü",
)
"""Letters beyond ASCII of languages that are written together: Western, Polish, Czech and Slovak and Croatian,
Hungarian, Romanian, Turkish, Baltic."""

_NO_TEXTS = frozenset(("unicode-escape", "raw-unicode-escape", "punycode", "idna"))
"""Python's codecs for other things than the texts of files."""
_LEAST_BYTES = 32  # of ASCII that no text in UTF-16 is, but by chance
_LEAST_TORN = 4  # different letters of UTF-16 whose lower byte is 0
_HIGH_RUN = re.compile(rb"[\x80-\xff]+")
_CONTROLS = re.compile(rb"[\x80-\x9f]")
_DECLARED = re.compile(rb"""(?i)(?:<meta[^>]+charset\s*=\s*["']?|<\?xml[^>]+encoding\s*=\s*["'])([a-z0-9_.:-]{2,40})""")
_NEAREST = {
    **dict(zip("łŁøØđĐıħŦŧ–—‘’‚“”„•", "lLoOdDihTt--'''\"\"\"*", strict=True)),
    "€": "EUR",
    "ß": "ss",
    "…": "...",
}
_MAX_CHAOS = 0.1
_LONGEST_RUN = 3
_USUAL_SIGNS = "’‘“”„–—…•«»¿¡€£°©®§"


def _write_nearest(error: UnicodeError) -> tuple[str, int]:
    """Write a letter that an encoding lacks without its accents, else as a question mark."""
    if not isinstance(error, UnicodeEncodeError) or "\ud800" <= error.object[error.start] <= "\udfff":
        raise error
    letter = error.object[error.start]
    plain = _NEAREST.get(letter) or unicodedata.normalize("NFKD", letter)
    return "".join(c for c in plain if c.isascii()) or "?", error.start + 1


codecs.register_error("allonym-nearest", _write_nearest)


@dataclass(frozen=True, slots=True)
class Encoding:
    """A codec and the byte order mark in front of the text.

    Attributes:
        codec: its name in Python.
        mark: the mark; empty: none.
        is_ascii: whether only ASCII may be written, whatever the codec.
        is_markup: whether a letter that cannot be written becomes a reference, such as ``&#321;``.
    """

    codec: str
    mark: bytes = b""
    is_ascii: bool = False
    is_markup: bool = False

    @property
    def has_ascii_borders(self) -> bool:
        """Whether a line end, a comma or a quotation mark is always the byte that it is in ASCII."""
        return not self.codec.startswith(("utf-16", "iso2022"))

    def decode(self, data: bytes) -> str:
        """Decode ``data``, which has no mark. Raises :class:`DataError` if it is not in this encoding."""
        try:
            text = data.decode(self.codec)
        except UnicodeDecodeError as error:
            raise DataError(f"not valid {self.codec.upper()} at byte {error.start}; UTF-8 is required") from None
        if self.codec.startswith("utf-16") and _is_misread_utf16(data, text):
            raise DataError(f"not valid {self.codec.upper()}: a byte is missing, or it is another encoding")
        return text

    def encode_file(self, text: str) -> bytes:
        """Encode the text of a whole file, with the mark. Raises :class:`DataError` for lone surrogates."""
        return self.mark + self.encode(text)

    def encode(self, text: str) -> bytes:
        """Encode ``text``, without a mark; letters that the encoding lacks are written as the nearest ones.

        Raises:
            DataError: for lone surrogates.
        """
        if self.codec.startswith("utf-") and not self.is_ascii:
            errors = "strict"
        else:
            errors = "xmlcharrefreplace" if self.is_markup else "allonym-nearest"
        try:
            return text.encode("ascii" if self.is_ascii else self.codec, errors)
        except UnicodeEncodeError as error:
            raise DataError(f"cannot be written as {self.codec.upper()}: lone surrogate at {error.start}") from None


def detect_encoding(sample: bytes, declared: str = "") -> Encoding:
    """Return the encoding of a file or of another text by its beginning; UTF-8 where none fits.

    Args:
        sample: its first bytes, at most ``SAMPLE``.
        declared: the name of the encoding that its surroundings declare; a wrong one is ignored.

    Raises:
        DataError: it is not text.
    """
    for mark, codec in _MARKS:
        if sample.startswith(mark):
            if not codec:
                raise DataError("UTF-32 is not read; convert the file to UTF-8")
            return Encoding(codec, mark)
    if b"\x00" in sample[:4]:
        for codec, zeros in (("utf-16-le", sample[1:200:2]), ("utf-16-be", sample[:200:2])):
            if len(sample) > 3 and len(sample) % 2 == 0 and not any(zeros):
                return Encoding(codec)
        raise DataError("not a text file, or UTF-16 without a byte order mark; UTF-8 is required")
    if not declared and (match := _DECLARED.search(sample[:2048])):
        declared = match[1].decode("ascii")
    codec = _find_codec(declared)
    if sample.isascii() and b"\x1b$" in sample and _can_decode(sample, "iso2022_jp"):
        return Encoding("iso2022_jp")
    is_utf8 = _can_decode(sample, "utf-8")
    if codec and _can_decode(sample, codec) and (_keeps_ascii(codec) if sample.isascii() else not is_utf8):
        has_controls = codec == "iso8859-1" and _CONTROLS.search(sample) and _can_decode(sample, "cp1252")
        return Encoding("cp1252" if has_controls else codec)
    if is_utf8 or _is_damaged_utf8(sample):
        return Encoding("utf-8")
    return Encoding(_guess_codec(sample) or "utf-8")


def _find_codec(name: str) -> str:
    """Return Python's name of a declared codec; empty where there is none that adds to what is detected."""
    try:
        codec = codecs.lookup(name.strip()).name if name else ""
        "".encode(codec or "utf-8")
    except (LookupError, ValueError):
        return ""
    return "" if codec.startswith(("utf-8", "utf-16", "utf-32", "ascii")) or codec in _NO_TEXTS else codec


def _can_decode(data: bytes, codec: str) -> bool:
    """Tell whether a sample is in an encoding; the last letter of a longer file may be cut off."""
    try:
        codecs.getincrementaldecoder(codec)().decode(data, len(data) < SAMPLE)
    except (UnicodeDecodeError, LookupError):
        return False
    return True


def _keeps_ascii(codec: str) -> bool:
    """Tell whether ASCII letters and digits are the same in an encoding: text in ASCII is in no other one."""
    plain = string.ascii_letters + string.digits
    return plain.encode().decode(codec, "replace") == plain


def _is_misread_utf16(data: bytes, text: str) -> bool:
    """Tell whether bytes that were read as UTF-16 are ASCII, or letters whose bytes belong to two neighbours."""
    if len(data) >= _LEAST_BYTES and data.isascii() and b"\0" not in data:
        return True
    torn = Counter(c for c in text if "\u0900" <= c < "\u7f00" and not ord(c) & 0xFF)
    return len(torn) >= _LEAST_TORN and 10 * torn.total() > len(text)


def _is_damaged_utf8(sample: bytes) -> bool:
    """Tell whether most letters of a sample are UTF-8, so that only some of its lines are not."""
    text = sample.decode("utf-8", "surrogateescape")
    wrong = sum("\ud800" <= c <= "\udfff" for c in text)
    return sum(c > "\x7f" for c in text) - wrong > 2 * wrong


def _guess_codec(sample: bytes) -> str:
    """Return the most plausible codec of a text that is not UTF-8; empty where there is none.

    In the Latin alphabet, letters beyond ASCII stand among ASCII letters. In other scripts they stand together.
    """
    high = _HIGH_RUN.findall(sample)
    if sum(len(run) for run in high if len(run) > _LONGEST_RUN) * 4 < sum(map(len, high)):
        scores = {codec: _score_letters(sample[: 1 << 16].decode(codec, "replace")) for codec in _EUROPEAN}
        best = max(_EUROPEAN, key=lambda codec: scores[codec])
        if scores[best] > 0 or (scores[best] == 0 and best == "cp1252"):
            return best
    if not any(len(run) > _LONGEST_RUN for run in high):
        return ""
    if all(0xE0 <= byte <= 0xFA for byte in b"".join(high)):
        return "cp1255"  # Hebrew; Cyrillic has capitals
    from charset_normalizer import from_bytes

    match = from_bytes(sample[: 1 << 16]).best()
    codec = match.encoding if match is not None and match.chaos < _MAX_CHAOS else ""
    return codec if codec and not codec.startswith("utf") and _can_decode(sample, codec) else ""


def _score_letters(text: str) -> int:
    """Return how plausible the letters and signs beyond ASCII of a text are, one by one, in the best alphabet."""
    score = 0
    letters: Counter[str] = Counter()
    for match in re.finditer(r"[^\x00-\x7f]", text):
        start, end = match.span()
        sign, before, after = match[0], text[max(0, start - 1) : start], text[end : end + 1]
        inside = before.isalpha() and after.isalpha()
        if sign.isalpha():
            is_odd = (sign.isupper() and before.islower()) or before.isdigit() or after.isdigit()
            letters["" if is_odd else sign.lower()] += 1
        elif sign == "\ufffd" or unicodedata.category(sign) == "Cc":
            score -= 5
        elif sign in _USUAL_SIGNS:
            score += 1 if not inside or sign in "’‘–—" else -2
        elif sign not in "\u00a0\u00ad":
            score -= 2 if before.isalpha() or after.isalpha() else 1
    usual = max(sum(letters[letter] for letter in alphabet) for alphabet in _ALPHABETS)
    return score + 2 * usual - letters.total()


def count_encoding(encoding: Encoding) -> Tally:
    """Return the count of one file for the report of a run; UTF-8 is not counted."""
    return Tally(encodings=Counter(() if encoding.codec == "utf-8" else (encoding.codec.upper(),)))


def decode_file(data: bytes) -> tuple[str, Encoding]:
    """Return the text and the encoding of a whole file. Raises :class:`DataError` if it is not text."""
    return decode_text(data, "")


def decode_text(data: bytes, declared: str) -> tuple[str, Encoding]:
    """Return a text and its encoding, see :func:`detect_encoding`. Raises :class:`DataError` if it is not text."""
    encoding = detect_encoding(data[:SAMPLE], declared)
    return encoding.decode(data[len(encoding.mark) :]), encoding


def make_chunks(pieces: Iterable[bytes], head: tuple[object, ...], start: int) -> Iterator[Chunk]:
    """Yield the pieces of a file from the offset ``start`` as chunks with this head."""
    position = start
    for data in pieces:
        position += len(data)
        yield Chunk(data, head, position == len(data), position)


def cut_stream(
    stream: BinaryIO, encoding: Encoding, size: int, find_boundary: Callable[[str, bool], int], buffer: bytes = b""
) -> Iterator[bytes]:
    """Yield chunks of about ``size`` bytes that end at ``find_boundary(text, at_end)``, which returns 0 for none.

    ``buffer`` has been read from the stream already. The chunks depend on the bytes and ``size`` alone. For UTF-8 and
    most others, ``text`` has one character per byte, so boundaries must be ASCII characters.

    Raises:
        DataError: a record is longer than ``MAX_RECORD`` bytes.
    """
    wide = not encoding.has_ascii_borders
    want = size
    ended = False
    while True:
        while len(buffer) < want and not ended:
            more = stream.read(want - len(buffer))
            ended = not more
            buffer += more
        if not buffer:
            return
        last = ended and len(buffer) <= want
        view = buffer[:want]
        if wide:
            text = codecs.getincrementaldecoder(encoding.codec)("replace").decode(view)
            cut_position = len(text[: find_boundary(text, last)].encode(encoding.codec, "surrogatepass"))
        else:
            cut_position = find_boundary(view.decode("latin-1"), last)
        if cut_position == 0 and last:
            cut_position = len(view)
        if cut_position:
            yield buffer[:cut_position]
            buffer = buffer[cut_position:]
            want = size
        elif want >= MAX_RECORD:
            raise DataError(f"a record is longer than {MAX_RECORD} bytes; is a quote left open?")
        else:
            want *= 2
