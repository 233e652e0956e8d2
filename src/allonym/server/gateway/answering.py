"""From what the upstream answers to what the client gets."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx

from allonym.server.gateway.asking import Asked
from allonym.server.gateway.refusal import Unanswered, body_of, lost
from allonym.server.gateway.sse import Event, Events, dumped, written
from allonym.server.gateway.streams import Answer, ChatAnswer, ResponsesAnswer, response_restored

_DONE = "[DONE]"


def restored(asked: Asked, data: bytes, status: int) -> bytes:
    """A whole answer with its originals.

    Raises:
        Unanswered: it is no JSON object, and no error either.
    """
    return dumped(response_restored(parsed(data, status), asked.given, asked.restoring.anything))


def parsed(data: bytes, status: int) -> dict[str, Any]:
    """The JSON object that the upstream answered with; an error of ours in place of one that is none.

    Raises:
        Unanswered: it is none, and the status is that of a good answer.
    """
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        return value
    failure = Unanswered(f"the upstream answered HTTP {status}, and not with a JSON object")
    if status < 400:
        raise failure
    return body_of(failure)


async def streamed(
    asked: Asked,
    pieces: AsyncIterator[bytes],
    failure: Callable[[Exception], Unanswered],
    ended: Callable[[Exception | None], None],
) -> AsyncIterator[bytes]:
    """An answer in events. Whatever breaks it off is told in an event, after what was decided and held back.

    Args:
        asked: what was asked.
        pieces: the upstream's bytes.
        failure: what failed on the way, for people.
        ended: called with what broke it off, after all else.
    """
    chat = "messages" in asked.given
    answer: Answer = ChatAnswer(asked.restoring) if chat else ResponsesAnswer(asked.restoring, asked.given)
    failed: Exception | None = None
    over = False
    events = Events()
    out: list[bytes] = []
    try:
        async for data in pieces:
            for event in events.feed(data):
                over = over or event.data == _DONE
                _restore(answer, event, out)
            if out:
                yield b"".join(out)
                out = []
    except httpx.HTTPError as error:
        failed = failure(error)
    except Exception as error:  # of whatever it is, the client is told
        failed = lost(error)
    if failed is None and not over and not answer.whole:
        failed = Unanswered("the upstream broke the answer off", "upstream_broke_off")
    out += [written(data, name) for name, data in answer.rest()]
    if failed is not None:
        told = body_of(failed)
        out.append(written(told) if chat else written({"type": "error", **told}, "error"))
    if out:
        yield b"".join(out)
    ended(failed)


def _restore(answer: Answer, event: Event, out: list[bytes]) -> None:
    """Add to ``out`` what is sent for one event of the upstream."""
    if not event.data:
        out.append(b":\n\n")
    elif event.data == _DONE:
        out += [written(data, name) for name, data in answer.rest()]
        out.append(written(_DONE, event.name))
    elif (value := event.json()) is not None:
        out += [written(data, name) for name, data in answer.event(event.name, value)]
    else:
        raise Unanswered("the upstream sent an event that is no JSON")
