"""Training examples of the tagger from annotated records: words, and the allowed tags of each word.

Corpora annotate different labels. A word inside a span may have any tag that the span's label stands for. A word
outside all spans may be ``O``, or any label that its corpus does not annotate. The loss is the negative log of the
summed probability of the allowed tags (partial labels: Cour et al. 2011, JMLR 12). Spans with an unknown label allow
every tag, as do mentions that are not names in sources restricted to names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from allonym.document import Interval
from allonym.models.tags import LABELS, NAME_PARTS, PARTS
from allonym.models.windows import rate_word_borders
from allonym.models.words import split_words
from allonym.train.labelmap import LabelFinder

O = 1  # noqa: E741 - the bit of the tag O
ALL = (1 << (1 + 2 * len(LABELS))) - 1
BEGIN = {label: 1 << (1 + 2 * i) for i, label in enumerate(LABELS)}
INSIDE = {label: 1 << (2 + 2 * i) for i, label in enumerate(LABELS)}
_FIRST = BEGIN["PERSON_FIRSTNAME"]
_LAST = BEGIN["PERSON_LASTNAME"]
_NAMES = sum(BEGIN[p] | INSIDE[p] for p in NAME_PARTS)


@dataclass(frozen=True, slots=True, repr=False)
class Example:
    """A text as the trainer sees it.

    Attributes:
        words: the words' strings.
        joined: whether each word touches the one before it.
        breaks: 2 at a new line, 1 where a sentence may begin, else 0; see :mod:`allonym.models.windows`.
        allowed: bit mask of the allowed tags of each word.
        plain: whether the word is probably outside all spans, though its corpus does not annotate all labels.
        parts: number of the word's part of speech, or -1 if not annotated.
        source: name of the corpus, or kind of text.
    """

    words: tuple[str, ...]
    joined: tuple[bool, ...]
    breaks: tuple[int, ...]
    allowed: tuple[int, ...]
    plain: tuple[bool, ...]
    parts: tuple[int, ...]
    source: str


@dataclass(frozen=True, slots=True, repr=False)
class Lists:
    """Names and terms that refine the labels of a corpus, such as first names and countries.

    Attributes:
        first, last: names of people in lower case.
        places: label to place names in lower case.
        terms: label to terms in lower case, matched in texts whose corpus does not annotate that label.
    """

    first: frozenset[str] = frozenset()
    last: frozenset[str] = frozenset()
    places: Mapping[str, frozenset[str]] | None = None
    terms: Mapping[str, frozenset[str]] | None = None


def list_annotated_labels(records: Iterable[Mapping[str, Any]], source: str, targets: LabelFinder) -> frozenset[str]:
    """Return the tagger's labels that a corpus annotates: those that any label of its spans stands for."""
    labels_used = {span["label"] for record in records for span in record.get("spans", ())}
    return frozenset(t for label in labels_used for t in targets(label, source) or ())


