"""A model of rules for the tests and the benchmark of adversarial rewriting: it attacks and rewrites texts in JSON.

All texts and facts are invented.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

PLACES = {"Ghent": "Ghent, Belgium", "Turku": "Turku, Finland", "Leeds": "Leeds, England", "Porto": "Porto, Portugal"}
WORKS = "nurse,tram driver,violin maker,dentist,beekeeper,welder".split(",")
TIES = {"husband": "married", "wife": "married", "widower": "widowed", "divorce": "divorced"}
GENERAL = {"age": "some age", "place": "a town", "occupation": "person", "relationship": "relative"}

TEMPLATES = (
    "I met [PERSON 1] at the market. At {age} I am still a {work}, and I cycle to {place} every week.",
    "My {tie} says hello to [PERSON 1]. The shop in {place} closes early, so a {work} has to hurry.",
    "As a {work} one sees a lot. I turned {age} last spring; we sang all night in {place}, and [PERSON 1] danced.",
    "Nothing to report today. [PERSON 1] watered the plants while I slept.",
)
_LISTED = re.compile(r"^(\d+) \(([\w, ]+)\): (.*)$", re.MULTILINE)


def make_corpus(n: int = 24) -> tuple[list[str], list[str], list[dict[str, str]], list[str]]:
    """Return originals, anonymised texts, profiles and subjects, four texts a subject."""
    original, anonymised, profiles, subjects = [], [], [], []
    for i in range(n):
        who = i // 4
        age, place, work = str(27 + 9 * who % 60), list(PLACES)[who % 4], WORKS[who % 6]
        tie = list(TIES)[who % 3]
        text = TEMPLATES[i % 4].format(age=age, place=place, work=work, tie=tie)
        anonymised.append(text)
        original.append(
            text.replace("[PERSON 1]", f"Odalric {'Bramwell Tessier Quillon Varga Marsh Rook'.split()[who % 6]}")
        )
        profile = {"age": age, "place": PLACES[place], "occupation": work, "relationship": TIES[tie]}
        profiles.append(profile)
        subjects.append(f"subject {who}")
    return original, anonymised, profiles, subjects


def is_attack(body: Mapping[str, Any]) -> bool:
    """Whether a request asks for inferences."""
    return "inferences" in body["messages"][0]["content"]


def attack(body: Mapping[str, Any]) -> str:
    """Infer age, place, work and ties by rules, with grounds."""
    text, _, control = body["messages"][1]["content"].partition("\n\nControl: ")
    rows: list[dict[str, Any]] = [{"attribute": "control", "guess": control[:4], "phrases": []}]
    if match := re.search(r"\b[2-9]\d\b", text):
        rows.append({"attribute": "age", "guess": match[0], "phrases": [match[0]]})
    for attribute, table in (("place", PLACES), ("occupation", {w: w for w in WORKS}), ("relationship", TIES)):
        for word, guess in table.items():
            if re.search(rf"\b{word}\b", text):
                rows.append({"attribute": attribute, "guess": guess, "phrases": [word]})
                break
    return json.dumps({"inferences": rows})


def list_asked(body: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return number, attributes and phrase of what a rewriting request lists."""
    return _LISTED.findall(body["messages"][-1]["content"].rpartition("Phrases:\n")[2])


def rewrite(body: Mapping[str, Any]) -> str:
    """Generalise by the attribute."""
    return json.dumps({"phrases": {n: GENERAL.get(names.split(",")[0], "") for n, names, _ in list_asked(body)}})


def play_model(
    attacks: Callable[[Mapping[str, Any]], str] = attack, rewrites: Callable[[Mapping[str, Any]], str] = rewrite
) -> Callable[[dict[str, Any]], str]:
    """Return the answers of a model that does both."""
    return lambda body: attacks(body) if is_attack(body) else rewrites(body)
