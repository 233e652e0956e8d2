"""The audit log tells who did what, nothing of any content, and every change to it is seen."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime

import pytest

from allonym.errors import VaultError
from allonym.vault import Vault

SECRET = b"a secret only for the tests, 32b"


def fill(vault: Vault) -> None:
    with vault.book("letters", "ada") as book:
        book.remember("[PERSON_1]", "Ada", "PERSON", "tag@1", "ada")
    for i in range(5):
        vault.record("restore", scope="letters", actor=f"user {i}", counts={"restored": i, "unknown": 0})


def test_each_line_says_when_who_what_and_how_many(vault, clock, monkeypatch):
    monkeypatch.setattr("allonym.vault.audit.time.time", lambda: 1_714_564_800)
    fill(vault)
    lines = vault.audit()
    assert [one.number for one in lines] == [1, 2, 3, 4, 5, 6]
    assert [one.action for one in lines] == ["create"] + ["restore"] * 5
    last = lines[-1]
    assert (last.scope, last.actor, last.counts) == ("letters", "user 4", {"restored": 4, "unknown": 0})
    assert last.time == datetime(2024, 5, 1, 12, tzinfo=UTC)
    assert len(vault.audit()) == 6


def test_a_scope_that_is_gone_has_no_name_in_the_log(vault):
    fill(vault)
    vault.purge(scope="letters", actor="ops")
    lines = vault.audit()
    assert lines[-1].action == "purge"
    assert lines[-1].counts == {"known": 1, "subjects": 1, "scopes": 1}
    assert not [one for one in lines if "letters" in one.scope]
    assert len({one.scope for one in lines[1:]}) == 1


def test_the_log_holds_no_content(vault):
    with vault.book("letters", "Zaphrandel") as book:
        book.remember("Zaphrandel", "Zaphrandel", "PERSON", "tag@1", "Zaphrandel")
    vault.purge(subject="Zaphrandel")
    assert "Zaphrandel" not in repr(vault.audit())


def test_the_database_refuses_to_change_the_log(vault, where):
    import sqlalchemy as sa

    from allonym.vault.store import Store

    fill(vault)
    place = Store(where)
    for statement in ("DELETE FROM allonym_audit", "UPDATE allonym_audit SET number = number + 10"):
        with pytest.raises(VaultError), place.open_write_transaction() as connection:
            connection.execute(sa.text(statement))
    place.close()
    assert len(vault.audit()) == 6


def tampered(file, *statements: str) -> None:
    connection = sqlite3.connect(file)
    for verb in ("update", "delete"):
        connection.execute(f"DROP TRIGGER IF EXISTS allonym_audit_no_{verb}")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    "statements",
    [
        ["DELETE FROM allonym_audit"],
        ["DELETE FROM allonym_audit", "UPDATE allonym_meta SET value = x'' WHERE name = 'audit'"],
        ["DELETE FROM allonym_audit WHERE number = 6"],
        ["DELETE FROM allonym_audit WHERE number = 3"],
        ["DELETE FROM allonym_audit WHERE number = 1"],
        ["DELETE FROM allonym_audit WHERE number = 3", "UPDATE allonym_audit SET number = number - 1 WHERE number > 3"],
        ["UPDATE allonym_audit SET sealed = (SELECT sealed FROM allonym_audit WHERE number = 4) WHERE number = 3"],
        ["UPDATE allonym_audit SET mac = (SELECT mac FROM allonym_audit WHERE number = 4) WHERE number = 3"],
        [
            "UPDATE allonym_audit SET number = 99 WHERE number = 3",
            "UPDATE allonym_audit SET number = 3 WHERE number = 4",
            "UPDATE allonym_audit SET number = 4 WHERE number = 99",
        ],
        ["INSERT INTO allonym_audit SELECT 7, sealed, mac FROM allonym_audit WHERE number = 6"],
        ["UPDATE allonym_meta SET value = zeroblob(72) WHERE name = 'audit'"],
        ["DELETE FROM allonym_meta WHERE name = 'audit'"],
        ["UPDATE allonym_audit SET sealed = 'text' WHERE number = 2"],
    ],
)
def test_every_change_without_the_key_is_seen(file_vault, file, statements):
    fill(file_vault)
    assert len(file_vault.audit()) == 6
    tampered(file, *statements)
    with pytest.raises(VaultError, match="audit log"):
        len(file_vault.audit())


def test_a_log_that_was_cut_off_is_seen_though_its_end_fits(file_vault, file):
    """Who has no key can put the last line that is left into the log's end, but cannot make the end's own MAC."""
    fill(file_vault)
    connection = sqlite3.connect(file)
    (mac,) = connection.execute("SELECT mac FROM allonym_audit WHERE number = 5").fetchone()
    (end,) = connection.execute("SELECT value FROM allonym_meta WHERE name = 'audit'").fetchone()
    connection.close()
    for own_mac in (end[-32:], mac, bytes(32)):
        forged = ((5).to_bytes(8) + mac + own_mac).hex()
        tampered(
            file,
            "DELETE FROM allonym_audit WHERE number = 6",
            f"UPDATE allonym_meta SET value = x'{forged}' WHERE name = 'audit'",
        )
        with pytest.raises(VaultError, match="end of the audit log was changed"):
            file_vault.audit()
        with pytest.raises(VaultError, match="end of the audit log was changed"):
            file_vault.record("restore", counts={"restored": 1})


def test_the_log_goes_on_under_another_data_key(file_vault):
    fill(file_vault)
    file_vault.rotate(SECRET, data=True)
    file_vault.record("restore", counts={"restored": 1})
    assert len(file_vault.audit()) == 8
