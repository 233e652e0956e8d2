"""Candidates for one position of a text: tags and names in another form, how sure they are, and which is chosen."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from allonym.document import Interval
from allonym.restoration import fit, gaps
from allonym.restoration.forms import ADDRESS, CLOSING, OPENING, PERSON, TAG, Form, split_words_and_gaps
from allonym.restoration.index import Index, Reading, merge_equal_targets
from allonym.restoration.tag_parts import derive_part, read_tag_part, write_tag_part
from allonym.restoration.view import View
from allonym.text.fold import Level, fold
from allonym.text.inflection import Ending
from allonym.text.prose import read_common_words

if TYPE_CHECKING:
    from allonym.restoration.scan import Scan

_SPACED = re.compile(r"[^\W\d_]\.\s+[^\W\d_]\b")
_CLOSE_INITIALS = re.compile(r"(?<=[^\W\d_])\.(?=[^\W\d_]\.)")
_COST = {"": 0, "case": 1, "spacing": 2, "signs": 2, "quotes": 2, "joined": 3, "hyphenation": 3, "plural": 3}
_COST |= {"diacritics": 3, "shortened": 4, "initials": 5, "reversed": 5, "acronym": 5, "inflected": 6, "typo": 10}
_BEFORE, _AFTER = 300, 40
_SPACES = r"\s{0,8}"
_SENTENCE = re.compile(r"[.!?\n]")
_HEX = frozenset("0123456789ABCDEF")
_ELEMENT_END = re.compile(r"[\"'”]?\s{0,2}/?[>\])}]")
_REWRITTEN = frozenset({"typo", "spacing", "hyphenation", "attribute", "zeros"})
_FAR = 48
"""Number of characters after a tag that may decide about it."""


class Match(NamedTuple):
    """A replacement in a text.

    Attributes:
        start, end: half-open, in the searched text.
        out: the original to put there; None if the replacement is left.
        rule: how it was recognised: ``exact``, or rules joined by ``+``.
        label: of the entity.
        row: number of the replacement in the index, or -1.
        is_whole: whether it is the replacement itself in some writing, not a shorter form.
        words: how many words it has.
        why: the reason if it is left.
        is_sure: whether it can be nothing else; if not, counts over the whole text decide.
        evidence: what shows that it stands for its original, see :mod:`allonym.restoration.evidence`.
        adapts_article: whether the English article before it follows the original.
    """

    start: int
    end: int
    out: str | None
    rule: str
    label: str
    row: int = -1
    is_whole: bool = True
    words: int = 1
    why: str = ""
    is_sure: bool = True
    evidence: str = ""
    adapts_article: bool = False

    def __repr__(self) -> str:
        return f"Match({self.start}, {self.end}, {self.rule!r}, {self.label!r})"


@dataclass(repr=False, slots=True)
class Hit:
    """A candidate, with offsets in the view."""

    start: int
    end: int
    last: int  # number of the token after it
    form: Form
    rules: list[str]
    endings: list[Ending | None]
    surface: str
    out: str | None = None
    is_sure: bool = True

    def cost(self) -> int:
        return sum(_COST.get(r, 2) for r in self.rules) + 20 * (not self.is_sure)


def describe_shared(form: Form) -> str:
    """Say why a replacement is left that stands for several entities."""
    return f"a replacement for {form.label} was left: it stands for several originals"


def count_words(reading: Reading) -> int:
    """Return the number of words of the text in a reading."""
    if reading.rule in ("spacing", "attribute") or reading.rule.startswith("hyphenation"):
        return 2
    return 2 if reading.ending is not None and not (reading.ending.kind or reading.ending.kept_letters) else 1


def pick_unambiguous_hit(hits: list[Hit]) -> Hit | None:
    """Return a hit if all lead to the same original, else None."""
    exact = [h for h in hits if not h.rules and h.surface == h.form.text]
    if exact:
        hits = exact
    if len(hits) == 1:
        return hits[0] if hits[0].form.target is not None else None
    forms = merge_equal_targets([h.form for h in hits])
    if len(forms) != 1 or forms[0].target is None:
        outs = {fit_original(h) for h in hits if h.form.target is not None}
        if len(outs) != 1 or any(h.form.target is None for h in hits):
            return None
    return next((h for h in hits if h.form is forms[0]), hits[0])


def fit_original(hit: Hit) -> str:
    """Adapt the original to the surface: shorten it, and apply its letter case and endings."""
    if hit.out is not None:
        return hit.out
    form, out = hit.form, hit.form.target
    assert out is not None
    if form.kind == TAG or not hit.rules:
        if any(hit.endings):
            out = fit.add_endings(out, len(form.keys), [None] * (len(form.keys) - 1) + [hit.endings[-1]])
        return out
    if form.head and out.startswith(form.head) and hit.surface[0].isalnum():
        out = out[len(form.head) :]
    if form.tail and out.endswith(form.tail) and hit.surface[-1].isalnum():
        out = out[: len(out) - len(form.tail)]
    if any(hit.endings):
        out = fit.add_endings(out, len(form.keys), hit.endings)
    if form.rule == "initials" and _SPACED.search(hit.surface):
        out = _CLOSE_INITIALS.sub(". ", out)
    if form.rule == "initials" and "." not in hit.surface:
        out = out.replace(".", "")
    if form.kind == ADDRESS:
        letters = [c for c in hit.surface if c.isalpha()]
        return out.upper() if letters and all(c.isupper() for c in letters) and not form.text.isupper() else out
    if "joined" in hit.rules and (joined := fit.join_words_like(out, hit.surface)):
        return joined
    if "," in form.text and "," not in hit.surface:
        out = out.replace(", ", " ")
    return fit.match_case(out, form.text, hit.surface)


def fit_tag_hit(scan: Scan, hit: Hit, infix: str) -> Hit | None:
    """Extend a hit from the words of a tag to the whole tag; None if the words are no tag.

    Args:
        infix: the gap before the last word.
    """
    text, form, start, end, rules = scan.text, hit.form, hit.start, hit.end, hit.rules
    part = read_tag_part(form, text, end) if hit.endings[-1] is None else None
    after = part.end if part is not None else end
    stem = hit.surface if hit.endings[-1] is None else hit.surface[:-1]
    if not scan.is_final and gaps.is_bracket_undecided(form, text, start, end):
        scan.is_short = True
    code = len(form.keys[-1]) >= 6 and not form.keys[-1].isalpha() and scan.lows[hit.last - 1] == form.keys[-1]
    if "typo" in rules and not code and not any(c in '_:#"' for c in infix) and text[after : after + 1] not in "])}>":
        return None
    hit.last = scan.find_word_after(after)
    if scan.count <= hit.last + 1:
        scan.mark_if_text_short(after + _FAR)
    is_bare_typo = "typo" in rules and not (start > 0 and text[start - 1] in OPENING)
    is_other_joint = bool(form.gaps) and infix.strip() not in ("_", form.gaps[-1].strip())
    if is_bare_typo and (is_other_joint or _is_grown_word(form, hit.surface)):
        return None
    element = _ELEMENT_END.match(text, end) if "attribute" in rules and text[start - 1 : start] in OPENING else None
    if element is not None:
        reach: gaps.Reach | None = gaps.Reach(start - 1, element.end())
    elif part is not None:
        reach = _find_reach_around(form, text, (start, end), after, infix)
        rules = [*rules, "form"]
        hit.out = find_part_original(scan.index, form, part.name)
    elif hit.endings[-1] is None:
        reach = gaps.find_tag_reach(form, text, start, end, infix)
    else:
        reach = _find_reach_around(form, text, (start, start + len(stem)), end, infix, " ")
        reach = reach if reach is not None and reach.end == end else None
    if reach is None:
        return None
    hit.start, hit.end, rule = reach
    letters, form_letters = "".join(split_words_and_gaps(stem)[1::2]), "".join(form.words)
    if letters != form_letters and not _REWRITTEN & set(rules):
        rules = [*rules, "case" if fold(letters) == fold(form_letters) else "diacritics"]
    if rule:
        rules = [*rules, rule]
    hit.surface = text[hit.start : hit.end]
    if not rules and hit.surface not in (form.text, View(form.text).text):
        rules = ["signs"]
    hit.rules = rules
    hit.is_sure = not form.is_ordinary
    return hit


def _find_reach_around(
    form: Form, text: str, words: Interval, rest: int, infix: str, gap: str = ""
) -> gaps.Reach | None:
    """Return the span of a tag in a text that has something between its words and ``rest``, read as if ``gap`` stood
    there."""
    (start, end), low = words, max(0, words[0] - 2 * gaps.LOOK_ROUND)
    window = text[low:end] + gap + text[rest : rest + 2 * gaps.LOOK_ROUND]
    reach = gaps.find_tag_reach(form, window, start - low, end - low, infix)
    return reach and gaps.Reach(low + reach.start, low + reach.end + rest - end, reach.rule)


def find_part_original(index: Index, form: Form, part: str) -> str | None:
    """Return the original of a part of a tag's name: as a text had it, else derived from the whole name."""
    written = Form(write_tag_part(form, part), None, form.label, TAG, -1)
    other = next(iter(index.full.get(written.keys, ())), None)
    if part and other is not None and other.text == written.text:
        return other.target
    return form.target and derive_part(form.target, part)


