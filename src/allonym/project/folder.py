"""The folder of a project: its sealed index, files, documents and readings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any

from allonym.document import Span
from allonym.errors import DataError, RequestError
from allonym.files.items import Item
from allonym.files.record import DocumentKey, Draft, Failure, Job
from allonym.files.tasks import parse_all_chunks
from allonym.keys import derive_operator_key
from allonym.policy import Policy
from allonym.project.documents import (
    ProjectDocument,
    collect_settled_findings,
    collect_settled_readings,
)
from allonym.project.policies import load_policy_tables
from allonym.project.readings import Reading
from allonym.project.records import SourceFile, read_card
from allonym.project.seats import UserReading
from allonym.project.store import SealedFolder
from allonym.project.terms import Term, add_terms_to_policy
from allonym.vault import Vault


class ProjectFolder:
    """What lies in the folder of a :class:`~allonym.project.project.Project`, and changes of it under a lock."""

    def __init__(self, folder: str | Path, vault: Vault) -> None:
        self.folder, self.vault = Path(folder), vault
        card = read_card(self.folder)
        self.scope = str(card["scope"])
        self._state = SealedFolder(self.folder / "state", vault.operator_key, self.scope)
        if not (self._state.folder / "index").exists():
            raise DataError(f"{self.folder} is no complete project: state/index is missing")
        self._state.remove_abandoned_work_folder()
        self._read_index()

    @property
    def policy(self) -> Policy:
        """The policy with the terms of all documents."""
        return add_terms_to_policy(self.base_policy, self.terms)

    @property
    def files(self) -> tuple[SourceFile, ...]:
        """The files, in the order in which they were added."""
        return tuple(SourceFile(**row) for row in self._index["files"])

    @property
    def terms(self) -> tuple[Term, ...]:
        """The corrections by surface, in the order in which they were made."""
        return tuple(Term(**row) for row in self._index["terms"])

    @property
    def releases(self) -> tuple[dict[str, Any], ...]:
        """The releases that were written: file name, digest and counts of each."""
        return tuple(self._index["releases"])

    def derive_key(self, purpose: str) -> bytes:
        """Return 32 bytes for one purpose, the same as long as the vault lives."""
        return derive_operator_key(self.vault.operator_key, purpose, self.scope)[:32]

    def _read_index(self) -> None:
        self._index: dict[str, Any] = self._state.read_json("index")
        self.base_policy = load_policy_tables(self._index["policy"], str(self.folder))

    @contextmanager
    def _change(self) -> Iterator[None]:
        """Change the project alone; the index is read anew before, and written afterwards."""
        with self._state.lock():
            self._state.remove_work_folder()
            self._read_index()
            yield
            self._state.write_json("index", self._index)

    def read_source(self, number: int) -> bytes:
        """Return the bytes of a file as it was added."""
        return self._state.read_bytes(f"source-{number:04}")

    def _digest_source(self, data: bytes) -> str:
        return blake2b(data, key=self.derive_key("project digests"), digest_size=16).hexdigest()

    def _get_file(self, number: int) -> SourceFile:
        file = next((file for file in self.files if file.number == number), None)
        if file is None:
            raise RequestError(f"there is no file {number} in the project", 404, "NotFound")
        return file

    def _read_file_documents(self, item: Item, number: int) -> list[ProjectDocument]:
        documents: list[ProjectDocument] = []
        count = 0
        for _, lines, parsed, _ in parse_all_chunks([item], Job(self.base_policy), is_folder=False):
            for piece in parsed.pieces if parsed else ():
                if isinstance(piece, Failure):
                    raise DataError(item.describe_failure(lines, piece))
                if isinstance(piece, Draft):
                    count += piece.counted
                    id = f"{number:04}-{count if piece.counted else 0:05}"
                    documents.append(ProjectDocument(id, piece.document, piece.counted))
        return documents

    def read_documents(self, number: int) -> list[ProjectDocument]:
        """Return the documents of a file, in its order, header rows included."""
        return [ProjectDocument.from_dict(row) for row in self._state.read_json(f"documents-{number:04}", [])]

    def _write_documents(self, number: int, documents: Iterable[ProjectDocument]) -> None:
        self._state.write_json(f"documents-{number:04}", [item.to_dict() for item in documents])

    def _read_readings(self, number: int) -> dict[str, dict[int, UserReading]]:
        rows = self._state.read_json(f"readings-{number:04}", {})
        return {
            id: {int(n): UserReading.from_row(int(n), row) for n, row in seats.items()} for id, seats in rows.items()
        }

    def _write_readings(self, number: int, readings: Mapping[str, Mapping[int, UserReading]]) -> None:
        rows = {id: {str(n): seat.to_row() for n, seat in seats.items()} for id, seats in readings.items()}
        self._state.write_json(f"readings-{number:04}", rows)

    def collect_settled_findings(self) -> dict[DocumentKey, tuple[Span, ...]]:
        """Return the spans to replace in all documents, for :func:`allonym.files.anonymize_path`."""
        documents = {file.number: self.read_documents(file.number) for file in self.files}
        settled: dict[str, Reading] = {}
        for number, items in documents.items():
            settled |= collect_settled_readings(items, self._read_readings(number))
        return collect_settled_findings((item for items in documents.values() for item in items), settled)

    def drop_terms(self, is_dropped: Callable[[str], bool]) -> int:
        """Drop the corrections of some texts, and return how many; :meth:`update` anonymises again."""
        with self._change():
            remaining = [row for row in self._index["terms"] if not is_dropped(str(row["term"]))]
            count = len(self._index["terms"]) - len(remaining)
            self._index["terms"] = remaining
        return count

    def record_release(self, row: Mapping[str, Any]) -> None:
        """Note a release that was written while the sources are open, see :meth:`Project.open_sources`."""
        self._index["releases"].append(dict(row))
