"""Explanation: which candidates do not count as findings, and why."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from allonym.detect.candidates import find_candidates
from allonym.detect.selection import select_findings
from allonym.detect.tagger import SOURCE as TAGGER
from allonym.document import Document, Span
from allonym.policy import Policy

Loss = Literal["superseded", "below threshold", "excluded"]
_LEAST_PROBABILITY = 0.05  # of a finding of the tagger that is shown


@lru_cache(maxsize=64)
def _remove_thresholds(policy: Policy) -> Policy:
    return policy.with_threshold(0.0, _LEAST_PROBABILITY)


def explain_candidates(document: Document, policy: Policy) -> tuple[set[Span], dict[Span, Loss]]:
    """The findings, and why each other candidate is none, including candidates below their thresholds."""
    candidates = find_candidates(document, policy)
    findings = set(select_findings(document, policy, candidates))
    superseded = {s for s in candidates if s.source == TAGGER and policy.looks_for(s.label)}
    losses: dict[Span, Loss] = {}
    for span in {*candidates, *find_candidates(document, _remove_thresholds(policy))} - findings:
        if span in superseded:
            losses[span] = "superseded"
        elif span.source == TAGGER or span.score < policy.threshold_for(span.label):
            losses[span] = "below threshold"
        else:
            losses[span] = "excluded"
    return findings, losses
