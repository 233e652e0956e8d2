"""What one vault exports another imports: all of it, or nothing."""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta

import pytest

from allonym.errors import UsageError, VaultError, WrongKey
from allonym.vault import Vault

SECRET = b"a secret only for the tests, 32b"
OTHER = b"another secret for the tests 32b"
ODD = ["", "Ada", "\ud83d\ude00", "\U0001f600", "a\0b", "x" * 200_000]


@pytest.fixture
def second(tmp_path):
    with Vault.create(tmp_path / "second", OTHER) as made:
        yield made


def fill(vault: Vault) -> None:
    with vault.book("letters", "ada") as book:
        book.enter("tag", "ada", str(book.number("tag")))
        book.enter("tag", "bob", str(book.number("tag")))
        for text in ODD:
            book.enter("name", text, text)
            book.remember(text, text, "PERSON", "pseudonym@1", text)
    with vault.book("letters", "bob") as book:
        book.recall("tag", "bob")
        book.remember("Ada", "Ada", "PERSON", "pseudonym@1", "Ada")
    with vault.book("calls") as book:
        for i in range(700):
            book.remember(f"[PERSON_{i}]", f"Person {i}", "PERSON", "tag@1", f"person {i}")


def content(vault: Vault, *scopes: str) -> object:
    def row(one):
        return one.replacement, one.original, one.label, one.operator, one.entity

    out = []
    for scope in scopes:
        out.append(sorted(map(row, vault.known(scope))))
        with vault.book(scope) as book:
            out.append([book.recall("name", text) for text in ODD])
            out.append([book.recall("tag", key) for key in ("ada", "bob", "cyd")])
    return out


def test_everything_comes_over(vault, second, tmp_path):
    fill(vault)
    count = vault.export(tmp_path / "x", SECRET, actor="ops")
    assert count == 2 + len(ODD) * 2 + 700
    done = second.import_(tmp_path / "x", SECRET, actor="ops")
    assert (done.scopes, done.known, done.assigned) == (2, len(ODD) + 700, len(ODD) + 2)
    assert (done.same, done.conflicts, done.ambiguous, done.operator_key) == (0, 0, 0, True)
    assert content(second, "letters", "calls") == content(vault, "letters", "calls")
    assert second.operator_key == vault.operator_key
    with Vault.open(second.where, OTHER) as again:
        assert again.operator_key == vault.operator_key
    with second.book("letters") as book:
        assert book.number("tag") == 3
    assert [one.action for one in second.audit()] == ["create", "import"]
    assert vault.audit()[-1].counts == {"rows": count}


def test_subjects_come_over_too(file_vault, second, tmp_path):
    fill(file_vault)
    file_vault.export(tmp_path / "x", SECRET)
    second.import_(tmp_path / "x", SECRET)
    assert second.purge(subject="ada") == file_vault.purge(subject="ada")
    assert {one.original for one in second.known("letters")} == {"Ada"}
    with second.book("letters") as book:
        assert (book.recall("tag", "ada"), book.recall("tag", "bob")) == (None, "2")


def test_an_import_twice_changes_nothing(file_vault, second, tmp_path):
    fill(file_vault)
    count = file_vault.export(tmp_path / "x", SECRET)
    second.import_(tmp_path / "x", SECRET)
    before = content(second, "letters", "calls")
    again = second.import_(tmp_path / "x", SECRET)
    assert (again.known, again.assigned, again.same, again.conflicts) == (0, 0, count, 0)
    assert not again.operator_key
    assert content(second, "letters", "calls") == before


def test_conflicts_are_counted_and_what_was_here_stays(file_vault, second, tmp_path):
    for vault, people in ((file_vault, ("ada", "bob")), (second, ("bob", "cyd"))):
        with vault.book("letters") as book:
            for person in people:
                number = str(book.number("tag"))
                book.enter("tag", person, number)
                book.remember(f"[PERSON_{number}]", person.title(), "PERSON", "tag@1", person)
    key = second.operator_key
    file_vault.export(tmp_path / "x", SECRET)
    done = second.import_(tmp_path / "x", SECRET)
    # ada has 1 there, which is bob's here; bob has 2 there and 1 here
    assert (done.known, done.assigned, done.conflicts, done.ambiguous) == (2, 0, 2, 2)
    assert second.operator_key == key
    with second.book("letters") as book:
        assert [book.recall("tag", p) for p in ("ada", "bob", "cyd")] == [None, "1", "2"]
        assert book.number("tag") == 3
    assert {one.original for one in second.find("letters", "[PERSON_1]")} == {"Ada", "Bob"}


