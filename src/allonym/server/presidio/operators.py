"""The operators of ``/anonymize`` and ``/deanonymize``: Presidio's, with its options, results and messages.

Unlike in Presidio, no overlap lets covered text through: what two findings cover is written once, by the operator that
hides more of it, so that ``keep`` and ``mask`` give way to all others, and ``keep`` to ``mask``. ``encrypt`` is
Presidio's own (AES-CBC with a random IV, Base64), so that each service reads what the other wrote. It does not prove
that a text was not changed; our operator of that name does.
"""

from __future__ import annotations

import base64
import hashlib
import math
import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any, NamedTuple

from cryptography.hazmat.primitives import padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from allonym.errors import RequestError
from allonym.server.presidio.adhoc import make_refusal
from allonym.server.wire.presidio import OperatorConfig

MERGE, REMOVE = "merge_similar_or_contained", "remove_intersections"
CONFLICTS = (MERGE, REMOVE)
DEFAULT = "DEFAULT"
MOST_OUTPUT = 1 << 24
"""Characters of all texts that a request makes: short findings may be given long replacements."""

_BLOCK = 16
_SALT = 16

Operators = Mapping[str, OperatorConfig]
Item = dict[str, Any]
"""A replacement, as ``wire.OperatorEntity`` describes it: its text, and its place in the new text."""


class Finding(NamedTuple):
    """A result of ``/analyze``, or an item of ``/anonymize`` that is to be undone."""

    start: int
    end: int
    entity: str
    score: float | None = None


def _make_422_error(message: str) -> RequestError:
    return make_refusal(message, 422)


def _mask_text(text: str, entity: str, options: OperatorConfig) -> str:
    """Replace some characters at the start or the end, as Presidio's ``mask``."""
    for name in ("masking_char", "chars_to_mask", "from_end"):
        if getattr(options, name) is None:
            raise _make_422_error(f"Expected parameter {name}")
    char = options.masking_char or ""
    if len(char) > 1:
        raise _make_422_error("Invalid input, masking_char must be a character")
    count = min(len(text), max(0, options.chars_to_mask or 0))
    return text[: len(text) - count] + char * count if options.from_end else char * count + text[count:]


def _hash_text(text: str, entity: str, options: OperatorConfig) -> str:
    name = options.hash_type or "sha256"
    if name not in ("sha256", "sha512"):
        raise _make_422_error("Parameter hash_type value is not in range of values ['sha256', 'sha512']")
    salt = os.urandom(32) if options.salt is None else options.salt.encode("utf-8", "surrogatepass")
    if len(salt) < _SALT:
        raise _make_422_error(f"Salt must be at least {_SALT} bytes (128 bits). Provided salt is {len(salt)} bytes.")
    return hashlib.new(name, text.encode("utf-8", "surrogatepass") + salt).hexdigest()


def _get_cipher_key(options: OperatorConfig) -> bytes:
    if options.key is None:
        raise _make_422_error("Expected parameter key")
    key = options.key.encode("utf-8", "surrogatepass")
    if len(key) not in (16, 24, 32):
        raise _make_422_error("Invalid input, key must be of length 128, 192 or 256 bits")
    return key


def encrypt_text(key: bytes, text: str) -> str:
    """Encrypt with AES-CBC and PKCS#7 padding: Base64 for URLs of a random IV and the ciphertext."""
    pad = padding.PKCS7(8 * _BLOCK).padder()
    plain = pad.update(text.encode("utf-8", "surrogatepass")) + pad.finalize()
    iv = os.urandom(_BLOCK)
    cipher = Cipher(algorithms.AES(key), modes.CBC(iv)).encryptor()
    return base64.urlsafe_b64encode(iv + cipher.update(plain) + cipher.finalize()).decode()


def decrypt_text(key: bytes, code: str) -> str:
    """Decrypt what :func:`encrypt_text` returned.

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
        raise _make_422_error("Invalid input, the text does not decrypt with this key") from None


Replace = Callable[[str, str, OperatorConfig], str]
"""Makes a replacement of an original, its entity type and the operator's options."""

