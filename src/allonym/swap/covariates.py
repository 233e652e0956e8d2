"""Covariates that clusters must not show: regressed out of the vectors, or restricting who exchanges with whom.

P1 2.2.1 names external covariates and the protected metadata itself; its section 4 adds industry and entity counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite, log1p, nan

import numpy as np
from numpy.typing import ArrayLike

from allonym.errors import UnknownNameError, UsageError
from allonym.swap.corpus import Corpus
from allonym.swap.density import Array
from allonym.swap.rows import iterate_row_slices, to_unit_rows

COUNTS = "entity counts"
PROTECTED = "protected"
KINDS = ("category", "number")


@dataclass(frozen=True, slots=True)
class Residual:
    """A linear effect of covariates on unit vectors, to be removed from these and from later vectors of the same rows.

    Attributes:
        design: (n, q) covariates, centred; effect: (q, d) least-squares coefficients.
    """

    design: Array = field(repr=False)
    effect: Array = field(repr=False)

    def __call__(self, X: ArrayLike, rows: Sequence[int] | Array | None = None) -> Array:
        """Return unit vectors without the covariates' effect, in the type of ``X``.

        Args:
            X: (m, d) unit rows.
            rows: (m,) rows of the design that they belong to, e.g. chunks after an exchange; None: all, in order.

        A vector that the covariates explain entirely, and the zero vector, stay as they are.
        """
        data, zeros = to_unit_rows(X)
        numbers = np.arange(len(self.design)) if rows is None else np.asarray(rows, np.intp)
        if len(numbers) != len(data):
            raise UsageError(f"one row of the design per vector is required: {len(data)} vectors, {len(numbers)} rows")
        out = np.empty_like(data)
        for block in iterate_row_slices(len(data), data.shape[1]):
            old = data[block].astype(np.float64)
            rest = old - self.design[numbers[block]] @ self.effect
            length = np.linalg.norm(rest, axis=1, keepdims=True)
            good = (length > 1e-6) & ~zeros[block, None]
            out[block] = np.where(good, rest / np.where(good, length, 1), old)
        return out


def fit_residual(X: ArrayLike, Z: ArrayLike) -> Residual:
    """Fit unit vectors on covariates by least squares, with intercept; the mean of the vectors stays in them.

    Args:
        X: (n, d) unit rows. Z: (n, q) covariates; collinear columns do no harm.

    Raises:
        UsageError: the shapes do not fit, a covariate is not finite, or the covariates leave no row free: they explain
            everything.
    """
    data, _ = to_unit_rows(X)
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
    for block in iterate_row_slices(len(data), data.shape[1]):
        cross += design[block].T @ data[block].astype(np.float64)
    base = directions[:, real]
    return Residual(design, base @ ((base.T @ cross) / values[real, None]))


def build_design_matrix(corpus: Corpus, names: Sequence[str]) -> Array:
    """Return the covariates of each chunk as numbers: float64 ``(chunks, q)``.

    A name is

    - a metadata key: one column per value, or the number itself if every document's value is a number; ``KEY:category``
      and ``KEY:number`` choose one of both. A missing value is its own category; a missing number is the mean, with a
      column that marks it;
    - ``entity counts``: per category log(1 + entities of the chunk);
    - ``protected``: the protected class, one column per value.

    Raises:
        UnknownNameError: no document has such metadata.
        UsageError: a value of ``KEY:number`` is not a number, or no name is given.
    """
    if not names:
        raise UsageError("at least one covariate is required, got none")
    places = np.array([c.document for c in corpus.chunks], np.intp)
    columns = [
        _compute_log_counts_by_chunk_and_category(corpus) if name == COUNTS else _make_column(corpus, name)[places]
        for name in names
    ]
    return np.concatenate(columns, axis=1)


def list_donor_group_by_chunk(corpus: Corpus, key: str) -> tuple[str, ...]:
    """Return per chunk its document's value of a metadata key: entities are exchanged within such a group only.

    Documents without the value form a group, the empty string.

    Raises:
        UnknownNameError: no document has such metadata.
        UsageError: the key is the protected one: nothing could leave its class.
    """
    if key in (PROTECTED, corpus.protect) or key == COUNTS:
        coarser = f"a metadata key coarser than {corpus.protect!r} is required"
        raise UsageError(f"donors cannot be restricted by {key!r}; {coarser}")
    values = _to_strings(_read_metadata(corpus, key))
    return tuple(values[chunk.document] for chunk in corpus.chunks)


def _to_strings(values: Sequence[object]) -> list[str]:
    return ["" if v is None else str(v).strip() for v in values]


def _read_metadata(corpus: Corpus, key: str) -> list[object]:
    values = [d.meta.get(key) for d in corpus.documents]
    if all(v is None for v in values):
        keys = {str(k) for d in corpus.documents for k in d.meta}
        raise UnknownNameError("covariate", key, {COUNTS, PROTECTED} | keys)
    return values


def _make_column(corpus: Corpus, name: str) -> Array:
    # One row per document.
    if name == PROTECTED:
        return encode_one_hot(list(corpus.classes))
    key, _, kind = name.rpartition(":")
    if kind not in KINDS or any(name in d.meta for d in corpus.documents):
        key, kind = name, ""
    values = _read_metadata(corpus, key)
    numbers = [_parse_number(v) for v in values]
    present = [x for x, v in zip(numbers, values, strict=True) if not _is_missing(v)]
    if kind == "category" or (not kind and not all(isfinite(x) for x in present)):
        return encode_one_hot(_to_strings(values))
    if not present or not all(isfinite(x) for x in present):
        raise UsageError(f"covariate {name!r}: every value must be a number")
    mean = sum(present) / len(present)
    column = np.array([[x if isfinite(x) else mean] for x in numbers])
    absent = np.array([[float(_is_missing(v))] for v in values])
    return np.concatenate([column, absent], axis=1) if absent.any() else column


def _is_missing(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _parse_number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return nan
    try:
        return float(value)
    except ValueError:
        return nan


def encode_one_hot(values: Sequence[str], value_of_hit: float = 1.0, *, empty: bool = True) -> Array:
    """Return float64 ``(len(values), levels)``: ``value_of_hit`` in the column of each value, columns in sorted order.

    Args:
        empty: whether the empty string has a column; else its rows are zero.
    """
    columns = {value: i for i, value in enumerate(sorted({v for v in values if v or empty}))}
    out = np.zeros((len(values), len(columns)))
    for row, value in enumerate(values):
        if value in columns:
            out[row, columns[value]] = value_of_hit
    return out


def _compute_log_counts_by_chunk_and_category(corpus: Corpus) -> Array:
    names = [c for c, state in corpus.categories.items() if state != "change"]
    counts = [Counter(v.category for v in chunk.values) for chunk in corpus.chunks]
    return np.array([[log1p(count[name]) for name in names] for count in counts])
