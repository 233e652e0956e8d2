"""The interface between formats and a run: chunks, drafts, anonymised bytes and counts.

A format parses bytes into pieces: literal bytes, drafts (a document with a function to write it back) and failures.
:func:`anonymize_chunk` sends the drafts through the batch kernel and joins the bytes again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from allonym.batch import (
    RECORD_ERRORS,
    Findings,
    Key,
    describe_failure,
    detect_records,
    retry_out_of_memory,
    run_records,
)
from allonym.batch import Failure as Failure
from allonym.document import KEPT, Document, Reach, Span, merge_intervals, splice_text
from allonym.errors import DataError
from allonym.plan import Anonymized, Plan, digest, measure_reader_score
from allonym.policy import Policy
from allonym.replace.cast import Corpus

if TYPE_CHECKING:
    from allonym.files.columns import Column
    from allonym.replace import Keeper

MAX_WHOLE = 1 << 29
"""Greatest size of a file that is read at once (JSON, HTML, mail, office files), in bytes."""

MAX_RATIO = 200
"""Greatest ratio of unpacked to packed size, from ``FREE_SIZE`` on; text seldom packs to a 20th."""

FREE_SIZE = 1 << 25
"""Unpacked bytes up to which the ratio is not checked."""

DocumentKey = tuple[str, str]
"""The id of a document and the digest of its text."""

_LEAST_NAME = 3
"""Least number of letters of a name that is looked for in ids."""


@dataclass(frozen=True, slots=True)
class Job:
    """The settings for every chunk: policy, key, fields (empty: all text), whether plans (with originals) are kept,
    the vault, the scope, whether reasons quote the covered texts that a result still contains, and the findings that
    are settled beforehand, by :func:`identify_document`; no detector reads those documents. ``has_neutralised_cells``:
    cells of tables that are like formulas have an apostrophe in front, which is no part of them."""

    policy: Policy
    key: Key = field(default=None, repr=False)
    fields: tuple[str, ...] = ()
    plans: bool = False
    originals: bool = False
    vault: Keeper | None = field(default=None, repr=False)
    scope: str = ""
    quotes: bool = False
    findings: Mapping[DocumentKey, tuple[Span, ...]] = field(default_factory=dict, repr=False)
    has_neutralised_cells: bool = False


def identify_document(document: Document) -> DocumentKey:
    """Return the id of a document and the digest of its text; documents that share both have the same findings."""
    return document.id, digest(document.text)


def detect_in_documents(documents: Iterable[Document], job: Job, key: Key) -> list[Findings]:
    """Return the findings in documents: those that the job has settled, and else what the detectors find."""
    documents = list(documents)
    settled = [job.findings.get(identify_document(d)) if job.findings else None for d in documents]
    unsettled = (d for d, spans in zip(documents, settled, strict=True) if spans is None)
    detected = iter(detect_records(unsettled, job.policy, key))
    return [next(detected) if spans is None else spans for spans in settled]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a file that can be anonymised separately.

    Attributes:
        data: its bytes.
        head: information from the beginning of the file, such as encoding and column names.
        first: whether the file begins with it.
        end: bytes of the (decompressed) file up to its end.
    """

    data: bytes = field(repr=False)
    head: tuple[object, ...] = field(default=(), repr=False)
    first: bool = True
    end: int = 0


@dataclass(frozen=True, slots=True)
class Draft:
    """A record to anonymise: its document, the function that writes its parts, and its line (from 1) in the chunk.

    ``counted`` is false for text that is not a record, such as a header row. If ``verify`` names a format of
    :data:`allonym.files.verify.VIEWS`, the result is read back. If it still contains a covered text, ``repair`` covers
    that wherever it stands in the bytes, from texts to replacements; if this does not help, the result is refused.
    ``convert`` makes the bytes of another format from the verified ones. With ``takes_edits``, ``render`` gets the
    edits too: half-open offsets in the document's text, and replacements.
    """

    document: Document
    render: Callable[..., bytes] = field(repr=False)
    line: int = 1
    counted: bool = True
    verify: str = ""
    repair: Callable[[bytes, Mapping[str, str]], bytes] | None = None
    convert: Callable[[bytes], bytes] | None = None
    takes_edits: bool = False


