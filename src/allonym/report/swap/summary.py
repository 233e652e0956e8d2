"""The first screen: what was protected, how much changed, what it costs, in sentences and key figures."""

from __future__ import annotations

from collections.abc import Iterator

from allonym.report.numbers import power, show, write
from allonym.report.page import Block, Figure, Figures, Text, Tone
from allonym.report.swap.values import find_chosen, find_population, name_categories, read_categories, read_risks
from allonym.report.values import Plain, estimate, fill, known, part, read, rows
from allonym.stats import Estimate


def draw_summary(result: Plain) -> Iterator[Block]:
    """A paragraph and key figures."""
    attacks = [a for a in rows(result, "attacks") if known(a.get("before")) and known(a.get("after"))][:3]
    release, size = find_chosen(result), find_population(result)
    if text := " ".join([*_describe_corpus(result), *_describe_release(result, release, size), *_describe(attacks)]):
        yield Text(text, "lead")
    figures = [_draw_attack(attack) for attack in attacks]
    figures += _draw_changes(result, release)
    if release is not None:
        figures += _draw_costs(release, read_risks(release, result).get(size) if size is not None else None, size)
    if figures:
        yield Figures(tuple(figures))


def _describe_corpus(result: Plain) -> Iterator[str]:
    corpus = part(result, "corpus")
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
    yield fill("{changed:count.0} chunks change ({share:share}).", release)
    risk = read_risks(release, result).get(size) if size is not None else None
    if risk is not None and known(release.get("utility")):
        fall = f"falls from 1 to {write(risk.value, 'number', 3)}"
        if 1 - risk.value < 5e-4:
            fall = f"of 1 falls by {write(1 - risk.value)} only, as few uniques of the corpus are unique there"
        above = " (above 1: they fit their topics no worse)" if estimate(release["utility"]).value > 1 else ""
        yield f"In a population of {power(size or 0)} texts the risk {fall}; the texts keep a utility of"
        yield f"{write(estimate(release['utility']).value, 'number', 4)}{above}."


def _describe(attacks: list[Plain]) -> Iterator[str]:
    template = (
        "The intruder “{intruder}” guessed {before:share.0} of these chunks right before and {after:share.0} after."
    )
    return (fill(template, attack) for attack in attacks)


def _draw_attack(attack: Plain) -> Figure:
    before, after = estimate(attack.get("before")), estimate(attack.get("after"))
    tone: Tone = "good" if after.high < before.low else "warn"
    note = "accuracy on changed chunks, before and after"
    if isinstance(chance := attack.get("chance"), (int, float)):
        note += f"; blind guess {write(float(chance), 'share', 0)}"
    return Figure(f"Intruder: {attack.get('intruder')}", after.value, note, "number", 2, tone, before.value)


def _draw_changes(result: Plain, release: Plain | None) -> Iterator[Figure]:
    chunks, words = read(result, "corpus.chunks"), read(result, "corpus.changed_words")
    if release is not None:
        notes = [f"{show(estimate(release.get('changed')), 'count').line} of {chunks:,}"] if chunks else []
        if isinstance(holding := read(result, "released.holding"), int):
            notes.append(f"{holding:,} hold an exchanged category")
        yield Figure("Chunks changed", estimate(release.get("share")), "; ".join(notes), "share", 1)
    if known(words):
        yield Figure("Words changed", estimate(words), "of all words of the corpus", "share", 1)


def _draw_costs(release: Plain, risk: Estimate | None, size: float | None) -> Iterator[Figure]:
    if risk is not None:
        yield Figure("Risk R", risk, f"1 before the exchange; N\u00a0=\u00a0{power(size or 0)}", "number", 4)
    if known(release.get("utility")):
        note = f"D per changed chunk {show(estimate(release.get('distance_per_chunk')), 'number', 2).text} nats"
        yield Figure("Utility U", estimate(release["utility"]), note, "number", 4)
    if known(release.get("cosine")):
        note = "of a changed chunk's vectors, before and after"
        yield Figure("Mean cosine", estimate(release["cosine"]), note, "number", 3)
