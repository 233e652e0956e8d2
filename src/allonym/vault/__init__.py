"""The vault: an encrypted store that knows which replacement stands for which original.

>>> from allonym.vault import Vault
>>> vault = Vault.create("letters.vault", secret)  # doctest: +SKIP
>>> with vault.book("letters") as book:  # doctest: +SKIP
...     book.remember("[PERSON_1]", "Ada Brook", "PERSON", "tag@1", "ada brook")

A scope (a project, a release) is a world of its own: numbers, pseudonyms and originals of one say nothing in another.
Within a scope a subject names whose documents are written about, so that they can be erased.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from allonym.errors import UsageError

if TYPE_CHECKING:
    from allonym.vault.book import Book
    from allonym.vault.digests import Digests, read_digests
    from allonym.vault.keys import (
        Secret,
        new_secret,
        read_secret,
        secret_from_environment,
        secret_from_file,
        secret_from_keyring,
    )
    from allonym.vault.records import AuditEntry, Known, Merged, Purged, ScopeInfo, VaultInfo
    from allonym.vault.vault import Vault

__all__ = [
    "AuditEntry",
    "Book",
    "Digests",
    "Known",
    "Merged",
    "Purged",
    "ScopeInfo",
    "Secret",
    "Vault",
    "VaultInfo",
    "check_vault",
    "new_secret",
    "read_digests",
    "read_secret",
    "secret_from_environment",
    "secret_from_file",
    "secret_from_keyring",
]


_HOMES = ("records", "keys", "book", "digests", "vault")
"""Modules of the public names; those that import SQLAlchemy last, so that it is imported only when it is needed."""


def check_vault(value: object, needs: str = "book") -> None:
    """Check that a value is a vault, or has the method that is needed; None passes.

    Args:
        value: the argument ``vault`` of a public function.
        needs: the method that will be called.

    Raises:
        UsageError: it is something else, such as the path of a vault.
    """
    if value is not None and (isinstance(value, type) or not callable(getattr(value, needs, None))):
        raise UsageError(f"vault must be a Vault: Vault.open('...', secret); got {type(value).__name__}")


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'allonym.vault' has no attribute {name!r}")
    for home in _HOMES:
        if hasattr(module := import_module(f"allonym.vault.{home}"), name):
            globals()[name] = getattr(module, name)
            break
    return globals()[name]
