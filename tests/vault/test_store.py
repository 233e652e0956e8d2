"""The tables: steps from schema to schema, damage, silence, and many processes at once."""

from __future__ import annotations

import json
import logging
import os
import random
import sqlite3
import subprocess
import sys
import threading
import traceback
import warnings
from contextlib import nullcontext
from pathlib import Path

import pytest

from allonym.errors import AllonymError, VaultError, VaultLocked, WrongKey
from allonym.plan import Edit, Plan
from allonym.vault import Vault, store

SECRET = b"a secret only for the tests, 32b"
ROOT = Path(__file__).resolve().parents[2]


def fill(vault: Vault, count: int = 40, scope: str = "letters") -> None:
    with vault.book(scope, "subject") as book:
        for i in range(count):
            number = str(book.number("tag"))
            book.enter("tag", f"person {scope} {i}", number)
            book.remember(f"[PERSON_{number}]", f"Person {scope} {i}", "PERSON", "tag@1", f"person {i}")


# Schemas


@pytest.fixture
def older(where, monkeypatch):
    """A vault as the first schema made it: no audit log, no digests."""
    with monkeypatch.context() as patch:
        patch.setattr(store.Store, "steps", store.STEPS[:1])
        patch.setattr("allonym.vault.vault.log.append_entry", lambda *_: None)
        with Vault.create(where, SECRET) as made:
            fill(made)
            assert made.info().schema == 1
    return where


def test_an_older_vault_is_brought_up_to_date_and_keeps_everything(older):
    with Vault.open(older) as locked:
        assert locked.info().schema == 1
    with Vault.open(older, SECRET) as vault:
        assert vault.info().schema == len(store.STEPS) == 7
        assert len(vault.known("letters")) == 40
        vault.record("restore", counts={"restored": 1})
        assert [(one.action, one.counts) for one in vault.audit()] == [
            ("migrate", {"from": 1, "to": 2}),
            ("migrate", {"from": 2, "to": 3}),
            ("migrate", {"from": 3, "to": 4}),
            ("migrate", {"from": 4, "to": 5}),
            ("migrate", {"from": 5, "to": 6}),
            ("migrate", {"from": 6, "to": 7}),
            ("restore", {"restored": 1}),
        ]
        with vault._store.open_read_transaction() as connection:
            assert [row.version for row in connection.execute(store.migrations.select())] == [1, 2, 3, 4, 5, 6, 7]
    with Vault.open(older, SECRET) as vault:
        assert len(vault.audit()) == 7


@pytest.mark.parametrize("schema", [3, 4, 5, 6])
def test_an_older_vault_that_may_not_be_written(schema, tmp_path, monkeypatch):
    file = tmp_path / "v"
    with monkeypatch.context() as patch:
        patch.setattr(store.Store, "steps", store.STEPS[:schema])
        with Vault.create(file, SECRET) as made:
            fill(made)
    monkeypatch.setattr(store.os, "access", lambda path, mode: mode != os.W_OK)  # root may write any file
    if schema == 3:
        with pytest.raises(VaultError, match="has schema 3: it must be brought up to date, so make it writable"):
            Vault.open(file, SECRET)
    else:
        with Vault.open(file, SECRET) as vault:
            assert vault.info().schema == schema and len(vault.known("letters")) == 40 and len(vault.digests()) > 0
    monkeypatch.undo()
    with Vault.open(file, SECRET) as vault:
        assert vault.info().schema == 7


def test_a_wrong_key_changes_no_schema(older):
    with pytest.raises(WrongKey):
        Vault.open(older, SECRET + b"!")
    with Vault.open(older) as locked:
        assert locked.info().schema == 1


def test_a_step_that_fails_leaves_nothing_of_itself(older, monkeypatch):
    first, second, *_ = store.STEPS

    def fails(connection):
        second(connection)
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(store.Store, "steps", (first, fails))
        with pytest.raises(RuntimeError):
            Vault.open(older, SECRET)
    with Vault.open(older) as locked:
        assert locked.info().schema == 1
    with Vault.open(older, SECRET) as vault:
        assert vault.info().schema == 7
        assert len(vault.known("letters")) == 40


def test_a_newer_schema_is_refused(vault, where, monkeypatch):
    monkeypatch.setattr(store.Store, "steps", store.STEPS[:1])
    for secret in (SECRET, None):
        with pytest.raises(VaultError, match="has schema 7, this version of allonym knows up to 1"):
            Vault.open(where, secret)


# Damage


def change(file: Path, *statements: str) -> None:
    connection = sqlite3.connect(file)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def use(vault: Vault) -> object:
    vault._read.clear()
    with vault.book("letters") as book:
        numbers = [book.recall("tag", f"person letters {i}") for i in range(40)]
        assert book.number("tag") > 0
    vault.info()
    vault.known("other")
    return sorted((one.replacement, one.original) for one in vault.known("letters")), numbers


