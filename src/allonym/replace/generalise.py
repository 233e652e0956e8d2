"""The generalising operator: a coarser value in place of an exact one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from allonym.errors import PolicyError
from allonym.replace.dates import MONTHS, read_date
from allonym.replace.mention import Mention, Setting, declare_surrogates, traits

LONGEST = 64

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
_WORDS = {
    w: i
    for i, w in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen".split()
    )
}
_TENS = {w: 10 * i for i, w in enumerate(("twenty thirty forty fifty sixty seventy eighty ninety").split(), 2)}
_SCALES = {"k": 3, "thousand": 3, "m": 6, "mn": 6, "million": 6, "b": 9, "bn": 9, "billion": 9}
_SCALES |= {"t": 12, "tn": 12, "trillion": 12}


def _check(options: Mapping[str, Any], where: str) -> None:
    width, top = options.get("width", 10), options.get("top", 90)
    if not 1 <= width <= 100:
        raise PolicyError(f"{where}.width must be from 1 to 100, got {width!r}")
    if not 18 <= top <= 120:
        raise PolicyError(f"{where}.top must be from 18 to 120 years, got {top!r}")


@traits(repeats=True, lossy=True, check=_check, grammar=declare_surrogates)
def generalise(
    mention: Mention,
    setting: Setting,
    *,
    level: Literal["year", "month", "decade"] = "year",
    order: Literal["mdy", "dmy"] = "mdy",
    width: int = 10,
    top: int = 90,
) -> str:
    """A coarser value: the year of a date, the band of an age, the magnitude of a number, the area of a postal code.

    IP addresses become their /24 or /48 network, coordinates keep one decimal (about 11 km), times become parts of
    the day. What it cannot read becomes a tag, never the original; so do places.

    Args:
        level: what is left of a date.
        order: how ``03/04/2020`` is read.
        width: years in an age band (1: ages under ``top`` stay exact), and points in a percentage's band.
        top: ages from here on are one band.
    """
    text = mention.text.strip()
    if len(text) > LONGEST:
        return mention.tag
    out: str | None = None
    for name in setting.policy.taxonomy.lineage(mention.entity.label):
        if name == "AGE":
            out = _age(text, width, top)
        elif name in ("DATE_TIME", "TIME"):
            out = _time(text) if name == "TIME" else _date(text, level, order) or _time(text)
        elif name == "NUMERIC":
            out = _number(text, width)
        elif name == "POSTAL_CODE":
            out = _postal(text, mention.entity.label)
        elif name == "IP_ADDRESS":
            out = _network(text)
        elif name == "LOCATION_COORDINATES":
            out = _coordinates(text)
        if out is not None:
            return out
    return mention.tag


def _date(text: str, level: str, order: str) -> str | None:
    found = read_date(text, order)
    if found is None:
        return None
    if level == "month" and found.month is not None:
        month = MONTHS[found.month - 1]
        return month if found.year is None else f"{month} {found.year}"
    if found.year is None:
        return None
    return f"{found.year // 10 * 10}s" if level == "decade" else str(found.year)


def _time(text: str) -> str | None:
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


def _spoken(word: str) -> int | None:
    parts = re.split(r"[- ]", word.lower())
    if len(parts) == 1:
        return _WORDS.get(parts[0], _TENS.get(parts[0]))
    if parts[0] in _TENS and 1 <= _WORDS.get(parts[1], 0) <= 9:
        return _TENS[parts[0]] + _WORDS[parts[1]]
    return None


def _age(text: str, width: int, top: int) -> str | None:
    match = _AGE.fullmatch(text)
    if match is None:
        return None
    years = int(match["n"]) if match["n"].isdigit() else _spoken(match["n"])
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


def _number(text: str, width: int) -> str | None:
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    unit = (match["unit"] or "").lower()
    whole, _, rest = match["n"].replace(",", "").partition(".")
    if unit in ("%", "percent", "per cent", "pct"):
        low = int(whole) // width * width
        return f"{low}-{low + width}{'' if unit == '%' else ' '}{match['unit']}"
    power = _SCALES.get(unit, 0)
    value = int((whole + rest[:power].ljust(power, "0")) or "0")
    digits = max(len(str(value)), 1)
    low_text, high_text = ("0", "9") if digits == 1 else (f"{10 ** (digits - 1):,}", f"{10**digits - 1:,}")
    sign = match["sign"] or ""
    tail = f" {match['tail']}" if match["tail"] and match["tail"] not in "€£$" else match["tail"] or ""
    return f"{sign}{low_text}-{sign if not sign.strip().isalpha() else ''}{high_text}{tail}"


def _postal(text: str, label: str) -> str | None:
    code = text.upper()
    if re.fullmatch(r"[0-9]{5}(?:-?[0-9]{4})?", code):
        if label == "DE_PLZ":
            return code[:2] + "***"
        return ("000" if code[:3] in SMALL_ZIP3 else code[:3]) + "**"
    if re.fullmatch(r"[A-Z][0-9][A-Z][ -]?[0-9][A-Z][0-9]", code):
        return code[:3]
    british = re.fullmatch(r"([A-Z]{1,2}[0-9][A-Z0-9]?)\s?[0-9][A-Z]{2}", code)
    return british[1] if british else None


def _network(text: str) -> str | None:
    from ipaddress import ip_network

    for bits in (24, 48):
        try:
            network = ip_network(f"{text.partition('/')[0].partition('%')[0]}/{bits}", strict=False)
        except ValueError:
            return None
        if bits == (24 if network.version == 4 else 48):
            return str(network)
    return None


def _coordinates(text: str) -> str | None:
    match = _DEGREES.fullmatch(text)
    if match is None:
        return None
    south, east = float(match["a"]), float(match["b"])
    return f"{south:.1f}{match['ns'] or ''}{match['mid']}{east:.1f}{match['ew'] or ''}"
