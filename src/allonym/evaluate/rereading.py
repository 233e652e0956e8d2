"""A second reading of anonymised texts: possible leaks, as marks that a person confirms or rejects.

It is independent of the anonymisation in three ways. Every detector reads at a far lower threshold than in any preset,
whatever labels the policy left out. A reader of capitals that is no model proposes words that look like names: in
mid-sentence, and before a sign at the start of a sentence where no dictionary has them. And text beside a placeholder
is read as the rest of a mention that was only partly removed. It is made to miss little, so many of its proposals are
wrong: a person decides (P2, section 4.1).

Text in placeholders is not proposed. Where the original texts are available, only text that occurs in them is proposed:
without them a pseudonym looks like a person who was missed.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType

from allonym import pipeline
from allonym.detection.words import read_dictionary, read_word_list
from allonym.document import Document, Interval, Span, merge_intervals, subtract_intervals
from allonym.errors import DataError, UsageError
from allonym.evaluate.marking import Mark, Marked, list_mark_rows
from allonym.evaluate.pairs import Advance, check_lengths, iterate_with_progress
from allonym.evaluate.residual import ResidualRisk, Scoring, residual_risk
from allonym.labels import TAXONOMY, Label
from allonym.policy import Policy
from allonym.serial import Serialisable
from allonym.text.names import normalize_surface
from allonym.text.placeholders import Placeholder, find_placeholders
from allonym.text.words import find_words

POINT = 0.02
"""Least probability of the tagger's findings; the presets require three times as much and more."""
CAPITALS = "second:capitals"

_THRESHOLD = 0.3  # score that findings of other detectors need; the presets require 0.5
_EXCLUDED = ("PRONOUN", "TITLE", "GENDER", "LANGUAGE", "NUMERIC", "TIME", "DURATION", "DATE")
_DETECTORS = ("rules", "spoken", "lexicon", "speakers", "tagger")
_OTHER = "OTHER_IDENTIFYING_ATTRIBUTE"
_CAPITALS_SCORE = 0.2
_NO_NAMES = read_word_list("no_names")
_LEAST_UNKNOWN = 3  # letters of a word at the start of a sentence that may be a name
_CHAT = read_word_list("chat_words")
_SMALL = read_word_list("function_words") | read_word_list("titles")
_EDGES = " \t\r\n.,;:!?'’\"()[]<>-"
_NAME = re.compile(r"(?<![\w'’])[A-Z][\w&]*(?:['’.-][\w&]+)*")
_SENTENCE = re.compile(r"(?:^|[.!?:;…\n\"“”‘(\[>])\s*\Z")
_BEFORE_SPEAKER = re.compile(
    r"(?:\b(?:calling|speaking|here|works?|working|welcome|behalf) (?:from|with|at|for|of|to)"
    r"|\b(?:thank you|thanks) for calling)(?: (?:from|with|at))?(?: the)?\s+\Z",
    re.IGNORECASE,
)
_AFTER_PLACEHOLDER = re.compile(r"(?: (?:from|with|at))?(?: the)?\s+", re.IGNORECASE)
_AFTER_SPEAKER = re.compile(r",? (?:this is|my name is|how (?:can|may)|\S+ speaking)\b", re.IGNORECASE)
_TURN_START = re.compile(r"(?:^|\n)(?:[^\n:]{0,40}:)?\s*\Z")
_TOUCHING = re.compile(r"[ \t.,'’@-]{0,3}\Z")


class SecondReading(Serialisable, repr=False):
    """The proposals of a second reading.

    Attributes:
        conversations: the anonymised texts with proposed marks (``confirmed`` is None). Hidden from ``repr``.
        point: the tagger's threshold; detectors: names of those that read.
        in_placeholders: number of findings in placeholders; elsewhere: of those that do not occur in the original.
        with_original: whether the originals were available.
    """

    KEYS = (
        *("point", "in_placeholders", "elsewhere", "with_original", "proposals", "detectors"),
        "conversations=_mark_rows",
    )

    conversations: tuple[Marked, ...] = field(repr=False)
    point: str | float
    detectors: tuple[str, ...]
    in_placeholders: int
    elsewhere: int
    with_original: bool

    def __repr__(self) -> str:
        return f"SecondReading({len(self.conversations)} conversations, {self.proposals} proposals)"

    @property
    def proposals(self) -> int:
        """Number of proposed spans."""
        return sum(len(c.marks) for c in self.conversations)

    def risk(self, *, by: str = "", limit: float = 5.0, scoring: Scoring | None = None, seed: int = 0) -> ResidualRisk:
        """Return the residual risk if every proposal were right: an upper bound for what this reading can find."""
        return residual_risk(self.conversations, by=by, limit=limit, scoring=scoring, proposals="count", seed=seed)

    @property
    def _mark_rows(self) -> list[dict[str, object]]:
        return [
            {"id": conversation.id, "marks": list_mark_rows(conversation.marks)} for conversation in self.conversations
        ]


