"""Names by lists and titles alone, for passages in languages that no detector of names reads.

A given name of the knowledge base with a capitalised word behind it is a full name ("Anna Schneider"), also inflected
("z Tomaszem Kowalskim") where the language has capitals for names only; so is a capitalised word before a listed family
name. What follows a title, a salutation or the field of a form is a name ("Herrn Schneider", "Nombre: Lucía"). The
family name of somebody found is followed through the text. Large towns and countries are found as they are listed.
Names in small letters and most family names alone are not found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from allonym.detection import TAGGER
from allonym.detection.lexicon import PARTICLES, lower_alphanumerics
from allonym.detection.words import (
    read_dictionary,
    read_no_names,
    read_ordinary_words_of,
    read_word_list,
    read_words_of,
)
from allonym.document import Interval, Reach, Span
from allonym.kb import KnowledgeBase
from allonym.text.fold import fold
from allonym.text.prose import read_common_words
from allonym.text.words import compile_word_pattern

if TYPE_CHECKING:
    from allonym.detection.languages import Passage

_WORD = compile_word_pattern("'’-", digits=False)
_GAP = re.compile(r"[ \xa0]|\.[ \xa0]?")
_LEAST_WEIGHT = 20  # of a given name in the knowledge base: how typical of its origin
_RARE_WEIGHT = 10  # the same, inside of a sentence and before a capitalised word that is no common one
_LEAST_LETTERS = 4  # of a listed name; shorter ones are words of some language: "An", "Sie", "Von"
_MOST_WORDS = 3  # behind a given name or a title
_ARTICLES = frozenset({"der", "den", "het", "il"})
_SCORE = 0.8
IN_PATH = "path:name"
"""Source of the names in paths."""

_SOURCE = "lexicon:listed-name"
_FAMILY_WEIGHT = 40  # of a family name that tells what stands before it, and of an inflected given name
_TYPICAL_WEIGHT = 60
_JOINED = re.compile(  # in a path, or with the ending of a file's name
    r"(?:(?<=[/\\])([A-Z][a-z]+(?:_[A-Z][a-z]+){1,2})(?![A-Za-z])"
    r"|(?<![^\s\"'(=:])([A-Z][a-z]+(?:_[A-Z][a-z]+){1,2})(?=[\d_-][\w-]*\.\w|[/\\.]\w))"
)
_NO_LAST_NAMES = ("no_names", "form_fields", "roles", "departments")
_NAME_WORD = re.compile(r"(?:[OD]['’]|Ma?c)?[^\W\d_a-z][^\W\d_A-Z]+(?:['’-]?[^\W\d_])*|[A-Z]\.?")
_LINE_START = re.compile(r"^[ \t>]*(?=[^\W\d_])", re.MULTILINE)
_GREETING = 60  # characters of a greeting at most
_CAPITALS = 0.25  # share of capitalised words within sentences from which on a capital tells nothing
_ENDING = 4  # letters of an ending
_TOWN = (
    5  # class of size of a town: 100,000 inhabitants; a million if nouns have capitals and its name is a common word
)
_LEAST_NOUN = 6  # letters of a place where nouns have capitals
_LONGEST_MARGIN = 200  # characters without a word before the first sentence of a text, at most
_NO_WORDS = re.compile(r"[ \t\n\r\"'„“”«»‚‘’(–—*-]*+")
_SENTENCE_END = re.compile(r"(?:[.!?…:\n\r]|[:;]-?[)(DP])[\s\"'„“”«»‚‘’(–—*-]*\Z")
_NAME = r"[^\W\d_a-zß-öø-ÿ][^\W\d_]+(?:[ -][^\W\d_a-zß-öø-ÿ][^\W\d_]+){0,3}"
_SALUTATION = re.compile(rf"^[ \t]*([^\W\d_]{{3,12}})[ ]({_NAME})[ ]?[,!:]", re.MULTILINE)
_FIELD = re.compile(rf"^[^\n:]{{0,24}}?([^\W\d_]{{2,20}})[ ]?:[ \t]+({_NAME})[ \t]*\.?[ \t]*(?:$|,|\()", re.MULTILINE)


@lru_cache(maxsize=16384)
def get_name_weight(word: str, part: str = "first", least: int = _LEAST_LETTERS) -> int:
    """How typical a word is as a given or as the last name, 0 to 100; 0 for words shorter than ``least``."""
    if len(word) < least:
        return 0
    facts = KnowledgeBase.open().name_facts(word)
    return max((fact.weight for fact in facts if fact.part == part), default=0)


def has_listed_name(words: Iterable[str]) -> bool:
    """Whether a word is listed as a given or family name of people."""
    facts = KnowledgeBase.open().name_facts
    return any(len(word) >= _LEAST_LETTERS and facts(word) for word in words)


@lru_cache(maxsize=16384)
def is_typical_name(word: str) -> bool:
    """Whether many people have a word as their given or family name, also a short one, as "Ko" is."""
    return any(fact.weight >= _TYPICAL_WEIGHT for fact in KnowledgeBase.open().name_facts(word))


@lru_cache(maxsize=16384)
def is_listed_firm(text: str) -> bool:
    """Whether a capitalised name is that of a well-known firm, and of no town and no person, as "Chase" is."""
    if not text[:1].isupper() or get_name_weight(text.split(" ")[0], least=1) or has_listed_name((text,)):
        return False
    items = KnowledgeBase.open().find(text)
    return {item.kind for item in items} <= {"company", "bank"} and items != ()


def is_given_name(text: str) -> bool:
    """Whether a capitalised word is a given name of many people, and no ordinary word as "May" is."""
    is_word = text.lower() in read_word_list("no_names") | read_word_list("given_names_too")
    return _NAME_WORD.fullmatch(text) is not None and not is_word and get_name_weight(text) >= _FAMILY_WEIGHT


@lru_cache(maxsize=16384)
def is_full_name(text: str) -> bool:
    """Whether a text is a given name of many people with one to three capitalised words behind it.

    The last is a listed family name, or no ordinary word: "Gareth Price", but no "Grace Period".
    """
    words = [word for word in text.split(" ") if word not in PARTICLES]
    if not 1 < len(words) <= 1 + _MOST_WORDS or not all(_NAME_WORD.fullmatch(word) for word in words):
        return False
    first, last = words[0], words[-1]
    forename_weight, surname_weight = (
        get_name_weight(first.partition("-")[0], least=3),
        get_name_weight(last, "last", least=2),
    )
    if (
        forename_weight
        and surname_weight
        and first.lower() not in read_dictionary() | read_word_list("no_names") | read_word_list("given_names_too")
    ):
        return True  # as pseudonyms are
    if first.lower() in read_word_list("no_names") or forename_weight < _TYPICAL_WEIGHT:
        return False
    if first.lower() in read_word_list("given_names_too"):
        return surname_weight >= _TYPICAL_WEIGHT
    is_word = any(last.lower() in words for words in (read_dictionary(), *map(read_word_list, _NO_LAST_NAMES)))
    return surname_weight >= _TYPICAL_WEIGHT or (len(last) >= _LEAST_LETTERS and not is_word)


def find_names_in_paths(text: str) -> Iterator[Span]:
    """Find full names that underscores join in paths and names of files: ``interviews/Margaret_Holloway.wav``."""
    for match in _JOINED.finditer(text) if "_" in text else ():
        words = match[match.lastindex or 0].split("_")
        last = next((n for n in range(len(words), 1, -1) if is_full_name(" ".join(words[:n]))), 0)
        if last:
            yield Span(match.start(), match.start() + len("_".join(words[:last])), "PERSON", _SCORE, IN_PATH)


def find_listed_names(text: str, passages: Sequence[Passage]) -> Iterator[Span]:
    """Find names of people and places in some passages of a text, disjoint, people first."""
    people = [Span(*place, "PERSON", _SCORE, _SOURCE) for passage in passages for place in _find_people(text, passage)]
    intervals = [(passage.start, passage.end) for passage in passages]
    people += _find_called_names(text, intervals, people)
    people += _find_family_names(text, intervals, people)
    yield from people
    covered = Reach((span.start, span.end) for span in people)
    for passage in passages:
        for span in _find_places(text, passage):
            if not covered.touches(span.start, span.end):
                yield span


def _find_people(text: str, passage: Passage) -> Iterator[Interval]:
    titles = read_word_list("titles_of_other_languages")
    words = list(_WORD.finditer(text, passage.start, passage.end))
    no_names = read_no_names(passage.language)
    no_particles = read_words_of("no_particles", passage.language)
    are_telling = _are_capitals_telling(text, words)
    i = 0
    while i < len(words):
        is_title = lower_alphanumerics(words[i][0]) in titles
        if is_title or _begins_name(text, words, i, passage.language, are_telling=are_telling):
            last = _find_last_word(text, words, i, titles, no_particles)
            first = i
            while first <= last and (
                lower_alphanumerics(words[first][0]) in titles or (is_title and words[first][0].lower() in no_names)
            ):
                first += 1
            if last > i and first <= last:
                yield words[first].start(), words[last].end()
                i = last
        i += 1


def _begins_name(text: str, words: Sequence[re.Match[str]], i: int, language: str, *, are_telling: bool) -> bool:
    """Whether a word is a listed given name, or may be one before a listed family name."""
    word = words[i][0]
    if not _is_capitalised(word):
        return False
    is_word = word.lower() in read_words_of("given_names_too", language)
    if get_name_weight(word) >= _LEAST_WEIGHT and not is_word:
        return True
    if (
        i + 1 == len(words)
        or not _is_capitalised(words[i + 1][0])
        or text[words[i].end() : words[i + 1].start()] != " "
    ):
        return False
    following = words[i + 1][0]
    is_inside = not _begins_sentence(text, words[i].start())
    if not is_inside and (word.lower() in read_ordinary_words_of(language) or word.lower() in read_no_names(language)):
        return False
    has_common_word = not read_common_words().isdisjoint((fold(word), fold(following)))
    if is_inside and not has_common_word and get_name_weight(word) >= _RARE_WEIGHT:
        return True
    is_family = len(following) >= _LEAST_LETTERS and get_name_weight(following, "last") >= _FAMILY_WEIGHT
    if len(word) == 3 and is_family and get_name_weight(word, least=3) >= _FAMILY_WEIGHT:
        return True
    if not are_telling or len(following) < _LEAST_LETTERS or len(word) < _LEAST_LETTERS:
        return False
    if is_family and (is_inside or not (has_common_word or fold(word) in read_dictionary())):
        return True
    return any(get_name_weight(form) >= _FAMILY_WEIGHT for form in _list_base_forms(word))


def _list_base_forms(word: str) -> Iterator[str]:
    """What a given name may be without its ending: "Tomaszem", "Zlatkom", "Nikole"."""
    for cut in (1, 2):
        base = word[:-cut]
        if len(base) >= _LEAST_LETTERS:
            yield base
            yield base + "a"


def _are_capitals_telling(text: str, words: Sequence[re.Match[str]]) -> bool:
    """Whether few words within sentences have a capital, unlike in German."""
    inner = [word[0] for word in words if not _begins_sentence(text, word.start())]
    return sum(map(_is_capitalised, inner)) <= max(2, _CAPITALS * len(inner))


def _begins_sentence(text: str, start: int) -> bool:
    is_first = start <= _LONGEST_MARGIN and _NO_WORDS.fullmatch(text, 0, start)
    return bool(is_first or _SENTENCE_END.search(text, max(0, start - 8), start))


def _find_called_names(text: str, passages: Sequence[Interval], people: Sequence[Span]) -> Iterator[Span]:
    """Find what follows a salutation at the beginning of a line, or the field of a form."""
    covered = Reach((span.start, span.end) for span in people)
    salutations = read_word_list("salutations_of_other_languages")
    fields = read_word_list("name_fields_of_other_languages")
    for pattern, listed in ((_SALUTATION, salutations), (_FIELD, fields)):
        for start, end in passages:
            for match in pattern.finditer(text, start, end):
                if match[1].lower() in listed and not covered.touches(*match.span(2)):
                    yield Span(*match.span(2), "PERSON", _SCORE, _SOURCE)


def _find_family_names(text: str, passages: Sequence[Interval], people: Sequence[Span]) -> Iterator[Span]:
    """Find further mentions of the last words of people's names, also inflected."""
    names = {_WORD.findall(text, span.start, span.end)[-1] for span in people}
    names = {name for name in names if len(name) >= _LEAST_LETTERS}
    by_stem: dict[str, list[str]] = {}
    for name in sorted(names):
        by_stem.setdefault(name[:_LEAST_LETTERS], []).append(name)
    covered = Reach((span.start, span.end) for span in people)
    for start, end in passages if names else ():
        words = list(_WORD.finditer(text, start, end))
        are_telling = _are_capitals_telling(text, words)
        small = {match[0] for match in words if match[0].islower()}
        for match in words:
            word = match[0]
            if word[:_LEAST_LETTERS] not in by_stem or not _is_capitalised(word) or covered.touches(*match.span()):
                continue
            is_inflected = are_telling and any(_is_inflection(word, name) for name in by_stem[word[:_LEAST_LETTERS]])
            is_word = word.lower() in small or fold(word) in read_common_words()  # "Przed" beside a "Przedborski"
            if word in names or (is_inflected and not is_word):
                yield Span(*match.span(), "PERSON", _SCORE, _SOURCE)


