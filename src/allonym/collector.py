"""When Python looks for unreachable cycles of objects, in the processes that are ours."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_NEW_OBJECTS = 20_000
_ROUNDS = 20
_is_ours = False


def slow_down_collector() -> None:
    """Collect cycles less often than Python does by default. Only for a process of our own, never for a caller's."""
    global _is_ours
    _is_ours = True
    gc.set_threshold(_NEW_OBJECTS, _ROUNDS, _ROUNDS)


@contextmanager
def pause_collector() -> Iterator[None]:
    """Collect no cycles meanwhile, in a process of our own.

    The objects of a document live until it is done and form no cycles, so that a round in its midst finds nothing, and
    passes over more objects the longer the document is.
    """
    if not (_is_ours and gc.isenabled()):
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
