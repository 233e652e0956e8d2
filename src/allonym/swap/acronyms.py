"""Acronyms and their long forms across a corpus, so that both are one value and no bare mention stays behind.

P1 (section 3.2.3) swapped *Cache Coherent Interconnect for Accelerators* and left *CCIX*, which its recogniser did not
know. An acronym belongs to a long form if a document defines it (``Long Form (LF)``, ``LF (Long Form)``, ``Long
Form, or LF``; letters matched as by Schwartz and Hearst, doi:10.1142/9789812776303_0042), or by its initials, if
exactly one long form has them. An acronym that fits several long forms belongs to none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from allonym.document import Document, Entity, Reach, Span
from allonym.labels import TAXONOMY, Taxonomy
from allonym.swap.categories import remove_family_and_determiner
from allonym.text.names import normalize_surface
from allonym.text.words import WORD, find_words

SOURCE = "acronym"
_SCORE = 0.9
_ACRONYM = r"[A-Za-z0-9][A-Za-z0-9&/.-]{0,8}[A-Za-z0-9]"
_TOKEN = re.compile(rf"(?<![\w&@/.-]){_ACRONYM}(?![\w&@/-])")
_AFTER = re.compile(
    rf"['’]?s?\s*[,]?\s*(?:\(\s*[\"“']?({_ACRONYM})[\"”']?\s*[),;]|(?:or|aka|a\.k\.a\.)\s+({_ACRONYM})\b)"
)
_INSIDE = re.compile(rf"^(.{{4,}}?)\s*\(\s*[\"“']?({_ACRONYM})[\"”']?\s*\)$", re.S)
_BEFORE = re.compile(rf"(?<![\w&])({_ACRONYM})\s*\(\s*(?:the\s+)?[\"“']?$")
_SMALL = frozenset("of and the for in on at to by with a an de la du des und der die das für y e & per".split())
_AND = re.compile(r"&|\b(?:and|und|et|y|e)\b")
_NEVER = frozenset(
    "PERSON DATE_TIME NUMERIC AGE GENDER ONLINE_ID EMAIL_ADDRESS PHONE_NUMBER GENERIC_ID DEVICE_ID VEHICLE_ID "
    "GOVERNMENT_ID FINANCIAL_ID SECRET SPELLED_WORD PRONOUN".split()
)
"""Families whose initials mean nothing, or that are linked elsewhere."""


@dataclass(frozen=True, slots=True)
class _LongForm:
    key: str = field(repr=False)
    label: str


def is_acronym(surface: str) -> bool:
    """Whether a surface looks like an acronym: one word of 2 to 10 signs, half of its letters or more capitals.

    >>> is_acronym("CCIX"), is_acronym("R&D"), is_acronym("Acme")
    (True, True, False)
    """
    letters = [c for c in surface if c.isalpha()]
    capitals = sum(c.isupper() for c in letters)
    return bool(_TOKEN.fullmatch(surface)) and capitals >= 2 and 2 * capitals >= len(letters)


def are_initials(acronym: str, words: Sequence[str]) -> bool:
    """Whether an acronym's letters are the words' initials, in order; small words may be left out.

    X may stand for a word that sounds like it at its start, as *Accelerators* in CCIX.
    """
    letters = [c for c in acronym.lower() if c.isalnum()]
    reach = {0}
    for word in map(str.lower, words):
        step = {n + 1 for n in reach if n < len(letters) and _can_be_abbreviated_to(word, letters[n])}
        reach = step | reach if word in _SMALL else step
    return len(letters) in reach and len(words) > 1 and len(max(words, key=len)) > 1


def _can_be_abbreviated_to(word: str, letter: str) -> bool:
    return word.startswith(letter) or (letter == "x" and word.startswith(("ex", "acc", "cross", "trans")))


def can_abbreviate(acronym: str, long: str) -> bool:
    """Whether an acronym's letters occur in a long form, in order, the first one at the start of its first word.

    This is Schwartz and Hearst's test, enough if the text itself puts both side by side.
    """
    letters = [c for c in acronym.lower() if c.isalnum()]
    text = long.lower()
    if not letters or not text.startswith(letters[0]) or len(long) <= len(acronym) or " " not in long.strip():
        return False
    rest = iter(text)
    return all(letter in rest for letter in letters)


def link_acronyms(
    documents: Sequence[Document], entities: Sequence[Sequence[Entity]], taxonomy: Taxonomy = TAXONOMY
) -> tuple[tuple[Entity, ...], ...]:
    """Link acronyms with their long forms in all documents of a corpus.

    Args:
        documents: the texts.
        entities: per document, linked within it.
        taxonomy: gives the labels' families; names of people, dates, numbers and identifiers are left as they are.

    Returns:
        The entities per document. An acronym and its long form are one entity, with one key in all documents, and with
        mentions that detectors missed (source :data:`SOURCE`): acronyms, and long forms before one.
    """
    joiner = _Joiner(taxonomy)
    complete = list(map(joiner.add_undetected_long_forms, documents, entities))
    defined = list(map(joiner.find_acronym_definitions, documents, complete))
    agreed = {acronym: long for acronym, long in _find_agreed_long_forms(defined).items() if len(acronym) > 2}
    meanings = [
        initials | agreed | {acronym: longs[0] for acronym, longs in definitions.items()}
        for initials, definitions in zip(joiner.match_acronyms_by_initials(documents, complete), defined, strict=True)
    ]
    return tuple(map(joiner.unite_acronyms, documents, complete, meanings))


def _find_agreed_long_forms(defined: Iterable[dict[str, list[_LongForm]]]) -> dict[str, _LongForm]:
    """Return the long forms on which all documents that define an acronym agree."""
    forms: dict[str, dict[str, _LongForm]] = {}
    for definitions in defined:
        for acronym, longs in definitions.items():
            forms.setdefault(acronym, {}).update((long.key, long) for long in longs)
    return {acronym: next(iter(longs.values())) for acronym, longs in forms.items() if len(longs) == 1}


class _Joiner:
    """Finds acronyms and long forms by the families of a taxonomy."""

    def __init__(self, taxonomy: Taxonomy) -> None:
        self._taxonomy = taxonomy

    def _get_family(self, entity: Entity) -> str:
        """Return the family of an entity's label; empty for families without acronyms."""
        family = self._taxonomy.get_family(entity.label)
        return "" if family in _NEVER else family

    def add_undetected_long_forms(self, document: Document, entities: Sequence[Entity]) -> list[Entity]:
        """Return the entities with the undetected long forms in front of ``(LF)``, where LF itself is a finding."""
        covered = [(s.start, s.end) for entity in entities for s in entity.spans]
        text, out = document.text, []
        for entity in entities:
            spans = list(entity.spans)
            for span in entity.spans if self._get_family(entity) else ():
                acronym = text[span.start : span.end]
                around = text[max(0, span.start - 1) : span.start], text[span.end : span.end + 1]
                if around != ("(", ")") or not is_acronym(acronym):
                    continue
                line = max(text.rfind("\n", 0, span.start) + 1, span.start - 120)
                words = list(WORD.finditer(text, line, span.start))
                for word in reversed(words[-2 * len(acronym) :]):
                    start, end = word.start(), words[-1].end()
                    if are_initials(acronym, find_words(text[start:end])):
                        if not Reach(covered).touches(start, end):
                            spans.append(Span(start, end, entity.label, _SCORE, SOURCE))
                            covered.append((start, end))
                        break
            out.append(replace(entity, spans=tuple(sorted(spans))))
        return out

    def find_acronym_definitions(self, document: Document, entities: Sequence[Entity]) -> dict[str, list[_LongForm]]:
        """Return acronym to the long forms that this document puts beside it."""
        text = document.text
        out: dict[str, list[_LongForm]] = {}
        for entity in entities:
            family = self._get_family(entity)
            for span in entity.spans if family else ():
                surface = text[span.start : span.end]
                inside = _INSIDE.match(surface)
                after = _AFTER.match(text, span.end)
                before = _BEFORE.search(text, max(0, span.start - 24), span.start)
                acronyms = [inside[2]] if inside else [after[1] or after[2]] if after else []
                acronyms += [before[1]] if before else []
                bare = re.sub(r"^(?:the|a|an|our|its)\s+", "", inside[1] if inside else surface, flags=re.I)
                for acronym in filter(is_acronym, acronyms):
                    if can_abbreviate(acronym, bare) or are_initials(acronym, find_words(bare)):
                        key = normalize_surface(bare) if inside else remove_family_and_determiner(entity.key)
                        long = _LongForm(f"{family}:{key}", entity.label)
                        if long not in out.setdefault(acronym, []):
                            out[acronym].append(long)
        return out

    def match_acronyms_by_initials(
        self, documents: Sequence[Document], entities: Sequence[Sequence[Entity]]
    ) -> list[dict[str, _LongForm]]:
        """Return per document its acronyms whose letters are the initials of one long form, and of no other.

        A long form of another document counts only if the acronym is a finding of the same family, of three letters or
        more. An acronym that is no finding counts only if other documents hardly use it: CEO is no *Clean Energy
        Ontario*.
        """
        homes: dict[str, tuple[_LongForm, list[str], set[int]]] = {}
        for number, some in enumerate(entities):
            for entity in some:
                words = find_words(remove_family_and_determiner(entity.key))
                if len(words) > 1 and (family := self._get_family(entity)):
                    key = f"{family}:{remove_family_and_determiner(entity.key)}"
                    homes.setdefault(key, (_LongForm(key, entity.label), words, set()))[2].add(number)
        by_letter: dict[str, list[tuple[_LongForm, list[str], set[int]]]] = {}
        for home in homes.values():
            by_letter.setdefault(home[1][0][0], []).append(home)
        tokens = [{t for t in set(_TOKEN.findall(document.text)) if is_acronym(t)} for document in documents]
        use = Counter(token for some in tokens for token in some)
        common = max(1, len(documents) // 10)

        @cache
        def find_fitting(acronym: str) -> list[tuple[_LongForm, set[int]]]:
            return [
                (long, numbers)
                for long, words, numbers in by_letter.get(acronym[0].lower(), ())
                if are_initials(acronym, words) and ("&" not in acronym or _AND.search(long.key))
            ]

        out: list[dict[str, _LongForm]] = []
        for number, (document, some) in enumerate(zip(documents, entities, strict=True)):
            families: dict[str, str] = {}
            for entity in some:
                for span in entity.spans:
                    families.setdefault(document.text[span.start : span.end], self._taxonomy.get_family(entity.label))
            meant: dict[str, _LongForm] = {}
            for acronym in sorted(tokens[number]):
                family = families.get(acronym, "")
                if family:
                    fits = [f for f in find_fitting(acronym) if f[0].key.partition(":")[0] == family]
                else:
                    rare = [f for f in find_fitting(acronym) if use[acronym] - len(f[1]) <= common]
                    fits = rare if len(acronym) > 2 else []
                here = [long for long, numbers in fits if number in numbers]
                if len(here) == 1 or (not here and len(fits) == 1 and family and len(acronym) > 2):
                    meant[acronym] = here[0] if here else fits[0][0]
            out.append(meant)
        return out

    def unite_acronyms(
        self, document: Document, entities: Sequence[Entity], meant: Mapping[str, _LongForm]
    ) -> tuple[Entity, ...]:
        """Return the entities of a document, acronyms united with the long forms that they mean."""
        text = document.text
        groups: dict[str, tuple[str, list[Span]]] = {}
        for entity in entities:
            key, label = entity.key, entity.label
            if family := self._get_family(entity):
                surfaces = {text[s.start : s.end] for s in entity.spans}
                only = next(iter(surfaces)) if len(surfaces) == 1 else ""
                inside = _INSIDE.match(only)
                key = f"{family}:{normalize_surface(inside[1]) if inside else remove_family_and_determiner(key)}"
                if only and (long := meant.get(only)):
                    key, label = long.key, long.label
            groups.setdefault(key, (label, []))[1].extend(entity.spans)
        covered = Reach((s.start, s.end) for entity in entities for s in entity.spans)
        for match in _TOKEN.finditer(text) if meant else ():
            long = meant.get(match[0])
            if long is not None and not covered.touches(match.start(), match.end()):
                span = Span(match.start(), match.end(), long.label, _SCORE, SOURCE)
                groups.setdefault(long.key, (long.label, []))[1].append(span)
        out = (Entity(key, label, tuple(sorted(spans))) for key, (label, spans) in groups.items())
        return tuple(sorted(out, key=lambda entity: entity.spans[0]))
