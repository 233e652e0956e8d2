"""The server's tables, in SQLite or another database: users, sessions, keys, links, policies, the audit log, and the
tables of jobs, reviews and scopes.

Whatever lets somebody in (passwords, session and key tokens, links) is stored as a digest; texts are sealed.
Times are seconds since 1970.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from allonym.errors import AllonymError, DatabaseError, RequestError
from allonym.keys import Cipher, encode_secret, expand_key, stretch_passphrase
from allonym.vault.keys import Secret
from allonym.vault.store import Store, define_table

# Schema 1: who may do what

account_tables = sa.MetaData()
versions = define_table("server_versions", account_tables, "version: key integer, applied: time")
users = define_table(
    "server_users",
    account_tables,
    "id: counted integer, name: unique string64, role: string16, password: string256, active: flag, created: time",
    reuse_ids=False,  # jobs and readings belong to somebody by this number
)
sessions = define_table(
    "server_sessions",
    account_tables,
    "digest: key string64, user: indexed integer, csrf: string64, created: time, seen: time, expires: indexed time",
)
keys = define_table(
    "server_keys",
    account_tables,
    "digest: key string64, user: indexed integer, name: string64, permissions: string256, created: time, "
    "expires: optional time, used: optional time",
    "user",
    "name",
)
links = define_table(
    "server_links", account_tables, "digest: key string64, role: string16, created: time, expires: time"
)
policies = define_table("server_policies", account_tables, "name: key string64, sealed: bytes, changed: time")
audit = define_table(
    "server_audit",
    account_tables,
    "number: counted integer, time: time, actor: string160, action: string160, counts: text",
)

# Schema 2: reviews and intruder studies. Texts, names of documents, terms, marks and answers are sealed.

review_tables = sa.MetaData()
projects = define_table(
    "server_projects",
    review_tables,
    "number: counted integer, name: unique string64, sealed: bytes, owner: string64, created: time",
)
documents = define_table(
    "server_documents",
    review_tables,
    "number: counted integer, project: integer, digest: string32, head: bytes, body: bytes, risk: float, gain: float, "
    "state: string16, created: time, changed: time",
    "project",
    "digest",
)
readings = define_table(  # seats 1 and 2 are the reviewers', seat 0 is the adjudicator's
    "server_readings",
    review_tables,
    "document: key integer, seat: key integer, user: integer, reader: string64, version: integer, done: flag, "
    "sealed: bytes, changed: time",
)
terms = define_table(  # project 0 stands for all; the count and the highest number together identify the version
    "server_terms",
    review_tables,
    "number: counted integer, project: integer, kind: string16, digest: string32, sealed: bytes, owner: string64, "
    "created: time",
    "project",
    "digest",
    reuse_ids=False,
)
studies = define_table(
    "server_studies",
    review_tables,
    "number: counted integer, name: unique string64, sealed: bytes, texts: integer, pages: integer, owner: string64, "
    "created: time",
)
invitations = define_table(
    "server_invitations",
    review_tables,
    "digest: key string64, study: integer, page: integer, expires: time, created: time, opened: optional time, "
    "done: optional time",
    "study",
    "page",
)
answers = define_table(
    "server_answers",
    review_tables,
    "study: key integer, page: key integer, item: key string16, sealed: bytes, changed: time",
)

# Schema 3: jobs. Their specifications and endings are sealed, because names of files are among them. ``place`` is the
# data folder that has the files, ``wish`` is cancel or remove, for the server that runs the jobs.

job_tables = sa.MetaData()
jobs = define_table(
    "server_jobs",
    job_tables,
    "number: counted integer, id: unique string32, place: indexed string32, user: integer, owner: string64, "
    "kind: string16, state: indexed string16, wish: string16, created: time, started: optional time, "
    "ended: optional time, deaths: integer, reached: float, wanted: text, spec: bytes, told: optional bytes",
    reuse_ids=False,
)

# Schema 4: who may use which scope of the vault. Names of scopes are sealed; owner 0 is nobody.

scope_tables = sa.MetaData()
scopes = define_table(
    "server_scopes",
    scope_tables,
    "number: counted integer, digest: unique string32, sealed: bytes, owner: integer, created: time",
    reuse_ids=False,
)
scope_users = define_table(
    "server_scope_users", scope_tables, "scope: key integer, user: key indexed integer, created: time"
)

# Schema 5: accounts of single sign-on, by a digest of the issuer and its name for the person.

identity_tables = sa.MetaData()
identities = define_table("server_identities", identity_tables, "digest: key string64, user: indexed integer")

# Schema 6: projects of files, whose folders lie in the data folder. Their owners are those of their scopes.

file_project_tables = sa.MetaData()
file_projects = define_table(
    "server_file_projects", file_project_tables, "id: key string32, sealed: bytes, created: time"
)

_PARTS = (account_tables, review_tables, job_tables, scope_tables, identity_tables, file_project_tables)
STEPS = tuple(tables.create_all for tables in _PARTS)
"""The step at index n leads from schema n to schema n + 1. Steps are never changed once released, only added."""


class Database(Store):
    """The server's database; :meth:`create_or_migrate` creates it where there is none, and migrates an older one."""

    what, made_by = "a database of the server", "allonym serve makes one"
    versions, steps = versions, STEPS
    turn = sa.select(versions.c.version).where(versions.c.version == 1).with_for_update()
    failure: type[AllonymError] = DatabaseError
    busy: type[AllonymError] = DatabaseError

    def create_or_migrate(self) -> None:
        """Create what is missing.

        Raises:
            DatabaseError: it cannot be opened, or a newer version of allonym made it.
        """
        if self.file and not self.file.exists():
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.create_file()
        try:
            self._create_first_tables()
        except DatabaseError:
            self._create_first_tables()  # two servers began at once, and the other one was faster
        self.migrate(lambda connection, before, after: None)

    def fetch_rows(self, query: sa.Select[Any]) -> Sequence[Any]:
        """Return the rows of one query, in a transaction of its own."""
        with self.open_read_transaction() as connection:
            return connection.execute(query).all()

    def fetch_first_row(self, query: sa.Select[Any]) -> Any:
        """Return the first row of one query; None where there is none."""
        with self.open_read_transaction() as connection:
            return connection.execute(query).first()

    def execute_writes(self, *statements: sa.Insert | sa.Update | sa.Delete) -> int:
        """Execute statements in one transaction and return how many rows the last one changed."""
        changed = 0
        with self.open_write_transaction() as connection:
            for statement in statements:
                changed = connection.execute(statement).rowcount
        return changed

    def upsert_row(
        self,
        connection: sa.Connection,
        table: sa.Table,
        key_columns: Mapping[str, Any],
        values: Mapping[str, Any],
    ) -> None:
        """Change the row with a key, or insert one where there is none."""
        same = [table.c[column] == value for column, value in key_columns.items()]
        if not connection.execute(sa.update(table).where(*same).values(**values)).rowcount:
            connection.execute(sa.insert(table).values(**key_columns, **values))

    @contextmanager
    def open_unique_write_transaction(self, conflict_message: str) -> Iterator[sa.Connection]:
        """A transaction as :meth:`open_write_transaction` makes one, for a row whose name may be taken.

        Raises:
            RequestError: it is, with ``conflict_message`` as the message (409).
        """
        try:
            with self.open_write_transaction() as connection:
                yield connection
        except DatabaseError as error:
            if any(name in str(error) for name in ("IntegrityError", "UniqueViolation")):  # SQLite's, PostgreSQL's
                raise RequestError(conflict_message, 409, "Taken") from None
            raise

    def _create_first_tables(self) -> None:
        with self.open_write_transaction() as connection:
            if not sa.inspect(connection).has_table(versions.name):
                self.migrate_step(connection, 0)


