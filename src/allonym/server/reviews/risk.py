"""How much one anonymised document may still give away, and why: what a second reading finds, in P2's points.

An item that the second reading proposes counts with its score (0 to 5) times its own chance: an expectation, where P2
counts what people confirmed. Without the extra ``evaluate`` nothing is reviewed: there is no made-up risk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from allonym.document import Document
from allonym.plan import Edit
from allonym.server.policies import policy_of


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that may have been missed: P2's tag, its points, the chance that it is there, how often it stands."""

    tag: str
    points: int
    chance: float
    mentions: int


@dataclass(frozen=True, slots=True)
class Proposal:
    """A stretch of the original text that a reviewer should look at."""

    start: int
    end: int
    label: str
    partial: bool
    score: float


@dataclass(frozen=True, slots=True)
class Risk:
    """What a second reading says of a document.

    Attributes:
        expected: points that are expected to be left.
        bound: points if every proposal were right.
        direct: items that identify alone, if every proposal were right.
        gain: what the tagger may learn of the document, see :func:`allonym.train.uncertain.expected_gain`.
        reasons: the gravest first.
        proposals: in reading order.
    """

    expected: float
    bound: int
    direct: int
    gain: float
    reasons: tuple[Reason, ...]
    proposals: tuple[Proposal, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def ready() -> None:
    """Nothing, where risks can be taken.

    Raises:
        MissingExtra: the extra ``evaluate`` is not installed.
    """
    from allonym.evaluate import second_reading  # noqa: F401


def assessed(document: Document, anonymised: str, edits: Sequence[Edit], source: str) -> Risk:
    """The risk of a document: runs in a worker.

    Args:
        document: the original.
        anonymised: what became of it.
        edits: that led from one to the other.
        source: what describes the policy.
    """
    from allonym.evaluate import score_conversation, second_reading
    from allonym.train.uncertain import expected_gain

    read = second_reading([document.text], [anonymised], ids=["document"]).conversations[0]
    scored = score_conversation(read, proposals="count")
    reasons = [
        Reason(item.tag, item.score, round(max(m.score for m in item.marks), 4), len(item.marks))
        for item in scored.items
        if item.score
    ]
    reasons.sort(key=lambda r: (-r.points * r.chance, r.tag))
    home = _Home(edits, len(document.text))
    proposals = [Proposal(*home(m.start, m.end), m.label, m.partial, round(m.score, 4)) for m in read.marks]
    return Risk(
        round(sum(r.points * r.chance for r in reasons), 3),
        scored.score,
        scored.direct,
        round(expected_gain(document.text, policy_of(source)), 4),
        tuple(reasons),
        tuple(sorted(proposals, key=lambda p: (p.start, p.end))),
    )


class _Home:
    """Where stretches of the anonymised text, outside of what was put in, stand in the original."""

    def __init__(self, edits: Sequence[Edit], length: int) -> None:
        self._edits, self._length = edits, length

    def __call__(self, start: int, end: int) -> tuple[int, int]:
        begin = self._place(start)
        return begin, min(self._length, max(begin + 1, self._place(end - 1) + 1))

    def _place(self, at: int) -> int:
        moved = 0
        for edit in self._edits:
            if edit.start + moved + len(edit.replacement) > at:
                return edit.start if edit.start + moved <= at else at - moved
            moved += len(edit.replacement) - (edit.end - edit.start)
        return at - moved
