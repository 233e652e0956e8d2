"""Keyed choices of pseudonyms, and one document's ledger of which entity has which value.

Every choice is an HMAC-SHA256 over (kind, key, attempt) under a key derived from the caller's secret and the scope, so
that every worker comes to the same first choice without shared state. Where that choice cannot be used in a document
(the word or a form of it occurs there, or another entity has it), the next one is taken and a remark says so.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from allonym.document import Interval, subtract_intervals
from allonym.keys import derive_operator_key
from allonym.plan import digest
from allonym.protocol import Book, Setting, Wanted
from allonym.text.inflection import find_base_forms
from allonym.text.names import normalize_surface
from allonym.text.words import LETTERS, find_words

if TYPE_CHECKING:
    from allonym.kb import KnowledgeBase
    from allonym.plan import Plan
    from allonym.replace.person import Person
    from allonym.replace.place_map import PlaceMap

T = TypeVar("T")
ATTEMPTS = 64
"""Choices that are tried for one key before its entity falls back to a tag."""

Renderer = Callable[[str], "str | None"]
"""Returns the replacement of one surface of an entity; None where nothing fits and a tag is written."""

Propose = Callable[[int], "str | None"]
"""Returns the choice of an attempt, counted from 0; None: there are no more."""

Telling = Callable[[str], str]
"""Returns the distinctive part of a value."""

LEAST_WORD = 3
"""Letters that a word needs to be distinctive; shorter ones (initials, ``of``, ``AG``) may occur twice."""
_OFFLINE = re.compile(r"[a-z0-9]+: (\d+) of \d+ entities got an offline pseudonym")


def find_plain_words(text: str) -> tuple[str, ...]:
    """Return the words of a text in plain form: case folded, no diacritics, letters and digits only."""
    return tuple(find_words(normalize_surface(text) if text else ""))


@lru_cache(maxsize=64)
def _find_distinctive_words(text: str) -> tuple[str, ...]:
    return tuple(w for w in find_plain_words(text) if len(w) >= LEAST_WORD)


def _list_claimed_words(text: str) -> tuple[str, ...]:
    """Return what nobody else's value may hold: the distinctive words of a value; all of it where it has none."""
    return _find_distinctive_words(text) or (normalize_surface(text),)