def make_example(
    record: Mapping[str, Any],
    source: str,
    annotated_labels: frozenset[str],
    targets: LabelFinder,
    lists: Lists,
    *,
    keep: str = "all",
    silver: bool = False,
) -> Example:
    """Return a record as an :class:`Example`.

    Args:
        record: a record in our JSONL shape; ``tokens`` and ``upos`` may give parts of speech.
        source: name of the corpus, for label maps.
        annotated_labels: labels that the corpus annotates, of :func:`list_annotated_labels`.
        targets: label and source to the tagger's labels.
        lists: names and terms for finer labels.
        keep: ``all`` spans, only ``named`` ones (no pronouns, no nouns), or only ``people`` with known first names.
        silver: the annotation is incomplete: a capitalised word outside of all spans may be anything.
    """
    if "tokens" in record:
        return make_part_of_speech_example(record, source)
    text = record["text"]
    borders = split_words(text)
    strings = tuple(text[a:b] for a, b in borders)
    free = sum(BEGIN[x] | INSIDE[x] for x in LABELS if x not in annotated_labels)
    allowed = [O | free] * len(borders)
    plain = [bool(free) and w == w.lower() and not w[0].isdigit() and w not in _TIMELY for w in strings]
    if free:
        _mark_silver_terms(strings, allowed, plain, annotated_labels, lists)
    if "DATE" not in annotated_labels:
        _mark_silver_dates(strings, allowed)
    starts = {a: i for i, (a, _) in enumerate(borders)}
    is_annotated = [False] * len(borders)
    for span in sorted(record.get("spans", ()), key=lambda s: (s["start"] - s["end"], s["start"])):
        inside = _list_word_indices(borders, starts, span["start"], span["end"])
        labels = targets(span["label"], source)
        if not inside or is_annotated[inside[0]] or is_annotated[inside[-1]]:
            continue
        words = [strings[i] for i in inside]
        if not labels or not _passes_span_filter(words, keep, labels, lists):
            is_common = span.get("proper") is False
            for i in inside:  # a known span inside it, or a name, still counts
                if (labels or not is_annotated[i]) and not (is_common and strings[i].islower()):
                    allowed[i], plain[i] = ALL, False
            continue
        titles = _count_leading_titles(words) if labels <= set(NAME_PARTS) else 0
        marks = [O] * titles + make_tag_masks(words[titles:], labels, lists)
        if titles and titles == len(words) - 1:  # "Mr Smith"
            marks[-1] = _LAST
        for i, mask in zip(inside, marks, strict=True):
            allowed[i], is_annotated[i], plain[i] = mask, True, False
        if len(inside) > 1 and words[0].lower() == "the" and "WORK_OF_ART" not in labels:
            allowed[inside[0]] |= O  # part of the name or not
            allowed[inside[1]] |= marks[0]
        if len(inside) > 2 and words[-2] in "'’" and words[-1] == "s":
            allowed[inside[-1]] |= O  # some corpora include the possessive
            allowed[inside[-2]] |= O
    for i, word in enumerate(strings):
        # Names in addresses are names, though no corpus annotates them.
        if not is_annotated[i] and (is_in_mailbox(text, borders, i) or (silver and word[0].isupper())):
            allowed[i], plain[i] = ALL, False
    _rule_out_addresses(strings, allowed)
    return assemble_example(text, borders, allowed, plain, (-1,) * len(borders), source)


_STREET_WORDS = frozenset(
    "street st str road rd lane ln avenue ave drive dr way close court ct place pl square sq terrace crescent cres row "
    "gardens grove hill park parade quay walk yard mews view rise brae steps green boulevard blvd parkway highway hwy "
    "circle loop trail flat apt apartment suite unit block building house cottage farm lodge estate box".split()
)
_NEAR_ADDRESS = 6  # words
_ADDRESS = BEGIN["STREET_ADDRESS"] | INSIDE["STREET_ADDRESS"]


def _rule_out_addresses(strings: Sequence[str], allowed: list[int]) -> None:
    """Rule out addresses where no word nearby holds a digit or is one for a street, if a word may be something else."""
    evidence = [i for i, w in enumerate(strings) if any(map(str.isdigit, w)) or w.lower() in _STREET_WORDS]
    near = {k for i in evidence for k in range(i - _NEAR_ADDRESS, i + _NEAR_ADDRESS + 1)}
    for i, mask in enumerate(allowed):
        if i not in near and mask != ALL and mask & ~_ADDRESS:
            allowed[i] = mask & ~_ADDRESS


def assemble_example(
    text: str,
    borders: Sequence[Interval],
    allowed: Iterable[int],
    plain: Iterable[bool],
    parts: Iterable[int],
    source: str,
) -> Example:
    """Return the example of a text whose words have these ``borders``, allowed tags and parts of speech."""
    strings = tuple(text[a:b] for a, b in borders)
    joined = tuple(i > 0 and borders[i - 1][1] == borders[i][0] for i in range(len(borders)))
    breaks = tuple(rate_word_borders(text, borders))
    return Example(strings, joined, breaks, tuple(allowed), tuple(plain), tuple(parts), source)


def _count_leading_titles(words: Sequence[str]) -> int:
    """Count the titles at the beginning of a person's name, which are never part of it, whatever the corpus says."""
    count = 0
    while count < len(words) - 1 and (words[count].lower() in _TITLES or (count and words[count] == ".")):
        count += 1
    return count


_TITLES = (
    "mr mrs ms miss mx dr drs prof rev sir gen col capt sgt lt maj adm sen gov rep hon judge lord lady dame".split()
)


