"""``allonym evaluate promise``: what documents that people have marked prove about the others."""

from __future__ import annotations

import json as json_lines
from pathlib import Path
from typing import TYPE_CHECKING

import click

from allonym.cli.evaluate.missed import Conversations
from allonym.cli.options import JSON, OVERWRITE, QUIET, SEED, declare_output, declare_policy
from allonym.cli.outputs import check_outputs, write_files
from allonym.cli.signatures import take_options
from allonym.cli.terminal import format_json_line, print_note, print_table, show_stage_bar
from allonym.errors import UsageError
from allonym.settings import REQUIRED, SettingGroup, declare_setting

if TYPE_CHECKING:
    from allonym.evaluate.promises import LimitOffer, Promise


class Limit(SettingGroup):
    """What is promised."""

    limit: float = declare_setting(
        0.01, "share of a document's entities missed, on average over documents, to promise at most", low=0, high=1
    )
    confidence: float = declare_setting(0.95, "how sure the promise is, over 0 and below 1", low=0, high=1)
    unit: str = declare_setting(
        "entities",
        "what is promised: entities missed, or documents in which anything is missed",
        one_of=("entities", "documents"),
    )


@click.group(short_help="Prove a limit of what is missed, from documents that you marked.")
def promise() -> None:
    """Draw documents at random, mark them, and learn what may be promised about all the others.

    \b
    Examples:
      allonym evaluate promise sample interviews.jsonl -o sample.jsonl -n 60
      allonym evaluate promise summary sample.jsonl --limit 0.05 --save-policy safe.toml
    """


@promise.command(short_help="Draw documents at random, to be marked.")
@take_options
def sample(
    source: Path = declare_setting(REQUIRED, "all texts", noun="path", option="<SOURCE>"),
    *,
    output: Path = declare_output(REQUIRED, "new file"),
    size: int = declare_setting(60, "number of documents", low=1, option="-n, --size"),
    conversations: Conversations,
    seed: int = SEED,
    overwrite: bool = OVERWRITE,
) -> None:
    """Draw documents of SOURCE at random and write them, in random order, as JSON lines to be marked.

    Add to each line "spans", a list of objects with start, end (code points) and label, of all that identifies in the
    whole text; [] where nothing does. If time runs out, leave out only the last lines.

    \b
    Example:
      allonym evaluate promise sample interviews.jsonl -o sample.jsonl -n 60
    """
    from allonym.evaluate.promises import draw_sample

    check_outputs([output], [source, conversations.metadata], overwrite)
    texts = [(item.id, item.text) for item in conversations.read_marked(source)]
    rows = draw_sample(texts, size, seed)
    write_files({output: "".join(json_lines.dumps(row) + "\n" for row in rows)}, private=True)
    print_note(f"{output}: {len(rows):,} of {len(texts):,} documents, drawn at random", label="written:")


@promise.command(short_help="Tell what may be promised.")
@take_options
def summary(
    marked: Path = declare_setting(REQUIRED, "the marked documents", noun="file", option="<MARKED>"),
    *,
    policy: str = declare_policy(),
    limit: Limit,
    random: bool = declare_setting(
        False, "MARKED was not drawn by `sample`, but all the same at random from documents like those to be released"
    ),
    save_policy: Path | None = declare_setting(
        None, "write a policy file with the promised threshold", noun="new file", option="FILE"
    ),
    json: bool = JSON,
    overwrite: bool = OVERWRITE,
    quiet: bool = QUIET,
) -> None:
    """Tell which threshold of --policy keeps the limit in documents that nobody has read, and what it costs.

    The exit code is 1 if --save-policy is given and no threshold keeps the limit.

    \b
    Examples:
      allonym evaluate promise summary sample.jsonl
      allonym evaluate promise summary sample.jsonl --limit 0.05 --save-policy safe.toml
      allonym evaluate promise summary reviews.jsonl --random --unit documents --limit 0.2
    """
    from allonym.evaluate.promises import make_promise, measure_losses, read_marked_sample
    from allonym.policy import Policy

    if save_policy is not None:
        check_outputs([save_policy], [marked], overwrite)
    chosen = Policy.load(policy)
    documents, population = read_marked_sample(marked, is_random=random)
    with show_stage_bar("detecting", enabled=not quiet) as advance:
        losses = measure_losses(documents, chosen, advance=advance)
    result = make_promise(losses, limit.limit, confidence=limit.confidence, population=population, unit=limit.unit)
    print_promise(result, json=json)
    if save_policy is None:
        return
    if result.offer.threshold is None:
        raise UsageError("no policy is written: no threshold keeps the limit")
    write_files({save_policy: _format_policy(policy, save_policy, result)})
    print_note(str(save_policy), label="written:")


def print_promise(result: Promise, *, json: bool) -> None:
    """Print a promise with its tables and assumptions, or as a line of JSON."""
    from allonym.evaluate.promises import ASSUMPTIONS

    if json:
        click.echo(format_json_line(result.to_dict()))
        return
    click.echo(f"{result.sentence}\n")
    sure = f"at most ({result.confidence * 100:.10g}% sure)"
    rows = [
        (
            "as it is" if risk.threshold is None else f"{risk.threshold:g}",
            f"{risk.missed:.2%}",
            f"{risk.bound:.2%}",
            f"{risk.needless:.1%}",
        )
        for risk in (result.as_is, *result.thresholds)
    ]
    print_table(["threshold", "missed when read", sure, "needless cover"], rows, right=(0, 1, 2, 3))
    click.echo()
    offers = [
        (
            f"{offer.limit:g}",
            "-" if offer.threshold is None else f"{offer.threshold:g}",
            "-" if offer.needless is None else f"{offer.needless:.1%}",
            _describe_need(offer, result),
            "-" if offer.expected_threshold is None else f"{offer.expected_threshold:g}",
        )
        for offer in result.limits
    ]
    head = ["limit", "threshold", "needless cover", "documents to read", "threshold on average"]
    print_table(head, offers, right=(0, 1, 2, 3, 4))
    click.echo(
        "\nThe bounds hold each for itself. The last column keeps the limit on average over samples only "
        "(conformal risk control), so a single sample may be off."
    )
    for assumption in ASSUMPTIONS:
        print_note(assumption, label="assumed:")


def _describe_need(offer: LimitOffer, result: Promise) -> str:
    if offer.threshold is not None:
        return "enough"
    if offer.documents is None:
        return "never enough"
    more = max(1, offer.documents - result.reviewed)
    return f"{more:,} more"


def _format_policy(policy: str, target: Path, result: Promise) -> str:
    """Return a policy file that extends a policy by the promised threshold."""
    import os

    parent = os.path.relpath(policy, target.parent) if Path(policy).suffix == ".toml" else policy
    threshold = result.offer.threshold
    lines = [
        f"# {result.sentence}",
        f"extends = {json_lines.dumps(parent)}",
        f"threshold = {threshold}",
        "[detect]",
        f"operating_point = {threshold}",
    ]
    return "\n".join(lines) + "\n"
