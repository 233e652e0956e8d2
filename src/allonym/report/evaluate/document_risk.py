"""The risk of documents: how far the probabilities hold, how they are spread, and what goes to review."""

from __future__ import annotations

from allonym.report.page import Block, Cell, Column, Details, Figure, Figures, Notice, Row, Section, Table, Text
from allonym.report.plots import Axis, Bar, Bars, Chart, Group, Guide, Point, Series
from allonym.report.swap.given import Plain, estimate, part, rows

_RISKY, _REST = 3, 0


def document_risk_section(result: Plain, *, texts: bool = False) -> Section | None:
    """Document risk's part of a report. It shows no text, whatever ``texts`` says.

    Args:
        result: as :meth:`allonym.evaluate.document_risk.DocumentRisk.to_dict` gives it.
    """
    counts = result.get("histogram")
    if not counts or not sum(counts):
        return None
    review, sure = part(result, "review"), bool(result.get("calibrated"))
    blocks: list[Block] = []
    if sure:
        blocks += [
            Text(
                "Each document's probability that the intruder of this report finds whose it is, from what is left in "
                "it: entities, rare words, sets that nobody else has, the nearest other document. Every probability "
                "comes from models that were fitted and set right without the document."
            ),
            _figures(result),
            Text(
                "An intruder who knows more finds more; one who knows less finds less. The probabilities hold for "
                "documents like these, and for this intruder.",
                "muted",
            ),
            _reliability(rows(result, "bins")),
        ]
    else:
        blocks.append(
            Notice(f"These are no probabilities, only an order: {result.get('reason') or 'not calibrated'}.", "warning")
        )
    blocks.append(_histogram(counts, review.get("above"), sure))
    if review:
        blocks.append(_review(review))
    if weights := rows(result, "traits"):
        blocks.append(_weights(weights))
    return Section("Document risk", tuple(blocks), "document-risk")


def _figures(result: Plain) -> Figures:
    return Figures(
        (
            Figure("Found by the intruder", estimate(result.get("rate")), "of the documents it judged", "share", 1),
            Figure("Brier score", estimate(result.get("brier")), "mean squared error; lower is better", "number", 3),
            Figure("… of the rate for all", estimate(result.get("reference")), "what it has to beat", "number", 3),
            Figure("Calibration error", estimate(result.get("error")), "mean distance in ten bins", "share", 1),
            Figure("AUC", estimate(result.get("auc")), "0.5: no better than chance", "number", 3),
        )
    )


def _reliability(bins: list[Plain]) -> Chart:
    points = tuple(
        Point(
            float(b["predicted"]),
            estimate(b.get("observed")),
            f"{estimate(b.get('observed')).n:,} documents",
            (("predicted", float(b["predicted"])), ("found", estimate(b.get("observed")))),
            "frontier",
        )
        for b in bins
    )
    return Chart(
        "Reliability: predicted and true rates",
        Axis("Predicted probability", "share", 0, 1),
        Axis("Share that the intruder found", "share", 0, 1),
        (Series("Documents, about ten bins of equal size", points, _REST, "thin"),),
        (Guide("as predicted", ((0.0, 0.0), (1.0, 1.0))),),
        "Points on the diagonal: of documents with this probability, as many were found.",
        note="Point at a dot for its interval (Wilson, 95 %).",
    )


def _histogram(counts: list[int], above: object, sure: bool) -> Bars:
    limit = float(above) if isinstance(above, (int, float)) else None
    width = 1 / len(counts)
    merged = [(i * width, sum(counts[i : i + 2])) for i in range(0, len(counts), 2)]
    groups = []
    for low, count in merged:
        risky = limit is not None and low >= limit - 1e-9
        name = f"{low:.0%} to {low + 2 * width:.0%}" if sure else f"{low:.1f} to {low + 2 * width:.1f}"
        groups.append(
            Group(name, (Bar("Goes to review" if risky else "Documents", float(count), _RISKY if risky else _REST),))
        )
    said = "" if limit is None else f"Limit of review: {limit:.0%}. A bin that the limit cuts is drawn as below it."
    return Bars(
        "Documents by " + ("probability" if sure else "place in the order"),
        Axis("Documents", "count", 0),
        tuple(groups),
        "",
        "How many documents have which risk.",
        said,
    )


def _review(review: Plain) -> Table:
    lines: list[tuple[Cell, ...]] = [
        ("Documents that go to review", estimate(review.get("share"))),
        ("Of the documents that the intruder found, among them", estimate(review.get("caught"))),
        ("Of the documents without review, found by the intruder", estimate(review.get("left"))),
    ]
    columns = (Column(f"Above {float(review.get('above') or 0):.0%}"), Column("Share", "share", 1))
    return Table("Review before release", columns, tuple(Row(line) for line in lines))


def _weights(weights: list[Plain]) -> Details:
    columns = (Column("What is left"), Column("Weight", "number", 2, "Log-odds of being found, per standard deviation"))
    order = sorted(weights, key=lambda w: -abs(float(w.get("weight") or 0)))
    body = tuple(Row((str(w.get("meaning") or w.get("name")), float(w.get("weight") or 0))) for w in order)
    note = "Traits that go together share their weight, and a sign may turn: the model is for ranking, not for causes."
    return Details("What speaks for being found", (Table("", columns, body, note),))
