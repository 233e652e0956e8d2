from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allonym.errors import UnknownNameError, UsageError
from allonym.intruder import TOLD, Item, Ranking, Target, intruders, open_intruder, study
from allonym.intruder.before_after import assign_folds
from allonym.stats import Estimate


class Spy:
    """Keeps what it learns and judges; guesses the class whose name the text ends with, then the class 0."""

    name = "spy"
    learns = True
    told = TOLD

    def __init__(self):
        self.lessons = []

    def learn(self, known, labels, classes):
        self.lessons.append(([item.text for item in known], [classes[i] for i in labels], []))
        return Judge(self.lessons[-1][2], classes)


class Judge:
    def __init__(self, seen, classes):
        self._seen = seen
        self._classes = classes

    def rank(self, targets):
        self._seen += targets
        order = [[self._guess(t), 0] for t in targets]
        return Ranking(np.array(order), np.ones((len(targets), 2)))

    def _guess(self, target):
        word = target.item.text.split()[-1]
        if target.told == "interchanged":
            word = target.others[0].text.split()[-1]
        return self._classes.index(word) if word in self._classes and target.told != "altered" else -1

    def terms(self, targets, labels):
        return Counter({"one": 3.0 * len(targets), "two": 1.0 * len(targets), "none": 0.0})


def items_of(*texts):
    return [Item(text) for text in texts]


CLASSES = ["red", "red", "blue", "blue", "green", "green"]
ITEMS = items_of("a red", "b red", "c blue", "d blue", "e green", "f who")


def one_study(**more):
    runs = [
        {0: Item("a blue"), 2: Item("c red"), 5: Item("f green")},
        {0: Item("a red now red"), 1: Item("b blue")},
    ]
    partners = [{0: [2], 2: [0], 5: [4]}, {0: [4], 1: [4]}]
    spy = Spy()
    return spy, study(spy, ITEMS, CLASSES, runs, partners=partners, folds=3, seed=1, **more)


def test_the_numbers():
    _, made = one_study()
    assert made.classes == ("red", "blue", "green") and made.runs == 2
    assert set(made.stages) == {"before", "after", *TOLD}
    # run 0: a and c lose, f wins; run 1: a stays right, b loses
    assert made.table == (1, 3, 1, 0)
    assert made.accuracy("before").value == pytest.approx((2 / 3 + 1) / 2)
    assert made.accuracy("after") == Estimate(
        pytest.approx(5 / 12), pytest.approx(5 / 12 - 0.11785, abs=1e-4), pytest.approx(5 / 12 + 0.11785, abs=1e-4), 2,
        "mean, SD over draws",
    )  # fmt: skip
    assert made.accuracy("altered").value == 0
    # told which texts: run 0 reads c for a (now "red"), a for c ("blue"), e for f ("green"); run 1 reads e, which is green
    assert made.accuracy("interchanged").value == pytest.approx((1 + 0) / 2)
    assert made.second.value == pytest.approx((2 / 3 + 1) / 2)  # the second guess is red
    assert made.chance == pytest.approx(3 / 5)
    assert made.test.statistic == pytest.approx((3 - 1) ** 2 / 4)
    assert made.outcomes(0) == {0: (True, False), 2: (True, False), 5: (False, True)}
    assert made.outcomes(1) == {0: (True, True), 1: (True, False)}
    assert dict(made.terms) == {"one": 0.75, "two": 0.25, "none": 0.0}