def reading_policy(point: float = POINT, *, wide: bool = False) -> Policy:
    """Return the policy of the second reading: all detectors of the package, with low thresholds.

    It looks for the types of P2's Table 6, the labels below them in the taxonomy, and all direct identifiers; never for
    plain numbers, and for no dates but those of birth (P2, 3.1).

    Args:
        point: the tagger's threshold, between 0 and 1.
        wide: whether to look for occupations, origins, works, events and all other labels, too.

    Raises:
        UsageError: the point does not lie between 0 and 1.
    """
    if not 0 < point < 1:
        raise UsageError(f"point: a number between 0 and 1 is required, got {point!r}")
    base = Policy.load("default")
    labels = tuple(label.name for label in base.taxonomy if wide or _is_sought_label(label))
    return base.with_threshold(min(_THRESHOLD, base.threshold), float(point)).with_(
        name="second-reading",
        labels=labels,
        every=False,
        detectors=_DETECTORS,
        exclude=_EXCLUDED,
        exclusions=(),
    )


def _is_sought_label(label: Label) -> bool:
    names = (TAXONOMY.get(name).names.get("p2") for name in TAXONOMY.lineage(label.name))
    return label.kind == "direct" or label.name == "SPELLED_WORD" or any(names)


def second_reading(
    original: Sequence[str] | None,
    anonymised: Sequence[str],
    *,
    ids: Sequence[str] = (),
    meta: Sequence[Mapping[str, object]] = (),
    policy: Policy | str | None = None,
    point: float = POINT,
    wide: bool = False,
    capitals: bool = True,
    advance: Advance | None = None,
) -> SecondReading:
    """Propose what anonymisation may have missed.

    Args:
        original: the original texts in the same order; None: not available.
        anonymised: the texts to read.
        ids, meta: of the texts; by default numbers from 1, and no metadata.
        policy: what to look for and how, instead of :func:`reading_policy`; with adapters it can use detectors of other
            packages.
        point, wide: of :func:`reading_policy`, if there is no ``policy``; a lower point proposes more.
        capitals: whether the reader of capitals reads too.
        advance: called with the number of texts that are read, and of all.

    Raises:
        DataError: no text, unequal lengths, or a detector failed. UsageError: the policy or point is not valid.
    """
    check_lengths(anonymised if original is None else original, anonymised, ids or None, meta or None)
    chosen = Policy.load(policy) if policy is not None else reading_policy(point, wide=wide)
    out = []
    inside = elsewhere = 0
    for i, text in enumerate(iterate_with_progress(anonymised, advance, len(anonymised))):
        name = ids[i] if ids else str(i + 1)
        placeholders = find_placeholders(text)
        marks = []
        for span in _find_candidates(text, name, chosen, placeholders, capitals):
            intervals = _list_parts_outside_placeholders(text, span, placeholders)
            inside += not intervals
            marks += [_build_mark(text, *part, span, placeholders) for part in intervals]
        if original is not None:
            words_of_original = _make_padded_words(original[i])
            real = [m for m in marks if _make_padded_words(text[m.start : m.end]) in words_of_original]
            elsewhere += len(marks) - len(real)
            marks = real
        out.append(Marked(name, text, tuple(sorted(marks)), meta[i] if meta else MappingProxyType({})))
    readers = (*chosen.detectors, *(("capitals",) if capitals else ()))
    return SecondReading(
        tuple(out), chosen.operating_point_for("PERSON"), readers, inside, elsewhere, original is not None
    )