ANONYMIZERS: Mapping[str, Replace] = {
    "encrypt": lambda text, entity, options: encrypt_text(_get_cipher_key(options), text),
    "hash": _hash_text,
    "keep": lambda text, entity, options: text,
    "mask": _mask_text,
    "redact": lambda text, entity, options: "",
    "replace": lambda text, entity, options: options.new_value or f"<{entity}>",
}
DEANONYMIZERS: Mapping[str, Replace] = {
    "decrypt": lambda text, entity, options: decrypt_text(_get_cipher_key(options), text),
    "deanonymize_keep": ANONYMIZERS["keep"],
}
_REVEALING = frozenset(("encrypt", "keep", "mask"))
"""Operators whose result holds the text itself, so that no character may be given to two of them."""


def anonymize_text(
    text: str, findings: Sequence[Finding], operators: Operators, conflict_resolution: str = MERGE
) -> tuple[str, list[Item]]:
    """Replace each finding with the operator for its type; return the text and the replacements, last first.

    Args:
        text: the text.
        findings: in any order; they may overlap.
        operators: by entity type; ``DEFAULT`` for all others, by itself ``replace``.
        conflict_resolution: one of ``CONFLICTS``, which says how overlaps are resolved.

    Raises:
        RequestError: a finding lies outside the text, or an operator is not known or lacks an option (422).
    """
    _check_bounds(text, findings)
    chosen = {DEFAULT: OperatorConfig.from_values({"type": "replace"}), **operators}
    disjoint = _join_neighbours(text, _resolve_overlaps(findings, chosen, conflict_resolution))
    return _apply_operators(text, disjoint, chosen, ANONYMIZERS)


def deanonymize_text(text: str, items: Sequence[Finding], operators: Operators) -> tuple[str, list[Item]]:
    """Undo each item with the operator for its type; return the text and the originals with their places, last first.

    Raises:
        RequestError: an item lies outside the text or over another, or its operator is not known or fails (422).
    """
    _check_bounds(text, items)
    order = sorted(items, key=lambda item: item[:2])
    if any(a.end > b.start for a, b in pairwise(order)):
        raise _make_422_error("Invalid input, two anonymizer results overlap")
    return _apply_operators(text, order, operators, DEANONYMIZERS)


def check_output_size(size: int) -> None:
    """Check the size of the output.

    Raises:
        RequestError: it is larger than ``MOST_OUTPUT`` (413).
    """
    if size > MOST_OUTPUT:
        raise make_refusal(f"the replacements come to more than {MOST_OUTPUT} characters", 413)


def _check_bounds(text: str, findings: Sequence[Finding]) -> None:
    for finding in findings:
        if finding.start > len(text) or finding.end > len(text):
            raise _make_422_error(
                f"Invalid analyzer result, start: {finding.start} and end: {finding.end}, "
                f"while text length is only {len(text)}."
            )


def _count_hidden_characters(operator: OperatorConfig) -> float:
    """Return how many characters of a text an operator hides."""
    if operator.type not in ("keep", "mask"):
        return math.inf
    return max(0, operator.chars_to_mask or 0) if operator.type == "mask" else 0


def _resolve_overlaps(findings: Sequence[Finding], operators: Operators, conflict_resolution: str) -> Sequence[Finding]:
    """Resolve overlaps among findings that hide alike as ``conflict_resolution`` says; the others keep what those that
    hide more leave of them."""
    resolve = _merge_and_drop_contained if conflict_resolution == MERGE else _cut_overlaps
    findings = _unite_overlapping_findings_of_type(findings)
    hidden = {f.entity: _count_hidden_characters(operators.get(f.entity) or operators[DEFAULT]) for f in findings}
    layers = defaultdict[float, list[Finding]](list)
    for finding in findings:
        layers[hidden[finding.entity]].append(finding)
    if len(layers) < 2:
        return resolve(findings)
    resolved = {key: resolve(layer) for key, layer in layers.items()}
    order = sorted((finding for layer in resolved.values() for finding in layer), key=lambda f: f[:2])
    pieces = _resolve_by_priority(order, [(-hidden[finding.entity], -index) for index, finding in enumerate(order)])
    shown = [piece for piece in pieces if hidden[piece.entity] < math.inf]
    return _merge_and_drop_contained([*resolved.get(math.inf, ()), *shown])  # without empty findings inside of others


