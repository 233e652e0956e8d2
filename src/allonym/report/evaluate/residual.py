"""Residual risk in a report: P2's Table 4 with its criterion, the distribution of scores, and the review queue."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

from allonym.report.numbers import format_number
from allonym.report.page import Block, Tag, Tone
from allonym.report.plots import Axis, Chart, Guide, Point, Series
from allonym.report.sections import Folded, KeyFigures, Paragraph, RowMark, SectionSpec, ValueTable, Warn
from allonym.report.values import Plain, list_rows, read_estimate, read_part, read_path

_SHOWN = 25
_LEAD = (
    "What anonymisation has missed, scored as in P2: each item once per conversation, 0 to 5 by its type, half where "
    "only a part was missed."
)
_READING = (
    "The score of a conversation is the sum over the items that were missed in it. P2 calls anonymisation successful "
    "where mean + SD is below 5, the score of one direct identifier, and takes scores to be normal, so that about 16 % "
    "at most lie above. The counted share with its interval needs no such assumption. A score above the limit made of "
    "indirect identifiers of different people identifies nobody as a rule, says P2; one with a whole direct identifier "
    "may. What annotators have not seen is not in the score."
)
_UNCONFIRMED = (
    "{unconfirmed:,} marks are proposals that no person has confirmed. They all count here, so this is an upper bound "
    "of what was proposed, not a measurement."
)
_NOT_NORMAL = (
    "The scores are not normally distributed, as P2 assumes ({total.normality.test}, p = {total.normality.p:p}, "
    "skewness {total.normality.skewness:number.1}). With this mean and SD a normal distribution would have "
    "{total.normality.implied:share.1} above {limit:g}; {total.above:share.1} are counted. Go by the counted share."
)
_CLOSE = (
    "The criterion holds for this sample, but the interval of mean + SD reaches {limit:g} or more: another sample of "
    "this size might fail."
)
_FIGURES = """
    Mean + SD       | total.bound  | number.2 | P2's criterion, below {limit:g}: {verdict}
    Mean score      | total.mean   | number.2 | per conversation
    Above {limit:g} | total.above  | share.1  | of the conversations, counted
    With a whole direct identifier | total.direct | share.1 | one item of score 5
"""
_GROUPS = """
    {by}            | name
    Count           | count     | count
    Mean            | mean      | number.2
    SD              | sd        | number.2 | With n - 1
    P95             | p95       | number.1 | 95th percentile, interpolated
    Max             | max.value | count
    Mean + SD       | bound     | number.2 | P2's criterion compares this with the limit
    Below {limit:g} | passes
    Share above {limit:g} | above | share.1 | Counted
"""
_TYPES = """
    Missed        | tag
    Things        | items         | count
    Mentions      | mentions      | count
    Conversations | conversations | count
    Risk          | risk          | count | What it adds to all scores
"""
_QUEUE = """
    Conversation    | id
    {by}            | group  |       |                                            | by
    Score           | score  | count
    Direct          | direct | count | Things of score 5: they identify alone
    What was missed | tags
    As it stands    | missed |       |                                            | texts queue.0.missed
