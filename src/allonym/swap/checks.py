"""Predictive checks: what intruders make of changed chunks, before and after (P1 3.2.2, 3.2.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from allonym.errors import DataError, UsageError
from allonym.intruder import TOLD, Item, Study, open_intruder, study
from allonym.swap.corpus import Corpus, Placed, Slot
from allonym.swap.results import Attack
from allonym.text.fold import fold


@dataclass(frozen=True, slots=True)
class Changed:
    """One draw of a release, as an intruder sees it.

    Attributes:
        texts: index of a chunk to its released text. A chunk whose text is what it was does not count as changed.
            Hidden from ``repr``.
        placed: slot to the slot whose entity stands there.
        marks: index of a chunk to what was replaced in its released text: (start, end, ...), as in
            :attr:`allonym.swap.results.Outcome.marks`. Without them the donors' forms are taken to stand there.
    """

    texts: Mapping[int, str] = field(repr=False)
    placed: Placed = field(repr=False)
    marks: Mapping[int, Sequence[tuple[int, int, str, str]]] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Checks:
    """What intruders found.

    Attributes:
        attacks: one table per intruder.
        studies: all guesses behind them, in the same order.
    """

    attacks: tuple[Attack, ...]
    studies: tuple[Study, ...]

    def guessed(self, run: int = 0) -> dict[int, dict[str, tuple[bool, bool]]]:
        """Chunk to intruder to (right before, right after), for the chunks that a run changed."""
        out: dict[int, dict[str, tuple[bool, bool]]] = {}
        for one in self.studies:
            for chunk, pair in one.outcomes(run).items():
                out.setdefault(chunk, {})[one.intruder] = pair
        return out


def check(
    corpus: Corpus,
    runs: Sequence[Changed],
    intruders: Sequence[str] = ("entities", "words"),
    *,
    background: Sequence[tuple[Item, str]] = (),
    options: Mapping[str, Mapping[str, object]] | None = None,
    most: Mapping[str, int] | None = None,
    folds: int = 10,
    seed: int = 0,
    progress: Callable[[str, int, int], object] | None = None,
) -> Checks:
    """Let intruders guess the protected value of the chunks that were changed.

    Args:
        corpus: as it was read; all of its original chunks are what intruders learn from.
        runs: draws of one release.
        intruders: registered names.
        background: outside texts to learn from, with the protected value of each.
        options: intruder to its options, such as ``{"llm": {"settings": policy.llm}}``.
        most: intruder to the number of runs that it judges at most, where each costs.
        folds, seed: see :func:`allonym.intruder.study`.
        progress: called with the intruder, the number of steps that are done, and of all.

    Raises:
        DataError: all documents have the same protected value, so that there is nothing to guess.
        UnknownNameError: an intruder is not known.
        UsageError: an intruder does not take its options.
        EndpointError: an endpoint that an intruder asks did not answer.
    """
    if len(set(corpus.classes)) < 2:
        raise DataError(f"checks: all documents have the same {corpus.protect!r}; there is nothing to guess")
    unknown = sorted({*(options or {}), *(most or {})} - set(intruders))
    if unknown:
        raise UsageError(f"checks: settings for {', '.join(unknown)}, which is none of the intruders asked for")
    opened = [open_intruder(name, **(options or {}).get(name, {})) for name in intruders]
    items = [item_before(corpus, i) for i in range(len(corpus.chunks))]
    labels = [corpus.class_of(i) for i in range(len(corpus.chunks))]
    after = [
        {i: item_after(corpus, i, run) for i in sorted(run.texts) if run.texts[i] != items[i].text} for run in runs
    ]
    partners = [_partners(run.placed) for run in runs]
    studies = []
    for intruder in opened:
        judged = (most or {}).get(intruder.name, len(runs))
        told = None if progress is None else _named(progress, intruder.name)
        studies.append(
            study(
                intruder,
                items,
                labels,
                after[:judged],
                partners=partners[:judged],
                background=background,
                folds=folds,
                seed=seed,
                progress=told,
            )
        )
    return Checks(tuple(attack(one) for one in studies), tuple(studies))


def attack(one: Study) -> Attack:
    """A study as a table."""
    test = one.test
    return Attack(
        intruder=one.intruder,
        before=one.accuracy("before"),
        after=one.accuracy("after"),
        table=one.table,
        exact=test.exact,
        asymptotic=test.asymptotic,
        continuity=test.continuity,
        statistic=test.statistic,
        chance=one.chance,
        second=one.second,
        told={stage: one.accuracy(stage) for stage in TOLD if stage in one.stages},
        terms=one.terms,
    )


def item_before(corpus: Corpus, chunk: int) -> Item:
    """A chunk without its direct identifiers, and its entities, as an intruder sees them (P1's y)."""
    this = corpus.chunks[chunk]
    forms = dict.fromkeys(form for value in this.values for form in value.forms)
    return Item(this.text, tuple(dict.fromkeys(value.key for value in this.values)), tuple(forms))


def item_after(corpus: Corpus, chunk: int, run: Changed) -> Item:
    """A released chunk: the entities that came, and those of its own that still stand there."""
    text = run.texts[chunk]
    keys: dict[str, None] = {}
    forms: dict[str, None] = {}
    for at, own in enumerate(corpus.chunks[chunk].values):
        donor = run.placed.get(Slot(chunk, at))
        if donor is not None:
            value = corpus.chunks[donor.chunk].values[donor.value]
            keys[value.key] = None
            forms |= dict.fromkeys(value.forms)
        elif stands(own.forms, text):  # what a fall-back took does not
            keys[own.key] = None
            forms |= dict.fromkeys(own.forms)
    forms |= dict.fromkeys(text[mark[0] : mark[1]] for mark in run.marks.get(chunk, ()))
    return Item(text, tuple(keys), tuple(forms))


def stands(forms: Sequence[str], text: str) -> bool:
    """Whether one of these forms stands in a text, not inside of a word; case does not count."""
    folded = fold(text)
    return any(_stands(fold(form), folded) for form in forms)


def _stands(form: str, text: str) -> bool:
    at = text.find(form)
    while at >= 0:
        end = at + len(form)
        if not (text[at - 1 : at].isalnum() and form[:1].isalnum()) and not (text[end : end + 1].isalnum()):
            return True
        at = text.find(form, at + 1)
    return False


def _partners(placed: Placed) -> dict[int, tuple[int, ...]]:
    """Chunk to the chunks that its entities came from or went to."""
    out: dict[int, set[int]] = {}
    for slot, donor in placed.items():
        if slot.chunk != donor.chunk:
            out.setdefault(slot.chunk, set()).add(donor.chunk)
            out.setdefault(donor.chunk, set()).add(slot.chunk)
    return {chunk: tuple(sorted(others)) for chunk, others in out.items()}


def _named(progress: Callable[[str, int, int], object], name: str) -> Callable[[int, int], object]:
    return lambda done, of: progress(name, done, of)
