"""What a project tells about itself: its card, its files, what became of files that were added, where it stands."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from allonym.errors import DataError, UsageError
from allonym.serial import Serialisable

SCHEMA = 1
CARD = "project.json"
"""The only file of a project that is readable without its vault, beside its releases."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of the project.

    Attributes:
        number: from 1, in the order in which files were added.
        name: as it was added; hidden from ``repr``.
        format, suffix: how it is read, and what its copy is called.
        size: bytes.
        stamp, settled: of what was found with, and of the settled readings; another one: it is done anew.
        documents: records with text.
        states: how many of them are in each state of review.
        mentions: findings.
        unseen: words that not both reviewers have looked at.
        failures: records that cannot be processed.
    """

    number: int
    name: str = field(repr=False)
    format: str
    suffix: str
    size: int
    digest: str
    stamp: str = ""
    settled: str = ""
    documents: int = 0
    states: Mapping[str, int] = field(default_factory=dict)
    mentions: int = 0
    unseen: int = 0
    failures: int = 0


@dataclass(frozen=True, slots=True)
class Added:
    """What became of files: those that the project has now, those that it had, and those refused, with reasons."""

    files: tuple[SourceFile, ...]
    duplicates: tuple[str, ...] = field(default=(), repr=False)
    refused: tuple[tuple[str, str], ...] = field(default=(), repr=False)


class Status(Serialisable):
    """Where a project stands.

    Attributes:
        files, documents, mentions, failures: how many there are; failures are records that cannot be processed.
        people: distinct names of people, as they are written.
        terms: corrections by surface.
        states: documents by state of review.
        unseen: words of these documents that not both reviewers have looked at.
        drawn: documents of the random draw that both reviewers read wholly, which a promise may rest on.
        releases: how many were written.
        steps: what can be done next, as commands without the project's path.
    """

    files: int
    documents: int
    mentions: int
    failures: int
    people: int
    terms: int
    states: Mapping[str, int]
    unseen: int
    drawn: int
    releases: int
    steps: tuple[str, ...]


def read_card(folder: Path) -> dict[str, Any]:
    """Return what is known of a project without its vault.

    Raises:
        UsageError: there is no project in the folder. DataError: a newer version made it.
    """
    path = folder / CARD
    try:
        card = json.loads(path.read_bytes())
        schema = card["schema"]
    except OSError:
        raise UsageError(f"{folder} is no project; allonym project init makes one") from None
    except (ValueError, LookupError, TypeError):
        raise DataError(f"{path} is damaged") from None
    if schema != SCHEMA:
        raise DataError(f"{folder} is a project of schema {schema}; {SCHEMA} is required")
    return dict(card)
