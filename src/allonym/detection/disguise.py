"""Disguise: identifiers that a person recognises and a pattern does not.

:func:`fold_lookalikes` changes characters one for one, so offsets stay (full-width digits, no-break spaces, dashes,
digits of other scripts, look-alike letters). :func:`undo_disguise` undoes what changes lengths (invisible characters,
entities and escapes, ``[at]`` and ``[dot]``, broken lines) and returns a :class:`View` that maps spans back. Both
return at once where a cheap test finds no disguise."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from allonym.checksums.general import luhn
from allonym.detection.scan import compile_pattern, encode_text, find_match, find_matches
from allonym.detection.words import read_word_list
from allonym.document import merge_intervals

# The characters of other alphabets that look like ASCII ones.
_LOOKALIKES = dict(
    zip(
        "АВЕЅІЈКМНОРСТУХԌԚԜаеѕіјорсухԁԛԝһӏѵʙɡıΑΒΕΖΗΙΚΜΝΟΡΤΥΧοαινρυϲϳ",
        "ABESIJKMHOPCTYXGQWaesijopcyxdqwhlvBgiABEZHIKMNOPTYXoaivpucj",
        strict=True,
    )
)
_SIGNS = {
    **dict.fromkeys("‘’‚‛′‵ʼʻ´＇", "'"),
    **dict.fromkeys("“”„‟″«»＂", '"'),
    **dict.fromkeys("−˗⁃﹣➖", "-"),
    **dict.fromkeys("\x85\u2028\u2029", "\n"),
    "。": ".",
    "∕": "/",
    "⁄": "/",
    "∶": ":",
    "⁎": "*",
}
_COMMON = (*((c, _SIGNS.get(c, "-")) for c in "’‘“”–—"), ("\xa0", " "))
# Ranges in which no character folds (a test says so); a text with none but these needs no slow path.
_PLAIN = (
    r"\x00-\x7f¡-§©®°±¶·¿-ıĴ-ľŁ-ňŊ-žƀ-ǃǝ-ǰǴ-ʯΆΈ-ϏЀ-ԯא-תء-ي\x{300}-\x{33f}ぁ-ゖァ-ヺー一-龥가-힣"
    r"•…€™→←↑↓✓✔★☆\x{fe0f}\x{200d}\x{1f300}-\x{1faff}"
)
_ALIKE = "".join(_LOOKALIKES)
_BESIDE = f"[A-Za-z0-9@_][{_ALIKE}]|[{_ALIKE}][A-Za-z0-9@_]|[{_ALIKE}]\\.[a-z]|[A-Za-z0-9]\\.[{_ALIKE}]"
_ODD = compile_pattern(f"[^{_PLAIN}]")
_MIXED = compile_pattern(_BESIDE)
_UNUSUAL = compile_pattern(f"[^{_PLAIN}]|{_BESIDE}")
_TOKEN = compile_pattern(f"[\\pL\\pN_.@+\\-]*[{_ALIKE}][\\pL\\pN_.@+\\-]*")


def _fold_character(char: str) -> str:
    """The character that ``char`` folds to; often itself."""
    if char in _SIGNS or char < "\x80":
        return _SIGNS.get(char, char)
    category = unicodedata.category(char)
    if category == "Nd":
        return str(unicodedata.digit(char))
    if category == "Zs":
        return " "
    if category == "Pd":
        return "-"
    other = unicodedata.normalize("NFKC", char)
    return _fold_character(other) if len(other) == 1 and other != char else char


class _Folding(dict[int, str]):
    def __missing__(self, point: int) -> str:
        folded = self[point] = _fold_character(chr(point))
        return folded


_FOLDING = _Folding()


def fold_lookalikes(text: str) -> str:
    """Replace every character by the plain one that it stands for; the length stays the same. Idempotent.

    A text in which nothing folds, such as an ASCII text, is returned as the same object. Look-alike letters (Cyrillic,
    Greek) fold only in tokens that hold ASCII letters, digits or ``@`` and whose other letters all look like ASCII
    ones, so a text in those alphabets stays as it is.

    >>> fold_lookalikes("４１１１–1111")
    '4111-1111'
    """
    if text.isascii():
        return text
    folded = text
    for char, plain in _COMMON:
        if char in folded:
            folded = folded.replace(char, plain)
    if folded.isascii() or _UNUSUAL.search(data := encode_text(folded)) is None:
        return folded
    odd = set(_ODD.findall(data))
    if len(odd) > 24:
        folded = folded.translate(_FOLDING)
    else:
        for char in {raw.decode("utf-8", "ignore") for raw in odd} - {""}:
            if (plain := _FOLDING[ord(char)]) != char:
                folded = folded.replace(char, plain)
    if _MIXED.search(data := encode_text(folded)) is None:
        return text if folded == text else folded
    pieces: list[str] = []
    position = 0
    for ((start, end),) in find_matches(_TOKEN, folded, data):
        token = folded[start:end]
        alike = all(c in _LOOKALIKES for c in token if c > "\x7f")
        if alike and any(c.isascii() and (c.isalnum() or c == "@") for c in token):
            pieces += (folded[position:start], "".join([_LOOKALIKES.get(c, c) for c in token]))
            position = end
    if pieces:
        pieces.append(folded[position:])
        folded = "".join(pieces)
    return text if folded == text else folded


@dataclass(frozen=True, slots=True)
class Layer:
    """Replacements made in one step: the borders of each in the view and in the layer below it."""

    starts: tuple[int, ...]
    ends: tuple[int, ...]
    below: tuple[tuple[int, int], ...]

    def locate_character(self, position: int) -> tuple[int, int]:
        i = bisect_right(self.starts, position) - 1
        if i < 0:
            return position, position + 1
        if position < self.ends[i]:
            return self.below[i]
        position += self.below[i][1] - self.ends[i]
        return position, position + 1


@dataclass(frozen=True, slots=True)
class View:
    """A text without its disguise, which maps spans back to the disguised text.

    Attributes:
        text: the text without disguise. Hidden from ``repr``.
    """

    text: str = field(repr=False)
    _layers: tuple[Layer, ...] = field(repr=False)

    def locate_original(self, start: int, end: int) -> tuple[int, int]:
        """The smallest span of the disguised text that holds the characters ``start:end`` of the view.

        It includes disguise between these characters, but none around them. ``start < end`` is required.
        """
        if not 0 <= start < end <= len(self.text):
            raise ValueError(f"a span of the view needs 0 <= start < end <= {len(self.text)}, got {start}..{end}")
        for layer in reversed(self._layers):
            start, end = layer.locate_character(start)[0], layer.locate_character(end - 1)[1]
        return start, end


Change = tuple[int, int, str]

_INVISIBLE = (
    r"\x{ad}\x{34f}\x{61c}\x{115f}\x{1160}\x{17b4}\x{17b5}\x{180b}-\x{180e}\x{200b}-\x{200f}\x{202a}-\x{202e}"
    r"\x{2060}-\x{206f}\x{3164}\x{fe00}-\x{fe0f}\x{feff}\x{fff9}-\x{fffb}\x{e0000}-\x{e01ef}"
)
_OVERLAY = r"\x{305}\x{332}\x{333}\x{335}-\x{338}\x{20d0}-\x{20f0}"
_LATIN = r" -~À-ɏ"
_OPEN, _CLOSE = r"[\[({<]", r"[\])}>]"
_BLANKS = "[ \\t]{0,3}"
_NAMED_SIGNS = {"at": "@", "@": "@", "dot": ".", ".": ".", "punkt": ".", "point": ".", "dash": "-", "hyphen": "-"}
_NAMED_SIGNS |= {"underscore": "_", "plus": "+", ":": ":", "/": "/", "://": "://", "arroba": "@", "punto": "."}
_SIGN_WORDS = "at|@|dot|\\.|punkt|point|dash|hyphen|underscore|plus|://|:|/|arroba|punto"

_ENTITY = r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});"
_ESCAPE = r"\\u[0-9a-fA-F]{4}|\\x[0-7][0-9a-fA-F]|\\[/_.@+\-]"
_PERCENT = r"[\w.\-=/:?&+~]((?:%[0-9A-Fa-f]{2})+)"
_BRACKETED = rf"(?i){_BLANKS}{_OPEN}[ \t]?({_SIGN_WORDS})[ \t]?{_CLOSE}{_BLANKS}"
_HXXP = r"(?i)\bh(?:xx|\*\*|XX)p(?:s?)(?:://|\[|:)"
_AROUND_AT = r"[\w.+\-]+(?: \. [\w+\-]+)* ?@ ?[\w\-]+(?: ?\. ?[\w\-]+)*"
_BROKEN = r"[0-9][ \-]?\r?\n[ \t>]*[0-9]|@(?:[\w.\-]{0,40}-)?\r?\n[ \t>]*\w|\w=\r?\n[ \t>]*\w"

# What a text with length-changing disguise must hold; one search decides for all.
_ANY = compile_pattern(
    "|".join(
        (
            _ENTITY.replace("{1,30}", "+").replace("{1,7}", "+").replace("{1,6}", "+"),
            r"\\u[0-9a-fA-F]|\\x[0-7]|\\[/_.@+\-]",
            r"[\w.\-=/:?&+~]%[2-7C-Fc-f][0-9A-Fa-f]",
            rf"(?i:{_OPEN}[ \t]?(?:{_SIGN_WORDS})[ \t]?{_CLOSE})",
            r"(?i:\bh(?:xx|\*\*)ps?[:\[])",
            r"\w ?@ [\w]|\w @ ?\w",
            _BROKEN,
            rf"[{_LATIN}][{_INVISIBLE}]+[{_LATIN}]",
            rf"[0-9@.:/+\-]\pM|[{_OVERLAY}]",
        )
    )
)
_CHARACTERS = compile_pattern(
    rf"({_ENTITY})|({_ESCAPE})|(?:{_PERCENT})|([{_INVISIBLE}]+|[{_OVERLAY}]+)|[0-9@.:/+\-](\pM+)"
)
_WORDS = compile_pattern(rf"{_BRACKETED}|({_HXXP})|((?-i)@|\bdot\b)")
TOP_DOMAINS = read_word_list("top_domains")
"""Common top-level domains, in lower case."""


def undo_disguise(text: str) -> View | None:
    """Undo the disguise that changes the length of a text; None where there is none.

    The text must be folded (:func:`fold_lookalikes`). The view's spans then also hold for the text before folding.
    """
    data = encode_text(text)
    if find_match(_ANY, data, 0, len(data)) is None:
        return None
    layers: list[Layer] = []
    for step in (_decode_characters, _decode_characters, _decode_signs, _join_spaced_addresses, _join_broken_lines):
        if changes := step(text):
            text, layer = apply_changes(text, changes)
            layers.append(layer)
    return View(text, tuple(layers)) if layers else None


_REGION = 512  # characters around a disguise that are looked at with it
_EDGE = 64  # characters at a region's ends in which a finding may be a cut one


def find_disguised_regions(text: str) -> Iterator[tuple[int, int, int, View]]:
    """Find the disguised regions of a folded text.

    Yields:
        The offset of the region in ``text``, the first and the last position in its view where a finding counts
        because it is not near a cut, and the view. A short text is one region, so that its context stays together.
    """
    if len(text) <= 8 * _REGION:
        view = undo_disguise(text)
        if view is not None:
            yield 0, 0, len(view.text), view
        return
    around = ((max(0, a - _REGION), min(len(text), b + _REGION)) for ((a, b), *_) in find_matches(_ANY, text))
    for start, end in merge_intervals(around):
        a = max(text.rfind(" ", max(0, start - _EDGE), start) + 1, start - _EDGE, 0)
        view = undo_disguise(text[a:end])
        if view is not None:
            last = len(view.text) if end == len(text) else len(view.text) - _EDGE
            yield a, 0 if a == 0 else _EDGE, last, view


def apply_changes(text: str, changes: Iterable[Change]) -> tuple[str, Layer]:
    """The text with some stretches exchanged, and the way back; the changes are in order and disjoint."""
    pieces: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    below: list[tuple[int, int]] = []
    position = size = 0
    for start, end, new in changes:
        pieces += (text[position:start], new)
        size += start - position
        starts.append(size)
        size += len(new)
        ends.append(size)
        below.append((start, end))
        position = end
    pieces.append(text[position:])
    return "".join(pieces), Layer(tuple(starts), tuple(ends), tuple(below))


def _decode_characters(text: str) -> list[Change]:
    """Decode entities, escapes and percent codes, and drop invisible characters and marks."""
    changes: list[Change] = []
    for _, entity, escape, percent, invisible, marks in find_matches(_CHARACTERS, text):
        if entity[0] >= 0:
            shown = _decode_entity(text[slice(*entity)])
            if shown is not None:
                changes.append((*entity, shown))
        elif escape[0] >= 0:
            raw = text[slice(*escape)]
            shown = _fold_decoded_characters(raw[1] if len(raw) == 2 else chr(int(raw[2:], 16)))
            if shown is not None:
                changes.append((*escape, shown))
        elif percent[0] >= 0:
            changes += _decode_percents(text, *percent)
        else:
            start, end = invisible if invisible[0] >= 0 else marks
            changes.append((start, end, ""))
    return changes


def _fold_decoded_characters(shown: str) -> str | None:
    """Fold decoded characters; None where they are control characters or half of a surrogate pair."""
    if any(unicodedata.category(c) in ("Cc", "Cs", "Cn") and c not in "\t\n" for c in shown):
        return None
    return fold_lookalikes("".join(_INVISIBLE_SET.sub(b"", encode_text(shown)).decode("utf-8")))


_INVISIBLE_SET = compile_pattern(f"[{_INVISIBLE}]")


def _decode_entity(raw: str) -> str | None:
    from html import unescape

    shown = unescape(raw)
    return None if shown == raw or "\ufffd" in shown else _fold_decoded_characters(shown)


def _decode_percents(text: str, start: int, end: int) -> list[Change]:
    try:
        shown = bytes.fromhex(text[start:end].replace("%", "")).decode("utf-8")
    except UnicodeDecodeError:
        return []
    changes: list[Change] = []
    for char in shown:
        size = 3 * len(char.encode("utf-8"))
        plain = _fold_decoded_characters(char)
        if plain is not None and char not in "\t\n":
            changes.append((start, start + size, plain))
        start += size
    return changes


def _decode_signs(text: str) -> list[Change]:
    """Decode ``[at]``, ``(dot)`` and the like between words, and defanged addresses."""
    changes: list[Change] = []
    mailbox = False
    for (start, end), sign, scheme, _ in find_matches(_WORDS, text):
        if sign[0] >= 0:
            word = text[slice(*sign)].lower()
            if start == 0 or not _is_wordlike(text[start - 1]) or end == len(text) or not _is_wordlike(text[end]):
                continue
            mailbox = mailbox or word in ("at", "@", "arroba")
            changes.append((start, end, _NAMED_SIGNS[word]))
        elif scheme[0] >= 0:
            changes.append((start + 1, start + 3, "tt"))
            if text[end - 1] == "[":
                changes.append((end - 1, end, ""))
        elif mailbox and text[start:end] == "dot" and text[start - 1] == " " and text[end : end + 1] == " ":
            changes.append((start - 1, end + 1, "."))
    return changes


def _is_wordlike(char: str) -> bool:
    return char.isalnum() or char in "_-/:."


_AT = compile_pattern(rf"({_AROUND_AT})")
_LETTERS = compile_pattern(r"(?:^|\s)([\w.](?: [\w.\-]){1,64} @(?: [\w.\-]){3,64})")


def _join_spaced_addresses(text: str) -> list[Change]:
    """Drop blanks inside a mail address: ``jane @ example . com``, ``j a n e @ e x a m p l e . c o m``."""
    if " @" not in text and "@ " not in text:
        return []
    changes: list[Change] = []
    for _, (start, end) in find_matches(_LETTERS, text):
        address = text[start:end]
        while address and address.replace(" ", "").rpartition(".")[2].lower() not in TOP_DOMAINS:
            address = address[:-2]
        if len(address.partition("@")[2]) > 5:
            changes += _list_blank_removals(text, start, start + len(address))
    reach = changes[-1][1] if changes else 0
    for _, (start, end) in find_matches(_AT, text):
        address = text[start:end]
        local, _, domain = address.partition("@")
        if start < reach or " " not in address:
            continue
        labels = domain.replace(" ", "").split(".")
        keep = next((n for n in range(len(labels), 1, -1) if labels[n - 1].lower() in TOP_DOMAINS), 0)
        if keep:
            stop, dots = len(local) + 1, 0
            while stop < len(address) and dots < keep:
                stop += 1
                dots += stop < len(address) and address[stop] == "."
            changes += _list_blank_removals(text, start, start + len(address[:stop].rstrip()))
    return sorted(changes)


def _list_blank_removals(text: str, start: int, end: int) -> list[Change]:
    return [(i, i + 1, "") for i in range(start, end) if text[i] == " "]


_BREAK = compile_pattern(r"([0-9@\w])([ \-=]?\r?\n[ \t>]*)[0-9\w]")
_BEFORE = 48
_AFTER = 96


def _join_broken_lines(text: str) -> list[Change]:
    """Join numbers and addresses that continue on the next line."""
    changes: list[Change] = []
    for _, _, (start, end) in find_matches(_BREAK, text):
        before, gap = text[start - 1], text[start]
        if (
            before == "@"
            or gap == "="
            or (gap == "-" and "@" in _find_word_before(text, start) and "." in _find_word_after(text, end))
        ):
            changes.append((start, end, ""))
        elif before.isdigit() and text[end].isdigit() and _is_broken_number(text, start, end):
            changes.append((start, end, "-" if gap == "-" else " "))
    return changes


def _find_word_before(text: str, end: int) -> str:
    return "".join(text[max(0, end - _BEFORE) : end].split()[-1:])


def _find_word_after(text: str, start: int) -> str:
    return "".join(text[start : start + _AFTER].split(None, 1)[:1])


def _is_broken_number(text: str, start: int, end: int) -> bool:
    """Whether the digits before ``start`` and after ``end`` are one number, rather than two numbers of a column."""
    a = start
    while a > max(0, start - _BEFORE) and (text[a - 1].isdigit() or text[a - 1] in " -.()+" or text[a - 1].isupper()):
        a -= 1
    b = end
    while b < min(len(text), end + _BEFORE) and (text[b].isdigit() or text[b] in " -." or text[b].isupper()):
        b += 1
    # Two blanks part a number from the next one.
    before = text[a:start].strip(" -.").rpartition("  ")[2]
    right = text[end:b].strip(" -.").partition("  ")[0]
    joined = "".join(c for c in before + right if c.isalnum())
    digits = "".join(c for c in joined if c.isdigit())
    if _is_card_or_iban(joined, digits):
        return True
    first = text[max(0, a - 8) : a].rstrip(" \t")[-1:] in ("", "\n")
    column = first and text[b : b + 1] in ("", "\n", "\r")
    return not column and 7 <= len(digits) <= 15 and len(joined) == len(digits) and min(len(before), len(right)) < 10


def _is_card_or_iban(joined: str, digits: str) -> bool:
    if len(joined) == len(digits):
        return 13 <= len(digits) <= 19 and luhn(digits)
    if not (15 <= len(joined) <= 34 and joined[:2].isalpha() and joined[2:4].isdigit()):
        return False
    return int("".join(str(int(c, 36)) for c in joined[4:] + joined[:4])) % 97 == 1
