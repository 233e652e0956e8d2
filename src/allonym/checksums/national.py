"""Check digits and formats of national identifiers that python-stdnum does not cover, or covers too narrowly.

Every function takes the matched text, with or without its separators, and tells whether it can be such an identifier.
None raises, whatever the text. Where a name ends in ``_issued`` the text lies in a range that is really handed out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date
from functools import cache
from itertools import cycle

from allonym.checksums.algorithms import has_luhn_check_digit

_SEPARATORS = dict.fromkeys(map(ord, " -./:_\t\u00a0\u2013"))
_DIGITS = frozenset("0123456789")
_ALNUM = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")


def _remove_separators(text: str) -> str:
    return text.translate(_SEPARATORS).upper()


def _extract_digits_of_length(text: str, *lengths: int) -> str:
    """The digits of ``text``, or nothing where it holds anything else or has another length."""
    bare = text.translate(_SEPARATORS)
    return bare if len(bare) in lengths and _DIGITS.issuperset(bare) else ""


def _compact_to_shape(text: str, shape: str) -> str:
    """The compacted text where it has the shape (``9`` digit, ``A`` letter, ``*`` either, else itself), or nothing."""
    bare = _remove_separators(text)
    return bare if _compile_shape(shape).fullmatch(bare) else ""


@cache
def _compile_shape(shape: str) -> re.Pattern[str]:
    return re.compile("".join({"9": "[0-9]", "A": "[A-Z]", "*": "[0-9A-Z]"}.get(c, c) for c in shape))


def _sum_weighted(digits: Iterable[str], weights: Iterable[int]) -> int:
    return sum(int(d) * w for d, w in zip(digits, weights, strict=False))


def _sum_digits(number: int) -> int:
    return number // 10 + number % 10


def _has_verhoeff_digit(digits: str) -> bool:
    from stdnum import verhoeff

    return bool(verhoeff.is_valid(digits))


def _is_date(year: int, month: int, day: int) -> bool:
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


def _compute_icao_digit(text: str) -> int:
    """Check digit of ICAO Doc 9303: weights 7, 3, 1, letters count from A = 10."""
    return sum(int(c, 36) * w for c, w in zip(text, cycle((7, 3, 1)), strict=False)) % 10


def au_medicare(text: str) -> bool:
    """Australian Medicare card: first digit 2 to 6, the ninth digit checks the first eight."""
    number = _extract_digits_of_length(text, 10, 11)
    return bool(number) and "2" <= number[0] <= "6" and _sum_weighted(number, (1, 3, 7, 9) * 2) % 10 == int(number[8])


def ca_health_number(text: str) -> bool:
    """Ontario health card: ten digits with a Luhn check, perhaps with two letters of version."""
    bare = _remove_separators(text)
    number = bare[:10]
    return (
        len(bare) in (10, 12)
        and _DIGITS.issuperset(number)
        and number[0] != "0"
        and _ALNUM.issuperset(bare)
        and has_luhn_check_digit(number)
    )


def ca_sin(text: str) -> bool:
    """Canadian SIN: Luhn; a first digit of 0 or 8 is not handed out to persons."""
    number = _extract_digits_of_length(text, 9)
    return bool(number) and number[0] not in "08" and has_luhn_check_digit(number)


def cn_id(text: str) -> bool:
    """Chinese resident identity number: region, birth date, ISO 7064 mod 11-2."""
    bare = _remove_separators(text)
    if len(bare) != 18 or not _DIGITS.issuperset(bare[:17]) or (bare[17] not in _DIGITS and bare[17] != "X"):
        return False
    if not "11" <= bare[:2] <= "91" or not "1800" <= bare[6:10] <= "2099":
        return False
    if not _is_date(int(bare[6:10]), int(bare[10:12]), int(bare[12:14])):
        return False
    from stdnum.iso7064 import mod_11_2

    return bool(mod_11_2.is_valid(bare))


_BSNR_AREAS = "01 02 03 17 20 35 38 46 51 52 71 72 73 74 78 83 88 93 98"


def de_bsnr(text: str) -> bool:
    """German practice number: nine digits, no check digit."""
    number = _extract_digits_of_length(text, 9)
    return bool(number) and number.strip("0") != ""


def de_bsnr_issued(text: str) -> bool:
    """German practice number of a region that exists."""
    return de_bsnr(text) and _extract_digits_of_length(text, 9)[:2] in _BSNR_AREAS


def de_document(text: str) -> bool:
    """German identity card or passport with its check digit as the last character (nine or ten characters)."""
    bare = _remove_separators(text)
    if len(bare) not in (9, 10) or not _ALNUM.issuperset(bare) or bare[-1] not in _DIGITS:
        return False
    return not set("ABDEIOQSU") & set(bare) and _compute_icao_digit(bare[:-1]) == int(bare[-1])


def de_health_insurance(text: str) -> bool:
    """German Krankenversichertennummer: a letter and nine digits, the last one a check digit."""
    bare = _compact_to_shape(text, "A999999999")
    if not bare:
        return False
    spread = f"{ord(bare[0]) - 64:02d}{bare[1:9]}"
    return sum(_sum_digits(int(d) * w) for d, w in zip(spread, cycle((1, 2)), strict=False)) % 10 == int(bare[9])


def de_lanr(text: str) -> bool:
    """German physician number: the seventh digit checks the first six."""
    number = _extract_digits_of_length(text, 9)
    if not number or not number.strip("0"):
        return False
    return -_sum_weighted(number[:6], (4, 9) * 3) % 10 == int(number[6])


def de_social_security(text: str) -> bool:
    """German Rentenversicherungsnummer: area, birth date, letter, serial number, check digit."""
    bare = _compact_to_shape(text, "99999999A999")
    if not bare:
        return False
    day, month = int(bare[2:4]), int(bare[4:6])
    if not (1 <= day <= 31 or 51 <= day <= 81) or not 1 <= month <= 12:
        return False
    spread = f"{bare[:8]}{ord(bare[8]) - 64:02d}{bare[9:11]}"
    weights = (2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1)
    return sum(_sum_digits(int(d) * w) for d, w in zip(spread, weights, strict=True)) % 10 == int(bare[11])


def de_tax_id(text: str) -> bool:
    """German Steuer-Identifikationsnummer: ISO 7064 mod 11,10; none of the first ten digits more than three times.

    Real numbers have exactly one digit two or three times; the well-known test numbers have none.
    """
    number = _extract_digits_of_length(text, 11)
    if not number or number[0] == "0" or max(number.count(d, 0, 10) for d in number) > 3:
        return False
    return _has_mod_11_10_digit(number)


def de_vat_id(text: str) -> bool:
    """German VAT number: DE and nine digits with ISO 7064 mod 11,10."""
    bare = _compact_to_shape(text, "DE999999999")
    return bool(bare) and bare[2] != "0" and _has_mod_11_10_digit(bare[2:])


def _has_mod_11_10_digit(number: str) -> bool:
    from stdnum.iso7064 import mod_11_10

    return bool(mod_11_10.is_valid(number))


_ES_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"


def es_nif(text: str) -> bool:
    """Spanish DNI/NIF of a person: seven or eight digits (or K, L, M and seven) and a letter, number mod 23."""
    bare = _remove_separators(text)
    body = bare[1:-1] if bare[:1] in ("K", "L", "M") else bare[:-1]
    if len(bare) not in (8, 9) or not _DIGITS.issuperset(body):
        return False
    if body != bare[:-1] and len(body) != 7:
        return False
    return _ES_LETTERS[int(body) % 23] == bare[-1]


_FI_CENTURIES = {"+": 1800, **dict.fromkeys("-YXWVU", 1900), **dict.fromkeys("ABCDEF", 2000)}


def fi_personal_identity_code(text: str) -> bool:
    """Finnish henkilötunnus: birth date, century sign (with the signs added in 2023), number, number mod 31."""
    code = text.upper()
    if len(code) != 11 or code[6] not in _FI_CENTURIES or not _DIGITS.issuperset(code[:6] + code[7:10]):
        return False
    if not _is_date(_FI_CENTURIES[code[6]] + int(code[4:6]), int(code[2:4]), int(code[:2])):
        return False
    return "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(code[:6] + code[7:10]) % 31] == code[10]


def in_aadhaar(text: str) -> bool:
    """Indian Aadhaar: twelve digits from 2 on, Verhoeff, no palindrome."""
    number = _extract_digits_of_length(text, 12)
    return bool(number) and number[0] > "1" and number != number[::-1] and _has_verhoeff_digit(number)


def in_gstin(text: str) -> bool:
    """Shape of an Indian GSTIN: state 01 to 37, a PAN (three letters at least in front), entity, Z, check."""
    bare = _compact_to_shape(text, "99*****9999A*Z*")
    return bool(bare) and 1 <= int(bare[:2]) <= 37 and sum(c not in _DIGITS for c in bare[2:7]) >= 3


def in_pan_damaged(text: str) -> bool:
    """Ten letters and digits with four digits in a row, as a bad scan may leave of an Indian PAN."""
    bare = text.upper()
    if len(bare) != 10 or not _ALNUM.issuperset(bare) or _DIGITS.issuperset(bare):
        return False
    return any(_DIGITS.issuperset(bare[i : i + 4]) for i in range(7))


_IN_STATES = (
    "AN AP AR AS BR CG CH CT DD DH DL DN GA GJ HP HR JH JK KA KL LA LD MH ML MN MP MZ NL OD OR PB PY RJ "
    "SK TG TN TR TS UA UK UL UP UT WB"
)


def in_plate(text: str) -> bool:
    """Indian number plate of a state or union territory, serial number not all zeros."""
    bare = _remove_separators(text)
    return len(bare) >= 8 and bare[:2] in _IN_STATES and bare[-4:] != "0000"


def in_plate_shape(text: str) -> bool:
    """Shape of an Indian number plate: the serial number is not all zeros."""
    digits = text.strip("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
    return digits[-4:] != "0000" or (len(digits) == 5 and digits != "00000")


_IT_MONTHS = "ABCDEHLMPRST"
_IT_DIGITS = str.maketrans("LMNPQRSTUV", "0123456789")


def it_fiscal_shape(text: str) -> bool:
    """Shape of an Italian codice fiscale, with letters for digits where two persons collided; not its check letter."""
    bare = _remove_separators(text)
    if len(bare) != 16 or not _ALNUM.issuperset(bare):
        return False
    name, rest = bare[:6], bare[6:]
    year, month, day, place = rest[:2], rest[2], rest[3:5], rest[6:9]
    year, day, place = (part.translate(_IT_DIGITS) for part in (year, day, place))
    if not name.isalpha() or not _DIGITS.issuperset(year + day + place) or month not in _IT_MONTHS:
        return False
    if rest[5] in _DIGITS or rest[9] in _DIGITS or place == "000":
        return False
    if rest[5] not in "ABCDEFGHIJKLMZ":
        return False
    of_month = int(day) - 40 if int(day) > 40 else int(day)
    born = (2000 + int(year), _IT_MONTHS.index(month) + 1, of_month)
    return _is_fiscal_code_name(name[:3]) and _is_fiscal_code_name(name[3:]) and _is_date(*born)


def _is_fiscal_code_name(part: str) -> bool:
    """Consonants first, then vowels, then X for what is missing."""
    rest = part.lstrip("BCDFGHJKLMNPQRSTVWXYZ").lstrip("AEIOU")
    return rest.strip("X") == ""


def it_vat_code(text: str) -> bool:
    """Italian partita IVA: eleven digits, Luhn, not all zeros."""
    number = _extract_digits_of_length(text, 11)
    return bool(number) and number.strip("0") != "" and has_luhn_check_digit(number)


def kr_brn(text: str) -> bool:
    """Korean business registration number."""
    number = _extract_digits_of_length(text, 10)
    if not number:
        return False
    total = _sum_weighted(number[:9], (1, 3, 7, 1, 3, 7, 1, 3, 5)) + int(number[8]) * 5 // 10
    return -total % 10 == int(number[9])


def kr_driver_license(text: str) -> bool:
    """Korean driving licence: region 11 to 26 or 28, year, serial number, two check digits that are not published."""
    number = _extract_digits_of_length(text, 12)
    return bool(number) and (11 <= int(number[:2]) <= 26 or number[:2] == "28")


def _has_kr_month_and_day(number: str) -> bool:
    return bool(number) and 1 <= int(number[2:4]) <= 12 and 1 <= int(number[4:6]) <= 31


def kr_rrn(text: str) -> bool:
    """Korean resident number: birth date and a first digit of 1 to 4. Since October 2020 the rest is random."""
    number = _extract_digits_of_length(text, 13)
    return _has_kr_month_and_day(number) and number[6] in "1234"


def kr_rrn_checked(text: str) -> bool:
    """Korean resident number of before October 2020, with its region and check digit."""
    number = _extract_digits_of_length(text, 13)
    return kr_rrn(text) and int(number[7:9]) <= 95 and (11 - _compute_kr_check_sum(number)) % 10 == int(number[12])


def kr_frn(text: str) -> bool:
    """Korean foreigner number: birth date and a first digit of 5 to 8."""
    number = _extract_digits_of_length(text, 13)
    return _has_kr_month_and_day(number) and number[6] in "5678"


def kr_frn_checked(text: str) -> bool:
    """Korean foreigner number of before October 2020, with its check digit."""
    number = _extract_digits_of_length(text, 13)
    return kr_frn(text) and (13 - _compute_kr_check_sum(number)) % 10 == int(number[12])


def _compute_kr_check_sum(number: str) -> int:
    return _sum_weighted(number[:12], (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)) % 11


def ng_nin(text: str) -> bool:
    """Nigerian NIN: eleven digits, Verhoeff."""
    number = _extract_digits_of_length(text, 11)
    return bool(number) and number.strip("0") != "" and _has_verhoeff_digit(number)


def ph_tin(text: str) -> bool:
    """Philippine TIN: nine digits with a check digit mod 11, perhaps three more for the branch."""
    number = _extract_digits_of_length(text, 9, 12)
    return bool(number) and _sum_weighted(number[:8], (9, 8, 7, 6, 5, 4, 3, 2)) % 11 == int(number[8])


def se_organisation(text: str) -> bool:
    """Swedish organisation number: third digit at least 2, Luhn."""
    number = _extract_digits_of_length(text, 10)
    return bool(number) and number[2] >= "2" and has_luhn_check_digit(number)


def se_personnummer(text: str) -> bool:
    """Swedish personal or coordination number (day + 60), two- or four-digit year, Luhn over the last ten digits."""
    number = _extract_digits_of_length(text.replace("+", "-"), 10, 12)
    if not number or (len(number) == 12 and number[:2] not in ("18", "19", "20")):
        return False
    short = number[-10:]
    month, day = int(short[2:4]), int(short[4:6])
    year = int(number[:4]) if len(number) == 12 else 2000 + int(short[:2])
    return _is_date(year, month, day - 60 if day > 60 else day) and has_luhn_check_digit(short)


_SG_LETTERS = {"S": "JZIHGFEDCBA", "T": "GFEDCBAJZIH", "F": "XWUTRQPNMLK", "G": "RQPNMLKXWUT", "M": "XWUTRQPNJLK"}


def sg_nric(text: str) -> bool:
    """Singapore NRIC or FIN with its check letter."""
    bare = _compact_to_shape(text, "A9999999A")
    if not bare or bare[0] not in _SG_LETTERS:
        return False
    total = _sum_weighted(bare[1:8], (2, 7, 6, 5, 4, 3, 2))
    if bare[0] == "M":
        return "KLJNPQRTUWX"[10 - (total + 3) % 11] == bare[8]
    return _SG_LETTERS[bare[0]][total % 11] == bare[8]


_TH_NO_PROVINCE = "28 29 59 68 69 78 79 87 88 89 97 98 99"


def th_tnin(text: str) -> bool:
    """Thai national identity number: kind of person, province, check digit mod 11."""
    number = _extract_digits_of_length(text, 13)
    if not number or "0" in number[:2] or number[1:3] in _TH_NO_PROVINCE:
        return False
    return (11 - _sum_weighted(number[:12], range(13, 1, -1)) % 11) % 10 == int(number[12])


def uk_driving_licence(text: str) -> bool:
    """British driving licence: name padded with 9, birth date, initials. Its check characters are not published."""
    bare = _compact_to_shape(text, "*****999999***AA")
    if not bare:
        return False
    name = bare[:5].rstrip("9")
    month, day = int(bare[6:8]) % 50, int(bare[8:10])
    initials = bare[11:13]
    if not name.isalpha() or not all(c == "9" or c not in _DIGITS for c in initials):
        return False
    return 1 <= month <= 12 and int(bare[6]) in (0, 1, 5, 6) and 1 <= day <= 31


def uk_nino(text: str) -> bool:
    """British national insurance number: letters that are in use."""
    bare = _compact_to_shape(text, "AA999999A")
    return (
        bool(bare)
        and bare[0] not in "DFIQUV"
        and bare[1] not in "DFIQUVO"
        and bare[:2] not in ("BG", "GB", "NK", "KN", "NT", "TN", "ZZ")
        and bare[8] in "ABCD"
    )


def us_npi(text: str) -> bool:
    """American provider number: Luhn with the prefix 80840, first digit 1 or 2, not all alike."""
    number = _extract_digits_of_length(text, 10)
    return bool(number) and number[0] in "12" and len(set(number[:9])) > 1 and has_luhn_check_digit("80840" + number)


_SSN_SAMPLES = frozenset(("123456789", "078051120", "219099999", "457555462"))


def us_ssn(text: str) -> bool:
    """American social security number: ranges that were never given out, sample numbers, one kind of separator."""
    if len({c for c in text if c in " -."}) > 1:
        return False
    number = _extract_digits_of_length(text, 9)
    if not number or len(set(number)) == 1 or number in _SSN_SAMPLES:
        return False
    return number[:3] not in ("000", "666") and number[0] != "9" and number[3:5] != "00" and number[5:] != "0000"


_VIN_VALUES = dict(zip("0123456789ABCDEFGHJKLMNPRSTUVWXYZ", map(int, "012345678912345678123457923456789"), strict=True))


def vin(text: str) -> bool:
    """Shape of a vehicle identification number: 17 letters and digits without I, O and Q, the last four digits."""
    bare = text.upper()
    if len(bare) != 17 or any(c not in _VIN_VALUES for c in bare):
        return False
    return _DIGITS.issuperset(bare[13:]) and any(c not in _DIGITS for c in bare[:8]) and len(set(bare)) > 4


def vin_checked(text: str) -> bool:
    """Vehicle identification number with the check digit of North America and China at its ninth place."""
    if not vin(text):
        return False
    bare = text.upper()
    weights: Sequence[int] = (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2)
    total = sum(_VIN_VALUES[c] * w for c, w in zip(bare, weights, strict=True))
    return "0123456789X"[total % 11] == bare[8]


def za_id(text: str) -> bool:
    """South African identity number: birth date, citizenship 0 to 2, then 8 or 9, Luhn."""
    number = _extract_digits_of_length(text, 13)
    if not number or number[10] not in "012" or number[11] not in "89":
        return False
    return _is_date(2000 + int(number[:2]), int(number[2:4]), int(number[4:6])) and has_luhn_check_digit(number)


def washington_license(text: str) -> bool:
    """Licence of Washington: twelve characters, a name padded with asterisks and digits, or WDL and nine."""
    bare = text.upper()
    if len(bare) != 12 or not any(c in _DIGITS or c == "*" for c in bare):
        return False
    return bare.startswith("WDL") or bare[:1].isalpha()


def za_vat(text: str) -> bool:
    """South African VAT number: ten digits from 4 on, Luhn."""
    number = _extract_digits_of_length(text, 10)
    return number[:1] == "4" and has_luhn_check_digit(number)


def za_traffic_register(text: str) -> bool:
    """South African traffic register number: thirteen digits that are no identity number."""
    number = _extract_digits_of_length(text, 13)
    return bool(number) and not za_id(number)


def za_driver_license(text: str) -> bool:
    """South African driving licence: ten to fourteen characters, digits in front, a letter behind them."""
    bare = _remove_separators(text)
    return 10 <= len(bare) <= 14 and _DIGITS.issuperset(bare[:6]) and not _DIGITS.issuperset(bare)


def has_digits(text: str) -> bool:
    """A number that a word before it announces: three digits at least, and not a year alone."""
    bare = _remove_separators(text)
    return sum(c in _DIGITS for c in bare) >= 3 and not (len(bare) == 4 and bare[:2] in ("19", "20"))


def plate_shape(text: str) -> bool:
    """A number plate after the word for it: letters and digits, three characters at least."""
    bare = _remove_separators(text)
    return len(bare) >= 3 and any(c in _DIGITS for c in bare) and any(c not in _DIGITS for c in bare)
