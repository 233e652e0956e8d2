import pytest

import allonym
from allonym.detection.mentions import (
    find_capitalised_names,
    find_ends_of_numbers,
    find_initials,
    find_name_repetitions,
    find_names_beside_slash,
    find_short_names,
    is_written_with_care,
)
from allonym.document import Span
from allonym.labels import TAXONOMY


def found(text, *names, label="PERSON", score=0.8):
    spans = [Span(text.index(n), text.index(n) + len(n), label, score, "t") for n in names]
    return sorted(text[s.start : s.end] for s in find_name_repetitions(text, spans, TAXONOMY))


@pytest.mark.parametrize(
    ("text", "seed", "expected"),
    [
        ("Miss Hartley spoke. Later Anna Hartley and J. Hartley left.", "Hartley", ["Anna Hartley", "J. Hartley"]),
        ("Mr. Fenwick came. The Fenwicks' house is Fenwick's.", "Fenwick", ["Fenwick", "Fenwicks"]),
        ("Mr. Price rose. Then the price fell, said Price.", "Price", []),
        ("Dr. Osman called. Osmanthus smells. Thanks Osman Bey.", "Osman", ["Osman Bey"]),
        ("Ms Monday left. Monday was quiet.", "Monday", []),
    ],
)
def test_names_spread(text, seed, expected):
    assert found(text, seed) == expected


@pytest.mark.parametrize(
    ("text", "seed", "expected"),
    [
        ("Delphine Brook rang. Del! Of course. Delta came.", "Delphine Brook", ["Del"]),
        ("My father, Reginald, was 88. Reg died.", "Reginald", ["Reg"]),
        ("Reginald has a car, Reg. No. 4471, reg of 2019.", "Reginald", []),
        ("Margaret Pell and Peggy. The Mar 2019 list, Mark, Marg.", "Margaret Pell", ["Marg", "Peggy"]),
        ("William Haines paid. Will you? The Bill is due, his bill.", "William Haines", []),
        ("Mr Delacroix left. Del came.", "Delacroix", []),
        ("Julia Kerr, born in Jul 1980.", "Julia Kerr", []),
    ],
)
def test_short_forms_of_given_names_are_found(text, seed, expected):
    span = Span(text.index(seed), text.index(seed) + len(seed), "PERSON", 0.8, "t")
    assert sorted(text[s.start : s.end] for s in find_short_names(text, [span], TAXONOMY)) == expected


@pytest.mark.parametrize(
    ("text", "person"),
    [
        ("She was strict. Blessing Okonkwo, yes.", "Blessing Okonkwo"),
        ("We rang. Hope Brown will call.", "Hope Brown"),
    ],
)
def test_a_word_that_is_a_given_name_before_a_family_name_belongs_to_it(text, person):
    assert person in [text[s.start : s.end] for s in allonym.detect(text) if s.label == "PERSON"]


@pytest.mark.parametrize(
    ("text", "seed", "expected"),
    [
        ("Buzzer MacAskill/Patel, please.", "Patel", ["MacAskill"]),
        ("Buzzer Patel/MacAskill.", "Patel", ["MacAskill"]),
        ("Manager/Patel and Agent/Patel/x", "Patel", []),
        ("See MacAskill/Patel/notes.txt or www.MacAskill/Patel", "Patel", ["MacAskill"]),
        ("Patel/Notes.txt, Patel/Brook@home", "Patel", []),
    ],
)
def test_names_that_a_slash_joins_are_found(text, seed, expected):
    span = Span(text.index(seed), text.index(seed) + len(seed), "PERSON", 0.4, "t")
    assert [text[s.start : s.end] for s in find_names_beside_slash(text, [span], TAXONOMY)] == expected


@pytest.mark.parametrize(
    ("text", "code", "expected"),
    [
        ("Invoice JST-2291: put 2291 in the reference.", "JST-2291", ["2291"]),
        ("Order A/77120 (77120) costs $77120, or 77,120, or 177120.", "A/77120", ["77120"]),
        ("Case INC-2024 is of 2024; case X-500 of 500 words.", "INC-2024", []),
        ("Call 0161-4417 or 4417.", "0161-4417", []),
    ],
)
def test_the_end_of_a_code_is_found_where_it_stands_alone(text, code, expected):
    span = Span(text.index(code), text.index(code) + len(code), "ORDER_NUMBER", 0.8, "t")
    assert [text[s.start : s.end] for s in find_ends_of_numbers(text, [span], TAXONOMY)] == expected


