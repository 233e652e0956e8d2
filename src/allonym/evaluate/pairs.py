"""Pairs of texts, before and after anonymisation: reads them document by document, checks them and goes through them.

Documents of files go together by the id of their records, else by their place; documents of folders by their file's
relative path. Nothing is guessed: what has no partner is an error that says where."""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from allonym.document import Document
from allonym.errors import DataError, UnknownNameError, UsageError
from allonym.files import read_documents
from allonym.files.fields import find_metadata_value
from allonym.files.items import list_sources
from allonym.files.metadata import match_metadata_rows
from allonym.files.rewrite import UNCOUNTED, rewrite_path
from allonym.plan import Plan, apply_edits_to_parts

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
Advance = Callable[[int, int], None]
"""Called with the steps that are done, and with those in all."""


def check_lengths(
    original: Sequence[str], anonymised: Sequence[str], *beside: Sequence[object] | None, least: int = 1
) -> int:
    """Check that columns have the same length, and return it.

    Args:
        original, anonymised: the same texts before and after, in the same order.
        beside: further columns with a value for each text, such as labels; None: there is no such column.
        least: least number of pairs.

    Raises:
        DataError: unequal lengths, or fewer than ``least`` pairs.
    """
    n = len(original)
    if len(anonymised) != n:
        raise DataError(f"as many anonymised texts as original ones are required; got {n} and {len(anonymised)}")
    for column in beside:
        if column is not None and len(column) != n:
            raise DataError(f"one value for each text is required; got {len(column)} for {n} texts")
    if n < least:
        raise DataError(f"{least} text{'s' * (least > 1)} at least required, got {n}")
    return n


def iterate_with_progress(items: Iterable[T], advance: Advance | None, total: int) -> Iterator[T]:
    """Yield the items, and call ``advance`` with the number of those that are done and with the total after each."""
    for number, item in enumerate(items, 1):
        yield item
        if advance is not None:
            advance(number, total)


def shift_progress(advance: Advance | None, before: int, total: int) -> Advance | None:
    """Return a function that reports the steps of a part, of which ``before`` steps are done, as those of the whole."""
    return None if advance is None else lambda done, _: advance(before + done, total)


def group_items(items: Iterable[T], get_key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return the items of each key, keys and items in the order of their first appearance."""
    out: defaultdict[K, list[T]] = defaultdict(list)
    for item in items:
        out[get_key(item)].append(item)
    return dict(out)


@contextmanager
def prefix_data_errors(where: str) -> Iterator[None]:
    """A context in which the message of every :class:`DataError` begins with ``where``; empty: as it is."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{where}: {error}" if where else str(error)) from None


_TEXT = "text"

Fields = str | Sequence[str] | None


@dataclass(frozen=True, slots=True, repr=False)
class Pairs:
    """Texts before and after anonymisation, in the order of the original.

    Attributes:
        ids: names the pairs, each of them once; where records have no ids, their number from 1. Hidden from ``repr``.
        original, anonymised: the texts. Hidden from ``repr``.
        meta: per pair what the original's record says beside its text. Hidden from ``repr``.
    """

    ids: tuple[str, ...] = field(repr=False)
    original: tuple[str, ...] = field(repr=False)
    anonymised: tuple[str, ...] = field(repr=False)
    meta: tuple[Mapping[str, object], ...] = field(repr=False)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"Pairs({len(self)})"

    def labels(self, key: str) -> list[str]:
        """Return each pair's value of a metadata field, by its name, as ``lower_case_words``, or by a dotted path.

        Raises:
            UsageError: no record has this field; the message says the nearest.
            DataError: some records lack it; the message says how many, and which is the first.
        """
        values = [get_metadata_value(meta, key) for meta in self.meta]
        if not any(values):
            names = sorted({str(k) for m in self.meta for k, v in m.items() if isinstance(v, (str, int))})
            if not names:
                raise UsageError(f"{key!r} is asked for, and the texts have no metadata; a table may give it")
            raise UnknownNameError("metadata key", key, names)
        lacking = [i for i, v in enumerate(values, 1) if not v]
        if lacking:
            raise DataError(
                f"{len(lacking)} of {len(values)} texts have no {key!r}, the first is number {lacking[0]}; "
                "every text needs one"
            )
        return values


