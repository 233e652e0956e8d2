"""The documents of a project: each record of each file, with what was found in it and what becomes of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from typing import Any

from allonym.batch import Failure, detect_records, run_records
from allonym.document import Document, Span, Turn
from allonym.files.record import DocumentKey, identify_document
from allonym.plan import Anonymized, Edit
from allonym.policy import Policy
from allonym.project.readings import Reading, apply_reading
from allonym.project.risks import Risk
from allonym.project.seats import (
    NEW,
    ReviewDocument,
    UserReading,
    are_both_reviewers_done,
    decide_state,
    get_settled_reading,
)
from allonym.project.terms import Term, add_terms_to_policy
from allonym.resolve import resolve
from allonym.serial import to_plain
from allonym.vault import Vault


@dataclass(frozen=True, slots=True, repr=False)
class ProjectDocument:
    """A record of a file. Its texts are hidden from ``repr``.

    Attributes:
        id: in the project: the number of its file and its own, as ``0003-00012``.
        document: the original, with the id that it has in its file.
        is_counted: false for text that is no record, such as a header row; nobody reviews it.
        failure: why it cannot be processed; empty: it can.
        findings: what the detectors and the terms found.
        edits, anonymised: what becomes of it, with the settled reading, if there is one.
        risk: by the second reading; None: not assessed.
    """

    id: str
    document: Document
    is_counted: bool = True
    failure: str = ""
    findings: tuple[Span, ...] = ()
    edits: tuple[Edit, ...] = ()
    anonymised: str = ""
    risk: Risk | None = None

    def __repr__(self) -> str:
        return f"ProjectDocument({self.id!r}, {len(self.findings)} findings)"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON. They hold the texts."""
        document = self.document
        return {
            "id": self.id,
            "name": document.id,
            "text": document.text,
            "meta": json.loads(json.dumps(dict(document.meta), default=str)),
            "parts": list(document.parts),
            "turns": [[t.start, t.end, t.speaker] for t in document.turns],
            "roles": document.roles,
            "fields": document.fields,
            "is_counted": self.is_counted,
            "failure": self.failure,
            "findings": [[s.start, s.end, s.label, s.score, s.source] for s in self.findings],
            "edits": [asdict(edit) for edit in self.edits],
            "anonymised": self.anonymised,
            "risk": to_plain(self.risk),
        }

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> ProjectDocument:
        """Read what :meth:`to_dict` returned."""
        document = Document(
            row["name"],
            row["text"],
            row["meta"],
            tuple((a, b) for a, b in row["parts"]),
            tuple(Turn(a, b, tuple(speaker) if speaker else None) for a, b, speaker in row["turns"]),
            tuple(row["roles"]),
            tuple(row["fields"]),
        )
        return cls(
            row["id"],
            document,
            row["is_counted"],
            row["failure"],
            tuple(Span(*values) for values in row["findings"]),
            tuple(Edit(**edit) for edit in row["edits"]),
            row["anonymised"],
            Risk.from_dict(row["risk"]) if row["risk"] else None,
        )

    @property
    def has_text(self) -> bool:
        """Whether there is something to review."""
        return self.is_counted and not self.failure and bool(self.document.text.strip())

    def make_review_document(self, labels: Sequence[str] = (), state: str = NEW) -> ReviewDocument:
        """Return the document as reviewers get it."""
        return ReviewDocument(
            self.id,
            replace(self.document, id=self.id),
            self.anonymised,
            self.edits,
            self.findings,
            tuple(labels),
            self.risk,
            state,
        )


def detect_in_file(
    documents: Sequence[ProjectDocument], policy: Policy, terms: Sequence[Term], key: bytes
) -> list[ProjectDocument]:
    """Find what identifies in the documents of a file.

    Args:
        documents: in the order of the file.
        policy: of the project, without its terms.
        terms: of the project and of single documents.
        key: of the vault, which opens cached answers of language models.
    """
    general = add_terms_to_policy(policy, terms)
    particular = {term.document for term in terms if term.document is not None}
    out = []
    for item in documents:
        chosen = add_terms_to_policy(policy, terms, item.id) if item.id in particular else general
        [spans] = detect_records([item.document], chosen, key)
        failure = spans.reason if isinstance(spans, Failure) else ""
        out.append(replace(item, failure=failure, findings=() if isinstance(spans, Failure) else spans))
    return out


