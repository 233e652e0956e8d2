"""CSV and TSV: a row is a document of its cells. Only cells that change are written anew; quoting stays as it was."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import BinaryIO, cast

from allonym.batch import TEXT_KEYS, join_fields, split_field_name
from allonym.errors import DataError, UnknownNameError
from allonym.files.encoding import Encoding, cut, sniff
from allonym.files.fields import ID_NAMES, is_id, metadata
from allonym.files.record import Chunk, Draft, Failure, Format, Job, Parsed, Piece, Tally

DELIMITERS = ",;\t|"
_COLUMN = re.compile(r"[^\W\d][\w .\-/()]{0,39}")
_COLUMNS = frozenset(
    "comment comments note notes review reviews question answer remark remarks description title subject date time "
    "year month age gender sex city town country state address street phone email mail e mail price amount score "
    "rating category type label status language source url link number count".split()
)
"""Names of columns, as words, that are no data where they stand in a first row."""
_UNDECODED = re.compile("[\ud800-\udfff]")


def _many(pattern: str) -> str:
    """As often as can be, and nothing given back."""
    # Python before 3.11.5 goes on behind what a possessive group read in vain (CPython issue 106052); an atomic group
    # does not, but takes memory for each time.
    wrong = re.fullmatch("(?:ab?c)*+", "a") is not None
    return f"(?>(?:{pattern})*)" if wrong else f"(?:{pattern})*+"


@lru_cache(maxsize=8)
def _patterns(delimiter: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """One row with its line end, and one cell: (quoted, what follows the closing quote) or (bare)."""
    d = re.escape(delimiter)
    inside = _many('[^"]++|""')
    cell = f'(?:"{inside}"[^{d}\n]*+|(?!")[^{d}\n]*+)'
    row = re.compile(f"{cell}{_many(d + cell)}(?:\n|\\Z)")
    return row, re.compile(f'"({inside})"([^{d}]*+)|([^{d}]*+)')


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: its bytes' text, its value, and whether it was quoted."""

    raw: str
    value: str
    quoted: bool

    def changed(self, value: str, delimiter: str) -> str:
        """How the cell is written with another value."""
        if self.quoted or any(c in value for c in (delimiter, '"', "\n", "\r")):
            return '"' + value.replace('"', '""') + '"'
        return value


def cells(row: str, delimiter: str) -> list[Cell]:
    """The cells of one row without its line end."""
    pattern = _patterns(delimiter)[1]
    out: list[Cell] = []
    at = 0
    while True:
        match = pattern.match(row, at)
        assert match is not None
        quoted, rest, bare = match.groups()
        value = bare if quoted is None else quoted.replace('""', '"') + rest
        out.append(Cell(match.group(), value, quoted is not None))
        at = match.end()
        if at >= len(row):
            return out
        at += 1
        if at == len(row):
            out.append(Cell("", "", False))
            return out


def sniff_delimiter(line: str) -> str:
    """The delimiter that stands most often outside quotes in the first row; a comma where none does."""
    bare = re.sub(r'"(?:[^"]|"")*"', "", line)
    return max(DELIMITERS, key=lambda d: (bare.count(d), -DELIMITERS.index(d)))


def _boundary(text: str, at_end: bool, delimiter: str) -> int:
    row = _patterns(delimiter)[0]
    at = 0
    while (match := row.match(text, at)) and match.end() > at:
        if match.end() == len(text) and not (text.endswith("\n") or at_end):
            break
        at = match.end()
    return at


def _chunks(stream: BinaryIO, job: Job, size: int, start: int, delimiter: str = "") -> Iterator[Chunk]:
    from allonym.pipeline import detect

    head = stream.read(4)
    encoding = sniff(head)
    stop = partial(_boundary, delimiter=delimiter or ",")
    found: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    at = 0

    def boundary(text: str, at_end: bool) -> int:
        nonlocal stop, delimiter
        if not delimiter:
            delimiter = sniff_delimiter(text[: text.find("\n") + 1] or text)
            stop = partial(_boundary, delimiter=delimiter)
        return stop(text, at_end)

    for data in cut(stream, encoding, size, boundary, head):
        if not found:
            text = data[len(encoding.mark) :].decode(encoding.codec, "replace")
            row = _patterns(delimiter)[0].match(text)
            # Where a file has no header, its first row is data, which must not reach a report.
            found = tuple(c.value for c in cells(_split(row.group() if row else text)[0], delimiter))
            known = {key for keys in job.policy.metadata.values() for key in keys}
            names = tuple(
                f"column {i}" if name not in known and detect(name, job.policy) else name
                for i, name in enumerate(found, 1)
            )
            for name in job.fields:
                if name not in found:
                    raise UnknownNameError("column", name, names)
            if start:
                break
        at += len(data)
        yield Chunk(data, (encoding.codec, encoding.mark, delimiter, found, names), at == len(data), at)
    if start:
        stream.seek(start)
        at = start
        for data in cut(stream, encoding, size, stop):
            at += len(data)
            yield Chunk(data, (encoding.codec, encoding.mark, delimiter, found, names), False, at)


