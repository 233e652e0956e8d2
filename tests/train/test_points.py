"""Operating points: what they cover of names, what soft labels need, what is measured. Chances are made up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from allonym.models.tags import LABELS
from allonym.train.examples import BEGIN, INSIDE, O
from allonym.train.points import (
    COVERED,
    NAME_LABELS,
    OFF,
    SOFT,
    SPEECH,
    TEMPLATES,
    Judged,
    choose_operating_points,
    measure_operating_points,
)

Word = tuple[str, dict[str, float], str]
"""Kind of text, chances of labels, and the label that the word has, or ""."""


def make_judged(words: Sequence[Word], size: int = 4) -> Judged:
    chances = np.full((len(words), 1 + 2 * len(LABELS)), 1e-9)
    for row, (_, some, _) in zip(chances, words, strict=True):
        for label, chance in some.items():
            row[1 + 2 * LABELS.index(label)] = chance
        row[0] = 1 - sum(some.values())
    kinds = tuple(dict.fromkeys(kind for kind, _, _ in words))
    return Judged(
        np.log(chances).astype(np.float32),
        np.array([BEGIN[label] | INSIDE[label] if label else O for _, _, label in words], np.int64),
        np.array([not label for _, _, label in words]),
        np.full(len(words), size),
        np.array([kinds.index(kind) for kind, _, _ in words]),
        kinds,
    )


def draw_words(kind: str, count: int, label: str, low: float, high: float, seed: int = 1) -> list[Word]:
    rng = np.random.default_rng(seed)
    return [(kind, {label: float(rng.uniform(low, high))}, label) for _ in range(count)]


def test_each_point_covers_its_share_of_names_and_no_higher_threshold_does() -> None:
    words = [*draw_words("news", 400, "CITY", 0.02, 1), *draw_words("mails", 2000, "PERSON_LASTNAME", 0.2, 1)]
    judged = make_judged(words)
    points = choose_operating_points(judged, LABELS, 1.0)
    thresholds = [points[point]["*"] for point in COVERED]
    assert thresholds == sorted(thresholds) and len(set(thresholds)) == 3
    for point, share in COVERED.items():

        def cover(threshold: float) -> float:
            return float(np.mean([next(iter(some.values())) >= threshold for _, some, _ in words]))

        assert cover(points[point]["*"]) >= share > cover(points[point]["*"] + 0.01)


def test_chances_of_all_names_count_together() -> None:
    apart = make_judged([("news", {"CITY": 0.2, "ORGANIZATION": 0.2, "PERSON_LASTNAME": 0.2}, "CITY")] * 100)
    thresholds = [table["*"] for table in choose_operating_points(apart, LABELS, 1.0).values()]
    assert thresholds == pytest.approx([0.6] * 3, abs=0.002)


def test_what_is_shown_as_speech_is_measured_and_not_aimed_at() -> None:
    clear, spoken = draw_words("calls", 100, "CITY", 0.8, 0.9), draw_words(SPEECH, 100, "CITY", 0.1, 0.2)
    judged = make_judged([*clear, *spoken])
    points = choose_operating_points(judged, LABELS, 1.0)
    assert points["high-recall"]["*"] >= 0.8
    measured = measure_operating_points(judged, LABELS, 1.0, points)["high-recall"]
    assert measured["calls"]["covered"] >= 0.99 and measured[SPEECH]["covered"] == 0


def test_soft_labels_have_thresholds_of_their_own_where_there_is_text() -> None:
    right, wrong = draw_words("calls", 200, "DATE", 0.5, 0.9), draw_words("calls", 200, "DATE", 0.3, 0.7)
    names = draw_words("calls", 200, "CITY", 0.05, 1)
    judged = make_judged([*right, *[(kind, some, "") for kind, some, _ in wrong], *names])
    points = choose_operating_points(judged, LABELS, 1.0)
    dates = [points[point]["DATE"] for point in COVERED]
    assert dates == sorted(dates) and 0.45 < dates[0] < dates[2] < 0.75
    assert set(points["balanced"]) == {"*", *SOFT, *OFF}
    assert [points["balanced"][label] for label in OFF] == [None]
    assert [points[point]["AGE"] for point in COVERED] == [0.25, 0.5, 0.75]


def test_text_that_does_not_annotate_a_label_says_nothing_about_it() -> None:
    right, wrong = draw_words("calls", 200, "DATE", 0.5, 0.9), draw_words("tweets", 200, "DATE", 0.85, 0.95)
    with_tweets = make_judged([*right, *[(kind, some, "") for kind, some, _ in wrong]])
    free = BEGIN["DATE"] | INSIDE["DATE"]
    with_tweets.allowed[len(right) :] |= free
    alone = choose_operating_points(make_judged(right), LABELS, 1.0)
    assert choose_operating_points(with_tweets, LABELS, 1.0)["balanced"]["DATE"] == alone["balanced"]["DATE"]


def test_what_a_point_covers_and_costs() -> None:
    words: list[Word] = [
        ("news", {"CITY": 0.9}, "CITY"),
        ("news", {"CITY": 0.1}, "CITY"),
        ("news", {"CITY": 0.6}, ""),
        ("news", {"DATE": 0.9}, ""),  # no name, so no needless name
        ("news", {}, ""),
        ("news", {"DATE": 0.9}, "DATE"),  # neither
        ("mails", {}, ""),
    ]
    judged = make_judged(words * 600)
    judged.size[2::7] = 8
    few = make_judged([("calls", {"CITY": 0.9}, "CITY")] * 9)
    for one, wanted in (
        (judged, {"mails": {"covered": None, "needless": 0.0}, "news": {"covered": 0.5, "needless": 0.5}}),
        (few, {"calls": {"covered": None, "needless": None}}),
    ):
        assert measure_operating_points(one, LABELS, 1.0, {"x": {"*": 0.5, "DATE": 0.8}}) == {"x": wanted}


def test_text_from_templates_is_measured_and_not_aimed_at() -> None:
    judged = make_judged([*draw_words("news", 100, "CITY", 0.2, 0.3), *draw_words(TEMPLATES, 900, "CITY", 0.8, 0.9)])
    points = choose_operating_points(judged, LABELS, 1.0)
    assert points["high-precision"]["*"] < 0.3
    assert set(measure_operating_points(judged, LABELS, 1.0, points)["balanced"]) == {"news", TEMPLATES}


@pytest.mark.parametrize("label", ["PERSON_FIRSTNAME", "ORGANIZATION", "CITY", "PRODUCT", "WORK_OF_ART", "ORIGIN"])
def test_names(label: str) -> None:
    assert label in NAME_LABELS
    assert not NAME_LABELS & {"DATE", "TIME", "AGE", "OCCUPATION", "MONEY", "QUANTITY", "OTHER_IDENTIFYING_ATTRIBUTE"}
