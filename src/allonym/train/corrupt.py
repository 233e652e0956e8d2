"""Noise for training text: other casing, speech recognition, spelled names, names of other origins."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from allonym.models.tags import LABELS
from allonym.train.examples import ALL, BEGIN, INSIDE, Example

_FIRST = BEGIN["PERSON_FIRSTNAME"] | INSIDE["PERSON_FIRSTNAME"]
_LAST = BEGIN["PERSON_LASTNAME"] | INSIDE["PERSON_LASTNAME"]
_STARTS = sum(BEGIN.values())
_O = 1


@dataclass(frozen=True, slots=True)
class Noise:
    """Shares of the texts to change in each way, from 0 to 1.

    Attributes:
        lower: change all letters to lower case.
        speech: change to lower case without punctuation, like speech recognisers.
        upper: change all letters to capitals.
        swap: replace names of people by others, of any origin.
        spell: spell one name of the text letter by letter.
    """

    lower: float = 0.12
    speech: float = 0.10
    upper: float = 0.03
    swap: float = 0.25
    spell: float = 0.02


def corrupt_example(
    example: Example, noise: Noise, first: Sequence[str], last: Sequence[str], rng: random.Random
) -> Example:
    """Return a changed copy of an example; ``first`` and ``last`` are names to swap in, of mixed origins."""
    out = example
    if first and last and rng.random() < noise.swap:
        out = _swap_names(out, first, last, rng)
    if rng.random() < noise.spell:
        out = _spell_out_name(out, rng)
    draw = rng.random()
    if draw < noise.lower:
        return replace(out, words=tuple(w.lower() for w in out.words))
    if draw < noise.lower + noise.speech:
        return _imitate_transcript(out)
    if draw < noise.lower + noise.speech + noise.upper:
        return replace(out, words=tuple(w.upper() for w in out.words))
    return out


def _swap_names(example: Example, first_names: Sequence[str], last_names: Sequence[str], rng: random.Random) -> Example:
    names: dict[str, str] = {}
    strings = list(example.words)
    for i, (word, mask) in enumerate(zip(strings, example.allowed, strict=True)):
        pool = first_names if mask and not mask & ~_FIRST else last_names if mask and not mask & ~_LAST else None
        if pool is None or len(word) < 3 or not word.isalpha() or not word[0].isupper():
            continue
        if word not in names:
            names[word] = rng.choice(pool)
        new = names[word]
        strings[i] = new.upper() if word.isupper() else new
    return replace(example, words=tuple(strings)) if names else example


def _imitate_transcript(example: Example) -> Example:
    """Change to lower case without marks other than apostrophes; joined words stay joined, "Mrs." becomes "mrs"."""
    indexes = [i for i, w in enumerate(example.words) if w[0].isalnum() or w[0] in "'’@#$%&"]
    if not indexes:
        return example
    strings = tuple(example.words[i].lower() for i in indexes)
    out = []
    for before, i in pairwise([-1, *indexes]):
        mask = example.allowed[i]
        # a span that began with a mark, such as a quotation mark, now begins here
        begins = any(m != ALL and m & _STARTS and not m & _O for m in example.allowed[before + 1 : i])
        out.append(mask | mask >> 1 if begins and mask != ALL and not mask & (_STARTS | _O) else mask)
    joined = tuple(example.joined[i] and before == i - 1 >= 0 for before, i in pairwise([-1, *indexes]))
    plain, parts = tuple(example.plain[i] for i in indexes), tuple(example.parts[i] for i in indexes)
    return Example(strings, joined, (0,) * len(indexes), tuple(out), plain, parts, example.source)


def _spell_out_name(example: Example, rng: random.Random) -> Example:
    """Spell one name: "Sarah, S A R A H" or "S-A-R-A-H"; all of it is labelled as the name."""
    places = [
        i
        for i, (w, m) in enumerate(zip(example.words, example.allowed, strict=True))
        if m and not m & ~(_FIRST | _LAST) and 3 <= len(w) <= 10 and w.isalpha()
    ]
    if not places:
        return example
    place = rng.choice(places)
    mask = example.allowed[place]
    dash = rng.random() < 0.5
    letters = list(("-" if dash else "").join(example.words[place].upper()))
    inside = (mask & _STARTS) << 1 | mask & ~_STARTS
    lead = [","] if rng.random() < 0.5 else []
    n = len(lead) + len(letters)
    inserted: dict[str, Sequence[Any]] = {
        "words": lead + letters,
        "joined": [True] * len(lead) + [False] + [dash] * (len(letters) - 1),
        "breaks": [0] * n,
        "allowed": [_O] * len(lead) + [mask & _STARTS or mask] + [inside] * (len(letters) - 1),
        "plain": [False] * n,
        "parts": [-1] * n,
    }
    changed: dict[str, Any] = {}
    for name, values in inserted.items():
        old = getattr(example, name)
        changed[name] = (*old[: place + 1], *values, *old[place + 1 :])
    return replace(example, **changed)


assert len(LABELS) < 31, "masks are signed 64-bit numbers in the trainer"
