"""How well identifiers were found: scores per label, what was taken for what, what leaks, how annotators agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from allonym.report.numbers import write
from allonym.report.page import (
    Block,
    Column,
    Details,
    Figure,
    Figures,
    Matrix,
    Notice,
    Row,
    Section,
    Square,
    Table,
    Tabs,
    Text,
    Tone,
)
from allonym.report.plots import Axis, Bar, Bars, Group
from allonym.report.swap.given import Plain, estimate, known, part

LEVELS = {
    "token": ("Words", "Word by word; marks of punctuation do not count."),
    "strict": ("Spans, strict", "A finding is right where its borders and its label are those of the gold."),
    "overlap": (
        "Spans, overlap",
        "A gold span is found, and a finding is right, where the two share a character and the label.",
    ),
    "entity": (
        "Entities",
        "A referent is found where findings of its label cover all its mentions; a name that was found is right where "
        "all its places lie in gold spans of its label.",
    ),
}
UNITS = {"token": "Words", "span": "Spans"}
_TOGETHER = {
    "micro": "all together (micro)",
    "macro": "mean of the labels (macro)",
    "weighted": "mean by frequency (weighted)",
    "any": "whatever the type",
}
_WIDEST = 40  # classes that a confusion matrix shows


def detection_section(result: Mapping[str, Any], *, texts: bool = False) -> Section | None:
    """The section of :func:`allonym.evaluate.detection`'s plain values; it shows labels and numbers, never a text."""
    levels = part(result, "levels")
    if not levels:
        return None
    blocks: list[Block] = [_figures(result), *_notices(result)]
    blocks.append(
        Tabs(
            "Precision, recall and F1",
            tuple((LEVELS[name][0], (Text(LEVELS[name][1], "muted"), _scores(levels[name]))) for name in LEVELS),
            1,
        )
    )
    if matrices := part(result, "confusion"):
        shown = tuple((UNITS[u], (_matrix(matrices[u], u),)) for u in ("span", "token") if u in matrices)
        blocks.append(Tabs("What was taken for what", shown))
    blocks += _leaks(part(result, "leaks"))
    blocks += _benchmark(part(result, "tab"))
    if agreement := part(result, "agreement"):
        blocks.append(_agreement(agreement))
    return Section("Detection", tuple(blocks), "detection")


def _figures(result: Plain) -> Figures:
    strict = part(part(result, "levels"), "strict")
    kind = "micro" if result.get("typed") else "any"
    leaks = part(result, "leaks")
    by_text = known(part(leaks, "all").get("surfaces"))
    recall = part(part(result, "tab"), "recall")
    typed = "borders and label right" if result.get("typed") else "borders right; the findings tell no types"
    figures = [
        Figure("F1 of spans", estimate(part(strict, kind).get("f1")), typed, digits=3),
        Figure(
            "Mentions that leak",
            estimate(part(leaks, "all").get("mentions")),
            "some letter or digit of them is in no finding",
            "share",
            tone=_tone(part(leaks, "all").get("mentions")),
        ),
    ]
    if by_text:
        figures.append(
            Figure(
                "Names that still stand there",
                estimate(part(leaks, "all").get("surfaces")),
                "gold surfaces found in the anonymised text",
                "share",
                tone=_tone(part(leaks, "all").get("surfaces")),
            )
        )
    for name in ("direct", "quasi"):
        figures.append(
            Figure(
                f"{name.capitalize()} identifiers masked",
                estimate(part(recall, name).get("entity")),
                "entities of which every mention is masked (TAB)",
                "share",
            )
        )
    return Figures(tuple(figures))


def _tone(rate: object) -> Tone:
    value = estimate(rate).value
    return "" if value != value else "good" if value <= 0.02 else "warn" if value <= 0.1 else "bad"


def _notices(result: Plain) -> list[Block]:
    out: list[Block] = []
    if not result.get("typed"):
        out.append(
            Notice("Some findings tell no type, so precision, F1 and confusion are only told whatever the type is.")
        )
    for name, said in (
        (
            "beyond",
            "The findings have labels for which the gold has none. "
            + (
                "They count as wrong."
                if result.get("beyond_counts")
                else "They are neither right nor wrong, unless they touch a gold span."
            ),
        ),
        ("unmapped", "The gold has labels that the taxonomy does not know: only findings of the same name fit them."),
        ("left_out", "Gold spans that do not count: the label map or the annotators leave them out."),
    ):
        if counts := part(result, name):
            items = tuple(f"{label}: {count:,}" for label, count in sorted(counts.items(), key=_by_count))
            out.append(Notice(said, "note", items))
    return out


def _by_count(item: tuple[str, int]) -> tuple[int, str]:
    return -item[1], item[0]


def _scores(level: Plain) -> Table:
    columns = (
        Column("Label"),
        Column("Precision", "number", 3, "Share of the findings that are right"),
        Column("Recall", "number", 3, "Share of the gold that was found"),
        Column("F1", "number", 3, "Harmonic mean of precision and recall"),
        Column("Gold", "count", None, "How many the gold has, of all annotators"),
        Column("Found", "count", None, "How many findings there are"),
    )
    rows = [_row(name, scores, "") for name, scores in part(level, "labels").items()]
    rows += [_row(said, part(level, name), "frontier") for name, said in _TOGETHER.items()]
    return Table("", columns, tuple(rows))


def _row(name: str, scores: Plain, mark: Any) -> Row:
    measured = (estimate(scores.get(m)) for m in ("precision", "recall", "f1"))
    return Row((name, *measured, scores.get("gold"), scores.get("found")), mark)


