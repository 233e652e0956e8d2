"""Verify a result: read it back, and count covered texts in it and in the planned text.

A covered text may also occur elsewhere as an ordinary word that stays ("May"). So a result fails if it contains a
covered text more often than the planned text does. Spaces, hyphens, ligatures, composition of accents and case are
ignored. The words of a covered text are also searched separately. A text that identifies nobody by itself (a letter or
two, a short number, ordinary words) is no leftover, and neither is a piece of a longer ordinary word.
"""

from __future__ import annotations

import logging
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pkgutil import resolve_name
from urllib.parse import unquote

from allonym.detection.words import read_ordinary_words, read_word_list
from allonym.errors import RefusedContent, hide_foreign_errors
from allonym.text.fold import Level, fold
from allonym.text.words import find_words

_OFFICE = (
    "allonym.files.verify.office:read_accepted_texts",
    "allonym.files.verify.office:read_rejected_texts",
    "allonym.files.verify.office:read_raw_texts",
)
_RECOGNIZED = "allonym.files.verify.recognized:read_recognized_texts"
VIEWS: Mapping[str, tuple[str, ...]] = {
    "pdf": (
        "allonym.files.verify.pdf:read_pdfium_texts",
        "allonym.files.verify.pdf:read_pdfminer_texts",
        "allonym.files.verify.pdf:read_raw_strings",
        "allonym.files.verify.pdf:read_object_strings_bytewise",
    ),
    "docx": _OFFICE,
    "xlsx": _OFFICE,
    "png": (),
    "jpg": (),
    "pptx": _OFFICE,
    **dict.fromkeys(("odt", "ods", "odp"), ("allonym.files.verify.office:read_odf_texts",)),
}
"""Format to its readers, ``"module:function"``, each ``(data: bytes) -> Iterator[(place, text)]``.

They share no code with the readers and writers of :mod:`allonym.files`. Each is counted separately.
"""

LEAST_WORD = 4
"""Least number of letters and digits of a word that is searched separately."""

LEAST_LOOSE = 9
"""Least number of letters and digits of a text that is also searched inside words, since spaces may be lost."""

LEAST_LETTERS, LEAST_DIGITS = 3, 5
"""Least numbers of letters and digits, and of digits of a number, that identify by themselves."""

_ORDINARY = (
    "no_names function_words form_fields roles departments technical_words unit_words date_words bodies office_names"
)
_BROKEN = re.compile(r"(?<=[^\W\d_])(?:[-\u2010\ufffe\x02]\s*\n\s*|[\u00ad\ufffe\x02]\s*)(?=[^\W\d_])")
_TRADE_MARKS = re.compile("[\u2120\u2122]")  # folded, they would be letters of the word before
_FIRST_IDEOGRAPH = "\u2e80"
_MARKS = "\u00ad\u200b\u200c\u200d\u2060\ufeff"


@dataclass(frozen=True, slots=True)
class Leftover:
    """A covered text that can still be read.

    Attributes:
        index: index of the covered text, from 0.
        places: the places where it, or a word of it, occurs.
        excess: number of occurrences above the allowed number.
    """

    index: int
    places: tuple[str, ...]
    excess: int


