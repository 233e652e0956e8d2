"""Reads and writes names of people: words and their roles, initials, spelled letters, forms for women."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache, partial
from typing import NamedTuple

from allonym.kb import roman
from allonym.replace.tables import read_toml, read_word_set
from allonym.text.fold import Level
from allonym.text.names import normalize_surface
from allonym.text.words import LETTERS

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
_WITH_FAMILY_NAME = ("grand", "gran", "nan", "man", "woman", "lady", "girl", "boy")
"""What may stand before a family name, or have none behind it: Grandma Ellis, the man Harris."""
_LONGEST_KIN = 40  # characters between a name and what is said of its bearer


class Piece(NamedTuple):
    """A part of a name: ``name``, ``initial``, ``title``, ``particle``, ``suffix``, or ``between`` for the rest."""

    kind: str
    text: str


class NameTables:
    """The content of ``naming.toml``, read when it is needed first.

    Attributes:
        titles: title to the gender that it tells.
        before_given: titles that stand before given names.
        kin: relative, and others of one gender, to the gender.
        doubtful: titles that may be given names.
        suffixes, degrees, joined: words behind a name; ``joined`` are honorifics that a hyphen joins to it.
        particles: small words before family names.
        part_of_name: honorifics that belong to the name behind a word of one syllable.
        small: words between the names of one person.
        family_endings: endings of family names.
        particle_origins, title_origins: particle or title to a language of origin.
        scripts: script to a language of origin and the name of its romanisation.
        origins: language of a text to the origin of its names.
        women: language of origin to the endings of family names for men, each with the one for women.
    """

    def __init__(self) -> None:
        raw = read_toml("naming.toml")
        read_set = partial(read_word_set, file="naming.toml")
        genders = {"titles": "", "titles_m": "m", "titles_f": "f"}
        self.kin = {word: kind[-1] for kind in ("kin_m", "kin_f") for word in raw[kind].split()}
        self.titles = {word: gender for name, gender in genders.items() for word in raw[name].split()}
        self.before_given, self.doubtful = read_set("before_given"), read_set("doubtful")
        self.suffixes, self.degrees, self.joined = read_set("suffixes"), read_set("degrees"), read_set("joined")
        self.particles, self.small, self.part_of_name = map(read_set, ("particles", "small", "part_of_name"))
        self.family_endings = tuple(raw["family_endings"].split())
        self.particle_origins: Mapping[str, str] = raw["particle_origins"]
        self.title_origins = {word: origin for origin, words in raw["title_origins"].items() for word in words.split()}
        self.scripts: Mapping[str, str] = raw["scripts"]
        self.origins: Mapping[str, str] = raw["origins"]
        self.women = {o: [tuple(pair.split(":")) for pair in pairs.split()] for o, pairs in raw["women"].items()}


load_name_tables = cache(NameTables)
"""Returns the content of ``naming.toml``."""


def get_default_origin(language: str) -> str:
    """Return the language of origin of names that tell nothing: that of a text's language."""
    return load_name_tables().origins.get(language, "english")


@lru_cache(maxsize=4096)
def parse_name(surface: str) -> tuple[Piece, ...]:
    """Divide a surface into pieces; together they are the surface.

    Titles are words before the first name, suffixes those behind the last; a surface that is nothing else is a name.
    """
    tokens: list[tuple[str, str]] = []  # text before, token
    position = 0
    for match in _TOKEN.finditer(surface):
        token, before = match[0], surface[position : match.start()]
        behind = len(tokens) > 1 and "," in before
        if _is_initials(token) and not (behind and _fold_word(token) in load_name_tables().degrees):
            for letter in token[::2]:
                tokens.append((before, letter + "."))
                before = ""
        else:
            head, sign, tail = _split_honorific(token)
            if (elided := ELIDED.match(head)) is not None and elided[0].islower():
                tokens.append((before, elided[0]))
                before, head = "", head[elided.end() :]
            tokens.append((before, head))
            if sign:
                tokens.append((sign, tail))
        position = match.end()
    kinds = _find_token_kinds([t for _, t in tokens], {i - 1 for i, (before, _) in enumerate(tokens) if "," in before})
    out: list[Piece] = []
    for (before, token), kind in zip(tokens, kinds, strict=True):
        # A full stop belongs to an initial, a title or a suffix only.
        kind = kind if any(c.isalpha() for c in token) else "between"
        dotted = token.endswith(".") and kind == "name" and len(token) > 1
        out += [Piece("between", before), Piece(kind, token[:-1] if dotted else token)]
        out.append(Piece("between", "." if dotted else ""))
    out.append(Piece("between", surface[position:]))
    return tuple(piece for piece in out if piece.text)


def _fold_word(text: str) -> str:
    """Return a word in plain form without full stops, as the tables have it."""
    return normalize_surface(text).replace(".", "")


def _is_initials(token: str) -> bool:
    return len(token) > 3 and token[1] == "." and token[3] == "."


