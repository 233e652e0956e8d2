"""Reading a corpus: documents, sections, what is found in them, chunks with their values, and the edits made anyway.

The steps of P1 3.1: a section is chosen and cut into chunks, direct identifiers are suppressed, entities are found.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from allonym.batch import run_ordered, split_field_name
from allonym.document import Document, Entity, Interval, Span, merge, subtract
from allonym.errors import DataError, UnknownNameError, UsageError
from allonym.files.rewrite import UNCOUNTED, rewrite_path
from allonym.link import link
from allonym.models.encoder import encode
from allonym.pipeline import anonymize, detect_with_key
from allonym.plan import Edit, Plan, apply_edits, apply_edits_to_parts
from allonym.policy import Policy
from allonym.replace import make_plan
from allonym.swap import acronyms
from allonym.swap.categories import category_of, checked, label_of, labels_of, values_of, without_common
from allonym.swap.chunking import check_sizes, chunk, sentences, without_cuts
from allonym.swap.corpus import Chunk, Corpus
from allonym.swap.documents import aliases_of, classes_of, named_beside, read, with_fields
from allonym.swap.protected import kind_of, mentions, policy_for, with_protected
from allonym.swap.sections import Sectioner, check_section, everything, sectioner
from allonym.swap.settings import Settings
from allonym.swap.shards import Spread
from allonym.swap.terms import Phrases, TermOptions, choose, phrases

Advance = Callable[[str, int, int], None]
"""Progress: the stage's name, how much of it is done, of how much."""

REST = ("drop", "anonymize")
TERM = "TERM"
_NAMES = frozenset({"PERSON", "PERSON_FIRSTNAME", "PERSON_LASTNAME"})


@dataclass(frozen=True, slots=True)
class _Job:
    """What the workers need."""

    policy: Policy
    kind: str
    label: str
    key: bytes | str | None = field(repr=False)
    breakpoint: float
    min_chars: int
    max_chars: int
    encode: bool
    terms: bool


@dataclass(frozen=True, slots=True)
class _Item:
    document: Document
    value: str = field(repr=False)
    aliases: tuple[str, ...] = field(repr=False)
    section: tuple[Interval, ...]


