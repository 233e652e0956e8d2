"""From entities to a plan: numbers, operators, and the sentence around each replacement.

The edits keep the text around a replacement correct; nothing outside of them changes:

- a possessive ending, outer space and the sentence's own punctuation inside a mention stay;
- letters and digits that touch a mention go with it (``6th``, where only ``6`` was detected); where the run is longer
  than 40 or the script writes no spaces they stay, and a space is added where two letters or digits would touch;
- a mention that is removed takes a left-over space with it;
- an English ``a`` or ``an`` before a replacement follows how the replacement is spoken, as an edit of its own;
- what a pseudonym's rule keeps (``yesterday``, ``Dr``) gets no edit;
- quotes are put around a replacement that data or code could not be read with, see :mod:`allonym.replace.syntax`.

Replacements that the key alone can undo (``encrypt``) get neither added spaces, nor changed articles, nor quotes; where
the policy encrypts, whatever in the text looks like one of its tokens is encrypted once more, so that restoring takes
off exactly one layer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import count, filterfalse, pairwise
from operator import itemgetter
from types import MappingProxyType
from typing import Protocol

from allonym import protocol
from allonym.detection.languages import find_other_language
from allonym.document import Document, Entity, Span
from allonym.errors import AllonymError, DataError
from allonym.keys import require_key
from allonym.plan import Edit, Plan, apply_edits, digest
from allonym.policy import Policy
from allonym.protocol import PLAIN, Book, Mention, Operator, PeopleBook, Setting, Traits, Wanted
from allonym.replace.operators import LOOSE_TOKEN, encrypt_text
from allonym.replace.syntax import keep_syntax
from allonym.replace.wording import find_article_change, grow_span, is_word_character, trim_mention, widen_removal
from allonym.text.fold import Level, fold
from allonym.text.names import SHORT_PART, find_name_part, normalize_surface
from allonym.text.words import WORD, find_words

ESCAPED_LABEL = "OTHER_IDENTIFYING_ATTRIBUTE"
ARTICLE = "article@1"
_THE = "The "
_NONE_DECIDED: Mapping[Span, tuple[str, str]] = MappingProxyType({})
_BOUNDARIES = frozenset({"", *(chr(i) for i in range(128) if not chr(i).isalnum())})
"""Neighbours that are surely no part of a word: nothing, or an ASCII character but no letter or digit."""
UNNUMBERED = "\0tag"
"""The tag of an entity that is numbered only if an operator returns its tag."""


class Linkage(Protocol):
    """The result of :func:`allonym.link.link`: entities, and notes on how they were linked."""

    @property
    def entities(self) -> Sequence[Entity]: ...

    @property
    def notes(self) -> Sequence[str]: ...


@dataclass(frozen=True, slots=True, eq=False)
class _Treatment:
    """How one label is replaced under one policy.

    Attributes:
        name: of the operator, with its version.
        call: the operator with its options.
        traits: of the operator.
        family: the broadest label.
        label: the label as tags write it.
        style: of tags.
        shape: a tag without its number; tags of one shape are numbered together.
        shows_form: whether tags carry the form of the mention, such as ``<PERSON 1.given>``.
        options: of the rule.
        prefix: lower case, what stands before the number of a tag; None where tags have no number.
    """

    name: str
    call: Operator
    traits: Traits
    family: str
    label: str
    style: str
    shape: str
    shows_form: bool
    options: Mapping[str, object]
    prefix: str | None

    def write_tag(self, number: int, form: str = "") -> str:
        """Return a tag; ``form``: given, family or short, empty for the whole name."""
        return self.style.format(label=self.label, n=number, form=f".{form}" if form else "")


@lru_cache(maxsize=4096)
def _get_treatment(policy: Policy, label: str) -> _Treatment:
    rule = policy.rule(label)
    protocol.check_options(rule.operator, rule.options, f"policy {policy.name}: rule for {label}")
    operator = protocol.get_operator(rule.operator)
    declared = protocol.get_operator_traits(operator)
    name, style = protocol.get_tag_label_and_style(policy, label)
    shape = style.format(label=name, n=0, form="")
    numbered = shape != style.format(label=name, n=1, form="")
    shows_form = numbered and "{form}" in style
    prefix = style.partition("{n")[0].format(label=name, form="").lower() if numbered else None
    call = partial(operator, **rule.options) if rule.options else operator
    family = policy.taxonomy.get_family(label)
    versioned = f"{rule.operator}@{declared.version}"
    return _Treatment(versioned, call, declared, family, name, style, shape, shows_form, rule.options, prefix)


@lru_cache(maxsize=256)
def _find_keyed_operator_and_exactness(policy: Policy) -> tuple[str, bool]:
    """Return the keyed operator that the policy uses (empty: none), and whether any of its operators is exact."""
    used = {policy.rule(label.name).operator for label in policy.taxonomy if policy.looks_for(label.name)}
    traits = {name: protocol.get_operator_traits(protocol.get_operator(name)) for name in sorted(used)}
    return next((n for n, t in traits.items() if t.keyed), ""), any(t.exact for t in traits.values())


class _Numbers:
    """Numbers tags in reading order and passes over those that the text has already."""

    def __init__(self, text: str, book: Book | None) -> None:
        self._text = text
        self._book = book
        self._lower: str | None = None
        self._present: dict[str, frozenset[int]] = {}
        self._free: dict[str, Iterator[int]] = {}

    def get_entity_number(self, treatment: _Treatment, key: str) -> int:
        """Return the number of an entity: the vault's, else the next one."""
        shape = treatment.shape
        if shape not in self._present:
            self._present[shape] = present = self._find_numbers_in_text(treatment.prefix)
            self._free[shape] = filterfalse(present.__contains__, count(1))
        if self._book is not None:
            return self._recall_number(f"tag {shape}", key, self._book, self._present[shape])
        return next(self._free[shape])

    def _recall_number(self, kind: str, name: str, book: Book, present: frozenset[int]) -> int:
        """Return the number that the entity has in the vault; a further one where the text has that number already."""
        while True:
            recalled = book.recall(kind, name)
            number = int(recalled) if recalled is not None else book.number(kind)
            if recalled is None:
                while number in present:
                    number = book.number(kind)
                book.enter(kind, name, str(number))
            if number not in present:
                return number
            name += "\0"

    def _find_numbers_in_text(self, prefix: str | None) -> frozenset[int]:
        """Return the numbers that the text has behind the tag's words, with its signs or without: ``Person 3``."""
        words = find_words(prefix or "")
        if self._lower is None:
            self._lower = self._text.lower()
        if prefix is None or not all(word in self._lower for word in words):
            return frozenset()
        pattern = "".join(re.escape(word) + r"[\W_]{0,3}" for word in words) or re.escape(prefix)
        return frozenset(map(int, re.findall(pattern + r"0*([0-9]{1,9})(?![0-9])", self._lower)))