@dataclass(slots=True)
class _SqueezedText:
    """The letters and digits of a text, with the offsets of its words."""

    text: str = field(repr=False)
    borders: list[int] = field(repr=False)

    @classmethod
    def squeeze_text(cls, text: str) -> _SqueezedText:
        text = _TRADE_MARKS.sub(" ", _BROKEN.sub("", text))
        text = fold(text, Level.CASE)
        pieces: list[str] = []
        borders: list[int] = []
        position = 0
        for word in find_words(text.translate(dict.fromkeys(map(ord, _MARKS)))):
            borders.append(position)
            pieces.append(word)
            position += len(word)
        return cls("".join(pieces), [*borders, position])

    def count_substrings(self, needle: str, *, inside_words: bool, unbroken_only: bool) -> int:
        """Count ``needle`` in the text: ``inside_words`` too, or ``unbroken_only``, within one word."""
        ordinary = _read_ordinary_words()
        count = 0
        position = self.text.find(needle)
        while position >= 0:
            end = position + len(needle)
            first, last = bisect_left(self.borders, position), bisect_left(self.borders, end)
            bounded = self.borders[first] == position and self.borders[last] == end
            counts = bounded and (not unbroken_only or last == first + 1)
            if inside_words and not bounded:
                first -= self.borders[first] > position
                is_one_word = self.borders[first + 1] >= end
                counts = not is_one_word or self.text[slice(*self.borders[first : first + 2])] not in ordinary
            count += counts
            position = self.text.find(needle, end if counts else position + 1)
        return count


def find_leftovers_in_texts(texts: Iterable[tuple[str, str]], covered: Sequence[str], expected: str) -> list[Leftover]:
    """Return the covered texts that occur more often in the result than in the expected text.

    Args:
        texts: (place, text) pairs of a result.
        covered: the covered texts, once for each occurrence or once in all.
        expected: the planned text, which may contain covered texts as ordinary words.

    Returns:
        One leftover for each covered text that can still be read, in their order.
    """
    pages = [(place, _SqueezedText.squeeze_text(text)) for place, text in texts]
    allowed = _SqueezedText.squeeze_text(expected)
    needles = [_list_squeezed_text_and_long_words(text) for text in covered]
    # most do not occur, which one pass over all pages shows
    present = _find_present_needles({n for some in needles for n in some}, [page.text for _, page in pages])
    excess = {needle: _find_excess_occurrences(pages, needle, allowed) for needle in present}
    out: list[Leftover] = []
    for index, some in enumerate(needles):
        leftover = next((excess[needle] for needle in some if needle in excess and excess[needle][1] > 0), None)
        if leftover is not None:
            out.append(Leftover(index, *leftover))
    return out


def _find_present_needles(needles: Iterable[str], pages: Sequence[str]) -> set[str]:
    """Return the needles that occur in a page, in one pass over all pages; needles are letters and digits."""
    from allonym.detection.scan import PatternSet, encode_text

    listed = sorted(needles)
    words = PatternSet(listed, memory=1 << 29)
    return {listed[n] for n in words.find_matching_patterns(encode_text("\n".join(pages)))}


def _list_squeezed_text_and_long_words(text: str) -> list[str]:
    """Return the text without spaces and signs, then its longer words that identify by themselves."""
    squeezed = _SqueezedText.squeeze_text(unquote(text))  # "%20in" is no word
    words = [squeezed.text[a:b] for a, b in pairwise(squeezed.borders)]
    listed = (w for w in words if len(w) >= LEAST_WORD and can_identify(w))
    return [w for w in dict.fromkeys((_SqueezedText.squeeze_text(text).text, *listed)) if w]


@cache
def _read_ordinary_words() -> frozenset[str]:
    """Return words that name nobody where they stand alone, and those that office programs write."""
    listed = read_ordinary_words().union(*map(read_word_list, _ORDINARY.split()))
    return listed - read_word_list("given_names_too")


def can_identify(text: str) -> bool:
    """Tell whether a covered text may identify somebody where it stands alone.

    It does not if it has less than ``LEAST_LETTERS`` letters and digits, or is a number of less than ``LEAST_DIGITS``
    digits, an ordinary word, or made of words that office programs write ("Heading 1 Char").
    """
    words = find_words(fold(text, Level.CASE))
    letters = sum(2 if char > _FIRST_IDEOGRAPH else 1 for word in words for char in word)
    if letters < (LEAST_DIGITS if all(map(str.isdigit, words)) else LEAST_LETTERS):
        return False
    if len(words) == 1:
        return words[0] not in _read_ordinary_words()
    office_names = read_word_list("office_names")
    return not all(word in office_names or (word.isdigit() and len(word) == 1) for word in words)


