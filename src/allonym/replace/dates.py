"""Reading English dates, and moving them by a keyed number of days."""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Literal

from allonym.errors import DataError, PolicyError
from allonym.plan import digest
from allonym.replace.keyed import subkey
from allonym.replace.mention import Mention, Setting, traits

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
LONGEST = 64

_MON = r"(?P<mon>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"  # noqa: E501
_WD = r"(?:(?P<wd>mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:r(?:s(?:day)?)?)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?)\.?,?\s+(?:the\s+)?)?"  # noqa: E501
_DAY = r"(?P<d>[0-9]{1,2})(?P<ord>st|nd|rd|th)?"
_YEAR = r"(?P<y>[0-9]{4}|['’]?[0-9]{2})"
_CLOCK = (
    r"(?:(?:T|,?\s+(?:at\s+)?)[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,9})?)?"
    r"\s?(?:Z|UTC|GMT|[+-][0-9]{2}:?[0-9]{2}|[ap]\.?m\.?)?)?"
)
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"{_WD}(?P<y>[0-9]{{4}})(?P<sep>[-/.–])(?P<m>[0-9]{{1,2}})(?P=sep)(?P<d>[0-9]{{1,2}}){_CLOCK}",
        rf"{_WD}(?P<a>[0-9]{{1,2}})(?P<sep>[-/.–])(?P<b>[0-9]{{1,2}})(?P=sep){_YEAR}{_CLOCK}",
        r"(?P<y>(?:19|20)[0-9]{2})(?P<m>[01][0-9])(?P<d>[0-3][0-9])",
        rf"{_WD}{_DAY}(?:\s+day)?(?:\s+of\s+|\s*[-.]\s*|\s+|){_MON}(?:(?:,?\s+|\s*-\s*){_YEAR})?{_CLOCK}",
        rf"{_WD}{_MON}\s*(?:the\s+)?{_DAY}(?:(?:,\s*|\s+){_YEAR})?{_CLOCK}",
        rf"{_MON}(?:\s*,\s*|\s+of\s+|\s+|\s*-\s*)(?P<y>[0-9]{{4}})",
        r"(?P<y>[0-9]{4})(?P<sep>[-/])(?P<m>[0-9]{1,2})",
        r"(?P<m>[0-9]{1,2})(?P<sep>[-/])(?P<y>[0-9]{4})",
        r"(?P<y>1[5-9][0-9]{2}|20[0-9]{2})",
        rf"{_MON}",
    )
)
_GROUPS = ("y", "m", "d", "a", "b", "mon", "ord", "wd")


@dataclass(frozen=True, slots=True, repr=False)
class ReadDate:
    """A date as it was written.

    Attributes:
        year, month, day: what is known of it; None for what is not said. A year of two digits is 1970 to 2069.
        text: as written.
        places: component (``y``, ``m``, ``d``, ``mon``, ``ord``, ``wd``) to where it stands in ``text``.
    """

    year: int | None
    month: int | None
    day: int | None
    text: str
    places: Mapping[str, tuple[int, int]]

    def __repr__(self) -> str:
        return f"ReadDate({', '.join(sorted(self.places))})"


def read_date(text: str, order: str = "mdy") -> ReadDate | None:
    """The date that ``text`` is, whole; None where it is not one date in a known form.

    Args:
        order: ``mdy`` or ``dmy``, for ``03/04/2020``; where only one reading is a date, that one is taken.

    >>> found = read_date("May 12th, 2020")
    >>> (found.year, found.month, found.day)
    (2020, 5, 12)
    """
    if len(text) > LONGEST or not text.replace("–", "-").replace("’", "'").isascii():
        return None
    for form in _FORMS:
        match = form.fullmatch(text)
        if match is None:
            continue
        named = match.groupdict()
        places = {g: match.span(g) for g in _GROUPS if named.get(g)}
        if "a" in places:
            first, second = int(named["a"]), int(named["b"])
            dmy = first > 12 or (order == "dmy" and second <= 12)
            places["d"], places["m"] = (places["a"], places["b"]) if dmy else (places["b"], places["a"])
            del places["a"], places["b"]
        year = month = day = None
        if "y" in places:
            year = int(_at(text, places["y"]).lstrip("'’"))
            if places["y"][1] - places["y"][0] < 4:
                year += 1900 if year >= 70 else 2000
        if "mon" in places:
            month = [m[:3].lower() for m in MONTHS].index(named["mon"][:3].lower()) + 1
        elif "m" in places:
            month = int(_at(text, places["m"]))
        if "d" in places:
            day = int(_at(text, places["d"]))
        try:
            date(2000 if year is None else year, month or 1, day or 1)
        except ValueError:
            continue
        return ReadDate(year, month, day, text, places)
    return None


