"""The detector ``spacy``: the named entities of a spaCy pipeline, and the spans of a group that the policy names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any

from allonym.detect.adapters import Adapter, Found
from allonym.detect.adapters.labels import LabelMap
from allonym.detect.adapters.offline import import_library, load_offline, require_option
from allonym.detect.adapters.windows import cut_windows
from allonym.errors import DataError
from allonym.policy import Policy

WORDS = 20_000
OVERLAP = 50
"""Words that two windows share. Windows are needed since a pipeline refuses texts over a million characters."""
_FINDERS = ("ner", "beam_ner", "entity_ruler", "span_ruler", "spancat", "spancat_singlelabel")


@lru_cache(maxsize=2)
def _load_pipeline(model: str) -> Any:
    spacy = import_library("spacy", "spacy")
    with load_offline("spacy", model):
        try:
            return spacy.load(model)
        except OSError:
            raise DataError(
                f"detect.spacy: there is no pipeline {model!r}; a folder is required, or the name of a pipeline that "
                "is installed here"
            ) from None


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
    score, group, size = settings["score"], str(settings["spans"]), settings["batch_size"]
    assert isinstance(score, float) and isinstance(size, int)
    finders = [(name, nlp.get_pipe_meta(name).factory) for name in nlp.pipe_names]
    model_labels = {
        label for name, factory in finders if factory in _FINDERS for label in nlp.pipe_labels.get(name, ())
    }
    if any(factory not in _FINDERS for _, factory in finders):
        model_labels |= set(policy.settings("spacy")["labels"])  # type: ignore[call-overload]  # other parts may set entities

    def read_windows(windows: Sequence[str]) -> Iterator[Iterator[Found]]:
        return (_find_entities(doc, group, score) for doc in nlp.pipe(windows, batch_size=size))

    labels = LabelMap(policy, "spacy", ("spacy", "conll"), model_labels)
    return Adapter("spacy", read_windows, labels, cut=partial(cut_windows, limit=WORDS, overlap=OVERLAP))


def _find_entities(doc: Any, group: str, score: float) -> Iterator[Found]:
    rows: list[tuple[Any, float]] = [(entity, score) for entity in doc.ents]
    if group:
        if group not in doc.spans:
            raise DataError(f"detect.spacy: the pipeline fills no span group {group!r}")
        spans = doc.spans[group]
        scores: Iterable[float] = spans.attrs.get("scores", ())
        span_scores = [float(s) for s in scores] or [score] * len(spans)
        rows += zip(spans, span_scores, strict=True)
    for span, sure in rows:
        yield Found(span.start_char, span.end_char, span.label_, sure)
