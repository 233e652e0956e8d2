"""Files and folders on a Ray cluster: the same bytes as on one machine, even if workers die.

The driver assigns steps (:mod:`allonym.scale.partitions`) to actors, one each at a time. Only names and numbers go
through Ray, never a document, so the driver's memory does not grow with the documents and Ray's object store stays
empty. Actors are used instead of Ray Data because the result of a step is a file, written atomically, so a step can be
repeated. Rows in the object store would have to be stored, ordered and written by another process. Ray restarts an
actor that died, with its step.
"""

from __future__ import annotations

import json
import pickle
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

from allonym import __version__
from allonym.batch import Key
from allonym.errors import AllonymError, DataError, UsageError
from allonym.files.journal import Journal, check_journal_head, make_journal_head
from allonym.files.record import Job, Tally
from allonym.files.run import Advance, Run, describe_run_identity, describe_settings
from allonym.files.runreport import RunReport
from allonym.files.tasks import BATCH
from allonym.partfile import write_file
from allonym.policy import Policy
from allonym.scale.cluster import connect_ray, count_processors
from allonym.scale.partitions import OPEN, Outcome, Schedule, Step, Worker, choose_slice_size, read_group_result
from allonym.scale.storage import Disk, Listing, check_targets, is_uri, list_files

_INLINE = 1 << 16
_END = 10.0  # seconds that killed workers may take to end

RETRIES = 8
"""Number of times that a step is repeated after its worker died, before the run fails."""


def anonymize_on_ray(
    source: str | Path,
    target: str | Path,
    policy: str | Path | Policy = "default",
    *,
    key: Key = None,
    scope: str = "",
    fields: Sequence[str] | None = None,
    format: str | None = None,
    workers: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    plans: str | Path | None = None,
    originals: bool = False,
    report: str | Path | None = None,
    quarantine: str | Path | None = None,
    batch_size: int = BATCH,
    partition_size: int | None = None,
    progress: Advance | None = None,
) -> RunReport:
    """Anonymise a file or a folder on a Ray cluster; the bytes are those of :func:`allonym.files.anonymize_path`.

    The cluster is the one that the caller is connected to, else the one in ``RAY_ADDRESS``, else one started on this
    machine for the run. All machines of the cluster need the same version of allonym and the same local paths.

    Finished partitions are kept in a hidden folder beside the target until the run is complete. A worker that dies
    costs its partition; a killed run continues with ``resume``.

    Args:
        source: a path, or a URI such as ``s3://bucket/folder``. Never changed.
        target: the same. State lies beside it under a hidden name.
        policy: a preset's name, a TOML file's path, or a :class:`Policy`.
        key: secret of the keyed operators. It is sent to the workers.
        scope: names the project or release.
        fields: column names, or dotted paths, of the text to anonymise; by default all text except record ids.
        format: overrides the suffix.
        workers: number of actors, of one processor each; by default the cluster's number of processors.
        resume: continue an interrupted run of the same call.
        overwrite: replace an existing target, and discard an interrupted run.
        plans, report, quarantine: as for :func:`allonym.files.anonymize_path`; files of this machine. By default the
            quarantine file is beside the target.
        originals: include the originals in the plans.
        batch_size: as for :func:`allonym.files.anonymize_path`.
        partition_size: bytes of a file that a worker anonymises at once, and loses if it dies. By default a 256th of
            the source, from 64 KB to 1 MB, or up to 16 MB for sources of terabytes. A run cannot be resumed with
            another size.
        progress: called with (finished bytes of the source, all bytes).

    Raises:
        UsageError: the call, the policy or a field is wrong, the target exists, or there is nothing to resume.
        DataError: a single file cannot be read, or has content that cannot be treated. Nothing is written.
        AllonymError: workers died too often at one step; the run can be resumed.
        MissingExtra: Ray, or for a URI pyarrow, is not installed.
    """
    began = time.monotonic()
    policy = Policy.load(policy)
    for name, number in (("workers", workers), ("batch_size", batch_size), ("partition_size", partition_size)):
        if number is not None and number < 1:
            raise UsageError(f"{name} must be 1 or more, got {number}")
    for name, path in (("plans", plans), ("report", report), ("quarantine", quarantine)):
        # A path that went through pathlib has lost a slash.
        if path is not None and (is_uri(path) or is_uri(str(path).replace(":/", "://", 1))):
            raise UsageError(f"{name} is a file of this machine, not a URI")
    job = Job(policy, key, tuple(fields or ()), plans is not None, originals, None, scope)
    listing = list_files(source, target, format)
    total = sum(item.size for item in listing.items)
    if partition_size is None:
        partition_size = choose_slice_size(total)
    settings = describe_settings(job, listing.items, format, listing.folder)
    local = isinstance(listing.storage, Disk)
    if quarantine is None and local:
        quarantine = f"{listing.target}.quarantine.jsonl"
    identity = describe_run_identity(
        listing.items,
        job,
        settings,
        quarantine,
        batch_size=batch_size,
        plans=str(plans),
        runner="ray",
        partition_size=partition_size,
    )
    extras = [Path(p) for p in (quarantine, plans, report) if p is not None]
    journal = _Remembered(listing, identity, key, resume=resume, overwrite=overwrite)
    keep = journal.resumed
    try:
        check_targets(listing, extras, overwrite, fresh=not journal.resumed)
        schedule = Schedule(listing.items, partition_size)
        worker = Worker(job, listing.folder, listing.storage, journal.state_of_run, partition_size, batch_size)
        keep = True

        def report_bytes(bytes_done: int) -> None:
            if progress:
                progress(min(bytes_done, total), total or None)

        with connect_ray(workers) as ray:
            _run_steps(ray, worker, schedule, workers or count_processors(ray), report_bytes)
        state = journal.state_of_run
        run_report = _join_group_outputs(listing, state, schedule.count, job, quarantine, plans, settings, began)
        if report is not None:
            write_file(Path(report), run_report.to_json().encode())
        keep = False
        return run_report
    except (DataError, UsageError):
        keep = journal.resumed
        raise
    finally:
        journal.close(keep=keep)


