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
from allonym.cli.reading import read_documents, tell_terminal
from allonym.cli.terminal import print_note, print_table
from allonym.errors import UsageError

if TYPE_CHECKING:
    from allonym.policy import Policy
    from allonym.replace import Keeper


BINARY = ("docx", "xlsx", "parquet", "pdf")
_OUT = click.Path(dir_okay=False, path_type=Path)


@click.command(short_help="Anonymize a file, a folder or standard input.")
@click.argument("source", metavar="SOURCE")
@click.argument("target", required=False, metavar="[TARGET]")
@click.option("-o", "--output", metavar="TARGET", help="Another way to give TARGET.")
@policy_options
@field_option
@format_option
@key_option
@vault_options
@click.option(
    "--subject-field",
    metavar="NAME",
    help="Column or field that names whom a record is about: its dates move alike, and the vault can forget it.",
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Processes; same bytes for any number. With --runner ray by default one for each processor.",
)
@click.option(
    "--runner",
    type=click.Choice(("processes", "ray")),
    default="processes",
    show_default=True,
    help="Where the work is done: in processes of this machine, or on Ray: on the cluster that RAY_ADDRESS names, else "
    "on one that is started here for the run. With ray, SOURCE and TARGET may be URIs such as s3://bucket/folder.",
)
@click.option(
    "--unique",
    is_flag=True,
    help="No two referents of the whole run share a replacement, and tags are numbered through. A vault does the same, "
    "and for later runs too.",
)
@click.option("--resume", is_flag=True, help="Go on where an interrupted run of the same command stopped.")
@click.option("--overwrite", is_flag=True, help="Replace a TARGET that exists.")
@click.option(
    "--plans",
    type=_OUT,
    metavar="PATH",
    help="Write the plan of each document, as JSON lines.",
)
@click.option(
    "--originals",
    is_flag=True,
    help="With --plans: write what was replaced into the plans, so that `allonym restore` can undo it with them. "
    "Keep that file as safe as SOURCE.",
)
@click.option("--report", type=_OUT, metavar="PATH", help="Write the run report, as JSON. It holds no text.")
@click.option(
    "--quarantine",
    type=_OUT,
    metavar="PATH",
    help="Where to list records that could not be processed, by id and reason; by default beside TARGET.",
)
@click.option("--dry-run", is_flag=True, help="Write nothing; show what would be replaced, as counts.")
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
    """Replace what identifies in SOURCE: a file, a folder, or - for standard input.

    The result goes to TARGET; without one, a single text-like file goes to standard output. SOURCE is never changed.
    Ends with exit code 1 where a record was put in quarantine, and with 2 where the call or the policy is wrong.

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
        raise click.UsageError("--show goes with --dry-run")
    if originals and plans is None:
        raise click.UsageError("--originals goes with --plans")
    if unique and vault:
        raise click.UsageError("--unique goes without --vault: a vault does the same")
    if vault is None and (secret_file or secret_env or secret_keyring):
        raise click.UsageError("--secret-file, --secret-env and --secret-keyring go with --vault")
    _check_runner(runner, source, target or output, vault=vault, unique=unique, dry_run=dry_run)
    chosen = chosen_policy(policy, label, dictionary, exclude_terms, operating_point)
    if subject_field is not None:
        # What names the subject identifies, wherever it stands in the record.
        names = {**chosen.metadata, "GENERIC_ID": (*chosen.metadata.get("GENERIC_ID", ()), subject_field)}
        chosen = chosen.with_(subject=subject_field, metadata=MappingProxyType(names))
    key = read_key(key_file)
    if dry_run:
        if key is None and vault:
            key = open_vault(vault, secret_file, secret_env, secret_keyring).operator_key
        _dry_run(source, chosen, key, scope, field, format, show=show)
        return
    to = target or output or _standard_output(source, format)
    if to == "-" and (resume or overwrite):
        raise click.UsageError("--resume and --overwrite need a TARGET")

    if source == "-":
        tell_terminal()
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
        hint = "; the same command with --resume goes on from here" if "-" not in (source, to) else ""
        print_note(f"interrupted{hint}", label="error:")
        raise click.exceptions.Exit(130) from None
    if not quiet and to != "-":
        click.echo(summary.to_text(), err=True, nl=False)
    if summary.offline and to == "-" and not quiet:
        print_note(f"{summary.offline:,} values that a language model was asked for came from the offline pseudonyms")
    if summary.exit_code:
        shortfalls = [(summary.quarantined, "record"), (len(summary.refused), "file")]
        message = " and ".join(f"{n:,} {what}{'s' if n > 1 else ''}" for n, what in shortfalls if n)
        listed = quarantine or Path(to).with_name(f"{Path(to).name}.quarantine.jsonl")
        where = f"; see {listed}" if summary.quarantined and listed.exists() else ""
        print_note(f"{message} could not be processed and left out{where}", label="error:")
        raise click.exceptions.Exit(summary.exit_code)


def _check_runner(
    runner: str, source: str, target: str | None, *, vault: str | None, unique: bool, dry_run: bool
) -> None:
    if runner == "processes":
        # The scheme alone: a URI may hold a key.
        uris = [
            path.partition("://")[0] for path in (source, target or "") if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", path)
        ]
        if uris:
            raise click.UsageError(f"a {uris[0]}:// URI needs --runner ray")
        return
    if vault or unique:
        raise click.UsageError(
            f"{'--vault' if vault else '--unique'} needs one process that knows all documents, so it goes without "
            "--runner ray; pseudonyms with a --key-file are the same in all documents without it"
        )
    if dry_run:
        raise click.UsageError("--dry-run goes without --runner ray")
    if source == "-" or target in (None, "-"):
        raise click.UsageError("--runner ray needs a SOURCE and a TARGET that are files, folders or URIs")


def _standard_output(source: str, format: str | None) -> str:
    """Where the result goes when no TARGET is given: standard output, for what a terminal or a pipe can take."""
    from allonym.files import format_of

    path = Path(source)
    if path.is_dir():
        raise UsageError(f"{source} is a folder: a TARGET folder is required, such as {path.name or 'folder'}-safe")
    if source != "-" and format is None and format_of(path.name)[0].name in BINARY:
        raise UsageError(f"{source} is no text: a TARGET is required, such as {path.stem}-safe{path.suffix}")
    return "-"


def _dry_run(
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
