"""Chooses which place becomes which.

**Where a country goes is a keyed choice of the scope, never of the document**, and its places go with it; **whether it
goes is up to the document**.

- A document that names no country keeps its places where they are: Leeds becomes another English town.
- A country that a document names, or whose nationality it names, is replaced there, and all its places go with it:
  "Madrid, the capital of Spain" becomes "Rome, the capital of Italy". A policy that keeps ``COUNTRY`` keeps every place
  in its country.
- The option ``country`` moves a document's main country, the one that most of its places belong to, to that country,
  named or not; other countries follow the first two rules.
- Regions likewise: cities of a region that the document names go to the region that replaces it, where that has enough
  cities; others stay in theirs.
- Capitals go to capitals where their country moves. A city's inhabitants are of the same power of ten where possible.
- A country goes to one of its size that speaks its language or, where the policy replaces languages too, to one of its
  continent that speaks another.
- A country whose English name takes an article ("the Netherlands") goes to one that does.

A country that occurs in the document itself, or that one of its places lies in, replaces no other: there the next
choice is taken, for all places of that country. Likewise where country and people would get the same name, or the
people's new name occurs there. The ledger's keys say where a place goes, so that the two do not mix in a vault.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache

from allonym.kb import Item, KnowledgeBase
from allonym.policy import Policy
from allonym.protocol import Wanted
from allonym.replace.cast import Cast, find_plain_words
from allonym.replace.tables import read_toml, read_word_set
from allonym.text.names import normalize_surface, parse_person

Pools = Sequence[Sequence["Item"]]
CODED = ("US", "CA", "AU")
"""Countries whose regions are written by their codes."""
KINDS = ("country", "region", "city", "continent", "natural", "facility")
LEAST_CITIES = 12
"""Cities that a country needs to replace another."""
LEAST_TOWNS = 4
"""Cities that a region needs to take the cities of another."""
_SPOKEN = re.compile(
    r"(?i)(?:\b(?:sp(?:ea|o)k(?:e|en|s|ing)?|teach(?:es|ing)?|taught|learn(?:s|ed|t|ing)?|stud(?:y|ies|ied|ying)|know(?:s|n)?"
    r"|understands?|fluent\s+in|translated?\s+(?:in)?to|sing(?:s|ing)?\s+in|(?:said|says?|told|writes?|written|wrote)"
    r"\s+(?:\w+\s+){0,2}in|languages?(?:\s+spoken)?\s*:)\s+(?:(?:little|some|good|bad|fluent|only|no|mainly|both|broken|a\s+bit"
    r"\s+of|mother\s+tongue|native)\s+)*)(?:[A-Z][a-z]+(?:,\s+(?:and\s+)?|\s+(?:and|or)\s+(?:\w+\s+)?)){0,4}\Z"
)
NOUN_BEHIND = re.compile(
    r"\s+(?!(?:and|or|but|with|to|at|in|as|for|from|of|by|on|who|whom|whose|that|when|while|because|is|was|are|were|has"
    r"|have|had|do|does|did|will|would|can|could|may|might|must|should|only|well|fluently|himself|herself)\b)[^\W\d_]"
)
_CODE = re.compile(r"\b[A-Z]{2,3}\b")
_ARTICLE = re.compile(r"\A(?:the|an?)\s+")
_LONGEST = 300  # characters of a surface that is looked at
_FORMAL = re.compile(r" - |\S+ \S+ \S+ |\b(?:County|Borough|District|Township|City)\b")
"""Cities whose names are no good for others: Londonderry County Borough."""


def pick_from_pools(cast: Cast, pools: Pools, kind: str, key: str, attempt: int) -> Item | None:
    """Return the choice of an attempt: through each pool in turn from a keyed start, 16 of each, then the next pool."""
    for i, pool in enumerate(pools):
        room = min(len(pool), 16) if i < len(pools) - 1 else len(pool)
        if attempt < room:
            return pool[(cast.ledger.draw_number(kind, key, i) + attempt) % len(pool)]
        attempt -= room
    return None


@cache
def _list_kind_words() -> frozenset[str]:
    """Return the words that say what a place is: Lake, Airport."""
    return read_word_set("places", "words", "first") | read_word_set("places", "words", "last")


@lru_cache(maxsize=8192)
def get_distinctive_place_name(label: str) -> str:
    """Return a place's name without the words that many names share; all of it where nothing else is left."""
    generic = read_word_set("places", "generic") | _list_kind_words()
    return " ".join(w for w in find_plain_words(label) if w not in generic) or label


