"""Reading dates in several languages, and moving them by a keyed number of days."""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Literal

from allonym.errors import DataError, PolicyError
from allonym.keys import subkey
from allonym.plan import digest
from allonym.replace.calendars import named as named_as
from allonym.replace.calendars import words, written
from allonym.replace.mention import Mention, Setting, declare_surrogates, traits

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
LONGEST = 64

_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth twentieth"
).split()
_ORDINALS += [f"twenty-{word}" for word in _ORDINALS[:9]] + ["thirtieth", "thirty-first"]
_SAID = "|".join(word.replace("-", "[- ]") for word in reversed(_ORDINALS))

_MON = rf"(?P<mon>{words('month')})\.?"
_WD = rf"(?:(?P<wd>{words('weekday')})\.?,?\s+(?:the\s+|de[mn]\s+)?)?"
_DAY = rf"(?:(?P<d>[0-9]{{1,2}})(?P<ord>st|nd|rd|th|er)?º?|(?P<said>{_SAID}))"
_YEAR = r"(?P<y>[0-9]{4}|['’]?[0-9]{2})"
_AFTER = r"(?:\s?(?:roku|r\.?))?"  # Polish: of the year
_ZONE = r"\s?(?:Z|UTC|GMT|CES?T|[ECMP][SD]T|[+-][0-9]{2}:?[0-9]{2}|[ap]\.?m\.?|Uhr)?(?:\s\([A-Z]{2,5}\))?"
_CLOCK = (
    r"(?:(?:T|:|,?\s+(?:at\s+|um\s+|o\s+(?:godz\.\s+)?)?)[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,9})?)?"
    rf"{_ZONE})?"
)
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"{_WD}(?P<y>[0-9]{{4}})(?P<sep>[-/.–])(?P<m>[0-9]{{1,2}})(?P=sep)(?P<d>[0-9]{{1,2}}){_CLOCK}",
        rf"{_WD}(?P<a>[0-9]{{1,2}})(?P<sep>[-/.–]|\.\s)(?P<b>[0-9]{{1,2}})(?P=sep){_YEAR}{_AFTER}{_CLOCK}",
        r"(?P<y>(?:19|20)[0-9]{2})(?P<m>[01][0-9])(?P<d>[0-3][0-9])",
        rf"{_WD}{_DAY}(?:\s+day)?(?:\s+(?:of|de)\s+|\s*[-./]\s*|\s+|){_MON}"
        rf"(?:(?:,?\s+(?:(?:of|del?)\s+)?|\s*[-/]\s*){_YEAR}{_AFTER})?{_CLOCK}",
        rf"{_WD}{_MON}\s*(?:the\s+)?{_DAY}(?:(?:,\s*|\s+)(?:of\s+)?{_YEAR})?{_CLOCK}",
        rf"{_MON}(?:\s*,\s*|\s+(?:of|del?)\s+|\s+|\s*-\s*)(?P<y>[0-9]{{4}}){_AFTER}",
        rf"{_MON}\s*-\s*{_YEAR}",
        r"(?P<y>[0-9]{4})(?P<sep>[-/])(?P<m>[0-9]{1,2})",
        r"(?P<m>[0-9]{1,2})(?P<sep>[-/])(?P<y>[0-9]{4})",
        r"(?P<y>[0-9]{4})[年년]\s?(?P<m>[0-9]{1,2})[月월](?:\s?(?P<d>[0-9]{1,2})[日일])?",
        rf"(?P<y>1[5-9][0-9]{{2}}|20[0-9]{{2}}){_AFTER}",
        rf"{_MON}",
    )
)
_LOGGED = re.compile(r"[0-9]{1,2}/[A-Za-z]{3}/[0-9]{4}:")
_DOTTED_DAY = re.compile(r"[0-9]\. ?[^\W\d]")
_GROUPS = ("y", "m", "d", "a", "b", "mon", "ord", "said", "wd")


@dataclass(frozen=True, slots=True, repr=False)
class ReadDate:
    """A date as it was written.

    Attributes:
        year, month, day: what is known of it; None for what is not said. A year of two digits is 1970 to 2069.
        text: as written.
        places: component (``y``, ``m``, ``d``, ``mon``, ``ord``, ``said``, ``wd``) to where it stands in ``text``.
        language: ISO 639-1 of the text, where a name does not tell.
    """

    year: int | None
    month: int | None
    day: int | None
    text: str
    places: Mapping[str, tuple[int, int]]
    language: str = "en"

    def __repr__(self) -> str:
        return f"ReadDate({', '.join(sorted(self.places))})"


def read_date(text: str, order: str = "mdy", language: str = "en") -> ReadDate | None:
    """The date that ``text`` is, whole; None where it is not one date in a known form.

    Names of months and weekdays are known in the languages of ``calendar.tsv``, whatever the text's language.

    Args:
        order: ``mdy`` or ``dmy``, for ``03/04/2020``; where only one reading is a date, that one is taken.
        language: ISO 639-1 code of the text's language, for names that several languages share.

    >>> found = read_date("May 12th, 2020")
    >>> (found.year, found.month, found.day)
    (2020, 5, 12)
    """
    if len(text) > LONGEST:
        return None
    if _LOGGED.match(text):
        language = "en"
    elif language == "en" and _DOTTED_DAY.search(text):
        language = "de"
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
            language = _language(named, language)
            name = named_as("month", named["mon"], language)
            month = name.place + 1 if name else None
        elif "m" in places:
            month = int(_at(text, places["m"]))
        if "d" in places:
            day = int(_at(text, places["d"]))
        elif "said" in places:
            day = _ORDINALS.index(named["said"].lower().replace(" ", "-")) + 1
        try:
            date(2000 if year is None else year, month or 1, day or 1)
        except ValueError:
            continue
        return ReadDate(year, month, day, text, places, language)
    return None


