"""Pseudonyms of cards, bank accounts and wallets: test cards, invented banks, wallets without a key."""

from __future__ import annotations

from hashlib import sha256

from allonym.checksums.algorithms import BASE58, BECH32, compute_polymod
from allonym.checksums.general import luhn
from allonym.replace.shapes import DIGITS, LETTERS, Draws

# First digits of a brand to the first six of the numbers that payment processors publish for tests.
_TEST_CARDS = {
    "34 37": "378282 371449 378734",
    "4": "411111 401288 424242 400005",
    "51 52 53 54 55": "555555 510510 520082",
    "22 23 24 25 26 27": "222300",
    "6011 64 65": "601111 601100",
    "36 38 39 30": "305693 385200",
    "35": "353011 356600",
    "62": "620000",
    "67 50": "675964",
}
IBAN_DRAWS = 1000
_BECH32 = ("bc", "tb", "ltc", "bcrt", "addr")  # first parts of addresses with such a checksum


def draw_card(code: str, draws: Draws) -> str:
    """Return a card number of the same brand and length, from a test range where one is known, with its check digit."""
    tests = next((tests for starts, tests in _TEST_CARDS.items() if code.startswith(tuple(starts.split()))), "")
    front = draws.pick_element(tests.split()) if tests else code[:4]
    body = front + draws.draw_digit_string(len(code) - len(front) - 1)
    return next(body + d for d in DIGITS if luhn(body + d) or d == "9")


def draw_iban(code: str, draws: Draws) -> str:
    """Return an IBAN of the same country and structure, of another bank, with its check digits.

    Where python-stdnum knows the country's own check digits (Belgium, Spain ...) those are right as well.
    """
    from stdnum import iban

    country, old = code[:2], code[4:]
    out = code
    for _ in range(IBAN_DRAWS):
        new = "".join(draws.pick_element(DIGITS if c.isdigit() else LETTERS) for c in old)
        if new[:4] == old[:4] or new == old:
            continue
        number = int("".join(str(int(c, 36)) for c in f"{new}{country}00"))
        out = f"{country}{98 - number % 97:02}{new}"
        if iban.is_valid(out):
            return out
    return out


def draw_wallet(text: str, draws: Draws) -> str | None:
    """Return the address of a wallet of the same currency and kind; None where that is unknown.

    It is a random hash with its checksum.
    """
    if text[:2] in ("0x", "0X"):
        upper, lower = any(c.isupper() for c in text[2:]), any(c.islower() for c in text[2:])
        digits = DIGITS + ("ABCDEFabcdef" if upper and lower else "ABCDEF" if upper else "abcdef")
        return text[:2] + "".join(draws.pick_element(digits) for _ in text[2:])
    front, separator, data = text.rpartition("1")
    if separator and front.lower() in _BECH32 and len(data) > 6:
        return _draw_bech32(front, data, draws)
    if len(text) > 40:  # Monero: only the network's two characters are fixed
        return text[:2] + "".join(draws.pick_element(BASE58) for _ in text[2:])
    return _draw_base58(text, draws)


def _draw_base58(text: str, draws: Draws) -> str | None:
    number = 0
    for c in text:
        if c not in BASE58:
            return None
        number = number * 58 + BASE58.index(c)
    if number.bit_length() > 200:
        return None
    version = number.to_bytes(25, "big")[:1]
    for _ in range(200):
        raw = version + bytes(draws.draw_number_below(256) for _ in range(20))
        out = _encode_base58(raw + sha256(sha256(raw).digest()).digest()[:4])
        if len(out) == len(text) and out[0] == text[0] and out != text:
            return out
    return None


def _encode_base58(raw: bytes) -> str:
    number = int.from_bytes(raw, "big")
    out = ""
    while number:
        number, digit = divmod(number, 58)
        out = BASE58[digit] + out
    return "1" * (len(raw) - len(raw.lstrip(b"\0"))) + out


def _draw_bech32(front: str, data: str, draws: Draws) -> str:
    """Draw an address of BIP 173 or 350: the witness version stays, the program is drawn, six characters check."""
    low = data.lower()
    prefix = [ord(c) >> 5 for c in front.lower()] + [0] + [ord(c) & 31 for c in front.lower()]
    constant = compute_polymod(prefix + [BECH32.find(c) for c in low])
    values = [BECH32.find(low[0])] + [draws.draw_number_below(32) for _ in range(len(low) - 7)]
    values[-1] &= 16  # the last five bits are filled up with zeros
    check = compute_polymod(prefix + values + [0] * 6) ^ (constant if constant in (1, 0x2BC830A3) else 1)
    values += [check >> 5 * (5 - i) & 31 for i in range(6)]
    out = "".join(BECH32[v] for v in values)
    return f"{front}1{out.upper() if data.isupper() else out}"
