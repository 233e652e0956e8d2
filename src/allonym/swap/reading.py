"""Reading a corpus: documents, sections, findings, chunks with their values, and the edits that are made in any case.

The steps of P1 3.1: a section is chosen and cut into chunks, direct identifiers are suppressed, entities are found.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from allonym.batch import run_ordered, split_field_name
from allonym.detection.languages import settle_language
from allonym.document import Document, Entity, Interval, Reach, Span, merge_intervals, subtract_intervals
from allonym.errors import DataError, UnknownNameError, UsageError
from allonym.files.rewrite import UNCOUNTED, rewrite_path
from allonym.link import link
from allonym.models.encoder import encode
from allonym.models.pos import parts_of_speech
from allonym.models.tagger import ENGLISH, load_tagger
from allonym.pipeline import anonymize, detect_with_key
from allonym.plan import Plan, apply_edits, apply_edits_to_parts
from allonym.policy import Policy
from allonym.replace import make_plan
from allonym.swap.acronyms import link_acronyms
from allonym.swap.categories import (
    find_category,
    get_category_label,
    group_values_by_chunk,
    list_detector_labels,
    parse_categories,
    remove_common_entities,
)
from allonym.swap.chunking import join_cut_tiles, split_chunks, split_sentences
from allonym.swap.corpus import Advance, Chunk, Corpus, ignore_progress
from allonym.swap.places import Sentences, read_place
from allonym.swap.protected import (
    OTHER,
    add_protected_rule,
    find_protected_label,
    find_protected_spans,
    insert_protected_spans,
)
from allonym.swap.rows import Spread
from allonym.swap.sections import (
    Sectioner,
    check_section,
    everything,
    get_sectioner,
    is_named_in_unread_text,
    list_aliases,
    list_protected_values,
    list_text_fields,
    read_corpus_documents,
)
from allonym.swap.settings import Settings
from allonym.swap.terms import Phrases, Terms, find_noun_phrases, select_terms

REST = ("drop", "anonymize")
TERM = "TERM"
_NAMES = frozenset({"PERSON", "PERSON_FIRSTNAME", "PERSON_LASTNAME"})


@dataclass(frozen=True, slots=True)
class _Job:
    """How documents are read."""

    policy: Policy
    states: Mapping[str, str]
    protect: str
    label: str
    rest: str
    key: bytes | str | None = field(repr=False)
    sizes: tuple[float, int, int]
    encode: bool

    @property
    def protected_kind(self) -> str:
        return find_protected_label(self.protect)

    def is_direct_identifier(self, label: str) -> bool:
        """Whether mentions with a label are removed before anything is counted: direct identifiers in no category of
        their own; people's names are one, those of executives whom the metadata lists are not."""
        category = find_category(label, self.states, self.policy.taxonomy)
        if category and (get_category_label(category) == label or label in _NAMES):
            return False
        return self.policy.taxonomy.get(label).kind == "direct"

    def is_always_edited(self, label: str) -> bool:
        """Whether mentions with a label are edited in any case: direct ones and those of ``change`` categories."""
        category = find_category(label, self.states, self.policy.taxonomy)
        return self.is_direct_identifier(label) or self.states.get(category) == "change"


@dataclass(frozen=True, slots=True, repr=False)
class _Item:
    """A document with its protected value, further names of it, and its section."""

    document: Document
    class_: str
    aliases: tuple[str, ...]
    section: tuple[Interval, ...]


@dataclass(frozen=True, slots=True)
class _Result:
    """What was read in a document: its findings, section and sentences, the borders of its chunks if they are known
    already; in English its words with their parts of speech, and its noun phrases if terms are wanted."""

    spans: tuple[Span, ...]
    section: tuple[Interval, ...]
    tiles: tuple[tuple[Interval, ...], ...]
    bounds: tuple[Interval, ...] = ()
    phrases: Phrases | None = None
    words: tuple[tuple[int, int, str], ...] = ()


_Read = Sequence[tuple[_Item, _Result]]


