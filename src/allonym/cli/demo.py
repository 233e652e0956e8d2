"""``allonym demo``: the bundled examples, before and after."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from allonym.cli.options import declare_policy
from allonym.cli.signatures import take_options
from allonym.cli.terminal import is_terminal, make_console, print_heading, print_note
from allonym.errors import UsageError
from allonym.partfile import write_file
from allonym.scratch import open_scratch_folder
from allonym.settings import declare_setting
from allonym.text.controls import escape_controls

if TYPE_CHECKING:
    from rich.text import Text

    from allonym.document import Document
    from allonym.pipeline import Anonymized
    from allonym.policy import Policy

EXAMPLES: Mapping[str, str] = {
    "call.txt": "a call to customer service",
    "person.txt": "a description of a person",
    "reviews.csv": "reviews in a table",
}
"""File name to a description."""

CORPUS = "calls.jsonl"
"""Eight invented earnings calls, saved beside the examples, for ``allonym swap``."""

_FACT_WORDS = {"kin": "relatives"}

PAGE = "allonym-demo.html"

_KEY = b"a key for the demonstration only"


@click.command(short_help="Anonymise the bundled examples.")
@take_options
def demo(
    *,
    policy: str = declare_policy(),
    open: bool = declare_setting(
        False,
        f"write {PAGE} into this folder, with before and after, findings, restoring and risk, and open it in the "
        "browser",
    ),
    save: Path | None = declare_setting(
        None,
        "only write the example files into this new folder, for trying other commands",
        noun="new folder",
        option="FOLDER",
    ),
) -> None:
    """Anonymise three bundled examples, show them before and after, and restore a text. Works offline, in a second.

    All people, companies and numbers in them are invented.

    \b
    Examples:
      allonym demo
      allonym demo --open
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
    if open:
        _show_page(loaded)
        return
    mentions: Counter[str] = Counter()
    answer = None
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
            answer = answer or _restore_answer(result)
    print_heading("replaced")
    click.echo(f"  {_describe_counts(mentions, 6)}\n")
    if answer is not None:
        print_heading("restored: an answer about the call")
        click.echo(f"  {click.style(answer[0], fg='green')}\n  {click.style(answer[1], fg='red')}\n")
    if policy == "default":
        print_note("allonym demo --open shows more, allonym init FILES writes a policy for your own", label="next:")


def _restore_answer(result: Anonymized) -> tuple[str, str] | None:
    """Return what somebody may answer to an anonymised text, and the same with the originals; None where none fits."""
    from allonym.restoration import restore

    edits = result.plan.edits
    place = next((i for i, edit in enumerate(edits) if edit.label == "PHONE_NUMBER"), 0)
    person = next((edit.replacement for edit in edits[:place][::-1] if edit.label == "PERSON"), "")
    if not person:
        return None
    answer = f"I shall call {person} on {edits[place].replacement}."
    restored = restore(answer, plan=result.plan).text
    return (answer, restored) if restored != answer else None


def _describe_counts(mentions: Counter[str], most: int = 0) -> str:
    """Return the number of mentions, of all and by label, the most frequent first."""
    rows = sorted(mentions.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{label} {count}" for label, count in rows[: most or None]]
    rest = [f"{len(rows) - most} more kinds"] if most and len(rows) > most else []
    return f"{mentions.total()} mentions of {len(rows)} kinds: {', '.join(shown + rest)}"


def _show_page(policy: Policy) -> None:
    """Write the page of the demonstration, and open it where there is a screen."""
    import webbrowser
    from importlib.resources import as_file, files

    from allonym.files import read_documents
    from allonym.pipeline import anonymize
    from allonym.report.display import display, draw_page, format_label
    from allonym.restoration import restore

    pairs = []
    for name, what in EXAMPLES.items():
        with as_file(files("allonym").joinpath("examples", name)) as path:
            for document in read_documents(path):
                number = f", record {document.id}" if document.id != name else ""
                pairs.append((replace(document, id=f"{what}{number}"), anonymize(document, policy, key=_KEY)))
    mentions: Counter[str] = Counter()
    for _, result in pairs:
        mentions.update({format_label(label): count for label, count in result.report.labels.items()})
    exact = sum(restore(result.text, plan=result.plan).text == document.text for document, result in pairs)
    answer = next((answer for _, result in pairs if (answer := _restore_answer(result))), None)
    restored = f"{exact} of {len(pairs)} texts come back exactly, from their plans."
    if answer is not None:
        restored += f"\nAn answer that uses a tag: {answer[0]}\nThe same with the originals: {answer[1]}"
    facts = [
        ("Policy", f"{policy.name}: {policy.description}"),
        ("Replaced", _describe_counts(mentions)),
        ("Restored", restored),
        ("Risk", _describe_risk(pairs)),
        ("Next", "allonym init FILES, in a terminal: six questions, and a policy for your own files."),
    ]
    views = [display(document, result, policy=policy) for document, result in pairs]
    note = "All people, companies and numbers on this page are invented."
    page = draw_page(views, "allonym, before and after", note=note, facts=facts)
    path = Path(PAGE)
    write_file(path, page.encode("utf-8"))
    if has_screen() and webbrowser.open(path.resolve().as_uri()):
        print_note(f"{path}, and opened it", label="wrote")
    else:
        print_note(f"{path}; open it in a browser", label="wrote")


def has_screen() -> bool:
    """Tell whether a browser could open a window here."""
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def _describe_risk(pairs: list[tuple[Document, Anonymized]]) -> str:
    """Return what the worst intruder could still tell about the people of the texts."""
    from allonym.evaluate.cards import LIMIT, list_cards, round_count

    originals = [document.text for document, _ in pairs]
    before, _ = list_cards(originals)
    after, _ = list_cards([result.text for _, result in pairs], originals)
    if not after:
        return "Not measured: the texts name nobody any more."
    chance, card = min(((chance, card) for card in after for chance in card.chances), key=lambda row: row[0].low)
    fitting = [f"{round_count(number):,}" for number in (chance.low, chance.high)]
    facts = ", ".join(sorted({_FACT_WORDS.get(fact.kind, fact.kind) for fact in card.facts})) or "nothing"
    counts = [sum(card.below for card in cards) or "nobody" for cards in (before, after)]
    return (
        f"The worst of three intruders is the {chance.intruder}: some {fitting[0]} to {fitting[1]} people fit the "
        f"person of whom most is left (known of them: {facts}).\n"
        f"People who stand out, for fewer than {LIMIT} fit them: {counts[0]} before, {counts[1]} after. "
        "Rough estimates, from population figures."
    )


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
