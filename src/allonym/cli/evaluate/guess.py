"""``allonym evaluate guess``: a language model guesses the persons that texts are about, or their attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from allonym.cli.evaluate.options import (
    Output,
    Source,
    output_options,
    replace_hard_spaces,
    section_page,
    seed_option,
    show_estimates,
    source_options,
)
from allonym.cli.evaluate.people import read_aliases, show_people
from allonym.cli.options import key_option, policy_option, read_key
from allonym.cli.terminal import print_table

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_before = click.option("--before", is_flag=True, help="Also ask about the originals, which sends them to the endpoint.")
_kind = click.option(
    "--kind", metavar="WORDS", default="text", show_default=True, help="Kind of the texts, for the prompt."
)
_guesses = click.option(
    "--guesses", type=click.IntRange(1), default=3, show_default=True, help="Number of guesses per text."
)


@click.group(short_help="Let a language model guess whom texts are about.")
def guess() -> None:
    """Let a language model guess whom texts are about. It is the model that a policy's table [llm] names.

    \b
    Examples:
      allonym evaluate guess persons original.jsonl safe.jsonl --subject subject --policy mine.toml
      allonym evaluate guess attributes original.jsonl safe.jsonl --attribute age=profile.age --policy mine.toml
    """


@guess.command(short_help="Guess the person that each text is about.")
@source_options
@click.option("--subject", required=True, metavar="KEY", help="Metadata field with the true name.")
@click.option("--group", metavar="KEY", help="Metadata field with the fame class.")
@click.option(
    "--aliases", type=_FILE, metavar="FILE", help="CSV without a header: the true name, and further names that count."
)
@_kind
@_guesses
@_before
@policy_option
@key_option
@seed_option
@output_options
def persons(
    source: Source,
    subject: str,
    group: str | None,
    aliases: Path | None,
    kind: str,
    guesses: int,
    before: bool,
    policy: str,
    key_file: Path | None,
    seed: int,
    output: Output,
) -> None:
    """Let a language model do P3's judging task: a name, a confidence, and what revealed the person.

    \b
    Example:
      allonym evaluate guess persons original.jsonl safe.jsonl --subject subject --policy mine.toml
    """
    from allonym.evaluate.guessing import person_guesses
    from allonym.intruder.persons import open_client
    from allonym.report.evaluate.people import people_section

    output.check(source.paths)
    client = open_client(*_load_settings(policy, key_file))
    pairs = source.read()
    groups = pairs.labels(group) if group else []
    with output.progress("asking") as advance:
        result = person_guesses(
            pairs.original, pairs.anonymised, pairs.labels(subject), groups=groups, aliases=read_aliases(aliases),
            before=before, client=client, kind=kind, guesses=guesses, seed=seed, advance=advance,
        )  # fmt: skip
    data = result.to_dict(texts=output.with_text)
    shown = data["after"]
    output.write(
        {"guess_persons": data},
        lambda: section_page("Persons guessed", [people_section(shown, texts=output.with_text)]),
    )
    show_people(result.after)
    if result.before:
        click.echo()
        rows = [("before", result.before.results.all.identified, "share"), ("change", result.change, "share")]
        show_estimates(rows, "identified")  # type: ignore[arg-type]


@guess.command(short_help="Guess attributes of the person, such as age.")
@source_options
@click.option("--attribute", "wanted", multiple=True, required=True, metavar="NAME[=KEY]",
              help="age, sex, place, birthplace, education, occupation, relationship or income, and the metadata "
              "field with its true value. Repeatable.")  # fmt: skip
@click.option("--person", metavar="WORDS", default="author", show_default=True, help="Whose attributes.")
@_kind
@_guesses
@_before
@policy_option
@key_option
@output_options
def attributes(
    source: Source,
    wanted: tuple[str, ...],
    person: str,
    kind: str,
    guesses: int,
    before: bool,
    policy: str,
    key_file: Path | None,
    output: Output,
) -> None:
    """Let a language model infer attributes after Staab et al. 2023, scored by rules.

    \b
    Example:
      allonym evaluate guess attributes original.jsonl safe.jsonl --attribute age=profile.age --policy mine.toml
    """
    from allonym.errors import UnknownNameError
    from allonym.evaluate.guessing import attribute_guesses
    from allonym.evaluate.reading import get_metadata_value
    from allonym.intruder.attributes import ATTRIBUTES
    from allonym.intruder.persons import open_client
    from allonym.report.evaluate.intruders import attributes_section
    from allonym.report.numbers import format_cell

    keys = {name: field or name for name, _, field in (option.partition("=") for option in wanted)}
    for name in keys:
        if name not in ATTRIBUTES:
            raise UnknownNameError("attribute", name, ATTRIBUTES, "--attribute")
    output.check(source.paths)
    client = open_client(*_load_settings(policy, key_file))
    pairs = source.read()
    for field in keys.values():
        if not any(get_metadata_value(meta, field) for meta in pairs.meta):
            pairs.labels(field)  # its message lists the keys
    profiles = [{name: get_metadata_value(meta, field) for name, field in keys.items()} for meta in pairs.meta]
    with output.progress("asking") as advance:
        result = attribute_guesses(
            pairs.original, pairs.anonymised, profiles, attributes=tuple(keys), before=before, client=client,
            person=person, kind=kind, guesses=guesses, advance=advance,
        )  # fmt: skip
    data = result.to_dict()
    output.write(
        {"guess_attributes": data}, lambda: section_page("Attributes inferred", [attributes_section(data["after"])])
    )
    write: Callable[[Any], str] = lambda e: replace_hard_spaces(format_cell(e, "share", 1).text)  # noqa: E731
    rows = []
    for rate in (*result.after.attributes, result.after.all):
        numbers = (rate.guessed, rate.first, rate.first_less, rate.any, rate.any_less)
        rows.append((rate.attribute or "all", str(rate.texts), *map(write, numbers)))
    head = ("attribute", "texts", "guessed", "first right", "or less precise", "any right", "or less precise")
    print_table(head, rows, right=(1, 2, 3, 4, 5, 6))
    if result.before:
        click.echo()
        show_estimates(
            [("before", result.before.all.first, "share"), ("change", result.change, "share")], "first right"
        )


def _load_settings(policy: str, key_file: Path | None) -> tuple[Mapping[str, object], bytes | None]:
    from allonym.keys import derive_operator_key
    from allonym.policy import Policy

    settings = Policy.load(policy).llm
    key = read_key(key_file) if settings["cache"] else None
    return settings, None if key is None else derive_operator_key(key, "llm cache")
