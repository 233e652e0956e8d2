"""What routes ask of jobs: make one of an upload, look, cancel, remove, choose a release."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from allonym.errors import DataError, RequestError, UnknownNameError, UsageError
from allonym.files.restoring import PLAIN
from allonym.server.access import Who
from allonym.server.database import Database
from allonym.server.jobs import names, swapping
from allonym.server.jobs.folder import Folder, InUse, write_whole
from allonym.server.jobs.queue import CANCEL, DONE, OPEN, REMOVE, Queue, Row
from allonym.server.jobs.runner import Runner
from allonym.server.jobs.task import ROLES, Sent, Spec
from allonym.server.jobs.uploads import Arrived, Form
from allonym.server.metrics import Metrics
from allonym.server.policies import Policies
from allonym.server.problems import invalid
from allonym.server.sealing import Sealing
from allonym.server.settings import Settings
from allonym.server.wire import jobs as wire
from allonym.server.wire.base import Wire
from allonym.vault import Vault

OPTIONS: Mapping[str, type[Wire]] = {
    "anonymize": wire.AnonymizeOptions,
    "restore": wire.RestoreOptions,
    "swap": wire.SwapOptions,
    "evaluate": wire.EvaluateOptions,
}
PERMISSIONS: Mapping[str, str] = {
    "anonymize": "anonymize",
    "restore": "restore",
    "swap": "anonymize",
    "evaluate": "evaluate",
}
"""What each kind needs besides ``jobs``."""

_TAKEN: Mapping[str, tuple[str, ...]] = {
    "anonymize": ("files",),
    "restore": ("files",),
    "swap": ("files", "background", "metadata"),
    "evaluate": ROLES,
}
_ANNOTATED = (".jsonl", ".json", ".conll", ".txt", ".tsv", ".ann", ".spacy", ".bio", ".iob")
_GONE = 10.0
_PAUSE, _LONGEST_PAUSE = 0.02, 0.5


class Jobs:
    """All jobs of one data folder.

    Args:
        settings: folder, number of jobs at once, how long results are kept.
        database, sealing: where jobs are noted.
        policies: that jobs choose from.
        vault: open.
        metrics: that count jobs.
    """

    def __init__(
        self,
        settings: Settings,
        database: Database,
        sealing: Sealing,
        policies: Policies,
        vault: Vault,
        metrics: Metrics,
    ) -> None:
        self._folder = settings.data.absolute() / "jobs"
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.chmod(0o700)
        self._policies, self._keep = policies, settings.keep_results_hours * 3600
        self._queue = Queue(database, sealing, _home(self._folder))
        self._runner = Runner(
            self._folder,
            self._queue,
            vault,
            workers=settings.job_workers,
            keep=self._keep,
            counted=metrics.jobs,
        )

    def __repr__(self) -> str:
        return "Jobs()"

    def start(self) -> None:
        """Begin to run jobs, those first that a server before this one left."""
        self._runner.start()

    def stop(self) -> None:
        """Stop all processes where they can go on; their jobs are taken up at the next start."""
        self._runner.stop()

    # Making

    @contextmanager
    def coming(self) -> Iterator[Folder]:
        """A new folder for an upload, held until it is a job or has failed; then it is removed."""
        with ExitStack() as held:
            folder = self._new(held)
            try:
                yield folder
            except BaseException:
                folder.remove()
                raise

    def _new(self, held: ExitStack) -> Folder:
        while True:
            folder = self._runner.folder(secrets.token_hex(12))
            # until it is held, the runner may take it for an upload that broke off, and remove it
            with suppress(InUse, FileNotFoundError):
                folder.make()
                held.enter_context(folder.held())
                (folder.path / "arriving").mkdir(mode=0o700)
                return folder

    def make(self, who: Who, form: Form, folder: Folder) -> wire.Job:
        """A job of what was uploaded into a folder that :meth:`coming` gave.

        Raises:
            RequestError: a permission or a file is missing, or an option is wrong.
            UnknownNameError: no such kind or option; says the nearest.
            DataError: no format reads a file.
        """
        kind = form.texts.get("kind", "")
        if kind not in OPTIONS:
            raise UnknownNameError("kind of job", kind[:64], OPTIONS, "form.kind")
        if not who.may(PERMISSIONS[kind]):
            raise RequestError(f"this needs the permission {PERMISSIONS[kind]!r}", 403, "NotAllowed")
        options = self._options(kind, form.texts.get("options") or "{}")
        policy = ""
        if "policy" in options:
            policy = self._policies.source(options.pop("policy"))
        files = _stored(kind, form.files, options, folder)
        if kind == "swap":
            swapping.settings_of(options)
            if options["offset"] is not None and options["slope"] is None:
                raise UsageError("options.offset goes with options.slope")
        first = files[0].shown
        count = sum(one.role == "files" for one in files)
        spec = Spec(
            kind=kind,
            name=first if count == 1 else f"{first} and {count - 1} more",
            actor=who.shown,
            files=tuple(files),
            options=options,
            policy=policy,
            shown=_shown(options, policy),
        )
        id = folder.path.name
        self._queue.add(id, who.id, who.name, spec)
        self._runner.wake()
        return self.one(who, id)

    def _options(self, kind: str, text: str) -> dict[str, Any]:
        model = OPTIONS[kind]
        try:
            given = json.loads(text)
        except (ValueError, RecursionError):
            raise RequestError("options must be JSON", 422, "InvalidRequest") from None
        if not isinstance(given, dict):
            raise RequestError(f"options must be an object, got {type(given).__name__}", 422, "InvalidRequest")
        for name in given:
            if name not in model.model_fields:
                raise UnknownNameError("option", name[:64], model.model_fields, f"options of {kind}")
        try:
            options = model.model_validate(given).model_dump()
            json.dumps(options, allow_nan=False)
            return options
        except ValidationError as error:
            rows = error.errors(include_input=False, include_url=False)
            told = invalid([{**row, "loc": ("options", *row["loc"])} for row in rows])["error"]
            raise RequestError(f"{told['where']}: {told['message']}", 422, "InvalidRequest") from None
        except (ValueError, RecursionError):
            raise RequestError(
                "options: numbers must be finite, and not nested too deep", 422, "InvalidRequest"
            ) from None

    # Looking

    def listed(self, who: Who, offset: int, limit: int, kind: str | None = None) -> wire.Jobs:
        """One's own jobs, newest first; an admin sees all."""
        rows, total = self._queue.listed(None if who.may("admin") else who.id, offset, limit, kind)
        return wire.Jobs(jobs=[self._job(row) for row in rows], total=total)

    def one(self, who: Who, id: str) -> wire.Job:
        """A job.

        Raises:
            RequestError: there is none, or it is another's (404).
        """
        return self._job(self._row(who, id))

    def result(self, who: Who, id: str, name: str) -> tuple[Path, str]:
        """Where a result lies, and its media type.

        Raises:
            RequestError: there is none of this name (404), or what the job does is not allowed any more (403).
        """
        row = self._row(who, id)
        if not who.may(PERMISSIONS[row.kind]):
            raise RequestError(f"this needs the permission {PERMISSIONS[row.kind]!r}", 403, "NotAllowed")
        for made in row.told.get("results", ()):
            if made["name"] == name:
                path = self._runner.folder(row.id).path / made["path"]
                if path.is_file():
                    return path, made["media_type"]
        raise RequestError("this job has no result of that name", 404, "NotFound")

    # Wishes

    async def cancel(self, who: Who, id: str) -> wire.Job:
        """End a job that has not ended; its files are removed, but for what a swap had written before.

        Raises:
            RequestError: there is none (404), or it has ended (409).
        """
        await run_in_threadpool(self._wish, who, id, CANCEL)
        await _until(lambda: (now := self._queue.one(id)) is None or now.state not in OPEN, _GONE)
        return await run_in_threadpool(self.one, who, id)

    async def remove(self, who: Who, id: str) -> None:
        """End a job if it runs, and remove it with all its files.

        Raises:
            RequestError: there is none (404).
        """
        await run_in_threadpool(self._wish, who, id, REMOVE)
        await _until(lambda: self._queue.one(id) is None, _GONE)

    def forget(self, user: int) -> None:
        """Remove all jobs of a user who is no more."""
        self._queue.wish_all(user, REMOVE)
        self._runner.wake()

    def _wish(self, who: Who, id: str, wish: str) -> None:
        row = self._row(who, id)
        if not self._queue.wish(row.id, wish) and wish == CANCEL:
            raise RequestError(f"this job is {row.state} already", 409, "Ended")
        self._runner.wake()

    # Releases of a swap

    def releases(self, who: Who, id: str) -> wire.Releases:
        """What a swap found, for a plot.

        Raises:
            RequestError: it is no swap, or not done (409).
        """
        return self._releases(self._swap(who, id))

    def _releases(self, row: Row) -> wire.Releases:
        from allonym.files.state import State

        found = State(self._runner.folder(row.id).state).find(swapping.SHOWN)
        if found is None:
            raise RequestError("the releases of this job are gone", 404, "NotFound")
        chosen = row.wanted.get("choose", [])[-1:] or [row.told["summary"]["chosen"]]
        rows = [{**one, "chosen": one["id"] == chosen[0]} for one in found["releases"]]
        return wire.Releases.model_validate({**found, "releases": rows, "chosen": chosen[0], "baseline": {}})

    async def documents(
        self, who: Who, id: str, release: int, offset: int, limit: int, wait: float, again: bool = False
    ) -> wire.Documents:
        """Documents of a release before and after. One that was not made yet is made, for which this waits.

        Raises:
            RequestError: it is no swap, not done, or has no such release; or it could not be made (409 NotMade), and
                the call does not ask to try ``again``.
        """
        path = await run_in_threadpool(self._made, who, id, release, again)
        await _until(path.exists, wait)
        return await run_in_threadpool(_page, path, offset, limit)

    def _made(self, who: Who, id: str, release: int, again: bool) -> Path:
        """Where the documents of a release lie, or will lie when it is made."""
        row = self._swap(who, id)
        self._known(row, release)
        path = swapping.texts_path(self._runner.folder(row.id).made, release)
        if not path.exists():
            failed = (
                row.told.get("error") if row.state == DONE and row.wanted.get("make", [])[-1:] == [release] else None
            )
            if failed and not again:
                raise RequestError(f"this release could not be made: {failed}", 409, "NotMade")
            self._want(row, "make", release)
        return path

    def choose(self, who: Who, id: str, release: int) -> wire.Job:
        """Write a release as a result.

        Raises:
            RequestError: as :meth:`documents`.
        """
        row = self._swap(who, id)
        self._known(row, release)
        self._want(row, "choose", release)
        return self.one(who, id)

    def _known(self, row: Row, release: int) -> None:
        if release >= len(self._releases(row).releases):
            raise RequestError(f"this job has no release {release}", 404, "NotFound")

    def _want(self, row: Row, what: str, release: int) -> None:
        """Queue the job once more for a release; whatever is there already is not made again."""
        if row.state in OPEN and row.wanted.get(what, [])[-1:] == [release]:
            return
        if self._queue.want(row.id, what, release) is None:
            raise RequestError("there is no such job", 404, "NotFound")
        self._runner.wake()

    def _swap(self, who: Who, id: str) -> Row:
        row = self._row(who, id)
        if row.kind != "swap":
            raise RequestError(f"this job is of the kind {row.kind!r}; only a swap has releases", 409, "WrongKind")
        if not row.told.get("results"):
            raise RequestError(f"this job is {row.state}; it has no releases", 409, "NotDone")
        return row

    # Inside

    def _row(self, who: Who, id: str) -> Row:
        row = self._queue.one(id)
        if row is None or row.wish == REMOVE or not (row.user == who.id or who.may("admin")):
            raise RequestError("there is no such job", 404, "NotFound")
        return row

    def _job(self, row: Row) -> wire.Job:
        folder, told = self._runner.folder(row.id), row.told
        progress = folder.progress() if row.state in OPEN else {}
        shown = {name: progress[name] for name in ("done", "of", "stage") if name in progress}
        if row.state == DONE:
            shown = {"done": 1, "of": 1, "stage": "done"}
        results = []
        for made in told.get("results", ()):
            path = folder.path / made["path"]
            if path.is_file():
                size, kind = path.stat().st_size, made["media_type"]
                results.append(wire.ResultOut(name=made["name"], size=size, media_type=kind))
        return wire.Job(
            id=row.id,
            kind=cast(Any, row.kind),
            name=row.spec.name,
            owner=row.owner,
            state=cast(Any, row.state),
            progress=wire.Progress(**shown),
            options=dict(row.spec.shown),
            created=row.created,
            started=row.started,
            ended=row.ended,
            expires=None if row.ended is None else row.ended + int(self._keep),
            error=told.get("error"),
            results=results,
            summary=told.get("summary", {}),
        )


