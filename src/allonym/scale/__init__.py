"""The batch kernel on data frames, on Ray and on Spark.

Each function takes one kind of data and returns the same kind, with one document per row or record. Workers share no
state, so consistent pseudonyms need a key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from allonym.lazy import load_on_use

if TYPE_CHECKING:
    from allonym.scale.files import anonymize_on_ray as anonymize_on_ray
    from allonym.scale.frames import anonymize_dataset as anonymize_dataset
    from allonym.scale.frames import anonymize_frame as anonymize_frame
    from allonym.scale.frames import anonymize_spark as anonymize_spark
    from allonym.scale.swap_ray import swap_workers as swap_workers

__all__ = load_on_use(__name__)