@dataclass(slots=True, eq=False)
class _Subject:
    """An entity that is about to be replaced.

    Attributes:
        serial: its number in reading order, from 1.
        entity, number, tag: as in :class:`Mention`.
        treatment: how it is replaced.
        full_name: the fullest surface of its mentions so far.
    """

    serial: int
    entity: Entity
    treatment: _Treatment
    number: int = 0
    tag: str = ""
    full_name: str = ""

    def note_form(self, surface: str) -> str:
        """Return which form of the name the next mention is: given, family, short, or empty for the whole name.

        Mentions before it are the measure, so that a tag stays as it is where a conversation goes on.
        """
        plain = normalize_surface(surface)
        if len(plain) >= len(normalize_surface(self.full_name)):
            self.full_name = surface
            return ""
        if self.treatment.family == "PERSON":
            return find_name_part(surface, self.full_name)
        return SHORT_PART if self.treatment.family in ("ORGANIZATION", "LOCATION") else ""


_EditSlot = tuple[int, int, Span, _Subject | None, int]
"""Start and end of a mention, its span, and its index among those of its entity.

Without an entity it is what looks like an encrypted mention.
"""


def make_plan(
    document: Document,
    linked: Linkage | Sequence[Entity],
    policy: Policy,
    *,
    key: bytes | str | None = None,
    scope: str = "",
    notes: Iterable[str] = (),
    book: Book | None = None,
    given: Mapping[Span, tuple[str, str]] = _NONE_DECIDED,
) -> Plan:
    """Make the plan that replaces each mention of each entity as the policy says.

    Args:
        document: the text that the entities were found in.
        linked: the result of :func:`allonym.link.link`, or entities; no two mentions may overlap.
        policy: operator and options per label, and how tags are written.
        key: secret of at least 16 bytes for keyed operators.
        scope: name of the release; ``hash`` and ``shift_dates`` give other values in another scope.
        notes: remarks to keep in the plan, beside those of ``linked``.
        book: the scope's book of a vault: entities that it knows keep their replacements, and new ones are added.
        given: mention to replacement and operator where both are decided already, whatever the policy says, e.g.
            ``("Acme", "swap@1")``. The sentence around it is adapted as everywhere.

    Raises:
        UsageError: the policy uses a keyed operator and there is no key, or an operator's options are wrong.
        DataError: a mention lies outside the text or over another, or an operator failed. No text is quoted.
    """
    entities = linked if isinstance(linked, Sequence) else linked.entities
    remarks = [*(() if isinstance(linked, Sequence) else linked.notes), *notes]
    text = document.text
    keyed, exact = _find_keyed_operator_and_exactness(policy)
    if keyed:
        require_key(key, keyed)
    inner = _make_consistency_scope(document, policy, scope)
    unit = _name_pseudonym_unit(document, policy, scope, book)
    if book is not None:
        book = BookView(book, digest(inner) if inner != scope else "", map_words_to_older_forms(text))
    numbers = _Numbers(text, book)
    slots = _list_edit_slots(entities, policy, numbers, book is not None, given)
    _check_disjoint(text, slots)
    if exact and ("e1" in text or "E1" in text):
        slots = _add_token_lookalikes(text, slots)
    before = digest(text)
    if not slots:
        return Plan(before, (), tuple(dict.fromkeys(remarks)), before)
    setting = Setting(document, policy, key, inner, book, tuple(slot[:2] for slot in slots), unit=unit)
    edits, kept_spans = _make_edits(text, slots, _prepare_operators(text, slots, setting, remarks), numbers)
    if policy.technical:
        edits = keep_syntax(document, edits)
    _check_coverage((slot for slot in slots if slot[2] not in kept_spans), edits)
    return Plan(before, tuple(edits), tuple(dict.fromkeys(remarks)), digest(apply_edits(text, edits)))