async def _until(done: Callable[[], bool], seconds: float) -> None:
    """Wait until it is done, at most so long, and hold a thread only to look."""
    until, pause = time.monotonic() + seconds, _PAUSE
    while not await run_in_threadpool(done) and time.monotonic() < until:
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE)


def _page(path: Path, offset: int, limit: int) -> wire.Documents:
    if not path.exists():
        return wire.Documents(documents=[], total=0, ready=False)
    rows, total = swapping.documents(path, offset, limit)
    return wire.Documents(documents=[wire.Beside.model_validate(one) for one in rows], total=total, ready=True)


def _stored(kind: str, files: list[Arrived], options: dict[str, Any], folder: Folder) -> list[Sent]:
    """Put uploaded files where a job of this kind looks for them, under numbers."""
    allowed = _TAKEN[kind]
    for one in files:
        if one.role not in allowed:
            raise UnknownNameError("field with a file", one.role, allowed, f"a job of the kind {kind}")
    out: list[Sent] = []
    taken: dict[str, set[str]] = {role: set() for role in ROLES}
    for number, one in enumerate(files, 1):
        shown = names.apart(names.cleaned(one.name, number), taken[one.role])
        taken[one.role].add(names.folded(shown))
        if one.role == "gold":
            name = f"file-{number:05}{names.plain_suffix(shown, _ANNOTATED)}"
        else:
            name = names.stored(shown, number, options.get("format") if one.role == "files" else None)
        if kind == "restore" and name.partition(".")[2] not in PLAIN:
            raise DataError(f"{shown}: restore works on plain text: {', '.join(PLAIN)}")
        out.append(Sent(one.role, shown, name, one.size))
    roles = [one.role for one in out]
    if "files" not in roles:
        raise RequestError("a job needs a file in the field files", 422, "NoFile")
    for role in ("gold", "metadata"):
        if roles.count(role) > 1:
            raise RequestError(f"only one file can be in the field {role}", 422, "TooManyFiles")
    if kind == "restore" and options["plan"] is not None and len(out) > 1:
        raise RequestError("a plan is of one file", 422, "TooManyFiles")
    if kind == "evaluate":
        out = _partners(out, options)
    for sent, at in zip(out, files, strict=True):
        place = folder.inputs(sent.role)
        for part in (place.parent, place):
            part.mkdir(mode=0o700, exist_ok=True)
        os.replace(at.path, place / sent.stored)
    (folder.path / "arriving").rmdir()
    return out


