"""Hits, the candidates for one position of a text, and the match that is chosen from them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from allonym.restore import fit
from allonym.restore.forms import ADDRESS, TAG, Form
from allonym.restore.index import Reading, choose_targets
from allonym.restore.words import Ending

_SPACED = re.compile(r"[^\W\d_]\.\s+[^\W\d_]\b")
_CLOSE_INITIALS = re.compile(r"(?<=[^\W\d_])\.(?=[^\W\d_]\.)")
_COST = {"": 0, "case": 1, "spacing": 2, "signs": 2, "quotes": 2, "joined": 3, "hyphenation": 3, "plural": 3}
_COST |= {"diacritics": 3, "shortened": 4, "initials": 5, "reversed": 5, "acronym": 5, "inflected": 6, "typo": 10}


class Match(NamedTuple):
    """A replacement in a text.

    Attributes:
        start, end: half-open, in the searched text.
        out: the original to put there; None if the replacement is left.
        rule: how it was recognised: ``exact``, or rules joined by ``+``.
        label: of the entity.
        row: number of the replacement in the index, or -1.
        is_whole: whether it is the replacement itself in some writing, not a shorter form.
        words: how many words it has.
        why: the reason if it is left.
        sure: whether it can be nothing else; if not, counts over the whole text decide.
    """

    start: int
    end: int
    out: str | None
    rule: str
    label: str
    row: int = -1
    is_whole: bool = True
    words: int = 1
    why: str = ""
    sure: bool = True

    def __repr__(self) -> str:
        return f"Match({self.start}, {self.end}, {self.rule!r}, {self.label!r})"


@dataclass(slots=True)
class Hit:
    """A candidate, with offsets in the view."""

    start: int
    end: int
    last: int  # number of the token after it
    form: Form
    rules: list[str]
    endings: list[Ending | None]
    surface: str
    out: str | None = None
    sure: bool = True

    def cost(self) -> int:
        return sum(_COST.get(r, 2) for r in self.rules) + 20 * (not self.sure)


def count_words(reading: Reading) -> int:
    """Return the number of words of the text in a reading."""
    if reading.rule == "spacing" or reading.rule.startswith("hyphenation"):
        return 2
    return 2 if reading.ending is not None and not (reading.ending.kind or reading.ending.kept_letters) else 1


def choose_hit(hits: list[Hit]) -> Hit | None:
    """Return a hit if all lead to the same original, else None."""
    exact = [h for h in hits if not h.rules and h.surface == h.form.text]
    if exact:
        hits = exact
    if len(hits) == 1:
        return hits[0] if hits[0].form.target is not None else None
    forms = choose_targets([h.form for h in hits])
    if len(forms) != 1 or forms[0].target is None:
        outs = {h.out if h.out is not None else fit_original(h) for h in hits if h.form.target is not None}
        if len(outs) != 1 or any(h.form.target is None for h in hits):
            return None
    return next((h for h in hits if h.form is forms[0]), hits[0])


def fit_original(hit: Hit) -> str:
    """Adapt the original to the surface: shorten it, and apply its letter case and endings."""
    form = hit.form
    assert form.target is not None
    if form.kind == TAG or not hit.rules:
        out = form.target
        if any(hit.endings):
            out = fit.add_endings(out, len(form.keys), [None] * (len(form.keys) - 1) + [hit.endings[-1]])
        return out
    out = form.target
    if form.head and out.startswith(form.head) and hit.surface[0].isalnum():
        out = out[len(form.head) :]
    if form.tail and out.endswith(form.tail) and hit.surface[-1].isalnum():
        out = out[: len(out) - len(form.tail)]
    if any(hit.endings):
        out = fit.add_endings(out, len(form.keys), hit.endings)
    if form.rule == "initials" and _SPACED.search(hit.surface):
        out = _CLOSE_INITIALS.sub(". ", out)
    if form.rule == "initials" and "." not in hit.surface:
        out = out.replace(".", "")
    if form.kind == ADDRESS:
        letters = [c for c in hit.surface if c.isalpha()]
        return out.upper() if letters and all(c.isupper() for c in letters) and not form.text.isupper() else out
    if "," in form.text and "," not in hit.surface:
        out = out.replace(", ", " ")
    return fit.match_case(out, form.text, hit.surface)
