"""From entities to a plan: numbers, operators, and the sentence around each replacement.

Around a replacement the text is kept right by the edits themselves, never outside of them:

- a possessive ending, outer space and the sentence's own punctuation inside a mention stay;
- letters and digits that stick to a mention go with it (``6th``, where only ``6`` was found); where the run is longer
  than 40 or the script writes no spaces they stay, and a space is put where two letters or digits would touch;
- what is removed takes a left-over space with it;
- an English ``a`` or ``an`` before a replacement follows how the replacement is spoken, as an edit of its own.

Replacements that the key alone can undo (``encrypt``) get neither added spaces nor changed articles; where the
policy encrypts, whatever in the text looks like one of its tokens is encrypted once more, so that restoring takes
off exactly one layer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from operator import itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from allonym.document import Document, Entity, Span
from allonym.errors import AllonymError, DataError
from allonym.keys import require_key
from allonym.plan import Edit, Plan, apply_edits, digest
from allonym.replace.context import article, attached, core, grown, removed, with_article
from allonym.replace.keyed import LOOSE_TOKEN, seal
from allonym.replace.mention import (
    PLAIN,
    Book,
    Mention,
    Operator,
    Setting,
    Traits,
    Wanted,
    check_options,
    get_operator,
    tag_form,
    traits_of,
)
from allonym.replace.older_keys import with_older_keys
from allonym.text.words import find_words

if TYPE_CHECKING:
    from allonym.policy import Policy

ESCAPED_LABEL = "OTHER_IDENTIFYING_ATTRIBUTE"
ARTICLE = "article@1"
_NONE_GIVEN: Mapping[Span, tuple[str, str]] = MappingProxyType({})
UNNUMBERED = "\0tag"
"""The tag of an entity that is numbered only if an operator returns its tag."""


class Linkage(Protocol):
    """What :func:`allonym.link.link` returns."""

    @property
    def entities(self) -> Sequence[Entity]: ...

    @property
    def notes(self) -> Sequence[str]: ...


@dataclass(frozen=True, slots=True, eq=False)
class _Way:
    """How one label is replaced under one policy."""

    name: str
    call: Operator
    traits: Traits
    family: str
    label: str
    style: str
    shape: str
    options: Mapping[str, object]
    prefix: str | None  # lower case, what stands before the number; None where tags have no number


@lru_cache(maxsize=4096)
def _way(policy: Policy, label: str) -> _Way:
    rule = policy.rule(label)
    check_options(rule.operator, rule.options, f"policy {policy.name}: rule for {label}")
    operator = get_operator(rule.operator)
    about = traits_of(operator)
    shown, style = tag_form(policy, label)
    shape = style.format(label=shown, n=0)
    numbered = shape != style.format(label=shown, n=1)
    prefix = style.partition("{n")[0].format(label=shown).lower() if numbered else None
    call = partial(operator, **rule.options) if rule.options else operator
    family = policy.taxonomy.lineage(label)[-1]
    return _Way(f"{rule.operator}@{about.version}", call, about, family, shown, style, shape, rule.options, prefix)


@lru_cache(maxsize=256)
def _needs(policy: Policy) -> tuple[str, bool]:
    """The keyed operator that the policy uses (empty: none), and whether any of its operators is exact."""
    used = {policy.rule(label.name).operator for label in policy.taxonomy if policy.looks_for(label.name)}
    about = {name: traits_of(get_operator(name)) for name in sorted(used)}
    return next((n for n, t in about.items() if t.keyed), ""), any(t.exact for t in about.values())


class _Numbers:
    """Numbers tags in reading order and passes over those that the text holds already."""

    def __init__(self, text: str, book: Book | None) -> None:
        self._text = text
        self._book = book
        self._lower: str | None = None
        self._last: dict[str, int] = {}
        self._taken: dict[str, frozenset[int]] = {}

    def next(self, way: _Way, key: str) -> int:
        if self._book is not None:
            return self._kept(way, key, self._book)
        number = self._last.get(way.shape, 0) + 1
        taken = self._there(way)
        while number in taken:
            number += 1
        self._last[way.shape] = number
        return number

    def _kept(self, way: _Way, key: str, book: Book) -> int:
        """The number that the entity has in the vault; a further one where the text holds that number already."""
        taken, kind = self._there(way), f"tag {way.shape}"
        name = key
        while True:
            known = book.recall(kind, name)
            number = int(known) if known is not None else book.number(kind)
            if known is None:
                while number in taken:
                    number = book.number(kind)
                book.enter(kind, name, str(number))
            if number not in taken:
                return number
            name += "\0"

    def _there(self, way: _Way) -> frozenset[int]:
        if way.prefix is None:
            return frozenset()
        if way.shape not in self._taken:
            self._taken[way.shape] = self._present(way.prefix)
        return self._taken[way.shape]

    def _present(self, prefix: str) -> frozenset[int]:
        """The numbers that stand in the text behind the tag's words, with its signs or without: ``Person 3``."""
        told = find_words(prefix)
        if self._lower is None:
            self._lower = self._text.lower()
        if not all(word in self._lower for word in told):
            return frozenset()
        loose = r"[\W_]{0,3}".join(map(re.escape, told)) + r"[\W_]{0,3}" if told else re.escape(prefix)
        return frozenset(int(n) for n in re.findall(loose + r"0*([0-9]{1,9})(?![0-9])", self._lower))


