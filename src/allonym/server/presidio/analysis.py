"""The answer of ``/analyze``: our findings under Presidio's names, with those of the recognizers of the request.

As in Presidio, findings may overlap; one inside another of the same type, with no higher score, is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import re2

from allonym.detection.named_numbers import compile_seeds, read_names
from allonym.detection.rules import read_builtin_rules
from allonym.detection.scan import encode_text
from allonym.detection.selection import find_candidates
from allonym.document import Document, Span
from allonym.integrations.presidio import SCHEME, entity_type
from allonym.models.tags import LABELS, NAME_PARTS
from allonym.pattern import PatternRule
from allonym.pipeline import resolve_candidates
from allonym.policy import Policy
from allonym.protocol import AUTO
from allonym.server.policies import load_policy
from allonym.server.presidio import adhoc
from allonym.server.wire.presidio import AnalyzeRequest


@lru_cache(maxsize=4096)
def find_labels_of_type(entity: str, policy: Policy) -> frozenset[str]:
    """Return the labels of an entity type: those with this name in Presidio, or the label and those below it."""
    labels = {label.name for label in policy.taxonomy if entity_type(label.name, policy) == entity}
    labels.update(policy.taxonomy.from_scheme(entity, SCHEME))
    if entity in policy.taxonomy:
        labels.update(policy.taxonomy.descendants(entity))
    return frozenset(labels)


@lru_cache(maxsize=64)
def list_all_entity_types(policy: Policy) -> frozenset[str]:
    """Return all entity types that a label can have."""
    return frozenset(entity_type(label.name, policy) for label in policy.taxonomy)


@lru_cache(maxsize=64)
def list_supported_entity_types(policy: Policy) -> tuple[str, ...]:
    """Return the entity types that the policy's detectors find, sorted."""
    labels = {terms.label for terms in policy.dictionary} | {pattern.label for pattern in policy.patterns}
    if "rules" in policy.detectors:
        labels.update(rule.label for rule in read_builtin_rules())
        labels.update(name.label for name in read_names().values() if name.label)
    if "tagger" in policy.detectors:
        model = policy.settings("tagger")["model"]
        tags = json.loads(Path(str(model), "tagger.json").read_text("utf-8"))["labels"] if model else LABELS
        labels.update("PERSON" if label in NAME_PARTS else label for label in tags)
    for detector, label in (("speakers", "PERSON"), ("spoken", "SPELLED_WORD")):
        if detector in policy.detectors:
            labels.add(label)
    return tuple(sorted({entity_type(label, policy) for label in labels if policy.looks_for(label)}))


@lru_cache(maxsize=64)
def list_recognizers(policy: Policy) -> tuple[str, ...]:
    """Return the detectors by name, the rules by their tables, as ``rules:contact``; sorted."""
    names = [name for name in policy.detectors if name != "rules"]
    if "rules" in policy.detectors:
        names += [f"rules:{rule.family}" for rule in read_builtin_rules() if policy.looks_for(rule.label)]
        names += ["rules:named_numbers"] * any(
            policy.looks_for(name.label) for name in read_names().values() if name.label
        )
        names += ["rules:policy"] * bool(policy.patterns)
    return tuple(sorted(set(names)))


NO_RECOGNIZER = "No matching recognizers were found to serve the request."
_SOURCE = re.compile(r"([\w:.-]+?)(?:\+context\(([^)]*)\))?(\+valid)?(?:\+unmasked)?")
_LOOK_BACK = 200  # findings that may hold the next one


@dataclass(frozen=True, slots=True)
class _Finding:
    start: int
    end: int
    entity: str
    score: float
    origin: Span | adhoc.Match


def analyze_text(text: str, policy_source: str, query: AnalyzeRequest) -> list[dict[str, Any]]:
    """Return the findings in a text, in reading order, as ``/analyze`` shows them. Runs in a worker.

    Args:
        text: the text.
        policy_source: describes the policy.
        query: what is asked of each text, and the recognizers that count.

    Raises:
        RequestError: a pattern is refused or takes too long.
    """
    policy = load_policy(policy_source)
    findings = _detect_findings(text, policy_source, query)
    findings += [
        _Finding(match.start, match.end, match.recognizer.entity, match.score, match)
        for match in adhoc.find_matches(text, query.ad_hoc_recognizers or (), query.context or ())
        if match.score > 0
    ]
    least, entities = query.score_threshold or 0.0, frozenset(query.entities or ())
    requested = [f for f in findings if f.score >= least and (not entities or f.entity in entities)]
    return [
        {
            "analysis_explanation": _explain_finding(finding, policy) if query.return_decision_process else None,
            "end": finding.end,
            "entity_type": finding.entity,
            "score": finding.score,
            "start": finding.start,
        }
        for finding in sorted(
            _drop_allowed_findings(text, _drop_findings_within_own_type(requested), query),
            key=lambda f: (f.start, -f.end, f.entity),
        )
    ]


