"""The residual risk of one anonymised document and the reasons for it: what a second reading proposes, in P2's points.

A proposed item counts with its score (0 to 5) times its own probability: an expectation, where P2 counts what people
confirmed. Without the extra ``evaluate`` there are no reviews, rather than an invented risk.
"""

from __future__ import annotations

from collections.abc import Sequence

from allonym.document import Document
from allonym.plan import Edit
from allonym.server.policies import load_policy
from allonym.server.wire.base import Wire
from allonym.server.wire.reviews import ProposalOut, ReasonOut


class Risk(Wire):
    """The result of a second reading of a document.

    Attributes:
        expected: points that are expected to be left.
        bound: points if every proposal were right.
        direct: items that identify alone, if every proposal were right.
        gain: what the tagger may learn of the document, see :func:`allonym.train.uncertain.expected_gain`.
        reasons: the gravest first.
        proposals: stretches of the original text that a reviewer should look at, in reading order.
    """

    expected: float
    bound: int
    direct: int
    gain: float
    reasons: list[ReasonOut]
    proposals: list[ProposalOut]


def check_extra() -> None:
    """Check that risks can be assessed.

    Raises:
        MissingExtra: the extra ``evaluate`` is not installed.
    """
    from allonym.evaluate import second_reading  # noqa: F401


def assess_risk(document: Document, anonymised: str, edits: Sequence[Edit], source: str) -> Risk:
    """Return the risk of a document. Runs in a worker.

    Args:
        document: the original.
        anonymised: the text after the edits.
        edits: that led from one to the other.
        source: describes the policy, see :meth:`allonym.server.policies.Policies.source`.
    """
    from allonym.evaluate import score_conversation, second_reading
    from allonym.train.uncertain import expected_gain

    marked = second_reading([document.text], [anonymised], ids=["document"]).conversations[0]
    scores = score_conversation(marked, proposals="count")
    reasons = [
        ReasonOut(
            tag=item.tag,
            points=item.score,
            chance=round(max(mark.score for mark in item.marks), 4),
            mentions=len(item.marks),
        )
        for item in scores.items
        if item.score
    ]
    reasons.sort(key=lambda r: (-r.points * r.chance, r.tag))
    proposals = []
    for mark in marked.marks:
        start, end = _locate_original(edits, mark.start, mark.end, len(document.text))
        score = round(mark.score, 4)
        proposals.append(ProposalOut(start=start, end=end, label=mark.label, partial=mark.partial, score=score))
    return Risk(
        expected=round(sum(r.points * r.chance for r in reasons), 3),
        bound=scores.score,
        direct=scores.direct,
        gain=round(expected_gain(document.text, load_policy(source)), 4),
        reasons=reasons,
        proposals=sorted(proposals, key=lambda p: (p.start, p.end)),
    )


def _locate_original(edits: Sequence[Edit], start: int, end: int, length: int) -> tuple[int, int]:
    """Return where a stretch of the anonymised text stands in the original of this length."""
    first = _map_offset(edits, start)
    return first, min(length, max(first + 1, _map_offset(edits, end - 1) + 1))


def _map_offset(edits: Sequence[Edit], offset: int) -> int:
    """Return the offset in the original for one in the anonymised text; inside a replacement, where its edit starts."""
    moved = 0
    for edit in edits:
        if edit.start + moved + len(edit.replacement) > offset:
            return edit.start if edit.start + moved <= offset else offset - moved
        moved += len(edit.replacement) - (edit.end - edit.start)
    return offset - moved
