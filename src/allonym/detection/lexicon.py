"""The lexicon detector: terms that the user lists, in a dictionary for all documents or in a document's metadata.

Each term is filed under its rarest word. The words of a document are looked up in that table, and only the terms filed
under a word of the document are compared, so the cost does not grow with the number of terms. Terms are compared by
whole words, ignoring diacritics, line breaks, runs of blanks, and (except for short and ambiguous words) case. Letters
such as ``ł`` and ``ü`` equal each of their spellings (:mod:`allonym.text.fold`).

The exclusion list is the opposite: terms that are never covered, see :func:`split_by_exclusions`.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from allonym.detection import Detector
from allonym.detection.disguise import Change, View, apply_changes, fold_lookalikes
from allonym.detection.scan import MANY, compile_words_pattern, find_matches, find_whole_words
from allonym.detection.words import read_common_terms, read_word_list
from allonym.document import Document, Span
from allonym.errors import DataError, PolicyError
from allonym.policy import Policy
from allonym.text.fold import EXPANDED, UMLAUTS, expand_special_letters, spell_out_umlauts
from allonym.text.words import WORD

_SCORE = 0.95
_HEALTH_SCORE = 0.6
_MAX_GAP = 8  # code points that may stand between two words of a term

AMBIGUOUS = read_word_list("ambiguous_names")
TITLES = read_word_list("titles")
PARTICLES = read_word_list("name_particles")
_SUFFIXES = read_word_list("name_suffixes")
_LEGAL = read_word_list("legal_forms")
_LOOSE = read_word_list("loose_forms")


class _Bases(dict[int, str]):
    """Code point to its base letter without diacritics, or to a blank where it is no letter and no digit."""

    def __missing__(self, point: int) -> str:
        char = chr(point)
        base = unicodedata.normalize("NFD", char)[0] if char.isalnum() else " "
        letters = expand_special_letters(base)
        base = self[point] = letters if len(letters) == 1 else base
        return base


_BASES = _Bases()
_BLANKS = {i: " " for i in range(128) if not chr(i).isalnum()}
_BASES.update(_BLANKS)


def fold_keeping_length(text: str) -> str:
    """The folded text in lower case, of the same length, with base letters, digits and blanks only."""
    return text.lower().translate(_BLANKS) if text.isascii() else text.translate(_BASES).lower()


_MARKED = "[^\\W\\d_][\u0300-\u036f]+"
_FIRST_SPELLING = re.compile(f"{_MARKED}|[{EXPANDED}]")
_SECOND_SPELLING = re.compile(f"{_MARKED}|[{EXPANDED}{UMLAUTS}]")

_ONE_BY_ONE = 2_000_000  # words times characters up to which one search a word is the quickest


@dataclass(frozen=True, slots=True)
class Kind:
    """The attributes that all terms of one list share."""

    label: str
    score: float
    source: str
    capital: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class _Term:
    words: tuple[str, ...]
    gaps: tuple[str, ...]
    lead: str
    tail: str
    exact: str  # the word with its case, where case counts; else empty
    capital: bool  # the first letter must be a capital
    kind: Kind


@dataclass(frozen=True, slots=True, repr=False)
class Reading:
    """A text as terms are looked for in it: letters such as ``ß`` written as several letters, and the way back.

    Attributes:
        text: the text after the changes.
        plain: the same as :func:`fold_keeping_length`.
        view: the way back; None where nothing is changed.
        changed: the words that hold a change.
    """

    text: str
    plain: str
    view: View | None = None
    changed: frozenset[str] = frozenset()

    @classmethod
    def from_changes(cls, text: str, changes: Sequence[Change]) -> Reading:
        """The reading of a text after some changes."""
        if not changes:
            return cls(text, fold_keeping_length(text))
        text, layer = apply_changes(text, changes)
        plain = fold_keeping_length(text)
        words: set[str] = set()
        for start, end in zip(layer.starts, layer.ends, strict=True):
            stop = plain.find(" ", end)
            words.add(plain[plain.rfind(" ", 0, start) + 1 : stop if stop >= 0 else len(plain)])
        return cls(text, plain, View(text, (layer,)), frozenset(words))


def make_readings(text: str) -> tuple[Reading, ...]:
    """The readings of a text: one, or two where it has letters with a second spelling, such as ``ü`` and ``ue``."""
    if text.isascii():
        return (Reading(text, fold_keeping_length(text)),)
    first = [(*m.span(), _strip_diacritics(expand_special_letters(m[0]))) for m in _FIRST_SPELLING.finditer(text)]
    spelled = ((*m.span(), spell_out_umlauts(m[0])) for m in _SECOND_SPELLING.finditer(text))
    second = [(start, end, _strip_diacritics(expand_special_letters(out))) for start, end, out in spelled]
    readings = [Reading.from_changes(text, first)]
    if second != first:
        readings.append(Reading.from_changes(text, second))
    return tuple(readings)


def _strip_diacritics(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))


def _normalise_separator(text: str) -> str:
    """The separator of two words, without blanks and the marks that writers may leave out."""
    return "".join(c for c in text if c not in " \t\r\n.,-")


_Row = tuple[str, Kind]


def _clean_term(raw: str) -> str:
    return raw if raw.isascii() else expand_special_letters(fold_lookalikes(unicodedata.normalize("NFC", raw)))


def _fold_term_words(raw: str) -> list[str]:
    """The folded words by which a term is compared; none where the term is too short to be looked for."""
    text = _clean_term(raw)
    return fold_keeping_length(text).split() if len(text.strip()) > 1 else []


def _parse_term(raw: str, kind: Kind) -> _Term:
    text = _clean_term(raw).strip()
    plain = fold_keeping_length(text)
    places = [m.span() for m in WORD.finditer(plain)]
    words = tuple(plain[a:b] for a, b in places)
    single = len(words) == 1
    exact = single and (len(words[0]) <= 3 or (text.isupper() and words[0] in AMBIGUOUS))
    return _Term(
        words,
        tuple(_normalise_separator(text[places[i][1] : places[i + 1][0]]) for i in range(len(places) - 1)),
        text[: places[0][0]],
        text[places[-1][1] :].rstrip("."),
        _strip_diacritics(text[slice(*places[0])]) if exact else "",
        kind.capital or (single and words[0] in AMBIGUOUS and any(c.isupper() for c in text)),
        kind,
    )


class Index:
    """Terms by their rarest word, in both spellings. They are taken apart only when that word is met."""

    def __init__(self, rows: Sequence[_Row]) -> None:
        spelled = [(raw, spell_out_umlauts(raw), kind) for raw, kind in rows]
        differing = [(second, kind) for raw, second, kind in spelled if _clean_term(second) != _clean_term(raw)]
        rows = [*rows, *differing]
        counts = Counter(word for raw, _ in rows for word in _fold_term_words(raw))
        self._table: dict[str, _Row | list[_Row]] = {}
        for row in rows:
            rarest = min(_fold_term_words(row[0]), key=lambda w: (counts[w], -len(w)))
            filed = self._table.setdefault(rarest, row)
            if isinstance(filed, list):
                filed.append(row)
            elif filed is not row:
                self._table[rarest] = [filed, row]
        self._terms: dict[str, list[_Term]] = {}

    def _get_word_terms(self, word: str) -> list[_Term]:
        terms = self._terms.get(word)
        if terms is None:
            rows = self._table[word]
            terms = self._terms[word] = [_parse_term(*row) for row in (rows if isinstance(rows, list) else [rows])]
        return terms

    def find(self, readings: Sequence[Reading]) -> list[Span]:
        """Find all occurrences of all terms in a text, given its readings, each once."""
        spans = list(self._find_in_reading(readings[0], None))
        for reading in readings[1:]:  # the first has what holds no change
            spans += self._find_in_reading(reading, reading.changed)
        return list(dict.fromkeys(spans))

    def _find_in_reading(self, reading: Reading, changed: frozenset[str] | None) -> Iterator[Span]:
        """The occurrences in one reading; ``changed``: of those terms only that have one of these words."""
        terms = {word: self._get_word_terms(word) for word in sorted(self._table.keys() & set(reading.plain.split()))}
        if changed is not None:
            terms = {word: [t for t in some if not changed.isdisjoint(t.words)] for word, some in terms.items()}
        for word, position in _find_whole_words([word for word, some in terms.items() if some], reading.plain):
            for term in terms[word]:
                span = _match_term(term, term.words.index(word), position, reading.text, reading.plain)
                if span is not None and reading.view is not None:
                    start, end = reading.view.locate_original(span.start, span.end)
                    span = replace(span, start=start, end=end)
                if span is not None:
                    yield span


def _find_whole_words(words: Sequence[str], plain: str) -> Iterator[tuple[str, int]]:
    """Find each of the words in ``plain`` as a whole word, with its position."""
    if len(words) * len(plain) > _ONE_BY_ONE:
        if sum(map(len, words)) > MANY:
            for start, end in find_whole_words(words, plain):
                yield plain[start:end], start
            return
        for ((start, end),) in find_matches(compile_words_pattern(words, "(?: |$)"), plain):
            word = plain[start:end].rstrip(" ")
            if not start or plain[start - 1] == " ":
                yield word, start
        return
    for word in words:
        size = len(word)
        position = plain.find(word)
        while position >= 0:
            end = position + size
            if (not position or plain[position - 1] == " ") and plain[end : end + 1] in ("", " "):
                yield word, position
            position = plain.find(word, end)


def _match_term(term: _Term, anchor: int, position: int, text: str, plain: str) -> Span | None:
    start, end = position, position + len(term.words[anchor])
    for i in range(anchor + 1, len(term.words)):
        a = end
        while a < len(plain) and a - end <= _MAX_GAP and plain[a] == " ":
            a += 1
        b = a + len(term.words[i])
        if a == end or plain[a:b] != term.words[i] or plain[b : b + 1] not in ("", " "):
            return None
        if _normalise_separator(text[end:a]) != term.gaps[i - 1]:
            return None
        end = b
    for i in range(anchor - 1, -1, -1):
        b = start
        while b > 0 and start - b <= _MAX_GAP and plain[b - 1] == " ":
            b -= 1
        a = b - len(term.words[i])
        if b == start or a < 0 or plain[a:b] != term.words[i] or (a and plain[a - 1] != " "):
            return None
        if _normalise_separator(text[b:start]) != term.gaps[i]:
            return None
        start = a
    if term.exact and _strip_diacritics(expand_special_letters(text[start:end])) != term.exact:
        return None
    if term.capital and not text[start].isupper():
        return None
    if term.lead and text[max(0, start - len(term.lead)) : start] == term.lead:
        start -= len(term.lead)
    if term.tail and text[end : end + len(term.tail)] == term.tail:
        end += len(term.tail)
    return Span(start, end, term.kind.label, term.kind.score, term.kind.source)


@lru_cache(maxsize=16)
def _build_dictionary_index(policy: Policy) -> Index | None:
    rows: list[_Row] = []
    for listed in policy.dictionary:
        policy.taxonomy.get(listed.label, "dictionary")
        kind = Kind(listed.label, _SCORE, "lexicon:dictionary")
        for i, raw in enumerate(listed.terms, 1):
            if not _fold_term_words(raw):
                raise PolicyError(
                    f"dictionary.{listed.label}: term {i} of {len(listed.terms)} must have two characters at least "
                    "and hold a letter or a digit"
                )
        if policy.looks_for(listed.label):
            rows += ((raw, kind) for raw in listed.terms)
    return Index(rows) if rows else None


@lru_cache(maxsize=1)
def _build_health_index() -> Index:
    """The index of conditions and medicines, which all policies share."""
    rows: list[_Row] = []
    for name in ("health", "conditions", "medicines"):
        kind = Kind("MEDICAL_CONDITION", _HEALTH_SCORE, f"lexicon:{name}")
        for term in sorted(read_common_terms(name)):
            rows += ((spelling, kind) for spelling in ((term, term.upper()) if len(term) < 5 else (term,)))
    return Index(rows)


def _build_document_index(policy: Policy, named: tuple[tuple[str, tuple[str, ...]], ...]) -> Index:
    rows: dict[tuple[str, str], _Row] = {}
    for label, names in named:
        for name in names:
            for form, kind in _list_name_variants(name, label, policy):
                if _fold_term_words(form):
                    rows.setdefault((form, label), (form, kind))
    return Index(tuple(rows.values()))


def _list_name_variants(name: str, label: str, policy: Policy) -> Iterator[_Row]:
    """The name as listed, and the shorter forms by which a text may mention its bearer."""
    forms: list[tuple[str, float, bool]] = [(name, _SCORE, False)]
    if policy.taxonomy.within(label, "PERSON"):
        forms += shorten_person_name(name)
    elif policy.taxonomy.within(label, "ORGANIZATION"):
        forms += _shorten_company_name(name)
    for form, score, capital in forms:
        yield form, Kind(label, score, "lexicon:metadata", capital)


def shorten_person_name(name: str) -> Iterator[tuple[str, float, bool]]:
    """The shorter forms of a person's name, each with its score and whether it must begin with a capital."""
    family, comma, right = name.partition(",")
    if (
        comma
        and right.strip()
        and not all(lower_alphanumerics(w) in _SUFFIXES for w in right.replace(",", " ").split())
    ):
        name = f"{right} {family}"
    words = [w.strip(",") for w in name.replace(",", " ").split()]
    while words and lower_alphanumerics(words[0]) in TITLES:
        words.pop(0)
    while words and lower_alphanumerics(words[-1]) in _SUFFIXES:
        words.pop()
    if len(words) < 2:
        return
    yield " ".join(words), _SCORE, False
    last = len(words) - 1
    while last > 1 and lower_alphanumerics(words[last - 1]) in PARTICLES:
        last -= 1
    if last > 1:
        yield " ".join((words[0], *words[last:])), _SCORE, False
    if last < len(words) - 1:
        yield " ".join(words[last:]), 0.85, False
    if len(lower_alphanumerics(words[-1])) > 1:
        yield words[-1], 0.8, True
    if len(lower_alphanumerics(words[0])) > 1 and lower_alphanumerics(words[0]) not in PARTICLES:
        yield words[0], 0.7, True


