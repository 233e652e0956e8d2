"""Originals in the outputs of a model, found by keyed digests alone, so that no plain text is needed.

P2 (5.3) had people read 400 outputs and found no personal information in any. Here every stretch of words of an output
is digested with the key that came with the digests (see :mod:`allonym.vault.digests`) and looked up: originals in any
case and grouping, parts of names, names shortened, one letter another.

A name may stand in a text because a model remembers it, or by chance. So what is a common word, or made of common ones,
is counted apart; so is what word frequencies alone would lead one to expect; and texts of a model that never saw the
data (``baseline``) tell what stands there anyway.

Whoever holds the originals looks for their direct identifiers instead (:func:`output_leaks`): found by a policy, or
given as plans or lists.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from allonym.document import Span
from allonym.errors import DataError, UsageError
from allonym.evaluate.findings import found_in_plans
from allonym.evaluate.pairs import Advance, check_lengths, iterate_with_progress
from allonym.evaluate.surface_measures import open_word_frequencies
from allonym.labels import TAXONOMY, Taxonomy
from allonym.plan import Plan
from allonym.policy import Policy
from allonym.serial import Serialisable
from allonym.stats import Estimate, none
from allonym.stats.samples import bootstrap, share
from allonym.text.words import compile_word_pattern
from allonym.vault.variants import (
    KINDS,
    LEAST_EDITED,
    LEAST_NUMBER,
    MOST_EDITED,
    MOST_WORDS,
    SAID,
    Word,
    get_phone_tail,
    join_letters_and_digits,
    split_folded_words,
)

if TYPE_CHECKING:
    from allonym.vault import Digests

COMMON = 4.0
"""Zipf frequency (log10 of how often in a billion words) from which on a word says nothing: ten in a million."""

ALL, DIRECT = "all", "direct"
_KNOWN = 3.0  # Zipf frequency from which on a word is no misspelling of another
_EDITED_WORDS = 3
_MOST_PLACES = 10_000
_LEAST_NUMBER = 4
_INITIALS = range(2, 5)
_RANK = {kind: i for i, kind in enumerate(KINDS)}


@dataclass(frozen=True, slots=True)
class Place:
    """The position of an original in an output, as half-open code points, without text.

    Attributes:
        output: id of the output, or its number from 1.
        kind: how it turned up; see :data:`allonym.vault.variants.KINDS`.
        common: what stands there is so common that it says nothing.
    """

    output: str
    start: int
    end: int
    label: str
    kind: str
    common: bool = False


class LabelLeaks(Serialisable):
    """The originals of one or several labels in the outputs.

    Common words and initials alone are in no number but those that bear their name.

    Attributes:
        label: of the taxonomy; ``all``; ``direct``: those that identify alone.
        originals: how many are looked for.
        leaked: share of them that turn up; in part only where no other original has that part. Wilson's interval.
        outputs: share of the outputs that hold one, in whatever part. Wilson's interval.
        kinds: how often each kind stands there.
        common: how often one stands there that is a common word.
        initials: how often initials alone, in capitals.
        chance: how many of the occurrences word frequencies alone would lead one to expect, words being independent.
        baseline: share of the baseline's texts that hold one.
        excess: ``outputs`` less ``baseline``, with Newcombe's interval (1998, doi:10.1002/(SICI)1097-0258(19980430)
            17:8<873::AID-SIM779>3.0.CO;2-I, method 10).
    """

    KEYS = (
        *("label", "originals", "occurrences", "common", "initials", "chance", "kinds"),
        *("leaked", "outputs", "baseline", "excess"),
    )

    label: str
    originals: int
    leaked: Estimate
    outputs: Estimate
    kinds: Mapping[str, int]
    common: int
    initials: int
    chance: float
    baseline: Estimate
    excess: Estimate

    @property
    def occurrences(self) -> int:
        """Number of occurrences."""
        return sum(self.kinds.values())


class GenerationLeaks(Serialisable):
    """The originals that occur in the outputs. It holds no text.

    Attributes:
        outputs, words: how many there are.
        baseline: how many texts the baseline has; 0: there is none.
        all: of all originals; direct: of those that identify alone.
        labels: by label, in the order of how often they stand there.
        places: where, for those who may see the outputs; the first 10,000.
        found: how many places there are.
        common: Zipf frequency from which on a word is common; language: of the frequencies.
    """

    outputs: int
    words: int
    baseline: int
    found: int
    common: float
    language: str
    all: LabelLeaks
    direct: LabelLeaks
    labels: tuple[LabelLeaks, ...]
    places: tuple[Place, ...] = field(repr=False)


def generations(
    outputs: Iterable[tuple[str, str]],
    digests: Digests,
    *,
    baseline: Iterable[str] | None = None,
    labels: Iterable[str] = (),
    common: float = COMMON,
    language: str = "en",
    advance: Callable[[int], None] | None = None,
) -> GenerationLeaks:
    """Search the outputs of a model for originals. Outputs are read one by one.

    Args:
        outputs: id and text of each; an empty id becomes its number.
        digests: of the originals: of a vault, or read from a file.
        baseline: texts of the same sort that never saw the data, such as those of the model before it was fine-tuned.
        labels: only these and those below them; none: all.
        common: Zipf frequency from which on a word is common; 4: ten in a million words.
        language: of the word frequencies.
        advance: called with how many outputs are done.

    Raises:
        DataError: there is no output or no original, or no word frequencies of the language.
        UsageError: ``common`` is below 3, where ordinary names lie.
        UnknownNameError: no such label.
        MissingExtra: the package wordfreq is not installed.
    """
    if not common >= _KNOWN:
        raise UsageError(f"common: a Zipf frequency from {_KNOWN:g} is required, got {common!r}")
    chosen = {below for name in labels for below in _list_labels_below(name, digests)}
    is_searched = [not chosen or label in chosen for label in digests.labels]
    if not any(is_searched):
        raise DataError("there is no original to look for" + (" with these labels" if chosen else ""))
    measure_frequency = open_word_frequencies(language, "telling common words by their frequency", minimum=1e-9)
    finder = _OriginalFinder(digests, is_searched, lru_cache(1 << 17)(measure_frequency), common)
    counted, baseline_count = _LeakCounter(finder), _LeakCounter(finder)
    places: list[Place] = []
    places_found = 0
    for number, (id, text) in enumerate(outputs, 1):
        for start, end, match in counted.count_and_locate_matches(text):
            places_found += 1
            if len(places) < _MOST_PLACES:
                places.append(Place(id or str(number), start, end, match.label, match.kind, match.common))
        if advance is not None:
            advance(number)
    if not counted.texts:
        raise DataError("one output at least is required, got 0")
    for text in baseline or ():
        baseline_count.count_and_locate_matches(text)
    if baseline is not None and not baseline_count.texts:
        raise DataError("one text at least is required in the baseline, got 0")
    had = Counter(label for label, keep in zip(digests.labels, is_searched, strict=True) if keep)
    rows = {label: counted.summarise_labels(label, had[label], {label}, baseline_count) for label in had}
    direct = {label for label in had if label in TAXONOMY and TAXONOMY.get(label).kind == "direct"}
    return GenerationLeaks(
        counted.texts,
        counted.words,
        baseline_count.texts,
        places_found,
        common,
        language,
        counted.summarise_labels(ALL, had.total(), set(had), baseline_count),
        counted.summarise_labels(DIRECT, sum(had[label] for label in direct), direct, baseline_count),
        tuple(sorted(rows.values(), key=lambda r: (-r.occurrences, -r.common, r.label))),
        tuple(places),
    )


def _list_labels_below(name: str, digests: Digests) -> Iterable[str]:
    if name in digests.labels and name not in TAXONOMY:  # a policy's own
        return (name,)
    return TAXONOMY.descendants(TAXONOMY.get(name, "label").name)


@dataclass(frozen=True, slots=True)
class _Match:
    """Words ``first`` to ``last`` (half open) that match one or several originals."""

    first: int
    last: int
    kind: str
    label: str
    numbers: frozenset[int]
    common: bool
    chance: float
    size: int


class _OriginalFinder:
    """Looks up runs of words of a text."""

    def __init__(
        self, digests: Digests, is_searched: list[bool], frequency: Callable[[str], float], common: float
    ) -> None:
        self.digests = digests
        self._kept = is_searched
        self._frequency = frequency
        self._common = 10.0 ** (common - 9)
        self._known = 10.0 ** (_KNOWN - 9)
        self._named = lru_cache(1 << 17)(digests.named)
        self._edited = lru_cache(1 << 16)(digests.edited)

    def find_originals(self, text: str, words: list[Word]) -> list[_Match]:
        """Return the matches in a text in order, without overlaps."""
        matches = [match for first in range(len(words)) for match in self._list_matches_from(text, words, first)]
        disjoint: list[_Match] = []
        used: set[int] = set()
        # Of matches that overlap, that of more words counts, then the stronger kind.
        for match in sorted(matches, key=lambda m: (-m.size, _RANK[m.kind], m.first)):
            if used.isdisjoint(range(match.first, match.last)):
                used.update(range(match.first, match.last))
                disjoint.append(match)
        return sorted(disjoint, key=lambda m: m.first)

    def _list_matches_from(self, text: str, words: list[Word], first: int) -> list[_Match]:
        out: list[_Match] = []
        numeric, expected, ordinary = True, 1.0, True
        for last in range(first + 1, min(len(words), first + MOST_WORDS) + 1):
            word = words[last - 1].text
            numeric = numeric and (word in SAID or any(c.isdecimal() for c in word))
            if last - first > self.digests.longest and not numeric and last - first > _INITIALS.stop:
                break
            each = self._frequency(word)
            expected *= each
            ordinary = ordinary and each >= (self._known if last - first == 1 else self._common)
            some = [w.text for w in words[first:last]]
            hits = list(self._named(" ".join(some)))
            letters = join_letters_and_digits(some)
            if numeric and len(letters) >= _LEAST_NUMBER:
                hits += self._named(letters)
                hits += self._named(get_phone_tail(letters)) if get_phone_tail(letters) else ()
            hits = [hit for hit in hits if hit[0] != "initials"]
            if len(letters) in _INITIALS and _are_initials(text, words[first:last]):
                hits += [hit for hit in self._named(letters) if hit[0] == "initials"]
            least = LEAST_NUMBER if numeric else LEAST_EDITED
            if (
                not hits
                and not ordinary
                and least - 1 <= len(letters) <= MOST_EDITED + 1
                and (numeric or last - first <= _EDITED_WORDS)
            ):
                hits += [("edited", number) for number in self._edited(letters)]
            out += self._list_strongest_match(first, last, some, hits, expected)
        return out

    def _list_strongest_match(
        self, first: int, last: int, words: list[str], hits: list[tuple[str, int]], chance: float
    ) -> list[_Match]:
        """List the match of a run of words, of the strongest kind and the first original's label; or none."""
        hits = [(kind, number) for kind, number in hits if self._kept[number]]
        if not hits:
            return []
        kind = min((kind for kind, _ in hits), key=_RANK.__getitem__)
        numbers = frozenset(number for hit_kind, number in hits if hit_kind == kind)
        label = self.digests.labels[min(numbers)]
        common = chance >= (self._known if kind == "edited" else self._common)
        # A letter alone beside a name is no letter too many in it: "Ada's".
        size = len(words) - (kind == "edited" and 1 in (len(words[0]), len(words[-1])))
        return [_Match(first, last, kind, label, numbers, common, chance, size)]


