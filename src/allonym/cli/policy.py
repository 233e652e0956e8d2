"""``allonym policy``: list, show and check presets and policy files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from json import dumps
from typing import TYPE_CHECKING, Any

import click

from allonym.cli.options import JSON
from allonym.cli.signatures import take_options
from allonym.cli.terminal import format_json_line, print_heading, print_labelled_values, print_table
from allonym.settings import REQUIRED, declare_setting
from allonym.text.words import count_nouns

if TYPE_CHECKING:
    from allonym.policy import Policy, Rule, TermList


MeasuredPoints = Mapping[str, Mapping[str, Mapping[str, float | None]]]
"""Operating point to kind of text to the shares ``covered`` and ``needless``, 0 to 1."""

NAME = declare_setting(REQUIRED, "preset or file", noun="policy", option="<NAME|FILE>")


@click.group(short_help="List, show and check policies.")
def policy() -> None:
    """List, show and check policies: which labels are detected, with which thresholds, and what replaces them.

    \b
    Examples:
      allonym policy list
      allonym policy show transcripts
      allonym policy check mine.toml
    """


@policy.command("list", short_help="List the presets.")
@take_options
def list_(*, json: bool = JSON) -> None:
    """List the presets.

    \b
    Example:
      allonym policy list
    """
    from allonym.policy import Policy, presets

    loaded = [(name, Policy.load(name)) for name in presets()]
    if json:
        for name, preset in loaded:
            click.echo(format_json_line({"name": name, "description": preset.description}))
        return
    print_table(["policy", "description"], [(name, preset.description) for name, preset in loaded], wrap=1)


@policy.command(short_help="Show a policy with all that it extends.")
@take_options
def show(
    name: str = NAME,
    *,
    all: bool = declare_setting(False, "show a row for every label, not only where the operator changes"),
    json: bool = JSON,
) -> None:
    """Show a policy, a preset or a file, with all that it extends.

    The terms of dictionaries are counted, not shown.

    \b
    Examples:
      allonym policy show default
      allonym policy show mine.toml --all
    """
    from allonym.policy import Policy

    policy = Policy.load(name)
    if json:
        click.echo(dumps(_describe_policy(policy), indent=2, ensure_ascii=False))
        return
    _print_policy(policy, every=all)


@policy.command(short_help="Check a policy and summarise it.")
@take_options
def check(name: str = NAME) -> None:
    """Check a policy: read it, build all its detectors, and summarise it. The exit code is 2 if it has an error.

    \b
    Example:
      allonym policy check mine.toml && echo fine
    """
    from allonym.document import Document
    from allonym.keys import MIN_KEY_BYTES
    from allonym.pipeline import anonymize
    from allonym.policy import Policy

    policy = Policy.load(name)
    sample = Document("", "", {policy.subject: "somebody"} if policy.subject else {})
    anonymize(sample, policy.with_(every=True, exclude=(), countries=()), key=bytes(MIN_KEY_BYTES))
    _print_policy(policy, every=False)
    click.secho("ok", fg="green", err=True)


@policy.command(short_help="Print the JSON Schema of policy files.")
def schema() -> None:
    """Print the JSON Schema of policy files, for editors and checks.

    \b
    Example:
      allonym policy schema > allonym-policy.schema.json
    """
    from allonym.schema import policy_schema

    click.echo(dumps(policy_schema(), indent=2, ensure_ascii=False))


def _print_policy(policy: Policy, *, every: bool) -> None:
    labels = [label.name for label in policy.taxonomy if policy.looks_for(label.name)]
    print_heading(policy.name)
    if policy.description:
        click.echo(policy.description)
    click.echo()
    print_labelled_values([(name, fact) for name, fact in _list_settings(policy, labels) if fact is not None])
    click.echo()
    head = ["label", "operator", "options", "threshold"]
    print_table(head, _list_rule_rows(policy, labels, every=every), right=(3,), wrap=2)
    if measured := _read_measured_points(policy):
        click.echo()
        print_measured_points(measured)


def print_measured_points(measured: MeasuredPoints) -> None:
    """Print what each operating point of a tagger covers of names, and beside them, by kind of text."""
    kinds = {kind: None for shares in measured.values() for kind in shares}
    rows = []
    for kind in kinds:
        pairs = [shares.get(kind, {}) for shares in measured.values()]
        cells = (pair.get(name) for pair in pairs for name in ("covered", "needless"))
        rows.append([kind, *("-" if cell is None else f"{100 * cell:.1f}" for cell in cells)])
    head = ["% of names covered, of other text", *(name for point in measured for name in (point, "needless"))]
    print_table(head, rows, right=range(1, len(head)))


def _read_measured_points(policy: Policy) -> MeasuredPoints:
    """Return what was measured of the policy's tagger; empty without one, or for one of an earlier version."""
    from pathlib import Path

    from allonym.models.tagger import ENGLISH, read_description

    folder = policy.settings("tagger")["model"]
    if "tagger" not in policy.detectors:
        return {}
    measured: MeasuredPoints = read_description(Path(folder) if folder else ENGLISH).get("measured", {})
    return measured


