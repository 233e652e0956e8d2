"""The offline intruder before and after: how often record linkage finds whom a text is about (P3 3.2.3; TRIR's attack).

The intruder knows texts about the same subjects that others wrote: texts of the same corpus that it does not judge
(folds), or a background of its own. It never learns from a text that it judges, before or after, nor from a copy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from allonym.errors import UsageError
from allonym.evaluate.pairs import check_lengths
from allonym.intruder.linkage import Linkage
from allonym.intruder.protocol import Item, Target
from allonym.intruder.study import assign_folds
from allonym.intruder.table import Results, Row, tabulate_rows
from allonym.serial import Serialisable
from allonym.stats import BeforeAfter, Estimate, none
from allonym.stats.paired import McNemar, mcnemar
from allonym.stats.samples import average, difference, share
from allonym.text.fold import Level, fold_surface

TOP = (1, 3, 5, 10)
_CURVE = (*range(1, 11), 15, 20, 30, 50, 100, 200, 500, 1000)
Knows = Literal["original", "anonymised", "both"]
KNOWS: tuple[Knows, ...] = ("original", "anonymised", "both")


class CurvePoint(NamedTuple):
    """The shares of texts whose subject is among the first ``k``, before and after."""

    k: int
    before: Estimate
    after: Estimate


@dataclass(frozen=True, slots=True)
class Linked(Serialisable):
    """The result of the intruder in one group, or in all.

    Attributes:
        name: of the group; empty: all texts.
        texts: that were judged; subjects: candidates, among whom it chose; of all texts, their number per text at most.
        before, after: share of texts whose subject comes first, 0 to 1, Wilson's interval.
        change: after less before, paired, t interval.
        top: k to the shares before and after whose subject is among the first k.
        reciprocal: mean reciprocal ranks before and after, 0 to 1, t interval.
        chance: what guessing blindly reaches: the share of the subject with most texts; of an intruder who learnt from
            a background, that of the subject with most texts there, the mean over those that have as many.
        table: texts found before and after, before only, after only, never.
        test: McNemar's of that table; None without any text.
        curve: (k, share before, share after) for ascending k.
    """

    name: str
    texts: int
    subjects: int
    before: Estimate
    after: Estimate
    change: Estimate
    top: Mapping[int, BeforeAfter]
    reciprocal: BeforeAfter
    chance: Estimate
    table: tuple[int, int, int, int]
    test: McNemar | None
    curve: tuple[CurvePoint, ...]


@dataclass(frozen=True, slots=True)
class SubjectTerms:
    """The terms that pointed to a subject in its anonymised texts, the strongest first (P3 Tables 5, 6 and 8). Hidden.

    Attributes:
        subject, group: whom it is about.
        found: (term, weight) in texts whose subject was found; missed: in those where it was not. Weights of a list add
            up to 1 over all its terms, of which the first few are kept.
    """

    subject: str = field(repr=False)
    group: str
    found: tuple[tuple[str, float], ...] = field(repr=False)
    missed: tuple[tuple[str, float], ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Reidentification(Serialisable):
    """The result of an offline intruder before and after anonymisation.

    Attributes:
        features: what it looked at; knows: which texts of others it learnt from; folds: parts of the corpus, 0: it
            learnt from a background.
        all: over all judged texts; groups: sorted by name, empty without groups.
        unjudged: texts that were left out, as no other text is about their subject, or a group has one subject only.
        results: the table that all intruders have, of the anonymised texts.
        ranks: per text, the place of its subject before and after, from 1; 0: not judged.
        chances: per text, the intruder's own probability of the true subject after; NaN: not judged.
        surest: per text, that of its first guess; and the lead of that over the second.
        terms: per subject. Hidden from ``repr``.
    """

    KEYS = ("intruder", "features", "knows", "folds", "unjudged", "all", "groups", "results", "ranks")
    TEXT_KEYS = ("terms",)
    intruder: ClassVar[str] = "linkage"

    features: str
    knows: Knows
    folds: int
    all: Linked
    groups: tuple[Linked, ...]
    unjudged: int
    results: Results
    ranks: tuple[tuple[int, int], ...] = field(repr=False)
    chances: tuple[float, ...] = field(repr=False)
    surest: tuple[tuple[float, float], ...] = field(repr=False)
    terms: tuple[SubjectTerms, ...] = field(default=(), repr=False)

    @property
    def found(self) -> tuple[bool | None, ...]:
        """For each text, whether its subject comes first after anonymisation; None: not judged."""
        return tuple(after == 1 if after else None for _, after in self.ranks)


def reidentification(
    original: Sequence[str],
    anonymised: Sequence[str],
    subjects: Sequence[str],
    *,
    groups: Sequence[str] | None = None,
    background: Sequence[tuple[str, str]] | None = None,
    features: str = "both",
    knows: Knows = "original",
    folds: int = 5,
    ids: Sequence[str] | None = None,
    terms: int = 10,
    seed: int = 0,
    advance: Callable[[int, int], None] | None = None,
) -> Reidentification:
    """Let the offline intruder guess whom each text is about, before and after anonymisation.

    Args:
        original, anonymised: the same texts before and after, in the same order.
        subjects: whose each text is; empty: not known, the text is not judged.
        groups: per text, e.g. the fame class; the intruder chooses among the subjects of the text's group.
        background: (text, subject) pairs that the intruder learns from instead of other texts of the corpus. Copies of
            judged texts are left out.
        features: see :class:`allonym.intruder.linkage.Linkage`.
        knows: of others' texts in the corpus, the ``original`` ones, the ``anonymised`` ones as released, or ``both``.
            One who knows anonymised ones reads placeholders as words.
        folds: parts of the corpus, 2 or more; what judges one has learnt from the others. 0: leave one text out each
            time (as many parts as texts; slow).
        ids: names of the texts; by default their numbers from 1.
        terms: how many are kept per subject.
        seed: of the folds.
        advance: called with the number of parts that are done, and of all.

    Raises:
        DataError: unequal lengths.
        UsageError: ``features``, ``knows`` or ``folds`` is none of the above.
    """
    n = check_lengths(original, anonymised, subjects, groups, ids, least=0)
    if folds < 0 or folds == 1:
        raise UsageError(f"reidentification: folds must be 2 or more, or 0 for leave-one-out; got {folds}")
    if knows not in KNOWS:
        raise UsageError(f"reidentification: knows must be one of {', '.join(KNOWS)}, got {knows!r}")
    intruder = Linkage(features, tags=knows != "original")
    run = _LinkageRun(intruder, original, anonymised, knows, n)
    names = list(groups) if groups is not None else [""] * n
    parts = []
    for name in sorted(set(names)):
        members = [i for i in range(n) if names[i] == name and subjects[i]]
        if background is None:
            parts += _split_group(name, members, original, subjects, folds, seed)
        elif members:
            # Within a group the choice is among its subjects; without groups, among all of the background.
            known_subjects = {subjects[i] for i in members}
            parts.append(
                _LinkagePart(name, members, [], [p for p in background if groups is None or p[1] in known_subjects])
            )
    for count, part in enumerate(parts, 1):
        run.judge_part(part, subjects)
        if advance is not None:
            advance(count, len(parts))
    judged = [i for i in range(n) if run.after[i]]
    chosen = sorted({names[i] for i in judged}) if groups is not None else []
    linked = {g: _summarise_group(g, [i for i in judged if names[i] == g], run, subjects, names) for g in chosen}
    called = [str(i) for i in ids] if ids is not None else [str(i + 1) for i in range(n)]
    hits = [place == 1 for place in run.after]
    rows = [
        Row(called[i], subjects[i], names[i], (run.guess[i],), float(hits[i]), hits[i], run.after[i]) for i in judged
    ]
    return Reidentification(
        features,
        knows,
        0 if background is not None else folds or n,
        _summarise_group("", judged, run, subjects, names),
        tuple(linked.values()),
        n - len(judged),
        tabulate_rows(f"linkage {features}", rows, top=TOP),
        tuple(zip(run.before, run.after, strict=True)),
        tuple(run.chance),
        tuple(run.surest),
        run.list_terms(terms),
    )


@dataclass(frozen=True, slots=True)
class _LinkagePart:
    """Texts that are judged together, and what the intruder may learn from: numbers of texts, or a background."""

    group: str
    judged: list[int]
    learnt: list[int]
    background: Sequence[tuple[str, str]]


class _LinkageRun:
    """Judges parts, and keeps the results text by text."""

    def __init__(
        self, intruder: Linkage, original: Sequence[str], anonymised: Sequence[str], knows: Knows, n: int
    ) -> None:
        self._intruder = intruder
        self._original, self._anonymised, self._knows = original, anonymised, knows
        self.before, self.after, self.candidates = [0] * n, [0] * n, [0] * n
        self.guess = [""] * n
        self.chance = [float("nan")] * n
        self.blind = [float("nan")] * n
        self.surest = [(float("nan"), float("nan"))] * n
        self._terms: dict[tuple[str, str], tuple[dict[str, float], dict[str, float]]] = {}

    def judge_part(self, part: _LinkagePart, subjects: Sequence[str]) -> None:
        """Learn, and judge both versions of the part's texts."""
        hidden = {fold_surface(t, Level.CASE) for i in part.judged for t in (self._original[i], self._anonymised[i])}
        background = [
            pair for pair in self._list_background(part, subjects) if fold_surface(pair[0], Level.CASE) not in hidden
        ]
        classes = sorted({name for _, name in background})
        place = {name: k for k, name in enumerate(classes)}
        judge = self._intruder.learn(
            [Item(text) for text, _ in background], [place[name] for _, name in background], classes
        )
        mine = [i for i in part.judged if subjects[i] in place]
        truth = np.array([place[subjects[i]] for i in mine], np.int64)
        if len(classes) < 2 or not mine:
            return
        ranks = []
        for texts in (self._original, self._anonymised):
            targets = [Target(Item(texts[i])) for i in mine]
            table = judge.scores(targets)
            true_scores = table[np.arange(len(mine)), truth][:, None]
            earlier = np.arange(len(classes)) < truth[:, None]
            ranks.append(1 + ((table > true_scores) | ((table == true_scores) & earlier)).sum(axis=1))
        if part.background:
            often = Counter(name for _, name in background)
            most = max(often.values())
            tied = sum(n == most for n in often.values())
            for i in mine:
                self.blind[i] = (often[subjects[i]] == most) / tied
        first, sure = table.argmax(axis=1), judge.probabilities(targets)
        leading = np.sort(sure, axis=1)[:, ::-1]
        for k, i in enumerate(mine):
            self.before[i], self.after[i], self.candidates[i] = int(ranks[0][k]), int(ranks[1][k]), len(classes)
            self.guess[i] = classes[first[k]]
            self.chance[i] = float(sure[k, truth[k]])
            self.surest[i] = (float(leading[k, 0]), float(leading[k, 0] - leading[k, 1]))
            weights = self._terms.setdefault((part.group, subjects[i]), ({}, {}))[self.after[i] > 1]
            for term, weight in judge.terms([targets[k]], [int(truth[k])]).items():
                weights[term] = weights.get(term, 0.0) + weight

    def list_terms(self, most: int) -> tuple[SubjectTerms, ...]:
        """Return the strongest terms of each subject."""
        return tuple(
            SubjectTerms(name, group, _select_strongest_terms(identified, most), _select_strongest_terms(missed, most))
            for (group, name), (identified, missed) in sorted(self._terms.items(), key=lambda pair: pair[0])
        )

    def _list_background(self, part: _LinkagePart, subjects: Sequence[str]) -> list[tuple[str, str]]:
        texts = {"original": [self._original], "anonymised": [self._anonymised]}.get(
            self._knows, [self._original, self._anonymised]
        )
        return [*part.background, *((version[i], subjects[i]) for version in texts for i in part.learnt)]


