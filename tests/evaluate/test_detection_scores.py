"""Detection: scores against scikit-learn, levels by hand, TAB's rules, leaks, agreement, intervals, what is refused."""

from __future__ import annotations

import json
import math
import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score, confusion_matrix, precision_recall_fscore_support

from allonym.document import Span
from allonym.errors import DataError, PlanMismatch, UnknownNameError, UsageError
from allonym.evaluate import detection, found_between, found_in_plans, unigram_bits
from allonym.evaluate.classes import Classes, find_taxonomy_labels
from allonym.evaluate.leaks import contains_folded_surface, is_masked
from allonym.evaluate.matching import (
    Mention,
    compute_cohen_kappa,
    compute_krippendorff_alpha,
    count_coincidences,
    measure_agreement,
    select_disjoint_mentions,
)
from allonym.pipeline import anonymize
from allonym.stats.samples import Draws, bootstrap
from allonym.train.records import make_record, select_outermost_spans

TEXT = "Ada Brook met Cyd in Elmford. Later Cyd saw Ada Brook."
GOLD = [(0, 9, "PER"), (14, 17, "PER"), (21, 28, "LOC"), (36, 39, "PER"), (44, 53, "PER")]
LABELS = ("PER", "LOC", "ORG", "MISC")


def record(text=TEXT, marks=GOLD, id="a", **more):
    return make_record("", id, text, marks, **more)


def one(found, marks=GOLD, text=TEXT, **more):
    """The measure of a single text."""
    return detection([text], gold=[record(text, marks)], predicted=[[Span(*f) for f in found]], **more)


def counts(scores):
    """Hits over findings and over gold, as whole numbers."""
    return tuple(
        None if math.isnan(e.value) else round(e.value * n, 9)
        for e, n in ((scores.precision, scores.found), (scores.recall, scores.gold))
    )


def spread(seed, texts=30, words=40):
    """Texts of equal words with spans of gold and of findings over whole words, partly the same."""
    rng = random.Random(seed)
    records, found, tags = [], [], []
    for n in range(texts):
        text = " ".join("word" for _ in range(words))
        rows = []
        for _ in range(2):
            at, spans = 0, []
            while at < words:
                size = rng.randint(1, 3)
                if rng.random() < 0.4 and at + size <= words:
                    spans.append((5 * at, 5 * (at + size) - 1, rng.choice(LABELS)))
                at += size
            rows.append(spans)
        rows[1] = [s if rng.random() < 0.6 else other for s, other in zip(rows[0], rows[1], strict=False)]
        rows[1] = sorted({s[0]: s for s in rows[1]}.values())
        rows[1] = [s for i, s in enumerate(rows[1]) if not i or s[0] >= rows[1][i - 1][1]]
        records.append(record(text, rows[0], str(n)))
        found.append([Span(*s) for s in rows[1]])
        tags.append([_tags(spans, words) for spans in rows])
    return records, found, tags


def _tags(spans, words):
    return [next((label for a, b, label in spans if a <= 5 * i < b), "O") for i in range(words)]


# Scores against scikit-learn


@pytest.fixture(scope="module")
def measured():
    records, found, tags = spread(7)
    told = detection([r["text"] for r in records], gold=records, predicted=found, compare="exact", draws=50)
    return told, records, found, tags


def test_words_are_scored_as_scikit_learn_does(measured):
    told, _, _, tags = measured
    right = [t for pair in tags for t in pair[0]]
    seen = [t for pair in tags for t in pair[1]]
    labels = sorted(LABELS)
    level = told.levels["token"]
    p, r, f, n = precision_recall_fscore_support(right, seen, labels=labels, zero_division=np.nan)
    for i, label in enumerate(labels):
        own = level.labels[label]
        assert (own.precision.value, own.recall.value, own.f1.value) == pytest.approx((p[i], r[i], f[i]))
        assert own.gold == n[i]
    for kind in ("micro", "macro", "weighted"):
        wanted = precision_recall_fscore_support(right, seen, labels=labels, average=kind, zero_division=np.nan)[:3]
        own = getattr(level, kind)
        assert (own.precision.value, own.recall.value, own.f1.value) == pytest.approx(wanted)
    matrix = told.confusion["token"]
    assert matrix.rows == matrix.columns == (*labels, "none")
    assert np.array(matrix.counts).tolist() == confusion_matrix(right, seen, labels=[*labels, "O"]).tolist()


