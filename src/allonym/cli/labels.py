"""``allonym labels``: the taxonomy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from allonym.cli.options import JSON
from allonym.cli.signatures import take_options
from allonym.cli.terminal import format_json_line, print_heading, print_labelled_values, print_table
from allonym.labels import SCHEMES
from allonym.settings import declare_setting

if TYPE_CHECKING:
    from allonym.labels import Label


@click.command(short_help="Show the labels, their risk and their names in other schemes.")
@take_options
def labels(
    name: str | None = declare_setting(None, "label", noun="label", option="<NAME>"),
    *,
    scheme: str | None = declare_setting(
        None,
        "also show the names of another scheme, such as presidio, spacy or tab. NAME may be one of them",
        one_of=SCHEMES,
        option="SCHEME",
    ),
    json: bool = JSON,
) -> None:
    """Show the taxonomy: every label with its kind, its risk and its names in other schemes.

    Direct identifiers identify alone, quasi-identifiers in combination. The risk, 0 to 5, is the harm of a missed
    finding.

    \b
    Examples:
      allonym labels
      allonym labels US_SSN
      allonym labels --scheme presidio
      allonym labels GPE --scheme spacy
    """
    from allonym.labels import TAXONOMY, from_scheme

    if name is None:
        chosen = list(TAXONOMY)
    elif name.upper() in TAXONOMY:
        chosen = [TAXONOMY.get(name.upper())]
    elif scheme is not None and (matches := from_scheme(name, scheme)):
        chosen = [TAXONOMY.get(n) for n in matches]
    else:
        chosen = [TAXONOMY.get(name)]
    if json:
        for label in chosen:
            click.echo(format_json_line(_describe_label(label, scheme)))
    elif len(chosen) == 1 and name is not None:
        _print_label(chosen[0])
    else:
        _print_label_table(chosen, scheme, indent=name is None)


def _describe_label(label: Label, scheme: str | None) -> dict[str, Any]:
    from allonym.labels import to_scheme

    row: dict[str, Any] = {n: getattr(label, n) for n in ("name", "parent", "kind", "risk", "description")}
    row["names"] = {s: list(n) for s, n in label.names.items()}
    if scheme is not None:
        row["scheme"], row["to_scheme"] = scheme, to_scheme(label.name, scheme)
    return row


def _print_label_table(chosen: list[Label], scheme: str | None, *, indent: bool) -> None:
    from allonym.labels import TAXONOMY, to_scheme

    rows = []
    for label in _order_by_parent(chosen) if indent else chosen:
        depth = len(TAXONOMY.lineage(label.name)) - 1 if indent else 0
        row = ["  " * depth + label.name, label.kind, label.risk]
        if scheme is not None:
            row.append(to_scheme(label.name, scheme) or "-")
        rows.append([*row, label.description])
    head = ["label", "kind", "risk", *([scheme] if scheme else []), "description"]
    print_table(head, rows, right=(2,), wrap=len(head) - 1)


def _order_by_parent(chosen: list[Label]) -> list[Label]:
    """Return the labels with each below its parent."""
    below: dict[str | None, list[Label]] = {}
    for label in chosen:
        below.setdefault(label.parent, []).append(label)

    def list_branch(parent: str | None) -> list[Label]:
        return [member for label in below.get(parent, ()) for member in (label, *list_branch(label.name))]

    return list_branch(None)


def _print_label(label: Label) -> None:
    from allonym.labels import SCHEMES, TAXONOMY, to_scheme

    print_heading(label.name)
    click.echo(f"{label.description}.")
    click.echo()
    rows: list[tuple[str, object]] = [("kind", label.kind), ("risk", f"{label.risk} of 5")]
    if label.parent:
        rows.append(("within", " < ".join(TAXONOMY.lineage(label.name)[1:])))
    if below := TAXONOMY.descendants(label.name)[1:]:
        rows.append(("holds", ", ".join(below)))
    for scheme in SCHEMES:
        own_names, name = ", ".join(label.names.get(scheme, ())), to_scheme(label.name, scheme)
        if own_names:
            rows.append((scheme, own_names))
        elif name:
            nearest = next(n for n in TAXONOMY.lineage(label.name) if TAXONOMY.get(n).names.get(scheme))
            rows.append((scheme, f"{name} (from {nearest})"))
    print_labelled_values(rows, "  ")
