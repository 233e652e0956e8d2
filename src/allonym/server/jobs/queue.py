"""The rows of jobs in the server's database. Only the server that runs jobs changes a state; others request it."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import sqlalchemy as sa

from allonym.errors import DatabaseError
from allonym.server.database import Database, Sealing, check_and_lock_active_user, get_unix_time, jobs
from allonym.server.jobs.task import Spec

log = logging.getLogger("allonym.server")

WAITING, RUNNING, DONE, FAILED, CANCELLED = "queued", "running", "done", "failed", "cancelled"
OPEN = (WAITING, RUNNING)
CANCEL, REMOVE = "cancel", "remove"


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job as the database has it.

    Attributes:
        id: its name in the API.
        user, owner: number and name of the user who made it.
        kind, state: see the module.
        wish: the action that was requested, ``cancel`` or ``remove``, or nothing.
        created, started, ended: seconds since 1970.
        deaths: how often its process died without progress; reached: the progress by then.
        releases: see :class:`allonym.server.jobs.task.Task`.
        spec: what it is to do.
        ending: how it ended, see :func:`allonym.server.jobs.task.make_ending`; empty before.
    """

    id: str
    user: int
    owner: str
    kind: str
    state: str
    wish: str
    created: int
    started: int | None
    ended: int | None
    deaths: int
    reached: float
    releases: dict[str, list[int]]
    spec: Spec = field(repr=False)
    ending: dict[str, Any] = field(repr=False)


