"""Downstream: what anonymisation destroys is lost, what it keeps is not; ROUGE and the greedy choice by hand."""

from __future__ import annotations

import math
import random

import pytest

from allonym.errors import DataError, UnknownNameError, UsageError
from allonym.evaluate.downstream_use import CALLS, downstream
from allonym.evaluate.summarising import (
    Summariser,
    average_reference_length,
    make_sentence_text,
    measure_rouge,
    select_best_sentences,
)
from allonym.report.evaluate.utility import downstream_section

GOOD, BAD = "fine lovely kind warm".split(), "awful cold dire grim".split()
FILLER = "the talk about that plan went on for hours while people listened and wrote down what was said".split()


def labelled(n: int, seed: int = 0) -> tuple[list[str], list[str]]:
    rng = random.Random(seed)
    labels = [("good", "bad")[i % 2] for i in range(n)]
    texts = []
    for label in labels:
        words = [*rng.sample(FILLER, 6), rng.choice(GOOD if label == "good" else BAD)]
        rng.shuffle(words)
        texts.append(" ".join(words))
    return texts, labels


def meetings(n: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Texts whose one sentence with a decision is the summary."""
    rng = random.Random(seed)
    texts, told = [], []
    for _ in range(n):
        decision = f"they decided that the {rng.choice(FILLER)} {rng.choice(GOOD)} budget rises"
        lines = [" ".join(rng.choices(FILLER, k=9)) for _ in range(8)]
        lines.insert(rng.randrange(2, 8), decision)
        texts.append(". ".join(line.capitalize() for line in lines) + ".")
        told.append(decision)
    return texts, told


def test_anonymised_texts_that_say_nothing_teach_nothing() -> None:
    texts, labels = labelled(80)
    found = downstream(texts, ["gone"] * 80, {"mood": labels}, {"mood": "classify"}, repeats=5).tasks["mood"]
    score = found.scores["f1"]
    assert score.original.value > 0.95
    assert score.anonymised.value < 0.5
    assert score.difference.high < 0
    assert math.isclose(score.difference.value, score.anonymised.value - score.original.value)
    assert found.floor["accuracy"].value == 0.5
    assert (found.texts, found.classes, found.repeats) == (80, 2, 5)


def test_the_same_texts_teach_the_same() -> None:
    texts, labels = labelled(40)
    summaries = [t.split()[0] + " and more" for t in texts]
    told = downstream(
        texts, texts, {"mood": labels, "short": summaries}, {"mood": "classify", "short": "summarise"}, repeats=2
    )
    for task in told.tasks.values():
        for score in task.scores.values():
            assert (score.difference.value, score.difference.low, score.difference.high) == (0, 0, 0)


def test_a_sentence_scorer_learns_what_is_taken() -> None:
    texts, told = meetings(40)
    task = downstream(texts, texts, {"s": told}, {"s": "summarise"}, repeats=2).tasks["s"]
    assert task.scores["rouge1"].original.value > task.floor["rouge1"].value + 0.3
    assert task.scores["rouge1"].original.value <= task.ceiling["rouge1"].value + 1e-9


def test_learning_from_texts_without_the_decisions_costs() -> None:
    texts, told = meetings(40)
    blank = [t.replace("decided", "X").replace("budget", "Y").replace("rises", "Z").replace("They", "Q") for t in texts]
    kept = downstream(texts, blank, {"s": told}, {"s": "summarise"}, repeats=3).tasks["s"].scores["rouge1"]
    assert kept.anonymised.value <= kept.original.value
    theirs = [t.replace("decided", "X").replace("budget", "Y").replace("rises", "Z") for t in told]
    own = (
        downstream(texts, blank, {"s": told}, {"s": "summarise"}, anonymised_targets={"s": theirs}, repeats=3)
        .tasks["s"]
        .scores["rouge1"]
    )
    assert own.original.value == kept.original.value


@pytest.mark.parametrize("model", ["linear", "encoder"])
def test_models(model: str) -> None:
    texts, labels = labelled(24)
    task = downstream(texts, texts, {"m": labels}, {"m": "classify"}, model=model, repeats=2).tasks["m"]
    assert 0 <= task.scores["f1"].original.value <= 1


def test_rouge_by_hand() -> None:
    one, two, long = measure_rouge("the cat sat down", ["the cat lay down", "nothing of it"])
    assert math.isclose(one, 0.75)
    assert math.isclose(two, 1 / 3)
    assert math.isclose(long, 0.75)
    assert measure_rouge("", ["a b"]) == (0.0, 0.0, 0.0)


def test_the_greedy_choice_by_hand() -> None:
    text = make_sentence_text("One two three four. Five six seven eight. Nine ten eleven twelve.")
    assert text.sentences[0].startswith("One")
    assert len(text.sentences) == 3
    assert select_best_sentences(text, ["nine ten eleven twelve five six"], 100) == [2, 1]
    assert select_best_sentences(text, ["nine ten eleven twelve five six"], 4) == [2]
    assert select_best_sentences(text, ["unheard of"], 100) == []
    assert select_best_sentences(text, [""], 100) == select_best_sentences(make_sentence_text(""), ["a"], 100) == []
    assert "One" not in repr(text)


def test_without_learning_the_first_sentences_are_taken() -> None:
    text = make_sentence_text("One two three four. Five six seven eight. Nine ten eleven twelve.")
    assert Summariser().fit([], [], 5).summarise(text).split()[:4] == ["One", "two", "three", "four."]
    assert Summariser().fit([], [], 5).summarise(make_sentence_text("No.")) == ""
    assert average_reference_length([["a b c", "d"], ["a"]]) == 2


def test_long_runs_without_full_stops_are_cut() -> None:
    assert [len(w) for w in make_sentence_text(" ".join(["word"] * 130)).words] == [60, 60, 10]


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ([None, "", None, None], "no text has a label"),
        (["a", "a", "a", "a"], "one class only"),
        (["a", "a", "a", "b"], "one text only"),
    ],
)
def test_what_cannot_be_learnt_says_why(labels: list[str | None], reason: str) -> None:
    texts = ["one", "two", "three", "four"]
    task = downstream(texts, texts, {"x": labels}, {"x": "classify"}).tasks["x"]
    assert math.isnan(task.scores["f1"].difference.value)
    assert reason in task.scores["f1"].difference.method
    assert reason in repr(downstream_section({"tasks": {"x": task.to_dict()}}))


def test_summaries_of_three_texts_are_too_few() -> None:
    task = downstream(["a b c d"] * 3, ["a"] * 3, {"x": ["a"] * 3}, {"x": "summarise"}).tasks["x"]
    assert math.isnan(task.scores["rouge1"].original.value)


def test_bad_input() -> None:
    texts, labels = labelled(6)
    fine = {"mood": labels}
    with pytest.raises(UsageError, match="a task is required"):
        downstream(texts, texts, fine, {})
    with pytest.raises(UnknownNameError, match="mod"):
        downstream(texts, texts, fine, {"mod": "classify"})
    with pytest.raises(UnknownNameError, match="sumarise"):
        downstream(texts, texts, fine, {"mood": "sumarise"})
    with pytest.raises(UnknownNameError, match="seq2seq:FOLDER"):
        downstream(texts, texts, fine, {"mood": "classify"}, model="bart")
    with pytest.raises(DataError, match="one value for each text"):
        downstream(texts, texts, {"mood": labels[:3]}, {"mood": "classify"})
    with pytest.raises(DataError, match="text 1: a label is required, got list"):
        downstream(texts, texts, {"mood": [["a"]] * 6}, {"mood": "classify"})
    with pytest.raises(DataError, match="a text or a list of texts"):
        downstream(texts, texts, {"mood": [{"a": 1}] * 6}, {"mood": "summarise"})  # type: ignore[dict-item]
    with pytest.raises(UsageError, match="two repeats"):
        downstream(texts, texts, fine, {"mood": "classify"}, repeats=1)
    with pytest.raises(UsageError, match="between 0 and 1"):
        downstream(texts, texts, fine, {"mood": "classify"}, test=1.0)


def test_the_tasks_of_calls_are_two_of_each_kind() -> None:
    assert sorted(CALLS.values()) == ["classify", "classify", "summarise", "summarise"]


def test_progress_covers_all_tasks() -> None:
    texts, labels = labelled(20)
    calls: list[tuple[int, int]] = []
    downstream(
        texts, texts, {"a": labels, "b": labels}, {"a": "classify", "b": "summarise"}, repeats=2,
        advance=lambda done, of: calls.append((done, of)),
    )  # fmt: skip
    assert calls[-1] == (4, 4)
    assert [c[0] for c in calls] == sorted(c[0] for c in calls)
