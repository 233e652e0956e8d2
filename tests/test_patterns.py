"""No pattern of Python's ``re`` may take exponential time: RE2 runs those of rules alone."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from itertools import permutations
from re import _compiler as compiler  # type: ignore[attr-defined]
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

import allonym

_REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT)
_MANY = 8
_SIGNS = (*"a1 .-,_A\n:;/<>()[]{}@#*='", '"')


def list_patterns() -> Iterator[tuple[str, str, int]]:
    """Yield where each pattern of a module is, its source and its flags."""
    for module in pkgutil.walk_packages(allonym.__path__, "allonym."):
        try:
            loaded = importlib.import_module(module.name)
        except ImportError:  # an extra is not installed
            continue
        for name, value in vars(loaded).items():
            if isinstance(value, re.Pattern):
                yield f"{module.name}.{name}", value.pattern, value.flags


def list_branches(pattern: Any) -> Iterator[list[Any]]:
    """Yield the alternatives of a pattern as lists of items, groups opened."""
    items: list[Any] = []
    for index, (code, value) in enumerate(pattern):
        if code is codes.SUBPATTERN:
            code, value = codes.BRANCH, (None, [value[-1]])
        if code is codes.BRANCH:
            rest = list(pattern)[index + 1 :]
            for branch in value[1]:
                for inner in list_branches(branch):
                    for after in list_branches(rest):
                        yield [*items, *inner, *after]
            return
        items.append((code, value))
    yield items


def is_optional(item: Any) -> bool:
    return item[0] in (*_REPEATS, codes.POSSESSIVE_REPEAT) and item[1][0] == 0


def write_example(items: Any) -> str | None:
    """Return a text that items without alternatives match; None where that is not easily said."""
    out = ""
    for code, value in items:
        if code is codes.LITERAL:
            out += chr(value)
        elif code in (codes.IN, codes.ANY, codes.NOT_LITERAL):
            sign = next((sign for sign in _SIGNS if compile_items([(code, value)]).fullmatch(sign)), None)
            if sign is None:
                return None
            out += sign
        elif code in (*_REPEATS, codes.POSSESSIVE_REPEAT):
            inner = write_example(next(list_branches(value[2]))) if value[0] else ""
            if inner is None:
                return None
            out += inner * value[0]
        elif code not in (codes.AT, codes.ASSERT, codes.ASSERT_NOT):
            return None
    return out


def compile_items(items: Any) -> re.Pattern[str]:
    state = parser.State()
    state.str = ""
    compiled: re.Pattern[str] = compiler.compile(parser.SubPattern(state, list(items)))
    return compiled


def matches_example(one: Any, other: Any) -> bool:
    """Whether one alternative matches what is written for another, so that it can be read in both ways."""
    example = write_example(other)
    return bool(example) and compile_items(one).fullmatch(example) is not None


def is_exponential(pattern: Any) -> bool:
    """Whether a text can be cut in many ways.

    A repeated group repeats a character and may hold nothing else, or two of its alternatives match the same.
    """
    for code, value in pattern:
        if code is codes.BRANCH and any(map(is_exponential, value[1])):
            return True
        if code is codes.SUBPATTERN and is_exponential(value[-1]):
            return True
        if code not in _REPEATS:
            continue
        if value[1] >= _MANY:
            for branch in list_branches(value[2]):
                runs = [item for item in branch if item[0] in _REPEATS and item[1][1] >= _MANY]
                if any(all(is_optional(other) for other in branch if other is not run) for run in runs):
                    return True
            if any(matches_example(one, other) for one, other in permutations(list_branches(value[2]), 2)):
                return True
        if is_exponential(value[2]):
            return True
    return False


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (r"(?:-?[a-z]+)*", True),
        (r"(?:[a-z]+|\s)*", True),
        (r"A(?:(?:-?([a-z]+))+B)?", True),
        (r"(?:-?[a-z])*", False),
        (r"(?:-?[a-z]++)*", False),
        (r"(?:-[a-z]+)*", False),
        (r"[a-z]+(?: [a-z]+)*", False),
        (r"(?:(?:not|only|[a-z]+ly) +)*", True),
        (r"(?:(?:not|[a-z]+ly) +)*", False),
        (r"(?:(?:not|only|[a-z]+ly) +)*+", False),
    ],
)
def test_what_takes_exponential_time(source, expected):
    assert is_exponential(parser.parse(source)) == expected


def test_no_pattern_takes_exponential_time():
    patterns = list(list_patterns())
    assert len(patterns) > 300
    assert [where for where, source, flags in patterns if is_exponential(parser.parse(source, flags))] == []
