"""Many documents: one pure kernel, its Arrow interface, and the local process pool.

The kernel keeps no state between documents, so splitting the work in another way changes no byte of the output. A
document that cannot be processed yields a reason and no text; the others continue.
"""

from __future__ import annotations

import gc
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
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from allonym.collector import slow_down_collector
from allonym.document import DATES_OF, Document, Span
from allonym.errors import (
    AllonymError,
    DataError,
    UnknownNameError,
    UsageError,
    VaultError,
    hide_foreign_errors,
    require_extra,
)
from allonym.plan import Anonymized
from allonym.policy import Policy
from allonym.scratch import get_process_scratch_folder

if TYPE_CHECKING:
    import pyarrow as pa

    from allonym.replace import Book, Keeper

T = TypeVar("T")
R = TypeVar("R")
C = TypeVar("C")
Key = bytes | str | None

RECORD_ERRORS = (ValueError, TypeError, LookupError, ArithmeticError, RecursionError, MemoryError)
"""Errors in one document that do not end the run. All others end it, as does a :class:`UsageError`."""

TEXT_KEYS = frozenset(("text", "content", "value", "utterance", "message", "body"))
"""Names of fields that hold running text and say nothing about it."""

MAX_NAMED = 200
"""Length in code points up to which a text is preceded by its field's name."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A document that is left out.

    Attributes:
        id: the document's id; empty where it has none.
        line: its line, from 1, within the chunk that holds it; 0 where it comes from no chunk.
        reason: why it failed. Never quotes the document.
    """

    id: str
    line: int
    reason: str


Findings = tuple[Span, ...] | Failure
Outcome = Anonymized | Failure


def describe_failure(error: Exception) -> str:
    """Why a document failed, without any of its text: errors from outside allonym are named by their class alone."""
    return str(error) if isinstance(error, AllonymError) else f"{type(error).__name__} while processing it"


def run_records(
    documents: Iterable[Document],
    policy: str | Path | Policy = "default",
    key: Key = None,
    *,
    vault: Keeper | None = None,
    scope: str = "",
    findings: Sequence[Findings] | None = None,
) -> list[Outcome]:
    """Anonymise documents one by one: pure, stateless, in order.

    Args:
        documents: each is numbered on its own; its parts share the numbering.
        policy: a preset's name, a TOML file's path, or a :class:`Policy`.
        key: secret of the keyed operators.
        vault: stores originals and replacements; these documents are one transaction of it.
        scope: name of the project or release.
        findings: the result of :func:`detect_records` for these documents; by default they are searched here.

    Returns:
        For each document its result, or why it failed.

    Raises:
        UsageError: the policy or the key is not valid.
        VaultError: the vault cannot be written.
    """
    from allonym.replace import subject_of

    policy = Policy.load(policy)
    documents = list(documents)
    if key is None and vault is not None:
        key = vault.operator_key
    findings = detect_records(documents, policy, key) if findings is None else findings
    if vault is None:
        return [_replace_in_record(d, f, policy, key, scope, None) for d, f in zip(documents, findings, strict=True)]
    subjects = [_run_catching_failures(document, lambda d: subject_of(d, policy)) for document in documents]
    outcomes: list[Outcome] = []
    with vault.book(scope) as book:
        for document, subject, spans in zip(documents, subjects, findings, strict=True):
            book.about(subject if isinstance(subject, str) else "")
            spans = subject if isinstance(subject, Failure) else spans
            outcomes.append(_replace_in_record(document, spans, policy, key, scope, book))
    return outcomes


def detect_records(documents: Iterable[Document], policy: Policy, key: Key = None) -> list[Findings]:
    """Run :func:`allonym.pipeline.detect_with_key` on each document; a failure takes the place of its findings."""
    from allonym.pipeline import detect_with_key

    return [_run_catching_failures(document, lambda d: detect_with_key(d, policy, key)) for document in documents]


def _replace_in_record(
    document: Document, findings: Findings, policy: Policy, key: Key, scope: str, book: Book | None
) -> Outcome:
    from allonym.pipeline import replace_found

    if isinstance(findings, Failure):
        return findings
    return _run_catching_failures(
        document, lambda d: replace_found(d, findings, policy, key=key, scope=scope, book=book)
    )


def _run_catching_failures(document: Document, function: Callable[[Document], T]) -> T | Failure:
    """The function's value for the document, or why it failed there."""
    try:
        return retry_out_of_memory(lambda: function(document))
    except (UsageError, VaultError):
        raise
    except (DataError, *RECORD_ERRORS) as error:
        return Failure(document.id, 0, describe_failure(error))