def load(
    source: str | Path,
    protect: str = "company",
    *,
    settings: str | Path | Settings = "default",
    fields: Sequence[str] | None = None,
    format: str | None = None,
    policy: str | Path | Policy | None = None,
    section: str | tuple[str, str] | Sectioner | None = None,
    rest: str = "drop",
    categories: Mapping[str, str] | Iterable[str] | None = None,
    metadata: str | Path | None = None,
    aliases: Mapping[str, Sequence[str]] | None = None,
    embedder: Any = None,
    workers: int = 1,
    key: bytes | str | None = None,
    progress: Advance | None = None,
    spread: Spread | None = None,
) -> Corpus:
    """Read a corpus for swapping.

    Args:
        source: a file or folder of any format that allonym reads.
        protect: the metadata key whose value nobody may guess: a column, a field of a record or of its ``meta``, or a
            column of ``metadata``. All its names in a document are direct identifiers.
        settings: a preset's name, a TOML file's path, or :class:`Settings`; further arguments override its ``read``
            table and its categories.
        fields: column names, or dotted paths, of the text; by default all text but record ids. The protected field is
            anonymised in either case.
        format: overrides the suffix.
        policy: finds entities and replaces direct ones; by default ``swap``.
        section: the part of a document that is chunked: ``all``, ``presentation``, a name added to
            :data:`allonym.swap.sections.sections`, two RE2 patterns (from, to), or a function.
        rest: the treatment of running text outside the section: it is left out (``drop``), or all findings in it are
            replaced as the policy says (``anonymize``). Short fields are always anonymised, never dropped.
        categories: category to state, see :data:`allonym.swap.categories.CATEGORIES`.
        metadata: a table (CSV, JSON Lines, ...) with a column ``id`` or ``file`` that names the documents, whose other
            columns are further metadata.
        aliases: further names of a protected value: tickers, former names, brands.
        embedder: computes the sentences' vectors; by default the encoder that ships with allonym.
        workers: processes; any number gives the same corpus.
        key: secret of keyed operators that the policy uses for direct identifiers.
        progress: called with (stage, done, total).
        spread: the workers that look for entities; None: ``workers`` processes. The corpus does not depend on it.

    Raises:
        UsageError: the call is wrong, or no document has the metadata key.
        DataError: some documents lack it, or hold no text, or there are fewer than two documents or values.
    """
    settings, advance = Settings.load(settings), progress or ignore_progress
    read = settings.read
    base = Policy.load(policy or read.policy or "swap")
    states = parse_categories(settings.categories if categories is None else categories, base.taxonomy)
    if rest not in REST:
        raise UnknownNameError("value", rest, REST, "rest")
    find_section = get_sectioner(read.section if section is None else section)
    sizes = (read.threshold, read.min_size, read.max_size)
    loaded, label = add_protected_rule(_extend_policy_labels(base, states), protect)
    all_fields = list_text_fields(source, protect, fields, format, loaded.metadata)
    beside = [f for f in all_fields or () if f not in (fields or ())]
    documents = read_corpus_documents(source, protect, all_fields, beside, format, metadata)
    classes = list_protected_values(documents, protect)
    sections = [find_section(document) for document in documents]
    job = _Job(loaded, states, protect, label, rest, key, sizes, embedder is None)
    items = [
        _Item(
            d,
            c,
            list_aliases(d, c, job.protected_kind, aliases or {}),
            check_section(d, everything(d) if s is None else s),
        )
        for d, c, s in zip(documents, classes, sections, strict=True)
    ]
    if spread is None:
        results = run_ordered(_detect_and_split, items, job, workers)
    else:
        results = spread.map_items(_detect_and_split, job, items)
    pairs: list[tuple[_Item, _Result]] = []
    for item, result in zip(items, results, strict=True):
        pairs.append((item, result))
        advance("read", len(pairs), len(items))
    if not job.encode:
        pairs = [(item, _add_chunk_borders(item.document.text, r, embedder.encode, job.sizes)) for item, r in pairs]
    entities, terms = _link_corpus(pairs, job, read.terms)
    chunks, plans = _make_chunks_and_base_plans(pairs, entities, job)
    missing = [i for i, s in enumerate(sections, 1) if s is None]
    warnings = [*_list_warnings(pairs, job, missing), *terms.warnings]
    about: dict[str, object] = {
        "protect": protect,
        "label": label,
        "rest": rest,
        **dict(zip(("breakpoint", "min_chars", "max_chars"), sizes, strict=True)),
        "policy": loaded.name,
        "fields": list(all_fields or ()),
        "format": format or "",
        "documents": len(documents),
        "classes": len(set(classes)),
    }
    if metadata is None:
        of_all = f"of {len(documents)} documents"
        shown = sum(item.class_ not in map(str.strip, item.document.part_texts()) for item in items)
        about["shown"] = shown
        if shown:
            warnings.append(
                f"{shown} {of_all} have their {protect} in a field that is no text and cannot be written again"
            )
        if named := sum(is_named_in_unread_text(item.document, item.class_) for item in items):
            warnings.append(f"{named} {of_all} name their {protect} in a field that is not read and stays as it is")
    return Corpus(
        documents,
        protect,
        classes,
        dict(states),
        tuple(result.section for _, result in pairs),
        remove_common_entities(chunks, classes, states, read.common),
        entities,
        plans,
        about,
        tuple(warnings),
        terms.common,
    )


