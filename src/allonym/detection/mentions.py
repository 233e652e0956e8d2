"""Further mentions of names that a document has given away once.

:func:`find_repeated_names` follows the tagger's findings: a name found in one place is found everywhere in the
document. A single word is followed only where the tagger saw a name in most of its mentions; elsewhere it is an
ordinary word ("Apple" and "an apple"). Where a text has no capitals, as speech recognisers write, parts of people's
names are followed too.

:func:`find_name_repetitions` follows the parts of people's names in texts with capitals: "Miss Gannon" makes "Gannon" a
name in the whole document, so "Laura Gannon" two lines above is found too. A name that also stands in the text in lower
case, outside of an address or the like, is an ordinary word and is not followed.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache

from allonym.detection import TAGGER
from allonym.detection.lexicon import PARTICLES, TITLES, lower_alphanumerics
from allonym.detection.listed_names import is_given_name
from allonym.detection.scan import MANY, compile_words_pattern, find_matches, find_whole_words
from allonym.detection.structure import COLUMN
from allonym.detection.words import read_dictionary, read_word_list
from allonym.document import Interval, Reach, Span, merge_intervals
from allonym.labels import Taxonomy
from allonym.text.fold import fold
from allonym.text.memory import remember_texts
from allonym.text.names import TITLES as NAME_TITLES
from allonym.text.names import find_given_name_variants
from allonym.text.words import find_words

REPEAT_SCORE = ECHO_SCORE = 0.6
EXPLAINED_SCORE = 1.0  # of initials that stand behind their name in brackets
_REPEATED_SCORE = 0.6  # that a finding of the tagger needs to be followed
_ECHOED_SCORE = 0.7  # that a person needs to be followed
_NAME_SHARE = 0.5  # of a word's mentions that must be names
NAME_LABELS = ("PERSON", "ORGANIZATION", "LOCATION", "PRODUCT", "EVENT", "WORK_OF_ART", "AWARD")
"""Labels of names, people first; further mentions of these are found."""
_CODE = re.compile(r"(?=\S*\d)(?=\S*[A-Z])[A-Z0-9][A-Z0-9./-]{3,}")
"""A code of a column, which means nothing else where it stands again."""

_SHORTEST = 3  # characters of a name that is followed
_FEW_STARTS, _CAREFUL_SHARE = 4, 0.85
_SENTENCE_START = re.compile(r"(?:\A|[.!?]\s{1,4}|\n)[^\w\n]{0,8}([^\W\d_])")
_FEW = 2_000_000  # names times characters up to which the names are best counted one by one
_STOP = read_word_list("no_names")
_NAMES_TOO = read_word_list("given_names_too")
_CAPITALISED = tuple(name.title() for name in _NAMES_TOO)
_ACRONYMS = read_word_list("acronyms")
_INITIALS = re.compile(r"\b(?:[A-Z]O['’][A-Z]|[A-Z]{2,3})\b")
_APOSTROPHES = re.compile("['’]")
_SHORT_NAME = re.compile(r"(?<![\w'’@.-])[A-Z][a-z]{2,9}(?![\w@-]|['’](?!s\b)|\.? [Nn](?:o|r|umber)\b)")
_SMALL_WORD = re.compile(r"\b[a-z]{3,10}\b")
_BEFORE_SLASH = re.compile(r"(?<![\w/.@:-])([A-Z][^\W\d_]*[a-z][^\W\d_]*)/\Z")
_BEHIND_SLASH = re.compile(r"/([A-Z][^\W\d_]*[a-z][^\W\d_]*)(?![.-]*[\w/@])")
_END_OF_NUMBER = re.compile(r"[A-Za-z]\S*[-/ ](?!(?:19|20)\d\d\Z)(\d{3}[1-9]|\d{5,8})\Z")
_FREE_NUMBER = re.compile(
    r"(?<![\w.,:/£$€#+-])(?<![£$€] )(?:\d{3}[1-9]|\d{5,8})(?![\w/%:-]|[.,]\d)(?! ?(?:%|km|kg|words|people))"
)
_SPENT = re.compile(r"(?i)\b(?:paid|costs?|pays?|charged|worth|price|total)\W{0,3}\Z")
_CURRENCY_NEXT = re.compile(r" ?(?:pounds|euros?|dollars|quid|pence|rupees|EUR|USD|GBP|kr)\b")
_LONGEST_CODE = 60  # characters
_NUMBERS = ("GENERIC_ID", "GOVERNMENT_ID", "FINANCIAL_ID", "DEVICE_ID")
_ROLES = read_word_list("roles")
_CALENDAR = frozenset("mon tue wed thu thur fri sat sun jan feb mar apr jun jul aug sep sept oct nov dec".split())
_MINUTED = re.compile(r"(?i)\b(?:proposed|seconded|action|actioned|taken|chaired|minuted|approved)(?: by)?:? \Z")
_ACTS = re.compile(
    r" (?:reported|said|asked|noted|agreed|proposed|offered|to|will|thanked|explained|raised|felt|suggested|read|told"
    r"|confirmed|advised|welcomed|presented|opened|closed)\b"
)
_SPEAKS = re.compile(r"(?m)^[^\W\d_]{2,4}: ")
_AS_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+(?= [a-z])|\b[A-Z][a-z]+(?= and (?:I|me)\b)")
_WORD = re.compile(r"[^\W\d_][\w'’\-]+")
_LEFT = re.compile(r"(?:(?:[^\W\d_][\w'’\-]*|[^\W\d_]\.) ){1,3}\Z")
_RIGHT = re.compile(r" ([^\W\d_][\w'’\-]+)")


def find_repeated_names(text: str, tagged: Sequence[Span], covered: Iterable[Span], taxonomy: Taxonomy) -> list[Span]:
    """Find mentions of the tagged names (score 0.6 and up) that no span of ``covered`` touches.

    Args:
        text: the text.
        tagged: what the tagger found in it.
        covered: all findings, including ``tagged``.
        taxonomy: tells which labels are names.
    """
    names: dict[str, Counter[str]] = {}
    has_capitals = uses_capitals(text)
    for span in tagged:
        if span.score < _REPEATED_SCORE:
            continue
        surface = text[span.start : span.end]
        is_code = span.source == COLUMN and _CODE.fullmatch(surface) is not None
        if not is_code and not any(taxonomy.within(span.label, label) for label in NAME_LABELS):
            continue
        parts = surface.split() if " " in surface and taxonomy.within(span.label, "PERSON") else []
        for name in (surface,) if has_capitals else (surface, *parts):
            if is_code or _is_distinctive(name):
                names.setdefault(name, Counter())[span.label] += 1
    occurrences = count_substrings(names, text)
    names = {name: labels for name, labels in names.items() if occurrences[name] > labels.total()}
    if not names:
        return []
    reach = Reach((s.start, s.end) for s in covered)
    mentions = list(_find_words(list(names), text))
    free = [mention for mention in mentions if not reach.touches(*mention)]
    counts = Counter(text[start:end] for start, end in mentions)
    free_counts = Counter(text[start:end] for start, end in free)
    repeats = []
    for start, end in free:
        name = text[start:end]
        if " " in name or _CODE.fullmatch(name) or counts[name] - free_counts[name] >= _NAME_SHARE * counts[name]:
            label = min(names[name], key=lambda label: (-names[name][label], label))
            repeats.append(Span(start, end, label, REPEAT_SCORE, "tagger:repeat"))
    return repeats


def find_name_repetitions(text: str, spans: Sequence[Span], taxonomy: Taxonomy) -> list[Span]:
    """Find mentions of the names in the PERSON spans of ``spans`` (score 0.7 and up) that no span covers yet."""
    seeds = [s for s in spans if s.score >= _ECHOED_SCORE and taxonomy.within(s.label, "PERSON")]
    stems = _list_names_to_search(text, seeds)
    if not stems:
        return []
    covered = sorted((s.start, s.end) for s in spans)
    starts = [start for start, _ in covered]
    mentions: dict[str, list[Interval]] = {}
    ordinary_words: set[str] = set()
    forms = sorted({*stems, *(stem.lower() for stem in stems)})
    for start, end in _find_words(forms, text, "(?:e?s)?", ("", "s", "es")):
        if not _is_covered(covered, starts, start):
            word = text[start:end]
            if word[0].isupper():
                mentions.setdefault(_reduce_plural(word, stems), []).append((start, end))
            else:
                ordinary_words.add(word)
    echoes = {
        _extend_mention(text, *mention): None
        for stem, intervals in mentions.items()
        if stem.lower() not in ordinary_words
        for mention in intervals
    }
    return [Span(start, end, "PERSON", ECHO_SCORE, "echo:name") for start, end in echoes]


def find_short_names(text: str, spans: Sequence[Span], taxonomy: Taxonomy) -> list[Span]:
    """Find short forms of given names: "Reg" and "Del" beside Reginald and Delphine.

    A form that is listed counts unless it is an ordinary word. The first letters of a given name, three or more, count
    where no dictionary has them. None counts that stands in the text in small letters.
    """
    given_names = _list_given_names(text, spans, taxonomy)
    if not given_names:
        return []
    are_many = len(given_names) * len(text) > _FEW
    listed = {form for name in given_names for form in _list_short_forms(name) if are_many or form in text}
    beginnings = {
        name[:n]
        for name in given_names
        if are_many or text.count(name[:_SHORTEST]) > text.count(name)  # else the name alone begins so
        for n in range(_SHORTEST, len(name) - 1)
    }
    if not listed and not beginnings:
        return []
    reach = Reach((s.start, s.end) for s in spans)
    mentions: dict[str, list[Interval]] = {}
    for match in _SHORT_NAME.finditer(text):
        mentions.setdefault(match[0], []).append(match.span())
    short_names = {word for word in listed & mentions.keys() if not _is_ordinary(word, _STOP, _NAMES_TOO)}
    short_names |= {
        word
        for word in beginnings & mentions.keys()
        if not _is_ordinary(word, _STOP, _NAMES_TOO, read_dictionary(), _CALENDAR)
    }
    if not short_names:
        return []
    small_words = set(_SMALL_WORD.findall(text))
    return [
        Span(*mention, "PERSON", ECHO_SCORE, "echo:short")
        for word in sorted(short_names)
        if word.lower() not in small_words
        for mention in mentions[word]
        if not reach.touches(*mention)
    ]


@lru_cache(maxsize=4096)
def _list_short_forms(name: str) -> frozenset[str]:
    return frozenset(form.title() for form in find_given_name_variants(fold(name)))


def find_names_beside_slash(text: str, spans: Sequence[Span], taxonomy: Taxonomy) -> list[Span]:
    """Find the names that a slash joins to a person's name: "MacAskill" in "MacAskill/Patel"."""
    if "/" not in text:
        return []
    people = [s for s in spans if taxonomy.within(s.label, "PERSON")]
    matches = [_BEFORE_SLASH.search(text, max(0, s.start - 40), s.start) for s in people]
    matches += [_BEHIND_SLASH.match(text, s.end) for s in people]
    reach = Reach((s.start, s.end) for s in spans)
    return [
        Span(*match.span(1), "PERSON", ECHO_SCORE, "echo:slash")
        for match in matches
        if match
        and not reach.touches(*match.span(1))
        and _is_likely_name(match[1])
        and not _is_ordinary(match[1], read_dictionary(), _ROLES)
    ]


