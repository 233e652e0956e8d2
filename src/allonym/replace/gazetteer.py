"""Which places a surface names: by the knowledge base, and by the words that names of places are made of."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING

from allonym.replace.atlas import CODED, KINDS, Atlas, capital, patterns, region_item, word_set
from allonym.text.names import plain

if TYPE_CHECKING:
    from allonym.kb import Item, KnowledgeBase

_WANTED = {"COUNTRY": "country", "CITY": "city", "REGION": "region", "US_STATE": "region", "FACILITY": "facility"}
_LONGEST = 12
"""Words of a name that is looked at closer."""
_MOST = 300
"""Characters of a surface that is read at all."""
_BETWEEN = re.compile(r"(\s*[,;\n/()]+\s*|\s+[-–—]\s+)")
_CODE = re.compile(r"[A-Za-z]{2,3}\.?|[A-Z]\.[A-Z]\.")
_SPACE = re.compile(r"\s+")
_STREET = frozenset("street road avenue lane drive boulevard terrace crescent alley".split())
_NATURE = frozenset(
    "river lake beach valley island islands mountain mountains hills hill falls creek bay forest canyon desert".split()
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a surface: words that stay, or a place.

    Attributes:
        text: as it stands there. Hidden from ``repr``.
        item: the place of the knowledge base that it names.
        kind: what an unknown place is taken for; empty: the text stays.
        context: country and region where an unknown place lies, as far as the rest of the surface says so.
    """

    text: str = field(repr=False)
    item: Item | None = field(default=None, repr=False)
    kind: str = ""
    context: tuple[str, str] = ("", "")


Reading = tuple[Piece, ...]


def known_place(atlas: Atlas, text: str) -> Item | None:
    """The country, region, city or continent that a name means in this document; None where there is none."""
    found = find(atlas, text, "LOCATION")
    return found if found is not None and found.kind in ("country", "region", "city", "continent") else None


@cache
def aliases() -> dict[str, str]:
    return {name: plain(text) for name, text in patterns()["places"]["aliases"].items()}


def find(atlas: Atlas, text: str, label: str, country: str = "", region: str = "") -> Item | None:
    """The place that a text names as a whole.

    Args:
        text: one name, without a list or an address around it.
        label: what the detectors took it for; that kind is preferred.
        country, region: where it must lie, as far as that is known.
    """
    bare = plain(text)
    code = bare.replace(".", "").upper()
    kind = _WANTED.get(label, "")
    if _CODE.fullmatch(text) and (not text.islower() or kind == "region"):
        for land in (country,) if country else CODED:
            state = region_item(atlas.kb, land, code) if kind == "region" or country else None
            if state is not None and land in CODED:
                return state
    without = bare.removeprefix("the ")
    if text.islower() and without in word_set("places", "words", "before") | word_set("places", "words", "last"):
        return None
    alias = aliases().get(without)
    names = (bare,) if alias is None else (bare, alias) if kind == "region" else (alias, bare)
    for name in (*names, without) if without != bare else names:
        found: Sequence[Item] = atlas.kb.find(name, KINDS, country, atlas.language)
        if name != bare and alias is None:  # the Thames is no town
            found = [i for i in found if i.kind != "city"]
        if region:
            found = [i for i in found if i.region == region]
        if found:
            return _likeliest(atlas.kb, found, kind)
    return None


def _likeliest(kb: KnowledgeBase, found: Sequence[Item], kind: str) -> Item:
    """Of what bears one name: the wanted kind, else a continent or country, else a town that is large or a capital."""
    wanted = next((i for i in found if i.kind == kind), None)
    if wanted is None and not kind:
        wanted = next((i for i in found if i.kind in ("continent", "country")), None)
        city = next((i for i in found if i.kind == "city"), None)
        if wanted is None and city is not None and city.size >= 5:
            wanted = city if city.size >= found[0].size or capital(kb, city.country, city.id) else None
    return wanted or found[0]


def read(atlas: Atlas, surface: str, label: str, article: bool = False) -> Reading:
    """The places that a surface names, and the words around them.

    Args:
        atlas: of the document.
        surface: as it stands there.
        label: what the detectors took it for.
        article: ``the`` stands before it, so that it is no town unless one has that name.
    """
    if len(surface) > _MOST:
        return (Piece(surface),)
    whole = find(atlas, surface, label)
    if whole is not None:
        return (Piece(surface, whole),)
    chunks = _BETWEEN.split(surface)
    if len(chunks) > 1:
        return _list(atlas, chunks, label)
    out = _words(atlas, surface, label)
    if article and label != "CITY" and len(out) == 1 and out[0].kind == "city":
        return (replace(out[0], kind="nature"),)
    return out


