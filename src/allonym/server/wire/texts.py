"""Texts: detect, anonymise, plan, restore; the texts of files; and the messages of the WebSocket ``/v1/stream``."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, TypeAdapter, model_validator

from allonym.server.wire.base import Count, Failure, Label, LabelledPlace, Place, Problem, Unit, Wire

_UNREAD = "ISO 639 code of a language that no detector reads to the characters in which names were not looked for"


class Turn(Wire):
    """One turn of a conversation."""

    speaker: str | None = Field(None, max_length=200, examples=["Pam"])
    text: str = Field(examples=["Is Jim there?"])


class PolicyChoice(Wire):
    """A policy by name, with the changes of this request. Paths, models and endpoints are for stored policies only."""

    name: str | None = Field(None, max_length=64, examples=["default"])
    confidence: Unit | None = Field(None, description="one threshold for all detectors")
    operators: dict[str, str] = Field({}, description="label, or * for all, to operator", examples=[{"PERSON": "mask"}])
    off: list[Label] = Field([], max_length=500, description="labels that are not detected, with all below them")
    detectors: list[str] | None = Field(None, max_length=50, description="instead of the policy's")
    dictionary: dict[str, list[str]] = Field({}, description="label to terms to find")
    exclude: dict[str, list[str]] = Field({}, description="label, or *, to terms that are never covered")


Policy = Annotated[str, Field(max_length=64)] | PolicyChoice | None


class Mention(Wire):
    """A mention that the caller marked."""

    start: Count
    end: Count
    label: Label
    score: Unit = 1.0
    source: str = Field("", max_length=200)
    entity: int | None = Field(
        None, description="the same number: one entity; different ones: not the same; null: as the linker says"
    )

    @model_validator(mode="after")
    def _check_end_after_start(self) -> Mention:
        if self.end <= self.start:
            raise ValueError("end must be greater than start")
        return self


class Candidate(LabelledPlace):
    """A finding with its score and its source."""

    score: float
    source: str = Field(description="the detector and the rule", examples=["rules:us-ssn"])


class Span(Candidate):
    """A finding with the number of its entity."""

    entity: int = Field(description="number of the entity in reading order, from 1")


class TextOrTurns(Wire):
    """A text, or a conversation as turns."""

    text: str | None = Field(None, examples=["Ada Brook lives in Leeds. Write to ada.brook@example.com."])
    turns: list[Turn] | None = Field(None, max_length=100_000)

    @model_validator(mode="after")
    def _check_either_text_or_turns(self) -> Self:
        if (self.text is None) == (self.turns is None):
            raise ValueError("either text or turns is required, and not both")
        return self


class Text(TextOrTurns):
    """A text, or a conversation as turns, and the policy."""

    policy: Policy = Field(None, description="a name, or a choice; by default the server's", examples=["default"])


class Detect(Text):
    """A text to detect mentions in."""

    explain: bool = Field(False, description="also every candidate with its outcome")


class Decided(Candidate):
    """A candidate with its outcome."""

    outcome: str = Field(examples=["kept"])


class EntityOut(Wire):
    """One referent and how often it is mentioned."""

    entity: int
    label: str
    mentions: int


class Detected(Wire):
    """The findings in a text."""

    text: str = Field(description="as it was processed: of turns, with a line for each")
    spans: list[Span]
    entities: list[EntityOut]
    counts: dict[str, int] = Field(description="mentions by label")
    unread: dict[str, int] = Field({}, description=_UNREAD)
    decisions: list[Decided] | None = None
    milliseconds: float


class Anonymize(Text):
    """A text to anonymise."""

    scope: str | None = Field(
        None, max_length=200, description="stores originals and replacements in the vault, under this name"
    )
    spans: list[Mention] | None = Field(None, max_length=100_000, description="instead of what detectors find")
    originals: bool = Field(False, description="the plan holds the originals, so that it can restore them")


class Anonymized(Wire):
    """The anonymised text, with its plan and the findings."""

    text: str
    parts: list[str] = Field(description="of turns: speakers and texts in order; else the whole text")
    plan: dict[str, Any] = Field(description="bound to its text by a digest; the edits are in `edits`")
    spans: list[Span] = Field(description="in the original")
    counts: dict[str, int]
    unread: dict[str, int] = Field({}, description=_UNREAD)
    milliseconds: float


class Planned(Wire):
    """The edits that would be made."""

    plan: dict[str, Any]
    spans: list[Span]
    counts: dict[str, int]
    unread: dict[str, int] = Field({}, description=_UNREAD)


class Apply(Wire):
    """A text and a plan to apply."""

    text: str
    plan: dict[str, Any]


class Applied(Wire):
    """The text after the edits of the plan."""

    text: str


class Kept(Wire):
    """The source of originals: a plan that holds them, or the vault under a scope."""

    plan: dict[str, Any] | None = None
    scope: str | None = Field(None, max_length=200)

    @model_validator(mode="after")
    def _check_plan_or_scope(self) -> Self:
        if self.plan is None and self.scope is None:
            raise ValueError("plan or scope is required")
        return self


class Restore(Kept):
    """A text to restore."""

    text: str
    document: str = Field("", description="id of the document in the scope; by default it is found by the text")
    destination: Literal["document", "answer"] = Field(
        "document", description="answer: somebody reads what a language model wrote; addresses keep replacements"
    )


class FoundOut(Place):
    """One mention that was restored, in the text that is returned."""

    rule: str = Field(description="how it was recognised", examples=["exact", "case+typo"])
    label: str
    evidence: str = Field("", description="what shows that it is a replacement", examples=["sentence", "full name"])


class ResidueOut(Place):
    """A replacement, or what may be one, that is still in the text that is returned."""

    label: str
    why: str


class Restored(Wire):
    """A restored text."""

    text: str
    restored: int
    unknown: int
    notes: list[str]
    found: list[FoundOut]
    residue: list[ResidueOut] = Field(default_factory=list)
    missing: int = Field(0, description="replacements of the plan that the text does not use")
    documents: list[str] = Field(default_factory=list, description="ids of the documents that the text comes from")


class DetectMany(Wire):
    """Several texts at once."""

    items: list[Detect] = Field(max_length=1000)


class AnonymizeMany(Wire):
    """Several texts at once."""

    items: list[Anonymize] = Field(max_length=1000)


class RestoreMany(Wire):
    """Several texts at once."""

    items: list[Restore] = Field(max_length=1000)


class DetectedMany(Wire):
    """A result or an error for each, in order."""

    results: list[Detected | Failure]


class AnonymizedMany(Wire):
    """A result or an error for each, in order."""

    results: list[Anonymized | Failure]


class RestoredMany(Wire):
    """A result or an error for each, in order."""

    results: list[Restored | Failure]


class FileTurn(Place):
    """The place of one turn of a conversation, and of its speaker's name."""

    speaker: Place | None = None