class _Remembered:
    """The state of an interrupted run: its journal beside a local target, or the same line as a remote object.

    Parts and notes are in the folder ``state_of_run``, which belongs to one run, so that a worker of an old run that
    has not ended yet does not disturb a new one.
    """

    def __init__(
        self, listing: Listing, identity: dict[str, object], key: Key, *, resume: bool, overwrite: bool
    ) -> None:
        self.storage, self.state = listing.storage, listing.state_folder
        self._journal: Journal | None = None
        if isinstance(self.storage, Disk):
            self._journal = Journal(Path(listing.target), identity, key, resume=resume, overwrite=overwrite)
            self.resumed = self._journal.resumed
            self.state_of_run = f"{self.state}/{self._journal.salt}"
            self.storage.remove_folder(f"{self.state_of_run}/scratch" if self.resumed else self.state)
            for folder in (self.state, self.state_of_run):
                Path(folder).mkdir(mode=0o700, exist_ok=True)
            self.storage.write(f"{self.state_of_run}/{OPEN}", b"1")
            return
        head = self.storage.read(f"{self.state}/run.json")
        if head is not None and not resume and not overwrite:
            raise UsageError(f"an unfinished run lies at {self.state}: resume continues it, overwrite begins again")
        self.resumed = head is not None and resume
        if head is not None and resume:
            begun = json.loads(head)
            check_journal_head(begun, identity, key)
        else:
            begun = make_journal_head(identity, key)
            self.storage.remove_folder(self.state)
            self.storage.write(f"{self.state}/run.json", json.dumps(begun).encode())
        self.state_of_run = f"{self.state}/{begun['salt']}"
        self.storage.write(f"{self.state_of_run}/{OPEN}", b"1")

    def close(self, *, keep: bool) -> None:
        if not keep:
            self.storage.remove_folder(self.state)
        if self._journal:
            self._journal.close(remove=not keep)


