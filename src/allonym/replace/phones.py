"""Pseudonyms of telephone numbers: numbers that the country reserves for films and books, where it reserves some.

North America: the exchange 555 with 0100 to 0199, in another area code of the same country; toll-free codes stay.
Elsewhere the blocks of ``phones.tsv``, of as many digits where there are such. A country without any gets a number of
the same kind (fixed, mobile) that is valid there; it may be somebody's. Where a document's country is replaced, its
numbers go along: they get that country's code, and are written as they are there.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import NamedTuple

import phonenumbers
from phonenumbers import PhoneNumber, PhoneNumberType

from allonym.replace.codes import ANY, Draws, draw_shaped_code, read_code
from allonym.replace.tables import read_tsv

SAME_KIND_TRIES, RESERVED_TRIES = 24, 56
"""Attempts out of the reserved numbers of the same kind, then out of all; after them a valid number has to do."""

EXTENSION = re.compile(r"(?i)[,;]?[ ]?(?:x|#|ext\b\.?|extension|durchwahl)[ .:]?(?=[0-9])")
_TOLL_FREE = ("800", "833", "844", "855", "866", "877", "888", "900")
_LANGUAGES = {"de": "DE", "pl": "PL", "fr": "FR", "es": "ES", "it": "IT", "nl": "NL", "sv": "SE", "pt": "PT"}
_WITH_TRUNK = ("GB", "DE", "FR", "AU", "IE", "SE", "IN", "IL", "JP", "NL", "ZA", "IT", "BR", "TR")
_WITHOUT_TRUNK = ("US", "IN", "BR", "CN", "ES", "PL", "DK", "NO")
_GROUPED = (  # how numbers are grouped tells the country where nothing else does
    (re.compile(r"0[1-9](?:[ .\-][0-9]{2}){4}"), "FR"),
    (re.compile(r"\(?0[2378]\)? [0-9]{4} [0-9]{4}|04[0-9]{2} [0-9]{3} [0-9]{3}"), "AU"),
)
_COUNTRY_OF_LABEL = {"PH_MOBILE_NUMBER": "PH", "TR_PHONE_NUMBER": "TR", "ZA_MOBILE_NUMBER": "ZA"}
_COUNTRY_OF_LABEL["ZA_TELEPHONE_NUMBER"] = "ZA"


class Phone(NamedTuple):
    """A telephone number.

    Attributes:
        country: calling code.
        digits: the national number without the trunk prefix 0.
        region: ISO 3166 code.
    """

    country: int
    digits: str
    region: str

    @property
    def key(self) -> str:
        """A key that is the same however the number is written."""
        return f"{self.country}:{self.digits}"


@cache
def _read_reserved_numbers() -> dict[tuple[str, str, int], list[str]]:
    """Map (region, kind, number of digits) to patterns in which x is any digit."""
    out: dict[tuple[str, str, int], list[str]] = {}
    for region, kind, number, *_ in read_tsv("phones.tsv"):
        out.setdefault((region, kind, len(number)), []).append(number)
    return out


def read_phone(text: str, label: str, language: str, home: str = "") -> Phone | None:
    """Return the number of a surface without extension; None for one that nobody could dial from elsewhere.

    Args:
        text: as written, digits of any script.
        label: of the finding; some name their country.
        language: ISO 639-1, for numbers without country code.
        home: ISO 3166 code of the country that the document speaks of; empty: none.
    """
    digits = read_code(text).characters
    if not digits.isdigit() or len(digits) < 6:
        return None
    if text.lstrip("( ").startswith(("+", "＋")) or digits.startswith("00"):
        return _parse_phone("+" + _remove_trunk_zero(text, digits).removeprefix("00"), None)
    if label in _COUNTRY_OF_LABEL:
        return _parse_phone(digits, _COUNTRY_OF_LABEL[label])
    likely = _LANGUAGES.get(language) or next((region for form, region in _GROUPED if form.fullmatch(text)), None)
    others = _WITH_TRUNK if digits[0] == "0" else _WITHOUT_TRUNK
    first = "US" if len(digits) in (10, 11) and digits[0] != "0" and likely != "PL" else likely
    for region in dict.fromkeys((*filter(None, (home, first, likely)), *others)):
        phone = _parse_phone(digits, region)
        if phone is not None and (is_reserved(phone) or phonenumbers.is_valid_number(_make_phone_number(phone))):
            return phone
    return None


def is_reserved(phone: Phone) -> bool:
    """Whether nobody has a number, since its country reserves it for films and books."""
    return phone.digits[3:8] == "55501" if phone.country == 1 else bool(_find_reserved_kind(phone))


def _find_reserved_kind(phone: Phone) -> str:
    """Return the kind of a reserved number outside of North America; empty for others."""
    patterns = _compile_reserved_numbers(phone.region)
    return next((kind for kind, pattern in patterns if pattern.fullmatch(phone.digits)), "")


@cache
def _compile_reserved_numbers(region: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    pools = ((kind, pool) for (code, kind, _), pool in _read_reserved_numbers().items() if code == region)
    return tuple((kind, re.compile(number.replace("x", "[0-9]"))) for kind, pool in pools for number in pool)


def _remove_trunk_zero(text: str, digits: str) -> str:
    """Return the digits without a ``(0)`` that stands between country code and number."""
    start = text.find("(0)")
    if start < 0:
        return digits
    before = sum(c.isdigit() for c in text[:start])
    return digits[:before] + digits[before + 1 :]


def _parse_phone(text: str, region: str | None) -> Phone | None:
    try:
        number = phonenumbers.parse(text, region)
    except phonenumbers.NumberParseException:
        return None
    if not phonenumbers.is_possible_number(number) or number.country_code is None:
        return None
    code = phonenumbers.region_code_for_number(number) or region
    code = code or phonenumbers.region_code_for_country_code(number.country_code)
    return Phone(number.country_code, phonenumbers.national_significant_number(number), code)


def _make_phone_number(phone: Phone) -> PhoneNumber:
    zeros = len(phone.digits) - len(phone.digits.lstrip("0"))
    number = PhoneNumber(country_code=phone.country, national_number=int(phone.digits))
    number.italian_leading_zero = zeros > 0 or None
    number.number_of_leading_zeros = zeros if zeros > 1 else None
    return number


def draw_phone(phone: Phone, draws: Draws, to: str = "") -> str | None:
    """Return another national number of the same kind; None where none is found.

    Args:
        phone: the number that it replaces.
        draws: the keyed choices of an attempt.
        to: ISO 3166 code of the country that it is of; by default the old one's.
    """
    kind = _find_phone_kind(phone)
    if to and to != phone.region:
        phone = _make_example_phone(to, kind) or phone
    if phone.country == 1:
        return _draw_north_american_number(phone, draws)
    pools = {key: pool for key, pool in _read_reserved_numbers().items() if key[0] == phone.region}
    if draws.attempt < RESERVED_TRIES and pools:
        pool = pools.get((phone.region, kind, len(phone.digits)), [])
        pool = pool or [n for (_, other, _), numbers in pools.items() if other == kind for n in numbers]
        if not pool or draws.attempt >= SAME_KIND_TRIES:
            pool = [n for numbers in pools.values() for n in numbers]
        size = _count_area_digits(phone.country, phone.digits)
        pool = [n for n in pool if _count_area_digits(phone.country, n.replace("x", "0")) == size] or pool
        return "".join(draws.draw_digit_string(1) if c == "x" else c for c in draws.pick_element(pool))
    return _draw_valid_number(phone, kind, draws)


@lru_cache(maxsize=512)
def _make_example_phone(region: str, kind: str) -> Phone | None:
    """Return a number that shows how those of a kind are in a country; None where the country is unknown."""
    types = {"mobile": PhoneNumberType.MOBILE, "free": PhoneNumberType.TOLL_FREE}
    number = phonenumbers.example_number_for_type(region, types.get(kind, PhoneNumberType.FIXED_LINE))
    number = number or phonenumbers.example_number(region)
    if number is None or number.country_code is None:
        return None
    return Phone(number.country_code, phonenumbers.national_significant_number(number), region)


def draw_local_number(code: str, draws: Draws) -> str:
    """Return seven digits that are dialled inside a North American area: 555-0100 to 555-0199."""
    return _draw_fictional_555_number(draws) if len(code) == 7 else draws.draw_digit_string(len(code))


def _draw_fictional_555_number(draws: Draws) -> str:
    return f"55501{draws.draw_number_below(100):02}"


def _find_phone_kind(phone: Phone) -> str:
    if reserved := _find_reserved_kind(phone):  # nobody has it, and so it is not valid
        return reserved
    kinds = PhoneNumberType
    names = {kinds.MOBILE: "mobile", kinds.FIXED_LINE_OR_MOBILE: "mobile", kinds.TOLL_FREE: "free", kinds.UAN: "other"}
    return names.get(phonenumbers.number_type(_make_phone_number(phone)), "fixed")


@lru_cache(maxsize=256)
def _count_area_digits(country: int, digits: str) -> int:
    """Return how many digits are the area's; groups that are written stay right where this stays the same."""
    return phonenumbers.length_of_geographical_area_code(_make_phone_number(Phone(country, digits, "")))


