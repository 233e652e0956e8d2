"""Pseudonyms of postal addresses and postal codes, in the form of the originals.

Addresses are read word by word: numbers change and keep their length, streets get another name and keep their type
(Street, -straße, ul., rue, calle ...), what names a place follows that place. Postal codes take the form of the country
where the original's goes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

from allonym.replace.atlas import Atlas, listed, patterns, region_item, word_set
from allonym.text.names import plain

if TYPE_CHECKING:
    from allonym.kb import Item

Shown = Callable[[str, str], "str | None"]
"""Says what stands for a place that a part of an address names, given the label that it is taken for."""

_TOKEN = re.compile(r"[^\s,;]+|[,;\s]+")
_NUMBER = re.compile(r"#?\d[\d/\-–]*[A-Za-z]?\.?(?:bis|ter)?", re.IGNORECASE)
_ORDINAL = re.compile(r"(\d+)(st|nd|rd|th)", re.IGNORECASE)
_DIRECTION = frozenset("n s e w ne nw se sw north south east west".split())
_CODES = (
    ("GB", re.compile(r"\b[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}\b", re.IGNORECASE)),
    ("CA", re.compile(r"\b[A-Z]\d[A-Z][ -]?\d[A-Z]\d\b", re.IGNORECASE)),
    ("NL", re.compile(r"\b\d{4} ?[A-Z]{2}\b")),
    ("PT", re.compile(r"\b\d{4}-\d{3}\b")),
    ("US", re.compile(r"\b\d{5}-\d{4}\b")),
    ("BR", re.compile(r"\b\d{5}-\d{3}\b")),
    ("JP", re.compile(r"\b\d{3}-\d{4}\b")),
    ("PL", re.compile(r"\b\d{2}-\d{3}\b")),
    ("SE", re.compile(r"\b\d{3} \d{2}\b")),
    ("", re.compile(r"\b\d{4,6}\b")),
)
_OF_LABEL = {"UK_POSTCODE": "GB", "DE_PLZ": "DE", "US_ZIP_CODE": "US", "CA_POSTAL_CODE": "CA"}
_ROAD_SIGNS = {"DE": "D", "FR": "F", "AT": "A", "BE": "B", "IT": "I", "ES": "E", "SE": "S", "PT": "P", "FI": "FIN"}
_MOST = 300
"""Characters of an address."""
_FIRST_NAMES = 24
"""Choices of a street's name before longer ones are made."""
_HOMES = {"fr": "FR", "es": "ES", "it": "IT", "pt": "PT"}
"""Where the cities lie that give streets their names."""
_NUMBERED = re.compile(
    r"(?:highway|hwy|route|rte|interstate|autobahn|road)[ -]?\d+[a-z]?"
    r"|(?:psc|cmr|unit) \d+,? box \d+,? (?:apo|fpo|dpo),? a[aep],? \d{5}(?:-\d{4})?",
    re.IGNORECASE,
)
_UNIT_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ"


# Numbers


def digits(atlas: Atlas, kind: str, text: str, key: str = "") -> str:
    """The text with other digits: the first of a number is not 0 where it was not, and the whole is not the same."""
    places = [i for i, c in enumerate(text) if c.isdigit()]
    for attempt in range(8):
        number = atlas.cast.ledger.number(kind, f"{key}\0{text}", attempt)
        out = list(text)
        for i in places:
            first = i == 0 or not text[i - 1].isdigit()
            number, digit = divmod(number, 9) if first and text[i] != "0" else divmod(number, 10)
            out[i] = str(digit + 1) if first and text[i] != "0" else str(digit)
            if number < 10:
                number = atlas.cast.ledger.number(kind, f"{key}\0{text}\0{i}", attempt)
        if not places or out != list(text):
            break
    return "".join(out)


# Postal codes


def is_postcode(text: str) -> bool:
    """Whether the whole text has the form of a postal code."""
    return any(code and pattern.fullmatch(text.strip()) for code, pattern in _CODES)