@lru_cache(maxsize=64)
def _load_policy_with_threshold(policy_source: str, threshold: float) -> Policy:
    return load_policy(policy_source).with_threshold(threshold)


def _detect_findings(text: str, policy_source: str, query: AnalyzeRequest) -> list[_Finding]:
    """Return the policy's own findings in a text, under the entity types that the query asks for."""
    # However many thresholds and types are asked for, the rules are compiled once or twice: that costs time and memory.
    detecting = resolving = load_policy(policy_source)
    if query.score_threshold is not None:
        detecting = _load_policy_with_threshold(policy_source, 0.0)
        resolving = _load_policy_with_threshold(policy_source, round(query.score_threshold, 2))
    lead = f"{' '.join(query.context)}: " if query.context else ""
    document = Document("", lead + text, parts=((len(lead), len(lead) + len(text)),) if lead else ())
    candidates = find_candidates(document, detecting)
    types: dict[str, str] = {}
    if query.entities:
        for entity in reversed(query.entities):
            types.update(dict.fromkeys(find_labels_of_type(entity, detecting), entity))
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


def _drop_findings_within_own_type(findings: Sequence[_Finding]) -> list[_Finding]:
    """Drop findings inside another of their own type with the same or a higher score."""
    outer: list[_Finding] = []
    for finding in sorted(findings, key=lambda f: (f.entity, f.start, f.start - f.end, -f.score)):
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


def _drop_allowed_findings(text: str, findings: Sequence[_Finding], query: AnalyzeRequest) -> list[_Finding]:
    """Drop findings whose text the query's allow list names."""
    if query.allow_list_match == "regex":
        patterns = _compile_allow_patterns(query)
        return [f for f in findings if not any(p.search(encode_text(text[f.start : f.end])) for p in patterns)]
    allowed = frozenset(query.allow_list or ())
    return [f for f in findings if text[f.start : f.end] not in allowed]


def check_query_patterns(query: AnalyzeRequest) -> None:
    """Raise :class:`RequestError` where RE2 refuses one of the query's patterns."""
    adhoc.count_re2_instructions(query.ad_hoc_recognizers or ())
    if query.allow_list_match == "regex":
        _compile_allow_patterns(query)


def _compile_allow_patterns(query: AnalyzeRequest) -> list[re2._Regexp]:
    where = "a pattern of allow_list"
    return [adhoc.compile_pattern(regex, query.regex_flags, where) for regex in query.allow_list or () if regex]


@lru_cache(maxsize=4)
def _index_rules_by_name(policy: Policy) -> Mapping[str, PatternRule]:
    return {rule.name: rule for rule in (*read_builtin_rules(), compile_seeds(), *policy.patterns)}


def _explain_finding(finding: _Finding, policy: Policy) -> dict[str, Any]:
    """Return Presidio's ``analysis_explanation`` of a finding."""
    origin, original, regex, context, valid = finding.origin, finding.score, None, "", None
    if isinstance(origin, adhoc.Match):
        recognizer, original, context = origin.recognizer.shown_name, origin.original_score, origin.word
        name, regex = (origin.pattern.name, origin.pattern.regex) if origin.pattern else ("deny_list", None)
        reason = f"Detected by `{recognizer}` using pattern `{name}`"
    else:
        match = _SOURCE.fullmatch(origin.source)
        source, context, valid = match.groups("") if match else (origin.source, "", "")
        recognizer, _, name = source.partition(":")
        rule = _index_rules_by_name(policy).get(name) if recognizer == "rules" else None
        if rule is not None:
            recognizer, regex, original = f"rules:{rule.family or 'policy'}", rule.pattern, rule.score
        reason = f"Identified as {origin.label} by {origin.source}"
    return {
        "recognizer": recognizer,
        "pattern_name": name if isinstance(origin, adhoc.Match) else name or None,
        "pattern": regex,
        "original_score": original,
        "score": finding.score,
        "textual_explanation": reason,
        "score_context_improvement": round(finding.score - original, 4),
        "supportive_context_word": context,
        "validation_result": True if valid else None,
    }


def check_language(language: str, policy: Policy) -> None:
    """Raise :class:`RequestError` in Presidio's words where the policy is for another language."""
    if policy.language != AUTO and language.lower().partition("-")[0] != policy.language.lower():
        raise adhoc.make_refusal(NO_RECOGNIZER)
