"""The results of a project's reviews: agreement, residual risk by P2, and text to train the tagger on."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from allonym.document import Span
from allonym.server.reviews.queue import DONE, SEATS, VERDICT_SEAT, ReviewDocument, UserReading
from allonym.server.reviews.readings import Reading, apply_reading, is_same_reading, make_marked
from allonym.server.wire.reviews import Agreed, AgreementOut, ByLabel

Reviewed = tuple[ReviewDocument, Mapping[int, UserReading]]


def measure_agreement_and_risk(reviewed: Sequence[Reviewed]) -> Agreed:
    """Return the agreement and the residual risk of a project, as numbers and tags only.

    Agreement on ``marks`` is the harder test: the findings, which both reviewers were shown, do not help.

    Args:
        reviewed: documents with their readings.

    Raises:
        MissingExtra: the extra ``evaluate`` is not installed.
    """
    from allonym.evaluate import residual_risk
    from allonym.evaluate.matching import Mention, measure_agreement

    finished = [(item, seats) for item, seats in reviewed if all(n in seats and seats[n].done for n in SEATS)]
    texts = [item.document.text for item, _ in finished]
    spans = [
        {str(n): [Mention(s.start, s.end, s.label) for s in _get_spans_by_reading(item, seats[n])] for n in SEATS}
        for item, seats in finished
    ]
    marks = [
        {str(n): [Mention(m.start, m.end, f"{m.kind} {m.label}") for m in seats[n].reading.marks] for n in SEATS}
        for _, seats in finished
    ]
    marked = [
        make_marked(reading, item.id, item.document.text) for item, _, reading, _ in list_settled_readings(reviewed)
    ]
    risk = residual_risk(marked).to_dict() if marked else None
    agreements = [measure_agreement(texts, annotations) for annotations in (spans, marks)]
    on_spans, on_marks = (AgreementOut.model_validate(each.to_dict()) if each else None for each in agreements)
    return Agreed(
        documents=len(finished),
        same=sum(
            is_same_reading(seats[1].reading, seats[2].reading, item.document.text, item.spans)
            for item, seats in finished
        ),
        by_label=_count_agreement_by_label(finished),
        spans=on_spans,
        marks=on_marks,
        residual={name: risk[name] for name in ("limit", "total", "types", "histogram")} if risk else None,
    )


def list_settled_readings(
    reviewed: Sequence[Reviewed],
) -> Iterator[tuple[ReviewDocument, Mapping[int, UserReading], Reading, str]]:
    """Yield the settled documents with all readings, and the one that holds: the adjudicator's, else that of both."""
    for item, seats in reviewed:
        if item.state == DONE:
            verdict = seats.get(VERDICT_SEAT)
            if verdict is not None and verdict.done:
                yield item, seats, verdict.reading, "adjudicated"
            else:
                yield item, seats, seats[SEATS[0]].reading, "agreed"


def format_training_lines(project: str, reviewed: Sequence[Reviewed]) -> Iterator[str]:
    """Yield the settled documents as JSON lines for ``allonym train ner --from-reviews``. They hold the originals.

    ``meta.labels`` are the labels that were looked for: only for them is an unmarked stretch evidence. ``annotations``
    hold the two readings, so that ``allonym evaluate detection`` can count with both.
    """
    for item, seats, reading, how in list_settled_readings(reviewed):
        record = {
            "id": item.id,
            "doc_id": item.id,
            "text": item.document.text,
            "spans": _describe_reading_spans(item, reading),
            "meta": {"source": "reviews", "project": project, "settled": how, "labels": list(item.labels)},
            "annotations": {f"reviewer {n}": _describe_reading_spans(item, seats[n].reading) for n in SEATS},
        }
        yield json.dumps(record) + "\n"


def _get_spans_by_reading(item: ReviewDocument, reading: UserReading) -> tuple[Span, ...]:
    return apply_reading(reading.reading, item.document.text, item.spans)


def _count_agreement_by_label(reviewed: Sequence[Reviewed]) -> list[ByLabel]:
    agreed: Counter[str] = Counter()
    disputed: Counter[str] = Counter()
    for item, seats in reviewed:
        first, second = ({(s.start, s.end, s.label) for s in _get_spans_by_reading(item, seats[n])} for n in SEATS)
        agreed.update(label for *_, label in first & second)
        disputed.update(label for *_, label in first ^ second)
    labels = sorted({*agreed, *disputed}, key=lambda name: (-disputed[name], -agreed[name], name))
    return [ByLabel(label=name, both=agreed[name], one=disputed[name]) for name in labels]


def _describe_reading_spans(item: ReviewDocument, reading: Reading) -> list[dict[str, Any]]:
    text = item.document.text
    return [
        {"start": s.start, "end": s.end, "label": s.label, "text": text[s.start : s.end]}
        for s in apply_reading(reading, text, item.spans)
    ]
