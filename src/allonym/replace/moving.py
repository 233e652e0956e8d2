"""Pseudonyms of dates and ages: one keyed shift for all dates of a document, or of all documents of a subject.

- Full dates move by the same number of days, so that intervals between them stay to the day; format, granularity and
  language stay. A year alone moves by the shift in whole years, a quarter, half or season as its middle does, so that
  each may stay where it is. A month moves by at least one month. Decades and centuries stay.
- A weekday alone moves along, unless whole weeks are moved. Times of day, durations and what is told from today
  ("last Tuesday", "yesterday", "gestern") stay: they say nothing without the date.
- An age moves by one or two years, the same for all ages, and dates of birth by as many years more than other dates,
  so that an age still is what date and date of birth tell. No age becomes less than one year.
- Holidays, days of an unnamed month and whatever else cannot be read become tags, and so does what holds a word that
  is in no list of :mod:`allonym.replace.staying`: it may be a name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from math import floor
from typing import cast as typed

from allonym.replace.apart import outside
from allonym.replace.calendars import named, words, written
from allonym.replace.cast import Cast, Renderer
from allonym.replace.cast import words as words_of
from allonym.replace.dates import LONGEST, month_moved, moved, read_date, shift, years
from allonym.replace.mention import Wanted
from allonym.replace.staying import is_age, is_time, only_time

MOST_YEARS = 2
"""The most years that an age moves either way."""

_LEAD = re.compile(r"(?i)(?:the|on|in|im|am|vom|den|dem|od|do|dnia|we?|since|until|by)\s+")
_YEAR = r"(?:1[5-9]|2[01])[0-9]{2}"
_OF_YEAR = rf"(?:(?P<y>{_YEAR})|['’]?(?P<short>[0-9]{{2}}))(?:\s?(?:roku|r\.?))?"
_NAMED_YEAR = r"(?:(?:fiscal|calendar|tax|academic)\s+)?(?:years?|jahre?|roku?)|fiscal|[fc]y"
_PART_OF_YEAR = "early|late|mid|anfang|mitte|ende|początku?|końcu|(?:the\\s+)?(?:end|beginning|middle|start)\\s+of"
_YEARS = re.compile(
    rf"(?i)(?:(?:{_NAMED_YEAR}|{_PART_OF_YEAR})[\s-]*)*(?P<y>{_YEAR})"
    rf"(?:\s?[-–—/]\s?(?P<to>{_YEAR}|[0-9]{{2}}))?(?:\s?(?:roku|r\.?))?"
)
_SHORT_YEAR = re.compile(rf"(?i)(?:{_NAMED_YEAR})\s*['’]?(?P<short>[0-9]{{2}})")
_QUARTER = re.compile(
    r"(?i)(?:(?P<before>[qh])(?P<n>[1-4])|(?P<n2>[1-4])(?P<behind>[qh])|(?P<said>first|second|third|fourth)"
    rf"[ -](?P<long>quarter|half))(?:[\s/-]*(?:of\s+)?(?:fiscal\s+)?(?:year\s+)?){_OF_YEAR}"
)
_SEASON = re.compile(rf"(?i)(?P<name>{words('season')})(?:,?\s+(?:of\s+)?(?P<y>{_YEAR})(?:\s?(?:roku|r\.?))?)?")
_WEEKDAY = re.compile(rf"(?i)(?:(?:every|each|jeden|każd[yą])\s+)?(?P<name>{words('weekday')})\.?")
_CLOCK = re.compile(
    r"(?i)[0-9]{1,2}(?:[:.h][0-9]{2}){0,2}(?:[.,][0-9]+)?\s?(?:[ap]\.?m\.?|uhr|h|hrs?|o['’]clock|(?<=:[0-9]{2}))"
    r"(?:\s?[a-z]{1,4})?|noon|midnight|mittags?|mitternacht|północ|południe"
)
_DECADES = re.compile(  # as coarse as ten years
    r"(?i)(?:the\s+)?(?:(?:early|late|mid)[ -])?(?:[0-9]{3}0['’]?s|['’]?[0-9]0s|(?:nineteen\s+)?(?:twenties|thirties"
    r"|forties|fifties|sixties|seventies|eighties|nineties)|(?:[^\W\d]+|[0-9]{1,2}(?:st|nd|rd|th))\s+century)"
)
_UNTOLD = re.compile(  # what says nothing without another date
    r"(?i)(?:daily|weekly|monthly|yearly|annually|weekends?)"
    r"|(?:(?:the|every|each|all)\s+)?(?:day|night|morning|afternoon|evening|week|month|quarter|year|weekend)s?"
    r"|.*\b(?:ago|today|tonight|tomorrow|yesterday|now|last|next|this|previous|following|past|coming|same|earlier"
    r"|later|recently|currently|nowadays|heute|gestern|morgen|vorgestern|übermorgen|vor|letzte[nrsm]?|nächste[nrsm]?"
    r"|diese[nrsm]?|kommende[nrsm]?|vergangene[nrsm]?|dzisiaj|dziś|wczoraj|jutro|przedwczoraj|pojutrze|temu|zeszł\w+"
    r"|ubiegł\w+|przyszł\w+|następn\w+|t(?:en|ym|ej|ego)|hier|aujourd'hui|demain|hoy|ayer|mañana)\b.*"
)
_TOLD = re.compile(rf"(?i){_YEAR}|[0-9][./-][0-9]|[0-9].*\b(?:{words('month')})\b|\b(?:{words('month')})\b.*[0-9]")
_BETWEEN = re.compile(r"(?i)\s+(?:to|until|till|through|and|or|bis|und|do|i|oraz|au|al?)\s+|\s[-–—]\s")
_ORDINALS = ("first", "second", "third", "fourth")

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_NUMBER = re.compile(
    rf"(?i)(?<![0-9.,/])[0-9]{{1,3}}(?![0-9/]|['’]?s\b)"
    rf"|\b(?:(?:{'|'.join(_TENS)})(?:[- ](?:{'|'.join(_ONES[1:10])}))?|{'|'.join(_ONES[1:])})\b"
)
_SMALL_UNIT = re.compile(r"(?i)\b(?:months?|weeks?|days?|monate?n?|wochen?|tagen?|miesi\w+|tygodni\w*|dni)\b")
_DECADE = re.compile(
    r"(?i)\b(?:twenties|thirties|forties|fifties|sixties|seventies|eighties|nineties|teens?|[1-9]0['’]?s)\b"
)
_POLISH_YEARS = re.compile(r"\b(?:rok|lata|lat)\b")


def recast(cast: Cast, wanted: Sequence[Wanted]) -> dict[str, Renderer]:
    """Substitutes for dates, times and ages.

    Args:
        cast: of the document.
        wanted: entities in reading order; those of other families are passed over.

    Returns:
        Entity key to what renders its surfaces. What stays is rendered as it is.

    Raises:
        DataError: the policy names a subject, and the document does not say whose it is.
    """
    policy = cast.setting.policy
    out: dict[str, Renderer] = {}
    ages = [one for one in wanted if "AGE" in policy.taxonomy.lineage(one.entity.label)]
    older = age_shift(cast, [text for one in ages for text in one.surfaces])
    for one in wanted:
        lineage = policy.taxonomy.lineage(one.entity.label)
        if "AGE" in lineage:
            out[one.entity.key] = partial(_if, is_age, lambda text: _age(text, older))
        elif "TIME" in lineage or "DURATION" in lineage:
            out[one.entity.key] = _as_it_is
        elif lineage[-1] == "DATE_TIME":
            dated = _dated(cast, one, -older if "DATE_OF_BIRTH" in lineage else 0)
            out[one.entity.key] = partial(_if, only_time, dated)
    return out


def age_shift(cast: Cast, ages: Sequence[str]) -> int:
    """The years by which the document's ages move: -2 to 2, never 0, upward where an age would fall below one.

    Where no subject's documents must agree, another number of years is taken if an age in words would become a word
    that stands in the document.
    """
    out = years(cast.setting, cast.setting.policy.subject, MOST_YEARS)
    found = [m[0] for text in ages if not _SMALL_UNIT.search(text) for m in _NUMBER.finditer(text)]
    numbers = [_value(text) for text in found]
    said = [_value(text) for text in found if not text.isdigit()]
    some = [out] if cast.setting.policy.subject else [out, -out, *(n * out // abs(out) for n in (1, -1, 2, -2))]
    some = [n for n in some if all(number + n >= 1 for number in numbers)] or [abs(out)]
    if said and len(some) > 1:
        there = set(words_of(outside(cast.setting)))
        return next((n for n in some if not any(there.issuperset(_said(v + n, "x").split("-")) for v in said)), some[0])
    return some[0]


def _if(known: Callable[[str], bool], render: Renderer, text: str) -> str | None:
    """What is rendered, where it keeps no word that may be somebody's name."""
    out = render(text)
    return out if out is not None and known(out) else None


