"""A conversation that grows while people speak: what its turns read now, and which of the earlier ones that changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from allonym.document import Document

MOST_TURNS = 20_000


@dataclass(frozen=True, slots=True)
class Said:
    """A turn as it reads, anonymised: who speaks (None: nobody is named) and what."""

    speaker: str | None = field(repr=False)
    text: str = field(repr=False)


@dataclass(slots=True, repr=False)
class Transcript:
    """The turns of a conversation, as they were said and as they were last shown.

    However a conversation comes in, what is shown of it in the end is what anonymising the whole of it at once gives:
    each time all of it is treated, and :meth:`shown` tells what that changes. The tagger remembers what it has seen, so
    that mostly the new turn costs time.
    """

    turns: list[tuple[str | None, str]] = field(default_factory=list)
    _shown: list[Said] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"Transcript({len(self.turns)} turns)"

    def add(self, speaker: str | None, text: str) -> None:
        """Somebody has said something."""
        self.turns.append((speaker or None, text))

    def document(self) -> Document:
        """All that was said so far."""
        return Document.conversation("", self.turns)

    def shown(self, parts: Sequence[str]) -> tuple[dict[int, Said], dict[int, Said]]:
        """What is new, and what reads otherwise than it was last shown; turns by their index, from 0.

        Args:
            parts: of :meth:`document`, anonymised: of each turn the speaker, where it has one, and the text. Turns that
                were added since it was made are left for the next time.
        """
        said: list[Said] = []
        left = iter(parts)
        for speaker, _ in self.turns:
            who = next(left, None) if speaker else None
            text = next(left, None)
            if text is None:
                break
            said.append(Said(who, text))
        known = len(self._shown)
        revised = {i: now for i, (now, was) in enumerate(zip(said, self._shown, strict=False)) if now != was}
        self._shown = said
        return dict(enumerate(said[known:], known)), revised
