"""Which passages of a text are in which language, so that a detector of names reads only what it knows.

A text is cut at line ends and behind sentences. A piece is told to be in another language only where its words in small
letters say so: they are neither English words nor names, and the identifier (py3langid) all but excludes English. So
names, headings, addresses, lists, capitals and code are no language of their own; they belong to the passages around
them. A form, an invoice or the like without sentences is in the language of most of its fields. English text hardly
ever reaches the identifier, which is loaded when the first other text comes.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.resources import files
from itertools import groupby, pairwise
from operator import attrgetter
from typing import Any

from allonym.detection import ANY_LANGUAGE
from allonym.detection.lexicon import PARTICLES
from allonym.detection.listed_names import has_listed_name
from allonym.detection.technical import find_technical_passages
from allonym.detection.words import read_ordinary_words, read_word_list, read_words_of, read_words_of_languages
from allonym.document import Document, Interval, subtract_intervals, trim_blanks
from allonym.policy import Policy
from allonym.protocol import AUTO
from allonym.text.memory import remember_texts
from allonym.text.words import LETTERS

ENGLISH = "en"
_OTHER = "?"  # a language that is still to be identified
_NONE = "zxx"  # the identifier's class for what is no language, such as hashes
_BORDER = re.compile(r"\n\s*|[.!?…][\"'”’»)\]]*\s+")
_CODE = re.compile(r"[@/\\_<>{}=#+]|[A-Za-z0-9][.:][A-Za-z0-9]")
_KNOWN = 0.4  # share of English words from which on a piece may be English
_SURE = 3  # words of no other language that make such a piece English
_FEW = 0.15  # share of such words up to which a piece may be in another language
_SHARED = read_word_list("shared_words")
_WORDS, _LETTERS = 2, 8  # in small letters, that another language needs at least
_ALL_WORDS = 3  # words of any letters that it needs: two words alone would rather be a name
_LEAST_ENGLISH = 5e-4  # probability of English from which on nothing else is told
_LEAST_PASSAGE = 60  # characters of a passage beside English; a shorter one would rather be a quotation
_LEAST_SHARE = 0.4  # of the characters between two English sentences, for which another language is told
_MINOR = 0.5  # characters in a language, compared with the document's first, below which it may be a mistake for that
_FORM_WORDS = 4  # words of the fields of forms that tell the language of a text without sentences
_NEAR = 0.02  # ratio of the probabilities by which two languages may be mistaken for one another


@dataclass(frozen=True, slots=True)
class Passage:
    """Half-open code points of a text, and the ISO 639 code of their language; empty where it is not told."""

    start: int
    end: int
    language: str


@dataclass(slots=True)
class _Piece:
    """A line or a sentence; its language, or ``_OTHER`` where this is no English; the chances of all languages."""

    start: int
    end: int
    language: str = ""
    chances: Mapping[str, float] | None = None


@remember_texts(64)
def identify_passages(text: str) -> tuple[Passage, ...]:
    """Cut a text into passages that touch, cover it, and differ in language from their neighbours."""
    pieces = [_Piece(start, end, _read_words(text, start, end)) for start, end in _cut_text(text)]
    _forget_minor_passages(pieces)
    for piece in pieces:
        if piece.language == _OTHER:
            _identify_piece(text, piece)
    if any(piece.chances for piece in pieces):
        _merge_similar_languages(pieces)
        _forget_minor_passages(pieces)
    if not any(piece.language for piece in pieces):
        form_language = _identify_form(text)
        for piece in pieces:
            piece.language = form_language
    _follow_neighbours(pieces)
    groups = ((language, list(group)) for language, group in groupby(pieces, attrgetter("language")))
    return tuple(Passage(group[0].start, group[-1].end, language) for language, group in groups)


def _identify_form(text: str) -> str:
    """The language that most words of fields and function words in a text are of; empty where they are too few."""
    words = set(map(str.lower, LETTERS.findall(text))) - _read_english_words()
    counts = {code: len(words & listed) for code, listed in _read_form_and_function_words().items()}
    first = min(counts, key=lambda code: (-counts[code], code))
    if counts[first] >= _FORM_WORDS:
        return first
    chances = _rank_languages(_remove_codes(text)) if counts[first] >= _WORDS else {}
    return first if next(iter(chances), "") == first and chances[ENGLISH] < _LEAST_ENGLISH else ""


@cache
def _read_form_and_function_words() -> Mapping[str, frozenset[str]]:
    forms, functions = read_words_of_languages("form_words"), read_words_of_languages("function_words")
    return {code: forms[code] | functions[code] for code in forms}


def count_languages(text: str) -> dict[str, int]:
    """The characters of the passages that are not English, by language, the most first."""
    counts: Counter[str] = Counter()
    for passage in _list_passages_beside_english(text):
        counts[passage.language] += passage.end - passage.start
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def find_main_language(text: str) -> str:
    """The language of most of a text; English where no other is told."""
    counts = count_languages(text)
    first = next(iter(counts), ENGLISH)
    return first if 2 * counts.get(first, 0) > len(text.strip()) else ENGLISH


def settle_language(policy: Policy, text: str) -> Policy:
    """A policy for the language of most of a text where its language is ``auto``; else the policy."""
    return _change_language(policy, find_main_language(text)) if policy.language == AUTO else policy


@lru_cache(maxsize=64)
def _change_language(policy: Policy, language: str) -> Policy:
    return policy.with_(language=language)


def read_model_languages(code: object) -> frozenset[str]:
    """The languages that a model for one language reads; any, where passages in its language cannot be told."""
    return frozenset({code}) if isinstance(code, str) and code in read_language_names() else ANY_LANGUAGE


def find_other_language(text: str, position: int) -> str:
    """The language of the passage at a position of a text; empty where it is English, or not told."""
    passages = _list_passages_beside_english(text)
    i = bisect_right(passages, position, key=attrgetter("start")) - 1
    return passages[i].language if i >= 0 and position < passages[i].end else ""


@remember_texts(16)
def _list_passages_beside_english(text: str) -> tuple[Passage, ...]:
    return list_unread(text, {ENGLISH})


def is_form_field(text: str, start: int, end: int) -> bool:
    """Tell whether some words are in a passage that is not English, and one is a word of its forms: "Geburtsort"."""
    fields = read_words_of("form_words", find_other_language(text, start))
    return any(word.lower() in fields for word in LETTERS.findall(text, start, end))


def list_unread(text: str, languages: Collection[str]) -> tuple[Passage, ...]:
    """List the passages of a text in other languages than ``languages``, without blanks at their ends.

    What lies between two of them and is in no language of its own belongs to the first. Code, logs and data are in no
    language.
    """
    if ANY_LANGUAGE.issubset(languages):
        return ()
    unread: list[Passage] = []
    passages = identify_passages(text)
    others = [bool(passage.language) and passage.language not in languages for passage in passages]
    for i, passage in enumerate(passages):
        if others[i]:
            unread.append(passage)
        elif not passage.language and 0 < i < len(passages) - 1 and others[i - 1] and others[i + 1]:
            unread[-1] = replace(unread[-1], end=passage.end)
    technical = find_technical_passages(text) if unread else ()
    rests = ((*rest, p.language) for p in unread for rest in subtract_intervals((p.start, p.end), technical))
    trimmed = (Passage(*trim_blanks(text, start, end), language) for start, end, language in rests)
    return tuple(p for p in trimmed if p.start < p.end)


def hide_unread(document: Document, languages: Collection[str]) -> Document:
    """Return a document with line ends in place of its passages in other languages than ``languages``."""
    text = document.text
    passages = list_unread(text, languages)
    if not passages:
        return document
    pieces: list[str] = []
    position = 0
    for passage in passages:
        pieces += (text[position : passage.start], "\n" * (passage.end - passage.start))
        position = passage.end
    return replace(document, text="".join((*pieces, text[position:])))


@cache
def read_language_names() -> Mapping[str, str]:
    """The languages that passages are told apart by: code to English name."""
    lines = files("allonym.detection").joinpath("languages.tsv").read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t") for line in lines if not line.startswith("#"))


def name_languages(codes: Iterable[str]) -> str:
    """The English names of languages, in the given order, between commas."""
    return ", ".join(read_language_names().get(code, code) for code in codes)


def describe_unread(unread: Mapping[str, int], characters: int, *, is_covered: bool = False) -> str:
    """Say in which part of a text names were not looked for.

    Args:
        unread: language to the characters of its passages.
        characters: of the whole text.
        is_covered: whether the passages are covered whole.
    """
    share = 100 * sum(unread.values()) / max(1, characters)
    shown = f"{min(share, 100):.0f}" if share >= 1 else "less than 1"
    languages = name_languages(sorted(unread, key=lambda code: (-unread[code], code)))
    return f"names were not looked for in {shown} % of the text: {languages}{'; it is covered whole' * is_covered}"


def _cut_text(text: str) -> Iterator[Interval]:
    start = 0
    for border in _BORDER.finditer(text):
        yield start, border.end()
        start = border.end()
    if start < len(text):
        yield start, len(text)


@cache
def _read_english_words() -> frozenset[str]:
    return read_word_list("function_words") | read_ordinary_words()


def _read_words(text: str, start: int, end: int) -> str:
    """What the words of a piece say alone: English, ``_OTHER``, or nothing."""
    if "@" in text[start:end]:  # "mail" and "example" in an address are no English
        text = _remove_codes(text[start:end])
        start, end = 0, len(text)
    everything, words = _split_words(text, start, end)
    vocabulary = _read_english_words()
    english = [word for word in words if word in vocabulary]
    sure = sum(word not in _SHARED for word in english)
    if len(english) > _KNOWN * len(words) and sure:
        return ENGLISH if sure >= _SURE else ""
    if sure > _FEW * len(words):
        return ""
    if _can_be_sentence(everything, words) and _can_be_sentence(*_split_words(_remove_codes(text[start:end]))):
        return _OTHER
    return ""


def _can_be_sentence(everything: Sequence[str], words: Sequence[str]) -> bool:
    """Whether words suffice to ask for their language; particles of names, such as "von", do not count."""
    words = list(dict.fromkeys(word for word in words if word not in PARTICLES))
    few = len(words) < _WORDS or len(everything) < _ALL_WORDS
    return sum(map(len, words)) >= _LETTERS and not (few and words[0][0].islower())


def _remove_codes(text: str) -> str:
    """A text without addresses, paths, tags and the like."""
    return " ".join(word for word in text.split() if not _CODE.search(word))


def _split_words(text: str, start: int = 0, end: int = sys.maxsize) -> tuple[list[str], list[str]]:
    """All words, and those of several letters that do not begin with a capital, as in scripts without capitals."""
    words = LETTERS.findall(text, start, end)
    return words, [word for word in words if len(word) > 1 and not word[0].isupper()]


def _identify_piece(text: str, piece: _Piece) -> None:
    """Ask the identifier for the language of a piece."""
    sentence = _remove_codes(text[piece.start : piece.end])
    chances = _rank_languages(sentence)
    first = next(iter(chances))
    is_other = first not in (ENGLISH, _NONE) and chances[ENGLISH] < _LEAST_ENGLISH
    if is_other and not _has_mostly_names(_split_words(sentence)[1]):
        piece.language, piece.chances = first, chances
    else:
        piece.language = ""


def _has_mostly_names(words: Sequence[str]) -> bool:
    """Whether most letters of some words in small letters are those of people's names."""
    names = sum(len(word) for word in words if has_listed_name([word]))
    return 2 * names > sum(map(len, words))


