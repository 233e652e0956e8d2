"""``allonym evaluate intruder`` and ``risk``: record linkage, and the risk of each document that follows from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from allonym.cli.evaluate import options
from allonym.cli.evaluate.options import Output, Source
from allonym.cli.options import COUNT, NEW_FILE, PATH, SHARE, option

_group = option(
    "--group KEY", "Metadata field, such as the fame class, with groups; the intruder guesses within the text's group."
)
_background = option(
    "--background FILE", "Texts with KEY for the intruder to learn from, instead of other texts of ORIGINAL.", type=PATH
)
_features = option(
    "--features",
    "Features of the intruder; encoder and all take seconds per hundred texts.",
    type=click.Choice(["words", "characters", "both", "encoder", "all"]),
    default="both",
)


@click.command(short_help="Measure how often an offline intruder identifies subjects.")
@options.source_options
@option("--subject KEY", "Metadata field with the subject of each text.", required=True)
@_group
@_background
@_features
@option(
    "--knows",
    "Version of other people's texts that the intruder has learnt from.",
    type=click.Choice(["original", "anonymised", "both"]),
    default="original",
)
@option("--folds", "Folds of the corpus; 0: leave one text out.", type=COUNT, default=5)
@options.seed_option
@options.output_options
def intruder(
    source: Source, subject: str, group: str | None, background: Path | None, output: Output, **settings: Any
) -> None:
    """Link each text to the subject with the most similar other texts, before and after anonymisation.

    The intruder has learnt from other texts about the same subjects: those of ORIGINAL, or of --background. It never
    learns from a text that it judges, nor from a copy of it.

    \b
    Examples:
      allonym evaluate intruder original.jsonl safe.jsonl --subject person --group fame
      allonym evaluate intruder original.jsonl safe.jsonl --subject person --knows anonymised --report linkage.html
      allonym evaluate intruder original.jsonl safe.jsonl --subject person --background wikipedia.jsonl
    """
    from allonym.evaluate.intruder import reidentification

    output.check_writable(*source.paths, background)
    pairs = source.read_pairs()
    settings["groups"] = pairs.labels(group) if group else None
    settings["background"] = source.read_background(background, subject) or None
    texts = (pairs.original, pairs.anonymised, pairs.labels(subject))
    with output.show_progress("linkage") as advance:
        result = reidentification(*texts, ids=pairs.ids, advance=advance, **settings)
    output.write_measure("linkage", result.to_dict(output.with_text))


@click.command(short_help="Estimate the risk of each document before release.")
@options.source_options
@option("--subject KEY", "Metadata field with the subject of each text; without it, texts are only ranked.")
@_group
@_background
@_features
@option("--review-above P", "Documents with a greater risk go to review.", type=SHARE)
@option("--queue FILE", "Write the documents for review, riskiest first: .jsonl or .csv.", type=NEW_FILE)
@options.seed_option
@options.output_options
def risk(
    source: Source,
    subject: str | None,
    group: str | None,
    background: Path | None,
    queue: Path | None,
    output: Output,
    **settings: Any,
) -> None:
    """Estimate for each document the probability that the offline intruder identifies its subject.

    Probabilities are fitted to the results of `allonym evaluate intruder`, by models that have not seen the document.
    Without --subject, documents are only ranked.

    \b
    Examples:
      allonym evaluate risk original.jsonl safe.jsonl --subject person --review-above 0.5 --queue review.csv
      allonym evaluate risk original.jsonl safe.jsonl --review-above 0.9
    """
    from allonym.evaluate.document_risks import document_risk
    from allonym.evaluate.pairs import write_rows

    if queue is not None and settings["review_above"] is None:
        raise click.UsageError("--queue requires --review-above")
    if group and subject is None:
        raise click.UsageError("--group requires --subject")
    output.check_writable(*source.paths, background, queue=queue)
    pairs = source.read_pairs()
    settings["groups"] = pairs.labels(group) if group else None
    settings["background"] = source.read_background(background, subject) or None
    subjects = pairs.labels(subject) if subject else None
    with output.show_progress("documents") as advance:
        result = document_risk(pairs.original, pairs.anonymised, subjects, advance=advance, **settings)
    review, beside = result.review, {}
    if queue is not None and review is not None:
        places = [{"id": pairs.ids[i], "risk": round(result.risks[i], 6)} for i in review.places]
        beside[queue] = write_rows(places, ("id", "risk"), queue.suffix.lower()[1:])
    output.write_measure("document_risk", result.to_dict(), beside=beside)
