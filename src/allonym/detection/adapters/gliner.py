"""The detector ``gliner``: a zero-shot model that is prompted with the labels that the policy looks for.

A label has a prompt in ``labels.toml``; a label that the policy adds is prompted by its name in words. The policy's
table ``[detect.gliner.labels]`` adds prompts or removes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from allonym.detection import ANY_LANGUAGE
from allonym.detection.adapters import Adapter, Found, cut_windows
from allonym.detection.adapters.labels import LabelMap, read_label_tables
from allonym.detection.adapters.offline import block_model_hubs, import_library, require_model
from allonym.document import Interval
from allonym.errors import PolicyError
from allonym.labels import TAXONOMY
from allonym.policy import Policy

_OVERLAP = 0.2  # of a window
_LONGEST = 100  # characters of a word that are looked at together


@lru_cache(maxsize=2)
def _load_model(model: str, device: str, allow_download: bool) -> Any:
    gliner = import_library("gliner", "gliner")
    with block_model_hubs("gliner", model, allow_download=allow_download):
        return gliner.GLiNER.from_pretrained(model, map_location=device, local_files_only=not allow_download).eval()


def map_prompts_to_labels(policy: Policy) -> dict[str, str]:
    """The prompts for the labels that the policy looks for, each with its label.

    Raises:
        PolicyError: nothing that the policy looks for has a prompt.
    """
    prompts = {prompt: label for label, prompt in read_label_tables()["prompts"].items() if label in policy.taxonomy}
    prompts |= {lab.name.lower().replace("_", " "): lab.name for lab in policy.taxonomy if lab.name not in TAXONOMY}
    prompts |= policy.settings("gliner")["labels"]
    out = {prompt: label for prompt, label in prompts.items() if label and policy.looks_for(label)}
    if not out:
        raise PolicyError(
            "detect.gliner: no label that the policy looks for has a prompt; give some in [detect.gliner.labels], such "
            'as "badge number" = "EMPLOYEE_ID"'
        )
    return out


def build_detector(policy: Policy) -> Adapter:
    """Build the detector for the model that ``[detect.gliner]`` names.

    Raises:
        MissingExtra: GLiNER is not installed.
        PolicyError: no model is named, nothing can be asked for, or the prompts leave no room for text.
        DataError: the model is not there.
    """
    settings = policy.settings("gliner")
    folder = require_model(settings, "gliner")
    prompts = map_prompts_to_labels(policy)
    model = _load_model(folder, settings["device"], settings["allow_download"])
    many = max(1, int(getattr(model.config, "max_types", 25)))
    groups = [list(prompts)[i : i + many] for i in range(0, len(prompts), many)]
    tokenizer = model.data_processor.transformer_tokenizer
    room = _count_free_tokens(model, tokenizer, groups)
    most = int(model.config.max_len)

    @lru_cache(maxsize=10_000)
    def count_tokens(word: str) -> float:
        return max(len(tokenizer.tokenize(word)) / room, 1 / most)

    def cut_text(text: str) -> Iterable[Interval]:
        return cut_windows(text, 1.0, _OVERLAP, _split_words(model, text), count_tokens)

    def read_windows(windows: Sequence[str]) -> list[list[Found]]:
        findings: list[list[Found]] = [[] for _ in windows]
        options = {name: settings[name] for name in ("threshold", "batch_size")}
        for group in groups if windows else ():
            for in_window, rows in zip(findings, model.inference(list(windows), group, **options), strict=True):
                in_window += (Found(r["start"], r["end"], r["label"], float(r["score"])) for r in rows)
        return findings

    labels = LabelMap(policy, "gliner", extra=prompts)  # the model names its findings by their prompts
    return Adapter("gliner", read_windows, labels, settings["threshold"], cut_text, languages=ANY_LANGUAGE)


def _count_free_tokens(model: Any, tokenizer: Any, groups: Sequence[Sequence[str]]) -> int:
    """The number of tokens that remain for the text beside the longest group of prompts."""
    encoder = getattr(model.config, "encoder_config", None)
    limit = min(int(tokenizer.model_max_length), int(getattr(encoder, "max_position_embeddings", None) or 10**9))
    reserved = max(sum(len(tokenizer.tokenize(prompt)) + 1 for prompt in group) for group in groups) + 4
    if limit - reserved < 16:
        raise PolicyError(
            f"detect.gliner: the model takes {limit} tokens and the prompts need {reserved}; look for fewer labels"
        )
    return limit - reserved


def _split_words(model: Any, text: str) -> list[Interval]:
    """The words as the model splits them, long words in pieces."""
    places = ((a, b) for _, a, b in model.data_processor.words_splitter(text))
    return [(start, min(start + _LONGEST, b)) for a, b in places for start in range(a, b, _LONGEST)]
