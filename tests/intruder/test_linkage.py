import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge

from allonym.errors import UsageError
from allonym.intruder import Item, Target, open_intruder, study
from allonym.intruder import linkage as module
from allonym.intruder.linkage import FEATURES, FeatureReader, Linkage, TfidfWeights
from allonym.text.placeholders import find_placeholders, remove_placeholders

PEOPLE = {
    "Orla": "keeps goats on a windy hill and carves spoons from birch wood",
    "Ivo": "repairs church organs and once swam across the lake at night",
    "Wen": "teaches algebra in prison and collects antique thermometers",
}
TALK = "somebody said that this person is friendly and well known in the town where they live".split()


def corpus(n=12, seed=0):
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for label, said in enumerate(PEOPLE.values()):
        words = said.split()
        for _ in range(n):
            own = [str(w) for w in rng.choice(words, 4, replace=False)]
            texts.append(" ".join([*map(str, rng.permutation(TALK)), *own]))
            labels.append(label)
    return texts, labels


def learnt(features="both", **options):
    texts, labels = corpus()
    return open_intruder("linkage", features=features, **options).learn([Item(t) for t in texts], labels, list(PEOPLE))


def target(text):
    return Target(Item(text))


def list_word_weights(judge, text, label):
    """What each word of a text adds to the score of a class: (start, end, weight), in reading order."""
    place, spans = judge._find_known_class_index(label), judge._reader.find_word_spans(text)
    total = sum(part.score_words(text, spans, place) for part in judge._parts)
    return [(a, b, float(w)) for (a, b), w in zip(spans, total, strict=True)]


@pytest.mark.parametrize("features", ["words", "characters", "both"])
def test_it_links_what_is_left_to_the_right_people(features):
    texts, labels = corpus()
    names = [list(PEOPLE)[label] for label in labels]
    after = {i: Item(f"[PERSON_1] {t.replace('goats', '[ANIMAL_1]')}") for i, t in enumerate(texts)}
    made = study(open_intruder("linkage", features=features), [Item(t) for t in texts], names, [after], folds=4)
    assert made.accuracy("before").value > 0.95 and made.accuracy("after").value > 0.95
    assert made.stages["after"].order.shape == (36, 3)
    assert {t for t, _ in made.terms} & {"organs", "algebra", "thermometers", "spoons", "prison", "church"}


def test_it_is_ridge_regression_on_tf_idf():
    texts, labels = corpus()
    judge = learnt("words", words=(1, 2), ridge=0.7)
    tfidf = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"\w\w+")
    x = tfidf.fit_transform(texts).toarray()
    wanted = np.eye(3)[labels]
    model = Ridge(alpha=0.7, fit_intercept=False).fit(x, wanted - wanted.mean(axis=0))
    others = ["the person who carves spoons", "swam at night", "nobody", ""]
    expected = model.predict(tfidf.transform(others)) + wanted.mean(axis=0)
    np.testing.assert_allclose(judge.scores([target(t) for t in others]), expected, atol=1e-8)


def test_character_features_are_those_within_words():
    reader = FeatureReader(characters=(3, 5))
    counts = reader.count_features(["goat boat", "goat"], "characters")
    tfidf = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), sublinear_tf=True)
    theirs = tfidf.fit_transform(["goat boat", "goat"])
    ours = TfidfWeights(counts).weigh_counts(counts)
    assert sorted(reader.list_known_features("characters")) == sorted(tfidf.get_feature_names_out())
    for a, b in ((0, 0), (0, 1)):
        assert (ours[[a]] @ ours[[b]].T)[0, 0] == pytest.approx((theirs[[a]] @ theirs[[b]].T)[0, 0])


@pytest.mark.parametrize("features", ["words", "characters", "both"])
def test_what_words_add_makes_up_the_score(features):
    judge = learnt(features)
    text = "Goats! The goats of [PERSON_1] swam, swam across a LAKE; caffè ﬃ thermometers 7"
    for label in range(3):
        parts = list_word_weights(judge, text, label)
        assert sum(w for *_, w in parts) + 1 / 3 == pytest.approx(judge.scores([target(text)])[0, label])
        assert [
            text[a:b] for a, b, _ in parts
        ] == "Goats The goats of swam swam across a LAKE caffè ﬃ thermometers 7".split()
    own = {text[a:b].lower(): w for a, b, w in list_word_weights(judge, text, 0)}
    assert own["goats"] > 0 > own["thermometers"] and own["7"] == 0


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=60))
def test_any_text_has_scores_that_its_words_make_up(text):
    judge = JUDGE
    parts = list_word_weights(judge, text, 2)
    assert all(0 <= a < b <= len(text) for a, b, _ in parts)
    assert sum(w for *_, w in parts) + 1 / 3 == pytest.approx(judge.scores([target(text)])[0, 2], abs=1e-9)


