"""Reads dates in several languages, and moves them by a keyed number of days."""

from __future__ import annotations

import hmac
import re
from calendar import isleap
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from typing import Any, Literal

from allonym.document import DATES_OF, splice_text
from allonym.errors import DataError
from allonym.keys import derive_operator_key
from allonym.plan import digest
from allonym.protocol import Mention, Setting, check_range, traits
from allonym.replace.tables import find_calendar_name, join_calendar_names, write_calendar_name
from allonym.replace.wording import ORDINALS, capitalise_like, get_ordinal_suffix
from allonym.text.dates import find_date_order

LONGEST = 64
"""Characters of a date."""

_ORDINAL = "|".join(word.replace("-", "[- ]") for word in reversed(ORDINALS))
_MON = rf"(?P<mon>{join_calendar_names('month')})\.?"
_WD = rf"(?:(?P<wd>{join_calendar_names('weekday')})\.?,?\s+(?:the\s+|de[mn]\s+)?)?"
_DAY = rf"(?:(?P<d>[0-9]{{1,2}})(?P<ord>st|nd|rd|th|er)?º?|(?P<word>{_ORDINAL}))"
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
        rf"{_WD}(?P<a>[0-9]{{1,2}})(?P<sep>/)(?P<b>[0-9]{{1,2}})",
        rf"{_WD}(?P<a>[0-9]{{1,2}})\.\s?(?P<b>[0-9]{{1,2}})\.",
        r"(?P<y>[0-9]{4})(?P<sep>[-/])(?P<m>[0-9]{1,2})",
        r"(?P<m>[0-9]{1,2})(?P<sep>[-/])(?P<y>[0-9]{4})",
        r"(?P<y>[0-9]{4})[年년]\s?(?P<m>[0-9]{1,2})[月월](?:\s?(?P<d>[0-9]{1,2})[日일])?",
        rf"(?P<y>1[5-9][0-9]{{2}}|20[0-9]{{2}}){_AFTER}",
        rf"{_MON}",
    )
)
_MONTH, _YEAR_DAYS = 31, 366
_LOGGED = re.compile(r"[0-9]{1,2}/[A-Za-z]{3}/[0-9]{4}:")
_DOTTED_DAY = re.compile(r"[0-9]\. ?[^\W\d]")
_GROUPS = ("y", "m", "d", "a", "b", "mon", "ord", "word", "wd")


@dataclass(frozen=True, slots=True, repr=False)
class ReadDate:
    """A date as it was written.

    Attributes:
        year, month, day: as far as the text says them, else None. A year of two digits is 1970 to 2069.
        text: as written.
        places: component (``y``, ``m``, ``d``, ``mon``, ``ord``, ``word``, ``wd``) to its place in ``text``.
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
    """Return the date that the whole of ``text`` is; None where it is not one date in a known form.

    Names of months and weekdays are known in the languages of ``calendar.tsv``, whatever the text's language.

    Args:
        order: ``mdy`` or ``dmy``, for ``03/04/2020``; where only one reading is a date, that one is taken.
        language: ISO 639-1 code of the text's language, for names that several languages share.

    >>> date = read_date("May 12th, 2020")
    >>> (date.year, date.month, date.day)
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
        groups = match.groupdict()
        places = {g: match.span(g) for g in _GROUPS if groups.get(g)}
        if "a" in places:
            first, second = int(groups["a"]), int(groups["b"])
            dmy = first > 12 or (order == "dmy" and second <= 12)
            places["d"], places["m"] = (places["a"], places["b"]) if dmy else (places["b"], places["a"])
            del places["a"], places["b"]
        parts = {name: text[slice(*place)] for name, place in places.items()}
        year = month = day = None
        if "y" in parts:
            year = int(parts["y"].lstrip("'’"))
            if len(parts["y"]) < 4:
                year += 1900 if year >= 70 else 2000
        if "mon" in parts:
            # A weekday beside a month tells its language.
            weekday = find_calendar_name("weekday", parts["wd"], language) if "wd" in parts else None
            language = weekday.language if weekday is not None else language
            name = find_calendar_name("month", parts["mon"], language)
            month = name.place + 1 if name else None
        elif "m" in parts:
            month = int(parts["m"])
        if "d" in parts:
            day = int(parts["d"])
        elif "word" in parts:
            day = ORDINALS.index(parts["word"].lower().replace(" ", "-")) + 1
        try:
            date(2000 if year is None else year, month or 1, day or 1)
        except ValueError:
            continue
        return ReadDate(year, month, day, text, places, language)
    return None