def _split_honorific(token: str) -> tuple[str, str, str]:
    """Return a name, a hyphen, and the honorific that the hyphen joins to it (``Tanaka-san``); else the token alone."""
    signs = list(_HYPHEN.finditer(token))
    if not signs:
        return token, "", ""
    head, sign, tail = token[: signs[-1].start()], signs[-1][0], token[signs[-1].end() :]
    word, lists = normalize_surface(tail), load_name_tables()
    part_of_name = word in lists.part_of_name and len(_VOWELS.findall(normalize_surface(head))) == 1
    return (head, sign, tail) if word in lists.joined and not part_of_name else (token, "", "")


def _find_token_kinds(tokens: list[str], before_commas: set[int]) -> list[str]:
    """Return the kind of each token, by the tokens and those that a comma stands behind."""
    lists = load_name_tables()
    words = [_fold_word(t) for t in tokens]
    first, last = 0, len(tokens)
    while first < last - 1 and words[first] in lists.titles and first not in before_commas:  # "Maj, Adam"
        if _is_title_likely_given_name(tokens, words, first, last):
            break
        first += 1
        if first < last - 2 and words[first] in _AND and words[first + 1] in lists.titles:
            first += 1
    while last - 1 > first and _is_name_suffix(tokens[last - 1], words[last - 1], last - 1 - first):
        last -= 1
    while last - 1 > first and ROMAN.fullmatch(tokens[last - 1]):
        last -= 1
    mixed = any(t[:1].isupper() for t in tokens)
    kinds = ["title"] * first
    for i in range(first, last):
        word, token = words[i], tokens[i]
        inside = first < i < last - 1
        is_last = i == last - 1 or i in before_commas  # "Das, Aachal"
        may_be_particle = token.islower() or (len(word) > 1 and not (i == first and word in _FIRST_NAMES))
        particle = may_be_particle and token.casefold() in lists.particles and not is_last and token[-1] != "."
        if particle or token[-1] in "'’ʼ":  # "d'Arrest"
            kinds.append("particle")
        elif inside and token.islower() and (word in lists.small or (mixed and len(word) == 1 and word.isalpha())):
            kinds.append("between")  # "Roe v. Wade", "Eleanor of Aquitaine"
        elif i > first and token in ("v", "v.", "vs", "vs.", "versus"):
            kinds.append("between")  # "Roe v.", cut off
        elif i > first and ROMAN.fullmatch(token) and (len(token) > 1 or token == "I"):
            kinds.append("suffix")  # "Ferdinand I Habsburg"
        elif len(word) == 1 and word.isalpha() and token[0].isalpha():
            kinds.append("initial")
        else:
            kinds.append("name")
    return kinds + ["suffix"] * (len(tokens) - last)


_FIRST_NAMES = frozenset("al della ben san santa do e i thi des bin".split())
"""Particles that are names where they come first: ``Al Smith``, ``Della Reese``, ``Ben Adams``."""


def _is_name_suffix(token: str, word: str, words_before: int) -> bool:
    """Whether a word is no name behind ``words_before`` others: not Jackie Chan, Jack Ma, Abiye Şama."""
    lists = load_name_tables()
    if word in lists.joined:
        return token.islower() and token.isascii()
    if word in lists.degrees:
        return (words_before > 1 and sum(map(str.isupper, token)) > 1) or (word in ("ii", "iii") and token.islower())
    return word in lists.suffixes


def _is_title_likely_given_name(tokens: list[str], words: list[str], i: int, last: int) -> bool:
    """Whether a word that may be a title is more likely the given name: ``Dean Martin``, not ``Dean A. Martin``."""
    if words[i] not in load_name_tables().doubtful or tokens[i].endswith(".") or not tokens[i][:1].isupper():
        return False
    return i == 0 and last - i == 2 and len(words[i + 1]) > 1


def _list_words(pieces: Sequence[Piece], *kinds: str) -> list[str]:
    return [_fold_word(p.text) for p in pieces if p.kind in kinds]


def find_title_and_gender(pieces: Sequence[Piece]) -> tuple[str, str]:
    """Return the last title or honorific of a name, in plain form, and the gender that they tell; else empty."""
    lists = load_name_tables()
    titles = [w for w in _list_words(pieces, "title") if w != "the"]
    suffixes = set(_list_words(pieces, "suffix"))
    gender = next((lists.titles[w] for w in titles if lists.titles.get(w)), "")
    gender = gender or ("f" if "hanim" in suffixes else "m" if "bey" in suffixes else "")
    return next(reversed(titles), "") or min(suffixes & lists.joined, default=""), gender


def find_title_and_gender_before(text: str, start: int) -> tuple[str, str]:
    """Return the title right before ``start``, in plain form, and the gender that it tells; else empty."""
    words = text[max(0, start - 16) : start].split()[-1:] if text[start - 1 : start].isspace() else []
    bare = words[0].lstrip("([{<\"'“‘") if words else ""
    title = _fold_word(bare) if bare[:1].isupper() or bare == "the" else ""
    titles = load_name_tables().titles
    return (title, titles[title]) if title in titles else ("", "")


