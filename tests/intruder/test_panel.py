"""The panel of intruders, on invented people whose texts differ by a few words."""

from __future__ import annotations

import json

import numpy as np
import pytest

from allonym.errors import UsageError
from allonym.intruder.linkage import FeatureReader, Linkage
from allonym.intruder.panel import (
    INTRUDERS,
    divide_words,
    drop_words,
    is_among_best,
    list_words_brought_in,
    measure_panel,
)

PEOPLE = {
    "Orla": ("grand", "goats windy hill carves spoons birch wood cheese".split()),
    "Ivo": ("grand", "repairs church organs swam lake night bellows pipes".split()),
    "Wen": ("plain", "algebra prison collects antique thermometers mercury glass chalk".split()),
    "Ada": ("plain", "ferries lighthouse knots sails herring storm harbour ropes".split()),
}
TALK = "somebody said this person is friendly and well known in the town where they live".split()
ROWS = list(INTRUDERS)


def make_corpus(n=8, seed=0, write=lambda name, words: "thing " * len(words)):
    """Originals of four telling words each, outputs of ``write``, subjects and groups."""
    rng = np.random.default_rng(seed)
    before, after, subjects, groups = [], [], [], []
    for name, (group, words) in PEOPLE.items():
        for _ in range(n):
            talk = [str(w) for w in rng.permutation(TALK)]
            telling = [str(w) for w in rng.choice(words, 4, replace=False)]
            before.append(" ".join([name, *talk, *telling]))
            after.append(" ".join(["[PERSON_1]", *talk, write(name, telling)]))
            subjects.append(name)
            groups.append(group)
    return before, after, subjects, groups


def get_values(rows):
    return {row.name: row.identified.value for row in rows if row.is_measured}


def test_kept_words_are_seen_by_every_intruder():
    before, after, subjects, _ = make_corpus(write=lambda _, words: " ".join(words))
    panel = measure_panel(before, after, subjects)
    values = get_values(panel.rows)
    assert set(values) == {"naive", "blind", "adaptive", "told"} and min(values.values()) > 0.9
    assert [row.name for row in panel.rows] == ROWS
    assert panel.worst.identified.value == max(values.values())
    assert (panel.texts, panel.subjects, panel.unjudged) == (32, 4, 0)
    assert all(row.chance.value == 0.25 and row.identified.n == 32 for row in panel.rows if row.is_measured)
    assert {row.identified.method[:14] for row in panel.rows if not row.is_measured} == {"none: not meas"}


def test_a_decoy_deceives_only_those_who_do_not_know_the_tool():
    # Orla's originals alone say "whisper", and the tool writes it everywhere.
    before, after, subjects, _ = make_corpus(write=lambda _, words: f"{words[0]} whisper whisper whisper whisper")
    before = [f"{text} whisper" if name == "Orla" else text for text, name in zip(before, subjects, strict=True)]
    values = get_values(measure_panel(before, after, subjects).rows)
    assert values["naive"] < values["blind"] - 0.2
    assert values["told"] > values["naive"] + 0.2


def test_a_code_that_the_tool_invents_is_seen_by_the_adaptive_intruder_only():
    codes = {"Orla": "zill", "Ivo": "zamm", "Wen": "zott", "Ada": "zepp"}
    before, after, subjects, _ = make_corpus(write=lambda name, _: codes[name])
    panel = measure_panel(before, after, subjects)
    values = get_values(panel.rows)
    assert values["adaptive"] == 1 and max(values["naive"], values["blind"], values["told"]) < 0.6
    assert panel.worst.name == "adaptive" and panel.to_dict()["worst"]["name"] == "adaptive"


def test_partners_give_back_what_was_exchanged():
    before, after, subjects, _ = make_corpus(n=8)
    words = [text.split()[-4:] for text in before]
    partner = {i: (len(before) - 1 - i,) for i in range(len(before))}
    after = [" ".join([*text.split()[:-4], *words[partner[i][0]]]) for i, text in enumerate(after)]
    rows = {row.name: row for row in measure_panel(before, after, subjects, partners=partner).rows}
    assert rows["partners"].identified.value > 0.9 > rows["naive"].identified.value + 0.5


def test_chunks_of_a_document_are_judged_together_and_learnt_apart(monkeypatch):
    before, after, subjects, _ = make_corpus(n=12, write=lambda _, words: " ".join(words[:1]))
    documents = [f"{name}{i // 3 % 4}" for i, name in enumerate(subjects)]
    learn = Linkage.learn
    texts_of = {text: document for texts in (before, after) for text, document in zip(texts, documents, strict=True)}

    def watch(self, items, labels, classes):
        judge = learn(self, items, labels, classes)
        score, learnt = judge.scores, {texts_of.get(item.text) for item in items} - {None}

        def check(targets):
            assert learnt.isdisjoint(texts_of.get(target.item.text) for target in targets)
            return score(targets)

        judge.scores = check
        return judge

    monkeypatch.setattr(Linkage, "learn", watch)
    rows = {row.name: row for row in measure_panel(before, after, subjects, documents=documents).rows}
    assert rows["document"].identified.n == 16 and "(as " in rows["document"].knows
    assert rows["document"].identified.value >= rows["naive"].identified.value


