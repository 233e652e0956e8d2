"""The report of a search for a release: its settings, cost and residual risk, and what to examine.

The first screen says what was protected, how much changed, and the cost; the last section the release as written."""

from __future__ import annotations

from collections.abc import Iterator

from allonym.report.page import Axis, Block, Facts, Figure, Figures, Notice, Page, Section, Settings, Text, Tone
from allonym.report.panel import PANEL, describe_worst, draw_panel
from allonym.report.sections import BarChart, KeyFigures, Paragraph, SectionSpec, ValueTable
from allonym.report.swap.clusters import clusters_section, uniqueness_section
from allonym.report.swap.intruders import SENSITIVE, intruders_section, passages_section
from allonym.report.swap.releases import grid_section, releases_section
from allonym.report.swap.values import Search, map_by_population, name_categories, read_categories, shorten_powers
from allonym.report.values import (
    NAN,
    Plain,
    Values,
    flatten_settings,
    format_cell,
    format_number,
    format_power,
    list_seconds_facts,
)

_ATTACK = "The intruder “{intruder}” guessed {before:share.0} of these chunks right before and {after:share.0} after."


def draw_summary(result: Search) -> Iterator[Block]:
    """Yield a paragraph and key figures."""
    attacks = [a for a in result.list_rows("attacks") if a.has_estimate("before") and a.has_estimate("after")][:3]
    panel = result.get_part("panel")
    sentences = [
        *_describe_corpus(result),
        *([describe_worst(panel, "changed chunks")] if panel else ()),
        *_describe_chosen(result),
        *(a.fill_template(_ATTACK) for a in attacks),
    ]
    if sentences:
        yield Text(" ".join(sentences), "lead")
    yield from draw_panel(result, PANEL[:1])
    if figures := (*map(_make_attack_key_figure, attacks), *_make_key_figures(result)):
        yield Figures(figures)


def _describe_corpus(result: Search) -> Iterator[str]:
    if corpus := result.get_part("corpus"):
        yield corpus.fill_template(
            "Protected: {classes:,} values of {protect} in {documents:,} documents ({chunks:,} chunks)."
        )


def _describe_chosen(result: Search) -> Iterator[str]:
    release, risk = result.shown_release, result.chosen_risk
    if not release:
        return
    categories = read_categories(release)
    names = f"{', '.join(categories[:-1])} and {categories[-1]}" if len(categories) > 1 else name_categories(categories)
    yield f"The chosen release exchanges {names} between chunks on the same topic;"
    yield release.fill_template("{changed:count.0} chunks change ({share:share}).")
    if risk is not None and release.has_estimate("utility"):
        fall = f"falls from 1 to {format_number(risk.value, 'number', 3)}"
        if 1 - risk.value < 5e-4:
            fall = f"of 1 falls by {format_number(1 - risk.value)} only, as few uniques of the corpus are unique there"
        above = " (above 1: they fit their topics no worse)" if release.get_estimate("utility").value > 1 else ""
        left = f", with {result.uniques_left}" if result.uniques_left else ""
        yield f"In a population of {format_power(result.shown_size or 0)} texts the risk {fall}{left}; the texts keep a"
        yield f"utility of {format_number(release.get_estimate('utility').value, 'number', 4)}{above}."


def _make_attack_key_figure(attack: Values) -> Figure:
    before, after = attack.get_estimate("before"), attack.get_estimate("after")
    tone: Tone = "good" if after.high < 2 * attack.get_estimate("chance").value else "warn"
    note = attack.fill_template("accuracy on changed chunks, before and after; blind guess {chance:share.0}")
    return Figure(f"Intruder: {attack.get('intruder')}", after.value, note, "number", 2, tone, before.value)


