import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allonym.replace.cast import ATTEMPTS, Ledger, count_offline_entities, find_plain_words, format_offline_remark

KEY = b"k" * 64


def ledger(text: str = "", key: bytes = KEY, book=None, places=()):
    remarks: list[str] = []
    return Ledger(text, key, book, remarks, places), remarks


POOL = tuple(f"Name{c}{d}" for c in "abcdefghij" for d in "klmnopqrst")


def test_the_first_choice_is_a_function_of_key_kind_and_entity():
    first, _ = ledger("some text")
    second, _ = ledger("another text", book=None)
    chosen = first.pick(POOL, "city", "rome")
    assert chosen == second.pick(POOL, "city", "rome")
    assert len({first.pick(POOL, "city", f"town {i}") for i in range(50)}) > 25
    other, _ = ledger(key=b"o" * 64)
    assert [other.draw_number("city", str(i)) for i in range(5)] != [
        first.draw_number("city", str(i)) for i in range(5)
    ]


def test_a_value_is_kept_and_given_once():
    book, remarks = ledger("nothing of it")
    names = iter(["Maple Hill", "Maple Hill", "Oak Hill", "Elm Wood"])
    first = book.assign("city", "a", lambda _: next(names))
    assert (first, book.assign("city", "a", lambda _: pytest.fail("asked again"))) == ("Maple Hill", "Maple Hill")
    # "Hill" belongs to the first already, as does the whole.
    assert book.assign("city", "b", lambda _: next(names)) == "Elm Wood"
    assert len(remarks) == 1 and "Elm" not in remarks[0] and "city" in remarks[0]


@pytest.mark.parametrize("word", ["Adama", "Adamem", "ADAMOWI", "Adams"])
def test_a_value_is_not_drawn_where_a_form_of_it_stays_in_the_text(word):
    text = f"Widziałem {word} wczoraj."
    start = text.index(word)
    staying, _ = ledger(text)
    replaced, _ = ledger(text, places=((start, start + len(word)),))
    small, _ = ledger(text.lower())
    pool = ("Adam", "Igor")
    values = [book.assign("given name", "a", pool.__getitem__) for book in (staying, replaced, small)]
    assert values == ["Igor", "Adam", "Adam"]


def test_telling_words_alone_must_differ():
    book, _ = ledger("the University of Nowhere")
    proposed = iter(["University of Nowhere", "University of Elm", "University of Oak"])
    last = lambda value: value.split()[-1]  # noqa: E731
    assert book.assign("university", "a", lambda _: next(proposed), telling=last) == "University of Elm"
    assert book.assign("university", "b", lambda _: next(proposed), telling=last) == "University of Oak"


@pytest.mark.parametrize("text", ["we met MAPLE there", "Mäple", "l'maple", "maple-tree"])
def test_a_word_of_the_document_is_never_given(text):
    book, _ = ledger(text)
    assert book.assign("city", "a", lambda n: ["Maple", "Elmwood"][n]) == "Elmwood"


def test_nothing_is_given_when_nothing_fits():
    book, _ = ledger("maple")
    assert book.assign("city", "a", lambda n: "Maple") is None
    assert book.assign("city", "b", lambda n: None) is None
    asked = []
    book.assign("city", "c", lambda n: asked.append(n) or "maple")
    assert asked == list(range(ATTEMPTS))


def test_words_are_folded():
    assert find_plain_words("Jean-Luc O’Neill, Łódź 12") == ("jean", "luc", "o", "neill", "lodz", "12")


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=60), st.lists(st.text(max_size=8), max_size=5, unique=True))
def test_values_share_no_word_with_the_document_or_each_other(text, keys):
    book, _ = ledger(text)
    given_out = [book.assign("city", k, lambda n, k=k: book.pick(POOL, "city", k, n)) for k in keys]
    seen = [w for v in given_out if v is not None for w in find_plain_words(v)]
    assert len(seen) == len(set(seen))
    assert not set(seen) & set(find_plain_words(text))


def test_the_remark_of_a_model_that_failed_is_read():
    remarks = ["llm: 2 requests", format_offline_remark("llm", 12, 40, "llm: 7 of 9 no"), "x"]
    assert remarks[1] == "llm: 12 of 40 entities got an offline pseudonym (llm: 7 of 9 no)"
    assert count_offline_entities([*remarks, format_offline_remark("seq2seq", 3, 5)]) == 15
    assert count_offline_entities([]) == count_offline_entities(["5 of 9 entities got an offline pseudonym"]) == 0
