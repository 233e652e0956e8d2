"""No pattern of Python's ``re`` may take exponential time: RE2 runs those of rules, not those that read file formats."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

import allonym

_READERS = ("files", "text", "detection", "link", "replace", "restoration", "integrations.python_patterns")
_REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT)
_MANY = 8


def list_patterns() -> Iterator[tuple[str, str, int]]:
    """Yield where each pattern of a module is, its source and its flags."""
    for module in pkgutil.walk_packages(allonym.__path__, "allonym."):
        if not module.name.removeprefix("allonym.").startswith(_READERS):
            continue
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


def is_exponential(pattern: Any) -> bool:
    """Whether a repeated group repeats a character and may hold nothing else, so that a run can be cut in many ways."""
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
    ],
)
def test_what_takes_exponential_time(source, expected):
    assert is_exponential(parser.parse(source)) == expected


def test_no_pattern_takes_exponential_time():
    patterns = list(list_patterns())
    assert len(patterns) > 300
    assert [where for where, source, flags in patterns if is_exponential(parser.parse(source, flags))] == []
