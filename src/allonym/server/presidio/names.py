"""Our labels and Presidio's entity types."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

from allonym.detect.rules import builtin_rules
from allonym.integrations.presidio import SCHEME, entity_type
from allonym.models.tags import LABELS, NAME_PARTS
from allonym.policy import Policy


@lru_cache(maxsize=4096)
def find_labels(entity: str, policy: Policy) -> frozenset[str]:
    """Return the labels of an entity type: those with this name in Presidio, or the label and those below it."""
    labels = {label.name for label in policy.taxonomy if entity_type(label.name, policy) == entity}
    labels.update(policy.taxonomy.from_scheme(entity, SCHEME))
    if entity in policy.taxonomy:
        labels.update(policy.taxonomy.descendants(entity))
    return frozenset(labels)


@lru_cache(maxsize=64)
def list_entity_types(policy: Policy) -> frozenset[str]:
    """Return all entity types that a label can have."""
    return frozenset(entity_type(label.name, policy) for label in policy.taxonomy)


@lru_cache(maxsize=64)
def list_supported(policy: Policy) -> tuple[str, ...]:
    """Return the entity types that the policy's detectors find, sorted."""
    labels = {terms.label for terms in policy.dictionary} | {pattern.label for pattern in policy.patterns}
    if "rules" in policy.detectors:
        labels.update(rule.label for rule in builtin_rules())
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
        names += [f"rules:{rule.family}" for rule in builtin_rules() if policy.looks_for(rule.label)]
        names += ["rules:policy"] * bool(policy.patterns)
    return tuple(sorted(set(names)))
