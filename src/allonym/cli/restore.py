"""``allonym restore``: bring originals back."""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from allonym.cli.options import key_option, open_vault, read_key, vault_options
from allonym.cli.reading import decode_text, print_terminal_note, stdin_bytes
from allonym.cli.terminal import print_note, write_output
from allonym.errors import DataError, UsageError

if TYPE_CHECKING:
    from allonym.restore import Restored
    from allonym.vault import Vault

_PLAN = "Plan of this text, as `allonym anonymize --plans PATH --originals` writes it."


@click.command(short_help="Restore the originals of an anonymised text.")
@click.argument("source", metavar="FILE|FOLDER|-")
@click.option("--plan", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="PATH", help=_PLAN)
@key_option
@vault_options
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="TARGET",
    help="File to write; by default standard output. For a folder, a folder.",
)
@click.option("--overwrite", is_flag=True, help="Replace an existing TARGET.")
@click.option("--actor", metavar="NAME", help="With --vault: name for the audit log; by default your login.")
@click.option("--stream", is_flag=True, help="Write text as soon as it is decided, while more arrives; counts nothing.")
@click.option("--explain", is_flag=True, help="List each restored mention with its rule, on standard error.")
def restore(
    source: str,
    plan: Path | None,
    key_file: Path | None,
    vault: str | None,
    scope: str,
    secret_file: Path | None,
    secret_env: str | None,
    secret_keyring: str | None,
    output: Path | None,
    overwrite: bool,
    actor: str | None,
    stream: bool,
    explain: bool,
) -> None:
    """Restore the originals of a text, with the vault that keeps them, the plan of its edits, or the encryption key.

    The text may have been rewritten since. All files of a FOLDER are restored, under the same names in the folder
    TARGET; this needs a vault or a key. The exit code is 1 if a replacement could not be restored.

    \b
    Examples:
      allonym restore letter-safe.txt --key-file secret.key -o letter.txt
      allonym restore letter-safe.txt --plan letter-plan.json --explain
      allonym restore answer.txt --vault study.vault --secret-file study.key --scope study
      allonym restore safe/ -o again/ --vault study.vault --secret-file study.key
      my-model < safe.txt | allonym restore - --stream --plan plan.json
    """
    from allonym.files.restoring import check_plain, read_only_plan
    from allonym.restore import restore as bring_back
    from allonym.restore import restore_stream

    key = read_key(key_file)
    if plan is None and vault is None and key is None:
        raise UsageError("--plan, --vault or --key-file is required (or ALLONYM_KEY)")
    if stream and explain:
        raise UsageError("--explain needs the whole text and cannot be combined with --stream")
    if vault is None:
        _check_without_vault(secret_file, secret_env, secret_keyring, actor)
    user = _get_login() if actor is None else actor
    if Path(source).is_dir():
        if plan is not None or stream or explain:
            raise UsageError("--plan, --stream and --explain are for one text, not for a folder")
        files = _list_files(source, output, overwrite)
        keeper = open_vault(vault, secret_file, secret_env, secret_keyring) if vault else None
        try:
            _restore_folder(files, keeper, key, scope, user)
        finally:
            if keeper is not None:
                keeper.close()
        return
    if output is not None and output.is_dir():
        raise UsageError(f"{output} is a folder; the TARGET of one text is a file")
    if output is not None and output.exists() and not overwrite:
        raise UsageError(f"{output} exists; --overwrite replaces it")
    if source != "-":
        check_plain(source)
    loaded_plan = read_only_plan(plan) if plan is not None else None
    keeper = open_vault(vault, secret_file, secret_env, secret_keyring) if vault else None
    try:
        if stream:
            arriving = _read_stream(source)
            _write_stream(
                restore_stream(arriving, plan=loaded_plan, vault=keeper, key=key, scope=scope, actor=user), output
            )
            return
        text = decode_text(stdin_bytes() if source == "-" else Path(source).read_bytes(), source)
        result = bring_back(text, plan=loaded_plan, vault=keeper, key=key, scope=scope, actor=user)
    finally:
        if keeper is not None:
            keeper.close()
    if output is None:
        write_output(result.text)
    else:
        output.write_bytes(result.text.encode("utf-8"))
    if explain:
        _print_explanation(result)
    for note_text in result.notes:
        print_note(note_text)
    if result.unknown:
        raise DataError(f"{result.restored} replacements restored, {result.unknown} not")


def _check_without_vault(file: Path | None, environment: str | None, keyring: str | None, actor: str | None) -> None:
    names = ("secret-file", "secret-env", "secret-keyring", "actor")
    for name, value in zip(names, (file, environment, keyring, actor), strict=True):
        if value is not None:
            raise UsageError(f"--{name} requires --vault")


def _get_login() -> str:
    """Return the login name, or nothing if the system does not know it."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""


def _list_files(source: str, output: Path | None, overwrite: bool) -> list[tuple[Path, Path]]:
    """Return the files of a folder with their targets."""
    from allonym.files.restoring import list_files_to_restore

    if output is None:
        raise UsageError(f"{source} is a folder: -o FOLDER is required")
    return list_files_to_restore(source, output, overwrite=overwrite)


def _restore_folder(
    files: Sequence[tuple[Path, Path]], vault: Vault | None, key: bytes | str | None, scope: str, actor: str
) -> None:
    """Restore all files with one index, and print a summary."""
    from allonym.files.restoring import restore_files

    summary = restore_files(files, vault=vault, key=key, scope=scope, actor=actor)
    for note_text in summary.notes:
        print_note(note_text)
    message = f"{summary.files} files, {summary.restored} replacements restored, {summary.unknown} not"
    if summary.unknown:
        raise DataError(message)
    print_note(message, label="restored:")


def _print_explanation(result: Restored) -> None:
    """Print offsets, label and rule of each restored mention, without text."""
    for mention in result.found:
        click.echo(f"{mention.start}-{mention.end}\t{mention.label}\t{mention.rule}", err=True)


def _read_stream(source: str) -> Iterator[str]:
    """Yield the text of a file or standard input as it arrives, without a byte order mark.

    Raises:
        DataError: the text is not UTF-8.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    if source == "-":
        print_terminal_note()
    first = True
    with sys.stdin.buffer if source == "-" else Path(source).open("rb") as file:
        while True:
            data = cast(io.BufferedReader, file).read1(65536)
            try:
                text = decoder.decode(data, final=not data)
            except UnicodeDecodeError:
                raise DataError(f"{source} is not UTF-8") from None
            if text:
                yield text.removeprefix("\ufeff") if first else text
                first = False
            if not data:
                return


def _write_stream(pieces: Iterator[str], output: Path | None) -> None:
    if output is None:
        for piece in pieces:
            write_output(piece)
        return
    with output.open("wb") as file:
        for piece in pieces:
            file.write(piece.encode("utf-8"))
