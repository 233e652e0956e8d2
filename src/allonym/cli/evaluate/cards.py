"""``allonym evaluate cards``: what is left about each person of each document, and how many people fit it."""

from __future__ import annotations

import click

from allonym.cli.evaluate.options import Output, Source
from allonym.cli.signatures import take_options
from allonym.settings import declare_setting


@click.command(short_help="Make a card for each person: what is left, and how many people fit.")
@take_options
def cards(
    *,
    source: Source,
    limit: int = declare_setting(5, "people who must fit each person's card", low=2, option="K"),
    output: Output,
) -> None:
    """Make a card for each person of each document, not only for its author.

    A card lists what ANONYMISED still says of a person (age, place, work, relatives, health, dates, rare facts), and
    how many people of a population fit it. It tells so for a stranger with statistics, for somebody who searches the
    web, and for an acquaintance. People behind placeholders and pseudonyms count, and so do people who are mentioned
    once. For English texts. Populations are rough estimates. Only --with-text shows the words themselves.

    \b
    Examples:
      allonym evaluate cards raw/ safe/ --report cards.html
      allonym evaluate cards original.jsonl safe.jsonl --limit 10 --with-text --report cards.html
      allonym harden original.jsonl safe.jsonl --people 5 -o hard.jsonl
    """
    from allonym.evaluate.cards import person_cards

    output.check_writable(*source.paths)
    pairs = source.read_pairs()
    with output.show_progress("cards") as advance:
        result = person_cards(pairs.anonymised, pairs.original, ids=pairs.ids, limit=limit, advance=advance)
    output.write_measure("cards", result.to_dict(output.with_text))
