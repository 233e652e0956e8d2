"""Which place becomes which.

**Where a country goes is a keyed choice of the scope, never of the document**, and its places go with it; **whether it
goes is up to the document**.

- A document that names no country keeps its places where they are: Leeds becomes another English town.
- A country that a document names, or whose nationality it names, is replaced there, and all its places go with it:
  "Madrid, the capital of Spain" becomes "Rome, the capital of Italy". A policy that keeps ``COUNTRY`` keeps every place
  in its country.
- The option ``country`` moves a document's main country, the one that most of its places belong to, to that country,
  named or not; other countries follow the first two rules.
- Regions likewise: cities of a region that the document names go to the region that plays it, where that has enough
  cities; others stay in theirs.
- Capitals go to capitals where their country moves. A city's inhabitants are of the same power of ten where possible.
- A country goes to one of its size that speaks its language or, where the policy replaces languages too, to one of its
  continent that speaks another.
- A country whose English name takes an article ("the Netherlands") goes to one that does.

A country that stands in the document itself, or is home to one of its places, plays no other: there the next choice is
taken, for all places of that country. Likewise where country and people would become one, or the people's new name
stands there. The ledger's keys say where a place goes, so that the two do not mix in a vault.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from allonym.replace.cast import Cast, words
from allonym.replace.mention import Wanted
from allonym.text.names import person, plain

if TYPE_CHECKING:
    from allonym.kb import Item, KnowledgeBase
    from allonym.policy import Policy

CODED = ("US", "CA", "AU")
"""Countries whose regions are written by their codes."""
_CODE = re.compile(r"\b[A-Z]{2,3}\b")
_ARTICLE = re.compile(r"\A(?:the|an?)\s+")
_LONGEST = 300  # characters of a surface that is looked at
KINDS = ("country", "region", "city", "continent", "natural", "facility")
LEAST_CITIES = 12
"""Cities that a country needs to play another."""
LEAST_TOWNS = 4
"""Cities that a region needs to take the cities of another."""
_LONG = re.compile(r" - |\S+ \S+ \S+ |\b(?:County|Borough|District|Township|City)\b")
"""Cities whose names are no good for others: Londonderry County Borough."""


@cache
def patterns() -> dict[str, Any]:
    """The content of ``patterns.toml``."""
    return tomllib.loads(files("allonym.replace").joinpath("patterns.toml").read_text(encoding="utf-8"))


@cache
def listed(*path: str) -> tuple[str, ...]:
    """A word list of ``patterns.toml``; its entries lie between spaces, or between bars where it has any."""
    found: Any = patterns()
    for name in path:
        found = found[name]
    if "|" in found:
        return tuple(one.strip() for one in found.replace("\n", "|").split("|") if one.strip())
    return tuple(found.split())


@cache
def word_set(*path: str) -> frozenset[str]:
    """The entries of a word list, as they are written and in plain form."""
    return frozenset(form for word in listed(*path) for form in (word, plain(word)))


def walk(cast: Cast, pools: Sequence[Sequence[Item]], kind: str, key: str, attempt: int) -> Item | None:
    """The choice of an attempt: through each pool in turn from a keyed start, 16 of each, then the next pool."""
    for i, pool in enumerate(pools):
        room = min(len(pool), 16) if i < len(pools) - 1 else len(pool)
        if attempt < room:
            return pool[(cast.ledger.number(kind, key, i) + attempt) % len(pool)]
        attempt -= room
    return None


@cache
def _sorts() -> frozenset[str]:
    return word_set("places", "words", "first") | word_set("places", "words", "last")


@lru_cache(maxsize=8192)
def telling(label: str) -> str:
    """A place's name without the words that many names share; all of it where nothing else is left."""
    generic = word_set("places", "generic") | _sorts()
    return " ".join(w for w in words(label) if w not in generic) or label


@lru_cache(maxsize=4)
def _countries(kb: KnowledgeBase) -> dict[str, Item]:
    return {item.country: item for item in kb.pool("country")}


@lru_cache(maxsize=512)
def _named_alike(kb: KnowledgeBase, code: str) -> bool:
    """Whether a country's people and its first language have one name, as in Spain."""
    country = _countries(kb).get(code)
    spoken = kb.related(country, "language")[:1] if country is not None else ()
    peoples = kb.pool("nationality", country=code)
    return any(not p.region and words(p.label)[:1] == words(s.label)[:1] for p in peoples for s in spoken)


