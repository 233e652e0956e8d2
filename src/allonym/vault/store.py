"""The tables of a vault, how they came to be, and transactions over them.

No column holds plain text: names and values are sealed, what is looked up is a keyed digest. In the clear are only
counts, times (in seconds) and the parameters of the key's derivation.

SQLite: write-ahead log, ``synchronous=FULL`` (a commit that returned survives a crash), deleted content is overwritten,
nothing temporary on disk. Other databases: READ COMMITTED, writers of a scope wait for each other at the scope's row.
"""

from __future__ import annotations

import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import QueuePool

from allonym.errors import AllonymError, MissingExtra, UsageError, VaultError, VaultLocked

WAIT = 30.0
"""Seconds that a writer waits for others, by default."""

_BUSY = frozenset({"55P03", "40P01", "40001"})  # PostgreSQL: no lock in time, deadlock, serialisation failure

# Schema 1

_first = sa.MetaData()
_digest = sa.String(32)


def _table(name: str, *columns: sa.Column[Any], of: sa.MetaData = _first) -> sa.Table:
    return sa.Table(f"allonym_{name}", of, *columns)


migrations = _table(
    "migrations",
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("applied", sa.BigInteger, nullable=False),
)
meta = _table(
    "meta",
    sa.Column("name", sa.String(32), primary_key=True),
    sa.Column("value", sa.LargeBinary, nullable=False),
)
scopes = sa.Table(
    "allonym_scopes",
    _first,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("digest", _digest, nullable=False, unique=True),
    sa.Column("sealed", sa.LargeBinary, nullable=False),
    sa.Column("changes", sa.BigInteger, nullable=False),
    sa.Column("created", sa.BigInteger, nullable=False),
    sqlite_autoincrement=True,  # a number must not come again: readers tell scopes apart by it
)
subjects = _table(
    "subjects",
    sa.Column("digest", _digest, primary_key=True),
    sa.Column("scope", sa.Integer, nullable=False, index=True),
    sa.Column("sealed", sa.LargeBinary, nullable=False),
)
counters = _table(
    "counters",
    sa.Column("digest", _digest, primary_key=True),
    sa.Column("scope", sa.Integer, nullable=False, index=True),
    sa.Column("sealed", sa.LargeBinary, nullable=False),
)
assigned = _table(
    "assigned",
    sa.Column("digest", _digest, primary_key=True),
    sa.Column("value", _digest, nullable=False, unique=True),
    sa.Column("scope", sa.Integer, nullable=False, index=True),
    sa.Column("sealed", sa.LargeBinary, nullable=False),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Column("expires", sa.BigInteger, index=True),
)
known = _table(
    "known",
    sa.Column("digest", _digest, primary_key=True),
    sa.Column("token", _digest, nullable=False, index=True),
    sa.Column("scope", sa.Integer, nullable=False, index=True),
    sa.Column("sealed", sa.LargeBinary, nullable=False),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Column("expires", sa.BigInteger, index=True),
)
assigned_subjects = _table(
    "assigned_subjects",
    sa.Column("row", _digest, primary_key=True),
    sa.Column("subject", _digest, primary_key=True, index=True),
)
known_subjects = _table(
    "known_subjects",
    sa.Column("row", _digest, primary_key=True),
    sa.Column("subject", _digest, primary_key=True, index=True),
)

# Schema 2

_second = sa.MetaData()
audit = _table(
    "audit",
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("sealed", sa.LargeBinary, nullable=False),
    sa.Column("mac", sa.LargeBinary, nullable=False),
    of=_second,
)

# Schema 3

_third = sa.MetaData()
digests = _table(
    "digests",
    sa.Column("row", _digest, primary_key=True),
    sa.Column("sealed", sa.LargeBinary, nullable=False),
    of=_third,
)
"""Beside rows of ``known``; see :mod:`allonym.vault.digests`. Whoever deletes those deletes these."""


def _tables(connection: sa.Connection) -> None:
    """Schema 1: everything but the audit log."""
    _first.create_all(connection)


def _audit_log(connection: sa.Connection) -> None:
    """Schema 2: the audit log, whose rows the database itself refuses to change."""
    _second.create_all(connection)
    connection.execute(meta.insert().values(name="audit", value=b""))
    if connection.dialect.name == "sqlite":
        for verb in ("UPDATE", "DELETE"):
            connection.exec_driver_sql(
                f"CREATE TRIGGER allonym_audit_no_{verb.lower()} BEFORE {verb} ON allonym_audit "
                "BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END"
            )
    elif connection.dialect.name == "postgresql":
        connection.exec_driver_sql(
            "CREATE FUNCTION allonym_audit_only_grows() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'the audit log is append-only'; END $$"
        )
        connection.exec_driver_sql(
            "CREATE TRIGGER allonym_audit_only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON allonym_audit "
            "FOR EACH STATEMENT EXECUTE FUNCTION allonym_audit_only_grows()"
        )


def _digests(connection: sa.Connection) -> None:
    """Schema 3: digests of originals, by which outputs are checked; the vault fills them in, which takes its key."""
    _third.create_all(connection)


