"""The spaCy backend, P5's first method (section 2.1): a convolutional tagger, trained from scratch.

It supports any language that spaCy can tokenise. The network and its settings are in the file ``spacy.cfg`` beside this
one; the model's folder has them with the options filled in, as ``config.cfg``. The folder loads with ``spacy.load`` and
with ``[detect.spacy] model = FOLDER``. Words are split at every mark, because spaCy's rules keep together what
annotators separate (``Sex:M.`` in Spanish); the model's folder keeps this setting. Entities are disjoint in spaCy: of
overlapping ones the longest is used. Entities that begin or end inside a word are extended to its borders, so that the
model learns to cover too much rather than too little.
"""

from __future__ import annotations

import json
import math
import os
import random
import re
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import numpy as np

from allonym.document import Span
from allonym.errors import DataError, UnknownNameError, UsageError, require_extra
from allonym.train.records import Record, list_spans, select_outermost_spans
from allonym.train.score import Predict, Report, score_model

_STATE = ".resume"


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the trainer. P5's best: batch 256, lr 0.0006121, hidden_width 64, dropout 0.08256, maxout_pieces 3.

    Attributes:
        language: spaCy's code, such as ``en``, ``es`` or ``pl``; ``xx`` for any other.
        epochs: passes over the training text.
        patience: epochs without a better F1 on the dev part after which training ends; 0: never.
        batch: words per batch.
        lr: learning rate of Adam.
        dropout: share from 0 to 1.
        seed: seed of all random draws.
        hidden_width, maxout_pieces: size of the classification layer.
        split: split words at every mark; false: by spaCy's rules for the language.
        width, depth, rows: of the word layers: numbers per word, convolutions (each sees one word more to either
            side), rows of each table of hashed features.
    """

    language: str = "en"
    epochs: int = 30
    patience: int = 5
    batch: int = 1000
    lr: float = 0.001
    dropout: float = 0.1
    seed: int = 0
    hidden_width: int = 64
    maxout_pieces: int = 2
    split: bool = True
    width: int = 96
    depth: int = 4
    rows: int = 2000


def import_spacy() -> Any:
    """Import spacy; raise :class:`MissingExtra` if it is not installed."""
    with require_extra("spaCy", "spacy"):
        import spacy
    return spacy


def make_config(options: Options) -> Any:
    """Return spaCy's configuration for these options; ``config.to_str()`` is a ``config.cfg``."""
    import_spacy()
    from thinc.api import Config

    changed = {
        "system.seed": options.seed,
        "nlp.lang": options.language,
        "components.ner.model.hidden_width": options.hidden_width,
        "components.ner.model.maxout_pieces": options.maxout_pieces,
        "components.ner.model.tok2vec.width": options.width,
        "components.ner.model.tok2vec.depth": options.depth,
        "components.ner.model.tok2vec.embed_size": options.rows,
        "training.dropout": options.dropout,
        "training.max_epochs": options.epochs,
        "training.batcher.size": options.batch,
        "training.optimizer.learn_rate": options.lr,
    }
    text = files("allonym.train").joinpath("spacy.cfg").read_text(encoding="utf-8")
    return Config().from_str(text, interpolate=False, overrides=changed)


def fit(
    train: Sequence[Record],
    dev: Sequence[Record],
    out: Path,
    *,
    options: Options,
    report: Report = lambda row: None,
    resume: bool = False,
) -> dict[str, Any]:
    """Train a model from scratch and write the best epoch's to ``out``.

    Args:
        train, dev: training records, and records for choosing the epoch by strict F1; without ``dev``, the last one.
        out: the model's folder; created if missing.
        report: called after each epoch with epoch, words, loss, and precision, recall and f1 on ``dev``.
        resume: continue after the last finished epoch of an interrupted run with the same options; the result is the
            same.

    Returns:
        ``epochs``, the ``best`` epoch and its ``f1``, ``labels``, ``words`` per epoch, ``moved`` (extended) spans.

    Raises:
        DataError: no record has a span.
        UsageError: the interrupted run had other options.
        UnknownNameError: spaCy has no such language.
    """
    spacy = import_spacy()
    from spacy.training.batchers import minibatch_by_words

    util = spacy.util
    if not util.lang_class_is_loaded(options.language):
        try:
            util.get_lang_class(options.language)
        except ImportError:
            languages = [p.parent.name for p in Path(spacy.__file__).parent.glob("lang/*/__init__.py")]
            raise UnknownNameError("language of spaCy", options.language, languages) from None
    util.fix_random_seed(options.seed)
    nlp: Any = util.load_model_from_config(make_config(options), auto_fill=True)
    if options.split:
        make_tokenizer_split_marks(nlp)
    examples, moved = _make_examples(nlp, train)
    labels = sorted({entity.label_ for example in examples for entity in example.reference.ents})
    if not labels:
        raise DataError("no training data: no record has a span")
    ner = nlp.get_pipe("ner")
    for label in labels:
        ner.add_label(label)
    optimizer = nlp.initialize(lambda: examples)
    state: dict[str, Any] = {"epoch": 0, "best": -math.inf, "best_epoch": 0, "options": asdict(options)}
    state_folder = out / _STATE
    if resume and (state_folder / "state.json").exists():
        state = _restore_training_state(state_folder, ner.model, optimizer, options)
    out.mkdir(parents=True, exist_ok=True)
    count = sum(len(example.reference) for example in examples)
    while state["epoch"] < options.epochs:
        if options.patience and state["epoch"] - state["best_epoch"] >= options.patience:
            break
        epoch = state["epoch"] + 1
        util.fix_random_seed(options.seed * 10_007 + epoch)
        losses: dict[str, float] = {}
        order = list(examples)
        random.Random(f"{options.seed} {epoch}").shuffle(order)
        for batch in minibatch_by_words(order, options.batch, get_length=lambda example: len(example.reference)):
            nlp.update(batch, drop=options.dropout, sgd=optimizer, losses=losses)
        with nlp.use_params(optimizer.averages):
            dev_score = score_model(_make_predictor(nlp), dev).strict
            if not dev or dev_score.f1 > state["best"]:
                state |= {"best": dev_score.f1, "best_epoch": epoch}
                _write_model(out, nlp, labels)
        state["epoch"] = epoch
        _save_training_state(state_folder, ner.model, optimizer, state)
        row = {"epoch": epoch, "epochs": options.epochs, "words": count, "loss": float(losses.get("ner", 0.0))}
        report(row | dev_score.to_dict())
    shutil.rmtree(state_folder, ignore_errors=True)
    summary = {"labels": labels, "words": count, "moved": moved}
    return {"epochs": state["epoch"], "best": state["best_epoch"], "f1": state["best"], **summary}


