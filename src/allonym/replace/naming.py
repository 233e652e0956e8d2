"""How a person's name is written: its words and what they are for, casing, initials, spelled letters, women's forms."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from allonym.kb.roman import romanised
from allonym.text.fold import Level
from allonym.text.names import plain

_TOKEN = re.compile(r"[Pp][Hh]\.\s?[Dd]\.?(?!\w)|(?:[^\W\d_]\.){2,}|[^\W_]+(?:['’ʼ‐‑-][^\W_]+)*\.?")
ARTICLES = frozenset({"al", "el", "ul", "ben"})
"""Small words that a hyphen joins to a family name."""

ROMAN = re.compile(r"(?=[IVX])X{0,2}(?:IX|IV|V?I{0,3})")
"""The number of a ruler, a pope or a namesake."""

ELIDED = re.compile(r"(?:[dlDL]|[dn]ell|D[ei]ll)['’ʼ](?=[^\W\d_]{3})")
"""A particle that is joined to the name behind it, where its own vowel is left out: ``d'Arrest``."""

_AND = frozenset({"and", "und", "et", "y", "i", "e", "og", "och"})
_HYPHEN = re.compile("[‐‑-]")
_VOWELS = re.compile("[aeiouy]+")
_SINGLE = re.compile(r"[^\W_]")


