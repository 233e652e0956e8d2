"""``allonym evaluate second-reading``: propose identifiers that anonymisation may have missed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from allonym.cli.evaluate.options import check_outputs
from allonym.cli.evaluate.residual import write_file
from allonym.cli.options import format_option
from allonym.cli.progress import show_stages
from allonym.cli.terminal import print_note, print_table


@click.command("second-reading", short_help="Propose missed identifiers for a person to confirm.")
@click.argument("anonymised", type=click.Path(exists=True, path_type=Path))
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="File for the conversations with proposed marks, as JSON Lines.")  # fmt: skip
@click.option("--original", type=click.Path(exists=True, path_type=Path), metavar="PATH",
              help="Original texts: only words that also occur there are proposed. Needed if names became "
              "pseudonyms.")  # fmt: skip
@click.option("--notation", is_flag=True, help="Write the marks in the text, as (Green)[MISSED_PERSON_NAME_PARTIAL].")
@click.option("--point", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.02, show_default=True,
              help="Threshold of the tagger; a lower one proposes more.")  # fmt: skip
@click.option("--wide", is_flag=True, help="Also detect occupations, origins, works, events and all other labels.")
@click.option("-p", "--policy", metavar="NAME|FILE", help="Detect with this policy instead.")
@click.option("--capitals/--no-capitals", default=True, show_default=True,
              help="Also propose capitalised words in mid-sentence.")  # fmt: skip
@click.option("--field", multiple=True, metavar="NAME", help="Column or dotted path of the text. Repeatable.")
@click.option("--original-field", multiple=True, metavar="NAME", help="The same for --original.")
@format_option
@click.option("--overwrite", is_flag=True, help="Replace an existing output.")
@click.option("--quiet", "-q", is_flag=True, help="Show no progress and no notes.")
def second_reading(
    anonymised: Path,
    output: Path,
    original: Path | None,
    notation: bool,
    point: float,
    wide: bool,
    policy: str | None,
    capitals: bool,
    field: tuple[str, ...],
    original_field: tuple[str, ...],
    format: str | None,
    overwrite: bool,
    quiet: bool,
) -> None:
    """Detect again in ANONYMISED, with all detectors and very low thresholds, and mark what may have been missed.

    Many proposals are wrong, so a person decides. In JSON Lines, set "confirmed" of each mark from null to true or
    false. With --notation, delete the wrong marks. Then run: allonym evaluate residual FILE.

    \b
    Examples:
      allonym evaluate second-reading safe.jsonl -o marked.jsonl
      allonym evaluate second-reading safe.jsonl --original calls.jsonl -o marked.jsonl
      allonym evaluate residual marked.jsonl --proposals count
    """
    from allonym.evaluate.annotated import write_annotated_lines
    from allonym.evaluate.reading import read_pairs
    from allonym.evaluate.second_reading import second_reading as read_again

    if original_field and original is None:
        raise click.UsageError("--original-field requires --original")
    check_outputs([output], [anonymised, *([original] if original else [])], overwrite)
    pairs = read_pairs(anonymised, original or anonymised, field=field, anonymised_field=original_field or field,
                       format=format)  # fmt: skip
    with show_stages({}, enabled=not quiet) as advance:
        result = read_again(
            pairs.anonymised if original else None,
            pairs.original,
            ids=pairs.ids,
            meta=pairs.meta,
            policy=policy,
            point=point,
            wide=wide,
            capitals=capitals,
            advance=None if advance is None else lambda count, total: advance("reading", count, total),
        )
    write_file(output, "".join(line + "\n" for line in write_annotated_lines(result.conversations, notation=notation)),
               private=True)  # fmt: skip
    counts = Counter(m.tag for c in result.conversations for m in c.marks)
    conversations_by_tag = Counter(t for c in result.conversations for t in {m.tag for m in c.marks})
    if counts:
        print_table(
            ["proposed", "marks", "conversations"],
            [
                [t, f"{n:,}", f"{conversations_by_tag[t]:,}"]
                for t, n in sorted(counts.items(), key=lambda p: (-p[1], p[0]))
            ],
            right=(1, 2),
        )
    click.echo(f"{result.proposals:,} proposals in {len(result.conversations):,} conversations")
    if quiet:
        return
    print_note(str(output), label="written:")
    if original is None:
        print_note("without --original, pseudonyms look like missed names")


__all__ = ["second_reading"]
