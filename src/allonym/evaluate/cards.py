"""A card for each person of a document: what is left about them, how many people would fit it, and who finds them.

How many fit is an expectation with a range: ``1 + (N - 1) * share``, for a population of N people, and the product of
the shares of the facts. Shares come from ``population.toml`` and are rough estimates that were not looked up in tables;
the sizes of places come from the knowledge base, as powers of ten. Facts count as independent, so the range is no
confidence interval: it says what the shares' ranges allow.

Three intruders read a text. A stranger has a country's statistics (age, sex, place, work, origin). A searcher also
looks up names, numbers, organisations, honours and claims to be the first or only one. An acquaintance knows 290 to 611
people, their relatives, health and dates too, while place and organisation tell nothing new. The limit holds for the
worst of them.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cache
from importlib.resources import files
from typing import Any

from allonym.document import Interval
from allonym.errors import UsageError
from allonym.evaluate.card_facts import Figure, Statement, read_people
from allonym.evaluate.findings import align_edits, found_by
from allonym.evaluate.pairs import Advance, check_lengths
from allonym.kb import KnowledgeBase
from allonym.plan import locate_replacements
from allonym.replace.dates import read_date
from allonym.replace.wording import read_number
from allonym.serial import Serialisable
from allonym.stats import Estimate, none

LIMIT = 5
"""People who must fit a person's card, at least."""
INTRUDERS: Mapping[str, frozenset[str]] = {
    "stranger": frozenset({"sex", "age", "place", "work", "origin", "education"}),
    "searcher": frozenset(
        {
            "sex",
            "age",
            "place",
            "work",
            "origin",
            "education",
            "name",
            "contact",
            "organisation",
            "honour",
            "rare",
            "birth",
        }
    ),
    "acquaintance": frozenset(
        {
            "sex",
            "age",
            "work",
            "origin",
            "education",
            "name",
            "contact",
            "honour",
            "rare",
            "birth",
            "kin",
            "health",
            "date",
        }
    ),
}
"""Each intruder, and the kinds of facts that it can use."""
_KNOWLEDGE = {
    "stranger": "A stranger with a country's statistics",
    "searcher": "Somebody who searches the web and registers",
    "acquaintance": "Somebody who knows the person (one of 290 to 611 acquaintances)",
}
_MEANINGS = {
    "age": "the age",
    "place": "the place",
    "work": "the work",
    "organisation": "the organisation",
    "kin": "relatives",
    "health": "health",
    "origin": "origin or belief",
    "education": "education",
    "date": "a date",
    "birth": "the date of birth",
    "honour": "an award or a work",
    "rare": "what only few people are",
    "name": "the name",
    "contact": "a number",
}
_ONCE = frozenset({"sex", "age", "place", "name"})  # kinds of which the fact counts that leaves fewest
_MOST_ALIKE = 3  # facts of a kind that are counted: further ones say much the same
_TENS = "twenties thirties forties fifties sixties seventies eighties nineties".split()
_DECADES = {word: n * 10 for n, word in enumerate(_TENS, 2)}

Range = tuple[float, float]


class Fact(Serialisable):
    """What a text still says of a person.

    Attributes:
        kind: see :class:`allonym.evaluate.card_facts.Statement`.
        start, end: where it stands in the anonymised text.
        rule: why it is this person's.
        low, high: share of a population that it fits, 0 to 1.
        value: its words. Hidden, and written only where texts are asked for.
    """

    TEXT_KEYS = ("value",)

    kind: str
    start: int
    end: int
    rule: str
    low: float
    high: float
    value: str = field(repr=False)


class Chance(Serialisable):
    """How many people fit a card for an intruder: a range, from 1."""

    intruder: str
    low: float
    high: float


class Card(Serialisable):
    """What is left about a person of a document.

    Attributes:
        document: the document's id.
        number: of the person in the document, from 1.
        sort: ``placeholder``, ``name``, ``speaker``, ``author``, ``relative`` or ``described``.
        mentions: by name or placeholder.
        facts: in reading order.
        chances: one for each of :data:`INTRUDERS`.
        country: population in millions that was assumed, lowest and highest.
        below: the worst intruder's lowest number is below the limit.
        lever: number of the fact, from 0, whose loss would help most against the worst intruder; -1: none.
        name: how the text calls the person. Hidden.
    """

    DERIVED = ("statement",)
    TEXT_KEYS = ("name",)

    document: str
    number: int
    sort: str
    mentions: int
    facts: tuple[Fact, ...]
    chances: tuple[Chance, ...]
    country: Range
    below: bool
    lever: int
    name: str = field(repr=False)

    @property
    def worst(self) -> Chance:
        """The chance of the intruder for whom fewest people fit."""
        return min(self.chances, key=lambda chance: chance.low)

    @property
    def statement(self) -> str:
        """What each intruder finds, in plain words; without words of the text."""
        parts = [f"{_KNOWLEDGE[c.intruder]}: {_describe_count(c.low, c.high)}." for c in self.chances]
        if self.lever >= 0:
            fact = self.facts[self.lever]
            parts.append(f"What would help most: to say less about {_MEANINGS[fact.kind]} (at {fact.start}).")
        return " ".join([*parts, "Populations are rough estimates."])