def _are_initials(text: str, words: list[Word]) -> bool:
    """Whether words are written as initials: one word in capitals, or single capitals."""
    surfaces = [text[w.start : w.end] for w in words]
    return all(s.isupper() for s in surfaces) and (len(surfaces) == 1 or all(len(s) == 1 for s in surfaces))


class _LeakCounter:
    """Counts over texts."""

    def __init__(self, finder: _OriginalFinder) -> None:
        self._finder = finder
        self.texts = 0
        self.words = 0
        self._kinds: Counter[tuple[str, str]] = Counter()
        self._common: Counter[str] = Counter()
        self._initials: Counter[str] = Counter()
        self._leaked: set[int] = set()
        self._holding: Counter[frozenset[str]] = Counter()
        self._chance: dict[tuple[str, frozenset[int], float], float] = {}

    def count_and_locate_matches(self, text: str) -> list[tuple[int, int, _Match]]:
        """Count the matches of one text, and return their positions."""
        words = split_folded_words(text)
        self.texts += 1
        self.words += len(words)
        out = []
        holding: set[str] = set()
        for match in self._finder.find_originals(text, words):
            out.append((words[match.first].start, words[match.last - 1].end, match))
            if match.kind == "initials":
                self._initials[match.label] += 1
            elif match.common:
                self._common[match.label] += 1
            else:
                self._kinds[match.label, match.kind] += 1
                self._chance[match.label, match.numbers, match.chance] = match.chance
                holding.add(match.label)
                if match.kind == "whole" or len(match.numbers) == 1:
                    self._leaked |= match.numbers
        if holding:
            self._holding[frozenset(holding)] += 1
        return out

    def estimate_leaking_share(self, labels: set[str]) -> Estimate:
        """Return the share of the texts that hold one of these labels."""
        return share(sum(n for some, n in self._holding.items() if some & labels), self.texts)

    def summarise_labels(self, name: str, original_count: int, labels: set[str], baseline: _LeakCounter) -> LabelLeaks:
        """Return the counts of some labels."""
        labels_of = self._finder.digests.labels
        outputs = self.estimate_leaking_share(labels)
        base = baseline.estimate_leaking_share(labels) if baseline.texts else none("no baseline")
        return LabelLeaks(
            name,
            original_count,
            share(sum(labels_of[number] in labels for number in self._leaked), original_count),
            outputs,
            {k: n for k in KINDS if (n := sum(self._kinds[label, k] for label in labels))},
            sum(self._common[label] for label in labels),
            sum(self._initials[label] for label in labels),
            self.words * sum(p for (label, _, _), p in self._chance.items() if label in labels),
            base,
            _estimate_share_difference(outputs, base),
        )