@lru_cache(maxsize=4)
def _map_countries_by_code(kb: KnowledgeBase) -> dict[str, Item]:
    return {item.country: item for item in kb.pool("country")}


@lru_cache(maxsize=512)
def _has_language_of_its_name(kb: KnowledgeBase, code: str) -> bool:
    """Whether a country's people and its first language have the same name, as in Spain."""
    country = _map_countries_by_code(kb).get(code)
    spoken = kb.related(country, "language")[:1] if country is not None else ()
    peoples = kb.pool("nationality", country=code)
    names = {find_plain_words(people.label)[:1] for people in peoples if not people.region}
    return any(find_plain_words(language.label)[:1] in names for language in spoken)


@lru_cache(maxsize=512)
def _list_country_pools(kb: KnowledgeBase, code: str, replaces_languages: bool) -> Pools:
    """Return what may replace a country: similar ones of its size, others of its size, any; with an article or not.

    Where people and language have the same name (Spanish), those are similar that lie on its continent and have such a
    language too; else those that speak its language or, if the policy ``replaces_languages``, neighbours with
    another.
    """
    avoid, article = read_word_set("places", "avoid"), read_word_set("places", "article")

    def is_fit(other: str, item: Item) -> bool:
        if other == code or other in avoid or (other in article) != (code in article) or item.size < 6:
            return False
        name = set(find_plain_words(item.label))
        has_other_capital = any(name.isdisjoint(find_plain_words(c.label)) for c in kb.related(item, "capital"))
        return has_other_capital and len(kb.pool("city", country=other)) >= LEAST_CITIES

    fit = [item for other, item in sorted(_map_countries_by_code(kb).items()) if is_fit(other, item)]
    home = find_country(kb, code)
    if home is None:
        return (tuple(fit),)
    spoken, continent = kb.related(home, "language")[:1], kb.related(home, "part_of")[:1]
    near = [item for item in fit if abs(item.size - home.size) <= 1]
    familiar = [item for item in near if item.country in read_toml()["postcodes"]]
    if kb.pool("region", country=code):
        familiar = [item for item in familiar if kb.pool("region", country=item.country)] or familiar
    neighbours = [item for item in familiar if set(continent) & set(kb.related(item, "part_of"))]
    same_size = [item for item in neighbours if item.size == home.size]
    neighbours = same_size if len(same_size) > 2 else neighbours
    if _has_language_of_its_name(kb, code):
        best = [item for item in neighbours if _has_language_of_its_name(kb, item.country)]
    elif replaces_languages:
        alike = [item for item in familiar if not _has_language_of_its_name(kb, item.country)]
        alike = [item for item in alike if item in neighbours] or alike
        best = [item for item in alike or neighbours if kb.related(item, "language")[:1] != spoken]
    else:
        best = [item for item in familiar if set(spoken) & set(kb.related(item, "language")[:2])]
    if len(best) < 2:
        best += [item for item in neighbours if item not in best]
    best = best if len(best) >= 2 else familiar
    return tuple(best), tuple(i for i in near if i not in best), tuple(i for i in fit if i not in near)


