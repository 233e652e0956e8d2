"""Detection in a report, with the leaks that it leaves, and originals in the outputs of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from allonym.report.page import Axis, Block, Matrix, Notice, Square, Tabs, Tag, Text, Tone
from allonym.report.sections import BarChart, Folded, KeyFigures, Paragraph, SectionSpec, ValueTable, Warn
from allonym.report.values import Plain, Values, format_number

LEVELS = {
    "token": ("Words", "Word by word; punctuation marks do not count."),
    "strict": ("Spans, strict", "A finding is right if its borders and its label are those of the gold span."),
    "overlap": (
        "Spans, overlap",
        "A gold span is found, and a finding is right, if the two share a character and the label.",
    ),
    "entity": (
        "Entities",
        "An entity is found if findings of its label cover all its mentions; a name that was found is right if all its "
        "occurrences lie in gold spans of its label.",
    ),
}
UNITS = {"span": "Spans", "token": "Words"}
_WIDEST = 40  # classes that a confusion matrix shows
_AVERAGES = {
    "micro": "all together (micro)",
    "macro": "mean of the labels (macro)",
    "weighted": "mean by frequency (weighted)",
    "any": "whatever the type",
}
_AGREEMENT = {
    "agreement.alpha": "Krippendorff's alpha, words and labels",
    "agreement.mask": "Krippendorff's alpha, marked or not",
    "agreement.kappa": "Cohen's kappa, mean over the pairs",
    "agreement.strict": "F1 of spans, same borders and label",
    "agreement.overlap": "F1 of spans, overlap and same label",
}
_SCORES = """
    Label     | name
    Precision | precision | number.3 | Share of the findings that are right
    Recall    | recall    | number.3 | Share of the gold that was found
    F1        | f1        | number.3 | Harmonic mean of precision and recall
    Gold      | gold      | count    | How many the gold has, of all annotators
    Found     | found     | count    | How many findings there are
"""
_FIGURES = """
    F1 of spans                 | f1                       | number.3 | {meaning}
    Mentions that leak          | leaks.all.mentions       | share | some letter or digit of them is in no finding
    Names still in the text     | leaks.all.surfaces       | share | gold surfaces found in it | leaks.all.surfaces
    Direct identifiers masked   | tab.recall.direct.entity | share | entities of which every mention is masked (TAB)
    Quasi-identifiers masked    | tab.recall.quasi.entity  | share | entities of which every mention is masked (TAB)
"""
_LEAKS = """
    Type              | name
    Not covered       | mentions  | share.2 | Gold mentions of which a letter or digit is in no finding of any type
    Untouched         | untouched | share.2 | Gold mentions of which nothing is in a finding
    Still in the text | surfaces  | share.2 | Gold surfaces that stand in the anonymised text | leaks.all.surfaces
"""
_LEAK_BARS = """
    Mentions not covered       | mentions | .0
    Surfaces still in the text | surfaces | .1 | | leaks.all.surfaces
"""
_RECALL = """
    Identifiers | name
    Entities    | entity  | number.3 | Share of which every mention is masked
    Mentions    | mention | number.3 | Share of the mentions that are masked
    Words       | token   | number.3 | Share of the words that are masked
"""
_PRECISION = """
    Precision of masked words | tab.precision | number.3 | masked by an annotator too
    The same, by information  | tab.weighted  | number.3 | rare words weigh more than frequent ones