class FileText(Wire):
    """One document of a file."""

    id: str = Field(description="unique within the file")
    text: str
    turns: list[FileTurn] | None = Field(None, description="where it is a conversation")


class FileTexts(Wire):
    """The texts of a file."""

    name: str
    format: str = Field(examples=["docx"])
    documents: list[FileText]
    saveable: bool = Field(description="whether /v1/files/apply can write this format")


class FilePlan(Wire):
    """The plan of one document."""

    id: str = Field(max_length=200)
    plan: dict[str, Any]


# Messages of the WebSocket ``/v1/stream``


class Open(Wire):
    """The first message: the mode of the stream."""

    type: Literal["open"]
    mode: Literal["annotate", "transcript"]
    policy: Policy = None
    scope: str | None = Field(
        None, max_length=200, description="transcript: stores originals and replacements in the vault"
    )


class TextIn(Wire):
    """Annotate: a text in its newest version. One that still waits is dropped."""

    type: Literal["text"]
    version: int = Field(ge=0, le=1 << 53)
    text: str


class TurnIn(Wire):
    """Transcript: a new turn."""

    type: Literal["turn"]
    speaker: str | None = Field(None, max_length=200)
    text: str


class End(Wire):
    """Transcript: the conversation is over."""

    type: Literal["end"]


class Spans(Wire):
    """Annotate: the findings in a version of the text."""

    type: Literal["spans"] = "spans"
    version: int
    spans: list[Span]
    counts: dict[str, int]
    milliseconds: float


class Revised(Wire):
    """Transcript: an earlier turn that a later one changed."""

    index: int
    speaker: str | None
    text: str


class TurnOut(Wire):
    """Transcript: a turn, anonymised, and the earlier ones that now read otherwise."""

    type: Literal["turn"] = "turn"
    index: int
    speaker: str | None
    text: str
    revised: list[Revised]


class Ended(Wire):
    """Transcript: the whole conversation, anonymised."""

    type: Literal["end"] = "end"
    text: str
    plan: dict[str, Any]
    counts: dict[str, int]


class Wrong(Wire):
    """An error; with its version if it is about a text."""

    type: Literal["error"] = "error"
    error: Problem
    version: int | None = None


Message = Open | TextIn | TurnIn | End
MESSAGES: TypeAdapter[Message] = TypeAdapter(Annotated[Message, Field(discriminator="type")])
