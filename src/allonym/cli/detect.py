"""``allonym detect``: the findings, and why they were made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from allonym.cli import terminal
from allonym.cli.options import JSON, PolicyChoice, TextFields
from allonym.cli.outputs import check_outputs
from allonym.cli.signatures import take_options
from allonym.settings import declare_setting
from allonym.text.controls import escape_controls

if TYPE_CHECKING:
    from allonym.document import Document, Span
    from allonym.policy import Policy
    from allonym.resolve import Decision


@click.command(short_help="Show the findings in a text, and why.")
@take_options
def detect(
    source: str = declare_setting("-", "text, file or folder", option="<SOURCE|->"),
    *,
    choice: PolicyChoice,
    texts: TextFields,
    explain: bool = declare_setting(
        False, "show every candidate with its detector, rule, context word, score and outcome"
    ),
    text: bool = declare_setting(False, "show the surface of each finding"),
    highlight: bool = declare_setting(False, "show the whole text with its findings marked"),
    html: Path | None = declare_setting(
        None,
        "write a self-contained HTML page of the text with its findings marked",
        noun="new file",
        option="FILE",
    ),
    json: bool = JSON,
) -> None:
    """Show what identifies people or organisations in SOURCE: a file, a folder, or - for standard input.

    Prints a table on a terminal, and one JSON object per line otherwise. Offsets are half-open and count code points.
    The text itself is shown only on request. For the records of tables and of JSON files, JSON also gives the number of
    the record, its field, and the offsets inside the field.

    \b
    Examples:
      allonym detect letter.txt
      allonym detect letter.txt --highlight
      allonym detect letter.txt --html letter.html
      echo "My SSN is 536-22-1234" | allonym detect --explain
      allonym detect reviews.csv --field review --json > findings.jsonl
    """
    from allonym import pipeline
    from allonym.detection.selection import count_unread_characters

    if highlight and (explain or json):
        raise click.UsageError("--highlight cannot be combined with --explain or --json")
    if html is not None and (highlight or explain or json or text):
        raise click.UsageError("--html cannot be combined with --highlight, --explain, --text or --json")
    policy = choice.load_policy()
    if html is not None:
        if source != "-":
            check_outputs([html], [Path(source)], overwrite=True)
        _write_findings_page(list(texts.read_documents(source)), policy, html)
        return
    table_wanted = terminal.is_terminal() and not json
    several = source != "-" or texts.format is not None
    total = characters = 0
    unread: Counter[str] = Counter()
    for number, document in enumerate(texts.read_documents(source), 1):
        characters += len(document.text)
        unread.update(count_unread_characters(document, policy))
        name = document.id if several else ""
        if highlight:
            _print_highlighted(document, pipeline.detect(document, policy), name)
            continue
        if explain:
            rows = [_describe_decision(document, d, policy, text) for d in pipeline.explain(document, policy)]
        else:
            rows = [_describe_span(document, s, text) for s in pipeline.detect(document, policy)]
        total += len(rows)
        if not table_wanted:
            for row in rows:
                place: dict[str, Any] = {"document": name} if name else {}
                if document.fields:
                    place["record"] = number
                click.echo(terminal.format_json_line(place | row))
        elif rows:
            _print_findings(name, _drop_unmasked_twins(rows) if explain else rows, explain=explain)
    if table_wanted and not highlight and not total:
        terminal.print_note("nothing found")
    terminal.print_unread_warning(unread, characters)


def _write_findings_page(documents: list[Document], policy: Policy, path: Path) -> None:
    from allonym.report.display import check_page_name, display, save_page

    check_page_name(path)
    if not documents:
        raise click.UsageError("there is no text to show")
    views = [display(document, policy=policy) for document in documents]
    save_page(views, path, f"Findings in {len(views):,} documents" if len(views) > 1 else "")
    count = sum(len(view.spans) for view in views)
    terminal.print_note(f"{count:,} finding{'s' * (count != 1)}, with the text, in {path}")


def _locate_in_field(document: Document, span: Span) -> dict[str, Any]:
    """Return the field of a record that a finding begins in, and its offsets there; nothing without fields."""
    for (start, end), name in zip(document.parts, document.fields, strict=False):
        if start <= span.start < end:
            return {"field": name, "field_start": span.start - start, "field_end": min(span.end, end) - start}
    return {}


def _describe_span(document: Document, span: Span, with_text: bool) -> dict[str, Any]:
    row: dict[str, Any] = {name: getattr(span, name) for name in ("start", "end", "label")}
    row |= _locate_in_field(document, span)
    row |= {"score": round(span.score, 4), "source": span.source}
    if with_text:
        row["text"] = document.text[span.start : span.end]
    return row


def _describe_decision(document: Document, decision: Decision, policy: Policy, with_text: bool) -> dict[str, Any]:
    row = _describe_span(document, decision.span, with_text)
    detector, _, rest = row.pop("source").partition(":")
    text = row.pop("text", None)
    rule, *more = rest.split("+")
    context = next((m[8:-1] for m in more if m.startswith("context(")), "")
    rule += "".join(f"+{m}" for m in more if not m.startswith("context("))
    row |= {"detector": detector, "rule": rule, "context": context, "outcome": decision.outcome}
    row["because"] = _explain_outcome(decision, policy)
    if text is not None:
        row["text"] = text
    return row


def _explain_outcome(decision: Decision, policy: Policy) -> str:
    if decision.outcome == "below threshold":
        return f"needs {policy.threshold_for(decision.span.label):.2f}"
    if decision.outcome == "excluded":
        return "label not selected" if not policy.looks_for(decision.span.label) else "on an exclusion list"
    if decision.outcome == "ordinary":
        return "identifies nobody, or has other borders or another label in view of the whole text"
    if decision.outcome == "technical":
        return "identifies nobody in code, logs or data"
    if decision.outcome == "public":
        return "a well-known person"
    if decision.outcome == "superseded":
        return "another finding there is more specific"
    if (winner := decision.winner) is None:
        return ""
    return f"{winner.label} at {winner.start}-{winner.end} by {winner.source} is {decision.reason}"


def _drop_unmasked_twins(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Drop rows of a rule that also matched the same characters without unmasking them."""
    matched = {(r["start"], r["end"], r["label"], f"{r['rule']}+unmasked") for r in rows}
    return [r for r in rows if (r["start"], r["end"], r["label"], r["rule"]) not in matched]


