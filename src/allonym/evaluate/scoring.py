"""Residual risk of one conversation (P2, section 4.2): the items that were missed, and the sum of their scores.

How halves are rounded, and where P2 says two things:

- A partly missed identifier has half the score of its type, "rounded up or down ... depending on the risk profile". P2
  gives one example for each: 5 becomes 3 (names), 3 becomes 1 (e-mail). So the types of the highest score, 5, P2's
  direct identifiers, are rounded up and all others down.
- P2's text and its worked example take 1 for a partly missed e-mail address, from a score of 3; its Table 6 has 4,
  whose half is 2. ``email_partial`` says which of them holds: ``text`` (1, the default: P2's example sums to its 6) or
  ``table`` (2: the same example sums to 7).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from allonym.detection.turns import add_turns
from allonym.document import Document, Span
from allonym.errors import DataError, UnknownNameError, UsageError
from allonym.evaluate.marking import PARTIAL, Mark, Marked, check_marks_in_text, make_missed_tag, parse_missed_tag
from allonym.evaluate.pairs import group_items
from allonym.labels import TAXONOMY
from allonym.link import link
from allonym.serial import Serialisable
from allonym.text.names import (
    is_within_one_edit,
    make_sound_key,
    normalize_code,
    normalize_organization,
    normalize_surface,
)

EMAIL_PARTIAL: Mapping[str, int] = MappingProxyType({"text": 1, "table": 2})
"""What a partly missed e-mail address scores by P2's text and by its table."""
PROPOSALS = ("refuse", "count", "drop")
"""What becomes of marks that nobody has confirmed."""

_MOST = 5
_NAMED = ("ORGANIZATION", "PRODUCT", "LOCATION")
_LEAST_ALIKE = 6  # letters from which on two spellings that sound the same are one


class Scoring(Serialisable):
    """The score of each type.

    Attributes:
        email_partial: ``text`` or ``table``, see the module.
        own: tag without ``MISSED_`` to a score of one's own, 0 to 5, such as ``{"DATE": 0}``; with ``_PARTIAL`` it is
            that of the partial tag only.

    Raises:
        UsageError, UnknownNameError: a name or a score that does not exist.
    """

    email_partial: str = "text"
    own: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        if self.email_partial not in EMAIL_PARTIAL:
            raise UnknownNameError("reading", self.email_partial, EMAIL_PARTIAL, "email_partial")
        canonical: dict[str, int] = {}
        for name, score in self.own.items():
            if isinstance(score, bool) or not isinstance(score, int) or not 0 <= score <= _MOST:
                raise UsageError(f"score of {name}: an integer from 0 to {_MOST} is required, got {score!r}")
            label, partial = parse_missed_tag(name.removeprefix("MISSED_"))
            canonical[make_missed_tag(label, partial=partial)] = score
        object.__setattr__(self, "own", MappingProxyType(dict(sorted(canonical.items()))))

    def of(self, tag: str) -> int:
        """Return the score of a tag without ``MISSED_``, 0 to 5.

        >>> [Scoring().of(t) for t in ("PERSON_NAME", "PERSON_NAME_PARTIAL", "EMAIL", "EMAIL_PARTIAL", "PRODUCT")]
        [5, 3, 4, 1, 0]
        """
        if tag in self.own:
            return self.own[tag]
        label, partial = parse_missed_tag(tag)
        base = tag.removesuffix(PARTIAL)
        full = self.own.get(base, TAXONOMY.get(label).risk)
        if not partial:
            return full
        if label == "EMAIL_ADDRESS" and base not in self.own:
            return EMAIL_PARTIAL[self.email_partial]
        return (full + 1) // 2 if full == _MOST else full // 2


@dataclass(frozen=True, slots=True)
class Item:
    """One item that was missed, with all its mentions.

    Attributes:
        tag: of the mention with the highest score, without ``MISSED_``.
        score: of that mention, 0 to 5.
        marks: its mentions in reading order.
    """

    tag: str
    score: int
    marks: tuple[Mark, ...]


class Scored(Serialisable):
    """A conversation with its residual risk.

    Attributes:
        id: the conversation's.
        items: what was missed, each thing once, in reading order.
        rejected: proposals that a person has turned down; unconfirmed: those that count though nobody looked at them.
    """

    KEYS = ("id", "score", "direct", "mentions", "unconfirmed", "rejected", "items=_item_rows")

    id: str
    items: tuple[Item, ...]
    rejected: int = 0
    unconfirmed: int = 0

    @property
    def score(self) -> int:
        """The residual risk: the sum over items (P2, equation 1)."""
        return sum(item.score for item in self.items)

    @property
    def direct(self) -> int:
        """Items of the highest score, 5: whole direct identifiers, each of which identifies alone."""
        return sum(item.score == _MOST for item in self.items)

    @property
    def mentions(self) -> int:
        """Number of mentions of all items."""
        return sum(len(item.marks) for item in self.items)

    @property
    def _item_rows(self) -> list[dict[str, Any]]:
        return [{"tag": item.tag, "score": item.score, "mentions": len(item.marks)} for item in self.items]


