"""Reads a knowledge base: facts on names, similar items, relations. It needs only sqlite3.

The hierarchy and its use are those of P4, appendix A.1: an entity's siblings have the same parents through instance_of,
subclass_of and part_of; places are filtered by kind and country, organisations by industry and country.
"""

from __future__ import annotations

import math
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from allonym.errors import KnowledgeBaseError, UnknownNameError
from allonym.text.names import PARTICLES, normalize_surface

F = TypeVar("F", bound=Callable[..., Any])
APPLICATION = 0x414C4B42
SCHEMA = 1
SHIPPED = Path(__file__).with_name("default.sqlite").resolve()

PLACES = ("country", "region", "city", "street", "facility", "continent", "natural")
ORGANISATIONS = tuple("company university school hospital bank newspaper party agency team museum band org".split())
_GROUPS = ("language", "nationality", "religion", "ethnic_group", "political_group", "occupation")
KINDS = (*PLACES, *ORGANISATIONS, *_GROUPS, "product", "event", "work", "award", "law", "title", "class")
HIERARCHY = ("instance_of", "subclass_of", "part_of")

_TABLES = frozenset("meta source entity label lookup relation origin name ending famous".split())
_COLUMNS = "e.id, e.kind, e.label, e.country, e.region, e.population, e.industry"
# Powers of ten by which an item must be larger whose name this is in another language, or whose alias it is.
_FOREIGN = (0.0, 1.0, 1.1)
_COUNTRY = 3.0  # the same for items that are no countries
_UNSEEN = 0.02  # weight of an origin that does not have a name, so that one odd word does not rule it out
_FAMILY = 1.25  # weight of the last word, where the others have 1
_HOME = 2.0  # prior odds of the default origin against any other

_UNFOLDED = "ħŧȷɔɛŋɓɖɗƙƴ"  # letters that the look-up keys of knowledge base files hold as they are


def fold_key(text: str) -> str:
    """Return the plain form by which a knowledge base is searched: case folded, no diacritics, ``ł`` as ``l``."""
    return normalize_surface(text, unfolded=_UNFOLDED) if text else ""


class Item(NamedTuple):
    """An entity of a knowledge base: a place, an organisation, a people, an occupation ...

    Attributes:
        id: its number in this knowledge base.
        kind: one of :data:`KINDS`.
        label: its name.
        country: ISO 3166-1 alpha-2; empty: none, or unknown.
        region: code of the region within the country; empty: none, or unknown.
        size: class 0 to 9, the power of ten of its population; 0 also where that is unknown.
        industry: an organisation's trade, an occupation's field, the sort of a natural place or facility.
    """

    id: int
    kind: str
    label: str
    country: str
    region: str
    size: int
    industry: str


class NameFact(NamedTuple):
    """What is known of a word as a name of people.

    Attributes:
        part: ``first`` or ``last``.
        origin: language of origin.
        gender: ``f``, ``m``, ``n`` (either) or empty.
        weight: how typical it is of its language of origin, from 1 to 100.
    """

    part: str
    origin: str
    gender: str
    weight: int


def _make_item(row: Sequence[Any]) -> Item:
    number, kind, label, country, region, population, industry = row
    return Item(number, kind, label, country, region, len(str(population)) - 1, industry)


def _cache_results(size: int | None) -> Callable[[F], F]:
    """Cache the results of a method of a knowledge base, whose file never changes."""
    return cast("Callable[[F], F]", lru_cache(maxsize=size))


_open: dict[Path, KnowledgeBase] = {}
_opening = threading.Lock()


