"""``allonym evaluate residual``, ``second-reading`` and ``red-team``: what anonymisation has missed (P2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from allonym.cli.evaluate.options import FIELD, Output
from allonym.cli.options import FORMAT, METADATA, OVERWRITE, QUIET, SEED, declare_output, declare_policy
from allonym.cli.outputs import check_outputs, write_files
from allonym.cli.signatures import take_options
from allonym.cli.terminal import decode_text, print_note, print_table, show_stage_bar
from allonym.errors import DataError, UnknownNameError, UsageError
from allonym.settings import REQUIRED, SettingGroup, declare_setting

if TYPE_CHECKING:
    from allonym.evaluate.marking import Marked
    from allonym.evaluate.residual import ResidualRisk


class Conversations(SettingGroup):
    """How annotated conversations are read."""

    field: tuple[str, ...] = FIELD
    format: str | None = FORMAT
    metadata: Path | None = METADATA

    def read_marked(self, source: Path) -> tuple[Marked, ...]:
        """Read the conversations of a file or folder, with their marks."""
        from allonym.evaluate.marking import read_annotated

        return read_annotated(source, **vars(self))


_FORMS = {".md": "md", ".jsonl": "jsonl", ".csv": "csv"}


ANONYMISED = declare_setting(REQUIRED, "anonymised texts", noun="path", option="<ANONYMISED>")


@click.command(short_help="Score the identifiers that annotators marked as missed.")
@take_options
def residual(
    annotated: Path = declare_setting(REQUIRED, "annotated conversations", noun="path", option="<ANNOTATED>"),
    *,
    group: str = declare_setting("", "metadata field for the rows of the table, such as context", option="KEY"),
    limit: float = declare_setting(5.0, "greatest acceptable score of a conversation", low=0),
    queue: Path | None = declare_setting(
        None, "write the conversations above the limit, worst first: .jsonl or .csv", noun="new file", option="FILE"
    ),
    email_partial: str = declare_setting(
        "text",
        "score of a partly missed e-mail address: 1 (text) or 2 (table: half of Table 6 of the paper)",
        one_of=("text", "table"),
    ),
    score: Mapping[str, int] = declare_setting(
        {}, "set the score of a tag, such as URL=1 or DATE_PARTIAL=0", low=0, option="TAG=SCORE"
    ),
    proposals: str = declare_setting(
        "refuse",
        "treatment of marks that no person has confirmed; count gives an upper bound",
        one_of=("refuse", "count", "drop"),
    ),
    conversations: Conversations,
    seed: int = SEED,
    output: Output,
) -> None:
    """Score the missed identifiers marked in ANNOTATED conversations: a table, a criterion, a review queue.

    The scores and the criterion are those of Gardiner et al. 2024.

    Marks are in the text, as (Green)[MISSED_PERSON_NAME_PARTIAL], or in a list "marks" beside it; see
    `allonym evaluate second-reading`. The exit code is 0 whether the criterion holds or not.

    \b
    Examples:
      allonym evaluate residual annotated.jsonl --group context
      allonym evaluate residual annotated.jsonl --queue review.jsonl --report risk.html
      allonym evaluate residual annotated.jsonl --email-partial table --score URL=1
    """
    from allonym.evaluate.marking import list_missed_surfaces
    from allonym.evaluate.residual import Scoring, residual_risk

    output.check_writable(annotated, conversations.metadata, queue=queue)
    scoring = Scoring(email_partial, {tag.upper(): number for tag, number in score.items()})
    marked = conversations.read_marked(annotated)
    with output.show_progress("scores") as advance:
        result = residual_risk(
            marked, by=group, limit=limit, proposals=proposals, seed=seed, advance=advance, scoring=scoring
        )
    data = result.to_dict()
    if output.with_text:
        conversation_of = {c.id: c for c in marked}
        for row in data["queue"]:
            row["missed"] = list_missed_surfaces(conversation_of[row["id"]])
    output.write_measure("residual", data, beside={} if queue is None else {queue: _format_queue(result, queue)})


def _format_queue(result: ResidualRisk, path: Path) -> str:
    """Return the review queue in the format of the file's suffix, without any text."""
    from allonym.evaluate.pairs import write_rows

    rows = []
    for conversation, group in result.queue:
        tags = ", ".join(f"{i.tag} ({i.score})" for i in conversation.items if i.score)
        numbers = {"score": conversation.score, "direct": conversation.direct}
        rows.append({"id": conversation.id, "group": group, **numbers, "missed": tags})
    return write_rows(rows, ("id", "group", "score", "direct", "missed"), path.suffix.lower()[1:])


