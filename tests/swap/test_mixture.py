"""The mixture against golden values, and its manners."""

import json
import pickle
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from benchmarks.sphere import sample_mixture
from sklearn.base import clone
from tests.rows import check_each_row

from allonym.errors import DataError, UnknownNameError, UsageError
from allonym.swap.density import FAMILIES, compute_log_density, compute_mean_cosine
from allonym.swap.mixture import SphericalMixture, compute_criteria

FOLDER = Path(__file__).parent / "golden"
GOLDEN = json.loads((FOLDER / "mixture.json").read_text())
STARTS = np.load(FOLDER / "starts.npz")


def points(name):
    return np.load(FOLDER / f"{name}_X.npy")


def three(n=900, d=8, family="spcauchy", seed=5):
    return sample_mixture(n, [0.5, 0.3, 0.2], np.eye(d)[:3], [0.7, 0.6, 0.8], family, seed)


@check_each_row("case", GOLDEN["one"])
def test_one_component(case):
    X = points(case["data"])
    fit = SphericalMixture(1, family=case["family"], restarts=1, tol=1e-13, max_iter=500).fit(X)
    assert fit.converged_
    assert fit.log_likelihood_ == pytest.approx(case["loglik"], rel=1e-8)
    assert fit.rhos_[0] == pytest.approx(case["rho"], rel=1e-6)
    assert fit.means_[0, :4] == pytest.approx(case["mu_first4"], abs=1e-5)
    assert fit.weights_.tolist() == [1.0]


@check_each_row("case", GOLDEN["starts"])
def test_deterministic_starts(case):
    X = points(case["data"])
    fit = SphericalMixture(case["K"], family=case["family"], tol=1e-13, max_iter=500)
    fit.fit(X, labels=STARTS[case["start_labels"]].astype(int))
    trace = fit.trace_
    assert trace[0] == pytest.approx(case["loglik_first_estep"], rel=1e-9)
    assert trace[1] == pytest.approx(case["loglik_second"], rel=1e-9)
    assert trace[min(9, len(trace) - 1)] == pytest.approx(case["loglik_10"], rel=1e-9)
    assert fit.log_likelihood_ == pytest.approx(case["loglik_final"], rel=1e-9)
    assert trace[-1] == pytest.approx(fit.log_likelihood_, rel=1e-12)
    assert (np.diff(trace) > -1e-9).all()
    order = np.argsort(-np.array(case["weights"]))
    assert fit.weights_ == pytest.approx(np.array(case["weights"])[order], rel=1e-4)
    assert fit.rhos_ == pytest.approx(np.array(case["rho"])[order], rel=1e-4)


@pytest.mark.parametrize("start", ["both", "soft", "k-means++"])
@pytest.mark.parametrize("case", GOLDEN["mixtures"], ids=lambda c: f"{c['data']}-{c['K']}")
def test_best_known_mixtures(case, start):
    X = points(case["data"])
    fit = SphericalMixture(case["K"], family=case["family"], min_weight=0.05, start=start, restarts=8, tol=1e-9).fit(X)
    assert fit.log_likelihood_ > case["at_least_minus_0p1pct"]
    assert fit.log_likelihood_ < case["best_loglik"] * (1 + 1e-6)
    order = np.argsort(-np.array(case["weights"]))
    assert fit.weights_ == pytest.approx(np.array(case["weights"])[order], abs=2e-3)
    assert fit.rhos_ == pytest.approx(np.array(case["rho"])[order], abs=2e-3)
    assert np.abs(np.bincount(fit.labels_) - np.array(case["hard_sizes"])[order]).max() <= 2
    assert fit.component_log_density(X, fit.labels_).sum() == pytest.approx(case["cond_loglik_hard"], rel=5e-3)


def test_predictions_agree_with_one_another():
    X, _ = three()
    fit = SphericalMixture(3).fit(X)
    logs = np.log(fit.weights_) + compute_log_density(X @ fit.means_.T, fit.rhos_, 8, "spcauchy")
    whole = np.logaddexp.reduce(logs, axis=1)
    assert fit.score_samples(X) == pytest.approx(whole, rel=1e-9, abs=1e-9)
    assert fit.score(X) == pytest.approx(whole.mean())
    assert fit.log_likelihood_ == pytest.approx(whole.sum())
    assert fit.predict_proba(X) == pytest.approx(np.exp(logs - whole[:, None]), abs=1e-9)
    assert (fit.predict(X) == logs.argmax(axis=1)).all()
    assert (fit.predict(X) == fit.labels_).all()
    for k in range(3):
        found = fit.component_log_density(X, np.full(len(X), k))
        assert found == pytest.approx(logs[:, k] - np.log(fit.weights_[k]), rel=1e-9, abs=1e-9)
    assert fit.cosines_ == pytest.approx(compute_mean_cosine(fit.rhos_, 8, "spcauchy"))
    assert fit.predict(X[:1] * 17.0) == fit.predict(X[:1])  # any length


