"""Placeholders of every style, the share removed, ranks, readability, similarity."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym.errors import DataError
from allonym.evaluate import placeholders, ranks_of, reader_scores, removed, similarity, surface
from allonym.evaluate.surface_measures import list_words
from allonym.pipeline import anonymize
from allonym.plan import ReaderScore
from allonym.report.evaluate.utility import reader_section
from allonym.text.placeholders import remove_placeholders


def reading_ease(text):
    return surface([text], [text], ranks={}).ease.before.value


def grade_level(text):
    return surface([text], [text], ranks={}).grade.before.value


@check_each_row(
    "tag, label, part",
    [
        ("[PERSON_1]", "PERSON", "PROPN"),
        ("[PERSON_AB12CD]", "PERSON", "PROPN"),
        ("<DATE 2>", "DATE", "NUM"),
        ("[DATE]", "DATE", "NUM"),
        ("[Company Name]", "COMPANY", "PROPN"),
        ("[Executive 3]", "EXECUTIVE", "PROPN"),
        ("[E-mail]", "EMAIL_ADDRESS", "X"),
        ("[firstname1]", "PERSON_FIRSTNAME", "PROPN"),
        ("[pronoun]", "PRONOUN", "PRON"),
        ("[numeric]", "NUMERIC", "NUM"),
        ("[organisation2]", "ORGANIZATION", "PROPN"),
        ("[otherattribute1]", "OTHER_IDENTIFYING_ATTRIBUTE", "NOUN"),
        ("[Person_1]", "PERSON", "PROPN"),
        ("PERSON_FIRSTNAME_12", "PERSON_FIRSTNAME", "PROPN"),
        ("NUMERIC_6th", "NUMERIC", "NUM"),
        ("OCCUPATION_1", "OCCUPATION", "NOUN"),
        ("PRONOUN", "PRONOUN", "PRON"),
        ("MR/MS", "TITLE", "PROPN"),
        ("[REDACTED]", "", "PROPN"),
        ("XXX", "", "X"),
        ("****", "", "X"),
        ("[NICKNAMES_4]", "", "PROPN"),
    ],
)
def test_placeholders_of_every_style(tag, label, part):
    text = f"Then {tag} spoke."
    (found,) = placeholders(text)
    assert (text[found.start : found.end], found.label, found.part) == (tag, label, part)
    assert list_words(text) == ["Then", "spoke"]


@pytest.mark.parametrize(
    "text", ["[laughter] so", "[doctor] hello", "a <b>c</b>", "[1] and [sic]", "Pronouns", "an XX."]
)
def test_what_is_no_placeholder(text):
    assert placeholders(text) == []


def test_a_possessive_goes_with_its_placeholder():
    assert list_words("[PERSON_1]'s dog and PERSON_2’s cat") == ["dog", "and", "cat"]


@given(st.text(max_size=200))
def test_placeholders_are_sorted_and_disjoint(text):
    found = placeholders(text)
    ends = [0, *(p.end for p in found)]
    assert all(a <= p.start < p.end for a, p in zip(ends, found, strict=False))
    assert len(remove_placeholders(text)) >= len(text) - sum(p.end - p.start + 2 for p in found)


@pytest.mark.parametrize("policy", ["default", "textwash", "sanitize", "reversible", "transcripts"])
def test_tags_of_our_policies_are_known(policy):
    text = "Mail ada@example.com or call 212-555-0142 on 3 May 2019."
    made = anonymize(text, policy)
    held = {(p.start, p.end) for p in placeholders(made.text)}
    moved, spots = 0, set()
    for edit in made.plan.edits:
        start = edit.start + moved
        moved += len(edit.replacement) - (edit.end - edit.start)
        if edit.replacement and not edit.replacement.isalpha():
            spots.add((start, start + len(edit.replacement)))
    assert spots and spots <= held


def test_share_removed_is_p3s():
    assert removed(["one two three four"], ["one [PERSON_1] four"]) == [0.5]
    assert removed(["Ann saw Bob"], ["Mary Jane saw Jim"]) == [pytest.approx(-1 / 3)]
    assert math.isnan(removed(["..."], ["x"])[0])
    assert removed([], []) == []


@given(st.lists(st.sampled_from(["word", "other", "third"]), min_size=1, max_size=30), st.data())
def test_share_removed_counts_replaced_words(found, data):
    gone = data.draw(st.lists(st.booleans(), min_size=len(found), max_size=len(found)))
    after = [f"[PERSON_{i}]" if g else w for i, (w, g) in enumerate(zip(found, gone, strict=True))]
    assert removed([" ".join(found)], [" ".join(after)]) == [pytest.approx(sum(gone) / len(found))]


def test_ranks_of_a_file_and_of_wordfreq(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("the\nof\n\nThe\nking\n", "utf-8")
    ranks = ranks_of(path)
    assert ranks == {"the": 1, "of": 2, "king": 3}
    before, after = surface(["The king, of [PERSON_1] Ruritania"], ["zzz"], ranks=ranks).rank.values
    assert before == [2]
    assert math.isnan(after[0])
    common = ranks_of()
    assert len(common) == 10_000 and common["the"] == 1
    (tmp_path / "empty.txt").write_text("\n", "utf-8")
    with pytest.raises(DataError, match="a word a line"):
        ranks_of(tmp_path / "empty.txt")
    with pytest.raises(DataError, match="not readable"):
        ranks_of(tmp_path / "none.txt")


def test_readability_by_hand():
    # 2 sentences, 6 words, 8 syllables: the cat sat / happy dogs run.
    text = "The cat sat. Happy dogs ran."
    assert reading_ease(text) == pytest.approx(206.835 - 1.015 * 3 - 84.6 * 7 / 6)
    assert grade_level(text) == pytest.approx(0.39 * 3 + 11.8 * 7 / 6 - 15.59)
    assert reading_ease(text) == reading_ease(text.rstrip("."))
    assert math.isnan(reading_ease("[PERSON_1]!"))


def test_removing_a_name_does_not_shorten_a_sentence():
    kept, gone = "The cat saw the dog.", "The cat saw the [PERSON_1]."
    assert grade_level(gone) == pytest.approx(grade_level(kept))


def test_surface_of_the_same_texts_changes_nothing():
    texts = ["The cat sat on the mat.", "A dog ran, and ran."]
    found = surface(texts, texts)
    assert found.removed.value == 0 and found.removed_overall.value == 0
    for change in (found.rank, found.listed, found.ease, found.grade):
        assert change.difference.value == 0
    assert found.to_dict()["texts"] == 2


def test_surface_without_words_says_so():
    found = surface(["..."], ["!"])
    assert math.isnan(found.removed.value) and found.removed.method == "none: no text has words"
    assert math.isnan(found.ease.before.value)
    assert found.to_dict()["ease"]["before"]["value"] is None


@pytest.mark.parametrize(("before", "after"), [(["a"], ["a", "b"]), ([], [])])
def test_surface_refuses(before, after):
    with pytest.raises(DataError, match="required"):
        surface(before, after)


def test_similarity_of_known_vectors():
    rows = {"a": [1, 0], "b": [0, 1], "c": [0.6, 0.8], "": [0, 0]}

    def encode(texts):
        return np.array([rows[t] for t in texts], float)

    found = similarity(["a", "b"], ["c", "b"], encode=encode)
    assert found.mean.value == pytest.approx((0.6 + 1) / 2)
    assert found.chance.value == pytest.approx((0 + 0.8) / 2)
    lone = similarity(["a"], ["c"], encode=encode)
    assert lone.mean.value == pytest.approx(0.6) and lone.chance.method == "none: no other text"
    assert math.isnan(similarity([""], [""], encode=encode).mean.value)


def test_similarity_by_the_embedded_encoder():
    steps = []
    texts = ["The nurse went home after a long night.", "Bread prices rose again in spring."]
    found = similarity(
        texts, ["The doctor went home after a long night.", texts[1]], advance=lambda *s: steps.append(s)
    )
    assert 0.5 < found.mean.value <= 1 and found.chance.value < 0.4
    assert steps[-1] == (4, 4)


def test_reader_scores_come_from_the_texts_alone():
    before = ["Ada met the cleaner in Leeds. Ada waved.", "Nothing here at all.", ""]
    after = ["[PERSON_1] met the [OCCUPATION_1] in [CITY_1]. [PERSON_2] waved.", "Nothing here at all.", ""]
    found = reader_scores(before, after)
    assert found.documents == (ReaderScore(8, 4, 0, 1, 1, 1), ReaderScore(4), ReaderScore())
    assert found.total == ReaderScore(12, 4, 0, 1, 1, 1)
    assert (found.replaced.value, found.lower_case.value, found.replaced.n) == (25, 6.25, 2)
    told = repr(reader_section(found.to_dict()))
    assert "Leeds" not in told and "Surfaces with several replacements" in told
    assert reader_section({}) is None
    with pytest.raises(DataError):
        reader_scores(["a"], [])
