"""Restore originals in a text, even if a person or a language model has rewritten it."""

from allonym.restoration.bring import Found, Restored, Restorer, restore, restore_stream

__all__ = ["Found", "Restored", "Restorer", "restore", "restore_stream"]