def read_pairs(
    original: str | Path,
    anonymised: str | Path | None = None,
    *,
    field: Fields = None,
    anonymised_field: Fields = None,
    format: str | None = None,
    metadata: str | Path | None = None,
) -> Pairs:
    """Read an original corpus and an anonymised version of it.

    Args:
        original: a file or folder of any format that allonym reads.
        anonymised: the other version; None: a second field of the same records.
        field: the field or fields that hold the text, such as ``text`` or ``user.name``; None: ``text`` where every
            record has it or ``anonymised`` is None, else all text.
        anonymised_field: those of the anonymised version; None: as ``field``. Required where ``anonymised`` is None.
        format: of both, where a suffix does not say it.
        metadata: a table with a row per document: a column ``id`` or ``file``, and whatever it says of it.

    Raises:
        UsageError: no such file, format or field (where one is named), or a folder beside a file.
        DataError: a file cannot be read, no text is there, or documents lack a partner.
    """
    second = original if anonymised is None else anonymised
    if anonymised is None and anonymised_field is None:
        raise UsageError("an anonymised version is required: another file or folder, or a field of the same records")
    paths = Path(original), Path(second)
    if all(p.exists() for p in paths) and paths[0].is_dir() != paths[1].is_dir():
        folder, file = paths if paths[0].is_dir() else paths[::-1]
        raise UsageError(f"{folder} is a folder and {file} a file; two files or two folders are required")
    names = _normalise_fields(field) or ((_TEXT,) if anonymised is None else ())
    before = _read_documents(original, names, format)
    beside = None if anonymised is not None else _read_texts_from_field(before, _normalise_fields(anonymised_field))
    after = beside or _read_documents(second, _normalise_fields(anonymised_field) or names, format)
    keys, partners = list(before), _order_partner_documents(before, after, str(original), str(second))
    metas = [d.meta for d in before.values()]
    if metadata is not None:
        metas = [{**meta, **row} for meta, row in zip(metas, match_metadata_rows(metadata, keys), strict=True)]
    return Pairs(
        tuple(keys), tuple(_join_text(d) for d in before.values()), tuple(_join_text(d) for d in partners), tuple(metas)
    )


def rewrite_texts(
    path: Path,
    target: Path,
    texts: Sequence[str],
    plans: Sequence[Plan],
    *,
    field: Fields = None,
    format: str | None = None,
    overwrite: bool = False,
) -> None:
    """Write a file or folder again whose texts have changed.

    Args:
        path: what was read; target: what is written.
        texts: as :func:`read_pairs` read them.
        plans: of what ends at the new text; only the edits count, whose offsets are those in ``texts``.
        field: the field or fields that held the text, as for :func:`read_pairs`.
        format: as it was read.
        overwrite: replace what exists.

    Raises:
        DataError: a document differs from what was read.
        UsageError: the target exists.
    """
    fields = _normalise_fields(field)
    if not fields and path.is_file():
        documents = list(read_documents(path, format=format, named=False))
        if all(isinstance(d.meta.get(_TEXT), str) for d in documents):
            fields = (_TEXT,)
    waiting: defaultdict[str, list[Plan]] = defaultdict(list)
    for text, plan in zip(texts, plans, strict=True):
        waiting[text].append(plan)

    def rewrite_parts(number: int, document: Document) -> tuple[str, ...] | None:
        if number == UNCOUNTED:
            return document.part_texts()
        document = document if document.turns else document.drop_field_names()
        text, places = document.text, document.parts or ((0, len(document.text)),)
        ready = waiting[text]
        if not ready:
            raise DataError(f"{path}: document {number + 1} differs from what was read; name the field of its text")
        new_text = ready.pop(0) if len(ready) > 1 else ready[0]
        return tuple(apply_edits_to_parts(text, places, new_text.edits))

    rewrite_path(path, target, rewrite_parts, fields=fields or None, format=format, overwrite=overwrite)


def get_metadata_value(meta: Mapping[str, object], key: str) -> str:
    """Return a record's metadata by its key, as ``lower_case_words``, or by a dotted path; empty where it has none."""
    value = find_metadata_value(meta, key)
    if value is None and "." in key:
        value = meta.get(key.rpartition(".")[2])
    if isinstance(value, (list, tuple)) and len(value) == 1:
        value = value[0]
    if isinstance(value, bool):
        return str(value).lower()
    return str(value).strip() if isinstance(value, (str, int, float)) else ""


def _normalise_fields(fields: Fields) -> tuple[str, ...]:
    return () if not fields else (fields,) if isinstance(fields, str) else tuple(fields)


def _join_text(document: Document) -> str:
    """Return all parts of a document as lines, without names of fields in front of them."""
    return document.text if document.turns else document.drop_field_names().text