_SOLID = re.compile(r"\S+\Z")
_BLANK = re.compile(r"\s")


def is_in_mailbox(text: str, borders: Sequence[Interval], index: int) -> bool:
    """Tell whether a word is part of an e-mail address."""
    start, end = borders[index]
    match = _SOLID.search(text, max(0, start - 60), start)
    right = _BLANK.search(text, end, end + 60)
    # A text that begins with @ is a handle, not an address.
    return "@" in text[(match.start() if match else start) + 1 : right.start() if right else end + 60]


def make_tag_masks(words: Sequence[str], labels: frozenset[str], lists: Lists) -> list[int]:
    """Return the allowed tags of a span's words as bit masks; ``lists`` narrow down ``labels``."""
    if labels == frozenset(NAME_PARTS):
        return _make_person_tag_masks(words, lists)
    if lists.places and len(labels) > 1:
        key = " ".join(words).lower().removeprefix("the ")
        fitting = {label for label, names in lists.places.items() if label in labels and key in names}
        labels = frozenset(fitting) or labels
    begin = sum(BEGIN[x] for x in labels)
    inside = sum(INSIDE[x] for x in labels)
    out = [begin, *[inside] * (len(words) - 1)]
    if labels & set(NAME_PARTS) and labels - set(NAME_PARTS):  # "a name or a company": either
        out = [m | _NAMES for m in out]
    return out


def _make_person_tag_masks(words: Sequence[str], lists: Lists) -> list[int]:
    letters = [i for i, w in enumerate(words) if w[0].isalpha()]
    any_first, any_last = _FIRST | INSIDE["PERSON_FIRSTNAME"], _LAST | INSIDE["PERSON_LASTNAME"]
    out = [any_first | any_last] * len(words)
    out[0] = _FIRST | _LAST
    low = [w.lower() for w in words]
    if len(letters) == 1:
        i = letters[0]
        first, last = low[i] in lists.first, low[i] in lists.last
        if first and not last:
            out[i] &= any_first
        elif last and not first:
            out[i] &= any_last
    elif letters:
        i, j = letters[0], letters[-1]
        turned = low[i] in lists.last and low[i] not in lists.first and low[j] not in lists.last
        if not turned:  # Western order; "Kim Jong Un" keeps both
            out[i] &= any_first
            if len(letters) == 2 or low[j] in lists.last:
                out[j] &= any_last
    return out


_PRONOUNS = re.compile(
    r"(?i)(?:i|me|my|mine|you|your|he|him|his|she|her|hers|it|its|we|us|our|they|them|their|who|whom|whose|which|that"
    r"|this|these|those|a|an|the|all|any|some|both|each|one|others?|everyone|everybody|someone|nobody)\Z"
)
_ROLES = frozenset(
    "borrower borrowers lender lenders agent guarantor guarantors company bank banks party parties holder holders "
    "executive employee purchaser seller trustee subsidiary subsidiaries assignee assignor landlord tenant "
    "obligor administrative person persons".split()
)


def _passes_span_filter(words: Sequence[str], span_filter: str, labels: frozenset[str], lists: Lists) -> bool:
    if span_filter == "all":
        return True
    if span_filter == "people":
        low = [w.lower() for w in words]
        people = bool(labels & set(NAME_PARTS))
        return not people or (len(words) > 1 and not _ROLES.intersection(low) and low[0] in lists.first)
    if _PRONOUNS.match(words[0]):
        return False
    links = _LINKS if labels & set(NAME_PARTS) else _LINKS | {"of", "the", "for", "and"}
    return all(w[0].isupper() or not w[0].isalpha() or w in links for w in words)


_LINKS = frozenset("de la van von der den del da di du al bin ibn el le ter s".split())


_ORDINARY = frozenset(
    "cook guide guard judge coach host model nurse pilot chair tailor page speaker head founder owner black white "
    "green conservative liberal labour labor republican democrat independent native orthodox president general "
    "driver".split()
)


