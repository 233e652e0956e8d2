"""Validators of national identifiers: published examples, single errors, agreement with python-stdnum, no raising."""

from __future__ import annotations

from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym.checksums import get_validator, national
from allonym.detection.rules import read_builtin_rules

NAMES = sorted({rule.validator for rule in read_builtin_rules() if rule.validator})
OWN = sorted(
    name
    for name, function in vars(national).items()
    if callable(function) and not name.startswith("_") and getattr(function, "__module__", "") == national.__name__
)

# A number that the issuer or a textbook prints, and how many single changes of a digit its check lets through.
CHECKED = [
    ("au_medicare", "3950461312", range(8)),
    ("ca_sin", "453670911", range(1, 9)),
    ("de_document", "L01X00T471", (3, 7, 8, 9)),
    ("de_health_insurance", "A000500015", range(1, 10)),
    ("de_lanr", "478213001", range(6)),
    ("de_vat_id", "DE811569869", range(2, 11)),
    ("es_nif", "54362315K", range(8)),
    ("fi_personal_identity_code", "131052-308T", range(7, 10)),
    ("in_aadhaar", "234123412346", range(1, 12)),
    ("it_vat_code", "00743110157", range(11)),
    ("ph_tin", "239481720", range(9)),
    ("se_organisation", "5560160680", range(3, 10)),
    ("se_personnummer", "8112289874", range(6, 10)),
    ("sg_nric", "S1234567D", range(1, 8)),
    ("th_tnin", "1234545678781", range(3, 12)),
    ("us_npi", "1679576722", range(1, 10)),
    ("vin_checked", "1M8GDM9AXKP042788", (0, 2, 13, 14, 15, 16)),
    ("za_id", "7503305044089", range(6, 10)),
    ("cn_id", "11010519491231002X", range(14, 17)),
    ("kr_brn", "2208162517", range(10)),
]


@check_each_row("name, number, places", CHECKED)
def test_one_wrong_digit_is_noticed(name: str, number: str, places: range) -> None:
    check = getattr(national, name)
    assert check(number)
    wrong = [
        number[:i] + d + number[i + 1 :] for i in places if number[i].isdigit() for d in "0123456789" if d != number[i]
    ]
    assert wrong
    passed = [text for text in wrong if check(text)]
    # A modulus under 11 with weights that share a factor with it lets few pairs through; most errors are caught.
    assert len(passed) <= len(wrong) // 8, passed


@check_each_row(
    "name, text, right",
    [
        ("us_ssn", "432-19-7460", True),
        ("us_ssn", "432-19 7460", False),
        ("us_ssn", "666-19-7460", False),
        ("us_ssn", "932-19-7460", False),
        ("us_ssn", "432-00-7460", False),
        ("us_ssn", "432-19-0000", False),
        ("us_ssn", "219-09-9999", False),
        ("us_npi", "1111111112", False),
        ("uk_nino", "JM482193C", True),
        ("uk_nino", "GB482193C", False),
        ("uk_nino", "JO482193C", False),
        ("uk_nino", "JM482193E", False),
        ("uk_driving_licence", "FOX99801123DE9XK", True),
        ("uk_driving_licence", "99999801123DE9XK", False),
        ("uk_driving_licence", "FO9XX801123DE9XK", False),
        ("uk_driving_licence", "FOX99851323DE9XK", False),
        ("de_tax_id", "86095742719", True),
        ("de_tax_id", "11114567890", False),
        ("de_social_security", "65180839J009", True),
        ("de_social_security", "65180839J008", False),
        ("de_social_security", "65320839J009", False),
        ("de_bsnr", "000000000", False),
        ("de_bsnr_issued", "381234567", True),
        ("de_bsnr_issued", "991234567", False),
        ("fi_personal_identity_code", "290201A0001", False),
        ("in_gstin", "38AAPFU0939F1ZV", False),
        ("in_plate", "MH12AB4821", True),
        ("in_plate", "ZZ12AB4821", False),
        ("in_plate_shape", "I00000", False),
        ("in_pan_damaged", "A48216KLMN", True),
        ("in_pan_damaged", "ABCDEFGHIJ", False),
        ("it_fiscal_shape", "RCCMNL83S18D969K", True),
        ("it_fiscal_shape", "RCCMNL83S18N969K", False),
        ("it_fiscal_shape", "AEBMNL83S18D969K", False),
        ("it_fiscal_shape", "RCCMNLUPSMUDVSVK", True),
        ("kr_rrn", "970218-1482193", True),
        ("kr_rrn", "970218-5482193", False),
        ("kr_frn", "970218-5482193", True),
        ("kr_driver_license", "27-08-482193-41", False),
        ("kr_driver_license", "28-08-482193-41", True),
        ("se_personnummer", "8112889872", False),
        ("th_tnin", "1284545678781", False),
        ("ca_sin", "046454286", False),
        ("vin", "1M8GDM9AXKP042788", True),
        ("vin", "1M8GDM9AXKPO42788", False),
        ("vin", "11111111111111111", False),
        ("za_traffic_register", "7503305044089", False),
        ("washington_license", "DOEJ*AB482CD", True),
        ("washington_license", "WASHINGTONIA", False),
        ("has_digits", "2024", False),
        ("has_digits", "renewals", False),
        ("has_digits", "X482193", True),
    ],
)
def test_rules_of_the_issuer(name: str, text: str, right: bool) -> None:
    assert getattr(national, name)(text) is right


AGREE = [
    ("in_aadhaar", "in_.aadhaar", 12),
    ("th_tnin", "th.pin", 13),
    ("it_vat_code", "it.iva", 11),
    ("de_tax_id", "de.idnr", 11),
    ("de_vat_id", "de.vat", 9),
    ("se_organisation", "se.orgnr", 10),
]


@pytest.mark.parametrize(("own", "module", "length"), AGREE, ids=[row[0] for row in AGREE])
def test_at_least_what_stdnum_accepts(own: str, module: str, length: int) -> None:
    """The rules here are wider on purpose (test numbers, ranges), never narrower where the range is in use."""
    other = import_module(f"stdnum.{module}").is_valid
    step = 10**length // 4001
    tried = 0
    for seed in range(1, 4001):
        body = str(seed * step)[:-1].rjust(length - 1, "0")
        for check in "0123456789":
            text = ("DE" if own == "de_vat_id" else "") + body + check
            if other(text):
                tried += 1
                if own == "th_tnin" and not national.th_tnin(text):
                    assert text[1] == "0" or text[1:3] in national._TH_NO_PROVINCE
                elif own == "se_organisation" and not national.se_organisation(text):
                    assert text[2] < "2"
                else:
                    assert getattr(national, own)(text)
    assert tried > 20


JUNK = ("", "0", "A" * 5000, "1" * 5000, "\u0663" * 11, "\u00b2" * 9, "\ud800" * 3, "\x00")


@given(st.text(max_size=40) | st.text(alphabet="0123456789ABXZ -./", max_size=24) | st.from_regex(r"\d{8,14}"))
def test_no_validator_raises(text: str) -> None:
    for name in NAMES:
        assert get_validator(name)(text) in (True, False), name


@check_each_row("name", NAMES)
def test_no_validator_raises_for_junk(name: str) -> None:
    assert all(get_validator(name)(junk) in (True, False) for junk in JUNK)


@check_each_row("name", OWN)
def test_nothing_is_no_number(name: str) -> None:
    if name != "in_plate_shape":  # looks at the serial number alone; its pattern does the rest
        assert getattr(national, name)("") is False