STEPS: tuple[Callable[[sa.Connection], None], ...] = (_tables, _audit_log, _digests)
"""The step at index n leads from schema n to schema n + 1. Steps are never changed once released, only added."""

Applied = Callable[[sa.Connection, int, int], None]
"""Called inside a step's transaction, with the versions that it leads from and to."""


def address(where: str | Path) -> sa.URL:
    """The URL of a path or URL. Text with ``://`` in it is a URL, anything else a path.

    Raises:
        UsageError: it is no URL, or names a database in memory.
    """
    if isinstance(where, Path) or "://" not in where:
        return sa.URL.create("sqlite", database=os.path.abspath(where))
    try:
        url = sa.make_url(where)
    except (SQLAlchemyError, ValueError):
        raise UsageError("a vault's URL is like postgresql://user@host/name, or a path") from None
    if url.drivername in ("postgresql", "postgres"):
        url = url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() == "sqlite":
        if not url.database or url.database == ":memory:" or url.query:
            raise UsageError("a vault in SQLite needs a file: a path, or sqlite:///PATH without options")
        return sa.URL.create("sqlite", database=os.path.abspath(url.database))
    return url


class Store:
    """One database: its connections in this process, made when they are needed, and its transactions.

    It may be copied into other processes (pickle, fork): each makes connections of its own. Other tables than a vault's
    are kept by a subclass that says so in the attributes below.
    """

    what, made_by = "a vault", "allonym vault init makes one"
    versions, steps = migrations, STEPS
    turn = sa.select(meta.c.value).where(meta.c.name == "generation").with_for_update()
    """The row at which processes wait for each other that come to migrate."""
    failure: type[AllonymError] = VaultError
    busy: type[AllonymError] = VaultLocked

    def __init__(self, where: str | Path, wait: float = WAIT) -> None:
        self.url = address(where)
        self.wait = wait
        self.file = Path(self.url.database or "") if self.url.get_backend_name() == "sqlite" else None
        self.shown = str(self.file) if self.file else self.url.render_as_string(hide_password=True)
        self._ready()

    def _ready(self) -> None:
        self._made: sa.Engine | None = None
        self._process = 0
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        self._ready()

    def close(self) -> None:
        """Close this process's connections. They are made again when needed."""
        made, self._made = self._made, None
        if made is not None:
            made.dispose(close=self._process == os.getpid())

    @contextmanager
    def reading(self, *, once: bool = False) -> Iterator[sa.Connection]:
        """A transaction that sees one state of the database and changes nothing. ``once``: for a single statement."""
        with self._told(), self._engine().connect() as connection:
            if not self.file:
                connection.execution_options(isolation_level="AUTOCOMMIT" if once else "REPEATABLE READ")
            else:
                # The state to be seen is settled by the first look, which waits for whoever holds the file alone.
                self._patiently(lambda: self._looked(connection))
            yield connection
            connection.rollback()

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """A transaction that is committed at the end, or undone where anything is raised.

        Raises:
            VaultLocked: others wrote for longer than we wait.
            VaultError: the database failed.
        """
        with self._told(), self._engine().connect() as connection:
            if self.file:
                self._patiently(lambda: connection.exec_driver_sql("BEGIN IMMEDIATE"))
            yield connection
            connection.commit()

    @contextmanager
    def intact(self) -> Iterator[None]:
        """Where only stored values are treated: those that are not what their columns hold, as the error that they are.

        Raises:
            VaultError: there is such a value.
        """
        try:
            yield
        except AllonymError:
            raise
        except (LookupError, TypeError, ValueError):
            raise self.failure(f"{self.shown} is damaged, or was changed without the key") from None

    @contextmanager
    def alone(self) -> Iterator[sa.Connection]:
        """A connection outside of any transaction, for VACUUM and checkpoints."""
        with self._told(), self._engine().connect() as connection:
            if not self.file:
                connection.execution_options(isolation_level="AUTOCOMMIT")
            yield connection

    def vacuum(self, statement: str) -> None:
        """Run a statement that the database takes only outside of transactions, when nobody else is in the way."""
        with self.alone() as connection:
            if self.file:
                self._patiently(lambda: connection.exec_driver_sql(statement))
            else:
                connection.exec_driver_sql(statement)

    def patiently(self, done: Callable[[], bool], what: str) -> None:
        """Try until it is done.

        Raises:
            VaultLocked: others held the vault for longer than we wait.
        """
        until, pause = time.monotonic() + self.wait, 0.001
        while not done():
            if time.monotonic() > until:
                raise self.busy(f"{self.shown}: {what}: other processes held it for {self.wait:g} seconds")
            time.sleep(random.uniform(0, pause))
            pause = min(pause * 1.5, 0.02)

    def version(self, connection: sa.Connection) -> int:
        """The schema that the tables have.

        Raises:
            VaultError: there are none, or a newer version of allonym made them.
        """
        try:
            found = connection.execute(sa.select(sa.func.max(self.versions.c.version))).scalar()
        except DBAPIError:
            found = None
        if not isinstance(found, int):
            raise self.failure(f"{self.shown} is not {self.what}; {self.made_by}")
        if found > len(self.steps):
            most = len(self.steps)
            raise self.failure(
                f"{self.shown} has schema {found}, this version of allonym knows up to {most}; use a newer one"
            )
        return found

    def migrate(self, applied: Applied) -> None:
        """Bring an older vault's tables up to date, each step in a transaction with its own record."""
        while True:
            with self.writing() as connection:
                # Of several processes that come at once, one does it; the others wait here and find it done.
                connection.execute(self.turn)
                version = self.version(connection)
                if version == len(self.steps):
                    return
                self.step(connection, version)
                applied(connection, version, version + 1)

    def step(self, connection: sa.Connection, version: int) -> None:
        """The one step from a schema to the next, with its record."""
        self.steps[version](connection)
        connection.execute(self.versions.insert().values(version=version + 1, applied=int(time.time())))

    def make_file(self) -> None:
        """An empty SQLite file that only its owner may read.

        Raises:
            VaultError: there is such a file.
        """
        assert self.file is not None
        try:
            os.close(os.open(self.file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            raise self.failure(f"{self.shown} exists already") from None
        with self.alone() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode=WAL")

    # Connections

    def _engine(self) -> sa.Engine:
        with self._lock:
            if self._made is None or self._process != os.getpid():
                if self._made is not None:
                    self._made.dispose(close=False)  # the parent process goes on using its connections
                self._made, self._process = self._new_engine(), os.getpid()
            return self._made

    def _new_engine(self) -> sa.Engine:
        if self.file:
            file = self.file
            made = sa.create_engine(
                "sqlite://", creator=lambda: self._sqlite(file), poolclass=QueuePool, hide_parameters=True
            )
            sa.event.listen(made, "handle_error", _damaged)
            return made
        try:
            made = sa.create_engine(self.url, hide_parameters=True, isolation_level="READ COMMITTED")
        except NoSuchModuleError:
            raise UsageError(f"no SQLAlchemy dialect for {self.url.drivername!r}") from None
        except ImportError:
            if self.url.get_backend_name() == "postgresql":
                raise MissingExtra(f"{self.what} in PostgreSQL", "postgres") from None
            raise UsageError(f"the driver of {self.url.drivername!r} is not installed") from None
        if made.dialect.name == "postgresql":
            milliseconds = int(self.wait * 1000)

            def limited(connection: Any, record: object) -> None:
                connection.execute(f"SET lock_timeout = {milliseconds}")
                connection.commit()

            sa.event.listen(made, "connect", limited)
        return made

    def _sqlite(self, file: Path) -> sqlite3.Connection:
        if not file.is_file():
            raise self.failure(f"no {self.what.partition(' ')[2]} at {file}; {self.made_by}")
        made = sqlite3.connect(
            f"file:{quote(str(file))}?mode=rw", uri=True, isolation_level=None, check_same_thread=False, timeout=0.02
        )
        settings = "synchronous=FULL secure_delete=ON temp_store=MEMORY cell_size_check=ON trusted_schema=OFF"
        try:
            for setting in settings.split():
                made.execute(f"PRAGMA {setting}")
        except (sqlite3.Error, UnicodeDecodeError) as error:
            made.close()
            raise _said_of(error) from None
        return made

    def _looked(self, connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN")
        try:
            connection.exec_driver_sql("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()
        except DBAPIError:
            with suppress(DBAPIError):
                connection.exec_driver_sql("ROLLBACK")
            raise

    def _patiently(self, begin: Callable[[], object]) -> None:
        def tried() -> bool:
            try:
                begin()
            except DBAPIError as error:
                if _is_busy(error):
                    return False
                raise
            return True

        self.patiently(tried, "no turn to begin")

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Errors of the database as ours. Theirs are not kept: some quote the row that they failed at."""
        message, busy = "", False
        try:
            yield
        except DBAPIError as error:
            busy = _is_busy(error)
            message = self._failed(error.orig)
        except SQLAlchemyError as error:
            message = self._failed(error)
        except sqlite3.Error as error:  # from opening the file
            message = self._failed(error)
        if busy:
            raise self.busy(f"{self.shown}: other processes held it for too long") from None
        if message:
            raise self.failure(message) from None

    def _failed(self, error: BaseException | None) -> str:
        if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_NOTADB:
            return f"{self.shown} is not {self.what}; {self.made_by}"
        return f"{self.shown}: the database failed with {type(error).__name__}"


def _damaged(context: sa.engine.ExceptionContext) -> BaseException | None:
    error = context.original_exception
    return _said_of(error) if isinstance(error, UnicodeDecodeError) else None


def _said_of(error: BaseException) -> BaseException:
    """The error; of a file so damaged that SQLite's own message about it is no text, an error of SQLite."""
    return sqlite3.DatabaseError("damaged") if isinstance(error, UnicodeDecodeError) else error


def _is_busy(error: DBAPIError) -> bool:
    if isinstance(error.orig, sqlite3.OperationalError):
        return (getattr(error.orig, "sqlite_errorcode", 0) & 0xFF) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    return getattr(error.orig, "sqlstate", None) in _BUSY
