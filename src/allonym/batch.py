"""Many documents: one pure kernel, its Arrow face, and the local process pool.

The kernel keeps no state between documents, so that splitting the work otherwise changes no byte of what comes out.
A document that cannot be processed yields a reason and no text; the others go on.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from allonym.document import Document, Span
from allonym.errors import AllonymError, DataError, MissingExtra, UnknownNameError, UsageError, VaultError
from allonym.policy import Policy

if TYPE_CHECKING:
    import pyarrow as pa

    from allonym.replace import Book, Keeper

Key = bytes | str | None
Found = tuple[Span, ...] | str
"""What was found in a document, or why it failed."""

RECORD_ERRORS = (ValueError, TypeError, LookupError, ArithmeticError, RecursionError, MemoryError)
"""What may go wrong in one document without ending the run; all else does end it, and so does a :class:`UsageError`."""

TEXT_KEYS = frozenset(("text", "content", "value", "utterance", "message", "body"))
"""Names of fields that hold running text and say nothing about it."""

MAX_NAMED = 200
"""Code points of a text that its field's name is put before, at most."""

_NOTHING: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one document.

    Attributes:
        id: the document's id.
        parts: its parts after the edits, as many as it had; None where it failed. Hidden from ``repr``.
        plan: its plan as JSON, by default without originals; None where it failed or no plan was asked for.
        error: why it failed; None where it did not. Never quotes the document.
        labels, operators: how many mentions of each label, how many edits by each operator.
        characters: code points of its parts.
        offline: how many entities got an offline pseudonym because a model had no usable value for them.
        covered: where the document's text was replaced, as half-open code points.
    """

    id: str
    parts: tuple[str, ...] | None = field(default=None, repr=False)
    plan: str | None = field(default=None, repr=False)
    error: str | None = None
    labels: Mapping[str, int] = field(default_factory=lambda: _NOTHING)
    operators: Mapping[str, int] = field(default_factory=lambda: _NOTHING)
    characters: int = 0
    offline: int = 0
    covered: tuple[tuple[int, int], ...] = field(default=(), repr=False)

    def __reduce__(self) -> tuple[object, ...]:
        counts = (dict(self.labels), dict(self.operators))
        rest = (self.characters, self.offline, self.covered)
        return (Result, (self.id, self.parts, self.plan, self.error, *counts, *rest))


def reason(error: Exception) -> str:
    """Why a document failed, in words that cannot hold any of it: foreign errors are named by their class alone."""
    return str(error) if isinstance(error, AllonymError) else f"{type(error).__name__} while processing it"


def run_records(
    documents: Iterable[Document],
    policy: str | Path | Policy = "default",
    key: Key = None,
    *,
    plans: bool = True,
    originals: bool = False,
    vault: Keeper | None = None,
    scope: str = "",
    found: Sequence[Found] | None = None,
) -> list[Result]:
    """Anonymise documents one by one: pure, stateless, order kept.

    Args:
        documents: each is numbered for itself; its parts share the numbering.
        policy: a preset's name, a TOML file's path, or a :class:`Policy`.
        key: secret of the keyed operators.
        plans: whether results carry their plan.
        originals: whether these plans hold what was replaced, so that they can undo it.
        vault: keeps what stands for what; these documents are one transaction of it.
        scope: names the project or release.
        found: what :func:`find_records` found in these documents; by default they are searched here.

    Raises:
        UsageError: the policy or the key is not valid; whatever is wrong with a document goes into its result.
        VaultError: the vault cannot be written.
    """
    from allonym.replace import subject_of

    loaded = Policy.load(policy)
    listed = list(documents)
    if key is None and vault is not None:
        key = vault.operator_key
    spans = find_records(listed, loaded, key) if found is None else found
    if vault is None:
        return [_one(d, s, loaded, key, plans, originals, scope, None) for d, s in zip(listed, spans, strict=True)]
    out: list[Result] = []
    rows: list[tuple[str, Document, Found]] = []
    for document, seen in zip(listed, spans, strict=True):
        try:
            rows.append((subject_of(document, loaded), document, seen))
        except DataError as error:
            rows.append(("", document, reason(error)))
    with vault.book(scope) as book:
        for subject, document, seen in rows:
            book.about(subject)
            out.append(_one(document, seen, loaded, key, plans, originals, scope, book))
    return out


def find_records(documents: Iterable[Document], policy: Policy, key: Key = None) -> list[Found]:
    """What :func:`allonym.pipeline.detect_with_key` finds in each document, or why it failed there."""
    from allonym.pipeline import detect_with_key

    out: list[Found] = []
    for document in documents:
        try:
            out.append(detect_with_key(document, policy, key))
        except UsageError:
            raise
        except (DataError, *RECORD_ERRORS) as error:
            out.append(reason(error))
    return out


def _one(
    document: Document,
    found: Found,
    policy: Policy,
    key: Key,
    plans: bool,
    originals: bool,
    scope: str,
    book: Book | None,
) -> Result:
    from allonym.pipeline import replace_spans

    if isinstance(found, str):
        return Result(document.id, error=found, characters=_length(document))
    try:
        done = replace_spans(document, found, policy, key=key, scope=scope, book=book)
        return Result(
            document.id,
            done.parts,
            done.plan.to_json(originals=originals) if plans else None,
            None,
            MappingProxyType(_counts(done.report, "labels")),
            MappingProxyType(_counts(done.report, "operators")),
            _length(document),
            cast(int, done.report["offline"]),
            tuple((e.start, e.end) for e in done.plan.edits if e.start < e.end),
        )
    except (UsageError, VaultError):
        raise
    except (DataError, *RECORD_ERRORS) as error:
        return Result(document.id, error=reason(error), characters=_length(document))


def _length(document: Document) -> int:
    return sum(b - a for a, b in document.parts) if document.parts else len(document.text)


def _counts(report: Mapping[str, object], name: str) -> dict[str, int]:
    return dict(cast(Mapping[str, int], report.get(name, _NOTHING)))


def anonymize_batch(
    batch: pa.RecordBatch,
    policy: str | Path | Policy = "default",
    *,
    columns: Sequence[str],
    id_column: str | None = None,
    key: Key = None,
    plan_column: str | None = "allonym_plan",
    error_column: str = "allonym_error",
) -> pa.RecordBatch:
    """The kernel for Arrow: a record batch in, a record batch out.

    The text columns of one row form one document. A row that fails has its text columns null and a reason in the
    error column. Other columns and the schema's metadata stay as they are.

    Args:
        batch: the rows; never changed.
        policy: as in :func:`run_records`.
        columns: the columns to treat, of a string type (dictionary-encoded too).
        id_column: the column that names the rows in errors; by default their number.
        key: secret of the keyed operators.
        plan_column: name of the added column with plans as JSON; None: no such column.
        error_column: name of the added column with reasons; null where all went well.

    Raises:
        UnknownNameError: no such column.
        UsageError: a column to treat holds no text, or an added column exists already.
    """
    arrow = import_arrow()
    names = list(batch.schema.names)
    for name in (*columns, *((id_column,) if id_column else ())):
        if name not in names:
            raise UnknownNameError("column", name, names)
    for name in (plan_column, error_column):
        if name in names:
            raise UsageError(f"column {name!r} exists already; choose another name for the added column")
    texts = [_strings(arrow, batch, name) for name in columns]
    ids = batch.column(names.index(id_column)).to_pylist() if id_column else range(batch.num_rows)
    documents = [
        named_parts(str(ids[row]), [(n, column[row] or "", "\n") for n, column in zip(columns, texts, strict=True)])
        for row in range(batch.num_rows)
    ]
    results = run_records(documents, policy, key, plans=plan_column is not None)
    arrays = list(batch.columns)
    schema = batch.schema
    for at, name in enumerate(columns):
        index = names.index(name)
        before = texts[at]
        values = [None if r.parts is None or before[row] is None else r.parts[at] for row, r in enumerate(results)]
        kind = batch.schema.field(index).type
        flat = kind.value_type if arrow.types.is_dictionary(kind) else kind
        # Failing rows become null, so the column must allow that whatever the input's schema said.
        schema = schema.set(index, schema.field(index).with_type(flat).with_nullable(True))
        arrays[index] = arrow.array(values, flat)
    if plan_column is not None:
        schema = schema.append(arrow.field(plan_column, arrow.string()))
        arrays.append(arrow.array([r.plan for r in results], arrow.string()))
    schema = schema.append(arrow.field(error_column, arrow.string()))
    arrays.append(arrow.array([r.error for r in results], arrow.string()))
    return arrow.RecordBatch.from_arrays(arrays, schema=schema)


def import_arrow() -> Any:
    """The module pyarrow; :class:`MissingExtra` where it is not installed."""
    try:
        import pyarrow
    except ImportError:
        raise MissingExtra("Parquet and Arrow", "parquet") from None
    return pyarrow


def text_type(arrow: Any, kind: Any) -> bool:
    """Whether an Arrow type holds text: string, large string, string view, or a dictionary of one of them."""
    if arrow.types.is_dictionary(kind):
        kind = kind.value_type
    view = getattr(arrow.types, "is_string_view", lambda _: False)
    return bool(arrow.types.is_string(kind) or arrow.types.is_large_string(kind) or view(kind))


def _strings(arrow: Any, batch: Any, name: str) -> list[str | None]:
    column = batch.column(batch.schema.names.index(name))
    if not text_type(arrow, column.type):
        raise UsageError(f"column {name!r} holds {column.type}, and text is required")
    return cast("list[str | None]", column.to_pylist())


def named_parts(
    id: str,
    parts: Iterable[tuple[str, str, str]],
    meta: Mapping[str, object] = MappingProxyType({}),
) -> Document:
    """A document of (field's name, text, what follows but at the end) whose texts are the parts.

    A short text is preceded by its field's name, which tells a detector that nine digits are a tax number. Names of
    fields are no parts, so they never change.
    """
    pieces: list[str] = []
    places: list[tuple[int, int]] = []
    at = 0
    for name, text, after in parts:
        lead = lead_in(name, text)
        start = at + len(lead)
        at = start + len(text) + len(after)
        places.append((start, start + len(text)))
        pieces += (lead, text, after)
    return Document(id, "".join(pieces[:-1]), meta, tuple(places))


def lead_in(name: str, text: str) -> str:
    """What is put before a field's text: its name as words and a colon; nothing before long or running text."""
    takes = name and text and len(text) <= MAX_NAMED and "\n" not in text and name.lower() not in TEXT_KEYS
    return f"{as_words(name)}: " if takes else ""


@lru_cache(maxsize=1024)
def as_words(name: str) -> str:
    """A field's name as words: ``firstName`` and ``first_name`` are both ``first name``."""
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return re.sub(r"[\s_.\-]+", " ", parted).strip().lower()


T = TypeVar("T")
R = TypeVar("R")
C = TypeVar("C")

IN_FLIGHT = 3
"""Batches per worker that are under way at most; bounds the memory of a run."""


def run_ordered(task: Callable[[C, T], R], items: Iterable[T], context: C, workers: int = 1) -> Iterator[R]:
    """``task(context, item)`` for each item, results in the items' order.

    Workers start from a clean server process, not as forks of this one: a fork of a program with threads (progress
    bars, Arrow) may hang. Each gets ``context`` once. At most ``IN_FLIGHT`` items per worker are read ahead.

    Args:
        task: a function at a module's top level.
        items: read lazily, in this process.
        context: what all items need; picklable.
        workers: processes, from 1; 1 runs in this process.

    Raises:
        AllonymError: a worker died.
    """
    if workers < 1:
        raise UsageError(f"workers must be 1 or more, got {workers}")
    if workers == 1:
        return (task(context, item) for item in items)
    return _run_pool(task, items, context, workers)


def _run_pool(task: Callable[[C, T], R], items: Iterable[T], context: C, workers: int) -> Iterator[R]:
    clean = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    processes = multiprocessing.get_context(clean)
    pool = ProcessPoolExecutor(workers, mp_context=processes, initializer=_start, initargs=(task, context))
    pending: deque[Future[Any]] = deque()
    try:
        for item in items:
            pending.append(pool.submit(_work, item))
            if len(pending) >= workers * IN_FLIGHT:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    except BrokenProcessPool:
        raise AllonymError(
            "a worker process died (out of memory, killed, or the calling script lacks its "
            "'if __name__ == \"__main__\"' guard); try fewer workers"
        ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_task: tuple[Callable[[Any, Any], Any], Any] | None = None


def _start(task: Callable[[Any, Any], Any], context: Any) -> None:
    global _task
    _task = (task, context)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    warnings.simplefilter("ignore")  # they may quote what a package was given
    threading.Thread(target=_follow_parent, daemon=True).start()


def _follow_parent() -> None:
    # A parent killed outright cannot end its workers, and they would wait for work for ever.
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)


def _work(item: Any) -> Any:
    assert _task is not None
    task, context = _task
    return task(context, item)
