"""Check digits and formats of identifiers that belong to no country.

Every function takes the matched text, with its separators, and answers for any text at all without raising.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from itertools import pairwise

from allonym.checksums.algorithms import BASE58, BECH32, compute_polymod, has_luhn_check_digit

_NOT_DIGIT = re.compile(r"[^0-9]")


def _extract_digits(text: str) -> str:
    return _NOT_DIGIT.sub("", text)


@cache
def _read_top_domains() -> frozenset[str]:
    table = files("allonym").joinpath("checksums", "top_domains.txt")
    return frozenset(table.read_text(encoding="ascii").split())


# Numbers of cards, accounts and wallets


def luhn(text: str) -> bool:
    """Whether the digits in ``text`` end in a Luhn check digit and are not all the same."""
    digits = _extract_digits(text)
    return len(set(digits)) > 1 and has_luhn_check_digit(digits)


def payment_card(text: str) -> bool:
    """A card number: length and leading digits of a known scheme, and the Luhn check digit."""
    d = _extract_digits(text)
    return _has_card_scheme(d) and luhn(d)


def _has_card_scheme(digits: str) -> bool:
    n = len(digits)
    if not 12 <= n <= 19:
        return False
    four, two = int(digits[:4]), int(digits[:2])
    if digits[0] == "4":  # Visa
        return n in (13, 16, 19)
    if 51 <= two <= 55 or 2221 <= four <= 2720 or 2200 <= four <= 2204:  # Mastercard, Mir
        return n == 16 or (2200 <= four <= 2204)
    if two in (34, 37):  # American Express
        return n == 15
    if two in (36, 38, 39) or 300 <= four // 10 <= 305 or four // 10 == 309:  # Diners Club
        return n == 14 or n >= 16
    if two == 35:  # JCB
        return n >= 16
    if four in (2131, 1800) or digits[0] == "1":  # JCB, UATP
        return n == 15
    if two in (60, 62, 64, 65, 81, 82) or four == 9792:  # Discover, UnionPay, RuPay, Troy
        return n >= 16 or (two in (60, 62, 64, 65) and n >= 12)
    return two == 50 or 56 <= two <= 69 or digits.startswith("0604")  # Maestro


def iban(text: str) -> bool:
    """An IBAN: country's length and structure, check digits. Blanks and hyphens are skipped; one case throughout."""
    from stdnum import iban as checked

    bare = text.replace("-", "").replace(" ", "")
    return (bare.isupper() or bare.islower()) and bool(checked.is_valid(bare, check_country=False))


def bic(text: str) -> bool:
    """A SWIFT code of 8 or 11 characters with the code of a country in it."""
    from stdnum import bic as checked

    return bool(checked.is_valid(text)) and text[4:6].upper() in _COUNTRY_CODES


def routing_number(text: str) -> bool:
    """A United States bank routing number: nine digits with their weighted check sum."""
    d = _extract_digits(text)
    if len(d) != 9 or d[0] not in "0123678" or len(set(d)) == 1:
        return False
    return sum(int(c) * w for c, w in zip(d, (3, 7, 1) * 3, strict=True)) % 10 == 0


def base58check(text: str) -> bool:
    """A wallet address in Base58Check, as Bitcoin, Litecoin, Dogecoin and Tron write it."""
    number = 0
    for c in text:
        digit = BASE58.find(c)
        if digit < 0:
            return False
        number = number * 58 + digit
    if number.bit_length() > 200:
        return False
    raw = number.to_bytes(25, "big")
    if len(raw) - len(raw.lstrip(b"\0")) != len(text) - len(text.lstrip("1")):  # a 1 in front is a zero byte
        return False
    return sha256(sha256(raw[:-4]).digest()).digest()[:4] == raw[-4:]


def bech32(text: str) -> bool:
    """An address in Bech32 or Bech32m, such as a Bitcoin address that starts in bc1."""
    if text not in (text.lower(), text.upper()):
        return False
    prefix, _, data = text.lower().rpartition("1")
    if not prefix or len(data) < 6 or any(c not in BECH32 for c in data) or not prefix.isascii():
        return False
    values = [ord(c) >> 5 for c in prefix] + [0] + [ord(c) & 31 for c in prefix] + [BECH32.find(c) for c in data]
    return compute_polymod(values) in (1, 0x2BC830A3)


# Addresses of the internet and of devices


def mailbox(text: str) -> bool:
    """An e-mail address whose domain ends in a known top-level domain, or in one for private networks."""
    local, _, domain = text.rpartition("@")
    return bool(local) and not local.endswith(".") and _is_domain(domain)


