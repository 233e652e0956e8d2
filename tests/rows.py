"""One test for all rows of a table, so that thousands of cases cost no more than what they check."""

from __future__ import annotations

import functools
import inspect
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import pytest

_SHOWN = 20
_LONGEST = 1500


def check_each_row(names: str, rows: Sequence[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a test so that it runs once for each row, and lists all rows that fail in one message.

    Fixtures are made once for all rows: what needs fresh ones for each case is parametrised instead.

    Args:
        names: the parameters that the row fills, with commas or blanks between.
        rows: their values; with a single name each row is the value itself.
    """
    filled = names.replace(",", " ").split()
    table = [(row,) if len(filled) == 1 else tuple(row) for row in rows]
    assert table and all(len(row) == len(filled) for row in table), "a table has rows as long as its names"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)
        rest = [one for name, one in signature.parameters.items() if name not in filled]

        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            failures = []
            for row in table:
                try:
                    test(**fixtures, **dict(zip(filled, row, strict=True)))
                except (Exception, pytest.fail.Exception) as error:
                    failures.append(_describe_failure(row, error))
            if failures:
                more = [f"and {len(failures) - _SHOWN} more"] if len(failures) > _SHOWN else []
                shown = "\n".join([*failures[:_SHOWN], *more])
                pytest.fail(f"{len(failures)} of {len(table)} rows fail\n{shown}", pytrace=False)

        run.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        return run

    return decorate


def _describe_failure(row: tuple[Any, ...], error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    message = f"{type(error).__name__}: {error}"[:_LONGEST].replace("\n", "\n      ")
    return f"  {', '.join(map(repr, row))[:_LONGEST]}\n    {last.filename}:{last.lineno}: {message}"
