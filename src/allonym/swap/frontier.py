"""The choice of a release: the risk-utility frontier, a rule, and why it chose.

P1 (arXiv 2505.21128) section 2.3, equations (2.6) to (2.8); Gomatam, Karr and Sanil 2005, Data swapping as a decision
problem, Journal of Official Statistics 21(4). A point is (utility, risk). A utility above 1 counts as 1: to fit better
than before is no merit of a release.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from allonym.errors import DataError, UsageError
from allonym.settings import SettingGroup, declare_setting

Point = tuple[float, float]


class Rule(SettingGroup):
    """A choice on the frontier. Limits may be combined with each other and with a slope.

    - ``risk_cap``: the highest utility among releases of at most this risk (2.6);
    - ``utility_floor``: the lowest risk among those of at least this utility; with a cap it is a limit only;
    - ``slope``: a line risk = slope x utility + offset (2.8) is tangent to the frontier there, which fixes the offset:
      the least risk - slope x utility;
    - ``slope`` and ``offset``: the release nearest to that line.

    Both limits are inclusive. The slope is how much risk one unit of utility is worth, the offset the line's risk at
    utility 0.

    Raises:
        UsageError: a number that is not finite, a slope below 0, or an offset without a slope.
    """

    risk_cap: float | None = declare_setting(
        None, "choose the most useful release with at most this risk", low=0, option="R"
    )
    utility_floor: float | None = declare_setting(
        None,
        "choose the least risky release with at least this utility; with --risk-cap it is a limit only",
        option="U",
    )
    slope: float | None = declare_setting(
        None, "choose the release where a line risk = A * utility + b touches the frontier", low=0, option="A"
    )
    offset: float | None = declare_setting(
        None, "with --slope: fix b of the line, and choose the release nearest to it", option="B"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.slope is None and self.offset is not None:
            raise UsageError("an offset requires a slope")

    @property
    def is_given(self) -> bool:
        """Whether the rule says anything."""
        return (self.risk_cap, self.utility_floor, self.slope) != (None, None, None)

    @property
    def limits_in_words(self) -> str:
        """The limits in words; empty if there are none."""
        out = [] if self.risk_cap is None else [f"a risk of at most {self.risk_cap:g}"]
        out += [] if self.utility_floor is None else [f"a utility of at least {self.utility_floor:g}"]
        return " and ".join(out)

    def allows(self, point: Point) -> bool:
        """Whether a point is within the limits."""
        return (self.risk_cap is None or point[1] <= self.risk_cap) and (
            self.utility_floor is None or point[0] >= self.utility_floor
        )

    def loss(self, point: Point) -> float:
        """Return what the rule minimises."""
        utility, risk = point
        if self.slope is not None:
            line = risk - self.slope * utility
            return line if self.offset is None else abs(line - self.offset)
        return risk if self.risk_cap is None else -utility


def find_frontier(points: Sequence[Point]) -> list[int]:
    """Return the releases that no other one dominates, by falling utility and risk.

    One release dominates another if it is at least as useful and no riskier, and better in one of both. Equal ones
    all stay. A point with a NaN is left out.

    Args:
        points: (utility, risk) per release.

    Returns:
        Indices of points.
    """
    out: list[int] = []
    least: Point | None = None
    usable = _select_usable_points(points)
    for i in sorted(usable, key=lambda i: (-usable[i][0], usable[i][1], i)):
        if least is None or usable[i][1] < least[1] or usable[i] == least:
            out.append(i)
            least = usable[i]
    return out


def best(points: Sequence[Point], **rule: float | None) -> int:
    """Return the index of the release that a rule picks from the frontier.

    Ties go to the lower risk, then to the higher utility, then to the first.

    Args:
        points: (utility, risk) per release.
        rule: see :class:`Rule`.

    Raises:
        UsageError: as :class:`Rule`.
        DataError: no release is within the limits.
    """
    return _rank_allowed_frontier(points, Rule(**rule))[0]


def explain(
    points: Sequence[Point],
    *,
    names: Sequence[str] | None = None,
    spreads: Sequence[Point] | None = None,
    **rule: float | None,
) -> tuple[str, ...]:
    """Return in a few sentences why :func:`best` picks what it picks.

    Args:
        points: (utility, risk) per release.
        names: of the releases; by default ``release 1`` and so on.
        spreads: standard deviations of utility and risk over the drawn sequences, to tell whether winner and runner-up
            differ by more than chance.
        rule: see :class:`Rule`.

    Raises:
        UsageError, DataError: as :func:`best`.
    """
    choice = Rule(**rule)
    ranked = _rank_allowed_frontier(points, choice)
    names = [f"release {i + 1}" for i in range(len(points))] if names is None else names
    usable = _select_usable_points(points)
    winner = ranked[0]
    utility, risk = usable[winner]
    outside = [i for i in usable if not choice.allows(usable[i])]
    limits, within = choice.limits_in_words, _format_release_count(len(usable) - len(outside))
    out = [f"The choice is {names[winner]}: utility {utility:.4f}, risk {risk:.4f}."]
    among = f"of the {within} with {limits}" if limits else f"of all {within}"
    out.append(_explain_rule(usable[winner], choice, among))
    if limits:
        out += _explain_limits(usable, winner, names, outside, choice)
    beaten = sum(p != usable[winner] and utility >= p[0] and risk <= p[1] for p in usable.values())
    count = len(find_frontier(points))
    beats = f"{_format_release_count(beaten)}, in utility, risk or both" if beaten else "no other outright"
    unbeaten = f"{_format_release_count(count)} {'is' if count == 1 else 'are'} beaten by none"
    out.append(f"It beats {beats}; {unbeaten}, this one among them.")
    if len(ranked) > 1:
        out.append(_explain_runner_up(usable, winner, ranked[1], names, spreads))
    return tuple(out)


def _select_usable_points(points: Sequence[Point]) -> dict[int, Point]:
    """Return the points without a NaN, by index, utilities capped at 1."""
    return {i: (min(u, 1.0), risk) for i, (u, risk) in enumerate(points) if u == u and risk == risk}


def _rank_allowed_frontier(points: Sequence[Point], rule: Rule) -> list[int]:
    """Return the frontier within the limits, the rule's choice first."""
    if not rule.is_given:
        raise UsageError("best: a rule is required: risk_cap, utility_floor or slope")
    usable = _select_usable_points(points)
    if not usable:
        raise DataError("best: there is no release to choose from")
    within = [i for i in find_frontier(points) if rule.allows(usable[i])]
    if not within:
        lowest = min(risk for _, risk in usable.values())
        highest = max(utility for utility, _ in usable.values())
        raise DataError(
            f"best: no release has {rule.limits_in_words}; the lowest risk of any is {lowest:.4g}, "
            f"the highest utility {highest:.4g}"
        )
    return sorted(within, key=lambda i: (rule.loss(usable[i]), usable[i][1], -usable[i][0], i))


