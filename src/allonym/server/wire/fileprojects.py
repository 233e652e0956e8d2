"""Projects of files: their files, what was found in them, corrections, releases."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from allonym.server.wire.base import Label, Name, Wire
from allonym.server.wire.reviews import State


class NewFileProject(Wire):
    """A project of files to make."""

    name: Name
    policy: str | None = Field(None, max_length=64, description="a preset or a stored policy; by default the server's")


class FileProjectLine(Wire):
    """A project of files."""

    id: str
    name: str
    policy: str
    created: int
    scope: str = Field(description="of the vault; a grant of it lets users in")
    owner: str | None
    users: list[str] = Field(description="whom the owner or an admin let in")


class FileProjectLines(Wire):
    """The projects that the caller may open, the newest first."""

    projects: list[FileProjectLine]


class SourceFileOut(Wire):
    """A file of a project."""

    number: int
    name: str
    format: str
    size: int
    documents: int
    mentions: int
    failures: int = Field(description="records that cannot be processed")
    states: dict[State, int]


class ReleaseLine(Wire):
    """A release that was written."""

    number: int
    sha256: str
    files: int
    reviewed: int
    documents: int


class FileProjectOut(FileProjectLine):
    """A project of files, and where it stands."""

    files: list[SourceFileOut]
    documents: int
    mentions: int
    people: int
    unseen: int = Field(description="words that not both reviewers have looked at")
    states: dict[State, int]
    releases: list[ReleaseLine]
    public_key: str = Field(description="verifies all releases of the project")


class SurfaceOut(Wire):
    """A text as it was found."""

    text: str
    replacements: list[str]
    mentions: int
    documents: int


class FoundEntityOut(Wire):
    """A person, or another referent, with all its surfaces."""

    label: str
    name: str
    mentions: int
    documents: list[str]
    surfaces: list[SurfaceOut]
    number: int | None = Field(None, description="of the person in the register of people; null: it is none")


class FoundEntities(Wire):
    """What is replaced, the most frequent first."""

    entities: list[FoundEntityOut]
    total: int


class Correction(Wire):
    """What is to be found always, never, or as before, in one document or in all."""

    surface: str = Field(max_length=300, examples=["Larkspur"])
    decision: Literal["always", "never", "forget"]
    label: Label | None = Field(None, description="required for `always`; of `never`: only with this label")
    document: str | None = Field(None, max_length=64, description="only in this document; null: in all")


class PersonCorrection(Wire):
    """Who a person of the project's register is: the same as another one, or somebody who does not have a name."""

    person: int = Field(ge=1, description="number in the register")
    same_as: int | None = Field(None, ge=1, description="number of the other, whose replacement stays")
    part: str | None = Field(None, max_length=300, description="a name of the person that is somebody else's")

    @model_validator(mode="after")
    def _check_one_of_both(self) -> Self:
        if (self.same_as is None) == (self.part is None):
            raise ValueError("either same_as or part is required, and not both")
        return self


class Corrected(Wire):
    """How many files were anonymised again."""

    files: int


class CorrectionOut(Wire):
    """A correction that holds."""

    surface: str
    decision: Literal["always", "never"]
    label: str
    document: str | None


class Corrections(Wire):
    """The corrections that hold."""

    corrections: list[CorrectionOut]
