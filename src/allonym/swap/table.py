"""Contingency tables of chunks by their sets of entities, as sparse maps (P1, section 2.1: z and its marginals).

A cell is one set of entities per category, so the order in which a chunk names them does not matter. A table of P1's
kind has more cells than could ever be stored; only those that hold a chunk are. A recoding makes entities of one
kind one class before they are counted (P1 3.1.4: Goldman Sachs, investment bank); entities themselves are exchanged.
"""

from __future__ import annotations

import csv
import io
import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from allonym.errors import DataError, UnknownNameError, UsageError, hide_foreign_errors
from allonym.kb.base import ORGANISATIONS, PLACES, Item, KnowledgeBase
from allonym.labels import TAXONOMY, Taxonomy
from allonym.swap.categories import get_category_label, make_key
from allonym.swap.corpus import Corpus

Cell = tuple[frozenset[str], ...]
"""One set of keys per category, empty where a chunk has no entity of it."""

EMPTY_CELLS = ("drop", "keep")
"""Whether chunks without an entity in any of the table's categories are left out, as in P1's Table 1, or counted as one
big cell."""


@dataclass(frozen=True, slots=True, repr=False)
class Table:
    """The chunks of each cell.

    Attributes:
        categories: those of the sets in a cell, in order.
        cells: cell to the indices of its chunks, ascending; cells in the order of their first chunk.
        empty_cells: one of :data:`EMPTY_CELLS`.
    """

    categories: tuple[str, ...]
    cells: Mapping[Cell, tuple[int, ...]]
    empty_cells: str = "drop"

    def __repr__(self) -> str:
        return f"Table({' x '.join(self.categories)}, n={self.n}, k={self.k})"

    @property
    def n(self) -> int:
        """Chunks counted."""
        return sum(map(len, self.cells.values()))

    @property
    def k(self) -> int:
        """Cells that hold a chunk."""
        return len(self.cells)

    def frequencies(self) -> dict[int, int]:
        """Return the number of chunks in a cell, j, to the number of such cells, s_j; ascending."""
        return dict(sorted(Counter(map(len, self.cells.values())).items()))

    def uniques(self) -> frozenset[int]:
        """Return the chunks that are alone in their cell: sample uniques; their number is s_1."""
        return frozenset(chunks[0] for chunks in self.cells.values() if len(chunks) == 1)

    def doubles(self, corpus: Corpus | None = None) -> tuple[tuple[int, int], ...]:
        """Return the pairs of chunks that share a cell with no other chunk.

        Args:
            corpus: if given, only pairs within one document, which betray it as a unique chunk does.
        """
        pairs = ((c[0], c[1]) for c in self.cells.values() if len(c) == 2)
        if corpus is None:
            return tuple(pairs)
        chunks = corpus.chunks
        return tuple((a, b) for a, b in pairs if chunks[a].document == chunks[b].document)

    def list_single_class_cells(self, corpus: Corpus) -> tuple[Cell, ...]:
        """Return the cells all of whose chunks have one protected value, to which their entities therefore point."""
        return tuple(cell for cell, chunks in self.cells.items() if len(set(map(corpus.class_of, chunks))) == 1)

    def marginal(self, categories: Sequence[str]) -> Table:
        """Return the table of some of the categories, in the order given.

        Raises:
            UnknownNameError: the table has no such category.
        """
        for category in categories:
            if category not in self.categories:
                raise UnknownNameError("category of this table", category, self.categories)
        positions = [self.categories.index(category) for category in categories]
        rows = ((tuple(cell[p] for p in positions), chunks) for cell, chunks in self.cells.items())
        return Table(tuple(categories), _group_chunks_by_cell(rows, self.empty_cells), self.empty_cells)


def tabulate(
    corpus: Corpus,
    categories: Sequence[str] | None = None,
    *,
    empty_cells: str = "drop",
    recode: Recoding | None = None,
) -> Table:
    """Count the chunks of a corpus by their entities of some categories.

    Args:
        corpus: the chunks with their values.
        categories: of ``corpus.categories``; None: all of them that are not replaced in any case (``change``).
        empty_cells: ``drop``: a chunk without an entity in any of these categories is not counted; ``keep``: all are.
        recode: puts entities of a kind into one class before counting; a chunk's set then consists of classes.

    Raises:
        UsageError: a category has state ``change``, or ``empty_cells`` is something else.
        UnknownNameError: the corpus has no such category.
    """
    if empty_cells not in EMPTY_CELLS:
        raise UnknownNameError("value of empty_cells", empty_cells, EMPTY_CELLS)
    names = tuple(c for c, s in corpus.categories.items() if s != "change") if categories is None else (*categories,)
    if not names:
        raise UsageError("a table needs at least one category")
    for category in names:
        if category not in corpus.categories:
            raise UnknownNameError("category of this corpus", category, corpus.categories)
        if corpus.categories[category] == "change":
            raise UsageError(f"category {category} has state 'change': they are replaced before counting")

    def iterate_rows() -> Iterable[tuple[Cell, tuple[int, ...]]]:
        for index, chunk in enumerate(corpus.chunks):
            sets: dict[str, set[str]] = {category: set() for category in names}
            for value in chunk.values:
                if value.category in sets:
                    sets[value.category].add(value.key if recode is None else recode(value.category, value.key))
            yield tuple(frozenset(sets[category]) for category in names), (index,)

    return Table(names, _group_chunks_by_cell(iterate_rows(), empty_cells), empty_cells)


