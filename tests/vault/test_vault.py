"""Vaults are made, opened, locked, copied into other processes, and get other secrets."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from allonym.errors import (
    MissingExtra,
    RestoreError,
    UnknownToken,
    UsageError,
    VaultError,
    VaultLocked,
    WrongKey,
)
from allonym.vault import Vault

SECRET = b"a secret only for the tests, 32b"
OTHER = b"another secret for the tests 32b"
PASSPHRASE = "eleven words that nobody would ever guess"


def remember(vault: Vault, *originals: str, scope: str = "letters") -> None:
    with vault.book(scope) as book:
        for original in originals:
            number = book.number("tag")
            book.remember(f"[PERSON_{number}]", original, "PERSON", "tag@1", original.lower())


@pytest.mark.parametrize("secret", [SECRET, PASSPHRASE])
def test_a_vault_opens_with_its_secret_and_no_other(where, secret):
    with Vault.create(where, secret) as made:
        remember(made, "Ada")
        assert made.known("letters")
    with Vault.open(where, secret) as again:
        assert [one.original for one in again.known("letters")] == ["Ada"]
        assert again.operator_key == made.operator_key
    for wrong in (OTHER, PASSPHRASE + "!", secret[1:]):
        with pytest.raises(WrongKey):
            Vault.open(where, wrong)


def test_the_file_is_for_its_owner_alone(file_vault, file):
    remember(file_vault, "Ada")
    for path in file.parent.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name


def test_a_path_may_be_a_str_a_path_or_a_url(tmp_path):
    file = tmp_path / "v"
    with Vault.create(str(file), SECRET) as vault:
        remember(vault, "Ada")
    for where in (file, f"sqlite:///{file}", os.path.relpath(file)):
        with Vault.open(where, SECRET) as vault:
            assert len(vault.known("letters")) == 1
            assert vault.where == str(file)


@pytest.mark.parametrize("where", ["sqlite://", "sqlite:///:memory:", "sqlite:///x?mode=ro", "nosuch://x/y", "://"])
def test_urls_that_cannot_hold_a_vault_are_refused(where):
    with pytest.raises(UsageError):
        Vault.create(where, SECRET)


def test_without_the_driver_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"\[postgres\]"):
        Vault.create("postgresql://user:Zaphrandel@127.0.0.1:1/none", SECRET)


def test_the_password_of_a_url_shows_nowhere():
    pytest.importorskip("psycopg")
    with pytest.raises(VaultError) as caught:
        Vault.open("postgresql://user:Zaphrandel@127.0.0.1:1/none", SECRET)
    assert "Zaphrandel" not in str(caught.value)
    assert "***" in str(caught.value)


def test_a_vault_is_not_made_over_another_nor_over_another_file(where, tmp_path):
    with Vault.create(where, SECRET) as vault:
        remember(vault, "Ada")
        with pytest.raises(VaultError, match="already"):
            Vault.create(where, OTHER)
        assert len(vault.known("letters")) == 1
    letter = tmp_path / "letter.txt"
    letter.write_text("Dear Ada")
    with pytest.raises(VaultError, match="exists already"):
        Vault.create(letter, SECRET)
    assert letter.read_text() == "Dear Ada"


@pytest.mark.parametrize("content", [b"", b"Dear Ada", b"SQLite format 3\0" + bytes(2000)])
def test_what_is_no_vault_is_told(tmp_path, content):
    path = tmp_path / "v"
    path.write_bytes(content)
    with pytest.raises(VaultError):
        Vault.open(path, SECRET)
    assert path.read_bytes() == content


def test_opening_makes_no_file(tmp_path):
    with pytest.raises(VaultError, match="no vault at"):
        Vault.open(tmp_path / "v", SECRET)
    assert list(tmp_path.iterdir()) == []


def test_a_vault_that_cannot_be_made_leaves_no_file(tmp_path, monkeypatch):
    def broken(connection):
        raise RuntimeError

    monkeypatch.setattr("allonym.vault.store.Store.steps", (broken,))
    with pytest.raises(RuntimeError):
        Vault.create(tmp_path / "v", SECRET)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("secret", [b"short", "short", "", None, 7])
def test_a_secret_that_will_not_do_is_refused(tmp_path, secret):
    with pytest.raises(UsageError):
        Vault.create(tmp_path / "v", secret)
    assert list(tmp_path.iterdir()) == []


def test_a_locked_vault_tells_numbers_only(vault, where, tmp_path):
    remember(vault, "Ada", "Bob")
    with Vault.open(where) as locked:
        assert locked.locked
        assert not vault.locked
        info = locked.info()
        (scope,) = info.scopes
        assert scope.known == 2
        assert "letters" not in repr(info)
        calls = [
            lambda: locked.known("letters"),
            lambda: locked.find("letters", "[PERSON_1]"),
            lambda: locked.one("letters", "[PERSON_1]"),
            lambda: locked.book("letters").__enter__(),
            lambda: locked.operator_key,
            lambda: locked.rotate(OTHER),
            lambda: locked.purge(scope="letters"),
            lambda: locked.export(tmp_path / "x", OTHER),
            lambda: locked.import_(tmp_path / "x", OTHER),
            lambda: locked.record("restore"),
            locked.audit,
        ]
        for call in calls:
            with pytest.raises(VaultLocked):
                call()
    assert not (tmp_path / "x").exists()


def test_info_with_the_key_names_the_scopes(vault):
    remember(vault, "Ada", scope="letters")
    with vault.book("calls", "patient 17") as book:
        book.enter("name", "ada", "Eve")
    info = vault.info()
    assert [(s.name, s.known, s.assigned, s.subjects, s.expired) for s in info.scopes] == [
        ("letters", 1, 0, 0, 0),
        ("calls", 0, 1, 1, 0),
    ]
    assert (info.key, info.keep_days, info.schema) == ("random", None, 7)
    assert abs(info.created - datetime.now(UTC)) < timedelta(minutes=5)


def test_a_replacement_is_found_in_other_case_and_without_its_brackets(vault):
    with vault.book("letters") as book:
        book.remember("Zoë Müller", "Ada", "PERSON", "pseudonym@1", "ada")
        book.remember("[PERSON_1]", "Bob", "PERSON", "tag@1", "bob")
    for form in ("Zoë Müller", "zoe\u0308 MU\u0308LLER", "Zoe Muller", "Zoë Müller's"):
        assert [one.original for one in vault.find("letters", form)] == ["Ada"], form
    for form in ("[PERSON_1]", "[person_1]", "PERSON_1"):
        assert [one.original for one in vault.find("letters", form)] == ["Bob"], form
    for form in ("", "PERSON_11", "Zoë", "["):
        assert vault.find("letters", form) == ()


def test_one_is_the_one_or_says_why_not(vault):
    with vault.book("letters") as book:
        book.remember("Eve", "Ada", "PERSON", "pseudonym@1", "ada")
        book.remember("EVE", "ADA", "PERSON", "pseudonym@1", "ada")
        book.remember("Fay", "Bob", "PERSON", "pseudonym@1", "bob")
        book.remember("Fay", "Bobby", "PERSON", "pseudonym@1", "bob")
    assert vault.one("letters", "Eve").original == "Ada"
    assert vault.one("letters", "EVE").original == "ADA"
    with pytest.raises(UnknownToken) as caught:
        vault.one("letters", "Zaphrandel")
    assert "Zaphrandel" not in str(caught.value)
    with pytest.raises(UnknownToken):
        vault.one("other", "Eve")
    with pytest.raises(RestoreError, match="2 originals"):
        vault.one("letters", "Fay")


def test_what_was_read_is_read_again_when_something_changed(vault, where):
    remember(vault, "Ada")
    first = vault.known("letters")
    assert vault.known("letters") is first
    with vault.book("letters") as book:
        book.recall("name", "ada")
    assert vault.known("letters") is first
    with Vault.open(where, SECRET) as other:
        remember(other, "Bob")
    assert {one.original for one in vault.known("letters")} == {"Ada", "Bob"}
    vault.purge(scope="letters")
    remember(vault, "Cyd")
    assert [one.original for one in vault.known("letters")] == ["Cyd"]


# Other processes


def test_a_vault_goes_into_other_processes(vault):
    remember(vault, "Ada")
    copy = pickle.loads(pickle.dumps(vault))
    assert copy.known("letters") == vault.known("letters")
    copy.close()
    for method in ("spawn", "fork"):
        context = multiprocessing.get_context(method)
        with context.Pool(2) as pool:
            pool.starmap(remember, [(vault, f"Person {method} {i}") for i in range(4)])
    originals = {one.original for one in vault.known("letters")}
    assert originals == {"Ada"} | {f"Person {m} {i}" for m in ("spawn", "fork") for i in range(4)}
    assert len({one.replacement for one in vault.known("letters")}) == 9


def test_a_locked_vault_stays_locked_in_other_processes(vault, where):
    with Vault.open(where) as locked, pickle.loads(pickle.dumps(locked)) as copy:
        assert copy.locked


def test_nothing_of_a_vault_shows_in_repr(vault):
    remember(vault, "Zaphrandel")
    shown = repr(vault) + repr(vault.known("letters")) + repr(vault.info()) + repr(vars(vault))
    assert "Zaphrandel" not in shown
    assert vault.operator_key.hex() not in shown
    assert repr(vault.operator_key) not in shown


def test_importing_the_vault_is_cheap_until_it_is_used():
    code = (
        "import sys; from allonym.vault import Known; import allonym.vault;"
        "print(' '.join(m for m in ('sqlalchemy', 'cryptography', 'numpy') if m in sys.modules))"
    )
    src = Path(__file__).resolve().parents[2] / "src"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(src)},
        check=True,
    )
    assert done.stdout.strip() == ""


# Other secrets


@pytest.mark.parametrize("data", [False, True])
def test_after_a_rotation_the_old_secret_opens_nothing_and_all_is_as_before(vault, where, data):
    remember(vault, "Ada", "Bob")
    with vault.book("letters", "patient 17") as book:
        book.enter("name", "ada", "Eve")
    known, key = vault.known("letters"), vault.operator_key
    vault.rotate(PASSPHRASE, data=data, actor="ops")
    with pytest.raises(WrongKey):
        Vault.open(where, SECRET)
    with Vault.open(where, PASSPHRASE) as again:
        for one in (vault, again):
            assert sorted(one.known("letters"), key=repr) == sorted(known, key=repr)
            assert one.operator_key == key
            assert one.info().key == "passphrase"
            with one.book("letters") as book:
                assert book.recall("name", "ada") == "Eve"
                assert book.number("other") > 0
        assert again.audit()[-1].action == "rotate"
        assert again.purge(subject="patient 17").assigned == 0  # others have looked it up since


def test_only_a_new_data_key_shuts_others_out(vault, where):
    remember(vault, "Ada")
    with Vault.open(where, SECRET) as other:
        vault.rotate(OTHER)
        assert len(other.known("letters")) == 1
        remember(other, "Bob")
        vault.rotate(SECRET, data=True)
        for call in (
            lambda: other.find("letters", "[PERSON_1]"),
            lambda: remember(other, "Cyd"),
            lambda: other.rotate(OTHER),
            lambda: other.purge(scope="letters"),
        ):
            with pytest.raises(WrongKey, match="open it again"):
                call()
    assert len(vault.known("letters")) == 2


def test_a_rotation_rewrites_no_value_but_with_a_new_data_key_every_one(file_vault, file):
    import sqlite3

    def sealed() -> dict[str, bytes]:
        with sqlite3.connect(file) as connection:
            rows = connection.execute("SELECT digest, sealed FROM allonym_known").fetchall()
        connection.close()
        return dict(rows)

    remember(file_vault, *(f"Person {i}" for i in range(1200)))
    before = sealed()
    file_vault.rotate(OTHER)
    assert sealed() == before
    file_vault.rotate(OTHER, data=True)
    after = sealed()
    assert set(after) == set(before)
    assert not set(after.values()) & set(before.values())


def test_the_row_that_the_old_secret_opened_is_nowhere_in_the_files(file_vault, file):
    import sqlite3

    with sqlite3.connect(file) as connection:
        (old,) = connection.execute("SELECT value FROM allonym_meta WHERE name = 'data'").fetchone()
    connection.close()
    assert any(old in path.read_bytes() for path in file.parent.iterdir())
    file_vault.rotate(OTHER)
    assert not any(old in path.read_bytes() for path in file.parent.iterdir())


# Expiry


NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


def test_what_has_expired_is_not_there_any_more(vault, clock):
    clock(NOON.timestamp())
    with vault.book("letters", expires=NOON + timedelta(hours=1)) as book:
        book.enter("name", "ada", "Eve")
        book.remember("[PERSON_1]", "Ada", "PERSON", "tag@1", "ada")
    remember(vault, "Bob")
    assert len(vault.known("letters")) == 2
    clock(NOON.timestamp() + 3600)
    assert [one.original for one in vault.known("letters")] == ["Bob"]
    assert [one.original for one in vault.find("letters", "[PERSON_1]")] == ["Bob"]
    assert vault.info().scopes[0].expired == 2
    with vault.book("letters") as book:
        assert book.recall("name", "ada") is None
        assert book.enter("name", "bob", "Eve")
        assert book.enter("name", "ada", "Fay")
        assert not book.enter("name", "cyd", "Eve")
    with vault.book("letters") as book:
        assert (book.recall("name", "ada"), book.recall("name", "bob")) == ("Fay", "Eve")


def test_a_key_whose_value_has_expired_may_get_the_same_again(vault, clock):
    clock(NOON.timestamp())
    with vault.book("letters", expires=NOON + timedelta(hours=1)) as book:
        book.enter("name", "ada", "Eve")
        book.remember("Eve", "Ada", "PERSON", "pseudonym@1", "ada")
    clock(NOON.timestamp() + 7200)
    with vault.book("letters") as book:
        assert book.enter("name", "ada", "Eve")
        book.remember("Eve", "Ada", "PERSON", "pseudonym@1", "ada")
    assert len(vault.known("letters")) == 1
    assert vault.info().scopes[0].expired == 0


def test_use_makes_it_last_longer_and_never_shorter(vault, clock):
    clock(NOON.timestamp())
    for hours in (5, 2):
        with vault.book("letters", expires=NOON + timedelta(hours=hours)) as book:
            assert book.recall("name", "ada") == (None if hours == 5 else "Eve")
            book.enter("name", "ada", "Eve")
            book.remember("Eve", "Ada", "PERSON", "pseudonym@1", "ada")
    clock(NOON.timestamp() + 4 * 3600)
    with vault.book("letters", expires=NOON + timedelta(hours=9)) as book:
        assert book.recall("name", "ada") == "Eve"
        book.remember("Eve", "Ada", "PERSON", "pseudonym@1", "ada")
    clock(NOON.timestamp() + 8 * 3600)
    assert len(vault.known("letters")) == 1
    with vault.book("letters") as book:
        assert book.recall("name", "ada") == "Eve"


def test_a_vault_may_keep_for_so_many_days(where, clock):
    clock(NOON.timestamp())
    with Vault.create(where, SECRET, keep_days=30) as vault:
        assert vault.info().keep_days == 30
        remember(vault, "Ada")
        clock(NOON.timestamp() + 30 * 86400)
        assert len(vault.known("letters")) == 1
        clock(NOON.timestamp() + 31 * 86400)
        assert vault.known("letters") == ()
        assert vault.purge(expired=True).known == 1
        assert vault.info().scopes[0].expired == 0


def test_times_without_a_zone_and_days_below_one_are_refused(file_vault, tmp_path):
    with pytest.raises(UsageError, match="time zone"), file_vault.book("letters", expires=datetime(2024, 1, 1)):
        pass
    with pytest.raises(UsageError, match="keep_days"):
        Vault.create(tmp_path / "w", SECRET, keep_days=0)
