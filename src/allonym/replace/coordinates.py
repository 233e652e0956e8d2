"""Pseudonyms of coordinates: moved by up to two degrees, as exact as they were.

All points of one degree move by the same amount, so that near points stay near.
"""

from __future__ import annotations

import re

from allonym.replace.place_map import PlaceMap
from allonym.replace.postal import change_digits
from allonym.replace.wording import splice_text

_DECIMAL = re.compile(r"(?P<sign>[+\-−]?)(?P<number>\d{1,3}\.\d+)")
_DEGREES = re.compile(
    r"(?P<degrees>\d{1,3})( ?[°º] ?)(?P<minutes>\d{1,2})((?:\.\d+)?)( ?['’′] ?)(?:(?P<seconds>\d{1,2})((?:\.\d+)?))?"
)
_HEMISPHERE = re.compile(r"\d(?:\.\d+)?°? ?[NSEWO]\b|\b[NSEW] ?\d")
_MGRS = re.compile(r"(\d{1,2}[A-Z] ?[A-Z]{2} ?)(\d{4,5} ?\d{4,5})")
_PLUS_CODE = re.compile(r"[2-9CFGHJMPQRVWX]{8}\+[2-9CFGHJMPQRVWX]{2,3}")
_PLUS_LETTERS = "23456789CFGHJMPQRVWX"
_ROUGH = re.compile(r"[NSEW]? ?\d{1,3}°?,? ?[NSEW]?.*")


def is_coordinates(text: str) -> bool:
    """Whether a text is a pair of coordinates."""
    if len(_DECIMAL.findall(text)) == 2 and not re.search(r"[^\W\d_]{3,}", text):
        return True
    return bool(_DEGREES.search(text)) or text.startswith("geo:")


def move_coordinates(places: PlaceMap, text: str) -> str | None:
    """Return coordinates moved by up to two degrees, as exact as they were; None for unknown notations."""
    if matches := list(_DEGREES.finditer(text)):
        key = "/".join(m["degrees"] for m in matches)
        return splice_text(text, ((*m.span(), _move_degrees(places, m, key, axis)) for axis, m in enumerate(matches)))
    if matches := list(_DECIMAL.finditer(text))[:2]:
        key = "/".join(m["number"].partition(".")[0] for m in matches)
        limits = (89.0 if len(matches) > 1 else 179.0, 179.0)
        return splice_text(
            text, ((*m.span(), _move_decimal(places, m, key, axis, limits[axis])) for axis, m in enumerate(matches))
        )
    if match := _MGRS.fullmatch(text):  # a point stays within its square
        return match[1] + change_digits(places, "coordinates", match[2], match[1])
    if _PLUS_CODE.fullmatch(text):  # another one near by
        number = places.cast.ledger.number("coordinates", text)
        code = text[:4]
        for c in text[4:]:
            number, index = divmod(number, 20)
            code += c if c == "+" else _PLUS_LETTERS[index]
        return code
    if _ROUGH.fullmatch(text) and any(c.isdigit() for c in text):
        return re.sub(r"\d{1,3}", lambda m: str(max(1, (int(m[0]) + 2) % 90)), text)
    return None


def _move_degrees(places: PlaceMap, match: re.Match[str], key: str, axis: int) -> str:
    """Move an angle in degrees, minutes and maybe seconds; other decimals stand for its decimals."""
    degrees, sign, minutes, minute_decimals, minute_sign, seconds, second_decimals = match.groups()
    shift = round(_draw_degree_shift(places, key, axis) * 3600)
    total = int(degrees) * 3600 + int(minutes) * 60 + int(seconds or 0) + shift
    total = abs(total) % ((89 if axis == 0 else 179) * 3600)
    if not seconds:
        total += 30  # rounded to minutes
    out = f"{total // 3600}{sign}{total // 60 % 60:0{len(minutes)}d}"
    out += change_digits(places, "coordinates", minute_decimals, key) + minute_sign
    if seconds:
        out += f"{total % 60:0{len(seconds)}d}" + change_digits(places, "coordinates", second_decimals, key)
    return out


def _move_decimal(places: PlaceMap, match: re.Match[str], key: str, axis: int, limit: float) -> str:
    decimals = len(match["number"].partition(".")[2])
    value = float(match["number"]) * (-1 if match["sign"] in ("-", "−") else 1)
    value += _draw_degree_shift(places, key, axis)
    value -= 2 * limit if value > limit else -2 * limit if value < -limit else 0
    if _HEMISPHERE.search(match.string):
        value = abs(value)
    minus = match["sign"] if match["sign"] in ("-", "−") else "-"
    return f"{minus if value < 0 else '+' if match['sign'] == '+' else ''}{abs(value):.{decimals}f}"


def _draw_degree_shift(places: PlaceMap, key: str, axis: int) -> float:
    """Return the degrees by which all points of one degree move: 0.2 to 2 to either side."""
    number = places.cast.ledger.number("coordinates", f"{key}\0{axis}")
    size = 0.2 + (number >> 1) % 1_800_000 / 1_000_000
    return size if number & 1 else -size