class _StepActor:
    """The actor: a worker in its own process, with its policy and models."""

    def __init__(self, worker: Worker) -> None:
        warnings.simplefilter("ignore")  # they may quote what a package was given
        self.worker = worker

    def get_allonym_version(self) -> str:
        return __version__

    def perform_step(self, step: Step) -> Outcome:
        return self.worker.perform_step(step)


def _run_steps(ray: Any, worker: Worker, schedule: Schedule, workers: int, report: Callable[[int], None]) -> None:
    """Assign all steps, at most one at a time to each actor."""
    actor = ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=RETRIES)(_StepActor)
    # Large values are not sent with the actor, and must remain for restarted actors.
    shared_worker = ray.put(worker) if len(pickle.dumps(worker)) > _INLINE else worker
    seats = [actor.remote(shared_worker) for _ in range(workers)]
    # A seat gets no step before its actor has started.
    busy: dict[Any, tuple[Any, Step | None]] = {seat.get_allonym_version.remote(): (seat, None) for seat in seats}
    try:
        _assign_steps(ray, busy, schedule, report)
    finally:
        for seat in seats:  # running steps must not outlive the state that they belong to
            ray.kill(seat)
        if busy:
            ray.wait(list(busy), num_returns=len(busy), timeout=_END)


def _assign_steps(
    ray: Any, busy: dict[Any, tuple[Any, Step | None]], schedule: Schedule, report: Callable[[int], None]
) -> None:
    idle: list[Any] = []
    working, bytes_done = 0, 0
    while True:
        while idle and (step := schedule.next_step()) is not None:
            seat = idle.pop()
            busy[seat.perform_step.remote(step)] = (seat, step)
            working += 1
        if not working and len(idle) > 0:
            return
        for ref in ray.wait(list(busy), num_returns=1)[0]:
            seat, step = busy.pop(ref)
            try:
                came = ray.get(ref)
            except ray.exceptions.RayError as error:
                told_where = f" at {step.items[0].name}" if step else ""
                raise AllonymError(
                    f"workers died {RETRIES + 1} times{told_where} ({type(error).__name__}): killed, or out of memory? "
                    "resume continues the run; fewer workers leave more memory to each"
                ) from None
            idle.append(seat)
            if step is None:
                if came != __version__:
                    differ = f"a worker has allonym {came}, this is {__version__}"
                    raise UsageError(f"{differ}: install the same version everywhere")
                continue
            working -= 1
            if came.error is not None:
                raise came.error
            bytes_done += schedule.record_finished_step(step, came)
            report(bytes_done)


def _join_group_outputs(
    listing: Listing,
    state: str,
    count: int,
    job: Job,
    quarantine: str | Path | None,
    plans: str | Path | None,
    settings: Mapping[str, object],
    began: float,
) -> RunReport:
    """Add up the results of the groups, in order, and write the quarantine and plan files."""
    storage, remote_quarantine = listing.storage, listing.target + ".quarantine.jsonl"
    with ExitStack() as stack:
        aside: Path | None = None
        if quarantine is None:
            aside = stack.enter_context(storage.make_scratch_folder(state)) / "quarantine"
        run = Run(
            listing.items,
            job,
            None,
            listing.folder,
            Path(quarantine) if quarantine else aside,
            Path(plans) if plans else None,
        )
        stack.callback(run.close, keep_unfinished=False)
        for group in range(count):
            note = cast("dict[str, Any] | None", read_group_result(storage, state, group))
            if note is None:
                raise AllonymError("a part of the run is missing from its state; resume computes it again")
            run.tally.add(Tally.from_dict(note["tally"]))
            run.refused += [(name, why) for name, why in note["refused"]]
            run.digests += [(name, digest) for name, digest, _ in note["files"]]
            for end, lines in (("q", run.quarantine), ("p", run.plans)):
                if note[end]:
                    with storage.open(f"{state}/{group}.{end}") as stream:
                        for line in stream:
                            lines.write(line.decode().removesuffix("\n"))
        run.finish_quarantine_and_plans()
        if aside is not None and aside.exists():
            storage.move_file_in(aside, remote_quarantine)
        elif aside is not None:
            storage.delete([remote_quarantine])
    return run.make_report(settings, time.monotonic() - began)