class PersonCards(Serialisable):
    """The cards of all persons of a corpus.

    Attributes:
        limit: people who must fit each card.
        documents: how many there are.
        persons: how many persons.
        below: share of persons for whom fewer people fit than the limit, by the worst intruder.
        by_intruder: the same share for each intruder.
        kinds: kind of fact to how many there are.
        unattributed: facts that no rule gives to anybody.
        cards: in order of documents and first mentions.
    """

    KEYS = ("limit", "documents", "persons", "below", "by_intruder", "kinds", "unattributed", "cards")

    limit: int
    documents: int
    below: Estimate
    by_intruder: Mapping[str, Estimate]
    kinds: Mapping[str, int]
    unattributed: int
    cards: tuple[Card, ...]

    @property
    def persons(self) -> int:
        """Number of persons."""
        return len(self.cards)


def person_cards(
    anonymised: Sequence[str],
    original: Sequence[str] | None = None,
    *,
    ids: Sequence[str] | None = None,
    limit: int = LIMIT,
    policy: str = "default",
    advance: Advance | None = None,
) -> PersonCards:
    """Make a card for each person of each document. English.

    Args:
        anonymised: the texts as they would be released.
        original: the same before, so that what anonymising wrote (pseudonyms) is told from what is left; None: every
            name counts as left.
        ids: of the documents; None: their numbers, from 1.
        limit: people who must fit each card, 2 or more.
        policy: whose detectors read the texts.
        advance: called with documents done, and all.

    Raises:
        UsageError: ``limit`` is below 2.
        DataError: unequal lengths.
    """
    from allonym.stats.samples import share

    n = check_lengths(anonymised, anonymised if original is None else original, ids, least=0)
    if limit < 2:
        raise UsageError(f"limit must be 2 or more, got {limit}")
    cards, lost = list_cards(anonymised, original, ids=ids, limit=limit, policy=policy, advance=advance)
    kinds: dict[str, int] = {}
    for card in cards:
        for fact in card.facts:
            kinds[fact.kind] = kinds.get(fact.kind, 0) + 1
    rates = {name: _count_below(cards, name, limit) for name in INTRUDERS}
    rate = share(sum(c.below for c in cards), len(cards)) if cards else none("there are no persons")
    return PersonCards(limit, n, rate, rates, dict(sorted(kinds.items())), lost, tuple(cards))


def list_cards(
    anonymised: Sequence[str],
    original: Sequence[str] | None = None,
    *,
    ids: Sequence[str] | None = None,
    limit: int = LIMIT,
    policy: str = "default",
    advance: Advance | None = None,
) -> tuple[list[Card], int]:
    """Return the cards of :func:`person_cards`, and how many statements belong to nobody; without further packages."""
    cards: list[Card] = []
    lost = 0
    for i, spans in enumerate(found_by(anonymised, policy, advance)):
        altered = list_altered_intervals(original[i], anonymised[i]) if original is not None else []
        figures, unattributed = read_people(anonymised[i], spans, altered)
        lost += unattributed
        name = ids[i] if ids else str(i + 1)
        cards += [make_card(name, number, figure, limit) for number, figure in enumerate(figures, 1)]
    return cards, lost


def list_altered_intervals(original: str, anonymised: str) -> list[Interval]:
    """Return the stretches of the anonymised text that are not in the original, by alignment."""
    return [(start, end) for start, end, _ in locate_replacements(align_edits(original, anonymised)) if start < end]


def _count_below(cards: Sequence[Card], intruder: str, limit: int) -> Estimate:
    from allonym.stats.samples import share

    if not cards:
        return none("there are no persons")
    return share(sum(c.low < limit for card in cards for c in card.chances if c.intruder == intruder), len(cards))


def make_card(document: str, number: int, figure: Figure, limit: int) -> Card:
    """Estimate how many people fit what a text says of a person."""
    country = _find_country(figure.statements)
    facts = tuple(Fact(s.kind, s.start, s.end, s.rule, *estimate_share(s, country), s.value) for s in figure.statements)
    shares = [(f.kind, f.low, f.high) for f in facts]
    chances = tuple(Chance(name, *count_fitting(name, shares, country)) for name in INTRUDERS)
    worst = min(chances, key=lambda chance: chance.low)
    usable = [i for i, f in enumerate(facts) if f.kind in INTRUDERS[worst.intruder] and f.kind != "sex" and f.low < 1]
    lever = min(usable, key=lambda i: facts[i].low, default=-1)
    millions = (round(country[0] / 1e6, 1), round(country[1] / 1e6, 1))
    return Card(
        document,
        number,
        figure.sort,
        len(figure.mentions),
        facts,
        chances,
        millions,
        worst.low < limit,
        lever,
        figure.name,
    )


