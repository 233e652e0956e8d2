"""Findings to and from Presidio, against the installed packages."""

from __future__ import annotations

import pytest

import allonym
from allonym.document import Span
from allonym.errors import DataError, MissingExtra, PolicyError, UnknownNameError
from allonym.integrations import presidio
from allonym.labels import TAXONOMY
from allonym.policy import Policy

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:.*:UserWarning"),
]
RULES = Policy.load("default").with_(detectors=("rules",))
TEXT = "Card 4111 1111 1111 1111, mail ada@example.com, passport 123456789."


@pytest.fixture(scope="module")
def analyzer():
    return pytest.importorskip("presidio_analyzer", reason="Presidio's analyzer is not installed")


@pytest.fixture(scope="module")
def anonymizer():
    return pytest.importorskip("presidio_anonymizer", reason="Presidio's anonymizer is not installed")


def test_our_findings_are_presidios(analyzer, anonymizer):
    spans = allonym.detect(TEXT, RULES)
    results = presidio.to_presidio(spans, RULES)
    assert all(isinstance(r, analyzer.RecognizerResult) for r in results)
    assert [(r.start, r.end, r.score) for r in results] == [(s.start, s.end, s.score) for s in spans]
    assert {"CREDIT_CARD", "EMAIL_ADDRESS"} <= {r.entity_type for r in results}
    assert results[0].recognition_metadata["recognizer_name"].startswith("allonym:rules:")
    made = anonymizer.AnonymizerEngine().anonymize(TEXT, results)
    assert made.text.startswith("Card <CREDIT_CARD>, mail <EMAIL_ADDRESS>")


def test_presidios_findings_are_ours(analyzer):
    recognizers = [
        analyzer.predefined_recognizers.CreditCardRecognizer(),
        analyzer.predefined_recognizers.IbanRecognizer(),
    ]
    results = [r for one in recognizers for r in one.analyze(TEXT, one.supported_entities, None)]
    (span,) = presidio.from_presidio(results)
    assert (TEXT[span.start : span.end], span.label, span.score) == ("4111 1111 1111 1111", "CREDIT_CARD", 1.0)
    assert span.source.startswith("presidio:CreditCardRecognizer")
    assert allonym.display(TEXT, [span]).spans == (span,)


def test_there_and_back(analyzer):
    spans = allonym.detect(TEXT, RULES)
    back = presidio.from_presidio(presidio.to_presidio(spans, RULES), RULES)
    assert [(s.start, s.end, s.score) for s in back] == [(s.start, s.end, s.score) for s in spans]
    for one, other in zip(spans, back, strict=True):
        assert TAXONOMY.are_related(one.label, other.label), (one.label, other.label)


def test_every_label_has_a_name_that_is_read_back_as_a_relative(analyzer):
    spans = [Span(i, i + 1, label.name) for i, label in enumerate(TAXONOMY)]
    results = presidio.to_presidio(spans)
    assert len({r.entity_type for r in results}) > 40
    back = presidio.from_presidio(results)
    lost = [a.label for a, b in zip(spans, back, strict=True) if not TAXONOMY.are_related(a.label, b.label)]
    assert lost == ["NATIONAL_ID"]  # whose name there, ID, is that of any number


def test_the_rest_apis_answers_and_what_is_odd():
    rows = [
        {"start": 5, "end": 9, "entity_type": "PERSON", "score": 1.2, "analysis_explanation": None},
        {"start": 0, "end": 4, "entity_type": "LOCATION", "score": float("nan")},
        {"start": 4, "end": 4, "entity_type": "LOCATION", "score": 0.5},
    ]
    assert presidio.from_presidio(rows) == (
        Span(0, 4, "LOCATION", 1.0, "presidio:result"),
        Span(5, 9, "PERSON", 1.0, "presidio:result"),
    )
    for wrong in (
        {"start": 1},
        {"start": 4, "end": 2, "entity_type": "PERSON"},
        {"start": "0", "end": 2, "entity_type": "P"},
        5,
    ):
        with pytest.raises(DataError, match="needs start, end and entity_type"):
            presidio.from_presidio([wrong])
    with pytest.raises(PolicyError, match="BADGE"):
        presidio.from_presidio([{"start": 0, "end": 2, "entity_type": "BADGE", "score": 1}])


def test_names_that_the_taxonomy_does_not_know_can_be_mapped():
    rows = [{"start": 0, "end": 2, "entity_type": kind, "score": 1} for kind in ("BADGE", "NOISE")]
    assert [s.label for s in presidio.from_presidio(rows, labels={"BADGE": "EMPLOYEE_ID", "NOISE": ""})] == [
        "EMPLOYEE_ID"
    ]
    with pytest.raises(UnknownNameError, match="unknown label 'EMPLOYEE_IDS'"):
        presidio.from_presidio(rows, labels={"BADGE": "EMPLOYEE_IDS"})


def test_a_label_that_is_none_is_an_error(analyzer):
    with pytest.raises(UnknownNameError):
        presidio.to_presidio([Span(0, 1, "NEVER")])


def test_what_was_made_is_an_engine_result(anonymizer):
    made = allonym.anonymize("An Austrian wrote to ada@example.com and eve@example.com.", RULES)
    result = presidio.to_engine_result(made, RULES)
    assert isinstance(result, anonymizer.entities.EngineResult)
    assert result.text == made.text
    assert [made.text[i.start : i.end] for i in result.items] == [i.text for i in result.items]
    assert {"EMAIL_ADDRESS"} <= {i.entity_type for i in result.items} and {i.operator for i in result.items} == {"tag"}
    assert '"entity_type": "EMAIL_ADDRESS"' in result.to_json()


def test_the_package_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "presidio_analyzer", None)
    with pytest.raises(MissingExtra, match=r"\[presidio\]"):
        presidio.to_presidio([Span(0, 1, "PERSON")])
