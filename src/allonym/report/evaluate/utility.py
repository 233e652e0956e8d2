"""Utility in a report: information loss (P3), models that learn from anonymised texts, and syntheticity (P4)."""

from __future__ import annotations

import math
from collections.abc import Iterator

from allonym.report.page import Axis, Bar, Bars, Block, Cell, Group, Notice, Tag, Tone
from allonym.report.sections import BarChart, Folded, KeyFigures, Paragraph, SectionSpec, ValueTable, Warn
from allonym.report.values import NAN, Plain, Values, format_number, get_missing_reason, has_estimate, read_estimate
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
_READER_FIGURES = """
    Places replaced | replaced | number.1 | per 100 words, mean of the texts
    Small words replaced | lower_case | number.1 | words of small letters per 100 words; most identify nobody
    Touching | total.touching | count | places that follow another with only blanks between
    Surfaces with several replacements | total.split | count | of {total.repeated:,} replaced at several places
"""
_READER_COLUMNS = """
    Text         | number     | count
    Words        | words      | count
    Replaced     | replaced   | count
    Small words  | lower_case | count
    Touching     | touching   | count
    Repeated     | repeated   | count | Surfaces replaced at several places
    Several      | split      | count | Those of them with several replacements
"""
_CLASSIFIER = (
    "A classifier ({utility.model}) learns {utility.classes} classes from one version of {utility.texts:,} texts and "
    "is tested on the same version, in {utility.repeats} random splits that both versions share; {held_out} "
    "{reading}.{random}"
)
_RANDOM = (
    " In random splits of single texts, as Kleinberg et al. 2022 made them, the loss is {utility.random_loss:share.2} "
    "[{utility.random_loss.low:share.2}, {utility.random_loss.high:share.2}]: there a classifier may know a subject "
    "from other texts."
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


def _has_any_measure(result: Values) -> bool:
    return any(result.get_part(name) for name in ("surface", "similarity", "perplexity", "construct", "utility"))


def _derive_template_values(result: Values) -> Plain:
    counts = [c for c in result.list_rows("construct.counts") if c.get("part") != "WORDS"]
    unchanged = sum(_read_log10_factor(count, "mapped_bayes") <= -_EVIDENCE for count in counts)
    reading = str(result.get_value("utility.reading") or "")
    by_group = result.get_value("utility.by_group")
    return {
        "points": _to_percent(result.get_value("utility.loss")),
        "unchanged": f"{unchanged} of {len(counts)}",
        "reading": reading[:1].upper() + reading[1:],
        "held_out": "whole subjects are held out." if by_group else "single texts are held out.",
        "random": result.fill_template(_RANDOM) if result.has_estimate("utility.random_loss") else "",
        "reason": get_missing_reason(result.get_value("utility.loss")),
    }


def _to_percent(share: object) -> Estimate:
    value = read_estimate(share)
    return Estimate(100 * value.value, 100 * value.low, 100 * value.high, value.n, value.method)


def _colour_loss(result: Values) -> Tone:
    return "bad" if result.get_estimate("utility.loss").low > 0 else ""


def _draw_skipped_notice(result: Values) -> Iterator[Block]:
    if skipped := result.get_part("skipped"):
        yield Notice("Not measured", "note", tuple(f"{name}: {reason}" for name, reason in skipped.items()))


def _lacks_accuracy_loss(result: Values) -> bool:
    return bool(result.get_part("utility")) and not result.has_estimate("utility.loss")


def _list_accuracy_and_f1(result: Values) -> list[Plain]:
    utility = result.get_part("utility")
    macro = {end: utility.get(f"macro_{end}") for end in ("before", "after")}
    return [{**utility, "name": "Accuracy"}, {**macro, "name": "Macro F1"}]


def _describe_part_of_speech(row: Values) -> str:
    return f"{row.get('part', '')}, {_PARTS.get(str(row.get('part')), '')}"


def _draw_bayes_factors(result: Values) -> Iterator[Block]:
    counts = result.list_rows("construct.counts")
    if not counts:
        return
    bars = [("bayes", "as the tagger reads them", AFTER)]
    if result.get_value("construct.placeholders"):
        bars.append(("mapped_bayes", "mapped back", MAPPED))
    groups = (
        Group(
            _describe_part_of_speech(row),
            tuple(
                Bar(name, _clip_log10_factor(row, key), slot, _list_factor_facts(row, key)) for key, name, slot in bars
            ),
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


def _read_log10_factor(row: Values, name: str) -> float:
    value = row.get_part(name).get("log10_bf10")
    return float(value) if isinstance(value, (int, float)) else NAN


def _clip_log10_factor(row: Values, name: str) -> float:
    value = _read_log10_factor(row, name)
    return round(max(-_EDGE, min(_EDGE, value)), 2) if value == value else NAN


def _list_factor_facts(row: Values, name: str) -> tuple[tuple[str, Cell], ...]:
    factor = row.get_part(name)
    return (
        ("log₁₀ BF10", _read_log10_factor(row, name)),
        ("t", factor.get("t")),
        ("reading", str(factor.get("reading", ""))),
    )


def _list_part_of_speech_counts(result: Values) -> Iterator[Plain]:
    for row in result.list_rows("construct.counts"):
        cells: dict[str, Cell] = {"name": _describe_part_of_speech(row)}
        for key, stem in (("bayes", ""), ("mapped_bayes", "mapped_")):
            cells[f"{stem}bf10"] = _format_bayes_factor(row, key, 1)
            cells[f"{stem}bf01"] = _format_bayes_factor(row, key, -1)
            cells[f"{stem}reading"] = _tag_factor_reading(row.get_part(key))
        yield {**row, **cells}


def _format_bayes_factor(row: Values, name: str, sign: int) -> float | str | None:
    """BF10 or BF01; beyond what a number can hold, as a power of ten."""
    value = row.get_part(name).get("bf10" if sign > 0 else "bf01")
    if isinstance(value, (int, float)) and value > 0:
        return float(f"{value:.3g}")
    size = sign * _read_log10_factor(row, name)
    return f"10^{format_number(size, 'number', 0)}" if size == size else None


def _tag_factor_reading(factor: Values) -> Tag:
    reading = str(factor.get("reading") or "")
    if reading == "not measured":
        return Tag(str(factor.get("reason") or reading), "muted")
    tones: dict[str, Tone] = {"unchanged": "good", "changed": "bad"}
    return Tag(reading, tones.get(reading.partition(",")[0], "muted"))


def _list_wording_changes(result: Values) -> list[Plain]:
    lines: list[Plain] = []
    for path, name in _WORDING.items():
        if change := result.get_part(path):
            if name.endswith("%"):
                change = Values({key: _to_percent(value) for key, value in change.items()})
            if path == "perplexity":
                name += f" ({result.get('perplexity_model')})"
            lines.append({**change, "name": name})
    return lines


def _list_contrasts(result: Values) -> list[Plain]:
    lines: list[Plain] = []
    for row in result.list_rows("contrasts"):
        d = row.get_estimate("d")
        differ = d.low > 0 or d.high < 0
        reading = Tag("apart", "warn") if differ else Tag("not apart" if has_estimate(d) else d.method, "muted")
        lines.append({**row, "reading": reading})
    return lines


information_section = SectionSpec(
    "Information loss",
    "information",
    _has_any_measure,
    (
        KeyFigures(_FIGURES, {"Utility loss": _colour_loss}),
        _draw_skipped_notice,
        Warn("Utility loss was not measured: {reason}", when=_lacks_accuracy_loss),
        Paragraph(_CLASSIFIER, when="utility.loss"),
        BarChart(
            "A classifier before and after",
            Axis("Right", "share", 0, 1),
            _list_accuracy_and_f1,
            f"Originals | before | .{BEFORE} \n Anonymised | after | .{AFTER}",
            "chance",
            "the most frequent class for all",
            "Whiskers: 95 %, corrected for the overlap of the splits (Nadeau and Bengio 2003).",
            when="utility.loss",
        ),
        Paragraph(_TEST, when="construct"),
        _draw_bayes_factors,
        ValueTable("Parts of speech before and after", _list_part_of_speech_counts, _COUNTS, when="construct"),
        ValueTable(
            "Wording",
            _list_wording_changes,
            _VARIABLES,
            "Means over the texts, 95 % intervals below. Ranks: higher is rarer. Ease: higher is easier.",
            when=_list_wording_changes,
        ),
        Paragraph(
            "What sets texts that an intruder identified apart from the others, on each variable.", when="contrasts"
        ),
        ValueTable("Identified texts against the others", _list_contrasts, _CONTRASTS, when="contrasts"),
    ),
    _derive_template_values,
)


_MEASURES = {"f1": "F1 (macro)", "rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}
_LEAD = (
    "What a model that learns from the anonymised texts is worth on original ones, as Yermilov et al. 2023 measure it."
)
_READING = (
    "Two models of one kind learn from the same texts, one from the originals and one from the anonymised "
    "version; both are judged on the same other originals. The difference is taken split by split; its "
    "interval allows for the overlap of the splits (Nadeau and Bengio 2003). Where it includes 0, a loss is "
    "neither shown nor ruled out up to its end. Without learning: always the most frequent class, or the first "
    "sentences of a text. "
)
_EXTRACTED = (
    "Best possible: the sentences that together are most like the reference. Summaries are sentences of the text, so "
    "their ROUGE is not that of models that write."
)
_WRITTEN = "Summaries are written by the model, as in Yermilov et al. 2023."
_SCORES = """
    task             | task
    measure          | measure
    originals        | original   | share.1
    anonymised       | anonymised | share.1
    difference       | difference | share.1
    reads            | reading
    without learning | floor      | share.1
    best possible    | ceiling    | share.1
"""
_LEAKS = """
    Outputs that leak      | leaks.outputs     | share.1 | hold a direct identifier
    Identifiers in outputs | leaks.identifiers | share.1 | of the originals'
"""
_IDENTIFIERS = """
    output     | output
    type       | label
    identifier | surface
"""


def _write_lead(result: Values) -> str:
    return f"{_LEAD} The model: {result['model']}." if result.get("model") else _LEAD


def _list_task_scores(result: Values) -> Iterator[Plain]:
    for task in result.list_rows("tasks"):
        for score in task.list_rows("scores"):
            if score.has_estimate("original"):
                ends = {end: task.get_value(f"{end}.{score['name']}") for end in ("floor", "ceiling")}
                measure = _MEASURES.get(score["name"], score["name"])
                reading = _tag_difference(score.get_estimate("difference"))
                yield {**score, **ends, "task": task["name"], "measure": measure, "reading": reading}


def _tag_difference(change: Estimate) -> Tag:
    if change.high < 0:
        return Tag("worse", "bad")
    return Tag("better", "good") if change.low > 0 else Tag("not shown", "muted")


def _explain_missing_tasks(result: Values) -> Iterator[Block]:
    for task in result.list_rows("tasks"):
        missing = (score for score in task.list_rows("scores") if not score.has_estimate("original"))
        if reason := next((get_missing_reason(score.get("original")) for score in missing), ""):
            yield Notice(f"{task['name']}: not measured: {reason}.")


def _list_leaking_outputs(result: Values) -> list[Plain]:
    return [{**row, "output": str(int(row.get("output") or 0) + 1)} for row in result.list_rows("leaks.found")]


def _is_model_seq2seq(result: Values) -> bool:
    return str(result.get("model") or "").startswith("seq2seq:")


downstream_section = SectionSpec(
    "Downstream use",
    "downstream",
    lambda result: result.get("tasks") or result.get("leaks"),
    (
        Paragraph(_write_lead, "lead", when="tasks"),
        ValueTable(
            "Learnt from originals and from anonymised texts, judged on originals",
            _list_task_scores,
            _SCORES,
            when="tasks",
        ),
        _explain_missing_tasks,
        Folded(
            "How to read this",
            (Paragraph(lambda result: _READING + (_WRITTEN if _is_model_seq2seq(result) else _EXTRACTED)),),
            when="tasks",
        ),
        KeyFigures(_LEAKS, when="leaks"),
        ValueTable(
            "Direct identifiers that show up in outputs",
            "leaks.types",
            "type | name \n share | value | share.1",
            "Looked for by surface, whole words; Gardiner et al. 2024 had people look for them.",
            when="leaks.types",
        ),
        ValueTable("What was found", _list_leaking_outputs, _IDENTIFIERS, shown=20, texts=True, when="leaks.found"),
    ),
)


_SYNTHETICITY_READING = (
    "A linear model learns from other texts of the corpus which version of a text is the pseudonymised one; "
    "both versions of a text are judged by a model that saw neither. Guessing reaches an accuracy and an F1 of "
    "50 %, and calling every text pseudonymised an F1 of 66.7 %. Yermilov et al. 2023 (Table 5) report F1 of 97 to "
    "99 % for pseudonyms by named entity recognition and 75 % for a large language model, with another classifier on "
    "another corpus. Names that are frequent in the originals and absent from the other version are learnt as "
    "well, so a larger corpus is easier to tell apart."
)
_PAIRS = "{pairs:,} texts with both versions, in {folds} folds."
_UNCHANGED = "{unchanged:,} texts have not changed and are left out."
_SYNTHETICITY_FIGURES = """
    F1         | f1         | share.1 | of “pseudonymised”; always saying so: 66.7 %
    Precision  | precision  | share.1
    Recall     | recall     | share.1
    Accuracy   | accuracy   | share.1 | chance: 50 %
    Told apart | told_apart | share.1 | holding both versions; chance: 50 %
"""
_SIGNS = """
    feature    | term
    speaks for | side
    weight     | weight | number.3
    pairs      | pairs  | count
"""


def _list_feature_kind_shares(result: Values) -> list[tuple[str, float]]:
    kinds = ((name, float(share)) for name, share in result.get_part("kinds").items())
    return sorted(kinds, key=lambda kind: (-kind[1], kind[0]))


def _explain_syntheticity_missing(result: Values) -> Iterator[Block]:
    if not result.has_estimate("f1"):
        yield Notice(f"Not measured: {get_missing_reason(result['f1']) or 'no value'}.")


def _rank_disturbing_texts(result: Values) -> list[Plain]:
    """List the texts with the most small words and with surfaces that have several replacements first."""
    rows: list[Plain] = [{"number": n, **row} for n, row in enumerate(result.list_rows("documents"), 1)]
    return sorted(rows, key=lambda row: -(row["split"] + row["lower_case"] + row["touching"]) / max(row["words"], 1))


reader_section = SectionSpec(
    "What disturbs a reader",
    "reader",
    lambda result: "total" in result,
    (
        Paragraph("Counted in the texts alone, whatever people would mark.", "lead"),
        KeyFigures(_READER_FIGURES),
        ValueTable("Texts that read worst", _rank_disturbing_texts, _READER_COLUMNS, shown=20),
    ),
)


syntheticity_section = SectionSpec(
    "Syntheticity",
    "syntheticity",
    lambda result: "f1" in result,
    (
        Paragraph("Whether a classifier recognises that names were replaced (Yermilov et al. 2023, 4.3).", "lead"),
        _explain_syntheticity_missing,
        KeyFigures(_SYNTHETICITY_FIGURES, when="f1"),
        Paragraph(_PAIRS, "muted", when="f1"),
        Paragraph(_UNCHANGED, "muted", when="unchanged"),
        ValueTable(
            "What gives it away",
            _list_feature_kind_shares,
            "kind of feature | 0 \n share of the difference | 1 | share.1",
            "A tag is a placeholder where no pseudonym was found.",
            when="kinds",
        ),
        ValueTable("The features that tell most", "signs", _SIGNS, shown=20, texts=True, when="signs"),
        Folded("How to read this", (Paragraph(_SYNTHETICITY_READING),), when="f1"),
    ),
)
