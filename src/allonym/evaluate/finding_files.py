"""Findings and anonymised texts from files, matched with the texts of a gold standard by id, or else by order."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from allonym.document import Span
from allonym.errors import DataError
from allonym.evaluate.findings import found_in_plans
from allonym.evaluate.reading import read_pairs
from allonym.plan import digest, read_plan_rows
from allonym.train.records import Record, list_spans, read_records, read_text_file

__all__ = ["read_anonymised", "read_findings", "read_plans"]


def read_findings(path: Path | str, gold: Sequence[Record], format: str | None = None) -> list[list[Span]]:
    """Read the spans of a second annotated file of the same texts, or the masked spans of TAB's own output.

    Args:
        path: a corpus that :func:`allonym.train.records.read_records` reads; or JSON ``{id: [[start, end], ...]}``, as
            TAB's evaluation takes it, whose findings tell no types.
        gold: the records of the gold.
        format: of the corpus, where its suffix and content do not tell it.

    Raises:
        DataError: the file is no such corpus, or its texts are not those of the gold.
    """
    path = Path(path)
    if format is None and path.suffixes[-1:] == [".json"] and (masks := _read_masks(path)) is not None:
        return _place_masks(masks, gold, path)
    records = read_records(path, format)
    order = _match_order([r["id"] for r in gold], [r["id"] for r in records], f"{path}")
    out = []
    for number, (index, record) in enumerate(zip(order, gold, strict=True), 1):
        if records[index]["text"] != record["text"]:
            raise DataError(f"{path}: text {number} is not that of the gold; anonymised texts go with --anonymised")
        out.append(list_spans(records[index]))
    return out


def read_anonymised(
    path: Path | str, gold: Sequence[Record], fields: Sequence[str] = (), format: str | None = None
) -> list[str]:
    """Read the anonymised texts of a file or folder of any format that allonym reads.

    Args:
        path: the file or folder.
        gold: the records of the gold.
        fields: that hold the text; by default ``text`` where every record has it, else all text.
        format: where a suffix does not tell it.

    Raises:
        UsageError: no such file, format or field.
        DataError: not as many texts as the gold has, or a text has no partner.
    """
    pairs = read_pairs(path, path, field=tuple(fields) or None, format=format)
    ids = [r["id"] for r in gold]
    names = list(pairs.ids)
    if Path(path).is_dir() and not set(ids) <= set(names):
        names = [PurePath(name).stem for name in names]
    return [pairs.original[index] for index in _match_order(ids, names, str(path))]


def read_plans(path: Path | str, texts: Sequence[str]) -> list[list[Span]]:
    """Read what the plans of a JSON lines file (``allonym anonymize --plans``, ``allonym swap --plan``) replace.

    A plan is bound to a digest of its text, so that neither order nor ids matter.

    Raises:
        DataError: a line is no plan, or a text has none.
    """
    plans = {plan.digest: plan for _, plan in read_plan_rows(read_text_file(Path(path)), path)}
    lacking = [number for number, text in enumerate(texts, 1) if digest(text) not in plans]
    if lacking:
        raise DataError(f"{path}: {len(lacking)} of {len(texts)} texts have no plan, the first is number {lacking[0]}")
    return found_in_plans(texts, [plans[digest(text)] for text in texts])


def _read_masks(path: Path) -> dict[str, list[Any]] | None:
    try:
        value = json.loads(read_text_file(path))
    except (json.JSONDecodeError, RecursionError):
        return None
    if not isinstance(value, dict) or not all(isinstance(places, list) for places in value.values()):
        return None
    return value


def _place_masks(masks: Mapping[str, list[Any]], gold: Sequence[Record], path: Path) -> list[list[Span]]:
    out = []
    for number, record in enumerate(gold, 1):
        if record["id"] not in masks:
            raise DataError(f"{path}: text {number} of the gold has no masked places there")
        spans = []
        for place in masks[record["id"]]:
            is_valid = isinstance(place, list) and len(place) == 2 and all(type(number) is int for number in place)
            if not is_valid or not 0 <= place[0] < place[1] <= len(record["text"]):
                raise DataError(
                    f"{path}, text {number}: [start, end] with 0 <= start < end <= {len(record['text'])} is required"
                )
            spans.append(Span(place[0], place[1], ""))
        out.append(sorted(spans))
    return out


def _match_order(ids: Sequence[str], names: Sequence[str], where: str) -> list[int]:
    """Return the index of each record's partner: by id where all ids exist and differ, else by order."""
    index_of = {id: i for i, id in enumerate(names)}
    if len(index_of) == len(names) and len(set(ids)) == len(ids) and all(id in index_of for id in ids):
        return [index_of[id] for id in ids]
    if len(names) != len(ids):
        raise DataError(f"{where}: one text for each of the gold's is required; got {len(names)} for {len(ids)}")
    return list(range(len(ids)))
