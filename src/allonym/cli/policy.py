"""``allonym policy``: what the presets and policy files say."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from allonym.cli.options import _presets
from allonym.cli.terminal import heading, json_line, table

if TYPE_CHECKING:
    from allonym.policy import Policy, Rule, TermList


@click.group(short_help="List, show and check policies.")
def policy() -> None:
    """List, show and check policies: what is looked for, how sure we must be, what replaces it.

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
        for name, one in loaded:
            row = {"name": name, "description": one.description}
            click.echo(json_line(row))
        return
    table(["policy", "what it does"], [(name, one.description) for name, one in loaded], wrap=1)


@policy.command(short_help="Show the policy that is in force.")
@click.argument("name", metavar="NAME|FILE", shell_complete=_presets)
@click.option("--all", "every", is_flag=True, help="A row for each label, not only where the rule changes.")
@click.option("--json", "as_json", is_flag=True, help="The whole policy as one JSON object.")
def show(name: str, every: bool, as_json: bool) -> None:
    """Show the policy that is in force: a preset or a file, with all that it extends.

    Terms of dictionaries are counted, not shown.

    \b
    Examples:
      allonym policy show default
      allonym policy show mine.toml --all
    """
    from allonym.policy import Policy

    one = Policy.load(name)
    if as_json:
        click.echo(json.dumps(_settings(one), indent=2, ensure_ascii=False))
        return
    _show(one, every=every)


@policy.command(short_help="Check a policy and say what it does.")
@click.argument("name", metavar="NAME|FILE", shell_complete=_presets)
def check(name: str) -> None:
    """Check a policy: read it, build all its detectors, and say what it does. An error ends with exit code 2.

    \b
    Example:
      allonym policy check mine.toml && echo fine
    """
    from allonym.document import Document
    from allonym.keys import MIN_KEY_BYTES
    from allonym.pipeline import anonymize
    from allonym.policy import Policy

    one = Policy.load(name)
    sample = Document("", "", {one.subject: "somebody"} if one.subject else {})
    anonymize(sample, one.with_(every=True, exclude=(), countries=()), key=bytes(MIN_KEY_BYTES))
    _show(one, every=False)
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


def _show(one: Policy, *, every: bool) -> None:
    looked = [lab.name for lab in one.taxonomy if one.looks_for(lab.name)]
    heading(one.name)
    if one.description:
        click.echo(one.description)
    click.echo()
    facts: list[tuple[str, str]] = [
        ("language", one.language),
        ("threshold", f"{one.threshold:g}"),
        ("detectors", ", ".join(one.detectors)),
    ]
    if "tagger" in one.detectors:
        points = (f"{point} for {label}" for label, point in one.operating_points.items() if label != "*")
        facts.append(("operating point", ", ".join([str(one.operating_points.get("*", "high-recall")), *points])))
    facts += [(name, ", ".join(f"{k}={json.dumps(v)}" for k, v in t.items())) for name, t in _tables(one).items()]
    if one.countries:
        facts.append(("countries", ", ".join(one.countries)))
    facts.append(("looks for", f"{len(looked)} of {len(one.taxonomy)} labels"))
    if one.exclude:
        facts.append(("leaves alone", ", ".join(one.exclude)))
    facts.append(("tags", one.style.format(label="LABEL", n=1) + (f", named as in {one.names}" if one.names else "")))
    if keyed := _keyed(one, looked):
        facts.append(("needs a key", f"for {', '.join(keyed)}; or a vault"))
    if one.subject or one.consistent != "scope":
        facts.append(("consistent", f"by {one.consistent}" + (f", subject from {one.subject}" if one.subject else "")))
    if one.images != "remove":
        facts.append(("images", one.images))
    if one.ocr:
        facts.append(("OCR", one.ocr))
    if one.llm["url"]:
        facts.append(("language model", f"{one.llm['model']} at {one.llm['url']}"))
    for title, lists in (("dictionary", one.dictionary), ("exclusions", one.exclusions)):
        facts += [(title, _counted(lists))] if lists else []
    if one.metadata:
        facts.append(("metadata", "; ".join(f"{lab} from {', '.join(k)}" for lab, k in one.metadata.items())))
    if one.patterns:
        facts.append(("patterns", ", ".join(p.name for p in one.patterns)))
    width = max(len(k) for k, _ in facts)
    for key, value in facts:
        click.echo(f"{click.style(key.ljust(width), dim=True)}  {value}")
    click.echo()
    table(["label", "operator", "options", "threshold"], _rules(one, looked, every=every), right=(3,), wrap=2)


def _tables(one: Policy) -> dict[str, dict[str, Any]]:
    """The options of detectors, ready for JSON."""

    def plain(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {k: plain(v) for k, v in value.items()}
        return list(value) if isinstance(value, tuple) else value

    return {name: plain(table) for name, table in one.tables.items()}


def _keyed(one: Policy, looked: list[str]) -> list[str]:
    from allonym.replace.mention import get_operator, traits_of

    return sorted({op for op in (one.rule(n).operator for n in looked) if traits_of(get_operator(op)).keyed})


def _counted(lists: Iterable[TermList]) -> str:
    return ", ".join(f"{len(one.terms)} terms for {'any label' if one.label == '*' else one.label}" for one in lists)


def _rules(one: Policy, looked: list[str], *, every: bool) -> list[tuple[str, str, str, str]]:
    """A row for each label looked for whose rule differs from its parent's, or at the top from the default's."""
    rows = [] if every else [("everything else", *_told(one.default, one.threshold))]
    for name in looked:
        told = _told(one.rule(name), one.threshold_for(name))
        above = one.taxonomy.lineage(name)[1:2]
        usual = _told(one.rule(above[0]), one.threshold_for(above[0])) if above else rows[0][1:] if rows else None
        if every or told != usual:
            rows.append((name, *told))
    return rows


def _told(rule: Rule, threshold: float) -> tuple[str, str, str]:
    options = ", ".join(f"{k}={json.dumps(v, ensure_ascii=False)}" for k, v in rule.options.items())
    return rule.operator, options, f"{threshold:.2f}"


def _settings(one: Policy) -> dict[str, Any]:
    def plain(rule: Rule) -> dict[str, Any]:
        return {"operator": rule.operator, "options": dict(rule.options)}

    def counted(lists: Iterable[TermList]) -> list[Mapping[str, object]]:
        return [{"label": t.label, "terms": len(t.terms)} for t in lists]

    return {
        "name": one.name,
        "description": one.description,
        "language": one.language,
        "threshold": one.threshold,
        "detectors": list(one.detectors),
        "operating_points": dict(one.operating_points),
        "tables": _tables(one),
        "subject": one.subject,
        "consistent": one.consistent,
        "images": one.images,
        "ocr": one.ocr,
        "llm": {name: dict(v) if isinstance(v, Mapping) else v for name, v in one.llm.items()},
        "countries": list(one.countries),
        "tag": {"style": one.style, "names": one.names},
        "default": plain(one.default),
        "labels": {
            lab.name: {**plain(one.rule(lab.name)), "threshold": one.threshold_for(lab.name)}
            for lab in one.taxonomy
            if one.looks_for(lab.name)
        },
        "dictionary": counted(one.dictionary),
        "exclusions": counted(one.exclusions),
        "metadata": {k: list(v) for k, v in one.metadata.items()},
        "patterns": [p.name for p in one.patterns],
        "fingerprint": one.fingerprint(),
    }
