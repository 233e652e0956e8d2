"""``allonym restore``: originals back."""

from __future__ import annotations

import json
from pathlib import Path, PurePath

import click

from allonym.cli.options import key_option, read_key
from allonym.cli.reading import decoded, stdin_bytes
from allonym.cli.terminal import note, write
from allonym.errors import AllonymError, DataError, PlanMismatch, UsageError

PLAIN = ("txt", "md", "srt", "vtt")
"""Formats whose bytes are the text. In others an original may need quoting, so putting it back could break the file."""

_PLAN = "Plan of this text with its originals, as `allonym anonymize --plans PATH --originals` writes it."


@click.command(short_help="Bring originals back.")
@click.argument("source", metavar="FILE|-")
@click.option("--plan", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="PATH", help=_PLAN)
@key_option
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="TARGET",
    help="Where to write; by default standard output.",
)
@click.option("--overwrite", is_flag=True, help="Replace a TARGET that exists.")
def restore(source: str, plan: Path | None, key_file: Path | None, output: Path | None, overwrite: bool) -> None:
    """Bring the originals of a text back: with the key that encrypted them, or the plan that replaced them.

    The text may have been rewritten since. Ends with exit code 1 where something could not be brought back.

    \b
    Examples:
      allonym restore letter-safe.txt --key-file secret.key -o letter.txt
      allonym restore letter-safe.txt --plan letter-plan.json
      allonym restore - --key-file secret.key < answer.txt
    """
    from allonym.pipeline import restore as bring_back
    from allonym.plan import Plan

    key = read_key(key_file)
    if plan is None and key is None:
        raise UsageError("--plan or --key-file is required (or ALLONYM_KEY)")
    if output is not None and output.exists() and not overwrite:
        raise UsageError(f"{output} exists; --overwrite replaces it")
    _check_plain(source)
    made = None
    if plan is not None:
        made = Plan.from_dict(_only_plan(plan))
    text = decoded(stdin_bytes() if source == "-" else Path(source).read_bytes(), source)
    done = bring_back(text, plan=made, key=key)
    if output is None:
        write(done.text)
    else:
        output.write_bytes(done.text.encode("utf-8"))
    if done.unknown:
        for one in done.notes:
            note(one)
        raise DataError(f"{done.restored} replacements undone, {done.unknown} not")


def _only_plan(path: Path) -> dict[str, object]:
    """The plan in a file that holds one: bare, or a line of ``allonym anonymize --plans``."""
    try:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        if len(lines) != 1:
            raise PlanMismatch(f"{path} must hold one plan, got {len(lines)}")
        found = lines[0].get("plan", lines[0]) if isinstance(lines[0], dict) else lines[0]
        found = json.loads(found) if isinstance(found, str) else found
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise PlanMismatch(f"{path} is not a plan: it is not JSON") from None
    if not isinstance(found, dict):
        raise PlanMismatch(f"{path} is not a plan: an object is required, got {type(found).__name__}")
    return found


def _check_plain(source: str) -> None:
    from allonym.files import format_of

    if source == "-":
        return
    try:
        name = format_of(PurePath(source).name)[0].name
    except AllonymError:
        return
    if name not in PLAIN:
        raise UsageError(f"restore works on plain text; a {name} file needs its records restored one by one in Python")