Piece = bytes | Draft | Failure


@dataclass(slots=True)
class Tally:
    """Counts that add up over chunks and files."""

    documents: int = 0
    characters: int = 0
    quarantined: int = 0
    offline: int = 0
    unread: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)
    exceptions: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    operators: Counter[str] = field(default_factory=Counter)
    treated: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)
    reader: Counter[str] = field(default_factory=Counter)
    encodings: Counter[str] = field(default_factory=Counter)
    identifying_ids: int = 0
    identifying_headers: Counter[str] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        """Add another tally to this one."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers for JSON."""
        values = ((name, getattr(self, name)) for name in self.__slots__)
        return {name: dict(sorted(value.items())) if isinstance(value, Counter) else value for name, value in values}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Tally:
        """Read the tally that :meth:`to_dict` returned."""
        values: dict[str, Any] = {k: Counter(v) if isinstance(v, dict) else v for k, v in data.items()}
        return cls(**values)


@dataclass(frozen=True, slots=True)
class AnonymizedChunk:
    """An anonymised chunk.

    Attributes:
        data: the bytes to write.
        tally: its counts.
        failures: the records left out.
        plans: (id, line within the chunk, plan as JSON) of the others, where plans are kept.
        lines: number of lines (or records) in the chunk, for numbering those of later chunks.
        refused: reason for refusing the whole file, or empty.
    """

    data: bytes = field(default=b"", repr=False)
    tally: Tally = field(default_factory=Tally)
    failures: tuple[Failure, ...] = ()
    plans: tuple[tuple[str, int, str], ...] = field(default=(), repr=False)
    lines: int = 0
    refused: str = ""


@dataclass(frozen=True, slots=True)
class ParsedChunk:
    """A parsed chunk.

    Attributes:
        pieces: in order.
        lines: number of lines (or records) in the chunk.
        tally: counts of the fields that are anonymised, and of those left.
        join: makes the bytes to write from those of the pieces; by default they are concatenated.
        shared: whether this is a whole file whose records share their replacements.
    """

    pieces: Sequence[Piece] = field(repr=False)
    lines: int = 1
    tally: Tally = field(default_factory=Tally)
    join: Callable[[list[bytes | None]], bytes] | None = None
    shared: bool = False

    def join_pieces(self, written: list[bytes | None]) -> bytes:
        """Return the bytes of the chunk from those of its pieces, None standing for a record left out."""
        return self.join(written) if self.join else b"".join(piece for piece in written if piece is not None)


