"""``allonym vault``: the encrypted store of originals and their replacements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from allonym.cli.options import JSON, OVERWRITE, FromSecret, SecretChoice, ToSecret, declare_output
from allonym.cli.signatures import take_options
from allonym.cli.terminal import confirm, format_json_line, print_note, print_table
from allonym.errors import UsageError, VaultError
from allonym.partfile import write_file
from allonym.settings import REQUIRED, declare_setting

if TYPE_CHECKING:
    from allonym.vault import Secret, Vault, VaultInfo

VAULT = declare_setting(REQUIRED, "path or URL of the vault", option="<VAULT>")
ACTOR = declare_setting("", "name for the audit log", option="NAME")
NEW_SECRET_FILE = declare_setting(
    None,
    "write a new random secret to this file, which must not exist. Only you can read it",
    noun="new file",
    option="PATH",
)


@click.group(short_help="Manage the encrypted store of originals.")
def vault() -> None:
    """Manage vaults: encrypted stores of originals and their replacements.

    VAULT is a path (SQLite) or the URL of a database, such as postgresql://user@host/name.

    \b
    Examples:
      allonym vault init letters.vault --new-secret-file letters.key
      allonym anonymize letters/ safe/ --vault letters.vault --secret-file letters.key
      allonym vault info letters.vault --secret-file letters.key
    """


@vault.command(short_help="Create a vault.")
@take_options
def init(
    where: str = VAULT,
    *,
    new_secret_file: Path | None = NEW_SECRET_FILE,
    secret: SecretChoice,
    keep_days: int | None = declare_setting(None, "let entries expire after this number of days", low=1, option="N"),
    actor: str = ACTOR,
) -> None:
    """Create a vault. If its secret is lost, so are its contents.

    \b
    Example:
      allonym vault init letters.vault --new-secret-file letters.key --keep-days 365
    """
    from allonym.vault import Vault

    with open_secret_of_new_vault(new_secret_file, secret) as vault_secret:
        Vault.create(where, vault_secret, keep_days=keep_days, actor=actor).close()


@vault.command(short_help="Count the contents of a vault.")
@take_options
def info(where: str = VAULT, *, secret: SecretChoice, json: bool = JSON) -> None:
    """Count the contents of a vault, without showing values. The secret is optional; with it, scopes have names.

    With the secret, the column "shared" counts replacements of several entities, which can be restored only with the
    plan of their document.

    \b
    Examples:
      allonym vault info letters.vault
      allonym vault info letters.vault --secret-file letters.key --json
    """
    from allonym.restoration import Restorer
    from allonym.vault import Vault

    with Vault.open(where, secret.read_secret()) as opened:
        contents = opened.info()
        shared = {} if opened.locked else {o.name: Restorer(opened.known(o.name)).shared for o in contents.scopes}
    if json:
        click.echo(format_json_line(_describe_contents(contents, shared)))
        return
    key = {"random": "random bytes", "passphrase": "a passphrase"}[contents.key]
    facts = [
        ("where", contents.where),
        ("schema", contents.schema),
        ("created", f"{contents.created:%Y-%m-%d %H:%M} UTC"),
        ("opens with", key),
        ("kept", f"{contents.keep_days} days" if contents.keep_days else "until purged"),
    ]
    print_table(["vault", "value"], facts)
    if contents.scopes:
        click.echo()
        rows = [
            (o.name or "(no name)", o.known, o.assigned, o.subjects, o.expired, shared.get(o.name, "-"))
            for o in contents.scopes
        ]
        print_table(["scope", "originals", "choices", "subjects", "expired", "shared"], rows, right=(1, 2, 3, 4, 5))


@vault.command(short_help="Change the secret of a vault.")
@take_options
def rotate(
    where: str = VAULT,
    *,
    secret: SecretChoice,
    new_secret_file: Path | None = NEW_SECRET_FILE,
    to_secret: ToSecret,
    data: bool = declare_setting(False, "also change the data key, and encrypt everything again"),
    actor: str = ACTOR,
) -> None:
    """Change the secret of a vault. The old secret no longer opens it; anonymised texts can still be restored.

    Use --data if somebody may have had both the vault and its secret: their copies stay readable, but not what is
    written from then on.

    \b
    Example:
      allonym vault rotate letters.vault --secret-file letters.key --new-secret-file letters-2.key
    """
    with secret.open_vault(where) as opened:
        # The new secret is safe on disk before it is in force, and stays there whatever happens.
        opened.rotate(_make_or_read_secret(new_secret_file, to_secret), data=data, actor=actor)
    _print_new_secret_note(new_secret_file)


@vault.command(short_help="Delete entries permanently.")
@take_options
def purge(
    where: str = VAULT,
    *,
    secret: SecretChoice,
    scope: str | None = declare_setting(
        None, "delete only from this scope; without other options, the whole scope", option="NAME"
    ),
    subject: str | None = declare_setting(None, "delete entries that concern only this subject", option="NAME"),
    expired: bool = declare_setting(False, "delete expired entries"),
    yes: bool = declare_setting(False, "do not ask for confirmation", option="--yes, -y"),
    actor: str = ACTOR,
) -> None:
    """Delete entries permanently, and check that no trace is left. Their replacements can no longer be restored.

    Copies and exports of the vault are not changed.

    \b
    Examples:
      allonym vault purge letters.vault --expired --yes
      allonym vault purge letters.vault --subject patient-17
    """
    with secret.open_vault(where) as opened:
        if subject == "" or (scope is None and subject is None and not expired):
            raise UsageError("--scope, --subject or --expired is required")
        if subject is not None and expired:
            raise UsageError("--subject and --expired cannot be combined")
        scopes = _list_scope_names(opened)
        if not yes:
            what = "all entries of this subject" if subject is not None else "this whole scope"
            what = "all expired entries" if expired else what
            confirm(f"Permanently delete {what} from {where}?")
        # Purge even if nothing matches: an earlier purge may have left traces, which this one removes.
        summary = opened.purge(scope=scope, subject=subject, expired=expired, actor=actor)
    _check_scope_exists(where, scope, scopes)
    if subject is not None and not summary.subjects:
        raise VaultError("nothing of this subject is in the vault" + (f" in scope {scope!r}" if scope else ""))
    counts = (
        f"originals {summary.known}, choices {summary.assigned}, people {summary.people}, subjects {summary.subjects}, "
        f"scopes {summary.scopes}"
    )
    trace = "no trace left in its files" if summary.checked == "files" else "none left in its tables"
    print_note(f"{counts}; {trace}", label="deleted:")


@vault.command(short_help="Write a vault to one encrypted file.")
@take_options
def export(
    where: str = VAULT,
    file: Path = declare_setting(REQUIRED, "file to write", noun="new file", option="<FILE>"),
    *,
    secret: SecretChoice,
    to_secret: ToSecret,
    overwrite: bool = OVERWRITE,
    actor: str = ACTOR,
) -> None:
    """Write a whole vault to one encrypted file, to move it or as a backup.

    \b
    Example:
      allonym vault export letters.vault letters.export --secret-file letters.key
    """
    with secret.open_vault(where) as opened:
        file_secret = to_secret.read_secret() or secret.read_secret()
        assert file_secret is not None  # the vault is open
        _check_not_secret(file, secret.file, to_secret.file)
        count = opened.export(file, file_secret, overwrite=overwrite, actor=actor)
    print_note(f"{count} rows in {file}", label="written:")


@vault.command(short_help="Write digests of the originals, to check a model's outputs.")
@take_options
def digests(
    where: str = VAULT,
    *,
    output: Path = declare_output(REQUIRED, "new file"),
    secret: SecretChoice,
    scope: str | None = declare_setting(None, "only the originals of this scope", option="NAME"),
    overwrite: bool = OVERWRITE,
    actor: str = ACTOR,
) -> None:
    """Write keyed digests of all originals and their variants, with their key, for `allonym evaluate generations`.

    The file contains no text and does not open the vault, but whoever has it can test whether a name is in the vault.

    \b
    Example:
      allonym vault digests letters.vault --secret-file letters.key -o letters.digests
    """
    with secret.open_vault(where) as opened:
        _check_scope_exists(where, scope, _list_scope_names(opened))
        _check_not_secret(output, secret.file)
        count = opened.write_digests(output, scope=scope, overwrite=overwrite, actor=actor)
    print_note(f"digests of {count:,} originals in {output}; whoever has it can test names", label="written:")


def _list_scope_names(opened: Vault) -> list[str]:
    return [scope.name for scope in opened.info().scopes]


def _check_scope_exists(where: str, scope: str | None, scopes: list[str]) -> None:
    from allonym.vault.records import format_scope_names

    if scope is not None and scope not in scopes:
        raise VaultError(f"{where} has no scope {scope!r}; it has: {format_scope_names(scopes)}")


def _check_not_secret(file: Path, *secrets: Path | None) -> None:
    if any(secret is not None and secret.resolve() == file.resolve() for secret in secrets):
        raise UsageError(f"{file} contains the secret and is not overwritten")


@vault.command("import", short_help="Import the export of another vault.")
@take_options
def import_(
    where: str = VAULT,
    file: Path = declare_setting(REQUIRED, "file to read", noun="file", option="<FILE>"),
    *,
    secret: SecretChoice,
    from_secret: FromSecret,
    rename: Mapping[str, str] = declare_setting({}, "import a scope under another name", option="OLD=NEW"),
    actor: str = ACTOR,
) -> None:
    """Import the export of another vault: all of it, or nothing if there is an error.

    Entries that this vault already has stay unchanged. Entries that contradict them are left out and counted as
    conflicts.

    \b
    Example:
      allonym vault import letters.vault branch.export --secret-file letters.key --from-secret-file branch.key
    """
    with secret.open_vault(where) as opened:
        file_secret = from_secret.read_secret() or secret.read_secret()
        assert file_secret is not None  # the vault is open
        summary = opened.import_(file, file_secret, rename=rename, actor=actor)
    print_note(
        f"{summary.known} originals and {summary.assigned} choices; {summary.same} existed already", label="imported:"
    )
    if summary.conflicts:
        print_note(
            f"{summary.conflicts} choices conflict with this vault and were left out; --rename keeps scopes apart"
        )
    if summary.ambiguous:
        print_note(f"{summary.ambiguous} replacements stand for several entities and will not be restored")


@vault.command(short_help="Show the audit log.")
@take_options
def audit(where: str = VAULT, *, secret: SecretChoice, json: bool = JSON) -> None:
    """Show the audit log, after checking its integrity. It contains no text, no subject and no replacement.

    \b
    Example:
      allonym vault audit letters.vault --secret-file letters.key
    """
    with secret.open_vault(where) as opened:
        lines = opened.audit()
    if json:
        for entry in lines:
            row = {"number": entry.number, "time": entry.time.isoformat(), "action": entry.action, "scope": entry.scope}
            click.echo(format_json_line({**row, "actor": entry.actor, "counts": dict(entry.counts)}))
        return
    rows = []
    for entry in lines:
        counts = ", ".join(f"{name} {count}" for name, count in entry.counts.items())
        named = (text or "-" for text in (entry.scope, entry.actor, counts))
        rows.append((f"{entry.time:%Y-%m-%d %H:%M:%S}", entry.action, *named))
    print_table(["time (UTC)", "action", "scope", "actor", "counts"], rows, wrap=4)


@contextmanager
def open_secret_of_new_vault(new_file: Path | None, choice: SecretChoice) -> Iterator[Secret]:
    """Yield the secret for a vault that is made meanwhile; if that fails, the file of a new secret is removed.

    Raises:
        UsageError: neither a new file nor a secret is named, or both.
    """
    secret = _make_or_read_secret(new_file, choice)
    try:
        yield secret
    except BaseException:
        if new_file is not None:
            new_file.unlink(missing_ok=True)
        raise
    _print_new_secret_note(new_file)


def _make_or_read_secret(new_file: Path | None, choice: SecretChoice) -> Secret:
    """Return a new secret, written to its file, or the one that the options name.

    Raises:
        UsageError: neither is named, or both.
    """
    from allonym.vault import new_secret, read_secret

    if new_file is None:
        secret = choice.read_secret()
        if secret is None:
            either = "" if choice.PREFIX else ", or ALLONYM_VAULT_KEY"
            names = f"--new-secret-file, --{choice.PREFIX}secret-file or -keyring{either}"
            raise UsageError(f"a secret is required: {names}")
        return secret
    if named := choice.list_options():
        raise UsageError(f"--new-secret-file makes a secret and {named[0]} names one; they cannot be combined")
    line = new_secret()
    try:
        write_file(new_file, f"{line}\n".encode(), private=True, replaces=False, makes_folders=False)
    except FileExistsError:
        raise UsageError(f"{new_file} exists already; --new-secret-file needs a new file") from None
    return read_secret(line, str(new_file))


def _print_new_secret_note(file: Path | None) -> None:
    if file is not None:
        print_note(f"the secret is in {file}; keep it apart from the vault, and make a copy of it", label="made:")


def _describe_contents(contents: VaultInfo, shared: Mapping[str, int]) -> dict[str, object]:
    """Return the contents, ready for JSON."""
    counts = ("known", "assigned", "subjects", "expired")
    scopes = [
        {"scope": o.name, **{name: getattr(o, name) for name in counts}, "shared": shared.get(o.name)}
        for o in contents.scopes
    ]
    created = contents.created.isoformat()
    top = {"where": contents.where, "schema": contents.schema, "created": created, "key": contents.key}
    return {**top, "keep_days": contents.keep_days, "scopes": scopes}
