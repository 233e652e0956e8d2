"""``allonym policy``: list, show and check presets and policy files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from allonym.cli.options import _complete_presets
from allonym.cli.terminal import json_line, print_heading, print_table

if TYPE_CHECKING:
    from allonym.policy import Policy, Rule, TermList


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
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
def list_(as_json: bool) -> None:
    """List the presets.

    \b
    Example:
      allonym policy list
    """
    from allonym.policy import Policy, presets

    loaded = [(name, Policy.load(name)) for name in presets()]
    if as_json:
        for name, preset in loaded:
            row = {"name": name, "description": preset.description}
            click.echo(json_line(row))
        return
    print_table(["policy", "description"], [(name, preset.description) for name, preset in loaded], wrap=1)


@policy.command(short_help="Show a policy with all that it extends.")
@click.argument("name", metavar="NAME|FILE", shell_complete=_complete_presets)
@click.option("--all", "every", is_flag=True, help="Show a row for every label, not only where the operator changes.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole policy as one JSON object.")
def show(name: str, every: bool, as_json: bool) -> None:
    """Show a policy, a preset or a file, with all that it extends.

    The terms of dictionaries are counted, not shown.

    \b
    Examples:
      allonym policy show default
      allonym policy show mine.toml --all
    """
    from allonym.policy import Policy

    loaded_policy = Policy.load(name)
    if as_json:
        click.echo(json.dumps(_list_settings(loaded_policy), indent=2, ensure_ascii=False))
        return
    _print_policy(loaded_policy, every=every)


@policy.command(short_help="Check a policy and summarise it.")
@click.argument("name", metavar="NAME|FILE", shell_complete=_complete_presets)
def check(name: str) -> None:
    """Check a policy: read it, build all its detectors, and summarise it. The exit code is 2 if it has an error.

    \b
    Example:
      allonym policy check mine.toml && echo fine
    """
    from allonym.document import Document
    from allonym.keys import MIN_KEY_BYTES
    from allonym.pipeline import anonymize
    from allonym.policy import Policy

    loaded_policy = Policy.load(name)
    sample = Document("", "", {loaded_policy.subject: "somebody"} if loaded_policy.subject else {})
    anonymize(sample, loaded_policy.with_(every=True, exclude=(), countries=()), key=bytes(MIN_KEY_BYTES))
    _print_policy(loaded_policy, every=False)
    click.secho("ok", fg="green", err=True)


@policy.command(short_help="Print the JSON Schema of policy files.")
def schema() -> None:
    """Print the JSON Schema of policy files, for editors and checks.

    \b
    Example:
      allonym policy schema > allonym-policy.schema.json
    """
    from allonym.schema import policy_schema

    click.echo(json.dumps(policy_schema(), indent=2, ensure_ascii=False))


def _print_policy(loaded_policy: Policy, *, every: bool) -> None:
    looked = [lab.name for lab in loaded_policy.taxonomy if loaded_policy.looks_for(lab.name)]
    print_heading(loaded_policy.name)
    if loaded_policy.description:
        click.echo(loaded_policy.description)
    click.echo()
    facts: list[tuple[str, str]] = [
        ("language", loaded_policy.language),
        ("threshold", f"{loaded_policy.threshold:g}"),
        ("detectors", ", ".join(loaded_policy.detectors)),
    ]
    if "tagger" in loaded_policy.detectors:
        points = (f"{point} for {label}" for label, point in loaded_policy.operating_points.items() if label != "*")
        facts.append(
            ("operating point", ", ".join([str(loaded_policy.operating_points.get("*", "high-recall")), *points]))
        )
    facts += [
        (name, ", ".join(f"{k}={json.dumps(v)}" for k, v in t.items()))
        for name, t in _describe_detectors(loaded_policy).items()
    ]
    if loaded_policy.countries:
        facts.append(("countries", ", ".join(loaded_policy.countries)))
    facts.append(("looks for", f"{len(looked)} of {len(loaded_policy.taxonomy)} labels"))
    if loaded_policy.exclude:
        facts.append(("leaves alone", ", ".join(loaded_policy.exclude)))
    facts.append(
        (
            "tags",
            loaded_policy.style.format(label="LABEL", n=1)
            + (f", named as in {loaded_policy.names}" if loaded_policy.names else ""),
        )
    )
    if keyed := _list_keyed_operators(loaded_policy, looked):
        facts.append(("needs a key", f"for {', '.join(keyed)}; or a vault"))
    if loaded_policy.subject or loaded_policy.consistent != "scope":
        facts.append(
            (
                "consistent",
                f"by {loaded_policy.consistent}"
                + (f", subject from {loaded_policy.subject}" if loaded_policy.subject else ""),
            )
        )
    if loaded_policy.images != "remove":
        facts.append(("images", loaded_policy.images))
    if loaded_policy.ocr:
        facts.append(("OCR", loaded_policy.ocr))
    if loaded_policy.llm["url"]:
        facts.append(("language model", f"{loaded_policy.llm['model']} at {loaded_policy.llm['url']}"))
    for title, lists in (("dictionary", loaded_policy.dictionary), ("exclusions", loaded_policy.exclusions)):
        facts += [(title, _describe_lists(lists))] if lists else []
    if loaded_policy.metadata:
        facts.append(("metadata", "; ".join(f"{lab} from {', '.join(k)}" for lab, k in loaded_policy.metadata.items())))
    if loaded_policy.patterns:
        facts.append(("patterns", ", ".join(p.name for p in loaded_policy.patterns)))
    width = max(len(k) for k, _ in facts)
    for key, value in facts:
        click.echo(f"{click.style(key.ljust(width), dim=True)}  {value}")
    click.echo()
    print_table(
        ["label", "operator", "options", "threshold"],
        _list_rules(loaded_policy, looked, every=every),
        right=(3,),
        wrap=2,
    )


def _describe_detectors(loaded_policy: Policy) -> dict[str, dict[str, Any]]:
    """Return the options of the detectors, ready for JSON."""

    def convert_value(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {k: convert_value(v) for k, v in value.items()}
        return list(value) if isinstance(value, tuple) else value

    return {name: convert_value(table) for name, table in loaded_policy.tables.items()}


def _list_keyed_operators(loaded_policy: Policy, looked: list[str]) -> list[str]:
    from allonym.replace.mention import get_operator, get_operator_traits

    return sorted(
        {op for op in (loaded_policy.rule(n).operator for n in looked) if get_operator_traits(get_operator(op)).keyed}
    )


def _describe_lists(lists: Iterable[TermList]) -> str:
    return ", ".join(
        f"{len(terms.terms)} terms for {'any label' if terms.label == '*' else terms.label}" for terms in lists
    )


def _list_rules(loaded_policy: Policy, looked: list[str], *, every: bool) -> list[tuple[str, str, str, str]]:
    """Return a row for each selected label whose operator differs from its parent's, or at the top from the default."""
    rows = [] if every else [("everything else", *_describe_rule(loaded_policy.default, loaded_policy.threshold))]
    for name in looked:
        description = _describe_rule(loaded_policy.rule(name), loaded_policy.threshold_for(name))
        above = loaded_policy.taxonomy.lineage(name)[1:2]
        usual = (
            _describe_rule(loaded_policy.rule(above[0]), loaded_policy.threshold_for(above[0]))
            if above
            else rows[0][1:]
            if rows
            else None
        )
        if every or description != usual:
            rows.append((name, *description))
    return rows