@cache
def _compile_kin_patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return what tells a relative before a name, and behind one."""
    words = "|".join(sorted((re.escape(w) for w in load_name_tables().kin), key=lambda w: (-len(w), w)))
    before = rf"(?i)\b(?P<kin>{words})(?P<joint>(?:['’]s)?(?:\s+names?)?\s*[,:(]|\s+(?:is|was|called|named))?\s+\(?\Z"
    owner = r"(?:his|her|my|our|their|your|the|an?|whose)\s+(?:\w+\s+)?"
    behind = rf"(?i)(?:\s*\((?:{owner})?|,\s+{owner}|\s+(?:is|was)\s+{owner})(?P<kin>{words})(?![\w-])"
    return re.compile(before), re.compile(behind)


def find_kin_gender(text: str, start: int, end: int) -> tuple[str, bool]:
    """Return the gender that a relative right before or behind a name tells, else empty, and whether that is certain.

    ``my sister Robin`` is; ``my mother, Robin`` may be two people.
    """
    before, behind = _compile_kin_patterns()
    kin = load_name_tables().kin
    around = text[max(0, start - _LONGEST_KIN) : start], text[end : end + _LONGEST_KIN]
    if kin.keys().isdisjoint(LETTERS.findall(" ".join(around).lower())):
        return "", False
    if (match := before.search(around[0])) is not None:
        return kin[match["kin"].lower()], not match["joint"] and not match["kin"].lower().startswith(_WITH_FAMILY_NAME)
    if (match := behind.match(around[1])) is not None:
        return kin[match["kin"].lower()], False
    return "", False


def find_origin_by_titles(pieces: Sequence[Piece], title_before: str) -> str:
    """Return the language of origin that the forms of address in a name, or ``title_before``, tell; else empty."""
    origins = load_name_tables().title_origins
    return next((origins[w] for w in (*_list_words(pieces, "title", "suffix"), title_before) if w in origins), "")


def find_origin_and_script(word: str) -> tuple[str, str]:
    """Return the language of origin that a word's script tells, and the script's name; both empty for Latin letters."""
    if not word or word[0] < "\u0370":
        return "", ""
    name = unicodedata.name(word[0], "").partition(" ")[0]
    origin, _, script = load_name_tables().scripts.get(name, "").partition(" ")
    return origin, script


def romanise_name(word: str) -> str:
    """Return a name in Latin letters, for look-ups; as it is where that cannot be done."""
    _, script = find_origin_and_script(word)
    return roman.romanise_name(word, script) or word if script else word


def split_hyphens(text: str) -> tuple[str, ...]:
    """Return the words that a hyphen joins, in plain form."""
    return tuple(normalize_surface(w) for w in _HYPHEN.split(text) if w)


def make_family_name_key(word: str, level: Level = Level.LETTERS) -> str:
    """Return the key of a family name: the same for its form for men and that for women."""
    lower = word.casefold()
    key = normalize_surface(word, level)
    if lower.endswith("ová") and len(key) > 5:
        return key[:-3]
    if lower.endswith("á") and len(key) > 4:
        return key[:-1] + ("i" if lower.endswith(("ská", "cká")) else "y")
    if lower.endswith(("ský", "cký")) or (key.endswith(("ska", "cka", "dzka")) and len(key) > 5):
        return key[:-1] + "i"
    if key.endswith("poulou"):
        return key[:-1] + "s"
    return key[:-1] if key.endswith(("ova", "eva")) and len(key) > 5 else key


def feminise_family_name(word: str, origin: str) -> str:
    """Return the form for women of a family name in its form for men, by its language of origin."""
    for ending, other in load_name_tables().women.get(origin, ()):
        if word.endswith(ending) and len(word) > len(ending) + 1:
            return word if other == "=" else word[: len(word) - len(ending)] + other
    return word


def is_masculine_family_name(word: str) -> bool:
    """Whether a family name is in a form that in its own language only men bear."""
    return normalize_surface(word).endswith(("ski", "cki", "dzki"))


def pluralise_name(word: str) -> str:
    """Return the plural of a family name: ``the Connors``, ``the Joneses``."""
    return word + ("es" if normalize_surface(word).endswith(("s", "x", "z", "ch", "sh")) else "s")


def read_spelled_word(surface: str) -> str:
    """Return the letters of a word of three or more that is spelled one by one, in plain form; else empty."""
    letters = [p for p in re.split(r"[\s.,\-‐‑–]+", surface.strip()) if p]
    if len(letters) < 3 or any(len(p) != 1 or not p.isalnum() for p in letters):
        return ""
    return normalize_surface("".join(letters))


def spell_like(word: str, surface: str) -> str:
    """Spell a word in the manner of ``surface``: its separators, its case."""
    letters = [c for c in unicodedata.normalize("NFC", word) if c.isalnum()]
    models = _SINGLE.findall(surface)
    before, *inner, behind = _SINGLE.split(surface)
    if len(letters) != len(models):
        inner = [max(inner, key=inner.count) if inner else " "] * (len(letters) - 1)
    out = before
    for i, letter in enumerate(letters):
        out += letter.upper() if models[min(i, len(models) - 1)].isupper() else letter.lower()
        out += inner[i] if i < len(letters) - 1 else ""
    return out + behind
