"""Judgements by people, or by a language model in their place, in a report (P3 3.2.3, Tables 3 to 8)."""

from __future__ import annotations

from collections.abc import Iterator

from allonym.report.evaluate.intruders import RATES, SUBJECTS
from allonym.report.page import Block, Matrix, Square
from allonym.report.sections import Folded, KeyFigures, Paragraph, SectionSpec, SideBySide, ValueTable, Warn, draw_parts
from allonym.report.values import Plain, read_part, read_path

_METHOD = (
    "A guess counts by the cosine of its characters with those of the true name; the judgements of a text are "
    "averaged, and the text counts as identified where that reaches {cut:g}. Whoever names nobody has a similarity of "
    "0."
)
_PEOPLE = "{judges:,} judge{judges:s} made {judgements:,} judgements. " + _METHOD
_MODEL = "A language model made {judgements:,} judgements. " + _METHOD
_FIGURES = """
    Identified           | results.all.identified | share.2 | share of the texts
    Found by any judge   | found_by_any | share.2  | of the texts, by at least one judge, without averaging
    Claims that are true | trusted      | share.1  | of those who said yes
    Judges agree         | alike        | number.2 | Krippendorff's alpha: 1 always, 0 by chance
"""
_TRUTH = {
    "per_text": "judgements a text, mean and SD",
    "agreement": "share of judgements that agree",
    "chance_corrected": "Cohen's kappa",
    "by_chance": "right by mere likeness of names",
}
_TRUTH_NOTE = (
    "P3 reports the share; where few are found it is high by chance, kappa is not. The last line says how often a "
    "guess passes for another subject, since only the characters of names are counted."
)
_SENSITIVE = "The following words are from what people wrote, and may identify somebody."


def _are_judges_people(result: Plain) -> bool:
    return bool(read_path(result, "results.intruder") == "people")


def _draw_results(result: Plain) -> Iterator[Block]:
    yield from draw_parts((*RATES, SUBJECTS), read_part(result, "results"))


def _count_claims(result: Plain) -> int:
    return sum(int(count) for count in read_part(result, "claims").values())


def _draw_claims(result: Plain) -> Iterator[Block]:
    claims, total = read_part(result, "claims"), _count_claims(result)

    def draw_line(name: str) -> tuple[Square, ...]:
        counts = (int(claims.get(f"{name}_{truth}") or 0) for truth in ("right", "wrong"))
        return tuple(Square(count, count / total) for count in counts)

    lines = (("said yes", draw_line("claimed")), ("said no", draw_line("denied")))
    yield Matrix("What judges said of themselves", ("found", "not found"), lines, "judgements", "count")


def _list_truth(result: Plain) -> list[Plain]:
    return [{"name": name, "value": result.get(key)} for key, name in _TRUTH.items()]


def _list_terms(result: Plain) -> list[Plain]:
    return [{"name": name, "terms": [term for term, _ in pairs]} for name, pairs in result.items()]


_NGRAMS = "N-gram | 0 \n Times | 1 | count"
people_section = SectionSpec(
    lambda result: f"{'People who' if _are_judges_people(result) else 'A language model that'} tried to identify",
    lambda result: "people" if _are_judges_people(result) else "language-model",
    "results.all",
    (
        Paragraph(_PEOPLE, when=_are_judges_people),
        Paragraph(_MODEL, when=lambda result: not _are_judges_people(result)),
        KeyFigures(_FIGURES),
        Warn("{unread:,} texts have no judgement and are in no rate.", "warning", when="unread"),
        _draw_results,
        SideBySide(
            (
                _draw_claims,
                ValueTable("Said and true", _list_truth, "What | name \n Value | value | number.3", _TRUTH_NOTE),
            ),
            when=_count_claims,
        ),
        Warn(_SENSITIVE, "sensitive", texts=True, when="terms"),
        SideBySide(
            (
                ValueTable("What revealed the person", "terms.revealed_all", _NGRAMS),
                ValueTable("What was learnt where nobody was found", "terms.kept_all", _NGRAMS),
            ),
            texts=True,
            when="terms",
        ),
        *(
            Folded(
                title,
                (ValueTable(title, _list_terms, "Subject | name \n Most frequent n-grams | terms"),),
                f"terms.{name}",
                texts=True,
                when=f"terms.{name}",
            )
            for name, title in (
                ("revealed", "What revealed each subject"),
                ("kept", "What was learnt of each subject"),
            )
        ),
    ),
)
