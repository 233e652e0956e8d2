"""``allonym evaluate detection``: measure detection against gold annotation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from allonym.cli.evaluate.options import Output, output_options, replace_hard_spaces, section_page, seed_option
from allonym.cli.options import field_option
from allonym.cli.terminal import print_heading, print_note, print_table

if TYPE_CHECKING:
    from allonym.document import Span
    from allonym.evaluate.detection import Detection, Scores
    from allonym.stats import Estimate
    from allonym.train.records import Record

_IN = click.Path(exists=True, path_type=Path)
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(short_help="Measure detection: precision, recall, F1, leaks.")
@click.argument("gold", type=_IN)
@click.argument("predicted", type=_IN, required=False)
@click.option(
    "-p",
    "--policy",
    metavar="NAME|FILE",
    help="Detect with this policy instead of reading PREDICTED. By default: default.",
)
@click.option("--plans", type=_FILE, metavar="FILE", help="Take the spans that these plans replace as findings.")
@click.option(
    "--anonymised",
    type=_IN,
    metavar="PATH",
    help="Anonymised texts, to count leaks. Without other findings, these are derived by alignment.",
)
@click.option("--level", type=click.Choice(["token", "strict", "overlap", "entity"]), default="strict",
              show_default=True, help="Matching of the table shown; the JSON and the report contain all.")  # fmt: skip
@click.option("--labels", "compare", type=click.Choice(["gold", "group", "exact"]), default="gold", show_default=True,
              help="Compare by the gold's labels, the taxonomy's top labels, or labels as written.")  # fmt: skip
@click.option(
    "--label-map", type=_FILE, metavar="FILE", help='TOML file that maps labels: NAME = ["LABEL"]; [] leaves them out.'
)
@click.option("--count-beyond", is_flag=True, help="Count findings of types that the gold does not have as wrong.")
@click.option(
    "--language", default="en", show_default=True, metavar="CODE", help="Language of the word frequencies (weights)."
)
@click.option(
    "--draws", type=click.IntRange(0), default=1000, show_default=True, help="Bootstrap samples; 0: no intervals."
)
@click.option(
    "--format", "gold_format", metavar="NAME", help="Format of GOLD: jsonl, conll, spacy, brat, tab or presidio."
)
@click.option("--predicted-format", metavar="NAME", help="Of PREDICTED.")
@field_option
@seed_option
@output_options
def detection(
    gold: Path,
    predicted: Path | None,
    policy: str | None,
    plans: Path | None,
    anonymised: Path | None,
    level: str,
    compare: Any,
    label_map: Path | None,
    count_beyond: bool,
    language: str,
    draws: int,
    gold_format: str | None,
    predicted_format: str | None,
    field: tuple[str, ...],
    seed: int,
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
    output.check(path for path in (gold, predicted, plans, anonymised, label_map) if path is not None)
    from allonym.evaluate.classes import read_label_map
    from allonym.evaluate.detection import detection as measure
    from allonym.evaluate.finding_files import read_anonymised
    from allonym.train.records import read_records

    names = read_label_map(label_map) if label_map else None
    records = read_records(gold, gold_format)
    after = read_anonymised(anonymised, records, field) if anonymised else None
    spans = (
        None
        if after is not None and not inputs
        else _read_predicted_spans(records, predicted, plans, policy, predicted_format, output)
    )
    with output.progress("measuring") as advance:
        measured = measure(
            [record["text"] for record in records],
            after,
            gold=records,
            predicted=spans,
            compare=compare,
            label_map=names,
            count_beyond=count_beyond,
            language=language,
            draws=draws,
            seed=seed,
            advance=advance,
        )
    values = measured.to_dict()

    def make_page() -> Any:
        from allonym.report.evaluate.detection import detection_section

        section = detection_section(values, texts=output.with_text)
        return section_page("Detection", (section,), f"{measured.texts:,} texts, seed {seed}")

    output.write({"detection": values}, make_page)
    _print_scores(measured, level, quiet=output.quiet)


def _read_predicted_spans(
    records: list[Record], predicted: Path | None, plans: Path | None, policy: str | None, format: str | None,
    output: Output,
) -> list[list[Span]]:  # fmt: skip
    from allonym.evaluate.finding_files import read_findings, read_plans
    from allonym.evaluate.findings import found_by

    texts = [record["text"] for record in records]
    if predicted is not None:
        return read_findings(predicted, records, format)
    if plans is not None:
        return read_plans(plans, texts)
    with output.progress("finding") as advance:
        return found_by(texts, policy or "default", advance)


def _print_scores(result: Detection, level: str, *, quiet: bool) -> None:
    scores_at_level = result.levels[level]
    rows = [_format_scores(name, scores) for name, scores in scores_at_level.labels.items()]
    rows += [_format_scores(name, getattr(scores_at_level, name)) for name in ("micro", "macro", "weighted")]
    rows.append(_format_scores("any type", scores_at_level.any))
    print_heading(f"{level}: {result.texts:,} texts, {result.documents:,} documents")
    print_table(["label", "precision", "recall", "F1", "gold", "found"], rows, right=(1, 2, 3, 4, 5))
    print_heading("leaks")
    leaks = [*result.leaks.types.items(), ("mean", result.leaks.mean), ("all", result.leaks.all)]
    by_text = result.leaks.all.surfaces.n > 0
    cells = [
        [name, *(_format_share(e) for e in (leak.mentions, leak.untouched, *([leak.surfaces] if by_text else [])))]
        for name, leak in leaks
    ]
    head = ["type", "not covered", "untouched", *(["still in the text"] if by_text else [])]
    print_table(head, cells, right=tuple(range(1, len(head))))
    print_heading("masked, as in the Text Anonymization Benchmark")
    tab = result.tab
    print_table(
        ["identifiers", "entities", "mentions", "words"],
        [[k, _format_share(r.entity), _format_share(r.mention), _format_share(r.token)] for k, r in tab.recall.items()],
        right=(1, 2, 3),
    )
    precision = [["precision", _format_share(tab.precision)], [f"by {tab.weights}", _format_share(tab.weighted)]]
    print_table(["masked words", "precision"], precision, right=(1,))
    if result.agreement is not None:
        print_heading(f"agreement of {result.agreement.annotators} annotators, {result.agreement.documents:,} texts")
        names = ("alpha", "mask", "kappa", "strict", "overlap")
        print_table(
            ["measure", "value"], [[n, _format_number(getattr(result.agreement, n))] for n in names], right=(1,)
        )
    if not quiet:
        for kind, counts in (
            ("labels that the gold does not have", result.beyond),
            ("labels of the gold that the taxonomy does not know", result.unmapped),
            ("gold spans left out", result.left_out),
        ):
            if counts:
                print_note(f"{kind}: " + ", ".join(f"{label} ({count:,})" for label, count in counts.items()))


def _format_scores(name: str, scores: Scores) -> list[str]:
    measured = (_format_number(e) for e in (scores.precision, scores.recall, scores.f1))
    return [name, *measured, f"{scores.gold:,}", f"{scores.found:,}"]


def _format_number(estimate: Estimate) -> str:
    from allonym.report.numbers import format_cell

    return replace_hard_spaces(format_cell(estimate, "number", 3).line)


def _format_share(estimate: Estimate) -> str:
    from allonym.report.numbers import format_cell

    return replace_hard_spaces(format_cell(estimate, "share", 1).line)
