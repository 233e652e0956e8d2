"""Look-ups in vaults whose keys were made when folding left letters such as ``ł`` and ``ø`` as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from allonym.replace.mention import Book, BookView
from allonym.text.fold import Level, fold
from allonym.text.words import WORD


@dataclass(frozen=True, slots=True)
class OlderKeys(BookView):
    """A book that also looks under the keys of older versions; what it writes has the keys of this version.

    Attributes:
        book: the scope's book.
        words: folded word to its older form, for the words of the document that have one. Hidden from ``repr``.
    """

    words: Mapping[str, str] = field(repr=False)

    def recall(self, kind: str, key: str) -> str | None:
        """See :class:`Book`."""
        value = self.book.recall(kind, key)
        older = WORD.sub(lambda m: self.words.get(m[0], m[0]), key)
        return self.book.recall(kind, older) if value is None and older != key else value


def wrap_with_older_keys(book: Book, text: str) -> Book:
    """Return the book, made to look under older keys where the text has words that these would spell otherwise."""
    if text.isascii():
        return book
    from allonym.replace.naming import make_family_key  # which reads tables that few documents need

    words: dict[str, str] = {}
    for word in {w for w in WORD.findall(text) if not w.isascii()}:
        if (folded := fold(word)) != (older := fold(word, Level.MARKS)):
            words |= {folded: older, make_family_key(word): make_family_key(word, Level.MARKS)}
    return OlderKeys(book, words) if words else book
