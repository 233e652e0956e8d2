"""The first screen: what was protected, how much changed, and the cost; and, at the end, the release as written."""

from __future__ import annotations

from collections.abc import Iterator

from allonym.report.page import Axis, Bar, Bars, Block, Facts, Figure, Figures, Group, Settings, Text, Tone
from allonym.report.sections import Paragraph, SectionSpec, ValueTable
from allonym.report.swap.values import (
    find_chosen_release,
    find_population,
    map_by_population,
    name_categories,
    read_categories,
    read_risks,
)
from allonym.report.values import (
    Plain,
    fill_template,
    flatten_settings,
    format_cell,
    format_number,
    format_power,
    get_nested_value,
    has_estimate,
    read_estimate,
    read_mapping,
    read_rows,
)
from allonym.stats import Estimate


def draw_summary(result: Plain) -> Iterator[Block]:
    """Yield a paragraph and key figures."""
    attacks = [
        a for a in read_rows(result, "attacks") if has_estimate(a.get("before")) and has_estimate(a.get("after"))
    ][:3]
    release, size = find_chosen_release(result), find_population(result)
    if text := " ".join(
        [*_describe_corpus(result), *_describe_release(result, release, size), *_describe_attacks(attacks)]
    ):
        yield Text(text, "lead")
    figures = [_draw_attack(attack) for attack in attacks]
    figures += _draw_change_figures(result, release)
    if release is not None:
        figures += _draw_cost_figures(
            release, read_risks(release, result).get(size) if size is not None else None, size
        )
    if figures:
        yield Figures(tuple(figures))


def _describe_corpus(result: Plain) -> Iterator[str]:
    corpus = read_mapping(result, "corpus")
    if corpus.get("protect") and corpus.get("documents"):
        classes = corpus.get("classes")
        classes = len(classes) if isinstance(classes, (list, tuple)) else classes
        values = f"{classes:,} values of " if isinstance(classes, int) else ""
        chunks = f" ({corpus['chunks']:,} chunks)" if corpus.get("chunks") else ""
        yield f"Protected: {values}{corpus['protect']} in {corpus['documents']:,} documents{chunks}."


def _describe_release(result: Plain, release: Plain | None, size: float | None) -> Iterator[str]:
    if release is None:
        return
    categories = read_categories(release)
    names = f"{', '.join(categories[:-1])} and {categories[-1]}" if len(categories) > 1 else name_categories(categories)
    yield f"The chosen release exchanges {names} between chunks on the same topic;"
    yield fill_template("{changed:count.0} chunks change ({share:share}).", release)
    risk = read_risks(release, result).get(size) if size is not None else None
    if risk is not None and has_estimate(release.get("utility")):
        fall = f"falls from 1 to {format_number(risk.value, 'number', 3)}"
        if 1 - risk.value < 5e-4:
            fall = f"of 1 falls by {format_number(1 - risk.value)} only, as few uniques of the corpus are unique there"
        above = " (above 1: they fit their topics no worse)" if read_estimate(release["utility"]).value > 1 else ""
        yield f"In a population of {format_power(size or 0)} texts the risk {fall}; the texts keep a utility of"
        yield f"{format_number(read_estimate(release['utility']).value, 'number', 4)}{above}."


def _describe_attacks(attacks: list[Plain]) -> Iterator[str]:
    template = (
        "The intruder “{intruder}” guessed {before:share.0} of these chunks right before and {after:share.0} after."
    )
    return (fill_template(template, attack) for attack in attacks)


def _draw_attack(attack: Plain) -> Figure:
    before, after = read_estimate(attack.get("before")), read_estimate(attack.get("after"))
    tone: Tone = "good" if after.high < before.low else "warn"
    note = "accuracy on changed chunks, before and after"
    if isinstance(chance := attack.get("chance"), (int, float)):
        note += f"; blind guess {format_number(float(chance), 'share', 0)}"
    return Figure(f"Intruder: {attack.get('intruder')}", after.value, note, "number", 2, tone, before.value)


