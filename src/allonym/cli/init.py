"""``allonym init``: a first policy, from a sample of the user's files and at most six questions."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from allonym.cli.options import OVERWRITE, declare_output
from allonym.cli.outputs import check_outputs, write_files
from allonym.cli.signatures import take_options
from allonym.cli.terminal import print_heading, print_note
from allonym.project.questions import COME_BACK, DATES, ORGANISATIONS, PROTECT, PUBLIC_FIGURES, QUESTIONS
from allonym.settings import declare_setting
from allonym.text.controls import escape_controls

if TYPE_CHECKING:
    from collections.abc import Mapping

    from allonym.project.first_policy import Passage, Sample
    from allonym.project.questions import Answers, Question

_MOST_LABELS = 6
_MOST_REFUSED = 5


@click.command(short_help="Write a first policy for your files, with a few questions.")
@take_options
def init(
    files: tuple[Path, ...] = declare_setting((), "files and folders to look at", noun="path", option="<FILE>"),
    *,
    output: Path = declare_output(Path("policy.toml"), "new file", "-o, --output FILE"),
    language: str | None = declare_setting(None, "language of the texts, such as en", option="CODE"),
    protect: str | None = declare_setting(None, "whose data it is", one_of=tuple(PROTECT.answers)),
    dates: str | None = declare_setting(None, "what becomes of dates", one_of=tuple(DATES.answers)),
    organisations: str | None = declare_setting(
        None, "what becomes of organisations", one_of=tuple(ORGANISATIONS.answers)
    ),
    public_figures: str | None = declare_setting(
        None, "what becomes of well-known people", one_of=tuple(PUBLIC_FIGURES.answers)
    ),
    come_back: str | None = declare_setting(
        None, "whether the originals must come back; natural: no, but pseudonyms", one_of=tuple(COME_BACK.answers)
    ),
    yes: bool = declare_setting(
        False, "ask nothing: take what the sample suggests for all that is not named", option="--yes, -y"
    ),
    overwrite: bool = OVERWRITE,
) -> None:
    """Look at a sample of FILES (by default this folder), ask at most six questions, and write a commented policy.

    Each question has a default, which the sample suggests, and an option that answers it beforehand. Where nobody can
    answer, in a script, the defaults are taken and listed. Shows what the policy does to passages of your text. No
    file is changed.

    \b
    Examples:
      allonym init
      allonym init interviews/ -o interviews.toml
      allonym init letters/ --yes --dates year
    """
    from allonym.policy import Policy
    from allonym.project import first_policy

    sources = files or (Path(),)
    check_outputs([output], [file for file in sources if file.is_file()], overwrite)
    sample = first_policy.take_sample(sources, without=output)
    about = _print_sample(sample)
    options = {
        "language": language,
        "protect": protect,
        "dates": dates,
        "organisations": organisations,
        "public_figures": public_figures,
        "come_back": come_back,
    }
    replies = {name: value for name, value in options.items() if value is not None}
    answers = _collect_answers(sample, replies, is_asking=not yes and _can_ask())
    text = first_policy.write_policy(answers, output.stem, about)
    write_files({output: text})
    policy = Policy.load(output)
    _print_passages(first_policy.choose_passages(sample, policy))
    for warning in first_policy.list_warnings(answers):
        print_note(warning, label="warning:")
    _print_next(
        answers,
        output,
        sources[0] if len(sources) == 1 else Path("FOLDER"),
        needs_key=first_policy.needs_key(answers),
    )


def _can_ask() -> bool:
    return sys.stdin.isatty()


def _print_sample(sample: Sample) -> str:
    """Print what the sample holds; return it in short."""
    from allonym.detection.languages import name_languages

    count = sum(sample.formats.values())
    formats = ", ".join(f"{n:,} {name}" for name, n in sorted(sample.formats.items()))
    about = f"{count:,} file{'s' * (count != 1)} ({formats})"
    characters = sum(len(document.text) for document in sample.documents)
    languages = name_languages(sorted(sample.languages, key=lambda code: -sample.languages[code])[:3])
    click.echo(f"{about}; looked at {characters:,} characters in {languages}.")
    rows = sorted(sample.labels.items(), key=lambda row: (-row[1], row[0]))[:_MOST_LABELS]
    click.echo(f"Most frequent: {', '.join(f'{name} {n:,}' for name, n in rows) or 'nothing that identifies'}.")
    for name, reason in list(sample.refused.items())[:_MOST_REFUSED]:
        cause = "scans and pictures are read in a run, not for a sample" if "OCR" in reason else reason
        print_note(f"{name}: not read: {cause}")
    rest = [f"{len(sample.refused) - _MOST_REFUSED:,} more cannot be read"] * (len(sample.refused) > _MOST_REFUSED)
    rest += [f"{sample.others:,} have formats that are not known"] * bool(sample.others)
    if rest:
        print_note(f"of the other files, {' and '.join(rest)}")
    click.echo()
    return about


def _collect_answers(sample: Sample, replies: Mapping[str, str], *, is_asking: bool) -> Answers:
    """Return the answers: those of options, of the user, or those that the sample suggests."""
    from allonym.project.first_policy import suggest_answers

    replies = dict(replies)
    answers, reasons = suggest_answers(sample, replies)
    left = [question for question in QUESTIONS if question.name not in replies]
    for number, question in enumerate(left, 1):
        name, default = question.name, asdict(answers)[question.name]
        if is_asking:
            replies[name] = _ask(f"{number} of {len(left)}", question, default, reasons.get(name, ""))
            answers, reasons = suggest_answers(sample, replies)  # what follows fits it
            continue
        reason = f" ({reasons[name]})" if name in reasons else ""
        option = f"--{name.replace('_', '-')}"
        print_note(f"{name.replace('_', ' ')}: {default}{reason}; {option} changes it", label="default:")
    return answers


def _ask(heading: str, question: Question, default: str, reason: str) -> str:
    """Ask a question until the answer is one of those that it takes, or the beginning of one."""
    from allonym.errors import UnknownNameError
    from allonym.project.first_policy import resolve_language

    words = f"{click.style(heading, dim=True)}  {click.style(question.words, bold=True)}"
    click.echo(f"{words}{f'  ({reason})' if reason else ''}")
    for name, meaning in question.answers.items():
        click.echo(f"        {name.ljust(9)} {meaning}")

    def read_answer(value: str) -> str:
        value = value.strip().lower()
        if not question.answers:
            try:
                return resolve_language(value)
            except UnknownNameError as error:
                raise click.UsageError(str(error)) from None
        names = [name for name in question.answers if value and name.startswith(value)]
        if len(names) != 1:
            raise click.UsageError(f"one of {', '.join(question.answers)} is required")
        return names[0]

    return str(click.prompt("       ", default=default, value_proc=read_answer))


def _print_passages(passages: list[Passage]) -> None:
    click.echo()
    if not passages:
        print_note("this policy replaces nothing in the sample, or refuses it")
    for passage in passages:
        print_heading(passage.name)
        for sign, colour, piece in (("-", "red", passage.before), ("+", "green", passage.after)):
            click.secho(f"{sign} {escape_controls(piece)}", fg=colour)
    click.echo()


def _quote_path(path: Path) -> str:
    from shlex import quote

    return quote(str(path))


def _print_next(answers: Answers, output: Path, source: Path, *, needs_key: bool) -> None:
    policy = _quote_path(output)
    print_note(f"{output}; another answer: run this again with --overwrite", label="wrote")
    here = Path("..", f"{source.resolve().name}-safe")  # beside the folder that is read
    target = _quote_path(Path(f"{source.stem}-safe{source.suffix}") if source.name else here)
    key = " --key-file secret.key" if needs_key else ""
    plans = " --plans plans.jsonl --originals" if answers.come_back == "yes" else ""
    if needs_key:
        print_note("head -c 32 /dev/urandom > secret.key, and keep that file apart from the texts", label="next:")
    print_note(f"allonym anonymize {_quote_path(source)} {target} --policy {policy}{key}{plans}", label="next:")
    project = f"allonym project init study --policy {policy} --new-secret-file study.key"
    print_note(f"for a study with reviews and a signed release: {project}", label="or:")
