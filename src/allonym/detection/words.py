"""The detectors' word lists, from ``words.toml``, ``common_terms.toml`` and other files beside this file."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
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
    return _read_words("ordinary.txt")


@cache
def read_dictionary() -> frozenset[str]:
    """The ordinary words and the rarer ones of ``dictionary.txt``: in dictionaries, and no names that lists know."""
    return read_ordinary_words() | _read_words("dictionary.txt") | read_word_list("everyday_words")


@cache
def read_ordinary_words_of(language: str) -> frozenset[str]:
    """The ordinary words of a language other than English, in lower case; none of languages without a list."""
    return read_words_of("ordinary", language).union(_read_ordinary_words_of_languages().get(language, "").split())


@cache
def _read_ordinary_words_of_languages() -> dict[str, str]:
    path = files("allonym.detection").joinpath("ordinary_of_languages.toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))


@cache
def read_words_of_languages(name: str) -> Mapping[str, frozenset[str]]:
    """A table of words in ``other_languages.toml``: ISO 639 code to words in lower case."""
    content = files("allonym.detection").joinpath("other_languages.toml").read_text(encoding="utf-8")
    return {code: frozenset(words.split()) for code, words in tomllib.loads(content)[name].items()}


def read_words_of(name: str, language: str) -> frozenset[str]:
    """The words of one language in a table of ``other_languages.toml``; none if the table does not have it."""
    return read_words_of_languages(name).get(language, frozenset())


@cache
def read_no_names(language: str) -> frozenset[str]:
    """Words in lower case that name nobody in a language, though they may begin with a capital."""
    terms = frozenset(term for term in read_common_terms() if " " not in term)
    return terms.union(
        read_words_of("no_names", "all"),
        read_words_of("no_names", language),
        read_words_of("form_words", language),
        read_word_list("titles_of_other_languages"),
        read_word_list("greetings_of_other_languages"),
    )


def _read_words(name: str) -> frozenset[str]:
    lines = files("allonym.detection").joinpath(name).read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())


_CALLED = re.compile(
    r"(?:er|or|ist|ian|m[ae]n|wom[ae]n|ant|(?<!m)ent|eer|ess|smith|wright|ee|eon|crat|person|hand|mate|maid)s?\Z"
)

_NO_CALLINGS = frozenset(
    "committee committees department departments degree degrees coffee guarantee jubilee owner owners "
    "reader readers smoker smokers drinker drinkers".split()
)
"""Words with the endings of callings that people write after names of trades: "flood committee"."""


def is_calling(word: str) -> bool:
    """Whether a word in small letters, singular or plural, may say what somebody does: "baker", "nurses"."""
    callings = read_word_list("callings")
    return (
        (bool(_CALLED.search(word)) and word not in _NO_CALLINGS)
        or word in callings
        or word.removesuffix("s") in callings
    )


@cache
def read_common_terms(name: str = "") -> frozenset[str]:
    """The terms of a list in ``common_terms.toml``, in lower case: medicines, software ...; by default of all lists."""
    lists = tomllib.loads(files("allonym.detection").joinpath("common_terms.toml").read_text(encoding="utf-8"))
    chosen = [lists[name]] if name else list(lists.values())
    return frozenset(" ".join(term.split()) for text in chosen for term in text.split(";"))
