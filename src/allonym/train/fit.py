"""The trainer of the tagger: epochs over corrupted text, partial-label loss, early stopping, checkpoints."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from allonym.errors import DataError, UsageError, check_names, require_extra

with require_extra("training the tagger", "train"):
    import torch
    from torch import Tensor
    from torch.nn import functional
    from torch.nn.utils.rnn import pad_sequence

from allonym.models.tags import LABELS, PARTS, list_tag_names
from allonym.models.windows import Window, Words, cut_windows
from allonym.models.words import WordPiece, classify_shape, split_words
from allonym.train.corrupt import Noise, corrupt_example
from allonym.train.examples import ALL, Example, Lists
from allonym.train.network import Encoder, Tagger, make_rate_schedule

Sources = Sequence[tuple[float, Sequence[Example]]]
"""For each source, its number of times per epoch, and its examples."""

_TAGS = len(list_tag_names(LABELS))


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the trainer.

    Attributes:
        epochs: passes over the sources.
        lr, head_lr: peak learning rate of the encoder, and of the new layers.
        warmup: share of the steps in which the rate grows; after that it falls linearly to zero.
        batch: word pieces per batch, including padding.
        seed: seed of all random draws.
        patience: epochs without improvement after which training ends; 0: never.
        dropout: share from 0 to 1.
        plain: weight of the assumption that an unmarked word has none of the labels that its corpus does not annotate.
        parts: weight of the loss on parts of speech.
        average: decay of the running mean of the weights that is saved in the end; 0: the last weights are saved.
        layers: number of encoder layers to use; 0: all.
        frozen: number of lower layers that stay as they are, with the embeddings; for a tagger that is trained further.
        bf16: compute in bfloat16 where the loss does not need more precision.
        lower, speech, upper, swap, spell: see :class:`allonym.train.corrupt.Noise`.
    """

    epochs: int = 4
    lr: float = 1e-4
    head_lr: float = 1e-3
    warmup: float = 0.06
    batch: int = 2048
    seed: int = 1
    patience: int = 0
    dropout: float = 0.1
    plain: float = 0.15
    parts: float = 0.3
    average: float = 0.999
    layers: int = 0
    frozen: int = 0
    bf16: bool = True
    lower: float = 0.12
    speech: float = 0.10
    upper: float = 0.03
    swap: float = 0.25
    spell: float = 0.02

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Options:
        """Create options from a recipe's table; unknown names are errors with near matches."""
        check_names("training option", settings, [f.name for f in fields(cls)])
        return cls(**settings)


FURTHER: Mapping[str, Any] = {
    "epochs": 5, "lr": 1e-4, "head_lr": 5e-4, "batch": 1024, "average": 0.99, "swap": 0.1, "bf16": False
}  # fmt: skip
"""Options for training a tagger further on a few documents, where they differ."""


@dataclass(frozen=True, slots=True, repr=False)
class Piece:
    """A window, with the allowed tags, the plainness and the part of speech of each of its words."""

    window: Window
    allowed: list[int]
    plain: list[bool]
    parts: list[int]


