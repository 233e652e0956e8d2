"""Candidates are all spans that a policy's detectors see; selection tells which count, and why others do not.

:mod:`allonym.resolve` makes the findings disjoint. Thresholds come first. Then a rule beats the tagger where both cover
the same text, further mentions of names are found, and excluded terms are dropped. Every step is a pass over sorted
spans.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Literal

from allonym import registry
from allonym.detection import OPENING_MARKS, TAGGER, Detector
from allonym.detection.borders import include_leading_words
from allonym.detection.disguise import find_disguised_regions, fold_lookalikes
from allonym.detection.languages import ENGLISH, Passage, list_unread, name_languages
from allonym.detection.lexicon import split_by_exclusions
from allonym.detection.listed_names import drop_greetings, find_listed_names, find_names_in_paths, is_typical_name
from allonym.detection.mentions import (
    ECHO_SCORE,
    EXPLAINED_SCORE,
    find_capitalised_names,
    find_ends_of_numbers,
    find_initials,
    find_name_repetitions,
    find_names_beside_slash,
    find_repeated_names,
    find_short_names,
    is_written_with_care,
)
from allonym.detection.nobody import drop_citations
from allonym.detection.other_languages import list_package_languages
from allonym.detection.public_figures import drop_public_figures
from allonym.detection.short_dates import SCORE as DATE_SCORE
from allonym.detection.short_dates import find_ages_of_people, find_short_dates
from allonym.detection.slugs import find_slugs
from allonym.detection.structure import COLUMN, Prose, apply_structure, cut_prose
from allonym.detection.technical import drop_technical_noise
from allonym.detection.turns import add_turns
from allonym.detection.unread_names import find_names_by_capitals
from allonym.detection.unread_values import find_values_in_passages
from allonym.detection.verdict import give_one_label, weigh_findings
from allonym.detection.words import read_dictionary, read_word_list
from allonym.document import (
    KEPT,
    Document,
    Interval,
    Reach,
    Span,
    clip_intervals,
    merge_intervals,
    subtract_intervals,
    trim_blanks,
)
from allonym.errors import AllonymError, DataError, UnknownNameError
from allonym.labels import UNREAD_TEXT
from allonym.policy import Policy
from allonym.text.words import find_words

MONTHS_AS_NAMES = frozenset("April May June August January Avril Juni".split())
"""Months that are given names as well."""
_LONGEST_MONTH = 9
_FUNCTION = read_word_list("function_words")
_LINE = re.compile(r"[^\n]+")
_FAMILY = re.compile(r"(?:[Tt]he )?([^\W\d_][\w\-]+)(?:['’]s?(?: [a-z][\w\-]*)+|['’])?")
"""A family's name, alone or with what it owns: "Millers", "the Millers' router"."""
_NEVER = 2.0  # a score that no finding reaches
_LEAST_SURE = 0.5  # score of a rule's finding beside which capitals say nothing
_LEAST_PROBABILITY = 0.05  # of a finding of the tagger that an explanation shows

Loss = Literal["superseded", "ordinary", "below threshold", "excluded", "technical", "public"]
"""Why a candidate is no finding."""


@lru_cache(maxsize=64)
def build_detectors(policy: Policy) -> tuple[Detector, ...]:
    """The policy's detectors, in its order. They are built once for each policy object."""
    factories = [registry.detectors.get(name) for name in policy.detectors]
    return tuple(factory(policy) for factory in factories)  # type: ignore[operator]


