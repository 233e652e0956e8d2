"""Makes a knowledge base from a JSON dump of Wikidata, from which P4 (appendix A.1) draws its candidates.

The dump is read twice, line by line. The first pass reads what the second one needs to know before it meets an item:
which classes lie under which (P279), country codes (P297), the items that are names. Scratch tables of the new file
hold that, so that memory does not grow with the dump. An entity's id is its Q number.
"""

from __future__ import annotations

import bz2
import gzip
import json
import math
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from allonym.errors import KnowledgeBaseError
from allonym.kb.base import PLACES, SHIPPED, KnowledgeBase
from allonym.kb.people import SOURCES, Name, is_usable_name, read_unfit_names
from allonym.kb.store import Source, Store, open_store

Advance = Callable[[int, "int | None"], None]
Entity = dict[str, Any]
_Report = Callable[[int], None]  # gets the bytes that a pass has read, or the number of a damaged line
LISTED = 20  # damaged lines that are named
_DEPTH = 40  # of the tree of classes
_LEVELS = 6  # of districts between a town and its region
_WELL_KNOWN = 20  # sitelinks from which a person counts as famous
_BEARERS = 3  # people of whom one must bear a name for it to be a pseudonym
_COPIED = ("nationality", "street", "title", "event", "work", "product", "award", "law")
"""Kinds that are copied from the base that is shipped: Wikidata has no such items, or only real ones, at which no
pseudonym may point."""
_OFFSET = 1 << 40  # ids of what is taken from the base that is shipped
_NAMES_OF_REAL_THINGS = frozenset(_COPIED) - {"street", "nationality"}

_SCRATCH = """
CREATE TABLE scratch_subclass (child INTEGER, parent INTEGER);
CREATE TABLE scratch_kind (class INTEGER PRIMARY KEY, kind TEXT, sort TEXT, depth INTEGER, rank INTEGER);
CREATE TABLE scratch_country (item INTEGER PRIMARY KEY, code TEXT);
CREATE TABLE scratch_name (item INTEGER PRIMARY KEY, name TEXT, gender TEXT, origin TEXT);
CREATE TABLE scratch_bearer (name TEXT, part TEXT, origin TEXT, gender TEXT, number INTEGER,
    PRIMARY KEY (name, part, origin, gender)) WITHOUT ROWID;
CREATE TABLE scratch_region (entity INTEGER PRIMARY KEY);
CREATE TABLE scratch_within (entity INTEGER, target INTEGER);
CREATE TABLE scratch_industry (entity INTEGER PRIMARY KEY, target INTEGER);
"""
_TABLES = ("subclass", "kind", "country", "name", "bearer", "region", "within", "industry")


@dataclass(slots=True)
class Imported:
    """What an import has written, and which lines it could not read; ``damaged_lines`` has the first of them."""

    lines: int = 0
    entities: int = 0
    names: int = 0
    damaged: int = 0
    damaged_lines: list[int] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)

    def add_damaged_line(self, line: int) -> None:
        self.damaged += 1
        if len(self.damaged_lines) < LISTED:
            self.damaged_lines.append(line)


