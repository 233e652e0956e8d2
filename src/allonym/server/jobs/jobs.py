"""The jobs of a server, as its routes use them: make one of an upload, show, cancel, remove, choose a release."""

from __future__ import annotations

import asyncio
import json
import math
import os
import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from allonym.errors import DataError, RequestError, UnknownNameError, UsageError
from allonym.files.restoring import DRAWN
from allonym.files.state import State
from allonym.server.access import Caller
from allonym.server.database import Database, Sealing
from allonym.server.jobs import hardening, names, swapping
from allonym.server.jobs.queue import CANCEL, DONE, OPEN, REMOVE, JobQueue, JobRow
from allonym.server.jobs.runner import Runner
from allonym.server.jobs.task import ROLES, Folder, InputFile, InUse, Spec, open_and_lock_file, write_private
from allonym.server.metrics import Metrics
from allonym.server.policies import Policies
from allonym.server.problems import make_invalid_request_body
from allonym.server.scopes import PROJECT, Scopes
from allonym.server.settings import Settings
from allonym.server.wire import jobs as wire
from allonym.server.wire.base import Wire
from allonym.vault import Vault


@dataclass(frozen=True, slots=True)
class JobKind:
    """A kind of jobs: its options, the permission that it needs besides ``jobs``, and the roles of its files."""

    options: type[Wire]
    permission: str
    roles: tuple[str, ...] = ("files",)


KINDS: Mapping[str, JobKind] = {
    "anonymize": JobKind(wire.AnonymizeOptions, "anonymize"),
    "restore": JobKind(wire.RestoreOptions, "restore"),
    "swap": JobKind(wire.SwapOptions, "anonymize", ("files", "background", "metadata")),
    "evaluate": JobKind(wire.EvaluateOptions, "evaluate", ROLES),
    "harden": JobKind(wire.HardenOptions, "anonymize", ("files", "anonymised", "background", "metadata")),
    "project": JobKind(wire.ProjectOptions, "anonymize"),
}
_OFFERS = {"swap": "releases", "harden": "levels"}
"""Kinds of which one result is chosen among many, and what these are called."""
_ANNOTATED = (".jsonl", ".json", ".conll", ".txt", ".tsv", ".ann", ".spacy", ".bio", ".iob")
_WISH_SECONDS = 10.0
_PAUSE, _LONGEST_PAUSE = 0.02, 0.5