def test_whole_spans_are_scored_as_sets(measured):
    told, records, found, _ = measured
    gold = {(i, s["start"], s["end"], s["label"]) for i, r in enumerate(records) for s in r["spans"]}
    seen = {(i, s.start, s.end, s.label) for i, spans in enumerate(found) for s in spans}
    micro = told.levels["strict"].micro
    assert micro.precision.value == pytest.approx(len(gold & seen) / len(seen))
    assert micro.recall.value == pytest.approx(len(gold & seen) / len(gold))
    assert micro.f1.value == pytest.approx(2 * len(gold & seen) / (len(gold) + len(seen)))
    assert (micro.gold, micro.found) == (len(gold), len(seen))


def test_a_type_that_nobody_finds_has_no_precision_and_an_f1_of_nothing():
    told = one([(0, 9, "PER"), (14, 17, "PER")])
    loc = told.levels["strict"].labels["LOC"]
    assert math.isnan(loc.precision.value)
    assert loc.precision.method == "none: nothing was found"
    assert (loc.recall.value, loc.f1.value) == (0, 0)
    right, seen = ["PER", "PER", "LOC", "PER", "PER"], ["PER", "PER", "O", "O", "O"]
    wanted = precision_recall_fscore_support(right, seen, labels=["LOC", "PER"], average="macro", zero_division=np.nan)
    own = told.levels["strict"].macro
    assert (own.precision.value, own.recall.value, own.f1.value) == pytest.approx(wanted[:3])


# Levels by hand


def test_levels_by_hand():
    told = one([(0, 3, "PER"), (14, 17, "PER"), (21, 28, "PER"), (36, 39, "PER"), (44, 53, "PER")])
    token, strict, overlap, entity = (told.levels[x] for x in ("token", "strict", "overlap", "entity"))
    assert counts(token.labels["PER"]) == (5, 5)  # of six words of gold and six found: Elmford wrong, Brook missed
    assert counts(token.any) == (6, 6)
    assert (token.any.gold, token.any.found) == (7, 6)
    assert counts(strict.labels["PER"]) == (3, 3)
    assert counts(strict.any) == (4, 4)
    assert counts(overlap.labels["PER"]) == (4, 4)
    assert counts(overlap.any) == (5, 5)
    assert counts(entity.labels["PER"]) == (
        3,
        1,
    )  # Cyd is found; of Ada Brook a word is missed, but what is found is in it
    assert (entity.labels["PER"].gold, entity.labels["PER"].found) == (2, 4)
    assert counts(entity.any) == (4, 2)
    spans = told.confusion["span"]
    assert spans.rows == spans.columns == ("LOC", "PER", "none")
    assert spans.counts == ((0, 1, 0), (0, 4, 0), (0, 0, 0))


def test_ids_make_entities_of_mentions_with_other_words():
    marks = [(0, 9, "PER", "p1"), (14, 17, "PER", "p1"), (44, 53, "PER", "p1")]
    found = [(0, 9, "PER"), (44, 53, "PER")]
    told = one(found, marks)
    assert told.tab.entities == "gold"
    assert told.levels["entity"].labels["PER"].recall.value == 0
    assert told.levels["entity"].labels["PER"].gold == 1
    assert one(found, [m[:3] for m in marks]).levels["entity"].labels["PER"].recall.value == 0.5


def test_spans_inside_others_and_marks_do_not_count():
    told = one([(0, 9, "PER"), (4, 9, "PER")], [*GOLD, (4, 9, "LOC")])
    assert told.levels["strict"].micro.found == 1
    assert told.levels["strict"].micro.gold == 5
    dotted = one([(0, 2, "PER")], [(0, 3, "PER")], "Ed. went")
    assert dotted.leaks.all.mentions.value == 0
    assert dotted.levels["token"].micro.f1.value == 1
    assert dotted.levels["strict"].micro.f1.value == 0


def test_annotators_are_pooled():
    two = record(annotations={"x": GOLD, "y": GOLD[:1]})
    told = detection([TEXT], gold=[two], predicted=[[Span(0, 9, "PER")]])
    assert told.annotators == 2
    assert told.levels["strict"].micro.recall.value == pytest.approx(2 / 6)
    assert told.levels["strict"].micro.precision.value == 1


# Labels


