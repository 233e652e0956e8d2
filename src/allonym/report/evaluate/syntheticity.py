"""Syntheticity in a report: P4's Table 5 for one corpus, and the features that distinguish the versions."""

from __future__ import annotations

from collections.abc import Iterator

from allonym.report.page import Block, Notice
from allonym.report.sections import Folded, KeyFigures, Paragraph, SectionSpec, ValueTable
from allonym.report.values import Plain, has_estimate, missing_reason, read_part

_READING = (
    "A linear model learns from other texts of the corpus which version of a text is the pseudonymised one; "
    "both versions of a text are judged by a model that saw neither. Guessing reaches an accuracy and an F1 of "
    "50 %, and calling every text pseudonymised an F1 of 66.7 %. P4 (Table 5) reports F1 of 97 to 99 % for "
    "pseudonyms by named entity recognition and 75 % for a large language model, with another classifier on "
    "another corpus. Names that are frequent in the originals and absent from the other version are learnt as "
    "well, so a larger corpus is easier to tell apart."
)
_PAIRS = "{pairs:,} texts with both versions, in {folds} folds."
_UNCHANGED = "{unchanged:,} texts have not changed and are left out."
_FIGURES = """
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


def _list_kinds(result: Plain) -> list[tuple[str, float]]:
    kinds = ((name, float(share)) for name, share in read_part(result, "kinds").items())
    return sorted(kinds, key=lambda kind: (-kind[1], kind[0]))


def _explain_missing(result: Plain) -> Iterator[Block]:
    if not has_estimate(result["f1"]):
        yield Notice(f"Not measured: {missing_reason(result['f1']) or 'no value'}.")


syntheticity_section = SectionSpec(
    "Syntheticity",
    "syntheticity",
    lambda result: "f1" in result,
    (
        Paragraph("Whether a classifier recognises that names were replaced (P4, section 4.3).", "lead"),
        _explain_missing,
        KeyFigures(_FIGURES, when="f1"),
        Paragraph(_PAIRS, "muted", when="f1"),
        Paragraph(_UNCHANGED, "muted", when="unchanged"),
        ValueTable(
            "What gives it away",
            _list_kinds,
            "kind of feature | 0 \n share of the difference | 1 | share.1",
            "A tag is a placeholder where no pseudonym was found.",
            when="kinds",
        ),
        ValueTable("The features that tell most", "signs", _SIGNS, shown=20, texts=True, when="signs"),
        Folded("How to read this", (Paragraph(_READING),), when="f1"),
    ),
)
