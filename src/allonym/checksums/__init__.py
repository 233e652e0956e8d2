"""Validators: pure functions from a matched text to whether it can be what its pattern says.

Detectors validate with them, and pseudonyms stay valid by them. A rule names one of the functions in
:mod:`allonym.checksums.national` or :mod:`allonym.checksums.general`, or ``stdnum:de.idnr`` for the
``is_valid`` of a python-stdnum module.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module

from allonym.errors import PolicyError

_LONGEST = 100  # characters; no identifier is longer, and some modules turn all digits into one number


@cache
def get_validator(name: str) -> Callable[[str], bool]:
    """Return the validator called ``name``. python-stdnum modules are imported when one is first asked for.

    Raises:
        PolicyError: there is no such validator.
    """
    kind, _, module = name.partition(":")
    if kind == "stdnum" and module:
        try:
            is_valid = import_module(f"stdnum.{module}").is_valid
        except (ImportError, AttributeError):
            raise PolicyError(f"python-stdnum has no validator {module!r}") from None
        return _limit_text_length(is_valid)
    for place in ("national", "general"):
        function = getattr(import_module(f"allonym.checksums.{place}"), name, None)
        if callable(function) and not name.startswith("_"):
            return function  # type: ignore[no-any-return]
    raise PolicyError(f"there is no validator {name!r}")


def _limit_text_length(is_valid: Callable[[str], object]) -> Callable[[str], bool]:
    return lambda text: len(text) <= _LONGEST and bool(is_valid(text))
