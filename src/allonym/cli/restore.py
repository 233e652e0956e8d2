"""``allonym restore``: bring originals back."""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from allonym.cli.options import (
    ACTOR,
    KEY_FILE,
    OVERWRITE,
    TextFields,
    VaultChoice,
    declare_output,
    declare_plans,
    read_key,
)
from allonym.cli.signatures import take_options
from allonym.cli.terminal import print_note, print_stdin_note, read_stdin, show_stage_bar, write_output
from allonym.errors import DataError, UsageError
from allonym.partfile import open_part_file, write_file
from allonym.settings import REQUIRED, declare_setting
from allonym.text.words import count_nouns

if TYPE_CHECKING:
    from allonym.restoration import Restored

_NOTHING_KNOWN = "nothing was restored: no replacement of this scope of the vault was found with certainty"


@click.command(short_help="Restore the originals of an anonymised text or file.")
@take_options
def restore(
    source: str = declare_setting(REQUIRED, "anonymised text or file", option="<FILE|FOLDER|->"),
    *,
    texts: TextFields,
    plans: Path | None = declare_plans("file"),
    key_file: Path | None = KEY_FILE,
    vault: VaultChoice,
    document: str | None = declare_setting(None, "id of the document in the vault; by default the vault finds it"),
    output: Path | None = declare_output(),
    overwrite: bool = OVERWRITE,
    neutralised: bool = declare_setting(
        False, 'the policy had formulas = "neutralise": take away the apostrophes in front of cells of CSV and TSV'
    ),
    actor: str | None = ACTOR,
    stream: bool = declare_setting(False, "write text as soon as it is decided, while more arrives; counts nothing"),
    explain: bool = declare_setting(
        False, "list on standard error what was restored, by which rule and evidence, and what was left"
    ),
) -> None:
    """Restore the originals of a text, with the vault that keeps them, the plan of its edits, or the encryption key.

    The text may have been rewritten since. Files of all formats but PDF and pictures are written in their own format
    and encoding; name the same fields as when they were anonymised. All files of a FOLDER are restored, under the
    same names in the folder --output; this needs a vault or a key. Without --actor, the audit log names your login.
    The exit code is 1 if a replacement is left, or a word that may well be one, or if a file of a folder was skipped,
    else 0. Numbers and ordinary words that are left, since any text has them, are only noted. A text need not use all
    replacements of its document.

    \b
    Examples:
      allonym restore letter-safe.txt --key-file secret.key -o letter.txt
      allonym restore letter-safe.txt --plans letter-plan.json --explain
      allonym restore answer.txt --vault study.vault --secret-file study.key --scope study
      allonym restore safe/ -o again/ --vault study.vault --secret-file study.key
      allonym restore safe.xlsx -o again.xlsx --plans plans.jsonl
      my-model < safe.txt | allonym restore - --stream --plans plan.json
    """
    from allonym.files.encoding import decode_file
    from allonym.files.restoring import (
        is_plain_text_name,
        list_files_to_restore,
        note_new_encoding,
        read_plans,
        read_single_plan,
        restore_files,
    )
    from allonym.restoration import restore as restore_text
    from allonym.restoration import restore_stream

    keys: dict[str, Any] = {"key": read_key(key_file), "scope": vault.scope}
    if plans is None and vault.where is None and keys["key"] is None:
        raise UsageError("--plans, --vault or --key-file is required (or ALLONYM_KEY)")
    if stream and (explain or document is not None):
        raise UsageError("--explain and --document need the whole text and cannot be combined with --stream")
    for name, value in (("actor", actor), ("document", document)):
        if vault.where is None and value is not None:
            raise UsageError(f"--{name} requires --vault")
    keys["actor"] = _get_login_name() if actor is None else actor
    is_folder = Path(source).is_dir()
    if is_folder or (source != "-" and not is_plain_text_name(source, texts.format)) or texts.field:
        kind = "a folder" if is_folder else "a file with fields or markup"
        if document is not None or stream or explain:
            raise UsageError(f"--document, --stream and --explain are for one text, not for {kind}")
        if is_folder and plans is not None:
            raise UsageError("--plans is for one file, not for a folder")
        if output is None:
            raise UsageError(f"{source} is {kind}: -o {'FOLDER' if is_folder else 'FILE'} is required")
        files, skipped = list_files_to_restore(source, output, format=texts.format, overwrite=overwrite)
        keys |= {"fields": texts.field, "format": texts.format, "plans": [] if plans is None else read_plans(plans)}
        keys["has_neutralised_cells"] = neutralised
        with vault.open_vault() or nullcontext() as keeper, show_stage_bar("restoring", enabled=True) as advance:
            summary = restore_files(files, vault=keeper, advance=advance, **keys)
        if vault.where is not None and not summary.restored:
            print_note(_NOTHING_KNOWN)
        message = f"{count_nouns(summary.files, 'file')}, {count_nouns(summary.restored, 'replacement')} restored"
        message += f", {summary.unknown} not"
        if skipped:
            print_note(f"{', '.join(skipped)}: no text can be put back into a file of this format", label="skipped:")
            message += f", {count_nouns(len(skipped), 'file')} skipped"
        _report_unrestored(summary.notes, summary.unknown + len(skipped), message)
        print_note(message, label="restored:")
        return
    if output is not None:
        from allonym.files.items import check_targets_free

        check_targets_free([output], (), overwrite)
    keys["plan"] = None if plans is None else read_single_plan(plans)
    with vault.open_vault() or nullcontext() as keeper:
        if stream:
            _write_pieces(restore_stream(_read_text_stream(source), vault=keeper, **keys), output)
            return
        data = read_stdin() if source == "-" else Path(source).read_bytes()
        text, encoding = decode_file(data)
        result = restore_text(text, vault=keeper, document=document or "", **keys)
    if output is None:
        write_output(result.text)
    else:
        write_file(output, restored := encoding.encode_file(result.text))
        if note := note_new_encoding(data, restored):
            print_note(note)
    if explain:
        _list_mentions(result)
    if vault.where is not None and not result.restored and text.strip():
        print_note(_NOTHING_KNOWN)
    _report_unrestored(result.notes, result.unknown, f"{result.restored} replacements restored, {result.unknown} not")


def _list_mentions(result: Restored) -> None:
    """Print offsets and label of each mention, with rule and evidence, or why it was left; without text."""
    for mention in result.found:
        click.echo(f"{mention.start}-{mention.end}\t{mention.label}\t{mention.rule}\t{mention.evidence}", err=True)
    for rest in result.residue:
        click.echo(f"{rest.start}-{rest.end}\t{rest.label}\tleft\t{rest.why}", err=True)
    if result.documents:
        print_note(", ".join(result.documents), label="documents:")


def _report_unrestored(notes: Iterable[str], unknown: int, message: str) -> None:
    """Print the notes, and raise if replacements could not be restored."""
    for text in notes:
        print_note(text)
    if unknown:
        raise DataError(message)


def _get_login_name() -> str:
    """Return the login name, or nothing if the system does not know it."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""


def _read_text_stream(source: str) -> Iterator[str]:
    """Yield the text of a file or standard input as it arrives, without a byte order mark.

    Raises:
        DataError: the text is not UTF-8.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    if source == "-":
        print_stdin_note()
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


def _write_pieces(pieces: Iterable[str], output: Path | None) -> None:
    with nullcontext() if output is None else open_part_file(output) as file:
        for piece in pieces:
            if file is None:
                write_output(piece)
            else:
                file.write(piece.encode("utf-8"))