def _is_inflection(word: str, name: str) -> bool:
    """Whether a word and a name differ in their endings only."""
    shared = next((i for i, (a, b) in enumerate(zip(word, name, strict=False)) if a != b), min(len(word), len(name)))
    return (
        shared >= max(_LEAST_LETTERS, min(len(word), len(name)) - 2) and max(len(word), len(name)) - shared <= _ENDING
    )


def _find_places(text: str, passage: Passage) -> Iterator[Span]:
    """Find the words within sentences that are listed as a country or a large town."""
    words = list(_WORD.finditer(text, passage.start, passage.end))
    are_telling = _are_capitals_telling(text, words)
    least = _LEAST_LETTERS if are_telling else _LEAST_NOUN
    for word in words:
        if len(word[0]) < least or not _is_capitalised(word[0]) or _begins_sentence(text, word.start()):
            continue
        if word[0].lower() in read_no_names(passage.language):
            continue
        town = _TOWN if are_telling or word[0].lower() not in read_common_words() else _TOWN + 1
        items = KnowledgeBase.open().find(word[0], ("city", "country"))
        if items and (items[0].kind == "country" or items[0].size >= town):
            yield Span(*word.span(), items[0].kind.upper(), _SCORE, _SOURCE)


def _is_capitalised(word: str) -> bool:
    return word[0].isupper() and not word.isupper()


