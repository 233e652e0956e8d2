"""What swapping costs: how much of the clusters' likelihood the swapped chunks keep.

P1 (arXiv 2505.21128) section 2.5, equations (2.17) to (2.19). Log densities are with respect to the uniform measure
on the sphere: only there is the denominator the gain over a model that knows nothing, and U the share of it kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from allonym.errors import DataError, UsageError

__all__ = ["STAND_IN", "Utility", "utility"]

STAND_IN = "U = exp(D / (n d))"
"""What the flag of a utility says that is not the ratio of (2.18)."""

_Values = Sequence[float] | Any  # or a one-dimensional array


@dataclass(frozen=True, slots=True)
class Utility:
    """The utility of one release.

    Attributes:
        value: U of (2.19), or exp(D / (n d)) where the ratio would mislead; see ``flags``. Above 1 where the swapped
            chunks fit their clusters better than before.
        distance: D of (2.17), nats.
        per_chunk: D per swapped chunk, nats; 0 where none is swapped.
        changed: swapped chunks.
        kept: exp(D / (n d)), defined whatever l is: the likelihood kept, as a mean over chunks and dimensions.
        misleading: whether ``value`` is ``kept`` because the ratio would mislead.
        flags: remarks for a report.
    """

    value: float
    distance: float
    per_chunk: float
    changed: int
    kept: float = 1.0
    misleading: bool = False
    flags: tuple[str, ...] = ()


def utility(before: _Values, after: _Values, total: float, *, n: int, d: int) -> Utility:
    """U, D and D per swapped chunk.

    U = 1 + D / l holds only where l, the log-likelihood of all chunks given their clusters, is above 0 and above
    |D|. Elsewhere its sign or size says nothing, and U = exp(D / (n d)) stands in for it, which is monotone in D and
    1 at D = 0; a flag says so. The two scales do not compare: see :func:`allonym.swap.search.one_scale`.

    Args:
        before: log density of each swapped chunk under the component of its cluster, before the swap.
        after: the same chunks after it, under the same components.
        total: l(x|l) of (2.19), the sum of such log densities before the swap over all n chunks.
        n: chunks of the corpus.
        d: dimension of the embedding.

    Raises:
        UsageError: arrays of different lengths, more swapped chunks than n, or n or d below 1.
        DataError: a log density that is not finite, as of a component that has collapsed.
    """
    old, new = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    if old.ndim != 1 or old.shape != new.shape:
        raise UsageError(f"utility: two vectors of one length are required, got {old.shape} and {new.shape}")
    changed = len(old)
    if n < 1 or d < 1 or changed > n:
        raise UsageError(f"utility: n and d must be at least 1 and n at least {changed}, got n = {n}, d = {d}")
    distance = float((new - old).sum())
    if not (math.isfinite(distance) and math.isfinite(total)):
        raise DataError("utility: a log density is not finite; a component of the mixture may have collapsed")
    if not changed:
        return Utility(1.0, 0.0, 0.0, 0)
    flags = []
    if total <= 0:
        flags.append(f"the clusters fit no better than the uniform distribution: {STAND_IN}")
    elif abs(distance) >= total:
        flags.append(f"D exceeds the likelihood of the clusters: {STAND_IN}")
    misleading = bool(flags)
    kept = math.exp(min(distance / (n * d), 700.0))
    if distance > 0:
        flags.append("utility above 1")
    value = kept if misleading else 1 + distance / total
    return Utility(value, distance, distance / changed, changed, kept, misleading, tuple(flags))
