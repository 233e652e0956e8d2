"""Pseudonyms of places: another of the same kind, where its country goes; see :mod:`allonym.replace.place_map`.

Surfaces keep their form: ``Austin, TX`` becomes ``Dayton, OH``, ``NORTH LONDON`` becomes ``NORTH LEEDS``, ``the U.S.``
becomes ``the U.K.``. A place that the knowledge base does not have is read by its words: ``Gdansk Hospital`` follows
Gdansk, ``Johnson Bridge`` the family, and ``Gorse Hill Park`` gets another name before ``Park``. Other unknown places
become cities, regions or countries as their label says. Words in lower case that name nothing are left to a tag.

Coordinates move by up to two degrees, as exact as they were; all points of one degree move by the same amount, so that
near points stay near.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from allonym.document import splice_text
from allonym.replace import postal
from allonym.replace.cast import Cast, Renderer
from allonym.replace.mention import Wanted
from allonym.replace.people import choose_family_name
from allonym.replace.place_map import CODED, PlaceMap, get_distinctive_place_name, open_place_map
from allonym.replace.place_names import Piece, Reading, find_place, read_aliases, read_places
from allonym.replace.postal import change_digits
from allonym.replace.tables import list_words, read_toml, read_word_set
from allonym.replace.wording import match_capitals
from allonym.text.names import normalize_surface

if TYPE_CHECKING:
    from allonym.kb import Item

Readings = dict[tuple[str, str], Reading]
"""Label and surface of places to what they name."""
_ROAD = re.compile(r"[A-Z]{1,3}[ -]?\d+[A-Za-z]?")  # A350, I-95


def make_renderers(cast: Cast, targets: Sequence[Wanted]) -> dict[str, Renderer]:
    """Choose pseudonyms of places.

    Args:
        cast: of the document; ``cast.places`` is filled with the pseudonyms.
        targets: the entities of the family LOCATION, in reading order.

    Returns:
        Entity key to what renders its surfaces.
    """
    places = open_place_map(cast)
    readings: Readings = {}
    kinds = [_find_target_kind(cast, target) for target in targets]
    for target, kind in zip(targets, kinds, strict=True):
        label, start = target.entity.label, target.entity.spans[0].start
        article = cast.text[max(0, start - 4) : start].lower() == "the "
        for surface in target.surfaces if kind == "place" else ():
            if (label, surface) not in readings:
                readings[label, surface] = read_places(places, surface, label, article)
    addresses = [target for target, kind in zip(targets, kinds, strict=True) if kind == "address"]
    _set_document_countries(places, readings, addresses, targets)
    items = [piece.item for reading in readings.values() for piece in reading if piece.item is not None]
    places.add_named_places(items)
    for item in items:  # countries first: their places follow them
        if item.kind == "country":
            places.choose_place(item)
    out: dict[str, Renderer] = {}
    for target, kind in zip(targets, kinds, strict=True):
        key, label = target.entity.key, target.entity.label
        if kind == "place":
            render = out[key] = partial(_render_listed_place, places, readings, label)
            for surface in target.surfaces:
                render(surface)
        elif kind == "address":
            out[key] = partial(postal.rewrite_address, places, partial(render_place, places))
        elif kind == "postcode":
            out[key] = partial(postal.choose_postcode, places, label=label)
        else:
            out[key] = partial(move_coordinates, places)
    return out


def _find_target_kind(cast: Cast, target: Wanted) -> str:
    """Return how a target is read: as an ``address``, ``postcode``, ``coordinates`` or ``place``."""
    lineage = cast.get_lineage(target)
    labels = {"STREET_ADDRESS": "address", "POSTAL_CODE": "postcode", "LOCATION_COORDINATES": "coordinates"}
    for label, kind in labels.items():
        if label in lineage:
            return kind
    first = target.surfaces[0] if target.surfaces else ""
    if is_coordinates(first):
        return "coordinates"
    if any(c.isdigit() for c in first):
        return "postcode" if postal.is_postcode(first) else "address" if postal.is_street_address(first) else "place"
    return "place"


def _render_listed_place(places: PlaceMap, readings: Readings, label: str, surface: str) -> str | None:
    if (label, surface) not in readings:
        readings[label, surface] = read_places(places, surface, label)
    return _render_reading(places, readings[label, surface])


def render_place(places: PlaceMap, text: str, label: str = "LOCATION") -> str | None:
    """Return the pseudonym of a place that is part of something else, such as an address or a company."""
    return _render_reading(places, read_places(places, text, label))


def _set_document_countries(
    places: PlaceMap, readings: Readings, addresses: Sequence[Wanted], targets: Sequence[Wanted]
) -> None:
    """Find the document's countries, and with them read again the names that several places share."""
    items = [piece.item for reading in readings.values() for piece in reading]
    countries = {item.country for item in items if item is not None and item.kind in ("country", "region")}
    for key, reading in readings.items():
        if len(reading) == 1 and (item := reading[0].item) is not None and item.country not in countries:
            others = places.kb.find(normalize_surface(key[1]), (item.kind,))
            better = next((o for o in others if o.country in countries and o.size == item.size), None)
            if better is not None:
                readings[key] = (replace(reading[0], item=better),)
    codes = [piece.item.country for reading in readings.values() for piece in reading if piece.item is not None]
    for target in addresses:
        for part in re.split(r"[,;\n]", target.surfaces[0])[1:]:
            city = find_place(places, part.strip(" 0123456789-"), "CITY")
            codes += [city.country] if city is not None else []
    places.set_countries(codes, targets)


