"""Pseudonyms of dates and ages: one keyed shift for all dates of a document, or of all documents of a subject.

- Full dates move by the same number of days, so that intervals between them stay to the day; format, granularity and
  language stay. A year alone moves by the shift in whole years, by at least one; a quarter, half or season as its
  middle does. A month moves by at least one month. Decades and centuries stay.
- A date without a year moves as one of the year that the nearest date with a year names, and a day alone (the 9th) as
  one of the nearest month. A holiday becomes the one that is nearest to where it moves, among those that are known
  where it is kept.
- A weekday alone moves along, unless whole weeks are moved. Times of day, durations and times relative to today
  ("last Tuesday", "yesterday", "gestern") stay: they say nothing without the date. But times that are exact to the
  thousandth of a second move, all by as much, up to twenty seconds: they are nearly as good as a name.
- An age moves by one or two years, the same for all ages, and dates of birth by as many years more than other dates,
  so that an age still is what date and date of birth tell. No age becomes less than one year.
- Whatever else cannot be read becomes a tag, and so does what holds a word that is in no list of
  :mod:`allonym.replace.pseudonym`: it may be a name.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import partial
from math import floor
from typing import cast as typed

from allonym.document import splice_text
from allonym.protocol import Wanted
from allonym.replace import pseudonym
from allonym.replace.cast import Cast, Renderer, find_plain_words
from allonym.replace.dates import LONGEST, draw_day_shift, draw_nonzero_shift, move_date, read_date
from allonym.replace.tables import find_calendar_name, join_calendar_names, read_toml, write_calendar_name
from allonym.replace.wording import ONES, ORDINALS, TENS, get_ordinal_suffix, match_case, read_number, write_number
from allonym.text.dates import find_date_order

MOST_YEARS = 2
"""The most years that an age moves either way."""
MOST_DAYS = 1096
"""The most days that dates move by default: three years."""

_MOST_MICROSECONDS = 20_000_000
_EXACT_CLOCK = re.compile(r"(?P<h>[0-9]{1,2})(?P<m>:[0-9]{2})(?P<s>:[0-9]{2})(?P<f>[.,][0-9]{3,6})")
_DAY_ALONE = re.compile(r"(?i)(?P<d>[0-9]{1,2})(?P<ord>st|nd|rd|th)")
_LEAD = re.compile(r"(?i)(?:b\.\s*|(?:this|the|on|in|im|am|vom|den|dem|od|do|dnia|we?|since|until|by)\s+)")
_YEAR = r"(?:1[5-9]|2[01])[0-9]{2}"
_OF_YEAR = rf"(?:(?P<y>{_YEAR})|['’]?(?P<short>[0-9]{{2}}))(?:\s?(?:roku|r\.?))?"
_NAMED_YEAR = r"(?:(?:fiscal|calendar|tax|academic)\s+)?(?:years?|jahre?|roku?)|fiscal|[fc]y"
_PART_OF_YEAR = "early|late|mid|anfang|mitte|ende|początku?|końcu|(?:the\\s+)?(?:end|beginning|middle|start)\\s+of"
_YEARS = re.compile(
    rf"(?i)(?:(?:{_NAMED_YEAR}|{_PART_OF_YEAR})[\s-]*)*(?P<y>{_YEAR})"
    rf"(?:\s?[-–—/]\s?(?P<to>{_YEAR}|[0-9]{{2}}))?(?:\s?(?:roku|r\.?))?"
)
_SHORT_YEAR = re.compile(rf"(?i)(?:(?:{_NAMED_YEAR})\s*['’]?|['’])(?P<short>[0-9]{{2}})")
_HOLIDAY_NAMES = "|".join(sorted((n for group in read_toml()["holidays"].values() for n in group), key=len)[::-1])
_HOLIDAY = re.compile(rf"(?i)\b(?:{_HOLIDAY_NAMES})\b")
_HOLIDAY_OF = re.compile(
    rf"(?i)(?P<name>{_HOLIDAY_NAMES})(?P<link>,?\s+(?:(?:of|in)\s+)?)"
    rf"(?P<rest>['’]?[0-9].*|(?:eighteen|nineteen|{'|'.join(TENS)})\b.*)"
)
_NTH_WEEKDAY = re.compile(
    rf"(?i)(?P<nth>(?:first|second|third|fourth|last)\s+)(?P<name>{join_calendar_names('weekday')})"
    r"(?P<link>\s+(?:of|in)\s+)(?P<rest>\S.*)"
)
_SPOKEN_YEAR = re.compile(
    r"(?i)(?:(?:eighteen|nineteen|twenty)[- ])?"
    rf"(?P<spoken>(?:{'|'.join(TENS[2:])})(?:[- ](?:{'|'.join(ONES[1:10])}))?)"
)
_TWO_DIGITS = (
    rf"(?:{'|'.join(TENS)})(?:[- ](?:{'|'.join(ONES[1:10])}))?|{'|'.join(ONES[10:])}|oh[- ](?:{'|'.join(ONES[1:10])})"
)
_WITH_SPOKEN_YEAR = re.compile(
    rf"(?i)(?P<date>.*\b(?:{join_calendar_names('month')})\b.*?)(?P<gap>,?\s+(?:of\s+)?)"
    rf"(?:(?P<century>eighteen|nineteen|twenty)[- ](?P<rest>{_TWO_DIGITS}|hundred)"
    rf"|(?P<millennium>two thousand)(?:(?P<and> and|,)? (?P<more>{_TWO_DIGITS}|{'|'.join(ONES[1:10])}))?)"
)
"""A date whose year is spoken: "third of May nineteen seventy-four"."""
_DAYS = re.compile(
    r"(?P<first>[0-9]{1,2}(?:st|nd|rd|th)?)(?P<dash>\s?[-–—]\s?|\s(?:and|or|to|until)\s)"
    r"(?P<day>[0-9]{1,2}(?:st|nd|rd|th)?)(?P<month>\s[^\W\d].*)"
)
_QUARTER = re.compile(
    r"(?i)(?:(?P<before>[qh])(?P<n>[1-4])|(?P<n2>[1-4])(?P<behind>[qh])|(?P<word>first|second|third|fourth)"
    rf"[ -](?P<long>quarter|half))(?:[\s/-]*(?:of\s+)?(?:fiscal\s+)?(?:year\s+)?){_OF_YEAR}"
)
_SEASON = re.compile(
    rf"(?i)(?P<name>{join_calendar_names('season')})(?:,?\s+(?:of\s+)?(?P<y>{_YEAR})(?:\s?(?:roku|r\.?))?)?"
)
_PART_OF_MONTH = re.compile(rf"(?i)(?:{_PART_OF_YEAR})[\s-]+(?P<rest>(?:{join_calendar_names('month')})\b.*)")
_DAY_OF_WEEK = re.compile(
    rf"(?i)(?P<name>{join_calendar_names('weekday')})\.?,?\s+(?:the\s+)?(?P<d>[0-9]{{1,2}})(?P<ord>st|nd|rd|th)?"
)
_WEEKDAY = re.compile(rf"(?i)(?:(?:every|each|jeden|każd[yą])\s+)?(?P<name>{join_calendar_names('weekday')})\.?")
_CLOCK = re.compile(
    r"(?i)[0-9]{1,2}(?:[:.h][0-9]{2}){0,2}(?:[.,][0-9]+)?\s?(?:[ap]\.?m\.?|uhr|h|hrs?|o['’]clock|(?<=:[0-9]{2}))"
    r"(?:\s?[a-z]{1,4})?|noon|midnight|mittags?|mitternacht|północ|południe"
)
_DECADES = re.compile(  # as coarse as ten years
    r"(?i)(?:the\s+)?(?:(?:early|late|mid)[ -])?(?:[0-9]{3}0['’]?s|['’]?[0-9]0s|(?:nineteen\s+)?(?:twenties|thirties"
    r"|forties|fifties|sixties|seventies|eighties|nineties)|(?:[^\W\d]+|[0-9]{1,2}(?:st|nd|rd|th))\s+century)"
)
_RELATIVE = re.compile(  # what says nothing without another date
    r"(?i)(?:daily|weekly|monthly|yearly|annually|weekends?)"
    r"|(?:(?:the|every|each|all|an?|one)\s+)?(?:day|night|morning|afternoon|evening|week|month|quarter|year|weekend)s?"
    r"|.*\b(?:ago|today|tonight|tomorrow|yesterday|now|last|next|this|previous|following|past|coming|same|earlier"
    r"|later|recently|currently|nowadays|heute|gestern|morgen|vorgestern|übermorgen|vor|letzte[nrsm]?|nächste[nrsm]?"
    r"|diese[nrsm]?|kommende[nrsm]?|vergangene[nrsm]?|dzisiaj|dziś|wczoraj|jutro|przedwczoraj|pojutrze|temu|zeszł\w+"
    r"|ubiegł\w+|przyszł\w+|następn\w+|t(?:en|ym|ej|ego)|hier|aujourd'hui|demain|hoy|ayer|mañana)\b.*"
)
_DATED = re.compile(
    rf"(?i){_YEAR}|[0-9][./-][0-9]|[0-9].*\b(?:{join_calendar_names('month')})\b|\b(?:{join_calendar_names('month')})\b.*[0-9]"
)
_RANGE = re.compile(
    r"(?i)\s+(?:to|until|till|through|and|or|bis|und|do|i|oraz|au|al?)\s+|\s[-–—]\s|,\s|(?<=[^\W\d])[-–—](?=[^\W\d])"
)
_NUMBER = re.compile(
    rf"(?i)(?<![0-9.,/])[0-9]{{1,3}}(?![0-9/]|['’]?s\b)"
    rf"|\b(?:(?:{'|'.join(TENS)})(?:[- ](?:{'|'.join(ONES[1:10])}))?|{'|'.join(ONES[1:])})\b"
)
_SMALL_UNIT = re.compile(r"(?i)\b(?:months?|weeks?|days?|monate?n?|wochen?|tagen?|miesi\w+|tygodni\w*|dni)\b")
_DECADE = re.compile(
    r"(?i)\b(?:twenties|thirties|forties|fifties|sixties|seventies|eighties|nineties|teens?|[1-9]0['’]?s)\b"
)
_POLISH_YEARS = re.compile(r"\b(?:rok|lata|lat)\b")


def make_renderers(cast: Cast, targets: Sequence[Wanted]) -> dict[str, Renderer]:
    """Choose pseudonyms of dates, times and ages.

    Args:
        cast: of the document.
        targets: entities in reading order; those of other families are passed over.

    Returns:
        Entity key to what renders its surfaces. What stays is rendered as it is.

    Raises:
        DataError: the policy names a subject, and the document does not say whose it is.
    """
    out: dict[str, Renderer] = {}
    anchors = _Anchors(cast, targets)
    days = _make_mover(cast, targets[0], 0).days if targets else 0
    older = draw_age_shift(cast, [text for t in targets if "AGE" in cast.get_lineage(t) for text in t.surfaces], days)
    move_age = partial(_move_age, years=older)
    for target in targets:
        lineage = cast.get_lineage(target)
        if "AGE" in lineage:
            out[target.entity.key] = partial(_render_if_permitted, pseudonym.is_permitted_age, move_age)
        elif "TIME" in lineage or "DURATION" in lineage:
            out[target.entity.key] = partial(_render_time, _make_mover(cast, target, 0))
        elif lineage[-1] == "DATE_TIME":
            mover = _make_mover(cast, target, -older if "DATE_OF_BIRTH" in lineage else 0)
            year, month = anchors.find_year_and_month(target)
            mover = replace(mover, usual_year=year, usual_month=month)
            out[target.entity.key] = partial(_render_if_permitted, _is_permitted_date, mover.move_phrase)
    return out


class _Anchors:
    """The dates of a document that name a year or a month, by which the others are read."""

    def __init__(self, cast: Cast, targets: Sequence[Wanted]) -> None:
        self._years: list[tuple[int, int]] = []
        self._months: list[tuple[int, int]] = []
        for target in targets:
            order = _get_order(cast, target)
            is_birth = "DATE_OF_BIRTH" in cast.get_lineage(target)
            for span, surface in zip(target.entity.spans, () if is_birth else target.surfaces, strict=not is_birth):
                lead = _LEAD.match(surface)
                written = read_date(surface[lead.end() if lead else 0 :], order, cast.setting.policy.language)
                if written is not None and written.year is not None:
                    self._years.append((span.start, written.year))
                if written is not None and written.month is not None:
                    self._months.append((span.start, written.month))
        self._years.sort()
        self._months.sort()

    def find_year_and_month(self, target: Wanted) -> tuple[int, int]:
        """Return the year and the month of the dates nearest to a target that name one."""
        start = target.entity.spans[0].start
        return _find_nearest(self._years, start, 2001), _find_nearest(self._months, start, 1)


def _find_nearest(values: Sequence[tuple[int, int]], place: int, default: int) -> int:
    """Return of values with their places, sorted, the one nearest to a place; of two the one before it."""
    i = bisect_left(values, (place, 0))
    near = values[max(0, i - 1) : i + 1]
    return min(near, key=lambda value: (abs(value[0] - place), value[0]))[1] if near else default


def _render_time(mover: _Mover, text: str) -> str | None:
    """Return a time of day or a duration: as it is where it may stay, a very exact one moved."""
    if (match := _EXACT_CLOCK.search(text)) is not None:
        out, _ = mover.move_exact_clock(match)
        return out if pseudonym.has_only_time_words(out) else None
    return text if pseudonym.is_permitted_time(text) else None


def draw_age_shift(cast: Cast, ages: Sequence[str], days: int = 0) -> int:
    """Return the years by which the document's ages move: -2 to 2, never 0, upward where an age would fall below one.

    Where other dates move by ``days``, ages move against them, so that dates of birth move by more: otherwise the two
    could cancel out. Where no subject's documents must agree, another number of years is taken if an age in words would
    become a word that occurs in the document.
    """
    first = draw_nonzero_shift(cast.setting, cast.setting.policy.subject, MOST_YEARS, "years")
    texts = [m[0] for text in ages if not _SMALL_UNIT.search(text) for m in _NUMBER.finditer(text)]
    numbers = [_read_age(text) for text in texts]
    spoken = [_read_age(text) for text in texts if not text.isdigit()]
    first = -first if first * days > 0 else first
    sign = first // abs(first)
    shifts = [first] if cast.setting.policy.subject else [first, -first, sign, -sign, 2 * sign, -2 * sign]
    shifts = [n for n in shifts if all(number + n >= 1 for number in numbers)] or [abs(first)]
    if spoken and len(shifts) > 1:
        there = set(find_plain_words(cast.ledger.outside_text))
        for shift in shifts:
            if not any(there.issuperset(write_number(n + shift, "x").split("-")) for n in spoken):
                return shift
    return shifts[0]


def _render_if_permitted(is_permitted: Callable[[str], bool], render: Renderer, text: str) -> str | None:
    """Return what is rendered, where it keeps no word that may be somebody's name."""
    out = render(text)
    return out if out is not None and is_permitted(out) else None


