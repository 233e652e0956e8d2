from __future__ import annotations

import pytest
from tests.rows import check_each_row

from allonym.document import Span
from allonym.errors import UsageError
from allonym.swap.corpus import Value
from allonym.swap.places import FEATURES
from allonym.swap.surfaces import GeneralNouns
from allonym.swap.table import recoding

BEFORE_A_NOUN = tuple(1 if name == "attribute" else 0 for name in FEATURES)


def said(
    text: str,
    name: str,
    category: str = "Organization",
    coarser: GeneralNouns | None = None,
    place: tuple[int, ...] = (),
) -> str:
    at = text.index(name)
    label = {"Organization": "ORGANIZATION", "Location": "LOCATION", "Product": "PRODUCT", "Person": "PERSON"}[category]
    key = name.lower().removeprefix("the ").removesuffix("'s")
    value = Value(category, key, (name,), (Span(at, at + len(name), label),), place)
    out, end = "", 0
    for a, b, new in (coarser or GeneralNouns()).list_noun_changes(text, value):
        out, end = out + text[end:a] + new, b
    return out + text[end:]


@check_each_row(
    "text, name, category, want",
    [
        ("We sell to Goldman Sachs.", "Goldman Sachs", "Organization", "We sell to a bank."),
        ("Walmart's orders rose.", "Walmart's", "Organization", "A retailer's orders rose."),
        ("Our Walmart team met.", "Walmart", "Organization", "Our retailer team met."),
        ("It is in London today.", "London", "Location", "It is in a city today."),
        ("We met Zorblax there.", "Zorblax", "Organization", "We met an organization there."),
        ("We met the Zorblax Fund there.", "the Zorblax Fund", "Organization", "We met the organization there."),
        ("The Torvox sells.", "Torvox", "Product", "The product sells."),
        ("The anti- Torvox drug sells.", "Torvox", "Product", "The anti- product drug sells."),
        ("We thank Ines.", "Ines", "Person", "We thank Ines."),
    ],
)
def test_a_noun_for_a_name(text: str, name: str, category: str, want: str) -> None:
    assert said(text, name, category) == want


@check_each_row(
    "text, name, category, want",
    [
        ("We supply London hospitals.", "London", "Location", "We supply local hospitals."),
        ("We have a London office.", "London", "Location", "We have a local office."),
        ("The France business grew.", "France", "Location", "The national business grew."),
        ("Zorblax data shows it.", "Zorblax", "Organization", "Company data shows it."),
        ("A London-based team met.", "London", "Location", "A city-based team met."),
        ("We sold Walmart orders.", "Walmart", "Organization", "We sold retailer orders."),
    ],
)
def test_no_article_before_a_noun_that_describes_another(text: str, name: str, category: str, want: str) -> None:
    assert said(text, name, category, place=BEFORE_A_NOUN) == want


def test_classes_of_the_user_come_first() -> None:
    own = GeneralNouns(recoding({"Organization": {"Goldman Sachs": "investment bank"}, "Person": {"Ines": "guest"}}))
    assert said("We sell to Goldman Sachs.", "Goldman Sachs", coarser=own) == "We sell to an investment bank."
    assert said("We thank Ines.", "Ines", "Person", own) == "We thank a guest."
    assert said("Walmart paid.", "Walmart", coarser=own) == "A retailer paid."


def test_a_recoding_is_wanted() -> None:
    with pytest.raises(UsageError, match="must be a Recoding, got dict"):
        GeneralNouns({"goldman sachs": "bank"})  # type: ignore[arg-type]