def move_date(
    written: ReadDate, days: int, years: int = 0, *, lone_months: bool = False, usual_year: int = 2001
) -> str | None:
    """Return the date ``days`` and then ``years`` later, written in the same way.

    A month with its year moves as its middle does, at least by one month. A day without a year moves as in
    ``usual_year``; 29 February as in a leap year.

    Args:
        written: the date.
        days, years: how far it moves.
        lone_months: whether a month alone moves too, as its middle does.
        usual_year: the year of a date that names none.

    Returns:
        None where the date has no month, is a month alone, or leaves the calendar.
    """
    if written.month is None or (written.year is None and written.day is None and not lone_months):
        return None
    year = written.year if written.year is not None else usual_year
    if written.year is None and (written.month, written.day) == (2, 29) and not isleap(year):
        year = 2000
    old = date(year, written.month, written.day or 15)
    try:
        new = old + timedelta(days=days)
        if written.day is None and (new.year, new.month) == (year, written.month):
            months = year * 12 + written.month - 1 + (1 if days > 0 else -1)
            new = date(months // 12, months % 12 + 1, 15)
        if years and written.year is not None:
            new = new.replace(year=new.year + years, day=min(new.day, 28) if new.month == 2 else new.day)
    except (OverflowError, ValueError):
        return None
    numbers = [written.text[slice(*written.places[g])] for g in ("m", "d") if g in written.places]
    padded = all(len(n) == 2 for n in numbers) and ("m" in written.places or any(n[0] == "0" for n in numbers))
    parts = sorted(written.places.items(), key=lambda pair: pair[1])
    news = (_write_date_part(part, written, new, (new - old).days, padded) for part, _ in parts)
    return splice_text(written.text, ((*place, new_text) for (_, place), new_text in zip(parts, news, strict=True)))


def _write_date_part(part: str, written: ReadDate, new: date, days: int, padded: bool) -> str:
    """Return a component of a date for the new date, in the form of the old one."""
    old = written.text[slice(*written.places[part])]
    if part == "y":
        digits = old.lstrip("'’")
        return old[: len(old) - len(digits)] + (f"{new.year:04}" if len(digits) == 4 else f"{new.year % 100:02}")
    if part in ("m", "d"):
        value = new.month if part == "m" else new.day
        return f"{value:02}" if padded else str(value)
    if part == "ord":
        if old.lower() == "er":
            return old if new.day == 1 else ""
        return get_ordinal_suffix(new.day, old)
    if part == "word":
        word = ORDINALS[new.day - 1]
        return capitalise_like(word.replace("-", " ") if " " in old else word, old)
    name = find_calendar_name("month" if part == "mon" else "weekday", old, written.language)
    if name is None:
        return old
    return write_calendar_name(new.month - 1 if part == "mon" else name.place + days, name, old)


def draw_day_shift(setting: Setting, max_days: int, subject: str, keep_weekday: bool) -> int:
    """Return the keyed number of days for this document or subject: from ``-max_days`` to ``max_days``, never 0.

    Where the limit leaves room for it, no date keeps its weekday, its month or, from two years on, its year.

    Raises:
        DataError: the document lacks the metadata key ``subject``.
    """
    shifts = _list_day_shifts(max_days, keep_weekday)
    number = draw_nonzero_shift(setting, subject, len(shifts))
    return shifts[number - 1] if number > 0 else -shifts[-number - 1]


@lru_cache(maxsize=16)
def _list_day_shifts(max_days: int, keep_weekday: bool) -> tuple[int, ...]:
    """Return the numbers of days by which dates may move forward or back."""
    shifts = [days for days in range(1, max_days + 1) if (days % 7 == 0) is keep_weekday]
    other_months = [days for days in shifts if _MONTH <= days % _YEAR_DAYS <= _YEAR_DAYS - _MONTH]
    other_years = [days for days in other_months if days > _YEAR_DAYS]
    enough = other_years if max_days >= 2 * _YEAR_DAYS else other_months
    return tuple(enough or shifts or [7])


@lru_cache(maxsize=1)
def _digest_text(text: str) -> str:
    """The digest of a document's text, computed once for all of its dates."""
    return digest(text)


def draw_nonzero_shift(setting: Setting, subject: str, limit: int, kind: str = "") -> int:
    """Return a keyed number for this document, its mailbox or its subject, one for each ``kind``.

    It is from ``-limit`` to ``limit``, never 0.

    Raises:
        DataError: the document lacks the metadata key ``subject``.
    """
    document = setting.document
    name = f"document\0{document.id}" if document.id else f"text\0{_digest_text(document.text)}"
    if DATES_OF in document.meta:
        name = f"file\0{document.meta[DATES_OF]}"
    if subject:
        value = document.meta.get(subject)
        if value is None or value == "":
            raise DataError(f"moving dates needs the metadata key {subject!r}, which this document lacks")
        name = f"subject\0{value}"
    name = f"{kind}\0{name}" if kind else name
    key = derive_operator_key(setting.key, "shift_dates", setting.scope)
    number = int.from_bytes(hmac.digest(key, name.encode("utf-8", "surrogatepass"), "sha256")) % (2 * limit)
    return number - limit if number < limit else number - limit + 1


def check_shift_options(options: Mapping[str, Any], where: str) -> None:
    """Raise :class:`PolicyError` where ``max_days`` is out of range; whole weeks need at least 7."""
    least = 7 if options.get("keep_weekday", False) else 1
    check_range(options, where, "max_days", 365, least, 36500, " days")


@traits(keyed=True, check=check_shift_options)
def shift_dates(
    mention: Mention,
    setting: Setting,
    *,
    max_days: int = 365,
    order: Literal["mdy", "dmy"] = "mdy",
    subject: str = "",
    keep_weekday: bool = False,
) -> str:
    """Write the date as it was written, moved by the same secret number of days throughout the document.

    Intervals between full dates are kept to the day. A document is known by its id, or by its text where it has none;
    all mails of a mailbox move alike.
    A text that is no date in a known form, and a year or a weekday alone, becomes a tag; a time of day stays.

    Args:
        max_days: the most that a date moves either way, 1 to 36,500; it never moves by 0.
        order: how ``03/04/2020`` is read, where no other date of the document shows it, nor a telephone number or a
            British postcode.
        subject: metadata key that names the person; all documents of one person move alike.
        keep_weekday: move by whole weeks only.
    """
    written = read_date(mention.text, find_date_order(setting.document.text, order))
    new = move_date(written, draw_day_shift(setting, max_days, subject, keep_weekday)) if written is not None else None
    return mention.tag if new is None or new == mention.text else new
