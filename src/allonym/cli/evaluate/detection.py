"""``allonym evaluate detection``: measure detection against gold annotation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from allonym.cli.evaluate.options import FIELD, Output
from allonym.cli.options import SEED, declare_plans, declare_policy
from allonym.cli.signatures import take_options
from allonym.settings import REQUIRED, SettingGroup, declare_setting

if TYPE_CHECKING:
    from allonym.document import Span


class Comparison(SettingGroup):
    """How findings are compared with the gold annotation."""

    compare: str = declare_setting(
        "gold",
        "compare by the gold's labels, the taxonomy's top labels, or labels as written",
        one_of=("gold", "group", "exact"),
    )
    count_beyond: bool = declare_setting(False, "count findings of types that the gold does not have as wrong")
    language: str = declare_setting("en", "language of the word frequencies (weights)", option="CODE")
    draws: int = declare_setting(1000, "bootstrap samples; 0: no intervals", low=0)
    seed: int = SEED


@click.command(short_help="Measure detection: precision, recall, F1, leaks.")
@take_options
def detection(
    gold: Path = declare_setting(REQUIRED, "annotated file", noun="path", option="<GOLD>"),
    predicted: Path | None = declare_setting(None, "findings", noun="path", option="<PREDICTED>"),
    *,
    policy: str | None = declare_policy(None, "detect with this policy instead of reading PREDICTED; else default"),
    plans: Path | None = declare_plans("file"),
    anonymised: Path | None = declare_setting(
        None,
        "anonymised texts, to count leaks. Without other findings, these are derived by alignment",
        noun="path",
        option="PATH",
    ),
    level: str = declare_setting(
        "strict",
        "matching of the table shown; the JSON and the report contain all",
        one_of=("token", "strict", "overlap", "entity"),
    ),
    label_map: Path | None = declare_setting(
        None, 'TOML file that maps labels: NAME = ["LABEL"]; [] leaves them out', noun="file", option="FILE"
    ),
    comparison: Comparison,
    gold_format: str | None = declare_setting(
        None, "format of GOLD: jsonl, conll, spacy, brat, tab or presidio", option="--format NAME"
    ),
    predicted_format: str | None = declare_setting(None, "format of PREDICTED", option="NAME"),
    field: tuple[str, ...] = FIELD,
    output: Output,
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

    settings = {**vars(comparison), "label_map": read_label_map(label_map) if label_map else None}
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
    subtitle = f"{result.texts:,} texts, seed {comparison.seed}"
    output.write_measure("detection", result.to_dict(), subtitle, tab=LEVELS[level][0])
