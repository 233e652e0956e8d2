"""Who plays whom: keyed choices, and one document's ledger of what has been given to whom.

Every choice is an HMAC-SHA256 over (kind, key, attempt) under a key derived from the caller's secret and the scope, so
that every worker comes to the same first choice without shared state. Where that choice will not do in a document (the
word stands there, or somebody else has it), the next one is taken and a remark says so.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from allonym.keys import subkey
from allonym.replace.mention import Book, Setting, Wanted
from allonym.text.names import plain
from allonym.text.words import find_words

if TYPE_CHECKING:
    from allonym.kb import KnowledgeBase
    from allonym.replace.atlas import Atlas

T = TypeVar("T")
ATTEMPTS = 64
"""Choices that are tried for one key before its entity falls back to a tag."""

Renderer = Callable[[str], "str | None"]
"""Says what stands for one surface of an entity; None: nothing fits, a tag takes its place."""

LEAST_WORD = 3
"""Letters that a word needs to be told from others; shorter ones (initials, ``of``, ``AG``) may occur twice."""


def words(text: str) -> tuple[str, ...]:
    """The words of a text in plain form: case folded, no diacritics, letters and digits only."""
    return tuple(find_words(plain(text) if text else ""))


@lru_cache(maxsize=64)
def _telling(text: str) -> tuple[str, ...]:
    return tuple(w for w in words(text) if len(w) >= LEAST_WORD)


class Ledger:
    """What has been given to whom in one document, and in its scope where a vault keeps book.

    A *kind* is a space of values, such as ``family name`` or ``city``: within it no two keys get the same value.
    """

    def __init__(self, text: str, key: bytes, book: Book | None, remarks: list[str]) -> None:
        self._text = plain(text) if text else ""
        self._words = frozenset(find_words(self._text))
        self._key = key
        self._book = book
        self._remarks = remarks
        self._given: dict[tuple[str, str], str] = {}
        self._owner: dict[str, tuple[str, str]] = {}  # word of a value -> who has it

    def number(self, kind: str, key: str, attempt: int = 0) -> int:
        """A keyed number from 0 to 2**64 - 1."""
        message = f"{kind}\0{key}\0{attempt}".encode("utf-8", "surrogatepass")
        return int.from_bytes(hmac.digest(self._key, message, "sha256")[:8])

    def pick(self, pool: Sequence[T], kind: str, key: str, attempt: int = 0) -> T:
        """The keyed choice out of a pool that must not be empty. Order and content of the pool count."""
        return pool[self.number(kind, key, attempt) % len(pool)]

    def assign(
        self, kind: str, key: str, propose: Callable[[int], str | None], *, telling: Callable[[str], str] | None = None
    ) -> str | None:
        """The value that ``key`` has in this document: the same for every mention, with a vault for every document.

        Args:
            kind: the space of values.
            key: who it is for, in normal form.
            propose: the choice of each attempt, from 0; None: there are no more.
            telling: the part of a value by which it is told from others; by default all of it. The words of that part
                must stand nowhere in the document and belong to no other value.

        Returns:
            The value; None where nothing that was proposed will do.
        """
        if (kind, key) in self._given:
            return self._given[kind, key]
        attempt, place, name = 0, 0, key
        taken = False
        while attempt < ATTEMPTS:
            known = self._book.recall(kind, name) if self._book is not None else None
            if known is not None:
                if self._free(telling(known) if telling else known, kind, key):
                    self._give(kind, key, known, telling)
                    return known
                # The vault's value cannot stand in this document: the key gets a further one, for such documents.
                place += 1
                name = f"{key}\0{place}"
                continue
            value = propose(attempt)
            attempt += 1
            if value is None:
                return None
            part = telling(value) if telling else value
            if not self._free(part, kind, key):
                taken = taken or any(w in self._owner for w in _telling(part))
                continue
            if self._book is not None and not self._book.enter(kind, name, value):
                taken = True
                continue
            self._give(kind, key, value, telling)
            if taken:
                self._remarks.append(f"{kind}: choice {attempt} was taken, an earlier one belongs to somebody else")
            return value
        return None

    def holds(self, words: Iterable[str]) -> bool:
        """Whether all these words, in plain form, stand somewhere in the document."""
        return self._words.issuperset(words)

    def stands(self, text: str) -> bool:
        """Whether a value, or a word of it, stands in the document already."""
        found = _telling(text)
        return any(w in self._words for w in found) if found else plain(text) in self._text

    def _free(self, part: str, kind: str, key: str) -> bool:
        if not part.strip() or self.stands(part):
            return False
        return all(self._owner.get(w, (kind, key)) == (kind, key) for w in _telling(part) or (plain(part),))

    def _give(self, kind: str, key: str, value: str, telling: Callable[[str], str] | None) -> None:
        self._given[kind, key] = value
        part = telling(value) if telling else value
        for word in _telling(part) or (plain(part),):
            self._owner[word] = (kind, key)


@dataclass(slots=True)
class Cast:
    """What those who choose substitutes for one document share. Mutable; it never leaves a call of ``prepare``.

    Attributes:
        setting: document, policy, key, scope.
        ledger: who has got what.
        kb: the knowledge base.
        wanted: all entities of the document that get a pseudonym, in reading order.
        remarks: for the plan; hold no text of the document.
        people: name in plain form (whole names, and parts that only one person bears) to who plays them, for e-mail
            addresses, user names and companies that carry a name.
        again: entity key to what renders a surface once more, by the number of the attempt, where its first substitute
            turns out to be another's; see :mod:`allonym.replace.apart`.
        places: place in plain form to its substitute, for companies, nationalities and languages.
        atlas: which place becomes which, once :mod:`allonym.replace.atlas` has been asked.
        addresses: internet addresses that stand in the document, once :mod:`allonym.replace.network` has looked.
    """

    setting: Setting
    ledger: Ledger
    kb: KnowledgeBase
    remarks: list[str] = field(default_factory=list)
    wanted: Sequence[Wanted] = ()
    people: dict[str, object] = field(default_factory=dict)
    places: dict[str, object] = field(default_factory=dict)
    atlas: Atlas | None = None
    addresses: frozenset[str] | None = field(default=None, repr=False)
    again: dict[str, Callable[[str, int], str | None]] = field(default_factory=dict)

    @classmethod
    def of(cls, setting: Setting, kb: KnowledgeBase, remarks: list[str], wanted: Sequence[Wanted] = ()) -> Cast:
        """For the document of a setting.

        Raises:
            UsageError: there is no key, or it is too short.
        """
        key = subkey(setting.key, "pseudonym", setting.scope)
        return cls(setting, Ledger(setting.document.text, key, setting.book, remarks), kb, remarks, wanted)


def by_family(wanted: Iterable[Wanted], setting: Setting) -> dict[str, list[Wanted]]:
    """Entities by the topmost label of their lineage, in reading order."""
    out: dict[str, list[Wanted]] = {}
    for one in wanted:
        out.setdefault(setting.policy.taxonomy.lineage(one.entity.label)[-1], []).append(one)
    return out


class CorpusBook:
    """A :class:`Book` in memory, for one pass over a corpus.

    Its keys are words of originals as they stand, unlike a vault's. They are in memory only and go with the book; what
    :meth:`remember` is told is not kept.
    """

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], str] = {}
        self._owners: dict[tuple[str, str], str] = {}
        self._numbers: dict[str, int] = {}

    def about(self, subject: str) -> None:
        """See :class:`Book`."""

    def recall(self, kind: str, key: str) -> str | None:
        """See :class:`Book`."""
        return self._values.get((kind, key))

    def enter(self, kind: str, key: str, value: str) -> bool:
        """See :class:`Book`."""
        if self._owners.setdefault((kind, value), key) != key:
            return False
        self._values[kind, key] = value
        return True

    def number(self, kind: str) -> int:
        """See :class:`Book`."""
        self._numbers[kind] = self._numbers.get(kind, 0) + 1
        return self._numbers[kind]

    def remember(self, replacement: str, original: str, label: str, operator: str, entity: str) -> None:
        """Nothing is kept."""


class Corpus:
    """Stands in for a vault during one pass over a corpus: no two entities of it share a replacement.

    Args:
        key: secret of the keyed operators.
    """

    def __init__(self, key: bytes | str | None) -> None:
        self.operator_key = key
        self._books: dict[str, CorpusBook] = {}

    @contextmanager
    def book(self, scope: str, subject: str = "") -> Iterator[CorpusBook]:
        """The scope's book, see :class:`CorpusBook`."""
        yield self._books.setdefault(scope, CorpusBook())