def import_dump(
    dump: Path,
    out: Path,
    *,
    languages: Iterable[str] = ("en", "de", "pl"),
    min_sitelinks: int = 5,
    advance: Advance | None = None,
) -> Imported:
    """Write a knowledge base from a dump (``.json``, ``.json.bz2``, ``.json.gz``).

    Args:
        languages: ISO 639-1 codes of the labels and aliases to keep.
        min_sitelinks: pages in all wikis together that an item must have; classes need none.
        advance: called with the bytes of both passes that have been read, and with all.

    Raises:
        KnowledgeBaseError: nothing could be read; ``out`` is left as it was.
    """
    imported = Imported()
    size = dump.stat().st_size
    report = advance or (lambda position, total: None)
    with open_store(out) as store:
        store.db.executescript(_SCRATCH)
        importer = _Importer(store, tuple(dict.fromkeys(("en", *languages))), min_sitelinks, imported)
        importer.read_classes(dump, lambda position: report(position, 2 * size))
        importer.derive_class_kinds()
        for entity in _read_entities(dump, imported, lambda position: report(size + position, 2 * size)):
            importer.import_entity(entity)
        if not imported.lines:
            required = "required is a JSON dump of Wikidata, one entity in each line"
            raise KnowledgeBaseError(f"{dump.name}: no entity could be read; {required}")
        base = KnowledgeBase(SHIPPED)
        _fill_regions_and_industries(store)
        _copy_shipped_base(store, base)
        imported.names = _write_person_names(store, base)
        for name in _TABLES:
            store.db.execute(f"DROP TABLE scratch_{name}")
        store.add_meta("title", "from a dump of Wikidata")
        store.add_meta("languages", " ".join(importer.languages))
        store.add_endings(base.endings())
    return imported


# Reading


_OPENERS: dict[str, Callable[[IO[bytes]], Any]] = {".bz2": bz2.open, ".gz": gzip.open}


def _read_lines(dump: Path, report_bytes: _Report, report_damage: _Report) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that hold an entity, with their numbers, without the comma between them."""
    opener = _OPENERS.get(dump.suffix)
    with dump.open("rb") as raw, opener(raw) if opener is not None else raw as file:
        number = 0
        try:
            for number, line in enumerate(file, 1):
                if number % 256 == 0:
                    report_bytes(raw.tell())
                body = line.strip().removesuffix(b",")
                if body and body not in (b"[", b"]"):
                    yield number, body
        except (EOFError, OSError):  # the archive ends too early, or is damaged from here on
            report_damage(number + 1)
        report_bytes(raw.tell())


def _read_entities(dump: Path, imported: Imported, report_bytes: _Report) -> Iterator[Entity]:
    for number, body in _read_lines(dump, report_bytes, imported.add_damaged_line):
        entity = _parse_entity(body)
        if entity is None:
            imported.add_damaged_line(number)
        else:
            imported.lines += 1
            yield entity


def _parse_entity(body: bytes) -> Entity | None:
    try:
        entity = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entity, dict) or not isinstance(entity.get("id"), str) or not isinstance(entity.get("type"), str):
        return None
    return entity


def _parse_number(identifier: object) -> int:
    """Return the number of ``Q64``; 0 for anything else."""
    text = identifier if isinstance(identifier, str) else ""
    return int(text[1:]) if text[:1] == "Q" and text[1:].isdecimal() else 0


def _get_property_values(entity: Entity, property: str) -> list[Any]:
    """Return the values of a property's statements of the best rank."""
    claims = entity.get("claims")
    statements = claims.get(property, ()) if isinstance(claims, dict) else ()
    best: dict[str, list[Any]] = {"preferred": [], "normal": []}
    for statement in statements if isinstance(statements, list) else ():
        try:
            rank = statement.get("rank", "normal")
            value = statement["mainsnak"]["datavalue"]["value"]
        except (KeyError, TypeError, AttributeError):
            continue  # no value, or an unknown one
        if rank in best:
            best[rank].append(value)
    return best["preferred"] or best["normal"]


def _get_item_numbers(entity: Entity, property: str) -> list[int]:
    values = (value for value in _get_property_values(entity, property) if isinstance(value, dict))
    return [number for value in values if (number := _parse_number(value.get("id")))]


def _get_texts(entity: Entity, field: str, language: str) -> list[str]:
    values = entity.get(field)
    rows = values.get(language, ()) if isinstance(values, dict) else ()
    texts = (row.get("value") for row in (rows if isinstance(rows, list) else [rows]) if isinstance(row, dict))
    return [text for text in texts if isinstance(text, str) and text.strip()]


def _get_label(entity: Entity, languages: Iterable[str]) -> str:
    return next((text[0] for language in (*languages, "mul") if (text := _get_texts(entity, "labels", language))), "")


