"""A table beside a corpus: rows that describe its documents, matched by id or file name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from allonym.errors import DataError
from allonym.files.run import read_documents

_NAMING = ("id", "doc_id", "document", "file", "filename", "file_name", "path")


def match_metadata_rows(table: str | Path, names: Sequence[str]) -> list[Mapping[str, object]]:
    """Return the metadata of the table's row for each document; empty if no row names the document.

    Args:
        table: a file of any format that allonym reads.
        names: the documents' ids or file names. A row matches the whole name, the name without its folder, or that
            without its suffixes.

    Raises:
        DataError: the table names no documents, or none of these, or two rows describe one of them differently.
    """
    rows: dict[str, Mapping[str, object]] = {}
    contradicted: set[str] = set()
    for row in read_documents(table, named=False):
        for name in (row.id, *(row.meta.get(key) for key in _NAMING)):
            if isinstance(name, str) and name and rows.setdefault(name, row.meta) != row.meta:
                contradicted.add(name)
    if not rows:
        raise DataError(f"{table}: a column id or file that names the documents is required")
    matches: list[Mapping[str, object]] = []
    for number, document_name in enumerate(names, 1):
        path = PurePosixPath(document_name)
        forms = (document_name, path.name, path.stem, path.name.partition(".")[0])
        match = next((form for form in forms if form in rows), "")
        if match in contradicted:
            raise DataError(f"{table}: two rows describe document {number} differently")
        matches.append(rows.get(match, {}))
    if not any(matches):
        raise DataError(f"{table}: no row names any of the {len(names)} documents by id or file")
    return matches
