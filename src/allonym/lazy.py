"""Packages whose public names are imported only when they are used, so that a command loads what it needs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dis import get_instructions
from importlib import import_module
from types import ModuleType
from typing import Any, cast

from allonym.errors import MissingExtra

__all__ = ["Extra", "load_on_use"]

Extra = tuple[str, str, tuple[str, ...]]
"""What an optional part is for, the extra that installs its packages, and these packages as they are imported."""


class _Package(ModuleType):
    """A package with lazy names."""

    _homes: Mapping[str, str]
    _extra: Extra | None

    def __getattr__(self, name: str) -> object:
        if name not in self._homes:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        try:
            value = getattr(import_module(self._homes[name]), name)
        except ModuleNotFoundError as error:
            if self._extra and (error.name or "").partition(".")[0] in self._extra[2]:
                raise MissingExtra(*self._extra[:2]) from None
            raise
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return list(self.__dict__["__all__"])


def load_on_use(package: str, extra: Extra | None = None) -> list[str]:
    """Make names importable from a package, each from its module when it is first used; returns the sorted names.

    They are the names that the package imports from its modules under ``if TYPE_CHECKING``, for type checkers. These
    imports never run, but they stand in the package's compiled code.

    Args:
        package: its ``__name__``.
        extra: raises :class:`MissingExtra` where a module lacks one of the extra's packages.
    """
    module = sys.modules[package]
    homes: dict[str, str] = {}
    home = ""
    code = cast(Any, module.__loader__).get_code(package)
    for instruction in get_instructions(code):
        if instruction.opname == "IMPORT_NAME":
            home = instruction.argval
        elif instruction.opname == "IMPORT_FROM" and home.startswith(f"{package}."):
            homes[instruction.argval] = home
    names = homes.keys() - module.__dict__.keys()
    module.__dict__.update(_homes={name: homes[name] for name in names}, _extra=extra)
    module.__class__ = _Package
    return sorted(names)