def _split_group(
    group: str, members: Sequence[int], original: Sequence[str], subjects: Sequence[str], folds: int, seed: int
) -> list[_LinkagePart]:
    """Return the parts of a group, each judged by what learnt from the others; texts that nobody can link are in
    none."""
    texts: dict[str, set[str]] = {}
    for i in members:
        texts.setdefault(subjects[i], set()).add(fold_surface(original[i], Level.CASE))
    mine = [i for i in members if len(texts[subjects[i]]) > 1]
    if len({subjects[i] for i in mine}) < 2:
        return []
    place = {name: k for k, name in enumerate(dict.fromkeys(subjects[i] for i in mine))}
    items = [Item(fold_surface(original[i], Level.CASE)) for i in mine]
    count = folds or len({item.text for item in items})
    home = dict(zip(mine, assign_folds(items, [place[subjects[i]] for i in mine], count, seed).tolist(), strict=True))
    out = []
    for fold in sorted(set(home.values())):
        judged = [i for i in mine if home[i] == fold]
        out.append(_LinkagePart(group, judged, [i for i in mine if home[i] != fold], ()))
    return out


def _summarise_group(
    name: str, which: Sequence[int], run: _LinkageRun, subjects: Sequence[str], groups: Sequence[str]
) -> Linked:
    if not which:
        nothing = none("no text whose subject has another text, beside other subjects")
        return Linked(
            name, 0, 0, nothing, nothing, nothing, {}, BeforeAfter(nothing, nothing), nothing, (0, 0, 0, 0), None, ()
        )
    before, after = ([ranks[i] for i in which] for ranks in (run.before, run.after))
    n, most = len(which), max(run.candidates[i] for i in which)

    def share_within(ranks: Sequence[int], k: int) -> Estimate:
        return share(sum(rank <= k for rank in ranks), n)

    ks = [k for k in _CURVE if k < most] + [most]
    hits = [(a == 1, b == 1) for a, b in zip(before, after, strict=True)]
    table = (hits.count((True, True)), hits.count((True, False)), hits.count((False, True)), hits.count((False, False)))
    return Linked(
        name,
        n,
        most,
        share_within(before, 1),
        share_within(after, 1),
        difference([float(a) for a, _ in hits], [float(b) for _, b in hits]),
        {k: BeforeAfter(share_within(before, k), share_within(after, k)) for k in TOP if k < most},
        BeforeAfter(*(_average_shares([1 / rank for rank in ranks]) for ranks in (before, after))),
        Estimate.exact(_compute_chance_accuracy(which, run, subjects, groups), n),
        table,
        mcnemar(table),
        tuple(CurvePoint(k, share_within(before, k), share_within(after, k)) for k in ks),
    )


def _compute_chance_accuracy(
    which: Sequence[int], run: _LinkageRun, subjects: Sequence[str], groups: Sequence[str]
) -> float:
    if (blind := [run.blind[i] for i in which])[0] == blind[0]:
        return sum(blind) / len(blind)
    counts: dict[str, dict[str, int]] = {}
    for i in which:
        members = counts.setdefault(groups[i], {})
        members[subjects[i]] = members.get(subjects[i], 0) + 1
    return sum(max(members.values()) for members in counts.values()) / len(which)


def _average_shares(values: Sequence[float]) -> Estimate:
    mean = average(values)
    return Estimate(mean.value, max(0.0, mean.low), min(1.0, mean.high), mean.n, mean.method)


def _select_strongest_terms(weights: Mapping[str, float], most: int) -> tuple[tuple[str, float], ...]:
    total = sum(weights.values())
    best = sorted(weights.items(), key=lambda pair: (-pair[1], pair[0]))[:most]
    return tuple((term, weight / total) for term, weight in best) if total > 0 else ()