def _is_permitted_date(text: str) -> bool:
    """Whether all words of a text are those of dates, but for the letter of "b. 1979", or it is a holiday."""
    return pseudonym.has_only_time_words(_HOLIDAY.sub("", text.removeprefix("b."), count=1))


def _make_mover(cast: Cast, target: Wanted, years: int) -> _Mover:
    policy, options = cast.setting.policy, target.options
    most, weeks = typed(int, options.get("max_days", MOST_DAYS)), typed(bool, options.get("keep_weekday", False))
    days = draw_day_shift(cast.setting, most, policy.subject, weeks)
    clock = draw_nonzero_shift(cast.setting, policy.subject, _MOST_MICROSECONDS, "microseconds")
    return _Mover(days, years, _get_order(cast, target), policy.language, clock)


def _get_order(cast: Cast, target: Wanted) -> str:
    order = str(target.options.get("order", "mdy")) if cast.setting.policy.language == "en" else "dmy"
    return find_date_order(cast.text, order)


@dataclass(frozen=True, slots=True)
class _Mover:
    """Moves dates by a number of days, and then of years. Each method returns None for what it cannot read.

    Attributes:
        days, years: how far.
        order: how ``03/04/2020`` is read.
        language: ISO 639-1.
        microseconds: by which very exact times move.
        usual_year, usual_month: of dates that name none.
    """

    days: int
    years: int
    order: str
    language: str
    microseconds: int = 1
    usual_year: int = 2001
    usual_month: int = 1

    def move_phrase(self, text: str) -> str | None:
        """Move a date with or without a preposition or an article before it."""
        lead = _LEAD.match(text)
        for size in (lead.end(), 0) if lead else (0,):
            new = self.move_date_text(text[size:])
            if new is not None:
                return text[:size] + new
        return None

    def move_date_text(self, text: str) -> str | None:
        """Move a date, a part of a year, a weekday or a range of dates; what tells no date stays as it is."""
        if len(text) > LONGEST:
            return None
        if (match := _EXACT_CLOCK.search(text)) is not None:
            moved, carried = self.move_exact_clock(match)
            if match[0] == text:
                return moved
            return replace(self, days=self.days + carried)._move_plain_text(moved)
        return self._move_plain_text(text)

    def move_exact_clock(self, match: re.Match[str]) -> tuple[str, int]:
        """Return the text with another time of day, and the days by which it leaves its own."""
        digits = match["f"][1:]
        unit = 10 ** (6 - len(digits))
        time = ((int(match["h"]) * 60 + int(match["m"][1:])) * 60 + int(match["s"][1:])) * 1_000_000 + int(
            digits
        ) * unit
        days, time = divmod(time + (self.microseconds // unit or 1) * unit, 86_400_000_000)
        seconds, fraction = divmod(time, 1_000_000)
        parts = {
            "h": f"{seconds // 3600:0{len(match['h'])}}", "m": f":{seconds // 60 % 60:02}", "s": f":{seconds % 60:02}",
            "f": f"{match['f'][0]}{fraction // unit:0{len(digits)}}",
        }  # fmt: skip
        return _replace_groups(match, parts), days

    def _move_plain_text(self, text: str) -> str | None:
        for form, move in _FORMS:
            if (match := form.fullmatch(text)) is not None:
                return move(self, match)
        written = read_date(text, "dmy" if re.match(r"[0-9]{1,2}\.", text) else self.order, self.language)
        if written is not None and written.month is not None:
            lone = written.year is None and written.day is None
            years = 0 if lone else self.years
            return move_date(written, self.days, years, lone_months=True, usual_year=self.usual_year)
        relative = _RELATIVE.fullmatch(text) and not _DATED.search(text)
        if relative or _CLOCK.fullmatch(text) or _DECADES.fullmatch(text):
            return text
        if (holiday := _move_holiday(text, self.days)) is not None:
            return holiday
        if (match := _RANGE.search(text)) is None:  # "to", "and", a dash or a comma between two dates
            return None
        first, second = self.move_date_text(text[: match.start()]), self.move_date_text(text[match.end() :])
        return f"{first}{match[0]}{second}" if first is not None and second is not None else None

    def _move_years(self, match: re.Match[str]) -> str:
        years = (round(self.days / 365.25) or (1 if self.days > 0 else -1)) + self.years
        parts = {name: (text, int(text) + years) for name, text in match.groupdict().items() if text}
        news = {name: f"{year % 100:02}" if len(text) < 4 else str(year) for name, (text, year) in parts.items()}
        return _replace_groups(match, news)

    def _move_spoken_year(self, match: re.Match[str]) -> str | None:
        """Move a year of the last century in words: ``eighty-six``."""
        number = read_number(match["spoken"])
        years = round(self.days / 365.25) or (1 if self.days > 0 else -1)
        if number is None:
            return None
        return _replace_groups(match, {"spoken": write_number((number + years - 20) % 80 + 20, match["spoken"])})

    def _move_with_spoken_year(self, match: re.Match[str]) -> str | None:
        """Move a date whose year is in words, and write the year as it was spoken."""
        century, rest = match["century"], match["rest"] or match["more"]
        more = 0 if rest in (None, "hundred") else read_number(re.sub("(?i)oh[- ]", "", rest))
        if more is None:
            return None
        hundreds = 100 * ("eighteen", "nineteen", "twenty").index(century.lower()) + 1800 if century else 2000
        moved = self.move_phrase(f"{match['date']} {hundreds + more}")
        if moved is None:
            return None
        year = int(moved[-4:])
        return f"{moved[:-5]}{match['gap']}{_write_spoken_year(year, match)}"

    def _move_days(self, match: re.Match[str]) -> str | None:
        """Move days of one month: "1-14 May", "3 and 17 May"."""
        first, last = (self._move_plain_text(match[day] + match["month"]) for day in ("first", "day"))
        if first is None or last is None:
            return None
        day, separator, month = first.partition(" ")
        return (day if month == last.partition(" ")[2] else day + separator + month) + match["dash"] + last

    def _move_quarter(self, match: re.Match[str]) -> str | None:
        """Move a quarter or a half of a year as its middle moves."""
        kind = match["before"] or match["behind"] or match["long"]
        number = match["n"] or match["n2"]
        size = 3 if kind[0] in "qQ" else 6
        n = int(number) if number else ORDINALS.index(match["word"].lower()) + 1
        if n > 12 // size:
            return None
        middle = int(match["y"] or match["short"]) * 12 + size * (n - 0.5) + self.days / 30.4375
        place = floor(middle / size)
        year, n = place * size // 12 + self.years, place % (12 // size) + 1
        parts = {"y": str(year)} if match["y"] else {"short": f"{year % 100:02}"}
        if number:
            parts["n" if match["n"] else "n2"] = str(n)
        else:
            parts["word"] = ORDINALS[n - 1].capitalize() if match["word"][0].isupper() else ORDINALS[n - 1]
        return _replace_groups(match, parts)

    def _move_season(self, match: re.Match[str]) -> str | None:
        name = find_calendar_name("season", match["name"], self.language)
        if name is None:
            return None
        place = 4 * int(match["y"] or 2001) + name.place + round(self.days / 91.3125)
        parts = {"name": write_calendar_name(place, name, match["name"])}
        return _replace_groups(match, parts | ({"y": str(place // 4 + self.years)} if match["y"] else {}))

    def _move_day_alone(self, match: re.Match[str]) -> str | None:
        try:
            old = date(self.usual_year, self.usual_month, int(match["d"]))
            day = (old + timedelta(days=self.days)).day
        except (OverflowError, ValueError):
            return None
        day = day if day != old.day else day % 28 + 1
        return _replace_groups(match, {"d": str(day), "ord": get_ordinal_suffix(day, match["ord"])})

    def _move_day_of_week(self, match: re.Match[str]) -> str | None:
        """Move a weekday with the day of its month: "Tues 20th"."""
        weekday, day = self.move_date_text(match["name"]), self.move_date_text(f"{match['d']}th")
        if weekday is None or day is None:
            return None
        number = day.rstrip("stndrh")
        return _replace_groups(
            match, {"name": weekday, "d": number} | ({"ord": day.removeprefix(number)} if match["ord"] else {})
        )

    def _move_rest(self, match: re.Match[str]) -> str | None:
        """Move the month behind a part of it: "the end of October", "mid-March 2019"."""
        rest = self.move_date_text(match["rest"])
        return rest and _replace_groups(match, {"rest": rest})

    def _move_before_rest(self, match: re.Match[str]) -> str | None:
        """Move a holiday or a weekday, and the date behind it: ``Christmas 2019``, ``first Friday of Lent``."""
        new, rest = self.move_date_text(match["name"]), self.move_date_text(match["rest"])
        return None if new is None or rest is None else _replace_groups(match, {"name": new, "rest": rest})

    def _move_weekday(self, match: re.Match[str]) -> str | None:
        name = find_calendar_name("weekday", match["name"], self.language)
        new = name and write_calendar_name(name.place + self.days, name, match["name"])
        return new and _replace_groups(match, {"name": new})


_FORMS: tuple[tuple[re.Pattern[str], Callable[[_Mover, re.Match[str]], str | None]], ...] = (
    (_YEARS, _Mover._move_years),
    (_SHORT_YEAR, _Mover._move_years),
    (_SPOKEN_YEAR, _Mover._move_spoken_year),
    (_WITH_SPOKEN_YEAR, _Mover._move_with_spoken_year),
    (_DAYS, _Mover._move_days),
    (_QUARTER, _Mover._move_quarter),
    (_SEASON, _Mover._move_season),
    (_PART_OF_MONTH, _Mover._move_rest),
    (_WEEKDAY, _Mover._move_weekday),
    (_DAY_OF_WEEK, _Mover._move_day_of_week),
    (_DAY_ALONE, _Mover._move_day_alone),
    (_HOLIDAY_OF, _Mover._move_before_rest),
    (_NTH_WEEKDAY, _Mover._move_before_rest),
)


def _write_spoken_year(year: int, model: re.Match[str]) -> str:
    """Write a year in words, with the hyphens and capitals of a year that was read."""
    old = model[0][model.end("gap") :]
    space = "-" if "-" in old else " "
    hundreds, rest = divmod(year, 100)
    if hundreds == 20 and (model["millennium"] or rest < 10):
        link = (model["and"] or "") if model["more"] else " and"
        words = "two thousand" + (f"{link} {write_number(rest, space)}" if rest else "")
    else:
        words = f"{write_number(hundreds, space)} "
        words += "hundred" if not rest else write_number(rest, space) if rest > 9 else f"oh {write_number(rest, space)}"
    return words.title() if old.istitle() else match_case(words, old)


def _move_holiday(text: str, days: int) -> str | None:
    """Return the holiday that is nearest to where another moves, of those known everywhere or in the same countries."""
    groups: dict[str, dict[str, int]] = read_toml()["holidays"]
    places = {name.casefold(): (place, group) for group, names in groups.items() for name, place in names.items()}
    if text.casefold() not in places:
        return None
    place, group = places[text.casefold()]
    goal = place + days
    pool = groups[group] if group == "seasons" else groups["everywhere"] | groups[group]
    others = {name: other for name, other in pool.items() if other != place}
    return match_case(min(others, key=lambda name: min((others[name] - goal) % 365, (goal - others[name]) % 365)), text)


def _replace_groups(match: re.Match[str], parts: Mapping[str, str]) -> str:
    """Return the text that matched, with other words in place of some named groups."""
    return splice_text(match.string, ((*match.span(name), parts[name]) for name in sorted(parts, key=match.start)))


def _read_age(text: str) -> int:
    number = read_number(text)
    assert number is not None  # the pattern has found it
    return number


def _move_age(text: str, years: int) -> str | None:
    """Return an age, or a range of ages, ``years`` units later; ages by decades stay; None where there is no number."""
    numbers = list(_NUMBER.finditer(text))
    if len(numbers) > 1 and _SPOKEN_YEAR.fullmatch(text):
        del numbers[0]  # the century
    if not numbers:
        return text if _DECADE.search(text) else None
    ages = [max(_read_age(m[0]) + years, 1) for m in numbers]
    out = splice_text(text, ((*m.span(), write_number(age, m[0])) for m, age in zip(numbers, ages, strict=True)))
    if out == text:
        return None
    if re.search(r"(?i) years? (?:old|of age)\b", out) and len(numbers) == 1:
        out = re.sub(r"(?i)( year)s?( (?:old|of age))", r"\1\2" if ages[-1] == 1 else r"\1s\2", out)
    match = _POLISH_YEARS.search(out)
    if match is not None and match[0] == _decline_polish_years(_read_age(numbers[-1][0])):
        out = splice_text(out, [(*match.span(), _decline_polish_years(ages[-1]))])
    return out


def _decline_polish_years(n: int) -> str:
    if n == 1:
        return "rok"
    return "lata" if n % 10 in (2, 3, 4) and n % 100 not in (12, 13, 14) else "lat"
