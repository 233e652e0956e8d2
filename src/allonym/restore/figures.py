"""Find numbers, codes and dates that were reformatted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from allonym.replace.calendars import find_calendar_name
from allonym.replace.dates import LONGEST, read_date
from allonym.restore import fit, gaps
from allonym.restore.forms import Form
from allonym.restore.hits import Hit

if TYPE_CHECKING:
    from allonym.restore.scan import Scan

_IN_CODES = frozenset(" -./()\u00a0\u2009\u202f–‑,'’+\n")
_IN_DATES = re.compile(r"[\s\-/.,–:ºª'’]{0,5}\Z")
_DATE_WORDS = 12


def may_begin_code(scan: Scan, word: str) -> bool:
    if not scan.index.codes:
        return False
    return scan.index.is_code_prefix(word.upper()) or bool(scan.index.nationals and word[0].isdigit())


def is_code_ahead(scan: Scan, word_index: int) -> bool:
    """Tell whether the first six letters and digits from word ``word_index`` on may begin a code."""
    word = scan.words[word_index]
    if word.startswith("00") or scan.text[scan.starts[word_index] - 1 : scan.starts[word_index]] == "+":
        return True
    code = word
    while len(code) < 6:
        word_index += 1
        if word_index >= scan.count or len(scan.gaps[word_index]) > 3:
            break
        code += scan.words[word_index]
    return word_index >= scan.count or scan.index.is_code_prefix(code.upper())


def find_codes(scan: Scan, word_index: int) -> Iterator[Hit]:
    """Yield numbers and codes whose digits are grouped differently."""
    index, text = scan.index, scan.text
    code = ""
    foreign = bool(index.nationals) and (
        text[scan.starts[word_index] - 1 : scan.starts[word_index]] == "+" or scan.words[word_index].startswith("00")
    )
    for j in range(word_index, word_index + 12):
        if j >= scan.count:
            scan.short = scan.short or len(code) <= index.longest_code
            return
        if j > word_index and (len(scan.gaps[j]) > 3 or not set(scan.gaps[j]) <= _IN_CODES):
            return
        word = scan.words[j]
        code += word.upper()
        if len(code) > index.longest_code + 5 or not word.isascii():
            return
        if not (foreign or index.is_code_prefix(code)):
            return
        start, end = scan.starts[word_index], scan.ends[j]
        candidates, short = index.codes.get(code), False
        if not candidates and index.nationals:
            candidates, short = find_phone_numbers(scan, start, code), True
        if not candidates:
            continue
        opened = text[start - 1 : start]
        if opened == "(" and ")" in text[start:end] and not short:
            start -= 1
        if opened == "+" and (short or candidates[0].text.startswith("+")):
            start -= 1
        if not gaps.is_separate_number(text, start, end):
            continue
        if not scan.final and end + 4 > len(text):
            scan.short = True
        for form in candidates:
            if form.target is None:
                yield Hit(start, end, j + 1, form, ["number format"], [], text[start:end])
                continue
            out = regroup_digits(text[start:end], form, short)
            if out is not None:
                yield Hit(start, end, j + 1, form, ["number format"], [], text[start:end], out)


def find_phone_numbers(scan: Scan, start: int, code: str) -> list[Form] | None:
    """Return the telephone numbers that these digits may be, with or without a calling code."""
    if not code.isdigit():
        return None
    sign = "+" if scan.text[start - 1 : start] == "+" else ""
    return scan.index.nationals.get(fit.strip_calling_code(sign + code))


def regroup_digits(surface: str, form: Form, short: bool) -> str | None:
    """Write the original in the groups of ``surface``, or unchanged if the numbers of digits differ."""
    target = form.target
    assert target is not None
    if short:
        form_digits, other = fit.strip_calling_code(form.text), fit.strip_calling_code(target)
        return fit.fill_digits(surface, other, len(form_digits)) if len(form_digits) == len(other) else target
    form_digits, other = fit.extract_code_characters(form.text), fit.extract_code_characters(target)
    if surface.split() == form.text.split():
        return target
    if len(form_digits) != len(other):
        return target
    return fit.fill_digits(surface, target, len(form_digits))


def find_dates(scan: Scan, word_index: int) -> Iterator[Hit]:
    """Yield dates in another format."""
    word = scan.words[word_index]
    if not may_begin_date(word):
        return
    text, start = scan.text, scan.starts[word_index]
    ends = []
    for j in range(word_index, word_index + _DATE_WORDS):
        if j >= scan.count:
            scan.short = True
            break
        if j > word_index and not _IN_DATES.match(scan.gaps[j]):
            break
        if scan.ends[j] - start > LONGEST or not (scan.words[j][0].isdigit() or is_date_word(scan.words[j])):
            break
        ends.append(j)
    for j in reversed(ends):
        surface = text[start : scan.ends[j]]
        date_forms = find_same_dates(scan, surface)
        if not date_forms:
            continue
        if not gaps.is_separate_number(text, start, scan.ends[j]):
            return
        for form, out in date_forms:
            yield Hit(start, scan.ends[j], j + 1, form, ["date format"], [], surface, out)
        return


def find_same_dates(scan: Scan, surface: str) -> list[tuple[Form, str | None]]:
    """Return the replacements with the date of ``surface``, and their originals in its format."""
    out: list[tuple[Form, str | None]] = []
    tried: set[tuple[int | None, int | None, int | None]] = set()
    for order in ("mdy", "dmy"):
        date = read_date(surface, order)
        if date is None or date.month is None or (date.year, date.month, date.day) in tried:
            continue
        tried.add((date.year, date.month, date.day))
        for form in scan.index.dates.get((date.year, date.month, date.day), ()):
            if form.target is not None:
                original_date = fit.format_like(date, form.target)
                out.append((form, form.target if original_date is None else original_date))
    return out


def may_begin_date(word: str) -> bool:
    return (word[0].isdigit() and len(word) <= 8) or is_date_word(word)


def is_date_word(word: str) -> bool:
    if len(word) < 3:
        return word.lower() in ("de", "of")
    return find_calendar_name("month", word) is not None or find_calendar_name("weekday", word) is not None
