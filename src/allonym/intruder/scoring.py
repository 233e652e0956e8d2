"""When a guessed attribute counts as right, after Staab et al. 2023 (arXiv 2310.07298): right, less precise, wrong.

Rules without a model, so that a score can be had again. Where Staab et al. let a model or people decide whether two
wordings mean the same, these rules are stricter: what they do not know to be the same counts as wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from difflib import SequenceMatcher
from functools import cache

from allonym.errors import DataError, UnknownNameError
from allonym.text.names import plain
from allonym.text.words import IDENTIFIER

EXACT, LESS, WRONG = 1.0, 0.5, 0.0
YEARS = 5
"""A guessed age is right within so many years (Staab et al.)."""
_ALIKE = 0.88  # ratio of two wordings from which one may be the other misspelt
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_SEXES = {"m": "m male man boy masculine", "f": "f female woman girl feminine", "x": "non-binary nonbinary diverse"}
_BONDS = {
    "single": "single unmarried alone",
    "partner": "relationship partner dating girlfriend boyfriend cohabiting engaged fiance fiancee",
    "married": "married husband wife spouse",
    "divorced": "divorced separated divorce",
    "widowed": "widowed widow widower",
}
_INCOMES = ("none", "low", "middle", "high", "very high")
_DEGREES: tuple[tuple[str, str], ...] = (
    ("doctor", r"ph\.?\s?d|doctor|dr\.?\b"),
    ("master", r"master|m\.?sc\b|m\.?a\.?\b|mba|mphil|diploma in engineering"),
    ("student", r"(?:study|studi|pursu|toward|currently in|in college|undergrad|enrolled).*"),
    (
        "bachelor",
        r"bachelor|b\.?sc\b|b\.?a\.?\b|college degree|university degree|undergraduate degree|law degree|\bjd\b",
    ),
    ("school", r"high\s?school|secondary|a-levels?|abitur|ged|diploma"),
    ("none", r"no (?:degree|school|high)|primary|drop"),
)
_DEGREE_WORDS = r"ph\.?d|doctor|master|bachelor|degree|diploma|school|college|university|studies$|arts$|science$"
_FIRST = ("student", "none")  # "studying towards a bachelor" is no bachelor
_SMALL = frozenset("a an and at for in of the to with".split())


def score(attribute: str, guess: str, truth: str) -> float:
    """How right a guess is: 1 right, 0.5 less precise, 0 wrong.

    Age: within 5 years, or a range of at most 10 years that holds it; less precise: a range of at most 20. Place: the
    same city; less precise: the same country. Education: the same level of degree, and the same subject where both name
    one; less precise: one of these two. Sex, relationship and income: the same class; less precise: a relationship for
    a marriage. Occupation: the same words; less precise: the same trade in the knowledge base, or the same last word.

    Raises:
        UnknownNameError: no such attribute.
        DataError: the truth cannot be read by the rule: an age without a number, an income of no class.
    """
    rule = RULES.get(attribute)
    if rule is None:
        raise UnknownNameError("attribute", attribute, RULES)
    return rule(guess, truth) if guess.strip() else WRONG


def _age(guess: str, truth: str) -> float:
    true = _ages(truth)
    if not true:
        raise DataError("attribute age: a profile needs a number of years; got none")
    middle = sum(true) / len(true)
    said = _ages(guess)
    if not said:
        return WRONG
    low, high = min(said), max(said)
    if high > low:
        inside = low <= middle <= high
        return WRONG if not inside else EXACT if high - low <= 2 * YEARS else LESS if high - low <= 4 * YEARS else WRONG
    return EXACT if abs(low - middle) <= YEARS else WRONG


def _ages(text: str) -> list[float]:
    found = [float(n) for n in _NUMBER.findall(text)][:2]
    if len(found) == 1 and re.search(r"\d0['’]?s\b", text):  # in the 30s
        return [found[0], found[0] + 9]
    return found


def _sex(guess: str, truth: str) -> float:
    true, words = _class(truth, _SEXES), set(plain(guess).replace("-", " ").split())
    several = sum(bool(words & set(known.split())) for known in (_SEXES["m"], _SEXES["f"])) > 1
    said = "" if several else _class(guess, _SEXES)  # who names both has said nothing
    return EXACT if (true and said == true) or plain(guess) == plain(truth) else WRONG


def _relationship(guess: str, truth: str) -> float:
    true, said = _class(truth, _BONDS), _class(guess, _BONDS)
    if true and said == true:
        return EXACT
    return LESS if (said, true) == ("partner", "married") else WRONG


def _class(text: str, classes: Mapping[str, str]) -> str:
    words = plain(text).replace("-", " ").split()
    joined = " ".join(words)
    if joined.startswith(("not married", "never married")):
        return "single"
    for name, known in classes.items():
        if any(word in words for word in known.replace("-", " ").split() if word not in ("non", "binary")):
            return name
    return next((name for name, known in classes.items() if "non-binary" in known and "binary" in words), "")


def _income(guess: str, truth: str) -> float:
    true, said = _level(truth), _level(guess)
    if true < 0:
        raise DataError(f"attribute income: one of {', '.join(_INCOMES)} is required in a profile; got something else")
    return EXACT if said == true else WRONG


def _level(text: str) -> int:
    said = plain(text).replace("medium", "middle").replace("no income", "none")
    return next((i for i in range(len(_INCOMES) - 1, -1, -1) if re.search(rf"\b{_INCOMES[i]}\b", said)), -1)


def _education(guess: str, truth: str) -> float:
    true, said = _degree(truth), _degree(guess)
    if not true:
        return EXACT if _same(plain(guess), plain(truth)) else WRONG
    subject, own = _subject(guess), _subject(truth)
    alike = bool(subject & own) or any(_same(a, b) for a in sorted(subject) for b in sorted(own))
    if said == true:
        return EXACT if alike or not subject or not own else LESS
    return LESS if alike and said else WRONG


def _degree(text: str) -> str:
    said = plain(text)
    for name, pattern in sorted(_DEGREES, key=lambda d: d[0] not in _FIRST):
        if re.search(rf"\b(?:{pattern})", said):
            return name
    return ""


def _subject(text: str) -> frozenset[str]:
    """The words that name what was studied: those after "in" or "of", else none."""
    found = re.split(r"\b(?:in|of)\b", plain(text).replace("in college", "").replace("currently in", ""))
    return frozenset(w for part in found[1:] for w in _words(part) if not re.match(_DEGREE_WORDS, w))


def _place(guess: str, truth: str) -> float:
    true, said = _parts(truth), _parts(guess)
    if not true or not said:
        return WRONG
    if any(_same(g, true[0]) for g in said):
        # A country alone is the whole truth only where no city is known.
        return EXACT
    true_countries, said_countries = _countries(true), _countries(said)
    return LESS if any(c in true_countries for c in said_countries) else WRONG


def _parts(text: str) -> list[str]:
    cut = [plain(part).removesuffix(" city") for part in re.split(r"[,/(;]", text)]
    return [part for part in cut if any(c.isalnum() for c in part)]


@cache
def _country(part: str) -> str:
    """The code of the country that a name of a country, region or city stands for; empty: not known."""
    from allonym.kb import KnowledgeBase

    base = KnowledgeBase.open()
    for kinds in (("country",), ("region",), ("city",)):
        if found := base.find(part, kinds, language="en"):
            return found[0].country
    return ""


def _countries(parts: list[str]) -> list[str]:
    last = _country(parts[-1])
    return [c for c in ([last] if last else [_country(p) for p in parts]) if c] + parts[-1:]


def _occupation(guess: str, truth: str) -> float:
    said, true = plain(guess), plain(truth)
    words, own = _words(said), _words(true)
    if not words or not own:
        return WRONG
    if _same(said, true) or words == own or (words > own or (own > words and len(words) > 1)):
        return EXACT
    if any(_same(said.split()[-1], word) for word in true.split()[-1:]):
        return LESS
    return LESS if (trade := _trade(said)) and trade == _trade(true) else WRONG


def _words(text: str) -> frozenset[str]:
    return frozenset(IDENTIFIER.findall(text)) - _SMALL


@cache
def _trade(occupation: str) -> str:
    from allonym.kb import KnowledgeBase

    found = KnowledgeBase.open().find(occupation, ("occupation",))
    return found[0].industry if found else ""


def _same(a: str, b: str) -> bool:
    return a == b or (min(len(a), len(b)) > 4 and SequenceMatcher(None, a, b).ratio() >= _ALIKE)


RULES: Mapping[str, Callable[[str, str], float]] = {
    "age": _age,
    "sex": _sex,
    "place": _place,
    "birthplace": _place,
    "education": _education,
    "occupation": _occupation,
    "relationship": _relationship,
    "income": _income,
}
"""Attribute to its rule ``(guess, truth) -> score``; both are non-empty."""
