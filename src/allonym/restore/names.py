"""Check names and other words that occur in another form."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from allonym.restore import fit, gaps
from allonym.restore.forms import ADDRESS, CLOSING, OPENING, PERSON, Form, split_words_and_gaps
from allonym.restore.hits import Hit
from allonym.restore.words import Ending, common_words
from allonym.text.fold import Level, fold

_BEFORE, _AFTER = 300, 40
_SENTENCE = re.compile(r"[.!?\n]")

if TYPE_CHECKING:
    from allonym.restore.scan import Scan


def find_name_hit(
    scan: Scan,
    form: Form,
    start: int,
    end: int,
    last: int,
    rules: list[str],
    endings: list[Ending | None],
) -> Hit | None:
    text = scan.text
    low, high = _include_name_signs(text, start, end, form)
    if not scan.final and high == end and form.tail and form.tail.startswith(text[end:]):
        scan.short = True
    lost = (form.head and low == start) or (form.tail and high == end)
    if lost and form.rule == "initials" and form.tail == ".":
        return None
    start, end = low, high
    if lost:
        rules = [*rules, "signs"]
    surface = text[start:end]
    plainly = not rules and surface == form.text
    if not scan.final and end + 4 > len(text):
        scan.short = True
    first, final = surface[0], surface[-1]
    if not first.isalnum() and first not in OPENING and text[start - 1 : start] == first:
        return None
    if not final.isalnum() and final not in CLOSING and text[end : end + 1] == final and final != ".":
        return None
    if not gaps.is_separate_name(text, start, end, plainly and not form.rule):
        return None
    if form.kind == ADDRESS and not gaps.is_separate_address(text, start, end):
        return None
    if plainly:
        return weigh_hit(Hit(start, end, last, form, rules, endings, surface))
    words = form.words if surface == form.text else split_words_and_gaps(surface)[1::2]
    if not any(endings) and not any(r in ("typo", "spacing", "hyphenation", "diacritics") for r in rules):
        same = words == form.words or [fold(w, Level.CASE) for w in words] == [fold(w, Level.CASE) for w in form.words]
        if not same and len(words) == len(form.words):
            rules = [*rules, "diacritics"]
    if fit.get_letter_case(surface) != fit.get_letter_case(form.text) and surface.lower() != surface.upper():
        was, now = fit.get_letter_case(form.text), fit.get_letter_case(surface)
        if now in ("upper", "lower") or (now and was in ("upper", "lower")):
            rules = [*rules, "case"]
    if not rules and surface != form.text:
        rules = ["case" if surface.casefold() == form.text.casefold() else "diacritics"]
    hit = weigh_hit(Hit(start, end, last, form, rules, endings, surface))
    if hit is None or not hit.sure or len(form.keys) > 1 or surface[:1] == surface[:1].upper():
        return hit
    if form.rule or not form.text[:1].isupper() or not surface.islower():
        return hit
    if not scan.final and end + _AFTER > len(text):
        scan.short = True
    # A lower-case word within a sentence is hardly a name, unless the whole sentence is in lower case.
    hit.sure = _has_no_nearby_capitals(text, start, end)
    return hit if hit.sure or "typo" not in rules else None


def _has_no_nearby_capitals(text: str, start: int, end: int) -> bool:
    """Tell whether the nearby part of the sentence has no capital letter."""
    before = _SENTENCE.split(text[max(0, start - _BEFORE) : start])[-1]
    after = _SENTENCE.split(text[end : end + _AFTER], maxsplit=1)[0]
    return (before + after).islower() or not any(map(str.isalpha, before + after))


def weigh_hit(hit: Hit) -> Hit | None:
    """Set whether a hit is sure; return None if it is too unlikely."""
    hit.sure = is_certain(hit.form, hit.surface, hit.rules)
    if hit.sure or (not hit.form.rule and not {"typo", "inflected", "plural"} & set(hit.rules)):
        hit.sure = hit.sure and not hit.form.ordinary
        return hit
    return None


def is_certain(form: Form, surface: str, rules: list[str]) -> bool:
    """Tell whether the surface is almost certainly the replacement in another form."""
    keys = form.keys
    single = len(keys) == 1
    if not rules:
        return not single or len(keys[0]) > 1 or not keys[0].isalpha()
    common = common_words()
    if "typo" in rules:
        if single and len(keys[0]) < 5:
            return False
        slipped = [w for w in split_words_and_gaps(surface)[1::2] if fold(w) in common]
        if any(fold(w) not in keys for w in slipped) and (single or surface.islower() or len(rules) > 1):
            return False
    if form.rule == "initials":
        capital = split_words_and_gaps(surface)[1::2]
        if any(len(w) == 1 and not w.isupper() for w in capital):
            return False
        if "." not in surface and any(len(w) == 1 and fold(w) in common for w in capital):
            return False
        if all(len(w) == 1 for w in capital):
            return surface == form.text or surface.replace(" ", "") == form.text
    if form.rule == "acronym":
        return surface == form.text
    if form.rule == "shortened" and single:
        if fold(surface) in common or len(keys[0]) < 3:
            return False
        if form.kind != PERSON and "typo" in rules:
            return False
    if not single:
        return not ("case" in rules and surface.islower() and all(k in common for k in keys))
    word = keys[0]
    if word.isdigit():
        return False
    if "typo" in rules:
        return (len(word) >= 5 and surface[0].isupper() == form.text[:1].isupper()) or len(word) >= 7
    if "inflected" in rules and surface.islower() and not form.text.islower():
        return False
    if "case" in rules and surface.islower():
        return len(word) >= 4 and word not in common
    if "case" in rules and form.text.islower():
        return True
    if "case" in rules:
        return word not in common and len(word) >= 3
    if "inflected" in rules or "plural" in rules:
        return (len(word) >= 4 and word not in common) or (surface[0].isupper() and len(word) >= 3)
    return True


def _include_name_signs(text: str, start: int, end: int, form: Form) -> tuple[int, int]:
    """Return the span of a name including the signs around its words, if they are there; spaces may differ."""
    if form.head:
        low = start
        for sign in reversed(form.head.split()):
            stripped = len(text[max(0, low - 8) : low].rstrip())
            low = max(0, low - 8) + stripped
            if not text.endswith(sign, 0, low):
                low = start
                break
            low -= len(sign)
        start = low
    if form.tail:
        high = end
        for sign in form.tail.split():
            high += len(text[high : high + 8]) - len(text[high : high + 8].lstrip())
            if not text.startswith(sign, high):
                high = end
                break
            high += len(sign)
        end = high
    return start, end
