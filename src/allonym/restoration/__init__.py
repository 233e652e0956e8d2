"""Restore originals in a text, even if a person or a language model has rewritten it."""

from allonym.restoration.bring import Restorer, restore, restore_stream
from allonym.restoration.restored import Found, Restored

__all__ = ["Found", "Restored", "Restorer", "restore", "restore_stream"]
