"""Ray Data: the Arrow kernel in a pool of actors, each with the policy and its models loaded once."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from allonym.batch import Kernel, Key, import_arrow
from allonym.errors import UsageError
from allonym.policy import Policy
from allonym.scale.cluster import import_ray
from allonym.scale.frames import ROWS

if TYPE_CHECKING:
    import pyarrow as pa
    from ray.data import Dataset


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
