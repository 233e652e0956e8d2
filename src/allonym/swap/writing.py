"""Writing a release: one plan per document, the released texts, and the changes in each chunk.

Only recognised mentions change. A swapped entity's mentions take the donor's forms; other entities fall back as their
category says; text outside the section is dropped. Each plan is bound to the original text and holds the originals in
memory, so that it can undo itself.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from allonym.detection.languages import settle_language
from allonym.document import Entity, Reach, Span, merge_intervals, subtract_intervals
from allonym.errors import UnknownNameError
from allonym.keys import derive_operator_key
from allonym.plan import Edit, Plan, apply_edits, apply_edits_to_parts, digest
from allonym.policy import Policy, Rule
from allonym.replace import make_plan
from allonym.replace.cast import CorpusBook
from allonym.swap.categories import find_category, get_category_label
from allonym.swap.chunking import join_cut_tiles, split_sentences
from allonym.swap.corpus import Corpus, Placed, Slot, Value
from allonym.swap.fluency import Fluency
from allonym.swap.sections import everything
from allonym.swap.settings import FALLBACKS
from allonym.swap.summary import Passage, Rarity, choose_sentence_indices, list_plain_words, request_summaries
from allonym.swap.surfaces import Change, GeneralNouns, adjust_articles, fit_donor
from allonym.swap.table import Recoding
from allonym.text.fold import fold

SWAP, GENERALISED, SUMMARY, DROP = "swap@1", "generalise@1", "summarise@1", "drop@1"
"""Operators of swapped entities, generalised ones, summaries, and text outside the section."""
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
        text: its new text. Hidden from ``repr``.
        start, end: offsets in the released document.
        marks: changes in ``text``; a removal has no mark here.
        marks_before: the same changes in ``Chunk.text``.
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
        swapped: number of values that were exchanged, by category.
        fallen: number of other values, by treatment: an operator's name, ``summarise`` or ``keep``.
        by_category: the same per category.
        summaries: number of summarised chunks, by ``extracted`` and ``model``.
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


def make_swapped_text(corpus: Corpus, chunk: int, placed: Placed) -> str:
    """Return the chunk as released, without fall-backs: the text that is embedded after an exchange.

    Args:
        corpus: as it was read.
        chunk: index of the chunk.
        placed: slot to the slot whose entity takes its place.
    """
    original = corpus.chunks[chunk]
    text = corpus.documents[original.document].text
    changes: list[tuple[int, int, str]] = []
    for slot, value in corpus.slots_of(chunk):
        if (donor := placed.get(slot)) is not None:
            changes += fit_donor(text, value, corpus.value_at(donor))
    if not changes:
        return original.text
    edits = [Edit(a, b, new, "") for a, b, new in adjust_articles(text, changes, original.start)]
    base = select_touching_edits(corpus.plans[original.document].edits, original.start, original.end)
    return apply_edits_to_parts(text, ((original.start, original.end),), combine_edits(base, edits, text))[0]


def is_any_form_in_text(forms: Sequence[str], text: str) -> bool:
    """Whether one of these forms occurs in a text, not inside of a word; case does not count."""
    folded = fold(text)

    def is_whole(start: int, form: str) -> bool:
        end = start + len(form)
        return not (folded[start - 1 : start].isalnum() and form[:1].isalnum()) and not folded[end : end + 1].isalnum()

    return any(is_whole(start, form) for form in map(fold, forms) for start in _find_substring_starts(form, folded))


def _find_substring_starts(form: str, text: str) -> Iterator[int]:
    start = text.find(form)
    while start >= 0:
        yield start
        start = text.find(form, start + 1)


def select_touching_edits(edits: Sequence[Edit], start: int, end: int) -> Sequence[Edit]:
    """Return those of the sorted edits that touch ``start..end``."""
    return edits[bisect_left(edits, start, key=_end) : bisect_left(edits, end, key=_start)]


def combine_edits(fixed: Sequence[Edit], more: Sequence[Edit], text: str) -> list[Edit]:
    """Return both, sorted; each of ``more`` is clipped where it overlaps any of ``fixed``, perhaps to nothing.

    A replacement overlaps its neighbour's only by what it takes along: a space, letters that stick to it, the article
    before it.
    """
    if not fixed:
        return list(more)
    out = list(fixed)
    covered = merge_intervals((e.start, e.end) for e in fixed)
    reach = Reach(covered)
    for edit in more:
        if not reach.touches(edit.start, edit.end):
            out.append(edit)
        elif rest := list(subtract_intervals((edit.start, edit.end), covered)):
            a, b = max(rest, key=lambda piece: piece[1] - piece[0])
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
    groups: Sequence[Sequence[int]] | None = None,
    fluency: Fluency | None = None,
) -> Written:
    """Write a release.

    Args:
        corpus: as it was read.
        placed: slot to the slot whose entity takes its place; other slots were not exchanged.
        policy: language, tags and options of operators, and the endpoint of a language model, if one is to summarise.
        fallback: category, or ``*`` for the other swapped ones, to the treatment of entities that were not exchanged:
            one of :data:`allonym.swap.settings.FALLBACKS`. A category that is not named is kept. ``summarise`` replaces
            the chunk by a summary, written by the policy's language model if it names one, else extracted.
        key: secret of keyed fall-backs (``pseudonym``), at least 16 bytes.
        scope: names the release, for these.
        recode: the user's classes for ``generalise``: ``an investment bank`` for one. By default, and for unknown
            entities, those of the knowledge base; in English only, else the operator ``generalise`` decides.
        fluency: of the corpus, which chooses nouns for terms that are to be general; None: read if needed.
        groups: chunks that are released together; an entity gets another keyed replacement in each group. None: those
            of a document are.

    Raises:
        UnknownNameError: a fall-back is unknown.
        UsageError: a keyed operator is needed for an entity of the corpus and there is no key.
    """
    nouns = GeneralNouns(recode)
    return _Writer(corpus, placed, Policy.load(policy), nouns, fallback, key, scope, groups, fluency).write()


class _Numbering(CorpusBook):
    """Numbers for tags that follow those in a document already."""

    def __init__(self, tags: Iterable[str]) -> None:
        super().__init__()
        self._tags = "\n".join(tags)
        self._highest: dict[str, int] = {}

    def number(self, kind: str) -> int:
        """See :class:`allonym.replace.Book`."""
        if kind not in self._highest:
            head, _, tail = kind.partition(" ")[2].rpartition("0")
            pattern = re.escape(head) + r"(\d{1,9})" + re.escape(tail)
            self._highest[kind] = max(map(int, re.findall(pattern, self._tags)), default=0) if head else 0
        return self._highest[kind] + super().number(kind)


class _Writer:
    """One release while it is written."""

    def __init__(
        self,
        corpus: Corpus,
        placed: Placed,
        policy: Policy,
        nouns: GeneralNouns,
        fallback: Mapping[str, str],
        key: bytes | str | None,
        scope: str,
        groups: Sequence[Sequence[int]] | None,
        fluency: Fluency | None,
    ) -> None:
        self.corpus, self.placed, self.policy = corpus, placed, policy
        self.nouns, self.key, self.scope, self.fluency = nouns, key, scope, fluency
        self.group_of = {c: number for number, group in enumerate(groups or ()) for c in group}
        for category, treatment in fallback.items():
            if treatment not in FALLBACKS:
                raise UnknownNameError("fall-back", treatment, FALLBACKS, f"category {category}")
        self.fallback = {c: fallback.get(c, fallback.get("*", "keep")) for c in corpus.swapped}
        self.fallback |= {c: t for c, t in fallback.items() if corpus.categories.get(c) == "free"}
        slots = [corpus.slots_of(c) for c in range(len(corpus.chunks))]
        self.treatments = [
            ["swap" if s in placed else self.fallback.get(v.category, "keep") for s, v in pairs] for pairs in slots
        ]
        rules: dict[str, Rule] = {}
        for value, treatment in self._iterate_values_with_treatments():
            label = get_category_label(value.category)
            if treatment in _OPERATORS and label not in rules:
                rule = policy.rule(label)
                operator = "tag" if value.category == "Term" and treatment == "generalise" else treatment
                rules[label] = rule if rule.operator == operator else Rule(operator)
        self.rules = policy.with_(rules=MappingProxyType(rules), default=Rule("suppress"))
        names = [label.name for label in policy.taxonomy]
        self.categories = {name: find_category(name, corpus.categories, policy.taxonomy) for name in names}

    def _iterate_values_with_treatments(self) -> Iterator[tuple[Value, str]]:
        for chunk, treatments in zip(self.corpus.chunks, self.treatments, strict=True):
            yield from zip(chunk.values, treatments, strict=True)

    def write(self) -> Written:
        """Write all documents."""
        corpus = self.corpus
        chunks_of: list[list[int]] = [[] for _ in corpus.documents]
        for c, chunk in enumerate(corpus.chunks):
            chunks_of[chunk.document].append(c)
        cuts, summaries = self.make_summary_edits()
        plans: list[Plan] = []
        texts: list[str] = []
        pieces: dict[int, ChunkText] = {}
        for d, document in enumerate(corpus.documents):
            edits = self.make_mention_edits(d, chunks_of[d])
            edits = combine_edits(self.make_removal_edits(d, edits, cuts.get(d, ())), edits, document.text)
            text = apply_edits(document.text, edits)
            plans.append(Plan(digest(document.text), tuple(edits), corpus.plans[d].notes, digest(text)))
            texts.append(text)
            pieces |= self.make_chunk_texts(d, chunks_of[d], edits, text)
        counts: dict[str, Counter[str]] = {c: Counter() for c, s in corpus.categories.items() if s in ("swap", "free")}
        for value, treatment in self._iterate_values_with_treatments():
            if value.category in counts:
                counts[value.category][treatment] += 1
        fallen = {t: sum(row[t] for row in counts.values()) for t in FALLBACKS}
        return Written(
            tuple(plans),
            tuple(texts),
            tuple(pieces[c] for c in range(len(corpus.chunks))),
            MappingProxyType({c: row["swap"] for c, row in counts.items() if row["swap"]}),
            MappingProxyType({t: n for t, n in fallen.items() if n}),
            MappingProxyType({c: dict(sorted((t, n) for t, n in r.items() if t != "swap")) for c, r in counts.items()}),
            MappingProxyType(summaries),
        )

    # One document

    def make_mention_edits(self, document_index: int, chunk_indices: Sequence[int]) -> list[Edit]:
        """Return the edits of all mentions: the base plan's, swapped ones, and fall-backs.

        A mention whose donor has the very same form would stay as it is; it falls back, or is suppressed.
        """
        corpus, document, base = (
            self.corpus,
            self.corpus.documents[document_index],
            self.corpus.plans[document_index].edits,
        )
        fixed: dict[Span, tuple[str, str]] = {}
        grouped: dict[int, list[tuple[Value, Sequence[Span]]]] = {}
        language = settle_language(self.policy, document.text).language
        for c in chunk_indices:
            values: list[tuple[Value, Sequence[Span]]] = []
            is_keyed = False
            for (slot, value), treatment in zip(corpus.slots_of(c), self.treatments[c], strict=True):
                if treatment == "keep" or corpus.categories.get(value.category) not in ("swap", "free"):
                    continue
                is_swap = treatment == "swap"
                new: list[tuple[int, int, str]] = []
                if is_swap:
                    donor = corpus.value_at(self.placed[slot])
                    new = fit_donor(document.text, value, donor, language=language)
                elif treatment == "generalise" and language == "en":
                    new = self.nouns.list_noun_changes(document.text, value) or self.list_term_changes(slot, value)
                for span, (a, b, text) in zip(value.spans, new, strict=False):
                    if text != document.text[a:b]:
                        fixed[span] = (text, SWAP if is_swap else GENERALISED)
                spans: Sequence[Span] = value.spans
                if is_swap and self.fallback.get(value.category, "keep") == "keep":
                    spans = [s for s in spans if s in fixed]
                if spans:
                    values.append((value, spans))
                    is_free = any(s not in fixed for s in spans)
                    is_keyed |= is_free and self.fallback.get(value.category) == "pseudonym"
            grouped.setdefault(self.group_of.get(c, -1) if is_keyed else -1, []).extend(values)
        tags = [e.replacement for e in base if e.operator.startswith("tag@")]
        edits: list[Edit] = []
        for number, members in sorted(grouped.items()):
            entities = self._group_spans_into_entities(document_index, members, fixed)
            is_apart = number >= 0 and self.key is not None
            key = derive_operator_key(self.key, "swap group", str(number)) if is_apart else self.key
            book = _Numbering(tags)
            plan = make_plan(document, entities, self.rules, key=key, scope=self.scope, book=book, given=fixed)
            edits += plan.edits
        return combine_edits(base, sorted(edits, key=_start), document.text)

    def list_term_changes(self, slot: Slot, value: Value) -> list[Change]:
        """Return the replacement of each mention of a term by the noun that reads best there; empty without one."""
        if value.category != "Term" or not self.corpus.common_nouns:
            return []
        if self.fluency is None:
            self.fluency = Fluency.of(self.corpus)
        noun = self.fluency.choose_noun(slot)
        text = self.corpus.documents[self.corpus.chunks[slot.chunk].document].text
        return fit_donor(text, value, Value("Term", noun, (noun,))) if noun else []

    def _group_spans_into_entities(
        self, document_index: int, values: Sequence[tuple[Value, Sequence[Span]]], fixed: Collection[Span]
    ) -> list[Entity]:
        """Return the values as entities of the document, linked as its own are; fixed mentions are separate ones."""
        entities = self.corpus.entities[document_index]
        number_of = {(s.start, s.end): n for n, e in enumerate(entities) for s in e.spans}
        groups: dict[tuple[int, str, str, bool], list[Span]] = {}
        for value, spans in values:
            for span in spans:
                n = number_of.get((span.start, span.end), -1)
                label = entities[n].label if n >= 0 else get_category_label(value.category)
                if find_category(label, (value.category,), self.policy.taxonomy) != value.category:
                    label = get_category_label(value.category)
                groups.setdefault((n, "" if n >= 0 else value.key, label, span in fixed), []).append(span)
        out = [
            Entity(entities[n].key if n >= 0 else f"{label}:{name}", label, tuple(sorted(group)))
            for (n, name, label, _), group in groups.items()
        ]
        return sorted(out, key=lambda e: e.spans[0])

    def make_removal_edits(self, document_index: int, edits: Sequence[Edit], cuts: Sequence[Edit]) -> list[Edit]:
        """Return the removals: summarised stretches, with all edits in them, and text outside the section."""
        corpus, document = self.corpus, self.corpus.documents[document_index]
        out: list[Edit] = []
        for cut in cuts:
            reach = [
                e for e in select_touching_edits(edits, cut.start, cut.end) if e.start < cut.end and cut.start < e.end
            ]
            low, high = min([cut.start, *(e.start for e in reach)]), max([cut.end, *(e.end for e in reach)])
            low = max(low, out[-1].end) if out else low
            if low >= high:
                continue
            lead, trail = document.text[low : cut.start], document.text[cut.end : high]
            new = (lead if lead.isspace() else "") + cut.replacement + (trail if trail.isspace() else "")
            out.append(replace(cut, start=low, end=high, replacement=new, original=document.text[low:high]))
        if corpus.settings.get("rest") != "anonymize":
            covered = merge_intervals((e.start, e.end) for e in (*out, *edits))
            section = merge_intervals(corpus.sections[document_index])
            gaps = [gap for stretch in everything(document) for gap in subtract_intervals(stretch, section)]
            rest = [piece for gap in gaps for piece in subtract_intervals(gap, covered)]
            out += [Edit(a, b, "", "", 0, DROP, document.text[a:b]) for a, b in rest]
        return sorted(out, key=_start)

    # Summaries

    def make_summary_edits(self) -> tuple[dict[int, list[Edit]], dict[str, int]]:
        """Return per document the edits that make chunks summaries, and the number of summaries of each sort."""
        corpus, policy = self.corpus, self.policy
        chosen = [c for c, treatments in enumerate(self.treatments) if "summarise" in treatments]
        if not chosen:
            return {}, {}
        rarity = Rarity.of(c.text for c in corpus.chunks)
        summaries: list[str | None] = [None] * len(chosen)
        if policy.llm["url"]:
            from allonym.llm import client_for

            secret = None if self.key is None else derive_operator_key(self.key, "llm cache")
            client = client_for(policy.llm, secret)
            summaries = request_summaries(
                client, [self._make_covered_passage(c, rarity) for c in chosen], policy.language
            )
        out: dict[int, list[Edit]] = {}
        counts = Counter("extracted" if summary is None else "model" for summary in summaries)
        for c, summary in zip(chosen, summaries, strict=True):
            chunk = corpus.chunks[c]
            text = corpus.documents[chunk.document].text
            if summary is None:
                new = [(a, b, "") for a, b in self._list_omitted_sentences(c, text, rarity)]
            else:
                body = text[chunk.start : chunk.end]
                new = [(chunk.start, chunk.end, summary + body[len(body.rstrip()) :])]
            out.setdefault(chunk.document, []).extend(Edit(a, b, t, "", 0, SUMMARY, text[a:b]) for a, b, t in new)
        return out, {sort: counts[sort] for sort in ("extracted", "model") if counts[sort]}

    def _list_omitted_sentences(self, chunk_index: int, text: str, rarity: Rarity) -> list[tuple[int, int]]:
        """Return the sentences of a chunk that its extracted summary omits."""
        chunk = self.corpus.chunks[chunk_index]
        spans = [(s.start, s.end) for v in chunk.values for s in v.spans]
        tiles = join_cut_tiles(split_sentences(text, chunk.start, chunk.end), spans)
        pairs = zip(chunk.values, self.treatments[chunk_index], strict=True)
        removed = [span for value, treatment in pairs if treatment == "summarise" for span in value.spans]
        clean = [not any(s.start < b and a < s.end for s in removed) for a, b in tiles]
        chosen = choose_sentence_indices([text[a:b] for a, b in tiles], clean, rarity)
        return merge_intervals(tile for n, tile in enumerate(tiles) if n not in chosen)

    def _make_covered_passage(self, chunk_index: int, rarity: Rarity) -> Passage:
        """Return a chunk with every entity covered, and the rare words of names in it and in its document's edits."""
        corpus, chunk = self.corpus, self.corpus.chunks[chunk_index]
        text, edits = corpus.documents[chunk.document].text, corpus.plans[chunk.document].edits
        covers = [Edit(s.start, s.end, f"[{v.category}]", "") for v in chunk.values for s in v.spans]
        covers.sort(key=_start)
        names = {corpus.class_of(chunk_index), *(e.original for e in edits if e.original)}
        names.update(form for value in chunk.values for form in value.forms)
        words = {word for name in names for word in list_plain_words(name)}
        rare = frozenset(w for w in words if rarity.holders.get(w, 0) < max(2.0, COMMON * rarity.chunks))
        combined = combine_edits(select_touching_edits(edits, chunk.start, chunk.end), covers, text)
        return Passage(apply_edits_to_parts(text, ((chunk.start, chunk.end),), combined)[0], rare)

    # The released chunks

    def make_chunk_texts(
        self, document_index: int, chunk_indices: Sequence[int], edits: Sequence[Edit], text: str
    ) -> dict[int, ChunkText]:
        """Return the chunks of a document as released, by index, with marks."""
        base = set(self.corpus.plans[document_index].edits)
        after, before = _OffsetMap(edits), _OffsetMap(self.corpus.plans[document_index].edits)
        out = {}
        for c in chunk_indices:
            chunk = self.corpus.chunks[c]
            start, end = after.map_offset(chunk.start), after.map_offset(chunk.end)
            marks, marks_before = [], []
            for edit in select_touching_edits(edits, chunk.start, chunk.end):
                kind = edit.operator.partition("@")[0]
                if edit in base or kind in ("article", "drop") or edit.start < chunk.start or edit.end <= chunk.start:
                    continue
                category = self.categories.get(edit.label, "")
                if edit.replacement:
                    position = after.map_offset(edit.start) - start
                    marks.append(Mark(position, position + len(edit.replacement), category, kind))
                first = before.map_offset(chunk.start)
                a, b = before.map_offset(edit.start) - first, before.map_offset(edit.end) - first
                marks_before.append(Mark(a, min(b, len(chunk.text)), category, kind))
            out[c] = ChunkText(text[start:end], start, end, tuple(marks), tuple(marks_before))
        return out


class _OffsetMap:
    """Maps offsets of the original text to the text after some edits; those inside of an edit to its end."""

    def __init__(self, edits: Sequence[Edit]) -> None:
        self._edits = edits
        self._shifts = [0]
        for e in edits:
            self._shifts.append(self._shifts[-1] + len(e.replacement) - (e.end - e.start))

    def map_offset(self, offset: int) -> int:
        """Return the offset after the edits."""
        i = bisect_left(self._edits, offset, key=_start)
        return max(offset, self._edits[i - 1].end if i else 0) + self._shifts[i]