@dataclass(frozen=True, slots=True)
class _Read:
    """What became of a document: what was found, its section and sentences, chunks where they are made already, and
    its noun phrases where terms are wanted."""

    spans: tuple[Span, ...]
    section: tuple[Interval, ...]
    tiles: tuple[tuple[Interval, ...], ...]
    chunks: tuple[tuple[Interval, ...], ...] | None = None
    phrases: Phrases | None = None


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
    terms: TermOptions | None = None,
    metadata: str | Path | None = None,
    aliases: Mapping[str, Sequence[str]] | None = None,
    breakpoint: float | None = None,
    min_chars: int | None = None,
    max_chars: int | None = None,
    embedder: Any = None,
    workers: int = 1,
    key: bytes | str | None = None,
    progress: Advance | None = None,
    spread: Spread | None = None,
) -> Corpus:
    """A corpus ready for swapping.

    Args:
        source: a file or folder of any format that allonym reads.
        protect: the metadata key whose value nobody may guess: a column, a field of a record or of its ``meta``, or a
            column of ``metadata``. All its names in a document are direct identifiers.
        settings: a preset's name, a TOML file's path, or :class:`Settings`; what follows overrides its ``read`` table
            and its categories.
        fields: column names, or dotted paths, of the text; by default all text but record ids. The protected field is
            anonymised in either case.
        format: overrides what the suffix says.
        policy: finds entities and replaces direct ones; by default ``swap``.
        section: which part of a document is chunked: ``all``, ``presentation``, a name added to
            :data:`allonym.swap.sections.sections`, two RE2 patterns (from, to), or a function.
        rest: what becomes of running text outside the section: it is left out (``drop``), or all that is found there
            is replaced as the policy says (``anonymize``). Short fields are always anonymised, never dropped.
        categories: category to state, see :data:`allonym.swap.categories.CATEGORIES`.
        terms: what counts as a term, where ``Term`` is among the categories; by default as many as ``read.terms`` says.
        metadata: a table (CSV, JSON Lines, ...) with a column ``id`` or ``file`` that names the documents, whose other
            columns are further metadata.
        aliases: further names of a protected value: tickers, former names, brands.
        breakpoint: percentile of the distances between neighbouring sentences above which a chunk ends (P1: 75).
        min_chars, max_chars: code points of a chunk.
        embedder: makes the sentences' vectors; by default the encoder that ships with allonym.
        workers: processes; any number gives the same corpus.
        key: secret of keyed operators that the policy uses for direct identifiers.
        progress: called with (stage, done, total).
        spread: who looks for entities; None: ``workers`` processes. The corpus does not depend on it.

    Raises:
        UsageError: the call is wrong, or no document has the metadata key.
        DataError: some documents lack it, or hold no text, or there are fewer than two documents or values.
    """
    settings = Settings.load(settings)
    how = settings.read
    states = checked(settings.categories if categories is None else categories)
    if rest not in REST:
        raise UnknownNameError("value", rest, REST, "rest")
    chosen = sectioner(how.section if section is None else section)
    sizes = (
        how.threshold if breakpoint is None else breakpoint,
        how.min_size if min_chars is None else min_chars,
        how.max_size if max_chars is None else max_chars,
    )
    check_sizes(*sizes)
    base = Policy.load(policy or how.policy or "swap")
    loaded, label = policy_for(_looking(base, states, protect), protect)
    wanted = with_fields(source, protect, fields, format, loaded.metadata)
    beside = [f for f in wanted or () if f not in (fields or ())]
    documents = read(source, protect, fields=wanted, beside=beside, format=format, metadata=metadata)
    classes = classes_of(documents, protect)
    found, missing = _sections(documents, chosen)
    job = _Job(loaded, kind_of(protect), label, key, *sizes, embedder is None, category_of(TERM, states) != "")
    items = [
        _Item(d, c, aliases_of(d, c, job.kind, aliases or {}), s)
        for d, c, s in zip(documents, classes, found, strict=True)
    ]
    done: list[_Read] = []
    for result in run_ordered(_look, items, job, workers) if spread is None else spread.each(_look, job, items):
        done.append(result)
        if progress is not None:
            progress("read", len(done), len(items))
    bounds = [
        list(_chunks(d.text, r, embedder, job)) if r.chunks is None else [c for some in r.chunks for c in some]
        for d, r in zip(documents, done, strict=True)
    ]
    about = {
        "protect": protect,
        "label": label,
        "rest": rest,
        "breakpoint": sizes[0],
        "min_chars": sizes[1],
        "max_chars": sizes[2],
        "policy": loaded.name,
        "fields": list(wanted or ()),
        "format": format or "",
        "documents": len(documents),
        "classes": len(set(classes)),
    }
    options = terms or TermOptions(share=how.terms)
    corpus = _corpus(documents, classes, states, done, bounds, loaded, key, missing, about, options)
    corpus = replace(corpus, chunks=without_common(corpus.chunks, classes, states, how.common))
    shown = sum(c not in map(str.strip, d.part_texts()) for d, c in zip(documents, classes, strict=True))
    if metadata is not None:
        return corpus
    of = f"of {len(documents)} documents"
    told = (
        [f"{shown} {of} have their {protect} in a field that is no text and cannot be written again"] if shown else []
    )
    if named := sum(named_beside(d, c) for d, c in zip(documents, classes, strict=True)):
        told.append(f"{named} {of} name their {protect} in a field that is not read and stays as it is")
    return replace(corpus, settings={**corpus.settings, "shown": shown}, warnings=(*corpus.warnings, *told))


