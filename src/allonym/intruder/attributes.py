"""Attribute inference by a language model after Staab et al. 2023 ("Beyond Memorization", arXiv 2310.07298).

It measures what can be inferred about a person whom nobody can name: several guesses for each attribute, scored by
rules. Strictly opt-in: texts go to the endpoint that the settings name, and nowhere without one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from allonym.errors import DataError, UnknownNameError
from allonym.intruder.persons import ask_about_texts, read_string_list
from allonym.intruder.scoring import EXACT, LESS, RULES, score_guess
from allonym.llm import Client
from allonym.llm.templates import TEXT, fill_slots, make_list_schema, make_object_schema, read_prompts
from allonym.serial import Serialisable
from allonym.stats import Estimate
from allonym.stats.samples import share

ATTRIBUTES: tuple[str, ...] = tuple(RULES)
"""The attributes: age, sex, place, birthplace, education, occupation, relationship, income."""

Guesses = Mapping[str, tuple[str, ...]]
"""Attribute to guesses, the likeliest first."""


class AttributeRate(Serialisable):
    """How well one attribute was guessed: shares of the texts whose true value is known, with Wilson's interval.

    Attributes:
        attribute: its name; empty: all together.
        texts: texts whose true value is known.
        guessed: share with any guess.
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


class AttributeResults(Serialisable):
    """What an intruder inferred.

    Attributes:
        intruder: its name.
        all: all attributes together.
        attributes: one rate each, in the order of :data:`ATTRIBUTES`; attributes without any true value are left out.
        scores: for each text, attribute to the score of each guess: 1 right, 0.5 less precise, 0 wrong. Hidden from
            ``repr``, and not part of :meth:`to_dict`.
    """

    KEYS = ("intruder", "all", "attributes")

    intruder: str
    all: AttributeRate
    attributes: tuple[AttributeRate, ...]
    scores: tuple[Mapping[str, tuple[float, ...]], ...] = field(repr=False)


def guess_attributes(
    texts: Sequence[str],
    client: Client,
    *,
    attributes: Sequence[str] = ATTRIBUTES,
    person: str = "author",
    kind: str = "text",
    guesses: int = 3,
    advance: Callable[[int, int], None] | None = None,
) -> tuple[Guesses, ...]:
    """Ask a language model for attributes of the author, or of the person described.

    Args:
        texts: what it reads; each text by itself.
        client: whom to ask; see :func:`allonym.intruder.persons.open_client`.
        attributes: some of :data:`ATTRIBUTES`.
        person: whose attributes, such as ``author`` or ``person described``.
        kind: what the texts are.
        guesses: most guesses for each attribute, 1 or more; further ones are left out.
        advance: called with the number of texts that are done, and of all.

    Returns:
        One mapping per text with all requested attributes; empty tuples where the model gave no guess.

    Raises:
        UsageError: ``guesses`` is below 1.
        UnknownNameError: there is no such attribute.
        EndpointError: the endpoint did not answer. The message shows nothing that was sent.
    """
    for name in attributes:
        if name not in RULES:
            raise UnknownNameError("attribute", name, RULES)
    prompts = read_prompts("intruder", "attributes")
    lines = "\n".join(f'"{name}": {prompts["asked"][name]}' for name in attributes)
    slots = {"person": person, "kind": kind, "many": str(guesses), "asked": lines}
    schema = make_object_schema(dict.fromkeys(attributes, make_list_schema(TEXT)))
    system = fill_slots(prompts["system"], slots)
    answers = ask_about_texts(client, texts, system, schema, "attributes", guesses, advance)
    return tuple({name: read_string_list((a or {}).get(name), guesses) for name in attributes} for a in answers)


def score_attribute_guesses(
    truths: Sequence[Mapping[str, str]], guesses_by_text: Sequence[Guesses], *, intruder: str = "llm"
) -> AttributeResults:
    """Score guesses with :func:`allonym.intruder.scoring.score_guess`.

    Args:
        truths: for each text, attribute to its true value; empty or missing: not known, and not counted.
        guesses_by_text: the guesses for each text.
        intruder: its name.

    Raises:
        DataError: unequal lengths, or a true value that the rule cannot read (an age without a number).
    """
    if len(truths) != len(guesses_by_text):
        raise DataError(f"a profile for each text is required; got {len(truths)} for {len(guesses_by_text)} texts")
    scores = tuple(
        {
            name: tuple(score_guess(name, guess, truth[name]) for guess in guesses.get(name, ()))
            for name in RULES
            if truth.get(name)
        }
        for truth, guesses in zip(truths, guesses_by_text, strict=True)
    )
    by_name = {name: [row[name] for row in scores if name in row] for name in RULES}
    rates = tuple(_rate_attribute(name, rows) for name, rows in by_name.items() if rows)
    return AttributeResults(intruder, _rate_attribute("", [s for row in scores for s in row.values()]), rates, scores)


def _rate_attribute(name: str, scores: Sequence[tuple[float, ...]]) -> AttributeRate:
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
