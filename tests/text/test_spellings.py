"""Every comparison of names in the package agrees on which spellings are one name."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

from tests.rows import check_each_row

from allonym.detection.disguise import fold_lookalikes as fold_characters
from allonym.detection.lexicon import build_detector, split_by_exclusions
from allonym.document import Document, Span
from allonym.evaluate.leaks import count_leaks
from allonym.evaluate.matching import Mention
from allonym.kb.base import fold_key as fold_key
from allonym.link import link
from allonym.policy import Policy, TermList
from allonym.replace import make_plan
from allonym.replace.covering import find_repeats
from allonym.restoration.index import Index
from allonym.swap.writing import is_any_form_in_text
from allonym.text.fold import fold, fold_spellings
from allonym.text.names import normalize_surface
from allonym.vault import Known
from allonym.vault.variants import make_all_forms, split_folded_words

LINES = (Path(__file__).parents[1] / "cases" / "name_spellings.jsonl").read_text("utf-8").splitlines()
CASES = [json.loads(line) for line in LINES]
SAME = [(c["a"], c["b"]) for c in CASES if c["same"]]
OTHER = [(c["a"], c["b"]) for c in CASES if not c["same"]]
BOTH_WAYS = [*SAME, *((b, a) for a, b in SAME)]
KEY = b"a key only for the tests, 32 byte"
PSEUDONYMS = Policy.load("pseudonyms")


def in_one_text(a: str, b: str) -> tuple[Document, list[Span]]:
    text = f"Yesterday {a} came late. Then {b} left."
    start, second = text.index(a), text.rindex(b)
    return Document("1", text), [
        Span(start, start + len(a), "PERSON"),
        Span(second, second + len(b), "PERSON"),
    ]


def is_same_spelling(a: str, b: str) -> bool:
    return not set(fold_spellings(a)).isdisjoint(fold_spellings(b))


def test_there_are_enough_cases() -> None:
    assert len(SAME) >= 40


@check_each_row("a, b", BOTH_WAYS)
def test_two_spellings_are_one_person(a: str, b: str) -> None:
    assert is_same_spelling(normalize_surface(a), normalize_surface(b)) or is_same_spelling(a, b)
    document, spans = in_one_text(a, b)
    linked = link(document, spans)
    assert len(linked.entities) == 1
    plan = make_plan(document, linked, PSEUDONYMS, key=KEY)
    first, second = (edit.replacement for edit in plan.edits if edit.entity)
    assert fold(first) == fold(second)


@check_each_row("a, b", OTHER)
def test_other_names_are_other_people(a: str, b: str) -> None:
    assert not is_same_spelling(a, b)
    assert len(link(*in_one_text(a, b)).entities) == 2
    text = f"Yesterday {b} left."
    assert not list(build_detector(Policy(name="test", dictionary=(TermList("PERSON", (a,)),)))(Document("", text)))


@check_each_row("a, b", BOTH_WAYS)
def test_a_term_covers_and_excludes_the_other_spelling(a: str, b: str) -> None:
    document = Document("", fold_characters(f"Yesterday {b} left."))
    spans = list(build_detector(Policy(name="test", dictionary=(TermList("PERSON", (a,)),)))(document))
    assert document.text[spans[0].start : spans[0].end] == fold_characters(b)
    rest, excluded = split_by_exclusions(document, spans, Policy(name="test", exclusions=(TermList("*", (a,)),)))
    assert not rest and excluded == tuple(spans)


@check_each_row("a, b", BOTH_WAYS)
def test_a_list_in_the_metadata_covers_the_other_spelling(a: str, b: str) -> None:
    policy = Policy(name="test", metadata={"PERSON": ("people",)})
    document = Document("", fold_characters(f"Yesterday {b} left."), {"people": [a]})
    assert fold_characters(b) in {document.text[s.start : s.end] for s in build_detector(policy)(document)}


@check_each_row("a, b", BOTH_WAYS)
def test_a_stray_in_the_other_spelling_is_covered(a: str, b: str) -> None:
    text = f"Yesterday {a} left. {b} stayed."
    places = find_repeats(text, [(10, 10 + len(a))])
    assert {text[i] for i in range(text.rindex(b), text.rindex(b) + len(b))} - {" "} <= {
        c for start, end in places for c in text[start:end]
    }


@check_each_row("a, b", BOTH_WAYS)
def test_what_is_left_in_the_other_spelling_is_a_leak(a: str, b: str) -> None:
    table = count_leaks(a, [Mention(0, len(a), "PERSON")], [], {"PERSON": 0}, f"Yesterday {b} left.")
    assert table[0, 3:].tolist() == [1, 1]


@check_each_row("a, b", SAME)
def test_a_pseudonym_is_restored_from_its_other_spelling(a: str, b: str) -> None:
    index = Index([Known(a, "Ada Brook", "PERSON", "pseudonym@1", "1")])
    for word, other in zip(
        unicodedata.normalize("NFC", a).split(), unicodedata.normalize("NFC", b).split(), strict=True
    ):
        assert fold(word) in {reading.key for reading in index.read_word(other)}


@check_each_row("a, b", SAME)
def test_digests_know_the_other_spelling(a: str, b: str) -> None:
    forms = make_all_forms(a, "PERSON").by_kind["whole"]
    assert " ".join(w.text for w in split_folded_words(b)) in forms


@check_each_row("a, b", BOTH_WAYS)
def test_where_one_key_is_enough_all_keys_agree(a: str, b: str) -> None:
    if fold(a) == fold(b):
        assert normalize_surface(a) == normalize_surface(b)
        assert is_any_form_in_text([a], f"so {b} left")


def test_letters_that_knowledge_bases_keep() -> None:
    assert fold_key("Łódź Əliyev") == "lodz eliyev" and fold_key("Ħal") == "ħal"