def postcode(atlas: Atlas, text: str, label: str = "", region: str = "") -> str | None:
    """Another postal code, in the form of the country where this one's goes; else of the same form.

    Args:
        text: with or without its country (``D-80331``).
        label: what it was found as.
        region: code of the region where the substitute lies, for ZIP codes.
    """
    lead = re.match(r"(?:[A-Z]{1,3}-)?", text)
    prefix = lead[0] if lead is not None and re.match(r"[A-Z]{1,3}-\d{4}", text) else ""
    core = text[len(prefix) :]
    if not any(c.isdigit() for c in core):
        return None
    source = _OF_LABEL.get(label) or next((code for code, p in _CODES if p.fullmatch(core.strip())), "")
    if not source and _form(atlas.home) == _shape(core):
        source = atlas.home
    target = atlas.country(source) if source else ""
    if target != source and target in patterns()["postcodes"]:
        form = _form(target)
        prefix = prefix and f"{_ROAD_SIGNS.get(target, target) if len(prefix) == 2 else target}-"
    else:
        form, target = _shape(core), source
    key = f"{plain(core)}>{target}.{region}"

    def propose(attempt: int) -> str:
        return _drawn(atlas, form, target, key, attempt, region)

    value = atlas.cast.ledger.assign("postcode", key, propose)
    if value is None:
        return None
    if core.islower():
        value = value.lower()
    return prefix + value


def _form(code: str) -> str:
    found = patterns()["postcodes"].get(code)
    return str(found["form"]) if found and "form" in found else ""


def _shape(text: str) -> str:
    return "".join("9" if c.isdigit() else "A" if c.isalpha() else c for c in text)


@cache
def _zones() -> dict[str, str]:
    return {state: zone for zone, states in patterns()["postcodes"]["zones"].items() for state in states.split()}


def _drawn(atlas: Atlas, form: str, country: str, key: str, attempt: int, region: str) -> str:
    number = atlas.cast.ledger.number("postcode", key, attempt)
    starts: Sequence[str] = ()
    if country == "GB" and form[:1] == "A":
        starts = listed("postcodes", "areas", "GB")
        form = form.lstrip("A")
        form = form if form[:1] == "9" else "9" + form
    elif country == "US" and region in _zones():
        starts = (_zones()[region],)
    elif country in patterns()["postcodes"]:
        starts = listed("postcodes", country, "first")
    letters = (
        "ABCEGHJKLMNPRSTVXY"
        if country == "CA"
        else "ABDEFGHJLNPQRSTUWXYZ"
        if country == "GB"
        else "ABCDEGHJKLMNPRTVWXZ"
    )
    out = ""
    if starts:
        number, at = divmod(number, len(starts))
        out = starts[at]
        if country != "GB":
            form = form[_covered(form, len(out)) :]
    for c in form:
        if number < 32:
            number = atlas.cast.ledger.number("postcode", f"{key}\0{out}", attempt)
        if c == "9":
            number, digit = divmod(number, 9)
            out += str(digit + 1)
        elif c == "A":
            number, at = divmod(number, len(letters))
            out += letters[at]
        else:
            out += c
    return out


def _covered(form: str, count: int) -> int:
    """How much of a form its first ``count`` signs fill."""
    at = 0
    while count and at < len(form):
        count -= form[at] in "9A"
        at += 1
    return at


# Addresses


@cache
def _streets(place: str) -> dict[str, tuple[str, ...]]:
    """Word of the given place (first, last, tail) to the languages that have it."""
    out: dict[str, tuple[str, ...]] = {}
    for language, lists in patterns()["streets"].items():
        if place in lists:
            for word in dict.fromkeys(w for one in listed("streets", language, place) for w in (one, plain(one))):
                out[word] = (*out.get(word, ()), language)
    return out


