"""The generalising operator: a coarser value in place of an exact one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

from allonym.protocol import Mention, Setting, check_range, traits
from allonym.replace.dates import read_date
from allonym.replace.wording import read_number

LONGEST = 64
"""Characters of a value."""
MONTHS = "January February March April May June July August September October November December".split()

# Three-digit ZIP areas of at most 20,000 people (2000 census; HHS guidance on 45 CFR 164.514(b)), which become 000.
SMALL_ZIP3 = frozenset("036 059 063 102 203 556 692 790 821 823 830 831 878 879 884 890 893".split())

_AGE = re.compile(
    r"(?P<before>(?:aged?|age of|turned|is)?\s*)"
    r"(?P<n>[0-9]{1,3}|[a-z]+(?:[- ](?:one|two|three|four|five|six|seven|eight|nine))?)"
    r"(?P<after>(?:[- ]?(?:years?|yrs?|y/?o)\.?)?(?:[- ]?(?:old|of age))?)",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"(?P<sign>[$€£¥₹]|[A-Z]{2,3}\$?\s?)?\s?(?P<n>[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]{1,15}(?:\.[0-9]+)?)"
    r"\s?(?P<unit>%|percent|per cent|pct|thousand|million|billion|trillion|(?:k|mn?|bn?|tn?)(?![a-z]))?"
    r"\s?(?P<tail>dollars?|euros?|pounds?|cents?|usd|eur|gbp|chf|jpy|yen|kg|kilos?|kilograms?|g|grams?|lbs?|"
    r"km|kilomet(?:er|re)s?|miles?|mi|m|met(?:er|re)s?|cm|mm|feet|ft|inch(?:es)?|in|litres?|liters?|l|ml|mg|€|£|\$)?",
    re.IGNORECASE,
)
_CLOCK = re.compile(
    r"(?P<h>[0-9]{1,2})(?:[:.][0-9]{2}){0,2}\s*(?:(?P<half>[ap])\.?m\.?)?(?:\s?(?:o'clock|h|hrs?))?", re.IGNORECASE
)
_DEGREES = re.compile(
    r"(?P<a>[-+]?[0-9]{1,2}\.[0-9]+)°?\s?(?P<ns>[NS])?(?P<mid>\s?[,; ]\s?)"
    r"(?P<b>[-+]?[0-9]{1,3}\.[0-9]+)°?\s?(?P<ew>[EW])?",
    re.IGNORECASE,
)
_SCALES = {"k": 3, "thousand": 3, "m": 6, "mn": 6, "million": 6, "b": 9, "bn": 9, "billion": 9}
_SCALES |= {"t": 12, "tn": 12, "trillion": 12}


def _check_generalise_options(options: Mapping[str, Any], where: str) -> None:
    check_range(options, where, "width", 10, 1, 100)
    check_range(options, where, "top", 90, 18, 120, " years")


@traits(repeats=True, lossy=True, check=_check_generalise_options)
def generalise(
    mention: Mention,
    setting: Setting,
    *,
    level: Literal["year", "month", "decade"] = "year",
    order: Literal["mdy", "dmy"] = "mdy",
    width: int = 10,
    top: int = 90,
) -> str:
    """Write a coarser value: the year of a date, the band of an age, the magnitude of a number, the area of a postcode.

    IP addresses become their /24 or /48 network, coordinates keep one decimal (about 11 km), times become parts of
    the day. Values that it cannot read become tags, never the original; so do places.

    Args:
        level: the part of a date that stays.
        order: how ``03/04/2020`` is read.
        width: years in an age band (1: ages under ``top`` stay exact), and points in a percentage's band.
        top: ages from here on are one band.
    """
    text = mention.text.strip()
    if len(text) > LONGEST:
        return mention.tag
    coarsen: Mapping[str, Callable[[], str | None]] = {
        "AGE": lambda: coarsen_age(text, width, top),
        "TIME": lambda: _coarsen_time(text),
        "DATE_TIME": lambda: coarsen_date(text, level, order) or _coarsen_time(text),
        "NUMERIC": lambda: _coarsen_quantity(text, width),
        "POSTAL_CODE": lambda: _coarsen_postcode(text, mention.entity.label),
        "IP_ADDRESS": lambda: _coarsen_ip_address(text),
        "LOCATION_COORDINATES": lambda: _coarsen_coordinates(text),
    }
    lineage = setting.policy.taxonomy.lineage(mention.entity.label)
    values = (coarsen[name]() for name in lineage if name in coarsen)
    return next((value for value in values if value is not None), mention.tag)


def coarsen_date(text: str, level: str, order: str) -> str | None:
    """Return the month, the year or the decade of a date; None where it cannot be read or does not tell that."""
    date = read_date(text, order)
    if date is None:
        return None
    if level == "month" and date.month is not None:
        month = MONTHS[date.month - 1]
        return month if date.year is None else f"{month} {date.year}"
    if date.year is None:
        return None
    return f"{date.year // 10 * 10}s" if level == "decade" else str(date.year)


def _coarsen_time(text: str) -> str | None:
    match = _CLOCK.fullmatch(text)
    if match is None or not (match["half"] or ":" in text or "." in text or "h" in text.lower() or "o'" in text):
        return None
    hour = int(match["h"])
    if match["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if match["half"] in "pP" else 0)
    if hour > 23:
        return None
    return "night" if hour < 5 or hour >= 22 else "morning" if hour < 12 else "afternoon" if hour < 18 else "evening"


def coarsen_age(text: str, width: int, top: int) -> str | None:
    """Return the band of an age, ``width`` years wide, with the words around it; None where it cannot be read."""
    match = _AGE.fullmatch(text)
    if match is None:
        return None
    years = read_number(match["n"])
    if years is None or years > 130:
        return None
    if years >= top:
        band = f"{top}+"
    elif width == 1:
        band = str(years)
    else:
        low = years // width * width
        band = f"{low}-{min(low + width, top) - 1}"
    return match["before"] + band + match["after"]


def _coarsen_quantity(text: str, width: int) -> str | None:
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    unit = (match["unit"] or "").lower()
    integer, _, decimals = match["n"].replace(",", "").partition(".")
    if unit in ("%", "percent", "per cent", "pct"):
        low = int(integer) // width * width
        return f"{low}-{low + width}{'' if unit == '%' else ' '}{match['unit']}"
    power = _SCALES.get(unit, 0)
    value = int((integer + decimals[:power].ljust(power, "0")) or "0")
    digits = max(len(str(value)), 1)
    low_text, high_text = ("0", "9") if digits == 1 else (f"{10 ** (digits - 1):,}", f"{10**digits - 1:,}")
    sign = match["sign"] or ""
    tail = f" {match['tail']}" if match["tail"] and match["tail"] not in "€£$" else match["tail"] or ""
    return f"{sign}{low_text}-{sign if not sign.strip().isalpha() else ''}{high_text}{tail}"


def _coarsen_postcode(text: str, label: str) -> str | None:
    code = text.upper()
    if re.fullmatch(r"[0-9]{5}(?:-?[0-9]{4})?", code):
        if label == "DE_PLZ":
            return code[:2] + "***"
        return ("000" if code[:3] in SMALL_ZIP3 else code[:3]) + "**"
    if re.fullmatch(r"[A-Z][0-9][A-Z][ -]?[0-9][A-Z][0-9]", code):
        return code[:3]
    british = re.fullmatch(r"([A-Z]{1,2}[0-9][A-Z0-9]?)\s?[0-9][A-Z]{2}", code)
    return british[1] if british else None


def _coarsen_ip_address(text: str) -> str | None:
    from ipaddress import ip_address, ip_network

    address = text.partition("/")[0].partition("%")[0]
    try:
        return str(ip_network(f"{address}/{24 if ip_address(address).version == 4 else 48}", strict=False))
    except ValueError:
        return None


def _coarsen_coordinates(text: str) -> str | None:
    match = _DEGREES.fullmatch(text)
    if match is None:
        return None
    south, east = float(match["a"]), float(match["b"])
    return f"{south:.1f}{match['ns'] or ''}{match['mid']}{east:.1f}{match['ew'] or ''}"
