"""Pseudonyms of postal addresses and postal codes, in the form of the originals.

Addresses are read word by word: numbers change and keep their length, streets get another name and keep their type
(Street, -straße, ul., rue, calle ...), what names a place follows that place. Postal codes take the form of the country
where the original's goes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import NamedTuple

from allonym.replace.people import invent_person
from allonym.replace.person import get_name_weight
from allonym.replace.place_map import PlaceMap, find_region
from allonym.replace.tables import list_words, read_toml, read_word_set
from allonym.replace.wording import describe_shape, get_ordinal_suffix, join_texts
from allonym.text.names import normalize_surface

RenderPlace = Callable[[str, str], "str | None"]
"""Returns the pseudonym of a place that a part of an address names, given the label that it is taken for."""

_TOKEN = re.compile(r"[^\s,;]+|[,;\s]+")
_NUMBER = re.compile(r"#?\d[\d/\-–]*[A-Za-z]?\.?(?:bis|ter)?", re.IGNORECASE)
_ORDINAL = re.compile(r"(\d+)(st|nd|rd|th)", re.IGNORECASE)
_DIRECTION = frozenset("n s e w ne nw se sw north south east west".split())
_CODES = (
    ("GB", re.compile(r"\b[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}\b", re.IGNORECASE)),
    ("CA", re.compile(r"\b[A-Z]\d[A-Z][ -]?\d[A-Z]\d\b", re.IGNORECASE)),
    ("IE", re.compile(r"\b[AC-FHKNPRTV-Y]\d[\dW] ?[\dA-Z]{4}\b")),
    ("NL", re.compile(r"\b\d{4} ?[A-Z]{2}\b")),
    ("PT", re.compile(r"\b\d{4}-\d{3}\b")),
    ("US", re.compile(r"\b\d{5}-\d{4}\b")),
    ("BR", re.compile(r"\b\d{5}-\d{3}\b")),
    ("JP", re.compile(r"\b\d{3}-\d{4}\b")),
    ("PL", re.compile(r"\b\d{2}-\d{3}\b")),
    ("SE", re.compile(r"\b\d{3} \d{2}\b")),
    ("", re.compile(r"\b\d{4,6}\b")),
)
_CERTAIN = ("GB", "CA", "IE", "NL", "PL", "PT", "BR")
"""Countries whose postal codes no other number looks like."""
_COUNTRY_OF_LABEL = {"UK_POSTCODE": "GB", "DE_PLZ": "DE", "US_ZIP_CODE": "US", "CA_POSTAL_CODE": "CA"}
_ROAD_SIGNS = {"DE": "D", "FR": "F", "AT": "A", "BE": "B", "IT": "I", "ES": "E", "SE": "S", "PT": "P", "FI": "FIN"}
_LETTERS = {"CA": "ABCEGHJKLMNPRSTVXY", "GB": "ABDEFGHJLNPQRSTUWXYZ", "": "ABCDEGHJKLMNPRTVWXZ"}
"""Letters of postal codes by country; empty: of the others."""
_LONGEST = 300  # characters of an address
_FIRST_NAMES = 24  # choices of a street's name before longer ones are made
_FIELDS = frozenset("city town state zip postcode country county province region street".split())
_HOMES = {"fr": "FR", "es": "ES", "it": "IT", "pt": "PT"}  # where the cities lie that give streets their names
_NUMBERED = re.compile(
    r"(?:highway|hwy|route|rte|interstate|autobahn|road)[ -]?\d+[a-z]?"
    r"|(?:psc|cmr|unit) \d+,? box \d+,? (?:apo|fpo|dpo),? a[aep],? \d{5}(?:-\d{4})?",
    re.IGNORECASE,
)
_UNIT_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ"
_MARK = "\ue000"  # stands for the postal code while an address is read
_MARKED = re.compile(rf"(\s*{_MARK}\s*)")
_STREET_ENDINGS = {"de": "straße", "nl": "straat", "sv": "gatan", "da": "vej", "nb": "gaten"}


def _has_digit(text: str) -> bool:
    return any(c.isdigit() for c in text)


def change_digits(places: PlaceMap, kind: str, text: str, key: str = "") -> str:
    """Return the text with other digits: the first of a number is not 0 where it was not, and the whole differs."""
    number_of = places.cast.ledger.draw_number
    digits = [i for i, c in enumerate(text) if c.isdigit()]
    out = list(text)
    for attempt in range(8):
        number = number_of(kind, f"{key}\0{text}", attempt)
        for i in digits:
            if (i == 0 or not text[i - 1].isdigit()) and text[i] != "0":
                number, digit = divmod(number, 9)
                out[i] = str(digit + 1)
            else:
                number, digit = divmod(number, 10)
                out[i] = str(digit)
            if number < 10:
                number = number_of(kind, f"{key}\0{text}\0{i}", attempt)
        if not digits or out != list(text):
            break
    return "".join(out)


# Postal codes


def is_postcode(text: str) -> bool:
    """Whether the whole text has the form of a postal code."""
    return any(code and pattern.fullmatch(text.strip()) for code, pattern in _CODES)


def find_country_of_postcode(text: str) -> str:
    """Return the ISO 3166 code of the country whose postal code stands in an address or is it; else empty."""
    return next((code for code, pattern in _CODES if code in _CERTAIN and pattern.search(text)), "")


def choose_postcode(places: PlaceMap, text: str, label: str = "", region: str = "") -> str | None:
    """Return another postal code, in the form of the country where this one's goes; else of the same form.

    Args:
        places: of the document.
        text: with or without its country (``D-80331``).
        label: of the finding.
        region: code of the region where the pseudonym lies, for ZIP codes.
    """
    lead = re.match(r"[A-Z]{1,3}-(?=\d{4})", text)
    prefix = lead[0] if lead is not None else ""
    core = text[len(prefix) :]
    if not _has_digit(core):
        return None
    source = _COUNTRY_OF_LABEL.get(label) or next((code for code, p in _CODES if p.fullmatch(core.strip())), "")
    if not source and _get_postcode_form(places.home_country) == describe_shape(core):
        source = places.home_country
    target = places.get_target_country(source) if source else ""
    if target != source and target in read_toml()["postcodes"]:
        form = _get_postcode_form(target)
        prefix = prefix and f"{_ROAD_SIGNS.get(target, target) if len(prefix) == 2 else target}-"
    else:
        form, target = describe_shape(core), source
    key = f"{normalize_surface(core)}>{target}.{region}"
    value = places.cast.ledger.assign("postcode", key, partial(_draw_postcode, places, form, target, key, region))
    if value is None:
        return None
    return prefix + (value.lower() if core.islower() else value)


def _get_postcode_form(country: str) -> str:
    return str(read_toml()["postcodes"].get(country, {}).get("form", ""))


@cache
def _map_regions_to_first_signs() -> dict[tuple[str, str], tuple[str, ...]]:
    """Return country and region to what its postal codes may begin with."""
    out: dict[tuple[str, str], tuple[str, ...]] = {}
    for country, zones in read_toml()["postcodes"]["zones"].items():
        for sign, regions in zones.items():
            for region in regions.split():
                out[country, region] = (*out.get((country, region), ()), sign)
    return out


def _draw_postcode(places: PlaceMap, form: str, country: str, key: str, region: str, attempt: int) -> str:
    number_of = places.cast.ledger.draw_number
    number = number_of("postcode", key, attempt)
    starts: Sequence[str] = ()
    if country == "GB" and form[:1] == "A":
        starts = list_words("postcodes", "areas", "GB")
        form = form.lstrip("A")
        form = form if form[:1] == "9" else "9" + form
    elif (country, region) in _map_regions_to_first_signs():
        starts = _map_regions_to_first_signs()[country, region]
    elif country in read_toml()["postcodes"]:
        starts = list_words("postcodes", country, "first")
    letters = _LETTERS.get(country, _LETTERS[""])
    out = ""
    if starts:
        number, index = divmod(number, len(starts))
        out = starts[index]
        if country != "GB":
            form = _drop_first_characters(form, len(out))
    for c in form:
        if number < 32:
            number = number_of("postcode", f"{key}\0{out}", attempt)
        if c in "9A":
            pool = "123456789" if c == "9" else letters
            number, index = divmod(number, len(pool))
            c = pool[index]
        out += c
    return out


def _drop_first_characters(form: str, count: int) -> str:
    """Return a form without its first ``count`` letters and digits, and the signs before and between them."""
    while count and form:
        count -= form[0] in "9A"
        form = form[1:]
    return form


# Addresses


@cache
def _map_street_words_to_languages(position: str) -> dict[str, tuple[str, ...]]:
    """Map the street words of a position (``first``, ``last``, ``tail``) to the languages that have them."""
    out: dict[str, tuple[str, ...]] = {}
    for language, lists in read_toml()["streets"].items():
        words = list_words("streets", language, position) if position in lists else ()
        for form in dict.fromkeys(form for word in words for form in (word, normalize_surface(word))):
            out[form] = (*out.get(form, ()), language)
    return out


def _fold_token(token: str) -> str:
    return normalize_surface(token).rstrip(".")


@cache
def _list_unit_words() -> frozenset[str]:
    return read_word_set("units", "words") | read_word_set("units", "box")


def is_street_address(text: str) -> bool:
    """Whether a text with a number has a word for a street."""
    low = [_fold_token(w) for w in re.findall(r"[^\W\d_]+\.?", text)]
    if any(w in read_word_set("units", "box") for w in low):
        return True
    lasts, firsts = _map_street_words_to_languages("last"), _map_street_words_to_languages("first")
    return any(w in lasts or w in firsts or _find_street_type(w)[0] for w in low[-6:])


def _find_street_type(word: str) -> tuple[str, str]:
    """Return the street type at the end of a word, with its language: ``straße`` of ``Lindenstraße``."""
    low = word.lower()
    for tail, languages in sorted(_map_street_words_to_languages("tail").items(), key=lambda pair: -len(pair[0])):
        if low.endswith(tail) and len(low) - len(tail) >= 2:
            return word[len(word) - len(tail) :], languages[0]
    return "", ""


def rewrite_address(places: PlaceMap, render_place: RenderPlace, surface: str) -> str | None:
    """Return another address in the same form; None where nothing of it can be read.

    Args:
        places: of the document.
        render_place: returns the pseudonym of a place.
        surface: street with number, unit, city, postal code, country, in any order; one line or several.
    """
    if len(surface) > _LONGEST:
        return None
    if _NUMBERED.fullmatch(surface):  # Highway 61, PSC 3, Box 123, APO, AE 09021
        return change_digits(places, "house", surface)
    text, code = _split_off_postcode(surface)
    segments = re.split(r"(\s*[,;\n]\s*)", text)
    region = _find_target_region(places, segments)
    rewriter = _AddressRewriter(places, render_place, surface)
    out = join_texts(s if i % 2 or not s.strip() else rewriter.rewrite_segment(s) for i, s in enumerate(segments))
    if out is None or not code:
        return out
    new = choose_postcode(places, code, region=region or rewriter.region)
    return None if new is None else out.replace(_MARK, new)


def _split_off_postcode(surface: str) -> tuple[str, str]:
    """Return the address with a mark for its postal code, which is not the number of a house; and the code."""
    for country, pattern in _CODES:
        matches = [m for m in pattern.finditer(surface) if country in _CERTAIN or surface[: m.start()].strip()]
        if matches:
            start, end = matches[-1].span()
            before = re.search(r"([^\W\d_]+|#)[\W_]*$", surface[:start])
            if not country and before and _fold_token(before[1]) in _list_unit_words():
                continue
            lead = re.search(r"\b[A-Z]{1,2}-$", surface[:start])
            start = lead.start() if lead else start
            return surface[:start] + _MARK + surface[end:], surface[start:end]
    return surface, ""


def _find_target_region(places: PlaceMap, segments: Sequence[str]) -> str:
    """Return the code of the region where the address goes, where it names one of those that postal codes tell."""
    for segment in segments[1:]:
        name = re.sub(rf"[\d{_MARK}-]", " ", segment).strip()
        words = re.findall(r"\b[A-Z]{2}\b", segment)
        for country in ("US", "CA"):
            item = next((r for word in words if (r := find_region(places.kb, country, word)) is not None), None)
            item = item or next(iter(places.kb.find(name, ("region",), country)), None)
            if item is not None:
                other = places.choose_place(item) if places.is_replaced(item) else item
                return other.region if other is not None else ""
    return ""


_FLOOR = re.compile(r"\s*(?P<number>\d{1,2})(?P<ordinal>st|nd|rd|th) (?P<unit>[^\W\d_]+)\s*")


class _Street(NamedTuple):
    """The tokens of a street's name, from ``start`` to ``end``; ``joined``: it is one word with its type."""

    start: int
    end: int
    language: str
    joined: bool