def _split(row: str) -> tuple[str, str]:
    body = row.removesuffix("\n")
    body = body.removesuffix("\r") if body != row else body
    return body, row[len(body) :]


def _parse(chunk: Chunk, job: Job) -> Parsed:
    codec, mark, delimiter, columns, names = cast(
        "tuple[str, bytes, str, tuple[str, ...], tuple[str, ...]]", chunk.head
    )
    encoding = Encoding(codec, mark)
    pieces: list[Piece] = []
    data = chunk.data
    if chunk.first:
        pieces.append(mark)
        data = data[len(mark) :]
    try:
        text = encoding.decode(data)
    except DataError:
        text = data.decode(codec, "surrogateescape")  # only the rows with such bytes are left out, see below
    pattern = _patterns(delimiter)[0]
    tally = Tally()
    at = 0
    number = 0
    while at < len(text):
        match = pattern.match(text, at)
        number += 1
        if match is None:
            pieces.append(Failure("", number, "a quote is left open; all rows from here on are left out"))
            break
        at = match.end()
        body, end = _split(match.group())
        if not body:
            pieces.append(encoding.encode(end))
            continue
        row = cells(body, delimiter)
        if _UNDECODED.search(body):
            pieces.append(Failure("", number, f"not valid {codec.upper()}"))
        elif chunk.first and number == 1 and _is_header(row, job):
            pieces.append(encoding.encode(match.group()))
        elif chunk.first and number == 1:
            # Where a file has no header, its first row is data and may hold anything.
            header = _draft(
                "header", row, list(range(len(row))), ("",) * len(row), delimiter, end, encoding, {}, number
            )
            pieces.append(replace(header, counted=False))
        elif len(row) != len(columns):
            pieces.append(Failure("", number, f"the row has {len(row)} cells, the first row {len(columns)}"))
        else:
            chosen = []
            for i, name in enumerate(columns):
                wanted = name in job.fields if job.fields else not is_id((name,), row[i].value)
                (tally.treated if wanted else tally.left)[names[i]] += 1
                if wanted:
                    chosen.append(i)
            meta = _meta(row, columns) if job.policy.metadata or job.policy.subject else {}
            id = _row_id(row, columns)
            pieces.append(_draft(id, row, chosen, columns, delimiter, end, encoding, meta, number))
    return Parsed(pieces, number, tally)


def _is_header(row: list[Cell], job: Job) -> bool:
    """Whether the first row surely names columns: those that were asked for, or such as every table has."""
    names = [cell.value.strip() for cell in row]
    if job.fields:
        return set(job.fields) <= set(names)
    told = {split_field_name(name) for name in names}
    known = {split_field_name(key) for keys in job.policy.metadata.values() for key in keys}
    plain = all(_COLUMN.fullmatch(name) for name in names) and len(told) == len(names)
    return plain and bool(told & (known | TEXT_KEYS | ID_NAMES | _COLUMNS))


def _meta(row: list[Cell], columns: tuple[str, ...]) -> dict[str, object]:
    """The row for policies that look names up in it; a cell with ``;`` or ``|`` is a list."""
    listed = (re.split(r"\s*[;|]\s*", c.value.strip()) for c in row)
    return metadata({n: v[0] if len(v) == 1 else [w for w in v if w] for n, v in zip(columns, listed, strict=True)})


def _row_id(row: list[Cell], columns: tuple[str, ...]) -> str:
    for cell, name in zip(row, columns, strict=True):
        if name.lower() in ID_NAMES and is_id((name,), cell.value):
            return cell.value
    return ""


def _draft(
    id: str,
    row: list[Cell],
    chosen: list[int],
    columns: tuple[str, ...],
    delimiter: str,
    end: str,
    encoding: Encoding,
    meta: Mapping[str, object],
    line: int,
) -> Draft:
    parts = [(columns[i], row[i].value, "\n") for i in chosen]
    document = join_fields(id, parts, meta)

    def render(parts: tuple[str, ...]) -> bytes:
        out = [cell.raw for cell in row]
        for i, part in zip(chosen, parts, strict=bool(chosen)):
            if part != row[i].value:
                out[i] = row[i].changed(part, delimiter)
        return encoding.encode(delimiter.join(out) + end)

    return Draft(document, render, line)


CSV = Format("csv", _parse, _chunks, many=True, fields=True, unit="row")
TSV = Format("tsv", _parse, partial(_chunks, delimiter="\t"), many=True, fields=True, unit="row")