def anonymize_chunk(parsed: ParsedChunk, job: Job, findings: Sequence[Findings] | None = None) -> AnonymizedChunk:
    """Send the drafts of a chunk through the batch kernel and join all bytes; failing records are left out."""
    documents = [piece.document for piece in parsed.pieces if isinstance(piece, Draft)]
    vault = Corpus(job.key, "") if parsed.shared and job.vault is None else job.vault
    if isinstance(vault, Corpus) and documents:
        vault.begin("\0".join(document.text for document in documents) if parsed.shared else documents[0].text)
    if findings is None and job.findings:
        key = vault.operator_key if job.key is None and vault is not None else job.key
        findings = detect_in_documents(documents, job, key)
    outcomes = iter(run_records(documents, job.policy, job.key, vault=vault, scope=job.scope, findings=findings))
    tally = Tally()
    failures: list[Failure] = []
    plans: list[tuple[str, int, str]] = []
    written: list[bytes | None] = []
    for piece in parsed.pieces:
        if isinstance(piece, bytes):
            written.append(piece)
            continue
        tally.documents += not (isinstance(piece, Draft) and not piece.counted)
        written.append(None)
        if isinstance(piece, Failure):
            failures.append(piece)
            continue
        outcome = next(outcomes)
        if isinstance(outcome, Anonymized):
            try:
                edits = [(edit.start, edit.end, edit.replacement) for edit in outcome.plan.edits]
                render = partial(render_and_verify_draft, piece, outcome.parts, edits, quotes=job.quotes)
                written[-1] = retry_out_of_memory(render)
            except RECORD_ERRORS as error:
                outcome = Failure(outcome.id, piece.line, describe_failure(error))
        if isinstance(outcome, Failure):
            failures.append(replace(outcome, line=piece.line))
            continue
        tally.characters += sum(map(len, piece.document.part_texts()))
        tally.labels.update(outcome.report.labels)
        tally.operators.update(outcome.report.operators)
        tally.offline += outcome.report.offline
        tally.unread.update(outcome.report.unread)
        tally.languages.update(outcome.report.languages)
        tally.exceptions += count_covered_kept_parts(piece.document, outcome.plan.covered_intervals)
        tally.identifying_ids += is_id_identifying(piece.document, outcome.plan)
        tally.reader.update(vars(measure_reader_score(piece.document.text, outcome.plan.edits)))
        if job.plans:
            plans.append((outcome.id, piece.line, outcome.plan.to_json(originals=job.originals)))
    tally.quarantined = len(failures)
    tally.add(parsed.tally)  # last, since what is left out while writing counts too
    return AnonymizedChunk(parsed.join_pieces(written), tally, tuple(failures), tuple(plans), parsed.lines)


_REST = re.compile(r"[^\W\d_][-\u2010\u00ad]\s*\n\s*[a-zß-öø-ÿ]\Z")


def is_id_identifying(document: Document, plan: Plan) -> bool:
    """Tell whether the id of a document holds a word of a person's name that is covered in it."""
    if not any(map(str.isalpha, document.id)):
        return False
    words = set(re.findall(r"[^\W\d_]+", document.id.lower()))
    people = (document.text[e.start : e.end] for e in plan.edits if e.label.startswith("PERSON"))
    return any(len(word) >= _LEAST_NAME and word in words for name in people for word in name.lower().split())


def count_covered_kept_parts(document: Document, covered: Sequence[tuple[int, int]]) -> int:
    """Return how many parts of a document should be kept, and are covered nevertheless, at least partly."""
    if KEPT not in document.roles or not covered:
        return 0
    unchanged = (part for part, role in zip(document.parts, document.roles, strict=True) if role == KEPT)
    reach = Reach(covered)
    return sum(a < b and reach.touches(a, b) for a, b in unchanged)


def render_and_verify_draft(
    draft: Draft, parts: tuple[str, ...], edits: Iterable[tuple[int, int, str]], *, quotes: bool = False
) -> bytes:
    """Write a draft with its new parts, and read it back if it requires that.

    Args:
        draft: the record.
        parts: the texts of its parts.
        edits: half-open offsets of the edits in its document's text, with the replacements.
        quotes: whether a refusal quotes what the result still contains.

    Raises:
        RefusedContent: the result still contains a covered text.
    """
    edits = list(edits)
    data = draft.render(parts, edits) if draft.takes_edits else draft.render(parts)
    if draft.verify:
        from allonym.files.verify import check_no_leftovers

        document = draft.document
        text = document.text
        # The rest of a word that a line end divides ("-tion") is part of other words too.
        covered = {text[a:b]: new for a, b, new in edits if a < b and not _REST.search(text, max(0, a - 9), a + 1)}
        expected = join_new_parts(document, parts)
        data = check_no_leftovers(data, draft.verify, covered, expected, draft.repair, quotes=quotes)
    if draft.convert is not None:
        data = draft.convert(data)
    return data