def _at(text: str, place: tuple[int, int]) -> str:
    return text[place[0] : place[1]]


def moved(found: ReadDate, days: int) -> str | None:
    """The date ``days`` later, written in the same way; None where it has no month, or leaves the calendar.

    A month with its year moves as its middle does, at least by one month. A day without a year moves as in a year
    without a 29 February, unless it is that day.
    """
    if found.month is None or (found.year is None and found.day is None):
        return None
    year = found.year if found.year is not None else 2000 if (found.month, found.day) == (2, 29) else 2001
    try:
        new = date(year, found.month, found.day or 15) + timedelta(days=days)
    except OverflowError:
        return None
    if found.day is None and (new.year, new.month) == (year, found.month):
        at = year * 12 + found.month - 1 + (1 if days > 0 else -1)
        if not 12 <= at < 12 * 10000:
            return None
        new = date(at // 12, at % 12 + 1, 15)
    numbers = [_at(found.text, found.places[g]) for g in ("m", "d") if g in found.places]
    padded = all(len(n) == 2 for n in numbers) and ("m" in found.places or any(n[0] == "0" for n in numbers))
    out: list[str] = []
    at = 0
    for name, (start, end) in sorted(found.places.items(), key=lambda item: item[1]):
        out.append(found.text[at:start])
        out.append(_written(name, found.text[start:end], new, days, padded))
        at = end
    out.append(found.text[at:])
    return "".join(out)


def _written(name: str, was: str, new: date, days: int, padded: bool) -> str:
    if name == "y":
        digits = was.lstrip("'’")
        return was[: len(was) - len(digits)] + (f"{new.year:04}" if len(digits) == 4 else f"{new.year % 100:02}")
    if name in ("m", "d"):
        value = new.month if name == "m" else new.day
        return f"{value:02}" if padded else str(value)
    if name == "ord":
        suffix = "th" if 10 <= new.day % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(new.day % 10, "th")
        return suffix.upper() if was.isupper() else suffix
    if name == "mon":
        full = MONTHS[new.month - 1]
        chosen = full if len(was) > 4 or was.lower() in ("may", "june", "july") else full[:3]
    else:
        index = ([w[:3].lower() for w in WEEKDAYS].index(was[:3].lower()) + days) % 7
        chosen = WEEKDAYS[index] if was.lower().endswith("day") else WEEKDAYS[index][:3]
    return chosen.upper() if was.isupper() else chosen.lower() if was.islower() else chosen


def shift(setting: Setting, max_days: int, subject: str, keep_weekday: bool) -> int:
    """The keyed number of days for this document or subject: from ``-max_days`` to ``max_days``, never 0."""
    key = subkey(setting.key, "shift_dates", setting.scope)
    document = setting.document
    if subject:
        who = document.meta.get(subject)
        if who is None or who == "":
            raise DataError(f"operator 'shift_dates' needs the metadata key {subject!r}, which this document lacks")
        name = f"subject\0{who}"
    elif document.id:
        name = f"document\0{document.id}"
    else:
        name = f"text\0{digest(document.text)}"
    unit = 7 if keep_weekday else 1
    most = max_days // unit
    drawn = int.from_bytes(hmac.digest(key, name.encode("utf-8", "surrogatepass"), "sha256")) % (2 * most)
    return (drawn - most if drawn < most else drawn - most + 1) * unit


def _check(options: Mapping[str, Any], where: str) -> None:
    least = 7 if options.get("keep_weekday", False) else 1
    days = options.get("max_days", 365)
    if not least <= days <= 36500:
        raise PolicyError(f"{where}.max_days must be from {least} to 36500 days, got {days!r}")


@traits(keyed=True, check=_check)
def shift_dates(
    mention: Mention,
    setting: Setting,
    *,
    max_days: int = 365,
    order: Literal["mdy", "dmy"] = "mdy",
    subject: str = "",
    keep_weekday: bool = False,
) -> str:
    """The date, moved by the same secret number of days throughout the document, written as it was.

    Intervals between full dates are kept to the day. A document is known by its id, or by its text where it has none.
    What is no date in a known form, and a year or a weekday alone, becomes a tag; a time of day stays as it is.

    Args:
        max_days: the most that a date moves either way, 1 to 36,500; it never moves by 0.
        order: how ``03/04/2020`` is read.
        subject: metadata key that names the person; all documents of one person move alike.
        keep_weekday: move by whole weeks only.
    """
    found = read_date(mention.text, order)
    if found is None:
        return mention.tag
    out = moved(found, shift(setting, max_days, subject, keep_weekday))
    return mention.tag if out is None or out == mention.text else out
