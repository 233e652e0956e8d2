"""``allonym gateway``: an OpenAI-compatible endpoint that anonymises requests and restores answers."""

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


@click.command(short_help="Run an OpenAI-compatible endpoint that protects requests.")
@click.option(
    "--upstream", metavar="URL", help="Base URL of the endpoint to forward to, such as https://api.openai.com/v1."
)
@click.option(
    "--config",
    type=_PATH,
    metavar="FILE.toml",
    help="TOML file with settings; options and ALLONYM_GATEWAY_* take precedence.",
)
@click.option(
    "--host", metavar="NAME", help="Address to listen on. Addresses other than loopback require clients with keys."
)
@click.option("--port", type=click.IntRange(0, 65535), metavar="N", help="Port to listen on; 0: any free one.")
@click.option("--policy", metavar="NAME|FILE", help="Policy of requests that name none.  [default: reversible]")
@click.option(
    "--policies",
    multiple=True,
    metavar="NAME|FILE",
    help="Policy that clients may choose by the header X-Allonym-Policy. Repeatable.",
)
@click.option("--vault", metavar="PATH|URL", help="Vault for the placeholders of conversations; see: allonym vault.")
@click.option("--secret-file", metavar="PATH", help="File with the vault's secret. By default ALLONYM_VAULT_KEY.")
@click.option("--key-file", metavar="PATH", help="File with the key of keyed operators. By default the vault's key.")
@click.option("--explain/--no-explain", default=None, help="Explain placeholders to the model.  [default: explain]")
@click.option(
    "--media", multiple=True, metavar="KIND", help="Content to send unchanged: image, audio or file. Repeatable."
)
@click.option("--new-key", is_flag=True, help="Print a new client key with its digest, and exit.")
def gateway(config: Path | None, new_key: bool, **options: Any) -> None:
    """Run an OpenAI-compatible endpoint that anonymises requests to a language model and restores its answers.

    Programs only change their base URL. Content that cannot be protected is not sent.

    \b
    Examples:
      allonym gateway --upstream https://api.openai.com/v1
      allonym gateway --config gateway.toml
    """
    try:
        import uvicorn

        from allonym.server.gateway import create_app, load
        from allonym.server.gateway.settings import digest_client_key
        from allonym.server.listening import listen
    except ImportError:
        raise MissingExtra("the gateway", "gateway") from None
    if new_key:
        key = "agw_" + token_urlsafe(32)
        click.echo(f'key: {key}\nkey_sha256 = "{digest_client_key(key)}"')
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
            raise UsageError("secret_file requires vault")
        return None
    file = Path(settings.secret_file) if settings.secret_file else None
    if file is not None and not file.is_file():
        raise UsageError(f"setting secret_file: there is no file {file}")
    if file is None and not os.environ.get("ALLONYM_VAULT_KEY"):
        raise UsageError("the vault's secret is required: secret_file or ALLONYM_VAULT_KEY")
    return open_vault(settings.vault, file, None, None)


def _start_log() -> None:
    """Log one line per request to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    log = logging.getLogger("allonym.gateway")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
