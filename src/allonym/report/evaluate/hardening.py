"""Hardening in a report: what it brought, and the curve of risk against what it takes away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from allonym.report.numbers import write
from allonym.report.page import Block, Cell, Column, Details, Figure, Figures, Notice, Row, Section, Table, Text
from allonym.report.plots import Axis, Chart, Point, Series
from allonym.report.swap.given import Plain, estimate, known, part, rows

_READING = (
    "The attacker chose the words: linear models of words, pairs of words and long parts of words, learnt from other "
    "original texts about the same subjects. The judge had no say: a linear model of words and of 3 to 5 characters, "
    "learnt in other folds. Words gone is 1 - words left / words of the original, placeholders not counted (P3 "
    "4.1.3.1); a general word such as 'thing', or 'they' in place of a pronoun's placeholder, counts as left there, "
    "and as half gone in the other count. Both know originals only."
)
_ADAPTIVE = (
    "Attacker and judge know original texts only. Hardening brings in words of its own, such as 'they', which mislead "
    "whoever knows originals only: a part of what the judge no longer finds is not gone. Who hardens their own texts "
    "by the same means, or holds others of this release, is not misled: of the released texts of others such an "
    "intruder learns to find {after} (before hardening {before}). Judge a release by that number."
)
_COLUMNS = (
    Column("Lead", "number", 2, "Score of the subject less its rival's at which hardening stopped; 0 to 1"),
    Column("Attacker finds", "share", 1),
    Column("Judge finds", "share", 1),
    Column("Words gone", "share", 1, "Placeholders not counted"),
    Column("Gone, general words half", "share", 1),
    Column("Similarity", "number", 3, "Mean cosine with the original"),
)


def hardening_section(result: Mapping[str, Any], *, texts: bool = False) -> Section | None:
    """The section of :meth:`allonym.evaluate.Hardening.to_dict`; None without levels. It never shows a text."""
    levels, chosen = rows(result, "levels"), part(result, "chosen")
    if not levels or not chosen:
        return None
    before, released = levels[0], part(result, "released")
    rank = int(result.get("rank") or 1)
    among = "first guess" if rank == 1 else f"first {rank} guesses"
    said = (
        f"Words that give the subject away became general ones or went, until it is not the attacker's {among} any "
        f"more: {int(result.get('generalised') or 0):,} general words stand there, "
        f"{int(result.get('suppressed') or 0):,} went."
    )
    blocks: list[Block] = [
        Text(said, "lead"),
        Figures(
            (
                Figure("Judge finds the subject", estimate(chosen.get("judge")), f"among its {among}", "share", 1,
                       before=estimate(before.get("judge"))),
                *_adaptive_figure(released, among),
                Figure("Words gone", estimate(chosen.get("weighted")), "general words as half gone", "share", 1,
                       before=estimate(before.get("weighted"))),
                Figure("Similarity", estimate(chosen.get("similarity")), "cosine with the original", "number", 3,
                       before=estimate(before.get("similarity"))),
            )
        ),
    ]  # fmt: skip
    if known(released.get("after")):
        rates = {n: write(estimate(released.get(n)).value, "share", 1) for n in ("before", "after")}
        blocks.append(Notice(_ADAPTIVE.format(**rates), "warning"))
    if still := int(result.get("still_found") or 0):
        blocks.append(
            Notice(f"The attacker still finds the subject of {still:,} texts: words were used up, or a floor was hit.")
        )
    blocks.append(_curve(levels[1:], chosen))
    lines = [Row(("as anonymised", *_cells(before)[1:])), *(Row(_cells(level)) for level in levels[1:])]
    head = (Column("Lead"), *_COLUMNS[1:])
    if groups := part(result, "groups"):
        told = tuple(Row((str(name), *_cells(part(one, "chosen"))[1:])) for name, one in groups.items())
        blocks.append(Table("As released, group by group", (Column("Group"), *_COLUMNS[1:]), told))
    blocks.append(Details("Every level of the curve", (Table("", head, tuple(lines)),)))
    blocks.append(Details("How to read this", (Text(_READING),)))
    return Section("Hardening", tuple(blocks), "hardening")


def _adaptive_figure(released: Plain, among: str) -> tuple[Figure, ...]:
    """What one finds who has learnt from released texts, where that was measured."""
    if not known(released.get("after")):
        return ()
    after, before = estimate(released.get("after")), estimate(released.get("before")).value
    name = "Found by one who has other released texts"
    return (Figure(name, after, f"among its {among}", "share", 1, before=before),)


def _cells(level: Plain) -> tuple[Cell, ...]:
    lead = level.get("lead")
    names = ("attacker", "judge", "removed", "weighted", "similarity")
    return ("" if lead is None else f"{float(lead):.2f}", *(estimate(level.get(n)) for n in names))


def _curve(levels: list[Plain], chosen: Plain) -> Chart:
    series = []
    for slot, (name, title) in enumerate((("judge", "Judge"), ("attacker", "Attacker"))):
        points = [_point(level, name, chosen) for level in levels if known(level.get(name))]
        series.append(Series(title, tuple(points), slot, "full"))
    return Chart(
        "Risk against what is taken away",
        Axis("Words gone, general words as half", "share"),
        Axis("Subjects found", "share", 0),
        tuple(series),
        (),
        "Share of texts whose subject is found at each level of hardening, against the share of words gone.",
        "lower left",
    )


def _point(level: Plain, name: str, chosen: Plain) -> Point:
    chosen_one = level.get("lead") == chosen.get("lead")
    return Point(
        estimate(level.get("weighted")).value,
        estimate(level.get(name)).value,
        f"lead {level.get('lead')}",
        (("Similarity", estimate(level.get("similarity"))),),
        "chosen" if chosen_one else "",
    )
