"""Find numbers, codes and dates that were reformatted, and encrypted mentions, also with breaks inside."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from allonym.document import Interval
from allonym.replace.dates import LONGEST as LONGEST_DATE
from allonym.replace.dates import read_date
from allonym.replace.operators import TOKEN, decrypt_token
from allonym.replace.tables import find_calendar_name
from allonym.restoration import fit, gaps
from allonym.restoration.forms import Form
from allonym.restoration.hits import Hit, Match
from allonym.restoration.view import escape_like

if TYPE_CHECKING:
    from allonym.restoration.scan import Scan

_IN_CODES = frozenset(" -./()\u00a0\u2009\u202f–‑,'’+\n")
_IN_DATES = re.compile(r"[\s\-/.,–:ºª'’]{0,5}\Z")
_DATE_WORDS = 12

LONGEST = 2**16
_BASE32 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz234567")
_MARK = re.compile(r"\s{0,3}:\s{0,3}[eE]1\s{0,3}:\s{0,3}")
_UNIT = 16
_TRIES = 24


def may_begin_code(scan: Scan, word: str) -> bool:
    """Tell whether a number or code of the index may begin with a word."""
    if not scan.index.codes:
        return False
    return scan.index.is_code_prefix(word.upper()) or bool(scan.index.nationals and word[0].isdigit())


def _has_calling_code(scan: Scan, word_index: int) -> bool:
    start = scan.starts[word_index]
    return scan.text[start - 1 : start] == "+" or scan.words[word_index].startswith("00")


def is_code_ahead(scan: Scan, word_index: int) -> bool:
    """Tell whether the first six letters and digits from word ``word_index`` on may begin a code."""
    if _has_calling_code(scan, word_index):
        return True
    code = scan.words[word_index]
    while len(code) < 6:
        word_index += 1
        if word_index >= scan.count or len(scan.gaps[word_index]) > 3:
            break
        code += scan.words[word_index]
    return word_index >= scan.count or scan.index.is_code_prefix(code.upper())


def find_regrouped_codes(scan: Scan, word_index: int) -> Iterator[Hit]:
    """Yield numbers and codes whose digits are grouped differently."""
    index, text = scan.index, scan.text
    code = ""
    foreign = bool(index.nationals) and _has_calling_code(scan, word_index)
    for j in range(word_index, word_index + 12):
        if j >= scan.count:
            scan.is_short = scan.is_short or len(code) <= index.longest_code
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
        if not candidates and code.isdigit():  # a telephone number, with or without a calling code
            sign = "+" if text[start - 1 : start] == "+" else ""
            candidates, short = index.nationals.get(fit.strip_calling_code(sign + code)), True
        if not candidates:
            continue
        opened = text[start - 1 : start]
        if opened == "(" and ")" in text[start:end] and not short:
            start -= 1
        if opened == "+" and (short or candidates[0].text.startswith("+")):
            start -= 1
        if not gaps.is_separate_number(text, start, end):
            continue
        scan.mark_if_text_short(end + 4)
        surface = text[start:end]
        for form in candidates:
            out = None if form.target is None else regroup_digits(surface, form, form.target, short)
            if form.target is None or out is not None:
                yield Hit(start, end, j + 1, form, ["number format"], [], surface, out)


def regroup_digits(surface: str, form: Form, original: str, short: bool) -> str | None:
    """Write the original in the groups of ``surface``, or unchanged if the numbers of digits differ."""
    extract = fit.strip_calling_code if short else fit.extract_code_characters
    count, digits = len(extract(form.text)), extract(original)
    if count != len(digits) or (not short and surface.split() == form.text.split()):
        return original
    return fit.replace_last_characters(surface, digits if short else original, count)


def find_reformatted_dates(scan: Scan, word_index: int) -> Iterator[Hit]:
    """Yield dates in another format."""
    word = scan.words[word_index]
    if not may_begin_date(word):
        return
    text, start = scan.text, scan.starts[word_index]
    ends = []
    for j in range(word_index, word_index + _DATE_WORDS):
        if j >= scan.count:
            scan.is_short = True
            break
        if j > word_index and not _IN_DATES.match(scan.gaps[j]):
            break
        if scan.ends[j] - start > LONGEST_DATE or not (scan.words[j][0].isdigit() or is_date_word(scan.words[j])):
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


def find_same_dates(scan: Scan, surface: str) -> list[tuple[Form, str]]:
    """Return the replacements with the date of ``surface``, and their originals in its format."""
    out: list[tuple[Form, str]] = []
    tried: set[tuple[int | None, int | None, int | None]] = set()
    for order in ("mdy", "dmy"):
        date = read_date(surface, order)
        if date is None or date.month is None or (date.year, date.month, date.day) in tried:
            continue
        key = (date.year, date.month, date.day)
        tried.add(key)
        for form in scan.index.dates.get(key, ()):
            if form.target is not None:
                out.append((form, fit.format_date_like(date, form.target) or form.target))
    return out


def may_begin_date(word: str) -> bool:
    """Tell whether a date may begin with a word."""
    return (word[0].isdigit() and len(word) <= 8) or is_date_word(word)


def is_date_word(word: str) -> bool:
    """Tell whether a word is the name of a month or weekday, or stands within dates."""
    if len(word) < 3:
        return word.lower() in ("de", "of")
    return find_calendar_name("month", word) is not None or find_calendar_name("weekday", word) is not None


def _is_code_length(size: int) -> bool:
    """Tell whether ``size`` characters of base 32 can be a code: at least two blocks of 16 bytes."""
    nbytes = size * 5 // 8
    return nbytes >= 2 * _UNIT and nbytes % _UNIT == 0 and (nbytes * 8 + 4) // 5 == size


def find_encrypted_match(scan: Scan, word_index: int, covered_until: int) -> Match | None:
    """Match the encrypted mention whose label begins with a word; it is decrypted, or left if that is not possible.

    Without brackets, the code ends with the longest run of words that can be decrypted.
    """
    text, start = scan.text, scan.starts[word_index]
    if start and (text[start - 1].isalnum() or text[start - 1] == "_"):
        return None
    end_label = word_index
    while end_label + 1 < scan.count and scan.gaps[end_label + 1] == "_":
        end_label += 1
    label = text[start : scan.ends[end_label]]
    mark = _MARK.match(text, scan.ends[end_label])
    if mark is None or len(label) > 64:
        end = scan.ends[end_label]
        if not scan.is_final and len(text) - end < 12 and ":e1:".startswith("".join(text[end:].split()).lower()):
            scan.is_short = True
        return None
    position = begin = mark.end()
    characters: list[str] = []
    stops: list[tuple[int, int]] = []  # (number of characters, end offset), at the ends of words
    while position < len(text) and position - begin < LONGEST:
        c = text[position]
        if c in _BASE32:
            characters.append(c)
            position += 1
            if position == len(text) or not text[position].isalnum():
                stops.append((len(characters), position))
        elif c.isspace() or (c == "-" and text[position + 1 : position + 2].isspace()):
            position += 1
        else:
            break
    if position == len(text) and not scan.is_final and position - begin < LONGEST:
        scan.is_short = True
        return None
    code = "".join(characters).upper()
    low = start - 2 if text[start - 2 : start] == "[ " else start - 1 if text[start - 1 : start] == "[" else start
    if position < len(text) and text[position] == "]" and code:
        original = _decrypt_mention(scan, label, code)
        if original is not None or (low < start and len(code) >= 26):
            tidy = low == start - 1 and position - begin == len(code) and mark[0].lower() == ":e1:"
            rule = "encrypted" if tidy else "encrypted+spacing" if low < start else "encrypted+brackets"
            return _make_encrypted_match(scan, (low, position + 1), covered_until, label, code, original, rule)
    fitting = [stop for stop in reversed(stops[:256]) if _is_code_length(stop[0])]
    for count, end in fitting[:_TRIES]:
        original = _decrypt_mention(scan, label, code[:count])
        if original is not None:
            rule = "encrypted+brackets"
            return _make_encrypted_match(scan, (low, end), covered_until, label, code[:count], original, rule)
    return None


def _make_encrypted_match(
    scan: Scan, span: Interval, covered_until: int, label: str, code: str, original: str | None, rule: str
) -> Match | None:
    """Return the match of an encrypted mention, whose span is one of the view; None if it is covered already."""
    if span[0] < covered_until:
        return None
    form = scan.index.sealed.get(code)
    row = -1 if form is None else form.row
    a, b, escapes = scan.view.map_form_to_raw(*span, f"[{label}:e1:{code}]")
    if original is None:
        why = "encrypted mentions could not be decrypted: they were changed or have another key"
        return Match(a, b, None, "encrypted", label, row, why=why)
    if form is not None and scan.view.raw[a:b] == form.text:
        rule = "exact"
    rules = [rule, *(kind for kind, _ in escapes if kind != rule)]
    return Match(a, b, escape_like(original, escapes), "+".join(rules), label, row)


def _decrypt_mention(scan: Scan, label: str, code: str) -> str | None:
    form = scan.index.sealed.get(code)
    if form is not None:
        return form.target
    token = TOKEN.fullmatch(f"[{label}:e1:{code}]")
    return None if scan.key is None or token is None else decrypt_token(token, scan.key)
