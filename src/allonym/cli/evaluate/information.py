"""``allonym evaluate information`` and ``syntheticity``: what anonymisation costs, and whether it shows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from allonym.cli.evaluate.options import ClassifierTraining, Output, Source
from allonym.cli.options import SEED
from allonym.cli.signatures import take_options
from allonym.errors import DataError, UnknownNameError
from allonym.settings import SettingGroup, declare_setting

if TYPE_CHECKING:
    from allonym.evaluate.pairs import Pairs

_YES = frozenset({"1", "true", "yes", "y"})
_NO = frozenset({"0", "false", "no", "n"})
_MEASURES = ("surface", "similarity", "perplexity", "construct", "utility")


class Tools(SettingGroup):
    """What the measures are made with."""

    model: str = declare_setting(
        "linear",
        "classifier: linear, encoder, or finetune:FOLDER (BERT and similar; lower --repeats)",
        option="NAME",
    )
    repeats: int = declare_setting(20, "number of splits for the utility loss", low=2)
    tagger: str = declare_setting("embedded", "part-of-speech tagger: embedded or spacy:MODEL", option="NAME")
    independent: bool = declare_setting(
        False,
        "test parts of speech unpaired, as if the versions were different texts (Kleinberg et al. 2022)",
        option="--unpaired",
    )
    language_model: Path | None = declare_setting(
        None, "a causal language model for the perplexity; by default n-grams", option="FOLDER"
    )
    threads: int = declare_setting(1, "number of texts read in parallel", low=1, option="--workers")
    seed: int = SEED


@click.command(short_help="Measure lost information: accuracy, parts of speech, meaning.")
@take_options
def information(
    *,
    source: Source,
    labels: str | None = declare_setting(
        None, "metadata field with each text's class, for the utility loss", option="KEY"
    ),
    group: str | None = declare_setting(
        None, "metadata field, such as author, whose groups stay on one side of a split", option="KEY"
    ),
    identified: str | None = declare_setting(
        None, "metadata field with yes or no: whether an intruder identified the subject", option="KEY"
    ),
    measure: tuple[str, ...] = declare_setting((), "only this measure", one_of=_MEASURES),
    ranks: Path | None = declare_setting(
        None,
        "file of words by frequency, the commonest first, one per line. By default wordfreq's",
        noun="file",
        option="FILE",
    ),
    tools: Tools,
    training: ClassifierTraining,
    output: Output,
) -> None:
    """Measure the information that anonymised texts have lost, after Kleinberg et al. 2022.

    Measures: accuracy of a classifier trained on either version, parts of speech with Bayes factors, similarity of
    meaning, share removed, word frequency, readability, perplexity. No text is shown.

    \b
    Examples:
      allonym evaluate information reviews.jsonl safe.jsonl --labels sentiment --report loss.html
      allonym evaluate information texts/ safe/ --measure construct --tagger spacy:en_core_web_sm
      allonym evaluate information reviews.jsonl safe.jsonl --labels sentiment --model finetune:roberta/ --repeats 3
      allonym evaluate information study.jsonl --field text --anonymised-field textwash --identified found
    """
    output.check_writable(*source.paths, ranks, tools.language_model)
    from allonym.evaluate.downstream_use import MODELS
    from allonym.evaluate.finetuned import CLASSIFIER, check_model_available
    from allonym.evaluate.information import MEASURES, information_loss, open_tagger
    from allonym.evaluate.surface_measures import ranks_of

    check_model_available(tools.model, MODELS, (CLASSIFIER,), "--model")
    if not measure or "construct" in measure:
        open_tagger(tools.tagger)
    pairs = source.read_pairs()
    settings: dict[str, Any] = {**vars(tools), "training": training.make_training()}
    settings["groups"] = pairs.labels(group) if group else None
    settings["ranks"] = ranks_of(ranks) if ranks else None
    classes = pairs.labels(labels) if labels else None
    flags = _read_flags(pairs, identified) if identified else None
    texts = (pairs.original, pairs.anonymised, classes, flags)
    with output.show_progress("measuring") as advance:
        result = information_loss(*texts, measures=measure or MEASURES, advance=advance, **settings)
    output.write_measure("information", result.to_dict(), f"{result.texts:,} texts, seed {tools.seed}")


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
@take_options
def syntheticity(
    *,
    source: Source,
    folds: int = declare_setting(5, "folds of the cross-validation", low=2),
    seed: int = SEED,
    output: Output,
) -> None:
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