class KnowledgeBase:
    """A knowledge base file, open for reading. Safe to share between threads, and by processes that fork."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._opened: tuple[int, sqlite3.Connection, threading.Lock] | None = None
        self._check_file()

    @classmethod
    def open(cls, path: str | Path | None = None) -> KnowledgeBase:
        """Return the knowledge base in a file, or the one that comes with the package. It is opened once per process.

        Raises:
            KnowledgeBaseError: the file is missing, damaged, something else, or newer than this version of allonym.
        """
        resolved = SHIPPED if path is None else Path(path).resolve()
        with _opening:
            if resolved not in _open:
                _open[resolved] = cls(resolved)
            return _open[resolved]

    def __repr__(self) -> str:
        return f"KnowledgeBase({str(self.path)!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return (KnowledgeBase.open, (None if self.path == SHIPPED else self.path,))

    # Names of people

    @_cache_results(1024)
    def names(self, part: str, origin: str = "", gender: str = "") -> tuple[str, ...]:
        """Return names that may replace others, sorted.

        No common words are among them, no names that only famous people bear, none that hurt.

        Args:
            part: ``first`` or ``last``.
            origin: language of origin; empty: all.
            gender: ``f``, ``m`` or ``n`` (either); empty: all. Family names that have a form for women and one for men
                are under ``f`` and ``m``, where those that have one form for both are given too.
        """
        where, args = "part = ? AND usable", [part]
        if origin:
            where += " AND origin = (SELECT id FROM origin WHERE name = ?)"
            args.append(origin)
        if gender:
            where += " AND gender IN (?, '')" if part == "last" else " AND gender = ?"
            args.append(gender)
        rows = self._query_rows(f"SELECT folded, name FROM name WHERE {where}", *args)
        return tuple(sorted({name or folded.capitalize() for folded, name in rows}))

    def list_known_names(self, part: str) -> tuple[str, ...]:
        """List all names of a part, ``first`` or ``last``, in plain form: also those that may not replace others."""
        return tuple(str(row[0]) for row in self._query_rows("SELECT DISTINCT folded FROM name WHERE part = ?", part))

    @_cache_results(8192)
    def name_facts(self, word: str) -> tuple[NameFact, ...]:
        """Return what is known of a word as a name, the most typical first; names that may not replace others too."""
        sql = "SELECT n.part, o.name, n.gender, n.weight FROM name n JOIN origin o ON o.id = n.origin"
        facts = {NameFact(*row) for row in self._query_rows(f"{sql} WHERE n.folded = ?", fold_key(word))}
        return tuple(sorted(facts, key=lambda f: (-f.weight, f)))

    def origins(self) -> tuple[str, ...]:
        """Return all languages of origin, sorted."""
        return tuple(str(row[0]) for row in self._query_rows("SELECT name FROM origin ORDER BY name"))

    def origin(self, words: Sequence[str], default: str = "english") -> str:
        """Return the likeliest language of origin of a name: by its words, else by how they end.

        Args:
            words: given names first, family name last; initials and unknown words do no harm.
            default: the origin where nothing speaks for another; it also has the benefit of the doubt.
        """
        evidence: list[tuple[dict[str, float], float]] = []
        particles = ""
        for i, word in enumerate(words):
            if fold_key(word) in PARTICLES and i + 1 < len(words):
                particles += f"{word} "
                continue
            family = i > 0 and i == len(words) - 1
            part = "last" if family else "first" if len(words) > 1 else ""
            shares = self._get_origin_shares(particles + word, part) or self._get_origin_shares(word, part)
            if not shares and (family or len(words) == 1):
                shares = self._get_ending_shares(fold_key(word))
            if shares:
                evidence.append((shares, _FAMILY if family else 1.0))
        others = (origin for shares, _ in evidence for origin in shares if origin != default)
        score = {default: math.log(_HOME)} | dict.fromkeys(others, 0.0)
        for origin in score:
            score[origin] += sum(weight * math.log(shares.get(origin, 0.0) + _UNSEEN) for shares, weight in evidence)
        counts = self._count_names_by_origin()
        return max(sorted(score), key=lambda o: (round(score[o], 9), o == default, counts.get(o, 0)))

    @_cache_results(None)
    def _count_names_by_origin(self) -> dict[str, int]:
        """Return the number of names of each origin: of two that are equally likely, the greater one wins."""
        sql = "SELECT o.name, count(*) FROM name n JOIN origin o ON o.id = n.origin GROUP BY n.origin"
        return dict(self._query_rows(sql))

    def _get_origin_shares(self, word: str, part: str) -> dict[str, float]:
        """Map each origin to how typical a word is of it, from 0 to 1."""
        facts = self.name_facts(word)
        of_part = [fact for fact in facts if fact.part == part]
        # The most typical one comes first, and must not be overwritten by the others.
        return {fact.origin: fact.weight / 100 for fact in reversed(of_part or facts)}

    def _get_ending_shares(self, word: str) -> dict[str, float]:
        sql = "SELECT o.name, e.share FROM ending e JOIN origin o ON o.id = e.origin WHERE e.ending = ?"
        for ending in (word[-3:], word[-2:]) if len(word) >= 4 else ():
            if rows := self._query_rows(sql, ending):
                total = sum(share for _, share in rows)
                return {origin: share / total for origin, share in rows}
        return {}

    def gender(self, given: str, origin: str = "") -> str:
        """Return ``f``, ``m``, ``n`` (either) or empty (unknown) for a given name, in one origin or in all."""
        facts = [f for f in self.name_facts(given) if f.part == "first" and f.gender]
        facts = [f for f in facts if f.origin == origin] or facts
        total = sum(f.weight for f in facts)
        if not total:
            return ""
        for gender in ("f", "m"):
            if sum(f.weight for f in facts if f.gender == gender) >= 0.8 * total:
                return gender
        return "n"

    @_cache_results(8192)
    def famous(self, given: str, family: str) -> bool:
        """Whether a well-known person bears this name."""
        sql = "SELECT 1 FROM famous WHERE given = ? AND family = ?"
        return bool(given and family and self._query_rows(sql, fold_key(given), fold_key(family)))

    # Items

    def find(self, text: str, kinds: Iterable[str] = (), country: str = "", language: str = "") -> tuple[Item, ...]:
        """Return the items with this name, in any language, whatever its case and diacritics; the likeliest first.

        Args:
            text: the name.
            kinds: only these; empty: all.
            country: only those that lie there, ISO 3166-1 alpha-2.
            language: ISO 639-1 of the text. Names in this language, in English or of the place itself come before
                names in other languages and aliases, unless the item of these is ten times larger.
        """
        return self._find_by_key(fold_key(text), tuple(kinds), country, language)

    @_cache_results(8192)
    def _find_by_key(self, folded: str, kinds: tuple[str, ...], country: str, language: str) -> tuple[Item, ...]:
        sql = f"SELECT {_COLUMNS}, l.rank, l.languages FROM lookup l JOIN entity e ON e.id = l.entity"
        ordered: list[tuple[float, int, Item]] = []
        for *columns, rank, languages in self._query_rows(f"{sql} WHERE l.folded = ?", folded):
            item, population = _make_item(columns), columns[5]
            if (kinds and item.kind not in kinds) or (country and item.country != country):
                continue
            size = math.log10(population + 1) + (_COUNTRY if item.kind == "country" else 0.0)
            distance = _FOREIGN[0 if language and f" {language} " in languages else rank]
            ordered.append((distance - size, item.id, item))
        return tuple(item for _, _, item in sorted(ordered))

    @_cache_results(8192)
    def item(self, id: int) -> Item:
        """Return the item with this number.

        Raises:
            KnowledgeBaseError: there is none.
        """
        items = self._select_items("WHERE e.id = ?", id)
        if not items:
            raise KnowledgeBaseError(f"{self.path.name} has no entity {id}")
        return items[0]

    @_cache_results(1024)
    def siblings(self, item: Item) -> tuple[Item, ...]:
        """Return the items that may replace one (P4, A.1), sorted by id, without itself.

        These are the children of its parents through instance_of, subclass_of and part_of, of its own kind; where there
        are none that fit, all of that kind. Places: in the same country, and of the same sort; organisations: of the
        same industry and country; countries: of the same continent.
        """
        sql = "SELECT property, target FROM relation WHERE entity = ? AND property IN (?, ?, ?)"
        parents = self._query_rows(sql, item.id, *HIERARCHY)
        sql = "JOIN relation r ON e.id = r.entity WHERE r.property = ? AND r.target = ? AND e.kind = ? AND e.usable"
        children = {child for parent in parents for child in self._select_items(sql, *parent, item.kind)}
        located = item.kind in PLACES + ORGANISATIONS and item.kind != "country"

        def fits(other: Item) -> bool:
            is_near = (other.country, other.industry) == (item.country, item.industry)
            return other.id != item.id and (is_near or not located)

        alike = self.pool(item.kind, country=item.country if located else "")
        return tuple(filter(fits, sorted(children))) or tuple(filter(fits, alike))

    @_cache_results(4096)
    def pool(
        self, kind: str, *, country: str = "", region: str = "", industry: str = "", size: int | None = None
    ) -> tuple[Item, ...]:
        """Return all items of a kind that may replace others, sorted by id; empty and None do not filter.

        Raises:
            UnknownNameError: no such kind.
        """
        if kind not in KINDS:
            raise UnknownNameError("kind", kind, KINDS)
        if region or industry or size is not None:
            items = (i for i in self.pool(kind, country=country) if not region or i.region == region)
            items = (i for i in items if not industry or i.industry == industry)
            return tuple(i for i in items if size is None or i.size == size)
        where, args = ("AND e.country = ?", [country]) if country else ("", [])
        return tuple(self._select_items(f"WHERE e.kind = ? AND e.usable {where} ORDER BY e.id", kind, *args))

    def label(self, item: Item, language: str = "en") -> str:
        """Return an item's name in a language; where that is unknown, its own label."""
        labels = self._get_labels(item.id)
        return labels.get((language, "")) or labels.get((language, "adjective")) or item.label

    def labels(self, item: Item) -> dict[tuple[str, str], str]:
        """Return (language, form) to text, without the item's own label.

        Forms: empty (the name); nationalities have ``adjective``, ``noun`` and ``plural``; streets ``stem`` and
        ``pattern``.
        """
        return dict(self._get_labels(item.id))

    @_cache_results(8192)
    def _get_labels(self, id: int) -> dict[tuple[str, str], str]:
        rows = self._query_rows("SELECT language, form, text FROM label WHERE entity = ?", id)
        return {(language, form): text for language, form, text in rows}

    @_cache_results(8192)
    def related(self, item: Item, property: str) -> tuple[Item, ...]:
        """Return the items that a relation leads to, the most important first.

        Args:
            item: where it starts.
            property: ``capital``, ``part_of``, ``instance_of``, ``subclass_of``, ``language``, ``country`` ...
        """
        sql = "JOIN relation r ON e.id = r.target WHERE r.entity = ? AND r.property = ? ORDER BY r.position"
        items = self._select_items(sql, item.id, property)
        # The columns of the table are relations too.
        sql = "WHERE kind = ? AND country = ? ORDER BY id"
        if property == "part_of" and item.region and item.kind != "region":
            items += [i for i in self._select_items(sql, "region", item.country) if i.region == item.region]
        if property in ("part_of", "country") and item.country and item.kind != "country":
            items += self._select_items(sql, "country", item.country)
        return tuple(dict.fromkeys(items))

    @_cache_results(4096)
    def inverse(self, item: Item, property: str) -> tuple[Item, ...]:
        """Return the items that lead to one by a relation; the largest first."""
        select = f"SELECT {_COLUMNS} FROM entity e"
        sql = f"{select} JOIN relation r ON e.id = r.entity WHERE r.target = ? AND r.property = ?"
        rows = self._query_rows(sql, item.id, property)
        if property in ("part_of", "country") and item.kind == "country":
            rows += self._query_rows(f"{select} WHERE country = ? AND kind != 'country'", item.country)
        elif property == "part_of" and item.kind == "region":
            sql = f"{select} WHERE country = ? AND region = ? AND kind != 'region'"
            rows += self._query_rows(sql, item.country, item.region)
        return tuple(_make_item(row) for row in sorted(set(rows), key=lambda row: (-row[5], row[0])))

    # The file

    def sources(self) -> tuple[tuple[str, str, str, str, str], ...]:
        """Return name, version, licence, credit line, and what was taken, of every source."""
        return tuple(self._query_rows("SELECT name, version, licence, credit, taken FROM source ORDER BY id"))

    def counts(self) -> dict[str, tuple[int, int]]:
        """Return for each kind the number of its items, and of those that may replace others."""
        rows = self._query_rows("SELECT kind, count(*), sum(usable) FROM entity GROUP BY kind ORDER BY kind")
        return {kind: (count, usable) for kind, count, usable in rows}

    def endings(self) -> tuple[tuple[str, str, int], ...]:
        """Return how names end: ending, origin, share of the origin's names per 100,000."""
        sql = "SELECT e.ending, o.name, e.share FROM ending e JOIN origin o ON o.id = e.origin"
        return tuple(self._query_rows(f"{sql} ORDER BY e.ending, o.name"))

    def _select_items(self, sql: str, *args: object) -> list[Item]:
        return list(map(_make_item, self._query_rows(f"SELECT {_COLUMNS} FROM entity e {sql}", *args)))

    def _query_rows(self, sql: str, *args: object) -> list[tuple[Any, ...]]:
        connection, lock = self._get_connection()
        try:
            with lock:
                return connection.execute(sql, args).fetchall()
        except UnicodeEncodeError:
            return []  # half a surrogate pair: no name has one
        except sqlite3.DatabaseError:
            raise KnowledgeBaseError(f"{self.path.name} is damaged") from None

    def _get_connection(self) -> tuple[sqlite3.Connection, threading.Lock]:
        if self._opened is None or self._opened[0] != os.getpid():  # a child process needs a connection of its own
            uri = f"{self.path.as_uri()}?mode=ro&immutable=1"
            connection = sqlite3.connect(uri, uri=True, check_same_thread=False, cached_statements=64)
            weakref.finalize(self, connection.close)
            self._opened = (os.getpid(), connection, threading.Lock())
        return self._opened[1:]

    def _check_file(self) -> None:
        if not self.path.is_file():
            raise KnowledgeBaseError(f"no knowledge base at {self.path}")
        try:
            connection, _ = self._get_connection()
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        except sqlite3.DatabaseError:
            raise KnowledgeBaseError(f"{self.path.name} is not a knowledge base, or it is damaged") from None
        if application != APPLICATION:
            raise KnowledgeBaseError(f"{self.path.name} is not a knowledge base")
        if version > SCHEMA:
            limit = f"this version of allonym reads up to {SCHEMA}; update allonym"
            raise KnowledgeBaseError(f"{self.path.name} has schema {version}, {limit}")
        missing = _TABLES - tables
        if missing:
            raise KnowledgeBaseError(f"{self.path.name} is damaged: it lacks the table {min(missing)}")
