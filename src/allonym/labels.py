"""The taxonomy: every kind of identifying text once, with its place in the tree, its risk and its foreign names.

The table is ``labels.tsv`` beside this file, one line a label. Risk scores are those of P2 (Table 6) where it has the
type. ``to_scheme`` and ``from_scheme`` map to and from the names that other tools and corpora use.
"""

from __future__ import annotations

import copyreg
import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Literal, cast

from allonym.errors import PolicyError, UnknownNameError, check_names

Kind = Literal["direct", "quasi", "none"]


def _make_read_only(table: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(table)


# Labels and policies hold read-only mappings and go to other processes; Python cannot pickle these by itself.
copyreg.pickle(MappingProxyType, lambda table: (_make_read_only, (dict(table),)))

SCHEMES = ("presidio", "spacy", "conll", "dlp", "tab", "textwash", "p1", "p2", "p5")
"""Names of the foreign schemes. ``spacy`` is OntoNotes; ``p1``, ``p2`` and ``p5`` are the papers' own names."""

TAG_LANGUAGES = ("de", "fr", "es", "it", "pt", "nl", "pl", "sv")
"""Languages, as ISO 639-1 codes, in which tags can call labels: ``[OSOBA_1]`` for ``[PERSON_1]``."""

UNREAD_TEXT = "UNREAD_TEXT"
"""The label of passages that a policy covers whole, because no detector of names reads their language."""


@dataclass(frozen=True, slots=True)
class Label:
    """One kind of identifying text.

    Attributes:
        name: in capitals, e.g. ``US_SSN``.
        parent: the wider label, or None at the top.
        kind: ``direct`` identifies alone, ``quasi`` in combination, ``none`` hardly ever.
        risk: harm of leaving it in, 0 to 5 (P2, section 4.2 and Table 6).
        names: per scheme, the foreign names; the first is the one written, all are read.
        description: one line for people.
    """

    name: str
    parent: str | None
    kind: Kind
    risk: int
    description: str = ""
    names: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))


class Taxonomy:
    """An immutable tree of labels."""

    def __init__(self, labels: Iterable[Label]) -> None:
        self._labels = {label.name: label for label in labels}
        for label in self._labels.values():
            if label.parent is not None:
                check_names("parent label", (label.parent,), self._labels, label.name)
        self._ancestors: dict[str, tuple[str, ...]] = {}
        for name in self._labels:
            chain = [name]
            while (parent := self._labels[chain[-1]].parent) is not None:
                if parent in chain:
                    raise PolicyError(f"label {name} is its own ancestor")
                chain.append(parent)
            self._ancestors[name] = tuple(chain)

    def __reduce__(self) -> str | tuple[object, ...]:
        if self is TAXONOMY:
            return "TAXONOMY"
        return TAXONOMY.extend, ([label for label in self if label.name not in TAXONOMY],)

    def __contains__(self, name: object) -> bool:
        return name in self._labels

    def __iter__(self) -> Iterator[Label]:
        return iter(self._labels.values())

    def __len__(self) -> int:
        return len(self._labels)

    def get(self, name: str, where: str = "") -> Label:
        """Return the label called ``name``; raises :class:`UnknownNameError` with near matches."""
        try:
            return self._labels[name]
        except KeyError:
            raise UnknownNameError("label", name, self._labels, where) from None

    def lineage(self, name: str) -> tuple[str, ...]:
        """Return the label, its parent, and so on up to the top. An unknown label has only itself."""
        return self._ancestors.get(name, (name,))

    def get_family(self, name: str) -> str:
        """Return the broadest label above a label, such as ``PERSON``; an unknown label is its own family."""
        return self.lineage(name)[-1]

    def within(self, name: str, ancestor: str) -> bool:
        """Return whether ``name`` is ``ancestor`` or lies below it."""
        return name == ancestor or ancestor in self._ancestors.get(name, ())

    def are_related(self, a: str, b: str) -> bool:
        """Return whether two labels are the same, one lies below the other, or both share an ancestor."""
        return a == b or self.get_family(a) == self.get_family(b)

    def descendants(self, name: str) -> tuple[str, ...]:
        """Return the label and all below it, in table order."""
        self.get(name)
        return tuple(n for n in self._labels if name in self._ancestors[n])

    def extend(self, labels: Iterable[Label]) -> Taxonomy:
        """Return a taxonomy with more labels. A name that exists already is an error."""
        more = list(labels)
        for label in more:
            if label.name in self._labels:
                raise PolicyError(f"label {label.name} exists already")
        return Taxonomy([*self._labels.values(), *more])

    def to_scheme(self, label: str, scheme: str) -> str | None:
        """Return the scheme's name for ``label`` or its nearest ancestor that has one; None where there is none."""
        check_names("scheme", (scheme,), SCHEMES)
        self.get(label)
        for name in self.lineage(label):
            if names := self._labels[name].names.get(scheme):
                return names[0]
        return None

    def to_language(self, label: str, language: str) -> str | None:
        """Return a language's name for ``label`` or its nearest ancestor that has one; None where there is none."""
        check_names("language", (language,), TAG_LANGUAGES)
        names = read_tag_names()[language]
        return next((names[name] for name in self.lineage(label) if name in names), None)

    def from_scheme(self, name: str, scheme: str) -> tuple[str, ...]:
        """Return all labels that the scheme calls ``name``, in table order; empty where it has no such name."""
        check_names("scheme", (scheme,), SCHEMES)
        return _map_foreign_names(self, scheme).get(name, ())


