"""Which release to take: the risk-utility frontier, a choice on it, and why.

P1 (arXiv 2505.21128) section 2.3, equations (2.6) to (2.8); Gomatam, Karr and Sanil 2005, Data swapping as a decision
problem, Journal of Official Statistics 21(4). A point is (utility, risk). A utility above 1 counts as 1: to fit better
than before is no merit of a release.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from allonym.errors import DataError, UsageError

__all__ = ["best", "explain", "frontier"]

Point = tuple[float, float]


def frontier(points: Sequence[Point]) -> list[int]:
    """The releases that no other one dominates, by falling utility and risk.

    One release dominates another if it is at least as useful and no riskier, and better in one of both. Equal ones
    all stay. A point with a NaN is left out.

    Args:
        points: (utility, risk) per release.

    Returns:
        Indices of points.
    """
    kept: list[int] = []
    least: Point | None = None
    for i in sorted(_usable(points), key=lambda i: (-_useful(points, i), points[i][1], i)):
        here = (_useful(points, i), points[i][1])
        if least is None or here[1] < least[1] or here == least:
            kept.append(i)
            least = here
    return kept


def best(
    points: Sequence[Point],
    *,
    risk_cap: float | None = None,
    utility_floor: float | None = None,
    slope: float | None = None,
    offset: float | None = None,
) -> int:
    """The release that one rule picks from the frontier. Limits may be combined with each other and with a slope.

    - ``risk_cap``: the highest utility among releases of at most this risk (2.6);
    - ``utility_floor``: the lowest risk among those of at least this utility; with a cap it is a limit only;
    - ``slope``: a line risk = slope x utility + offset (2.8) is tangent to the frontier there, which fixes the offset:
      the least risk - slope x utility;
    - ``slope`` and ``offset``: the release nearest to that line.

    Ties go to the lower risk, then to the higher utility, then to the first.

    Args:
        points: (utility, risk) per release.
        risk_cap, utility_floor: limits, both inclusive.
        slope: how much risk one unit of utility is worth, 0 or above.
        offset: the line's risk at utility 0.

    Returns:
        Its index.

    Raises:
        UsageError: no rule, a slope below 0, or an offset without a slope.
        DataError: no release is within the limits.
    """
    return _ranked(points, risk_cap, utility_floor, slope, offset)[0]


def explain(
    points: Sequence[Point],
    *,
    names: Sequence[str] | None = None,
    spreads: Sequence[Point] | None = None,
    risk_cap: float | None = None,
    utility_floor: float | None = None,
    slope: float | None = None,
    offset: float | None = None,
) -> tuple[str, ...]:
    """Why :func:`best` picks what it picks: a few plain sentences.

    Args:
        points: (utility, risk) per release.
        names: what to call them; by default ``release 1`` and so on.
        spreads: standard deviations of utility and risk over the drawn sequences, to say whether winner and runner-up
            differ by more than chance.
        risk_cap, utility_floor, slope, offset: the rule.

    Raises:
        UsageError, DataError: as :func:`best`.
    """
    ranked = _ranked(points, risk_cap, utility_floor, slope, offset)
    won = ranked[0]
    called = [f"release {i + 1}" for i in range(len(points))] if names is None else list(names)
    useful, risk = _useful(points, won), points[won][1]
    said = [f"The choice is {called[won]}: utility {useful:.4f}, risk {risk:.4f}."]
    usable = _usable(points)
    within = [i for i in usable if _within(points, i, risk_cap, utility_floor)]
    limits = _limits(risk_cap, utility_floor)
    among = f"of the {_count(len(within))} with {limits}" if limits else f"of all {_count(len(within))}"
    said.append(_rule(points, won, among, risk_cap, slope, offset))
    if limits:
        said += _ruled_out(
            points, won, called, [i for i in usable if i not in set(within)], risk_cap, utility_floor, slope
        )
    beaten = sum(_dominates(points, won, i) for i in usable)
    on = len(frontier(points))
    beats = f"It beats {_count(beaten)}, in utility, risk or both" if beaten else "It beats no other outright"
    said.append(f"{beats}; {_count(on)} {'is' if on == 1 else 'are'} beaten by none, this one among them.")
    if len(ranked) > 1:
        said.append(_runner_up(points, won, ranked[1], called, spreads))
    return tuple(said)


def _ranked(
    points: Sequence[Point],
    risk_cap: float | None,
    utility_floor: float | None,
    slope: float | None,
    offset: float | None,
) -> list[int]:
    """The frontier within the limits, the rule's choice first."""
    _check(risk_cap, utility_floor, slope, offset)
    usable = _usable(points)
    if not usable:
        raise DataError("best: there is no release to choose from")
    kept = [i for i in frontier(points) if _within(points, i, risk_cap, utility_floor)]
    if not kept:
        lowest = min(points[i][1] for i in usable)
        highest = max(_useful(points, i) for i in usable)
        wanted = _limits(risk_cap, utility_floor)
        raise DataError(
            f"best: no release has {wanted}; the lowest risk of any is {lowest:.4g}, the highest utility {highest:.4g}"
        )

    def rank(i: int) -> tuple[float, float, float, int]:
        useful, risk = _useful(points, i), points[i][1]
        return _loss(useful, risk, risk_cap, slope, offset), risk, -useful, i

    return sorted(kept, key=rank)


