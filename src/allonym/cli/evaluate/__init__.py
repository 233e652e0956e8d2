"""``allonym evaluate``: measure the risk and the utility of anonymised texts."""

from __future__ import annotations

from collections.abc import Mapping

import click

from allonym.cli import LazyGroup

COMMANDS: Mapping[str, str] = {
    "all": "allonym.cli.evaluate.study:evaluate_all",
    "compare": "allonym.cli.evaluate.study:compare",
    "detection": "allonym.cli.evaluate.detection:detection",
    "residual": "allonym.cli.evaluate.missed:residual",
    "second-reading": "allonym.cli.evaluate.missed:second_reading",
    "promise": "allonym.cli.evaluate.promises:promise",
    "red-team": "allonym.cli.evaluate.missed:red_team",
    "intruder": "allonym.cli.evaluate.linkage:intruder",
    "guess": "allonym.cli.evaluate.guesses:guess",
    "intruder-study": "allonym.cli.evaluate.guesses:intruder_study",
    "risk": "allonym.cli.evaluate.linkage:risk",
    "cards": "allonym.cli.evaluate.cards:cards",
    "statement": "allonym.cli.evaluate.statement:statement",
    "information": "allonym.cli.evaluate.information:information",
    "downstream": "allonym.cli.evaluate.models:downstream",
    "generations": "allonym.cli.evaluate.models:generations",
    "syntheticity": "allonym.cli.evaluate.information:syntheticity",
}


@click.group(cls=LazyGroup, lazy=COMMANDS, short_help="Measure risk, leaks and utility.")
def evaluate() -> None:
    """Measure the remaining risk and the utility of anonymised texts. Works offline.

    \b
    Examples:
      allonym evaluate all raw/ safe/ --report report.html
      allonym evaluate compare raw/ tags/ pseudonyms/ --report versions.html
      allonym evaluate detection gold.jsonl --policy default
    """
