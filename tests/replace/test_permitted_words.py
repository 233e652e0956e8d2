"""Which words may stay in a time, an age or a form of address."""

import pytest
from tests.replace.pseudonyms import play
from tests.rows import check_each_row

import allonym
from allonym.replace.pseudonym import has_only_time_words, is_permitted_age, is_permitted_time, is_permitted_title

TIMES = ("half past five", "5:30 pm EST", "10:15 Uhr", "12 godzin", "two weeks", "w zeszłym roku", "vor drei Jahren")
TIMES += ("il y a deux ans", "hace tres semanas", "6 and a half years", "północ", "2020年5月", "from 9 to 5 o'clock")
AGES = ("her 40th birthday", "45-year-old", "in her late thirties", "34 lata", "50 Jahre alt", "aged forty-two")
TITLES = ("Dr.", "Dr. med.", "Vice President", "Ph.D.", "Herr", "Mr. and Mrs.", "the Rev.")


@check_each_row("text", TIMES)
def test_words_of_time_may_stay(text):
    assert has_only_time_words(text) and is_permitted_time(text)
    assert not has_only_time_words(f"{text} Connor")


@pytest.mark.parametrize("text", AGES)
def test_words_of_age_may_stay(text):
    assert is_permitted_age(text)
    assert not is_permitted_age(f"Sarah's {text}")


@pytest.mark.parametrize("text", TITLES)
def test_forms_of_address_may_stay(text):
    assert is_permitted_title(text)
    assert not is_permitted_title(f"{text} Connor")


def test_numbers_that_are_longer_than_those_of_times_may_not_stay():
    assert not is_permitted_time("0781120 pm") and not is_permitted_time("4111 1111 1111 1111")
    assert is_permitted_time("from 10:15 to 11:45")
    assert not is_permitted_age("40 in 1980")


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("AGE", "sarah's 40th birthday"),
        ("TIME", "the year connor died"),
        ("TIME", "5:30 pm Kate"),
        ("DURATION", "the year connor died"),
        ("DATE", "last connor week"),
        ("TITLE", "Sarah"),
    ],
)
def test_what_holds_another_word_becomes_a_tag(label, text):
    assert play(f"She said {{{text}|{label}}}.") == f"She said [{label}_1]."


@pytest.mark.parametrize(("label", "text"), [("TIME", "noon"), ("DATE", "yesterday"), ("TITLE", "Dr.")])
def test_what_tells_nothing_stays(label, text):
    assert play(f"She said {{{text}|{label}}}.") == f"She said {text}."


def test_what_stays_is_no_edit():
    text = "She called Jane Doe yesterday, and again on 3 May 2021."
    outcome = allonym.anonymize(text, "pseudonyms", key=b"a key of the tests, 32 bytes long")
    plan = outcome.plan
    assert "yesterday" in outcome.text and allonym.restore(outcome.text, plan=plan).text == text
    assert plan.edits and not [edit for edit in plan.edits if edit.replacement == text[edit.start : edit.end]]
