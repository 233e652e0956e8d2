"""The batch kernel on data frames, on Ray and on Spark.

Each function takes one kind of data and returns the same kind, with one document per row or record. Workers share no
state, so consistent pseudonyms need a key.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from allonym.scale.dataset import anonymize_dataset
    from allonym.scale.files import anonymize_on_ray
    from allonym.scale.frames import anonymize_frame
    from allonym.scale.spark import anonymize_spark
    from allonym.scale.swap_ray import swap_workers

__all__ = ["anonymize_dataset", "anonymize_frame", "anonymize_on_ray", "anonymize_spark", "swap_workers"]

_WHERE = {
    "anonymize_dataset": "dataset",
    "anonymize_frame": "frames",
    "anonymize_on_ray": "files",
    "anonymize_spark": "spark",
    "swap_workers": "swap_ray",
}


def __getattr__(name: str) -> object:
    if name in _WHERE:
        return getattr(import_module(f"allonym.scale.{_WHERE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
