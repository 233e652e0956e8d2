"""``allonym evaluate information`` and ``syntheticity``: what anonymisation costs, and whether it shows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from allonym.cli.evaluate import options
from allonym.cli.evaluate.options import Output, Source, format_value, format_with_interval, print_estimates
from allonym.cli.options import FILE, POSITIVE, flag, option
from allonym.cli.terminal import print_heading, print_note, print_table
from allonym.errors import DataError, UnknownNameError

if TYPE_CHECKING:
    from allonym.evaluate.construct import Construct
    from allonym.evaluate.information import Contrast, Information
    from allonym.evaluate.reading import Pairs

_YES = frozenset({"1", "true", "yes", "y"})
_NO = frozenset({"0", "false", "no", "n"})
_MEASURES = ("surface", "similarity", "perplexity", "construct", "utility")


@click.command(short_help="Measure lost information: accuracy, parts of speech, meaning.")
@options.source_options
@option("--labels KEY", "Metadata field with each text's class, for the utility loss.")
@option("--group KEY", "Metadata field, such as author, whose groups stay on one side of a split.")
@option("--identified KEY", "Metadata field with yes or no: whether an intruder identified the subject.")
@option("--measure", "Only this measure. Repeatable.", name="measures", multiple=True, type=click.Choice(_MEASURES))
@option(
    "--model NAME",
    "Classifier: linear, encoder, or finetune:FOLDER (BERT and similar; lower --repeats).",
    default="linear",
)
@options.training_options(beams=False)
@option("--repeats", "Number of splits for the utility loss.", type=click.IntRange(2), default=20)
@option("--tagger NAME", "Part-of-speech tagger: embedded or spacy:MODEL.", default="embedded")
@option(
    "--scale",
    "Scale of the Cauchy prior on the effect.",
    type=click.FloatRange(0, min_open=True),
    default=2**0.5 / 2,
    show_default="0.707",
)
@flag("--unpaired", "Test parts of speech unpaired, as if the versions were different texts (P3).", name="independent")
@option(
    "--ranks FILE", "File of words by frequency, the commonest first, one per line. By default wordfreq's.", type=FILE
)
@option(
    "--language-model FOLDER",
    "A causal language model for the perplexity; by default n-grams.",
    type=click.Path(path_type=Path),
)
@option("--workers", "Number of texts read in parallel.", name="threads", type=POSITIVE, default=1)
@options.seed_option
@options.output_options
def information(
    source: Source,
    labels: str | None,
    group: str | None,
    identified: str | None,
    measures: tuple[str, ...],
    ranks: Path | None,
    output: Output,
    **settings: Any,
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
    output.check_writable(*source.paths, ranks, settings["language_model"])
    from allonym.evaluate.classification import MODELS
    from allonym.evaluate.construct import open_tagger
    from allonym.evaluate.finetuned import CLASSIFIER, check_model_available
    from allonym.evaluate.information import MEASURES, information_loss
    from allonym.evaluate.surface import ranks_of

    check_model_available(settings["model"], MODELS, (CLASSIFIER,), "--model")
    if not measures or "construct" in measures:
        open_tagger(settings["tagger"])
    pairs = source.read_pairs()
    settings["groups"] = pairs.labels(group) if group else None
    settings["ranks"] = ranks_of(ranks) if ranks else None
    classes = pairs.labels(labels) if labels else None
    flags = _read_flags(pairs, identified) if identified else None
    texts = (pairs.original, pairs.anonymised, classes, flags)
    with output.show_progress("measuring") as advance:
        result = information_loss(*texts, measures=measures or MEASURES, advance=advance, **settings)
    output.write_measure("information", result.to_dict(), f"{result.texts:,} texts, seed {settings['seed']}")
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
    if (utility := result.utility) is not None:
        rows += [("accuracy before", utility.before, "share"), ("accuracy after", utility.after, "share")]
        rows += [("utility loss", utility.loss, "share"), ("loss of macro F1", utility.macro_loss, "share")]
    if (surface := result.surface) is not None:
        rows.append(("words removed", surface.removed, "share"))
        rows += [("frequency rank before", surface.rank.before), ("frequency rank after", surface.rank.after)]
        rows += [("reading ease before", surface.ease.before), ("reading ease after", surface.ease.after)]
    if (similarity := result.similarity) is not None:
        rows += [("semantic similarity", similarity.mean), ("of unrelated texts", similarity.chance)]
    if result.perplexity is not None:
        rows += [("perplexity before", result.perplexity.before), ("perplexity after", result.perplexity.after)]
    if rows:
        print_estimates(rows, "measure")
    if result.construct is not None:
        _print_word_classes(result.construct)
    if result.contrasts:
        _print_contrasts(result.contrasts)
    if not quiet:
        for name, why in result.skipped.items():
            print_note(f"{name} was left out: {why}")
        if utility is not None:
            print_note(utility.reading.removeprefix("none: "))


def _print_word_classes(construct: Construct) -> None:
    print_heading(f"parts of speech per text: {construct.test}, JZS scale {construct.scale:.4g}, {construct.tagger}")
    rows = []
    for c in construct.counts:
        name = c.part.lower() if c.part == "WORDS" else c.part
        values = (c.before, c.after, c.bayes.log10, c.mapped, c.mapped_bayes.log10)
        before, after, bayes, mapped, mapped_bayes = (format_value(value, "number", 2) for value in values)
        rows.append([name, before, after, bayes, c.bayes.reading, mapped, mapped_bayes, c.mapped_bayes.reading])
    head = ["part", "before", "after", "log10 BF10", "reading", "mapped", "log10 BF10", "reading"]
    print_table(head, rows, right=(1, 2, 3, 5, 6))


def _print_contrasts(contrasts: tuple[Contrast, ...]) -> None:
    print_heading("identified texts against the others")
    rows = []
    for c in contrasts:
        numbers = map(format_value, (c.hidden, c.hidden_sd, c.found, c.found_sd))
        rows.append([c.name, *numbers, format_with_interval(c.d, None)])
    print_table(["variable", "not identified", "SD", "identified", "SD", "Cohen's d"], rows, right=(1, 2, 3, 4))


@click.command(short_help="Measure whether a classifier tells pseudonymised texts from originals.")
@options.source_options
@option("--folds", "Folds of the cross-validation.", type=click.IntRange(2), default=5)
@options.seed_option
@options.output_options
def syntheticity(source: Source, folds: int, seed: int, output: Output) -> None:
    """Measure how well a classifier tells ANONYMISED texts from ORIGINAL ones; lower is better.

    Both versions of a text are classified by models that saw neither of them. Guessing reaches an accuracy of 50 %.
    Revealing features are listed by kind; --with-text shows the features themselves, which are words of the texts.

    \b
    Examples:
      allonym evaluate syntheticity mails.jsonl mails_pseudonymised.jsonl
      allonym evaluate syntheticity mails/ pseudonymised/ --report syntheticity.html --with-text
    """
    from allonym.evaluate.syntheticity import syntheticity as measure

    output.check_writable(*source.paths)
    pairs = source.read_pairs()
    with output.show_progress("judging") as advance:
        result = measure(pairs.original, pairs.anonymised, folds=folds, seed=seed, advance=advance)
    output.write_measure("syntheticity", result.to_dict(texts=output.with_text), f"{len(pairs):,} texts, seed {seed}")
    print_estimates(
        [
            ("precision", result.precision, "share"),
            ("recall", result.recall, "share"),
            ("F1", result.f1, "share"),
            ("accuracy", result.accuracy, "share"),
            ("told apart", result.told_apart, "share"),
        ],
        "of “pseudonymised”",
    )
    if result.unchanged:
        click.echo(f"{result.unchanged:,} of {len(pairs):,} texts are unchanged and left out")
    if result.kinds:
        print_heading("revealing features")
        kinds = sorted(result.kinds, key=lambda k: -k[1])
        print_table(["kind of feature", "share"], [[k, f"{100 * v:.0f} %"] for k, v in kinds], right=(1,))
    if output.with_text and result.signs:
        print_heading("features")
        rows = [[s.term, s.side, f"{s.weight:.3f}", s.pairs] for s in result.signs[:20]]
        print_table(["feature", "speaks for", "weight", "pairs"], rows, right=(2, 3))