def replace_in_file(
    documents: Sequence[ProjectDocument],
    policy: Policy,
    vault: Vault,
    scope: str,
    readings: Mapping[str, Reading],
) -> list[ProjectDocument]:
    """Replace what was found, and what settled readings say, in the documents of a file: one transaction of the vault.

    Args:
        documents: with their findings, in the order of the file.
        policy, vault, scope: of the project.
        readings: the settled ones, by the documents' ids.
    """
    readable = [item for item in documents if not item.failure]
    spans = [settle_spans(item, readings.get(item.id)) for item in readable]
    outcomes = run_records([item.document for item in readable], policy, vault=vault, scope=scope, findings=spans)
    results = iter(outcomes)
    out = []
    for item in documents:
        outcome = Failure("", 0, item.failure) if item.failure else next(results)
        if isinstance(outcome, Anonymized):
            out.append(replace(item, edits=outcome.plan.edits, anonymised=outcome.text))
        else:
            out.append(replace(item, failure=outcome.reason, edits=(), anonymised=""))
    return out


def settle_spans(item: ProjectDocument, reading: Reading | None) -> tuple[Span, ...]:
    """Return the disjoint spans to replace: the findings, or what the settled reading makes of them.

    A decision that moved or renamed a finding holds even where the finding is gone, since a term may have changed it.
    """
    if reading is None:
        return item.findings
    keys = {(s.start, s.end, s.label) for s in item.findings}
    absent = [
        Span(d.start, d.end, d.label, 1.0, "review")
        for d in reading.decisions
        if d.verdict in ("relabel", "resize") and (d.start, d.end, d.label) not in keys
    ]
    return apply_reading(reading, item.document.text, [*item.findings, *absent])


def decide_state_of(item: ProjectDocument, seats: Mapping[int, UserReading]) -> str:
    """Return the state of a document's review."""
    return decide_state(item.make_review_document(), seats) if seats else NEW


def collect_settled_readings(
    documents: Iterable[ProjectDocument], readings: Mapping[str, Mapping[int, UserReading]]
) -> dict[str, Reading]:
    """Return the readings that hold, by the ids of the settled documents."""
    out = {}
    for item in documents:
        seats = readings.get(item.id, {})
        reading = get_settled_reading(item.make_review_document(state=decide_state_of(item, seats)), seats)
        if reading is not None:
            out[item.id] = reading
    return out


def collect_settled_findings(
    documents: Iterable[ProjectDocument], readings: Mapping[str, Reading]
) -> dict[DocumentKey, tuple[Span, ...]]:
    """Return the spans to replace by the keys of :func:`allonym.files.anonymize_path`.

    Documents with the same id and text in their files share them: what one needs is replaced in all.
    """
    out: dict[DocumentKey, tuple[Span, ...]] = {}
    for item in documents:
        if item.failure:
            continue
        key, spans = identify_document(item.document), settle_spans(item, readings.get(item.id))
        others = out.get(key)
        out[key] = spans if others in (None, spans) else resolve([*others, *spans])
    return out


def parse_file_number(id: str) -> int:
    """Return the number of the file that a document stands in; 0 where the id is none."""
    number = id.partition("-")[0]
    return int(number) if number.isdecimal() and len(number) < 10 else 0


def make_settled_stamp(readings: Mapping[str, Mapping[int, UserReading]], people: str) -> str:
    """Return a digest of the readings of the documents that both reviewers are done with, and that of the register."""
    readings_of_both = [
        [id, [seats[n].reading.to_dict() for n in sorted(seats) if seats[n].done]]
        for id, seats in sorted(readings.items())
        if are_both_reviewers_done(seats)
    ]
    return digest_plain_values(readings_of_both, people)


def digest_plain_values(*values: object) -> str:
    """Return a 128-bit digest of values that have a form in JSON."""
    return blake2b(json.dumps(values).encode(), digest_size=16).hexdigest()
