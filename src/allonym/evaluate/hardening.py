"""Hardening: generalise what gives a subject away until an intruder no longer finds whom the text is about.

The intruder links each text to original texts about the same subjects by linear models of words, of pairs of words and
of long parts of words (:mod:`allonym.intruder.linkage`), learnt without the text itself. What adds most to the
subject's lead over its rival, for what it costs, becomes a more general word, and at the end goes; then the intruder
looks again. Any content word is within reach, such as ``ginger`` or ``pregnancy``, not only names; function words stay.

Its price is told by two counts: the share of words that are gone (P3 4.1.3.1: 1 - words left / words of the original,
placeholders not counted), and the same with each generalised word counted as half gone. Placeholders that say no more
than a plain word become one: ``they`` for a pronoun, ``a professional``, ``several``. The intruders that choose the
words pass over these, so a text is never called safe because ``they`` reads like somebody else.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allonym.errors import DataError, UsageError
from allonym.evaluate.pairs import check_lengths, group_items, iterate_with_progress
from allonym.evaluate.rewording import (
    GENERALISE,
    chain_plans,
    list_general_replacements,
    list_words_and_placeholders,
    make_edits,
    soften_placeholders,
)
from allonym.evaluate.surface_measures import list_words, similarity
from allonym.intruder import Item, Target
from allonym.intruder.before_after import assign_folds
from allonym.intruder.linkage import Linkage, LinkageJudge
from allonym.plan import Edit, Plan, apply_edits, digest, locate_replacements
from allonym.serial import Serialisable
from allonym.stats import BeforeAfter, Estimate, none
from allonym.stats.samples import average, share
from allonym.text.fold import Level as FoldLevel
from allonym.text.fold import fold_surface

LEADS = (0.2, 0.1, 0.05, 0.02, 0.0, -0.03, -0.06, -0.1)
"""Leads at which the curve is read beside the chosen one."""
FOLDS = 10
_ROUNDS = 60
_AT_ONCE = 4  # words that change between two looks
_LEAST = 1e-4  # gain below which a word is left alone
_AGAIN = 0.1  # what it costs to make a general word more general, in words gone
_SAMPLE = 300  # texts whose similarity is measured at the curve's levels

Advance = Callable[[int, int], None]


class Level(Serialisable):
    """One point of the curve: every text hardened until its subject's lead is at most ``lead``.

    Attributes:
        lead: score of the subject less that of the rival that has to pass it; scores are about 0 to 1. None: untouched.
        attacker: share of texts whose subject is among the first ``rank`` guesses of the intruder that chose the words.
        judge: the same for one that looks at other features, learnt in other folds, and had no say.
        removed: mean share of words gone (P3 4.1.3.1).
        weighted: the same with generalised words counted as half gone.
        similarity: mean cosine with the original by the sentence encoder, over 300 texts at most.
    """

    lead: float | None
    attacker: Estimate
    judge: Estimate
    removed: Estimate
    weighted: Estimate
    similarity: Estimate


@dataclass(frozen=True, slots=True)
class Hardened:
    """A hardened text.

    Attributes:
        text: as hardened. Hidden from ``repr``.
        plan: from the anonymised text, or from the original one where the first plan was given, to ``text``.
        rank: of the subject by the intruder that chose the words, from 1; 0: it has no other text about the subject, or
            about nobody else.
        removed, weighted: shares of words gone, see :class:`Level`; NaN for a text without words.
        generalised, suppressed: words that became general ones, and words that went.
    """

    text: str = field(repr=False)
    plan: Plan = field(repr=False)
    rank: int
    removed: float
    weighted: float
    generalised: int
    suppressed: int


class Hardening(Serialisable):
    """The result of :func:`harden`.

    Attributes:
        rank: a subject's rank must be worse than this.
        texts: the hardened texts, in the order given.
        levels: the curve: untouched, then from mild to strict.
        chosen: the level of ``texts``: unlike the others it keeps to the floors.
        groups: group to its curve as in ``levels``, then its chosen level; empty where no groups were given.
        still_found: texts whose subject is found by the attacker nevertheless.
        released: share of texts whose subject is found by one who has learnt from the released texts of others, before
            and after hardening. Attacker and judge know originals only, and are misled by words that hardening brought
            in; this one is not, so it is the number to judge a release by.
    """

    KEYS = (
        *("rank", "texts=_text_count", "still_found", "released", "generalised", "suppressed"),
        *("chosen", "groups=_group_rows", "levels"),
    )

    rank: int
    texts: tuple[Hardened, ...]
    levels: tuple[Level, ...]
    chosen: Level
    groups: Mapping[str, tuple[Level, ...]]
    still_found: int
    released: BeforeAfter

    @property
    def generalised(self) -> int:
        """Number of words replaced by general ones."""
        return sum(text.generalised for text in self.texts)

    @property
    def suppressed(self) -> int:
        """Number of words removed."""
        return sum(text.suppressed for text in self.texts)

    @property
    def _text_count(self) -> int:
        return len(self.texts)

    @property
    def _group_rows(self) -> dict[str, object]:
        return {name: {"chosen": curve[-1], "levels": curve[:-1]} for name, curve in self.groups.items()}


@dataclass(frozen=True, slots=True)
class _Step:
    """A step of hardening: the subject's rank and lead, the shares of words gone, and the edits of the anonymised
    text."""

    rank: int
    lead: float
    removed: float
    weighted: float
    edits: tuple[Edit, ...] = field(repr=False)
    text: str = field(repr=False)


def harden(
    original: Sequence[str],
    anonymised: Sequence[str],
    subjects: Sequence[str],
    *,
    groups: Sequence[str] | None = None,
    plans: Sequence[Plan] | None = None,
    rank: int = 1,
    lead: float = 0.0,
    most_removed: float | None = None,
    least_similar: float | None = None,
    seed: int = 0,
    advance: Advance | None = None,
) -> Hardening:
    """Harden anonymised texts against an intruder who knows other original texts about the same subjects.

    Args:
        original, anonymised: the same texts in the same order. English.
        subjects: whom each text is about; two subjects and, to be found at all, two texts of each are required.
        groups: the intruder chooses among the subjects of a text's group; None: among all.
        plans: those that made ``anonymised`` of ``original``; with them each result's plan starts at the original.
        rank: the subject's rank must become worse than this.
        lead: how far the rival must at least be: below 0 leaves a margin, since other intruders see other things.
        most_removed: a text's weighted share of words gone at which hardening stops, 0 to 1.
        least_similar: cosine with the original below which no text may fall, -1 to 1.
        seed: of the folds.
        advance: called with texts done and texts in all.

    Raises:
        DataError: unequal lengths, or a group with one subject.
        UsageError: a number is out of its range.
        PlanMismatch: a plan does not make its anonymised text.
    """
    n = check_lengths(original, anonymised, subjects, groups or None, plans or None, least=2)
    if rank < 1:
        raise UsageError(f"rank must be 1 or more, got {rank}")
    if most_removed is not None and not 0 <= most_removed <= 1:
        raise UsageError(f"most_removed must be from 0 to 1, got {most_removed:g}")
    if least_similar is not None and not -1 <= least_similar <= 1:
        raise UsageError(f"least_similar must be from -1 to 1, got {least_similar:g}")
    within = list(groups) if groups is not None else [""] * n
    readers = [Linkage("words"), Linkage("characters", characters=(6, 8))]
    attackers = [train_text_judges(original, subjects, within, r, folds=FOLDS, seed=seed) for r in readers]
    judges = train_text_judges(original, subjects, within, Linkage("both"), seed=seed + 1)
    ways: list[list[_Step]] = []
    for i in iterate_with_progress(range(n), advance, n):
        originals_at = _map_starts_to_originals(plans[i]) if plans else {}
        text = _TextHardening(original[i], anonymised[i], [a[i] for a in attackers], originals_at)
        ways.append(text.harden_stepwise(rank, min(*LEADS, lead), most_removed))
    stops = [_find_step_index(way, lead) for way in ways]
    if least_similar is not None:
        stops = _find_similar_step_indices(original, ways, stops, least_similar)
    steps = [way[s] for way, s in zip(ways, stops, strict=True)]
    measures = _LevelMeasures(original, judges, rank)
    states: list[tuple[float | None, list[_Step]]] = [
        (None, [_make_untouched_step(way[0], *texts) for way, *texts in zip(ways, original, anonymised, strict=True)]),
        *((lead, [way[_find_step_index(way, lead)] for way in ways]) for lead in LEADS),
        (lead, steps),
    ]

    def measure_curve(members: Sequence[int]) -> tuple[Level, ...]:
        return tuple(measures.measure_level(lead, [steps[i] for i in members], members) for lead, steps in states)

    *levels, chosen = measure_curve(range(n))
    members_of = group_items(range(n), lambda i: within[i]) if groups is not None else {}
    return Hardening(
        rank,
        tuple(_build_hardened(original[i], anonymised[i], steps[i], plans[i] if plans else None) for i in range(n)),
        tuple(levels),
        chosen,
        {name: measure_curve(members) for name, members in members_of.items()},
        sum(0 < step.rank <= rank for step in steps),
        BeforeAfter(
            measures.estimate_risk_after_release(anonymised, subjects, within, seed + 2),
            measures.estimate_risk_after_release([step.text for step in steps], subjects, within, seed + 2),
        ),
    )


def _map_starts_to_originals(plan: Plan) -> dict[int, str]:
    """Map the start of each replacement, in the text that a plan makes, to its original."""
    return {start: edit.original for start, _, edit in locate_replacements(plan.edits) if edit.original is not None}


class _TextHardening:
    """A text that becomes more general step by step."""

    def __init__(self, original: str, text: str, judges: Sequence[TextJudge], originals_at: Mapping[int, str]) -> None:
        self._text = text
        self._total = len(list_words(original))
        self._judges = judges
        self._words = list_words_and_placeholders(text)
        self._new_words = soften_placeholders(self._words, originals_at)
        self._agreed = frozenset(i for i in self._new_words if self._words[i].label is None)
        self._hidden = self._new_words.keys() - self._agreed
        self._choices = [list(list_general_replacements(self._words, i)) for i in range(len(self._words))]

    def harden_stepwise(self, rank: int, lead: float, most_removed: float | None) -> list[_Step]:
        """Return the steps from the text with softened placeholders to one whose lead is at most ``lead``."""
        out: list[_Step] = []
        subject = self._judges[0].subject
        for _ in range(_ROUNDS):
            edits = self._make_edits()
            seen_edits = self._make_edits(self._hidden)
            shown = apply_edits(self._text, seen_edits)
            scores = np.mean([j.score_subjects(shown) for j in self._judges], axis=0)
            others = np.where(np.arange(len(scores)) == subject, -np.inf, scores)
            rivals = int((others > -np.inf).sum())  # rivals that the intruders know a text about
            rival = int(np.argsort(-others, kind="stable")[max(0, min(rank, rivals) - 1)])
            place = self._judges[0].rank_subject(scores)
            ahead = float(scores[subject]) - float(others[rival]) if place else -np.inf
            hardened = apply_edits(self._text, edits)
            shares = _compute_removed_shares(self._total, hardened, edits)
            out.append(_Step(place, ahead, *shares, tuple(edits), hardened))
            gains = self._estimate_gains(shown, seen_edits, rival) if ahead > lead else []
            if not gains:
                break
            got = 0.0
            for gain, where in gains[:_AT_ONCE]:
                for i in where:
                    self._new_words[i] = self._choices[i].pop(0)
                got += gain
                if got > ahead - lead:
                    break
            if most_removed is not None:
                tried = self._make_edits()
                if _compute_removed_shares(self._total, apply_edits(self._text, tried), tried)[1] > most_removed:
                    break
        return out

    def _make_edits(self, left_out: Set[int] = frozenset()) -> list[Edit]:
        new_words = {i: word for i, word in self._new_words.items() if i not in left_out}
        return make_edits(self._text, self._words, new_words, self._agreed)

    def _estimate_gains(self, shown: str, edits: Sequence[Edit], rival: int) -> list[tuple[float, list[int]]]:
        """Estimate by how much each word that can still change lowers the lead, with all its mentions; best for its
        cost first.

        Args:
            shown: the text as the intruders read it.
            edits: those that made it.
            rival: who has to pass the subject.
        """
        adds: defaultdict[int, float] = defaultdict(float)
        for judge in self._judges:
            pairs = (judge.judge.list_word_contributions(shown, label) for label in (judge.subject, rival))
            for (start, _, subject_adds), (_, _, other) in zip(*pairs, strict=True):
                adds[start] += (subject_adds - other) / len(self._judges)
        gain: defaultdict[tuple[str, str], float] = defaultdict(float)
        cost: defaultdict[tuple[str, str], float] = defaultdict(float)
        where: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        places = locate_replacements(edits)
        ends = [edit.end for edit in edits]
        for i, word in enumerate(self._words):
            new_word = self._new_words.get(i)
            if not self._choices[i] or new_word == "":
                continue
            k = bisect_right(ends, word.start)
            if k < len(edits) and edits[k].start < word.end:
                start, stop, _ = places[k]
                weight = sum(w for s, w in adds.items() if start <= s < stop)
            else:
                weight = adds.get(word.start + (places[k - 1][1] - ends[k - 1] if k else 0), 0.0)
            key = (word.lower_text, new_word or "")
            gain[key] += weight
            cost[key] += _AGAIN if new_word else 0.5 if self._choices[i][0] else 1.0
            where[key].append(i)
        best = sorted((k for k in gain if gain[k] > _LEAST), key=lambda k: -gain[k] / cost[k])
        return [(gain[k], where[k]) for k in best]


def _make_untouched_step(step: _Step, original: str, anonymised: str) -> _Step:
    """Return a first step with the text as it was before any edit."""
    removed, weighted = _compute_removed_shares(len(list_words(original)), anonymised, ())
    return replace(step, text=anonymised, removed=removed, weighted=weighted)


def _compute_removed_shares(word_count: int, hardened: str, edits: Sequence[Edit]) -> tuple[float, float]:
    """Return the two shares of words gone; NaN for an original without words."""
    if not word_count:
        return float("nan"), float("nan")
    removed = 1 - len(list_words(hardened)) / word_count
    return removed, removed + _count_general_words(edits) / word_count / 2


def _count_general_words(edits: Sequence[Edit]) -> int:
    """Count the words that are general ones."""
    generalised = (e for e in edits if e.operator == GENERALISE)
    return sum(min(len(list_words(e.replacement)), max(1, len(list_words(e.original or "")))) for e in generalised)


def _find_step_index(steps: Sequence[_Step], lead: float) -> int:
    """Return the first step whose lead is at most this, else the one with the least."""
    return next((k for k, s in enumerate(steps) if s.lead <= lead), min(range(len(steps)), key=lambda k: steps[k].lead))


def _find_similar_step_indices(
    original: Sequence[str], steps_by_text: Sequence[Sequence[_Step]], stops: Sequence[int], least_similarity: float
) -> list[int]:
    """Return for each text the last step up to its stop that is similar enough; the first one where none is."""
    out = list(stops)
    open_ = [i for i, k in enumerate(out) if k]
    while open_:
        values = similarity([original[i] for i in open_], [steps_by_text[i][out[i]].text for i in open_]).values
        open_ = [i for i, value in zip(open_, values, strict=True) if value < least_similarity]
        for i in open_:
            out[i] -= 1
        open_ = [i for i in open_ if out[i]]
    return out


def _build_hardened(original: str, anonymised: str, step: _Step, first_plan: Plan | None) -> Hardened:
    plan = Plan(digest(anonymised), step.edits, (), digest(step.text))
    plan = plan if first_plan is None else chain_plans(original, first_plan, plan)
    general = _count_general_words(step.edits)
    went = sum(max(0, len(list_words(e.original or "")) - len(list_words(e.replacement))) for e in step.edits)
    return Hardened(step.text, plan, step.rank, step.removed, step.weighted, general, went)


class _LevelMeasures:
    """Measures the levels of one hardening."""

    def __init__(self, original: Sequence[str], judges: Sequence[TextJudge], rank: int) -> None:
        self._original = original
        self._rank = rank
        self._rank_subject = cache(lambda i, text: judges[i].rank_subject(judges[i].score_subjects(text)))
        self._sample = range(0, len(original), max(1, -(-len(original) // _SAMPLE)))
        self._vectors: dict[str, Any] = {}

    def measure_level(self, lead: float | None, steps: Sequence[_Step], members: Sequence[int]) -> Level:
        """Measure a level by the steps of some texts, whose numbers are ``members``."""
        texts = [(i, step.text) for i, step in zip(members, steps, strict=True)]
        return Level(
            lead,
            self._estimate_identified_share([step.rank for step in steps]),
            self._estimate_identified_share([self._rank_subject(i, text) for i, text in texts]),
            _average_without_nan([step.removed for step in steps]),
            _average_without_nan([step.weighted for step in steps]),
            self._average_similarity([(i, text) for i, text in texts if i in self._sample]),
        )

    def estimate_risk_after_release(
        self, texts: Sequence[str], subjects: Sequence[str], within: Sequence[str], seed: int
    ) -> Estimate:
        """Estimate how often an intruder finds the subjects who has learnt from such texts of others."""
        judges = train_text_judges(texts, subjects, within, Linkage("both", tags=True), seed=seed)
        return self._estimate_identified_share(rank_subjects(texts, judges))

    def _estimate_identified_share(self, subject_ranks: Sequence[int]) -> Estimate:
        ranks = [p for p in subject_ranks if p]
        if not ranks:
            return none("no intruder knows another text about any of the subjects")
        return share(sum(p <= self._rank for p in ranks), len(ranks))

    def _average_similarity(self, texts: Sequence[tuple[int, str]]) -> Estimate:
        from allonym.models.encoder import encode

        missing = dict.fromkeys(t for i, text in texts for t in (self._original[i], text) if t not in self._vectors)
        if missing:
            self._vectors.update(zip(missing, encode(list(missing)), strict=True))
        pairs = [(self._vectors[self._original[i]], self._vectors[text]) for i, text in texts]
        return _average_without_nan([float(a @ b) for a, b in pairs if a.any() and b.any()])


def _average_without_nan(values: Sequence[float]) -> Estimate:
    """Return the mean of the values that are no NaN."""
    numbers = [value for value in values if value == value]
    return average(numbers) if numbers else none("no words in any text")


@dataclass(frozen=True, slots=True, eq=False)
class TextJudge:
    """The judge of one text: a trained intruder, and the number of the text's subject among its classes."""

    judge: LinkageJudge
    subject: int

    def score_subjects(self, text: str) -> NDArray[np.float64]:
        """Return the score of each subject: float ``(C,)``; -inf for subjects without a text to learn from."""
        scores: NDArray[np.float64] = self.judge.scores([Target(Item(text))])[0]
        return scores

    def rank_subject(self, scores: NDArray[np.float64]) -> int:
        """Return the rank of the subject by such scores, from 1, ties against the intruder; 0: it knows no text about
        the subject, or about nobody else, so that there is nothing to guess."""
        others = np.delete(scores, self.subject)
        if scores[self.subject] == -np.inf or not (others > -np.inf).any():
            return 0
        return int((others >= scores[self.subject]).sum()) + 1


