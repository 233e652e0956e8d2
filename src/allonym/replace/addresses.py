"""Pseudonyms of e-mail addresses, user names, web addresses, IP addresses and cookies.

Local parts and user names follow the people of the document (:mod:`allonym.replace.mailbox`). Domains become
subdomains of those that are reserved for examples (RFC 2606), one for each: ``kestrel.example.com``. Of a web address
the structure stays, and what its words and codes tell does not. How an address is written stays: spoken, with
``[at]``, as a link, in capitals.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from allonym.replace.cast import Cast, Renderer
from allonym.replace.mailbox import Mailboxes, neutral_word, word_for, word_list
from allonym.replace.mention import Wanted
from allonym.replace.naming import recased
from allonym.replace.network import code_like, digits_for, renumbered
from allonym.text.names import plain
from allonym.text.words import LETTERS

_AT = r"\s*(?:@|\[\s*at\s*\]|\(\s*at\s*\)|\{\s*at\s*\}|<at>|＠)\s*|\s+at\s+"
_DOT = r"\s*(?:\[\s*dot\s*\]|\(\s*dot\s*\)|\{\s*dot\s*\}|\[\.\]|\(\.\))\s*|\s+dot\s+|\."
_SAID = {" underscore ": "_", " dash ": "-", " hyphen ": "-", " plus ": "+"}
_MAIL = re.compile(
    rf"(?P<lead>\W*?(?:mailto:)?)(?P<local>\w.*?)(?P<at>{_AT})(?P<domain>\w.*?)(?P<trail>[>)\]\s]*)", re.I
)
_SPLIT_DOT = re.compile(_DOT, re.I)
_URL = re.compile(
    r"(?P<scheme>(?:[A-Za-z][A-Za-z0-9+.-]{1,15}:)?//|)(?:(?P<user>[^/?#@\s]+)@)?"
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^/?#:\s]+)(?P<port>:\d+)?(?P<path>[^?#]*)(?P<query>\?[^#]*)?(?P<fragment>#.*)?",
    re.S,
)
_NUMBERS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}|\[.*\]")
_TOKEN = re.compile(r"%[0-9A-Fa-f]{2}|[^\W_]+|[\W_]")
_FEW = 24
_RESERVED = {"com": "example.com", "org": "example.org", "net": "example.net"}
_SECOND = frozenset({"co", "com", "org", "net", "ac", "gov", "edu", "or", "ne", "gob", "gouv", "in"})


def recast(cast: Cast, wanted: Sequence[Wanted]) -> dict[str, Renderer]:
    """What stands for the addresses of a document, after its people have been recast.

    Args:
        cast: with ``people`` filled.
        wanted: entities of the families EMAIL_ADDRESS and ONLINE_ID in reading order.

    Returns:
        Entity key to what renders its surfaces.
    """
    boxes = Mailboxes(cast)
    out: dict[str, Renderer] = {}
    for one in wanted:
        lineage = cast.setting.policy.taxonomy.lineage(one.entity.label)
        render = partial(_WAYS[next((label for label in lineage if label in _WAYS), "ONLINE_ID")], cast, boxes)
        for surface in one.surfaces:
            render(surface)  # what is given is given in reading order
        out[one.entity.key] = render
    return out


def _mail(cast: Cast, boxes: Mailboxes, surface: str) -> str | None:
    match = _MAIL.fullmatch(surface)
    if match is None:
        return _handle(cast, boxes, surface)
    domain = ".".join(p for p in _SPLIT_DOT.split(match["domain"].partition("?")[0].strip()) if p)
    local, at = match["local"], match["at"]
    said = _SPLIT_DOT.sub(".", local)
    for word, sign in _SAID.items():
        said = re.sub(re.escape(word), sign, said, flags=re.I)
    letters = all(len(p) == 1 for p in said.split())
    new = boxes.renamed(("" if letters else " ").join(said.split()))
    host = _domain(cast, boxes, domain.replace(" ", ""))
    if new is None or host is None:
        return None
    new = _said_like(_cased_by_runs(new, said), local)
    return match["lead"] + new + at + _said_like(recased(host, match["domain"]), match["domain"]) + match["trail"]


def _cased_by_runs(new: str, old: str) -> str:
    """``Sarah.Connor`` gives ``Emily.Carter``."""
    if old.islower():
        return new.lower()
    if sum(c.isalpha() for c in old) > 1 and old.isupper():
        return new.upper()
    runs, olds = re.split(r"([^\W\d_]+)", new), LETTERS.findall(old)
    for i, run in enumerate(olds[: len(runs) // 2]):
        if run[:1].isupper():
            new_run = runs[2 * i + 1]
            runs[2 * i + 1] = new_run.upper() if len(run) > 1 and run.isupper() else new_run.capitalize()
    return "".join(runs)


def _said_like(new: str, old: str) -> str:
    """The dots and dashes of an address as ``old`` writes them: a sign, a word, a word in brackets."""
    dot = next((m[0] for m in _SPLIT_DOT.finditer(old) if m[0] != "."), ".")
    out = new.replace(".", dot)
    for word, sign in _SAID.items():
        if word in old.lower():
            out = out.replace(sign, word)
    return out


def _handle(cast: Cast, boxes: Mailboxes, surface: str) -> str | None:
    bare = surface.lstrip("@＠").strip()
    lead = surface[: surface.find(bare)] if bare else surface
    new = boxes.renamed(bare)
    return None if new is None else lead + _cased_by_runs(new, bare) + surface[len(lead) + len(bare) :]


def _domain(cast: Cast, boxes: Mailboxes, domain: str) -> str | None:
    """The domain that stands for one: the part that is registered as a whole, labels before it one by one."""
    labels = [x for x in domain.casefold().split(".") if x]
    if not labels:
        return None
    size = 1 if len(labels) == 1 else 2
    if len(labels) > 2 and labels[-2] in _SECOND and len(labels[-1]) == 2:
        size = 3
    owned = labels[-size:]
    behind = _RESERVED.get(owned[1] if len(owned) > 1 else "", "example.com")
    label = owned[0]
    named = boxes.made_of_a_name(label)
    public = label in word_list("providers")
    pool = "post" if public else "words"

    def proposed(attempt: int) -> str:
        if named is not None and not attempt:
            return f"{named}.{behind}"
        return f"{word_for(cast, 'domain', '.'.join(owned), pool, attempt)}.{behind}"

    first = (lambda value: "domain" + re.sub(r"\W", "x", value)) if named is not None else _first_label
    new = cast.ledger.assign("domain", ".".join(owned), proposed, telling=first)
    if new is None:
        return None
    hosts = word_list("hosts")
    before = [x if x in hosts else neutral_word(cast, x) if x.isalpha() else _code(cast, x) for x in labels[:-size]]
    return None if None in before else ".".join([*(b for b in before if b is not None), new])


def _first_label(value: str) -> str:
    return value.partition(".")[0]


def _code(cast: Cast, text: str) -> str | None:
    """A number, word or code of a web address; the same for the same one."""
    if text.isdigit():
        return cast.ledger.assign(
            "address number",
            text,
            # Numbers of few digits may all be given: then a digit more is needed.
            lambda attempt: digits_for(cast, "address", text, text + "0" * (attempt // _FEW), attempt),
            telling=lambda value: "number" + value,
        )
    return cast.ledger.assign(
        "address code",
        text,
        lambda attempt: code_like(cast, "address code", text, attempt),
        telling=lambda value: "code" + "".join(c for c in value if c.isalnum()),
    )


def _url(cast: Cast, boxes: Mailboxes, surface: str) -> str | None:
    match = _URL.fullmatch(surface)
    if match is None:
        return None
    if match["scheme"].lower() in ("", "//") and surface.lower().startswith("mailto:"):
        return _mail(cast, boxes, surface)
    written = match["host"]
    bare = _SPLIT_DOT.sub(".", written)
    host = renumbered(cast, written) if _NUMBERS.fullmatch(bare) else _domain(cast, boxes, bare)
    if host is None:
        return None
    out = match["scheme"]
    if match["user"]:
        out += ":".join(_code(cast, p) or "x" for p in match["user"].split(":")) + "@"
    out += _said_like(recased(host, written), written) + (match["port"] or "")
    out += "/".join(_segment(cast, boxes, s) for s in match["path"].split("/"))
    for sign, part in (("?", match["query"]), ("#", match["fragment"])):
        if part:
            pairs = re.split("([&;])", part[1:])
            out += sign + "".join(p if p in ("&", ";") else _pair(cast, boxes, p) for p in pairs)
    return out


def _pair(cast: Cast, boxes: Mailboxes, pair: str) -> str:
    name, sign, value = pair.partition("=")
    return name + sign + _segment(cast, boxes, value) if sign else _segment(cast, boxes, pair)


def _segment(cast: Cast, boxes: Mailboxes, text: str) -> str:
    """A part of a path, or a value: names of the document's people follow them, words become neutral ones."""
    if not text:
        return text
    stem, dot, ending = text.rpartition(".")
    if dot and ending.lower() in word_list("paths") and stem:
        return _segment(cast, boxes, stem) + dot + ending
    lead = "@" if text.startswith("@") else ""
    named = boxes.made_of_a_name(text[len(lead) :]) if "%" not in text and "=" not in text else None
    if named is not None:
        return lead + _cased_by_runs(named, text[len(lead) :])
    return "".join(_token(cast, t) for t in _TOKEN.findall(text))