def _list(atlas: Atlas, chunks: Sequence[str], label: str) -> Reading:
    """``Austin, Texas, USA``: each name is looked for in what the next one means."""
    names = [i for i, chunk in enumerate(chunks) if i % 2 == 0 and chunk.strip()]
    out: list[Piece] = [Piece(chunk) for chunk in chunks]
    country = region = ""
    whole: list[tuple[int, Reading]] = []
    for place, i in enumerate(reversed(names)):
        chunk, last = chunks[i], place == 0
        hint = label if i == names[0] and len(names) == 1 else "REGION" if last else "CITY" if i == names[0] else label
        item = None
        if country or region:
            item = find(atlas, chunk, hint, country, region) or find(atlas, chunk, hint, country)
            if item is None:
                whole.append((i, _words(atlas, chunk, hint, (country, region))))
        else:
            item = find(atlas, chunk, hint)
            if last and item is None and _CODE.fullmatch(chunk):
                item = find(atlas, chunk, "US_STATE")
            if item is None:
                whole.append((i, _words(atlas, chunk, "FACILITY" if i == names[0] else label)))
        if item is not None:
            out[i] = Piece(chunk, item)
            if item.kind in ("country", "region") or not country:
                country, region = item.country or country, item.region if item.kind == "region" else region
    for i, reading in sorted(whole, reverse=True):
        out[i : i + 1] = reading
    return tuple(out)


def _words(atlas: Atlas, text: str, label: str, context: tuple[str, str] = ("", "")) -> Reading:
    """One name that the knowledge base does not have as it stands."""
    words = _SPACE.split(text.strip())
    lead = text[: len(text) - len(text.lstrip())]
    if 1 < len(words) <= _LONGEST:
        for at in range(len(words) - 1, 0, -1):  # Austin Texas
            tail = " ".join(words[at:])
            region = find(atlas, tail, "US_STATE" if _CODE.fullmatch(tail) else "REGION", *context[:1])
            if region is not None and region.kind in ("country", "region"):
                held = region.region if region.kind == "region" else ""
                city = find(atlas, " ".join(words[:at]), "CITY", region.country, held)
                if city is not None and city.kind == "city":
                    return (Piece(lead + " ".join(words[:at]), city), Piece(" "), Piece(tail, region))
        low = [plain(w) for w in words]
        before, first, last = (word_set("places", "words", name) for name in ("before", "first", "last"))
        if low[0] in before or (low[0] == "the" and low[1] in before):
            cut = 1 if low[0] in before else 2
            rest = " ".join(words[cut:])
            if rest:
                return (Piece(lead + " ".join(words[:cut]) + " "), *_inner(atlas, rest, label, context))
        if len(low) > 2 and low[1] == "of" and low[0] in word_set("places", "words", "of"):
            return (Piece(lead + " ".join(words[:2]) + " "), *_inner(atlas, " ".join(words[2:]), "CITY", context))
        if low[0] in first:
            return (Piece(f"{lead}{words[0]} "), *_named(atlas, words[1:], context, nature=True))
        cut = len(low)
        while cut > 1 and low[cut - 1] in last:
            cut -= 1
        if cut < len(low):
            kept = " " + " ".join(words[cut:])
            skip = 1 if low[0] == "the" and cut > 1 else 0
            if low[cut] in _STREET:
                return (Piece(" ".join(words[:cut]), kind="street"), Piece(kept))
            nature = low[cut] in _NATURE
            head = (Piece(f"{lead}{words[0]} "),) if skip else ()
            return (*head, *_named(atlas, words[skip:cut], context, nature), Piece(kept))
        if low[0] == "the" and label != "CITY":
            stays = lead + words[0] + " "
            return (Piece(stays), Piece(text[len(stays) :], kind="name" if label == "FACILITY" else "nature"))
    return (_unknown(text, label, context),)


def _inner(atlas: Atlas, text: str, label: str, context: tuple[str, str]) -> Reading:
    item = find(atlas, text, label, *context)
    return (Piece(text, item),) if item is not None else _words(atlas, text, label, context)


def _named(atlas: Atlas, words: Sequence[str], context: tuple[str, str], nature: bool) -> Reading:
    """The name before or after a word such as ``Bridge``: a place's, a family's, or one without meaning."""
    text = " ".join(words)
    for size in range(len(words), 0, -1):
        item = find(atlas, " ".join(words[:size]), "CITY", *context[:1])
        least = 4 if size == len(words) else 5
        if item is not None and item.kind in ("city", "region", "country") and item.size >= least:
            rest = " ".join(words[size:])
            piece = Piece(" ".join(words[:size]), item)
            return (piece, Piece(" "), *_named(atlas, words[size:], context, nature)) if rest else (piece,)
    return (Piece(text, kind="nature" if nature else "name"),)


def _unknown(text: str, label: str, context: tuple[str, str]) -> Piece:
    if plain(text) in word_set("places", "words", "before") | word_set("places", "words", "last"):
        return Piece(text)  # downtown, the airport
    kind = _WANTED.get(label, "city")
    return Piece(text, kind="name" if kind == "facility" else kind, context=context)
