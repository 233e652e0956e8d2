"""Draws from the densities of :mod:`allonym.swap.density`, for benchmarks and tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from allonym.swap.density import Array, get_density_exponents

NODES = 8192
"""Nodes of each of the two grids on which a cosine is drawn by inversion."""


def sample_component(n: int, mean: ArrayLike, rho: float, family: str, rng: np.random.Generator) -> Array:
    """Draw ``n`` points from one component: float64 ``(n, d)``, unit rows.

    spcauchy uses the Moebius map of uniform points. pkbd draws the cosine by inversion of its distribution function on
    about 16,000 nodes, and the rest uniformly around the mean direction.
    """
    mu = np.asarray(mean, np.float64)
    mu = mu / np.linalg.norm(mu)
    get_density_exponents(family, len(mu))
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
