"""The report of a search for a release: what was done, what it costs, what is left, and what to look at."""

from __future__ import annotations

from allonym.report.page import Facts, Notice, Page, Section, Settings, Text
from allonym.report.swap.clusters import clusters_section
from allonym.report.swap.given import Plain, flat, part, readable
from allonym.report.swap.grid import grid_section
from allonym.report.swap.intruders import intruders_section
from allonym.report.swap.reader import SENSITIVE, reader_section
from allonym.report.swap.releases import releases_section
from allonym.report.swap.summary import summary
from allonym.report.swap.tables import tables_section
from allonym.report.swap.written import written_section

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
    made = [
        releases_section(result),
        intruders_section(result, words=texts),
        tables_section(result),
        clusters_section(result, words=texts),
        grid_section(result),
        reader_section(result, most=passages) if texts else None,
        written_section(result),
        _settings(result),
        Section("What this does not cover", (Text(LIMITS),), "limits"),
    ]
    sections = tuple(s for s in made if s is not None)
    lead = list(summary(result))
    if texts and any(s.anchor == "texts" for s in sections):
        lead.append(Notice(SENSITIVE, "sensitive"))
    if warnings := tuple(readable(w) for w in result.get("warnings") or ()):
        lead.append(Notice(f"{len(warnings)} remark{'s' * (len(warnings) > 1)} of the search", "warning", warnings))
    return Page(title, sections, str(result.get("created") or ""), tuple(lead))


def _settings(result: Plain) -> Section | None:
    groups: list[tuple[str, Facts]] = []
    loose: list[tuple[str, object]] = []
    for name, value in part(result, "settings").items():
        facts = flat(value)
        if facts:
            groups.append((str(name), facts))
        else:
            loose += flat({name: value})
    if loose:
        groups.insert(0, ("", tuple(loose)))  # type: ignore[arg-type]
    if timings := part(result, "timings"):
        groups.append(("Seconds per stage", tuple((str(k), f"{float(v):,.1f}") for k, v in timings.items())))
    return Section("Settings", (Settings(tuple(groups)),), "settings") if groups else None
