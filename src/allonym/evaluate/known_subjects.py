"""Intruders who know other texts about the same subjects; each text is judged by one that never learnt from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from allonym.errors import DataError
from allonym.intruder import Item, Target
from allonym.intruder.linkage import Linkage, LinkageJudge
from allonym.intruder.study import assign_folds
from allonym.text.fold import Level, fold_surface

__all__ = ["Knowing", "rank_subjects", "train_intruders"]

FOLDS = 5


@dataclass(frozen=True, slots=True, eq=False)
class Knowing:
    """The judge of one text: a trained intruder, and the number of the text's subject among its classes."""

    judge: LinkageJudge
    subject: int

    def score_text(self, text: str) -> NDArray[np.float64]:
        """Return the score of each subject: float ``(C,)``; -inf for subjects without a text to learn from."""
        scores: NDArray[np.float64] = self.judge.scores([Target(Item(text))])[0]
        return scores


def train_intruders(
    originals: Sequence[str],
    subjects: Sequence[str],
    groups: Sequence[str],
    intruder: Linkage,
    *,
    folds: int = FOLDS,
    seed: int = 0,
    advance: Callable[[int, int], None] | None = None,
) -> list[Knowing]:
    """Train a judge for each text on the other texts of its group, which are in other folds.

    Args:
        originals: what is learnt from.
        subjects: whom each text is about.
        groups: the intruder knows which group a text is from and chooses among the group's subjects only.
        intruder: what learns.
        folds: parts of each group; 2 or more.
        seed: of the folds.
        advance: called with texts done and texts in all.

    Raises:
        DataError: a group has fewer than two subjects: there is nothing to guess.
    """
    out: list[Knowing | None] = [None] * len(originals)
    count = 0
    for group in dict.fromkeys(groups):
        mine = [i for i, g in enumerate(groups) if g == group]
        classes = sorted({subjects[i] for i in mine})
        if len(classes) < 2:
            raise DataError(f"two subjects at least are required to guess from; one group of {len(mine)} texts has one")
        labels = [classes.index(subjects[i]) for i in mine]
        items = [Item(originals[i]) for i in mine]
        # Copies that differ in case and blanks only share a fold, too.
        home = assign_folds([Item(fold_surface(originals[i], Level.CASE)) for i in mine], labels, folds, seed)
        for fold in range(folds):
            rest = np.flatnonzero(home != fold).tolist()
            judged = np.flatnonzero(home == fold).tolist()
            if not judged:
                continue
            judge = intruder.learn([items[k] for k in rest], [labels[k] for k in rest], classes)
            for k in judged:
                out[mine[k]] = Knowing(judge, labels[k])
            count += len(judged)
            if advance is not None:
                advance(count, len(originals))
    return [intruder_of_text for intruder_of_text in out if intruder_of_text is not None]


def rank_subjects(texts: Sequence[str], judges: Sequence[Knowing]) -> list[int]:
    """The rank of each text's subject, from 1, ties against the intruder; 0: it knows no text about the subject, or
    about nobody else, so that there is nothing to guess."""
    out = []
    for text, judge in zip(texts, judges, strict=True):
        scores = judge.score_text(text)
        subject_score = scores[judge.subject]
        guessed = subject_score > -np.inf and int((scores > -np.inf).sum()) > 1
        out.append(0 if not guessed else int((np.delete(scores, judge.subject) >= subject_score).sum()) + 1)
    return out