def _token(cast: Cast, token: str) -> str:
    if not token[0].isalnum():
        return token
    lower = token.casefold()
    if lower in word_list("paths"):
        return token
    if token.isalpha() and 3 <= len(token) <= 14 and (token.islower() or token.istitle() or token.isupper()):
        new = neutral_word(cast, lower)
        return recased(new, token) if new is not None else code_like(cast, "address code", token)
    return _code(cast, token) or code_like(cast, "address code", token, 99)


def _cookie(cast: Cast, boxes: Mailboxes, surface: str) -> str | None:
    """``name=value; name=value``: the names stay."""
    out = "".join(
        p if not p.strip("; ") or p.partition("=")[0].strip().lower() in _ATTRIBUTES else _crumb(cast, p)
        for p in re.split(r"(;\s*)", surface)
    )
    return out if out != surface else None


_ATTRIBUTES = frozenset({"expires", "max-age", "samesite", "secure", "httponly", "set-cookie: expires"})


def _crumb(cast: Cast, pair: str) -> str:
    name, sign, value = pair.partition("=")
    if not sign:
        name, value = "", pair
    return name + sign + "".join(t if t[0] == "%" else _whole_code(cast, t) for t in _TOKEN.findall(value))


def _whole_code(cast: Cast, token: str) -> str:
    return token if not token.isalnum() else _code(cast, token) or code_like(cast, "address code", token, 99)


def _number(cast: Cast, boxes: Mailboxes, surface: str) -> str | None:
    return renumbered(cast, surface)


def _any(cast: Cast, boxes: Mailboxes, surface: str) -> str | None:
    """What it is shows in how it is written."""
    if "://" in surface or surface.lower().startswith(("www.", "mailto:")):
        return _url(cast, boxes, surface)
    if (new := renumbered(cast, surface)) is not None:
        return new
    if "=" in surface:
        return _cookie(cast, boxes, surface)
    if _MAIL.fullmatch(surface) is not None and not surface.startswith("@"):
        return _mail(cast, boxes, surface)
    if re.fullmatch(r"(?:[\w-]+\.)+[A-Za-z]{2,}(?:/\S*)?", plain(surface)):
        return _url(cast, boxes, surface)
    return _handle(cast, boxes, surface)


_WAYS = {
    "EMAIL_ADDRESS": _mail,
    "USER_NAME": _handle,
    "SOCIAL_HANDLE": _handle,
    "URL": _url,
    "IP_ADDRESS": _number,
    "HTTP_COOKIE": _cookie,
    "ONLINE_ID": _any,
}