"""


def _draw_figures(result: Plain) -> Iterator[Block]:
    passes = read_path(result, "total.passes")
    verdict = "holds" if passes else "fails" if passes is False else "cannot be told"
    yield KeyFigures(_FIGURES, {"Mean + SD": _colour_criterion}).draw({**result, "verdict": verdict})


def _colour_criterion(result: Plain) -> Tone:
    passes = read_path(result, "total.passes")
    return "good" if passes else "bad" if passes is False else ""


def _is_near_limit(result: Plain) -> bool:
    total = read_part(result, "total")
    return bool(total.get("passes")) and read_estimate(total.get("bound")).high >= float(result["limit"])


def _explain_other_scoring(result: Plain) -> str:
    other = read_part(result, "other")
    by_table = other.get("email_partial") == "table"
    return (
        "Partly missed e-mail addresses are scored differently by "
        f"{'Table 6 (score 4, half 2)' if by_table else 'the text of P2 (score 3, half 1)'}: mean + SD would be "
        f"{format_number(read_estimate(other.get('bound')).value, 'number', 2)}."
    )


def _list_groups(result: Plain) -> list[Plain]:
    tags: dict[object, Tag] = {True: Tag("yes", "good"), False: Tag("no", "bad")}
    groups = [*list_rows(result, "groups"), {**read_part(result, "total"), "all": True}]
    return [{**group, "passes": tags.get(group.get("passes"), Tag("–", "muted"))} for group in groups]


def _mark_total(row: Plain) -> RowMark:
    return "chosen" if row.get("all") else ""


def _draw_score_histogram(result: Plain) -> Iterator[Block]:
    total, limit = read_part(result, "total"), float(result["limit"])
    counts = [(int(score), int(count)) for score, count in result.get("histogram") or ()]
    highest = counts[-1][0] if counts else 0
    n = sum(count for _, count in counts) or 1
    points = tuple(
        Point(
            score, count, f"Score {score}", (("Conversations", count), ("Share", format_number(count / n, "share", 1)))
        )
        for score, count in counts
    )
    series = [Series("conversations", points, 0, "full")]
    top = max((count for _, count in counts), default=1)
    mean, sd = read_estimate(total.get("mean")), read_estimate(total.get("sd"))
    if sd.value > 0:
        expected = [n * mass for mass in _normal_masses(mean.value, sd.value, highest)]
        bell = (Point(score, count, f"Normal at {score}", (), "hollow") for score, count in enumerate(expected))
        series.append(Series("a normal distribution", tuple(bell), 1, "dashed"))
        top = max(top, *(int(count) + 1 for count in expected))
    yield Chart(
        "How the scores are spread",
        Axis("Residual risk", "count", -0.5, max(limit, highest) + 0.5),
        Axis("Conversations", "count", 0, top * 1.05),
        tuple(series),
        (Guide(f"limit {limit:g}", ((limit, 0.0), (limit, top * 1.05)), "limit"),),
        "Conversations with each score; P2 takes the scores to be normally distributed.",
    )


def _normal_masses(mean: float, sd: float, highest: int) -> list[float]:
    """The mass of a normal distribution at each score from 0, from half below to half above."""
    below = [0.5 * (1 + math.erf((score - 0.5 - mean) / (sd * math.sqrt(2)))) for score in range(highest + 2)]
    return [high - low for low, high in pairwise(below)]


def _list_queue(result: Plain) -> list[Plain]:
    def name_tags(row: Plain) -> str:
        return ", ".join(
            f"{item.get('tag')} ({item.get('score')})" for item in list_rows(row, "items") if item.get("score")
        )

    return [
        {**row, "tags": name_tags(row), "missed": "; ".join(map(str, row.get("missed") or ()))}
        for row in list_rows(result, "queue")
    ]


def _describe_queue(result: Plain) -> str:
    limit = f"{result['limit']:g}"
    if list_rows(result, "queue"):
        return f"Conversations above {limit}, the worst first."
    return f"No conversation is above {limit}."


def _draw_groups(result: Plain) -> Iterator[Block]:
    title = "Residual risk by group (P2, Table 4)"
    table = ValueTable(title, _list_groups, _GROUPS, mark=_mark_total)
    yield table.draw({**result, "by": str(result.get("by") or "Conversations")})


residual_section = SectionSpec(
    "Residual risk",
    "residual",
    "total",
    (
        Paragraph(_LEAD, "lead"),
        _draw_figures,
        Warn(_UNCONFIRMED, "warning", when="unconfirmed"),
        Warn(_NOT_NORMAL, when="total.normality.off"),
        Warn(_CLOSE, "warning", when=_is_near_limit),
        Warn(_explain_other_scoring, when="other"),
        _draw_groups,
        _draw_score_histogram,
        ValueTable(
            "What was missed",
            "types",
            _TYPES,
            lambda result: "" if result.get("types") else "Nothing is marked.",
            _SHOWN,
        ),
        ValueTable("To be looked at", _list_queue, _QUEUE, _describe_queue, _SHOWN),
        Folded("How to read this", (Paragraph(_READING),)),
    ),
    {"limit": 5},
)
