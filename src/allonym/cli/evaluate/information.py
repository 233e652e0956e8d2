"""``allonym evaluate information`` and ``syntheticity``: what anonymisation costs, and whether it shows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from allonym.cli.evaluate import options
from allonym.cli.evaluate.options import Output, Source
from allonym.cli.options import FILE, POSITIVE, flag, option
from allonym.errors import DataError, UnknownNameError

if TYPE_CHECKING:
    from allonym.evaluate.pairs import Pairs

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
    from allonym.evaluate.downstream_use import MODELS
    from allonym.evaluate.finetuned import CLASSIFIER, check_model_available
    from allonym.evaluate.information import MEASURES, information_loss, open_tagger
    from allonym.evaluate.surface_measures import ranks_of

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


def _read_flags(pairs: Pairs, key: str) -> list[bool | None]:
    """Return a metadata field as yes, no or None for each text.

    Raises:
        UnknownNameError: no record has the field.
        DataError: a value is neither yes nor no.
    """
    from allonym.evaluate.pairs import get_metadata_value

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
    from allonym.evaluate.synthetic_text import syntheticity as measure

    output.check_writable(*source.paths)
    pairs = source.read_pairs()
    with output.show_progress("judging") as advance:
        result = measure(pairs.original, pairs.anonymised, folds=folds, seed=seed, advance=advance)
    output.write_measure("syntheticity", result.to_dict(texts=output.with_text), f"{len(pairs):,} texts, seed {seed}")
