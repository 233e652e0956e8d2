"""The detector ``ensemble``: several detectors as one, whose findings count by union, intersection or vote.

Two findings agree where they overlap and their labels lie below the same top-level label.

- ``union``: every finding counts, unchanged.
- ``vote``: a finding counts, with its own borders, where at least ``votes`` members agree on it, including its own.
- ``intersection``: the part of a finding counts that every member marks under the same top-level label.

The score is the mean of the members' best scores there. The mode may differ by label: the mode of the finding's label
holds, or that of its nearest ancestor. A label that only some members know never passes an intersection.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from allonym import registry
from allonym.detection import Detector, detect_each
from allonym.document import Document, Span, clip_intervals, merge_intervals
from allonym.errors import PolicyError
from allonym.labels import Taxonomy
from allonym.policy import Policy


def build_detector(policy: Policy) -> Ensemble:
    """Build the detector for the members that ``[detect.ensemble]`` names.

    Raises:
        PolicyError: there are fewer than two members or more votes than members, or a member is listed twice, is the
            ensemble itself, or also runs on its own.
        UnknownNameError: there is no such member.
    """
    settings = policy.settings("ensemble")
    members, votes = settings["members"], settings["votes"]
    where = "detect.ensemble"
    if len(set(members)) < 2 or len(set(members)) < len(members):
        raise PolicyError(f"{where}.members must name two detectors at least, each once, got {list(members)!r}")
    if "ensemble" in members:
        raise PolicyError(f"{where}.members cannot hold the ensemble itself")
    if alone := [name for name in members if name in policy.detectors]:
        raise PolicyError(
            f"{where}.members: {', '.join(alone)} also runs on its own, so all its findings count anyway; remove it "
            "from detect.detectors"
        )
    if votes > len(members):
        raise PolicyError(f"{where}.votes must be at most {len(members)}, the number of members, got {votes}")
    built = {name: registry.detectors.get(name, where)(policy) for name in sorted(members)}  # type: ignore[operator]
    return Ensemble(policy.taxonomy, built, settings["mode"], votes, settings["labels"])


@dataclass(frozen=True, slots=True)
class Ensemble:
    """Detectors that run as one; see the module."""

    taxonomy: Taxonomy
    members: Mapping[str, Detector]
    mode: str
    votes: int
    modes: Mapping[str, str]

    def __call__(self, document: Document) -> list[Span]:
        return self.many([document])[0]

    @property
    def languages(self) -> frozenset[str]:
        """The languages that any member reads."""
        return frozenset().union(*(getattr(member, "languages", ()) for member in self.members.values()))

    def many(self, documents: Sequence[Document]) -> list[list[Span]]:
        """What counts in each document; see :func:`allonym.detection.detect_each`."""
        by_member = [detect_each(member, documents) for member in self.members.values()]
        by_document = zip(*by_member, strict=True)
        return [self._combine_findings(dict(zip(self.members, findings, strict=True))) for findings in by_document]

    def _combine_findings(self, spans_by_member: Mapping[str, Sequence[Span]]) -> list[Span]:
        """The findings that count in one document, sorted. Members agree only under the same top-level label."""
        groups: dict[str, dict[str, list[Span]]] = {}
        for member, spans in spans_by_member.items():
            for span in spans:
                groups.setdefault(self.taxonomy.get_family(span.label), {}).setdefault(member, []).append(span)
        return sorted({span for group in groups.values() for span in self._select_agreed_spans(group)})

    def _find_agreement_mode(self, label: str) -> str:
        return next((self.modes[name] for name in self.taxonomy.lineage(label) if name in self.modes), self.mode)

    def _select_agreed_spans(self, group: Mapping[str, Sequence[Span]]) -> Iterator[Span]:
        spans = [span for spans in group.values() for span in spans]
        debated = [span for span in spans if self._find_agreement_mode(span.label) != "union"]
        yield from (span for span in spans if self._find_agreement_mode(span.label) == "union")
        if not debated:
            return
        covers = [merge_intervals((span.start, span.end) for span in spans) for spans in group.values()]
        scores_by_span: dict[Span, dict[str, float]] = {}
        for member, others in group.items():
            for span, overlapping in pair_overlaps(debated, others):
                if overlapping:
                    scores_by_span.setdefault(span, {})[member] = max(other.score for other in overlapping)
        for span, scores in scores_by_span.items():
            mode = self._find_agreement_mode(span.label)
            mean = math.fsum(scores.values()) / len(scores)
            source = f"ensemble:{'+'.join(sorted(scores))}"
            if mode == "vote" and len(scores) >= self.votes:
                yield Span(span.start, span.end, span.label, mean, source)
            elif mode == "intersection" and len(scores) == len(self.members):
                shared = [(span.start, span.end)]
                for cover in covers:
                    shared = [part for start, end in shared for part in clip_intervals(cover, start, end)]
                yield from (Span(start, end, span.label, mean, source) for start, end in shared)


def pair_overlaps(spans: Sequence[Span], others: Iterable[Span]) -> Iterator[tuple[Span, list[Span]]]:
    """Each span, in order of its start, with those of ``others`` that share a character with it."""
    waiting = sorted(others, reverse=True)
    active: list[Span] = []
    for span in sorted(spans):
        while waiting and waiting[-1].start < span.end:
            active.append(waiting.pop())
        active = [other for other in active if other.end > span.start]
        yield span, [other for other in active if other.start < span.end]
