"""What ``/analyze`` answers: our findings under Presidio's names, with those of the recognizers that a request brings.

As in Presidio, findings may overlap; of two of one type, one inside the other and no surer, the inner one is left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import re2

from allonym.detect.candidates import find_candidates
from allonym.detect.rules import builtin_rules
from allonym.detect.scan import encoded
from allonym.document import Document, Span
from allonym.errors import RequestError
from allonym.integrations.presidio import entity_type
from allonym.pattern import PatternRule
from allonym.pipeline import resolve_candidates
from allonym.policy import Policy
from allonym.server.policies import policy_of
from allonym.server.presidio import adhoc
from allonym.server.presidio.names import labels_of

NOBODY = "No matching recognizers were found to serve the request."
_SOURCE = re.compile(r"([\w:.-]+?)(?:\+context\(([^)]*)\))?(\+valid)?(?:\+unmasked)?")


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked of a text.

    Attributes:
        source: what describes the policy.
        entities: the only types wanted; None: all.
        threshold: the score from 0 to 1 that a finding needs; None: as the policy says.
        explain: whether each finding comes with its explanation.
        recognizers: further ones, for this request.
        context: words that count as standing before the text.
        allow: what is no finding.
        allow_patterns: ``allow`` holds RE2 patterns instead of texts; one found anywhere in a finding allows it.
        flags: of these patterns.
    """

    source: str = field(repr=False)
    entities: tuple[str, ...] | None = None
    threshold: float | None = None
    explain: bool = False
    recognizers: tuple[adhoc.Recognizer, ...] = ()
    context: tuple[str, ...] = field(default=(), repr=False)
    allow: tuple[str, ...] = field(default=(), repr=False)
    allow_patterns: bool = False
    flags: int = int(adhoc.FLAGS)


@dataclass(frozen=True, slots=True)
class _Found:
    start: int
    end: int
    entity: str
    score: float
    by: Span | adhoc.Hit


def analysed(text: str, query: Query) -> list[dict[str, Any]]:
    """The findings in a text, in reading order, as ``/analyze`` returns them: runs in a worker.

    Raises:
        RequestError: a pattern is refused or takes too long.
    """
    policy = policy_of(query.source)
    least = query.threshold or 0.0
    wanted = None if query.entities is None else frozenset(query.entities)
    found = [one for one in _ours(text, query) if one.score >= least and (wanted is None or one.entity in wanted)]
    for hit in adhoc.find(text, query.recognizers, query.context):
        entity = hit.recognizer.entity
        if hit.score >= least and hit.score > 0 and (wanted is None or entity in wanted):
            found.append(_Found(hit.start, hit.end, entity, hit.score, hit))
    kept = _allowed(text, _apart(found), query)
    return [
        {
            "analysis_explanation": _explained(one, policy) if query.explain else None,
            "end": one.end,
            "entity_type": one.entity,
            "score": one.score,
            "start": one.start,
        }
        for one in sorted(kept, key=lambda one: (one.start, -one.end, one.entity))
    ]


@lru_cache(maxsize=8)
def _all(source: str) -> Policy:
    """The policy with a threshold of 0 for everything."""
    return policy_of(source).with_threshold(0.0)


@lru_cache(maxsize=64)
def _settling(source: str, threshold: float) -> Policy:
    return policy_of(source).with_threshold(threshold)


def _ours(text: str, query: Query) -> list[_Found]:
    # However many thresholds and types are asked for, the rules are compiled once or twice: that costs time and memory.
    looking = policy_of(query.source) if query.threshold is None else _all(query.source)
    settling = looking if query.threshold is None else _settling(query.source, round(query.threshold, 2))
    lead = f"{' '.join(query.context)}: " if query.context else ""
    document = Document("", lead + text, parts=((len(lead), len(lead) + len(text)),) if lead else ())
    seen = find_candidates(document, looking)
    types: dict[str, str] = {}
    if query.entities is not None:
        for entity in reversed(query.entities):
            types.update(dict.fromkeys(labels_of(entity, looking), entity))
        seen = [span for span in seen if span.label in types]
    out = []
    for span in resolve_candidates(document, settling, seen):
        if span.end > len(lead):
            start, end = max(0, span.start - len(lead)), span.end - len(lead)
            entity = types.get(span.label) or entity_type(span.label, looking)
            out.append(_Found(start, end, entity, round(float(span.score), 4), span))
    return out