@lru_cache(maxsize=512)
def find_country(kb: KnowledgeBase, code: str) -> Item | None:
    """Return the country with an ISO 3166-1 alpha-2 code."""
    country = _map_countries_by_code(kb).get(code)
    if country is not None or not code:
        return country
    city = kb.pool("city", country=code)
    return next((c for c in (kb.related(city[0], "country") if city else ()) if c.kind == "country"), None)


@lru_cache(maxsize=4096)
def find_region(kb: KnowledgeBase, country: str, region: str) -> Item | None:
    """Return the region with a code of ISO 3166-2."""
    return next((r for r in kb.pool("region", country=country) if r.region == region), None) if region else None


@lru_cache(maxsize=512)
def list_capital_ids(kb: KnowledgeBase, country: str) -> frozenset[int]:
    """Return the numbers of a country's capitals."""
    home = find_country(kb, country)
    return frozenset(c.id for c in kb.related(home, "capital")) if home is not None else frozenset()


@lru_cache(maxsize=512)
def _list_non_capital_cities(kb: KnowledgeBase, country: str) -> tuple[Item, ...]:
    """Return the cities that may replace others that are no capital."""
    capitals = list_capital_ids(kb, country)
    return tuple(c for c in kb.pool("city", country=country) if c.id not in capitals and not _FORMAL.search(c.label))


@lru_cache(maxsize=4096)
def _list_city_pools(kb: KnowledgeBase, country: str, region: str, size: int, is_named: bool) -> Pools:
    """Return what may replace a city: of the region and its size, of the region, of its size, any of the country.

    Where the document does not name the region, size counts more: Hamburg does not become one of its quarters.
    """
    fit = _list_non_capital_cities(kb, country)
    inside = tuple(c for c in fit if region and c.region == region)
    inside = inside if len(inside) >= LEAST_TOWNS else ()
    alike_inside, alike = _filter_cities_by_size(inside, size), _filter_cities_by_size(fit, size)
    same_inside = tuple(c for c in inside if c.size == size)
    same_inside = same_inside if len(same_inside) >= LEAST_TOWNS else ()
    pools = (alike_inside, inside, alike, fit) if is_named else (same_inside, alike, inside, fit)
    return tuple(pool for pool in pools if pool)


def _filter_cities_by_size(cities: Sequence[Item], size: int) -> tuple[Item, ...]:
    same = tuple(c for c in cities if c.size == size)
    return same if len(same) >= 4 else tuple(c for c in cities if abs(c.size - size) <= 1)


@lru_cache(maxsize=1024)
def _list_region_pools(kb: KnowledgeBase, country: str, item: Item) -> Pools:
    fit = [r for r in kb.pool("region", country=country) if r.id != item.id]
    large = []
    for region in fit:
        cities = kb.pool("city", country=country, region=region.region)
        # A region with the name of a town would take the name from the town.
        name = set(find_plain_words(get_distinctive_place_name(region.label)))
        if len(cities) >= LEAST_TOWNS and not any(name & set(find_plain_words(c.label)) for c in cities if c.size >= 5):
            large.append(region)
    large = large or fit
    near = [r for r in large if abs(r.size - item.size) <= 1 or not item.size] or large
    # Many provinces are named after their towns, so that one may stand in where too few regions are known.
    towns = [c for c in kb.pool("city", country=country) if c.size >= 5]
    return tuple(tuple(pool) for pool in (near, large, fit, towns) if pool)


def _has_same_kind_words(a: Item, b: Item) -> bool:
    """Whether two names have the same words for their sort (Lake, Airport), or none of them has any."""
    return _list_kind_words() & set(find_plain_words(a.label)) == _list_kind_words() & set(find_plain_words(b.label))


def _is_pseudonymised(policy: Policy, label: str) -> bool:
    return policy.looks_for(label) and policy.rule(label).operator == "pseudonym"


