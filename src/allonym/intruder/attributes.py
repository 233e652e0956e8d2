"""Attribute inference by a language model after Staab et al. 2023 ("Beyond Memorization", arXiv 2310.07298).

What can be told of a person whom nobody can name: several guesses for each attribute, scored by rules. Strictly opt-in:
texts go to the endpoint that the settings name, and nowhere without one.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from allonym.errors import DataError, UnknownNameError, UsageError
from allonym.intruder.persons import answers, language_model, utf8
from allonym.intruder.scoring import EXACT, LESS, RULES, score
from allonym.llm import Client
from allonym.stats import Estimate
from allonym.stats.samples import share

ATTRIBUTES: tuple[str, ...] = tuple(RULES)
"""What can be asked for: age, sex, place, birthplace, education, occupation, relationship, income."""

Guesses = Mapping[str, tuple[str, ...]]
"""Attribute to guesses, the likeliest first."""


@dataclass(frozen=True, slots=True)
class AttributeRate:
    """How well one attribute was guessed; shares of the texts whose truth is known, with Wilson's interval.

    Attributes:
        attribute: which one; empty: all together.
        texts: whose truth is known.
        guessed: share with a guess at all.
        first: share whose first guess is right; first_less: right or less precise (the country of a city).
        any: share with a right guess among all; any_less: right or less precise.
    """

    attribute: str
    texts: int
    guessed: Estimate
    first: Estimate
    first_less: Estimate
    any: Estimate
    any_less: Estimate

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        numbers = {n: getattr(self, n).to_dict() for n in ("guessed", "first", "first_less", "any", "any_less")}
        return {"attribute": self.attribute, "texts": self.texts, **numbers}


@dataclass(frozen=True, slots=True)
class AttributeResults:
    """What an intruder inferred.

    Attributes:
        intruder: who it was.
        all: all attributes together.
        attributes: one line each, in the order of :data:`ATTRIBUTES`; those whose truth is nowhere known are left out.
        scores: of every text, attribute to the score of each guess: 1 right, 0.5 less precise, 0. Hidden from ``repr``.
    """

    intruder: str
    all: AttributeRate
    attributes: tuple[AttributeRate, ...]
    scores: tuple[Mapping[str, tuple[float, ...]], ...] = field(repr=False)

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON; no text and no guess among them."""
        return {
            "intruder": self.intruder,
            "all": self.all.to_dict(),
            "attributes": [a.to_dict() for a in self.attributes],
        }


def guess_attributes(
    texts: Sequence[str],
    *,
    attributes: Sequence[str] = ATTRIBUTES,
    client: Client | None = None,
    settings: Mapping[str, object] | None = None,
    key: bytes | None = None,
    person: str = "author",
    kind: str = "text",
    guesses: int = 3,
    advance: Callable[[int, int], None] | None = None,
) -> tuple[Guesses, ...]:
    """Ask a language model for attributes of the author, or of the person described.

    Args:
        texts: what it reads; each text by itself.
        attributes: some of :data:`ATTRIBUTES`.
        client: whom to ask; by default the one for ``settings`` and ``key``.
        settings: keys of a policy's table ``[llm]``.
        key: for the client's cache, 32 bytes or more; None: no answer is kept.
        person: whose attributes, e.g. ``author`` or ``person described``.
        kind: what the texts are.
        guesses: how many for each attribute, 1 or more; what it says beyond is left out.
        advance: called with the number of texts that are done, and of all.

    Returns:
        One mapping per text with all asked attributes; empty lists where the model gave none.

    Raises:
        UsageError: no endpoint is named, ``guesses`` is below 1, or there is no such attribute.
        EndpointError: the endpoint did not answer. Nothing of what was sent is shown.
    """
    if guesses < 1:
        raise UsageError(f"guesses must be 1 or more, got {guesses}")
    for name in attributes:
        if name not in RULES:
            raise UnknownNameError("attribute", name, RULES)
    asked = client or language_model(settings, key)
    parts = _parts()
    lines = "\n".join(f'"{name}": {parts["asked"][name]}' for name in attributes)
    values = {"person": person, "kind": kind, "many": str(guesses), "asked": lines}
    system = re.sub(r"\{(person|kind|many|asked)\}", lambda m: values[m[1]], parts["system"]).strip()
    listing = {"type": "array", "items": {"type": "string"}}
    schema = {
        "type": "object",
        "properties": dict.fromkeys(attributes, listing),
        "required": list(attributes),
        "additionalProperties": False,
    }
    found = answers(asked, [(("system", system), ("user", utf8(t))) for t in texts], schema, "attributes", advance)
    return tuple({name: _listed((one or {}).get(name), guesses) for name in attributes} for one in found)


def attribute_results(
    truths: Sequence[Mapping[str, str]], said: Sequence[Guesses], *, intruder: str = "llm"
) -> AttributeResults:
    """Score guesses by :func:`allonym.intruder.scoring.score`.

    Args:
        truths: of each text, attribute to its true value; empty or missing: not known, and not counted.
        said: the guesses for each text.
        intruder: its name.

    Raises:
        DataError: unequal lengths, or a true value that the rule cannot read (an age without a number).
    """
    if len(truths) != len(said):
        raise DataError(f"a profile for each text is required; got {len(truths)} for {len(said)} texts")
    scores = tuple(
        {
            name: tuple(score(name, guess, truth[name]) for guess in one.get(name, ()))
            for name in RULES
            if truth.get(name)
        }
        for truth, one in zip(truths, said, strict=True)
    )
    rates = []
    for name in RULES:
        asked = [one[name] for one in scores if name in one]
        if asked:
            rates.append(_rate(name, asked))
    return AttributeResults(intruder, _rate("", [s for one in scores for s in one.values()]), tuple(rates), scores)


def _rate(name: str, scores: Sequence[tuple[float, ...]]) -> AttributeRate:
    n = len(scores)
    return AttributeRate(
        name,
        n,
        share(sum(bool(s) for s in scores), n),
        share(sum(s[:1] == (EXACT,) for s in scores), n),
        share(sum(bool(s) and s[0] >= LESS for s in scores), n),
        share(sum(EXACT in s for s in scores), n),
        share(sum(max(s, default=0.0) >= LESS for s in scores), n),
    )


def _listed(found: object, many: int) -> tuple[str, ...]:
    one = found if isinstance(found, list) else [found]
    said = [str(g).strip() for g in one if isinstance(g, (str, int, float)) and not isinstance(g, bool)]
    return tuple(filter(None, said))[:many]


@cache
def _parts() -> Mapping[str, Any]:
    return tomllib.loads(files("allonym").joinpath("intruder", "attributes.toml").read_text(encoding="utf-8"))
