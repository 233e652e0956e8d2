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

# SQLAlchemy is imported when a vault is used, not before.
_HOMES = {
    "book": ("Book",),
    "digests": ("Digests", "read_digests"),
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


def check_vault(value: object, needs: str = "book") -> None:
    """See that what was given as a vault is one, or keeps book as one does; None passes.

    Args:
        needs: the method that will be called.

    Raises:
        UsageError: it is something else, such as the path of a vault.
    """
    if value is not None and (isinstance(value, type) or not callable(getattr(value, needs, None))):
        raise UsageError(f"vault must be a Vault: Vault.open('...', secret); got {type(value).__name__}")


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'allonym.vault' has no attribute {name!r}")
    value = getattr(import_module(f"allonym.vault.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value
