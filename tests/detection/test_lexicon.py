"""Names from lists: the dictionary, lists per document, the exclusion list."""

from __future__ import annotations

import json
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym.detection.disguise import fold_lookalikes
from allonym.detection.lexicon import build_detector, fold_keeping_length, split_by_exclusions
from allonym.document import Document, Span
from allonym.errors import DataError, PolicyError
from allonym.policy import Policy, TermList

LINES = (Path(__file__).parents[1] / "cases" / "lexicon.jsonl").read_text("utf-8").splitlines()
CASES = [json.loads(line) for line in LINES]


def policy(*terms: str, label: str = "PERSON") -> Policy:
    return Policy(name="test", dictionary=(TermList(label, terms),))


def listed(text: str, meta: dict[str, object], **metadata: str) -> set[tuple[str, str, float]]:
    wanted = MappingProxyType({label: (key,) for label, key in metadata.items()})
    spans = build_detector(Policy(name="test", metadata=wanted))(Document("", text, meta))
    return {(text[s.start : s.end], s.label, s.score) for s in spans}


@check_each_row("case", CASES)
def test_dictionary(case: dict[str, list[str]]) -> None:
    text = str(case["text"])
    spans = sorted(build_detector(policy(*case["terms"]))(Document("", fold_lookalikes(text))))
    assert [text[s.start : s.end] for s in spans] == case["found"]
    assert {s.source for s in spans} <= {"lexicon:dictionary"}


@pytest.mark.parametrize("bad", ["", " ", "x", "--", "...", "é"])
def test_useless_terms_are_refused_by_number_and_not_by_name(bad: str) -> None:
    with pytest.raises(PolicyError, match=r"dictionary\.PERSON: term 2 of 3") as caught:
        build_detector(policy("Secretname", bad, "Other"))
    assert "Secretname" not in str(caught.value)


def test_a_person_in_a_list_is_found_by_parts_of_the_name() -> None:
    found = listed(
        "Dr. Lisa T. Su, Lisa Su, Ms. Su and Lisa; su lisa", {"execs": [{"name": "Dr. Lisa T. Su"}]}, EXECUTIVE="execs"
    )
    assert ("Lisa T. Su", "EXECUTIVE", 0.95) in found
    assert ("Lisa Su", "EXECUTIVE", 0.95) in found
    assert ("Su", "EXECUTIVE", 0.8) in found
    assert ("Lisa", "EXECUTIVE", 0.7) in found
    assert not {"su", "lisa"} & {name for name, _, _ in found}


@pytest.mark.parametrize("name", ["van der Berg, Anna", "Anna van der Berg, Jr.", "Prof. Anna van der Berg PhD"])
def test_inverted_names_particles_and_suffixes(name: str) -> None:
    found = {n for n, _, _ in listed("Anna van der Berg; van der Berg; Anna; Berg", {"who": name}, PERSON="who")}
    assert {"Anna van der Berg", "van der Berg", "Anna", "Berg"} <= found


@pytest.mark.parametrize(
    "name", ["Acme Rockets, Inc.", "Acme Rockets plc", "The Acme Rockets Company", "Acme Rockets Holdings Ltd"]
)
def test_a_company_is_found_without_its_legal_form(name: str) -> None:
    assert "Acme Rockets" in {n for n, _, _ in listed("at Acme Rockets today", {"company": name}, COMPANY="company")}


def test_lists_may_be_strings_sequences_tables_and_missing() -> None:
    meta: dict[str, object] = {
        "a": "Anna Berg",
        "b": ("Bob Cole", {"name": "Dora Falk"}),
        "c": None,
        "d": float("nan"),
        "e": 4242,
    }
    text = "Anna Berg Bob Cole Dora Falk 4242"
    wanted = MappingProxyType({"PERSON": ("a", "b", "c", "d", "e", "absent")})
    spans = build_detector(Policy(name="test", metadata=wanted))(Document("", text, meta))
    assert {text[s.start : s.end] for s in spans} >= {"Anna Berg", "Bob Cole", "Dora Falk", "4242"}


def test_other_values_fail_and_are_not_shown() -> None:
    with pytest.raises(DataError, match="metadata 'who' must hold a name") as caught:
        listed("text", {"who": b"Secretname"}, PERSON="who")
    assert "Secretname" not in str(caught.value)


def test_documents_do_not_share_their_lists() -> None:
    detect = build_detector(Policy(name="test", metadata=MappingProxyType({"COMPANY": ("company",)})))
    text = "Acme Rockets met Initech Systems"
    for name in ("Acme Rockets", "Initech Systems", "Acme Rockets"):
        assert {text[s.start : s.end] for s in detect(Document("", text, {"company": name}))} == {name}
    assert list(detect(Document("", text))) == []