# Writing


def _render_reading(places: PlaceMap, reading: Reading) -> str | None:
    """Return the surface with the pseudonym of each of its places; None where one of them has none."""
    texts = []
    for piece in reading:
        text: str | None = piece.text
        if piece.item is not None:
            text = _render_known_place(places, piece.item, piece.text)
        elif piece.kind:
            text = _render_unknown_place(places, piece)
        if text is None:
            return None
        texts.append(text)
    return "".join(texts) if any(p.item is not None or p.kind for p in reading) else None


def _render_known_place(places: PlaceMap, item: Item, surface: str) -> str | None:
    other = places.choose_place(item) if places.is_replaced(item) else None
    if other is None:
        return None
    core = surface.strip()
    places.cast.places.setdefault(normalize_surface(surface), other)
    is_code = core.replace(".", "").upper() == item.region and normalize_surface(core) != normalize_surface(item.label)
    if other.kind == "country":
        name = _render_country(places, other, core)
    elif item.kind == "region" and is_code:
        name = other.region if other.country in CODED else places.kb.label(other, places.language)
        name = name.lower() if core.islower() else name
        name = ".".join(name) + "." if "." in core[:-1] and len(name) < 3 else name
    else:
        name = places.kb.label(other, _find_name_language(places, item, core))
        if core[:4].lower() == "the " and len(core) > 4 and other.kind in ("natural", "facility", "region"):
            name = core[:4] + name.removeprefix("the ").removeprefix("The ")
        name = match_capitals(name, core)
    return surface.replace(core, name)


def _find_name_language(places: PlaceMap, item: Item, surface: str) -> str:
    """Return the language in which a surface names a place: the policy's, else one that calls it so, else English."""
    kb, bare = places.kb, normalize_surface(surface)
    if bare == normalize_surface(kb.label(item, places.language)) or bare == normalize_surface(item.label):
        return places.language
    names = [(language, text) for (language, form), text in kb.labels(item).items() if not form]
    languages = [language for language, text in names if normalize_surface(text) == bare]
    # Italia: Italian before Spanish
    return min(languages, key=lambda language: (language != item.country.lower(), language), default=places.language)


