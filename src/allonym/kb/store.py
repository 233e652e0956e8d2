"""Writes a knowledge base: rows in, one file out, all at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from allonym.errors import UnknownNameError
from allonym.kb.base import APPLICATION, KINDS, SCHEMA, fold_key
from allonym.partfile import open_part_file

OWN, TRANSLATED, ALIAS = 0, 1, 2


class Source(NamedTuple):
    """A source of facts: its name, version, licence, the credit line, and what was taken."""

    name: str
    version: str
    licence: str
    credit: str
    taken: str


class Store:
    """A knowledge base being written. Ids count up in the order of writing."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.db = connection
        self._origins: dict[str, int] = {}

    def add_meta(self, key: str, value: str) -> None:
        """Write a fact about the file itself, such as its title."""
        self.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def add_source(self, source: Source) -> int:
        """Write a source and return its number."""
        return int(self.db.execute("INSERT INTO source VALUES (NULL, ?, ?, ?, ?, ?)", source).lastrowid or 0)

    def add_entity(
        self,
        kind: str,
        label: str,
        source: int,
        *,
        country: str = "",
        region: str = "",
        population: int = 0,
        industry: str = "",
        gender: str = "",
        usable: bool = True,
        id: int | None = None,
    ) -> int:
        """Write an entity and return its number: ``id``, else the next.

        Raises:
            UnknownNameError: no such kind.
        """
        if kind not in KINDS:
            raise UnknownNameError("kind", kind, KINDS)
        row = (id, kind, label, country, region, population, industry, gender, int(usable), source)
        number = self.db.execute("INSERT INTO entity VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row).lastrowid or 0
        self._add_lookup(label, number, OWN)
        return number

    def add_label(self, entity: int, language: str, text: str, form: str = "") -> None:
        """Write a name in a language; the first one of a form stays, further ones become aliases."""
        self.add_form(entity, language, form, text)
        self._add_lookup(text, entity, TRANSLATED, language)

    def add_form(self, entity: int, language: str, form: str, text: str) -> None:
        """Write a form that no text is looked up by, such as the pattern of a street's name."""
        self.db.execute("INSERT OR IGNORE INTO label VALUES (?, ?, ?, ?)", (entity, language, form, text))

    def add_alias(self, entity: int, text: str, language: str = "") -> None:
        """Write a name that is found, but never written into a text."""
        self._add_lookup(text, entity, ALIAS, language)

    def add_labels_and_aliases(self, entity: int, entries: Iterable[str]) -> None:
        """Write labels (``language=name``) and aliases (``also=a;b``) of an entity; empty entries are passed over."""
        for entry in filter(None, entries):
            language, _, text = entry.partition("=")
            if language != "also":
                self.add_label(entity, language, text)
                continue
            for name in text.split(";"):
                self.add_alias(entity, name)

    def _add_lookup(self, text: str, entity: int, rank: int, language: str = "") -> None:
        key = (fold_key(text), entity)
        marked = f" {language} " if language else ""
        sql = "SELECT rank, languages FROM lookup WHERE folded = ? AND entity = ?"
        best, languages = self.db.execute(sql, key).fetchone() or (rank, "")
        languages = languages if marked in languages else languages.rstrip() + marked
        self.db.execute("INSERT OR REPLACE INTO lookup VALUES (?, ?, ?, ?)", (*key, min(rank, best), languages))

    def add_relation(self, entity: int, property: str, target: int) -> None:
        """Write a relation; targets written first count as the more important ones."""
        if entity == target:
            return
        self.db.execute(
            "INSERT INTO relation "
            "SELECT ?1, ?2, (SELECT count(*) FROM relation WHERE entity = ?1 AND property = ?2), ?3 "
            "WHERE NOT EXISTS (SELECT 1 FROM relation WHERE entity = ?1 AND property = ?2 AND target = ?3)",
            (entity, property, target),
        )

    def add_name(self, name: str, part: str, origin: str, gender: str, weight: int, usable: bool) -> None:
        """Write a name of people; the columns are those of :class:`NameFact`."""
        folded = fold_key(name)
        shown = "" if name == folded.capitalize() else name
        row = (folded, part, self.get_or_add_origin(origin), gender, shown, min(100, max(1, weight)), int(usable))
        self.db.execute("INSERT OR IGNORE INTO name VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def get_or_add_origin(self, name: str) -> int:
        """Return the number of an origin; they are numbered in the order in which they are asked for."""
        if name not in self._origins:
            self._origins[name] = int(self.db.execute("INSERT INTO origin VALUES (NULL, ?)", (name,)).lastrowid or 0)
        return self._origins[name]

    def add_famous(self, given: str, family: str) -> None:
        """Write the name of a well-known person."""
        self.db.execute("INSERT OR IGNORE INTO famous VALUES (?, ?)", (fold_key(given), fold_key(family)))

    def add_endings(self, rows: Iterable[tuple[str, str, int]]) -> None:
        """Write how names end: ending, origin, share."""
        numbered = ((ending, self.get_or_add_origin(origin), share) for ending, origin, share in rows)
        self.db.executemany("INSERT INTO ending VALUES (?, ?, ?)", list(numbered))


@contextmanager
def open_store(path: Path) -> Iterator[Store]:
    """Yield a store that becomes the file ``path`` when the block ends well, and leaves nothing when it does not."""
    with open_part_file(path) as part:
        connection = sqlite3.connect(part.path)
        try:
            connection.execute("PRAGMA journal_mode = OFF")
            connection.execute("PRAGMA synchronous = OFF")
            connection.executescript(Path(__file__).with_name("schema.sql").read_text(encoding="utf-8"))
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {SCHEMA}")
            yield Store(connection)
            connection.commit()
            connection.execute("VACUUM")
        finally:
            connection.close()
