"""What formats and a run exchange: chunks in, treated bytes out, counts that add up.

A format turns bytes into pieces: literal bytes that stay, drafts (a document and how to write it back), failures.
:func:`anonymize_chunk` sends the drafts through the batch kernel and puts the bytes together again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, BinaryIO

from allonym.batch import RECORD_ERRORS, Findings, Key, describe_failure, find_records, run_records
from allonym.batch import Failure as Failure
from allonym.document import Document
from allonym.errors import DataError
from allonym.plan import Anonymized
from allonym.policy import Policy

if TYPE_CHECKING:
    from allonym.replace import Keeper

MAX_WHOLE = 1 << 29
"""Bytes of a file that is read at once (JSON, HTML, mail, office files)."""

MAX_RATIO = 200
"""How many times its own size a packed file may unpack to, from ``FREE_SIZE`` on; text seldom packs to a 20th."""

FREE_SIZE = 1 << 25
"""Unpacked bytes up to which nothing is asked about the ratio."""


@dataclass(frozen=True, slots=True)
class Job:
    """What every chunk needs: policy, key, chosen fields (empty: all text), whether plans (with originals) are kept,
    the vault and the scope."""

    policy: Policy
    key: Key = field(default=None, repr=False)
    fields: tuple[str, ...] = ()
    plans: bool = False
    originals: bool = False
    vault: Keeper | None = field(default=None, repr=False)
    scope: str = ""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A stretch of a file that can be treated alone.

    Attributes:
        data: its bytes.
        head: what the format must know from the file's beginning, e.g. encoding and column names.
        first: whether the file begins with it.
        end: bytes of the (decompressed) file up to its end.
    """

    data: bytes = field(repr=False)
    head: tuple[object, ...] = field(default=(), repr=False)
    first: bool = True
    end: int = 0


@dataclass(frozen=True, slots=True)
class Draft:
    """A record on its way: its document, how its parts are written back, and its line (from 1) within the chunk.

    ``counted`` is false for what is treated but no record, such as a header row. Where ``verify`` names a format of
    :data:`allonym.files.verify.VIEWS`, what is written is read back, and refused where a covered text is left in it.
    """

    document: Document
    render: Callable[[tuple[str, ...]], bytes] = field(repr=False)
    line: int = 1
    counted: bool = True
    verify: str = ""


Piece = bytes | Draft | Failure


