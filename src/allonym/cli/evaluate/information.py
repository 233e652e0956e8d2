"""``allonym evaluate information``: what anonymisation costs in utility."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from allonym.cli.evaluate.options import (
    Output,
    Source,
    output_options,
    replace_hard_spaces,
    section_page,
    seed_option,
    show_estimates,
    source_options,
    training_options,
)
from allonym.cli.terminal import print_heading, print_note, print_table
from allonym.errors import DataError, UnknownNameError

if TYPE_CHECKING:
    from allonym.evaluate.construct import Construct
    from allonym.evaluate.contrast import Contrast
    from allonym.evaluate.finetuned import Training
    from allonym.evaluate.information import Information
    from allonym.evaluate.reading import Pairs

_YES = frozenset({"1", "true", "yes", "y"})
_NO = frozenset({"0", "false", "no", "n"})
_MEASURES = ("surface", "similarity", "perplexity", "construct", "utility")


@click.command(short_help="Measure lost information: accuracy, parts of speech, meaning.")
@source_options
@click.option("--labels", metavar="KEY", help="Metadata field with each text's class, for the utility loss.")
@click.option(
    "--group", metavar="KEY", help="Metadata field, such as author, whose groups stay on one side of a split."
)
@click.option(
    "--identified", metavar="KEY", help="Metadata field with yes or no: whether an intruder identified the subject."
)
@click.option(
    "--measure", "measures", multiple=True, type=click.Choice(_MEASURES), help="Only this measure. Repeatable."
)
@click.option("--model", default="linear", show_default=True, metavar="NAME",
              help="Classifier: linear, encoder, or finetune:FOLDER (BERT and similar; lower --repeats).")  # fmt: skip
@training_options(beams=False)
@click.option(
    "--repeats", type=click.IntRange(2), default=20, show_default=True, help="Number of splits for the utility loss."
)
@click.option(
    "--tagger",
    default="embedded",
    show_default=True,
    metavar="NAME",
    help="Part-of-speech tagger: embedded or spacy:MODEL.",
)
@click.option("--scale", type=click.FloatRange(0, min_open=True), default=2**0.5 / 2, show_default="0.707",
              help="Scale of the Cauchy prior on the effect.")  # fmt: skip
@click.option(
    "--unpaired", is_flag=True, help="Test parts of speech unpaired, as if the versions were different texts (P3)."
)
@click.option("--ranks", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
              help="File of words by frequency, the commonest first, one per line. By default wordfreq's.")  # fmt: skip
@click.option("--language-model", type=click.Path(path_type=Path), metavar="FOLDER",
              help="A causal language model for the perplexity; by default n-grams.")  # fmt: skip
@click.option(
    "--workers", type=click.IntRange(1), default=1, show_default=True, help="Number of texts read in parallel."
)
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
    """Measure the information that anonymised texts have lost (P3).

    Measures: accuracy of a classifier trained on either version, parts of speech with Bayes factors, similarity of
    meaning, share removed, word frequency, readability, perplexity. No text is shown.

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
        result = information_loss(
            pairs.original,
            pairs.anonymised,
            pairs.labels(labels) if labels else None,
            _read_flags(pairs, identified) if identified else None,
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
    values = result.to_dict()

    def make_page() -> Any:
        from allonym.report.evaluate.information import information_section

        section = information_section(values, texts=output.with_text)
        return section_page("Information loss", (section,), f"{result.texts:,} texts, seed {seed}")

    output.write({"information": values}, make_page)
    _print_information(result, quiet=output.quiet)


def _read_flags(pairs: Pairs, key: str) -> list[bool | None]:
    """Return a metadata field as yes, no or None for each text.

    Raises:
        UnknownNameError: no record has the field.
        DataError: a value is neither yes nor no.
    """
    from allonym.evaluate.reading import get_metadata_value

    answers = [get_metadata_value(meta, key).lower() for meta in pairs.meta]
    if not any(answers):
        raise UnknownNameError("metadata key", key, {str(k) for meta in pairs.meta for k in meta}, "--identified")
    wrong = [i for i, value in enumerate(answers, 1) if value and value not in _YES | _NO]
    if wrong:
        raise DataError(
            f"--identified {key}: yes or no (true, false, 1, 0) is required; {len(wrong)} of {len(answers)} texts have "
            f"another value, the first is number {wrong[0]}"
        )
    return [None if not value else value in _YES for value in answers]


def _print_information(result: Information, *, quiet: bool) -> None:
    rows: list[Any] = []
    if result.utility is not None:
        utility = result.utility
        rows += [("accuracy before", utility.before, "share"), ("accuracy after", utility.after, "share")]
        rows += [("utility loss", utility.loss, "share"), ("loss of macro F1", utility.macro_loss, "share")]
    if result.surface is not None:
        surface = result.surface
        rows.append(("words removed", surface.removed, "share"))
        rows += [("frequency rank before", surface.rank.before), ("frequency rank after", surface.rank.after)]
        rows += [("reading ease before", surface.ease.before), ("reading ease after", surface.ease.after)]
    if result.similarity is not None:
        rows.append(("semantic similarity", result.similarity.mean))
        rows.append(("of unrelated texts", result.similarity.chance))
    if result.perplexity is not None:
        rows += [("perplexity before", result.perplexity.before), ("perplexity after", result.perplexity.after)]
    if rows:
        show_estimates(rows, "measure")
    if result.construct is not None:
        _print_word_classes(result.construct)
    if result.contrasts:
        _print_contrasts(result.contrasts)
    if not quiet:
        for name, why in result.skipped.items():
            print_note(f"{name} was left out: {why}")
        if result.utility is not None:
            print_note(result.utility.reading.removeprefix("none: "))


def _print_word_classes(construct: Construct) -> None:
    from allonym.report.numbers import format_number

    def format_log(value: float) -> str:
        return replace_hard_spaces(format_number(value, "number", 2))

    print_heading(f"parts of speech per text: {construct.test}, JZS scale {construct.scale:.4g}, {construct.tagger}")
    body = [
        [
            c.part.lower() if c.part == "WORDS" else c.part,
            replace_hard_spaces(format_number(c.before.value, "number", 2)),
            replace_hard_spaces(format_number(c.after.value, "number", 2)),
            format_log(c.bayes.log10),
            c.bayes.reading,
            replace_hard_spaces(format_number(c.mapped.value, "number", 2)),
            format_log(c.mapped_bayes.log10),
            c.mapped_bayes.reading,
        ]
        for c in construct.counts
    ]
    head = ["part", "before", "after", "log10 BF10", "reading", "mapped", "log10 BF10", "reading"]
    print_table(head, body, right=(1, 2, 3, 5, 6))


def _print_contrasts(contrasts: tuple[Contrast, ...]) -> None:
    from allonym.report.numbers import format_cell

    print_heading("identified texts against the others")
    body = [
        [
            c.name,
            *(replace_hard_spaces(format_cell(e).text) for e in (c.hidden, c.hidden_sd, c.found, c.found_sd)),
            replace_hard_spaces(format_cell(c.d).line),
        ]
        for c in contrasts
    ]
    print_table(["variable", "not identified", "SD", "identified", "SD", "Cohen's d"], body, right=(1, 2, 3, 4))
