"""Options are declared once, and a command receives groups of them as values."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest
from click.testing import CliRunner

from allonym.cli.options import POSITIVE, SecretChoice, VaultChoice, flag, group_options, option, vault_options


class Choice(NamedTuple):
    size: int = option("-n, --size N", "Number of things.", type=POSITIVE, default=3)
    name: str = option("--name NAME", "Name of the thing.", default="")
    loud: bool = flag("--loud", "Say it loudly.")


def collect(*decorators: Any) -> tuple[click.Command, dict[str, Any]]:
    """A command with these options, and the values that it gets when it runs."""
    values: dict[str, Any] = {}

    def command(**given: Any) -> None:
        values.update(given)

    for decorate in reversed(decorators):
        command = decorate(command)
    return click.command()(command), values


def test_an_option_is_declared_as_its_help_shows_it():
    command, _ = collect(group_options("choice", Choice))
    shown = CliRunner().invoke(command, ["--help"]).output
    assert "-n, --size N" in shown and "Number of things.  [default: 3;" in shown
    assert "--name NAME" in shown and "--loud" in shown and shown.count("default") == 1


def test_a_command_receives_a_group_as_one_value_and_other_options_beside_it():
    command, values = collect(option("--first X", "First.", name="one"), group_options("choice", Choice))
    assert not CliRunner().invoke(command, ["--size", "5", "--loud", "--first", "x"]).exception
    assert values == {"one": "x", "choice": Choice(5, "", True)}


def test_groups_may_hold_groups():
    class Outer(NamedTuple):
        vault: VaultChoice = vault_options
        choice: Choice = group_options("choice", Choice)

    command, values = collect(group_options("outer", Outer))
    assert not CliRunner().invoke(command, ["--vault", "v", "--scope", "s", "--secret-env", "E"]).exception
    secret = SecretChoice(environment="E")
    assert values["outer"] == Outer(VaultChoice("v", "s", secret), Choice(3, "", False))


@pytest.mark.parametrize("end", ["file", "env", "keyring"])
def test_a_secret_without_a_vault_is_an_error(tmp_path: Path, end: str):
    (tmp_path / "x").write_text("x")
    command, _ = collect(vault_options)
    result = CliRunner().invoke(command, [f"--secret-{end}", str(tmp_path / "x")])
    assert result.exit_code == 2 and f"--secret-{end} requires --vault" in result.output