class _AddressRewriter:
    """Rewrites the parts of one address. Digits depend on the whole of it.

    Attributes:
        region: code of the region where the last place goes; empty: none, or unknown.
    """

    def __init__(self, places: PlaceMap, render_place: RenderPlace, surface: str) -> None:
        self._places = places
        self._render_place = render_place
        self._surface = surface
        self._has_street = False
        self._has_place = False
        self.region = ""

    def rewrite_segment(self, text: str) -> str | None:
        """Return the replacement of a part between commas; None where a place or a street has none."""
        tokens = _TOKEN.findall(text)
        words = [i for i, t in enumerate(tokens) if not t.isspace()]
        if all(tokens[i] == _MARK for i in words):
            return text
        first = tokens[words[0]]
        units, boxes = read_word_set("units", "words"), read_word_set("units", "box")
        if any(normalize_surface(tokens[i]) in boxes for i in words) and _has_digit(text):
            self._has_street = True
            return self._change_house_digits(text)
        is_unit = (_fold_token(first) in units or first.startswith("#")) and len(words) <= 3
        if is_unit and any(c.isalnum() for c in text[len(first) :]):
            return self._rewrite_unit(text, first)
        if (floor := _FLOOR.fullmatch(text)) and _fold_token(floor["unit"]) in units:
            number = int(self._change_house_digits(floor["number"])) % 10 or 1
            ordinal = get_ordinal_suffix(number, floor["ordinal"])
            return f"{text[: floor.start('number')]}{number}{ordinal}{text[floor.end('ordinal') :]}"
        numbers = [_NUMBER.fullmatch(tokens[i]) is not None for i in words]
        if all(n or tokens[i].lower() in ("bis", "ter", "quater") for i, n in zip(words, numbers, strict=True)):
            return self._change_house_digits(text)
        street = _find_street(tokens, words)
        city = re.fullmatch(r"\s*\d{4,6}\s+(?P<name>[^\d,]+?)\s*", text)
        if street is None and city is not None and self._places.kb.find(city["name"], ("city",)):
            place = self._rewrite_place(city["name"])
            code = choose_postcode(self._places, text[: city.start("name")].strip(), region=self.region)
            return None if place is None or code is None else text[: len(text) - len(text.lstrip())] + f"{code} {place}"
        if street is None and not self._has_street and any(numbers):
            street = _find_street_without_type(self._places, tokens, words)
        if street is None:
            return self._rewrite_place(text)
        self._has_street = True
        name = "".join(tokens[street.start : street.end])
        new = choose_street_name(self._places, name, street.language, street.joined)
        if new is None:
            return None
        head = "".join(self._change_house_digits(t) if _has_digit(t) else t for t in tokens[: street.start])
        rest = self._rewrite_after_street(tokens[street.end :])
        return None if rest is None else head + new + rest

    def _change_house_digits(self, text: str) -> str:
        return change_digits(self._places, "house", text, self._surface)

    def _rewrite_unit(self, text: str, first: str) -> str:
        """Return another number or letter of a flat or the like; the word ``first`` before it stays."""
        word = "" if first.startswith("#") else first
        rest = change_digits(self._places, "unit", text[len(word) :], self._surface)
        if _has_digit(rest):
            return word + rest
        number = self._places.cast.ledger.draw_number("unit", self._surface)
        letters = [c for c in _UNIT_LETTERS if c.lower() not in rest.lower()]
        return word + "".join(letters[number % len(letters)] if c.isalpha() else c for c in rest)

    def _rewrite_after_street(self, tokens: Sequence[str]) -> str | None:
        """Rewrite what follows a street's name without a comma: its type, a direction, a number, a unit, a place."""
        out = ""
        lasts, units = _map_street_words_to_languages("last"), read_word_set("units", "words")
        unit = False
        for i, token in enumerate(tokens):
            low = _fold_token(token)
            if token.isspace() or token == _MARK or low in lasts or low in _DIRECTION:
                out += token
            elif low in units or low in ("bis", "ter"):
                out, unit = out + token, True
            elif _has_digit(token):
                out += self._change_house_digits(token)
            elif unit and len(token) == 1:
                out += self._rewrite_unit(token, "")
            else:
                rest = "".join(tokens[i:])
                if all(_fold_token(word) in _FIELDS for word in rest.split()):
                    return out + rest  # of a form: "Street: 2208 Juniper Drive  City: Boise"
                place = self._rewrite_place(rest)
                return None if place is None else out + place
        return out

    def _rewrite_place(self, text: str) -> str | None:
        """Rewrite a city, a state, a country, with or without the mark of a postal code."""
        return join_texts(p if i % 2 else self._rewrite_place_name(p) for i, p in enumerate(_MARKED.split(text)))

    def _rewrite_place_name(self, text: str) -> str | None:
        core = text.strip()
        if not core:
            return text
        places = self._places
        is_state = re.fullmatch(r"[A-Za-z]{2}|[A-Z]\.[A-Z]\.", core) is not None
        is_state = is_state or (self._has_place and bool(places.kb.find(core, ("region",))))
        person = self._invent_person(core) if not self._has_street and not self._has_place else None
        new = person or self._render_place(core, "US_STATE" if is_state else "CITY")
        self._has_place = person is None
        self.region = getattr(places.cast.places.get(normalize_surface(core)), "region", "") or self.region
        return None if new is None else text.replace(core, new)

    def _invent_person(self, text: str) -> str | None:
        """Return another name for who lives at an address that begins with a name: ``Ludwig Maier, Lindenweg 4``."""
        words, kb = text.split(), self._places.kb
        if not 1 < len(words) < 4 or not all(w.isalpha() and w.istitle() for w in words) or kb.find(text):
            return None
        if not get_name_weight(kb, words[0], "first") or not get_name_weight(kb, words[-1], "last"):
            return None
        given_name, family_name = normalize_surface(words[0]), normalize_surface(words[-1])
        person = invent_person(self._places.cast, given_name, family_name)
        new = [person.new.get(given_name), person.new.get(family_name)]
        return None if None in new else " ".join(filter(None, new))


