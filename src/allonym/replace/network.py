"""Pseudonyms of IP addresses, from ranges that are reserved for documentation; digits and codes of the same shape.

IPv4: 192.0.2.0/24, 198.51.100.0/24, 203.0.113.0/24 (RFC 5737), then 198.18.0.0/15 (RFC 2544); IPv6: 2001:db8::/32
(RFC 3849). Private addresses stay private. Addresses of one network stay in one network where there are enough. No
address becomes one that occurs in the document.
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


def replace_ip_address(cast: Cast, surface: str) -> str | None:
    """Return a surface with another address for its IP address; a port or a prefix length beside it stays.

    Returns:
        None where the surface holds no address, or none is free.
    """
    for match in _IP.finditer(surface):
        try:
            old = ipaddress.ip_address(match["ip"])
        except ValueError:
            continue
        new = _choose_address(cast, old)
        if new is None:
            return None
        text = match["ip"]
        if isinstance(old, ipaddress.IPv6Address):
            address = ipaddress.IPv6Address(new)
            new = address.exploded if len(text) == 39 else address.compressed
            new = new.upper() if text.upper() == text and text.lower() != text else new
        return surface[: match.start()] + new + surface[match.end("ip") :]
    return None


def _choose_address(cast: Cast, old: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str | None:
    if isinstance(old, ipaddress.IPv4Address):
        network = "" if _LOCAL.match(str(old)) else _choose_network(cast, str(old).rpartition(".")[0])
        propose = partial(_propose_ipv4, cast, str(old), network)
    else:
        propose = partial(_propose_ipv6, cast, old.exploded)
    present = _find_addresses(cast)
    return cast.ledger.assign(
        "ip address",
        str(old),
        propose,
        telling=lambda value: (
            "ip" + _encode_ip_address_signs(value) if value and value not in present else " "
        ),  # never free
    )


def _find_addresses(cast: Cast) -> frozenset[str]:
    """Return the addresses of the document, in their shortest form."""
    if cast.addresses is None:
        addresses: set[str] = set()
        for run in _RUN.findall(cast.text):
            for match in _IP.finditer(run):
                for text in (match["ip"], match["ip"].rstrip(".:")):  # at the end of a sentence
                    with suppress(ValueError):
                        addresses.add(str(ipaddress.ip_address(text)))
        cast.addresses = frozenset(addresses)
    return cast.addresses


def _encode_ip_address_signs(value: str) -> str:
    """Return an address as one word, which no text has, so that addresses of one network do not bar each other."""
    return value.replace(".", "x").replace(":", "y")


def _choose_network(cast: Cast, network: str) -> str:
    """Return the network for documentation that replaces a public one; some of more than three share one."""
    new = cast.ledger.assign(
        "ip network",
        network,
        lambda attempt: cast.ledger.pick(_TESTS, "ip network", network, attempt),
        telling=lambda value: "net" + _encode_ip_address_signs(value),
    )
    return new or cast.ledger.pick(_TESTS, "ip network", network)


def _propose_ipv4(cast: Cast, old: str, public: str, attempt: int) -> str:
    number = cast.ledger.number("ip host", old, attempt)
    host = 1 + number % 254
    parts = old.split(".")
    network = ".".join(parts[:3])
    middle = cast.ledger.number("ip network", network)
    if parts[0] == "127":
        return f"127.0.0.{2 + number % 253}"
    if parts[0] == "10":
        new = f"10.{middle % 256}.{middle // 256 % 256}.{host}"
    elif network.startswith("192.168."):
        new = f"192.168.{middle % 256}.{host}"
    elif parts[0] == "172" and 16 <= int(parts[1]) < 32:
        new = f"172.{16 + middle % 16}.{middle // 16 % 256}.{host}"
    elif attempt >= 32:  # more than 762 addresses: the others get some of RFC 2544
        return f"198.{18 + number % 2}.{number // 2 % 256}.{1 + number // 512 % 254}"
    else:
        new = f"{public}.{host}"
    return "" if new == old else new


def _propose_ipv6(cast: Cast, old: str, attempt: int) -> str:
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


def draw_digits(cast: Cast, kind: str, key: str, old: str, attempt: int = 0) -> str:
    """Return as many other digits; four that look like a year of birth are one again."""
    number = cast.ledger.number(f"{kind} digits", key, attempt)
    if len(old) == 4 and old[:2] in ("19", "20"):
        new = str(1955 + number % 55)
    else:
        if len(old) < 19:
            new = str(number % 10 ** len(old)).zfill(len(old))
        else:
            new = "".join(str(cast.ledger.number(f"{kind} digit {i}", key, attempt) % 10) for i in range(len(old)))
        if old[0] != "0" and new[0] == "0":
            new = "123456789"[number % 9] + new[1:]
    return new if new != old else new[:-1] + str((int(new[-1]) + 1 + number % 9) % 10)


def draw_code(cast: Cast, kind: str, old: str, attempt: int = 0) -> str:
    """Return a code of the same shape: digits for digits, letters for letters, hexadecimal for hexadecimal."""
    bare = [c for c in old if c.isalnum()]
    hexadecimal = len(bare) > 7 and all(c in "0123456789abcdefABCDEF" for c in bare)
    alphabet = "abcdef" if hexadecimal else "abcdefghijklmnopqrstuvwxyz"
    out = ""
    for i, char in enumerate(old):
        number = cast.ledger.number(f"{kind} {i}", old, attempt) if char.isalnum() else 0
        letter = alphabet[number % len(alphabet)]
        if not char.isalnum():
            out += char
        elif char.isdigit():
            out += str(number % 10)
        else:
            out += letter.upper() if char.isupper() else letter
    return out