def _describe_rule(rule: Rule, threshold: float) -> tuple[str, str, str]:
    options = ", ".join(f"{k}={json.dumps(v, ensure_ascii=False)}" for k, v in rule.options.items())
    return rule.operator, options, f"{threshold:.2f}"


def _list_settings(loaded_policy: Policy) -> dict[str, Any]:
    def convert_rule(rule: Rule) -> dict[str, Any]:
        return {"operator": rule.operator, "options": dict(rule.options)}

    def count_terms(lists: Iterable[TermList]) -> list[Mapping[str, object]]:
        return [{"label": t.label, "terms": len(t.terms)} for t in lists]

    return {
        "name": loaded_policy.name,
        "description": loaded_policy.description,
        "language": loaded_policy.language,
        "threshold": loaded_policy.threshold,
        "detectors": list(loaded_policy.detectors),
        "operating_points": dict(loaded_policy.operating_points),
        "tables": _describe_detectors(loaded_policy),
        "subject": loaded_policy.subject,
        "consistent": loaded_policy.consistent,
        "images": loaded_policy.images,
        "ocr": loaded_policy.ocr,
        "llm": {name: dict(v) if isinstance(v, Mapping) else v for name, v in loaded_policy.llm.items()},
        "countries": list(loaded_policy.countries),
        "tag": {"style": loaded_policy.style, "names": loaded_policy.names},
        "default": convert_rule(loaded_policy.default),
        "labels": {
            lab.name: {**convert_rule(loaded_policy.rule(lab.name)), "threshold": loaded_policy.threshold_for(lab.name)}
            for lab in loaded_policy.taxonomy
            if loaded_policy.looks_for(lab.name)
        },
        "dictionary": count_terms(loaded_policy.dictionary),
        "exclusions": count_terms(loaded_policy.exclusions),
        "metadata": {k: list(v) for k, v in loaded_policy.metadata.items()},
        "patterns": [p.name for p in loaded_policy.patterns],
        "fingerprint": loaded_policy.fingerprint(),
    }
