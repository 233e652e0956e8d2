"""The rows of jobs in the server's database. Only who runs the jobs changes a state; others leave a wish."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from allonym.errors import DatabaseError, RequestError
from allonym.server.database import Database, jobs, now, users
from allonym.server.jobs.task import Spec
from allonym.server.sealing import Sealing

log = logging.getLogger("allonym.server")

WAITING, RUNNING, DONE, FAILED, CANCELLED = "queued", "running", "done", "failed", "cancelled"
OPEN = (WAITING, RUNNING)
CANCEL, REMOVE = "cancel", "remove"


@dataclass(frozen=True, slots=True)
class Row:
    """A job as the database has it.

    Attributes:
        number: in order of their making; id: by which it is called.
        user, owner: whose it is: number and name.
        kind, state: see the module.
        wish: ``cancel``, ``remove`` or nothing.
        created, started, ended: seconds since 1970.
        deaths: how often its process died without having come further; reached: how far it had come by then.
        wanted: see :class:`allonym.server.jobs.task.Task`.
        spec: what it is to do.
        told: how it ended, see :func:`allonym.server.jobs.task.ending`; empty before.
    """

    number: int
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
    wanted: dict[str, list[int]]
    spec: Spec = field(repr=False)
    told: dict[str, Any] = field(repr=False)


class Queue:
    """The jobs whose files lie in one data folder.

    Args:
        place: the server's database.
        sealing: under which specs and endings lie.
        home: names the data folder.
    """

    def __init__(self, place: Database, sealing: Sealing, home: str) -> None:
        self._place, self._sealing, self._home = place, sealing, home
        self._own = jobs.c.place == home

    def add(self, id: str, user: int, owner: str, spec: Spec) -> None:
        """A new job, queued.

        Raises:
            RequestError: there is no such user any more (401).
        """
        row = {
            "id": id,
            "place": self._home,
            "user": user,
            "owner": owner,
            "kind": spec.kind,
            "state": WAITING,
            "wish": "",
            "created": now(),
            "deaths": 0,
            "reached": 0.0,
            "wanted": "{}",
            "spec": self._sealing.seal(json.dumps(spec.to_dict()), f"job {id}"),
        }
        there = sa.select(users.c.id).where(users.c.id == user, users.c.active)
        with self._place.writing() as connection:
            if connection.execute(there.with_for_update()).first() is None:  # removed during the upload
                raise RequestError("there is no such user any more", 401, "NotSignedIn")
            connection.execute(sa.insert(jobs), [row])

    def one(self, id: str) -> Row | None:
        """A job by its id."""
        with self._place.reading() as connection:
            found = connection.execute(sa.select(jobs).where(self._own, jobs.c.id == id)).one_or_none()
        return None if found is None else self._row(found)

    def listed(
        self, user: int | None, offset: int = 0, limit: int = 100, kind: str | None = None
    ) -> tuple[list[Row], int]:
        """Some jobs, newest first, and how many there are; of one user, or of all; of one kind, or of all."""
        which = [self._own, jobs.c.wish != REMOVE]
        which += [] if user is None else [jobs.c.user == user]
        which += [] if kind is None else [jobs.c.kind == kind]
        asked = sa.select(jobs).where(*which).order_by(jobs.c.number.desc()).offset(offset).limit(limit)
        with self._place.reading() as connection:
            rows = connection.execute(asked).all()
            total = connection.execute(sa.select(sa.func.count()).select_from(jobs).where(*which)).scalar()
        return list(self._readable(rows)), int(total or 0)

    def in_states(self, *states: str) -> list[Row]:
        """All jobs in these states, oldest first."""
        asked = sa.select(jobs).where(self._own, jobs.c.state.in_(states)).order_by(jobs.c.number)
        with self._place.reading() as connection:
            return list(self._readable(connection.execute(asked).all()))

    def ended_before(self, moment: int) -> list[str]:
        """Ids of jobs that ended before a time."""
        asked = sa.select(jobs.c.id).where(self._own, jobs.c.state.not_in(OPEN), jobs.c.ended < moment)
        with self._place.reading() as connection:
            return list(connection.execute(asked).scalars())

    def ids(self) -> set[str]:
        """All there are."""
        with self._place.reading() as connection:
            return set(connection.execute(sa.select(jobs.c.id).where(self._own)).scalars())

    def counts(self) -> dict[str, int]:
        """How many are in which state."""
        asked = sa.select(jobs.c.state, sa.func.count()).where(self._own).group_by(jobs.c.state)
        with self._place.reading() as connection:
            found = {state: int(count) for state, count in connection.execute(asked)}
        return {state: found.get(state, 0) for state in (WAITING, RUNNING, DONE, FAILED, CANCELLED)}

    def wishes(self) -> list[tuple[str, str, str]]:
        """(id, state, wish) of jobs for which there is a wish."""
        asked = sa.select(jobs.c.id, jobs.c.state, jobs.c.wish).where(self._own, jobs.c.wish != "")
        with self._place.reading() as connection:
            return [(r.id, r.state, r.wish) for r in connection.execute(asked).all()]

    def wish(self, id: str, wish: str) -> bool:
        """Leave a wish; whether there was such a job. Whoever wished to remove it does not get it back."""
        which = [self._own, jobs.c.id == id, jobs.c.wish != REMOVE]
        if wish == CANCEL:
            which.append(jobs.c.state.in_(OPEN))
        with self._place.writing() as connection:
            return bool(connection.execute(sa.update(jobs).where(*which).values(wish=wish)).rowcount)

    def want(self, id: str, what: str, release: int) -> dict[str, list[int]] | None:
        """Note that a release is wanted; a job that is done is queued once more. What is wanted now; None: no such job.

        One that is at work gets to it afterwards, see :meth:`end`.
        """
        which = (self._own, jobs.c.id == id, jobs.c.state.in_((*OPEN, DONE)), jobs.c.wish != REMOVE)
        with self._place.writing() as connection:
            asked = sa.select(jobs.c.state, jobs.c.wanted).where(*which).with_for_update()
            row = connection.execute(asked).one_or_none()
            if row is None:
                return None
            wanted: dict[str, list[int]] = json.loads(row.wanted)
            if row.state == DONE and wanted.get(what, [])[-1:] == [release]:  # it failed, and is tried once more
                wanted["again"] = [wanted.get("again", [0])[0] + 1]
            wanted[what] = [*(n for n in wanted.get(what, ()) if n != release), release]
            values: dict[str, Any] = {"wanted": json.dumps(wanted)}
            if row.state == DONE:
                values |= {"state": WAITING, "deaths": 0, "reached": 0.0, "ended": None}
            connection.execute(sa.update(jobs).where(*which).values(**values))
        return wanted

    def move(self, id: str, state: str, **values: Any) -> None:
        """Put a job into a state."""
        with self._place.writing() as connection:
            connection.execute(sa.update(jobs).where(self._own, jobs.c.id == id).values(state=state, **values))

    def end(self, id: str, state: str, told: Mapping[str, Any]) -> None:
        """A job has ended; it is queued again if it is done, but more was wanted meanwhile."""
        values: dict[str, Any] = {"wish": "", "told": self._sealing.seal(json.dumps(told), f"told {id}")}
        which = (self._own, jobs.c.id == id)
        with self._place.writing() as connection:
            asked = sa.select(jobs.c.wanted).where(*which).with_for_update()
            wanted = json.loads(connection.execute(asked).scalar() or "{}")
            if state == DONE and wanted != told.get("wanted", wanted):
                values |= {"state": WAITING, "ended": None}
            else:
                values |= {"state": state, "ended": now()}
            connection.execute(sa.update(jobs).where(*which).values(**values))

    def drop(self, id: str) -> None:
        """Remove a job's row."""
        with self._place.writing() as connection:
            connection.execute(sa.delete(jobs).where(self._own, jobs.c.id == id))

    def _readable(self, rows: Iterable[Any]) -> Iterator[Row]:
        """The rows without those that cannot be read, so that one does not keep the others from being done."""
        for found in rows:
            try:
                row = self._row(found)
            except (DatabaseError, LookupError, TypeError, ValueError) as error:
                log.error("a job cannot be read: %s", type(error).__name__)
                continue
            yield row

    def wish_all(self, user: int, wish: str) -> None:
        """Leave a wish for all jobs of a user, those whose files lie in other data folders too."""
        with self._place.writing() as connection:
            connection.execute(sa.update(jobs).where(jobs.c.user == user).values(wish=wish))

    def _row(self, found: Any) -> Row:
        spec = json.loads(self._sealing.opened(found.spec, f"job {found.id}"))
        told = {} if found.told is None else json.loads(self._sealing.opened(found.told, f"told {found.id}"))
        same = {n: getattr(found, n) for n in Row.__dataclass_fields__ if n not in ("wanted", "spec", "told")}
        return Row(**same, wanted=json.loads(found.wanted), spec=Spec.from_dict(spec), told=told)
