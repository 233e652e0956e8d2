"""``allonym evaluate intruder``: does record linkage identify the subjects of texts, before and after?"""

from __future__ import annotations

from pathlib import Path

import click

from allonym.cli.evaluate.options import (
    Output,
    Source,
    output_options,
    replace_hard_spaces,
    section_page,
    seed_option,
    source_options,
)
from allonym.cli.terminal import print_note, print_table
from allonym.errors import DataError

FEATURES = ("words", "characters", "both", "encoder", "all")
_FILE = click.Path(exists=True, path_type=Path)

subject_option = click.option(
    "--subject", required=True, metavar="KEY", help="Metadata field with the subject of each text."
)
group_option = click.option(
    "--group",
    metavar="KEY",
    help="Metadata field, such as the fame class, with groups; the intruder guesses within the text's group.",
)
background_option = click.option(
    "--background",
    type=_FILE,
    metavar="FILE",
    help="Texts with KEY for the intruder to learn from, instead of other texts of ORIGINAL.",
)
features_option = click.option(
    "--features",
    type=click.Choice(FEATURES),
    default="both",
    show_default=True,
    help="Features of the intruder; encoder and all take seconds per hundred texts.",
)


@click.command(short_help="Measure how often an offline intruder identifies subjects.")
@source_options
@subject_option
@group_option
@background_option
@features_option
@click.option(
    "--knows",
    type=click.Choice(["original", "anonymised", "both"]),
    default="original",
    show_default=True,
    help="Version of other people's texts that the intruder has learnt from.",
)
@click.option(
    "--folds", type=click.IntRange(0), default=5, show_default=True, help="Folds of the corpus; 0: leave one text out."
)
@seed_option
@output_options
def intruder(
    source: Source,
    subject: str,
    group: str | None,
    background: Path | None,
    features: str,
    knows: str,
    folds: int,
    seed: int,
    output: Output,
) -> None:
    """Link each text to the subject with the most similar other texts, before and after anonymisation.

    The intruder has learnt from other texts about the same subjects: those of ORIGINAL, or of --background. It never
    learns from a text that it judges, nor from a copy of it.

    \b
    Examples:
      allonym evaluate intruder original.jsonl safe.jsonl --subject person --group fame
      allonym evaluate intruder original.jsonl safe.jsonl --subject person --knows anonymised --report linkage.html
      allonym evaluate intruder original.jsonl safe.jsonl --subject person --background wikipedia.jsonl
    """
    from allonym.evaluate.intruder import reidentification
    from allonym.report.evaluate.linkage import linkage_section

    output.check([*source.paths, *([background] if background else [])])
    pairs = source.read()
    groups = pairs.labels(group) if group else None
    background_texts = read_background(background, subject, source) if background else None
    with output.progress("linkage") as advance:
        result = reidentification(
            pairs.original,
            pairs.anonymised,
            pairs.labels(subject),
            groups=groups,
            background=background_texts,
            features=features,
            knows=knows,  # type: ignore[arg-type]
            folds=folds,
            ids=pairs.ids,
            seed=seed,
            advance=advance,
        )
    data = result.to_dict(output.with_text)
    output.write(
        {"linkage": data}, lambda: section_page("Record linkage", [linkage_section(data, texts=output.with_text)])
    )
    from allonym.report.numbers import format_cell

    rows = []
    for row in (*result.groups, result.all):
        shares = [replace_hard_spaces(format_cell(e, "share").line) for e in (row.before, row.after, row.change)]
        blind, ranks = (
            replace_hard_spaces(format_cell(row.chance, "share").text),
            replace_hard_spaces(format_cell(row.reciprocal[1], "number", 3).text),
        )
        p = "" if row.test is None else replace_hard_spaces(format_cell(row.test.exact, "p").text)
        rows.append([row.name or "all texts", f"{row.texts:,}", f"{row.subjects:,}", *shares, blind, ranks, p])
    head = [group or "", "texts", "subjects", "before", "after", "change", "blind", "1/rank", "p"]
    print_table(head, rows, right=(1, 2, 6, 7, 8))
    if result.unjudged and not output.quiet:
        print_note(f"{result.unjudged:,} texts were not judged: no other text is about their subject")


def read_background(path: Path, subject: str, source: Source) -> list[tuple[str, str]]:
    """Read the intruder's texts with their subjects.

    Raises:
        DataError: a text has no subject, or there are no texts.
    """
    from allonym.evaluate.reading import get_metadata_value
    from allonym.files import read_documents

    documents = list(read_documents(path, fields=source.field or ("text",), named=False))
    pairs = [(d.text, get_metadata_value(d.meta, subject)) for d in documents]
    lacking = [i for i, (_, name) in enumerate(pairs, 1) if not name]
    if lacking or not pairs:
        shortfall = (
            f"{len(lacking)} of {len(pairs)} have none, the first is number {lacking[0]}" if lacking else "got none"
        )
        raise DataError(f"{path}: texts with {subject!r} are required; {shortfall}")
    return pairs
