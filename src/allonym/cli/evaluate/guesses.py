"""``allonym evaluate intruder-study`` and ``guess``: people or a language model guess whom texts are about."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from allonym.cli import options as common_options
from allonym.cli.evaluate import options
from allonym.cli.evaluate.options import Output, Source, print_blocks
from allonym.cli.options import COUNT, FILE, NEW_FILE, NEW_FOLDER, PATH, POSITIVE, flag, option, read_key
from allonym.cli.outputs import check_outputs, write_files
from allonym.cli.terminal import format_json_line, print_note
from allonym.errors import UsageError, check_names

if TYPE_CHECKING:
    from allonym.evaluate.sheets import Sheets
    from allonym.llm import Client
    from allonym.stats import Estimate


class Model(NamedTuple):
    """The language model of a policy, and the key of its cache."""

    policy: str = common_options.policy_option
    key_file: Path | None = common_options.key_option

    def open_client(self) -> Client:
        """Open the language model with its cache."""
        from allonym.intruder.persons import open_client
        from allonym.keys import derive_operator_key
        from allonym.policy import Policy

        settings = Policy.load(self.policy).llm
        key = read_key(self.key_file) if settings["cache"] else None
        return open_client(settings, None if key is None else derive_operator_key(key, "llm cache"))


_KEY, _PAGES = "key.json", "pages"
_overwrite = flag("--overwrite", "Replace existing pages and keys.")
_consent = option("--consent FILE", "Text of the consent that people give before they begin.", type=FILE)
_asking = common_options.with_options(
    option("--kind WORDS", "Kind of the texts, for the prompt.", default="text"),
    option("--guesses", "Number of guesses per text.", type=POSITIVE, default=3),
    flag("--before", "Also ask about the originals, which sends them to the endpoint."),
    common_options.group_options("model", Model),
)


@click.group(name="intruder-study", short_help="Let people guess whom anonymised texts are about.")
def intruder_study() -> None:
    """Let people guess whom anonymised texts are about: make pages for a browser, and read the answers.

    \b
    Examples:
      allonym evaluate intruder-study collect study/ --pool people.csv --fictitious 10 --writers 20
      allonym evaluate intruder-study gather study/key.json answers/ -o original.jsonl
      allonym anonymize original.jsonl -o safe.jsonl
      allonym evaluate intruder-study judge original.jsonl safe.jsonl --pages judging/ --subject subject --group group
      allonym evaluate intruder-study analyse judging/key.json answers/ --report people.html
    """


@intruder_study.command(short_help="Make pages on which people describe persons.")
@click.argument("folder", metavar="OUT", type=NEW_FOLDER)
@option("--pool FILE", "CSV of people with columns group, name and optionally link; others are facts.", type=FILE)
@option("--fictitious N", "Number of fictitious people to add, from the knowledge base.", type=COUNT, default=10)
@option("--writers N", "Number of writers: one page each.", type=POSITIVE, required=True)
@option("--each N", "People per group on each page.", type=POSITIVE, default=1)
@option("--least N", "Least number of characters in a description.", type=POSITIVE, default=500)
@_consent
@options.seed_option
@_overwrite
def collect(
    folder: Path,
    pool: Path | None,
    fictitious: int,
    writers: int,
    each: int,
    least: int,
    consent: Path | None,
    seed: int,
    overwrite: bool,
) -> None:
    """Write one page per writer to OUT/pages, and OUT/key.json.

    \b
    Example:
      allonym evaluate intruder-study collect study/ --pool people.csv --fictitious 10 --writers 20
    """
    from allonym.evaluate import sheets as profiles
    from allonym.evaluate.sheets import make_collection_sheets

    subjects = profiles.read_subjects(pool) if pool else []
    subjects += profiles.fictitious_people(fictitious, seed=seed)
    sheets = make_collection_sheets(subjects, writers, each=each, seed=seed)
    more = {"least": least, "consent": _read_consent(consent), "fictitious": profiles.FICTITIOUS}
    _write_pages(folder, sheets, (pool, consent), overwrite, more)


@intruder_study.command(short_help="Collect the descriptions in a corpus.")
@click.argument("key", metavar="KEY", type=FILE)
@click.argument("answers", metavar="ANSWERS...", type=PATH, nargs=-1, required=True)
@option("-o, --output FILE", "JSON lines with id, text, subject and group.", type=NEW_FILE, required=True)
@option("--least N", "Least number of characters in a description.", type=COUNT, default=500)
@_overwrite
def gather(key: Path, answers: tuple[Path, ...], output: Path, least: int, overwrite: bool) -> None:
    """Collect saved answers, files or folders of them, in a corpus.

    \b
    Example:
      allonym evaluate intruder-study gather study/key.json answers/ -o original.jsonl
    """
    from allonym.evaluate.people import read_descriptions
    from allonym.evaluate.sheets import read_answers, read_key

    check_outputs([output], [key, *answers], overwrite)
    sheets = read_key(key)
    records = read_descriptions(sheets, read_answers(_list_answer_files(answers), sheets), least=least)
    write_files({output: "".join(f"{format_json_line(r)}\n" for r in records)}, private=True)
    print_note(f"{output}, {len(records)} descriptions", label="written:")


@intruder_study.command(short_help="Make pages on which people judge anonymised texts.")
@options.source_options
@option("--pages OUT", "Folder for the pages and the key.", name="folder", type=NEW_FOLDER, required=True)
@option("--subject KEY", "Metadata field with the true name.", required=True)
@option("--group KEY", "Metadata field with the fame class; a judge gets texts of one class.")
@option("--judgements N", "Judgements per text.", type=POSITIVE, default=3)
@option("--judges N", "Number of pages per group, instead of --judgements.", type=POSITIVE)
@option("--per-page N", "Texts per page.", type=POSITIVE, default=10)
@_consent
@options.seed_option
@_overwrite
def judge(
    source: Source,
    folder: Path,
    subject: str,
    group: str | None,
    consent: Path | None,
    overwrite: bool,
    **settings: Any,
) -> None:
    """Write one page per judge to OUT/pages, and the true names to OUT/key.json: do not show that to judges.

    Pages contain the anonymised texts only, nothing of the originals or the metadata.

    \b
    Example:
      allonym evaluate intruder-study judge original.jsonl safe.jsonl --pages judging/ --subject subject --group group
    """
    from allonym.evaluate.sheets import make_judging_sheets

    pairs = source.read_pairs()
    groups = pairs.labels(group) if group else []
    sheets = make_judging_sheets(pairs.ids, pairs.anonymised, pairs.labels(subject), groups, **settings)
    _write_pages(folder, sheets, (*source.paths, consent), overwrite, {"consent": _read_consent(consent)})


@intruder_study.command(short_help="Evaluate the judgements: rates, agreement, revealing words.")
@click.argument("key", metavar="KEY", type=FILE)
@click.argument("answers", metavar="ANSWERS...", type=PATH, nargs=-1, required=True)
@option("--aliases FILE", "CSV without a header: the true name, and further names that count.", type=FILE)
@option(
    "--cut",
    "Least similarity of names at which a person counts as identified.",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.75,
)
@option("--top", "Number of n-grams in the result.", type=POSITIVE, default=10)
@options.seed_option
@options.output_options
def analyse(key: Path, answers: tuple[Path, ...], aliases: Path | None, output: Output, **settings: Any) -> None:
    """Evaluate saved answers, files or folders of them: how often people identified the subjects.

    \b
    Example:
      allonym evaluate intruder-study analyse judging/key.json answers/ --report people.html --with-text
    """
    from allonym.evaluate import people
    from allonym.evaluate.sheets import read_answers, read_key

    output.check_writable(key, *answers)
    sheets = read_key(key)
    truths, judgements = people.list_truths_and_judgements(sheets, read_answers(_list_answer_files(answers), sheets))
    result = people.people_study(truths, judgements, aliases=_read_aliases(aliases), **settings)
    output.write_measure("people", result.to_dict(texts=output.with_text))


def _read_aliases(path: Path | None) -> dict[str, list[str]]:
    """Read the further names of each true name from a CSV without a header.

    Raises:
        UsageError: the file cannot be read.
    """
    if path is None:
        return {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [[cell.strip() for cell in row] for row in csv.reader(file)]
    except (OSError, UnicodeDecodeError, csv.Error):
        raise UsageError(f"cannot read {path.name}: a CSV in UTF-8 is required") from None
    return {row[0]: [name for name in row[1:] if name] for row in rows if row and row[0]}


def _write_pages(
    folder: Path, sheets: Sheets, inputs: Iterable[Path | None], overwrite: bool, more: Mapping[str, Any]
) -> None:
    from allonym.report.intruder_study import study_page

    width = len(str(len(sheets.pages)))
    names = [folder / _PAGES / f"{sheets.task}-{i:0{width}}.html" for i in range(1, len(sheets.pages) + 1)]
    check_outputs([folder / _KEY, *names], inputs, overwrite)
    for i, (path, tokens) in enumerate(zip(names, sheets.pages, strict=True), 1):
        entries = [sheets.entries[token] for token in tokens]
        items = [{n: getattr(e, n) for n in ("token", "text", "subject", "group", "link", "facts")} for e in entries]
        write_files({path: study_page(sheets.task, sheets.study, i, items, **more)}, private=True)
    write_files({folder / _KEY: sheets.to_key_json()}, private=True)
    print_note(f"{len(names)} pages in {folder / _PAGES}", label="written:")
    print_note(f"{folder / _KEY} lists whom each text is about: do not share it with the pages")


def _list_answer_files(paths: tuple[Path, ...]) -> list[Path]:
    out: list[Path] = []
    for path in paths:
        files = [path]
        if path.is_dir():
            files = [p for p in sorted(path.iterdir()) if p.suffix.lower() in (".json", ".csv")]
        if not files:
            raise UsageError(f"{path} contains no answers: files that end in .json or .csv")
        out += files
    return out


def _read_consent(path: Path | None) -> str:
    try:
        return path.read_text(encoding="utf-8-sig").strip() if path else ""
    except UnicodeDecodeError:
        raise UsageError(f"cannot read {path}: it is not UTF-8") from None


@click.group(short_help="Let a language model guess whom texts are about.")
def guess() -> None:
    """Let a language model guess whom texts are about. It is the model that a policy's table [llm] names.

    \b
    Examples:
      allonym evaluate guess persons original.jsonl safe.jsonl --subject subject --policy mine.toml
      allonym evaluate guess attributes original.jsonl safe.jsonl --attribute age=profile.age --policy mine.toml
    """


@guess.command(short_help="Guess the person that each text is about.")
@options.source_options
@option("--subject KEY", "Metadata field with the true name.", required=True)
@option("--group KEY", "Metadata field with the fame class.")
@option("--aliases FILE", "CSV without a header: the true name, and further names that count.", type=FILE)
@_asking
@options.seed_option
@options.output_options
def persons(
    source: Source, subject: str, group: str | None, aliases: Path | None, model: Model, output: Output, **settings: Any
) -> None:
    """Let a language model do P3's judging task: a name, a confidence, and what revealed the person.

    \b
    Example:
      allonym evaluate guess persons original.jsonl safe.jsonl --subject subject --policy mine.toml
    """
    from allonym.evaluate.people import person_guesses

    output.check_writable(*source.paths)
    settings["client"] = model.open_client()
    pairs = source.read_pairs()
    texts = (pairs.original, pairs.anonymised, pairs.labels(subject))
    settings |= {"groups": pairs.labels(group) if group else [], "aliases": _read_aliases(aliases)}
    with output.show_progress("asking") as advance:
        result = person_guesses(*texts, advance=advance, **settings)
    data = result.to_dict(texts=output.with_text)
    output.write_measure("guess_persons", data, shown=data["after"])
    if result.before:
        _print_change(result.before.results.all.identified, result.change, "identified")


@guess.command(short_help="Guess attributes of the person, such as age.")
@options.source_options
@option(
    "--attribute NAME[=KEY]",
    "age, sex, place, birthplace, education, occupation, relationship or income, and the metadata field with "
    "its true value. Repeatable.",
    name="wanted",
    multiple=True,
    required=True,
)
@option("--person WORDS", "Person whose attributes are guessed.", default="author")
@_asking
@options.output_options
def attributes(source: Source, wanted: tuple[str, ...], model: Model, output: Output, **settings: Any) -> None:
    """Let a language model infer attributes after Staab et al. 2023, scored by rules.

    \b
    Example:
      allonym evaluate guess attributes original.jsonl safe.jsonl --attribute age=profile.age --policy mine.toml
    """
    from allonym.evaluate.pairs import get_metadata_value
    from allonym.evaluate.people import attribute_guesses
    from allonym.intruder.persons import ATTRIBUTES

    keys = {name: field or name for name, _, field in (option.partition("=") for option in wanted)}
    check_names("attribute", keys, ATTRIBUTES, "--attribute")
    output.check_writable(*source.paths)
    settings["client"] = model.open_client()
    pairs = source.read_pairs()
    for field in keys.values():
        if not any(get_metadata_value(meta, field) for meta in pairs.meta):
            pairs.labels(field)  # its message lists the keys
    profiles = [{name: get_metadata_value(meta, field) for name, field in keys.items()} for meta in pairs.meta]
    texts = (pairs.original, pairs.anonymised, profiles)
    with output.show_progress("asking") as advance:
        result = attribute_guesses(*texts, attributes=tuple(keys), advance=advance, **settings)
    data = result.to_dict()
    output.write_measure("guess_attributes", data, shown=data["after"])
    if result.before:
        _print_change(result.before.all.first, result.change, "first right")


def _print_change(before: Estimate, change: Estimate, what: str) -> None:
    from allonym.report.page import Figure, Figures

    numbers = ((f"{what}, originals", before), ("change", change))
    print_blocks([Figures(tuple(Figure(name, value, number="share") for name, value in numbers))])
