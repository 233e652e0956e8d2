"""Labels, operators, detectors and policies that a request can choose."""

from __future__ import annotations

from pydantic import Field

from allonym.server.wire.base import Wire


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
