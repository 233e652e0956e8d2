"""What is purged is gone: from look-ups, from tables, from the bytes of the files. What others need stays."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allonym.errors import UsageError, VaultError, VaultLocked
from allonym.vault import Vault, erase

SECRET = b"a secret only for the tests, 32b"


def write(vault: Vault, scope: str, subject: str, *people: str) -> None:
    with vault.book(scope, subject) as book:
        for person in people:
            if book.recall("name", person) is None:
                book.enter("name", person, f"{person} 2")
            book.remember(f"{person} 2", person.title(), "PERSON", "pseudonym@1", person)


def originals(vault: Vault, scope: str) -> set[str]:
    return {one.original for one in vault.known(scope)}


def rows(file) -> set[bytes]:
    """Every digest and ciphertext that the tables hold."""
    out: set[bytes] = set()
    connection = sqlite3.connect(file)
    for table in ("scopes", "subjects", "counters", "assigned", "known", "assigned_subjects", "known_subjects"):
        for row in connection.execute(f"SELECT * FROM allonym_{table}"):
            out.update(v.encode() if isinstance(v, str) else v for v in row if isinstance(v, (str, bytes)))
    connection.close()
    return out


def test_a_subject_is_erased_and_what_others_share_stays(vault):
    write(vault, "letters", "ada", "ada", "bob", "cyd")
    write(vault, "letters", "bob", "bob")
    write(vault, "letters", "", "cyd")
    write(vault, "calls", "ada", "ada")
    done = vault.purge(scope="letters", subject="ada")
    assert (done.known, done.assigned, done.subjects, done.scopes) == (1, 1, 1, 0)
    assert originals(vault, "letters") == {"Bob", "Cyd"}
    assert originals(vault, "calls") == {"Ada"}
    with vault.book("letters") as book:
        assert book.recall("name", "ada") is None
        assert book.recall("name", "bob") == "bob 2"
    assert vault.purge(scope="letters", subject="bob").known == 1
    assert originals(vault, "letters") == {"Cyd"}


def test_a_subject_is_erased_from_all_scopes(vault):
    write(vault, "letters", "ada", "ada")
    write(vault, "calls", "ada", "ada", "bob")
    done = vault.purge(subject="ada")
    assert (done.known, done.subjects) == (3, 2)
    assert originals(vault, "letters") == originals(vault, "calls") == set()
    again = vault.purge(subject="ada")
    assert (again.known, again.assigned, again.subjects) == (0, 0, 0)


def test_a_subject_that_only_looked_something_up_keeps_it_alive(vault):
    write(vault, "letters", "ada", "ada")
    with vault.book("letters", "bob") as book:
        assert book.recall("name", "ada") == "ada 2"
    done = vault.purge(subject="ada")
    assert (done.known, done.assigned) == (1, 0)
    with vault.book("letters") as book:
        assert book.recall("name", "ada") == "ada 2"


def test_one_book_may_be_about_several_subjects(vault):
    with vault.book("letters", "ada") as book:
        book.enter("name", "x", "1")
        book.remember("1", "X", "PERSON", "pseudonym@1", "x")
        book.about("bob")
        assert book.recall("name", "x") == "1"
        book.remember("1", "X", "PERSON", "pseudonym@1", "x")
        book.enter("name", "y", "2")
    done = vault.purge(subject="ada")
    assert (done.known, done.assigned, done.subjects) == (0, 0, 1)
    done = vault.purge(subject="bob")
    assert (done.known, done.assigned, done.subjects) == (1, 2, 1)


def test_a_scope_is_erased_with_its_name_and_numbers(vault):
    write(vault, "letters", "ada", "ada", "bob")
    with vault.book("letters") as book:
        book.number("tag")
    write(vault, "calls", "", "cyd")
    done = vault.purge(scope="letters")
    assert (done.known, done.assigned, done.subjects, done.scopes) == (2, 2, 1, 1)
    assert [one.name for one in vault.info().scopes] == ["calls"]
    assert originals(vault, "letters") == set()
    assert originals(vault, "calls") == {"Cyd"}
    with vault.book("letters") as book:
        assert book.number("tag") == 1


def test_numbers_of_a_subject_that_was_erased_do_not_come_again(vault):
    with vault.book("letters", "ada") as book:
        book.enter("tag", "ada", str(book.number("tag")))
    vault.purge(subject="ada")
    with vault.book("letters") as book:
        assert book.number("tag") == 2


def test_with_what_has_expired_go_the_subjects_that_nothing_is_left_of(vault, clock):
    from datetime import UTC, datetime

    clock(1000)
    for subject in ("ada", "bob"):
        with vault.book("letters", subject, expires=datetime.fromtimestamp(2000, UTC)) as book:
            book.remember(f"{subject} 2", subject, "PERSON", "pseudonym@1", subject)
    write(vault, "letters", "bob", "cyd")
    clock(3000)
    done = vault.purge(expired=True)
    assert (done.known, done.subjects) == (2, 1)
    assert vault.info().scopes[0].subjects == 1
    assert vault.purge(subject="bob").known == 1


def test_purges_say_what_they_looked_into(vault, where):
    write(vault, "letters", "ada", "ada")
    assert vault.purge(subject="ada").checked == ("tables" if "://" in where else "files")


@pytest.mark.parametrize("how", [{"subject": "ada"}, {"scope": "letters"}, {"expired": True}])
def test_no_byte_of_what_was_purged_is_left_in_any_file(file_vault, file, how, clock):
    from datetime import UTC, datetime

    clock(1000)
    write(file_vault, "other", "bob", *(f"person {i}" for i in range(100)))
    stay = rows(file)
    with file_vault.book("letters", "ada", expires=datetime.fromtimestamp(2000, UTC)) as book:
        for i in range(300):
            book.enter("name", f"ada {i}", f"eve {i}")
            book.remember(f"eve {i}", f"ada {i}" * 50, "PERSON", "pseudonym@1", "ada")
    clock(3000)
    goes = rows(file) - stay
    assert len(goes) >= 300 * 5
    done = file_vault.purge(**how)
    assert (done.known, done.checked) == (300, "files")
    goes -= rows(file)
    assert len(goes) >= 300 * 5
    for path in file.parent.iterdir():
        data = path.read_bytes()
        assert not [one for one in goes if one[:24] in data], path.name
        assert not [one for one in goes if one[-24:] in data], path.name
    assert len(file_vault.known("other")) == 100


def test_traces_that_are_left_are_told(file_vault, file, monkeypatch):
    write(file_vault, "letters", "ada", *(f"person {i}" for i in range(200)))
    monkeypatch.setattr(erase, "compact_database", lambda place: None)  # so that the rows stay in the journal
    with pytest.raises(VaultError, match="traces of what was purged are left"):
        file_vault.purge(subject="ada")


def test_while_somebody_reads_the_journal_cannot_be_emptied(file_vault, file):
    write(file_vault, "letters", "ada", "ada")
    reader = sqlite3.connect(file, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM allonym_known").fetchone()
    with Vault.open(file, SECRET, wait=0.2) as impatient, pytest.raises(VaultLocked):
        impatient.purge(subject="ada")
    reader.close()
    assert originals(file_vault, "letters") == set()
    assert file_vault.purge(subject="ada").checked == "files"


@pytest.mark.parametrize("how", [{}, {"subject": ""}, {"subject": "ada", "expired": True}])
def test_a_purge_without_a_target_is_refused(file_vault, how):
    with pytest.raises(UsageError):
        file_vault.purge(**how)


MARKS = st.lists(st.binary(min_size=8, max_size=24), max_size=6)


@given(st.binary(max_size=200), MARKS, st.integers(0, 30), st.integers(9, 64))
def test_traces_are_found_wherever_they_begin(noise, marks, at, piece):
    import tempfile
    from pathlib import Path
    from unittest import mock

    data = noise[:at] + b"".join(marks) + noise[at:]
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(erase, "_PIECE", piece):
        path = Path(folder) / "data"
        path.write_bytes(data)
        found = erase.count_marks_in_file(path, marks)
    assert found == sum(any(data.startswith(mark, i) for mark in marks) for i in range(len(data)))
