"""``allonym demo``: the main job on the bundled examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from allonym.cli.options import chosen_policy, policy_option
from allonym.cli.reading import documents
from allonym.cli.terminal import console, heading, on_terminal, table, visible

if TYPE_CHECKING:
    from rich.text import Text

    from allonym.document import Document
    from allonym.pipeline import Anonymized

EXAMPLES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "call.txt": ("a call to customer service", ()),
    "person.txt": ("a description of a person", ()),
    "reviews.csv": ("reviews in a table", ("customer", "review")),
}
"""File name to what it is, and which of its fields are treated; none: all text."""

CORPUS = "calls.jsonl"
"""Eight invented earnings calls, saved beside the examples, for ``allonym swap``."""

_KEY = b"a key for the demonstration only"


@click.command(short_help="Anonymize the bundled examples.")
@policy_option
@click.option(
    "--save",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Write the example files into this new folder instead, to try the other commands on.",
)
def demo(policy: str, save: Path | None) -> None:
    """Anonymize three bundled examples, before and after side by side. Offline, in a second.

    All people, companies and numbers in them are invented.

    \b
    Examples:
      allonym demo
      allonym demo --policy textwash
      allonym demo --save try && allonym anonymize try try-safe
    """
    from importlib.resources import as_file, files

    from allonym.pipeline import anonymize

    folder = files("allonym").joinpath("examples")
    if save is not None:
        save.mkdir(parents=True)
        for name in (*EXAMPLES, CORPUS):
            (save / name).write_bytes(folder.joinpath(name).read_bytes())
        click.echo(f"{len(EXAMPLES) + 1} files in {save}; now: allonym anonymize {save} {save}-safe")
        return
    chosen = chosen_policy(policy)
    mentions: Counter[str] = Counter()
    entities: Counter[str] = Counter()
    for name, (what, fields) in EXAMPLES.items():
        with as_file(folder.joinpath(name)) as path:
            pairs = [(d, anonymize(d, chosen, key=_KEY)) for d in documents(str(path), fields=fields)]
        _show(f"{name}: {what}", pairs)
        for _, done in pairs:
            mentions.update(done.report.labels)
            entities.update(label for _, label in {(e.entity, e.label) for e in done.plan.edits if e.entity})
    heading("what was replaced")
    table(
        ["label", "mentions", "referents"],
        [(label, n, entities[label]) for label, n in sorted(mentions.items(), key=lambda item: (-item[1], item[0]))],
        right=(1, 2),
    )


def _show(title: str, pairs: list[tuple[Document, Anonymized]]) -> None:
    heading(title)
    if not on_terminal():
        for document, done in pairs:
            for sign, text in (("-", document.text), ("+", done.text)):
                for line in visible(text, lines=True).splitlines():
                    click.echo(f"{sign} {line}")
            click.echo()
        return
    from rich.table import Table

    grid = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), expand=True, header_style="dim")
    grid.add_column("before", ratio=1)
    grid.add_column("after", ratio=1)
    for i, (document, done) in enumerate(pairs):
        before, after = _marked(document.text, done)
        if i:
            grid.add_row("", "")
        old, new = before.split("\n"), after.split("\n")
        rows = zip(old, new, strict=True) if len(old) == len(new) else ((before, after),)
        for row in rows:
            grid.add_row(*row)
    console().print(grid)
    click.echo()


def _marked(text: str, done: Anonymized) -> tuple[Text, Text]:
    from rich.text import Text

    before, after, at = Text(), Text(), 0
    for edit in done.plan.edits:
        same = visible(text[at : edit.start], lines=True)
        before.append(same)
        after.append(same)
        before.append(visible(text[edit.start : edit.end], lines=True), style="red")
        after.append(visible(edit.replacement, lines=True), style="bold green")
        at = edit.end
    rest = visible(text[at:], lines=True).rstrip("\n")
    before.append(rest)
    after.append(rest)
    return before, after
