"""Training models that rewrite text with pseudonyms: P4's Seq2Seq-PS (appendix A.2), and causal ones (P5's outlook).

A model of the library transformers is fine-tuned on a parallel corpus (:mod:`allonym.train.parallel`), or a small one
with its own byte-level BPE tokenizer is trained from scratch. The output folder is for the operator ``seq2seq``; beside
the model it contains ``learning.json``, and ``learning.png`` if matplotlib is installed.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from allonym.errors import DataError, UsageError, require_extra
from allonym.partfile import write_file

with require_extra("training seq2seq", "seq2seq"):
    import torch
    import transformers
    from tokenizers import ByteLevelBPETokenizer, processors
    from torch.nn.utils.rnn import pad_sequence

from allonym.replace.cast import LEAST_WORD, find_plain_words
from allonym.replace.rewriter import Rewriter, align_output
from allonym.text.names import normalize_surface
from allonym.train.network import make_rate_schedule
from allonym.train.parallel import Pair

SIZES: Mapping[str, Mapping[str, int]] = {
    "tiny": {"width": 96, "layers": 2, "heads": 2, "vocabulary": 1500},
    "small": {"width": 160, "layers": 2, "heads": 2, "vocabulary": 4000},
    "base": {"width": 512, "layers": 6, "heads": 8, "vocabulary": 16000},
}
"""Sizes of ``--from-scratch``: width, layers of encoder and decoder each, attention heads, vocabulary."""

SHOWN = 60
"""Number of evaluation pairs that are rewritten for each row of the learning curve."""
_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the trainer. The defaults are those of P4, A.2.

    Attributes:
        epochs: passes over the pairs.
        steps: number of batches after which training ends; 0: by epochs.
        lr: peak learning rate of AdamW; it grows over the first tenth and then falls linearly to zero.
        batch: pairs per batch.
        tokens: greatest number of tokens of a passage; longer ones are cut.
        rows: number of measurements, not counting the one before the first step.
        seed: seed of all random draws.
        device: PyTorch device.
    """

    epochs: int = 3
    steps: int = 0
    lr: float = 2e-5
    batch: int = 8
    tokens: int = 256
    rows: int = 6
    seed: int = 1
    device: str = "cpu"


@dataclass(frozen=True, slots=True)
class Measure:
    """The quality of a model on evaluation pairs.

    Attributes:
        loss: mean loss per token of the target.
        leaked: share of words of originals in the model's output, before the operator's checks.
        usable: share of edits for which the output is aligned and has another text without a word of the original.
        kept: share of words and signs outside edits that are unchanged.
        exact: share of edits with the replacement of the parallel corpus.
    """

    loss: float
    leaked: float
    usable: float
    kept: float
    exact: float


def create_model(size: str, texts: Sequence[str], *, causal: bool, seed: int, tokens: int = 256) -> Rewriter:
    """Create a model with random weights, and a tokenizer trained on the texts.

    Args:
        size: a key of :data:`SIZES`.
        texts: training texts of the tokenizer.
        causal: GPT-2's architecture instead of BART's.
        seed: seed of the weights.
        tokens: greatest number of tokens of a passage.

    Raises:
        UsageError: there is no such size.
    """
    if size not in SIZES:
        raise UsageError(f"--from-scratch must be one of {', '.join(SIZES)}, got {size!r}")
    shape = SIZES[size]
    pieces = ByteLevelBPETokenizer()
    pieces.train_from_iterator(
        texts, vocab_size=shape["vocabulary"], special_tokens=list(_SPECIAL), show_progress=False
    )
    pieces._tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer = transformers.PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=pieces._tokenizer, bos_token="<s>", pad_token="<pad>", eos_token="</s>", unk_token="<unk>",
        model_max_length=2 * tokens + 16 if causal else tokens,
    )  # fmt: skip
    torch.manual_seed(seed)
    ids: dict[str, Any] = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
    ids["vocab_size"] = pieces.get_vocab_size()
    width, layers, heads = shape["width"], shape["layers"], shape["heads"]
    network: Any
    if causal:
        config = transformers.GPT2Config(
            n_positions=2 * tokens + 16, n_embd=width, n_layer=2 * layers, n_head=heads, **ids
        )
        network = transformers.GPT2LMHeadModel(config)
    else:
        network = transformers.BartForConditionalGeneration(
            transformers.BartConfig(
                max_position_embeddings=tokens + 2, d_model=width, encoder_layers=layers, decoder_layers=layers,
                encoder_attention_heads=heads, decoder_attention_heads=heads, encoder_ffn_dim=4 * width,
                decoder_ffn_dim=4 * width, dropout=0.0, decoder_start_token_id=2, forced_eos_token_id=2,
                **ids,
            )
        )  # fmt: skip
        _initialise_as_copier(network, width, heads)
    return Rewriter(tokenizer, network, causal)


