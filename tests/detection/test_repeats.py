import pytest
from hypothesis import given
from hypothesis import strategies as st

from allonym.detection.mentions import find_repeated_names
from allonym.document import Span
from allonym.labels import TAXONOMY


def found(text, *seeds, label="ORGANIZATION", score=0.9):
    spans, at = [], 0
    for seed in seeds:
        at = text.index(seed, at)
        spans.append(Span(at, at + len(seed), label, score, "tagger"))
        at += len(seed)
    return [(text[s.start : s.end], s.start, s.label) for s in find_repeated_names(text, spans, spans, TAXONOMY)]


def test_a_name_of_several_words_is_found_again():
    text = "Quill Works grew. Later, said Quill Works, nothing happened."
    assert found(text, "Quill Works") == [("Quill Works", text.rindex("Quill"), "ORGANIZATION")]


def test_a_word_that_is_mostly_no_name_is_not_followed():
    assert found("Apple grew. Apple and Apple pie, Apple trees.", "Apple") == []


def test_a_word_that_is_mostly_a_name_is():
    assert len(found("Zorvex grew. Zorvex fell. Zorvex rose.", "Zorvex", "Zorvex")) == 1


def test_parts_of_names_where_there_are_no_capitals():
    text = "i met adaeze okonkwo and later adaeze and then mister okonkwo okonkwo"
    assert found(text, "adaeze okonkwo", "adaeze", "okonkwo", label="PERSON") == [
        ("okonkwo", text.rindex("okonkwo"), "PERSON")
    ]


def test_inside_other_words_is_no_mention():
    assert found("Mara left. Maraschino is red. Tamara stayed.", "Mara") == []


@pytest.mark.parametrize(("label", "score"), [("OCCUPATION", 0.9), ("DATE", 0.9), ("ORGANIZATION", 0.3)])
def test_no_names_and_nothing_unsure(label, score):
    assert found("Night Porter. A Night Porter.", "Night Porter", label=label, score=score) == []


@given(st.text(alphabet="Abc .\n", max_size=60), st.integers(0, 60), st.integers(1, 8))
def test_what_is_found_is_uncovered_and_equal_to_a_seed(text, start, length):
    if start + length > len(text):
        return
    seed = Span(start, start + length, "PERSON", 0.9, "tagger")
    for span in find_repeated_names(text, [seed], [seed], TAXONOMY):
        assert span.end <= seed.start or span.start >= seed.end
        assert text[span.start : span.end] in text[seed.start : seed.end]
