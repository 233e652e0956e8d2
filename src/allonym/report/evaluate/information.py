"""Information loss in a report: accuracy of a classifier, parts of speech, meaning, wording (P3)."""

from __future__ import annotations

import math
from collections.abc import Iterator

from allonym.report.numbers import format_number
from allonym.report.page import Block, Cell, Notice, Tag, Tone
from allonym.report.plots import Axis, Bar, Bars, Group
from allonym.report.sections import BarChart, KeyFigures, Paragraph, SectionSpec, ValueTable
from allonym.report.values import (
    NAN,
    Plain,
    has_estimate,
    list_rows,
    missing_reason,
    read_estimate,
    read_part,
    read_path,
)
from allonym.stats import Estimate

BEFORE, AFTER, MAPPED = 7, 0, 1
_EDGE = 10.0
_EVIDENCE = math.log10(3)
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
_FIGURES = """
    Utility loss | points          | number.2 | points of accuracy, before minus after, same splits | utility
    Removed      | surface.removed | share.1  | share of words, placeholders not counted | surface
    Meaning left | similarity.mean | number.2 | cosine; unrelated texts: {similarity.chance:number.2} | similarity
    Parts of speech unchanged | unchanged | text | placeholders as what they stand for; BF01 of 3 or more | construct
"""
_CLASSIFIER = (
    "A classifier ({utility.model}) learns {utility.classes} classes from one version of {utility.texts:,} texts and "
    "is tested on the same version, in {utility.repeats} random splits that both versions share. {reading}."
)
_TEST = (
    "Counts of parts of speech per text are compared by a Bayesian t test ({construct.test}, JZS prior of scale "
    "{construct.scale:number}), tagger: {construct.tagger}. It can speak for no difference as well as for one: beyond "
    "3 to 1 it is evidence, between it is undecided. {construct.placeholders:,} placeholders."
)
_COUNTS = """
    Part of speech  | name
    Before          | before      | number.2 | Mean count per text
    After           | after       | number.2 | Placeholders count as the tagger reads them
    BF10            | bf10        | power    | Odds that the counts differ
    BF01            | bf01        | power    | Odds that they do not
    Reading         | reading
    Mapped          | mapped      | number.2 | Each placeholder counts as the part of speech that it stands for | {0}
    BF10, mapped    | mapped_bf10 | power    | | {0}
    BF01, mapped    | mapped_bf01 | power    | | {0}
    Reading, mapped | mapped_reading |       | | {0}
""".replace("{0}", "construct.placeholders")
_WORDING = {
    "surface.rank": "Frequency rank of the words",
    "surface.listed": "Words that are in the list, %",
    "surface.ease": "Reading ease (Flesch)",
    "surface.grade": "Grade level (Flesch-Kincaid)",
    "perplexity": "Perplexity",
}
_VARIABLES = """
    Variable   | name
    Before     | before     | number
    After      | after      | number
    Difference | difference | number | Text by text
"""
_CONTRASTS = """
    Variable       | name
    Not identified | hidden          | number   | Mean of the texts that nobody identified
    SD             | hidden_sd.value | number
    Texts          | hidden.n        | count
    Identified     | found           | number   | Mean of the identified ones
    SD             | found_sd.value  | number
    Texts          | found.n         | count
    Cohen's d      | d               | number.2 | Above 0: higher in texts that nobody identified
    Reading        | reading
"""


def _has_any_measure(result: Plain) -> bool:
    return any(read_part(result, name) for name in ("surface", "similarity", "perplexity", "construct", "utility"))


def _draw_figures(result: Plain) -> Iterator[Block]:
    counts = [c for c in list_rows(read_part(result, "construct"), "counts") if c.get("part") != "WORDS"]
    unchanged = sum(_read_log10_factor(count, "mapped_bayes") <= -_EVIDENCE for count in counts)
    points = _to_percent(read_path(result, "utility.loss"))
    values = {"points": points, "unchanged": f"{unchanged} of {len(counts)}"}
    yield KeyFigures(_FIGURES, {"Utility loss": _colour_loss}).draw({**result, **values})


def _to_percent(share: object) -> Estimate:
    value = read_estimate(share)
    return Estimate(100 * value.value, 100 * value.low, 100 * value.high, value.n, value.method)


def _colour_loss(result: Plain) -> Tone:
    return "bad" if read_estimate(read_path(result, "utility.loss")).low > 0 else ""


def _draw_skipped_notice(result: Plain) -> Iterator[Block]:
    if skipped := read_part(result, "skipped"):
        yield Notice("Not measured", "note", tuple(f"{name}: {reason}" for name, reason in skipped.items()))


def _draw_utility(result: Plain) -> Iterator[Block]:
    utility = read_part(result, "utility")
    if utility and not has_estimate(utility.get("loss")):
        yield Notice(f"Utility loss was not measured: {missing_reason(utility.get('loss'))}")
    elif utility:
        reading = str(utility.get("reading", ""))
        yield Paragraph(_CLASSIFIER).draw({**result, "reading": reading[:1].upper() + reading[1:]})
        yield _ACCURACY.draw(utility)


def _list_accuracies(utility: Plain) -> list[Plain]:
    macro = {end: utility.get(f"macro_{end}") for end in ("before", "after")}
    return [{**utility, "name": "Accuracy"}, {**macro, "name": "Macro F1"}]


