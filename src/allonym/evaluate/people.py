"""Judgements of anonymised texts by people: P3's motivated intruder test (3.1.3.2, 3.2.3, Tables 3 to 8).

Judgements by a language model that was given the same task go the same way.

Of the reasons that people gave, the most frequent 1- to 3-grams are listed (P3 Tables 5, 6 and 8). As P3 has it, stop
words are taken out before n-grams are formed, so that "in line to the throne" gives ``line_throne``; small letters, no
apostrophes (``womens_rights``), nothing is stemmed. P3 does not name its list of stop words; this is Snowball's for
English (https://snowballstem.org/algorithms/english/stop.txt, BSD).

Guesses of a language model: whom texts are about, and which attributes it infers (P3; Staab et al. 2023).

Strictly opt-in: anonymised texts go to the endpoint that the settings name, original ones only where asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from allonym.errors import DataError
from allonym.evaluate.matching import compute_cohen_kappa, compute_krippendorff_alpha, count_coincidences
from allonym.evaluate.pairs import Advance, check_lengths, group_items, shift_progress
from allonym.evaluate.sheets import COLLECT, JUDGE, Sheets, StudyAnswer, has_claimed_identification
from allonym.intruder.persons import (
    ATTRIBUTES,
    Answer,
    AttributeResults,
    guess_attributes,
    guess_persons,
    open_client,
    score_attribute_guesses,
)
from allonym.intruder.protocol import Results, Row, tabulate_rows
from allonym.intruder.scoring import CUT, measure_best_likeness
from allonym.llm import Client
from allonym.serial import Serialisable
from allonym.stats import Estimate, mean, none
from allonym.stats.samples import average, bootstrap, difference, share
from allonym.text.words import compile_word_pattern


@dataclass(frozen=True, slots=True)
class Truth:
    """The true subject of a text: the text's id, the subject's name (hidden from ``repr``) and fame class (empty:
    none)."""

    text: str
    subject: str = field(repr=False)
    group: str = ""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The answer of one judge about one text."""

    text: str
    judge: str
    answer: Answer


class PeopleStudy(Serialisable):
    """The result of a judging task.

    Attributes:
        results: the table of all intruders; a text's similarity is the mean over its judgements, cut afterwards (P3).
        cut: similarity from which on a name counted as found.
        judgements, judges: how many there were.
        unread: texts that nobody judged; they are in no rate.
        per_text: judgements a text, mean and SD.
        found_by_any: share of texts that at least one judge found. Averaging before the cut, as P3 does, counts a text
            that one of three judges found as not identified; whoever fears a single good guess reads this one.
        claims: judgements by what was claimed and what is true: ``claimed_right``, ``claimed_wrong``,
            ``denied_right``, ``denied_wrong``; right: this judgement's own similarity reaches the cut.
        agreement: share of judgements whose claim is true, 0 to 1, as P3's footnote 9; interval over judges.
        chance_corrected: Cohen's kappa of claim and truth, interval over judges.
        trusted: share of the claims to know the person that are true.
        by_chance: how often a guess passes for another subject of the study, mean over the judgements: so many count as
            right merely because names have characters in common.
        alike: Krippendorff's alpha of the judges of one text on whether it was identified, interval over texts.
        revealed: subject to the n-grams of the reasons where it was identified (P3 Tables 5 and 8). Hidden.
        kept: subject to the n-grams of what was learnt where it was not (P3 Table 6). Hidden.
        revealed_all, kept_all: the same over all subjects. Hidden.
    """

    KEYS = (
        *("results", "cut", "judgements", "judges", "unread", "claims", "agreement", "chance_corrected"),
        *("trusted", "by_chance", "alike", "per_text", "found_by_any"),
    )
    TEXT_KEYS = ("terms",)

    results: Results
    cut: float
    judgements: int
    judges: int
    unread: int
    per_text: Estimate
    found_by_any: Estimate
    claims: Mapping[str, int]
    agreement: Estimate
    chance_corrected: Estimate
    trusted: Estimate
    by_chance: Estimate
    alike: Estimate
    revealed: Mapping[str, Terms] = field(repr=False)
    kept: Mapping[str, Terms] = field(repr=False)
    revealed_all: Terms = field(repr=False)
    kept_all: Terms = field(repr=False)

    @property
    def terms(self) -> dict[str, object]:
        """All n-grams; they are words that people wrote."""
        return {name: getattr(self, name) for name in ("revealed", "kept", "revealed_all", "kept_all")}


