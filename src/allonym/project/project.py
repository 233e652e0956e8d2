"""A study project: one folder that holds sources, policy, corrections, reviews and releases, beside a vault.

Whatever tells of a person or a file lies sealed in ``state`` (see :mod:`allonym.project.store`): originals too, so that
a project needs none of the files that were added. Only releases are readable without the vault, and they are what
others may have.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from types import MappingProxyType

from allonym import __version__
from allonym.batch import describe_failure
from allonym.errors import AllonymError, DataError, MissingExtra, RequestError, UsageError, check_names
from allonym.files.items import Item, list_sources
from allonym.keys import derive_operator_key
from allonym.partfile import write_file
from allonym.project.agreement import ReviewResult, count_unseen_words, measure_reviews
from allonym.project.documents import (
    ProjectDocument,
    collect_settled_readings,
    decide_state_of,
    detect_in_file,
    digest_plain_values,
    make_settled_stamp,
    parse_file_number,
    replace_in_file,
)
from allonym.project.entities import FoundEntity, digest_people, group_entities
from allonym.project.folder import ProjectFolder
from allonym.project.policies import Tables, list_wanted_tagger_labels, load_policy_tables, read_policy_tables
from allonym.project.promise import list_read_documents
from allonym.project.readings import Reading
from allonym.project.records import CARD, SCHEMA, Added, SourceFile, Status
from allonym.project.risks import Risk, assess_risk
from allonym.project.seats import (
    STATES,
    ReviewDocument,
    UserReading,
    check_may_save,
    check_version,
    choose_seat,
    select_visible_readings,
)
from allonym.project.store import SealedFolder
from allonym.project.terms import ANY, DICTIONARY, EXCLUSION, Term, check_and_normalise_term
from allonym.vault import Vault

Advance = Callable[[int, int], None]
_MOST_PASSES = 3


class Project(ProjectFolder):
    """An open project. Each change is made under a lock, so that several processes may use it.

    Args:
        folder: of the project.
        vault: open, with its secret; it holds originals and people.

    Attributes:
        scope: of the project in the vault.
        base_policy: without the terms of the project.
    """

    @classmethod
    def create(
        cls, folder: str | Path, vault: Vault, policy: str | Path | Tables = "default", *, scope: str = "project"
    ) -> Project:
        """Make a project in a folder, which may exist if it holds no project.

        Args:
            folder: of the project.
            vault: open, with its secret.
            policy: a preset's name, a policy file, which is read once and for all, or its tables.
            scope: of the project in the vault; it is not encrypted, so it should name nobody.

        Raises:
            UsageError: there is a project already, or the policy is not valid.
        """
        folder = Path(folder)
        if (folder / CARD).exists():
            raise UsageError(f"{folder} is a project already")
        tables = policy if isinstance(policy, list) else read_policy_tables(policy)
        load_policy_tables(tables, str(folder))
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = SealedFolder(folder / "state", vault.operator_key, scope)
        state.folder.mkdir(mode=0o700, exist_ok=True)
        state.write_json("index", {"policy": tables, "files": [], "terms": [], "releases": [], "next": 1})
        card = {"schema": SCHEMA, "made_by": __version__, "scope": scope}
        write_file(folder / CARD, (json.dumps(card, indent=2) + "\n").encode())
        return cls(folder, vault)

    # Files

    def add(
        self,
        paths: Iterable[str | Path],
        *,
        names: Mapping[str, str] = MappingProxyType({}),
        advance: Advance | None = None,
    ) -> Added:
        """Copy files, and those of folders, into the project, sealed, and anonymise them.

        A file with the same bytes as one of the project is not added again. A file that cannot be read is refused, and
        the others are added.

        Args:
            paths: files and folders of any supported formats.
            names: what files are called in the project, where they lie under other names.
            advance: called with the number of files done, and of all.

        Raises:
            UsageError: a path does not exist.
        """
        items = []
        for path in paths:
            if Path(path).resolve() in (self.folder.resolve(), *self.folder.resolve().parents):
                raise UsageError(f"{path} holds the project itself; name the files to add")
            try:
                items += list_sources(path, None)[0]
            except DataError as error:
                items.append(Item(Path(path).name, Path(path), None, None, refused=str(error)))
        items = [replace(item, name=names.get(item.name, item.name)) for item in items]
        added, duplicates, refused = [], [], []
        with self._change():
            by_digest = {file.digest: file for file in self.files}
            for item in items:
                assert item.source is not None
                if item.refused:
                    refused.append((item.name, item.refused))
                    continue
                number = self._index["next"]
                try:
                    data = item.source.read_bytes()
                    digest = self._digest_source(data)
                    if digest in by_digest:
                        duplicates.append(item.name)
                        continue
                    documents = self._read_file_documents(item, number)
                except (DataError, UsageError, OSError) as error:
                    reason = describe_failure(error) if isinstance(error, AllonymError) else "it cannot be read"
                    refused.append((item.name, reason.removeprefix(f"{item.name}: ")))
                    continue
                assert item.format is not None
                suffix = "".join(Path(item.name).suffixes[-2 if item.packed else -1 :]).lower()
                by_digest[digest] = file = SourceFile(number, item.name, item.format.name, suffix, len(data), digest)
                self._state.write_bytes(f"source-{number:04}", data)
                self._write_documents(number, documents)
                self._index["next"] = number + 1
                self._index["files"].append(asdict(file))
                added.append(number)
        self.update(advance=advance)
        return Added(tuple(f for f in self.files if f.number in added), tuple(duplicates), tuple(refused))

    def remove(self, number: int) -> None:
        """Remove a file with its documents and their readings. The vault keeps its originals.

        Raises:
            RequestError: there is no such file (404).
        """
        with self._change():
            self._get_file(number)
            self._index["files"] = [row for row in self._index["files"] if row["number"] != number]
            prefix = f"{number:04}-"
            self._index["terms"] = [t for t in self._index["terms"] if not (t["document"] or "").startswith(prefix)]
        for name in ("source", "documents", "readings"):  # the index does not name them any more
            self._state.remove(f"{name}-{number:04}")

    # Documents

    def update(self, *, advance: Advance | None = None) -> int:
        """Anonymise again what corrections, settled reviews, the register of people or a new version have changed.

        Args:
            advance: called with the number of files done, and of all.

        Returns:
            How many files were changed.
        """
        with self._change():
            return self._update(advance)

    def _update(self, advance: Advance | None = None) -> int:
        changed: set[int] = set()
        rows = self._index["files"]
        for _ in range(_MOST_PASSES):  # a later file may tell more about a person of an earlier one
            people = digest_people(self.vault, self.scope)
            for position, row in enumerate(rows):
                file = SourceFile(**row)
                readings = self._read_readings(file.number)
                stamp, settled = self._make_stamp(file), make_settled_stamp(readings, people)
                if (stamp, settled) != (file.stamp, file.settled):
                    documents = self._treat(file, readings, is_detected=stamp == file.stamp)
                    file = self._count(replace(file, stamp=stamp, settled=settled), documents, readings)
                    rows[position] = asdict(file)
                    changed.add(file.number)
                if advance:
                    advance(position + 1, len(rows))
            if digest_people(self.vault, self.scope) == people:
                break
        return len(changed)

    @contextmanager
    def open_sources(self) -> Iterator[Path]:
        """Yield a folder with the files in clear, under their numbers; it is removed afterwards.

        All files are anonymised, and other processes wait meanwhile. The folder that a crash leaves is removed when the
        project is opened again.
        """
        with self._change(), self._state.open_work_folder() as work:
            self._update()
            folder = work / "sources"
            folder.mkdir()
            for file in self.files:
                (folder / f"{file.number:04}{file.suffix}").write_bytes(self.read_source(file.number))
            yield folder

    def _make_stamp(self, file: SourceFile) -> str:
        """Return a digest of what the findings in a file depend on."""
        prefix = f"{file.number:04}-"
        terms = [asdict(t) for t in self.terms if t.document is None or t.document.startswith(prefix)]
        return digest_plain_values(__version__, self.base_policy.fingerprint(), terms)

    def _treat(
        self, file: SourceFile, readings: Mapping[str, Mapping[int, UserReading]], *, is_detected: bool
    ) -> list[ProjectDocument]:
        """Anonymise the documents of a file; where ``is_detected``, with the findings that they have."""
        before = self.read_documents(file.number)
        items = before
        if not is_detected:
            items = detect_in_file(before, self.base_policy, self.terms, self.vault.operator_key)
        settled = collect_settled_readings(items, readings)
        items = replace_in_file(items, self.base_policy, self.vault, self.scope, settled)
        documents = [replace(item, risk=self._assess(item, old)) for item, old in zip(items, before, strict=True)]
        self._write_documents(file.number, documents)
        return documents

    def _assess(self, item: ProjectDocument, before: ProjectDocument) -> Risk | None:
        if not item.has_text:
            return None
        if before.risk is not None and before.anonymised == item.anonymised:
            return before.risk
        try:
            return assess_risk(item.document, item.anonymised, item.edits, self.base_policy)
        except MissingExtra:
            return None

    def _count(
        self,
        file: SourceFile,
        documents: Sequence[ProjectDocument],
        readings: Mapping[str, Mapping[int, UserReading]],
    ) -> SourceFile:
        states = dict.fromkeys(STATES, 0)
        unseen = 0
        reviewed = [item for item in documents if item.has_text]
        for item in reviewed:
            seats = readings.get(item.id, {})
            states[decide_state_of(item, seats)] += 1
            unseen += count_unseen_words(item.document.text, seats)
        return replace(
            file,
            documents=len(reviewed),
            states=states,
            mentions=sum(len(item.findings) for item in documents),
            unseen=unseen,
            failures=sum(bool(item.failure) for item in documents),
        )

    def list_documents(
        self, reviewer: str | int = "", *, state: str | None = None, order: str = "risk"
    ) -> list[tuple[ReviewDocument, dict[int, UserReading]]]:
        """Return the documents with text, the riskiest first, and what the reviewer may know of their readings.

        Args:
            reviewer: sees the own readings, and those of others once both are done; empty: an adjudicator or the
                owner, who sees all.
            state: only documents in this state.
            order: by ``risk``, as they were ``added``, or as they were ``drawn``, which is a random order that the
                vault's key decides.
        """
        check_names("state", [state] if state else [], STATES)
        check_names("order", [order], ("risk", "added", "drawn"))
        rows = []
        labels = list_wanted_tagger_labels(self.base_policy)
        for file in self.files:
            readings = self._read_readings(file.number)
            for item in self.read_documents(file.number):
                seats = readings.get(item.id, {})
                row = item.make_review_document(labels, decide_state_of(item, seats)) if item.has_text else None
                if row is not None and state in (None, row.state):
                    rows.append((row, select_visible_readings(seats, reviewer)))
        if order == "drawn":
            rows.sort(key=lambda row: derive_operator_key(self.vault.operator_key, "drawn", row[0].id))
        if order == "risk":
            rows.sort(key=lambda row: (-row[0].risk.expected if row[0].risk else 0.0, row[0].id))
        return rows

    def get_document(self, id: str, reviewer: str | int = "") -> tuple[ReviewDocument, dict[int, UserReading]]:
        """Return a document and its readings, as :meth:`list_documents` does.

        Raises:
            RequestError: there is no such document (404).
        """
        item, readings = self._find_document(id)
        seats = readings.get(id, {})
        row = item.make_review_document(list_wanted_tagger_labels(self.base_policy), decide_state_of(item, seats))
        return row, select_visible_readings(seats, reviewer)

    def _find_document(self, id: str) -> tuple[ProjectDocument, dict[str, dict[int, UserReading]]]:
        number = parse_file_number(id)
        item = next((item for item in self.read_documents(number) if item.id == id and item.has_text), None)
        if item is not None:
            return item, self._read_readings(number)
        raise RequestError("there is no such document in the project", 404, "NotFound")

    # Findings and corrections

    def list_entities(self, label: str = "") -> list[FoundEntity]:
        """Return what was replaced, grouped by person or other referent and by surface, the most frequent first.

        Args:
            label: only those of this label's family, such as ``PERSON``; empty: all.
        """
        with self.vault.read_register(self.scope) as register:
            people = register.read_people()
        documents = (item for file in self.files for item in self.read_documents(file.number))
        return group_entities(documents, self.base_policy, label, people)

    def correct(
        self, surface: str, *, label: str | None = None, never: bool = False, document: str | None = None
    ) -> int:
        """Find a surface always or never from now on, in one document or in all, and anonymise again.

        Args:
            surface: the text, on one line.
            label: that it always gets; with ``never``: only findings with this label, by default with any.
            never: whether it is never found.
            document: the id of the only document that it holds for; None: all.

        Returns:
            How many files were changed.

        Raises:
            UsageError: it is no term, or a label is required. UnknownNameError: there is no such label.
            RequestError: there is no such document (404).
        """
        if not never and label is None:
            raise UsageError("a label is required for what is always found, such as PERSON")
        kind = EXCLUSION if never else DICTIONARY
        label = (label or ANY).upper()
        text = check_and_normalise_term(kind, label, surface)
        if document is not None:
            self._find_document(document)
        term = Term(kind, label, text, document)
        with self._change():
            others = [row for row in self._index["terms"] if Term(**row).place != term.place]
            self._index["terms"] = [*others, asdict(term)]
        return self.update()

    def join_people(self, first: str | int, second: str | int, *, actor: str = "") -> int:
        """Make two people of the register one, and anonymise again; return how many files were changed.

        Args:
            first, second: number or name of each; the first one's replacement stays.
            actor: who does it, for the audit log of the vault.

        Raises:
            UsageError: both are the same person. VaultError: a name or number fits nobody, or a name several people.
        """
        from allonym.vault.people import join_people

        join_people(self.vault, self.scope, first, second, actor=actor)
        return self.update()

    def part_name(self, person: str | int, name: str, *, actor: str = "") -> int:
        """Make a name of a person that of somebody else, and anonymise again; return how many files were changed.

        Args:
            person: number or name of the person.
            name: that is not this person's.
            actor: who does it, for the audit log of the vault.

        Raises:
            VaultError: nobody fits, or the person has no such name, or no other.
        """
        from allonym.vault.people import part_name

        part_name(self.vault, self.scope, person, name, actor=actor)
        return self.update()

    def count_places(self, surface: str) -> int:
        """Count where a text stands in the documents, in capitals or small letters."""
        texts = (item.document.text for file in self.files for item in self.read_documents(file.number))
        return sum(text.casefold().count(surface.casefold()) for text in texts)

    def forget(self, surface: str, *, document: str | None = None) -> int:
        """Take a correction back, and anonymise again; return how many files were changed.

        Raises:
            RequestError: there is no such correction (404).
        """
        place = Term(EXCLUSION, ANY, " ".join(surface.split()), document).place
        with self._change():
            remaining = [row for row in self._index["terms"] if Term(**row).place != place]
            if len(remaining) == len(self._index["terms"]):
                raise RequestError("there is no such correction", 404, "NotFound")
            self._index["terms"] = remaining
        return self.update()

    # Reviews

    def save_reading(
        self,
        id: str,
        reviewer: str | int,
        reading: Reading,
        *,
        reader: str = "",
        version: int | None = None,
        is_done: bool = False,
        is_verdict: bool = False,
    ) -> tuple[UserReading, str]:
        """Store a reviewer's whole reading of a document, and return it with the document's state.

        Args:
            id: of the document.
            reviewer: the reader's name, or a number that no other reader ever gets; the first two are a document's
                reviewers.
            reading: sound for the document, see :func:`allonym.project.readings.make_checked_reading`.
            reader: the reader's name, where ``reviewer`` is a number.
            version: of the reading that this began from, 0: there was none; None: whatever is stored.
            is_done: whether the reader has nothing to add.
            is_verdict: whether it decides where two reviewers disagree.

        Raises:
            RequestError: there is no such document (404); two others review it, another version is stored, the document
                is settled, or a verdict comes before both are done (409).
        """
        readings = {id: (reading, is_done)}
        return self.save_readings(reviewer, readings, reader=reader, version=version, is_verdict=is_verdict)[id]

    def save_readings(
        self,
        reviewer: str | int,
        readings: Mapping[str, tuple[Reading, bool]],
        *,
        reader: str = "",
        version: int | None = None,
        is_verdict: bool = False,
    ) -> dict[str, tuple[UserReading, str]]:
        """Store a reviewer's readings of several documents, all or none; see :meth:`save_reading`.

        Args:
            reviewer, reader: as for :meth:`save_reading`.
            readings: by the documents' ids, each with whether the reader has nothing to add.
            version, is_verdict: as for :meth:`save_reading`.
        """
        if not str(reviewer).strip():
            raise UsageError("a reading needs the name of its reviewer")
        out: dict[str, tuple[UserReading, str]] = {}
        with self._change():
            changes = []
            for number in sorted({parse_file_number(id) for id in readings}):
                self._get_file(number)
                items = self.read_documents(number)
                documents = {item.id: item for item in items if item.has_text}
                stored_readings = self._read_readings(number)
                for id, (reading, is_done) in readings.items():
                    if parse_file_number(id) != number:
                        continue
                    if id not in documents:
                        raise RequestError("there is no such document in the project", 404, "NotFound")
                    seats = stored_readings.setdefault(id, {})
                    seat = choose_seat(seats, reviewer, is_verdict)
                    stored = seats[seat].version if seat in seats else 0
                    check_may_save(decide_state_of(documents[id], seats), seats, is_verdict)
                    check_version(stored if version is None else version, stored)
                    seats[seat] = UserReading(seat, reviewer, reader or str(reviewer), stored + 1, is_done, reading)
                    out[id] = seats[seat], decide_state_of(documents[id], seats)
                changes.append((number, items, stored_readings))
            for number, items, stored_readings in changes:
                self._write_and_count_readings(number, items, stored_readings)
        return out

    def remove_unfinished_readings(self, reviewer: str | int) -> int:
        """Remove a reviewer's readings that are not done, so that others can review, and return how many they were."""
        count = 0
        with self._change():
            for file in self.files:
                stored = self._read_readings(file.number)
                remaining = {
                    id: {n: seat for n, seat in seats.items() if seat.done or seat.user != reviewer}
                    for id, seats in stored.items()
                }
                removed = sum(map(len, stored.values())) - sum(map(len, remaining.values()))
                if removed:
                    self._write_and_count_readings(file.number, self.read_documents(file.number), remaining)
                count += removed
        return count

    def _write_and_count_readings(
        self, number: int, items: Sequence[ProjectDocument], readings: Mapping[str, Mapping[int, UserReading]]
    ) -> None:
        self._write_readings(number, readings)
        self._index["files"] = [
            asdict(self._count(SourceFile(**row), items, readings)) if row["number"] == number else row
            for row in self._index["files"]
        ]

    def measure_reviews(self) -> ReviewResult:
        """Measure how far the reviewers agree on what both looked at, and what is left in the settled documents.

        Raises:
            MissingExtra: the extra ``evaluate`` is not installed.
        """
        return measure_reviews(self.list_documents(order="added"))

    # Where it stands

    def get_status(self) -> Status:
        """Return where the project stands, and what can be done next."""
        files = self.files
        states = {state: sum(file.states.get(state, 0) for file in files) for state in STATES}
        documents = sum(file.documents for file in files)
        steps = []
        if not files:
            steps.append("add FILES")
        if files and states["done"] < documents:
            steps.append("review --export SHEET --reviewer NAME, and --import SHEET")
        if states["disagreement"]:
            steps.append("review --export SHEET --reviewer NAME --verdict, and --import SHEET --verdict")
        if files:
            steps.append("release" if states["done"] == documents else "release --unreviewed")
        return Status(
            files=len(files),
            documents=documents,
            mentions=sum(file.mentions for file in files),
            failures=sum(file.failures for file in files),
            people=len(self.list_entities("PERSON")),
            terms=len(self._index["terms"]),
            states=states,
            unseen=sum(file.unseen for file in files),
            drawn=len(list_read_documents(self)) if states["done"] else 0,
            releases=len(self._index["releases"]),
            steps=tuple(steps),
        )

    def rewrite_source(self, number: int, name: str, data: bytes) -> int:
        """Put other bytes in place of a file, with its name; return how many of its documents are others now.

        The readings of these are dropped, since their offsets are those of the text before. :meth:`update` anonymises
        them.

        Raises:
            DataError: the bytes cannot be read in the format of the file.
        """
        with self._change(), self._state.open_work_folder() as work:
            file = self._get_file(number)
            path = work / f"source{file.suffix}"
            path.write_bytes(data)
            before = {item.id: item.document.text for item in self.read_documents(number)}
            documents = self._read_file_documents(list_sources(path, file.format)[0][0], number)
            changed = {item.id for item in documents if before.get(item.id) != item.document.text}
            readings = {id: seats for id, seats in self._read_readings(number).items() if id in before.keys() - changed}
            self._state.write_bytes(f"source-{number:04}", data)
            self._write_documents(number, documents)
            self._write_readings(number, readings)
            digest = self._digest_source(data)
            others = [row for row in self._index["files"] if row["number"] != number]
            new = replace(file, name=name, size=len(data), digest=digest, stamp="", settled="")
            self._index["files"] = sorted([*others, asdict(new)], key=lambda row: int(row["number"]))
        return len(changed)