class Jobs:
    """All jobs of one data folder.

    Args:
        settings: folder, number of jobs at once, how long results are kept.
        database, sealing: store the jobs.
        policies: that jobs choose from.
        vault: open.
        scopes: of the vault that jobs may use.
        metrics: count jobs.

    Attributes:
        runner: runs the jobs, those first that an earlier server left.
    """

    def __init__(
        self,
        settings: Settings,
        database: Database,
        sealing: Sealing,
        policies: Policies,
        vault: Vault,
        scopes: Scopes,
        metrics: Metrics,
    ) -> None:
        folder = settings.data.absolute() / "jobs"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
        self._policies, self._scopes = policies, scopes
        self._queue = JobQueue(database, sealing, _get_or_create_folder_id(folder))
        self.runner = Runner(folder, self._queue, settings, vault, metrics, self._check_scope_again)

    # Making

    @contextmanager
    def open_upload_folder(self) -> Iterator[Folder]:
        """A new folder for an upload, locked until it is a job or has failed; then it is removed."""
        with ExitStack() as locks:
            folder = self._create_locked_folder(locks)
            try:
                yield folder
            except BaseException:
                folder.remove()
                raise

    def _create_locked_folder(self, locks: ExitStack) -> Folder:
        while True:
            folder = self.runner.get_job_folder(secrets.token_hex(12))
            # until it is locked, the runner may take it for an upload that broke off, and remove it
            with suppress(InUse, FileNotFoundError):
                folder.create()
                locks.enter_context(folder.lock())
                folder.arriving.mkdir(mode=0o700)
                return folder

    def make_job(self, caller: Caller, fields: Mapping[str, str], uploads: list[InputFile], folder: Folder) -> wire.Job:
        """Make a job of an upload into a folder that :meth:`open_upload_folder` gave.

        Args:
            caller: the owner.
            fields, uploads: the form, see :func:`allonym.server.uploads.receive_form`.
            folder: with the files.

        Raises:
            RequestError: a permission or a file is missing, or an option is wrong.
            UnknownNameError: no such kind or option; the message has the nearest one.
            DataError: no format reads a file.
        """
        kind = fields.get("kind", "")
        if kind not in KINDS:
            raise UnknownNameError("kind of job", kind[:64], KINDS, "form.kind")
        caller.check_permissions(KINDS[kind].permission)
        options = _parse_job_options(kind, fields.get("options") or "{}")
        policy = self._policies.make_policy_json(options.pop("policy")) if "policy" in options else ""
        files = _store_uploads(kind, uploads, options, folder)
        self._check_scope(caller, kind, options)
        if kind == "swap":
            swapping.make_swap_settings(options)
            if options["offset"] is not None and options["slope"] is None:
                raise UsageError("options.offset goes with options.slope")
        first = files[0].shown if files else options["action"]
        count = sum(file.role == "files" for file in files)
        spec = Spec(
            kind=kind,
            name=first if count < 2 else f"{first} and {count - 1} more",
            actor=caller.audit_name,
            files=tuple(files),
            options=options,
            policy=policy,
            shown=_select_options_to_show(options, policy),
        )
        id = folder.path.name
        self._queue.add_job(id, caller.id, caller.name, spec)
        self.runner.wake()
        return self.get_job(caller, id)

    def _check_scope_again(self, row: JobRow) -> None:
        """Check that whoever made a job may still use its scope; raises as :meth:`_check_scope`."""
        caller = Caller(row.user, row.owner, "", frozenset())
        self._check_scope(caller, row.kind, row.spec.options, roles=("owner", "user"))

    def _check_scope(
        self, caller: Caller, kind: str, options: Mapping[str, Any], *, roles: Collection[str] = ("owner",)
    ) -> None:
        """Check that the caller may use the scope of a job, if it has one; who makes the first job of one owns it."""
        scope = options.get("scope")
        if kind == "project" and self._scopes.find_role(caller, PROJECT + options["project"]) not in roles:
            raise RequestError("you own no such project", 404, "NotFound")
        if scope is not None and kind == "restore":
            self._scopes.check_may_restore(caller, scope)
        elif scope is not None:
            self._scopes.check_may_write(caller, scope)

    # Showing

    def list_jobs(self, caller: Caller, offset: int, limit: int, kind: str | None = None) -> wire.Jobs:
        """Return a page of the caller's own jobs, newest first; of all jobs for an admin."""
        user = None if "admin" in caller.permissions else caller.id
        rows, total = self._queue.list_jobs(user, offset, limit, kind)
        return wire.Jobs(jobs=[self._describe_job(row) for row in rows], total=total)

    def get_job(self, caller: Caller, id: str) -> wire.Job:
        """Return a job.

        Raises:
            RequestError: there is none, or it belongs to somebody else (404).
        """
        return self._describe_job(self._get_row_for_caller(caller, id))

    def get_result_path_and_media_type(self, caller: Caller, id: str, name: str) -> tuple[Path, str]:
        """Return the path of a result, and its media type.

        Raises:
            RequestError: there is none of this name (404), or the caller lacks the permission of the job's kind or may
                not use its scope (403).
        """
        row = self._get_row_for_caller(caller, id)
        caller.check_permissions(KINDS[row.kind].permission)
        self._check_scope(caller, row.kind, row.spec.options)
        for path, result in self._list_results(row):
            if result == name:
                return path, names.get_media_type(name)
        raise RequestError("this job has no result of that name", 404, "NotFound")

    def _list_results(self, row: JobRow) -> Iterator[tuple[Path, str]]:
        """Yield the path and the name of each result."""
        for result in row.ending.get("results", ()):
            path = self.runner.get_job_folder(row.id).path / result["path"]
            if path.is_file():
                yield path, result["name"]

    # Wishes

    async def cancel_job(self, caller: Caller, id: str) -> wire.Job:
        """End a job that has not ended; its files are removed, but for the results of an earlier run of a swap.

        Raises:
            RequestError: there is none (404), or it has ended (409).
        """
        await run_in_threadpool(self._request_cancel_or_removal, caller, id, CANCEL)
        await _wait_until(lambda: (row := self._queue.find_job(id)) is None or row.state not in OPEN, _WISH_SECONDS)
        return await run_in_threadpool(self.get_job, caller, id)

    async def remove_job(self, caller: Caller, id: str) -> None:
        """End a job if it runs, and remove it with all its files.

        Raises:
            RequestError: there is none (404).
        """
        await run_in_threadpool(self._request_cancel_or_removal, caller, id, REMOVE)
        await _wait_until(lambda: self._queue.find_job(id) is None, _WISH_SECONDS)

    def remove_user_jobs(self, user_id: int) -> None:
        """Remove all jobs of a removed user."""
        self._queue.request_user_jobs_removal(user_id)
        self.runner.wake()

    def _request_cancel_or_removal(self, caller: Caller, id: str, action: str) -> None:
        row = self._get_row_for_caller(caller, id)
        if not self._queue.request_cancel_or_removal(row.id, action) and action == CANCEL:
            raise RequestError(f"this job is {row.state} already", 409, "Ended")
        self.runner.wake()

    # Releases of a swap, levels of hardening

    def list_releases(self, caller: Caller, id: str) -> wire.Releases:
        """Return the releases of a swap, for a plot.

        Raises:
            RequestError: it is no swap, or not done (409).
        """
        return self._read_releases(self._get_finished_search(caller, id, "swap"))

    def _load_choices(self, row: JobRow, name: str) -> tuple[State, dict[str, Any], int]:
        """Return the state of a job, what it holds under ``name`` for the user to choose from, and what is chosen."""
        state = State(self.runner.get_job_folder(row.id).state)
        if (stored := state.load_value(name)) is None:
            raise RequestError(f"the {name} of this job are gone", 404, "NotFound")
        return state, stored, _get_chosen_number(row)

    def _read_releases(self, row: JobRow) -> wire.Releases:
        state, stored, chosen = self._load_choices(row, swapping.RELEASES)
        releases = [
            {
                **release,
                "chosen": release["id"] == chosen,
                "written": state.load_value(swapping.name_written_numbers(release["id"])),
            }
            for release in stored["releases"]
        ]
        return wire.Releases.model_validate({**stored, "releases": releases, "chosen": chosen, "baseline": {}})

    def list_levels(self, caller: Caller, id: str) -> wire.Levels:
        """Return the levels of hardening, for a plot.

        Raises:
            RequestError: it is no hardening, or not done (409).
        """
        return self._read_levels(self._get_finished_search(caller, id, "harden"))

    def _read_levels(self, row: JobRow) -> wire.Levels:
        state, stored, chosen = self._load_choices(row, hardening.LEVELS)
        levels = [
            wire.LevelOut.from_values(
                {
                    "id": number,
                    "chosen": number == chosen,
                    "panel": state.load_value(hardening.name_level_panel(number)),
                    **{key: wire.Number.from_values(value) for key, value in level.items()},
                }
            )
            for number, level in enumerate(stored["levels"])
        ]
        chance = wire.Number.from_values(stored["chance"])
        return wire.Levels(levels=levels, chosen=chosen, suggested=stored["suggested"], chance=chance)

    async def get_or_make_release_documents(
        self,
        caller: Caller,
        id: str,
        release_id: int,
        offset: int,
        limit: int,
        timeout: float,
        retry: bool = False,
    ) -> wire.Documents:
        """Return documents of a release, or of a level of hardening, before and after. What does not exist yet is made;
        this waits for it.

        Raises:
            RequestError: it is no swap or hardening, not done, or has no such release; or it could not be made (409
                NotMade), and the call does not ask to ``retry``.
        """
        path = await run_in_threadpool(self._request_release_documents, caller, id, release_id, retry)
        await _wait_until(path.exists, timeout)
        return await run_in_threadpool(swapping.read_release_documents, path, offset, limit)

    def _request_release_documents(self, caller: Caller, id: str, release_id: int, retry: bool) -> Path:
        """Return the path of the documents of a release, after requesting them where they are missing."""
        row = self._get_finished_search(caller, id, release_id=release_id)
        path = swapping.get_release_documents_path(self.runner.get_job_folder(row.id).made, release_id)
        if not path.exists():
            is_last = row.state == DONE and row.releases.get("make", [])[-1:] == [release_id]
            failure = row.ending.get("error") if is_last else None
            if failure and not retry:
                raise RequestError(f"this release could not be made: {failure}", 409, "NotMade")
            self._queue_release(row, "make", release_id)
        return path

    def request_release_as_result(self, caller: Caller, id: str, release_id: int) -> wire.Job:
        """Request that a release is written as a result, and return its job.

        Raises:
            RequestError: as :meth:`get_or_make_release_documents`.
        """
        self._queue_release(self._get_finished_search(caller, id, release_id=release_id), "choose", release_id)
        return self.get_job(caller, id)

    def _queue_release(self, row: JobRow, action: str, release_id: int) -> None:
        """Queue the job once more for a release; files that exist are not made again."""
        if row.state in OPEN and row.releases.get(action, [])[-1:] == [release_id]:
            return
        if not self._queue.request_release(row.id, action, release_id):
            raise RequestError("there is no such job", 404, "NotFound")
        self.runner.wake()

    def _get_finished_search(
        self, caller: Caller, id: str, kind: str | None = None, *, release_id: int | None = None
    ) -> JobRow:
        """Return a swap or hardening, or one of a kind, that is done, and that has this release or level."""
        row = self._get_row_for_caller(caller, id)
        noun = _OFFERS.get(row.kind if kind is None else kind, "releases or levels")
        if row.kind not in (_OFFERS if kind is None else (kind,)):
            raise RequestError(f"this job is of the kind {row.kind!r}; it has no {noun}", 409, "WrongKind")
        if not row.ending.get("results"):
            raise RequestError(f"this job is {row.state}; it has no {noun}", 409, "NotDone")
        if release_id is not None:
            is_swap = row.kind == "swap"
            if release_id >= len(self._read_releases(row).releases if is_swap else self._read_levels(row).levels):
                raise RequestError(f"this job has no {noun[:-1]} {release_id}", 404, "NotFound")
        return row

    def _get_row_for_caller(self, caller: Caller, id: str) -> JobRow:
        row = self._queue.find_job(id)
        if row is None or row.wish == REMOVE or not (row.user == caller.id or "admin" in caller.permissions):
            raise RequestError("there is no such job", 404, "NotFound")
        return row

    def _describe_job(self, row: JobRow) -> wire.Job:
        progress = self.runner.get_job_folder(row.id).read_progress() if row.state in OPEN else {}
        if row.state == DONE:
            progress = {"done": 1, "of": 1, "stage": "done"}
        results = [
            wire.ResultOut(name=name, size=path.stat().st_size, media_type=names.get_media_type(name))
            for path, name in self._list_results(row)
        ]
        columns = ("id", "kind", "owner", "state", "created", "started", "ended")
        return wire.Job(
            **{name: getattr(row, name) for name in columns},
            name=row.spec.name,
            progress=wire.Progress.from_values(progress),
            options=dict(row.spec.shown),
            expires=None if row.ended is None else row.ended + self.runner.keep_seconds,
            error=row.ending.get("error"),
            results=results,
            summary=_name_refused_files(row),
        )