def _is_article(words: Sequence[re.Match[str]], place: int) -> bool:
    """Whether "der" and the like are no part of a name, as they are in "van der Berg"."""
    return words[place][0] in _ARTICLES and words[place - 1][0] not in PARTICLES


def _find_last_word(
    text: str, words: Sequence[re.Match[str]], first: int, titles: frozenset[str], no_particles: frozenset[str]
) -> int:
    """The last word of the name that begins with a title or a given name; ``first`` where nothing belongs to it."""
    last, place, count = first, first + 1, 0
    while place < len(words) and count < _MOST_WORDS:
        before, word = words[place - 1][0], words[place][0]
        gap = text[words[place - 1].end() : words[place].start()]
        is_short = len(before) == 1 or lower_alphanumerics(before) in titles
        if not _GAP.fullmatch(gap) or (gap[0] == "." and not is_short):
            break
        if _is_capitalised(word) and (len(word) > 2 or lower_alphanumerics(word) in PARTICLES):
            last = last if len(word) <= 2 else place
            count += lower_alphanumerics(word) not in titles
        elif not (len(word) == 1 and word.isupper()) and (
            word not in PARTICLES or word in no_particles or _is_article(words, place)
        ):
            break
        place += 1
    return last


def drop_greetings(text: str, candidates: Sequence[Span]) -> list[Span]:
    """Return the candidates without those of the tagger that are words of a greeting or a closing in another language.

    Such words stand at the beginning of a line: "Sehr geehrte Frau Brook", "Mit freundlichen Grüßen". A candidate that
    goes on behind them begins there. English has few words of this sort, all of which are no names.
    """
    if not any(span.source.startswith(TAGGER) for span in candidates) or not (greetings := _find_greetings(text)):
        return list(candidates)
    out = []
    for span in candidates:
        if span.source.startswith(TAGGER) and (end := greetings.find_furthest_end(span.start)) > span.start:
            while end < span.end and not text[end].isalnum():
                end += 1
            if end < span.end:
                out.append(replace(span, start=end))
        else:
            out.append(span)
    return out