SWAP = "UPDATE allonym_{t} SET {c} = (SELECT {c} FROM allonym_{t} WHERE rowid = 2) WHERE rowid = 1"


@pytest.mark.parametrize(
    "statement",
    [
        SWAP.format(t="known", c="sealed"),
        SWAP.format(t="known", c="token"),
        SWAP.format(t="assigned", c="sealed"),
        SWAP.format(t="scopes", c="sealed"),
        "UPDATE allonym_counters SET sealed = (SELECT sealed FROM allonym_known LIMIT 1)",
        "UPDATE allonym_known SET sealed = substr(sealed, 1, length(sealed) - 1)",
        "UPDATE allonym_known SET sealed = 'text'",
        "UPDATE allonym_known SET scope = (SELECT id FROM allonym_scopes WHERE id != scope LIMIT 1)",
        "UPDATE allonym_assigned SET value = digest",
    ],
)
def test_rows_that_were_swapped_or_changed_are_seen(file_vault, file, statement):
    fill(file_vault)
    fill(file_vault, scope="other")
    change(file, statement)
    with pytest.raises(VaultError, match="damaged, or was changed without the key"):
        use(file_vault)


def test_two_counters_cannot_change_places(file_vault, file):
    with file_vault.book("letters") as book:
        for _ in range(5):
            book.number("many")
        book.number("few")
    connection = sqlite3.connect(file)
    (first, one), (second, two) = connection.execute("SELECT digest, sealed FROM allonym_counters").fetchall()
    connection.execute("UPDATE allonym_counters SET sealed = ? WHERE digest = ?", (two, first))
    connection.execute("UPDATE allonym_counters SET sealed = ? WHERE digest = ?", (one, second))
    connection.commit()
    connection.close()
    with pytest.raises(VaultError), file_vault.book("letters") as book:
        book.number("few")


def find_sealed_bytes(file: Path, data: bytes, table: str) -> list[int]:
    """Return the places of a table's sealed values in a vault's file."""
    connection = sqlite3.connect(file)
    values = [row[0] for row in connection.execute(f"SELECT sealed FROM allonym_{table}")]
    connection.close()
    starts = [(data.index(value), len(value)) for value in values]
    return [place for start, size in starts for place in range(start, start + size)]


def test_flipped_bits_give_an_error_or_what_is_right_and_never_something_else(tmp_path):
    source = tmp_path / "source"
    plan = Plan("0" * 32, (Edit(0, 3, "Emma", "PERSON", 1, "pseudonym@1", "Ada"),), (), "1" * 32)
    with Vault.create(source, SECRET) as vault:
        fill(vault)
        with vault.book("letters") as book:
            book.keep_plan("a", plan, "Emma came to see us.")
        known, numbers = use(vault)
        plans = vault.plans("letters", "a")
        vault.rotate(SECRET)  # empties the journal into the file
    whole = source.read_bytes()
    draw = random.Random(4)

    def is_refused(place: int) -> bool:
        data = bytearray(whole)
        data[place] ^= 1 << draw.randrange(8)
        path = tmp_path / f"v{place}"
        path.write_bytes(data)
        try:
            with Vault.open(path, SECRET) as vault:
                found, got = use(vault)
                kept = vault.plans("letters", "a")
        except VaultError:
            return True
        assert set(found) <= set(known) and set(kept) <= set(plans)
        assert all(a in (b, None) for a, b in zip(got, numbers, strict=True))
        return False

    for table, count in (("known", 20), ("assigned", 20), ("plans", 10)):
        assert all(is_refused(place) for place in draw.sample(find_sealed_bytes(source, whole, table), count))
    used = [i for i, byte in enumerate(whole) if byte]
    assert sum(is_refused(place) for place in draw.sample(used, 120)) > 30


# Silence


CANARY = "Zaphrandel"


