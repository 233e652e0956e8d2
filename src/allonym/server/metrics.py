"""Counts and times for Prometheus, without any text."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The metrics of one application; two in one process do not meet."""

    def __init__(self) -> None:
        self._all = CollectorRegistry()
        self._requests = Counter("allonym_requests", "Requests", ("method", "route", "status"), registry=self._all)
        self._seconds = Histogram(
            "allonym_request_seconds", "Seconds of a request", ("route",), buckets=_SECONDS, registry=self._all
        )
        self._mentions = Counter("allonym_mentions", "Mentions found", ("label",), registry=self._all)
        self._characters = Counter("allonym_characters", "Characters treated", registry=self._all)
        self._restored = Counter("allonym_restored", "Mentions brought back", registry=self._all)
        self._jobs = Gauge("allonym_jobs", "Jobs", ("state",), registry=self._all)

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """A request was answered."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def treated(self, characters: int, labels: Mapping[str, int]) -> None:
        """A text was treated."""
        self._characters.inc(characters)
        for label, count in labels.items():
            self._mentions.labels(label).inc(count)

    def restored(self, count: int) -> None:
        """Mentions were brought back."""
        self._restored.inc(count)

    def jobs(self, states: Mapping[str, int]) -> None:
        """How many jobs are in which state now."""
        for state, count in states.items():
            self._jobs.labels(state).set(count)

    def shown(self) -> bytes:
        """All of it in the text format of Prometheus."""
        return generate_latest(self._all)
