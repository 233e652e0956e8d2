"""Reviews: projects, documents, marks and decisions, agreement, the organisation's own terms."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from allonym.server.wire.base import Count, Label, LabelledPlace, Name, Place, Wire
from allonym.server.wire.texts import Policy, Span, TextOrTurns

State = Literal["new", "in_review", "disagreement", "done"]
Order = Literal["risk", "gain", "added"]
Kind = Literal["missed", "partial", "speaker"]
Verdict = Literal["accept", "reject", "relabel", "resize"]
Everywhere = Literal["project", "all"]
TermKind = Literal["dictionary", "exclusion"]
# Neither ``.`` nor ``..``, which addresses take for folders.
_ID = r"^(?:[^./\x00-\x1f]|\.\.?[^./\x00-\x1f]|\.\.\.)[^/\x00-\x1f]*$"
Id = Annotated[str, Field(min_length=1, max_length=200, pattern=_ID, examples=["call-17"])]


class EstimateOut(Wire):
    """An estimate with its interval; null where there is none, and why."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    method: str


class NewProject(Wire):
    """A set of documents that are reviewed under one policy."""

    name: Name
    policy: Policy = Field(None, description="a name, or a choice; by default the server's")


class ProjectOut(Wire):
    """A project."""

    name: str
    policy: Any = Field(description="as it was chosen")
    owner: str
    created: int
    documents: int
    states: dict[State, int]


class Projects(Wire):
    """Projects by name."""

    projects: list[ProjectOut]
    total: int


class NewDocument(TextOrTurns):
    """A document for the queue."""

    id: Id


class NewDocuments(Wire):
    """Documents for the queue. Those that are there already, with the same text, stay as they are."""

    documents: list[NewDocument] = Field(min_length=1, max_length=500)


class Added(Wire):
    """How many documents were added, and how many were in the queue before."""

    added: int
    known: int


class ReasonOut(Wire):
    """An item that a second reading proposes as missed."""

    tag: str = Field(description="type of what was missed, without MISSED_", examples=["PERSON_NAME_PARTIAL"])
    points: int = Field(description="0 to 5")
    chance: float
    mentions: int


class DocumentLine(Wire):
    """A document in the queue."""

    id: str
    state: State
    risk: float = Field(description="expected residual risk, in points")
    bound: int = Field(description="points if every proposal of a second reading is a leak")
    direct: int = Field(description="of these, items that identify alone")
    gain: float = Field(description="uncertain words in 100: what the tagger may learn from a review")
    reasons: list[ReasonOut] = Field(description="why this risk, the gravest first")
    mentions: int = Field(description="findings")
    words: int
    reviewers: int = Field(description="who have begun, 0 to 2")
    done: int = Field(description="who are done, 0 to 2")
    mine: Literal["none", "open", "done"] = Field(description="the caller's own reading")
    adjudicated: bool
    created: int
    changed: int


class DocumentLines(Wire):
    """Documents in the requested order."""

    documents: list[DocumentLine]
    total: int


class MarkIO(Wire):
    """A leak, in the scheme of Gardiner et al. 2024. Offsets are of the original text."""

    start: Count
    end: Count
    kind: Kind
    label: Label
    list: Everywhere | None = Field(None, description="always find this term: in this project, or in all")


class DecisionIO(Wire):
    """A reviewer's decision on a finding, which start, end and label identify."""

    start: Count
    end: Count
    label: Label
    verdict: Verdict
    new_label: Label | None = None
    new_start: Count | None = None
    new_end: Count | None = None
    list: Everywhere | None = Field(None, description="accept: always find this term; reject: never find it")


class ReadingIn(Wire):
    """A reviewer's reading of a document. Findings without a decision count as accepted."""

    version: Count = Field(description="of the reading that this began from; 0: there was none")
    marks: list[MarkIO] = Field([], max_length=10_000)
    decisions: list[DecisionIO] = Field([], max_length=10_000)
    opened: list[tuple[Count, Count]] = Field([], max_length=10_000, description="stretches that were opened")
    done: bool = Field(False, description="nothing to add; when both are, neither can change it")


