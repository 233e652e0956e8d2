"""How the names of organizations are read: legal forms, words that say the sort, places, families, other words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from allonym.replace.atlas import Atlas, word_set
from allonym.replace.gazetteer import known_place
from allonym.text.names import plain

if TYPE_CHECKING:
    from allonym.kb import Item

WORD = re.compile(r"(?:[^\W\d_]\.){2,}|[^\W_]+(?:['’&][^\W_]+)*\.?|&")
"""A word of a name; initials are one word."""
_LONGEST_PLACE = 4
_WRITTEN_SMALL = frozenset("inc ltd gmbh corp limited corporation company incorporated".split())
_OF_PLACES = frozenset({"county", "city", "islands", "island"})


@dataclass(slots=True)
class Token:
    """A piece of a name: a word with its plain form, or what stands between two."""

    text: str
    plain: str
    word: bool
    legal: bool = False


@dataclass(slots=True)
class Part:
    """``sort``: kept, place, family, saint, acronym, or word (another one that tells the name)."""

    sort: str
    text: str


def tokenised(surface: str) -> list[Token]:
    out: list[Token] = []
    at = 0
    for m in WORD.finditer(surface):
        if m.start() > at:
            out.append(Token(surface[at : m.start()], "", False))
        out.append(Token(m[0], plain(m[0]).rstrip("."), True))
        at = m.end()
    if at < len(surface):
        out.append(Token(surface[at:], "", False))
    legal = word_set("organisations", "legal")
    words = [t for t in out if t.word]
    for token in reversed(words[1:]):
        if token.plain not in legal and token.plain not in ("&", "and", "co"):
            break
        token.legal = True
    return out


def parts(atlas: Atlas, tokens: Sequence[Token]) -> list[Part]:
    """The name as what stays, places, families, and other words."""
    out: list[Part] = []
    stay = word_set("organisations", "generic") | {"the"}
    legal = word_set("organisations", "legal")
    words = [i for i, t in enumerate(tokens) if t.word and not t.legal]
    amp = any(t.plain in ("&", "sons", "brothers", "bros") for t in tokens)
    formal = any(t.legal or t.plain in word_set("organisations", "family") for t in tokens)
    shouted = all(tokens[i].text.isupper() for i in words) and (
        len(words) > 1 or any(t.legal and t.text.isupper() and t.plain in _WRITTEN_SMALL for t in tokens)
    )
    done = -1
    for i, token in enumerate(tokens):
        if i <= done:
            continue
        if not token.word or token.legal or (i and token.plain in legal):
            out.append(Part("kept", token.text))
            continue
        place = _place_at(atlas, tokens, i)
        if place is not None:
            out.append(Part("place", "".join(t.text for t in tokens[i : place + 1])))
            done = place
        elif token.plain in stay or token.plain.removesuffix("'s") in stay or token.text.islower():
            out.append(Part("kept", token.text))
        elif _saint(tokens, i):
            out.append(Part("saint", token.text))
        elif token.plain in atlas.families or (
            (amp or formal or len(words) == 1 or _law(tokens)) and _is_family(atlas, token)
        ):
            out.append(Part("family", token.text))
        else:
            short = is_acronym(token.text) and len(token.plain) < 5 and not shouted
            out.append(Part("acronym" if short else "word", token.text))
    if any(p.sort == "word" for p in out) and not amp and not _law(tokens):
        for part in out:  # a family is one only where no other word tells the name
            if part.sort == "family" and plain(part.text) not in atlas.families:
                part.sort = "word"
    return out


def _law(tokens: Sequence[Token]) -> bool:
    return any(t.plain in ("llp", "attorneys", "solicitors", "chambers", "partners", "associates") for t in tokens)


def _saint(tokens: Sequence[Token], i: int) -> bool:
    before = next((t.plain for t in reversed(tokens[:i]) if t.word), "")
    return before in word_set("organisations", "saints")


def _place_at(atlas: Atlas, tokens: Sequence[Token], i: int) -> int | None:
    """Index of the last token of the place that starts at ``i``; None where none does."""
    words = [j for j in range(i, len(tokens)) if tokens[j].word and not tokens[j].legal][:_LONGEST_PLACE]
    generic = word_set("organisations", "generic")
    if tokens[i].plain == "the" or _saint(tokens, i) or tokens[i].plain in word_set("organisations", "saints"):
        return None
    for j in reversed(words):
        text = "".join(t.text for t in tokens[i : j + 1])
        if not text[:1].isupper() or len(text) < 4 or all(tokens[k].plain in generic for k in words if k <= j):
            continue
        if tokens[j].plain in ("of", "&", "and") or (tokens[j].plain in generic and tokens[j].plain not in _OF_PLACES):
            continue
        if plain(text) in atlas.cast.places or nation(atlas, text) is not None:
            return j
        item = known_place(atlas, text)
        if item is not None and (item.kind != "city" or item.size >= 5):
            return j
    return None


def nation(atlas: Atlas, text: str) -> Item | None:
    """The nationality that an adjective tells: ``American`` Airlines, ``Polish`` Railways."""
    bare = plain(text)
    for item in atlas.kb.find(text, ("nationality",)):
        labels = atlas.kb.labels(item)
        forms = {labels.get((language, "adjective"), "") for language in ("en", atlas.language)}
        if item.country and bare in {plain(form) for form in forms if form}:
            return item
    return None


def _is_family(atlas: Atlas, token: Token) -> bool:
    if len(token.plain) < 3 or token.text.isupper():
        return False
    return any(f.part == "last" and f.weight >= 5 for f in atlas.kb.name_facts(token.plain))


def is_acronym(text: str) -> bool:
    """Whether a text is one word of 2 to 6 capitals, with full stops or without."""
    letters = text.replace(".", "").replace("&", "")
    return 2 <= len(letters) <= 6 and letters.isalpha() and letters.isupper()


def form(tokens: Sequence[Token]) -> str:
    """The legal form at the end, with what parts it from the name."""
    at = next((i for i, t in enumerate(tokens) if t.legal), len(tokens))
    while 0 < at < len(tokens) and not tokens[at - 1].word:
        at -= 1
    return "".join(t.text for t in tokens[at:])


def name_words(text: str) -> tuple[str, ...]:
    return tuple(plain(w) for w in WORD.findall(text))


def telling_name(label: str) -> str:
    """An organization's name without the words that say its sort."""
    generic, legal = word_set("organisations", "generic"), word_set("organisations", "legal")
    return (
        " ".join(w for w in name_words(label) if w.rstrip(".") not in generic and w.rstrip(".") not in legal) or label
    )
