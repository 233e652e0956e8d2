"""The two densities of P1 on the unit sphere S^(d-1), against the uniform probability measure, and draws from them.

Poisson-kernel-based (2.1; Golzy and Markatou 2020, doi:10.1080/10618600.2020.1740713) and spherical Cauchy
(2.2; Kato and McCullagh 2020, doi:10.3150/20-BEJ1222), both with mean direction mu and concentration 0 <= rho < 1::

    log f = a log(1 - rho^2) - b log w,   w = 1 + rho^2 - 2 rho t,   t = mu'x
    pkbd: a = 1, b = d / 2     spcauchy: a = b = d - 1

They are the same density only on the circle, d = 2. With the uniform measure, log f is 0 everywhere at rho = 0.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from allonym.errors import UnknownNameError, UsageError

Array = NDArray[Any]

FAMILIES = ("spcauchy", "pkbd")
NODES = 8192
"""Nodes of each of the two grids on which a cosine is drawn by inversion."""


def get_exponents(family: str, d: int) -> tuple[float, float]:
    """Return (a, b) of the density in ``d`` dimensions.

    Raises:
        UnknownNameError: there is no such family.
        UsageError: d is below 2.
    """
    if family not in FAMILIES:
        raise UnknownNameError("mixture family", family, FAMILIES)
    if d < 2:
        raise UsageError(f"points on a sphere need at least 2 dimensions, got {d}")
    return (1.0, d / 2) if family == "pkbd" else (d - 1.0, d - 1.0)


def log_density(t: ArrayLike, rho: ArrayLike, d: int, family: str) -> Array:
    """Return the log density at cosine ``t`` to the mean direction; ``t`` and ``rho`` broadcast. Nats, uniform measure.

    log w is computed from w - 1 = rho (rho - 2 t) where that is small, else from (1 - rho)^2 + 2 rho (1 - t) with 1 - t
    clipped at 0: nothing cancels for weak or for strong concentration, and rounding in ``t`` does no harm.
    """
    a, b = get_exponents(family, d)
    rho, t = np.asarray(rho, np.float64), np.asarray(t, np.float64)
    less = rho * (rho - 2 * t)
    w = (1 - rho) ** 2 + 2 * rho * np.maximum(1 - t, 0)
    log_w = np.where(less > -0.5, np.log1p(np.maximum(less, -0.5)), np.log(w))
    log_rest = np.where(rho < 0.5, np.log1p(-(rho**2)), np.log1p(-rho) + np.log1p(rho))
    return np.asarray(a * log_rest - b * log_w)


def compute_log_sphere_area(d: int) -> float:
    """Return the log of the sphere's surface, log(2 pi^(d/2) / Gamma(d/2)).

    Subtract it from a log density to get the one with respect to the surface measure.
    """
    return float(np.log(2) + d / 2 * np.log(np.pi) - gammaln(d / 2))


def compute_mean_cosine(rho: ArrayLike, d: int, family: str) -> Array:
    """Return the expected cosine of a point to its mean direction, 0 to 1: how alike a component's members are.

    It is rho itself for pkbd (harmonic measure), and more for spcauchy, by quadrature over the angle.
    """
    get_exponents(family, d)
    rho = np.asarray(rho, np.float64)
    if family == "pkbd":
        return rho
    angle, weights = _get_gauss_nodes()
    with np.errstate(under="ignore"):
        weights = weights * np.exp((d - 2) * np.log(np.sin(angle)))
    s = np.cos(angle)  # a uniform point's cosine; the Moebius map that makes it spcauchy keeps the angle's other part
    r = rho[..., None]
    t = (1 - r**2) * (s + r) / (1 + r**2 + 2 * r * s) + r
    return np.asarray((t * weights).sum(-1) / weights.sum())


@cache
def _get_gauss_nodes() -> tuple[Array, Array]:
    x, weights = np.polynomial.legendre.leggauss(500)
    return (x + 1) * (np.pi / 2), weights


def sample_component(n: int, mean: ArrayLike, rho: float, family: str, rng: np.random.Generator) -> Array:
    """Draw ``n`` points from one component: float64 ``(n, d)``, unit rows.

    spcauchy uses the Moebius map of uniform points. pkbd draws the cosine by inversion of its distribution function on
    about 16,000 nodes, and the rest uniformly around the mean direction.
    """
    mu = np.asarray(mean, np.float64)
    mu = mu / np.linalg.norm(mu)
    get_exponents(family, len(mu))
    u = rng.standard_normal((n, len(mu)))
    if family == "spcauchy":
        u /= np.linalg.norm(u, axis=1, keepdims=True)
        centre = rho * mu
        shifted = u + centre
        out = (1 - rho**2) * shifted / np.einsum("ij,ij->i", shifted, shifted)[:, None] + centre
    else:
        angle = _sample_angles(n, rho, len(mu), rng)
        u -= np.outer(u @ mu, mu)
        u /= np.linalg.norm(u, axis=1, keepdims=True)
        out = np.cos(angle)[:, None] * mu + np.sin(angle)[:, None] * u
    return np.asarray(out / np.linalg.norm(out, axis=1, keepdims=True))


def sample_mixture(
    n: int, weights: ArrayLike, means: ArrayLike, rhos: ArrayLike, family: str, seed: int
) -> tuple[Array, Array]:
    """Draw ``n`` points from a mixture in random order: points ``(n, d)`` and their components ``(n,)``."""
    rng = np.random.default_rng(seed)
    share = np.asarray(weights, np.float64)
    labels = rng.choice(len(share), size=n, p=share / share.sum())
    means = np.asarray(means, np.float64)
    out = np.empty((n, means.shape[1]))
    for k, (mean, rho) in enumerate(zip(means, np.asarray(rhos, np.float64), strict=True)):
        chosen = labels == k
        out[chosen] = sample_component(int(chosen.sum()), mean, float(rho), family, rng)
    return out, labels


def _sample_angles(n: int, rho: float, d: int, rng: np.random.Generator) -> Array:
    # Evenly spaced nodes serve weak concentration, geometric ones the narrow peak at 0 of a strong one.
    grid = np.unique(np.concatenate([np.linspace(0, np.pi, NODES), np.geomspace(1e-9, np.pi, NODES)]))
    with np.errstate(divide="ignore"):
        log = (d - 2) * np.log(np.maximum(np.sin(grid), 0)) if d > 2 else np.zeros_like(grid)
    w = (1 - rho) ** 2 + 4 * rho * np.sin(grid / 2) ** 2
    log = log - d / 2 * np.log(w)
    height = np.exp(log - log.max())
    mass = np.concatenate([[0], np.cumsum((height[1:] + height[:-1]) / 2 * np.diff(grid))])
    return np.asarray(np.interp(rng.random(n) * mass[-1], mass, grid))
