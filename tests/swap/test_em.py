"""One step of expectation and maximisation, and what keeps a run sound."""

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.sphere import sample_mixture
from hypothesis import given
from hypothesis import strategies as st

from allonym.swap import rows
from allonym.swap.density import FAMILIES, compute_log_density, get_density_exponents
from allonym.swap.em import (
    Limits,
    Parameters,
    Sums,
    compute_expectation_sums,
    draw_kmeans_labels,
    draw_random_labels,
    estimate_from_labels,
    iterate_log_joint_densities,
    map_to_first_equal_component,
    mark_kept_components,
    run_em,
    run_maximisation_step,
    run_stepwise_em,
    solve_concentration,
)
from allonym.swap.rows import Rows, Shard

GOLDEN = json.loads((Path(__file__).parent / "golden" / "mixture.json").read_text())
CAP = 1 - 1e-6


def some(family="spcauchy", n=700, d=6, seed=3):
    means = np.eye(d)[:3]
    X, z = sample_mixture(n, [0.5, 0.3, 0.2], means, [0.6, 0.5, 0.7], family, seed)
    return X, z, Parameters(np.array([0.4, 0.4, 0.2]), means, np.array([0.3, 0.6, 0.5]))


@pytest.mark.parametrize("case", GOLDEN["weighted"], ids=lambda c: c["family"])
def test_weighted_points(case):
    X, weight = np.array(case["X"]), np.array(case["weights"])
    now = Parameters(np.ones(1), np.array([case["start_mu"]], float), np.array([case["start_rho"]]))
    now = run_maximisation_step(compute_expectation_sums(Shard(X, weight), now, case["family"]), case["family"], CAP)
    assert now.means[0] == pytest.approx(case["one_mm_step"]["mu"], rel=1e-9)
    assert now.rhos[0] == pytest.approx(case["one_mm_step"]["rho"], rel=1e-9)
    end = run_em(Rows(X, weight), now, case["family"], Limits(500, 1e-15, 0, CAP))
    assert end.parameters.means[0] == pytest.approx(case["mle"]["mu"], rel=1e-6)
    assert end.parameters.rhos[0] == pytest.approx(case["mle"]["rho"], rel=1e-6)
    assert end.trace[-1] == pytest.approx(case["mle"]["wloglik"], rel=1e-8)


@pytest.mark.parametrize("family", FAMILIES)
def test_an_expectation_step_is_what_it_says(family):
    X, _, now = some(family)
    weight = np.random.default_rng(0).random(len(X))
    t = X @ now.means.T
    logs = np.log(now.weights) + compute_log_density(t, now.rhos, 6, family)
    total = np.logaddexp.reduce(logs, axis=1)
    share = np.exp(logs - total[:, None]) * weight[:, None]
    v = share / (1 + now.rhos**2 - 2 * now.rhos * t)
    sums = compute_expectation_sums(Shard(X, weight), now, family)
    assert sums.log_likelihood == pytest.approx(total @ weight, rel=1e-12)
    assert sums.size == pytest.approx(share.sum(axis=0), rel=1e-12)
    assert sums.shrunk == pytest.approx(v.sum(axis=0), rel=1e-12)
    assert sums.pull == pytest.approx(v.T @ X, rel=1e-9, abs=1e-9)
    for part, log in iterate_log_joint_densities(X, now, family):
        assert pytest.approx(logs[part], rel=1e-10, abs=1e-10) == log.T


def test_the_length_of_a_stretch_changes_nothing(monkeypatch):
    X, z, now = some()
    whole, labelled = (
        compute_expectation_sums(Shard(X), now, "spcauchy"),
        compute_expectation_sums(Shard(X), now, "spcauchy", z),
    )
    monkeypatch.setattr(rows, "ROOM", 1)
    parts, labelled_parts = (
        compute_expectation_sums(Shard(X), now, "spcauchy"),
        compute_expectation_sums(Shard(X), now, "spcauchy", z),
    )
    for a, b in ((whole, parts), (labelled, labelled_parts)):
        assert a.log_likelihood == pytest.approx(b.log_likelihood, rel=1e-12)
        assert a.pull == pytest.approx(b.pull, rel=1e-9, abs=1e-9)
        assert a.size == pytest.approx(b.size, rel=1e-12)


def test_sums_are_additive():
    X, _, now = some()
    whole, left, right = (compute_expectation_sums(Shard(x), now, "pkbd") for x in (X, X[:200], X[200:]))
    assert whole.log_likelihood == pytest.approx(left.log_likelihood + right.log_likelihood)
    assert whole.pull == pytest.approx(left.pull + right.pull)


@given(
    st.sampled_from(FAMILIES),
    st.integers(2, 1000),
    st.floats(1e-3, 1e6),
    st.floats(0, 1),
    st.floats(-3, 9).map(lambda e: 10**e),
)
def test_the_concentration_is_the_root(family, d, size, share, spread):
    a, b = get_density_exponents(family, d)
    shrunk = size * spread
    length = share * shrunk
    rho = float(solve_concentration(np.array([size]), np.array([shrunk]), np.array([length]), (a, b), CAP)[0])

    def g(r):
        return a * size * r / (1 - r**2) + b * (shrunk * r - length)

    assert 0 <= rho <= CAP
    if rho == CAP:
        assert g(CAP) <= 1e-9 * (1 + b * length)
    else:
        assert abs(g(rho)) <= 1e-9 * (a * size + b * length)


