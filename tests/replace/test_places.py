"""Pseudonyms of places, organizations and things: same kind, same country, consistent, keyed."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.replace.pseudonyms import KEY, MARK, kb, play

from allonym.replace.tables import read_word_set
from allonym.text.names import normalize_surface

KEYS = [KEY, b"another key for the tests 32 byte", b"a third key for the tests, 32 byt"]


def check(case, out):
    """What is wrong with an output; groups of the pattern are named after kind, country and region of what they match."""
    match = re.fullmatch(case["want"], out)
    if match is None:
        return f"does not match {case['want']}"
    groups = {n: v for n, v in match.groupdict().items() if v is not None}
    items = {}
    for name, text in groups.items():
        kind, *where = name.split("_")
        where = [w for w in where if not w.isdigit()]
        if kind == "capital":
            items[kind] = [
                c
                for i in kb().find(text, ("city",))
                for c in kb().related(i, "country")
                if i in kb().related(c, "capital")
            ]
        elif kind in ("city", "region", "country"):
            code = where[0] if where and where[0].isupper() else ""
            items[kind] = [
                i for i in kb().find(text, (kind,), code) if len(where) < 2 or not code or i.region == where[1]
            ]
            if "article" in where or "bare" in where:
                takes = items[kind] and items[kind][0].country in read_word_set("places", "article")
                if takes != ("article" in where):
                    return f"article of {text}"
        else:
            continue
        if not items[kind]:
            return f"{text} is no {name}"
    if "capital" in items and not {i.country for i in items["capital"]} & {i.country for i in items["country"]}:
        return "the capital of another country"
    if case.get("within"):
        outer = items.get("region") or items["country"]
        if not any(c.country == o.country and o.region in ("", c.region) for c in items["city"] for o in outer):
            return "the city lies elsewhere"
    return ""


@pytest.mark.parametrize("key", KEYS)
def test_cases(cases, key):
    failed = []
    for case in cases("pseudonyms_places"):
        out = play(case["text"], case.get("options"), case.get("keep", ()), key, case.get("language", "en"))
        if problem := check(case, out):
            failed.append((case["case"], out, problem))
    assert not failed, "\n".join(map(str, failed))


@pytest.mark.parametrize("key", KEYS)
def test_no_telling_word_survives(cases, key):
    generic = (
        read_word_set("places", "generic")
        | read_word_set("organisations", "generic")
        | read_word_set("organisations", "legal")
    )
    generic |= {w for part in ("before", "first", "last") for w in read_word_set("places", "words", part)}
    generic |= read_word_set("streets", "en", "last") | read_word_set("units", "words")
    failed = []
    for case in cases("pseudonyms_places"):
        out = play(case["text"], case.get("options"), case.get("keep", ()), key, case.get("language", "en"))
        there = {normalize_surface(w) for w in re.findall(r"[^\W\d_]{4,}", out)}
        for text, label in MARK.findall(case["text"]):
            kept = label in case.get("keep", ())
            for word in re.findall(r"[^\W\d_]{4,}", text):
                if not kept and normalize_surface(word) in there - generic - SORTS:
                    failed.append((case["case"], out, word))
    assert not failed, "\n".join(map(str, failed))


SORTS = set("avda senior calle nasdaq bridge marathon treaty officer chief ulica".split())


def cities(country, size):
    return [c.label for c in kb().pool("city", country=country) if c.size >= size]


@given(st.sampled_from(cities("FR", 5) + cities("US", 5)))
def test_a_city_stays_in_its_country_and_size(city):
    source = kb().find(city, ("city",))[0]
    out = play(f"in {{{city}|CITY}}", keep=("COUNTRY",)).removeprefix("in ")
    assert normalize_surface(out) != normalize_surface(city)
    found = kb().find(out, ("city",), source.country)
    assert any(abs(i.size - source.size) <= 1 for i in found)


@given(st.lists(st.sampled_from(cities("DE", 5)), min_size=2, max_size=6, unique=True))
def test_two_cities_never_become_one(names):
    out = play("; ".join(f"{{{n}|CITY}}" for n in names), keep=("COUNTRY",)).split("; ")
    assert len(set(out)) == len(names)
    assert not set(map(normalize_surface, out)) & set(map(normalize_surface, names))


@given(st.sampled_from(cities("PL", 5)), st.sampled_from(("It rains in {}.", "{} is large, they say; {} is old.")))
def test_a_city_is_one_in_all_documents_of_a_scope(city, text):
    mark = f"{{{city}|CITY}}"
    first = play(mark)
    assert set(re.split(r" is large, they say; |It rains in | is old\.|\.", play(text.replace("{}", mark)))) - {""} == {
        first
    }


def test_scope_and_key_decide():
    texts = [
        "{Lyon|CITY}",
        "{12 Main Street|STREET_ADDRESS}",
        "{Zentrix Foundation|ORGANIZATION}",
        "{SW1A 1AA|UK_POSTCODE}",
    ]
    for text in texts:
        seen = {play(text, key=key, scope=scope) for key in KEYS for scope in ("", "second", "third")}
        assert len(seen) > 3, text


def test_places_leave_their_country_only_where_it_is_named():
    for key in KEYS:
        code = kb().find(play("{Spain|COUNTRY}", key=key), ("country",))[0].country
        assert code != "ES"
        assert kb().find(play("{Seville|CITY} in {Spain|COUNTRY}", key=key).split(" in ")[0], ("city",), code)
        assert kb().find(play("{Seville|CITY} and {Spanish|NATIONALITY}", key=key).split(" and ")[0], ("city",), code)
        assert kb().find(play("{Seville|CITY} and {Rome|CITY}", key=key).split(" and ")[0], ("city",), "ES")


def test_towns_leave_their_region_only_where_it_is_named():
    for key in KEYS:
        assert any(c.region == "TX" for c in kb().find(play("{Houston|CITY}", key=key), ("city",), "US"))
        city, state = play("{Houston|CITY} in {Texas|REGION}", key=key).split(" in ")
        region = kb().find(state, ("region",), "US")[0].region
        assert region != "TX" and any(c.region == region for c in kb().find(city, ("city",), "US"))


def test_a_country_on_stage_plays_no_other():
    for key in KEYS:
        first = play("{Spain|COUNTRY}", key=key)
        capital = kb().related(kb().find(first, ("country",))[0], "capital")[0].label
        out = play(f"{{Spain|COUNTRY}} {{{capital}|CITY}}", key=key)
        assert not out.startswith(first)


class Book:
    """What a vault keeps of one scope."""

    unit = ""

    def __init__(self):
        self.given, self.counts = {}, {}

    def recall(self, kind, key):
        return self.given.get((kind, key))

    def enter(self, kind, key, value):
        if value in [v for (k, _), v in self.given.items() if k == kind]:
            return False
        self.given[kind, key] = value
        return True

    def number(self, kind):
        self.counts[kind] = self.counts.get(kind, 0) + 1
        return self.counts[kind]

    def remember(self, replacement, original, label, operator, entity):
        pass


def test_with_a_vault_no_two_places_of_a_scope_meet():
    book, names = Book(), cities("FR", 5)[:40]
    first = [play(f"In {{{n}|CITY}}", keep=("COUNTRY",), book=book) for n in names]
    assert len(set(first)) == len(names)
    assert [play(f"In {{{n}|CITY}}", keep=("COUNTRY",), book=book) for n in names] == first
    assert play("In {Texas|REGION} and {Dallas|CITY}", book=book) == play(
        "In {Texas|REGION} and {Dallas|CITY}", book=book
    )
    # What stands in a document does not play in it; elsewhere it plays on.
    city = first[0].removeprefix("In ")
    assert play(f"In {{{names[0]}|CITY}}, not {city}", keep=("COUNTRY",), book=book) != f"{first[0]}, not {city}"
    assert play(f"In {{{names[0]}|CITY}}", keep=("COUNTRY",), book=book) == first[0]


def test_streets_do_not_run_out():
    book, names = Book(), [f"Qx{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(130)]
    for street in ("rue {}", "ul. {}"):  # 60 names each, then longer ones
        new = [play(f"{{{street.format(n)}|STREET_ADDRESS}}", book=book) for n in names]
        assert len(set(new)) == len(names) and not any("STREET_ADDRESS" in n for n in new), street


LABELS = [
    *("LOCATION", "COUNTRY", "CITY", "REGION", "US_STATE", "FACILITY", "STREET_ADDRESS", "POSTAL_CODE", "UK_POSTCODE"),
    *("LOCATION_COORDINATES", "ORGANIZATION", "COMPANY", "TICKER", "ORIGIN", "NATIONALITY", "LANGUAGE", "OCCUPATION"),
    *("PRODUCT", "EVENT", "WORK_OF_ART", "AWARD", "LAW"),
]
WORDS = st.sampled_from(
    "London the of St. & Inc 12 12B, Street NY 10001 \n - / Lake Bank Texas 5th GmbH rue straße ß ŁÓDŹ 東京 ́ US D.C. ( ) ' ’s".split(
        " "
    )
)
SURFACES = st.one_of(
    st.text(min_size=1, max_size=30),
    st.lists(WORDS, min_size=1, max_size=8).map(" ".join),
    st.lists(WORDS, min_size=1, max_size=5).map("".join),
)


@given(SURFACES.filter(lambda s: s.strip() and not set(s) & set("{}|")), st.sampled_from(LABELS))
def test_any_surface_is_played_or_tagged(surface, label):
    out = play(f"x {{{surface}|{label}}} y")
    assert out.strip()
    assert surface.strip() not in (out, out.strip()) or len(surface) < 3
