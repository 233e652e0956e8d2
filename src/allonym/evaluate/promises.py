"""What documents that people have read prove about the others: at most so much is missed, so sure, at this cost.

The loss of a document is the share of its entities of which anything is left. Two promises exist. *In expectation*
(conformal risk control, Angelopoulos et al. 2024, arXiv:2208.02814): over many samples the chosen threshold misses the
limit at most on average; one unlucky sample may be far off. *With confidence* (risk-controlling prediction sets, Bates
et al. 2021, doi:10.1145/3478535, and Learn then Test, Angelopoulos et al. 2021, arXiv:2110.01052): all but, say, 5 % of
samples choose a threshold that keeps the limit. "95 % sure" is the second; the first is told beside it.

Thresholds are tested from the lowest on and the first that fails ends the search, so their number costs nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from allonym.document import Document, Interval, Span, merge_intervals
from allonym.errors import DataError, UsageError
from allonym.evaluate.leaks import is_masked
from allonym.labels import TAXONOMY
from allonym.pipeline import detect
from allonym.policy import Policy
from allonym.serial import Serialisable
from allonym.stats.wagers import bound_mean, count_needed_documents, measure_capital
from allonym.train.labelmap import find_targets
from allonym.train.records import Mark, Record, read_json_lines, read_records

THRESHOLDS = (0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.17, 0.23, 0.3, 0.4, 0.5, 0.65, 0.8)
"""Thresholds that are tried, for all labels without one of their own."""
LIMITS = (0.01, 0.02, 0.05, 0.1)
"""Limits of a promise that are told beside the one that is asked for."""
UNITS = ("entities", "documents")
ASSUMPTIONS = (
    "The documents were drawn at random, all that were drawn before the last were read, and the others are like them.",
    "Whoever read them looked for what is missing in the whole text: what a reader overlooks counts as nothing missed.",
    "The limit was chosen before looking at the result, and the policy was not fitted to these documents.",
)
"""What a promise rests on, beside the arithmetic."""
Documents = Sequence[Sequence[tuple[Document, Sequence[Mark]]]]
"""Each document as its texts with the marks of all that identifies in them."""
_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, repr=False)
class DocumentLosses:
    """What was missed and covered in documents at several thresholds, in the random order of the documents.

    Attributes:
        missed: float ``(documents, thresholds)``: the share of the entities of which anything is left.
        covered: int ``(documents, thresholds)``: letters and digits outside of entities that are covered.
        outside: int ``(documents,)``: letters and digits outside of entities.
        entities: int ``(documents,)``.
    """

    missed: Any
    covered: Any
    outside: Any
    entities: Any

    def select(self, rows: Any) -> DocumentLosses:
        """Return the losses of some documents, in the order of ``rows``."""
        return DocumentLosses(self.missed[rows], self.covered[rows], self.outside[rows], self.entities[rows])


class ThresholdRisk(Serialisable):
    """What one threshold misses.

    Attributes:
        threshold: None: the policy as it is.
        missed: mean loss of the reviewed documents, 0 to 1.
        bound: what the mean loss of all documents lies under, with the confidence of the promise.
        needless: share of the letters and digits outside of entities that are covered, 0 to 1.
    """

    threshold: float | None
    missed: float
    bound: float
    needless: float


class LimitOffer(Serialisable):
    """What it takes to promise a limit.

    Attributes:
        limit: mean loss of all documents, 0 to 1.
        threshold: the highest that keeps it with the confidence of the promise; None: none is proved to.
        needless: its cost; None without a threshold.
        documents: how many reviewed documents would prove it at the lowest threshold, if further ones lose as these do;
            None: no number would.
        expected_threshold: the highest that keeps the limit on average over samples (conformal risk control), or None.
    """

    limit: float
    threshold: float | None
    needless: float | None
    documents: int | None
    expected_threshold: float | None


class Promise(Serialisable):
    """What may be promised from reviewed documents.

    Attributes:
        reviewed: documents.
        entities: in them.
        population: documents from which they were drawn; None: any number of documents like these.
        unit: ``entities``: the loss of a document is the share of its entities missed; ``documents``: 1 if any is.
        confidence: share of samples whose promise holds.
        offer: for the limit that was asked for.
        as_is: of the policy without another threshold.
        thresholds, limits: the tables. Whoever chooses a limit after reading them is less sure than the confidence.
    """

    reviewed: int
    entities: int
    population: int | None
    unit: str
    confidence: float
    offer: LimitOffer
    as_is: ThresholdRisk
    thresholds: tuple[ThresholdRisk, ...] = field(default=())
    limits: tuple[LimitOffer, ...] = field(default=())
    DERIVED = ("sentence",)

    @property
    def sentence(self) -> str:
        """The promise, or why there is none and how many documents it takes."""
        offer, sure = self.offer, f"{self.confidence * 100:.10g}% sure"
        limit = f"{offer.limit * 100:.10g}%"  # whole: a rounded one would promise what is not proved
        which = "" if self.population is None else f" of {self.population:,}"
        begin = f"With {self.reviewed:,}{which} documents reviewed"
        promised = (
            f"at most {limit} of a document's entities missed on average"
            if self.unit == UNITS[0]
            else f"anything missed in at most {limit} of documents"
        )
        if offer.threshold is not None and offer.needless is not None:
            cost = f"costs {offer.needless:.1%} needless cover"
            return f"{begin}: {promised}, {sure}; threshold {offer.threshold:g}; {cost}."
        if offer.documents is None:
            lowest = self.thresholds[0]
            return (
                f"{begin}, no threshold keeps this promise: {promised}. The lowest, {lowest.threshold:g}, missed "
                f"{lowest.missed:.1%}; the detectors must improve first."
            )
        more = f"{sure}, takes about {offer.documents:,} reviewed documents"
        return f"{begin}, nothing so strict is proved: {promised}, {more}."


def make_threshold_table(threshold: float) -> dict[str, Any]:
    """Return the table of a policy file that sets one threshold for all labels without one of their own."""
    return {"threshold": threshold, "detect": {"operating_point": threshold}}


def measure_losses(
    documents: Documents,
    policy: Policy,
    *,
    thresholds: Sequence[float | None] = (None, *THRESHOLDS),
    advance: Callable[[int, int], None] | None = None,
) -> DocumentLosses:
    """Detect in documents at each threshold, and compare with what people marked in their whole text.

    Args:
        documents: marks that annotators exempt (kind ``none``) and those that the policy does not look for, or keeps,
            do not count.
        policy: without corrections that came from reading these documents.
        thresholds: None: the policy as it is.
        advance: called with the number of documents done, and of all.
    """
    policies = [policy if t is None else policy.changed(make_threshold_table(t), "promise") for t in thresholds]
    shape = len(documents), len(policies)
    missed, covered = np.zeros(shape), np.zeros(shape, np.int64)
    outside, entities = np.zeros(shape[:1], np.int64), np.zeros(shape[:1], np.int64)
    for i, parts in enumerate(documents):
        lost = np.zeros(shape[1])
        for document, marks in parts:
            text = document.text
            groups = _group_marks(text, marks, policy, str(document.meta.get("source", "")))
            every = merge_intervals((mark["start"], mark["end"]) for mark in marks)
            entities[i] += len(groups)
            outside[i] += _count_letters(text, [(0, len(text))]) - _count_letters(text, every)
            for j, chosen in enumerate(policies):
                cover = _list_cover(detect(document, chosen), chosen)
                lost[j] += sum(not all(is_masked(text, place, cover) for place in places) for places in groups)
                covered[i, j] += _count_letters(text, merge_intervals([*cover, *every])) - _count_letters(text, every)
        missed[i] = lost / max(1, entities[i])
        if advance:
            advance(i + 1, len(documents))
    return DocumentLosses(missed, covered, outside, entities)


def group_record_texts(records: Iterable[Record]) -> Documents:
    """Return annotated records as documents: all records of a ``doc_id`` are one."""
    out: defaultdict[str, list[tuple[Document, Sequence[Mark]]]] = defaultdict(list)
    for record in records:
        out[record["doc_id"]].append((Document(record["id"], record["text"], record["meta"]), record["spans"]))
    return list(out.values())


def draw_sample(texts: Sequence[tuple[str, str]], size: int, seed: int = 0) -> list[dict[str, Any]]:
    """Draw documents at random, for people to mark: rows of a JSONL file without ``spans``.

    Args:
        texts: id and text of every document for which the promise is to hold.
        size: number of documents; all, where there are fewer.
        seed: of the draw; with another, other documents.

    Returns:
        Rows in random order, with their rank from 1 and the number of all documents in ``meta.draw``.
    """
    key = str(seed).encode()
    order = sorted(range(len(texts)), key=lambda i: blake2b(str(i).encode(), key=key).digest())[:size]
    return [
        {"id": texts[i][0], "text": texts[i][1], "meta": {"draw": {"rank": rank, "of": len(texts)}}}
        for rank, i in enumerate(order, 1)
    ]


def read_marked_sample(path: Path, *, is_random: bool = False) -> tuple[Documents, int | None]:
    """Read marked documents in the order of their draw, and the number of documents from which they were drawn.

    Args:
        path: JSONL of :func:`draw_sample` with ``spans``; with ``is_random`` any annotated corpus.
        is_random: whether the caller vouches that the documents were drawn at random; then the number is None.

    Raises:
        UsageError: nobody drew the documents. DataError: one of the draw is missing or was not marked.
    """
    records = read_records(path)
    draws = [record["meta"].get("draw") for record in records]
    if not any(draws):
        if not is_random:
            raise UsageError(
                f"{path} was not drawn by `allonym evaluate promise sample`, and documents that somebody chose prove "
                "nothing about the others; --random says that they were drawn at random"
            )
        return group_record_texts(records), None
    try:
        places: list[Any] = draws
        ranks = {int(draw["rank"]): record for draw, record in zip(places, records, strict=True)}
        [population] = {int(draw["of"]) for draw in places}
        if len(ranks) < len(records) or min(ranks) < 1 or max(ranks) > population:
            raise ValueError
    except (TypeError, LookupError, ValueError):
        raise DataError(f"{path}: meta.draw is damaged, or the file mixes draws or has a document twice") from None
    if missing := sorted(set(range(1, max(ranks) + 1)) - ranks.keys()):
        raise DataError(f"{path}: document {missing[0]} of the draw is missing; leave out only the last ones")
    for number, row in read_json_lines(path):
        if "spans" not in row:
            raise DataError(f"{path}:{number}: spans are required; [] says that nothing identifies anybody")
    # Each row was drawn by itself, whatever ids rows share.
    return [part for _, record in sorted(ranks.items()) for part in group_record_texts([record])], population


def make_promise(
    losses: DocumentLosses,
    limit: float = 0.01,
    *,
    confidence: float = 0.95,
    population: int | None = None,
    unit: str = "entities",
    thresholds: Sequence[float] = THRESHOLDS,
) -> Promise:
    """Return what may be promised.

    The documents must be a random draw from all, in random order, and whoever read them must have looked for what is
    missing in their whole text.

    Args:
        losses: of the policy as it is, then of each threshold; see :func:`measure_losses`.
        limit: mean loss of all documents to promise, over 0 and below 1.
        confidence: over 0 and below 1.
        population: of :func:`allonym.stats.wagers.measure_capital`.
        unit: one of ``UNITS``.
        thresholds: rising.

    Raises:
        UsageError: there is no document, or a value is out of range.
    """
    if not len(losses.missed):
        raise UsageError("a promise needs reviewed documents, and there is none")
    if not 0 < confidence < 1:
        raise UsageError(f"a confidence between 0 and 1 is required, got {confidence:g}")
    values = losses.missed if unit == UNITS[0] else (losses.missed > 0).astype(float)
    needless = losses.covered.sum(axis=0) / max(1, losses.outside.sum())

    def make_offer(limit: float) -> LimitOffer:
        chosen = choose_threshold(values[:, 1:], limit, confidence, population)
        expected = choose_expected_threshold(values[:, 1:], limit)
        return LimitOffer(
            limit,
            None if chosen is None else thresholds[chosen],
            None if chosen is None else float(needless[1 + chosen]),
            count_needed_documents(values[:, 1], limit, confidence, population),
            None if expected is None else thresholds[expected],
        )

    risks = [
        ThresholdRisk(
            threshold,
            float(values[:, j].mean()),
            bound_mean(values[:, j], confidence, population),
            float(needless[j]),
        )
        for j, threshold in enumerate((None, *thresholds))
    ]
    return Promise(
        reviewed=len(values),
        entities=int(losses.entities.sum()),
        population=population,
        unit=unit,
        confidence=confidence,
        offer=make_offer(limit),
        as_is=risks[0],
        thresholds=tuple(risks[1:]),
        limits=tuple(make_offer(value) for value in sorted({*LIMITS, limit})),
    )


def choose_threshold(losses: Any, limit: float, confidence: float, population: int | None = None) -> int | None:
    """Return the number of the highest threshold that, as all below it, is proved to keep a limit; None: none is.

    Args:
        losses: ``(documents, thresholds)``, thresholds rising.
        limit, confidence, population: of :func:`allonym.stats.wagers.measure_capital`.
    """
    holds = measure_capital(losses, limit, population) >= -np.log1p(-confidence)
    return _count_leading(holds)


def choose_expected_threshold(losses: Any, limit: float) -> int | None:
    """Return the number of the highest threshold whose expected loss keeps a limit: conformal risk control; or None.

    Args:
        losses: ``(documents, thresholds)``; of a document, the loss at a threshold counts as the largest up to it.
        limit: of the expectation over samples.
    """
    n = len(losses)
    risk = (np.maximum.accumulate(losses, axis=1).sum(axis=0) + 1) / (n + 1)
    return _count_leading(risk <= limit + _TOLERANCE)


def _count_leading(holds: Any) -> int | None:
    count = len(holds) if holds.all() else int(np.argmin(holds))
    return count - 1 if count else None


def _group_marks(text: str, marks: Sequence[Mark], policy: Policy, source: str) -> list[list[Interval]]:
    """Return the places of each entity: marks of one entity, else of the same letters."""
    groups: defaultdict[str, list[Interval]] = defaultdict(list)
    for mark in marks:
        place = mark["start"], mark["end"]
        if mark.get("kind") != "none" and _must_be_covered(mark["label"], policy, source):
            groups[mark.get("entity") or " ".join(text[slice(*place)].casefold().split())].append(place)
    return list(groups.values())


def _must_be_covered(label: str, policy: Policy, source: str) -> bool:
    """Whether a policy replaces any of what a label may mean; labels that nobody knows count."""
    names = (label,) if label in TAXONOMY else find_targets(label, source)
    if not names:
        return names is not None
    return any(policy.looks_for(name) and policy.rule(name).operator != "keep" for name in names)


def _list_cover(findings: Iterable[Span], policy: Policy) -> list[Interval]:
    return merge_intervals((s.start, s.end) for s in findings if policy.rule(s.label).operator != "keep")


def _count_letters(text: str, places: Iterable[Interval]) -> int:
    return sum(map(str.isalnum, "".join(text[start:end] for start, end in places)))