def _estimate_share_difference(rate: Estimate, base: Estimate) -> Estimate:
    if not base.n:
        return none("no baseline")
    value = rate.value - base.value
    low = value - sqrt((rate.value - rate.low) ** 2 + (base.high - base.value) ** 2)
    high = value + sqrt((rate.high - rate.value) ** 2 + (base.value - base.low) ** 2)
    return Estimate(value, max(-1.0, low), min(1.0, high), rate.n + base.n, "difference of shares, Newcombe, 95%")


_WORD = compile_word_pattern("'’-", digits=False)
_LEAST = 3  # letters of a part of a person's name that counts
Named = tuple[str, str]
"""Label and surface."""


@dataclass(frozen=True, slots=True)
class Shown:
    """An identifier that occurs in an output: the output's number from 0, its label, and its surface, hidden."""

    output: int
    label: str
    surface: str = field(repr=False)


class OutputLeaks(Serialisable):
    """The share of outputs and identifiers that leak; 0 is best.

    Attributes:
        outputs: share of the outputs that hold a direct identifier; Wilson's interval.
        identifiers: share of the originals' direct identifiers (each once a text) that show up; texts drawn again.
        types: the same by label.
        found: which, for who may see them.
    """

    TEXT_KEYS = ("found",)

    outputs: Estimate
    identifiers: Estimate
    types: Mapping[str, Estimate]
    found: tuple[Shown, ...] = field(default=(), repr=False)


