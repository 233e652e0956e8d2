"""The command line as a whole: help, errors, exit codes, completion."""

from __future__ import annotations

import sys

import click
import pytest
from tests.rows import check_each_row

from allonym import __version__
from allonym.cli import COMMANDS, app, main, spell_british
from allonym.errors import DataError, write_install_command

CANARY = "Zyxthrope Vexillary"


def commands() -> list[tuple[str, ...]]:
    ctx = click.Context(app)
    out: list[tuple[str, ...]] = []
    for name in app.list_commands(ctx):
        command = app.get_command(ctx, name)
        out.append((name,))
        if isinstance(command, click.Group):
            out += [(name, sub) for sub in command.commands]
    return out


@pytest.mark.parametrize("path", commands(), ids=" ".join)
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_has_an_example_that_names_the_command(run, path, flag):
    result = run(*path, flag)
    assert result.code == 0
    assert "Example" in result.out
    assert f"allonym {' '.join(path)}" in result.out.split("Example", 1)[1]


@check_each_row("path", commands())
def test_every_option_has_help(path):
    ctx = click.Context(app)
    command: click.Command | None = app
    for name in path:
        assert isinstance(command, click.Group)
        command = command.get_command(ctx, name)
    assert command is not None
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name


def test_help_lists_all_commands(run):
    out = run("--help").out
    assert all(f"\n  {name} " in out for name in COMMANDS)


@pytest.mark.parametrize("args", [(), ("vault",)])
def test_without_a_command_there_is_help_and_no_error(run, args):
    result = run(*args)
    assert "Usage: allonym" in result.out + result.err
    assert "error" not in result.err


def test_a_package_that_is_missing_names_its_extra(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.pipeline", None)
    monkeypatch.delitem(sys.modules, "allonym.evaluate.document_risks", raising=False)
    (tmp_path / "a.jsonl").write_text('{"a": "Ada Brook", "b": "[PERSON_1]"}\n' * 4)
    path = str(tmp_path / "a.jsonl")
    result = run("evaluate", "all", path, "--field", "a", "--anonymised-field", "b", "--measure", "document_risk")
    assert result.code == 2
    assert write_install_command("evaluate") in result.err


def test_version(run):
    assert run("--version").out == f"allonym {__version__}\n"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("anonimise", "x"), "unknown command 'anonimise'; did you mean: anonymize"),
        (("labels", "US_SNS"), "unknown label 'US_SNS'; did you mean: US_SSN"),
        (("labels", "--scheme", "presido"), "--scheme: unknown value 'presido'; did you mean: presidio"),
        (("policy", "show", "defualt"), "unknown policy preset 'defualt'; did you mean: default"),
        (("labels", "--jsn"), "--jsn"),
        (("anonymize",), "SOURCE"),
        (("completion", "tcsh"), "tcsh"),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_code_2(run, args, message):
    result = run(*args)
    assert result.code == 2
    assert result.out == ""
    first, *more = result.err.splitlines()
    assert first.startswith("error: ") and message in first
    assert len(more) <= 1 and all(m.startswith("see: allonym") for m in more)


def broken(error: BaseException):
    @click.command()
    def command() -> None:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "code", "first"),
    [
        (DataError("record 3 is not JSON"), 1, "error: record 3 is not JSON"),
        (
            DataError("a.txt exists; --overwrite (overwrite=True in Python) replaces it"),
            1,
            "error: a.txt exists; --overwrite replaces it",
        ),
        (RuntimeError(f"cannot parse {CANARY}"), 1, "error: unexpected RuntimeError"),
        (
            FileNotFoundError(2, "No such file or directory", "a.txt"),
            1,
            "error: cannot use a.txt: No such file or directory",
        ),
        (KeyboardInterrupt(), 130, "error: interrupted"),
    ],
)
def test_errors_become_one_line_and_never_quote_data(run, monkeypatch, error, code, first):
    monkeypatch.setattr(app, "get_command", lambda ctx, name: broken(error))
    result = run("labels")
    assert result.code == code
    assert first in result.err.strip().splitlines()
    assert CANARY not in result.err + result.out
    assert "Traceback" not in result.err


def test_debug_lets_the_error_through(monkeypatch):
    monkeypatch.setattr(app, "get_command", lambda ctx, name: broken(RuntimeError(CANARY)))
    with pytest.raises(RuntimeError):
        main(["--debug", "labels"])


@pytest.mark.parametrize("shell_name", ["bash", "zsh", "fish"])
def test_completion_script_names_the_hook(run, shell_name):
    result = run("completion", shell_name)
    assert result.code == 0
    assert f"_ALLONYM_COMPLETE={shell_name}_complete" in result.out


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("allonym an", "anonymize"),
        ("allonym anonymize --policy de", "default"),
        ("allonym detect --label US_SS", "US_SSN"),
        ("allonym labels --scheme pres", "presidio"),
        ("allonym policy sch", "schema"),
    ],
)
def test_completion_offers_names(shell, words, offered):
    env = {"_ALLONYM_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    result = shell(env=env)
    assert f"plain,{offered}" in result.stdout.decode().splitlines()


def test_commands_options_and_values_are_known_in_both_spellings(run, tmp_path):
    letter, policy = tmp_path / "letter.txt", tmp_path / "policy.toml"
    letter.write_text("Write to ada@example.com.\n", encoding="utf-8")
    made = run("init", str(letter), "--organizations", "keep", "--yes", "-o", str(policy))
    assert made.code == 0 and '[rules.ORGANIZATION]\noperator = "keep"' in policy.read_text(encoding="utf-8")
    assert run("anonymise", "-", stdin=b"Write to ada@example.com.").out.startswith("Write to [EMAIL_ADDRESS_1].")
    assert spell_british("anonymize") == "anonymise" and spell_british("size") == "size"