def _group_chunks_by_cell(
    rows: Iterable[tuple[Cell, tuple[int, ...]]], empty_cells: str
) -> dict[Cell, tuple[int, ...]]:
    cells: dict[Cell, list[int]] = {}
    for cell, chunks in rows:
        if empty_cells == "keep" or any(cell):
            cells.setdefault(cell, []).extend(chunks)
    return {cell: tuple(sorted(chunks)) for cell, chunks in sorted(cells.items(), key=lambda item: min(item[1]))}


# Recodings

FACTS = ("industry", "kind", "country")
"""Facts of the knowledge base: an entity's trade (``bank``), its kind (``company``), its country."""

_KINDS: Mapping[str, tuple[str, ...]] = {
    "ORGANIZATION": ORGANISATIONS,
    "LOCATION": PLACES,
    "WORK_OF_ART": ("work",),
    **{name.upper(): (name,) for name in "product event award law occupation nationality religion language".split()},
}


@dataclass(frozen=True, slots=True, repr=False)
class Recoding:
    """From (category, key) to a class: by the user's table, else by the knowledge base, else it stays.

    Attributes:
        table: (category, key) to class; the category ``""`` stands for all.
        knowledge: for entities that the table lacks; None: they stay.
        facts: of :data:`FACTS`; the first that is known is the class.
        taxonomy: gives the kinds of things that a category's label can be.
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
        """Return the class of an entity; its own key if it has none."""
        for entry in ((category, key), ("", key)):
            if entry in self.table:
                return self.table[entry]
        return self._look_up_fact(category, key) or key

    def _look_up_fact(self, category: str, key: str) -> str:
        lineage = self.taxonomy.lineage(get_category_label(category))
        kinds = next((_KINDS[name] for name in lineage if name in _KINDS), ())
        items = self.knowledge.find(key, kinds) if self.knowledge is not None and kinds else ()
        return next(filter(None, (self._get_fact(items[0], fact) for fact in self.facts)), "") if items else ""

    def _get_fact(self, item: Item, fact: str) -> str:
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
    """Return a recoding from a user's table, a knowledge base, or both.

    Args:
        source: value to class, or category to such a mapping; or a file of them. ``.csv`` and ``.tsv``: columns
            ``value``, ``class`` and, if wanted, ``category``; ``.toml`` and ``.json``: ``value = "class"``, or a table
            for each category. Values are compared as entities are: case, legal forms and articles do not count.
        knowledge: for entities that the table lacks.
        facts: of :data:`FACTS`; the first that it knows is the class.
        taxonomy: the labels.

    Raises:
        DataError: the file cannot be read, or is no such table; two rows give one value two classes.
        UnknownNameError: a row's category, or a fact, is unknown.
    """
    where = str(source) if isinstance(source, str | Path) else "the recoding"
    rows = _read_class_rows(Path(source)) if isinstance(source, str | Path) else _list_class_rows(source or {}, where)
    table: dict[tuple[str, str], str] = {}
    for category, value, class_ in rows:
        # A value without a category may be any: it is known by each of its normal forms.
        labels = [get_category_label(category)] if category else ["ORGANIZATION", "PERSON", "PRODUCT"]
        for label in labels:
            if label not in taxonomy:
                raise UnknownNameError("category", category, [a.name for a in taxonomy], where)
            if table.setdefault((category, make_key(label, value, taxonomy)), class_) != class_:
                raise DataError(f"{where}: a value has two classes; each may have one")
    return Recoding(table, knowledge, facts, taxonomy)


def _read_class_rows(path: Path) -> list[tuple[str, str, str]]:
    suffix = path.suffix.lower()
    if suffix not in (".toml", ".json", ".csv", ".tsv"):
        raise DataError(f"{path}: a recoding is a .csv, .tsv, .toml or .json file")
    with (
        hide_foreign_errors(f"cannot read {path}", OSError),
        hide_foreign_errors(f"{path}: not readable as {suffix[1:]}", ValueError, csv.Error),
    ):
        text = path.read_text("utf-8-sig")
        if suffix in (".toml", ".json"):
            return _list_class_rows(tomllib.loads(text) if suffix == ".toml" else json.loads(text), str(path))
        delimiter = "\t" if suffix == ".tsv" else ","
        rows = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    if rows and not {"value", "class"} <= rows[0].keys():
        raise DataError(f"{path}: needs the columns 'value' and 'class', got {len(rows[0])} others")
    for number, row in enumerate(rows, 2):
        if not row["value"] or not row["class"]:
            raise DataError(f"{path}, line {number}: 'value' and 'class' must not be empty")
    return [(row.get("category") or "", row["value"], row["class"]) for row in rows]


def _list_class_rows(data: object, where: str) -> list[tuple[str, str, str]]:
    out: list[tuple[str, str, str]] = []
    for key, value in data.items() if isinstance(data, Mapping) else ():
        if isinstance(value, Mapping):
            out += [(str(key), str(name), class_) for name, class_ in value.items()]
        else:
            out.append(("", str(key), value))
    if not isinstance(data, Mapping) or any(not isinstance(class_, str) or not class_ for _, _, class_ in out):
        raise DataError(f"{where}: maps values to classes, all of them text, in one table or one for each category")
    return out
