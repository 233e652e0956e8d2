"""Search of public background by words and by meaning."""

from __future__ import annotations

import math

import pytest

from allonym.intruder.retrieval import Background

FACTS = [
    ("Carves spoons from birch wood.\nKeeps goats on a windy hill.", "Orla"),
    ("Repairs the pipes of church organs, and repairs bellows.", "Ivo"),
    ("Swims in a lake at night.", "Ivo"),
]


def test_words_are_scored_by_bm25():
    scores = Background(FACTS, ["Ivo", "Orla"]).score_words(["She carves spoons", "repairs repairs pumpkins", ""])
    assert scores.shape == (3, 2) and (scores >= 0).all()
    assert scores[0, 1] > scores[0, 0] == 0 and not scores[2].any()
    # "repairs" twice among 14 words (of two letters at least) of one of two candidates; the other has 10.
    idf, times, spread = math.log1p((2 - 1 + 0.5) / (1 + 0.5)), 2, 1.2 * (1 - 0.75 + 0.75 * 14 / 12)
    assert scores[1] == pytest.approx([idf * times * 2.2 / (times + spread), 0])


def test_meaning_is_that_of_the_nearest_passage():
    library = Background(FACTS, ["Ivo", "Orla"])
    scores = library.score_meaning(["Keeps goats on a windy hill.", "Swims in a lake at night."])
    assert scores[0, 1] == pytest.approx(1, abs=1e-5) and scores[1, 0] == pytest.approx(1, abs=1e-5)
    assert scores[0, 0] < 0.8 and scores[1, 1] < 0.8
