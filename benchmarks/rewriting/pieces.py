"""Deterministic stand-ins for what a language model does to an anonymised text, so that restoring can be measured.

A text is a row of pieces: what lies outside of mentions, and the mentions (the plan's replacements). A rewriter turns
pieces into pieces and knows for each mention what may stand there after restoring; everything outside has to stay
exactly as the rewriter left it. Randomness is seeded by the caller.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random

from allonym.plan import Plan

OPEN, CLOSE = "[(<{⟦«", "])>}⟧»"
TAG = re.compile(rf"([{re.escape(OPEN)}]+)(.*?)([{re.escape(CLOSE)}]+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the anonymised text.

    Attributes:
        text: as it stands now.
        edit: index of the plan's edit that it is the replacement of; -1: outside.
        entity: the number of the entity in its document.
        label: topmost label of the mention.
        made: the replacement as the plan made it.
        own: what stood there in the original; empty outside.
        accepted: what may stand there after restoring; outside, what may stand there beside ``text``.
        loose: patterns of further forms that will do, e.g. inflected ones.
    """

    text: str
    edit: int = -1
    entity: int = 0
    label: str = ""
    made: str = ""
    own: str = ""
    accepted: frozenset[str] = frozenset()
    loose: tuple[str, ...] = ()


_TAIL = re.compile(r"\s*(?:['’ʼ][sS]|['’ʼ])?[\s.,;:!?]*")


def split_kept_around(replacement: str, original: str) -> tuple[str, str, str, str]:
    """Outer space, replacement, original and tail: what the plan kept around both belongs to neither.

    A space that only the replacement has comes back as ``lead`` or in ``tail`` marked by a leading NUL.
    """
    for size in range(min(len(replacement), len(original)) - 1, 0, -1):
        tail = replacement[-size:]
        if original.endswith(tail) and _TAIL.fullmatch(tail):
            replacement, original = replacement[:-size], original[:-size]
            break
    else:
        tail = ""
        if replacement.rstrip() != replacement and not original[-1:].isspace():
            tail = "\0" + replacement[len(replacement.rstrip()) :]
            replacement = replacement.rstrip()
    lead = replacement[: len(replacement) - len(replacement.lstrip())]
    replacement = replacement.lstrip()
    if lead and original.startswith(lead):
        original = original[len(lead) :]
    elif lead:
        lead = "\0" + lead
    return lead, replacement, original, tail


def split_pieces(text: str, plan: Plan, family: Callable[[str], str]) -> list[Piece]:
    """The anonymised text of a plan that holds its originals, in pieces; ``family`` gives a label's topmost one."""
    out: list[Piece] = []
    surfaces: dict[int, set[str]] = {}
    at = 0
    for i, edit in enumerate(plan.edits):
        out.append(Piece(text[at : edit.start]))
        at = edit.end
        original = edit.original or ""
        if edit.entity == 0 or not edit.replacement.strip():
            out.append(Piece(edit.replacement, accepted=frozenset({original}) if edit.entity == 0 else frozenset()))
            continue
        lead, core, own, tail = split_kept_around(edit.replacement, original)
        if core == own:  # a relative date stays as it is
            out.append(Piece(edit.replacement, accepted=frozenset({edit.replacement})))
            continue
        out.append(_make_outer_piece(lead))
        surfaces.setdefault(edit.entity, set()).add(own)
        out.append(Piece(core, i, edit.entity, family(edit.label), core, own))
        out.append(_make_outer_piece(tail))
    out.append(Piece(text[at:]))
    return [replace(p, accepted=frozenset(surfaces[p.entity])) if p.edit >= 0 else p for p in out if p.text]


def _make_outer_piece(text: str) -> Piece:
    return Piece(text[1:], accepted=frozenset({""})) if text[:1] == "\0" else Piece(text)


def join_pieces(pieces: Iterable[Piece]) -> str:
    return "".join(p.text for p in pieces)


Rewrite = Callable[[list[Piece], Random], list[Piece]]
Change = Callable[[str], str]


def change_each_mention(mention: Change | None, outside: Change | None = None) -> Rewrite:
    """The same change to every mention, whose original may come back changed alike, and one to what lies outside."""

    def rewrite(pieces: list[Piece], rng: Random) -> list[Piece]:
        return [change_piece(p, mention if p.edit >= 0 else outside) for p in pieces]

    return rewrite


def change_piece(piece: Piece, change: Change | None) -> Piece:
    if change is None:
        return piece
    return replace(piece, text=change(piece.text), accepted=piece.accepted | {change(a) for a in piece.accepted})


def change_some_mentions(change: Callable[[Piece, Random, list[Piece]], Piece]) -> Rewrite:
    """A change of single mentions, which may look at the whole text."""

    def rewrite(pieces: list[Piece], rng: Random) -> list[Piece]:
        return [change(p, rng, pieces) if p.edit >= 0 else p for p in pieces]

    return rewrite


def surround_mentions(before: str, after: str, labels: Sequence[str] = ()) -> Rewrite:
    """Text put right before and after mentions; it lies outside."""

    def rewrite(pieces: list[Piece], rng: Random) -> list[Piece]:
        out: list[Piece] = []
        for p in pieces:
            here = p.edit >= 0 and (not labels or p.label in labels)
            out += [Piece(before), p, Piece(after)] if here else [p]
        return [p for p in out if p.text]

    return rewrite


# What a name is.


def is_name(piece: Piece) -> bool:
    """Whether the mention is a person's name in words, no tag, and its family name is one: no initial, no number."""
    if piece.label != "PERSON" or not re.fullmatch(r"[^\W\d_][^\d_\[\]<>{}()@/]*", piece.text):
        return False
    word = get_family_name(piece.text)
    return len(word) > 2 and word.isalpha() and not re.fullmatch(r"[IVX]+", word)


def get_family_name(name: str) -> str:
    """The last word of a name, or what stands before the comma."""
    head, comma, _ = name.partition(",")
    words = (head if comma else name).split()
    return words[-1] if words else name


def list_given_names(name: str) -> list[str]:
    head, comma, rest = name.partition(",")
    return rest.split() if comma else head.split()[:-1]


def is_only_bearer(piece: Piece, pieces: Sequence[Piece]) -> bool:
    """Whether no other entity of the text bears the family name, so that the name alone tells who is meant."""
    word = get_family_name(piece.text).casefold()
    return not any(p.entity != piece.entity and word in p.text.casefold() for p in pieces if p.edit >= 0)


def rename_piece(piece: Piece, form: Change) -> Piece:
    """The mention and what is accepted in another form of name."""
    return replace(piece, text=form(piece.text), accepted=piece.accepted | {form(a) for a in piece.accepted})