def test_what_labels_mean():
    assert find_taxonomy_labels("EMAIL") == {"EMAIL_ADDRESS"}
    assert find_taxonomy_labels("GPE") >= {"CITY", "COUNTRY"}
    assert find_taxonomy_labels("zork") == frozenset()
    kinds = Classes([], label_map={"zork": ["EMAIL_ADDRESS"]}).find_identifier_kind
    assert [kinds(name) for name in ("PER", "LOC", "what", "PERCENT", "zork")] == [
        "direct", "quasi", "quasi", "none", "direct",
    ]  # fmt: skip


def test_findings_are_brought_into_the_labels_of_the_gold():
    classes = Classes([("PER", ""), ("LOC", ""), ("MISC", "")])
    assert classes.map_found_label("PERSON_FIRSTNAME") == classes.map_found_label("PERSON") == ("PER",)
    assert classes.map_found_label("CITY") == ("LOC",)
    assert classes.map_found_label("WORK_OF_ART") == ("MISC",)
    assert classes.map_found_label("DATE") == ()
    told = one([(0, 3, "PERSON_FIRSTNAME"), (4, 9, "PERSON_LASTNAME"), (14, 17, "PERSON"), (21, 28, "CITY")])
    assert counts(told.levels["strict"].labels["PER"]) == (2, 2)
    assert counts(told.levels["strict"].labels["LOC"]) == (1, 1)


def test_a_wider_label_takes_the_type_of_the_gold_that_it_touches():
    text = "Elmford in Ostravia"
    told = one([(0, 7, "LOCATION"), (11, 19, "LOCATION")], [(0, 7, "CITY"), (11, 19, "COUNTRY")], text)
    assert told.levels["strict"].micro.f1.value == 1


def test_groups_and_exact_names():
    text = "Elmford in Ostravia"
    marks, found = [(0, 7, "CITY"), (11, 19, "COUNTRY")], [(0, 7, "COUNTRY"), (11, 19, "REGION")]
    assert one(found, marks, text).levels["strict"].micro.f1.value == 0
    told = one(found, marks, text, compare="group")
    assert list(told.levels["strict"].labels) == ["LOCATION"]
    assert told.levels["strict"].micro.f1.value == 1
    assert one([(0, 9, "PERSON")], compare="exact").levels["strict"].micro.recall.value == 0


def test_types_that_the_gold_does_not_have_are_told():
    found = [(0, 9, "PERSON"), (30, 35, "DATE"), (14, 17, "DATE")]
    told = one(found)
    assert told.beyond == {"DATE": 2}
    assert told.levels["strict"].micro.precision.value == 1
    assert told.levels["strict"].any.precision.value == 1  # the one that touches a gold span counts there
    assert told.leaks.types["PER"].mentions.value == 0.5
    wrong = one(found, count_beyond=True)
    assert wrong.levels["strict"].micro.precision.value == pytest.approx(1 / 3)
    assert wrong.levels["strict"].any.precision.value == pytest.approx(2 / 3)
    assert "DATE" in wrong.levels["strict"].labels
    assert wrong.confusion["span"].columns == ("LOC", "PER", "DATE", "none")
    assert wrong.confusion["span"].counts[1] == (0, 1, 1, 2)


def test_labels_that_mean_nothing_are_told_and_a_map_says_what_they_mean():
    marks = [(0, 9, "zork"), (21, 28, "LOC")]
    told = one([(0, 9, "PERSON")], marks)
    assert told.unmapped == {"zork": 1}
    assert told.levels["strict"].labels["zork"].recall.value == 0
    known = one([(0, 9, "PERSON")], marks, label_map={"zork": ["PERSON"], "LOC": []})
    assert (known.unmapped, known.left_out) == ({}, {"LOC": 1})
    assert known.levels["strict"].micro.f1.value == 1
    with pytest.raises(UnknownNameError):
        one([], label_map={"zork": ["PERSN"]})
    with pytest.raises(UsageError, match="compare"):
        one([], compare="loosely")


# Leaks


def test_leak_rates_by_type():
    found = [(0, 9, "PER"), (14, 17, "LOC"), (44, 47, "PER")]
    told = detection(
        [TEXT], ["X met Y in Elmford. Later Cyd saw X Brook."], gold=[record()], predicted=[[Span(*f) for f in found]]
    )
    per, loc = told.leaks.types["PER"], told.leaks.types["LOC"]
    assert per.mentions.value == 0.5  # the second Cyd, and Brook; a wrong type covers as well
    assert per.untouched.value == 0.25
    assert loc.mentions.value == loc.untouched.value == loc.surfaces.value == 1
    assert per.surfaces.value == 0.5  # Cyd stands there; of Ada Brook only a part
    assert told.leaks.mean.mentions.value == 0.75
    assert told.leaks.all.mentions.value == pytest.approx(3 / 5)
    assert math.isnan(one(found).leaks.all.surfaces.value)