def _extend_policy_labels(policy: Policy, states: Mapping[str, str]) -> Policy:
    """Return the policy, extended to look for the categories' labels."""
    extra = list_detector_labels(states, policy.taxonomy)
    labels = policy.labels if policy.every else tuple(dict.fromkeys((*policy.labels, *extra)))
    category_labels = {get_category_label(c) for c in states}
    return policy.with_(labels=labels, exclude=tuple(e for e in policy.exclude if e not in category_labels))


# One document


def _detect_and_split(job: _Job, item: _Item) -> _Result:
    """Find and chunk in one document: the function that the workers run."""
    document, policy = item.document, job.policy
    protected = find_protected_spans(document, item.class_, job.protected_kind, job.label, item.aliases)
    spans = insert_protected_spans(
        document.text, detect_with_key(document, policy, job.key), protected, policy.taxonomy
    )
    covered = [(s.start, s.end) for s in spans]
    section = tuple(_grow_section(item.section, covered))
    tiles = tuple(join_cut_tiles(_split_into_sentences(document, a, b), covered) for a, b in section)
    result = _Result(spans, section, tiles)
    language = settle_language(policy, document.text).language
    if language == "en":
        # With the detector's arguments it is the same instance, which remembers what it has read.
        words = parts_of_speech(document.text, load_tagger(ENGLISH, 1, False))
        result = replace(result, words=tuple((a, b, sys.intern(part)) for a, b, part in words))
    if find_category(TERM, job.states):
        result = replace(result, phrases=find_noun_phrases(document, spans, language=language))
    return _add_chunk_borders(document.text, result, encode, job.sizes) if job.encode else result


def _grow_section(section: Sequence[Interval], covered: Sequence[Interval]) -> Iterator[Interval]:
    """Yield the section, grown by findings that its ends cut."""
    starts = [a for a, _ in covered]

    def find_cut(position: int) -> Interval | None:
        i = bisect_left(starts, position) - 1
        return covered[i] if i >= 0 and covered[i][1] > position else None

    end = -1
    for a, b in section:
        first, last = find_cut(a), find_cut(b)
        a, b = max(first[0] if first else a, end), last[1] if last else b
        if a < b:
            yield a, b
        end = max(end, b)


def _split_into_sentences(document: Document, start: int, end: int) -> tuple[Interval, ...]:
    """Return the sentences of a stretch; parts and turns end them too."""
    borders = {b for p in document.parts for b in p} | {t.end for t in document.turns}
    borders |= {t.speaker[0] if t.speaker else t.start for t in document.turns}
    out: list[Interval] = []
    for a, b in pairwise([start, *sorted(b for b in borders if start < b < end), end]):
        if out and not document.text[a:b].strip():
            out[-1] = (out[-1][0], b)
        else:
            out += split_sentences(document.text, a, b)
    return tuple(out)


