"""The documents of a corpus with their metadata, and the fields to read so that none is released unchanged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from types import MappingProxyType

from allonym.batch import format_lead_in, split_field_name
from allonym.detection.lexicon import fold_keeping_length
from allonym.detection.turns import add_turns
from allonym.document import Document, Interval
from allonym.errors import DataError, UnknownNameError, UsageError
from allonym.files import read_documents
from allonym.files.fields import find_metadata_value
from allonym.files.metadata import match_metadata_rows
from allonym.swap.protected import list_core_words
from allonym.swap.sections import everything

_NOTHING: Mapping[str, Sequence[str]] = MappingProxyType({})
_ALIASES = ("abbreviation", "abbreviations", "alias", "aliases", "ticker", "tickers", "symbol", "ticker_symbol")


def read_corpus_documents(
    source: str | Path,
    protect: str,
    fields: Sequence[str] | None = None,
    beside: Sequence[str] = (),
    format: str | None = None,
    metadata: str | Path | None = None,
) -> tuple[Document, ...]:
    """Read the documents of a source with their metadata.

    Args:
        source, protect, format, metadata: as for :func:`allonym.swap.load`.
        fields: those of :func:`list_text_fields`.
        beside: those of them that are no text of the corpus, but released with it.

    Raises:
        UsageError: no such file, format or field.
        DataError: a file cannot be read, or there is no document with text.
    """
    documents = [
        add_turns(_remove_field_names(d, [protect, *beside]) if fields else d)
        for d in read_documents(source, fields=fields, format=format)
    ]
    if metadata is not None:
        rows = match_metadata_rows(metadata, [document.id for document in documents])
        documents = [replace(d, meta={**d.meta, **row}) for d, row in zip(documents, rows, strict=True)]
    if not any(everything(d) for d in documents):
        raise DataError(f"{source}: there is no text in it" + (f" in {', '.join(fields)}" if fields else ""))
    return tuple(documents)


def list_text_fields(
    source: str | Path,
    protect: str,
    fields: Sequence[str] | None,
    format: str | None = None,
    lists: Mapping[str, Sequence[str]] = _NOTHING,
) -> tuple[str, ...] | None:
    """Return the fields to read: the named ones, the protected one, and those that list direct identifiers or further
    names, wherever any document has text in them, so that none of these is released beside the text.

    Args:
        lists: label to metadata keys, as in :attr:`allonym.Policy.metadata`.
    """
    if not fields:
        return None
    keys = (protect.rpartition(".")[2], *_ALIASES, *chain.from_iterable(lists.values()))
    names = set(map(split_field_name, keys))
    paths = dict.fromkeys(f"{outer}{protect}" for outer in ("", "meta.", "metadata.") if "." in protect)
    for document in read_documents(source, fields=fields, format=format):
        nested = ((f"{outer}.", document.meta.get(outer)) for outer in ("meta", "metadata"))
        for outer, record in (("", document.meta), *nested):
            if isinstance(record, Mapping):
                more = [k for k, value in record.items() if value and split_field_name(str(k)) in names]
                paths.update((f"{outer}{key}", None) for key in more)
    return tuple(dict.fromkeys((*fields, *(path for path in paths if _has_text_field(source, format, path)))))


def _has_text_field(source: str | Path, format: str | None, path: str) -> bool:
    """Whether any document has text in the field of this path."""
    try:
        documents = read_documents(source, fields=[path], format=format)
        return any(part.strip() for d in documents for part in d.part_texts())
    except UnknownNameError:
        return False


def is_named_in_unread_text(document: Document, value: str) -> bool:
    """Whether the record names the value in a string that is not read, such as a title, and so stays as it is."""
    words = " ".join(list_core_words(value))
    return len(words) > 2 and any(
        f" {words} " in f" {' '.join(fold_keeping_length(string).split())} " and string.strip() not in document.text
        for string in _iterate_nested_strings(document.meta)
    )


def _iterate_nested_strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (Mapping, list, tuple)):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _iterate_nested_strings(item)


def _remove_field_names(document: Document, kept_names: Sequence[str]) -> Document:
    """Return the document without the names of fields in front of short texts, so that these are text as others are;
    only the fields of ``kept_names`` keep theirs."""
    if document.turns or not document.parts:
        return document
    text = document.text
    pieces: list[str] = []
    parts: list[Interval] = []
    before = offset = 0
    for n, (a, b) in enumerate(document.parts):
        lead = text[before:a].lstrip("\n")
        is_kept = any(lead == format_lead_in(name.rpartition(".")[2], text[a:b]) for name in kept_names)
        between = ("\n" if n else "") + (lead if is_kept else "")
        pieces += (between, text[a:b])
        parts.append((offset + len(between), offset + len(between) + b - a))
        before, offset = b, parts[-1][1]
    return replace(document, text="".join(pieces), parts=tuple(parts))


def list_protected_values(documents: Sequence[Document], protect: str) -> tuple[str, ...]:
    """Return each document's value of the protected metadata.

    Raises:
        UsageError: no document has this key; the message names the nearest ones.
        DataError: some lack it, or there are fewer than two documents or values.
    """
    values = [get_metadata(d, protect) for d in documents]
    if not any(values):
        keys = sorted({str(k) for d in documents for k, v in d.meta.items() if isinstance(v, (str, int))})
        if not keys:
            required = f"protect: {protect!r} is required"
            raise UsageError(f"{required}, and the documents have no metadata; a table may give it")
        raise UnknownNameError("metadata key", protect, keys, "protect")
    count = len(documents)
    if lacking := [i for i, v in enumerate(values, 1) if not v]:
        raise DataError(
            f"{len(lacking)} of {count} documents have no {protect!r}, the first is number {lacking[0]}; "
            "every document needs the metadata that is protected"
        )
    if count < 2:
        required = f"two at least are required, with two values of {protect!r}"
        raise DataError(f"one document has nobody to exchange with; {required}")
    if len(set(values)) < 2:
        raise DataError(f"all {count} documents have the same {protect!r}; two values at least are required")
    return tuple(values)


def get_metadata(document: Document, key: str) -> str:
    """Return a document's metadata, by key, by key in ``lower_case_words``, or by dotted path; empty if it has none."""
    value = find_metadata_value(document.meta, key)
    if value is None and "." in key:
        value = document.meta.get(key.rpartition(".")[2])
    if isinstance(value, (list, tuple)) and len(value) == 1:
        value = value[0]
    return str(value).strip() if isinstance(value, (str, int)) and not isinstance(value, bool) else ""


def list_aliases(document: Document, value: str, kind: str, aliases: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return further names of a document's protected value, those of the user and those of its metadata."""
    entries: list[object] = [aliases.get(value, ())]
    if kind in ("COMPANY", "ORGANIZATION"):
        entries += [document.meta.get(key) for key in _ALIASES]
    names = [n for e in entries for n in ([e] if isinstance(e, str) else e if isinstance(e, (list, tuple)) else ())]
    return tuple(dict.fromkeys(n.strip() for n in names if isinstance(n, str) and len(n.strip()) > 1))
