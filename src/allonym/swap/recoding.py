"""Recoding: entities of one kind become one class before they are counted (P1 3.1.4: Goldman Sachs, investment bank).

Only tables and risk see classes; what is exchanged are the entities themselves.
"""

from __future__ import annotations

import csv
import io
import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from allonym.errors import DataError, UnknownNameError
from allonym.kb.base import ORGANISATIONS, PLACES, Item, KnowledgeBase
from allonym.labels import TAXONOMY, Taxonomy
from allonym.swap.categories import key_for, label_of

FACTS = ("industry", "kind", "country")
"""What the knowledge base may say of an entity: its trade (``bank``), its kind (``company``), its country."""

_KINDS: Mapping[str, tuple[str, ...]] = {
    "ORGANIZATION": ORGANISATIONS,
    "LOCATION": PLACES,
    "PRODUCT": ("product",),
    "EVENT": ("event",),
    "WORK_OF_ART": ("work",),
    "AWARD": ("award",),
    "LAW": ("law",),
    "OCCUPATION": ("occupation",),
    "NATIONALITY": ("nationality",),
    "RELIGION": ("religion",),
    "LANGUAGE": ("language",),
}


@dataclass(frozen=True, slots=True, repr=False)
class Recoding:
    """From (category, key) to a class: by the user's table, else by the knowledge base, else it stays.

    Attributes:
        table: (category, key) to class; the category ``""`` stands for all.
        knowledge: asked for what the table lacks; None: nothing is.
        facts: of :data:`FACTS`; the first that is known is the class.
        taxonomy: tells which kinds of things a category's label can be.
    """

    table: Mapping[tuple[str, str], str] = field(default_factory=dict)
    knowledge: KnowledgeBase | None = None
    facts: tuple[str, ...] = ("industry", "kind")
    taxonomy: Taxonomy = TAXONOMY

    def __post_init__(self) -> None:
        for fact in self.facts:
            if fact not in FACTS:
                raise UnknownNameError("fact", fact, FACTS, "recoding")

    def __repr__(self) -> str:
        return f"Recoding({len(self.table)} values{', knowledge base' if self.knowledge else ''})"

    def __call__(self, category: str, key: str) -> str:
        """The class of an entity; its own key where nothing says one."""
        for known in ((category, key), ("", key)):
            if known in self.table:
                return self.table[known]
        return self._looked_up(category, key) or key

    def _looked_up(self, category: str, key: str) -> str:
        kinds = next((_KINDS[name] for name in self.taxonomy.lineage(label_of(category)) if name in _KINDS), ())
        if self.knowledge is None or not kinds:
            return ""
        found = self.knowledge.find(key, kinds)
        return next(filter(None, (self._fact(found[0], fact) for fact in self.facts)), "") if found else ""

    def _fact(self, item: Item, fact: str) -> str:
        assert self.knowledge is not None
        if fact == "country":
            if item.kind == "country":
                return item.label
            countries = [c for c in self.knowledge.related(item, "country") if c.kind == "country"]
            return countries[0].label if countries else item.country
        return item.industry if fact == "industry" else item.kind


def recoding(
    source: Mapping[str, str] | Mapping[str, Mapping[str, str]] | str | Path | None = None,
    *,
    knowledge: KnowledgeBase | None = None,
    facts: tuple[str, ...] = ("industry", "kind"),
    taxonomy: Taxonomy = TAXONOMY,
) -> Recoding:
    """A recoding from a user's table, a knowledge base, or both.

    Args:
        source: value to class, or category to such a mapping; or a file of them. ``.csv`` and ``.tsv``: columns
            ``value``, ``class`` and, if wanted, ``category``; ``.toml`` and ``.json``: ``value = "class"``, or a table
            for each category. Values are compared as entities are: case, legal forms and articles do not count.
        knowledge: asked for what the table lacks.
        facts: of :data:`FACTS`; the first that it knows is the class.
        taxonomy: the labels.

    Raises:
        DataError: the file cannot be read, or is no such table; two rows give one value two classes.
        UnknownNameError: a row's category is none, or a fact is none.
    """
    given = _read(Path(source)) if isinstance(source, str | Path) else _rows(source or {}, "the recoding")
    where = str(source) if isinstance(source, str | Path) else "the recoding"
    table: dict[tuple[str, str], str] = {}
    for category, value, into in given:
        # A value without a category may be any: it is known by each of its normal forms.
        labels = [label_of(category)] if category else ["ORGANIZATION", "PERSON", "PRODUCT"]
        for label in labels:
            if label not in taxonomy:
                raise UnknownNameError("category", category, [a.name for a in taxonomy], where)
            place = (category, key_for(label, value, taxonomy))
            if table.setdefault(place, into) != into:
                raise DataError(f"{where}: a value has two classes; each may have one")
    return Recoding(table, knowledge, facts, taxonomy)


def _read(path: Path) -> list[tuple[str, str, str]]:
    suffix = path.suffix.lower()
    readers: dict[str, Callable[[str], object]] = {".toml": tomllib.loads, ".json": json.loads}
    if suffix not in (*readers, ".csv", ".tsv"):
        raise DataError(f"{path}: a recoding is a .csv, .tsv, .toml or .json file")
    try:
        text = path.read_text("utf-8-sig")
        if suffix in readers:
            return _rows(readers[suffix](text), str(path))
        mark = "\t" if suffix == ".tsv" else ","
        rows = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=mark, strict=True))
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, csv.Error) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path}: not readable as {suffix[1:]}: {type(error).__name__}") from None
    if rows and not {"value", "class"} <= rows[0].keys():
        raise DataError(f"{path}: needs the columns 'value' and 'class', got {len(rows[0])} others")
    out = []
    for number, row in enumerate(rows, 2):
        if not row["value"] or not row["class"]:
            raise DataError(f"{path}, line {number}: 'value' and 'class' must not be empty")
        out.append((row.get("category") or "", row["value"], row["class"]))
    return out


def _rows(data: object, where: str) -> list[tuple[str, str, str]]:
    out: list[tuple[str, str, str]] = []
    if isinstance(data, Mapping):
        for key, value in data.items():
            if isinstance(value, Mapping):
                out += [(str(key), str(name), into) for name, into in value.items()]
            else:
                out.append(("", str(key), value))
    if not isinstance(data, Mapping) or any(not isinstance(into, str) or not into for _, _, into in out):
        raise DataError(f"{where}: maps values to classes, all of them text, in one table or one for each category")
    return out
