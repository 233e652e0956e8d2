"""``allonym vault``: the encrypted store of originals and their replacements."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from allonym.cli.options import open_vault, other_secret_options, read_vault_secret, secret_options
from allonym.cli.terminal import json_line, print_note, print_table
from allonym.errors import UsageError, VaultError

if TYPE_CHECKING:
    from allonym.vault import Secret, VaultInfo

F = TypeVar("F", bound=Callable[..., Any])
_FILE = click.Path(dir_okay=False, path_type=Path)

_where = click.argument("where", metavar="VAULT")
_actor = click.option("--actor", default="", metavar="NAME", help="Name for the audit log.")
_new_file = click.option(
    "--new-secret-file",
    type=_FILE,
    metavar="PATH",
    help="Write a new random secret to this file, which must not exist. Only you can read it.",
)
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")


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
@_where
@_new_file
@secret_options
@click.option("--keep-days", type=click.IntRange(1), metavar="N", help="Let entries expire after this number of days.")
@_actor
def init(
    where: str,
    new_secret_file: Path | None,
    secret_file: Path | None,
    secret_env: str | None,
    secret_keyring: str | None,
    keep_days: int | None,
    actor: str,
) -> None:
    """Create a vault. If its secret is lost, so are its contents.

    \b
    Example:
      allonym vault init letters.vault --new-secret-file letters.key --keep-days 365
    """
    from allonym.vault import Vault

    secret = _make_or_read_secret(new_secret_file, secret_file, secret_env, secret_keyring)
    try:
        Vault.create(where, secret, keep_days=keep_days, actor=actor).close()
    except BaseException:
        if new_secret_file is not None:
            new_secret_file.unlink(missing_ok=True)
        raise
    if new_secret_file is not None:
        print_note(
            f"the secret is in {new_secret_file}; keep it apart from the vault, and make a copy of it", label="made:"
        )


@vault.command(short_help="Count the contents of a vault.")
@_where
@secret_options
@_json
def info(
    where: str, secret_file: Path | None, secret_env: str | None, secret_keyring: str | None, as_json: bool
) -> None:
    """Count the contents of a vault, without showing values. The secret is optional; with it, scopes have names.

    With the secret, the column "shared" counts replacements of several entities, which can be restored only with the
    plan of their document.

    \b
    Examples:
      allonym vault info letters.vault
      allonym vault info letters.vault --secret-file letters.key --json
    """
    from allonym.restore import Restorer
    from allonym.vault import Vault

    secret = read_vault_secret(secret_file, secret_env, secret_keyring)
    with Vault.open(where, secret) as opened:
        contents = opened.info()
        shared = {} if opened.locked else {o.name: Restorer(opened.known(o.name)).shared for o in contents.scopes}
    if as_json:
        click.echo(json_line(_describe_contents(contents, shared)))
        return
    retention = f"{contents.keep_days} days" if contents.keep_days else "until purged"
    print_table(
        ["vault", "value"],
        [
            ("where", contents.where),
            ("schema", contents.schema),
            ("created", f"{contents.created:%Y-%m-%d %H:%M} UTC"),
            ("opens with", {"random": "random bytes", "passphrase": "a passphrase"}[contents.key]),
            ("kept", retention),
        ],
    )
    if contents.scopes:
        click.echo()
        rows = [
            (o.name or "(no name)", o.known, o.assigned, o.subjects, o.expired, shared.get(o.name, "-"))
            for o in contents.scopes
        ]
        print_table(["scope", "originals", "choices", "subjects", "expired", "shared"], rows, right=(1, 2, 3, 4, 5))


@vault.command(short_help="Change the secret of a vault.")
@_where
@secret_options
@_new_file
@other_secret_options("to", "The new secret", "")
@click.option("--data", is_flag=True, help="Also change the data key, and encrypt everything again.")
@_actor
def rotate(
    where: str,
    secret_file: Path | None,
    secret_env: str | None,
    secret_keyring: str | None,
    new_secret_file: Path | None,
    to_secret_file: Path | None,
    to_secret_env: str | None,
    to_secret_keyring: str | None,
    data: bool,
    actor: str,
) -> None:
    """Change the secret of a vault. The old secret no longer opens it; anonymised texts can still be restored.

    Use --data if somebody may have had both the vault and its secret: their copies stay readable, but not what is
    written from then on.

    \b
    Example:
      allonym vault rotate letters.vault --secret-file letters.key --new-secret-file letters-2.key
    """
    with open_vault(where, secret_file, secret_env, secret_keyring) as opened:
        # The new secret is safe on disk before it is in force, and stays there whatever happens.
        new = _make_or_read_secret(new_secret_file, to_secret_file, to_secret_env, to_secret_keyring, prefix="to-")
        opened.rotate(new, data=data, actor=actor)
    if new_secret_file is not None:
        print_note(
            f"the secret is in {new_secret_file}; keep it apart from the vault, and make a copy of it", label="made:"
        )


@vault.command(short_help="Delete entries permanently.")
@_where
@secret_options
@click.option("--scope", metavar="NAME", help="Delete only from this scope; without other options, the whole scope.")
@click.option("--subject", metavar="NAME", help="Delete entries that concern only this subject.")
@click.option("--expired", is_flag=True, help="Delete expired entries.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
@_actor
def purge(
    where: str,
    secret_file: Path | None,
    secret_env: str | None,
    secret_keyring: str | None,
    scope: str | None,
    subject: str | None,
    expired: bool,
    yes: bool,
    actor: str,
) -> None:
    """Delete entries permanently, and check that no trace is left. Their replacements can no longer be restored.

    Copies and exports of the vault are not changed.

    \b
    Examples:
      allonym vault purge letters.vault --expired --yes
      allonym vault purge letters.vault --subject patient-17
    """
    from allonym.vault.records import scope_names

    with open_vault(where, secret_file, secret_env, secret_keyring) as opened:
        if subject == "" or (scope is None and subject is None and not expired):
            raise UsageError("--scope, --subject or --expired is required")
        if subject is not None and expired:
            raise UsageError("--subject and --expired cannot be combined")
        scopes = [scope_info.name for scope_info in opened.info().scopes]
        if not yes:
            what = (
                "all expired entries"
                if expired
                else "all entries of this subject"
                if subject is not None
                else "this whole scope"
            )
            click.confirm(f"Permanently delete {what} from {where}?", abort=True, err=True)
        # Purge even if nothing matches: an earlier purge may have left traces, which this one removes.
        summary = opened.purge(scope=scope, subject=subject, expired=expired, actor=actor)
    if scope is not None and scope not in scopes:
        raise VaultError(f"{where} has no scope {scope!r}; it has: {scope_names(scopes)}")
    if subject is not None and not summary.subjects:
        raise VaultError("nothing of this subject is in the vault" + (f" in scope {scope!r}" if scope else ""))
    counts = (
        f"{summary.known} originals, {summary.assigned} choices, {summary.subjects} subjects, {summary.scopes} scopes"
    )
    trace = "no trace left in its files" if summary.checked == "files" else "none left in its tables"
    print_note(f"{counts}; {trace}", label="deleted:")


@vault.command(short_help="Write a vault to one encrypted file.")
@_where
@click.argument("file", metavar="FILE", type=_FILE)
@secret_options
@other_secret_options("to", "The file's secret", " By default the vault's own.")
@click.option("--overwrite", is_flag=True, help="Replace an existing FILE.")
@_actor
def export(
    where: str,
    file: Path,
    secret_file: Path | None,
    secret_env: str | None,
    secret_keyring: str | None,
    to_secret_file: Path | None,
    to_secret_env: str | None,
    to_secret_keyring: str | None,
    overwrite: bool,
    actor: str,
) -> None:
    """Write a whole vault to one encrypted file, to move it or as a backup.

    \b
    Example:
      allonym vault export letters.vault letters.export --secret-file letters.key
    """
    with open_vault(where, secret_file, secret_env, secret_keyring) as opened:
        secret = read_vault_secret(to_secret_file, to_secret_env, to_secret_keyring, prefix="to-")
        secret = secret or read_vault_secret(secret_file, secret_env, secret_keyring)
        assert secret is not None  # the vault is open
        _check_apart(file, secret_file, to_secret_file)
        count = opened.export(file, secret, overwrite=overwrite, actor=actor)
    print_note(f"{count} rows in {file}", label="written:")


@vault.command(short_help="Write digests of the originals, to check a model's outputs.")
@_where
@click.option(
    "-o", "--output", required=True, type=_FILE, metavar="FILE", help="File for the digests. Only you can read it."
)
@secret_options
@click.option("--scope", metavar="NAME", help="Only the originals of this scope.")
@click.option("--overwrite", is_flag=True, help="Replace an existing FILE.")
@_actor
def digests(
    where: str,
    output: Path,
    secret_file: Path | None,
    secret_env: str | None,
    secret_keyring: str | None,
    scope: str | None,
    overwrite: bool,
    actor: str,
) -> None:
    """Write keyed digests of all originals and their variants, with their key, for `allonym evaluate generations`.

    The file contains no text and does not open the vault, but whoever has it can test whether a name is in the vault.

    \b
    Example:
      allonym vault digests letters.vault --secret-file letters.key -o letters.digests
    """
    from allonym.vault.records import scope_names

    with open_vault(where, secret_file, secret_env, secret_keyring) as opened:
        scopes = [scope_info.name for scope_info in opened.info().scopes]
        if scope is not None and scope not in scopes:
            raise VaultError(f"{where} has no scope {scope!r}; it has: {scope_names(scopes)}")
        _check_apart(output, secret_file)
        count = opened.write_digests(output, scope=scope, overwrite=overwrite, actor=actor)
    print_note(f"digests of {count:,} originals in {output}; whoever has it can test names", label="written:")


def _check_apart(file: Path, *secrets: Path | None) -> None:
    if any(secret is not None and secret.resolve() == file.resolve() for secret in secrets):
        raise UsageError(f"{file} contains the secret and is not overwritten")


@vault.command("import", short_help="Import the export of another vault.")
@_where
@click.argument("file", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@secret_options
@other_secret_options("from", "The file's secret", " By default the vault's own.")
@click.option("--rename", multiple=True, metavar="OLD=NEW", help="Import a scope under another name. Repeatable.")
@_actor
def import_(
    where: str,
    file: Path,
    secret_file: Path | None,
    secret_env: str | None,
    secret_keyring: str | None,
    from_secret_file: Path | None,
    from_secret_env: str | None,
    from_secret_keyring: str | None,
    rename: tuple[str, ...],
    actor: str,
) -> None:
    """Import the export of another vault: all of it, or nothing if there is an error.

    Entries that this vault already has stay unchanged. Entries that contradict them are left out and counted as
    conflicts.

    \b
    Example:
      allonym vault import letters.vault branch.export --secret-file letters.key --from-secret-file branch.key
    """
    names = {}
    for pair in rename:
        old, equals, new = pair.partition("=")
        if not equals:
            raise UsageError(f"--rename needs OLD=NEW, got {pair!r}")
        names[old] = new
    with open_vault(where, secret_file, secret_env, secret_keyring) as opened:
        secret = read_vault_secret(from_secret_file, from_secret_env, from_secret_keyring, prefix="from-")
        secret = secret or read_vault_secret(secret_file, secret_env, secret_keyring)
        assert secret is not None  # the vault is open
        summary = opened.import_(file, secret, rename=names, actor=actor)
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
@_where
@secret_options
@_json
def audit(
    where: str, secret_file: Path | None, secret_env: str | None, secret_keyring: str | None, as_json: bool
) -> None:
    """Show the audit log, after checking its integrity. It contains no text, no subject and no replacement.

    \b
    Example:
      allonym vault audit letters.vault --secret-file letters.key
    """
    with open_vault(where, secret_file, secret_env, secret_keyring) as opened:
        lines = opened.audit()
    if as_json:
        for entry in lines:
            row = {"number": entry.number, "time": entry.time.isoformat(), "action": entry.action, "scope": entry.scope}
            click.echo(json_line({**row, "actor": entry.actor, "counts": dict(entry.counts)}))
        return
    rows = [
        (
            f"{entry.time:%Y-%m-%d %H:%M:%S}",
            entry.action,
            entry.scope or "-",
            entry.actor or "-",
            ", ".join(f"{name} {count}" for name, count in entry.counts.items()) or "-",
        )
        for entry in lines
    ]
    print_table(["time (UTC)", "action", "scope", "actor", "counts"], rows, wrap=4)


def _make_or_read_secret(
    new_file: Path | None, file: Path | None, environment: str | None, keyring: str | None, *, prefix: str = ""
) -> Secret:
    """Return a new secret, written to its file, or the one that the options name.

    Raises:
        UsageError: neither is named, or both.
    """
    from allonym.vault import new_secret, read_secret

    if new_file is None:
        secret = read_vault_secret(file, environment, keyring, prefix=prefix)
        if secret is None:
            either = "" if prefix else ", or ALLONYM_VAULT_KEY"
            raise UsageError(f"a secret is required: --new-secret-file, --{prefix}secret-file or -keyring{either}")
        return secret
    if file is not None or environment is not None or keyring is not None:
        raise UsageError(
            f"--new-secret-file makes a secret and --{prefix}secret-... names one; they cannot be combined"
        )
    line = new_secret()
    try:
        opened = os.open(new_file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        raise UsageError(f"{new_file} exists already; --new-secret-file needs a new file") from None
    with open(opened, "w", encoding="utf-8") as out:
        out.write(line + "\n")
        out.flush()
        os.fsync(out.fileno())
    return read_secret(line, str(new_file))


def _describe_contents(contents: VaultInfo, shared: Mapping[str, int]) -> dict[str, object]:
    scopes = [
        {"scope": o.name, "known": o.known, "assigned": o.assigned, "subjects": o.subjects, "expired": o.expired}
        | {"shared": shared.get(o.name)}
        for o in contents.scopes
    ]
    top = {
        "where": contents.where,
        "schema": contents.schema,
        "created": contents.created.isoformat(),
        "key": contents.key,
    }
    return {**top, "keep_days": contents.keep_days, "scopes": scopes}
