"""What can be chosen: labels, operators, detectors, policies."""

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
    """A way to replace."""

    name: str
    reversible: bool
    keyed: bool
    description: str


class Operators(Wire):
    """All ways to replace."""

    operators: list[OperatorOut]


class DetectorOut(Wire):
    """A way to find."""

    name: str
    available: bool = Field(description="whether it runs under any policy: it is installed, and needs no settings")


class Detectors(Wire):
    """All ways to find."""

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
    """What happens to a label."""

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
