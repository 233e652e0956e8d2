"""A vault that was written when folding left ``ł`` as it is still knows its people."""

from __future__ import annotations

import pytest

from allonym.document import Document, Span
from allonym.link import link
from allonym.policy import Policy
from allonym.replace import make_plan
from allonym.replace.cast import CorpusBook
from allonym.replace.compose import BookView, map_words_to_older_forms


@pytest.mark.parametrize(
    ("name", "kind", "older"),
    [("Łukasz", "given name", "łukasz"), ("Łukaszewska", "family name", "łukaszewski")],
)
def test_older_keys_are_recalled(name: str, kind: str, older: str) -> None:
    book = CorpusBook()
    book.enter(kind, older, "Xaver")
    pages = BookView(book, older=map_words_to_older_forms(f"{name} left."))
    key = older.replace("ł", "l")
    assert pages.recall(kind, key) == "Xaver" and pages.recall(kind, "lucas") is None
    pages.enter(kind, key, "Yorick")
    assert book.recall(kind, key) == "Yorick" and pages.recall(kind, key) == "Yorick"


def test_a_number_stays_and_both_spellings_have_it() -> None:
    book = CorpusBook()
    policy = Policy(name="tags", default=Policy.load("default").default)
    document = Document("1", "Yesterday Łukasz Nowak left.")
    linked = link(document, [Span(10, 22, "PERSON")])
    kind = "tag [PERSON_0]"
    book.enter(kind, "PERSON:łukasz nowak", "7")
    assert make_plan(document, linked, policy, book=book).edits[0].replacement == "[PERSON_7]"


def test_a_text_without_such_letters_has_no_older_words() -> None:
    assert map_words_to_older_forms("Zoë Müller") == {}
