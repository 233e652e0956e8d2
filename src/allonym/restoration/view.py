"""A view of a text without escapes and invisible characters, with the offsets of its characters in the text.

Rewriting may escape text (HTML, JSON, Markdown, URLs) and insert soft hyphens, joiners and the like. Matching uses the
view; originals are put into the text itself, with the escapes of the replacement.
"""

from __future__ import annotations

import html
import json
import re
from bisect import bisect_left, bisect_right
from operator import itemgetter
from urllib.parse import quote

_INVISIBLE = "\u00ad\u034f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"
SPECIAL = re.compile(rf"[&\\%{_INVISIBLE}]")
_ESCAPE = re.compile(
    r"&(?:amp;)*(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});"
    r"|(?<!\\)\\++(?:u[0-9a-fA-F]{4}|[nrt]|[!-/:-@\[\]^-`{-~])"
    r"|%(?:40|2[0-9a-fA-F]|3[a-fA-F]|5[bBdDfF]|7[bBdD])"
)
UNFINISHED = re.compile(r"(?:&(?:amp;)*[^;&\s]{0,40}|(?<!\\)\\++(?:u[0-9a-fA-F]{0,3})?|%[0-9a-fA-F]?)\Z")
"""An end of a text that may still become an escape."""

_SPECIAL = re.compile(r"[&<>\"']")
_BREAKS = {"n": "\n", "r": "\r", "t": "\t"}


class View:
    """The text for matching, and the mapping to the text that it was made from.

    Attributes:
        text: the text without escapes and invisible characters.
        raw: the original text.
    """

    __slots__ = ("_at", "_marks", "_to", "raw", "text")

    def __init__(self, raw: str) -> None:
        self.raw = raw
        self.text = raw
        self._at: list[int] = []  # from this offset of the view on ...
        self._to: list[int] = []  # ... the text is at this offset
        self._marks: list[tuple[int, int, str]] = []  # start, end and kind of the escapes in the text
        if SPECIAL.search(raw) is not None:
            self._decode_escapes()

    def _decode_escapes(self) -> None:
        raw, raw_position, size = self.raw, 0, 0
        pieces: list[str] = []
        for special in SPECIAL.finditer(raw):
            start = special.start()
            if start < raw_position:
                continue
            sign, kind, end = "", "invisible", start + 1
            if raw[start] in "&\\%":
                match = _ESCAPE.match(raw, start)
                if match is None:
                    continue
                sign, kind = _decode_escape(match[0])
                if not sign:
                    continue
                end = match.end()
            pieces += (raw[raw_position:start], sign)
            size += start - raw_position + len(sign)
            self._at.append(size)
            self._to.append(end)
            self._marks.append((start, end, kind))
            raw_position = end
        if pieces:
            self.text = "".join((*pieces, raw[raw_position:]))

    def get_text_start(self, place: int) -> int:
        """Return the start in the text of the character at ``place``."""
        if not self._at:
            return place
        i = bisect_right(self._at, place) - 1
        return place if i < 0 else self._to[i] + place - self._at[i]

    def get_text_end(self, place: int) -> int:
        """Return the end in the text of the character before ``place``."""
        if not self._at:
            return place
        i = bisect_left(self._at, place)
        if i < len(self._at) and self._at[i] == place and self._marks[i][2] != "invisible":
            return self._to[i]
        return place if i == 0 else self._to[i - 1] + place - self._at[i - 1]

    def map_form_to_raw(self, start: int, end: int, text: str) -> tuple[int, int, tuple[tuple[str, str], ...]]:
        """Return start and end in the text of a form of ``text`` in the view, and the escapes in it.

        Whoever escapes the bracket of a tag escapes more of it, so backslashes before an unescaped tag are not its own.
        """
        a, b = self.get_text_start(start), self.get_text_end(end)
        bare = b - len(text)
        if a < bare and self.raw.startswith(text, bare) and not self.raw[a:bare].strip("\\"):
            a = bare
        return a, b, self.list_escapes(a, b)

    def list_escapes(self, start: int, end: int) -> tuple[tuple[str, str], ...]:
        """Return the escapes (kind, as written) between two offsets of the text."""
        if not self._marks:
            return ()
        low, high = (bisect_left(self._marks, place, key=itemgetter(0)) for place in (start, end))
        return tuple(dict.fromkeys((kind, self.raw[a:b]) for a, b, kind in self._marks[low:high]))


def _decode_escape(escape: str) -> tuple[str, str]:
    """Return the one character of an escape, and the kind of escape; empty if it stands for none."""
    if escape[0] == "&":
        sign = html.unescape(f"&{escape[1:-1].rpartition(';')[2]};")
        return (sign if len(sign) == 1 else ""), "html"
    if escape[0] == "%":
        return chr(int(escape[1:], 16)), "url"
    rest = escape.lstrip("\\")
    if rest[0] == "u" and len(rest) == 5:
        return chr(int(rest[1:], 16)), "json"
    if rest in _BREAKS:
        return _BREAKS[rest], "json"
    return rest, "json" if rest in '"/' else "markdown"


def escape_like(text: str, kinds: tuple[tuple[str, str], ...]) -> str:
    """Escape ``text`` like a mention with the escapes ``kinds``, so that the surrounding format stays valid.

    Markdown also shows text without escapes, so nothing is escaped for it.
    """
    by_kind: dict[str, list[str]] = {}
    for kind, written in kinds:
        by_kind.setdefault(kind, []).append(written)
    if escapes := by_kind.get("html"):
        numeric = next((written for written in escapes if "#" in written), "")
        form = "&#x{:x};" if "x" in numeric.lower() else "&#{};"
        for _ in range(max(written.count(";") for written in escapes)):
            text = _SPECIAL.sub(lambda sign: form.format(ord(sign[0])), text) if numeric else html.escape(text)
    if escapes := by_kind.get("json"):
        ascii_only = any("u" in written for written in escapes)
        levels = max(len(written) - len(written.lstrip("\\")) for written in escapes)
        for _ in range(1 if levels < 3 else 2):
            text = json.dumps(text, ensure_ascii=ascii_only or any("\ud800" <= c <= "\udfff" for c in text))[1:-1]
    if "url" in by_kind:
        text = quote(text.encode("utf-8", "surrogatepass"), safe="")
    return text
