"""``allonym vault``: the encrypted store that knows which replacement stands for which original."""

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
_actor = click.option("--actor", default="", metavar="NAME", help="Who does this, for the audit log.")
_new_file = click.option(
    "--new-secret-file",
    type=_FILE,
    metavar="PATH",
    help="Make a random secret and write it into this file, which must not exist yet. Only you can read it.",
)
_json = click.option("--json", "as_json", is_flag=True, help="JSON in place of a table.")


@click.group(short_help="Keep originals, encrypted, and bring them back.")
def vault() -> None:
    """The vault knows which replacement stands for which original. Everything in it is encrypted.

    VAULT is a path (SQLite) or the URL of a database, such as postgresql://user@host/name.

    \b
    Examples:
      allonym vault init letters.vault --new-secret-file letters.key
      allonym anonymize letters/ safe/ --vault letters.vault --secret-file letters.key
      allonym vault info letters.vault --secret-file letters.key
    """


@vault.command(short_help="Make a vault.")
@_where
@_new_file
@secret_options
@click.option("--keep-days", type=click.IntRange(1), metavar="N", help="What is written expires after so many days.")
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
    """Make a vault. Whoever loses its secret loses all that is in it.

    \b
    Example:
      allonym vault init letters.vault --new-secret-file letters.key --keep-days 365
    """
    from allonym.vault import Vault

    secret = _new_secret(new_secret_file, secret_file, secret_env, secret_keyring)
    try:
        Vault.create(where, secret, keep_days=keep_days, actor=actor).close()
    except BaseException:
        if new_secret_file is not None:
            new_secret_file.unlink(missing_ok=True)
        raise
    if new_secret_file is not None:
        print_note(f"the secret is in {new_secret_file}; keep it apart from the vault, and a copy of it", label="made:")


@vault.command(short_help="What a vault holds, in numbers.")
@_where
@secret_options
@_json
def info(
    where: str, secret_file: Path | None, secret_env: str | None, secret_keyring: str | None, as_json: bool
) -> None:
    """What a vault holds, in numbers, never a value. It needs no secret; with it, scopes are shown by their names.

    The column "shared", only with the secret: replacements that stand for the originals of several entities, so that
    they come back only with the plan of their document.

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
        click.echo(json_line(_as_dict(contents, shared)))
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


@vault.command(short_help="Give a vault another secret.")
@_where
@secret_options
@_new_file
@other_secret_options("to", "The secret that it is to have", "")
@click.option("--data", is_flag=True, help="Change the data key too, and encrypt everything once more.")
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
    """Give a vault another secret; the one before does not open it any more. Texts and replacements stay as they are.

    Use --data where somebody may have had both the vault and its secret: copies that they made stay readable, what is
    written from then on is not.

    \b
    Example:
      allonym vault rotate letters.vault --secret-file letters.key --new-secret-file letters-2.key
    """
    with open_vault(where, secret_file, secret_env, secret_keyring) as opened:
        # The new secret is safe on disk before it is in force, and stays there whatever happens.
        new = _new_secret(new_secret_file, to_secret_file, to_secret_env, to_secret_keyring, prefix="to-")
        opened.rotate(new, data=data, actor=actor)
    if new_secret_file is not None:
        print_note(f"the secret is in {new_secret_file}; keep it apart from the vault, and a copy of it", label="made:")


@vault.command(short_help="Delete for good.")
@_where
@secret_options
@click.option("--scope", metavar="NAME", help="Only in this scope; with nothing else, all of it.")
@click.option("--subject", metavar="NAME", help="What was written about this subject alone.")
@click.option("--expired", is_flag=True, help="What is past its time.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
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
    """Delete for good, and check that nothing of it is left in the file. Its replacements cannot be undone any more.

    Copies of the vault and exports are out of reach.

    \b
    Examples:
      allonym vault purge letters.vault --expired --yes
      allonym vault purge letters.vault --subject patient-17
    """
    from allonym.vault.records import scope_names

    with open_vault(where, secret_file, secret_env, secret_keyring) as opened:
        if subject == "" or (scope is None and subject is None and not expired):
            raise UsageError("what to delete is required: --scope, --subject or --expired")
        if subject is not None and expired:
            raise UsageError("--subject and --expired do not go together")
        scopes = [scope_info.name for scope_info in opened.info().scopes]
        if not yes:
            what = (
                "what has expired" if expired else "all of this subject" if subject is not None else "this whole scope"
            )
            click.confirm(f"Delete {what} from {where} for good?", abort=True, err=True)
        # Also where there is nothing: the purge before may have left traces, which this one removes.
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


@vault.command(short_help="All of a vault in one encrypted file.")
@_where
@click.argument("file", metavar="FILE", type=_FILE)
@secret_options
@other_secret_options("to", "The file's secret", " By default the vault's own.")
@click.option("--overwrite", is_flag=True, help="Replace a FILE that exists.")
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
    """Write all of a vault into one encrypted file, for another place or as a backup.

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