def test_what_it_judges_it_has_not_learnt_from():
    spy, _ = one_study(background=[(Item("a red"), "red"), (Item("outside"), "black")])
    judged = {"a": 0, "b": 1, "c": 2, "f": 5}
    seen = Counter()
    for known, labels, targets in spy.lessons:
        for target in targets:
            letter = target.item.text[0]
            assert ITEMS[judged[letter]].text not in known
            seen[letter] += 1
        assert labels[known.index("outside")] == "black"
    assert seen["a"] == 1 + 2 * 3  # before once for both runs, then three stages of two texts
    assert {text for known, _, _ in spy.lessons for text in known} == {i.text for i in ITEMS} | {"outside"}


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("pqrstuvw"), st.sampled_from("xyz")), min_size=1, max_size=30),
    st.integers(2, 6),
    st.integers(0, 3),
)
def test_copies_are_judged_together(rows, folds, seed):
    items = items_of(*(text for text, _ in rows))
    labels = [label for _, label in rows]
    spy = Spy()
    run = {i: Item(f"{item.text} changed") for i, item in enumerate(items)}
    study(spy, items, labels, [run], folds=folds, seed=seed)
    for known, _, targets in spy.lessons:
        assert not {t.item.text for t in targets} & set(known)
        assert not {t.item.text.removesuffix(" changed") for t in targets} & set(known)
    assert {t.item.text for _, _, targets in spy.lessons for t in targets} == {
        *(item.text for item in items),
        *(item.text for item in run.values()),
    }


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.integers(2, 6), st.integers(0, 3))
def test_each_class_is_spread_evenly(labels, folds, seed):
    texts = [f"text {i}" for i in range(len(labels))]
    home = assign_folds(texts, labels, folds, seed)
    assert np.array_equal(home, assign_folds(texts, labels, folds, seed))
    for label in set(labels):
        counts = np.bincount(home[[i for i, mine in enumerate(labels) if mine == label]], minlength=folds)
        assert counts.max() - counts.min() <= 1


def test_one_that_does_not_learn_is_asked_once():
    spy = Spy()
    spy.learns = False
    steps = []
    made = study(spy, ITEMS, CLASSES, [{0: Item("x red"), 3: Item("y red")}], progress=lambda *at: steps.append(at))
    assert [(known, labels) for known, labels, _ in spy.lessons] == [([], [])]
    assert steps == [(1, 1)]
    assert made.table == (1, 1, 0, 0)
    assert set(made.stages) == {"before", "after"}  # nobody said which texts


@pytest.mark.parametrize("runs", [[], [{}], [{}, {}]])
def test_nothing_was_changed(runs):
    made = study(Spy(), ITEMS, CLASSES, runs)
    assert made.table == (0, 0, 0, 0) and made.terms == ()
    assert made.accuracy("after").n == 0 and np.isnan(made.accuracy("after").value)
    assert np.isnan(made.chance)
    assert made.test.exact == 1


def test_a_run_that_changed_nothing_does_not_count():
    made = study(Spy(), ITEMS, CLASSES, [{}, {0: Item("a red still red")}])
    assert made.accuracy("after") == Estimate(1.0, 1.0, 1.0, 1, "mean, SD over draws")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"labels": ["red"]}, "a label for each text"),
        ({"partners": []}, "partners for each run"),
        ({"folds": 1}, "folds must be 2 or more, got 1"),
        ({"runs": [{6: Item("x")}]}, "run 0 names a text that is not among the 6"),
        ({"runs": [{0: Item("x")}], "partners": [{0: [9]}]}, "run 0 names a text"),
    ],
)
def test_calls_that_make_no_sense(change, says):
    call = {"labels": CLASSES, "runs": [{}], **change}
    with pytest.raises(UsageError, match=says):
        study(Spy(), ITEMS, **call)


def test_names_and_options(monkeypatch):
    assert {"entities", "words", "llm"} <= set(intruders.names())
    with pytest.raises(UnknownNameError, match="did you mean: words"):
        open_intruder("word")
    with pytest.raises(UsageError, match="takes model; got folds"):
        open_intruder("words", folds=3, model=None)
    monkeypatch.setattr(intruders, "_table", dict(intruders._table))
    intruders.register("mine", lambda **options: (Spy(), options))
    assert open_intruder("mine", any=1)[1] == {"any": 1}


def test_reprs_hide_texts():
    secret = Item("Zaphrandel", ("Zaphrandel",), ("Zaphrandel",))
    _, made = one_study()
    assert "Zaphrandel" not in repr([secret, Target(secret, "altered", (secret,)), made])
    assert "one" not in repr(made).split("classes")[1]
