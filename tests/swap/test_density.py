"""The two densities against golden values, and draws from them."""

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.sphere import sample_component, sample_mixture

from allonym.errors import UnknownNameError, UsageError
from allonym.swap.density import FAMILIES, compute_log_density, compute_mean_cosine, get_density_exponents

GOLDEN = json.loads((Path(__file__).parent / "golden" / "mixture.json").read_text())


def test_point_values():
    assert len(GOLDEN["density"]) == 360
    for family, d, rho, t, value in GOLDEN["density"]:
        assert float(compute_log_density(t, rho, d, family)) == pytest.approx(value, rel=1e-10, abs=1e-300)


def test_mean_cosine():
    for row in GOLDEN["mean_cosine"]:
        assert float(compute_mean_cosine(row["rho"], row["d"], row["family"])) == pytest.approx(row["E_t"], rel=1e-10)


def test_mean_cosine_keeps_the_shape_and_rises():
    rho = np.array([[0.0, 0.2, 0.5], [0.7, 0.9, 0.99]])
    for family in FAMILIES:
        found = compute_mean_cosine(rho, 64, family)
        assert found.shape == rho.shape
        assert found[0, 0] == pytest.approx(0, abs=1e-12)
        assert (np.diff(found.ravel()) > 0).all()


def test_the_families_are_one_on_the_circle_only():
    t = np.linspace(-1, 1, 9)
    assert compute_log_density(t, 0.5, 2, "pkbd") == pytest.approx(
        compute_log_density(t, 0.5, 2, "spcauchy"), rel=1e-12
    )
    assert not np.allclose(compute_log_density(t, 0.5, 3, "pkbd"), compute_log_density(t, 0.5, 3, "spcauchy"))


def test_a_cosine_above_one_by_rounding_does_no_harm():
    for family in FAMILIES:
        at = compute_log_density(np.array([1.0, 1 + 1e-15, 1 + 1e-7]), 1 - 1e-9, 384, family)
        assert np.isfinite(at).all()
        assert at[0] == at[1] == at[2]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("d", [2, 3, 8, 64])
@pytest.mark.parametrize("rho", [0.0, 0.3, 0.9])
def test_draws_have_the_densitys_moments(family, d, rho):
    rng = np.random.default_rng(d)
    mu = np.zeros(d)
    mu[-1] = -2.0  # any length
    X = sample_component(20_000, mu, rho, family, rng)
    assert X.shape == (20_000, d)
    assert np.abs(np.linalg.norm(X, axis=1) - 1).max() < 1e-12
    t = -X[:, -1]
    assert abs(t.mean() - float(compute_mean_cosine(rho, d, family))) < 5 * t.std() / len(t) ** 0.5
    rest = X[:, :-1].mean(axis=0) * len(X) ** 0.5 / X[:, :-1].std(axis=0)
    assert np.abs(rest).max() < 5
    # The density of draws, tilted back, integrates to one: E[1 / f] = 1 where f is not too small.
    if rho < 0.5 and d <= 8:
        inverse = np.exp(-compute_log_density(t, rho, d, family))
        assert abs(inverse.mean() - 1) <= 5 * inverse.std() / len(t) ** 0.5 + 1e-12


def test_a_mixtures_draws():
    means = np.eye(6)[:3]
    X, z = sample_mixture(6000, [0.5, 0.3, 0.2], means, [0.9, 0.8, 0.7], "pkbd", 4)
    again, _ = sample_mixture(6000, [0.5, 0.3, 0.2], means, [0.9, 0.8, 0.7], "pkbd", 4)
    assert (again == X).all()
    assert np.bincount(z) / 6000 == pytest.approx([0.5, 0.3, 0.2], abs=0.03)
    for k, rho in enumerate([0.9, 0.8, 0.7]):
        assert (X[z == k] @ means[k]).mean() == pytest.approx(rho, abs=0.02)


def test_what_does_not_exist():
    with pytest.raises(UnknownNameError, match="spcauchy"):
        get_density_exponents("spcauch", 3)
    with pytest.raises(UsageError, match="2 dimensions"):
        get_density_exponents("pkbd", 1)
