"""Pseudonyms of e-mail addresses, user names, web addresses, IP addresses and cookies.

Local parts and user names follow the people of the document (:mod:`allonym.replace.mailbox`). Domains become
subdomains of those that are reserved for examples (RFC 2606), a different one for each: ``kestrel.example.com``. A web
address keeps its structure, and gets other words and codes. Addresses stay as they are written: spoken, with ``[at]``,
as a link, in capitals.

IP addresses come from the ranges that are reserved for documentation. IPv4: 192.0.2.0/24, 198.51.100.0/24,
203.0.113.0/24 (RFC 5737), then 198.18.0.0/15 (RFC 2544); IPv6: 2001:db8::/32 (RFC 3849). Private addresses stay
private. Addresses of one network stay in one network where there are enough. No address becomes one that occurs in the
document.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from allonym.protocol import Wanted
from allonym.replace.cast import Cast, Renderer
from allonym.replace.codes import draw_digits, draw_similar_code
from allonym.replace.mailbox import Mailboxes, choose_neutral_word, pick_address_word, read_address_word_set
from allonym.replace.wording import match_case
from allonym.text.names import normalize_surface
from allonym.text.words import LETTERS

_AT = r"\s*(?:@|\[\s*at\s*\]|\(\s*at\s*\)|\{\s*at\s*\}|<at>|＠)\s*|\s+at\s+"
_DOT = r"\s*(?:\[\s*dot\s*\]|\(\s*dot\s*\)|\{\s*dot\s*\}|\[\.\]|\(\.\))\s*|\s+dot\s+|\."
_SPOKEN_SIGNS = {" underscore ": "_", " dash ": "-", " hyphen ": "-", " plus ": "+"}
_MAIL = re.compile(
    rf"(?P<lead>\W*?(?:mailto:)?)(?P<local>\w.*?)(?P<at>{_AT})(?P<domain>\w.*?)(?P<trail>[>)\]\s]*)", re.I
)
_SPLIT_DOT = re.compile(_DOT, re.I)
_URL = re.compile(
    r"(?P<scheme>(?:[A-Za-z][A-Za-z0-9+.-]{1,15}:)?//|)(?:(?P<user>[^/?#@\s]+)@)?"
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^/?#:\s]+)(?P<port>:\d+)?(?P<path>[^?#]*)(?P<query>\?[^#]*)?(?P<fragment>#.*)?",
    re.S,
)
_BARE_URL = re.compile(r"(?:[\w-]+\.)+[A-Za-z]{2,}(?:/\S*)?")
_IP_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}|\[.*\]")
_TOKEN = re.compile(r"%[0-9A-Fa-f]{2}|[^\W_]+|[\W_]")
_FEW = 24  # attempts after which a number gets one more digit
_RESERVED = {"com": "example.com", "org": "example.org", "net": "example.net"}
_SECOND_LEVEL = frozenset({"co", "com", "org", "net", "ac", "gov", "edu", "or", "ne", "gob", "gouv", "in"})
_COOKIE_ATTRIBUTES = frozenset({"expires", "max-age", "samesite", "secure", "httponly", "set-cookie: expires"})


def make_renderers(cast: Cast, targets: Sequence[Wanted]) -> dict[str, Renderer]:
    """Choose pseudonyms of the addresses of a document, after those of its people.

    Args:
        cast: with ``people`` filled.
        targets: entities of the families EMAIL_ADDRESS and ONLINE_ID in reading order.

    Returns:
        Entity key to what renders its surfaces.
    """
    boxes = Mailboxes(cast)
    out: dict[str, Renderer] = {}
    for target in targets:
        label = next((label for label in cast.get_lineage(target) if label in _RENDER), "ONLINE_ID")
        render = out[target.entity.key] = partial(_RENDER[label], cast, boxes)
        for surface in target.surfaces:
            render(surface)  # values are assigned in reading order
    return out


def _render_email_address(cast: Cast, boxes: Mailboxes, surface: str) -> str | None:
    match = _MAIL.fullmatch(surface)
    if match is None:
        return _render_handle(cast, boxes, surface)
    domain = ".".join(p for p in _SPLIT_DOT.split(match["domain"].partition("?")[0].strip()) if p)
    local = _SPLIT_DOT.sub(".", match["local"])
    for word, sign in _SPOKEN_SIGNS.items():
        local = re.sub(re.escape(word), sign, local, flags=re.I)
    spelled = all(len(p) == 1 for p in local.split())
    new = boxes.rename_local_part(("" if spelled else " ").join(local.split()))
    host = _choose_domain(cast, boxes, domain.replace(" ", ""))
    if new is None or host is None:
        return None
    new = _match_sign_notation(_match_case_by_runs(new, local), match["local"])
    host = _match_sign_notation(match_case(host, match["domain"]), match["domain"])
    return match["lead"] + new + match["at"] + host + match["trail"]


def _match_case_by_runs(new: str, old: str) -> str:
    """Return ``new`` with the case of each run of letters: ``Sarah.Connor`` gives ``Emily.Carter``."""
    if old.islower():
        return new.lower()
    if sum(c.isalpha() for c in old) > 1 and old.isupper():
        return new.upper()
    runs = re.split(r"([^\W\d_]+)", new)
    for i, model in zip(range(1, len(runs), 2), LETTERS.findall(old), strict=False):
        if model[:1].isupper():
            runs[i] = runs[i].upper() if len(model) > 1 and model.isupper() else runs[i].capitalize()
    return "".join(runs)


def _match_sign_notation(new: str, old: str) -> str:
    """Return an address with dots and dashes as ``old`` has them: a sign, a word, a word in brackets."""
    out = new.replace(".", next((m[0] for m in _SPLIT_DOT.finditer(old) if m[0] != "."), "."))
    for word, sign in _SPOKEN_SIGNS.items():
        if word in old.lower():
            out = out.replace(sign, word)
    return out


def _render_handle(cast: Cast, boxes: Mailboxes, surface: str) -> str | None:
    bare = surface.lstrip("@＠").strip()
    lead = surface[: surface.find(bare)] if bare else surface
    new = boxes.rename_local_part(bare)
    return None if new is None else lead + _match_case_by_runs(new, bare) + surface[len(lead) + len(bare) :]


def _choose_domain(cast: Cast, boxes: Mailboxes, domain: str) -> str | None:
    """Return the pseudonym of a domain: of the part that is registered as a whole, and of each label before it."""
    labels = [x for x in domain.casefold().split(".") if x]
    if not labels:
        return None
    size = 1 if len(labels) == 1 else 2
    if len(labels) > 2 and labels[-2] in _SECOND_LEVEL and len(labels[-1]) == 2:
        size = 3
    registered = labels[-size:]
    key = ".".join(registered)
    reserved = _RESERVED.get(registered[1] if len(registered) > 1 else "", "example.com")
    named = boxes.rename_domain_label(registered[0])
    pool = "post" if registered[0] in read_address_word_set("providers") else "words"

    def propose(attempt: int) -> str:
        word = named if named is not None and not attempt else pick_address_word(cast, "domain", key, pool, attempt)
        return f"{word}.{reserved}"

    def get_distinctive_part(value: str) -> str:
        return value.partition(".")[0] if named is None else "domain" + re.sub(r"\W", "x", value)

    new = cast.ledger.assign("domain", key, propose, telling=get_distinctive_part)
    if new is None:
        return None
    hosts = read_address_word_set("hosts")
    parts = [label if label in hosts else _choose_domain_label(cast, label) for label in labels[:-size]]
    return None if None in parts else ".".join((*filter(None, parts), new))


def _choose_domain_label(cast: Cast, label: str) -> str | None:
    return choose_neutral_word(cast, label) if label.isalpha() else _choose_url_code(cast, label)


def _choose_url_code(cast: Cast, text: str) -> str | None:
    """Return the pseudonym of a number, word or code of a web address; the same for the same one."""
    ledger = cast.ledger

    def draw_number(attempt: int) -> str:
        # All numbers of few digits may be taken: then one more digit is needed.
        return draw_digits(ledger, "address", text, text + "0" * (attempt // _FEW), attempt)

    if text.isdigit():
        return ledger.assign("address number", text, draw_number, telling=lambda number: f"number{number}")
    draw = partial(draw_similar_code, ledger, text)
    return ledger.assign("address code", text, draw, telling=lambda code: "code" + "".join(filter(str.isalnum, code)))


def _render_url(cast: Cast, boxes: Mailboxes, surface: str) -> str | None:
    match = _URL.fullmatch(surface)
    if match is None:
        return None
    if match["scheme"].lower() in ("", "//") and surface.lower().startswith("mailto:"):
        return _render_email_address(cast, boxes, surface)
    written = match["host"]
    bare = _SPLIT_DOT.sub(".", written)
    host = replace_ip_address(cast, written) if _IP_ADDRESS.fullmatch(bare) else _choose_domain(cast, boxes, bare)
    if host is None:
        return None
    out = match["scheme"]
    if match["user"]:
        out += ":".join(_choose_url_code(cast, p) or "x" for p in match["user"].split(":")) + "@"
    out += _match_sign_notation(match_case(host, written), written) + (match["port"] or "")
    out += "/".join(_replace_url_segment(cast, boxes, s) for s in match["path"].split("/"))
    for part in (match["query"], match["fragment"]):
        if part:
            fields = re.split("([&;])", part[1:])
            out += part[0] + "".join(f if f in ("&", ";") else _replace_url_field(cast, boxes, f) for f in fields)
    return out


def _replace_url_field(cast: Cast, boxes: Mailboxes, field: str) -> str:
    name, sign, value = field.partition("=")
    return name + sign + _replace_url_segment(cast, boxes, value) if sign else _replace_url_segment(cast, boxes, field)


def _replace_url_segment(cast: Cast, boxes: Mailboxes, text: str) -> str:
    """Replace a part of a path, or a value: names of the document's people follow them, words become neutral ones."""
    if not text:
        return text
    stem, dot, ending = text.rpartition(".")
    if dot and ending.lower() in read_address_word_set("paths") and stem:
        return _replace_url_segment(cast, boxes, stem) + dot + ending
    lead = "@" if text.startswith("@") else ""
    named = boxes.rename_domain_label(text[len(lead) :]) if "%" not in text and "=" not in text else None
    if named is not None:
        return lead + _match_case_by_runs(named, text[len(lead) :])
    return "".join(_replace_url_word_or_code(cast, t) for t in _TOKEN.findall(text))


