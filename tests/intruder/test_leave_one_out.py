"""Leave-one-out weights in closed form are those that learning again without the text would give."""

from __future__ import annotations

import numpy as np
import pytest

from allonym.intruder.leave_one_out import KINDS, LeaveOneOut
from allonym.intruder.linkage import FeatureReader, TfidfWeights

TEXTS = (
    "She plays the guitar and sings.",
    "The guitar is hers, and she sings folk.",
    "He captains the football team.",
    "The team lost a football match.",
    "A novel about wizards made her rich.",
    "She wrote a novel and a play.",
)
LABELS = np.array([0, 0, 1, 1, 2, 2])


def test_scores_are_those_of_learning_again_without_the_text():
    reader = FeatureReader()
    judge = LeaveOneOut(reader, TEXTS, LABELS)
    rows = []
    for kind in KINDS:
        counts = reader.count_features(TEXTS, kind)
        rows.append(TfidfWeights(counts).weigh_counts(counts).toarray())
    similarity = sum(part @ part.T for part in rows)
    targets = np.eye(3)[LABELS]
    for i in range(len(TEXTS)):
        rest = [k for k in range(len(TEXTS)) if k != i]
        system = similarity[np.ix_(rest, rest)] + np.eye(len(rest))
        dual = np.linalg.solve(system, (targets - targets.mean(axis=0))[rest])
        assert judge.scores[i] == pytest.approx(targets.mean(axis=0) + similarity[i, rest] @ dual)


def test_what_words_add_is_the_lead():
    judge = LeaveOneOut(FeatureReader(), TEXTS, LABELS)
    for i, label in enumerate(LABELS.tolist()):
        rival = (label + 1) % 3
        added = sum(weight for *_, weight in judge.list_word_leads(i, label, [rival]))
        assert added == pytest.approx(judge.scores[i, label] - judge.scores[i, rival])


def test_a_class_without_another_text_has_no_score():
    judge = LeaveOneOut(FeatureReader(), TEXTS[:5], LABELS[:5])
    assert judge.scores[4, 2] == -np.inf and np.isfinite(judge.scores[:4]).all()


def test_words_passed_over_are_not_read():
    reader = FeatureReader(passed_over=frozenset({"guitar"}))
    assert [TEXTS[0][a:b] for a, b in reader.find_word_spans(TEXTS[0])] == ["She", "plays", "the", "and", "sings"]