def find_candidates(document: Document, policy: Policy) -> list[Span]:
    """All spans that the policy's detectors see in a document, in no particular order.

    Disguised regions are searched a second time without their disguise; a span found there counts where the plain
    search did not find it with the same label and at least the same score.

    Raises:
        DataError: a detector failed, or the policy refuses passages in languages that no detector reads. The message
            names the type of an error only, since the error may quote the text.
    """
    document = add_turns(document)
    folded = fold_lookalikes(document.text)
    plain = document if folded is document.text else replace(document, text=folded)
    prose = cut_prose(plain, policy)
    # The small tagger of other languages misses names that lists know, and holds less than a policy that refuses.
    weakly_read = _list_unread_passages(folded, prose, policy, counts_package=False)
    unread = weakly_read if policy.unknown_language == "refuse" else _list_unread_passages(folded, prose, policy)
    if unread and policy.unknown_language == "refuse":
        raise DataError(describe_refusal(unread))
    candidates: list[Span] = []
    readers: list[Detector] = []  # of the whole text
    for detector in build_detectors(policy):
        if prose is None or getattr(detector, "reads_technical", True):
            readers.append(detector)
            candidates += _run_detector(detector, plain)
        elif prose.places:
            candidates += prose.restore_offsets(_run_detector(detector, prose.document))
    scores: dict[tuple[int, int, str], float] | None = None
    readers = [detector for detector in readers if getattr(detector, "reads_disguise", True)]
    for offset, first, last, view in find_disguised_regions(folded):
        scores = scores or {(s.start, s.end, s.label): s.score for s in candidates}
        unmasked = Document(document.id, view.text, document.meta)
        for detector in readers:
            for span in _run_detector(detector, unmasked):
                if first <= span.start and span.end <= last:
                    start, end = (offset + border for border in view.locate_original(span.start, span.end))
                    if scores.get((start, end, span.label), -1.0) < span.score:
                        candidates.append(replace(span, start=start, end=end, source=f"{span.source}+unmasked"))
    if unread and policy.unknown_language == "cover":
        candidates = _cover_passages(folded, unread, candidates)
    elif weakly_read:
        read = list_package_languages() - {p.language for p in unread}
        candidates += _find_in_passages(folded, weakly_read, candidates, read)
    if "rules" in policy.detectors:
        candidates += find_names_in_paths(folded)
    candidates = drop_greetings(folded, candidates)
    return apply_structure(document, policy, candidates)


def find_unread_passages(document: Document, policy: Policy) -> tuple[Passage, ...]:
    """The passages in which no detector of a policy looks for names, because it does not know their language.

    They are disjoint and in reading order. There are none where the policy has no detector that reads sentences.
    """
    plain = replace(document, text=fold_lookalikes(document.text))
    return _list_unread_passages(plain.text, cut_prose(plain, policy), policy)


def count_unread_characters(document: Document, policy: Policy) -> dict[str, int]:
    """The characters of :func:`find_unread_passages` by language, the most first.

    Empty where the policy's detectors cannot be built: then the findings of the document came from elsewhere.
    """
    counts: Counter[str] = Counter()
    try:
        build_detectors(policy)
    except AllonymError:
        return {}
    for passage in find_unread_passages(document, policy):
        counts[passage.language] += passage.end - passage.start
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _list_unread_passages(
    folded: str, prose: Prose | None, policy: Policy, *, counts_package: bool = True
) -> tuple[Passage, ...]:
    """The passages in languages that no detector reads; of these, small taggers of other languages may not count."""
    readers = [detector for detector in build_detectors(policy) if getattr(detector, "languages", ())]
    if not readers:
        return ()
    if not counts_package:
        readers = [detector for detector in readers if not getattr(detector, "reads_weakly", False)]
    languages = frozenset().union(*(getattr(detector, "languages", ()) for detector in readers))
    if not counts_package:
        languages = (languages or frozenset({ENGLISH})) - (list_package_languages() - {policy.language})
    if prose is None:
        return list_unread(folded, languages)
    return tuple(prose.restore_offsets(list_unread(prose.document.text, languages)))


def describe_refusal(unread: Sequence[Passage]) -> str:
    """Why a document with unread passages is refused, and what to do."""
    languages = name_languages(dict.fromkeys(passage.language for passage in unread))
    return (
        f"names cannot be looked for in its passages in {languages}, and the policy refuses these; name a detector "
        f"that reads {languages}, or set unknown_language to 'cover' or 'rules'"
    )


