"""Hardening: generalise what gives subjects away until intruders who know the tool do no better than guessing.

Round by round, two intruders look at all texts as they have become (:mod:`allonym.intruder.leave_one_out`): the
adaptive one has learnt from the hardened texts of others, with placeholders and general words as words; the blind one
from originals, and passes over the words that the tool has brought in so far. What adds most to a subject's lead over
its rivals, for the content that it costs, changes next: a word becomes a general one (``guitar``: ``music``, ``thing``)
or goes, or a phrase goes, or a whole sentence. Where a sentence would say nothing any more, that costs more, so that
words, phrases and sentences whose rest reads well go first. A text that needs no more changes for now waits for those
that do. Words that identify in all texts of a subject count more than those of one text, so that what is left out here
does not stand there. Rare words, superlatives and "first" or "only" go before anything else, whether an intruder uses
them or not: people do. Pronouns and placeholders stay as they are.

Each round may take a little more of the content, so the rounds are a frontier of risk against content kept.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allonym.errors import DataError, UsageError
from allonym.evaluate.generalising import Draft
from allonym.evaluate.pairs import check_lengths, group_items
from allonym.evaluate.rewording import GENERALISE, chain_plans
from allonym.evaluate.surface_measures import list_words, similarity
from allonym.files.state import State, digest_values
from allonym.intruder.leave_one_out import LeaveOneOut
from allonym.intruder.linkage import FeatureReader
from allonym.intruder.panel import Panel, divide_words, list_words_brought_in, measure_panel
from allonym.plan import Edit, Plan, digest
from allonym.serial import Serialisable
from allonym.stats import Estimate, none
from allonym.stats.samples import average, share

INTRUDERS = ("naive", "blind", "adaptive")
"""The intruders of each round: who learnt from originals; who passes over the words brought in, too; who learnt from
the hardened texts of others."""
_STEP = 0.01  # content that a round may take: the intruders learn again after it
_WEIGHTS = {"adaptive": 1.0, "blind": 5.0}
_END = 0.8  # content gone at which the frontier ends
_MARGIN = -0.03  # lead above which a text still counts as identified while words are chosen
_IS_SAFE = 0.3  # weight of what identifies in a text that is not identified itself
_OF_ALL = 0.5  # weight of what a word adds in all texts beside what it adds in this one
_FEW = 2  # texts of a word below which its mean says little
_RIVALS = 3
_HINT = 100.0  # what it is worth to lose a word that people use, above all that intruders gain
_ROUGH, _ROUGH_LATE = (
    2.0,
    1.0,
)  # content words that a phrase which says nothing costs; the lower while content is scarce
_LATE = 0.95  # share of the content that may go from which it is scarce
_DUE = 0.05  # what it is worth at least that a phrase goes which says nothing any more
_BELOW = 0.85  # of what guessing reaches: the panel's intruders learn from more texts than those of the rounds
_SAMPLE = 50  # texts whose similarity is measured in each round

Advance = Callable[[int, int], None]
Record = dict[str, Any]
"""A round: the numbers of each text, and its draft's state; plain values."""


class Level(Serialisable):
    """One point of the frontier.

    Attributes:
        gone: mean share of the original's content words that are gone; general words do not count as left.
        naive, blind, adaptive: share of texts whose subject is among the first guesses of each of :data:`INTRUDERS`.
        removed: mean share of words gone by P3 4.1.3.1, placeholders not counted: general words count as left.
        similarity: mean cosine with the original by the sentence encoder, over 50 texts at most.
    """

    KEYS = ("worst", "gone", "naive", "blind", "adaptive", "removed", "similarity")

    gone: Estimate
    naive: Estimate
    blind: Estimate
    adaptive: Estimate
    removed: Estimate
    similarity: Estimate

    @property
    def worst(self) -> Estimate:
        """The greatest of the three shares."""
        return max((self.adaptive, self.blind, self.naive), key=lambda e: e.value if e.value == e.value else -1.0)


