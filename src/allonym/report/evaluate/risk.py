"""Risk in a report: residual risk with P2's criterion, the risk of each document, and what hardening does."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

from allonym.report.page import Axis, Bar, Bars, Block, Chart, Group, Guide, Point, Series, Tag
from allonym.report.panel import draw_panel
from allonym.report.sections import (
    Folded,
    KeyFigures,
    Paragraph,
    SectionSpec,
    ValueTable,
    Warn,
    make_verdict_colour,
)
from allonym.report.values import Plain, Values, format_number

_SHOWN = 25
_LEAD = (
    "What anonymisation has missed, scored after Gardiner et al. 2024: each item once per conversation, 0 to 5 by its "
    "type, half where only a part was missed."
)
_READING = (
    "The score of a conversation is the sum over the items that were missed in it. The paper calls anonymisation "
    "successful where mean + SD is below 5, the score of one direct identifier, and takes scores to be normal, so that "
    "about 16 % at most lie above. The counted share with its interval needs no such assumption. A score above the "
    "limit made of indirect identifiers of different people identifies nobody as a rule, says the paper; one with a "
    "whole direct identifier may. What annotators have not seen is not in the score."
)
_UNCONFIRMED = (
    "{unconfirmed:,} marks are proposals that no person has confirmed. They all count here, so this is an upper bound "
    "of what was proposed, not a measurement."
)
_NOT_NORMAL = (
    "The scores are not normally distributed, as the criterion assumes ({total.normality.test}, "
    "p = {total.normality.p:p}, "
    "skewness {total.normality.skewness:number.1}). With this mean and SD a normal distribution would have "
    "{total.normality.implied:share.1} above {limit:g}; {total.above:share.1} are counted. Go by the counted share."
)
_CLOSE = (
    "The criterion holds for this sample, but the interval of mean + SD reaches {limit:g} or more: another sample of "
    "this size might fail."
)
_FIGURES = """
    Mean + SD       | total.bound  | number.2 | the criterion, below {limit:g}: {verdict}
    Mean score      | total.mean   | number.2 | per conversation
    Above {limit:g} | total.above  | share.1  | of the conversations, counted
    With a whole direct identifier | total.direct | share.1 | one item of score 5
"""
_GROUPS = """
    {group_name}    | name
    Count           | count     | count
    Mean            | mean      | number.2
    SD              | sd        | number.2 | With n - 1
    P95             | p95       | number.1 | 95th percentile, interpolated
    Max             | max.value | count
    Mean + SD       | bound     | number.2 | the criterion compares this with the limit
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


def _derive_verdict_values(result: Values) -> Plain:
    passes = result.get_value("total.passes")
    verdict = "holds" if passes else "fails" if passes is False else "cannot be told"
    return {"limit": 5, **result, "verdict": verdict, "group_name": str(result.get("by") or "Conversations")}


def _is_near_limit(result: Values) -> bool:
    total = result.get_part("total")
    return bool(total.get("passes")) and total.get_estimate("bound").high >= float(result["limit"])


def _explain_other_scoring(result: Values) -> str:
    other = result.get_part("other")
    by_table = other.get("email_partial") == "table"
    return (
        "Partly missed e-mail addresses are scored differently by "
        f"{'Table 6 (score 4, half 2)' if by_table else 'the text of the paper (score 3, half 1)'}: mean + SD would be "
        f"{format_number(other.get_estimate('bound').value, 'number', 2)}."
    )


def _list_groups_and_total(result: Values) -> list[Plain]:
    tags: dict[object, Tag] = {True: Tag("yes", "good"), False: Tag("no", "bad")}
    groups = [*result.list_rows("groups"), {**result.get_part("total"), "mark": "chosen"}]
    return [{**group, "passes": tags.get(group.get("passes"), Tag("–", "muted"))} for group in groups]


