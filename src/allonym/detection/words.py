"""The detectors' word lists, from ``words.toml`` beside this file."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files


@cache
def _read_lists() -> dict[str, str]:
    return tomllib.loads(files("allonym.detection").joinpath("words.toml").read_text(encoding="utf-8"))


@cache
def read_word_list(name: str) -> frozenset[str]:
    """The words of a list in ``words.toml``."""
    return frozenset(_read_lists()[name].split())