def _find_mapped_value(entity: Entity, property: str, values: Mapping[str, Any]) -> Any:
    """Return the value of the first of a property's items that has one, by its Q number; empty where none has."""
    return next((values[q] for n in _get_item_numbers(entity, property) if (q := f"Q{n}") in values), "")


class _Importer:
    """Writes the items of a dump as rows, in two passes."""

    def __init__(self, store: Store, languages: tuple[str, ...], min_sitelinks: int, imported: Imported) -> None:
        self.languages = languages
        self._store, self._imported, self._least = store, imported, min_sitelinks
        self._table = tomllib.loads((SOURCES / "wikidata.toml").read_text(encoding="utf-8"))
        credit = "Wikidata contributors, https://www.wikidata.org"
        self._source = store.add_source(Source("Wikidata", "dump", "CC0-1.0", credit, "labels, aliases and statements"))

    # The first pass

    def read_classes(self, dump: Path, report_bytes: _Report) -> None:
        """Read which classes lie under which, the codes of countries, and the items that are names."""
        table, db = self._table, self._store.db
        needed = re.compile(rb'"P279"|"P297"|"id" ?: ?"(?:%s)"' % b"|".join(q.encode() for q in table["names"]))
        for _, body in _read_lines(dump, report_bytes, lambda number: None):
            entity = _parse_entity(body) if needed.search(body) else None
            if entity is None:
                continue
            number = _parse_number(entity["id"])
            for parent in _get_item_numbers(entity, "P279"):
                db.execute("INSERT INTO scratch_subclass VALUES (?, ?)", (number, parent))
            for code in _get_property_values(entity, "P297"):
                if isinstance(code, str) and len(code) == 2:
                    db.execute("INSERT OR IGNORE INTO scratch_country VALUES (?, ?)", (number, code))
            kind = _find_mapped_value(entity, "P31", table["names"])
            if kind and (text := _get_label(entity, ("en",))):
                row = (number, text, kind[1], _find_mapped_value(entity, "P407", table["origins"]))
                db.execute("INSERT OR IGNORE INTO scratch_name VALUES (?, ?, ?, ?)", row)

    def derive_class_kinds(self) -> None:
        """Give each class the kind of the nearest class of the table above it."""
        db = self._store.db
        db.execute("CREATE INDEX scratch_parent ON scratch_subclass (parent)")
        rows = ((_parse_number(q), kind, sort, rank) for rank, (q, kind, sort) in enumerate(self._table["classes"]))
        db.executemany("INSERT OR IGNORE INTO scratch_kind VALUES (?, ?, ?, 0, ?)", rows)
        for depth in range(_DEPTH):
            added = db.execute(
                "INSERT OR IGNORE INTO scratch_kind SELECT s.child, k.kind, k.sort, k.depth + 1, k.rank "
                "FROM scratch_kind k JOIN scratch_subclass s ON s.parent = k.class "
                "WHERE k.depth = ? ORDER BY k.rank, s.child",
                (depth,),
            )
            if added.rowcount <= 0:
                return

    # The second pass

    def import_entity(self, entity: Entity) -> None:
        """Write an item, or count the names of a person."""
        number = _parse_number(entity["id"])
        if not number or entity["type"] != "item":
            return
        sitelinks = entity.get("sitelinks")
        links = len(sitelinks) if isinstance(sitelinks, dict) else 0
        classes = _get_item_numbers(entity, "P31")
        if 5 in classes:
            self._count_person_names(entity, links)
            return
        kind, sort = self._find_kind_and_sort(classes)
        if kind and kind != "class" and links >= self._least:
            self._write_entity(entity, number, kind, sort, links)
        elif kind == "class" or self._find_kind_and_sort([number]) != ("", ""):
            self._write_entity(entity, number, "class", "", links)

    def _find_kind_and_sort(self, classes: list[int]) -> tuple[str, str]:
        marks = ",".join("?" * len(classes))
        sql = f"SELECT kind, sort FROM scratch_kind WHERE class IN ({marks}) ORDER BY depth, rank LIMIT 1"
        kind, sort = self._store.db.execute(sql, classes).fetchone() or ("", "")
        return kind, sort

    def _write_entity(self, entity: Entity, number: int, kind: str, sort: str, links: int) -> None:
        label = _get_label(entity, self.languages)
        if not label:
            return
        db, store = self._store.db, self._store
        if db.execute("SELECT 1 FROM entity WHERE id = ?", (number,)).fetchone():
            return
        codes = _get_property_values(entity, "P300") if kind == "region" else []
        region = next((code for code in codes if isinstance(code, str)), "")
        store.add_entity(
            kind,
            label,
            self._source,
            country=self._find_country(entity, number, kind),
            region=region.partition("-")[2],
            population=(_get_amount(entity, "P1082") if kind in PLACES else 0) or links,
            industry=sort,
            usable=kind != "class" and kind not in _NAMES_OF_REAL_THINGS and not re.search(r"[\d(),/]", label),
            id=number,
        )
        for language in self.languages:
            for text in _get_texts(entity, "labels", language):
                if text != label or language != "en":
                    store.add_label(number, language, text)
            for text in _get_texts(entity, "aliases", language):
                if len(text) > 3 or kind not in PLACES:
                    store.add_alias(number, text, language)
        for property, name in self._table["relations"].items():
            for target in _get_item_numbers(entity, property):
                store.add_relation(number, name, target)
        for target in _get_item_numbers(entity, "P131")[:1]:
            db.execute("INSERT INTO scratch_within VALUES (?, ?)", (number, target))
        for target in _get_item_numbers(entity, "P452")[:1]:
            db.execute("INSERT OR IGNORE INTO scratch_industry VALUES (?, ?)", (number, target))
        if region:
            db.execute("INSERT INTO scratch_region VALUES (?)", (number,))
        self._imported.entities += 1
        self._imported.kinds[kind] += 1

    def _find_country(self, entity: Entity, number: int, kind: str) -> str:
        for item in [number] if kind == "country" else _get_item_numbers(entity, "P17"):
            row = self._store.db.execute("SELECT code FROM scratch_country WHERE item = ?", (item,)).fetchone()
            if row:
                return str(row[0])
        return ""

    def _count_person_names(self, entity: Entity, links: int) -> None:
        db = self._store.db
        gender = _find_mapped_value(entity, "P21", self._table["genders"])
        native = _find_mapped_value(entity, "P103", self._table["origins"])
        for property, part in (("P735", "first"), ("P734", "last")):
            for item in _get_item_numbers(entity, property):
                row = db.execute("SELECT name, gender, origin FROM scratch_name WHERE item = ?", (item,)).fetchone()
                if row is None:
                    continue
                name, of_name, origin = row
                values = (name, part, native or origin, (of_name or gender) if part == "first" else "")
                sql = "INSERT INTO scratch_bearer VALUES (?, ?, ?, ?, 1) ON CONFLICT DO UPDATE SET number = number + 1"
                db.execute(sql, values)
        words = _get_label(entity, self.languages).split()
        if links >= max(self._least, _WELL_KNOWN) and len(words) > 1:
            self._store.add_famous(words[0], words[-1])