_Item = tuple[int, int, int, Span, Entity | None, _Way | None, int, str, int]


def make_plan(
    document: Document,
    linked: Linkage | Sequence[Entity],
    policy: Policy,
    *,
    key: bytes | str | None = None,
    scope: str = "",
    notes: Iterable[str] = (),
    book: Book | None = None,
    given: Mapping[Span, tuple[str, str]] = _NONE_GIVEN,
) -> Plan:
    """The plan that replaces each mention of each entity as the policy says.

    Args:
        document: the text that the entities were found in.
        linked: what :func:`allonym.link.link` made, or entities; no two mentions may overlap.
        policy: operator and options per label, and how tags are written.
        key: secret of at least 16 bytes for keyed operators.
        scope: names the release; ``hash`` and ``shift_dates`` give other values in another scope.
        notes: remarks to keep in the plan, beside those of ``linked``.
        book: the scope's pages of a vault: entities that it knows keep their replacements, and what is replaced is
            written into it.
        given: mention to replacement and operator where both are settled already, whatever the policy says, e.g.
            ``("Acme", "swap@1")``. The sentence around it is kept right as everywhere.

    Raises:
        UsageError: the policy uses a keyed operator and there is no key, or an operator's options are wrong.
        DataError: a mention lies outside the text or over another, or an operator failed. No text is quoted.
    """
    entities = linked if isinstance(linked, Sequence) else linked.entities
    remarks = [*(() if isinstance(linked, Sequence) else linked.notes), *notes]
    text = document.text
    needs_key, exact = _needs(policy)
    if needs_key:
        require_key(key, needs_key)
    inner = _scope(document, policy, scope)
    if book is not None and inner != scope:
        book = _Pages(book, digest(inner))
    if book is not None:
        book = with_older_keys(book, text)
    numbers = _Numbers(text, book)
    items = _items(entities, policy, numbers, book is not None, given)
    _check_apart(text, items)
    if exact and ("e1" in text or "E1" in text):
        items = _with_tokens(text, items)
    before = digest(text)
    if not items:
        return Plan(before, (), tuple(dict.fromkeys(remarks)), before)
    setting = _prepared(text, items, Setting(document, policy, key, inner, book, tuple(i[:2] for i in items)), remarks)
    edits = _edits(text, items, setting, policy.language == "en", numbers)
    _check_cover(items, edits)
    return Plan(before, tuple(edits), tuple(dict.fromkeys(remarks)), digest(apply_edits(text, edits)))


def subject_of(document: Document, policy: Policy) -> str:
    """Whom the document is about, where the policy says which metadata key tells; else empty.

    Raises:
        DataError: the policy is consistent by subject and the document names none.
    """
    if not policy.subject:
        return ""
    who = document.meta.get(policy.subject)
    if (who is None or who == "") and policy.consistent == "subject":
        raise DataError(f"policy {policy.name} needs the metadata key {policy.subject!r}, which this document lacks")
    return "" if who is None else str(who)