@lru_cache(maxsize=256)
def _map_foreign_names(taxonomy: Taxonomy, scheme: str) -> dict[str, tuple[str, ...]]:
    by_name: dict[str, list[str]] = {}
    for label in taxonomy:
        for foreign in label.names.get(scheme, ()):
            by_name.setdefault(foreign, []).append(label.name)
    return {foreign: tuple(labels) for foreign, labels in by_name.items()}


@cache
def read_tag_names() -> Mapping[str, Mapping[str, str]]:
    """Read how tags call labels: language to label to name."""
    lines = files("allonym").joinpath("tag_names.tsv").read_text(encoding="utf-8").splitlines()
    rows = list(csv.DictReader((line for line in lines if not line.startswith("#")), delimiter="\t"))
    return {code: {row["name"]: row[code] for row in rows} for code in TAG_LANGUAGES}


def _read_taxonomy() -> Taxonomy:
    labels = []
    lines = files("allonym").joinpath("labels.tsv").read_text(encoding="utf-8").splitlines()
    for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
        names = {s: tuple(row[s].split("|")) for s in SCHEMES if row[s]}
        kind = cast(Kind, row["kind"])
        listed = MappingProxyType(names)
        labels.append(Label(row["name"], row["parent"] or None, kind, int(row["risk"]), row["description"], listed))
    return Taxonomy(labels)


TAXONOMY: Taxonomy = _read_taxonomy()
"""The labels that come with allonym."""


def to_scheme(label: str, scheme: str) -> str | None:
    """Return the name of ``label`` in a foreign scheme, or None where the scheme has nothing like it.

    >>> to_scheme("PERSON", "dlp")
    'PERSON_NAME'

    Raises:
        UnknownNameError: no such label or scheme.
    """
    return TAXONOMY.to_scheme(label, scheme)


def from_scheme(name: str, scheme: str) -> tuple[str, ...]:
    """Return the labels that a foreign scheme calls ``name``; empty where it has no such name.

    >>> from_scheme("GPE", "spacy")
    ('COUNTRY', 'CITY', 'REGION', 'US_STATE')

    Raises:
        UnknownNameError: no such scheme.
    """
    return TAXONOMY.from_scheme(name, scheme)
