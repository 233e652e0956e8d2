"""Cards of persons in a report: who is below the limit for whom, then each card in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from allonym.evaluate.cards import round_count
from allonym.report.page import Block, Column, Details, Notice, Row, Table, Text
from allonym.report.sections import Folded, KeyFigures, Paragraph, SectionSpec
from allonym.report.values import Plain, Values

_SHOWN = 200  # cards with their facts; the others are in the JSON
_LEAD = (
    "Persons: {persons:,}; documents: {documents:,}. What is left about each person, and how many people fit it. Below "
    "the limit are those whom fewer than {limit:,} people fit, for the intruder who is worst for them. "
    "Populations are rough estimates."
)
_FIGURES = """
    Below the limit      | below | share.1 | of all persons, by the worst intruder
    … for a stranger     | by_intruder.stranger | share.1 | who has a country's statistics
    … for a searcher     | by_intruder.searcher | share.1 | who looks up names, works, organisations
    … for an acquaintance | by_intruder.acquaintance | share.1 | who knows 290 to 611 people, and much of them
"""
_BEFORE = {
    "Below the limit": "before.below",
    "… for a stranger": "before.by_intruder.stranger",
    "… for a searcher": "before.by_intruder.searcher",
    "… for an acquaintance": "before.by_intruder.acquaintance",
}
_CHANGED = (
    "Hardened: {changes:,} stretches became more general, {words_changed:share.1} of the words. The cards below were "
    "made anew from the hardened texts."
)
_READING = (
    "How many fit is 1 + (N - 1) times the product of the facts' shares, from the lowest to the highest shares. "
    "Populations and shares are rough estimates that were not looked up in published tables "
    "(evaluate/population.toml lists them). Facts count as independent. A fact is given to whoever "
    "the sentence named last before it, pronouns included, or to the speaker where it is said in the first person; "
    "{unattributed:,} facts could be given to nobody. What no rule reads, such as a style or a story, is not counted: "
    "the panel of intruders measures that. The sizes of countries and towns are powers of ten."
)
_SHORT = {"stranger": "Stranger", "searcher": "Searcher", "acquaintance": "Acquaintance"}


def _describe_range(chance: Mapping[str, Any]) -> str:
    low, high = (round_count(float(chance[name])) for name in ("low", "high"))
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _name_person(card: Mapping[str, Any]) -> str:
    return str(card.get("name") or f"person {card['number']} ({card['sort']})")


def _draw_cards(result: Values) -> Iterator[Block]:
    cards = sorted(result["cards"], key=lambda card: min(c["low"] for c in card["chances"]))
    names = ("Document", "Person", *_SHORT.values(), "What is left")
    rows = tuple(
        Row(
            (
                str(card["document"]),
                _name_person(card),
                *(_describe_range(c) for c in card["chances"]),
                ", ".join(_list_facts(card)) or "nothing",
            )
        )
        for card in cards
    )
    note = "How many people fit, for each intruder; the worst first."
    yield Table("All persons", tuple(Column(name) for name in names), rows, note, 25)
    for card in cards[:_SHOWN]:
        blocks: list[Block] = [Text(str(card["statement"]))]
        if card["below"]:
            blocks.insert(0, Notice("Fewer people fit than the limit.", "warning"))
        facts = tuple(
            Row((f["kind"], str(f.get("value") or "(not shown)"), _describe_share(f), f["rule"])) for f in card["facts"]
        )
        if facts:
            head = (Column("Fact"), Column("As it stands"), Column("Share of people"), Column("Why it is theirs"))
            blocks.append(Table("", head, facts))
        yield Details(f"{card['document']}: {_name_person(card)}", tuple(blocks))


def _list_facts(card: Mapping[str, Any]) -> list[str]:
    return [f"{f['kind']}: {f['value']}" if f.get("value") else str(f["kind"]) for f in card["facts"]]


def _describe_share(fact: Mapping[str, Any]) -> str:
    low, high = float(fact["low"]), float(fact["high"])
    if high >= 1:
        return "anybody"
    if high < 0.001:
        return f"at most 1 in {round(1 / high):,}"
    return f"{low:.2%} to {high:.1%}"


def _derive_after(result: Values) -> Plain:
    """Return the cards after hardening as the section's own, where the result is one of hardening."""
    return dict(result.get_part("after")) if result.get("after") else {}


cards_section = SectionSpec(
    "A card per person",
    "cards",
    lambda result: result.get("persons") or result.get("after"),
    (
        Paragraph(_LEAD, "lead"),
        Paragraph(_CHANGED, when="before"),
        KeyFigures(_FIGURES, before=_BEFORE),
        _draw_cards,
        Folded("How to read this", (Paragraph(_READING),)),
    ),
    _derive_after,
)