def _scope(document: Document, policy: Policy, scope: str) -> str:
    if policy.consistent == "scope":
        return scope
    if policy.consistent == "subject":
        return f"{scope}\0subject\0{subject_of(document, policy)}"
    return f"{scope}\0document\0{document.id or digest(document.text)}"


@dataclass(frozen=True, slots=True)
class _Pages:
    """A book whose values hold for one document or subject only."""

    book: Book = field(repr=False)
    mark: str

    def about(self, subject: str) -> None:
        self.book.about(subject)

    def recall(self, kind: str, key: str) -> str | None:
        return self.book.recall(f"{kind} {self.mark}", key)

    def enter(self, kind: str, key: str, value: str) -> bool:
        return self.book.enter(f"{kind} {self.mark}", key, value)

    def number(self, kind: str) -> int:
        return self.book.number(kind)

    def remember(self, replacement: str, original: str, label: str, operator: str, entity: str) -> None:
        self.book.remember(replacement, original, label, operator, f"{self.mark} {entity}")


def _prepared(text: str, items: list[_Item], setting: Setting, remarks: list[str]) -> Setting:
    """The setting with what the operators that prepare themselves made of the document."""
    surfaces: dict[int, list[str]] = {}
    ways: dict[str, dict[int, _Item]] = {}
    for item in items:
        entity, way = item[4], item[5]
        if entity is None or way is None or way.traits.prepare is None:
            continue
        a, b = core(text, item[0], item[1], way.family)
        surfaces.setdefault(item[2], []).append(text[a:b])
        ways.setdefault(way.name, {}).setdefault(item[2], item)
    if not ways:
        return setting
    prepared: dict[str, object] = {}
    for name, firsts in ways.items():
        wanted = [
            Wanted(entity, way.options, number, way.label, tag, tuple(surfaces[serial]))
            for serial, (_, _, _, _, entity, way, number, tag, _) in sorted(firsts.items())
            if entity is not None and way is not None
        ]
        prepare = traits_of(get_operator(name.partition("@")[0])).prepare
        assert prepare is not None
        failure = ""
        try:
            prepared[name.partition("@")[0]] = prepare(wanted, setting, remarks)
        except AllonymError:
            raise
        except Exception as error:  # as with operators: only the type is told
            failure = type(error).__name__
        if failure:
            raise DataError(f"operator {name} failed with {failure} while it prepared the document")
    return replace(setting, prepared=MappingProxyType(prepared))


def _items(
    entities: Sequence[Entity],
    policy: Policy,
    numbers: _Numbers,
    late: bool,
    given: Mapping[Span, tuple[str, str]],
) -> list[_Item]:
    items: list[_Item] = []
    for serial, entity in enumerate(sorted(entities, key=_start), 1):
        way = _way(policy, entity.label)
        spans = entity.spans
        if given:
            for span in spans:
                if span in given:
                    items.append((span.start, span.end, serial, span, entity, _settled(way, *given[span]), 0, "", 0))
            spans = tuple(s for s in spans if s not in given)
        if way.traits.keeps or not spans:
            continue
        if late and way.traits.prepare is not None:
            number, tag = 0, UNNUMBERED  # most of these get no tag, so a number is drawn only for those that do
        else:
            number = numbers.next(way, entity.key)
            tag = way.style.format(label=way.label, n=number)
        for index, span in enumerate(spans):
            items.append((span.start, span.end, serial, span, entity, way, number, tag, index))
    items.sort(key=itemgetter(0, 1))
    return items


def _settled(way: _Way, replacement: str, operator: str) -> _Way:
    """As ``way``, but with a replacement that is known already."""
    return replace(way, name=operator, call=lambda mention, setting: replacement, traits=PLAIN)


def _check_apart(text: str, items: list[_Item]) -> None:
    end = 0
    for item in items:
        if item[0] < end:
            raise DataError(f"two mentions overlap at {item[0]}; resolve the spans first")
        end = item[1]
    if end > len(text):
        raise DataError(f"a mention reaches to {end}, past the end of a text of {len(text)} characters")


def _start(entity: Entity) -> int:
    return entity.spans[0].start


