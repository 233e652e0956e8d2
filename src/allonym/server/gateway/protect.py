"""From the passages of a request to what is sent, and to what brings the originals back."""

from __future__ import annotations

import hmac
import secrets
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING

from allonym.detect.candidates import find_candidates
from allonym.document import Document, Interval, Span
from allonym.keys import subkey
from allonym.llm import unlocked
from allonym.pipeline import replace_found, resolve_candidates
from allonym.plan import Edit
from allonym.policy import Policy
from allonym.replace import subject_of
from allonym.replace.mention import policy_grammars, traits_named
from allonym.restore import Restorer
from allonym.server.gateway.pieces import Passage, Piece
from allonym.text.placeholders import find_placeholders

if TYPE_CHECKING:
    from allonym.vault import Vault

_KEPT = 8192  # passages whose findings are remembered
_NAMED = "gateway:name"


@dataclass(frozen=True, slots=True)
class Protected:
    """What is known of a protected request.

    Attributes:
        restorer: brings its originals back, and those of its conversation.
        labels: how many mentions of each label were replaced.
        tag: a tag that now stands in it; empty where there is none.
    """

    restorer: Restorer
    labels: Mapping[str, int]
    tag: str = field(default="", repr=False)


class Protector:
    """Replaces what identifies in the passages of requests. Safe for threads.

    What a detector sees in a passage depends on the passage alone and is remembered, in memory and under keyed digests,
    so that a conversation that comes again with one message more costs that message. What depends on the others (names
    found once are covered everywhere, mentions of one person are one entity) is settled for each request as a whole.

    Args:
        key: secret of keyed operators; None: the vault's own, if there is one.
        vault: where conversations are kept.
    """

    def __init__(self, key: bytes | str | None = None, vault: Vault | None = None) -> None:
        self._vault = vault
        self._key = vault.operator_key if vault is not None and key is None else key
        self._secret = secrets.token_bytes(32)
        self._seen: OrderedDict[bytes, tuple[Span, ...]] = OrderedDict()
        self._lock = Lock()

    def protect(self, passages: Sequence[Passage], policy: Policy, scope: str = "") -> Protected:
        """Replace what identifies in all passages, and put the results into their places.

        Args:
            passages: in the order in which a model reads them.
            policy: what to find, and what to do with it.
            scope: the conversation's scope in the vault; empty: this request alone.

        Raises:
            AllonymError: the text cannot be protected; then nothing was put into any place.
        """
        document, puts, spans = self._found(passages, policy, scope)
        vault = self._vault if scope else None
        if vault is None:
            made = replace_found(document, spans, policy, key=self._key, scope=scope)
        else:
            with vault.book(scope, subject_of(document, policy)) as book:
                made = replace_found(document, spans, policy, key=self._key, scope=scope, book=book)
        restorer = Restorer.from_plan(made.plan, vault, scope)
        for piece, text in zip(puts, made.parts, strict=False):  # without any piece the whole, empty text is the part
            assert piece.put is not None
            if text != piece.text:
                piece.put(text)
        tag = _first_placeholder(made.plan.edits, policy)
        return Protected(restorer, MappingProxyType(dict(made.report.labels)), tag)

    def _found(
        self, passages: Sequence[Passage], policy: Policy, scope: str
    ) -> tuple[Document, list[Piece], list[Span]]:
        """The passages as one document, the pieces that are its parts, and what is to be replaced in these."""
        fingerprint = policy.fingerprint().encode()
        texts: list[str] = []
        puts: list[Piece] = []
        parts: list[Interval] = []
        found: list[Span] = []
        at = 0
        for passage in passages:
            text = "".join([piece.text + piece.after for piece in passage])
            for span in self._candidates(text, policy, fingerprint):
                found.append(replace(span, start=span.start + at, end=span.end + at))
            texts.append(text)
            for piece in passage:
                end = at + len(piece.text)
                if piece.put is not None:
                    puts.append(piece)
                    parts.append((at, end))
                    if piece.person and policy.looks_for("PERSON"):
                        found.append(Span(at, end, "PERSON", 1.0, _NAMED))
                at = end + len(piece.after)
        document = Document(scope, "".join(texts), parts=tuple(parts))
        return document, puts, _within(resolve_candidates(document, policy, found), parts)

    def _candidates(self, text: str, policy: Policy, fingerprint: bytes) -> tuple[Span, ...]:
        name = hmac.digest(self._secret, fingerprint + text.encode("utf-8", "surrogatepass"), "sha256")
        with self._lock:
            had = self._seen.get(name)
            if had is not None:
                self._seen.move_to_end(name)
                return had
        kept = self._key is not None and policy.llm["cache"]
        with unlocked(subkey(self._key, "llm cache")) if kept else nullcontext():
            out = tuple(find_candidates(Document("", text), policy))
        with self._lock:
            self._seen[name] = out
            if len(self._seen) > _KEPT:
                self._seen.popitem(last=False)
        return out


def _within(spans: Sequence[Span], parts: Sequence[Interval]) -> list[Span]:
    """The spans as far as they lie in the parts; one that reaches over several becomes several."""
    out: list[Span] = []
    i = 0
    for span in spans:
        while i < len(parts) and parts[i][1] <= span.start:
            i += 1
        j = i
        while j < len(parts) and parts[j][0] < span.end:
            start, end = max(span.start, parts[j][0]), min(span.end, parts[j][1])
            if start < end:
                out.append(span if (start, end) == (span.start, span.end) else replace(span, start=start, end=end))
            j += 1
    return out


def _first_placeholder(edits: Sequence[Edit], policy: Policy) -> str:
    """Return the first placeholder whose original can be restored, as an example of what the model must keep."""
    for edit in edits:
        declared = traits_named(edit.operator)
        if declared.writes_placeholders and not declared.lossy:
            for placeholder in find_placeholders(edit.replacement, policy_grammars(policy)):
                return edit.replacement[placeholder.start : placeholder.end]
    return ""