def domain_name(text: str) -> bool:
    """A domain: labels with a known top-level domain; a host called just ``www`` is none."""
    name = text.lower()
    return _is_domain(name) and not (name.startswith("www.") and name.count(".") < 2)


def _is_domain(name: str) -> bool:
    labels = name.lower().rstrip(".").split(".")
    if len(labels) < 2 or any(not s or s[0] == "-" or s[-1] == "-" for s in labels):
        return False
    last = labels[-1]
    return last in _read_top_domains() or last in _PRIVATE_DOMAINS or last.startswith("xn--") or not last.isascii()


_PRIVATE_DOMAINS = frozenset(
    "corp example home internal intra intranet invalid lan local localdomain localhost test".split()
)


def web_address(text: str) -> bool:
    """A URL with a scheme or ``www.``: a domain, an IP address, ``localhost``, or any host with a port or a path."""
    rest = text.strip("\"'").partition("://")[2] or text.strip("\"'")
    host, slash, path = rest.partition("/")
    host = host.partition("?")[0].partition("#")[0].rpartition("@")[2]
    if host.startswith("["):
        return True
    host, _, port = host.partition(":")
    if domain_name(host) or host.lower() == "localhost" or ip_address(host):
        return True
    return "://" in text and "." not in host and bool(port or (slash and path))


def ip_address(text: str) -> bool:
    """An IPv4 or IPv6 address, also with a prefix length or a zone. The unspecified ``::`` alone is none."""
    if not any(c.isalnum() for c in text):
        return False
    return _is_ip_interface(text)


def unspecified_address(text: str) -> bool:
    """The IPv6 address ``::``, also with a prefix length."""
    return text.startswith("::") and _is_ip_interface(text)


def _is_ip_interface(text: str) -> bool:

    from ipaddress import ip_interface

    try:
        ip_interface(text)
    except ValueError:
        return False
    return True


def mac_address(text: str) -> bool:
    """A hardware address: 12 hexadecimal digits, neither all zeros nor the broadcast address."""
    bare = re.sub(r"[:.\-]", "", text).lower()
    return len(bare) == 12 and set(bare) <= set("0123456789abcdef") and bare not in ("0" * 12, "f" * 12)


def local_mac_address(text: str) -> bool:
    """A hardware address with the bit that says that it was given locally."""
    return mac_address(text) and bool(int(re.sub(r"[:.\-]", "", text)[:2], 16) & 2)


def uuid(text: str) -> bool:
    """A UUID of version 1 to 8 in the usual variant; the nil UUID is none."""
    bare = text.strip("{}").replace("-", "").lower()
    return len(bare) == 32 and bare[12] in "12345678" and bare[16] in "89ab"


def not_all_same(text: str) -> bool:
    """Letters and digits that are not one character repeated."""
    return len({c.lower() for c in text if c.isalnum()}) > 1


def imei(text: str) -> bool:
    """The serial number of a mobile phone: 15 digits with check digit; 14 and 16 digits carry none."""
    d = _extract_digits(text)
    return luhn(d) if len(d) == 15 else len(d) in (14, 16) and len(set(d)) > 2


# Telephone numbers

_WITH_TRUNK = ("GB", "DE", "FR", "IN", "IL", "JP", "AU", "NL", "ZA", "IT", "BR")  # where one dials 0 first
_WITHOUT_TRUNK = ("US", "IN", "BR", "CN", "ES")
_NORTH_AMERICAN = re.compile(r"\(?[0-9]{3}\)?[ .\-][0-9]{3}[ .\-][0-9]{4}\Z")
_OTHER = re.compile(  # dates, United States social security numbers, IPv4 addresses
    r"(?:\d{3}-\d{2}-\d{4}|\d{1,2}[./\- ]\d{1,2}[./\- ]\d{2,4}|\d{4}[./\- ]\d{1,2}[./\- ]\d{1,2}"
    r"|[0-2]?\d{1,2}(?:\.[0-2]?\d{1,2}){3})\Z"
)


def international_phone(text: str) -> bool:
    """A telephone number with + or 00 and a country code, of a length that the country has."""
    number = text.strip()
    if not number.startswith("+"):
        number = "+" + number.removeprefix("00").removeprefix("0")
    return _is_phone(number, (None,), allow_possible=True)


def national_phone(text: str) -> bool:
    """A telephone number that is valid as it is dialled inside one of the countries that are tried."""
    digits = _extract_digits(text)
    if _OTHER.match(text) or not 7 <= len(digits) <= 15:
        return False
    if _NORTH_AMERICAN.match(text) and digits[0] != "0":  # the common shape, settled without the tables
        return digits[0] != "1"
    return _is_phone(text, _WITH_TRUNK if digits[0] == "0" else _WITHOUT_TRUNK)


