"""``allonym evaluate information``: what anonymisation cost in usefulness."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from allonym.cli.evaluate.options import (
    Output,
    Source,
    output_options,
    plain,
    section_page,
    seed_option,
    show_estimates,
    source_options,
    training_options,
)
from allonym.cli.terminal import heading, note, table
from allonym.errors import DataError, UnknownNameError

if TYPE_CHECKING:
    from allonym.evaluate.construct import Construct
    from allonym.evaluate.finetuned import Training
    from allonym.evaluate.information import Information
    from allonym.evaluate.leaving import Contrast
    from allonym.evaluate.reading import Pairs

_YES = frozenset({"1", "true", "yes", "y"})
_NO = frozenset({"0", "false", "no", "n"})
_MEASURES = ("surface", "similarity", "perplexity", "construct", "utility")


@click.command(short_help="What was lost: accuracy, parts of speech, meaning, wording.")
@source_options
@click.option("--labels", metavar="KEY", help="Metadata with each text's class, for the utility loss.")
@click.option("--group", metavar="KEY", help="Metadata such as the author: no group is on both sides of a split.")
@click.option("--identified", metavar="KEY", help="Metadata that says yes or no: an intruder identified the subject.")
@click.option("--measure", "measures", multiple=True, type=click.Choice(_MEASURES), help="Only this. Repeatable.")
@click.option("--model", default="linear", show_default=True, metavar="NAME",
              help="Classifier: linear, encoder, or finetune:FOLDER (BERT and its kin; lower --repeats).")  # fmt: skip
@training_options(beams=False)
@click.option("--repeats", type=click.IntRange(2), default=20, show_default=True, help="Splits of the utility loss.")
@click.option("--tagger", default="embedded", show_default=True, metavar="NAME", help="embedded, or spacy:MODEL.")
@click.option("--scale", type=click.FloatRange(0, min_open=True), default=2**0.5 / 2, show_default="0.707",
              help="Of the Cauchy prior on the effect.")  # fmt: skip
@click.option("--unpaired", is_flag=True, help="Test parts of speech as if the versions were different texts (P3).")
@click.option("--ranks", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
              help="Words, commonest first, one a line; by default wordfreq's.")  # fmt: skip
@click.option("--language-model", type=click.Path(path_type=Path), metavar="FOLDER",
              help="A causal language model for the perplexity; by default n-grams.")  # fmt: skip
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Texts read at the same time.")
@seed_option
@output_options
def information(
    source: Source,
    labels: str | None,
    group: str | None,
    identified: str | None,
    measures: tuple[str, ...],
    model: str,
    training: Training,
    repeats: int,
    tagger: str,
    scale: float,
    unpaired: bool,
    ranks: Path | None,
    language_model: Path | None,
    workers: int,
    seed: int,
    output: Output,
) -> None:
    """Measure what the anonymised texts lost against the originals (P3): the accuracy of a classifier that learns from
    either, counts of parts of speech with Bayes factors, similarity of meaning, share removed, frequency of the words,
    readability, perplexity. Texts never show.

    \b
    Examples:
      allonym evaluate information reviews.jsonl safe.jsonl --labels sentiment --report loss.html
      allonym evaluate information texts/ safe/ --measure construct --tagger spacy:en_core_web_sm
      allonym evaluate information reviews.jsonl safe.jsonl --labels sentiment --model finetune:roberta/ --repeats 3
      allonym evaluate information study.jsonl --field text --anonymised-field textwash --identified found
    """
    read = [path for path in (ranks, language_model) if path is not None]
    output.check([*source.paths, *read])
    from allonym.evaluate.classification import MODELS
    from allonym.evaluate.construct import open_tagger
    from allonym.evaluate.finetuned import CLASSIFIER, check_model
    from allonym.evaluate.information import MEASURES, information_loss
    from allonym.evaluate.surface import ranks_of

    check_model(model, MODELS, (CLASSIFIER,), "--model")
    if not measures or "construct" in measures:
        open_tagger(tagger)
    pairs = source.read()
    with output.progress("measuring") as advance:
        found = information_loss(
            pairs.original,
            pairs.anonymised,
            pairs.labels(labels) if labels else None,
            _identified(pairs, identified) if identified else None,
            groups=pairs.labels(group) if group else None,
            measures=measures or MEASURES,
            model=model,
            training=training,
            repeats=repeats,
            tagger=tagger,
            scale=scale,
            independent=unpaired,
            ranks=ranks_of(ranks) if ranks else None,
            language_model=language_model,
            threads=workers,
            seed=seed,
            advance=advance,
        )
    values = found.to_dict()

    def page() -> Any:
        from allonym.report.evaluate.information import information_section

        section = information_section(values, texts=output.with_text)
        return section_page("Information loss", (section,), f"{found.texts:,} texts, seed {seed}")

    output.write({"information": values}, page)
    _show(found, quiet=output.quiet)


def _identified(pairs: Pairs, key: str) -> list[bool | None]:
    """What a metadata field says of each text: yes, no, or nothing.

    Raises:
        UnknownNameError: no record has the field.
        DataError: it says something else.
    """
    from allonym.evaluate.reading import value_of

    said = [value_of(meta, key).lower() for meta in pairs.meta]
    if not any(said):
        raise UnknownNameError("metadata key", key, {str(k) for meta in pairs.meta for k in meta}, "--identified")
    wrong = [i for i, value in enumerate(said, 1) if value and value not in _YES | _NO]
    if wrong:
        raise DataError(
            f"--identified {key}: yes or no (true, false, 1, 0) is required; {len(wrong)} of {len(said)} texts say "
            f"something else, the first is number {wrong[0]}"
        )
    return [None if not value else value in _YES for value in said]


def _show(found: Information, *, quiet: bool) -> None:
    rows: list[Any] = []
    if found.utility is not None:
        utility = found.utility
        rows += [("accuracy before", utility.before, "share"), ("accuracy after", utility.after, "share")]
        rows += [("utility loss", utility.loss, "share"), ("loss of macro F1", utility.macro_loss, "share")]
    if found.surface is not None:
        surface = found.surface
        rows.append(("words removed", surface.removed, "share"))
        rows += [("frequency rank before", surface.rank.before), ("frequency rank after", surface.rank.after)]
        rows += [("reading ease before", surface.ease.before), ("reading ease after", surface.ease.after)]
    if found.similarity is not None:
        rows.append(("semantic similarity", found.similarity.mean))
        rows.append(("of unrelated texts", found.similarity.chance))
    if found.perplexity is not None:
        rows += [("perplexity before", found.perplexity.before), ("perplexity after", found.perplexity.after)]
    if rows:
        show_estimates(rows, "measure")
    if found.construct is not None:
        _counts(found.construct)
    if found.contrasts:
        _contrasts(found.contrasts)
    if not quiet:
        for name, why in found.skipped.items():
            note(f"{name} was left out: {why}")
        if found.utility is not None:
            note(found.utility.reading.removeprefix("none: "))


def _counts(construct: Construct) -> None:
    from allonym.report.numbers import write

    def log(value: float) -> str:
        return plain(write(value, "number", 2))

    heading(f"parts of speech per text: {construct.test}, JZS scale {construct.scale:.4g}, {construct.tagger}")
    body = [
        [
            c.part.lower() if c.part == "WORDS" else c.part,
            plain(write(c.before.value, "number", 2)),
            plain(write(c.after.value, "number", 2)),
            log(c.bayes.log10),
            c.bayes.reading,
            plain(write(c.mapped.value, "number", 2)),
            log(c.mapped_bayes.log10),
            c.mapped_bayes.reading,
        ]
        for c in construct.counts
    ]
    head = ["part", "before", "after", "log10 BF10", "reading", "mapped", "log10 BF10", "reading"]
    table(head, body, right=(1, 2, 3, 5, 6))


def _contrasts(contrasts: tuple[Contrast, ...]) -> None:
    from allonym.report.numbers import show

    heading("identified texts against the others")
    body = [
        [c.name, *(plain(show(e).text) for e in (c.hidden, c.hidden_sd, c.found, c.found_sd)), plain(show(c.d).line)]
        for c in contrasts
    ]
    table(["variable", "not identified", "SD", "identified", "SD", "Cohen's d"], body, right=(1, 2, 3, 4))
