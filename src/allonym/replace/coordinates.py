"""Pseudonyms of coordinates: moved by up to two degrees, as exact as they were.

All points of one degree move by the same amount, so that near points stay near.
"""

from __future__ import annotations

import re

from allonym.replace.atlas import Atlas
from allonym.replace.postal import digits

_DECIMAL = re.compile(r"(?P<sign>[+\-−]?)(?P<number>\d{1,3}\.\d+)")
_DEGREES = re.compile(r"(\d{1,3})( ?[°º] ?)(\d{1,2})((?:\.\d+)?)( ?['’′] ?)(?:(\d{1,2})((?:\.\d+)?))?")
_HEMISPHERE = re.compile(r"\d(?:\.\d+)?°? ?[NSEWO]\b|\b[NSEW] ?\d")


def are(text: str) -> bool:
    """Whether a text is a pair of coordinates."""
    if len(_DECIMAL.findall(text)) == 2 and not re.search(r"[^\W\d_]{3,}", text):
        return True
    return bool(_DEGREES.search(text)) or text.startswith("geo:")


def moved(atlas: Atlas, text: str) -> str | None:
    """Coordinates moved by up to two degrees, as exact as they were; None for notations that are not known."""
    if _DEGREES.search(text):
        found = list(_DEGREES.finditer(text))
        key = "/".join(m[1] for m in found)
        out, at = "", 0
        for i, m in enumerate(found):
            shift = _shift(atlas, key, i)
            limit = 89 if i == 0 else 179
            total = int(m[1]) * 3600 + int(m[3]) * 60 + int(m[6] or 0) + round(shift * 3600)
            total = abs(total) % (limit * 3600)
            if not m[6]:
                total += 30  # rounded to minutes
            out += text[at : m.start()] + f"{total // 3600}{m[2]}{total // 60 % 60:0{len(m[3])}d}"
            out += digits(atlas, "coordinates", m[4], key) + m[5] if m[4] else m[5]
            if m[6]:
                out += f"{total % 60:0{len(m[6])}d}" + (digits(atlas, "coordinates", m[7], key) if m[7] else "")
            at = m.end()
        return out + text[at:]
    found = list(_DECIMAL.finditer(text))
    if found:
        key = "/".join(m["number"].partition(".")[0] for m in found[:2])
        out, at = "", 0
        for i, m in enumerate(found[:2]):
            places = len(m["number"].partition(".")[2])
            value = float(m["number"]) * (-1 if m["sign"] in ("-", "−") and m["sign"] else 1)
            most = 89.0 if i == 0 and len(found) > 1 else 179.0
            value += _shift(atlas, key, i)
            value -= 2 * most if value > most else -2 * most if value < -most else 0
            if _HEMISPHERE.search(text):
                value = abs(value)
            sign = m["sign"] if m["sign"] in ("-", "−") else "-"
            sign = sign if value < 0 else "+" if m["sign"] == "+" else ""
            out += text[at : m.start()] + sign + f"{abs(value):.{places}f}"
            at = m.end()
        return out + text[at:]
    if re.fullmatch(r"\d{1,2}[A-Z] ?[A-Z]{2} ?\d{4,5} ?\d{4,5}", text):  # MGRS: within its square
        head = len(text) - len(re.sub(r"^\d{1,2}[A-Z] ?[A-Z]{2} ?", "", text))
        return text[:head] + digits(atlas, "coordinates", text[head:], text[:head])
    if "+" in text and re.fullmatch(r"[2-9CFGHJMPQRVWX]{8}\+[2-9CFGHJMPQRVWX]{2,3}", text):  # plus code: near by
        number = atlas.cast.ledger.number("coordinates", text)
        letters = "23456789CFGHJMPQRVWX"
        tail = ""
        for c in text[4:]:
            number, at = divmod(number, 20)
            tail += c if c == "+" else letters[at]
        return text[:4] + tail
    if re.fullmatch(r"[NSEW]? ?\d{1,3}°?,? ?[NSEW]?.*", text) and any(c.isdigit() for c in text):
        return re.sub(r"\d{1,3}", lambda m: str(max(1, (int(m[0]) + 2) % 90)), text)
    return None


def _shift(atlas: Atlas, key: str, axis: int) -> float:
    """Degrees by which all points of one degree move: 0.2 to 2 to either side."""
    number = atlas.cast.ledger.number("coordinates", f"{key}\0{axis}")
    size = 0.2 + (number >> 1) % 1_800_000 / 1_000_000
    return size if number & 1 else -size
