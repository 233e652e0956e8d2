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
from dataclasses import dataclass, field, replace
from functools import cache, partial

from allonym.document import splice_text
from allonym.kb import Item, KnowledgeBase
from allonym.protocol import Wanted
from allonym.replace import postal
from allonym.replace.cast import Cast, Renderer
from allonym.replace.people import choose_family_name
from allonym.replace.place_map import (
    CODED,
    KINDS,
    PlaceMap,
    find_region,
    get_distinctive_place_name,
    list_capital_ids,
    open_place_map,
)
from allonym.replace.postal import change_digits
from allonym.replace.tables import list_words, read_toml, read_word_set
from allonym.replace.wording import join_texts, match_capitals
from allonym.text.names import normalize_surface

_KIND_OF_LABEL = {
    "COUNTRY": "country",
    "CITY": "city",
    "REGION": "region",
    "US_STATE": "region",
    "FACILITY": "facility",
}
_MOST_WORDS = 12  # words of a name that is looked at closer
_LONGEST = 300  # characters of a surface that is read at all
_BETWEEN = re.compile(r"(\s*[,;\n/()]+\s*|\s+[-–—]\s+)")
_CODE = re.compile(r"[A-Za-z]{2,3}\.?|[A-Z]\.[A-Z]\.")
_WITH_POSTCODE = re.compile(r"[^\W\d_]{3,}\.?,?\s+\d{4,6}(?:-\d{4})?\Z|\A\d{4,6}\s+[^\W\d_]{3,}")
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
            out[key] = partial(postal.rewrite_address, places, partial(_render_place_of_address, places))
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
        is_address = postal.is_street_address(first) or _WITH_POSTCODE.search(first) is not None
        return "postcode" if postal.is_postcode(first) else "address" if is_address else "place"
    return "place"


def _render_listed_place(places: PlaceMap, readings: Readings, label: str, surface: str) -> str | None:
    if (label, surface) not in readings:
        readings[label, surface] = read_places(places, surface, label)
    return _render_reading(places, readings[label, surface])


def render_place(places: PlaceMap, text: str, label: str = "LOCATION") -> str | None:
    """Return the pseudonym of a place that is part of something else, such as an address or a company."""
    return _render_reading(places, read_places(places, text, label))


def _render_place_of_address(places: PlaceMap, text: str, label: str) -> str | None:
    """Return the pseudonym of a place in an address; one that cannot be read gets an invented name."""
    new = render_place(places, text, label)
    return new if new is not None or not text[:1].isupper() or len(text) < 4 else _invent_place_name(places, text)


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
    codes += [postal.find_country_of_postcode(target.surfaces[0]) for target in targets]
    places.set_countries(codes, targets)


# Reading: by the knowledge base, and by the words that names of places are made of


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
            items = _prefer_countries(items, (places.countries, places.replaced)) if not country else items
            return _choose_likeliest_place(places.kb, items, kind)
    return None


def _prefer_countries(items: Sequence[Item], wishes: Sequence[frozenset[str]]) -> Sequence[Item]:
    """Return towns of one name with one of the document's countries first, where that is not much smaller."""
    first = items[0]
    for countries in wishes if first.kind == "city" else ():
        near = next(
            (i for i in items if i.country in countries and i.kind == "city" and i.size >= first.size - 1), None
        )
        if near is not None:
            return (near, *items)
    return items


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
            before_name = Piece(lead + " ".join(words[:cut]) + " ")
            return (before_name, *_read_remaining_words(places, words[cut:], label, context))
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


def is_large_place(places: PlaceMap, text: str) -> bool:
    """Whether a text names a place that a name may hold: no small town, for many words are names of one."""
    item = find_known_place(places, text)
    return item is not None and (item.kind != "city" or item.size >= 5)


# Writing


def _render_reading(places: PlaceMap, reading: Reading) -> str | None:
    """Return the surface with the pseudonym of each of its places; None where one of them has none."""
    if not any(p.item is not None or p.kind for p in reading):
        return None
    return join_texts(_render_piece(places, piece) for piece in reading)


def _render_piece(places: PlaceMap, piece: Piece) -> str | None:
    if piece.item is not None:
        return _render_known_place(places, piece.item, piece.text)
    return _render_unknown_place(places, piece) if piece.kind else piece.text


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
