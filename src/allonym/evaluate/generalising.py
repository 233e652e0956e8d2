"""More general words, offline: from a table of classes, else by the part of speech.

``guitar`` becomes ``music`` and, where that still reveals too much, ``thing``; a verb becomes a form of ``do`` or
``have``; an adjective or adverb that only adds something goes. Function words stay. English only.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from allonym.models.pos import parts_of_speech
from allonym.text.placeholders import find_placeholders

__all__ = ["Word", "list_choices", "split_words"]

CONTENT = frozenset({"NOUN", "PROPN", "VERB", "ADJ", "ADV", "NUM", "X", "SYM", "INTJ"})
_NOMINAL = frozenset({"NOUN", "PROPN"})
_KEPT = frozenset(
    "not n't never when where how why whenever wherever there here then also very too so than as more most less "
    "least ever just only even still yet however therefore though although always often sometimes once again now "
    "please yes no such same other own many much few first last next well about s t re ve ll d m".split()
)
_DETERMINERS = frozenset("a an the his her its their my our your some any each every this that these those no".split())


@dataclass(frozen=True, slots=True)
class Word:
    """A word of an anonymised text, or a placeholder in it.

    Attributes:
        start, end: half-open offsets.
        text: its surface. Hidden from ``repr``.
        part: universal part of speech; of a placeholder that of what it stands for.
        label: of a placeholder, empty where it shows none; None: a word.
    """

    start: int
    end: int
    text: str = field(repr=False)
    part: str
    label: str | None = None

    @property
    def low(self) -> str:
        """The word in lower case."""
        return self.text.lower()


def split_words(text: str) -> tuple[Word, ...]:
    """Return the words and punctuation marks of a text in reading order; each placeholder is one word."""
    placeholders = find_placeholders(text)
    out: list[Word] = [Word(p.start, p.end, text[p.start : p.end], p.part, p.label) for p in placeholders]
    index = 0
    for start, end, part in parts_of_speech(text):
        while index < len(placeholders) and placeholders[index].end <= start:
            index += 1
        if index == len(placeholders) or end <= placeholders[index].start:
            out.append(Word(start, end, text[start:end], part))
    return tuple(sorted(out, key=lambda w: w.start))


def list_choices(words: Sequence[Word], i: int) -> tuple[str, ...]:
    """List what may replace word ``i``, the closest first; an empty string removes it. Without a choice it stays."""
    word = words[i]
    if word.label is not None or word.part not in CONTENT or word.low in _KEPT or not any(map(str.isalnum, word.text)):
        return ()
    after = words[i + 1] if i + 1 < len(words) else None
    if word.part in _NOMINAL:
        if after is not None and after.part in _NOMINAL and after.start - word.end <= 1:
            return ("",)
        return _generalise_noun(word, words[i - 1] if i else None)
    if word.part == "VERB":
        verb = _generalise_verb(words, i)
        return (verb,) if verb and verb != word.low else ()
    if word.part == "ADJ":
        if after is not None and (after.part in ("NOUN", "PROPN", "ADJ", "NUM") or after.text == "-"):
            return ("",)
        return ("special",) if word.low != "special" else ()
    if word.part == "NUM" or word.low in _words_in_group("numbers", "words"):
        return (
            ("several",) if after is not None and after.part in ("NOUN", "ADJ") and after.low.endswith("s") else ("",)
        )
    return ("",)


def _generalise_noun(word: Word, before: Word | None) -> tuple[str, ...]:
    stem, many = _to_singular(word.low)
    kind = _map_words_to_nouns().get(word.low) or _map_words_to_nouns().get(stem)
    if kind is None:
        if word.part == "PROPN":
            inside = (
                before is not None and before.low in ("in", "at", "from", "near", "to", "of") and before.low != "of"
            )
            return ("somewhere",) if inside else ("something",)
        kind = "person" if stem.endswith(("ist", "eer", "ess", "man", "woman", "ian")) else "thing"
    plain = _read_table()["kinds"].get(kind, "thing")
    out = dict.fromkeys(_to_plural(n) if many else n for n in (kind, plain))
    return tuple(n for n in out if n != word.low)


def _to_singular(word: str) -> tuple[str, bool]:
    """Return the singular of a noun by its ending, and whether it differs."""
    if word in ("people", "men", "women", "children", "lives", "wives"):
        return {"people": "person", "men": "man", "women": "woman", "children": "child", "lives": "life"}.get(
            word, "wife"
        ), True
    if word.endswith("ies") and len(word) > 4 and word not in ("series", "movies"):
        return word[:-3] + "y", True
    if word.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2], True
    if word.endswith("s") and not word.endswith(("ss", "us", "is", "ics")) and len(word) > 3 and word != "series":
        return word[:-1], True
    return word, False


def _to_plural(noun: str) -> str:
    if noun == "person":
        return "people"
    if noun == "child":
        return "children"
    if noun in ("music", "clothing", "food", "work"):
        return noun
    return noun[:-1] + "ies" if noun.endswith("y") else noun + "s"


def _generalise_verb(words: Sequence[Word], i: int) -> str:
    """Return a form of ``do``, or of ``have`` where an object follows; after a form of ``be``, ``involved``."""
    word = words[i].low
    if word in _words_in_group("verbs", "light"):
        return ""
    index = i - 1
    while index >= 0 and words[index].part in ("ADV", "PART") and words[index].low != "to":
        index -= 1
    before = words[index] if index >= 0 else None
    lead = before.low if before is not None else ""
    after = words[i + 1] if i + 1 < len(words) else None
    carries = after is not None and (
        after.label is not None or after.part in ("DET", "NOUN", "PROPN", "PRON", "ADJ", "NUM")
    )
    if word.endswith("ing") and len(word) > 4:
        return "having" if carries else "doing"
    is_participle = (
        word.endswith("ed")
        or word in _words_in_group("verbs", "participle")
        or word in _words_in_group("verbs", "past")
    )
    if is_participle and lead in ("is", "are", "was", "were", "been", "be", "being", "am", "'s", "s", "re"):
        return "involved"
    if is_participle and lead in ("has", "have", "had", "having", "ve"):
        return "had" if carries else "done"
    if word.endswith("ed") or word in _words_in_group("verbs", "past"):
        if before is not None and before.part in _NOMINAL and not carries and word.endswith("ed"):
            return "involved" if after is not None and after.low in ("by",) else "did"
        return "had" if carries else "did"
    if is_participle:
        return "involved"
    is_plural = before is not None and before.label == "PRONOUN"  # which becomes they
    if word.endswith("s") and not word.endswith("ss") and not is_plural:
        return "has" if carries else "does"
    return "have" if carries else "do"


@cache
def _read_table() -> Mapping[str, Any]:
    table: Mapping[str, Any] = tomllib.loads(
        files("allonym.evaluate").joinpath("generalising.toml").read_text(encoding="utf-8")
    )
    return table


@cache
def _words_in_group(group: str, name: str) -> frozenset[str]:
    return frozenset(_read_table()[group][name].split())


@cache
def _map_words_to_nouns() -> Mapping[str, str]:
    """Return the general noun for each word of the classes; of two classes of a word, the first counts."""
    out: dict[str, str] = {}
    for kind, listed in _read_table()["classes"].items():
        for word in listed.split():
            out.setdefault(word, kind)
    return out
