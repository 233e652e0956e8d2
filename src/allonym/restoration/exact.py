"""Fast paths for replacements that occur letter by letter."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from allonym.restoration import gaps
from allonym.restoration.codes import is_date_word
from allonym.restoration.forms import ADDRESS, CLOSING, OPENING, TAG, Form
from allonym.restoration.hits import Match, describe_shared
from allonym.restoration.view import escape_like
from allonym.restoration.words import AFTER_APOSTROPHE, read_common_words

if TYPE_CHECKING:
    from allonym.restoration.scan import Scan


def match_exactly(scan: Scan, word_index: int, covered_until: int) -> Match | None:
    """Match a replacement letter by letter at word ``word_index``, if no longer one is possible there."""
    index, lows = scan.index, scan.lows
    for length in index.heads.get(lows[word_index], ()):
        last = word_index + length
        if last > scan.count:
            if word_index + 1 < scan.count and not is_pair_start(scan, word_index):
                continue
            return None
        forms = index.full.get(tuple(lows[word_index:last]))
        if forms is None:
            if length > 1 and index.read_word(scan.words[word_index + 1]):
                return None  # perhaps in another form
            continue
        form, text = forms[0], scan.text
        start, end = scan.starts[word_index] - len(form.head), scan.ends[last - 1] + len(form.tail)
        if len(forms) > 1 or form.target is None or form.is_ordinary or start < covered_until:
            return None
        if end - start != len(form.text) or not text.startswith(form.text, start):
            return None
        if not scan.is_final and not is_end_proven(scan, form, end):
            return None
        if last < scan.count and text[end] in "'’ʼ" and lows[last] in AFTER_APOSTROPHE:
            return None
        a, b = scan.view.get_text_start(start), scan.view.get_text_end(end)
        if not _is_separate(form, text, start, end) or scan.view.list_escapes(a, b):
            return None
        return Match(a, b, form.target, "exact", form.label, form.row, True, length)
    return None


def _is_separate(form: Form, text: str, start: int, end: int) -> bool:
    if form.kind == TAG:
        return gaps.find_tag_reach(form, text, start + len(form.head), end - len(form.tail), "") == (start, end, "")
    is_plain = form.kind != ADDRESS and not form.head and not form.tail and len(form.text) > 1
    return is_plain and gaps.is_separate_name(text, start, end, True)


def match_single_word(scan: Scan, word_index: int, covered_until: int) -> Match | None:
    """Match one word of a name letter by letter, if nothing longer and nothing else is possible there."""
    index, word, key = scan.index, scan.words[word_index], scan.lows[word_index]
    if len(key) < 3 or key in index.heads or not word.isalpha() or not word.istitle() or key in read_common_words():
        return None
    if word_index + 1 >= scan.count or index.read_word(scan.words[word_index + 1]):
        return None
    if index.dates and is_date_word(word):
        return None
    start, end = scan.starts[word_index], scan.ends[word_index]
    after = scan.text[end]
    if after in "'’ʼ-‐‑" or start < covered_until or (not scan.is_final and end + 8 > len(scan.text)):
        return None
    index.derive_forms_with_word(key, False)
    forms = index.short.get((key,), ())
    if len(forms) != 1 or forms[0].text != word or forms[0].target is None or index.short_heads.get(key) != [1]:
        return None
    a, b = scan.view.get_text_start(start), scan.view.get_text_end(end)
    if scan.view.list_escapes(a, b) or not gaps.is_separate_name(scan.text, start, end, False):
        return None
    form = forms[0]
    return Match(a, b, form.target, form.rule, form.label, form.row, False)


def is_pair_start(scan: Scan, word_index: int) -> bool:
    """Tell whether this word and the next may be the first two of a longer replacement."""
    first, readings = scan.lows[word_index], scan.index.read_word(scan.words[word_index + 1])
    return word_index in scan.joined or any((first, reading.key) in scan.index.pairs for reading in readings)


def is_end_proven(scan: Scan, form: Form, end: int) -> bool:
    """Tell whether the text so far proves that a replacement ends at ``end``."""
    text = scan.text
    if end + 8 <= len(text):
        return True
    after = text[end : end + 1]
    if form.kind == TAG and form.tail and form.tail[-1] in CLOSING:
        return bool(after) and after != form.tail[-1]
    return bool(after) and after in " \n,;!?)"


def find_wordless_replacements(scan: Scan) -> Iterator[Match]:
    """Yield replacements without words, or in scripts without spaces, that occur letter by letter."""
    index, text, view = scan.index, scan.text, scan.view
    first = re.compile("[" + "".join(re.escape(c) for c in index.literal) + "]")
    longest = max(len(f.text) for listed in index.literal.values() for f in listed)
    covered_until = 0
    for match in first.finditer(text):
        start = match.start()
        if start < covered_until:
            continue
        if not scan.is_final and start + longest + 1 > len(text):
            scan.limit = start
            scan.count = min(scan.count, scan.find_word_after(start))
            return
        for form in index.literal[match[0]]:
            end = start + len(form.text)
            if not text.startswith(form.text, start):
                continue
            a, z = form.text[0], form.text[-1]
            if not a.isalnum() and a not in OPENING and text[start - 1 : start] == a and start:
                continue
            if not z.isalnum() and z not in CLOSING and text[end : end + 1] == z:
                continue
            neighbours = ((a, text[start - 1 : start] if start else ""), (z, text[end : end + 1]))
            if any(c.isascii() and c.isalnum() and neighbour.isalnum() for c, neighbour in neighbours):
                continue
            begin, stop, escapes = view.map_to_raw(start, end, form.text)
            out = form.target if form.target is None else escape_like(form.target, escapes)
            rule = "+".join(kind for kind, _ in escapes) or "exact"
            yield Match(begin, stop, out, rule, form.label, form.row, why=describe_shared(form))
            covered_until = end
            break
