"""Dates in digits with slashes: which of their numbers is the day."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from allonym.text.memory import remember_texts

SHORT_DATE = re.compile(r"(?<![\w./,\-])([0-9]{1,2})/([0-9]{1,2})(?![\w/\-]|[.,][0-9])")
"""A day and a month without a year, in any order."""
_FULL_DATE = re.compile(r"(?<![\w./\-])([0-9]{1,2})[/.\-]([0-9]{1,2})[/.\-](?:[0-9]{4}|[0-9]{2})(?![\w/\-]|\.[0-9])")
_DAY_FIRST = re.compile(
    r"(?<![\w+])\+(?!63|81|82|86)[2-9](?:[ ().\u00a0\-]{0,2}[0-9]){8,13}(?![0-9])"
    r"|(?<!\w)[A-Z]{1,2}[0-9][0-9A-Z]? [0-9][A-Z]{2}(?!\w)|£ ?[0-9]|\bNHS\b"
    r"|(?<![\w.,+])0[1-37][0-9]{2,4} [0-9]{3} ?[0-9]{3,4}(?![0-9])"
    r"|(?<![\w.])[0-9]{1,2}\.[0-9]{1,2}\.(?:19|20)[0-9]{2}(?![\w.]*[0-9])"
)
"""A telephone number of a country in which the day is written first, what only the British write, or dots in a date."""
_MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_WORDED = re.compile(
    rf"\b(?:[0-9]{{1,2}}(?:st|nd|rd|th)? (?:of )?({_MONTH})|({_MONTH}) [0-9]{{1,2}}(?:st|nd|rd|th)?)\b"
)
"""A date with the name of its month: the first group where the day is written first."""


@remember_texts(16)
def find_date_order(text: str, default: str = "") -> str:
    """Tell how a text writes its dates in digits: ``dmy``, ``mdy``, or ``default`` where they do not tell.

    Dates with a year count first, then those without one. Where these do not tell, most of the dates with the name of
    a month, a telephone number of a country that writes the day first, dots in a date, pounds, the NHS or a British
    postcode make ``mdy`` ``dmy``.

    >>> find_date_order("from 9/2/2022 to 23/2/2022")
    'dmy'
    >>> find_date_order("born 07/11/1971, phone +44 20 7946 0958", "mdy")
    'dmy'
    """
    for pattern in (_FULL_DATE, SHORT_DATE):
        orders = list(_list_orders(pattern.findall(text)))
        if len(set(orders)) > 1:
            return max(("dmy", "mdy"), key=orders.count)
        if orders:
            return orders[0]
    if default != "mdy":
        return default
    worded = ["dmy" if day_first else "mdy" for day_first, _ in _WORDED.findall(text)]
    is_day_first = worded.count("dmy") > worded.count("mdy") or (not worded and _DAY_FIRST.search(text))
    return "dmy" if is_day_first else default


def _list_orders(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    for first, second in ((int(a), int(b)) for a, b in pairs):
        if 12 < first <= 31 and 1 <= second <= 12:
            yield "dmy"
        elif 12 < second <= 31 and 1 <= first <= 12:
            yield "mdy"
