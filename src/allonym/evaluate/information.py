"""Information loss as a whole: the cost of anonymisation in usefulness (P3 3.1.2, 4.1.3), and construct loss.

Construct loss: whether linguistic counts are the same before and after (P3 3.1.2.2 and Table 2). Per part of speech,
counts of each text are compared by a Bayesian t test (JZS prior), which can speak for no difference as well as for one.
P3 does not say whether its tests are paired; the largest BF01 of its Table 2, 21.03, is below the 21.8 that two groups
of 1,202 can reach at most and far below the 30.8 of 1,202 pairs, so they look unpaired. Here pairs are the default."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

from allonym.errors import DataError, UnknownNameError, UsageError, hide_foreign_errors, require_extra
from allonym.evaluate.downstream_use import UTILITY_REPEATS, Utility, utility_loss
from allonym.evaluate.finetuned import Training
from allonym.evaluate.pairs import Advance, check_lengths, iterate_with_progress
from allonym.evaluate.surface_measures import Change, Similarity, Surface, perplexity, removed, similarity, surface
from allonym.models.tags import PARTS
from allonym.serial import Serialisable
from allonym.stats import Estimate, none
from allonym.stats.bayes import SCALE, BayesFactor, compare_paired, compare_unpaired
from allonym.stats.samples import average, cohens_d, difference
from allonym.text.placeholders import Placeholder, find_placeholders

Tagger = Callable[[str], Sequence[tuple[int, int, str]]]
"""A text to ``(start, end, part)`` of its words, in reading order, parts of Universal Dependencies."""

WORDS = "WORDS"


class Count(Serialisable):
    """One part of speech, or all words.

    Attributes:
        part: ``NOUN`` and so on; ``WORDS``: all of them but punctuation.
        before, after: mean count per text; placeholders count as the tagger reads them.
        mapped: the same where each placeholder counts as the part of speech of what it stands for.
        change, mapped_change: mean of after minus before, text by text.
        bayes, mapped_bayes: evidence that the counts differ.
    """

    part: str
    before: Estimate
    after: Estimate
    mapped: Estimate
    change: Estimate
    mapped_change: Estimate
    bayes: BayesFactor
    mapped_bayes: BayesFactor


class Construct(Serialisable):
    """What :func:`construct_loss` measures.

    Attributes:
        tagger: who told the parts of speech.
        texts: pairs.
        test: ``paired`` or ``unpaired``.
        scale: of the prior.
        placeholders: how many the anonymised texts hold.
        counts: words first, then the parts of speech.
    """

    KEYS = ("tagger", "texts", "test", "scale", "prior", "placeholders", "counts")

    tagger: str
    texts: int
    test: str
    scale: float
    placeholders: int
    counts: tuple[Count, ...]

    @property
    def prior(self) -> str:
        """The prior in words."""
        return f"JZS: Cauchy on the effect, scale {self.scale:.4g}"


def construct_loss(
    original: Sequence[str],
    anonymised: Sequence[str],
    *,
    tagger: str | Tagger = "embedded",
    scale: float = SCALE,
    independent: bool = False,
    threads: int = 1,
    advance: Advance | None = None,
) -> Construct:
    """Count parts of speech per text, before and after, and compare them with Bayes factors.

    Args:
        original, anonymised: the same texts in the same order.
        tagger: see :func:`open_tagger`, or a function.
        scale: of the Cauchy prior; sqrt(2) / 2 by default.
        independent: whether to test as if the two versions were different texts, as P3's figures suggest.
        threads: texts that the tagger reads at the same time.
        advance: called with texts done and texts in all.

    Raises:
        DataError: unequal lengths, or no texts.
        UsageError: no such tagger, or a scale of 0 or less.
        MissingExtra: the tagger needs spaCy, which is not installed.
    """
    n = check_lengths(original, anonymised)
    if not scale > 0 or math.isinf(scale):
        raise UsageError(f"construct loss: a scale above 0 is required, got {scale:g}")
    read, name = (open_tagger(tagger), tagger) if isinstance(tagger, str) else (tagger, "given")
    pairs: list[tuple[str, list[Placeholder]]] = [(t, []) for t in original]
    pairs += [(t, find_placeholders(t)) for t in anonymised]
    counts = _count_parts_of_texts(read, pairs, threads, advance)
    before, after = [f[1] for f in counts[:n]], counts[n:]
    test = compare_unpaired if independent else compare_paired
    rows = []
    for part in (WORDS, *PARTS):
        b = [_get_part_count(c, part) for c in before]
        a, m = [_get_part_count(c, part) for c, _ in after], [_get_part_count(c, part) for _, c in after]
        if not (any(b) or any(a) or any(m)):
            continue
        factors = (test(b, after_counts, scale=scale) for after_counts in (a, m))
        means = average(b), average(a), average(m)
        rows.append(Count(part, *means, difference(b, a), difference(b, m), *factors))
    if not rows:
        missing = none("no text has words", n)
        nothing = BayesFactor(math.nan, math.nan, 0, scale, "no text has words")
        rows.append(Count(WORDS, missing, missing, missing, missing, missing, nothing, nothing))
    placeholders = sum(len(p) for _, p in pairs[n:])
    return Construct(name, n, "unpaired" if independent else "paired", scale, placeholders, tuple(rows))


@cache
def open_tagger(name: str) -> Tagger:
    """Open a tagger: ``embedded``, the model that ships with allonym, or ``spacy:MODEL``, an installed pipeline.

    Raises:
        UsageError: another name, or spaCy has no such pipeline.
        MissingExtra: spaCy is not installed.
    """
    if name == "embedded":
        from allonym.models.pos import parts_of_speech

        return parts_of_speech
    kind, _, model = name.partition(":")
    if kind != "spacy" or not model:
        raise UsageError(f"construct loss: the tagger is embedded or spacy:MODEL, got {name!r}")
    with require_extra("tagging by spaCy", "spacy"):
        import spacy
    with hide_foreign_errors(f"construct loss: spaCy cannot load {model!r}", OSError, ValueError, error=UsageError):
        nlp = spacy.load(model, exclude=["ner", "parser", "lemmatizer"])
    if not {"morphologizer", "attribute_ruler"} & set(nlp.pipe_names):
        raise UsageError(f"construct loss: spaCy's {model!r} gives no parts of speech; its pipes: {nlp.pipe_names}")

    def tag_words(text: str) -> list[tuple[int, int, str]]:
        return [(t.idx, t.idx + len(t), t.pos_) for t in nlp(text) if not t.is_space]

    return tag_words


def count_parts_of_speech(
    words: Sequence[tuple[int, int, str]], placeholders: Sequence[Placeholder]
) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Count parts of speech, with placeholders as the tagger reads them, and as what they stand for.

    A placeholder is one word in both, however the tagger splits it: its part is that of its first word that is no mark.

    Args:
        words: ``(start, end, part)`` in reading order.
        placeholders: the text's placeholders, sorted and disjoint.
    """
    plain: Counter[str] = Counter()
    read: list[str | None] = [None] * len(placeholders)
    index = 0
    for start, end, part in words:
        while index < len(placeholders) and placeholders[index].end <= start:
            index += 1
        if index < len(placeholders) and placeholders[index].start < end:
            if read[index] is None or read[index] in ("PUNCT", "SYM"):
                read[index] = part
        else:
            plain[part] += 1
    as_read, mapped = Counter(plain), Counter(plain)
    for placeholder, part_read in zip(placeholders, read, strict=True):
        as_read[part_read or "X"] += 1
        mapped[placeholder.part] += 1
    return as_read, mapped


def _count_parts_of_texts(
    tagger: Tagger,
    pairs: Sequence[tuple[str, list[Placeholder]]],
    threads: int,
    advance: Advance | None,
) -> list[tuple[Mapping[str, int], Mapping[str, int]]]:
    def count_pair(pair: tuple[str, list[Placeholder]]) -> Any:
        words = tagger(pair[0])
        if wrong := {p for _, _, p in words} - set(PARTS):
            raise DataError(
                f"construct loss: the tagger gives parts that are not universal: {', '.join(sorted(wrong))}"
            )
        return count_parts_of_speech(words, pair[1])

    with ThreadPoolExecutor(threads) if threads > 1 else nullcontext() as pool:
        counts = pool.map(count_pair, pairs) if pool else map(count_pair, pairs)
        return list(iterate_with_progress(counts, advance, len(pairs)))


def _get_part_count(counts: Mapping[str, int], part: str) -> float:
    if part != WORDS:
        return float(counts.get(part, 0))
    return float(sum(n for p, n in counts.items() if p != "PUNCT"))


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
    advance: Advance | None = None,
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


def _scale_progress(advance: Advance | None, number: int, parts: int) -> Advance | None:
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
