"""A function for ``datasets.map`` of Hugging Face Datasets that anonymises columns on any number of processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from allonym.batch import Kernel, Key, import_arrow, make_empty_batch
from allonym.errors import UsageError, require_extra
from allonym.pipeline import AnyPolicy
from allonym.policy import Policy


@dataclass(frozen=True, repr=False)
class Mapper:
    """A function over batches, from :func:`mapper`. Its ``repr`` shows no key."""

    # Datasets names its cache after a hash of these, so they are what decides the result and nothing else.
    kernel: Kernel
    version: str

    def __repr__(self) -> str:
        return f"Mapper({', '.join(self.kernel.columns)})"

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
        arrow, kernel = import_arrow(), self.kernel
        if isinstance(batch, arrow.Table):
            parts = batch.to_batches() or [make_empty_batch(batch.schema)]
            return arrow.Table.from_batches([kernel(part) for part in parts])
        if not isinstance(batch, Mapping):
            raise UsageError("the mapper takes the batches of datasets.map(..., batched=True)")
        kernel.check_columns(list(batch))
        columns = {name: _make_text_array(arrow, name, batch[name]) for name in kernel.columns}
        if kernel.id_column is not None and kernel.id_column not in columns:
            columns[kernel.id_column] = arrow.array([str(v) for v in batch[kernel.id_column]], arrow.large_string())
        values = kernel(arrow.RecordBatch.from_pydict(columns)).to_pydict()
        # Datasets takes the type of a new column from its first batch: None alone would be no text.
        texts = {name: [value or "" for value in values[name]] for name in kernel.added_columns}
        return {name: values[name] for name in kernel.columns} | texts


def _make_text_array(arrow: Any, name: str, values: Any) -> Any:
    if isinstance(values, str):
        raise UsageError("datasets.map needs batched=True for this mapper")
    # Checked here, since Arrow's own errors quote the value.
    if wrong := {type(v).__name__ for v in values if v is not None and not isinstance(v, str)}:
        raise UsageError(f"column {name!r} holds {', '.join(sorted(wrong))}, and text is required")
    return arrow.array(list(values), arrow.large_string())


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
    with require_extra("a function for datasets.map", "hf-datasets"):
        import datasets  # noqa: F401
    from allonym import __version__

    named = (columns,) if isinstance(columns, str) else tuple(columns)
    if not named:
        raise UsageError("the mapper needs the names of the columns to anonymise")
    return Mapper(Kernel(Policy.load(policy), named, id_column, key, plan_column, error_column), __version__)
