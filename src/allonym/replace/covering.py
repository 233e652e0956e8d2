"""What a text still tells of its mentions outside of them: before a text leaves, this is covered as well.

A mention that no detector found again, ``Connor`` as ``CONNOR``, ``C o n n o r`` or ``Conn\u00ador``, must not be sent.
The text is read once, letter by letter in plain form, with the gaps between words left out; each place is looked up
among what the mentions hold. Time is linear in the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from allonym.document import Interval, merge, subtract
from allonym.replace.cast import LEAST_WORD
from allonym.replace.naming import parse
from allonym.text.fold import Level, fold, spell_out
from allonym.text.words import find_words

LONGEST = 64
"""Letters of a surface that are looked for; the rest of a longer one is covered by its words."""
WITHIN = 4
"""Letters from which on what a mention holds counts inside of other words, too."""
APART = 6
"""Letters from which on it counts however blanks divide it."""
GAP = 3
"""Signs between two letters or digits that belong together, at most, if the mention has no more there itself."""

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
class _Read:
    """The letters and digits of a text in plain form; a NUL stands for a gap that is wider than ``GAP``."""

    plain: str
    at: Sequence[int]  # where each letter comes from
    word: Sequence[int]  # which word it belongs to; -1: a gap
    spans: Sequence[Sequence[int]]  # of the words

    @classmethod
    def of(cls, text: str, start: int, end: int, *, spelled_out: bool = False) -> _Read:
        """Read a stretch of text; ``spelled_out``: with two letters for umlauts and the like."""
        letters: list[str] = []
        at: list[int] = []
        word: list[int] = []
        spans: list[list[int]] = []
        before = -1  # where the last letter ended
        inside = False
        for i in range(start, end):
            folded = fold(spell_out(text[i]) if spelled_out else text[i], Level.SCRIPT)
            if not folded:
                continue  # a mark, or nothing that is seen: the word goes on
            if not any(map(str.isalnum, folded)):
                inside = False
                continue
            if not inside:
                if before >= 0 and i - before > GAP:
                    letters.append(_WIDE)
                    at.append(before)
                    word.append(-1)
                spans.append([i, i])
                inside = True
            for c in folded:
                if c.isalnum():
                    letters.append(c)
                    at.append(i)
                    word.append(len(spans) - 1)
            spans[-1][1] = before = i + 1
        return cls("".join(letters), at, word, spans)


@dataclass(slots=True)
class _Told:
    """What mentions hold, in plain form without gaps."""

    whole: set[str] = field(default_factory=set, repr=False)  # also in small letters, though short
    parts: set[str] = field(default_factory=set, repr=False)
    divided: set[tuple[str, ...]] = field(default_factory=set, repr=False)  # surfaces of several words
    lengths: dict[str, tuple[int, ...]] = field(default_factory=dict, repr=False)  # by the first two letters

    def add(self, surface: str) -> None:
        surface = _POSSESSIVE.sub("", surface.strip().rstrip(".,;:!?\"'()[]"))
        spelled = spell_out(surface).lower()
        plain = fold(surface, Level.SCRIPT)
        forms = {plain, fold(spelled, Level.SCRIPT), _SPELLED.sub(lambda m: m[0][0], plain)}
        for form in forms:
            found = tuple(find_words(form))
            self.whole.add("".join(found)[:LONGEST])
            self.divided.add(found)
            self.parts.update(w[:LONGEST] for w in found if len(w) >= LEAST_WORD)
        for form in (surface, spelled, _SPELLED.sub(lambda m: m[0][0], unicodedata.normalize("NFC", surface).lower())):
            read = _Read.of(form, 0, len(form)).plain
            if _WIDE in read:  # 12.......34
                self.whole.add(read[:LONGEST].rstrip(_WIDE))
        self.whole.update(run[:LONGEST] for run in _IDEOGRAPHS.findall(plain))
        if _SHORT.search(surface):
            self.parts.update(
                fold(p.text, Level.SCRIPT) for p in parse(surface) if p.kind == "name" and p.text[:1].isupper()
            )
        self.whole.update("".join(filter(str.isdigit, number))[:LONGEST] for number in _NUMBER.findall(plain))
        self.whole.add("".join(filter(str.isdigit, plain))[:LONGEST])

    def index(self) -> None:
        sizes: dict[str, set[int]] = {}
        for form in self.whole | self.parts:
            if len(form) > 1:
                sizes.setdefault(form[:2], set()).add(len(form))
        self.lengths = {head: tuple(sorted(found, reverse=True)) for head, found in sizes.items()}


def strays(text: str, mentions: Sequence[Interval]) -> Iterable[Interval]:
    """Places outside of all mentions that tell what one of them is; disjoint, in reading order.

    That is, whatever the case, the script, and invisible signs or accents:

    - the whole surface of a mention, from two letters or digits on;
    - each of its words, from three letters on, names from two, but a short one not in small letters (``the`` of ``the
      Connors``);
    - each of its numbers, from two digits on, whatever stands between the digits;
    - any of these with ``ae`` for ``ä`` and the like, or ``ss`` for ``ß``, and the other way round;
    - any of these spelled, ``C-o-n-n-o-r``, and any of six letters and more with gaps anywhere.

    What has four letters and more counts inside of a word, too: the whole word is covered. In scripts without blanks
    two letters will do.

    Args:
        text: the text.
        mentions: where others are covered already, as intervals of code points.
    """
    told = _Told()
    for surface in {text[a:b] for a, b in mentions}:
        told.add(surface)
    told.index()
    if not told.lengths:
        return []
    gaps = subtract((0, len(text)), merge(mentions))
    ways = (False, True) if spell_out(text) != text else (False,)
    return merge(
        place for a, b in gaps for way in ways for place in _found(_Read.of(text, a, b, spelled_out=way), text, told)
    )


def _found(read: _Read, text: str, told: _Told) -> Iterator[Interval]:
    plain, at, word, spans = read.plain, read.at, read.word, read.spans
    for i in range(len(plain) - 1):
        for size in told.lengths.get(plain[i : i + 2], ()):
            form = plain[i : i + size]
            whole = form in told.whole
            if len(form) < size or not (whole or form in told.parts):
                continue
            j = i + size
            place = (at[i], at[j - 1] + 1)
            if _counts(text[slice(*place)], plain, word, i, j, whole, told):
                if not _UNSPACED.fullmatch(form.replace(_WIDE, "")):
                    place = (spans[word[i]][0], spans[word[j - 1]][1])
                yield place
                break


def _counts(surface: str, plain: str, word: Sequence[int], i: int, j: int, whole: bool, told: _Told) -> bool:
    """Whether letters that equal what a mention holds are it, and no part of other words by chance."""
    form = plain[i:j]
    seen = form.replace(_WIDE, "")
    if _UNSPACED.fullmatch(seen):
        return True
    digits = seen.isdigit()
    opens = i == 0 or word[i - 1] != word[i] or (digits and not plain[i - 1].isdigit())
    closes = j == len(plain) or word[j] != word[j - 1] or (digits and not plain[j].isdigit())
    if word[i] == word[j - 1]:
        return len(form) >= WITHIN or (opens and closes and (whole or not surface.islower()))
    if not (opens and closes):
        return False
    if digits or seen != form or len(form) >= APART:
        return True
    cuts = [i, *(k for k in range(i + 1, j) if word[k] != word[k - 1]), j]
    pieces = tuple(plain[a:b] for a, b in pairwise(cuts))
    return pieces in told.divided or all(len(piece) == 1 for piece in pieces)
