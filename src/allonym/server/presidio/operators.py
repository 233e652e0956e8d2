"""What ``/anonymize`` and ``/deanonymize`` do: Presidio's operators with Presidio's options, results and messages.

Unlike in Presidio, no overlap lets covered text through: what two findings cover is written once, by the operator that
hides more of it, so that ``keep`` and ``mask`` give way to all others, and ``keep`` to ``mask``. ``encrypt`` is
Presidio's own (AES-CBC with a random IV, Base64), so that either reads what the other wrote. It does not prove that a
text was not changed; our operator of that name does.
"""

from __future__ import annotations

import base64
import hashlib
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import groupby, pairwise
from typing import Any

from cryptography.hazmat.primitives import padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from allonym.errors import RequestError

MERGE, REMOVE = "merge_similar_or_contained", "remove_intersections"
CONFLICTS = (MERGE, REMOVE)
DEFAULT = "DEFAULT"
MOST_MADE = 1 << 24
"""Characters of all texts that a request makes: short findings may be given long replacements."""

_BLOCK = 16
_SALT = 16

Options = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Finding:
    """A result of ``/analyze``, or an item of ``/anonymize`` that is to be undone."""

    start: int
    end: int
    entity: str
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """What stands in the new text, and where. ``text`` is hidden from ``repr``: it may be an original."""

    start: int
    end: int
    entity_type: str
    text: str = field(repr=False)
    operator: str
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator's name and options, as a request gave them. The options may hold a key."""

    name: str
    options: Options = field(default_factory=dict, repr=False)


def invalid(message: str) -> RequestError:
    """What a request is refused with."""
    return RequestError(message, 422, "InvalidRequest")


# Operators


def _replace(text: str, entity: str, options: Options) -> str:
    return options.get("new_value") or f"<{entity}>"


def _redact(text: str, entity: str, options: Options) -> str:
    return ""


def _keep(text: str, entity: str, options: Options) -> str:
    return text


def _mask(text: str, entity: str, options: Options) -> str:
    for name in ("masking_char", "chars_to_mask", "from_end"):
        if options.get(name) is None:
            raise invalid(f"Expected parameter {name}")
    char = str(options["masking_char"])
    if len(char) > 1:
        raise invalid("Invalid input, masking_char must be a character")
    count = min(len(text), max(0, int(options["chars_to_mask"])))
    return text[: len(text) - count] + char * count if options["from_end"] else char * count + text[count:]


def _hash(text: str, entity: str, options: Options) -> str:
    name = options.get("hash_type") or "sha256"
    if name not in ("sha256", "sha512"):
        raise invalid("Parameter hash_type value is not in range of values ['sha256', 'sha512']")
    given = options.get("salt")
    salt = os.urandom(32) if given is None else str(given).encode("utf-8", "surrogatepass")
    if len(salt) < _SALT:
        raise invalid(f"Salt must be at least {_SALT} bytes (128 bits). Provided salt is {len(salt)} bytes.")
    return hashlib.new(name, text.encode("utf-8", "surrogatepass") + salt).hexdigest()


def _encrypt(text: str, entity: str, options: Options) -> str:
    return encrypted(_key(options), text)


def _decrypt(text: str, entity: str, options: Options) -> str:
    return decrypted(_key(options), text)


ANONYMIZERS: Mapping[str, Callable[[str, str, Options], str]] = {
    "encrypt": _encrypt,
    "hash": _hash,
    "keep": _keep,
    "mask": _mask,
    "redact": _redact,
    "replace": _replace,
}
DEANONYMIZERS: Mapping[str, Callable[[str, str, Options], str]] = {"decrypt": _decrypt, "deanonymize_keep": _keep}
_TELLING = frozenset(("encrypt", "keep", "mask"))
"""Operators whose result holds the text itself, so that no character may be given to two of them."""


def _key(options: Options) -> bytes:
    if options.get("key") is None:
        raise invalid("Expected parameter key")
    key = str(options["key"]).encode("utf-8", "surrogatepass")
    if len(key) not in (16, 24, 32):
        raise invalid("Invalid input, key must be of length 128, 192 or 256 bits")
    return key