@vault.command(short_help="What checks a model's outputs for originals, without any original.")
@_where
@click.option("-o", "--output", required=True, type=_FILE, metavar="FILE", help="The digests. Only you can read it.")
@secret_options
@click.option("--scope", metavar="NAME", help="Only of this scope.")
@click.option("--overwrite", is_flag=True, help="Replace a FILE that exists.")
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
    """Write keyed digests of all originals and their variants, with their key, for: allonym evaluate generations.

    The file opens no vault and holds no text, but whoever has it can try out names: give it to those who check.

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
    print_note(f"digests of {count:,} originals in {output}; whoever has it can try out names", label="written:")


def _check_apart(file: Path, *secrets: Path | None) -> None:
    if any(secret is not None and secret.resolve() == file.resolve() for secret in secrets):
        raise UsageError(f"{file} holds the secret, which is not written over")


@vault.command("import", short_help="Bring in what another vault exported.")
@_where
@click.argument("file", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@secret_options
@other_secret_options("from", "The file's secret", " By default the vault's own.")
@click.option("--rename", multiple=True, metavar="OLD=NEW", help="Give a scope another name here. Repeatable.")
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
    """Bring in what another vault exported: all of it, or nothing where anything is wrong.

    What this vault has already stays as it is. Where the file says otherwise, that is counted as a conflict and left
    out.

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
        f"{summary.known} originals and {summary.assigned} choices; {summary.same} were here already", label="imported:"
    )
    if summary.conflicts:
        print_note(
            f"{summary.conflicts} choices were left out: this vault decided otherwise; --rename keeps scopes apart"
        )
    if summary.ambiguous:
        print_note(f"{summary.ambiguous} replacements stand for more than one referent here; they will not be restored")


@vault.command(short_help="Who did what.")
@_where
@secret_options
@_json
def audit(
    where: str, secret_file: Path | None, secret_env: str | None, secret_keyring: str | None, as_json: bool
) -> None:
    """Show the audit log, after checking that nobody changed it. It holds no text, no subject and no replacement.

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


def _new_secret(
    new_file: Path | None, file: Path | None, environment: str | None, keyring: str | None, *, prefix: str = ""
) -> Secret:
    """A fresh secret, written into its file, or the one that the options name.

    Raises:
        UsageError: none is named, or both.
    """
    from allonym.vault import new_secret, read_secret

    if new_file is None:
        secret = read_vault_secret(file, environment, keyring, prefix=prefix)
        if secret is None:
            either = "" if prefix else ", or ALLONYM_VAULT_KEY"
            raise UsageError(f"a secret is required: --new-secret-file, --{prefix}secret-file or -keyring{either}")
        return secret
    if file is not None or environment is not None or keyring is not None:
        raise UsageError(f"--new-secret-file makes a secret; --{prefix}secret-... names one; give one of both")
    line = new_secret()
    try:
        opened = os.open(new_file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        raise UsageError(f"{new_file} exists; --new-secret-file writes only a new file") from None
    with open(opened, "w", encoding="utf-8") as out:
        out.write(line + "\n")
        out.flush()
        os.fsync(out.fileno())
    return read_secret(line, str(new_file))


def _as_dict(contents: VaultInfo, shared: Mapping[str, int]) -> dict[str, object]:
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