def _language(parts: Mapping[str, str | None], language: str) -> str:
    """The language of a month's name: a weekday beside it tells."""
    if not parts.get("wd"):
        return language
    day = named_as("weekday", str(parts["wd"]), language)
    return day.language if day is not None else language


def _at(text: str, place: tuple[int, int]) -> str:
    return text[place[0] : place[1]]


def moved(found: ReadDate, days: int, years: int = 0) -> str | None:
    """The date ``days`` and then ``years`` later, written in the same way.

    None where it has no month, is a month alone, or leaves the calendar. A month with its year moves as its middle
    does, at least by one month. A day without a year moves as in a year without a 29 February, unless it is that day.
    """
    if found.month is None or (found.year is None and found.day is None):
        return None
    return _moved(found, days, years)


def month_moved(found: ReadDate, days: int) -> str | None:
    """As :func:`moved`, also for a month alone, which moves as its middle does."""
    return _moved(found, days, 0) if found.month is not None else None


def _moved(found: ReadDate, days: int, years: int) -> str | None:
    assert found.month is not None
    year = found.year if found.year is not None else 2000 if (found.month, found.day) == (2, 29) else 2001
    old = date(year, found.month, found.day or 15)
    try:
        new = old + timedelta(days=days)
        if found.day is None and (new.year, new.month) == (year, found.month):
            at = year * 12 + found.month - 1 + (1 if days > 0 else -1)
            new = date(at // 12, at % 12 + 1, 15)
        if years and found.year is not None:
            new = new.replace(year=new.year + years, day=min(new.day, 28) if new.month == 2 else new.day)
    except (OverflowError, ValueError):
        return None
    numbers = [_at(found.text, found.places[g]) for g in ("m", "d") if g in found.places]
    padded = all(len(n) == 2 for n in numbers) and ("m" in found.places or any(n[0] == "0" for n in numbers))
    out: list[str] = []
    at = 0
    for name, (start, end) in sorted(found.places.items(), key=lambda item: item[1]):
        out.append(found.text[at:start])
        out.append(_written(name, found, found.text[start:end], new, (new - old).days, padded))
        at = end
    out.append(found.text[at:])
    return "".join(out)


def _written(name: str, found: ReadDate, was: str, new: date, days: int, padded: bool) -> str:
    if name == "y":
        digits = was.lstrip("'’")
        return was[: len(was) - len(digits)] + (f"{new.year:04}" if len(digits) == 4 else f"{new.year % 100:02}")
    if name in ("m", "d"):
        value = new.month if name == "m" else new.day
        return f"{value:02}" if padded else str(value)
    if name == "ord":
        if was.lower() == "er":
            return was if new.day == 1 else ""
        suffix = "th" if 10 <= new.day % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(new.day % 10, "th")
        return suffix.upper() if was.isupper() else suffix
    if name == "said":
        said = _ORDINALS[new.day - 1]
        said = said.replace("-", " ") if " " in was else said
        return said.upper() if was.isupper() else said.capitalize() if was[0].isupper() else said
    word = named_as("month" if name == "mon" else "weekday", was, found.language)
    if word is None:
        return was
    return written(was, word, new.month - 1 if name == "mon" else word.place + days)


def shift(setting: Setting, max_days: int, subject: str, keep_weekday: bool) -> int:
    """The keyed number of days for this document or subject: from ``-max_days`` to ``max_days``, never 0.

    Raises:
        DataError: the document lacks the metadata key ``subject``.
    """
    unit = 7 if keep_weekday else 1
    return _drawn(setting, _owner(setting, subject), max_days // unit) * unit


def years(setting: Setting, subject: str, most: int) -> int:
    """The keyed number of years by which ages move in this document or subject: ``-most`` to ``most``, never 0."""
    return _drawn(setting, "years\0" + _owner(setting, subject), most)


def _owner(setting: Setting, subject: str) -> str:
    document = setting.document
    if subject:
        who = document.meta.get(subject)
        if who is None or who == "":
            raise DataError(f"moving dates needs the metadata key {subject!r}, which this document lacks")
        return f"subject\0{who}"
    return f"document\0{document.id}" if document.id else f"text\0{digest(document.text)}"


def _drawn(setting: Setting, name: str, most: int) -> int:
    key = subkey(setting.key, "shift_dates", setting.scope)
    drawn = int.from_bytes(hmac.digest(key, name.encode("utf-8", "surrogatepass"), "sha256")) % (2 * most)
    return drawn - most if drawn < most else drawn - most + 1


def _check(options: Mapping[str, Any], where: str) -> None:
    least = 7 if options.get("keep_weekday", False) else 1
    days = options.get("max_days", 365)
    if not least <= days <= 36500:
        raise PolicyError(f"{where}.max_days must be from {least} to 36500 days, got {days!r}")


@traits(keyed=True, check=_check, grammar=declare_surrogates)
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
