"""Validators of identifiers that belong to no country."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym.checksums import general, get_validator
from allonym.errors import PolicyError

VALIDATORS = [
    f
    for n, f in inspect.getmembers(general, inspect.isfunction)
    if not n.startswith("_") and f.__module__ == general.__name__
]

ACCEPTED = {
    "luhn": ["4539578763621486", "79927398713"],
    "payment_card": ["4539 5787 6362 1486", "3714-496353-98431", "6304 9506 0000 0000 00", "5555555555554444"],
    "iban": ["DE02 1203 0000 0000 2020 51", "de02120300000000202051", "GB33-BUKB-2020-1555-5555-55"],
    "bic": ["BYLADEM1001", "DEUTDEFF"],
    "routing_number": ["011000015", "0110-0001-5"],
    "base58check": ["1BoatSLRHtKNngkdXEeobR76b53LETtpyT", "3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy"],
    "bech32": ["bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", "A12UEL5L", "A1LQFN3A", "a1lqfn3a"],
    "mailbox": ["kim@north-lake.com", "kim@box.internal"],
    "domain_name": ["north-lake.co.uk", "xn--bcher-kva.example", "www.lake.museum"],
    "web_address": [
        "http://north-lake.com",
        "www.lake.museum/x",
        "http://localhost",
        "http://box/x",
        "https://10.1.2.3:8/",
    ],
    "ip_address": ["10.0.0.1", "10.0.0.0/8", "2001:db8::1", "fe80::1%eth0", "::ffff:10.0.0.1"],
    "unspecified_address": ["::", "::/0"],
    "mac_address": ["9C:B6:D0:1A:2B:3C", "9cb6.d01a.2b3c"],
    "local_mac_address": ["02:42:ac:11:00:02"],
    "uuid": ["3f2b8c1e-7d4a-4b6f-9a21-5c0e8d7f6b3a"],
    "not_all_same": ["1112"],
    "imei": ["356938035643809", "35-693803-564380-9"],
    "international_phone": ["+49 30 23125456", "0044 20 7946 0018"],
    "national_phone": ["030 23125456", "(312) 555-0187", "01 42 68 53 11"],
    "north_american_phone": ["312-555-0187", "+1 (312) 555-0187 x9", "001-312-555-0187"],
    "philippine_mobile": ["0918 555 0123", "+639185550123"],
    "south_african_mobile": ["083 418 2290", "+27 (0)83 418 2290", "0027834182290"],
    "south_african_telephone": ["(021) 418 2290", "+27 31 418 2290", "0800 123 456", "087 123 4567"],
    "member_id": ["KWZ40118265", "KW-4011"],
    "named_code": ["22-451", "2020/118", "INC0044821", "55231"],
    "street_name": ["14 Old Court Road", "8 Tennis Court", "12 The Drive", "221B Baker St.", "5 5th Ave"],
    "turkish_phone": ["0532 555 01 23", "+90 212 555 01 23", "3125550123"],
    "has_digit": ["A-12345", "448"],
    "login_name": ["marlow"],
    "named_login": ["marlow77", "BlueKestrel"],
    "personal_login": ["bkowalenko"],
    "secret": ["hunter2", "owls"],
    "secret_shape": ["hunter2", "blueKestrel"],
    "three_digits": ["1 2 3"],
    "dea_number": ["BJ6125341", "bj6125341"],
    "german_postcode": ["01067", "99998"],
    "british_postcode": ["LS1 4DY", "ls14dy"],
}
REFUSED = {
    "luhn": ["4539578763621487", "0000000000", ""],
    "payment_card": ["4539578763621487", "9999999999999995", "79927398713"],
    "iban": ["DE02120300000000202052", "De02120300000000202051", "XX02120300000000202051", "DE0212030000000020205"],
    "bic": ["DEUTXXFF", "DEUTDEF"],
    "routing_number": ["011000016", "000000000", "911000015"],
    "base58check": [
        "1BoatSLRHtKNngkdXEeobR76b53LETtpyU",
        "1Boat0LRHtKNngkdXEeobR76b53LETtpyT",
        "11BoatSLRHtKNngkdXEeobR76b53LETtpyT",
        "",
    ],
    "bech32": [
        "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5",
        "BC1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
        "1",
        "a1lqfn3q",
    ],
    "mailbox": ["kim@north", "kim@lake.notatld", "@lake.com", "kim.@lake.com"],
    "domain_name": ["www.com", "north", "-a.com", "a..com", "late.so_we"],
    "web_address": ["http://nowhere", "www.nowhere", "http://a.notatld"],
    "ip_address": ["10.0.0.256", "::", "12:34:56", "2001:db8::1::2", "10.0.0.0/33"],
    "unspecified_address": ["::1:", ":::", "10.0.0.1"],
    "mac_address": ["00:00:00:00:00:00", "FF:FF:FF:FF:FF:FF", "9C:B6:D0:1A:2B"],
    "local_mac_address": ["9C:B6:D0:1A:2B:3C"],
    "uuid": ["00000000-0000-0000-0000-000000000000", "3f2b8c1e-7d4a-4b6f-0a21-5c0e8d7f6b3a"],
    "not_all_same": ["1111", ""],
    "imei": ["356938035643808", "1234"],
    "international_phone": ["+999 12345", "+", "+1 1"],
    "national_phone": ["1995-2003", "03.05.1971", "12", "987-65-4320"],
    "north_american_phone": ["112-555-0187", "312-555-018", "2222222222"],
    "philippine_mobile": ["9185550123", "0818 555 0123", "0999999999"],
    "south_african_mobile": ["021 418 2290", "27834182290", "083 4", "+44 7700 900123"],
    "south_african_telephone": ["083 418 2290", "+27 83 418 2290", "021 418 229", "21 418 2290"],
    "member_id": ["40118265", "required", "KW-41", "K" + "1" * 20],
    "named_code": ["2020-21", "12/31", "A1", "1999"],
    "street_name": [
        *("2005 the Court", "7 This Court", "1 But the Court", "2010, the Bankruptcy Court", "1998 Supreme Court"),
        *("886, 102 S. Ct", "8 U. St."),
    ],
    "turkish_phone": ["0732 555 01 23", "532 555 01 2"],
    "has_digit": ["ABC", "2019", "a1"],
    "login_name": ["required", "ab"],
    "named_login": ["marlow", "required"],
    "personal_login": ["ubuntu", "Build", "required"],
    "secret": ["required", "aaaa", "abc"],
    "secret_shape": ["owls", "Required", "OWLS"],
    "three_digits": ["12 a"],
    "dea_number": ["BJ6125342", "BJ612534", "BJ61253４1"],
    "german_postcode": ["01000", "99999", "00000", "1067", "１0115"],
    "british_postcode": ["QQ1 4DY", "1A1 4DY"],
}


def cases(table: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(name, text) for name, texts in table.items() for text in texts]


@check_each_row("name, text", cases(ACCEPTED))
def test_accepts(name: str, text: str) -> None:
    assert get_validator(name)(text) is True


@check_each_row("name, text", cases(REFUSED))
def test_refuses(name: str, text: str) -> None:
    assert get_validator(name)(text) is False


def test_every_validator_has_both() -> None:
    names = {f.__name__ for f in VALIDATORS}
    assert names == set(ACCEPTED) == set(REFUSED)


@pytest.mark.parametrize("check", VALIDATORS, ids=lambda f: f.__name__)
@given(text=st.one_of(st.text(max_size=40), st.text(alphabet="0123456789+-. :/@xABCdef％１²ß", max_size=40)))
@settings(max_examples=20)
def test_never_raises(check: Callable[[str], bool], text: str) -> None:
    assert check(text) in (True, False)


@given(st.text(alphabet="0123456789", min_size=5, max_size=18), st.integers(0, 9))
@settings(max_examples=50)
def test_one_changed_digit_breaks_luhn(digits: str, change: int) -> None:
    whole = next(digits + c for c in "0123456789" if _luhn_sum(digits + c) % 10 == 0)
    assert general.luhn(whole) is (len(set(whole)) > 1)
    other = whole[:2] + str((int(whole[2]) + 1 + change % 9) % 10) + whole[3:]
    assert not general.luhn(other)


def _luhn_sum(digits: str) -> int:
    return sum(int(c) if i % 2 == 0 else sum(divmod(2 * int(c), 10)) for i, c in enumerate(reversed(digits)))


def test_unknown_name_is_an_error() -> None:
    with pytest.raises(PolicyError):
        get_validator("no_such_check")
    with pytest.raises(PolicyError):
        get_validator("stdnum:no.such.module")