def is_address(text: str) -> bool:
    """Whether a text with a number has a word for a street."""
    low = [plain(w).rstrip(".") for w in re.findall(r"[^\W\d_]+\.?", text)]
    if any(w in word_set("units", "box") for w in low):
        return True
    return any(w in _streets("last") or w in _streets("first") or _tail(w)[0] for w in low[-6:])


def _tail(word: str) -> tuple[str, str]:
    """The street type at the end of a word, with its language: ``straße`` of ``Lindenstraße``."""
    low = word.lower()
    for tail, languages in sorted(_streets("tail").items(), key=lambda pair: -len(pair[0])):
        if low.endswith(tail) and len(low) - len(tail) >= 2:
            return word[len(word) - len(tail) :], languages[0]
    return "", ""


def address(atlas: Atlas, surface: str, shown: Shown) -> str | None:
    """Another address in the same form; None where nothing of it can be read.

    Args:
        surface: street with number, unit, city, postal code, country, in any order; one line or several.
        shown: says what stands for a place.
    """
    if len(surface) > _MOST:
        return None
    if _NUMBERED.fullmatch(surface):  # Highway 61, PSC 3, Box 123, APO, AE 09021
        return digits(atlas, "house", surface)
    text, held = _codes_out(surface)
    segments = re.split(r"(\s*[,;\n]\s*)", text)
    region = _region(atlas, segments)
    out = []
    street = False
    for i, segment in enumerate(segments):
        if i % 2 or not segment.strip():
            out.append(segment)
            continue
        new, was_street = _segment(atlas, segment, shown, street, surface, i)
        if new is None:
            return None
        street = street or was_street
        out.append(new)
    result = "".join(out)
    for mark, code in held:
        new_code = postcode(atlas, code, region=region)
        if new_code is None:
            return None
        result = result.replace(mark, new_code)
    return result


_MARKS = "\ue000\ue001\ue002\ue003"


def _codes_out(surface: str) -> tuple[str, list[tuple[str, str]]]:
    """The address with private signs for its postal codes, which are not the number of a house."""
    held: list[tuple[str, str]] = []
    for code, pattern in _CODES:
        found = None
        for match in pattern.finditer(surface):
            before = surface[: match.start()]
            if code in ("GB", "CA", "NL", "PL", "PT", "BR") or before.strip():
                found = match
        if found is not None and not held:
            if not code and re.search(r"\b(?:box|apt|suite|unit|#)\W*$", surface[: found.start()], re.IGNORECASE):
                continue
            start = found.start()
            lead = re.search(r"\b[A-Z]{1,2}-$", surface[:start])
            start = lead.start() if lead else start
            held.append((_MARKS[0], surface[start : found.end()]))
            surface = surface[:start] + _MARKS[0] + surface[found.end() :]
    return surface, held


def _region(atlas: Atlas, segments: Sequence[str]) -> str:
    """Code of the region where the address goes, where it names one of the United States."""
    for segment in segments:
        for word in re.findall(r"\b[A-Z]{2}\b", segment):
            item = region_item(atlas.kb, "US", word)
            if item is not None:
                other: Item | None = atlas.substitute(item) if atlas.plays(item) else item
                return other.region if other is not None and other.country == "US" else ""
    return ""


