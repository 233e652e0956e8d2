"""The detector ``mitie``: a named entity extractor of MITIE, a single file.

The model may be a folder that ``allonym train ner --backend mitie`` wrote; then words are split as they were in
training. For other models MITIE's own tokenizer splits the text.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache, partial
from itertools import accumulate
from pathlib import Path
from typing import Any

from allonym.detection.adapters import OVERLAP, Adapter, Found, cut_windows
from allonym.detection.adapters.labels import LabelMap
from allonym.detection.adapters.offline import block_model_hubs, check_path_exists, import_library, require_option
from allonym.document import Interval
from allonym.models.words import split_words
from allonym.policy import Policy

WORDS = 5_000
_FILE = "ner_model.dat"


@lru_cache(maxsize=2)
def _load_extractor(model: str, features: str) -> Any:
    mitie = import_library("mitie", "mitie")
    with block_model_hubs("mitie", model):
        file = str(Path(model) / _FILE) if Path(model).is_dir() else model
        return mitie.named_entity_extractor(
            *(check_path_exists(p, "detect.mitie").encode() for p in (file, features) if p)
        )


def build_detector(policy: Policy) -> Adapter:
    """Build the detector for the extractor that ``[detect.mitie]`` names.

    MITIE's score is a margin from 0, not a probability. The logistic function turns it into one, so all findings score
    at least 0.5.

    Raises:
        MissingExtra: MITIE is not installed.
        PolicyError, UnknownNameError: no model is named, or a label of it is not mapped.
        DataError: the file is not there or holds no extractor.
    """
    settings = policy.settings("mitie")
    model = require_option(settings, "mitie")
    extractor = _load_extractor(model, str(settings["features"]))
    split = split_words if Path(model).is_dir() else _split_words

    def find_entities(text: str) -> Iterator[Found]:
        borders = split(text)
        for where, label, margin in extractor.extract_entities([text[a:b] for a, b in borders]) if borders else ():
            start, end = borders[where[0]][0], borders[where[-1]][1]
            yield Found(start, end, label, 1 / (1 + math.exp(-min(margin, 500.0))))

    labels = LabelMap(policy, "mitie", ("conll",), extractor.get_possible_ner_tags())
    cut = partial(cut_windows, limit=WORDS, overlap=OVERLAP)
    return Adapter("mitie", partial(map, find_entities), labels, settings["threshold"], cut)


def _split_words(text: str) -> list[Interval]:
    """The intervals of MITIE's words, which it gives in bytes of UTF-8."""
    tokens = import_library("mitie", "mitie").tokenize_with_offsets(text)
    places = list(accumulate((byte & 0xC0 != 0x80 for byte in text.encode()), initial=-1))[1:]
    return [(places[position], places[position + len(token) - 1] + 1) for token, position in tokens]