@pytest.mark.parametrize(
    ("surface", "text", "wanted"),
    [
        ("ann", "ann.", True),
        ("ann", "anna", False),
        ("ann", "joann", False),
        ("a. b.", "x a. b. y", True),
        ("o'brien", "o'brien's", True),
        ("ann", "ann_1", True),
    ],
)
def test_whole_words_stand(surface, text, wanted):
    assert contains_folded_surface(surface, text) is wanted


# TAB, by hand


def tab_record():
    """Two annotators; entity e1 is direct, e2 quasi, e3 not to be masked."""
    text = "Mr Ada Brook, born in Elmford, met the court. Ada Brook left Elmford."
    first = [
        (0, 12, "PERSON", "e1", "direct"), (46, 55, "PERSON", "e1", "direct"),
        (22, 29, "LOC", "e2", "quasi"), (61, 68, "LOC", "e2", "quasi"), (39, 44, "ORG", "e3", "none"),
    ]  # fmt: skip
    second = [(3, 12, "PERSON", "f1", "direct"), (46, 55, "PERSON", "f1", "direct")]
    return make_record("", "t", text, first, annotations={"one": first, "two": second})


def test_tab_by_hand():
    gold = tab_record()
    text = gold["text"]
    found = [Span(3, 12, "PERSON"), Span(46, 55, "PERSON"), Span(22, 29, "CITY"), Span(39, 44, "ORGANIZATION")]
    weights = {"ada": 1.0, "brook": 4.0, "elmford": 8.0, "court": 2.0}
    told = detection(
        [text], gold=[gold], predicted=[found], weights=lambda t, at: [weights[t[a:b].lower()] for a, b in at]
    ).tab
    # "Mr" may be skipped, so both annotators' e1 is masked; the second Elmford is not, so the quasi one is not.
    assert told.recall["direct"].entity.value == 1
    assert told.recall["quasi"].entity.value == 0
    assert told.recall["all"].entity.value == pytest.approx(2 / 3)
    assert told.recall["all"].entity.n == 3
    assert told.recall["quasi"].mention.value == 0.5
    assert told.recall["all"].token.value == pytest.approx((9 - 0 + 1) / (9 + 2))
    # masked words: Ada Brook, Ada Brook by both, Elmford by one, court by none; each counts twice
    assert told.precision.value == pytest.approx((4 * 2 + 1) / (6 * 2))
    assert told.weighted.value == pytest.approx((10 * 2 + 8) / ((10 + 8 + 2) * 2))
    assert (told.kinds, told.entities, told.weights) == ("gold", "gold", "given")


def test_what_may_be_skipped_of_a_mention():
    text = "the Court of Elmford's no. 7"
    assert is_masked(text, (0, 22), [(4, 9), (13, 20)])
    assert not is_masked(text, (0, 28), [(4, 9), (13, 20)])
    assert is_masked(text, (0, 28), [(4, 9), (13, 20), (27, 28)])
    assert not is_masked("Theo", (0, 4), [(3, 4)])


def test_what_must_not_be_masked_is_no_gold():
    gold = tab_record()
    told = detection([gold["text"]], gold=[gold], predicted=[[]])
    assert told.left_out == {"ORG": 1}
    assert list(told.levels["strict"].labels) == ["LOC", "PERSON"]
    assert math.isnan(told.tab.precision.value)
    assert told.tab.precision.method == "none: nothing was masked"


def test_rare_words_weigh_more():
    weigh = unigram_bits("en")
    the, rare, none = weigh("the zephyr qqzzxv", [(0, 3), (4, 10), (11, 17)])
    assert 0 < the < rare < none
    assert none == pytest.approx(29.897, abs=0.01)
    with pytest.raises(DataError, match="no word frequencies"):
        unigram_bits("xx")
    with pytest.raises(DataError, match="weights: one number"):
        one([(0, 9, "PER")], weights=lambda text, at: [1.0])


# Agreement