def score_conversation(marked: Marked, scoring: Scoring | None = None, *, proposals: str = "refuse") -> Scored:
    """Return the residual risk of a conversation: the scores of the items that were missed, each once.

    Marks are one thing where annotators gave them one ``item``, or where :mod:`allonym.link` takes them for one
    referent: case, titles, possessives, name parts, letters spelled one by one and spellings that sound the same do not
    count (P2: ``Mark``, ``Marc``, ``M-A-R-K``). Organizations, products and places that differ in blanks and hyphens
    only, or in one letter and not in sound, are one as well. A thing has the score of its gravest mark: once a whole
    name and once a part of it count as the whole name. Two people of one name cannot be told apart (P2, footnote 9).

    Args:
        marked: the annotated conversation.
        scoring: by default P2's.
        proposals: what becomes of marks that nobody confirmed: ``refuse`` them, ``count`` them, ``drop`` them.

    Raises:
        DataError: there are such marks and they are refused; or a mark lies outside of the text.
        UnknownNameError: no such ``proposals``.
    """
    scoring = scoring or Scoring()
    if proposals not in PROPOSALS:
        raise UnknownNameError("value", proposals, PROPOSALS, "proposals")
    open_ = sum(m.confirmed is None for m in marked.marks)
    if open_ and proposals == "refuse":
        raise DataError(
            f"{f'{marked.id}: ' * bool(marked.id)}{open_} proposed mark{'s' * (open_ > 1)} that no person has "
            "confirmed or rejected; do so, or count them all for an upper bound"
        )
    marks = [m for m in marked.marks if m.confirmed or (m.confirmed is None and proposals == "count")]
    check_marks_in_text(marked, marks)
    items = []
    for group in _group_marks_by_item(marked, marks):
        best = max(group, key=lambda m: (scoring.of(m.tag), -m.start))
        items.append(Item(best.tag, scoring.of(best.tag), tuple(sorted(group))))
    items.sort(key=lambda i: i.marks[0])
    rejected = sum(m.confirmed is False for m in marked.marks)
    return Scored(marked.id, tuple(items), rejected, open_ if proposals == "count" else 0)


def _group_marks_by_item(marked: Marked, marks: Sequence[Mark]) -> list[list[Mark]]:
    """Group marks by the item that they are mentions of."""
    if not marks:
        return []
    spans = [Span(m.start, m.end, m.label) for m in marks]
    of_span = dict(zip(spans, marks, strict=True))
    linked = link(add_turns(Document(marked.id, marked.text)), spans).entities
    out: list[list[Mark]] = []
    spelled: list[tuple[str, str, list[Mark]]] = []
    for entity in linked:
        group, family = [of_span[span] for span in entity.spans], TAXONOMY.get_family(entity.label)
        if family in _NAMED:
            form = normalize_organization(normalize_surface(marked.text[group[0].start : group[0].end]))
            same = next((g for f, other, g in spelled if f == family and _are_similar_names(form, other)), None)
            if same is not None:
                same += group
                continue
            spelled.append((family, form, group))
        out.append(group)
    return _apply_annotated_items(out)


def _apply_annotated_items(groups: list[list[Mark]]) -> list[list[Mark]]:
    """Apply the items that annotators gave: marks with the same item belong together, those with different items do
    not."""
    named: defaultdict[str, list[Mark]] = defaultdict(list)
    rest = []
    for group in groups:
        items = group_items(group, lambda mark: mark.item)
        unnamed = items.pop("", [])
        for name, marks in items.items():
            named[name] += marks
        if unnamed and len(items) == 1:
            named[next(iter(items))] += unnamed
        elif unnamed:
            rest.append(unnamed)
    return [*named.values(), *rest]


def _are_similar_names(first: str, second: str) -> bool:
    """Whether two plain names differ only in spaces and signs, or in one letter that does not change the sound."""
    a, b = normalize_code(first), normalize_code(second)
    if a == b:
        return True
    if min(len(a), len(b)) < _LEAST_ALIKE or any(c.isdigit() for c in a + b):
        return False
    return make_sound_key(a) == make_sound_key(b) and is_within_one_edit(a, b)
