"""The detector ``transformers``: a token classifier of the Hugging Face library.

A word is a run of letters and digits and is either wholly part of an entity or not at all. Its probability is the
highest of its pieces' 1 - P(O), and its label the one with the most probability over its pieces. Tags may be plain or
begin with their position in the entity (BIO, BIOES, BILOU).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from allonym.detection import ANY_LANGUAGE
from allonym.detection.adapters import Adapter, Found
from allonym.detection.adapters.labels import LabelMap
from allonym.detection.adapters.offline import block_model_hubs, import_library, require_model
from allonym.document import trim_blanks
from allonym.errors import DataError, PolicyError
from allonym.policy import Policy

TOKENS = 512
"""Tokens in a window at most; attention grows with their square."""
_PLACED = re.compile(r"([BIESLU])-(.+)")


@dataclass(frozen=True, slots=True)
class _Piece:
    """A token of the text: its place, the probability of each label, and that of a label's beginning."""

    start: int
    end: int
    labels: Mapping[str, float]
    begins: Mapping[str, float]


@lru_cache(maxsize=2)
def _load_model(model: str, device: str, allow_download: bool) -> tuple[Any, Any]:
    import_library("torch", "transformers")
    hub = import_library("transformers", "transformers")
    local = not allow_download
    with block_model_hubs("transformers", model, allow_download=allow_download):
        tokenizer = hub.AutoTokenizer.from_pretrained(model, local_files_only=local)
        if not tokenizer.is_fast:
            raise DataError(f"detect.transformers: the tokenizer of {model!r} gives no offsets; a fast one is required")
        network, loading_info = hub.AutoModelForTokenClassification.from_pretrained(
            model, local_files_only=local, output_loading_info=True
        )
        if loading_info["missing_keys"]:
            raise DataError(f"detect.transformers: {model!r} holds no weights of a token classifier")
        return tokenizer, network.to(device).eval()


def build_detector(policy: Policy) -> Adapter:
    """Build the detector for the token classifier that ``[detect.transformers]`` names.

    Raises:
        MissingExtra: transformers or torch is not installed.
        PolicyError, UnknownNameError: no model is named, or a label of it is not mapped.
        DataError: the model is not there, or is no token classifier with a fast tokenizer.
    """
    settings = policy.settings("transformers")
    size, threshold, device = settings["batch_size"], settings["threshold"], settings["device"]
    model = require_model(settings, "transformers")
    tokenizer, network = _load_model(model, device, settings["allow_download"])
    tags = [_parse_tag(str(network.config.id2label[i])) for i in range(network.config.num_labels)]
    labels = LabelMap(policy, "transformers", ("conll", "spacy"), {label for _, label in tags if label != "O"})
    if all(label != "O" and labels(label) for _, label in tags):
        raise PolicyError(
            'detect.transformers: no label of the model means that a word is no entity; map one to "" in '
            "[detect.transformers.labels]"
        )
    window = _get_window_size(tokenizer, network)

    def read_texts(texts: Sequence[str]) -> list[list[Found]]:
        cut = [(i, *w) for i, text in enumerate(texts) for w in _cut_windows(tokenizer, text, window)]
        order = sorted(range(len(cut)), key=lambda n: len(cut[n][2]))
        pieces_by_text: list[dict[int, tuple[tuple[int, int], _Piece]]] = [{} for _ in texts]
        for offset in range(0, len(order), size):
            chunk = [cut[n] for n in order[offset : offset + size]]
            probabilities = _compute_tag_probabilities(tokenizer, network, chunk, device)
            for (i, first, ids, offsets), rows in zip(chunk, probabilities, strict=True):
                for n, (start, end) in enumerate(offsets):
                    # Where windows overlap, the one counts that shows most of both sides; of two, the first.
                    margin = (min(n, len(ids) - 1 - n), -first)
                    if end > start and (first + n not in pieces_by_text[i] or margin > pieces_by_text[i][first + n][0]):
                        pieces_by_text[i][first + n] = (margin, _make_piece((start, end), rows[n], tags, labels))
        return [
            _join_words_to_entities(text, [pieces[n][1] for n in sorted(pieces)], threshold)
            for text, pieces in zip(texts, pieces_by_text, strict=True)
        ]

    # labels are mapped before words are joined
    return Adapter("transformers", read_texts, str, threshold, languages=ANY_LANGUAGE)