def _looking(policy: Policy, states: Mapping[str, str], protect: str) -> Policy:
    """The policy, which also looks for the categories' labels."""
    wanted = labels_of(states, policy.taxonomy)
    labels = policy.labels if policy.every else tuple(dict.fromkeys((*policy.labels, *wanted)))
    named = {label_of(c) for c in states}
    return policy.with_(labels=labels, exclude=tuple(e for e in policy.exclude if e not in named))


def _sections(documents: Sequence[Document], choose: Sectioner) -> tuple[list[tuple[Interval, ...]], list[int]]:
    """Each document's section, and which ones have none, so that all of their text is taken."""
    out, missing = [], []
    for i, document in enumerate(documents):
        found = choose(document)
        if found is None:
            missing.append(i)
            found = everything(document)
        out.append(check_section(document, found))
    return out, missing


def _look(job: _Job, item: _Item) -> _Read:
    """Find and chunk in one document: the function that the workers run."""
    document, policy = item.document, job.policy
    own = mentions(document, item.value, job.kind, job.label, item.aliases)
    spans = with_protected(document.text, detect_with_key(document, policy, job.key), own, policy.taxonomy)
    taken = [(s.start, s.end) for s in spans]
    section = tuple(_around(item.section, taken))
    tiles = tuple(without_cuts(_sentences(document, a, b), taken) for a, b in section)
    out = _Read(spans, section, tiles)
    if job.terms:
        out = replace(out, phrases=phrases(document, spans, language=policy.language))
    return replace(out, chunks=tuple(_cut(document.text, out, encode, job))) if job.encode else out


def _around(section: Sequence[Interval], taken: Sequence[Interval]) -> Iterator[Interval]:
    """The section, grown by findings that its ends cut."""
    starts = [a for a, _ in taken]
    grown = []
    for a, b in section:
        i = bisect_left(starts, a) - 1
        if i >= 0 and taken[i][1] > a:
            a = taken[i][0]
        i = bisect_left(starts, b) - 1
        if i >= 0 and taken[i][1] > b:
            b = taken[i][1]
        grown.append((a, b))
    at = -1
    for a, b in grown:
        a = max(a, at)
        if a < b:
            yield a, b
        at = max(at, b)


def _sentences(document: Document, start: int, end: int) -> tuple[Interval, ...]:
    """The sentences of a stretch; parts and turns end them too."""
    stops = {b for p in document.parts for b in p} | {t.end for t in document.turns}
    stops |= {t.speaker[0] if t.speaker else t.start for t in document.turns}
    at = [start, *sorted(s for s in stops if start < s < end), end]
    out: list[Interval] = []
    for a, b in pairwise(at):
        if out and not document.text[a:b].strip():
            out[-1] = (out[-1][0], b)
        else:
            out += sentences(document.text, a, b)
    return tuple(out)


def _cut(text: str, result: _Read, encode: Callable[[Sequence[str]], Any], job: _Job) -> Iterator[tuple[Interval, ...]]:
    taken = [(s.start, s.end) for s in result.spans]
    for tiles in result.tiles:
        vectors = encode([text[a:b].strip() for a, b in tiles])
        yield chunk(
            text,
            tiles,
            vectors,
            breakpoint=job.breakpoint,
            min_chars=job.min_chars,
            max_chars=job.max_chars,
            taken=taken,
        )


def _chunks(text: str, result: _Read, embedder: Any, job: _Job) -> Iterator[Interval]:
    for some in _cut(text, result, embedder.encode, job):
        yield from some


def is_direct(label: str, states: Mapping[str, str], policy: Policy) -> bool:
    """Whether mentions with a label are taken out before anything is counted: direct identifiers in no category of
    their own; people's names are one, those of executives whom the metadata lists are not."""
    category = category_of(label, states, policy.taxonomy)
    if category and (label_of(category) == label or label in _NAMES):
        return False
    return policy.taxonomy.get(label).kind == "direct"