def _draw_north_american_number(phone: Phone, draws: Draws) -> str:
    ending = _draw_fictional_555_number(draws)
    area = phone.digits[:3]
    for _ in range(0 if area in _TOLL_FREE else 400):
        code = str(200 + draws.draw_number_below(800))
        if code == area or code[1:] == "11" or code in _TOLL_FREE or len(set(code)) == 1:
            continue
        if phonenumbers.region_code_for_number(_make_phone_number(Phone(1, code + ending, ""))) == phone.region:
            return code + ending
    return area + ending


def _draw_valid_number(phone: Phone, kind: str, draws: Draws) -> str | None:
    for size in range(1, min(6, len(phone.digits))):
        for _ in range(60):
            digits = phone.digits[:size] + draws.draw_digit_string(len(phone.digits) - size)
            new = phone._replace(digits=digits)
            is_valid = digits != phone.digits and phonenumbers.is_valid_number(_make_phone_number(new))
            if is_valid and _find_phone_kind(new) == kind:
                return digits
    rest = draw_shaped_code(read_code(phone.digits[1:]), ANY, draws)
    return phone.digits[0] + rest if rest else None


def write_phone(text: str, old: Phone, new: str, to: str = "") -> str | None:
    """Return one surface of a number with the new national number in it.

    Country code and trunk prefix in front stay, where the new number is as long and of the same country; else it is
    written as numbers are there, with spaces, or the signs of the old one, between its groups. A surface that holds
    only the number's end gets the new one's end. None where the surface is neither.

    Args:
        text: the surface.
        old: the number that it is of.
        new: the new national number.
        to: ISO 3166 code of the new one's country; by default the old one's.
    """
    code = read_code(text)
    digits = code.characters
    if not digits.endswith(old.digits):
        is_end = len(digits) >= 4 and old.digits.endswith(digits) and len(new) >= len(digits)
        return code.replace_characters(new[len(new) - len(digits) :]) if is_end else None
    if len(new) == len(old.digits) and to in ("", old.region):
        return code.replace_characters(digits[: len(digits) - len(old.digits)] + new)
    country = phonenumbers.country_code_for_region(to) if to else old.country
    number = _make_phone_number(Phone(country, new, to or old.region))
    formats = phonenumbers.PhoneNumberFormat
    is_international = text.lstrip("( ").startswith(("+", "＋")) or digits.startswith("00")
    out = phonenumbers.format_number(number, formats.INTERNATIONAL if is_international else formats.NATIONAL)
    if is_international and digits.startswith("00"):
        out = "00" + out.removeprefix("+")
    signs = re.findall(r"(?<=[0-9])[^0-9]+(?=[0-9])", text)
    if not signs:
        return re.sub(r"[^0-9+]", "", out)
    sign = max(signs, key=signs.count)
    return out.replace(" ", sign) if sign in ("-", ".", "/") else out
