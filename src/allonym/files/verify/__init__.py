"""Read a result back and look for what was to be gone: texts are counted in it, and in what the plan made.

A text that was covered may stand elsewhere as an ordinary word that stays ("May"). So a result fails where it holds
a covered text more often than the text that the plan made. Spaces, hyphens, ligatures, accents' composition and case
make no difference. Words of a covered text are looked for alone, too.
"""

from __future__ import annotations

import logging
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import pairwise

from allonym.errors import AllonymError, DataError, RefusedContent
from allonym.text.fold import Level, fold
from allonym.text.words import find_words

_OFFICE = tuple(f"allonym.files.verify.office:{name}_texts" for name in ("office", "rejected", "raw"))
VIEWS: Mapping[str, tuple[str, ...]] = {
    "pdf": (
        "allonym.files.verify.pdf:shown_texts",
        "allonym.files.verify.pdf:read_texts",
        "allonym.files.verify.pdf:raw_texts",
        "allonym.files.verify.pdf:byte_texts",
    ),
    "docx": _OFFICE,
    "xlsx": _OFFICE,
}
"""Format to its readers, ``"module:function"``, each ``(data: bytes) -> Iterator[(place, text)]``.

They share no code with the readers and writers of :mod:`allonym.files`. Each is counted for itself.
"""

LEAST_WORD = 4
"""Letters and digits of the shortest word that is looked for alone."""

LEAST_LOOSE = 9
"""Letters and digits of the shortest text that is also looked for inside of words, where spaces may have been lost."""

_BROKEN = re.compile(r"(?<=[^\W\d_])(?:[-\u2010\ufffe\x02]\s*\n\s*|[\u00ad\ufffe\x02]\s*)(?=[^\W\d_])")
_MARKS = "\u00ad\u200b\u200c\u200d\u2060\ufeff"


@dataclass(frozen=True, slots=True)
class Leftover:
    """A covered text that can still be read.

    Attributes:
        index: which of the covered texts, from 0.
        places: where it, or a word of it, stands.
        excess: how many times more often than it may.
    """

    index: int
    places: tuple[str, ...]
    excess: int


@dataclass(slots=True)
class _Squeezed:
    """A text without all but letters and digits, and where in it words begin and end."""

    text: str = field(repr=False)
    borders: list[int] = field(repr=False)

    @classmethod
    def squeeze_text(cls, text: str) -> _Squeezed:
        text = _BROKEN.sub("", text)
        text = fold(text, Level.CASE)
        pieces: list[str] = []
        borders: list[int] = []
        position = 0
        for word in find_words(text.translate(dict.fromkeys(map(ord, _MARKS)))):
            borders.append(position)
            pieces.append(word)
            position += len(word)
        return cls("".join(pieces), [*borders, position])

    def count_text(self, needle: str, *, loose: bool, tight: bool) -> int:
        """How often the text holds ``needle``: ``loose`` also inside of words, ``tight`` only in one piece."""
        count = 0
        position = self.text.find(needle)
        while position >= 0:
            first = bisect_left(self.borders, position)
            last = bisect_left(self.borders, position + len(needle))
            bounded = self.borders[first] == position and self.borders[last] == position + len(needle)
            if loose or (bounded and (not tight or last == first + 1)):
                count += 1
                position = self.text.find(needle, position + len(needle))
            else:
                position = self.text.find(needle, position + 1)
        return count


def list_leftovers(texts: Iterable[tuple[str, str]], covered: Sequence[str], expected: str) -> list[Leftover]:
    """Which covered texts stand in the texts more often than in the expected one.

    Args:
        texts: (place, text) pairs of a result.
        covered: what was to be gone, once for each time or once in all.
        expected: what the plan made of the source: covered texts may stand as often as in it.

    Returns:
        One for each covered text that can still be read, in their order.
    """
    pages = [(place, _Squeezed.squeeze_text(text)) for place, text in texts]
    allowed = _Squeezed.squeeze_text(expected)
    wanted_all = {needle for text in covered for needle in _list_needles(text)}
    # most stand nowhere, which one look at all pages tells
    covered_pages: dict[str, tuple[tuple[str, ...], int]]
    covered_pages = dict.fromkeys(wanted_all - _find_standing(wanted_all, [page.text for _, page in pages]), ((), 0))
    out: list[Leftover] = []
    for index, text in enumerate(covered):
        for needle in _list_needles(text):
            if needle not in covered_pages:
                covered_pages[needle] = _count_excess(pages, needle, allowed)
            places, excess = covered_pages[needle]
            if excess > 0:
                out.append(Leftover(index, places, excess))
                break
    return out


