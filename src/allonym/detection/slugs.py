"""Slugs: names as ids, links and file names hold them, such as ``barnaby-osgood`` for a Barnaby Osgood in the text.

A slug has the words of a name in small or other letters, without diacritics, joined by ``-``, ``_``, ``.``, ``+`` or
``%20``, or by nothing. It counts only where the text holds the name itself. A part of a person's name counts where it
is joined to other text, as in paths, file names and lists of keywords: ``/people/osgood``, ``cv-osgood.pdf``. So does
a company's name of one word, as it is written: ``Offer_Harrowby.pdf``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from urllib.parse import unquote

from allonym.detection import TAGGER
from allonym.detection.listed_names import has_listed_name, is_typical_name
from allonym.detection.words import read_dictionary, read_word_list
from allonym.document import Document, Reach, Span
from allonym.labels import Taxonomy
from allonym.text.fold import fold, fold_spellings, to_ascii_letters
from allonym.text.names import TITLES
from allonym.text.prose import read_common_words
from allonym.text.words import find_words

SLUG = "echo:slug"
"""Source of slugs."""

_NAMES = ("PERSON", "ORGANIZATION", "LOCATION")
_LEAST_SCORE = 0.6  # of a name that is followed
_MOST_WORDS = 5
_LEAST_LETTERS = 8  # of a slug without joints
_LEAST_USER_NAME = 6  # letters of an initial with a family name
_NUMBER = "#"
"""What marks a user name that is too short to be followed without a number behind it."""
_LEAST_WORD = 2
_LEAST_TELLING, _LONGEST_WORD = 4, 40
_LETTER = r"(?:[^\W_]|%[89A-Fa-f][0-9A-Fa-f])"
_WORD = f"{_LETTER}++"
_JOINT = r"(?:[-_.+]{1,2}|%20|%2[BbDd])"
_LONG = rf"{_LETTER}{{{min(_LEAST_LETTERS, _LEAST_USER_NAME)},}}+"
_CHAIN = re.compile(rf"(?<![^\W_])(?:{_WORD}(?:{_JOINT}{_WORD})+|{_LONG})(?![^\W_])")
_JOINED = re.compile(rf"[^\W_]{_JOINT}[^\W_]")
_JOINED_WORD = re.compile(
    rf"(?:(?<=[/\\\\=&#?@_~,-])|(?<=[^\W_]\.)){_WORD}(?!')|(?<![^\W_]){_WORD}(?=[/\\\\@_-]|[.,][^\W_])"
)
_PIECE = re.compile(rf"({_WORD})(?:{_JOINT}|\Z)")


def find_slugs(document: Document, spans: Sequence[Span], taxonomy: Taxonomy) -> list[Span]:
    """Find the slugs of the names of people, companies and places (score 0.6 and up) among ``spans``.

    In files with fields or attributes, a field that is a single word of a person's name counts too: ``value="osgood"``.
    """
    text = document.text
    labels: dict[tuple[str, ...], str] = {}
    words: dict[str, str] = {}
    joined: dict[str, str] = {}
    words_as_written: dict[str, str] = {}
    for name, label in {text[s.start : s.end]: s.label for s in spans if s.score >= _LEAST_SCORE}.items():
        family = taxonomy.lineage(label)[-1]
        if family in _NAMES and any(map(str.isspace, name)):
            labels |= dict.fromkeys(list_slug_words(name, is_person=family == "PERSON"), label)
        if family == "PERSON":
            telling = list(_list_telling_words(name))
            words |= dict.fromkeys(telling, label)
            if telling != [fold(name)] or has_listed_name(telling):
                joined |= dict.fromkeys(telling, label)
        elif family == "ORGANIZATION" and list(_list_telling_words(name)) == [fold(name)]:
            words_as_written[name] = label
    reach = Reach((s.start, s.end) for s in spans if s.source != TAGGER)
    slugs = list(_find_in_chains(text, labels, reach)) if labels else []
    pieces = [match.span() for match in _JOINED_WORD.finditer(text)] if joined or words_as_written else []
    fields = document.parts if words and document.roles else ()
    reach = Reach([*((s.start, s.end) for s in slugs), *((s.start, s.end) for s in spans if s.source != TAGGER)])
    for places, names in ((pieces, joined), (fields, words)):
        for start, end in places:
            word = text[start:end] if end - start <= _LONGEST_WORD else ""
            piece_label = names.get(fold(word)) or (words_as_written.get(word) if names is joined else None)
            if piece_label and not reach.contains(start, end):
                slugs.append(Span(start, end, piece_label, 1.0, SLUG))
    return slugs


def _find_in_chains(text: str, labels: Mapping[tuple[str, ...], str], reach: Reach) -> Iterator[Span]:
    lengths = sorted({len(words) for words in labels}, reverse=True)
    for chain in _CHAIN.finditer(text):
        pieces = _split_chain(chain)
        position = 0
        while position < len(pieces):
            for n in lengths:
                rest = pieces[position : position + n]
                label = _find_value(labels, tuple(word for _, _, word in rest))
                if label and not reach.contains(rest[0][0], rest[-1][1]):
                    yield Span(rest[0][0], rest[-1][1], label, 1.0, SLUG)
                    position += n - 1
                    break
            position += 1


def _find_value(values: Mapping[tuple[str, ...], str], words: tuple[str, ...]) -> str:
    """Return the value of a slug's words, or of a user name that a number follows: "zbrook2"; else empty."""
    value = values.get(words, "")
    if not value and len(words) == 1 and (base := words[0].rstrip("0123456789")) != words[0]:
        value = values.get((base,), "") or values.get((base + _NUMBER,), "")
    return value


