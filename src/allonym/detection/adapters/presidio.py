"""The detector ``presidio`` for recognizers of Microsoft Presidio, and :func:`wrapped` for a program's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from allonym.detection.adapters import OVERLAP, Adapter, Found, cut_windows
from allonym.detection.adapters.labels import LabelMap
from allonym.detection.adapters.offline import block_model_hubs, check_path_exists, import_library, load_spacy
from allonym.errors import check_names
from allonym.policy import Policy

WORDS = 20_000
_LEMMAS = "allonym_lower_case_lemmas"


def wrapped(thing: Any, policy: Policy, name: str = "presidio") -> Adapter:
    """Make a detector from a Presidio ``EntityRecognizer`` or ``AnalyzerEngine``, for ``registry.detectors``.

    Args:
        thing: the recognizer, or the engine, in the policy's language.
        policy: its table ``[detect.presidio.labels]`` maps entities that the taxonomy does not know.
        name: for ``Span.source``.

    Raises:
        PolicyError, UnknownNameError: an entity that is not mapped.
    """
    _block_suffix_list_download()
    if hasattr(thing, "get_supported_entities") and not hasattr(thing, "registry"):
        entities = list(thing.get_supported_entities())

        def analyze(text: str) -> Iterable[Any]:
            return thing.analyze(text, entities, None) or ()
    else:
        entities = list(thing.get_supported_entities(policy.language))

        def analyze(text: str) -> Iterable[Any]:
            return thing.analyze(text, language=policy.language) or ()

    # Recognizers may list fewer entities than they find, so a row of the policy's for another is no mistake.
    labels = LabelMap(policy, "presidio", ("presidio",), {*entities, *policy.settings("presidio")["labels"]})

    def find_entities(text: str) -> Iterator[Found]:
        return (Found(r.start, r.end, r.entity_type, r.score) for r in analyze(text))

    return Adapter(name, partial(map, find_entities), labels, cut=partial(cut_windows, limit=WORDS, overlap=OVERLAP))


def build_detector(policy: Policy) -> Adapter:
    """Build the detector for the recognizers that ``[detect.presidio]`` names, in the policy's language.

    Raises:
        MissingExtra: Presidio is not installed.
        PolicyError, UnknownNameError: no such recognizer, or an entity that is not mapped.
        DataError: the model or the file of recognizers is not there.
    """
    settings = policy.settings("presidio")
    engine = build_engine(settings["recognizers"], settings["config"], settings["model"], policy.language)
    return wrapped(engine, policy)


@lru_cache(maxsize=4)
def build_engine(names: tuple[str, ...], config: str, model: str, language: str) -> Any:
    """Build an ``AnalyzerEngine`` that opens no socket.

    Args:
        names: classes of ``presidio_analyzer.predefined_recognizers``; empty: those of ``config``.
        config: path of a YAML file: a registry, or recognizers alone, which are added to Presidio's own for the
            language; empty: those alone.
        model: folder or name of an installed spaCy pipeline; empty: no names are found.
        language: ISO 639-1 code.

    Raises:
        MissingExtra: Presidio is not installed.
        UnknownNameError: no such recognizer.
        DataError: the model or the file of recognizers is not there.
    """
    _block_suffix_list_download()
    analyzer = import_library("presidio_analyzer", "presidio")
    predefined = import_library("presidio_analyzer.predefined_recognizers", "presidio")
    recognizers = import_library("presidio_analyzer.recognizer_registry", "presidio")
    check_names("recognizer", names, predefined.__all__, "detect.presidio.recognizers")
    engine = import_library("presidio_analyzer.nlp_engine", "presidio").SpacyNlpEngine()
    # Its own way to load a pipeline would download one that is not there.
    engine.nlp = {language: _load_pipeline(model, language)}
    with block_model_hubs("presidio", config or ", ".join(names) or "default recognizers"):
        if names:
            registry = recognizers.RecognizerRegistry(supported_languages=[language])
            for name in names:
                registry.add_recognizer(getattr(predefined, name)(supported_language=language))
        else:
            options: dict[str, object] = {"registry_configuration": {"supported_languages": [language]}}
            is_list = bool(config) and _has_recognizers_alone(check_path_exists(config, "detect.presidio"))
            if config and not is_list:
                options = {"conf_file": config}
            registry = recognizers.RecognizerRegistryProvider(**options).create_recognizer_registry()
            if is_list:
                registry.add_recognizers_from_yaml(config)
        if model and not any(isinstance(r, predefined.SpacyRecognizer) for r in registry.recognizers):
            registry.add_nlp_recognizer(nlp_engine=engine)
        return analyzer.AnalyzerEngine(registry=registry, nlp_engine=engine, supported_languages=[language])


def _has_recognizers_alone(path: str) -> bool:
    """Tell whether a YAML file is a list of recognizers, and no whole registry."""
    table = import_library("yaml", "presidio").safe_load(Path(path).read_text(encoding="utf-8"))
    return isinstance(table, dict) and "recognizers" in table and "supported_languages" not in table


def _load_pipeline(model: str, language: str) -> Any:
    """The spaCy pipeline; without a model one that only splits words, so that context words are compared literally."""
    with block_model_hubs("presidio", model or f"blank:{language}"):
        if model:
            return load_spacy(model, "presidio")
        language_class = import_library("spacy.language", "presidio").Language
        if not language_class.has_factory(_LEMMAS):
            language_class.component(_LEMMAS, func=_set_lemmas_to_lower_case)
        nlp = import_library("spacy", "presidio").blank(language)
        nlp.add_pipe(_LEMMAS)
        return nlp


def _set_lemmas_to_lower_case(doc: Any) -> Any:
    for token in doc:
        token.lemma_ = token.lower_
    return doc


def _block_suffix_list_download() -> None:
    # The recognizer of e-mail addresses would fetch the list of public suffixes; its package has a copy.
    import_library("tldextract.tldextract", "presidio").TLD_EXTRACTOR.suffix_list_urls = ()
