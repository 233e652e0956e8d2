"""Pattern rules: the rows of the built-in tables and of a policy's own patterns.

A rule holds a pattern, further conditions (validator, context words), and the score of a match. Patterns are RE2 syntax
(no look-around, no back-references), so every one takes linear time on any input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from allonym.errors import PolicyError, check_names

Boundary = Literal["word", "left", "right", "none"]


Form = tuple[str, Callable[[Any], bool], Callable[[Any], object]]


def has_toml_type(value: object, kind: type) -> bool:
    """Whether a value of a TOML file has a type: an integer is a number too, but true and false are neither."""
    return isinstance(value, (int, float) if kind is float else kind) and isinstance(value, bool) == (kind is bool)


def _is_list_of(kind: type, value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, kind) for item in value)


_STRING: Form = ("a string", lambda value: isinstance(value, str), str)
_WORDS: Form = ("a list of strings", lambda value: _is_list_of(str, value) and all(value), tuple)
_NUMBER: Form = ("a number", lambda value: has_toml_type(value, float), float)
_WINDOW: Form = (
    "two counts of characters",
    lambda value: _is_list_of(int, value) and len(value) == 2 and min(value) >= 0,
    tuple,
)
_FORMS = {"context": _WORDS, "unless": _WORDS, "window": _WINDOW, "score": _NUMBER, "context_score": _NUMBER}
"""Key of a rule to the form of its value, the test of it, and its conversion; other keys hold strings."""


@dataclass(frozen=True, slots=True)
class PatternRule:
    """A row of a rule table.

    Attributes:
        name: unique, e.g. ``us-ssn-dashed``; appears in ``Span.source``.
        label: label of the taxonomy.
        pattern: RE2 pattern; where it has a capture group, group 1 is the span, else the whole match.
        score: confidence of a bare match, 0 to 1. Under 0.5 it is weak: it needs context in most policies.
        validator: name in :mod:`allonym.checksums`; a match that it refuses is dropped.
        context: words inside ``window`` that make the match likelier. They are compared as whole words, without case;
            a trailing ``*`` allows any ending.
        context_score: confidence of a match with context; by default ``score + 0.35``, at least 0.6, at most 1.
        unless: words in the window that rule the match out.
        window: code points before and after the match in which ``context`` and ``unless`` are looked for.
        boundary: which ends of the span must not touch a letter or digit outside it.
        country: ISO 3166 code in lower case, for rules of one country.
        family: the table of the rule; empty for a policy's own patterns.
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
        """Read a rule from a TOML table.

        Raises:
            PolicyError, UnknownNameError: a key is not known, lacking or of the wrong type.
        """
        keys = [f.name for f in fields(cls)]
        values: dict[str, object] = {}
        check_names("key", row, keys, where)
        for key, value in row.items():
            expected, is_valid, convert = _FORMS.get(key, _STRING)
            if not is_valid(value):
                raise PolicyError(f"{where}: {key} must be {expected}, got {type(value).__name__}")
            values[key] = convert(value)
        for key in ("name", "label", "pattern"):
            if not values.get(key):
                raise PolicyError(f"{where}: {key} is required")
        values.setdefault("score", 0.8)
        return cls(**values)  # type: ignore[arg-type]
