"""``allonym evaluate intruder`` and ``risk``: record linkage, and the risk of each document that follows from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from allonym.cli.evaluate.options import BACKGROUND, DOCUMENT, GROUP, SUBJECT, Output, Source
from allonym.cli.options import SEED
from allonym.cli.signatures import take_options
from allonym.settings import declare_setting

FEATURES = declare_setting(
    "both",
    "features of the intruder; encoder and all take seconds per hundred texts",
    one_of=("words", "characters", "both", "encoder", "all"),
)


@click.command(short_help="Measure how often a panel of intruders identifies subjects.")
@take_options
def intruder(
    *,
    source: Source,
    subject: str = SUBJECT,
    group: str | None = GROUP,
    document: str | None = DOCUMENT,
    background: Path | None = BACKGROUND,
    features: str = FEATURES,
    knows: str = declare_setting(
        "original",
        "version of other people's texts from which the intruder shown in detail has learnt",
        one_of=("original", "anonymised", "both"),
    ),
    folds: int = declare_setting(5, "folds of the corpus; 0: leave one text out", low=0),
    seed: int = SEED,
    output: Output,
) -> None:
    """Let a panel of intruders identify the subject of each text, before and after anonymisation.

    The first figure is the worst of the panel, and the table beside it tells what each intruder knows. That may be
    other texts of the subjects, what the tool made of them, which terms it altered, or --background. None learns from
    a text that it judges, nor from a copy of it. What one intruder, chosen by --knows, does in detail follows.

    \b
    Examples:
      allonym evaluate intruder original.jsonl safe.jsonl --subject person --group fame
      allonym evaluate intruder original.jsonl safe.jsonl --subject person --knows anonymised --report linkage.html
      allonym evaluate intruder original.jsonl safe.jsonl --subject person --background biographies/
    """
    from allonym.evaluate.intruder import reidentification
    from allonym.intruder import measure_panel

    output.check_writable(*source.paths, background)
    pairs = source.read_pairs()
    settings: dict[str, Any] = {
        "groups": pairs.labels(group) if group else None,
        "background": source.read_background(background, subject) or None,
        "features": features,
        "seed": seed,
    }
    texts = (pairs.original, pairs.anonymised, pairs.labels(subject))
    with output.show_progress("linkage") as advance:
        version: Any = knows
        result = reidentification(*texts, ids=pairs.ids, knows=version, folds=folds, advance=advance, **settings)
    documents = pairs.labels(document) if document else None
    with output.show_progress("panel") as advance:
        settings["background"] = settings["background"] or ()
        panel = measure_panel(*texts, documents=documents, folds=folds or 5, advance=advance, **settings)
    output.write_measure("linkage", {"panel": panel.to_dict(), **result.to_dict(output.with_text)})


@click.command(short_help="Estimate the risk of each document before release.")
@take_options
def risk(
    *,
    source: Source,
    subject: str | None = declare_setting(
        None, "metadata field with the subject of each text; without it, texts are only ranked", option="KEY"
    ),
    group: str | None = GROUP,
    background: Path | None = BACKGROUND,
    features: str = FEATURES,
    review_above: float | None = declare_setting(
        None, "documents with a greater risk go to review", low=0, high=1, option="P"
    ),
    queue: Path | None = declare_setting(
        None, "write the documents for review, riskiest first: .jsonl or .csv", noun="new file", option="FILE"
    ),
    seed: int = SEED,
    output: Output,
) -> None:
    """Estimate for each document the probability that an intruder identifies its subject.

    Probabilities are fitted to the results of the adaptive intruder, who has learnt from other anonymised texts, or
    from --background, by models that have not seen the document. Without --subject, documents are only ranked.

    \b
    Examples:
      allonym evaluate risk original.jsonl safe.jsonl --subject person --review-above 0.5 --queue review.csv
      allonym evaluate risk original.jsonl safe.jsonl --review-above 0.9
    """
    from allonym.evaluate.document_risks import document_risk
    from allonym.evaluate.pairs import write_rows

    if queue is not None and review_above is None:
        raise click.UsageError("--queue requires --review-above")
    if group and subject is None:
        raise click.UsageError("--group requires --subject")
    output.check_writable(*source.paths, background, queue=queue)
    pairs = source.read_pairs()
    settings: dict[str, Any] = {
        "groups": pairs.labels(group) if group else None,
        "background": source.read_background(background, subject) or None,
        "features": features,
        "seed": seed,
    }
    subjects = pairs.labels(subject) if subject else None
    with output.show_progress("documents") as advance:
        settings |= {"review_above": review_above, "advance": advance}
        result = document_risk(pairs.original, pairs.anonymised, subjects, **settings)
    review, beside = result.review, {}
    if queue is not None and review is not None:
        places = [{"id": pairs.ids[i], "risk": round(result.risks[i], 6)} for i in review.places]
        beside[queue] = write_rows(places, ("id", "risk"), queue.suffix.lower()[1:])
    output.write_measure("document_risk", result.to_dict(), beside=beside)
