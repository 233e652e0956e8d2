"""Reviews: projects, documents, marks and decisions, agreement, the organisation's own terms."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from allonym.server.wire.base import Count, Label, Name, Wire
from allonym.server.wire.texts import Policy, Span, Turn

State = Literal["new", "in_review", "disagreement", "done"]
Order = Literal["risk", "gain", "added"]
Kind = Literal["missed", "partial", "speaker"]
Verdict = Literal["accept", "reject", "relabel", "resize"]
Everywhere = Literal["project", "all"]
TermKind = Literal["dictionary", "exclusion"]
_ID = r"^(?:[^./\x00-\x1f]|\.\.?[^./\x00-\x1f]|\.\.\.)[^/\x00-\x1f]*$"
"""Neither ``.`` nor ``..``, which addresses take for folders."""
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


class NewDocument(Wire):
    """A document for the queue."""

    id: Id
    text: str | None = None
    turns: list[Turn] | None = Field(None, max_length=100_000)

    @model_validator(mode="after")
    def _one_of_them(self) -> NewDocument:
        if (self.text is None) == (self.turns is None):
            raise ValueError("either text or turns is required, and not both")
        return self


class NewDocuments(Wire):
    """Documents for the queue. Those that are there already, with the same text, stay as they are."""

    documents: list[NewDocument] = Field(min_length=1, max_length=500)


class Added(Wire):
    """How many documents came into the queue, and how many were there."""

    added: int
    known: int


class ReasonOut(Wire):
    """A thing that a second reading proposes as missed."""

    tag: str = Field(description="P2's, without MISSED_", examples=["PERSON_NAME_PARTIAL"])
    points: int = Field(description="0 to 5")
    chance: float
    mentions: int


class DocumentLine(Wire):
    """A document in the queue."""

    id: str
    state: State
    risk: float = Field(description="points (P2) that are expected to be left")
    bound: int = Field(description="points if all that a second reading proposes were missed")
    direct: int = Field(description="of these, things that identify alone")
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
    """Documents in the order that was asked for."""

    documents: list[DocumentLine]
    total: int


class MarkIO(Wire):
    """What should not have stayed, in P2's scheme. Offsets are of the original text."""

    start: Count
    end: Count
    kind: Kind
    label: Label
    list: Everywhere | None = Field(None, description="always find this term: in this project, or in all")


class DecisionIO(Wire):
    """What a reviewer says of a finding, which start, end and label name."""

    start: Count
    end: Count
    label: Label
    verdict: Verdict
    new_label: Label | None = None
    new_start: Count | None = None
    new_end: Count | None = None
    list: Everywhere | None = Field(None, description="accept: always find this term; reject: never find it")


class ReadingIn(Wire):
    """All that a reviewer says of a document. Findings without a decision count as accepted."""

    version: Count = Field(description="of the reading that this began from; 0: there was none")
    marks: list[MarkIO] = Field([], max_length=10_000)
    decisions: list[DecisionIO] = Field([], max_length=10_000)
    done: bool = Field(False, description="nothing to add; when both are, neither can change it")


class ReadingOut(Wire):
    """What a reviewer said."""

    reviewer: str
    version: int
    done: bool
    marks: list[MarkIO]
    decisions: list[DecisionIO]


class EditOut(Wire):
    """A replacement, to set both texts side by side."""

    start: int
    end: int
    replacement: str
    label: str


class ProposalOut(Wire):
    """A stretch that a second reading proposes to look at."""

    start: int
    end: int
    label: str
    partial: bool
    score: float


class DocumentOut(Wire):
    """A document with its texts and the caller's own reading."""

    id: str
    state: State
    text: str
    turns: list[tuple[int, int]] = Field(description="where the turns of a conversation stand in the text")
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
    others: list[ReadingOut] = Field(description="both readings, once both reviewers are done; empty before")
    settled: ReadingOut | None = Field(description="the adjudicator's decision")


class Saved(Wire):
    """What is stored now."""

    version: int
    done: bool
    state: State
    score: int = Field(description="residual risk (P2) of what the reviewer marked, in points")
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
    """What identifies by one reviewer at least: how often both say so, with the same borders, and how often one."""

    label: str
    both: int
    one: int


class Agreed(Wire):
    """What the reviews of a project show."""

    documents: int = Field(description="that both reviewers are done with")
    same: int = Field(description="of these, those on which both said the same")
    spans: AgreementOut | None = Field(description="on all that identifies, findings included")
    marks: AgreementOut | None = Field(description="on what was missed, alone")
    by_label: list[ByLabel]
    residual: dict[str, Any] | None = Field(description="P2's Table 4 of the settled documents, and types missed")


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