@dataclass(frozen=True, slots=True)
class Kernel:
    """The kernel for Arrow: a function from a record batch to a record batch, sent once to each worker.

    The text columns of one row form one document. In a row that fails the text columns are null and the error column
    holds the reason. Other columns and the schema's metadata stay as they are.

    Attributes:
        policy: how to anonymise.
        columns: the columns to anonymise, of a string type (dictionary-encoded too).
        id_column: the column that names the rows in errors; by default their number.
        key: secret of the keyed operators.
        plan_column: name of the added column with plans as JSON; None: no such column.
        error_column: name of the added column with reasons; null in rows without an error.
    """

    policy: Policy
    columns: tuple[str, ...]
    id_column: str | None = None
    key: Key = field(default=None, repr=False)
    plan_column: str | None = None
    error_column: str = "allonym_error"

    @hide_foreign_errors("a batch cannot be anonymised", ValueError, TypeError, LookupError, NotImplementedError)
    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Anonymise one record batch, which is never changed.

        Raises:
            UnknownNameError: there is no such column.
            UsageError: a column to anonymise holds no text, or an added column exists already.
            DataError: Arrow rejects the batch; the message quotes nothing of it.
        """
        arrow = import_arrow()
        names = list(batch.schema.names)
        self.check_columns(names)
        texts = [_read_string_column(arrow, batch, name) for name in self.columns]
        id_column = batch.column(names.index(self.id_column)) if self.id_column else None
        ids = range(batch.num_rows) if id_column is None else read_arrow_values(id_column)
        named = [[(n, text or "", "\n") for text in column] for n, column in zip(self.columns, texts, strict=True)]
        documents = [join_fields(str(id), fields) for id, *fields in zip(ids, *named, strict=True)]
        outcomes = run_records(documents, self.policy, self.key)
        results = [outcome if isinstance(outcome, Anonymized) else None for outcome in outcomes]
        arrays = list(batch.columns)
        schema = batch.schema
        for number, (name, originals) in enumerate(zip(self.columns, texts, strict=True)):
            index = names.index(name)
            parts = [result and result.parts[number] for result in results]
            values = [None if text is None else part for text, part in zip(originals, parts, strict=True)]
            kind = batch.schema.field(index).type
            flat = kind.value_type if arrow.types.is_dictionary(kind) else kind
            # Failing rows become null, so the column must allow that whatever the input's schema says.
            schema = schema.set(index, schema.field(index).with_type(flat).with_nullable(True))
            arrays[index] = arrow.array(values, flat)
        if self.plan_column is not None:
            schema = schema.append(arrow.field(self.plan_column, arrow.string()))
            arrays.append(arrow.array([result and result.plan.to_json() for result in results], arrow.string()))
        reasons = [outcome.reason if isinstance(outcome, Failure) else None for outcome in outcomes]
        schema = schema.append(arrow.field(self.error_column, arrow.string()))
        arrays.append(arrow.array(reasons, arrow.string()))
        return arrow.RecordBatch.from_arrays(arrays, schema=schema)

    @property
    def input_columns(self) -> list[str]:
        """The columns to read."""
        return [*self.columns, *((self.id_column,) if self.id_column and self.id_column not in self.columns else ())]

    @property
    def added_columns(self) -> list[str]:
        """The added columns, all of strings."""
        return [*((self.plan_column,) if self.plan_column else ()), self.error_column]

    def make_output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the output schema for an input schema; raises as the kernel would."""
        return self(make_empty_batch(schema)).schema

    def check_columns(self, names: Sequence[str]) -> None:
        """Raise :class:`UsageError` if columns are missing or named twice, or added columns exist."""
        for name in self.input_columns:
            if name not in names:
                raise UnknownNameError("column", name, [str(n) for n in names])
            if list(names).count(name) > 1:
                raise UsageError(f"there are several columns {name!r}")
        for name in self.added_columns:
            if name in names:
                raise UsageError(f"column {name!r} exists already; choose another name for the added column")


def anonymize_batch(
    batch: pa.RecordBatch, policy: str | Path | Policy = "default", *, columns: Sequence[str], **more: Any
) -> pa.RecordBatch:
    """Anonymise one record batch as :class:`Kernel` does, with a column ``allonym_plan`` by default.

    Args:
        batch: the rows; never changed.
        policy: as in :func:`run_records`.
        columns: the columns to anonymise, of a string type.
        more: further attributes of the kernel.

    Raises:
        UnknownNameError, UsageError, DataError: as for :class:`Kernel`.
    """
    return Kernel(Policy.load(policy), tuple(columns), **{"plan_column": "allonym_plan", **more})(batch)


def make_empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """Return a record batch without rows."""
    arrow = import_arrow()
    return arrow.RecordBatch.from_arrays([arrow.array([], f.type) for f in schema], schema=schema)


def import_arrow() -> Any:
    """The module pyarrow; :class:`MissingExtra` where it is not installed."""
    with require_extra("Parquet and Arrow", "parquet"):
        import pyarrow
    return pyarrow