class Ledger:
    """A record of which key has which value in one document, and in its scope where a vault is open.

    A *kind* is a space of values, such as ``family name`` or ``city``: within it no two keys get the same value.

    Args:
        text: of the document.
        key: secret of the draws.
        book: of the scope; None without a vault.
        remarks: for the plan; grow.
        places: where the text is replaced, sorted and disjoint.
    """

    def __init__(
        self, text: str, key: bytes, book: Book | None, remarks: list[str], places: Sequence[Interval] = ()
    ) -> None:
        self._written = text
        self._places = places
        self._text = normalize_surface(text) if text else ""
        self._words = frozenset(find_words(self._text))
        self._key = key
        self._book = book
        self._remarks = remarks
        self._values: dict[tuple[str, str], str] = {}
        self._owners: dict[str, tuple[str, str]] = {}  # word of a value -> kind and key that have it

    def draw_number(self, kind: str, key: str, attempt: int = 0) -> int:
        """Return a keyed number from 0 to 2**64 - 1."""
        message = f"{kind}\0{key}\0{attempt}".encode("utf-8", "surrogatepass")
        return int.from_bytes(hmac.digest(self._key, message, "sha256")[:8])

    def pick(self, pool: Sequence[T], kind: str, key: str, attempt: int = 0) -> T:
        """Return the keyed choice from a pool that must not be empty. Order and content of the pool count."""
        return pool[self.draw_number(kind, key, attempt) % len(pool)]

    def assign(
        self, kind: str, key: str, propose: Propose, *, telling: Telling = str, prefers_last: bool = False
    ) -> str | None:
        """Return the value of ``key`` in this document: the same for every mention, with a vault for every document.

        Args:
            kind: the space of values.
            key: the normal form of what gets the value.
            propose: returns the choice of each attempt, from 0; None: there are no more.
            telling: returns the distinctive part of a value, by default all of it. The words of that part must occur
                nowhere in the document, no inflected form of them may stand in what stays of it, and they may belong
                to no other value.
            prefers_last: of the values that the vault has for the key, because the first could not stand in some
                document, take the last that can stand in this one. Then a second pass over all documents gives them
                the same value.

        Returns:
            The value; None where no proposal can be used.
        """
        if (kind, key) in self._values:
            return self._values[kind, key]
        former = self._list_former_values(kind, key)
        for reserve in reversed(former) if prefers_last else former:
            if self._is_free(telling(reserve), kind, key):
                return self._record_value(kind, key, reserve, telling(reserve))
        name = f"{key}\0{len(former)}" if former else key
        attempt, collided = 0, False
        while attempt < ATTEMPTS:
            value = propose(attempt)
            attempt += 1
            if value is None:
                return None
            part = telling(value)
            if not self._is_free(part, kind, key):
                collided = collided or any(w in self._owners for w in _find_distinctive_words(part))
            elif self._book is not None and not self._book.enter(kind, name, value):
                collided = True
            else:
                if collided:
                    self._remarks.append(f"{kind}: choice {attempt} was taken, an earlier one belongs to somebody else")
                return self._record_value(kind, key, value, part)
        return None

    def _list_former_values(self, kind: str, key: str) -> list[str]:
        """Return the values that ``key`` has in the scope: more than one if the first could not stand in a document."""
        out: list[str] = []
        while (value := self.recall(kind, f"{key}\0{len(out)}" if out else key)) is not None:
            out.append(value)
        return out

    def recall(self, kind: str, key: str) -> str | None:
        """Return the value that ``key`` has in the scope; None without one, or without a vault."""
        return self._book.recall(kind, key) if self._book is not None else None

    def has_value(self, kind: str, value: str) -> bool:
        """Tell whether a key of the scope has a value; False without a vault."""
        return self._book is not None and self._book.has_value(kind, value)

    def share(self, kind: str, key: str, value: str) -> None:
        """Give ``key`` a value in the scope, for documents in which only it occurs, unless it has one already."""
        if self._book is not None and self._book.recall(kind, key) is None:
            self._book.enter(kind, key, value)

    def choose(
        self, kind: str, key: str, pool: Sequence[str], *, start: int | None = None, telling: Telling = str
    ) -> str | None:
        """Assign a value of a pool: each is tried in turn, from ``start`` on, by default from a keyed place."""
        first = self.draw_number(kind, key) if start is None else start

        def propose(attempt: int) -> str | None:
            return pool[(first + attempt) % len(pool)] if attempt < len(pool) else None

        return self.assign(kind, key, propose, telling=telling)

    def text_has_words(self, words: Iterable[str]) -> bool:
        """Whether all these words, in plain form, occur somewhere in the document."""
        return self._words.issuperset(words)

    def occurs_in_text(self, text: str) -> bool:
        """Whether a value, or a distinctive word of it, occurs in the document already."""
        distinctive = _find_distinctive_words(text)
        return any(w in self._words for w in distinctive) if distinctive else normalize_surface(text) in self._text

    @cached_property
    def outside_text(self) -> str:
        """The text of the document without what is about to be replaced."""
        text = self._written
        return "\0".join(text[a:b] for a, b in subtract_intervals((0, len(text)), self._places))

    @cached_property
    def _inflected_names(self) -> frozenset[str]:
        """Names, in plain form, that the capitalised words outside may be forms of; restoring reads them so."""
        words = {word.casefold() for word in LETTERS.findall(self.outside_text) if word[0].isupper()}
        return frozenset(normalize_surface(base) for word in words for base, _ in find_base_forms(word))

    def _is_free(self, part: str, kind: str, key: str) -> bool:
        if not part.strip() or self.occurs_in_text(part):
            return False
        if any(word.isalpha() and word in self._inflected_names for word in _find_distinctive_words(part)):
            return False
        return all(self._owners.get(claim, (kind, key)) == (kind, key) for claim in _list_claimed_words(part))

    def _record_value(self, kind: str, key: str, value: str, part: str) -> str:
        self._values[kind, key] = value
        self._owners.update(dict.fromkeys(_list_claimed_words(part), (kind, key)))
        return value


