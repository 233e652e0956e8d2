"""Fifty rewrites of our own, restored with the plan: translations, summaries, tables, code.

    python benchmarks/own_rewrites.py [--show]

Twenty-five rewrites of one letter, each for tags (``reversible``) and for ``pseudonyms``. In a rewrite, ``{A}`` is what
stands for Ada Brook in the output; a translation of tags writes their labels in its language. What should come back is
known exactly. A place is *exact* where the original stands, *left* where the replacement or its changed form does,
else *wrong*. Another version is measured with ``PYTHONPATH=OTHER/src``. Prints a table and, last, one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter

import allonym
from allonym.plan import locate_replacements
from allonym.policy import Policy, TermList

LETTER = """Dear Ms Oduya, Ada Brook met Tom Ellery at Ashdown Marine plc in Gdynia on 14 March 2020. Ada Brook lives in
Leeds; write to ada.brook@example.com or call +44 20 7946 0958. The contract 40218837 was signed by Tom Ellery."""
NAMES = {
    "A": ("Ada Brook", "PERSON"),
    "T": ("Tom Ellery", "PERSON"),
    "O": ("Ashdown Marine plc", "ORGANIZATION"),
    "G": ("Gdynia", "CITY"),
    "L": ("Leeds", "CITY"),
    "E": ("ada.brook@example.com", "EMAIL_ADDRESS"),
    "P": ("+44 20 7946 0958", "PHONE_NUMBER"),
}
PLAIN = [
    "{A} met {T} at {O} in {G}.",
    "Summary: {T} signed for {O}. Contact {A} ({E}, {P}).",
    "| name | place | mail |\n|---|---|---|\n| {A} | {L} | {E} |\n| {T} | {G} | |",
    "name;city\n{A};{L}\n{T};{G}\n",
    '{{"people": [{{"name": "{A}", "mail": "{E}"}}, {{"name": "{T}"}}], "employer": "{O}"}}',
    'contacts = {{\n    "{A}": "{P}",\n    "{T}": None,\n}}  # of {O}',
    "INSERT INTO people (name, city) VALUES ('{A}', '{L}'), ('{T}', '{G}');",
    "<ul><li>{A}, {L}</li><li>{T}, {G}</li></ul>",
    "- **{A}**: lives in {L}\n- **{T}**: signed in {G}\n- _{O}_: employer",
    "Hi {A},\n\n{T} asked me to write to you at {E}. Is {P} still right?\n\nRegards, {O}",
    "Q: Who met whom?\nA: {A} met {T}.\nQ: Where?\nA: In {G}, at {O}.",
    "It was {T} who signed, {A} who did not, and {O} that paid.",
    "> {A} wrote:\n> {T} is in {G}\nAnd {L}?",
    "name: {A}\nmail: {E}\nphone: {P}\ncity: {L}\n",
    "[{A}](mailto:{E}) and [{T}](https://example.org/x)",
]
TRANSLATED = {
    "de": [
        "{A} traf {T} bei {O} in {G}. Bitte schreiben Sie an {E}.",
        "Zusammenfassung: {T} hat unterschrieben; {A} wohnt in {L}.",
    ],
    "fr": [
        "{A} a rencontré {T} chez {O}, à {G}. Téléphone : {P}.",
        "En bref : {T} a signé, {A} habite {L} et son adresse est {E}.",
    ],
    "pl": ["{A} spotkała się z {T} w {O}, w mieście {G}.", "Kontakt: {A}, {E}, {P}."],
    "es": ["{A} se reunió con {T} en {O}, en {G}.", "Resumen: firmó {T}; {A} vive en {L}."],
    "it": ["{A} ha incontrato {T} presso {O} a {G}.", "In breve: ha firmato {T}; scrivere a {E}."],
}
LABELS = {
    "de": {
        "PERSON": "PERSON",
        "ORGANIZATION": "ORGANISATION",
        "LOCATION": "ORT",
        "EMAIL": "E-MAIL",
        "PHONE": "TELEFON",
    },
    "fr": {"PERSON": "PERSONNE", "ORGANIZATION": "ORGANISATION", "LOCATION": "LIEU", "EMAIL": "COURRIEL"},
    "pl": {"PERSON": "OSOBA", "ORGANIZATION": "ORGANIZACJA", "LOCATION": "MIEJSCE", "PHONE_NUMBER": "NUMER TELEFONU"},
    "es": {"PERSON": "PERSONA", "ORGANIZATION": "ORGANIZACIÓN", "LOCATION": "LUGAR", "EMAIL": "CORREO"},
    "it": {"PERSON": "PERSONA", "ORGANIZATION": "ORGANIZZAZIONE", "LOCATION": "LUOGO", "EMAIL": "EMAIL"},
}
REWRITES = [("", text) for text in PLAIN] + [(language, text) for language, some in TRANSLATED.items() for text in some]


def translate_label(tag: str, language: str) -> str:
    labels = LABELS.get(language, {})
    return re.sub(r"[A-Z_]{3,}", lambda m: labels.get(m[0], m[0]), tag) if tag.startswith("<") else tag


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true")
    args = parser.parse_args()
    lists: dict[str, list[str]] = {}
    for name, label in NAMES.values():
        lists.setdefault(label, []).append(name)
    terms = tuple(TermList(label, tuple(some)) for label, some in lists.items() if "_" not in label)
    figures: dict[str, dict[str, int]] = {}
    for preset in ("reversible", "pseudonyms"):
        policy = Policy.load(preset).with_(detectors=("rules", "lexicon"), dictionary=terms)
        made = allonym.anonymize(LETTER, policy, key=b"a key of the benchmark, 32 bytes")
        stands = {edit.original: made.text[start:end] for start, end, edit in locate_replacements(made.plan.edits)}
        counts: Counter[str] = Counter()
        for language, template in REWRITES:
            keys = re.findall(r"(?<!\{)\{([A-Z])\}", template)
            parts = re.split(r"(?<!\{)\{[A-Z]\}", template.replace("{{", "\0").replace("}}", "\1"))
            parts = [part.replace("\0", "{").replace("\1", "}") for part in parts]
            given = [translate_label(stands[NAMES[key][0]], language) for key in keys]
            text = "".join(a + b for a, b in zip(parts, [*given, ""], strict=True))
            back = allonym.restore(text, plan=made.plan).text
            found = re.fullmatch("(.*?)".join(map(re.escape, parts)), back, re.DOTALL)
            places = found.groups() if found else ("",) * len(keys)
            for key, replacement, place in zip(keys, given, places, strict=True):
                kind = "exact" if place == NAMES[key][0] else "left" if place == replacement else "wrong"
                counts[kind] += 1
                if args.show and kind != "exact":
                    print(f"{preset} {kind}: {replacement} => {place}  in  {text[:70]!r}")
            counts["rewrites"] += 1
            counts["rewrites exact"] += all(p == NAMES[k][0] for k, p in zip(keys, places, strict=True))
        figures[preset] = dict(counts)
        print(f"{preset:12}", ", ".join(f"{name} {count}" for name, count in sorted(counts.items())))
    print(json.dumps({"benchmark": "own_rewrites", **figures}))


if __name__ == "__main__":
    main()