def _add_chunk_borders(
    text: str, result: _Result, encode: Callable[[list[str]], Any], sizes: tuple[float, int, int]
) -> _Result:
    """Return the result with the borders of chunks."""
    spans = [(s.start, s.end) for s in result.spans]
    bounds: list[Interval] = []
    for tiles in result.tiles:
        vectors = encode([text[a:b].strip() for a, b in tiles])
        bounds += split_chunks(text, tiles, vectors, *sizes, spans)
    return replace(result, bounds=tuple(bounds))


# The corpus


def _link_corpus(pairs: _Read, job: _Job, term_share: float) -> tuple[tuple[tuple[Entity, ...], ...], Terms]:
    """Return the entities of each document, terms among them, and the terms."""
    taxonomy, documents = job.policy.taxonomy, [item.document for item, _ in pairs]
    linked = [link(item.document, result.spans, taxonomy).entities for item, result in pairs]
    entities = link_acronyms(documents, linked, taxonomy)
    phrases = [result.phrases for _, result in pairs if result.phrases is not None]
    if len(phrases) < len(pairs):
        return entities, Terms((), 0.0)
    classes, bounds = [item.class_ for item, _ in pairs], [result.bounds for _, result in pairs]
    terms = select_terms(phrases, classes, bounds, term_share)
    out = []
    for document, linked_entities, spans in zip(documents, entities, terms.spans, strict=True):
        covered = Reach((s.start, s.end) for e in linked_entities for s in e.spans)
        more = link(document, [s for s in spans if not covered.touches(s.start, s.end)], taxonomy).entities
        out.append(tuple(sorted((*linked_entities, *more), key=lambda e: e.spans[0])))
    return tuple(out), terms


def _make_chunks_and_base_plans(
    pairs: _Read, entities: Sequence[Sequence[Entity]], job: _Job
) -> tuple[list[Chunk], tuple[Plan, ...]]:
    """Return the chunks of all documents, and per document the plan of the edits that are made in any case."""
    counted = [c for c, state in job.states.items() if state != "change"]
    chunks: list[Chunk] = []
    plans: list[Plan] = []
    for i, ((item, result), linked) in enumerate(zip(pairs, entities, strict=True)):
        document = item.document
        plan = _make_base_plan(document, linked, result.section, job)
        edits = plan.edits
        covered = [(s.start, s.end) for e in linked for s in e.spans] + [(e.start, e.end) for e in edits]
        tiles: list[Interval] = []
        for start, end in result.section:
            tiles += _move_borders_behind_spans([b for b in result.bounds if start <= b[0] and b[1] <= end], covered)
        quasi = [e for e in linked if not job.is_direct_identifier(e.label)]
        values = group_values_by_chunk(document, quasi, tiles, counted, job.policy.taxonomy)
        if result.words:
            people = [e for e in linked if job.policy.taxonomy.get_family(e.label) == "PERSON"]
            sentences = Sentences(result.words, sorted(s.end for e in people for s in e.spans))
            values = [
                tuple(replace(v, place=read_place(document.text, v.spans, sentences)) for v in some) for some in values
            ]
        starts = [e.start for e in edits]
        for (a, b), chunk_values in zip(tiles, values, strict=True):
            inside = edits[bisect_left(starts, a) : bisect_left(starts, b)]
            text = apply_edits(document.text[a:b], (replace(e, start=e.start - a, end=e.end - a) for e in inside))
            chunks.append(Chunk(i, a, b, text, chunk_values))
        plans.append(plan)
    return chunks, tuple(plans)


def _move_borders_behind_spans(tiles: Sequence[Interval], spans: Iterable[Interval]) -> list[Interval]:
    """Return the tiles, their borders moved to the end of spans that they would cut."""
    reach = Reach(merge_intervals(spans))
    out: list[Interval] = []
    for a, b in tiles:
        a = out[-1][1] if out else a
        b = max(b, min(reach.find_furthest_end(b - 1), tiles[-1][1]))
        if a < b:
            out.append((a, b))
    return out