def _partners(files: list[Sent], options: dict[str, Any]) -> list[Sent]:
    """Each anonymised file stored under the number of its original, by which the two go together."""
    originals = [one for one in files if one.role == "files"]
    others = [one for one in files if one.role == "anonymised"]
    if not others and not options["anonymised_fields"]:
        raise RequestError("the field anonymised needs a file, or anonymised_fields a name", 422, "NoFile")
    if others and len(others) != len(originals):
        said = f"{len(originals)} originals need as many anonymised files, got {len(others)}"
        raise RequestError(said, 422, "NoPartner")
    if len(originals) == 1:
        return files
    by_name = {names.folded(one.shown): one.stored for one in originals}
    by_name |= {names.folded(names.with_mark(one.shown, "safe")): one.stored for one in originals}
    out = []
    for one in files:
        if one.role == "anonymised":
            partner = by_name.get(names.folded(one.shown))
            if partner is None:
                raise RequestError(f"no original is called {one.shown!r}", 422, "NoPartner")
            one = Sent(one.role, one.shown, partner, one.size)
        out.append(one)
    return out


def _shown(options: Mapping[str, Any], policy: str) -> dict[str, Any]:
    """Options as they are shown again: those that were chosen, and the policy's name."""
    told = {name: value for name, value in options.items() if value not in (None, [], {}, False) and name != "plan"}
    if policy:
        told["policy"] = json.loads(policy)["name"]
    return told


def _home(folder: Path) -> str:
    """What names this data folder in the database: made once, by the first server."""
    path = folder / "home"
    handle = os.open(folder / "home.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        if not path.exists():
            write_whole(path, {"home": secrets.token_hex(16)})
    finally:
        os.close(handle)
    return str(json.loads(path.read_text())["home"])
