"""Pseudonyms of nationalities, beliefs, languages, occupations, events: same kind, same form, or a tag."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.replace.pseudonyms import KEY, kb, play

from allonym.replace.tables import list_words, read_toml
from allonym.text.names import normalize_surface

OTHER = b"another key for the tests 32 byte"
NATIONS = [i for i in kb().pool("nationality") if i.country and not i.region and ("en", "plural") in kb().labels(i)]


@given(st.sampled_from(NATIONS), st.sampled_from(("adjective", "noun", "plural")))
def test_nationalities_keep_their_form(item, form):
    surface = kb().labels(item)["en", form]
    out = play(f"{{{surface}|NATIONALITY}}")
    assert normalize_surface(out) != normalize_surface(surface)
    if out.startswith("["):
        return
    # A word may be adjective, noun and plural at once; then any form of the other is right that is that of the first.
    forms = {f for (language, f), text in kb().labels(item).items() if language == "en" and text == surface}
    got = {
        f
        for i in kb().find(out, ("nationality",))
        for (lang, f), text in kb().labels(i).items()
        if lang == "en" and text == out
    }
    assert forms & got


@given(st.sampled_from(NATIONS))
@example(next(i for i in NATIONS if i.country == "BN"))  # to New Zealand, but so would its people
def test_a_nationality_goes_where_its_country_goes(item):
    country = kb().related(item, "country")[0]
    adjective = kb().labels(item)["en", "adjective"]
    name, _, nation = play(f"{{{country.label}|COUNTRY}} / {{{adjective}|NATIONALITY}}").partition(" / ")
    assert "[" not in name + nation
    code = kb().find(name, ("country",))[0].country
    assert code in {i.country for i in kb().find(nation, ("nationality",))}


def test_a_nationality_goes_where_its_country_goes_or_is_a_tag():
    text = "{Spain|COUNTRY} {Spanish|NATIONALITY}"
    assert play(text, {"country": "NZ"}) == "New Zealand [NATIONALITY_1]"
    country, nation = play(text).split()
    text = f"{text}, {nation} wine"  # no other's, but it stands there
    other, people, *_ = play(text).replace(",", "").split(" ")
    assert "[" not in people and people != nation and other != country
    code = kb().find(other, ("country",))[0].country
    assert code in {i.country for i in kb().find(people, ("nationality",))}


def test_alone_and_beside_the_country_it_is_the_same():
    for key in (KEY, OTHER):
        alone = play("{Spanish|NATIONALITY}", key=key)
        assert play("{Spain|COUNTRY}: {Spanish|NATIONALITY}", key=key).endswith(f": {alone}")


OCCUPATIONS = [i.label for i in kb().pool("occupation") if re.fullmatch(r"[a-z]+", i.label)]


@given(st.sampled_from(OCCUPATIONS))
def test_occupations_keep_number_rank_and_letters(name):
    one = play(f"{{{name}|OCCUPATION}}")
    assert normalize_surface(name) not in normalize_surface(one).split() or one.startswith("[")
    if one.startswith("["):
        return
    assert play(f"{{senior {name}|OCCUPATION}}") == f"senior {one}"
    assert play(f"{{{name.upper()}|OCCUPATION}}") in (one.upper(), one)
    assert play(f"{{a {name}|OCCUPATION}}").split(" ", 1)[1] == one


def test_what_is_unknown_gets_a_tag():
    assert play("{Zyx|RELIGION}") == "[RELIGION_1]"


def test_what_is_unknown_becomes_another_of_its_kind_where_its_label_has_one():
    for key in (KEY, OTHER):
        assert kb().find(play("{Frobnicator 3000|PRODUCT}", key=key), ("product",))
        assert kb().find(play("{Qwx|LANGUAGE}", key=key), ("language",))
        general = list_words("general", "OCCUPATION", file="ordinary.toml")
        assert play("{frobnicator|OCCUPATION}", key=key) in general
        assert play("{Senior Frobnicator|OCCUPATION}", key=key).lower() in general


def test_offices_stay_chief():
    for short in ("CEO", "CFO", "CTO", "C.E.O.", "ceo"):
        out = play(f"{{{short}|OCCUPATION}}")
        assert out != short and re.fullmatch(r"C\.[A-Z]\.O\.|C[A-Z]O|c[a-z]o", out)
    out = play("{chief executive officer|OCCUPATION}, {Chief Executive Officer|OCCUPATION}")
    low, _, high = out.partition(", ")
    assert re.fullmatch(r"chief [a-z]+ officer", low) and high.lower() == low


def test_language_follows_or_is_a_tag():
    for key in (KEY, OTHER):
        country, _, language = play("{Italy|COUNTRY}, {Italian|LANGUAGE}", key=key).partition(", ")
        item = kb().find(country, ("country",))[0]
        first = kb().related(item, "language")[0].label
        assert language == first or first.startswith(language), (country, language)


def test_places_in_events_and_laws_follow():
    event, _, city = play("{Boston Marathon|EVENT}, {Boston|CITY}", keep=("COUNTRY",)).partition(", ")
    assert event == f"{city} Marathon"
    assert kb().find(play("{2012 London Frobnication|EVENT}"), ("event",))


@pytest.mark.parametrize("key", [KEY, OTHER])
def test_a_nationality_is_adjective_or_noun_as_it_stands(key):
    for before, after, form in (("a ", ".", "noun"), ("the ", " voted", ""), ("the ", ", too", "plural")):
        out = play(f"{before}{{German|NATIONALITY}}{after} {{Germany|COUNTRY}}", key=key)
        country = kb().find(out.rpartition(" ")[2], ("country",))[0].country
        people = next(i for i in kb().pool("nationality", country=country) if not i.region)
        labels = kb().labels(people)
        wanted = labels["en", "noun" if form == "noun" else "adjective"]  # "German" is no plural
        assert re.sub(r"^(?:an?|the) ", "", out).startswith(wanted + after), (out, form)


def test_the_dutch_are_several():
    for key in (KEY, OTHER):
        out = play("They met the {Dutch|NATIONALITY}, too. {Netherlands|COUNTRY}", key=key)
        country = kb().find(out.rpartition(". ")[2].removeprefix("the "), ("country",))[0].country
        people = next(i for i in kb().pool("nationality", country=country) if not i.region)
        assert out.startswith(f"They met the {kb().labels(people)['en', 'plural']}, too.")


@pytest.mark.parametrize("key", [KEY, OTHER])
def test_a_language_that_was_taken_for_a_nationality(key):
    text = "{Spain|COUNTRY}. She teaches {Spanish|NATIONALITY} and speaks {Spanish|NATIONALITY}."
    out = play(text, key=key)
    assert out == play(text.replace("NATIONALITY", "LANGUAGE"), key=key)
    assert "[" not in out


@pytest.mark.parametrize("key", [KEY, OTHER])
def test_peoples_of_one_country_are_kept_apart(key):
    out = play("{British|NATIONALITY} {Scottish|NATIONALITY} {Scots|NATIONALITY} {UK|COUNTRY}", key=key)
    assert "[" not in out
    british, scottish, *_ = out.split()
    assert british != scottish


@pytest.mark.parametrize("key", [KEY, OTHER])
def test_what_follows_of_is_no_occupation(key):
    out = play("{student of law|OCCUPATION}, {Director of Finance|OCCUPATION}", key=key)
    assert "[" not in out and "law" not in out and "Finance" not in out


@pytest.mark.parametrize("group", list(read_toml()["descents"].values()), ids=lambda group: group[0])
def test_a_descent_becomes_another_of_its_sort(group):
    for name in group:
        new = (
            play(f"It was a {{{name}|ORIGIN}} man.")
            .removeprefix("It was a")
            .removeprefix("n")
            .removesuffix(" man.")
            .strip()
        )
        assert new in group and new != name