def north_american_phone(text: str) -> bool:
    """Ten digits, after an optional 1: neither the area code nor the exchange may be one digit repeated in all."""
    d = _extract_digits(re.split(r"[xX#eE]", text)[0]).removeprefix("00")
    d = d[1:] if len(d) == 11 and d[0] == "1" else d
    return len(d) == 10 and d[0] in "23456789" and len(set(d)) > 2


def philippine_mobile(text: str) -> bool:
    """A mobile number of the Philippines, written with 0 or +63."""
    d = _extract_digits(text).removeprefix("00")
    d = d[2:] if d.startswith("63") else d[1:] if d.startswith("0") else ""
    return len(d) == 10 and d[0] == "9" and len(set(d[1:])) > 1


def turkish_phone(text: str) -> bool:
    """A number of Turkey: ten digits that start in 2 to 5, after an optional 0 or +90."""
    d = _extract_digits(text).removeprefix("00")
    d = d[2:] if len(d) == 12 and d.startswith("90") else d[1:] if len(d) == 11 and d[0] == "0" else d
    return len(d) == 10 and d[0] in "2345" and len(set(d)) > 2


def south_african_mobile(text: str) -> bool:
    """A mobile number of South Africa, written with 0 or +27."""
    return _classify_south_african_phone(text) == "mobile"


def south_african_telephone(text: str) -> bool:
    """A number of South Africa that is not a mobile one: of a place, of a service, or over the internet."""
    return _classify_south_african_phone(text) == "telephone"


def _classify_south_african_phone(text: str) -> str:
    import phonenumbers

    d = _extract_digits(text)
    if not text.strip("( ").startswith(("0", "+27")) or len(d) > 14:
        return ""
    try:
        number = phonenumbers.parse("+" + d[2:] if d.startswith("00") else text, "ZA")
    except phonenumbers.NumberParseException:
        return ""
    if number.country_code != 27 or not phonenumbers.is_valid_number(number):
        return ""
    return "mobile" if phonenumbers.number_type(number) == phonenumbers.PhoneNumberType.MOBILE else "telephone"


def _is_phone(text: str, regions: Sequence[str | None], allow_possible: bool = False) -> bool:
    import phonenumbers

    for region in regions:
        try:
            number = phonenumbers.parse(text, region)
        except phonenumbers.NumberParseException:
            continue
        if phonenumbers.is_valid_number(number) or (allow_possible and phonenumbers.is_possible_number(number)):
            return True
    return False


# Words and codes


def has_digit(text: str) -> bool:
    """A code: at least three letters or digits, one of them a digit, and not just a year."""
    marks = [c for c in text if c.isalnum()]
    if len(marks) < 3 or not any(c.isdigit() for c in marks):
        return False
    return not (text.isdigit() and len(text) == 4 and text[:2] in ("19", "20"))


def named_code(text: str) -> bool:
    """A code right after its name: three digits at least, and no year, years or date ("2020-21", "12/31")."""
    parts = re.split(r"[-/]", text)
    if len(parts) == 2 and all(map(str.isdigit, parts)):
        first, second = map(int, parts)
        is_year = 1900 <= first <= 2099 and len(parts[1]) <= 2
        if is_year or (first <= 31 and second <= 31):
            return False
    return sum(map(str.isdigit, text)) >= 3 and has_digit(text)


def street_name(text: str) -> bool:
    """A number and a street: "2005 the Court", "1998 Supreme Court" and "102 S. Ct." are none."""
    words = re.findall(r"[A-Za-z][\w'’-]*", text)
    names = {word.lower() for word in words[:-1] if len(word) > 1} - _ARTICLES
    heads = [word.lower().rstrip(".") for word in words]
    if "court" in heads and (not names or names & _COURTS):
        return False
    return bool(names) or "The" in words


_ARTICLES = frozenset("the a an of de la del this that these every each and but in on at by before see clerk".split())
_COURTS = frozenset(
    "supreme constitutional district high appeal appeals federal circuit county crown national regional administrative "
    "european international grand criminal civil family labour commercial tax magistrates superior municipal "
    "bankruptcy first".split()
)


def member_id(text: str) -> bool:
    """What a health insurer may print on a card: six to twenty letters and digits, both kinds, hyphens between."""
    bare = text.replace("-", "")
    return 6 <= len(text) <= 20 and any(c.isdigit() for c in bare) and any(c.isalpha() for c in bare)


def login_name(text: str) -> bool:
    """A user name: at least three characters, and not a word that follows such a hotword in plain prose."""
    bare = text.strip("\"'.-").lower()
    return len(bare) >= 3 and bare.removeprefix("e-") not in _PROSE


