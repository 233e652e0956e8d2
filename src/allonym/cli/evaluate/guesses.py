"""``allonym evaluate intruder-study`` and ``guess``: people or a language model guess whom texts are about."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from allonym.cli.evaluate.options import SUBJECT, Output, Source, print_blocks
from allonym.cli.options import KEY_FILE, OVERWRITE, SEED, declare_output, declare_policy, read_key
from allonym.cli.outputs import check_outputs, write_files
from allonym.cli.signatures import take_options
from allonym.cli.terminal import format_json_line, print_note
from allonym.errors import UsageError, check_names
from allonym.settings import REQUIRED, SettingGroup, declare_setting
from allonym.text.words import count_nouns

if TYPE_CHECKING:
    from allonym.evaluate.pairs import Pairs
    from allonym.evaluate.sheets import Sheets
    from allonym.llm import Client
    from allonym.stats import Estimate


class Model(SettingGroup):
    """The language model of a policy, and the key of its cache."""

    policy: str = declare_policy()
    key_file: Path | None = KEY_FILE

    def open_client(self) -> Client:
        """Open the language model with its cache."""
        from allonym.intruder.persons import open_client
        from allonym.keys import derive_operator_key
        from allonym.policy import Policy

        settings = Policy.load(self.policy).llm
        key = read_key(self.key_file) if settings["cache"] else None
        return open_client(settings, None if key is None else derive_operator_key(key, "llm cache"))


_KEY, _PAGES = "key.json", "pages"
KEY = declare_setting(REQUIRED, "key of the pages", noun="file", option="<KEY>")
ANSWERS = declare_setting(REQUIRED, "saved answers", noun="path", option="<ANSWERS>")
_LEAST = "least number of characters in a description"
CONSENT = declare_setting(None, "text of the consent that people give before they begin", noun="file", option="FILE")
ALIASES = declare_setting(
    None, "CSV without a header: the true name, and further names that count", noun="file", option="FILE"
)


ATTRIBUTE = declare_setting(
    (),
    "age, sex, place, birthplace, education, occupation, relationship, income or name, and the metadata field with its "
    "true value; by default all, without true values",
    option="NAME[=KEY]",
)
PERSON = declare_setting("author", "person whose attributes are guessed", option="WORDS")
KIND = declare_setting("text", "kind of the texts, for the prompt", option="WORDS")


class Prompting(SettingGroup):
    """How a language model is asked."""

    kind: str = KIND
    guesses: int = declare_setting(3, "number of guesses per text", low=1)
    before: bool = declare_setting(False, "also ask about the originals, which sends them to the endpoint")


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
@take_options
def collect(
    folder: Path = declare_setting(REQUIRED, "folder for the pages and the key", noun="new folder", option="<OUT>"),
    *,
    pool: Path | None = declare_setting(
        None,
        "CSV of people with columns group, name and optionally link; others are facts",
        noun="file",
        option="FILE",
    ),
    fictitious: int = declare_setting(
        10, "number of fictitious people to add, from the knowledge base", low=0, option="N"
    ),
    writers: int = declare_setting(REQUIRED, "number of writers: one page each", low=1, option="N"),
    each: int = declare_setting(1, "people per group on each page", low=1, option="N"),
    least: int = declare_setting(500, _LEAST, low=1, option="N"),
    consent: Path | None = CONSENT,
    seed: int = SEED,
    overwrite: bool = OVERWRITE,
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
@take_options
def gather(
    key: Path = KEY,
    answers: tuple[Path, ...] = ANSWERS,
    *,
    output: Path = declare_output(REQUIRED, "new file"),
    least: int = declare_setting(500, _LEAST, low=0, option="N"),
    overwrite: bool = OVERWRITE,
) -> None:
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
@take_options
def judge(
    *,
    source: Source,
    folder: Path = declare_setting(
        REQUIRED, "folder for the pages and the key", noun="new folder", option="--pages OUT"
    ),
    subject: str = SUBJECT,
    group: str | None = declare_setting(
        None, "metadata field with the fame class; a judge gets texts of one class", option="KEY"
    ),
    judgements: int = declare_setting(3, "judgements per text", low=1, option="N"),
    judges: int | None = declare_setting(None, "number of pages per group, instead of --judgements", low=1, option="N"),
    per_page: int = declare_setting(10, "texts per page", low=1, option="N"),
    consent: Path | None = CONSENT,
    seed: int = SEED,
    overwrite: bool = OVERWRITE,
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
    numbers: dict[str, Any] = {"judgements": judgements, "judges": judges, "per_page": per_page, "seed": seed}
    sheets = make_judging_sheets(pairs.ids, pairs.anonymised, pairs.labels(subject), groups, **numbers)
    _write_pages(folder, sheets, (*source.paths, consent), overwrite, {"consent": _read_consent(consent)})


@intruder_study.command(short_help="Evaluate the judgements: rates, agreement, revealing words.")
@take_options
def analyse(
    key: Path = KEY,
    answers: tuple[Path, ...] = ANSWERS,
    *,
    aliases: Path | None = ALIASES,
    cut: float = declare_setting(
        0.75, "least similarity of names at which a person counts as identified", low=0.001, high=1
    ),
    top: int = declare_setting(10, "number of n-grams in the result", low=1),
    seed: int = SEED,
    output: Output,
) -> None:
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
    result = people.people_study(truths, judgements, aliases=_read_aliases(aliases), cut=cut, top=top, seed=seed)
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
    print_note(f"{count_nouns(len(names), 'page')} in {folder / _PAGES}", label="written:")
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
@take_options
def persons(
    *,
    source: Source,
    subject: str = SUBJECT,
    group: str | None = declare_setting(None, "metadata field with the fame class", option="KEY"),
    aliases: Path | None = ALIASES,
    prompting: Prompting,
    model: Model,
    seed: int = SEED,
    output: Output,
) -> None:
    """Let a language model say who a text is about: a name, a confidence, and what revealed the person.

    \b
    Example:
      allonym evaluate guess persons original.jsonl safe.jsonl --subject subject --policy mine.toml
    """
    from allonym.evaluate.people import person_guesses

    output.check_writable(*source.paths)
    settings: dict[str, Any] = {**vars(prompting), "client": model.open_client(), "seed": seed}
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
@take_options
def attributes(
    *,
    source: Source,
    attribute: tuple[str, ...] = declare_setting(
        REQUIRED,
        "age, sex, place, birthplace, education, occupation, relationship or income, and the metadata field with its "
        "true value",
        option="NAME[=KEY]",
    ),
    person: str = PERSON,
    prompting: Prompting,
    model: Model,
    output: Output,
) -> None:
    """Let a language model infer attributes after Staab et al. 2023, scored by rules.

    \b
    Example:
      allonym evaluate guess attributes original.jsonl safe.jsonl --attribute age=profile.age --policy mine.toml
    """
    from allonym.evaluate.people import attribute_guesses
    from allonym.intruder.persons import ATTRIBUTES

    check_names("attribute", split_attributes(attribute), ATTRIBUTES, "--attribute")
    output.check_writable(*source.paths)
    settings: dict[str, Any] = {**vars(prompting), "client": model.open_client()}
    pairs = source.read_pairs()
    names, profiles = read_profiles(pairs, attribute)
    texts = (pairs.original, pairs.anonymised, profiles)
    with output.show_progress("asking") as advance:
        result = attribute_guesses(*texts, attributes=names, person=person, advance=advance, **settings)
    data = result.to_dict()
    output.write_measure("guess_attributes", data, shown=data["after"])
    if result.before:
        _print_change(result.before.all.first, result.change, "first right")


def split_attributes(options: Iterable[str]) -> dict[str, str]:
    """Return attribute to metadata field from options such as ``age=profile.age``; without a field, the name is it."""
    return {name: field or name for name, _, field in (option.partition("=") for option in options)}


def read_profiles(pairs: Pairs, options: Iterable[str]) -> tuple[tuple[str, ...], list[dict[str, str]]]:
    """Return the attributes of options such as ``age=profile.age``, and the true values for each text.

    Raises:
        DataError: no text has such a field.
    """
    from allonym.evaluate.pairs import get_metadata_value

    keys = split_attributes(options)
    for field in keys.values():
        if not any(get_metadata_value(meta, field) for meta in pairs.meta):
            pairs.labels(field)  # its message lists the keys
    return tuple(keys), [{name: get_metadata_value(meta, field) for name, field in keys.items()} for meta in pairs.meta]


def _print_change(before: Estimate, change: Estimate, what: str) -> None:
    from allonym.report.page import Figure, Figures

    numbers = ((f"{what}, originals", before), ("change", change))
    print_blocks([Figures(tuple(Figure(name, value, number="share") for name, value in numbers))])
