"""Parquet: the rows of each group are documents. The schema, metadata, other columns and compression are kept.

Each column is looked at first, see :mod:`allonym.files.columns`, and a value has the same replacement in all rows. A
column of numbers that identify becomes one of text. Binary values are left out (null), unless the policy keeps pictures
or names the column as one to keep.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, BinaryIO, cast

from allonym.batch import import_arrow, is_text_type, join_fields, read_arrow_values
from allonym.document import KEPT, PROSE
from allonym.errors import UnknownNameError, hide_foreign_errors
from allonym.files.columns import SAMPLE_ROWS, UNKNOWN, Column, decide_fields
from allonym.files.fields import (
    FieldKeys,
    collect_metadata,
    find_covering_field,
    find_record_id,
    format_masked_keys,
    is_plain_key,
    is_record_id,
)
from allonym.files.record import Chunk, Draft, Format, Job, ParsedChunk, Piece, Tally

ROWS = 1024
"""Greatest number of rows in a batch."""


def _open_parquet(arrow: Any, stream: BinaryIO) -> Any:
    import pyarrow.parquet as pq

    with hide_foreign_errors("not a Parquet file", arrow.ArrowException, OSError):
        return pq.ParquetFile(stream)


def _read_arrow_chunks(stream: BinaryIO, job: Job, size: int, start: int) -> Iterator[Chunk]:
    arrow = import_arrow()
    if not stream.seekable():
        stream = io.BytesIO(stream.read())
    file = _open_parquet(arrow, stream)
    schema = file.schema_arrow
    names = [f.name for f in schema]
    for name in job.fields:
        if not any(find_covering_field((column,), (name,)) or name.startswith(f"{column}.") for column in names):
            raise UnknownNameError("column", name, names)
    columns = _decide_columns(arrow, file, job)
    schema = arrow.schema([_make_output_field(arrow, f, columns) for f in schema], schema.metadata)
    infos = [file.metadata.row_group(group) for group in range(file.num_row_groups)]
    codec = infos[0].column(0).compression if infos and names else "SNAPPY"
    yield Chunk(_pack_as_arrow_stream(arrow, schema, []), (codec, True, columns), True, 0)
    end = 0
    with hide_foreign_errors("damaged, or of a kind that is not read", arrow.ArrowException, OSError):
        for group, info in enumerate(infos):
            rows, before = info.num_rows, end
            end += sum(info.column(i).total_compressed_size for i in range(info.num_columns))
            opens = True
            for batch in file.iter_batches(ROWS, row_groups=[group]):
                rows -= batch.num_rows
                data = _pack_as_arrow_stream(arrow, schema, [batch])
                yield Chunk(data, (codec, opens, columns), False, before if rows else end)
                opens = False


def _decide_columns(arrow: Any, file: Any, job: Job) -> dict[FieldKeys, Column]:
    """Decide about the columns of text and of numbers, by their paths, from the first rows of a file."""
    values: dict[FieldKeys, list[str]] = {}
    with hide_foreign_errors("damaged, or of a kind that is not read", arrow.ArrowException, OSError):
        sample = next(file.iter_batches(SAMPLE_ROWS), None)

    def note_text(path: tuple[str, ...], text: str) -> str:
        values.setdefault(path, []).append(text)
        return text

    for f, column in zip(file.schema_arrow, [] if sample is None else sample.columns, strict=sample is not None):
        if _contains_text_type(arrow, f.type):
            for value in read_arrow_values(column):
                _replace_texts(value, (f.name,), note_text)
        elif _is_number_type(arrow, f.type):
            values[f.name,] = [str(value) for value in read_arrow_values(column) if value is not None]
    return decide_fields(values, job.policy)


def _list_columns(stream: BinaryIO, job: Job) -> list[Column]:
    arrow = import_arrow()
    return list(_decide_columns(arrow, _open_parquet(arrow, stream), job).values())


def _make_output_field(arrow: Any, f: Any, columns: Mapping[FieldKeys, Column]) -> Any:
    """Return a field as it is written: numbers that identify become text."""
    column = columns.get((f.name,), UNKNOWN)
    is_covered = _is_number_type(arrow, f.type) and column.treated and column.role not in (KEPT, PROSE)
    return f.with_type(arrow.string()) if is_covered else f


def _is_number_type(arrow: Any, kind: Any) -> bool:
    types = arrow.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def _contains_binary_type(arrow: Any, kind: Any) -> bool:
    types = arrow.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return True
    return any(_contains_binary_type(arrow, kind.field(i).type) for i in range(kind.num_fields))


def _pack_as_arrow_stream(arrow: Any, schema: Any, batches: list[Any]) -> bytes:
    sink = arrow.BufferOutputStream()
    with arrow.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch.cast(schema) if batch.schema != schema else batch)
    return cast(bytes, sink.getvalue().to_pybytes())


def _parse_parquet(chunk: Chunk, job: Job) -> ParsedChunk:
    arrow = import_arrow()
    reader = arrow.ipc.open_stream(chunk.data)
    schema = reader.schema
    batches = list(reader)
    codec, opens, decided = cast("tuple[str, bool, Mapping[FieldKeys, Column]]", chunk.head)
    mark = bytes((int(bool(opens)),)) + str(codec).encode() + b"\0"
    if not batches:
        return ParsedChunk([mark + chunk.data], 0)
    batch = batches[0]
    tally = Tally()
    columns = [(i, f) for i, f in enumerate(schema) if _contains_text_type(arrow, f.type)]
    dropped: list[int] = []
    for i, f in enumerate(schema):
        is_binary = not job.fields and _contains_binary_type(arrow, f.type)
        if is_binary and job.policy.images != "keep" and job.policy.columns.get(f.name) != "keep":
            dropped.append(i)
            tally.treated["binary values left out"] += batch.num_rows
        elif (i, f) not in columns:
            tally.left[f.name] += batch.num_rows
    values = {i: read_arrow_values(batch.column(i)) for i, _ in columns}
    pieces: list[Piece] = []
    new_values: dict[int, dict[int, Any]] = {}

    def keep_row(row: int, parts: tuple[str, ...]) -> bytes:
        """Keep the new texts of a row until its batch is rebuilt."""
        new = iter(parts)

        def take_text(path: tuple[str, ...], text: str) -> str:
            return text if _find_field_to_treat(path, text, job) is None else next(new)

        new_values[row] = {i: _replace_texts(values[i][row], (f.name,), take_text) for i, f in columns}
        return b""

    for row in range(batch.num_rows):
        texts: list[tuple[str, str, str]] = []
        roles: list[str] = []

        def note_text(
            path: tuple[str, ...],
            text: str,
            texts: list[tuple[str, str, str]] = texts,
            roles: list[str] = roles,
        ) -> str:
            name = _find_field_to_treat(path, text, job)
            column = decided.get(path, UNKNOWN)
            role = column.get_cell_role(text)
            if role == KEPT and job.fields:
                role = PROSE
            is_left = name is None or (column.role == KEPT and not job.fields)
            (tally.left if is_left else tally.treated)[name or format_masked_keys(path)] += 1
            if name is not None:
                texts.append((path[-1], text, "\n"))
                roles.append(role)
            return text

        record = {f.name: values[i][row] for i, f in columns}
        for i, f in columns:
            _replace_texts(values[i][row], (f.name,), note_text)
        id = find_record_id((name, value) for name, value in record.items() if isinstance(value, str))
        meta = collect_metadata(record) if job.policy.metadata else {}
        pieces.append(Draft(join_fields(id, texts, meta, roles), partial(keep_row, row), row + 1))

    def join_rows(out: list[bytes | None]) -> bytes:
        kept_rows = [row for row, data in enumerate(out) if data is not None]
        remaining = batch if len(kept_rows) == len(out) else batch.take(arrow.array(kept_rows, arrow.int64()))
        arrays = list(remaining.columns)
        for i in dropped:
            arrays[i] = arrow.nulls(len(kept_rows), schema.field(i).type)
        for i, f in columns:
            arrays[i] = arrow.array([new_values[row][i] for row in kept_rows], f.type)
        return mark + _pack_as_arrow_stream(arrow, schema, [arrow.RecordBatch.from_arrays(arrays, schema=schema)])

    return ParsedChunk(pieces, batch.num_rows, tally, join_rows)


def _find_field_to_treat(path: tuple[str, ...], text: str, job: Job) -> str | None:
    """Return the name in reports of the field of a text to anonymise; None if the text stays."""
    if job.fields:
        return find_covering_field(path, job.fields)
    return None if is_record_id(path, text) else format_masked_keys(path)


def _replace_texts(value: Any, path: tuple[str, ...], change: Callable[[tuple[str, ...], str], str]) -> Any:
    """Return a value with each text replaced by ``change(path, text)``."""
    if isinstance(value, str):
        return change(path, value)
    if isinstance(value, dict):
        return {k: _replace_texts(v, (*path, k), change) for k, v in value.items()}
    if isinstance(value, list):
        return [_replace_texts(v, path, change) for v in value]
    if isinstance(value, tuple):  # an entry of a map
        key = value[0]
        inner = (*path, key) if isinstance(key, str) and is_plain_key(key) else path
        if inner is path:
            key = _replace_texts(key, path, change)
        return (key, *(_replace_texts(v, inner, change) for v in value[1:]))
    return value


def _contains_text_type(arrow: Any, kind: Any) -> bool:
    inner_types = (kind.field(i).type for i in range(kind.num_fields))
    return is_text_type(arrow, kind) or any(_contains_text_type(arrow, inner) for inner in inner_types)


class _Writer:
    """Writes batches in the row groups of the source."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._writer: Any = None
        self._group: list[Any] = []

    def write(self, data: bytes) -> None:
        """Append an anonymised chunk."""
        import pyarrow.parquet as pq

        codec, _, packed = data[1:].partition(b"\0")
        reader = import_arrow().ipc.open_stream(packed)
        if self._writer is None:
            name = codec.decode()
            self._writer = pq.ParquetWriter(
                self._stream, reader.schema, compression="none" if name == "UNCOMPRESSED" else name.lower()
            )
        if data[0]:
            self._write_group()
        self._group += reader

    def _write_group(self) -> None:
        if self._group:
            self._writer.write_table(import_arrow().Table.from_batches(self._group))
        self._group = []

    def write_end(self) -> None:
        """Write the end of the file; the stream stays open."""
        self._write_group()
        if self._writer is not None:
            self._writer.close()


PARQUET = Format(
    "parquet",
    _parse_parquet,
    _read_arrow_chunks,
    _Writer,
    many=True,
    fields=True,
    unit="row",
    shared=True,
    columns=_list_columns,
)
