from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.rows import check_each_row

from allonym.document import Span
from allonym.swap.categories import get_category_label, remove_possessive
from allonym.swap.corpus import Value
from allonym.swap.surfaces import adjust_articles, fit_donor, is_initialism, remove_legal_form

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "cases" / "swap_forms.jsonl").read_text("utf-8").splitlines()
]


def marked(text: str, category: str) -> tuple[str, Value]:
    """A text without its marks, and the value that stands between them."""
    plain, spans, at = "", [], 0
    for match in re.finditer("«(.*?)»", text):
        plain += text[at : match.start()]
        spans.append(Span(len(plain), len(plain) + len(match[1]), get_category_label(category)))
        plain += match[1]
        at = match.end()
    plain += text[at:]
    forms = sorted(dict.fromkeys(remove_possessive(plain[s.start : s.end]) for s in spans), key=len, reverse=True)
    return plain, Value(category, forms[0].lower(), tuple(forms), tuple(spans))


@check_each_row("case", CASES)
def test_cases(case: dict[str, object]) -> None:
    text, own = marked(str(case["text"]), str(case["category"]))
    donor = Value(str(case["category"]), "donor", tuple(case["donor"]))  # type: ignore[arg-type]
    out, at = "", 0
    for a, b, new in adjust_articles(text, fit_donor(text, own, donor)):
        out += text[at:a] + new
        at = b
    assert out + text[at:] == case["want"]


def test_a_form_that_stands_there_already_gives_way_to_another() -> None:
    text, own = marked("We like «Corvane».", "Organization")
    assert fit_donor(text, own, Value("Organization", "x", ("Corvane", "Corvane Group")))[0][2] == "Corvane Group"
    assert fit_donor(text, own, Value("Organization", "x", ("Corvane",)))[0][2] == "Corvane"


def test_what_sticks_to_a_mention_goes_with_it_and_two_of_them_stay_apart() -> None:
    text = "AcmeHanmeres met."
    assert adjust_articles(text, [(0, 4, "Corvane"), (4, 11, "IDT")]) == [(0, 4, "Corvane"), (4, 12, " IDT")]
    assert adjust_articles(text, [(0, 4, ""), (4, 11, "IDT")])[1] == (4, 12, "IDT")


def test_other_languages_get_no_english_determiner() -> None:
    text, own = marked("Wir sprachen mit «Corvane».", "Organization")
    donor = Value("Organization", "x", ("the Fund",))
    assert fit_donor(text, own, donor, language="de")[0][2] == "Fund"


@pytest.mark.parametrize(
    ("form", "acronym"), [("IBM", True), ("U.S.", True), ("AT&T", True), ("Acme", False), ("A B", False), ("X", False)]
)
def test_acronyms(form: str, acronym: bool) -> None:
    assert is_initialism(form) is acronym


def test_a_legal_form_alone_stays() -> None:
    assert remove_legal_form("Inc.") == "Inc."
    assert remove_legal_form("Bellworth Energy & Co. KG") == "Bellworth Energy"


@pytest.mark.parametrize(
    ("said", "came", "stands"),
    [
        ("stores", "hospital", "hospitals"),
        ("store", "gas wells", "gas well"),
        ("stores", "cell therapy", "cell therapies"),
        ("store", "headwinds", "headwind"),
        ("solar", "gas", "gas"),
        ("stores", "NK", "NK"),
        ("stores", "phase 2", "phase 2"),
    ],
)
def test_terms_keep_the_number_of_the_mention(said: str, came: str, stands: str) -> None:
    text = f"we like {said} a lot"
    own = Value("Term", said, (said,), (Span(8, 8 + len(said), "TERM"),))
    assert [new for _, _, new in fit_donor(text, own, Value("Term", came, (came,)))] == [stands]