@lru_cache(maxsize=512)
def _country_pools(kb: KnowledgeBase, code: str, languages: bool) -> tuple[tuple[Item, ...], ...]:
    """What may play a country: of its size and like it, of its size, any; alike as to the article.

    Where people and language have one name (Spanish), like it is what lies on its continent and has such a language
    too; else what speaks its language or, where ``languages`` are replaced too, a neighbour that speaks another.
    """
    avoid, article, written = (word_set("places", "avoid"), word_set("places", "article"), patterns()["postcodes"])
    fit = [
        item
        for other, item in sorted(_countries(kb).items())
        if other != code
        and other not in avoid
        and (other in article) == (code in article)
        and item.size >= 6
        and any(not set(words(c.label)) & set(words(item.label)) for c in kb.related(item, "capital"))
        and len(kb.pool("city", country=other)) >= LEAST_CITIES
    ]
    home = country_item(kb, code)
    if home is None:
        return (tuple(fit),)
    spoken, continent = kb.related(home, "language")[:1], kb.related(home, "part_of")[:1]
    near = [item for item in fit if abs(item.size - home.size) <= 1]
    known = [item for item in near if item.country in written]
    if kb.pool("region", country=code):
        known = [item for item in known if kb.pool("region", country=item.country)] or known
    neighbours = [item for item in known if set(continent) & set(kb.related(item, "part_of"))]
    alike = [item for item in neighbours if item.size == home.size]
    neighbours = alike if len(alike) > 2 else neighbours
    if _named_alike(kb, code):
        best = [item for item in neighbours if _named_alike(kb, item.country)]
    elif languages:
        best = [item for item in neighbours if kb.related(item, "language")[:1] != spoken]
    else:
        best = [item for item in known if set(spoken) & set(kb.related(item, "language")[:2])]
    if len(best) < 2:
        best += [item for item in neighbours if item not in best]
    if len(best) < 2:
        best = known
    return tuple(best), tuple(i for i in near if i not in best), tuple(i for i in fit if i not in near)


@lru_cache(maxsize=512)
def country_item(kb: KnowledgeBase, code: str) -> Item | None:
    """The country with an ISO 3166-1 alpha-2 code."""
    found = _countries(kb).get(code)
    if found is not None or not code:
        return found
    city = kb.pool("city", country=code)
    return next((c for c in (kb.related(city[0], "country") if city else ()) if c.kind == "country"), None)


@lru_cache(maxsize=512)
def _cities(kb: KnowledgeBase, country: str) -> tuple[Item, ...]:
    """Cities that may stand for others that are no capital."""
    capitals = _capitals(kb, country)
    return tuple(c for c in kb.pool("city", country=country) if c.id not in capitals and not _LONG.search(c.label))


@lru_cache(maxsize=4096)
def _city_pools(kb: KnowledgeBase, country: str, region: str, size: int) -> tuple[tuple[Item, ...], ...]:
    fit = _cities(kb, country)
    there = [c for c in fit if region and c.region == region]
    if len(there) < LEAST_TOWNS:
        there = []
    alike = [c for c in there if c.size == size]
    if len(alike) < 4:
        alike = [c for c in there if abs(c.size - size) <= 1]
    near = [c for c in fit if c.size == size]
    if len(near) < 4:
        near = [c for c in fit if abs(c.size - size) <= 1]
    return tuple(tuple(pool) for pool in (alike, there, near, fit) if pool)


@lru_cache(maxsize=1024)
def _region_pools(kb: KnowledgeBase, country: str, item: Item) -> tuple[tuple[Item, ...], ...]:
    fit = [r for r in kb.pool("region", country=country) if r.id != item.id]
    large = []
    for one in fit:
        cities = kb.pool("city", country=country, region=one.region)
        # A region with the name of a town would take the name from the town.
        own = set(words(telling(one.label)))
        if len(cities) >= LEAST_TOWNS and not any(own & set(words(c.label)) for c in cities if c.size >= 5):
            large.append(one)
    large = large or fit
    near = [r for r in large if abs(r.size - item.size) <= 1 or not item.size] or large
    # Many provinces are named after their towns, so that one may stand in where too few regions are known.
    towns = [c for c in kb.pool("city", country=country) if c.size >= 5]
    return tuple(tuple(pool) for pool in (near, large, fit, towns) if pool)


