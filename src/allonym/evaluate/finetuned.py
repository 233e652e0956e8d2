"""Networks that are fine-tuned on each version of the texts: P3's RoBERTa (3.1.2.1), P4's BERT and BART (section 4.1).

An extra: both need torch and transformers, and a folder on this machine that holds a pretrained network; nothing is
fetched. A classifier gets a new head for its classes, a summariser writes freely. Each split begins again with the
network of the folder. All that is drawn (head, dropout, order) is the same for both versions of a split, so that
networks differ by what they learnt from alone.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allonym.errors import DataError, UnknownNameError, UsageError, require_extra

CLASSIFIER = "finetune:"
WRITER = "seq2seq:"
_KINDS = {
    CLASSIFIER: ("AutoModelForSequenceClassification", "a fine-tuned classifier", "an encoder such as BERT"),
    WRITER: ("AutoModelForSeq2SeqLM", "a summariser that writes", "an encoder-decoder such as BART"),
}

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Training:
    """The settings of fine-tuning. The defaults are P4's (section 4.1): AdamW, three epochs.

    Attributes:
        epochs: passes over the texts that are learnt from, 1 and more.
        lr: highest learning rate, above 0; it grows over the first tenth of the batches and falls to zero on a line.
        batch: texts in a batch, 1 and more.
        tokens: of a text at most, or as many as the network takes; longer texts are cut.
        written: tokens of a summary at most.
        beams: summaries that are followed at once; 1: greedy.

    Raises:
        UsageError: a value is out of its range.
    """

    epochs: int = 3
    lr: float = 2e-5
    batch: int = 8
    tokens: int = 1024
    written: int = 256
    beams: int = 1

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "tokens", "written", "beams"):
            if getattr(self, name) < 1:
                raise UsageError(f"fine-tuning: {name} must be 1 at least, got {getattr(self, name)}")
        if not (math.isfinite(self.lr) and self.lr > 0):
            raise UsageError(f"fine-tuning: lr must be above 0, got {self.lr:g}")


def check_model_available(model: str, names: Sequence[str], prefixes: Sequence[str], where: str) -> None:
    """Check that a model is one of ``names`` or a prefix with a folder, and that what it needs is installed.

    Raises:
        UnknownNameError: neither.
        UsageError: no such folder.
        MissingExtra: torch or transformers is not installed.
    """
    prefix = _find_model_prefix(model)
    if prefix not in prefixes:
        if model not in names:
            raise UnknownNameError("model", model, (*names, *(f"{p}FOLDER" for p in prefixes)), where)
        return
    _, what, example = _KINDS[prefix]
    folder = model.removeprefix(prefix)
    if not folder or not Path(folder).is_dir():
        raise UsageError(f"{where}: {model}: no such folder; one that holds {example} is required, nothing is fetched")
    _import_torch_and_transformers(what)


def describe_model(model: str, training: Training | None) -> str:
    """Return the name of a model for results, without the path of its folder."""
    prefix = _find_model_prefix(model)
    if not prefix:
        return model
    how = training or Training()
    name = Path(model.removeprefix(prefix)).resolve().name
    return f"{prefix}{name}, {how.epochs} epochs, learning rate {how.lr:g}, batch {how.batch}"


def derive_split_seed(seed: int, train: Sequence[int] | Ints) -> int:
    """Return the seed of one split, the same for both versions of its texts."""
    return int(np.random.SeedSequence([seed, *map(int, train)]).generate_state(1)[0] >> 1)


class _Network:
    """A pretrained network of a folder, and how it is fine-tuned."""

    def __init__(self, prefix: str, model: str, training: Training | None, **settings: Any) -> None:
        self._folder = Path(model.removeprefix(prefix))
        self._training = training or Training()
        with _use_seeded_torch(prefix, 0):
            self._tokenizer, network = _open_tokenizer_and_network(self._folder, prefix, **settings)
        self._room = _find_token_limit(self._tokenizer, network, self._training.tokens)


class Classifier(_Network):
    """An encoder with a new head, fine-tuned for each split.

    Args:
        model: ``finetune:`` and a folder.
        training: how; None: :class:`Training`'s defaults.
        versions: the texts, before and after; both in the same order.
        seed: of the splits.

    Attributes:
        rows: the tokens of each text of each version, cut to what the network takes.

    Raises:
        DataError: the folder holds no such network.
    """

    def __init__(self, model: str, training: Training | None, versions: Sequence[Sequence[str]], seed: int = 0) -> None:
        super().__init__(CLASSIFIER, model, training, ignore_mismatched_sizes=True)
        self._seed = seed
        with _use_seeded_torch(CLASSIFIER, 0):
            self.rows = [[_tokenise_text(self._tokenizer, text, self._room) for text in texts] for texts in versions]

    def train_and_predict(self, train: Ints, y: Ints, test: Ints, version: int = 0) -> Ints:
        """Fine-tune on texts of a version, with classes ``y``, then classify texts of the first version."""
        learnt, judged = [self.rows[version][i] for i in train], [self.rows[0][i] for i in test]
        seed = derive_split_seed(self._seed, train)
        classes, place = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            return np.full(len(judged), classes[0], np.int64)
        with _use_seeded_torch(CLASSIFIER, seed) as torch:
            _, network = _open_tokenizer_and_network(
                self._folder, CLASSIFIER, num_labels=len(classes), ignore_mismatched_sizes=True,
                problem_type="single_label_classification",
            )  # fmt: skip
            examples = [(ids, [k]) for ids, k in zip(learnt, place.tolist(), strict=True)]
            _fine_tune(self._tokenizer, network, examples, self._training, seed)
            predicted = np.empty(len(judged), np.int64)
            for chosen, inputs in _pad_batches(torch, judged, self._tokenizer.pad_token_id, self._training.batch):
                with torch.inference_mode():
                    predicted[chosen] = network(**inputs).logits.argmax(-1).numpy()
        return np.asarray(classes[predicted], np.int64)


class Writer(_Network):
    """An encoder-decoder that learns to write summaries.

    Args:
        model: ``seq2seq:`` and a folder.
        training: how; None: :class:`Training`'s defaults.

    Raises:
        DataError: the folder holds no such network.
    """

    def __init__(self, model: str, training: Training | None = None) -> None:
        super().__init__(WRITER, model, training)

    def train_and_summarise(
        self, learnt: Sequence[str], references: Sequence[Sequence[str]], judged: Sequence[str], seed: int
    ) -> list[str]:
        """Fine-tune on texts with their references, one example for each, then summarise others.

        The most likely words are written, nothing is drawn at random; no summary is longer than the longest that was
        learnt from.
        """
        how, pieces = self._training, self._tokenizer
        most = min(self._room, how.written)
        with _use_seeded_torch(WRITER, seed) as torch:
            _, network = _open_tokenizer_and_network(self._folder, WRITER)
            examples = [
                (source, list(pieces(text_target=summary, truncation=True, max_length=most)["input_ids"]))
                for source, summaries in zip(
                    (_tokenise_text(pieces, t, self._room) for t in learnt), references, strict=True
                )
                for summary in summaries
            ]
            _fine_tune(pieces, network, examples, how, seed)
            out = [""] * len(judged)
            ids = [_tokenise_text(pieces, text, self._room) for text in judged]
            for chosen, inputs in _pad_batches(torch, ids, pieces.pad_token_id, how.batch):
                with torch.inference_mode():
                    generated = network.generate(
                        **inputs, num_beams=how.beams, do_sample=False, min_length=0,
                        max_new_tokens=max(len(target) for _, target in examples), pad_token_id=pieces.pad_token_id,
                    )  # fmt: skip
                for i, text in zip(chosen, pieces.batch_decode(generated, skip_special_tokens=True), strict=True):
                    out[i] = str(text).strip()
        return out


def _find_model_prefix(model: str) -> str:
    return next((prefix for prefix in _KINDS if model.startswith(prefix)), "")


def _import_torch_and_transformers(purpose: str) -> tuple[Any, Any]:
    with warnings.catch_warnings():  # of their imports
        warnings.simplefilter("ignore")
        with require_extra(purpose, "transformers"):
            import torch
            import transformers
    return torch, transformers


@contextmanager
def _use_seeded_torch(prefix: str, seed: int) -> Iterator[Any]:
    """Yield torch with a seed; its state, warnings and the messages of transformers are restored afterwards."""
    torch, hub = _import_torch_and_transformers(_KINDS[prefix][1])
    log = hub.utils.logging
    level, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity(log.CRITICAL)
    log.disable_progress_bar()
    try:
        with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
            warnings.simplefilter("ignore")
            torch.manual_seed(seed)
            yield torch
    finally:
        log.set_verbosity(level)
        if bars:
            log.enable_progress_bar()


def _open_tokenizer_and_network(folder: Path, prefix: str, **settings: Any) -> tuple[Any, Any]:
    """Open the tokenizer and network of a folder; no code of the folder is run, and no hub is asked.

    Raises:
        DataError: it does not hold such a network.
    """
    from allonym.detection.adapters.offline import block_model_hubs

    kind, what, example = _KINDS[prefix]
    hub = _import_torch_and_transformers(what)[1]
    try:
        with block_model_hubs(prefix, str(folder), floor="evaluate"):
            local = {"local_files_only": True, "trust_remote_code": False}
            tokenizer = hub.AutoTokenizer.from_pretrained(folder, **local)
            network = getattr(hub, kind).from_pretrained(folder, **local, **settings)
    except DataError:
        raise DataError(f"{folder}: {example} with its tokenizer, as transformers saves it, is required") from None
    if tokenizer.pad_token_id is None and tokenizer.eos_token is not None:
        tokenizer.pad_token = tokenizer.eos_token
    if tokenizer.pad_token_id is None:
        raise DataError(f"{folder}: the tokenizer has no token to fill up with (pad_token)")
    network.config.pad_token_id = tokenizer.pad_token_id
    return tokenizer, network


def _find_token_limit(tokenizer: Any, network: Any, most: int) -> int:
    """Return the tokens that a text may have: the least of the setting, the tokenizer's limit and the network's
    positions."""
    room = min(most, int(tokenizer.model_max_length))
    if places := getattr(network.config, "max_position_embeddings", None):
        room = min(room, int(places))
    for name, module in network.named_modules():  # RoBERTa counts its places from the one after the filling's
        if name.endswith("embeddings.position_embeddings") and getattr(module, "padding_idx", None) is not None:
            room = min(room, module.num_embeddings - module.padding_idx - 1)
    return room


def _tokenise_text(tokenizer: Any, text: str, token_limit: int) -> list[int]:
    return list(tokenizer(text, truncation=True, max_length=token_limit)["input_ids"]) or [tokenizer.pad_token_id]


def _fine_tune(
    tokenizer: Any, network: Any, examples: Sequence[tuple[list[int], list[int]]], how: Training, seed: int
) -> None:
    """Train a network on inputs and expected outputs, and leave it ready for prediction."""
    from allonym.replace.rewriter import Rewriter
    from allonym.train.seq2seq import Options, make_batches, make_optimiser, take_training_step

    model = Rewriter(tokenizer, network, causal=False)
    total = how.epochs * math.ceil(len(examples) / how.batch)
    optimizer, schedule = make_optimiser(network, how.lr, total)
    network.train()
    for batch in make_batches(examples, Options(epochs=how.epochs, lr=how.lr, batch=how.batch, seed=seed), 0, total):
        take_training_step(model, batch, optimizer, schedule)
    network.eval()


def _pad_batches(
    torch: Any, rows: Sequence[list[int]], pad_id: int, batch_size: int
) -> Iterator[tuple[list[int], dict[str, Any]]]:
    """Yield the indices of texts and their batch; texts of equal length are together."""
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        size = max(len(rows[i]) for i in chosen)
        ids = torch.tensor([[*rows[i], *[pad_id] * (size - len(rows[i]))] for i in chosen])
        attention = torch.tensor([[1] * len(rows[i]) + [0] * (size - len(rows[i])) for i in chosen])
        yield chosen, {"input_ids": ids, "attention_mask": attention}