def _replace_url_word_or_code(cast: Cast, token: str) -> str:
    lower = token.casefold()
    if not token[0].isalnum() or lower in read_address_word_set("paths"):
        return token
    if token.isalpha() and 3 <= len(token) <= 14 and (token.islower() or token.istitle() or token.isupper()):
        new = choose_neutral_word(cast, lower)
        return match_case(new, token) if new is not None else draw_similar_code(cast.ledger, token)
    return _replace_url_code(cast, token)


def _render_cookie(cast: Cast, boxes: Mailboxes, surface: str) -> str | None:
    """Render ``name=value; name=value``: the names stay."""
    out = "".join(_replace_cookie_value(cast, part) for part in re.split(r"(;\s*)", surface))
    return out if out != surface else None


def _replace_cookie_value(cast: Cast, pair: str) -> str:
    name, sign, value = pair.partition("=") if "=" in pair else ("", "", pair)
    if not pair.strip("; ") or pair.partition("=")[0].strip().lower() in _COOKIE_ATTRIBUTES:
        return pair
    return name + sign + "".join(_replace_url_code(cast, t) if t.isalnum() else t for t in _TOKEN.findall(value))


def _replace_url_code(cast: Cast, token: str) -> str:
    return _choose_url_code(cast, token) or draw_similar_code(cast.ledger, token, 99)


