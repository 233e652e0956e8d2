"""Ray, started quietly: no usage statistics, no dashboard, no lines from workers, and a password on its sockets.

Ray talks through sockets, also on one machine. Nothing here is imported, and no socket opened, unless a caller asks for
Ray. Its sockets listen on all addresses of the machine; the cluster that :func:`connect_ray` starts for itself takes no
connection without a token made for it, where Ray knows tokens (2.52 or later) and was not imported before.
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

from allonym.errors import AllonymError, MissingExtra, UsageError

_STORE = 80 << 20  # bytes that Ray takes for what is passed on; documents are not
_ANSWER = 10.0  # seconds


def import_ray() -> Any:
    """The module ray; :class:`MissingExtra` where it is not installed."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if "ray" not in sys.modules and not {"RAY_ADDRESS", "RAY_AUTH_MODE"} & set(os.environ):
        # Ray reads it when it is imported; a caller who did so before decides on it.
        os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import ray
    except ImportError:
        raise MissingExtra("Ray", "ray") from None
    return ray


@contextmanager
def connect_ray(workers: int | None = None, store: int = _STORE) -> Iterator[Any]:
    """The module ray, connected; what was not connected before is disconnected at the end.

    The cluster is, in this order: the one that the caller is connected to; the one that ``RAY_ADDRESS`` names; one that
    is started on this machine and ended again.

    Args:
        workers: processors of a cluster that is started; by default all that this process may use.
        store: bytes of its object store; 0: as many as Ray thinks fit, and none of them ever on disk.

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
    _check_address(address)
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
                    object_store_memory=store or None,
                    _system_config=None if store else {"automatic_object_spilling_enabled": False},
                    **quiet,
                )
        except Exception as error:  # what Ray raises here has no common base
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


def _check_address(address: str) -> None:
    """Raises :class:`UsageError` where nobody listens at a ``host:port``; Ray takes over a minute to say so."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER).close()
    except (OSError, OverflowError) as error:
        raise UsageError(f"RAY_ADDRESS: no cluster answers there ({type(error).__name__})") from None


def count_processors(ray: Any) -> int:
    """How many processors the cluster has now, 1 at least."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))
