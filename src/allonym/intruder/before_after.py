"""One intruder on texts before and after anonymisation: P1's predictive checks (3.2.2, 3.2.3), cross-fitted.

The texts are divided into folds. The judge of a fold has learnt from the original texts of all other folds only, so
never from a text that it judges, before or after, nor from an exact copy of it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allonym.errors import UsageError
from allonym.intruder.protocol import TOLD, Intruder, Item, Target
from allonym.stats import Estimate, mean
from allonym.stats.samples import McNemar, mcnemar

BEFORE, AFTER = "before", "after"
Changed = Mapping[int, Item]
"""In one run, index of a changed text to its anonymised version."""
Partners = Mapping[int, Sequence[int]]
"""In one run, index of a changed text to those that its terms were interchanged with."""
_BATCH = 20_000  # targets that a judge ranks at once
_NONE = -1


@dataclass(frozen=True, slots=True)
class Judged:
    """Guesses at one stage; a row per run and text.

    Attributes:
        run: int ``(n,)``; item: int ``(n,)``, index of the text; truth: int ``(n,)``, index of its class.
        order: int ``(n, g)``: indices of classes, best guess first; -1: no guess.
        scores: float ``(n, g)``.
    """

    run: NDArray[np.int64]
    item: NDArray[np.int64]
    truth: NDArray[np.int64]
    order: NDArray[np.int64]
    scores: NDArray[np.float64]

    def right(self, guesses: int = 1) -> NDArray[np.bool_]:
        """Whether the true class is among the first ``guesses``, row by row."""
        is_right: NDArray[np.bool_] = (self.order[:, :guesses] == self.truth[:, None]).any(axis=1)
        return is_right


@dataclass(frozen=True, slots=True)
class Study:
    """The guesses of an intruder before and after anonymisation.

    Attributes:
        intruder: its name.
        classes: names of the classes.
        runs: number of judged runs.
        stages: ``before`` and ``after``, whose rows match, and those of :data:`TOLD` that the intruder can use.
        terms: (term, weight): what spoke most for the true class where the intruder was right after anonymisation;
            weights add up to 1 over all terms. Hidden from ``repr``.
    """

    intruder: str
    classes: tuple[str, ...]
    runs: int
    stages: Mapping[str, Judged] = field(repr=False)
    terms: tuple[tuple[str, float], ...] = field(default=(), repr=False)

    def accuracy(self, stage: str, guesses: int = 1) -> Estimate:
        """Share of texts whose class is among the first ``guesses``: mean and SD over the runs."""
        rows = self.stages[stage]
        texts = np.bincount(rows.run, minlength=self.runs)
        right = np.bincount(rows.run, rows.right(guesses), minlength=self.runs)
        return mean([float(r / n) for r, n in zip(right, texts, strict=True) if n])

    @property
    def table(self) -> tuple[int, int, int, int]:
        """Texts of all runs: right before and after, right before only, right after only, never (P1 Table 3)."""
        a, b = self.stages[BEFORE].right(), self.stages[AFTER].right()
        return int((a & b).sum()), int((a & ~b).sum()), int((~a & b).sum()), int((~a & ~b).sum())

    @property
    def test(self) -> McNemar:
        """McNemar's test of :attr:`table`. Runs share texts, as in P1, so p is smaller than for one run."""
        return mcnemar(self.table)

    @property
    def chance(self) -> float:
        """Share of the most frequent class among the judged texts; NaN where there are none."""
        truth = self.stages[AFTER].truth
        return float(np.bincount(truth).max() / len(truth)) if len(truth) else float("nan")

    @property
    def second(self) -> Estimate | None:
        """Accuracy of the first two guesses after anonymisation; None where the intruder makes one guess only."""
        return self.accuracy(AFTER, 2) if self.stages[AFTER].order.shape[1] > 1 else None

    def outcomes(self, run: int) -> dict[int, tuple[bool, bool]]:
        """Text to (right before, right after) in one run."""
        rows = self.stages[AFTER]
        a, b = self.stages[BEFORE].right(), rows.right()
        return {int(rows.item[i]): (bool(a[i]), bool(b[i])) for i in np.flatnonzero(rows.run == run)}


def assign_folds(texts: Sequence[str], labels: Sequence[int], folds: int, seed: int) -> NDArray[np.int64]:
    """Assign each text to a fold: int ``(len(texts),)`` below ``folds``.

    Copies of a text share a fold; each class is spread evenly over the folds.
    """
    copies: defaultdict[str, list[int]] = defaultdict(list)
    for i, text in enumerate(texts):
        copies[text].append(i)
    by_class: defaultdict[int, list[list[int]]] = defaultdict(list)
    for group in copies.values():
        by_class[labels[group[0]]].append(group)
    rng = np.random.default_rng(seed)
    fold = np.zeros(len(texts), np.int64)
    shuffled = (groups[k] for _, groups in sorted(by_class.items()) for k in rng.permutation(len(groups)))
    for i, group in enumerate(shuffled):
        fold[group] = i % folds
    return fold