def _parse_tag(name: str) -> tuple[str, str]:
    placed = _PLACED.fullmatch(name)
    return (placed[1], placed[2]) if placed else ("", name)


def _get_window_size(tokenizer: Any, network: Any) -> int:
    """The number of tokens that fit into one pass, including those that begin and end it."""
    most = getattr(network.config, "max_position_embeddings", None) or TOKENS
    # RoBERTa and its kin number positions from after the padding token's.
    is_roberta = getattr(network.config, "model_type", "") in ("roberta", "xlm-roberta", "camembert", "longformer")
    return int(min(TOKENS, tokenizer.model_max_length, most - 2 * is_roberta))


def _cut_windows(tokenizer: Any, text: str, limit: int) -> Iterator[tuple[int, list[int], list[tuple[int, int]]]]:
    """Yield (number of the first token, ids, offsets) of each window; special tokens have empty offsets."""
    added = tokenizer.num_special_tokens_to_add()
    stride = (limit - added) // 4
    cut = tokenizer(
        text,
        truncation=True,
        max_length=limit,
        stride=stride,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
        return_special_tokens_mask=True,
    )
    windows = zip(cut["input_ids"], cut["offset_mapping"], cut["special_tokens_mask"], strict=True)
    for n, (ids, offsets, special) in enumerate(windows):
        places = [(0, 0) if s else (a, b) for (a, b), s in zip(offsets, special, strict=True)]
        yield n * (limit - added - stride), ids, places


def _compute_tag_probabilities(
    tokenizer: Any, network: Any, chunk: Sequence[tuple[int, int, list[int], Any]], device: str
) -> Any:
    """The probabilities of all tags for each token of each window."""
    torch = import_library("torch", "transformers")
    sizes = [len(ids) for _, _, ids, _ in chunk]
    padding = tokenizer.pad_token_id or 0
    ids = torch.tensor([c[2] + [padding] * (max(sizes) - n) for c, n in zip(chunk, sizes, strict=True)], device=device)
    mask = torch.tensor([[1] * n + [0] * (max(sizes) - n) for n in sizes], device=device)
    with torch.inference_mode():
        probabilities = network(input_ids=ids, attention_mask=mask).logits.float().softmax(-1).cpu()
    return [row[:n].tolist() for row, n in zip(probabilities, sizes, strict=True)]


def _make_piece(
    place: tuple[int, int], probabilities: Sequence[float], tags: Sequence[tuple[str, str]], labels: LabelMap
) -> _Piece:
    sums: dict[str, float] = {}
    begins: dict[str, float] = {}
    for (position, foreign), probability in zip(tags, probabilities, strict=True):
        label = "" if foreign == "O" else labels(foreign)
        if label:
            sums[label] = sums.get(label, 0.0) + probability
            if position in ("B", "S", "U"):
                begins[label] = begins.get(label, 0.0) + probability
    return _Piece(*place, sums, begins)


def _join_words_to_entities(text: str, pieces: Sequence[_Piece], threshold: float) -> list[Found]:
    """Join neighbouring words of one label, unless the second begins a new entity."""
    entities: list[Found] = []
    scores: list[float] = []
    for word in _group_pieces_by_word(text, pieces):
        score = min(1.0, max(sum(p.labels.values()) for p in word))
        if score < threshold or score == 0.0:
            scores = []
            continue
        label = min(word[0].labels, key=lambda name: (-sum(p.labels[name] for p in word), name))
        start, end = word[0].start, word[-1].end
        begins = 2 * word[0].begins.get(label, 0.0) > word[0].labels[label]
        before = entities[-1] if scores else None
        if before and before.label == label and not begins and not text[before.end : start].strip():
            scores.append(score)
            entities[-1] = Found(before.start, end, label, sum(scores) / len(scores))
        else:
            scores = [score]
            entities.append(Found(start, end, label, score))
    return entities


def _group_pieces_by_word(text: str, pieces: Sequence[_Piece]) -> Iterator[list[_Piece]]:
    """Group the pieces by word, without the blanks that some tokenizers include at a piece's ends."""
    word: list[_Piece] = []
    for piece in pieces:
        start, end = trim_blanks(text, piece.start, piece.end)
        if start == end:
            continue
        piece = _Piece(start, end, piece.labels, piece.begins)
        # No sign parts the piece from the word before.
        joined = word and start <= word[-1].end and (start < word[-1].end or text[start - 1 : start + 1].isalnum())
        if word and not joined:
            yield word
            word = []
        word.append(piece)
    if word:
        yield word