_ACCURACY = BarChart(
    "A classifier before and after",
    Axis("Right", "share", 0, 1),
    _list_accuracies,
    f"Originals | before | .{BEFORE} \n Anonymised | after | .{AFTER}",
    "chance",
    "the most frequent class for all",
    "Whiskers: 95 %, corrected for the overlap of the splits (Nadeau and Bengio 2003).",
)


def _describe_part_of_speech(row: Plain) -> str:
    return f"{row.get('part', '')}, {_PARTS.get(str(row.get('part')), '')}"


def _draw_evidence(result: Plain) -> Iterator[Block]:
    counts = list_rows(read_part(result, "construct"), "counts")
    if not counts:
        return
    bars = [("bayes", "as the tagger reads them", AFTER)]
    if read_path(result, "construct.placeholders"):
        bars.append(("mapped_bayes", "mapped back", MAPPED))
    groups = (
        Group(
            _describe_part_of_speech(row),
            tuple(Bar(name, _clip_log(row, key), slot, _list_factor_facts(row, key)) for key, name, slot in bars),
        )
        for row in counts
    )
    least = min((_read_log10_factor(row, key) for row in counts for key in ("bayes", "mapped_bayes")), default=0.0)
    yield Bars(
        "Evidence that parts of speech changed",
        Axis("log₁₀ BF10", "number", -_EDGE if least < -_EDGE else None, _EDGE + 1),
        tuple(groups),
        description="To the right: changed. To the left: unchanged. Between the lines: undecided.",
        note=f"Bars end at {_EDGE:g}: for {_EDGE:g} read that or more. 0: as likely changed as not.",
        guides=(("3 to 1 for a change", _EVIDENCE), ("3 to 1 for none", -_EVIDENCE)),
    )


def _read_log10_factor(row: Plain, name: str) -> float:
    value = read_part(row, name).get("log10_bf10")
    return float(value) if isinstance(value, (int, float)) else NAN


def _clip_log(row: Plain, name: str) -> float:
    value = _read_log10_factor(row, name)
    return round(max(-_EDGE, min(_EDGE, value)), 2) if value == value else NAN


def _list_factor_facts(row: Plain, name: str) -> tuple[tuple[str, Cell], ...]:
    factor = read_part(row, name)
    return (
        ("log₁₀ BF10", _read_log10_factor(row, name)),
        ("t", factor.get("t")),
        ("reading", str(factor.get("reading", ""))),
    )


def _list_counts(result: Plain) -> Iterator[Plain]:
    for row in list_rows(read_part(result, "construct"), "counts"):
        cells: dict[str, Cell] = {"name": _describe_part_of_speech(row)}
        for key, stem in (("bayes", ""), ("mapped_bayes", "mapped_")):
            cells[f"{stem}bf10"] = _format_factor(row, key, 1)
            cells[f"{stem}bf01"] = _format_factor(row, key, -1)
            cells[f"{stem}reading"] = _tag_reading(read_part(row, key))
        yield {**row, **cells}


def _format_factor(row: Plain, name: str, sign: int) -> float | str | None:
    """BF10 or BF01; beyond what a number can hold, as a power of ten."""
    value = read_part(row, name).get("bf10" if sign > 0 else "bf01")
    if isinstance(value, (int, float)) and value > 0:
        return float(f"{value:.3g}")
    size = sign * _read_log10_factor(row, name)
    return f"10^{format_number(size, 'number', 0)}" if size == size else None


def _tag_reading(factor: Plain) -> Tag:
    reading = str(factor.get("reading") or "")
    if reading == "not measured":
        return Tag(str(factor.get("reason") or reading), "muted")
    tones: dict[str, Tone] = {"unchanged": "good", "changed": "bad"}
    return Tag(reading, tones.get(reading.partition(",")[0], "muted"))


def _list_wording(result: Plain) -> list[Plain]:
    lines: list[Plain] = []
    for path, name in _WORDING.items():
        if change := read_part(result, path):
            if name.endswith("%"):
                change = {key: _to_percent(value) for key, value in change.items()}
            if path == "perplexity":
                name += f" ({result.get('perplexity_model')})"
            lines.append({**change, "name": name})
    return lines


def _list_contrasts(result: Plain) -> list[Plain]:
    lines: list[Plain] = []
    for row in list_rows(result, "contrasts"):
        d = read_estimate(row.get("d"))
        differ = d.low > 0 or d.high < 0
        reading = Tag("apart", "warn") if differ else Tag("not apart" if has_estimate(d) else d.method, "muted")
        lines.append({**row, "reading": reading})
    return lines


information_section = SectionSpec(
    "Information loss",
    "information",
    _has_any_measure,
    (
        _draw_figures,
        _draw_skipped_notice,
        _draw_utility,
        Paragraph(_TEST, when="construct"),
        _draw_evidence,
        ValueTable("Parts of speech before and after (P3, Table 2)", _list_counts, _COUNTS, when="construct"),
        ValueTable(
            "Wording",
            _list_wording,
            _VARIABLES,
            "Means over the texts, 95 % intervals below. Ranks: higher is rarer. Ease: higher is easier.",
            when=_list_wording,
        ),
        Paragraph(
            "What sets texts that an intruder identified apart from the others, on each variable.", when="contrasts"
        ),
        ValueTable("Identified texts against the others (P3, Table 9)", _list_contrasts, _CONTRASTS, when="contrasts"),
    ),
)