def _explain_rule(point: Point, rule: Rule, among: str) -> str:
    utility, risk = point
    slope, offset = rule.slope, rule.offset
    if slope is not None and offset is not None:
        distance = abs(risk - slope * utility - offset) / math.hypot(1.0, slope)
        line = f"risk = {slope:g} x utility {'-' if offset < 0 else '+'} {abs(offset):g}"
        return f"It lies nearest to the line {line} {among}, at a distance of {distance:.4f}."
    if slope is not None:
        return (
            f"It has the lowest risk - {slope:g} x utility {among}: the line of slope {slope:g} touches the frontier "
            f"there, at an offset of {risk - slope * utility:.4f}."
        )
    return f"It has the {'lowest risk' if rule.risk_cap is None else 'highest utility'} {among}."


def _explain_limits(
    points: dict[int, Point], winner: int, names: Sequence[str], outside: Sequence[int], rule: Rule
) -> Iterator[str]:
    """Yield which release the rule would have preferred without its limits."""
    if rule.slope is None and rule.risk_cap is not None:
        better = [i for i in outside if points[i][0] > points[winner][0]]
        if not better:
            yield "No limit stood in the way of a more useful one."
            return
        nearest = min(better, key=lambda i: (points[i][1], -points[i][0], i))
        utility, risk = points[nearest]
        if risk > rule.risk_cap:
            yield (
                f"The least risky of the more useful ones, {names[nearest]}, has utility {utility:.4f} "
                f"but risk {risk:.4f}, {risk - rule.risk_cap:.4f} above the cap."
            )
            return
    elif rule.slope is None and rule.utility_floor is not None:
        better = [i for i in outside if points[i][1] < points[winner][1]]
        if not better:
            yield "No limit stood in the way of a less risky one."
            return
        nearest = max(better, key=lambda i: (points[i][0], -points[i][1], -i))
        utility, risk = points[nearest]
        yield (
            f"The most useful of the less risky ones, {names[nearest]}, has risk {risk:.4f} "
            f"but utility {utility:.4f}, {rule.utility_floor - utility:.4f} below the floor."
        )
        return
    if outside:
        yield f"The limits rule out {_format_release_count(len(outside))}."


def _explain_runner_up(
    points: dict[int, Point], winner: int, second: int, names: Sequence[str], spreads: Sequence[Point] | None
) -> str:
    gains = (points[second][0] - points[winner][0], points[second][1] - points[winner][1])
    if gains == (0.0, 0.0):
        return f"Equal to it is {names[second]}; the first of both was taken."
    utility, risk = _describe_difference(gains[0], "utility"), _describe_difference(gains[1], "risk")
    out = f"Next comes {names[second]}, with {utility} and {risk}"
    if spreads is None:
        return out + "."
    noise = [math.hypot(spreads[winner][axis], spreads[second][axis]) for axis in (0, 1)]
    if all(abs(gain) <= limit for gain, limit in zip(gains, noise, strict=True)):
        return out + "; that is within one standard deviation of the draws, so the two are hardly to be told apart."
    return out + "; that is more than one standard deviation of the draws."


def _describe_difference(gain: float, measure: str) -> str:
    return f"the same {measure}" if not gain else f"{measure} {abs(gain):.4f} {'higher' if gain > 0 else 'lower'}"


def _format_release_count(number: int) -> str:
    return "1 release" if number == 1 else f"{number} releases"