@dataclass(frozen=True, slots=True)
class Hardened:
    """A hardened text.

    Attributes:
        text: as hardened. Hidden from ``repr``.
        plan: from the anonymised text, or from the original one where the first plan was given, to ``text``.
        rank: the worst of the subject by the blind and the adaptive intruder, from 1; 0: no other text is about the
            subject, or none about anybody else.
        gone: share of content words gone, see :class:`Level`; NaN for a text without any.
        generalised, suppressed: words that became general ones, and words that went.
        level: number of its level in :attr:`Hardening.levels`.
    """

    text: str = field(repr=False)
    plan: Plan = field(repr=False)
    rank: int
    gone: float
    generalised: int
    suppressed: int
    level: int


class Hardening(Serialisable):
    """The result of :func:`harden`.

    Attributes:
        rank: a subject's rank must be worse than this.
        panel: what intruders reach on the hardened texts who had no say; its worst is the number to judge a release by.
        texts: the hardened texts, in the order given.
        levels: the frontier: as anonymised, then round by round.
        chosen: the level of ``texts``: the one that was asked for; else each group is at the first level where all
            intruders do clearly worse than guessing, or at the last one within the limit.
        groups: group to its levels, then its chosen level; empty where no groups were given.
        still_found: texts whose subject the blind or the adaptive intruder of the rounds identifies nevertheless.
    """

    KEYS = (
        *("panel", "rank", "texts=_text_count", "still_found", "generalised", "suppressed"),
        *("chosen", "groups=_group_rows", "levels"),
    )

    rank: int
    panel: Panel
    texts: tuple[Hardened, ...]
    levels: tuple[Level, ...]
    chosen: Level
    groups: Mapping[str, tuple[Level, ...]]
    still_found: int

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


