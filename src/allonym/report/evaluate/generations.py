"""Originals in a model's outputs, in a report: how many, of which label, in which form, and what chance explains."""

from __future__ import annotations

from collections.abc import Callable

from allonym.report.page import Tag, Tone
from allonym.report.sections import Folded, KeyFigures, Paragraph, RowMark, SectionSpec, ValueTable, Warn
from allonym.report.values import Plain, list_rows, read_part, read_path

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
_FIGURES = """
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


def _make_count_colour(path: str) -> Callable[[Plain], Tone]:
    return lambda result: "bad" if read_path(result, path) else "good"


def _list_labels(result: Plain) -> list[Plain]:
    lines = [*list_rows(result, "labels"), read_part(result, "direct"), {**read_part(result, "all"), "total": True}]
    return [row if row.get("originals") else {**row, "leaked": None, "outputs": None} for row in lines]


def _mark_total(row: Plain) -> RowMark:
    return "chosen" if row.get("total") else ""


def _list_forms(result: Plain) -> list[Plain]:
    counts = read_part(result, "all.kinds")
    return [{"name": name, "count": counts[form]} for form, name in _FORMS.items() if counts.get(form)]


def _list_places(result: Plain) -> list[Plain]:
    return [
        {**row, "form": _FORMS.get(str(row.get("kind")), ""), "tag": _tag_place(row)}
        for row in list_rows(result, "places")
    ]


def _tag_place(row: Plain) -> Tag:
    is_separate = row.get("common") or row.get("kind") == "initials"
    return Tag("counted apart", "muted") if is_separate else Tag("leak", "bad")


def _describe_unlisted(result: Plain) -> str:
    more = int(result.get("found") or 0) - len(list_rows(result, "places"))
    return f"{more:,} more are not listed." if more > 0 else ""


generations_section = SectionSpec(
    "Originals in generations",
    "generations",
    "all",
    (
        Paragraph(_LEAD, "lead"),
        KeyFigures(
            _FIGURES,
            {
                "Outputs with an original": _make_count_colour("all.occurrences"),
                "With one that identifies alone": _make_count_colour("direct.occurrences"),
            },
        ),
        Warn(_NONE, when=lambda result: not read_path(result, "all.occurrences")),
        ValueTable("By label", _list_labels, _LABELS, shown=_SHOWN, mark=_mark_total),
        ValueTable(
            "In which form",
            _list_forms,
            "Form | name \n Places | count | count",
            lambda result: "" if _list_forms(result) else "None.",
        ),
        ValueTable("Where", _list_places, _PLACES, _describe_unlisted, _SHOWN),
        Folded("How to read this", (Paragraph(_READING),)),
    ),
)
