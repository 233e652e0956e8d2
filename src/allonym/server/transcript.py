"""A conversation that grows while people speak: how its turns read now, and which earlier ones that changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from allonym.document import Document

MOST_TURNS = 20_000


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """An anonymised turn: its speaker (None: nobody is named) and its text."""

    speaker: str | None = field(repr=False)
    text: str = field(repr=False)


@dataclass(slots=True, repr=False)
class Transcript:
    """The turns of a conversation, as they came in and as they were last shown.

    However a conversation comes in, its turns read in the end as if the whole of it had been anonymised at once: each
    time all of it is processed, and :meth:`show_turns` returns what that changes. The tagger remembers earlier turns,
    so that mostly the new turn costs time.
    """

    turns: list[tuple[str | None, str]] = field(default_factory=list)
    _shown: list[ShownTurn] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"Transcript({len(self.turns)} turns)"

    def add_turn(self, speaker: str | None, text: str) -> None:
        """Add what somebody says."""
        self.turns.append((speaker or None, text))

    def make_document(self) -> Document:
        """Return all turns so far as a document."""
        return Document.conversation("", self.turns)

    def show_turns(self, parts: Sequence[str]) -> tuple[dict[int, ShownTurn], dict[int, ShownTurn]]:
        """Return the new turns, and those that read otherwise than before, each by its index, from 0.

        Args:
            parts: of :meth:`make_document`, anonymised: for each turn the speaker, where it has one, and the text.
                Turns that were added after the document was made wait for the next time.
        """
        turns: list[ShownTurn] = []
        remaining = iter(parts)
        for speaker, _ in self.turns:
            name = next(remaining, None) if speaker else None
            text = next(remaining, None)
            if text is None:
                break
            turns.append(ShownTurn(name, text))
        before = self._shown
        revised = {i: turn for i, (turn, old) in enumerate(zip(turns, before, strict=False)) if turn != old}
        self._shown = turns
        return dict(enumerate(turns[len(before) :], len(before))), revised
