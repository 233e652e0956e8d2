"""One pattern rule: what the built-in tables and a policy's own patterns are made of.

A rule says which text to look for, what must hold for it (validator, context words), and how sure that makes us.
Patterns are RE2 syntax (no look-around, no back-references), so none can run away on any input.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Literal

from allonym.errors import PolicyError, UnknownNameError

Boundary = Literal["word", "left", "right", "none"]


@dataclass(frozen=True, slots=True)
class PatternRule:
    """A row of a rule table.

    Attributes:
        name: unique, e.g. ``us-ssn-dashed``; appears in ``Span.source``.
        label: label of the taxonomy.
        pattern: RE2 pattern; where it has a capture group, group 1 is the span, else the whole match.
        score: confidence of a bare match, 0 to 1. Under 0.5 it is weak: it needs context in most policies.
        validator: name in :mod:`allonym.checksums`; a match that it refuses is dropped.
        context: words that make the match likelier. Compared without case, whole words (a trailing ``*`` allows
            any ending), inside ``window``.
        context_score: confidence of a match with context; by default ``score + 0.35``, at least 0.6, at most 1.
        unless: words in the window that rule the match out.
        window: code points before and after the match in which ``context`` and ``unless`` are looked for.
        boundary: which ends of the span must not touch a letter or digit outside it.
        country: ISO 3166 code in lower case where the rule belongs to one country.
        family: the table that the rule stands in; empty for a policy's own patterns.
    """

    name: str
    label: str
    pattern: str
    score: float
    validator: str = ""
    context: tuple[str, ...] = ()
    context_score: float = -1.0
    unless: tuple[str, ...] = ()
    window: tuple[int, int] = (100, 50)
    boundary: Boundary = "word"
    country: str = ""
    family: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.score <= 1:
            raise PolicyError(f"pattern {self.name}: score must lie in 0..1, got {self.score}")
        if self.boundary not in ("word", "left", "right", "none"):
            raise PolicyError(f"pattern {self.name}: boundary must be word, left, right or none, got {self.boundary!r}")
        if self.context_score < 0:
            boosted = min(1.0, max(0.6, round(self.score + 0.35, 2)))
            object.__setattr__(self, "context_score", boosted)

    @classmethod
    def from_row(cls, row: Mapping[str, object], where: str) -> PatternRule:
        """Read a rule from a TOML table; raises :class:`PolicyError` for unknown keys and wrong types."""
        keys = {f.name: f for f in fields(cls)}
        values: dict[str, object] = {}
        for key, value in row.items():
            if key not in keys:
                raise UnknownNameError("key", key, keys, where)
            if key in ("context", "unless"):
                ok = isinstance(value, list) and all(isinstance(v, str) and v for v in value)
                expected = "a list of strings"
                value = tuple(value) if ok else value  # type: ignore[arg-type]
            elif key == "window":
                ok = isinstance(value, list) and len(value) == 2 and all(isinstance(v, int) and v >= 0 for v in value)
                expected = "two counts of characters"
                value = tuple(value) if ok else value  # type: ignore[arg-type]
            elif key in ("score", "context_score"):
                ok, expected = isinstance(value, (int, float)) and not isinstance(value, bool), "a number"
                value = float(value) if ok else value  # type: ignore[arg-type]
            else:
                ok, expected = isinstance(value, str), "a string"
            if not ok:
                raise PolicyError(f"{where}: {key} must be {expected}, got {type(value).__name__}")
            values[key] = value
        for key in ("name", "label", "pattern"):
            if not values.get(key):
                raise PolicyError(f"{where}: {key} is required")
        values.setdefault("score", 0.8)
        return cls(**values)  # type: ignore[arg-type]