def _matrix(matrix: Plain, unit: str) -> Matrix:
    rows, columns = [str(r) for r in matrix.get("rows") or ()], [str(c) for c in matrix.get("columns") or ()]
    counts: Sequence[Sequence[int]] = matrix.get("counts") or ()
    # Classes as in the rows, so that what is right lies on the diagonal; then none, then what only findings have.
    own, last = len(rows) - 1, len(columns) - 1
    beyond = sorted(range(own, last), key=lambda c: -sum(row[c] for row in counts))
    shown = [*range(own), last, *beyond][:_WIDEST]
    body = []
    for name, row in zip(rows, counts, strict=True):
        # Most words are in no span: they would leave no shade for what matters.
        whole = sum(row) - (row[-1] if name == rows[-1] and unit == "token" else 0)
        cells = []
        for c in shown:
            outside = name == rows[-1] and c == last
            share = row[c] / whole if whole and not outside else 0.0
            hint = "" if outside else f"{write(share, 'share')} of {name}: taken for {columns[c]}"
            cells.append(Square(None if outside and unit == "span" else row[c], min(share, 1.0), None, hint))
        body.append((name, tuple(cells)))
    note = "Rows are the gold, columns what was found. The darker, the larger the share of the row."
    if len(columns) > _WIDEST:
        note += f" {_WIDEST} of {len(columns)} columns are shown."
    return Matrix("", tuple(columns[c] for c in shown), tuple(body), "gold \\ found", "count", None, note)


def _leaks(leaks: Plain) -> list[Block]:
    types = part(leaks, "types")
    if not types:
        return []
    by_text = known(part(leaks, "all").get("surfaces"))
    rates = {"mentions": ("Mentions not covered", 0), "surfaces": ("Surfaces still in the text", 1)}
    if not by_text:
        del rates["surfaces"]
    bars = Bars(
        "What leaks, by type",
        Axis("Share that leaks", "share", 0),
        tuple(
            Group(name, tuple(Bar(said, estimate(leak.get(rate)), slot) for rate, (said, slot) in rates.items()))
            for name, leak in types.items()
        ),
        description="False negative rates per type; lower is better.",
    )
    columns = [
        Column("Type"),
        Column(
            "Not covered", "share", 2, "Gold mentions of which some letter or digit is in no finding, whatever its type"
        ),
        Column("Untouched", "share", 2, "Gold mentions of which nothing is in a finding"),
    ]
    columns += (
        [Column("Still in the text", "share", 2, "Gold surfaces that stand in the anonymised text")] if by_text else []
    )
    names = ["mentions", "untouched", *(["surfaces"] if by_text else [])]
    rows = [Row((name, *(estimate(leak.get(n)) for n in names))) for name, leak in types.items()]
    for key, said in (("mean", "mean of the types"), ("all", "all mentions")):
        rows.append(Row((said, *(estimate(part(leaks, key).get(n)) for n in names)), "frontier"))
    note = "False negative rates as in P4, Table 4. A finding of a wrong type covers all the same."
    return [bars, Table("Leak rates", tuple(columns), tuple(rows), note)]


def _benchmark(tab: Plain) -> list[Block]:
    recall = part(tab, "recall")
    if not recall:
        return []
    columns = (
        Column("Identifiers"),
        Column("Entities", "number", 3, "Share of which every mention is masked"),
        Column("Mentions", "number", 3, "Share of the mentions that are masked"),
        Column("Words", "number", 3, "Share of the words that are masked"),
    )
    rows = tuple(
        Row((name, *(estimate(part(recall, name).get(unit)) for unit in ("entity", "mention", "token"))))
        for name in ("direct", "quasi", "all")
    )
    said = {
        "kinds": {
            "gold": "the annotators",
            "taxonomy": "the taxonomy, by label",
            "both": "the annotators, else by label",
        },
        "entities": {
            "gold": "the annotators",
            "surface": "label and text",
            "both": "the annotators, else label and text",
        },
    }
    note = (
        f"What is direct or quasi is told by {said['kinds'].get(str(tab.get('kinds')), '')}; which mentions are one "
        f"entity by {said['entities'].get(str(tab.get('entities')), '')}. Weights: {tab.get('weights', '')}."
    )
    figures = Figures(
        (
            Figure("Precision of masked words", estimate(tab.get("precision")), "masked by an annotator too", digits=3),
            Figure(
                "The same, by information",
                estimate(tab.get("weighted")),
                "rare words weigh more than frequent ones",
                digits=3,
            ),
        )
    )
    return [Table("Recall as in the Text Anonymization Benchmark", columns, rows, note), figures]


def _agreement(agreement: Plain) -> Block:
    rows = tuple(
        Row((said, estimate(agreement.get(name))))
        for name, said in (
            ("alpha", "Krippendorff's alpha, words and labels"),
            ("mask", "Krippendorff's alpha, marked or not"),
            ("kappa", "Cohen's kappa, mean over the pairs"),
            ("strict", "F1 of spans, same borders and label"),
            ("overlap", "F1 of spans, overlap and same label"),
        )
    )
    note = "1 is full agreement. Kappa and alpha are 0 where annotators agree no more than by chance."
    title = f"Agreement of {agreement.get('annotators')} annotators in {agreement.get('documents')} texts"
    columns = (Column("Measure"), Column("Value", "number", 3))
    return Details(title, (Table("", columns, rows, note),))
