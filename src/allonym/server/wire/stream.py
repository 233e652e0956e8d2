"""Messages of the WebSocket ``/v1/stream``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from allonym.server.wire.base import Problem, Wire
from allonym.server.wire.texts import Policy, Span


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