def _find_standing(needles: Iterable[str], pages: Sequence[str]) -> set[str]:
    """Those of the wanted that stand in a page, in one pass over all pages; what is wanted is letters and digits."""
    import re2

    listed = sorted(needles)
    options = re2.Options()
    options.max_mem, options.log_errors = 1 << 29, False
    words = re2.Set.SearchSet(options)
    for word in listed:
        words.Add(word)
    words.Add("\n\n")
    words.Compile()
    matches = words.Match("\n".join(pages) + "\n\n") or []
    if len(listed) not in matches:  # not even the end was reached, for want of memory
        return set(listed)
    return {listed[n] for n in matches if n < len(listed)}


def _list_needles(text: str) -> list[str]:
    """The text without spaces and signs, then its longer words."""
    squeezed = _Squeezed.squeeze_text(text)
    words = [squeezed.text[a:b] for a, b in pairwise(squeezed.borders)]
    return [w for w in dict.fromkeys((squeezed.text, *(w for w in words if len(w) >= LEAST_WORD))) if w]


def _count_excess(
    pages: Sequence[tuple[str, _Squeezed]], needle: str, allowed: _Squeezed
) -> tuple[tuple[str, ...], int]:
    # Of few signs, two neighbours of a table make many ("4" and "1" are not 41).
    ways = [{"loose": False, "tight": len(needle) < LEAST_WORD}]
    if len(needle) >= LEAST_LOOSE:
        ways.append({"loose": True, "tight": False})
    for way in ways:
        counts = {place: n for place, page in pages if (n := page.count_text(needle, **way))}
        excess = sum(counts.values()) - allowed.count_text(needle, **way) if counts else 0
        if excess > 0:
            return tuple(counts), excess
    return (), 0


def read_views(data: bytes, format: str) -> Iterator[list[tuple[str, str]]]:
    """What each reader of a format reads in a file, as (place, text) pairs.

    Raises:
        DataError: the file cannot be read.
    """
    for package in ("pdfminer", "pypdfium2", "pikepdf"):
        logging.getLogger(package).setLevel(logging.CRITICAL + 1)  # their warnings may quote the file
    for name in VIEWS[format]:
        module, _, attribute = name.partition(":")
        try:
            texts = list(getattr(import_module(module), attribute)(data))
        except (AllonymError, MemoryError):
            raise
        except Exception as error:  # other packages raise what they meet, and their words may quote the file
            raise DataError(f"the result cannot be read back ({type(error).__name__})") from None
        yield texts


def find_leftovers(data: bytes, format: str, covered: Sequence[str], expected: str) -> list[Leftover]:
    """As :func:`list_leftovers`, of a file: what any of the format's readers can still read, each text once."""
    leftovers_by_index: dict[int, Leftover] = {}
    for texts in read_views(data, format):
        for leftover in list_leftovers(texts, covered, expected):
            leftovers_by_index.setdefault(leftover.index, leftover)
    return [leftovers_by_index[index] for index in sorted(leftovers_by_index)]


def check_result(data: bytes, format: str, covered: Sequence[str], expected: str) -> None:
    """See that a result holds none of the covered texts more often than it may.

    Raises:
        RefusedContent: it does; the message says how many and where, and quotes none.
    """
    covered_texts = list(dict.fromkeys(covered))
    if not covered_texts:
        return
    leftovers_found = find_leftovers(data, format, covered_texts, expected)
    if leftovers_found:
        places = list(dict.fromkeys(place for leftover in leftovers_found for place in leftover.places))
        more = f" and {len(places) - 5} more places" if len(places) > 5 else ""
        raise RefusedContent(
            f"the result still holds {len(leftovers_found)} of {len(covered_texts)} covered texts "
            f"({', '.join(places[:5])}{more})"
        )
