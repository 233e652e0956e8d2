"""The report of a search for a release: its settings, cost and residual risk, and what to examine."""

from __future__ import annotations

from allonym.report.page import Notice, Page, Section, Settings, Text
from allonym.report.swap.clusters import clusters_section, uniqueness_section
from allonym.report.swap.intruders import SENSITIVE, intruders_section, passages_section
from allonym.report.swap.releases import grid_section, releases_section
from allonym.report.swap.summary import draw_summary, written_section
from allonym.report.swap.values import Search, shorten_powers
from allonym.report.values import Plain, flatten_settings, list_seconds_facts

LIMITS = (
    "Named entity swapping hides which entities occur together. It does not change how somebody writes, what a "
    "text is about, or figures that stay in it: whoever can tell authors by their style, or knows a topic that "
    "only one of them speaks of, may still guess. The method assumes that texts of one cluster differ in their "
    "entities only; the further a corpus is from that, the more an intruder that reads all words keeps. Risk and "
    "utility are estimates of models, with the intervals given; N, the size of the population, is an assumption, "
    "so a range of it is shown. Equations (2.x) are those of Greve and Sablica 2025, Named entity swapping, arXiv"
    " 2505.21128."
)

SECTIONS = (
    *(releases_section, intruders_section, uniqueness_section, clusters_section),
    *(grid_section, passages_section, written_section),
)


def swap_page(result: Plain, *, texts: bool = True, passages: int = 400) -> Page:
    """The report of a search as a page.

    Args:
        result: plain values, as ``Releases.to_dict()`` gives them; parts that are missing are left out.
        texts: whether anything of the corpus's text shows: passages, words of clusters, terms that gave a class away.
        passages: most passages that the reader shows.
    """
    title, warnings = str(result.get("title") or "Named entity swapping"), result.get("warnings") or ()
    search = Search(result)
    values = Search({**(search if texts else _remove_texts(search)), "passages": passages})
    limits = Section("What this does not cover", (Text(LIMITS),), "limits")
    drawn = (*(section(values, texts=texts) for section in SECTIONS), _draw_settings(search), limits)
    sections = tuple(filter(None, drawn))
    lead = list(draw_summary(search))
    if any(section.anchor == "texts" for section in sections):
        lead.append(Notice(SENSITIVE, "sensitive"))
    if warnings:
        heading = f"{len(warnings)} remark{'s' * (len(warnings) > 1)} of the search"
        lead.append(Notice(heading, "warning", tuple(map(shorten_powers, warnings))))
    return Page(title, sections, str(result.get("created") or ""), tuple(lead))


def _remove_texts(result: Search) -> Plain:
    """Return the result without anything of the corpus's text."""
    attacks = [{**attack, "terms": ()} for attack in result.list_rows("attacks")]
    clusters = [{**cluster, "words": ()} for cluster in result.list_rows("mixture.clusters")]
    mixture = {**result.get_part("mixture"), "clusters": clusters}
    return {**result, "outcomes": (), "attacks": attacks, "mixture": mixture}


def _draw_settings(result: Search) -> Section | None:
    settings = result.get_part("settings").items()
    named = [(str(name), flatten_settings(value)) for name, value in settings]
    loose = [
        fact for name, value in settings if not flatten_settings(value) for fact in flatten_settings({name: value})
    ]
    seconds = list_seconds_facts(result.get_part("timings"))
    groups = [(name, facts) for name, facts in (("", tuple(loose)), *named, ("Seconds per stage", seconds)) if facts]
    return Section("Settings", (Settings(tuple(groups)),), "settings") if groups else None