def _as_it_is(text: str) -> str | None:
    return text if is_time(text) else None


def _dated(cast: Cast, one: Wanted, more: int) -> Renderer:
    policy = cast.setting.policy
    most, weeks = one.options.get("max_days", 365), one.options.get("keep_weekday", False)
    days = shift(cast.setting, typed(int, most), policy.subject, typed(bool, weeks))
    order = str(one.options.get("order", "mdy")) if policy.language == "en" else "dmy"

    def render(text: str) -> str | None:
        lead = _LEAD.match(text)
        for head in (lead[0], "") if lead else ("",):
            out = _date(text[len(head) :], days, more, order, policy.language)
            if out is not None:
                return head + out
        return None

    return render


def _date(text: str, days: int, more: int, order: str, language: str) -> str | None:
    """A date, moved; None where it cannot be read."""
    if len(text) > LONGEST:
        return None
    whole = round(days / 365.25) + more
    for form in (_YEARS, _SHORT_YEAR):
        if (match := form.fullmatch(text)) is not None:
            return _years(match, whole)
    if (match := _QUARTER.fullmatch(text)) is not None:
        return _quarter(match, days, more)
    if (match := _SEASON.fullmatch(text)) is not None:
        return _season(match, days, more, language)
    if (match := _WEEKDAY.fullmatch(text)) is not None:
        name = named("weekday", match["name"], language)
        return _put(match, name=written(match["name"], name, name.place + days)) if name else None
    found = read_date(text, "dmy" if re.match(r"[0-9]{1,2}\.", text) else order, language)
    if found is not None and found.month is not None:
        alone = found.year is None and found.day is None
        return month_moved(found, days) if alone else moved(found, days, more)
    if _CLOCK.fullmatch(text) or _DECADES.fullmatch(text) or (_UNTOLD.fullmatch(text) and not _TOLD.search(text)):
        return text
    return _several(text, days, more, order, language)