def check_and_lock_active_user(connection: sa.Connection, user_id: int) -> None:
    """Check that a user was not removed meanwhile, and lock the row.

    Raises:
        RequestError: the user was (401).
    """
    row = sa.select(users.c.id).where(users.c.id == user_id, users.c.active).with_for_update()
    if connection.execute(row).first() is None:
        raise RequestError("there is no such user any more", 401, "NotSignedIn")


def get_unix_time() -> int:
    """Return the seconds since 1970."""
    return int(time.time())


_PURPOSE = b"allonym server sealing 1"


class Sealing:
    """Seals texts for one purpose each, so that no value can be moved to another column unnoticed.

    Args:
        secret: the server's. The key is derived from it by HMAC-SHA256, from a passphrase by scrypt (RFC 7914).
    """

    def __init__(self, secret: Secret) -> None:
        if isinstance(secret, str):
            secret = stretch_passphrase(secret, _PURPOSE, 2**16)
        self._key = expand_key(_PURPOSE, secret)
        self._cipher = Cipher(self._key)

    def seal(self, text: str, purpose: str = "") -> bytes:
        """Encrypt a text with AES-256-GCM and a random nonce, bound to its purpose."""
        return self._cipher.seal(encode_secret(text), purpose.encode())

    def unseal(self, sealed: bytes, purpose: str = "") -> str:
        """Decrypt a sealed text.

        Raises:
            DatabaseError: it was sealed with another secret or for another purpose, or was changed.
        """
        plain = self._cipher.unseal(bytes(sealed), purpose.encode())
        if plain is None:
            raise DatabaseError("a stored text does not open with this server's secret, or was changed")
        return plain.decode("utf-8", "surrogatepass")

    def seal_json(self, value: Any, purpose: str) -> bytes:
        """Seal a value as JSON; see :meth:`seal`."""
        return self.seal(json.dumps(value), purpose)

    def unseal_json(self, sealed: bytes, purpose: str) -> Any:
        """Return the value that :meth:`seal_json` sealed; see :meth:`unseal`."""
        return json.loads(self.unseal(sealed, purpose))

    def make_lookup_digest(self, *values: str) -> str:
        """Return a keyed digest of the values, 32 hexadecimal digits, to look up a row whose content is sealed."""
        return hashlib.blake2b("\0".join(values).encode(), key=self._key, digest_size=16).hexdigest()
