"""CSV and TSV: each row is a document made of its cells. Only changed cells are rewritten; quoting is kept."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import chain
from typing import BinaryIO, cast

from allonym.batch import TEXT_KEYS, join_fields, split_field_name
from allonym.errors import DataError, UnknownNameError
from allonym.files.encoding import Encoding, cut_stream, detect_encoding, make_chunks
from allonym.files.fields import ID_NAMES, collect_metadata, find_record_id, is_record_id
from allonym.files.record import Chunk, Draft, Failure, Format, Job, ParsedChunk, Piece, Tally

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
def _compile_row_and_cell_patterns(delimiter: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
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
    pattern = _compile_row_and_cell_patterns(delimiter)[1]
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
        position += 1  # a cell follows each delimiter, even at the end of the row


def sniff_delimiter(line: str) -> str:
    """Return the delimiter that is most frequent outside quotes in the first row, by default a comma."""
    bare = re.sub(r'"(?:[^"]|"")*"', "", line)
    return max(DELIMITERS, key=lambda d: (bare.count(d), -DELIMITERS.index(d)))


def _find_last_row_end(text: str, at_end: bool, delimiter: str) -> int:
    row = _compile_row_and_cell_patterns(delimiter)[0]
    position = 0
    while (match := row.match(text, position)) and match.end() > position:
        if match.end() == len(text) and not (text.endswith("\n") or at_end):
            break
        position = match.end()
    return position


def _read_table_chunks(stream: BinaryIO, job: Job, size: int, start: int, delimiter: str = "") -> Iterator[Chunk]:
    from allonym.pipeline import detect

    beginning = stream.read(4)
    encoding = detect_encoding(beginning)

    def find_row_boundary(text: str, at_end: bool) -> int:
        nonlocal delimiter
        delimiter = delimiter or sniff_delimiter(text[: text.find("\n") + 1] or text)
        return _find_last_row_end(text, at_end, delimiter)

    pieces = cut_stream(stream, encoding, size, find_row_boundary, beginning)
    for first in pieces:
        text = first[len(encoding.mark) :].decode(encoding.codec, "replace")
        row = _compile_row_and_cell_patterns(delimiter)[0].match(text)
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
            stream.seek(start)
            pieces = cut_stream(stream, encoding, size, find_row_boundary)
        else:
            pieces = chain((first,), pieces)
        yield from make_chunks(pieces, (encoding, delimiter, columns, names), start)
        return


def _split_line_end(row: str) -> tuple[str, str]:
    body = row.removesuffix("\n")
    body = body.removesuffix("\r") if body != row else body
    return body, row[len(body) :]


def _parse_table(chunk: Chunk, job: Job) -> ParsedChunk:
    encoding, delimiter, columns, names = cast("tuple[Encoding, str, tuple[str, ...], tuple[str, ...]]", chunk.head)
    mark = encoding.mark if chunk.first else b""
    data = chunk.data.removeprefix(mark)
    pieces: list[Piece] = [mark]
    try:
        text = encoding.decode(data)
    except DataError:
        text = data.decode(encoding.codec, "surrogateescape")  # only the rows with such bytes are left out, see below

    def draft_row(row: list[Cell], chosen: list[int], id: str, names: Sequence[str], meta: dict[str, object]) -> Draft:
        document = join_fields(id, [(names[i], row[i].value, "\n") for i in chosen], meta)
        return Draft(document, partial(_encode_row, row, chosen, delimiter, end, encoding), number)

    pattern = _compile_row_and_cell_patterns(delimiter)[0]
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
            pieces.append(Failure("", number, f"not valid {encoding.codec.upper()}"))
        elif chunk.first and number == 1 and _is_header(row, job):
            pieces.append(encoding.encode(match.group()))
        elif chunk.first and number == 1:
            # In a file without a header, the first row is data.
            header = draft_row(row, list(range(len(row))), "header", ("",) * len(row), {})
            pieces.append(replace(header, counted=False))
        elif len(row) != len(columns):
            pieces.append(Failure("", number, f"the row has {len(row)} cells, the first row {len(columns)}"))
        else:
            chosen = []
            for i, name in enumerate(columns):
                is_treated = name in job.fields if job.fields else not is_record_id((name,), row[i].value)
                (tally.treated if is_treated else tally.left)[names[i]] += 1
                if is_treated:
                    chosen.append(i)
            meta = _read_row_metadata(row, columns) if job.policy.metadata or job.policy.subject else {}
            id = find_record_id(zip(columns, (cell.value for cell in row), strict=True))
            pieces.append(draft_row(row, chosen, id, columns, meta))
    return ParsedChunk(pieces, number, tally)


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
    values = (v[0] if len(v) == 1 else [word for word in v if word] for v in listed)
    return collect_metadata(dict(zip(columns, values, strict=True)))


def _encode_row(
    row: list[Cell], chosen: list[int], delimiter: str, end: str, encoding: Encoding, parts: tuple[str, ...]
) -> bytes:
    """Return a row with new values of the cells ``chosen``."""
    out = [cell.raw for cell in row]
    for i, part in zip(chosen, parts, strict=bool(chosen)):
        if part != row[i].value:
            out[i] = row[i].format_value(part, delimiter)
    return encoding.encode(delimiter.join(out) + end)


CSV = Format("csv", _parse_table, _read_table_chunks, many=True, fields=True, unit="row")
TSV = Format("tsv", _parse_table, partial(_read_table_chunks, delimiter="\t"), many=True, fields=True, unit="row")