def _get_chosen_number(row: JobRow) -> int:
    """Return the number of the release or level that was chosen last."""
    return int((row.releases.get("choose") or [row.ending["summary"]["chosen"]])[-1])


def _name_refused_files(row: JobRow) -> dict[str, Any]:
    """Return a job's summary, with the names of refused files, which the job's folder does not tell."""
    summary: dict[str, Any] = dict(row.ending.get("summary", {}))
    shown = {file.stored: file.shown for file in row.spec.files}
    if row.kind == "project" and "refused" in summary:
        summary["refused"] = [{**refused, "name": shown.get(refused["name"])} for refused in summary["refused"]]
    return summary


async def _wait_until(condition: Callable[[], bool], timeout: float) -> None:
    """Wait until a condition holds, at most for some seconds, and occupy a thread only to check it."""
    until, pause = time.monotonic() + timeout, _PAUSE
    while not await run_in_threadpool(condition) and time.monotonic() < until:
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE)


def _parse_job_options(kind: str, json_text: str) -> dict[str, Any]:
    model = KINDS[kind].options
    try:
        values = json.loads(json_text)
    except (ValueError, RecursionError):
        raise RequestError("options must be JSON", 422, "InvalidRequest") from None
    if not isinstance(values, dict):
        raise RequestError(f"options must be an object, got {type(values).__name__}", 422, "InvalidRequest")
    for name in values:
        if name not in model.model_fields:
            raise UnknownNameError("option", name[:64], model.model_fields, f"options of {kind}")
    try:
        options = model.model_validate(values).model_dump()
        json.dumps(options, allow_nan=False)
        return options
    except ValidationError as error:
        problem = make_invalid_request_body(error.errors(include_input=False, include_url=False), "options")["error"]
        raise RequestError(f"{problem['where']}: {problem['message']}", 422, "InvalidRequest") from None
    except (ValueError, RecursionError):
        message = "options: numbers must be finite, and not nested too deep"
        raise RequestError(message, 422, "InvalidRequest") from None