def _apart(found: Sequence[_Found]) -> list[_Found]:
    """Without what lies inside a finding of its own type that is as sure or surer."""
    out: list[_Found] = []
    for one in sorted(set(found), key=lambda one: (one.entity, one.start, one.start - one.end, -one.score)):
        inside = any(
            o.entity == one.entity and o.start <= one.start and one.end <= o.end and one.score <= o.score
            for o in out[-_LOOK_BACK:]
        )
        if not inside:
            out.append(one)
    return out


_LOOK_BACK = 200


def _allowed(text: str, found: Sequence[_Found], query: Query) -> list[_Found]:
    if not query.allow:
        return list(found)
    if not query.allow_patterns:
        allow = frozenset(query.allow)
        return [one for one in found if text[one.start : one.end] not in allow]
    patterns = [allowed_by(one, query.flags) for one in query.allow if one]
    return [one for one in found if not any(p.search(encoded(text[one.start : one.end])) for p in patterns)]


@lru_cache(maxsize=256)
def allowed_by(regex: str, flags: int) -> re2._Regexp:
    """A pattern of an allow list. Raises :class:`RequestError` where RE2 refuses it."""
    return adhoc.compiled(regex, flags, "a pattern of allow_list")


def check(query: Query) -> None:
    """Raise :class:`RequestError` where RE2 refuses one of the query's patterns."""
    adhoc.check(query.recognizers)
    if query.allow_patterns:
        for one in query.allow:
            allowed_by(one, query.flags)


@lru_cache(maxsize=4)
def _rules(policy: Policy) -> Mapping[str, PatternRule]:
    return {rule.name: rule for rule in (*builtin_rules(), *policy.patterns)}


def _explained(one: _Found, policy: Policy) -> dict[str, Any]:
    out: dict[str, Any] = {
        "recognizer": "",
        "pattern_name": None,
        "pattern": None,
        "original_score": one.score,
        "score": one.score,
        "textual_explanation": None,
        "score_context_improvement": 0,
        "supportive_context_word": "",
        "validation_result": None,
    }
    if isinstance(one.by, adhoc.Hit):
        hit = one.by
        out["recognizer"], out["original_score"] = hit.recognizer.name, hit.original
        out["pattern_name"] = hit.pattern.name if hit.pattern else "deny_list"
        out["pattern"] = hit.pattern.regex if hit.pattern else None
        out["supportive_context_word"] = hit.word
        out["textual_explanation"] = f"Detected by `{hit.recognizer.name}` using pattern `{out['pattern_name']}`"
    else:
        match = _SOURCE.fullmatch(one.by.source)
        name, word, valid = match.groups() if match else (one.by.source, None, None)
        detector, _, how = name.partition(":")
        rule = _rules(policy).get(how) if detector == "rules" else None
        out["recognizer"] = f"rules:{rule.family or 'policy'}" if rule else detector
        out["pattern_name"] = how or None
        if rule is not None:
            out["pattern"], out["original_score"] = rule.pattern, rule.score
        out["supportive_context_word"] = word or ""
        out["validation_result"] = True if valid else None
        out["textual_explanation"] = f"Identified as {one.by.label} by {one.by.source}"
    out["score_context_improvement"] = round(one.score - out["original_score"], 4)
    return out


def refuse_language(language: str, policy: Policy) -> None:
    """Raise :class:`RequestError` in Presidio's words where the policy is for another language."""
    if language.lower().partition("-")[0] != policy.language.lower():
        raise RequestError(NOBODY, 400, "NotSupported")
