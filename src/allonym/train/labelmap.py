"""Maps the labels of corpora to the labels of the tagger, by the table ``labelmap.toml`` beside this file.

Corpora differ: one has LOC, another distinguishes countries and cities. So a corpus label stands for a *set* of the
tagger's labels, any of which may be right, and the trainer sums over the set (partial labels). A corpus label that the
tagger does not cover, such as e-mail addresses or proteins, stands for no label: its spans are neither entities nor
proof that there is no entity.

A label that is not in the table is read as a label of the taxonomy or of another scheme, then by its parts: the first
part of ``person-artist``, the last word of ``HOTEL_GUEST_NAME``, the first of ``NOMBRE_PACIENTE``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

from allonym.document import Span
from allonym.errors import DataError, check_names, hide_foreign_errors
from allonym.labels import SCHEMES, TAXONOMY
from allonym.models.tags import LABELS
from allonym.text.fold import fold
from allonym.text.words import find_words
from allonym.train.records import Mark, Record

Targets = frozenset[str] | None
"""The possible labels of the tagger; None to ignore the span; empty if nothing is known about its label."""

_IGNORED = "ignored"
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_CHUNK = re.compile(r"^(?:[BILESUM]-|[BI]_)(?=.)")
_LEVEL = re.compile(r"[-./:|]")


@dataclass(frozen=True, slots=True)
class LabelMap:
    """Corpus labels and the labels of the tagger that they stand for.

    Attributes:
        labels: the tagger's labels, in their order.
        names: folded name to targets.
        sources: a word of a source's name to the labels with another meaning there.
    """

    labels: tuple[str, ...]
    names: Mapping[str, Targets]
    sources: Mapping[str, Mapping[str, Targets]]

    def find_targets(self, label: str, source: str = "") -> Targets:
        """Return the labels of the tagger that ``label`` stands for in ``source``; see :data:`Targets`."""
        special = [self.sources[word] for word in _split_name(source) if word in self.sources]
        name = _CHUNK.sub("", label, count=1)
        for key in (_fold_name(label), _fold_name(name)):
            for table in (*special, self.names):
                if key in table:
                    return table[key]
        if name.upper() in TAXONOMY:
            return self._find_targets_by_lineage(name.upper())
        by_scheme, by_part = self._find_targets_by_scheme(name), self._find_targets_by_name_part(name)
        return by_scheme or by_part or (None if None in (by_scheme, by_part) else frozenset())

    def _find_targets_by_lineage(self, name: str) -> Targets:
        """Look a label up in the taxonomy: the label itself, the tagger's labels below it, or else the label above."""
        for step in TAXONOMY.lineage(name):
            if _fold_name(step) in self.names:
                return self.names[_fold_name(step)]
            below = frozenset(TAXONOMY.descendants(step)) & frozenset(self.labels)
            if below:
                return below
        return None

    def _find_targets_by_scheme(self, name: str) -> Targets:
        labels = {label for s in SCHEMES for spelt in (name, name.upper()) for label in TAXONOMY.from_scheme(spelt, s)}
        targets = [self._find_targets_by_lineage(label) or frozenset() for label in labels]
        return frozenset[str]().union(*targets) or (None if labels else frozenset())

    def _find_targets_by_name_part(self, name: str) -> Targets:
        words = _split_name(_HUMP.sub(" ", name))
        bare = "".join(words[:-1]) if words[-1:] == ["name"] else ""
        levels = _LEVEL.split(name)
        for part in (name.rstrip("0123456789"), *levels[: len(levels) > 1], bare, *words[-1:], *words[:1]):
            if _fold_name(part) in self.names:
                return self.names[_fold_name(part)]
        return frozenset()

    def with_names(self, more: Mapping[str, Collection[str]]) -> LabelMap:
        """Return a map with further labels, which take precedence; a label that maps to nothing is ignored.

        Raises:
            UnknownNameError: the tagger does not have a label.
        """
        added = {_fold_name(name): self._check_tagger_labels(labels, name) for name, labels in more.items()}
        sources = {word: {**table, **added} for word, table in self.sources.items()}
        return LabelMap(self.labels, MappingProxyType({**self.names, **added}), MappingProxyType(sources))

    def _check_tagger_labels(self, labels: Collection[str], where: str) -> Targets:
        check_names("label of the tagger", sorted(labels), self.labels, where)
        return frozenset(labels) or None


@lru_cache(maxsize=65536)
def find_targets(label: str, source: str = "") -> Targets:
    """Return the labels of the tagger that a corpus ``label`` may stand for; see :data:`Targets`.

    Args:
        label: as in the corpus, in any case, with any separators, with or without ``B-`` or ``I-``.
        source: the record's ``meta.source`` or the file's name; some corpora give a label another meaning.

    >>> sorted(find_targets("B-PER"))
    ['PERSON_FIRSTNAME', 'PERSON_LASTNAME']
    >>> find_targets("chemicalelement") is None, find_targets("ward")
    (True, frozenset())
    """
    return load_default_map().find_targets(label, source)


