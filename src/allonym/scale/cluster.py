"""Connect to Ray or start it, without usage statistics, dashboard or worker logs, and with a token on its sockets.

Ray uses sockets even on one machine. It is imported, and sockets are opened, only on request. The sockets listen on all
addresses of the machine. A cluster that :func:`connect_ray` starts accepts only connections with its token, if Ray
supports tokens (2.52 or later) and was not imported before.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from allonym.errors import AllonymError, UsageError, hide_foreign_errors, require_extra

_STORE = 80 << 20  # bytes of Ray's object store; documents are not passed through it
_ANSWER = 10.0  # seconds


def import_ray() -> Any:
    """Import ray; raise :class:`MissingExtra` if it is not installed."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if "ray" not in sys.modules and not {"RAY_ADDRESS", "RAY_AUTH_MODE"} & set(os.environ):
        # Ray reads this on import; a caller who imported it before decides.
        os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    with require_extra("Ray", "ray"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ray
    return ray


@contextmanager
def connect_ray(workers: int | None = None, store_bytes: int = _STORE) -> Iterator[Any]:
    """Yield the module ray, connected to a cluster; a connection made here is closed at the end.

    The cluster is the one that the caller is connected to, else the one in ``RAY_ADDRESS``, else one that is started on
    this machine and stopped at the end.

    Args:
        workers: processors of a started cluster; by default all that this process may use.
        store_bytes: bytes of its object store; 0: Ray's default. It is never on disk.

    Raises:
        MissingExtra: Ray is not installed.
        UsageError: the cluster that ``RAY_ADDRESS`` names cannot be reached.
        AllonymError: Ray did not start here.
    """
    ray = import_ray()
    if ray.is_initialized():
        yield ray
        return
    address = os.environ.get("RAY_ADDRESS", "")
    _check_ray_listens(address)
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if address:
                ray.init(address=address, **quiet)
            else:
                ray.init(
                    address="local",
                    num_cpus=workers or len(os.sched_getaffinity(0)),
                    include_dashboard=False,
                    object_store_memory=store_bytes or None,
                    _system_config=None if store_bytes else {"automatic_object_spilling_enabled": False},
                    **quiet,
                )
        except Exception as error:  # Ray's exceptions here have no common base
            ray.shutdown()
            if address:
                raise UsageError(f"RAY_ADDRESS: no cluster answers there ({type(error).__name__})") from None
            raise AllonymError(
                "Ray did not start on this machine in time: is it very busy, or out of memory? Try again"
            ) from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_ray_listens(address: str) -> None:
    """Raise :class:`UsageError` if nothing listens at ``host:port``; Ray would take over a minute to fail."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        return
    with hide_foreign_errors("RAY_ADDRESS: no cluster answers there", OSError, OverflowError, error=UsageError):
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER).close()


def count_processors(ray: Any) -> int:
    """Return the cluster's current number of processors, at least 1."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))
