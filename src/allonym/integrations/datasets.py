"""A function for ``datasets.map`` of Hugging Face Datasets that anonymises columns on any number of processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from allonym.batch import Key, anonymize_batch, import_arrow
from allonym.errors import MissingExtra, UnknownNameError, UsageError
from allonym.pipeline import AnyPolicy
from allonym.policy import Policy


class Mapper:
    """A function over batches, from :func:`mapper`. Its ``repr`` shows no key."""

    def __init__(
        self,
        policy: Policy,
        columns: tuple[str, ...],
        id_column: str | None,
        key: Key,
        plan_column: str | None,
        error_column: str,
        version: str,
    ) -> None:
        self._policy = policy
        self._columns = columns
        self._id_column = id_column
        self._key = key
        self._added = (plan_column, error_column)
        self._version = version

    def __repr__(self) -> str:
        return f"Mapper({', '.join(self._columns)})"

    def __reduce__(self) -> tuple[object, ...]:
        # Datasets names its cache after a hash of this, so it holds what decides the result and nothing else.
        return (
            Mapper,
            (self._policy, self._columns, self._id_column, self._key, *self._added, self._version),
        )

    def __call__(self, batch: Any) -> Any:
        """Anonymise the text columns of a batch.

        Args:
            batch: column name to a list of texts (None where a row has none), as Datasets gives it with
                ``batched=True``; or a ``pyarrow.Table``, as it does with ``with_format("arrow")``.

        Returns:
            The changed and added columns; a table for a table, with all its columns.

        Raises:
            UnknownNameError: there is no such column.
            UsageError: a column to anonymise holds other values than texts, an added column exists already, or the
                function is called without ``batched=True``.
        """
        arrow = import_arrow()
        if isinstance(batch, arrow.Table):
            parts = [self._anonymize_batch(part) for part in batch.to_batches()] or [
                self._anonymize_batch(_make_empty_batch(arrow, batch))
            ]
            return arrow.Table.from_batches(parts)
        if not isinstance(batch, Mapping):
            raise UsageError("the mapper takes the batches of datasets.map(..., batched=True)")
        used = [*self._columns, *((self._id_column,) if self._id_column else ())]
        for name in used:
            if name not in batch:
                raise UnknownNameError("column", name, batch)
        for name in self._added:
            if name is not None and name in batch:
                raise UsageError(f"column {name!r} exists already; choose another name for the added column")
        columns = {}
        for name in self._columns:
            if isinstance(batch[name], str):
                raise UsageError("datasets.map needs batched=True for this mapper")
            values = list(batch[name])
            # Checked here, since Arrow's own errors quote the value.
            wrong = {type(v).__name__ for v in values if v is not None and not isinstance(v, str)}
            if wrong:
                raise UsageError(f"column {name!r} holds {', '.join(sorted(wrong))}, and text is required")
            columns[name] = arrow.array(values, arrow.large_string())
        if self._id_column is not None and self._id_column not in columns:
            columns[self._id_column] = arrow.array([str(v) for v in batch[self._id_column]], arrow.large_string())
        anonymised = self._anonymize_batch(arrow.RecordBatch.from_pydict(columns))
        out = {name: anonymised.column(anonymised.schema.names.index(name)).to_pylist() for name in self._columns}
        for name in self._added:
            if name is not None:
                # Datasets takes the type of a new column from its first batch: None alone would be no text.
                out[name] = [
                    value or "" for value in anonymised.column(anonymised.schema.names.index(name)).to_pylist()
                ]
        return out

    def _anonymize_batch(self, batch: Any) -> Any:
        plan_column, error_column = self._added
        return anonymize_batch(
            batch,
            self._policy,
            columns=self._columns,
            id_column=self._id_column,
            key=self._key,
            plan_column=plan_column,
            error_column=error_column,
        )


def mapper(
    policy: AnyPolicy = "default",
    *,
    columns: str | Sequence[str],
    id_column: str | None = None,
    key: Key = None,
    plan_column: str | None = None,
    error_column: str = "allonym_error",
) -> Mapper:
    """Make a function for ``dataset.map(function, batched=True, num_proc=2)`` that anonymises text columns.

    The text columns of one row form one document, and rows share nothing, so the result depends neither on the size of
    batches nor on the number of processes. A row that fails has None in its text columns and a reason in the error
    column, which is empty for the others.

    Datasets pickles the function to start processes and to name its cache. The cache on disk has the anonymised columns
    and a 64-bit hash of the pickle in its file name, not the key.

    Args:
        policy: a preset's name, a TOML file's path, or a :class:`Policy`. It is read now.
        columns: the columns to anonymise.
        id_column: the column whose values name the documents.
        key: secret of the keyed operators, at least 16 bytes.
        plan_column: name of an added column with plans as JSON, without originals; None: no such column.
        error_column: name of the added column with reasons.

    Raises:
        MissingExtra: datasets is not installed.
        PolicyError, UnknownNameError: the policy is not valid or not known.
        UsageError: no column is named.
    """
    try:
        import datasets  # noqa: F401
    except ImportError:
        raise MissingExtra("a function for datasets.map", "hf-datasets") from None
    from allonym import __version__

    named = (columns,) if isinstance(columns, str) else tuple(columns)
    if not named:
        raise UsageError("the mapper needs the names of the columns to anonymise")
    return Mapper(Policy.load(policy), named, id_column, key, plan_column, error_column, __version__)


def _make_empty_batch(arrow: Any, table: Any) -> Any:
    return arrow.RecordBatch.from_arrays([arrow.array([], field.type) for field in table.schema], schema=table.schema)