def _initialise_as_copier(network: Any, width: int, heads: int) -> None:
    """Set random weights so that the output begins as a copy of the input.

    Otherwise a model needs far more text to learn that most words stay. Words, positions and previous words have
    separate dimensions. The first layer of the encoder looks one position back and stores the word there. The last
    layer of the decoder looks for a nearby position whose previous word is the one just written, and copies the word
    at that position (an induction head, Olsson et al. 2022).
    """
    size = width // heads
    place = size // 3 // 4 * 4
    word = size - place
    words, before, places = slice(0, word), slice(word, 2 * word), slice(2 * word, 2 * word + place)
    fine, coarse = torch.linspace(0.4, math.pi, place // 4), torch.logspace(-2.3, -0.8, place // 4)
    steps = torch.cat((fine, coarse))
    body = network.model
    with torch.no_grad():
        body.shared.weight.mul_(0.1)
        body.shared.weight[:, words].normal_(0.0, 0.15)
        body.shared.weight[network.config.pad_token_id].zero_()
        for side in (body.encoder, body.decoder):
            table = side.embed_positions.weight
            angles = torch.arange(len(table))[:, None] * steps
            table.mul_(0.1)
            table[:, places] = 0.15 * math.sqrt(2 * word / place) * torch.cat((angles.cos(), angles.sin()), 1)
        half = place // 2
        back = torch.zeros(place, place)  # maps a position to the previous one
        for i, angle in enumerate(steps):
            turn = torch.tensor([[angle.cos(), angle.sin()], [-angle.sin(), angle.cos()]])
            back[i::half, i::half] = turn
        head_word, head_place = slice(0, word), slice(word, size)
        look = body.encoder.layers[0].self_attn
        look.q_proj.weight[head_place, places] += 1.5 * back
        look.k_proj.weight[head_place, places] += 1.5 * torch.eye(place)
        look.v_proj.weight[head_word, words] += torch.eye(word)
        look.out_proj.weight[before, head_word] += 1.5 * torch.eye(word)
        copy = body.decoder.layers[-1].encoder_attn
        near = torch.cat((torch.full((place // 4,), 1.2), torch.full((place // 4,), 2.0))).repeat(2)
        copy.q_proj.weight[head_word, words] += 1.3 * torch.eye(word)
        copy.k_proj.weight[head_word, before] += 1.3 * torch.eye(word)
        copy.q_proj.weight[head_place, places] += near.diag()
        copy.k_proj.weight[head_place, places] += near.diag()
        copy.v_proj.weight[head_word, words] += torch.eye(word)
        copy.out_proj.weight[words, head_word] += 4.0 * torch.eye(word)


def fit(
    start: Rewriter,
    train: Sequence[Pair],
    dev_pairs: Sequence[Pair],
    out: Path,
    *,
    options: Options,
    report: Callable[[dict[str, Any]], None] = lambda row: None,
    report_step: Callable[[int, int], None] = lambda done, total: None,
    resume: bool = False,
) -> list[dict[str, Any]]:
    """Train a model and write it to a folder.

    Args:
        start: the model to start from; changed in place.
        train: training pairs.
        dev_pairs: evaluation pairs.
        out: folder for model, tokenizer and learning curve, and for ``checkpoint.pt``, written with each row.
        options: options of the trainer.
        report: called with each row of the learning curve: step, loss so far and the fields of :class:`Measure`.
        report_step: called after each batch with the number of finished batches and the total.
        resume: continue from ``checkpoint.pt`` if there is one.

    Returns:
        The rows of the learning curve.

    Raises:
        DataError: there are no pairs, or no pair differs.
        UsageError: the checkpoint has other options.
    """
    if not any(pair.places for pair in train):
        raise DataError("no training data: the policy changes no passage")
    start.network.to(options.device)
    model = Rewriter(start.tokenizer, start.network, start.causal, options.device)
    examples = [_make_example(model, pair, options.tokens) for pair in train]
    per_epoch = math.ceil(len(examples) / options.batch)
    total = options.steps or per_epoch * options.epochs
    optimizer, schedule = make_optimiser(model.network, options.lr, total)
    out.mkdir(parents=True, exist_ok=True)
    saved = out / "checkpoint.pt"
    rows: list[dict[str, Any]] = []
    step, summed, counted = 0, 0.0, 0
    if resume and saved.exists():
        state = torch.load(saved, weights_only=True, map_location=options.device)
        if state["options"] != asdict(options):
            raise UsageError(f"{saved} was written with other options; train without --resume or with the same ones")
        model.network.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        schedule.load_state_dict(state["schedule"])
        step, rows = state["step"], state["rows"]
    stops = {max(1, round(total * i / options.rows)) for i in range(1, options.rows + 1)}
    if not rows:
        rows.append({"step": 0, "steps": total, **asdict(measure_rewriter(model, dev_pairs, options))})
        report(rows[-1])
    for batch in make_batches(examples, options, step, total):
        model.network.train()
        # Dropout depends on the step alone, so that an interrupted run continues as if it had never stopped.
        torch.manual_seed(options.seed * 1_000_003 + step)
        summed, counted = summed + take_training_step(model, batch, optimizer, schedule), counted + 1
        step += 1
        report_step(step, total)
        if step in stops:
            row = {"step": step, "steps": total, "training": summed / counted}
            rows.append({**row, **asdict(measure_rewriter(model, dev_pairs, options))})
            summed, counted = 0.0, 0
            report(rows[-1])
            state = {"model": model.network.state_dict(), "optimizer": optimizer.state_dict()}
            state |= {"schedule": schedule.state_dict(), "step": step, "rows": rows, "options": asdict(options)}
            torch.save(state, saved)
    model.network.save_pretrained(out)
    model.tokenizer.save_pretrained(out)
    write_file(out / "learning.json", (json.dumps(rows, indent=2) + "\n").encode("utf-8"))
    _plot_learning_curve(rows, out / "learning.png")
    saved.unlink(missing_ok=True)
    return rows


def make_optimiser(network: Any, lr: float, total: int) -> tuple[Any, Any]:
    """Return AdamW and its schedule: the rate grows over the first tenth of ``total`` batches, then falls to zero."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=lr)
    return optimizer, make_rate_schedule(optimizer, max(1, total // 10), total)


Example = tuple[list[int], list[int]]
"""Input tokens and target tokens."""


def take_training_step(model: Rewriter, batch: Sequence[Example], optimizer: Any, schedule: Any) -> float:
    """Take one step on a batch, with gradients clipped to a norm of 1, and return the loss before it."""
    loss = compute_loss(model, batch)
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(model.network.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    optimizer.zero_grad()
    return float(loss.detach())


def _make_example(model: Rewriter, pair: Pair, tokens: int) -> Example:
    source_ids = model.encode_passage(pair.source, tokens)
    if not model.causal:
        target = model.tokenizer(text_target=pair.target, truncation=True, max_length=tokens)
        return source_ids, list(target["input_ids"])
    target = model.tokenizer(pair.target, add_special_tokens=False, truncation=True, max_length=tokens - 1)
    return source_ids, [*target["input_ids"], model.tokenizer.eos_token_id]


def make_batches(examples: Sequence[Example], options: Options, first_step: int, total: int) -> Iterator[list[Example]]:
    """Yield the batches from ``first_step`` to ``total``. Each thousand examples are sorted by length."""
    step = epoch = 0
    while step < total:
        rng = random.Random(options.seed * 7919 + epoch)
        order = list(range(len(examples)))
        rng.shuffle(order)
        batches: list[list[int]] = []
        for offset in range(0, len(order), 1000):
            part = sorted(order[offset : offset + 1000], key=lambda i: len(examples[i][0]) + len(examples[i][1]))
            batches += [part[i : i + options.batch] for i in range(0, len(part), options.batch)]
        rng.shuffle(batches)
        for batch in batches[: total - step]:
            if step >= first_step:
                yield [examples[i] for i in batch]
            step += 1
        epoch += 1


def compute_loss(model: Rewriter, batch: Sequence[Example]) -> torch.Tensor:
    """Return the mean cross entropy per target token, or per label if the network classifies."""
    pad = model.tokenizer.pad_token_id
    rows = [a + b if model.causal else a for a, b in batch]
    labels = [[-100] * len(a) + b if model.causal else b for a, b in batch]
    ids = _pad_rows(rows, pad, model.device)
    attention_mask = _pad_rows([[1] * len(row) for row in rows], 0, model.device)
    out = model.network(input_ids=ids, attention_mask=attention_mask, labels=_pad_rows(labels, -100, model.device))
    loss: torch.Tensor = out.loss
    return loss


def _pad_rows(rows: Sequence[Sequence[int]], value: int, device: str) -> torch.Tensor:
    padded = pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=value)
    return padded.to(device)


def measure_rewriter(model: Rewriter, pairs: Sequence[Pair], options: Options) -> Measure:
    """Measure a model on pairs: the loss on all, the rest on the first ``SHOWN`` changed pairs."""
    model.network.eval()
    summed = count = 0.0
    with torch.inference_mode():
        for offset in range(0, len(pairs), options.batch):
            batch = [_make_example(model, pair, options.tokens) for pair in pairs[offset : offset + options.batch]]
            weight = sum(len(b) for _, b in batch)
            summed += float(compute_loss(model, batch)) * weight
            count += weight
    chosen = [pair for pair in pairs if pair.places][:SHOWN]
    outputs = model.rewrite([pair.source for pair in chosen], token_limit=options.tokens) if chosen else []
    leaked = originals = usable = exact = places = unchanged = outside = 0
    for pair, output in zip(chosen, outputs, strict=True):
        aligned, target = (align_output(pair.source, text, pair.places) for text in (output, pair.target))
        output_words = set(find_plain_words(output))
        for (a, b), value, right in zip(pair.places, aligned.values, target.values, strict=True):
            original = pair.source[a:b]
            words = {w for w in find_plain_words(original) if len(w) >= LEAST_WORD}
            # words that also occur outside edits are allowed
            revealing = words.difference(find_plain_words(f"{pair.source[:a]} {pair.source[b:]}"))
            leaked += len(revealing & output_words)
            originals += len(revealing)
            places += 1
            is_other = value is not None and normalize_surface(value) != normalize_surface(original)
            if is_other and words.isdisjoint(find_plain_words(value or "")):
                usable += 1
                exact += value == right
        unchanged += aligned.unchanged[0]
        outside += aligned.unchanged[1]
    parts, totals = (summed, leaked, usable, unchanged, exact), (count, originals, places, outside, places)
    return Measure(*(part / total if total else 0.0 for part, total in zip(parts, totals, strict=True)))


def _plot_learning_curve(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Plot the learning curve if matplotlib is installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    steps = [row["step"] for row in rows]
    figure = Figure(figsize=(7, 4), layout="constrained")
    left = figure.add_subplot()
    left.plot(steps, [row["loss"] for row in rows], color="black", label="loss, held out")
    left.set_xlabel("step")
    left.set_ylabel("loss of a token")
    right = left.twinx()
    right.set_ylim(0, 1)
    right.set_ylabel("share")
    for name, style in (("leaked", "-"), ("usable", "--"), ("kept", ":")):
        right.plot(steps, [row[name] for row in rows], style, label=name)
    right.legend(loc="center right")
    figure.savefig(path, dpi=120)
