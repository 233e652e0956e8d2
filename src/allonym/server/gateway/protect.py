"""From the body of a client's request to the body that is sent, with the note on placeholders, and to the restorer of
its answer."""

from __future__ import annotations

import copy
import hmac
import json
import os
import re
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from allonym.detection.selection import find_candidates
from allonym.document import Document, Interval, Span, clip_intervals, subtract_intervals
from allonym.keys import derive_operator_key
from allonym.llm import unlocked
from allonym.pipeline import replace_found, resolve_candidates
from allonym.plan import Edit
from allonym.policy import Policy
from allonym.protocol import get_traits_by_name, list_policy_grammars
from allonym.replace import subject_of
from allonym.restoration import Restorer
from allonym.restoration.destination import Destination, list_whole_addresses
from allonym.server.gateway.extras import EXTRAS
from allonym.server.gateway.messages import MESSAGES
from allonym.server.gateway.passages import Passage, Piece, RequestText
from allonym.server.gateway.reading import FieldReaders
from allonym.server.gateway.refusal import Refusal
from allonym.server.gateway.restoring import AnswerRestorer
from allonym.server.gateway.settings import Settings
from allonym.server.gateway.shapes import CHAT, EMBEDDINGS, RESPONSES, collect_request_texts
from allonym.server.gateway.withheld import WithheldOriginals, read_strings
from allonym.text.placeholders import find_placeholders

if TYPE_CHECKING:
    from allonym.vault import Vault

_REMEMBERED = 8192  # passages whose findings are remembered
_NAME_SOURCE = "gateway:name"
_LOOK_ALIKE_SOURCE = "gateway:look-alike"


@dataclass(frozen=True, slots=True)
class Protected:
    """The outcome of protecting a request.

    Attributes:
        restorer: of its originals, and those of its conversation.
        labels: how many mentions of each label were replaced.
        tag: one of its tags, as an example; empty where there is none.
        destination: of the answer: addresses that were in the request, and what looks like its replacements there.
        replacements: by their originals.
        unread: characters of passages in which names were not looked for, by language.
    """

    restorer: Restorer
    labels: Mapping[str, int]
    tag: str = field(default="", repr=False)
    destination: Destination = field(default_factory=Destination)
    replacements: Mapping[str, str] = field(default_factory=dict, repr=False)
    unread: Mapping[str, int] = field(default_factory=dict)


