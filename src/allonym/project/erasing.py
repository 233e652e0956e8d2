"""Erasing one person from a project: from the vault, from the sealed sources and documents, and from corrections.

In the sources the name is covered as :mod:`allonym.files.erasing` does it, in each file's own format. Readings of the
documents that change are dropped. Releases are signed, so they are never changed: those that name the person are told.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from allonym.errors import DataError, VaultError
from allonym.files.erasing import COVER, count_places, cover_person_in_bytes
from allonym.project.project import Project
from allonym.text.name_forms import NameForms
from allonym.vault.records import ErasedPerson


@dataclass(frozen=True, slots=True)
class ErasedFromProject:
    """What was erased from a project.

    Attributes:
        rows: of the vault that were deleted or written anew.
        places: that were covered in sources.
        files: that were changed, in content or name.
        documents: whose text changed, so that their readings are gone.
        terms: corrections that were dropped.
        remaining: files by number, and releases by name, that still name the person.
    """

    rows: int
    places: int
    files: int
    documents: int
    terms: int
    remaining: tuple[str, ...]


def erase_person(project: Project, person: str | int, *, actor: str = "") -> ErasedFromProject:
    """Erase a person from a project for good, and look for what is left.

    The vault forgets the person after the sources do, so that an erasure that is cut off can be repeated.

    Somebody of the same name gets another replacement afterwards.

    Args:
        project: with its vault.
        person: a whole name, or the number in the register.
        actor: who does it, for the audit log of the vault.

    Raises:
        VaultError: nobody has the number or name, several people have the name, or the vault holds traces.
    """
    places = files = documents = 0
    forms = NameForms.of_names(())
    remaining: list[str] = []

    def cover_sources(erased: ErasedPerson) -> None:
        nonlocal forms, places, files, documents
        forms = NameForms.of_names(erased.names, erased.others)
        if not erased.rows and not _is_named_in_full(project, forms):
            raise VaultError("nobody in the project has this name; allonym project findings shows everybody")
        for file in project.files:
            source = project.read_source(file.number)
            try:
                data, covered, uncovered = cover_person_in_bytes(f"source{file.suffix}", source, forms, erased.places)
            except DataError:
                data, covered, uncovered = source, 0, 1
            name = f"file-{file.number:04}{file.suffix}" if forms.find(file.name) else file.name
            if covered or name != file.name:
                try:
                    documents += project.rewrite_source(file.number, name, data)
                except DataError:
                    uncovered += 1
                else:
                    places, files = places + covered, files + 1
            if uncovered:
                remaining.append(f"file {file.number}")

    rows = project.vault.erase_person(person, scope=project.scope, actor=actor, cover_files=cover_sources).rows
    terms = project.drop_terms(lambda term: bool(forms.find(term)))
    if places:
        project.correct(COVER, never=True)  # it is no name to replace
    else:
        project.update()
    remaining += _list_naming_documents(project, forms)
    remaining += [path.name for path in sorted(project.folder.glob("releases/*.zip")) if count_places(path, forms)]
    return ErasedFromProject(rows, places, files, documents, terms, tuple(dict.fromkeys(remaining)))


def _is_named_in_full(project: Project, forms: NameForms) -> bool:
    """Tell whether a source, its name or a correction holds the full name."""
    full = forms.keep_full_names()
    names = (*(file.name for file in project.files), *(term.term for term in project.terms))
    return any(map(full.find, names)) or any(_list_naming_documents(project, full))


def _list_naming_documents(project: Project, forms: NameForms) -> Iterator[str]:
    for file in project.files:
        for item in project.read_documents(file.number):
            texts = (item.document.text, item.anonymised, item.document.id, *map(str, item.document.meta.values()))
            if any(forms.find(text) for text in texts):
                yield f"file {file.number}"
                break
