"""A book does what a dictionary would, in one transaction, for one scope."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from allonym.errors import UsageError
from allonym.protocol import Book as Protocol
from allonym.vault import Vault

SECRET = b"a secret only for the tests, 32b"
ODD = ["", "x", "Ada Brook", "ada brook", "Zoë", "Zoe\u0308", "\ud83d\ude00", "\U0001f600", "\0", "a\0", "'); DROP"]


def entered(vault: Vault, scope: str, *rows: tuple[str, str, str]) -> list[bool]:
    with vault.book(scope) as book:
        return [book.enter(*row) for row in rows]


def test_a_book_is_what_the_planner_asks_for(vault):
    def planner(book: Protocol) -> int:
        return book.number("tag")

    with vault.book("letters") as book:
        assert planner(book) == 1


def test_what_is_entered_is_recalled_in_the_same_and_in_later_transactions(vault):
    with vault.book("letters") as book:
        assert book.recall("name", "ada") is None
        assert book.enter("name", "ada", "Eve")
        assert book.recall("name", "ada") == "Eve"
    with vault.book("letters") as book:
        assert book.recall("name", "ada") == "Eve"
        assert book.recall("name", "bob") is None
        assert book.recall("city", "ada") is None


def test_no_two_keys_of_a_kind_share_a_value(vault):
    rows = [("name", "ada", "Eve"), ("name", "bob", "Eve"), ("name", "ada", "Eve"), ("name", "ada", "Fay")]
    assert entered(vault, "letters", *rows, ("city", "bob", "Eve")) == [True, False, True, False, True]
    assert entered(vault, "letters", ("name", "bob", "Eve"), ("name", "bob", "Fay")) == [False, True]


def test_values_and_keys_differ_by_every_character(vault):
    with vault.book("letters") as book:
        for i, key in enumerate(ODD):
            assert book.enter("name", key, f"value {i}")
            assert book.enter("other", str(i), key)
    with vault.book("letters") as book:
        assert [book.recall("name", key) for key in ODD] == [f"value {i}" for i in range(len(ODD))]
        assert [book.recall("other", str(i)) for i in range(len(ODD))] == ODD


def test_no_number_comes_twice(vault):
    with vault.book("letters") as book:
        assert [book.number("a"), book.number("a"), book.number("b")] == [1, 2, 1]
    with vault.book("letters") as book:
        assert [book.number("a"), book.number("b"), book.number("c")] == [3, 2, 1]


def test_a_scope_knows_nothing_of_another(vault):
    for scope in ("letters", "Letters", "", "letters\0", "let", "ters"):
        with vault.book(scope) as book:
            assert book.number("tag") == 1
            assert book.recall("name", "ada") is None
            assert book.enter("name", "ada", "Eve")
            book.remember("[PERSON_1]", f"Ada of {scope}", "PERSON", "tag@1", "ada")
    assert [one.original for one in vault.known("letters")] == ["Ada of letters"]
    assert [one.original for one in vault.find("", "[PERSON_1]")] == ["Ada of "]
    assert vault.known("nothing") == ()


def test_what_raises_leaves_nothing(vault):
    def failing() -> None:
        with vault.book("letters") as book:
            book.number("tag")
            book.enter("name", "ada", "Eve")
            book.remember("[PERSON_1]", "Ada", "PERSON", "tag@1", "ada")
            book.flush()
            raise RuntimeError("later")

    with pytest.raises(RuntimeError, match="later"):
        failing()
    assert vault.known("letters") == ()
    assert vault.info().scopes == ()
    with vault.book("letters") as book:
        assert book.number("tag") == 1
        assert book.recall("name", "ada") is None


def test_a_book_that_is_closed_says_so_and_takes_nothing(vault):
    with vault.book("letters") as book:
        book.enter("name", "ada", "Eve")
    for call in (
        lambda: book.recall("name", "ada"),
        lambda: book.enter("name", "bob", "Fay"),
        lambda: book.number("tag"),
        lambda: book.remember("Eve", "Ada", "PERSON", "pseudonym@1", "ada"),
    ):
        with pytest.raises(UsageError, match="transaction is over"):
            call()


def test_the_same_original_is_kept_once_and_two_originals_both(vault):
    for _ in range(2):
        with vault.book("letters") as book:
            for original in ("Ada", "Ada Brook", "Ada"):
                book.remember("[PERSON_1]", original, "PERSON", "tag@1", "ada brook")
    assert sorted(one.original for one in vault.known("letters")) == ["Ada", "Ada Brook"]
    assert len(vault.find("letters", "[PERSON_1]")) == 2


def test_everything_about_an_original_is_kept(vault):
    with vault.book("letters") as book:
        book.remember("Eve", "Ada\ud800", "PERSON", "pseudonym@1", "ada brook")
    (one,) = vault.known("letters")
    assert (one.replacement, one.original, one.label, one.operator, one.entity) == (
        *("Eve", "Ada\ud800", "PERSON", "pseudonym@1"),
        "ada brook",
    )
    assert "Ada" not in repr(one)
    assert "Eve" not in repr(one)
    assert "ada brook" not in repr(one)


@pytest.mark.parametrize("size", [0, 1, 31, 32, 33, 100_000, 1_000_000])
def test_values_may_be_of_any_size(file_vault, size):
    text = "é" * size
    with file_vault.book("letters") as book:
        book.remember(text, text + "!", "PERSON", "tag@1", text)
        assert book.enter("name", text, text)
    with file_vault.book("letters") as book:
        assert book.recall("name", text) == text
    assert file_vault.find("letters", text)[0].original == text + "!"


def test_a_book_serves_many_documents(vault, monkeypatch):
    monkeypatch.setattr("allonym.vault.book._MANY", 300)
    with vault.book("letters") as book:
        for i in range(1000):
            assert book.enter("name", f"key {i}", f"value {i}")
            book.remember(f"[PERSON_{i}]", f"Person {i}", "PERSON", "tag@1", f"key {i}")
        assert book.recall("name", "key 0") == "value 0"
        assert not book.enter("name", "another", "value 1")
    assert len(vault.known("letters")) == 1000
    assert vault.find("letters", "[PERSON_999]")[0].original == "Person 999"


class Books(RuleBasedStateMachine):
    """Against a dictionary, with transactions that are kept or undone."""

    keys = Bundle("keys")
    text = st.text(st.characters(), max_size=3)

    @initialize()
    def make(self):
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        self.vault = Vault.create(f"{self.folder.name}/v", SECRET)
        self.kept = ({}, {}, set())

    @rule(
        scope=st.sampled_from(["a", "b"]),
        keep=st.booleans(),
        flush=st.booleans(),
        subject=st.sampled_from(["", "one"]),
        calls=st.lists(
            st.one_of(
                st.tuples(st.just("recall"), st.sampled_from("kl"), text),
                st.tuples(st.just("enter"), st.sampled_from("kl"), text, text),
                st.tuples(st.just("number"), st.sampled_from("kl")),
                st.tuples(st.just("remember"), text, text, st.just("PERSON"), st.just("tag@1"), text),
            ),
            max_size=12,
        ),
    )
    def transaction(self, scope, keep, flush, subject, calls):
        values, numbers, known = dict(self.kept[0]), dict(self.kept[1]), set(self.kept[2])
        try:
            with self.vault.book(scope, subject) as book:
                for name, *given in calls:
                    got = getattr(book, name)(*given)
                    if name == "recall":
                        assert got == values.get((scope, *given))
                    elif name == "number":
                        numbers[scope, given[0]] = numbers.get((scope, given[0]), 0) + 1
                        assert got == numbers[scope, given[0]]
                    elif name == "remember":
                        known.add((scope, *given))
                    else:
                        kind, key, value = given
                        holder = {v: k for (s, kd, k), v in values.items() if (s, kd) == (scope, kind)}.get(value)
                        right = values.get((scope, kind, key), value) == value and holder in (None, key)
                        assert got == right
                        if right:
                            values[scope, kind, key] = value
                    if flush:
                        book.flush()
                if not keep:
                    raise KeyError
        except KeyError:
            return
        self.kept = (values, numbers, known)

    @rule(scope=st.sampled_from(["a", "b"]))
    def read(self, scope):
        held = {(o.replacement, o.original, o.label, o.operator, o.entity) for o in self.vault.known(scope)}
        assert held == {row[1:] for row in self.kept[2] if row[0] == scope}
        for replacement in {row[0] for row in held}:
            found = {o.original for o in self.vault.find(scope, replacement) if o.replacement == replacement}
            assert found == {row[1] for row in held if row[0] == replacement}

    def teardown(self):
        if hasattr(self, "vault"):
            self.vault.close()
            self.folder.cleanup()


def test_a_book_behaves_as_a_dictionary_does():
    run_state_machine_as_test(
        Books,
        settings=settings(
            max_examples=25, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
