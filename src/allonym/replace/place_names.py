"""Reads the places that a surface names: by the knowledge base, and by the words that names of places are made of."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING

from allonym.replace.place_map import CODED, KINDS, PlaceMap, find_region, list_capital_ids
from allonym.replace.tables import read_toml, read_word_set
from allonym.text.names import normalize_surface

if TYPE_CHECKING:
    from allonym.kb import Item, KnowledgeBase

_KIND_OF_LABEL = {"COUNTRY": "country", "CITY": "city", "REGION": "region", "US_STATE": "region"}
_KIND_OF_LABEL["FACILITY"] = "facility"
_MOST_WORDS = 12  # words of a name that is looked at closer
_LONGEST = 300  # characters of a surface that is read at all
_BETWEEN = re.compile(r"(\s*[,;\n/()]+\s*|\s+[-–—]\s+)")
_CODE = re.compile(r"[A-Za-z]{2,3}\.?|[A-Z]\.[A-Z]\.")
_SPACE = re.compile(r"\s+")
_STREET = frozenset("street road avenue lane drive boulevard terrace crescent alley".split())
_WATERS = "river lake beach island islands falls creek bay"
_NATURE = frozenset(f"{_WATERS} valley mountain mountains hills hill forest canyon desert".split())


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a surface: words that stay, or a place.

    Attributes:
        text: as it is written. Hidden from ``repr``.
        item: the place of the knowledge base that it names.
        kind: what an unknown place is taken for; empty: the text stays.
        context: country and region where an unknown place lies, as far as the rest of the surface says so.
    """

    text: str = field(repr=False)
    item: Item | None = field(default=None, repr=False)
    kind: str = ""
    context: tuple[str, str] = ("", "")


Reading = tuple[Piece, ...]


def find_known_place(places: PlaceMap, text: str) -> Item | None:
    """Return the country, region, city or continent that a name means in this document; None where there is none."""
    item = find_place(places, text, "LOCATION")
    return item if item is not None and item.kind in ("country", "region", "city", "continent") else None


@cache
def read_aliases() -> dict[str, str]:
    """Return other names of places, in plain form, to the names that the knowledge base has."""
    return {name: normalize_surface(text) for name, text in read_toml()["places"]["aliases"].items()}


def _is_kind_word(text: str) -> bool:
    """Whether a text says no more than what sort of place something is: downtown, the airport."""
    return text in read_word_set("places", "words", "before") or text in read_word_set("places", "words", "last")


def find_place(places: PlaceMap, text: str, label: str, country: str = "", region: str = "") -> Item | None:
    """Return the place that a text names as a whole.

    Args:
        places: of the document.
        text: one name, without a list or an address around it.
        label: of the finding; that kind is preferred.
        country, region: where it must lie, as far as that is known.
    """
    bare = normalize_surface(text)
    kind = _KIND_OF_LABEL.get(label, "")
    if _CODE.fullmatch(text) and (not text.islower() or kind == "region") and (kind == "region" or country):
        code = bare.replace(".", "").upper()
        for land in (country,) if country else CODED:
            state = find_region(places.kb, land, code)
            if state is not None and land in CODED:
                return state
    without = bare.removeprefix("the ")
    if text.islower() and _is_kind_word(without):
        return None
    alias = read_aliases().get(without)
    names = (bare,) if alias is None else (bare, alias) if kind == "region" else (alias, bare)
    for name in (*names, without) if without != bare else names:
        items: Sequence[Item] = places.kb.find(name, KINDS, country, places.language)
        if name != bare and alias is None:  # the Thames is no town
            items = [i for i in items if i.kind != "city"]
        if region:
            items = [i for i in items if i.region == region]
        if items:
            return _choose_likeliest_place(places.kb, items, kind)
    return None


def _choose_likeliest_place(kb: KnowledgeBase, items: Sequence[Item], kind: str) -> Item:
    """Return of places with one name the required kind, else a continent or country, else a large town or a capital."""
    best = next((i for i in items if i.kind == kind), None)
    if best is None and not kind:
        best = next((i for i in items if i.kind in ("continent", "country")), None)
        city = next((i for i in items if i.kind == "city"), None)
        if best is None and city is not None and city.size >= 5:
            best = city if city.size >= items[0].size or city.id in list_capital_ids(kb, city.country) else None
    return best or items[0]


def read_places(places: PlaceMap, surface: str, label: str, article: bool = False) -> Reading:
    """Return the places that a surface names, and the words around them.

    Args:
        places: of the document.
        surface: as it is written.
        label: of the finding.
        article: ``the`` stands before it, so that it is no town unless one has that name.
    """
    if len(surface) > _LONGEST:
        return (Piece(surface),)
    item = find_place(places, surface, label)
    if item is not None:
        return (Piece(surface, item),)
    chunks = _BETWEEN.split(surface)
    if len(chunks) > 1:
        return _read_place_list(places, chunks, label)
    out = _read_unlisted_name(places, surface, label)
    if article and label != "CITY" and len(out) == 1 and out[0].kind == "city":
        return (replace(out[0], kind="nature"),)
    return out


