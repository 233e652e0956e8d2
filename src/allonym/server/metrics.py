"""Counts and times for Prometheus, without any text."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """The metrics of one application.

    Attributes:
        registry: holds them all.
        restored: counts mentions that were restored.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter("allonym_requests", "Requests", ("method", "route", "status"), registry=self.registry)
        self._seconds = Histogram(
            "allonym_request_seconds", "Seconds of a request", ("route",), buckets=_SECONDS, registry=self.registry
        )
        self._mentions = Counter("allonym_mentions", "Mentions found", ("label",), registry=self.registry)
        self._characters = Counter("allonym_characters", "Characters treated", registry=self.registry)
        self.restored = Counter("allonym_restored", "Mentions brought back", registry=self.registry)
        self._jobs = Gauge("allonym_jobs", "Jobs", ("state",), registry=self.registry)

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def count_processed_text(self, characters: int, mentions_by_label: Mapping[str, int]) -> None:
        """Count a text that was processed, with its mentions by label."""
        self._characters.inc(characters)
        for label, count in mentions_by_label.items():
            self._mentions.labels(label).inc(count)

    def set_job_counts(self, counts_by_state: Mapping[str, int]) -> None:
        """Set how many jobs are in each state now."""
        for state, count in counts_by_state.items():
            self._jobs.labels(state).set(count)
