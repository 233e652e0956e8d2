"""What stands where something was removed: our tags, those of Textwash and of P3, and which part of speech it was.

Recognised are labels in square or pointed brackets (``[PERSON_1]``, ``[firstname1]``, ``<DATE 2>``,
``[Company Name]``), bare labels with a number (``PERSON_FIRSTNAME_1``, with letters that stick to it), the bare words
``PRONOUN``, ``TITLE`` and ``MR/MS`` of Textwash, and what is only covered (a run of X, asterisks or blocks).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from allonym.labels import SCHEMES, TAXONOMY

__all__ = ["PARTS_OF_LABELS", "Placeholder", "placeholders", "without"]

PARTS_OF_LABELS: Mapping[str, str] = {
    "PRONOUN": "PRON",
    "NUMERIC": "NUM",
    "AGE": "NUM",
    "DATE_TIME": "NUM",
    "PHONE_NUMBER": "NUM",
    "ORIGIN": "ADJ",
    "OCCUPATION": "NOUN",
    "EMPLOYMENT_STATUS": "NOUN",
    "FAMILY_RELATION": "NOUN",
    "GENDER": "NOUN",
    "MARITAL_STATUS": "ADJ",
    "SEXUAL_ORIENTATION": "ADJ",
    "MEDICAL_TERM": "NOUN",
    "OTHER_IDENTIFYING_ATTRIBUTE": "NOUN",
    "TERM": "NOUN",
    "EMAIL_ADDRESS": "X",
    "ONLINE_ID": "X",
}
"""Part of speech (Universal Dependencies) of what a label stands for, and those below it; others stand for PROPN."""

_SPOKEN: Mapping[str, str] = {
    "FIRSTNAME": "PERSON_FIRSTNAME",
    "LASTNAME": "PERSON_LASTNAME",
    "SURNAME": "PERSON_LASTNAME",
    "NAME": "PERSON",
    "ORGANISATION": "ORGANIZATION",
    "COMPANY NAME": "COMPANY",
    "NUMBER": "NUMERIC",
    "OTHERATTRIBUTE": "OTHER_IDENTIFYING_ATTRIBUTE",
    "EMAIL": "EMAIL_ADDRESS",
    "E-MAIL": "EMAIL_ADDRESS",
    "PHONE": "PHONE_NUMBER",
    "ADDRESS": "STREET_ADDRESS",
    "MR_MS": "TITLE",
    "MR/MS": "TITLE",
    "REDACTED": "",
    "REMOVED": "",
    "DELETED": "",
    "MASKED": "",
}
"""Names in tags that are in no scheme."""

_LABEL = r"[A-Za-z][A-Za-z/_-]*(?: [A-Za-z/_-]+){0,3}"
_FOUND = re.compile(
    rf"(?P<open>[\[<])(?P<inside>{_LABEL})(?:[ _#:-]?(?P<id>\d+|[0-9A-F]{{6,}}))?[\]>]"
    r"|(?<![A-Za-z0-9])(?P<bare>[A-Z][A-Z]+(?:_[A-Z]+)*)_(?P<number>\d+)[A-Za-z]*"
    r"|(?<![A-Za-z0-9_])(?P<word>PRONOUN|TITLE|MR/MS)(?![A-Za-z0-9_])"
    r"|(?P<cover>\*{3,}|[\u2588\u25a0]+|(?<![A-Za-z])X{3,}(?![A-Za-z]))"
)
_POSSESSIVE = re.compile(r"['’]?s\b")


@dataclass(frozen=True, slots=True)
class Placeholder:
    """Where something was removed: half-open offsets, the label (empty where it tells none), and its part of speech."""

    start: int
    end: int
    label: str
    part: str


def placeholders(text: str) -> list[Placeholder]:
    """The placeholders of a text, in reading order and disjoint.

    Brackets hold a placeholder where the taxonomy or one of its schemes knows the label, or where it is in capitals and
    numbered: ``[laughter]`` is none.
    """
    out = []
    for found in _FOUND.finditer(text):
        if found["cover"]:
            out.append(Placeholder(*found.span(), "", "X"))
            continue
        named = found["inside"] or found["bare"] or found["word"]
        label = _label(named)
        if label is None:
            numbered = found["bare"] or (found["id"] and named.isupper())
            if not numbered:
                continue
            label = ""
        out.append(Placeholder(*found.span(), label, _part(label)))
    return out


def without(text: str) -> str:
    """The text with a blank in place of each placeholder, and of a possessive behind it."""
    out, at = [], 0
    for one in placeholders(text):
        out.append(text[at : one.start])
        at = one.end
        if found := _POSSESSIVE.match(text, at):
            at = found.end()
    return " ".join([*out, text[at:]])


@cache
def _part(label: str) -> str:
    return next((PARTS_OF_LABELS[n] for n in TAXONOMY.lineage(label) if n in PARTS_OF_LABELS), "PROPN")


@cache
def _label(named: str) -> str | None:
    """Our label for a name in a tag: empty where the tag tells none, None where nobody knows it."""
    name = named.strip(" _").upper()
    if name in _SPOKEN:
        return _SPOKEN[name]
    for form in (name, name.replace(" ", "_").replace("-", "_")):
        if form in TAXONOMY:
            return form
        if form in _SPOKEN:
            return _SPOKEN[form]
        for scheme in SCHEMES:
            if labels := TAXONOMY.from_scheme(form, scheme):
                return labels[0]
    return None
