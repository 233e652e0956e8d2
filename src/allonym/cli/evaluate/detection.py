"""``allonym evaluate detection``: measure detection against gold annotation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from allonym.cli.evaluate import options
from allonym.cli.evaluate.options import Output
from allonym.cli.options import COUNT, FILE, PATH, field_option, flag, option

if TYPE_CHECKING:
    from allonym.document import Span


@click.command(short_help="Measure detection: precision, recall, F1, leaks.")
@click.argument("gold", type=PATH)
@click.argument("predicted", type=PATH, required=False)
@option("-p, --policy NAME|FILE", "Detect with this policy instead of reading PREDICTED. By default: default.")
@option("--plans FILE", "Take the spans that these plans replace as findings.", type=FILE)
@option(
    "--anonymised PATH",
    "Anonymised texts, to count leaks. Without other findings, these are derived by alignment.",
    type=PATH,
)
@option(
    "--level",
    "Matching of the table shown; the JSON and the report contain all.",
    type=click.Choice(["token", "strict", "overlap", "entity"]),
    default="strict",
)
@option(
    "--compare",
    "Compare by the gold's labels, the taxonomy's top labels, or labels as written.",
    type=click.Choice(["gold", "group", "exact"]),
    default="gold",
)
@option("--label-map FILE", 'TOML file that maps labels: NAME = ["LABEL"]; [] leaves them out.', type=FILE)
@flag("--count-beyond", "Count findings of types that the gold does not have as wrong.")
@option("--language CODE", "Language of the word frequencies (weights).", default="en")
@option("--draws", "Bootstrap samples; 0: no intervals.", type=COUNT, default=1000)
@option("--format NAME", "Format of GOLD: jsonl, conll, spacy, brat, tab or presidio.", name="gold_format")
@option("--predicted-format NAME", "Format of PREDICTED.")
@field_option
@options.seed_option
@options.output_options
def detection(
    gold: Path,
    predicted: Path | None,
    policy: str | None,
    plans: Path | None,
    anonymised: Path | None,
    level: str,
    label_map: Path | None,
    gold_format: str | None,
    predicted_format: str | None,
    field: tuple[str, ...],
    output: Output,
    **settings: Any,
) -> None:
    """Measure findings against GOLD, an annotated file: JSON lines, CoNLL or IOB, brat, TAB, spaCy or
    presidio-research.

    The findings are the spans of PREDICTED (in the same formats, or the masked offsets of TAB's evaluation), the
    edits of --plans, the spans that --policy detects, or the text missing from --anonymised.

    Labels of both sides are compared through the taxonomy. Findings of types that the gold does not mark are listed,
    but count as wrong only with --count-beyond. No text is shown.

    \b
    Examples:
      allonym evaluate detection gold.jsonl
      allonym evaluate detection gold.jsonl found.jsonl --level overlap --report detection.html
      allonym evaluate detection echr_test.json --policy high-recall --json detection.json
      allonym evaluate detection test.conll --anonymised test_pseudonymised.jsonl
    """
    inputs = [name for name, value in (("PREDICTED", predicted), ("--plans", plans), ("--policy", policy)) if value]
    if len(inputs) > 1:
        raise click.UsageError(f"{' and '.join(inputs)} both define the findings; only one is allowed")
    output.check_writable(gold, predicted, plans, anonymised, label_map)
    from allonym.evaluate.classes import read_label_map
    from allonym.evaluate.detection_scores import detection as measure
    from allonym.evaluate.findings import found_by, read_anonymised_texts, read_findings, read_plan_findings
    from allonym.report.evaluate.detection import LEVELS
    from allonym.train.records import read_records

    settings["label_map"] = read_label_map(label_map) if label_map else None
    records = read_records(gold, gold_format)
    texts = [record["text"] for record in records]
    after = read_anonymised_texts(anonymised, records, field) if anonymised else None
    spans: list[list[Span]] | None = None
    if predicted is not None:
        spans = read_findings(predicted, records, predicted_format)
    elif plans is not None:
        spans = read_plan_findings(plans, texts)
    elif policy or after is None:
        with output.show_progress("finding") as advance:
            spans = found_by(texts, policy or "default", advance)
    with output.show_progress("measuring") as advance:
        result = measure(texts, after, gold=records, predicted=spans, advance=advance, **settings)
    subtitle = f"{result.texts:,} texts, seed {settings['seed']}"
    output.write_measure("detection", result.to_dict(), subtitle, tab=LEVELS[level][0])