@pytest.mark.parametrize("family", FAMILIES)
def test_it_finds_what_was_drawn(family):
    X, z = three(family=family)
    fit = SphericalMixture(3, family=family).fit(X)
    assert fit.converged_ and fit.warnings_ == ()
    assert np.abs(fit.means_ @ np.eye(8)[:3].T).max(axis=1) == pytest.approx(np.ones(3), abs=0.01)
    assert fit.rhos_ == pytest.approx([0.7, 0.6, 0.8], abs=0.04)
    assert (fit.labels_ == z).mean() > 0.9


def test_criteria():
    X, _ = three()
    fit = SphericalMixture(3).fit(X)
    share = fit.predict_proba(X)
    entropy = -(share * np.log(np.maximum(share, 1e-300))).sum()
    assert fit.n_parameters == 3 * 8 + 2
    assert fit.bic(X) == pytest.approx(-2 * fit.log_likelihood_ + 26 * np.log(len(X)))
    assert fit.icl(X) == pytest.approx(fit.bic(X) + 2 * entropy)
    assert compute_criteria(fit, X) == pytest.approx((fit.log_likelihood_, fit.bic(X), fit.icl(X)))


def test_seeds_and_scikit_learns_manner():
    X, _ = three(n=400)
    fit = SphericalMixture(5, seed=3)
    labels = fit.fit_predict(X)
    other = clone(fit).fit(X)
    assert other.get_params() == fit.get_params()
    assert (other.means_ == fit.means_).all() and (other.labels_ == labels).all()
    again = pickle.loads(pickle.dumps(fit))
    assert (again.predict(X) == labels).all()
    assert (fit.weights_[:-1] >= fit.weights_[1:]).all()
    seeds = {SphericalMixture(5, restarts=1, seed=s, max_iter=3).fit(X).log_likelihood_ for s in range(4)}
    assert len(seeds) == 4


@pytest.mark.parametrize("family", FAMILIES)
def test_single_precision(family):
    X, _ = three(n=3000, d=64, family=family)
    labels = np.arange(3000) % 3
    double = SphericalMixture(3, family=family).fit(X, labels=labels)
    single = SphericalMixture(3, family=family).fit(X.astype(np.float32), labels=labels)
    told = SphericalMixture(3, family=family, dtype="float32").fit(X, labels=labels)
    assert single.trace_[0] == pytest.approx(double.trace_[0], rel=2e-6)
    assert single.log_likelihood_ == pytest.approx(double.log_likelihood_, rel=5e-6)
    assert (single.trace_ == told.trace_).all()
    assert single.means_.dtype == single.component_log_density(X, single.labels_).dtype == np.float64
    assert (single.labels_ == double.labels_).mean() > 0.999


def test_a_fit_holds_no_table_of_posteriors():
    X, _ = three(n=80_000, d=16)
    X = X.astype(np.float32)
    labels = np.arange(len(X)) % 100
    tracemalloc.start()
    try:
        fit = SphericalMixture(100, max_iter=1, min_size=0).fit(X, labels=labels)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert fit.n_iter_ == 1
    assert peak < len(X) * 100 * 4 / 2