def make_tokenizer_split_marks(nlp: Any) -> None:
    """Let a pipeline split words at every mark; spaCy writes this setting to the model's folder."""
    from spacy.tokenizer import Tokenizer

    mark = r"(?:[^\w\s]|_)"
    first, last, inside = (re.compile(pattern) for pattern in (f"^{mark}", f"{mark}$", f"{mark}+"))
    nlp.tokenizer = Tokenizer(
        nlp.vocab, prefix_search=first.search, suffix_search=last.search, infix_finditer=inside.finditer
    )


def load(path: Path | str) -> Predict:
    """Load a trained model as a function from texts to spans.

    Raises:
        DataError: the folder has no spaCy model.
    """
    spacy = import_spacy()
    if not (Path(path) / "config.cfg").exists():
        raise DataError(f"{path}: not a spaCy model: config.cfg is missing")
    return _make_predictor(spacy.load(path))


def _make_predictor(nlp: Any) -> Predict:
    return lambda texts: [
        [Span(e.start_char, e.end_char, e.label_, 1.0, "spacy") for e in doc.ents] for doc in nlp.pipe(texts)
    ]


def _make_examples(nlp: Any, records: Sequence[Record]) -> tuple[list[Any], int]:
    """Return the records as spaCy examples, and the number of spans extended to the borders of tokens."""
    from spacy.training import Example

    out: list[Any] = []
    moved = 0
    for record in records:
        doc = nlp.make_doc(record["text"])
        if not len(doc):
            continue
        reference = nlp.make_doc(record["text"])
        entities: list[Any] = []
        for span in select_outermost_spans(list_spans(record)):
            entity = reference.char_span(span.start, span.end, label=span.label, alignment_mode="expand")
            # spaCy rejects blank tokens at the ends of an entity.
            solid = [token.i for token in entity or () if not token.is_space]
            if solid and not (entities and entities[-1].end > solid[0]):
                entity = type(entity)(reference, solid[0], solid[-1] + 1, label=span.label)
                entities.append(entity)
                moved += (entity.start_char, entity.end_char) != (span.start, span.end)
        reference.set_ents(entities)
        out.append(Example(doc, reference))
    return out, moved


# The checkpoint: weights, the optimizer's moments by index of the layer, and the number of epochs.


def _map_parameter_names(model: Any) -> dict[tuple[int, str], str]:
    return {(node.id, name): f"{i} {name}" for i, node in enumerate(model.walk()) for name in node.param_names}


def _save_training_state(folder: Path, model: Any, optimizer: Any, state: dict[str, Any]) -> None:
    fresh = folder.with_name(folder.name + "-new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    places = _map_parameter_names(model)
    arrays: dict[str, Any] = {}
    for what in ("mom1", "mom2", "averages"):
        for key, value in getattr(optimizer, what).items():
            arrays[f"{what} {places[key]}"] = value
    np.savez(fresh / "optimizer.npz", **arrays)
    (fresh / "model").write_bytes(model.to_bytes())
    updates = {places[key]: n for key, n in optimizer.nr_update.items()}
    (fresh / "state.json").write_text(json.dumps({**state, "updates": updates}), encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(fresh, folder)


def _restore_training_state(folder: Path, model: Any, optimizer: Any, options: Options) -> dict[str, Any]:
    state = cast(dict[str, Any], json.loads((folder / "state.json").read_text(encoding="utf-8")))
    if state["options"] != asdict(options):
        raise UsageError(f"{folder.parent}: the interrupted run had other options; repeat them, or do not resume")
    model.from_bytes((folder / "model").read_bytes())
    keys = {place: key for key, place in _map_parameter_names(model).items()}
    with np.load(folder / "optimizer.npz") as arrays:
        for name in arrays.files:
            what, _, place = name.partition(" ")
            getattr(optimizer, what)[keys[place]] = arrays[name]
    for place, n in state.pop("updates").items():
        optimizer.nr_update[keys[place]] = n
    return state


def _write_model(out: Path, nlp: Any, labels: Sequence[str]) -> None:
    """Write the model's folder, without spaCy's list of all words seen; only the labels need strings there."""
    from spacy.strings import StringStore

    nlp.to_disk(out)
    StringStore(labels).to_disk(out / "vocab" / "strings.json")
    for name in ("lookups.bin", "key2row", "vectors", "vectors.cfg"):
        (out / "vocab" / name).unlink(missing_ok=True)