def harden(
    original: Sequence[str],
    anonymised: Sequence[str],
    subjects: Sequence[str],
    *,
    groups: Sequence[str] | None = None,
    plans: Sequence[Plan] | None = None,
    rank: int = 1,
    most_removed: float = 0.6,
    least_similar: float | None = None,
    frontier: bool = False,
    level: int | None = None,
    background: Sequence[tuple[str, str]] = (),
    seed: int = 0,
    state: str | Path | None = None,
    advance: Advance | None = None,
) -> Hardening:
    """Harden anonymised texts against intruders who know other texts about the same subjects, before and after.

    Args:
        original, anonymised: the same texts in the same order. English.
        subjects: whom each text is about; two subjects and, to be identified at all, two texts of each are required.
        groups: the intruders choose among the subjects of a text's group; None: among all.
        plans: those that made ``anonymised`` of ``original``; with them each result's plan starts at the original.
        rank: the subject's rank must become worse than this.
        most_removed: mean share of a group's content words at which hardening stops, 0 to 1.
        least_similar: cosine with the original below which no text may fall, -1 to 1.
        frontier: whether to measure stricter levels, too, beyond the chosen one.
        level: the level to choose, from 0, as anonymised; None: see :attr:`Hardening.chosen`.
        background: (text, subject) pairs: public texts that the panel searches; they have no say in what changes.
        seed: of the panel's folds.
        state: folder of finished rounds; those of the same texts and settings are not computed again. It holds no text.
        advance: called with steps done and steps in all.

    Raises:
        DataError: unequal lengths, or a group with one subject.
        UsageError: a number is out of its range, or there is no such level.
        PlanMismatch: a plan does not make its anonymised text.
    """
    n = check_lengths(original, anonymised, subjects, groups or None, plans or None, least=2)
    if rank < 1:
        raise UsageError(f"rank must be 1 or more, got {rank}")
    if not 0 <= most_removed <= 1:
        raise UsageError(f"most_removed must be from 0 to 1, got {most_removed:g}")
    if least_similar is not None and not -1 <= least_similar <= 1:
        raise UsageError(f"least_similar must be from -1 to 1, got {least_similar:g}")
    within = list(groups) if groups is not None else [""] * n
    drafts = [Draft(*texts) for texts in zip(original, anonymised, strict=True)]
    corpora = [
        _Corpus(members, [original[i] for i in members], [drafts[i] for i in members], [subjects[i] for i in members])
        for members in group_items(range(n), within.__getitem__).values()
    ]
    settings = (original, anonymised, subjects, within, rank, most_removed, least_similar, frontier)
    rounds = _Rounds(original, drafts, corpora, None if state is None else State(state), digest_values(*settings))
    records = [rounds.record_round(0)]
    shares = [_measure_level(records * n, corpus.members, rank).gone.value for corpus in corpora]
    least = min((value for value in shares if not math.isnan(value)), default=1.0)
    budgets = _list_budgets(least, most_removed, frontier=frontier)
    for number, budget in enumerate(budgets, 1):
        if advance is not None:
            advance(number, len(budgets) + 2)
        levels_of = _choose_levels(corpora, records, rank, most_removed)
        active = [corpus for corpus in corpora if frontier or levels_of[corpus.members[0]] == number - 1]
        if not active:
            break
        if not rounds.has_round(number):
            for draft, changes in zip(drafts, records[-1]["state"], strict=True):
                draft.state = changes
            for corpus in active:
                corpus.generalise_until(budget, rank, _ROUGH if budget < _LATE * most_removed else _ROUGH_LATE)
            if least_similar is not None:
                _take_back_changes(original, drafts, records[-1], least_similar)
        records.append(rounds.record_round(number))
    if advance is not None:
        advance(len(budgets) + 1, len(budgets) + 2)
    if level is not None and not 0 <= level < len(records):
        raise UsageError(f"level must be from 0 to {len(records) - 1}, the levels that were measured, got {level}")
    levels_of = _choose_levels(corpora, records, rank, most_removed) if level is None else [level] * n
    for i, draft in enumerate(drafts):
        draft.state = records[levels_of[i]]["state"][i]
    texts = tuple(
        _build_hardened(original[i], draft, records, levels_of[i], i, plans[i] if plans else None)
        for i, draft in enumerate(drafts)
    )
    hardened = [text.text for text in texts]
    panel = measure_panel(original, hardened, subjects, groups=groups, background=background, rank=rank, seed=seed)
    if advance is not None:
        advance(len(budgets) + 2, len(budgets) + 2)

    def measure_levels(members: Sequence[int]) -> tuple[Level, ...]:
        frontier_levels = (_measure_level([entry] * n, members, rank) for entry in records)
        return (*frontier_levels, _measure_level([records[k] for k in levels_of], members, rank))

    *levels, chosen_level = measure_levels(range(n))
    return Hardening(
        rank,
        panel,
        texts,
        tuple(levels),
        chosen_level,
        {within[corpus.members[0]]: measure_levels(corpus.members) for corpus in corpora} if groups is not None else {},
        sum(0 < text.rank <= rank for text in texts),
    )


def _list_budgets(least: float, most_removed: float, *, frontier: bool) -> list[float]:
    """List the shares of content that rounds may take in all: even steps up to the limit, and for the frontier on."""
    end = max(most_removed, _END) if frontier else most_removed
    steps = {round(k * _STEP, 4) for k in range(1, round(1 / _STEP) + 1)} | {most_removed}
    return sorted(step for step in steps if least < step <= end)


