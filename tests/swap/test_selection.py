"""Which family and how many components."""

import json

import numpy as np
import pytest
from benchmarks.sphere import sample_mixture

from allonym.errors import UnknownNameError, UsageError
from allonym.swap.selection import Fit, choose_fit, fit_all, list_cluster_counts


def three(n=600, family="spcauchy", d=6):
    return sample_mixture(n, [0.4, 0.3, 0.3], np.eye(d)[:3], [0.8, 0.75, 0.85], family, 8)[0]


@pytest.mark.parametrize("family", ["spcauchy", "pkbd"])
def test_the_true_family_and_number_win(family):
    X = three(family=family)
    seen = []
    fits = fit_all(X, [1, 2, 3, 5], advance=lambda done, of: seen.append((done, of)), restarts=3, seed=1)
    assert [(f.family, f.clusters) for f in fits] == [(f, k) for f in ("spcauchy", "pkbd") for k in (1, 2, 3, 5)]
    assert seen == [(i, 8) for i in range(9)]
    best = choose_fit(fits)
    assert (best.family, best.left) == (family, 3)
    assert best.usable
    assert best.bic == min(f.bic for f in fits if not f.degenerate)
    assert choose_fit(fits, "icl").left == 3
    assert best.mixture.family == family and best.mixture.seed == 1
    assert best.bic == pytest.approx(best.mixture.bic(X))
    assert best.icl == pytest.approx(best.mixture.icl(X)) and best.icl >= best.bic
    assert json.loads(json.dumps([f.to_dict() for f in fits]))[2]["clusters"] == 3


def test_numbers_that_are_tried():
    assert list_cluster_counts(3) == (1,)
    assert list_cluster_counts(130) == (1, 2, 4, 5)
    assert list_cluster_counts(10**6)[-1] == 64
    fits = fit_all(three(n=60), families=("spcauchy",), restarts=1)
    assert [f.clusters for f in fits] == [1, 2]


def test_a_component_at_the_cap_does_not_win():
    def fit(clusters, bic, degenerate):
        return Fit("pkbd", clusters, clusters, 1.0, bic, bic, True, degenerate, 9, None)

    fits = [fit(2, -50.0, 0), fit(3, -90.0, 1), fit(4, -50.0, 0)]
    assert choose_fit(fits).clusters == 2
    assert not fits[1].usable
    assert choose_fit(fits[1:2]).clusters == 3  # where there is no other


def test_what_converged_goes_before_what_did_not():
    def fit(clusters, bic, converged, degenerate=0):
        return Fit("pkbd", clusters, clusters, 1.0, bic, bic, converged, degenerate, 9, None)

    fits = [fit(2, -50.0, True), fit(3, -90.0, False), fit(4, -99.0, True, 1)]
    assert choose_fit(fits).clusters == 2
    assert choose_fit(fits[1:]).clusters == 3


def test_wrong_calls():
    X = three(n=20)
    with pytest.raises(UsageError, match="between 1 and the number of rows, 20"):
        fit_all(X, [2, 21])
    with pytest.raises(UsageError, match="between 1"):
        fit_all(X, [0])
    with pytest.raises(UnknownNameError, match="bic"):
        choose_fit(fit_all(X, [1], ["spcauchy"]), "aic")
    with pytest.raises(UsageError, match="none"):
        choose_fit([])
