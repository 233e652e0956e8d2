"""``allonym train seq2seq``: a model that rewrites text with pseudonyms, from the user's own text."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from allonym.cli.options import KEY_FILE, QUIET, RESUME, SEED, TextFields, declare_policy, read_key
from allonym.cli.signatures import take_options
from allonym.cli.terminal import print_note, show_stage_bar
from allonym.errors import require_extra
from allonym.settings import REQUIRED, SettingGroup, declare_setting

SIZES = ("tiny", "small", "base")
SCRATCH_LR = 1e-3
PRETRAINED_LR = 2e-5


class Fit(SettingGroup):
    """How the model is fitted: options of ``allonym.train.seq2seq.Options``."""

    epochs: int = declare_setting(3, "number of passes over the passages", low=1, option="N")
    steps: int = declare_setting(0, "end training after this number of batches; 0: by --epochs", low=0, option="N")
    lr: float | None = declare_setting(
        None, f"learning rate; by default {PRETRAINED_LR:g}, or {SCRATCH_LR:g} from scratch", option="RATE"
    )
    batch: int = declare_setting(8, "passages per batch", low=1, option="N")
    seed: int = SEED
    device: str = declare_setting("cpu", "PyTorch device, such as cuda", option="NAME")


@click.command(short_help="Train a model that rewrites text with pseudonyms.")
@take_options
def seq2seq(
    texts: tuple[str, ...] = declare_setting(REQUIRED, "files or folders", option="<TEXTS>"),
    out: Path = declare_setting(REQUIRED, "folder of the model", noun="new folder", option="<OUT>"),
    *,
    policy: str = declare_policy("pseudonyms"),
    key_file: Path | None = KEY_FILE,
    fields: TextFields,
    model: str | None = declare_setting(
        None, "model to fine-tune: a folder or a name such as facebook/bart-base", option="DIR|NAME"
    ),
    allow_download: bool = declare_setting(
        False, "download --model from the Hugging Face hub if it is not stored locally"
    ),
    from_scratch: str | None = declare_setting(None, "train a new small model of this size instead", one_of=SIZES),
    causal: bool = declare_setting(
        False, "with --from-scratch: train a causal model instead of an encoder and decoder"
    ),
    fit: Fit,
    dev: float = declare_setting(0.1, "share of the passages for evaluation", low=0.001, high=0.9, option="SHARE"),
    resume: bool = RESUME,
    quiet: bool = QUIET,
) -> None:
    """Pseudonymise TEXTS (files or folders) with a policy, and train a model in OUT to do the same.

    The operator 'seq2seq' uses OUT. The model has learnt names from TEXTS: protect it as you protect them.

    \b
    Examples:
      allonym train seq2seq mails/ model --key-file secret.key --model facebook/bart-base --allow-download
      allonym train seq2seq mails.jsonl model --key-file secret.key --from-scratch small --epochs 20
    """
    if (model is None) == (from_scratch is None):
        raise click.UsageError("one of --model and --from-scratch is required")
    if causal and model is not None:
        raise click.UsageError("--causal requires --from-scratch")
    with require_extra("training seq2seq", "seq2seq"):
        from allonym.policy import Policy
        from allonym.replace.rewriter import load_rewriter
        from allonym.train import parallel
        from allonym.train import seq2seq as training
    documents = (document for source in texts for document in fields.read_documents(source))
    began, numbers = time.monotonic(), list[int]()
    key = read_key(key_file)
    pairs = list(parallel.make_pairs(documents, Policy.load(policy), key, note_texts=numbers.append))
    if not quiet:
        print_note(f"{len(numbers)} documents pseudonymised in {time.monotonic() - began:.0f} s", label="corpus:")
    train, dev_pairs = parallel.split_pairs(pairs, dev, fit.seed)
    print_note(f"{len(train)} passages for training, {len(dev_pairs)} for evaluation", label="pairs:")
    lr = fit.lr or (PRETRAINED_LR if model else SCRATCH_LR)
    if model is not None:
        start = load_rewriter(model, allow_download=allow_download)
    else:
        passages = [text for pair in train for text in (pair.source, pair.target)]
        start = training.create_model(str(from_scratch), passages, causal=causal, seed=fit.seed)

    def print_step(row: dict[str, Any]) -> None:
        if not quiet:
            shown = "  ".join(f"{k} {v:.4f}" for k, v in row.items() if isinstance(v, float))
            click.echo(f"seq2seq: step {row['step']} of {row['steps']}  {shown}", err=True)

    with show_stage_bar("training", enabled=not quiet) as advance:
        callbacks: dict[str, Any] = {"report": print_step} | ({} if advance is None else {"report_step": advance})
        training_options = training.Options(**{**vars(fit), "lr": lr})
        training.fit(start, train, dev_pairs, out, options=training_options, resume=resume, **callbacks)
    print_note(str(out), label="written:")