def _read_documents(source: str | Path, fields: tuple[str, ...], format: str | None) -> dict[str, Document]:
    """Return the documents by their names, in order."""
    items, folder = list_sources(source, format)
    documents: dict[str, Document] = {}
    for item in items:
        if item.refused or item.source is None:
            raise DataError(f"{item.name}: {item.refused or 'a file or folder is required'}")
        for name, document in _read_file(item.source, fields, format, item.name):
            name_in_source = (item.name if not name else f"{item.name}:{name}") if folder else name or "1"
            documents[name_in_source] = document
    if not documents:
        raise DataError(f"{source}: there is no document in it")
    if not any(d.text.strip() for d in documents.values()):
        names = {str(k) for d in documents.values() for k, v in d.meta.items() if isinstance(v, str)}
        if len(fields) == 1 and names and fields[0] not in names:
            raise UnknownNameError("field", fields[0], names, str(source))
        raise DataError(f"{source}: there is no text in it" + (f" in {', '.join(fields)}" if fields else ""))
    return documents


def _read_file(path: Path, fields: tuple[str, ...], format: str | None, name: str) -> Iterator[tuple[str, Document]]:
    """Yield the documents of a file with their id or number; without a name where the file is one document."""
    documents = list(read_documents(path, fields=fields, format=format, named=False))
    if not fields and documents and all(isinstance(d.meta.get(_TEXT), str) for d in documents):
        documents = [_replace_text(d, str(d.meta[_TEXT])) for d in documents]
    ids = [d.id for d in documents]
    if not any(ids):
        yield from (("", documents[0]),) if len(documents) == 1 else ((str(i), d) for i, d in enumerate(documents, 1))
        return
    if lacking := [i for i, id in enumerate(ids, 1) if not id]:
        raise DataError(
            f"{name}: {len(lacking)} of {len(ids)} records have no id, the first is number {lacking[0]}; "
            "every record needs one, or none has one"
        )
    first = dict(zip(reversed(ids), range(len(ids), 0, -1), strict=True))
    if twice := [i for i, id in enumerate(ids, 1) if first[id] < i]:
        raise DataError(f"{name}: {len(twice)} of {len(ids)} ids stand there before, the first is number {twice[0]}")
    yield from zip(ids, documents, strict=True)


def _read_texts_from_field(documents: Mapping[str, Document], fields: tuple[str, ...]) -> dict[str, Document] | None:
    """Return the same records with the text of another field, if that is one plain field that all of them have."""
    texts = [d.meta.get(fields[0]) for d in documents.values()] if len(fields) == 1 else []
    strings = [text for text in texts if isinstance(text, str)]
    if len(strings) < len(documents) or not any(text.strip() for text in strings):
        return None
    return {key: _replace_text(d, text) for (key, d), text in zip(documents.items(), strings, strict=True)}


def _replace_text(document: Document, text: str) -> Document:
    return Document(document.id, text, document.meta)


def _order_partner_documents(
    first: Mapping[str, Document], second: Mapping[str, Document], first_name: str, second_name: str
) -> list[Document]:
    """Return the second documents in the order of the first.

    Raises:
        DataError: some have no partner.
    """
    numbered = [all(k == str(i) for i, k in enumerate(keys, 1)) for keys in (first, second)]
    bare = [not any(d.id for d in documents.values()) for documents in (first, second)]
    if all(bare) and all(numbered) and len(first) != len(second):
        raise DataError(
            f"{second_name}: as many documents as in {first_name} are required, since none has an id; "
            f"got {len(second)} for {len(first)}"
        )
    missing = [i for i, key in enumerate(first, 1) if key not in second]
    more = [i for i, key in enumerate(second, 1) if key not in first]
    reasons = []
    if missing:
        reasons.append(
            f"{len(missing)} of the {len(first)} documents of {first_name} are missing, the first is {missing[0]}"
        )
    if more:
        reasons.append(f"{len(more)} of its {len(second)} documents are not in {first_name}, the first is {more[0]}")
    if reasons:
        lacks = " (one version has ids, the other has none)" if bare[0] != bare[1] else ""
        raise DataError(f"{second_name}: {'; '.join(reasons)}{lacks}")
    return [second[key] for key in first]


def write_rows(rows: Sequence[Mapping[str, object]], head: Sequence[str], kind: str) -> str:
    """Write rows as ``csv``, with the header ``head``, or as ``jsonl``: an object in each line."""
    if kind != "csv":
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, head, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
