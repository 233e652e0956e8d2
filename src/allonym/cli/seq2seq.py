"""``allonym train seq2seq``: a model that rewrites text with pseudonyms, from the user's own text."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from allonym.cli.options import field_option, format_option, key_option, read_key
from allonym.cli.reading import read_documents
from allonym.cli.terminal import make_console, on_terminal, print_note
from allonym.errors import MissingExtra

if TYPE_CHECKING:
    from allonym.replace.rewriter import Rewriter
    from allonym.train.parallel import Pair

SIZES = ("tiny", "small", "base")
SCRATCH_LR = 1e-3
PRETRAINED_LR = 2e-5


@click.command(short_help="Train a model that rewrites text with pseudonyms.")
@click.argument("texts", nargs=-1, required=True, metavar="TEXTS... OUT")
@click.option(
    "--policy",
    default="pseudonyms",
    show_default=True,
    metavar="NAME|FILE",
    help="Policy whose replacements the model learns.",
)
@key_option
@field_option
@format_option
@click.option("--model", metavar="DIR|NAME", help="Model to fine-tune: a folder or a name such as facebook/bart-base.")
@click.option(
    "--allow-download", is_flag=True, help="Download --model from the Hugging Face hub if it is not stored locally."
)
@click.option("--from-scratch", type=click.Choice(SIZES), help="Train a new small model of this size instead.")
@click.option(
    "--causal", is_flag=True, help="With --from-scratch: train a causal model instead of an encoder and decoder."
)
@click.option(
    "--epochs", type=click.IntRange(1), default=3, show_default=True, help="Number of passes over the passages."
)
@click.option(
    "--steps", type=click.IntRange(0), default=0, help="End training after this number of batches; 0: by --epochs."
)
@click.option("--lr", type=float, help=f"Learning rate; by default {PRETRAINED_LR:g}, or {SCRATCH_LR:g} from scratch.")
@click.option("--batch", type=click.IntRange(1), default=8, show_default=True, help="Passages per batch.")
@click.option(
    "--dev",
    type=click.FloatRange(0.001, 0.9),
    default=0.1,
    show_default=True,
    help="Share of the passages for evaluation.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of all random draws.")
@click.option("--device", default="cpu", show_default=True, help="PyTorch device, such as cuda.")
@click.option("--resume", is_flag=True, help="Continue an interrupted run of the same command.")
@click.option("--quiet", "-q", is_flag=True, help="Show no progress and no learning curve.")
def seq2seq(
    texts: tuple[str, ...],
    policy: str,
    key_file: Path | None,
    field: tuple[str, ...],
    format: str | None,
    model: str | None,
    allow_download: bool,
    from_scratch: str | None,
    causal: bool,
    epochs: int,
    steps: int,
    lr: float | None,
    batch: int,
    dev: float,
    seed: int,
    device: str,
    resume: bool,
    quiet: bool,
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
    try:
        from allonym.train import seq2seq as training
    except MissingExtra:
        raise
    except ImportError:
        raise MissingExtra("training seq2seq", "seq2seq") from None
    *sources, target = texts
    out = Path(target)
    pairs_read = _read_pairs(sources, policy, read_key(key_file), field, format, quiet=quiet)
    from allonym.train.parallel import split_pairs

    train, dev_pairs = split_pairs(pairs_read, dev, seed)
    print_note(f"{len(train)} passages for training, {len(dev_pairs)} for evaluation", label="pairs:")
    chosen = lr if lr is not None else PRETRAINED_LR if model else SCRATCH_LR
    options = training.Options(epochs=epochs, steps=steps, lr=chosen, batch=batch, seed=seed, device=device)
    start = _load_rewriter(model, from_scratch, train, causal=causal, seed=seed, allow_download=allow_download)
    with _steps(enabled=not quiet) as show_step:

        def print_step(row: dict[str, Any]) -> None:
            if not quiet:
                shown = "  ".join(f"{k} {v:.4f}" for k, v in row.items() if isinstance(v, float))
                click.echo(f"seq2seq: step {row['step']} of {row['steps']}  {shown}", err=True)

        training.fit(
            start, train, dev_pairs, out, options=options, report=print_step, step_done=show_step, resume=resume
        )
    print_note(str(out), label="written:")


def _read_pairs(
    sources: list[str],
    policy: str,
    key: bytes | str | None,
    fields: tuple[str, ...],
    format: str | None,
    *,
    quiet: bool,
) -> list[Pair]:
    from allonym.policy import Policy
    from allonym.train.parallel import pairs

    read = (document for source in sources for document in read_documents(source, fields=fields, format=format))
    began = time.monotonic()
    counted = 0

    def count_texts(n: int) -> None:
        nonlocal counted
        counted = n

    pairs_read = list(pairs(read, Policy.load(policy), key, note_texts=count_texts))
    if not quiet:
        print_note(f"{counted} documents pseudonymised in {time.monotonic() - began:.0f} s", label="corpus:")
    return pairs_read


def _load_rewriter(
    model: str | None, size: str | None, train: list[Pair], *, causal: bool, seed: int, allow_download: bool
) -> Rewriter:
    from allonym.replace.rewriter import load_rewriter
    from allonym.train.seq2seq import begin_model

    if model is not None:
        return load_rewriter(model, allow_download=allow_download)
    return begin_model(str(size), [t for pair in train for t in (pair.source, pair.target)], causal=causal, seed=seed)


class _steps:
    """A progress bar of steps on standard error, where that is a terminal."""

    def __init__(self, *, enabled: bool) -> None:
        self._bar: Any = None
        self._wanted = enabled and on_terminal(stderr=True)

    def __enter__(self) -> _steps:
        if self._wanted:
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

            columns = (BarColumn(bar_width=30), MofNCompleteColumn(), TimeRemainingColumn(compact=True))
            self._bar = Progress(*columns, console=make_console(stderr=True), transient=True)
            self._bar.start()
        return self

    def __call__(self, step: int, total: int) -> None:
        if self._bar is not None:
            if not self._bar.task_ids:
                self._bar.add_task("", total=total)
            self._bar.update(self._bar.task_ids[0], completed=step)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
