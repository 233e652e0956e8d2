"""A small invented corpus about invented people, before and after, for tests of whole evaluations."""

from __future__ import annotations

import json
from pathlib import Path

PEOPLE = {
    "Orla Quillmark": ("a cellist from Varnholm", "ginger hair", "plays the cello in a red barn"),
    "Ivo Tamsinol": ("a glazier of Brodale", "a limp", "repairs church windows with green glass"),
    "Nessa Fernwick": ("a beekeeper near Kestrelon", "twin daughters", "sells heather honey at fairs"),
}
_SAID = (
    "{name} is {what}. Everybody remembers {sign}, and in summer {name} {does}.",
    "When I met {name}, {what}, it was {sign} that I saw first. Most days {name} {does}.",
    "They say that {name} has {sign}. As {what}, {name} often {does}, which pleases the neighbours.",
    "I liked {name} very much. {sign} was all that people spoke of, but {name} {does}, as {what} must.",
)


def records() -> list[dict]:
    """Twelve records: id, text, safe (tags for names), worse (names kept), and meta with subject, mood, fame."""
    out = []
    for number, (name, (what, sign, does)) in enumerate(PEOPLE.items()):
        for turn, form in enumerate(_SAID):
            text = form.format(name=name, what=what, sign=sign, does=does)
            first, last = name.split()
            safe = text.replace(name, "PERSON_FIRSTNAME_1 PERSON_LASTNAME_1")
            out.append(
                {
                    "id": f"d{number}{turn}",
                    "text": text,
                    "safe": safe,
                    "blank": "It was said." if turn else "Nothing was said.",
                    "meta": {
                        "subject": name,
                        "mood": ("glad", "sad")[turn % 2],
                        "fame": ("known", "unknown")[turn // 2],
                    },
                    "first": first,
                    "last": last,
                }
            )
    return out


def write(path: Path, rows: list[dict] | None = None) -> Path:
    """The records as a JSONL file."""
    rows = records() if rows is None else rows
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path
