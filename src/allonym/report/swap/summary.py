"""The first screen: what was protected, how much changed, and the cost; and, at the end, the release as written."""

from __future__ import annotations

from collections.abc import Iterator

from allonym.report.page import Axis, Block, Facts, Figure, Figures, Settings, Text, Tone
from allonym.report.sections import BarChart, KeyFigures, Paragraph, SectionSpec, ValueTable
from allonym.report.swap.values import Search, map_by_population, name_categories, read_categories
from allonym.report.values import NAN, Plain, Values, format_cell, format_number, format_power

_ATTACK = "The intruder “{intruder}” guessed {before:share.0} of these chunks right before and {after:share.0} after."


def draw_summary(result: Search) -> Iterator[Block]:
    """Yield a paragraph and key figures."""
    attacks = [a for a in result.list_rows("attacks") if a.has_estimate("before") and a.has_estimate("after")][:3]
    sentences = [
        *_describe_corpus(result),
        *_describe_chosen(result),
        *(a.fill_template(_ATTACK) for a in attacks),
    ]
    if sentences:
        yield Text(" ".join(sentences), "lead")
    if figures := (*map(_make_attack_key_figure, attacks), *_make_key_figures(result)):
        yield Figures(figures)


def _describe_corpus(result: Search) -> Iterator[str]:
    if corpus := result.get_part("corpus"):
        yield corpus.fill_template(
            "Protected: {classes:,} values of {protect} in {documents:,} documents ({chunks:,} chunks)."
        )


def _describe_chosen(result: Search) -> Iterator[str]:
    release, risk = result.chosen_release, result.chosen_risk
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
        yield f"In a population of {format_power(result.shown_size or 0)} texts the risk {fall}; the texts keep a"
        yield f"utility of {format_number(release.get_estimate('utility').value, 'number', 4)}{above}."


def _make_attack_key_figure(attack: Values) -> Figure:
    before, after = attack.get_estimate("before"), attack.get_estimate("after")
    tone: Tone = "good" if after.high < before.low else "warn"
    note = attack.fill_template("accuracy on changed chunks, before and after; blind guess {chance:share.0}")
    return Figure(f"Intruder: {attack.get('intruder')}", after.value, note, "number", 2, tone, before.value)


def _make_key_figures(result: Search) -> Iterator[Figure]:
    release, risk, chunks = result.chosen_release, result.chosen_risk, result.get_value("corpus.chunks")
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
        yield Figure("Risk R", risk, note, "number", 4)
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