def test_alpha_of_krippendorffs_example():
    """Krippendorff 2011, example C: four observers, twelve units, missing data; nominal alpha 0.743."""
    observers = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
        [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
    ]
    units = [[v for v in unit if v is not None] for unit in zip(*observers, strict=True)]
    assert float(compute_krippendorff_alpha(count_coincidences(units, 6))) == pytest.approx(0.743, abs=0.0005)
    assert math.isnan(compute_krippendorff_alpha(count_coincidences([[1, 1], [1, 1]], 2)))


def test_kappa_as_scikit_learn_does():
    rng = random.Random(3)
    one_, other = ([rng.choice("abbbc") for _ in range(200)] for _ in range(2))
    other = [a if rng.random() < 0.5 else b for a, b in zip(one_, other, strict=True)]
    assert float(compute_cohen_kappa(confusion_matrix(one_, other))) == pytest.approx(cohen_kappa_score(one_, other))
    assert math.isnan(compute_cohen_kappa([[5, 0], [0, 0]]))


def test_agreement_of_annotators():
    marks = {name: [(a, b, label) for a, b, label in rows] for name, rows in (("x", GOLD), ("y", GOLD[:3]))}
    told = detection([TEXT], gold=[record(annotations=marks)], predicted=[[]]).agreement
    assert told is not None
    assert (told.annotators, told.documents) == (2, 1)
    assert told.strict.value == pytest.approx(2 * 3 / 8)
    tags = [["P", "P", "O", "P", "O", "L", "O", "P", "O", "P", "P"], ["P", "P", "O", "P", "O", "L", *"OOOOO"]]
    assert told.kappa.value == pytest.approx(cohen_kappa_score(*tags))
    assert one([]).agreement is None
    same = {who: [Mention(0, 3, "PER")] for who in "xy"}
    full = measure_agreement([TEXT], [same])
    assert full is not None
    assert full.alpha.value == full.kappa.value == full.strict.value == 1


# Intervals


def test_intervals_are_those_of_the_plain_bootstrap():
    records, found, _ = spread(11, texts=12)
    told = detection([r["text"] for r in records], gold=records, predicted=found, compare="exact", draws=200, seed=5)
    hits = np.array(
        [
            len({(s["start"], s["end"], s["label"]) for s in r["spans"]} & {(f.start, f.end, f.label) for f in own})
            for r, own in zip(records, found, strict=True)
        ]
    )
    size = np.array([len(r["spans"]) for r in records])
    plain = bootstrap(lambda at: hits[at].sum() / size[at].sum(), len(records), draws=200, seed=5)
    recall = told.levels["strict"].micro.recall
    assert (recall.value, recall.low, recall.high) == pytest.approx((plain.value, plain.low, plain.high))
    assert recall.low < recall.value < recall.high


def test_texts_of_one_document_are_drawn_together():
    records = [record(id=str(n), doc_id="d") for n in range(4)]
    told = detection([TEXT] * 4, gold=records, predicted=[[Span(0, 9, "PER")]] * 4)
    assert (told.texts, told.documents) == (4, 1)
    recall = told.levels["strict"].micro.recall
    assert (recall.low, recall.value, recall.high) == (0.2, 0.2, 0.2)
    assert "one document" in recall.method


def test_a_rate_of_nothing_still_has_an_interval():
    records = [record(id=str(n)) for n in range(10)]
    told = detection([TEXT] * 10, gold=records, predicted=[[Span(0, 54, "PER")]] * 10)
    leak = told.leaks.all.mentions
    assert leak.value == leak.low == 0
    assert 0 < leak.high < 0.1
    assert leak.method.startswith("Wilson")