def _find_named_places(cast: Cast) -> tuple[frozenset[str], frozenset[int], dict[str, dict[str, Item]]]:
    """Find the countries and regions that the document names.

    Returns:
        Codes of the countries that it names themselves; numbers of its regions; and country to what it calls the
        country's people, in plain form.
    """
    peoples: dict[str, dict[str, Item]] = {}
    countries: set[str] = set()
    regions: set[int] = set()
    kb = cast.kb
    for target in cast.targets:
        lineage = cast.get_lineage(target)
        for surface in target.surfaces[:1]:
            if lineage[-1] == "ORIGIN":
                bare = _ARTICLE.sub("", normalize_surface(surface))
                for item in kb.find(bare, ("nationality",))[:1]:
                    peoples.setdefault(item.country, {})[bare] = item
            elif lineage[-1] == "ORGANIZATION":
                for word in surface[:_LONGEST].split() if " " in surface else ():
                    people = find_nationality(kb, word, cast.setting.policy.language) if word[:1].isupper() else None
                    if people is not None:
                        peoples.setdefault(people.country, {}).setdefault(normalize_surface(word), people)
            elif lineage[-1] == "LOCATION" and "POSTAL_CODE" not in lineage:
                parts = surface[:_LONGEST].split(",")
                may_be_town = len(parts) == 1 and "COUNTRY" not in lineage
                for part in (normalize_surface(part.strip(" 0123456789-")).removeprefix("the ") for part in parts):
                    # Georgia, Luxembourg, Singapore: what the detectors did not take for a country is none.
                    if not (may_be_town and kb.find(part, ("city", "region"))):
                        countries.update(item.country for item in kb.find(part, ("country",))[:1])
                    if not (may_be_town and kb.find(part, ("city",))) or "REGION" in lineage:
                        regions.update(item.id for item in kb.find(part, ("region",)))
                for code in _CODE.findall(surface[:_LONGEST]):
                    states = (find_region(kb, country, code) for country in CODED)
                    regions.update(item.id for item in states if item is not None)
    return frozenset(countries - {""}), frozenset(regions), peoples


def find_nationality(kb: KnowledgeBase, text: str, language: str) -> Item | None:
    """Return the nationality that an adjective tells: ``American`` Airlines, ``Polish`` Railways."""
    bare = normalize_surface(text)
    for item in kb.find(text, ("nationality",)):
        labels = kb.labels(item)
        forms = (labels.get((code, "adjective"), "") for code in ("en", language))
        if item.country and any(form and normalize_surface(form) == bare for form in forms):
            return item
    return None


def _find_family_names(cast: Cast) -> frozenset[str]:
    """Return the family names of the document's people, in plain form."""
    out: set[str] = set()
    for target in cast.targets:
        for surface in target.surfaces if cast.get_label_family(target) == "PERSON" else ():
            name = [word for word in parse_person(normalize_surface(surface))[0] if word[0] != "+"]
            if len(name) > 1 and len(name[-1]) > 2:
                out.add(name[-1])
    return frozenset(out)


def is_language(cast: Cast, target: Wanted) -> bool:
    """Whether an entity is a language: by its label, or by the words before it in all places (she teaches Dutch)."""
    if "LANGUAGE" in cast.get_lineage(target):
        return True
    surface = next(iter(target.surfaces), "")
    if cast.setting.policy.language != "en" or not cast.kb.find(surface, ("language",)):
        return False
    if not cast.kb.find(surface, ("nationality",)):
        return True  # Arabic
    text = cast.text
    intervals = [(span.start, span.end) for span in target.entity.spans]
    return all(_SPOKEN.search(text, max(0, a - 60), a) and not NOUN_BEHIND.match(text, b) for a, b in intervals)


def open_place_map(cast: Cast) -> PlaceMap:
    """Return the place map of a document; it is made where there is none yet."""
    if cast.place_map is None:
        cast.place_map = PlaceMap(cast)
    return cast.place_map