def find_ends_of_numbers(text: str, spans: Sequence[Span], taxonomy: Taxonomy) -> list[Span]:
    """Find where the digits that end a code of letters and digits stand alone: "2291" beside "JST-2291"."""
    labels = {}
    for span in spans:
        end = _END_OF_NUMBER.search(text, span.start, span.end) if len(span) <= _LONGEST_CODE else None
        if end and taxonomy.lineage(span.label)[-1] in _NUMBERS:
            labels[end[1]] = span.label
    if not labels:
        return []
    reach = Reach((s.start, s.end) for s in spans)
    return [
        Span(*number.span(), labels[number[0]], ECHO_SCORE, "echo:end")
        for number in _FREE_NUMBER.finditer(text)
        if number[0] in labels
        and not reach.touches(*number.span())
        and not _SPENT.search(text, max(0, number.start() - 12), number.start())
        and not _CURRENCY_NEXT.match(text, number.end())
    ]


def _list_given_names(text: str, spans: Sequence[Span], taxonomy: Taxonomy) -> set[str]:
    """The given names of the people found (score 0.7 and up): the first word of a full name, or one that is listed."""
    names = set()
    for span in spans:
        if span.score >= _ECHOED_SCORE and taxonomy.within(span.label, "PERSON"):
            words = _list_words_beside_titles(text[span.start : span.end])
            if words and words[0].istitle() and (len(words) > 1 or is_given_name(words[0])):
                names.add(words[0])
    return names


