"""Files that a person works with."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from allonym.server.wire.base import Wire


class Place(Wire):
    """Where something stands in the text."""

    start: int
    end: int


class FileTurn(Place):
    """One turn of a conversation: where its text stands, and where its speaker is named."""

    speaker: Place | None = None


class FileText(Wire):
    """One document of a file."""

    id: str = Field(description="unique within the file")
    text: str
    turns: list[FileTurn] | None = Field(None, description="where it is a conversation")


class FileTexts(Wire):
    """What a file holds."""

    name: str
    format: str = Field(examples=["docx"])
    documents: list[FileText]
    saveable: bool = Field(description="whether /v1/files/apply can write this format")


class FilePlan(Wire):
    """What shall become of one document."""

    id: str = Field(max_length=200)
    plan: dict[str, Any]
