"""The detectors ``spacy``, ``mitie`` and ``flair``: named entity recognizers of these libraries.

``spacy`` also finds the spans of a group that the policy names. The model of ``mitie`` is a single file, or a folder
that ``allonym train ner --backend mitie`` wrote; then words are split as they were in training. For other models
MITIE's own tokenizer splits the text.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from itertools import accumulate
from pathlib import Path
from typing import Any

from allonym.detection import ANY_LANGUAGE
from allonym.detection.adapters import OVERLAP, Adapter, Found, cut_windows
from allonym.detection.adapters.labels import LabelMap
from allonym.detection.adapters.offline import (
    block_model_hubs,
    check_path_exists,
    import_library,
    load_spacy,
    require_model,
)
from allonym.detection.languages import read_model_languages
from allonym.document import Interval
from allonym.errors import DataError
from allonym.models.words import split_words
from allonym.policy import Policy

SPACY_WORDS = 20_000
"""Words of a window of spaCy; a pipeline refuses texts over a million characters."""
MITIE_WORDS = 5_000
FLAIR_WORDS = 250
"""Words of a sentence of Flair, at most; the splitter's longer sentences are cut."""
_FINDERS = ("ner", "beam_ner", "entity_ruler", "span_ruler", "spancat", "spancat_singlelabel")
_MITIE_FILE = "ner_model.dat"


@lru_cache(maxsize=2)
def _load_pipeline(model: str) -> Any:
    with block_model_hubs("spacy", model):
        return load_spacy(model, "spacy")


def build_spacy_detector(policy: Policy) -> Adapter:
    """Build the detector for the pipeline that ``[detect.spacy]`` names.

    Entities have no score in spaCy, so all get the score of the table. Scores of a span group are kept.

    Raises:
        MissingExtra: spaCy is not installed.
        PolicyError, UnknownNameError: no model is named, or a label of the pipeline is not mapped.
        DataError: the pipeline is not there.
    """
    settings = policy.settings("spacy")
    nlp = _load_pipeline(require_model(settings, "spacy"))
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
    cut = partial(cut_windows, limit=SPACY_WORDS, overlap=OVERLAP)
    return Adapter("spacy", read_windows, labels, cut=cut, languages=read_model_languages(nlp.lang))


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


@lru_cache(maxsize=2)
def _load_extractor(model: str, features: str) -> Any:
    mitie = import_library("mitie", "mitie")
    with block_model_hubs("mitie", model):
        file = str(Path(model) / _MITIE_FILE) if Path(model).is_dir() else model
        return mitie.named_entity_extractor(
            *(check_path_exists(p, "detect.mitie").encode() for p in (file, features) if p)
        )


def build_mitie_detector(policy: Policy) -> Adapter:
    """Build the detector for the extractor that ``[detect.mitie]`` names.

    MITIE's score is a margin from 0, not a probability. The logistic function turns it into one, so all findings score
    at least 0.5.

    Raises:
        MissingExtra: MITIE is not installed.
        PolicyError, UnknownNameError: no model is named, or a label of it is not mapped.
        DataError: the file is not there or holds no extractor.
    """
    settings = policy.settings("mitie")
    model = require_model(settings, "mitie")
    extractor = _load_extractor(model, str(settings["features"]))
    split = split_words if Path(model).is_dir() else _split_mitie_words

    def find_entities(text: str) -> Iterator[Found]:
        borders = split(text)
        for where, label, margin in extractor.extract_entities([text[a:b] for a, b in borders]) if borders else ():
            start, end = borders[where[0]][0], borders[where[-1]][1]
            yield Found(start, end, label, 1 / (1 + math.exp(-min(margin, 500.0))))

    labels = LabelMap(policy, "mitie", ("conll",), extractor.get_possible_ner_tags())
    cut = partial(cut_windows, limit=MITIE_WORDS, overlap=OVERLAP)
    return Adapter("mitie", partial(map, find_entities), labels, settings["threshold"], cut, languages=ANY_LANGUAGE)


def _split_mitie_words(text: str) -> list[Interval]:
    """The intervals of MITIE's words, which it gives in bytes of UTF-8."""
    tokens = import_library("mitie", "mitie").tokenize_with_offsets(text)
    places = list(accumulate((byte & 0xC0 != 0x80 for byte in text.encode()), initial=-1))[1:]
    return [(places[position], places[position + len(token) - 1] + 1) for token, position in tokens]


@lru_cache(maxsize=2)
def _load_tagger(model: str, device: str, allow_download: bool) -> Any:
    flair = import_library("flair", "flair")
    torch = import_library("torch", "flair")
    with block_model_hubs("flair", model, allow_download=allow_download):
        if not allow_download:
            check_path_exists(model, "detect.flair")
        # Flair puts what it computes on one device for the whole process.
        flair.device = torch.device(device)
        return import_library("flair.models", "flair").SequenceTagger.load(model).to(flair.device)


def build_flair_detector(policy: Policy) -> Adapter:
    """Build the detector for the tagger that ``[detect.flair]`` names.

    Raises:
        MissingExtra: Flair is not installed.
        PolicyError, UnknownNameError: no model is named, or a label of it is not mapped.
        DataError: the model is not there.
    """
    settings = policy.settings("flair")
    tagger = _load_tagger(require_model(settings, "flair"), settings["device"], settings["allow_download"])
    sentence = import_library("flair.data", "flair").Sentence
    splitter = import_library("flair.splitter", "flair").SegtokSentenceSplitter()

    def read_windows(windows: Sequence[str]) -> Iterator[list[Found]]:
        sentences = [sentence(window) for window in windows]
        tagger.predict(sentences, mini_batch_size=settings["batch_size"])
        for tagged in sentences:
            spans = [(s, s.get_label(tagger.tag_type)) for s in tagged.get_spans(tagger.tag_type)]
            yield [Found(s.start_position, s.end_position, label.value, label.score) for s, label in spans]

    def split_sentences(text: str) -> Iterator[Interval]:
        for part in splitter.split(text, link_sentences=False) if text.strip() else ():
            start = part.start_position
            stop = start + part[-1].end_position
            yield from ((start + a, start + b) for a, b in cut_windows(text[start:stop], FLAIR_WORDS, OVERLAP))

    labels = LabelMap(policy, "flair", ("conll", "spacy"), _list_flair_labels(tagger))
    return Adapter("flair", read_windows, labels, settings["threshold"], split_sentences, languages=ANY_LANGUAGE)


def _list_flair_labels(tagger: Any) -> set[str]:
    """The tagger's labels without their position in an entity (``B-PER`` is ``PER``)."""
    items = tagger.label_dictionary.get_items()
    bare = {item[2:] if item[1:2] == "-" and item[0] in "BIESLU" else item for item in items}
    return bare - {"O", "<unk>", "<START>", "<STOP>"}