def _render_address_by_form(cast: Cast, boxes: Mailboxes, surface: str) -> str | None:
    """Render an address whose kind only its form tells."""
    if "://" in surface or surface.lower().startswith(("www.", "mailto:")):
        return _render_url(cast, boxes, surface)
    if (new := replace_ip_address(cast, surface)) is not None:
        return new
    if "=" in surface:
        return _render_cookie(cast, boxes, surface)
    if _MAIL.fullmatch(surface) is not None and not surface.startswith("@"):
        return _render_email_address(cast, boxes, surface)
    return (_render_url if _BARE_URL.fullmatch(normalize_surface(surface)) else _render_handle)(cast, boxes, surface)


_RENDER: dict[str, Callable[[Cast, Mailboxes, str], str | None]] = {
    "EMAIL_ADDRESS": _render_email_address,
    "USER_NAME": _render_handle,
    "SOCIAL_HANDLE": _render_handle,
    "URL": _render_url,
    "IP_ADDRESS": lambda cast, boxes, surface: replace_ip_address(cast, surface),
    "HTTP_COOKIE": _render_cookie,
    "ONLINE_ID": _render_address_by_form,
}


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
        new = _choose_ip_address(cast, old)
        if new is None:
            return None
        text = match["ip"]
        if isinstance(old, ipaddress.IPv6Address):
            address = ipaddress.IPv6Address(new)
            new = address.exploded if len(text) == 39 else address.compressed
            new = new.upper() if text.upper() == text and text.lower() != text else new
        return surface[: match.start()] + new + surface[match.end("ip") :]
    return None