class _Corpus:
    """The texts of one group, and the intruders who choose among its subjects.

    Attributes:
        members: numbers of the texts; drafts: theirs.
    """

    def __init__(
        self, members: Sequence[int], originals: Sequence[str], drafts: Sequence[Draft], subjects: Sequence[str]
    ) -> None:
        classes = sorted(set(subjects))
        if len(classes) < 2:
            raise DataError(
                f"two subjects at least are required to guess from; one group of {len(members)} texts has one"
            )
        self.members = members
        self.drafts = drafts
        self._originals = originals
        self._labels = np.array([classes.index(subject) for subject in subjects], np.int64)
        self._readers = {
            "naive": FeatureReader(),
            "blind": FeatureReader(),
            "adaptive": FeatureReader(tags=True),
        }
        self._judged: Sequence[str] = ()
        self._judges: dict[str, LeaveOneOut] = {}

    def compute_chance(self, rank: int) -> float:
        """Return what guessing the most frequent subjects reaches."""
        return float(np.sort(np.bincount(self._labels))[::-1][:rank].sum() / len(self._labels))

    def compute_gone(self) -> float:
        """Return the mean share of content words gone; NaN where no text has any."""
        shares = [draft.compute_share_gone() for draft in self.drafts if draft.total]
        return sum(shares) / len(shares) if shares else float("nan")

    def rank_subjects(self, intruder: str) -> list[int]:
        """Return the rank of each text's subject by an intruder, ties against it; 0: there is nothing to guess."""
        scores = self._judge_texts()[intruder].scores
        true_scores = scores[np.arange(len(scores)), self._labels][:, None]
        ranks = (scores >= true_scores).sum(axis=1)
        is_open = (true_scores[:, 0] > -np.inf) & ((scores > -np.inf).sum(axis=1) > 1)
        return [int(rank) for rank in np.where(is_open, ranks, 0)]

    def generalise_until(self, budget: float, rank: int, rough_cost: float) -> None:
        """Make the moves that remove most risk for what they cost, until the share of content gone is the budget; for
        ``rough_cost`` see :meth:`Draft.list_moves`."""
        values = self._value_words(rank)
        heap: list[tuple[float, int, int, bool]] = []
        moves = [
            d.list_moves(rough_cost) if value is not None else [] for d, value in zip(self.drafts, values, strict=True)
        ]
        waiting = [set(range(len(of_text))) for of_text in moves]

        def add_moves(i: int, places: Iterable[int], value: _Value) -> None:
            worth = value.compute_worth()
            for k in places:
                gain = max(float(worth[list(moves[i][k].words)].sum()), _DUE if moves[i][k].is_due else 0.0)
                if gain > 0:
                    cost = moves[i][k].cost / max(1, self.drafts[i].total)  # the share of a text is what counts
                    heappush(heap, (-gain / cost, i, k, value.is_safe))

        for i, value in enumerate(values):
            if value is not None:
                add_moves(i, waiting[i], value)
        counted = sum(draft.total > 0 for draft in self.drafts)
        left = (budget - self.compute_gone()) * counted
        while heap:
            _, i, k, was_safe = heappop(heap)
            draft, state, value, move = self.drafts[i], self.drafts[i].state, values[i], moves[i][k]
            if value is None or was_safe != value.is_safe:  # valued again since
                continue
            before = draft.compute_share_gone()
            draft.make_move(move)
            waiting[i].discard(k)
            value.lose_words(move.words)
            if value.is_safe and not was_safe:  # its other moves are needed less
                add_moves(i, waiting[i], value)
            if draft.total:
                left -= draft.compute_share_gone() - before
            if left < 0:
                draft.state = state
                break

    def _judge_texts(self) -> dict[str, LeaveOneOut]:
        texts = [draft.render() for draft in self.drafts]
        if texts != self._judged:
            self._judged = texts
            self._readers["blind"] = self._make_blind_reader(texts)
            self._judges = {
                name: LeaveOneOut(reader, texts if name == "adaptive" else self._originals, self._labels, texts)
                for name, reader in self._readers.items()
            }
        return self._judges

    def _make_blind_reader(self, texts: Sequence[str]) -> FeatureReader:
        """Return a reader that passes over what the tool has brought in so far, as the panel's blind intruder does."""
        divided = [divide_words(self._readers["naive"], *pair) for pair in zip(self._originals, texts, strict=True)]
        return FeatureReader(passed_over=list_words_brought_in(divided))

    def _value_words(self, rank: int) -> list[_Value | None]:
        """Value what it is worth to lose each word of each text; None where nobody can guess the subject."""
        judges = self._judge_texts()
        out: list[_Value | None] = []
        gains_of: defaultdict[str, list[float]] = defaultdict(list)
        for i, draft in enumerate(self.drafts):
            subject = int(self._labels[i])
            ranked = {name: _rank_rivals(judges[name].scores[i], subject) for name in _WEIGHTS}
            if not all(ranked.values()):
                out.append(None)
                continue
            leads, gains = {}, {}
            for name, rivals in ranked.items():
                scores, first = judges[name].scores[i], min(rank, len(rivals)) - 1
                leads[name] = float(scores[subject] - scores[rivals[first]])
                if leads[name] > 2 * _MARGIN:
                    of_words = judges[name].list_word_leads(i, subject, rivals[first : first + _RIVALS])
                    gains[name] = np.array(draft.sum_by_word(of_words))
            entry = _Value(draft, leads, gains, np.zeros(len(draft.words)))
            out.append(entry)
            for word, gain in zip(draft.words, entry.gain, strict=True):
                gains_of[word.lower_text].append(float(gain))
        means = {word: sum(values) / (len(values) + _FEW) for word, values in gains_of.items()}
        for value in out:
            if value is not None:
                value.of_all[:] = [0.0 if word.label else means[word.lower_text] for word in value.draft.words]
        return out


