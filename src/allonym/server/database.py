"""The server's tables, in SQLite or another database: users, sessions, keys, links, policies, the audit log, and what
jobs and reviews keep.

Whatever lets somebody in (passwords, session and key tokens, links) is stored as a digest; texts are sealed.
Times are seconds since 1970.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from allonym.errors import AllonymError, DatabaseError
from allonym.vault.store import Store

first = sa.MetaData()
_Step = Callable[[sa.Connection], None]


def table(name: str, of: sa.MetaData, *columns: Any, **options: Any) -> sa.Table:
    """A table of the server, ``allonym_server_NAME``."""
    return sa.Table(f"allonym_server_{name}", of, *columns, **options)


# Schema 1: who may do what

versions = table(
    "versions",
    first,
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("applied", sa.BigInteger, nullable=False),
)
users = table(
    "users",
    first,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(64), nullable=False, unique=True),
    sa.Column("role", sa.String(16), nullable=False),
    sa.Column("password", sa.String(256), nullable=False),
    sa.Column("active", sa.Boolean, nullable=False),
    sa.Column("created", sa.BigInteger, nullable=False),
    sqlite_autoincrement=True,  # a number must not come again: jobs and readings are somebody's by it
)
sessions = table(
    "sessions",
    first,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("user", sa.Integer, nullable=False, index=True),
    sa.Column("csrf", sa.String(64), nullable=False),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Column("seen", sa.BigInteger, nullable=False),
    sa.Column("expires", sa.BigInteger, nullable=False, index=True),
)
keys = table(
    "keys",
    first,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("user", sa.Integer, nullable=False, index=True),
    sa.Column("name", sa.String(64), nullable=False),
    sa.Column("permissions", sa.String(256), nullable=False),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Column("expires", sa.BigInteger),
    sa.Column("used", sa.BigInteger),
    sa.UniqueConstraint("user", "name"),
)
links = table(
    "links",
    first,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("role", sa.String(16), nullable=False),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Column("expires", sa.BigInteger, nullable=False),
)
policies = table(
    "policies",
    first,
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("sealed", sa.LargeBinary, nullable=False),
    sa.Column("changed", sa.BigInteger, nullable=False),
)
audit = table(
    "audit",
    first,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("time", sa.BigInteger, nullable=False),
    sa.Column("actor", sa.String(160), nullable=False),
    sa.Column("action", sa.String(160), nullable=False),
    sa.Column("counts", sa.Text, nullable=False),
)


# Reviews and intruder studies. Texts, names of documents, terms, marks and answers are sealed.

reviewing = sa.MetaData()
projects = table(
    "projects",
    reviewing,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(64), nullable=False, unique=True),
    sa.Column("sealed", sa.LargeBinary, nullable=False),
    sa.Column("owner", sa.String(64), nullable=False),
    sa.Column("created", sa.BigInteger, nullable=False),
)
documents = table(
    "documents",
    reviewing,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("project", sa.Integer, nullable=False),
    sa.Column("digest", sa.String(32), nullable=False),
    sa.Column("head", sa.LargeBinary, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("risk", sa.Float, nullable=False),
    sa.Column("gain", sa.Float, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Column("changed", sa.BigInteger, nullable=False),
    sa.UniqueConstraint("project", "digest"),
)
readings = table(
    "readings",
    reviewing,
    sa.Column("document", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("seat", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("user", sa.Integer, nullable=False),
    sa.Column("reader", sa.String(64), nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("done", sa.Boolean, nullable=False),
    sa.Column("sealed", sa.LargeBinary, nullable=False),
    sa.Column("changed", sa.BigInteger, nullable=False),
)
"""Seats 1 and 2 are the reviewers', seat 0 is the adjudicator's."""
terms = table(
    "terms",
    reviewing,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("project", sa.Integer, nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("digest", sa.String(32), nullable=False),
    sa.Column("sealed", sa.LargeBinary, nullable=False),
    sa.Column("owner", sa.String(64), nullable=False),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.UniqueConstraint("project", "digest"),
    sqlite_autoincrement=True,
)
"""Project 0 stands for all. Numbers are never used again: how many there are and the highest one tell the version."""
studies = table(
    "studies",
    reviewing,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(64), nullable=False, unique=True),
    sa.Column("sealed", sa.LargeBinary, nullable=False),
    sa.Column("texts", sa.Integer, nullable=False),
    sa.Column("pages", sa.Integer, nullable=False),
    sa.Column("owner", sa.String(64), nullable=False),
    sa.Column("created", sa.BigInteger, nullable=False),
)
invitations = table(
    "invitations",
    reviewing,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("study", sa.Integer, nullable=False),
    sa.Column("page", sa.Integer, nullable=False),
    sa.Column("expires", sa.BigInteger, nullable=False),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Column("opened", sa.BigInteger),
    sa.Column("done", sa.BigInteger),
    sa.UniqueConstraint("study", "page"),
)
answers = table(
    "answers",
    reviewing,
    sa.Column("study", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("page", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("item", sa.String(16), primary_key=True),
    sa.Column("sealed", sa.LargeBinary, nullable=False),
    sa.Column("changed", sa.BigInteger, nullable=False),
)

# Jobs. What a job was told and what became of it are sealed: names of files are among it.

working = sa.MetaData()
jobs = table(
    "jobs",
    working,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("id", sa.String(32), nullable=False, unique=True),
    sa.Column("place", sa.String(32), nullable=False, index=True),
    sa.Column("user", sa.Integer, nullable=False),
    sa.Column("owner", sa.String(64), nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("state", sa.String(16), nullable=False, index=True),
    sa.Column("wish", sa.String(16), nullable=False),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Column("started", sa.BigInteger),
    sa.Column("ended", sa.BigInteger),
    sa.Column("deaths", sa.Integer, nullable=False),
    sa.Column("reached", sa.Float, nullable=False),
    sa.Column("wanted", sa.Text, nullable=False),
    sa.Column("spec", sa.LargeBinary, nullable=False),
    sa.Column("told", sa.LargeBinary),
    sqlite_autoincrement=True,
)
"""``place``: the data folder that has the files. ``wish``: cancel or remove, for the server that runs the jobs."""


def _creating(tables: sa.MetaData) -> _Step:
    def step(connection: sa.Connection) -> None:
        tables.create_all(connection)

    return step


STEPS: tuple[_Step, ...] = (_creating(first), _creating(reviewing), _creating(working))
"""The step at index n leads from schema n to schema n + 1. Steps are never changed once released, only added."""


class Database(Store):
    """The server's database; :meth:`ready` makes it where there is none, and brings an older one up to date."""

    what, made_by = "a database of the server", "allonym serve makes one"
    versions, steps = versions, STEPS
    turn = sa.select(versions.c.version).where(versions.c.version == 1).with_for_update()
    failure: type[AllonymError] = DatabaseError
    busy: type[AllonymError] = DatabaseError

    def ready(self) -> None:
        """Make what is missing.

        Raises:
            DatabaseError: it cannot be opened, or a newer version of allonym made it.
        """
        if self.file and not self.file.exists():
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.make_file()
        try:
            self._begin()
        except DatabaseError:
            self._begin()  # two servers began at once, and the other one was faster
        self.migrate(lambda connection, before, after: None)

    def _begin(self) -> None:
        with self.writing() as connection:
            if not sa.inspect(connection).has_table(versions.name):
                self.step(connection, 0)


def now() -> int:
    """Seconds since 1970."""
    return int(time.time())


def is_taken(error: DatabaseError) -> bool:
    """Whether a row could not be written because its name is taken."""
    return any(name in str(error) for name in ("IntegrityError", "UniqueViolation"))  # SQLite's, PostgreSQL's


__all__ = ["STEPS", "Database", "is_taken", "now", "table"]
