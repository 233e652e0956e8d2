"""Conversion of findings to and from Microsoft Presidio, with its names for labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from allonym.detection.adapters.labels import LabelMap
from allonym.document import Span
from allonym.errors import DataError, require_extra
from allonym.pipeline import Anonymized, AnyPolicy
from allonym.plan import locate_replacements
from allonym.policy import Policy

if TYPE_CHECKING:
    from presidio_analyzer import RecognizerResult
    from presidio_anonymizer.entities import EngineResult

SCHEME = "presidio"
_NONE: Mapping[str, str] = MappingProxyType({})

_ANYWHERE = {
    "DRIVER_LICENSE": "US_DRIVER_LICENSE",
    "PASSPORT": "US_PASSPORT",
    "BANK_ACCOUNT": "US_BANK_NUMBER",
    "NATIONAL_ID": "ID",
}
"""Presidio's names for labels without a country, as its English recognizers use them."""


@lru_cache(maxsize=4096)
def entity_type(label: str, policy: Policy) -> str:
    """Presidio's name for a label, or for its nearest ancestor that has one; the label where Presidio has none."""
    return policy.taxonomy.to_scheme(label, SCHEME) or _ANYWHERE.get(label, label)


def to_presidio(spans: Iterable[Span], policy: AnyPolicy = "default") -> list[RecognizerResult]:
    """Convert spans to results of Presidio's analyzer, which its anonymizer takes.

    Offsets and scores stay. Labels become entity types by :func:`entity_type`; a label that Presidio does not know
    keeps its name. The recognizer's name is ``Span.source``.

    Args:
        spans: findings of :func:`allonym.detect`.
        policy: the policy of their labels.

    Raises:
        MissingExtra: presidio-analyzer is not installed.
        UnknownNameError: a label that the policy does not know.
    """
    result = _import_module("presidio_analyzer").RecognizerResult
    loaded = Policy.load(policy)
    return [
        result(
            entity_type(span.label, loaded),
            span.start,
            span.end,
            span.score,
            recognition_metadata={result.RECOGNIZER_NAME_KEY: f"allonym:{span.source}".rstrip(":")},
        )
        for span in spans
    ]


def from_presidio(
    results: Iterable[Any], policy: AnyPolicy = "default", *, labels: Mapping[str, str] = _NONE
) -> tuple[Span, ...]:
    """Convert Presidio's findings to spans in reading order; they may overlap, as Presidio's do.

    An entity type that stands for several labels becomes their nearest common ancestor. An unknown entity type is an
    error, since dropping a finding would leave text uncovered.

    Args:
        results: ``RecognizerResult`` objects, or the dictionaries of Presidio's REST API.
        policy: the policy whose labels they get.
        labels: entity types to labels, for those that the taxonomy does not know; ``""`` leaves one out.

    Raises:
        PolicyError: an entity type has no mapping.
        UnknownNameError: a label is not known.
        DataError: a result lacks start, end or entity type.
    """
    find = LabelMap(Policy.load(policy), SCHEME, (SCHEME,), extra=labels)
    spans = []
    for result in results:
        read = result.get if isinstance(result, Mapping) else lambda name, source=result: getattr(source, name, None)
        start, end, entity, score = (read(name) for name in ("start", "end", "entity_type", "score"))
        if not (isinstance(start, int) and isinstance(end, int) and isinstance(entity, str) and 0 <= start <= end):
            raise DataError("a result of Presidio needs start, end and entity_type")
        label = find(entity)
        if label and start < end:
            metadata = read("recognition_metadata")
            name = metadata.get("recognizer_name") if isinstance(metadata, Mapping) else None
            confidence = min(1.0, max(0.0, float(score))) if isinstance(score, (int, float)) and score == score else 1.0
            spans.append(Span(start, end, label, confidence, f"presidio:{name or 'result'}"))
    return tuple(sorted(spans))


def to_engine_result(made: Anonymized, policy: AnyPolicy = "default") -> EngineResult:
    """Convert the result of :func:`allonym.anonymize` to one of Presidio's anonymizer: the text and its replacements.

    Items are in reading order with offsets of the anonymised text; ``operator`` is allonym's, such as ``tag``.
    Presidio cannot undo it; :func:`allonym.restore` can.

    Raises:
        MissingExtra: presidio-anonymizer is not installed.
        UnknownNameError: a label that the policy does not know.
    """
    entities = _import_module("presidio_anonymizer.entities")
    loaded = Policy.load(policy)
    items = []
    for start, end, edit in locate_replacements(made.plan.edits):
        name = edit.operator.partition("@")[0]
        if name != "article":
            kind = entity_type(edit.label, loaded)
            items.append(entities.OperatorResult(start, end, kind, edit.replacement, name))
    return entities.EngineResult(made.text, items)  # type: ignore[no-any-return]


def _import_module(name: str) -> Any:
    with require_extra("results for Presidio", "presidio"):
        return import_module(name)