def _corpus(
    documents: tuple[Document, ...],
    classes: tuple[str, ...],
    states: Mapping[str, str],
    done: Sequence[_Read],
    bounds: Sequence[Sequence[Interval]],
    policy: Policy,
    key: bytes | str | None,
    missing: Sequence[int],
    settings: Mapping[str, object],
    terms: TermOptions,
) -> Corpus:
    protect, rest = str(settings["protect"]), str(settings["rest"])
    linked = [link(d, r.spans, policy.taxonomy).entities for d, r in zip(documents, done, strict=True)]
    entities = list(acronyms.join(documents, linked, policy.taxonomy).entities)
    warnings = list(_warnings(documents, classes, done, missing, protect, policy))
    if all(r.phrases is not None for r in done):
        told = choose([r.phrases for r in done if r.phrases is not None], classes, bounds, terms)
        warnings += told.warnings
        for i, (document, spans) in enumerate(zip(documents, told.spans, strict=True)):
            known = merge((s.start, s.end) for e in entities[i] for s in e.spans)
            free = [s for s in spans if not _within(known, s)]
            more = link(document, free, policy.taxonomy).entities
            entities[i] = tuple(sorted((*entities[i], *more), key=lambda e: e.spans[0]))
    counted = [c for c, state in states.items() if state != "change"]
    chunks: list[Chunk] = []
    plans: list[Plan] = []
    for i, (document, found, result) in enumerate(zip(documents, entities, done, strict=True)):
        plan = _base(document, found, result.section, states, policy, rest, key)
        taken = [(s.start, s.end) for e in found for s in e.spans] + [(e.start, e.end) for e in plan.edits]
        tiles = [t for stretch in result.section for t in _uncut([b for b in bounds[i] if _in(b, stretch)], taken)]
        quasi = [e for e in found if not is_direct(e.label, states, policy)]
        values = values_of(document, quasi, tiles, counted, policy.taxonomy)
        texts = _texts(document.text, tiles, plan.edits)
        chunks += [Chunk(i, a, b, t, v) for (a, b), t, v in zip(tiles, texts, values, strict=True)]
        plans.append(plan)
    return Corpus(
        documents,
        protect,
        classes,
        dict(states),
        tuple(r.section for r in done),
        tuple(chunks),
        tuple(entities),
        tuple(plans),
        settings,
        tuple(warnings),
    )


def _in(inner: Interval, outer: Interval) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _uncut(tiles: Sequence[Interval], spans: Iterable[Interval]) -> list[Interval]:
    """The tiles, their borders moved to the end of what they would cut."""
    whole = merge(spans)
    starts = [a for a, _ in whole]
    out: list[Interval] = []
    for n, (a, b) in enumerate(tiles):
        if out:
            a = out[-1][1]
        i = bisect_left(starts, b) - 1
        if n + 1 < len(tiles) and i >= 0 and whole[i][1] > b:
            b = min(whole[i][1], tiles[-1][1])
        if a < b:
            out.append((a, b))
    return out


def _base(
    document: Document,
    entities: Sequence[Entity],
    section: Sequence[Interval],
    states: Mapping[str, str],
    policy: Policy,
    rest: str,
    key: bytes | str | None,
) -> Plan:
    """The edits that are made in any case: direct identifiers and ``change`` categories in the section, all findings in
    short fields and, where the rest is anonymised, outside the section."""
    inside = merge(section)
    dropped = merge(_left_out(document, section)) if rest == "drop" else []
    edited: list[Entity] = []
    for entity in entities:
        category = category_of(entity.label, states, policy.taxonomy)
        always = is_direct(entity.label, states, policy) or states.get(category) == "change"
        spans = tuple(s for s in entity.spans if (always if _within(inside, s) else not _within(dropped, s)))
        if spans:
            edited.append(replace(entity, spans=spans))
    return make_plan(document, edited, policy, key=key)