@lru_cache(maxsize=512)
def _capitals(kb: KnowledgeBase, country: str) -> frozenset[int]:
    home = country_item(kb, country)
    return frozenset(c.id for c in kb.related(home, "capital")) if home is not None else frozenset()


def capital(kb: KnowledgeBase, country: str, id: int) -> bool:
    """Whether the city with this number is a capital of the country."""
    return id in _capitals(kb, country)


@lru_cache(maxsize=4096)
def region_item(kb: KnowledgeBase, country: str, region: str) -> Item | None:
    """The region with a code of ISO 3166-2."""
    return next((r for r in kb.pool("region", country=country) if r.region == region), None) if region else None


def _alike(a: Item, b: Item) -> bool:
    """Whether two names have the same words for their sort (Lake, Airport), or none of them has any."""
    return _sorts() & set(words(a.label)) == _sorts() & set(words(b.label))


def _plays(policy: Policy, label: str) -> bool:
    return policy.looks_for(label) and policy.rule(label).operator == "pseudonym"


def _named(cast: Cast) -> tuple[frozenset[str], frozenset[int], dict[str, dict[str, Item]]]:
    """Codes of the countries that the document names by themselves; numbers of its regions; and what it calls the
    people of which country, in plain form.
    """
    peoples: dict[str, dict[str, Item]] = {}
    lands: set[str] = set()
    regions: set[int] = set()
    kb, lineage = cast.kb, cast.setting.policy.taxonomy.lineage
    for one in cast.wanted:
        family = lineage(one.entity.label)
        for surface in one.surfaces[:1]:
            if family[-1] == "ORIGIN":
                bare = _ARTICLE.sub("", plain(surface))
                for item in kb.find(bare, ("nationality",))[:1]:
                    peoples.setdefault(item.country, {})[bare] = item
            elif family[-1] == "LOCATION" and "POSTAL_CODE" not in family:
                parts = [
                    plain(part.strip(" 0123456789-")).removeprefix("the ") for part in surface[:_LONGEST].split(",")
                ]
                towns = len(parts) == 1 and "COUNTRY" not in family
                for part in parts:
                    # Georgia, Luxembourg, Singapore: what the detectors did not take for a country is none.
                    if not (towns and kb.find(part, ("city", "region"))):
                        lands.update(item.country for item in kb.find(part, ("country",))[:1])
                    if not (towns and kb.find(part, ("city",))) or "REGION" in family:
                        regions.update(item.id for item in kb.find(part, ("region",)))
                for code in _CODE.findall(surface[:_LONGEST]):
                    known = (region_item(kb, land, code) for land in CODED)
                    regions.update(item.id for item in known if item is not None)
    return frozenset(lands - {""}), frozenset(regions), peoples


def _families(cast: Cast) -> frozenset[str]:
    """Family names of the document's people, in plain form."""
    lineage = cast.setting.policy.taxonomy.lineage
    out: set[str] = set()
    for one in cast.wanted:
        if lineage(one.entity.label)[-1] == "PERSON":
            for surface in one.surfaces:
                name, _ = person(plain(surface))
                name = tuple(word for word in name if word[0] != "+")
                if len(name) > 1 and len(name[-1]) > 2:
                    out.add(name[-1])
    return frozenset(out)


