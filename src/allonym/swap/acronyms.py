"""Acronyms and their long forms across a corpus, so that both are one value and no bare mention stays behind.

P1 (section 3.2.3) swapped *Cache Coherent Interconnect for Accelerators* and left *CCIX*, which its recogniser did not
know. An acronym belongs to a long form where a document defines it (``Long Form (LF)``, ``LF (Long Form)``, ``Long
Form, or LF``; letters matched as by Schwartz and Hearst, doi:10.1142/9789812776303_0042), or by its initials, where
exactly one long form has them. What fits several fits none.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from allonym.document import Document, Entity, Span
from allonym.labels import TAXONOMY, Taxonomy
from allonym.swap.categories import canonical
from allonym.text.names import plain
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
    {"PERSON", "DATE_TIME", "NUMERIC", "AGE", "GENDER", "ONLINE_ID", "EMAIL_ADDRESS", "PHONE_NUMBER"}
) | {*("GENERIC_ID", "DEVICE_ID", "VEHICLE_ID", "GOVERNMENT_ID", "FINANCIAL_ID", "SECRET", "SPELLED_WORD", "PRONOUN")}
"""Families whose initials mean nothing, or are linked elsewhere."""


@dataclass(frozen=True, slots=True, repr=False)
class Joined:
    """What became of a corpus's entities.

    Attributes:
        entities: per document; an acronym and its long form are one entity, with one key in all documents, and with
            the mentions that were added.
        added: per document, those mentions: acronyms, and long forms before one, that no detector had found.
    """

    entities: tuple[tuple[Entity, ...], ...]
    added: tuple[tuple[Span, ...], ...]

    def __repr__(self) -> str:
        return f"Joined({len(self.entities)} documents, {sum(map(len, self.added))} mentions added)"


@dataclass(frozen=True, slots=True)
class _Long:
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


def initials_fit(acronym: str, words: Sequence[str]) -> bool:
    """Whether an acronym's letters are the words' initials, in order; small words may be left out.

    X may stand for a word that sounds like it at its start, as *Accelerators* in CCIX.
    """
    letters = [c for c in acronym.lower() if c.isalnum()]
    reach = {0}
    for word in (w.lower() for w in words):
        step = {at + 1 for at in reach if at < len(letters) and _begins(word, letters[at])}
        reach = step | reach if word in _SMALL else step
    return len(letters) in reach and len(words) > 1 and len(max(words, key=len)) > 1


def _begins(word: str, letter: str) -> bool:
    return word.startswith(letter) or (letter == "x" and word.startswith(("ex", "acc", "cross", "trans")))


def spelled_out(acronym: str, long: str) -> bool:
    """Whether an acronym's letters stand in a long form, in order, the first one at the start of its first word.

    This is Schwartz and Hearst's test, enough where the text itself puts both side by side.
    """
    letters = [c for c in acronym.lower() if c.isalnum()]
    text = long.lower()
    if not letters or not text.startswith(letters[0]) or len(long) <= len(acronym) or " " not in long.strip():
        return False
    at = 0
    for letter in letters:
        at = text.find(letter, at) + 1
        if not at:
            return False
    return True


def join(documents: Sequence[Document], entities: Sequence[Sequence[Entity]], taxonomy: Taxonomy = TAXONOMY) -> Joined:
    """Links acronyms with their long forms in all documents of a corpus.

    Args:
        documents: the texts.
        entities: per document, what was found in it, linked within the document.
        taxonomy: tells the labels' families; names of people, dates, numbers and identifiers are left as they are.

    Returns:
        The entities with keys that hold for the corpus, and with the mentions added that detectors missed.
    """
    found = [list(some) for some in entities]
    grown = [_complete(document, some, taxonomy) for document, some in zip(documents, found, strict=True)]
    own = [_defined(document, some, taxonomy) for document, some in zip(documents, grown, strict=True)]
    everywhere = _settled(own)
    by_initials = _by_initials(documents, grown, taxonomy)
    out, added = [], []
    for document, some, before, mine, near in zip(documents, grown, found, own, by_initials, strict=True):
        meant = near | {a: longs for a, longs in everywhere.items() if len(a) > 2} | {a: v[0] for a, v in mine.items()}
        joined = _joined(document, some, meant, taxonomy)
        known = {span for entity in before for span in entity.spans}
        out.append(tuple(joined))
        added.append(tuple(sorted(s for entity in joined for s in entity.spans if s not in known)))
    return Joined(tuple(out), tuple(added))


def _family(label: str, taxonomy: Taxonomy) -> str:
    return taxonomy.lineage(label)[-1]


def _words(key: str) -> list[str]:
    return find_words(canonical(key))


def _complete(document: Document, entities: list[Entity], taxonomy: Taxonomy) -> list[Entity]:
    """With the undetected long forms in front of ``(LF)``, where LF itself is a finding."""
    taken = sorted((s.start, s.end) for entity in entities for s in entity.spans)
    text, out = document.text, []
    for entity in entities:
        spans = list(entity.spans)
        for span in entity.spans if _family(entity.label, taxonomy) not in _NEVER else ():
            acronym = text[span.start : span.end]
            around = text[max(0, span.start - 1) : span.start], text[span.end : span.end + 1]
            if around != ("(", ")") or not is_acronym(acronym):
                continue
            at = max(text.rfind("\n", 0, span.start) + 1, span.start - 120)
            words = list(WORD.finditer(text[at : span.start]))
            for word in reversed(words[-2 * len(acronym) :]):
                end = at + words[-1].end()
                if initials_fit(acronym, find_words(text[at + word.start() : end])):
                    if _free(taken, at + word.start(), end):
                        spans.append(Span(at + word.start(), end, entity.label, _SCORE, SOURCE))
                        insort(taken, (at + word.start(), end))
                    break
        out.append(replace(entity, spans=tuple(sorted(spans))))
    return out


def _free(taken: Sequence[tuple[int, int]], start: int, end: int) -> bool:
    at = bisect_right(taken, (start, start)) - 1
    return (at < 0 or taken[at][1] <= start) and (at + 1 >= len(taken) or taken[at + 1][0] >= end)


def _defined(document: Document, entities: Sequence[Entity], taxonomy: Taxonomy) -> dict[str, list[_Long]]:
    """Acronym to the long forms that this document puts beside it."""
    text = document.text
    out: dict[str, list[_Long]] = {}
    for entity in entities:
        if _family(entity.label, taxonomy) in _NEVER:
            continue
        for span in entity.spans:
            surface = text[span.start : span.end]
            inside = _INSIDE.match(surface)
            after = _AFTER.match(text, span.end)
            before = _BEFORE.search(text, max(0, span.start - 24), span.start)
            long = inside[1] if inside else surface
            told = [inside[2]] if inside else [after[1] or after[2]] if after else []
            told += [before[1]] if before else []
            bare = re.sub(r"^(?:the|a|an|our|its)\s+", "", long, flags=re.I)
            for acronym in told:
                if is_acronym(acronym) and (spelled_out(acronym, bare) or initials_fit(acronym, find_words(bare))):
                    key = plain(bare) if inside else canonical(entity.key)
                    one = _Long(f"{_family(entity.label, taxonomy)}:{key}", entity.label)
                    if one not in out.setdefault(acronym, []):
                        out[acronym].append(one)
    return out


def _settled(own: Iterable[dict[str, list[_Long]]]) -> dict[str, _Long]:
    """What all documents that define an acronym agree on."""
    seen: dict[str, dict[str, _Long]] = {}
    for mine in own:
        for acronym, longs in mine.items():
            seen.setdefault(acronym, {}).update((one.key, one) for one in longs)
    return {acronym: next(iter(longs.values())) for acronym, longs in seen.items() if len(longs) == 1}


def _by_initials(
    documents: Sequence[Document], entities: Sequence[Sequence[Entity]], taxonomy: Taxonomy
) -> list[dict[str, _Long]]:
    """Per document, its acronyms whose letters are the initials of one long form, and of no other.

    A long form of another document counts only where the acronym is a finding of the same family, of three letters or
    more. An acronym that is no finding counts only if other documents hardly use it: CEO is no *Clean Energy Ontario*.
    """
    places: dict[str, tuple[_Long, list[str], set[int]]] = {}
    for number, some in enumerate(entities):
        for entity in some:
            words = _words(entity.key)
            family = _family(entity.label, taxonomy)
            if len(words) > 1 and family not in _NEVER:
                key = f"{family}:{canonical(entity.key)}"
                places.setdefault(key, (_Long(key, entity.label), words, set()))[2].add(number)
    tokens = [{t for t in set(_TOKEN.findall(document.text)) if is_acronym(t)} for document in documents]
    use = Counter(token for some in tokens for token in some)
    common = max(1, len(documents) // 10)
    by_letter: dict[str, list[tuple[_Long, list[str], set[int]]]] = {}
    for place in places.values():
        by_letter.setdefault(place[1][0][0], []).append(place)
    out: list[dict[str, _Long]] = []
    fitting: dict[str, list[tuple[_Long, set[int]]]] = {}
    for number, (document, some) in enumerate(zip(documents, entities, strict=True)):
        families: dict[str, str] = {}
        for entity in some:
            for span in entity.spans:
                families.setdefault(document.text[span.start : span.end], _family(entity.label, taxonomy))
        mine: dict[str, _Long] = {}
        for acronym in sorted(tokens[number]):
            if acronym not in fitting:
                first = acronym[0].lower()
                fitting[acronym] = [
                    (long, where)
                    for long, words, where in by_letter.get(first, ())
                    if initials_fit(acronym, words) and ("&" not in acronym or _AND.search(long.key))
                ]
            said = families.get(acronym)
            fits = [
                (long, where)
                for long, where in fitting[acronym]
                if said in (None, long.key.partition(":")[0])
                and (said or (len(acronym) > 2 and use[acronym] - len(where) <= common))
            ]
            here = [long for long, where in fits if number in where]
            if len(here) == 1 or (not here and len(fits) == 1 and said and len(acronym) > 2):
                mine[acronym] = here[0] if here else fits[0][0]
        out.append(mine)
    return out


def _joined(
    document: Document, entities: Sequence[Entity], meant: dict[str, _Long], taxonomy: Taxonomy
) -> list[Entity]:
    text = document.text
    groups: dict[str, tuple[str, list[Span]]] = {}
    for entity in entities:
        family = _family(entity.label, taxonomy)
        key, label = entity.key, entity.label
        if family not in _NEVER:
            surfaces = {text[s.start : s.end] for s in entity.spans}
            inside = next((m for s in sorted(surfaces) if (m := _INSIDE.match(s))), None)
            key = f"{family}:{plain(inside[1]) if inside and len(surfaces) == 1 else canonical(key)}"
            if len(surfaces) == 1 and (long := meant.get(next(iter(surfaces)))):
                key, label = long.key, long.label
        groups.setdefault(key, (label, []))[1].extend(entity.spans)
    taken = sorted((s.start, s.end) for entity in entities for s in entity.spans)
    starts = [start for start, _ in taken]
    for found in _TOKEN.finditer(text) if meant else ():
        long = meant.get(found[0])
        if long is None:
            continue
        at = bisect_left(starts, found.end()) - 1
        if at < 0 or taken[at][1] <= found.start():
            span = Span(found.start(), found.end(), long.label, _SCORE, SOURCE)
            groups.setdefault(long.key, (long.label, []))[1].append(span)
    out = [Entity(key, label, tuple(sorted(spans))) for key, (label, spans) in groups.items()]
    return sorted(out, key=lambda entity: entity.spans[0])
