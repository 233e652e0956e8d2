"""Findings of an anonymisation: from a policy, from the edits of plans, or from an anonymised text by alignment.

Those of files, and anonymised texts, are matched with the texts of a gold standard by id, or else by order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path, PurePath
from typing import Any

from allonym.document import Interval, Span
from allonym.errors import DataError, PlanMismatch
from allonym.evaluate.pairs import Advance, check_lengths, iterate_with_progress, read_pairs
from allonym.pipeline import AnyPolicy, detect
from allonym.plan import Edit, Plan, digest, read_plan_rows
from allonym.policy import Policy
from allonym.text.placeholders import find_placeholders
from allonym.text.words import TOKEN
from allonym.train.records import Record, list_spans, read_records, read_text_file

ALL_SIGNS = 4000
"""Most words and signs of a text for which the alignment also anchors on the very frequent ones."""


def found_by(texts: Sequence[str], policy: AnyPolicy = "default", advance: Advance | None = None) -> list[list[Span]]:
    """Return what the detectors of a policy find in each text, as :func:`allonym.detect` does."""
    policy = Policy.load(policy)
    return [list(detect(text, policy)) for text in iterate_with_progress(texts, advance, len(texts))]


def found_in_plans(texts: Sequence[str], plans: Sequence[Plan]) -> list[list[Span]]:
    """Return what each plan replaces in its text, without insertions.

    Raises:
        DataError: unequal lengths.
        PlanMismatch: a plan belongs to another text.
    """
    check_lengths(texts, texts, plans)
    for number, (text, plan) in enumerate(zip(texts, plans, strict=True), 1):
        if digest(text) != plan.digest:
            raise PlanMismatch(f"plan {number} was made for another text")
    return [[Span(e.start, e.end, e.label) for e in plan.edits if e.start < e.end] for plan in plans]


def found_between(
    original: Sequence[str], anonymised: Sequence[str], advance: Advance | None = None
) -> list[list[Span]]:
    """Return what is missing from each anonymised text, by alignment with the original (Ratcliff and Obershelp).

    Both texts are split into words and signs; a placeholder is one sign. A stretch of the original that is missing from
    the anonymised text is a finding. It has the label of the placeholder in its place, or none: a pseudonym does not
    show what it stands for. What was replaced by itself cannot be found.

    Raises:
        DataError: unequal lengths.
    """
    n = check_lengths(original, anonymised, least=0)
    pairs = iterate_with_progress(zip(original, anonymised, strict=True), advance, n)
    return [[Span(e.start, e.end, e.label) for e in align_edits(before, after)] for before, after in pairs]


def align_edits(before: str, after: str) -> list[Edit]:
    """Return the edits that make ``after`` of ``before``, by the alignment of :func:`found_between`.

    Neighbouring replacements are one edit, unless each word has its own placeholder. Insertions are left out.
    """
    if before == after:
        return []
    spans_before = [m.span() for m in TOKEN.finditer(before)]
    spans_after, labels = _locate_tokens_and_labels(after)
    words, signs = [before[a:b] for a, b in spans_before], [after[a:b] for a, b in spans_after]
    matcher = SequenceMatcher(None, words, signs, autojunk=len(spans_before) + len(spans_after) > 2 * ALL_SIGNS)
    out: list[Edit] = []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag in ("equal", "insert"):
            continue
        labels_there = [labels[j] for j in range(j1, j2) if j in labels]
        if len(labels_there) == j2 - j1 == i2 - i1:  # each word has its own placeholder
            out += [
                Edit(*spans_before[i], signs[j], labels[j]) for i, j in zip(range(i1, i2), range(j1, j2), strict=True)
            ]
        else:
            label = labels_there[0] if len(set(labels_there)) == 1 else ""
            replacement = after[spans_after[j1][0] : spans_after[j2 - 1][1]] if j1 < j2 else ""
            out.append(Edit(spans_before[i1][0], spans_before[i2 - 1][1], replacement, label))
    return out


def _locate_tokens_and_labels(text: str) -> tuple[list[Interval], dict[int, str]]:
    """Split a text into words, signs and placeholders; also return the labels of the placeholders by their index."""
    placeholders = find_placeholders(text)
    out: list[Interval] = []
    labels: dict[int, str] = {}
    position = 0
    for placeholder in placeholders:
        out += [m.span() for m in TOKEN.finditer(text, position, placeholder.start)]
        labels[len(out)] = placeholder.label
        out.append((placeholder.start, placeholder.end))
        position = placeholder.end
    out += [m.span() for m in TOKEN.finditer(text, position)]
    return out, labels


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
        return _convert_masks_to_spans(masks, gold, path)
    records = read_records(path, format)
    order = _find_partner_indices([r["id"] for r in gold], [r["id"] for r in records], f"{path}")
    out = []
    for number, (index, record) in enumerate(zip(order, gold, strict=True), 1):
        if records[index]["text"] != record["text"]:
            raise DataError(f"{path}: text {number} is not that of the gold; anonymised texts go with --anonymised")
        out.append(list_spans(records[index]))
    return out


def read_anonymised_texts(path: Path | str, gold: Sequence[Record], fields: Sequence[str] = ()) -> list[str]:
    """Read the anonymised texts of a file or folder of any format that allonym reads.

    Args:
        path: the file or folder.
        gold: the records of the gold.
        fields: that hold the text; by default ``text`` where every record has it, else all text.

    Raises:
        UsageError: no such file, format or field.
        DataError: not as many texts as the gold has, or a text has no partner.
    """
    pairs = read_pairs(path, path, field=tuple(fields) or None)
    ids = [r["id"] for r in gold]
    names = list(pairs.ids)
    if Path(path).is_dir() and not set(ids) <= set(names):
        names = [PurePath(name).stem for name in names]
    return [pairs.original[index] for index in _find_partner_indices(ids, names, str(path))]


def read_plan_findings(path: Path | str, texts: Sequence[str]) -> list[list[Span]]:
    """Read what the plans of a JSON lines file (``allonym anonymize --plans``, ``allonym swap --plans``) replace.

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


def _convert_masks_to_spans(masks: Mapping[str, list[Any]], gold: Sequence[Record], path: Path) -> list[list[Span]]:
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


def _find_partner_indices(ids: Sequence[str], names: Sequence[str], where: str) -> list[int]:
    """Return the index of each record's partner: by id where all ids exist and differ, else by order."""
    index_of = {id: i for i, id in enumerate(names)}
    if len(index_of) == len(names) and len(set(ids)) == len(ids) and all(id in index_of for id in ids):
        return [index_of[id] for id in ids]
    if len(names) != len(ids):
        raise DataError(f"{where}: one text for each of the gold's is required; got {len(names)} for {len(ids)}")
    return list(range(len(ids)))
