"""From overlapping candidates to disjoint spans, without uncovering a single character.

Priority: strong candidates (score 0.8 and up) before middling (0.5 and up) before weak ones, then the longer,
then the higher score, then the earlier, then label and source. A loser is never dropped: what the winners do not
cover of it is absorbed by a neighbouring winner of the same family, else stays as a clipped span of its own.
spaCy's ``filter_spans`` and Presidio's ``REMOVE_INTERSECTIONS`` drop such rests, which leaks text.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Literal

from allonym.document import Span, subtract_intervals
from allonym.labels import TAXONOMY, Taxonomy

_ORDER = attrgetter("start", "end", "label", "score", "source")  # the order of spans, quicker than their ``<``


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of a candidate: kept, clipped, absorbed or below its threshold, and which span it lost to."""

    span: Span
    outcome: Literal[
        "kept", "clipped", "absorbed", "superseded", "ordinary", "below threshold", "excluded", "technical", "public"
    ]
    winner: Span | None = None

    @property
    def reason(self) -> str:
        """Why the winner goes before the span: stronger, longer, surer, earlier; empty where there is no winner."""
        if self.winner is None:
            return ""
        words = ("stronger", "longer", "surer", "earlier")
        mine, theirs = _rank_span(self.span), _rank_span(self.winner)
        for word, ours, other in zip(words, mine, theirs, strict=False):
            if ours != other:  # the first difference decides the whole order
                return word if theirs < mine else "part of a stronger one"
        return "first by name"


def _rank_span(span: Span) -> tuple[int, int, float, int, str, str]:
    tier = 0 if span.score >= 0.8 else 1 if span.score >= 0.5 else 2
    return (tier, span.start - span.end, -span.score, span.start, span.label, span.source)


def resolve(spans: Iterable[Span], taxonomy: Taxonomy = TAXONOMY) -> tuple[Span, ...]:
    """Return disjoint spans, sorted, that cover exactly what ``spans`` cover.

    Idempotent, and independent of the order of ``spans``.
    """
    resolved: list[Span] = []
    for chain in _group_overlapping_spans(spans):
        resolved += chain if len(chain) == 1 else _resolve_overlap_group(chain, taxonomy)[0]
    return tuple(resolved)


def decide(spans: Iterable[Span], taxonomy: Taxonomy = TAXONOMY) -> tuple[tuple[Span, ...], tuple[Decision, ...]]:
    """Resolve as :func:`resolve` does; also return what became of each candidate, in the order of the spans."""
    chains = [_resolve_overlap_group(chain, taxonomy) for chain in _group_overlapping_spans(spans)]
    resolved = tuple(span for placed, _ in chains for span in placed)
    return resolved, tuple(decision for _, decisions in chains for decision in decisions)


def _group_overlapping_spans(spans: Iterable[Span]) -> Iterator[list[Span]]:
    """The spans in groups in which each overlaps another; no two groups overlap. One group after the other, sorted."""
    chain: list[Span] = []
    reach = 0
    for span in sorted(dict.fromkeys(spans), key=_ORDER):
        if chain and span.start >= reach:
            yield chain
            chain = []
        chain.append(span)
        reach = max(reach, span.end)
    if chain:
        yield chain


def _describes_better(whole: Span, part: Span, taxonomy: Taxonomy) -> bool:
    """Whether a loser around a winner names a person or a home, and the winner does not: a street and its postcode."""
    is_around = whole.start <= part.start and part.end <= whole.end and 2 * len(part) < len(whole)
    return is_around and _is_direct(whole, taxonomy) and not _is_direct(part, taxonomy)


def _is_direct(span: Span, taxonomy: Taxonomy) -> bool:
    return span.label in taxonomy and taxonomy.get(span.label).kind == "direct"


def _resolve_overlap_group(chain: Iterable[Span], taxonomy: Taxonomy) -> tuple[list[Span], list[Decision]]:
    placed: list[Span] = []  # sorted by start, disjoint
    starts: list[int] = []
    decisions: list[Decision] = []
    for span in sorted(chain, key=_rank_span):
        lowest = max(0, bisect_right(starts, span.start) - 1)
        rivals = [p for p in placed[lowest : bisect_left(starts, span.end)] if p.overlaps(span)]
        if not rivals:
            index = bisect_right(starts, span.start)
            placed.insert(index, span)
            starts.insert(index, span.start)
            decisions.append(Decision(span, "kept"))
            continue
        kin = [p for p in rivals if taxonomy.are_related(p.label, span.label)]
        by_end = {rival.end: i for i, rival in enumerate(kin)}
        by_start = {rival.start: i for i, rival in enumerate(kin)}
        clipped = False
        for start, end in subtract_intervals((span.start, span.end), [(p.start, p.end) for p in rivals]):
            neighbour = by_end.get(start, by_start.get(end))
            if neighbour is None:
                clipped = True
                index = bisect_right(starts, start)
                placed.insert(index, replace(span, start=start, end=end))
                starts.insert(index, start)
                continue
            rival = kin[neighbour]
            index = bisect_right(starts, rival.start) - 1
            label = span.label if _describes_better(span, rival, taxonomy) else rival.label
            grown = replace(rival, start=min(start, rival.start), end=max(end, rival.end), label=label)
            kin[neighbour] = grown
            by_end[grown.end] = neighbour
            placed[index], starts[index] = grown, grown.start
        winner = min(kin or rivals, key=_rank_span)
        decisions.append(Decision(span, "clipped" if clipped else "absorbed", winner))
    return placed, sorted(decisions, key=lambda decision: decision.span)
