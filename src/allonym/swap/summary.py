"""A summary in place of a chunk whose entities cannot be exchanged (P1's conclusion): extracted, or by a model.

An extracted summary keeps sentences of the chunk without an entity that must go, and of these the half whose words are
the least rare. A model gets the chunk with its entities covered. If its answer names any of them, is longer than the
chunk, or does not come, the summary is extracted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log

from allonym.errors import EndpointError
from allonym.llm.client import Client, Reply, Request
from allonym.llm.templates import TEXT, build_messages, make_object_schema
from allonym.text.names import normalize_surface
from allonym.text.words import compile_word_pattern, find_words

SHARE = 0.5
"""Most of a chunk's sentences that a summary keeps, as a share; one at least."""

_WORD = compile_word_pattern(digits=False, least=3)
_SCHEMA = make_object_schema({"summary": TEXT})


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
        """Count the words of each text once."""
        sets = [set(_list_lower_words(text)) for text in texts]
        return cls(len(sets), Counter(word for words in sets for word in words))

    def compute_mean_rarity(self, text: str) -> float:
        """Return the mean of log(n / holders) over the words of a text, 0 or more; 0 without any."""
        words = _list_lower_words(text)
        return sum(log((self.chunks + 1) / (self.holders.get(w, 0) + 1)) for w in words) / max(1, len(words))


def _list_lower_words(text: str) -> list[str]:
    return [w.lower() for w in _WORD.findall(text)]


def choose_sentence_indices(sentences: Sequence[str], clean: Sequence[bool], rarity: Rarity) -> tuple[int, ...]:
    """Return the sentences that stay, in order: of the clean ones those with the least rare words; if none is, one.

    Args:
        sentences: of one chunk.
        clean: whether each holds no entity that must go.
        rarity: of the corpus.
    """
    if not sentences:
        return ()
    order = sorted(range(len(sentences)), key=lambda i: (rarity.compute_mean_rarity(sentences[i]), i))
    good = [i for i in order if clean[i] and _list_lower_words(sentences[i])]
    most = max(1, int(len(sentences) * SHARE))
    return tuple(sorted(good[:most] or order[:1]))


@dataclass(frozen=True, slots=True)
class Passage:
    """A text for a model to summarise, with entities covered, and the words that its answer must not hold."""

    text: str = field(repr=False)
    banned: frozenset[str] = field(repr=False)


def request_summaries(client: Client, passages: Sequence[Passage], language: str = "en") -> list[str | None]:
    """Return a summary of each passage by a language model; None if there is no usable one after two tries."""
    out: list[str | None] = [None] * len(passages)
    for again in (False, True):
        missing = [i for i, summary in enumerate(out) if summary is None]
        requests = []
        for i in missing:
            prompt = build_messages("summarise", client.prompts, again=again, text=passages[i].text, language=language)
            requests.append(Request(prompt, _SCHEMA, "summary"))
        for i, reply in zip(missing, client.ask_all(requests) if requests else (), strict=True):
            out[i] = None if isinstance(reply, EndpointError) else _get_usable_summary(reply, passages[i])
    return out


def _get_usable_summary(reply: Reply, passage: Passage) -> str | None:
    """Return the model's summary, if it may replace the passage."""
    summary = (reply.answer or {}).get("summary")
    if not isinstance(summary, str):
        return None
    text = " ".join(summary.split())
    if not _list_lower_words(text) or len(text) > len(passage.text) or any(c in "[]{}<>" for c in text):
        return None
    return None if passage.banned & set(list_plain_words(text)) else text


def list_plain_words(text: str) -> list[str]:
    """Return the words of a text in plain form that have two letters or digits, or more."""
    return [word for word in find_words(normalize_surface(text)) if len(word) > 1] if text else []