class Atlas:
    """The places of one document and where they go. Mutable; lives in its :class:`Cast`."""

    def __init__(self, cast: Cast) -> None:
        policy = cast.setting.policy
        self.cast = cast
        self.kb = cast.kb
        lands, regions, peoples = _named(cast)
        self.peoples = peoples
        moves = _plays(policy, "COUNTRY")
        self.lands = lands if moves else frozenset()  # named by themselves
        self.named = (lands | peoples.keys()) - {""} if moves else frozenset()  # or by their people
        self.named_regions = regions if _plays(policy, "REGION") else frozenset()
        self.families = _families(cast)
        self.languages_move = _plays(policy, "LANGUAGE")
        self.language = policy.language or "en"
        self.main = ""  # the document's main country
        self.target = ""  # where the option moves it
        self.present: set[str] = set()  # countries that the document's places belong to
        self._done: dict[int, Item | None] = {}

    @classmethod
    def of(cls, cast: Cast) -> Atlas:
        """The atlas of a cast; one is made where there is none yet."""
        if cast.atlas is None:
            cast.atlas = cls(cast)
        return cast.atlas

    def name(self, items: Iterable[Item]) -> None:
        """Say that the document names these places, so that its countries and regions are replaced."""
        found = list(items)
        if _plays(self.cast.setting.policy, "COUNTRY"):
            self.lands |= {item.country for item in found if item.kind == "country"}
            self.named |= self.lands
        if _plays(self.cast.setting.policy, "REGION"):
            self.named_regions |= {item.id for item in found if item.kind == "region"}

    def settle(self, countries: Iterable[str], wanted: Iterable[Wanted]) -> None:
        """Say which countries the document's places belong to; once the main one is known it stays.

        Args:
            countries: codes, one for each place, in reading order.
            wanted: entities whose rules may move the main country.
        """
        asked = next((str(w.options["country"]) for w in wanted if w.options.get("country")), "")
        if not self.main:
            votes = Counter(code for code in countries if code)
            self.present |= votes.keys()
            self.main = max(votes, key=lambda code: votes[code], default="")
        if asked and not self.target:
            self.target, self.main = asked, self.main or self.home

    @property
    def home(self) -> str:
        """Where places lie of which nothing is known: in the main country, else where the language is at home."""
        homes = patterns()["places"]["home"]
        return self.main or homes.get(self.language.partition("-")[0], "US")

    # Countries

    def country(self, code: str) -> str:
        """Code of the country that a country's places go to; its own where it stays."""
        if not code:
            return code
        if self.target and code == self.main:
            return self.target
        return (self.other_country(code) or code) if code in self.named else code

    def other_country(self, code: str) -> str | None:
        """Code of the country that plays a country; None where none will do."""
        if self.target and code == self.main:
            return self.target if self.target != code else None
        pools = _country_pools(self.kb, code, self.languages_move)

        def propose(attempt: int) -> str | None:
            # The choice must lie in no other country of the document: Lisbon cannot play a part while it is on stage.
            item = walk(self.cast, pools, "country", code, attempt)
            return item and item.country

        def shown(value: str) -> str:
            item = country_item(self.kb, value)
            if value in self.present or value == self.target or item is None or not self._tells(code, value):
                return " "  # never free
            return f"{telling(item.label)} {telling(self.kb.label(item, self.language))}"

        return self.cast.ledger.assign("country", code, propose, telling=shown)

    def _tells(self, code: str, to: str) -> bool:
        """Whether what the document calls a country and its people differs for another country, and stands nowhere:
        not German and Germans, where all are Swiss, nor Brunei and Bruneian, where both are New Zealand.
        """
        said = self.peoples.get(code, {})
        names = {plain(self.people(item, to, bare) or "") for bare, item in said.items()} - {""}
        land = country_item(self.kb, to) if code in self.lands else None
        if any(
            self.cast.ledger.holds(words(name)) or (land and name == plain(self.kb.label(land, self.language)))
            for name in names
        ):
            return False
        return len(said) < 2 or all(self.tells(item, to) for item in set(said.values()))

    def tells(self, item: Item, to: str) -> bool:
        """The same for one nationality."""
        said = [bare for bare, other in self.peoples.get(item.country, {}).items() if other == item]
        return len({plain(self.people(item, to, bare) or "") for bare in said}) == len(said)

    def people(self, item: Item, to: str, surface: str, used: str = "") -> str | None:
        """What the people of a country are called, in the form in which a surface calls those of another.

        Args:
            item: of kind nationality: whom the surface names.
            to: code of the country.
            surface: adjective, noun or plural, in any language that the knowledge base has.
            used: the form that a surface has there which is written like others: ``German``, ``a German``.
        """
        language, form = self.form(item, surface, used)
        for other in self.kb.pool("nationality", country=to):
            labels = self.kb.labels(other)
            text = labels.get((language, form)) or labels.get((language, "adjective"))
            if text is None and language == "en":
                text = other.label
            if text:
                return text
        return None

    def form(self, item: Item, surface: str, used: str = "") -> tuple[str, str]:
        """The language and the form of a nationality that a surface is; the policy's language first."""
        bare = plain(surface)
        labels = sorted(self.kb.labels(item).items(), key=lambda pair: (pair[0][0] != self.language, pair[0]))
        for form in (used, "adjective", "noun", "plural"):
            for key, text in labels:
                if key == (self.language, form) and plain(text) == bare:
                    return key
        return next((key for key, text in labels if plain(text) == bare), (self.language, "adjective"))

    # Places

    def keeps(self, kind: str) -> bool:
        """Whether the policy lets countries (``country``) or regions (``region``) be seen."""
        return not _plays(self.cast.setting.policy, kind.upper())

    def plays(self, item: Item) -> bool:
        """Whether the policy puts another country or region for this one."""
        if item.kind == "country":
            return item.country in self.named or (bool(self.target) and item.country == self.main)
        return item.kind != "region" or item.id in self.named_regions or self.country(item.country) != item.country

    def substitute(self, item: Item) -> Item | None:
        """What plays a place of the knowledge base; None where nothing will do."""
        if item.id not in self._done:
            self._done[item.id] = self._chosen(item)
        return self._done[item.id]

    def _chosen(self, item: Item) -> Item | None:
        if item.kind == "country":
            code = self.other_country(item.country)
            return country_item(self.kb, code) if code else None
        if item.kind == "city":
            return self.city(item.label, item.country, item.region, item.size, item.id)
        if item.kind == "region":
            return self._region(item)
        if item.kind == "continent":
            others = [c for c in self.kb.pool("continent") if c.id != item.id and c.label != "Antarctica"]
            plain_ones = [c for c in others if " " not in c.label]
            # "North Africa" must not become "North South America".
            pools: tuple[Sequence[Item], ...] = (others if " " in item.label else plain_ones,)
        else:
            to = self.country(item.country)
            wide = [o for o in self.kb.pool(item.kind, industry=item.industry) if o.id != item.id]
            there = [o for o in wide if o.country == to]
            pools = ([o for o in there if _alike(o, item)], there, [o for o in wide if _alike(o, item)], wide)
        return self.assign(item.kind, plain(item.label), pools)

    def _region(self, item: Item) -> Item | None:
        if not item.country:  # Eastern Europe
            others = [r for r in self.kb.pool("region") if not r.country and r.id != item.id]
            return self.assign("region", plain(item.label), (others,))
        to = self.country(item.country)
        return self.assign("region", f"{plain(item.label)}>{to}", _region_pools(self.kb, to, item))

    def city(self, label: str, country: str, region: str = "", size: int = 4, id: int = 0) -> Item | None:
        """The city that plays a city, also one that the knowledge base does not have.

        Args:
            label: its name.
            country: code of the country where it lies.
            region: code of its region there; empty: unknown.
            size: the power of ten of its inhabitants.
            id: of its item; 0: it has none.
        """
        to = self.country(country)
        away = country_item(self.kb, to) if to != country and capital(self.kb, country, id) else None
        state = region_item(self.kb, country, region)
        there = region if to == country and (state is None or state.id not in self.named_regions) else ""
        if away is None and not there and state is not None:
            goal = self.substitute(state)
            there = goal.region if goal is not None and goal.kind == "region" and goal.country == to else ""
        pools: tuple[Sequence[Item], ...] = _city_pools(self.kb, to, there, size)
        if away is not None:
            pools = (self.kb.related(away, "capital"), *pools)
        return self.assign("city", f"{plain(label)}.{region}.{country}>{to}.{there}", pools, id)

    def assign(self, kind: str, key: str, pools: Sequence[Sequence[Item]], but: int = 0) -> Item | None:
        """The item that plays ``key``, by the ledger; pools are tried in turn, the item numbered ``but`` never."""
        shown: dict[str, Item] = {}

        def propose(attempt: int) -> str | None:
            item = walk(self.cast, pools, kind, key, attempt)
            if item is None or item.id == but:
                return item and " "  # never free
            value = f"{item.label}|{item.country}|{item.region}"
            shown[value] = item
            return value

        def told(value: str) -> str:
            label = value.partition("|")[0]
            item = shown.get(value) or self._shown(kind, value)
            there = self.kb.label(item, self.language) if item is not None and self.language != "en" else label
            return telling(label) if there == label else f"{telling(label)} {telling(there)}"

        value = self.cast.ledger.assign(kind, key, propose, telling=told)
        if value is None or value in shown:
            return shown.get(value) if value else None
        return self._shown(kind, value)

    def _shown(self, kind: str, value: str) -> Item | None:
        """The item of a value that was given before, or is the vault's, maybe written with another knowledge base."""
        label, _, rest = value.partition("|")
        country, _, region = rest.partition("|")
        found = self.kb.find(label, (kind,), country) or self.kb.find(label, KINDS, country)
        return next((i for i in found if i.region == region and i.label == label), found[0] if found else None)