def _render_country(places: PlaceMap, item: Item, surface: str) -> str:
    """Return a country's name in the form of a surface that names another: ``U.S.``, ``America``, ``the U.S.``."""
    article = surface[:4].lower() == "the " and len(surface) > 4
    core = surface[4:] if article else surface
    short, bare = read_toml()["places"]["short"].get(item.country, ("", ""))
    takes_article = item.country in read_word_set("places", "article") and places.language == "en"
    letters = core.replace(".", "")
    if letters.isalpha() and len(letters) <= 3 and (short or letters.isupper()):
        if short:
            name = ".".join(short) + "." if "." in core[:-1] else short
            name = name.lower() if core.islower() else name
        else:
            name = places.kb.label(item, places.language)
    else:
        source = places.kb.find(read_aliases().get(normalize_surface(core), normalize_surface(core)), ("country",))
        name = places.kb.label(item, _find_name_language(places, source[0], core) if source else places.language)
        if takes_article and not article and normalize_surface(core) in _WITHOUT_ARTICLE:
            name = bare or f"the {name}"
        name = match_capitals(name, core)
    return surface[:4] + name if article and takes_article else name


_WITHOUT_ARTICLE = ("america", "britain", "great britain", "holland", "czechia")
"""Names of countries without an article, where the usual name has one."""


def _render_unknown_place(places: PlaceMap, piece: Piece) -> str | None:
    """Return the pseudonym of a place that the knowledge base does not have."""
    text = piece.text.strip()
    bare = normalize_surface(text)
    if not any(c.isalpha() for c in text) or _ROAD.fullmatch(text):
        return postal.change_digits(places, "number", text) if any(c.isdigit() for c in text) else None
    if text.islower() and piece.kind != "city":
        return None
    if piece.kind in ("city", "region", "country") and any(c.isdigit() for c in text):
        return None  # no place is called so
    country = piece.context[0] or places.home_country
    name: str | None = None
    item: Item | None = None
    if piece.kind in ("name", "nature"):
        name = (_choose_family_name(places, text) if piece.kind == "name" else None) or _invent_place_name(places, text)
    elif piece.kind == "street":
        name = postal.choose_street_name(places, text, "en")
    elif piece.kind == "country":
        item = places.assign_item("country name", bare, [[c for c in places.kb.pool("country") if c.size >= 6]])
    elif piece.kind == "region":
        to = places.get_target_country(country)
        item = places.assign_item("region", f"{bare}>{to}", [places.kb.pool("region", country=to)])
    elif not text.islower() or places.cast.text[:400] == places.cast.text[:400].lower():
        item = places.choose_city(bare, country, piece.context[1])
        if item is not None:
            places.cast.places.setdefault(bare, item)
    if item is not None:
        name = places.kb.label(item, places.language)
    return piece.text.replace(text, match_capitals(name, text)) if name else None


def _choose_family_name(places: PlaceMap, text: str) -> str | None:
    """Return the pseudonym of a family's name in a place's: ``Johnson`` of ``Johnson Bridge``."""
    if " " in text or not any(f.part == "last" and f.weight >= 20 for f in places.kb.name_facts(text)):
        return None
    return choose_family_name(places.cast, text)


def _invent_place_name(places: PlaceMap, text: str) -> str | None:
    """Return a name without a past for a building, a square and the like."""
    key = normalize_surface(text)
    stems, endings = list_words("places", "words", "stems"), list_words("places", "words", "endings")

    def propose(attempt: int) -> str:
        number, index = divmod(places.cast.ledger.draw_number("place name", key, attempt), len(stems))
        return stems[index] + endings[number % len(endings)]

    return places.cast.ledger.assign("place name", key, propose, telling=get_distinctive_place_name)


_DECIMAL = re.compile(r"(?P<sign>[+\-−]?)(?P<number>\d{1,3}\.\d+)")
_DEGREES = re.compile(
    r"(?P<degrees>\d{1,3})( ?[°º] ?)(?P<minutes>\d{1,2})((?:\.\d+)?)( ?['’′] ?)(?:(?P<seconds>\d{1,2})((?:\.\d+)?))?"
)
_HEMISPHERE = re.compile(r"\d(?:\.\d+)?°? ?[NSEWO]\b|\b[NSEW] ?\d")
_MGRS = re.compile(r"(\d{1,2}[A-Z] ?[A-Z]{2} ?)(\d{4,5} ?\d{4,5})")
_PLUS_CODE = re.compile(r"[2-9CFGHJMPQRVWX]{8}\+[2-9CFGHJMPQRVWX]{2,3}")
_PLUS_LETTERS = "23456789CFGHJMPQRVWX"
_ROUGH = re.compile(r"[NSEW]? ?\d{1,3}°?,? ?[NSEW]?.*")