def _shorten_company_name(name: str) -> Iterator[tuple[str, float, bool]]:
    words = name.split()
    if len(words) > 1 and words[0].lower() == "the":
        words.pop(0)
        yield " ".join(words), 0.9, False
    for endings in (_LEGAL, _LEGAL | _LOOSE):
        before = len(words)
        while len(words) > 1 and lower_alphanumerics(words[-1]) in endings:
            words.pop()
        while len(words) > 1 and words[-1] in ("&", "and"):
            words.pop()
        if len(words) < before:
            yield " ".join(words).rstrip(","), 0.85, len(words) == 1


def lower_alphanumerics(word: str) -> str:
    """The letters and digits of a word, in lower case."""
    lower = word.lower()
    return lower if lower.isalnum() else "".join(filter(str.isalnum, lower))


def _read_metadata_names(document: Document, policy: Policy) -> tuple[tuple[str, tuple[str, ...]], ...]:
    meta = document.meta
    names = {
        label: tuple(name for key in keys if key in meta for name in _flatten_metadata_names(meta[key], key))
        for label, keys in policy.metadata.items()
        if policy.looks_for(label)
    }
    return tuple((label, listed) for label, listed in names.items() if listed)


def _flatten_metadata_names(value: object, key: str) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _flatten_metadata_names(value.get("name"), key)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in sorted(value, key=str) if isinstance(value, (set, frozenset)) else value:
            yield from _flatten_metadata_names(item, key)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield str(value)
    elif value is not None and not isinstance(value, (float, bool)):
        raise DataError(f"metadata {key!r} must hold a name or a list of names, got {type(value).__name__}")


