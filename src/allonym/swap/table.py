"""Contingency tables of chunks by their sets of entities, as sparse maps (P1, section 2.1: z and its marginals).

A cell is one set of entities per category, so the order in which a chunk names them does not matter. A table of P1's
kind has more cells than could ever be stored; only those that hold a chunk are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from allonym.errors import UnknownNameError, UsageError
from allonym.swap.corpus import Corpus
from allonym.swap.recoding import Recoding

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

    def list_class_uniques(self, corpus: Corpus) -> tuple[Cell, ...]:
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
        return Table(tuple(categories), _gather_cells(rows, self.empty_cells), self.empty_cells)


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

    return Table(names, _gather_cells(iterate_rows(), empty_cells), empty_cells)


def _gather_cells(rows: Iterable[tuple[Cell, tuple[int, ...]]], empty_cells: str) -> dict[Cell, tuple[int, ...]]:
    cells: dict[Cell, list[int]] = {}
    for cell, chunks in rows:
        if empty_cells == "keep" or any(cell):
            cells.setdefault(cell, []).extend(chunks)
    return {cell: tuple(sorted(chunks)) for cell, chunks in sorted(cells.items(), key=lambda item: min(item[1]))}
