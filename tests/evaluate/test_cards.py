"""Cards of persons: who is in a text, what is left of each, how many people fit, and hardening for all of them."""

from __future__ import annotations

import json

import pytest
from tests.rows import check_each_row

from allonym import anonymize
from allonym.errors import UsageError
from allonym.evaluate import harden_persons, person_cards
from allonym.evaluate.card_facts import Statement, read_people
from allonym.evaluate.cards import INTRUDERS, count_fitting, estimate_share, read_population
from allonym.plan import apply_edits, invert_plan
from allonym.policy import Policy

NAMES = Policy.only(["PERSON"])
TEXT = (
    "Anna Price, 43, is a nurse from Leeds. She was diagnosed with epilepsy in May 2009. Her husband Tom Price is a "
    "farmer and a Methodist. I am the only blind piano tuner in Houston. My sister has two kids."
)


def list_facts(text, person, original=None):
    """The kinds and words of what is left of the person who goes by a name."""
    cards = person_cards([text], None if original is None else [original]).cards
    return {(fact.kind, fact.value) for card in cards if card.name == person for fact in card.facts}


@check_each_row(
    "text, person, facts",
    [
        ("[PERSON_1] is a 35-year-old teacher.", "[PERSON_1]", {("age", "35-year-old"), ("work", "teacher")}),
        ("[PERSON_1] has asthma. [PERSON_2] is a nurse.", "[PERSON_2]", {("work", "nurse")}),
        ("[PERSON_1] came. His brother is a twin.", "his brother", {("sex", "male"), ("kin", "twin")}),
        ("My wife [PERSON_1] is a nurse.", "[PERSON_1]", {("kin", "wife of the author"), ("work", "nurse")}),
        ("My wife [PERSON_1] is a nurse.", "the author", {("kin", "wife")}),
        ("Ann: I have asthma.\nBen: I am a nurse.\nAnn: Oh.\nBen: Yes.", "Ben", {("work", "nurse")}),
        (
            "Project Manager: Hello.\nMarketing: Hi.\nProject Manager: Right.",
            "Project Manager",
            {("work", "Project Manager")},
        ),
        (
            "This person is a great actor. He is 60 years old.",
            "the person described",
            {("work", "actor"), ("age", "60 years old")},
        ),
        ("[PERSON_1] is a friend of [PERSON_2]. She is a nurse.", "[PERSON_1]", {("sex", "female"), ("work", "nurse")}),
        ("[PERSON_1] is aged 30-39.", "[PERSON_1]", {("age", "aged 30-39")}),
        ("[PERSON_1] has a PhD.", "[PERSON_1]", {("education", "PhD")}),
        ("[PERSON_1] is married to [PERSON_2].", "[PERSON_2]", {("kin", "married")}),
        ("We are joined by [PERSON_1], who is a nurse.", "[PERSON_1]", {("work", "nurse")}),
        ("From: [PERSON_1]\nTo: [PERSON_2]\nI am a nurse.", "[PERSON_1]", {("work", "nurse")}),
        (
            "[PERSON_1] was a politician and governor of Maine.",
            "[PERSON_1]",
            {("work", "governor"), ("place", "Maine")},
        ),
        ("The bites hurt [PERSON_1] (my son).", "[PERSON_1]", {("kin", "son of the author")}),
        ("I was born in Leeds.", "the author", {("place", "Leeds")}),
        ("[PERSON_1] ran the yard. Everybody called him Spud.", "[PERSON_1]", {("name", "Spud")}),
        ("[PERSON_1] ran the yard. Everybody called him 'Spud'.", "[PERSON_1]", {("name", "Spud")}),
        ("[PERSON_1] ran the yard. His nickname was Spud.", "[PERSON_1]", {("name", "Spud")}),
        ("[PERSON_1] works at Bellworth Bank in Leeds.", "[PERSON_1]", {("place", "Leeds")}),
        (
            "Famous actor. Best known for [PERSON_1] and Dr [PERSON_2]. He is 44 years old and married to [PERSON_3].",
            "the person described",
            {("age", "44 years old")},
        ),
    ],
)
def test_facts_belong_to_a_person(text, person, facts):
    there = list_facts(text, person)
    assert facts <= there, there


@check_each_row(
    "text, person, kinds",
    [
        ("From: [PERSON_1]\nI have provided copies to Bellworth Bank in Leeds.", "[PERSON_1]", "organisation place"),
        ("From: [PERSON_1]\nI don't have copies of the March 31, 1999 Bellworth Agreement.", "[PERSON_1]", "date"),
        ("[PERSON_1] called. She is sending the contracts to Leeds.", "[PERSON_1]", "place"),
        ("Marketing: Alright, Bellworth Bank.\nDesign: Yes.\nMarketing: Right.", "Marketing", "organisation"),
        ("[PERSON_1] is very private.", "[PERSON_1]", "work"),
        ("[PERSON_1] met [PERSON_2]. HE has a presence in Leeds.", "[PERSON_1]", "sex place"),
        ("[PERSON_1] is a huge advocate for the city.", "[PERSON_1]", "work"),
        ("I can not imagine that we are the only ones with this problem.", "the author", "rare"),
        ("Employee Name: [PERSON_1]\nReport Name: [PERSON_1] 1/17/02\nReport Date: 1/17/02", "[PERSON_1]", "date"),
        ("[PERSON_1] is a cricketer. He made his debut playing against Devon.", "[PERSON_1]", "organisation place"),
        ("[PERSON_1] is a famous, retired, international cocaine dealer.", "[PERSON_1]", "origin"),
        ("[PERSON_1] is sure that the contract year (11/1/2003 - 10/31/2004) is not in it.", "[PERSON_1]", "date"),
        ("[PERSON_1] has raised some issues about how Bellworth Bank is booked.", "[PERSON_1]", "organisation place"),
        (
            "Project Manager: Right.\nMarketing: 'Kay . Hmm ?\nProject Manager: Alright .\nMarketing: Oh .",
            "Kay",
            "name",
        ),
        ("Famous actor. Best known for [PERSON_1]. He is 44 years old.", "[PERSON_1]", "age sex"),
    ],
)
def test_what_a_sentence_only_mentions_is_no_fact(text, person, kinds):
    there = list_facts(text, person)
    assert not {kind for kind, _ in there} & set(kinds.split()), there


