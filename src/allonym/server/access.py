"""Callers and what they may do: roles, permissions, and the token by which a request names its caller."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from allonym.errors import RequestError

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection

COOKIE = "allonym_session"
SAFE = frozenset(("GET", "HEAD", "OPTIONS"))

_ANNOTATOR = ("detect", "anonymize", "evaluate", "jobs", "review")
_REVIEWER = (*_ANNOTATOR, "restore", "adjudicate", "studies")
PERMISSIONS = (*_REVIEWER, "metrics", "admin")
ROLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"annotator": _ANNOTATOR, "reviewer": _REVIEWER, "admin": PERMISSIONS}
)
"""The permissions of each role. Originals are given only to callers who may ``restore``."""

OPEN = "open"
"""Name and role of :data:`NOBODY`, also in the audit log."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sends a request.

    Attributes:
        id: the user's number; 0 for :data:`NOBODY`.
        name: the user's name.
        role: one of ``ROLES``.
        permissions: those of the role; for an API key, those that it was given.
        key: the API key's name; None in a session.
        csrf: the token that unsafe requests of a session need; empty with an API key.
    """

    id: int
    name: str
    role: str
    permissions: frozenset[str]
    key: str | None = None
    csrf: str = field(default="", repr=False)

    @property
    def audit_name(self) -> str:
        """The name for the audit log."""
        return f"{self.name} (key {self.key})" if self.key else self.name

    def check_permissions(self, *permissions: str) -> None:
        """Raise :class:`RequestError` (403) unless the caller has all of these permissions."""
        for permission in permissions:
            if permission not in self.permissions:
                whose = f"the key {self.key!r}" if self.key else f"the role {self.role!r}"
                raise RequestError(f"this needs the permission {permission!r}, which {whose} lacks", 403, "NotAllowed")


NOBODY = Caller(0, OPEN, OPEN, frozenset(("detect", "anonymize", "restore")))
"""The caller without credentials, where a setting opens a route."""


def get_token_and_is_key(connection: HTTPConnection) -> tuple[str, bool]:
    """Return the API key of a request (True), or the token of its session (False); empty where it has neither."""
    scheme, _, key = connection.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and key.strip():
        return key.strip(), True
    return connection.cookies.get(COOKIE, ""), False