@lru_cache(maxsize=4096)
def _list_words_beside_titles(name: str) -> tuple[str, ...]:
    return tuple(word for word in find_words(name) if lower_alphanumerics(word) not in NAME_TITLES)


def _is_ordinary(word: str, *lists: Collection[str]) -> bool:
    return any(word.lower() in words for words in lists)


def rests_on_chance(span: Span) -> bool:
    """Tell whether a finding is the tagger's, or repeats a name, unlike those of rules and lists."""
    return span.source.startswith((TAGGER, "echo:"))


def find_initials(text: str, spans: Sequence[Span], taxonomy: Taxonomy) -> list[Span]:
    """Find the initials of people who are named in full, as in minutes: "DS to get a quote" beside Dagny Solheim.

    Initials that are a known abbreviation too ("PR") count beside a word of minutes ("seconded PR", "PR reported"), or
    where they begin a line as whoever speaks, "PR: ". Initials in brackets behind the name are that person's wherever
    they stand, whatever a tagger took them for.
    """
    people: dict[str, set[str]] = {}
    explained: set[str] = set()
    for span in spans:
        if span.score >= _ECHOED_SCORE and taxonomy.within(span.label, "PERSON"):
            words = [word for word in _list_words_beside_titles(text[span.start : span.end]) if word[0].isupper()]
            if len(words) > 1:
                letters = "".join(word[0] for word in words)
                for initials in {letters, letters[0] + letters[-1]}:
                    people.setdefault(initials, set()).add(" ".join(words).casefold())
                    if text.startswith((f" ({initials})", f" [{initials}]"), span.end):
                        explained.add(initials)
    if not people:
        return []
    mentions = [mention for mention in _INITIALS.finditer(text) if _APOSTROPHES.sub("", mention[0]) in people]
    alone = {mention.span() for mention in mentions if mention[0] in explained}
    reach = Reach((s.start, s.end) for s in spans if (s.start, s.end) not in alone or not rests_on_chance(s))
    return [
        Span(*mention.span(), "PERSON", EXPLAINED_SCORE if mention[0] in explained else ECHO_SCORE, "echo:initials")
        for mention in mentions
        if not reach.touches(*mention.span())
        and (
            mention[0] in explained
            or mention[0] not in _ACRONYMS
            or _MINUTED.search(text, max(0, mention.start() - 20), mention.start())
            or _SPEAKS.match(text, mention.start())
            or _ACTS.match(text, mention.end())
        )
    ]