@click.command("second-reading", short_help="Propose missed identifiers for a person to confirm.")
@take_options
def second_reading(
    anonymised: Path = ANONYMISED,
    *,
    output: Path = declare_output(REQUIRED, "new file"),
    original: Path | None = declare_setting(
        None,
        "original texts: only words that also occur there are proposed. Needed if names became pseudonyms",
        noun="path",
        option="PATH",
    ),
    notation: bool = declare_setting(False, "write the marks in the text, as (Green)[MISSED_PERSON_NAME_PARTIAL]"),
    point: float = declare_setting(0.02, "threshold of the tagger; a lower one proposes more", low=0, high=1),
    wide: bool = declare_setting(False, "also detect occupations, origins, works, events and all other labels"),
    policy: str | None = declare_policy(None, "detect with this policy instead"),
    capitals: bool = declare_setting(True, "also propose capitalised words that may be names"),
    field: tuple[str, ...] = FIELD,
    original_field: tuple[str, ...] = declare_setting((), "the same for --original", option="NAME"),
    format: str | None = FORMAT,
    overwrite: bool = OVERWRITE,
    quiet: bool = QUIET,
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
    from allonym.evaluate.marking import list_annotated_lines
    from allonym.evaluate.pairs import read_pairs
    from allonym.evaluate.rereading import second_reading as read_again

    if original_field and original is None:
        raise click.UsageError("--original-field requires --original")
    check_outputs([output], [anonymised, original], overwrite)
    other_field = original_field or field
    pairs = read_pairs(anonymised, original or anonymised, field=field, anonymised_field=other_field, format=format)
    originals = pairs.anonymised if original else None
    how: dict[str, Any] = {"point": point, "wide": wide, "policy": policy, "capitals": capitals}
    with show_stage_bar("reading", enabled=not quiet) as advance:
        result = read_again(originals, pairs.original, ids=pairs.ids, meta=pairs.meta, advance=advance, **how)
    lines = list_annotated_lines(result.conversations, in_text=notation)
    write_files({output: "".join(line + "\n" for line in lines)}, private=True)
    marks = Counter(m.tag for c in result.conversations for m in c.marks)
    conversations = Counter(t for c in result.conversations for t in {m.tag for m in c.marks})
    if marks:
        rows = [(t, f"{n:,}", f"{conversations[t]:,}") for t, n in sorted(marks.items(), key=lambda p: (-p[1], p[0]))]
        print_table(["proposed", "marks", "conversations"], rows, right=(1, 2))
    click.echo(f"{result.proposals:,} proposals in {len(result.conversations):,} conversations")
    if quiet:
        return
    print_note(str(output), label="written:")
    if original is None:
        print_note("without --original, pseudonyms look like missed names")


@click.group("red-team", short_help="Let people try to identify somebody.")
def red_team() -> None:
    """Let a red team try to identify people: draw a sample, write forms, sum them up."""


@red_team.command("sample", short_help="Draw a sample of conversations and write forms.")
@take_options
def draw_sample(
    anonymised: Path = ANONYMISED,
    *,
    output: Path = declare_output(REQUIRED, "new file"),
    size: int = declare_setting(200, "number of conversations", low=1, option="-n, --size"),
    group: str = declare_setting("", "metadata field of the strata, such as context", option="KEY"),
    conversations: Conversations,
    seed: int = SEED,
    overwrite: bool = OVERWRITE,
) -> None:
    """Draw a stratified sample of ANONYMISED conversations, and write a form for each.

    Marks of missed identifiers are left out. Give every reviewer a copy of the file, have the forms filled
    in, and run: allonym evaluate red-team summary FILE...

    \b
    Example:
      allonym evaluate red-team sample safe.jsonl -o forms.md -n 200 --group context --seed 1
    """
    from allonym.evaluate.red_team import red_team_sample, write_forms

    kind = _get_form_format(output)
    check_outputs([output], [anonymised, conversations.metadata], overwrite)
    forms = red_team_sample(conversations.read_marked(anonymised), size, by=group, seed=seed)
    write_files({output: write_forms(forms, kind)}, private=True)
    if group:
        counts = Counter(f.stratum for f in forms)
        print_table([group, "conversations"], [[name, f"{counts[name]:,}"] for name in sorted(counts)], right=(1,))
    if len(forms) < size:
        print_note(f"there are only {len(forms):,} conversations, fewer than {size:,}; all are in the sample")
    print_note(str(output), label="written:")


@red_team.command("summary", short_help="Sum up filled forms.")
@take_options
def sum_up_forms(
    forms: tuple[Path, ...] = declare_setting(REQUIRED, "filled forms", noun="file", option="<FORMS>"),
    *,
    output: Output,
) -> None:
    """Sum up filled FORMS: shares fully anonymised, with something left, and with somebody identified.

    \b
    Example:
      allonym evaluate red-team summary ann.md ben.md --report red-team.html
    """
    from allonym.evaluate.red_team import read_forms, red_team_summary

    output.check_writable(*forms)
    if output.with_text:
        raise click.UsageError("--with-text is not available: a summary has no texts")
    if len({path.resolve() for path in forms}) < len(forms):
        raise UsageError("a file of forms is named twice; each counts once")
    findings = [
        finding
        for path in forms
        for finding in read_forms(decode_text(path.read_bytes(), str(path)), _get_form_format(path), str(path))
    ]
    result = red_team_summary(findings)
    if not result.total.conversations:
        raise DataError(f"none of the {result.open:,} forms is filled in")
    output.write_measure("red_team", result.to_dict())


def _get_form_format(path: Path) -> str:
    try:
        return _FORMS[path.suffix.lower()]
    except KeyError:
        raise UnknownNameError("ending of forms", path.suffix or "(none)", _FORMS, path.name) from None
