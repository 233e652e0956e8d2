"""P3's person-guessing task for a language model: name the person behind an anonymised text, and say what revealed it.

Strictly opt-in: texts go to the endpoint that the settings name, and nowhere without one. The answers are counted like
those of people, by :func:`allonym.evaluate.people.people_study`.

Attribute inference by a language model after Staab et al. 2023 ("Beyond Memorization", arXiv 2310.07298).

It measures what can be inferred about a person whom nobody can name: several guesses for each attribute, scored by
rules. Strictly opt-in: texts go to the endpoint that the settings name, and nowhere without one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from allonym.errors import DataError, UnknownNameError, UsageError
from allonym.intruder.scoring import EXACT, LESS, RULES, score_guess
from allonym.llm import Client, Request, client_for
from allonym.llm.client import ask_and_read_with_retry
from allonym.llm.templates import TEXT, fill_slots, make_list_schema, make_object_schema, make_utf8_safe, read_prompts
from allonym.registry import LlmTable
from allonym.serial import Serialisable
from allonym.settings import list_defaults
from allonym.stats import Estimate
from allonym.stats.samples import share

SCHEMA = make_object_schema(
    {"identified": {"type": "boolean"}, "guesses": make_list_schema(TEXT), "reason": TEXT, "knowledge": TEXT}
)
_BATCH = 32  # texts in one round of requests


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer about one text. All but ``claimed`` hidden from ``repr``.

    Attributes:
        claimed: whether the intruder says that it could identify the person.
        guesses: names, the likeliest first.
        reason: what revealed the identity.
        knowledge: what was learnt about the person.
    """

    claimed: bool
    guesses: tuple[str, ...] = field(default=(), repr=False)
    reason: str = field(default="", repr=False)
    knowledge: str = field(default="", repr=False)


def guess_persons(
    texts: Sequence[str],
    client: Client,
    *,
    kind: str = "person description",
    guesses: int = 3,
    advance: Callable[[int, int], None] | None = None,
) -> tuple[Answer, ...]:
    """Ask a language model who each text is about.

    Args:
        texts: what it reads; each text by itself.
        client: whom to ask; see :func:`open_client`.
        kind: what the texts are.
        guesses: most names for a text, 1 or more; further ones are left out.
        advance: called with the number of texts that are done, and of all.

    Returns:
        One answer per text; one without any guess where the model gave no JSON, asked twice.

    Raises:
        UsageError: ``guesses`` is below 1.
        EndpointError: the endpoint did not answer. The message shows nothing that was sent.
    """
    system = fill_slots(read_prompts("intruder", "persons")["system"], {"kind": kind, "many": str(guesses)})
    answers = ask_about_texts(client, texts, system, SCHEMA, "person", guesses, advance)
    return tuple(_parse_answer(answer, guesses) if answer is not None else Answer(False) for answer in answers)


def open_client(settings: Mapping[str, object] | None, key: bytes | None = None) -> Client:
    """Return the client for a policy's table ``[llm]``.

    Raises:
        UsageError: no endpoint is named: nothing is sent anywhere.
    """
    return client_for(list_defaults(LlmTable) | dict(settings or {}), key)


def ask_about_texts(
    client: Client,
    texts: Sequence[str],
    instructions: str,
    schema: Mapping[str, object],
    schema_name: str,
    guesses: int,
    advance: Callable[[int, int], None] | None,
) -> list[Mapping[str, object] | None]:
    """Ask for a JSON object about each text; None where the model gave none, asked twice.

    Raises:
        UsageError: ``guesses`` is below 1.
        EndpointError: the endpoint did not answer.
    """
    if guesses < 1:
        raise UsageError(f"guesses must be 1 or more, got {guesses}")
    again = fill_slots(read_prompts("intruder", "persons")["again"], {})
    answers: list[Mapping[str, object] | None] = []
    for start in range(0, len(texts), _BATCH):
        prompts = ((("system", instructions), ("user", make_utf8_safe(text))) for text in texts[start : start + _BATCH])
        requests = [Request(prompt, schema, schema_name) for prompt in prompts]
        answers += ask_and_read_with_retry(client, requests, again, lambda reply: reply.answer)
        if advance is not None:
            advance(len(answers), len(texts))
    return answers


def read_string_list(value: object, most: int) -> tuple[str, ...]:
    """Return the strings and numbers in what should be a list of strings, at most so many."""
    values = value if isinstance(value, list) else [value]
    strings = [str(v).strip() for v in values if isinstance(v, (str, int, float)) and not isinstance(v, bool)]
    return tuple(filter(None, strings))[:most]


def _parse_answer(answer: Mapping[str, object], most_guesses: int) -> Answer:
    names = answer.get("guesses")
    names = [name for name in (names if isinstance(names, list) else [names]) if isinstance(name, str)]
    reason, knowledge = (str(answer[k]) if isinstance(answer.get(k), str) else "" for k in ("reason", "knowledge"))
    return Answer(answer.get("identified") is True, read_string_list(names, most_guesses), reason, knowledge)


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
