"""Findings of an anonymisation: from a policy, from the edits of plans, or from an anonymised text by alignment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher

from allonym.document import Interval, Span
from allonym.errors import PlanMismatch
from allonym.evaluate.pairs import check_pairs, report_progress
from allonym.pipeline import AnyPolicy, detect
from allonym.plan import Plan, digest
from allonym.policy import Policy
from allonym.text.placeholders import find_placeholders
from allonym.text.words import TOKEN

__all__ = ["found_between", "found_by", "found_in_plans"]

ALL_SIGNS = 4000
"""Most words and signs of a text for which the alignment also anchors on the very frequent ones."""


def found_by(
    texts: Sequence[str], policy: AnyPolicy = "default", advance: Callable[[int, int], None] | None = None
) -> list[list[Span]]:
    """Return what the detectors of a policy find in each text, as :func:`allonym.detect` does."""
    policy = Policy.load(policy)
    return [list(detect(text, policy)) for text in report_progress(texts, advance, len(texts))]


def found_in_plans(texts: Sequence[str], plans: Sequence[Plan]) -> list[list[Span]]:
    """Return what each plan replaces in its text, without insertions.

    Raises:
        DataError: unequal lengths.
        PlanMismatch: a plan belongs to another text.
    """
    check_pairs(texts, texts, plans)
    for number, (text, plan) in enumerate(zip(texts, plans, strict=True), 1):
        if digest(text) != plan.digest:
            raise PlanMismatch(f"plan {number} was made for another text")
    return [[Span(e.start, e.end, e.label) for e in plan.edits if e.start < e.end] for plan in plans]


def found_between(
    original: Sequence[str], anonymised: Sequence[str], advance: Callable[[int, int], None] | None = None
) -> list[list[Span]]:
    """Return what is missing from each anonymised text, by alignment with the original (Ratcliff and Obershelp).

    Both texts are split into words and signs; a placeholder is one sign. A stretch of the original that is missing from
    the anonymised text is a finding. It has the label of the placeholder in its place, or none: a pseudonym does not
    show what it stands for. What was replaced by itself cannot be found.

    Raises:
        DataError: unequal lengths.
    """
    n = check_pairs(original, anonymised, least=0)
    pairs = zip(original, anonymised, strict=True)
    return [_find_changes(before, after) for before, after in report_progress(pairs, advance, n)]


def _find_changes(before: str, after: str) -> list[Span]:
    if before == after:
        return []
    spans_before = [m.span() for m in TOKEN.finditer(before)]
    spans_after, labels = _split_signs(after)
    words, signs = [before[a:b] for a, b in spans_before], [after[a:b] for a, b in spans_after]
    matcher = SequenceMatcher(None, words, signs, autojunk=len(spans_before) + len(spans_after) > 2 * ALL_SIGNS)
    out: list[Span] = []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag in ("equal", "insert"):
            continue
        labels_there = [labels[j] for j in range(j1, j2) if j in labels]
        if len(labels_there) == j2 - j1 == i2 - i1:  # each word has its own placeholder
            out += [Span(*spans_before[i], label) for i, label in zip(range(i1, i2), labels_there, strict=True)]
        else:
            label = labels_there[0] if len(set(labels_there)) == 1 else ""
            out.append(Span(spans_before[i1][0], spans_before[i2 - 1][1], label))
    return out


def _split_signs(text: str) -> tuple[list[Interval], dict[int, str]]:
    """Split a text into words, signs and placeholders; also return the labels of the placeholders by their index."""
    placeholders = find_placeholders(text)
    out: list[Interval] = []
    labels: dict[int, str] = {}
    position = 0
    for placeholder in placeholders:
        out += [m.span() for m in TOKEN.finditer(text, position, placeholder.start)]
        labels[len(out)] = placeholder.label
        out.append((placeholder.start, placeholder.end))
        position = placeholder.end
    out += [m.span() for m in TOKEN.finditer(text, position)]
    return out, labels