"""
_BENCHMARK_NOTE = (
    "What is direct or quasi is decided {kinds}; which mentions are one entity {entities}. Weights: {tab.weights}."
)
_KINDS = {
    "gold": "by the annotators",
    "taxonomy": "by label, from the taxonomy",
    "both": "by the annotators, else by label",
}
_ENTITIES = {
    "gold": "by the annotators",
    "surface": "by label and text",
    "both": "by the annotators, else by label and text",
}


def _derive_template_values(result: Values) -> Plain:
    typed, tab = result.get("typed"), result.get_part("tab")
    recall = tab.get_part("recall")
    return {
        "f1": result.get_value(f"levels.strict.{'micro' if typed else 'any'}.f1"),
        "meaning": "borders and label right" if typed else "borders right; the findings have no types",
        "kinds": _KINDS.get(str(tab.get("kinds"))),
        "entities": _ENTITIES.get(str(tab.get("entities"))),
        "recall": recall and [{**recall.get_part(name), "name": name} for name in ("direct", "quasi", "all")],
    }


def _colour_leak(result: Values, path: str) -> Tone:
    value = result.get_estimate(path).value
    return "" if value != value else "good" if value <= 0.02 else "warn" if value <= 0.1 else "bad"


def _draw_notices(result: Values) -> Iterator[Block]:
    if not result.get("typed"):
        yield Notice("Some findings have no type, so precision, F1 and confusion are given whatever the type.")
    beyond = (
        "They count as wrong."
        if result.get("beyond_counts")
        else "They are neither right nor wrong, unless they touch a gold span."
    )
    for name, text in (
        ("beyond", f"The findings have labels that the gold does not have. {beyond}"),
        ("unmapped", "The gold has labels that the taxonomy does not know: only findings of the same name fit them."),
        ("left_out", "Gold spans that do not count: the label map or the annotators leave them out."),
    ):
        if counts := result.get_part(name):
            order = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
            yield Notice(text, "note", tuple(f"{label}: {count:,}" for label, count in order))


def _draw_scores(result: Values) -> Iterator[Block]:
    options = []
    for level, (name, meaning) in LEVELS.items():
        table = ValueTable("", _list_scores, _SCORES).draw(result.get_part(f"levels.{level}"))
        options.append((name, (Text(meaning, "muted"), table)))
    yield Tabs("Precision, recall and F1", tuple(options), 1)


def _list_scores(level: Values) -> list[Plain]:
    return [*level.list_rows("labels"), *_list_averages(level, _AVERAGES)]


def _list_leak_rates_by_type(result: Values) -> list[Plain]:
    averages = {"mean": "mean of the types", "all": "all mentions"}
    return [*result.list_rows("leaks.types"), *_list_averages(result.get_part("leaks"), averages)]


def _list_averages(values: Values, names: Mapping[str, str]) -> list[Plain]:
    return [{**values.get_part(key), "name": name, "mark": "frontier"} for key, name in names.items()]


def _draw_confusion(result: Values) -> Iterator[Block]:
    if matrices := result.get_part("confusion"):
        options = (
            (name, (_draw_confusion_matrix(matrices.get_part(unit), unit),))
            for unit, name in UNITS.items()
            if unit in matrices
        )
        yield Tabs("What was taken for what", tuple(options))


def _draw_confusion_matrix(matrix: Values, unit: str) -> Matrix:
    names, columns = [str(r) for r in matrix.get("rows") or ()], [str(c) for c in matrix.get("columns") or ()]
    counts: Sequence[Sequence[int]] = matrix.get("counts") or ()
    # Classes as in the rows, so that what is right lies on the diagonal; then none, then what only findings have.
    common, last = len(names) - 1, len(columns) - 1
    beyond = sorted(range(common, last), key=lambda c: -sum(row[c] for row in counts))
    shown = [*range(common), last, *beyond][:_WIDEST]
    body = []
    for name, row in zip(names, counts, strict=True):
        # Most words are in no span: they would leave no shade for what matters.
        total = sum(row) - (row[-1] if name == names[-1] and unit == "token" else 0)
        cells = []
        for c in shown:
            outside = name == names[-1] and c == last
            share = row[c] / total if total and not outside else 0.0
            hint = "" if outside else f"{format_number(share, 'share')} of {name}: taken for {columns[c]}"
            cells.append(Square(None if outside and unit == "span" else row[c], min(share, 1.0), None, hint))
        body.append((name, tuple(cells)))
    note = "Rows are the gold, columns what was found. The darker, the larger the share of the row."
    if len(columns) > _WIDEST:
        note += f" {_WIDEST} of {len(columns)} columns are shown."
    return Matrix("", tuple(columns[c] for c in shown), tuple(body), "gold \\ found", "count", None, note)


detection_section = SectionSpec(
    "Detection",
    "detection",
    "levels",
    (
        KeyFigures(
            _FIGURES,
            {
                "Mentions that leak": lambda values: _colour_leak(values, "leaks.all.mentions"),
                "Names still in the text": lambda values: _colour_leak(values, "leaks.all.surfaces"),
            },
        ),
        _draw_notices,
        _draw_scores,
        _draw_confusion,
        BarChart(
            "What leaks, by type",
            Axis("Share that leaks", "share", 0),
            "leaks.types",
            _LEAK_BARS,
            description="False negative rates per type; lower is better.",
            when="leaks.types",
        ),
        ValueTable(
            "Leak rates",
            _list_leak_rates_by_type,
            _LEAKS,
            "False negative rates as in Yermilov et al. 2023, Table 4. A finding of a wrong type covers all the same.",
            when="leaks.types",
        ),
        ValueTable("Recall as in the Text Anonymization Benchmark", "recall", _RECALL, _BENCHMARK_NOTE, when="recall"),
        KeyFigures(_PRECISION, when="recall"),
        Folded(
            "Agreement of {agreement.annotators} annotators in {agreement.documents} texts",
            (
                ValueTable(
                    "",
                    _AGREEMENT,
                    "Measure | name \n Value | value | number.3",
                    "1 is full agreement. Kappa and alpha are 0 where annotators agree no more than by chance.",
                ),
            ),
            when="agreement",
        ),
    ),
    _derive_template_values,
)


_SHOWN = 25
_FORMS = {
    "whole": "all of it",
    "part": "a part",
    "shortened": "shortened",
    "edited": "one letter another",
    "initials": "initials alone",
}
_LEAD = (
    "{outputs:,} outputs of a model were searched for {all.originals:,} originals by keyed digests: in any case and "
    "grouping, in part, shortened, with one letter another."
)
_NONE = "No original was found. Up to {all.outputs.high:share.2} of such outputs may hold one, by the interval."
_GENERATIONS_FIGURES = """
    Outputs with an original       | all.outputs    | share.1 | 0 is wanted
    With one that identifies alone | direct.outputs | share.1 | direct identifiers
    Originals that turn up         | all.leaked     | share.1 | of {all.originals:,}
    Beyond the baseline | all.excess | share.1 | less the {baseline:,} texts that never saw the data | baseline