def subject_of(document: Document, policy: Policy) -> str:
    """Return the subject of a document, by the metadata key that the policy names; empty without one.

    Raises:
        DataError: the policy is consistent by subject and the document names none.
    """
    if not policy.subject:
        return ""
    subject = document.meta.get(policy.subject)
    if (subject is None or subject == "") and policy.consistent == "subject":
        raise DataError(f"policy {policy.name} needs the metadata key {policy.subject!r}, which this document lacks")
    return "" if subject is None else str(subject)


def _make_consistency_scope(document: Document, policy: Policy, scope: str) -> str:
    if policy.consistent in ("auto", "scope"):
        return scope
    if policy.consistent == "subject":
        return f"{scope}\0subject\0{subject_of(document, policy)}"
    return f"{scope}\0document\0{document.id or digest(document.text)}"


def _name_pseudonym_unit(document: Document, policy: Policy, scope: str, book: Book | None) -> str:
    """Return what pseudonyms are kept in where nobody asked for more; empty: the scope.

    A document is known by its text, so that its pseudonyms do not depend on where it stands among others.
    """
    if policy.consistent != "auto" or scope:
        return ""
    if book is not None:
        return book.unit
    subject = subject_of(document, policy)
    return f"\0subject\0{subject}" if subject else f"\0document\0{digest(document.text)}"


