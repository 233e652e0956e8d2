"""The detectors' word lists, from ``words.toml`` and ``ordinary.txt`` beside this file."""

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


@cache
def read_ordinary_words() -> frozenset[str]:
    """The words of ``ordinary.txt``, in lower case: they name nobody, unless they stand in a name of several words."""
    lines = files("allonym.detection").joinpath("ordinary.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())
