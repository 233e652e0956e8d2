"""When a guess counts as right: names by P3's likeness, attributes by rules after Staab et al. 2023 (arXiv 2310.07298).

P3 (3.1.3.2, "Measuring de-anonymisation") counts the characters of both names as in its example (s, a, m, s, m, i, t,
h): small letters, no spaces. Their order does not count, so that a threshold of 0.75 forgives typos, and also accepts
some other names of similar letters.

Attributes are right, less precise or wrong, by rules without a model, so that scores are reproducible. Where Staab et
al. let a model or people decide whether two wordings mean the same, these rules are stricter: what they do not know to
be the same counts as wrong.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from difflib import SequenceMatcher
from functools import cache
from itertools import product
from math import sqrt

from allonym.errors import DataError, UnknownNameError
from allonym.text.fold import Level, fold
from allonym.text.names import normalize_surface
from allonym.text.words import IDENTIFIER

CUT = 0.75
"""The least likeness of a name that counts as identified (P3)."""
EXACT, LESS, WRONG = 1.0, 0.5, 0.0
YEARS = 5
"""A guessed age is right within this many years (Staab et al.)."""
_SIMILAR = 0.88  # ratio of two wordings from which one may be the other misspelt
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
_BEFORE_OTHERS = ("student", "none")  # "studying towards a bachelor" is no bachelor
_SMALL = frozenset("a an and at for in of the to with".split())


def measure_likeness(guess: str, name: str) -> float:
    """Cosine of the character counts of two names: 0 for no common character, 1 for the same in the same proportions.

    0 where one of them is empty: an intruder that names nobody has identified nobody.

    >>> measure_likeness("Sam Smith", "samsmith")
    1.0
    >>> round(measure_likeness("Sam Smit", "Sam Smith"), 3)
    0.957
    """
    a, b = _count_characters(guess), _count_characters(name)
    if not a or not b:
        return 0.0
    if a == b:
        return 1.0
    dot = sum(n * b[c] for c, n in a.items())
    return min(1.0, dot / sqrt(sum(n * n for n in a.values()) * sum(n * n for n in b.values())))


def measure_best_likeness(guess: str, names: Iterable[str]) -> float:
    """The highest :func:`measure_likeness` of a guess with any name of one person; 0 where there is no name."""
    return max((measure_likeness(guess, name) for name in names), default=0.0)


def _count_characters(name: str) -> Counter[str]:
    """Count characters but blanks, whatever their case."""
    return Counter(c for c in fold(name, Level.CASE) if not c.isspace())


def score_guess(attribute: str, guess: str, truth: str) -> float:
    """Score a guess: 1 right, 0.5 less precise, 0 wrong.

    Age: within 5 years, or a range of at most 10 years that holds it; less precise: a range of at most 20. Place: the
    same city; less precise: the same country. Education: the same level of degree, and the same subject where both name
    one; less precise: one of these two. Sex, relationship and income: the same class; less precise: a relationship for
    a marriage. Occupation: the same words; less precise: the same trade in the knowledge base, or the same last word.

    Raises:
        UnknownNameError: no such attribute.
        DataError: the rule cannot read the true value: an age without a number, an income of no class.
    """
    rule = RULES.get(attribute)
    if rule is None:
        raise UnknownNameError("attribute", attribute, RULES)
    return rule(guess, truth) if guess.strip() else WRONG


def _score_age(guess: str, truth: str) -> float:
    true_years, years = _read_age_range(truth), _read_age_range(guess)
    if not true_years:
        raise DataError("attribute age: a profile needs a number of years; got none")
    if not years:
        return WRONG
    age = sum(true_years) / len(true_years)
    low, high = min(years), max(years)
    if high == low:
        return EXACT if abs(low - age) <= YEARS else WRONG
    if not low <= age <= high:
        return WRONG
    return EXACT if high - low <= 2 * YEARS else LESS if high - low <= 4 * YEARS else WRONG


def _read_age_range(text: str) -> list[float]:
    """One number of years or two; a decade such as "the 30s" is its first and its last year."""
    years = [float(n) for n in _NUMBER.findall(text)][:2]
    if len(years) == 1 and re.search(r"\d0['’]?s\b", text):
        return [years[0], years[0] + 9]
    return years


def _score_sex(guess: str, truth: str) -> float:
    words = set(normalize_surface(guess).replace("-", " ").split())
    if normalize_surface(guess) == normalize_surface(truth):
        return EXACT
    if all(words & set(_SEXES[sex].split()) for sex in "mf"):
        return WRONG  # a guess that names both says nothing
    true_sex = _find_named_class(truth, _SEXES)
    return EXACT if true_sex and _find_named_class(guess, _SEXES) == true_sex else WRONG


def _score_relationship(guess: str, truth: str) -> float:
    true_bond, bond = _find_named_class(truth, _BONDS), _find_named_class(guess, _BONDS)
    if true_bond and bond == true_bond:
        return EXACT
    return LESS if (bond, true_bond) == ("partner", "married") else WRONG


def _find_named_class(text: str, words_by_class: Mapping[str, str]) -> str:
    words = normalize_surface(text).replace("-", " ").split()
    if " ".join(words).startswith(("not married", "never married")):
        return "single"
    for name, listed in words_by_class.items():
        if any(word in words for word in listed.replace("-", " ").split() if word not in ("non", "binary")):
            return name
    return next((name for name, listed in words_by_class.items() if "non-binary" in listed and "binary" in words), "")


def _score_income(guess: str, truth: str) -> float:
    true_level = _find_income_level(truth)
    if true_level < 0:
        raise DataError(f"attribute income: one of {', '.join(_INCOMES)} is required in a profile; got something else")
    return EXACT if _find_income_level(guess) == true_level else WRONG


def _find_income_level(text: str) -> int:
    words = normalize_surface(text).replace("medium", "middle").replace("no income", "none")
    return next((i for i in range(len(_INCOMES) - 1, -1, -1) if re.search(rf"\b{_INCOMES[i]}\b", words)), -1)


def _score_education(guess: str, truth: str) -> float:
    true_degree, degree = _find_academic_degree(truth), _find_academic_degree(guess)
    if not true_degree:
        return EXACT if _are_similar_texts(normalize_surface(guess), normalize_surface(truth)) else WRONG
    subject, true_subject = _list_degree_subject_words(guess), _list_degree_subject_words(truth)
    pairs = product(sorted(subject), sorted(true_subject))
    is_same_subject = bool(subject & true_subject) or any(_are_similar_texts(a, b) for a, b in pairs)
    if degree == true_degree:
        return EXACT if is_same_subject or not subject or not true_subject else LESS
    return LESS if is_same_subject and degree else WRONG


def _find_academic_degree(text: str) -> str:
    words = normalize_surface(text)
    for name, pattern in sorted(_DEGREES, key=lambda d: d[0] not in _BEFORE_OTHERS):
        if re.search(rf"\b(?:{pattern})", words):
            return name
    return ""


def _list_degree_subject_words(text: str) -> frozenset[str]:
    """The words that name a subject: those after "in" or "of", else none."""
    parts = re.split(r"\b(?:in|of)\b", normalize_surface(text).replace("in college", "").replace("currently in", ""))
    return frozenset(w for part in parts[1:] for w in _list_content_words(part) if not re.match(_DEGREE_WORDS, w))


def _score_place(guess: str, truth: str) -> float:
    true_parts, parts = _split_into_place_names(truth), _split_into_place_names(guess)
    if not true_parts or not parts:
        return WRONG
    if any(_are_similar_texts(part, true_parts[0]) for part in parts):
        # A country alone is the full truth only where no city is known.
        return EXACT
    true_countries = _list_possible_countries(true_parts)
    return LESS if any(country in true_countries for country in _list_possible_countries(parts)) else WRONG


def _split_into_place_names(text: str) -> list[str]:
    parts = [normalize_surface(part).removesuffix(" city") for part in re.split(r"[,/(;]", text)]
    return [part for part in parts if any(c.isalnum() for c in part)]


@cache
def _find_country_code(place_name: str) -> str:
    """The code of the country that a country, region or city with this name belongs to; empty: not known."""
    from allonym.kb import KnowledgeBase

    base = KnowledgeBase.open()
    for kinds in (("country",), ("region",), ("city",)):
        if places := base.find(place_name, kinds, language="en"):
            return places[0].country
    return ""


def _list_possible_countries(parts: list[str]) -> list[str]:
    """The codes of countries that the names may lie in, and the last name itself."""
    last = _find_country_code(parts[-1])
    return [c for c in ([last] if last else map(_find_country_code, parts)) if c] + parts[-1:]


def _score_occupation(guess: str, truth: str) -> float:
    name, true_name = normalize_surface(guess), normalize_surface(truth)
    words, true_words = _list_content_words(name), _list_content_words(true_name)
    if not words or not true_words:
        return WRONG
    if _are_similar_texts(name, true_name) or words >= true_words or (true_words > words and len(words) > 1):
        return EXACT
    if _are_similar_texts(name.split()[-1], true_name.split()[-1]):
        return LESS
    return LESS if (trade := _find_industry(name)) and trade == _find_industry(true_name) else WRONG


def _list_content_words(text: str) -> frozenset[str]:
    return frozenset(IDENTIFIER.findall(text)) - _SMALL


@cache
def _find_industry(occupation: str) -> str:
    from allonym.kb import KnowledgeBase

    occupations = KnowledgeBase.open().find(occupation, ("occupation",))
    return occupations[0].industry if occupations else ""


def _are_similar_texts(a: str, b: str) -> bool:
    return a == b or (min(len(a), len(b)) > 4 and SequenceMatcher(None, a, b).ratio() >= _SIMILAR)


RULES: Mapping[str, Callable[[str, str], float]] = {
    "age": _score_age,
    "sex": _score_sex,
    "place": _score_place,
    "birthplace": _score_place,
    "education": _score_education,
    "occupation": _score_occupation,
    "relationship": _score_relationship,
    "income": _score_income,
}
"""Attribute to its rule ``(guess, true value) -> score``; both are non-empty."""