def output_leaks(
    outputs: Sequence[str],
    original: Sequence[str],
    *,
    plans: Sequence[Plan] | None = None,
    entities: Sequence[Sequence[Named]] | None = None,
    policy: str | Policy = "default",
    across: bool = False,
    seed: int = 0,
    advance: Advance | None = None,
) -> OutputLeaks:
    """Search the outputs of a model for direct identifiers of the originals.

    An identifier shows up where its surface stands in an output as whole words, with the same capitals where it has
    any. Of a person, so does each part of the name of three letters or more that stands beside no name in the original.

    Args:
        outputs: what the model wrote, one per original.
        original: the texts that the anonymised ones were made of.
        plans: what was replaced in each original; entities: label and surface of each identifier of each original, of
            any kind. Without both, ``policy`` finds them.
        policy: a preset's name, a file or a policy.
        across: look for the identifiers of all originals in each output, since a model may know them from training.
        seed: of the interval.
        advance: called with texts done and in all.

    Raises:
        DataError: unequal lengths, no text, or a plan of another text (PlanMismatch).
        PolicyError, UnknownNameError: the policy is not valid or not known.
    """
    n = check_lengths(outputs, original, plans, entities)
    placed = found_in_plans(original, plans) if plans is not None else None
    per: list[dict[Named, tuple[str, ...]]] = []
    for i, text in enumerate(iterate_with_progress(original, advance, n)):
        listed = entities[i] if entities is not None else None
        per.append(_map_direct_identifiers_to_forms(text, placed[i] if placed else None, listed, policy))
    pooled = {named: forms for identifiers in per for named, forms in identifiers.items()} if across else {}
    leaks: list[Shown] = []
    shown: list[Counter[str]] = []
    leaky = 0
    for i, output in enumerate(outputs):
        there = [Shown(i, *named) for named, forms in per[i].items() if _contains_any_form(forms, output)]
        others = ((named, forms) for named, forms in pooled.items() if named not in per[i])
        more = [Shown(i, *named) for named, forms in others if _contains_any_form(forms, output)]
        leaky += bool(there or more)
        leaks += (*there, *more)
        shown.append(Counter(leak.label for leak in there))
    had = [Counter(label for label, _ in identifiers) for identifiers in per]
    names = sorted({label for identifiers in per for label, _ in identifiers})
    cells = np.array([[(had[i][name], shown[i][name]) for name in names] for i in range(n)]).reshape(n, len(names), 2)
    return OutputLeaks(
        share(leaky, n),
        _estimate_leaked_share(cells.sum(axis=1), seed),
        {name: _estimate_leaked_share(cells[:, k], seed) for k, name in enumerate(names)},
        tuple(leaks),
    )


