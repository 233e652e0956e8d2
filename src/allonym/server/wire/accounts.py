"""Users, sessions, API keys, the audit log; and what a request can choose: labels, operators, detectors, policies."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from allonym.project.first_policy import MOST_CHARACTERS, MOST_FILES
from allonym.server.wire.base import LabelledPlace, Name, Wire

Permission = Literal[
    "detect", "anonymize", "evaluate", "jobs", "review", "restore", "adjudicate", "studies", "metrics", "admin"
]
Role = Literal["annotator", "reviewer", "admin"]


class SignIn(Wire):
    """Name and password."""

    name: str = Field(max_length=64)
    password: str = Field(max_length=1024)


class SignInLink(Wire):
    """The token of the link that the start of a local server printed."""

    token: str = Field(max_length=200)


class Ways(Wire):
    """How users sign in."""

    local: bool = Field(description="by the link that the start of the server printed")
    issuer: str | None = Field(None, description="by single sign-on: what its button says; null: there is none")


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
    sign_out: str | None = Field(None, description="where the issuer ends the session too, after single sign-on")


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


class ScopeOut(Wire):
    """A scope of the vault, and who may use it."""

    name: str
    owner: str | None = Field(description="who first wrote into it; null: nobody who has an account")
    users: list[str] = Field(description="further users")


class ScopesOut(Wire):
    """Scopes of the vault."""

    scopes: list[ScopeOut]


class ScopeUser(Wire):
    """A scope and a user."""

    scope: str = Field(max_length=200)
    user: str = Field(max_length=64)


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


class LabelOut(Wire):
    """A label of the taxonomy."""

    name: str
    parent: str | None
    kind: str = Field(description="direct, quasi or none")
    risk: int = Field(description="0 to 5")
    description: str


class Labels(Wire):
    """The taxonomy."""

    labels: list[LabelOut]


class OperatorOut(Wire):
    """An operator: a way to make a replacement."""

    name: str
    reversible: bool
    keyed: bool
    description: str


class Operators(Wire):
    """All operators."""

    operators: list[OperatorOut]


class DetectorOut(Wire):
    """A detector."""

    name: str
    available: bool = Field(description="whether it runs under any policy: it is installed, and needs no settings")


class Detectors(Wire):
    """All detectors."""

    detectors: list[DetectorOut]


class PolicyOut(Wire):
    """A policy, in short."""

    name: str
    description: str
    preset: bool
    keyed: bool


class PoliciesOut(Wire):
    """Presets, then stored policies."""

    policies: list[PolicyOut]


class RuleOut(Wire):
    """The operator and the threshold of a label."""

    operator: str
    threshold: float


class PolicyDetail(PolicyOut):
    """A policy with its rules."""

    toml: str | None = Field(description="a stored policy's text, for admins")
    detectors: list[str]
    rules: dict[str, RuleOut]


class PolicyText(Wire):
    """A policy to store."""

    toml: str = Field(max_length=1_000_000, examples=['extends = "default"\nthreshold = 0.6\n'])


class SampleText(Wire):
    """A text of a sample."""

    name: str = Field("", max_length=200, examples=["letter.txt"])
    text: str = Field(max_length=MOST_CHARACTERS, description="the beginning of a longer one will do")


class FirstPolicy(Wire):
    """A sample of texts, and the answers that are given so far."""

    texts: list[SampleText] = Field(min_length=1, max_length=MOST_FILES)
    answers: dict[str, str] = Field(
        {}, description="question to answer; the sample suggests the others", examples=[{"dates": "year"}]
    )


class QuestionOut(Wire):
    """A question, its answers with their meaning, and the answer that holds."""

    name: str
    words: str
    answers: dict[str, str]
    answer: str
    reason: str = Field("", description="why the sample suggests this answer")


class PassageOut(Wire):
    """A passage of a text before and after, with what is replaced in each."""

    id: str = Field(description="name of the text")
    before: str
    after: str
    before_spans: list[LabelledPlace]
    spans: list[LabelledPlace]


class FirstPolicyOut(Wire):
    """A policy that the answers make, and what it does to passages of the sample."""

    questions: list[QuestionOut]
    toml: str
    keyed: bool = Field(description="whether it needs a key or a vault")
    warnings: list[str]
    passages: list[PassageOut]
