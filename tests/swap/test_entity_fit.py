from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.rows import check_each_row
from tests.swap import corpora

from allonym.document import Span
from allonym.swap.corpus import Chunk, Corpus, Value
from allonym.swap.entity_fit import EntityFit

BASE = corpora.corpus(2, 1)


def fits(category: str, *names: str, labels: tuple[str, ...] = ()) -> np.ndarray:
    values = tuple(
        Value(category, n.lower(), (n,), (Span(i, i + 1, labels[i]),) if labels else ()) for i, n in enumerate(names)
    )
    corpus: Corpus = replace(BASE, categories={category: "swap"}, chunks=(Chunk(0, 0, 1, "x", values),))
    likeness = EntityFit.of(corpus)
    at = list(likeness.appearances[0])
    made = likeness.compute_pairwise_fits(at)
    assert made[0, 1] == pytest.approx(likeness.compute_fit(at[0], at[1]), abs=1e-5)
    return np.asarray(made)


def test_equals_fit_best_and_fit_is_symmetric() -> None:
    made = fits("Organization", "Quillmark", "Bellworth Bank", "NFC", "hospitals")
    assert np.allclose(np.diag(made), 1.0, atol=1e-5)
    assert np.allclose(made, made.T, atol=1e-6)
    assert made[~np.eye(4, dtype=bool)].max() < 1.0


@check_each_row(
    "category, place, better, worse",
    [
        ("Location", "Portugal", "Denmark", "Chicago"),
        ("Organization", "Quillmark", "Bellworth", "QBR"),
        ("Organization", "QBR", "LWX", "Bellworth Research Partners"),
        ("Organization", "Quillmark", "Bellworth", "stores"),
        ("Person", "Anna", "Maria", "Maria Bellworth"),
        ("Person", "Anna", "Maria", "Robert"),
        ("Person", "guys", "folks", "Robert"),
        ("Term", "hospital", "clinic", "dividend"),
        ("Term", "hospital", "clinic", "clinics"),
        ("Product", "Vento 300", "Lumor 20", "Lumor"),
        ("Organization", "Quillmark", "Bellworth, Inc.", "Bellworth, Tosmir"),
    ],
)
def test_what_fits_better(category: str, place: str, better: str, worse: str) -> None:
    made = fits(category, place, better, worse)
    assert made[0, 1] > made[0, 2]


def test_labels_tell_kinds_apart() -> None:
    made = fits("Location", "Velkan", "Tosmir", "Rupsil", labels=("COUNTRY", "COUNTRY", "CITY"))
    plain = fits("Location", "Velkan", "Tosmir", "Rupsil")
    assert made[0, 2] == pytest.approx(plain[0, 2] - 0.5, abs=1e-5)
    assert made[0, 1] == pytest.approx(plain[0, 1], abs=1e-5)


@check_each_row(
    "category, place, other, label",
    [
        ("Organization", "Quillmark", "with Bellworth", "ORGANIZATION"),
        ("Organization", "and Tosmir", "with Bellworth", "ORGANIZATION"),
        ("Person", "Anna", "Rupsilex", "PERSON"),
        ("Person", "Anna Price", "Maria. Maria", "PERSON"),
        ("Location", "Velkan", "QBR", "LOCATION"),
        ("Location", "Velkan", "Tosmir QBR", "LOCATION"),
        ("Location", "Velkan", "South", "LOCATION"),
        ("Organization", "Quillmark", "Bellworth, Tosmir Act", "ORGANIZATION"),
        ("Organization", "MOBs", "QBR", "ORGANIZATION"),
        ("Term", "prices", "margin", "TERM"),
    ],
)
def test_what_never_stands_for_another(category: str, place: str, other: str, label: str) -> None:
    assert fits(category, place, other, labels=(label, label))[0, 1] < -0.3


def test_an_entity_keeps_to_places_like_its_own() -> None:
    spans = (Span(0, 1, "LOCATION"),)
    rows = {"the": (1, -1, -1, -1, -1, -1), "bare": (-1, 1, -1, -1, -1, -1), "bank": (-1, -1, -1, -1, 1, -1)}
    values = tuple(Value("Location", n, (n.title(),), spans, place) for n, place in rows.items())
    corpus: Corpus = replace(BASE, categories={"Location": "swap"}, chunks=(Chunk(0, 0, 1, "x", values),))
    likeness = EntityFit.of(corpus)
    made = likeness.compute_pairwise_fits(list(likeness.appearances[0]))
    assert (made[~np.eye(3, dtype=bool)] < -0.3).all()


def test_a_corpus_without_entities_or_letters() -> None:
    assert EntityFit.of(replace(BASE, chunks=())).appearances == ()
    assert fits("Term", "...", "---").shape == (2, 2)