@dataclass(frozen=True, slots=True)
class BookView:
    """A book as one document sees it.

    Attributes:
        book: the scope's book. Hidden from ``repr``.
        mark: what tells the values of this document or subject from others; empty where the scope shares them.
        older: folded word to the form that it had in the keys of older versions, when folding left letters such as
            ``ł`` and ``ø`` as they are. Look-ups try these keys too; what is written has the keys of this version.
    """

    book: Book = field(repr=False)
    mark: str = ""
    older: Mapping[str, str] = field(default_factory=dict, repr=False)

    def _append_mark_to_kind(self, kind: str) -> str:
        return f"{kind} {self.mark}" if self.mark else kind

    @property
    def unit(self) -> str:
        """See :class:`Book`."""
        return self.book.unit

    def about(self, subject: str) -> None:
        """See :class:`Book`."""
        self.book.about(subject)

    def recall(self, kind: str, key: str) -> str | None:
        """See :class:`Book`."""
        value = self.book.recall(self._append_mark_to_kind(kind), key)
        older = WORD.sub(lambda m: self.older.get(m[0], m[0]), key) if self.older else key
        return self.book.recall(self._append_mark_to_kind(kind), older) if value is None and older != key else value

    def enter(self, kind: str, key: str, value: str) -> bool:
        """See :class:`Book`."""
        return self.book.enter(self._append_mark_to_kind(kind), key, value)

    def has_value(self, kind: str, value: str) -> bool:
        """See :class:`Book`."""
        return self.book.has_value(self._append_mark_to_kind(kind), value)

    def number(self, kind: str) -> int:
        """See :class:`Book`."""
        return self.book.number(kind)

    def remember(self, replacement: str, original: str, label: str, operator: str, entity: str) -> None:
        """See :class:`Book`."""
        self.book.remember(replacement, original, label, operator, f"{self.mark} {entity}" if self.mark else entity)

    def keep_plan(self, document: str, plan: Plan, text: str, people: Mapping[int, str] = MappingProxyType({})) -> None:
        """See :class:`Book`."""
        self.book.keep_plan(document, plan, text, people)

    @property
    def register(self) -> PeopleBook | None:
        """See :class:`Book`."""
        return self.book.register


def map_words_to_older_forms(text: str) -> dict[str, str]:
    """Map the folded words of a text to the forms that they had in the keys of older versions, where these differ."""
    if text.isascii():
        return {}
    from allonym.replace.naming import make_family_name_key  # which reads tables that few documents need

    out: dict[str, str] = {}
    for word in {w for w in WORD.findall(text) if not w.isascii()}:
        if (folded := fold(word)) != (older := fold(word, Level.MARKS)):
            out |= {folded: older, make_family_name_key(word): make_family_name_key(word, Level.MARKS)}
    return out


def _prepare_operators(text: str, slots: Sequence[_EditSlot], setting: Setting, remarks: list[str]) -> Setting:
    """Return the setting with what the operators that prepare themselves made of the document."""
    surfaces: dict[str, dict[_Subject, list[str]]] = {}  # operator, entity -> its surfaces
    for start, end, _, subject, _ in slots:
        if subject is not None and subject.treatment.traits.prepare is not None:
            a, b = trim_mention(text, start, end, subject.treatment.family)
            surfaces.setdefault(subject.treatment.name, {}).setdefault(subject, []).append(text[a:b])
    prepared: dict[str, object] = {}
    for name, by_subject in surfaces.items():
        targets = [
            Wanted(s.entity, s.treatment.options, s.number, s.treatment.label, s.tag, tuple(texts))
            for s, texts in sorted(by_subject.items(), key=lambda item: item[0].serial)
        ]
        prepare = protocol.get_traits_by_name(name).prepare
        assert prepare is not None
        try:
            prepared[name.partition("@")[0]] = prepare(targets, setting, remarks)
            continue
        except AllonymError:
            raise
        except Exception as error:  # whatever an operator raises may quote the text
            failure = type(error).__name__
        raise DataError(f"operator {name} failed with {failure} while it prepared the document")
    return replace(setting, prepared=MappingProxyType(prepared)) if prepared else setting