def _get_amount(entity: Entity, property: str) -> int:
    for value in _get_property_values(entity, property):
        amount = value.get("amount") if isinstance(value, dict) else None
        if isinstance(amount, str) and re.fullmatch(r"\+?\d{1,12}(?:\.\d+)?", amount):
            return int(float(amount))
    return 0


# After both


def _fill_regions_and_industries(store: Store) -> None:
    """Add regions and industries by the items they point at; drop relations to items that were not taken."""
    db = store.db
    db.execute("CREATE INDEX scratch_entity ON scratch_within (entity)")
    for _ in range(_LEVELS):
        db.execute(
            "UPDATE entity SET region = coalesce((SELECT t.region FROM scratch_within w JOIN entity t "
            "ON t.id = w.target WHERE w.entity = entity.id AND t.region != '' AND t.country = entity.country "
            "LIMIT 1), '') WHERE region = ''"
        )
    db.execute(
        "UPDATE entity SET industry = coalesce((SELECT t.label FROM scratch_industry s JOIN entity t "
        "ON t.id = s.target WHERE s.entity = entity.id), '') "
        "WHERE industry = '' AND id IN (SELECT entity FROM scratch_industry)"
    )
    # Districts have passed the code of their region on; it is not their own.
    db.execute("UPDATE entity SET region = '' WHERE kind = 'region' AND id NOT IN (SELECT entity FROM scratch_region)")
    db.execute("DELETE FROM relation WHERE target NOT IN (SELECT id FROM entity)")


