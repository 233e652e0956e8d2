"""Which words may stay in what takes the place of a time, an age or a form of address: known ones, and no others.

A detector may mark more than a time: ``the year connor died``, ``sarah's 40th birthday``. A word that is in no list
here may be somebody's name, so that a tag has to take the place of all of it.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Literal

from allonym.replace.calendars import words
from allonym.replace.naming import tables
from allonym.text.names import plain
from allonym.text.words import LETTERS

_RUN = re.compile(r"\d+")
_YEAR_DIGITS, _AGE_DIGITS, _MOST_DIGITS = 4, 3, 12


@cache
def _lists() -> dict[str, str]:
    return tomllib.loads(Path(__file__).with_name("staying.toml").read_text(encoding="utf-8"))


@cache
def _known(kind: Literal["times", "ages"]) -> frozenset[str]:
    lists = _lists()
    out = set(lists["words"].split()) | set(lists[kind].split())
    if kind == "times":  # an age names no month, but may name June
        out |= {w for calendar in ("month", "weekday", "season") for w in _words(words(calendar))}
        out |= set(lists["signs"])
    return frozenset(out)


def _words(text: str) -> list[str]:
    return LETTERS.findall(plain(text))


def only_time(text: str) -> bool:
    """Whether all words of a text are those of times, dates and durations."""
    known = _known("times")
    return all(w in known or (not w.isascii() and known.issuperset(w)) for w in _words(text))


def is_time(text: str) -> bool:
    """The same for one that is to stay as it is: its numbers must be as short as those of times, too."""
    runs = _RUN.findall(text)
    return only_time(text) and max(map(len, runs), default=0) <= _YEAR_DIGITS and sum(map(len, runs)) <= _MOST_DIGITS


def is_age(text: str) -> bool:
    """Whether all words of a text are those of ages, and its numbers have no more than three digits."""
    known = _known("ages")
    return all(w in known for w in _words(text)) and all(len(run) <= _AGE_DIGITS for run in _RUN.findall(text))


@cache
def _titles() -> frozenset[str]:
    known = tables()
    joining = ("and", "und", "et", "y", "e", "i", "of")
    return frozenset(
        (*known.titles, *known.suffixes, *known.degrees, *known.joined, *joining, *_lists()["titles"].split())
    )


def is_title(text: str) -> bool:
    """Whether a text consists of forms of address, offices, degrees and what may stand behind a name."""
    found = [w for w in re.split(r"[\s,/&\-]+", re.sub(r"[.'’]", "", plain(text))) if w]
    return bool(found) and _titles().issuperset(found)
