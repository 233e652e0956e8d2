"""Names told by capitals and by the words beside them, in passages in languages that no detector of names reads.

Most languages write only names with a capital within sentences. There a run of capitalised words is a name, unless the
words are forms of address, bodies or roles that people write so ("Madame", "Ayuntamiento", "Najemca"). At the beginning
of a sentence a capital says nothing; a word counts there where it is a listed name or stands as a name elsewhere. In
German a given name counts where it is listed, and a town where a preposition leads to it. In all of these, initials
with a family name, and what follows the word for a body ("Bäckerei Holtkamp"), are found.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from allonym.detection.languages import Passage
from allonym.detection.lexicon import PARTICLES
from allonym.detection.listed_names import get_name_weight, has_listed_name, is_typical_name
from allonym.detection.words import read_no_names, read_ordinary_words_of, read_words_of, read_words_of_languages
from allonym.document import Reach, Span
from allonym.kb import KnowledgeBase
from allonym.text.fold import fold
from allonym.text.inflection import find_base_forms
from allonym.text.prose import read_common_words

_SOURCE = "lexicon:capitals"
_SCORE, _BODY_SCORE = 0.65, 0.7
_NOUNS_HAVE_CAPITALS = frozenset({"de", "lb"})
_UPPER = f"[A-Z{''.join(chr(c) for c in range(0xC0, 0x530) if chr(c).isupper())}]"
_LETTER = r"[^\W\d_]"
_ELISION = re.compile(r"(?i)(?:[dljmnstc]|qu|jusqu|lorsqu|puisqu|dell|all|nell|sull|dall|un|quest|gl|degl)['’]")
_WORD = re.compile(rf"{_LETTER}+(?:['’\-]{_LETTER}+)*\.?")
_JOINTS = re.compile(r"[ \xa0]")
_PARTICLES = PARTICLES | read_words_of_languages("particles")["all"]
_ABBREVIATIONS = read_words_of_languages("abbreviations")["all"]
_SENTENCE_END = re.compile(
    r"(?:\A|[.!?…:;•|]\s+|\n\s*|[.!?…:]?\s*[„“\"«»¿¡(–—-]\s?|\d\)\s|[:;]-?[)(DP]\s*|[a-zß-öø-ÿ][\"»”]?[.!?])"
    r"[\s\"'„“«»¿¡(*–—-]*\Z"
)
_LONGEST_BREAK = 12  # characters before a word that may end a sentence
_INITIALS = re.compile(rf"(?<![\w.\-/])(?:{_UPPER}\.[ \-]?){{1,3}}({_UPPER}{_LETTER}{{2,}}(?:[\-'’]{_LETTER}+)*)")
_TITLES = {"fr": ("M. ",), "es": ("D. ",)}
"""What looks like an initial and stands for "Monsieur" and "Don"."""
_GIVEN = 60  # weight of a given name that counts alone where nouns have capitals
_LISTED = 40  # the same at the beginning of a sentence elsewhere
_PLACES = ("city", "country")
_IN_ADDRESS = re.compile(r"[@_/]|\.\w")
_SHORTEST = 3  # letters of a name that no list knows
_MOST_WORDS = 6
_ROMAN_BEFORE = re.compile(r"\b[IVX]+ \Z")
_CODE = re.compile(
    rf"{_UPPER}-{_LETTER}{{1,3}}"
    r"|(?!M[ac]c?[A-Z]|[DL][aei]s?[A-Z]|Van[A-Z])[^\W\d_]+[^\W\d_A-Z][A-Z][^\W\d_]*|[A-Z]{2,5}[a-z]{1,2}"
)
"""What is no name: "I-a", and capitals within a word, but for "McKay" and "DeLuca"."""
_ROMAN = re.compile(r"[IVXLC]+\.?")
_DETERMINED = re.compile(
    r"(?i)\b(?:der|die|das|des|dem|den|ein\w*|kein\w*|dies\w*|jed\w*|im|am|zum|zur|vom|beim|ins|ans|zwei|drei)\Z"
)
_TOWARDS = re.compile(r"\b(?:[Ii]n|[Aa]us|[Nn]ach|bei|bis|Raum) \Z")
_HOME = re.compile(r"\b(?:[Gg]eboren|[Gg]eb\.|wohnhaft|wohne|wohnt|lebt|gemeldet)[^\n]{0,30} (?:in|aus) \Z")
_AT_HOME = re.compile(r" (?:geboren|gemeldet|wohnhaft|aufgewachsen|ansässig|wohnt|lebt)\b")
_BODY_JOINTS = (
    r"(?:de|du|des|del|di|da|do|dos|das|della|dei|degli|d['’]|la|las|los|le|les|im\.|św\.|w|we|am|an|der|dem|zum|zur|und"
    r"|van|het|St\.|Dr\.|dr|i|y|e|et|&) ?"
)
_BODY_TAIL = re.compile(
    rf"(?: (?:{_BODY_JOINTS}){{0,3}}(?:(?:[dl]['’])?{_UPPER}{_LETTER}+(?:['’\-]{_LETTER}+)*"
    rf"|(?:nr|n[º°]|no\.?) ?\d{{1,3}}(?![\d/.\-])|{_UPPER}\.)){{1,8}}"
)
_COMPOUND_BODY = re.compile(
    rf"(?:\bSt\.-)?\b{_UPPER}[\w\-]{{0,40}}"
    r"(?:[Kk]rankenhaus|-[Gg]ymnasium|-Schule|-Klinik|-Apotheke|[Ss]parkasse|[Vv]olksbank|[Bb]rauerei)"
    rf"(?: {_UPPER}[\w\-]+)?"
)
_TRADES = ("bäckerei", "metzgerei", "schreinerei", "spedition", "werkstatt", "zimmerei")
_PLAIN_BODIES = frozenset(("krankenhaus", "sparkasse", "volksbank", "brauerei"))
_SIGNED = re.compile(rf"(?m)^[ \t]*({_UPPER}{_LETTER}+(?:-{_UPPER}{_LETTER}+)?), {_UPPER}[\w\-]+[ \t]*$")

_FIELD = re.compile(rf"(?m)^[^\n:]{{0,40}}?([^\W\d_]+)[ ]?:[ \t]+({_UPPER}[^\n:;()]{{1,60}}?)[ \t.,]*$")
_PLACE_BEFORE = {
    "fr": "à en",
    "es": "en hacia hasta",
    "it": "a in",
    "pt": "em",
    "pl": "do ku od pod w we z ze",
    "nl": "in naar te uit",
    "sv": "från i till",
    "da": "fra i til",
    "no": "fra i til",
    "cs": "do v ve z ze",
    "sk": "do v vo z zo",
}
"""Language to the prepositions that lead to places."""


@dataclass(frozen=True, slots=True)
class _Word:
    start: int
    end: int
    text: str
    opens: bool
    """Whether it begins a sentence, so that its capital says nothing."""


def find_names_by_capitals(
    text: str, passages: Iterable[Passage], covered: Reach, read: Collection[str] = ()
) -> Iterator[Span]:
    """Find names in passages outside of the ``covered`` places; of two that overlap the longer one is to be kept.

    In the languages of ``read`` a tagger looks for names; there, capitals alone are not asked.
    """
    for passage in passages:
        yield from _find_bodies(text, passage)
        yield from _find_initials(text, passage)
        yield from _find_field_values(text, passage)
        if passage.language in read:
            continue
        if passage.language in _NOUNS_HAVE_CAPITALS:
            yield from _find_german_names(text, passage, covered)
        else:
            yield from _find_capital_runs(text, passage, covered)


def _split_words(text: str, passage: Passage) -> Iterator[_Word]:
    for match in _WORD.finditer(text, passage.start, passage.end):
        start, end = match.span()
        if text[end - 1] == "." and end - start > 2:
            end -= 1
        if (elision := _ELISION.match(text, start, end)) and elision.end() < end and text[elision.end()].isupper():
            start = elision.end()
        yield _Word(start, end, text[start:end], _opens_sentence(text, start))


def _list_small_words(text: str, words: Iterable[_Word]) -> set[str]:
    """The words in small letters that stand in no address."""
    return {
        word.text
        for word in words
        if word.text[0].islower()
        and text[word.start - 1 : word.start] not in ("@", ".", "_", "/", "-")
        and not _IN_ADDRESS.match(text, word.end)
    }


def _opens_sentence(text: str, start: int) -> bool:
    least = max(0, start - _LONGEST_BREAK)
    if not _SENTENCE_END.search(text, least, start):
        return False
    before = text[least:start].rstrip()
    if not before.endswith("."):
        return True
    if "\n" in text[least:start][len(before) :]:
        return True
    last = re.split(r"[\s(.]", before[:-1])[-1].lower()
    return last not in _ABBREVIATIONS and not (len(last) == 1 and before[-2].isupper())


def _is_capitalised(word: str) -> bool:
    return word[0].isupper() and (not word.isupper() or (len(word) == 1))


def _find_capital_runs(text: str, passage: Passage, covered: Reach) -> Iterator[Span]:
    words = list(_split_words(text, passage))
    small = _list_small_words(text, words)
    particles = _PARTICLES - read_words_of("no_particles", passage.language)
    runs = list(_list_runs(text, words, small, read_no_names(passage.language), particles, covered))
    inside = {word.text for run in runs for word in run if not word.opens}
    ordinary = read_ordinary_words_of(passage.language)
    for run in runs:
        words = _strip_opening_words(text, run, inside)
        if all(word.text.lower() in ordinary or word.text in _PARTICLES or len(word.text) == 1 for word in words):
            continue
        if len(words) > 1 or _can_stand_alone(words[0]):
            label = _choose_label(text, words, passage.language)
            yield Span(words[0].start, words[-1].end, label, _SCORE, _SOURCE)


def _list_runs(
    text: str,
    words: Sequence[_Word],
    small: set[str],
    no_names: frozenset[str],
    particles: frozenset[str],
    covered: Reach,
) -> Iterator[list[_Word]]:
    """Capitalised words in a row, with particles between them, that are no ordinary words."""
    run: list[_Word] = []
    joints: list[_Word] = []
    for word in words:
        joins = bool(run) and _JOINTS.fullmatch(text, (joints or run)[-1].end, word.start) is not None
        is_name = (
            _is_capitalised(word.text)
            and word.text.lower() not in no_names
            and word.text.lower() not in small
            and not _ROMAN.fullmatch(word.text)
            and not _CODE.fullmatch(word.text)
            and not covered.touches(word.start, word.end)
        ) or (joins and _is_shouted_family_name(text, run, word, no_names))
        if is_name and (not joins or len(run) > _MOST_WORDS or (word.opens and not joints)):
            if run:
                yield run
            run, joints = [word], []
        elif is_name:
            run += (*joints, word)
            joints = []
        elif joins and word.text in particles and len(joints) < 3:
            joints.append(word)
        elif run:
            yield run
            run, joints = [], []
    if run:
        yield run


def _fills_line(text: str, start: int, end: int, ends: Collection[str]) -> bool:
    """Whether a place begins a line, or what follows a colon, and one of the ``ends`` is right behind it."""
    before = text[max(0, start - _LONGEST_BREAK) : start].rstrip(" \t")[-1:]
    return before in ("", "\n", ":") and text[end : end + 1] in ends


def _is_shouted_family_name(text: str, run: Sequence[_Word], word: _Word, no_names: frozenset[str]) -> bool:
    """Whether a word in capitals is a family name, as in "Camille MOREAU"."""
    if not word.text.isupper() or len(word.text) < _SHORTEST or word.text.lower() in no_names:
        return False
    return _fills_line(text, run[0].start, word.end, ("", "\n")) or has_listed_name([run[-1].text])


def _strip_opening_words(text: str, run: list[_Word], inside: set[str]) -> list[_Word]:
    """The run without its first word where that only begins a sentence."""
    first = run[0]
    if not first.opens or first.text in inside:
        return run
    is_line = _fills_line(text, first.start, run[-1].end, ("", "\n", ","))
    is_common = fold(first.text) in read_common_words()
    if len(run) > 1 and (is_line or (has_listed_name([first.text]) and not is_common)):
        return run
    if len(run) == 1:
        is_name = get_name_weight(first.text) >= _LISTED and not is_common
        return run if is_name else []
    rest = run[1:]
    while rest and rest[0].text in _PARTICLES:
        rest = rest[1:]
    return rest


def _can_stand_alone(word: _Word) -> bool:
    bare = word.text.rstrip(".")
    if len(word.text) > len(bare):
        return False
    return len(bare) >= _SHORTEST or is_typical_name(bare.lower())


def _choose_label(text: str, run: Sequence[_Word], language: str) -> str:
    surface = text[run[0].start : run[-1].end]
    if not _is_listed_or_inflected(run[0].text, language):
        if items := KnowledgeBase.open().find(surface, _PLACES):
            return items[0].kind.upper()
        before = text[max(0, run[0].start - _LONGEST_BREAK) : run[0].start].split()
        if before and before[-1].lower() in _PLACE_BEFORE.get(language, "").split():
            return "CITY"
    return "PERSON"


def _is_listed_or_inflected(word: str, language: str) -> bool:
    """Whether a word is a listed name, or a form of a given name in its language: "Ewę"."""
    bases = (base for base, ending in find_base_forms(word.lower()) if ending.language == language)
    return has_listed_name([word]) or any(
        get_name_weight(base.capitalize(), least=_SHORTEST) >= _LISTED for base in bases
    )


def _find_german_names(text: str, passage: Passage, covered: Reach) -> Iterator[Span]:
    """Find listed given names alone, and towns behind prepositions, where every noun has a capital."""
    no_names = read_no_names(passage.language)
    words = list(_split_words(text, passage))
    ordinary = no_names | read_words_of("given_names_too", passage.language) | _list_small_words(text, words)
    names: set[str] = set()
    for is_second in (False, True):
        for word in words:
            bare = word.text
            if not _is_capitalised(bare) or len(bare) < _SHORTEST or covered.touches(word.start, word.end):
                continue
            if is_second:
                if word.opens and bare in names:
                    yield Span(word.start, word.end, "PERSON", _SCORE, _SOURCE)
                continue
            before = text[max(0, word.start - 60) : word.start]
            leads = _TOWARDS.search(before) is not None
            is_home = _HOME.search(before) or (leads and _AT_HOME.match(text, word.end))
            if is_home or (leads and bare.lower() not in no_names and KnowledgeBase.open().find(bare, _PLACES)):
                yield Span(word.start, word.end, "CITY", _SCORE, _SOURCE)
            elif (
                bare.lower() not in ordinary
                and (get_name_weight(bare, least=_SHORTEST) >= _GIVEN)
                and not _DETERMINED.search(before.rstrip())
            ):
                names.add(bare)
                if not word.opens or text[word.end : word.end + 1] in (",", "!", ":", "\n"):
                    yield Span(word.start, word.end, "PERSON", _SCORE, _SOURCE)


def _find_field_values(text: str, passage: Passage) -> Iterator[Span]:
    """Find the places and bodies behind fields: "Geburtsort: Heilbronn", "Employeur : Charpentes Cantaliennes"."""
    tables = read_words_of_languages("value_fields")
    for match in _FIELD.finditer(text, passage.start, passage.end):
        label = next((label for label, fields in tables.items() if match[1].lower() in fields), None)
        words = match[2].split()
        if label and len(words) <= _MOST_WORDS and not any(map(str.isdigit, words[0])):
            yield Span(*match.span(2), label, _SCORE, _SOURCE)


def _find_initials(text: str, passage: Passage) -> Iterator[Span]:
    """Find initials with a family name, "R. Knoop", and a name above a letter's end: "Jansen, Hauptmeister"."""
    for match in _SIGNED.finditer(text, passage.start, passage.end):
        if has_listed_name([match[1]]):
            yield Span(*match.span(1), "PERSON", _SCORE, _SOURCE)
    counts = Counter(_WORD.findall(text, passage.start, passage.end)) if "." in text else Counter[str]()
    for match in _INITIALS.finditer(text, passage.start, passage.end):
        if match[0].startswith(_TITLES.get(passage.language, ("\0",))):
            continue
        is_line = text[match.start() - 1 : match.start()] in ("", "\n") and text[match.end() : match.end() + 1] in (
            "",
            "\n",
        )
        tells = passage.language not in _NOUNS_HAVE_CAPITALS
        if is_line or tells or counts[match[1]] > 1 or has_listed_name([match[1]]):
            yield Span(*match.span(), "PERSON", _SCORE, _SOURCE)


