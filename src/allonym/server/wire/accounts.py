"""Users, sessions, API keys, the audit log."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from allonym.server.wire.base import Name, Wire

Permission = Literal[
    "detect", "anonymize", "evaluate", "jobs", "review", "restore", "adjudicate", "studies", "metrics", "admin"
]
Role = Literal["annotator", "reviewer", "admin"]


class SignIn(Wire):
    """Name and password."""

    name: str = Field(max_length=64)
    password: str = Field(max_length=1024)


class Setup(SignIn):
    """A new account by a one-time link."""

    token: str = Field(max_length=200)


class NewPassword(Wire):
    """A change of one's own password."""

    old: str = Field(max_length=1024)
    new: str = Field(max_length=1024)


class Session(Wire):
    """The caller and their permissions."""

    name: str
    role: str
    permissions: list[str]
    csrf: str | None = Field(description="to be sent as X-CSRF-Token; null with an API key")


class UserOut(Wire):
    """A user, without the password."""

    name: str
    role: str
    active: bool
    created: int


class Users(Wire):
    """All users."""

    users: list[UserOut]


class UserChange(Wire):
    """What to change in a user's account."""

    role: Role | None = None
    active: bool | None = None


class Invite(Wire):
    """The role of a person who is invited to make an account."""

    role: Role = "annotator"


class Invitation(Wire):
    """A link that works once."""

    link: str
    role: str
    expires: int


class NewKey(Wire):
    """An API key to make."""

    name: Name
    permissions: list[Permission] = Field(min_length=1)
    days: float | None = Field(None, gt=0, le=3650, description="null: until it is removed")


class KeyOut(Wire):
    """An API key, without its token."""

    name: str
    owner: str
    permissions: list[str]
    created: int
    expires: int | None
    used: int | None


class KeyMade(KeyOut):
    """A new API key with its token, which is shown only this once."""

    key: str


class Keys(Wire):
    """API keys."""

    keys: list[KeyOut]


class AuditLine(Wire):
    """A line of the audit log: who did what."""

    number: int
    time: int
    actor: str
    action: str
    counts: dict[str, int]


class Audit(Wire):
    """Lines of the audit log, newest first."""

    entries: list[AuditLine]


class Status(Wire):
    """Whether the server works."""

    status: str
    version: str