def test_the_same_work_counts_once():
    text = "Project Manager: Hello.\nDesigner: Hi.\nProject Manager: I am the Project Manager.\nDesigner: Yes."
    [card] = [card for card in person_cards([text]).cards if card.name == "Project Manager"]
    assert [fact.kind for fact in card.facts] == ["work"]


def test_what_anonymising_wrote_is_no_fact():
    pseudonymised = TEXT.replace("Anna", "Maud").replace("Leeds", "Ripon")
    facts = list_facts(pseudonymised, "Maud Price", TEXT)
    assert ("place", "Ripon") not in facts
    assert ("work", "nurse") in facts


def test_the_date_of_a_paper_is_nobodys():
    assert not list_facts("The agreement with [PERSON_1] dated October 18, 1999 was lost.", "[PERSON_1]")


def test_a_name_that_stays_is_left():
    kinds = {kind for kind, _ in list_facts("Ada Wold is a nurse.", "Ada Wold", "Ada Wold is a nurse.")}
    assert {"name", "work"} <= kinds


def test_everybody_counts_not_only_the_author():
    safe = anonymize(TEXT, NAMES).text
    result = person_cards([safe], [TEXT])
    assert {card.sort for card in result.cards} == {"placeholder", "author", "relative"}
    assert result.persons == 4


def test_the_fewest_fit_for_whom_most_is_known():
    shares = [("sex", 0.5, 0.5), ("health", 0.01, 0.02)]
    country = (1e6, 1e6)
    assert count_fitting("stranger", shares, country) == pytest.approx((500_000.5, 500_000.5))
    low, high = count_fitting("acquaintance", shares, country)
    assert 1 < low < high < 10


def test_shares_are_shares():
    table = read_population()
    for name, rows in table.items():
        if name in ("compare", "general", "population"):
            continue
        for key, (low, high) in rows.items():
            assert 0 < low <= high <= 1, (name, key)
    assert set(INTRUDERS) == {"stranger", "searcher", "acquaintance"}


def test_hardening_leaves_nobody_below_the_limit():
    done = anonymize(TEXT, NAMES)
    result = harden_persons([done.text], [TEXT], plans=[done.plan], limit=5)
    assert result.before.below.value > 0.5
    assert result.after.below.value == 0
    text, plan = result.texts[0].text, result.texts[0].plan
    assert apply_edits(TEXT, plan.edits) == text
    assert invert_plan(text, plan) == TEXT
    assert "epilepsy" not in text and "blind" not in text and "Leeds" in text


def test_what_is_above_the_limit_stays():
    result = harden_persons(["[PERSON_1] is a nurse. Good morning."], limit=2)
    assert result.texts[0].text == "[PERSON_1] is a nurse. Good morning."
    assert result.changes == 0


def test_results_show_no_text_unless_asked():
    result = person_cards([TEXT])
    assert "epilepsy" not in repr(result) and "epilepsy" not in json.dumps(result.to_dict())
    assert "Anna" not in repr(result) and "Anna" not in json.dumps(result.to_dict())
    assert "epilepsy" in json.dumps(result.to_dict(texts=True))
    hardened = harden_persons([TEXT])
    assert "Leeds" not in repr(hardened) and "Leeds" not in json.dumps(hardened.to_dict())


def test_statements_are_plain_words():
    card = person_cards(["[PERSON_1] is the only blind nurse here."]).cards[0]
    assert card.below
    assert "one person fits, and hardly anybody else" in card.statement
    assert "What would help most" in card.statement
    assert "Populations are rough estimates." in card.statement


def test_a_date_that_says_more_fits_fewer():
    days, months, years, decades = (
        estimate_share(Statement("date", 0, 0, value, ""), (5e7, 3e8))
        for value in ("12 March 2019", "March 2019", "2019", "2010s")
    )
    for more, less in ((days, months), (months, years), (years, decades)):
        assert more[0] < less[0] and more[1] < less[1]


def test_nobody_makes_no_card():
    result = person_cards(["The price is low."])
    assert result.persons == 0
    assert result.below.value != result.below.value


def test_a_limit_of_one_is_refused():
    with pytest.raises(UsageError, match="limit must be 2 or more, got 1"):
        person_cards(["A."], limit=1)
    with pytest.raises(UsageError, match="plans require the original texts"):
        harden_persons(["A."], plans=[anonymize("A.").plan])


def test_thousands_of_mentions_without_a_full_stop_do_not_hang():
    text = "her mother, his sister, known as Spud " * 3_000
    figures, _ = read_people(text, [])
    assert figures
