"""Every place that states protection names its intruder: pages, command lines, the workbench and this manual."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.rows import check_each_row
from tests.test_layers import ROOT, SRC

from allonym.evaluate.study import HEADLINES, list_headlines
from allonym.intruder.panel import INTRUDERS
from allonym.report.evaluate.risk import hardening_section
from allonym.report.page import Figures
from allonym.report.panel import PANEL, describe_worst, draw_panel
from allonym.report.sections import parse_fields
from allonym.report.values import Values

STATES = re.compile(
    r"(?is)(?=.*\b(?:intruders?|attackers?|judges?|subjects?|whom|re-?identif\w+)\b)"
    r".*\b(?:finds?|found|identif(?:y|ied|ies)|guess(?:ed|es)?|accuracy)\b"
)
"""What speaks of who is identified; with a share it states protection."""
FIGURE = re.compile(r"(?<![\w.])(?:[01]?\.\d{2,3}\b|\d{1,3}(?:\.\d+)? %)")
WHO = re.compile(
    r"(?i)\b(?:naive|blind|adaptive|told|worst|partners|background|entit(?:y|ies) intruder|(?:all-)?words intruder|people"
    r"|language model|classifier|judge|second read(?:er|ing)|who (?:knows?|has|have|is|learnt)|intruder of this report)\b"
)
"""What says which intruder it is, or who else found something."""
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PARAGRAPHS = [
    (path.relative_to(ROOT).as_posix(), paragraph)
    for path in PAGES
    if path.name not in ("cli.md", "evaluation-python.md", "swapping-python.md")
    for paragraph in re.split(r"\n\s*\n", path.read_text(encoding="utf-8"))
    if STATES.match(paragraph) and FIGURE.search(paragraph)
]


@check_each_row("page, paragraph", PARAGRAPHS)
def test_a_figure_of_protection_in_the_manual_names_who_it_holds_against(page, paragraph):
    for part in paragraph.splitlines() if paragraph.startswith("|") else [paragraph]:
        if STATES.match(part) and FIGURE.search(part):
            assert WHO.search(part), part


def list_identified_cells() -> Iterator[tuple[str, str]]:
    """Yield page and cell of each column and row of the manual that is called "identified"."""
    for path in PAGES:
        name = path.relative_to(ROOT).as_posix()
        for paragraph in re.split(r"\n\s*\n", path.read_text(encoding="utf-8")):
            rows = [[c.strip() for c in line.strip("| ").split("|")] for line in paragraph.splitlines() if "|" in line]
            for k, title in enumerate(rows[0] if rows else ()):
                if title.lower() == "identified":
                    yield from ((name, row[k]) for row in rows[2:])
            yield from ((name, cell) for row in rows if row[0].lower() == "identified" for cell in row[1:])


IDENTIFIED = list(list_identified_cells())


@check_each_row("page, cell", IDENTIFIED)
def test_a_cell_of_who_is_identified_names_the_intruder(page, cell):
    assert WHO.search(cell) or not FIGURE.search(cell), cell


def test_cells_of_who_is_identified_are_collected():
    assert {"README.md", "docs/figures.md"} <= {page for page, _ in IDENTIFIED}


def collect_fields() -> Iterator[tuple[str, str]]:
    """Yield module and line of each field of a report that is a share of subjects whom somebody identifies."""
    for path in sorted((SRC / "report").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " | " in node.value:
                for line in node.value.splitlines():
                    if re.search(r"(?i)identified|finds|found by|guessed", line) and "share" in line:
                        yield path.stem, line.strip()


FIELDS = list(collect_fields())
NAMED_BY_SECTION = {"intruders", "panel", "display", "detection"}
"""Reports whose sections are about one intruder each, or name it in a column beside the figure."""


def test_fields_of_protection_are_collected():
    assert {"intruders", "panel", "risk"} <= {module for module, _ in FIELDS}


@check_each_row("module, line", FIELDS)
def test_a_field_of_protection_names_its_intruder(module, line):
    assert module in NAMED_BY_SECTION or WHO.search(line) or "ttacker" in line or "by the intruder" in line, line


def make_panel(name="adaptive"):
    number = {"value": 0.4, "low": 0.3, "high": 0.5, "n": 90, "method": "Wilson, 95%"}
    missing = {**number, "value": None, "low": None, "high": None, "method": "none: not measured: no background"}
    rows = [
        {
            "name": key,
            "knows": text,
            "identified": number if key == name else missing,
            "before": number,
            "chance": number,
        }
        for key, text in INTRUDERS.items()
    ]
    worst = next(row for row in rows if row["name"] == name)
    return {
        "worst": worst,
        "rows": rows,
        "groups": [],
        "rank": 1,
        "texts": 90,
        "subjects": 5,
        "unjudged": 0,
        "folds": 5,
    }


@check_each_row("name", list(INTRUDERS))
def test_the_headline_is_the_worst_of_the_panel_and_names_it(name):
    panel = make_panel(name)
    assert f"the {name} intruder" in describe_worst(Values(panel))
    first = next(iter(parse_fields(PANEL[0].fields)))
    assert first.source == "worst.identified" and "{worst.name}" in first.note
    blocks = list(draw_panel(Values({"panel": panel})))
    assert f"by the {name} intruder, who {INTRUDERS[name]}" in blocks[0].figures[0].note
    (line,) = [row for row in list_headlines({"linkage": {"panel": panel}}) if row["measure"] == "linkage"]
    assert f"the {name} intruder, who {INTRUDERS[name]}" in line["note"]


def test_the_first_figure_of_hardening_is_the_worst_of_the_panel():
    level = {"panel": make_panel(), "removed": 0.5}
    section = hardening_section({"panel": make_panel(), "levels": [level, level], "chosen": level, "rank": 1})
    first = next(block for block in section.blocks if isinstance(block, Figures))
    assert first.figures[0].label == "Identified at worst" and "by the adaptive intruder" in first.figures[0].note


def test_where_nothing_was_measured_no_figure_is_shown():
    panel = make_panel()
    panel["worst"] = next(row for row in panel["rows"] if row["name"] == "naive")
    assert describe_worst(Values(panel)) == "Who is identified was not measured: no background."
    assert "Identified at worst" not in str(list(draw_panel(Values({"panel": panel}))))


def test_no_headline_of_risk_rests_on_one_intruder_alone():
    linkage = [line for line in HEADLINES if line.measure == "linkage"]
    assert [line.value for line in linkage] == ["panel.worst.identified"]


def test_the_workbench_shows_the_worst_first_and_names_it():
    pages = SRC / "server/static/js/pages"
    view = (pages / "panel.js").read_text(encoding="utf-8")
    assert "Identified at worst: ${worst.name} intruder" in view and "worst.knows" in view
    releases, evaluation = ((pages / name).read_text("utf-8") for name in ("corpus/releases.js", "evaluation.js"))
    assert releases.index("panelView(panel)") < releases.index("attacks.map")
    assert evaluation.index("panelView(report") < evaluation.index("groups.map")