def _store_uploads(kind: str, uploads: list[InputFile], options: dict[str, Any], folder: Folder) -> list[InputFile]:
    """Put uploaded files where a job of this kind looks for them, under numbers."""
    roles = KINDS[kind].roles
    for file in uploads:
        if file.role not in roles:
            raise UnknownNameError("field with a file", file.role, roles, f"a job of the kind {kind}")
    stored: list[InputFile] = []
    used: dict[str, set[str]] = {role: set() for role in ROLES}
    for number, file in enumerate(uploads, 1):
        shown = names.reserve_unique_name(names.clean_file_name(file.shown, number), used[file.role])
        if file.role == "gold":
            name = f"file-{number:05}{names.require_allowed_suffix(shown, _ANNOTATED)}"
        else:
            name = names.make_stored_name(shown, number, options.get("format") if file.role == "files" else None)
        if kind == "restore" and name.partition(".")[2] in DRAWN:
            raise DataError(f"{shown}: no original can be put back into {', '.join(DRAWN)}")
        stored.append(replace(file, shown=shown, stored=name))
    if not used["files"] and options.get("action") != "release":
        raise RequestError("a job needs a file in the field files", 422, "NoFile")
    for role in ("gold", "metadata"):
        if len(used[role]) > 1:
            raise RequestError(f"only one file can be in the field {role}", 422, "TooManyFiles")
    if kind == "restore" and options["plan"] is not None and len(stored) > 1:
        raise RequestError("a plan is of one file", 422, "TooManyFiles")
    if kind in ("evaluate", "harden"):
        stored = _name_anonymised_after_originals(stored, options)
    for target, file in zip(stored, uploads, strict=True):
        parent = folder.get_input_folder(target.role)
        for part in (parent.parent, parent):
            part.mkdir(mode=0o700, exist_ok=True)
        os.replace(folder.arriving / file.stored, parent / target.stored)
    folder.arriving.rmdir()
    return stored