names = st.lists(st.text(alphabet="abcdé", min_size=4, max_size=7), min_size=1, max_size=3).map(" ".join)


@given(st.lists(names, min_size=1, max_size=6, unique=True), st.data())
def test_every_listed_name_is_found_where_it_stands(terms: list[str], data: st.DataObject) -> None:
    term = data.draw(st.sampled_from(terms))
    before, after = data.draw(st.sampled_from([("", ""), ("xx ", " yy"), ("(", "),"), ("ж ", "'s")]))
    text = before + term.upper() + after
    spans = build_detector(policy(*terms))(Document("", text))
    assert (len(before), len(before) + len(term)) in {(s.start, s.end) for s in spans}


@given(st.lists(names, min_size=1, max_size=4), st.text(alphabet="abcdé \n'", max_size=40))
def test_only_whole_words_are_found(terms: list[str], text: str) -> None:
    for span in build_detector(policy(*terms))(Document("", text)):
        assert not text[span.start - 1 : span.start].isalnum() or span.start == 0
        assert not text[span.end : span.end + 1].isalnum()


def test_exclusions_hold_for_the_label_its_children_and_all() -> None:
    excluded = Policy(name="test", exclusions=(TermList("PERSON", ("Mark",)), TermList("*", ("4111 1111",))))
    document = Document("", "Mark's 4111-1111 Bob MARK")
    person, child, card = (
        Span(21, 25, "PERSON"),
        Span(0, 6, "EXECUTIVE"),
        Span(7, 16, "CREDIT_CARD", 1.0, "rules:card+valid"),
    )
    other, company = Span(17, 20, "PERSON"), Span(0, 4, "COMPANY")
    kept, dropped = split_by_exclusions(document, [person, child, card, other, company], excluded)
    assert kept == (other, company)
    assert dropped == (person, child, card)


def test_without_exclusions_all_is_kept() -> None:
    span = Span(0, 4, "PERSON")
    assert split_by_exclusions(Document("", "Mark"), [span], Policy(name="test")) == ((span,), ())
    with pytest.raises(PolicyError, match=r"exclusions\.PERSON: term 1 of 1"):
        split_by_exclusions(Document("", "Mark"), [span], Policy(name="test", exclusions=(TermList("PERSON", ("-",)),)))


def test_a_hundred_thousand_terms() -> None:
    terms = [f"Name{i:05d} Family{i % 977}" for i in range(100_000)]
    detect = build_detector(policy(*terms))
    text = "word " * 500 + "name00042 family42, Name99999 Family345, Name00001 Family2 " + "word " * 500
    assert [text[s.start : s.end] for s in sorted(detect(Document("", text)))] == [
        "name00042 family42",
        "Name99999 Family345",
    ]


def test_the_detector_shows_no_term() -> None:
    detect = build_detector(policy("Secretname"))
    spans = list(detect(Document("", "Secretname")))
    assert "Secretname" not in repr(spans) and "Secretname" not in repr(detect)


def test_comparison_keeps_lengths() -> None:
    long = [chr(p) for p in range(0x110000) if len(chr(p).lower()) != 1]
    assert long
    for char in (*long, "ß", "ﬁ", "½", "e\u0301", "한"):
        assert len(fold_keeping_length(f"a{char}b")) == len(char) + 2


def test_large_documents_give_what_small_ones_give():
    names = (*tuple(f"Zorb{c}{d} Quill{d}" for c in "abcdefgh" for d in "klmnop"), "Mark", "Markson")
    policy = Policy(name="p", dictionary=(TermList("PERSON", names),))
    piece = "Then Zorbak Quillk and Markson met Mark and zorbhp quillp, not Zorbak. "
    find = build_detector(policy)
    one = [(s.start, s.end) for s in find(Document("", piece))]
    assert len(one) == 4
    many = sorted((s.start, s.end) for s in find(Document("", piece * 2000)))
    assert many == [(a + i * len(piece), b + i * len(piece)) for i in range(2000) for a, b in sorted(one)]


def test_policies_that_want_diseases_find_them_in_words() -> None:
    text = "She has depression, HIV and Parkinson's disease, takes metformin and asked for rest."
    found = build_detector(Policy.load("gdpr"))(Document("", text))
    assert {text[s.start : s.end] for s in found} >= {"HIV", "Parkinson's disease", "depression", "metformin"}
    assert not list(build_detector(Policy.load("hipaa-safe-harbor"))(Document("", text)))