def test_scopes_that_get_another_name_do_not_meet(file_vault, second, tmp_path):
    for vault, person in ((file_vault, "Ada"), (second, "Bob")):
        with vault.book("letters") as book:
            book.remember(f"[PERSON_{book.number('tag')}]", person, "PERSON", "tag@1", person)
    file_vault.export(tmp_path / "x", SECRET)
    with pytest.raises(UsageError, match="no scope 'nothing' to rename; it has: 'letters'"):
        second.import_(tmp_path / "x", SECRET, rename={"letters": "old letters", "nothing": "x"})
    assert [one.name for one in second.info().scopes] == ["letters"]
    done = second.import_(tmp_path / "x", SECRET, rename={"letters": "old letters"})
    assert (done.known, done.conflicts, done.ambiguous) == (1, 0, 0)
    assert second.one("old letters", "[PERSON_1]").original == "Ada"
    assert second.one("letters", "[PERSON_1]").original == "Bob"


def test_expiry_comes_over_and_what_has_expired_does_not(file_vault, second, tmp_path, clock):
    start = datetime(2024, 5, 1, tzinfo=UTC)
    clock(start.timestamp())
    for hours, person in ((1, "Ada"), (5, "Bob"), (9, "Cyd")):
        with file_vault.book("letters", expires=start + timedelta(hours=hours)) as book:
            book.enter("name", person, person)
            book.remember(person, person, "PERSON", "tag@1", person)
    clock(start.timestamp() + 2 * 3600)
    assert file_vault.export(tmp_path / "x", SECRET) == 4
    clock(start.timestamp() + 6 * 3600)
    done = second.import_(tmp_path / "x", SECRET)
    assert (done.known, done.assigned) == (1, 1)
    clock(start.timestamp() + 9 * 3600)
    assert second.known("letters") == ()
    assert second.info().scopes[0].expired == 2


def test_another_secret_does_not_open_it(file_vault, second, tmp_path):
    fill(file_vault)
    for secret in (SECRET, "eleven words that nobody would ever guess"):
        file_vault.export(tmp_path / "x", secret, overwrite=True)
        for wrong in (OTHER, "another passphrase of many words"):
            with pytest.raises(WrongKey):
                second.import_(tmp_path / "x", wrong)
        assert second.info().scopes == ()
    second.import_(tmp_path / "x", secret)


def test_every_change_and_every_cut_is_seen_and_nothing_is_half_imported(file_vault, second, tmp_path):
    fill(file_vault)
    path = tmp_path / "x"
    file_vault.export(path, SECRET)
    whole = path.read_bytes()
    assert len(whole) > 3 * (1 << 16)  # several pieces
    step = len(whole) // 60
    head = whole.index(b"}\n") + 2
    first = head + 4 + int.from_bytes(whole[head : head + 4])
    broken = [
        whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :] for i in (*range(0, head, 7), *range(0, len(whole), step))
    ]
    broken += [whole[:i] for i in (0, 5, head, first, len(whole) - 1, *range(0, len(whole), step))]
    broken += [whole + b"\0", whole + whole[head:first], whole[:head] + whole[first:], whole[:first] + whole[head:]]
    for i, data in enumerate(broken):
        path.write_bytes(data)
        with pytest.raises(VaultError):
            second.import_(path, SECRET)
        assert second.info().scopes == (), i
    path.write_bytes(whole)
    second.import_(path, SECRET)
    assert [one.action for one in second.audit()] == ["create", "import"]


def test_an_export_is_for_its_owner_alone_appears_whole_and_replaces_nothing_unasked(file_vault, tmp_path, monkeypatch):
    fill(file_vault)
    path = tmp_path / "x"
    path.write_bytes(b"something of value")
    with pytest.raises(UsageError, match="exists"):
        file_vault.export(path, SECRET)

    def fails(*_):
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr("allonym.vault.transfer._iterate_unexpired_rows", fails)
        with pytest.raises(RuntimeError):
            file_vault.export(path, SECRET, overwrite=True)
    assert path.read_bytes() == b"something of value"
    assert not (tmp_path / "x.part").exists()
    file_vault.export(path, SECRET, overwrite=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not (tmp_path / "x.part").exists()


def test_an_export_shows_nothing(file_vault, tmp_path):
    with file_vault.book("Zaphrandel", "Zaphrandel") as book:
        book.enter("Zaphrandel", "Zaphrandel", "Zaphrandel")
        book.remember(*["Zaphrandel"] * 5)
    path = tmp_path / "x"
    file_vault.export(path, SECRET)
    assert b"zaphrandel" not in path.read_bytes().lower()
    assert file_vault.operator_key.hex().encode() not in path.read_bytes()


def test_a_short_secret_is_refused(file_vault, tmp_path):
    with pytest.raises(UsageError):
        file_vault.export(tmp_path / "x", "short")
    assert not (tmp_path / "x").exists()
