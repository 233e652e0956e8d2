"""Writing a release: one plan per document, the released texts, and what of each chunk became what.

Only recognised mentions change. A swapped entity's mentions take the donor's forms; what was not swapped falls back as
its category says; what a section leaves out is dropped. Each plan is bound to the original text and holds the originals
in memory, so that it can undo itself.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from allonym.document import Entity, Interval, Span, merge, subtract
from allonym.errors import UnknownNameError
from allonym.keys import subkey
from allonym.labels import Taxonomy
from allonym.plan import Edit, Plan, apply_edits, apply_edits_to_parts, digest
from allonym.policy import Policy, Rule
from allonym.replace import make_plan
from allonym.replace.cast import CorpusBook
from allonym.swap.categories import category_of, label_of
from allonym.swap.chunking import sentences
from allonym.swap.coarser import Coarser
from allonym.swap.corpus import Corpus, Placed, Slot, Value
from allonym.swap.forms import fitted, with_articles
from allonym.swap.recoding import Recoding
from allonym.swap.sections import everything
from allonym.swap.settings import FALLBACKS
from allonym.swap.summary import Passage, Rarity, ask, extract, telling

SWAP, GENERALISED, SUMMARY, DROP = "swap@1", "generalise@1", "summarise@1", "drop@1"
"""Operators of swapped entities, generalised ones, summaries, and text that a section leaves out."""
COMMON = 0.05
"""Share of the chunks from which on a word of a name gives nothing away in a summary."""

_OPERATORS = frozenset({"pseudonym", "generalise", "suppress", "tag"})
_start, _end = attrgetter("start"), attrgetter("end")


class Mark(NamedTuple):
    """A stretch of a chunk's text that was changed; ``kind`` is ``swap`` or an operator's name."""

    start: int
    end: int
    category: str
    kind: str


@dataclass(frozen=True, slots=True)
class ChunkText:
    """A chunk as released.

    Attributes:
        text: what stands there now. Hidden from ``repr``.
        start, end: where, in the released document.
        marks: what changed, in ``text``; what was removed has no mark here.
        marks_before: the same places in ``Chunk.text``.
    """

    text: str = field(repr=False)
    start: int
    end: int
    marks: tuple[Mark, ...] = ()
    marks_before: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Written:
    """A release, written.

    Attributes:
        plans: per document, from the original text to the released one.
        texts: the released documents.
        chunk_texts: per chunk of the corpus.
        swapped: values that were exchanged, by category.
        fallen: values that were not, by what became of them: an operator's name, ``summarise`` or ``keep``.
        by_category: the same per category.
        summaries: chunks that were summarised, by ``extracted`` and ``model``.
    """

    plans: tuple[Plan, ...]
    texts: tuple[str, ...]
    chunk_texts: tuple[ChunkText, ...]
    swapped: Mapping[str, int]
    fallen: Mapping[str, int]
    by_category: Mapping[str, Mapping[str, int]]
    summaries: Mapping[str, int]

    def __repr__(self) -> str:
        return f"Written({len(self.texts)} documents, {sum(self.swapped.values())} entities exchanged)"


def chunk_text(corpus: Corpus, chunk: int, placed: Placed) -> str:
    """The chunk as released, without fall-backs: what is embedded after an exchange.

    Args:
        corpus: as it was read.
        chunk: which of its chunks.
        placed: slot to the slot whose entity stands there.
    """
    this = corpus.chunks[chunk]
    text = corpus.documents[this.document].text
    changes: list[tuple[int, int, str]] = []
    for at, value in enumerate(this.values):
        donor = placed.get(Slot(chunk, at))
        if donor is not None:
            changes += fitted(text, value, corpus.chunks[donor.chunk].values[donor.value])
    if not changes:
        return this.text
    edits = [Edit(a, b, new, "") for a, b, new in with_articles(text, changes, this.start)]
    base = within(corpus.plans[this.document].edits, this.start, this.end)
    return apply_edits_to_parts(text, ((this.start, this.end),), beside(base, edits, text))[0]


def within(edits: Sequence[Edit], start: int, end: int) -> Sequence[Edit]:
    """Those of the sorted edits that touch ``start..end``."""
    return edits[bisect_left(edits, start, key=_end) : bisect_left(edits, end, key=_start)]


def beside(fixed: Sequence[Edit], more: Sequence[Edit], text: str) -> list[Edit]:
    """Both, sorted; of each of ``more`` only what does not reach into any of ``fixed``; nothing may be left of it.

    A replacement reaches into its neighbour's only with what it takes along: a space, letters that stick to it, the
    article before it.
    """
    if not fixed:
        return list(more)
    out = list(fixed)
    taken = merge((e.start, e.end) for e in fixed)
    starts = [a for a, _ in taken]
    for edit in more:
        i = bisect_left(starts, edit.end)
        if not i or taken[i - 1][1] <= edit.start:
            out.append(edit)
            continue
        left = list(subtract((edit.start, edit.end), taken[max(0, i - 2) : i]))
        if left:
            a, b = max(left, key=lambda piece: piece[1] - piece[0])
            out.append(replace(edit, start=a, end=b, original=text[a:b]))
    out.sort(key=lambda e: (e.start, e.end))
    return out


def write(
    corpus: Corpus,
    placed: Placed,
    *,
    policy: str | Path | Policy = "swap",
    fallback: Mapping[str, str] = MappingProxyType({}),
    key: bytes | str | None = None,
    scope: str = "",
    recode: Recoding | None = None,
) -> Written:
    """Write a release.

    Args:
        corpus: as it was read.
        placed: slot to the slot whose entity stands there; what is not in it was not exchanged.
        policy: language, tags and options of operators, and the endpoint of a language model, if one is to summarise.
        fallback: category, or ``*`` for the other swapped ones, to what becomes of entities that were not exchanged:
            one of :data:`allonym.swap.settings.FALLBACKS`. A category that it does not name is kept. ``summarise`` puts
            a summary of the chunk in place of it, by the policy's language model where it names one, else extracted.
        key: secret of keyed fall-backs (``pseudonym``), at least 16 bytes.
        scope: names the release, for these.
        recode: the user's classes for ``generalise``: ``an investment bank`` for one. By default, and for what it does
            not know, the knowledge base's; in English only, else the operator ``generalise`` decides.

    Raises:
        UnknownNameError: a fall-back is none.
        UsageError: a keyed operator is needed for an entity of the corpus and there is no key.
    """
    loaded, coarser = Policy.load(policy), Coarser(recode)
    ways = _ways(corpus, fallback)
    fates = [
        tuple(
            "swap" if Slot(c, v) in placed else ways.get(value.category, "keep") for v, value in enumerate(chunk.values)
        )
        for c, chunk in enumerate(corpus.chunks)
    ]
    rules = _rules(corpus, fates, loaded)
    by_document: list[list[int]] = [[] for _ in corpus.documents]
    for c, chunk in enumerate(corpus.chunks):
        by_document[chunk.document].append(c)
    cuts, counts = _summaries(corpus, placed, fates, loaded, key)
    names = {label.name: category_of(label.name, corpus.categories, loaded.taxonomy) for label in loaded.taxonomy}
    plans: list[Plan] = []
    texts: list[str] = []
    pieces: dict[int, ChunkText] = {}
    for d, document in enumerate(corpus.documents):
        edits = _mentions(corpus, d, by_document[d], placed, fates, ways, rules, key, scope, coarser)
        edits = beside(_removed(corpus, d, edits, cuts.get(d, ())), edits, document.text)
        text = apply_edits(document.text, edits)
        plans.append(Plan(digest(document.text), tuple(edits), corpus.plans[d].notes, digest(text)))
        texts.append(text)
        pieces.update(_pieces(corpus, d, by_document[d], edits, text, names))
    told = _counted(corpus, fates)
    return Written(
        tuple(plans),
        tuple(texts),
        tuple(pieces[c] for c in range(len(corpus.chunks))),
        MappingProxyType({c: n["swap"] for c, n in told.items() if n["swap"]}),
        MappingProxyType({w: n for w in FALLBACKS if (n := sum(t[w] for t in told.values()))}),
        MappingProxyType({c: dict(sorted((w, n) for w, n in t.items() if w != "swap")) for c, t in told.items()}),
        MappingProxyType(counts),
    )


def _ways(corpus: Corpus, fallback: Mapping[str, str]) -> dict[str, str]:
    for category, way in fallback.items():
        if way not in FALLBACKS:
            raise UnknownNameError("fall-back", way, FALLBACKS, f"category {category}")
    return {c: fallback.get(c, fallback.get("*", "keep")) for c in corpus.swapped} | {
        c: way for c, way in fallback.items() if corpus.categories.get(c) == "free"
    }


def _rules(corpus: Corpus, fates: Sequence[Sequence[str]], policy: Policy) -> Policy:
    """The policy whose rules are the fall-backs that are needed, with its own options where it has them."""
    rules: dict[str, Rule] = {}
    for chunk, fate in zip(corpus.chunks, fates, strict=True):
        for value, way in zip(chunk.values, fate, strict=True):
            label = label_of(value.category)
            if way in _OPERATORS and label not in rules:
                own = policy.rule(label)
                rules[label] = own if own.operator == way else Rule(way)
    return policy.with_(rules=MappingProxyType(rules), default=Rule("suppress"))


def _counted(corpus: Corpus, fates: Sequence[Sequence[str]]) -> dict[str, Counter[str]]:
    out: dict[str, Counter[str]] = {c: Counter() for c in corpus.categories if corpus.categories[c] in ("swap", "free")}
    for chunk, fate in zip(corpus.chunks, fates, strict=True):
        for value, way in zip(chunk.values, fate, strict=True):
            if value.category in out:
                out[value.category][way] += 1
    return out


# One document


class _After(CorpusBook):
    """Numbers for tags that follow those that stand in a document already."""

    def __init__(self, standing: Iterable[str]) -> None:
        super().__init__()
        self._standing = "\n".join(standing)
        self._begun: dict[str, int] = {}

    def number(self, kind: str) -> int:
        """See :class:`allonym.replace.Book`."""
        if kind not in self._begun:
            head, _, tail = kind.partition(" ")[2].rpartition("0")
            shape = re.escape(head) + r"(\d{1,9})" + re.escape(tail)
            self._begun[kind] = max(map(int, re.findall(shape, self._standing)), default=0) if head else 0
        return self._begun[kind] + super().number(kind)


def _mentions(
    corpus: Corpus,
    d: int,
    chunks: Sequence[int],
    placed: Placed,
    fates: Sequence[Sequence[str]],
    ways: Mapping[str, str],
    policy: Policy,
    key: bytes | str | None,
    scope: str,
    coarser: Coarser,
) -> list[Edit]:
    """The edits of all mentions: the base plan's, swapped ones, and fall-backs.

    A mention whose donor has the very same form would stay as it is; it goes by the same rules, or is suppressed.
    """
    document, base = corpus.documents[d], corpus.plans[d].edits
    given: dict[Span, tuple[str, str]] = {}
    wanted: list[tuple[Value, Sequence[Span]]] = []
    for c in chunks:
        for v, (value, way) in enumerate(zip(corpus.chunks[c].values, fates[c], strict=True)):
            if way == "keep" or corpus.categories.get(value.category) not in ("swap", "free"):
                continue
            new: list[tuple[int, int, str]] = []
            spans: Sequence[Span] = value.spans
            if way == "swap":
                donor = placed[Slot(c, v)]
                donor_value = corpus.chunks[donor.chunk].values[donor.value]
                new = fitted(document.text, value, donor_value, language=policy.language)
            elif way == "generalise" and policy.language == "en":
                new = coarser.fitted(document.text, value)
            for span, (a, b, out) in zip(value.spans, new, strict=False):
                if out != document.text[a:b]:
                    given[span] = (out, SWAP if way == "swap" else GENERALISED)
            if way == "swap" and ways.get(value.category, "keep") == "keep":
                spans = [s for s in value.spans if s in given]
            if spans:
                wanted.append((value, spans))
    book = _After(e.replacement for e in base if e.operator.startswith("tag@"))
    entities = _entities(corpus, d, wanted, given, policy.taxonomy)
    plan = make_plan(document, entities, policy, key=key, scope=scope, book=book, given=given)
    return beside(base, plan.edits, document.text)


def _entities(
    corpus: Corpus,
    d: int,
    wanted: Sequence[tuple[Value, Sequence[Span]]],
    settled: Collection[Span],
    taxonomy: Taxonomy,
) -> list[Entity]:
    """The values as entities of the document, linked as its own are; settled mentions apart from the others."""
    known = {(s.start, s.end): n for n, e in enumerate(corpus.entities[d]) for s in e.spans}
    found: dict[tuple[int, str, str, bool], list[Span]] = {}
    for value, spans in wanted:
        covered = label_of(value.category)
        for span in spans:
            n = known.get((span.start, span.end), -1)
            label = corpus.entities[d][n].label if n >= 0 else covered
            if category_of(label, (value.category,), taxonomy) != value.category:
                label = covered
            found.setdefault((n, "" if n >= 0 else value.key, label, span in settled), []).append(span)
    out = []
    for (n, name, label, _), group in found.items():
        entity = corpus.entities[d][n] if n >= 0 else None
        out.append(Entity(entity.key if entity else f"{label}:{name}", label, tuple(sorted(group))))
    return sorted(out, key=lambda e: e.spans[0])


def _removed(corpus: Corpus, d: int, edits: Sequence[Edit], cuts: Sequence[Edit]) -> list[Edit]:
    """What goes as a whole: summarised stretches, with all that is edited in them, and what the section leaves out."""
    document = corpus.documents[d]
    out: list[Edit] = []
    for cut in cuts:
        reach = [e for e in within(edits, cut.start, cut.end) if e.start < cut.end and cut.start < e.end]
        low, high = min([cut.start, *(e.start for e in reach)]), max([cut.end, *(e.end for e in reach)])
        low = max(low, out[-1].end) if out else low
        if low >= high:
            continue
        lead, trail = document.text[low : cut.start], document.text[cut.end : high]
        new = (lead if lead.isspace() else "") + cut.replacement + (trail if trail.isspace() else "")
        out.append(replace(cut, start=low, end=high, replacement=new, original=document.text[low:high]))
    if corpus.settings.get("rest") != "anonymize":
        taken = merge((e.start, e.end) for e in (*out, *edits))
        section = merge(corpus.sections[d])
        for stretch in everything(document):
            for gap in subtract(stretch, section):
                out += [Edit(a, b, "", "", 0, DROP, document.text[a:b]) for a, b in subtract(gap, taken)]
    return sorted(out, key=_start)


# Summaries


def _summaries(
    corpus: Corpus, placed: Placed, fates: Sequence[Sequence[str]], policy: Policy, key: bytes | str | None
) -> tuple[dict[int, list[Edit]], dict[str, int]]:
    """Per document the edits that make chunks summaries, and how many there are of which sort."""
    chosen = [c for c, fate in enumerate(fates) if "summarise" in fate]
    if not chosen:
        return {}, {}
    rarity = Rarity.of(c.text for c in corpus.chunks)
    said: list[str | None] = [None] * len(chosen)
    if policy.llm["url"]:
        from allonym.llm import client_for

        client = client_for(policy.llm, subkey(key, "llm cache") if key is not None else None)
        said = ask(client, [_passage(corpus, c, rarity) for c in chosen], policy.language)
    out: dict[int, list[Edit]] = {}
    counts = {"extracted": 0, "model": 0}
    for c, summary in zip(chosen, said, strict=True):
        chunk = corpus.chunks[c]
        text = corpus.documents[chunk.document].text
        counts["extracted" if summary is None else "model"] += 1
        if summary is None:
            gone = _left_out(corpus, c, fates[c], rarity)
        else:
            body = text[chunk.start : chunk.end]
            trail = body[len(body.rstrip()) :]
            gone = [(chunk.start, chunk.end, summary + trail)]
        out.setdefault(chunk.document, []).extend(Edit(a, b, new, "", 0, SUMMARY, text[a:b]) for a, b, new in gone)
    return out, {name: n for name, n in counts.items() if n}


def _left_out(corpus: Corpus, c: int, fate: Sequence[str], rarity: Rarity) -> list[tuple[int, int, str]]:
    """The sentences of a chunk that its extracted summary does without."""
    chunk = corpus.chunks[c]
    text = corpus.documents[chunk.document].text
    held = [s for v, way in zip(chunk.values, fate, strict=True) if way == "summarise" for s in v.spans]
    every = [s for v in chunk.values for s in v.spans]
    whole: list[Interval] = []
    for a, b in sentences(text, chunk.start, chunk.end):
        if whole and any(s.start < a < s.end for s in every):
            whole[-1] = (whole[-1][0], b)
        else:
            whole.append((a, b))
    clean = [not any(s.start < b and a < s.end for s in held) for a, b in whole]
    kept = set(extract([text[a:b] for a, b in whole], clean, rarity))
    return [(a, b, "") for a, b in merge(w for n, w in enumerate(whole) if n not in kept)]


def _passage(corpus: Corpus, c: int, rarity: Rarity) -> Passage:
    """A chunk with every entity of it covered; the words of these that tell, and those of what its document hides."""
    chunk = corpus.chunks[c]
    text = corpus.documents[chunk.document].text
    every = corpus.plans[chunk.document].edits
    base = within(every, chunk.start, chunk.end)
    covers = [Edit(s.start, s.end, f"[{v.category}]", "") for v in chunk.values for s in v.spans]
    covers.sort(key=_start)
    hidden = {
        corpus.class_of(c),
        *(e.original for e in every if e.original),
        *(f for v in chunk.values for f in v.forms),
    }
    words = {w for form in hidden for w in telling(form)}
    rare = frozenset(w for w in words if rarity.holders.get(w, 0) < max(2.0, COMMON * rarity.chunks))
    return Passage(apply_edits_to_parts(text, ((chunk.start, chunk.end),), beside(base, covers, text))[0], rare)


# Where things stand afterwards


def _pieces(
    corpus: Corpus, d: int, chunks: Sequence[int], edits: Sequence[Edit], text: str, names: Mapping[str, str]
) -> dict[int, ChunkText]:
    base = set(corpus.plans[d].edits)
    after, before = _Shift(edits), _Shift(corpus.plans[d].edits)
    out = {}
    for c in chunks:
        chunk = corpus.chunks[c]
        start, end = after.at(chunk.start), after.at(chunk.end)
        first = before.at(chunk.start)
        marks, marks_before = [], []
        for edit in within(edits, chunk.start, chunk.end):
            kind = edit.operator.partition("@")[0]
            if edit in base or kind in ("article", "drop") or edit.start < chunk.start or edit.end <= chunk.start:
                continue
            category = names.get(edit.label, "")
            now = after.at(edit.start)
            if edit.replacement:
                marks.append(Mark(now - start, now - start + len(edit.replacement), category, kind))
            a, b = before.at(edit.start) - first, before.at(edit.end) - first
            marks_before.append(Mark(a, min(b, len(chunk.text)), category, kind))
        out[c] = ChunkText(text[start:end], start, end, tuple(marks), tuple(marks_before))
    return out


class _Shift:
    """Where an offset of the original text lies after some edits; inside of one, at its end."""

    def __init__(self, edits: Sequence[Edit]) -> None:
        self._edits = edits
        self._moved = [0]
        for e in edits:
            self._moved.append(self._moved[-1] + len(e.replacement) - (e.end - e.start))

    def at(self, place: int) -> int:
        i = bisect_left(self._edits, place, key=_start)
        if i and self._edits[i - 1].end > place:
            return self._edits[i - 1].end + self._moved[i]
        return place + self._moved[i]
