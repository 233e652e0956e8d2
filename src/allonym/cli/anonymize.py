"""``allonym anonymize``: files, folders and pipes."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from allonym.cli.options import (
    chosen_policy,
    field_option,
    format_option,
    key_option,
    open_vault,
    policy_options,
    read_key,
    vault_options,
)
from allonym.cli.progress import show_progress
from allonym.cli.reading import print_terminal_note, read_documents
from allonym.cli.terminal import print_note, print_table
from allonym.errors import UsageError

if TYPE_CHECKING:
    from allonym.policy import Policy
    from allonym.replace import Keeper


BINARY = ("docx", "xlsx", "parquet", "pdf")
_OUT = click.Path(dir_okay=False, path_type=Path)


@click.command(short_help="Anonymise a file, a folder or standard input.")
@click.argument("source", metavar="SOURCE")
@click.argument("target", required=False, metavar="[TARGET]")
@click.option("-o", "--output", metavar="TARGET", help="The same as the argument TARGET.")
@policy_options
@field_option
@format_option
@key_option
@vault_options
@click.option(
    "--subject-field",
    metavar="NAME",
    help="Field with the subject of a record: dates of one subject shift alike, and a vault can purge it.",
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of processes; the output does not depend on it. With --runner ray: by default one per processor.",
)
@click.option(
    "--runner",
    type=click.Choice(("processes", "ray")),
    default="processes",
    show_default=True,
    help="Run in processes of this machine, or on Ray: on the cluster in RAY_ADDRESS, or else on one "
    "started for this run. With ray, SOURCE and TARGET may be URIs such as s3://bucket/folder.",
)
@click.option(
    "--unique",
    is_flag=True,
    help="Give each entity of the run its own replacement, and number tags across documents. A vault does the same, "
    "also for later runs.",
)
@click.option("--resume", is_flag=True, help="Continue an interrupted run of the same command.")
@click.option("--overwrite", is_flag=True, help="Replace an existing TARGET.")
@click.option(
    "--plans",
    type=_OUT,
    metavar="PATH",
    help="Write the plan of each document, as JSON lines.",
)
@click.option(
    "--originals",
    is_flag=True,
    help="With --plans: include the originals, so that `allonym restore` can undo the replacements. "
    "Protect that file as you protect SOURCE.",
)
@click.option("--report", type=_OUT, metavar="PATH", help="Write the run report, as JSON. It holds no text.")
@click.option(
    "--quarantine",
    type=_OUT,
    metavar="PATH",
    help="File for the ids of records that could not be processed, with reasons. By default beside TARGET.",
)
@click.option("--dry-run", is_flag=True, help="Write nothing; count what would be replaced.")
@click.option("--show", is_flag=True, help="With --dry-run: list each replacement beside its original.")
@click.option("--quiet", "-q", is_flag=True, help="No progress bar, no notes, no summary.")
def anonymize(
    source: str,
    target: str | None,
    output: str | None,
    policy: str,
    label: tuple[str, ...],
    dictionary: tuple[tuple[str, Path], ...],
    exclude_terms: Path | None,
    operating_point: str | float | None,
    field: tuple[str, ...],
    format: str | None,
    key_file: Path | None,
    vault: str | None,
    scope: str,
    secret_file: Path | None,
    secret_env: str | None,
    secret_keyring: str | None,
    subject_field: str | None,
    workers: int,
    runner: str,
    unique: bool,
    resume: bool,
    overwrite: bool,
    plans: Path | None,
    originals: bool,
    report: Path | None,
    quarantine: Path | None,
    dry_run: bool,
    show: bool,
    quiet: bool,
) -> None:
    """Anonymise SOURCE: a file, a folder, or - for standard input.

    The result is written to TARGET. Without TARGET, a single text file goes to standard output. SOURCE is never
    changed. The exit code is 1 if records were quarantined, and 2 if the command or the policy is wrong.

    \b
    Examples:
      allonym anonymize letter.txt letter-safe.txt
      allonym anonymize calls/ safe/ --policy transcripts --workers 4
      allonym anonymize reviews.csv safe.csv --field review --report run.json
      echo "Write to jane.doe@example.com" | allonym anonymize -
      allonym anonymize letter.txt --dry-run --show
      allonym anonymize interviews/ safe/ --policy pseudonyms --vault study.vault --secret-file study.key
      allonym anonymize s3://lake/reviews s3://lake/safe --runner ray --key-file secret.key --resume
    """
    if target and output:
        raise click.UsageError("TARGET is given twice: as an argument and with --output")
    if show and not dry_run:
        raise click.UsageError("--show requires --dry-run")
    if originals and plans is None:
        raise click.UsageError("--originals requires --plans")
    if unique and vault:
        raise click.UsageError("--unique cannot be combined with --vault, which does the same")
    if vault is None and (secret_file or secret_env or secret_keyring):
        raise click.UsageError("--secret-file, --secret-env and --secret-keyring require --vault")
    _check_runner(runner, source, target or output, vault=vault, unique=unique, dry_run=dry_run)
    chosen = chosen_policy(policy, label, dictionary, exclude_terms, operating_point)
    if subject_field is not None:
        # The subject field identifies, so its value is replaced in every field of the record.
        names = {**chosen.metadata, "GENERIC_ID": (*chosen.metadata.get("GENERIC_ID", ()), subject_field)}
        chosen = chosen.with_(subject=subject_field, metadata=MappingProxyType(names))
    key = read_key(key_file)
    if dry_run:
        if key is None and vault:
            key = open_vault(vault, secret_file, secret_env, secret_keyring).operator_key
        _report_dry_run(source, chosen, key, scope, field, format, show=show)
        return
    to = target or output or _choose_standard_output(source, format)
    if to == "-" and (resume or overwrite):
        raise click.UsageError("--resume and --overwrite require a TARGET")

    if source == "-":
        print_terminal_note()
    shared: dict[str, Any] = {
        "key": key,
        "scope": scope,
        "fields": field or None,
        "format": format,
        "resume": resume,
        "overwrite": overwrite,
        "plans": plans,
        "originals": originals,
        "report": report,
        "quarantine": quarantine,
    }
    try:
        with show_progress(enabled=not quiet and to != "-") as advance:
            if runner == "ray":
                from allonym.scale import anonymize_on_ray

                source_of_workers = click.get_current_context().get_parameter_source("workers")
                many = None if source_of_workers is ParameterSource.DEFAULT else workers
                summary = anonymize_on_ray(source, to, chosen, workers=many, progress=advance, **shared)
            else:
                from allonym.files import anonymize_path
                from allonym.replace.cast import Corpus

                keeper: Keeper | None = Corpus(key) if unique else None
                if vault:
                    keeper = open_vault(vault, secret_file, secret_env, secret_keyring)
                summary = anonymize_path(source, to, chosen, vault=keeper, workers=workers, progress=advance, **shared)
    except KeyboardInterrupt:
        hint = "; run the same command with --resume to continue" if "-" not in (source, to) else ""
        print_note(f"interrupted{hint}", label="error:")
        raise click.exceptions.Exit(130) from None
    if not quiet and to != "-":
        click.echo(summary.to_text(), err=True, nl=False)
    if summary.offline and to == "-" and not quiet:
        print_note(f"{summary.offline:,} replacements came from the offline pseudonyms, not from the language model")
    if summary.exit_code:
        shortfalls = [(summary.quarantined, "record"), (len(summary.refused), "file")]
        message = " and ".join(f"{n:,} {what}{'s' if n > 1 else ''}" for n, what in shortfalls if n)
        listed = quarantine or Path(to).with_name(f"{Path(to).name}.quarantine.jsonl")
        where = f"; see {listed}" if summary.quarantined and listed.exists() else ""
        print_note(f"{message} could not be processed and were left out{where}", label="error:")
        raise click.exceptions.Exit(summary.exit_code)


def _check_runner(
    runner: str, source: str, target: str | None, *, vault: str | None, unique: bool, dry_run: bool
) -> None:
    if runner == "processes":
        # Only the scheme is shown: a URI may contain a key.
        uris = [
            path.partition("://")[0] for path in (source, target or "") if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", path)
        ]
        if uris:
            raise click.UsageError(f"a {uris[0]}:// URI requires --runner ray")
        return
    if vault or unique:
        raise click.UsageError(
            f"{'--vault' if vault else '--unique'} needs one process for all documents, so it cannot be combined with "
            "--runner ray; with --key-file, pseudonyms are the same in all documents anyway"
        )
    if dry_run:
        raise click.UsageError("--dry-run cannot be combined with --runner ray")
    if source == "-" or target in (None, "-"):
        raise click.UsageError("--runner ray requires a SOURCE and a TARGET that are files, folders or URIs")


def _choose_standard_output(source: str, format: str | None) -> str:
    """Return "-", the target where none is named; raise for a source that standard output cannot show."""
    from allonym.files import format_of

    path = Path(source)
    if path.is_dir():
        raise UsageError(f"{source} is a folder: a TARGET folder is required, such as {path.name or 'folder'}-safe")
    if source != "-" and format is None and format_of(path.name)[0].name in BINARY:
        raise UsageError(f"{source} is not a text file: a TARGET is required, such as {path.stem}-safe{path.suffix}")
    return "-"


def _report_dry_run(
    source: str,
    chosen: Policy,
    key: bytes | str | None,
    scope: str,
    field: tuple[str, ...],
    format: str | None,
    *,
    show: bool,
) -> None:
    from allonym.pipeline import anonymize

    mentions: Counter[tuple[str, str]] = Counter()
    edits: list[tuple[object, ...]] = []
    count = 0
    for document in read_documents(source, fields=field, format=format, named=False, policy=chosen):
        plan = anonymize(document, chosen, key=key, scope=scope).plan
        count += 1
        mentions.update((e.label, e.operator.partition("@")[0]) for e in plan.edits)
        if show:
            name = document.id or count
            edits += [
                (name, e.start, e.end, e.label, document.text[e.start : e.end], e.replacement) for e in plan.edits
            ]
    if show:
        print_table(["document", "start", "end", "label", "original", "replacement"], edits, right=(1, 2))
        click.echo()
    rows = sorted(((label, operator, n) for (label, operator), n in mentions.items()), key=lambda r: (-r[2], r))
    print_table(["label", "operator", "edits"], rows, right=(2,))
    print_note(f"{count} documents, {sum(mentions.values())} edits; nothing was written", label="dry run:")
