"""Erasing one person from files: covering the name in each file's own format, and the proof that nothing is left.

A file is looked at in two ways, which share no code: the texts that its format reads, and its bytes, with those of the
members of a package. What the format covers is written as a run would write it. What only the bytes hold, such as a
comment, a key or the author of a package, is covered there. Plans lose the edits of the person, and encrypted answers
of a language model that name the person are deleted.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from allonym.document import Document, Interval, merge_intervals
from allonym.errors import AllonymError, DataError, PlanMismatch, UsageError, VaultError
from allonym.files.rewrite import rewrite_path
from allonym.files.run import read_documents
from allonym.keys import derive_operator_key
from allonym.llm.cache import Cache
from allonym.partfile import write_file
from allonym.plan import Edit, apply_edits_to_parts, digest, drop_edits, read_plan_rows
from allonym.scratch import open_scratch_folder
from allonym.text.name_forms import NameForms

if TYPE_CHECKING:
    from allonym.vault import Vault
    from allonym.vault.records import ErasedPerson

COVER = "[ERASED]"
"""What stands in files in place of an erased name."""

Places = Mapping[str, "tuple[Interval, ...]"]
_LEAST_IN_BYTES = 5
"""Letters that a lone name needs to count in bytes that are no text, where short ones stand by chance."""
_DAMAGE = (OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)
"""Errors of packages and compressed files that are damaged or encrypted."""
_ENCODINGS = ("utf-16-le", "utf-16-be")
_MARKUP = re.compile(r"<[^<>]*>")
_ANSWER = re.compile(r"[0-9a-f]{62}\.bin")


@dataclass(frozen=True, slots=True)
class ErasedFiles:
    """The result of erasing a person from files.

    Attributes:
        files: number of files that were read.
        changed: number of files that were written anew, or deleted because they held nothing but a cached answer.
        places: number of places that were covered.
        leftovers: files that still name the person, or cannot be read, each with the reason; without the name.
        named: number of files whose own names, or whose folders' names, hold the person's.
    """

    files: int = 0
    changed: int = 0
    places: int = 0
    leftovers: tuple[tuple[str, str], ...] = ()
    named: int = 0


@dataclass(frozen=True, slots=True)
class Erasure:
    """The result of erasing a person from a vault and from files."""

    vault: ErasedPerson
    files: ErasedFiles


def erase_person(
    vault: Vault, person: str | int, *, scope: str | None = None, paths: Iterable[str | Path] = (), actor: str = ""
) -> Erasure:
    """Erase a person from files and from a vault, and look for what is left.

    The vault forgets the person last, so that an erasure that is cut off can be repeated.

    Args:
        vault: an open vault.
        person: a whole name, or the number in the register of the scope.
        scope: only this scope; None: all.
        paths: files, and folders with all below them: sources, outputs, plans, cached answers.
        actor: who does it, for the audit log.

    Raises:
        UsageError: a path does not exist, or a number stands without a scope.
        VaultError: there is no such person, several people have the name, or the vault holds traces.
        DataError: nothing is found, and a file cannot be read.
    """
    listed = list(_list_files(paths))
    cache_key = derive_operator_key(vault.operator_key, "llm cache")
    files = ErasedFiles()

    def cover_files(erased: ErasedPerson) -> None:
        nonlocal files
        forms = NameForms.of_names(erased.names, erased.others)
        if not erased.rows:
            _check_is_named(listed, forms.keep_full_names())
        files = erase_from_files(listed, forms, erased.places, cache_key=cache_key)

    return Erasure(vault.erase_person(person, scope=scope, actor=actor, cover_files=cover_files), files)


def _check_is_named(files: Iterable[Path], forms: NameForms) -> None:
    """Raise an error if no file names the person; what cannot be read does not keep the others from being looked at."""
    problem = ""
    for file in files:
        try:
            if count_places(file, forms):
                return
        except (AllonymError, OSError) as error:
            problem = problem or f"{file}: {error if isinstance(error, AllonymError) else type(error).__name__}"
    if problem:
        raise DataError(f"nothing of this person is in the vault or the files that can be read; {problem}")
    raise VaultError("nothing of this person is in the vault or the files; `allonym people list` shows everybody")


def erase_from_files(
    files: Iterable[Path], forms: NameForms, known_places: Places = MappingProxyType({}), cache_key: bytes | None = None
) -> ErasedFiles:
    """Cover a person in files, and read all of them once more.

    Args:
        files: each is replaced in one step, if anything in it changes.
        forms: of the person's names.
        known_places: digest of a text to the places where the person is known to be named in it.
        cache_key: opens cached answers of a language model; None: these are not looked at.
    """
    count = changed = places = named = 0
    leftovers: list[tuple[str, str]] = []
    for file in files:
        count += 1
        named += bool(forms.find(str(file)))
        if cache_key is not None and _ANSWER.fullmatch(file.name) and len(file.parent.name) == 2:
            covered = _erase_cached_answer(file, forms, cache_key)
            changed, places = changed + bool(covered), places + covered
            continue
        try:
            covered, is_named = cover_person(file, forms, known_places)
            changed, places = changed + bool(covered), places + covered
            if remaining := count_places(file, forms, is_named=is_named):
                leftovers.append((str(file), f"{remaining} places could not be covered"))
        except (AllonymError, OSError) as error:
            reason = str(error) if isinstance(error, AllonymError) else type(error).__name__
            leftovers.append((str(file), reason))
    return ErasedFiles(count, changed, places, tuple(leftovers), named)


def cover_person(file: Path, forms: NameForms, known_places: Places = MappingProxyType({})) -> tuple[int, bool]:
    """Cover a person in a file, which is replaced in one step.

    Returns:
        The number of places that were covered, and whether the file is one text that names the person for certain.

    Raises:
        DataError: the file is packed, and cannot be unpacked.
    """
    places, is_named = 0, False
    if (rows := _read_plans(file)) is not None:
        places += _erase_from_plans(file, rows, forms)
    else:
        documents = _read_documents(file)
        counts = [len(_find_places(document, forms, known_places)) for document in documents]
        # What names the person in full, or is known to, may also use words that others share.
        is_named = len(documents) == 1 and counts[0] > 0
        places += _rewrite_documents(file, forms, known_places) if any(counts) else 0
    covered, count = _cover_bytes(file.read_bytes(), forms, is_named=is_named)
    if count:
        _replace_file(file, covered)
    return places + count, is_named


def cover_person_in_bytes(
    name: str, data: bytes, forms: NameForms, known_places: Places = MappingProxyType({})
) -> tuple[bytes, int, int]:
    """Cover a person in the content of a file, for callers who keep files elsewhere.

    Args:
        name: of the file, whose suffix tells the format.
        data: the content.
        forms: of the person's names.
        known_places: as for :func:`erase_from_files`.

    Returns:
        The content without the person, the number of places that were covered, and of those that are left.

    Raises:
        DataError: the content is packed, and cannot be unpacked.
    """
    with open_scratch_folder() as folder:
        file = Path(folder, "file" + "".join(Path(name).suffixes[-2:]))
        file.write_bytes(data)
        places, is_named = cover_person(file, forms, known_places)
        return file.read_bytes(), places, count_places(file, forms, is_named=is_named)


def count_places(file: Path, forms: NameForms, *, is_named: bool = False) -> int:
    """Return how many places of a file name the person: in its texts, or in its bytes, whichever are more.

    Raises:
        DataError: the file is packed, and cannot be unpacked.
    """
    in_texts = sum(len(forms.find(document.text, is_named=is_named)) for document in _read_documents(file))
    texts = _decode_bytes(file.read_bytes())
    return max(in_texts, sum(len(forms.find(text, least, is_named=is_named)) for text, least in texts))


def _list_files(paths: Iterable[str | Path]) -> Iterator[Path]:
    for path in map(Path, paths):
        if not path.exists():
            raise UsageError(f"{path} does not exist")
        if path.is_dir():
            yield from sorted(file for file in path.rglob("*") if file.is_file() and not file.is_symlink())
        else:
            yield path


def _read_documents(file: Path) -> list[Document]:
    """Return the documents of a file; none where no format reads it, so that only its bytes tell."""
    try:
        return list(read_documents(file))
    except AllonymError:
        return []


# Covering


def _find_places(document: Document, forms: NameForms, known_places: Places) -> list[Interval]:
    places = known_places.get(digest(document.text), ())
    return merge_intervals([*places, *forms.find(document.text, is_named=bool(places))])


def _rewrite_documents(file: Path, forms: NameForms, known_places: Places) -> int:
    count = 0

    def cover_parts(number: int, document: Document) -> tuple[str, ...]:
        nonlocal count
        text = document.text
        edits = [Edit(start, end, COVER, "PERSON") for start, end in _find_places(document, forms, known_places)]
        count += len(edits)
        return tuple(apply_edits_to_parts(text, document.parts or ((0, len(text)),), edits))

    with open_scratch_folder() as folder:
        target = Path(folder, file.name)
        try:
            rewrite_path(file, target, cover_parts, verify=False)
        except AllonymError:
            return 0  # the bytes may be covered yet; the proof tells
        _replace_file(file, target.read_bytes())
    return count


def _cover_bytes(data: bytes, forms: NameForms, *, is_named: bool = False) -> tuple[bytes, int]:
    """Return bytes without the person, and the number of places that were covered; bytes that are no text stay."""
    if zipfile.is_zipfile(BytesIO(data)):
        return _cover_members(data, forms, is_named=is_named)
    if data[:2] == b"\x1f\x8b":
        with _refuse_damage():
            covered, count = _cover_bytes(gzip.decompress(data), forms, is_named=is_named)
        return (gzip.compress(covered, mtime=0), count) if count else (data, 0)
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        encoding = "latin-1"
        text = "" if b"\0" in data else data.decode(encoding)
    edits = [Edit(start, end, COVER, "PERSON") for start, end in forms.find(text, is_named=is_named)]
    if not edits:
        return data, 0
    (covered_text,) = apply_edits_to_parts(text, ((0, len(text)),), edits)
    return covered_text.encode(encoding), len(edits)


def _cover_members(data: bytes, forms: NameForms, *, is_named: bool) -> tuple[bytes, int]:
    out, total = BytesIO(), 0
    with _refuse_damage(), zipfile.ZipFile(BytesIO(data)) as package, zipfile.ZipFile(out, "w") as written:
        for member in package.infolist():
            content, count = _cover_bytes(package.read(member), forms, is_named=is_named)
            total += count
            written.writestr(member, content, compress_type=member.compress_type)
    return (out.getvalue(), total) if total else (data, 0)


@contextmanager
def _refuse_damage() -> Iterator[None]:
    try:
        yield
    except _DAMAGE as error:
        raise DataError(f"its packed content cannot be read ({type(error).__name__})") from None


def _replace_file(file: Path, data: bytes) -> None:
    """Write a file anew in one step; who may read it stays."""
    mode = file.stat().st_mode
    write_file(file, data)
    os.chmod(file, mode & 0o7777)


# Plans and cached answers


def _read_plans(file: Path) -> list[tuple[Mapping[str, Any], Any]] | None:
    if file.suffix not in (".jsonl", ".json"):
        return None
    try:
        return read_plan_rows(file.read_text(encoding="utf-8"), file) or None
    except (PlanMismatch, UnicodeDecodeError):
        return None


def _erase_from_plans(file: Path, rows: list[tuple[Mapping[str, Any], Any]], forms: NameForms) -> int:
    lines: list[str] = []
    total = 0
    for row, plan in rows:
        is_dropped = _find_named_edits(plan.edits, forms)
        count = sum(map(is_dropped, plan.edits))
        total += count
        if count:
            changed = drop_edits(plan, is_dropped).to_dict(originals=True)
            row = changed if "plan" not in row else {**row, "plan": changed}
        lines.append(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n")
    if total:
        _replace_file(file, "".join(lines).encode())
    return total


def _find_named_edits(edits: Iterable[Edit], forms: NameForms) -> Callable[[Edit], bool]:
    named = {edit for edit in edits if edit.original and forms.find(edit.original)}
    numbers = {edit.entity for edit in named if edit.entity}
    return lambda edit: edit in named or edit.entity in numbers


def _erase_cached_answer(file: Path, forms: NameForms, key: bytes) -> int:
    answer = Cache(file.parent.parent, key).get(file.parent.name + file.stem)
    count = len(forms.find(answer.decode("utf-8", "replace"))) if answer is not None else 0
    if count:
        file.unlink()
    return count


# The proof


def _decode_bytes(data: bytes) -> Iterator[tuple[str, int]]:
    """Yield all texts that bytes may hold, with the letters that a lone name needs to count in each."""
    if zipfile.is_zipfile(BytesIO(data)):
        with _refuse_damage(), zipfile.ZipFile(BytesIO(data)) as package:
            for member in package.infolist():
                yield member.filename, 1
                yield from _decode_bytes(package.read(member))
        return
    if data[:2] == b"\x1f\x8b":
        with _refuse_damage():
            yield from _decode_bytes(gzip.decompress(data))
    try:
        text = data.decode("utf-8")
        yield text, 1
        if "<" in text:
            yield _MARKUP.sub("", text), 1
    except UnicodeDecodeError:
        yield data.decode("latin-1"), _LEAST_IN_BYTES
    if b"\0" in data:
        for encoding in _ENCODINGS:
            yield data.decode(encoding, "ignore"), _LEAST_IN_BYTES


__all__ = [
    "COVER",
    "ErasedFiles",
    "Erasure",
    "count_places",
    "cover_person",
    "cover_person_in_bytes",
    "erase_from_files",
    "erase_person",
]