def _draw_score_histogram(result: Values) -> Iterator[Block]:
    total, limit = result.get_part("total"), float(result["limit"])
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
    mean, sd = total.get_estimate("mean"), total.get_estimate("sd")
    if sd.value > 0:
        expected = [n * mass for mass in _compute_normal_masses(mean.value, sd.value, highest)]
        bell = (Point(score, count, f"Normal at {score}", (), "hollow") for score, count in enumerate(expected))
        series.append(Series("a normal distribution", tuple(bell), 1, "dashed"))
        top = max(top, *(int(count) + 1 for count in expected))
    yield Chart(
        "How the scores are spread",
        Axis("Residual risk", "count", -0.5, max(limit, highest) + 0.5),
        Axis("Conversations", "count", 0, top * 1.05),
        tuple(series),
        (Guide(f"limit {limit:g}", ((limit, 0.0), (limit, top * 1.05)), "limit"),),
        "Conversations with each score; the criterion takes the scores to be normally distributed.",
    )


def _compute_normal_masses(mean: float, sd: float, highest: int) -> list[float]:
    """The mass of a normal distribution at each score from 0, from half below to half above."""
    below = [0.5 * (1 + math.erf((score - 0.5 - mean) / (sd * math.sqrt(2)))) for score in range(highest + 2)]
    return [high - low for low, high in pairwise(below)]


def _list_review_queue(result: Values) -> list[Plain]:
    def name_tags(row: Values) -> str:
        return ", ".join(
            f"{item.get('tag')} ({item.get('score')})" for item in row.list_rows("items") if item.get("score")
        )

    return [
        {**row, "tags": name_tags(row), "missed": "; ".join(map(str, row.get("missed") or ()))}
        for row in result.list_rows("queue")
    ]


def _describe_review_queue(result: Values) -> str:
    limit = f"{result['limit']:g}"
    if result.list_rows("queue"):
        return f"Conversations above {limit}, the worst first."
    return f"No conversation is above {limit}."


residual_section = SectionSpec(
    "Residual risk",
    "residual",
    "total",
    (
        Paragraph(_LEAD, "lead"),
        KeyFigures(_FIGURES, {"Mean + SD": make_verdict_colour("total.passes")}),
        Warn(_UNCONFIRMED, "warning", when="unconfirmed"),
        Warn(_NOT_NORMAL, when="total.normality.off"),
        Warn(_CLOSE, "warning", when=_is_near_limit),
        Warn(_explain_other_scoring, when="other"),
        ValueTable("Residual risk by group", _list_groups_and_total, _GROUPS),
        _draw_score_histogram,
        ValueTable(
            "What was missed",
            "types",
            _TYPES,
            lambda result: "" if result.get("types") else "Nothing is marked.",
            _SHOWN,
        ),
        ValueTable("To be looked at", _list_review_queue, _QUEUE, _describe_review_queue, _SHOWN),
        Folded("How to read this", (Paragraph(_READING),)),
    ),
    _derive_verdict_values,
)


_RISKY, _REST = 3, 0
_DOCUMENT_RISK_LEAD = (
    "Each document's probability that the intruder of this report finds whom it is about, from what is left in it: "
    "entities, rare words, sets that nobody else has, the nearest other document. Every probability comes from models "
    "that were fitted and calibrated without the document."
)
_LIMITS = (
    "An intruder who knows more finds more; one who knows less finds less. The probabilities hold for documents like "
    "these, and for this intruder."
)
_NO_SIGNAL = (
    "No signal: the interval of AUC, {auc.low:number.3} to {auc.high:number.3}, does not lie above 0.5. What is left "
    "in a document does not tell here whether it is identified, so neither go by its risk nor by the order."
)
_DOCUMENT_RISK_FIGURES = """
    Found by the intruder | rate      | share.1  | of the documents it judged
    Brier score           | brier     | number.3 | mean squared error; lower is better
    … of the rate for all | reference | number.3 | what it has to beat
    Calibration error     | error     | share.1  | mean distance in ten bins
    AUC                   | auc       | number.3 | {signal}
"""
_REVIEW = {
    "review.share": "Documents that go to review",
    "review.caught": "Of the documents that the intruder found, among them",
    "review.left": "Of the documents without review, found by the intruder",
}
_TRAITS = """
    What is left | meaning
    Weight       | weight | number.2 | Log-odds of being found, per standard deviation
"""
_TRAITS_NOTE = (
    "Traits that occur together share their weight, and a sign may turn: the model ranks, it shows no causes."
)


