"""Data frames through the Arrow kernel, in batches of bounded size: pandas, Polars, DuckDB, Arrow, Ray Data and Spark.

On Ray the kernel runs in a pool of actors, each with the policy and its models loaded once; on Spark in ``mapInArrow``,
which knows the schema before rows are read. Models load once per worker.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from allonym.batch import Kernel, Key, import_arrow, make_empty_batch, run_ordered
from allonym.errors import UsageError, require_extra
from allonym.policy import Policy
from allonym.scale.cluster import count_processors, import_ray

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from ray.data import Dataset

ROWS = 1024
"""Greatest number of rows in a batch."""

F = TypeVar("F")


def anonymize_frame(
    frame: F,
    policy: str | Path | Policy = "default",
    *,
    columns: Sequence[str],
    id_column: str | None = None,
    key: Key = None,
    plan_column: str | None = None,
    error_column: str = "allonym_error",
    workers: int = 1,
    batch_rows: int = ROWS,
    connection: Any = None,
) -> F:
    """Anonymise columns of a data frame, and return a frame of the same kind.

    The text columns of one row form one document: they share entities and numbering. A failing row has null in all of
    them, and the reason in the error column. Other columns, the order and the index stay.

    Args:
        frame: a pandas ``DataFrame``, a Polars ``DataFrame`` or ``LazyFrame``, a DuckDB relation, or of pyarrow a
            ``Table``, ``RecordBatch`` or ``RecordBatchReader``. Never changed. A reader and a ``LazyFrame`` are
            processed lazily; only some batches of a reader are in memory.
        policy: a preset's name, a TOML file's path, or a :class:`Policy`.
        columns: the columns to anonymise, which must be text.
        id_column: the column with the ids of rows; by default rows have none.
        key: secret of the keyed operators. Without it, equal names in different rows get different replacements.
        plan_column: name of an added column with the plans as JSON; None: no such column.
        error_column: name of the added column with the reasons of failures; null without a failure.
        workers: number of processes; the result does not depend on it.
        batch_rows: greatest number of rows in a batch, 1 or more.
        connection: the DuckDB connection of the result; by default DuckDB's default connection.

    Raises:
        UsageError: a column is missing or not text, an added one exists, or the kind of frame is unknown.
        MissingExtra: pyarrow is not installed.
    """
    import_arrow()
    if batch_rows < 1:
        raise UsageError(f"batch_rows must be 1 or more, got {batch_rows}")
    kernel = Kernel(Policy.load(policy), tuple(columns), id_column, key, plan_column, error_column)
    kind = f"{type(frame).__module__.partition('.')[0]}.{type(frame).__name__}"
    kind = kind.removeprefix("_")
    treat = _KINDS.get(kind)
    if treat is None:
        raise UsageError(f"no frame of the kind {kind} is known; known: {', '.join(sorted(_KINDS))}")
    return cast(F, treat(frame, kernel, workers, batch_rows, connection))


def _anonymize_arrow_table(table: Any, kernel: Kernel, workers: int, batch_rows: int, connection: Any) -> Any:
    kernel.check_columns(table.schema.names)
    batches = list(run_ordered(Kernel.__call__, table.to_batches(max_chunksize=batch_rows), kernel, workers))
    return import_arrow().Table.from_batches(batches, schema=kernel.make_output_schema(table.schema))


def _anonymize_one_batch(batch: Any, kernel: Kernel, workers: int, batch_rows: int, connection: Any) -> Any:
    table = _anonymize_arrow_table(import_arrow().Table.from_batches([batch]), kernel, workers, batch_rows, connection)
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else make_empty_batch(table.schema)


def _anonymize_batch_reader(reader: Any, kernel: Kernel, workers: int, batch_rows: int, connection: Any) -> Any:
    kernel.check_columns(reader.schema.names)
    small = (batch.slice(offset, batch_rows) for batch in reader for offset in range(0, batch.num_rows, batch_rows))
    batches = run_ordered(Kernel.__call__, small, kernel, workers)
    return import_arrow().RecordBatchReader.from_batches(kernel.make_output_schema(reader.schema), batches)


def _anonymize_pandas(frame: Any, kernel: Kernel, workers: int, batch_rows: int, connection: Any) -> Any:
    arrow = import_arrow()
    kernel.check_columns(list(frame.columns))
    try:
        table = arrow.table({name: arrow.array(frame[name], from_pandas=True) for name in kernel.input_columns})
    except (arrow.ArrowException, TypeError):  # Arrow's message quotes the value
        raise UsageError(
            f"the columns {', '.join(kernel.input_columns)} must contain only text and missing values"
        ) from None
    # A column without any value has the type null.
    for index, name in enumerate(table.schema.names):
        if arrow.types.is_null(table.schema.field(name).type):
            table = table.set_column(index, name, table.column(name).cast(arrow.string()))
    result = _anonymize_arrow_table(table, kernel, workers, batch_rows, connection)
    out = frame.copy()
    for name in (*kernel.columns, *kernel.added_columns):
        values = result.column(name).to_pylist()
        had = frame[name].dtype if name in kernel.columns else None
        kind = object if had is None or str(had) == "category" else had
        out[name] = type(frame[kernel.columns[0]])(values, index=frame.index, dtype=kind)
    return out


def _anonymize_polars(frame: Any, kernel: Kernel, workers: int, batch_rows: int, connection: Any) -> Any:
    import polars

    kernel.check_columns(frame.columns)
    result = _anonymize_arrow_table(
        frame.select(kernel.input_columns).to_arrow(), kernel, workers, batch_rows, connection
    )
    treated: Any = polars.from_arrow(result.select([*kernel.columns, *kernel.added_columns]))
    return frame.with_columns(treated.get_columns())


def _anonymize_lazy_frame(frame: Any, kernel: Kernel, workers: int, batch_rows: int, connection: Any) -> Any:
    import polars

    schema = frame.collect_schema()
    kernel.check_columns(schema.names())
    schema = {**schema, **dict.fromkeys((*kernel.columns, *kernel.added_columns), polars.String)}
    # Filters on the result must not be pushed down to the originals.
    return frame.map_batches(
        lambda some: _anonymize_polars(some, kernel, workers, batch_rows, connection),
        schema=schema,
        predicate_pushdown=False,
        projection_pushdown=False,
    )


def _anonymize_duckdb(relation: Any, kernel: Kernel, workers: int, batch_rows: int, connection: Any) -> Any:
    import duckdb

    kernel.check_columns(relation.columns)
    read = getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch  # before DuckDB 1.4
    reader = _anonymize_batch_reader(read(batch_rows), kernel, workers, batch_rows, connection)
    # A relation may be read more than once, a reader may not.
    return (connection or duckdb).from_arrow(reader.read_all())


_KINDS: dict[str, Callable[[Any, Kernel, int, int, Any], Any]] = {
    "pyarrow.Table": _anonymize_arrow_table,
    "pyarrow.RecordBatch": _anonymize_one_batch,
    "pyarrow.RecordBatchReader": _anonymize_batch_reader,
    "pandas.DataFrame": _anonymize_pandas,
    "polars.DataFrame": _anonymize_polars,
    "polars.LazyFrame": _anonymize_lazy_frame,
    "duckdb.DuckDBPyRelation": _anonymize_duckdb,
}


class _Actor:
    """The state of an actor between batches."""

    def __init__(self, kernel: Kernel) -> None:
        warnings.simplefilter("ignore")  # warnings of packages may quote their input
        self.kernel = kernel

    def __call__(self, table: pa.Table) -> pa.Table:
        arrow = import_arrow()
        batches = [self.kernel(batch) for batch in table.to_batches()]
        return arrow.Table.from_batches(batches, schema=self.kernel.make_output_schema(table.schema))


def anonymize_dataset(
    dataset: Dataset,
    policy: str | Path | Policy = "default",
    *,
    columns: Sequence[str],
    id_column: str | None = None,
    key: Key = None,
    plan_column: str | None = None,
    error_column: str = "allonym_error",
    concurrency: int | tuple[int, int] | None = None,
    gpus: float = 0.0,
    batch_rows: int = ROWS,
) -> Dataset:
    """Anonymise columns of a Ray Data set, lazily.

    The rows go through a pool of actors that grows and shrinks, with back-pressure on reading. The text columns of one
    row form one document. A failing row has null in all of them, and the reason in the error column. The work of a
    killed worker is repeated, but a killed driver starts again; :func:`anonymize_on_ray` can resume runs over files.

    Args:
        dataset: the rows.
        policy: a preset's name, a TOML file's path (read here, not by the actors), or a :class:`Policy`.
        columns: the columns to anonymise, of a string type.
        id_column: the column with the ids of rows.
        key: secret of the keyed operators. It is sent to the actors.
        plan_column: name of an added column with the plans as JSON; None: no such column.
        error_column: name of the added column with the reasons of failures; null without a failure.
        concurrency: number of actors, or (least, most) of a pool; by default from 1 to the cluster's processors.
        gpus: share of a GPU for each actor, 0 or more. It helps detectors on PyTorch whose policy names the device
            (``device = "cuda"`` of transformers, gliner, flair). The embedded tagger's network is quantised for
            processors; CUDA has no kernel for its matrix products, so a GPU does not speed it up.
        batch_rows: rows in a batch, 1 or more.

    Raises:
        UsageError: a column is missing, an added one exists, or the cluster lacks the requested GPUs.
        MissingExtra: Ray or pyarrow is not installed.
    """
    ray = import_ray()
    import_arrow()
    if batch_rows < 1:
        raise UsageError(f"batch_rows must be 1 or more, got {batch_rows}")
    if gpus < 0:
        raise UsageError(f"gpus must be 0 or more, got {gpus}")
    if gpus and not ray.cluster_resources().get("GPU"):
        raise UsageError("gpus are requested, but the cluster has none")
    kernel = Kernel(Policy.load(policy), tuple(columns), id_column, key, plan_column, error_column)
    schema = dataset.schema(fetch_if_missing=False)
    if schema is not None:
        kernel.check_columns(schema.names)
    from ray.data import ActorPoolStrategy

    if concurrency is None:
        concurrency = (1, count_processors(ray))
    least, most = (concurrency, concurrency) if isinstance(concurrency, int) else concurrency
    options: dict[str, Any] = {"num_gpus": gpus} if gpus else {}
    return dataset.map_batches(
        cast(Any, _Actor),
        fn_constructor_args=(kernel,),
        batch_format="pyarrow",
        batch_size=batch_rows,
        compute=ActorPoolStrategy(min_size=least, max_size=most),
        num_cpus=1,
        **options,
    )


def anonymize_spark(
    frame: DataFrame,
    policy: str | Path | Policy = "default",
    *,
    columns: Sequence[str],
    id_column: str | None = None,
    key: Key = None,
    plan_column: str | None = None,
    error_column: str = "allonym_error",
) -> DataFrame:
    """Anonymise columns of a Spark data frame, lazily.

    The text columns of one row form one document. A failing row has null in all of them, and the reason in the error
    column. allonym must be installed where Spark's Python workers run.
    ``spark.sql.execution.arrow.maxRecordsPerBatch`` limits the rows that a worker has in memory.

    Args:
        frame: the rows; other columns and the partitions stay as they are.
        policy: a preset's name, a TOML file's path (read here, not by the workers), or a :class:`Policy`.
        columns: the columns to anonymise, of type string.
        id_column: the column with the ids of rows.
        key: secret of the keyed operators. It is part of the job that Spark sends to its workers.
        plan_column: name of an added column with the plans as JSON; None: no such column.
        error_column: name of the added column with the reasons of failures; null without a failure.

    Raises:
        UsageError: a column is missing or not text, or an added one exists.
        MissingExtra: pyspark or pyarrow is not installed.
    """
    import_arrow()
    with require_extra("Spark", "spark"):
        from pyspark.sql.types import StringType, StructField, StructType
    kernel = Kernel(Policy.load(policy), tuple(columns), id_column, key, plan_column, error_column)
    kernel.check_columns(frame.columns)
    fields = list(frame.schema.fields)
    for index, spark_field in enumerate(fields):
        if spark_field.name in kernel.columns:
            if not isinstance(spark_field.dataType, StringType):
                kind = spark_field.dataType.simpleString()
                raise UsageError(f"column {spark_field.name!r} holds {kind}, and text is required")
            fields[index] = StructField(spark_field.name, spark_field.dataType, True, spark_field.metadata)
    fields += [StructField(name, StringType(), True) for name in kernel.added_columns]

    def anonymize_partition(batches: Iterator[Any]) -> Iterator[Any]:
        warnings.simplefilter("ignore")  # warnings of packages may quote their input
        return map(kernel, batches)

    return frame.mapInArrow(anonymize_partition, StructType(fields))
