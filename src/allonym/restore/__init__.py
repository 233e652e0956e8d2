"""Originals back into a text, also one that a person or a language model rewrote."""

from allonym.restore.bring import Found, Restored, Restorer, restore, restore_stream

__all__ = ["Found", "Restored", "Restorer", "restore", "restore_stream"]
