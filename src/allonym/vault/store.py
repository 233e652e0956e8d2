"""The tables of a vault, their migrations, and transactions over them.

No column holds plain text: names and values are sealed, what is looked up is a keyed digest. In the clear are only
counts, times (in seconds) and the parameters of the key's derivation.

SQLite: write-ahead log, ``synchronous=FULL`` (a commit that returned survives a crash), deleted content is overwritten,
nothing temporary on disk. Other databases: READ COMMITTED, writers of a scope wait for each other at the scope's row.
"""

from __future__ import annotations

import os
import random
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import QueuePool

from allonym.document import FIRST_SALT
from allonym.errors import AllonymError, MissingExtra, UsageError, VaultError, VaultLocked
from allonym.partfile import check_plain_target, open_part_file

T = TypeVar("T")
WAIT = 30.0
"""Seconds that a writer waits for others, by default."""

AT_ONCE = 500
"""Rows per statement; databases bound the number of parameters."""

LONG_LOG = 1 << 24
"""Bytes of SQLite's write-ahead log from which a writer empties it."""

_BUSY = frozenset({"55P03", "40P01", "40001"})  # PostgreSQL: no lock in time, deadlock, serialisation failure

_TYPES: dict[str, Any] = {
    "integer": sa.Integer,
    "float": sa.Float,
    "flag": sa.Boolean,
    "time": sa.BigInteger,
    "count": sa.BigInteger,
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


def define_table(
    name: str, tables: sa.MetaData, columns: str, *unique: str, reuse_ids: bool = True, has_numbers: bool = True
) -> sa.Table:
    """Define a table ``allonym_NAME``.

    Args:
        name: without the prefix.
        tables: the part of the schema that it belongs to.
        columns: ``name: type`` of each, separated by commas, with modifiers before the type. Only ``optional`` allows
            NULL.
        unique: columns whose values together occur once.
        reuse_ids: whether the number of a removed row may be used again.
        has_numbers: whether SQLite numbers the rows; without, they are kept in the order of their key.
    """
    defined: list[Any] = [_define_column(*column.split(": ")) for column in columns.split(", ")]
    constraints: list[Any] = [sa.UniqueConstraint(*unique)] if unique else []
    options: dict[str, Any] = {} if reuse_ids else {"sqlite_autoincrement": True}
    options |= {} if has_numbers else {"sqlite_with_rowid": False}
    return sa.Table(f"allonym_{name}", tables, *defined, *constraints, **options)


def _define_column(name: str, kind: str) -> sa.Column[Any]:
    *modifiers, base = kind.split()
    options: dict[str, Any] = {"nullable": False}
    for modifier in modifiers:
        options |= _MODIFIERS[modifier]
    return sa.Column(name, _TYPES[base], **options)


# Schema 1

_first = sa.MetaData()
_STORED = "scope: indexed integer, sealed: bytes, created: time, expires: indexed optional time"
migrations = define_table("migrations", _first, "version: key integer, applied: time")
meta = define_table("meta", _first, "name: key string32, value: bytes")
scopes = define_table(
    "scopes",
    _first,
    "id: counted integer, digest: unique string32, sealed: bytes, changes: count, created: time",
    reuse_ids=False,  # readers tell scopes apart by it
)
subjects = define_table("subjects", _first, "digest: key string32, scope: indexed integer, sealed: bytes")
counters = define_table("counters", _first, "digest: key string32, scope: indexed integer, sealed: bytes")
assigned = define_table("assigned", _first, f"digest: key string32, value: unique string32, {_STORED}")
originals = define_table("known", _first, f"digest: key string32, token: indexed string32, {_STORED}")
assigned_subjects = define_table("assigned_subjects", _first, "row: key string32, subject: key indexed string32")
known_subjects = define_table("known_subjects", _first, "row: key string32, subject: key indexed string32")


class Linked(NamedTuple):
    """A table whose rows are linked to subjects.

    Attributes:
        kind: of its rows, for messages and files.
        table: of the rows.
        links: of their subjects.
        lookup: the column by which rows are looked up.
        found_by: further digests by which rows are found, deleted with them: the digest, then the row.
    """

    kind: str
    table: sa.Table
    links: sa.Table
    lookup: str
    found_by: sa.Table | None = None


KNOWN = Linked("known", originals, known_subjects, "token")
ASSIGNED = Linked("assigned", assigned, assigned_subjects, "value")

# Schema 2

_second = sa.MetaData()
audit = define_table("audit", _second, "number: key integer, sealed: bytes, mac: bytes")

# Schema 3

_third = sa.MetaData()
define_table("digests", _third, "row: key string32, sealed: bytes")

# Schema 4

_fourth = sa.MetaData()
_FOUND_BY = "digest: key string32, result: indexed string32, document: indexed string32"
plans = define_table("plans", _fourth, f"{_FOUND_BY}, {_STORED}")
plan_subjects = define_table("plan_subjects", _fourth, "row: key string32, subject: key indexed string32")
pieces = define_table("pieces", _fourth, "piece: key string32, plan: key indexed string32")
"""What plans are found by, deleted with them; see :mod:`allonym.vault.plans`."""

PLANS = Linked("plans", plans, plan_subjects, "result", pieces)

# Schema 7

_seventh = sa.MetaData()
people = define_table("people", _seventh, f"digest: key string32, {_STORED}")
_LINK = "row: key string32, subject: key indexed string32"
people_subjects = define_table("people_subjects", _seventh, _LINK, has_numbers=False)
people_names = define_table(
    "people_names", _seventh, "name: key string32, person: key indexed string32", has_numbers=False
)
"""What people are found by: whole names and their words; see :mod:`allonym.vault.register`."""

PEOPLE = Linked("people", people, people_subjects, "digest", people_names)
LINKED = (KNOWN, ASSIGNED, PLANS, PEOPLE)


def _create_audit_log(connection: sa.Connection) -> None:
    """Create schema 2: the audit log, whose rows the database itself refuses to change."""
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


def _drop_digests(connection: sa.Connection) -> None:
    """Make schema 5, which has no digests of originals: they took two thirds of the space, and can be computed."""
    _third.drop_all(connection)


def _drop_row_numbers(connection: sa.Connection) -> None:
    """Make schema 6: in SQLite what links rows is kept once, in the order of its key, which takes a fifth less."""
    if connection.dialect.name != "sqlite":
        return
    for table in (known_subjects, assigned_subjects, plan_subjects, pieces):
        for index in table.indexes:
            index.drop(connection)
        connection.exec_driver_sql(f"ALTER TABLE {table.name} RENAME TO {table.name}_5")
        narrow = table.to_metadata(sa.MetaData())
        narrow.dialect_options["sqlite"]["with_rowid"] = False
        narrow.create(connection)
        connection.exec_driver_sql(f"INSERT INTO {table.name} SELECT * FROM {table.name}_5 ORDER BY 1, 2")
        connection.exec_driver_sql(f"DROP TABLE {table.name}_5")


def _create_register(connection: sa.Connection) -> None:
    """Make schema 7: the register of people, and what their salts are made with until somebody is erased."""
    _seventh.create_all(connection)
    connection.execute(meta.insert().values(name="people", value=(FIRST_SALT + secrets.token_hex(16)).encode()))


STEPS: tuple[Callable[[sa.Connection], None], ...] = (
    _first.create_all,
    _create_audit_log,
    _third.create_all,
    _fourth.create_all,
    _drop_digests,
    _drop_row_numbers,
    _create_register,
)
"""The step at index n leads from schema n to schema n + 1. Steps are never changed once released, only added."""

OLDEST_READ = 4
"""The oldest schema whose tables are read as they are, where the file may not be written."""

StepReport = Callable[[sa.Connection, int, int], None]
"""Called inside a step's transaction, with the versions that it leads from and to."""


def parse_address(where: str | Path) -> sa.URL:
    """Return the URL of a path or URL. Text with ``://`` in it is a URL, anything else a path.

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
    """The row that processes lock before they migrate."""
    failure: type[AllonymError] = VaultError
    busy: type[AllonymError] = VaultLocked

    def __init__(self, where: str | Path, wait: float = WAIT) -> None:
        self.url = parse_address(where)
        self.wait = wait
        self.file = Path(self.url.database or "") if self.url.get_backend_name() == "sqlite" else None
        self.shown = str(self.file) if self.file else self.url.render_as_string(hide_password=True)
        self._reset_connections()

    def _reset_connections(self) -> None:
        self._engine: sa.Engine | None = None
        self._process = 0
        self._lock = threading.Lock()
        self._log_limit = 0

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        self._reset_connections()

    def close(self) -> None:
        """Close this process's connections. They are opened again when needed."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.dispose(close=self._process == os.getpid())

    @contextmanager
    def open_read_transaction(self, *, once: bool = False) -> Iterator[sa.Connection]:
        """Open a transaction that sees one state of the database. ``once``: for a single statement."""
        with self._translate_errors(), self._get_process_engine().connect() as connection:
            if not self.file:
                connection.execution_options(isolation_level="AUTOCOMMIT" if once else "REPEATABLE READ")
            else:
                # The state to be seen is settled by the first look, which waits for whoever holds the file alone.
                self._begin_when_free(lambda: self._begin_read_transaction(connection))
            yield connection
            connection.rollback()

    @contextmanager
    def open_write_transaction(self) -> Iterator[sa.Connection]:
        """Open a transaction that is committed at the end, or rolled back if anything is raised.

        Raises:
            VaultLocked: others wrote for longer than we wait.
            VaultError: the database failed.
        """
        with self._translate_errors(), self._get_process_engine().connect() as connection:
            if self.file:
                self._begin_when_free(lambda: connection.exec_driver_sql("BEGIN IMMEDIATE"))
            yield connection
            connection.commit()
            if self.file:
                self._empty_long_log(connection, self.file)

    def _empty_long_log(self, connection: sa.Connection, file: Path) -> None:
        """Empty SQLite's write-ahead log where it is long: SQLite does not, as long as somebody is always reading."""
        log = Path(f"{file}-wal")
        size = log.stat().st_size if log.exists() else 0
        if size < max(self._log_limit, LONG_LOG):
            return
        with suppress(DBAPIError):
            connection.exec_driver_sql("PRAGMA busy_timeout=2000")  # readers in front of it end; new ones do without it
            busy = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").scalar()
            self._log_limit = size + LONG_LOG if busy else 0
            connection.exec_driver_sql("PRAGMA busy_timeout=20")

    @contextmanager
    def report_damaged_values(self) -> Iterator[None]:
        """Report stored values that are not what their columns should hold, for a block that treats nothing else.

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
    def connect_outside_transaction(self) -> Iterator[sa.Connection]:
        """Open a connection outside of any transaction, for VACUUM and checkpoints."""
        with self._translate_errors(), self._get_process_engine().connect() as connection:
            if not self.file:
                connection.execution_options(isolation_level="AUTOCOMMIT")
            yield connection

    def run_outside_transaction(self, statement: str) -> None:
        """Run a statement that the database accepts only outside of transactions; wait for other processes."""
        with self.connect_outside_transaction() as connection:
            if self.file:
                self._begin_when_free(lambda: connection.exec_driver_sql(statement))
            else:
                connection.exec_driver_sql(statement)

    def retry_until_done(self, attempt: Callable[[], bool], failure: str) -> None:
        """Repeat an attempt until it succeeds.

        Raises:
            VaultLocked: others held the vault for longer than we wait.
        """
        until, pause = time.monotonic() + self.wait, 0.001
        while not attempt():
            if time.monotonic() > until:
                raise self.busy(f"{self.shown}: {failure}: other processes held it for {self.wait:g} seconds")
            time.sleep(random.uniform(0, pause))
            pause = min(pause * 1.5, 0.02)

    def read_schema_version(self, connection: sa.Connection) -> int:
        """Return the schema version of the tables.

        Raises:
            VaultError: there are none, or a newer version of allonym made them.
        """
        try:
            version = connection.execute(sa.select(sa.func.max(self.versions.c.version))).scalar()
        except DBAPIError:
            version = None
        if not isinstance(version, int):
            raise self.failure(f"{self.shown} is not {self.what}; {self.made_by}")
        if version > (most := len(self.steps)):
            message = f"has schema {version}, this version of allonym knows up to {most}; use a newer one"
            raise self.failure(f"{self.shown} {message}")
        return version

    def is_writable(self) -> bool:
        """Return whether this process may write the file; of another database that is not known, so it is true."""
        return self.file is None or os.access(self.file, os.W_OK)

    def migrate(self, report_step: StepReport) -> None:
        """Bring an older vault's tables up to date, each step in a transaction with its own record."""
        while True:
            with self.open_write_transaction() as connection:
                # Of several processes that come at once, one does it; the others wait here and find it done.
                connection.execute(self.turn)
                version = self.read_schema_version(connection)
                if version == len(self.steps):
                    return
                self.migrate_step(connection, version)
                report_step(connection, version, version + 1)

    def migrate_step(self, connection: sa.Connection, version: int) -> None:
        """Migrate from one schema version to the next, and record it."""
        self.steps[version](connection)
        connection.execute(self.versions.insert().values(version=version + 1, applied=int(time.time())))

    def create_file(self) -> None:
        """Create an empty SQLite file that only its owner may read.

        Raises:
            VaultError: there is such a file.
        """
        assert self.file is not None
        try:
            os.close(os.open(self.file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            raise self.failure(f"{self.shown} exists already") from None
        with self.connect_outside_transaction() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode=WAL")

    # Connections

    def _get_process_engine(self) -> sa.Engine:
        with self._lock:
            if self._engine is None or self._process != os.getpid():
                if self._engine is not None:
                    self._engine.dispose(close=False)  # the parent process goes on using its connections
                self._engine, self._process = self._create_engine(), os.getpid()
            return self._engine

    def _create_engine(self) -> sa.Engine:
        if self.file:
            connect = partial(self._connect_sqlite, self.file)
            engine = sa.create_engine("sqlite://", creator=connect, poolclass=QueuePool, hide_parameters=True)
            sa.event.listen(engine, "handle_error", _replace_decode_error)
            return engine
        try:
            engine = sa.create_engine(self.url, hide_parameters=True, isolation_level="READ COMMITTED")
        except NoSuchModuleError:
            raise UsageError(f"no SQLAlchemy dialect for {self.url.drivername!r}") from None
        except ImportError:
            if self.url.get_backend_name() == "postgresql":
                raise MissingExtra(f"{self.what} in PostgreSQL", "postgres") from None
            raise UsageError(f"the driver of {self.url.drivername!r} is not installed") from None
        if engine.dialect.name == "postgresql":
            milliseconds = int(self.wait * 1000)

            def set_timeout(connection: Any, record: object) -> None:
                connection.execute(f"SET lock_timeout = {milliseconds}")
                connection.commit()

            sa.event.listen(engine, "connect", set_timeout)
        return engine

    def _connect_sqlite(self, file: Path) -> sqlite3.Connection:
        if not file.is_file():
            raise self.failure(f"no {self.what.partition(' ')[2]} at {file}; {self.made_by}")
        connection = sqlite3.connect(
            f"file:{quote(str(file))}?mode=rw", uri=True, isolation_level=None, check_same_thread=False, timeout=0.02
        )
        settings = "synchronous=FULL secure_delete=ON temp_store=MEMORY cell_size_check=ON trusted_schema=OFF"
        try:
            for setting in settings.split():
                connection.execute(f"PRAGMA {setting}")
        except (sqlite3.Error, UnicodeDecodeError) as error:
            connection.close()
            raise _convert_decode_error(error) from None
        return connection

    def _begin_read_transaction(self, connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN")
        try:
            connection.exec_driver_sql("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()
        except DBAPIError:
            with suppress(DBAPIError):
                connection.exec_driver_sql("ROLLBACK")
            raise

    def _begin_when_free(self, begin: Callable[[], object]) -> None:
        def try_to_begin() -> bool:
            try:
                begin()
            except DBAPIError as error:
                if not _is_busy(error):
                    raise
                return False
            return True

        self.retry_until_done(try_to_begin, "no turn to begin")

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Raise errors of the database as ours. Theirs are not kept: some quote the row that they failed at."""
        try:
            yield
            return
        except (SQLAlchemyError, sqlite3.Error) as error:  # SQLite's own come from opening the file
            busy = isinstance(error, DBAPIError) and _is_busy(error)
            message = self._describe_failure(error.orig if isinstance(error, DBAPIError) else error)
        if busy:
            raise self.busy(f"{self.shown}: other processes held it for too long") from None
        raise self.failure(message) from None

    def _describe_failure(self, error: BaseException | None) -> str:
        if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_NOTADB:
            return f"{self.shown} is not {self.what}; {self.made_by}"
        return f"{self.shown}: the database failed with {type(error).__name__}"


def _replace_decode_error(context: sa.engine.ExceptionContext) -> BaseException | None:
    error = context.original_exception
    return _convert_decode_error(error) if isinstance(error, UnicodeDecodeError) else None


def _convert_decode_error(error: BaseException) -> BaseException:
    """Return the error, or an error of SQLite if the file is so damaged that SQLite's own message is no text."""
    return sqlite3.DatabaseError("damaged") if isinstance(error, UnicodeDecodeError) else error


def _is_busy(error: DBAPIError) -> bool:
    if isinstance(error.orig, sqlite3.OperationalError):
        return (getattr(error.orig, "sqlite_errorcode", 0) & 0xFF) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    return getattr(error.orig, "sqlstate", None) in _BUSY


def iterate_row_batches(
    connection: sa.Connection, table: sa.Table, *conditions: sa.ColumnElement[bool]
) -> Iterator[Sequence[sa.Row[Any]]]:
    """Yield the rows of a table in the order of their digests, at most :data:`AT_ONCE` at a time."""
    query = sa.select(table).where(*conditions).order_by(table.c.digest).limit(AT_ONCE)
    last = ""
    while rows := connection.execute(query.where(table.c.digest > last)).all():
        last = rows[-1].digest
        yield rows


def read_meta_values(connection: sa.Connection, *names: str) -> dict[str, bytes]:
    """Return what the vault keeps about itself under these names; under all if none is named."""
    query = sa.select(meta.c.name, meta.c.value)
    if names:
        query = query.where(meta.c.name.in_(names))
    return {row.name: bytes(row.value) for row in connection.execute(query)}


def write_meta_values(connection: sa.Connection, values: Mapping[str, bytes]) -> None:
    """Change what the vault keeps about itself."""
    for name, value in values.items():
        connection.execute(meta.update().where(meta.c.name == name).values(value=value))


def count_rows_by_scope(connection: sa.Connection, table: sa.Table, expired_by: int | None = None) -> dict[int, int]:
    """Count the rows of each scope; with a time, those that have expired by then."""
    query = sa.select(table.c.scope, sa.func.count()).group_by(table.c.scope)
    if expired_by is not None:
        query = query.where(table.c.expires <= expired_by)
    return {row[0]: row[1] for row in connection.execute(query)}


def make_batches(items: Iterable[T]) -> Iterator[list[T]]:
    """Yield the items in lists of at most :data:`AT_ONCE`."""
    rest = iter(items)
    while batch := list(islice(rest, AT_ONCE)):
        yield batch


def delete_rows(connection: sa.Connection, linked: Linked, rows: Iterable[str]) -> None:
    """Delete rows, their links to subjects, and what else they are found by."""
    for batch in make_batches(rows):
        connection.execute(linked.links.delete().where(linked.links.c.row.in_(batch)))
        if linked.found_by is not None:
            _, row = linked.found_by.c
            connection.execute(linked.found_by.delete().where(row.in_(batch)))
        connection.execute(linked.table.delete().where(linked.table.c.digest.in_(batch)))


@contextmanager
def write_private_file(path: Path, *, overwrite: bool) -> Iterator[BinaryIO]:
    """Open a new file that only its owner may read; it has its name only when all of it is written.

    Raises:
        UsageError: the file exists, and ``overwrite`` does not allow it.
    """
    check_plain_target(path)
    if path.exists() and not overwrite:
        raise UsageError(f"{path} exists; --overwrite (overwrite=True in Python) replaces it")
    with open_part_file(path, private=True, makes_folders=False) as part:
        yield part.stream
