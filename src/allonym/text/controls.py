"""Characters that steer a terminal or turn the direction of writing, made visible."""

from __future__ import annotations

# Control characters become visible pictures, so that a text can neither steer the terminal nor break a table.
_VISIBLE = {c: 0x2400 + c for c in range(32)} | {127: 0x2421} | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
_VISIBLE |= dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C), 0xB7)
_VISIBLE |= dict.fromkeys(range(0xD800, 0xE000), 0xFFFD)
_LINES = {c: p for c, p in _VISIBLE.items() if c not in (9, 10)}


def escape_controls(text: str, *, lines: bool = False) -> str:
    """Make control and direction characters visible; ``lines`` keeps line ends and tabs."""
    return text.translate(_LINES if lines else _VISIBLE)