def test_a_long_path_of_names_does_not_hang():
    text = "Ada/Brook/Cole/" * 20_000
    spans = [Span(i, i + 3, "PERSON", 0.9, "t") for i in range(0, len(text), 15)]
    assert find_names_beside_slash(text, spans, TAXONOMY) == []


def test_earlier_mention_counts_too():
    text = "Laura Gannon spoke. Miss Gannon, you may begin."
    at = text.rindex("Gannon")
    out = find_name_repetitions(text, [Span(at, at + 6, "PERSON", 0.8)], TAXONOMY)
    assert [text[s.start : s.end] for s in out] == ["Laura Gannon"]


def test_weak_or_other_findings_do_not_spread():
    assert found("Hartley and Hartley", "Hartley", score=0.6) == []
    assert found("Hartley and Hartley", "Hartley", label="CITY") == []


def test_overlapping_seeds_count_once():
    text = "Victoria Beckham left. The Beckhams stayed."
    spans = [Span(0, 16, "PERSON", 0.9), Span(9, 16, "PERSON", 0.9), Span(0, 8, "PERSON", 0.9)]
    assert [text[s.start : s.end] for s in find_name_repetitions(text, spans, TAXONOMY)] == ["Beckhams"]


def test_in_the_chain():
    text = "Mr. Jagger sang. Later Mick Jagger left with Bianca Jagger."
    assert "Jagger" not in allonym.anonymize(text).text


def test_longer_names_are_not_cut():
    assert found("Mr. Osman came, then Ms. Osmanson. Osman and Osmanson left.", "Osman", "Osmanson") == [
        "Osman",
        "Osmanson",
    ]


@pytest.mark.parametrize(
    ("text", "names", "expected"),
    [
        ("Dagny Solheim asked. DS to call; DSL is slow.", ["Dagny Solheim"], ["DS"]),
        ("Cllr Bea Stott spoke. BS to write.", ["Cllr Bea Stott"], ["BS"]),
        ("Paul Reed spoke. PR is costly. Seconded PR.", ["Paul Reed"], ["PR"]),
        ("Dr Paul Reed\nPR: And PR is\nPR: costly?", ["Dr Paul Reed"], ["PR", "PR"]),
        ("Dagny spoke. DS to call.", ["Dagny"], []),
        ("Paul Reed (PR) spoke. PR left for the PR Group.", ["Paul Reed", "PR Group"], ["PR", "PR"]),
        ("Pat O'Rourke spoke. PO'R and AO'B agreed.", ["Pat O'Rourke"], ["PO'R"]),
        ("Piotr Madej came. PM reported losses; by 9 PM all left, PM or not.", ["Piotr Madej"], ["PM"]),
    ],
)
def test_initials_of_people_who_are_named(text, names, expected):
    spans = [Span(text.index(n), text.index(n) + len(n), "PERSON", 0.9, "t") for n in names]
    assert [text[s.start : s.end] for s in find_initials(text, spans, TAXONOMY)] == expected


def test_initials_behind_a_name_are_the_person_whatever_a_tagger_took_them_for():
    text = "Present: Bee Tranter (BT), Colin Mears (CM), line manager.\nBT asked about BT Group shares. CM agreed."
    out = allonym.anonymize(text, "default").text
    assert out.count("[PERSON_1]") == out.count("[PERSON_2]") == 3
    assert "BT" not in out and "CM" not in out


def test_a_term_of_the_user_is_no_initials():
    policy = allonym.Policy.load("default").changed(
        {"dictionary": {"ORGANIZATION": ["BT"]}, "rules": {"PERSON": {"operator": "keep"}}}, "test"
    )
    out = allonym.anonymize("Present: Bee Tranter (BT), line manager.\nBT is secret.", policy).text
    assert "Bee Tranter" in out and "BT" not in out


def test_a_capital_within_a_sentence_makes_a_name():
    text = (
        "Will they? Ask Will first, and Will will mark it. Mark it. I hope Hope comes.\nWill and I left. Hope and pray."
    )
    assert [text[s.start : s.end] for s in find_capitalised_names(text, [])] == ["Will", "Will", "Hope", "Will"]


def test_care_shows_in_how_sentences_begin():
    assert is_written_with_care("It was late. They left. Nobody came. We slept.")
    assert not is_written_with_care("It was late. they left. nobody came. We slept.")
    assert not is_written_with_care("It was late. They left.")  # too few to tell
    talk = "Ada: yes.\nBo: no.\nAda: why.\nBo: so.\n"
    assert is_written_with_care(talk) and not is_written_with_care(talk, [5, 13, 22, 30])
