"""The server's tables, in SQLite or another database: users, sessions, keys, links, policies, the audit log, and the
tables of jobs and reviews.

Whatever lets somebody in (passwords, session and key tokens, links) is stored as a digest; texts are sealed.
Times are seconds since 1970.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from allonym.errors import AllonymError, DatabaseError, RequestError
from allonym.vault.store import Store

_Step = Callable[[sa.Connection], None]

_TYPES: dict[str, Any] = {
    "integer": sa.Integer,
    "float": sa.Float,
    "flag": sa.Boolean,
    "time": sa.BigInteger,
    "text": sa.Text,
    "bytes": sa.LargeBinary,
    **{f"string{length}": sa.String(length) for length in (16, 32, 64, 160, 256)},
}
_MODIFIERS: dict[str, dict[str, Any]] = {
    "counted": {"primary_key": True},
    "key": {"primary_key": True, "autoincrement": False},
    "unique": {"unique": True},
    "indexed": {"index": True},
    "optional": {"nullable": True},
}


def _define_table(name: str, tables: sa.MetaData, columns: str, *unique: str, reuse_ids: bool = True) -> sa.Table:
    """Define a table of the server, ``allonym_server_NAME``.

    Args:
        name: without the prefix.
        tables: the part of the schema that it belongs to.
        columns: ``name: type`` of each, separated by commas, with modifiers before the type. Only ``optional`` allows
            NULL.
        unique: columns whose values together occur once.
        reuse_ids: whether the number of a removed row may be used again.
    """
    defined: list[Any] = [_define_column(*column.split(": ")) for column in columns.split(", ")]
    constraints: list[Any] = [sa.UniqueConstraint(*unique)] if unique else []
    options: dict[str, Any] = {} if reuse_ids else {"sqlite_autoincrement": True}
    return sa.Table(f"allonym_server_{name}", tables, *defined, *constraints, **options)


def _define_column(name: str, kind: str) -> sa.Column[Any]:
    *modifiers, base = kind.split()
    options: dict[str, Any] = {"nullable": False}
    for modifier in modifiers:
        options |= _MODIFIERS[modifier]
    return sa.Column(name, _TYPES[base], **options)


# Schema 1: who may do what

account_tables = sa.MetaData()
versions = _define_table("versions", account_tables, "version: key integer, applied: time")
users = _define_table(
    "users",
    account_tables,
    "id: counted integer, name: unique string64, role: string16, password: string256, active: flag, created: time",
    reuse_ids=False,  # jobs and readings belong to somebody by this number
)
sessions = _define_table(
    "sessions",
    account_tables,
    "digest: key string64, user: indexed integer, csrf: string64, created: time, seen: time, expires: indexed time",
)
keys = _define_table(
    "keys",
    account_tables,
    "digest: key string64, user: indexed integer, name: string64, permissions: string256, created: time, "
    "expires: optional time, used: optional time",
    "user",
    "name",
)
links = _define_table("links", account_tables, "digest: key string64, role: string16, created: time, expires: time")
policies = _define_table("policies", account_tables, "name: key string64, sealed: bytes, changed: time")
audit = _define_table(
    "audit", account_tables, "number: counted integer, time: time, actor: string160, action: string160, counts: text"
)

# Schema 2: reviews and intruder studies. Texts, names of documents, terms, marks and answers are sealed.

review_tables = sa.MetaData()
projects = _define_table(
    "projects",
    review_tables,
    "number: counted integer, name: unique string64, sealed: bytes, owner: string64, created: time",
)
documents = _define_table(
    "documents",
    review_tables,
    "number: counted integer, project: integer, digest: string32, head: bytes, body: bytes, risk: float, gain: float, "
    "state: string16, created: time, changed: time",
    "project",
    "digest",
)
readings = _define_table(  # seats 1 and 2 are the reviewers', seat 0 is the adjudicator's
    "readings",
    review_tables,
    "document: key integer, seat: key integer, user: integer, reader: string64, version: integer, done: flag, "
    "sealed: bytes, changed: time",
)
terms = _define_table(  # project 0 stands for all; the count and the highest number together identify the version
    "terms",
    review_tables,
    "number: counted integer, project: integer, kind: string16, digest: string32, sealed: bytes, owner: string64, "
    "created: time",
    "project",
    "digest",
    reuse_ids=False,
)
studies = _define_table(
    "studies",
    review_tables,
    "number: counted integer, name: unique string64, sealed: bytes, texts: integer, pages: integer, owner: string64, "
    "created: time",
)
invitations = _define_table(
    "invitations",
    review_tables,
    "digest: key string64, study: integer, page: integer, expires: time, created: time, opened: optional time, "
    "done: optional time",
    "study",
    "page",
)
answers = _define_table(
    "answers", review_tables, "study: key integer, page: key integer, item: key string16, sealed: bytes, changed: time"
)

# Schema 3: jobs. Their specifications and endings are sealed, because names of files are among them. ``place`` is the
# data folder that has the files, ``wish`` is cancel or remove, for the server that runs the jobs.

job_tables = sa.MetaData()
jobs = _define_table(
    "jobs",
    job_tables,
    "number: counted integer, id: unique string32, place: indexed string32, user: integer, owner: string64, "
    "kind: string16, state: indexed string16, wish: string16, created: time, started: optional time, "
    "ended: optional time, deaths: integer, reached: float, wanted: text, spec: bytes, told: optional bytes",
    reuse_ids=False,
)

STEPS: tuple[_Step, ...] = (account_tables.create_all, review_tables.create_all, job_tables.create_all)
"""The step at index n leads from schema n to schema n + 1. Steps are never changed once released, only added."""


class Database(Store):
    """The server's database; :meth:`prepare` creates it where there is none, and migrates an older one."""

    what, made_by = "a database of the server", "allonym serve makes one"
    versions, steps = versions, STEPS
    turn = sa.select(versions.c.version).where(versions.c.version == 1).with_for_update()
    failure: type[AllonymError] = DatabaseError
    busy: type[AllonymError] = DatabaseError

    def prepare(self) -> None:
        """Create what is missing.

        Raises:
            DatabaseError: it cannot be opened, or a newer version of allonym made it.
        """
        if self.file and not self.file.exists():
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.make_file()
        try:
            self._create_first_tables()
        except DatabaseError:
            self._create_first_tables()  # two servers began at once, and the other one was faster
        self.migrate(lambda connection, before, after: None)

    def fetch_rows(self, query: sa.Select[Any]) -> Sequence[Any]:
        """Return the rows of one query, in a transaction of its own."""
        with self.open_read_transaction() as connection:
            return connection.execute(query).all()

    def fetch_row(self, query: sa.Select[Any]) -> Any:
        """Return the first row of one query; None where there is none."""
        with self.open_read_transaction() as connection:
            return connection.execute(query).first()

    def fetch_value(self, query: sa.Select[Any]) -> Any:
        """Return the first column of the first row of one query; None where there is no row."""
        with self.open_read_transaction() as connection:
            return connection.execute(query).scalar()

    def write_rows(self, *statements: sa.Insert | sa.Update | sa.Delete) -> int:
        """Execute statements in one transaction and return how many rows the last one changed."""
        changed = 0
        with self.open_write_transaction() as connection:
            for statement in statements:
                changed = connection.execute(statement).rowcount
        return changed

    @contextmanager
    def writing_unique(self, conflict: str) -> Iterator[sa.Connection]:
        """A transaction as :meth:`open_write_transaction` makes one, for a row whose name may be taken.

        Raises:
            RequestError: it is, with ``conflict`` as the message (409).
        """
        try:
            with self.open_write_transaction() as connection:
                yield connection
        except DatabaseError as error:
            if any(name in str(error) for name in ("IntegrityError", "UniqueViolation")):  # SQLite's, PostgreSQL's
                raise RequestError(conflict, 409, "Taken") from None
            raise

    def _create_first_tables(self) -> None:
        with self.open_write_transaction() as connection:
            if not sa.inspect(connection).has_table(versions.name):
                self.migrate_step(connection, 0)


def get_unix_time() -> int:
    """Return the seconds since 1970."""
    return int(time.time())
