"""The detectors ``spacy``, ``mitie``, ``flair`` and ``word_tagger``: named entity recognizers.

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

import numpy as np

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
from allonym.models.runtime import HERE
from allonym.models.words import split_words
from allonym.models.wordtagger import WordTagger
from allonym.policy import Policy

SPACY_WORDS = 20_000
"""Words of a window of spaCy; a pipeline refuses texts over a million characters."""
MITIE_WORDS = 5_000
FLAIR_WORDS = 250
"""Words of a sentence of Flair, at most; the splitter's longer sentences are cut."""
_FINDERS = ("ner", "beam_ner", "entity_ruler", "span_ruler", "spancat", "spancat_singlelabel")
CLINICAL_SPANISH = "clinical_spanish"
"""The small tagger that comes with allonym."""
_MIDDLE = 0.5
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


def build_word_detector(policy: Policy) -> Adapter:
    """Build the detector for the small tagger that ``[detect.word_tagger]`` names.

    Raises:
        PolicyError, UnknownNameError: no model is named, or a label of it is not mapped.
        DataError: the folder is not there or holds no tagger.
    """
    settings = policy.settings("word_tagger")
    name = require_model(settings, "word_tagger")
    model = _load_word_tagger(HERE / name if name == CLINICAL_SPANISH else Path(name))
    languages = model.about["languages"]
    language = policy.language if policy.language in languages else next(iter(languages), "")
    least = settings["threshold"]

    def read_windows(windows: Sequence[str]) -> Iterator[Iterator[Found]]:
        return (list_findings(text, model, language, least) for text in windows)

    labels = LabelMap(policy, "word_tagger", model_labels=model.labels)
    # Abbreviations and addresses pass for other languages, so it reads every passage.
    return Adapter("word_tagger", read_windows, labels, least, languages=ANY_LANGUAGE, reads_weakly=True)


@lru_cache(maxsize=2)
def _load_word_tagger(folder: Path) -> WordTagger:
    try:
        return WordTagger(folder)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"detect.word_tagger: {folder} holds no tagger of words: {type(error).__name__}") from None


def list_findings(text: str, model: WordTagger, language: str, least: float) -> Iterator[Found]:
    """The runs of words of one label that have at least some chance to be part of a finding, in reading order.

    A mark at either end belongs to the run where it does so more likely than not.
    """
    borders, table = model(text, language)
    chances = np.round(table.astype(np.float64), 4)  # the same for any number of threads
    mass = chances[:, 1::2] + chances[:, 2::2]
    labels = np.where(mass.sum(1) >= least, mass.argmax(1), -1).tolist()
    begins = (chances[:, 1::2] > chances[:, 2::2]).tolist()
    first = 0
    for n in range(1, len(borders) + 1):
        if n < len(borders) and labels[n] == labels[first] and not begins[n][labels[n]]:
            continue
        start, end = first, n
        while labels[first] >= 0 and start < end and _is_loose_mark(text, borders[end - 1], chances[end - 1, 0]):
            end -= 1
        while labels[first] >= 0 and start < end and _is_loose_mark(text, borders[start], chances[start, 0]):
            start += 1
        if labels[first] >= 0 and start < end:
            score = float(mass[start:end].sum(1).mean())
            yield Found(borders[start][0], borders[end - 1][1], model.labels[labels[first]], score)
        first = n


def _is_loose_mark(text: str, place: Interval, chance: float) -> bool:
    return not text[place[0]].isalnum() and chance > _MIDDLE
