"""Subjects for descriptions (P3 3.1.3.1): pools of named people, and profiles of fictitious ones."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from allonym.errors import DataError, KnowledgeBaseError, UsageError
from allonym.kb import KnowledgeBase

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
    for first, last in zip(given_names, family, strict=False):
        if len(out) == n:
            break
        if base.famous(first, last):
            continue
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
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"cannot read {path.name}: {getattr(error, 'strerror', None) or 'no CSV in UTF-8'}") from None
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


def deal_items(items: int, sizes: Sequence[int], rng: Random) -> list[list[int]]:
    """Deal hands of different items, so that no item is dealt more than once more often than any other.

    Args:
        items: how many there are.
        sizes: how many items each hand gets, each 0 to ``items``.
        rng: decides between items dealt equally often, and the order within a hand.
    """
    count = [0] * items
    out = []
    for size in sizes:
        order = sorted(range(items), key=lambda i: (count[i], rng.random()))
        hand = order[:size]
        rng.shuffle(hand)
        for i in hand:
            count[i] += 1
        out.append(hand)
    return out
