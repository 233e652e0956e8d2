"""``allonym serve``: the HTTP API and the workbench."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import click

from allonym.cli.terminal import print_note
from allonym.errors import MissingExtra


def _add_setting_options(command: Any) -> Any:
    from allonym.server.settings import Settings

    for setting in reversed(fields(Settings)):
        names = [f"--{setting.name.replace('_', '-')}"]
        default, says = setting.default, str(setting.metadata["says"])
        kind: dict[str, Any] = {"type": type(default)} if isinstance(default, (int, float)) else {}
        if isinstance(default, bool):
            kind, names = {"is_flag": True}, [f"{names[0]}/--no-{setting.name.replace('_', '-')}"]
        elif isinstance(default, tuple):
            kind = {"multiple": True}
        shown = "" if default in ("", ()) or isinstance(default, bool) else f" [default: {default}]"
        text = f"{says[0].upper()}{says[1:]}.{shown}"
        command = click.option(*names, setting.name, default=None, help=text, **kind)(command)
    return command


@click.command(short_help="Serve the HTTP API and the workbench.")
@click.option("--config", type=click.Path(dir_okay=False), help="TOML file with settings.  [env: ALLONYM_CONFIG]")
@_add_setting_options
def serve(config: str | None, **options: Any) -> None:
    """Serve the HTTP API and the workbench, by default for this machine only.

    Every option is also a key of the settings file and an environment variable: --max-body-mb, max_body_mb,
    ALLONYM_MAX_BODY_MB. The first start prints a link for creating the first account, an administrator's.

    \b
    Examples:
      allonym serve
      allonym serve --data /var/lib/allonym --port 8642
      allonym serve --config /etc/allonym/server.toml
    """
    from allonym.server.settings import load

    chosen: dict[str, Any] = {name: None if value == () else value for name, value in options.items()}
    settings = load(config, **chosen)
    try:
        from allonym.server.running import run
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "allonym":
            raise
        raise MissingExtra("allonym serve", "server") from None
    run(settings, lambda line: print_note(line))
