import dataclasses
import json
import os
import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest
from scipy import stats as scipy_stats
from sklearn.metrics import brier_score_loss, roc_auc_score

from allonym.document import Span
from allonym.errors import DataError, UsageError
from allonym.evaluate.document_risks import TRAITS, document_risk, leftovers
from allonym.evaluate.intruder import reidentification
from allonym.intruder.before_after import assign_folds
from allonym.report.evaluate.intruders import linkage_section
from allonym.report.evaluate.risk import document_risk_section
from allonym.report.html_page import html
from allonym.report.markdown_page import markdown
from allonym.report.page import Page

module = import_module("allonym.evaluate.document_risks")  # the package has a function of this name

PEOPLE = {
    "Orla": ("grand", "goats windy hill carves spoons birch wood cheese".split()),
    "Ivo": ("grand", "repairs church organs swam lake night bellows pipes".split()),
    "Wen": ("plain", "algebra prison collects antique thermometers mercury glass chalk".split()),
    "Ada": ("plain", "ferries lighthouse knots sails herring storm harbour ropes".split()),
}
TALK = "somebody said this person is friendly and well known in the town where they live".split()


def corpus(n=15, seed=0, kept=None):
    """Texts with four telling words each; anonymised ones keep as many of them as ``kept`` says, or 0 to 4 in turn."""
    rng = np.random.default_rng(seed)
    before, after, subjects, groups = [], [], [], []
    for name, (group, own) in PEOPLE.items():
        for i in range(n):
            talk = [str(w) for w in rng.permutation(TALK)]
            told = [str(w) for w in rng.choice(own, 4, replace=False)]
            many = i % 5 if kept is None else kept
            before.append(" ".join([name, *talk, *told]))
            after.append(" ".join(["[PERSON_1]", *talk, *told[:many], *["[TERM_1]"] * (4 - many)]))
            subjects.append(name)
            groups.append(group)
    return before, after, subjects, groups


def test_who_is_found_before_and_after():
    before, after, subjects, groups = corpus(kept=0)
    steps = []
    made = reidentification(before, after, subjects, groups=groups, advance=lambda done, of: steps.append((done, of)))
    assert made.all.before.value == 1 and made.all.after.value < 0.75
    assert [g.name for g in made.groups] == ["grand", "plain"] and [g.subjects for g in made.groups] == [2, 2]
    assert sum(g.texts for g in made.groups) == made.all.texts == 60 and made.unjudged == 0
    assert made.all.chance.value == 0.5 and steps == [(i, 10) for i in range(1, 11)]
    both, lost, won, never = made.all.table
    assert both + lost + won + never == 60 and won == 0
    assert made.all.test.exact == pytest.approx(scipy_stats.binomtest(0, lost).pvalue)
    assert made.all.test.statistic == lost
    assert made.all.curve[-1][0] == 2 and made.all.curve[-1][2].value == 1
    assert made.results.all.identified == made.all.after and made.results.groups[0].texts == 30
    wilson = scipy_stats.binomtest(both + won, 60).proportion_ci(method="wilson")
    assert (made.all.after.low, made.all.after.high) == pytest.approx((wilson.low, wilson.high))
    kept = reidentification(before, corpus(kept=4)[1], subjects, groups=groups)
    assert kept.all.after.value == 1 and kept.all.reciprocal[1].value == 1
    assert {t for s in kept.terms for t, _ in s.found} & {"goats", "organs", "algebra", "ferries"}
    assert all(not s.missed for s in kept.terms)


def test_ranks_and_their_reciprocals():
    before, after, subjects, _ = corpus()
    made = reidentification(before, after, subjects)
    ranks = np.array(made.ranks)
    assert ranks.min() == 1 and ranks.max() <= 4
    assert made.all.reciprocal[1].value == pytest.approx((1 / ranks[:, 1]).mean())
    assert made.all.top[3][1].value == pytest.approx((ranks[:, 1] <= 3).mean())
    assert [f is True for f in made.found] == (ranks[:, 1] == 1).tolist()
    assert made.all.change.value == pytest.approx((ranks[:, 1] == 1).mean() - (ranks[:, 0] == 1).mean())


