"""The first screen: what was protected, how much changed, and the cost; and, at the end, the release as written."""

from __future__ import annotations

from collections.abc import Iterator

from allonym.report.page import Axis, Bar, Bars, Block, Facts, Figure, Figures, Group, Settings, Text, Tone
from allonym.report.sections import Paragraph, SectionSpec, ValueTable
from allonym.report.swap.values import Search, map_by_population, name_categories, read_categories
from allonym.report.values import Plain, Values, flatten_settings, format_cell, format_number, format_power

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
    corpus = result.get_part("corpus")
    if corpus.get("protect") and corpus.get("documents"):
        classes = corpus.get("classes")
        classes = len(classes) if isinstance(classes, (list, tuple)) else classes
        values = f"{classes:,} values of " if isinstance(classes, int) else ""
        chunks = f" ({corpus['chunks']:,} chunks)" if corpus.get("chunks") else ""
        yield f"Protected: {values}{corpus['protect']} in {corpus['documents']:,} documents{chunks}."


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
    note = "accuracy on changed chunks, before and after"
    if isinstance(chance := attack.get("chance"), (int, float)):
        note += f"; blind guess {format_number(float(chance), 'share', 0)}"
    return Figure(f"Intruder: {attack.get('intruder')}", after.value, note, "number", 2, tone, before.value)


def _make_key_figures(result: Search) -> Iterator[Figure]:
    release, risk, chunks = result.chosen_release, result.chosen_risk, result.get_value("corpus.chunks")
    if release:
        notes = [f"{format_cell(release.get_estimate('changed'), 'count').line} of {chunks:,}"] if chunks else []
        if isinstance(holding := result.get_value("released.holding"), int):
            notes.append(f"{holding:,} hold an exchanged category")
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
_TASK = (
    ("before", "Learnt and judged on originals", 7),
    ("learnt", "Learnt from the release, judged on originals", 0),
    ("applied", "Learnt from originals, judged on the release", 2),
    ("after", "After", 0),
)


def _draw_release_figures(result: Search) -> Iterator[Block]:
    if figures := tuple(_make_release_figures(result.get_part("released"), result.shown_size)):
        yield Figures(figures)


def _make_release_figures(released: Values, size: float | None) -> Iterator[Figure]:
    changed, holding = released.get("changed"), released.get("holding")
    if isinstance(changed, int):
        notes = [f"of {holding:,} that hold an exchanged category"] if isinstance(holding, int) else []
        if isinstance(exchanged := released.get("exchanged"), int):
            notes.append(f"{exchanged:,} by exchange alone")
        yield Figure("Chunks changed", changed, "; ".join(notes), "count")
    for name, label in (("risk", "Risk R"), ("remaining", "Population uniques left")):
        values = map_by_population(released.get(name))
        if size is not None and size in values:
            yield Figure(label, values[size], f"N\u00a0=\u00a0{format_power(size)}")
    flags = ", ".join(str(flag) for flag in released.get("flags") or ())
    for name, label, note, digits in (
        ("utility", "Utility U", flags, 4),
        ("distance", "D, nats", "change of the log density, all chunks", 2),
        ("cosine", "Mean cosine", "of changed chunks", 4),
    ):
        if released.has_estimate(name):
            yield Figure(label, released.get_estimate(name), note, "number", digits)


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
    order = sorted(values.items(), key=lambda item: (-item[1] if isinstance(item[1], int) else 0, str(item[0])))
    return tuple(
        (str(name), format_cell(value, "count").text if isinstance(value, (int, float)) else str(value))
        for name, value in order
    )


def _draw_task_utility(result: Search) -> Iterator[Block]:
    task = result.get_part("task")
    bars = tuple(Bar(label, task.get_estimate(name), slot) for name, label, slot in _TASK if task.has_estimate(name))
    if not bars:
        if task:
            yield Settings((("Task utility", flatten_settings(task)),))
        return
    name = str(task.get("label") or task.get("labels") or "task")
    chance = task.find_number("chance")
    chunks = f" {task['chunks']:,} chunks" if isinstance(task.get("chunks"), int) else ""
    yield Bars(
        f"Task utility: predicting {name}",
        Axis("Accuracy", "share", 0, 1),
        (Group(name, bars, chance),),
        "the most frequent class for all" if chance is not None else "",
        f"A linear classifier on the chunks' vectors;{chunks} it was not trained on.",
    )


written_section = SectionSpec(
    "What was written",
    "written",
    lambda result: any(result.get_value(name) for name in ("released", "fallback", "leftover", "task")),
    (
        Paragraph(
            "The draw that was written, fall-backs included; every figure above is a mean over draws.", when="released"
        ),
        _draw_release_figures,
        ValueTable("Entities by category", _list_entity_counts, _ENTITIES, when="released.entities"),
        _draw_unexchanged_counts,
        _draw_task_utility,
    ),
)
