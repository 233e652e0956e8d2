"""Ray Data: the Arrow kernel in a pool of actors, each with the policy and its models loaded once."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from allonym.batch import Key, import_arrow
from allonym.errors import UsageError
from allonym.policy import Policy
from allonym.scale.cluster import import_ray
from allonym.scale.frames import ROWS, Kernel

if TYPE_CHECKING:
    import pyarrow as pa
    from ray.data import Dataset


class _Actor:
    """What an actor holds between batches."""

    def __init__(self, kernel: Kernel) -> None:
        warnings.simplefilter("ignore")  # they may quote what a package was given
        self.kernel = kernel

    def __call__(self, table: pa.Table) -> pa.Table:
        arrow = import_arrow()
        batches = [self.kernel(batch) for batch in table.to_batches()]
        return arrow.Table.from_batches(batches, schema=self.kernel.schema(table.schema))


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
    """Anonymise columns of a Ray Data set; nothing is read before the result is asked for.

    The rows go through a pool of actors that grows and shrinks, while Ray Data holds back what is read faster than it
    is treated. The text columns of one row are one document. A row that fails has null in all of them, and the reason
    in the error column. What a killed worker was at is begun again, but a killed driver begins anew: for files that are
    to be gone on with there is :func:`anonymize_on_ray`.

    Args:
        dataset: the rows.
        policy: a preset's name, a TOML file's path (read here, not by the actors), or a :class:`Policy`.
        columns: the columns to treat, of a string type.
        id_column: the column that names rows to the policy.
        key: secret of the keyed operators. It is sent to the actors.
        plan_column: name of an added column with the plans as JSON; None: no such column.
        error_column: name of the added column with reasons; null where all went well.
        concurrency: actors, or (least, most) of a pool; by default from 1 to as many as the cluster has processors.
        gpus: how much of a GPU each actor gets, 0 or more. It is of use to detectors that run on PyTorch and whose
            policy names the device (``device = "cuda"`` of transformers, gliner, flair). The embedded tagger's network
            is quantised for processors: CUDA has no kernel for its matrix products, so a GPU does not speed it up.
        batch_rows: rows that an actor treats at once, 1 or more.

    Raises:
        UsageError: a column is missing, an added one exists, or GPUs are asked for and the cluster has none.
        MissingExtra: Ray or pyarrow is not installed.
    """
    ray = import_ray()
    import_arrow()
    if batch_rows < 1:
        raise UsageError(f"batch_rows must be 1 or more, got {batch_rows}")
    if gpus < 0:
        raise UsageError(f"gpus must be 0 or more, got {gpus}")
    if gpus and not ray.cluster_resources().get("GPU"):
        raise UsageError("gpus are asked for, and the cluster has none")
    kernel = Kernel(Policy.load(policy), tuple(columns), id_column, key, plan_column, error_column)
    schema = dataset.schema(fetch_if_missing=False)
    if schema is not None:
        kernel.check(schema.names)
    from ray.data import ActorPoolStrategy

    if concurrency is None:
        concurrency = (1, max(1, int(ray.cluster_resources().get("CPU", 1))))
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