def test_draws_may_lack_a_value():
    drawn = Draws(3, draws=500)
    sums = drawn.sums([[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    with np.errstate(invalid="ignore"):
        told = drawn.estimate(sums[:, 0] / sums[:, 1], 1)
    assert told.value == 1
    assert "draws without a value" in told.method
    assert math.isnan(drawn.estimate(np.full(501, np.nan), 1, "why").value)


# Findings from elsewhere


def test_an_anonymised_text_tells_what_was_found():
    after = "[PERSON_1] met Tom in Elmford. Later Tom saw [PERSON_1]."
    (found,) = found_between([TEXT], [after])
    assert [(s.start, s.end, s.label) for s in found] == [
        (0, 9, "PERSON"), (14, 17, ""), (36, 39, ""), (44, 53, "PERSON"),
    ]  # fmt: skip
    told = detection([TEXT], [after], gold=[record()], draws=10)
    assert not told.typed
    assert told.confusion == {}
    assert math.isnan(told.levels["strict"].labels["PER"].precision.value)
    assert told.levels["strict"].any.precision.value == 1
    assert told.levels["strict"].labels["PER"].recall.value == 1
    assert told.leaks.types["LOC"].mentions.value == told.leaks.types["LOC"].surfaces.value == 1
    assert found_between([TEXT], [TEXT]) == [[]]


def test_each_word_may_have_a_placeholder_of_its_own():
    (found,) = found_between(["Ada Brook ran"], ["PERSON_FIRSTNAME_1 PERSON_LASTNAME_1 ran"])
    assert [s.label for s in found] == ["PERSON_FIRSTNAME", "PERSON_LASTNAME"]


def test_plans_tell_what_was_found():
    text = "Write to ada.brook@example.org now."
    plan = anonymize(text, "default").plan
    (found,) = found_in_plans([text], [plan])
    assert [(s.start, s.end, s.label) for s in found] == [(9, 30, "EMAIL_ADDRESS")]
    with pytest.raises(PlanMismatch, match="plan 1"):
        found_in_plans(["another"], [plan])


@given(st.text(max_size=40), st.text(max_size=40))
@settings(max_examples=60, deadline=None)
def test_what_alignment_tells_is_sound(before, after):
    (found,) = found_between([before], [after])
    assert all(0 <= s.start < s.end <= len(before) for s in found)
    assert all(a.end <= b.start for a, b in pairwise(found))
    assert found_between([before], [before]) == [[]]


# What is refused, and what has no value


def test_no_mention_at_all_has_no_value():
    told = one([], [], "nobody here")
    micro = told.levels["strict"].micro
    assert all(math.isnan(e.value) for e in (micro.precision, micro.recall, micro.f1, told.leaks.all.mentions))
    assert math.isnan(told.tab.recall["all"].entity.value)
    values = told.to_dict()
    assert values["levels"]["strict"]["micro"]["f1"]["value"] is None
    json.dumps(values, allow_nan=False)


def test_what_is_refused():
    with pytest.raises(DataError, match="1 text at least"):
        detection([], gold=[], predicted=[])
    with pytest.raises(DataError, match="one value for each text"):
        detection([TEXT], gold=[], predicted=[[]])
    with pytest.raises(DataError, match="one value for each text"):
        detection([TEXT], gold=[record()], predicted=[])
    with pytest.raises(DataError, match="findings or anonymised"):
        detection([TEXT], gold=[record()])
    with pytest.raises(DataError, match="text 1: the gold is of another text"):
        detection(["other"], gold=[record()], predicted=[[]])
    with pytest.raises(DataError, match="text 1: a finding ends beyond"):
        one([(0, 99, "PER")])


def test_no_text_shows():
    told = one([(0, 9, "PER")])
    shown = repr(told) + json.dumps(told.to_dict()) + repr(Mention(0, 3, "PER", "Ada"))
    assert not any(word in shown for word in ("Ada", "Brook", "Elmford"))


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 6), st.sampled_from(["PER", "LOC", "DATE"])), max_size=8))
@settings(max_examples=60, deadline=None)
def test_the_gold_itself_is_found_wholly_and_rates_are_rates(places):
    marks = [(a, min(a + n, len(TEXT)), label) for a, n, label in places]
    told = one(marks, marks, draws=0)
    for level in ("token", "strict", "overlap"):
        f1 = told.levels[level].micro.f1.value
        assert f1 == 1 or math.isnan(f1)
    leak = told.leaks.all.mentions.value
    assert leak == 0 or math.isnan(leak)
    other = one([(0, 9, "PER")], marks, draws=0)
    for level in other.levels.values():
        for e in (level.micro.precision, level.micro.recall, level.micro.f1):
            assert math.isnan(e.value) or 0 <= e.value <= 1


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9), st.sampled_from("ab")), max_size=12))
def test_disjoint_mentions_are_selected_as_if_all_were_tried(marks):
    mentions = [Mention(a, a + n, name) for a, n, name in marks]
    kept = select_disjoint_mentions(mentions)
    slow = []
    for m in sorted(mentions, key=lambda m: (m.start - m.end, m.start, m.name)):
        if not any(m.start < o.end and o.start < m.end for o in slow):
            slow.append(m)
    assert kept == sorted(slow, key=lambda m: m.start)
    spans = select_outermost_spans(Span(m.start, m.end, "PERSON") for m in mentions)
    assert [(s.start, s.end) for s in spans] == [(m.start, m.end) for m in kept]
