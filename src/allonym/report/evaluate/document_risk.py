"""Document risk in a report: reliability of the probabilities, their distribution, and what goes to review."""

from __future__ import annotations

from collections.abc import Iterator

from allonym.report.page import Block
from allonym.report.plots import Axis, Bar, Bars, Chart, Group, Guide, Point, Series
from allonym.report.sections import Folded, KeyFigures, Paragraph, SectionSpec, ValueTable, Warn
from allonym.report.values import Plain, list_rows, read_estimate, read_part

_RISKY, _REST = 3, 0
_LEAD = (
    "Each document's probability that the intruder of this report finds whom it is about, from what is left in it: "
    "entities, rare words, sets that nobody else has, the nearest other document. Every probability comes from models "
    "that were fitted and calibrated without the document."
)
_LIMITS = (
    "An intruder who knows more finds more; one who knows less finds less. The probabilities hold for documents like "
    "these, and for this intruder."
)
_FIGURES = """
    Found by the intruder | rate      | share.1  | of the documents it judged
    Brier score           | brier     | number.3 | mean squared error; lower is better
    … of the rate for all | reference | number.3 | what it has to beat
    Calibration error     | error     | share.1  | mean distance in ten bins
    AUC                   | auc       | number.3 | 0.5: no better than chance
"""
_REVIEW = {
    "share": "Documents that go to review",
    "caught": "Of the documents that the intruder found, among them",
    "left": "Of the documents without review, found by the intruder",
}
_TRAITS = """
    What is left | meaning
    Weight       | weight | number.2 | Log-odds of being found, per standard deviation
"""
_TRAITS_NOTE = (
    "Traits that occur together share their weight, and a sign may turn: the model ranks, it shows no causes."
)


def _count_documents(result: Plain) -> int:
    return sum(result.get("histogram") or ())


def _draw_reliability(result: Plain) -> Iterator[Block]:
    if not result.get("calibrated"):
        return
    points = tuple(
        Point(
            float(b["predicted"]),
            read_estimate(b.get("observed")),
            f"{read_estimate(b.get('observed')).n:,} documents",
            (("predicted", float(b["predicted"])), ("found", read_estimate(b.get("observed")))),
            "frontier",
        )
        for b in list_rows(result, "bins")
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


def _draw_histogram(result: Plain) -> Iterator[Block]:
    counts, calibrated = result["histogram"], bool(result.get("calibrated"))
    above = read_part(result, "review").get("above")
    limit = float(above) if isinstance(above, (int, float)) else None
    width = 1 / len(counts)
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


def _list_review(result: Plain) -> list[Plain]:
    review = read_part(result, "review")
    return [{"name": name, "value": review.get(key)} for key, name in _REVIEW.items()]


def _list_traits(result: Plain) -> list[Plain]:
    order = sorted(list_rows(result, "traits"), key=lambda trait: -abs(float(trait.get("weight") or 0)))
    return [{**trait, "meaning": str(trait.get("meaning") or trait.get("name"))} for trait in order]


document_risk_section = SectionSpec(
    "Document risk",
    "document-risk",
    _count_documents,
    (
        Paragraph(_LEAD, when="calibrated"),
        KeyFigures(_FIGURES, when="calibrated"),
        Paragraph(_LIMITS, "muted", when="calibrated"),
        _draw_reliability,
        Warn(
            "These are no probabilities, only an order: {reason}.",
            "warning",
            when=lambda result: not result.get("calibrated"),
        ),
        _draw_histogram,
        ValueTable(
            "Review before release",
            _list_review,
            "Above {review.above:.0%} | name \n Share | value | share.1",
            when="review",
        ),
        Folded("What speaks for being found", (ValueTable("", _list_traits, _TRAITS, _TRAITS_NOTE),), when="traits"),
    ),
)
