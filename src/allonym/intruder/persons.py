"""P3's person-guessing task for a language model: name the person behind an anonymised text, and say what gave it away.

Strictly opt-in: texts go to the endpoint that the settings name, and nowhere without one. What it says is counted like
what people say, by :func:`allonym.evaluate.people.people_study`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from allonym.errors import EndpointError, UsageError
from allonym.llm import Client, Reply, Request, client_for
from allonym.llm.answers import parsed
from allonym.llm.templates import Messages
from allonym.registry import LLM_KEYS

SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {
        "identified": {"type": "boolean"},
        "guesses": {"type": "array", "items": {"type": "string"}},
        "reason": {"type": "string"},
        "knowledge": {"type": "string"},
    },
    "required": ["identified", "guesses", "reason", "knowledge"],
    "additionalProperties": False,
}
_SLOT = re.compile(r"\{(kind|many)\}")
_BATCH = 32  # texts that are asked for at once


@dataclass(frozen=True, slots=True)
class Answer:
    """What somebody said about one text. All but ``claimed`` hidden from ``repr``.

    Attributes:
        claimed: "I could identify the person."
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
    *,
    client: Client | None = None,
    settings: Mapping[str, object] | None = None,
    key: bytes | None = None,
    kind: str = "person description",
    guesses: int = 3,
    advance: Callable[[int, int], None] | None = None,
) -> tuple[Answer, ...]:
    """Ask a language model who each text is about.

    Args:
        texts: what it reads; each text by itself.
        client: whom to ask; by default the one for ``settings`` and ``key``.
        settings: keys of a policy's table ``[llm]``.
        key: for the client's cache, 32 bytes or more; None: no answer is kept.
        kind: what the texts are.
        guesses: how many names it may give, 1 or more; what it says beyond is left out.
        advance: called with the number of texts that are done, and of all.

    Returns:
        One answer per text; one without any guess where the model gave no JSON, asked twice.

    Raises:
        UsageError: no endpoint is named, or ``guesses`` is below 1.
        EndpointError: the endpoint did not answer. Nothing of what was sent is shown.
    """
    if guesses < 1:
        raise UsageError(f"guesses must be 1 or more, got {guesses}")
    asked = client or language_model(settings, key)
    system = _filled("system", {"kind": kind, "many": str(guesses)})
    out: list[Answer] = []
    for found in answers(asked, [(("system", system), ("user", utf8(t))) for t in texts], SCHEMA, "person", advance):
        out.append(_answer(found, guesses) if found is not None else Answer(False))
    return tuple(out)


def language_model(settings: Mapping[str, object] | None, key: bytes | None = None) -> Client:
    """The client for a policy's table ``[llm]``.

    Raises:
        UsageError: no endpoint is named: nothing is sent anywhere.
    """
    return client_for({name: one.default for name, one in LLM_KEYS.items()} | dict(settings or {}), key)


def answers(
    client: Client,
    talks: Sequence[Messages],
    schema: Mapping[str, object],
    name: str,
    advance: Callable[[int, int], None] | None = None,
) -> list[Mapping[str, object] | None]:
    """The JSON objects a model answers with; who answers without one is asked once more, then None.

    Raises:
        EndpointError: the endpoint did not answer.
    """
    out: list[Mapping[str, object] | None] = []
    for at in range(0, len(talks), _BATCH):
        part = talks[at : at + _BATCH]
        found = _objects(client.ask_all([Request(talk, schema, name) for talk in part]))
        again = [i for i, one in enumerate(found) if one is None]
        longer = [(*part[i][:-1], (part[i][-1][0], f"{part[i][-1][1]}\n\n{_filled('again', {})}")) for i in again]
        second = _objects(client.ask_all([Request(talk, schema, name) for talk in longer]))
        for i, one in zip(again, second, strict=True):
            found[i] = one
        out += found
        if advance is not None:
            advance(len(out), len(talks))
    return out


def utf8(text: str) -> str:
    """The text as an endpoint can get it: a lone surrogate has no UTF-8."""
    return text.encode("utf-8", "replace").decode()


def _objects(replies: Sequence[Reply | EndpointError]) -> list[Mapping[str, object] | None]:
    for reply in replies:
        if isinstance(reply, EndpointError):
            raise reply
    return [parsed(r.content) if isinstance(r, Reply) and r.whole else None for r in replies]


def _answer(found: Mapping[str, object], many: int) -> Answer:
    listed = found.get("guesses")
    names = [g.strip() for g in (listed if isinstance(listed, list) else [listed]) if isinstance(g, str)]
    reason, knowledge = found.get("reason"), found.get("knowledge")
    return Answer(
        found.get("identified") is True,
        tuple(filter(None, names))[:many],
        reason if isinstance(reason, str) else "",
        knowledge if isinstance(knowledge, str) else "",
    )


@cache
def _parts() -> Mapping[str, str]:
    return tomllib.loads(files("allonym").joinpath("intruder", "persons.toml").read_text(encoding="utf-8"))


def _filled(part: str, values: Mapping[str, str]) -> str:
    return _SLOT.sub(lambda m: values.get(m[1], ""), _parts()[part]).strip()