def _find_street(tokens: Sequence[str], word_indexes: Sequence[int]) -> _Street | None:
    for i in word_indexes:  # Lindenstraße 5, Kerkstraat 12
        tail, language = _find_street_type(tokens[i].rstrip(".") if not tokens[i].endswith("str.") else tokens[i])
        if tail and not tokens[i][0].isdigit():
            return _Street(i, i + 1, language, True)
    firsts, lasts = _map_street_words_to_languages("first"), _map_street_words_to_languages("last")
    for n, i in enumerate(word_indexes):  # ul. Lipowa, rue des Lilas
        languages = firsts.get(tokens[i].lower()) or firsts.get(_fold_token(tokens[i]))
        if languages and "de" not in languages and n + 1 < len(word_indexes):
            end = word_indexes[n + 1] + 1  # also ul. 3 Maja
            while end < len(tokens) and not _NUMBER.fullmatch(tokens[end]) and tokens[end] != _MARK:
                end += 1
            while tokens[end - 1].isspace():
                end -= 1
            if not _NUMBER.fullmatch(tokens[end - 1]):
                return _Street(word_indexes[n + 1], end, languages[0], False)
        if languages and "de" in languages and n == 0 and len(word_indexes) > 1 and tokens[i][0].isupper():
            end = next((j for j in word_indexes if tokens[j][0].isdigit()), 0)
            if end:
                return _Street(i, end - 1, "de", False)
    start = None
    for n, i in enumerate(word_indexes):
        low = _fold_token(tokens[i])
        if _NUMBER.fullmatch(tokens[i]) and not _ORDINAL.fullmatch(tokens[i]):
            continue
        if start is None:
            if low not in _DIRECTION or n + 2 >= len(word_indexes):
                start = i
        elif low in lasts:
            if "en" not in lasts[low]:  # Kölner Straße becomes one word
                return _Street(start, i + 1, lasts[low][0], True)
            while n + 1 < len(word_indexes) and _fold_token(tokens[word_indexes[n + 1]]) in lasts:
                n += 1
            return _Street(start, word_indexes[n] - 1, "en", False)
    return None


