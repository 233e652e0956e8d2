"""``allonym anonymize``: files, folders and pipes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from allonym.cli import terminal
from allonym.cli.options import (
    KEY_FILE,
    ORIGINALS,
    OVERWRITE,
    QUIET,
    RESUME,
    RUNNER,
    WORKERS,
    PolicyChoice,
    TextFields,
    VaultChoice,
    declare_output,
    declare_plans,
    get_ray_worker_count,
    read_key,
)
from allonym.cli.signatures import take_options
from allonym.errors import UsageError
from allonym.settings import SettingGroup, declare_setting

if TYPE_CHECKING:
    from allonym.document import Document
    from allonym.policy import Policy

BINARY = (
    "docx",
    "xlsx",
    "pptx",
    "odt",
    "ods",
    "odp",
    "parquet",
    "pdf",
    "zip",
    "epub",
    "doc",
    "xls",
    "ppt",
    "png",
    "jpg",
)
_PROCESS_ONLY = {"quotes": "--quote-leftovers", "safe_names": "--safe-names", "name_list": "--name-list"}
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


class Files(SettingGroup):
    """Files of a run, and how it is made: arguments of :func:`allonym.files.anonymize_path`."""

    workers: int = WORKERS
    resume: bool = RESUME
    overwrite: bool = OVERWRITE
    plans: Path | None = declare_plans("new file")
    originals: bool = ORIGINALS
    quotes: bool = declare_setting(
        False,
        "if the result of a file still contains covered texts, quote them in the reason why it is refused. The reason "
        "is shown, and written to the quarantine file",
        option="--quote-leftovers",
    )
    report: Path | None = declare_setting(
        None, "write the run report, as JSON. It holds no text", noun="new file", option="PATH"
    )
    quarantine: Path | None = declare_setting(
        None,
        "file for the ids of records that could not be processed, with reasons; by default beside TARGET",
        noun="new file",
        option="PATH",
    )
    safe_names: bool = declare_setting(
        False,
        "write files of a folder as folder-001/document-0001.docx; the numbers follow their contents. Records in other "
        "outputs have numbers in place of their ids",
    )
    name_list: Path | None = declare_setting(
        None,
        "with --safe-names: write the names of the sources beside those of the outputs, as CSV. Protect that file as "
        "you protect the source",
        noun="new file",
        option="PATH",
    )


@click.command(short_help="Anonymise a file, a folder or standard input.")
@take_options
def anonymize(
    source: str,
    target: str | None = declare_setting(None, "where the result is written", option="<TARGET>"),
    *,
    output: str | None = declare_output(),
    choice: PolicyChoice,
    texts: TextFields,
    key_file: Path | None = KEY_FILE,
    vault: VaultChoice,
    subject: str | None = declare_setting(
        None,
        "field with the subject of a record: dates of one subject shift alike, and a vault can purge it",
        option="KEY",
    ),
    runner: str = RUNNER,
    unique: bool = declare_setting(
        False,
        "give each entity of the run its own replacement, and number tags across documents. A vault does the same, "
        "also for later runs",
    ),
    files: Files,
    columns: Path | None = declare_setting(
        None,
        "TOML file with the treatment of columns: keep, text, or a label. A dry run writes it where there is none",
        option="FILE",
    ),
    dry_run: bool = declare_setting(
        False, "write no result; show how columns are treated, and count what would be replaced"
    ),
    show: bool = declare_setting(False, "with --dry-run: list each replacement beside its original"),
    quiet: bool = QUIET,
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
      allonym anonymize customers.csv --dry-run --columns customers.toml
      allonym anonymize interviews/ safe/ --safe-names --name-list names.csv
      allonym anonymize interviews/ safe/ --policy pseudonyms --vault study.vault --secret-file study.key
      allonym anonymize s3://lake/reviews s3://lake/safe --runner ray --key-file secret.key --resume
    """
    if target and output:
        raise click.UsageError("TARGET is given twice: as an argument and with --output")
    if show and not dry_run:
        raise click.UsageError("--show requires --dry-run")
    if files.originals and files.plans is None:
        raise click.UsageError("--originals requires --plans")
    if files.name_list is not None and not files.safe_names:
        raise click.UsageError("--name-list requires --safe-names")
    if unique and vault.where:
        raise click.UsageError("--unique cannot be combined with --vault, which does the same")
    target = target or output
    if runner == "ray":
        _check_ray_can_run(source, target, "--vault" if vault.where else "--unique" if unique else "", dry_run=dry_run)
    else:
        for uri in filter(None, map(_URI.match, (source, target or ""))):
            raise click.UsageError(f"a {uri[0]} URI requires --runner ray")  # only the scheme: a URI may contain a key
    policy = choice.load_policy()
    if columns is not None and (columns.exists() or not dry_run):
        policy = _read_columns(columns, policy)
    if subject is not None:
        # The subject field identifies, so its value is replaced in every field of the record.
        names = {**policy.metadata, "GENERIC_ID": (*policy.metadata.get("GENERIC_ID", ()), subject)}
        policy = policy.with_(subject=subject, metadata=MappingProxyType(names))
    key = read_key(key_file)
    if dry_run:
        if key is None and (opened := vault.open_vault()):
            key = opened.operator_key
        decided = _report_columns(source, texts, policy, columns)
        documents = texts.read_documents(source, named=False, policy=policy)
        _report_dry_run(documents, policy, key, vault.scope, show=show, shared=decided)
        return
    if not target:
        _check_printable(source, texts.format)
    to = target or "-"
    if to == "-" and (files.resume or files.overwrite):
        raise click.UsageError("--resume and --overwrite require a TARGET")
    if source == "-":
        terminal.print_stdin_note()
    settings: dict[str, Any] = {"key": key, "scope": vault.scope, "fields": texts.field, "format": texts.format}
    settings |= vars(files)
    try:
        with terminal.show_byte_progress(enabled=not quiet and to != "-") as advance:
            if runner == "ray":
                from allonym.scale import anonymize_on_ray

                for name, option in _PROCESS_ONLY.items():
                    if settings.pop(name):
                        raise click.UsageError(f"{option} cannot be combined with --runner ray")
                settings["workers"] = get_ray_worker_count(files.workers, "files__workers")
                summary = anonymize_on_ray(source, to, policy, progress=advance, **settings)
            else:
                from allonym.files import anonymize_path
                from allonym.replace.cast import Corpus

                keeper = Corpus(key) if unique else vault.open_vault()
                summary = anonymize_path(source, to, policy, vault=keeper, progress=advance, **settings)
    except KeyboardInterrupt:
        raise terminal.report_interrupt(resumable="-" not in (source, to)) from None
    if not quiet and to != "-":
        click.echo(summary.to_text(), err=True, nl=False)
    if not (quiet or summary.files or summary.refused) and Path(source).is_dir():
        terminal.print_note(f"{source} holds no files, so nothing is written")
    if summary.offline and to == "-" and not quiet:
        terminal.print_note(
            f"{summary.offline:,} replacements came from the offline pseudonyms, not from the language model"
        )
    if to == "-" and not quiet:
        terminal.print_unread_warning(summary.unread, summary.characters)
    if summary.exit_code:
        shortfalls = [(summary.quarantined, "record"), (len(summary.refused), "file")]
        message = " and ".join(f"{n:,} {what}{'s' if n > 1 else ''}" for n, what in shortfalls if n)
        listed = files.quarantine or Path(to).with_name(f"{Path(to).name}.quarantine.jsonl")
        verb = "was" if summary.quarantined + len(summary.refused) == 1 else "were"
        where = f"; see {listed}" if summary.quarantined and listed.exists() else ""
        raise terminal.report_failure(
            f"{message} could not be processed, and {verb} left out{where}", summary.exit_code
        )