def _map_direct_identifiers_to_forms(
    text: str, placed: Sequence[Span] | None, names: Sequence[Named] | None, policy: str | Policy
) -> dict[Named, tuple[str, ...]]:
    """Map the direct identifiers of a text to the forms of each."""
    taxonomy: Taxonomy = TAXONOMY
    if names is not None:
        spans = [(label, surface) for label, surface in names if surface.strip()]
        beside = text
        for _, surface in sorted(spans, key=lambda s: -len(s[1])):
            beside = beside.replace(surface, " ")
    else:
        if placed is None:
            from allonym.pipeline import detect

            chosen = Policy.load(policy)
            taxonomy, placed = chosen.taxonomy, detect(text, chosen)
        places = [(s.start, s.end, s.label) for s in placed]
        spans = [(label, text[a:b].strip()) for a, b, label in places if text[a:b].strip()]
        beside = text
        for a, b, _ in sorted(places, reverse=True):
            beside = f"{beside[:a]} {beside[b:]}"
    common = {w.casefold() for w in _WORD.findall(beside)}
    out: dict[Named, tuple[str, ...]] = {}
    for label, surface in spans:
        if label in taxonomy and taxonomy.get(label).kind != "direct":
            continue
        parts: list[str] = []
        if taxonomy.get_family(label) == "PERSON":
            parts = [w for w in _WORD.findall(surface) if len(w) >= _LEAST and w.casefold() not in common]
        out[label, surface] = tuple(dict.fromkeys((surface, *(w for w in parts if w[:1].isupper()))))
    return out


def _contains_any_form(forms: Sequence[str], output: str) -> bool:
    """Whether one of the forms occurs in an output as whole words, in the same case."""
    return any(form in output and re.search(rf"(?<!\w){re.escape(form)}(?!\w)", output) for form in forms)


def _estimate_leaked_share(counts: Any, seed: int) -> Estimate:
    """Estimate the share of identifiers that occur, from (texts, 2): their number, and the number that occur."""
    if not counts.size or not counts[:, 0].sum():
        return none("no direct identifier")

    def compute_share(units: Any) -> float:
        had, shown = counts[units].sum(axis=0)
        return float(shown / had) if had else float("nan")

    had = int(counts[:, 0].sum())
    estimate = bootstrap(compute_share, len(counts), seed=seed)
    if estimate.value in (0.0, 1.0) and estimate.low == estimate.high:  # no draw can differ
        return share(int(counts[:, 1].sum()), had)
    return Estimate(estimate.value, estimate.low, estimate.high, had, estimate.method)