def encrypted(key: bytes, text: str) -> str:
    """The text under AES-CBC with PKCS#7 padding: Base64 for URLs of a random IV and the ciphertext."""
    pad = padding.PKCS7(8 * _BLOCK).padder()
    plain = pad.update(text.encode("utf-8", "surrogatepass")) + pad.finalize()
    iv = os.urandom(_BLOCK)
    cipher = Cipher(algorithms.AES(key), modes.CBC(iv)).encryptor()
    return base64.urlsafe_b64encode(iv + cipher.update(plain) + cipher.finalize()).decode()


def decrypted(key: bytes, code: str) -> str:
    """The text again.

    Raises:
        RequestError: it was not encrypted with this key, or was changed.
    """
    try:
        raw = base64.b64decode(code.encode("ascii"), b"-_" if set(code) & {"-", "_"} else b"+/", validate=True)
        if len(raw) < 2 * _BLOCK:
            raise ValueError
        cipher = Cipher(algorithms.AES(key), modes.CBC(raw[:_BLOCK])).decryptor()
        unpad = padding.PKCS7(8 * _BLOCK).unpadder()
        plain = unpad.update(cipher.update(raw[_BLOCK:]) + cipher.finalize()) + unpad.finalize()
        return plain.decode("utf-8", "surrogatepass")
    except ValueError:
        raise invalid("Invalid input, the text does not decrypt with this key") from None


# Texts


def anonymized(
    text: str, found: Sequence[Finding], operators: Mapping[str, Operator], conflicts: str = MERGE
) -> tuple[str, list[Item]]:
    """The text with each finding replaced as the operator for its type says, and what stands where, last first.

    Args:
        text: the text.
        found: in any order; they may overlap.
        operators: by entity type; ``DEFAULT`` for all others, by itself ``replace``.
        conflicts: one of ``CONFLICTS``: what becomes of findings that overlap.

    Raises:
        RequestError: a finding lies outside the text, or an operator is not known or lacks an option (422).
    """
    _check(text, found)
    settled = _settled(found, operators, conflicts)
    return _operated(text, _joined(text, settled), operators, ANONYMIZERS, Operator("replace"))


def deanonymized(text: str, items: Sequence[Finding], operators: Mapping[str, Operator]) -> tuple[str, list[Item]]:
    """The text with each item undone as the operator for its type says, and what stands where, last first.

    Raises:
        RequestError: an item lies outside the text or over another, or its operator is not known or fails (422).
    """
    _check(text, items)
    order = sorted(items, key=_place)
    if any(a.end > b.start for a, b in pairwise(order)):
        raise invalid("Invalid input, two anonymizer results overlap")
    return _operated(text, order, operators, DEANONYMIZERS, None)


def check_made(size: int) -> None:
    """Refuse to make more than ``MOST_MADE``.

    Raises:
        RequestError: it is more (413).
    """
    if size > MOST_MADE:
        raise RequestError(f"the replacements come to more than {MOST_MADE} characters", 413, "TooLarge")


def _check(text: str, found: Sequence[Finding]) -> None:
    for one in found:
        if one.start > len(text) or one.end > len(text):
            raise invalid(
                f"Invalid analyzer result, start: {one.start} and end: {one.end}, "
                f"while text length is only {len(text)}."
            )


def _place(one: Finding) -> tuple[int, int]:
    return one.start, one.end


def _hides(one: Operator | None) -> float:
    """How many characters of a text an operator hides."""
    if one is None or one.name not in ("keep", "mask"):
        return math.inf
    return max(0, int(one.options.get("chars_to_mask") or 0)) if one.name == "mask" else 0


def _settled(found: Sequence[Finding], operators: Mapping[str, Operator], conflicts: str) -> list[Finding]:
    """Overlaps settled as ``conflicts`` says among findings that hide alike; the others keep what those that hide more
    leave of them."""
    settle = _merged if conflicts == MERGE else _cut
    found = _united(found)
    hides = {one.entity: _hides(operators.get(one.entity) or operators.get(DEFAULT)) for one in found}
    layers: dict[float, list[Finding]] = {}
    for one in found:
        layers.setdefault(hides[one.entity], []).append(one)
    if len(layers) < 2:
        return settle(found)
    layers = {hidden: settle(layer) for hidden, layer in layers.items()}
    order = sorted((one for layer in layers.values() for one in layer), key=_place)
    pieces = _once(order, [(-hides[one.entity], -place) for place, one in enumerate(order)])
    shown = [one for one in pieces if hides[one.entity] < math.inf]
    return _merged([*layers.get(math.inf, ()), *shown])  # without empty findings inside of others


