"""Hardening for all persons of a document: what a card still says becomes more general until enough people fit it.

Of each person below the limit, the fact that leaves fewest people takes the next step: an age its band of ten years, a
date its year and then its decade, a place its region and then its country, an occupation a general word; the last step
says nothing that tells people apart. Wherever the same words say it, they change, too. Pronouns stay, so that sex does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from allonym.errors import UsageError
from allonym.evaluate.card_facts import MARITAL, Statement
from allonym.evaluate.cards import (
    INTRUDERS,
    LIMIT,
    Card,
    Fact,
    PersonCards,
    Range,
    count_fitting,
    estimate_share,
    person_cards,
    read_population,
)
from allonym.evaluate.pairs import Advance, check_lengths, group_items
from allonym.evaluate.rewording import AGREE, GENERALISE, chain_plans
from allonym.kb import KnowledgeBase
from allonym.plan import Edit, Plan, apply_edits, digest
from allonym.replace.generalise import coarsen_age, coarsen_date
from allonym.replace.wording import find_article_change, pluralise_noun
from allonym.serial import Serialisable
from allonym.stats import Estimate
from allonym.stats.samples import average
from allonym.text.words import TOKEN

_ROUNDS = 3  # a changed text is read anew, and what then is still below the limit changes further
_EVERYWHERE = frozenset({"name", "place", "organisation", "honour", "contact", "health", "work"})
"""Kinds whose words change wherever they stand in the text."""
_COUNTABLE = frozenset({"organisation", "award", "condition"})
_HAS_DETERMINER = re.compile(
    r"\b(?:an?|the|my|his|her|its|our|their|your|this|that|[\w-]+['’]s)\s(?:[\w-]+\s)?$", re.IGNORECASE
)
_LABELS: Mapping[str, str] = {
    "age": "AGE",
    "birth": "DATE_OF_BIRTH",
    "date": "DATE",
    "health": "MEDICAL_TERM",
    "kin": "FAMILY_RELATION",
    "name": "PERSON",
    "organisation": "ORGANIZATION",
    "origin": "ORIGIN",
    "place": "LOCATION",
    "work": "OCCUPATION",
}


@dataclass(frozen=True, slots=True)
class HardenedPersons:
    """A text after hardening, and the plan that led there. The text is hidden from ``repr``."""

    text: str = field(repr=False)
    plan: Plan = field(repr=False)


class PersonHardening(Serialisable):
    """The result of :func:`harden_persons`.

    Attributes:
        before, after: the cards of the texts as they were, and of the hardened texts, read anew.
        words_changed: mean share of a text's words and signs that changed.
        changes: number of stretches that changed.
        texts: the hardened texts. Not part of :meth:`to_dict`.
    """

    KEYS = ("before", "after", "words_changed", "changes")

    before: PersonCards
    after: PersonCards
    words_changed: Estimate
    changes: int
    texts: tuple[HardenedPersons, ...]


def harden_persons(
    anonymised: Sequence[str],
    original: Sequence[str] | None = None,
    *,
    plans: Sequence[Plan] | None = None,
    ids: Sequence[str] | None = None,
    limit: int = LIMIT,
    policy: str = "default",
    advance: Advance | None = None,
) -> PersonHardening:
    """Generalise texts until at least ``limit`` people fit the card of each person. English.

    Args:
        anonymised, original, ids, limit, policy, advance: see :func:`allonym.evaluate.cards.person_cards`.
        plans: those that made ``anonymised`` of ``original``; with them each result's plan starts at the original.

    Raises:
        UsageError: ``limit`` is below 2, or there are plans without originals.
        DataError: unequal lengths.
        PlanMismatch: a plan does not make its anonymised text.
    """
    n = check_lengths(anonymised, anonymised if original is None else original, plans, ids, least=0)
    if plans and original is None:
        raise UsageError("plans require the original texts")
    names = list(ids) if ids is not None else [str(i + 1) for i in range(n)]
    numbers = [str(i) for i in range(n)]
    texts, chained = list(anonymised), [Plan(digest(text), (), (), digest(text)) for text in anonymised]
    cards = before = person_cards(texts, original, ids=numbers, limit=limit, policy=policy, advance=advance)
    for _ in range(_ROUNDS):
        cards_of = group_items(cards.cards, lambda card: int(card.document))
        changed = 0
        for i, of_text in cards_of.items():
            edits = choose_edits(texts[i], of_text, limit)
            if edits:
                step = Plan(digest(texts[i]), tuple(edits), (), digest(apply_edits(texts[i], edits)))
                chained[i] = chain_plans(anonymised[i], chained[i], step)
                texts[i] = apply_edits(texts[i], edits)
                changed += 1
        cards = person_cards(texts, original, ids=numbers, limit=limit, policy=policy)
        if not changed:
            break
    shares = [
        sum(len(TOKEN.findall(e.original or "")) for e in plan.edits) / max(1, len(TOKEN.findall(text)))
        for text, plan in zip(anonymised, chained, strict=True)
    ]
    changes = sum(len(plan.edits) for plan in chained)
    if plans and original is not None:
        chained = [chain_plans(*parts) for parts in zip(original, plans, chained, strict=True)]
    return PersonHardening(
        _rename_documents(before, names),
        _rename_documents(cards, names),
        average(shares),
        changes,
        tuple(HardenedPersons(text, plan) for text, plan in zip(texts, chained, strict=True)),
    )


def _rename_documents(cards: PersonCards, names: Sequence[str]) -> PersonCards:
    return replace(cards, cards=tuple(replace(c, document=names[int(c.document)]) for c in cards.cards))


def choose_edits(text: str, cards: Sequence[Card], limit: int) -> list[Edit]:
    """Choose what changes so that ``limit`` people fit each card, the least telling last.

    Args:
        text: the cards' text.
        cards: of all its persons.
        limit: people who must fit.

    Returns:
        Sorted, disjoint edits of the text.
    """
    steps_gone: dict[tuple[str, str], int] = {}  # kind and words to how many steps they have gone
    steps: dict[tuple[str, str], list[tuple[str, Range]]] = {}
    for card in cards:
        country = (card.country[0] * 1e6, card.country[1] * 1e6)
        for fact in card.facts:
            steps.setdefault((fact.kind, fact.value.lower()), list_general_steps(fact, country))
    for card in cards:
        country = (card.country[0] * 1e6, card.country[1] * 1e6)
        while True:
            now = {key: (steps[key][steps_gone[key] - 1][1] if steps_gone.get(key) else None) for key in steps}
            shares = [(f.kind, *(now[f.kind, f.value.lower()] or (f.low, f.high))) for f in card.facts]
            counts = {name: count_fitting(name, shares, country)[0] for name in INTRUDERS}
            worst = min(counts, key=lambda name: counts[name])
            if counts[worst] >= limit:
                break
            open_facts = [
                (low, fact.start, (fact.kind, fact.value.lower()))
                for fact, (kind, low, _) in zip(card.facts, shares, strict=True)
                if kind in INTRUDERS[worst]
                and steps_gone.get((fact.kind, fact.value.lower()), 0) < len(steps[fact.kind, fact.value.lower()])
            ]
            if not open_facts:
                break
            _, _, key = min(open_facts)
            steps_gone[key] = steps_gone.get(key, 0) + 1
    facts = [fact for card in cards for fact in card.facts if steps_gone.get((fact.kind, fact.value.lower()))]
    places = {(fact.start, fact.end, fact.kind, fact.value.lower()) for fact in facts}
    for fact in facts:
        if fact.kind in _EVERYWHERE:
            everywhere = re.compile(rf"(?<!\w){re.escape(fact.value)}(?!\w)")
            places.update((*m.span(), fact.kind, fact.value.lower()) for m in everywhere.finditer(text))
    edits: list[Edit] = []
    end_before = 0
    for start, end, kind, value in sorted(places, key=lambda place: (place[0], -place[1], place[2:])):
        if start < end_before:
            continue
        new = steps[kind, value][steps_gone[kind, value] - 1][0]
        label = _LABELS.get(kind, "OTHER_IDENTIFYING_ATTRIBUTE")
        if new in _COUNTABLE and not _HAS_DETERMINER.search(text, max(0, start - 24), start):
            new = f"{'an' if new[0] in 'aeiou' else 'a'} {new}"
        elif change := find_article_change(text, start, end_before, new):
            edits.append(Edit(*change, label, 0, AGREE, text[change[0] : change[1]]))
        opens = start == 0 or text[start - 1] == "\n" or text[max(0, start - 2) : start].strip() in (".", "!", "?")
        new = new[:1].upper() + new[1:] if opens else new
        edits.append(Edit(start, end, new, label, 0, GENERALISE, text[start:end]))
        end_before = end
    return edits


def list_general_steps(fact: Fact, country: Range) -> list[tuple[str, Range]]:
    """List what may stand for a fact, the closest first, each with the share of people whom that fits."""
    value, kind = fact.value, fact.kind
    if kind == "sex":
        return []
    texts: list[str] = []
    if kind == "age":
        texts += [text for text in [coarsen_age(value.strip(), 10, 90)] if text and not _is_band(value)]
    elif kind in ("date", "birth"):
        texts += [text for level in ("year", "decade") if (text := coarsen_date(value, level, "mdy"))]
    elif kind == "place":
        texts += _list_larger_places(value)
    is_marital = kind == "kin" and value.lower() in MARITAL
    general = read_population()["general"]["date" if kind == "birth" else "marital" if is_marital else kind]
    is_many = value.lower().endswith(("s", "children")) and not value.lower().endswith("ss")
    is_plural = kind in ("kin", "work") and is_many
    words = [pluralise_noun(word) if is_plural and word != "person" else word for word in general]
    words = ["people" if word == "person" and is_plural else word for word in words]
    if value.lower() == "graduated":
        words = ["studied"]
    texts += [word for word in words if word != value.lower()]
    out: list[tuple[str, Range]] = []
    for text in dict.fromkeys(texts):
        if text == value:
            continue
        is_last = text == texts[-1]
        share = (1.0, 1.0) if is_last else estimate_share(Statement(kind, 0, 0, text, ""), country)
        out.append((text, share))
    return out


def _is_band(value: str) -> bool:
    return any(a.isdigit() and b == "-" and c.isdigit() for a, b, c in zip(value, value[1:], value[2:], strict=False))


def _list_larger_places(value: str) -> list[str]:
    """List the region and the country of a place."""
    knowledge = KnowledgeBase.open()
    items = knowledge.find(value, ("city", "region", "country"))
    if not items or items[0].kind == "country":
        return []
    item = items[0]
    regions = [r.label for r in knowledge.pool("region", country=item.country) if r.region == item.region]
    countries = [c.label for c in knowledge.pool("country", country=item.country)]
    return [*(regions[:1] if item.kind == "city" else []), *countries[:1]]