def _find_in_passages(
    text: str, passages: Sequence[Passage], candidates: Iterable[Span], read: Collection[str]
) -> list[Span]:
    """What lists, capitals and fields tell in passages in languages that no detector reads, or only a small one."""
    if not passages:
        return []
    spans = [*find_values_in_passages(text, passages), *find_listed_names(text, passages)]
    sure = (span for span in candidates if span.source != TAGGER and span.score >= _LEAST_SURE)
    covered = Reach((span.start, span.end) for span in (*sure, *spans))
    return [*spans, *find_names_by_capitals(text, passages, covered, read)]


def _cover_passages(text: str, passages: Sequence[Passage], candidates: Iterable[Span]) -> list[Span]:
    """The candidates outside of the passages, and a finding for each line of these."""
    lines = [
        trim_blanks(text, *line.span())
        for passage in passages
        for line in _LINE.finditer(text, passage.start, passage.end)
        if not line[0].isspace()
    ]
    covered = Reach(lines)
    outside = [span for span in candidates if not covered.contains(span.start, span.end)]
    return [*outside, *(Span(start, end, UNREAD_TEXT, 1.0, "languages") for start, end in lines)]


def _run_detector(detector: Detector, document: Document) -> Iterable[Span]:
    try:
        return list(detector(document))
    except AllonymError:
        raise
    except Exception as error:  # the error of a foreign detector may quote the text
        failure = type(error).__name__
    raise DataError(f"a detector failed with {failure}")


@lru_cache(maxsize=64)
def compute_needed_scores(policy: Policy) -> dict[str, float]:
    """Label to the least score that counts; over 1 for labels that the policy does not look for."""
    names = [label.name for label in policy.taxonomy]
    return {name: policy.threshold_for(name) if policy.looks_for(name) else _NEVER for name in names}


def select_findings_and_add_repeats(document: Document, policy: Policy, candidates: Iterable[Span]) -> list[Span]:
    """The candidates that count, and further mentions of the names among them. They may overlap.

    Raises:
        UnknownNameError: a candidate's label is not in the policy's taxonomy.
    """
    document = add_turns(document)
    text = document.text
    strong = _drop_weak_candidates(candidates, compute_needed_scores(policy))
    identifying = drop_citations(text, _drop_technical_noise(text, strong, policy))
    findings = weigh_findings(document, _drop_superseded_findings(text, identifying, policy))
    if policy.public_figures == "keep":
        findings = drop_public_figures(text, findings, policy.taxonomy)
    is_tagged = any(span.source == TAGGER for span in findings)
    person_score = compute_needed_scores(policy)["PERSON"]
    if names := [span for span in findings if span.source in (TAGGER, COLUMN)]:
        findings += find_repeated_names(text, names, findings, policy.taxonomy)
    if person_score <= ECHO_SCORE and findings:
        kept_labels = _list_kept_labels(policy)
        replaced = [span for span in findings if span.label not in kept_labels]
        findings += find_name_repetitions(text, replaced, policy.taxonomy)
        if KEPT not in document.roles:  # capitals in tables are no evidence
            more = find_initials(text, findings, policy.taxonomy)
            more += find_short_names(text, findings, policy.taxonomy)
            more += find_names_beside_slash(text, findings, policy.taxonomy)
            explained = {(span.start, span.end) for span in more if span.score == EXPLAINED_SCORE}
            findings = [span for span in findings if (span.start, span.end) not in explained]
            capitalised = find_capitalised_names(text, [*findings, *more])
            if capitalised and is_written_with_care(text, [turn.start for turn in document.turns]):
                more += capitalised
            findings += _drop_technical_noise(text, more, policy)
    findings += find_ends_of_numbers(text, findings, policy.taxonomy)
    if compute_needed_scores(policy)["AGE"] <= DATE_SCORE:
        findings += find_ages_of_people(text, findings, policy.taxonomy)
    if compute_needed_scores(policy)["DATE"] <= DATE_SCORE and (
        dates := find_short_dates(text, findings, policy.taxonomy)
    ):
        findings += _drop_technical_noise(text, dates, policy)
    if is_tagged and person_score <= 1:
        findings = _relabel_family_names(text, findings)
    if is_tagged:
        findings = give_one_label(text, findings, policy.taxonomy)
    findings = include_leading_words(text, findings, policy.language)
    findings += find_slugs(document, findings, policy.taxonomy)
    if policy.exclusions and findings:
        findings = list(split_by_exclusions(document, findings, policy)[0])
    return _drop_kept_rivals(findings, policy)


