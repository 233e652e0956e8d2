"""Every route of the server, with what it needs, from the application's own table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

OPEN = {
    ("GET", "/"),
    ("GET", "/study/{token}"),
    ("GET", "/v1/openapi.json"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/health"),
    ("POST", "/v1/setup"),
    ("POST", "/v1/session"),
    ("POST", "/v1/session/link"),
    ("GET", "/v1/session/ways"),
    ("GET", "/v1/oidc/start"),
    ("GET", "/v1/oidc/callback"),
    ("GET", "/v1/study/{token}"),
    ("POST", "/v1/study/{token}"),
}
"""Caller calls these needs no account. There are no others."""


@dataclass(frozen=True)
class Route:
    """One method of one path.

    Attributes:
        method: in capitals; ``WEBSOCKET`` of a WebSocket.
        path: the pattern.
        permissions: that it needs; None: it is open.
    """

    method: str
    path: str
    permissions: tuple[str, ...] | None

    @property
    def target(self) -> str:
        """A path that fits the pattern."""
        return re.sub(r"\{[^}]*\}", "1", self.path)

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def routes(app: Any) -> list[Route]:
    """All of them, but for what is mounted: the folder of static files."""
    found: dict[str, Route] = {}
    for one in _all(app.routes):
        if hasattr(one, "methods"):
            for method in sorted(one.methods):
                made = Route(method, one.path, _needs(one))
                if method != "HEAD" and not _is_open(made):
                    found[str(made)] = made
        elif type(one).__name__ != "Mount":
            found[f"WEBSOCKET {one.path}"] = Route("WEBSOCKET", one.path, ())
    return list(found.values())


def _is_open(route: Route) -> bool:
    return (route.method, route.path) in OPEN


def _all(given: Any) -> Iterator[Any]:
    for one in given:
        inner = getattr(one, "original_router", None)
        if inner is not None:
            yield from _all(inner.routes)
        else:
            yield one


def _needs(route: Any) -> tuple[str, ...]:
    if route.path == "/metrics":
        return ("metrics",)
    waiting, found = list((getattr(route, "dependant", None) and route.dependant.dependencies) or ()), []
    while waiting:
        one = waiting.pop()
        waiting += one.dependencies
        found += getattr(one.call, "permissions", ())
    return tuple(found)