def _segment(atlas: Atlas, text: str, shown: Shown, street: bool, whole: str, index: int) -> tuple[str | None, bool]:
    """One part between commas, and whether it was the street."""
    tokens = _TOKEN.findall(text)
    words = [i for i, t in enumerate(tokens) if not t.isspace()]
    if all(tokens[i] in _MARKS for i in words):
        return text, False
    first = tokens[words[0]]
    low = plain(first).rstrip(".")
    units, boxes = word_set("units", "words"), word_set("units", "box")
    if any(plain(tokens[i]) in boxes for i in words) and any(c.isdigit() for c in text):
        return digits(atlas, "house", text, whole), True
    if (
        (low in units or first.startswith("#"))
        and len(words) <= 3
        and any(c.isalnum() for c in text[len(first) :] + "#")
    ):
        return _unit(atlas, text, first, whole), False
    if all(_NUMBER.fullmatch(tokens[i]) or tokens[i].lower() in ("bis", "ter", "quater") for i in words):
        return digits(atlas, "house", text, whole), False
    found = _street(tokens, words)
    if found is None and not street and any(_NUMBER.fullmatch(tokens[i]) for i in words):
        found = _bare_street(atlas, tokens, words)
    if found is not None:
        begin, end, language, suffix = found
        name = "".join(tokens[begin:end])
        new = street_name(atlas, name, language, suffix)
        if new is None:
            return None, True
        head = "".join(digits(atlas, "house", t, whole) if any(c.isdigit() for c in t) else t for t in tokens[:begin])
        rest = _rest(atlas, tokens[end:], shown, whole)
        return (None if rest is None else head + new + rest), True
    return _place(text, shown), False


def _unit(atlas: Atlas, text: str, first: str, whole: str) -> str:
    kept = "" if first.startswith("#") else first
    rest = digits(atlas, "unit", text[len(kept) :], whole)
    if any(c.isdigit() for c in rest):
        return kept + rest
    number = atlas.cast.ledger.number("unit", whole)
    letters = [c for c in _UNIT_LETTERS if c.lower() not in rest.lower()]
    return kept + "".join(letters[number % len(letters)] if c.isalpha() else c for c in rest)


_Found = tuple[int, int, str, bool]
"""Tokens of a street's name, from and to; its language; whether the name is one word with its type."""


def _street(tokens: Sequence[str], words: Sequence[int]) -> _Found | None:
    for i in words:  # Lindenstraße 5, Kerkstraat 12
        tail, language = _tail(tokens[i].rstrip(".") if not tokens[i].endswith("str.") else tokens[i])
        if tail and not tokens[i][0].isdigit():
            return i, i + 1, language, True
    firsts, lasts = _streets("first"), _streets("last")
    for at, i in enumerate(words):  # ul. Lipowa, rue des Lilas
        low = plain(tokens[i]).rstrip(".")
        languages = firsts.get(tokens[i].lower()) or firsts.get(low)
        if languages and "de" not in languages and at + 1 < len(words):
            end = words[at + 1] + 1  # also ul. 3 Maja
            while end < len(tokens) and not _NUMBER.fullmatch(tokens[end]) and tokens[end] not in _MARKS:
                end += 1
            while tokens[end - 1].isspace():
                end -= 1
            if not _NUMBER.fullmatch(tokens[end - 1]):
                return words[at + 1], end, languages[0], False
        if languages and "de" in languages and at == 0 and len(words) > 1 and tokens[i][0].isupper():
            end = next((j for j in words if tokens[j][0].isdigit()), 0)
            if end:
                return i, end - 1, "de", False
    start = None
    for at, i in enumerate(words):
        low = plain(tokens[i]).rstrip(".")
        if _NUMBER.fullmatch(tokens[i]) and not _ORDINAL.fullmatch(tokens[i]):
            if start is None or at == 0:
                start = None
            continue
        if start is None:
            if low in _DIRECTION and at + 2 < len(words):
                continue
            start = i
        elif low in lasts:
            if "en" not in lasts[low]:  # Kölner Straße becomes one word
                return start, i + 1, lasts[low][0], True
            j = at
            while j + 1 < len(words) and plain(tokens[words[j + 1]]).rstrip(".") in lasts:
                j += 1
            return start, words[j] - 1, "en", False
    return None


def _bare_street(atlas: Atlas, tokens: Sequence[str], words: Sequence[int]) -> _Found | None:
    """A name beside a number without a word for street: 10 Broadway, Marszałkowska 12."""
    named = [i for i in words if tokens[i][0].isalpha() and len(tokens[i]) > 3]
    if not named:
        return None
    language = atlas.language if atlas.language in patterns()["streets"] else "en"
    end = named[0]
    while (
        end + 2 < len(tokens)
        and tokens[end + 2][0].isalpha()
        and plain(tokens[end + 2]).rstrip(".") not in word_set("units", "words")
    ):
        end += 2
    return named[0], end + 1, language, False


