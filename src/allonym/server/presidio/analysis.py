"""The answer of ``/analyze``: our findings under Presidio's names, with those of the recognizers of the request.

As in Presidio, findings may overlap; one inside another of the same type, with no higher score, is left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

import re2

from allonym.detect.candidates import find_candidates
from allonym.detect.rules import builtin_rules
from allonym.detect.scan import encode_text
from allonym.document import Document, Span
from allonym.errors import RequestError
from allonym.integrations.presidio import entity_type
from allonym.pattern import PatternRule
from allonym.pipeline import resolve_candidates
from allonym.policy import Policy
from allonym.server.policies import load_policy
from allonym.server.presidio import adhoc
from allonym.server.presidio.names import find_labels

NO_RECOGNIZER = "No matching recognizers were found to serve the request."
_SOURCE = re.compile(r"([\w:.-]+?)(?:\+context\(([^)]*)\))?(\+valid)?(?:\+unmasked)?")
_LOOK_BACK = 200  # findings that may hold the next one


@dataclass(frozen=True, slots=True)
class Query:
    """What a request asks of each text.

    Attributes:
        source: describes the policy.
        entities: the requested types; None: all.
        threshold: the score from 0 to 1 that a finding needs; None: as the policy says.
        explain: whether each finding has its explanation.
        recognizers: further ones, for this request.
        context: words that count as standing before the text.
        allow: texts that are no findings.
        allow_patterns: ``allow`` holds RE2 patterns instead of texts; a match anywhere in a finding allows it.
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
class _Finding:
    start: int
    end: int
    entity: str
    score: float
    origin: Span | adhoc.Match


@dataclass(slots=True)
class _Explanation:
    """Presidio's explanation of a finding."""

    recognizer: str = ""
    pattern_name: str | None = None
    pattern: str | None = None
    original_score: float = 0.0
    score: float = 0.0
    textual_explanation: str | None = None
    score_context_improvement: float = 0
    supportive_context_word: str = ""
    validation_result: bool | None = None


def analyze_text(text: str, query: Query) -> list[dict[str, Any]]:
    """Return the findings in a text, in reading order, as ``/analyze`` shows them. Runs in a worker.

    Raises:
        RequestError: a pattern is refused or takes too long.
    """
    policy = load_policy(query.source)
    findings = _detect_findings(text, query)
    findings += [
        _Finding(match.start, match.end, match.recognizer.entity, match.score, match)
        for match in adhoc.find_matches(text, query.recognizers, query.context)
        if match.score > 0
    ]
    least, entities = query.threshold or 0.0, frozenset(query.entities or ())
    requested = [f for f in findings if f.score >= least and (query.entities is None or f.entity in entities)]
    return [
        {
            "analysis_explanation": _explain_finding(finding, policy) if query.explain else None,
            "end": finding.end,
            "entity_type": finding.entity,
            "score": finding.score,
            "start": finding.start,
        }
        for finding in sorted(
            _drop_allowed(text, _drop_contained(requested), query), key=lambda f: (f.start, -f.end, f.entity)
        )
    ]


@lru_cache(maxsize=64)
def _load_policy(source: str, threshold: float) -> Policy:
    return load_policy(source).with_threshold(threshold)


def _detect_findings(text: str, query: Query) -> list[_Finding]:
    # However many thresholds and types are asked for, the rules are compiled once or twice: that costs time and memory.
    detecting = resolving = load_policy(query.source)
    if query.threshold is not None:
        detecting = _load_policy(query.source, 0.0)
        resolving = _load_policy(query.source, round(query.threshold, 2))
    lead = f"{' '.join(query.context)}: " if query.context else ""
    document = Document("", lead + text, parts=((len(lead), len(lead) + len(text)),) if lead else ())
    candidates = find_candidates(document, detecting)
    types: dict[str, str] = {}
    if query.entities is not None:
        for entity in reversed(query.entities):
            types.update(dict.fromkeys(find_labels(entity, detecting), entity))
        candidates = [span for span in candidates if span.label in types]
    return [
        _Finding(
            max(0, span.start - len(lead)),
            span.end - len(lead),
            types.get(span.label) or entity_type(span.label, detecting),
            round(float(span.score), 4),
            span,
        )
        for span in resolve_candidates(document, resolving, candidates)
        if span.end > len(lead)
    ]


def _drop_contained(findings: Sequence[_Finding]) -> list[_Finding]:
    """Drop findings inside another of their own type with the same or a higher score."""
    outer: list[_Finding] = []
    for finding in sorted(set(findings), key=lambda f: (f.entity, f.start, f.start - f.end, -f.score)):
        is_inside = any(
            o.entity == finding.entity
            and o.start <= finding.start
            and finding.end <= o.end
            and finding.score <= o.score
            for o in outer[-_LOOK_BACK:]
        )
        if not is_inside:
            outer.append(finding)
    return outer


def _drop_allowed(text: str, findings: Sequence[_Finding], query: Query) -> list[_Finding]:
    if query.allow_patterns:
        patterns = [_compile_allowed(pattern, query.flags) for pattern in query.allow if pattern]
        return [f for f in findings if not any(p.search(encode_text(text[f.start : f.end])) for p in patterns)]
    allowed = frozenset(query.allow)
    return [f for f in findings if text[f.start : f.end] not in allowed]


@lru_cache(maxsize=256)
def _compile_allowed(regex: str, flags: int) -> re2._Regexp:
    return adhoc.compile_pattern(regex, flags, "a pattern of allow_list")


def check_patterns(query: Query) -> None:
    """Raise :class:`RequestError` where RE2 refuses one of the query's patterns."""
    adhoc.count_instructions(query.recognizers)
    if query.allow_patterns:
        for pattern in query.allow:
            _compile_allowed(pattern, query.flags)


@lru_cache(maxsize=4)
def _index_rules(policy: Policy) -> Mapping[str, PatternRule]:
    return {rule.name: rule for rule in (*builtin_rules(), *policy.patterns)}


def _explain_finding(finding: _Finding, policy: Policy) -> dict[str, Any]:
    origin = finding.origin
    explanation = _Explanation(original_score=finding.score, score=finding.score)
    if isinstance(origin, adhoc.Match):
        explanation.recognizer, explanation.original_score = origin.recognizer.name, origin.original_score
        explanation.pattern_name = origin.pattern.name if origin.pattern else "deny_list"
        explanation.pattern = origin.pattern.regex if origin.pattern else None
        explanation.supportive_context_word = origin.word
        pattern = explanation.pattern_name
        explanation.textual_explanation = f"Detected by `{origin.recognizer.name}` using pattern `{pattern}`"
    else:
        match = _SOURCE.fullmatch(origin.source)
        name, word, valid = match.groups() if match else (origin.source, None, None)
        detector, _, how = name.partition(":")
        rule = _index_rules(policy).get(how) if detector == "rules" else None
        explanation.recognizer = f"rules:{rule.family or 'policy'}" if rule else detector
        explanation.pattern_name = how or None
        if rule is not None:
            explanation.pattern, explanation.original_score = rule.pattern, rule.score
        explanation.supportive_context_word = word or ""
        explanation.validation_result = True if valid else None
        explanation.textual_explanation = f"Identified as {origin.label} by {origin.source}"
    explanation.score_context_improvement = round(finding.score - explanation.original_score, 4)
    return asdict(explanation)


def check_language(language: str, policy: Policy) -> None:
    """Raise :class:`RequestError` in Presidio's words where the policy is for another language."""
    if language.lower().partition("-")[0] != policy.language.lower():
        raise RequestError(NO_RECOGNIZER, 400, "NotSupported")