class Protector:
    """Replaces what identifies in the passages of requests. Safe for threads.

    The findings in a passage depend on the passage alone and are remembered, in memory and under keyed digests, so that
    a conversation that comes again with one more message costs that message. Whatever depends on other passages (names
    found once are covered everywhere, mentions of one person are one entity) is decided for each request as a whole.

    Args:
        key: secret of keyed operators; None: the vault's own, if there is one.
        vault: stores conversations.
    """

    def __init__(self, key: bytes | str | None = None, vault: Vault | None = None) -> None:
        self._vault = vault
        self._key = vault.operator_key if vault is not None and key is None else key
        self._secret = secrets.token_bytes(32)
        self._findings: OrderedDict[bytes, tuple[Span, ...]] = OrderedDict()
        self._lock = Lock()

    def protect_passages_in_place(self, passages: Sequence[Passage], policy: Policy, scope: str = "") -> Protected:
        """Replace what identifies in all passages, and put the results into their places.

        Args:
            passages: in the order in which a model reads them.
            policy: what to find, and how to replace it.
            scope: the conversation's scope in the vault; empty: this request alone.

        Raises:
            AllonymError: the text cannot be protected; then nothing was put into any place.
        """
        document, pieces, spans = self._merge_passages_and_find_spans(passages, policy, scope)
        vault = self._vault if scope else None
        with nullcontext() if vault is None else vault.book(scope, subject_of(document, policy)) as book:
            # A conversation comes again with each turn, and its answers are restored with the plan at hand.
            result = replace_found(document, spans, policy, key=self._key, scope=scope, book=book, keep_plan=False)
        restorer = Restorer.from_plan(result.plan, vault, scope)
        for piece, text in zip(pieces, result.parts, strict=False):  # without pieces the empty text is the only part
            assert piece.set_text is not None
            if text != piece.text:
                piece.set_text(text)
        tag = _find_example_placeholder(result.plan.edits, policy)
        labels, unread = (MappingProxyType(dict(n)) for n in (result.report.labels, result.report.unread))
        covered = [(span.start, span.end) for span in spans]
        output = "\n".join(
            document.text[start:end] for start, end in subtract_intervals((0, len(document.text)), covered)
        )
        destination = Destination(list_whole_addresses(result.text), frozenset(restorer.list_originals(output)))
        replacements = {e.original: e.replacement or "removed" for e in result.plan.edits if e.original and e.label}
        return Protected(restorer, labels, tag, destination, replacements, unread)

    def _merge_passages_and_find_spans(
        self, passages: Sequence[Passage], policy: Policy, scope: str
    ) -> tuple[Document, list[Piece], list[Span]]:
        """Return the passages as one document, the pieces that are its parts, and the spans to replace in these."""
        fingerprint = policy.fingerprint().encode()
        texts: list[str] = []
        pieces: list[Piece] = []
        parts: list[Interval] = []
        candidates: list[Span] = []
        position = 0
        for passage in passages:
            text = "".join([piece.text + piece.after for piece in passage])
            for span in self._find_or_recall_candidates(text, policy, fingerprint):
                candidates.append(replace(span, start=span.start + position, end=span.end + position))
            texts.append(text)
            for piece in passage:
                end = position + len(piece.text)
                if piece.set_text is not None:
                    pieces.append(piece)
                    parts.append((position, end))
                    if piece.is_person and policy.looks_for("PERSON"):
                        candidates.append(Span(position, end, "PERSON", 1.0, _NAME_SOURCE))
                position = end + len(piece.after)
        document = Document(scope, "".join(texts), parts=tuple(parts))
        candidates += self._find_look_alikes(document.text, policy, scope)
        return document, pieces, _clip_spans(resolve_candidates(document, policy, candidates), parts)

    def _find_look_alikes(self, text: str, policy: Policy, scope: str) -> Iterator[Span]:
        """Yield what looks like a placeholder that the conversation made earlier, which the model may remember."""
        if not scope or self._vault is None or not (entries := self._vault.known(scope)):
            return
        for surface in Restorer(entries).list_originals(text):
            for placeholder in find_placeholders(surface, list_policy_grammars(policy))[:1]:
                if policy.looks_for(placeholder.label):
                    for match in re.finditer(re.escape(surface), text):
                        yield Span(match.start(), match.end(), placeholder.label, 1.0, _LOOK_ALIKE_SOURCE)

    def _find_or_recall_candidates(self, text: str, policy: Policy, policy_fingerprint: bytes) -> tuple[Span, ...]:
        """Return the findings in a passage, remembered from an earlier request where they are."""
        digest = hmac.digest(self._secret, policy_fingerprint + text.encode("utf-8", "surrogatepass"), "sha256")
        with self._lock:
            remembered = self._findings.get(digest)
            if remembered is not None:
                self._findings.move_to_end(digest)
                return remembered
        is_cached = self._key is not None and policy.llm["cache"]
        with unlocked(derive_operator_key(self._key, "llm cache")) if is_cached else nullcontext():
            candidates = tuple(find_candidates(Document("", text), policy))
        with self._lock:
            self._findings[digest] = candidates
            if len(self._findings) > _REMEMBERED:
                self._findings.popitem(last=False)
        return candidates


def _clip_spans(spans: Sequence[Span], parts: Sequence[Interval]) -> list[Span]:
    """Return the spans as far as they lie in the parts; a span over several parts becomes several."""
    return [
        replace(span, start=start, end=end)
        for span in spans
        for start, end in clip_intervals(parts, span.start, span.end)
        if start < end
    ]


def _find_example_placeholder(edits: Sequence[Edit], policy: Policy) -> str:
    """Return the first placeholder whose original can be restored, as an example of what the model must keep."""
    for edit in edits:
        traits = get_traits_by_name(edit.operator)
        if traits.writes_placeholders and not traits.lossy:
            for placeholder in find_placeholders(edit.replacement, list_policy_grammars(policy)):
                return edit.replacement[placeholder.start : placeholder.end]
    return ""


