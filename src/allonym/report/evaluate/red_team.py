"""The red team's result in a report: fully anonymised, something left, somebody identified, by stratum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from allonym.report.page import Block, Column, Figure, Figures, Notice, Row, Section, Table, Text
from allonym.report.swap.given import Plain, estimate, part, rows


def red_team_section(result: Mapping[str, Any], *, texts: bool = False) -> Section | None:
    """The section of :meth:`allonym.evaluate.RedTeam.to_dict`; None where there is none. It never shows texts."""
    total = part(result, "total")
    if not total:
        return None
    achieved = result.get("achieved")
    blocks: list[Block] = [
        Text(
            "People tried to find out who speaks in a sample of the anonymised conversations (P2, section 4.5).", "lead"
        ),
        _figures(total, achieved),
    ]
    if left := int(result.get("open") or 0):
        were = "conversation of the sample was" if left == 1 else "conversations of the sample were"
        blocks.append(Notice(f"{left:,} {were} not reviewed and so not counted.", "warning"))
    if strata := rows(result, "strata"):
        blocks.append(_table([*strata, total]))
    if types := [pair for pair in result.get("types") or () if len(pair) == 2]:
        columns = (Column("Left"), Column("Conversations", "count"))
        blocks.append(Table("What was found", columns, tuple(Row((str(t), int(n))) for t, n in types), shown=25))
    if twice := int(result.get("twice") or 0):
        agreement = Figure("Agreement", estimate(result.get("agreement")), f"on {twice:,} reviewed twice", "share", 1)
        blocks.append(Figures((agreement,)))
    blocks.append(
        Text(
            "Nobody identified means: not by these people, in this sample, with this effort. The interval's upper end "
            "is what the sample cannot rule out.",
            "muted",
        )
    )
    return Section("Red team", tuple(blocks), "red-team")


def _figures(total: Plain, achieved: object) -> Figures:
    seen = estimate(total.get("identified"))
    tone = "good" if achieved else "bad" if achieved is False else ""
    return Figures(
        (
            Figure("Fully anonymised", estimate(total.get("clean")), f"of {total.get('conversations')}", "share", 1),
            Figure("Something left", estimate(total.get("residual")), "", "share", 1),
            Figure("Somebody identified", seen, "the goal is none", "share", 1, tone),  # type: ignore[arg-type]
        )
    )


def _table(strata: list[Plain]) -> Table:
    columns = (
        Column("Stratum"),
        Column("Reviewed", "count"),
        Column("Fully anonymised", "share", 1),
        Column("Something left", "share", 1),
        Column("Somebody identified", "share", 1),
    )
    body = [
        Row(
            (
                str(s.get("name", "")),
                s.get("conversations"),
                *(estimate(s.get(n)) for n in ("clean", "residual", "identified")),
            )
        )
        for s in strata
    ]
    return Table("By stratum", columns, tuple(body))
