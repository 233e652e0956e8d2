"""The detector ``presidio`` for recognizers of Microsoft Presidio, and :func:`wrapped` for a program's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any

from allonym.detect.adapters import Adapter, Found
from allonym.detect.adapters.labels import LabelMap
from allonym.detect.adapters.offline import check_exists, import_library, load_offline
from allonym.detect.adapters.windows import cut_windows
from allonym.errors import DataError, UnknownNameError
from allonym.policy import Policy

WORDS = 20_000
OVERLAP = 50
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
    _keep_off_the_network()
    if hasattr(thing, "get_supported_entities") and not hasattr(thing, "registry"):
        entities = list(thing.get_supported_entities())

        def analyze(text: str) -> Iterable[Any]:
            return thing.analyze(text, entities, None) or ()
    else:
        entities = list(thing.get_supported_entities(policy.language))

        def analyze(text: str) -> Iterable[Any]:
            return thing.analyze(text, language=policy.language) or ()

    extra = policy.settings("presidio")["labels"]
    assert isinstance(extra, Mapping)
    # Recognizers may list fewer entities than they find, so a row of the policy's for another is no mistake.
    labels = LabelMap(policy, "presidio", ("presidio",), {*entities, *extra})

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
    names = settings["recognizers"]
    assert isinstance(names, tuple)
    return wrapped(_build_engine(names, str(settings["config"]), str(settings["model"]), policy.language), policy)


@lru_cache(maxsize=4)
def _build_engine(names: tuple[str, ...], config: str, model: str, language: str) -> Any:
    analyzer = import_library("presidio_analyzer", "presidio")
    predefined = import_library("presidio_analyzer.predefined_recognizers", "presidio")
    recognizers = import_library("presidio_analyzer.recognizer_registry", "presidio")
    for name in names:
        if name not in predefined.__all__:
            raise UnknownNameError("recognizer", name, predefined.__all__, "detect.presidio.recognizers")
    engine = import_library("presidio_analyzer.nlp_engine", "presidio").SpacyNlpEngine()
    # Its own way to load a pipeline would download one that is not there.
    engine.nlp = {language: _load_pipeline(model, language)}
    with load_offline("presidio", config or ", ".join(names) or "default recognizers"):
        if names:
            registry = recognizers.RecognizerRegistry(supported_languages=[language])
            for name in names:
                registry.add_recognizer(getattr(predefined, name)(supported_language=language))
        else:
            options: dict[str, object] = {"registry_configuration": {"supported_languages": [language]}}
            if config:
                options = {"conf_file": check_exists(config, "detect.presidio")}
            registry = recognizers.RecognizerRegistryProvider(**options).create_recognizer_registry()
        if model and not any(isinstance(r, predefined.SpacyRecognizer) for r in registry.recognizers):
            registry.add_nlp_recognizer(nlp_engine=engine)
        return analyzer.AnalyzerEngine(registry=registry, nlp_engine=engine, supported_languages=[language])


def _load_pipeline(model: str, language: str) -> Any:
    """The spaCy pipeline; without a model one that only splits words, so that context words are compared literally."""
    spacy = import_library("spacy", "presidio")
    with load_offline("presidio", model or f"blank:{language}"):
        if model:
            try:
                return spacy.load(model)
            except OSError:
                raise DataError(
                    f"detect.presidio: there is no pipeline {model!r}; a folder is required, or the name of a pipeline "
                    "that is installed here"
                ) from None
        language_class = import_library("spacy.language", "presidio").Language
        if not language_class.has_factory(_LEMMAS):
            language_class.component(_LEMMAS, func=_lower_case_lemmas)
        nlp = spacy.blank(language)
        nlp.add_pipe(_LEMMAS)
        return nlp


def _lower_case_lemmas(doc: Any) -> Any:
    for token in doc:
        token.lemma_ = token.lower_
    return doc


def _keep_off_the_network() -> None:
    # The recognizer of e-mail addresses would fetch the list of public suffixes; its package has a copy.
    import_library("tldextract.tldextract", "presidio").TLD_EXTRACTOR.suffix_list_urls = ()
