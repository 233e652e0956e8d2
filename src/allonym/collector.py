"""How often Python looks for unreachable cycles of objects, in the processes that are ours."""

from __future__ import annotations

import gc

_NEW_OBJECTS = 20_000
_ROUNDS = 20


def slow_down_collector() -> None:
    """Collect cycles less often than Python does by default.

    The objects of a document live until it is done and form no cycles, so that nearly every round finds nothing, and
    passes over more objects the longer the document is. Only for a process of our own, never for that of a caller.
    """
    gc.set_threshold(_NEW_OBJECTS, _ROUNDS, _ROUNDS)