@dataclass(slots=True)
class Tally:
    """Counts that add up over chunks and files."""

    documents: int = 0
    characters: int = 0
    quarantined: int = 0
    offline: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    operators: Counter[str] = field(default_factory=Counter)
    treated: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        """Add another tally to this one."""
        self.documents += other.documents
        self.characters += other.characters
        self.quarantined += other.quarantined
        self.offline += other.offline
        for name in ("labels", "operators", "treated", "left"):
            getattr(self, name).update(getattr(other, name))

    def to_dict(self) -> dict[str, object]:
        """Plain numbers for JSON."""
        counts = {n: getattr(self, n) for n in ("documents", "characters", "quarantined", "offline")}
        return counts | {n: dict(sorted(getattr(self, n).items())) for n in ("labels", "operators", "treated", "left")}

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Tally:
        """The tally that :meth:`to_dict` wrote."""
        return cls(**{k: Counter(v) if isinstance(v, dict) else v for k, v in data.items()})  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Treated:
    """What became of a chunk.

    Attributes:
        data: the bytes to write.
        tally: its counts.
        failures: the records left out.
        plans: (id, line within the chunk, plan as JSON) of the others, where plans are kept.
        lines: how many lines (or records) the chunk held, to number those of later chunks.
        refused: why the whole file is refused; empty where it is not.
    """

    data: bytes = field(default=b"", repr=False)
    tally: Tally = field(default_factory=Tally)
    failures: tuple[Failure, ...] = ()
    plans: tuple[tuple[str, int, str], ...] = field(default=(), repr=False)
    lines: int = 0
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A chunk taken apart.

    Attributes:
        pieces: in order.
        lines: how many lines (or records) the chunk holds.
        tally: which fields are treated and which left.
        join: makes the bytes to write from those of the pieces, None standing for a record left out; by default
            they are concatenated.
    """

    pieces: Sequence[Piece] = field(repr=False)
    lines: int = 1
    tally: Tally = field(default_factory=Tally)
    join: Callable[[list[bytes | None]], bytes] | None = None


def find_in_chunk(parsed: Parsed, job: Job) -> list[Findings]:
    """Find what identifies in the drafts of a chunk, for :func:`anonymize_chunk`."""
    return find_records((p.document for p in parsed.pieces if isinstance(p, Draft)), job.policy, job.key)


def anonymize_chunk(parsed: Parsed, job: Job, findings: Sequence[Findings] | None = None) -> Treated:
    """Send the drafts of a chunk through the batch kernel and join all bytes; failing records are left out."""
    documents = [piece.document for piece in parsed.pieces if isinstance(piece, Draft)]
    outcomes = iter(run_records(documents, job.policy, job.key, vault=job.vault, scope=job.scope, findings=findings))
    tally = Tally()
    tally.add(parsed.tally)
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
                written[-1] = render_draft(piece, outcome.parts, outcome.plan.covered_intervals)
            except RECORD_ERRORS as error:
                outcome = Failure(outcome.id, piece.line, describe_failure(error))
        if isinstance(outcome, Failure):
            failures.append(replace(outcome, line=piece.line))
            continue
        tally.characters += sum(map(len, piece.document.part_texts()))
        tally.labels.update(outcome.report.labels)
        tally.operators.update(outcome.report.operators)
        tally.offline += outcome.report.offline
        if job.plans:
            plans.append((outcome.id, piece.line, outcome.plan.to_json(originals=job.originals)))
    tally.quarantined = len(failures)
    joined = parsed.join(written) if parsed.join else b"".join(piece for piece in written if piece is not None)
    return Treated(joined, tally, tuple(failures), tuple(plans), parsed.lines)


def render_draft(draft: Draft, parts: tuple[str, ...], covered: Sequence[tuple[int, int]]) -> bytes:
    """What is written of a draft, read back where it asks for that.

    Args:
        draft: the record.
        parts: the texts of its parts.
        covered: where its document's text was replaced, as half-open code points.

    Raises:
        RefusedContent: a covered text is left in it.
    """
    data = draft.render(parts)
    if draft.verify:
        from allonym.files.verify import check_result

        document = draft.document
        check_result(data, draft.verify, [document.text[a:b] for a, b in covered], text_after(document, parts))
    return data


def count_common_prefix(first: str, second: str) -> int:
    """How many characters two texts begin with alike."""
    return next(
        (n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )


def text_after(document: Document, parts: Sequence[str]) -> str:
    """The document's text with other texts for its parts; what stands between them stays."""
    out: list[str] = []
    position = 0
    for (a, b), part in zip(document.parts or ((0, len(document.text)),), parts, strict=True):
        out += (document.text[position:a], part)
        position = b
    return "".join((*out, document.text[position:]))


@dataclass(frozen=True, slots=True)
class Format:
    """How one kind of file is read and written.

    Attributes:
        name: as given to ``--format``.
        parse: ``(chunk, job) -> Parsed``, pure. Raises :class:`DataError` where the file cannot be read.
        chunks: ``(stream, job, size, start) -> chunks``; None: the file is one chunk. ``start`` is the
            ``end`` of an earlier chunk, behind which to go on; ``size`` the bytes that a chunk aims at. Chunks that
            share an ``end`` belong together: nothing begins between them.
        writer: opens a writer for files that are more than the concatenation of their treated chunks.
        many: whether a file holds many records, so that one that fails is left out; else the file is refused.
        fields: whether fields can be named.
        unit: what records are counted in.
    """

    name: str
    parse: Callable[[Chunk, Job], Parsed]
    chunks: Callable[[BinaryIO, Job, int, int], Iterator[Chunk]] | None = None
    writer: Callable[[BinaryIO], ChunkWriter] | None = None
    many: bool = False
    fields: bool = False
    unit: str = "record"

    @property
    def resumable(self) -> bool:
        """Whether a run can go on in the middle of a file."""
        return self.chunks is not None and self.writer is None


class ChunkWriter:
    """Writes treated chunks one after the other; formats with a closing part derive from it."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream

    def write(self, data: bytes) -> None:
        """Append a treated chunk."""
        self.stream.write(data)

    def close(self) -> None:
        """Write what closes the file; the stream stays open."""


def read_all(stream: BinaryIO) -> bytes:
    """All bytes of a stream; :class:`DataError` where there are more than ``MAX_WHOLE``."""
    blocks, remaining = [], MAX_WHOLE + 1
    while remaining and (block := stream.read(min(remaining, 1 << 20))):
        blocks.append(block)
        remaining -= len(block)
    if not remaining:
        raise DataError(f"a file of this format is read at once and may have {MAX_WHOLE} bytes at most")
    return b"".join(blocks)


def check_ratio(packed: int, unpacked: int) -> None:
    """Raises :class:`DataError` where so many packed bytes cannot honestly hold so many (a "zip bomb")."""
    if unpacked > FREE_SIZE and unpacked > MAX_RATIO * packed:
        raise DataError(f"the packed data grows to more than {MAX_RATIO} times its size; unpack it before")