def _within(whole: Sequence[Interval], span: Span) -> bool:
    """Whether a span touches any of the sorted, disjoint intervals."""
    i = bisect_left(whole, (span.end, 0)) - 1
    return i >= 0 and whole[i][1] > span.start


def _left_out(document: Document, section: Sequence[Interval]) -> Iterator[Interval]:
    """Running text outside the section."""
    kept = merge(section)
    for stretch in everything(document):
        yield from subtract(stretch, kept)


def _texts(text: str, tiles: Sequence[Interval], edits: Sequence[Edit]) -> Iterator[str]:
    starts = [e.start for e in edits]
    for a, b in tiles:
        some = edits[bisect_left(starts, a) : bisect_left(starts, b)]
        yield apply_edits(text[a:b], (replace(e, start=e.start - a, end=e.end - a) for e in some))


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
        corpus: as :func:`load` made it of ``source``.
        source: the file or folder, unchanged since.
        target: the file or folder to write, whole or not at all.
        plans: per document, of :func:`allonym.swap.writing.write`; they leave out what is outside the section.
        policy, key: for a first row of a table that may be data.
        overwrite: replace what exists.

    Returns:
        How many documents were written.

    Raises:
        UsageError: source and target do not go together, or the target exists.
        DataError: the source is not the one that was read, or holds the protected value where no tag can stand.
    """
    if len(plans) != len(corpus.documents):
        raise UsageError(f"{len(corpus.documents)} documents need as many plans, got {len(plans)}")
    if shown := corpus.settings.get("shown"):
        raise DataError(
            f"{shown} documents have their {corpus.protect} in a field that is no text, which a tag cannot replace: "
            "make it text, or give the metadata in a table of its own"
        )
    loaded = Policy.load(policy)

    def parts_of(number: int, document: Document) -> tuple[str, ...]:
        if number == UNCOUNTED:
            return anonymize(document, loaded, key=key).parts
        known = corpus.documents[number] if number < len(plans) else None
        if known is None or known.part_texts() != document.part_texts():
            raise DataError(f"{source} has changed since it was read; document {number + 1} is another one")
        return tuple(apply_edits_to_parts(known.text, known.parts or ((0, len(known.text)),), plans[number].edits))

    fields = corpus.settings.get("fields")
    return rewrite_path(
        source,
        target,
        parts_of,
        fields=[str(f) for f in fields] if isinstance(fields, (list, tuple)) else None,
        format=str(corpus.settings.get("format") or "") or None,
        overwrite=overwrite,
        count=len(plans),
    )


def _warnings(
    documents: Sequence[Document],
    classes: Sequence[str],
    done: Sequence[_Read],
    missing: Sequence[int],
    protect: str,
    policy: Policy,
) -> Iterator[str]:
    if missing:
        yield (
            f"the section was not found in {len(missing)} of {len(documents)} documents, of which all text is taken; "
            f"the first is number {missing[0] + 1}"
        )
    empty = sum(not r.section for r in done)
    if empty:
        yield f"{empty} of {len(documents)} documents have no text in the section"
    label = policy_for(policy, protect)[1]
    silent = sum(not any(s.label == label and _within(merge(r.section), s) for s in r.spans) for r in done)
    if silent:
        yield f"{silent} of {len(documents)} documents never name their {protect}, as far as it was recognised"
    kind = kind_of(protect)
    told = [(split_field_name(d.id), (c, *aliases_of(d, c, kind, {}))) for d, c in zip(documents, classes, strict=True)]
    telling = sum(any(w in id for n in names for w in split_field_name(n).split() if len(w) > 3) for id, names in told)
    if telling:
        yield (
            f"{telling} of {len(documents)} documents have an id that holds a word of their {protect}; "
            "rename them before they are released"
        )
    few = sum(n == 1 for n in Counter(classes).values())
    if few == len(documents) and kind_of(protect) == "OTHER_IDENTIFYING_ATTRIBUTE":
        yield f"every document has its own {protect}: is it a value, or an id?"
