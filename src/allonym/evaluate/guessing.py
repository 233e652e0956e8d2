"""Guesses of a language model: whom texts are about, and which attributes it infers (P3; Staab et al. 2023).

Strictly opt-in: anonymised texts go to the endpoint that the settings name, original ones only where asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from allonym.evaluate.pairs import Advance, check_lengths, shift_progress
from allonym.evaluate.people import Judgement, PeopleStudy, Truth, people_study
from allonym.intruder.attributes import ATTRIBUTES, AttributeResults, guess_attributes, score_attribute_guesses
from allonym.intruder.persons import guess_persons, open_client
from allonym.intruder.scoring import CUT
from allonym.llm import Client
from allonym.serial import Serialisable
from allonym.stats import Estimate, none
from allonym.stats.samples import difference

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
        attributes: what is asked for; some of :data:`allonym.intruder.attributes.ATTRIBUTES`.
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
