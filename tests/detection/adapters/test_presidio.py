import pytest

from allonym.detection.adapters import presidio as adapter
from allonym.document import Document
from allonym.errors import DataError, PolicyError, UnknownNameError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:.*:UserWarning"),
]
TEXT = "My badge: BX-1234. Card 4111 1111 1111 1111, mail ada@example.com"


@pytest.fixture(scope="module")
def analyzer():
    return pytest.importorskip("presidio_analyzer", reason="Presidio is not installed")


@pytest.fixture
def badge(analyzer):
    pattern = analyzer.Pattern("badge", r"\bBX-\d{4}\b", 0.3)
    return analyzer.PatternRecognizer("BADGE", patterns=[pattern], context=["badge"])


def found(detect, text=TEXT):
    return [(text[s.start : s.end], s.label) for s in detect(Document("", text))]


def test_a_recognizer(badge, policy):
    with pytest.raises(PolicyError, match="labels BADGE are in no scheme"):
        adapter.wrapped(badge, policy("presidio"))
    detect = adapter.wrapped(badge, policy("presidio", 'labels = { BADGE = "EMPLOYEE_ID" }'), "badges")
    # Its score is under what the adapter asks for by default, but it is the recognizer's own.
    (span,) = detect(Document("", TEXT))
    assert (TEXT[span.start : span.end], span.label, span.score, span.source) == (
        "BX-1234",
        "EMPLOYEE_ID",
        0.3,
        "badges:model",
    )


def test_an_engine_with_context_words(analyzer, badge, policy):
    one = policy("presidio", 'recognizers = ["CreditCardRecognizer"]', 'labels = { BADGE = "EMPLOYEE_ID" }')
    engine = adapter.build_engine.__wrapped__(("CreditCardRecognizer",), "", "", "en")
    engine.registry.add_recognizer(badge)
    spans = adapter.wrapped(engine, one)(Document("", TEXT))
    assert {(TEXT[s.start : s.end], s.label) for s in spans} == {
        ("BX-1234", "EMPLOYEE_ID"),
        ("4111 1111 1111 1111", "CREDIT_CARD"),
    }
    assert min(s.score for s in spans) > 0.3


def test_recognizers_by_name(analyzer, policy):
    one = policy("presidio", 'recognizers = ["EmailRecognizer", "CreditCardRecognizer"]')
    assert found(adapter.build_detector(one)) == [
        ("4111 1111 1111 1111", "CREDIT_CARD"),
        ("ada@example.com", "EMAIL_ADDRESS"),
    ]
    with pytest.raises(UnknownNameError, match="did you mean: EmailRecognizer"):
        adapter.build_detector(policy("presidio", 'recognizers = ["EmailRecogniser"]'))


def test_all_that_presidio_has_by_default(analyzer, policy):
    detect = adapter.build_detector(policy("presidio"))
    assert {("4111 1111 1111 1111", "CREDIT_CARD"), ("ada@example.com", "EMAIL_ADDRESS")} <= set(found(detect))
    documents = [Document("", text) for text in (TEXT, "", "é\0\ud800 " + TEXT)]
    assert detect.many(documents) == [detect(document) for document in documents]
    shift = 4
    places = [[(s.start, s.end) for s in spans] for spans in detect.many(documents)]
    assert [(a + shift, b + shift) for a, b in places[0]] == places[2]


def test_recognizers_alone_are_added_to_presidios_own(analyzer, policy, tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text(
        "recognizers:\n- name: Badge\n  supported_entity: EMPLOYEE_ID\n"
        "  patterns:\n  - {name: badge, regex: 'BX-[0-9]{4}', score: 0.8}\n",
        encoding="utf-8",
    )
    spans = found(adapter.build_detector(policy("presidio", f'config = "{path}"')))
    assert {("BX-1234", "EMPLOYEE_ID"), ("ada@example.com", "EMAIL_ADDRESS")} <= set(spans)


def test_a_file_of_recognizers(analyzer, policy, tmp_path):
    (tmp_path / "mine.yaml").write_text(
        "supported_languages: [en]\nglobal_regex_flags: 26\nrecognizers:\n"
        "  - name: badges\n    type: custom\n    supported_entity: BADGE\n    supported_language: en\n"
        "    patterns:\n      - {name: badge, regex: 'BX-[0-9]{4}', score: 0.8}\n",
        encoding="utf-8",
    )
    lines = ('config = "mine.yaml"', 'labels = { BADGE = "EMPLOYEE_ID" }')
    assert found(adapter.build_detector(policy("presidio", *lines))) == [("BX-1234", "EMPLOYEE_ID")]
    with pytest.raises(DataError, match=r"no file or folder absent\.yaml"):
        adapter.build_detector(policy("presidio", 'config = "absent.yaml"'))


def test_names_come_from_a_pipeline_that_is_installed(analyzer, policy, tmp_path):
    spacy = pytest.importorskip("spacy", reason="spaCy is not installed")
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "PERSON", "pattern": "Ada Brook"}])
    nlp.to_disk(tmp_path / "names")
    for lines in (('model = "names"',), ('model = "names"', 'recognizers = ["EmailRecognizer"]')):
        detect = adapter.build_detector(policy("presidio", *lines))
        assert ("Ada Brook", "PERSON") in found(detect, "So Ada Brook went.")
    with pytest.raises(DataError, match="there is no pipeline 'en_core_web_lg'"):
        adapter.build_detector(policy("presidio", 'model = "en_core_web_lg"'))
