"""What a second reading proposes as missed in a document, in P2's points: the order of a review, and why.

A proposed item counts with its score (0 to 5) times its own probability: an expectation, where P2 counts what people
confirmed. Rare facts count too, since they tell who a short text is about when no name is left. Without the extra
``evaluate`` there is no risk, rather than an invented one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from allonym.document import Document
from allonym.labels import TAXONOMY
from allonym.plan import Edit
from allonym.policy import Policy
from allonym.serial import Serialisable

RARE_FACT = "RARE_FACT"
"""The tag of what a text says that only one person, or very few, can be."""

_RARE_LABEL = "OTHER_IDENTIFYING_ATTRIBUTE"
_RARE_POINTS, _RARE_CHANCE = 3, 0.7
_LEAST_CHANCE = 0.2  # of a proposal that a reviewer is shown


class Reason(Serialisable):
    """An item that a second reading proposes as missed.

    Attributes:
        tag: P2's, without ``MISSED_``, or :data:`RARE_FACT`.
        points: 0 to 5.
        chance: that it is a leak.
        mentions: places.
    """

    tag: str
    points: int
    chance: float
    mentions: int


@dataclass(frozen=True, slots=True)
class Proposal:
    """A stretch of the original text that a reviewer should look at; ``partial``: the rest of it was found."""

    start: int
    end: int
    label: str
    partial: bool
    score: float


@dataclass(frozen=True, slots=True)
class Risk:
    """The result of a second reading of a document.

    Attributes:
        expected: points that are expected to be left.
        bound: points if every proposal were right.
        direct: items that identify alone, if every proposal were right.
        gain: what the tagger may learn of the document, see :func:`allonym.train.uncertain.estimate_review_gain`.
        reasons: the gravest first.
        proposals: stretches of the original text that a reviewer should look at, in reading order.
    """

    expected: float
    bound: int
    direct: int
    gain: float
    reasons: tuple[Reason, ...] = field(default=(), repr=False)
    proposals: tuple[Proposal, ...] = field(default=(), repr=False)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Risk:
        """Read the plain values that :func:`allonym.serial.to_plain` made of a risk."""
        reasons = tuple(Reason(**reason) for reason in values["reasons"])
        proposals = tuple(Proposal(**proposal) for proposal in values["proposals"])
        return cls(**{**values, "reasons": reasons, "proposals": proposals})


def require_evaluate_extra() -> None:
    """Check that risks can be assessed.

    Raises:
        MissingExtra: the extra ``evaluate`` is not installed.
    """
    from allonym.evaluate import second_reading  # noqa: F401


def assess_risk(document: Document, anonymised: str, edits: Sequence[Edit], policy: Policy) -> Risk:
    """Return the risk of a document.

    Args:
        document: the original.
        anonymised: the text after the edits.
        edits: that led from one to the other.
        policy: of the tagger whose gain is estimated.

    Raises:
        MissingExtra: the extra ``evaluate`` is not installed.
    """
    from allonym.evaluate import score_conversation, second_reading
    from allonym.evaluate.card_facts import find_rare_claims
    from allonym.train.uncertain import estimate_review_gain

    marked = second_reading([document.text], [anonymised], ids=["document"], wide=True).conversations[0]
    scores = score_conversation(marked, proposals="count")
    reasons = [
        Reason(item.tag, item.score, round(max(mark.score for mark in item.marks), 4), len(item.marks))
        for item in scores.items
        if item.score
    ]
    claims = find_rare_claims(anonymised)
    if claims:
        reasons.append(Reason(RARE_FACT, _RARE_POINTS, _RARE_CHANCE, len(claims)))
    proposals = []
    for claim in claims:
        start, end = _locate_in_original(edits, *claim, len(document.text))
        proposals.append(Proposal(start, end, _RARE_LABEL, False, _RARE_CHANCE))
    for mark in marked.marks:
        is_faint = mark.score < _LEAST_CHANCE and TAXONOMY.get(mark.label).kind != "direct"
        if is_faint or any(a < mark.end and mark.start < b for a, b in claims):
            continue
        start, end = _locate_in_original(edits, mark.start, mark.end, len(document.text))
        proposals.append(Proposal(start, end, mark.label, mark.partial, round(mark.score, 4)))
    reasons.sort(key=lambda r: (-r.points * r.chance, r.tag))
    return Risk(
        expected=round(float(sum(r.points * r.chance for r in reasons)), 3),
        bound=scores.score + (_RARE_POINTS if claims else 0),
        direct=scores.direct,
        gain=round(estimate_review_gain(document.text, policy), 4),
        reasons=tuple(reasons),
        proposals=tuple(sorted(proposals, key=lambda p: (p.start, p.end))),
    )


def _locate_in_original(edits: Sequence[Edit], start: int, end: int, original_length: int) -> tuple[int, int]:
    """Return where a stretch of the anonymised text stands in the original of this length."""
    first, last = (_map_offset_to_original(edits, offset) for offset in (start, end - 1))
    after = next((edit.end for edit in edits if edit.start == last < edit.end), last + 1)
    return first, min(original_length, max(first + 1, after))


def _map_offset_to_original(edits: Sequence[Edit], anonymised_offset: int) -> int:
    """Return the offset in the original for one in the anonymised text; inside a replacement, where its edit starts."""
    moved = 0
    for edit in edits:
        if edit.start + moved + len(edit.replacement) > anonymised_offset:
            return edit.start if edit.start + moved <= anonymised_offset else anonymised_offset - moved
        moved += len(edit.replacement) - (edit.end - edit.start)
    return anonymised_offset - moved
