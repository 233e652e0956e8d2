"""Pseudonyms of places: another of the same kind, where its country goes; see :mod:`allonym.replace.atlas`.

Surfaces keep their form: ``Austin, TX`` becomes ``Dayton, OH``, ``NORTH LONDON`` becomes ``NORTH LEEDS``, ``the U.S.``
becomes ``the U.K.``. A place that the knowledge base does not have is read by its words: ``Gdansk Hospital`` follows
Gdansk, ``Johnson Bridge`` the family, and ``Gorse Hill Park`` gets another name before ``Park``. Other unknown places
become cities, regions or countries as their label says. Words in lower case that name nothing are left to a tag.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from allonym.replace import coordinates, postal
from allonym.replace.atlas import CODED, Atlas, listed, patterns, telling, word_set
from allonym.replace.cast import Cast, Renderer
from allonym.replace.gazetteer import Piece, Reading, aliases, find, read
from allonym.replace.mention import Wanted
from allonym.text.names import plain

if TYPE_CHECKING:
    from allonym.kb import Item


_ROAD = re.compile(r"[A-Z]{1,3}[ -]?\d+[A-Za-z]?")  # A350, I-95


def recast(cast: Cast, wanted: Sequence[Wanted]) -> dict[str, Renderer]:
    """What stands for each place.

    Args:
        cast: of the document; ``cast.places`` is filled with the substitutes.
        wanted: the entities of the family LOCATION, in reading order.

    Returns:
        Entity key to what renders its surfaces.
    """
    atlas = Atlas.of(cast)
    readings: dict[tuple[str, str], Reading] = {}
    plainly = [w for w in wanted if _sort(w, atlas) == "place"]
    for one in plainly:
        for surface in one.surfaces:
            if (one.entity.label, surface) not in readings:
                readings[one.entity.label, surface] = read(atlas, surface, one.entity.label, _article(cast, one))
    _locate(atlas, readings, wanted)
    atlas.name([piece.item for reading in readings.values() for piece in reading if piece.item is not None])
    for reading in readings.values():
        for piece in reading:  # countries first: their places follow them
            if piece.item is not None and piece.item.kind == "country":
                atlas.substitute(piece.item)
    out: dict[str, Renderer] = {}
    for one in wanted:
        sort, label = _sort(one, atlas), one.entity.label
        if sort == "place":
            out[one.entity.key] = _Places(atlas, label, readings)
            for surface in one.surfaces:
                out[one.entity.key](surface)
        elif sort == "address":
            out[one.entity.key] = _addresses(atlas)
        elif sort == "postcode":
            out[one.entity.key] = _postcodes(atlas, label)
        else:
            out[one.entity.key] = _coordinates(atlas)
    return out


def _article(cast: Cast, one: Wanted) -> bool:
    """Whether ``the`` stands before the first mention: what is unknown then is no town."""
    start = one.entity.spans[0].start
    return cast.setting.document.text[max(0, start - 4) : start].lower() == "the "


def _sort(one: Wanted, atlas: Atlas) -> str:
    lineage = atlas.cast.setting.policy.taxonomy.lineage(one.entity.label)
    if "STREET_ADDRESS" in lineage:
        return "address"
    if "POSTAL_CODE" in lineage:
        return "postcode"
    if "LOCATION_COORDINATES" in lineage:
        return "coordinates"
    first = one.surfaces[0] if one.surfaces else ""
    if coordinates.are(first):
        return "coordinates"
    if any(c.isdigit() for c in first):
        if postal.is_postcode(first):
            return "postcode"
        if postal.is_address(first):
            return "address"
    return "place"


@dataclass(frozen=True, slots=True)
class _Places:
    atlas: Atlas = field(repr=False)
    label: str
    readings: dict[tuple[str, str], Reading] = field(repr=False)

    def __call__(self, surface: str) -> str | None:
        known = self.readings.get((self.label, surface))
        if known is None:
            known = self.readings[self.label, surface] = read(self.atlas, surface, self.label)
        return render(self.atlas, known)


def _addresses(atlas: Atlas) -> Renderer:
    return lambda surface: postal.address(atlas, surface, lambda text, hint: shown(atlas, text, hint))


def _postcodes(atlas: Atlas, label: str) -> Renderer:
    return lambda surface: postal.postcode(atlas, surface, label)


def _coordinates(atlas: Atlas) -> Renderer:
    return lambda surface: coordinates.moved(atlas, surface)


def shown(atlas: Atlas, text: str, label: str = "LOCATION") -> str | None:
    """What stands for a place that is part of something else, such as an address or a company."""
    return render(atlas, read(atlas, text, label))


def _locate(atlas: Atlas, readings: dict[tuple[str, str], Reading], wanted: Sequence[Wanted]) -> None:
    """The document's countries, its main one, and with them a second look at names that several places share."""
    named = {
        piece.item.country
        for reading in readings.values()
        for piece in reading
        if piece.item is not None and piece.item.kind in ("country", "region")
    }
    for (label, surface), reading in readings.items():
        if len(reading) == 1 and (item := reading[0].item) is not None and item.country not in named:
            others = atlas.kb.find(plain(surface), (item.kind,))
            better = next((o for o in others if o.country in named and o.size == item.size), None)
            if better is not None:
                readings[label, surface] = (replace(reading[0], item=better),)
    found = [piece.item.country for reading in readings.values() for piece in reading if piece.item is not None]
    atlas.settle([*found, *_of_addresses(atlas, wanted)], wanted)


