"""The first screen: what was protected, how much changed, what it costs, in sentences and key figures."""

from __future__ import annotations

from collections.abc import Iterator

from allonym.report.numbers import power, show, write
from allonym.report.page import Block, Figure, Figures, Text, Tone
from allonym.report.swap.given import (
    Plain,
    called,
    categories_of,
    chosen,
    chosen_population,
    estimate,
    known,
    part,
    risks,
    rows,
)


def summary(result: Plain) -> Iterator[Block]:
    """A paragraph and key figures."""
    said = " ".join(_sentences(result))
    if said:
        yield Text(said, "lead")
    if figures := tuple(_figures(result)):
        yield Figures(figures)


def _sentences(result: Plain) -> Iterator[str]:
    corpus, best, size = part(result, "corpus"), chosen(result), chosen_population(result)
    protect = corpus.get("protect")
    documents, chunks = corpus.get("documents"), corpus.get("chunks")
    if protect and documents:
        many = corpus.get("classes")
        many = len(many) if isinstance(many, (list, tuple)) else many
        of = f"{many:,} values of " if isinstance(many, int) else ""
        yield f"Protected: {of}{protect} in {documents:,} documents" + (f" ({chunks:,} chunks)." if chunks else ".")
    if best is not None:
        share, changed = estimate(best.get("share")), estimate(best.get("changed"))
        yield (
            f"The chosen release exchanges {_listed(categories_of(best))} between chunks on the same topic; "
            f"{write(changed.value, 'count', 0)} chunks change ({write(share.value, 'share')})."
        )
        risk = risks(best, result).get(size) if size is not None else None
        if risk is not None and known(best.get("utility")):
            utility = estimate(best.get("utility")).value
            fall = f"falls from 1 to {write(risk.value, 'number', 3)}"
            if 1 - risk.value < 5e-4:
                fall = f"of 1 falls by {write(1 - risk.value)} only, as few uniques of the corpus are unique there"
            yield (
                f"In a population of {power(size or 0)} texts the risk {fall}; the texts keep a utility of "
                f"{write(utility, 'number', 4)}{' (above 1: they fit their topics no worse)' if utility > 1 else ''}."
            )
    for attack in _shown(result):
        before, after = estimate(attack.get("before")).value, estimate(attack.get("after")).value
        yield (
            f"The intruder \u201c{attack.get('intruder')}\u201d guessed {write(before, 'share', 0)} of these chunks "
            f"right before and {write(after, 'share', 0)} after."
        )


def _figures(result: Plain) -> Iterator[Figure]:
    corpus, best, size = part(result, "corpus"), chosen(result), chosen_population(result)
    for attack in _shown(result):
        before, after = estimate(attack.get("before")), estimate(attack.get("after"))
        tone: Tone = "good" if after.high < before.low else "warn"
        note = "accuracy on changed chunks, before and after"
        if isinstance(chance := attack.get("chance"), (int, float)):
            note += f"; blind guess {write(float(chance), 'share', 0)}"
        name = f"Intruder: {attack.get('intruder')}"
        yield Figure(name, after.value, note, "number", 2, tone, before.value)
    if best is not None:
        changed = estimate(best.get("changed"))
        note = f"{show(changed, 'count').line} of {corpus['chunks']:,}" if corpus.get("chunks") else ""
        if isinstance(holding := part(result, "released").get("holding"), int):
            note += f"{'; ' if note else ''}{holding:,} hold an exchanged category"
        yield Figure("Chunks changed", estimate(best.get("share")), note, "share", 1)
    words = corpus.get("changed_words")
    if known(words):
        yield Figure("Words changed", estimate(words), "of all words of the corpus", "share", 1)
    if best is not None:
        if size is not None and size in risks(best, result):
            yield Figure(
                "Risk R", risks(best, result)[size], f"1 before the exchange; N\u00a0=\u00a0{power(size)}", "number", 4
            )
        if known(best.get("utility")):
            note = f"D per changed chunk {show(estimate(best.get('distance_per_chunk')), 'number', 2).text} nats"
            yield Figure("Utility U", estimate(best.get("utility")), note, "number", 4)
        if known(best.get("cosine")):
            yield Figure(
                "Mean cosine",
                estimate(best.get("cosine")),
                "of a changed chunk's vectors, before and after",
                "number",
                3,
            )


def _shown(result: Plain) -> list[Plain]:
    return [a for a in rows(result, "attacks") if known(a.get("before")) and known(a.get("after"))][:3]


def _listed(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else called(names)