def _several(text: str, days: int, more: int, order: str, language: str) -> str | None:
    """Two dates with ``to``, ``and`` or a dash between; None where one of them cannot be read."""
    match = _BETWEEN.search(text)
    if match is None:
        return None
    first = _date(text[: match.start()], days, more, order, language)
    second = _date(text[match.end() :], days, more, order, language)
    return f"{first}{match[0]}{second}" if first is not None and second is not None else None


def _put(match: re.Match[str], **parts: str) -> str:
    """The text that matched, with other parts in place of some named groups."""
    out, at = "", 0
    for name in sorted(parts, key=match.start):
        out += match.string[at : match.start(name)] + parts[name]
        at = match.end(name)
    return out + match.string[at:]


def _years(match: re.Match[str], whole: int) -> str:
    named_groups = match.groupdict()
    parts = {}
    if named_groups.get("short"):
        parts["short"] = f"{(int(match['short']) + whole) % 100:02}"
    else:
        parts["y"] = str(int(match["y"]) + whole)
    if last := named_groups.get("to"):
        parts["to"] = str(int(last) + whole) if len(last) == 4 else f"{(int(last) + whole) % 100:02}"
    return _put(match, **parts)


def _quarter(match: re.Match[str], days: int, more: int) -> str | None:
    kind = match["before"] or match["behind"] or match["long"]
    number = match["n"] or match["n2"]
    size = 3 if kind[0] in "qQ" else 6
    n = int(number) if number else _ORDINALS.index(match["said"].lower()) + 1
    if n > 12 // size:
        return None
    year = int(match["y"] or match["short"])
    middle = year * 12 + size * (n - 0.5) + days / 30.4375
    place = floor(middle / size)
    year, n = place * size // 12 + more, place % (12 // size) + 1
    parts = {"y": str(year)} if match["y"] else {"short": f"{year % 100:02}"}
    if number:
        parts["n" if match["n"] else "n2"] = str(n)
    else:
        said = _ORDINALS[n - 1]
        parts["said"] = said.capitalize() if match["said"][0].isupper() else said
    return _put(match, **parts)


def _season(match: re.Match[str], days: int, more: int, language: str) -> str | None:
    name = named("season", match["name"], language)
    if name is None:
        return None
    place = 4 * int(match["y"] or 2001) + name.place + round(days / 91.3125)
    parts = {"name": written(match["name"], name, place)}
    if match["y"]:
        parts["y"] = str(place // 4 + more)
    return _put(match, **parts)


def _value(text: str) -> int:
    if text.isdigit():
        return int(text)
    ten, _, one = text.lower().replace("-", " ").partition(" ")
    if ten in _ONES:
        return _ONES.index(ten)
    return 20 + 10 * _TENS.index(ten) + (_ONES.index(one) if one else 0)


def _said(value: int, was: str) -> str:
    if was.isdigit() or value > 99:
        return str(value)
    joint = " " if " " in was else "-"
    if value < 20:
        out = _ONES[value]
    else:
        out = _TENS[value // 10 - 2] + (joint + _ONES[value % 10] if value % 10 else "")
    return out.upper() if was.isupper() else out.capitalize() if was[0].isupper() else out


def _age(text: str, older: int) -> str | None:
    """An age, or a range of ages, ``older`` units later; ages by decades stay; None where there is no number."""
    numbers = list(_NUMBER.finditer(text))
    if not numbers:
        return text if _DECADE.search(text) else None
    out, at = "", 0
    was = new = 0
    for match in numbers:
        was = _value(match[0])
        new = max(was + older, 1)
        out += text[at : match.start()] + _said(new, match[0])
        at = match.end()
    out += text[at:]
    if out == text:
        return None
    if re.search(r"(?i) years? (?:old|of age)\b", out) and len(numbers) == 1:
        out = re.sub(r"(?i)( year)s?( (?:old|of age))", r"\1\2" if new == 1 else r"\1s\2", out)
    if (found := _POLISH_YEARS.search(out)) is not None and found[0] == _polish_years(was):
        out = out[: found.start()] + _polish_years(new) + out[found.end() :]
    return out


def _polish_years(n: int) -> str:
    if n == 1:
        return "rok"
    return "lata" if n % 10 in (2, 3, 4) and n % 100 not in (12, 13, 14) else "lat"