class PlaceMap:
    """The places of one document and where they go. Mutable; it belongs to one :class:`Cast`.

    Attributes:
        peoples: country to what the document calls the country's people, in plain form.
        countries: countries that the document names themselves.
        replaced: these, and those whose people it names; both are empty where the policy keeps countries.
        regions: numbers of the regions that it names.
        families: family names of its people, in plain form.
        spoken: languages that it names.
        language: of the policy.
        main: the country that most of its places lie in.
        target: where the option ``country`` moves that one.
        present: countries that its places lie in.
    """

    def __init__(self, cast: Cast) -> None:
        policy = cast.setting.policy
        self.cast = cast
        self.kb = cast.kb
        countries, regions, self.peoples = _find_named_places(cast)
        moves = _is_pseudonymised(policy, "COUNTRY")
        self.countries = countries if moves else frozenset()
        self.replaced = (countries | self.peoples.keys()) - {""} if moves else frozenset()
        self.regions = regions if _is_pseudonymised(policy, "REGION") else frozenset()
        self.families = _find_family_names(cast)
        named = [t for t in cast.targets if cast.get_label_family(t) in ("LANGUAGE", "ORIGIN") and is_language(cast, t)]
        languages = (self.kb.find(surface, ("language",))[:1] for t in named for surface in t.surfaces[:1])
        self.spoken = frozenset(item for items in languages for item in items)
        self.language = policy.language or "en"
        self.main = ""
        self.target = ""
        self.present: set[str] = set()
        self._replaces_languages = _is_pseudonymised(policy, "LANGUAGE")
        self._chosen: dict[int, Item | None] = {}

    def add_named_places(self, items: Iterable[Item]) -> None:
        """Add places that the document names, so that its countries and regions are replaced."""
        items = list(items)
        if not self.keeps_kind("country"):
            self.countries |= {item.country for item in items if item.kind == "country"}
            self.replaced |= self.countries
        if not self.keeps_kind("region"):
            self.regions |= {item.id for item in items if item.kind == "region"}

    def set_countries(self, countries: Iterable[str], targets: Iterable[Wanted]) -> None:
        """Set the countries that the document's places lie in; once the main one is known it stays.

        Args:
            countries: codes, one for each place, in reading order.
            targets: entities whose rules may move the main country.
        """
        option = next((str(t.options["country"]) for t in targets if t.options.get("country")), "")
        if not self.main:
            votes = Counter(code for code in countries if code)
            self.present |= votes.keys()
            self.main = max(votes, key=lambda code: votes[code], default="")
        if option and not self.target:
            self.target, self.main = option, self.main or self.home_country

    @property
    def home_country(self) -> str:
        """Where unknown places lie: in the main country, else where the language is at home."""
        return self.main or read_toml()["places"]["home"].get(self.language.partition("-")[0], "US")

    # Countries

    def get_target_country(self, code: str) -> str:
        """Return the code of the country that a country's places go to; its own where it stays."""
        if code and self.target and code == self.main:
            return self.target
        return (self.choose_country(code) or code) if code in self.replaced else code

    def choose_country(self, code: str) -> str | None:
        """Return the code of the country that replaces a country; None where none can."""
        if self.target and code == self.main:
            return self.target if self.target != code else None
        pools = _list_country_pools(self.kb, code, self._replaces_languages)

        def propose(attempt: int) -> str | None:
            item = pick_from_pools(self.cast, pools, "country", code, attempt)
            return item and item.country

        def get_distinctive_part(value: str) -> str:
            item = find_country(self.kb, value)
            # Lisbon cannot replace a city of a document that speaks of Portugal.
            if value in {*self.present, self.target} or item is None or not self._keeps_country_distinct(code, value):
                return " "  # never free
            return " ".join(map(get_distinctive_place_name, (item.label, self.kb.label(item, self.language))))

        return self.cast.ledger.assign("country", code, propose, telling=get_distinctive_part)

    def _keeps_country_distinct(self, code: str, to: str) -> bool:
        """Whether what the document calls a country and its people still differs for another, and occurs nowhere.

        So must its language, where the document names that.
        German and Germans do not where all become Swiss, nor Brunei and Bruneian where both become New Zealand.
        """
        home, away = find_country(self.kb, code), find_country(self.kb, to)
        if home is not None and away is not None and not self.spoken.isdisjoint(self.kb.related(home, "language")):
            has_own_name = code in self.peoples and _has_language_of_its_name(self.kb, to)
            if has_own_name and not _has_language_of_its_name(self.kb, code):
                return False  # Belgian and Dutch would both be Romanian
            if not self.spoken.isdisjoint(self.kb.related(away, "language")[:1]):
                return False
        surfaces = self.peoples.get(code, {})
        names = {self._fold_nationality_name(item, to, bare) for bare, item in surfaces.items()} - {""}
        country = find_country(self.kb, to) if code in self.countries else None
        label = normalize_surface(self.kb.label(country, self.language)) if country else None
        if any(self.cast.ledger.text_has_words(find_plain_words(name)) or name == label for name in names):
            return False
        return len(surfaces) < 2 or all(self.keeps_people_distinct(item, to) for item in set(surfaces.values()))

    def keeps_people_distinct(self, item: Item, to: str) -> bool:
        """Whether the surfaces of one nationality still differ for another country."""
        surfaces = [bare for bare, other in self.peoples.get(item.country, {}).items() if other == item]
        return len({self._fold_nationality_name(item, to, bare) for bare in surfaces}) == len(surfaces)

    def _fold_nationality_name(self, item: Item, to: str, surface: str) -> str:
        return normalize_surface(self.get_nationality_name(item, to, surface) or "")

    def get_nationality_name(self, item: Item, to: str, surface: str, form: str = "") -> str | None:
        """Return the name of a country's people, in the form in which a surface names those of another.

        Args:
            item: the nationality that the surface names.
            to: code of the country.
            surface: adjective, noun or plural, in any language that the knowledge base has.
            form: the surface's form in the text, where several are written alike: ``German``, ``a German``.
        """
        language, form = self.find_nationality_form(item, surface, form)
        for other in self.kb.pool("nationality", country=to):
            labels = self.kb.labels(other)
            text = labels.get((language, form)) or labels.get((language, "adjective"))
            if text is None and language == "en":
                text = other.label
            if text:
                return text
        return None

    def find_nationality_form(self, item: Item, surface: str, form: str = "") -> tuple[str, str]:
        """Return the language and the form of a nationality that a surface is; the policy's language comes first."""
        bare = normalize_surface(surface)
        labels = sorted(self.kb.labels(item).items(), key=lambda pair: (pair[0][0] != self.language, pair[0]))
        keys = [key for key, text in labels if normalize_surface(text) == bare]
        preferred = ((self.language, name) for name in (form, "adjective", "noun", "plural"))
        return next((key for key in (*preferred, *keys) if key in keys), (self.language, "adjective"))

    # Places

    def keeps_kind(self, kind: str) -> bool:
        """Whether the policy keeps countries (``country``) or regions (``region``)."""
        return not _is_pseudonymised(self.cast.setting.policy, kind.upper())

    def is_replaced(self, item: Item) -> bool:
        """Whether another country or region replaces this one; other places always are replaced."""
        if item.kind == "country":
            return item.country in self.replaced or (bool(self.target) and item.country == self.main)
        return item.kind != "region" or item.id in self.regions or self.get_target_country(item.country) != item.country

    def choose_place(self, item: Item) -> Item | None:
        """Return the place that replaces one of the knowledge base; None where nothing can."""
        if item.id not in self._chosen:
            self._chosen[item.id] = self._choose_place_by_kind(item)
        return self._chosen[item.id]

    def _choose_place_by_kind(self, item: Item) -> Item | None:
        if item.kind == "country":
            code = self.choose_country(item.country)
            return find_country(self.kb, code) if code else None
        if item.kind == "city":
            return self.choose_city(item.label, item.country, item.region, item.size, item.id)
        if item.kind == "region" and item.country:
            to = self.get_target_country(item.country)
            key = f"{normalize_surface(item.label)}>{to}"
            return self.assign_item("region", key, _list_region_pools(self.kb, to, item))
        pools: Pools
        if item.kind == "region":  # Eastern Europe
            pools = ([r for r in self.kb.pool("region") if not r.country and r.id != item.id],)
        elif item.kind == "continent":
            others = [c for c in self.kb.pool("continent") if c.id != item.id and c.label != "Antarctica"]
            # "North Africa" must not become "North South America".
            pools = (others if " " in item.label else [c for c in others if " " not in c.label],)
        else:
            to = self.get_target_country(item.country)
            wide = [o for o in self.kb.pool(item.kind, industry=item.industry) if o.id != item.id]
            there = [o for o in wide if o.country == to]
            similar = [[o for o in pool if _has_same_kind_words(o, item)] for pool in (there, wide)]
            pools = (similar[0], there, similar[1], wide)
        return self.assign_item(item.kind, normalize_surface(item.label), pools)

    def choose_city(self, label: str, country: str, region: str = "", size: int = 4, id: int = 0) -> Item | None:
        """Return the city that replaces a city, also one that the knowledge base does not have.

        Args:
            label: its name.
            country: code of the country where it lies.
            region: code of its region there; empty: unknown.
            size: the power of ten of its inhabitants.
            id: of its item; 0: it has none.
        """
        to = self.get_target_country(country)
        away = find_country(self.kb, to) if to != country and id in list_capital_ids(self.kb, country) else None
        state = find_region(self.kb, country, region)
        there = region if to == country and (state is None or state.id not in self.regions) else ""
        if away is None and not there and state is not None:
            goal = self.choose_place(state)
            there = goal.region if goal is not None and goal.kind == "region" and goal.country == to else ""
        is_named = state is not None and (state.id in self.regions or self.keeps_kind("region"))
        pools: Pools = _list_city_pools(self.kb, to, there, size, is_named)
        if away is not None:
            pools = (self.kb.related(away, "capital"), *pools)
        return self.assign_item("city", f"{normalize_surface(label)}.{region}.{country}>{to}.{there}", pools, id)

    def assign_item(self, kind: str, key: str, pools: Pools, excluded: int = 0) -> Item | None:
        """Return the item that the ledger has for ``key``; pools are tried in turn, the item ``excluded`` never."""
        proposed: dict[str, Item] = {}

        def propose(attempt: int) -> str | None:
            item = pick_from_pools(self.cast, pools, kind, key, attempt)
            if item is None or item.id == excluded:
                return item and " "  # never free
            value = f"{item.label}|{item.country}|{item.region}"
            proposed[value] = item
            return value

        def get_distinctive_part(value: str) -> str:
            label = value.partition("|")[0]
            item = proposed.get(value) or self._find_known_item_of_ledger_value(kind, value)
            local = self.kb.label(item, self.language) if item is not None and self.language != "en" else label
            names = (label,) if local == label else (label, local)
            return " ".join(get_distinctive_place_name(name) for name in names)

        value = self.cast.ledger.assign(kind, key, propose, telling=get_distinctive_part)
        if not value:
            return None
        return proposed[value] if value in proposed else self._find_known_item_of_ledger_value(kind, value)

    def _find_known_item_of_ledger_value(self, kind: str, value: str) -> Item | None:
        """Return the item of a value of the ledger or the vault, maybe written with another knowledge base."""
        label, country, region = (*value.split("|"), "", "")[:3]
        items = self.kb.find(label, (kind,), country) or self.kb.find(label, KINDS, country)
        return next((i for i in items if i.region == region and i.label == label), items[0] if items else None)
