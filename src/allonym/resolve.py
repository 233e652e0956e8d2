"""From overlapping candidates to disjoint spans, without uncovering a single character.

Priority: strong candidates (score 0.8 and up) before middling (0.5 and up) before weak ones, then the longer,
then the higher score, then the earlier, then label and source. A loser is never dropped: what the winners do not
cover of it is absorbed by a neighbouring winner of the same family, else stays as a clipped span of its own.
spaCy's ``filter_spans`` and Presidio's ``REMOVE_INTERSECTIONS`` drop such rests, which leaks text.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Literal

from allonym.document import Span, subtract
from allonym.labels import TAXONOMY, Taxonomy

_ORDER = attrgetter("start", "end", "label", "score", "source")  # the order of spans, quicker than their ``<``


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of a candidate: kept, clipped, absorbed or below its threshold, and which span it lost to."""

    span: Span
    outcome: Literal["kept", "clipped", "absorbed", "superseded", "below threshold", "excluded"]
    winner: Span | None = None

    @property
    def reason(self) -> str:
        """How the winner goes before the span: stronger, longer, surer, earlier; empty where there is no winner."""
        if self.winner is None:
            return ""
        words = ("stronger", "longer", "surer", "earlier")
        mine, theirs = _priority(self.span), _priority(self.winner)
        for word, own, other in zip(words, mine, theirs, strict=False):
            if own != other:  # the first difference settles the order of the whole
                return word if theirs < mine else "part of a stronger one"
        return "first by name"


def _priority(span: Span) -> tuple[int, int, float, int, str, str]:
    tier = 0 if span.score >= 0.8 else 1 if span.score >= 0.5 else 2
    return (tier, span.start - span.end, -span.score, span.start, span.label, span.source)


def resolve(spans: Iterable[Span], taxonomy: Taxonomy = TAXONOMY) -> tuple[Span, ...]:
    """Disjoint spans, sorted, that cover exactly what ``spans`` cover.

    Idempotent, and independent of the order of ``spans``.
    """
    out: list[Span] = []
    heap: list[Span] = []  # spans that overlap in a chain
    reach = 0
    for span in sorted(set(spans), key=_ORDER):
        if heap and span.start >= reach:
            out += heap if len(heap) == 1 else decide(heap, taxonomy)[0]
            heap = []
        heap.append(span)
        reach = max(reach, span.end)
    out += heap if len(heap) == 1 else decide(heap, taxonomy)[0]
    return tuple(out)


def decide(spans: Iterable[Span], taxonomy: Taxonomy = TAXONOMY) -> tuple[tuple[Span, ...], tuple[Decision, ...]]:
    """As :func:`resolve`, and what became of each candidate, in the order of the spans."""
    placed: list[Span] = []  # sorted by start, disjoint
    starts: list[int] = []
    decisions: list[Decision] = []
    for span in sorted(set(spans), key=_priority):
        lo = max(0, bisect_right(starts, span.start) - 1)
        hi = lo
        while hi < len(placed) and placed[hi].start < span.end:
            hi += 1
        rivals = [p for p in placed[lo:hi] if p.overlaps(span)]
        if not rivals:
            at = bisect_right(starts, span.start)
            placed.insert(at, span)
            starts.insert(at, span.start)
            decisions.append(Decision(span, "kept"))
            continue
        kin = [p for p in rivals if taxonomy.related(p.label, span.label)]
        left = list(subtract((span.start, span.end), [(p.start, p.end) for p in rivals]))
        clipped = False
        for start, end in left:
            for i, rival in enumerate(kin):
                if rival.end == start or rival.start == end:
                    grown = replace(rival, start=min(start, rival.start), end=max(end, rival.end))
                    at = bisect_right(starts, rival.start) - 1
                    placed[at] = grown
                    starts[at] = grown.start
                    kin[i] = grown
                    break
            else:
                clipped = True
                at = bisect_right(starts, start)
                placed.insert(at, replace(span, start=start, end=end))
                starts.insert(at, start)
        winner = min(kin or rivals, key=_priority)
        decisions.append(Decision(span, "clipped" if clipped else "absorbed", winner))
    return tuple(placed), tuple(sorted(decisions, key=lambda d: d.span))
