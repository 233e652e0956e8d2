"""The detector ``spacy``: the named entities of a spaCy pipeline, and the spans of a group that the policy names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from typing import Any

from allonym.detection.adapters import OVERLAP, Adapter, Found, cut_windows
from allonym.detection.adapters.labels import LabelMap
from allonym.detection.adapters.offline import block_model_hubs, load_spacy, require_option
from allonym.errors import DataError
from allonym.policy import Policy

WORDS = 20_000
"""Words of a window; a pipeline refuses texts over a million characters."""
_FINDERS = ("ner", "beam_ner", "entity_ruler", "span_ruler", "spancat", "spancat_singlelabel")


@lru_cache(maxsize=2)
def _load_pipeline(model: str) -> Any:
    with block_model_hubs("spacy", model):
        return load_spacy(model, "spacy")


def build_detector(policy: Policy) -> Adapter:
    """Build the detector for the pipeline that ``[detect.spacy]`` names.

    Entities have no score in spaCy, so all get the score of the table. Scores of a span group are kept.

    Raises:
        MissingExtra: spaCy is not installed.
        PolicyError, UnknownNameError: no model is named, or a label of the pipeline is not mapped.
        DataError: the pipeline is not there.
    """
    settings = policy.settings("spacy")
    nlp = _load_pipeline(require_option(settings, "spacy"))
    score, group, size = settings["score"], settings["spans"], settings["batch_size"]
    finders = [(name, nlp.get_pipe_meta(name).factory) for name in nlp.pipe_names]
    model_labels = {
        label for name, factory in finders if factory in _FINDERS for label in nlp.pipe_labels.get(name, ())
    }
    if any(factory not in _FINDERS for _, factory in finders):
        model_labels |= set(settings["labels"])  # other parts may set entities

    def read_windows(windows: Sequence[str]) -> Iterator[Iterator[Found]]:
        return (_find_entities(doc, group, score) for doc in nlp.pipe(windows, batch_size=size))

    labels = LabelMap(policy, "spacy", ("spacy", "conll"), model_labels)
    return Adapter("spacy", read_windows, labels, cut=partial(cut_windows, limit=WORDS, overlap=OVERLAP))


def _find_entities(doc: Any, group: str, score: float) -> Iterator[Found]:
    spans = [*doc.ents]
    scores = [score] * len(spans)
    if group:
        if group not in doc.spans:
            raise DataError(f"detect.spacy: the pipeline fills no span group {group!r}")
        grouped = doc.spans[group]
        spans += grouped
        scores += list(map(float, grouped.attrs.get("scores", ()))) or [score] * len(grouped)
    for span, span_score in zip(spans, scores, strict=True):
        yield Found(span.start_char, span.end_char, span.label_, span_score)
