"""``allonym harden``: generalise anonymised texts until an intruder no longer identifies their subjects."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from allonym.cli.evaluate import options
from allonym.cli.evaluate.options import Output, Source
from allonym.cli.options import NEW_FILE, POSITIVE, SHARE, flag, option
from allonym.cli.outputs import check_outputs
from allonym.cli.terminal import format_json_line
from allonym.errors import DataError

if TYPE_CHECKING:
    from allonym.document import Document
    from allonym.evaluate.hardening import Hardening
    from allonym.evaluate.pairs import Pairs
    from allonym.plan import Plan


@click.command(short_help="Generalise words that still identify the subject of a text.")
@options.source_options
@option("--subject KEY", "Metadata field with the subject of each text.", required=True)
@option("--group KEY", "Metadata field with a group that the intruder knows; it guesses within this group.")
@option(
    "-o, --output, --out OUT",
    "The hardened texts, in the format of ANONYMISED.",
    name="target",
    type=click.Path(path_type=Path),
)
@option("--rank K", "Harden until the subject ranks worse than K.", type=POSITIVE, default=1)
@option(
    "--lead X",
    "Stop at this lead of the subject's score over its best rival; below 0: a margin.",
    type=float,
    default=0.0,
)
@option("--most-removed SHARE", "Largest share of a text's words to remove; generalised words count half.", type=SHARE)
@option("--least-similar COSINE", "Least similarity of a text to its original.", type=click.FloatRange(-1, 1))
@option("--plan FILE", "One plan per text, from ANONYMISED to OUT, as JSON lines.", type=NEW_FILE)
@flag("--originals", "With --plan: include the originals, so that the changes can be undone.")
@options.seed_option
@options.output_options
def harden(
    source: Source,
    subject: str,
    group: str | None,
    target: Path | None,
    plan: Path | None,
    originals: bool,
    output: Output,
    **settings: Any,
) -> None:
    """Harden ANONYMISED against an intruder who knows other original texts about the same subjects.

    Words that point to the subject, even soft ones such as "ginger", are generalised or else removed until the
    intruder ranks the subject worse than K. For English texts.

    That intruder and the judge have learnt from originals only, and generalised words ("they") partly mislead them.
    Rely on the line "Found by an intruder who has other released texts": that one has learnt from hardened texts of
    others.

    \b
    Examples:
      allonym harden original.jsonl safe.jsonl --subject subject -o hard.jsonl
      allonym harden original/ safe/ --metadata who.csv --subject subject --report hardening.html -o hard/
      allonym harden study.jsonl --anonymised-field safe --subject subject --group class --json numbers.json
    """
    if originals and plan is None:
        raise click.UsageError("--originals requires --plan")
    if target is None and plan is None and not output.paths:
        raise click.UsageError("an output is required: -o OUT, --plan, --report or --json")
    outputs = [path for path in (target, plan) if path is not None]
    _check_output_files(source, outputs, output.overwrite)
    output.check_writable(*source.paths, *outputs)
    from allonym.evaluate.hardening import harden as measure

    pairs = source.read_pairs()
    subjects, groups = pairs.labels(subject), pairs.labels(group) if group else None
    with output.show_progress("hardening") as advance:
        result = measure(pairs.original, pairs.anonymised, subjects, groups=groups, advance=advance, **settings)
    if target is not None:
        _rewrite_source(source, pairs, [t.plan for t in result.texts], target, output.overwrite)
    if plan is not None:
        _write_plans(pairs, result, plan, originals)
    output.write_measure("hardening", result.to_dict())


def _check_output_files(source: Source, outputs: Sequence[Path], overwrite: bool) -> None:
    """Raise if an output exists, is named twice, is or lies in an input, or cannot be written."""
    from allonym.files.items import check_targets_free

    check_outputs(outputs, source.paths, overwrite=True)
    check_targets_free([p for p in outputs if not p.is_dir()], [], overwrite)


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

    def rewrite_parts(number: int, document: Document) -> tuple[str, ...] | None:
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
        starts = accumulate((len(piece) + 1 for piece in pieces), initial=0)
        places = [(start, start + len(piece)) for start, piece in zip(starts, pieces, strict=False)]
        return tuple(apply_edits_to_parts(text, places, new_text.edits))

    rewrite_path(path, target, rewrite_parts, fields=fields or None, format=source.format, overwrite=overwrite)


def _write_plans(pairs: Pairs, result: Hardening, path: Path, originals: bool) -> None:
    from allonym.files.output import LinesFile

    lines = LinesFile(path, private=originals)
    for name, text in zip(pairs.ids, result.texts, strict=True):
        lines.write(format_json_line({"id": name, **text.plan.to_dict(originals=originals)}))
    lines.finish()