def build_detector(policy: Policy) -> Detector:
    """Build the detector for a policy's dictionary and for the lists in its documents' metadata.

    For a person in such a list, parts of the name are found too; for a company, the name without its legal form.

    Raises:
        PolicyError: a term of the dictionary is too short; the message gives its number.
    """
    dictionary = _build_dictionary_index(policy)
    indexes = [] if dictionary is None else [dictionary]
    if policy.looks_for("MEDICAL_CONDITION"):
        indexes.append(_build_health_index())

    def find_terms(document: Document) -> Iterable[Span]:
        named = _read_metadata_names(document, policy) if policy.metadata and document.meta else ()
        terms = [*indexes, _build_document_index(policy, named)] if named else indexes
        readings = make_readings(document.text) if terms else []
        return [span for index in terms for span in index.find(readings)]

    return find_terms


@lru_cache(maxsize=16)
def _read_excluded_spellings(policy: Policy) -> dict[str, frozenset[str]]:
    out: dict[str, set[str]] = {}
    for listed in policy.exclusions:
        if listed.label != "*":
            policy.taxonomy.get(listed.label, "exclusions")
        for i, raw in enumerate(listed.terms, 1):
            names = _list_folded_spellings(raw)
            if not names[0]:
                raise PolicyError(
                    f"exclusions.{listed.label}: term {i} of {len(listed.terms)} must hold a letter or a digit"
                )
            out.setdefault(listed.label, set()).update(names)
    return {label: frozenset(terms) for label, terms in out.items()}