def find_capitalised_names(text: str, spans: Sequence[Span]) -> list[Span]:
    """Find given names that are ordinary words too: by a capital within a sentence, or beside "and I"."""
    if not any(map(text.__contains__, _CAPITALISED)):
        return []
    reach = Reach((s.start, s.end) for s in spans)
    return [
        Span(*name.span(), "PERSON", ECHO_SCORE, "echo:capital")
        for name in _AS_NAME.finditer(text)
        if name[0].lower() in _NAMES_TOO and not reach.touches(*name.span())
    ]


def count_substrings(names: Iterable[str], text: str) -> dict[str, int]:
    """``text.count(name)`` for each name of three characters or more, for any number of names."""
    names = set(names)
    if len(names) * len(text) <= _FEW:
        return {name: text.count(name) for name in names}
    lengths: dict[str, set[int]] = {}
    for name in names:
        lengths.setdefault(name[:_SHORTEST], set()).add(len(name))
    counts = dict.fromkeys(names, 0)
    ends = dict.fromkeys(names, 0)
    for position in [i for i in range(len(text)) if text[i : i + _SHORTEST] in lengths]:
        for length in lengths[text[position : position + _SHORTEST]]:
            name = text[position : position + length]
            if name in names and ends[name] <= position:
                counts[name] += 1
                ends[name] = position + length
    return counts


