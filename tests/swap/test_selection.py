"""Which family and how many components; summaries of clusters: sizes, the map, words that name nobody."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from benchmarks.sphere import sample_mixture

from allonym.document import Document, Span
from allonym.errors import UnknownNameError, UsageError
from allonym.plan import Plan, digest
from allonym.swap.corpus import Chunk, Corpus, Value
from allonym.swap.selection import (
    Fit,
    choose_fit,
    find_distinctive_words,
    fit_all,
    list_cluster_counts,
    project_means,
    summarise_clusters,
)


def three(n=600, family="spcauchy", d=6):
    return sample_mixture(n, [0.4, 0.3, 0.3], np.eye(d)[:3], [0.8, 0.75, 0.85], family, 8)[0]


@pytest.mark.parametrize("family", ["spcauchy", "pkbd"])
def test_the_true_family_and_number_win(family):
    X = three(family=family)
    seen = []
    fits = fit_all(X, [1, 2, 3, 5], advance=lambda done, of: seen.append((done, of)), restarts=3, seed=1)
    assert [(f.family, f.clusters) for f in fits] == [(f, k) for f in ("spcauchy", "pkbd") for k in (1, 2, 3, 5)]
    assert seen == [(i, 8) for i in range(9)]
    best = choose_fit(fits)
    assert (best.family, best.left) == (family, 3)
    assert best.usable
    assert best.bic == min(f.bic for f in fits if not f.degenerate)
    assert choose_fit(fits, "icl").left == 3
    assert best.mixture.family == family and best.mixture.seed == 1
    assert best.bic == pytest.approx(best.mixture.bic(X))
    assert best.icl == pytest.approx(best.mixture.icl(X)) and best.icl >= best.bic
    assert json.loads(json.dumps([f.to_dict() for f in fits]))[2]["clusters"] == 3


def test_numbers_that_are_tried():
    assert list_cluster_counts(3) == (1,)
    assert list_cluster_counts(130) == (1, 2, 4, 5)
    assert list_cluster_counts(10**6)[-1] == 64
    fits = fit_all(three(n=60), families=("spcauchy",), restarts=1)
    assert [f.clusters for f in fits] == [1, 2]


def test_a_component_at_the_cap_does_not_win():
    def fit(clusters, bic, degenerate):
        return Fit("pkbd", clusters, clusters, 1.0, bic, bic, True, degenerate, 9, None)

    fits = [fit(2, -50.0, 0), fit(3, -90.0, 1), fit(4, -50.0, 0)]
    assert choose_fit(fits).clusters == 2
    assert not fits[1].usable
    assert choose_fit(fits[1:2]).clusters == 3  # where there is no other


def test_what_converged_goes_before_what_did_not():
    def fit(clusters, bic, converged, degenerate=0):
        return Fit("pkbd", clusters, clusters, 1.0, bic, bic, converged, degenerate, 9, None)

    fits = [fit(2, -50.0, True), fit(3, -90.0, False), fit(4, -99.0, True, 1)]
    assert choose_fit(fits).clusters == 2
    assert choose_fit(fits[1:]).clusters == 3


def test_wrong_calls():
    X = three(n=20)
    with pytest.raises(UsageError, match="between 1 and the number of rows, 20"):
        fit_all(X, [2, 21])
    with pytest.raises(UsageError, match="between 1"):
        fit_all(X, [0])
    with pytest.raises(UnknownNameError, match="bic"):
        choose_fit(fit_all(X, [1], ["spcauchy"]), "aic")
    with pytest.raises(UsageError, match="none"):
        choose_fit([])


TOPICS = ("revenue grew and margin expanded at Quill", "new chip design for the fabric at Farrow")


@pytest.fixture
def corpus():
    documents = []
    chunks = []
    for d in range(4):
        text = " ".join(TOPICS)
        documents.append(Document(f"d{d}", text, {"company": f"c{d}"}))
        at = len(TOPICS[0])
        for start, end, name in ((0, at, "Quill"), (at + 1, len(text), "Farrow")):
            here = text.index(name)
            value = Value(
                "Organization", name.lower(), (name,), (Span(here, here + len(name), "ORGANIZATION", 1.0, "t"),)
            )
            said = text[start:end] + f" [EXECUTIVE_{d}]" + (" zebra zebra" if d == 0 else "")
            chunks.append(Chunk(d, start, end, said, (value,)))
    return Corpus(
        tuple(documents),
        "company",
        tuple(f"c{d}" for d in range(4)),
        {"Organization": "swap"},
        tuple(((0, len(doc.text)),) for doc in documents),
        tuple(chunks),
        ((),) * 4,
        tuple(Plan(digest(doc.text)) for doc in documents),
    )


def test_words_that_stand_out_name_nobody(corpus):
    labels = [0, 1] * 4
    revenue, chips = find_distinctive_words(corpus, labels, 2)
    assert {"revenue", "margin", "grew", "expanded"} <= set(revenue)
    assert {"chip", "design", "fabric"} <= set(chips)
    told = {*revenue, *chips}
    assert not told & {"quill", "farrow", "executive", "zebra"}


def test_summaries_count_chunks_and_documents(corpus):
    means = np.eye(3)[:2]
    mixture = SimpleNamespace(
        weights_=np.array([0.5, 0.5]), means_=means, rhos_=np.array([0.4, 0.9]), degenerate_=np.array([False, True])
    )
    first, second = summarise_clusters(corpus, mixture, np.array([0, 1, 0, 1, 0, 1, 0, 0]))
    assert (first.size, first.documents, second.size, second.documents) == (5, 4, 3, 3)
    assert (first.rho, second.degenerate, first.degenerate) == (0.4, True, False)


def test_the_map_keeps_distances_of_a_plane_and_settles_signs():
    rng = np.random.default_rng(3)
    plane = rng.normal(size=(6, 2)) @ np.linalg.qr(rng.normal(size=(8, 2)))[0].T
    weights = np.full(6, 1 / 6)
    at = project_means(plane, weights)
    want = np.linalg.norm(plane[:, None] - plane[None], axis=2)
    assert np.allclose(np.linalg.norm(at[:, None] - at[None], axis=2), want)
    assert np.allclose(project_means(plane, weights), at)
    assert (at[np.abs(at).argmax(axis=0), (0, 1)] > 0).all()


def test_one_cluster_lies_at_the_origin():
    assert project_means(np.eye(4)[:1], np.array([1.0])).tolist() == [[0.0, 0.0]]
