"""Telephone numbers that nobody has: reserved for films and books where the country reserves some.

North America: the exchange 555 with 0100 to 0199, in another area code of the same country; toll-free codes stay.
Elsewhere the blocks of ``phones.tsv`` with as many digits. A country without such a block gets a number of the same
kind (fixed, mobile) that is valid there; it may be somebody's.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from allonym.replace.digits import read
from allonym.replace.shapes import ANY, Draws, drawn

if TYPE_CHECKING:
    from phonenumbers import PhoneNumber

RESERVED_TRIES = 40
"""Attempts out of the reserved numbers; after them a merely valid number has to do."""

EXTENSION = re.compile(r"(?i)[,;]?[ ]?(?:x|#|ext\b\.?|extension|durchwahl)[ .:]?(?=[0-9])")
_TOLL_FREE = ("800", "833", "844", "855", "866", "877", "888", "900")
_LANGUAGES = {"de": "DE", "pl": "PL", "fr": "FR", "es": "ES", "it": "IT", "nl": "NL", "sv": "SE", "pt": "PT"}
_WITH_TRUNK = ("GB", "DE", "FR", "AU", "IE", "SE", "IN", "IL", "JP", "NL", "ZA", "IT", "BR", "TR")
_WITHOUT_TRUNK = ("US", "IN", "BR", "CN", "ES", "PL", "DK", "NO")
_GROUPED = (  # how numbers are grouped tells the country where nothing else does
    (re.compile(r"0[1-9](?:[ .\-][0-9]{2}){4}"), "FR"),
    (re.compile(r"\(?0[2378]\)? [0-9]{4} [0-9]{4}|04[0-9]{2} [0-9]{3} [0-9]{3}"), "AU"),
)
_COUNTRY_LABELS = {"PH_MOBILE_NUMBER": "PH", "TR_PHONE_NUMBER": "TR"}
_COUNTRY_LABELS |= {"ZA_MOBILE_NUMBER": "ZA", "ZA_TELEPHONE_NUMBER": "ZA"}


class Phone(NamedTuple):
    """A telephone number as read.

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
        """The same however the number is written."""
        return f"{self.country}:{self.digits}"


@cache
def _reserved() -> dict[tuple[str, str, int], tuple[str, ...]]:
    """(region, kind, number of digits) to patterns in which x is any digit."""
    out: dict[tuple[str, str, int], list[str]] = {}
    text = files("allonym").joinpath("replace", "phones.tsv").read_text(encoding="utf-8")
    for line in text.splitlines()[1:]:
        region, kind, number = line.split("\t")[:3]
        out.setdefault((region, kind, len(number)), []).append(number)
    return {key: tuple(found) for key, found in out.items()}


def read_phone(text: str, label: str, language: str) -> Phone | None:
    """The number that a surface without extension is; None where it is none that anybody could dial from elsewhere.

    Args:
        text: as written, digits of any script.
        label: as found; some name their country.
        language: ISO 639-1, for numbers without country code.
    """
    import phonenumbers

    surface = read(text)
    digits = surface.code
    if not digits.isdigit() or len(digits) < 6:
        return None
    if text.lstrip("( ").startswith(("+", "＋")) or digits.startswith("00"):
        return _parsed("+" + _without_trunk(text, digits).removeprefix("00"), None)
    if label in _COUNTRY_LABELS:
        return _parsed(digits, _COUNTRY_LABELS[label])
    own = _LANGUAGES.get(language) or next((region for form, region in _GROUPED if form.fullmatch(text)), None)
    tried = _WITH_TRUNK if digits[0] == "0" else _WITHOUT_TRUNK
    first = "US" if len(digits) in (10, 11) and digits[0] != "0" and own not in ("PL",) else own
    for region in dict.fromkeys((*filter(None, (first, own)), *tried)):
        found = _parsed(digits, region)
        if found is not None and phonenumbers.is_valid_number(_number(found)):
            return found
    return None


def _without_trunk(text: str, digits: str) -> str:
    """The digits without a ``(0)`` that stands between country code and number."""
    at = re.search(r"\(0\)", text)
    if at is None:
        return digits
    before = sum(c.isdigit() for c in text[: at.start()])
    return digits[:before] + digits[before + 1 :]