def test_a_canary_is_in_no_file_message_or_log_while_and_after_writing(file_vault, file, caplog, tmp_path):
    caplog.set_level(logging.DEBUG)
    told = ""

    def look() -> None:
        for path in file.parent.rglob("*"):
            if path.is_file():
                data = path.read_bytes().lower()
                for form in ("utf-8", "utf-16-le", "utf-16-be"):
                    assert CANARY.lower().encode(form) not in data, path.name

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for i in range(30):
            with file_vault.book(CANARY, f"{CANARY} {i}") as book:
                book.enter(CANARY, f"{CANARY} {i}", f"{i} {CANARY}")
                book.number(CANARY)
                book.remember(*[f"{CANARY} {i}"] * 5)
                look()
                book.flush()
                look()
            look()
        file_vault.record(CANARY, scope=CANARY, actor=CANARY, counts={CANARY: 1})
        file_vault.rotate(SECRET, data=True)
        file_vault.purge(subject=f"{CANARY} 3")
        file_vault.export(tmp_path / "export", SECRET)
        look()
        change(file, SWAP.format(t="known", c="sealed"))
        for call in (
            lambda: file_vault.known(CANARY),
            lambda: file_vault.one(CANARY, f"{CANARY} is nowhere"),
            lambda: file_vault.one(f"{CANARY} is nowhere", CANARY),
            lambda: file_vault.purge(subject=CANARY, expired=True),
            lambda: file_vault.record("x" * 3, scope=f"{CANARY}\ud800", counts={CANARY: object()}),
            lambda: file_vault.import_(file, CANARY * 2),
            lambda: Vault.open(file, CANARY * 2),
        ):
            try:
                call()
            except (AllonymError, TypeError) as error:
                told += "".join(traceback.format_exception_only(error))
    assert told.count("Error") + told.count("WrongKey") + told.count("UnknownToken") >= 5
    assert CANARY not in told
    assert CANARY.lower() not in caplog.text.lower()
    assert not [w for w in caught if CANARY in str(w.message)]
    look()
    (tmp_path / "control").write_text(f"... {CANARY.lower()} ...")
    with pytest.raises(AssertionError):
        look()


def test_errors_of_the_database_are_told_without_what_they_quote(vault):
    import sqlalchemy as sa

    with pytest.raises(VaultError) as caught, vault.book("letters") as book:
        book._connection.execute(sa.text(f"SELECT {CANARY}"))
    assert CANARY not in str(caught.value)
    assert caught.value.__suppress_context__


# Many at once


def test_a_writer_that_waits_too_long_is_told(vault, where):
    with Vault.open(where, SECRET, wait=0.3) as other, vault.book("letters") as book:
        book.number("tag")
        with pytest.raises(VaultLocked), other.book("letters"):
            pass
    with Vault.open(where, SECRET, wait=0.3) as other, other.book("letters") as book:
        assert book.number("tag") == 2


def test_readers_do_not_wait_for_writers(vault, where):
    fill(vault)
    with vault.book("letters") as book, Vault.open(where, SECRET, wait=0.3) as other:
        book.remember("[PERSON_99]", "Ada", "PERSON", "tag@1", "ada")
        book.flush()
        assert len(other.known("letters")) == 40
    assert len(vault.known("letters")) == 41


@pytest.mark.slow
def test_processes_that_write_at_once_or_are_killed_lose_and_mix_up_nothing(tmp_path, request):
    """The benchmark in its short form; on PostgreSQL too where there is a server."""
    command = [sys.executable, str(ROOT / "benchmarks" / "vault.py")]
    server = os.environ.get("ALLONYM_TEST_POSTGRES")
    with request.getfixturevalue("postgres_database")() if server else nullcontext() as url:
        done = subprocess.run(
            [*command, "--writers", "4", "--mappings", "60", "--kills", "2", "--lookups", "200"],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT / "src"),
                "TMPDIR": str(tmp_path),
                "ALLONYM_TEST_POSTGRES": url or "",
            },
        )
    assert done.returncode == 0, done.stderr + done.stdout
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["wrong"] == 0
    assert result["canary"] == {"looks": result["canary"]["looks"], "found": []}
    for name in ("sqlite", "postgresql") if server else ("sqlite",):
        assert result[name]["writers"]["mappings"] == 240
        assert result[name]["writers"]["keys"] == 4 * 30 + 30
        assert result[name]["kills"]["committed"] >= 2


def test_the_write_ahead_log_stays_short_although_somebody_is_always_reading(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "LONG_LOG", 1 << 18)
    file, sizes, has_ended = tmp_path / "v", [], threading.Event()

    def read_on(vault: Vault, turn: threading.Semaphore, next_turn: threading.Semaphore) -> None:
        while not has_ended.is_set():
            with vault._store.open_read_transaction():
                next_turn.release()  # the other begins before this one ends
                turn.acquire(timeout=0.05)

    with Vault.create(file, SECRET) as vault, Vault.open(file, SECRET) as other:
        turns = threading.Semaphore(0), threading.Semaphore(0)
        readers = [threading.Thread(target=read_on, args=(other, *pair)) for pair in (turns, turns[::-1])]
        for reader in readers:
            reader.start()
        for number in range(40):
            fill(vault, scope=f"letters {number}")
            sizes.append((tmp_path / "v-wal").stat().st_size)
        has_ended.set()
        for reader in readers:
            reader.join()
        assert len(vault.known("letters 39")) == 40
    assert max(sizes) < 4 << 18  # 16 million bytes where nobody empties it
