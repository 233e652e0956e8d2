"""A summary in place of a chunk whose entities cannot be exchanged (P1's conclusion): extracted, or by a model.

The extracted one keeps the chunk's own sentences: those that hold nothing that had to go, and of these the half whose
words are the least rare. A model gets the chunk with what had to go covered; an answer that names any of it, is longer
than the chunk or no answer at all leaves the chunk to extraction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from typing import Protocol

from allonym.errors import EndpointError
from allonym.llm.client import Reply, Request
from allonym.llm.templates import messages
from allonym.text.names import plain
from allonym.text.words import compile_words

SHARE = 0.5
"""Share of a chunk's sentences that a summary keeps at most, one at least."""

_TELLING = compile_words(least=2)
_WORD = compile_words(digits=False, least=3)
_SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {"summary": {"type": "string"}},
    "required": ["summary"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Rarity:
    """How rare words are among the chunks of a corpus.

    Attributes:
        chunks: how many there are.
        holders: word in small letters to how many of them hold it. Hidden from ``repr``.
    """

    chunks: int
    holders: Mapping[str, int] = field(repr=False)

    @classmethod
    def of(cls, texts: Iterable[str]) -> Rarity:
        """Counts the words of each text once."""
        counts: Counter[str] = Counter()
        n = 0
        for text in texts:
            counts.update(set(_words(text)))
            n += 1
        return cls(n, dict(counts))

    def score(self, text: str) -> float:
        """Mean of log(n / holders) over the words of a text, 0 or more; 0 without any."""
        found = _words(text)
        return sum(log((self.chunks + 1) / (self.holders.get(w, 0) + 1)) for w in found) / max(1, len(found))


def _words(text: str) -> list[str]:
    return [w.lower() for w in _WORD.findall(text)]


def extract(sentences: Sequence[str], clean: Sequence[bool], rarity: Rarity) -> tuple[int, ...]:
    """Which sentences stay, in order: of the clean ones those with the least rare words; where none is, one.

    Args:
        sentences: of one chunk.
        clean: whether each holds nothing that had to go.
        rarity: of the corpus.
    """
    if not sentences:
        return ()
    order = sorted(range(len(sentences)), key=lambda i: (rarity.score(sentences[i]), i))
    good = [i for i in order if clean[i] and _words(sentences[i])]
    most = max(1, int(len(sentences) * SHARE))
    return tuple(sorted(good[:most] or order[:1]))


@dataclass(frozen=True, slots=True)
class Passage:
    """What a model is asked to summarise: the text as it may leave, and the words that its answer must not hold."""

    text: str = field(repr=False)
    banned: frozenset[str] = field(repr=False)


class Asker(Protocol):
    """What is needed of :class:`allonym.llm.Client`."""

    @property
    def prompts(self) -> object: ...

    def ask_all(self, requests: Sequence[Request]) -> Sequence[Reply | EndpointError]: ...


def ask(client: Asker, passages: Sequence[Passage], language: str = "en") -> list[str | None]:
    """A summary of each passage by a language model; None where there was none that can be used, after two tries."""
    out: list[str | None] = [None] * len(passages)
    for again in (False, True):
        open_ = [i for i, found in enumerate(out) if found is None]
        requests = []
        for i in open_:
            asked = messages("summarise", client.prompts, again=again, text=passages[i].text, language=language)
            requests.append(Request(asked, _SCHEMA, "summary"))
        for i, reply in zip(open_, client.ask_all(requests) if requests else (), strict=True):
            out[i] = None if isinstance(reply, EndpointError) else _fitting(reply, passages[i])
    return out


def _fitting(reply: Reply, passage: Passage) -> str | None:
    """What the model said, if it may stand for the passage."""
    said = (reply.answer or {}).get("summary")
    if not isinstance(said, str):
        return None
    text = " ".join(said.split())
    if not _words(text) or len(text) > len(passage.text) or any(c in "[]{}<>" for c in text):
        return None
    return None if passage.banned & set(telling(text)) else text


def telling(text: str) -> list[str]:
    """The words of a text in plain form, those of two letters or digits and more."""
    return _TELLING.findall(plain(text)) if text else []