def _draw_reliability(result: Values) -> Iterator[Block]:
    if not result.get("calibrated"):
        return
    points = tuple(
        Point(
            float(b["predicted"]),
            b.get_estimate("observed"),
            f"{b.get_estimate('observed').n:,} documents",
            (("predicted", float(b["predicted"])), ("found", b.get_estimate("observed"))),
            "frontier",
        )
        for b in result.list_rows("bins")
    )
    yield Chart(
        "Reliability: predicted and true rates",
        Axis("Predicted probability", "share", 0, 1),
        Axis("Share that the intruder found", "share", 0, 1),
        (Series("Documents, about ten bins of equal size", points, _REST, "thin"),),
        (Guide("as predicted", ((0.0, 0.0), (1.0, 1.0))),),
        "Points on the diagonal: of documents with this probability, as many were found.",
        note="Point at a dot for its interval (Wilson, 95 %).",
    )


def _draw_risk_histogram(result: Values) -> Iterator[Block]:
    counts, calibrated = result["histogram"], bool(result.get("calibrated"))
    limit, width = result.find_number("review.above"), 1 / len(counts)
    groups = []
    for i in range(0, len(counts), 2):
        low, high = i * width, i * width + 2 * width
        name = f"{low:.0%} to {high:.0%}" if calibrated else f"{low:.1f} to {high:.1f}"
        series, slot = ("Goes to review", _RISKY) if limit is not None and low >= limit - 1e-9 else ("Documents", _REST)
        groups.append(Group(name, (Bar(series, float(sum(counts[i : i + 2])), slot),)))
    yield Bars(
        "Documents by " + ("probability" if calibrated else "place in the order"),
        Axis("Documents", "count", 0),
        tuple(groups),
        description="How many documents have which risk.",
        note="" if limit is None else f"Limit of review: {limit:.0%}. A bin that the limit cuts is drawn as below it.",
    )


def _list_traits(result: Values) -> list[Plain]:
    order = sorted(result.list_rows("traits"), key=lambda trait: -abs(float(trait.get("weight") or 0)))
    return [{**trait, "meaning": str(trait.get("meaning") or trait.get("name"))} for trait in order]


document_risk_section = SectionSpec(
    "Document risk",
    "document-risk",
    lambda result: sum(result.get("histogram") or ()),
    (
        Paragraph(_DOCUMENT_RISK_LEAD, when="calibrated"),
        KeyFigures(_DOCUMENT_RISK_FIGURES, when="calibrated"),
        Warn(_NO_SIGNAL, "warning", when=lambda result: result.get_value("has_signal") is False),
        Paragraph(_LIMITS, "muted", when="calibrated"),
        _draw_reliability,
        Warn(
            "These are no probabilities, only an order: {reason}.",
            "warning",
            when=lambda result: not result.get("calibrated"),
        ),
        _draw_risk_histogram,
        ValueTable(
            "Review before release",
            _REVIEW,
            "Above {review.above:.0%} | name \n Share | value | share.1",
            when="review",
        ),
        Folded("What speaks for being found", (ValueTable("", _list_traits, _TRAITS, _TRAITS_NOTE),), when="traits"),
    ),
    lambda result: {"signal": "no signal" if result.get_value("has_signal") is False else "0.5: no better than chance"},
)