def _read_place_list(places: PlaceMap, chunks: Sequence[str], label: str) -> Reading:
    """Read ``Austin, Texas, USA``: each name is looked for in what the next one means."""
    names = [i for i, chunk in enumerate(chunks) if i % 2 == 0 and chunk.strip()]
    out: list[Reading] = [(Piece(chunk),) for chunk in chunks]
    country = region = ""
    for i in reversed(names):
        chunk, first, last = chunks[i], i == names[0], i == names[-1]
        hint = label if len(names) == 1 else "REGION" if last else "CITY" if first else label
        if country or region:
            item = find_place(places, chunk, hint, country, region) or find_place(places, chunk, hint, country)
            kind = hint
        else:
            item = find_place(places, chunk, hint)
            if last and item is None and _CODE.fullmatch(chunk):
                item = find_place(places, chunk, "US_STATE")
            kind = "FACILITY" if first else label
        if item is None:
            out[i] = _read_unlisted_name(places, chunk, kind, (country, region))
            continue
        out[i] = (Piece(chunk, item),)
        if item.kind in ("country", "region") or not country:
            country, region = item.country or country, item.region if item.kind == "region" else region
    return tuple(piece for reading in out for piece in reading)


def _read_unlisted_name(places: PlaceMap, text: str, label: str, context: tuple[str, str] = ("", "")) -> Reading:
    """Read one name that the knowledge base does not have as it is written."""
    words = _SPACE.split(text.strip())
    if not 1 < len(words) <= _MOST_WORDS:
        return (_read_unknown_place(text, label, context),)
    lead = text[: len(text) - len(text.lstrip())]
    for cut in range(len(words) - 1, 0, -1):  # Austin Texas
        head, tail = " ".join(words[:cut]), " ".join(words[cut:])
        region = find_place(places, tail, "US_STATE" if _CODE.fullmatch(tail) else "REGION", *context[:1])
        if region is not None and region.kind in ("country", "region"):
            code = region.region if region.kind == "region" else ""
            city = find_place(places, head, "CITY", region.country, code)
            if city is not None and city.kind == "city":
                return (Piece(lead + head, city), Piece(" "), Piece(tail, region))
    low = [normalize_surface(w) for w in words]
    before, first, last = (read_word_set("places", "words", name) for name in ("before", "first", "last"))
    if low[0] in before or (low[0] == "the" and low[1] in before):
        cut = 1 if low[0] in before else 2
        if words[cut:]:
            return (
                Piece(lead + " ".join(words[:cut]) + " "),
                *_read_remaining_words(places, words[cut:], label, context),
            )
    if len(low) > 2 and low[1] == "of" and low[0] in read_word_set("places", "words", "of"):
        return (Piece(lead + " ".join(words[:2]) + " "), *_read_remaining_words(places, words[2:], "CITY", context))
    if low[0] in first:
        return (Piece(f"{lead}{words[0]} "), *_read_name_beside_kind_word(places, words[1:], context, "nature"))
    cut = len(low)
    while cut > 1 and low[cut - 1] in last:
        cut -= 1
    if cut < len(low):
        sort = Piece(" " + " ".join(words[cut:]))
        if low[cut] in _STREET:
            return (Piece(" ".join(words[:cut]), kind="street"), sort)
        skip = 1 if low[0] == "the" and cut > 1 else 0
        head_piece = (Piece(f"{lead}{words[0]} "),) if skip else ()
        kind = "nature" if low[cut] in _NATURE else "name"
        return (*head_piece, *_read_name_beside_kind_word(places, words[skip:cut], context, kind), sort)
    if low[0] == "the" and label != "CITY":
        article = lead + words[0] + " "
        return (Piece(article), Piece(text[len(article) :], kind="name" if label == "FACILITY" else "nature"))
    return (_read_unknown_place(text, label, context),)


def _read_remaining_words(places: PlaceMap, words: Sequence[str], label: str, context: tuple[str, str]) -> Reading:
    text = " ".join(words)
    item = find_place(places, text, label, *context)
    return (Piece(text, item),) if item is not None else _read_unlisted_name(places, text, label, context)


def _read_name_beside_kind_word(places: PlaceMap, words: Sequence[str], context: tuple[str, str], kind: str) -> Reading:
    """Read the name before or after a word such as ``Bridge``: a place's, a family's, or one without meaning."""
    for size in range(len(words), 0, -1):
        text = " ".join(words[:size])
        item = find_place(places, text, "CITY", *context[:1])
        least = 4 if size == len(words) else 5
        if item is not None and item.kind in ("city", "region", "country") and item.size >= least:
            rest = (
                (Piece(" "), *_read_name_beside_kind_word(places, words[size:], context, kind)) if words[size:] else ()
            )
            return (Piece(text, item), *rest)
    return (Piece(" ".join(words), kind=kind),)


def _read_unknown_place(text: str, label: str, context: tuple[str, str]) -> Piece:
    if _is_kind_word(normalize_surface(text)):
        return Piece(text)
    kind = _KIND_OF_LABEL.get(label, "city")
    return Piece(text, kind="name" if kind == "facility" else kind, context=context)