def _draw_change_figures(result: Plain, release: Plain | None) -> Iterator[Figure]:
    chunks, words = get_nested_value(result, "corpus.chunks"), get_nested_value(result, "corpus.changed_words")
    if release is not None:
        notes = [f"{format_cell(read_estimate(release.get('changed')), 'count').line} of {chunks:,}"] if chunks else []
        if isinstance(holding := get_nested_value(result, "released.holding"), int):
            notes.append(f"{holding:,} hold an exchanged category")
        yield Figure("Chunks changed", read_estimate(release.get("share")), "; ".join(notes), "share", 1)
    if has_estimate(words):
        yield Figure("Words changed", read_estimate(words), "of all words of the corpus", "share", 1)


def _draw_cost_figures(release: Plain, risk: Estimate | None, size: float | None) -> Iterator[Figure]:
    if risk is not None:
        yield Figure("Risk R", risk, f"1 before the exchange; N\u00a0=\u00a0{format_power(size or 0)}", "number", 4)
    if has_estimate(release.get("utility")):
        note = fill_template("D per changed chunk {distance_per_chunk:number.2} nats", release)
        yield Figure("Utility U", read_estimate(release["utility"]), note, "number", 4)
    if has_estimate(release.get("cosine")):
        note = "of a changed chunk's vectors, before and after"
        yield Figure("Mean cosine", read_estimate(release["cosine"]), note, "number", 3)


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


def _draw_release_figures(result: Plain) -> Iterator[Block]:
    if figures := tuple(_list_release_figures(read_mapping(result, "released"), find_population(result))):
        yield Figures(figures)


def _list_release_figures(released: Plain, size: float | None) -> Iterator[Figure]:
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
        if has_estimate(released.get(name)):
            yield Figure(label, read_estimate(released[name]), note, "number", digits)


def _list_entities(result: Plain) -> list[Plain]:
    entities, moved = read_mapping(result, "released.entities"), read_mapping(result, "released.moved")
    return [
        {
            "name": name,
            "value": count,
            "moved": moved.get(name, 0),
            "share": moved.get(name, 0) / count if count else None,
        }
        for name, count in entities.items()
        if isinstance(count, int)
    ]


def _draw_counts(result: Plain) -> Iterator[Block]:
    names = {"fallback": "Replaced otherwise", "leftover": "Chunks left without a partner, by reason"}
    groups = tuple(
        (name, _list_counts(read_mapping(result, key))) for key, name in names.items() if read_mapping(result, key)
    )
    if groups:
        yield Settings(groups)


def _list_counts(values: Plain) -> Facts:
    order = sorted(values.items(), key=lambda item: (-item[1] if isinstance(item[1], int) else 0, str(item[0])))
    return tuple(
        (str(name), format_cell(value, "count").text if isinstance(value, (int, float)) else str(value))
        for name, value in order
    )


def _draw_task_utility(result: Plain) -> Iterator[Block]:
    task = read_mapping(result, "task")
    bars = tuple(
        Bar(label, read_estimate(task[name]), slot) for name, label, slot in _TASK if has_estimate(task.get(name))
    )
    if not bars:
        if task:
            yield Settings((("Task utility", flatten_settings(task)),))
        return
    name = str(task.get("label") or task.get("labels") or "task")
    chance = float(task["chance"]) if isinstance(task.get("chance"), (int, float)) else None
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
    lambda result: any(get_nested_value(result, name) for name in ("released", "fallback", "leftover", "task")),
    (
        Paragraph(
            "The draw that was written, fall-backs included; every figure above is a mean over draws.", when="released"
        ),
        _draw_release_figures,
        ValueTable("Entities by category", _list_entities, _ENTITIES, when="released.entities"),
        _draw_counts,
        _draw_task_utility,
    ),
)
