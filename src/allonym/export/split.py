"""The split of a document: a digest of it decides, so neither order nor other documents matter."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field

from allonym.errors import UsageError
from allonym.keys import derive_operator_key

NAMES = ("train", "validation", "test")
_BITS = 64


@dataclass(frozen=True, slots=True)
class Split:
    """Shares of the documents, drawn by a keyed digest of the unit that must stay together.

    Attributes:
        shares: shares of train, validation and test, from 0 to 1, together 1; missing ones are 0.
        seed: seed of the draw.
        key: a secret, so that nobody can tell from a text which split it was in; None: the seed alone decides.
    """

    shares: tuple[float, ...] = (0.8, 0.1, 0.1)
    seed: int = 0
    key: bytes | str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        shown = ",".join(f"{s:g}" for s in self.shares)
        if not 1 <= len(self.shares) <= len(NAMES) or not all(0 <= s <= 1 for s in self.shares):
            raise UsageError(f"split: one to three shares from 0 to 1 are required, got {shown}")
        if abs(sum(self.shares) - 1) > 1e-6:
            raise UsageError(f"split: shares must make 1 together, got {shown}")

    @classmethod
    def parse(cls, text: str, *, seed: int = 0, key: bytes | str | None = None) -> Split:
        """Read shares such as ``0.8,0.1,0.1``.

        Raises:
            UsageError: they are not numbers from 0 to 1 that sum to 1.
        """
        try:
            shares = tuple(float(share) for share in text.split(","))
        except ValueError:
            raise UsageError(f"split: numbers with commas are required, such as 0.8,0.1,0.1; got {text!r}") from None
        return cls(shares, seed, key)

    def draw(self, unit: str) -> float:
        """A number from 0 to 1 for a unit that stays together: uniform, and the same in every run."""
        secret = b"allonym export split" if self.key is None else derive_operator_key(self.key, "export split")
        data = f"{self.seed}\0{unit}".encode("utf-8", "surrogatepass")
        return int.from_bytes(hmac.digest(secret, data, "sha256")[: _BITS // 8]) / 2.0**_BITS

    def choose_split(self, unit: str) -> str:
        """The split of a unit that stays together, such as a caller, or a single text by default."""
        position, below = self.draw(unit), 0.0
        for name, share in zip(NAMES, self.shares, strict=False):
            below += share
            if position < below:
                return name
        return self.names[-1]

    @property
    def names(self) -> Sequence[str]:
        """The splits that have a share."""
        return [name for name, share in zip(NAMES, self.shares, strict=False) if share > 0]