_MONTHS = frozenset(
    "january february march april may june july august september october november december jan feb mar apr jun "
    "jul aug sep sept oct nov dec".split()
)
_BEFORE_YEAR = frozenset("in since until from by of during before after between and to late early mid".split())
_TIMELY = _MONTHS | frozenset(
    "monday tuesday wednesday thursday friday saturday sunday spring summer autumn fall winter day days week "
    "weeks month months year years quarter quarters decade decades century centuries hour hours minute minutes "
    "second seconds ago today yesterday tomorrow tonight morning afternoon evening night noon midnight last next "
    "past first early late mid end old aged age percent million billion thousand hundred dollar dollars euro "
    "euros pounds cents miles kilometers kilograms one two three four five six seven eight nine ten eleven twelve "
    "twenty thirty forty fifty sixty seventy eighty ninety a an the of in on at to and or".split()
)


def _mark_silver_dates(strings: Sequence[str], allowed: list[int]) -> None:
    """Mark written dates: a month with its adjacent numbers, and years after a preposition."""
    low = [w.lower() for w in strings]
    dated = [False] * len(low)
    for i, word in enumerate(low):
        month = word in _MONTHS and strings[i][0].isupper()
        if month and (word not in ("may", "march") or any(w.isdigit() for w in low[max(0, i - 1) : i + 2])):
            dated[i] = True
            for k in (i - 1, i + 1):
                if 0 <= k < len(low) and low[k].isdigit() and len(low[k]) in (1, 2, 4):
                    dated[k] = True
            next_word = i + 1 + (i + 1 < len(low) and dated[i + 1])
            next_word += next_word < len(low) and low[next_word] == ","
            if next_word < len(low) and low[next_word].isdigit() and len(low[next_word]) == 4:
                dated[i + 1 : next_word + 1] = [True] * (next_word - i)
        elif i and word.isdigit() and len(word) == 4 and word[:2] in _CENTURIES and low[i - 1] in _BEFORE_YEAR:
            dated[i] = True
    for i, yes in enumerate(dated):
        if yes:
            allowed[i] = INSIDE["DATE"] if i and dated[i - 1] else BEGIN["DATE"]


_CENTURIES = ("15", "16", "17", "18", "19", "20")


def _mark_silver_terms(
    strings: Sequence[str], allowed: list[int], plain: list[bool], annotated_labels: frozenset[str], lists: Lists
) -> None:
    """Mark terms of the lists, longest first, where the corpus says nothing about their label."""
    terms = {label: names for label, names in (lists.terms or {}).items() if label not in annotated_labels}
    if not terms:
        return
    low = [w.lower() for w in strings]
    i = 0
    while i < len(low):
        for length in range(min(5, len(low) - i), 0, -1):
            key = " ".join(low[i : i + length])
            fitting = [label for label, names in terms.items() if key in names]
            if fitting and (strings[i][0].isupper() or "OCCUPATION" in fitting):
                kept_mask = allowed[i] & ~O if strings[i][0].isupper() else 0
                kept_mask |= O if key in _ORDINARY else 0
                for k in range(i, i + length):
                    marks = BEGIN if k == i else INSIDE
                    allowed[k] = sum(marks[label] for label in fitting) | kept_mask
                    plain[k] = False
                i += length
                break
        else:
            i += 1


def _list_word_indices(borders: Sequence[Interval], starts: Mapping[int, int], start: int, end: int) -> list[int]:
    first = starts.get(start)
    if first is None:
        first = next((i for i, (_, b) in enumerate(borders) if b > start), len(borders))
    return list(takewhile(lambda i: borders[i][0] < end, range(first, len(borders))))


def make_part_of_speech_example(record: Mapping[str, Any], source: str) -> Example:
    """Return a text with parts of speech as an example.

    A word has the part of speech of the token in which it begins. All entity tags are allowed.
    """
    text = record["text"]
    borders = split_words(text)
    token_ends: list[tuple[int, int]] = []
    position = 0
    for token, part in zip(record["tokens"], record["upos"], strict=True):
        token_start = text.find(token, position)
        if token_start < 0:
            continue
        position = token_start + len(token)
        token_ends.append((position, PARTS.index(part) if part in PARTS else -1))
    parts, k = [], 0
    for start, _ in borders:
        while k < len(token_ends) and token_ends[k][0] <= start:
            k += 1
        parts.append(token_ends[k][1] if k < len(token_ends) else -1)
    n = len(borders)
    return assemble_example(text, borders, (ALL,) * n, (False,) * n, parts, source)