JUDGE = learnt()


def test_classes_without_texts_are_never_guessed():
    judge = Linkage().learn([Item("goats graze"), Item("organs hum")], [2, 0], ["a", "b", "c"])
    scores = judge.scores([target("goats")])
    assert scores[0, 1] == -np.inf and scores[0].argmax() == 2
    assert judge.rank([target("goats")]).order.tolist() == [[2, 0]]
    with pytest.raises(UsageError, match="class 1 is none of the 2"):
        list_word_weights(judge, "goats", 1)


def test_who_has_learnt_nothing_says_nothing():
    judge = Linkage().learn([], [], ["a", "b"])
    assert (judge.scores([target("goats")]) == -np.inf).all()
    assert judge.rank([target("goats")]).order.tolist() == [[-1]]
    one = Linkage().learn([Item("goats")], [1], ["a", "b"])
    assert one.rank([target("organs")]).order.tolist() == [[1]]
    assert one.rank([]).order.shape == (0, 1) and one.terms([], []) == {}


def test_placeholders_are_passed_over_unless_they_are_wanted():
    text = (
        "[PERSON_1] and PERSON_FIRSTNAME_2 met <LOCATION 1>, [firstname1], MR/MS, PRONOUN [pronoun] *** XXX [REDACTED]"
    )
    assert remove_placeholders(text).split() == ["and", "met", ",", ",", ","]
    assert find_placeholders("[laughter] <b> [the singer 2] Model_1 [sic]") == []
    read, passed = FeatureReader(tags=True), FeatureReader()
    assert passed.read_features(text, "words").spans.tolist() != read.read_features(text, "words").spans.tolist()
    judge = learnt("both")
    plain, tagged = "goats and spoons", "goats [PERSON_1] and [DATE_2] spoons"
    np.testing.assert_allclose(judge.scores([target(plain)]), judge.scores([target(tagged)]))
    assert list_word_weights(learnt("both", tags=True), tagged, 0)[1][:2] == (7, 15)  # PERSON_1


def test_many_texts_are_fitted_step_by_step_to_the_same(monkeypatch):
    whole = learnt("both").scores([target(PEOPLE["Ivo"])])
    monkeypatch.setattr(module, "_SOLVED", 20)
    stepwise = learnt("both")
    np.testing.assert_allclose(stepwise.scores([target(PEOPLE["Ivo"])]), whole, atol=1e-3)
    assert stepwise.rank([target(PEOPLE["Ivo"])]).order[0, 0] == 1
    monkeypatch.setattr(module, "_ROOM", 0)  # no room for weights of features
    narrow = learnt("words")
    monkeypatch.undo()
    np.testing.assert_allclose(narrow.scores([target("goats")]), learnt("words").scores([target("goats")]), atol=1e-3)
    text = "goats of the lake"
    got, wanted = list_word_weights(narrow, text, 0), list_word_weights(learnt("words"), text, 0)
    np.testing.assert_allclose([w for *_, w in got], [w for *_, w in wanted], atol=1e-3)


def test_the_encoder_hears_what_is_meant():
    texts = ["He repairs church organs.", "She fixes pianos.", "Goats graze here.", "Sheep eat grass."]
    judge = Linkage("encoder").learn([Item(t) for t in texts], [0, 0, 1, 1], ["music", "farm"])
    assert judge.rank([target("A violin maker"), target("Cows on the meadow")]).order[:, 0].tolist() == [0, 1]
    assert judge.terms([target("violin")], [0]) == {}
    both = Linkage("all").learn([Item(t) for t in texts], [0, 0, 1, 1], ["music", "farm"])
    assert both.rank([target("church organs")]).order[0, 0] == 0 and both.terms([target("organs")], [0])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"features": "smell"}, "words, characters, both, encoder, all"),
        ({"words": (2, 1)}, "two numbers from 1 to 5"),
        ({"characters": (3, 11)}, "two numbers from 1 to 10"),
        ({"ridge": 0}, "above 0"),
    ],
)
def test_wrong_options(options, said):
    with pytest.raises(UsageError, match=said):
        open_intruder("linkage", **options)
    assert set(FEATURES) == {"words", "characters", "both", "encoder", "all"}


SCRIPT = """
import sys; sys.path.insert(0, "tests/intruder")
import test_linkage
print(test_linkage.everything())
"""


def everything():
    judge = learnt()
    return list_word_weights(judge, "goats swam across the prison", 1), dict(judge.terms([target("goats swam")], [0]))


def test_results_do_not_depend_on_the_hash_seed():
    env = {**os.environ, "PYTHONPATH": "src", "PYTHONHASHSEED": "77"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(everything()) and "goats" in done.stdout