def test_public_background_is_searched_by_words_and_by_meaning():
    before, after, subjects, groups = make_corpus(write=lambda _, words: " ".join(words))
    background = [(f"Facts about {name}: {' '.join(words)}", name) for name, (_, words) in PEOPLE.items()][:3]
    background.append(("Nobody in the corpus, who grows pumpkins", "Una"))
    rows = {row.name: row for row in measure_panel(before, after, subjects, background=background).rows}
    for name in ("background words", "background meaning"):
        assert rows[name].identified.n == 24 and rows[name].chance.value == 0.25
    assert rows["background words"].identified.value == 1
    grouped = measure_panel(before, after, subjects, groups=groups, background=background)
    assert {row.name: row for row in grouped.rows}["background words"].identified.n == 16
    copies = list(zip(after, subjects, strict=True))
    assert not any(r.is_measured for r in measure_panel(before, after, subjects, background=copies).rows[6:])


def test_what_is_not_judged_is_learnt_from():
    before, after, subjects, _ = make_corpus(write=lambda _, words: " ".join(words))
    panel = measure_panel(before, after, subjects, judged=[0, 9, 10])
    assert (panel.texts, panel.unjudged) == (3, 0) and panel.worst.identified.n == 3
    assert panel.worst.identified.value == 1
    nothing = measure_panel(before, after, subjects, judged=[])
    assert "no text was to be judged" in nothing.worst.identified.method


def test_groups_have_tables_of_their_own_and_nothing_depends_on_order_or_chance():
    before, after, subjects, groups = make_corpus(write=lambda _, words: words[0])
    panel = measure_panel(before, after, subjects, groups=groups)
    assert set(panel.groups) == {"grand", "plain"} and panel.worst.chance.value == 0.5
    naive = [panel.groups[name][0].identified for name in ("grand", "plain")]
    total = sum(e.value * e.n for e in naive) / sum(e.n for e in naive)
    assert total == pytest.approx(panel.rows[0].identified.value)
    assert measure_panel(before, after, subjects, groups=groups).to_dict() == panel.to_dict()
    plain = json.dumps(panel.to_dict(), allow_nan=False)
    assert not any(word in plain + repr(panel) for word in ("Orla", "goats", "thermometers"))


def test_equal_outputs_of_different_originals_are_judged():
    before, after, subjects, _ = make_corpus(write=lambda name, _: "cello" if name == "Orla" else "")
    same = ["Said." if "cello" not in text else "Said with a cello." for text in after]
    rows = {row.name: row.identified for row in measure_panel(before, same, subjects).rows}
    assert rows["adaptive"].n == 32 and rows["adaptive"].value > 0.4  # Orla's are known by their only word
    assert rows["naive"].value < 0.5


@pytest.mark.parametrize("kind", ["none", "alone", "unknown", "copies"])
def test_where_nothing_can_be_judged_it_says_why(kind):
    before, after, subjects, _ = make_corpus(n=2)
    columns = {
        "none": ([], [], []),
        "alone": (before[::2], after[::2], subjects[::2]),
        "unknown": (before, after, [""] * 8),
        "copies": ([before[i - i % 2] for i in range(8)], after, subjects),
    }[kind]
    panel = measure_panel(*columns)
    assert panel.texts == 0 and panel.unjudged == len(columns[0]) and not panel.worst.is_measured
    assert "two texts" in panel.worst.identified.method


def test_wrong_input_is_refused():
    before, after, subjects, _ = make_corpus(n=2)
    for wrong in ({"groups": ["a"]}, {"rank": 0}, {"folds": 1}, {"documents": []}):
        with pytest.raises(UsageError):
            measure_panel(before, after, subjects, **wrong)


def test_words_are_divided_and_dropped():
    reader = FeatureReader()
    before, after = "Ann met her old friend in Varnholm.", "[PERSON_1] met their friend in they town, their friend."
    kept, new = divide_words(reader, before, after)
    assert kept == "met friend in".split() and new == "their they town their friend".split()
    assert list_words_brought_in([(kept, new)]) == {"their", "they", "town"}
    assert drop_words(reader, "They met THEIR friend", frozenset({"they", "their"})) == " met  friend"


def test_equal_scores_go_to_the_first_class():
    table = np.array([[0.5, 0.5, 0.1], [0.5, 0.5, 0.1], [0.2, 0.1, 0.4]])
    labels = np.array([0, 1, 0])
    assert is_among_best(table, labels, 1).tolist() == [True, False, False]
    assert is_among_best(table, labels, 2).tolist() == [True, True, True]