def is_coordinates(text: str) -> bool:
    """Whether a text is a pair of coordinates."""
    if len(_DECIMAL.findall(text)) == 2 and not re.search(r"[^\W\d_]{3,}", text):
        return True
    return bool(_DEGREES.search(text)) or text.startswith("geo:")


def move_coordinates(places: PlaceMap, text: str) -> str | None:
    """Return coordinates moved by up to two degrees, as exact as they were; None for unknown notations."""
    if matches := list(_DEGREES.finditer(text)):
        key = "/".join(m["degrees"] for m in matches)
        return splice_text(text, ((*m.span(), _move_degrees(places, m, key, axis)) for axis, m in enumerate(matches)))
    if matches := list(_DECIMAL.finditer(text))[:2]:
        key = "/".join(m["number"].partition(".")[0] for m in matches)
        limits = (89.0 if len(matches) > 1 else 179.0, 179.0)
        moved = (_move_decimal_degrees(places, m, key, axis, limits[axis]) for axis, m in enumerate(matches))
        return splice_text(text, ((*m.span(), new) for m, new in zip(matches, moved, strict=True)))
    if match := _MGRS.fullmatch(text):  # a point stays within its square
        return match[1] + change_digits(places, "coordinates", match[2], match[1])
    if _PLUS_CODE.fullmatch(text):  # another one near by
        number = places.cast.ledger.draw_number("coordinates", text)
        digits = (c if c == "+" else _PLUS_LETTERS[number // 20**i % 20] for i, c in enumerate(text[4:]))
        return text[:4] + "".join(digits)
    if _ROUGH.fullmatch(text) and any(c.isdigit() for c in text):
        return re.sub(r"\d{1,3}", lambda m: str(max(1, (int(m[0]) + 2) % 90)), text)
    return None


def _move_degrees(places: PlaceMap, match: re.Match[str], key: str, axis: int) -> str:
    """Move an angle in degrees, minutes and maybe seconds; other decimals stand for its decimals."""
    degrees, sign, minutes, minute_decimals, minute_sign, seconds, second_decimals = match.groups()
    shift = round(_draw_degree_shift(places, key, axis) * 3600)
    total = int(degrees) * 3600 + int(minutes) * 60 + int(seconds or 0) + shift
    total = abs(total) % ((89 if axis == 0 else 179) * 3600)
    if not seconds:
        total += 30  # rounded to minutes
    out = f"{total // 3600}{sign}{total // 60 % 60:0{len(minutes)}d}"
    out += change_digits(places, "coordinates", minute_decimals, key) + minute_sign
    if seconds:
        out += f"{total % 60:0{len(seconds)}d}" + change_digits(places, "coordinates", second_decimals, key)
    return out


def _move_decimal_degrees(places: PlaceMap, match: re.Match[str], key: str, axis: int, limit: float) -> str:
    decimals = len(match["number"].partition(".")[2])
    value = float(match["number"]) * (-1 if match["sign"] in ("-", "−") else 1)
    value += _draw_degree_shift(places, key, axis)
    value -= 2 * limit if value > limit else -2 * limit if value < -limit else 0
    if _HEMISPHERE.search(match.string):
        value = abs(value)
    minus = match["sign"] if match["sign"] in ("-", "−") else "-"
    return f"{minus if value < 0 else '+' if match['sign'] == '+' else ''}{abs(value):.{decimals}f}"


def _draw_degree_shift(places: PlaceMap, key: str, axis: int) -> float:
    """Return the degrees by which all points of one degree move: 0.2 to 2 to either side."""
    number = places.cast.ledger.draw_number("coordinates", f"{key}\0{axis}")
    size = 0.2 + (number >> 1) % 1_800_000 / 1_000_000
    return size if number & 1 else -size