def people_study(
    truths: Sequence[Truth],
    judgements: Sequence[Judgement],
    *,
    aliases: Mapping[str, Sequence[str]] | None = None,
    cut: float = CUT,
    top: int = 10,
    intruder: str = "people",
    seed: int = 0,
) -> PeopleStudy:
    """Compute rates, agreement and reasons of judgements.

    A judgement's similarity is that of its first guess with the true name; without a guess it is 0. A text's is the
    mean over its judgements, and the text counts as identified where that reaches ``cut``. Whether a single judgement
    is right, for agreement and for the reasons, is decided by its own similarity.

    Args:
        truths: of each text, once.
        judgements: in any order.
        aliases: true name to further names that count as it.
        cut: similarity from which on a name counts as found.
        top: how many n-grams are kept.
        intruder: who judged.
        seed: of the bootstrap.

    Raises:
        DataError: a text stands twice in ``truths``, a judgement is about another text, or a judge judged one twice.
    """
    truth_of = {t.text: t for t in truths}
    if len(truth_of) < len(truths):
        raise DataError("people: the truth of a text stands twice")
    pairs = [(j.text, j.judge) for j in judgements]
    if len(set(pairs)) < len(pairs):
        raise DataError("people: a judge judged the same text twice")
    if any(j.text not in truth_of for j in judgements):
        raise DataError("people: a judgement is about a text whose truth is not given")
    more = aliases or {}
    readings = []
    for j in judgements:
        true = truth_of[j.text].subject
        readings.append(
            _Reading(j, true, [measure_best_likeness(g, (true, *more.get(true, ()))) for g in j.answer.guesses])
        )
    by_text = group_items(readings, lambda reading: reading.judgement.text)
    rows = []
    for truth in truths:
        if not (read := by_text.get(truth.text)):
            continue
        similarity = sum(reading.first_likeness for reading in read) / len(read)
        guesses = tuple(reading.first_guess for reading in read)
        rank = 0
        if len(read) == 1:  # several guesses of one judge have an order; those of several judges have none
            guesses = read[0].judgement.answer.guesses
            rank = next((k for k, value in enumerate(read[0].likenesses, 1) if value >= cut), 0)
        row = Row(truth.text, truth.subject, truth.group, guesses, similarity, similarity >= cut, rank, len(read))
        rows.append(row)
    claimed = [reading.judgement.answer.claimed for reading in readings]
    right = [reading.first_likeness >= cut for reading in readings]
    outcomes = Counter(zip(claimed, right, strict=True))
    claims = {
        f"{claim}_{truth}": outcomes[claim == "claimed", truth == "right"]
        for claim in ("claimed", "denied")
        for truth in ("right", "wrong")
    }
    # What was written where the person was identified, and what was learnt where not: subject and text.
    revealed = [(r.subject, r.judgement.answer.reason) for r in readings if r.first_likeness >= cut]
    answers = [(r.subject, r.judgement.answer) for r in readings if r.first_likeness < cut]
    learnt = [(subject, answer.knowledge or answer.reason) for subject, answer in answers]
    tables = np.zeros((len({j.judge for j in judgements}), 2, 2))
    place: dict[str, int] = {}
    for j, is_right in zip(judgements, right, strict=True):
        tables[place.setdefault(j.judge, len(place)), int(j.answer.claimed), int(is_right)] += 1
    agreement, corrected = _measure_claim_agreement(tables, seed)
    units = [[reading.first_likeness >= cut for reading in read] for read in by_text.values()]
    return PeopleStudy(
        tabulate_rows(intruder, rows, top=(1, 2, 3, 5, 10)),
        cut,
        len(readings),
        len(tables),
        len(truths) - len(rows),
        mean([float(len(read)) for read in by_text.values()]),
        share(sum(map(any, units)), len(units)) if units else none("no judgements"),
        claims,
        agreement,
        corrected,
        share(claims["claimed_right"], sum(claimed)) if any(claimed) else none("nobody claimed to know the person"),
        _estimate_chance(list(dict.fromkeys(t.subject for t in truths)), readings, more, cut),
        _measure_judges_agreement(units, seed),
        _select_terms_by_subject(revealed, top),
        _select_terms_by_subject(learnt, top),
        select_top_terms((text for _, text in revealed), top),
        select_top_terms((text for _, text in learnt), top),
    )


