"""The two tasks of a study (P3 3.1.3.1 and 3.1.3.2): the assignment of items, the key, which stays secret, and answers.

A page names texts and people by tokens only. What a token stands for is in the study's key, which no page holds. The
people to be described come from a pool of named ones, or are profiles of fictitious ones.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from allonym.errors import DataError, KnowledgeBaseError, UsageError, hide_foreign_errors
from allonym.evaluate.pairs import group_items
from allonym.kb import KnowledgeBase

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

    def to_key_json(self) -> str:
        """Return the key as JSON: everything but the texts. It reveals the truth: keep it from judges."""
        entries = [
            {"token": e.token, "id": e.id, "subject": e.subject, "group": e.group, "facts": dict(e.facts)}
            for e in self.entries.values()
        ]
        out = {"form": f"{FORM}, key", "version": 1, "task": self.task, "study": self.study}
        return json.dumps({**out, "entries": entries, "pages": self.pages}, ensure_ascii=False, indent=1) + "\n"


@dataclass(frozen=True, slots=True)
class StudyAnswer:
    """One answer: its author, its item, and its content. Hidden from ``repr`` but for the token."""

    token: str
    page: int
    participant: str = field(repr=False)
    fields: Mapping[str, str] = field(repr=False)


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
    for position, i in enumerate(order, 1):
        token = f"t{position:0{width}}"
        entries[token] = Entry(token, ids[i], subjects[i], groups[i] if groups else "", text=texts[i])
    members = group_items(entries, lambda token: entries[token].group)
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
        pages += [tuple(tokens[i] for i in hand) for hand in deal_hands(len(tokens), sizes, rng)]
    return Sheets(JUDGE, _make_item_id(JUDGE, seed, [entries[t].text for p in pages for t in p]), entries, tuple(pages))


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
    tokens = [f"p{i:0{width}}" for i in range(1, len(subjects) + 1)]
    people = zip(tokens, subjects, strict=True)
    entries = {token: Entry(token, "", s.name, s.group, s.link, s.facts) for token, s in people}
    members = group_items(tokens, lambda token: entries[token].group)
    rng = Random(f"collection {seed}")
    pages: list[tuple[str, ...]] = [() for _ in range(writers)]
    for group, tokens in members.items():
        if len(tokens) < each:
            raise UsageError(f"collection: group {group!r} has {len(tokens)} people, {each} for each writer required")
        hands = deal_hands(len(tokens), [each] * writers, rng)
        pages = [(*page, *(tokens[i] for i in hand)) for page, hand in zip(pages, hands, strict=True)]
    return Sheets(COLLECT, _make_item_id(COLLECT, seed, [s.name for s in subjects], writers), entries, tuple(pages))


_MALFORMED = (ValueError, KeyError, TypeError, AttributeError, RecursionError, csv.Error)


def read_key(path: Path) -> Sheets:
    """Read the key of a study.

    Raises:
        UsageError: the file cannot be read.
        DataError: it is no key.
    """
    content = _read_utf8_file(path)
    with hide_foreign_errors(
        f"{path.name}: the key of a study is required, as `intruder-study` writes it", *_MALFORMED
    ):
        key = json.loads(content)
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


def read_answers(paths: Iterable[Path], sheets: Sheets) -> list[StudyAnswer]:
    """Read the answers that pages saved, as JSON or CSV; empty ones are left out.

    Args:
        paths: files, one or more answers each.
        sheets: the study that they answer.

    Raises:
        UsageError: a file cannot be read.
        DataError: a file holds no answers, those of another study or to another task, an answer is about nothing on its
            page, or one participant answered one thing twice. Nothing of an answer is shown.
    """
    out: list[StudyAnswer] = []
    answered: dict[tuple[int, str, str], str] = {}
    for path in paths:
        for number, row in enumerate(_read_answer_rows(path), 1):
            where = f"{path.name}, answer {number}"
            if (answer := _parse_study_answer(row, sheets, where)) is None:
                continue
            key = (answer.page, answer.participant, answer.token)
            if key in answered:
                raise DataError(f"{where}: the same page, participant and text are in {answered[key]} already")
            answered[key] = path.name
            out.append(answer)
    return out


def has_claimed_identification(answer: StudyAnswer) -> bool:
    """Whether a judge said that the person could be identified."""
    return _SAID.get(answer.fields.get("identified", ""), False)


def _parse_study_answer(row: Mapping[str, object], sheets: Sheets, where: str) -> StudyAnswer | None:
    names = ("study", "task", "page", "participant", "item", *FIELDS[sheets.task])
    values = {name: str(row.get(name) or "").strip() for name in names}
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
    return None if empty else StudyAnswer(values["item"], page, values["participant"], fields)


def _read_answer_rows(path: Path) -> list[Mapping[str, Any]]:
    content = _read_utf8_file(path)
    with hide_foreign_errors(f"{path.name}: answers as a page saves them, JSON or CSV, are required", *_MALFORMED):
        if content.lstrip().startswith("{"):
            objects = json.loads(content)
            if objects.get("form") != FORM:
                raise ValueError
            beside = {"participant": "", **objects}
            names = ("study", "task", "page", "participant")
            return [{**answer, **{name: beside[name] for name in names}} for answer in objects["answers"]]
        rows = list(csv.DictReader(io.StringIO(content, newline="")))
        if not rows or any("item" not in row or "study" not in row for row in rows):
            raise ValueError
        return list(rows)


def _read_utf8_file(path: Path) -> str:
    with (
        hide_foreign_errors(f"cannot read {path.name}", OSError, error=UsageError),
        hide_foreign_errors(f"{path.name}: is not UTF-8", UnicodeDecodeError),
    ):
        return path.read_text(encoding="utf-8-sig")


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


def _make_item_id(*parts: object) -> str:
    """Hash what tells an item from others; nothing of it shows."""
    return sha256(json.dumps(parts).encode()).hexdigest()[:10]


FICTITIOUS = "fictitious"
"""The group of generated profiles."""
STATUSES = ("single", "in a relationship", "engaged", "married", "divorced", "widowed")
_COLUMNS = ("group", "name", "link")
_WIDOWED = 40  # years from which on a profile may be widowed or divorced
_WORKS = (22, 66)  # years of age of somebody with a job, the last not included


@dataclass(frozen=True, slots=True)
class Subject:
    """A person to be described.

    Attributes:
        name: full name. Hidden from ``repr``.
        group: fame class.
        link: where a writer may look the person up; empty: nowhere. Hidden from ``repr``.
        facts: what a writer is told besides, name to value. Hidden from ``repr``.
    """

    name: str = field(repr=False)
    group: str
    link: str = field(default="", repr=False)
    facts: Mapping[str, str] = field(default_factory=dict, repr=False)


def fictitious_people(
    n: int, *, seed: int = 0, origin: str = "english", knowledge: KnowledgeBase | None = None
) -> list[Subject]:
    """Make profiles of fictitious people: full name, relationship, job, age and country of residence, as in P3.

    Args:
        n: how many; no two share a first or a family name.
        seed: other seeds give other people.
        origin: of the names; see :meth:`allonym.kb.KnowledgeBase.origins`.
        knowledge: where names, jobs and countries come from; by default the base that comes with the package. A name
            that it knows as that of a famous person is not used.

    Raises:
        UsageError: fewer than 0 are asked for, or more than there are names.
        KnowledgeBaseError: the base has no names of this origin, no jobs or no countries.
    """
    base = knowledge or KnowledgeBase.open()
    rng = Random(f"profiles {seed}")
    given_names = list(dict.fromkeys((*base.names("first", origin, "f"), *base.names("first", origin, "m"))))
    family = list(base.names("last", origin))
    jobs = [item.label for item in base.pool("occupation")]
    countries = [base.label(item) for item in base.pool("country") if item.size >= 6]
    if not (given_names and family and jobs and countries):
        raise KnowledgeBaseError(f"fictitious people: names of origin {origin!r}, jobs and countries are required")
    if not 0 <= n <= min(len(given_names), len(family)):
        raise UsageError(f"fictitious people: 0 to {min(len(given_names), len(family))} are possible, got {n}")
    rng.shuffle(given_names)
    rng.shuffle(family)
    out: list[Subject] = []
    names = ((first, last) for first, last in zip(given_names, family, strict=False) if not base.famous(first, last))
    for first, last in islice(names, n):
        age = rng.randrange(*_WORKS)
        status = rng.choice(STATUSES if age >= _WIDOWED else STATUSES[:4])
        facts = {"relationship": status, "job": rng.choice(jobs), "age": str(age), "lives in": rng.choice(countries)}
        out.append(Subject(f"{first} {last}", FICTITIOUS, "", facts))
    if len(out) < n:
        raise UsageError(f"fictitious people: {len(out)} are possible, got {n}")
    return out


def read_subjects(path: Path) -> list[Subject]:
    """Read a pool of people from a CSV file: columns ``group`` and ``name``, optionally ``link``; others are facts.

    Raises:
        UsageError: the file cannot be read.
        DataError: a column is missing, a row has no name or group, or a name stands twice.
    """
    wrong = (OSError, UnicodeDecodeError, csv.Error)
    with (
        hide_foreign_errors(f"cannot read {path.name} as CSV in UTF-8", *wrong, error=UsageError),
        path.open(encoding="utf-8-sig", newline="") as file,
    ):
        rows = list(csv.DictReader(file))
    out: list[Subject] = []
    names: set[str] = set()
    for line, row in enumerate(rows, 2):
        cells = {str(k).strip(): v.strip() for k, v in row.items() if isinstance(k, str) and isinstance(v, str)}
        if not cells.get("name") or not cells.get("group"):
            raise DataError(f"{path.name}, row {line}: the columns group and name are required, and a value in both")
        if cells["name"].casefold() in names:
            raise DataError(f"{path.name}, row {line}: the name stands twice")
        names.add(cells["name"].casefold())
        link = cells.get("link", "")
        if link and not link.startswith(("https://", "http://")):
            raise DataError(f"{path.name}, row {line}: a link must begin with https:// or http://")
        facts = {k: v for k, v in cells.items() if k not in _COLUMNS and v}
        out.append(Subject(cells["name"], cells["group"], link, facts))
    if not out:
        raise DataError(f"{path.name}: one person at least is required, got none")
    return out


def deal_hands(item_count: int, hand_sizes: Sequence[int], rng: Random) -> list[list[int]]:
    """Deal hands of different items, so that no item is dealt more than once more often than any other.

    Args:
        item_count: how many there are.
        hand_sizes: how many items each hand gets, each 0 to ``item_count``.
        rng: decides between items dealt equally often, and the order within a hand.
    """
    count = [0] * item_count
    out = []
    for size in hand_sizes:
        order = sorted(range(item_count), key=lambda i: (count[i], rng.random()))
        hand = order[:size]
        rng.shuffle(hand)
        for i in hand:
            count[i] += 1
        out.append(hand)
    return out