def _make_key_figures(result: Search) -> Iterator[Figure]:
    release, risk, chunks = result.shown_release, result.chosen_risk, result.get_value("corpus.chunks")
    if release:
        notes = [f"{format_cell(release.get_estimate('changed'), 'count').line} of {chunks:,}"] if chunks else []
        if released := result.get_part("released"):
            notes.append(released.fill_template("{holding:,} hold an exchanged category"))
        yield Figure("Chunks changed", release.get_estimate("share"), "; ".join(notes), "share", 1)
    if result.has_estimate("corpus.changed_words"):
        words = result.get_estimate("corpus.changed_words")
        yield Figure("Words changed", words, "of all words of the corpus", "share", 1)
    if risk is not None:
        note = f"1 before the exchange; N\u00a0=\u00a0{format_power(result.shown_size or 0)}"
        yield Figure("Risk R", risk, "; ".join(filter(None, (note, result.uniques_left))), "number", 4)
    if release.has_estimate("utility"):
        note = release.fill_template("D per changed chunk {distance_per_chunk:number.2} nats")
        yield Figure("Utility U", release.get_estimate("utility"), note, "number", 4)
    if release.has_estimate("cosine"):
        note = "of a changed chunk's vectors, before and after"
        yield Figure("Mean cosine", release.get_estimate("cosine"), note, "number", 3)


_ENTITIES = """
    Category           | name
    Entities in chunks | value | count | Different entities of each chunk, added up
    Exchanged          | moved | count
    Share              | share | share.1
"""
_RELEASED = """
    Chunks changed          | released.changed  | count    | {changed_of}
    Risk R                  | risk_shown        | number   | {size} | risk_shown
    Population uniques left | remaining_shown   | number   | {size} | remaining_shown
    Utility U               | exact.utility     | number.4 | {remarks}
    D, nats                 | exact.distance    | number.2 | change of the log density, all chunks
    Mean cosine             | exact.cosine      | number.4 | of changed chunks
"""
_TASK = """
    Learnt and judged on originals               | before  | .7
    Learnt from the release, judged on originals | learnt  | .0
    Learnt from originals, judged on the release | applied | .2
"""


def _select_shown_size(result: Search) -> Plain:
    """Return the values of the written draw at the population size of the choice."""
    released, size = result.get_part("released"), result.shown_size or NAN
    return {
        "size": f"N\u00a0=\u00a0{format_power(size)}",
        "changed_of": released.fill_template(
            "of {holding:,} that hold an exchanged category; {exchanged:,} by exchange alone"
        ),
        "remarks": ", ".join(released.get("flags") or ()),
        "exact": {name: released.get_estimate(name) for name in ("utility", "distance", "cosine")},
        **{f"{name}_shown": map_by_population(released.get(name)).get(size) for name in ("risk", "remaining")},
    }


def _list_entity_counts(result: Search) -> list[Plain]:
    entities, moved = result.get_part("released.entities"), result.get_part("released.moved")
    rows = ((name, count, moved.get(name, 0)) for name, count in entities.items() if isinstance(count, int))
    return [{"name": n, "value": count, "moved": m, "share": m / count if count else None} for n, count, m in rows]


def _draw_unexchanged_counts(result: Search) -> Iterator[Block]:
    """Count entities that were replaced otherwise, and chunks left without a partner."""
    names = {"fallback": "Replaced otherwise", "leftover": "Chunks left without a partner, by reason"}
    groups = tuple(
        (name, _make_count_facts(result.get_part(key))) for key, name in names.items() if result.get_part(key)
    )
    if groups:
        yield Settings(groups)


def _make_count_facts(values: Values) -> Facts:
    order = sorted(values.items(), key=lambda item: (-item[1], item[0]))
    return tuple((name, format_cell(count, "count").text) for name, count in order)


written_section = SectionSpec(
    "What was written",
    "written",
    lambda result: any(result.get_value(name) for name in ("released", "fallback", "leftover", "task")),
    (
        Paragraph(
            "The draw that was written, fall-backs included; every figure above is a mean over draws.", when="released"
        ),
        KeyFigures(_RELEASED, when="released"),
        ValueTable("Entities by category", _list_entity_counts, _ENTITIES, when="released.entities"),
        _draw_unexchanged_counts,
        BarChart(
            "Task utility: predicting {task.label}",
            Axis("Accuracy", "share", 0, 1),
            lambda result: [{**result["task"], "name": result["task"]["label"]}],
            _TASK,
            "chance",
            "the most frequent class for all",
            "A linear classifier on the chunks' vectors; {task.chunks:,} chunks it was not trained on.",
            when="task",
        ),
    ),
    _select_shown_size,
)


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
