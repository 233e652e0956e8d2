"""The labels by which findings are judged: those of the gold, and the meaning of any other label among them.

A label means labels of the taxonomy: by a table of the user's, by its name there, by the table of the tagger's training
(:mod:`allonym.train.labelmap`), by a foreign scheme, or by its name without separators. What means none of them keeps
its name as a class of its own and is told.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Literal

from allonym.errors import UsageError
from allonym.labels import SCHEMES, TAXONOMY
from allonym.train.labelmap import load_default_map, read_label_lists

Compare = Literal["gold", "group", "exact"]
COMPARE = ("gold", "group", "exact")
Map = Mapping[str, Iterable[str]]
NAME_PARTS = frozenset({"PERSON_FIRSTNAME", "PERSON_LASTNAME"})


@lru_cache(maxsize=65536)
def find_taxonomy_labels(label: str, source: str = "") -> frozenset[str]:
    """Return the labels of the taxonomy that a label may stand for; empty where it is not known.

    >>> sorted(find_taxonomy_labels("EMAIL")), find_taxonomy_labels("PERSON"), find_taxonomy_labels("zork")
    (['EMAIL_ADDRESS'], frozenset({'PERSON'}), frozenset())
    """
    name = label.upper().replace("-", "_").replace(" ", "_")
    if name in TAXONOMY:
        return frozenset({name})
    if targets := load_default_map().find_targets(label, source):
        return targets
    for scheme in SCHEMES:
        if foreign := TAXONOMY.from_scheme(label, scheme) or TAXONOMY.from_scheme(name, scheme):
            return frozenset(foreign)
    bare = _fold_label_name(label)
    return frozenset(_map_folded_names_to_labels().get(bare) or _find_label_by_prefix(bare))


@cache
def _map_folded_names_to_labels() -> dict[str, tuple[str, ...]]:
    return {_fold_label_name(label.name): (label.name,) for label in TAXONOMY}


def _find_label_by_prefix(folded_name: str) -> tuple[str, ...]:
    """Return the only label that begins with this name at a border of its parts, such as EMAIL_ADDRESS for
    ``EMAIL``."""
    names = [label.name.split("_") for label in TAXONOMY]
    matches = ["_".join(parts) for parts in names if folded_name in accumulate(map(_fold_label_name, parts[:-1]))]
    return tuple(matches) if len(matches) == 1 else ()


def _fold_label_name(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()


def read_label_map(path: Path | str) -> dict[str, tuple[str, ...]]:
    """Read a TOML file ``NAME = ["LABEL", ...]`` that maps labels of a corpus to the taxonomy; ``[]`` leaves a label
    out.

    Raises:
        DataError: it is no such table.
        UnknownNameError: a label that the taxonomy does not have.
    """
    lists = read_label_lists(path)
    return {n: tuple(TAXONOMY.get(label, f"label map, {n}").name for label in labels) for n, labels in lists.items()}


class Classes:
    """The classes of a gold standard, and which of them a label may belong to.

    Args:
        gold: (label, source) of all gold spans.
        compare: ``gold``, the gold's own labels, into which findings are brought; ``group``, the tops of the taxonomy;
            ``exact``, labels as they are written, on both sides.
        label_map: what names mean in the taxonomy, before all else; a name that means nothing is left out of the gold.

    Attributes:
        names: the classes, sorted.
        unmapped: labels of the gold that mean nothing in the taxonomy, sorted.
    """

    def __init__(
        self, gold: Iterable[tuple[str, str]], compare: Compare = "gold", label_map: Map | None = None
    ) -> None:
        if compare not in COMPARE:
            raise UsageError(f"compare: must be one of {', '.join(COMPARE)}, got {compare!r}")
        self.compare = compare
        self._map = {name: frozenset(labels) for name, labels in (label_map or {}).items()}
        for name in sorted(self._map):
            for label in sorted(self._map[name]):
                TAXONOMY.get(label, f"label map, {name}")
        self._meant: dict[str, frozenset[str]] = {}
        unmapped = set()
        for label, source in sorted(set(gold)):
            meant = self._map_to_taxonomy(label, source)
            if label in self._map and not meant:
                continue
            if not meant and compare != "exact":
                unmapped.add(label)
            name = self.map_gold_label(label, source)
            self._meant[name] = self._meant.get(name, frozenset()) | meant
        self.names = tuple(sorted(self._meant))
        self.unmapped = tuple(sorted(unmapped))
        self._of: dict[tuple[str, str], tuple[str, ...]] = {}

    def _map_to_taxonomy(self, label: str, source: str) -> frozenset[str]:
        return self._map[label] if label in self._map else find_taxonomy_labels(label, source)

    def find_identifier_kind(self, label: str, source: str = "") -> str:
        """Return the kind of identifier that a label means: ``direct``, ``quasi`` or ``none``.

        Where it may mean several things, what most of them are counts; where nobody knows, quasi.
        """
        kinds: Counter[str] = Counter(TAXONOMY.get(meaning).kind for meaning in self._map_to_taxonomy(label, source))
        return max(("direct", "quasi", "none"), key=lambda kind: kinds[kind]) if kinds else "quasi"

    def map_gold_label(self, label: str, source: str = "") -> str:
        """Return the class of a gold label; empty where it is left out."""
        meant = self._map_to_taxonomy(label, source)
        if label in self._map and not meant:
            return ""
        if self.compare == "group":
            groups = {TAXONOMY.get_family(meaning) for meaning in meant}
            return groups.pop() if len(groups) == 1 else label
        return label

    def map_found_label(self, label: str, source: str = "") -> tuple[str, ...]:
        """Return the classes that a finding's label may belong to, likeliest first; empty where the gold has none of
        them."""
        key = label, source
        if key not in self._of:
            self._of[key] = self._rank_gold_classes(label, source)
        return self._of[key]

    def _rank_gold_classes(self, label: str, source: str) -> tuple[str, ...]:
        if self.compare == "exact" or (self.compare == "gold" and label in self._meant):
            return (label,) if label in self._meant else ()
        ranked = []
        meanings = self._map_to_taxonomy(label, source)
        families = {TAXONOMY.get_family(meaning) for meaning in meanings} if self.compare == "group" else frozenset()
        for name in self.names:
            targets = self._meant[name]
            steps = [_count_steps(meaning, step) for meaning in meanings for step in targets]
            steps += [100 + _count_steps(step, meaning) for meaning in meanings for step in targets]
            steps += [1] if targets and name in families else []
            if nearness := [far for far in steps if far % 100 < _FAR]:
                ranked.append((min(nearness), len(targets), name))
        return tuple(name for _, _, name in sorted(ranked))

    def name_class_beyond_gold(self, label: str) -> str:
        """Return the name of a finding's class where no class of the gold fits."""
        if self.compare == "group":
            groups = {TAXONOMY.get_family(meaning) for meaning in self._map_to_taxonomy(label, "")}
            return groups.pop() if len(groups) == 1 else label
        return label

    def joins_name_parts(self, name: str) -> bool:
        """Whether adjacent first and last names are one mention of this class."""
        return name not in NAME_PARTS and any(TAXONOMY.get_family(m) == "PERSON" for m in self._meant.get(name, ()))


_FAR = 50


def _count_steps(low: str, high: str) -> int:
    """Count the steps from a label up to one above it; a large number where it is not above."""
    line = TAXONOMY.lineage(low)
    return line.index(high) if high in line else _FAR
