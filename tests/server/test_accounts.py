"""Users, sessions, keys, links and the audit log, on SQLite and on PostgreSQL where one is at hand."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("argon2")

import sqlalchemy as sa
from argon2 import PasswordHasher

from allonym.errors import DatabaseError, RequestError, UnknownNameError, UsageError
from allonym.server import accounts as module
from allonym.server import database as database_module
from allonym.server.access import ROLES, Caller
from allonym.server.accounts import Accounts
from allonym.server.database import Database, Sealing
from allonym.server.guard import RateLimiter

PASSWORD = "a password only for tests"


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a database can be made."""
    if request.param == "sqlite":
        yield str(tmp_path_factory.mktemp("accounts") / "server.sqlite")
        return
    with request.getfixturevalue("postgres_database")() as url:
        yield url


@pytest.fixture(scope="module")
def place(where: str) -> Iterator[Database]:
    made = Database(where)
    made.create_or_migrate()
    yield made
    made.close()


@pytest.fixture
def accounts(place: Database) -> Accounts:
    return Accounts(place, session_seconds=3600, idle_seconds=600)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Moves the clock of the accounts by seconds; what is remembered for moments is then forgotten."""
    moved = [0]
    now = database_module.get_unix_time
    monkeypatch.setattr(module, "get_unix_time", lambda: now() + moved[0])

    def by(seconds: int) -> None:
        moved[0] += seconds
        monkeypatch.setattr(module, "_CACHE_SECONDS", 0.0)

    monkeypatch.setattr(module, "_CACHE_SECONDS", 0.0)
    return by


def made(accounts: Accounts, role: str = "annotator") -> Caller:
    """A new user."""
    name = f"user {uuid.uuid4().hex[:8]}"
    accounts.make_account(accounts.make_account_link(role)[0], name, PASSWORD)
    found = accounts.find_caller(accounts.sign_in(name, PASSWORD), is_key=False)
    assert found
    return found


def test_passwords_are_hashed_by_argon2_at_its_recommended_cost(place, monkeypatch):
    monkeypatch.setattr(module, "PasswordHasher", PasswordHasher)  # the real cost, which other tests lower
    costly = Accounts(place, session_seconds=3600, idle_seconds=600)
    name = f"costly {uuid.uuid4().hex[:8]}"
    costly.make_account(costly.make_account_link("reviewer")[0], name, PASSWORD)
    assert costly._unused_hash.startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    (stored,) = place.fetch_first_row(
        sa.select(database_module.users.c.password).where(database_module.users.c.name == name)
    )
    assert stored.startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    assert costly.sign_in(name, PASSWORD)


def test_a_link_works_once(accounts, clock):
    token, _ = accounts.make_account_link("reviewer")
    name = f"once {uuid.uuid4().hex[:8]}"
    assert accounts.make_account(token, name, PASSWORD).role == "reviewer"
    for wrong in (token, "", "x", token + "x"):
        with pytest.raises(RequestError, match="link") as caught:
            accounts.make_account(wrong, "another", PASSWORD)
        assert caught.value.status == 403
    late, _ = accounts.make_account_link("reviewer")
    clock(25 * 3600)
    with pytest.raises(RequestError, match="expired"):
        accounts.make_account(late, "another", PASSWORD)


def test_a_number_does_not_come_again(accounts):
    """Jobs are owned by it."""
    who = made(accounts)
    assert accounts.remove_user(who.name) == who.id
    assert made(accounts).id > who.id


@pytest.mark.parametrize("name", [".", "..", "a/b", " a", "", "Ada (key ci)", "open", "a\nb"])
def test_names_that_an_address_or_the_log_would_take_for_another(accounts, name):
    with pytest.raises(UsageError, match="name of a user"):
        accounts.make_account(accounts.make_account_link("annotator")[0], name, PASSWORD)


def test_who_is_removed_meanwhile_gets_neither_session_nor_key(accounts, monkeypatch):
    who = made(accounts)
    fits, changed = accounts._verify_password, []

    def changing(hashed, password):
        if not changed:
            changed.append(1)
            accounts.change_own_password(who, PASSWORD, PASSWORD + "!")
        return fits(hashed, password)

    monkeypatch.setattr(accounts, "_verify_password", changing)
    with pytest.raises(RequestError, match="wrong"):
        accounts.sign_in(who.name, PASSWORD)
    accounts.remove_user(who.name)
    with pytest.raises(RequestError, match="no such user"):
        accounts.make_api_key(who, "late", ["detect"], None)


def test_a_link_whose_name_is_taken_works_on(accounts):
    who = made(accounts)
    token, _ = accounts.make_account_link("annotator")
    with pytest.raises(RequestError) as caught:
        accounts.make_account(token, who.name, PASSWORD)
    assert caught.value.status == 409
    assert accounts.make_account(token, f"{who.name} 2", PASSWORD)


def test_a_link_makes_one_account_however_many_come_at_once(accounts):
    token, _ = accounts.make_account_link("annotator")
    told: list[str] = []
    ready = threading.Barrier(4)

    def enter(n: int) -> None:
        ready.wait()
        try:
            told.append(accounts.make_account(token, f"racer {n} {token[:8]}", PASSWORD).name)
        except (RequestError, DatabaseError) as error:
            told.append(type(error).__name__)

    threads = [threading.Thread(target=enter, args=(n,)) for n in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len([one for one in told if one.startswith("racer")]) == 1, told


@pytest.mark.parametrize("name", ["", " x", "x ", "a/b", "a\nb", "a\0b", "x" * 65, "\ud800"])
def test_names_that_will_not_do(accounts, name):
    token, _ = accounts.make_account_link("annotator")
    with pytest.raises(UsageError):
        accounts.make_account(token, name, PASSWORD)
    with pytest.raises(RequestError) as caught:
        accounts.sign_in(name, PASSWORD)
    assert caught.value.status == 401
    for act in (accounts.remove_user, lambda n: accounts.change_user(n, active=False)):
        with pytest.raises(RequestError) as caught:
            act(name)
        assert caught.value.status == 404
    with pytest.raises(RequestError) as caught:
        accounts.remove_api_key(made(accounts), name)
    assert caught.value.status == 404


@pytest.mark.parametrize("password", ["", "x" * 11, "x" * 1025])
def test_passwords_that_will_not_do(accounts, password):
    with pytest.raises(UsageError, match="password"):
        accounts.make_account(accounts.make_account_link("annotator")[0], "somebody", password)


def test_a_wrong_password_says_no_more_than_a_wrong_name(accounts):
    who = made(accounts)
    told = []
    for name, password in ((who.name, "wrong" * 4), ("nobody", PASSWORD), (who.name, ""), (who.name, "x" * 5000)):
        with pytest.raises(RequestError) as caught:
            accounts.sign_in(name, password)
        told.append((str(caught.value), caught.value.status, caught.value.code))
    assert len(set(told)) == 1


def test_sessions_expire(accounts, clock):
    who = made(accounts)
    token = accounts.sign_in(who.name, PASSWORD)
    for _ in range(5):
        clock(500)
        assert accounts.find_caller(token, is_key=False)
    clock(650)
    assert accounts.find_caller(token, is_key=False) is None  # idle
    token = accounts.sign_in(who.name, PASSWORD)
    for _ in range(8):
        clock(450)
        kept = accounts.find_caller(token, is_key=False)
    assert kept is None  # an hour has passed


def test_keys_expire(accounts, clock):
    who = made(accounts)
    short, key = accounts.make_api_key(who, "short", ["detect"], 1)
    long, _ = accounts.make_api_key(who, "long", ["detect", "anonymize"], None)
    assert key.expires and accounts.find_caller(short, is_key=True).permissions == {"detect"}
    clock(86_401)
    assert accounts.find_caller(short, is_key=True) is None and accounts.find_caller(long, is_key=True).key == "long"
    assert {(k.name, k.owner) for k in accounts.list_api_keys(who)} == {("short", who.name), ("long", who.name)}
    with pytest.raises(RequestError) as caught:
        accounts.make_api_key(who, "long", ["detect"], None)
    assert caught.value.status == 409
    with pytest.raises(UsageError):
        accounts.make_api_key(who, "none", [], None)


def test_a_new_password_ends_all_sessions(accounts):
    who = made(accounts)
    tokens = [accounts.sign_in(who.name, PASSWORD) for _ in range(2)]
    with pytest.raises(RequestError):
        accounts.change_own_password(who, "wrong" * 4, "another password")
    accounts.change_own_password(who, PASSWORD, "another password")
    assert [accounts.find_caller(token, is_key=False) for token in tokens] == [None, None]
    assert accounts.sign_in(who.name, "another password")


def test_what_was_read_before_somebody_was_shut_out_is_not_remembered(accounts, monkeypatch):
    """A request that looks a key up while it is being removed must not bring it back for seconds."""
    who = made(accounts)
    token, _ = accounts.make_api_key(who, "racing", ["detect"], None)
    remember = accounts._cache_caller

    def late(code: str, value: Any, changes: int) -> None:
        accounts.remove_api_key(who, "racing")
        remember(code, value, changes)

    monkeypatch.setattr(accounts, "_cache_caller", late)
    accounts.find_caller(token, is_key=True)
    monkeypatch.setattr(accounts, "_cache_caller", remember)
    assert accounts.find_caller(token, is_key=True) is None


def test_the_last_admin_stays(place, accounts):
    for one in accounts.list_users():
        if one.role == "admin":
            raise AssertionError("another test made an admin")
    first = made(accounts, "admin")
    for act in (
        lambda: accounts.remove_user(first.name),
        lambda: accounts.change_user(first.name, role="annotator"),
        lambda: accounts.change_user(first.name, active=False),
    ):
        with pytest.raises(RequestError) as caught:
            act()
        assert (caught.value.status, caught.value.code) == (409, "LastAdmin")
    second = made(accounts, "admin")
    told: list[str] = []
    ready = threading.Barrier(2)

    def step_down(name: str) -> None:
        ready.wait()
        try:
            accounts.change_user(name, role="annotator")
            told.append("done")
        except (RequestError, DatabaseError):
            told.append("refused")

    threads = [threading.Thread(target=step_down, args=(one.name,)) for one in (first, second)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sum(one.role == "admin" and one.active for one in accounts.list_users()) >= 1, told
    with pytest.raises(UnknownNameError):
        accounts.change_user(first.name, role="king")
    for one in accounts.list_users():
        if one.role == "admin":  # for the other tests of this module
            with place.open_write_transaction() as connection:
                connection.execute(database_module.users.delete().where(database_module.users.c.name == one.name))


def test_the_audit_log_takes_the_longest_names(accounts):
    who = Caller(1, "n" * 64, "admin", frozenset(ROLES["admin"]), "k" * 64)
    accounts.record_action(who, f"user changed: {'x' * 64}", {"restored": 2})
    entry = accounts.list_audit_lines(limit=1)[0]
    assert entry.actor == f"{'n' * 64} (key {'k' * 64})" and entry.counts == {"restored": 2}
    accounts.record_action("server", "started")
    assert [e.action for e in accounts.list_audit_lines(before_number=entry.number + 1, limit=1)] == [entry.action]


def test_nothing_that_lets_in_is_stored_as_it_is(place, accounts):
    who = made(accounts)
    tokens = [accounts.sign_in(who.name, PASSWORD), accounts.make_api_key(who, "k", ["detect"], None)[0]]
    tokens.append(accounts.make_account_link("annotator")[0])
    with place.open_read_transaction() as connection:
        rows = [
            str(tuple(row))
            for one in database_module.account_tables.sorted_tables
            for row in connection.execute(one.select()).all()
        ]
    assert len(rows) > 3 and not [row for row in rows if any(t in row for t in (*tokens, PASSWORD))]


def test_two_servers_begin_at_once(where):
    failed: list[BaseException] = []

    def begin() -> None:
        one = Database(where)
        try:
            one.create_or_migrate()
        except BaseException as error:  # whatever it is, the test tells it
            failed.append(error)
        finally:
            one.close()

    threads = [threading.Thread(target=begin) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not failed


# Sealing, and the limits of guard


def test_sealed_texts_open_only_where_they_belong():
    one, other = Sealing(b"a secret for the tests, 32 bytes"), Sealing(b"another secret for tests, 32 byt")
    sealed = one.seal("Ada Brook \ud800", "column")
    assert b"Ada" not in sealed and one.unseal(sealed, "column") == "Ada Brook \ud800"
    assert sealed != one.seal("Ada Brook \ud800", "column")
    for place, about, content in (
        (one, "another", sealed),
        (other, "column", sealed),
        (one, "column", sealed[:-1] + bytes([sealed[-1] ^ 1])),
        (one, "column", b""),
        (one, "column", sealed[:10]),
    ):
        with pytest.raises(DatabaseError, match="does not open"):
            place.unseal(content, about)
    assert one.make_lookup_digest("a", "b") == one.make_lookup_digest("a", "b") != other.make_lookup_digest("a", "b")
    assert one.make_lookup_digest("ab", "") != one.make_lookup_digest("a", "b")
    assert "secret" not in repr(one)
    assert Sealing("a passphrase of some words").unseal(Sealing("a passphrase of some words").seal("x")) == "x"


def test_a_bucket_fills_again(monkeypatch):
    moment = [0.0]
    monkeypatch.setattr("allonym.server.guard.time", type("clock", (), {"monotonic": staticmethod(lambda: moment[0])}))
    rate = RateLimiter(2.0, 4.0)
    assert [rate.take_token("a") for _ in range(5)] == [True] * 4 + [False]
    assert rate.take_token("b")
    moment[0] = 0.5
    assert [rate.take_token("a") for _ in range(2)] == [True, False]
    rate.take_token("a", -1)
    assert rate.take_token("a", 0) and rate.take_token("a") and not rate.take_token("a", 0)
    moment[0] = 1000.0
    assert [rate.take_token("a") for _ in range(5)].count(True) == 4
    assert all(RateLimiter(0.0, 1.0).take_token("a") for _ in range(50))
    for n in range(20_000):
        rate.take_token(str(n))
    assert len(rate._buckets) <= 10_000
