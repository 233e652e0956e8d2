"""CSV and TSV: each row is a document made of its cells. Only changed cells are rewritten; quoting is kept.

Each column is looked at first, see :mod:`allonym.files.columns`. Headers stay. A value has the same replacement in all
rows of the file, and another value another one. Comment lines and rows with too few or too many cells are treated too.

A cell that begins with ``=``, ``+``, ``-``, ``@``, a tab or a line break is left alone unless the policy says
``formulas = "neutralise"``: it may be a number, a sign or a name. A spreadsheet may read it as a formula, as it would
in the source. Neutralised, it has an apostrophe in front; one that had one has one more, so that restoring takes away
exactly what was put there. Numbers and lone signs stay.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import BinaryIO, cast

from allonym.batch import join_fields
from allonym.document import KEPT, PROSE, Document
from allonym.errors import DataError, UnknownNameError
from allonym.files.columns import (
    SAMPLE_BYTES,
    SAMPLE_ROWS,
    UNKNOWN,
    Column,
    decide_columns,
    is_header,
    is_number,
    is_unusual_name,
)
from allonym.files.encoding import Encoding, count_encoding, cut_stream, detect_encoding, make_chunks
from allonym.files.fields import collect_metadata, find_record_id, is_record_id
from allonym.files.record import Chunk, Draft, Failure, Format, Job, ParsedChunk, Piece, Tally, read_beginning

DELIMITERS = ",;\t|"
_FORMULA_SIGNS = frozenset("=+-@\t\r\n＝＋－＠")
WriteRow = Callable[[str], str]
"""Gives a row, without its line end, the form in which it is written."""
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


def is_formula_like(value: str) -> bool:
    """Tell whether a spreadsheet may read a cell as a formula, apart from apostrophes in front of it."""
    bare = value.lstrip("'")
    return bare[:1] in _FORMULA_SIGNS and any(map(str.isalnum, bare)) and not is_number(bare)


def neutralise_row(row: str, delimiter: str) -> str:
    """Return a row, without its line end, with an apostrophe in front of each cell that is like a formula."""
    if not any(sign in row for sign in _FORMULA_SIGNS):
        return row
    out = []
    for cell in split_cells(row, delimiter):
        quote = cell.raw[: cell.quoted]
        out.append(f"{quote}'{cell.raw[cell.quoted :]}" if is_formula_like(cell.value) else cell.raw)
    return delimiter.join(out)


def restore_neutralised_row(row: str, delimiter: str) -> str:
    """Return the row of which :func:`neutralise_row` made this one."""
    if "'" not in row:
        return row
    out = []
    for cell in split_cells(row, delimiter):
        is_neutralised = cell.raw[cell.quoted :].startswith("'") and is_formula_like(cell.value)
        out.append(cell.raw[: cell.quoted] + cell.raw[cell.quoted + is_neutralised :])
    return delimiter.join(out)


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


@dataclass(frozen=True, slots=True)
class _Head:
    """What the beginning of a file tells.

    Attributes:
        encoding, delimiter: of the file.
        names: the names of the columns, as the header has them, or ``column 1`` and so on.
        shown: the same as reports show them.
        columns: what was decided about each.
        size: bytes up to the end of the header; 0: there is none, and the first row is data.
        is_plain: whether nothing that identifies by itself is found in the header.
    """

    encoding: Encoding
    delimiter: str
    names: tuple[str, ...] = field(repr=False)
    shown: tuple[str, ...]
    columns: tuple[Column, ...]
    size: int
    is_plain: bool = True


def _read_head(beginning: bytes, job: Job, delimiter: str) -> _Head:
    """Read the encoding, the header and the columns of a table from its beginning."""
    from allonym.pipeline import detect

    encoding = detect_encoding(beginning)
    text = beginning[len(encoding.mark) :].decode(encoding.codec, "replace")
    bodies: list[str] = []
    pattern: re.Pattern[str] | None = None
    position = 0
    while len(bodies) < SAMPLE_ROWS and position < len(text):
        if pattern is None:
            line = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), text)
            delimiter = delimiter or sniff_delimiter(line)
            pattern = _compile_row_and_cell_patterns(delimiter)[0]
        match = pattern.match(text, position)
        if match is None or (match.end() == len(text) and not text.endswith("\n") and len(beginning) >= SAMPLE_BYTES):
            break
        position = match.end()
        body = _split_line_end(match.group())[0]
        bodies.append(restore_neutralised_row(body, delimiter) if job.has_neutralised_cells else body)
    rows = [[cell.value for cell in split_cells(body, delimiter)] if body else [] for body in bodies]
    widths = Counter(len(row) for row in rows if row and not row[0].startswith("#")) or Counter(map(len, rows))
    width = max(widths, key=lambda n: (widths[n], n), default=0)
    first = _find_header_row(rows, width)
    below = [row for row in rows[first + 1 :] if len(row) == width]
    cells = tuple(rows[first]) if rows else ()
    shifted = 1 < len(cells) == width - 1
    names = ("",) * shifted + cells
    if is_header(cells, [row[shifted:] for row in below], job.policy, job.fields):
        shown = tuple(f"column {i}" if is_unusual_name(n, job.policy) else n for i, n in enumerate(names, 1))
        size = _measure_rows(beginning, encoding, delimiter, first + 1)
    else:
        size = 0
        names = shown = tuple(f"column {i}" for i in range(1, width + 1))
        below = [row for row in rows if len(row) == width]
    for name in job.fields:
        if name not in names:
            raise UnknownNameError("column", name, shown)
    samples = [
        (n, s, [row[i] for row in below if i < len(row)]) for i, (n, s) in enumerate(zip(names, shown, strict=True))
    ]
    columns = decide_columns(samples, job.policy, job.fields)
    header = Document.from_parts("", cells, roles=[KEPT] * len(cells))
    return _Head(encoding, delimiter or ",", names, shown, columns, size, not detect(header, job.policy))


def _find_header_row(rows: Sequence[Sequence[str]], width: int) -> int:
    """Return the index of the first row of the table: the first that is as wide as most, or the one before it.

    R writes no name above the numbers of the rows.
    """
    first = next((i for i, row in enumerate(rows) if len(row) == width), 0)
    if not first or len(rows[first - 1]) != width - 1:
        return first
    first_cells = [row[0] for row in rows[first:] if len(row) == width]
    is_numbered = all(map(str.isdigit, first_cells)) and len(set(first_cells)) == len(first_cells)
    return first - 1 if width > 2 or is_numbered else first


def _measure_rows(beginning: bytes, encoding: Encoding, delimiter: str, count: int) -> int:
    """Return the number of bytes of the first rows, with the mark before them."""
    body = beginning[len(encoding.mark) :]
    is_narrow = encoding.has_ascii_borders
    text = body.decode("latin-1") if is_narrow else body.decode(encoding.codec, "replace")
    pattern = _compile_row_and_cell_patterns(delimiter)[0]
    position = 0
    for _ in range(count):
        if match := pattern.match(text, position):
            position = match.end()
    return len(encoding.mark) + (
        position if is_narrow else len(text[:position].encode(encoding.codec, "surrogatepass"))
    )


def _is_comment(row: Sequence[str], width: int) -> bool:
    return bool(row) and row[0].startswith("#") and len(row) != width


def _read_table_chunks(stream: BinaryIO, job: Job, size: int, start: int, delimiter: str = "") -> Iterator[Chunk]:
    beginning = read_beginning(stream, SAMPLE_BYTES)
    head = _read_head(beginning, job, delimiter)
    if not beginning:
        return

    def find_row_boundary(text: str, at_end: bool) -> int:
        return _find_last_row_end(text, at_end, head.delimiter)

    if start:
        stream.seek(start)
        beginning = b""
    elif head.size:
        yield Chunk(beginning[: head.size], (head,), True, head.size)
        beginning, start = beginning[head.size :], head.size
    yield from make_chunks(cut_stream(stream, head.encoding, size, find_row_boundary, beginning), (head,), start)


def _list_columns(stream: BinaryIO, job: Job, delimiter: str = "") -> Sequence[Column]:
    return _read_head(read_beginning(stream, SAMPLE_BYTES), job, delimiter).columns


def _split_line_end(row: str) -> tuple[str, str]:
    body = row.removesuffix("\n")
    body = body.removesuffix("\r") if body != row else body
    return body, row[len(body) :]


def _parse_table(chunk: Chunk, job: Job) -> ParsedChunk:
    (head,) = cast("tuple[_Head]", chunk.head)
    encoding, delimiter = head.encoding, head.delimiter
    mark = encoding.mark if chunk.first else b""
    data = chunk.data.removeprefix(mark)
    pieces: list[Piece] = [mark]
    try:
        text = encoding.decode(data)
    except DataError:
        text = data.decode(encoding.codec, "surrogateescape")  # only the rows with such bytes are left out, see below
    write_row: WriteRow = str
    if job.policy.formulas == "neutralise":
        write_row = partial(neutralise_row, delimiter=delimiter)
    is_heading = chunk.first and head.size > 0
    pattern = _compile_row_and_cell_patterns(delimiter)[0]
    tally = count_encoding(encoding) if chunk.first else Tally()
    if is_heading:
        masked = (shown for name, shown in zip(head.names, head.shown, strict=True) if name.strip() and name != shown)
        tally.identifying_headers.update(masked)
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
        if job.has_neutralised_cells:
            body = restore_neutralised_row(body, delimiter)
        row = split_cells(body, delimiter)
        if _UNDECODED.search(body):
            pieces.append(Failure("", number, f"not valid {encoding.codec.upper()}"))
            continue
        if is_heading and position == len(text) and head.is_plain:
            pieces.append(encoding.encode(write_row(body) + end))
        elif is_heading and position == len(text):
            values = [cell.value for cell in row]
            pieces.append(
                _draft_beside(
                    values, KEPT, job, number, partial(_encode_row, row, head, end, range(len(row)), write_row)
                )
            )
        elif is_heading or _is_comment([cell.value for cell in row], len(head.columns)):
            comment = body.lstrip("# \t")
            render = partial(_encode_comment, body[: len(body) - len(comment)], end, encoding, write_row)
            pieces.append(_draft_beside([comment], PROSE, job, number, render))
        else:
            pieces.append(_draft_row(row, head, job, tally, number, end, write_row))
    return ParsedChunk(pieces, number, tally)


def _draft_beside(
    texts: Sequence[str], role: str, job: Job, number: int, render: Callable[[tuple[str, ...]], bytes]
) -> Draft:
    """Return the draft of a header or a comment. It is about nobody, but a policy may require a subject."""
    meta = {job.policy.subject: "header"} if job.policy.subject else {}
    return Draft(Document.from_parts("", texts, meta, roles=[role] * len(texts)), render, number, counted=False)


def _draft_row(
    row: Sequence[Cell], head: _Head, job: Job, tally: Tally, number: int, end: str, write_row: WriteRow
) -> Draft:
    chosen = list(_choose_cells(row, head, job, tally))
    values = [cell.value for cell in row]
    meta = _read_row_metadata(values, head.names) if job.policy.metadata or job.policy.subject else {}
    id = find_record_id(zip(head.names, values, strict=False))
    document = join_fields(id, [(name, values[i], "\n") for i, name, _ in chosen], meta, [role for *_, role in chosen])
    return Draft(document, partial(_encode_row, row, head, end, [i for i, *_ in chosen], write_row), number)


def _choose_cells(row: Sequence[Cell], head: _Head, job: Job, tally: Tally) -> Iterator[tuple[int, str, str]]:
    """Yield the index of each cell to treat, the name to show before it, and its role.

    In a row of another length than the header's, cells may have moved: what is left elsewhere is prose there.
    """
    fits = len(row) == len(head.columns)
    for i, cell in enumerate(row):
        column = head.columns[i] if i < len(head.columns) else UNKNOWN
        name = head.names[i] if i < len(head.names) else ""
        if column.treated:
            role = column.get_cell_role(cell.value)
        elif fits and (job.fields or is_record_id((name,), cell.value)):
            tally.left[column.name] += 1
            continue
        else:
            role = PROSE
        (tally.left if column.role == KEPT else tally.treated)[column.name or "further cells"] += 1
        yield i, name, role


def _read_row_metadata(row: Sequence[str], columns: tuple[str, ...]) -> dict[str, object]:
    """Return the row as metadata, for policies that use names from it; a cell with ``;`` or ``|`` is a list."""
    return collect_metadata(dict(zip(columns, map(_read_list, row), strict=False)))


def _read_list(cell: str) -> str | list[str]:
    """Return the words of a cell that is a list, else the cell without blanks around it."""
    if ";" not in cell and "|" not in cell:
        return cell.strip()
    return [word for word in re.split(r"\s*[;|]\s*", cell.strip()) if word]


def _encode_row(
    row: Sequence[Cell],
    head: _Head,
    end: str,
    chosen: Sequence[int],
    write_row: WriteRow,
    parts: tuple[str, ...],
) -> bytes:
    """Return a row with new values of the cells ``chosen``."""
    out = [cell.raw for cell in row]
    for i, part in zip(chosen, parts, strict=bool(chosen)):
        if part != row[i].value:
            out[i] = row[i].format_value(part, head.delimiter)
    return head.encoding.encode(write_row(head.delimiter.join(out)) + end)


def _encode_comment(mark: str, end: str, encoding: Encoding, write_row: WriteRow, parts: tuple[str, ...]) -> bytes:
    return encoding.encode(write_row(mark + parts[0]) + end)


CSV = Format(
    "csv", _parse_table, _read_table_chunks, many=True, fields=True, unit="row", shared=True, columns=_list_columns
)
TSV = replace(
    CSV,
    name="tsv",
    chunks=partial(_read_table_chunks, delimiter="\t"),
    columns=partial(_list_columns, delimiter="\t"),
)
