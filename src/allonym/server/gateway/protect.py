"""From the passages of a request to the text that is sent, and to the restorer of its originals."""

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

from allonym.detection.candidates import find_candidates
from allonym.document import Document, Interval, Span, clip_intervals
from allonym.keys import derive_operator_key
from allonym.llm import unlocked
from allonym.pipeline import replace_found, resolve_candidates
from allonym.plan import Edit
from allonym.policy import Policy
from allonym.replace import subject_of
from allonym.replace.mention import get_traits_by_name, list_policy_grammars
from allonym.restoration import Restorer
from allonym.server.gateway.pieces import Passage, Piece
from allonym.text.placeholders import find_placeholders

if TYPE_CHECKING:
    from allonym.vault import Vault

_REMEMBERED = 8192  # passages whose findings are remembered
_NAME_SOURCE = "gateway:name"


@dataclass(frozen=True, slots=True)
class Protected:
    """The outcome of protecting a request.

    Attributes:
        restorer: of its originals, and those of its conversation.
        labels: how many mentions of each label were replaced.
        tag: one of its tags, as an example; empty where there is none.
    """

    restorer: Restorer
    labels: Mapping[str, int]
    tag: str = field(default="", repr=False)


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
            result = replace_found(document, spans, policy, key=self._key, scope=scope, book=book)
        restorer = Restorer.from_plan(result.plan, vault, scope)
        for piece, text in zip(pieces, result.parts, strict=False):  # without pieces the empty text is the only part
            assert piece.set_text is not None
            if text != piece.text:
                piece.set_text(text)
        tag = _find_example_placeholder(result.plan.edits, policy)
        return Protected(restorer, MappingProxyType(dict(result.report.labels)), tag)

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
        return document, pieces, _clip_spans(resolve_candidates(document, policy, candidates), parts)

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