def _check_ray_can_run(source: str, target: str | None, sharing_option: str, *, dry_run: bool) -> None:
    """Raise if Ray cannot make this run; ``sharing_option`` shares replacements between documents."""
    if sharing_option:
        raise click.UsageError(
            f"{sharing_option} needs one process for all documents, so it cannot be combined with --runner ray; with "
            "--key-file, pseudonyms are the same in all documents anyway"
        )
    if dry_run:
        raise click.UsageError("--dry-run cannot be combined with --runner ray")
    if source == "-" or target in (None, "-"):
        raise click.UsageError("--runner ray requires a SOURCE and a TARGET that are files, folders or URIs")


def _check_printable(source: str, format: str | None) -> None:
    """Raise for a source whose result standard output cannot show."""
    from allonym.files import format_of

    path = Path(source)
    if path.is_dir():
        raise UsageError(f"{source} is a folder: a TARGET folder is required, such as {path.name or 'folder'}-safe")
    if source != "-" and not path.exists():
        hint = "; a text itself comes by standard input: echo TEXT | allonym anonymize -" if " " in source else ""
        raise UsageError(f"there is no file or folder {source}{hint}")
    if source != "-" and format is None and format_of(path.name)[0].name in BINARY:
        raise UsageError(f"{source} is not a text file: a TARGET is required, such as {path.stem}-safe{path.suffix}")