def test_it_never_learns_from_what_it_judges_nor_from_a_copy(monkeypatch):
    from allonym.intruder.linkage import Linkage

    before, after, subjects, _ = corpus(n=4)
    before[1], after[1] = before[0].upper(), after[0]  # a copy but for case
    before[7] = after[5]  # the original of one is what another became
    learn, rounds = Linkage.learn, []

    def watched(self, known, labels, classes):
        judge = learn(self, known, labels, classes)
        scores = judge.scores
        heard = {item.text.casefold() for item in known}

        def checked(targets):
            rounds.append(len(targets))
            assert not heard & {t.item.text.casefold() for t in targets}
            return scores(targets)

        judge.scores = checked
        return judge

    monkeypatch.setattr(Linkage, "learn", watched)
    for knows in ("original", "anonymised", "both"):
        reidentification(before, after, subjects, knows=knows, folds=3)
    reidentification(before, after, subjects, folds=0)
    assert len(rounds) > 18


def test_a_background_is_all_that_it_learns_from():
    before, after, subjects, groups = corpus(kept=4)
    background = [(" ".join(own), name) for name, (_, own) in PEOPLE.items()]
    made = reidentification(before, after, [*subjects[:-1], "Nobody"], background=background)
    assert made.all.after.value > 0.95 and made.folds == 0 and made.unjudged == 1 and made.all.subjects == 4
    # Guessing blindly among those of the background, however often each is in the texts.
    assert made.all.chance.value == pytest.approx(1 / 4)
    more = [*background, *((f"{own[1]} anew", name) for name, (_, own) in PEOPLE.items() if name == "Orla")]
    many = [*more, *((f"about somebody else {i}", f"Other {i}") for i in range(40))]
    assert reidentification(before, after, subjects, background=many).all.chance.value == 0.25
    others = [*background, *((f"about somebody else {i}", f"Other {i}") for i in range(36))]
    assert reidentification(before, after, subjects, background=others).all.chance.value == pytest.approx(1 / 40)
    grouped = reidentification(before, after, subjects, groups=groups, background=background)
    assert grouped.all.subjects == 2
    copies = [(text, name) for text, name in zip(after, subjects, strict=True)]
    assert reidentification(before, after, subjects, background=copies).unjudged == 60


def test_what_cannot_be_judged_is_left_out_and_told():
    before, after, subjects, _ = corpus(n=3)
    lone = reidentification([*before, "one"], [*after, "one"], [*subjects, "Una"])
    assert lone.unjudged == 1 and lone.ranks[-1] == (0, 0) and lone.found[-1] is None
    for texts, names in (([], []), (before, ["Orla"] * 12), (before, [""] * 12)):
        nothing = reidentification(texts, texts, names)
        assert np.isnan(nothing.all.after.value) and nothing.all.after.method.startswith("none:")
        assert nothing.all.test is None and nothing.unjudged == len(texts)
        told = nothing.to_dict()
        assert told["all"]["after"]["value"] is None and json.dumps(told, allow_nan=False)
        section = linkage_section(told)
        assert "beside other subjects" in markdown(Page("", (section,)))


def test_texts_are_hidden():
    before, after, subjects, groups = corpus(n=5)
    made = reidentification(before, after, subjects, groups=groups)
    for said in (repr(made), json.dumps(made.to_dict()), html(Page("", (linkage_section(made.to_dict(True)),)))):
        assert not any(word in said for word in ("Orla", "goats", "thermometers"))
    told = made.to_dict(True)
    assert "Orla" in json.dumps(told)
    assert "Orla" in html(Page("", (linkage_section(told, texts=True),)))
    assert "Rank curve" in html(Page("", (linkage_section(told),)))


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"folds": 1}, UsageError, "2 or more, or 0"),
        ({"knows": "all"}, UsageError, "original, anonymised, both"),
        ({"features": "x"}, UsageError, "features must be one of"),
        ({"groups": ["a"]}, DataError, "one value for each text"),
        ({"ids": ["a"]}, DataError, "one value for each text"),
    ],
)
def test_wrong_calls(change, error, said):
    before, after, subjects, _ = corpus(n=2)
    with pytest.raises(error, match=said):
        reidentification(before, after, subjects, **change)
    with pytest.raises(DataError):
        reidentification(before, after[1:], subjects)