def _of_addresses(atlas: Atlas, wanted: Sequence[Wanted]) -> list[str]:
    """The countries that the cities of addresses lie in."""
    out = []
    for one in wanted:
        if _sort(one, atlas) == "address":
            for part in re.split(r"[,;\n]", one.surfaces[0])[1:]:
                item = find(atlas, part.strip(" 0123456789-"), "CITY")
                out += [item.country] if item is not None and item.country else []
    return out


# Writing


def render(atlas: Atlas, reading: Reading) -> str | None:
    """The surface with each place's substitute in its place; None where one of them has none."""
    out = ""
    for piece in reading:
        if piece.item is not None:
            text = _played(atlas, piece.item, piece.text)
        elif piece.kind:
            text = _made(atlas, piece)
        else:
            text = piece.text
        if text is None:
            return None
        out += text
    return out if any(p.item is not None or p.kind for p in reading) else None


def recased(model: str, text: str) -> str:
    """``text`` in capitals or small letters where ``model`` is; abbreviations of three letters are no model."""
    letters = [c for c in model if c.isalpha()]
    if len(letters) > 3 and all(c.isupper() for c in letters):
        return text.upper()
    if letters and all(c.islower() for c in letters):
        return text.lower()
    return text


def _played(atlas: Atlas, item: Item, surface: str) -> str | None:
    if not atlas.plays(item):
        return None
    other = atlas.substitute(item)
    if other is None:
        return None
    core = surface.strip()
    atlas.cast.places.setdefault(plain(surface), other)
    if other.kind == "country":
        return surface.replace(core, _country(atlas, other, core))
    if item.kind == "region" and _is_code(core, item):
        name = other.region if other.country in CODED else atlas.kb.label(other, atlas.language)
        if core.islower():
            name = name.lower()
        return surface.replace(core, ".".join(name) + "." if "." in core[:-1] and len(name) < 3 else name)
    name = atlas.kb.label(other, _language(atlas, item, core))
    if core[:4].lower() == "the " and len(core) > 4 and other.kind in ("natural", "facility", "region"):
        name = core[:4] + name.removeprefix("the ").removeprefix("The ")
    text = recased(core, name)
    return surface.replace(core, text)


def _is_code(text: str, item: Item) -> bool:
    return text.replace(".", "").upper() == item.region and plain(text) != plain(item.label)


def _language(atlas: Atlas, item: Item, surface: str) -> str:
    """The language in which a surface names a place: the policy's, else one that calls it so, else English."""
    kb, bare = atlas.kb, plain(surface)
    if bare == plain(kb.label(item, atlas.language)) or bare == plain(item.label):
        return atlas.language
    named = sorted(language for (language, form), text in kb.labels(item).items() if not form and plain(text) == bare)
    if named:  # Italia: Italian before Spanish
        return min(named, key=lambda language: (language != item.country.lower(), language))
    return atlas.language


