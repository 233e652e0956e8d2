"""The offline intruder before and after: how often record linkage finds whom a text is about (P3 3.2.3; TRIR's attack).

The intruder knows texts about the same subjects that others wrote: texts of the same corpus that it does not judge
(folds), or a background of its own. It never learns from a text that it judges, before or after, nor from a copy.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from allonym.errors import UsageError
from allonym.evaluate.pairs import Advance, check_lengths, group_items, iterate_with_progress
from allonym.intruder.before_after import assign_folds, list_top_term_shares
from allonym.intruder.linkage import Linkage
from allonym.intruder.protocol import Item, Results, Row, Target, tabulate_rows
from allonym.serial import Serialisable
from allonym.stats import BeforeAfter, Estimate, none
from allonym.stats.samples import McNemar, average, difference, mcnemar, share
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


class Reidentification(Serialisable):
    """The result of an offline intruder before and after anonymisation.

    Attributes:
        features: what it looked at; knows: which texts of others it learnt from; folds: parts of the corpus, 0: it
            learnt from a background.
        all: over all judged texts; groups: sorted by name, empty without groups.
        unjudged: texts that were left out, as no other text is about their subject, or a group has one subject only.
        results: the table that all intruders have, of the anonymised texts.
        ranks: per text, the place of its subject before and after, from 1; 0: not judged.
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
    advance: Advance | None = None,
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
    names = list(groups) if groups is not None else [""] * n
    versions = {"original": [original], "anonymised": [anonymised]}.get(knows, [original, anonymised])
    intruder = Linkage(features, tags=knows != "original")
    run = _LinkageRun(intruder, original, anonymised, versions, subjects, names)
    parts: list[tuple[list[int], list[int], Sequence[tuple[str, str]]]] = []
    for _, members in sorted(group_items((i for i in range(n) if subjects[i]), names.__getitem__).items()):
        if background is None:
            parts += _split_group_into_folds(members, original, subjects, folds, seed)
        else:
            # Within a group the choice is among its subjects; without groups, among all of the background.
            known_subjects = {subjects[i] for i in members}
            parts.append((members, [], [p for p in background if groups is None or p[1] in known_subjects]))
    for part in iterate_with_progress(parts, advance, len(parts)):
        run.judge_fold(*part)
    judged = sorted(run.verdicts)
    verdicts = [run.verdicts.get(i, _UNJUDGED) for i in range(n)]
    called = [str(i) for i in ids] if ids is not None else [str(i + 1) for i in range(n)]
    rows = []
    for i in judged:
        guess, rank = verdicts[i].guess, verdicts[i].after
        rows.append(Row(called[i], subjects[i], names[i], (guess,), float(rank == 1), rank == 1, rank))
    members_of = group_items(judged, names.__getitem__) if groups is not None else {}
    return Reidentification(
        features,
        knows,
        0 if background is not None else folds or n,
        run.summarise_group("", judged),
        tuple(run.summarise_group(name, members_of[name]) for name in sorted(members_of)),
        n - len(judged),
        tabulate_rows(f"linkage {features}", rows, top=TOP),
        tuple((v.before, v.after) for v in verdicts),
        run.list_terms(terms),
    )


class _Verdict(NamedTuple):
    """The answers of the intruder about one text; see :class:`Reidentification`.

    Attributes:
        before, after: the place of its subject; candidates: number of subjects.
        guess: the first one after.
        blind: what guessing blindly reaches, where it learnt from a background.
    """

    before: int
    after: int
    candidates: int = 0
    guess: str = ""
    blind: float = math.nan


_UNJUDGED = _Verdict(0, 0)


