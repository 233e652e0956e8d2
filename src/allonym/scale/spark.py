"""Spark: the Arrow kernel by ``mapInArrow``. The schema is known before rows are read; models load once per worker."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allonym.batch import Kernel, Key, import_arrow
from allonym.errors import UsageError, require_extra
from allonym.policy import Policy

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
