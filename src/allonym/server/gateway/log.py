"""The log: one line for each request, with counts and times. It holds no text, neither of a request nor of an error."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from time import perf_counter

from allonym.server.gateway.restoring import Restoring

LOG = logging.getLogger("allonym.gateway")


class Line:
    """What the log says of one request.

    Args:
        asked: method and path.
    """

    def __init__(self, asked: str) -> None:
        self._asked = asked
        self._start = perf_counter()
        self._said: dict[str, object] = {}
        self.client = ""
        self.policy = ""

    def protected(self, labels: Mapping[str, int], milliseconds: float) -> None:
        """How many mentions of which label were replaced, and how long that took."""
        self._said["found"] = ",".join(f"{label}:{n}" for label, n in sorted(labels.items())) or "-"
        self._said["protect_ms"] = f"{milliseconds:.1f}"

    def restored(self, restoring: Restoring) -> None:
        """How many placeholders were undone, and how many were left."""
        self._said |= {"restored": restoring.restored, "unknown": restoring.unknown}

    def write(self, status: int, error: Exception | None = None) -> None:
        """Write the line; of an error only its type."""
        said = {"client": self.client or "-", "policy": self.policy or "-", **self._said}
        said["ms"] = f"{(perf_counter() - self._start) * 1000:.1f}"
        if error is not None:
            said["error"] = type(error).__name__
        LOG.info("%s status=%d %s", self._asked, status, " ".join(f"{k}={v}" for k, v in said.items()))