@lru_cache(maxsize=64)
def _list_kept_labels(policy: Policy) -> frozenset[str]:
    return frozenset(label.name for label in policy.taxonomy if policy.rule(label.name).operator == "keep")


def _drop_kept_rivals(findings: list[Span], policy: Policy) -> list[Span]:
    """The findings without those that the policy keeps where one that it replaces overlaps them: that one must win."""
    kept_labels = _list_kept_labels(policy)
    if not any(span.label in kept_labels for span in findings):
        return findings
    replaced = Reach((span.start, span.end) for span in findings if span.label not in kept_labels)
    return [span for span in findings if span.label not in kept_labels or not replaced.touches(span.start, span.end)]


def _drop_technical_noise(text: str, candidates: list[Span], policy: Policy) -> list[Span]:
    if not policy.technical:
        return candidates
    changes_dates = policy.rule("DATE_TIME").operator in ("pseudonym", "shift_dates", "generalise")
    return drop_technical_noise(text, candidates, policy.taxonomy, changes_dates=changes_dates)


def _drop_weak_candidates(candidates: Iterable[Span], scores: dict[str, float]) -> list[Span]:
    try:
        # The tagger has applied its own operating points; "not <" so that a score that is no number counts.
        return [s for s in candidates if not s.score < scores[s.label] or (s.source == TAGGER and scores[s.label] <= 1)]
    except KeyError as error:
        unknown = error.args[0]
    raise UnknownNameError("label", unknown, scores, "a detector's finding")


def _drop_superseded_findings(text: str, findings: list[Span], policy: Policy) -> list[Span]:
    """Drop the tagger's findings that lie inside another detector's of the same family, whose label says more.

    Where another detector's finding of another family lies inside a finding of the tagger, what remains beside it
    counts only where it holds two letters or digits. Each finding of the tagger is compared with those of the other
    detectors only, not with other findings of the tagger: these are disjoint.
    """
    lineage = policy.taxonomy.lineage
    others = [span for span in findings if span.source != TAGGER]
    if not others or len(others) == len(findings):
        return findings
    tagged = [span for span in findings if span.source == TAGGER]
    others = sorted(_drop_months_in_names(text, others, tagged), key=lambda span: (span.start, -span.end))
    families: dict[str, list[Span]] = {}
    for span in others:
        families.setdefault(lineage(span.label)[-1], []).append(span)
    reaches = {family: Reach((span.start, span.end) for span in spans) for family, spans in families.items()}
    nowhere = Reach(())
    covered = merge_intervals((span.start, span.end) for span in others)
    selected = others
    for span in tagged:
        family = reaches.get(lineage(span.label)[-1], nowhere)
        if family.contains(span.start, span.end):
            continue
        clipped = clip_intervals(covered, span.start, span.end)
        if not clipped or family.touches(span.start, span.end):
            selected.append(span)
        else:
            selected += _list_span_remainders(text, span, clipped)
    return selected


def _list_span_remainders(text: str, span: Span, clipped: Sequence[Interval]) -> Iterable[Span]:
    """The rests of a span outside the ``clipped`` intervals, without outer space.

    What holds fewer than two letters or digits, or function words alone ("is" beside "gay"), is no finding.
    """
    for start, end in subtract_intervals((span.start, span.end), clipped):
        words = find_words(text[start:end].lower())
        if sum(map(len, words)) > 1 and not _FUNCTION.issuperset(words):
            start, end = trim_blanks(text, start, end)
            while not text[start].isalnum() and text[start] not in OPENING_MARKS:
                start += 1
            yield replace(span, start=start, end=end)