def _copy_shipped_base(store: Store, base: KnowledgeBase) -> None:
    """Copy names of people, and kinds that Wikidata does not give, from the base that is shipped."""
    db = store.db
    db.execute("ATTACH ? AS shipped", (str(base.path),))
    marks = ",".join(f"'{kind}'" for kind in _COPIED)
    rows = db.execute("SELECT id, name, version, licence, credit, taken FROM shipped.source").fetchall()
    sources = {number: store.add_source(Source(*row)) for number, *row in rows}
    copied = f"SELECT id FROM shipped.entity WHERE kind IN ({marks})"
    for old, new in sources.items():
        db.execute(
            "INSERT INTO entity SELECT id + ?, kind, label, country, region, population, industry, gender, usable, ? "
            f"FROM shipped.entity WHERE kind IN ({marks}) AND source = ?",
            (_OFFSET, new, old),
        )
    labels = "SELECT entity + ?, language, form, text FROM shipped.label"
    lookups = "SELECT folded, entity + ?, rank, languages FROM shipped.lookup"
    for table, select in (("label", labels), ("lookup", lookups)):
        db.execute(f"INSERT INTO {table} {select} WHERE entity IN ({copied})", (_OFFSET,))
    # A nationality belongs to the country that the dump has.
    db.execute(
        "INSERT INTO relation SELECT n.id, 'country', 0, c.id FROM entity n JOIN entity c ON c.kind = 'country' "
        "AND c.country = n.country WHERE n.kind = 'nationality' AND n.region = '' AND c.country != '' GROUP BY n.id"
    )
    for (origin,) in db.execute("SELECT name FROM shipped.origin ORDER BY id").fetchall():
        store.get_or_add_origin(origin)
    db.execute("INSERT INTO name SELECT * FROM shipped.name")
    db.execute("INSERT OR IGNORE INTO famous SELECT * FROM shipped.famous")
    db.commit()
    db.execute("DETACH shipped")


def _write_person_names(store: Store, base: KnowledgeBase) -> int:
    """Write the names that the dump's people bear; return how many are new."""
    banned = read_unfit_names()
    rows = store.db.execute(
        "SELECT name, part, origin, sum(number), sum(number * (gender = 'f')), sum(number * (gender = 'm')) "
        "FROM scratch_bearer GROUP BY name, part, origin ORDER BY name, part, origin"
    )
    new = 0
    for text, part, native, number, women, men in rows:
        gender = ""
        if part == "first":
            share = women / (women + men) if women + men else 0.5
            gender = "f" if share >= 0.8 else "m" if share <= 0.2 else "n"
        origin = native or base.origin(("", text) if part == "last" else (text,), default="")
        if not origin:
            continue
        name = Name(text, part, origin, gender, round(10 * math.log2(number + 1)), number >= _BEARERS)
        before = store.db.total_changes
        store.add_name(text, part, origin, gender, name.weight, is_usable_name(name, banned, {}))
        new += store.db.total_changes > before
    return new
