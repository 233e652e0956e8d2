"""Reading a knowledge base: what a name is, what is like it, what belongs to it. Only sqlite3, only reading.

The hierarchy and its use are those of P4, appendix A.1: an entity's siblings are what has the same parents through
instance_of, subclass_of and part_of; places are filtered by kind and country, organisations by industry and country.
"""

from __future__ import annotations

import math
import os
import sqlite3
import threading
import weakref
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from allonym.errors import KnowledgeBaseError, UnknownNameError
from allonym.text.names import PARTICLES, plain

APPLICATION = 0x414C4B42
SCHEMA = 1
SHIPPED = Path(__file__).with_name("default.sqlite")

PLACES = ("country", "region", "city", "street", "facility", "continent", "natural")
ORGANISATIONS = (
    *("company", "university", "school", "hospital", "bank", "newspaper", "party", "agency", "team", "museum", "band"),
    "org",
)
OTHERS = (
    *("language", "nationality", "religion", "ethnic_group", "political_group", "occupation", "product", "event"),
    *("work", "award", "law", "title", "class"),
)
KINDS = PLACES + ORGANISATIONS + OTHERS
HIERARCHY = ("instance_of", "subclass_of", "part_of")

_TABLES = ("meta", "source", "entity", "label", "lookup", "relation", "origin", "name", "ending", "famous")
_COLUMNS = "e.id, e.kind, e.label, e.country, e.region, e.population, e.industry"
_FOREIGN = (0.0, 1.0, 1.1)  # powers of ten by which a thing must be bigger that is called so elsewhere, or by the way
_COUNTRY = 3.0  # the same for things that are no countries
_UNSEEN = 0.02  # weight of an origin that does not have a name, so that one odd word does not rule it out
_FAMILY = 1.25  # how much more the last word tells than the others
_HOME = 2.0  # how much likelier the default origin is than any other, before the words are looked at

_UNFOLDED = "ħŧȷɔɛŋɓɖɗƙƴ"  # letters that the look-up keys of knowledge base files hold as they are


def fold(text: str) -> str:
    """The plain form by which a knowledge base is searched: case folded, no diacritics, ``ł`` as ``l`` and so on."""
    return plain(text, keep=_UNFOLDED) if text else ""


