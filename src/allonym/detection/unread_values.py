"""Numbers and addresses in passages in languages that no detector of names reads: ``unread_values.toml``.

Such a rule says less than those of the tables: in English, too much would be found by it. A rule with a country is for
passages in its language alone.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from allonym.detection.languages import Passage
from allonym.detection.rules import Ruleset
from allonym.document import Document, Reach, Span
from allonym.pattern import PatternRule


@cache
def _read_table() -> Mapping[str, Any]:
    return tomllib.loads(files("allonym.detection").joinpath("unread_values.toml").read_text(encoding="utf-8"))


@cache
def read_unread_rules() -> tuple[PatternRule, ...]:
    """Read the rules for passages in other languages."""
    rows = _read_table()["rule"]
    return tuple(PatternRule.from_row({**row, "family": "unread_values"}, str(row["name"])) for row in rows)


@cache
def _load_ruleset() -> Ruleset:
    return Ruleset(read_unread_rules(), lambda label: 0.5)


def find_values_in_passages(text: str, passages: Sequence[Passage]) -> list[Span]:
    """Find numbers and addresses that lie in some passages of a text."""
    if not passages:
        return []
    codes = {f"rules:{rule.name}": rule.country for rule in read_unread_rules()}
    reaches = {
        code: Reach((p.start, p.end) for p in passages if code in ("", p.language)) for code in set(codes.values())
    }
    plain = frozenset(_read_table()["plain"].split())
    return [
        span
        for span in _load_ruleset()(Document("", text))
        if reaches[codes[span.source]].contains(span.start, span.end)
        and text[span.start : span.end].lower() not in plain
    ]
