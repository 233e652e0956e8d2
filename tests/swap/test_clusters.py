"""Summaries of clusters: sizes, the map, words that stand out and name nobody."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from allonym.document import Document, Span
from allonym.plan import Plan, digest
from allonym.swap.clusters import find_distinctive_words, project_means, summarise_clusters
from allonym.swap.corpus import Chunk, Corpus, Value

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
