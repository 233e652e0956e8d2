"""What the reviews of a project show: agreement, residual risk by P2, and text to train the tagger on."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from allonym.server.reviews.queue import DONE, SEATS, VERDICT_SEAT, Item, Seat
from allonym.server.reviews.readings import Reading, agree, missed, settled

Reviewed = tuple[Item, Mapping[int, Seat]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How reviewers agree, and what is left to miss. Numbers and tags only.

    Attributes:
        documents: that both reviewers are done with.
        spans: agreement on all that identifies, findings included, as
            :meth:`allonym.evaluate.agreement.Agreement.to_dict` gives it; None where no document has two readings.
        marks: the same on what was missed only: the findings, which both got shown, do not help.
        same: documents on which the two said the same.
        by_label: label to how often both say so, with the same borders, and how often one of them.
        residual: P2's Table 4 of the settled documents: the row of all, and what was missed by type; None without.
    """

    documents: int
    same: int
    by_label: Sequence[Mapping[str, Any]]
    spans: Mapping[str, Any] | None
    marks: Mapping[str, Any] | None
    residual: Mapping[str, Any] | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


def outcome(reviewed: Sequence[Reviewed], seed: int = 0) -> Outcome:
    """Agreement and residual risk of a project.

    Args:
        reviewed: documents with their readings.
        seed: of the draws behind the intervals.

    Raises:
        MissingExtra: the extra ``evaluate`` is not installed.
    """
    from allonym.evaluate import residual_risk
    from allonym.evaluate.agreement import agreement
    from allonym.evaluate.matching import Mention

    both = [(i, s) for i, s in reviewed if all(n in s and s[n].done for n in SEATS)]
    texts, spans, marks = [], [], []
    for item, seats in both:
        texts.append(item.document.text)
        own = {str(n): seats[n].reading for n in SEATS}
        spans.append(
            {
                n: [Mention(s.start, s.end, s.label) for s in settled(r, item.document.text, item.spans)]
                for n, r in own.items()
            }
        )
        marks.append({n: [Mention(m.start, m.end, f"{m.kind} {m.label}") for m in r.marks] for n, r in own.items()})
    left = [missed(reading, item.id, item.document.text) for item, reading, _ in decided(reviewed)]
    risk = residual_risk(left, seed=seed).to_dict() if left else None
    alike = agreement(texts, spans, seed=seed)
    alike_marks = agreement(texts, marks, seed=seed)
    return Outcome(
        len(both),
        sum(agree(s[1].reading, s[2].reading, i.document.text, i.spans) for i, s in both),
        _by_label(both),
        alike.to_dict() if alike else None,
        alike_marks.to_dict() if alike_marks else None,
        {name: risk[name] for name in ("limit", "total", "types", "histogram")} if risk else None,
    )


def decided(reviewed: Sequence[Reviewed]) -> Iterator[tuple[Item, Reading, str]]:
    """The settled documents with the reading that holds: the adjudicator's, else the one that both agree on."""
    for item, seats in reviewed:
        if item.state == DONE:
            verdict = seats.get(VERDICT_SEAT)
            decides = verdict if verdict is not None and verdict.done else None
            yield item, (decides or seats[SEATS[0]]).reading, "adjudicated" if decides else "agreed"


def training(project: str, reviewed: Sequence[Reviewed]) -> Iterator[str]:
    """The settled documents as lines of JSON that ``allonym train ner --from-reviews`` reads. They hold the originals.

    ``meta.labels`` are those that were looked for: for them, and no others, what is unmarked is proof. ``annotations``
    hold the two readings, so that ``allonym evaluate detection`` can count with both.
    """
    seats_of = {item.number: seats for item, seats in reviewed}
    for item, reading, how in decided(reviewed):
        seats, text = seats_of[item.number], item.document.text
        record = {
            "id": item.id,
            "doc_id": item.id,
            "text": text,
            "spans": _plain(item, reading),
            "meta": {"source": "reviews", "project": project, "settled": how, "labels": list(item.labels)},
            "annotations": {f"reviewer {n}": _plain(item, seats[n].reading) for n in SEATS},
        }
        yield json.dumps(record) + "\n"


def _by_label(reviewed: Sequence[Reviewed]) -> list[dict[str, Any]]:
    both: Counter[str] = Counter()
    one: Counter[str] = Counter()
    for item, seats in reviewed:
        said = [settled(seats[n].reading, item.document.text, item.spans) for n in SEATS]
        first, second = ({(s.start, s.end, s.label) for s in spans} for spans in said)
        both.update(label for *_, label in first & second)
        one.update(label for *_, label in first ^ second)
    labels = sorted({*both, *one}, key=lambda name: (-one[name], -both[name], name))
    return [{"label": name, "both": both[name], "one": one[name]} for name in labels]


def _plain(item: Item, reading: Reading) -> list[dict[str, Any]]:
    text = item.document.text
    found = settled(reading, text, item.spans)
    return [{"start": s.start, "end": s.end, "label": s.label, "text": text[s.start : s.end]} for s in found]
