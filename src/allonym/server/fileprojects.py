"""Projects of files on the server: each is a folder of :mod:`allonym.project` beside the server's vault.

A project carries a scope of the vault, and whoever may use the scope may open the project: its owner, and whom the
owner or an admin let in. Changes that detect run in a worker or in a job.
"""

from __future__ import annotations

import secrets
import shutil
import tomllib
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from allonym.document import Span
from allonym.errors import DataError, RequestError
from allonym.pipeline import replace_found
from allonym.plan import Edit
from allonym.project import Project
from allonym.project.policies import Tables
from allonym.project.readings import (
    FindingDecision,
    LeakMark,
    Reading,
    apply_reading,
    make_checked_reading,
    score_residual_risk,
)
from allonym.project.seats import ReviewDocument
from allonym.project.store import SealedFolder
from allonym.server import database as db
from allonym.server.access import Caller
from allonym.server.database import Database, Sealing, get_unix_time
from allonym.server.policies import Policies
from allonym.server.scopes import PROJECT, Scopes
from allonym.vault import Vault

FOLDER = "projects"
"""In the data folder."""


@dataclass(frozen=True, slots=True)
class FileProject:
    """A project as the database has it."""

    id: str
    name: str = field(repr=False)
    policy: str
    created: int

    @property
    def scope(self) -> str:
        """Its scope in the vault."""
        return PROJECT + self.id


class FileProjects:
    """All projects of files of a server.

    Args:
        folder: the data folder.
        database, sealing: of the server.
        policies: that projects choose from.
        vault: open.
        scopes: who may use which project.
    """

    def __init__(
        self, folder: Path, database: Database, sealing: Sealing, policies: Policies, vault: Vault, scopes: Scopes
    ) -> None:
        self._folder = folder.absolute() / FOLDER
        self._database, self._sealing, self._policies = database, sealing, policies
        self._vault, self._scopes = vault, scopes

    def make_project(self, caller: Caller, name: str, policy: str | None) -> FileProject:
        """Make a project, which its maker owns.

        Raises:
            UnknownNameError: there is no such policy.
        """
        policy = policy or self._policies.default
        toml = self._policies.find_stored_toml(policy)
        self._policies.make_policy_json(policy)
        tables: Tables = [{"extends": policy}] if toml is None else [{**tomllib.loads(toml), "name": policy}]
        row = FileProject(secrets.token_hex(8), name.strip(), policy, get_unix_time())
        self._scopes.register_project(caller, row.scope)
        self._folder.mkdir(mode=0o700, exist_ok=True)
        Project.create(self._folder / row.id, self._vault, tables, scope=row.scope)
        sealed = self._sealing.seal_json({"name": row.name, "policy": policy}, f"project {row.id}")
        self._database.execute_writes(sa.insert(db.file_projects).values(id=row.id, sealed=sealed, created=row.created))
        return row

    def list_projects(self, caller: Caller) -> list[FileProject]:
        """Return the projects that a caller may open, the newest first."""
        rows = self._database.fetch_rows(sa.select(db.file_projects).order_by(db.file_projects.c.created.desc()))
        projects = map(self._unseal_row, rows)
        return [project for project in projects if self._scopes.find_role(caller, project.scope)]

    def get_project(self, caller: Caller, id: str, *, is_owner: bool = False) -> FileProject:
        """Return a project that a caller may open; ``is_owner``: that they own.

        Raises:
            RequestError: there is none for them (404), or it is another's (403).
        """
        self._scopes.check_may_open(caller, PROJECT + id, is_owner=is_owner)
        row = self._database.fetch_first_row(sa.select(db.file_projects).where(db.file_projects.c.id == id))
        if row is None:
            raise RequestError("there is no such project", 404, "NotFound")
        return self._unseal_row(row)

    def open_project(self, caller: Caller, id: str, *, is_owner: bool = False) -> Project:
        """Open a project; see :meth:`get_project`."""
        return Project(self._folder / self.get_project(caller, id, is_owner=is_owner).id, self._vault)

    def remove_project(self, caller: Caller, id: str) -> None:
        """Remove a project with its files and its originals in the vault.

        Raises:
            RequestError: there is none for them (404), it is another's (403), or a job works on it (409).
        """
        project = self.get_project(caller, id, is_owner=True)
        state = self._open_state(id)
        try:
            with state.lock(is_waiting=False) if state.folder.is_dir() else nullcontext():
                shutil.rmtree(self._folder / id, ignore_errors=True)
        except BlockingIOError:
            raise RequestError("a job works on the project; cancel it, or wait for its end", 409, "InUse") from None
        if self._vault.has_scope(project.scope):
            self._vault.purge(scope=project.scope, actor=caller.audit_name)
        self._scopes.remove_scope(project.scope)
        self._database.execute_writes(sa.delete(db.file_projects).where(db.file_projects.c.id == id))

    def remove_abandoned_work_folders(self) -> None:
        """Remove the files in clear that a crash has left in any project."""
        for state in self._folder.glob("*/state"):
            self._open_state(state.parent.name).remove_abandoned_work_folder()

    def remove_unfinished_readings(self, user_id: int) -> None:
        """Remove the readings of a removed user that are not done, so that others can review; finished ones stay."""
        for row in self._database.fetch_rows(sa.select(db.file_projects.c.id)):
            with suppress(DataError, FileNotFoundError):  # nobody reviews in a project whose folder is damaged
                Project(self._folder / row.id, self._vault).remove_unfinished_readings(user_id)

    def _open_state(self, id: str) -> SealedFolder:
        return SealedFolder(self._folder / id / "state", self._vault.operator_key, PROJECT + id)

    def _unseal_row(self, row: Any) -> FileProject:
        values = self._sealing.unseal_json(row.sealed, f"project {row.id}")
        return FileProject(row.id, values["name"], values["policy"], row.created)