@given(st.sampled_from(FAMILIES), st.integers(0, 10**6), st.integers(1, 5), st.integers(2, 12))
def test_the_likelihood_never_falls(family, seed, k, d):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, d)) + rng.standard_normal(d)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    start = estimate_from_labels(Rows(X), draw_random_labels(60, k, rng), k, family, CAP)
    run = run_em(Rows(X), start, family, Limits(25, 0.0, 1e-3, CAP))
    if not run.dropped and not run.merged:
        assert (np.diff(run.trace) >= -1e-9 * (1 + np.abs(run.trace[1:]))).all()
    assert run.parameters.weights.sum() == pytest.approx(1)
    assert np.linalg.norm(run.parameters.means, axis=1) == pytest.approx(np.ones(len(run.parameters.rhos)))


def test_opposite_points_have_no_direction():
    X = np.array([[1.0, 0, 0], [-1.0, 0, 0], [0, 1.0, 0], [0, -1.0, 0]])
    start = estimate_from_labels(Rows(X), np.zeros(4, int), 1, "pkbd", CAP)
    assert start.rhos[0] == pytest.approx(0, abs=1e-12)
    run = run_em(Rows(X), start, "pkbd", Limits(50, 1e-12, 1e-3, CAP))
    assert run.converged and run.trace[-1] == pytest.approx(0, abs=1e-9)


def test_dropping_is_gradual_and_leaves_one():
    assert mark_kept_components(np.array([5.0, 6, 7]), 2).all()
    keep = mark_kept_components(np.arange(1.0, 9), 100)
    assert keep.tolist() == [False, False] + [True] * 6
    assert mark_kept_components(np.array([1.0]), 100).tolist() == [True]
    assert mark_kept_components(np.array([0.0, 0, 0, 50]), 2).tolist() == [False, False, False, True]


def test_a_high_least_size_does_not_end_in_one_component():
    """30 components of at least 5 %: dropping all that are too small at once would leave none."""
    X, _ = sample_mixture(2000, np.ones(8), np.eye(16)[:8], [0.7] * 8, "spcauchy", 1)
    start = estimate_from_labels(Rows(X), draw_kmeans_labels(X, 30, np.random.default_rng(0)), 30, "spcauchy", CAP)
    run = run_em(Rows(X), start, "spcauchy", Limits(300, 1e-7, 0.05 * 2000, CAP))
    assert 6 <= len(run.parameters.rhos) <= 12


def test_equal_components_are_found_and_merged():
    means = np.eye(4)[[0, 1, 0, 2, 1]]
    now = Parameters(np.full(5, 0.2), means, np.array([0.5, 0.5, 0.5 + 1e-4, 0.5, 0.9]))
    assert map_to_first_equal_component(now).tolist() == [0, 1, 0, 3, 4]
    sums = Sums(-1.0, np.arange(5.0), np.arange(5.0) + 1, np.outer(np.arange(5.0), np.ones(4)))
    one = sums.merge_components(map_to_first_equal_component(now))
    assert one.size.tolist() == [2, 1, 3, 4]
    assert one.shrunk.tolist() == [4, 2, 4, 5]
    assert one.pull[:, 0].tolist() == [2, 1, 3, 4]


def test_equal_starts_are_merged():
    X, _, _ = some()
    now = Parameters(np.full(2, 0.5), np.eye(6)[[0, 0]], np.array([0.5, 0.5]))
    run = run_em(Rows(X), now, "spcauchy", Limits(300, 1e-10, 1e-3, CAP))
    alone = run_em(Rows(X), now.select_components(np.array([0])), "spcauchy", Limits(300, 1e-10, 1e-3, CAP))
    assert run.merged == 1 and len(run.parameters.rhos) == 1
    assert run.trace[-1] == pytest.approx(alone.trace[-1], rel=1e-9)


def test_starts():
    rng = np.random.default_rng(0)
    assert np.bincount(draw_random_labels(10, 4, rng), minlength=4).tolist() == [3, 3, 2, 2]
    X, z, _ = some(n=300)
    labels = draw_kmeans_labels(X, 3, rng)
    assert set(labels.tolist()) == {0, 1, 2}
    weight = (z == 1).astype(float)  # rows that count for nothing are no centres
    centred = draw_kmeans_labels(X, 2, rng, weight)
    assert set(centred.tolist()) == {0, 1}
    assert set(draw_kmeans_labels(np.tile(X[:1], (5, 1)), 4, rng).tolist()) == {0}


@pytest.mark.parametrize("family", FAMILIES)
def test_batches_come_to_the_same_maximum(family):
    X, z, _ = some(family, n=6000)
    limits = Limits(60, 1e-7, 2, CAP)
    rough = np.where(np.random.default_rng(1).random(6000) < 0.6, z, (z + 1) % 3)
    start = estimate_from_labels(Rows(X), rough, 3, family, CAP)
    full = run_em(Rows(X), start, family, limits)
    batched = run_stepwise_em(Rows(X), start, family, limits, np.random.default_rng(0), 500)
    assert batched.converged
    assert len(batched.parameters.rhos) == 3
    assert batched.trace[-1] == pytest.approx(full.trace[-1], rel=2e-3)


def test_batches_drop_and_merge():
    X, _, _ = some(n=4000)
    start = estimate_from_labels(Rows(X), draw_random_labels(4000, 8, np.random.default_rng(0)), 8, "spcauchy", CAP)
    run = run_stepwise_em(Rows(X), start, "spcauchy", Limits(40, 1e-7, 400, CAP), np.random.default_rng(0), 300)
    assert run.dropped >= 3
    assert (run.parameters.weights * 4000 > 300).all()
    same = Parameters(np.full(3, 1 / 3), np.eye(6)[[0, 0, 1]], np.full(3, 0.5))
    assert (
        run_stepwise_em(Rows(X), same, "spcauchy", Limits(5, 1e-7, 2, CAP), np.random.default_rng(0), 300).merged == 1
    )