def _is_grown_word(form: Form, surface: str) -> bool:
    """Tell whether an apparent slip is a word of the tag with a letter added before or after it."""
    pairs = zip(split_words_and_gaps(surface)[1::2], form.keys, strict=False)
    return any(len(a) > len(b) and (fold(a).startswith(b) or fold(a).endswith(b)) for a, b in pairs)


def find_unknown_tag(scan: Scan, word_index: int, covered_until: int) -> Match | None:
    """Match a tag that has the form of known tags but an unknown last word."""
    index, text = scan.index, scan.text
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
            if a >= covered_until and text[a:start] == head and text[end:b] == tail:
                if not head and text[a - 1 : a] == "_":
                    continue
                scan.mark_if_text_short(b + 4)
                why = "tags were left that are not known here"
                return Match(scan.view.get_text_start(a), scan.view.get_text_end(b), None, "unknown", "", why=why)
    return None


def fit_name_hit(scan: Scan, hit: Hit) -> Hit | None:
    """Extend a hit from the words of a name to the signs around them, and weigh it; None if it is not that name."""
    text, form, rules = scan.text, hit.form, hit.rules
    start, end = _include_name_signs(text, hit.start, hit.end, form)
    if not scan.is_final and end == hit.end and form.tail and form.tail.startswith(text[end:]):
        scan.is_short = True
    lost = (form.head and start == hit.start) or (form.tail and end == hit.end)
    if lost and form.rule == "initials" and form.tail == ".":
        return None
    if lost:
        rules = [*rules, "signs"]
    surface = text[start:end]
    plainly = not rules and surface == form.text
    scan.mark_if_text_short(end + 4)
    first, final = surface[0], surface[-1]
    if not first.isalnum() and first not in OPENING and text[start - 1 : start] == first:
        return None
    if not final.isalnum() and final not in CLOSING and text[end : end + 1] == final and final != ".":
        return None
    if not gaps.is_separate_name(text, start, end, plainly and not form.rule):
        return None
    if form.kind == ADDRESS and not gaps.is_separate_address(text, start, end):
        return None
    if not plainly:
        rules = _add_difference_rules(form, surface, rules, any(hit.endings))
    hit.start, hit.end, hit.rules, hit.surface = start, end, rules, surface
    is_certain = is_certain_name(form, surface, rules)
    if not is_certain and (form.rule or {"typo", "inflected", "plural"} & set(rules)):
        return None
    hit.is_sure = is_certain and not form.is_ordinary
    lost_capital = form.text[:1].isupper() and surface.islower() and surface[:1] != surface[:1].upper()
    if plainly or not hit.is_sure or len(form.keys) > 1 or form.rule or not lost_capital:
        return hit
    scan.mark_if_text_short(end + _AFTER)
    # A lower-case word within a sentence is hardly a name, unless the whole sentence is in lower case.
    hit.is_sure = _has_no_nearby_capitals(text, start, end)
    return hit if hit.is_sure or "typo" not in rules else None


