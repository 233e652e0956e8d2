"""The two densities of P1 on the unit sphere S^(d-1), against the uniform probability measure.

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

from allonym.errors import UnknownNameError, UsageError

Array = NDArray[Any]
Exponents = tuple[float, float]
"""a and b of a density."""

FAMILIES = ("spcauchy", "pkbd")


def get_density_exponents(family: str, d: int) -> Exponents:
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


def compute_log_density(t: ArrayLike, rho: ArrayLike, d: int, family: str) -> Array:
    """Return the log density at cosine ``t`` to the mean direction; ``t`` and ``rho`` broadcast. Nats, uniform measure.

    log w is computed from w - 1 = rho (rho - 2 t) where that is small, else from (1 - rho)^2 + 2 rho (1 - t) with 1 - t
    clipped at 0: nothing cancels for weak or for strong concentration, and rounding in ``t`` does no harm.
    """
    a, b = get_density_exponents(family, d)
    rho, t = np.asarray(rho, np.float64), np.asarray(t, np.float64)
    less = rho * (rho - 2 * t)
    w = (1 - rho) ** 2 + 2 * rho * np.maximum(1 - t, 0)
    log_w = np.where(less > -0.5, np.log1p(np.maximum(less, -0.5)), np.log(w))
    log_rest = np.where(rho < 0.5, np.log1p(-(rho**2)), np.log1p(-rho) + np.log1p(rho))
    return np.asarray(a * log_rest - b * log_w)


def compute_mean_cosine(rho: ArrayLike, d: int, family: str) -> Array:
    """Return the expected cosine of a point to its mean direction, 0 to 1: how alike a component's members are.

    It is rho itself for pkbd (harmonic measure), and more for spcauchy, by quadrature over the angle.
    """
    get_density_exponents(family, d)
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
