"""P3's person-guessing task for a language model: name the person behind an anonymised text, and say what revealed it.

Strictly opt-in: texts go to the endpoint that the settings name, and nowhere without one. The answers are counted like
those of people, by :func:`allonym.evaluate.people.people_study`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from allonym.errors import UsageError
from allonym.llm import Client, Request, client_for
from allonym.llm.client import ask_and_read_with_retry
from allonym.llm.templates import TEXT, fill_slots, make_list_schema, make_object_schema, make_utf8_safe, read_prompts
from allonym.registry import LLM_KEYS

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
    return client_for({name: llm_key.default for name, llm_key in LLM_KEYS.items()} | dict(settings or {}), key)


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
