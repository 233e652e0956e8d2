"""Which two rewriters can be applied one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from benchmarks.rewriting.first import DROPPING

_CASE = ("upper case", "lower case", "title case")
_SENTENCES = ("sentences reordered", "foreign sentences", "synonyms")
_NAMES = (
    "last name",
    "initials",
    "last, first",
    "number format",
    "first name",
    "family in capitals",
    "hashtags",
    "initials, no dots",
    "initials alone",
)
_ENDINGS = ("possessive", "plural", "Polish endings", "German genitive")
_BRACKETS = (
    "brackets lost",
    "other brackets",
    "other joint",
    "fullwidth brackets",
    "bold in brackets",
    "tags in words",
)
_LAYOUT = ("hyphenation", "line wrap", "no-break spaces", "zero width", "soft hyphens", "mail quote")
_ESCAPES = (
    "Markdown escapes",
    "HTML escapes",
    "JSON escapes",
    "XML",
    "JSON in ASCII",
    "numeric entities",
    "CSV field",
    "in addresses",
)
_ORDER = {
    name: stage
    for stage, names in enumerate((_SENTENCES, _CASE, _NAMES, _ENDINGS, (), _LAYOUT, ("list or table",), _ESCAPES))
    for name in names
}
"""In a composition, names are shortened before words are broken, and escapes come last: nobody capitalises ``&lt;``."""

_APART = (
    _CASE,
    _NAMES,
    _BRACKETS,
    _ESCAPES,
    (*_CASE, "Polish endings"),
    (*_ENDINGS, *_BRACKETS),
    (*_BRACKETS, "in addresses"),
)
"""Of each of these, a composition has one at most: the second would undo or mistake what the first did."""


def can_compose(first: str, second: str) -> bool:
    """Whether the two make sense one after the other, in this order."""
    if first == second or {first, second} & {"none", *DROPPING} or _ORDER.get(first, 4) > _ORDER.get(second, 4):
        return False
    return not any(first in group and second in group for group in _APART)


def compose_names(names: Sequence[str], rng: Random) -> tuple[str, ...]:
    """Two rewriters to be applied one after the other; none where no two of them go together."""
    pairs = [(first, second) for first in names for second in names if can_compose(first, second)]
    return rng.choice(pairs) if pairs else ()