class _Reading(NamedTuple):
    """A judgement, the true subject, and how like that each of the guesses is."""

    judgement: Judgement
    subject: str
    likenesses: list[float]

    @property
    def first_guess(self) -> str:
        """The first guess; empty where there is none."""
        return (*self.judgement.answer.guesses, "")[0]

    @property
    def first_likeness(self) -> float:
        """Likeness of the first guess; 0 where there is none."""
        return (*self.likenesses, 0.0)[0]


def list_truths_and_judgements(sheets: Sheets, answers: Sequence[StudyAnswer]) -> tuple[list[Truth], list[Judgement]]:
    """Return the truths of a judging study, and its answers as judgements.

    Raises:
        DataError: the study has another task.
    """
    if sheets.task != JUDGE:
        raise DataError("the key of a judging study is required, got that of a collection")
    truths = [Truth(e.id, e.subject, e.group) for e in sheets.entries.values()]
    judgements = []
    for item in answers:
        name = item.fields["name"]
        claimed, guesses = has_claimed_identification(item), (name,) if name else ()
        answer = Answer(claimed, guesses, item.fields["reason"], item.fields["knowledge"])
        judgements.append(Judgement(sheets.entries[item.token].id, f"{item.page} {item.participant}".strip(), answer))
    return truths, judgements


def read_descriptions(sheets: Sheets, answers: Sequence[StudyAnswer], *, least: int = 0) -> list[dict[str, object]]:
    """Return the descriptions of a collection as records of a corpus: id, text, subject, group.

    Args:
        sheets: the study.
        answers: its answers.
        least: characters that a description needs.

    Raises:
        DataError: the study has another task, or a description is shorter; the message says whose, not what.
    """
    if sheets.task != COLLECT:
        raise DataError("the key of a collection is required, got that of a judging study")
    out: list[dict[str, object]] = []
    for answer in answers:
        entry, text = sheets.entries[answer.token], answer.fields["text"]
        if len(text) < least:
            raise DataError(
                f"page {answer.page}, {answer.token}: {least} characters at least required, got {len(text)}"
            )
        ending = f"-{answer.participant}" if answer.participant else ""
        name = f"{sheets.study}-{answer.page}-{answer.token}{ending}"
        out.append({"id": name, "text": text, "subject": entry.subject, "group": entry.group})
    return out


def _measure_claim_agreement(tables: NDArray[np.float64], seed: int) -> tuple[Estimate, Estimate]:
    """Return agreement and kappa of claim and truth, from counts ``(judges, 2, 2)``."""
    judges, judgements = len(tables), int(tables.sum())
    if not judges:
        return none("no judgements"), none("no judgements")
    if judges == 1:
        return share(int(np.trace(tables[0])), judgements), none("one judge: no interval over judges", judgements)

    def share_agreeing(units: Any) -> float:
        table = tables[units].sum(axis=0)
        return float(np.trace(table) / table.sum())

    def correct_for_chance(units: Any) -> float:
        return float(compute_cohen_kappa(tables[units].sum(axis=0)))

    return bootstrap(share_agreeing, judges, seed=seed), bootstrap(correct_for_chance, judges, seed=seed)


def _estimate_chance(
    names: Sequence[str], readings: Sequence[_Reading], aliases: Mapping[str, Sequence[str]], cut: float
) -> Estimate:
    if len(names) < 2 or not readings:
        return none("two subjects, and a judgement, are required", len(readings))

    @cache
    def find_similar(guess: str) -> frozenset[str]:
        return frozenset(n for n in names if measure_best_likeness(guess, (n, *aliases.get(n, ()))) >= cut)

    return average([len(find_similar(r.first_guess) - {r.subject}) / (len(names) - 1) for r in readings])