def _find_words(words: Sequence[str], text: str, tail: str = "", endings: Sequence[str] = ("",)) -> Iterator[Interval]:
    """Where one of the words stands in the text as a whole word, with one of the endings; ``tail`` matches these."""
    if sum(map(len, words)) > MANY:
        hits: Iterable[Interval] = find_whole_words(words, text, endings)
    else:
        hits = (groups[0] for groups in find_matches(compile_words_pattern(words, tail, whole_words=True), text))
    for start, end in hits:
        if not (start and text[start - 1].isalnum()) and not (end < len(text) and text[end].isalnum()):
            yield start, end


def _is_distinctive(name: str) -> bool:
    return len(name) >= _SHORTEST and name.lower() not in _STOP and any(map(str.isalpha, name))


@remember_texts(16)
def uses_capitals(text: str) -> bool:
    """Tell whether a text is written with capitals, unlike the transcripts of many speech recognisers."""
    return sum(map(str.isupper, text)) * 200 >= sum(map(str.isalpha, text))


def is_written_with_care(text: str, turns: Sequence[int] = ()) -> bool:
    """Tell whether nearly all sentences and turns begin with a capital, so that a word in small letters is no name."""
    return _has_capitals_at_starts(text, tuple(turns))


@remember_texts(16)
def _has_capitals_at_starts(text: str, turns: Sequence[int]) -> bool:
    starts = _SENTENCE_START.findall(text) + [text[turn] for turn in turns if text[turn : turn + 1].isalpha()]
    return len(starts) >= _FEW_STARTS and sum(map(str.isupper, starts)) >= _CAREFUL_SHARE * len(starts)


def _list_names_to_search(text: str, seeds: Sequence[Span]) -> set[str]:
    """The names in the seeds, and their words that are names, without a possessive ending."""
    surfaces = [text[seed.start : seed.end] for seed in seeds]
    names = {word for surface in surfaces for word in _WORD.findall(surface) if len(word) > 2 and _is_likely_name(word)}
    names |= {surface for surface in surfaces if " " in surface and surface[0].isupper()}
    stems = {name.removesuffix("'s").removesuffix("’s") for name in names}
    if len(text) * len(stems) < 100_000:  # cheaper than a pattern, which most short texts then do not need
        seed_text = " ".join(text[a:b] for a, b in merge_intervals((seed.start, seed.end) for seed in seeds))
        stems = {stem for stem in stems if text.count(stem) > seed_text.count(stem)}
    return stems


def _reduce_plural(word: str, stems: set[str]) -> str:
    """The stem of a capitalised word that may end in ``s`` or ``es``."""
    if word in stems:
        return word
    stem = word.removesuffix("s")
    shorter = stem.removesuffix("e")
    return shorter if shorter in stems else stem


def _is_likely_name(word: str) -> bool:
    lower = word.lower()
    stem = lower.replace("’", "'").partition("'")[0]  # "It's" is no name, "O'Brien" is one
    ordinary = lower in _STOP or lower in PARTICLES or stem in _STOP
    return word[0].isupper() and not ordinary and lower_alphanumerics(word) not in TITLES


def _is_covered(covered: Sequence[Interval], starts: Sequence[int], position: int) -> bool:
    i = bisect_right(starts, position) - 1
    return i >= 0 and covered[i][1] > position


def _extend_mention(text: str, start: int, end: int) -> Interval:
    """The mention with the given names and initials before it and the family name after it."""
    before = _LEFT.search(text, max(0, start - 48), start)
    if before:
        for word in reversed(before[0].split()):
            if not _is_likely_name(word) or (word.isupper() and len(word) > 1 and word[-1] != "."):
                break
            start -= len(word) + 1
    right = _RIGHT.match(text, end)
    if right and _is_likely_name(right[1]) and not right[1].isupper():
        end = right.end() - (2 if right[1].endswith(("'s", "’s")) else 0)
    return start, end
