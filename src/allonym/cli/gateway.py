"""``allonym gateway``: an OpenAI-compatible endpoint that protects what goes out and restores what comes back."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any

import click

from allonym.cli.options import open_vault, read_key
from allonym.cli.terminal import print_note
from allonym.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    from allonym.server.gateway import Settings
    from allonym.vault import Vault

_PATH = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(short_help="An OpenAI-compatible endpoint that protects and restores.")
@click.option("--upstream", metavar="URL", help="The OpenAI-compatible endpoint, such as https://api.openai.com/v1.")
@click.option(
    "--config", type=_PATH, metavar="FILE.toml", help="Settings; options and ALLONYM_GATEWAY_* go before them."
)
@click.option("--host", metavar="NAME", help="Address to listen on. Others than loopback need clients with keys.")
@click.option("--port", type=click.IntRange(0, 65535), metavar="N", help="Port to listen on; 0: any free one.")
@click.option("--policy", metavar="NAME|FILE", help="For requests that name none.  [default: reversible]")
@click.option(
    "--policies", multiple=True, metavar="NAME|FILE", help="May be named by the header X-Allonym-Policy. Repeatable."
)
@click.option("--vault", metavar="PATH|URL", help="Keeps the placeholders of conversations; see: allonym vault.")
@click.option("--secret-file", metavar="PATH", help="The vault's secret. By default ALLONYM_VAULT_KEY.")
@click.option("--key-file", metavar="PATH", help="Secret of keyed operators. By default the vault's own.")
@click.option("--explain/--no-explain", default=None, help="Tell the model what placeholders are.  [default: explain]")
@click.option("--media", multiple=True, metavar="KIND", help="Send these as they are: image, audio, file. Repeatable.")
@click.option("--new-key", is_flag=True, help="Make a client's key, print it with its digest, and end.")
def gateway(config: Path | None, new_key: bool, **options: Any) -> None:
    """Stand between programs and a language model: an OpenAI-compatible endpoint that protects and restores.

    Programs change their base URL and nothing else. What cannot be protected is not sent.

    \b
    Examples:
      allonym gateway --upstream https://api.openai.com/v1
      allonym gateway --config gateway.toml
    """
    try:
        import uvicorn

        from allonym.server.gateway import create_app, load
        from allonym.server.gateway.settings import digest_of
        from allonym.server.listening import listen
    except ImportError:
        raise MissingExtra("the gateway", "gateway") from None
    if new_key:
        key = "agw_" + token_urlsafe(32)
        click.echo(f'key: {key}\nkey_sha256 = "{digest_of(key)}"')
        return
    settings = load(config, **options)
    vault = _open_vault(settings)
    key_file = Path(settings.key_file) if settings.key_file else None
    if key_file is not None and not key_file.is_file():
        raise UsageError(f"setting key_file: there is no file {key_file}")
    try:
        app = create_app(settings, vault=vault, key=read_key(key_file))
        with listen(settings.host, settings.port) as place:
            _start_log()
            shown = f"[{settings.host}]" if ":" in settings.host else settings.host
            address = f"http://{shown}:{place.getsockname()[1]}/v1"
            print_note(f"{address} protects what goes to {settings.upstream}", label="gateway:")
            how = uvicorn.Config(
                app, log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=30
            )
            uvicorn.Server(how).run(sockets=[place])
    finally:
        if vault is not None:
            vault.close()


def _open_vault(settings: Settings) -> Vault | None:
    if not settings.vault:
        if settings.secret_file:
            raise UsageError("secret_file is a vault's: it needs vault")
        return None
    file = Path(settings.secret_file) if settings.secret_file else None
    if file is not None and not file.is_file():
        raise UsageError(f"setting secret_file: there is no file {file}")
    if file is None and not os.environ.get("ALLONYM_VAULT_KEY"):
        raise UsageError("the vault's secret is required: secret_file or ALLONYM_VAULT_KEY")
    return open_vault(settings.vault, file, None, None)


def _start_log() -> None:
    """A line for each request on standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    log = logging.getLogger("allonym.gateway")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
