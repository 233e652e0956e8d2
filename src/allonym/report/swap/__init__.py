"""The report of a search for a release: its settings, cost and residual risk, and what to examine."""

from __future__ import annotations

from allonym.report.page import Facts, Notice, Page, Section, Settings, Text
from allonym.report.swap.clusters import clusters_section
from allonym.report.swap.grid import grid_section
from allonym.report.swap.intruders import intruders_section
from allonym.report.swap.passages import SENSITIVE, passages_section
from allonym.report.swap.releases import releases_section
from allonym.report.swap.summary import draw_summary
from allonym.report.swap.uniqueness import uniqueness_section
from allonym.report.swap.values import shorten_powers
from allonym.report.swap.written_release import written_section
from allonym.report.values import Plain, flatten_settings, read_part

LIMITS = (
    "Named entity swapping hides which entities occur together. It does not change how somebody writes, what a "
    "text is about, or figures that stay in it: whoever can tell authors by their style, or knows a topic that "
    "only one of them speaks of, may still guess. The method assumes that texts of one cluster differ in their "
    "entities only; the further a corpus is from that, the more an intruder that reads all words keeps. Risk and "
    "utility are estimates of models, with the intervals given; N, the size of the population, is an assumption, "
    "so a range of it is shown. Equations (2.x) are those of Greve and Sablica 2025, Named entity swapping, arXiv"
    " 2505.21128."
)


def swap_page(result: Plain, *, texts: bool = True, passages: int = 400) -> Page:
    """The report of a search as a page.

    Args:
        result: plain values, as ``Releases.to_dict()`` gives them; parts that are missing are left out.
        texts: whether anything of the corpus's text shows: passages, words of clusters, terms that gave a class away.
        passages: most passages that the reader shows.
    """
    title = str(result.get("title") or "Named entity swapping")
    drawn = [
        releases_section(result),
        intruders_section(result, texts=texts),
        uniqueness_section(result),
        clusters_section(result, texts=texts),
        grid_section(result),
        passages_section(result, most=passages) if texts else None,
        written_section(result),
        _draw_settings(result),
        Section("What this does not cover", (Text(LIMITS),), "limits"),
    ]
    sections = tuple(section for section in drawn if section is not None)
    lead = list(draw_summary(result))
    if any(section.anchor == "texts" for section in sections):
        lead.append(Notice(SENSITIVE, "sensitive"))
    if warnings := tuple(shorten_powers(warning) for warning in result.get("warnings") or ()):
        title_of_warnings = f"{len(warnings)} remark{'s' * (len(warnings) > 1)} of the search"
        lead.append(Notice(title_of_warnings, "warning", warnings))
    return Page(title, sections, str(result.get("created") or ""), tuple(lead))


def _draw_settings(result: Plain) -> Section | None:
    groups: list[tuple[str, Facts]] = []
    loose: list[Facts] = []
    for name, value in read_part(result, "settings").items():
        if facts := flatten_settings(value):
            groups.append((str(name), facts))
        else:
            loose.append(flatten_settings({name: value}))
    if loose:
        groups.insert(0, ("", tuple(fact for facts in loose for fact in facts)))
    if timings := read_part(result, "timings"):
        groups.append(("Seconds per stage", tuple((str(k), f"{float(v):,.1f}") for k, v in timings.items())))
    return Section("Settings", (Settings(tuple(groups)),), "settings") if groups else None
