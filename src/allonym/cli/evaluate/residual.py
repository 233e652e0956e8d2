"""``allonym evaluate residual``: scores for identifiers that annotators marked as missed (P2)."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from allonym.cli.evaluate.options import (
    Output,
    check_outputs,
    output_options,
    replace_hard_spaces,
    section_page,
    seed_option,
)
from allonym.cli.options import format_option
from allonym.cli.terminal import print_note, print_table
from allonym.errors import UsageError

if TYPE_CHECKING:
    from allonym.evaluate.residual import ResidualRisk, Row

_OUT = click.Path(dir_okay=False, path_type=Path)
QUEUES = (".jsonl", ".csv")


def parse_scores(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, int]:
    """Parse ``URL=1`` as a tag and its score."""
    out = {}
    for value in values:
        tag, _, number = value.partition("=")
        if not tag or not number.strip().isdigit():
            raise click.BadParameter("TAG=SCORE is required, such as URL=1", ctx=ctx, param=param)
        out[tag.strip().upper()] = int(number)
    return out


@click.command(short_help="Score the identifiers that annotators marked as missed (P2).")
@click.argument("annotated", type=click.Path(exists=True, path_type=Path))
@click.option("--by", default="", metavar="FIELD", help="Metadata field for the rows of the table, such as context.")
@click.option(
    "--limit",
    type=click.FloatRange(0),
    default=5.0,
    show_default=True,
    help="Greatest acceptable score of a conversation.",
)
@click.option(
    "--queue", type=_OUT, metavar="FILE", help="Write the conversations above the limit, worst first: .jsonl or .csv."
)
@click.option(
    "--email-partial", type=click.Choice(["text", "table"]), default="text", show_default=True,
    help="Score of a partly missed e-mail address: 1 (text) or 2 (table: half of P2's Table 6).",
)  # fmt: skip
@click.option("--score", "scores", multiple=True, callback=parse_scores, metavar="TAG=SCORE",
              help="Set the score of a tag, such as URL=1 or DATE_PARTIAL=0. Repeatable.")  # fmt: skip
@click.option(
    "--proposals", type=click.Choice(["refuse", "count", "drop"]), default="refuse", show_default=True,
    help="Treatment of marks that no person has confirmed; count gives an upper bound.",
)  # fmt: skip
@click.option("--field", multiple=True, metavar="NAME", help="Column or dotted path of the text. Repeatable.")
@format_option
@click.option("--metadata", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
              help="Table with a row per conversation: a column id or file, and FIELD.")  # fmt: skip
@seed_option
@output_options
def residual(
    annotated: Path,
    by: str,
    limit: float,
    queue: Path | None,
    email_partial: str,
    scores: dict[str, int],
    proposals: str,
    field: tuple[str, ...],
    format: str | None,
    metadata: Path | None,
    seed: int,
    output: Output,
) -> None:
    """Score the missed identifiers marked in ANNOTATED conversations: P2's Table 4, its criterion, a review queue.

    Marks are in the text, as (Green)[MISSED_PERSON_NAME_PARTIAL], or in a list "marks" beside it; see
    `allonym evaluate second-reading`. The exit code is 0 whether the criterion holds or not.

    \b
    Examples:
      allonym evaluate residual annotated.jsonl --by context
      allonym evaluate residual annotated.jsonl --queue review.jsonl --report risk.html
      allonym evaluate residual annotated.jsonl --email-partial table --score URL=1
    """
    from allonym.evaluate.annotated import list_surfaces, read_annotated
    from allonym.evaluate.residual import residual_risk
    from allonym.evaluate.scoring import Scoring

    read = [annotated, *([metadata] if metadata else [])]
    output.check(read)
    if queue is not None:
        check_queue(queue, read, output)
    scoring = Scoring(email_partial, scores)
    conversations = read_annotated(annotated, field=field, format=format, metadata=metadata)
    with output.progress("scores") as advance:
        result = residual_risk(
            conversations, by=by, limit=limit, scoring=scoring, proposals=proposals, seed=seed, advance=advance
        )
    data = result.to_dict()
    if output.with_text:
        conversation_of = {c.id: c for c in conversations}
        for row in data["queue"]:
            row["missed"] = list_surfaces(conversation_of[row["id"]])
    show_residual(result)

    def make_page() -> Any:
        from allonym.report.evaluate.residual import residual_section

        return section_page("Residual risk", [residual_section(data, texts=output.with_text)])

    output.write({"residual": data}, make_page, {} if queue is None else {queue: format_queue(result, queue)})


def check_queue(queue: Path, read: Sequence[Path], output: Output) -> None:
    """Raise if the queue cannot be written."""
    if queue.suffix.lower() not in QUEUES:
        raise UsageError(f"--queue must end in {' or '.join(QUEUES)}, got {queue.suffix or 'no ending'}")
    check_outputs([*output.paths, queue], read, output.overwrite)


def format_queue(result: ResidualRisk, path: Path) -> str:
    """Return the review queue in the format of the file's suffix, without any text."""
    rows = []
    for conversation, group in result.queue:
        tags = ", ".join(f"{i.tag} ({i.score})" for i in conversation.items if i.score)
        rows.append(
            {
                "id": conversation.id,
                "group": group,
                "score": conversation.score,
                "direct": conversation.direct,
                "missed": tags,
            }
        )
    out = io.StringIO(newline="")
    if path.suffix.lower() == ".csv":
        writer = csv.DictWriter(out, ("id", "group", "score", "direct", "missed"), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    else:
        out.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return out.getvalue()


def write_file(path: Path, text: str, *, private: bool = False) -> None:
    """Write a file atomically; ``private``: readable only by its owner."""
    from allonym.files.output import PartFile

    part = PartFile(path)
    try:
        if private:
            part.path.chmod(0o600)
        part.write(text.encode("utf-8", "backslashreplace"))
        part.finish()
    except BaseException:
        part.close(remove=True)
        raise


def show_residual(result: ResidualRisk) -> None:
    """Print Table 4 and the criterion."""
    rows = [_format_cells(row) for row in (*result.groups, result.total)]
    limit = f"{result.limit:g}"
    head = [result.by or "", "count", "mean", "SD", "P95", "max", "mean+SD", f"< {limit}", f"share > {limit}"]
    print_table(head, rows, right=(1, 2, 3, 4, 5, 6, 8))
    total = result.total
    if total.passes is not None:
        word = "holds" if total.passes else "does not hold"
        click.echo(f"\nmean + SD < {limit} (P2's criterion) {word}.")
    if total.normality.off:
        from allonym.report.numbers import format_number

        click.echo(
            f"Scores are not normally distributed, as P2 assumes ({total.normality.test}, p = "
            f"{replace_hard_spaces(format_number(total.normality.p.value, 'p'))}): a normal distribution would have "
            f"{total.normality.implied.value:.1%} above {limit}; {total.above.value:.1%} are."
        )
    if result.other is not None:
        click.echo(f"With --email-partial {result.other[0]}, mean + SD is {result.other[1].value:.2f}.")
    if unconfirmed := sum(s.unconfirmed for s, _ in result.conversations):
        print_note(f"{unconfirmed:,} marks are proposals that no person has confirmed: the score is an upper bound")


def _format_cells(row: Row) -> list[str]:
    numbers = [f"{e.value:.{d}f}" if e.value == e.value else "-" for e, d in
               ((row.mean, 2), (row.sd, 2), (row.p95, 1), (row.max, 0), (row.bound, 2))]  # fmt: skip
    verdict = "-" if row.passes is None else "yes" if row.passes else "no"
    above = f"{row.above.value:.1%} [{row.above.low:.1%}, {row.above.high:.1%}]"
    return [row.name, f"{row.count:,}", *numbers, verdict, above]