def _choose_ip_address(cast: Cast, old: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str | None:
    if isinstance(old, ipaddress.IPv4Address):
        network = "" if _LOCAL.match(str(old)) else _choose_ip_network(cast, str(old).rpartition(".")[0])
        propose = partial(_propose_ipv4, cast, str(old), network)
    else:
        propose = partial(_propose_ipv6, cast, old.exploded)
    present = _find_ip_addresses(cast)

    def encode_address(value: str) -> str:
        return "ip" + _join_ip_address_to_word(value) if value and value not in present else " "  # never free

    return cast.ledger.assign("ip address", str(old), propose, telling=encode_address)


def _find_ip_addresses(cast: Cast) -> frozenset[str]:
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


def _join_ip_address_to_word(value: str) -> str:
    """Return an address as one word, which no text has, so that addresses of one network do not bar each other."""
    return value.replace(".", "x").replace(":", "y")


def _choose_ip_network(cast: Cast, network: str) -> str:
    """Return the network for documentation that replaces a public one; some of more than three share one."""
    pick = partial(cast.ledger.pick, _TESTS, "ip network", network)
    new = cast.ledger.assign("ip network", network, pick, telling=lambda n: "net" + _join_ip_address_to_word(n))
    return new or pick()


def _propose_ipv4(cast: Cast, old: str, public_network: str, attempt: int) -> str:
    number = cast.ledger.draw_number("ip host", old, attempt)
    host = 1 + number % 254
    parts = old.split(".")
    network = ".".join(parts[:3])
    middle = cast.ledger.draw_number("ip network", network)
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
        new = f"{public_network}.{host}"
    return "" if new == old else new


def _propose_ipv6(cast: Cast, old: str, attempt: int) -> str:
    number = cast.ledger.draw_number("ip host", old, attempt)
    network = cast.ledger.draw_number("ip network", old[:19])
    local = ipaddress.IPv6Address(old).is_link_local
    head = "fe80::" if local else f"2001:db8:{network % 0xFFFF + 1:x}:{network // 0xFFFF % 0xFFFF + 1:x}:"
    if old.split(":")[4:7] == ["0000"] * 3 and not local:
        head, tail = head + ":", f"{1 + number % 0xFFFE:x}"
    else:
        tail = ":".join(f"{1 + (number >> shift) % 0xFFFE:x}" for shift in (0, 16, 32, 48))
    new = ipaddress.IPv6Address(head + tail).compressed
    return "" if new == ipaddress.IPv6Address(old).compressed else new
