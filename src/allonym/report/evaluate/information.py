"""What anonymisation cost in usefulness: accuracy of a classifier, parts of speech, meaning, wording (P3)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from allonym.report.numbers import write
from allonym.report.page import Block, Cell, Column, Figure, Figures, Notice, Row, Section, Table, Tag, Text, Tone
from allonym.report.plots import Axis, Bar, Bars, Group
from allonym.report.swap.given import NAN, Plain, estimate, known, part, rows
from allonym.stats import Estimate

BEFORE, AFTER, MAPPED = 7, 0, 1
_EDGE = 10.0
_PARTS = {
    "WORDS": "words",
    "ADJ": "adjectives",
    "ADP": "adpositions",
    "ADV": "adverbs",
    "AUX": "auxiliaries",
    "CCONJ": "coordinating conjunctions",
    "DET": "determiners",
    "INTJ": "interjections",
    "NOUN": "nouns",
    "NUM": "numerals",
    "PART": "particles",
    "PRON": "pronouns",
    "PROPN": "proper nouns",
    "PUNCT": "punctuation",
    "SCONJ": "subordinating conjunctions",
    "SYM": "symbols",
    "VERB": "verbs",
    "X": "other",
}


def information_section(result: Mapping[str, Any], *, texts: bool = False) -> Section | None:
    """The section of :func:`allonym.evaluate.information_loss`'s plain values; it shows numbers, never a text."""
    if not any(part(result, name) for name in ("surface", "similarity", "perplexity", "construct", "utility")):
        return None
    blocks: list[Block] = [_figures(result)]
    if skipped := part(result, "skipped"):
        blocks.append(Notice("Not measured", "note", tuple(f"{name}: {why}" for name, why in skipped.items())))
    if utility := part(result, "utility"):
        blocks += _utility(utility)
    if construct := part(result, "construct"):
        blocks += _construct(construct)
    if found := _wording(result):
        blocks.append(found)
    if contrasts := rows(result, "contrasts"):
        blocks += _contrasts(contrasts)
    return Section("Information loss", tuple(blocks), "information")


def _figures(result: Plain) -> Figures:
    surface, similarity, utility = (part(result, n) for n in ("surface", "similarity", "utility"))
    figures = []
    if utility:
        loss = estimate(utility.get("loss"))
        figures.append(
            Figure(
                "Utility loss",
                _points(loss),
                "points of accuracy, before minus after, same splits",
                "number",
                2,
                _tone(loss),
            )
        )
    if surface:
        removed = estimate(surface.get("removed"))
        figures.append(Figure("Removed", removed, "share of a text's words, placeholders not counted", "share", 1))
    if similarity:
        chance = write(estimate(similarity.get("chance")).value, "number", 2)
        note = f"cosine of sentence vectors; unrelated texts reach {chance}"
        figures.append(Figure("Meaning left", estimate(similarity.get("mean")), note, "number", 2))
    if construct := part(result, "construct"):
        counts = [c for c in rows(construct, "counts") if c.get("part") != "WORDS"]
        kept = sum(_log(c, "mapped_bayes") <= -math.log10(3) for c in counts)
        note = "with each placeholder counted as what it stands for; BF01 of 3 or more"
        figures.append(Figure("Parts of speech shown unchanged", f"{kept} of {len(counts)}", note, "text"))
    return Figures(tuple(figures))


def _points(loss: Estimate) -> Estimate:
    return Estimate(100 * loss.value, 100 * loss.low, 100 * loss.high, loss.n, loss.method)


def _tone(loss: Estimate) -> Tone:
    return "bad" if loss.low > 0 else ""


def _utility(utility: Plain) -> list[Block]:
    if not known(utility.get("loss")):
        return [Notice(f"Utility loss was not measured: {estimate(utility.get('loss')).method.removeprefix('none: ')}")]
    bars = []
    for name, stem in (("Accuracy", ""), ("Macro F1", "macro_")):
        first, second = estimate(utility.get(f"{stem}before")), estimate(utility.get(f"{stem}after"))
        pair = (Bar("Originals", first, BEFORE), Bar("Anonymised", second, AFTER))
        chance = utility.get("chance")
        bars.append(Group(name, pair, estimate(chance).value if known(chance) and not stem else None))
    told = str(utility.get("reading", ""))
    return [
        Text(
            f"A classifier ({utility.get('model')}) learns {utility.get('classes')} classes from one version of "
            f"{utility.get('texts'):,} texts and is tested on the same version, in {utility.get('repeats')} random "
            f"splits that both versions share. {told[:1].upper()}{told[1:]}."
        ),
        Bars(
            "A classifier before and after",
            Axis("Right", "share", 0, 1),
            tuple(bars),
            "the most frequent class for all",
            "Whiskers: 95 %, corrected for the overlap of the splits (Nadeau and Bengio 2003).",
        ),
    ]


