"""Repeats of mentions that no detector found: before a text is sent, they are covered as well.

``Connor`` must not leave as ``CONNOR``, ``C o n n o r`` or ``Conn\u00ador`` either. The text is read once, letter by
letter in plain form, without the gaps between words; each position is looked up among the forms of the mentions. Time
is linear in the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from allonym.document import Interval, merge_intervals, subtract_intervals
from allonym.replace.cast import LEAST_WORD
from allonym.replace.naming import parse_name
from allonym.text.fold import Level, fold, spell_out_umlauts
from allonym.text.words import find_words

LONGEST = 64
"""Most letters of a surface that are searched for; the rest of a longer one is covered by its words."""
WITHIN = 4
"""Letters that a form needs to count inside of other words, too."""
APART = 6
"""Letters that a form needs to count however blanks divide it."""
GAP = 3
"""Most signs between two letters or digits that belong together, unless the mention itself has more there."""

_WIDE = "\0"
_SPELLED = re.compile(r"ae|oe|ue|aa")
_NUMBER = re.compile(r"\d(?:\W{0,3}\d)*")
_SHORT = re.compile(r"\b\w\w\b")
_IDEOGRAPHS = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")
_POSSESSIVE = re.compile(r"['’ʼ]s$", re.IGNORECASE)
# Thai, Lao, Burmese, Khmer; ideographs, kana and Hangul
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\ud7ff\uf900-\ufaff\U0001b000-\U0003ffff]+"
)


@dataclass(slots=True, repr=False)
class _Letters:
    """The letters and digits of a text in plain form; a NUL stands for a gap that is wider than ``GAP``.

    Attributes:
        plain: the letters.
        positions: the offset of each letter in the text.
        words: number of the word of each letter; -1: a gap.
        spans: start and end of the words.
    """

    plain: str
    positions: Sequence[int]
    words: Sequence[int]
    spans: Sequence[Sequence[int]]


def _read_letters(text: str, start: int, end: int, *, spelled_out: bool = False) -> _Letters:
    """Read a stretch of text; ``spelled_out``: with two letters for umlauts and the like."""
    letters: list[tuple[str, int, int]] = []
    spans: list[list[int]] = []
    last_end = -1  # of the last letter
    is_inside = False
    for i in range(start, end):
        folded = fold(spell_out_umlauts(text[i]) if spelled_out else text[i], Level.SCRIPT)
        if not folded:
            continue  # a mark, or an invisible sign: the word goes on
        if not any(map(str.isalnum, folded)):
            is_inside = False
            continue
        if not is_inside:
            if last_end >= 0 and i - last_end > GAP:
                letters.append((_WIDE, last_end, -1))
            spans.append([i, i])
            is_inside = True
        letters += ((c, i, len(spans) - 1) for c in folded if c.isalnum())
        spans[-1][1] = last_end = i + 1
    plain, positions, words = zip(*letters, strict=True) if letters else ((), (), ())
    return _Letters("".join(plain), positions, words, spans)


@dataclass(slots=True, repr=False)
class _Forms:
    """The forms of mentions in plain letters without gaps.

    Attributes:
        surfaces: surfaces, numbers and ideographs; they count in small letters and though short.
        parts: words of surfaces.
        divided: surfaces of several words, word by word.
        lengths: lengths of all forms, longest first, by their first two letters.
    """

    surfaces: set[str] = field(default_factory=set)
    parts: set[str] = field(default_factory=set)
    divided: set[tuple[str, ...]] = field(default_factory=set)
    lengths: dict[str, list[int]] = field(default_factory=dict)

    @classmethod
    def from_surfaces(cls, surfaces: Iterable[str]) -> _Forms:
        forms = cls()
        for surface in surfaces:
            forms._add_surface(surface)
        sizes = sorted({(form[:2], len(form)) for form in forms.surfaces | forms.parts if len(form) > 1}, reverse=True)
        for head, size in sizes:
            forms.lengths.setdefault(head, []).append(size)
        return forms

    def _add_surface(self, surface: str) -> None:
        surface = _POSSESSIVE.sub("", surface.strip().rstrip(".,;:!?\"'()[]"))
        spelled = spell_out_umlauts(surface).lower()
        shortened = _SPELLED.sub(lambda m: m[0][0], unicodedata.normalize("NFC", surface).lower())
        plain = fold(surface, Level.SCRIPT)
        for form in {plain, fold(spelled, Level.SCRIPT), _SPELLED.sub(lambda m: m[0][0], plain)}:
            words = tuple(find_words(form))
            self.surfaces.add("".join(words)[:LONGEST])
            self.divided.add(words)
            self.parts.update(word[:LONGEST] for word in words if len(word) >= LEAST_WORD)
        for form in (surface, spelled, shortened):
            letters = _read_letters(form, 0, len(form)).plain
            if _WIDE in letters:  # 12.......34
                self.surfaces.add(letters[:LONGEST].rstrip(_WIDE))
        self.surfaces.update(run[:LONGEST] for run in _IDEOGRAPHS.findall(plain))
        if _SHORT.search(surface):
            names = (part.text for part in parse_name(surface) if part.kind == "name" and part.text[:1].isupper())
            self.parts.update(fold(name, Level.SCRIPT) for name in names)
        for number in (*_NUMBER.findall(plain), plain):
            self.surfaces.add("".join(filter(str.isdigit, number))[:LONGEST])


def find_repeats(text: str, mentions: Sequence[Interval]) -> Iterable[Interval]:
    """Find repeats of mentions outside of all mentions: intervals, disjoint, in reading order.

    Whatever the case, the script, and invisible signs or accents, these are found:

    - the complete surface of a mention, of two letters or digits and more;
    - each of its words, of three letters and more, names of two, but a short one not in small letters (``the`` of ``the
      Connors``);
    - each of its numbers, of two digits and more, whatever stands between the digits;
    - any of these with ``ae`` for ``ä`` and the like, or ``ss`` for ``ß``, and the other way round;
    - any of these spelled, ``C-o-n-n-o-r``, and any of six letters and more with gaps anywhere.

    A form of four letters and more counts inside of a word, too: the complete word is covered. In scripts without
    blanks two letters are enough.

    Args:
        text: the text.
        mentions: spans that are covered already, as intervals of code points.
    """
    forms = _Forms.from_surfaces({text[a:b] for a, b in mentions})
    if not forms.lengths:
        return []
    gaps = subtract_intervals((0, len(text)), merge_intervals(mentions))
    ways = (False, True) if spell_out_umlauts(text) != text else (False,)
    letters = (_read_letters(text, a, b, spelled_out=way) for a, b in gaps for way in ways)
    return merge_intervals(interval for stretch in letters for interval in _find_form_matches(stretch, text, forms))


def _find_form_matches(letters: _Letters, text: str, forms: _Forms) -> Iterator[Interval]:
    plain, positions, words = letters.plain, letters.positions, letters.words
    for i in range(len(plain) - 1):
        for size in forms.lengths.get(plain[i : i + 2], ()):
            form, j = plain[i : i + size], i + size
            is_surface = form in forms.surfaces
            if len(form) < size or not (is_surface or form in forms.parts):
                continue
            start, end = positions[i], positions[j - 1] + 1
            if _is_repeat(text[start:end], letters, i, j, is_surface, forms):
                if not _UNSPACED.fullmatch(form.replace(_WIDE, "")):
                    start, end = letters.spans[words[i]][0], letters.spans[words[j - 1]][1]
                yield start, end
                break


def _is_repeat(surface: str, letters: _Letters, i: int, j: int, is_surface: bool, forms: _Forms) -> bool:
    """Whether letters that equal a form of a mention are a repeat of it, and no part of other words by chance."""
    plain, words = letters.plain, letters.words
    form = plain[i:j]
    shown = form.replace(_WIDE, "")
    if _UNSPACED.fullmatch(shown):
        return True
    is_number = shown.isdigit()
    opens = i == 0 or words[i - 1] != words[i] or (is_number and not plain[i - 1].isdigit())
    closes = j == len(plain) or words[j] != words[j - 1] or (is_number and not plain[j].isdigit())
    if words[i] == words[j - 1]:
        return len(form) >= WITHIN or (opens and closes and (is_surface or not surface.islower()))
    if not (opens and closes):
        return False
    if is_number or shown != form or len(form) >= APART:
        return True
    borders = [i, *(k for k in range(i + 1, j) if words[k] != words[k - 1]), j]
    pieces = tuple(plain[a:b] for a, b in pairwise(borders))
    return pieces in forms.divided or all(len(piece) == 1 for piece in pieces)