def fit(
    sources: Sources,
    dev: Sequence[Example],
    out: Path,
    *,
    encoder: Path,
    options: Options,
    lists: Lists | None = None,
    report: Callable[[dict[str, Any]], None] = lambda row: None,
    resume: bool = False,
    start: Tagger | None = None,
    choose_epoch: bool = True,
) -> Tagger:
    """Train a tagger.

    Args:
        sources: for each source, its number of times per epoch, and its examples.
        dev: examples for the report of each epoch and for early stopping.
        out: folder for ``checkpoint.pt``, written after each epoch; created if missing.
        encoder: folder with ``config.json``, ``model.safetensors`` and ``vocab.txt`` of a BERT.
        options: options of the trainer.
        lists: names to swap in.
        report: called after each epoch with epoch, steps, loss and the measures of :func:`measure_tagger`.
        resume: continue from ``checkpoint.pt`` if there is one.
        start: a tagger to train further, in place; only ``vocab.txt`` of ``encoder`` is read then.
        choose_epoch: take the best epoch by ``dev``; otherwise the last one.

    Raises:
        DataError: there are no examples, the encoder cannot be read, or the checkpoint has other options.
    """
    if not any(examples for _, examples in sources):
        raise DataError("no training data: no record contains words")
    torch.manual_seed(options.seed)
    pieces = WordPiece.read(encoder / "vocab.txt")
    if (model := start) is None:
        network = Encoder.read(encoder, options.dropout, layers=options.layers or None)
        model = Tagger(network, _TAGS, len(PARTS), options.dropout)
    model.freeze_lower_layers(options.frozen)
    mean = deepcopy(model)
    optimizer = torch.optim.AdamW(model.make_parameter_groups(options.lr, options.head_lr), betas=(0.9, 0.98))
    per_epoch = sum(1 for _ in _make_batches(_draw_windows(sources, options, lists, pieces, 0), options, 0))
    total = per_epoch * options.epochs
    warm = max(1, int(options.warmup * total))
    schedule = make_rate_schedule(optimizer, warm, total)
    out.mkdir(parents=True, exist_ok=True)
    saved = out / "checkpoint.pt"
    begin, best, bad, step = 0, -math.inf, 0, 0
    if resume and saved.exists():
        state = torch.load(saved, weights_only=True)
        if state["options"] != asdict(options):
            raise UsageError(f"{saved} was written with other options; train without --resume or with the same ones")
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        schedule.load_state_dict(state["schedule"])
        mean.load_state_dict(state["mean"])
        begin, best, bad, step = state["epoch"], state["best"], state["bad"], state["step"]
        torch.set_rng_state(state["random"])
    for epoch in range(begin, options.epochs):
        model.train()
        losses, words_seen = 0.0, 0
        for batch in _make_batches(_draw_windows(sources, options, lists, pieces, epoch), options, epoch):
            loss, count = _compute_loss(model, batch, options)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if step < total - 1:
                schedule.step()
            step += 1
            if options.average:
                decay = min(options.average, (1 + step) / (10 + step))
                with torch.no_grad():
                    for averaged, value in zip(mean.parameters(), model.parameters(), strict=True):
                        if value.requires_grad:
                            averaged.lerp_(value, 1 - decay)
            losses, words_seen = losses + float(loss.detach()) * count, words_seen + count
        row = {"epoch": epoch + 1, "epochs": options.epochs, "steps": step, "loss": losses / max(1, words_seen)}
        judged = mean if options.average else model
        row |= measure_tagger(judged, dev, pieces)
        is_best = row["f1"] > best or not dev
        if is_best or not choose_epoch:
            torch.save({"model": judged.state_dict(), "options": asdict(options)}, out / "best.pt")
        best, bad = (row["f1"], 0) if is_best else (best, bad + 1)
        torch.save(
            {
                "model": model.state_dict(), "mean": mean.state_dict(), "optimizer": optimizer.state_dict(),
                "schedule": schedule.state_dict(), "step": step, "epoch": epoch + 1, "best": best, "bad": bad,
                "random": torch.get_rng_state(), "options": asdict(options),
            },
            saved,
        )  # fmt: skip
        with (out / "epochs.jsonl").open("a", encoding="utf-8") as log:
            log.write(json.dumps(row) + "\n")
        report(row)
        if options.patience and bad >= options.patience:
            break
    model.load_state_dict(torch.load(out / "best.pt", weights_only=True)["model"])
    return model.eval()


def measure_tagger(model: Tagger, examples: Sequence[Example], pieces: WordPiece) -> dict[str, float]:
    """Return the shares of entity words covered, other words covered, and entity words with an allowed tag, and F1."""
    model.eval()
    counts: Counter[str] = Counter()
    with torch.no_grad():
        for batch in _make_batches([w for e in examples for w in make_windows(e, pieces)], Options(batch=4096), 0):
            ids, shapes, heads, mask, allowed, _, parts = batch
            logits, spoken = model(ids, shapes, heads, mask)
            is_annotated = allowed != ALL
            tag = logits.argmax(dim=1)
            fits = (allowed >> tag) & 1 == 1
            inside = is_annotated & (allowed & 1 == 0)
            outside = is_annotated & (allowed & 1 == 1)
            masks = {"entity": inside, "covered": inside & (tag != 0), "right": inside & fits, "other": outside}
            masks |= {"false": outside & ~fits, "parts": parts >= 0, "hits": spoken.argmax(dim=1) == parts}
            counts.update({name: int(mask.sum()) for name, mask in masks.items()})
    precision = counts["right"] / max(1, counts["covered"] + counts["false"])
    recall = counts["right"] / max(1, counts["entity"])
    return {
        "covered": counts["covered"] / max(1, counts["entity"]),
        "needless": counts["false"] / max(1, counts["other"]),
        "right": recall,
        "f1": 2 * precision * recall / max(1e-9, precision + recall),
        "parts": counts["hits"] / max(1, counts["parts"]),
    }


