import numpy as np
import pytest
from scipy import sparse
from sklearn.naive_bayes import ComplementNB

from allonym.intruder.offline import ComplementBayes


@pytest.mark.parametrize(("n", "words", "classes", "share"), [(300, 80, 7, 0.2), (900, 2000, 40, 0.01), (2, 3, 2, 0.5)])
def test_the_numbers_are_those_of_the_dense_classifier(n, words, classes, share):
    rng = np.random.default_rng(n)
    x = sparse.random(n, words, share, format="csr", random_state=0)
    y = rng.integers(0, classes, n) * 3 + 5
    y[:2] = 5, 8
    dense, ours = ComplementNB(alpha=0.1).fit(x, y), ComplementBayes(0.1).fit(x, y)
    assert ours.classes_.tolist() == dense.classes_.tolist()
    scores = dense.predict_joint_log_proba(x)
    assert np.allclose(ours.score_classes(x), scores, rtol=1e-12, atol=1e-10)
    centred = dense.feature_log_prob_ - dense.feature_log_prob_.mean(axis=0)
    some = np.flatnonzero(np.arange(words) % 2 == 0)
    for c in range(len(ours.classes_)):
        assert np.allclose(ours.compute_class_weights(c, some), centred[c, some], atol=1e-12)


def test_the_best_classes_come_first_and_ties_go_to_the_first(monkeypatch):
    x = sparse.random(50, 30, 0.2, format="csr", random_state=1)
    y = np.arange(50) % 6
    model = ComplementBayes().fit(sparse.vstack([x, sparse.csr_matrix((1, 30))]).tocsr(), np.append(y, 6))
    empty = sparse.csr_matrix((1, 30))
    monkeypatch.setattr("allonym.intruder.offline._ROOM", 20)  # two rows at a time
    order, scores = model.rank_top_classes(sparse.vstack([x, empty]).tocsr(), 4)
    table = model.score_classes(x)
    wanted = np.argsort(-table, axis=1, kind="stable")[:, :4]
    assert np.array_equal(order[:50], wanted)
    assert np.allclose(scores[:50], np.take_along_axis(table, wanted, axis=1))
    assert order[50].tolist() == [0, 1, 2, 3]  # a text without any known word speaks for nobody
