"""One set of labels over corpora that name things differently."""

from __future__ import annotations

from tests.rows import check_each_row

from allonym.document import Span
from allonym.train.labelmap import map_unified_labels, relabel_spans, unify_label, unify_labels
from allonym.train.records import make_record


@check_each_row(
    "name, label",
    [
        ("PER", "PERSON"),
        ("first_name", "PERSON_FIRSTNAME"),
        ("GPE", "LOCATION"),
        ("CITY", "CITY"),
        ("ORG", "ORGANIZATION"),
        ("hospital", "ORGANIZATION"),
        ("MISC", "OTHER_IDENTIFYING_ATTRIBUTE"),
        ("protein", ""),
    ],
)
def test_a_name_becomes_the_label_that_covers_all_it_may_mean(name, label):
    assert unify_label(name) == label


TEXT = "Ada Brook of Elmford wrote Dawn."
RECORD = make_record("", "1", TEXT, [(0, 9, "PER"), (13, 20, "GPE"), (27, 31, "MISC"), (10, 12, "protein")])


def test_records_lose_what_means_nothing_and_stay_as_they_are():
    (made,) = unify_labels([RECORD])
    assert [(s["label"], s["text"]) for s in made["spans"]] == [
        ("PERSON", "Ada Brook"),
        ("LOCATION", "Elmford"),
        ("OTHER_IDENTIFYING_ATTRIBUTE", "Dawn"),
    ]
    assert [s["label"] for s in RECORD["spans"]] == ["PER", "protein", "GPE", "MISC"]


def test_predictions_are_put_in_terms_of_the_corpus():
    wanted = map_unified_labels([RECORD])
    assert set(wanted) == {"PERSON", "LOCATION", "OTHER_IDENTIFYING_ATTRIBUTE"}
    found = [Span(0, 3, "PERSON_FIRSTNAME", 0.7, "tagger"), Span(13, 20, "CITY"), Span(27, 31, "WORK_OF_ART")]
    found += [Span(27, 31, "MONEY"), Span(0, 9, "PERSON")]
    assert relabel_spans(found, wanted) == [
        Span(0, 3, "PERSON", 0.7, "tagger"),
        Span(13, 20, "LOCATION"),
        Span(27, 31, "OTHER_IDENTIFYING_ATTRIBUTE"),
        Span(0, 9, "PERSON"),
    ]
    assert relabel_spans(found, {}) == []


def test_a_source_may_use_a_name_in_a_way_of_its_own():
    def meaning(name, source):
        return frozenset({"CITY"}) if source == "maps" else None

    records = [
        make_record("", str(n), "Elmford", [(0, 7, "X")], meta={"source": s}) for n, s in enumerate(("maps", "y"))
    ]
    assert [[s["label"] for s in r["spans"]] for r in unify_labels(records, meaning)] == [["CITY"], []]
    assert map_unified_labels(records, meaning) == {"CITY": frozenset({"CITY"})}
