"""Names of files and folders: those that identify somebody, and neutral ones in their place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path, PurePosixPath

from allonym.batch import Key
from allonym.detection.listed_names import has_listed_name
from allonym.document import Document
from allonym.files.items import Item
from allonym.files.output import digest_file
from allonym.files.table import Cell
from allonym.partfile import write_file
from allonym.policy import Policy

MAX_CHECKED = 500
"""Greatest number of names that are searched."""

_DETECTORS = ("rules", "lexicon", "tagger")
_SUFFIX = re.compile(r"(?:\.[A-Za-z0-9]{1,8})+$")
_SIGNS = re.compile(r"[\W_]+")
_JOINT = re.compile(r"(?<=[a-z])(?=[A-Z])")


def count_identifying_names(items: Sequence[Item], policy: Policy, is_folder: bool) -> int:
    """Return how many names of the files and folders to write hold a name of a person or another direct identifier.

    At most ``MAX_CHECKED`` names are searched.
    """
    written = [item for item in items if item.target is not None and not item.refused]
    paths = [PurePosixPath(item.name if is_folder else item.target.name) for item in written if item.target]
    names = list(dict.fromkeys(name for path in paths for name in path.parts))
    detectors = tuple(name for name in policy.detectors if name in _DETECTORS)
    policy = policy.with_(detectors=detectors, unknown_language="rules")
    return sum(_identifies(name, policy) for name in names[:MAX_CHECKED])


def _identifies(name: str, policy: Policy) -> bool:
    from allonym.pipeline import detect

    words = _SIGNS.sub(" ", _JOINT.sub(" ", _SUFFIX.sub("", name))).strip()
    document = Document("", words.title() if words.islower() else words)
    for text, spans in ((document.text, detect(document, policy)), (name, detect(Document("", name), policy))):
        for span in spans:
            if policy.taxonomy.get(span.label).kind != "direct":
                continue
            is_person = policy.taxonomy.within(span.label, "PERSON")
            if not is_person or has_listed_name(text[span.start : span.end].split()):
                return True
    return False


def give_safe_names(items: Sequence[Item], target: Path, is_folder: bool, key: Key) -> list[Item]:
    """Return the items with targets such as ``folder-001/document-0001.docx`` below ``target``.

    The numbers follow the contents of the files, by a keyed digest, and not their names: the order of names would tell
    which comes first.
    """
    secret = (key.encode() if isinstance(key, str) else key or b"")[:64]
    digests = {
        item.name: blake2b(digest_file(item.source).encode(), key=secret).digest() if item.refused == "" else b""
        for item in items
        if item.source is not None
    }
    ordered = sorted(items, key=lambda item: (digests.get(item.name, b""), item.name))
    folders: dict[str, int] = {}
    numbers = {item.name: number for number, item in enumerate(ordered, 1)}
    for item in ordered:
        for parent in reversed(PurePosixPath(item.name).parents[:-1]):
            folders.setdefault(str(parent), len(folders) + 1)
    renamed = []
    for item in items:
        parents = reversed(PurePosixPath(item.name).parents[:-1])
        suffix = "".join(PurePosixPath(item.name).suffixes[-2 if item.packed else -1 :]) if item.format else ""
        folder_names = (f"folder-{folders[str(parent)]:03}" for parent in parents)
        suffix = f".{item.format.written_as}" if item.format and item.format.written_as else suffix
        name = PurePosixPath(*folder_names, f"document-{numbers[item.name]:04}{suffix.lower()}")
        renamed.append(replace(item, name=str(name), target=target / name))
    return renamed


def write_name_list(path: Path, before: Sequence[Item], after: Sequence[Item]) -> None:
    """Write the names of files beside their safe ones, as CSV that only its owner may read."""
    rows = [("file", "written as"), *((old.name, new.name) for old, new in zip(before, after, strict=True))]
    lines = (",".join(Cell(value, value, False).format_value(value, ",") for value in row) for row in rows)
    write_file(path, "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"), private=True)