class JobQueue:
    """The jobs whose files lie in one data folder.

    Args:
        database: of the server.
        sealing: encrypts specifications and endings.
        home: names the data folder.
    """

    def __init__(self, database: Database, sealing: Sealing, home: str) -> None:
        self._database, self._sealing, self._home = database, sealing, home
        self._here = jobs.c.place == home

    def add_job(self, id: str, user_id: int, owner: str, spec: Spec) -> None:
        """Add a new job, queued.

        Raises:
            RequestError: there is no such user any more (401).
        """
        row = {
            "id": id,
            "place": self._home,
            "user": user_id,
            "owner": owner,
            "kind": spec.kind,
            "state": WAITING,
            "wish": "",
            "created": get_unix_time(),
            "deaths": 0,
            "reached": 0.0,
            "wanted": "{}",
            "spec": self._sealing.seal_json(asdict(spec), f"job {id}"),
        }
        with self._database.open_write_transaction() as connection:
            check_and_lock_active_user(connection, user_id)  # who may have been removed during the upload
            connection.execute(sa.insert(jobs), [row])

    def find_job(self, id: str) -> JobRow | None:
        """Return a job by its id; None where there is none."""
        row = self._database.fetch_first_row(sa.select(jobs).where(self._here, jobs.c.id == id))
        return None if row is None else self._unseal_job_row(row)

    def list_jobs(
        self, user_id: int | None, offset: int = 0, limit: int = 100, kind: str | None = None
    ) -> tuple[list[JobRow], int]:
        """Return a page of jobs, newest first, and how many there are; of one user or of all, of one kind or of all."""
        where = [self._here, jobs.c.wish != REMOVE]
        where += [c == value for c, value in ((jobs.c.user, user_id), (jobs.c.kind, kind)) if value is not None]
        query = sa.select(jobs).where(*where).order_by(jobs.c.number.desc()).offset(offset).limit(limit)
        with self._database.open_read_transaction() as connection:
            rows = connection.execute(query).all()
            total = connection.execute(sa.select(sa.func.count()).select_from(jobs).where(*where)).scalar()
        return list(self._unseal_readable_rows(rows)), int(total or 0)

    def list_jobs_in_states(self, *states: str) -> list[JobRow]:
        """Return all jobs in these states, oldest first."""
        query = sa.select(jobs).where(self._here, jobs.c.state.in_(states)).order_by(jobs.c.number)
        return list(self._unseal_readable_rows(self._database.fetch_rows(query)))

    def list_job_ids(self, ended_before: int | None = None) -> set[str]:
        """Return the ids of all jobs, or of those that ended before a time."""
        where = [] if ended_before is None else [jobs.c.state.not_in(OPEN), jobs.c.ended < ended_before]
        return {row.id for row in self._database.fetch_rows(sa.select(jobs.c.id).where(self._here, *where))}

    def count_jobs_by_state(self) -> dict[str, int]:
        """Return how many jobs are in each state."""
        query = sa.select(jobs.c.state, sa.func.count().label("total")).where(self._here).group_by(jobs.c.state)
        counts = {row.state: int(row.total) for row in self._database.fetch_rows(query)}
        return {state: counts.get(state, 0) for state in (WAITING, RUNNING, DONE, FAILED, CANCELLED)}

    def list_cancel_and_removal_requests(self) -> list[tuple[str, str, str]]:
        """Return (id, state, ``cancel`` or ``remove``) of the jobs for which one of these was requested."""
        query = sa.select(jobs.c.id, jobs.c.state, jobs.c.wish).where(self._here, jobs.c.wish != "")
        return [(row.id, row.state, row.wish) for row in self._database.fetch_rows(query)]

    def request_cancel_or_removal(self, id: str, action: str) -> bool:
        """Ask the server that runs the jobs to ``cancel`` or ``remove`` one; return whether there was such a job.

        A removal cannot be taken back.
        """
        where = [self._here, jobs.c.id == id, jobs.c.wish != REMOVE]
        if action == CANCEL:
            where.append(jobs.c.state.in_(OPEN))
        return bool(self._database.execute_writes(sa.update(jobs).where(*where).values(wish=action)))

    def request_user_jobs_removal(self, user_id: int) -> None:
        """Request the removal of all jobs of a user, including those whose files lie in other data folders."""
        self._database.execute_writes(sa.update(jobs).where(jobs.c.user == user_id).values(wish=REMOVE))

    def request_release(self, id: str, action: str, release_id: int) -> bool:
        """Request a release, and return whether there is such a job. A job that is done is queued once more.

        A job that is running gets to it afterwards, see :meth:`store_ending_or_requeue`.
        """
        where = (self._here, jobs.c.id == id, jobs.c.state.in_((*OPEN, DONE)), jobs.c.wish != REMOVE)
        with self._database.open_write_transaction() as connection:
            query = sa.select(jobs.c.state, jobs.c.wanted).where(*where).with_for_update()
            row = connection.execute(query).one_or_none()
            if row is None:
                return False
            releases: dict[str, list[int]] = json.loads(row.wanted)
            if row.state == DONE and releases.get(action, [])[-1:] == [release_id]:  # it failed, and is tried once more
                releases["again"] = [releases.get("again", [0])[0] + 1]
            releases[action] = [*(n for n in releases.get(action, ()) if n != release_id), release_id]
            values: dict[str, Any] = {"wanted": json.dumps(releases)}
            if row.state == DONE:
                values |= {"state": WAITING, "deaths": 0, "reached": 0.0, "ended": None}
            connection.execute(sa.update(jobs).where(*where).values(**values))
        return True

    def set_job_state(self, id: str, state: str, **columns: Any) -> None:
        """Put a job into a state, and write further columns."""
        self._database.execute_writes(sa.update(jobs).where(self._here, jobs.c.id == id).values(state=state, **columns))

    def store_ending_or_requeue(self, id: str, state: str, ending: Mapping[str, Any]) -> None:
        """Store how a job ended. If it is done, but more releases were requested meanwhile, it is queued again."""
        values: dict[str, Any] = {"wish": "", "told": self._sealing.seal_json(ending, f"told {id}")}
        where = (self._here, jobs.c.id == id)
        with self._database.open_write_transaction() as connection:
            query = sa.select(jobs.c.wanted).where(*where).with_for_update()
            releases = json.loads(connection.execute(query).scalar() or "{}")
            if state == DONE and releases != ending.get("wanted", releases):
                values |= {"state": WAITING, "ended": None}
            else:
                values |= {"state": state, "ended": get_unix_time()}
            connection.execute(sa.update(jobs).where(*where).values(**values))

    def remove_job(self, id: str) -> None:
        """Remove a job's row."""
        self._database.execute_writes(sa.delete(jobs).where(self._here, jobs.c.id == id))

    def _unseal_readable_rows(self, rows: Iterable[Any]) -> Iterator[JobRow]:
        """Yield the rows without those that cannot be read, so that one of these does not stop the other jobs."""
        for row in rows:
            try:
                job = self._unseal_job_row(row)
            except (DatabaseError, LookupError, TypeError, ValueError) as error:
                log.error("a job cannot be read: %s", type(error).__name__)
                continue
            yield job

    def _unseal_job_row(self, row: Any) -> JobRow:
        columns = {name: value for name, value in row._mapping.items() if name in JobRow.__dataclass_fields__}
        columns["spec"] = Spec.from_dict(self._sealing.unseal_json(row.spec, f"job {row.id}"))
        ending = {} if row.told is None else self._sealing.unseal_json(row.told, f"told {row.id}")
        return JobRow(**columns, releases=json.loads(row.wanted), ending=ending)