def _list_folded_spellings(text: str) -> list[str]:
    """A name in its one or two spellings, without case, diacritics, punctuation and possessive."""
    names: dict[str, None] = {}
    for spelling in (text, spell_out_umlauts(text)):
        folded = _clean_term(spelling).strip()
        if folded.endswith(("'s", "'S")):
            folded = folded[:-2]
        names[" ".join(fold_keeping_length(folded).split())] = None
    return list(names)


def split_by_exclusions(
    document: Document, spans: Iterable[Span], policy: Policy
) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """Split findings into those to keep and those that the policy's exclusion list rules out.

    A finding is ruled out where its surface is an excluded term for its label, an ancestor of its label, or ``"*"``,
    even where a checksum confirmed it, since the user named the term.

    Raises:
        PolicyError: an excluded term holds no letter and no digit.
    """
    excluded = _read_excluded_spellings(policy)
    if not excluded:
        return tuple(spans), ()
    remaining: list[Span] = []
    dropped: list[Span] = []
    everywhere = excluded.get("*", frozenset())
    for span in spans:
        names = _list_folded_spellings(document.text[span.start : span.end])
        terms = (everywhere, *(excluded.get(label, frozenset()) for label in policy.taxonomy.lineage(span.label)))
        out = any(not some.isdisjoint(names) for some in terms)
        (dropped if out else remaining).append(span)
    return tuple(remaining), tuple(dropped)
