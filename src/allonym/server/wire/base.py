"""The base of all wire types, and the shape of errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, create_model

from allonym.settings import Setting

Name = Annotated[str, Field(min_length=1, max_length=64, examples=["interviews"])]
Label = Annotated[str, Field(min_length=1, max_length=64, examples=["PERSON"])]
Unit = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]
W = TypeVar("W", bound="Wire")
MOST_VALUES = 10
"""Of a setting that is a list."""


class Wire(BaseModel):
    """The base class: unknown fields are errors, and a ``repr`` shows no values."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    __str__ = __repr__

    @classmethod
    def from_object(cls, value: object) -> Self:
        """Make one from the attributes of an object, such as a row of a database, that have the names of the fields."""
        return cls.model_validate(value, from_attributes=True)

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        """Make one from those values that have the names of the fields."""
        return cls.model_validate({name: values[name] for name in cls.model_fields if name in values})


def add_settings(settings: Iterable[Setting]) -> Callable[[type[W]], type[W]]:
    """Return a decorator that adds a field for each setting to a wire type: its type, bounds and meaning.

    Each may be left out or null, and then says nothing.
    """

    def add_fields(model: type[W]) -> type[W]:
        added: dict[str, Any] = {}
        for setting in settings:
            hint: Any = Literal[setting.one_of] if setting.one_of else setting.kind
            if setting.kind in (int, float):
                number: Any = FiniteFloat if setting.kind is float else int
                hint = Annotated[number, Field(ge=setting.low, le=setting.high)]
            if setting.shape == "list":
                hint = Annotated[list[hint], Field(max_length=MOST_VALUES)]
            added[setting.name] = (hint | None, Field(None, description=setting.says))
        return create_model(model.__name__, __base__=model, __doc__=model.__doc__, __module__=model.__module__, **added)

    return add_fields


class Place(Wire):
    """A stretch of a text."""

    start: int
    end: int


class LabelledPlace(Place):
    """A stretch of a text with its label."""

    label: str


class Problem(Wire):
    """An error. It names configuration and places, never text."""

    code: str = Field(description="one word for programs", examples=["UnknownNameError"])
    message: str = Field(examples=["unknown policy 'defualt'; did you mean: default"])
    where: str | None = Field(None, description="the field of the request", examples=["body.text"])


class Failure(Wire):
    """The shape of every error."""

    error: Problem
