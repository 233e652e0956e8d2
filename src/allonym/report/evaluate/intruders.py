"""The result table of an intruder: rates over all texts, per group and per subject (P3 Tables 3, 4 and 7)."""

from __future__ import annotations

from allonym.report.page import Block, Cell, Column, Details, Row, Section, Table, Text
from allonym.report.plots import Axis, Bar, Bars, Group
from allonym.report.swap.given import Plain, estimate, part, rows

_COLUMNS = (
    Column("Texts", "count"),
    Column("Similarity", "number", 2, "Mean similarity of the guess with the truth, 0 to 1, over the texts"),
    Column("SD", "number", 2, "Standard deviation of the similarity over the texts"),
    Column("Identified", "share", 2, "Share of texts whose subject was found, with Wilson's interval"),
    Column("SE", "share", 2, "Standard error of that share: SD (n - 1) / √n"),
)


def results_blocks(result: Plain) -> tuple[Block, ...]:
    """The table of all texts and groups, a picture of it, top-k where guesses are ranked, subjects folded."""
    whole, groups, subjects = part(result, "all"), rows(result, "groups"), rows(result, "subjects")
    if not whole:
        return ()
    lines = [*(_row(g, str(g.get("name") or "no group")) for g in groups), _row(whole, "all texts")]
    blocks: list[Block] = [Table("How often the subject was found", (Column("Group"), *_COLUMNS), tuple(lines))]
    if groups:
        drawn = tuple(
            Group(str(g.get("name") or "no group"), (Bar("Identified", estimate(g.get("identified")), 0),))
            for g in groups
        )
        blocks.append(
            Bars("Texts whose subject was found", Axis("Identified", "share", 0), drawn, "", "Whiskers: Wilson, 95 %.")
        )
    ranks = part(result, "ranks")
    if ranks:
        told = tuple(Row((f"first {k}" if k != "1" else "first", estimate(v))) for k, v in ranks.items())
        blocks.append(Table("Within how many guesses", (Column("Guesses"), Column("Found", "share", 2)), told))
    if subjects:
        with_group = any(s.get("group") for s in subjects)
        head = (Column("Subject"), *((Column("Group"),) if with_group else ()), *_COLUMNS)
        lines = [_row(s, str(s.get("name", "")), *((str(s.get("group", "")),) if with_group else ())) for s in subjects]
        table = Table("Subject by subject", head, tuple(lines), shown=20)
        blocks.append(Details("Every subject", (table,)))
    return tuple(blocks)


def attributes_section(result: Plain, *, texts: bool = False) -> Section | None:
    """What an intruder inferred about people it did not name (Staab et al. 2023)."""
    lines = [*rows(result, "attributes"), *([part(result, "all")] if part(result, "all") else [])]
    if not lines:
        return None
    columns = (
        Column("Attribute"),
        Column("Texts", "count"),
        Column("Guessed", "share", 1, "Share of texts with a guess at all"),
        Column("First right", "share", 1, "Share whose first guess is right"),
        Column("First right or less precise", "share", 1, "Such as the country of a city"),
        Column("Any right", "share", 1, "Share with a right guess among all"),
        Column("Any right or less precise", "share", 1),
    )
    numbers = ("guessed", "first", "first_less", "any", "any_less")
    told = tuple(
        Row((str(one.get("attribute") or "all"), int(one.get("texts") or 0), *(estimate(one.get(n)) for n in numbers)))
        for one in lines
    )
    return Section(
        "Attributes",
        (
            Text(
                "What can be told of a person whom nobody names: guesses for each attribute, scored by rules. Compare "
                "with the same on the original texts, and with what guessing the most frequent value would reach."
            ),
            Table("How often attributes were inferred", columns, told),
        ),
        "attributes",
    )


def _row(rate: Plain, *names: Cell) -> Row:
    return Row(
        (
            *names,
            int(rate.get("texts") or 0),
            estimate(rate.get("similarity")),
            rate.get("spread"),
            estimate(rate.get("identified")),
            rate.get("error"),
        )
    )