def _measure_judges_agreement(claims_by_text: Sequence[Sequence[bool]], seed: int) -> Estimate:
    several = [u for u in claims_by_text if len(u) > 1]
    if not several:
        return none("no text has two judgements", len(claims_by_text))
    if len({v for u in several for v in u}) < 2:
        return none("all judgements are the same", len(several))
    tables = np.stack([count_coincidences([[int(v) for v in u]], 2) for u in several])
    return bootstrap(lambda rows: float(compute_krippendorff_alpha(tables[rows].sum(axis=0))), len(several), seed=seed)


def _select_terms_by_subject(reasons: Sequence[tuple[str, str]], top: int) -> dict[str, Terms]:
    reasons_of = sorted(group_items(reasons, lambda reason: reason[0]).items())
    terms_of = {subject: select_top_terms((text for _, text in texts), top) for subject, texts in reasons_of}
    return {subject: terms for subject, terms in terms_of.items() if terms}


STOP_WORDS = frozenset(
    """
    i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers herself it
    its itself they them their theirs themselves what which who whom this that these those am is are was were be been
    being have has had having do does did doing would should could ought im youre hes shes its were theyre ive youve
    weve theyve id youd hed shed wed theyd ill youll hell shell theyll isnt arent wasnt werent hasnt havent hadnt
    doesnt dont didnt wont wouldnt shant shouldnt cant cannot couldnt mustnt lets thats whos whats heres theres whens
    wheres whys hows a an the and but if or because as until while of at by for with about against between into through
    during before after above below to from up down in out on off over under again further then once here there when
    where why how all any both each few more most other some such no nor not only own same so than too very
    """.split()
)
LONGEST = 3
"""Words of the longest n-gram."""
_WORD = compile_word_pattern("-.")

Terms = tuple[tuple[str, int], ...]
"""N-gram, its words joined by ``_``, and how often it occurs."""


def list_reason_words(text: str) -> list[str]:
    """List the words of a reason in small letters, without apostrophes and stop words."""
    flat = text.casefold().replace("'", "").replace("’", "")
    return [w for w in _WORD.findall(flat) if w not in STOP_WORDS]


def select_top_terms(texts: Iterable[str], top: int = 10) -> Terms:
    """Select the most frequent n-grams of 1 to 3 words; of equal ones the shorter, then the first by the alphabet.

    Args:
        texts: reasons; n-grams do not reach from one into the next.
        top: how many are kept.
    """
    counts: Counter[str] = Counter()
    for text in texts:
        words = list_reason_words(text)
        for n in range(1, LONGEST + 1):
            counts.update("_".join(words[i : i + n]) for i in range(len(words) - n + 1))
    return tuple(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0].count("_"), pair[0]))[:top])


INTRUDER = "llm"
T = TypeVar("T")


class PersonGuesses(Serialisable):
    """Persons guessed by a language model.

    Attributes:
        after: from the anonymised texts; before: from the original ones, None where these were not sent.
        change: share of identified texts, after less before, with Student's t interval over the texts.
    """

    after: PeopleStudy
    before: PeopleStudy | None
    change: Estimate


class AttributeGuesses(Serialisable):
    """Attributes inferred by a language model.

    Attributes:
        after: from the anonymised texts; before: from the original ones, None where these were not sent.
        change: share of attributes whose first guess is right, after less before, over all texts and attributes.
    """

    after: AttributeResults
    before: AttributeResults | None
    change: Estimate