def count_common_prefix(first: str, second: str) -> int:
    """Return the length of the common beginning of two texts."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


def list_changed_words(document: Document, parts: Sequence[str]) -> list[tuple[int, int, str]]:
    """Return the half-open offsets of the words of a document that differ in its new parts, as edits to nothing."""
    text = document.text
    out: list[tuple[int, int]] = []
    for (start, end), part in zip(document.parts or ((0, len(text)),), parts, strict=True):
        old = text[start:end]
        if old == part:
            continue
        same = count_common_prefix(old, part)
        after = count_common_prefix(old[same:][::-1], part[same:][::-1])
        a, b = start + same, end - after
        while a > 0 and text[a - 1].isalnum():
            a -= 1
        while b < len(text) and text[b].isalnum():
            b += 1
        if a < b:
            out.append((a, b))
    return [(a, b, "") for a, b in merge_intervals(out)]


def join_new_parts(document: Document, parts: Sequence[str]) -> str:
    """Return the document's text with other texts for its parts; the separators stay."""
    intervals = document.parts or ((0, len(document.text)),)
    return splice_text(document.text, ((a, b, part) for (a, b), part in zip(intervals, parts, strict=True)))


@dataclass(frozen=True, slots=True)
class Format:
    """A file format: how its files are read and written.

    Attributes:
        name: as given to ``--format``.
        parse: ``(chunk, job) -> ParsedChunk``, pure. Raises :class:`DataError` if the file cannot be read.
        chunks: ``(stream, job, size, start) -> chunks``; None: the file is one chunk. ``start`` is the
            ``end`` of an earlier chunk, behind which to go on; ``size`` the bytes that a chunk aims at.
        writer: opens a writer for files that are more than the concatenation of their treated chunks.
        many: whether a file has many records, so that a failing one is left out; otherwise the file is refused.
        fields: whether fields can be named.
        unit: name of the unit of records.
        shared: whether the records of a file share their replacements: a value has the same one in all of them.
        columns: ``(stream, job) -> columns``: what is decided about the columns of a file; None: it has none.
        written_as: suffix of the files that are written, where it is another one; empty: that of the source.
    """

    name: str
    parse: Callable[[Chunk, Job], ParsedChunk]
    chunks: Callable[[BinaryIO, Job, int, int], Iterator[Chunk]] | None = None
    writer: Callable[[BinaryIO], ChunkWriter] | None = None
    many: bool = False
    fields: bool = False
    unit: str = "record"
    shared: bool = False
    columns: Callable[[BinaryIO, Job], Sequence[Column]] | None = None
    written_as: str = ""

    @property
    def is_resumable(self) -> bool:
        """Whether a run can resume in the middle of a file."""
        return self.chunks is not None and self.writer is None


class ChunkWriter(Protocol):
    """Writes treated chunks one after the other, for formats with a closing part."""

    def write(self, data: bytes) -> object:
        """Append an anonymised chunk."""

    def write_end(self) -> None:
        """Write the end of the file; the stream stays open."""


def read_within_limit(stream: BinaryIO) -> bytes:
    """Read all bytes of a stream; raises :class:`DataError` if there are more than ``MAX_WHOLE``."""
    data = read_beginning(stream, MAX_WHOLE + 1)
    if len(data) > MAX_WHOLE:
        raise DataError(f"a file of this format is read at once and may have at most {MAX_WHOLE} bytes")
    return data


def read_beginning(stream: BinaryIO, size: int) -> bytes:
    """Read the next ``size`` bytes of a stream, fewer only at its end."""
    blocks, remaining = [], size
    while remaining and (block := stream.read(min(remaining, 1 << 20))):
        blocks.append(block)
        remaining -= len(block)
    return b"".join(blocks)


def check_compression_ratio(packed: int, unpacked: int) -> None:
    """Raise :class:`DataError` if the ratio of unpacked to packed bytes is that of a "zip bomb"."""
    if unpacked > FREE_SIZE and unpacked > MAX_RATIO * packed:
        raise DataError(f"the packed data grows to more than {MAX_RATIO} times its size; unpack it before")
