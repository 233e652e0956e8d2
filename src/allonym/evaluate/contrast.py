"""Differences between identified texts and those that stayed anonymous (P3 4.2.3 and Table 9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from allonym.errors import DataError
from allonym.serial import Serialisable
from allonym.stats import Estimate, none
from allonym.stats.samples import average, cohens_d

__all__ = ["Contrast", "contrasts"]


@dataclass(frozen=True, slots=True)
class Contrast(Serialisable):
    """One variable of the texts that were not identified and of those that were.

    Attributes:
        name: of the variable.
        hidden, found: means with 95 % intervals: of texts that were not identified, and of identified ones.
        hidden_sd, found_sd: standard deviations of the same.
        d: Cohen's d, above 0 where the variable is higher in texts that were not identified, as in P3.
    """

    name: str
    hidden: Estimate
    hidden_sd: Estimate
    found: Estimate
    found_sd: Estimate
    d: Estimate


def contrasts(variables: Mapping[str, Sequence[float]], identified: Sequence[bool | None]) -> tuple[Contrast, ...]:
    """Compare identified texts with the others on each variable.

    Args:
        variables: name to one value per text; NaN: none.
        identified: whether somebody identified each text's subject; None: not tried.

    Raises:
        DataError: a variable has not as many values as there are texts.
    """
    out = []
    for name, values in variables.items():
        if len(values) != len(identified):
            raise DataError(f"{name}: one value for each text is required; got {len(values)} for {len(identified)}")
        other_values, identified_values = (
            [v for v, is_identified in zip(values, identified, strict=True) if is_identified is state and v == v]
            for state in (False, True)
        )
        out.append(
            Contrast(
                name,
                average(other_values),
                _estimate_sd(other_values),
                average(identified_values),
                _estimate_sd(identified_values),
                cohens_d(other_values, identified_values),
            )
        )
    return tuple(out)


def _estimate_sd(values: Sequence[float]) -> Estimate:
    n = len(values)
    if n < 2:
        return none("two values are required", n)
    middle = sum(values) / n
    return Estimate.exact((sum((v - middle) ** 2 for v in values) / (n - 1)) ** 0.5, n)