def column(table, name):
    return table[:, list(TRAITS).index(name)]


def test_leftovers_count_what_is_left():
    texts = ["[PERSON_1] met Zyzzogeton in Paris", "Ann met Bob in Paris", "she met him there", ""]
    spans = [
        [Span(1, 9, "PERSON"), Span(29, 34, "LOCATION")],
        [Span(0, 3, "PERSON"), Span(15, 20, "LOCATION")],
        [],
        [],
    ]
    table = leftovers(texts, entities=spans)
    assert table.shape == (4, len(TRAITS)) and np.isfinite(table).all()
    assert column(table, "direct").tolist() == [0, 1, 0, 0]  # what stands in a placeholder is not left
    assert column(table, "quasi").tolist() == [1, 1, 0, 0]
    assert column(table, "kinds").tolist() == [1, 2, 0, 0]
    assert column(table, "placeholders")[0] == pytest.approx(1 / 5)
    assert column(table, "odd_words").tolist() == [1, 0, 0, 0]
    assert column(table, "rare_entities") == pytest.approx([np.log(2), np.log(2) + np.log(4), 0, 0])
    assert column(table, "shared_entities") == pytest.approx([np.log(2), np.log(2), 0, 0])
    assert column(table, "nearest")[1] > column(table, "nearest")[2] > column(table, "nearest")[3] == 0
    assert leftovers([]).shape == (0, len(TRAITS))
    with pytest.raises(DataError):
        leftovers(texts, entities=spans[:2])


def test_uniques_of_a_sample_are_fewer_in_a_large_population():
    texts = [f"x{i % 9 if i < 30 else i}" for i in range(40)]
    spans = [[Span(0, len(t), "LOCATION")] for t in texts]
    small, large = (column(leftovers(texts, entities=spans, population=n), "population_unique") for n in (40, 4000))
    assert small[:30].max() == 0 and small[30:] == pytest.approx(1)
    assert 0 < large[35] < 0.5


def risky(n=40, **options):
    before, after, subjects, _ = corpus(n=n)
    return document_risk(before, after, subjects, entities=[[]] * len(before), **options)


def test_risk_is_a_probability_that_holds():
    made = risky(review_above=0.8)
    assert made.calibrated and not made.reason
    risks, found = np.array(made.risks), np.array(made.found, bool)
    assert ((risks > 0) & (risks < 1)).all()
    assert made.brier.value == pytest.approx(brier_score_loss(found, risks))
    assert made.auc.value == pytest.approx(roc_auc_score(found, risks)) and made.auc.value > 0.75
    assert made.brier.value < made.reference.value == pytest.approx(found.mean() * (1 - found.mean()))
    assert made.error.value < 0.1 and made.error.low <= made.error.value <= made.error.high
    assert sum(b.observed.n for b in made.bins) == 160 == sum(made.histogram)
    weighted = sum(b.observed.n * abs(b.predicted - b.observed.value) for b in made.bins) / 160
    assert made.error.value == pytest.approx(weighted)
    review = made.review
    assert set(review.places) == set(np.flatnonzero(risks > 0.8)) and review.share.value == (risks > 0.8).mean()
    assert review.caught.value == pytest.approx((found & (risks > 0.8)).sum() / found.sum())
    assert review.left.value == pytest.approx(found[risks <= 0.8].mean())
    assert [risks[i] for i in review.places] == sorted(risks[list(review.places)], reverse=True)


def test_a_risk_comes_from_models_that_do_not_know_the_document():
    rng = np.random.default_rng(5)
    traits = rng.normal(size=(120, len(TRAITS)))
    y = (traits[:, 0] + rng.normal(size=120) > 0).astype(np.int64)
    home, judged = np.arange(120) % 4, np.arange(120)
    risks, _ = module._cross_fit_risks(traits, judged, y, home, 0)
    y[home == 2] = 1 - y[home == 2]
    again, _ = module._cross_fit_risks(traits, judged, y, home, 0)
    # What happened in a fold changes all risks but its own; inner folds are drawn fold by fold.
    assert again[0] != risks[0] and module._compute_auc(risks, y) != module._compute_auc(again, y)
    only, _ = module._cross_fit_risks(traits, judged, y, np.where(home == 2, 0, 1), 0)
    flipped = np.where(home == 2, 1 - y, y)
    same, _ = module._cross_fit_risks(traits, judged, flipped, np.where(home == 2, 0, 1), 0)
    np.testing.assert_allclose(only[home == 2], same[home == 2])