def street_name(atlas: Atlas, name: str, language: str, joined: bool = False) -> str | None:
    """Another street's name; a numbered street gets another number.

    Args:
        atlas: of the document.
        name: without its type (Street, rue), unless that is part of the same word.
        language: ISO 639-1, of the street.
        joined: the type is part of the word (Lindenstraße).
    """
    ordinal = _ORDINAL.fullmatch(name)
    if ordinal:
        number = digits(atlas, "street number", ordinal[1])
        return number + _ending(number, ordinal[2])
    tail = _tail(name.rstrip("."))[0] if joined and not name.endswith("str.") else "str." if joined else ""
    keyed = partial(atlas.cast.ledger.number, "street", plain(name))

    def propose(attempt: int) -> str:
        pool, more = listed("streets", language, "names"), listed("streets", language, "more")
        new = pool[(keyed() + attempt) % len(pool)]
        if attempt < _FIRST_NAMES:
            return new
        form = more[keyed(attempt) % len(more)]
        if language not in _HOMES:
            return form.format(new)
        cities = [c for c in atlas.kb.pool("city", country=_HOMES[language]) if c.label[0] not in "AEIOUYH"]
        return form.format(city=cities[keyed(attempt) // 64 % len(cities)].label if cities else new)

    new = atlas.cast.ledger.assign("street", plain(name), propose, telling=_last)
    if new is None:
        return None
    if not joined and language in ("de", "nl", "sv", "da"):
        new += {"de": "straße", "nl": "straat", "sv": "gatan", "da": "vej"}[language] if _whole(name, language) else ""
    new += tail if not joined or tail.islower() else tail.lower()
    return new.upper() if name.isupper() and len(name) > 2 else new.lower() if name.islower() else new


def _whole(name: str, language: str) -> bool:
    """Whether a name stands without a word for street after it: ``Am Markt`` is whole, ``Kölner`` (Straße) is not."""
    return language != "de" or plain(name).split(" ")[0] in word_set("streets", "de", "first")


def _last(name: str) -> str:
    return name.replace("'", " ").split(" ")[-1]


def _ending(number: str, model: str) -> str:
    value = int(number)
    ending = "th" if value % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")
    return ending.upper() if model.isupper() else ending


def _rest(atlas: Atlas, tokens: Sequence[str], shown: Shown, whole: str) -> str | None:
    """What follows a street's name without a comma: its type, a direction, a number, a unit, then a place."""
    out = ""
    lasts, units = _streets("last"), word_set("units", "words")
    i, unit = 0, False
    while i < len(tokens):
        token = tokens[i]
        low = plain(token).rstrip(".")
        if token.isspace() or token in _MARKS or low in lasts or low in _DIRECTION:
            out += token
        elif low in units or low in ("bis", "ter"):
            out, unit = out + token, True
        elif any(c.isdigit() for c in token):
            out += digits(atlas, "house", token, whole)
        elif unit and len(token) == 1:
            out += _unit(atlas, token, "", whole)
        else:
            break
        i += 1
    if i == len(tokens):
        return out
    place = _place("".join(tokens[i:]), shown)
    return None if place is None else out + place


def _place(text: str, shown: Shown) -> str | None:
    """A city, a state, a country, with or without a postal code, which stays a private sign here."""
    parts = re.split(f"(\\s*[{_MARKS}]\\s*)", text)
    out = ""
    for i, part in enumerate(parts):
        if i % 2 or not part.strip():
            out += part
            continue
        core = part.strip()
        new = shown(core, "US_STATE" if re.fullmatch(r"[A-Za-z]{2}|[A-Z]\.[A-Z]\.", core) else "CITY")
        if new is None:
            return None
        out += part.replace(core, new)
    return out
