"""allonym makes text safe to share and proves it.

>>> import allonym
>>> allonym.anonymize("Write to jane.doe@example.com").text
'Write to [EMAIL_ADDRESS_1]'

Everything here works offline. See the documentation for policies, operators and detectors.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from allonym.document import Document, Entity, Span, Turn
    from allonym.errors import AllonymError, DataError, UsageError
    from allonym.labels import from_scheme, to_scheme
    from allonym.pipeline import (
        anonymize,
        anonymize_many,
        detect,
        detect_many,
        explain,
        restore_many,
    )
    from allonym.plan import Anonymized, Edit, Plan
    from allonym.policy import Policy
    from allonym.report.display import display
    from allonym.restore import Restored, restore, restore_stream
    from allonym.vault import Vault

__version__ = "0.1.0"

_HOMES = {
    "document": ("Document", "Entity", "Span", "Turn"),
    "errors": ("AllonymError", "DataError", "UsageError"),
    "labels": ("from_scheme", "to_scheme"),
    "pipeline": (
        "anonymize",
        "anonymize_many",
        "detect",
        "detect_many",
        "explain",
        "restore_many",
    ),
    "plan": ("Anonymized", "Edit", "Plan"),
    "policy": ("Policy",),
    "report.display": ("display",),
    "restore": ("Restored", "restore", "restore_stream"),
    "vault": ("Vault",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AllonymError",
    "Anonymized",
    "DataError",
    "Document",
    "Edit",
    "Entity",
    "Plan",
    "Policy",
    "Restored",
    "Span",
    "Turn",
    "UsageError",
    "Vault",
    "__version__",
    "anonymize",
    "anonymize_many",
    "detect",
    "detect_many",
    "display",
    "explain",
    "from_scheme",
    "restore",
    "restore_many",
    "restore_stream",
    "to_scheme",
]


def __getattr__(name: str) -> object:
    if name in ("evaluate", "swap"):  # packages of their own, with an extra's packages below them
        return import_module(f"allonym.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'allonym' has no attribute {name!r}")
    value = getattr(import_module(f"allonym.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


class _Package(ModuleType):
    """Keeps the functions ``detect`` and ``restore`` reachable although submodules have the same names."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOME_OF and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
