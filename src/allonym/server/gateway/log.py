"""The log: one line for each request, with counts and times. It holds no text, neither of a request nor of an error."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from time import perf_counter

from allonym.server.gateway.restoring import Restoring

LOG = logging.getLogger("allonym.gateway")


class LogLine:
    """The line of one request.

    Args:
        request: method and path.
    """

    def __init__(self, request: str) -> None:
        self._request = request
        self._start = perf_counter()
        self._values: dict[str, object] = {}
        self.client = ""
        self.policy = ""

    def set_protected(self, labels: Mapping[str, int], milliseconds: float) -> None:
        """Set how many mentions of each label were replaced, and how long that took."""
        self._values["found"] = ",".join(f"{label}:{n}" for label, n in sorted(labels.items())) or "-"
        self._values["protect_ms"] = f"{milliseconds:.1f}"

    def set_restored(self, restoring: Restoring) -> None:
        """Set how many placeholders were restored, and how many were not."""
        self._values |= {"restored": restoring.restored, "unknown": restoring.unknown}

    def write(self, status: int, error: Exception | None = None) -> None:
        """Write the line; of an error only its type."""
        values = {"client": self.client or "-", "policy": self.policy or "-", **self._values}
        values["ms"] = f"{(perf_counter() - self._start) * 1000:.1f}"
        if error is not None:
            values["error"] = type(error).__name__
        LOG.info("%s status=%d %s", self._request, status, " ".join(f"{k}={v}" for k, v in values.items()))