def study(
    intruder: Intruder,
    items: Sequence[Item],
    labels: Sequence[str],
    runs: Sequence[Changed],
    *,
    partners: Sequence[Partners] | None = None,
    background: Sequence[tuple[Item, str]] = (),
    folds: int = 10,
    seed: int = 0,
    terms: int = 20,
    progress: Callable[[int, int], object] | None = None,
) -> Study:
    """Let an intruder guess the classes of texts before and after anonymisation.

    Args:
        intruder: see :func:`allonym.intruder.open_intruder`.
        items: all texts, before.
        labels: the class of each: any labels.
        runs: for each run, index of a changed text to its anonymised version.
        partners: for each run, index of a changed text to those that its terms were interchanged with; without it no
            intruder is told anything.
        background: further texts to learn from, with their classes; copies of judged texts are left out.
        folds: parts of the texts; more of them take longer, and leave more to learn from.
        seed: of the folds.
        terms: most terms in :attr:`Study.terms`.
        progress: called with the number of folds that are done, and of all.

    Returns:
        Guesses for the texts that a run changed. Without any, tables are empty.

    Raises:
        UsageError: lengths do not fit, a run changes a text that does not exist, or there are fewer than 2 folds.
        EndpointError: an endpoint that the intruder asks did not answer.
    """
    if len(items) != len(labels) or (partners is not None and len(partners) != len(runs)):
        raise UsageError("study: a label for each text, and partners for each run, are required")
    if folds < 2:
        raise UsageError(f"study: folds must be 2 or more, got {folds}")
    for k, changed in enumerate(runs):
        texts_of_run = [*changed, *(j for others in (partners[k].values() if partners else ()) for j in others)]
        if any(not 0 <= i < len(items) for i in texts_of_run):
            raise UsageError(f"study: run {k} names a text that is not among the {len(items)} texts")
    classes = tuple(dict.fromkeys((*labels, *(name for _, name in background))))
    index = {name: i for i, name in enumerate(classes)}
    truth = np.array([index[name] for name in labels], np.int64)
    rows = _list_changed_text_indices(runs)
    stages = _build_targets_by_stage(intruder.told, items, runs, partners)
    texts = list(zip(items, truth.tolist(), strict=True))
    extra = [(item, index[name]) for item, name in background]
    fold = np.zeros(len(items), np.int64)
    if intruder.learns:
        fold = assign_folds([item.text for item in items], truth.tolist(), folds, seed)
    run_of, item_of = np.array(rows, np.int64).reshape(-1, 2).T
    true_class, fold_of_row = truth[item_of], fold[item_of]
    order: dict[str, Any] = {}
    scores: dict[str, Any] = {}
    weights: Counter[str] = Counter()
    folds_in_use = np.unique(fold_of_row)
    for step, number in enumerate(folds_in_use, 1):
        learnt = _select_training_examples(texts, extra, fold == number) if intruder.learns else ([], [])
        judge = intruder.learn(*learnt, classes)
        judged = np.flatnonzero(fold_of_row == number)
        distinct = list(dict.fromkeys(targets[row] for targets in stages.values() for row in judged))
        place = {target: k for k, target in enumerate(distinct)}
        ranked = [judge.rank(distinct[start : start + _BATCH]) for start in range(0, len(distinct), _BATCH)]
        guesses, certainty = np.concatenate([r.order for r in ranked]), np.concatenate([r.scores for r in ranked])
        for stage, targets in stages.items():
            places = [place[targets[row]] for row in judged]
            shape = (len(rows), guesses.shape[1])
            order.setdefault(stage, np.full(shape, _NONE, np.int64))[judged] = guesses[places]
            scores.setdefault(stage, np.full(shape, -np.inf))[judged] = certainty[places]
        right = [row for row in judged if order[AFTER][row, 0] == true_class[row]]
        weights.update(judge.terms([stages[AFTER][row] for row in right], [int(true_class[row]) for row in right]))
        if progress is not None:
            progress(step, len(folds_in_use))
    no_order, no_scores = np.zeros((0, 1), np.int64), np.zeros((0, 1))
    guessed = {
        stage: Judged(run_of, item_of, true_class, order.get(stage, no_order), scores.get(stage, no_scores))
        for stage in stages
    }
    return Study(intruder.name, classes, len(runs), guessed, list_top_term_shares(weights, terms))


def _list_changed_text_indices(runs: Sequence[Changed]) -> list[tuple[int, int]]:
    """List run and text of each changed text."""
    return [(run, i) for run, changed in enumerate(runs) for i in sorted(changed)]


def _build_targets_by_stage(
    told: Sequence[str], items: Sequence[Item], runs: Sequence[Changed], partners: Sequence[Partners] | None
) -> dict[str, list[Target]]:
    """The targets of each stage, one for each run and changed text."""
    rows = _list_changed_text_indices(runs)
    stages = {BEFORE: [Target(items[i]) for _, i in rows], AFTER: [Target(runs[run][i]) for run, i in rows]}
    if partners is None:
        return stages
    for stage in (stage for stage in TOLD if stage in told):
        stages[stage] = []
        for run, i in rows:
            others = partners[run].get(i, ()) if stage == "interchanged" else ()
            stages[stage].append(Target(runs[run][i], stage, tuple(runs[run].get(j, items[j]) for j in others)))
    return stages


def _select_training_examples(
    texts: Sequence[tuple[Item, int]], background: Sequence[tuple[Item, int]], is_judged: NDArray[np.bool_]
) -> tuple[list[Item], list[int]]:
    """The texts to learn from and their classes: those of other folds, and the background without judged texts."""
    judged = {item.text for (item, _), is_in_fold in zip(texts, is_judged, strict=True) if is_in_fold}
    pairs = [pair for pair, is_in_fold in zip(texts, is_judged, strict=True) if not is_in_fold]
    pairs += [pair for pair in background if pair[0].text not in judged]
    return [item for item, _ in pairs], [label for _, label in pairs]


def list_top_term_shares(weights: Mapping[str, float], n: int) -> tuple[tuple[str, float], ...]:
    """Select the ``n`` terms with the highest weights, as shares of all weights; none where these add up to 0."""
    total = sum(weights.values())
    best = sorted(weights.items(), key=lambda pair: (-pair[1], pair[0]))[:n]
    return tuple((term, weight / total) for term, weight in best) if total > 0 else ()
