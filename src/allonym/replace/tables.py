"""Tables and word lists that lie beside the modules of this package. Each is read once."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from allonym.text.names import normalize_surface


def _read_text(name: str) -> str:
    return files("allonym.replace").joinpath(name).read_text(encoding="utf-8")


@cache
def read_toml(name: str = "patterns.toml") -> dict[str, Any]:
    """Return the content of a TOML file of this package. Callers share it and must not change it."""
    return tomllib.loads(_read_text(name))


def read_tsv(name: str) -> list[list[str]]:
    """Return the fields of each line of a tab-separated file of this package, without its header line."""
    return [line.split("\t") for line in _read_text(name).splitlines()[1:]]


@cache
def list_words(*path: str, file: str = "patterns.toml") -> tuple[str, ...]:
    """Return a word list of a TOML file.

    Args:
        path: keys that lead to the list. Its words are divided by spaces, or by bars where it holds any.
        file: name of the TOML file.
    """
    text: Any = read_toml(file)
    for key in path:
        text = text[key]
    if "|" in text:
        return tuple(word.strip() for word in text.replace("\n", "|").split("|") if word.strip())
    return tuple(text.split())


@cache
def read_word_set(*path: str, file: str = "patterns.toml") -> frozenset[str]:
    """Return the words of :func:`list_words`, as they are written and in plain form."""
    return frozenset(form for word in list_words(*path, file=file) for form in (word, normalize_surface(word)))