"""
_LABELS = """
    Label          | label
    Originals      | originals   | count
    Of them leaked | leaked      | share.1  | In part only where no other original has that part
    Outputs with one | outputs   | share.1
    Baseline       | baseline    | share.1  | | baseline
    Difference     | excess      | share.1  | | baseline
    Places         | occurrences | count
    By chance      | chance      | number.2 | Places that word frequencies alone would lead one to expect
    Common words   | common      | count    | Not in the numbers before
    Initials       | initials    | count    | In capitals, alone; not in the numbers before
"""
_PLACES = """
    Output | output
    From   | start | count
    To     | end   | count
    Label  | label
    Form   | form
           | tag
"""
_READING = (
    "An original is in an output where some words have the digest of the original or of a variant. Case, diacritics "
    "and punctuation do not matter, and digits may be spoken. With one letter another, words that a dictionary knows "
    "do not count. What is a common word, or made of common ones, and initials alone are counted apart: they occur in "
    "any text. A rare name may still be there by chance, or because the prompt held it: compare with a model that "
    "never saw the data. Only what the vault keeps is looked for: what was suppressed, masked or hashed is not in it."
)


def _make_nonzero_is_bad(path: str) -> Callable[[Values], Tone]:
    """Return a function that chooses the colour of a count: bad unless it is 0."""
    return lambda result: "bad" if result.get_value(path) else "good"


def _list_label_leaks(result: Values) -> list[Plain]:
    lines = [
        *result.list_rows("labels"),
        result.get_part("direct"),
        {**result.get_part("all"), "mark": "chosen"},
    ]
    return [row if row.get("originals") else {**row, "leaked": None, "outputs": None} for row in lines]


def _count_leaks_by_form(result: Values) -> list[Plain]:
    counts = result.get_part("all.kinds")
    return [{"name": name, "count": counts[form]} for form, name in _FORMS.items() if counts.get(form)]


def _list_leak_places(result: Values) -> list[Plain]:
    return [
        {**row, "form": _FORMS.get(str(row.get("kind")), ""), "tag": _tag_leak(row)}
        for row in result.list_rows("places")
    ]


def _tag_leak(row: Values) -> Tag:
    is_separate = row.get("common") or row.get("kind") == "initials"
    return Tag("counted apart", "muted") if is_separate else Tag("leak", "bad")


def _describe_unlisted_leaks(result: Values) -> str:
    more = int(result.get("found") or 0) - len(result.list_rows("places"))
    return f"{more:,} more are not listed." if more > 0 else ""


generations_section = SectionSpec(
    "Originals in generations",
    "generations",
    "all",
    (
        Paragraph(_LEAD, "lead"),
        KeyFigures(
            _GENERATIONS_FIGURES,
            {
                "Outputs with an original": _make_nonzero_is_bad("all.occurrences"),
                "With one that identifies alone": _make_nonzero_is_bad("direct.occurrences"),
            },
        ),
        Warn(_NONE, when=lambda result: not result.get_value("all.occurrences")),
        ValueTable("By label", _list_label_leaks, _LABELS, shown=_SHOWN),
        ValueTable(
            "In which form",
            _count_leaks_by_form,
            "Form | name \n Places | count | count",
            lambda result: "" if _count_leaks_by_form(result) else "None.",
        ),
        ValueTable("Where", _list_leak_places, _PLACES, _describe_unlisted_leaks, _SHOWN),
        Folded("How to read this", (Paragraph(_READING),)),
    ),
)
