"""``allonym from-presidio``: a policy from the configuration of Microsoft Presidio."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from allonym.cli.options import OVERWRITE
from allonym.cli.outputs import check_outputs, write_files
from allonym.cli.signatures import take_options
from allonym.cli.terminal import print_note
from allonym.settings import REQUIRED, declare_setting

if TYPE_CHECKING:
    from allonym.integrations.presidio_policy import ConvertedPolicy, Status

WORDS: Mapping[Status, str] = {"none": "no counterpart", "differs": "differs", "same": "same"}


@click.command("from-presidio", short_help="Convert Presidio's configuration to a policy.")
@take_options
def from_presidio(
    files: tuple[Path, ...] = declare_setting(
        REQUIRED, "recognizers, registry, NLP engine, operators: YAML or JSON", noun="file", option="<FILE>"
    ),
    *,
    output: Path | None = declare_setting(
        None, "where the policy is written; by default standard output", noun="new file", option="-o, --output FILE"
    ),
    threshold: float | None = declare_setting(
        None,
        "score_threshold that your program passes to analyze(); by default the one of FILE, or else 0",
        low=0,
        high=1,
    ),
    all: bool = declare_setting(False, "list also what is the same"),
    overwrite: bool = OVERWRITE,
) -> None:
    """Convert Presidio's configuration to a policy, and say what has no counterpart.

    FILE holds recognizers, a registry, the configuration of the NLP engine or the analyzer, operators of the
    anonymizer, or a request to one of its services. Several files make one policy. The list on standard error names
    the line of each part that works otherwise. Keys and salts of operators are never copied.

    \b
    Examples:
      allonym from-presidio recognizers.yaml operators.json -o policy.toml
      allonym from-presidio recognizers.yaml --threshold 0.4
    """
    from allonym.integrations.presidio_policy import convert_files

    if output is not None:
        check_outputs([output], files, overwrite)
    converted = convert_files(files, threshold=threshold, name=output.stem if output else "from-presidio")
    _print_outcomes(converted, every=all)
    if output is None:
        click.echo(converted.toml, nl=False)
        return
    write_files({output: converted.toml})
    print_note(
        f"{output}; now: allonym policy check {output} && allonym compare presidio YOUR-FILES -p {output}",
        label="wrote",
    )


def _print_outcomes(converted: ConvertedPolicy, *, every: bool) -> None:
    counts = Counter(outcome.status for outcome in converted.outcomes)
    for status, words in WORDS.items():
        for outcome in converted.outcomes if every or status != "same" else ():
            if outcome.status == status:
                colour = "red" if status == "none" else "yellow" if status == "differs" else "green"
                head = f"{outcome.where}: {click.style(words, fg=colour)}: {outcome.part}"
                click.echo(f"{head}: {outcome.remark}", err=True)
    shown = ", ".join(f"{counts[status]} {words}" for status, words in reversed(list(WORDS.items())))
    print_note(shown + ("" if every or not counts["same"] else " (--all lists these, too)"), label="parts:")
