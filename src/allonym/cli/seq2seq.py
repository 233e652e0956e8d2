"""``allonym train seq2seq``: a model that rewrites text with pseudonyms, from the user's own text."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from allonym.cli import options
from allonym.cli.options import COUNT, POSITIVE, flag, option
from allonym.cli.terminal import print_note, show_stage_bar
from allonym.errors import require_extra

SIZES = ("tiny", "small", "base")
SCRATCH_LR = 1e-3
PRETRAINED_LR = 2e-5


@click.command(short_help="Train a model that rewrites text with pseudonyms.")
@click.argument("texts", nargs=-1, required=True, metavar="TEXTS... OUT")
@option("--policy NAME|FILE", "Policy whose replacements the model learns.", default="pseudonyms")
@options.key_option
@options.group_options("fields", options.TextFields)
@option("--model DIR|NAME", "Model to fine-tune: a folder or a name such as facebook/bart-base.")
@flag("--allow-download", "Download --model from the Hugging Face hub if it is not stored locally.")
@option("--from-scratch", "Train a new small model of this size instead.", type=click.Choice(SIZES))
@flag("--causal", "With --from-scratch: train a causal model instead of an encoder and decoder.")
@option("--epochs", "Number of passes over the passages.", type=POSITIVE, default=3)
@option(
    "--steps", "End training after this number of batches; 0: by --epochs.", type=COUNT, default=0, show_default=False
)
@option("--lr", f"Learning rate; by default {PRETRAINED_LR:g}, or {SCRATCH_LR:g} from scratch.", type=float)
@option("--batch", "Passages per batch.", type=POSITIVE, default=8)
@option("--dev", "Share of the passages for evaluation.", type=click.FloatRange(0.001, 0.9), default=0.1)
@option("--seed", "Seed of all random draws.", type=int, default=1)
@option("--device", "PyTorch device, such as cuda.", default="cpu")
@flag("--resume", "Continue an interrupted run of the same command.")
@flag("--quiet, -q", "Show no progress and no learning curve.")
def seq2seq(
    texts: tuple[str, ...],
    policy: str,
    key_file: Path | None,
    fields: options.TextFields,
    model: str | None,
    allow_download: bool,
    from_scratch: str | None,
    causal: bool,
    dev: float,
    resume: bool,
    quiet: bool,
    **settings: Any,
) -> None:
    """Pseudonymise TEXTS (files or folders) with a policy, and train a model in OUT to do the same.

    The operator 'seq2seq' uses OUT. The model has learnt names from TEXTS: protect it as you protect them.

    \b
    Examples:
      allonym train seq2seq mails/ model --key-file secret.key --model facebook/bart-base --allow-download
      allonym train seq2seq mails.jsonl model --key-file secret.key --from-scratch small --epochs 20
    """
    if len(texts) < 2:
        raise click.UsageError("TEXTS and the folder OUT are required")
    if (model is None) == (from_scratch is None):
        raise click.UsageError("one of --model and --from-scratch is required")
    if causal and model is not None:
        raise click.UsageError("--causal requires --from-scratch")
    with require_extra("training seq2seq", "seq2seq"):
        from allonym.policy import Policy
        from allonym.replace.rewriter import load_rewriter
        from allonym.train import parallel
        from allonym.train import seq2seq as training
    *sources, target = texts
    documents = (document for source in sources for document in fields.read_documents(source))
    began, numbers = time.monotonic(), list[int]()
    key = options.read_key(key_file)
    pairs = list(parallel.make_pairs(documents, Policy.load(policy), key, note_texts=numbers.append))
    if not quiet:
        print_note(f"{len(numbers)} documents pseudonymised in {time.monotonic() - began:.0f} s", label="corpus:")
    train, dev_pairs = parallel.split_pairs(pairs, dev, settings["seed"])
    print_note(f"{len(train)} passages for training, {len(dev_pairs)} for evaluation", label="pairs:")
    if settings["lr"] is None:
        settings["lr"] = PRETRAINED_LR if model else SCRATCH_LR
    if model is not None:
        start = load_rewriter(model, allow_download=allow_download)
    else:
        passages = [text for pair in train for text in (pair.source, pair.target)]
        start = training.create_model(str(from_scratch), passages, causal=causal, seed=settings["seed"])

    def print_step(row: dict[str, Any]) -> None:
        if not quiet:
            shown = "  ".join(f"{k} {v:.4f}" for k, v in row.items() if isinstance(v, float))
            click.echo(f"seq2seq: step {row['step']} of {row['steps']}  {shown}", err=True)

    with show_stage_bar("training", enabled=not quiet) as advance:
        callbacks: dict[str, Any] = {"report": print_step} | ({} if advance is None else {"report_step": advance})
        training_options = training.Options(**settings)
        training.fit(start, train, dev_pairs, Path(target), options=training_options, resume=resume, **callbacks)
    print_note(target, label="written:")