def _find_candidates(
    text: str, text_id: str, policy: Policy, placeholders: Sequence[Placeholder], capitals: bool
) -> Iterator[Span]:
    """Yield disjoint findings of the detectors, and of the reader of capitals where the detectors have none."""
    try:
        findings = [s for s in pipeline.detect(Document(text_id, text), policy) if s.label != "DATE_TIME"]
    except DataError as error:
        raise DataError(f"{text_id}: {error}") from None
    yield from findings
    covered = merge_intervals((s.start, s.end) for s in findings)
    starts = [a for a, _ in covered]
    for start, end in _find_capitalised_names(text, placeholders) if capitals else ():
        index = bisect_left(starts, end)
        if index == 0 or covered[index - 1][1] <= start:
            yield Span(start, end, _OTHER, _CAPITALS_SCORE, CAPITALS)


def _find_capitalised_names(text: str, placeholders: Sequence[Placeholder]) -> Iterator[Interval]:
    """Find words that look like names: at the start of a sentence only before a sign ("Del!") and if no dictionary has
    them, and none that have a capital anyway.
    """
    bare = list(text)
    for placeholder in placeholders:
        bare[placeholder.start : placeholder.end] = "_" * (placeholder.end - placeholder.start)
    shown = "".join(bare)
    phrase: Interval | None = None
    for match in _NAME.finditer(shown):
        start, end = match.span()
        word = match[0].lower().replace("’", "'")
        if word in _NO_NAMES or word.partition("'")[0] in _NO_NAMES or len(word) < 2:
            continue
        if phrase is not None and shown[phrase[1] : start] == " ":
            phrase = phrase[0], end
            continue
        if phrase is not None:
            yield phrase
        stem = word.removesuffix("n't").partition("'")[0]
        is_plain = (
            len(stem) < _LEAST_UNKNOWN or stem in read_dictionary() or stem in _CHAT or shown[end : end + 1] == " "
        )
        phrase = None if is_plain and _SENTENCE.search(shown, max(0, start - 8), start) else (start, end)
    if phrase is not None:
        yield phrase


def _list_parts_outside_placeholders(text: str, span: Span, placeholders: Sequence[Placeholder]) -> list[Interval]:
    """Return the parts of a finding outside of placeholders with two letters or digits, and not only small words."""
    out = []
    for start, end in subtract_intervals((span.start, span.end), [(p.start, p.end) for p in placeholders]):
        surface = text[start:end]
        if sum(map(str.isalnum, surface)) > 1 and not _SMALL.issuperset(surface.lower().split()):
            core = surface.strip(_EDGES)
            start += surface.index(core)
            out.append((start, start + len(core)))
    return out


def _build_mark(text: str, start: int, end: int, span: Span, placeholders: Sequence[Placeholder]) -> Mark:
    """Build a proposal: partial where it is cut, touches a placeholder of its kind, or is one word of a name."""
    label = span.label
    beside = next((p for p in placeholders if _is_next_to_placeholder(text, start, end, p)), None)
    if label == _OTHER and beside is not None and TAXONOMY.within(beside.label or label, "PERSON"):
        label = "PERSON"
    related = beside is not None and bool(beside.label) and TAXONOMY.are_related(beside.label, label)
    cut = any(p.start < span.end and span.start < p.end for p in placeholders)
    part = related or cut or (TAXONOMY.within(label, "PERSON") and " " not in text[start:end])
    if label in ("ORGANIZATION", "PRODUCT") and _is_organization_of_speaker(text, start, end, placeholders):
        label += "_SPEAKER"
    return Mark(start, end, label, part, "", None, span.score, span.source)


def _is_next_to_placeholder(text: str, start: int, end: int, placeholder: Placeholder) -> bool:
    """Whether only a blank or a sign or two separate a span from a placeholder."""
    (_, first), (second, _) = sorted([(start, end), (placeholder.start, placeholder.end)])
    return 0 <= second - first <= 3 and _TOUCHING.match(text, first, second) is not None


def _is_organization_of_speaker(text: str, start: int, end: int, placeholders: Sequence[Placeholder]) -> bool:
    """Whether the words around an organisation or product tell that it is a speaker's (P2, section 4.1)."""
    if _BEFORE_SPEAKER.search(text, max(0, start - 60), start):
        return True
    before = next((p.end for p in reversed(placeholders) if p.end <= start), None)
    if before is not None and _AFTER_PLACEHOLDER.fullmatch(text, before, start):
        return True
    return bool(_AFTER_SPEAKER.match(text, end) and _TURN_START.search(text, max(0, start - 60), start))


def _make_padded_words(text: str) -> str:
    """Return the words of a text in plain form, with a blank around each."""
    return " " + " ".join(find_words(normalize_surface(text))) + " "