@cache
def _load_identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages([*read_language_names(), _NONE])
    return identifier


def _rank_languages(text: str) -> Mapping[str, float]:
    """The probabilities of the languages, the likeliest first."""
    return dict(_load_identifier().rank(text))


def _merge_similar_languages(pieces: Iterable[_Piece]) -> None:
    """Give pieces in a minor language of the text the main one's, where that is nearly as likely: Croatian, Bosnian."""
    identified = [(piece, piece.chances) for piece in pieces if piece.chances]
    sizes: Counter[str] = Counter()
    for piece, _ in identified:
        sizes[piece.language] += piece.end - piece.start
    main = min(sizes, key=lambda code: (-sizes[code], code))
    for piece, chances in identified:
        is_minor = sizes[piece.language] < _MINOR * sizes[main]
        if is_minor and chances[main] >= _NEAR * chances[piece.language]:
            piece.language = main


def _forget_minor_passages(pieces: Sequence[_Piece]) -> None:
    """Forget the languages between two English pieces where they are told for few of the characters.

    In a text without English that is so for the text as a whole.
    """
    english = [i for i, piece in enumerate(pieces) if piece.language == ENGLISH]
    for start, end in pairwise([-1, *english, len(pieces)]):
        between = pieces[start + 1 : end]
        size = sum(piece.end - piece.start for piece in between if piece.language)
        length = sum(piece.end - piece.start for piece in between)
        if size < max(_LEAST_SHARE * length, _LEAST_PASSAGE if english else 0):
            for piece in between:
                piece.language = ""


def _follow_neighbours(pieces: Sequence[_Piece]) -> None:
    """Give each piece whose language is not told that of the pieces around it, where these agree.

    The ends of a text count as English where it has English pieces, since a greeting may hold no English sentence.
    """
    certain = [i for i, piece in enumerate(pieces) if piece.language]
    if not certain:
        return
    ends = {ENGLISH} if any(piece.language == ENGLISH for piece in pieces) else set()
    for i, piece in enumerate(pieces):
        if piece.language:
            continue
        place = bisect_left(certain, i)
        around = {pieces[j].language for j in certain[max(0, place - 1) : place + 1]}
        around |= ends if place in (0, len(certain)) else set()
        if len(around) == 1:
            piece.language = around.pop()