def _list_edit_slots(
    entities: Sequence[Entity], policy: Policy, numbers: _Numbers, late: bool, decided: Mapping[Span, tuple[str, str]]
) -> list[_EditSlot]:
    """Return the mentions that are replaced, in reading order; number only tags that appear if ``late``."""
    slots: list[_EditSlot] = []
    for serial, entity in enumerate(sorted(entities, key=lambda e: e.spans[0].start), 1):
        treatment = _get_treatment(policy, entity.label)
        for span in entity.spans if decided else ():
            if span in decided:
                replacement, operator = decided[span]
                write = partial(_write_fixed_replacement, replacement)
                decision = replace(treatment, name=operator, call=write, traits=PLAIN)
                slots.append((span.start, span.end, span, _Subject(serial, entity, decision), 0))
        spans = [span for span in entity.spans if span not in decided] if decided else entity.spans
        if treatment.traits.keeps or not spans:
            continue
        if late and treatment.traits.prepare is not None:
            number, tag = 0, UNNUMBERED  # most of these get no tag
        else:
            number = numbers.get_entity_number(treatment, entity.key)
            tag = treatment.write_tag(number)
        subject = _Subject(serial, entity, treatment, number, tag)
        for index, span in enumerate(spans):
            slots.append((span.start, span.end, span, subject, index))
    _sort_slots(slots)
    return slots


def _sort_slots(slots: list[_EditSlot]) -> None:
    """Sort by start, then end: two passes, since they are almost sorted and pairs of numbers would be new objects."""
    slots.sort(key=itemgetter(1))
    slots.sort(key=itemgetter(0))


def _write_fixed_replacement(replacement: str, mention: Mention, setting: Setting) -> str:
    """An operator whose replacement is known already."""
    return replacement


def _check_disjoint(text: str, slots: Iterable[_EditSlot]) -> None:
    previous_end = 0
    for slot in slots:
        if slot[0] < previous_end:
            raise DataError(f"two mentions overlap at {slot[0]}; resolve the spans first")
        previous_end = slot[1]
    if previous_end > len(text):
        raise DataError(f"a mention reaches to {previous_end}, past the end of a text of {len(text)} characters")


def _add_token_lookalikes(text: str, slots: Sequence[_EditSlot]) -> list[_EditSlot]:
    """Add what looks like a token and touches no mention; one that a mention touches does not survive anyway."""
    out = list(slots)
    i = 0
    for match in LOOSE_TOKEN.finditer(text):
        start, end = match.span()
        while i < len(slots) and slots[i][1] <= start:
            i += 1
        if i == len(slots) or slots[i][0] >= end:
            out.append((start, end, Span(start, end, ESCAPED_LABEL), None, 0))
    _sort_slots(out)
    return out