def _rank_rivals(scores: NDArray[np.float64], subject: int) -> list[int]:
    """Return the other classes that may be guessed, the likeliest first; none where the subject cannot be guessed."""
    if scores[subject] == -np.inf:
        return []
    return [int(k) for k in np.argsort(-scores, kind="stable") if k != subject and scores[k] > -np.inf]


@dataclass(eq=False)
class _Value:
    """What it is worth to lose each word of a text.

    Attributes:
        leads: intruder to the lead of the subject over the rival that counts.
        gains: intruder to what each word adds to it.
        of_all: what each word adds in all texts; 0 for placeholders.
        is_safe: whether no intruder identifies the subject, as far as the moves made since it judged are foreseen.
    """

    draft: Draft
    leads: dict[str, float]
    gains: dict[str, NDArray[np.float64]]
    of_all: NDArray[np.float64]
    is_safe: bool = field(init=False)

    def __post_init__(self) -> None:
        self.is_safe = max(self.leads.values()) <= _MARGIN

    @property
    def gain(self) -> NDArray[np.float64]:
        """What each word adds to the leads, weighted by intruder."""
        weighed = (_WEIGHTS[name] * gains for name, gains in self.gains.items())
        return sum(weighed, start=np.zeros(len(self.draft.words)))

    def compute_worth(self) -> NDArray[np.float64]:
        """Return what it is worth to lose each word, by this text and by all."""
        gain = (_IS_SAFE if self.is_safe else 1.0) * self.gain
        is_tag = np.array([word.label is not None for word in self.draft.words], bool)
        worth = _OF_ALL * np.where(is_tag, gain, self.of_all) + (1 - _OF_ALL) * gain
        worth[self.draft.list_hints()] += _HINT
        return worth

    def lose_words(self, words: Sequence[int]) -> None:
        """Take what words add from the leads."""
        for name, gains in self.gains.items():
            self.leads[name] -= float(gains[list(words)].sum())
            gains[list(words)] = 0.0
        self.is_safe = self.is_safe or max(self.leads.values()) <= _MARGIN


