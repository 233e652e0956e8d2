"""Peoples, organisations, occupations, streets and other things for the knowledge base, from ``sources/``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator

from allonym.kb.base import fold
from allonym.kb.geography import Geography
from allonym.kb.people import SOURCES, rows
from allonym.kb.store import Store


def write(store: Store, places: Geography, own: int, faker: int) -> None:
    """All of it, in a fixed order."""
    _areas(store, own)
    _natural(store, places, own)
    _nationalities(store, places, own)
    _groups(store, own)
    _organisations(store, places, own)
    _facilities(store, places, own)
    _streets(store, own)
    _occupations(store, own, faker)
    _things(store, own)


class _Classes:
    """The parents of a kind: made once for each name."""

    def __init__(self, store: Store, source: int) -> None:
        self._store, self._source = store, source
        self._ids: dict[str, int] = {}

    def __call__(self, name: str) -> int:
        if name not in self._ids:
            self._ids[name] = self._store.entity("class", name, self._source, usable=False)
        return self._ids[name]


def _named(store: Store, entity: int, entries: list[str]) -> None:
    """Labels (``language=name``) and by-names (``also=a;b``) of an entity."""
    for entry in filter(None, entries):
        language, _, text = entry.partition("=")
        for one in text.split(";") if language == "also" else [text]:
            if language == "also":
                store.alias(entity, one)
            else:
                store.label(entity, language, one)


def _areas(store: Store, own: int) -> None:
    area = store.entity("class", "area of several countries or regions", own, usable=False)
    for name, *entries in rows(SOURCES / "places.tsv"):
        number = store.entity("region", name, own)
        store.relate(number, "instance_of", area)
        _named(store, number, entries)


_SORT = re.compile("^(River|Mount|Lake|Loch|Monte) | (River|Mountains|Sea|Ocean|National Park|Forest)$")


def _natural(store: Store, places: Geography, own: int) -> None:
    for sort, country, names in rows(SOURCES / "natural.tsv"):
        for name in names.split(";"):
            label, _, more = name.partition("=")
            number = store.entity("natural", label, own, country=country, industry=sort)
            _named(store, number, [entry.replace(":", "=", 1) for entry in more.split(",") if entry])
            bare = _SORT.sub("", label)
            if bare != label and len(bare) > 3 and (country, fold(bare)) not in places.cities:
                store.alias(number, bare)


_FORMS = ("adjective", "noun", "plural")


def _nationalities(store: Store, places: Geography, own: int) -> None:
    for code, *english_and_more in rows(SOURCES / "nationalities.tsv"):
        english, more = english_and_more[:3], english_and_more[3:]
        country, _, region = code.partition("-")
        number = store.entity("nationality", english[0], own, country=country, region=region, usable=not region)
        for form, text in zip(_FORMS, english, strict=True):
            store.label(number, "en", text, form)
        if english[1] == f"{english[0]}man":  # a Frenchman, but neither a German nor an Omani
            store.label(number, "en", f"{english[0]}woman", "noun_f")
            store.alias(number, f"{english[0]}men", "en")
            store.alias(number, f"{english[0]}women", "en")
        for entry in more:
            language, _, text = entry.partition("=")
            if language == "also":
                _named(store, number, [entry])
                continue
            if language == "en":
                store.label(number, "en", text, "noun_f")
                continue
            forms = text.split("|")
            if language == "de" and len(forms) == 3:
                forms.append(f"{forms[1].removesuffix('e')}in")
            for form, one in zip((*_FORMS, "noun_f"), forms, strict=False):
                store.label(number, language, one, form)
        target = places.regions.get((country, region)) if region else places.countries.get(country)
        if target is not None:
            store.relate(number, "country", target)


def _groups(store: Store, own: int) -> None:
    classes = _Classes(store, own)
    for kind, group, adjective, *more in rows(SOURCES / "groups.tsv"):
        number = store.entity(kind, adjective, own)
        store.relate(number, "instance_of", classes(group))
        forms = [text for text in more if "=" not in text] + ["", ""]
        for form, text in zip(_FORMS, (adjective, *forms), strict=False):
            store.label(number, "en", text or adjective, form)
        for entry in more:
            language, found, text = entry.partition("=")
            if found:
                store.label(number, language, text, "adjective")


def _bearers(entries: str) -> Iterator[tuple[str, str, list[str]]]:
    """Name, city and by-names of the entries ``Name@City|by-name``."""
    for entry in entries.split(";"):
        head, *aliases = entry.split("|")
        name, _, city = head.partition("@")
        yield name, city, aliases


def _organisations(store: Store, places: Geography, own: int) -> None:
    for kind, industry, country, entries in rows(SOURCES / "organisations.tsv"):
        _seated(store, places, own, kind, industry, country, entries)


def _facilities(store: Store, places: Geography, own: int) -> None:
    for industry, country, entries in rows(SOURCES / "facilities.tsv"):
        _seated(store, places, own, "facility", industry, country, entries)


def _seated(store: Store, places: Geography, own: int, kind: str, industry: str, country: str, entries: str) -> None:
    for name, city, aliases in _bearers(entries):
        seat = places.city(country, city)
        number = store.entity(
            kind, name, own, country=country, region=places.region_of.get(seat, ""), industry=industry
        )
        for alias in aliases:
            store.alias(number, alias)
        if name.startswith("The "):
            store.alias(number, name[4:])
        if seat is not None:
            store.relate(number, "city", seat)


def _streets(store: Store, own: int) -> None:
    for countries, language, patterns, stems in rows(SOURCES / "streets.tsv"):
        shapes, words = patterns.split("|"), stems.split(",")
        for country in countries.split():
            for i, stem in enumerate(words):
                for shape in {shapes[i % len(shapes)]: 0, shapes[(i * 2 + 1) % len(shapes)]: 0}:
                    label = shape.replace("{}", stem)
                    number = store.entity("street", label, own, country=country, industry=_sort(shape))
                    store.form(number, language, "stem", stem)
                    store.form(number, language, "pattern", shape)


def _sort(pattern: str) -> str:
    return pattern.replace("{}", "").strip(" .").lower()


def _occupations(store: Store, own: int, faker: int) -> None:
    classes = _Classes(store, own)
    matches: list[tuple[str, list[str]]] = []
    known: set[str] = set()
    work = classes("occupation")
    for trade, parent, entries in rows(SOURCES / "occupations.tsv"):
        if trade == "match":
            name, _, words = entries.partition(": ")
            matches.append((name, words.split(",")))
            continue
        above = classes(f"occupation in {trade}")
        store.relate(above, "subclass_of", classes(f"occupation in {parent}") if parent else work)
        for entry in entries.split(";"):
            head, *aliases = entry.split("|")
            name, _, gender = head.partition("/")
            known.update(map(fold, (name, *aliases)))
            number = store.entity("occupation", name, own, industry=trade, gender=gender)
            store.relate(number, "subclass_of", above)
            for alias in aliases:
                store.alias(number, alias)
    for name in _jobs():
        if fold(name) in known:
            continue
        known.add(fold(name))
        low = f"{name} ".lower()
        trade = next((t for t, words in matches if any(w in low for w in words)), "")
        if trade:
            # Long ones are known, but would read odd in place of a common one.
            number = store.entity("occupation", name, faker, industry=trade, usable=len(name.split()) <= 2)
            store.relate(number, "subclass_of", classes(f"occupation in {trade}"))


_CAPITALS = re.compile(r"\b(?:[A-Z]{2,}|English|Scotland|Wales|England)\b")


def _jobs() -> list[str]:
    """Faker's occupations in running form: "Engineer, electrical" is an electrical engineer."""
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


def _things(store: Store, own: int) -> None:
    table = tomllib.loads((SOURCES / "things.toml").read_text(encoding="utf-8"))
    for kind, sorts in table.items():
        for sort, values in sorts.items():
            pairs = [(q, n) for q in values[0] for n in values[1]] if kind == "event" else [("", n) for n in values]
            for qualifier, name in pairs:
                number = store.entity(kind, f"{qualifier} {name}".strip(), own, industry=sort)
                if kind == "event" and sort != "storm":
                    store.form(number, "en", "pattern", f"{{place}} {name}")