def _find_bodies(text: str, passage: Passage) -> Iterator[Span]:
    """Find what begins with the word for a body: "Bäckerei Holtkamp", "Szkoła Podstawowa nr 7"."""
    heads = read_words_of("institutions", passage.language)
    small_heads = read_words_of("small_institutions", passage.language)
    has_noun_capitals = passage.language in _NOUNS_HAVE_CAPITALS
    for match in _WORD.finditer(text, passage.start, passage.end):
        word = match[0].rstrip(".")
        elided = _ELISION.match(word)
        bare = word[elided.end() :] if elided else word
        is_head = bare.lower() in heads or (has_noun_capitals and bare.lower().endswith(_TRADES))
        if is_head and (bare[0].isupper() or bare in small_heads):
            start = match.end() - len(match[0]) + (elided.end() if elided else 0)
            if tail := _BODY_TAIL.match(text, match.start() + len(word), passage.end):
                if number := _ROMAN_BEFORE.search(text, max(passage.start, start - 6), start):
                    start = number.start()
                yield Span(start, tail.end(), "ORGANIZATION", _BODY_SCORE, _SOURCE)
    for match in _COMPOUND_BODY.finditer(text, passage.start, passage.end) if has_noun_capitals else ():
        if match[0].lower() not in _PLAIN_BODIES:
            yield Span(*match.span(), "ORGANIZATION", _BODY_SCORE, _SOURCE)