_HARDENING_LEAD = (
    "{generalised:,} words were replaced by general ones, {suppressed:,} were removed, until all intruders of the "
    "rounds did worse than guessing, or the limit on content was reached."
)
_HARDENING_READING = (
    "The words were chosen against two intruders, round by round: the blind one has learnt from originals and passes "
    "over the words that hardening brings in; the adaptive one has learnt from the hardened texts of others, as they "
    "were after the last round, with placeholders and general words as words. Both leave the text out that they judge. "
    "The naive one knows originals only and had no say. All are linear models of words, pairs of words and 3 to 5 "
    "characters. The panel above judges in other folds what came of it. Content gone is the share of the original's "
    "nouns, verbs, adjectives, adverbs and numbers that are gone, general words not counted as left. Words gone is "
    "the count of Kleinberg et al. 2022, in which general words are left. Neither intruder bounds what people know."
)
_STILL = (
    "One of the intruders of the rounds still identifies the subject of {still_found:,} of {texts:,} texts. Where the "
    "share that they identify is greater than the panel's, rely on theirs."
)
_HARDENING_FIGURES = """
    In the rounds | chosen.worst    | share.1  | identified by the worst intruder of the rounds, who has all other texts
    Content gone | chosen.gone       | share.1  | nouns, verbs, adjectives, adverbs and numbers
    Words gone   | chosen.removed    | share.1  | placeholders not counted, general words as left
    Similarity   | chosen.similarity | number.3 | cosine with the original
"""
_BEFORE = {
    "In the rounds": "levels.0.worst",
    "Content gone": "levels.0.gone",
    "Words gone": "levels.0.removed",
    "Similarity": "levels.0.similarity",
}
_LEVEL = """
    Content gone | gone       | share.1  | Share of the originals' content words
    Worst        | worst      | share.1  | The greatest of the three shares beside
    Naive        | naive      | share.1  | Identified by who has learnt from originals
    Blind        | blind      | share.1  | Identified by who passes over the words brought in, too
    Adaptive     | adaptive   | share.1  | Identified by who has learnt from the hardened texts of others
    Words gone   | removed    | share.1  | Placeholders not counted, general words as left
    Similarity   | similarity | number.3 | Mean cosine with the original
"""


def _list_hardening_groups(result: Values) -> list[Plain]:
    return [{**group.get_part("chosen"), "name": group["name"]} for group in result.list_rows("groups")]


def _list_hardening_levels(result: Values) -> list[Plain]:
    levels = [{**level, "name": f"round {k}"} for k, level in enumerate(result.list_rows("levels"))]
    return [{**levels[0], "name": "as anonymised"}, *levels[1:], {**result.get_part("chosen"), "name": "as released"}]


def _draw_hardening_frontier(result: Values) -> Iterator[Block]:
    series = []
    for slot, name in enumerate(("adaptive", "blind", "naive")):
        points = [
            Point(
                level.get_estimate("gone").value,
                level.get_estimate(name).value,
                str(level.get("name")),
                (("Similarity", level.get_estimate("similarity")),),
                "chosen" if level.get("name") == "as released" else "",
            )
            for level in map(Values, _list_hardening_levels(result))
            if level.has_estimate(name) and level.has_estimate("gone")
        ]
        series.append(Series(name.capitalize(), tuple(points), slot, "full"))
    yield Chart(
        "Risk against content",
        Axis("Content words gone", "share"),
        Axis("Subjects identified", "share", 0),
        tuple(series),
        description="Share of texts whose subject is identified after each round, against the content that is gone.",
        better="lower left",
    )


hardening_section = SectionSpec(
    "Hardening",
    "hardening",
    lambda result: result.get("levels") and result.get("chosen"),
    (
        draw_panel,
        Paragraph(_HARDENING_LEAD, "lead"),
        KeyFigures(_HARDENING_FIGURES, before=_BEFORE),
        Warn(_STILL, when="still_found"),
        _draw_hardening_frontier,
        ValueTable("The frontier", _list_hardening_levels, f"Level | name \n {_LEVEL}"),
        ValueTable("As released, group by group", _list_hardening_groups, f"Group | name \n {_LEVEL}", when="groups"),
        Folded("How to read this", (Paragraph(_HARDENING_READING),)),
    ),
)