def _united(found: Sequence[Finding]) -> list[Finding]:
    """Overlapping findings of one type as one."""
    joined: list[tuple[Finding, int]] = []
    order = sorted(enumerate(sorted(found, key=_place)), key=lambda row: (row[1].entity, *_place(row[1])))
    for _, alike in groupby(order, key=lambda row: row[1].entity):
        run: list[tuple[Finding, int]] = []
        for place, one in alike:
            if run and min(one.end, run[-1][0].end) > one.start:
                last, before = run[-1]
                score = max(last.score or 0.0, one.score or 0.0)
                run[-1] = replace(last, end=max(last.end, one.end), score=score), max(before, place)
            else:
                run.append((one, place))
        joined += run
    return [one for one, _ in sorted(joined, key=lambda row: row[1])]


def _merged(found: Sequence[Finding]) -> list[Finding]:
    """Overlapping findings of one type as one; without those inside another; of equal places the surest, then last."""
    order = sorted(
        enumerate(_united(found)), key=lambda row: (row[1].start, -row[1].end, -(row[1].score or 0.0), -row[0])
    )
    out: list[Finding] = []
    reach = -1
    for _, one in order:
        if one.end > reach:
            out.append(one)
            reach = one.end
    return out


def _cut(found: Sequence[Finding]) -> list[Finding]:
    """Without overlaps: the less sure of two (of equals the later) keeps what the other leaves of it."""
    order = _merged(found)
    return _once(order, [(-(one.score or 0.0), place) for place, one in enumerate(order)])


def _once(order: Sequence[Finding], keys: Sequence[tuple[float, int]]) -> list[Finding]:
    """Without overlaps: of those that cover a place the one of the least key has it. Sorted by their starts."""
    borders = sorted({place for one in order for place in (one.start, one.end)})
    out: list[Finding] = []
    here: list[tuple[tuple[float, int], int]] = []  # that have begun
    begun, last = 0, -1
    for start, end in pairwise(borders):
        while begun < len(order) and order[begun].start == start:
            heappush(here, (keys[begun], begun))
            begun += 1
        while here and order[here[0][1]].end <= start:
            heappop(here)
        if not here:
            continue
        if here[0][1] == last:
            out[-1] = replace(out[-1], end=end)
        else:
            last = here[0][1]
            out.append(replace(order[last], start=start, end=end))
    return out


def _joined(text: str, found: Sequence[Finding]) -> list[Finding]:
    """Neighbours of one type with nothing but spaces between them as one."""
    out: list[Finding] = []
    for one in found:
        if out and out[-1].entity == one.entity and out[-1].end < one.start:
            gap = text[out[-1].end : one.start]
            if not gap.strip(" "):
                out[-1] = replace(one, start=out[-1].start)
                continue
        out.append(one)
    return out


def _operated(
    text: str,
    found: Sequence[Finding],
    operators: Mapping[str, Operator],
    known: Mapping[str, Callable[[str, str, Options], str]],
    default: Operator | None,
) -> tuple[str, list[Item]]:
    pieces: list[str] = []
    items: list[Item] = []
    at = size = 0
    for i, one in enumerate(found):
        chosen = operators.get(one.entity) or operators.get(DEFAULT) or default
        if chosen is None:
            raise invalid("Invalid input, no deanonymizer for a result's entity_type and no DEFAULT")
        if chosen.name not in known:
            raise invalid(f"Invalid operator class '{chosen.name[:64]}'.")
        ahead = found[i + 1].start if i + 1 < len(found) else len(text)
        end = min(one.end, ahead)
        # Where two overlap, the later one has what both cover; the earlier one's type is still that of all of it.
        said = text[one.start : end if chosen.name in _TELLING else one.end]
        made = known[chosen.name](said, one.entity, chosen.options)
        before = text[at : one.start]
        start = size + len(before)
        items.append(Item(start, start + len(made), one.entity, made, chosen.name, one.score))
        pieces += (before, made)
        at, size = max(at, end), start + len(made)
        check_made(size)
    pieces.append(text[at:])
    return "".join(pieces), items[::-1]