@dataclass(eq=False)
class _Rounds:
    """Measures the texts round by round, and keeps the rounds of a run that may be interrupted.

    Attributes:
        name: of the run, in the names of its files.
        vectors: text to its sentence vector.
    """

    original: Sequence[str]
    drafts: Sequence[Draft]
    corpora: Sequence[_Corpus]
    saved: State | None
    name: str
    vectors: dict[str, NDArray[np.float32]] = field(default_factory=dict)

    def has_round(self, number: int) -> bool:
        """Whether an interrupted run has finished a round."""
        return self._load_round(number) is not None

    def record_round(self, number: int) -> Record:
        """Return the record of a round: an interrupted run's, else of the texts as they are."""
        record: Record | None = self._load_round(number)
        if record is None:
            record = self._measure_texts()
            if self.saved is not None:
                record = self.saved.store_value(f"{self.name}-{number}", record)
        return record

    def _load_round(self, number: int) -> Any:
        return None if self.saved is None else self.saved.load_value(f"{self.name}-{number}")

    def _encode_text(self, text: str) -> NDArray[np.float32]:
        from allonym.models.encoder import encode

        if text not in self.vectors:
            self.vectors[text] = encode([text])[0]
        return self.vectors[text]

    def _measure_texts(self) -> Record:
        texts = [draft.render() for draft in self.drafts]
        ranks = {name: [0] * len(texts) for name in INTRUDERS}
        for corpus in self.corpora:
            for name in INTRUDERS:
                for i, rank in zip(corpus.members, corpus.rank_subjects(name), strict=True):
                    ranks[name][i] = rank
        near: list[float | None] = [None] * len(texts)
        for i in range(0, len(texts), max(1, -(-len(texts) // _SAMPLE))):
            before, after = self._encode_text(self.original[i]), self._encode_text(texts[i])
            near[i] = float(before @ after) if before.any() and after.any() else None
        counts = [(len(list_words(a)), len(list_words(b))) for a, b in zip(self.original, texts, strict=True)]
        return {
            **ranks,
            "gone": [_drop_nan(draft.compute_share_gone()) for draft in self.drafts],
            "removed": [1 - after / before if before else None for before, after in counts],
            "similarity": near,
            "state": [draft.state for draft in self.drafts],
        }


def _drop_nan(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _choose_levels(corpora: Sequence[_Corpus], records: Sequence[Record], rank: int, most_removed: float) -> list[int]:
    """Return for each text the number of the first round in which all intruders do clearly worse than guessing in its
    group; else of the last within the limit."""
    out = [0] * sum(len(corpus.members) for corpus in corpora)
    for corpus in corpora:
        chance, best = _BELOW * corpus.compute_chance(rank), 0
        for k, entry in enumerate(records):
            level = _measure_level([entry] * len(out), corpus.members, rank)
            if k and level.gone.value > most_removed + 1e-9:
                break
            best = k
            if not level.worst.value > chance:
                break
        for i in corpus.members:
            out[i] = best
    return out


def _measure_level(records: Sequence[Record], members: Sequence[int], rank: int) -> Level:
    """Measure a level over some texts, each as in its own record."""

    def average_over_texts(key: str) -> Estimate:
        values = [value for i in members if (value := records[i][key][i]) is not None]
        return average(values) if values else none("no words in any text")

    def share_identified(name: str) -> Estimate:
        ranks = [place for i in members if (place := records[i][name][i])]
        if not ranks:
            return none("no intruder knows another text about any of the subjects")
        return share(sum(place <= rank for place in ranks), len(ranks))

    return Level(
        average_over_texts("gone"),
        share_identified("naive"),
        share_identified("blind"),
        share_identified("adaptive"),
        average_over_texts("removed"),
        average_over_texts("similarity"),
    )


def _take_back_changes(original: Sequence[str], drafts: Sequence[Draft], record: Record, least_similar: float) -> None:
    """Give texts that are no longer similar enough the state of a record back."""
    values = similarity(original, [draft.render() for draft in drafts]).values
    for draft, value, state in zip(drafts, values, record["state"], strict=True):
        if value < least_similar:
            draft.state = state


def _build_hardened(
    original: str, draft: Draft, records: Sequence[Record], level: int, i: int, first_plan: Plan | None
) -> Hardened:
    edits, text = draft.make_edits(), draft.render()
    plan = Plan(digest(draft.text), tuple(edits), (), digest(text))
    plan = plan if first_plan is None else chain_plans(original, first_plan, plan)
    went = sum(max(0, len(list_words(e.original or "")) - len(list_words(e.replacement))) for e in edits)
    ranks = [records[level][name][i] for name in INTRUDERS[1:]]
    return Hardened(text, plan, min(ranks), draft.compute_share_gone(), _count_general_words(edits), went, level)


def _count_general_words(edits: Sequence[Edit]) -> int:
    """Count the words that are general ones."""
    generalised = (e for e in edits if e.operator == GENERALISE)
    return sum(min(len(list_words(e.replacement)), max(1, len(list_words(e.original or "")))) for e in generalised)
