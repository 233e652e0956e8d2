"""Rewriters held out: written after the others, and used for nothing but measuring.

Whoever improves restoring looks at the other ones only, so that these tell whether it holds for what nobody saw.
"""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random
from urllib.parse import quote

from benchmarks.rewriting.first import initials
from benchmarks.rewriting.pieces import (
    TAG,
    Piece,
    Rewrite,
    change_each_mention,
    change_some_mentions,
    get_family_name,
    is_name,
    list_given_names,
    surround_mentions,
)


def marked_inside(piece: Piece, rng: Random, pieces: list[Piece]) -> Piece:
    """``[PERSON_1]`` as ``[**PERSON_1**]``."""
    found = TAG.fullmatch(piece.text)
    if not found:
        return piece
    a, b = f"{found[1]}**", f"**{found[3]}"
    kept = frozenset(f"{x}{o}{y}" for o in piece.accepted for x, y in ((a, b), ("**", "**")))
    return replace(piece, text=f"{a}{found[2]}{b}", accepted=piece.accepted | kept)


def fullwidth(piece: Piece, rng: Random, pieces: list[Piece]) -> Piece:
    """``[PERSON_1]`` in brackets of East Asian texts."""
    found = TAG.fullmatch(piece.text)
    if not found:
        return piece
    a, b = rng.choice(("［］", "【】", "〈〉"))
    return replace(piece, text=a + found[2] + b, accepted=piece.accepted | {a + o + b for o in piece.accepted})


def in_words(pieces: list[Piece], rng: Random) -> list[Piece]:
    """``[PERSON_1]`` as ``Person 1``; not where letters or brackets of the text touch it."""
    out: list[Piece] = []
    for i, p in enumerate(pieces):
        found = TAG.fullmatch(p.text) if p.edit >= 0 else None
        before, after = "".join(q.text for q in pieces[:i])[-1:], pieces[i + 1].text[:1] if i + 1 < len(pieces) else ""
        if found and not re.search(r"[\w\[\](){}<>]", before + after):
            label, joint, code = found[2].replace('"', "").replace(" ", "_").rpartition("_")
            p = replace(p, text=f"{label.replace('_', ' ').capitalize()} {code}") if joint else p
        out.append(p)
    return out


def hashtag(piece: Piece, rng: Random, pieces: list[Piece]) -> Piece:
    """``Anna Hale`` as ``#AnnaHale``."""
    if not is_name(piece) or "," in piece.text or rng.random() < 0.5:
        return piece
    glued = {re.sub(r"\W", "", a) for a in piece.accepted}
    forms = {f"#{a}" for a in (*piece.accepted, *glued)}
    return replace(piece, text="#" + re.sub(r"\W", "", piece.text), accepted=piece.accepted | glued | forms)


def undotted(piece: Piece, rng: Random, pieces: list[Piece]) -> Piece:
    """``Anna Hale`` as ``A Hale``."""
    short = initials(piece, rng, pieces)
    if short is piece:
        return piece
    plain = {a.replace(". ", " ") for a in short.accepted}
    return replace(short, text=short.text.replace(". ", " "), accepted=short.accepted | plain)


def letters_only(piece: Piece, rng: Random, pieces: list[Piece]) -> Piece:
    """``Anna Hale`` as ``A.H.``, where nobody else of the text has these."""

    def letters(name: str) -> str:
        return "".join(w[0] for w in (*list_given_names(name), get_family_name(name)))

    people = {p.entity: letters(p.text) for p in pieces if is_name(p) and list_given_names(p.text)}
    mine = people.get(piece.entity, "")
    if (
        not is_name(piece)
        or not list_given_names(piece.text)
        or list(people.values()).count(mine) > 1
        or "," in piece.text
    ):
        return piece
    forms = {joint.join((*letters(a), "")) for a in piece.accepted for joint in (".", ". ", "")}
    return replace(
        piece, text=".".join((*letters(piece.text), "")), accepted=piece.accepted | {f.strip() for f in forms}
    )


def other_dashes(text: str) -> str:
    """Hyphens that do not break, as models like to write them."""
    return re.sub(r"(?<=\w)-(?=\w)", "\u2011", text)


def straight(text: str) -> str:
    return text.translate(str.maketrans("‘’“”„–—…", '\'\'"""---'))


def in_addresses(pieces: list[Piece], rng: Random) -> list[Piece]:
    """Some mentions in the query of a URL, with percent signs."""
    out: list[Piece] = []
    for p in pieces:
        if p.edit >= 0 and rng.random() < 0.3 and out and out[-1].text[-1:] == " ":
            kept = frozenset(quote(a) for a in p.accepted)
            out += [Piece("https://example.com/?q="), replace(p, text=quote(p.text), accepted=p.accepted | kept)]
        else:
            out.append(p)
    return out


HELD_OUT: dict[str, Rewrite] = {
    "bold in brackets": change_some_mentions(marked_inside),
    "fullwidth brackets": change_some_mentions(fullwidth),
    "tags in words": in_words,
    "hashtags": change_some_mentions(hashtag),
    "initials, no dots": change_some_mentions(undotted),
    "initials alone": change_some_mentions(letters_only),
    "other dashes": change_each_mention(other_dashes, other_dashes),
    "straight quotes": change_each_mention(straight, straight),
    "in addresses": in_addresses,
    "guillemets": surround_mentions("«", "»"),
    "HTML marks": surround_mentions("<b>", "</b>"),
}
