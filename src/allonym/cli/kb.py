"""``allonym kb``: the knowledge base behind pseudonyms."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from allonym.cli.progress import show_progress
from allonym.cli.terminal import print_heading, print_note, print_table
from allonym.errors import UnknownNameError

_FILE = click.Path(dir_okay=False, path_type=Path)
_KB = click.option("--kb", "path", type=_FILE, metavar="FILE", help="Knowledge base; by default the shipped one.")
SHOWN = 12


@click.group(short_help="Query and build the knowledge base behind pseudonyms.")
def kb() -> None:
    """Query the knowledge base behind pseudonyms, or build another one.

    \b
    Examples:
      allonym kb query Warszawa
      allonym kb info
      allonym kb import-wikidata latest-all.json.bz2 --kb large.sqlite
    """


@kb.command(short_help="Build the knowledge base of the package.")
@click.argument("out", type=_FILE, default="kb.sqlite", metavar="[OUT]")
def build(out: Path) -> None:
    """Build the knowledge base from open libraries and shipped facts, into OUT (by default kb.sqlite).

    The same libraries give the same bytes. Requires the extra: pip install 'allonym[kb]'

    \b
    Example:
      allonym kb build mine.sqlite
    """
    from allonym.kb.build import build_knowledge_base as write

    write(out)
    click.echo(f"{out}: {out.stat().st_size / 1e6:.1f} MB")


@kb.command(short_help="Show the contents and sources of a knowledge base.")
@_KB
@click.option(
    "--people",
    type=click.IntRange(2),
    metavar="N",
    help="Also estimate, for N people of one origin and gender, how many pairs share a pseudonym without a vault.",
)
def info(path: Path | None, people: int | None) -> None:
    """Show the contents of a knowledge base and its sources.

    \b
    Examples:
      allonym kb info
      allonym kb info --people 1000
    """
    from allonym.kb import KnowledgeBase

    base = KnowledgeBase.open(path)
    click.echo(f"{base.path.name}: {base.path.stat().st_size / 1e6:.1f} MB\n")
    print_heading("Things")
    print_table(
        ("kind", "known", "usable as pseudonyms"),
        [(kind, *counts) for kind, counts in base.counts().items()],
        right=(1, 2),
    )
    click.echo()
    print_heading("Names of people usable as pseudonyms")
    rows = [
        (
            origin,
            len(base.names("first", origin, "f")),
            len(base.names("first", origin, "m")),
            len(base.names("first", origin, "n")),
            len(base.names("last", origin)),
        )
        for origin in base.origins()
    ]
    if people is None:
        print_table(("origin", "women", "men", "either", "family"), rows, right=(1, 2, 3, 4))
    else:
        pairs = people * (people - 1) / 2
        chance = [(f"{pairs / max(1, f * last):.2f}", f"{pairs / max(1, m * last):.2f}") for _, f, m, _, last in rows]
        print_table(
            ("origin", "women", "men", "either", "family", "pairs of women", "pairs of men"),
            [(*row, *pair) for row, pair in zip(rows, chance, strict=True)],
            right=(1, 2, 3, 4, 5, 6),
        )
    click.echo()
    print_heading("Sources")
    for name, version, licence, credit, date in base.sources():
        click.echo(f"{name} ({version}), {licence}: {date}\n  {credit}")


@kb.command(short_help="Look up a name.")
@click.argument("text")
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only entities of this kind. Repeatable.")
@click.option("--country", default="", metavar="CODE", help="Only entities in this country, such as PL.")
@_KB
def query(text: str, kinds: tuple[str, ...], country: str, path: Path | None) -> None:
    """Look up TEXT: the entities with this name, what they belong to, and what could replace them.

    \b
    Examples:
      allonym kb query Warszawa
      allonym kb query Georgia --kind region
    """
    from allonym.kb import KINDS, KnowledgeBase
    from allonym.kb.base import HIERARCHY, Item, fold_key

    for kind in kinds:
        if kind not in KINDS:
            raise UnknownNameError("kind", kind, KINDS)
    base = KnowledgeBase.open(path)

    def join_names(items: tuple[Item, ...]) -> str:
        return ", ".join(i.label for i in items[:SHOWN]) + (f", ... ({len(items)})" if len(items) > SHOWN else "")

    items = base.find(text, kinds, country)
    for item in items[:SHOWN]:
        details = [d for d in (item.industry, item.region, item.country) if d]
        print_heading(f"{item.label} ({item.kind}{', ' if details else ''}{', '.join(details)})")
        for property in (*HIERARCHY, "capital", "language", "city"):
            related = base.related(item, property)
            if related:
                click.echo(f"  {property.replace('_', ' ')}: {join_names(related)}")
        labels = base.labels(item)
        if labels:
            shown = [f"{language}{f' {form}' if form else ''} {text}" for (language, form), text in labels.items()]
            click.echo(f"  called: {', '.join(shown)}")
        siblings = base.siblings(item)
        if siblings:
            click.echo(f"  siblings: {join_names(siblings)}")
    facts = () if kinds else base.name_facts(text)
    if facts:
        print_heading(f"{text} (name of people)")
        drawn = {
            (part, origin)
            for part, origin in {(fact.part, fact.origin) for fact in facts}
            if any(fold_key(name) == fold_key(text) for name in base.names(part, origin))
        }
        print_table(
            ("part", "origin", "gender", "weight", "substitute"),
            [(*fact, "yes" if (fact.part, fact.origin) in drawn else "no") for fact in facts],
            right=(3,),
        )
    if not items and not facts:
        print_note("the name is not in the knowledge base")


@kb.command("import-wikidata", short_help="Build a knowledge base from a Wikidata dump.")
@click.argument("dump", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--kb",
    "out",
    type=_FILE,
    default="wikidata.sqlite",
    show_default=True,
    metavar="OUT",
    help="Knowledge base to write.",
)
@click.option(
    "--languages", default="en,de,pl", show_default=True, metavar="CODES", help="Languages of the names to keep."
)
@click.option(
    "--min-sitelinks",
    type=click.IntRange(0),
    default=5,
    show_default=True,
    metavar="N",
    help="Least number of pages of an entity, over all wikis.",
)
def import_wikidata(dump: Path, out: Path, languages: str, min_sitelinks: int) -> None:
    """Build a knowledge base from DUMP, a JSON dump of Wikidata (latest-all.json.bz2 or .gz, or unpacked).

    The dump is read twice, line by line. Damaged lines are skipped and counted.

    \b
    Examples:
      allonym kb import-wikidata latest-all.json.bz2 --kb large.sqlite
    """
    from allonym.kb.wikidata import import_dump

    chosen_languages = tuple(filter(None, (code.strip() for code in languages.split(","))))
    with show_progress(enabled=True) as advance:
        summary = import_dump(dump, out, languages=chosen_languages, min_sitelinks=min_sitelinks, advance=advance)
    if summary.damaged:
        listed = ", ".join(map(str, summary.damaged_lines)) + (
            ", ..." if summary.damaged > len(summary.damaged_lines) else ""
        )
        print_note(f"{summary.damaged} damaged lines were skipped: {listed}")
    kinds = Counter(summary.kinds)
    click.echo(f"{out}: {summary.entities} of {summary.lines} entities, {summary.names} names of people")
    if kinds:
        click.echo(", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())))