def test_a_sample_settles_the_start_of_large_data(monkeypatch):
    from allonym.swap import mixture

    X, z = three(n=6000)
    monkeypatch.setattr(mixture, "SAMPLE", 700)
    fit = SphericalMixture(3, restarts=2).fit(X)
    assert fit.converged_
    assert (fit.labels_ == z).mean() > 0.95
    assert fit.log_likelihood_ == pytest.approx(SphericalMixture(3).fit(X, labels=z).log_likelihood_, rel=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_batches(family):
    X, z = three(n=3000, family=family)
    fit = SphericalMixture(3, family=family, batch_size=400, restarts=2).fit(X)
    assert fit.converged_
    assert (fit.labels_ == z).mean() > 0.9
    full = SphericalMixture(3, family=family, restarts=2).fit(X)
    assert fit.log_likelihood_ == pytest.approx(full.log_likelihood_, rel=1e-3)
    again = SphericalMixture(3, family=family, batch_size=400, restarts=2).fit(X)
    assert (again.means_ == fit.means_).all()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("copies", ["once", "count"])
def test_all_points_alike(family, dtype, copies):
    X = np.tile(np.array([[1.0, 2, 2, 4]]), (60, 1))
    fit = SphericalMixture(5, family=family, dtype=dtype, copies=copies).fit(X)
    assert fit.converged_
    assert fit.weights_.tolist() == [1.0]
    assert fit.degenerate_.tolist() == [True]
    assert fit.means_[0] == pytest.approx([0.2, 0.4, 0.4, 0.8], abs=1e-6)
    assert np.isfinite(fit.log_likelihood_)
    assert any("at its cap" in w for w in fit.warnings_)
    assert any("copies of others" in w for w in fit.warnings_) == (copies == "once")
    assert set(fit.predict(X).tolist()) == {0}


@pytest.mark.parametrize("family", FAMILIES)
def test_repeated_rows(family):
    """15 of 200 points are one: spheroids 0.4.0 then has NaN everywhere."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((200, 24))
    X[:15] = X[0]
    once = SphericalMixture(3, family=family).fit(X)
    assert np.isfinite(once.log_likelihood_) and not once.degenerate_.any()
    assert len(set(once.labels_[:15].tolist())) == 1
    count = SphericalMixture(3, family=family, copies="count").fit(X)
    assert np.isfinite(count.log_likelihood_)
    assert np.isfinite(count.means_).all()


def test_degenerate_components_are_flagged():
    """Four points that nearly coincide, far from all others."""
    X, _ = three(n=200, d=40, family="pkbd")
    rng = np.random.default_rng(0)
    near = np.eye(40)[39] + 1e-4 * rng.standard_normal((4, 40))
    X = np.vstack([X, near])
    fit = SphericalMixture(4, family="pkbd", max_rho=0.999, restarts=1).fit(
        X, labels=[*(np.arange(200) % 3), 3, 3, 3, 3]
    )
    assert fit.degenerate_.sum() == 1
    assert fit.rhos_[fit.degenerate_].tolist() == [0.999]
    assert any("at its cap" in w for w in fit.warnings_)
    assert any("fewer effective points than dimensions" in w for w in fit.warnings_)


def test_small_components_are_dropped():
    X, _ = three()
    fit = SphericalMixture(12, min_weight=0.1).fit(X)
    assert 2 <= len(fit.weights_) <= 5
    assert fit.weights_.min() > 0.09
    assert any("were dropped" in w for w in fit.warnings_)
    assert SphericalMixture(12, min_size=200).fit(X).weights_.min() * 900 > 190


def test_rows_of_zeros_count_for_nothing():
    X, _ = three(n=300)
    with_zeros = np.vstack([X, np.zeros((7, 8))])
    labels = np.arange(307) % 3
    plain = SphericalMixture(3).fit(X, labels=labels[:300])
    fit = SphericalMixture(3).fit(with_zeros, labels=labels)
    assert fit.log_likelihood_ == pytest.approx(plain.log_likelihood_, rel=1e-9)
    assert len(fit.labels_) == 307
    assert np.isfinite(fit.score_samples(with_zeros)).all()
    assert any(w.startswith("7 of 307 rows are zero") for w in fit.warnings_)


def test_a_run_that_does_not_converge_says_so():
    X, _ = three()
    fit = SphericalMixture(3, max_iter=2, restarts=1).fit(X)
    assert not fit.converged_
    assert "EM did not converge in 2 iterations" in fit.warnings_
    assert fit.log_likelihood_ > fit.trace_[-1]  # of the parameters after the last step


@check_each_row(
    "settings, message",
    [
        ({"n_components": 0}, "n_components must be at least 1, got 0"),
        ({"n_components": 21}, "at most the number of rows, 20; got 21"),
        ({"restarts": 0}, "restarts"),
        ({"max_iter": 0}, "max_iter"),
        ({"min_weight": 1.5}, "min_weight"),
        ({"min_size": -1}, "min_size"),
        ({"max_rho": 1.0}, "max_rho"),
        ({"batch_size": 0}, "batch_size"),
        ({"tol": -1}, "tol"),
        ({"dtype": "int8"}, "dtype"),
    ],
)
def test_wrong_settings(settings, message):
    X, _ = three(n=20)
    with pytest.raises(UsageError, match=message):
        SphericalMixture(**{"n_components": 2, **settings}).fit(X)


def test_wrong_calls():
    X, _ = three(n=20)
    for settings in ({"family": "vmf"}, {"start": "hard"}, {"copies": "twice"}):
        with pytest.raises(UnknownNameError):
            SphericalMixture(2, **settings).fit(X)
    fit = SphericalMixture(2)
    with pytest.raises(UsageError, match="not fitted"):
        fit.predict(X)
    with pytest.raises(DataError, match="all rows are zero"):
        fit.fit(np.zeros((4, 3)))
    for labels in ([0, 1], np.zeros(20), np.full(20, 2), np.full(20, -1)):
        with pytest.raises(UsageError, match="labels"):
            fit.fit(X, labels=labels)
    fit.fit(X)
    with pytest.raises(UsageError, match="8 columns"):
        fit.predict(X[:, :5])
    with pytest.raises(UsageError, match="labels"):
        fit.component_log_density(X, np.zeros(3, int))
