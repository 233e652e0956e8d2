"""The command line. One file per command group: read, one library call, write.

Exit codes: 0 all went well; 1 the data could not be processed, or a part of it went to quarantine; 2 the call or the
policy is wrong; 130 interrupted. Errors are one line on standard error and never quote the input.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping

import click

from allonym import __version__
from allonym.cli.lazy import LazyGroup
from allonym.cli.terminal import print_note
from allonym.errors import AllonymError, MissingExtra

COMMANDS: Mapping[str, str] = {
    "anonymize": "allonym.cli.anonymize:anonymize",
    "detect": "allonym.cli.detect:detect",
    "restore": "allonym.cli.restore:restore",
    "verify": "allonym.cli.verify:verify",
    "swap": "allonym.cli.swap:swap",
    "evaluate": "allonym.cli.evaluate:evaluate",
    "harden": "allonym.cli.harden:harden",
    "serve": "allonym.cli.serve:serve",
    "vault": "allonym.cli.vault:vault",
    "policy": "allonym.cli.policy:policy",
    "labels": "allonym.cli.labels:labels",
    "llm": "allonym.cli.llm:llm",
    "train": "allonym.cli.train:train",
    "export": "allonym.cli.export:export",
    "kb": "allonym.cli.kb:kb",
    "gateway": "allonym.cli.gateway:gateway",
    "demo": "allonym.cli.demo:demo",
    "completion": "allonym.cli.completion:completion",
}


@click.group(
    cls=LazyGroup,
    lazy=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
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


def main(args: list[str] | None = None) -> None:
    """The console script: run the command line and exit with its code."""
    argv = sys.argv[1:] if args is None else args
    debug = "--debug" in argv[:1] or os.environ.get("ALLONYM_DEBUG", "") not in ("", "0")
    if not debug:
        warnings.simplefilter("ignore")  # other packages' warnings may quote what they were given
    sys.exit(_run_command(argv, debug))


def _run_command(argv: list[str], debug: bool) -> int:
    color = False if os.environ.get("NO_COLOR") else None
    try:
        code = app.main(args=argv, prog_name="allonym", standalone_mode=False, color=color)
        return code if isinstance(code, int) else 0
    except click.exceptions.Abort:
        return _print_failure("interrupted", 130)
    except AllonymError as error:
        if debug:
            raise
        return _print_failure(str(error), error.exit_code)
    except click.UsageError as error:
        if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):  # from click 8.2 on
            click.echo(error.format_message(), err=True)
            return error.exit_code
        hint = f"see: {error.ctx.command_path} --help" if error.ctx else ""
        return _print_failure(error.format_message().rstrip("."), error.exit_code, hint)
    except click.ClickException as error:
        return _print_failure(error.format_message(), 2)
    except OSError as error:
        if debug:
            raise
        where = f" {error.filename}" if isinstance(error.filename, str) else ""
        return _print_failure(f"cannot use{where or ' a file'}: {error.strerror or type(error).__name__}", 1)
    except ModuleNotFoundError as error:
        from allonym.evaluate import NEEDED

        if debug:
            raise
        missing = (error.name or "").partition(".")[0]
        if missing in NEEDED:
            return _print_failure(str(MissingExtra("this command", "evaluate")), MissingExtra.exit_code)
        return _print_failure(f"the package {missing} is not installed", 2)
    except Exception as error:  # the traceback may quote the text, so it waits for --debug
        if debug:
            raise
        return _print_failure(
            f"unexpected {type(error).__name__}",
            1,
            "for the traceback, which may quote your text: allonym --debug ...",
        )


def _print_failure(message: str, code: int, hint: str = "") -> int:
    print_note(message, label="error:")
    if hint:
        click.echo(hint, err=True)
    return code
