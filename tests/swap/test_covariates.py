"""Covariates out of the vectors, or between donors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allonym.document import Document
from allonym.errors import UnknownNameError, UsageError
from allonym.swap.corpus import Chunk, Corpus, Value
from allonym.swap.covariates import build_design_matrix, fit_residual, list_donor_group_by_chunk


def corpus():
    metas = [
        {"company": "Quillon", "industry": "chips", "revenue": "12.5", "sic": "3674", "founded": 1990},
        {"company": "Brellmar", "industry": " chips ", "revenue": "", "sic": "3674", "founded": 2001},
        {"company": "Ostrava Foods", "industry": "food", "revenue": "7.5", "sic": "2000", "founded": 1950},
        {"company": "Quillon", "industry": None, "revenue": "10", "sic": "3674", "founded": 1990},
    ]
    documents = tuple(Document(f"d{i}", "text", meta) for i, meta in enumerate(metas))

    def value(category, key):
        return Value(category, key, (key,))

    chunks = (
        Chunk(0, 0, 2, "te", (value("Organization", "a"), value("Organization", "b"), value("Date", "c"))),
        Chunk(0, 2, 4, "xt", ()),
        Chunk(1, 0, 4, "text", (value("Product", "p"),)),
        Chunk(2, 0, 4, "text", ()),
        Chunk(3, 0, 4, "text", ()),
    )
    categories = {"Organization": "swap", "Product": "swap", "Date": "fixed", "Event": "change"}
    return Corpus(
        documents,
        "company",
        tuple(str(m["company"]) for m in metas),
        categories,
        tuple(((0, 4),) for _ in metas),
        chunks,
        ((),) * 4,
        (),
    )


def test_a_category_has_a_column_per_value():
    assert build_design_matrix(corpus(), ["industry"]).tolist() == [
        [0, 1, 0],
        [0, 1, 0],
        [0, 1, 0],
        [0, 0, 1],
        [1, 0, 0],
    ]


def test_numbers_and_what_is_missing():
    found = build_design_matrix(corpus(), ["revenue", "founded"])
    assert found.tolist() == [[12.5, 0, 1990], [12.5, 0, 1990], [10, 1, 2001], [7.5, 0, 1950], [10, 0, 1990]]
    assert build_design_matrix(corpus(), ["sic"]).tolist() == [[3674], [3674], [3674], [2000], [3674]]
    assert build_design_matrix(corpus(), ["sic:category"]).tolist() == [[0, 1], [0, 1], [0, 1], [1, 0], [0, 1]]
    assert build_design_matrix(corpus(), ["founded:number"]).shape == (5, 1)
    with pytest.raises(UsageError, match="industry:number"):
        build_design_matrix(corpus(), ["industry:number"])


def test_the_protected_class_and_entity_counts():
    assert build_design_matrix(corpus(), ["protected"]).tolist() == [
        [0, 0, 1],
        [0, 0, 1],
        [1, 0, 0],
        [0, 1, 0],
        [0, 0, 1],
    ]
    counts = build_design_matrix(corpus(), ["entity counts"])
    assert counts == pytest.approx(np.log1p([[2, 0, 1], [0, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 0]]))
    both = build_design_matrix(corpus(), ["protected", "entity counts"])
    assert both.shape == (5, 6)


def test_donor_groups():
    assert list_donor_group_by_chunk(corpus(), "industry") == ("chips", "chips", "chips", "food", "")
    for key in ("company", "protected", "entity counts"):
        with pytest.raises(UsageError, match="donors"):
            list_donor_group_by_chunk(corpus(), key)
    with pytest.raises(UnknownNameError, match="industry"):
        list_donor_group_by_chunk(corpus(), "industri")


def test_unknown_covariates():
    with pytest.raises(UnknownNameError, match="industry"):
        build_design_matrix(corpus(), ["protected", "industri"])
    with pytest.raises(UsageError, match="at least one"):
        build_design_matrix(corpus(), [])


@given(st.integers(0, 10**6), st.sampled_from(["float32", "float64"]))
def test_nothing_of_the_covariates_is_left(seed, dtype):
    rng = np.random.default_rng(seed)
    Z = np.column_stack([rng.standard_normal(80) * 1e4 + 3e6, np.eye(3)[rng.integers(3, size=80)], np.ones(80)])
    X = rng.standard_normal((80, 6)) + (Z[:, 1:4] @ rng.standard_normal((3, 6))) * 2
    X = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(dtype)
    residual = fit_residual(X, Z)
    out = residual(X)
    assert out.dtype == dtype
    assert np.linalg.norm(out, axis=1) == pytest.approx(np.ones(80), abs=1e-5)
    # Before the rows are made unit again, least squares leaves nothing: an independent solver agrees.
    rest = X.astype(float) - residual.design @ residual.effect
    centred = Z - Z.mean(axis=0)
    other = X.astype(float) - centred @ np.linalg.lstsq(centred / 1e4, X.astype(float), rcond=1e-9)[0] / 1e4
    assert rest == pytest.approx(other, abs=1e-4)
    assert rest.mean(axis=0) == pytest.approx(X.mean(axis=0, dtype=float), abs=1e-6)
    assert (fit_residual(X, Z)(X) == out).all()


def test_a_class_can_no_longer_be_told_from_the_vectors():
    rng = np.random.default_rng(0)
    classes = np.arange(300) % 3
    X = rng.standard_normal((300, 12)) + 3 * np.eye(12)[classes]
    X /= np.linalg.norm(X, axis=1, keepdims=True)

    def right(vectors):
        means = np.array([vectors[classes == k].mean(axis=0) for k in range(3)])
        return ((vectors @ means.T).argmax(axis=1) == classes).mean()

    assert right(X) > 0.9
    assert right(fit_residual(X, np.eye(3)[classes])(X)) < 0.55


def test_later_vectors_lose_the_same():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((50, 5))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    residual = fit_residual(X, rng.standard_normal((50, 2)))
    assert residual(X[[4, 9]], [4, 9]) == pytest.approx(residual(X)[[4, 9]])
    assert residual(X[[4]], [9]) != pytest.approx(residual(X)[[4]])
    assert residual(np.zeros((1, 5)), [3]).tolist() == [[0] * 5]
    with pytest.raises(UsageError, match="one row of the design per vector"):
        residual(X[:3])


def test_what_cannot_be_regressed():
    X = np.eye(4)
    with pytest.raises(UsageError, match="explain 4 vectors entirely"):
        fit_residual(X, np.eye(4))
    with pytest.raises(UsageError, match="4 rows"):
        fit_residual(X, np.ones((3, 1)))
    with pytest.raises(UsageError, match="finite"):
        fit_residual(X, [[1.0], [2.0], [np.nan], [0.0]])
    assert fit_residual(X, np.ones((4, 1)))(X).tolist() == X.tolist()  # a constant explains nothing
