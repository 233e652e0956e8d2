"""``allonym people``: the register of the people in a vault's scope."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from allonym.cli.options import FIRST_PERSON, JSON, PERSON, PERSON_NAME, SAME_PERSON, SecretChoice
from allonym.cli.signatures import take_options
from allonym.cli.terminal import confirm, format_json_line, print_note, print_table
from allonym.cli.vault import ACTOR, VAULT
from allonym.errors import DataError
from allonym.settings import REQUIRED, declare_setting

if TYPE_CHECKING:
    from allonym.vault import RegisteredPerson

SCOPE = declare_setting("", "scope of the vault", option="NAME")
_HEADINGS = frozenset({"name", "names", "person", "people"})


@click.group(short_help="Manage the register of people.")
def people() -> None:
    """Manage the people register of a vault's scope: who has which names.

    Documents that are anonymised with the vault follow the register: a person has one replacement in all of them.
    PERSON is the number that `list` shows, or a name. A name stays in your shell's history; a number tells nothing.

    \b
    Examples:
      allonym people list study.vault --scope study --secret-file study.key
      allonym people join study.vault 3 7 --scope study --secret-file study.key
    """


@people.command("list", short_help="List the people of a scope.")
@take_options
def list_(where: str = VAULT, *, scope: str = SCOPE, secret: SecretChoice, json: bool = JSON) -> None:
    """List the people of a scope: number, name, other names, documents, and replacement.

    \b
    Example:
      allonym people list study.vault --scope study --secret-file study.key
    """
    from allonym.vault.people import list_people

    with secret.open_vault(where) as opened:
        listed = list_people(opened, scope)
    if json:
        for person in listed:
            click.echo(format_json_line(_describe_person(person)))
        return
    rows = [
        (
            person.number,
            person.names[0],
            ", ".join(person.names[1:]) or "-",
            person.documents,
            person.replacement or "-",
        )
        for person in listed
    ]
    print_table(["number", "name", "other names", "documents", "replacement"], rows, right=(0, 3), wrap=2)


@people.command(short_help="Make two people one.")
@take_options
def join(
    where: str = VAULT,
    first: str = FIRST_PERSON,
    second: str = SAME_PERSON,
    *,
    scope: str = SCOPE,
    secret: SecretChoice,
    actor: str = ACTOR,
) -> None:
    """Make two people of the register one, with all names of both and the replacement of the first.

    Documents that are anonymised from now on follow; anonymise earlier ones again to change them.

    \b
    Example:
      allonym people join study.vault 3 7 --scope study --secret-file study.key
    """
    from allonym.vault.people import join_people

    with secret.open_vault(where) as opened:
        person = join_people(opened, scope, first, second, actor=actor)
    print_note(f"person {person.number} has {len(person.names)} names", label="joined:")


@people.command(short_help="Give a name of a person to somebody else.")
@take_options
def part(
    where: str = VAULT,
    person: str = PERSON,
    name: str = PERSON_NAME,
    *,
    scope: str = SCOPE,
    secret: SecretChoice,
    actor: str = ACTOR,
) -> None:
    """Take a name from a person of the register and make it the name of a new one.

    \b
    Example:
      allonym people part study.vault 3 "Margaret" --scope study --secret-file study.key
    """
    from allonym.vault.people import part_name

    with secret.open_vault(where) as opened:
        new = part_name(opened, scope, person, name, actor=actor)
    print_note(f"the name is that of person {new.number} now", label="parted:")


@people.command("import", short_help="Enter people from a CSV file.")
@take_options
def import_(
    where: str = VAULT,
    file: Path = declare_setting(REQUIRED, "CSV file", noun="file", option="<FILE>"),
    *,
    scope: str = SCOPE,
    secret: SecretChoice,
    actor: str = ACTOR,
) -> None:
    """Enter people from a CSV file: in each row the name of a person, then other names of the same person.

    A first row that begins with "name" is a heading. People whom the register knows by one of the names get the others
    too. All rows are entered, or none if there is an error.

    \b
    Example:
      allonym people import study.vault people.csv --scope study --secret-file study.key
    """
    from allonym.vault.people import import_people

    with secret.open_vault(where) as opened:
        counts = import_people(opened, scope, _read_rows(file), actor=actor)
    print_note(f"{counts.new} people are new, {counts.extended} have more names, {counts.same} did not change")


@people.command(short_help="Erase a person from the vault and from files.")
@take_options
def erase(
    where: str = VAULT,
    person: str = declare_setting(REQUIRED, "person to erase", option="<PERSON>"),
    *,
    scope: str | None = declare_setting(None, "only from this scope; a number needs it", option="NAME"),
    secret: SecretChoice,
    within: tuple[Path, ...] = declare_setting(
        (), "also cover the person in this file, or in all files of this folder", noun="path", option="--in PATH"
    ),
    yes: bool = declare_setting(False, "do not ask for confirmation", option="--yes, -y"),
    actor: str = ACTOR,
) -> None:
    """Erase a person for good: from the register, the originals and the plans of all subjects, and from files.

    In files, sources and outputs, the person's names are replaced by [ERASED]; plans lose the person's edits. Then the
    vault and all these files are searched once more. The rest of each document can still be restored. Somebody of the
    same name gets another replacement afterwards. The exit code is 1 if nobody is found or anything is left.

    \b
    Example:
      allonym people erase study.vault 3 --scope study --in interviews --in safe --secret-file study.key
    """
    from allonym.files.erasing import erase_person

    with secret.open_vault(where) as opened:
        if scope is not None:
            from allonym.vault.people import check_scope

            check_scope(opened, scope)
        if not yes:
            places = "".join(f" and {path}" for path in within)
            confirm(f"Permanently erase this person from {where}{places}?")
        erasure = erase_person(opened, person, scope=scope, paths=within, actor=actor)
    erased, files = erasure.vault, erasure.files
    checked = "no trace left in its files" if erased.purged.checked == "files" else "none left in its tables"
    summary = f"{erased.rows} rows of the vault, {erased.edits} edits in the plans of {erased.documents} documents"
    print_note(f"{summary}; {checked}", label="erased:")
    if within:
        summary = f"{files.places} places in {files.changed} of {files.files} files"
        print_note(f"{summary}; all were searched again", label="erased:")
    for name, reason in files.leftovers:
        print_note(f"{name}: {reason}", label="left:")
    if files.named:
        print_note(f"the names of {files.named} files or folders hold the person's; rename them", label="left:")
    if files.leftovers or files.named:
        raise DataError(f"the person is not erased everywhere: {len(files.leftovers) + files.named} files remain")


def _read_rows(file: Path) -> Iterator[list[str]]:
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            for number, row in enumerate(csv.reader(stream)):
                if number or not row or row[0].strip().casefold() not in _HEADINGS:
                    yield row
    except (UnicodeDecodeError, csv.Error):
        raise DataError(f"{file} is no CSV file in UTF-8") from None


def _describe_person(person: RegisteredPerson) -> dict[str, object]:
    """Return a person, ready for JSON."""
    return {
        "number": person.number,
        "names": list(person.names),
        "documents": person.documents,
        "replacement": person.replacement,
    }