def _find_greetings(text: str) -> Reach | None:
    greetings = read_word_list("greetings_of_other_languages")
    titles = read_word_list("titles_of_other_languages")
    places = []
    for line in _LINE_START.finditer(text):
        first = _WORD.match(text, line.end(), line.end() + _GREETING)
        if first is None or not _is_listed(first[0], greetings):
            continue
        words: list[re.Match[str]] = []
        count = 0  # of words of the greeting, before the first other one
        for word in _WORD.finditer(text, line.end(), line.end() + _GREETING):
            words.append(word)
            if not _is_listed(word[0], greetings):
                break
            count += 1
        is_greeting = count > 1 or (count and _ends_or_calls(text, words, titles))
        if is_greeting and not all(has_listed_name([word[0]]) for word in words[:count]):  # "Cara", "Cher"
            places.append((line.end(), words[count - 1].end()))
    return Reach(places) if places else None


def _is_listed(word: str, listed: frozenset[str]) -> bool:
    return word.lower() in listed or lower_alphanumerics(word) in listed


def _ends_or_calls(text: str, words: Sequence[re.Match[str]], titles: frozenset[str]) -> bool:
    """Whether one word of a greeting is all of its line, or calls on somebody: "Cordialement,", "Liebe Sabine"."""
    if len(words[0][0]) < _LEAST_LETTERS or text[words[0].end() : words[0].end() + 1] in ("", "\n", ",", "!", ":"):
        return len(words[0][0]) >= _LEAST_LETTERS
    return len(words) > 1 and (_is_capitalised(words[1][0]) or lower_alphanumerics(words[1][0]) in titles)