def _make_base_plan(document: Document, entities: Sequence[Entity], section: Sequence[Interval], job: _Job) -> Plan:
    """Return the edits that are made in any case: direct identifiers and ``change`` categories in the section, all
    findings in short fields and, if the rest is anonymised, outside the section."""
    inside = merge_intervals(section)
    dropped: list[Interval] = []
    if job.rest == "drop":
        dropped = merge_intervals(gap for text in everything(document) for gap in subtract_intervals(text, inside))
    section_reach, dropped_reach = Reach(inside), Reach(dropped)
    edited: list[Entity] = []
    for entity in entities:
        always = job.is_always_edited(entity.label)
        borders = ((s, s.start, s.end) for s in entity.spans)
        spans = tuple(
            s for s, a, b in borders if (always if section_reach.touches(a, b) else not dropped_reach.touches(a, b))
        )
        if spans:
            edited.append(replace(entity, spans=spans))
    return make_plan(document, edited, settle_language(job.policy, document.text), key=job.key)


def _list_warnings(pairs: _Read, job: _Job, missing: Sequence[int]) -> Iterator[str]:
    protect, of_all = job.protect, f"of {len(pairs)} documents"
    if missing:
        yield (
            f"the section was not found in {len(missing)} {of_all}, of which all text is taken; "
            f"the first is number {missing[0]}"
        )
    if empty := sum(not result.section for _, result in pairs):
        yield f"{empty} {of_all} have no text in the section"
    reaches = [Reach(result.section) for _, result in pairs]
    naming = [
        any(s.label == job.label and reach.touches(s.start, s.end) for s in result.spans)
        for reach, (_, result) in zip(reaches, pairs, strict=True)
    ]
    if silent := naming.count(False):
        yield f"{silent} {of_all} never name their {protect}, as far as it was recognised"
    telling = 0
    for item, _ in pairs:
        names = (item.class_, *list_aliases(item.document, item.class_, job.protected_kind, {}))
        id_words = split_field_name(item.document.id)
        telling += any(word in id_words for name in names for word in split_field_name(name).split() if len(word) > 3)
    if telling:
        word = f"a word of their {protect}"
        yield f"{telling} {of_all} have an id that holds {word}; rename them before they are released"
    if len({item.class_ for item, _ in pairs}) == len(pairs) and job.protected_kind == OTHER:
        yield f"every document has its own {protect}: is it a value, or an id?"


def rewrite(
    corpus: Corpus,
    source: str | Path,
    target: str | Path,
    plans: Sequence[Plan],
    *,
    policy: str | Path | Policy = "swap",
    key: bytes | str | None = None,
    overwrite: bool = False,
) -> int:
    """Write the corpus's source again, in its own format, with the plans' edits.

    Args:
        corpus: as :func:`load` read it from ``source``.
        source: the file or folder, unchanged since.
        target: the file or folder to write, completely or not at all.
        plans: per document, of :func:`allonym.swap.writing.write`; they leave out text outside the section.
        policy, key: for a first row of a table that may be data.
        overwrite: replace existing files.

    Returns:
        How many documents were written.

    Raises:
        UsageError: source and target do not go together, or the target exists.
        DataError: the source has changed since it was read, or holds the protected value in a field that is no text.
    """
    if len(plans) != len(corpus.documents):
        raise UsageError(f"{len(corpus.documents)} documents need as many plans, got {len(plans)}")
    if shown := corpus.settings.get("shown"):
        raise DataError(
            f"{shown} documents have their {corpus.protect} in a field that is no text, which a tag cannot replace: "
            "make it text, or give the metadata in a table of its own"
        )
    loaded = Policy.load(policy)

    def edit_parts(number: int, document: Document) -> tuple[str, ...]:
        if number == UNCOUNTED:
            return anonymize(document, loaded, key=key).parts
        original = corpus.documents[number] if number < len(plans) else None
        if original is None or original.part_texts() != document.part_texts():
            raise DataError(f"{source} has changed since it was read; document {number + 1} is another one")
        parts = original.parts or ((0, len(original.text)),)
        return tuple(apply_edits_to_parts(original.text, parts, plans[number].edits))

    fields = corpus.settings.get("fields")
    return rewrite_path(
        source,
        target,
        edit_parts,
        fields=[str(f) for f in fields] if isinstance(fields, (list, tuple)) else None,
        format=str(corpus.settings.get("format") or "") or None,
        overwrite=overwrite,
        count=len(plans),
    )
