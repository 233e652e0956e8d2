"""Find tags in another form, and unknown tags."""

from __future__ import annotations

from typing import TYPE_CHECKING

from allonym.restore import gaps
from allonym.restore.forms import OPENING, Form, split_words_and_gaps
from allonym.restore.hits import Hit, Match
from allonym.restore.view import View
from allonym.restore.words import Ending
from allonym.text.fold import fold

if TYPE_CHECKING:
    from allonym.restore.scan import Scan

_HEX = frozenset("0123456789ABCDEF")
_FAR = 48
"""Number of characters after a tag that may decide about it."""


def find_tag_hit(
    scan: Scan, form: Form, start: int, end: int, last: int, rules: list[str], endings: list[Ending | None], infix: str
) -> Hit | None:
    text = scan.text
    surface = text[start:end]
    stem = surface
    if endings and endings[-1] is not None:
        stem = surface[:-1]
    if not scan.final and gaps.is_undecided(form, text, start, end):
        scan.short = True
    code = len(form.keys[-1]) >= 6 and not form.keys[-1].isalpha() and scan.lows[last - 1] == form.keys[-1]
    if "typo" in rules and not code and not any(c in '_:#"' for c in infix) and text[end : end + 1] not in "])}>":
        return None
    last_token = scan.find_token_after(end)
    if not scan.final and end + _FAR > len(scan.text) and scan.count <= last_token + 1:
        scan.short = True
    core = end - (len(surface) - len(stem))
    opened = start > 0 and text[start - 1] in OPENING
    if "typo" in rules and not opened and _is_grown_word(form, surface):
        return None
    reach = gaps.find_tag_reach(form, text, start, end, infix) if core == end else None
    if core != end:
        low = max(0, start - 2 * gaps.LOOK_ROUND)
        window = text[low:core] + " " + text[end : end + 2 * gaps.LOOK_ROUND]
        reach = gaps.find_tag_reach(form, window, start - low, core - low, infix)
        if reach is not None:
            a = low + reach.start
            reach = gaps.Reach(a, end, reach.rule) if reach.end == core - low else None
    if reach is None:
        return None
    a, b, rule = reach
    words = (
        form.words
        if stem == "".join(x for p in zip(form.words, [*form.gaps, ""], strict=True) for x in p)
        else split_words_and_gaps(stem)[1::2]
    )
    letters, form_letters = "".join(words), "".join(form.words)
    if letters != form_letters and not {"typo", "spacing", "hyphenation"} & set(rules):
        rules = [*rules, "case" if fold(letters) == fold(form_letters) else "diacritics"]
    if rule:
        rules = [*rules, rule]
    plain = text[a:b]
    if not rules and plain != form.text and plain != View(form.text).text:
        rules = ["signs"]
    return Hit(a, b, last_token, form, rules, endings, plain)


def _is_grown_word(form: Form, surface: str) -> bool:
    """Tell whether an apparent slip is a word of the tag with a letter added before or after it."""
    return any(
        len(a) > len(b) and (fold(a).startswith(b) or fold(a).endswith(b))
        for a, b in zip(split_words_and_gaps(surface)[1::2], form.keys, strict=False)
    )


def find_unknown_tag(scan: Scan, word_index: int, covered_until: int) -> Match | None:
    """Match a tag that has the form of known tags but an unknown last word."""
    index = scan.index
    if not index.labels or not index.read_word(scan.words[word_index]):
        return None
    for length in index.heads.get(fold(scan.words[word_index]), ()):
        last = word_index + length - 1
        if length < 2 or last >= scan.count:
            continue
        shapes = index.labels.get(tuple(fold(w) for w in scan.words[word_index:last]))
        word = scan.words[last]
        code = len(word) >= 6 and len(word) in index.id_sizes and set(word.upper()) <= _HEX
        if not shapes or not (word.isdigit() or code):
            continue
        start, end = scan.starts[word_index], scan.ends[last]
        for head, infix, tail in shapes:
            if scan.gaps[last] != infix or not (head or tail or "_" in infix):
                continue
            a, b = start - len(head), end + len(tail)
            if a >= covered_until and scan.text[a:start] == head and scan.text[end:b] == tail:
                if not head and scan.text[a - 1 : a] == "_":
                    continue
                if not scan.final and b + 4 > len(scan.text):
                    scan.short = True
                why = "unknown tags were left"
                return Match(scan.view.get_text_start(a), scan.view.get_text_end(b), None, "unknown", "", why=why)
    return None
