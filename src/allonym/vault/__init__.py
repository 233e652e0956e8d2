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

if TYPE_CHECKING:
    from allonym.vault.book import Book
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

# SQLAlchemy is imported when a vault is used, not before.
_HOMES = {
    "book": ("Book",),
    "keys": (
        "Secret",
        "new_secret",
        "read_secret",
        "secret_from_environment",
        "secret_from_file",
        "secret_from_keyring",
    ),
    "records": ("AuditEntry", "Known", "Merged", "Purged", "ScopeInfo", "VaultInfo"),
    "vault": ("Vault",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AuditEntry",
    "Book",
    "Known",
    "Merged",
    "Purged",
    "ScopeInfo",
    "Secret",
    "Vault",
    "VaultInfo",
    "new_secret",
    "read_secret",
    "secret_from_environment",
    "secret_from_file",
    "secret_from_keyring",
]


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'allonym.vault' has no attribute {name!r}")
    value = getattr(import_module(f"allonym.vault.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value
