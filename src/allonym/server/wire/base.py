"""The base of all wire types, and the shape of errors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, create_model

from allonym.serial import to_plain
from allonym.settings import REQUIRED, SettingGroup, find_setting, list_settings

Name = Annotated[str, Field(min_length=1, max_length=64, examples=["interviews"])]
Label = Annotated[str, Field(min_length=1, max_length=64, examples=["PERSON"])]
Unit = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]


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


def make_model(
    name: str,
    group: type[SettingGroup],
    names: Mapping[str, str] | None = None,
    *,
    limits: Mapping[str, float] = MappingProxyType({}),
    overrides: bool = False,
) -> Any:
    """Return a wire type whose fields are settings of a group: their types, defaults, bounds and meanings.

    Args:
        name: of the type in the API's description; its docstring is the group's.
        names: field to setting, ``table.key`` for one of a group in the group; by default all that are no groups.
        limits: field to the greatest number that a request may have, where that is less than the setting's.
        overrides: every field may be left out or null, and then says nothing.
    """
    named = names or {setting.name: setting.name for setting in list_settings(group) if not setting.is_group}
    model_fields: dict[str, Any] = {}
    for field, path in named.items():
        setting = find_setting(group, path)
        hint: Any = str if setting.kind is Path else setting.kind
        if setting.one_of:
            hint = Literal[setting.one_of]
        if setting.kind in (int, float):
            hint = Annotated[hint, Field(ge=setting.low, le=limits.get(field, setting.high))]
        hint = {"one": hint, "list": list[hint], "table": dict[str, hint]}[setting.shape]
        default = None if overrides else ... if setting.default is REQUIRED else to_plain(setting.default)
        optional = hint | None if overrides or setting.optional else hint
        model_fields[field] = (optional, Field(default, description=setting.says))
    return create_model(name, __base__=Wire, __doc__=group.__doc__, **model_fields)


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
