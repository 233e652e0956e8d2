"""Texts: detect, anonymise, plan, restore."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from allonym.server.wire.base import Count, Failure, Label, Unit, Wire


class Turn(Wire):
    """One turn of a conversation."""

    speaker: str | None = Field(None, max_length=200, examples=["Pam"])
    text: str = Field(examples=["Is Jim there?"])


class PolicyChoice(Wire):
    """A policy by name, with what this request changes. Paths, models and endpoints are for stored policies only."""

    name: str | None = Field(None, max_length=64, examples=["default"])
    confidence: Unit | None = Field(None, description="one bar for all that any detector finds")
    operators: dict[str, str] = Field({}, description="label, or * for all, to operator", examples=[{"PERSON": "mask"}])
    off: list[Label] = Field([], max_length=500, description="labels not looked for, with all below them")
    detectors: list[str] | None = Field(None, max_length=50, description="instead of the policy's")
    dictionary: dict[str, list[str]] = Field({}, description="label to terms to find")
    exclude: dict[str, list[str]] = Field({}, description="label, or *, to terms to leave")


Policy = Annotated[str, Field(max_length=64)] | PolicyChoice | None


class Mention(Wire):
    """A stretch of the text that identifies, as the caller marked it."""

    start: Count
    end: Count
    label: Label
    score: Unit = 1.0
    source: str = Field("", max_length=200)
    entity: int | None = Field(
        None, description="the same number: one entity; different ones: not the same; null: as the linker says"
    )

    @model_validator(mode="after")
    def _in_order(self) -> Mention:
        if self.end <= self.start:
            raise ValueError("end must be greater than start")
        return self


class Span(Wire):
    """A stretch of the text that identifies."""

    start: int
    end: int
    label: str
    score: float
    source: str = Field(description="the detector and the rule", examples=["rules:us-ssn"])
    entity: int = Field(description="number of the entity in reading order, from 1")


class Text(Wire):
    """A text, or a conversation as turns, and the policy."""

    text: str | None = Field(None, examples=["Ada Brook lives in Leeds. Write to ada.brook@example.com."])
    turns: list[Turn] | None = Field(None, max_length=100_000)
    policy: Policy = Field(None, description="a name, or a choice; by default the server's", examples=["default"])

    @model_validator(mode="after")
    def _one_of_them(self) -> Text:
        if (self.text is None) == (self.turns is None):
            raise ValueError("either text or turns is required, and not both")
        return self


class Detect(Text):
    """What is in a text?"""

    explain: bool = Field(False, description="also what lost to what, and why")


class Decided(Wire):
    """A candidate and what became of it."""

    start: int
    end: int
    label: str
    score: float
    source: str
    outcome: str = Field(examples=["kept"])


class EntityOut(Wire):
    """One referent and how often it is mentioned."""

    entity: int
    label: str
    mentions: int


class Detected(Wire):
    """What is in a text."""

    text: str = Field(description="as it was treated: of turns, with a line for each")
    spans: list[Span]
    entities: list[EntityOut]
    counts: dict[str, int] = Field(description="mentions by label")
    decisions: list[Decided] | None = None
    milliseconds: float


class Anonymize(Text):
    """Replace what identifies."""

    scope: str | None = Field(None, max_length=200, description="keep what stands for what in the vault, here")
    spans: list[Mention] | None = Field(None, max_length=100_000, description="instead of what would be found")
    originals: bool = Field(False, description="the plan holds what it replaces, so that it can restore")


class Anonymized(Wire):
    """The text without what identified, and how it came about."""

    text: str
    parts: list[str] = Field(description="of turns: speakers and texts in order; else the whole text")
    plan: dict[str, Any] = Field(description="bound to its text by a digest; the edits are in `edits`")
    spans: list[Span] = Field(description="in the original")
    counts: dict[str, int]
    milliseconds: float


class Planned(Wire):
    """What would be replaced by what."""

    plan: dict[str, Any]
    spans: list[Span]
    counts: dict[str, int]


class Apply(Wire):
    """A plan to carry out."""

    text: str
    plan: dict[str, Any]


class Applied(Wire):
    """What the plan made."""

    text: str


class Kept(Wire):
    """Where originals are: in a plan that holds them, or in the vault under a scope."""

    plan: dict[str, Any] | None = None
    scope: str | None = Field(None, max_length=200)

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.plan is None and self.scope is None:
            raise ValueError("plan or scope is required")
        return self


class Restore(Kept):
    """Bring originals back."""

    text: str


class FoundOut(Wire):
    """One mention that was brought back, in the text that is returned."""

    start: int
    end: int
    rule: str = Field(description="how it was known", examples=["exact", "case+typo"])
    label: str


class Restored(Wire):
    """A text with originals in it again."""

    text: str
    restored: int
    unknown: int
    notes: list[str]
    found: list[FoundOut]


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