def _list_settings(policy: Policy, labels: list[str]) -> list[tuple[str, str | None]]:
    """Return names and values of all settings but the rules; None where a policy sets nothing."""
    from allonym.protocol import get_operator, get_operator_traits
    from allonym.serial import to_plain

    points = [f"{point} for {label}" for label, point in policy.operating_points.items() if label != "*"]
    usual_point = str(policy.operating_points.get("*", "high-recall"))
    operators = sorted({policy.rule(label).operator for label in labels})
    keyed = ", ".join(name for name in operators if get_operator_traits(get_operator(name)).keyed)
    subject = f", subject from {policy.subject}" if policy.subject else ""
    return [
        ("language", policy.language),
        ("threshold", f"{policy.threshold:g}"),
        ("detectors", ", ".join(policy.detectors)),
        ("operating point", ", ".join([usual_point, *points]) if "tagger" in policy.detectors else None),
        *(
            (name, ", ".join(f"{key}={dumps(value)}" for key, value in table.items()))
            for name, table in to_plain(policy.tables).items()
        ),
        ("countries", ", ".join(policy.countries) or None),
        ("looks for", f"{len(labels)} of {len(policy.taxonomy)} labels"),
        ("leaves alone", ", ".join(policy.exclude) or None),
        ("but looks for", ", ".join(policy.include) or None),
        ("technical text", None if policy.technical else "searched like prose"),
        ("public figures", "kept" if policy.public_figures == "keep" else None),
        (
            "tags",
            policy.style.format(label="LABEL", n=1, form="")
            + (f", named as in {policy.names}" if policy.names else ""),
        ),
        ("needs a key", f"for {keyed}; or a vault" if keyed else None),
        ("consistent", f"by {policy.consistent}{subject}" if subject or policy.consistent != "auto" else None),
        ("images", policy.images if policy.images != "remove" else None),
        ("OCR", policy.ocr or None),
        ("formulas", policy.formulas if policy.formulas != "keep" else None),
        ("language model", f"{policy.llm['model']} at {policy.llm['url']}" if policy.llm["url"] else None),
        ("dictionary", _describe_term_counts(policy.dictionary) or None),
        ("exclusions", _describe_term_counts(policy.exclusions) or None),
        ("metadata", "; ".join(f"{label} from {', '.join(k)}" for label, k in policy.metadata.items()) or None),
        ("patterns", ", ".join(pattern.name for pattern in policy.patterns) or None),
    ]


def _describe_term_counts(lists: Iterable[TermList]) -> str:
    return ", ".join(
        f"{count_nouns(len(terms.terms), 'term')} for {'any label' if terms.label == '*' else terms.label}"
        for terms in lists
    )


def _list_rule_rows(policy: Policy, labels: list[str], *, every: bool) -> list[tuple[str, str, str, str]]:
    """Return a row for each selected label whose operator differs from its parent's, or at the top from the default."""
    usual = None if every else _describe_rule(policy.default, policy.threshold)
    rows = [] if usual is None else [("everything else", *usual)]
    for name in labels:
        description = _describe_rule(policy.rule(name), policy.threshold_for(name))
        above = policy.taxonomy.lineage(name)[1:2]
        parent = _describe_rule(policy.rule(above[0]), policy.threshold_for(above[0])) if above else usual
        if every or description != parent:
            rows.append((name, *description))
    return rows


def _describe_rule(rule: Rule, threshold: float) -> tuple[str, str, str]:
    options = ", ".join(f"{k}={dumps(v, ensure_ascii=False)}" for k, v in rule.options.items())
    return rule.operator, options, f"{threshold:.2f}"


def _describe_policy(policy: Policy) -> dict[str, Any]:
    """Return the whole policy, ready for JSON; terms are counted."""
    from allonym.serial import to_plain

    def convert_rule(rule: Rule) -> dict[str, Any]:
        return {"operator": rule.operator, "options": dict(rule.options)}

    def count_terms(lists: Iterable[TermList]) -> list[Mapping[str, object]]:
        return [{"label": t.label, "terms": len(t.terms)} for t in lists]

    settings = (
        "name description language threshold detectors operating_points tables subject consistent images ocr formulas"
    )
    return {
        **{name: to_plain(getattr(policy, name)) for name in (*settings.split(), "llm", "countries")},
        "tag": {"style": policy.style, "names": policy.names},
        "default": convert_rule(policy.default),
        "labels": {
            label.name: {**convert_rule(policy.rule(label.name)), "threshold": policy.threshold_for(label.name)}
            for label in policy.taxonomy
            if policy.looks_for(label.name)
        },
        "dictionary": count_terms(policy.dictionary),
        "exclusions": count_terms(policy.exclusions),
        "metadata": {k: list(v) for k, v in policy.metadata.items()},
        "patterns": [p.name for p in policy.patterns],
        "measured": _read_measured_points(policy),
        "fingerprint": policy.fingerprint(),
    }
