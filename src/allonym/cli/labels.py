"""``allonym labels``: the taxonomy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from allonym.cli.options import _complete_labels
from allonym.cli.terminal import json_line, print_heading, print_table

if TYPE_CHECKING:
    from allonym.labels import Label


def _complete_schemes(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from allonym.labels import SCHEMES

    return [s for s in SCHEMES if s.startswith(incomplete)]


@click.command(short_help="Show the labels, their risk and their names in other schemes.")
@click.argument("name", required=False, shell_complete=_complete_labels)
@click.option(
    "--scheme",
    metavar="SCHEME",
    shell_complete=_complete_schemes,
    help="Also show the names of another scheme, such as presidio, spacy or tab. NAME may be one of them.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
def labels(name: str | None, scheme: str | None, as_json: bool) -> None:
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
    from allonym.errors import UnknownNameError
    from allonym.labels import SCHEMES, TAXONOMY, from_scheme

    if scheme is not None and scheme not in SCHEMES:
        raise UnknownNameError("scheme", scheme, SCHEMES)
    if name is None:
        chosen = list(TAXONOMY)
    elif name.upper() in TAXONOMY:
        chosen = [TAXONOMY.get(name.upper())]
    elif scheme is not None and (matches := from_scheme(name, scheme)):
        chosen = [TAXONOMY.get(n) for n in matches]
    else:
        chosen = [TAXONOMY.get(name)]
    if as_json:
        for label in chosen:
            click.echo(json_line(_describe_label(label, scheme)))
    elif len(chosen) == 1 and name is not None:
        _show_one(chosen[0])
    else:
        _show_many(chosen, scheme, indent=name is None)


def _describe_label(label: Label, scheme: str | None) -> dict[str, Any]:
    from allonym.labels import to_scheme

    row: dict[str, Any] = {
        "name": label.name,
        "parent": label.parent,
        "kind": label.kind,
        "risk": label.risk,
        "description": label.description,
        "names": {s: list(n) for s, n in label.names.items()},
    }
    if scheme is not None:
        row["scheme"], row["to_scheme"] = scheme, to_scheme(label.name, scheme)
    return row


def _show_many(chosen: list[Label], scheme: str | None, *, indent: bool) -> None:
    from allonym.labels import TAXONOMY, to_scheme

    rows = []
    for label in _order_tree(chosen) if indent else chosen:
        depth = len(TAXONOMY.lineage(label.name)) - 1 if indent else 0
        row = ["  " * depth + label.name, label.kind, label.risk]
        if scheme is not None:
            row.append(to_scheme(label.name, scheme) or "-")
        rows.append([*row, label.description])
    head = ["label", "kind", "risk", *([scheme] if scheme else []), "description"]
    print_table(head, rows, right=(2,), wrap=len(head) - 1)


def _order_tree(chosen: list[Label]) -> list[Label]:
    below: dict[str | None, list[Label]] = {}
    for label in chosen:
        below.setdefault(label.parent, []).append(label)
    out: list[Label] = []

    def add_children(parent: str | None) -> None:
        for label in below.get(parent, ()):
            out.append(label)
            add_children(label.name)

    add_children(None)
    return out


def _show_one(label: Label) -> None:
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
        scheme_names = ", ".join(label.names.get(scheme, ()))
        if name := scheme_names or to_scheme(label.name, scheme):
            rows.append((scheme, name if scheme_names else f"{name} (from {_find_owner(label.name, scheme)})"))
    width = max(len(k) for k, _ in rows)
    for key, value in rows:
        click.echo(f"  {click.style(key.ljust(width), dim=True)}  {value}")


def _find_owner(name: str, scheme: str) -> str:
    from allonym.labels import TAXONOMY

    return next(n for n in TAXONOMY.lineage(name) if TAXONOMY.get(n).names.get(scheme))
