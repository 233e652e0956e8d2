"""From the body that came to the body that is sent."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from allonym.policy import Policy
from allonym.server.gateway import told
from allonym.server.gateway.protect import Protected, Protector
from allonym.server.gateway.reading import Reading, Table
from allonym.server.gateway.refusal import Refusal
from allonym.server.gateway.restoring import Restoring
from allonym.server.gateway.settings import Settings
from allonym.server.gateway.shapes import CHAT, EMBEDDINGS, RESPONSES, read_request

if TYPE_CHECKING:
    from allonym.vault import Vault

_WARMING = "Dear Ms Brook, call me on 212-555-0142."


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One of the API's endpoints.

    Attributes:
        path: below ``/v1/``.
        table: what its requests may hold.
        explain: tells the model of placeholders; None: there is nobody to tell.
    """

    path: str
    table: Table = field(repr=False)
    explain: Callable[[dict[str, Any], str], None] | None = None


ENDPOINTS = (
    Endpoint("chat/completions", CHAT, told.in_chat),
    Endpoint("responses", RESPONSES, told.in_response),
    Endpoint("embeddings", EMBEDDINGS),
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that may be sent.

    Attributes:
        body: as it is sent.
        given: as the client wrote it.
        stream: an answer in events is wanted.
        protected: what is known of it.
        restoring: for its answer.
        milliseconds: that reading and protecting took.
    """

    body: bytes = field(repr=False)
    given: dict[str, Any] = field(repr=False)
    stream: bool
    protected: Protected
    restoring: Restoring = field(repr=False)
    milliseconds: float


class Asking:
    """Reads and protects requests. Safe for threads.

    Args:
        settings: of the gateway.
        vault: keeps conversations; None: there are none.
        key: secret of keyed operators; None: the vault's own.
        threads: windows of a text that the tagger computes at once.

    Attributes:
        secret: what identifiers are digested with.
        policies: those that requests may name.

    Raises:
        UsageError: a policy is not valid, or needs a key where there is none.
    """

    def __init__(self, settings: Settings, vault: Vault | None, key: bytes | str | None, threads: int) -> None:
        self._settings = settings
        self._protector = Protector(key, vault)
        self.secret = vault.operator_key if vault is not None else os.urandom(32)
        names = [settings.policy, *settings.policies]
        for client in settings.clients:
            names += [client.policy, *client.policies]
        self.policies = {name: _threaded(Policy.load(name), threads) for name in dict.fromkeys(names) if name}
        for policy in self.policies.values():  # see that each works, and load what it needs
            reading = Reading(settings, self.secret)
            reading.add(_WARMING, lambda said: None)
            self._protector.protect(reading.passages, policy)

    def asked(self, endpoint: Endpoint, raw: bytes, policy: Policy, scope: str) -> Asked:
        """The request that is sent in place of the one that came.

        Args:
            endpoint: that it came to.
            raw: its body.
            policy: what to find, and what to do with it.
            scope: of its conversation in the vault; empty: it belongs to none.

        Raises:
            Refusal: something in it may not be sent.
            AllonymError: it cannot be protected.
        """
        start = perf_counter()
        given = _request(raw)
        body = copy.deepcopy(given)
        reading = Reading(self._settings, self.secret)
        read_request(reading, body, endpoint.table)
        if reading.stateful and not scope:
            raise Refusal(
                "what the upstream keeps of earlier requests holds placeholders of theirs: name the conversation in "
                "the header X-Allonym-Conversation, which needs a vault",
                "",
                "conversation_required",
            )
        size, most = (
            sum(len(one.text) for passage in reading.passages for one in passage),
            self._settings.max_characters,
        )
        if size > most:
            raise Refusal(f"has {size:,} characters of text; {most:,} are allowed", "request", "too_large", 413)
        protected = self._protector.protect(reading.passages, policy, scope)
        reading.finish()
        if self._settings.explain and protected.tag and endpoint.explain is not None:
            endpoint.explain(body, protected.tag)
        restoring = Restoring(protected.restorer, json=told.wants_json(given))
        sent = json.dumps(body, separators=(",", ":"), allow_nan=False).encode()
        return Asked(sent, given, given.get("stream") is True, protected, restoring, (perf_counter() - start) * 1000)


def _request(raw: bytes) -> dict[str, Any]:
    def no_number(name: str) -> float:
        raise ValueError(name)

    try:
        value = json.loads(raw.decode("utf-8"), parse_constant=no_number)
    except RecursionError:
        raise Refusal("the body is nested too deeply", "", "invalid_json") from None
    except (UnicodeDecodeError, ValueError) as error:
        at = f" at character {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
        raise Refusal(f"the body is not JSON in UTF-8{at}", "", "invalid_json") from None
    if not isinstance(value, dict):
        raise Refusal("the body must be a JSON object", "", "invalid_json")
    return value


def _threaded(policy: Policy, threads: int) -> Policy:
    """The policy with several windows of a text computed at once, which changes no result, where it does not say."""
    if "tagger" not in policy.detectors or "threads" in policy.tables.get("tagger", {}):
        return policy
    tagger = MappingProxyType({**policy.tables.get("tagger", {}), "threads": threads})
    return policy.with_(tables=MappingProxyType({**policy.tables, "tagger": tagger}))