def _print_findings(name: str, rows: list[dict[str, Any]], *, explain: bool) -> None:
    if name:
        terminal.print_heading(escape_controls(name))
    cells = []
    for r in rows:
        row = [f"{r['start']}-{r['end']}", r["label"], f"{r['score']:.2f}"]
        if explain:
            how = ":".join(filter(None, (r["detector"], r["rule"]))) + (
                f", context {r['context']!r}" if r["context"] else ""
            )
            row += [r["outcome"], f"{how}; {r['because']}" if r["because"] else how]
        else:
            row.append(r["source"])
        cells.append([*row, r["text"]] if "text" in r else row)
    head = ["where", "label", "score", *(("outcome", "how") if explain else ("source",))]
    terminal.print_table(
        head + (["text"] if "text" in rows[0] else []), cells, right=(0, 2), wrap=head.index("how") if explain else -1
    )


def _print_highlighted(document: Document, spans: Iterable[Span], name: str) -> None:
    """Print the text with its findings marked: by colour and label on a terminal, in brackets in a pipe."""
    text, position = document.text, 0
    if name:
        terminal.print_heading(escape_controls(name))
    if not terminal.is_terminal():
        for span in spans:
            click.echo(f"{text[position : span.start]}⟦{text[span.start : span.end]}|{span.label}⟧", nl=False)
            position = span.end
        click.echo(text[position:], nl=not text.endswith("\n"))
        return
    from rich.text import Text

    colours = ("red", "green", "yellow", "blue", "magenta", "cyan")
    marked = Text()
    for span in spans:
        colour = colours[sum(map(ord, span.label)) % len(colours)]
        marked.append(escape_controls(text[position : span.start], lines=True))
        marked.append(escape_controls(text[span.start : span.end], lines=True), style=f"bold reverse {colour}")
        marked.append(f" {span.label}", style=f"dim {colour}")
        position = span.end
    marked.append(escape_controls(text[position:], lines=True))
    terminal.make_console().print(marked, soft_wrap=True, end="" if text.endswith("\n") else "\n")