def _read_columns(path: Path, policy: Policy) -> Policy:
    from allonym.files.columns import read_treatments

    if not path.exists():
        raise UsageError(f"there is no file {path}; --dry-run --columns {path} writes one")
    return read_treatments(path, policy)


def _report_columns(source: str, texts: TextFields, policy: Policy, path: Path | None) -> bool:
    """Show what is decided about the columns of tables, and write it to ``path``, if there is no such file.

    Returns:
        Whether there are columns.
    """
    from allonym.cli.outputs import write_files
    from allonym.files.columns import write_treatments
    from allonym.files.tasks import list_columns

    if source == "-":
        return False
    listed = list(list_columns(source, fields=texts.field, format=texts.format, policy=policy))
    if not listed:
        return False
    several = len({name for name, _ in listed}) > 1
    rows = [(*([name] * several), c.name, c.treatment, c.reason, c.filled, c.different) for name, c in listed]
    head = [*(["file"] * several), "column", "treatment", "because of", "filled", "different"]
    terminal.print_table(head, rows, right=(len(head) - 2, len(head) - 1))
    click.echo()
    if path is not None and not path.exists():
        write_files({path: write_treatments(column for _, column in listed)})
        terminal.print_note(f"{path} holds these treatments; change them there, and run again with --columns {path}")
    return True


def _report_dry_run(
    documents: Iterable[Document], policy: Policy, key: bytes | str | None, scope: str, *, show: bool, shared: bool
) -> None:
    from allonym.pipeline import detect_with_key, replace_found
    from allonym.replace.cast import CorpusBook

    book = CorpusBook() if shared else None
    mentions: Counter[tuple[str, str]] = Counter()
    unread: Counter[str] = Counter()
    characters = 0
    edits: list[tuple[object, ...]] = []
    count = 0
    for count, document in enumerate(documents, 1):
        spans = detect_with_key(document, policy, key)
        result = replace_found(document, spans, policy, key=key, scope=scope, book=book)
        plan, characters = result.plan, characters + result.report.characters
        unread.update(result.report.unread)
        mentions.update((e.label, e.operator.partition("@")[0]) for e in plan.edits)
        for e in plan.edits if show else ():
            original = document.text[e.start : e.end]
            edits.append((document.id or count, e.start, e.end, e.label, original, e.replacement))
    if show:
        terminal.print_table(["document", "start", "end", "label", "original", "replacement"], edits, right=(1, 2))
        click.echo()
    rows = sorted(((label, operator, n) for (label, operator), n in mentions.items()), key=lambda r: (-r[2], r))
    terminal.print_table(["label", "operator", "edits"], rows, right=(2,))
    terminal.print_unread_warning(unread, characters)
    edit_count = sum(mentions.values())
    terminal.print_note(
        f"{count} {'document' if count == 1 else 'documents'}, {edit_count} {'edit' if edit_count == 1 else 'edits'}; "
        "nothing was written",
        label="dry run:",
    )
