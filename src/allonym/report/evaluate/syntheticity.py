"""Syntheticity in a report: P4's Table 5 for one corpus, and what tells the versions apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from allonym.report.page import Block, Column, Details, Figure, Figures, Notice, Row, Section, Table, Text
from allonym.report.swap.given import estimate, known, part, rows

_SHOWN = 20
_READING = (
    "A linear model learns from other texts of the corpus which version of a text is the pseudonymised one; "
    "both versions of a text are judged by a model that saw neither. Guessing reaches an accuracy and an F1 of "
    "50 %, and calling every text pseudonymised an F1 of 66.7 %. P4 (Table 5) reports F1 of 97 to 99 % for "
    "pseudonyms by named entity recognition and 75 % for a large language model, with another classifier on "
    "another corpus. Names that are often in the originals and never in the other version are learnt as well, "
    "so a larger corpus is easier to tell apart."
)


def syntheticity_section(result: Mapping[str, Any], *, texts: bool = False) -> Section | None:
    """The section of :meth:`allonym.evaluate.Syntheticity.to_dict`; None where there is none.

    Args:
        result: plain values.
        texts: show the features that tell the versions apart, where the values hold them: they are words of the texts.
    """
    if "f1" not in result:
        return None
    blocks: list[Block] = [Text("Whether a reader's machine sees that names were replaced (P4, section 4.3).", "lead")]
    if not known(result["f1"]):
        reason = str(part(result, "f1").get("method", "")).removeprefix("none: ")
        blocks.append(Notice(f"Not measured: {reason or 'no value'}."))
        return Section("Syntheticity", tuple(blocks), "syntheticity")
    blocks.append(
        Figures(
            (
                Figure("F1", estimate(result["f1"]), "of “pseudonymised”; always saying so: 66.7 %", "share", 1),
                Figure("Precision", estimate(result.get("precision")), "", "share", 1),
                Figure("Recall", estimate(result.get("recall")), "", "share", 1),
                Figure("Accuracy", estimate(result.get("accuracy")), "chance: 50 %", "share", 1),
                Figure(
                    "Told apart", estimate(result.get("told_apart")), "holding both versions; chance: 50 %", "share", 1
                ),
            )
        )
    )
    pairs, same = int(result.get("pairs") or 0), int(result.get("unchanged") or 0)
    said = f"{pairs:,} texts with both versions, in {int(result.get('folds') or 0)} folds."
    blocks.append(Text(f"{said} {same:,} texts have not changed and are left out." if same else said, "muted"))
    if kinds := part(result, "kinds"):
        order = sorted(kinds, key=lambda k: (-float(kinds[k]), k))
        blocks.append(
            Table(
                "What gives it away",
                (Column("kind of feature"), Column("share of the difference", "share", 1)),
                tuple(Row((k, float(kinds[k]))) for k in order),
                "A tag is a placeholder where no pseudonym was found.",
            )
        )
    if texts and (signs := rows(result, "signs")):
        blocks.append(
            Table(
                "The features that tell most",
                (Column("feature"), Column("speaks for"), Column("weight"), Column("pairs")),
                tuple(
                    Row((str(s.get("term", "")), str(s.get("side", "")), f"{float(s.get('weight') or 0):.3f}",
                         f"{int(s.get('pairs') or 0):,}"))
                    for s in signs
                ),
                shown=_SHOWN,
            )
        )  # fmt: skip
    blocks.append(Details("How to read this", (Text(_READING),)))
    return Section("Syntheticity", tuple(blocks), "syntheticity")
