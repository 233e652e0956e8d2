"""Numbers of cards, bank accounts and wallets that pay nothing: test cards, invented banks, wallets without a key."""

from __future__ import annotations

from hashlib import sha256

from allonym.checksums.algorithms import BASE58, BECH32, polymod
from allonym.checksums.general import luhn
from allonym.replace.shapes import Draws

# First digits of a brand to the first six of the numbers that payment processors publish for tests.
_TEST_CARDS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("34", "37"), ("378282", "371449", "378734")),
    (("4",), ("411111", "401288", "424242", "400005")),
    (("51", "52", "53", "54", "55"), ("555555", "510510", "520082")),
    (("22", "23", "24", "25", "26", "27"), ("222300",)),
    (("6011", "64", "65"), ("601111", "601100")),
    (("36", "38", "39", "30"), ("305693", "385200")),
    (("35",), ("353011", "356600")),
    (("62",), ("620000",)),
    (("67", "50"), ("675964",)),
)


def card(code: str, draws: Draws) -> str:
    """A card number of the same brand and length, from a test range where one is known, with its check digit."""
    for starts, tests in _TEST_CARDS:
        if code.startswith(starts):
            front = draws.pick(tests)
            break
    else:
        front = code[:4]
    body = front + "".join(str(draws.below(10)) for _ in range(len(code) - len(front) - 1))
    return next(body + d for d in "0123456789" if luhn(body + d) or d == "9")


IBAN_DRAWS = 1000


def iban(code: str, draws: Draws) -> str:
    """An IBAN of the same country and structure, of another bank, with its check digits.

    Where python-stdnum knows the country's own check digits (Belgium, Spain ...) those are right as well.
    """
    from stdnum import iban as checked

    country, was = code[:2], code[4:]
    out = code
    for _ in range(IBAN_DRAWS):
        new = "".join(draws.pick("0123456789" if c.isdigit() else "ABCDEFGHIJKLMNOPQRSTUVWXYZ") for c in was)
        if new[:4] == was[:4] or new == was:
            continue
        number = int("".join(str(int(c, 36)) for c in f"{new}{country}00"))
        out = f"{country}{98 - number % 97:02}{new}"
        if checked.is_valid(out):
            return out
    return out


def wallet(text: str, draws: Draws) -> str | None:
    """The address of a wallet of the same currency and kind: a random hash with its checksum; None where unknown."""
    if text[:2] in ("0x", "0X"):
        return text[:2] + _hexadecimal(text[2:], draws)
    front, one, data = text.rpartition("1")
    if one and front.lower() in ("bc", "tb", "ltc", "bcrt", "addr") and len(data) > 6:
        return _bech32(front, data, draws)
    if len(text) > 40:  # Monero: only the network's two characters are fixed
        return text[:2] + "".join(draws.pick(BASE58) for _ in text[2:])
    return _base58(text, draws)


def _hexadecimal(text: str, draws: Draws) -> str:
    upper, lower = any(c.isupper() for c in text), any(c.islower() for c in text)
    digits = "0123456789ABCDEFabcdef" if upper and lower else "0123456789ABCDEF" if upper else "0123456789abcdef"
    return "".join(draws.pick(digits) for _ in text)


def _base58(text: str, draws: Draws) -> str | None:
    number = 0
    for c in text:
        if c not in BASE58:
            return None
        number = number * 58 + BASE58.index(c)
    if number.bit_length() > 200:
        return None
    version = number.to_bytes(25, "big")[:1]
    for _ in range(200):
        raw = version + b"".join(draws.below(256).to_bytes(1, "big") for _ in range(20))
        out = _in_base58(raw + sha256(sha256(raw).digest()).digest()[:4])
        if len(out) == len(text) and out[0] == text[0] and out != text:
            return out
    return None


def _in_base58(raw: bytes) -> str:
    number = int.from_bytes(raw, "big")
    out = ""
    while number:
        number, rest = divmod(number, 58)
        out = BASE58[rest] + out
    return "1" * (len(raw) - len(raw.lstrip(b"\0"))) + out


def _bech32(front: str, data: str, draws: Draws) -> str:
    """BIP 173 and 350: the witness version stays, the program is drawn, six characters check."""
    low = data.lower()
    prefix = [ord(c) >> 5 for c in front.lower()] + [0] + [ord(c) & 31 for c in front.lower()]
    constant = polymod(prefix + [BECH32.find(c) for c in low])
    first = BECH32.find(low[0])
    values = [first] + [draws.below(32) for _ in range(len(low) - 7)]
    values[-1] &= 16  # the last five bits are filled up with zeros
    check = polymod(prefix + values + [0] * 6) ^ (constant if constant in (1, 0x2BC830A3) else 1)
    values += [check >> 5 * (5 - i) & 31 for i in range(6)]
    out = "".join(BECH32[v] for v in values)
    return f"{front}1{out.upper() if data.isupper() else out}"
