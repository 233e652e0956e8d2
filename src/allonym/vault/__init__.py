"""The vault: an encrypted store that knows which replacement stands for which original.

>>> from allonym.vault import Vault
>>> vault = Vault.create("letters.vault", secret)  # doctest: +SKIP
>>> with vault.book("letters") as book:  # doctest: +SKIP
...     book.remember("[PERSON_1]", "Ada Brook", "PERSON", "tag@1", "ada brook")

A scope (a project, a release) is a world of its own: numbers, pseudonyms and originals of one say nothing in another.
Within a scope a subject names whose documents are written about, so that they can be erased.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from allonym.errors import UsageError
from allonym.lazy import load_on_use

if TYPE_CHECKING:
    from allonym.vault.book import Book as Book
    from allonym.vault.digests import Digests as Digests
    from allonym.vault.digests import read_digests as read_digests
    from allonym.vault.keys import Secret as Secret
    from allonym.vault.keys import new_secret as new_secret
    from allonym.vault.keys import read_secret as read_secret
    from allonym.vault.keys import secret_from_environment as secret_from_environment
    from allonym.vault.keys import secret_from_file as secret_from_file
    from allonym.vault.keys import secret_from_keyring as secret_from_keyring
    from allonym.vault.records import AuditEntry as AuditEntry
    from allonym.vault.records import Known as Known
    from allonym.vault.records import Merged as Merged
    from allonym.vault.records import Purged as Purged
    from allonym.vault.records import RegisteredPerson as RegisteredPerson
    from allonym.vault.records import ScopeInfo as ScopeInfo
    from allonym.vault.records import VaultInfo as VaultInfo
    from allonym.vault.vault import Vault as Vault

__all__ = sorted((*load_on_use(__name__), "check_vault"))


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
