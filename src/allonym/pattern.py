"""Pattern rules: the rows of the built-in tables and of a policy's own patterns.

A rule holds a pattern, further conditions (validator, context words), and the score of a match. Patterns are RE2 syntax
(no look-around, no back-references), so every one takes linear time on any input.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from allonym.errors import PolicyError, tell_policy_errors
from allonym.settings import REQUIRED, Setting, SettingGroup, declare_setting, find_setting, read_table

Boundary = Literal["word", "left", "right", "none"]


class PatternRule(SettingGroup):
    """A row of a rule table."""

    name: str = declare_setting(REQUIRED, "unique, e.g. ``us-ssn-dashed``; appears in ``Span.source``")
    label: str = declare_setting(REQUIRED, "label of the taxonomy", noun="label")
    pattern: str = declare_setting(
        REQUIRED, "RE2 pattern; where it has a capture group, group 1 is the span, else the whole match"
    )
    score: float = declare_setting(
        0.8,
        "confidence of a bare match, 0 to 1. Under 0.5 it is weak: it needs context in most policies",
        low=0,
        high=1,
    )
    validator: str = declare_setting("", "name in :mod:`allonym.checksums`; a match that it refuses is dropped")
    context: tuple[str, ...] = declare_setting(
        (),
        "words inside ``window`` that make the match likelier. They are compared as whole words, without case; a "
        "trailing ``*`` allows any ending",
        noun="word",
    )
    context_score: float = declare_setting(
        -1.0, "confidence of a match with context; by default ``score + 0.35``, at least 0.6, at most 1"
    )
    unless: tuple[str, ...] = declare_setting((), "words in the window that rule the match out", noun="word")
    window: tuple[int, int] = declare_setting(
        (100, 50),
        "code points before and after the match in which ``context`` and ``unless`` are looked for",
        noun="window",
    )
    boundary: Boundary = declare_setting("word", "which ends of the span must not touch a letter or digit outside it")
    country: str = declare_setting("", "ISO 3166 code in lower case, for rules of one country")
    family: str = declare_setting("", "the table of the rule; empty for a policy's own patterns")

    @tell_policy_errors()
    def __post_init__(self) -> None:
        """Check the score and the borders, and complete the score of a match with context."""
        for name in ("score", "boundary"):
            find_setting(PatternRule, name).check_value(getattr(self, name), f"pattern {self.name}: {name}")
        if self.context_score < 0:
            boosted = min(1.0, max(0.6, round(self.score + 0.35, 2)))
            object.__setattr__(self, "context_score", boosted)

    @classmethod
    @tell_policy_errors()
    def from_row(cls, row: Mapping[str, object], where: str) -> PatternRule:
        """Read a rule from a TOML table.

        Raises:
            PolicyError, UnknownNameError: a key is not known, lacking or of the wrong type.
        """
        return cls(**read_table(cls, row, where, _convert_part))


def _convert_part(setting: Setting, value: Any, where: str) -> Any:
    """Check what is said of a rule beyond its type; none of its words is empty."""
    if setting.noun == "window":
        is_pair = isinstance(value, (list, tuple)) and len(value) == 2
        if not is_pair or not all(type(count) is int and count >= 0 for count in value):
            raise PolicyError(f"{where} must be two counts of characters, got {value!r}")
        return tuple(value)
    if not value and (setting.default is REQUIRED or setting.noun == "word"):
        raise PolicyError(f"{where} must not be empty")
    return value
