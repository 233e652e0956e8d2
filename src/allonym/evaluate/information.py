"""Information loss as a whole: the cost of anonymisation in usefulness (P3 3.1.2, 4.1.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from allonym.errors import DataError, UnknownNameError
from allonym.evaluate.construct import Construct, Tagger, construct_loss
from allonym.evaluate.downstream_use import UTILITY_REPEATS, Utility, utility_loss
from allonym.evaluate.finetuned import Training
from allonym.evaluate.pairs import check_lengths
from allonym.evaluate.surface_measures import Change, Similarity, Surface, perplexity, removed, similarity, surface
from allonym.serial import Serialisable
from allonym.stats import Estimate, none
from allonym.stats.bayes import SCALE
from allonym.stats.samples import average, cohens_d

MEASURES = ("surface", "similarity", "perplexity", "construct", "utility")
"""What is measured, in this order; ``utility`` needs labels."""

_STEPS = 1000  # of progress, shared among the measures


class Information(Serialisable):
    """The result of :func:`information_loss`. A part that was not measured is None.

    Attributes:
        texts: pairs.
        surface: share removed, frequency ranks, readability.
        similarity: cosine of sentence vectors.
        perplexity: of a language model, before and after; ``perplexity_model`` names it.
        construct: parts of speech with Bayes factors.
        utility: accuracy of a classifier.
        contrasts: identified against other texts, P3's Table 9; empty where nobody said which were identified.
        skipped: measure to the reason why it was left out.
    """

    KEYS = ("texts", *MEASURES, "perplexity_model", "contrasts", "skipped")

    texts: int
    surface: Surface | None
    similarity: Similarity | None
    perplexity: Change | None
    perplexity_model: str
    construct: Construct | None
    utility: Utility | None
    contrasts: tuple[Contrast, ...]
    skipped: Mapping[str, str]


def information_loss(
    original: Sequence[str],
    anonymised: Sequence[str],
    labels: Sequence[str | None] | None = None,
    identified: Sequence[bool | None] | None = None,
    *,
    groups: Sequence[str] | None = None,
    measures: Sequence[str] = MEASURES,
    model: str = "linear",
    training: Training | None = None,
    repeats: int = UTILITY_REPEATS,
    tagger: str | Tagger = "embedded",
    scale: float = SCALE,
    independent: bool = False,
    ranks: Mapping[str, int] | None = None,
    language_model: str | Path | None = None,
    threads: int = 1,
    seed: int = 0,
    advance: Callable[[int, int], None] | None = None,
) -> Information:
    """Measure every kind of information loss that the inputs allow.

    Args:
        original, anonymised: the same texts in the same order.
        labels: class of each text, for the utility loss; None: that is skipped.
        identified: whether an intruder identified each text's subject, for P3's Table 9.
        groups: see :func:`~allonym.evaluate.downstream_use.utility_loss`.
        measures: those of :data:`MEASURES` that are wanted.
        model, training, repeats: see :func:`~allonym.evaluate.downstream_use.utility_loss`.
        tagger, scale, independent: of the construct loss.
        ranks: see :func:`~allonym.evaluate.surface_measures.ranks_of`.
        language_model: folder of a causal language model for the perplexity; None: n-grams of the originals.
        threads: of the embedded models.
        seed: of splits and folds.
        advance: called with steps done and steps in all.

    Raises:
        DataError: unequal lengths, or no texts.
        UsageError: a measure or an option does not exist.
    """
    n = check_lengths(original, anonymised, labels, identified, groups)
    for name in measures:
        if name not in MEASURES:
            raise UnknownNameError("measure", name, MEASURES, "information loss")
    skipped = {} if labels is not None or "utility" not in measures else {"utility": "needs a label for each text"}
    chosen = [name for name in MEASURES if name in measures and name not in skipped]
    variables: dict[str, Sequence[float]] = {}
    parts: dict[str, Any] = {}
    for number, name in enumerate(chosen):
        step = _scale_progress(advance, number, len(chosen))
        if name == "surface":
            parts[name] = surface(original, anonymised, ranks=ranks)
            variables["share removed"] = removed(original, anonymised)
            before, after = parts[name].rank.values
            variables |= {"frequency rank, original": before, "frequency rank, anonymised": after}
        elif name == "similarity":
            parts[name] = similarity(original, anonymised, threads=threads, advance=step)
            variables["semantic similarity"] = parts[name].values
        elif name == "perplexity":
            parts[name] = perplexity(original, anonymised, model=language_model, seed=seed, advance=step)
            before, after = parts[name].values
            variables |= {"perplexity, original": before, "perplexity, anonymised": after}
        elif name == "construct":
            parts[name] = construct_loss(
                original, anonymised, tagger=tagger, scale=scale, independent=independent, threads=threads, advance=step
            )
        elif labels is not None:
            parts[name] = utility_loss(
                original, anonymised, labels,
                groups=groups, model=model, training=training, repeats=repeats, seed=seed, advance=step,
            )  # fmt: skip
        if step is not None:
            step(1, 1)
    order = [v for v in _TABLE_9 if v in variables]
    compared = contrasts({v: variables[v] for v in order}, identified) if identified is not None else ()
    judge = "n-grams of the originals" if language_model is None else "causal model"
    return Information(
        texts=n,
        **{name: parts.get(name) for name in MEASURES},
        perplexity_model=judge if "perplexity" in parts else "",
        contrasts=compared,
        skipped=skipped,
    )


_TABLE_9 = (
    "share removed",
    "frequency rank, original",
    "frequency rank, anonymised",
    "perplexity, original",
    "perplexity, anonymised",
    "semantic similarity",
)


def _scale_progress(
    advance: Callable[[int, int], None] | None, number: int, parts: int
) -> Callable[[int, int], None] | None:
    """Report the progress of one of several measures as progress of the whole."""
    if advance is None:
        return None
    return lambda count, total: advance(int(_STEPS * (number + count / max(1, total)) / parts), _STEPS)


class Contrast(Serialisable):
    """One variable of the texts that were not identified and of those that were.

    Attributes:
        name: of the variable.
        hidden, found: means with 95 % intervals: of texts that were not identified, and of identified ones.
        hidden_sd, found_sd: standard deviations of the same.
        d: Cohen's d, above 0 where the variable is higher in texts that were not identified, as in P3.
    """

    name: str
    hidden: Estimate
    hidden_sd: Estimate
    found: Estimate
    found_sd: Estimate
    d: Estimate


def contrasts(variables: Mapping[str, Sequence[float]], identified: Sequence[bool | None]) -> tuple[Contrast, ...]:
    """Compare identified texts with the others on each variable.

    Args:
        variables: name to one value per text; NaN: none.
        identified: whether somebody identified each text's subject; None: not tried.

    Raises:
        DataError: a variable has not as many values as there are texts.
    """
    out = []
    for name, values in variables.items():
        if len(values) != len(identified):
            raise DataError(f"{name}: one value for each text is required; got {len(values)} for {len(identified)}")
        others, identified_values = (
            [v for v, is_identified in zip(values, identified, strict=True) if is_identified is state and v == v]
            for state in (False, True)
        )
        averages = average(others), _estimate_sd(others), average(identified_values), _estimate_sd(identified_values)
        out.append(Contrast(name, *averages, cohens_d(others, identified_values)))
    return tuple(out)


def _estimate_sd(values: Sequence[float]) -> Estimate:
    n = len(values)
    if n < 2:
        return none("two values are required", n)
    middle = sum(values) / n
    return Estimate.exact((sum((v - middle) ** 2 for v in values) / (n - 1)) ** 0.5, n)
