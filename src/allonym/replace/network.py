"""Internet addresses from ranges that are kept for documentation, and codes of the same shape.

IPv4: 192.0.2.0/24, 198.51.100.0/24, 203.0.113.0/24 (RFC 5737), then 198.18.0.0/15 (RFC 2544); IPv6: 2001:db8::/32
(RFC 3849). Private addresses stay private. Addresses of one network stay in one network where there are enough. None
becomes one that stands in the document.
"""

from __future__ import annotations

import ipaddress
import re
from contextlib import suppress
from functools import partial

from allonym.replace.cast import Cast

_TESTS = ("192.0.2", "198.51.100", "203.0.113")
_IP = re.compile(r"(?P<ip>\d{1,3}(?:\.\d{1,3}){3}|[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*)(?P<rest>%\w+)?")
_RUN = re.compile(r"[0-9A-Fa-f:.]{3,64}")
_LOCAL = re.compile(r"(?:127|10|192\.168|172\.(?:1[6-9]|2[0-9]|3[01]))\.")


def renumbered(cast: Cast, surface: str) -> str | None:
    """Another address for the one in a surface; what is around it (a port, a prefix length) stays.

    Returns:
        None where the surface holds no address, or none is left.
    """
    for match in _IP.finditer(surface):
        try:
            old = ipaddress.ip_address(match["ip"])
        except ValueError:
            continue
        new = _of(cast, old)
        if new is None:
            return None
        text = match["ip"]
        if isinstance(old, ipaddress.IPv6Address):
            whole = ipaddress.IPv6Address(new)
            new = whole.exploded if len(text) == 39 else whole.compressed
            new = new.upper() if text.upper() == text and text.lower() != text else new
        return surface[: match.start()] + new + surface[match.end("ip") :]
    return None


def _of(cast: Cast, old: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str | None:
    if isinstance(old, ipaddress.IPv4Address):
        network = "" if _LOCAL.match(str(old)) else _network(cast, str(old).rpartition(".")[0])
        proposed = partial(_four, cast, str(old), network)
    else:
        proposed = partial(_six, cast, old.exploded)
    standing = _standing(cast)
    return cast.ledger.assign(
        "ip address",
        str(old),
        proposed,
        telling=lambda value: "ip" + _letters(value) if value and value not in standing else " ",  # never free
    )


def _standing(cast: Cast) -> frozenset[str]:
    """The addresses of the document, in their shortest form."""
    if cast.addresses is None:
        found: set[str] = set()
        for run in _RUN.findall(cast.setting.document.text):
            for match in _IP.finditer(run):
                for text in (match["ip"], match["ip"].rstrip(".:")):  # at the end of a sentence
                    with suppress(ValueError):
                        found.add(str(ipaddress.ip_address(text)))
        cast.addresses = frozenset(found)
    return cast.addresses


def _letters(value: str) -> str:
    # One word, which stands in no text, so that addresses of one network do not bar each other.
    return value.replace(".", "x").replace(":", "y")


def _network(cast: Cast, network: str) -> str:
    """The network for documentation that stands for a public one; some of more than three share one."""
    given = cast.ledger.assign(
        "ip network",
        network,
        lambda other: cast.ledger.pick(_TESTS, "ip network", network, other),
        telling=lambda value: "net" + _letters(value),
    )
    return given or cast.ledger.pick(_TESTS, "ip network", network)


def _four(cast: Cast, old: str, public: str, attempt: int) -> str:
    number = partial(cast.ledger.number, "ip host", old, attempt)
    parts = old.split(".")
    network = ".".join(parts[:3])
    if parts[0] == "127":
        return f"127.0.0.{2 + number() % 253}"
    if parts[0] == "10":
        middle = cast.ledger.number("ip network", network)
        new = f"10.{middle % 256}.{middle // 256 % 256}.{1 + number() % 254}"
    elif network.startswith("192.168."):
        new = f"192.168.{cast.ledger.number('ip network', network) % 256}.{1 + number() % 254}"
    elif parts[0] == "172" and 16 <= int(parts[1]) < 32:
        middle = cast.ledger.number("ip network", network)
        new = f"172.{16 + middle % 16}.{middle // 16 % 256}.{1 + number() % 254}"
    else:
        # More than 762 addresses: the others get some of RFC 2544.
        if attempt >= 32:
            middle = number()
            return f"198.{18 + middle % 2}.{middle // 2 % 256}.{1 + middle // 512 % 254}"
        new = f"{public}.{1 + number() % 254}"
    return "" if new == old else new


def _six(cast: Cast, old: str, attempt: int) -> str:
    number = cast.ledger.number("ip host", old, attempt)
    network = cast.ledger.number("ip network", old[:19])
    local = ipaddress.IPv6Address(old).is_link_local
    head = "fe80::" if local else f"2001:db8:{network % 0xFFFF + 1:x}:{network // 0xFFFF % 0xFFFF + 1:x}:"
    if old.split(":")[4:7] == ["0000"] * 3 and not local:
        head, tail = head + ":", f"{1 + number % 0xFFFE:x}"
    else:
        tail = ":".join(f"{1 + (number >> shift) % 0xFFFE:x}" for shift in (0, 16, 32, 48))
    new = ipaddress.IPv6Address(head + tail).compressed
    return "" if new == ipaddress.IPv6Address(old).compressed else new


def digits_for(cast: Cast, kind: str, key: str, old: str, attempt: int = 0) -> str:
    """As many other digits; four that look like a year of birth are one again."""
    number = cast.ledger.number(f"{kind} digits", key, attempt)
    if len(old) == 4 and old[:2] in ("19", "20"):
        new = str(1955 + number % 55)
    else:
        new = str(number % 10 ** len(old)).zfill(len(old)) if len(old) < 19 else _long(cast, kind, key, old, attempt)
        if old[0] != "0" and new[0] == "0":
            new = "123456789"[number % 9] + new[1:]
    return new if new != old else new[:-1] + str((int(new[-1]) + 1 + number % 9) % 10)


def _long(cast: Cast, kind: str, key: str, old: str, attempt: int) -> str:
    return "".join(str(cast.ledger.number(f"{kind} digit {i}", key, attempt) % 10) for i in range(len(old)))


def code_like(cast: Cast, kind: str, old: str, attempt: int = 0) -> str:
    """A code of the same shape: digits for digits, letters for letters, hexadecimal for hexadecimal."""
    bare = [c for c in old if c.isalnum()]
    hexadecimal = len(bare) > 7 and all(c in "0123456789abcdefABCDEF" for c in bare)
    out = ""
    for i, char in enumerate(old):
        if not char.isalnum():
            out += char
            continue
        number = cast.ledger.number(f"{kind} {i}", old, attempt)
        if char.isdigit():
            out += str(number % 10)
        else:
            alphabet = "abcdef" if hexadecimal else "abcdefghijklmnopqrstuvwxyz"
            letter = alphabet[number % len(alphabet)]
            out += letter.upper() if char.isupper() else letter
    return out
