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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allonym.errors import DataError, UsageError
from allonym.evaluate.pairs import check_lengths
from allonym.evaluate.rewording import (
    GENERALISE,
    Word,
    chain_plans,
    list_replacements,
    make_edits,
    soften_placeholders,
    split_words,
)
from allonym.evaluate.similarity import measure_similarities
from allonym.evaluate.surface import list_words
from allonym.intruder import Item, Target
from allonym.intruder.linkage import Linkage, LinkageJudge
from allonym.intruder.study import assign_folds
from allonym.plan import Edit, Plan, apply_edits, digest
from allonym.serial import Serialisable
from allonym.stats import BeforeAfter, Estimate, none
from allonym.stats.samples import average, share
from allonym.text import fold

LEADS = (0.2, 0.1, 0.05, 0.02, 0.0, -0.03, -0.06, -0.1)
"""Leads at which the curve is read beside the chosen one."""
FOLDS = 10
_ROUNDS = 60
_AT_ONCE = 4  # words that change between two looks
_LEAST = 1e-4  # gain below which a word is left alone
_AGAIN = 0.1  # what it costs to make a general word more general, in words gone
_SAMPLE = 300  # texts whose similarity is measured at the curve's levels

Advance = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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
        *("rank", "texts=_count", "still_found", "released", "generalised", "suppressed"),
        *("chosen", "groups=_curves", "levels"),
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
    def _count(self) -> int:
        return len(self.texts)

    @property
    def _curves(self) -> dict[str, object]:
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
    attackers = [train_intruders(original, subjects, within, r, folds=FOLDS, seed=seed) for r in readers]
    judges = train_intruders(original, subjects, within, Linkage("both"), seed=seed + 1)
    ways: list[list[_Step]] = []
    for i in range(n):
        mine = [a[i] for a in attackers]
        originals_at = _map_originals(plans[i]) if plans else {}
        ways.append(_harden_text(original[i], anonymised[i], mine, rank, min(*LEADS, lead), most_removed, originals_at))
        if advance is not None:
            advance(i + 1, n)
    stops = [_find_first_step_below(way, lead) for way in ways]
    if least_similar is not None:
        stops = _select_similar_steps(original, ways, stops, least_similar)
    steps = [way[s] for way, s in zip(ways, stops, strict=True)]
    measured = _Measures(original, judges, rank)
    states = [(lead, [way[_find_first_step_below(way, lead)] for way in ways]) for lead in LEADS]

    def measure_curve(only: str | None) -> tuple[Level, ...]:
        first = measured.measure_level(None, [way[0] for way in ways], list(anonymised), only=only, within=within)
        rest = [measured.measure_level(lead, steps, only=only, within=within) for lead, steps in states]
        return (first, *rest, measured.measure_level(lead, steps, only=only, within=within))

    overall = measure_curve(None)
    return Hardening(
        rank,
        tuple(_build_hardened(original[i], anonymised[i], steps[i], plans[i] if plans else None) for i in range(n)),
        overall[:-1],
        overall[-1],
        {name: measure_curve(name) for name in dict.fromkeys(within)} if groups is not None else {},
        sum(0 < step.rank <= rank for step in steps),
        BeforeAfter(
            measured.estimate_risk_after_release(anonymised, subjects, within, seed + 2),
            measured.estimate_risk_after_release([step.text for step in steps], subjects, within, seed + 2),
        ),
    )


def _map_originals(plan: Plan) -> dict[int, str]:
    """Map the start of each replacement, in the text that a plan makes, to its original."""
    out, shift = {}, 0
    for edit in plan.edits:
        if edit.original is not None:
            out[edit.start + shift] = edit.original
        shift += len(edit.replacement) - (edit.end - edit.start)
    return out


