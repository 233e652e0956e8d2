"""The detector ``flair``: a sequence tagger of the library Flair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from allonym.detection.adapters import OVERLAP, Adapter, Found, cut_windows
from allonym.detection.adapters.labels import LabelMap
from allonym.detection.adapters.offline import block_model_hubs, check_path_exists, import_library, require_option
from allonym.document import Interval
from allonym.policy import Policy

WORDS = 250
"""Words of a sentence, at most; the splitter's longer sentences are cut."""


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


def build_detector(policy: Policy) -> Adapter:
    """Build the detector for the tagger that ``[detect.flair]`` names.

    Raises:
        MissingExtra: Flair is not installed.
        PolicyError, UnknownNameError: no model is named, or a label of it is not mapped.
        DataError: the model is not there.
    """
    settings = policy.settings("flair")
    tagger = _load_tagger(require_option(settings, "flair"), settings["device"], settings["allow_download"])
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
            yield from ((start + a, start + b) for a, b in cut_windows(text[start:stop], WORDS, OVERLAP))

    labels = LabelMap(policy, "flair", ("conll", "spacy"), _list_labels(tagger))
    return Adapter("flair", read_windows, labels, settings["threshold"], split_sentences)


def _list_labels(tagger: Any) -> set[str]:
    """The tagger's labels without their position in an entity (``B-PER`` is ``PER``)."""
    items = tagger.label_dictionary.get_items()
    bare = {item[2:] if item[1:2] == "-" and item[0] in "BIESLU" else item for item in items}
    return bare - {"O", "<unk>", "<START>", "<STOP>"}
