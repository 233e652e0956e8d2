"""Task utility: a label is learnt from chunks of other documents."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.swap.corpora import corpus

from allonym.errors import DataError
from allonym.swap.risk import task_utility


@pytest.fixture(scope="module")
def vectors():
    """Two directions, one per sector, and noise."""
    rng = np.random.default_rng(1)
    sector = np.array([c.document % 2 for c in corpus().chunks])
    made = rng.normal(size=(len(sector), 6)) * 0.2
    made[np.arange(len(sector)), sector] += 1
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def test_nothing_changed_nothing_lost(vectors):
    task = task_utility(corpus(), "sector", vectors, vectors)
    assert task.before == task.learnt == task.applied
    assert task.before.value > 0.95
    assert task.before.low <= task.before.value <= task.before.high
    assert (task.classes, task.chunks, task.chance) == (2, 144, 0.5)


def test_vectors_that_say_nothing_any_more_are_worth_nothing(vectors):
    noise = np.random.default_rng(2).normal(size=vectors.shape)
    task = task_utility(corpus(), "sector", vectors, noise)
    assert task.before.value > 0.95
    assert task.learnt.value < 0.75
    assert task.applied.value < 0.75


def test_documents_are_judged_by_models_that_never_saw_them():
    # Each document has a direction of its own, so only a model that saw the document could know its sector.
    places = np.array([c.document for c in corpus().chunks])
    own = np.eye(6)[places]
    assert task_utility(corpus(), "sector", own, own).before.value < 0.75


def test_what_is_wrong_is_said(vectors):
    with pytest.raises(DataError, match="no document has the metadata key 'colour'"):
        task_utility(corpus(), "colour", vectors, vectors)
    one = tuple(replace(d, meta={"sector": "a"}) for d in corpus().documents)
    with pytest.raises(DataError, match="one value only"):
        task_utility(replace(corpus(), documents=one), "sector", vectors, vectors)
    with pytest.raises(DataError, match="of one document only"):
        task_utility(corpus(), "company", vectors, vectors)


def test_documents_without_the_label_are_left_out(vectors):
    documents = tuple(replace(d, meta={} if i == 0 else d.meta) for i, d in enumerate(corpus().documents))
    assert task_utility(replace(corpus(), documents=documents), "sector", vectors, vectors).chunks == 120