def is_text_type(arrow: Any, kind: Any) -> bool:
    """Whether an Arrow type holds text: string, large string, string view, or a dictionary of one of them."""
    if arrow.types.is_dictionary(kind):
        kind = kind.value_type
    view = getattr(arrow.types, "is_string_view", lambda _: False)
    return bool(arrow.types.is_string(kind) or arrow.types.is_large_string(kind) or view(kind))


def _read_string_column(arrow: Any, batch: Any, name: str) -> list[str | None]:
    column = batch.column(batch.schema.names.index(name))
    if not is_text_type(arrow, column.type):
        raise UsageError(f"column {name!r} holds {column.type}, and text is required")
    return cast("list[str | None]", read_arrow_values(column))


def read_arrow_values(column: Any) -> list[Any]:
    """Return the values of a column of Arrow. Raises :class:`DataError` where text is not valid UTF-8."""
    with hide_foreign_errors("a column holds no valid values", ValueError):
        return cast("list[Any]", column.to_pylist())


_SUBJECT_FIELD = re.compile(
    r"(?:(?:study )?(?:participant|patient|respondent|interviewee|proband|pupil|student)|client|case|teilnehmer)"
    r"(?: (?:id|no|nr|number|code|key))?|subject (?:id|no|nr|number|code|key)|participantid|patientid|subjectid|pid"
)


def join_fields(
    id: str,
    parts: Iterable[tuple[str, str, str]],
    meta: Mapping[str, object] = MappingProxyType({}),
    roles: Iterable[str] = (),
) -> Document:
    """Build a document whose parts are the texts of (field's name, text, separator); the last separator is dropped.

    A short text is preceded by its field's name, which tells a detector that nine digits are a tax number. Names of
    fields are no parts, so they never change.

    Dates of records with one value of a field such as ``participant`` or ``patient ID`` move alike.
    """
    pieces: list[str] = []
    intervals: list[tuple[int, int]] = []
    names: list[str] = []
    length = 0
    for name, text, separator in parts:
        names.append(name)
        if text.strip() and DATES_OF not in meta and _SUBJECT_FIELD.fullmatch(split_field_name(name)):
            meta = {**meta, DATES_OF: text.strip()}
        lead = format_lead_in(name, text)
        start = length + len(lead)
        length = start + len(text) + len(separator)
        intervals.append((start, start + len(text)))
        pieces += (lead, text, separator)
    return Document(id, "".join(pieces[:-1]), meta, tuple(intervals), roles=tuple(roles), fields=tuple(names))


def format_lead_in(name: str, text: str) -> str:
    """The words before a field's text: its name and a colon; empty for long or running text."""
    is_named = name and text and len(text) <= MAX_NAMED and "\n" not in text and name.lower() not in TEXT_KEYS
    return f"{split_field_name(name)}: " if is_named else ""


@lru_cache(maxsize=1024)
def split_field_name(name: str) -> str:
    """A field's name as words: ``firstName`` and ``first_name`` are both ``first name``."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return re.sub(r"[\s_.\-]+", " ", spaced).strip().lower()


IN_FLIGHT = 3
"""Batches per worker that are under way at most; bounds the memory of a run."""


def run_ordered(task: Callable[[C, T], R], items: Iterable[T], context: C, workers: int = 1) -> Iterator[R]:
    """Run ``task(context, item)`` for each item; the results come in the order of the items.

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
    return _run_in_pool(task, items, context, workers)


def _run_in_pool(task: Callable[[C, T], R], items: Iterable[T], context: C, workers: int) -> Iterator[R]:
    clean = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    # Python keeps the socket of its server process there; its own folder would stay after a kill.
    multiprocessing.current_process()._config["tempdir"] = str(get_process_scratch_folder(os.getpid()))  # type: ignore[attr-defined]
    processes = multiprocessing.get_context(clean)
    pool = ProcessPoolExecutor(
        workers, mp_context=processes, initializer=_start_worker, initargs=(task, context, processes.Lock())
    )
    pending: deque[Future[Any]] = deque()
    try:
        for item in items:
            pending.append(pool.submit(_run_task, item))
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


_turn: AbstractContextManager[Any] = nullcontext()
"""Held by the one worker that tries again what ran out of memory."""


def retry_out_of_memory(function: Callable[[], T]) -> T:
    """Return the function's value; if it runs out of memory, try once more, one worker at a time."""
    with suppress(MemoryError):
        return function()
    with _turn:  # after the exception, which holds on to what was in use
        gc.collect()
        return function()


def _start_worker(task: Callable[[Any, Any], Any], context: Any, turn: AbstractContextManager[Any]) -> None:
    global _task, _turn
    _task, _turn = (task, context), turn
    slow_down_collector()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    warnings.simplefilter("ignore")  # they may quote what a package was given
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    # A parent killed outright cannot end its workers, and they would wait for work for ever.
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)


def _run_task(item: Any) -> Any:
    assert _task is not None
    task, context = _task
    return task(context, item)
