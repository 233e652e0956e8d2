"""The two tasks of a study (P3 3.1.3.1 and 3.1.3.2): the assignment of items, the key, which stays secret, and answers.

A page names texts and people by tokens only. What a token stands for is in the study's key, which no page holds.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

from allonym.errors import DataError, UsageError
from allonym.evaluate.profiles import Subject, deal_items

COLLECT, JUDGE = "collect", "judge"
FORM = "allonym intruder study"
FIELDS: Mapping[str, tuple[str, ...]] = {COLLECT: ("text",), JUDGE: ("identified", "name", "knowledge", "reason")}
"""What an answer holds, by task."""
PER_PAGE = 10
LEAST = 500
"""Characters that a description needs (P3)."""
_SAID = {"yes": True, "no": False}


@dataclass(frozen=True, slots=True)
class Entry:
    """The meaning of a token.

    Attributes:
        token: its name on pages.
        id: of the text; empty in a collection.
        subject: the true name. Hidden from ``repr``.
        group: fame class; empty: none.
        link, facts: what a writer is told of the person. Hidden from ``repr``.
        text: what a judge reads; not kept in the key. Hidden from ``repr``.
    """

    token: str
    id: str
    subject: str = field(repr=False)
    group: str = ""
    link: str = field(default="", repr=False)
    facts: Mapping[str, str] = field(default_factory=dict, repr=False)
    text: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Sheets:
    """A study: its pages, and the meaning of their tokens.

    Attributes:
        task: ``collect`` or ``judge``.
        study: a name that ties answers to it.
        entries: token to entry. Hidden from ``repr``.
        pages: tokens of each page, in the order of showing.
    """

    task: str
    study: str
    entries: Mapping[str, Entry] = field(repr=False)
    pages: tuple[tuple[str, ...], ...]

    def to_key(self) -> str:
        """Return the key as JSON: everything but the texts. It reveals the truth: keep it from judges."""
        entries = [
            {"token": e.token, "id": e.id, "subject": e.subject, "group": e.group, "facts": dict(e.facts)}
            for e in self.entries.values()
        ]
        out = {"form": f"{FORM}, key", "version": 1, "task": self.task, "study": self.study}
        return json.dumps({**out, "entries": entries, "pages": self.pages}, ensure_ascii=False, indent=1) + "\n"


@dataclass(frozen=True, slots=True)
class Given:
    """One answer: its author, its item, and its content. Hidden from ``repr`` but for the token."""

    token: str
    page: int
    participant: str = field(repr=False)
    said: Mapping[str, str] = field(repr=False)


def make_judging_sheets(
    ids: Sequence[str],
    texts: Sequence[str],
    subjects: Sequence[str],
    groups: Sequence[str] = (),
    *,
    judgements: int = 3,
    judges: int | None = None,
    per_page: int = PER_PAGE,
    seed: int = 0,
) -> Sheets:
    """Deal texts to judges. As in P3 a judge gets random texts of one group.

    Args:
        ids, texts, subjects: one per text: its id, what judges read, the true name.
        groups: fame classes, one per text; empty: one group.
        judgements: how many judges read each text; pages then hold ``per_page`` texts or somewhat fewer.
        judges: pages per group instead, of ``per_page`` texts each, so that the texts get as many judgements as there
            are, no text more than one beyond another.
        per_page: texts of a page.
        seed: of the dealing.

    Raises:
        UsageError: no text is asked for, or so many judges leave texts unread.
        DataError: unequal lengths, no text, an empty one, or an id twice.
    """
    n = len(ids)
    _check_columns(ids, texts, subjects, groups)
    if judgements < 1 or per_page < 1 or (judges is not None and judges < 1):
        raise UsageError("judging: judges, judgements and texts of a page must be 1 or more")
    rng = Random(f"judging {seed}")
    width = len(str(n))
    order = list(range(n))
    rng.shuffle(order)
    entries = {}
    members: dict[str, list[str]] = {}
    for position, i in enumerate(order, 1):
        token, group = f"t{position:0{width}}", groups[i] if groups else ""
        entries[token] = Entry(token, ids[i], subjects[i], group, text=texts[i])
        members.setdefault(group, []).append(token)
    pages: list[tuple[str, ...]] = []
    for group in sorted(members):
        tokens = members[group]
        size = min(per_page, len(tokens))
        if judges is None:
            hands = math.ceil(len(tokens) * judgements / size)
            base, more = divmod(len(tokens) * judgements, hands)
            sizes = [base + 1] * more + [base] * (hands - more)
        else:
            sizes = [size] * judges
            if size * judges < len(tokens):
                least = math.ceil(len(tokens) / size)
                raise UsageError(f"judging: {least} judges required for {len(tokens)} texts at least, got {judges}")
        pages += [tuple(tokens[i] for i in hand) for hand in deal_items(len(tokens), sizes, rng)]
    return Sheets(JUDGE, _make_token(JUDGE, seed, [entries[t].text for p in pages for t in p]), entries, tuple(pages))


def make_collection_sheets(subjects: Sequence[Subject], writers: int, *, each: int = 1, seed: int = 0) -> Sheets:
    """Deal people to writers: ``each`` of every group, groups in the order of the pool, as in P3.

    Args:
        subjects: the pool.
        writers: how many pages.
        each: how many of each group a writer describes.
        seed: of the dealing.

    Raises:
        UsageError: no writer, or a group is smaller than ``each``.
        DataError: the pool is empty, or a name stands twice in it.
    """
    if writers < 1 or each < 1:
        raise UsageError("collection: writers, and people of each group, must be 1 or more")
    if not subjects:
        raise DataError("collection: one person at least is required, got none")
    if len({s.name.casefold() for s in subjects}) < len(subjects):
        raise DataError("collection: a name stands twice in the pool")
    width = len(str(len(subjects)))
    entries = {
        f"p{i:0{width}}": Entry(f"p{i:0{width}}", "", s.name, s.group, s.link, s.facts)
        for i, s in enumerate(subjects, 1)
    }
    members: dict[str, list[str]] = {}
    for token, entry in entries.items():
        members.setdefault(entry.group, []).append(token)
    rng = Random(f"collection {seed}")
    pages: list[tuple[str, ...]] = [() for _ in range(writers)]
    for group, tokens in members.items():
        if len(tokens) < each:
            raise UsageError(f"collection: group {group!r} has {len(tokens)} people, {each} for each writer required")
        hands = deal_items(len(tokens), [each] * writers, rng)
        pages = [(*page, *(tokens[i] for i in hand)) for page, hand in zip(pages, hands, strict=True)]
    return Sheets(COLLECT, _make_token(COLLECT, seed, [s.name for s in subjects], writers), entries, tuple(pages))


def read_key(path: Path) -> Sheets:
    """Read the key of a study.

    Raises:
        UsageError: the file cannot be read.
        DataError: it is no key.
    """
    try:
        key = json.loads(_read_content(path))
        if key["form"] != f"{FORM}, key" or key["task"] not in FIELDS:
            raise ValueError
        entries = {
            e["token"]: Entry(e["token"], e["id"], e["subject"], e["group"], facts=e.get("facts", {}))
            for e in key["entries"]
        }
        pages = tuple(tuple(map(str, page)) for page in key["pages"])
        if any(token not in entries for page in pages for token in page):
            raise ValueError
        return Sheets(key["task"], str(key["study"]), entries, pages)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DataError(f"{path.name}: the key of a study is required, as `intruder-study` writes it") from None


def read_answers(paths: Iterable[Path], sheets: Sheets) -> list[Given]:
    """Read the answers that pages saved, as JSON or CSV; empty ones are left out.

    Args:
        paths: files, one or more answers each.
        sheets: the study that they answer.

    Raises:
        UsageError: a file cannot be read.
        DataError: a file holds no answers, those of another study or to another task, an answer is about nothing on its
            page, or one participant answered one thing twice. Nothing of an answer is shown.
    """
    out: list[Given] = []
    answered: dict[tuple[int, str, str], str] = {}
    for path in paths:
        for number, row in enumerate(_read_rows(path), 1):
            where = f"{path.name}, answer {number}"
            answer = _read_answer(row, sheets, where)
            if answer is None:
                continue
            key = (answer.page, answer.participant, answer.token)
            if key in answered:
                raise DataError(f"{where}: the same page, participant and text are in {answered[key]} already")
            answered[key] = path.name
            out.append(answer)
    return out


def has_claimed(answer: Given) -> bool:
    """Whether a judge said that the person could be identified."""
    return _SAID.get(answer.said.get("identified", ""), False)


def _read_answer(row: Mapping[str, object], sheets: Sheets, where: str) -> Given | None:
    values = {
        k: str(row.get(k) or "").strip() for k in ("study", "task", "page", "participant", "item", *FIELDS[sheets.task])
    }
    if values["task"] != sheets.task:
        raise DataError(f"{where}: answers to the task {sheets.task} are required, got some to another")
    if values["study"] != sheets.study:
        raise DataError(f"{where}: belongs to another study than the key")
    page = int(values["page"]) if values["page"].isascii() and values["page"].isdigit() else 0
    if not 1 <= page <= len(sheets.pages) or values["item"] not in sheets.pages[page - 1]:
        raise DataError(f"{where}: is about nothing on a page of this study")
    if sheets.task == JUDGE and values["identified"] not in ("", *_SAID):
        raise DataError(f"{where}: identified must be yes, no or empty")
    fields = {k: values[k] for k in FIELDS[sheets.task]}
    empty = not fields["identified"] if sheets.task == JUDGE else not fields["text"]
    return None if empty else Given(values["item"], page, values["participant"], fields)


def _read_rows(path: Path) -> list[Mapping[str, Any]]:
    content = _read_content(path)
    try:
        if content.lstrip().startswith("{"):
            objects = json.loads(content)
            if objects.get("form") != FORM:
                raise ValueError
            beside = {k: objects[k] for k in ("study", "task", "page")} | {
                "participant": objects.get("participant", "")
            }
            return [{**answer, **beside} for answer in objects["answers"]]
        rows = list(csv.DictReader(io.StringIO(content, newline="")))
        if not rows or any("item" not in row or "study" not in row for row in rows):
            raise ValueError
        return list(rows)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, csv.Error):
        raise DataError(f"{path.name}: answers as a page saves them, JSON or CSV, are required") from None


def _read_content(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read {path.name}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DataError(f"{path.name}: is not UTF-8") from None


def _check_columns(ids: Sequence[str], texts: Sequence[str], subjects: Sequence[str], groups: Sequence[str]) -> None:
    n = len(ids)
    if len(texts) != n or len(subjects) != n or (groups and len(groups) != n):
        raise DataError(f"judging: a text, a subject and a group for each id are required; got {n} ids")
    if not n:
        raise DataError("judging: one text at least is required, got none")
    if len(set(ids)) < n:
        raise DataError("judging: an id stands twice")
    if bare := sum(not t.strip() for t in texts):
        raise DataError(f"judging: {bare} of {n} texts are empty; judges need something to read")
    if bare := sum(not s.strip() for s in subjects):
        raise DataError(f"judging: {bare} of {n} texts have no subject")


def _make_token(*parts: object) -> str:
    return sha256(json.dumps(parts).encode()).hexdigest()[:10]