def _harden_text(
    original: str,
    text: str,
    judges: Sequence[TextJudge],
    rank: int,
    lead: float,
    most_removed: float | None,
    originals_at: Mapping[int, str],
) -> list[_Step]:
    """Return the steps from the text with softened placeholders to one whose lead is at most ``lead``."""
    words = split_words(text)
    soft = soften_placeholders(words, originals_at)
    agreed = frozenset(i for i in soft if words[i].label is None)
    hidden = frozenset(i for i in soft if words[i].label is not None)
    open_to = [list_replacements(words, i) for i in range(len(words))]
    target = _Target(words, open_to, judges)
    general_words: dict[int, str] = dict(soft)
    level = dict.fromkeys(range(len(words)), -1)
    out: list[_Step] = []
    total = len(list_words(original))
    for _ in range(_ROUNDS):
        edits = make_edits(text, words, general_words, agreed)
        seen_edits = make_edits(text, words, {i: w for i, w in general_words.items() if i not in hidden}, agreed)
        shown = apply_edits(text, seen_edits)
        scores = np.mean([j.score_text(shown) for j in judges], axis=0)
        subject = judges[0].subject
        score = float(scores[subject])
        others = np.where(np.arange(len(scores)) == subject, -np.inf, scores)
        better = np.argsort(-others, kind="stable")
        rivals = int((others > -np.inf).sum())  # rivals that the intruders know a text about
        rival = int(better[max(0, min(rank, rivals) - 1)])
        guessed = score > -np.inf and rivals > 0
        ahead = score - float(others[rival]) if guessed else -np.inf
        place = int((others >= score).sum()) + 1 if guessed else 0
        hardened = apply_edits(text, edits)
        out.append(_Step(place, ahead, *_compute_removed_shares(total, hardened, edits), tuple(edits), hardened))
        if ahead <= lead:
            break
        gains = _estimate_gains(target, shown, seen_edits, general_words, level, rival)
        if not gains:
            break
        before, got = (dict(general_words), dict(level)), 0.0
        for gain, where in gains[:_AT_ONCE]:
            for i in where:
                level[i] += 1
                general_words[i] = open_to[i][level[i]]
            got += gain
            if got > ahead - lead:
                break
        if most_removed is not None:
            tried = make_edits(text, words, general_words, agreed)
            if _compute_removed_shares(total, apply_edits(text, tried), tried)[1] > most_removed:
                general_words, level = before
                break
    return out


@dataclass(frozen=True, slots=True)
class _Target:
    """A text to harden: its words, what may replace each, and who tries to find its subject."""

    words: Sequence[Word]
    open_to: Sequence[tuple[str, ...]]
    judges: Sequence[TextJudge]


def _estimate_gains(
    target: _Target,
    shown: str,
    edits: Sequence[Edit],
    general_words: Mapping[int, str],
    level: Mapping[int, int],
    rival: int,
) -> list[tuple[float, list[int]]]:
    """Estimate by how much each word that can still change lowers the lead, with all its mentions; best for its cost
    first."""
    words, open_to, judges = target.words, target.open_to, target.judges
    subject = judges[0].subject
    adds: dict[int, float] = {}
    for judge in judges:
        pairs = zip(judge.judge.contributions(shown, subject), judge.judge.contributions(shown, rival), strict=True)
        for (start, _, subject_adds), (_, _, other) in pairs:
            adds[start] = adds.get(start, 0.0) + (subject_adds - other) / len(judges)
    gain: dict[tuple[str, str], float] = {}
    cost: dict[tuple[str, str], float] = {}
    where: dict[tuple[str, str], list[int]] = {}
    shift = position = 0
    for i, word in enumerate(words):
        while position < len(edits) and edits[position].end <= word.start:
            shift += len(edits[position].replacement) - (edits[position].end - edits[position].start)
            position += 1
        if level[i] + 1 >= len(open_to[i]) or (i in general_words and not general_words[i]):
            continue
        if position < len(edits) and edits[position].start < word.end:
            start = edits[position].start + shift
            stop = start + len(edits[position].replacement)
            weight = sum(w for s, w in adds.items() if start <= s < stop)
        else:
            weight = adds.get(word.start + shift, 0.0)
        key = (word.lower_text, general_words.get(i, ""))
        gain[key] = gain.get(key, 0.0) + weight
        cost[key] = cost.get(key, 0.0) + (_AGAIN if general_words.get(i) else 0.5 if open_to[i][level[i] + 1] else 1.0)
        where.setdefault(key, []).append(i)
    best = sorted((k for k in gain if gain[k] > _LEAST), key=lambda k: -gain[k] / cost[k])
    return [(gain[k], where[k]) for k in best]