@dataclass(eq=False)
class _LinkageRun:
    """Judges parts, and keeps the verdicts text by text.

    Attributes:
        intruder: what learns.
        original, anonymised: the texts that are judged.
        versions: those of them that it may know of others.
        subjects, groups: of the texts.
        verdicts: number of a text to the answers about it.
        terms: group and subject to what pointed there in texts whose subject was found, and in those where it was not.
    """

    intruder: Linkage
    original: Sequence[str]
    anonymised: Sequence[str]
    versions: Sequence[Sequence[str]]
    subjects: Sequence[str]
    groups: Sequence[str]
    verdicts: dict[int, _Verdict] = field(default_factory=dict)
    terms: dict[tuple[str, str], tuple[Counter[str], Counter[str]]] = field(default_factory=dict)

    def judge_fold(self, judged: Sequence[int], learnt: Sequence[int], background: Sequence[tuple[str, str]]) -> None:
        """Learn from some texts, or a background, and judge both versions of others."""
        hidden = {fold_surface(t[i], Level.CASE) for i in judged for t in (self.original, self.anonymised)}
        pairs = [*background, *((version[i], self.subjects[i]) for version in self.versions for i in learnt)]
        examples = [pair for pair in pairs if fold_surface(pair[0], Level.CASE) not in hidden]
        often = Counter(name for _, name in examples)
        classes = sorted(often)
        place = {name: k for k, name in enumerate(classes)}
        judge = self.intruder.learn(
            [Item(text) for text, _ in examples], [place[name] for _, name in examples], classes
        )
        mine = [i for i in judged if self.subjects[i] in place]
        truth = np.array([place[self.subjects[i]] for i in mine], np.int64)
        if len(classes) < 2 or not mine:
            return
        ranks = []
        for texts in (self.original, self.anonymised):
            targets = [Target(Item(texts[i])) for i in mine]
            table = judge.scores(targets)
            true_scores = table[np.arange(len(mine)), truth][:, None]
            earlier = np.arange(len(classes)) < truth[:, None]
            ranks.append((1 + ((table > true_scores) | ((table == true_scores) & earlier)).sum(axis=1)).tolist())
        most = max(often.values())
        tied = sum(n == most for n in often.values())
        first = table.argmax(axis=1)
        for k, i in enumerate(mine):
            before, after, subject = ranks[0][k], ranks[1][k], self.subjects[i]
            blind = (often[subject] == most) / tied if background else math.nan
            self.verdicts[i] = _Verdict(before, after, len(classes), classes[first[k]], blind)
            weights = self.terms.setdefault((self.groups[i], subject), (Counter(), Counter()))[after > 1]
            for term, weight in judge.terms([targets[k]], [int(truth[k])]).items():
                weights[term] += weight  # type: ignore[assignment]

    def list_terms(self, most: int) -> tuple[SubjectTerms, ...]:
        """Return the strongest terms of each subject."""
        return tuple(
            SubjectTerms(name, group, list_top_term_shares(identified, most), list_top_term_shares(missed, most))
            for (group, name), (identified, missed) in sorted(self.terms.items(), key=lambda pair: pair[0])
        )

    def summarise_group(self, name: str, members: Sequence[int]) -> Linked:
        """Return the result over some of the judged texts."""
        if not members:
            nothing = none("no text whose subject has another text, beside other subjects")
            both = BeforeAfter(nothing, nothing)
            return Linked(name, 0, 0, nothing, nothing, nothing, {}, both, nothing, (0, 0, 0, 0), None, ())
        verdicts = [self.verdicts[i] for i in members]
        before, after = [v.before for v in verdicts], [v.after for v in verdicts]
        n, most = len(members), max(v.candidates for v in verdicts)

        def share_within(ranks: Sequence[int], k: int) -> Estimate:
            return share(sum(rank <= k for rank in ranks), n)

        hits = [(a == 1, b == 1) for a, b in zip(before, after, strict=True)]
        a, b, c, d = (hits.count((x, y)) for x in (True, False) for y in (True, False))
        return Linked(
            name,
            n,
            most,
            share_within(before, 1),
            share_within(after, 1),
            difference([float(a) for a, _ in hits], [float(b) for _, b in hits]),
            {k: BeforeAfter(share_within(before, k), share_within(after, k)) for k in TOP if k < most},
            BeforeAfter(*(_average_shares([1 / rank for rank in ranks]) for ranks in (before, after))),
            Estimate.exact(self._compute_chance_accuracy(members), n),
            (a, b, c, d),
            mcnemar((a, b, c, d)),
            tuple(
                CurvePoint(k, share_within(before, k), share_within(after, k))
                for k in (*(k for k in _CURVE if k < most), most)
            ),
        )

    def _compute_chance_accuracy(self, members: Sequence[int]) -> float:
        blind = [self.verdicts[i].blind for i in members]
        if not math.isnan(blind[0]):
            return sum(blind) / len(blind)
        texts_of = group_items(members, self.groups.__getitem__).values()
        return sum(max(Counter(self.subjects[i] for i in texts).values()) for texts in texts_of) / len(members)


def _split_group_into_folds(
    members: Sequence[int], original: Sequence[str], subjects: Sequence[str], folds: int, seed: int
) -> Iterator[tuple[list[int], list[int], tuple[()]]]:
    """Yield the parts of a group, and the texts that each may learn from; texts that nobody can link are in none."""
    folded = {i: fold_surface(original[i], Level.CASE) for i in members}
    versions = Counter(subject for subject, _ in {(subjects[i], folded[i]) for i in members})
    mine = [i for i in members if versions[subjects[i]] > 1]
    place = {name: k for k, name in enumerate(dict.fromkeys(subjects[i] for i in mine))}
    if len(place) < 2:
        return
    texts = [folded[i] for i in mine]
    home = assign_folds(texts, [place[subjects[i]] for i in mine], folds or len(set(texts)), seed)
    for fold in np.unique(home):
        judged, learnt = ([mine[k] for k in np.flatnonzero(which).tolist()] for which in (home == fold, home != fold))
        yield judged, learnt, ()


def _average_shares(values: Sequence[float]) -> Estimate:
    mean = average(values)
    return replace(mean, low=max(0.0, mean.low), high=min(1.0, mean.high))