def _find_street_without_type(places: PlaceMap, tokens: Sequence[str], word_indexes: Sequence[int]) -> _Street | None:
    """Find a name beside a number without a word for street: 10 Broadway, Marszałkowska 12."""
    start = next((i for i in word_indexes if tokens[i][0].isalpha() and len(tokens[i]) > 3), None)
    if start is None:
        return None
    end, units = start, read_word_set("units", "words")
    while end + 2 < len(tokens) and tokens[end + 2][0].isalpha() and _fold_token(tokens[end + 2]) not in units:
        end += 2
    return _Street(start, end + 1, places.language if places.language in read_toml()["streets"] else "en", False)


def choose_street_name(places: PlaceMap, name: str, language: str, joined: bool = False) -> str | None:
    """Return another street's name; a numbered street gets another number.

    Args:
        places: of the document.
        name: without its type (Street, rue), unless that is part of the same word.
        language: ISO 639-1, of the street.
        joined: the type is part of the word (Lindenstraße).
    """
    if ordinal := _ORDINAL.fullmatch(name):
        number = change_digits(places, "street number", ordinal[1])
        return number + get_ordinal_suffix(int(number), ordinal[2])
    key = normalize_surface(name)
    draw = partial(places.cast.ledger.draw_number, "street", key)
    pool, forms = list_words("streets", language, "names"), list_words("streets", language, "more")

    def propose(attempt: int) -> str:
        new = pool[(draw() + attempt) % len(pool)]
        if attempt < _FIRST_NAMES:
            return new
        form = forms[draw(attempt) % len(forms)]
        if language not in _HOMES:
            return form.format(new)
        cities = [c for c in places.kb.pool("city", country=_HOMES[language]) if c.label[0] not in "AEIOUYH"]
        return form.format(city=cities[draw(attempt) // 64 % len(cities)].label if cities else new)

    new = places.cast.ledger.assign("street", key, propose, telling=lambda name: name.replace("'", " ").split(" ")[-1])
    if new is None:
        return None
    if joined:
        new += "str." if name.endswith("str.") else _find_street_type(name.rstrip("."))[0].lower()
    elif language != "de" or key.split(" ")[0] in read_word_set("streets", "de", "first"):
        new += _STREET_ENDINGS.get(language, "")  # "Am Markt" is a full name, "Kölner" has its Straße behind it
    return new.upper() if name.isupper() and len(name) > 2 else new.lower() if name.islower() else new
