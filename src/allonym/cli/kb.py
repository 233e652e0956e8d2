"""``allonym kb``: the knowledge base behind pseudonyms."""

from __future__ import annotations

from pathlib import Path

import click

from allonym.cli.options import declare_output
from allonym.cli.signatures import take_options
from allonym.cli.terminal import print_heading, print_note, print_table, show_byte_progress
from allonym.kb import KINDS
from allonym.settings import REQUIRED, declare_setting

KB = declare_setting(None, "knowledge base; by default the shipped one", noun="new file", option="FILE")
SHOWN = 12


@click.group(short_help="Query and build the knowledge base behind pseudonyms.")
def kb() -> None:
    """Query the knowledge base behind pseudonyms, or build another one.

    \b
    Examples:
      allonym kb query Warszawa
      allonym kb info
      allonym kb import-wikidata latest-all.json.bz2 -o large.sqlite
    """


@kb.command(short_help="Build the knowledge base of the package.")
@take_options
def build(
    out: Path = declare_setting(Path("kb.sqlite"), "knowledge base to write", noun="new file", option="<OUT>"),
) -> None:
    """Build the knowledge base from open libraries and shipped facts, into OUT (by default kb.sqlite).

    The same libraries give the same bytes. Requires the extra kb.

    \b
    Example:
      allonym kb build mine.sqlite
    """
    from allonym.kb.build import build_knowledge_base

    build_knowledge_base(out)
    click.echo(f"{out}: {out.stat().st_size / 1e6:.1f} MB")


@kb.command(short_help="Show the contents and sources of a knowledge base.")
@take_options
def info(
    *,
    kb: Path | None = KB,
    people: int | None = declare_setting(
        None,
        "also estimate, for N people of one origin and gender, how many pairs share a pseudonym without a vault",
        low=2,
        option="N",
    ),
) -> None:
    """Show the contents of a knowledge base and its sources.

    \b
    Examples:
      allonym kb info
      allonym kb info --people 1000
    """
    from allonym.kb import KnowledgeBase

    base = KnowledgeBase.open(kb)
    click.echo(f"{base.path.name}: {base.path.stat().st_size / 1e6:.1f} MB\n")
    print_heading("Things")
    print_table(
        ("kind", "known", "usable as pseudonyms"),
        [(kind, *counts) for kind, counts in base.counts().items()],
        right=(1, 2),
    )
    click.echo()
    print_heading("Names of people usable as pseudonyms")
    rows: list[tuple[object, ...]] = []
    for origin in base.origins():
        women, men, either = (len(base.names("first", origin, gender)) for gender in "fmn")
        family = len(base.names("last", origin))
        row: tuple[object, ...] = (origin, women, men, either, family)
        if people is not None:
            pairs = people * (people - 1) / 2
            row += tuple(f"{pairs / max(1, first * family):.2f}" for first in (women, men))
        rows.append(row)
    head = ["origin", "women", "men", "either", "family"]
    head += [] if people is None else ["pairs of women", "pairs of men"]
    print_table(head, rows, right=range(1, len(head)))
    click.echo()
    print_heading("Sources")
    for name, version, licence, credit, date in base.sources():
        click.echo(f"{name} ({version}), {licence}: {date}\n  {credit}")


@kb.command(short_help="Look up a name.")
@take_options
def query(
    text: str,
    *,
    kind: tuple[str, ...] = declare_setting((), "only entities of this kind", one_of=KINDS, option="KIND"),
    country: str = declare_setting("", "only entities in this country, such as PL", option="CODE"),
    kb: Path | None = KB,
) -> None:
    """Look up TEXT: the entities with this name, what they belong to, and what could replace them.

    \b
    Examples:
      allonym kb query Warszawa
      allonym kb query Georgia --kind region
    """
    from allonym.kb import KnowledgeBase
    from allonym.kb.base import HIERARCHY, Item, fold_key

    base = KnowledgeBase.open(kb)

    def join_names(items: tuple[Item, ...]) -> str:
        return ", ".join(i.label for i in items[:SHOWN]) + (f", ... ({len(items)})" if len(items) > SHOWN else "")

    items = base.find(text, kind, country)
    for item in items[:SHOWN]:
        details = [d for d in (item.industry, item.region, item.country) if d]
        print_heading(f"{item.label} ({item.kind}{', ' if details else ''}{', '.join(details)})")
        for property in (*HIERARCHY, "capital", "language", "city"):
            if related := base.related(item, property):
                click.echo(f"  {property.replace('_', ' ')}: {join_names(related)}")
        if labels := base.labels(item):
            shown = [f"{language}{f' {form}' if form else ''} {text}" for (language, form), text in labels.items()]
            click.echo(f"  called: {', '.join(shown)}")
        if siblings := base.siblings(item):
            click.echo(f"  siblings: {join_names(siblings)}")
    facts = () if kind else base.name_facts(text)
    if facts:
        print_heading(f"{text} (name of people)")
        parts = {(fact.part, fact.origin) for fact in facts}
        drawn = {part for part in parts if any(fold_key(name) == fold_key(text) for name in base.names(*part))}
        rows = [(*fact, "yes" if (fact.part, fact.origin) in drawn else "no") for fact in facts]
        print_table(("part", "origin", "gender", "weight", "substitute"), rows, right=(3,))
    if not items and not facts:
        print_note("the name is not in the knowledge base")


@kb.command("import-wikidata", short_help="Build a knowledge base from a Wikidata dump.")
@take_options
def import_wikidata(
    dump: Path = declare_setting(REQUIRED, "JSON dump", noun="file", option="<DUMP>"),
    *,
    output: Path = declare_output(Path("wikidata.sqlite"), "new file"),
    languages: tuple[str, ...] = declare_setting(
        ("en", "de", "pl"), "languages of the names to keep", option="CODE,..."
    ),
    min_sitelinks: int = declare_setting(5, "least number of pages of an entity, over all wikis", low=0, option="N"),
) -> None:
    """Build a knowledge base from DUMP, a JSON dump of Wikidata (latest-all.json.bz2 or .gz, or unpacked).

    The dump is read twice, line by line. Damaged lines are skipped and counted.

    \b
    Examples:
      allonym kb import-wikidata latest-all.json.bz2 -o large.sqlite
    """
    from allonym.kb.wikidata import import_dump

    with show_byte_progress(enabled=True) as advance:
        summary = import_dump(dump, output, languages=languages, min_sitelinks=min_sitelinks, advance=advance)
    if summary.damaged:
        more = ", ..." if summary.damaged > len(summary.damaged_lines) else ""
        listed = ", ".join(map(str, summary.damaged_lines))
        print_note(f"{summary.damaged} damaged lines were skipped: {listed}{more}")
    click.echo(f"{output}: {summary.entities} of {summary.lines} entities, {summary.names} names of people")
    if summary.kinds:
        click.echo(", ".join(f"{count} {kind}" for kind, count in sorted(summary.kinds.items())))
