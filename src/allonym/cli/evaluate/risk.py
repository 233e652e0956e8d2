"""``allonym evaluate risk``: the risk of each document, and a queue for review."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import click

from allonym.cli.evaluate.intruder import (
    background_option,
    features_option,
    group_option,
    read_background,
)
from allonym.cli.evaluate.options import (
    Output,
    Source,
    output_options,
    section_page,
    seed_option,
    show_estimates,
    source_options,
)
from allonym.cli.evaluate.residual import check_queue
from allonym.cli.terminal import print_note

_OUT = click.Path(dir_okay=False, path_type=Path)


@click.command(short_help="Estimate the risk of each document before release.")
@source_options
@click.option(
    "--subject", metavar="KEY", help="Metadata field with the subject of each text; without it, texts are only ranked."
)
@group_option
@background_option
@features_option
@click.option(
    "--review-above", type=click.FloatRange(0, 1), metavar="P", help="Documents with a greater risk go to review."
)
@click.option(
    "--queue", type=_OUT, metavar="FILE", help="Write the documents for review, riskiest first: .jsonl or .csv."
)
@click.option("--confidence", is_flag=True, help="Include the intruder's confidence as a predictor.")
@click.option(
    "--population",
    type=click.FloatRange(1),
    metavar="N",
    help="Size of the population; by default 100 times the corpus.",
)
@click.option("--calibration", type=click.Choice(["platt", "isotonic"]), default="platt", show_default=True,
              help="Calibration of the probabilities; isotonic needs about a thousand documents.")  # fmt: skip
@seed_option
@output_options
def risk(
    source: Source,
    subject: str | None,
    group: str | None,
    background: Path | None,
    features: str,
    review_above: float | None,
    queue: Path | None,
    confidence: bool,
    population: float | None,
    calibration: str,
    seed: int,
    output: Output,
) -> None:
    """Estimate for each document the probability that the offline intruder identifies its subject.

    Probabilities are fitted to the results of `allonym evaluate intruder`, by models that have not seen the document.
    Without --subject, documents are only ranked.

    \b
    Examples:
      allonym evaluate risk original.jsonl safe.jsonl --subject person --review-above 0.5 --queue review.csv
      allonym evaluate risk original.jsonl safe.jsonl --review-above 0.9
    """
    from allonym.evaluate.document_risk import document_risk
    from allonym.report.evaluate.document_risk import document_risk_section

    if queue is not None and review_above is None:
        raise click.UsageError("--queue requires --review-above")
    for name, value in (("--group", group), ("--background", background), ("--confidence", confidence)):
        if value and subject is None:
            raise click.UsageError(f"{name} requires --subject")
    read = [*source.paths, *([background] if background else [])]
    output.check(read)
    if queue is not None:
        check_queue(queue, read, output)
    pairs = source.read()
    with output.progress("documents") as advance:
        result = document_risk(
            pairs.original,
            pairs.anonymised,
            pairs.labels(subject) if subject else None,
            groups=pairs.labels(group) if group else None,
            background=read_background(background, subject, source) if background and subject else None,
            features=features,
            population=population,
            confidence=confidence,
            calibration=calibration,  # type: ignore[arg-type]
            review_above=review_above,
            seed=seed,
            advance=advance,
        )
    data = result.to_dict()
    beside = {}
    if queue is not None and result.review is not None:
        places = result.review.places
        beside[queue] = _format_queue([{"id": pairs.ids[i], "risk": round(result.risks[i], 6)} for i in places], queue)
    output.write({"document_risk": data}, lambda: section_page("Document risk", [document_risk_section(data)]), beside)
    rows = [("Brier score", result.brier), ("one rate for all", result.reference), ("AUC", result.auc)]
    if result.review is not None:
        review = result.review
        shares = [
            (f"review (above {review.above:g})", review.share, "share"),
            ("identified, in review", review.caught, "share"),
            ("identified, not in review", review.left, "share"),
        ]
    else:
        shares = []
    show_estimates(
        [
            ("identified by the intruder", result.rate, "share"),
            ("calibration error", result.error, "share"),
            *rows,
            *shares,  # type: ignore[list-item]
        ]
    )
    if not result.calibrated:
        print_note(f"no probabilities: {result.reason}", label="warning:")


def _format_queue(rows: list[dict[str, object]], path: Path) -> str:
    """Return the queue in the format of the file's suffix, without any text."""
    out = io.StringIO(newline="")
    if path.suffix.lower() == ".csv":
        writer = csv.DictWriter(out, ("id", "risk"), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    else:
        out.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return out.getvalue()