def _compute_removed_shares(total: int, hardened: str, edits: Sequence[Edit]) -> tuple[float, float]:
    """Return the two shares of words gone; NaN for an original without words."""
    if not total:
        return float("nan"), float("nan")
    removed = 1 - len(list_words(hardened)) / total
    return removed, removed + _count_general_words(edits) / total / 2


def _count_general_words(edits: Sequence[Edit]) -> int:
    """Count the words that are general ones."""
    generalised = (e for e in edits if e.operator == GENERALISE)
    return sum(min(len(list_words(e.replacement)), max(1, len(list_words(e.original or "")))) for e in generalised)


def _find_first_step_below(way: Sequence[_Step], lead: float) -> int:
    """Return the first step whose lead is at most this, else the one with the least."""
    return next((k for k, s in enumerate(way) if s.lead <= lead), min(range(len(way)), key=lambda k: way[k].lead))


def _select_similar_steps(
    original: Sequence[str], ways: Sequence[Sequence[_Step]], stops: Sequence[int], least: float
) -> list[int]:
    """Return for each text the last step up to its stop that is similar enough; the first one where none is."""
    out = list(stops)
    open_ = [i for i, k in enumerate(out) if k]
    while open_:
        values, _ = measure_similarities([original[i] for i in open_], [ways[i][out[i]].text for i in open_])
        open_ = [i for i, value in zip(open_, values, strict=True) if value < least]
        for i in open_:
            out[i] -= 1
        open_ = [i for i in open_ if out[i]]
    return out


def _build_hardened(original: str, anonymised: str, step: _Step, first: Plan | None) -> Hardened:
    plan = Plan(digest(anonymised), step.edits, (), digest(step.text))
    general = _count_general_words(step.edits)
    went = sum(max(0, len(list_words(e.original or "")) - len(list_words(e.replacement))) for e in step.edits)
    return Hardened(
        step.text,
        plan if first is None else chain_plans(original, first, plan),
        step.rank,
        step.removed,
        step.weighted,
        general,
        went,
    )


