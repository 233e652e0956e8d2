"""Parts of names that tags tell: ``<PERSON 1.given>``, in the ways in which they are rewritten."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from allonym.restoration.forms import CLOSING, Form, split_person
from allonym.text.fold import fold
from allonym.text.names import FAMILY_PART, GIVEN_PART, SHORT_PART, TAG_PARTS

_WORDS = {
    GIVEN_PART: "given, givenname, given name, first, firstname, first name, forename, christian name, vorname, "
    "prenom, nombre, nome, imie, voornaam, fornamn, fornavn",
    FAMILY_PART: "family, familyname, family name, last, lastname, last name, surname, nachname, familienname, nom, "
    "nom de famille, apellido, cognome, sobrenome, apelido, nazwisko, achternaam, efternamn, efternavn, etternavn",
    SHORT_PART: "short, shortname, short name, kurz, court, corto, breve, curto, kort",
    "": "full, fullname, full name, whole, name",
}
_PARTS: Mapping[str, str] = {word: part for part, words in _WORDS.items() for word in words.split(", ")}
_SUFFIX = re.compile(
    r"(?:[ \u00a0]{0,2}[.:,_/|-][ \u00a0]{0,2}|[ \u00a0]{1,2}(?:(?:part|form|type)[ ]?=[ ]?)?)"
    r"[\"'“”]?([^\W\d_]{3,12}(?:[ _-][^\W\d_]{2,7}){0,2})[\"'“”]?(?![^\W_])"
)
_WRITTEN_PART = re.compile(rf"\.({'|'.join(TAG_PARTS)})(?![^\W_])")
_CLOSED = re.compile(r"[\"'”]?[ \u00a0]{0,2}/?[>\])}⟧⟩»›】」』]")


class TagPart(NamedTuple):
    """What a tag says of the form of its name.

    Attributes:
        name: ``given``, ``family`` or ``short``; empty: the whole name.
        end: offset of the text after it.
    """

    name: str
    end: int


def read_tag_part(form: Form, text: str, end: int) -> TagPart | None:
    """Return the part that stands in a text behind the number of a tag, which ends at ``end``; None without one.

    A tag in brackets has its part inside them. Behind one without brackets it must be as we write it: ``PERSON_1.name``
    may be code.
    """
    if not any(sign in CLOSING for sign in form.tail):
        suffix = _WRITTEN_PART.match(text, end)
        return TagPart(suffix[1], suffix.end()) if suffix else None
    suffix = _SUFFIX.match(text, end)
    if suffix is None or _CLOSED.match(text, suffix.end()) is None:
        return None
    name = _PARTS.get(fold(suffix[1]).replace("_", " ").replace("-", " "))
    return None if name is None else TagPart(name, suffix.end())


def write_tag_part(tag: Form, part: str) -> str:
    """Return the tag of a part, such as ``<PERSON 1.given>`` of ``<PERSON 1>``."""
    return f"{tag.text[: len(tag.text) - len(tag.tail)]}.{part}{tag.tail}" if part else tag.text


def derive_part(name: str, part: str) -> str:
    """Return a part of a full name as it is written; the whole name where it has no such part."""
    given_names, family = split_person(name)
    words = {GIVEN_PART: given_names[:1], FAMILY_PART: family}.get(part)
    return " ".join(words) if words and given_names else name