class Piece(NamedTuple):
    """A stretch of a name: ``name``, ``initial``, ``title``, ``particle``, ``suffix``, or ``between`` for the rest."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class _Tables:
    titles: Mapping[str, str]  # title -> gender that it tells
    before_given: frozenset[str]
    doubtful: frozenset[str]
    suffixes: frozenset[str]
    degrees: frozenset[str]
    particles: frozenset[str]
    joined: frozenset[str]
    part_of_name: frozenset[str]  # those that behind a head of one syllable are none
    small: frozenset[str]
    family_endings: tuple[str, ...]
    particle_origins: Mapping[str, str]
    title_origins: Mapping[str, str]
    scripts: Mapping[str, str]
    origins: Mapping[str, str]
    women: Mapping[str, tuple[tuple[str, str], ...]]


@lru_cache(maxsize=1)
def tables() -> _Tables:
    """What ``naming.toml`` holds."""
    raw = tomllib.loads(Path(__file__).with_name("naming.toml").read_text(encoding="utf-8"))
    titles = dict.fromkeys(raw["titles"].split(), "")
    titles |= dict.fromkeys(raw["titles_m"].split(), "m") | dict.fromkeys(raw["titles_f"].split(), "f")
    women = {o: tuple((a, b) for a, _, b in (p.partition(":") for p in v.split())) for o, v in raw["women"].items()}
    particles, suffixes = frozenset(raw["particles"].split()), frozenset(raw["suffixes"].split())
    doubtful, joined = frozenset(raw["doubtful"].split()), frozenset(raw["joined"].split())
    told = {w: origin for origin, words in raw["title_origins"].items() for w in words.split()}
    return _Tables(
        titles,
        frozenset(raw["before_given"].split()),
        doubtful,
        suffixes,
        frozenset(raw["degrees"].split()),
        particles,
        joined,
        frozenset(raw["part_of_name"].split()),
        frozenset(raw["small"].split()),
        tuple(raw["family_endings"].split()),
        raw["particle_origins"],
        told,
        raw["scripts"],
        raw["origins"],
        women,
    )


@lru_cache(maxsize=4096)
def parse(surface: str) -> tuple[Piece, ...]:
    """The pieces of a surface; together they are the surface.

    Titles are words before the first name, suffixes those behind the last; a surface that is nothing else is a name.
    """
    tokens: list[tuple[str, str]] = []  # text before, token
    at = 0
    for match in _TOKEN.finditer(surface):
        token = match[0]
        behind = len(tokens) > 1 and "," in surface[at : match.start()]
        if _compact(token) and not (behind and plain(token).replace(".", "") in tables().degrees):
            for i, letter in enumerate(token[::2]):
                tokens.append((surface[at : match.start()] if not i else "", letter + "."))
        else:
            head, sign, tail = _behind(token)
            before = surface[at : match.start()]
            if (elided := ELIDED.match(head)) is not None and elided[0].islower():
                tokens.append((before, elided[0]))
                before, head = "", head[elided.end() :]
            tokens.append((before, head))
            if sign:
                tokens.append((sign, tail))
        at = match.end()
    kinds = _kinds([t for _, t in tokens], {i - 1 for i, (before, _) in enumerate(tokens) if "," in before})
    out: list[Piece] = []
    for (before, token), kind in zip(tokens, kinds, strict=True):
        if before:
            out.append(Piece("between", before))
        # A full stop belongs to an initial, a title or a suffix only.
        kind = kind if any(c.isalpha() for c in token) else "between"
        dotted = token.endswith(".") and kind == "name" and len(token) > 1
        out.append(Piece(kind, token[:-1] if dotted else token))
        if dotted:
            out.append(Piece("between", "."))
    if at < len(surface):
        out.append(Piece("between", surface[at:]))
    return tuple(out)


def _compact(token: str) -> bool:
    return len(token) > 3 and token[1] == "." and token[3] == "."


def _behind(token: str) -> tuple[str, str, str]:
    """The honorific that a hyphen joins to a name (``Tanaka-san``), the hyphen, and what is before it."""
    signs = list(_HYPHEN.finditer(token))
    word = plain(token[signs[-1].end() :]) if signs else ""
    if word in tables().joined and not (
        word in tables().part_of_name and len(_VOWELS.findall(plain(token[: signs[-1].start()]))) == 1
    ):
        return token[: signs[-1].start()], signs[-1][0], token[signs[-1].end() :]
    return token, "", ""


def _kinds(tokens: list[str], commas: set[int]) -> list[str]:
    """What each token is for, by the tokens and which of them a comma stands behind."""
    known = tables()
    words = [plain(t).replace(".", "") for t in tokens]
    first, last = 0, len(tokens)
    while (
        first < last - 1
        and words[first] in known.titles
        and first not in commas  # "Maj, Adam"
        and not _is_name(tokens, words, first, last)
    ):
        first += 1
        if first < last - 2 and words[first] in _AND and words[first + 1] in known.titles:
            first += 1
    while last - 1 > first and _is_suffix(tokens[last - 1], words[last - 1], last - 1 - first):
        last -= 1
    while last - 1 > first and ROMAN.fullmatch(tokens[last - 1]):
        last -= 1
    kinds = ["title"] * first
    mixed = any(t[:1].isupper() for t in tokens)
    for i in range(first, last):
        word, token = words[i], tokens[i]
        if (
            token.casefold() in known.particles
            and i < last - 1
            and i not in commas  # "Das, Aachal"
            and not token.endswith(".")
            and (token.islower() or (len(word) > 1 and not _given_al(words, i, first)))
        ):
            kinds.append("particle")
        elif token[-1] in "'’ʼ":
            kinds.append("particle")  # "d'Arrest"
        elif (
            first < i < last - 1
            and token.islower()
            and (word in known.small or (mixed and len(word) == 1 and word.isalpha()))
        ):
            kinds.append("between")  # "Roe v. Wade", "Eleanor of Aquitaine"
        elif i > first and ROMAN.fullmatch(token) and (len(token) > 1 or token == "I"):
            kinds.append("suffix")  # "Ferdinand I Habsburg"
        elif len(word) == 1 and word.isalpha() and token[0].isalpha():
            kinds.append("initial")
        else:
            kinds.append("name")
    return kinds + ["suffix"] * (len(tokens) - last)


def _is_suffix(token: str, word: str, before: int) -> bool:
    """Whether a word is no name behind ``before`` others: not Jackie Chan, Jack Ma, Abiye Şama."""
    known = tables()
    if word in known.joined:
        return token.islower() and token.isascii()
    if word in known.degrees:
        return (before > 1 and sum(map(str.isupper, token)) > 1) or (word in ("ii", "iii") and token.islower())
    return word in known.suffixes


def _is_name(tokens: list[str], words: list[str], i: int, last: int) -> bool:
    """Whether a word that may be a title is more likely the given name: ``Dean Martin``, not ``Dean A. Martin``."""
    if words[i] not in tables().doubtful or tokens[i].endswith(".") or not tokens[i][:1].isupper():
        return False
    return i == 0 and last - i == 2 and len(words[i + 1]) > 1


def _given_al(words: list[str], i: int, first: int) -> bool:
    """``Al Smith``, ``Della Reese``, ``Ben Adams``: no particles, where they come first."""
    return i == first and words[i] in ("al", "della", "ben", "san", "santa", "do", "e", "i", "thi", "des", "bin")


def title_gender(pieces: tuple[Piece, ...]) -> tuple[str, str]:
    """The last title or honorific of a name, in plain form, and the gender that these tell; else empty."""
    found = [plain(p.text).replace(".", "") for p in pieces if p.kind == "title"]
    found = [w for w in found if w != "the"]
    suffix = {plain(p.text).replace(".", "") for p in pieces if p.kind == "suffix"}
    gender = next((tables().titles[w] for w in found if tables().titles[w]), "")
    gender = gender or ("f" if "hanim" in suffix else "m" if "bey" in suffix else "")
    return next(reversed(found), "") or next(iter(sorted(suffix & tables().joined)), ""), gender


def title_before(text: str, start: int) -> tuple[str, str]:
    """The title that stands right before ``start``, in plain form, and the gender that it tells; else empty."""
    if not text[start - 1 : start].isspace():
        return "", ""
    word = text[max(0, start - 16) : start].split()[-1:]
    bare = word[0].lstrip("([{<\"'“‘") if word else ""
    found = plain(bare).replace(".", "") if bare[:1].isupper() or bare == "the" else ""
    return (found, tables().titles[found]) if found in tables().titles else ("", "")


def title_origin(pieces: tuple[Piece, ...], before: str) -> str:
    """The language of origin that the forms of address in a name, or ``before`` it, tell; else empty."""
    known = tables().title_origins
    words = [plain(p.text).replace(".", "") for p in pieces if p.kind in ("title", "suffix")] + [before]
    return next((known[w] for w in words if w in known), "")


def script_of(word: str) -> tuple[str, str]:
    """The language of origin that a word's script tells, and the name of the script; both empty for Latin letters."""
    if not word or word[0] < "\u0370":
        return "", ""
    found = tables().scripts.get(unicodedata.name(word[0], "").partition(" ")[0], "").split()
    return (found[0], found[1] if len(found) > 1 else "") if found else ("", "")


