"""What clusters must not show: covariates regressed out of the vectors, or restricting who gives entities to whom.

P1 2.2.1 names external covariates and the protected metadata itself; its section 4 adds industry and entity counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite, log1p, nan

import numpy as np
from numpy.typing import ArrayLike

from allonym.errors import UnknownNameError, UsageError
from allonym.swap.corpus import Corpus
from allonym.swap.density import Array
from allonym.swap.points import stretches, unit_rows

COUNTS = "entity counts"
PROTECTED = "protected"
KINDS = ("category", "number")


@dataclass(frozen=True, slots=True)
class Residual:
    """A linear effect of covariates on unit vectors, to be taken out of these and of later vectors of the same rows.

    Attributes:
        design: (n, q) covariates, centred; effect: (q, d) least-squares coefficients.
    """

    design: Array = field(repr=False)
    effect: Array = field(repr=False)

    def __call__(self, X: ArrayLike, rows: Sequence[int] | Array | None = None) -> Array:
        """Unit vectors without the covariates' effect, in the type of ``X``.

        Args:
            X: (m, d) unit rows.
            rows: (m,) which rows of the design they belong to, e.g. chunks after an exchange; None: all, in order.

        A vector that the covariates explain entirely, and the zero vector, stay as they are.
        """
        data, zeros = unit_rows(X)
        which = np.arange(len(self.design)) if rows is None else np.asarray(rows, np.intp)
        if len(which) != len(data):
            raise UsageError(f"one row of the design per vector is required: {len(data)} vectors, {len(which)} rows")
        out = np.empty_like(data)
        for part in stretches(len(data), data.shape[1]):
            old = data[part].astype(np.float64)
            rest = old - self.design[which[part]] @ self.effect
            length = np.linalg.norm(rest, axis=1, keepdims=True)
            good = (length > 1e-6) & ~zeros[part, None]
            out[part] = np.where(good, rest / np.where(good, length, 1), old)
        return out


def fit_residual(X: ArrayLike, Z: ArrayLike) -> Residual:
    """Least squares of unit vectors on covariates, with intercept; the mean of the vectors stays in them.

    Args:
        X: (n, d) unit rows. Z: (n, q) covariates; collinear columns do no harm.

    Raises:
        UsageError: the shapes do not fit, a covariate is not finite, or the covariates leave no row free: they explain
            everything.
    """
    data, _ = unit_rows(X)
    design = np.asarray(Z, np.float64)
    if design.ndim != 2 or len(design) != len(data):
        raise UsageError(f"covariates must have {len(data)} rows, got an array of shape {design.shape}")
    if not np.isfinite(design).all():
        raise UsageError("covariates must be finite")
    least = 1e-10 * np.abs(design).max(axis=0)
    design = design - design.mean(axis=0)
    spread = np.sqrt((design**2).mean(axis=0))
    varies = spread > least
    design = design[:, varies] / spread[varies]
    values, directions = np.linalg.eigh(design.T @ design)
    real = values > 1e-9 * max(1.0, float(len(design)))
    if int(real.sum()) >= len(design) - 1:
        raise UsageError(
            f"{int(real.sum())} independent covariates explain {len(design)} vectors entirely; "
            "fewer covariates, coarser ones or more chunks are required"
        )
    cross = np.zeros((design.shape[1], data.shape[1]))
    for part in stretches(len(data), data.shape[1]):
        cross += design[part].T @ data[part].astype(np.float64)
    base = directions[:, real]
    return Residual(design, base @ ((base.T @ cross) / values[real, None]))


def residualise(X: ArrayLike, Z: ArrayLike) -> Array:
    """``X`` (n, d) without the linear effect of ``Z`` (n, q): :func:`fit_residual` applied to its own data."""
    return fit_residual(X, Z)(X)


def design(corpus: Corpus, names: Sequence[str]) -> Array:
    """The covariates of each chunk as numbers: float64 ``(chunks, q)``.

    A name is

    - a metadata key: one column per value, or the number itself where every document's value is one; ``KEY:category``
      and ``KEY:number`` settle it. A missing value is its own category; a missing number is the mean, with a column
      that says so;
    - ``entity counts``: per category log(1 + entities of the chunk);
    - ``protected``: the protected class, one column per value.

    Raises:
        UnknownNameError: no document has such metadata.
        UsageError: a value of ``KEY:number`` is no number, or no name is given.
    """
    if not names:
        raise UsageError("at least one covariate is required, got none")
    places = np.array([c.document for c in corpus.chunks], np.intp)
    columns = [_counts(corpus) if name == COUNTS else _column(corpus, name)[places] for name in names]
    return np.concatenate(columns, axis=1)


def donor_groups(corpus: Corpus, key: str) -> tuple[str, ...]:
    """Per chunk, its document's value of a metadata key: entities are exchanged within a group only.

    Documents without the value are a group of their own, the empty string.

    Raises:
        UnknownNameError: no document has such metadata.
        UsageError: the key is the protected one: nothing could leave its class.
    """
    if key in (PROTECTED, corpus.protect) or key == COUNTS:
        raise UsageError(
            f"donors cannot be restricted by {key!r}; a metadata key coarser than {corpus.protect!r} is required"
        )
    values = ["" if v is None else str(v).strip() for v in _values(corpus, key)]
    return tuple(values[chunk.document] for chunk in corpus.chunks)


def _values(corpus: Corpus, key: str) -> list[object]:
    found = [d.meta.get(key) for d in corpus.documents]
    if all(v is None for v in found):
        raise UnknownNameError(
            "covariate", key, {COUNTS, PROTECTED} | {str(k) for d in corpus.documents for k in d.meta}
        )
    return found


def _column(corpus: Corpus, name: str) -> Array:
    # One row per document.
    if name == PROTECTED:
        return _one_hot(list(corpus.classes))
    key, _, kind = name.rpartition(":")
    if kind not in KINDS or any(name in d.meta for d in corpus.documents):
        key, kind = name, ""
    values = _values(corpus, key)
    numbers = [_number(v) for v in values]
    given = [x for x, v in zip(numbers, values, strict=True) if not _missing(v)]
    if kind == "category" or (not kind and not all(isfinite(x) for x in given)):
        return _one_hot(["" if v is None else str(v).strip() for v in values])
    if not given or not all(isfinite(x) for x in given):
        raise UsageError(f"covariate {name!r}: every value must be a number")
    mean = sum(given) / len(given)
    column = np.array([[x if isfinite(x) else mean] for x in numbers])
    absent = np.array([[float(_missing(v))] for v in values])
    return np.concatenate([column, absent], axis=1) if absent.any() else column


def _missing(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return nan
    try:
        return float(value)
    except ValueError:
        return nan


def _one_hot(values: Sequence[str]) -> Array:
    levels = sorted(set(values))
    at = {level: i for i, level in enumerate(levels)}
    out = np.zeros((len(values), len(levels)))
    out[np.arange(len(values)), [at[v] for v in values]] = 1
    return out


def _counts(corpus: Corpus) -> Array:
    names = [c for c, state in corpus.categories.items() if state != "change"]
    return np.array(
        [[log1p(sum(v.category == name for v in chunk.values)) for name in names] for chunk in corpus.chunks]
    )