class Item(NamedTuple):
    """A thing that bears a name.

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
    """What is known of a part of people's names: ``part`` is ``first`` or ``last``, ``gender`` ``f``, ``m``, ``n``
    (either) or empty, ``weight`` from 1 to 100 says how typical it is of its language of origin."""

    part: str
    origin: str
    gender: str
    weight: int


def _item(row: tuple[int, str, str, str, str, int, str]) -> Item:
    number, kind, label, country, region, population, industry = row
    return Item(number, kind, label, country, region, len(str(population)) - 1, industry)


def _alike(item: Item, pool: Iterable[Item], located: bool) -> tuple[Item, ...]:
    """Those of a pool that are in the country of ``item`` and of its sort or industry, where it is ``located``."""
    return tuple(
        one
        for one in pool
        if one.id != item.id and (not located or (one.country == item.country and one.industry == item.industry))
    )


_open: dict[Path, KnowledgeBase] = {}
_opening = threading.Lock()


class KnowledgeBase:
    """A knowledge base file, open for reading. Safe to share between threads, and by processes that fork."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._held: tuple[int, sqlite3.Connection, threading.Lock] | None = None
        self._check()
        self._names = lru_cache(maxsize=1024)(self._read_names)
        self._facts = lru_cache(maxsize=8192)(self._read_facts)
        self._found = lru_cache(maxsize=8192)(self._read_found)
        self._pools = lru_cache(maxsize=4096)(self._read_pool)
        self._siblings = lru_cache(maxsize=1024)(self._read_siblings)
        self._related = lru_cache(maxsize=8192)(self._read_related)
        self._inverse = lru_cache(maxsize=4096)(self._read_inverse)
        self._labels = lru_cache(maxsize=8192)(self._read_labels)
        self._items = lru_cache(maxsize=8192)(self._read_item)
        self._known = cache(self._read_known)
        self._famous = lru_cache(maxsize=8192)(self._read_famous)

    @classmethod
    def open(cls, path: str | Path | None = None) -> KnowledgeBase:
        """The knowledge base in a file, or the one that comes with the package. Opened once per process.

        Raises:
            KnowledgeBaseError: the file is missing, damaged, something else, or newer than this version of allonym.
        """
        where = (SHIPPED if path is None else Path(path)).resolve()
        with _opening:
            known = _open.get(where)
            if known is None:
                known = _open[where] = cls(where)
            return known

    def __repr__(self) -> str:
        return f"KnowledgeBase({str(self.path)!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return (KnowledgeBase.open, (None if self.path == SHIPPED.resolve() else self.path,))

    # Names of people

    def names(self, part: str, origin: str = "", gender: str = "") -> tuple[str, ...]:
        """Names that may stand for others, sorted: no common words, none that only famous people bear, none that hurt.

        Args:
            part: ``first`` or ``last``.
            origin: language of origin; empty: all.
            gender: ``f``, ``m`` or ``n`` (either); empty: all. Family names that have a form for women and one for men
                are under ``f`` and ``m``, where those that have one form for both are given too.
        """
        return self._names(part, origin, gender)

    def _read_names(self, part: str, origin: str, gender: str) -> tuple[str, ...]:
        where, args = "part = ? AND usable", [part]
        if origin:
            where += " AND origin = (SELECT id FROM origin WHERE name = ?)"
            args.append(origin)
        if gender:
            where += " AND gender IN (?, '')" if part == "last" else " AND gender = ?"
            args.append(gender)
        rows = self._rows(f"SELECT folded, name FROM name WHERE {where}", *args)
        return tuple(sorted({name or folded.capitalize() for folded, name in rows}))

    def name_facts(self, word: str) -> tuple[NameFact, ...]:
        """What is known of a word as a name, the most typical first; those that may not stand for others included."""
        return self._facts(fold(word))

    def _read_facts(self, folded: str) -> tuple[NameFact, ...]:
        rows = self._rows(
            "SELECT n.part, o.name, n.gender, n.weight FROM name n JOIN origin o ON o.id = n.origin WHERE n.folded = ?",
            folded,
        )
        return tuple(sorted({NameFact(*row) for row in rows}, key=lambda f: (-f.weight, f)))

    def origins(self) -> tuple[str, ...]:
        """All languages of origin, sorted."""
        return tuple(str(row[0]) for row in self._rows("SELECT name FROM origin ORDER BY name"))

    def origin(self, words: Sequence[str], default: str = "english") -> str:
        """The likeliest language of origin of a name: by its words, else by how they end.

        Args:
            words: given names first, family name last; initials and unknown words do no harm.
            default: the origin where nothing speaks for another; it also has the benefit of the doubt.
        """
        told: list[tuple[dict[str, float], float]] = []
        particles = ""
        for i, word in enumerate(words):
            if fold(word) in PARTICLES and i + 1 < len(words):
                particles += f"{word} "
                continue
            family = i > 0 and i == len(words) - 1
            part = "last" if family else "first" if len(words) > 1 else ""
            shares = self._shares(particles + word, part) or self._shares(word, part)
            if not shares and (family or len(words) == 1):
                shares = self._ending(fold(word))
            if shares:
                told.append((shares, _FAMILY if family else 1.0))
        score = {default: math.log(_HOME)} | dict.fromkeys(
            (o for shares, _ in told for o in shares if o != default), 0.0
        )
        for origin in score:
            score[origin] += sum(weight * math.log(shares.get(origin, 0.0) + _UNSEEN) for shares, weight in told)
        known = self._known()
        return max(sorted(score), key=lambda o: (round(score[o], 9), o == default, known.get(o, 0)))

    def _read_known(self) -> dict[str, int]:
        """How many names of each origin are known: of two that are equally likely, the greater one is it."""
        sql = "SELECT o.name, count(*) FROM name n JOIN origin o ON o.id = n.origin GROUP BY n.origin"
        return dict(self._rows(sql))

    def _shares(self, word: str, part: str) -> dict[str, float]:
        """Origin to how typical a word is of it, from 0 to 1."""
        every = self.name_facts(word)
        wanted = [fact for fact in every if fact.part == part]
        # The most typical one comes first, and must not be overwritten by the others.
        return {fact.origin: fact.weight / 100 for fact in reversed(wanted or every)}

    def _ending(self, word: str) -> dict[str, float]:
        if len(word) < 4:
            return {}
        for length in (3, 2):
            rows = self._rows(
                "SELECT o.name, e.share FROM ending e JOIN origin o ON o.id = e.origin WHERE e.ending = ?",
                word[-length:],
            )
            if rows:
                total = sum(share for _, share in rows)
                return {origin: share / total for origin, share in rows}
        return {}

    def gender(self, given: str, origin: str = "") -> str:
        """``f``, ``m``, ``n`` (either) or empty (unknown) for a given name, in one language of origin or in all."""
        facts = [f for f in self.name_facts(given) if f.part == "first" and f.gender]
        facts = [f for f in facts if f.origin == origin] or facts
        total = sum(f.weight for f in facts)
        if not total:
            return ""
        for gender in ("f", "m"):
            if sum(f.weight for f in facts if f.gender == gender) >= 0.8 * total:
                return gender
        return "n"

    def famous(self, given: str, family: str) -> bool:
        """Whether a well-known person bears this name."""
        return bool(given and family) and self._famous(fold(given), fold(family))

    def _read_famous(self, given: str, family: str) -> bool:
        return bool(self._rows("SELECT 1 FROM famous WHERE given = ? AND family = ?", given, family))

    # Things

    def find(self, text: str, kinds: Iterable[str] = (), country: str = "", language: str = "") -> tuple[Item, ...]:
        """What bears this name, in any language, whatever its case and diacritics; the likeliest first.

        Args:
            kinds: only these; empty: all.
            country: only what lies there, ISO 3166-1 alpha-2.
            language: ISO 639-1 of the text. What is called so in this language, in English or at home comes before what
                is called so in other languages or by the way, unless that is ten times bigger.
        """
        return self._found(fold(text), tuple(kinds), country, language)

    def _read_found(self, folded: str, kinds: tuple[str, ...], country: str, language: str) -> tuple[Item, ...]:
        rows = self._rows(
            f"SELECT {_COLUMNS}, l.rank, l.languages FROM lookup l JOIN entity e ON e.id = l.entity WHERE l.folded = ?",
            folded,
        )
        if kinds:
            rows = [row for row in rows if row[1] in kinds]
        if country:
            rows = [row for row in rows if row[3] == country]

        def order(row: tuple) -> tuple[float, int]:  # type: ignore[type-arg]
            number, kind, population, rank, languages = row[0], row[1], row[5], row[-2], row[-1]
            own = bool(language) and f" {language} " in languages
            known = math.log10(population + 1) + (_COUNTRY if kind == "country" else 0.0)
            return (_FOREIGN[0 if own else rank] - known, number)

        return tuple(_item(row[:7]) for row in sorted(rows, key=order))

    def item(self, id: int) -> Item:
        """The thing with this number.

        Raises:
            KnowledgeBaseError: there is none.
        """
        return self._items(id)

    def _read_item(self, id: int) -> Item:
        rows = self._rows(f"SELECT {_COLUMNS} FROM entity e WHERE e.id = ?", id)
        if not rows:
            raise KnowledgeBaseError(f"{self.path.name} has no entity {id}")
        return _item(rows[0])

    def siblings(self, item: Item) -> tuple[Item, ...]:
        """What may stand for a thing (P4, A.1), sorted by id, without itself.

        The children of its parents through instance_of, subclass_of and part_of, of its own kind; where these are none
        that fit, all of that kind. Places: in the same country, and of the same sort; organisations: of
        the same industry and country; countries: of the same continent.
        """
        return self._siblings(item)

    def _read_siblings(self, item: Item) -> tuple[Item, ...]:
        parents = self._rows(
            "SELECT property, target FROM relation WHERE entity = ? AND property IN (?, ?, ?)", item.id, *HIERARCHY
        )
        located = item.kind in PLACES + ORGANISATIONS and item.kind != "country"
        if parents:
            found: set[Item] = set()
            for property, target in parents:
                rows = self._rows(
                    f"SELECT {_COLUMNS} FROM relation r JOIN entity e ON e.id = r.entity "
                    "WHERE r.target = ? AND r.property = ? AND e.kind = ? AND e.usable",
                    target,
                    property,
                    item.kind,
                )
                found.update(map(_item, rows))
            alike = _alike(item, sorted(found), located)
            if alike:
                return alike
        return _alike(item, self.pool(item.kind, country=item.country if located else ""), located)

    def pool(
        self, kind: str, *, country: str = "", region: str = "", industry: str = "", size: int | None = None
    ) -> tuple[Item, ...]:
        """All of a kind that may stand for others, sorted by id; empty and None do not filter.

        Raises:
            UnknownNameError: no such kind.
        """
        if kind not in KINDS:
            raise UnknownNameError("kind", kind, KINDS)
        return self._pools(kind, country, region, industry, size)

    def _read_pool(self, kind: str, country: str, region: str, industry: str, size: int | None) -> tuple[Item, ...]:
        if region or industry or size is not None:
            return tuple(
                one
                for one in self._pools(kind, country, "", "", None)
                if (not region or one.region == region)
                and (not industry or one.industry == industry)
                and (size is None or one.size == size)
            )
        where, args = "e.kind = ? AND e.usable", [kind]
        if country:
            where += " AND e.country = ?"
            args.append(country)
        return tuple(map(_item, self._rows(f"SELECT {_COLUMNS} FROM entity e WHERE {where} ORDER BY e.id", *args)))

    def label(self, item: Item, language: str = "en") -> str:
        """What a thing is called in a language; where that is unknown, its own label."""
        labels = self._labels(item.id)
        return labels.get((language, "")) or labels.get((language, "adjective")) or item.label

    def labels(self, item: Item) -> dict[tuple[str, str], str]:
        """(language, form) to text, without the item's own label. Forms: empty (the name); nationalities have
        ``adjective``, ``noun`` and ``plural``; streets ``stem`` and ``pattern``."""
        return dict(self._labels(item.id))

    def _read_labels(self, id: int) -> dict[tuple[str, str], str]:
        rows = self._rows("SELECT language, form, text FROM label WHERE entity = ?", id)
        return {(language, form): text for language, form, text in rows}

    def related(self, item: Item, property: str) -> tuple[Item, ...]:
        """What a relation leads to, the most important first: ``capital``, ``part_of``, ``instance_of``,
        ``subclass_of``, ``language``, ``country``, ``city`` ..."""
        return self._related(item, property)

    def _read_related(self, item: Item, property: str) -> tuple[Item, ...]:
        rows = self._rows(
            f"SELECT {_COLUMNS} FROM relation r JOIN entity e ON e.id = r.target "
            "WHERE r.entity = ? AND r.property = ? ORDER BY r.position",
            item.id,
            property,
        )
        out = list(map(_item, rows))
        if property == "part_of" and item.region and item.kind != "region":
            out += self._code("region", item.country, item.region)
        if property in ("part_of", "country") and item.country and item.kind != "country":
            out += self._code("country", item.country)
        return tuple(dict.fromkeys(out))

    def _code(self, kind: str, country: str, region: str = "") -> list[Item]:
        rows = self._rows(f"SELECT {_COLUMNS} FROM entity e WHERE kind = ? AND country = ? ORDER BY id", kind, country)
        return [item for item in map(_item, rows) if item.region == region or kind == "country"]

    def inverse(self, item: Item, property: str) -> tuple[Item, ...]:
        """What leads to a thing by a relation; the biggest first."""
        return self._inverse(item, property)

    def _read_inverse(self, item: Item, property: str) -> tuple[Item, ...]:
        rows = self._rows(
            f"SELECT {_COLUMNS} FROM relation r JOIN entity e ON e.id = r.entity WHERE r.target = ? AND r.property = ?",
            item.id,
            property,
        )
        # What the columns of the table say: in a country, or in its region.
        if property in ("part_of", "country") and item.kind == "country":
            rows += self._rows(f"SELECT {_COLUMNS} FROM entity e WHERE country = ? AND kind != 'country'", item.country)
        elif property == "part_of" and item.kind == "region":
            rows += self._rows(
                f"SELECT {_COLUMNS} FROM entity e WHERE country = ? AND region = ? AND kind != 'region'",
                item.country,
                item.region,
            )
        return tuple(_item(row) for row in sorted(set(rows), key=lambda row: (-row[5], row[0])))

    # About the file

    def sources(self) -> tuple[tuple[str, str, str, str, str], ...]:
        """Name, version, licence, credit line, and what was taken, of every source."""
        return tuple(self._rows("SELECT name, version, licence, credit, taken FROM source ORDER BY id"))

    def counts(self) -> dict[str, tuple[int, int]]:
        """Kind to its number of entities, and of those that may stand for others."""
        rows = self._rows("SELECT kind, count(*), sum(usable) FROM entity GROUP BY kind ORDER BY kind")
        return {kind: (count, usable) for kind, count, usable in rows}

    def endings(self) -> tuple[tuple[str, str, int], ...]:
        """How names end: ending, origin, share of the origin's names per 100,000."""
        sql = (
            "SELECT e.ending, o.name, e.share FROM ending e JOIN origin o ON o.id = e.origin ORDER BY e.ending, o.name"
        )
        return tuple(self._rows(sql))

    # The connection

    def _rows(self, sql: str, *args: object) -> list[tuple]:  # type: ignore[type-arg]
        connection, lock = self._connection()
        try:
            with lock:
                return connection.execute(sql, args).fetchall()
        except (sqlite3.DatabaseError, UnicodeEncodeError) as error:
            if isinstance(error, UnicodeEncodeError):
                return []  # half a surrogate pair: no name has one
            raise KnowledgeBaseError(f"{self.path.name} is damaged") from None

    def _connection(self) -> tuple[sqlite3.Connection, threading.Lock]:
        held = self._held
        if held is None or held[0] != os.getpid():  # a connection must not be used by a child of the process
            uri = f"{self.path.as_uri()}?mode=ro&immutable=1"
            connection = sqlite3.connect(uri, uri=True, check_same_thread=False, cached_statements=64)
            weakref.finalize(self, connection.close)
            held = self._held = (os.getpid(), connection, threading.Lock())
        return held[1], held[2]

    def _check(self) -> None:
        if not self.path.is_file():
            raise KnowledgeBaseError(f"no knowledge base at {self.path}")
        try:
            connection, _ = self._connection()
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        except sqlite3.DatabaseError:
            raise KnowledgeBaseError(f"{self.path.name} is not a knowledge base, or it is damaged") from None
        if application != APPLICATION:
            raise KnowledgeBaseError(f"{self.path.name} is not a knowledge base")
        if version > SCHEMA:
            raise KnowledgeBaseError(
                f"{self.path.name} has schema {version}, this version of allonym reads up to {SCHEMA}; update allonym"
            )
        missing = set(_TABLES) - tables
        if missing:
            raise KnowledgeBaseError(f"{self.path.name} is damaged: it lacks the table {min(missing)}")
