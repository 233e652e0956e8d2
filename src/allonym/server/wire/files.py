"""Files that a person works with, and their texts."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from allonym.server.wire.base import Place, Wire


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
