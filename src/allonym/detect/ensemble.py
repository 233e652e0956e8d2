"""The detector ``ensemble``: other detectors as one, whose findings count by union, intersection or vote.

Two findings agree where they overlap and their labels lie below the same top-level label.

- ``union``: every finding counts, as it is.
- ``vote``: a finding counts, in its own extent, where at least ``votes`` members agree on it, its own among them.
- ``intersection``: of a finding counts what every member marks under the same top-level label.

What is agreed on scores the mean of its members' best scores there. The mode may differ by label; that of the finding's
own label, or of the nearest above it, holds. A label that only some members know never passes an intersection.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from allonym import registry
from allonym.detect import Detector
from allonym.detect.many import detect_each
from allonym.document import Document, Interval, Span, merge
from allonym.errors import PolicyError
from allonym.policy import Policy


def build(policy: Policy) -> Ensemble:
    """The detector for the members that ``[detect.ensemble]`` names.

    Raises:
        PolicyError: fewer than two members, one twice, the ensemble itself, one that also runs for itself, or more
            votes than members.
        UnknownNameError: no such member.
    """
    settings = policy.settings("ensemble")
    members, mode, votes, modes = (settings[key] for key in ("members", "mode", "votes", "labels"))
    assert isinstance(members, tuple) and isinstance(mode, str) and isinstance(votes, int)
    assert isinstance(modes, Mapping)
    where = "detect.ensemble"
    if len(set(members)) < 2 or len(set(members)) < len(members):
        raise PolicyError(f"{where}.members must name two detectors at least, each once, got {list(members)!r}")
    if "ensemble" in members:
        raise PolicyError(f"{where}.members cannot hold the ensemble itself")
    if alone := [name for name in members if name in policy.detectors]:
        raise PolicyError(
            f"{where}.members: {', '.join(alone)} also runs for itself, so that all it finds counts anyway; take it "
            "out of detect.detectors"
        )
    if votes > len(members):
        raise PolicyError(f"{where}.votes must be at most {len(members)}, the number of members, got {votes}")
    built = {name: registry.detectors.get(name, where)(policy) for name in sorted(members)}  # type: ignore[operator]
    return Ensemble(policy, built, mode, votes, modes)


class Ensemble:
    """Detectors that run as one; see the module."""

    def __init__(
        self, policy: Policy, members: Mapping[str, Detector], mode: str, votes: int, modes: Mapping[str, str]
    ) -> None:
        self._taxonomy = policy.taxonomy
        self._members = members
        self._mode = mode
        self._votes = votes
        self._modes = modes

    def __call__(self, document: Document) -> list[Span]:
        return self.many([document])[0]

    def many(self, documents: Sequence[Document]) -> list[list[Span]]:
        """What counts in each document; see :mod:`allonym.detect.many`."""
        each = [detect_each(member, documents) for member in self._members.values()]
        return [self._combined(dict(zip(self._members, found, strict=True))) for found in zip(*each, strict=True)]

    def _combined(self, found: Mapping[str, Sequence[Span]]) -> list[Span]:
        groups: dict[str, dict[str, list[Span]]] = {}
        for member, spans in found.items():
            for span in spans:
                groups.setdefault(self._taxonomy.lineage(span.label)[-1], {}).setdefault(member, []).append(span)
        return sorted({span for group in groups.values() for span in self._counting(group)})

    def _counting(self, group: Mapping[str, Sequence[Span]]) -> Iterator[Span]:
        marked = {member: merge((s.start, s.end) for s in spans) for member, spans in group.items()}
        for spans in group.values():
            for span in spans:
                mode = next(
                    (self._modes[a] for a in self._taxonomy.lineage(span.label) if a in self._modes), self._mode
                )
                if mode == "union":
                    yield span
                    continue
                agreed = {m: max((s.score for s in o if s.overlaps(span)), default=None) for m, o in group.items()}
                scores = [score for score in agreed.values() if score is not None]
                mean = math.fsum(scores) / len(scores)
                names = "+".join(m for m in sorted(agreed) if agreed[m] is not None)
                if mode == "vote" and len(scores) >= self._votes:
                    yield Span(span.start, span.end, span.label, mean, f"ensemble:{names}")
                elif mode == "intersection" and len(scores) == len(self._members):
                    for start, end in _shared((span.start, span.end), list(marked.values())):
                        yield Span(start, end, span.label, mean, f"ensemble:{names}")


def _shared(interval: Interval, marked: Sequence[Sequence[Interval]]) -> list[Interval]:
    """The stretches of ``interval`` that lie in all the sets of intervals."""
    left = [interval]
    for places in marked:
        left = [(max(a, c), min(b, d)) for a, b in left for c, d in places if max(a, c) < min(b, d)]
    return left