@dataclass(frozen=True, slots=True)
class Preview:
    """A stored reading, and what the document becomes under it. Texts are hidden from ``repr``."""

    version: int
    is_done: bool
    state: str
    score: int
    anonymised: str = field(repr=False)
    edits: tuple[Edit, ...] = field(repr=False)
    spans: tuple[Span, ...] = field(repr=False)


def correct_project(
    folder: Path, vault: Vault, surface: str, decision: str, label: str | None, document: str | None
) -> int:
    """Find a surface always or never, or as before (``forget``), and anonymise again; runs in a worker.

    Returns:
        How many files were changed.
    """
    project = Project(folder, vault)
    if decision == "forget":
        return project.forget(surface, document=document)
    return project.correct(surface, label=label, never=decision == "never", document=document)


def correct_person(folder: Path, vault: Vault, person: int, same_as: int | None, part: str | None, actor: str) -> int:
    """Join a person of the register to another, or part a name from the person, and anonymise again; runs in a worker.

    Returns:
        How many files were changed.
    """
    project = Project(folder, vault)
    if part is not None:
        return project.part_name(person, part, actor=actor)
    return project.join_people(same_as or 0, person, actor=actor)


def update_project(folder: Path, vault: Vault) -> int:
    """Anonymise again what settled reviews have changed; runs in a worker."""
    return Project(folder, vault).update()


def save_project_reading(
    folder: Path, vault: Vault, id: str, user_id: int, reader: str, values: Mapping[str, Any], is_verdict: bool
) -> Preview:
    """Store a reading, and return what the document becomes under it; runs in a worker.

    Args:
        folder, vault: of the project.
        id: of the document.
        user_id, reader: the reader's number and name. As the name of a removed user is free again, readings belong to
            the number.
        values: of ``wire.ReadingIn``, as plain values.
        is_verdict: whether it decides where two disagree.
    """
    project = Project(folder, vault)
    item, _ = project.get_document(id)
    text = item.document.text
    marks = [LeakMark(m["start"], m["end"], m["kind"], m["label"]) for m in values["marks"]]
    decisions = [FindingDecision(**{k: v for k, v in d.items() if k != "list"}) for d in values["decisions"]]
    reading = make_checked_reading(marks, decisions, text, item.spans, [(a, b) for a, b in values["opened"]])
    options = {"version": values["version"], "is_done": values["done"], "is_verdict": is_verdict}
    saved, state = project.save_reading(id, user_id, reading, reader=reader, **options)
    spans = apply_reading(reading, text, item.spans)
    shown = replace_found(
        item.document, spans, project.base_policy, key=vault.operator_key, scope=project.scope, keep_plan=False
    )
    score = score_residual_risk(reading, id, text)
    return Preview(saved.version, saved.done, state, score, shown.text, shown.plan.edits, tuple(shown.spans))


def drop_outdated(reading: Reading, item: ReviewDocument) -> Reading:
    """Return a reading without what corrections have made void since: decisions on findings that are gone, and marks
    of what is found now."""
    keys = {(s.start, s.end, s.label) for s in item.spans}
    decisions = tuple(d for d in reading.decisions if (d.start, d.end, d.label) in keys)
    marks = tuple(m for m in reading.marks if not any(s.start <= m.start and m.end <= s.end for s in item.spans))
    return Reading(marks, decisions, reading.opened)


def check_release_number(project: Project, number: int) -> Path:
    """Return the path of a release.

    Raises:
        RequestError: there is none of this number (404).
    """
    names = [row["name"] for row in project.releases[number - 1 : number]]
    path = project.folder / "releases" / (names[0] if names else "")
    if not path.is_file():
        raise RequestError("there is no such release", 404, "NotFound")
    return path