NOTE = (
    "Names and other details were replaced by placeholders such as {tag}. Each stands for one real thing, the same "
    "everywhere. Write a placeholder exactly as it stands, with its signs and its number, wherever you mean that "
    "thing, also in JSON and in the arguments of tools. Do not explain, translate, split or invent placeholders."
)
FORM_NOTE = (
    " Behind the number, .given and .family stand for that part of a person's name, and .short for the short name of "
    "another thing; you may write them yourself, as in a greeting."
)
_INSTRUCTING = ("system", "developer")


def append_placeholder_note(holder: dict[str, Any], note: str, *, name: str) -> None:
    """Append the note to a field that instructs the model: a text, a list of parts, or nothing yet."""
    content = holder.get(name)
    if isinstance(content, list):
        content.append({"type": "text", "text": note})
    else:
        holder[name] = f"{content}\n\n{note}" if content else note


def add_placeholder_note_to_messages(body: dict[str, Any], note: str) -> None:
    """Add the note to the first message, if that instructs the model, else in a message before it."""
    messages = body.setdefault("messages", [])
    first = messages[0] if messages else {}
    if first.get("role") in _INSTRUCTING and isinstance(first.get("content"), (str, list)):
        append_placeholder_note(first, note, name="content")
    else:
        messages.insert(0, {"role": "system", "content": note})


def wants_json(body: dict[str, Any]) -> bool:
    """Whether the answer's text is to be JSON."""
    holders = (body.get("text"), body.get("output_config"))
    forms = (body.get("response_format"), body.get("output_format"))
    form = next((f for f in (*forms, *(h.get("format") for h in holders if isinstance(h, dict))) if f), None)
    return isinstance(form, dict) and form.get("type") in ("json_object", "json_schema")