def person_guesses(
    original: Sequence[str],
    anonymised: Sequence[str],
    subjects: Sequence[str],
    *,
    groups: Sequence[str] = (),
    aliases: Mapping[str, Sequence[str]] | None = None,
    before: bool = False,
    client: Client | None = None,
    settings: Mapping[str, object] | None = None,
    key: bytes | None = None,
    kind: str = "person description",
    guesses: int = 3,
    cut: float = CUT,
    top: int = 10,
    seed: int = 0,
    advance: Advance | None = None,
) -> PersonGuesses:
    """Let a language model do P3's judging task, with one judgement for each text.

    Args:
        original, anonymised: the same texts before and after, in the same order.
        subjects: the true name for each text.
        groups: fame classes, one per text; empty: none.
        aliases: true name to further names that count as it.
        before: whether the original texts are sent to the endpoint too.
        client: whom to ask; by default the one for ``settings`` and ``key``.
        settings: keys of a policy's table ``[llm]``.
        key: for the client's cache, 32 bytes or more; None: no answer is kept.
        kind: what the texts are.
        guesses: names it may give, the likeliest first; a text counts as identified by the first.
        cut: similarity from which on a name counts as found.
        top: n-grams of the reasons that are kept.
        seed: of the bootstrap.
        advance: called with the number of texts that are done, and of all.

    Raises:
        UsageError: no endpoint is named.
        DataError: unequal lengths, or no text.
        EndpointError: the endpoint did not answer.
    """
    n = check_lengths(original, anonymised, subjects, groups or subjects)
    model = client or open_client(settings, key)
    truths = [Truth(str(i), subjects[i], groups[i] if groups else "") for i in range(n)]

    def judge_version(texts: Sequence[str], step: Advance | None) -> PeopleStudy:
        answers = guess_persons(texts, model, kind=kind, guesses=guesses, advance=step)
        judgements = [Judgement(t.text, INTRUDER, answer) for t, answer in zip(truths, answers, strict=True)]
        return people_study(truths, judgements, aliases=aliases, cut=cut, top=top, intruder=INTRUDER, seed=seed)

    versions = original if before else None, anonymised
    return PersonGuesses(*_judge_both_versions(*versions, judge_version, _list_identification_flags, advance))


def attribute_guesses(
    original: Sequence[str],
    anonymised: Sequence[str],
    profiles: Sequence[Mapping[str, str]],
    *,
    attributes: Sequence[str] = ATTRIBUTES,
    before: bool = False,
    client: Client | None = None,
    settings: Mapping[str, object] | None = None,
    key: bytes | None = None,
    person: str = "author",
    kind: str = "text",
    guesses: int = 3,
    advance: Advance | None = None,
) -> AttributeGuesses:
    """Let a language model infer attributes of the authors, or of the people described.

    Args:
        original, anonymised: the same texts before and after, in the same order.
        profiles: of each text, attribute to its true value; empty or missing: not known, and not counted.
        attributes: what is asked for; some of :data:`allonym.intruder.persons.ATTRIBUTES`.
        before: whether the original texts are sent to the endpoint too.
        client, settings, key, kind: as in :func:`person_guesses`.
        person: whose attributes, e.g. ``author`` or ``person described``.
        guesses: how many for each attribute.
        advance: called with the number of texts that are done, and of all.

    Raises:
        UsageError: no endpoint is named, or there is no such attribute.
        DataError: unequal lengths, no text, or a true value that cannot be read.
        EndpointError: the endpoint did not answer.
    """
    check_lengths(original, anonymised, profiles)
    model = client or open_client(settings, key)
    truths = [{name: p[name] for name in attributes if p.get(name)} for p in profiles]

    def judge_version(texts: Sequence[str], step: Advance | None) -> AttributeResults:
        answers = guess_attributes(
            texts, model, attributes=attributes, person=person, kind=kind, guesses=guesses, advance=step
        )
        return score_attribute_guesses(truths, answers, intruder=INTRUDER)

    versions = original if before else None, anonymised
    return AttributeGuesses(*_judge_both_versions(*versions, judge_version, _list_first_guess_hits, advance))


def _list_identification_flags(study: PeopleStudy) -> list[float]:
    return [float(row.identified) for row in study.results.rows]


def _list_first_guess_hits(results: AttributeResults) -> list[float]:
    return [float(s[:1] == (1.0,)) for text_scores in results.scores for s in text_scores.values()]


def _judge_both_versions(
    original: Sequence[str] | None,
    anonymised: Sequence[str],
    judge_version: Callable[[Sequence[str], Advance | None], T],
    list_scores: Callable[[T], list[float]],
    advance: Advance | None,
) -> tuple[T, T | None, Estimate]:
    """Return the results of the anonymised texts, those of the original ones if they are sent, and the change."""
    n = len(anonymised)
    if original is None:
        return judge_version(anonymised, advance), None, none("the original texts were not sent")
    after, before = (
        judge_version(texts, shift_progress(advance, start, 2 * n)) for texts, start in ((anonymised, 0), (original, n))
    )
    return after, before, difference(list_scores(before), list_scores(after))
