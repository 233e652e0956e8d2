"""spaCy's Doc in and out, and the component, against the installed package."""

from __future__ import annotations

import pickle
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import allonym
from allonym.document import Document, Span
from allonym.errors import DataError, MissingExtra, PolicyError, UnknownNameError, UsageError
from allonym.integrations.spacy import GROUP, from_spacy, to_spacy
from allonym.policy import Policy

spacy = pytest.importorskip("spacy", reason="spaCy is not installed")

pytestmark = pytest.mark.slow
RULES = Policy.load("default").with_(detectors=("rules",))
TEXT = "Mail ada@example.com, or Ada-Mae Brook's aunt in Springfield."
NAME = Span(TEXT.index("Mae"), TEXT.index("'s"), "PERSON", 0.7, "tagger:model")
PLACE = Span(TEXT.index("Spring"), TEXT.index(".", 30), "CITY", 0.9, "rules:city")


def test_spans_become_entities_as_wide_as_their_tokens():
    doc = to_spacy(TEXT, [PLACE, NAME])
    assert doc.text == TEXT
    assert [(e.text, e.label_) for e in doc.ents] == [("Mae Brook", "PERSON"), ("Springfield", "CITY")]
    inside = Span(TEXT.index("example"), TEXT.index("example") + 7, "PERSON")
    assert [e.text for e in to_spacy(TEXT, [inside]).ents] == ["ada@example.com"]


def test_labels_can_be_those_of_ontonotes():
    doc = to_spacy(TEXT, [NAME, PLACE, Span(5, 20, "EMAIL_ADDRESS")], scheme="spacy")
    assert [e.label_ for e in doc.ents] == ["EMAIL_ADDRESS", "PERSON", "GPE"]
    assert from_spacy(doc)[1][2].label == "CITY"
    with pytest.raises(UnknownNameError):
        to_spacy(TEXT, [NAME], scheme="never")
    with pytest.raises(UnknownNameError):
        to_spacy(TEXT, [Span(0, 1, "NEVER")])


@given(
    st.text("ab. \n\u00e9\u05d0'-@", max_size=40),
    st.lists(st.tuples(st.integers(0, 39), st.integers(1, 9), st.sampled_from(["PERSON", "CITY"])), max_size=5),
)
@settings(max_examples=60, deadline=None)
def test_there_and_back_is_exact_also_where_spans_overlap(text, places):
    spans = tuple(sorted({Span(a, a + n, label, 0.5, "x") for a, n, label in places if a + n <= len(text)}))
    doc = to_spacy(Document("d", text), spans, NLP)
    document, back = from_spacy(doc, id="d")
    assert (document, back) == (Document("d", text), spans)
    covered = {i for e in doc.ents for i in range(e.start_char, e.end_char)}
    assert {i for s in spans for i in range(s.start, s.end) if not text[i].isspace()} <= covered | {
        i for s in doc.spans[GROUP] for i in range(s.start_char, s.end_char)
    }


NLP = spacy.blank("en")


def test_it_survives_being_written():
    doc = to_spacy(TEXT, [NAME, PLACE])
    again = spacy.tokens.Doc(doc.vocab).from_bytes(doc.to_bytes())
    assert from_spacy(again)[1] == (NAME, PLACE)


def test_a_doc_of_somebody_else():
    doc = NLP(TEXT)
    assert from_spacy(doc) == (Document("", TEXT), ())
    doc.ents = [doc.char_span(PLACE.start, PLACE.end, "GPE")]
    doc.spans["mine"] = [doc.char_span(5, 20, "ORG")]
    ((found,), (mine,)) = from_spacy(doc)[1], from_spacy(doc, group="mine")[1]
    assert (found.start, found.end, found.label, found.source) == (PLACE.start, PLACE.end, "LOCATION", "spacy:ents")
    assert (mine.label, mine.source) == ("ORGANIZATION", "spacy:mine")
    assert allonym.anonymize(TEXT, RULES).plan.digest
    with pytest.raises(UsageError, match="no span group 'none'"):
        from_spacy(doc, group="none")
    doc.ents = [doc.char_span(5, 20, "BADGE")]
    with pytest.raises(PolicyError, match="BADGE"):
        from_spacy(doc)
    assert [s.label for s in from_spacy(doc, labels={"BADGE": "EMPLOYEE_ID"})[1]] == ["EMPLOYEE_ID"]


def test_what_is_wrong_is_said():
    with pytest.raises(UsageError, match=f"a span ends at 99, and the text at {len(TEXT)}"):
        to_spacy(TEXT, [Span(0, 99, "PERSON")])
    with pytest.raises(DataError, match="lone surrogates") as caught:
        to_spacy("Zaphrandel\ud800", [])
    assert "Zaphrandel" not in repr(caught.value) and caught.value.__cause__ is None


def test_the_component(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text('extends = "default"\n[detect]\ndetectors = ["rules"]\n', encoding="utf-8")
    import allonym.integrations.spacy_pipe as pipe

    assert pipe.component
    nlp = spacy.blank("en")
    nlp.add_pipe("allonym", config={"policy": str(path)})
    docs = list(nlp.pipe([TEXT, "", "Nothing."]))
    assert [(e.text, e.label_) for e in docs[0].ents] == [("ada@example.com", "EMAIL_ADDRESS")]
    assert from_spacy(docs[0])[1] == allonym.detect(TEXT, path)
    again = pickle.loads(pickle.dumps(nlp.get_pipe("allonym")))  # as nlp.pipe does with n_process
    assert [e.text for e in again(nlp.make_doc(TEXT)).ents] == ["ada@example.com"]
    nlp.to_disk(tmp_path / "pipeline")
    assert [e.text for e in spacy.load(tmp_path / "pipeline")(TEXT).ents] == ["ada@example.com"]
    beside = spacy.blank("en")
    ruler = beside.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "ORG", "pattern": "Springfield"}])
    beside.add_pipe("allonym", config={"policy": str(path), "ents": False})
    doc = beside(TEXT)
    assert [e.label_ for e in doc.ents] == ["ORG"] and [s.label_ for s in doc.spans[GROUP]] == ["EMAIL_ADDRESS"]
    with pytest.raises(UnknownNameError, match="nosuch"):
        spacy.blank("en").add_pipe("allonym", config={"policy": "nosuch"})


def test_spacy_finds_the_component_by_itself():
    from importlib.metadata import entry_points

    (found,) = [e for e in entry_points(group="spacy_factories") if e.name == "allonym"]
    assert callable(found.load())


def test_the_package_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(MissingExtra, match=r"\[spacy\]"):
        to_spacy("text", [])
