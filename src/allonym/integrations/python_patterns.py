"""Translation of regular expressions from Python's ``re`` to the rules of a policy, which run on RE2.

RE2 has no look-around, no back-references and no Unicode in ``\\d``, ``\\w`` and ``\\b``. What can be said otherwise
is: ``\\b``, look-around of one character and a condition at the edge become text around group 1. A condition inside is
dropped, so that the rule matches more, never less.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

import re2

from allonym.detection.scan import compile_pattern
from allonym.errors import UsageError

_OUTSIDE = {
    "d": r"\p{Nd}", "D": r"\P{Nd}", "w": r"[\p{L}\p{M}\p{N}_]", "W": r"[^\p{L}\p{M}\p{N}_]", "s": r"[\s\p{Z}]",
    "Z": r"\z",
}  # fmt: skip
_INSIDE = {"d": r"\p{Nd}", "D": r"\P{Nd}", "w": r"\p{L}\p{M}\p{N}_", "s": r"\s\p{Z}"}
_NOT_WORD = re.compile(r"\[\^\\W(_|\\d|_\\d|\\d_)?\]")
_LETTERS = {"_": r"\p{L}\p{M}\p{N}", "\\d": r"\p{L}\p{M}_", "_\\d": r"\p{L}\p{M}", "\\d_": r"\p{L}\p{M}"}
_LOOK = re.compile(r"\(\?(<?[=!])")
_NAMED = re.compile(r"\(\?P?<(?![=!])\w+>")
_FLAGS = re.compile(r"\(\?([aiLmsux]*)(?:-([imsx]+))?([:)])")
_CODE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|x([0-9A-Fa-f]{2}))")
_WORD_START = re.compile(r"[^\W_]|\\[dwuUx]|\[(?!\^)|\(")
_FLAG_LETTERS = ((re.IGNORECASE, "i"), (re.MULTILINE, "m"), (re.DOTALL, "s"))


@dataclass(frozen=True, slots=True)
class TranslatedPattern:
    """A pattern for RE2, for a rule with the boundary ``none``, and what it does otherwise than the original."""

    pattern: str
    remarks: tuple[str, ...] = ()


class _Item(NamedTuple):
    """A piece of a pattern at its outermost level: its kind (``text``, ``look``, ``b`` or ``|``) and its source."""

    kind: str
    source: str


def translate_pattern(regex: str, flags: int = 0) -> TranslatedPattern:
    """Translate a regular expression of Python's ``re``, whose whole match is the finding.

    Args:
        regex: the expression.
        flags: of ``re``; ``IGNORECASE``, ``MULTILINE`` and ``DOTALL`` are written into the pattern.

    Raises:
        UsageError: RE2 has no counterpart; the message says for what.
    """
    if flags & re.VERBOSE:
        raise UsageError("RE2 has no VERBOSE, which takes spaces and comments for no part of a pattern")
    items = _split_items(_unwrap_group(regex))
    before = after = ""
    remarks: list[str] = []
    if not any(item.kind == "|" for item in items):
        while items and items[0].kind != "text":
            first = items.pop(0)
            if first.kind == "b":
                if items and _WORD_START.match(items[0].source):
                    before = before or rf"(?:\A|[^{_INSIDE['w']}])"
            else:
                before = _keep_condition(first.source, before, remarks, ("<=", "<!"))
        while items and items[-1].kind != "text":
            last = items.pop()
            if last.kind == "b":
                after = after or rf"(?:\z|[^{_INSIDE['w']}])"
            else:
                after = _keep_condition(last.source, after, remarks, ("=", "!"))
    body = "".join(_translate_inside(item, remarks) for item in items)
    letters = "".join(letter for flag, letter in _FLAG_LETTERS if flags & flag)
    pattern = f"{before}({body}){after}" if before or after else body
    pattern = f"(?{letters}:{pattern})" if letters else pattern
    try:
        compile_pattern(pattern)
    except re2.error:
        raise UsageError("RE2 does not take the pattern") from None
    return TranslatedPattern(pattern, tuple(dict.fromkeys(remarks)))


def _keep_condition(look: str, written: str, remarks: list[str], outward: tuple[str, str]) -> str:
    """Return what stands beside group 1 for a look-around at an edge.

    Args:
        look: the look-around; dropped if it is none of ``outward``, since it looks at what the pattern itself matches.
        written: what stands there already.
        remarks: receives what was dropped.
        outward: the look-arounds that look away from the pattern at this edge.
    """
    opening = _LOOK.match(look)
    assert opening is not None
    kind, inner = opening[1], look[opening.end() : -1]
    characters = _read_one_character(inner)
    if kind not in outward:
        _drop(look, remarks)
        return written
    if written or (kind in ("!", "<!") and not characters) or (kind == "=" and not inner):
        return written or _drop(look, remarks)
    if kind in ("!", "<!"):
        edge = r"\A" if kind == "<!" else r"\z"
        return f"(?:{edge}|[^{characters}])"
    return f"(?:{''.join(_translate_inside(item, remarks) for item in _split_items(inner))})"


def _drop(look: str, remarks: list[str]) -> str:
    remarks.append(f"without the condition {look}, so it matches more")
    return ""


def _read_one_character(inner: str) -> str:
    """Return what a character class holds that equals the pattern; empty where it is longer than one character."""
    if re.fullmatch(r"\\[dws]", inner):
        return _INSIDE[inner[1]]
    if re.fullmatch(r"[^\W_]|\\[-+.@/#_]|[-@#_/]", inner):
        return re.escape(inner.removeprefix("\\"))
    if inner.startswith("[") and not inner.startswith("[^") and _find_class_end(inner, 0) == len(inner):
        return _translate_class(inner)[1:-1]
    return ""


def _unwrap_group(regex: str) -> str:
    """Return a pattern without a group that holds all of it, unless the group has an alternative."""
    plain = regex
    while (opening := re.match(r"\((?!\?)|\(\?:", plain)) and _find_group_end(plain, 0) == len(plain):
        plain = plain[opening.end() : -1]
    return plain


def _split_items(regex: str) -> list[_Item]:
    """Split a pattern at its outermost level."""
    items: list[_Item] = []
    position = 0
    while position < len(regex):
        start, char = position, regex[position]
        if char == "\\":
            code = _CODE.match(regex, position)
            position = code.end() if code else position + 2
        elif char == "[":
            position = _find_class_end(regex, position)
        elif char == "(":
            position = _find_group_end(regex, position)
        else:
            position += 1
        source = regex[start:position]
        if source == "\\b":
            items.append(_Item("b", source))
        elif _LOOK.match(source):
            items.append(_Item("look", source))
        elif source == "|":
            items.append(_Item("|", source))
        elif not source.startswith("(?#"):
            items.append(_Item("text", source))
    return items


def _translate_inside(item: _Item, remarks: list[str]) -> str:
    source = item.source
    if item.kind == "look":
        return _drop(source, remarks)
    if source.startswith("\\"):
        return _translate_escape(source, _OUTSIDE)
    if source.startswith("["):
        return _translate_class(source)
    if source.startswith("("):
        opening, inner = _translate_opening(source)
        return f"{opening}{''.join(_translate_inside(piece, remarks) for piece in _split_items(inner))})"
    return source


def _translate_opening(group: str) -> tuple[str, str]:
    """Return the opening of a group that captures nothing, and what the group holds."""
    if group.startswith("(?:"):
        return "(?:", group[3:-1]
    if group.startswith("(?>"):
        return "(?:", group[3:-1]
    if named := _NAMED.match(group):
        return "(?:", group[named.end() : -1]
    if not group.startswith("(?"):
        return "(?:", group[1:-1]
    flags = _FLAGS.match(group)
    if flags is None or "x" in flags[1] or group.startswith("(?P="):
        raise UsageError(f"RE2 has no {group[:4]}...")
    letters = re.sub("[auL]", "", flags[1]) + (f"-{flags[2]}" if flags[2] else "")
    if flags[3] == ")":  # flags for all that follows
        return (f"(?{letters}", "") if letters else ("(?:", "")
    return f"(?{letters}:", group[flags.end() : -1]


def _translate_escape(source: str, table: dict[str, str]) -> str:
    if code := _CODE.fullmatch(source):
        return f"\\x{{{code[1] or code[2] or code[3]}}}"
    if re.fullmatch(r"\\[1-9]", source):
        raise UsageError("RE2 has no back-references")
    return table.get(source[1:], source)


def _translate_class(source: str) -> str:
    if (negated := _NOT_WORD.fullmatch(source)) is not None:  # a letter, without what else the class leaves out
        return f"[{_INSIDE['w'] if not negated[1] else _LETTERS[negated[1]]}]"
    pieces = re.findall(r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}|\\x[0-9A-Fa-f]{2}|\\.|[^\\]", source[1:-1], re.DOTALL)
    inner = "".join(_translate_escape(p, _INSIDE) if p.startswith("\\") else "\\[" if p == "[" else p for p in pieces)
    return f"[{inner}]"


def _find_class_end(regex: str, start: int) -> int:
    """Return the offset behind a character class."""
    position = start + 1
    position += regex[position : position + 1] == "^"
    position += regex[position : position + 1] == "]"
    while position < len(regex) and regex[position] != "]":
        position += 2 if regex[position] == "\\" else 1
    return position + 1


def _find_group_end(regex: str, start: int) -> int:
    """Return the offset behind a group."""
    depth, position = 0, start
    while position < len(regex):
        char = regex[position]
        if char == "\\":
            position += 2
            continue
        if char == "[":
            position = _find_class_end(regex, position)
            continue
        depth += (char == "(") - (char == ")")
        position += 1
        if depth == 0:
            return position
    raise UsageError("a group of the pattern has no end")
