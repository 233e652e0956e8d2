"""The red team's result in a report: fully anonymised, something left, somebody identified, by stratum."""

from __future__ import annotations

from allonym.report.page import Tone
from allonym.report.sections import KeyFigures, Paragraph, SectionSpec, ValueTable, Warn
from allonym.report.values import Plain, list_rows, read_part


def _colour_identified(result: Plain) -> Tone:
    achieved = result.get("achieved")
    return "good" if achieved else "bad" if achieved is False else ""


_FIGURES = """
    Fully anonymised    | total.clean      | share.1 | of {total.conversations}
    Something left      | total.residual   | share.1
    Somebody identified | total.identified | share.1 | the goal is none
"""
_STRATA = """
    Stratum             | name
    Reviewed            | conversations | count
    Fully anonymised    | clean         | share.1
    Something left      | residual      | share.1
    Somebody identified | identified    | share.1
"""
_LEAD = "People tried to identify the speakers in a sample of the anonymised conversations (P2, section 4.5)."
_OPEN = "{open:,} conversation{open:s} of the sample {open:was} not reviewed and so not counted."
_READING = (
    "That nobody was identified holds for these people, this sample and this effort. The upper end of the interval is "
    "what the sample cannot rule out."
)
_AGREEMENT = "Agreement | agreement | share.1 | on {twice:,} reviewed twice"

red_team_section = SectionSpec(
    "Red team",
    "red-team",
    "total",
    (
        Paragraph(_LEAD, "lead"),
        KeyFigures(_FIGURES, {"Somebody identified": _colour_identified}),
        Warn(_OPEN, "warning", when="open"),
        ValueTable("By stratum", lambda r: [*list_rows(r, "strata"), read_part(r, "total")], _STRATA, when="strata"),
        ValueTable("What was found", "types", "Left | 0 \n Conversations | 1 | count", shown=25, when="types"),
        KeyFigures(_AGREEMENT, when="twice"),
        Paragraph(_READING, "muted"),
    ),
)
