"""Bring originals back: exactly with the plan, or from the encrypted mentions alone with the key."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from allonym.errors import RestoreError, UsageError
from allonym.plan import Edit, Plan, invert
from allonym.replace.keyed import TOKEN, require_key, unseal

_NO_TOKENS = frozenset({"suppress", "mask", "generalise", "article"})
"""Operators whose replacements may stand for anything, so that a rewritten text does not tell what stood there."""


@dataclass(frozen=True, slots=True)
class Restored:
    """A text with originals in it again.

    Attributes:
        text: hidden from ``repr``.
        restored: how many replacements were undone.
        unknown: how many were seen, or are missing, and could not be undone.
        notes: why not; hold no text of the document.
    """

    text: str = field(repr=False)
    restored: int = 0
    unknown: int = 0
    notes: tuple[str, ...] = ()


def restore(
    text: str, *, plan: Plan | None = None, vault: object | None = None, key: bytes | str | None = None
) -> Restored:
    """Undo what a plan did, or decrypt what a key encrypted.

    With the plan of exactly this text, the result is exactly the original. With the plan of a text that somebody has
    rewritten since, each tag, fingerprint, token and moved date is looked for. Where it stood for several surfaces of
    one entity ("Ms Connor", "Connor"), they come back in order if all are still there, else the fullest. Where it
    stood for several entities, it is left and counted as unknown, as is what was removed, masked or generalised.

    With the key, every encrypted mention in the text is decrypted, one layer deep, wherever it stands. One that does
    not fit the key, or was changed, is left and counted as unknown.

    Args:
        text: the anonymised text, rewritten or not.
        plan: the plan that made it, with its originals.
        vault: not available in this version.
        key: the secret that was given when the text was anonymised. With a plan, it serves what the plan lacks.

    Raises:
        UsageError: neither a plan nor a key was given, or the key is too short.
        RestoreError: the plan holds no originals and there is no key.
    """
    if vault is not None:
        raise UsageError("vaults come with a later version; restore with plan=... or key=...")
    if plan is None and key is None:
        raise UsageError("restore needs plan=... (what anonymize returned) or key=... (what it encrypted with)")
    if key is not None:
        require_key(key, "encrypt")
    if plan is not None:
        if all(e.original is not None for e in plan.edits):
            original = invert(text, plan)
            if original is not None:
                return Restored(original, sum(e.operator != "article@1" for e in plan.edits))
            return _rewritten(text, plan, key)
        if key is None:
            raise RestoreError(
                "this plan holds no originals (it was written without them) and so cannot restore; "
                "save it with originals=True, or encrypt and restore with the key"
            )
    assert key is not None
    return _decrypted(text, key)


def _decrypted(text: str, key: bytes | str) -> Restored:
    counts = Counter[bool]()

    def back(match: re.Match[str]) -> str:
        plain = unseal(match, key)
        counts[plain is not None] += 1
        return match[0] if plain is None else plain

    out = TOKEN.sub(back, text)
    notes = ("encrypted mentions that this key does not open or that were changed",) if counts[False] else ()
    return Restored(out, counts[True], counts[False], notes)


def _rewritten(text: str, plan: Plan, key: bytes | str | None) -> Restored:
    tokens: dict[str, list[tuple[str, Edit]]] = {}
    lost = 0
    for edit in plan.edits:
        name = edit.operator.partition("@")[0]
        if name in _NO_TOKENS or not edit.replacement.strip():
            lost += name != "article"
            continue
        assert edit.original is not None
        token, original = _bare(edit.replacement, edit.original)
        tokens.setdefault(token, []).append((original, edit))
    restored = 0
    unknown = lost
    notes = []
    if lost:
        notes.append("passages that were removed, masked or generalised cannot be brought back into a changed text")
    if not tokens:
        return Restored(text, 0, unknown, tuple(notes))
    longest_first = sorted(tokens, key=lambda t: (-len(t), t))
    matcher = re.compile("|".join(_guarded(t) for t in longest_first))
    present = Counter(m[0] for m in matcher.finditer(text))
    surfaces: dict[str, list[str] | None] = {}
    for token, uses in tokens.items():
        originals = [original for original, _ in uses]
        if len(set(originals)) > 1 and len({(e.entity, e.entity or e.start) for _, e in uses}) > 1:
            surfaces[token] = None
            if present[token]:
                notes.append(f"a replacement for {uses[0][1].label} stands for several entities and was left")
        elif len(set(originals)) > 1 and present[token] != len(originals):
            surfaces[token] = [max(originals, key=len)] * present[token]
            if present[token]:
                notes.append(f"one {uses[0][1].label} came back under its fullest name throughout")
        else:
            surfaces[token] = originals if present[token] == len(originals) else originals[:1] * present[token]
        if not present[token]:
            unknown += 1
            notes.append(f"a replacement for {uses[0][1].label} is no longer in the text")
    used = Counter[str]()

    def back(match: re.Match[str]) -> str:
        nonlocal restored, unknown
        found = surfaces[match[0]]
        if found is None:
            unknown += 1
            return match[0]
        restored += 1
        used[match[0]] += 1
        return found[used[match[0]] - 1]

    if key is None:
        return Restored(matcher.sub(back, text), restored, unknown, tuple(dict.fromkeys(notes)))
    # Tokens that the plan does not know are decrypted between those that it does, never inside what came back.
    pieces: list[str] = []
    at = 0
    for match in matcher.finditer(text):
        between = _decrypted(text[at : match.start()], key)
        restored += between.restored
        unknown += between.unknown
        notes += between.notes
        pieces += (between.text, back(match))
        at = match.end()
    rest = _decrypted(text[at:], key)
    notes += rest.notes
    pieces.append(rest.text)
    return Restored("".join(pieces), restored + rest.restored, unknown + rest.unknown, tuple(dict.fromkeys(notes)))


def _bare(replacement: str, original: str) -> tuple[str, str]:
    """Both without the possessive, space or full stop that the plan kept around the replacement."""
    a = 0
    most = min(len(replacement), len(original)) - 1
    while a < most and replacement[a] == original[a] and original[a].isspace():
        a += 1
    ends = 0
    while ends < most - a and replacement[-1 - ends] == original[-1 - ends] and original[-1 - ends] in _OUTER:
        ends += 1
    kept = replacement[len(replacement) - ends :]
    for end in range(ends, 0, -1):
        tail = kept[-end:]
        if tail.strip(" \n\r\t.,;:!?") in ("", "'s", "’s", "'S", "’S", "'", "’"):
            return replacement[a : len(replacement) - end], original[a : len(original) - end]
    # A space that was put between two words belongs to neither.
    return replacement[a:].strip(" ") or replacement[a:], original[a:]


_OUTER = " \n\r\t.,;:!?'’sS"


def _guarded(token: str) -> str:
    """A pattern for the token that does not match within a longer word, number or row of signs."""
    first, last = token[0], token[-1]
    before = after = ""
    if first.isalnum():
        before = "(?<![A-Za-z0-9])(?<![A-Za-z0-9]_)"
    elif first not in "[({<":
        before = f"(?<!{re.escape(first)})"
    if last.isalnum():
        after = "(?![A-Za-z0-9])"
    elif last not in "])}>":
        after = f"(?!{re.escape(last)})"
    return before + re.escape(token) + after
