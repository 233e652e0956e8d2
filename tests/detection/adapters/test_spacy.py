import pytest

import allonym
from allonym.detection.adapters import recognizers as adapter
from allonym.document import Document
from allonym.errors import DataError, PolicyError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:.*:UserWarning"),
]
TEXT = "Ada Brook left Quill for Veldt in May."


@pytest.fixture(scope="module")
def spacy():
    return pytest.importorskip("spacy", reason="spaCy is not installed")


def ruled(spacy, folder, labels=("PERSON", "ORG", "GPE"), spans=False):
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("span_ruler", config={"spans_key": "sc"}) if spans else nlp.add_pipe("entity_ruler")
    words = ("Ada Brook", "Quill", "Veldt")
    ruler.add_patterns([{"label": lab, "pattern": word} for lab, word in zip(labels, words, strict=True)])
    nlp.to_disk(folder)
    return f'model = "{folder}"'


def found(policy, text=TEXT):
    return [
        (text[s.start : s.end], s.label, s.score, s.source)
        for s in adapter.build_spacy_detector(policy)(Document("", text))
    ]


def test_entities_of_a_pipeline(spacy, policy, tmp_path):
    one = policy("spacy", ruled(spacy, tmp_path / "ruled"))
    assert found(one) == [
        ("Ada Brook", "PERSON", 0.85, "spacy:model"),
        ("Quill", "ORGANIZATION", 0.85, "spacy:model"),
        ("Veldt", "LOCATION", 0.85, "spacy:model"),
    ]
    assert allonym.anonymize(TEXT, one.with_(default=allonym.Policy.load("default").default)).text == (
        "[PERSON_1] left [ORGANIZATION_1] for [LOCATION_1] in May."
    )


def test_a_model_beside_the_policy(spacy, policy, tmp_path):
    ruled(spacy, tmp_path / "ruled")
    assert len(found(policy("spacy", 'model = "ruled"'))) == 3


def test_labels_and_score_from_the_policy(spacy, policy, tmp_path):
    model = ruled(spacy, tmp_path / "ruled", ("PERSON", "ODDITY", "GPE"))
    with pytest.raises(PolicyError, match="labels ODDITY are in no scheme"):
        adapter.build_spacy_detector(policy("spacy", model))
    one = policy("spacy", model, "score = 0.6", 'labels = { ODDITY = "COMPANY", GPE = "" }')
    assert [f[:3] for f in found(one)] == [("Ada Brook", "PERSON", 0.6), ("Quill", "COMPANY", 0.6)]


def test_a_span_group(spacy, policy, tmp_path):
    model = ruled(spacy, tmp_path / "spans", spans=True)
    assert found(policy("spacy", model)) == []
    assert [f[:2] for f in found(policy("spacy", model, 'spans = "sc"'))] == [
        ("Ada Brook", "PERSON"),
        ("Quill", "ORGANIZATION"),
        ("Veldt", "LOCATION"),
    ]
    with pytest.raises(DataError, match="fills no span group 'no'"):
        found(policy("spacy", model, 'spans = "no"'))


def test_scores_of_a_span_group_are_carried_over(spacy, policy, tmp_path):
    nlp = spacy.blank("en")
    doc = nlp(TEXT)
    doc.spans["sc"] = [doc.char_span(0, 9, "PERSON"), doc.char_span(15, 20, "ORG")]
    doc.spans["sc"].attrs["scores"] = [0.9, 0.25]
    assert [tuple(f) for f in adapter._find_entities(doc, "sc", 0.85)] == [
        (0, 9, "PERSON", 0.9),
        (15, 20, "ORG", 0.25),
    ]


def test_a_trained_recogniser(spacy, policy, tmp_path):
    from spacy.training import Example

    nlp = spacy.blank("en")
    nlp.add_pipe("ner").add_label("PERSON")
    spacy.util.fix_random_seed(1)
    names = ("Ada Brook", "Cyd Dale", "Eve Farrow", "Gil Hart")
    examples = [
        Example.from_dict(nlp.make_doc(f"{n} came home."), {"entities": [(0, len(n), "PERSON")]}) for n in names
    ]
    step = nlp.initialize(lambda: examples)
    for _ in range(30):
        nlp.update(examples, sgd=step)
    nlp.to_disk(tmp_path / "trained")
    assert ("Cyd Dale", "PERSON", 0.85, "spacy:model") in found(
        policy("spacy", f'model = "{tmp_path / "trained"}"'), "Cyd Dale came home."
    )


def test_long_texts_and_many_texts(spacy, policy, tmp_path, monkeypatch):
    monkeypatch.setattr(adapter, "SPACY_WORDS", 40)
    monkeypatch.setattr(adapter, "OVERLAP", 8)
    build = adapter.build_spacy_detector(policy("spacy", ruled(spacy, tmp_path / "ruled"), "batch_size = 3"))
    long = "word " * 39 + "Ada Brook " + "word " * 100 + "Quill\0"
    documents = [Document("", text) for text in (long, "", TEXT, "\ud800 Quill")]
    many = build.many(documents)
    assert many == [build(document) for document in documents]
    assert [[long[s.start : s.end] for s in many[0]], len(many[1]), len(many[2])] == [["Ada Brook", "Quill"], 0, 3]
    assert [(s.start, s.end) for s in many[3]] == [(2, 7)]


def test_a_pipeline_that_is_not_there(spacy, policy):
    with pytest.raises(DataError, match="there is no pipeline 'en_no_such_pipeline'"):
        adapter.build_spacy_detector(policy("spacy", 'model = "en_no_such_pipeline"'))
