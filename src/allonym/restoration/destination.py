"""Where a restored text goes, and what must not come back there.

Who reads an answer may see the originals. An address in it goes further: a browser asks its server as soon as the
answer is shown, and a page that a language model has read can make the model write such an address. So a replacement
within an address is left. What stands before a place decides whether it lies in an address, so that a text that arrives
in pieces is treated as one that is whole.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from allonym.restoration.hits import Match

DestinationName = Literal["document", "answer"]
"""``document``: the text itself, in which everything is restored; ``answer``: what somebody reads, see the module."""

IN_ADDRESS = "a replacement for {label} stands in an address, which may carry it elsewhere, and was left"
NOT_OURS = "a replacement for {label} stood in the text before anything was replaced, and was left"

_SCHEME = r"[a-z][a-z0-9+.\-]{0,20}"
_HOST = r"(?<![\w.@\-])(?:[a-z0-9\-]{1,63}\.){1,9}[a-z]{2,24}(?::[0-9]{1,5})?[/?#]"
_OPENER = re.compile(
    r"(?P<inline>\]\()"
    r"|(?P<css>\burl\()"
    r"|(?P<quoted>(?<![\w\-])(?:src|srcset|href|poster|formaction|ping)\s{0,9}=\s{0,9}(?P<quote>[\"']))"
    r"|(?:\]:\s{0,9}<?|[=\"'(<])(?P<relative>//(?=\S))"
    rf"|(?P<bare>{_SCHEME}:(?:\\?/){{2}}|\b(?:https?|wss?|ftp):[\\/]"
    rf"|\b(?:mailto|tel|sms|data|javascript|blob|xmpp|sip|callto|skype|geo):(?=\S)|\bwww\.|{_HOST})",
    re.IGNORECASE,
)
_RUN = re.compile(r"(?:[^\s<>\"]|\"(?![\s,:;>}\])]|\Z)|<[^<>\n]{1,80}>)*")
_PAREN = re.compile(r"\\.|[()]|\n[ \t]*\n", re.DOTALL)
_ENDED = re.compile(r"[)\].,;:!?*_'`|}>]*(?=[\s\"<>]|\Z)")
_TRAILING = ".,;:!?*_'`|"
_LONGEST_OPENER = 64
_TO_A_PERSON = ("mailto:", "tel:", "sms:")


@dataclass(frozen=True, slots=True)
class Address:
    """An address in a text, such as the one of a link or of an image.

    Attributes:
        start: where that begins which shows that it is one.
        opened: where that ends.
        begin, end: of the address, with all that may belong to it.
    """

    start: int
    opened: int
    begin: int
    end: int


def iterate_addresses(text: str) -> Iterator[Address]:
    """Yield the addresses in a text by where they start; one of Markdown or HTML may hold a bare one."""
    ends = dict.fromkeys(("inline", "css", "bare"), 0)
    for opener in _OPENER.finditer(text):
        group = str(opener.lastgroup)
        kind = "bare" if group == "relative" else group
        if opener.start() < ends.get(kind, 0):
            continue  # it belongs to the one before
        begin = opener.end()
        if kind == "quoted":
            end = text.find(opener["quote"], begin)
            end = len(text) if end < 0 else end
        elif kind == "bare":
            begin = opener.start(group)
            run = _RUN.match(text, opener.end())
            end = ends[kind] = run.end() if run is not None else opener.end()
        else:
            end = ends[kind] = _find_closing_parenthesis(text, begin)
        yield Address(opener.start(), opener.end(), begin, end)


def _find_closing_parenthesis(text: str, start: int) -> int:
    """Return where a parenthesis that has been opened is closed, at the latest at an empty line or the end."""
    depth = 1
    for sign in _PAREN.finditer(text, start):
        if sign[0][0] == "\n":
            return sign.start()
        depth += {"(": 1, ")": -1}.get(sign[0], 0)
        if not depth:
            return sign.start()
    return len(text)


def list_whole_addresses(text: str) -> frozenset[str]:
    """Return the addresses of a text as somebody would copy them, without signs of the sentence around them."""
    out = set()
    for address in iterate_addresses(text):
        begin = address.begin
        if address.start != begin:  # in Markdown or HTML the address is its first word
            run = _RUN.match(text, begin, address.end)
            end = run.end() if run is not None else begin
        else:
            end = address.end
        copied = text[begin:end].rstrip(_TRAILING)
        while copied.endswith(")") and copied.count(")") > copied.count("("):
            copied = copied[:-1].rstrip(_TRAILING)
        out.add(copied)
    return frozenset(out)


@dataclass(frozen=True, slots=True)
class Destination:
    """Somebody who reads the text, such as the answer of a language model.

    Attributes:
        addresses: whole addresses, as they stand in the anonymised text, that were there before; they are restored.
        refused: surfaces that stood in the text before anything was replaced: whoever wrote them, they stand for no
            original.
    """

    addresses: frozenset[str] = field(default=frozenset(), repr=False)
    refused: frozenset[str] = field(default=frozenset(), repr=False)

    def withhold_matches(self, text: str, matches: Sequence[Match], *, final: bool = True) -> tuple[list[Match], int]:
        """Return the matches, without originals where these must not come back, and the offset up to which that is
        certain.

        Args:
            text: the text so far.
            matches: in reading order.
            final: whether nothing follows.
        """
        out: list[Match] = []
        addresses = deque(iterate_addresses(text) if matches else ())
        near: list[Address] = []
        for match in matches:
            while addresses and addresses[0].begin < match.end:
                near.append(addresses.popleft())
            near = [address for address in near if match.start < address.end]
            around = [address for address in near if address.begin < match.end]
            if not match.is_sure or match.out is None:
                pass
            elif text[match.start : match.end] in self.refused:
                match = match._replace(out=None, why=NOT_OURS.format(label=match.label))
            elif around:
                allowed = self._is_address_allowed(text, match, around, final=final)
                if allowed is None:
                    return out, match.start
                if not allowed:
                    match = match._replace(out=None, why=IN_ADDRESS.format(label=match.label))
            out.append(match)
        return out, len(text)

    def _is_address_allowed(self, text: str, match: Match, around: Sequence[Address], *, final: bool) -> bool | None:
        """Return whether all addresses around a match are harmless; None where that depends on what follows."""
        verdict: bool | None = True
        for address in around:
            before = text[address.begin : match.start].lstrip(" \t<").lower()
            begin = match.start - len(before)
            is_alone = before in _TO_A_PERSON or (not before and match.label == "URL")
            ends = [match.end] if is_alone else []
            for allowed in self.addresses:
                if text.startswith(allowed, begin) and begin + len(allowed) >= match.end:
                    ends.append(begin + len(allowed))
                elif not final and allowed.startswith(text[begin:]):
                    ends.append(len(text))
            endings = [_ENDED.match(text, end) for end in ends]
            if not final and any(ending is not None and ending.end() == len(text) for ending in endings):
                verdict = None
            elif not any(ending is not None for ending in endings):
                return False
        return verdict


def shorten_context(text: str, start: int) -> str:
    """Return a text from ``start`` on, after what shows that this is within an address, where it is."""
    for address in iterate_addresses(text[: start + _LONGEST_OPENER]) if start else ():
        if address.start < start <= address.end:
            return text[address.start : address.opened] + text[max(start, address.opened) :]
    return text[start:]
