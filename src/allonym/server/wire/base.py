"""What all wire types share, and the shape of errors."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(min_length=1, max_length=64, examples=["interviews"])]
Label = Annotated[str, Field(min_length=1, max_length=64, examples=["PERSON"])]
Unit = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]


class Wire(BaseModel):
    """Base of all: unknown fields are errors, values never show in a ``repr``."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    __str__ = __repr__


class Problem(Wire):
    """What went wrong: configuration and places, never the text."""

    code: str = Field(description="one word for programs", examples=["UnknownNameError"])
    message: str = Field(examples=["unknown policy 'defualt'; did you mean: default"])
    where: str | None = Field(None, description="the field of the request", examples=["body.text"])


class Failure(Wire):
    """The shape of every error."""

    error: Problem
