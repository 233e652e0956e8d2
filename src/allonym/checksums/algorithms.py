"""Check digits that several kinds of numbers have: Luhn; Bech32 of wallet addresses (BIP 173) and their alphabets."""

from __future__ import annotations

from collections.abc import Sequence

BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"


def has_luhn_check_digit(digits: str) -> bool:
    """Return whether digits, from 0 to 9, end in a Luhn check digit; ``0000`` does."""
    total = 0
    for i, digit in enumerate(reversed(digits)):
        number = int(digit) << (i & 1)
        total += number - 9 if number > 9 else number
    return total % 10 == 0


def compute_polymod(values: Sequence[int]) -> int:
    """The remainder of five-bit values under the generator of Bech32."""
    generators = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
    check = 1
    for value in values:
        top = check >> 25
        check = (check & 0x1FFFFFF) << 5 ^ value
        for i, generator in enumerate(generators):
            if top >> i & 1:
                check ^= generator
    return check
