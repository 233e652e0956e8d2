"""Results as plain values for JSON: one serialiser for every dataclass that is written out; strings for TOML."""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from dataclasses import Field, dataclass, field, fields, is_dataclass
from enum import Enum
from pathlib import PurePath
from typing import Any, ClassVar, dataclass_transform

__all__ = ["Serialisable", "quote_toml", "to_plain"]


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Serialisable:
    """A frozen dataclass whose fields become the members of a JSON object, under their names and in their order.

    Its subclasses are made dataclasses without a decorator, as those of ``NamedTuple`` are made tuples.

    A subclass that shows something else sets class variables (not fields):

    Attributes:
        KEYS: fields and properties in the order of the output, in place of all fields; ``key=name`` writes the
            attribute ``name`` under another key.
        DERIVED: properties that follow the fields, where there are no ``KEYS``.
        TEXT_KEYS: fields and properties that hold words of documents; they come last, and only if texts are asked for.
    """

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    KEYS: ClassVar[tuple[str, ...]] = ()
    DERIVED: ClassVar[tuple[str, ...]] = ()
    TEXT_KEYS: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, *, repr: bool = True) -> None:
        super().__init_subclass__()
        dataclass(frozen=True, repr=repr)(cls)

    def to_dict(self, texts: bool = False) -> dict[str, Any]:
        """Return plain values for JSON; NaN and infinity become None.

        Args:
            texts: whether members that hold words of documents are included, here and in nested results.
        """
        names = (f.name for f in fields(self) if f.name not in self.TEXT_KEYS)
        keys = (*(self.KEYS or (*names, *self.DERIVED)), *(self.TEXT_KEYS if texts else ()))
        pairs = (key.partition("=") for key in keys)
        return {key: to_plain(getattr(self, name or key), texts) for key, _, name in pairs}


def to_plain(value: Any, texts: bool = False) -> Any:
    """Convert a result to what :func:`json.dumps` accepts: dictionaries, lists, strings, numbers, booleans and None.

    Dataclasses and named tuples become dictionaries, other tuples lists, sets sorted lists, enumerations their values,
    paths strings, NumPy scalars and arrays Python numbers and lists. Keys of mappings become strings, floats among
    them without trailing zeros. Numbers that are not finite become None. A class with its own ``to_dict`` uses it.

    Raises:
        TypeError: if a value has none of these forms; the message names its type only.
    """
    if isinstance(value, Enum):
        return to_plain(value.value)
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, Serialisable):
        return value.to_dict(texts)
    if hasattr(value, "to_dict"):
        return to_plain(value.to_dict())
    if isinstance(value, Mapping):
        return {f"{key:g}" if isinstance(key, float) else str(key): to_plain(v, texts) for key, v in value.items()}
    if is_dataclass(value):
        return {f.name: to_plain(getattr(value, f.name), texts) for f in fields(value)}
    if hasattr(value, "_asdict"):
        return to_plain(value._asdict(), texts)
    if isinstance(value, (list, tuple)):
        return [to_plain(v, texts) for v in value]
    if isinstance(value, Set):
        return [to_plain(v, texts) for v in sorted(value)]
    if hasattr(value, "tolist"):
        return to_plain(value.tolist())
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"a value of type {type(value).__name__} has no form in JSON")


def quote_toml(text: str) -> str:
    """Return a string as TOML writes it, in quotes."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