def _unite_overlapping_findings_of_type(findings: Sequence[Finding]) -> list[Finding]:
    """Return overlapping findings of one type as one, in the order of the last of each."""
    runs: dict[str, list[tuple[int, Finding]]] = {}
    for index, finding in enumerate(sorted(findings, key=lambda f: f[:2])):
        run = runs.setdefault(finding.entity, [])
        if run and min(finding.end, run[-1][1].end) > finding.start:
            last = run[-1][1]
            score = max(last.score or 0.0, finding.score or 0.0)
            run[-1] = index, last._replace(end=max(last.end, finding.end), score=score)
        else:
            run.append((index, finding))
    united = [row for run in runs.values() for row in run]
    return [finding for _, finding in sorted(united, key=lambda row: row[0])]


def _merge_and_drop_contained(findings: Sequence[Finding]) -> list[Finding]:
    """Unite findings of one type and drop those inside another; of equal places the highest score stays, then the
    last."""
    order = sorted(
        enumerate(_unite_overlapping_findings_of_type(findings)),
        key=lambda row: (row[1].start, -row[1].end, -(row[1].score or 0.0), -row[0]),
    )
    merged: list[Finding] = []
    reach = -1
    for _, finding in order:
        if finding.end > reach:
            merged.append(finding)
            reach = finding.end
    return merged


def _cut_overlaps(findings: Sequence[Finding]) -> list[Finding]:
    """Remove overlaps: of two, the lower score (of equals the later one) keeps what the other leaves of it."""
    order = _merge_and_drop_contained(findings)
    return _resolve_by_priority(order, [(-(finding.score or 0.0), index) for index, finding in enumerate(order)])


def _resolve_by_priority(sorted_findings: Sequence[Finding], priorities: Sequence[tuple[float, int]]) -> list[Finding]:
    """Remove overlaps of findings sorted by their starts: each place goes to the finding with the least priority."""
    borders = sorted({border for finding in sorted_findings for border in finding[:2]})
    pieces: list[Finding] = []
    active: list[tuple[tuple[float, int], int]] = []
    next_index, last = 0, -1
    for start, end in pairwise(borders):
        while next_index < len(sorted_findings) and sorted_findings[next_index].start == start:
            heappush(active, (priorities[next_index], next_index))
            next_index += 1
        while active and sorted_findings[active[0][1]].end <= start:
            heappop(active)
        if not active:
            continue
        if active[0][1] == last:
            pieces[-1] = pieces[-1]._replace(end=end)
        else:
            last = active[0][1]
            pieces.append(sorted_findings[last]._replace(start=start, end=end))
    return pieces


def _join_neighbours(text: str, findings: Sequence[Finding]) -> list[Finding]:
    """Join neighbours of one type with nothing but spaces between them."""
    joined: list[Finding] = []
    for finding in findings:
        before = joined[-1] if joined else None
        is_next = before and before.entity == finding.entity and before.end < finding.start
        if before and is_next and not text[before.end : finding.start].strip(" "):
            joined[-1] = finding._replace(start=before.start)
        else:
            joined.append(finding)
    return joined


def _apply_operators(
    text: str,
    findings: Sequence[Finding],
    operators: Operators,
    functions: Mapping[str, Replace],
) -> tuple[str, list[Item]]:
    """Replace findings in reading order; return the text and the replacements, last first."""
    pieces: list[str] = []
    items: list[Item] = []
    position = size = 0
    for index, finding in enumerate(findings):
        operator = operators.get(finding.entity) or operators.get(DEFAULT)
        if operator is None:
            raise _make_422_error("Invalid input, no deanonymizer for a result's entity_type and no DEFAULT")
        name = operator.type or ""
        if name not in functions:
            raise _make_422_error(f"Invalid operator class '{name[:64]}'.")
        following = findings[index + 1].start if index + 1 < len(findings) else len(text)
        end = min(finding.end, following)
        # Where two overlap, the later one has what both cover; the earlier one's type is still that of all of it.
        original = text[finding.start : end if name in _REVEALING else finding.end]
        replacement = functions[name](original, finding.entity, operator)
        before = text[position : finding.start]
        start = size + len(before)
        position, size = max(position, end), start + len(replacement)
        item = {"start": start, "end": size, "entity_type": finding.entity, "text": replacement}
        items.append({**item, "operator": name, "score": finding.score})
        pieces += (before, replacement)
        check_output_size(size)
    pieces.append(text[position:])
    return "".join(pieces), items[::-1]
