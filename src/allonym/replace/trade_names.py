"""Reads the names of organizations: legal forms, words that say the sort, places, families, other words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from allonym.replace.place_map import PlaceMap
from allonym.replace.place_names import find_known_place
from allonym.replace.tables import read_word_set
from allonym.text.names import normalize_surface

if TYPE_CHECKING:
    from allonym.kb import Item

WORD = re.compile(r"(?:[^\W\d_]\.){2,}|[^\W_]+(?:['’&][^\W_]+)*\.?|&")
"""A word of a name; initials are one word."""
_LONGEST_PLACE = 4  # words
_WRITTEN_SMALL = frozenset("inc ltd gmbh corp limited corporation company incorporated".split())
_OF_PLACES = frozenset({"county", "city", "islands", "island"})
_LAW = frozenset("llp attorneys solicitors chambers partners associates".split())


@dataclass(slots=True)
class Token:
    """A word of a name with its plain form, or what stands between two words; ``legal``: part of the legal form."""

    text: str
    plain: str
    word: bool
    legal: bool = False


@dataclass(slots=True)
class Part:
    """A part of a name; ``sort``: fixed, place, family, saint, acronym, or word (another one that tells the name)."""

    sort: str
    text: str


def tokenise_name(surface: str) -> list[Token]:
    """Divide a name into words and what stands between them; the legal form at the end is marked."""
    out: list[Token] = []
    position = 0
    for match in WORD.finditer(surface):
        if match.start() > position:
            out.append(Token(surface[position : match.start()], "", False))
        out.append(Token(match[0], normalize_surface(match[0]).rstrip("."), True))
        position = match.end()
    if position < len(surface):
        out.append(Token(surface[position:], "", False))
    legal = read_word_set("organisations", "legal") | {"&", "and", "co"}
    for token in reversed([t for t in out if t.word][1:]):
        if token.plain not in legal:
            break
        token.legal = True
    return out


def find_name_parts(places: PlaceMap, tokens: Sequence[Token]) -> list[Part]:
    """Divide a name into what stays, places, families, and other words."""
    out: list[Part] = []
    fixed = read_word_set("organisations", "generic") | {"the"}
    legal = read_word_set("organisations", "legal")
    words = [i for i, t in enumerate(tokens) if t.word and not t.legal]
    joined = any(t.plain in ("&", "sons", "brothers", "bros") for t in tokens)
    formal = any(t.legal or t.plain in read_word_set("organisations", "family") for t in tokens)
    law = any(t.plain in _LAW for t in tokens)
    may_be_family = joined or formal or law or len(words) == 1
    form_shouts = any(t.legal and t.text.isupper() and t.plain in _WRITTEN_SMALL for t in tokens)
    shouted = all(tokens[i].text.isupper() for i in words) and (len(words) > 1 or form_shouts)
    end = 0
    for i, token in enumerate(tokens):
        if i < end:
            continue
        if not token.word or token.legal or (i and token.plain in legal):
            sort = "fixed"
        elif (place_end := _find_place_end(places, tokens, i)) is not None:
            end = place_end
            out.append(Part("place", "".join(t.text for t in tokens[i:end])))
            continue
        elif token.plain in fixed or token.plain.removesuffix("'s") in fixed or token.text.islower():
            sort = "fixed"
        elif _follows_saint(tokens, i):
            sort = "saint"
        elif token.plain in places.families or (may_be_family and _is_family_name(places, token)):
            sort = "family"
        else:
            sort = "acronym" if is_acronym(token.text) and len(token.plain) < 5 and not shouted else "word"
        out.append(Part(sort, token.text))
    if any(p.sort == "word" for p in out) and not joined and not law:
        for part in out:  # a family is one only where no other word tells the name
            if part.sort == "family" and normalize_surface(part.text) not in places.families:
                part.sort = "word"
    return out


def _follows_saint(tokens: Sequence[Token], i: int) -> bool:
    before = next((t.plain for t in reversed(tokens[:i]) if t.word), "")
    return before in read_word_set("organisations", "saints")


def _find_place_end(places: PlaceMap, tokens: Sequence[Token], i: int) -> int | None:
    """Return the index behind the place that starts at ``i``; None where none does."""
    words = [j for j in range(i, len(tokens)) if tokens[j].word and not tokens[j].legal][:_LONGEST_PLACE]
    generic = read_word_set("organisations", "generic")
    if _follows_saint(tokens, i) or tokens[i].plain in read_word_set("organisations", "saints") | {"the"}:
        return None
    for j in reversed(words):
        text, last = "".join(t.text for t in tokens[i : j + 1]), tokens[j].plain
        if not text[:1].isupper() or len(text) < 4 or all(tokens[k].plain in generic for k in words if k <= j):
            continue
        if last in ("of", "&", "and") or (last in generic and last not in _OF_PLACES):
            continue
        is_known = normalize_surface(text) in places.cast.places or find_nationality(places, text) is not None
        if is_known or is_large_place(places, text):
            return j + 1
    return None


def is_large_place(places: PlaceMap, text: str) -> bool:
    """Whether a text names a place that a name may hold: no small town, for many words are names of one."""
    item = find_known_place(places, text)
    return item is not None and (item.kind != "city" or item.size >= 5)


def find_nationality(places: PlaceMap, text: str) -> Item | None:
    """Return the nationality that an adjective tells: ``American`` Airlines, ``Polish`` Railways."""
    bare = normalize_surface(text)
    for item in places.kb.find(text, ("nationality",)):
        labels = places.kb.labels(item)
        forms = (labels.get((language, "adjective"), "") for language in ("en", places.language))
        if item.country and any(form and normalize_surface(form) == bare for form in forms):
            return item
    return None


def _is_family_name(places: PlaceMap, token: Token) -> bool:
    if len(token.plain) < 3 or token.text.isupper():
        return False
    return any(f.part == "last" and f.weight >= 5 for f in places.kb.name_facts(token.plain))


def is_acronym(text: str) -> bool:
    """Whether a text is one word of 2 to 6 capitals, with full stops or without."""
    letters = text.replace(".", "").replace("&", "")
    return 2 <= len(letters) <= 6 and letters.isalpha() and letters.isupper()


def get_legal_form(tokens: Sequence[Token]) -> str:
    """Return the legal form at the end, with what parts it from the name."""
    start = next((i for i, t in enumerate(tokens) if t.legal), len(tokens))
    while 0 < start < len(tokens) and not tokens[start - 1].word:
        start -= 1
    return "".join(t.text for t in tokens[start:])


def list_name_words(text: str) -> tuple[str, ...]:
    """Return the words of a name in plain form."""
    return tuple(normalize_surface(w) for w in WORD.findall(text))


def get_distinctive_organisation_name(label: str) -> str:
    """Return an organization's name without the words that say its sort."""
    common = read_word_set("organisations", "generic") | read_word_set("organisations", "legal")
    return " ".join(w for w in list_name_words(label) if w.rstrip(".") not in common) or label
