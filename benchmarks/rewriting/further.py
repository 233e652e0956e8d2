"""Further rewriters, the first set that was held out: measured once unseen, and open since."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from dataclasses import replace
from random import Random

from benchmarks.rewriting.pieces import (
    TAG,
    Piece,
    Rewrite,
    change_each_mention,
    change_some_mentions,
    is_name,
    list_given_names,
    rename_piece,
    surround_mentions,
)


def other_brackets(piece: Piece, rng: Random, pieces: list[Piece]) -> Piece:
    """``[PERSON_1]`` as ``{PERSON_1}``, ``(PERSON_1)`` or ``<PERSON_1>``."""
    found = TAG.fullmatch(piece.text)
    if not found:
        return piece
    pairs = [p for p in ("[]", "()", "{}", "<>") if p[0] != found[1][0]]
    a, b = tuple(rng.choice(pairs))
    kept = frozenset(a + o + b for o in piece.accepted)  # other brackets may be the text's own
    return replace(piece, text=a + found[2] + b, accepted=piece.accepted | kept)


def other_joint(piece: Piece, rng: Random, pieces: list[Piece]) -> Piece:
    """``[PERSON_1]`` as ``[PERSON-1]``, ``[PERSON1]`` or ``[PERSON #1]``."""
    if not TAG.fullmatch(piece.text):
        return piece
    return replace(piece, text=re.sub(r"_(?=\d+\W*$)", rng.choice(("-", "", " #", ":")), piece.text))


def soft_hyphens(piece: Piece, rng: Random, pieces: list[Piece]) -> Piece:
    words = [m.span() for m in re.finditer(r"[^\W\d_]{5,}", piece.text)]
    if not words:
        return piece
    a, b = rng.choice(words)
    i = rng.randrange(a + 2, b - 1)
    return replace(piece, text=f"{piece.text[:i]}\u00ad{piece.text[i:]}")


def bare_letters(text: str) -> str:
    """Without diacritics."""
    text = text.translate(str.maketrans("łŁøØđĐ", "lLoOdD"))
    return "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))


def decomposed(text: str) -> str:
    return unicodedata.normalize("NFD", text)


def json_ascii(text: str) -> str:
    return json.dumps(text)[1:-1]


def entities(text: str) -> str:
    """Numeric character references for signs, as some XML writers do."""
    return re.sub(r"[<>&\"'\[\]]", lambda m: f"&#{ord(m[0])};", text)


def referenced(pieces: list[Piece], rng: Random) -> list[Piece]:
    """References throughout; an original may come back with named ones, or with other numbers."""
    out = change_each_mention(entities, entities)(pieces, rng)
    return [replace(p, accepted=p.accepted | {html.escape(a) for a in p.accepted}) if p.edit >= 0 else p for p in out]


def csv_field(text: str) -> str:
    return text.replace('"', '""')


def mail_quote(pieces: list[Piece], rng: Random) -> list[Piece]:
    """A quoted reply: lines of at most 60 characters that begin with ``> ``, broken within mentions too."""
    out, column = [Piece("> ")], 0
    for p in pieces:
        text = ""
        for char in p.text:
            column += 1
            if char == "\n" or (char == " " and column > 60):
                char, column = "\n> ", 0
            text += char
        broken = {re.sub(" ", "\n> ", a, count=1) for a in p.accepted} if p.edit >= 0 else set()
        out.append(replace(p, text=text, accepted=p.accepted | broken))
    return out


def shouted_family(piece: Piece, rng: Random, pieces: list[Piece]) -> Piece:
    """``Anna Hale`` as ``Anna HALE``."""
    if not is_name(piece) or "," in piece.text:
        return piece

    def form(name: str) -> str:
        head, space, last = name.rpartition(" ")
        return head + space + last.upper()

    return replace(piece, text=form(piece.text), accepted=piece.accepted | {form(a) for a in piece.accepted})


def first_name(piece: Piece, rng: Random, pieces: list[Piece]) -> Piece:
    """``Anna Hale`` as ``Anna``, where nobody else of the text bears that name."""
    names = list_given_names(piece.text)
    if not is_name(piece) or not names or len(names[0].rstrip(".")) < 2:
        return piece
    if any(p.entity != piece.entity and names[0].casefold() in p.text.casefold() for p in pieces if p.edit >= 0):
        return piece
    return rename_piece(piece, lambda name: (list_given_names(name) or [name])[0])


def linked(pieces: list[Piece], rng: Random) -> list[Piece]:
    """A Markdown link on each mention."""
    out: list[Piece] = []
    n = 0
    for p in pieces:
        n += p.edit >= 0
        out += [Piece("["), p, Piece(f"](#note{n})")] if p.edit >= 0 else [p]
    return out


def footnoted(pieces: list[Piece], rng: Random) -> list[Piece]:
    out: list[Piece] = []
    n = 0
    for p in pieces:
        n += p.edit >= 0
        out += [p, Piece(f"[^{n}]")] if p.edit >= 0 else [p]
    return out


def in_both(pieces: list[Piece], rng: Random) -> list[Piece]:
    """The text, and once more all that it names."""
    mentions = [p for p in pieces if p.edit >= 0]
    tail = [q for p in mentions for q in (Piece("\n* "), p)]
    return [*pieces, Piece("\n\nNames:"), *tail, Piece("\n")]


FURTHER: dict[str, Rewrite] = {
    "other brackets": change_some_mentions(other_brackets),
    "other joint": change_some_mentions(other_joint),
    "soft hyphens": change_some_mentions(soft_hyphens),
    "no diacritics": change_each_mention(bare_letters, bare_letters),
    "decomposed": change_each_mention(decomposed, decomposed),
    "JSON in ASCII": change_each_mention(json_ascii, json_ascii),
    "numeric entities": referenced,
    "CSV field": change_each_mention(csv_field, csv_field),
    "mail quote": mail_quote,
    "family in capitals": change_some_mentions(shouted_family),
    "first name": change_some_mentions(first_name),
    "links": linked,
    "footnotes": footnoted,
    "code marks": surround_mentions("`", "`"),
    "underlined": surround_mentions("_", "_"),
    "brackets around": surround_mentions("(", ")"),
    "list of names added": in_both,
}