def _with_tokens(text: str, items: list[_Item]) -> list[_Item]:
    """Adds what looks like a token and is touched by no mention; a touched one does not survive anyway."""
    out = list(items)
    i = 0
    for match in LOOSE_TOKEN.finditer(text):
        start, end = match.span()
        while i < len(items) and items[i][1] <= start:
            i += 1
        if i == len(items) or items[i][0] >= end:
            out.append((start, end, 0, Span(start, end, ESCAPED_LABEL), None, None, 0, "", 0))
    out.sort(key=itemgetter(0, 1))
    return out


def _edits(text: str, items: list[_Item], setting: Setting, english: bool, numbers: _Numbers) -> list[Edit]:
    edits: list[Edit] = []
    done = 0  # where the last edit ends
    stands = ""  # what stands last in its place, or before it
    size = len(text)
    last = len(items) - 1
    for i, (start, end, serial, span, entity, way, number, tag, index) in enumerate(items):
        if entity is None or way is None:
            sealed = seal(text[start:end], ESCAPED_LABEL, setting.key)
            edits.append(Edit(start, end, sealed, ESCAPED_LABEL, 0, "encrypt@1", text[start:end]))
            done, stands = end, "]"
            continue
        limit = items[i + 1][0] if i < last else size
        a, b = core(text, start, end, way.family)
        lead, trail = text[start:a], text[b:end]
        alone = (start > done or not done) and _apart(text[a - 1] if a else "") and _apart(text[b] if b < size else "")
        if not alone:
            a, b = grown(text, a, b, done if not lead else a, limit if not trail else b)
        surface = text[a:b]
        out = _called(way, Mention(surface, span, entity, number, way.label, tag, index), setting)
        if out == UNNUMBERED:
            out = tag = way.style.format(label=way.label, n=numbers.next(way, entity.key))
        name = "tag@1" if out == tag else way.name
        if setting.book is not None and out and not (way.traits.lossy and out != tag):
            setting.book.remember(out, surface, entity.label, name, entity.key)
        low, high = min(start, a), max(end, b)
        left = text[low - 1] if low > done else stands
        if out == "":
            if trail[:1] and trail[0] in "'’ʼ＇":
                trail = trail.lstrip("'’ʼ＇sS")
            if not lead and not trail:
                low, high = removed(text, low, high, done, limit, left)
        elif not way.traits.exact:
            if not alone:
                if not lead and left and attached(out[0]) and attached(left):
                    lead = " "
                if not trail and high < limit and attached(out[-1]) and attached(text[high]):
                    trail = " "
            if (
                english
                and not lead
                and low > 1
                and text[low - 2] in "anAN"
                and (place := article(text, low, done)) is not None
            ):
                found = text[place[0] : place[1]]
                fitting = with_article(found, out)
                if fitting is not None and fitting != found:
                    edits.append(Edit(*place, fitting, entity.label, 0, ARTICLE, found))
                    if setting.book is not None and not way.traits.lossy:
                        setting.book.remember(out, found, entity.label, ARTICLE, "")
        out = lead + out + trail
        edits.append(Edit(low, high, out, entity.label, serial, name, text[low:high]))
        done, stands = high, out[-1:] or left
    return edits


def _apart(char: str) -> bool:
    """Whether a neighbour is surely no part of a word: nothing, or an ASCII character but no letter or digit."""
    return not char or (char.isascii() and not char.isalnum())


def _called(way: _Way, mention: Mention, setting: Setting) -> str:
    out: object = None
    failure = ""
    try:
        out = way.call(mention, setting)
    except AllonymError:
        raise
    except Exception as error:  # whatever another's operator raises may quote the text, so only its type is told
        failure = type(error).__name__
    place = f"at {mention.span.start} ({mention.entity.label})"
    if failure:
        raise DataError(f"operator {way.name} failed with {failure} {place}")
    if not isinstance(out, str):
        raise DataError(f"operator {way.name} must return a string, got {type(out).__name__} {place}")
    if out == mention.text and not way.traits.repeats:
        raise DataError(f"operator {way.name} returned the text that it was to replace {place}; 'keep' keeps text")
    return out


def _check_cover(items: list[_Item], edits: list[Edit]) -> None:
    i = 0
    for item in items:
        while i < len(edits) and edits[i].end < item[1]:
            i += 1
        if i == len(edits) or edits[i].start > item[0]:
            raise DataError(f"the mention at {item[0]} ({item[3].label}) is not covered by any edit")
