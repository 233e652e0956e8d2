"""Words that may stay in the pseudonym of a time, an age or a form of address: those of a list, and no others.

A detector may mark more than a time: ``the year connor died``, ``sarah's 40th birthday``. A word that is in no list
here may be somebody's name, so that a tag must replace all of it.
"""

from __future__ import annotations

import re
from functools import cache

from allonym.replace import naming
from allonym.replace.calendars import join_calendar_names
from allonym.replace.tables import read_toml, read_word_set
from allonym.text.names import normalize_surface
from allonym.text.words import LETTERS

_DIGITS = re.compile(r"\d+")
_YEAR_DIGITS, _AGE_DIGITS, _MOST_DIGITS = 4, 3, 12
_FILE = "permitted_words.toml"


def _find_words(text: str) -> list[str]:
    return LETTERS.findall(normalize_surface(text))


@cache
def _list_time_words() -> frozenset[str]:
    calendar = {w for kind in ("month", "weekday", "season") for w in _find_words(join_calendar_names(kind))}
    signs = read_toml(_FILE)["signs"]
    return frozenset({*read_word_set("words", file=_FILE), *read_word_set("times", file=_FILE), *calendar, *signs})


def has_only_time_words(text: str) -> bool:
    """Whether all words of a text are those of times, dates and durations."""
    permitted = _list_time_words()
    return all(w in permitted or (not w.isascii() and permitted.issuperset(w)) for w in _find_words(text))


def is_permitted_time(text: str) -> bool:
    """Whether a text may stay as it is: only words of times, and numbers as short as those of times."""
    sizes = [len(run) for run in _DIGITS.findall(text)]
    return has_only_time_words(text) and max(sizes, default=0) <= _YEAR_DIGITS and sum(sizes) <= _MOST_DIGITS


def is_permitted_age(text: str) -> bool:
    """Whether all words of a text are those of ages, and its numbers have no more than three digits."""
    permitted = read_word_set("words", file=_FILE) | read_word_set(
        "ages", file=_FILE
    )  # an age names no month, but may name June
    return permitted.issuperset(_find_words(text)) and all(len(run) <= _AGE_DIGITS for run in _DIGITS.findall(text))


@cache
def _list_title_words() -> frozenset[str]:
    lists = naming.load_tables()
    joining = ("and", "und", "et", "y", "e", "i", "of")
    titles = (*lists.titles, *lists.suffixes, *lists.degrees, *lists.joined)
    return frozenset((*titles, *joining, *read_word_set("titles", file=_FILE)))


def is_permitted_title(text: str) -> bool:
    """Whether a text consists of forms of address, offices, degrees and what may stand behind a name."""
    parts = [w for w in re.split(r"[\s,/&\-]+", re.sub(r"[.'’]", "", normalize_surface(text))) if w]
    return bool(parts) and _list_title_words().issuperset(parts)