def test_copies_share_a_fold(monkeypatch):
    texts, subjects = ["One text", "one  TEXT", "another", "third"] * 20, ["a", "b"] * 40
    ranks = tuple((1, 1 + i % 2) for i in range(80))
    judged = dataclasses.replace(reidentification(texts, texts, subjects), ranks=ranks)
    homes = []

    def assign(*arguments):
        homes.append(assign_folds(*arguments))
        return homes[-1]

    monkeypatch.setattr(module, "assign_folds", assign)
    document_risk(texts, texts, subjects, intruder=judged, entities=[[]] * 80)
    for text in ("one text", "another", "third"):
        fold_of = zip(homes[0], texts, strict=True)
        assert len({int(h) for h, t in fold_of if " ".join(t.casefold().split()) == text}) == 1


def test_without_subjects_there_is_an_order_and_no_probability():
    before, after, *_ = corpus()
    made = document_risk(before, after, entities=[[]] * 60, review_above=0.5)
    assert not made.calibrated and "no subjects" in made.reason
    assert min(made.risks) == 0 and max(made.risks) == 1 and made.found == (None,) * 60
    assert all(
        np.isnan(e.value) and e.method.startswith("none:") for e in (made.rate, made.brier, made.error, made.auc)
    )
    assert 0.3 < made.review.share.value < 0.7 and np.isnan(made.review.caught.value)
    text = markdown(Page("", (document_risk_section(made.to_dict()),)))
    assert "These are no probabilities" in text and "Brier" not in text
    assert json.dumps(made.to_dict(), allow_nan=False)


def test_no_signal_is_said_where_the_interval_holds_a_half():
    made = risky(review_above=0.8)
    assert made.has_signal and "No signal" not in markdown(Page("", (document_risk_section(made.to_dict()),)))
    weak = dataclasses.replace(made, auc=dataclasses.replace(made.auc, low=0.48))
    text = markdown(Page("", (document_risk_section(weak.to_dict()),)))
    assert weak.has_signal is False and "No signal: the interval of AUC, 0.480 to" in text and "no better" not in text


def test_one_class_only_is_not_calibrated():
    before, after, subjects, _ = corpus(kept=4)
    made = document_risk(before, after, subjects, entities=[[]] * 60)
    assert not made.calibrated and "found 60 of 60" in made.reason
    assert made.rate.value == 1 and np.isnan(made.auc.value) and np.isnan(made.brier.value)


def test_no_document_at_all():
    made = document_risk([], [], [])
    assert made.risks == () and np.isnan(made.rate.value) and document_risk_section(made.to_dict()) is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"folds": 1}, "folds must be 2"),
        ({"review_above": 1.5}, "from 0 to 1"),
        ({"intruder": reidentification([], [], [])}, "on these 12 texts"),
    ],
)
def test_wrong_calls_of_risk(change, said):
    before, after, subjects, _ = corpus(n=3)
    with pytest.raises(UsageError, match=said):
        document_risk(before, after, subjects, entities=[[]] * 12, **change)


def test_the_section_of_risk():
    made = risky(review_above=0.8)
    page = html(Page("", (document_risk_section(made.to_dict()),)))
    for said in ("Reliability", "Limit of review: 80%", "Review before release", "What speaks for being found"):
        assert said in page
    assert "goats" not in page


SCRIPT = """
import sys; sys.path.insert(0, "tests/evaluate")
import test_linked
print(test_linked.everything())
"""


def everything():
    before, after, subjects, groups = corpus(n=5)
    made = reidentification(before, after, subjects, groups=groups)
    told = [(s.subject, s.found, s.missed) for s in made.terms]
    return made.ranks, told, leftovers(after, entities=[[]] * 20).tolist()


@pytest.mark.slow
def test_results_do_not_depend_on_the_hash_seed():
    env = {**os.environ, "PYTHONPATH": "src", "PYTHONHASHSEED": "77"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(everything())
