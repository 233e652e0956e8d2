"""``allonym harden``: generalise anonymised texts until an intruder no longer identifies their subjects."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from allonym.cli.evaluate.options import (
    Output,
    Source,
    check_outputs,
    output_options,
    section_page,
    seed_option,
    show_estimates,
    source_options,
)
from allonym.cli.terminal import json_line, print_note
from allonym.errors import DataError

if TYPE_CHECKING:
    from allonym.document import Document
    from allonym.evaluate.harden import Hardening
    from allonym.evaluate.reading import Pairs
    from allonym.plan import Plan

_OUT = click.Path(dir_okay=False, path_type=Path)


@click.command(short_help="Generalise words that still identify the subject of a text.")
@source_options
@click.option("--subject", required=True, metavar="KEY", help="Metadata field with the subject of each text.")
@click.option(
    "--within", metavar="KEY", help="Metadata field with a group that the intruder knows; it guesses within this group."
)
@click.option("-o", "--output", "--out", "target", type=click.Path(path_type=Path), metavar="OUT",
              help="The hardened texts, in the format of ANONYMISED.")  # fmt: skip
@click.option("--rank", type=click.IntRange(1), default=1, show_default=True, metavar="K",
              help="Harden until the subject ranks worse than K.")  # fmt: skip
@click.option("--lead", type=float, default=0.0, show_default=True, metavar="X",
              help="Stop at this lead of the subject's score over its best rival; below 0: a margin.")  # fmt: skip
@click.option("--most-removed", type=click.FloatRange(0, 1), metavar="SHARE",
              help="Largest share of a text's words to remove; generalised words count half.")  # fmt: skip
@click.option("--least-similar", type=click.FloatRange(-1, 1), metavar="COSINE",
              help="Least similarity of a text to its original.")  # fmt: skip
@click.option("--plan", type=_OUT, metavar="FILE", help="One plan per text, from ANONYMISED to OUT, as JSON lines.")
@click.option(
    "--originals", is_flag=True, help="With --plan: include the originals, so that the changes can be undone."
)
@seed_option
@output_options
def harden(
    source: Source,
    subject: str,
    within: str | None,
    target: Path | None,
    rank: int,
    lead: float,
    most_removed: float | None,
    least_similar: float | None,
    plan: Path | None,
    originals: bool,
    seed: int,
    output: Output,
) -> None:
    """Harden ANONYMISED against an intruder who knows other original texts about the same subjects.

    Words that point to the subject, even soft ones such as "ginger", are generalised or else removed until the
    intruder ranks the subject worse than K. For English texts.

    That intruder and the judge have learnt from originals only, and generalised words ("they") partly mislead them.
    Rely on the line "one with released texts": an intruder who has learnt from hardened texts of others.

    \b
    Examples:
      allonym harden original.jsonl safe.jsonl --subject subject -o hard.jsonl
      allonym harden original/ safe/ --metadata who.csv --subject subject --report hardening.html -o hard/
      allonym harden study.jsonl --anonymised-field safe --subject subject --within class --json numbers.json
    """
    if originals and plan is None:
        raise click.UsageError("--originals requires --plan")
    if target is None and plan is None and not output.paths:
        raise click.UsageError("an output is required: -o OUT, --plan, --report or --json")
    outputs = [path for path in (target, plan) if path is not None]
    _check_free(source, outputs, output.overwrite)
    output.check((*source.paths, *outputs))
    from allonym.evaluate.harden import harden as hardened
    from allonym.report.evaluate.hardening import hardening_section

    pairs = source.read()
    with output.progress("hardening") as advance:
        result = hardened(
            pairs.original,
            pairs.anonymised,
            pairs.labels(subject),
            groups=pairs.labels(within) if within else None,
            rank=rank,
            lead=lead,
            most_removed=most_removed,
            least_similar=least_similar,
            seed=seed,
            advance=advance,
        )
    if target is not None:
        _rewrite_source(source, pairs, [t.plan for t in result.texts], target, output.overwrite)
    if plan is not None:
        _write_plans(pairs, result, plan, originals)
    data = result.to_dict()
    output.write({"hardening": data}, lambda: section_page("Hardening", [hardening_section(data)]))
    before, after = result.levels[0], result.chosen
    show_estimates(
        [
            ("judge identifies, before", before.judge, "share"),
            ("judge identifies, after", after.judge, "share"),
            ("intruder identifies, after", after.attacker, "share"),
            ("one with released texts, before", result.released[0], "share"),
            ("one with released texts, after", result.released[1], "share"),
            ("words removed, before", before.removed, "share"),
            ("words removed, after", after.removed, "share"),
            ("general words as half", after.weighted, "share"),
            ("similarity, before", before.similarity),
            ("similarity, after", after.similarity),
        ]
    )
    if result.still_found and not output.quiet:
        print_note(
            f"the intruder still identifies the subjects of {result.still_found:,} of {len(result.texts):,} texts"
        )


def _check_free(source: Source, outputs: Sequence[Path], overwrite: bool) -> None:
    """Raise if an output exists, is named twice, is or lies in an input, or cannot be written."""
    from allonym.files.items import check_free

    check_outputs(outputs, source.paths, overwrite=True)
    check_free([p for p in outputs if not p.is_dir()], [], overwrite)


def _rewrite_source(source: Source, pairs: Pairs, plans: Sequence[Plan], target: Path, overwrite: bool) -> None:
    """Write the anonymised source again with the plans' edits."""
    from allonym.files import read_documents
    from allonym.files.rewrite import UNCOUNTED, rewrite_path
    from allonym.plan import apply_edits_to_parts

    path = source.anonymised or source.original
    fields = source.anonymised_field or source.field
    if not fields and path.is_file():
        documents = list(read_documents(path, format=source.format, named=False))
        if all(isinstance(d.meta.get("text"), str) for d in documents):
            fields = ("text",)
    waiting: dict[str, list[Plan]] = {}
    for text, plan in zip(pairs.anonymised, plans, strict=True):
        waiting.setdefault(text, []).append(plan)

    def parts_of(number: int, document: Document) -> tuple[str, ...] | None:
        if number == UNCOUNTED:
            return document.part_texts()
        pieces = [document.text] if document.turns else list(document.part_texts())
        ready = waiting.get(text := "\n".join(pieces))
        if not ready:
            raise DataError(
                f"{path}: document {number + 1} differs from what was read; name the text's field by --anonymised-field"
            )
        new_text = ready.pop(0) if len(ready) > 1 else ready[0]
        if document.turns:
            return tuple(apply_edits_to_parts(text, document.parts or ((0, len(text)),), new_text.edits))
        places, position = [], 0
        for piece in pieces:
            places.append((position, position + len(piece)))
            position += len(piece) + 1
        return tuple(apply_edits_to_parts(text, places, new_text.edits))

    rewrite_path(path, target, parts_of, fields=fields or None, format=source.format, overwrite=overwrite)


def _write_plans(pairs: Pairs, result: Hardening, path: Path, originals: bool) -> None:
    from allonym.files.output import Lines

    lines = Lines(path, private=originals)
    for name, text in zip(pairs.ids, result.texts, strict=True):
        lines.write(json_line({"id": name, **text.plan.to_dict(originals=originals)}))
    lines.finish()
