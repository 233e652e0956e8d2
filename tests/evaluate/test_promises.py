"""Promises from marked documents: what counts as missed, which threshold is offered, which samples prove nothing."""

from __future__ import annotations

import json

import numpy as np
import pytest

from allonym.document import Document
from allonym.errors import DataError, UsageError
from allonym.evaluate.promises import (
    THRESHOLDS,
    DocumentLosses,
    choose_expected_threshold,
    choose_threshold,
    draw_sample,
    make_promise,
    measure_losses,
    read_marked_sample,
)
from allonym.policy import Policy


def make_losses(missed):
    missed = np.asarray(missed, float)
    n = len(missed)
    return DocumentLosses(missed, np.full(missed.shape, 4), np.full(n, 100), np.full(n, 10))


def test_a_threshold_is_offered_only_if_all_below_it_keep_the_limit():
    good, bad = np.zeros(100), np.full(100, 0.5)
    assert choose_threshold(np.stack([good, good, bad, good], axis=1), 0.1, 0.95) == 1
    assert choose_threshold(np.stack([bad, good], axis=1), 0.1, 0.95) is None
    assert choose_threshold(np.stack([good], axis=1), 0.1, 0.95) == 0


def test_the_promise_on_average_needs_fewer_documents():
    losses = np.zeros((120, 2))
    assert choose_expected_threshold(losses, 0.01) == 1 and choose_threshold(losses, 0.01, 0.95) is None
    assert choose_expected_threshold(losses[:98], 0.01) is None  # (0 + 1) / 99 is more than 1 %


def test_sixty_documents_prove_no_hundredth_but_tell_how_many_would():
    promise = make_promise(make_losses(np.zeros((60, 1 + len(THRESHOLDS)))), 0.01)
    assert promise.offer.threshold is None and promise.offer.documents == 325
    assert "325 reviewed documents" in promise.sentence
    assert make_promise(make_losses(np.zeros((60, 1 + len(THRESHOLDS)))), 0.1).offer.threshold == THRESHOLDS[-1]
    hopeless = make_promise(make_losses(np.full((60, 1 + len(THRESHOLDS)), 0.3)), 0.1)
    assert hopeless.offer.documents is None and "detectors must improve" in hopeless.sentence
    with pytest.raises(UsageError, match="there is none"):
        make_promise(make_losses(np.zeros((0, 1 + len(THRESHOLDS)))))


def test_a_promise_is_not_rounded_to_what_is_not_proved():
    losses = make_losses(np.zeros((9000, 1 + len(THRESHOLDS))))
    sentence = make_promise(losses, 0.0014, confidence=0.999).sentence
    assert "at most 0.14% of" in sentence and "99.9% sure" in sentence
    whole = make_promise(make_losses(np.zeros((60, 1 + len(THRESHOLDS)))), 0.01, population=60)
    assert whole.offer.threshold == THRESHOLDS[-1]


def test_documents_in_which_anything_is_missed_are_another_unit():
    missed = np.zeros((60, 1 + len(THRESHOLDS)))
    missed[:6] = 0.1
    by_unit = {unit: make_promise(make_losses(missed), unit=unit).as_is.missed for unit in ("entities", "documents")}
    assert by_unit == {"entities": pytest.approx(0.01), "documents": pytest.approx(0.1)}


def test_an_entity_is_missed_if_anything_of_a_mention_is_left():
    text = "Write to ada@larkspur.example, or to bob at larkspur dot example. Bob is in. It is late."
    marks = [
        {"start": 9, "end": 29, "label": "EMAIL_ADDRESS", "text": text[9:29]},
        {"start": text.index("Bob"), "end": text.index("Bob") + 3, "label": "PERSON", "text": "Bob"},
        {"start": text.index("late"), "end": text.index("late") + 4, "label": "PERSON", "text": "late", "kind": "none"},
    ]
    policy = Policy.load("default").changed({"detect": {"detectors": ["rules"]}}, "test")
    losses = measure_losses([[(Document("1", text), marks)]], policy, thresholds=(None,))
    assert losses.entities.tolist() == [2] and losses.missed.tolist() == [[0.5]]
    only = measure_losses([[(Document("1", text), marks)]], Policy.only("EMAIL_ADDRESS"), thresholds=(None,))
    assert only.entities.tolist() == [1] and only.missed.tolist() == [[0.0]]


def write_rows(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_only_a_random_draw_without_gaps_is_read(tmp_path):
    texts = [(str(n), f"text {n}") for n in range(20)]
    rows = draw_sample(texts, 8)
    assert rows == draw_sample(texts, 8) != draw_sample(texts, 8, seed=1)
    assert [row["id"] for row in draw_sample(texts, 20)][:8] == [row["id"] for row in rows]
    path = tmp_path / "sample.jsonl"
    with pytest.raises(DataError, match=r":1: spans are required"):
        read_marked_sample(write_rows(path, rows))
    marked = [{**row, "spans": []} for row in rows]
    documents, population = read_marked_sample(write_rows(path, marked[::-1]))
    assert [parts[0][0].id for parts in documents] == [row["id"] for row in rows] and population == 20
    assert len(read_marked_sample(write_rows(path, marked[:5]))[0]) == 5
    with pytest.raises(DataError, match="document 3 of the draw is missing"):
        read_marked_sample(write_rows(path, marked[:2] + marked[3:]))
    with pytest.raises(DataError, match="mixes draws"):
        read_marked_sample(write_rows(path, [*marked, {"id": "x", "text": "y", "spans": []}]))
    for damaged in (
        [*marked, marked[0]],
        [{**row, "meta": {"draw": {"rank": n, "of": 3}}} for n, row in enumerate(rows, 1)],
    ):
        with pytest.raises(DataError, match="damaged"):
            read_marked_sample(write_rows(path, damaged))
    chosen = [{"id": row["id"], "text": row["text"], "spans": []} for row in rows]
    with pytest.raises(UsageError, match="prove"):
        read_marked_sample(write_rows(path, chosen))
    assert read_marked_sample(path, is_random=True)[1] is None