def _list_telling_words(name: str) -> Iterator[str]:
    for spelling in fold_spellings(name):
        for word in find_words(spelling):
            if len(word) >= _LEAST_TELLING and word not in TITLES and not _is_ordinary(word):
                yield word


def _is_ordinary(word: str) -> bool:
    return word in _read_plain_words() or (word in read_dictionary() and not is_typical_name(word))


@cache
def _read_plain_words() -> frozenset[str]:
    """Words that pages use as names of their own parts: ``customer-service``."""
    lists = map(read_word_list, ("technical_words", "form_fields", "departments", "ambiguous_names"))
    return read_common_words().union(*lists)


@cache
def _list_ordinary_words() -> frozenset[str]:
    return read_dictionary() | _read_plain_words()


def _split_chain(chain: re.Match[str]) -> list[tuple[int, int, str]]:
    """Return the words of a chain, folded, with their half-open offsets in the text."""
    pieces = _PIECE.finditer(chain.string, chain.start(), chain.end())
    return [(*p.span(1), fold(unquote(p[1]) if "%" in p[1] else p[1])) for p in pieces]


def list_slug_words(name: str, *, is_person: bool) -> Iterator[tuple[str, ...]]:
    """Yield the words of the slugs of a name, folded; those without joints as one word.

    A name of ordinary words alone, such as Customer Service, has a slug only where a person bears it.

    >>> sorted(list_slug_words("Zoë Brook", is_person=True))
    [('brook', 'zoe'), ('brookzoe',), ('zbrook',), ('zoe', 'brook'), ('zoebrook',)]
    """
    if is_person and ", " in name:  # "Brook, Zoë"
        name = " ".join(reversed(name.split(", ", 1)))
    for spelling in fold_spellings(name):
        words = tuple(word for word in find_words(spelling) if not (is_person and word in TITLES))
        is_ordinary = _read_plain_words().issuperset(words)
        least = 1 if is_person else _LEAST_WORD  # initials
        if not 1 < len(words) <= _MOST_WORDS or min(map(len, words)) < least or (is_ordinary and not is_person):
            continue
        orders = {words, (*words[-1:], *words[:-1]), (words[0], words[-1])} if is_person else {words}
        for order in sorted(orders):
            yield order
            joined = "".join(order)
            if len(joined) >= _LEAST_LETTERS and joined not in read_dictionary():
                yield (joined,)
        for user_name in dict.fromkeys(words[0][0] + w for w in (*words[1:], "".join(words[1:]))) if is_person else ():
            if user_name not in _list_ordinary_words():
                yield (user_name if len(user_name) >= _LEAST_USER_NAME else f"{user_name}{_NUMBER}",)


def find_slug_names(text: str, spans: Iterable[Span], taxonomy: Taxonomy) -> dict[str, str]:
    """Return the slugs among the spans with the names, among the other spans, that they stand for.

    A finding of whatever source that consists of joined words, such as a cell, may be a slug.
    """
    names: dict[str, str] = {}  # to families
    slugs: set[str] = set()
    for span in sorted(spans):
        family = taxonomy.lineage(span.label)[-1]
        if family in _NAMES:
            surface = text[span.start : span.end]
            if any(map(str.isspace, surface)):
                names.setdefault(surface, family)
            elif span.source == SLUG or _JOINED.search(surface):
                slugs.add(surface)
    if not slugs:
        return {}
    by_words: dict[tuple[str, ...], str] = {}
    for name, family in names.items():
        for words in list_slug_words(name, is_person=family == "PERSON"):
            by_words.setdefault(words, name)
    return {slug: name for slug in slugs if (name := _find_value(by_words, _split_slug(slug)))}


def _split_slug(slug: str) -> tuple[str, ...]:
    return tuple(word for chain in [_CHAIN.fullmatch(slug)] if chain for _, _, word in _split_chain(chain))


def write_slug(name: str, old: str) -> str:
    """Write a name as a slug: with the joints and the capitals of an old one.

    >>> write_slug("Émile Carter", "barnaby_osgood"), write_slug("Émile Carter", "BarnabyOsgood")
    ('emile_carter', 'EmileCarter')
    >>> write_slug("李伟", "ada_brook")
    '李伟'
    """
    first = _PIECE.match(old)
    joint = "" if first is None else old[first.end(1) : first.end()]
    words = [to_ascii_letters(word) or word for word in find_words(name)]
    return joint.join(word.lower() if old.islower() else word.upper() if old.isupper() else word for word in words)