def _name_anonymised_after_originals(files: list[InputFile], options: dict[str, Any]) -> list[InputFile]:
    """Store each anonymised file under the number of its original, which pairs them."""
    originals = [file for file in files if file.role == "files"]
    count = sum(file.role == "anonymised" for file in files)
    if not count and not options["anonymised_fields"]:
        raise RequestError("the field anonymised needs a file, or anonymised_fields a name", 422, "NoFile")
    if count and count != len(originals):
        message = f"{len(originals)} originals need as many anonymised files, got {count}"
        raise RequestError(message, 422, "NoPartner")
    if len(originals) == 1:
        return files
    by_name = {names.fold_name(file.shown): file.stored for file in originals}
    by_name |= {names.fold_name(names.append_to_stem(file.shown, "safe")): file.stored for file in originals}
    pairs = []
    for file in files:
        if file.role == "anonymised":
            partner = by_name.get(names.fold_name(file.shown))
            if partner is None:
                raise RequestError(f"no original is called {file.shown!r}", 422, "NoPartner")
            file = replace(file, stored=partner)
        pairs.append(file)
    return pairs


def _select_options_to_show(options: Mapping[str, Any], policy_json: str) -> dict[str, Any]:
    """Return options as they are shown again: those that were chosen, and the policy's name."""
    shown = {name: value for name, value in options.items() if value not in (None, [], {}, False) and name != "plan"}
    if policy_json:
        shown["policy"] = json.loads(policy_json)["name"]
    return shown


def _get_or_create_folder_id(data_folder: Path) -> str:
    """Return the name of a data folder in the database, which its first server makes."""
    path = data_folder / "home"
    handle = open_and_lock_file(data_folder / "home.lock", math.inf)
    try:
        if not path.exists():
            write_private(path, json.dumps({"home": secrets.token_hex(16)}))
    finally:
        os.close(handle)
    return str(json.loads(path.read_text())["home"])
