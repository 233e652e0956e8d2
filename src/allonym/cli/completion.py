"""``allonym completion``: a script for completing commands, options and names in a shell."""

from __future__ import annotations

import click

SHELLS = ("bash", "zsh", "fish")


@click.command(short_help="Print the completion script for a shell.")
@click.argument("shell", type=click.Choice(SHELLS))
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

    made_by = get_completion_class(shell)
    assert made_by is not None
    click.echo(made_by(ctx.find_root().command, {}, "allonym", "_ALLONYM_COMPLETE").source())
