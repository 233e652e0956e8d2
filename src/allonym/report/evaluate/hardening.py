"""Hardening in a report: its effect, and the curve of risk against what it removes."""

from __future__ import annotations

from collections.abc import Iterator

from allonym.report.page import Block
from allonym.report.plots import Axis, Chart, Point, Series
from allonym.report.sections import Folded, KeyFigures, Paragraph, SectionSpec, ValueTable, Warn
from allonym.report.values import Plain, has_estimate, list_rows, read_estimate, read_part

_LEAD = (
    "Words that give the subject away were made general or removed, until the subject is not among the attacker's "
    "{among} any more: {generalised:,} were replaced by general words, {suppressed:,} were removed."
)
_READING = (
    "The attacker chose the words: linear models of words, pairs of words and long parts of words, learnt from other "
    "original texts about the same subjects. The judge had no say: a linear model of words and of 3 to 5 characters, "
    "learnt in other folds. Words gone is 1 - words left / words of the original, placeholders not counted (P3 "
    "4.1.3.1); a general word such as 'thing', or 'they' in place of a pronoun's placeholder, counts as left there, "
    "and as half gone in the other count. Both know originals only."
)
_ADAPTIVE = (
    "Attacker and judge know original texts only. Hardening brings in words of its own, such as 'they', which mislead "
    "whoever knows originals only: a part of what the judge no longer finds is not gone. Who hardens their own texts "
    "by the same means, or holds others of this release, is not misled: of the released texts of others such an "
    "intruder learns to find {released.after:share.1} (before hardening {released.before:share.1}). Judge a release by "
    "that number."
)
_STILL = "The attacker still finds the subject of {still_found:,} texts: words were used up, or a floor was hit."
_ADAPTIVE_FIGURE = "Found by an intruder who has other released texts"
_FIGURES = f"""
    Judge finds the subject | chosen.judge      | share.1  | among its {{among}}
    {_ADAPTIVE_FIGURE}      | released.after    | share.1  | among its {{among}}        | released.after
    Words gone              | chosen.weighted   | share.1  | general words as half gone
    Similarity              | chosen.similarity | number.3 | cosine with the original
"""
_BEFORE = {
    "Judge finds the subject": "levels.0.judge",
    _ADAPTIVE_FIGURE: "released.before.value",
    "Words gone": "levels.0.weighted",
    "Similarity": "levels.0.similarity",
}
_LEVEL = """
    Attacker finds           | attacker   | share.1
    Judge finds              | judge      | share.1
    Words gone               | removed    | share.1  | Placeholders not counted
    Gone, general words half | weighted   | share.1
    Similarity               | similarity | number.3 | Mean cosine with the original
"""


def _add_guesses_phrase(result: Plain) -> Plain:
    rank = int(result.get("rank") or 1)
    return {**result, "among": "first guess" if rank == 1 else f"first {rank} guesses"}


def _draw_lead(result: Plain) -> Iterator[Block]:
    values = _add_guesses_phrase(result)
    yield Paragraph(_LEAD, "lead").draw(values)
    yield KeyFigures(_FIGURES, before=_BEFORE).draw(values)


def _list_groups(result: Plain) -> list[Plain]:
    return [{**read_part(group, "chosen"), "name": name} for name, group in read_part(result, "groups").items()]


def _list_levels(result: Plain) -> list[Plain]:
    levels = [
        {**level, "lead": "" if level.get("lead") is None else f"{level['lead']:.2f}"}
        for level in list_rows(result, "levels")
    ]
    return [{**levels[0], "lead": "as anonymised"}, *levels[1:]]


def _draw_curve(result: Plain) -> Iterator[Block]:
    levels, chosen = list_rows(result, "levels")[1:], read_part(result, "chosen")
    series = []
    for slot, (name, title) in enumerate((("judge", "Judge"), ("attacker", "Attacker"))):
        points = (
            Point(
                read_estimate(level.get("weighted")).value,
                read_estimate(level.get(name)).value,
                f"lead {level.get('lead')}",
                (("Similarity", read_estimate(level.get("similarity"))),),
                "chosen" if level.get("lead") == chosen.get("lead") else "",
            )
            for level in levels
            if has_estimate(level.get(name))
        )
        series.append(Series(title, tuple(points), slot, "full"))
    yield Chart(
        "Risk against what is taken away",
        Axis("Words gone, general words as half", "share"),
        Axis("Subjects found", "share", 0),
        tuple(series),
        description="Share of texts whose subject is found at each level of hardening, against the words gone.",
        better="lower left",
    )


hardening_section = SectionSpec(
    "Hardening",
    "hardening",
    lambda result: result.get("levels") and result.get("chosen"),
    (
        _draw_lead,
        Warn(_ADAPTIVE, "warning", when="released.after"),
        Warn(_STILL, when="still_found"),
        _draw_curve,
        ValueTable("As released, group by group", _list_groups, f"Group | name \n {_LEVEL}", when="groups"),
        Folded("Every level of the curve", (ValueTable("", _list_levels, f"Lead | lead \n {_LEVEL}"),)),
        Folded("How to read this", (Paragraph(_READING),)),
    ),
)