def latin(word: str) -> str:
    """A name in Latin letters, for look-ups; as it is where that cannot be done."""
    _, script = script_of(word)
    return romanised(word, script) or word if script else word


def units(text: str) -> tuple[str, ...]:
    """The words that a hyphen joins, in plain form."""
    return tuple(plain(w) for w in _HYPHEN.split(text) if w)


def recased(new: str, old: str) -> str:
    """``new`` in the case of ``old``: capitals, small letters, or as names are written."""
    if sum(c.isalpha() for c in old) > 1 and old.isupper():
        return new.upper()
    if old.islower():
        return new.lower()
    if old[:1].isupper() and old[1:].islower() and not new[:1].isupper():
        return new[:1].upper() + new[1:]
    return new


def family_key(word: str, level: Level = Level.LETTERS) -> str:
    """The key of a family name: one for its form for men and that for women."""
    lower = word.casefold()
    key = plain(word, level)
    if lower.endswith("ová") and len(key) > 5:
        return key[:-3]
    if lower.endswith("á") and len(key) > 4:
        return key[:-1] + "y" if not lower.endswith(("ská", "cká")) else key[:-1] + "i"
    if lower.endswith(("ský", "cký")):
        return key[:-1] + "i"
    if key.endswith(("ska", "cka", "dzka")) and len(key) > 5:
        return key[:-1] + "i"
    if key.endswith("poulou"):
        return key[:-1] + "s"
    if key.endswith(("ova", "eva")) and len(key) > 5:
        return key[:-1]
    return key


def for_woman(word: str, origin: str) -> str:
    """The form for women of a family name in its form for men; ``origin`` tells how."""
    for ending, other in tables().women.get(origin, ()):
        if word.endswith(ending) and len(word) > len(ending) + 1:
            return word if other == "=" else word[: len(word) - len(ending)] + other
    return word


def of_man(word: str) -> bool:
    """Whether a family name is in a form that in its own language only men bear."""
    return plain(word).endswith(("ski", "cki", "dzki"))


def plural(word: str) -> str:
    """``the Connors``, ``the Joneses``."""
    last = plain(word)
    return word + ("es" if last.endswith(("s", "x", "z", "ch", "sh")) else "s")


def letters_of(surface: str, least: int = 2) -> str:
    """The letters of a word that is spelled one by one, in plain form; else empty."""
    pieces = [p for p in re.split(r"[\s.,\-‐‑–]+", surface.strip()) if p]
    if len(pieces) < least or any(len(p) != 1 or not p.isalnum() for p in pieces):
        return ""
    return plain("".join(pieces))


def spelled_like(word: str, surface: str) -> str:
    """A word spelled in the manner of ``surface``: its separators, its case."""
    letters = [c for c in unicodedata.normalize("NFC", word) if c.isalnum()]
    signs = _SINGLE.findall(surface)
    between = re.split(r"[^\W_]", surface)
    inner = between[1:-1]
    usual = max(inner, key=inner.count) if inner else " "
    same = len(letters) == len(signs)
    out = between[0]
    for i, letter in enumerate(letters):
        out += letter.upper() if signs[min(i, len(signs) - 1)].isupper() else letter.lower()
        if i < len(letters) - 1:
            out += inner[i] if same else usual
    return out + between[-1]