def make_windows(example: Example, pieces: WordPiece) -> list[Piece]:
    """Return an example as windows, cut as at detection."""
    split = [pieces.pieces(w) for w in example.words]
    shapes = [classify_shape(w, j) for w, j in zip(example.words, example.joined, strict=True)]
    out = []
    for w in cut_windows(Words([(0, 0)] * len(split), split, shapes, example.breaks), pieces):
        words, inner = range(w.first, w.last), range(w.keep_from, w.keep_to)
        allowed = [example.allowed[i] if i in inner else ALL for i in words]
        plain = [example.plain[i] and i in inner for i in words]
        out.append(Piece(w, allowed, plain, list(example.parts[w.first : w.last])))
    return out


def _draw_windows(
    sources: Sources, options: Options, lists: Lists | None, pieces: WordPiece, epoch: int
) -> list[Piece]:
    rng = random.Random(f"{options.seed} {epoch}")
    noise = Noise(options.lower, options.speech, options.upper, options.swap, options.spell)
    names = (lists.first, lists.last) if lists else ((), ())
    first, last = ([n.title() for n in sorted(some) if len(split_words(n)) == 1] for some in names)
    out = []
    for times, examples in sources:
        full_rounds, part = divmod(times, 1)
        shown = list(examples) * int(full_rounds)
        if part:
            shown += rng.sample(list(examples), int(part * len(examples)))
        for example in shown:
            out += make_windows(corrupt_example(example, noise, first, last, rng), pieces)
    return [w for w in out if any(m != ALL for m in w.allowed) or any(p >= 0 for p in w.parts)]


def pad_windows(windows: Sequence[Window]) -> tuple[Tensor, Tensor, Tensor]:
    """Return the pieces, the shapes and a mask of real pieces, ``(windows, length of the longest)`` each."""
    columns = [w.pieces for w in windows], [w.shapes for w in windows], [[True] * len(w.pieces) for w in windows]
    ids, shapes, mask = (pad_sequence([torch.tensor(row) for row in rows], batch_first=True) for rows in columns)
    return ids, shapes, mask


def _make_batches(windows: Sequence[Piece], options: Options, epoch: int) -> Iterator[tuple[Tensor, ...]]:
    """Yield padded batches of windows of similar length, in random order."""
    rng = random.Random(f"batches {options.seed} {epoch}")
    order = sorted(range(len(windows)), key=lambda i: (len(windows[i].window.pieces), rng.random()))
    chunks: list[list[int]] = []
    for i in order:
        longest = len(windows[i].window.pieces)
        if chunks and longest * (len(chunks[-1]) + 1) <= options.batch:
            chunks[-1].append(i)
        else:
            chunks.append([i])
    rng.shuffle(chunks)
    for chunk in chunks:
        batch = [windows[i] for i in chunk]
        cut = [piece.window for piece in batch]
        ids, shapes, mask = pad_windows(cut)
        heads = [n * ids.shape[1] + h for n, w in enumerate(cut) for h in w.heads]
        words = ([x for w in batch for x in getattr(w, name)] for name in ("allowed", "plain", "parts"))
        yield ids, shapes, torch.tensor(heads), mask, *map(torch.tensor, words)


def _compute_loss(model: Tagger, batch: tuple[Tensor, ...], options: Options) -> tuple[Tensor, int]:
    ids, shapes, heads, mask, allowed, plain, parts = batch
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=options.bf16):
        logits, spoken = model(ids, shapes, heads, mask)
    every = torch.logsumexp(logits, dim=1)
    bits = (allowed[:, None] >> torch.arange(_TAGS)) & 1 == 1
    right = torch.logsumexp(logits.masked_fill(~bits, -1e4), dim=1)
    is_annotated = allowed != ALL
    count = max(1, int(is_annotated.sum()))
    loss = ((every - right) * is_annotated).sum() / count
    if options.plain:
        loss = loss + options.plain * ((every - logits[:, 0]) * plain).sum() / count
    if options.parts and bool((parts >= 0).any()):
        loss = loss + options.parts * functional.cross_entropy(spoken, parts, ignore_index=-1)
    return loss, count