def _parsed(text: str, region: str | None) -> Phone | None:
    import phonenumbers

    try:
        number = phonenumbers.parse(text, region)
    except phonenumbers.NumberParseException:
        return None
    if not phonenumbers.is_possible_number(number) or number.country_code is None:
        return None
    named = phonenumbers.region_code_for_number(number) or region
    code = named or phonenumbers.region_code_for_country_code(number.country_code)
    return Phone(number.country_code, phonenumbers.national_significant_number(number), code)


def _number(phone: Phone) -> PhoneNumber:
    import phonenumbers

    zeros = len(phone.digits) - len(phone.digits.lstrip("0"))
    return phonenumbers.PhoneNumber(
        country_code=phone.country,
        national_number=int(phone.digits),
        italian_leading_zero=zeros > 0 or None,
        number_of_leading_zeros=zeros if zeros > 1 else None,
    )


def another(phone: Phone, draws: Draws, attempt: int) -> str | None:
    """Another national number of the same length and kind; None where none was found."""
    if phone.country == 1:
        return _north_american(phone, draws)
    kind = _kind(phone)
    pool = _reserved().get((phone.region, kind, len(phone.digits))) if attempt < RESERVED_TRIES else None
    if pool:
        size = _area_size(phone.country, phone.digits)
        pool = tuple(n for n in pool if _area_size(phone.country, n.replace("x", "0")) == size) or pool
        return "".join(str(draws.below(10)) if c == "x" else c for c in draws.pick(pool))
    return _valid(phone, kind, draws)


def local(code: str, draws: Draws) -> str:
    """Seven digits that are dialled inside a North American area: 555-0100 to 555-0199."""
    return f"55501{draws.below(100):02}" if len(code) == 7 else "".join(str(draws.below(10)) for _ in code)


def _kind(phone: Phone) -> str:
    import phonenumbers

    kinds = phonenumbers.PhoneNumberType
    found = phonenumbers.number_type(_number(phone))
    names = {kinds.MOBILE: "mobile", kinds.TOLL_FREE: "free", kinds.FIXED_LINE: "fixed", kinds.UAN: "other"}
    return names.get(found, "mobile" if found == kinds.FIXED_LINE_OR_MOBILE else "fixed")


@lru_cache(maxsize=256)
def _area_size(country: int, digits: str) -> int:
    """How many of the digits are the area's; groups that are written stay right where this stays the same."""
    import phonenumbers

    return phonenumbers.length_of_geographical_area_code(_number(Phone(country, digits, "")))


def _north_american(phone: Phone, draws: Draws) -> str | None:
    import phonenumbers

    ending = f"55501{draws.below(100):02}"
    area = phone.digits[:3]
    if area in _TOLL_FREE:
        return area + ending
    for _ in range(400):
        code = str(200 + draws.below(800))
        if code == area or code[1:] == "11" or code in _TOLL_FREE or len(set(code)) == 1:
            continue
        found = Phone(1, code + ending, phone.region)
        if phonenumbers.region_code_for_number(_number(found)) == phone.region:
            return code + ending
    return area + ending


def _valid(phone: Phone, kind: str, draws: Draws) -> str | None:
    import phonenumbers

    for kept in (1, 2, 3, 4, 5):
        if kept >= len(phone.digits):
            break
        for _ in range(60):
            digits = phone.digits[:kept] + "".join(str(draws.below(10)) for _ in phone.digits[kept:])
            found = phone._replace(digits=digits)
            if digits != phone.digits and phonenumbers.is_valid_number(_number(found)) and _kind(found) == kind:
                return digits
    whole = drawn(read(phone.digits[1:]), ANY, draws)
    return phone.digits[0] + whole if whole else None


def rendered(code: str, was: Phone, new: str) -> str | None:
    """``code``, the digits of one surface of a number, with the new national number in them.

    Country code and trunk prefix in front stay; a surface that holds only the number's end gets the new one's end.
    None where the surface is neither.
    """
    if code.endswith(was.digits):
        return code[: len(code) - len(was.digits)] + new
    if len(code) >= 4 and was.digits.endswith(code):
        return new[len(new) - len(code) :]
    return None
