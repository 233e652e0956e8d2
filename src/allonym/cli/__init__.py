"""The command line. One file per command group: read, one library call, write.

Exit codes: 0 all went well; 1 the data could not be processed, or a part of it went to quarantine; 2 the call or the
policy is wrong; 130 interrupted. Errors are one line on standard error and never quote the input.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from allonym import __version__
from allonym.cli.terminal import print_note
from allonym.collector import slow_down_collector
from allonym.errors import AllonymError, MissingExtra, UnknownNameError

COMMANDS: Mapping[str, str] = {
    "init": "allonym.cli.init:init",
    "anonymize": "allonym.cli.anonymize:anonymize",
    "detect": "allonym.cli.detect:detect",
    "restore": "allonym.cli.restore:restore",
    "verify": "allonym.cli.verify:verify",
    "swap": "allonym.cli.swap:swap",
    "evaluate": "allonym.cli.evaluate:evaluate",
    "harden": "allonym.cli.harden:harden",
    "serve": "allonym.cli.serve:serve",
    "vault": "allonym.cli.vault:vault",
    "project": "allonym.cli.project:project",
    "people": "allonym.cli.people:people",
    "policy": "allonym.cli.policy:policy",
    "labels": "allonym.cli.labels:labels",
    "llm": "allonym.cli.llm:llm",
    "train": "allonym.cli.train:train",
    "export": "allonym.cli.export:export",
    "kb": "allonym.cli.kb:kb",
    "gateway": "allonym.cli.serve:gateway",
    "from-presidio": "allonym.cli.from_presidio:from_presidio",
    "compare": "allonym.cli.compare:compare",
    "demo": "allonym.cli.demo:demo",
    "doctor": "allonym.cli.doctor:doctor",
    "completion": "allonym.cli:completion",
}

_PYTHON_SPELLING = re.compile(r" \(\S+ in Python\)")
"""How an error names an option for those who call the library."""


def spell_british(name: str) -> str:
    """Return a name of a command, an option or a value as it is with British spelling: both spellings are taken."""
    return (
        re.sub(r"(?<=[a-z]{3}i)z(?=e|ing|ation)", "s", name).replace("color", "colour").replace("behavior", "behaviour")
    )


class LazyGroup(click.Group):
    """A group that imports a command's module when the command is used. Commands keep the order of the table."""

    def __init__(self, *args: Any, lazy: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._lazy:
            return None
        module, _, attribute = self._lazy[cmd_name].partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        spellings = {spell_british(name): name for name in self._lazy}
        args = [spellings.get(spell_british(args[0]), args[0]), *args[1:]]
        if args[0] not in self._lazy and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise UnknownNameError("command", args[0], self._lazy)
        return super().resolve_command(ctx, args)


@click.group(
    cls=LazyGroup,
    lazy=COMMANDS,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "token_normalize_func": spell_british,
    },
    epilog="Start with: allonym demo",
)
@click.version_option(__version__, message="allonym %(version)s")
@click.option("--debug", is_flag=True, help="Show tracebacks and all warnings. They may quote your text.")
@click.pass_context
def app(ctx: click.Context, debug: bool) -> None:
    """Make text safe to share: find what identifies people, companies and places, and replace it. Offline.

    \b
    Examples:
      allonym anonymize calls/ safe/ --policy transcripts
      echo "Write to jane.doe@example.com" | allonym anonymize -
      allonym detect letter.txt --explain
    """
    ctx.obj = debug


@click.command(short_help="Print the completion script for a shell.")
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a script with which SHELL completes commands, options, policies and labels.

    \b
    Examples:
      allonym completion bash > ~/.local/share/bash-completion/completions/allonym
      allonym completion zsh > "${fpath[1]}/_allonym"
      allonym completion fish > ~/.config/fish/completions/allonym.fish
    """
    from click.shell_completion import get_completion_class

    complete = get_completion_class(shell)
    assert complete is not None
    click.echo(complete(ctx.find_root().command, {}, "allonym", "_ALLONYM_COMPLETE").source())


def main(args: list[str] | None = None) -> None:
    """The console script: run the command line and exit with its code."""
    argv = sys.argv[1:] if args is None else args
    debug = "--debug" in argv[:1] or os.environ.get("ALLONYM_DEBUG", "") not in ("", "0")
    if not debug:
        warnings.simplefilter("ignore")  # other packages' warnings may quote what they were given
    slow_down_collector()
    sys.exit(_run_command(argv, debug))


def _run_command(argv: list[str], debug: bool) -> int:
    color = False if os.environ.get("NO_COLOR") else None
    try:
        code = app.main(args=argv, prog_name="allonym", standalone_mode=False, color=color)
        return code if isinstance(code, int) else 0
    except click.exceptions.Abort:
        return _print_failure("interrupted", 130)
    except click.ClickException as error:
        if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):  # from click 8.2 on
            click.echo(error.format_message(), err=True)
            return error.exit_code
        context = getattr(error, "ctx", None)
        hint = f"see: {context.command_path} --help" if context else ""
        return _print_failure(error.format_message().rstrip("."), 2, hint)
    except Exception as error:  # the traceback may quote the text, so it waits for --debug
        if debug:
            raise
        return _print_failure(*_describe_error(error))


def _describe_error(error: Exception) -> tuple[str, int, str]:
    """Return the message for an error, the exit code, and a hint."""
    if isinstance(error, AllonymError):
        return _PYTHON_SPELLING.sub("", str(error)), error.exit_code, ""
    if isinstance(error, OSError):
        where = f" {error.filename}" if isinstance(error.filename, str) else ""
        return f"cannot use{where or ' a file'}: {error.strerror or type(error).__name__}", 1, ""
    if isinstance(error, ModuleNotFoundError):
        from allonym.evaluate import NEEDED

        package = (error.name or "").partition(".")[0]
        needed = str(MissingExtra("this command", "evaluate"))
        return needed if package in NEEDED else f"the package {package} is not installed", 2, ""
    return f"unexpected {type(error).__name__}", 1, "for the traceback, which may quote your text: allonym --debug ..."


def _print_failure(message: str, code: int, hint: str = "") -> int:
    print_note(message, label="error:")
    if hint:
        click.echo(hint, err=True)
    return code