def _make_edits(
    text: str, slots: Sequence[_EditSlot], setting: Setting, numbers: _Numbers
) -> tuple[list[Edit], set[Span]]:
    """Return the edits, and the mentions that a pseudonym's rule keeps, such as ``yesterday``: they get no edit."""
    edits: list[Edit] = []
    kept_spans: set[Span] = set()
    english = setting.policy.language == "en"
    position = 0  # where the last edit ends
    before = ""  # the last character of its replacement, or before it
    size = len(text)
    last = len(slots) - 1
    parts = setting.document.parts
    borders = {b for (_, a), (b, _) in pairwise(parts) if text[a:b].endswith("\n")}  # no article stands before one
    for i, (start, end, span, subject, index) in enumerate(slots):
        if subject is None:
            sealed = encrypt_text(text[start:end], ESCAPED_LABEL, setting.key)
            edits.append(Edit(start, end, sealed, ESCAPED_LABEL, 0, "encrypt@1", text[start:end]))
            position, before = end, "]"
            continue
        entity, treatment, tag = subject.entity, subject.treatment, subject.tag
        limit = slots[i + 1][0] if i < last else size
        a, b = trim_mention(text, start, end, treatment.family)
        lead, trail = text[start:a], text[b:end]
        alone = text[a - 1 : a] in _BOUNDARIES and text[b : b + 1] in _BOUNDARIES and (start > position or not position)
        if not alone:
            a, b = grow_span(text, a, b, position if not lead else a, limit if not trail else b)
        surface = text[a:b]
        form = subject.note_form(surface) if treatment.shows_form else ""
        if form and tag != UNNUMBERED:
            tag = treatment.write_tag(subject.number, form)
        mention = Mention(surface, span, entity, subject.number, treatment.label, tag, index)
        out = _call_operator(treatment, mention, setting)
        if out == surface and treatment.traits.prepare is not None:
            kept_spans.add(span)
            continue
        if out == UNNUMBERED:
            number = numbers.get_entity_number(treatment, entity.key)
            out = tag = treatment.write_tag(number, form)
        if english and out.startswith(_THE) and text[max(position, a - len(_THE)) : a].lower() == _THE.lower():
            out = out.removeprefix(_THE)
        name = "tag@1" if out == tag else treatment.name
        if setting.book is not None and out and not (treatment.traits.lossy and out != tag):
            setting.book.remember(out, surface, entity.label, name, entity.key)
        low, high = min(start, a), max(end, b)
        previous = text[low - 1] if low > position else before
        if out == "":
            if trail[:1] and trail[0] in "'’ʼ＇":
                trail = trail.lstrip("'’ʼ＇sS")
            if not lead and not trail:
                low, high = widen_removal(text, low, high, position, limit, previous)
        elif not treatment.traits.exact:
            if not alone:
                if not lead and previous and is_word_character(out[0]) and is_word_character(previous):
                    lead = " "
                if not trail and high < limit and is_word_character(out[-1]) and is_word_character(text[high]):
                    trail = " "
            if english and not lead and low > 1 and text[low - 2] in "anAN" and low not in borders:
                change = find_article_change(text, low, position, out)
                if change is not None and not find_other_language(text, low):  # "escribir a" has no article
                    article = text[change[0] : change[1]]
                    edits.append(Edit(*change, entity.label, 0, ARTICLE, article))
                    if setting.book is not None and not treatment.traits.lossy:
                        setting.book.remember(out, article, entity.label, ARTICLE, "")
        out = lead + out + trail
        edits.append(Edit(low, high, out, entity.label, subject.serial, name, text[low:high]))
        position, before = high, out[-1:] or previous
    return edits, kept_spans


def _call_operator(treatment: _Treatment, mention: Mention, setting: Setting) -> str:
    """Return what the operator writes; of an error that is not this package's, only the type is shown."""
    hint = ""
    try:
        out: object = treatment.call(mention, setting)
    except AllonymError:
        raise
    except Exception as error:  # whatever an operator raises may quote the text
        failure = f"failed with {type(error).__name__}"
    else:
        if not isinstance(out, str):
            failure = f"must return a string, got {type(out).__name__}"
        elif out != mention.text or treatment.traits.repeats:
            return out
        else:
            failure, hint = "returned the text that it was to replace", "; 'keep' keeps text"
    raise DataError(f"operator {treatment.name} {failure} at {mention.span.start} ({mention.entity.label}){hint}")


def _check_coverage(slots: Iterable[_EditSlot], edits: Sequence[Edit]) -> None:
    i = 0
    for start, end, span, _, _ in slots:
        while i < len(edits) and edits[i].end < end:
            i += 1
        if i == len(edits) or edits[i].start > start:
            raise DataError(f"the mention at {start} ({span.label}) is not covered by any edit")
