"""``allonym evaluate statement``: two plain pages on a run, for those who decide."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from allonym.cli.options import OVERWRITE, QUIET, declare_output
from allonym.cli.outputs import check_outputs
from allonym.cli.signatures import take_options
from allonym.cli.terminal import print_note
from allonym.errors import DataError
from allonym.settings import REQUIRED, declare_setting


@click.command(short_help="Write two plain pages on a run, for a board to sign.")
@take_options
def statement(
    run: Path = declare_setting(REQUIRED, "report of a run", noun="file", option="<RUN>"),
    *,
    evaluation: Path | None = declare_setting(
        None, "numbers that allonym evaluate all --json wrote", noun="file", option="FILE"
    ),
    cards: Path | None = declare_setting(
        None, "numbers that allonym evaluate cards --json wrote", noun="file", option="FILE"
    ),
    output: str = declare_output("statement.html", "new file"),
    overwrite: bool = OVERWRITE,
    quiet: bool = QUIET,
) -> None:
    """Write a statement on a run in plain words: what was done, found and left, and who decides.

    RUN is what `allonym anonymize --report RUN.json` wrote. The statement quotes no text, and says what was not
    measured. It has fields to sign, a paragraph on methods for a paper, and the certificate of the run as an appendix:
    policy, versions, model and digests. A release of a project holds its own.

    \b
    Examples:
      allonym evaluate statement run.json -o statement.pdf
      allonym evaluate statement run.json --evaluation evaluation.json --cards cards.json
    """
    from allonym import report

    check_outputs([Path(output)], [run, evaluation, cards], overwrite)
    numbers = _read_numbers(run)
    if not {"documents", "labels", "settings"} <= numbers.keys():
        raise DataError(f"{run} is no report of a run; allonym anonymize --report {run} writes one")
    beside = {"evaluation": evaluation, "cards": cards}
    measured = {name: _read_numbers(path) for name, path in beside.items() if path is not None}
    for name, (key, command) in {"evaluation": ("headlines", "all"), "cards": ("cards", "cards")}.items():
        if key not in measured.get(name, (key,)):
            raise DataError(f"{beside[name]} is none of the files that allonym evaluate {command} --json writes")
    page = report.statement_page(numbers, evaluation=measured.get("evaluation"), cards=measured.get("cards"))
    report.write(page, output)
    if not quiet:
        print_note(output, label="written:")


def _read_numbers(path: Path) -> Mapping[str, Any]:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        values = None
    if not isinstance(values, dict):
        raise DataError(f"{path} holds no numbers that allonym wrote as JSON")
    return values
