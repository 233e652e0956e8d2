"""``allonym demo``: the bundled examples, before and after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from allonym.cli.options import declare_policy
from allonym.cli.signatures import take_options
from allonym.cli.terminal import is_terminal, make_console, print_heading, print_table
from allonym.errors import UsageError
from allonym.partfile import write_file
from allonym.scratch import open_scratch_folder
from allonym.settings import declare_setting
from allonym.text.controls import escape_controls

if TYPE_CHECKING:
    from rich.text import Text

    from allonym.document import Document
    from allonym.pipeline import Anonymized

EXAMPLES: Mapping[str, str] = {
    "call.txt": "a call to customer service",
    "person.txt": "a description of a person",
    "reviews.csv": "reviews in a table",
}
"""File name to a description."""

CORPUS = "calls.jsonl"
"""Eight invented earnings calls, saved beside the examples, for ``allonym swap``."""

_KEY = b"a key for the demonstration only"


@click.command(short_help="Anonymise the bundled examples.")
@take_options
def demo(
    *,
    policy: str = declare_policy(),
    save: Path | None = declare_setting(
        None,
        "only write the example files into this new folder, for trying other commands",
        noun="new folder",
        option="FOLDER",
    ),
) -> None:
    """Anonymise three bundled examples and show them before and after. Works offline, in a second.

    All people, companies and numbers in them are invented.

    \b
    Examples:
      allonym demo
      allonym demo --policy textwash
      allonym demo --save try && allonym anonymize try try-safe
    """
    from importlib.resources import as_file, files

    from allonym.files import anonymize_path, read_documents
    from allonym.pipeline import anonymize
    from allonym.policy import Policy

    folder = files("allonym").joinpath("examples")
    if save is not None:
        if save.exists():
            raise UsageError(f"{save} exists; --save needs a new folder")
        save.mkdir(parents=True)
        for name in (*EXAMPLES, CORPUS):
            write_file(save / name, folder.joinpath(name).read_bytes())
        click.echo(f"{len(EXAMPLES) + 1} files in {save}; now: allonym anonymize {save} {save}-safe")
        return
    loaded = Policy.load(policy)
    mentions: Counter[str] = Counter()
    for name, what in EXAMPLES.items():
        print_heading(f"{name}: {what}")
        with as_file(folder.joinpath(name)) as path, open_scratch_folder() as target:
            if path.suffix == ".csv":
                safe = target / name
                mentions.update(anonymize_path(path, safe, loaded, key=_KEY).labels)
                _print_rows(*(p.read_text(encoding="utf-8").splitlines() for p in (path, safe)))
                continue
            pairs = [(d, anonymize(d, loaded, key=_KEY)) for d in read_documents(path)]
        _print_examples(pairs)
        for _, result in pairs:
            mentions.update(result.report.labels)
    print_heading("replaced")
    rows = sorted(mentions.items(), key=lambda item: (-item[1], item[0]))
    print_table(["label", "mentions"], rows, right=(1,))


def _print_rows(before: list[str], after: list[str]) -> None:
    """Print the rows of a table that change, each before and after."""
    for old, new in zip(before, after, strict=True):
        if old == new:
            click.echo(f"  {old}")
        else:
            click.echo(f"- {click.style(old, fg='red')}\n+ {click.style(new, fg='green')}")
    click.echo()


def _print_examples(pairs: list[tuple[Document, Anonymized]]) -> None:
    if not is_terminal():
        for document, result in pairs:
            for sign, text in (("-", document.text), ("+", result.text)):
                for line in escape_controls(text, lines=True).splitlines():
                    click.echo(f"{sign} {line}")
            click.echo()
        return
    from rich.table import Table

    grid = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), expand=True, header_style="dim")
    grid.add_column("before", ratio=1)
    grid.add_column("after", ratio=1)
    for i, (document, result) in enumerate(pairs):
        before, after = _highlight_edits(document.text, result)
        if i:
            grid.add_row("", "")
        old, new = before.split("\n"), after.split("\n")
        rows = zip(old, new, strict=True) if len(old) == len(new) else ((before, after),)
        for row in rows:
            grid.add_row(*row)
    make_console().print(grid)
    click.echo()


def _highlight_edits(text: str, result: Anonymized) -> tuple[Text, Text]:
    from rich.text import Text

    before, after, position = Text(), Text(), 0
    for edit in result.plan.edits:
        same = escape_controls(text[position : edit.start], lines=True)
        before.append(same)
        after.append(same)
        before.append(escape_controls(text[edit.start : edit.end], lines=True), style="red")
        after.append(escape_controls(edit.replacement, lines=True), style="bold green")
        position = edit.end
    rest = escape_controls(text[position:], lines=True).rstrip("\n")
    before.append(rest)
    after.append(rest)
    return before, after