def _country(atlas: Atlas, item: Item, surface: str) -> str:
    """A country's name in the form of a surface that names another: ``U.S.``, ``USA``, ``America``, ``the U.S.``."""
    english = atlas.language == "en"
    article = surface[:4].lower() == "the " and len(surface) > 4
    core = surface[4:] if article else surface
    short, bare = patterns()["places"]["short"].get(item.country, ("", ""))
    takes = item.country in word_set("places", "article") and english
    letters = core.replace(".", "")
    if letters.isalpha() and len(letters) <= 3 and (short or letters.isupper()):
        if short:
            name = ".".join(short) + "." if "." in core[:-1] else short
            name = name.lower() if core.islower() else name
        else:
            name = atlas.kb.label(item, atlas.language)
    else:
        source = atlas.kb.find(aliases().get(plain(core), plain(core)), ("country",))
        language = _language(atlas, source[0], core) if source else atlas.language
        name = atlas.kb.label(item, language)
        if takes and not article and _stands_alone(core):
            name = bare or f"the {name}"
        name = recased(core, name)
    if article and takes:
        return surface[:4] + name
    return name


def _stands_alone(name: str) -> bool:
    """Whether a country's name has no article where the usual one has: America, Britain."""
    return plain(name) in ("america", "britain", "great britain", "holland", "czechia")


def _made(atlas: Atlas, piece: Piece) -> str | None:
    """A substitute for a place that the knowledge base does not have."""
    text = piece.text.strip()
    bare = plain(text)
    if not any(c.isalpha() for c in text) or _ROAD.fullmatch(text):
        return postal.digits(atlas, "number", text) if any(c.isdigit() for c in text) else None
    if text.islower() and piece.kind != "city":
        return None
    if piece.kind in ("city", "region", "country") and any(c.isdigit() for c in text):
        return None  # no place is called so
    country, region = piece.context
    country = country or atlas.home
    name: str | None = None
    if piece.kind in ("name", "nature"):
        name = _family(atlas, text) if piece.kind == "name" else None
        name = name or given_name(atlas, text)
    elif piece.kind == "street":
        name = postal.street_name(atlas, text, "en")
    elif piece.kind == "country":
        item = atlas.assign("country name", bare, [[c for c in atlas.kb.pool("country") if c.size >= 6]])
        name = item and atlas.kb.label(item, atlas.language)
    elif piece.kind == "region":
        to = atlas.country(country)
        item = atlas.assign("region", f"{bare}>{to}", [atlas.kb.pool("region", country=to)])
        name = item and atlas.kb.label(item, atlas.language)
    elif text.islower() and atlas.cast.setting.document.text[:400] != atlas.cast.setting.document.text[:400].lower():
        return None
    else:
        item = atlas.city(bare, country, region)
        if item is not None:
            atlas.cast.places.setdefault(bare, item)
        name = item and atlas.kb.label(item, atlas.language)
    return piece.text.replace(text, recased(text, name)) if name else None


def _family(atlas: Atlas, text: str) -> str | None:
    """What stands for a family's name in a place's: ``Johnson`` of ``Johnson Bridge``."""
    if " " in text or not any(f.part == "last" and f.weight >= 20 for f in atlas.kb.name_facts(text)):
        return None
    from allonym.replace.people import family_name

    return family_name(atlas.cast, text)


def given_name(atlas: Atlas, text: str) -> str | None:
    """A name without a past for a building, a square and the like."""
    key = plain(text)
    stems, endings = listed("places", "words", "stems"), listed("places", "words", "endings")

    def propose(attempt: int) -> str:
        number, at = divmod(atlas.cast.ledger.number("place name", key, attempt), len(stems))
        return stems[at] + endings[number % len(endings)]

    return atlas.cast.ledger.assign("place name", key, propose, telling=telling)