def count_fitting(intruder: str, shares: Sequence[tuple[str, float, float]], country: Range) -> Range:
    """Return how many people of an intruder's population fit, lowest and highest.

    Args:
        intruder: one of :data:`INTRUDERS`.
        shares: kind, lowest and highest share of each fact.
        country: people of the country, lowest and highest.
    """
    low, high = read_population()["population"]["circle"] if intruder == "acquaintance" else country
    low_share = high_share = 1.0
    for kind in INTRUDERS[intruder]:
        counted = 1 if kind in _ONCE else _MOST_ALIKE
        of_kind = sorted((a, b) for k, a, b in shares if k == kind)[:counted]
        for a, b in of_kind:
            low_share, high_share = low_share * a, high_share * b
    return 1 + (low - 1) * low_share, 1 + (high - 1) * high_share


@cache
def read_population() -> Mapping[str, Any]:
    """Return the table of shares."""
    return tomllib.loads(files("allonym.evaluate").joinpath("population.toml").read_text(encoding="utf-8"))


def _find_country(statements: Sequence[Statement]) -> Range:
    """Return the people of the country that a person's place tells; without one, of some large country."""
    knowledge = KnowledgeBase.open()
    for statement in statements:
        if statement.kind == "place":
            items = knowledge.find(statement.value, ("country", "region", "city"))
            for country in knowledge.pool("country", country=items[0].country) if items else ():
                return _read_size(country.size)
    low, high = read_population()["population"]["country"]
    return low, high


def _read_size(size: int) -> Range:
    """Return the inhabitants of a class of sizes, which is a power of ten."""
    return float(10**size), float(10 ** (size + 1))


def estimate_share(statement: Statement, country: Range) -> Range:
    """Return the share of a country's people whom a fact fits, lowest and highest."""
    table, kind, value = read_population(), statement.kind, statement.value.lower()
    if kind == "sex":
        low, high = table["sex"]["female" if value == "female" else "male"]
    elif kind == "age":
        low, high = _estimate_age(value)
    elif kind == "place":
        low, high = _estimate_place(statement.value, country)
    elif kind in ("work", "kin", "health", "origin", "education"):
        low, high = _find_word_share(kind, value)
    elif kind == "date" or (kind == "birth" and value.isdigit()):
        date = read_date(statement.value, "mdy")
        low, high = 1.0, 1.0
        if date is None or date.month is None or date.year is not None:
            is_decade = value.endswith("s") and value.removesuffix("s").isdigit()
            low, high = table["other"]["decade" if is_decade else "year"]
        if date is not None and date.month is not None:  # a month of a known year fits fewer than the year
            low_part, high_part = table["other"]["month" if date.day is None else "day"]
            low, high = low * low_part, high * high_part
    elif kind == "name":
        low, high = table["other"]["name" if len(value.split()) > 1 else "firstname"]
    else:
        low, high = table["other"][kind]
    return float(low), float(high)


def _estimate_age(value: str) -> Range:
    words = value.replace("-", " ").split()
    numbers = [n for n in (read_number(w.strip("s+")) for w in words) if n is not None and 0 < n < 130]
    decade = next((_DECADES[w] for w in words if w in _DECADES), None)
    if decade is None and not numbers:
        return 0.1, 0.14
    years = int(decade if decade is not None else numbers[0])
    low, high = read_population()["age"][str(min(years // 10 * 10, 90))]
    is_band = decade is not None or len(numbers) > 1 or "+" in value or value.rstrip().endswith("0s")
    return (low, high) if is_band else (low / 10, high / 10)


def _estimate_place(value: str, country: Range) -> Range:
    knowledge = KnowledgeBase.open()
    items = knowledge.find(value, ("city", "region", "country"))
    if not items:
        low, high = read_population()["other"]["place"]
        return low, high
    item = items[0]
    if item.kind == "country":
        return 1.0, 1.0
    low, high = _read_size(item.size)
    return min(1.0, low / country[1]), min(1.0, high / country[0])


def _find_word_share(kind: str, value: str) -> Range:
    table = read_population()[kind]
    words = value.split(" of ")[0].replace("-", " ").split()
    for word in reversed(words):
        for stem in (
            word,
            word.removesuffix("s"),
            word.removesuffix("’s").removesuffix("'s").rstrip("."),
            word.replace(".", ""),
        ):
            if stem in table:
                low, high = table[stem]
                return low, high
    if kind == "work":
        if words and words[-1] in ("worker", "person"):
            return (0.3, 0.6) if words[-1] == "worker" else (1.0, 1.0)
        items = KnowledgeBase.open().find(value, ("occupation",))
        trade = items[0].industry if items else ""
        low, high = table.get(trade, table["_"])
    else:
        low, high = table["_"]
    return low, high


def _describe_count(low: float, high: float) -> str:
    """Write how many people fit, in words."""
    a, b = round_count(low), round_count(high)
    if b <= 1:
        return "one person fits, and hardly anybody else"
    return f"about {a:,} people fit" if a == b else f"{a:,} to {b:,} people fit"


def round_count(value: float) -> int:
    """Round a number of people to two figures, 1 at least."""
    count: int = max(1, math.floor(value + 0.5))
    step = int(10 ** max(0, len(str(count)) - 2))
    return int(count // step * step)