def _find_excess_occurrences(
    pages: Sequence[tuple[str, _SqueezedText]], needle: str, allowed: _SqueezedText
) -> tuple[tuple[str, ...], int]:
    # Short texts often arise from two neighbouring cells of a table ("4" and "1" are not 41).
    ways = [{"inside_words": False, "unbroken_only": len(needle) < LEAST_WORD}]
    if len(needle) >= LEAST_LOOSE:
        ways.append({"inside_words": True, "unbroken_only": False})
    for way in ways:
        counts = {place: n for place, page in pages if (n := page.count_substrings(needle, **way))}
        excess = sum(counts.values()) - allowed.count_substrings(needle, **way) if counts else 0
        if excess > 0:
            return tuple(counts), excess
    return (), 0


def read_texts_by_reader(data: bytes, format: str) -> Iterator[list[tuple[str, str]]]:
    """Return the (place, text) pairs of each reader of a format; ``format+ocr``: this OCR reads its pictures too.

    Raises:
        DataError: the file cannot be read.
    """
    for package in ("pdfminer", "pypdfium2", "pikepdf"):
        logging.getLogger(package).setLevel(logging.CRITICAL + 1)  # their warnings may quote the file
    format, _, ocr = format.partition("+")
    readers: list[tuple[str, tuple[str, ...]]] = [(name, ()) for name in VIEWS[format]]
    for name, settings in [*readers, (_RECOGNIZED, (ocr,))] if ocr else readers:
        with hide_foreign_errors("the result cannot be read back"):
            texts = list(resolve_name(name)(data, *settings))
        yield texts


def find_leftovers_in_file(data: bytes, format: str, covered: Sequence[str], expected: str) -> list[Leftover]:
    """Return the leftovers that any reader of the format can still read in a file, each text once.

    Texts that identify nobody by themselves are none, see :func:`can_identify`.
    """
    by_index: dict[int, Leftover] = {}
    for texts in read_texts_by_reader(data, format):
        by_index = {
            leftover.index: leftover for leftover in find_leftovers_in_texts(texts, covered, expected)
        } | by_index
    return [by_index[index] for index in sorted(by_index) if can_identify(covered[index])]


def check_no_leftovers(
    data: bytes,
    format: str,
    covered: Mapping[str, str],
    expected: str,
    repair: Callable[[bytes, Mapping[str, str]], bytes] | None = None,
    *,
    quotes: bool = False,
) -> bytes:
    """Check that a result contains no covered text more often than allowed, and return it.

    Args:
        data: the result.
        format: its name in ``VIEWS``.
        covered: covered texts with their replacements.
        expected: the planned text.
        repair: covers texts wherever they stand in a result; it is called if there are leftovers, and once more, with
            their words too, if there still are.
        quotes: whether the message quotes the leftovers.

    Raises:
        RefusedContent: it does, also after the repairs; the message gives number and places.
    """
    texts = list(covered)
    leftovers = find_leftovers_in_file(data, format, texts, expected) if texts else []
    for has_words in (False, True):
        if leftovers and repair is not None:
            originals = {texts[leftover.index]: covered[texts[leftover.index]] for leftover in leftovers}
            words = ((word, new) for text, new in originals.items() for word in find_words(text) if has_words)
            data = repair(data, {word: new for word, new in words if len(word) >= LEAST_WORD} | originals)
            leftovers = find_leftovers_in_file(data, format, texts, expected)
    if leftovers:
        places = list(dict.fromkeys(place for leftover in leftovers for place in leftover.places))
        more = f" and {len(places) - 5} more places" if len(places) > 5 else ""
        quoted = f": {', '.join(repr(texts[leftover.index]) for leftover in leftovers)}" if quotes else ""
        raise RefusedContent(
            f"the result still contains {len(leftovers)} of {len(texts)} covered texts "
            f"({', '.join(places[:5])}{more}){quoted}"
        )
    return data