def _add_difference_rules(form: Form, surface: str, rules: list[str], is_inflected: bool) -> list[str]:
    """Return the rules, with those for differences of letters and their case that no rule explains yet."""
    words = form.words if surface == form.text else split_words_and_gaps(surface)[1::2]
    if not is_inflected and not {"typo", "spacing", "hyphenation", "diacritics"} & set(rules):
        pairs = zip(words, form.words, strict=False)
        if len(words) == len(form.words) and any(fold(a, Level.CASE) != fold(b, Level.CASE) for a, b in pairs):
            rules = [*rules, "diacritics"]
    was, now = fit.get_letter_case(form.text), fit.get_letter_case(surface)
    is_case_new = now in ("upper", "lower") or (now and was in ("upper", "lower"))
    if was != now and is_case_new and surface.lower() != surface.upper():
        rules = [*rules, "case"]
    if not rules and surface != form.text:
        rules = ["case" if surface.casefold() == form.text.casefold() else "diacritics"]
    return rules


def _has_no_nearby_capitals(text: str, start: int, end: int) -> bool:
    """Tell whether the nearby part of the sentence has no capital letter."""
    before = _SENTENCE.split(text[max(0, start - _BEFORE) : start])[-1]
    after = _SENTENCE.split(text[end : end + _AFTER], maxsplit=1)[0]
    return (before + after).islower() or not any(map(str.isalpha, before + after))


def is_certain_name(form: Form, surface: str, rules: list[str]) -> bool:
    """Tell whether the surface is almost certainly the replacement in another form."""
    keys = form.keys
    single = len(keys) == 1
    if not rules:
        return not single or len(keys[0]) > 1 or not keys[0].isalpha()
    common = read_common_words()
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
        if form.text.islower() and {"inflected", "plural"} & set(rules):
            return False  # a word of the text's own, most likely
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
    if "case" in rules:
        least = 4 if surface.islower() else 0 if form.text.islower() else 3
        return not least or (len(word) >= least and word not in common)
    if "inflected" in rules or "plural" in rules:
        return (len(word) >= 4 and word not in common) or (surface[0].isupper() and len(word) >= 3)
    return True


def _include_name_signs(text: str, start: int, end: int, form: Form) -> tuple[int, int]:
    """Return the span of a name including the signs around its words, if they are there; spaces may differ."""
    if signs := form.head.split():
        before = text[max(0, start - 9 * len(form.head)) : start]
        if match := re.search(_SPACES.join([*map(re.escape, signs), r"\Z"]), before):
            start -= len(before) - match.start()
    signs = form.tail.split()
    if signs and (match := re.compile(_SPACES.join(["", *map(re.escape, signs)])).match(text, end)):
        end = match.end()
    return start, end
