"""Unlabelled text teaches which words are no names, and says nothing about the others."""

from __future__ import annotations

from allonym.train.corpus import make_training_lists
from allonym.train.examples import ALL, BEGIN, Lists, O
from allonym.train.ordinary import find_ordinary_words, make_ordinary_example

ORDINARY = frozenset("the cough complaint history of patient was stable today".split())


def list_words_outside(text: str, ordinary: frozenset[str] = ORDINARY) -> list[str]:
    example = make_ordinary_example({"id": "1", "text": text}, "test", ordinary)
    return [word for word, mask in zip(example.words, example.allowed, strict=True) if mask != ALL]


def test_small_letters_are_no_name_and_capitals_say_nothing() -> None:
    text = "Today the amoxicillin helped, declared Whitlow from that clinic near Elmford, although nobody complained."
    assert list_words_outside(text) == (
        "Today the amoxicillin helped declared clinic although nobody complained".split()
    )


def test_words_that_join_two_names_may_be_part_of_one() -> None:
    text = "We sailed along the coast to the Isle of Whitmere, where nothing grows but heather."
    assert "of" not in list_words_outside(text)


def test_text_in_small_letters_alone_proves_only_ordinary_words() -> None:
    assert list_words_outside("the patient whitlow was stable today in elmford and went home") == (
        "the patient was stable today".split()
    )


def test_headings_in_capitals_and_sentence_starts_are_ordinary_words() -> None:
    text = "COMPLAINT: a dry cough for weeks. Patient was stable. HISTORY of nothing else at all."
    outside = list_words_outside(text)
    assert {"COMPLAINT", "Patient", "HISTORY"} <= set(outside)
    assert "Patient" not in list_words_outside("we spoke about Patient Whitlow and about the cough again today")


def test_addresses_of_mail_say_nothing() -> None:
    outside = list_words_outside("Please write to the patient at whitlow@example.org today, thank you very much.")
    assert "whitlow" not in outside and "example" not in outside


def test_occupations_and_dates_stay_open() -> None:
    example = make_ordinary_example(
        {"id": "1", "text": "The plumber came on monday, and all was well again."}, "t", ORDINARY
    )
    mask = example.allowed[example.words.index("plumber")]
    assert mask & O and mask & BEGIN["OCCUPATION"] and not mask & BEGIN["PERSON_LASTNAME"]


def test_ordinary_words_are_frequent_small_and_no_names() -> None:
    sentences = ["We met the rose grower at the old mill, and Mill Lane was closed for the whole of the day."] * 20
    words = find_ordinary_words(sentences, Lists(first=frozenset({"rose"})))
    assert {"the", "grower", "closed"} <= words
    assert not {"rose", "mill", "lane"} & words


def test_names_of_the_training_lists_are_never_ordinary() -> None:
    lists = make_training_lists()
    name = sorted(n for n in lists.first if n.isalpha() and len(n) > 3)[0]
    texts = [f"We asked for {name} and for the bread in the shop of Whitlow, then we went home."] * 20
    assert name not in find_ordinary_words(texts, lists)
