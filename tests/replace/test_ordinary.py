"""Ordinary words that are taken for names: they are covered, never by a name or a firm, and not by a tag."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.replace.pseudonyms import KEY, kb, play

from allonym.detection.words import read_ordinary_words
from allonym.replace.ordinary import is_ordinary_text
from allonym.replace.tables import list_words, read_toml
from allonym.replace.wording import list_noun_singulars

LISTS = [row.split("|") for row in read_toml("ordinary.toml")["lists"]]
OURS = {w for row in LISTS for phrase in row for w in re.findall(r"[\w-]+", phrase.lower())}
GENERAL = [w for n in read_toml("ordinary.toml")["general"] for w in list_words("general", n, file="ordinary.toml")]
OURS |= {w for phrase in GENERAL for w in phrase.split()}
WORDS = sorted(w for w in read_ordinary_words() if len(w) > 4)[::40]
LABELS = ("PERSON", "ORGANIZATION", "LOCATION", "FACILITY", "CITY", "OCCUPATION", "PRODUCT")


@given(st.sampled_from(WORDS), st.sampled_from(LABELS))
def test_an_ordinary_word_becomes_no_name(word, label):
    out = play(f"She saw the {{{word}|{label}}} there.")[12:-7]
    assert out != word and out.islower() and not out.startswith("[")
    if label != "OCCUPATION":
        assert all({w, *list_noun_singulars(w)} & (OURS | {word}) for w in re.findall(r"[\w-]+", out))


@pytest.mark.parametrize("key", [KEY, KEY[::-1]])
@pytest.mark.parametrize("row", [row for row in LISTS if len(row) > 2], ids=lambda row: row[0])
def test_a_word_of_a_list_becomes_another_of_it(row, key):
    word = row[0]
    out = play(f"at {{{word}|ORGANIZATION}}.", key=key)[3:-1]
    assert out != word and (out in row or out.lower() in OURS)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("the {ward 7B|OCCUPATION}", r"the (?!ward)[a-z]+ (?!7B)\d[A-Z]"),
        ("{loading bay 2|FACILITY}", r"loading (?!bay)[a-z]+ [013-9]"),
        ("{Police|OCCUPATION} came", r"(?!Police)[A-Z][a-z ]+ came"),
        ("the {High Court|ORGANIZATION}", r"the (?!High Court)(?:Supreme Court|Crown Court|Court of Appeal|High \w+)"),
        ("two {bakeries|ORGANIZATION}", r"two (?!bakeries)[a-z' ]+s"),
        ("her {sister-in-law|OCCUPATION}", r"her (?:sister|stepsister|half-sister|cousin)"),
        ("version {4|LAW}.2", r"version [0-35-9]\.2"),
        ("no. {0388|DATE}", r"no\. (?!0388)\d{4}"),
        ("{child's name|PERSON}:", r"[a-z ]+:"),
        ("{///filled.count.soap|LOCATION_COORDINATES}", r"\[LOCATION_COORDINATES_1\]"),
        ("{He|ORGANIZATION}", r"\[ORGANIZATION_1\]"),
        ("{a lot of connor|OCCUPATION}", r"(?!.*connor)[a-z ]+"),
    ],
)
def test_phrases_and_codes(text, want):
    assert re.fullmatch(want, play(text))


@pytest.mark.parametrize(("union", "rep"), [("Unison", "union rep"), ("GMB", "shop steward"), ("RMT", "union member")])
def test_a_union_and_its_reps_become_others_in_words(union, rep):
    out = play(f"She was a {{{rep}|TRADE_UNION}} of {{{union}|TRADE_UNION}}.")
    assert "[" not in out and union not in out and rep not in out
    assert out.removesuffix(".").split(" of ")[1] in list_words("general", "TRADE_UNION", file="ordinary.toml")


def test_names_in_small_letters_stay_names():
    assert not is_ordinary_text("toby marsh") and not is_ordinary_text("rose") and not is_ordinary_text("london")
    given_name, family = play("{toby marsh|PERSON} left").split()[:2]
    assert kb().name_facts(given_name) and kb().name_facts(family)


def test_one_word_gets_one_substitute_and_two_words_two():
    out = play("the {bakery|ORGANIZATION}, the {grocery|ORGANIZATION}, our {bakery|ORGANIZATION}")
    first, second, third = (part.split(" ", 1)[1] for part in out.split(", "))
    assert first == third != second


@given(st.text("0123456789aB -./", min_size=1, max_size=6), st.sampled_from(LABELS))
def test_any_code_is_covered(text, label):
    out = play(f"about {{{text}|{label}}}, 1 2 3 4 5 6 7 8 9")
    assert out != f"about {text}, 1 2 3 4 5 6 7 8 9" or not any(map(str.isalnum, text))


def test_a_first_word_is_no_person():
    out = play("{Customer|PERSON}: hello\n{Customer|PERSON}: bye").split("\n")
    assert [line.split(": ")[0] for line in out] == [out[0].split(": ")[0]] * 2
    assert not kb().name_facts(out[0].split(": ")[0]) and not out[0].startswith(("[", "Customer"))