class _Measures:
    """Measures the levels of one hardening."""

    def __init__(self, original: Sequence[str], judges: Sequence[TextJudge], rank: int) -> None:
        self._original = original
        self._judges = judges
        self._rank = rank
        self._ranks: dict[tuple[int, str], int] = {}
        step = max(1, -(-len(original) // _SAMPLE))
        self._sample = range(0, len(original), step)
        self._vectors: dict[str, Any] = {}

    def measure_level(
        self,
        lead: float | None,
        steps: Sequence[_Step],
        texts: Sequence[str] | None = None,
        *,
        only: str | None = None,
        within: Sequence[str] = (),
    ) -> Level:
        """Measure the level of these steps, or of ``texts`` in place of theirs, in one group only where given."""
        mine = [i for i in range(len(steps)) if only is None or within[i] == only]
        versions = [steps[i].text if texts is None else texts[i] for i in mine]
        judged = [self._rank_subject(i, text) for i, text in zip(mine, versions, strict=True)]
        if texts is None:
            gone = [(steps[i].removed, steps[i].weighted) for i in mine]
        else:
            gone = [
                _compute_removed_shares(len(list_words(self._original[i])), text, ())
                for i, text in zip(mine, versions, strict=True)
            ]
        gone = [(a, b) for a, b in gone if a == a]
        lost = none("no words in any text")
        return Level(
            lead,
            self._estimate_identified_share([steps[i].rank for i in mine]),
            self._estimate_identified_share(judged),
            average([a for a, _ in gone]) if gone else lost,
            average([b for _, b in gone]) if gone else lost,
            self._average_similarity([(i, t) for i, t in zip(mine, versions, strict=True) if i in self._sample]),
        )

    def estimate_risk_after_release(
        self, texts: Sequence[str], subjects: Sequence[str], within: Sequence[str], seed: int
    ) -> Estimate:
        """Estimate how often an intruder finds the subjects who has learnt from such texts of others."""
        judges = train_intruders(texts, subjects, within, Linkage("both", tags=True), seed=seed)
        return self._estimate_identified_share(rank_subjects(texts, judges))

    def _rank_subject(self, i: int, text: str) -> int:
        if (i, text) not in self._ranks:
            self._ranks[i, text] = rank_subjects([text], [self._judges[i]])[0]
        return self._ranks[i, text]

    def _estimate_identified_share(self, places: Sequence[int]) -> Estimate:
        ranks = [p for p in places if p]
        if not ranks:
            return none("no intruder knows another text about any of the subjects")
        return share(sum(p <= self._rank for p in ranks), len(ranks))

    def _average_similarity(self, chosen: Sequence[tuple[int, str]]) -> Estimate:
        from allonym.models.encoder import encode

        missing = dict.fromkeys(t for i, text in chosen for t in (self._original[i], text) if t not in self._vectors)
        if missing:
            self._vectors.update(zip(missing, encode(list(missing)), strict=True))
        pairs = [(self._vectors[self._original[i]], self._vectors[text]) for i, text in chosen]
        values = [float(a @ b) for a, b in pairs if a.any() and b.any()]
        return average(values) if values else none("no words in any text")


@dataclass(frozen=True, slots=True, eq=False)
class TextJudge:
    """The judge of one text: a trained intruder, and the number of the text's subject among its classes."""

    judge: LinkageJudge
    subject: int

    def score_text(self, text: str) -> NDArray[np.float64]:
        """Return the score of each subject: float ``(C,)``; -inf for subjects without a text to learn from."""
        scores: NDArray[np.float64] = self.judge.scores([Target(Item(text))])[0]
        return scores


def train_intruders(
    originals: Sequence[str],
    subjects: Sequence[str],
    groups: Sequence[str],
    intruder: Linkage,
    *,
    folds: int = 5,
    seed: int = 0,
    advance: Callable[[int, int], None] | None = None,
) -> list[TextJudge]:
    """Train a judge for each text on the other texts of its group, which are in other folds.

    Args:
        originals: what is learnt from.
        subjects: whom each text is about.
        groups: the intruder knows which group a text is from and chooses among the group's subjects only.
        intruder: what learns.
        folds: parts of each group; 2 or more.
        seed: of the folds.
        advance: called with texts done and texts in all.

    Raises:
        DataError: a group has fewer than two subjects: there is nothing to guess.
    """
    out: list[TextJudge | None] = [None] * len(originals)
    count = 0
    for group in dict.fromkeys(groups):
        mine = [i for i, g in enumerate(groups) if g == group]
        classes = sorted({subjects[i] for i in mine})
        if len(classes) < 2:
            raise DataError(f"two subjects at least are required to guess from; one group of {len(mine)} texts has one")
        labels = [classes.index(subjects[i]) for i in mine]
        items = [Item(originals[i]) for i in mine]
        # Copies that differ in case and blanks only share a fold, too.
        home = assign_folds([Item(fold.fold_surface(originals[i], fold.Level.CASE)) for i in mine], labels, folds, seed)
        for part in range(folds):
            rest = np.flatnonzero(home != part).tolist()
            judged = np.flatnonzero(home == part).tolist()
            if not judged:
                continue
            judge = intruder.learn([items[k] for k in rest], [labels[k] for k in rest], classes)
            for k in judged:
                out[mine[k]] = TextJudge(judge, labels[k])
            count += len(judged)
            if advance is not None:
                advance(count, len(originals))
    return [intruder_of_text for intruder_of_text in out if intruder_of_text is not None]


def rank_subjects(texts: Sequence[str], judges: Sequence[TextJudge]) -> list[int]:
    """The rank of each text's subject, from 1, ties against the intruder; 0: it knows no text about the subject, or
    about nobody else, so that there is nothing to guess."""
    out = []
    for text, judge in zip(texts, judges, strict=True):
        scores = judge.score_text(text)
        subject_score = scores[judge.subject]
        guessed = subject_score > -np.inf and int((scores > -np.inf).sum()) > 1
        out.append(0 if not guessed else int((np.delete(scores, judge.subject) >= subject_score).sum()) + 1)
    return out
