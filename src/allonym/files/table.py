"""CSV and TSV: each row is a document made of its cells. Only changed cells are rewritten; quoting is kept."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import BinaryIO, cast

from allonym.batch import TEXT_KEYS, join_fields, split_field_name
from allonym.errors import DataError, UnknownNameError
from allonym.files.encoding import Encoding, cut_stream, detect_encoding
from allonym.files.fields import ID_NAMES, is_id, read_metadata
from allonym.files.record import Chunk, Draft, Failure, Format, Job, Parsed, Piece, Tally

DELIMITERS = ",;\t|"
_COLUMN = re.compile(r"[^\W\d][\w .\-/()]{0,39}")
_COLUMNS = frozenset(
    "comment comments note notes review reviews question answer remark remarks description title subject date time "
    "year month age gender sex city town country state address street phone email mail e mail price amount score "
    "rating category type label status language source url link number count".split()
)
"""Words that are column names, not data, in a first row."""
_UNDECODED = re.compile("[\ud800-\udfff]")


def _repeat_possessively(pattern: str) -> str:
    """Return a pattern that repeats possessively, without backtracking."""
    # Python before 3.11.5 goes on behind what a possessive group read in vain (CPython issue 106052); an atomic group
    # does not, but takes memory for each time.
    wrong = re.fullmatch("(?:ab?c)*+", "a") is not None
    return f"(?>(?:{pattern})*)" if wrong else f"(?:{pattern})*+"


@lru_cache(maxsize=8)
def _compile_patterns(delimiter: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Compile patterns of one row with its line end, and of one cell: (quoted, text after the quote) or (bare)."""
    d = re.escape(delimiter)
    inside = _repeat_possessively('[^"]++|""')
    cell = f'(?:"{inside}"[^{d}\n]*+|(?!")[^{d}\n]*+)'
    row = re.compile(f"{cell}{_repeat_possessively(d + cell)}(?:\n|\\Z)")
    return row, re.compile(f'"({inside})"([^{d}]*+)|([^{d}]*+)')


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: its raw text, its value, and whether it is quoted."""

    raw: str
    value: str
    quoted: bool

    def format_value(self, value: str, delimiter: str) -> str:
        """Write the cell with another value."""
        if self.quoted or any(c in value for c in (delimiter, '"', "\n", "\r")):
            return '"' + value.replace('"', '""') + '"'
        return value


def split_cells(row: str, delimiter: str) -> list[Cell]:
    """Return the cells of one row without its line end."""
    pattern = _compile_patterns(delimiter)[1]
    out: list[Cell] = []
    position = 0
    while True:
        match = pattern.match(row, position)
        assert match is not None
        quoted, rest, bare = match.groups()
        value = bare if quoted is None else quoted.replace('""', '"') + rest
        out.append(Cell(match.group(), value, quoted is not None))
        position = match.end()
        if position >= len(row):
            return out
        position += 1
        if position == len(row):
            out.append(Cell("", "", False))
            return out


def sniff_delimiter(line: str) -> str:
    """Return the delimiter that is most frequent outside quotes in the first row, by default a comma."""
    bare = re.sub(r'"(?:[^"]|"")*"', "", line)
    return max(DELIMITERS, key=lambda d: (bare.count(d), -DELIMITERS.index(d)))


def _find_boundary(text: str, at_end: bool, delimiter: str) -> int:
    row = _compile_patterns(delimiter)[0]
    position = 0
    while (match := row.match(text, position)) and match.end() > position:
        if match.end() == len(text) and not (text.endswith("\n") or at_end):
            break
        position = match.end()
    return position


def _read_table_chunks(stream: BinaryIO, job: Job, size: int, start: int, delimiter: str = "") -> Iterator[Chunk]:
    from allonym.pipeline import detect

    head = stream.read(4)
    encoding = detect_encoding(head)
    stop = partial(_find_boundary, delimiter=delimiter or ",")
    columns: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    position = 0

    def find_row_boundary(text: str, at_end: bool) -> int:
        nonlocal stop, delimiter
        if not delimiter:
            delimiter = sniff_delimiter(text[: text.find("\n") + 1] or text)
            stop = partial(_find_boundary, delimiter=delimiter)
        return stop(text, at_end)

    for data in cut_stream(stream, encoding, size, find_row_boundary, head):
        if not columns:
            text = data[len(encoding.mark) :].decode(encoding.codec, "replace")
            row = _compile_patterns(delimiter)[0].match(text)
            # In a file without a header, the first row is data, which must not reach a report.
            columns = tuple(c.value for c in split_cells(_split_line_end(row.group() if row else text)[0], delimiter))
            metadata_keys = {key for keys in job.policy.metadata.values() for key in keys}
            names = tuple(
                f"column {i}" if name not in metadata_keys and detect(name, job.policy) else name
                for i, name in enumerate(columns, 1)
            )
            for name in job.fields:
                if name not in columns:
                    raise UnknownNameError("column", name, names)
            if start:
                break
        position += len(data)
        yield Chunk(data, (encoding.codec, encoding.mark, delimiter, columns, names), position == len(data), position)
    if start:
        stream.seek(start)
        position = start
        for data in cut_stream(stream, encoding, size, stop):
            position += len(data)
            yield Chunk(data, (encoding.codec, encoding.mark, delimiter, columns, names), False, position)


def _split_line_end(row: str) -> tuple[str, str]:
    body = row.removesuffix("\n")
    body = body.removesuffix("\r") if body != row else body
    return body, row[len(body) :]


def _parse_table(chunk: Chunk, job: Job) -> Parsed:
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
    pattern = _compile_patterns(delimiter)[0]
    tally = Tally()
    position = 0
    number = 0
    while position < len(text):
        match = pattern.match(text, position)
        number += 1
        if match is None:
            pieces.append(Failure("", number, "a quote is left open; all rows from here on are left out"))
            break
        position = match.end()
        body, end = _split_line_end(match.group())
        if not body:
            pieces.append(encoding.encode(end))
            continue
        row = split_cells(body, delimiter)
        if _UNDECODED.search(body):
            pieces.append(Failure("", number, f"not valid {codec.upper()}"))
        elif chunk.first and number == 1 and _is_header(row, job):
            pieces.append(encoding.encode(match.group()))
        elif chunk.first and number == 1:
            # In a file without a header, the first row is data.
            header = _draft_row(
                "header", row, list(range(len(row))), ("",) * len(row), delimiter, end, encoding, {}, number
            )
            pieces.append(replace(header, counted=False))
        elif len(row) != len(columns):
            pieces.append(Failure("", number, f"the row has {len(row)} cells, the first row {len(columns)}"))
        else:
            chosen = []
            for i, name in enumerate(columns):
                is_treated = name in job.fields if job.fields else not is_id((name,), row[i].value)
                (tally.treated if is_treated else tally.left)[names[i]] += 1
                if is_treated:
                    chosen.append(i)
            meta = _read_row_metadata(row, columns) if job.policy.metadata or job.policy.subject else {}
            id = _row_id(row, columns)
            pieces.append(_draft_row(id, row, chosen, columns, delimiter, end, encoding, meta, number))
    return Parsed(pieces, number, tally)


def _is_header(row: list[Cell], job: Job) -> bool:
    """Tell whether the first row certainly has column names: the chosen fields, or common names."""
    names = [cell.value.strip() for cell in row]
    if job.fields:
        return set(job.fields) <= set(names)
    header_words = {split_field_name(name) for name in names}
    metadata_words = {split_field_name(key) for keys in job.policy.metadata.values() for key in keys}
    plain = all(_COLUMN.fullmatch(name) for name in names) and len(header_words) == len(names)
    return plain and bool(header_words & (metadata_words | TEXT_KEYS | ID_NAMES | _COLUMNS))


def _read_row_metadata(row: list[Cell], columns: tuple[str, ...]) -> dict[str, object]:
    """Return the row as metadata, for policies that use names from it; a cell with ``;`` or ``|`` is a list."""
    listed = (re.split(r"\s*[;|]\s*", c.value.strip()) for c in row)
    return read_metadata(
        {n: v[0] if len(v) == 1 else [w for w in v if w] for n, v in zip(columns, listed, strict=True)}
    )


def _row_id(row: list[Cell], columns: tuple[str, ...]) -> str:
    for cell, name in zip(row, columns, strict=True):
        if name.lower() in ID_NAMES and is_id((name,), cell.value):
            return cell.value
    return ""


def _draft_row(
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

    def render_row(parts: tuple[str, ...]) -> bytes:
        out = [cell.raw for cell in row]
        for i, part in zip(chosen, parts, strict=bool(chosen)):
            if part != row[i].value:
                out[i] = row[i].format_value(part, delimiter)
        return encoding.encode(delimiter.join(out) + end)

    return Draft(document, render_row, line)


CSV = Format("csv", _parse_table, _read_table_chunks, many=True, fields=True, unit="row")
TSV = Format("tsv", _parse_table, partial(_read_table_chunks, delimiter="\t"), many=True, fields=True, unit="row")