def _construct(construct: Plain) -> list[Block]:
    counts = rows(construct, "counts")
    held = int(construct.get("placeholders") or 0)
    groups, body = [], []
    for row in counts:
        name = str(row.get("part", ""))
        named = f"{name}, {_PARTS.get(name, '')}"
        bars = [Bar("as the tagger reads them", _clipped(row, "bayes"), AFTER, _facts(row, "bayes"))]
        if held:
            bars.append(Bar("mapped back", _clipped(row, "mapped_bayes"), MAPPED, _facts(row, "mapped_bayes")))
        groups.append(Group(named, tuple(bars)))
        cells: list[Cell] = [named, estimate(row.get("before")), estimate(row.get("after"))]
        cells += [_factor(row, "bayes", 1), _factor(row, "bayes", -1), _verdict(row, "bayes")]
        if held:
            cells += [estimate(row.get("mapped")), _factor(row, "mapped_bayes", 1), _factor(row, "mapped_bayes", -1)]
            cells.append(_verdict(row, "mapped_bayes"))
        body.append(Row(tuple(cells)))
    columns = [
        Column("Part of speech"),
        Column("Before", "number", 2, "Mean count per text"),
        Column("After", "number", 2, "Placeholders count as the tagger reads them"),
        Column("BF10", "power", None, "Odds that the counts differ"),
        Column("BF01", "power", None, "Odds that they do not"),
        Column("Reading"),
    ]
    if held:
        columns += [
            Column("Mapped", "number", 2, "Each placeholder counts as the part of speech of what it stands for"),
            Column("BF10, mapped", "power"),
            Column("BF01, mapped", "power"),
            Column("Reading, mapped"),
        ]
    scale = write(float(construct.get("scale") or NAN), "number")
    return [
        Text(
            f"Counts of parts of speech per text are compared by a Bayesian t test ({construct.get('test')}, JZS prior "
            f"of scale {scale}), tagger: {construct.get('tagger')}. It can speak for no difference as well as for one: "
            f"beyond 3 to 1 it is evidence, between it is undecided. {held:,} placeholders."
        ),
        Bars(
            "Evidence that parts of speech changed",
            Axis("log₁₀ BF10", "number", -_EDGE if _least(counts) < -_EDGE else None, _EDGE + 1),
            tuple(groups),
            "",
            "To the right: changed. To the left: unchanged. Between the lines: undecided.",
            f"Bars end at {write(_EDGE)}: for {write(_EDGE)} read that or more. 0: as likely changed as not.",
            (("3 to 1 for a change", math.log10(3)), ("3 to 1 for none", -math.log10(3))),
        ),
        Table("Parts of speech before and after (P3, Table 2)", tuple(columns), tuple(body)),
    ]


def _log(row: Plain, name: str) -> float:
    value = part(row, name).get("log10_bf10")
    return float(value) if isinstance(value, (int, float)) else NAN


def _least(counts: list[Plain]) -> float:
    return min((v for c in counts for n in ("bayes", "mapped_bayes") if (v := _log(c, n)) == v), default=0.0)


def _clipped(row: Plain, name: str) -> float:
    value = _log(row, name)
    return round(max(-_EDGE, min(_EDGE, value)), 2) if value == value else NAN


def _facts(row: Plain, name: str) -> tuple[tuple[str, Cell], ...]:
    found = part(row, name)
    return (("log₁₀ BF10", _log(row, name)), ("t", found.get("t")), ("reading", str(found.get("reading", ""))))


def _factor(row: Plain, name: str, sign: int) -> float | str | None:
    """BF10 or BF01; beyond what a number can hold, as a power of ten."""
    found = part(row, name)
    value = found.get("bf10" if sign > 0 else "bf01")
    if isinstance(value, (int, float)) and value > 0:
        return float(f"{value:.3g}")
    size = sign * _log(row, name)
    return f"10^{write(size, 'number', 0)}" if size == size else None


def _verdict(row: Plain, name: str) -> Tag:
    found = part(row, name)
    told = str(found.get("reading") or "")
    if told == "not measured":
        return Tag(str(found.get("reason") or told), "muted")
    return Tag(told, "good" if told.startswith("unchanged") else "bad" if told.startswith("changed") else "muted")


def _wording(result: Plain) -> Table | None:
    surface = part(result, "surface")
    named = (
        ("Frequency rank of the words", part(surface, "rank"), "number"),
        ("Words that are in the list", part(surface, "listed"), "share"),
        ("Reading ease (Flesch)", part(surface, "ease"), "number"),
        ("Grade level (Flesch-Kincaid)", part(surface, "grade"), "number"),
        (f"Perplexity ({result.get('perplexity_model')})", part(result, "perplexity"), "number"),
    )
    body = []
    for name, change, kind in named:
        if change:
            values = [estimate(change.get(n)) for n in ("before", "after", "difference")]
            if kind == "share":
                values = [_points(v) for v in values]
                name = f"{name}, %"
            body.append(Row((name, *values)))
    if not body:
        return None
    columns = (Column("Variable"), Column("Before", "number"), Column("After", "number"))
    note = "Means over the texts, 95 % intervals below. Ranks: higher is rarer. Ease: higher is easier."
    return Table("Wording", (*columns, Column("Difference", "number", None, "Text by text")), tuple(body), note)


def _contrasts(contrasts: list[Plain]) -> list[Block]:
    body = []
    for row in contrasts:
        hidden, found = estimate(row.get("hidden")), estimate(row.get("found"))
        d = estimate(row.get("d"))
        spread = (estimate(row.get(n)).value for n in ("hidden_sd", "found_sd"))
        first, second = spread
        apart = d.low > 0 or d.high < 0
        told = Tag("apart", "warn") if apart else Tag("not apart" if d.value == d.value else d.method, "muted")
        body.append(Row((str(row.get("name", "")), hidden, first, hidden.n, found, second, found.n, d, told)))
    columns = (
        Column("Variable"),
        Column("Not identified", "number", None, "Mean of the texts that nobody identified"),
        Column("SD", "number"),
        Column("Texts", "count"),
        Column("Identified", "number", None, "Mean of the identified ones"),
        Column("SD", "number"),
        Column("Texts", "count"),
        Column("Cohen's d", "number", 2, "Above 0: higher in texts that nobody identified"),
        Column("Reading"),
    )
    return [
        Text("What sets texts that an intruder identified apart from the others, on each variable."),
        Table("Identified texts against the others (P3, Table 9)", columns, tuple(body)),
    ]
