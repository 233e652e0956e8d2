"""A command receives groups of options as values, and keeps the short spellings of its options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from allonym.cli import app
from allonym.cli.options import QUIET, SecretChoice, VaultChoice, declare_output
from allonym.cli.signatures import take_options
from allonym.settings import SettingGroup, declare_setting


class Choice(SettingGroup):
    size: int = declare_setting(3, "number of things", low=1, option="-n, --size N")
    loud: bool = declare_setting(False, "say it loudly")


class Outer(SettingGroup):
    vault: VaultChoice = VaultChoice()
    choice: Choice = Choice()


def run_command(*args: str) -> tuple[click.testing.Result, dict[str, Any]]:
    """Run a command with these groups; return its result, and the values that it gets."""
    values: dict[str, Any] = {}

    @click.command()
    @take_options
    def command(*, outer: Outer, output: Path | None = declare_output(), quiet: bool = QUIET) -> None:
        values.update(outer=outer, output=output, quiet=quiet)

    return CliRunner().invoke(command, args), values


def test_a_default_is_shown_where_there_is_one():
    shown = run_command("--help")[0].output
    assert "-n, --size N" in shown and "Number of things.  [default: 3;" in shown
    assert "--loud" in shown and shown.count("[default") == 1


def test_groups_may_hold_groups():
    _, values = run_command("--vault", "v", "--scope", "s", "--secret-env", "E", "--size", "5", "--loud")
    vault = VaultChoice("v", "s", SecretChoice(environment="E"))
    assert values == {"outer": Outer(vault, Choice(5, True)), "output": None, "quiet": False}


def test_short_spellings_mean_what_the_long_ones_do():
    _, values = run_command("-n", "4", "-q", "-o", "x.txt")
    assert values == {"outer": Outer(choice=Choice(4)), "output": Path("x.txt"), "quiet": True}


SHORT = {
    "-h": "--help",
    "-n": "--size",
    "-o": "--output",
    "-p": "--policy",
    "-q": "--quiet",
    "-s": "--settings",
    "-y": "--yes",
}


def list_options(command: click.Command, name: str = "allonym") -> list[tuple[str, click.Option]]:
    """List the options of a command and of those below it."""
    context = click.Context(command)
    own = [(name, p) for p in command.params if isinstance(p, click.Option)]
    if not isinstance(command, click.Group):
        return own
    below = ((f"{name} {n}", command.get_command(context, n)) for n in command.list_commands(context))
    return [*own, *(found for path, inner in below if inner is not None for found in list_options(inner, path))]


def test_a_short_spelling_means_the_same_everywhere_and_no_long_one_lacks_it():
    wrong = []
    for name, option in list_options(app):
        short = [spelling for spelling in option.opts if not spelling.startswith("--")]
        known = [spelling for spelling, long in SHORT.items() if long in option.opts]
        if short != known and not (known == ["-p"] and name.endswith("gateway")):
            wrong.append((name, option.opts))
    assert not wrong


@pytest.mark.parametrize("end", ["file", "env", "keyring"])
def test_a_secret_without_a_vault_is_an_error(tmp_path: Path, end: str):
    (tmp_path / "x").write_text("x")
    result, _ = run_command(f"--secret-{end}", str(tmp_path / "x"))
    assert result.exit_code == 2 and f"--secret-{end} requires --vault" in result.output
