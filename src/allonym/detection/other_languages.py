"""Names in passages in other languages than English, by the taggers of optional packages.

``allonym-languages`` and ``allonym-polish`` hold weights alone; ``pip install ./packages/languages`` in a copy of the
repository installs one. A passage is read where it is in a language whose figures on unseen text earned it a place in
the package's ``model.json``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from allonym.detection import TAGGER
from allonym.detection.languages import ENGLISH, list_unread, name_languages
from allonym.detection.lexicon import PARTICLES
from allonym.detection.mentions import uses_capitals
from allonym.detection.words import read_no_names, read_word_list, read_words_of
from allonym.document import Document, Span
from allonym.text.words import LETTERS

if TYPE_CHECKING:
    from allonym.models.nametagger import NameTagger
    from allonym.models.wordtagger import WordTagger

PACKAGES = {"languages": frozenset("da de et hr hu no pt ro ru sk sl sv".split()), "polish": frozenset({"pl"})}
"""Packages below ``packages`` to ISO 639 codes of what they read, for those who have not installed them."""

_ALIKE = {"nb": "no", "nn": "no", "bs": "hr"}
"""Languages that are read as another, which they resemble in writing."""
_CYRILLIC = frozenset({"sr"})  # what is told to be Serbian is in Cyrillic letters, which the tagger has not seen there
_LONGEST_ABBREVIATION = 3  # letters
_TITLES = read_word_list("titles") | read_word_list("titles_of_other_languages")
_BEGINS = 0.5  # chance by which a word begins a name of its own
_GAP = re.compile(r"[ \t\xa0]*")
_SURE = 0.6  # chance from which on even an ordinary word is part of a name: "Câmara"

_ARTICLE = re.compile(
    r"(?i:\b(?:d(?:er|ie|as|es|em|en)|(?:k|m|d|s)?ein(?:e[mnrs]?)?|im|am|zum|zur|vom|beim|unser(?:e[mnrs]?)?))"
    r"(?: [a-zäöüß]{1,20}e[mnrs]?)? \Z"
)
_LONGEST_ARTICLE = 36  # characters, with an adjective

Thresholds = Mapping[str, float]
"""A kind of name to the chance that a word needs, over 0 to 1."""


@cache
def load_packages() -> Mapping[str, NameTagger | WordTagger]:
    """The models of the packages that are installed, by the languages that they read."""
    models: dict[str, NameTagger | WordTagger] = {}
    for name in filter(_is_installed, PACKAGES):
        from allonym.models.nametagger import open_tagger  # which needs NumPy

        model = open_tagger(Path(find_spec(f"allonym_{name}").origin).parent)  # type: ignore[union-attr, arg-type]
        models |= dict.fromkeys(sorted(set(model.about["languages"]) - _CYRILLIC), model)
    return models


def _is_installed(package: str) -> bool:
    spec = find_spec(f"allonym_{package}")
    return spec is not None and spec.origin is not None


def list_package_languages() -> frozenset[str]:
    """ISO 639 codes of the languages that installed packages read."""
    earned = frozenset(load_packages())
    return earned | {code for code, other in _ALIKE.items() if other in earned}


def advise_package(unread: Iterable[str]) -> str:
    """Say how some unread languages can be read, as the end of a warning; empty where nothing can be done."""
    out = ""
    for package, languages in PACKAGES.items():
        codes = [code for code in unread if _ALIKE.get(code, code) in languages]
        if codes and not _is_installed(package):
            out += f"; 'pip install ./packages/{package}' in a copy of the repository reads {name_languages(codes)}"
    return out


def build_reader(read_thresholds: Callable[[Mapping[str, float]], Thresholds]) -> Callable[[Document], list[Span]]:
    """Build a function that finds names in the passages which the package reads.

    Args:
        read_thresholds: from a package's points for one language (name to chance) to the threshold of each kind.
    """
    models = load_packages()
    thresholds = {
        code: read_thresholds({name: table[code] for name, table in model.about["points"].items()})
        for code, model in models.items()
    }

    def find_names(document: Document) -> list[Span]:
        text = document.text
        out: list[Span] = []
        for passage in list_unread(text, {ENGLISH}):
            language = _ALIKE.get(passage.language, passage.language)
            if thresholds.get(language):
                piece = text[passage.start : passage.end]
                spans = extract_names(piece, models[language], language, thresholds[language])
                spans = [part for span in spans if (part := _trim_ordinary_words(piece, span, language))]
                out += [Span(s.start + passage.start, s.end + passage.start, s.label, s.score, TAGGER) for s in spans]
        return out

    return find_names


def _trim_ordinary_words(text: str, span: Span, language: str) -> Span | None:
    """Take away words that name nobody where small letters join them to a name: "Paket für Leonie", "Kiel per Paket".

    Nothing is left of fields of forms, relatives and medicines, and what follows an open bracket goes as well.
    """
    words = list(LETTERS.finditer(text, span.start, span.end))
    ordinary = read_no_names(language)
    tails = tuple(read_words_of("ordinary_tails", language))
    is_ordinary = all(
        word[0].lower() in ordinary or word[0].islower() or word[0].lower().endswith(tails) for word in words
    )
    if is_ordinary and (span.score < _SURE or _names_nobody_here(text, span, language)):
        return None
    first, last = 0, len(words)
    while last - first > 2 and words[first][0].lower() in ordinary and words[first + 1][0].islower():
        first += 1
        while first < last - 1 and words[first][0].islower() and words[first][0] not in PARTICLES:
            first += 1
    while last - first > 2 and words[last - 1][0].lower() in ordinary and words[last - 2][0].islower():
        last -= 1
        while first < last - 1 and words[last - 1][0].islower():
            last -= 1
    start = words[first].start() if first else span.start
    end = words[last - 1].end() if last < len(words) else span.end
    bracket = text.find("(", start, end)
    if bracket > start and ")" not in text[bracket:end]:
        end = bracket - (text[bracket - 1] == " ")
    return replace(span, start=start, end=end)


def _names_nobody_here(text: str, span: Span, language: str) -> bool:
    """Whether an ordinary word is a field ("Schadenort:"), an office behind a name, or has an article ("ein Mann")."""
    behind = text[span.end : span.end + 1]
    before = text[max(0, span.start - _LONGEST_ARTICLE) : span.start]
    is_office = before.endswith(", ") and behind in ("", "\n")
    return behind == ":" or is_office or (language == "de" and _ARTICLE.search(before) is not None)


def extract_names(text: str, model: NameTagger | WordTagger, language: str, thresholds: Thresholds) -> list[Span]:
    """Extract the names of the kinds that have a threshold from a text in one language, in reading order."""
    import numpy as np

    from allonym.models.wordtagger import KINDS

    borders, table = model(text, language)
    chances = np.round(table.astype(np.float64), 4)  # the same for any number of threads
    mass = chances[:, 1::2] + chances[:, 2::2]
    is_wanted = np.array([kind in thresholds for kind in KINDS])
    rates = np.array([1 / thresholds[kind] if kind in thresholds else 0.0 for kind in KINDS])
    is_name = (mass * rates).sum(1) >= 1
    begins = chances[:, 1::2].max(1) >= _BEGINS if len(borders) else is_name
    has_capitals = uses_capitals(text)

    def is_part(start: int, end: int) -> bool:
        """Tell whether a word may stand at an end of a name: no mark, title, or small letters where others are big."""
        word = text[start:end]
        return word[0].isalnum() and word.lower() not in _TITLES and not (has_capitals and word.islower())

    out: list[Span] = []
    for first, last in _list_runs(text, borders, is_name.tolist(), begins.tolist()):
        while first < last and not is_part(*borders[first]):
            first += 1
        while last > first and not is_part(*borders[last - 1]):
            last -= 1
        start, end = (borders[first][0], borders[last - 1][1]) if first < last else (0, 0)
        if any(map(str.isalpha, text[start:end])):
            sums = np.where(is_wanted, mass[first:last].sum(0), -1)
            score = round(min(1.0, float((mass[first:last] * is_wanted).sum(1).mean())), 4)
            out.append(Span(start, end, KINDS[int(sums.argmax())], score, TAGGER))
    return out


def _ends_sentence(text: str, borders: list[tuple[int, int]], n: int) -> bool:
    """Whether the mark before a word ends a sentence or a part of one, unlike the full stop of an abbreviation."""
    mark = text[borders[n - 1][0]]
    before = borders[n - 2] if n > 1 else (0, 0)
    return mark in "!?;:" or (mark in ".," and before[1] - before[0] > _LONGEST_ABBREVIATION)


def _list_runs(
    text: str, borders: list[tuple[int, int]], is_name: list[bool], begins: list[bool]
) -> Iterator[tuple[int, int]]:
    """Half-open runs of words of names; a line end, or a word that surely begins a name, begins another."""
    first = 0
    for n in range(len(borders) + 1):
        goes_on = n < len(borders) and is_name[n]
        if goes_on and n > first:
            gap = text[borders[n - 1][1] : borders[n][0]]
            goes_on = (
                not begins[n] and _GAP.fullmatch(gap) is not None and not (gap and _ends_sentence(text, borders, n))
            )
        if not goes_on:
            if n > first:
                yield first, n
            first = n if n < len(borders) and is_name[n] else n + 1
