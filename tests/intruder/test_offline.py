import subprocess
import sys

import numpy as np
import pytest

from allonym.errors import UsageError
from allonym.intruder import Item, Target, open_intruder, study
from allonym.intruder.offline import Entities, Words

FIRMS = {
    "Quarrystone": ("granite", ("Ostbury Quarry", "Slatewing", "Norhaven Port")),
    "Tarnfield": ("dairy", ("Tarn Creamery", "Butterlane", "Eldmouth Depot")),
    "Bluewater": ("looms", ("Perrin Mill", "Threadwell", "Sallow Works")),
}
TALK = "the quarter went well and we are pleased with margins in every region this year".split()


def corpus(n=24, topics=True, seed=0):
    """Chunks of each firm: small talk, a topic word, one or two of its entities."""
    rng = np.random.default_rng(seed)
    items, labels = [], []
    for firm, (topic, names) in FIRMS.items():
        for i in range(n):
            talk = [str(w) for w in rng.choice(TALK, 12)]
            chosen = [names[i % 3], *([names[(i + 1) % 3]] if i % 2 else [])]
            words = [*talk[:6], *([topic] if topics else []), *talk[6:], "at", *chosen, f"note{len(items)}"]
            items.append(Item(" ".join(words), tuple(name.lower() for name in chosen), tuple(chosen)))
            labels.append(firm)
    return items, labels


def interchanged(items, labels, n=24):
    """Every chunk takes the entities of the chunk at the same place of the next firm, which takes those of the third."""
    run, partners = {}, {}
    for i, item in enumerate(items):
        j = (i + n) % len(items)
        text = item.text
        for own, other in zip(item.forms, items[j].forms, strict=True):
            text = text.replace(own, other)
        run[i] = Item(text, items[j].entities, items[j].forms)
        partners[i] = [(i - n) % len(items)]  # where its own entities went
    return run, partners


@pytest.mark.parametrize("model", ["margin", "bayes"])
def test_the_entity_intruder_follows_the_entities(model):
    items, labels = corpus()
    run, partners = interchanged(items, labels)
    made = study(open_intruder("entities", model=model), items, labels, [run], partners=[partners], folds=4)
    assert made.accuracy("before").value == 1
    assert made.accuracy("after").value == 0
    assert made.accuracy("interchanged").value == 1  # whoever knows where they went finds them there
    assert "altered" not in made.stages
    assert made.table == (0, 72, 0, 0) and made.test.exact < 1e-10
    assert made.chance == pytest.approx(1 / 3)


@pytest.mark.parametrize("model", ["margin", "bayes"])
def test_the_all_words_intruder_also_reads_topics(model):
    items, labels = corpus()
    run, partners = interchanged(items, labels)
    made = study(open_intruder("words", model=model), items, labels, [run], partners=[partners], folds=4)
    assert made.accuracy("before").value == 1
    assert made.accuracy("after").value < 0.7
    assert made.accuracy("altered").value > 0.95  # without the entities, topics are left
    assert made.accuracy("interchanged").value > 0.95
    bare, _ = corpus(topics=False)
    made = study(open_intruder("words", model=model), bare, labels, [interchanged(bare, labels)[0]], folds=4)
    assert made.accuracy("after").value < 0.2


def test_the_most_telling_terms():
    items, labels = corpus()
    same = {i: Item(f"{item.text} indeed", item.entities, item.forms) for i, item in enumerate(items)}
    words = study(open_intruder("words"), items, labels, [same], folds=4, terms=12)
    assert {"granite", "dairy", "looms"} <= {term for term, _ in words.terms}
    weights = [weight for _, weight in words.terms]
    assert len(weights) == 12 and weights == sorted(weights, reverse=True) and 0 < sum(weights) < 1
    names = study(open_intruder("entities"), items, labels, [same], folds=4, terms=99)
    assert "=slatewing" in {term for term, _ in names.terms}
    assert sum(w for _, w in names.terms) == pytest.approx(1)


def test_parts_of_a_name_count():
    judge = Entities().learn([Item("", ("tarn creamery",)), Item("", ("perrin mill",))], [0, 1], ["a", "b"])
    ranking = judge.rank([Target(Item("", ("the creamery",))), Target(Item("", ("old mill",)))])
    assert ranking.order[:, 0].tolist() == [0, 1]
    assert (ranking.scores[:, 0] >= ranking.scores[:, 1]).all()


def test_outside_texts_help():
    items = [Item(f"plain talk {i}") for i in range(4)]
    labels = ["a", "a", "b", "b"]
    run = {0: Item("granite everywhere"), 2: Item("dairy everywhere")}
    outside = [(Item("granite and more granite"), "a"), (Item("dairy and more dairy"), "b")]
    assert study(open_intruder("words"), items, labels, [run], background=outside).accuracy("after").value == 1


@pytest.mark.parametrize("name", ["entities", "words"])
def test_little_to_learn_from(name):
    intruder = open_intruder(name)
    target = Target(Item("a text", ("key",), ("text",)))
    nothing = intruder.learn([], [], ["a", "b"]).rank([target])
    assert nothing.order.tolist() == [[-1, -1]]
    one_class = intruder.learn([Item("a text", ("key",))], [1], ["a", "b"])
    assert one_class.rank([target]).order.tolist() == [[1, -1]]
    assert one_class.terms([target], [1]) == {}
    wordless = intruder.learn([Item("."), Item("?")], [0, 1], ["a", "b"])
    assert wordless.rank([target]).order.tolist() == [[-1, -1]]
    two = intruder.learn([Item("red text", ("red",)), Item("blue text", ("blue",))], [0, 2], ["a", "b", "c"])
    ranking = two.rank([Target(Item("")), Target(Item("more red", ("red",)))])
    assert ranking.order.shape == (2, 3) and ranking.order[1].tolist() == [0, 2, -1]
    assert two.rank([]).order.shape == (0, 3)


def test_what_it_is_told_changes_what_it_reads():
    item = Item("Ostbury Quarry's granite and Ostbury too, Slatewing", ("q", "s"), ("Ostbury Quarry", "Slatewing"))
    other = Item("at Perrin Mill", ("p",), ("Perrin Mill",))
    words = Words()
    assert words.features(Target(item, "altered")) == "granite and ostbury too".split()
    assert words.features(Target(item, "interchanged", (other,)))[-2:] == ["perrin", "mill"]
    names = Entities()
    assert names.features(Target(item)) == ["=q", "=s"]
    assert names.features(Target(item, "interchanged", (other, other))) == ["=p"]


def test_unknown_models():
    with pytest.raises(UsageError, match="one of auto, margin, bayes"):
        open_intruder("words", model="forest")


@pytest.mark.slow
def test_the_same_whatever_the_hash_seed():
    code = """
from tests.intruder.test_offline import corpus, interchanged
from allonym.intruder import open_intruder, study
items, labels = corpus(8)
run, partners = interchanged(items, labels, 8)
for name in ("entities", "words"):
    made = study(open_intruder(name), items, labels, [run], partners=[partners], folds=3)
    print(made.terms, [(s, j.order.tolist(), j.scores.tolist()) for s, j in made.stages.items()])
"""
    said = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": "src:."},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1] and said[0]