def _loss(useful: float, risk: float, risk_cap: float | None, slope: float | None, offset: float | None) -> float:
    if slope is not None:
        line = risk - slope * useful
        return line if offset is None else abs(line - offset)
    return risk if risk_cap is None else -useful


def _check(risk_cap: float | None, utility_floor: float | None, slope: float | None, offset: float | None) -> None:
    for name, value in (
        ("risk_cap", risk_cap),
        ("utility_floor", utility_floor),
        ("slope", slope),
        ("offset", offset),
    ):
        if value is not None and not math.isfinite(value):
            raise UsageError(f"best: {name} must be a finite number, got {value}")
    if slope is None and offset is not None:
        raise UsageError("best: an offset needs a slope")
    if risk_cap is None and utility_floor is None and slope is None:
        raise UsageError("best: a rule is required: risk_cap, utility_floor or slope")
    if slope is not None and slope < 0:
        raise UsageError(f"best: slope must be 0 or above, got {slope:g}")


def _usable(points: Sequence[Point]) -> list[int]:
    return [i for i, (useful, risk) in enumerate(points) if useful == useful and risk == risk]


def _useful(points: Sequence[Point], i: int) -> float:
    return min(points[i][0], 1.0)


def _within(points: Sequence[Point], i: int, risk_cap: float | None, utility_floor: float | None) -> bool:
    return (risk_cap is None or points[i][1] <= risk_cap) and (
        utility_floor is None or _useful(points, i) >= utility_floor
    )


def _dominates(points: Sequence[Point], one: int, other: int) -> bool:
    a, b = (_useful(points, one), points[one][1]), (_useful(points, other), points[other][1])
    return a != b and a[0] >= b[0] and a[1] <= b[1]


def _limits(risk_cap: float | None, utility_floor: float | None) -> str:
    said = [] if risk_cap is None else [f"a risk of at most {risk_cap:g}"]
    return " and ".join([*said, *([] if utility_floor is None else [f"a utility of at least {utility_floor:g}"])])


def _rule(
    points: Sequence[Point], won: int, among: str, risk_cap: float | None, slope: float | None, offset: float | None
) -> str:
    useful, risk = _useful(points, won), points[won][1]
    if slope is not None and offset is not None:
        far = abs(risk - slope * useful - offset) / math.hypot(1.0, slope)
        line = f"risk = {slope:g} x utility {_signed(offset)}"
        return f"It lies nearest to the line {line} {among}, at a distance of {far:.4f}."
    if slope is not None:
        return (
            f"It has the lowest risk - {slope:g} x utility {among}: the line of slope {slope:g} touches the frontier "
            f"there, at an offset of {risk - slope * useful:.4f}."
        )
    return f"It has the {'lowest risk' if risk_cap is None else 'highest utility'} {among}."


def _ruled_out(
    points: Sequence[Point],
    won: int,
    called: Sequence[str],
    outside: Sequence[int],
    risk_cap: float | None,
    utility_floor: float | None,
    slope: float | None,
) -> list[str]:
    """What the rule would rather have had, if a limit did not stand in its way."""
    if slope is None and risk_cap is not None:
        better = [i for i in outside if _useful(points, i) > _useful(points, won)]
        if not better:
            return ["No limit stood in the way of a more useful one."]
        near = min(better, key=lambda i: (points[i][1], -_useful(points, i), i))
        over = points[near][1] - risk_cap
        if over > 0:
            return [
                f"The least risky of the more useful ones, {called[near]}, has utility {_useful(points, near):.4f} "
                f"but risk {points[near][1]:.4f}, {over:.4f} above the cap."
            ]
    if slope is None and risk_cap is None and utility_floor is not None:
        better = [i for i in outside if points[i][1] < points[won][1]]
        if not better:
            return ["No limit stood in the way of a less risky one."]
        near = max(better, key=lambda i: (_useful(points, i), -points[i][1], -i))
        short = utility_floor - _useful(points, near)
        return [
            f"The most useful of the less risky ones, {called[near]}, has risk {points[near][1]:.4f} "
            f"but utility {_useful(points, near):.4f}, {short:.4f} below the floor."
        ]
    return [f"The limits rule out {_count(len(outside))}."] if outside else []


def _runner_up(
    points: Sequence[Point], won: int, second: int, called: Sequence[str], spreads: Sequence[Point] | None
) -> str:
    gains = (_useful(points, second) - _useful(points, won), points[second][1] - points[won][1])
    if gains == (0.0, 0.0):
        return f"Equal to it is {called[second]}; the first of both was taken."
    said = f"Next comes {called[second]}, with {_compared(gains[0], 'utility')} and {_compared(gains[1], 'risk')}"
    if spreads is None:
        return said + "."
    noise = [math.hypot(spreads[won][axis], spreads[second][axis]) for axis in (0, 1)]
    if all(abs(gain) <= far for gain, far in zip(gains, noise, strict=True)):
        return said + "; that is within one standard deviation of the draws, so the two are hardly to be told apart."
    return said + "; that is more than one standard deviation of the draws."


def _compared(gain: float, what: str) -> str:
    return f"the same {what}" if not gain else f"{what} {abs(gain):.4f} {'higher' if gain > 0 else 'lower'}"


def _count(number: int) -> str:
    return "1 release" if number == 1 else f"{number} releases"


def _signed(value: float) -> str:
    return f"{'-' if value < 0 else '+'} {abs(value):g}"
