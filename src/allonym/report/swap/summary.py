"""The first screen: what was protected, how much changed, and the cost, in sentences and key figures."""

from __future__ import annotations

from collections.abc import Iterator

from allonym.report.numbers import format_cell, format_number, format_power
from allonym.report.page import Block, Figure, Figures, Text, Tone
from allonym.report.swap.values import find_chosen, find_population, name_categories, read_categories, read_risks
from allonym.report.values import Plain, fill_template, has_estimate, list_rows, read_estimate, read_part, read_path
from allonym.stats import Estimate


def draw_summary(result: Plain) -> Iterator[Block]:
    """Yield a paragraph and key figures."""
    attacks = [
        a for a in list_rows(result, "attacks") if has_estimate(a.get("before")) and has_estimate(a.get("after"))
    ][:3]
    release, size = find_chosen(result), find_population(result)
    if text := " ".join(
        [*_describe_corpus(result), *_describe_release(result, release, size), *_describe_attacks(attacks)]
    ):
        yield Text(text, "lead")
    figures = [_draw_attack(attack) for attack in attacks]
    figures += _draw_changes(result, release)
    if release is not None:
        figures += _draw_costs(release, read_risks(release, result).get(size) if size is not None else None, size)
    if figures:
        yield Figures(tuple(figures))


def _describe_corpus(result: Plain) -> Iterator[str]:
    corpus = read_part(result, "corpus")
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


def _draw_changes(result: Plain, release: Plain | None) -> Iterator[Figure]:
    chunks, words = read_path(result, "corpus.chunks"), read_path(result, "corpus.changed_words")
    if release is not None:
        notes = [f"{format_cell(read_estimate(release.get('changed')), 'count').line} of {chunks:,}"] if chunks else []
        if isinstance(holding := read_path(result, "released.holding"), int):
            notes.append(f"{holding:,} hold an exchanged category")
        yield Figure("Chunks changed", read_estimate(release.get("share")), "; ".join(notes), "share", 1)
    if has_estimate(words):
        yield Figure("Words changed", read_estimate(words), "of all words of the corpus", "share", 1)


def _draw_costs(release: Plain, risk: Estimate | None, size: float | None) -> Iterator[Figure]:
    if risk is not None:
        yield Figure("Risk R", risk, f"1 before the exchange; N\u00a0=\u00a0{format_power(size or 0)}", "number", 4)
    if has_estimate(release.get("utility")):
        note = fill_template("D per changed chunk {distance_per_chunk:number.2} nats", release)
        yield Figure("Utility U", read_estimate(release["utility"]), note, "number", 4)
    if has_estimate(release.get("cosine")):
        note = "of a changed chunk's vectors, before and after"
        yield Figure("Mean cosine", read_estimate(release["cosine"]), note, "number", 3)