class ReadingOut(Wire):
    """A reviewer's reading."""

    reviewer: str
    version: int
    done: bool
    marks: list[MarkIO]
    decisions: list[DecisionIO]
    opened: list[tuple[Count, Count]] = Field([], description="stretches that were opened")


class EditOut(Place):
    """A replacement, to show both texts side by side."""

    replacement: str
    label: str


class ProposalOut(LabelledPlace):
    """A stretch that a second reading proposes to look at."""

    partial: bool
    score: float


class DocumentOut(Wire):
    """A document with its texts and the caller's own reading."""

    id: str
    state: State
    text: str
    turns: list[tuple[int, int]] = Field(description="places of the turns of a conversation")
    anonymised: str
    spans: list[Span]
    edits: list[EditOut]
    proposals: list[ProposalOut]
    risk: float
    bound: int
    direct: int
    reasons: list[ReasonOut]
    version: int = Field(description="of the caller's own reading, to be sent back; 0: none yet")
    done: bool
    marks: list[MarkIO]
    decisions: list[DecisionIO]
    opened: list[tuple[Count, Count]] = Field([], description="stretches that were opened")
    others: list[ReadingOut] = Field(description="both readings, once both reviewers are done; empty before")
    settled: ReadingOut | None = Field(description="the adjudicator's decision")


class Saved(Wire):
    """The stored reading and the document's state."""

    version: int
    done: bool
    state: State
    score: int = Field(description="residual risk of what the reviewer marked, in points")
    anonymised: str = Field(description="as it would be with these marks and decisions")
    edits: list[EditOut]
    spans: list[Span]


class AgreementOut(Wire):
    """How far reviewers agree. 1: always; kappa and alpha are 0 for chance."""

    annotators: int
    documents: int
    kappa: EstimateOut = Field(description="Cohen's, over words and labels")
    alpha: EstimateOut = Field(description="Krippendorff's, the same")
    mask: EstimateOut = Field(description="Krippendorff's, whether a word is marked at all")
    strict: EstimateOut = Field(description="F1 of marks with the same borders and label")
    overlap: EstimateOut = Field(description="F1 of marks that share a character, of the same label")


class ByLabel(Wire):
    """How many spans with a label both reviewers have, with the same borders, and how many only one of them has."""

    label: str
    both: int
    one: int


class Looked(Wire):
    """How many words, or findings, both reviewers looked at (opened, marked or decided on), one of them, and nobody."""

    by_both: int
    by_one: int
    by_nobody: int


class Agreed(Wire):
    """The results of a project's reviews. Agreement is on what both looked at: to press Done is no evidence of it."""

    documents: int = Field(description="that both reviewers are done with")
    same: int = Field(description="of these, those on which both said the same, and looked at every word")
    words: Looked
    findings: Looked
    spans: AgreementOut | None = Field(description="on all that identifies, findings included")
    marks: AgreementOut | None = Field(description="on what was missed, alone")
    by_label: list[ByLabel]
    residual: dict[str, Any] | None = Field(description="scores of the settled documents, and types missed")


class NewTerm(Wire):
    """A term that is always found (`dictionary`) or never (`exclusion`)."""

    kind: TermKind
    label: Label = Field(description="of an exclusion also *: any label")
    term: str = Field(min_length=2, max_length=300, examples=["Project Larkspur"])
    project: Name | None = Field(None, description="null: in all projects and everywhere else")


class TermOut(Wire):
    """A line of the lists."""

    id: int
    kind: TermKind
    label: str
    term: str
    project: str | None
    by: str
    created: int


class Terms(Wire):
    """Terms, the newest first."""

    entries: list[TermOut]
    total: int
