"""Dates without a year, such as 28/3, and ages without a word for years: what the text around a number tells.

Such a pair of numbers may as well be a score or a fraction. It counts where several entries of a record begin with one;
in a text that has dates with slashes also where it stands in a list or a range of dates, behind a word that takes a
date, or where one of its numbers can only be a day or begins with a zero. A number is an age where it is said of a
person: "Amira is 6 and", and none where it counts things or stands for everybody.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from allonym.detection.words import read_ordinary_words, read_word_list
from allonym.document import Interval, Reach, Span
from allonym.labels import Taxonomy
from allonym.text.dates import SHORT_DATE, find_date_order

SCORE = 0.6
_AGED = re.compile(
    r"(?:,? then| is|['’]s| was| turned| turns| will be)"
    r"(?: only| just| now| about| nearly| almost| still| already){0,2} "
    r"([1-9]\d?|1[01]\d)(?=[.,;!?)](?!\d)|\s*\Z|\s*\n| (?:and|but|now|next|today|tomorrow|this|in|so|years?|yrs?)\b)"
)
_OF_THING = re.compile(r"-(?!year|month|week|day)[a-z]")
_LIMIT = re.compile(r" (?:and|or) (?:over|older|above|younger|below)\b(?! the)")
_ANYBODY = re.compile(
    r"(?i)\b(?:people|persons|patients|adults|anyone|everyone|those|children|women|men|clients|pupils) \Z"
)
"""Whom a limit of age is about: "patients aged 18 and over"."""
_AVERAGE = re.compile(r"(?i)\b(?:mean|average|median)(?: age)?(?: of| is| was|:| =)? \Z")
_COUNTED_THINGS = re.compile(r" (?!year|month|week|day)([a-z]{3,}s)\b")
"""Things that are counted: "nineteen legs"."""
_RATIO = re.compile(r"\d{2}[/:]\Z")
_SLASHED = re.compile(r"[0-9]{1,2}/[0-9]{1,2}(?:/(?:[0-9]{4}|[0-9]{2}))?")
_LINK = re.compile(r" ?(?:,|;|-|–|and|or|to|until|till|&) ?(?:the |on )?| and | to |[ \t]{2,}|\t")
_LEAD = re.compile(
    r"(?i)\b(?:on|by|since|until|till|from|to|due|before|after|between|dated?|of|for|next|review(?:ed)?|seen|week of"
    r"|beginning|starting|ending)[:.]? (?:the )?\Z"
)
_ENTRY = re.compile(r"(?:^|\n)[ \t>*•-]*([0-9]{1,2}/[0-9]{1,2})(?=:?[ \t]+(?:[-–—][ \t]*)?[^\W\d_])")
_FRACTIONS = frozenset((16, 20, 24, 25, 30))  # bottoms of fractions and scores that may be days
_BOTTOMS = frozenset("2 3 4 5 6 8 10 12 16".split())  # of fractions of a measure
_NO_DATES = frozenset(("24/7", "9/11", "50/50"))


def find_short_dates(text: str, findings: Sequence[Span], taxonomy: Taxonomy) -> list[Span]:
    """Find the dates without a year that no finding covers, where there is a date with slashes or a record by dates."""
    dates = [span for span in findings if taxonomy.within(span.label, "DATE_TIME")]
    seeds = [span for span in dates if _SLASHED.fullmatch(text, span.start, span.end)]
    entries = _find_entries(text)
    if not seeds and not entries:
        return []
    order = find_date_order(text)
    matches = [m for m in SHORT_DATE.finditer(text) if m[0] not in _NO_DATES and _is_date(m, order)]
    covered = Reach((span.start, span.end) for span in findings)
    places = sorted({*(m.span() for m in matches), *((s.start, s.end) for s in seeds)})
    linked = _find_linked(text, places)
    tops = {m[2] for m in matches if int(m[1]) > int(m[2])}  # what more is counted of is no best score
    out = []
    for match in matches:
        if covered.touches(*match.span()) or (match[2] in ("5", "10") and match[2] not in tops):
            continue
        lead = _LEAD.search(text, max(0, match.start() - 24), match.start())
        is_sure = lead or match.start() in linked or _can_only_be_day(match) or "0" in (match[1][0], match[2][0])
        if match.start() in entries or (seeds and is_sure):
            out.append(Span(*match.span(), "DATE", SCORE, "dates:without-year"))
    return out


def _find_entries(text: str) -> set[int]:
    """Find the starts of the pairs that open the entries of a record; a list of ingredients has fractions alone."""
    entries = list(_ENTRY.finditer(text))
    pairs = [entry[1].split("/") for entry in entries]
    are_fractions = all(int(top) < int(bottom) and bottom in _BOTTOMS and top[0] != "0" for top, bottom in pairs)
    return set() if len(entries) < 2 or are_fractions else {entry.start(1) for entry in entries}


def find_ages_of_people(text: str, findings: Sequence[Span], taxonomy: Taxonomy) -> list[Span]:
    """Find the ages that are said of a found person: "Amira is 6 and has asthma", where no finding covers them."""
    covered = Reach((span.start, span.end) for span in findings)
    ages = (_AGED.match(text, span.end) for span in findings if taxonomy.within(span.label, "PERSON"))
    return [
        Span(*age.span(1), "AGE", SCORE, "ages:of-person") for age in ages if age and not covered.touches(*age.span(1))
    ]


def is_nobodys_age(text: str, start: int, end: int) -> bool:
    """Whether a number of years or months is of a thing, a limit, an average or a ratio, or is a count of things."""
    surface, counted = text[start:end].lower(), _COUNTED_THINGS.match(text, end)
    return bool(
        (surface.endswith("-year") and not text.startswith("-old", end))  # "nine-year feud"
        or _OF_THING.match(text, end)
        or (_LIMIT.match(text, end) and _ANYBODY.search(text, max(0, start - 20), start))
        or _RATIO.search(text, max(0, start - 4), start)
        or _AVERAGE.search(text, max(0, start - 20), start)
        or (counted and _is_counted(counted[1]))
    )


def _is_counted(word: str) -> bool:
    return word[:-1] in read_ordinary_words() and word not in read_word_list("function_words")


def _is_date(match: re.Match[str], order: str) -> bool:
    first, second = int(match[1]), int(match[2])
    readings = {"dmy": (first, second), "mdy": (second, first)}
    pairs = [readings[order]] if order else list(readings.values())
    return any(1 <= day <= 31 and 1 <= month <= 12 for day, month in pairs)


def _can_only_be_day(match: re.Match[str]) -> bool:
    first, second = int(match[1]), int(match[2])
    return max(first, second) > 12 and (first > second or second not in _FRACTIONS)


def _find_linked(text: str, places: Sequence[Interval]) -> set[int]:
    """Find the starts of those that a comma, a dash or a word links to another, unless all share their bottom."""
    groups: list[list[Interval]] = []
    for place in places:
        if groups and _LINK.fullmatch(text, groups[-1][-1][1], place[0]):
            groups[-1].append(place)
        else:
            groups.append([place])
    linked: set[int] = set()
    for members in groups:
        pairs = [text[start:end].split("/") for start, end in members]
        are_dates = len({pair[1] for pair in pairs}) > 1 or any(len(pair) > 2 or int(pair[0]) > 12 for pair in pairs)
        if len(members) > 1 and are_dates:
            linked.update(start for start, _ in members)
    return linked