def named_login(text: str) -> bool:
    """A user name with the shape of one: a digit or an underscore in it, or a capital after a small letter."""
    shaped = any(c.isdigit() or c == "_" for c in text) or any(a.islower() and b.isupper() for a, b in pairwise(text))
    return shaped and login_name(text)


def personal_login(text: str) -> bool:
    """A user name that may be a person's, unlike those of machines and of examples."""
    return login_name(text) and text.lower() not in _SERVICE_LOGINS


_SERVICE_LOGINS = frozenset(
    "admin administrator all app appuser azureuser build builder ci circleci container default deploy dev developer "
    "docker ec2-user git guest jenkins me node nobody pi postgres public root runner shared someone test testuser "
    "ubuntu user username user1 user2 vagrant vscode worker www you yourname your_name your-name".split()
)
_PROSE = frozenset(
    "about above address again all already also always and another any anything are available based been being both "
    "broken but call can change changed correct could currently data details did different disabled does down each "
    "either else email enabled entered entry every everything expired failed for from full fully get given gone good "
    "had has have her here his how incorrect into invalid issue its just known like locked made mail make missing "
    "more must name needed never new not nothing now number off okay old one only optional our out over own page "
    "password phone please private protected public required reset right same screen secure sent set should shown "
    "simple simply some something still such taken that the their them then there these they this those through time "
    "too unavailable unique unknown until used user username using valid very was way weak well what when where "
    "which who will with without working wrong yes you your".split()
)


def secret(text: str) -> bool:
    """What may be a password: at least four characters, not a word that follows "password is" in plain prose."""
    bare = text.strip("\"'.,;()")
    return len(bare) >= 4 and bare.lower() not in _PROSE and len(set(bare)) > 1


def dea_number(text: str) -> bool:
    """A number of the United States drug enforcement administration: two characters, seven digits, check digit."""
    d = text[2:].strip()
    if len(text) != 9 or not (d.isascii() and d.isdigit()):
        return False
    odd = int(d[0]) + int(d[2]) + int(d[4])
    even = int(d[1]) + int(d[3]) + int(d[5])
    return (odd + 2 * even) % 10 == int(d[6])


def german_postcode(text: str) -> bool:
    """Five digits in the range of German postal codes."""
    return len(text) == 5 and text.isascii() and text.isdigit() and 1001 <= int(text) <= 99998 and text != "01000"


def british_postcode(text: str) -> bool:
    """A British postcode in one of the 124 areas."""
    area = re.match(r"[A-Za-z]{1,2}", text)
    return area is not None and area[0].upper() in _POSTCODE_AREAS


_POSTCODE_AREAS = frozenset(
    "AB AL B BA BB BD BF BH BL BN BR BS BT BX CA CB CF CH CM CO CR CT CV CW DA DD DE DG DH DL DN DT DY E EC EH EN "
    "EX FK FY G GI GL GU GY HA HD HG HP HR HS HU HX IG IM IP IV JE KA KT KW KY L LA LD LE LL LN LS LU M ME MK ML N "
    "NE NG NN NP NR NW OL OX PA PE PH PL PO PR RG RH RM S SA SE SG SK SL SM SN SO SP SR SS ST SW SY TA TD TF TN TQ "
    "TR TS TW UB W WA WC WD WF WN WR WS WV YO ZE".split()
)
_COUNTRY_CODES = frozenset(
    "AD AE AF AG AI AL AM AO AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BR BS BT BW BY BZ CA CD CF "
    "CG CH CI CL CM CN CO CR CU CV CW CY CZ DE DJ DK DM DO DZ EC EE EG ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG "
    "GH GI GL GM GN GP GQ GR GT GU GW GY HK HN HR HT HU ID IE IL IM IN IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP "
    "KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ "
    "NA NC NE NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG "
    "SH SI SK SL SM SN SO SR SS ST SV SY SZ TC TD TG TH TJ TL TM TN TO TR TT TV TW TZ UA UG US UY UZ VA VC VE VG VI "
    "VN VU WF WS XK YE YT ZA ZM ZW".split()
)


def secret_shape(text: str) -> bool:
    """What may be a password or key after "is": as :func:`secret`, with a digit, a sign or a capital inside."""
    bare = text.strip("\"'.,;()")
    mixed = bare[1:] != bare[1:].lower() and not bare.isupper()
    return secret(text) and (mixed or not bare.isalpha())


def three_digits(text: str) -> bool:
    """At least three digits (P2's rule for numbers)."""
    return sum(c.isdigit() for c in text) >= 3