def _drop_months_in_names(text: str, others: list[Span], tagged: Iterable[Span]) -> list[Span]:
    """Drop the dates that are the given name of a person whom the tagger found: "April Stone"."""
    months = {s for s in others if len(s) <= _LONGEST_MONTH and text[s.start : s.end] in MONTHS_AS_NAMES}
    if not months:
        return others
    people = Reach((span.start, span.end) for span in tagged if span.label.startswith("PERSON"))
    return [s for s in others if s not in months or not people.contains(s.start, s.end + 1)]


def _relabel_family_names(text: str, findings: list[Span]) -> list[Span]:
    """Make people of "Millers" and of "Millers' router" where a person of the text is called Miller.

    The tagger took the one for an organisation, the other for a thing; of this, the name alone is found. So is a
    common family name in the plural after an article: "the Patels".
    """
    others = [s for s in findings if s.source == TAGGER and len(s) > 4 and not s.label.startswith("PERSON")]
    heads = {s: head for s in others if (head := _FAMILY.fullmatch(text, s.start, s.end))}
    if not heads:
        return findings
    people = (text[s.start : s.end].split() for s in findings if s.label.startswith("PERSON"))
    names = {words[-1] for words in people if words}
    families = {
        span: replace(span, start=head.start(1), end=head.end(1), label="PERSON")
        for span, head in heads.items()
        if (head.end(1) < span.end or (span.label == "ORGANIZATION" and head[1][-1] == "s"))
        and (names & {head[1], head[1].removesuffix("s"), head[1].removesuffix("es")} or _is_family(text, head))
    }
    return [families.get(span, span) for span in findings]


def _is_family(text: str, head: re.Match[str]) -> bool:
    """Whether a plural of a common family name has an article and nothing behind: "the Patels have offered"."""
    name = head[1].removesuffix("s")
    is_plural = name != head[1] and name.istitle() and text.endswith(("the ", "The "), 0, head.start(1))
    return is_plural and name.lower() not in read_dictionary() and is_typical_name(name.lower())


@lru_cache(maxsize=64)
def _remove_thresholds(policy: Policy) -> Policy:
    return policy.with_threshold(0.0, _LEAST_PROBABILITY)


def explain_candidates(document: Document, policy: Policy) -> tuple[set[Span], dict[Span, Loss]]:
    """The findings, and why each other candidate is none, including candidates below their thresholds."""
    candidates = find_candidates(document, policy)
    findings = set(select_findings_and_add_repeats(document, policy, candidates))
    tagged = {s for s in candidates if s.source == TAGGER and policy.looks_for(s.label)}
    strong = _drop_weak_candidates(candidates, compute_needed_scores(policy))
    identifying = drop_citations(document.text, _drop_technical_noise(document.text, strong, policy))
    noise = set(strong).difference(identifying)
    weighed = set(_drop_superseded_findings(document.text, identifying, policy))
    is_public = policy.public_figures == "keep"
    losses: dict[Span, Loss] = {}
    # Without thresholds the tagger's scores differ a little: what it finds with them as well is not told twice.
    twins = {(s.start, s.end, s.label, TAGGER) for s in candidates if s.source == TAGGER}
    more = find_candidates(document, _remove_thresholds(policy))
    for span in {*candidates, *(s for s in more if (s.start, s.end, s.label, s.source) not in twins)} - findings:
        if span in noise:
            losses[span] = "technical"
        elif is_public and span.label == "PERSON" and span in weighed:
            losses[span] = "public"
        elif span in tagged:
            losses[span] = "ordinary" if span in weighed else "superseded"
        elif span.score < policy.threshold_for(span.label):
            losses[span] = "below threshold"
        elif span.source == TAGGER:
            losses[span] = "superseded"
        else:
            losses[span] = "excluded"
    return findings, losses
