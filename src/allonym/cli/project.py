"""``allonym project``: a study, from its files to a signed release."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from allonym.cli import terminal
from allonym.cli.evaluate.promises import Limit, print_promise
from allonym.cli.options import (
    FIRST_PERSON,
    JSON,
    OVERWRITE,
    PERSON,
    PERSON_NAME,
    QUIET,
    SAME_PERSON,
    WORKERS,
    SecretChoice,
    declare_policy,
)
from allonym.cli.signatures import take_options
from allonym.cli.vault import ACTOR, NEW_SECRET_FILE, open_secret_of_new_vault
from allonym.errors import UsageError
from allonym.serial import to_plain
from allonym.settings import REQUIRED, SettingGroup, declare_setting
from allonym.text.words import count_nouns

if TYPE_CHECKING:
    from allonym.project import Project

VAULT_FILE = "project.vault"
FOLDER = declare_setting(REQUIRED, "folder of the project", noun="folder", option="<PROJECT>")
REVIEWER = declare_setting(None, "name of the reviewer", option="NAME")
LABEL = declare_setting(None, "a label, such as PERSON", noun="label", option="LABEL")


class ProjectVault(SettingGroup):
    """The vault of a project, and its secret."""

    where: str | None = declare_setting(
        None, "vault of the project; by default project.vault in its folder", option="--vault PATH|URL"
    )
    secret: SecretChoice = SecretChoice()

    @contextmanager
    def open_project(self, folder: Path) -> Iterator[Project]:
        """Open a project with its vault.

        Raises:
            UsageError: there is no project, or no secret is named. VaultError, WrongKey: the vault does not open.
        """
        from allonym.project import Project
        from allonym.project.records import read_card

        read_card(folder)
        with self.secret.open_vault(self.where or str(folder / VAULT_FILE)) as vault:
            yield Project(folder, vault)


@click.group(short_help="Lead a study from its files to a signed release.")
def project() -> None:
    """Lead a study from its files to a signed release, in one folder.

    The folder holds the sources, the policy, corrections, reviews and releases. All but the releases is encrypted with
    the key of the project's vault.

    \b
    Examples:
      allonym project init study --policy pseudonyms --new-secret-file study.key
      allonym project add study interviews/ customers.csv --secret-file study.key
      allonym project status study --secret-file study.key
      allonym project findings study --label PERSON --secret-file study.key
      allonym project correct study "Larkspur" --never --secret-file study.key
      allonym project join study 3 7 --secret-file study.key
      allonym project review study --export ann.csv --reviewer ann --secret-file study.key
      allonym project review study --import ann.csv --reviewer ann --secret-file study.key
      allonym project promise study --limit 0.05 --secret-file study.key
      allonym project release study --secret-file study.key
      allonym project verify study/releases/release-001.zip
    """


@project.command(short_help="Make a project.")
@take_options
def init(
    folder: Path = declare_setting(REQUIRED, "folder to make", noun="new folder", option="<PROJECT>"),
    *,
    policy: str = declare_policy(),
    scope: str = declare_setting(
        "project", "name of the project in its vault. It is not encrypted, so it should name nobody", option="NAME"
    ),
    new_secret_file: Path | None = NEW_SECRET_FILE,
    vault: ProjectVault,
) -> None:
    """Make a project, and a vault for it unless --vault names one. If the vault's secret is lost, so is the project.

    \b
    Example:
      allonym project init study --policy pseudonyms --new-secret-file study.key
    """
    from allonym.project import Project
    from allonym.project.policies import load_policy_tables, read_policy_tables
    from allonym.project.records import CARD
    from allonym.vault import Vault

    if (folder / CARD).exists():
        raise UsageError(f"{folder} is a project already")
    tables = read_policy_tables(policy)
    load_policy_tables(tables, policy)
    if vault.where is not None:
        if new_secret_file is not None:
            raise click.UsageError("--new-secret-file makes a vault of its own, and --vault names one")
        with vault.secret.open_vault(vault.where) as opened:
            Project.create(folder, opened, tables, scope=scope)
        return
    with open_secret_of_new_vault(new_secret_file, vault.secret) as secret:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with Vault.create(folder / VAULT_FILE, secret) as opened:
            Project.create(folder, opened, tables, scope=scope)


@project.command(short_help="Add files and folders, and anonymise them.")
@take_options
def add(
    folder: Path = FOLDER,
    sources: tuple[Path, ...] = declare_setting(
        REQUIRED, "files and folders to add", noun="path", option="<SOURCES>..."
    ),
    *,
    vault: ProjectVault,
    quiet: bool = QUIET,
) -> None:
    """Copy SOURCES into the project, encrypted, and anonymise them. Afterwards the project needs them no more.

    A file that cannot be read is refused with a reason, and the exit code is 1; the others are added.

    \b
    Example:
      allonym project add study interviews/ customers.csv --secret-file study.key
    """
    with vault.open_project(folder) as opened:
        added = opened.add(sources)
    if not quiet:
        documents, mentions = (sum(getattr(file, name) for file in added.files) for name in ("documents", "mentions"))
        print_counts("added:", files=len(added.files), documents=documents, findings=mentions)
        for name in added.duplicates:
            terminal.print_note(f"{name} is in the project already")
        if not (added.files or added.duplicates or added.refused):
            terminal.print_note("there is no file to add")
    for name, reason in added.refused:
        terminal.print_note(f"{name}: {reason}", label="refused:")
    if added.refused:
        raise terminal.report_failure(f"{len(added.refused)} of the files could not be added")


@project.command(short_help="Show where a project stands, and what is next.")
@take_options
def status(folder: Path = FOLDER, *, vault: ProjectVault, json: bool = JSON) -> None:
    """Show files, documents, people, the state of reviews, and what can be done next.

    \b
    Example:
      allonym project status study --secret-file study.key
    """
    with vault.open_project(folder) as opened:
        shown, files = opened.get_status(), opened.files
    if json:
        rows = [{n: v for n, v in to_plain(f).items() if n not in ("digest", "stamp", "settled")} for f in files]
        click.echo(terminal.format_json_line({**shown.to_dict(), "sources": rows}))
        return
    states = ("new", "in_review", "disagreement", "done")
    rows_ = [
        (f.number, f.name, f.documents, f.mentions, *(f.states.get(state, 0) for state in states), f.failures)
        for f in files
    ]
    if rows_:
        head = ["file", "name", "documents", "findings", "new", "in review", "disagreement", "done", "failed"]
        terminal.print_table(head, rows_, right=(0, 2, 3, 4, 5, 6, 7, 8))
        click.echo()
    facts = [
        ("documents", f"{shown.states['done']:,} of {shown.documents:,} settled"),
        ("words left to read", f"{shown.unseen:,}, which two people have not both looked at"),
        ("random draw", f"{shown.drawn:,} documents read wholly by two; a promise rests on these"),
        ("people", f"{shown.people:,}"),
        ("corrections", f"{shown.terms:,}"),
        ("releases", f"{shown.releases:,}"),
        *(
            ("or" if i else "next", f"allonym project {step.partition(' ')[0]} {folder} {step.partition(' ')[2]}")
            for i, step in enumerate(shown.steps)
        ),
    ]
    terminal.print_table(["project", "value"], facts)


@project.command(short_help="List what is replaced, by person and surface.")
@take_options
def findings(
    folder: Path = FOLDER,
    *,
    label: str | None = declare_setting(
        None, "list only what has this label, or one of its family", noun="label", option="LABEL"
    ),
    documents: bool = declare_setting(False, "also list the documents that each stands in"),
    vault: ProjectVault,
    json: bool = JSON,
) -> None:
    """List what is replaced, by person or other referent, and by surface with counts. It shows originals.

    The number of a person is that of the people register: join and part take it.

    \b
    Examples:
      allonym project findings study --label PERSON --secret-file study.key
      allonym project findings study --json --secret-file study.key
    """
    with vault.open_project(folder) as opened:
        entities = opened.list_entities(label.upper() if label else "")
    if json:
        for entity in entities:
            click.echo(terminal.format_json_line(to_plain(entity)))
        return
    rows: list[tuple[object, ...]] = []
    for entity in entities:
        for number, surface in enumerate(entity.surfaces):
            person = "" if entity.number is None else entity.number
            head = (person, entity.label, entity.name, entity.mentions) if number == 0 else ("", "", "", "")
            where = (", ".join(entity.documents) if number == 0 else "",) if documents else ()
            rows.append(
                (*head, surface.text, ", ".join(surface.replacements), surface.mentions, surface.documents, *where)
            )
    columns = [
        "person",
        "label",
        "name",
        "mentions",
        "surface",
        "becomes",
        "mentions",
        "documents",
        *(["in"] * documents),
    ]
    terminal.print_table(columns, rows, right=(0, 3, 6, 7))


@project.command(short_help="Always or never find a text, everywhere or in one document.")
@take_options
def correct(
    folder: Path = FOLDER,
    text: str = declare_setting(REQUIRED, "the text, on one line", option="<TEXT>"),
    *,
    always: str | None = declare_setting(
        None, "always find it, with this label, such as PERSON", noun="label", option="LABEL"
    ),
    never: bool = declare_setting(False, "never find it"),
    forget: bool = declare_setting(False, "take the correction back"),
    document: str | None = declare_setting(None, "only in this document; by default everywhere", option="ID"),
    vault: ProjectVault,
) -> None:
    """Correct once what is found, and apply it to all documents, or to one. The last decision on a text holds.

    \b
    Examples:
      allonym project correct study "Larkspur" --never --secret-file study.key
      allonym project correct study "piano tuner" --always OCCUPATION --secret-file study.key
      allonym project correct study "May" --never --document 0003-00012 --secret-file study.key
      allonym project correct study "Larkspur" --forget --secret-file study.key
    """
    if sum((always is not None, never, forget)) != 1:
        raise click.UsageError("one of --always, --never and --forget is required")
    with vault.open_project(folder) as opened:
        if forget:
            changed = opened.forget(text, document=document)
        else:
            changed = opened.correct(text, label=always, never=never, document=document)
            if not opened.count_places(text):
                terminal.print_note("the text stands in no file so far; what is added later will follow the correction")
    print_counts("anonymised again:", files=changed)


@project.command(short_help="Make two people one, in all documents.")
@take_options
def join(
    folder: Path = FOLDER,
    first: str = FIRST_PERSON,
    second: str = SAME_PERSON,
    *,
    vault: ProjectVault,
    actor: str = ACTOR,
) -> None:
    """Make two people of the project one, with all names of both and the replacement of the first.

    A person is a number that `findings` shows, or a name.

    \b
    Example:
      allonym project join study 3 7 --secret-file study.key
    """
    with vault.open_project(folder) as opened:
        changed = opened.join_people(first, second, actor=actor)
    print_counts("anonymised again:", files=changed)


@project.command(short_help="Give a name of a person to somebody else, in all documents.")
@take_options
def part(
    folder: Path = FOLDER,
    person: str = PERSON,
    name: str = PERSON_NAME,
    *,
    vault: ProjectVault,
    actor: str = ACTOR,
) -> None:
    """Take a name from a person of the project and make it the name of a new one.

    \b
    Example:
      allonym project part study 3 "Margaret" --secret-file study.key
    """
    with vault.open_project(folder) as opened:
        changed = opened.part_name(person, name, actor=actor)
    print_counts("anonymised again:", files=changed)


@project.command(short_help="Erase a person for good.")
@take_options
def erase(
    folder: Path = FOLDER,
    person: str = declare_setting(
        REQUIRED, "person to erase: a number that `findings` shows, or a name", option="<PERSON>"
    ),
    *,
    yes: bool = declare_setting(False, "do not ask for confirmation", option="--yes, -y"),
    vault: ProjectVault,
    actor: str = ACTOR,
) -> None:
    """Erase a person from the project for good: from the vault, the sources, their names, and corrections.

    In the sources the name is replaced by [ERASED]. Readings of the documents that change are dropped. Then everything
    is searched again; the exit code is 1 if nobody is found or anything is left. Somebody of the same name gets another
    replacement afterwards. Sheets and copies outside of the folder are not changed.

    \b
    Example:
      allonym project erase study 3 --secret-file study.key
    """
    from allonym.project.erasing import erase_person

    with vault.open_project(folder) as opened:
        if not yes:
            terminal.confirm(f"Permanently erase this person from {folder}?")
        erased = erase_person(opened, person, actor=actor)
    counts = {"places": erased.places, "files": erased.files, "documents": erased.documents, "terms": erased.terms}
    print_counts("erased:", rows=erased.rows, **counts)
    for name in erased.remaining:
        terminal.print_note(name, label="left:")
    if erased.remaining:
        raise terminal.report_failure(f"{len(erased.remaining)} files or releases still name the person")


@project.command(short_help="Review by two people: sheets, states, agreement.")
@take_options
def review(
    folder: Path = FOLDER,
    *,
    export: Path | None = declare_setting(
        None, "write a sheet to fill in, .csv or .jsonl. It holds originals", noun="new file", option="SHEET"
    ),
    read: Path | None = declare_setting(None, "save a sheet that was filled in", noun="file", option="--import SHEET"),
    reviewer: str | None = REVIEWER,
    drawn: int | None = declare_setting(
        None, "with --export: only the first N documents of a random draw, for a promise about all", low=1, option="N"
    ),
    verdict: bool = declare_setting(False, "the sheet decides where two reviewers disagree"),
    done: bool = declare_setting(
        False, "with --import: done with every document of the sheet; words in blank rows count as unseen"
    ),
    overwrite: bool = OVERWRITE,
    vault: ProjectVault,
    json: bool = JSON,
) -> None:
    """Review the documents of a project by two people, blind to each other, the riskiest documents first.

    Without --export and --import: show the documents, and how far the reviewers agree on what both looked at. In a
    sheet, each passage and each finding is a row. The column verdict takes ok for what was looked at, no for a finding
    that is none, and a label for one that has another; the column missed takes TEXT=LABEL for what was missed. What has
    no verdict was not looked at.

    \b
    Examples:
      allonym project review study --export ann.csv --reviewer ann --secret-file study.key
      allonym project review study --import ann.csv --reviewer ann --secret-file study.key
      allonym project review study --export verdict.csv --reviewer rita --verdict --secret-file study.key
      allonym project review study --secret-file study.key
    """
    if export is not None and read is not None:
        raise click.UsageError("--export and --import cannot be combined")
    if (export or read) and not reviewer:
        raise click.UsageError("--reviewer is required with --export and --import")
    from allonym.project.sheets import read_sheet, write_sheet

    with vault.open_project(folder) as opened:
        if export is not None and reviewer:
            if export.exists() and not overwrite:
                raise UsageError(f"{export} exists; --overwrite replaces it")
            count = write_sheet(opened, export, reviewer, is_verdict=verdict, drawn=drawn)
            print_counts("written:", documents=count)
        elif read is not None and reviewer:
            saved = read_sheet(opened, read, reviewer, is_done=done, is_verdict=verdict)
            finished = sum(reading.done for reading, _ in saved.values())
            opened.update()
            print_counts("saved:", readings=len(saved), done=finished)
        else:
            _print_reviews(opened, json)


@project.command(short_help="Tell what the reviews promise about all documents.")
@take_options
def promise(
    folder: Path = FOLDER, *, limit: Limit, vault: ProjectVault, json: bool = JSON, quiet: bool = QUIET
) -> None:
    """Tell which threshold keeps a limit of what is missed in all documents, how sure that is, and what it costs.

    It takes documents of the project's random draw that two reviewers have read wholly: `review --export --drawn N`.
    Corrections do not count, since they came from reading.

    \b
    Examples:
      allonym project review study --export ann.csv --reviewer ann --drawn 60 --secret-file study.key
      allonym project promise study --limit 0.05 --secret-file study.key
    """
    from allonym.project import make_promise

    with vault.open_project(folder) as opened, terminal.show_stage_bar("detecting", enabled=not quiet) as advance:
        result = make_promise(opened, limit.limit, confidence=limit.confidence, unit=limit.unit, advance=advance)
    print_promise(result, json=json)


@project.command(short_help="Write a signed ZIP of all files.")
@take_options
def release(
    folder: Path = FOLDER,
    target: Path | None = declare_setting(
        None, "ZIP to write; by default the next in PROJECT/releases", noun="new file", option="<TARGET>"
    ),
    *,
    unreviewed: bool = declare_setting(
        False, "release although documents are not settled by two reviewers; the manifest says so"
    ),
    incomplete: bool = declare_setting(False, "leave out files and records that cannot be written"),
    cards: bool = declare_setting(
        False, "say in the statement what is left about each person, and how many people fit it; English"
    ),
    overwrite: bool = OVERWRITE,
    workers: int = WORKERS,
    vault: ProjectVault,
    json: bool = JSON,
) -> None:
    """Write all files in their formats under safe names, with a report and a signed manifest of digests, as a ZIP.

    Publish the public key that it prints: whoever has it can verify the release.

    \b
    Examples:
      allonym project release study --secret-file study.key
      allonym project release study for-partners.zip --unreviewed --cards --secret-file study.key
    """
    from allonym.project import write_release

    with vault.open_project(folder) as opened:
        written = write_release(
            opened,
            target,
            unreviewed=unreviewed,
            incomplete=incomplete,
            cards=cards,
            overwrite=overwrite,
            workers=workers,
        )
    if json:
        click.echo(terminal.format_json_line({**to_plain(written), "report": written.report.to_dict()}))
        return
    facts = [
        ("release", written.path),
        ("files", written.files),
        ("settled by two", f"{written.reviewed:,} of {written.documents:,} documents"),
        ("SHA-256", written.sha256),
        ("public key", written.public_key),
    ]
    terminal.print_table(["written", "value"], facts)


@project.command(short_help="Check that a release is whole and signed.")
@take_options
def verify(
    file: Path = declare_setting(REQUIRED, "the release", noun="file", option="<FILE>"),
    *,
    public_key: str | None = declare_setting(
        None, "public key of the project, as its release printed it; without it, only changes are told", option="HEX"
    ),
    json: bool = JSON,
) -> None:
    """Check the signature of a release, and that it holds exactly the files of its manifest. It needs no vault.

    \b
    Examples:
      allonym project verify release-001.zip
      allonym project verify release-001.zip --public-key 1f0c...
    """
    from allonym.project import verify_release

    verified = verify_release(file, public_key)
    if json:
        click.echo(terminal.format_json_line(to_plain(verified)))
        return
    reviewed = verified.manifest["reviewed"]
    whose = "by the key that was named" if verified.is_known_key else f"by the key that it names, {verified.public_key}"
    terminal.print_note(
        f"{file} holds {count_nouns(verified.files, 'file')} of its manifest, signed {whose}; "
        f"{reviewed['settled']:,} of {reviewed['documents']:,} documents were settled by two reviewers",
        label="verified:",
    )


def print_counts(label: str, **counts: int) -> None:
    """Print counts with their nouns on standard error."""
    terminal.print_note(", ".join(f"{name} {count:,}" for name, count in counts.items()), label=label)


def _print_reviews(opened: Project, json: bool) -> None:
    """Show the queue and the agreement of a project."""
    documents = opened.list_documents()
    rows: list[dict[str, Any]] = [
        {
            "document": item.id,
            "state": item.state,
            "risk": item.risk.expected if item.risk else None,
            "findings": len(item.spans),
            "readers": sum(n > 0 for n in seats),
            "because of": ", ".join(reason.tag for reason in item.risk.reasons[:3]) if item.risk else "",
        }
        for item, seats in documents
    ]
    result = opened.measure_reviews()
    if json:
        click.echo(terminal.format_json_line({"documents": rows, "agreement": result.to_dict()}))
        return
    shown = [tuple("" if value is None else value for value in row.values()) for row in rows[:40]]
    terminal.print_table([*rows[0]] if rows else ["document"], shown, right=(2, 3, 4))
    if len(rows) > len(shown):
        terminal.print_note(f"{len(rows) - len(shown):,} more documents; --json lists all")
    click.echo()
    words, agreement = result.words, result.spans
    facts = [
        ("documents read by two", f"{result.documents:,}, the same said of {result.same:,}"),
        ("their words", f"{words.by_both:,} seen by both, {words.by_one:,} by one, {words.by_nobody:,} by nobody"),
        ("agreement", "-" if agreement is None else f"{agreement.kappa.value:.2f} (Cohen's kappa, on what both saw)"),
    ]
    terminal.print_table(["reviews", "value"], facts)