@cache
def load_default_map() -> LabelMap:
    """Return the shipped table."""
    raw = tomllib.loads(files("allonym.train").joinpath("labelmap.toml").read_text(encoding="utf-8"))
    sets = {name: frozenset(value.split()) for name, value in raw["sets"].items()}
    sources = {word: MappingProxyType(_invert_table_lines(lines, sets)) for word, lines in raw["sources"].items()}
    return LabelMap(LABELS, MappingProxyType(_invert_table_lines(raw["labels"], sets)), MappingProxyType(sources))


def read_label_map(path: Path | str) -> LabelMap:
    """Read a TOML file over the default table: ``NAME = ["LABEL", ...]``, or ``[]`` to ignore.

    Raises:
        DataError: the file is not such a table.
        UnknownNameError: the tagger does not have a label.
    """
    return load_default_map().with_names(read_label_lists(path))


def read_label_lists(path: Path | str) -> dict[str, list[str]]:
    """Read a TOML file ``NAME = ["LABEL", ...]`` without looking the labels up.

    Raises:
        DataError: the file is not such a table.
    """
    with hide_foreign_errors(f"label map {path}: cannot be read as TOML", OSError, ValueError):
        table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    for name, labels in table.items():
        if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
            raise DataError(f"label map {path}, {name}: a list of labels is required, got {type(labels).__name__}")
    return table


def _invert_table_lines(lines: Mapping[str, str], sets: Mapping[str, frozenset[str]]) -> dict[str, Targets]:
    out: dict[str, Targets] = {}
    for key, names in lines.items():
        meant = None if key == _IGNORED else sets.get(key) or frozenset(key.split())
        out.update((_fold_name(name), meant) for name in names.split())
    return out


def _split_name(name: str) -> list[str]:
    """Return the words of a label in lower case without accents; digits stay with the letters before them (wnut17)."""
    return find_words(fold(name))


def _fold_name(name: str) -> str:
    return "".join(_split_name(name))


LabelFinder = Callable[[str, str], Targets]
"""``(label, source) -> targets``."""

_REST = "OTHER_IDENTIFYING_ATTRIBUTE"


def unify_label(name: str, source: str = "", label_map: LabelFinder = find_targets) -> str:
    """Return the unified label of a corpus label; empty if it maps to no label of the tagger.

    >>> [unify_label(name) for name in ("PER", "GPE", "MISC", "chemicalelement")]
    ['PERSON', 'LOCATION', 'OTHER_IDENTIFYING_ATTRIBUTE', '']
    """
    meant = label_map(name, source)
    if not meant:
        return ""
    for label in TAXONOMY.lineage(min(meant)):
        if all(TAXONOMY.within(candidate, label) for candidate in meant):
            return label
    return "ORGANIZATION" if "ORGANIZATION" in meant else _REST


def unify_labels(records: Iterable[Record], label_map: LabelFinder = find_targets) -> list[Record]:
    """Relabel records with :func:`unify_label`, dropping spans without a label; the source is ``meta.source``."""
    out: list[Record] = []
    for record in records:
        source = str(record["meta"].get("source", ""))
        named = [(span, unify_label(span["label"], source, label_map)) for span in record["spans"]]
        spans: list[Mark] = [{**span, "label": label} for span, label in named if label]
        out.append({**record, "spans": spans})
    return out


def map_unified_labels(records: Iterable[Record], label_map: LabelFinder = find_targets) -> dict[str, frozenset[str]]:
    """Return each unified label with the tagger's labels that it may stand for in these records."""
    names = {(s["label"], str(r["meta"].get("source", ""))) for r in records for s in r["spans"]}
    out: dict[str, frozenset[str]] = {}
    for name, source in sorted(names):
        if not (label := unify_label(name, source, label_map)):
            continue
        out[label] = out.get(label, frozenset()) | (label_map(name, source) or frozenset())
    return out


def relabel_spans(spans: Sequence[Span], coverage: Mapping[str, frozenset[str]]) -> list[Span]:
    """Relabel a model's spans with the labels of a corpus; spans without a label there are dropped.

    A label stays if the corpus has it. Otherwise it becomes the nearest label of the corpus above it in the taxonomy,
    else one that may stand for it.
    """
    out: list[Span] = []
    for span in spans:
        above = [label for label in TAXONOMY.lineage(span.label) if label in coverage]
        meant = sorted((len(covered), label) for label, covered in coverage.items() if span.label in covered)
        if above or meant:
            label = above[0] if above else meant[0][1]
            out.append(Span(span.start, span.end, label, span.score, span.source))
    return out
