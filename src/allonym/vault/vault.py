"""The vault: its keys, its scopes, its audit log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa

from allonym.errors import RestoreError, UnknownToken, UsageError, VaultError, VaultLocked
from allonym.vault import audit as log
from allonym.vault import digests as checking
from allonym.vault import erase, erase_people, store, transfer
from allonym.vault.book import Book, decrypt_replacement_row, digest_replacement, find_scope, read_scope_names
from allonym.vault.digests import Digests
from allonym.vault.keyed_store import KeyedStore
from allonym.vault.keys import Keys, Sealer, Secret, check_secret, lock_keys, read_derivation, unlock_keys, wrap_keys
from allonym.vault.plans import PlanReader
from allonym.vault.records import AuditEntry, ErasedPerson, KeptPlan, Known, Merged, Purged, ScopeInfo, VaultInfo
from allonym.vault.register import Register
from allonym.vault.store import WAIT, Store, count_rows_by_scope, make_batches

DAY = 86_400
_REMEMBERED_SCOPES = 4
_ROW = store.originals.c
_KNOWN = (
    sa.select(_ROW.digest, _ROW.token, _ROW.sealed, _ROW.expires, _ROW.created)
    .where(sa.or_(_ROW.expires.is_(None), _ROW.expires > sa.bindparam("now")))
    .order_by(_ROW.created, _ROW.digest)
)
_OF_SCOPE = _KNOWN.where(_ROW.scope == sa.bindparam("scope"))
_OF_TOKEN = _KNOWN.where(_ROW.token == sa.bindparam("token"))


class Vault(KeyedStore):
    """An encrypted store of originals and their replacements, in a SQLite file or another database.

    Opened without its secret, a vault tells only its :meth:`info`. It may be given to other processes, by fork or
    pickle: each makes connections of its own. A pickle holds the keys, so it belongs nowhere but into a worker's pipe.
    """

    def _set_keys(self, keys: Keys | None) -> None:
        super()._set_keys(keys)
        self._read: dict[str, tuple[tuple[int, int], int | None, tuple[Known, ...]]] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._store, self._keys)

    def __repr__(self) -> str:
        return f"Vault({self._store.shown!r}, {'locked' if self.locked else 'unlocked'})"

    def __enter__(self) -> Vault:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        with suppress(Exception):  # the interpreter may be half gone
            self.close()

    # Making and opening

    @classmethod
    def create(
        cls, where: str | Path, secret: Secret, *, keep_days: int | None = None, actor: str = "", wait: float = WAIT
    ) -> Vault:
        """Create a vault.

        Args:
            where: path of a file that does not exist yet, or the SQLAlchemy URL of a database without a vault.
            secret: random bytes, or a passphrase (str); 16 bytes at least. Without it nothing is ever read again.
            keep_days: after so many days what is written expires; None: never.
            actor: who does it, for the audit log.
            wait: seconds to wait for other processes before :class:`VaultLocked`.

        Raises:
            UsageError: the secret is too short, or the URL no URL.
            MissingExtra: the database's driver is not installed.
            VaultError: there is a vault, or another file, already.
        """
        check_secret(secret)
        if keep_days is not None and keep_days < 1:
            raise UsageError(f"keep_days must be 1 or more, got {keep_days}")
        place, keys = Store(where, wait), Keys.new()
        values = {
            "created": str(int(time.time())).encode(),
            "keep_days": str(keep_days or "").encode(),
            **lock_keys(keys, secret, place.shown),
        }
        if place.file:
            place.create_file()
        vault = cls(place, keys)
        try:
            with place.open_write_transaction() as connection:
                if sa.inspect(connection).has_table(store.meta.name):
                    raise VaultError(f"{place.shown} holds a vault already")
                for version in range(len(place.steps)):
                    place.migrate_step(connection, version)
                connection.execute(store.meta.insert(), [{"name": n, "value": v} for n, v in values.items()])
                log.append_entry(connection, vault._require_sealer(), "create", "", actor, {})
        except BaseException:
            vault.close()
            if place.file:
                place.file.unlink(missing_ok=True)
            raise
        return vault

    @classmethod
    def open(cls, where: str | Path, secret: Secret | None = None, *, wait: float = WAIT) -> Vault:
        """Open a vault; the tables of an older one are brought up to date.

        Where its file may not be written, one of the schema before is read as it is.

        Args:
            where: path or SQLAlchemy URL, as it was given to :meth:`create`.
            secret: what it opens with; None: only :meth:`info` works.
            wait: seconds to wait for other processes before :class:`VaultLocked`.

        Raises:
            WrongKey: the secret does not open it.
            VaultError: there is no vault, a newer version made it, or it is too old and may not be written.
        """
        if secret is not None:
            check_secret(secret)
        place = Store(where, wait)
        try:
            with place.report_damaged_values(), place.open_read_transaction() as connection:
                version, values = place.read_schema_version(connection), store.read_meta_values(connection)
            if secret is None:
                return cls(place, None)
            with place.report_damaged_values():
                vault = cls(place, unlock_keys(values, secret, place.shown))
        except BaseException:
            place.close()
            raise
        if version == len(place.steps):
            return vault
        if place.is_writable():
            place.migrate(vault._log_migration)
        elif version < store.OLDEST_READ:
            place.close()
            raise VaultError(f"{place.shown} has schema {version}: it must be brought up to date, so make it writable")
        return vault

    def _log_migration(self, connection: sa.Connection, before: int, after: int) -> None:
        if after >= 2:
            log.append_entry(connection, self._require_sealer(), "migrate", "", "", {"from": before, "to": after})

    def close(self) -> None:
        """Close this process's connections; they are opened again when needed."""
        self._store.close()

    @property
    def where(self) -> str:
        """The vault's path, or its URL without the password."""
        return self._store.shown

    @property
    def locked(self) -> bool:
        """Whether the vault was opened without its secret."""
        return self._keys is None

    @property
    def operator_key(self) -> bytes:
        """The key of keyed operators: 32 random bytes, which stay the same when secret and data key change.

        Raises:
            VaultLocked: it was opened without its secret.
        """
        return self._require_keys().operator

    # Writing and reading

    @contextmanager
    def book(self, scope: str, subject: str = "", *, expires: datetime | None = None) -> Iterator[Book]:
        """Open a scope for writing in one transaction; other writers of the scope wait for it.

        What is written is kept at the end of the block, and undone where anything is raised in it.

        Args:
            scope: project or release.
            subject: whose document is written about, for a later ``purge(subject=...)``.
            expires: when what is written expires; None: as the vault was made.

        Raises:
            VaultLocked: it was opened without its secret, or others write for too long.
        """
        with self._open_write_transaction() as (connection, sealer):
            now = int(time.time())
            until = self._compute_expiry(connection, now, expires)
            book = Book(connection, sealer, scope, subject, until, now)
            book.operator_key = self.operator_key
            try:
                yield book
                book.flush()
            finally:
                book.close()

    def known(self, scope: str) -> tuple[Known, ...]:
        """Return all originals of a scope, oldest first. They are cached until something in the scope changes.

        Raises:
            VaultLocked: it was opened without its secret.
            VaultError: a row was changed by somebody without the key.
        """
        with self._open_read_transaction() as (connection, sealer):
            place = find_scope(connection, sealer, scope)
            if place is None:
                return ()
            now, state = int(time.time()), (place.id, place.changes)
            cached = self._read.get(place.digest)
            if cached is not None and cached[0] == state and (cached[1] is None or cached[1] > now):
                return cached[2]
            rows = connection.execute(_OF_SCOPE, {"scope": place.id, "now": now}).all()
            originals = tuple([decrypt_replacement_row(sealer, place.digest, *row[:3]) for row in rows])
        first = min((row.expires for row in rows if row.expires is not None), default=None)
        self._read = {k: v for k, v in list(self._read.items())[1 - _REMEMBERED_SCOPES :] if k != place.digest}
        self._read[place.digest] = (state, first, originals)
        return originals

    def find(self, scope: str, replacement: str) -> tuple[Known, ...]:
        """Return the originals of a replacement, whatever its case, diacritics and outer punctuation; may be empty.

        Raises:
            VaultLocked: it was opened without its secret.
            VaultError: a row was changed by somebody without the key.
        """
        with self._open_read_transaction(once=True) as (connection, sealer):
            scope_digest = sealer.digest("scope", scope)
            token = digest_replacement(sealer, scope_digest, replacement)
            rows = connection.execute(_OF_TOKEN, {"token": token, "now": int(time.time())}).all()
            return tuple([decrypt_replacement_row(sealer, scope_digest, *row[:3]) for row in rows])

    def find_all(self, scope: str, replacements: Iterable[str]) -> tuple[Known, ...]:
        """Return the originals of any of many replacements, as :meth:`find` does of one, oldest first.

        Raises:
            VaultLocked, VaultError: as :meth:`find`.
        """
        with self._open_read_transaction() as (connection, sealer):
            scope_digest = sealer.digest("scope", scope)
            tokens = {digest_replacement(sealer, scope_digest, replacement) for replacement in replacements}
            now = {"now": int(time.time())}
            queries = (_KNOWN.where(_ROW.token.in_(batch)) for batch in make_batches(sorted(tokens)))
            rows = [row for query in queries for row in connection.execute(query, now)]
            rows.sort(key=lambda row: (row.created, row.digest))
            return tuple([decrypt_replacement_row(sealer, scope_digest, *row[:3]) for row in rows])

    def has_scope(self, scope: str) -> bool:
        """Tell whether anything was ever written into a scope.

        Raises:
            VaultLocked: it was opened without its secret.
        """
        with self._open_read_transaction(once=True) as (connection, sealer):
            return find_scope(connection, sealer, scope) is not None

    def has_more_than(self, scope: str, count: int) -> bool:
        """Tell whether a scope has more originals than a number, those that have expired included.

        Raises:
            VaultLocked: it was opened without its secret.
        """
        with self._open_read_transaction() as (connection, sealer):
            place = find_scope(connection, sealer, scope)
            if place is None:
                return False
            query = sa.select(_ROW.scope).where(_ROW.scope == place.id).limit(1).offset(count)
            return connection.execute(query).scalar() is not None

    def one(self, scope: str, token: str) -> Known:
        """Return the only original of a replacement.

        Raises:
            UnknownToken: there is none.
            RestoreError: there are several.
        """
        matches = self.find(scope, token)
        exact = [entry for entry in matches if entry.replacement == token] or matches
        if not exact:
            raise UnknownToken(f"{self._store.shown}: this replacement is not known in this scope")
        if len({entry.original for entry in exact}) > 1:
            raise RestoreError(f"{self._store.shown}: this replacement stands for {len(exact)} originals")
        return exact[0]

    @contextmanager
    def read_plans(self, scope: str) -> Iterator[PlanReader]:
        """Open the plans of a scope's documents for reading, see :class:`~allonym.vault.plans.PlanReader`.

        Raises:
            VaultLocked: it was opened without its secret.
            VaultError: a row was changed by somebody without the key.
        """
        with self._open_read_transaction() as (connection, sealer):
            yield PlanReader(connection, sealer, sealer.digest("scope", scope), int(time.time()))

    @contextmanager
    def read_register(self, scope: str) -> Iterator[Register]:
        """Open a scope's register of people for reading; raises as :meth:`read_plans`."""
        with self._open_read_transaction() as (connection, sealer):
            place = find_scope(connection, sealer, scope)
            number, digest = (place.id, place.digest) if place is not None else (-1, "")
            yield Register(connection, sealer, number, digest, int(time.time()))

    def plans(self, scope: str, document: str) -> tuple[KeptPlan, ...]:
        """Return the plans of a document by its id, oldest first; none if it is not known.

        Raises:
            VaultLocked, VaultError: as :meth:`known`.
        """
        with self.read_plans(scope) as reader:
            return reader.find_by_document(document)

    def info(self) -> VaultInfo:
        """Describe the vault without any of its values; the vault may be locked."""
        with self._store.report_damaged_values(), self._store.open_read_transaction() as connection:
            now, values = int(time.time()), store.read_meta_values(connection)
            version = self._store.read_schema_version(connection)
            names = read_scope_names(connection, self._sealer)
            query = sa.select(store.scopes.c.id, store.scopes.c.digest).order_by(store.scopes.c.id)
            places = connection.execute(query).all()
            tables = {"known": store.originals, "assigned": store.assigned, "subjects": store.subjects}
            tables |= {"plans": store.plans} if version > 3 else {}  # a locked vault may be of an older schema
            counts = {name: count_rows_by_scope(connection, table) for name, table in tables.items()}
            past = [count_rows_by_scope(connection, table, now) for table in (store.originals, store.assigned)]
        scopes = tuple(
            ScopeInfo(
                names[digest],
                **{"plans": 0} | {name: by_scope.get(number, 0) for name, by_scope in counts.items()},
                expired=sum(by_scope.get(number, 0) for by_scope in past),
            )
            for number, digest in places
        )
        kind = "passphrase" if read_derivation(values, self._store.shown)["kind"] == "scrypt" else "random"
        with self._store.report_damaged_values():
            created = datetime.fromtimestamp(int(values["created"]), UTC)
            return VaultInfo(self.where, version, created, kind, _read_keep_days(values), scopes)

    # Keys

    def rotate(self, secret: Secret, *, data: bool = False, actor: str = "") -> None:
        """Replace the secret that opens the vault. Originals and replacements do not change.

        Args:
            secret: the new one.
            data: also change the data key, and so encrypt all values once more. Other processes that have the vault
                open get :class:`WrongKey` from then on and must open it again. Without this, they go on.
            actor: who does it, for the audit log.

        Raises:
            UsageError: the secret is too short.
            VaultLocked: it was opened without its secret, or others use it for too long.
        """
        check_secret(secret)
        keys = self._require_keys()
        if data:
            keys = Keys(Keys.new().data, keys.lasting, keys.operator, keys.generation + 1)
        values = lock_keys(keys, secret, self._store.shown)
        count = 0
        with self._open_write_transaction(alone=True) as (connection, sealer):
            if data:
                count = transfer.reseal_values(connection, sealer, Sealer(keys, self._store.shown))
            store.write_meta_values(connection, values)
            log.append_entry(connection, sealer, "rotate", "", actor, {"rows": count} if data else {})
        if data:
            self._set_keys(keys)
        try:  # let no copy of the row that the old secret opened lie in the journal
            erase.empty_write_ahead_log(self._store)
        except VaultLocked:
            raise VaultLocked(
                f"{self.where}: the new secret is in force, but other processes kept the journal from being emptied"
            ) from None

    # Erasing

    def purge(
        self, *, scope: str | None = None, subject: str | None = None, expired: bool = False, actor: str = ""
    ) -> Purged:
        """Delete rows for good, and check that no trace of them is left.

        Args:
            scope: only this scope; with nothing else, all of it with its name and numbers. Use its name no more: new
                documents would get numbers that old ones have.
            subject: what was written about this subject alone. What other subjects share stays theirs.
            expired: what is past its time.
            actor: who does it, for the audit log.

        Raises:
            UsageError: nothing was named, or subject and expired together.
            VaultLocked: it was opened without its secret, or others use it for too long.
            VaultError: traces were left in the file.
        """
        if subject is not None and expired:
            raise UsageError("purge by subject or what has expired, not both at once")
        if subject == "" or (scope is None and subject is None and not expired):
            raise UsageError("purge needs a scope, a subject or expired=True")
        with self._open_write_transaction() as (connection, sealer):
            digest = sealer.digest("scope", scope) if scope is not None else None
            traces = erase.erase_rows(connection, sealer, digest, subject, expired, int(time.time()))
            log.append_entry(connection, sealer, "purge", digest or "", actor, +traces.counts)
        self._read.clear()
        erase.compact_database(self._store)
        return traces.verify_nothing_left(self._store)

    def erase_person(
        self,
        person: str | int,
        *,
        scope: str | None = None,
        actor: str = "",
        cover_files: Callable[[ErasedPerson], object] | None = None,
    ) -> ErasedPerson:
        """Erase a person from the register, originals, choices and plans of all subjects, and check that it is done.

        The rest of each document can still be restored; the person's replacements stay in it. What the person was
        replaced by is not used again, and nobody can compute it again from the name.

        Args:
            person: a whole name, or the number in the register of the scope.
            scope: only this scope; None: all.
            actor: who does it, for the audit log.
            cover_files: called with what is erased before the vault forgets it. Where it raises or never returns, the
                vault is as before, so that the call can be repeated. It must not use the vault.

        Raises:
            UsageError: a number without a scope.
            VaultLocked: it was opened without its secret, or others use it for too long.
            VaultError: there is nobody with this number, the name is that of several people, or traces were left.
        """
        with self._open_write_transaction(alone=True) as (connection, sealer):
            digest = sealer.digest("scope", scope) if scope is not None else None
            traces, erased = erase_people.erase_person(connection, sealer, digest, person, int(time.time()))
            log.append_entry(connection, sealer, "erase", digest or "", actor, +traces.counts)
            if cover_files is not None:
                cover_files(replace(erased, purged=Purged(**traces.counts, checked="")))
        self._read.clear()
        erase.compact_database(self._store)
        return replace(erased, purged=traces.verify_nothing_left(self._store))

    # Moving

    def export(self, path: str | Path, secret: Secret, *, overwrite: bool = False, actor: str = "") -> int:
        """Write all that has not expired into an encrypted file for :meth:`import_`; return the number of rows.

        Args:
            path: the file, which must not exist unless ``overwrite``. It appears at once, complete.
            secret: what the file opens with; it may be another than the vault's.

        Raises:
            UsageError: the file exists, or the secret is too short.
            VaultLocked: it was opened without its secret.
        """
        check_secret(secret)
        self._check_is_not_vault_file(path)
        with self._open_read_transaction() as (connection, sealer):
            rows = transfer.iterate_export_rows(connection, sealer, self.operator_key, int(time.time()))
            count = transfer.write_export(Path(path), rows, secret, overwrite=overwrite)
        self.record("export", actor=actor, counts={"rows": count})
        return count

    def import_(
        self, path: str | Path, secret: Secret, *, rename: Mapping[str, str] | None = None, actor: str = ""
    ) -> Merged:
        """Import what another vault exported: all of it, or nothing if anything is wrong with the file.

        Args:
            path: what :meth:`export` wrote.
            secret: what the file opens with.
            rename: scopes that get another name here, so that they do not meet scopes of the same name.

        Raises:
            WrongKey: the secret does not open the file.
            UsageError: a scope that is to get another name is not in the file.
            VaultError: the file is no export, was changed, or is cut off.
        """
        with self._open_write_transaction(alone=True) as (connection, sealer):
            keys, now = self._require_keys(), int(time.time())
            merged, operator = transfer.merge_export_file(connection, sealer, Path(path), secret, rename or {}, now)
            if merged.operator_key:
                keys = Keys(keys.data, keys.lasting, operator, keys.generation + 1)
                store.write_meta_values(connection, wrap_keys(keys))
            names = ("known", "assigned", "plans", "people", "conflicts")
            counts = {name: getattr(merged, name) for name in names}
            log.append_entry(connection, sealer, "import", "", actor, counts)
        self._set_keys(keys)
        return merged

    # Checking what a model writes

    def digests(self, scope: str | None = None) -> Digests:
        """Return keyed digests of all originals that have not expired, and of their variants.

        Args:
            scope: only of this scope; None: of all.

        Raises:
            VaultLocked: it was opened without its secret.
            VaultError: a row was changed by somebody without the key.
        """
        with self._open_read_transaction() as (connection, sealer):
            return Digests.of(sealer.checking, *checking.load_digests(connection, sealer, scope, int(time.time())))

    def write_digests(
        self, path: str | Path, *, scope: str | None = None, overwrite: bool = False, actor: str = ""
    ) -> int:
        """Write the digests with their key into a file, for checking a model's outputs; return the number of originals.

        The file opens no vault, and holds no text. But whoever has it can try out names, so it is for few.

        Raises:
            UsageError: the file exists, or cannot be written.
            VaultLocked: it was opened without its secret.
        """
        self._check_is_not_vault_file(path)
        with self._open_read_transaction() as (connection, sealer):
            entries, longest = checking.load_digests(connection, sealer, scope, int(time.time()))
            count = checking.write_digests(Path(path), sealer.checking, entries, longest, overwrite=overwrite)
        self.record("digests", scope=scope or "", actor=actor, counts={"originals": count})
        return count

    def _check_is_not_vault_file(self, path: str | Path) -> None:
        file = self._store.file
        if file is not None and Path(path).resolve() == file.resolve():
            raise UsageError(f"{path} is the vault itself, which is not written over")

    # The audit log

    def record(self, action: str, *, scope: str = "", actor: str = "", counts: Mapping[str, int] | None = None) -> None:
        """Add a line to the audit log, such as ``record("restore", scope="letters", counts={"restored": 12})``.

        Args:
            action: one word for what was done; no text of a document.
            scope: its name is stored as a digest only; empty: the whole vault.
            actor: who did it.
            counts: how many of what.
        """
        with self._open_write_transaction() as (connection, sealer):
            digest = sealer.digest("scope", scope) if scope else ""
            log.append_entry(connection, sealer, action, digest, actor, counts or {})

    def audit(self) -> tuple[AuditEntry, ...]:
        """Return the audit log, oldest line first.

        Raises:
            VaultError: it was changed by somebody without the key.
        """
        with self._open_read_transaction() as (connection, sealer):
            return tuple(log.read_checked_entries(connection, sealer, read_scope_names(connection, sealer)))

    # Inside

    def _compute_expiry(self, connection: sa.Connection, now: int, expires: datetime | None) -> int | None:
        if expires is not None:
            if expires.tzinfo is None:
                raise UsageError("expires needs a time zone, such as datetime.now(UTC) + timedelta(days=30)")
            return int(expires.timestamp())
        with self._store.report_damaged_values():
            days = _read_keep_days(store.read_meta_values(connection, "keep_days"))
        # The end of a day, so that a row that is used often is lengthened once a day and not each time.
        return None if days is None else (now // DAY + days + 1) * DAY


def _read_keep_days(values: Mapping[str, bytes]) -> int | None:
    return int(values["keep_days"]) if values.get("keep_days") else None