def train_text_judges(
    originals: Sequence[str],
    subjects: Sequence[str],
    groups: Sequence[str],
    intruder: Linkage,
    *,
    folds: int = 5,
    seed: int = 0,
) -> list[TextJudge]:
    """Train a judge for each text on the other texts of its group, which are in other folds.

    Args:
        originals: what is learnt from.
        subjects: whom each text is about.
        groups: the intruder knows which group a text is from and chooses among the group's subjects only.
        intruder: what learns.
        folds: parts of each group; 2 or more.
        seed: of the folds.

    Raises:
        DataError: a group has fewer than two subjects: there is nothing to guess.
    """
    judge_of: dict[int, TextJudge] = {}
    for mine in group_items(range(len(originals)), lambda i: groups[i]).values():
        classes = sorted({subjects[i] for i in mine})
        if len(classes) < 2:
            raise DataError(f"two subjects at least are required to guess from; one group of {len(mine)} texts has one")
        labels = [classes.index(subjects[i]) for i in mine]
        # Copies that differ in case and blanks only share a fold, too.
        home = assign_folds([fold_surface(originals[i], FoldLevel.CASE) for i in mine], labels, folds, seed)
        for part in np.unique(home):
            rest = np.flatnonzero(home != part).tolist()
            judge = intruder.learn([Item(originals[mine[k]]) for k in rest], [labels[k] for k in rest], classes)
            judge_of |= {mine[k]: TextJudge(judge, labels[k]) for k in np.flatnonzero(home == part).tolist()}
    return [judge_of[i] for i in range(len(originals))]


def rank_subjects(texts: Sequence[str], judges: Sequence[TextJudge]) -> list[int]:
    """Return the rank of each text's subject, see :meth:`TextJudge.rank_subject`."""
    return [judge.rank_subject(judge.score_subjects(text)) for text, judge in zip(texts, judges, strict=True)]