@dataclass(slots=True)
class Cast:
    """The state that the modules of pseudonyms share for one document. Mutable; it never leaves ``prepare``.

    Attributes:
        setting: document, policy, key, scope.
        ledger: which key has which value.
        kb: the knowledge base.
        remarks: for the plan; hold no text of the document.
        targets: all entities of the document that get a pseudonym, in reading order.
        people: name in plain form (whole names, and parts that only one person bears) to its
            :class:`~allonym.replace.person.Person`, for e-mail addresses, user names and companies that carry a name.
        name_owners: keys of given names to the entity that has them.
        near_names: names, and names less one letter, to the key that has them.
        new_initials: new initials to the old ones.
        places: place in plain form to its pseudonym, for companies, nationalities and languages.
        place_map: which place becomes which, once :mod:`allonym.replace.place_map` has been used.
        addresses: IP addresses of the document, once :mod:`allonym.replace.addresses` has looked for them.
        alternatives: entity key to what renders its surfaces once more, where the first pseudonym collides with
            another; see :mod:`allonym.replace.pseudonym`.
    """

    setting: Setting
    ledger: Ledger
    kb: KnowledgeBase
    remarks: list[str] = field(default_factory=list)
    targets: Sequence[Wanted] = ()
    people: dict[str, Person] = field(default_factory=dict)
    name_owners: dict[str, str] = field(default_factory=dict, repr=False)
    near_names: dict[str, str] = field(default_factory=dict, repr=False)
    new_initials: dict[str, str] = field(default_factory=dict, repr=False)
    places: dict[str, object] = field(default_factory=dict)
    place_map: PlaceMap | None = None
    addresses: frozenset[str] | None = field(default=None, repr=False)
    alternatives: dict[str, Renderer] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The text of the document."""
        return self.setting.document.text

    def get_lineage(self, target: Wanted) -> tuple[str, ...]:
        """Return the label of an entity and its ancestors, the broadest last."""
        return self.setting.policy.taxonomy.lineage(target.entity.label)

    def get_label_family(self, target: Wanted) -> str:
        """Return the broadest label of an entity, such as PERSON."""
        return self.setting.policy.taxonomy.get_family(target.entity.label)


def make_cast(setting: Setting, kb: KnowledgeBase, remarks: list[str], targets: Sequence[Wanted] = ()) -> Cast:
    """Return the state for the document of a setting.

    Raises:
        UsageError: there is no key, or it is too short.
    """
    key = derive_operator_key(setting.key, "pseudonym", setting.scope + setting.unit)
    ledger = Ledger(setting.document.text, key, setting.book, remarks, setting.places)
    return Cast(setting, ledger, kb, remarks, targets)


class CorpusBook:
    """A :class:`Book` in memory, for one pass over a corpus.

    Its keys are words of originals in clear, unlike a vault's. They stay in memory and go with the book;
    :meth:`remember` keeps nothing.
    """

    unit = ""
    """See :class:`Book`."""

    register = None
    """See :class:`Book`."""

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

    def has_value(self, kind: str, value: str) -> bool:
        """See :class:`Book`."""
        return (kind, value) in self._owners

    def number(self, kind: str) -> int:
        """See :class:`Book`."""
        self._numbers[kind] = self._numbers.get(kind, 0) + 1
        return self._numbers[kind]

    def remember(self, replacement: str, original: str, label: str, operator: str, entity: str) -> None:
        """Keep nothing: a corpus pass restores no originals."""

    def keep_plan(self, document: str, plan: Plan, text: str, people: Mapping[int, str] = MappingProxyType({})) -> None:
        """Keep nothing, see :meth:`remember`."""


class Corpus:
    """Takes the place of a vault during one pass over a corpus: no two entities of it share a replacement.

    Args:
        key: secret of the keyed operators.
        file: says about the file whose records are the corpus, such as its size, so that pseudonyms of another file
            are others; None: the caller asked for one corpus.
    """

    def __init__(self, key: bytes | str | None, file: str | None = None) -> None:
        self.operator_key = key
        self._file = file
        self._unit = ""
        self._books: dict[str, CorpusBook] = {}

    @contextmanager
    def book(self, scope: str, subject: str = "") -> Iterator[CorpusBook]:
        """Yield the scope's book, see :class:`CorpusBook`."""
        book = self._books.setdefault(scope, CorpusBook())
        book.unit = self._unit
        yield book

    def begin(self, text: str) -> None:
        """Take the first text of the file, by which it is known from then on; later ones change nothing."""
        if self._file is not None and not self._unit:
            self._unit = f"\0file\0{self._file}\0{digest(text)}"


def format_offline_remark(operator: str, lacking: int, total: int, reason: str = "") -> str:
    """Format the remark that says for how many of its entities an operator's model had no usable value."""
    return f"{operator}: {lacking} of {total} entities got an offline pseudonym{f' ({reason})' if reason else ''}"


def count_offline_entities(remarks: Iterable[str]) -> int:
    """Count the entities that did without a model, by the remarks of :func:`format_offline_remark`."""
    return sum(int(match[1]) for match in map(_OFFLINE.match, remarks) if match)