_WARMING = "Dear Ms Brook, call me on 212-555-0142."


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One of the API's endpoints.

    Attributes:
        path: below ``/v1/``.
        readers: of the fields of its requests.
        explain: adds the note on placeholders for the model; None: no model reads it.
    """

    path: str
    readers: FieldReaders = field(repr=False)
    explain: Callable[[dict[str, Any], str], None] | None = None


ENDPOINTS = (
    Endpoint("chat/completions", {**CHAT, **EXTRAS}, add_placeholder_note_to_messages),
    Endpoint("responses", RESPONSES, partial(append_placeholder_note, name="instructions")),
    Endpoint("messages", MESSAGES, partial(append_placeholder_note, name="system")),
    Endpoint("messages/count_tokens", MESSAGES, partial(append_placeholder_note, name="system")),
    Endpoint("embeddings", EMBEDDINGS),
)


@dataclass(frozen=True, slots=True)
class ProtectedRequest:
    """A request that may be sent.

    Attributes:
        path: of the endpoint that it came to.
        body: as it is sent.
        original: as the client wrote it.
        stream: whether the answer comes in events.
        protected: the outcome of protecting it.
        restoring: for its answer.
        milliseconds: that reading and protecting took.
    """

    path: str
    body: bytes = field(repr=False)
    original: dict[str, Any] = field(repr=False)
    stream: bool
    protected: Protected
    restoring: AnswerRestorer = field(repr=False)
    milliseconds: float


class Preparer:
    """Reads and protects requests. Safe for threads.

    Args:
        settings: of the gateway.
        vault: stores conversations; None: there are none.
        key: secret of keyed operators; None: the vault's own.
        threads: windows of a text that the tagger computes at once.

    Attributes:
        secret: for digests of identifiers.
        policies: those that requests may name.

    Raises:
        UsageError: a policy is not valid, or needs a key where there is none.
    """

    def __init__(self, settings: Settings, vault: Vault | None, key: bytes | str | None, threads: int) -> None:
        self._settings = settings
        self._protector = Protector(key, vault)
        self._withheld = WithheldOriginals()
        self.secret = vault.operator_key if vault is not None else os.urandom(32)
        names = [settings.policy, *settings.policies]
        for client in settings.clients.values():
            names += [client.policy, *client.policies]
        self.policies = {name: _prepare_policy(Policy.load(name), threads) for name in dict.fromkeys(names) if name}
        for policy in self.policies.values():  # check that each works, and load what it needs
            text = RequestText(settings, self.secret)
            text.add_text_passage(_WARMING, lambda result: None)
            self._protector.protect_passages_in_place(text.passages, policy)

    def protect_request(self, endpoint: Endpoint, raw_body: bytes, policy: Policy, scope: str) -> ProtectedRequest:
        """Return the request that is sent in place of the client's.

        Args:
            endpoint: that it came to.
            raw_body: its body.
            policy: what to find, and how to replace it.
            scope: of its conversation in the vault; empty: it belongs to none.

        Raises:
            Refusal: something in it may not be sent.
            AllonymError: it cannot be protected.
        """
        start = perf_counter()
        original = _parse_json_body(raw_body)
        body = copy.deepcopy(original)
        put_back = self._withheld.put_back(body, scope)
        protected = self._protect_body(endpoint, body, policy, scope)
        if put_back and any(map(read_strings(body).__contains__, put_back)):  # one that no detector sees there
            body = copy.deepcopy(original)
            protected = self._protect_body(endpoint, body, policy, scope)
        content = json.dumps(body, separators=(",", ":"), allow_nan=False).encode()
        destination = protected.destination
        if put_back:  # an address that was withheld from the client has not become the client's
            strings, restore = read_strings(original), protected.restorer.restore
            addresses = frozenset(address for address in destination.addresses if restore(address).text in strings)
            destination = replace(destination, addresses=addresses)
        restoring = AnswerRestorer(
            protected.restorer,
            json=wants_json(original),
            destination=destination,
            internal_tools=self._settings.internal_tools,
            remember=partial(self._withheld.remember, scope),
        )
        elapsed = (perf_counter() - start) * 1000
        stream = original.get("stream") is True
        return ProtectedRequest(endpoint.path, content, original, stream, protected, restoring, elapsed)

    def _protect_body(self, endpoint: Endpoint, body: dict[str, Any], policy: Policy, scope: str) -> Protected:
        """Protect a body in place."""
        text = RequestText(self._settings, self.secret)
        collect_request_texts(text, body, endpoint.readers)
        if text.stateful and not scope:
            raise Refusal(
                "what the upstream keeps of earlier requests holds placeholders of theirs: name the conversation in "
                "the header X-Allonym-Conversation, which needs a vault",
                "",
                "conversation_required",
            )
        size = sum(len(piece.text) for passage in text.passages for piece in passage)
        most = self._settings.max_characters
        if size > most:
            raise Refusal(f"has {size:,} characters of text; {most:,} are allowed", "request", "too_large", 413)
        protected = self._protector.protect_passages_in_place(text.passages, policy, scope)
        text.write_back_json_texts(protected.replacements)
        if self._settings.explain and protected.tag and endpoint.explain is not None:
            note = NOTE.format(tag=protected.tag) + (FORM_NOTE if "{form}" in policy.style else "")
            endpoint.explain(body, note)
        return protected


def _parse_json_body(raw: bytes) -> dict[str, Any]:
    """Return a JSON object; anything else is refused."""

    def refuse_constant(name: str) -> float:
        raise ValueError(name)

    try:
        value = json.loads(raw.decode("utf-8"), parse_constant=refuse_constant)
    except RecursionError:
        raise Refusal("the body is nested too deeply", "", "invalid_json") from None
    except (UnicodeDecodeError, ValueError) as error:
        where = f" at character {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
        raise Refusal(f"the body is not JSON in UTF-8{where}", "", "invalid_json") from None
    if not isinstance(value, dict):
        raise Refusal("the body must be a JSON object", "", "invalid_json")
    return value


def _prepare_policy(policy: Policy, threads: int) -> Policy:
    """Return the policy with one pseudonym of a name in all requests, since a conversation is sent again and again, and
    with several windows of a text computed at once, unless it sets these."""
    if policy.consistent == "auto":
        policy = policy.with_(consistent="scope")
    tagger = policy.tables.get("tagger", {})
    if "tagger" not in policy.detectors or "threads" in tagger:
        return policy
    threaded = MappingProxyType({**tagger, "threads": threads})
    return policy.with_(tables=MappingProxyType({**policy.tables, "tagger": threaded}))
